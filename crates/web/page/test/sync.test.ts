import assert from "node:assert/strict";
import test from "node:test";
import {
  backoffMs,
  groupOf,
  isGap,
  looseProposals,
  mergeEntries,
  newcomer,
  planReread,
  receiptsDue,
  SignalReader,
} from "../src/sync.js";
import type { Change, Device, Duty, Entry, Grant, Proposal, Run, Wait } from "../src/types.js";

const duty = (id: string, more: Partial<Duty> = {}): Duty => ({
  id,
  title: id,
  state: "active",
  version: 1,
  goal: "",
  conditions: [],
  created_at: "",
  next_wake: null,
  waits: [],
  schedules: [],
  ends_at: null,
  pause: null,
  subscriptions: [],
  situations: [],
  grants: [],
  runs: [],
  spent_micro_usd: 0,
  state_line: "",
  ...more,
});
const entry = (seq: number, id: string, more: Partial<Entry> = {}): Entry => ({
  seq,
  kind: "agent",
  id,
  text: id,
  at: "",
  state: "queued",
  duty: null,
  proposal: null,
  action: null,
  about: null,
  late: false,
  ...more,
});
const proposal = (id: string, more: Partial<Proposal> = {}): Proposal => ({
  id,
  kind: "new_duty",
  duty: null,
  title: "",
  goal: "",
  conditions: [],
  schedules: [],
  subscriptions: [],
  grants: [],
  reach: null,
  changes: [],
  ends_at: null,
  until: null,
  why: "",
  if_nothing: "",
  afterwards: "",
  digest: "",
  state: "open",
  words: "",
  created_at: "",
  ...more,
});
const changes = (...pairs: [string, string][]): Change[] =>
  pairs.map(([noun, id], at) => ({ seq: at + 1, noun, id }));
const wait: Wait = { id: "w1", kind: "reply", key: "", due_at: null, state: "open" };

test("a change rereads its record once, and parts of a known duty reread that duty", () => {
  const grants = [{ id: "g1" } as Grant];
  const held = new Map([
    ["d1", duty("d1", { waits: [wait] })],
    ["d3", duty("d3", { grants })],
  ]);
  const came = changes(
    ["message", "m1"],
    ["message", "m1"],
    ["event", "e1"],
    ["proposal", "p1"],
    ["wait", "w1"],
    ["duty", "d2"],
    ["device", "x1"],
    ["owner", "o1"],
    ["action", "a1"],
    ["approval", "y1"],
    ["attempt", "t1"],
    ["grant", "g1"],
  );
  assert.deepEqual(planReread(came, held), {
    chat: ["m1", "e1"],
    duties: ["d1", "d2", "d3"],
    proposals: ["p1"],
    actions: ["a1"],
    allDuties: false,
    allChat: false,
    allActions: false,
    me: true,
    devices: true,
    control: true,
    sources: true,
  });
});

test("what is held or paused is read again, and a pause shows on every duty", () => {
  const plan = (noun: string) => {
    const { control, sources, allDuties } = planReread(changes([noun, "x1"]), new Map());
    return [control, sources, allDuties];
  };
  assert.deepEqual(plan("hold"), [true, false, false]);
  assert.deepEqual(plan("pause"), [true, false, true]);
  assert.deepEqual(plan("source"), [false, true, false]);
  assert.deepEqual(plan("message"), [false, true, false]);
});

test("a device that came after the code was made is the one that used it", () => {
  const device = (id: string, revoked_at: string | null = null): Device => ({
    id,
    name: id,
    of: "user",
    created_at: "",
    revoked_at,
    this: false,
  });
  const before = [device("laptop"), device("old", "2026-11-30T08:00:00Z")];
  assert.equal(newcomer(before, before), null);
  assert.equal(newcomer(before, [...before, device("gone", "2026-11-30T08:00:00Z")]), null);
  assert.equal(newcomer(before, [...before, device("phone")])?.id, "phone");
});

test("a part of an unknown duty and a noun newer than the page reread all duties", () => {
  for (const noun of ["run", "weather"]) {
    const plan = planReread(changes([noun, "x"], ["duty", "d1"]), new Map());
    assert.deepEqual([plan.allDuties, plan.duties], [true, []]);
  }
});

