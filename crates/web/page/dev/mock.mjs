// A stand-in server for work on the page: the contract's shapes, state in memory, and a plug that
// closes every connection for a moment. Usage: npm run build && npm run mock, then open the
// address. Options by environment: PORT, NOW (start of the clock), SPEED, DEMO=0, DONE=1,
// LANG_ZH=1.

import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { randomUUID } from "node:crypto";
import { extname, join, normalize } from "node:path";
import { actionRoutes, makeActions } from "./mock-actions.mjs";

const env = process.env;
const port = Number(env.PORT ?? 7178);
const dist = env.DIST ?? new URL("../dist", import.meta.url).pathname;
const zh = env.LANG_ZH === "1";
const demoOn = env.DEMO !== "0";
const OUTAGE_MS = 1500;
const HOUR = 3_600_000;
const start = Date.parse(env.NOW ?? "2026-11-30T01:00:00Z");
const booted = Date.now();
const now = () => start + (Date.now() - booted) * Number(env.SPEED ?? 60);
const at = (hours) => new Date(start + hours * HOUR).toISOString();
const t = (english, chinese) => (zh ? chinese : english);

let seq = 100;
let cap = 10_000_000;
const device = (name, hours, mine, revoked = null) => ({
  id: randomUUID(),
  name,
  created_at: at(hours),
  revoked_at: revoked,
  this: mine,
  of: name === "boss" ? "supervisor" : "user",
});
const devices = [
  device("command line", -90, false),
  device("boss", -80, false),
  device("Firefox · Linux", -89, true),
  device(t("Lost phone", "丢失的手机"), -60, false, at(-5)),
];
let plugs = 3;
const changes = [];
const listeners = new Set();
const answers = new Map();
const [rent, flight, parcel, old, wifi] = Array.from({ length: 5 }, () => randomUUID());
const card = randomUUID();
const condition = {
  text: t("The landlord has confirmed the repair in writing", "房东书面确认已修好"),
  evidence: t("his mail", "他的邮件"),
  authority: t("you", "你"),
};
const duty = (id, title, more) => ({
  id,
  title,
  state: "active",
  version: 1,
  goal: title,
  conditions: [condition],
  created_at: at(-50),
  next_wake: null,
  waits: [],
  schedules: [],
  ends_at: null,
  pause: null,
  subscriptions: [],
  situations: [],
  grants: [],
  runs: [],
  spent_micro_usd: 41_300,
  state_line: "",
  ...more,
});
const run = (hours, state) => ({
  id: randomUUID(),
  state,
  started_at: at(hours),
  ended_at: state === "running" ? null : at(hours + 0.02),
  steps: 4,
  input_tokens: 8_214,
  output_tokens: 312,
  micro_usd: 5_120,
});
const wait = (kind, key, due) => ({ id: randomUUID(), kind, key, due_at: at(due), state: "open" });
const plan = (words, next, late) => ({
  id: randomUUID(),
  words,
  prompt: t("Look at the fare and compare it with the limit.", "查票价并与限额比较。"),
  next_slot: at(next),
  state: "active",
  late_last: late,
  check: late ? { looked: 14, woke: 1, failed: 0, last: at(0), state: "unchanged" } : null,
});
const duties = new Map(
  [
    duty(flight, t("Watch the Tokyo fare", "盯住东京机票价"), {
      goal: t(
        "Tell me when the return fare to Tokyo falls below HK$2,400, before 20 December.",
        "往返东京票价低于 HK$2,400 时告诉我，12 月 20 日前。",
      ),
      state_line: t("Checked 09:00 · nothing new", "09:00 看过 · 无变化"),
      next_wake: at(24),
      schedules: [plan(t("Every day at 09:00", "每天 09:00"), 24, true)],
      runs: [run(0, "completed"), run(-24, "completed"), run(-48, "interrupted")],
    }),
    duty(rent, t("Get the heating repaired", "催修暖气"), {
      state_line: t(
        "Waiting for Ms Lau's reply · follow-up Thu 10:00",
        "等刘女士回复 · 周四 10:00 跟进",
      ),
      next_wake: at(73),
      waits: [wait(t("reply", "回复"), "lau@example.org", 73)],
      runs: [run(-5, "completed")],
    }),
    duty(parcel, t("Follow the parcel from Lyon", "跟踪里昂来的包裹"), {
      state_line: t("Reading the tracking page · since 09:58", "正在读物流页面 · 始于 09:58"),
      subscriptions: [
        {
          id: randomUUID(),
          source: randomUUID(),
          name: "shop",
          topic: "parcel.*",
          mode: "wake",
          prompt: t("Say where the parcel is now.", "说明包裹现在在哪里。"),
          until_at: null,
          state: "active",
        },
      ],
      situations: [
        {
          id: randomUUID(),
          event: null,
          matter: t("Customs form for the parcel", "包裹的报关单"),
          taken_on_by: t("the carrier", "承运方"),
          words: t("Taken on by the carrier; not done", "承运方已承接，尚未完成"),
          due_at: at(26),
          created_at: at(-2),
        },
      ],
      runs: [run(0.9, "running")],
    }),
    duty(old, t("Renew the library books", "续借图书"), {
      state: "stopped",
      state_line: t("Stopped by you", "你已停止"),
    }),
    duty(wifi, t("Ask about the router", "问路由器的事"), {
      state: "closed",
      state_line: t("Closed · you agreed", "已结束 · 你已同意"),
    }),
  ].map((item) => [item.id, item]),
);
const event = randomUUID();
const source = (name, kind, more) => ({
  id: randomUUID(),
  name,
  kind,
  config: null,
  address: null,
  secret: kind === "webhook" ? "kept" : null,
  every_ms: kind === "webhook" ? null : 300_000,
  expect_ms: null,
  received_at: at(0.2),
  silent: false,
  refused: 0,
  refused_at: null,
  looked_at: kind === "webhook" ? null : at(0.9),
  next_look_at: kind === "webhook" ? null : at(1),
  failures: 0,
  last_event: null,
  duties: [],
  created_at: at(-90),
  ...more,
});
const sources = [
  source("shop", "webhook", { refused: 3, refused_at: at(-3), last_event: event }),
  source("inbox", "folder", { received_at: null }),
  source("news", "feed", { failures: 2, silent: true, received_at: at(-70) }),
];
const trace = {
  event: {
    id: event,
    kind: "webhook",
    external_id: "msg_2LzQ7",
    topic: "parcel.moved",
    key: "shop:LY-204",
    trust: "outside",
    excerpt: '{"type":"parcel.moved","data":{"parcel":"LY-204","place":"Paris CDG"}}',
    received_at: at(0.2),
    late: false,
    disposition: null,
    handled_at: null,
  },
  source: { id: sources[0].id, name: "shop", kind: "webhook" },
  origin: null,
  links: [
    {
      how: "subscription",
      record: randomUUID(),
      session: randomUUID(),
      duty: parcel,
      title: t("Follow the parcel from Lyon", "跟踪里昂来的包裹"),
      at: at(0.2),
    },
  ],
  attribution: null,
  related: [],
  work_item: {
    id: randomUUID(),
    state: "claimed",
    class: "external",
    session: randomUUID(),
    attempts: 0,
    received_at: at(0.2),
    delivered_at: at(0.21),
    read_at: at(0.21),
    done_at: null,
  },
  runs: [
    {
      id: randomUUID(),
      duty: parcel,
      state: "running",
      reason: null,
      started_at: at(0.21),
      ended_at: null,
      messages: [
        {
          id: randomUUID(),
          state: "delivered",
          text: t("The parcel has left Paris.", "包裹已离开巴黎。"),
          at: at(0.22),
        },
      ],
    },
  ],
  proactive: null,
  hold: null,
  words: [],
};
const control = { system_stop: false, pauses: [], holds: [], dial: "observe" };
function coverDuties() {
  const all = control.pauses.find((one) => one.duty === null);
  for (const item of duties.values()) {
    const own = control.pauses.find((one) => one.duty === item.id) ?? all;
    item.pause = own === undefined ? null : { id: own.id, everything: own.duty === null };
  }
}
function pause(duty, by) {
  const id = randomUUID();
  const title = duty === null ? null : duties.get(duty).title;
  control.pauses.push({ id, duty, title, by, created_at: new Date(now()).toISOString() });
  coverDuties();
  changed("pause", id);
  return id;
}
if (env.HELD === "1") {
  control.holds.push({
    id: randomUUID(),
    event: randomUUID(),
    text: t("Wait, not the landlord again", "等一下，先别再找房东"),
    verdict: "not_a_stop",
    asked_at: at(0.95),
    created_at: at(0.9),
  });
}
const proposals = new Map([
  [
    card,
    {
      id: card,
      kind: "new_duty",
      duty: null,
      title: t("Remind me of the deposit", "提醒我交押金"),
      goal: t(
        "Remind you on the mornings of 3 and 4 December until you say that the deposit is paid.",
        "12 月 3 日和 4 日早上提醒你，直到你说押金已付。",
      ),
      conditions: [
        {
          text: t("You say that it is paid", "你说已付"),
          evidence: t("your message", "你的消息"),
          authority: t("you", "你"),
        },
      ],
      schedules: [
        {
          words: t("Daily at 08:30", "每天 08:30"),
          prompt: t("Say that the deposit is still open.", "告诉对方押金还没交。"),
          first: at(71.5),
          run_missed: "skip",
          check: {
            tool: "web.fetch",
            arguments: '{"url":"https://bank.example.org/deposit"}',
            words: t(
              'its answer of web.fetch {"url":"https://bank.example.org/deposit"} has changed',
              'web.fetch {"url":"https://bank.example.org/deposit"} 的答复有变化',
            ),
          },
        },
      ],
      subscriptions: [
        {
          source: "bank",
          topic: "payment.*",
          mode: "background",
          prompt: t("Note whether the deposit was paid.", "记下押金是否已付。"),
          words: t("events of bank (payment.*), only read along", "来自 bank 的事件（payment.*），只顺带读取"),
        },
      ],
      grants: [],
      reach: t("At most 2 wake-ups, until Friday 2026-12-04 09:00", "最多：唤醒 2 次，到 2026-12-04 星期五 09:00 为止"),
      changes: [],
      ends_at: at(96),
      until: at(9),
      why: t(
        "A duty wakes up by itself, so it starts only if you agree.",
        "事务会自行唤醒，所以要你同意才会开始。",
      ),
      if_nothing: t("Nothing is started; the question ends.", "不会开始；这个问题到期作废。"),
      afterwards: t("You can stop it under Duties at any time.", "随时可以在“事务”里停止。"),
      digest: "sha256:9f31c07ab2",
      state: "open",
      words: t("Waiting for your decision", "等你决定"),
      created_at: at(0.8),
    },
  ],
]);
const entries = [];
const say = (kind, text, hours, state, more = {}) => {
  seq += 1;
  entries.push({
    seq,
    kind,
    id: randomUUID(),
    text,
    at: at(hours),
    state,
    duty: null,
    proposal: null,
    action: null,
    about: null,
    late: false,
    ...more,
  });
};
say(
  "user",
  t(
    "Please watch the return fare to Tokyo and tell me when it falls below HK$2,400.",
    "帮我盯一下往返东京的机票，低于 HK$2,400 就告诉我。",
  ),
  -49,
  "handled",
);
say(
  "agent",
  t(
    "I look once a day at 09:00 and write only when the fare is below HK$2,400, or the page stops.",
    "我每天 09:00 看一次。低于 HK$2,400，或者查询页面打不开时，才会告诉你。",
  ),
  -48.9,
  "delivered",
  { duty: flight },
);
say(
  "notice",
  t(
    "The power was gone from 22:10 to 06:40. The check of 22:30 was made at 06:41.",
    "22:10 到 06:40 没有运行。22:30 的检查在 06:41 补做。",
  ),
  -2.3,
  "delivered",
  { late: true },
);
say(
  "agent",
  t(
    "I asked Ms Lau for a date for the heating. I will ask again on Thursday at 10:00.",
    "我已向刘女士询问修暖气的日期。如果没有答复，周四 10:00 再跟进。",
  ),
  -2,
  "uncertain",
  { duty: rent },
);
say("user", t("Remind me of the deposit on the 3rd.", "3 号提醒我交押金。"), 0.7, "read");
say(
  "agent",
  t("I have drawn this up. It starts only if you agree.", "已拟好，你同意才开始。"),
  0.8,
  "queued",
  { proposal: card },
);

