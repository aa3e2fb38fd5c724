import assert from "node:assert/strict";
import test from "node:test";
import { dayWords, knownZone, leftWords, microOf, usdWords, whenWords } from "../src/clock.js";
import {
  codeInFragment,
  entryStateWords,
  heardWords,
  pickLang,
  planLines,
  tidyCode,
  WORDS,
} from "../src/words.js";

/** Every text of the page; functions are called with stand-in values. */
function texts(value: unknown, path: string): [string, string][] {
  if (typeof value === "string") return [[path, value]];
  if (typeof value === "function") return [[path, String(value("1", "2"))]];
  return Object.entries(value as object).flatMap(([key, part]) => texts(part, `${path}.${key}`));
}

test("both languages have every text, without exclamation marks, emoji or apologies", () => {
  const en = texts(WORDS.en, "");
  const zh = texts(WORDS.zh, "");
  assert.deepEqual(
    en.map(([path]) => path),
    zh.map(([path]) => path),
  );
  for (const [path, text] of [...en, ...zh]) {
    const bad =
      text === "" ||
      /[!！]|\p{Extended_Pictographic}|oops|sorry|successfully|抱歉|您|亲/iu.test(text);
    assert.deepEqual([path, bad], [path, false]);
  }
});

test("Chinese texts have a space between Han characters and Latin letters or digits", () => {
  for (const [path, text] of texts(WORDS.zh, "")) {
    const tight = /[\u4e00-\u9fff][A-Za-z0-9]|[A-Za-z0-9][\u4e00-\u9fff]/.test(text);
    assert.deepEqual([path, text, tight], [path, text, false]);
  }
});

test("buttons name the effect and fit: 22 letters or 10 Han characters", () => {
  const names = [
    "startYes",
    "startNo",
    "closeYes",
    "closeNo",
    "stopAsk",
    "stopKeep",
    "revokeYes",
    "revokeNo",
    "pairAnother",
    "pairAgain",
    "capEdit",
    "capYes",
    "capNo",
    "holdAll",
    "lift",
    "liftAll",
    "holdStop",
    "holdNot",
    "pauseDuty",
    "actRefuse",
    "actRefuseSaying",
    "actNeverMind",
    "actTakeBack",
    "actYes",
    "actNo",
    "actLook",
    "askAbout",
    "askNever",
  ] as const;
  for (const name of names) {
    assert.equal(WORDS.en[name].length <= 22 && WORDS.zh[name].length <= 10, true);
    assert.equal(/^(yes|no|ok|allow|approve|是|好|确定|允许)$/i.test(WORDS.en[name]), false);
  }
});

test("no state claims more than its record", () => {
  const never: Record<string, RegExp> = {
    received: /dealt with$|done|read\b/i,
    delivered: /dealt|done/i,
    read: /done/i,
    queued: /^sent|delivered/i,
    uncertain: /failed|retry|lost/i,
    sending: /^sent|delivered/i,
  };
  for (const [state, words] of Object.entries(never)) {
    const all = { ...WORDS.en.agentStates, ...WORDS.en.user } as Record<string, string>;
    const claim = state === "delivered" ? WORDS.en.user.delivered : (all[state] ?? "");
    const first = claim.split(" · ")[0] ?? "";
    assert.deepEqual([state, words.test(first)], [state, false]);
  }
});

test("the same word of state means different things for the two directions", () => {
  const base = { seq: 1, id: "m", text: "", at: "", duty: null, proposal: null, action: null, about: null, late: false };
  const say = (kind: "user" | "agent", state: "delivered") =>
    entryStateWords({ ...base, kind, state }, WORDS.en);
  assert.deepEqual(
    [say("user", "delivered"), say("agent", "delivered")],
    ["Handed to its session · not read yet", "Delivered"],
  );
  assert.equal(
    entryStateWords({ ...base, kind: "agent", state: "new" as "queued" }, WORDS.en),
    "new",
  );
});

