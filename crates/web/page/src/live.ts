// Keeps the page equal to the records: one stream for the signal, one reading at a time, and a new
// try at most a second after the connection broke. What is in view stays in view meanwhile.

import { batch } from "@preact/signals";
import { call, newId, openStream, Refused, Unreachable } from "./api.js";
import { flush, putDevices, settleDecisions } from "./actions.js";
import * as box from "./outbox.js";
import * as s from "./state.js";
import {
  backoffMs,
  isGap,
  mergeEntries,
  planReread,
  receiptsDue,
  SignalReader,
  type Reread,
} from "./sync.js";
import type {
  Action,
  Changes,
  Chat,
  Control,
  Demo,
  Device,
  Duty,
  Entry,
  Me,
  Proposal,
  Source,
} from "./types.js";

/** Heartbeats come every 15 s; after this long without one the connection is taken for broken. */
const SILENCE_MS = 40_000;
const CHAT_PAGE = 100;
const RECEIPT_MESSAGES_MAX = 200;
const MISSING_PROPOSALS_MAX = 20;
const ACTIONS_PAGE = 100;
const ME_EVERY_MS = 3_000;
const PULL_PAUSE_MS = 60;

const get = <T>(path: string) => call<T>(s.caller(), "GET", path);
const pause = (ms: number) => new Promise<void>((done) => setTimeout(done, ms));

let cursor = -1;
let meReadAt = 0;
let receipt: { id: string; messages: string[] } | null = null;
let acknowledged = new Set<string>();

/** Runs until `stop` fires or the server no longer knows this device. */
export async function live(stop: AbortSignal): Promise<void> {
  cursor = -1;
  receipt = null;
  acknowledged = new Set();
  let failures = 0;
  while (!stop.aborted) {
    try {
      await connected(stop, () => {
        failures = 0;
      });
    } catch (error) {
      if (stop.aborted) return;
      if (error instanceof Refused && error.status === 401) return revoked();
      if (error instanceof Refused) s.readProblem.value = error.detail;
      else if (!(error instanceof Unreachable)) s.readProblem.value = String(error);
    }
    if (stop.aborted) return;
    s.link.value = { ...s.link.value, state: "down" };
    await pause(backoffMs(failures));
    failures += 1;
  }
}

async function connected(stop: AbortSignal, onLive: () => void): Promise<void> {
  const abort = new AbortController();
  const end = () => abort.abort();
  stop.addEventListener("abort", end, { once: true });
  let silence = setTimeout(end, SILENCE_MS);
  try {
    const reader = await openStream(s.caller(), abort.signal);
    await catchUp(cursor);
    onLive();
    void settleDecisions();
    void flush();
    const signals = new SignalReader();
    const decoder = new TextDecoder();
    // One reading at a time; signals that come meanwhile make one more, never a queue.
    let wanted: number | null = null;
    let reading: Promise<void> | null = null;
    let fault: unknown = null;
    const read = async (): Promise<void> => {
      while (wanted !== null) {
        const seq = wanted;
        wanted = null;
        // A signal may be older than what a reading already brought; a store that was reset shows
        // itself after the reconnection that it needs.
        if (seq > cursor) await catchUp(cursor);
        await pause(PULL_PAUSE_MS);
      }
      reading = null;
    };
    for (;;) {
      const piece = await reader.read().catch((error: unknown) => {
        throw fault ?? new Unreachable(String(error));
      });
      if (piece.done) throw new Unreachable("the stream ended");
      clearTimeout(silence);
      silence = setTimeout(end, SILENCE_MS);
      const seq = signals.push(decoder.decode(piece.value, { stream: true }));
      if (seq === null) continue;
      wanted = seq;
      reading ??= read().catch((error: unknown) => {
        fault = error;
        end();
      });
    }
  } finally {
    clearTimeout(silence);
    stop.removeEventListener("abort", end);
    abort.abort();
  }
}

/** Reads everything if nothing is held (`after` < 0) or on a gap, else only what changed. */
async function catchUp(after: number): Promise<void> {
  if (after < 0) await readAll();
  else await readChanges(after);
  s.link.value = { state: "live", asOf: s.now.value };
  s.plugged.value = false;
  s.readProblem.value = null;
  void acknowledge();
}