test("many changed messages are reread as one list", () => {
  const many = Array.from({ length: 13 }, (_, at): [string, string] => ["message", `m${at}`]);
  const plan = planReread(changes(...many), new Map());
  assert.deepEqual([plan.allChat, plan.chat], [true, []]);
});

test("an answer that cannot follow is a gap", () => {
  const one = (seq: number): Change => ({ seq, noun: "duty", id: "d" });
  const gap = (after: number, list: Change[], seq: number, more = false) =>
    isGap(after, { changes: list, seq, more });
  assert.equal(gap(5, [one(6), one(9)], 9), false);
  assert.equal(gap(5, [], 5), false);
  assert.equal(gap(5, [one(6), one(6)], 6), false);
  assert.equal(gap(5, [], 4), true);
  assert.equal(gap(5, [one(5)], 9), true);
  assert.equal(gap(5, [one(7), one(6)], 9), true);
  assert.equal(gap(5, [], 9, true), true);
});

test("two devices at one sequence hold equal lists, in whatever order the entries came", () => {
  const a = entry(1, "a");
  const b = entry(2, "b");
  const moved = entry(2, "b", { state: "delivered" });
  const left = mergeEntries(mergeEntries([], [a, b]), [moved]);
  const right = mergeEntries(mergeEntries([], [moved]), [a]);
  assert.deepEqual(left, right);
  assert.deepEqual(left, [a, moved]);
});

test("receipts cover what this device holds and nobody has acknowledged", () => {
  const list = [
    entry(1, "user", { kind: "user", state: "received" }),
    entry(2, "new"),
    entry(3, "notice", { kind: "notice", state: "uncertain" }),
    entry(4, "told"),
    entry(5, "done", { state: "delivered" }),
    entry(6, "gone", { state: "dropped" }),
  ];
  assert.deepEqual(receiptsDue(list, new Set(["told"])), ["new", "notice"]);
});

test("an open proposal without a message is shown once, oldest first", () => {
  const list = [
    proposal("late", { created_at: "2026-01-02" }),
    proposal("early", { created_at: "2026-01-01" }),
    proposal("carried"),
    proposal("settled", { state: "declined" }),
  ];
  const shown = looseProposals(list, [entry(1, "m", { proposal: "carried" })]);
  assert.deepEqual(
    shown.map((item) => item.id),
    ["early", "late"],
  );
});

test("a duty is grouped by what it means for the person", () => {
  const run: Run = {
    id: "r",
    state: "running",
    started_at: "",
    ended_at: null,
    steps: 1,
    input_tokens: 0,
    output_tokens: 0,
    micro_usd: 0,
  };
  const open = [proposal("p", { duty: "asked" })];
  const group = (item: Duty) => groupOf(item, open);
  assert.deepEqual(
    [
      group(duty("asked")),
      group(duty("a", { state: "close_proposed" })),
      group(duty("b", { runs: [run], waits: [wait] })),
      group(duty("c", { waits: [wait] })),
      group(duty("d")),
      group(duty("e", { waits: [{ ...wait, state: "satisfied" }] })),
      group(duty("f", { state: "stopped", runs: [run] })),
      group(duty("g", { state: "closed" })),
    ],
    ["needs", "needs", "working", "waiting", "quiet", "quiet", "ended", "ended"],
  );
});

test("the next try is never more than a second away", () => {
  assert.deepEqual([0, 1, 2, 3, 4, 99].map(backoffMs), [100, 200, 400, 800, 1000, 1000]);
});

test("signals are read whatever the pieces are cut into", () => {
  const stream =
    ': hello\n\nevent: changed\ndata: {"seq":43}\r\n\r\nevent: other\ndata: {"seq":9}\n\n' +
    'event: changed\ndata: not json\n\nevent: changed\ndata: {"seq":44}\n\n';
  for (const size of [1, 7, 1000]) {
    const reader = new SignalReader();
    const heard: number[] = [];
    for (let at = 0; at < stream.length; at += size) {
      const seq = reader.push(stream.slice(at, at + size));
      if (seq !== null) heard.push(seq);
    }
    assert.deepEqual(heard, size === 1000 ? [44] : [43, 44]);
  }
  assert.throws(() => new SignalReader().push("x".repeat(70_000)));
});
