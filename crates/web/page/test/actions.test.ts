import assert from "node:assert/strict";
import test from "node:test";
import * as box from "../src/outbox.js";
import { asks, cardEntries, groupOf, isMoving, looseActions, urgentFirst } from "../src/sync.js";
import type { Action, ActionState, Approval, Duty, Entry, Proposal } from "../src/types.js";
import { approvedBy, lastDecisions } from "../src/words-cards.js";
import { actionNamed, actionTone, wholeAmounts, WORDS } from "../src/words.js";

const action = (id: string, more: Partial<Action> = {}): Action => ({
  id,
  duty: null,
  title: null,
  task_version: null,
  tool: "hotel.book",
  effect: "paid",
  tier: "r4",
  state: "awaiting_approval",
  words: "",
  what: "",
  card: [],
  amount: { minor: 260_000, currency: "HKD", text: "HKD 2 600.00" },
  recipients: [],
  digest: "",
  template: "action-2 en",
  reason: null,
  expires_at: null,
  if_nothing: null,
  afterwards: null,
  undo_ms: 5_000,
  not_before: null,
  receipt: null,
  authority: null,
  contradicted: false,
  escalated_at: null,
  compensates: null,
  created_at: id,
  moved_at: id,
  approvals: [],
  asked: ["user"],
  seq: 1,
  ...more,
});
const unknown = (escalated_at: string | null) => action("u", { state: "unknown", escalated_at });

test("a title and a button name the effect with its price or its receiver", () => {
  const mail = { tool: "mail.send", amount: null, recipients: ["lau@example.org"] };
  const many = { ...mail, recipients: ["Ms Lau", "a@b.example", "c@d.example"] };
  assert.deepEqual(
    [
      WORDS.en.actRelease(actionNamed(action("a"), WORDS.en)),
      WORDS.zh.actRelease(actionNamed(action("a"), WORDS.zh)),
      actionNamed(action("a", mail), WORDS.en),
      actionNamed(action("a", many), WORDS.en),
      actionNamed(action("a", { amount: null }), WORDS.en),
      wholeAmounts("HKD 1 200 600.00 is more than JPY 900 of 3"),
    ],
    [
      "Release: hotel.book for HKD\u00a02\u00a0600.00",
      "放行：hotel.book，HKD\u00a02\u00a0600.00",
      "mail.send to lau@example.org",
      "mail.send to Ms Lau and 2 more",
      "hotel.book",
      "HKD\u00a01\u00a0200\u00a0600.00 is more than JPY\u00a0900 of 3",
    ],
  );
});

const approval = (id: string, of: Approval["of"], by: Approval["by"], device: string | null) =>
  ({ id, of, by, device_name: device }) as Approval;

test("a supervisor's release is not the person's, and stands beside it", () => {
  const all = [
    approval("a", "user", "user", "phone"),
    approval("b", "supervisor", "supervisor", "boss's phone"),
    approval("c", "policy", "policy", null),
    approval("d", "user", "user", null),
    approval("e", "supervisor", null, null),
    approval("f", "user", null, null),
  ];
  assert.deepEqual(
    [WORDS.en, WORDS.zh].map((words) => all.map((one) => approvedBy(one, words))),
    [
      [
        "by you on phone",
        "by your supervisor",
        "inside a grant of yours",
        "by you",
        "your supervisor",
        "",
      ],
      ["由你在 phone 上", "由你的主管", "在你的授权之内", "由你", "你的主管", ""],
    ],
  );
  assert.deepEqual(
    [all, all.slice(0, 1), []].map((some) => lastDecisions(some).map((one) => one.id)),
    [["d", "b"], ["a"], []],
  );
});

test("only what is in force is drawn so, and a state newer than the page is under way", () => {
  const states: ActionState[] = ["accepted", "effective", "unknown", "dispatched", "blocked"];
  const tones = [...states, "new" as ActionState].map((state) =>
    actionTone(action("a", { state })),
  );
  assert.deepEqual(tones, ["moving", "confirmed", "unknown", "moving", "bad", "moving"]);
});

test("the person is asked about what waits for them and what nobody could find out", () => {
  assert.deepEqual(
    [action("a"), unknown(null), unknown("t"), action("s", { state: "admitted" })].map((one) => [
      asks(one),
      isMoving(one),
    ]),
    [
      [true, false],
      [false, false],
      [true, false],
      [false, true],
    ],
  );
});

test("a card stands once: at the newest entry of its action, or after the last message", () => {
  const entry = (id: string, of: string | null): Entry => ({
    seq: 1,
    kind: "notice",
    id,
    text: "",
    at: "",
    state: "queued",
    duty: null,
    proposal: null,
    action: of,
    about: null,
    late: false,
  });
  const entries = [entry("e1", "a"), entry("e2", null), entry("e3", "a"), entry("e4", "b")];
  assert.deepEqual([...cardEntries(entries)], ["e3", "e4"]);
  const all = [action("d"), action("a"), action("c"), action("x", { state: "effective" })];
  assert.deepEqual(
    looseActions(all, entries).map((one) => one.id),
    ["c", "d"],
  );
});

test("the next deadline comes first, and what has none comes last", () => {
  const proposal = { id: "p", until: "2026-12-02" } as Proposal;
  const cards = urgentFirst(
    [proposal],
    [unknown("t"), action("a", { expires_at: "2026-12-03" }), action("b", { expires_at: "2026-12-01" })],
  );
  assert.deepEqual(
    cards.map((card) => (card.kind === "action" ? card.action.id : card.proposal.id)),
    ["b", "p", "a", "u"],
  );
});

test("a duty needs the person while one of its actions asks", () => {
  const duty = { id: "d", state: "active", runs: [], waits: [] } as unknown as Duty;
  const of = (state: ActionState) => groupOf(duty, [], [action("a", { duty: "d", state })]);
  assert.deepEqual([of("awaiting_approval"), of("effective")], ["needs", "quiet"]);
  assert.equal(groupOf(duty, [], [action("a", { duty: "other" })]), "quiet");
});

test("taking back goes before messages, once, and is kept over a restart", () => {
  const said = box.addMessage({ device: "d", items: [] }, "m1", "hello", "");
  const held = box.addWithdraw(box.addWithdraw(said, "w1", "a", ""), "w2", "a", "");
  assert.deepEqual([held.items.length, box.nextToSend(held)?.id], [2, "w1"]);
  assert.deepEqual([box.isTakingBack(held, "a"), box.isTakingBack(held, "b")], [true, false]);
  assert.deepEqual(box.read(box.write(held), "d"), held);
});