async function readAll(): Promise<void> {
  // The sequence number is read first: a change during the reading is then read twice, never
  // missed.
  const who = await get<Me>("/v1/me");
  const [chat, duties, open, acts, demo, devices, control, sources] = await Promise.all([
    get<Chat>(`/v1/chat?limit=${CHAT_PAGE}`),
    get<{ duties: Duty[] }>("/v1/duties"),
    get<{ proposals: Proposal[] }>("/v1/proposals?state=open"),
    get<{ actions: Action[] }>(`/v1/actions?limit=${ACTIONS_PAGE}`),
    who.demo ? get<Demo>("/v1/demo").catch(() => null) : null,
    s.devices.value !== null ? get<{ devices: Device[] }>("/v1/devices") : null,
    get<Control>("/v1/control"),
    s.sources.value !== null ? get<{ sources: Source[] }>("/v1/sources") : null,
  ]);
  const proposals = await withMissing(byId(open.proposals), chat.entries);
  const actions = await withMissingActions(byId(acts.actions), chat.entries);
  batch(() => {
    s.me.value = who;
    s.setLang(who.language);
    s.setClock(demo?.virtual_now ?? who.now);
    s.entries.value = mergeEntries([], chat.entries);
    s.moreBefore.value = chat.more;
    s.duties.value = byId(duties.duties);
    s.proposals.value = proposals;
    s.actions.value = actions;
    s.demo.value = demo;
    s.control.value = control;
    if (sources !== null) s.sources.value = sources.sources;
    if (devices !== null) putDevices(devices.devices);
    s.loaded.value = true;
    settleOutbox();
  });
  meReadAt = Date.now();
  cursor = who.seq;
}

async function readChanges(after: number): Promise<void> {
  for (;;) {
    let answer: Changes;
    try {
      answer = await get<Changes>(`/v1/changes?after=${after}&limit=500`);
    } catch (error) {
      if (error instanceof Refused && error.status === 410) return readAll();
      throw error;
    }
    if (isGap(after, answer)) return readAll();
    const plan = planReread(answer.changes, s.duties.value);
    await apply(plan);
    const last = answer.changes.at(-1)?.seq ?? after;
    after = answer.more ? last : Math.max(last, answer.seq);
    cursor = after;
    if (!answer.more) return;
  }
}

/** A record that is gone or was never ours answers 404 and is left out. */
async function getIfThere<T>(path: string): Promise<T | null> {
  try {
    return await get<T>(path);
  } catch (error) {
    if (error instanceof Refused && error.status === 404) return null;
    throw error;
  }
}

async function apply(plan: Reread): Promise<void> {
  const meDue = plan.me || Date.now() - meReadAt > ME_EVERY_MS;
  const devicesDue = plan.devices && s.devices.value !== null;
  const sourcesDue = plan.sources && s.sources.value !== null;
  const [entries, chat, duties, all, proposals, who, devices, control, sources, some, acts] = await Promise.all([
    Promise.all(plan.chat.map((id) => getIfThere<Entry>(`/v1/chat/${id}`))),
    plan.allChat ? get<Chat>(`/v1/chat?limit=${CHAT_PAGE}`) : null,
    Promise.all(plan.duties.map((id) => getIfThere<Duty>(`/v1/duties/${id}`))),
    plan.allDuties ? get<{ duties: Duty[] }>("/v1/duties") : null,
    Promise.all(plan.proposals.map((id) => getIfThere<Proposal>(`/v1/proposals/${id}`))),
    meDue ? get<Me>("/v1/me") : null,
    devicesDue ? get<{ devices: Device[] }>("/v1/devices") : null,
    plan.control ? get<Control>("/v1/control") : null,
    sourcesDue ? get<{ sources: Source[] }>("/v1/sources") : null,
    Promise.all(plan.actions.map((id) => getIfThere<Action>(`/v1/actions/${id}`))),
    plan.allActions ? get<{ actions: Action[] }>(`/v1/actions?limit=${ACTIONS_PAGE}`) : null,
  ]);
  // The server writes its words in the owner's zone and language: with others, all are others.
  const known = s.me.value;
  if (who !== null && (who.zone !== known?.zone || who.language !== known?.language)) {
    return readAll();
  }
  const came = [...present(entries), ...(chat?.entries ?? [])];
  const merged = new Map(s.proposals.value);
  for (const proposal of present(proposals)) merged.set(proposal.id, proposal);
  const complete = await withMissing(merged, came);
  const acting = new Map(s.actions.value);
  for (const action of [...(acts?.actions ?? []), ...present(some)]) acting.set(action.id, action);
  const actions = await withMissingActions(acting, came);
  batch(() => {
    if (came.length > 0) s.entries.value = mergeEntries(s.entries.value, came);
    const held = new Map(all === null ? s.duties.value : byId(all.duties));
    for (const duty of present(duties)) held.set(duty.id, duty);
    s.duties.value = held;
    s.proposals.value = complete;
    s.actions.value = actions;
    if (who !== null) {
      s.me.value = who;
      if (s.demo.value === null) s.setClock(who.now);
      meReadAt = Date.now();
    }
    if (devices !== null) putDevices(devices.devices);
    if (control !== null) s.control.value = control;
    if (sources !== null) s.sources.value = sources.sources;
    settleOutbox();
  });
}

