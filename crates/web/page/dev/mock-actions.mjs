// The stand-in server's outside effects: one that waits for the person, and one that nobody could find
// out about.

import { randomUUID } from "node:crypto";

/** By id. `at` gives the time so many hours after the start. */
export function makeActions(at, t) {
  const action = (more) => ({
    id: randomUUID(),
    duty: null,
    title: null,
    task_version: null,
    tool: "hotel.book",
    effect: "paid",
    tier: "r4",
    state: "awaiting_approval",
    words: t("Waiting for your decision", "等你决定"),
    what: "hotel.book for HKD 2 600.00 (hotel Harbour, guest Ann)",
    card: [
      { label: "hotel", value: "Harbour Plaza, Hong Kong" },
      { label: "nights", value: "2" },
      { label: "guest", value: "Ann Li" },
    ],
    amount: { minor: 260_000, currency: "HKD", text: "HKD 2 600.00" },
    recipients: [],
    digest: "9f31c07ab2".repeat(6),
    template: "action-2 en",
    reason: t("No grant of yours covers it.", "没有你的授权覆盖它。"),
    expires_at: at(9),
    if_nothing: t(
      "Nothing is done. The question ends on Monday 2026-11-30 18:00.",
      "不会执行。这个问题于 2026-11-30 星期一 18:00 到期作废。",
    ),
    afterwards: t(
      "It is sent 5 s later; until then you can take it back. After that it can be undone by an action of its own, if at all.",
      "5 秒后发出，在此之前可以撤回。发出之后只能用另一项操作撤销，也可能无法撤销。",
    ),
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
    asked: ["user"],
    attempts: [],
    seq: 100,
    ...more,
  });
  const said = {
    granted: t("Released", "已放行"),
    consumed: t("Released and used", "已放行并使用"),
    requested: t("Asked", "已提出"),
  };
  const approval = (of, state, device_name) => ({
    id: randomUUID(),
    state,
    words: said[state],
    of,
    by: state === "requested" ? null : of,
    device: null,
    device_name,
    reason: null,
    template: "action-2 en",
    shown: state === "requested" ? null : "action-2 en",
    until_at: at(9),
    moved_at: at(0.9),
  });
  return new Map(
    [
      action({}),
      action({
        state: "authorized",
        words: t("Released, not sent yet", "已放行，尚未发出"),
        reason: t("the supervisor has not approved it; they decide on their own device", "主管尚未批准，主管在自己的设备上决定"),
        if_nothing: t("It is sent as soon as nothing holds it back.", "一旦没有阻碍就会发出。"),
        asked: ["supervisor"],
        approvals: [approval("user", "granted", "Firefox"), approval("supervisor", "requested", null)],
      }),
      action({
        state: "effective",
        words: t("In force · verified", "已生效 · 已核实"),
        reason: null,
        receipt: "C-7",
        asked: [],
        approvals: [approval("user", "consumed", "Firefox"), approval("supervisor", "consumed", "boss")],
      }),
      action({
        state: "unknown",
        words: t("Still unknown · it may or may not have happened", "仍无法确认 · 可能发生了，也可能没有"),
        reason: t("no answer came within 5000 ms", "5000 毫秒内没有答复"),
        if_nothing: t("It is looked up again and again. It is not sent again.", "会反复核对，不会再次提交。"),
        afterwards: t("Your word settles it; evidence against it opens it again.", "以你说的为准；若有相反的证据会重新核对。"),
        escalated_at: at(0.95),
        expires_at: at(-20),
        attempts: [
          {
            n: 1,
            operation_id: randomUUID(),
            state: "unknown",
            words: t("Outcome being checked", "结果核对中"),
            reason: t("no answer came within 5000 ms", "5000 毫秒内没有答复"),
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
export function actionRoutes(actions, { now, later, changed, write, problem, found, seq, t }) {
  return [
    [
      "GET",
      /^\/v1\/decisions$/,
      () => [
        200,
        {
          classes: [
            { tool: "hotel.book", shown: 14, approved: 12, edited: 1, refused: 1, expired: 0, open: 1, median_seconds: 9 },
            { tool: "mail.send", shown: 3, approved: 1, edited: 0, refused: 1, expired: 1, open: 0, median_seconds: 41 },
          ],
        },
      ],
    ],
    ["GET", /^\/v1\/actions$/, () => [200, { actions: [...actions.values()].reverse(), seq: seq() }]],
    ["GET", /^\/v1\/actions\/([^/]+)$/, (_, id) => found(actions.get(id))],
    [
      "POST",
      /^\/v1\/actions\/([^/]+)\/(?:approve|deny|withdraw|state)$/,
      (body, id, _, path) =>
        write(body, () => {
          const item = actions.get(id);
          const how = path.split("/").at(-1);
          // STALE=1: the first release comes too late, and a newer card has taken its place.
          if (how === "approve" && process.env.STALE === "1" && item.digest.startsWith("9f31")) {
            const newer = { ...item, id: randomUUID(), digest: "77aa01bc".repeat(8) };
            newer.amount = { minor: 292_000, currency: "HKD", text: "HKD 2 920.00" };
            actions.set(newer.id, newer);
            Object.assign(item, {
              state: "superseded",
              words: t("No longer applies · nothing sent", "已不适用 · 未发出"),
            });
            changed("action", id);
            changed("action", newer.id);
            const changes = [
              t("Amount: HKD 2 600.00 becomes HKD 2 920.00", "金额：由 HKD 2 600.00 改为 HKD 2 920.00"),
              t("nights: 2 becomes 3", "nights：由 2 改为 3"),
            ];
            const detail = t(
              "This can no longer be decided: it is no longer wanted, nothing happened. A newer card has taken its place.",
              "已不能再决定：已不需要，没有发生。已有新的卡片代替它。",
            );
            return problem(409, detail, { stale: { changes, card: newer } });
          }
          const from = { approve: "awaiting_approval", deny: "awaiting_approval", state: "unknown" };
          if (how in from && item.state !== from[how])
            return problem(409, `This can no longer be decided: it is ${item.words}.`);
          const to = (state, words, more = {}) => {
            Object.assign(item, { state, words, moved_at: new Date(now()).toISOString() }, more);
            changed("action", id);
          };
          if (how === "deny") to("denied", t("You said no · nothing sent", "你已否决 · 未发出"), { reason: body.reason ?? null });
          else if (how === "withdraw") to("cancelled", t("Stopped in time · not sent", "及时停下 · 没有发出"));
          else if (how === "approve") {
            const not_before = new Date(now() + item.undo_ms).toISOString();
            to("admitted", t("About to be sent", "即将发出"), { reason: null, not_before });
            later(item.undo_ms, () => {
              if (item.state === "admitted") to("effective", t("In force · verified", "已生效 · 已核实"), { receipt: "C-1" });
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
