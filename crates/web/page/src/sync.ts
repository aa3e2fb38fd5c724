// How the page stays equal to the records: a signal says "changed, now at 43", the page asks for
// the changes after the last one it holds, and rereads what they name. Pure: no clock, no network.

import type {
  Action,
  Change,
  Changes,
  Device,
  Duty,
  Entry,
  Proposal,
  RunState,
} from "./types.js";

/** What must be fetched again after a list of changes. */
export interface Reread {
  chat: string[];
  duties: string[];
  proposals: string[];
  actions: string[];
  /** A run, wait or schedule moved and its duty is not known: reread the list. */
  allDuties: boolean;
  allChat: boolean;
  allActions: boolean;
  /** Name, zone or cap may be others. */
  me: boolean;
  devices: boolean;
  /** Something may be held, paused or stopped, or no more. */
  control: boolean;
  sources: boolean;
}

/** More single fetches than this cost more than one list. */
const SINGLE_FETCHES_MAX = 12;

export function planReread(changes: Change[], duties: ReadonlyMap<string, Duty>): Reread {
  const chat = new Set<string>();
  const some = new Set<string>();
  const proposals = new Set<string>();
  const actions = new Set<string>();
  let allDuties = false;
  let me = false;
  let devices = false;
  let control = false;
  let sources = false;
  for (const change of changes) {
    switch (change.noun) {
      case "message":
      case "event":
        chat.add(change.id);
        sources = true;
        break;
      case "hold":
        control = true;
        break;
      case "pause":
        // It shows on every duty that it covers.
        control = true;
        allDuties = true;
        break;
      case "source":
        sources = true;
        break;
      case "duty":
        some.add(change.id);
        break;
      case "proposal":
        proposals.add(change.id);
        break;
      case "action":
        actions.add(change.id);
        break;
      case "approval":
      case "attempt":
        // Each moves in the commit that moves its action.
        break;
      case "owner":
        me = true;
        control = true;
        break;
      case "device":
        devices = true;
        break;
      default: {
        // run, wait, schedule, work item and nouns newer than this page: they belong to some duty.
        const owner = dutyOf(change.id, duties);
        if (owner === null) allDuties = true;
        else some.add(owner);
      }
    }
  }
  if (some.size > SINGLE_FETCHES_MAX) allDuties = true;
  const allChat = chat.size > SINGLE_FETCHES_MAX;
  const allActions = actions.size > SINGLE_FETCHES_MAX;
  return {
    chat: allChat ? [] : [...chat],
    duties: allDuties ? [] : [...some],
    proposals: [...proposals],
    actions: allActions ? [] : [...actions],
    allDuties,
    allChat,
    allActions,
    me,
    devices,
    control,
    sources,
  };
}

function dutyOf(id: string, duties: ReadonlyMap<string, Duty>): string | null {
  for (const duty of duties.values()) {
    const parts = [duty.runs, duty.waits, duty.schedules, duty.subscriptions, duty.grants];
    if (parts.some((list) => list.some((part) => part.id === id))) return duty.id;
  }
  return null;
}

/**
 * The answer cannot follow on from `after`: another store, a restored backup, or pruned changes.
 */
export function isGap(after: number, answer: Changes): boolean {
  if (answer.seq < after) return true;
  let last = after + 1;
  for (const change of answer.changes) {
    if (change.seq < last) return true;
    last = change.seq;
  }
  return answer.more && answer.changes.length === 0;
}

/** Entries in the order of the record; an entry that came again replaces the one held. */
export function mergeEntries(held: Entry[], came: Entry[]): Entry[] {
  const byId = new Map(held.map((entry) => [entry.id, entry]));
  for (const entry of came) byId.set(entry.id, entry);
  return [...byId.values()].sort((a, b) => a.seq - b.seq || (a.id < b.id ? -1 : 1));
}

/** Messages this device now holds and has not yet acknowledged. */
export function receiptsDue(entries: Entry[], acknowledged: ReadonlySet<string>): string[] {
  return entries
    .filter((entry) => entry.kind !== "user" && !acknowledged.has(entry.id))
    .filter((entry) => entry.state !== "delivered" && entry.state !== "dropped")
    .map((entry) => entry.id);
}

/** Open proposals that no entry of the chat carries: they are shown after the last message. */
export function looseProposals(proposals: Iterable<Proposal>, entries: Entry[]): Proposal[] {
  const carried = new Set(entries.map((entry) => entry.proposal));
  return [...proposals]
    .filter((proposal) => proposal.state === "open" && !carried.has(proposal.id))
    .sort((a, b) => a.created_at.localeCompare(b.created_at));
}