/** Settled proposals are not in the list of open ones, but their cards stay in the chat. */
async function withMissing(
  held: ReadonlyMap<string, Proposal>,
  entries: Entry[],
): Promise<Map<string, Proposal>> {
  const all = new Map(held);
  const missing = new Set(
    entries
      .map((entry) => entry.proposal)
      .filter((id): id is string => id !== null && !all.has(id)),
  );
  const wanted = [...missing].slice(-MISSING_PROPOSALS_MAX);
  const found = await Promise.all(wanted.map((id) => getIfThere<Proposal>(`/v1/proposals/${id}`)));
  for (const proposal of present(found)) all.set(proposal.id, proposal);
  return all;
}

/** Actions that are older than the list and still stand in the chat. */
async function withMissingActions(
  held: ReadonlyMap<string, Action>,
  entries: Entry[],
): Promise<Map<string, Action>> {
  const all = new Map(held);
  const missing = new Set(
    entries.map((entry) => entry.action).filter((id): id is string => id !== null && !all.has(id)),
  );
  const wanted = [...missing].slice(-MISSING_PROPOSALS_MAX);
  const found = await Promise.all(wanted.map((id) => getIfThere<Action>(`/v1/actions/${id}`)));
  for (const action of present(found)) all.set(action.id, action);
  return all;
}

function settleOutbox(): void {
  const shown = new Set(s.entries.value.map((entry) => entry.id));
  if (box.settle(s.outbox.value, shown) !== s.outbox.value) {
    s.changeOutbox((held) => box.settle(held, shown));
  }
}

/** Tells the server what this device now holds. The same list goes again until it is answered. */
async function acknowledge(): Promise<void> {
  const due = receiptsDue(s.entries.value, acknowledged).slice(0, RECEIPT_MESSAGES_MAX);
  if (receipt === null && due.length > 0) receipt = { id: newId(), messages: due };
  if (receipt === null) return;
  const sent = receipt;
  try {
    await call(s.caller(), "POST", "/v1/receipts", sent);
  } catch (error) {
    // Without an answer the same list goes again with the next reading; a refusal is final.
    if (error instanceof Unreachable || !box.isFinalRefusal((error as Refused).status)) return;
  }
  for (const id of sent.messages) acknowledged.add(id);
  if (receipt === sent) receipt = null;
}

export async function readEarlier(): Promise<void> {
  const first = s.entries.value[0];
  if (first === undefined) return;
  try {
    const page = await get<Chat>(`/v1/chat?before=${first.seq}&limit=${CHAT_PAGE}`);
    const held = s.entries.value.length;
    const proposals = await withMissing(s.proposals.value, page.entries);
    const actions = await withMissingActions(s.actions.value, page.entries);
    batch(() => {
      s.entries.value = mergeEntries(s.entries.value, page.entries);
      s.proposals.value = proposals;
      s.actions.value = actions;
      s.moreBefore.value = page.more && s.entries.value.length > held;
    });
  } catch {
    // The button stays, and so does everything in view.
  }
}

/** The demo's clock and story move without a change of the records: asked once a second. */
export async function readDemo(): Promise<void> {
  const story = await get<Demo>("/v1/demo");
  batch(() => {
    s.demo.value = story;
    s.setClock(story.virtual_now);
    if (s.link.value.state === "live") s.link.value = { state: "live", asOf: s.now.value };
  });
}

function byId<T extends { id: string }>(list: T[]): Map<string, T> {
  return new Map(list.map((item) => [item.id, item]));
}

function present<T>(list: (T | null)[]): T[] {
  return list.filter((item): item is T => item !== null);
}

/** The server no longer knows this device. Unsent messages stay here for the next pairing. */
function revoked(): void {
  batch(() => {
    s.setPairing(null);
    s.pairNote.value = "revoked";
    s.forgetRecords();
  });
}