const actions = makeActions(at, t);
for (const item of actions.values()) {
  say("notice", item.what, 0.95, "queued", { action: item.id });
}

function changed(noun, id) {
  seq += 1;
  changes.push({ seq, noun, id });
  for (const stream of listeners) stream.write(`event: changed\ndata: {"seq":${seq}}\n\n`);
}

function later(ms, step) {
  setTimeout(() => {
    if (server.listening) step();
    else later(200, step);
  }, ms);
}

function move(entry, states) {
  states.forEach((state, step) =>
    later(700 * (step + 1), () => {
      entry.state = state;
      changed("message", entry.id);
    }),
  );
}

const demo = () => {
  const done = env.DONE === "1";
  const day = done ? 14 : 3;
  return {
    day,
    of_days: 14,
    virtual_now: new Date(now()).toISOString(),
    plugs,
    done,
    story: t(
      "The fare is checked every morning; the landlord has not answered yet.",
      "每天早上查票价；房东还没有答复。",
    ),
    summary: done
      ? { wakeups: 61, model_calls: 148, messages: 23, plugs, lost: 0, doubled: 0 }
      : null,
  };
};
const problem = (status, detail, more = {}) => [
  status,
  { type: "about:blank", title: `HTTP ${status}`, status, detail, ...more },
];