test("a card names the whole call that a program makes, what is missed, and what is heard", () => {
  const given = '{"url":"https://example.org/a?q=1"}';
  const plan = {
    words: "",
    prompt: "",
    first: null,
    run_missed: "skip" as const,
    check: { tool: "web.fetch", arguments: given, words: "its answer has changed" },
  };
  assert.deepEqual(
    [planLines(plan, WORDS.en), planLines(plan, WORDS.zh)],
    [
      [
        "A time that is missed is left out",
        `Calls first: web.fetch with ${given}`,
        "Wakes only if: its answer has changed",
      ],
      [
        "错过的时间不补",
        `先调用：web.fetch，参数 ${given}`,
        "仅在此时唤醒：its answer has changed",
      ],
    ],
  );
  assert.deepEqual(planLines({ ...plan, run_missed: "once", check: null }, WORDS.en), []);
  const heard = { source: "bank", topic: "pay.*", mode: "background" as const, prompt: "", words: "" };
  assert.deepEqual(
    [heardWords(heard, WORDS.en), heardWords({ ...heard, topic: null, mode: "wake" }, WORDS.zh)],
    ["bank · pay.* · read along, wakes nobody", "bank · 全部主题"],
  );
});

test("times are the owner's, and a demo's own now decides what today is", () => {
  const now = Date.parse("2026-05-01T15:30:00Z");
  const at = (text: string, lang: "en" | "zh" = "en") =>
    whenWords(text, now, "Asia/Hong_Kong", lang);
  assert.deepEqual(
    [
      at("2026-05-01T15:45:00Z"),
      at("2026-05-01T16:00:00Z"),
      at("2026-05-01T16:00:00Z", "zh"),
      at("2026-05-04T01:00:00Z"),
      at("2026-05-04T01:00:00Z", "zh"),
      at("2025-05-04T01:00:00Z"),
    ],
    [
      "23:45",
      "tomorrow 00:00",
      "明天 00:00",
      "Mon 4 May 09:00",
      "5 月 4 日 周一 09:00",
      "Sun 4 May 2025 09:00",
    ],
  );
  assert.equal(dayWords(now, now, "UTC", "en"), "Fri 1 May");
  assert.equal(knownZone("Nowhere/Else"), "UTC");
});

test("what is left of a deadline, and nothing once it has passed", () => {
  const left = (minutes: number) => leftWords(minutes * 60_000, 0, "en");
  assert.deepEqual([-1, 0, 0.5, 59, 60, 47 * 60, 48 * 60].map(left), [
    "",
    "",
    "1 min left",
    "59 min left",
    "1 h left",
    "47 h left",
    "2 days left",
  ]);
  assert.equal(leftWords(3 * 3_600_000, 0, "zh"), "还剩 3 小时");
});

test("amounts keep what they cost", () => {
  assert.deepEqual([0, 1_234, 10_000, 1_250_000].map(usdWords), [
    "US$0.00",
    "US$0.0012",
    "US$0.01",
    "US$1.25",
  ]);
});

test("dollars are read as they are written, or not at all", () => {
  assert.deepEqual(
    ["30", " 2.50 ", "2,5", "0", "0.000001", "999999999"].map(microOf),
    [30_000_000, 2_500_000, 2_500_000, 0, 1, 999_999_999_000_000],
  );
  for (const none of ["", "-1", "1.2345678", "1e9", "US$3", "1.", ".5", "1,000.00"]) {
    assert.deepEqual([none, microOf(none)], [none, null]);
  }
});

test("codes and languages as people give them", () => {
  assert.deepEqual(
    [
      tidyCode("abcd efgh"),
      tidyCode("ABCD-EFG"),
      codeInFragment("#code=abcd-ef12"),
      codeInFragment("#/chat"),
      codeInFragment("#code=x"),
    ],
    ["ABCD-EFGH", null, "ABCD-EF12", null, null],
  );
  assert.deepEqual(
    [pickLang(["fr", "zh-Hant"]), pickLang(["en-GB", "zh"]), pickLang([])],
    ["zh", "en", "en"],
  );
});
