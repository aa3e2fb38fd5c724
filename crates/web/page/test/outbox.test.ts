import assert from "node:assert/strict";
import test from "node:test";
import * as box from "../src/outbox.js";

const empty: box.Outbox = { device: "d1", items: [] };
const with2 = () => box.addMessage(box.addMessage(empty, "m1", "one", "t1"), "m2", "two", "t2");

test("messages go in order and stops go first", () => {
  assert.equal(box.nextToSend(empty), null);
  let outbox = with2();
  assert.equal(box.nextToSend(outbox)?.id, "m1");
  outbox = box.addStop(outbox, "s1", "duty", "t3");
  assert.equal(box.nextToSend(outbox)?.id, "s1");
  assert.deepEqual(box.addStop(outbox, "s2", "duty", "t4"), outbox);
  outbox = box.markSent(box.remove(outbox, "s1"), "m1", "e1");
  assert.equal(box.nextToSend(outbox)?.id, "m2");
  outbox = box.markRefused(outbox, "m2", "too long");
  assert.equal(box.nextToSend(outbox), null);
});

test("a try without an answer goes again as the same item", () => {
  const tried = box.read(box.write(box.markTried(with2(), "m1")), "d1");
  const next = box.nextToSend(tried);
  assert.deepEqual(next, {
    kind: "message",
    id: "m1",
    text: "one",
    at: "t1",
    state: "waiting",
    tried: true,
    event: null,
    why: null,
  });
});

test("a question keeps the card that it asks about, through storage and a new pairing", () => {
  const about = { action: "a1" };
  const asked = box.addMessage(empty, "m1", "why?", "t1", about);
  const kept = box.adopt(box.read(box.write(asked), "d1"), "d2", "").items[0];
  assert.deepEqual(kept?.kind === "message" ? kept.about : null, about);
});

test("a sent message leaves when its record is in view, under either id, and not before", () => {
  const sent = box.markSent(with2(), "m1", "e1");
  assert.equal(box.settle(sent, new Set(["m2", "other"])), sent);
  for (const id of ["m1", "e1"]) {
    assert.deepEqual(
      box.settle(sent, new Set([id])).items.map((item) => item.id),
      ["m2"],
    );
  }
});

test("the text limit counts bytes, and the outbox is bounded", () => {
  assert.deepEqual(
    ["", "a".repeat(32_000), "a".repeat(32_001), "汉".repeat(10_667)].map(box.textFits),
    [false, true, false, false],
  );
  let outbox = empty;
  for (let at = 0; at < 201; at += 1) outbox = box.addMessage(outbox, `m${at}`, "x", "t");
  assert.equal(outbox.items.length, box.OUTBOX_ITEMS_MAX);
});

test("a new pairing sends what never left and asks about what may have arrived", () => {
  const before = box.markTried(box.addStop(with2(), "s1", "duty", "t"), "m1");
  const after = box.adopt(
    box.markSent(box.addMessage(before, "m3", "x", "t"), "m3", "e3"),
    "d2",
    "why",
  );
  assert.equal(after.device, "d2");
  assert.deepEqual(
    after.items.map((item) => [item.id, item.kind === "message" ? item.state : "stop"]),
    [
      ["m1", "refused"],
      ["m2", "waiting"],
      ["s1", "stop"],
    ],
  );
  assert.equal(box.adopt(after, "d2", "why"), after);
});

test("damaged or foreign storage is an empty outbox, damaged items are left out", () => {
  for (const text of [null, "", "{", "[]", '{"v":2,"device":"d","items":[]}']) {
    assert.deepEqual(box.read(text, "d1"), empty);
  }
  const mixed = JSON.stringify({
    v: 1,
    device: "d1",
    items: [{ kind: "message" }, null, with2().items[0]],
  });
  assert.deepEqual(
    box.read(mixed, "d1").items.map((item) => item.id),
    ["m1"],
  );
});

test("only an answer that would come again is final", () => {
  assert.deepEqual(
    [400, 401, 404, 408, 409, 413, 429, 500, 503].filter(box.isFinalRefusal),
    [400, 404, 409, 413],
  );
});

test("a pause of everything goes before messages, once, and is kept over a restart", () => {
  const said = box.addMessage({ device: "d", items: [] }, "m1", "hello", "");
  const held = box.addPause(box.addPause(said, "p1", null, ""), "p2", null, "");
  assert.deepEqual([held.items.length, box.nextToSend(held)?.id], [2, "p1"]);
  assert.deepEqual([box.isPausing(held, null), box.isPausing(held, "duty")], [true, false]);
  const again = box.read(box.write(held), "d");
  assert.deepEqual(again, held);
  assert.equal(box.isPausing(box.adopt(again, "other", "why"), null), true);
});