function write(body, act) {
  const known = answers.get(body.id);
  const content = JSON.stringify(body);
  if (known)
    return known.content === content
      ? [200, known.answer]
      : problem(409, "This id was used with other content.");
  const [status, answer] = act();
  if (status < 300) answers.set(body.id, { content, answer });
  return [status, answer];
}

const routes = [
  [
    "GET",
    /^\/health$/,
    () => [
      200,
      { ok: true, version: "mock", engine: "sqlite", seq, now: new Date(now()).toISOString() },
    ],
  ],
  [
    "POST",
    /^\/v1\/pair$/,
    (body) =>
      body.code === "ABCD-EFGH"
        ? [201, { device: randomUUID(), token: "mock", owner: randomUUID() }]
        : problem(403, "Ask for a new code."),
  ],
  [
    "GET",
    /^\/v1\/me$/,
    () => [
      200,
      {
        owner: randomUUID(),
        of: "user",
        name: "Mo",
        zone: "Asia/Hong_Kong",
        language: zh ? "zh" : "en",
        device: randomUUID(),
        seq,
        month: {
          model_calls: 148,
          wakeups: 61,
          input_tokens: 512_338,
          cached_tokens: 402_120,
          output_tokens: 20_415,
          micro_usd: 1_243_000,
          cap_micro_usd: cap,
        },
        now: new Date(now()).toISOString(),
        demo: demoOn,
      },
    ],
  ],
  [
    "POST",
    /^\/v1\/owner$/,
    (body) =>
      write(body, () => {
        cap = body.month_cap_micro_usd;
        changed("owner", randomUUID());
        return [200, { seq }];
      }),
  ],
  [
    "POST",
    /^\/v1\/codes$/,
    () => {
      const link = `http://127.0.0.1:${port}/#code=K7PM-Q3XT`;
      const expires_at = new Date(now() + 15 * 60_000).toISOString();
      return [201, { code: "K7PM-Q3XT", link, expires_at }];
    },
  ],
  ["GET", /^\/v1\/devices$/, () => [200, { devices }]],
  [
    "POST",
    /^\/v1\/devices\/([^/]+)\/revoke$/,
    (body, id) =>
      write(body, () => {
        const item = devices.find((other) => other.id === id);
        item.revoked_at ??= new Date(now()).toISOString();
        changed("device", id);
        return [200, { id, revoked_at: item.revoked_at, seq }];
      }),
  ],
  [
    "POST",
    /^\/v1\/messages$/,
    (body) =>
      write(body, () => {
        const about = body.about ?? null;
        say("user", body.text, (now() - start) / HOUR, "received", { about });
        const entry = entries.at(-1);
        changed("message", entry.id);
        move(entry, ["delivered", "read", "handled"]);
        later(2500, () => {
          say(
            "agent",
            t("Noted. I will keep it with the matter.", "记下了。"),
            (now() - start) / HOUR,
            "queued",
          );
          changed("message", entries.at(-1).id);
        });
        return [202, { event: entry.id, seq }];
      }),
  ],
  [
    "GET",
    /^\/v1\/chat$/,
    (_, __, query) => {
      const before = Number(query.get("before") ?? Infinity);
      return [200, { entries: entries.filter((entry) => entry.seq < before), seq, more: false }];
    },
  ],
  ["GET", /^\/v1\/chat\/(.+)$/, (_, id) => found(entries.find((entry) => entry.id === id))],
  [
    "POST",
    /^\/v1\/receipts$/,
    (body) =>
      write(body, () => {
        for (const entry of entries) {
          if (body.messages.includes(entry.id) && entry.state === "queued") {
            entry.state = "delivered";
            changed("message", entry.id);
          }
        }
        return [200, { seq }];
      }),
  ],
  [
    "GET",
    /^\/v1\/changes$/,
    (_, __, query) => [
      200,
      {
        changes: changes.filter((change) => change.seq > Number(query.get("after"))),
        seq,
        more: false,
      },
    ],
  ],
  ["GET", /^\/v1\/duties$/, () => [200, { duties: [...duties.values()] }]],
  ["GET", /^\/v1\/duties\/([^/]+)$/, (_, id) => found(duties.get(id))],
  [
    "POST",
    /^\/v1\/duties\/([^/]+)\/(?:stop|resume)$/,
    (body, id, _, path) =>
      write(body, () => {
        const item = duties.get(id);
        item.state = path.endsWith("stop") ? "stopped" : "active";
        item.state_line = path.endsWith("stop")
          ? t("Stopped by you", "你已停止")
          : t("Quiet", "安静");
        changed("duty", id);
        return [200, item];
      }),
  ],
  [
    "GET",
    /^\/v1\/proposals$/,
    () => [200, { proposals: [...proposals.values()].filter((item) => item.state === "open") }],
  ],
  ["GET", /^\/v1\/proposals\/([^/]+)$/, (_, id) => found(proposals.get(id))],
  [
    "POST",
    /^\/v1\/proposals\/([^/]+)\/(?:confirm|decline)$/,
    (body, id, _, path) =>
      write(body, () => {
        const item = proposals.get(id);
        if (item.state !== "open") return problem(409, "Decided before.");
        if (path.endsWith("confirm") && body.digest !== item.digest)
          return problem(409, "The terms changed.");
        item.state = path.endsWith("confirm") ? "confirmed" : "declined";
        item.words = path.endsWith("confirm")
          ? t("You agreed · the duty has started", "你已同意 · 事务已开始")
          : t("You said no · nothing started", "你已否决 · 没有开始");
        changed("proposal", id);
        return [200, item];
      }),
  ],
  ...actionRoutes(actions, { now, later, changed, write, problem, found: (one) => found(one), seq: () => seq, t }),
  ["GET", /^\/v1\/control$/, () => [200, { ...control, seq }]],
  [
    "POST",
    /^\/v1\/pauses$/,
    (body) =>
      write(body, () => {
        const id = pause(body.duty ?? null, "user");
        control.holds = [];
        return [200, { pause: id, duty: body.duty ?? null, seq }];
      }),
  ],
  [
    "POST",
    /^\/v1\/pauses\/([^/]+)\/lift$/,
    (body, id) =>
      write(body, () => {
        control.pauses = control.pauses.filter((one) => one.id !== id);
        coverDuties();
        changed("pause", id);
        return [200, { pause: id, seq }];
      }),
  ],
  [
    "POST",
    /^\/v1\/holds\/([^/]+)\/(?:release|promote)$/,
    (body, id, _, path) =>
      write(body, () => {
        control.holds = control.holds.filter((one) => one.id !== id);
        if (path.endsWith("promote")) pause(null, "user");
        changed("hold", id);
        return [200, { hold: id, seq }];
      }),
  ],
  ["GET", /^\/v1\/sources$/, () => [200, { sources, unknown: { refused: 0, refused_at: null } }]],
  ["GET", /^\/v1\/events\/([^/]+)$/, (_, id) => found(id === event ? trace : null)],
  ["GET", /^\/v1\/demo$/, () => (demoOn ? [200, demo()] : problem(404, "Not a demo."))],
];
const found = (record) => (record ? [200, record] : problem(404, "No such record."));