/** Whether the person is asked something: to release it, or what became of it. */
export function asks(action: Action): boolean {
  return (
    action.state === "awaiting_approval" ||
    (action.state === "unknown" && action.escalated_at !== null)
  );
}

/** Released and not sent: it can still be taken back. */
export function isMoving(action: Action): boolean {
  return action.state === "authorized" || action.state === "admitted";
}

/** Where the card of each action stands in the chat: at the newest entry that carries it. */
export function cardEntries(entries: Entry[]): ReadonlySet<string> {
  const last = new Map<string, string>();
  for (const entry of entries) if (entry.action !== null) last.set(entry.action, entry.id);
  return new Set(last.values());
}

/** Cards of actions that the chat does not carry: they are shown after the last message. */
export function looseActions(actions: Iterable<Action>, entries: Entry[]): Action[] {
  const carried = new Set(entries.map((entry) => entry.action));
  return [...actions]
    .filter((action) => (asks(action) || isMoving(action)) && !carried.has(action.id))
    .sort((a, b) => a.created_at.localeCompare(b.created_at));
}

export type Urgent =
  { kind: "proposal"; proposal: Proposal } | { kind: "action"; action: Action };

/** Cards by the deadline of their record; those without one last. */
export function urgentFirst(proposals: Proposal[], actions: Action[]): Urgent[] {
  const all: { until: string | null; card: Urgent }[] = [
    ...proposals.map((proposal) => ({
      until: proposal.until,
      card: { kind: "proposal" as const, proposal },
    })),
    ...actions.map((action) => ({
      until: action.state === "unknown" ? null : action.expires_at,
      card: { kind: "action" as const, action },
    })),
  ];
  return all.sort((a, b) => soonerFirst(a.until, b.until)).map((one) => one.card);
}

/** Orders times of the record; what has none comes last. */
export function soonerFirst(a: string | null, b: string | null): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  return a.localeCompare(b);
}

/** A device that was paired since the code for it was made. */
export function newcomer(before: Device[], now: Device[]): Device | null {
  const known = new Set(before.map((device) => device.id));
  return now.find((device) => device.revoked_at === null && !known.has(device.id)) ?? null;
}

export type Group = "needs" | "working" | "waiting" | "quiet" | "ended";
export const GROUPS: Group[] = ["needs", "working", "waiting", "quiet", "ended"];

/** Not at an end yet; a lost or sleeping run is taken up again by itself. */
const RUN_OPEN: ReadonlySet<RunState> = new Set(["running", "lost", "sleeping"]);

export function groupOf(
  duty: Duty,
  proposals: Iterable<Proposal>,
  actions: Iterable<Action> = [],
): Group {
  switch (duty.state) {
    case "stopped":
    case "closed":
      return "ended";
    case "close_proposed":
      return "needs";
    case "active": {
      for (const proposal of proposals) {
        if (proposal.state === "open" && proposal.duty === duty.id) return "needs";
      }
      for (const action of actions) {
        if (action.duty === duty.id && asks(action)) return "needs";
      }
      if (duty.runs.some((run) => RUN_OPEN.has(run.state))) return "working";
      return duty.waits.some((wait) => wait.state === "open") ? "waiting" : "quiet";
    }
  }
}

/** Milliseconds before the next try to reach the server; never more than one second. */
export function backoffMs(failures: number): number {
  return Math.min(1000, 100 * 2 ** Math.min(failures, 10));
}

/** Characters a stream may hold without a complete event before it is taken for broken. */
const STREAM_BUFFER_MAX = 65_536;

/** Reads `text/event-stream` piece by piece; only `changed` events with a number count. */
export class SignalReader {
  private buffer = "";

  /** The newest sequence number named in the piece, or null. Throws if the stream is not ours. */
  push(piece: string): number | null {
    this.buffer = (this.buffer + piece).replaceAll("\r\n", "\n");
    let newest: number | null = null;
    for (;;) {
      const end = this.buffer.indexOf("\n\n");
      if (end < 0) break;
      const seq = readSignal(this.buffer.slice(0, end));
      this.buffer = this.buffer.slice(end + 2);
      if (seq !== null) newest = seq;
    }
    if (this.buffer.length > STREAM_BUFFER_MAX) throw new Error("event stream without an end");
    return newest;
  }
}

function readSignal(block: string): number | null {
  let kind = "message";
  let data = "";
  for (const line of block.split("\n")) {
    if (line.startsWith("event:")) kind = line.slice(6).trim();
    else if (line.startsWith("data:")) data += line.slice(5).trim();
  }
  if (kind !== "changed") return null;
  try {
    const seq: unknown = (JSON.parse(data) as { seq?: unknown }).seq;
    return typeof seq === "number" ? seq : null;
  } catch {
    return null;
  }
}
