// The stand-in server's outside effects: one that waits for the person, and one that nobody could find
// out about.

import { randomUUID } from "node:crypto";

/** By id. `at` gives the time so many hours after the start. */
export function makeActions(at) {
  const action = (more) => ({
    id: randomUUID(),
    duty: null,
    title: null,
    task_version: null,
    tool: "hotel.book",
    effect: "paid",
    tier: "r4",
    state: "awaiting_approval",
    words: "waiting for the person",
    what: "hotel.book for HKD 2 600.00 (hotel Harbour, guest Ann)",
    card: [
      { label: "hotel", value: "Harbour Plaza, Hong Kong" },
      { label: "nights", value: "2" },
      { label: "guest", value: "Ann Li" },
    ],
    amount: { minor: 260_000, currency: "HKD", text: "HKD 2 600.00" },
    recipients: [],
    digest: "9f31c07ab2".repeat(6),
    reason: "No grant of yours covers it.",
    expires_at: at(9),
    if_nothing: "Nothing is done. The question ends on Monday 2026-11-30 18:00.",
    afterwards: "It is sent 5 s later; until then you can take it back.",
    undo_ms: 5_000,
    not_before: null,
    receipt: null,
    authority: null,
    contradicted: false,
    escalated_at: null,
    compensates: null,
    created_at: at(0.9),
    moved_at: at(0.9),
    approvals: [],
    attempts: [],
    seq: 100,
    ...more,
  });
  return new Map(
    [
      action({}),
      action({
        state: "unknown",
        words: "sent, being checked",
        reason: "no answer in time",
        escalated_at: at(0.95),
        expires_at: at(-20),
        attempts: [
          {
            n: 1,
            operation_id: randomUUID(),
            state: "unknown",
            reason: "no answer in time",
            receipt: null,
            created_at: at(-24),
            moved_at: at(-24),
          },
        ],
      }),
    ].map((item) => [item.id, item]),
  );
}

/** The routes of the contract, on these actions. */
export function actionRoutes(actions, { now, later, changed, write, problem, found, seq }) {
  return [
    ["GET", /^\/v1\/actions$/, () => [200, { actions: [...actions.values()].reverse(), seq: seq() }]],
    ["GET", /^\/v1\/actions\/([^/]+)$/, (_, id) => found(actions.get(id))],
    [
      "POST",
      /^\/v1\/actions\/([^/]+)\/(?:approve|deny|withdraw|state)$/,
      (body, id, _, path) =>
        write(body, () => {
          const item = actions.get(id);
          const how = path.split("/").at(-1);
          const from = { approve: "awaiting_approval", deny: "awaiting_approval", state: "unknown" };
          if (how in from && item.state !== from[how])
            return problem(409, `This can no longer be decided: it is ${item.words}.`);
          const to = (state, words, more = {}) => {
            Object.assign(item, { state, words, moved_at: new Date(now()).toISOString() }, more);
            changed("action", id);
          };
          if (how === "deny") to("denied", "refused by the person", { reason: body.reason ?? null });
          else if (how === "withdraw") to("cancelled", "stopped before it was sent");
          else if (how === "approve") {
            const not_before = new Date(now() + item.undo_ms).toISOString();
            to("admitted", "about to be sent", { reason: null, not_before });
            later(item.undo_ms, () => {
              if (item.state === "admitted") to("effective", "in force", { receipt: "C-1" });
            });
          } else if (body.statement !== "keep_looking") {
            const yes = body.statement === "happened";
            to(yes ? "accepted" : "blocked", "settled", { authority: "user" });
          }
          return [200, item];
        }),
    ],
  ];
}