const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".webmanifest": "application/manifest+json",
};
// The same policy as page.rs, so that a breach shows during development.
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join("; ");

function file(path, response) {
  try {
    const name = path === "/" ? "/index.html" : normalize(path);
    const bytes = readFileSync(join(dist, name));
    response
      .writeHead(200, {
        "content-type": TYPES[extname(name)] ?? "application/octet-stream",
        "content-security-policy": POLICY,
        "cache-control": "no-store",
      })
      .end(bytes);
  } catch {
    response.writeHead(404).end();
  }
}

function pullPlug(response) {
  plugs += 1;
  response.writeHead(202, { "content-type": "application/json" }).end("{}");
  setTimeout(() => {
    server.close();
    server.closeAllConnections();
    listeners.clear();
    setTimeout(() => server.listen(port, "127.0.0.1"), OUTAGE_MS);
  }, 20);
}

const server = createServer((request, response) => {
  let text = "";
  request.on("data", (piece) => {
    text += piece;
  });
  request.on("end", () => {
    const url = new URL(request.url, "http://localhost");
    const path = url.pathname;
    if (!path.startsWith("/v1/") && path !== "/health") return file(path, response);
    if (
      path !== "/v1/pair" &&
      path !== "/health" &&
      request.headers.authorization !== "Bearer mock"
    ) {
      return reply(response, problem(401, "Pair this device."));
    }
    if (path === "/v1/demo/plug") return pullPlug(response);
    if (path === "/v1/stream") {
      response.writeHead(200, { "content-type": "text/event-stream" }).write(": here\n\n");
      listeners.add(response);
      return response.on("close", () => listeners.delete(response));
    }
    for (const [method, pattern, act] of routes) {
      const match = pattern.exec(path);
      if (match && method === request.method) {
        return reply(
          response,
          act(text === "" ? {} : JSON.parse(text), match[1], url.searchParams, path),
        );
      }
    }
    reply(response, problem(404, "No such path."));
  });
});

function reply(response, [status, body]) {
  const type = status < 400 ? "application/json" : "application/problem+json";
  response.writeHead(status, { "content-type": type }).end(JSON.stringify(body));
}

server.listen(port, "127.0.0.1", () => console.log(`http://127.0.0.1:${port}/#code=ABCD-EFGH`));
