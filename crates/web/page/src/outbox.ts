// What this device still has to tell the server: messages, and stops of duties and actions. Each item has an id
// made here, so that sending again after a broken connection is safe. Approvals are never queued.
// Pure: the caller keeps the text of `write` in the browser's storage and does the sending.

import type { About } from "./types.js";

export type Item =
  | {
      kind: "message";
      id: string;
      text: string;
      /** The card that it asks about. */
      about?: About;
      at: string;
      state: "waiting" | "sent" | "refused";
      tried: boolean;
      event: string | null;
      why: string | null;
    }
  | { kind: "stop"; id: string; duty: string; at: string; tried: boolean }
  | { kind: "pause"; id: string; duty: string | null; at: string; tried: boolean }
  | { kind: "withdraw"; id: string; action: string; at: string; tried: boolean };

export type MessageItem = Extract<Item, { kind: "message" }>;

export interface Outbox {
  /** The device the items were written on; a new pairing is a new device. */
  device: string;
  items: Item[];
}

/** Items one device may hold back; after that the composer says so and keeps the text. */
export const OUTBOX_ITEMS_MAX = 200;
/** The contract's limit for one message, in bytes of UTF-8. */
export const TEXT_BYTES_MAX = 32_000;

export function textFits(text: string): boolean {
  const bytes = new TextEncoder().encode(text).length;
  return bytes >= 1 && bytes <= TEXT_BYTES_MAX;
}

export function addMessage(
  outbox: Outbox,
  id: string,
  text: string,
  at: string,
  about: About | null = null,
): Outbox {
  if (outbox.items.length >= OUTBOX_ITEMS_MAX || !textFits(text)) return outbox;
  const item: Item = {
    kind: "message",
    id,
    text,
    at,
    state: "waiting",
    tried: false,
    event: null,
    why: null,
    ...(about === null ? {} : { about }),
  };
  return { ...outbox, items: [...outbox.items, item] };
}

/** A second stop of the same duty is the same stop. */
export function addStop(outbox: Outbox, id: string, duty: string, at: string): Outbox {
  if (isStopping(outbox, duty)) return outbox;
  return { ...outbox, items: [...outbox.items, { kind: "stop", id, duty, at, tried: false }] };
}

export function isStopping(outbox: Outbox, duty: string): boolean {
  return outbox.items.some((item) => item.kind === "stop" && item.duty === duty);
}

/** A pause of one duty, or of everything; asked twice it is the same pause. */
export function addPause(
  outbox: Outbox,
  id: string,
  duty: string | null,
  at: string,
): Outbox {
  if (isPausing(outbox, duty)) return outbox;
  return { ...outbox, items: [...outbox.items, { kind: "pause", id, duty, at, tried: false }] };
}

export function isPausing(outbox: Outbox, duty: string | null): boolean {
  return outbox.items.some((item) => item.kind === "pause" && item.duty === duty);
}

/** Taking an action back is a stop of that action; asked twice it is the same. */
export function addWithdraw(outbox: Outbox, id: string, action: string, at: string): Outbox {
  if (isTakingBack(outbox, action)) return outbox;
  return { ...outbox, items: [...outbox.items, { kind: "withdraw", id, action, at, tried: false }] };
}

export function isTakingBack(outbox: Outbox, action: string): boolean {
  return outbox.items.some((item) => item.kind === "withdraw" && item.action === action);
}

/** Stops and pauses go first; messages in the order they were written, one at a time. */
export function nextToSend(outbox: Outbox): Item | null {
  const stop = outbox.items.find((item) => item.kind !== "message");
  if (stop) return stop;
  return outbox.items.find((item) => item.kind === "message" && item.state === "waiting") ?? null;
}

function change(outbox: Outbox, id: string, patch: Partial<MessageItem>): Outbox {
  const items = outbox.items.map((item) =>
    item.id === id ? ({ ...item, ...patch } as Item) : item,
  );
  return { ...outbox, items };
}

/** Written down before the request leaves: from here on it may have arrived. */
export function markTried(outbox: Outbox, id: string): Outbox {
  return change(outbox, id, { tried: true });
}

export function markSent(outbox: Outbox, id: string, event: string): Outbox {
  return change(outbox, id, { state: "sent", event });
}

export function markRefused(outbox: Outbox, id: string, why: string): Outbox {
  return change(outbox, id, { state: "refused", why });
}

export function remove(outbox: Outbox, id: string): Outbox {
  return { ...outbox, items: outbox.items.filter((item) => item.id !== id) };
}

/** Sent messages leave once the record itself is in view, under either of its two ids. */
export function settle(outbox: Outbox, ids: ReadonlySet<string>): Outbox {
  const items = outbox.items.filter(
    (item) =>
      !(
        item.kind === "message" &&
        item.state === "sent" &&
        (ids.has(item.id) || (item.event !== null && ids.has(item.event)))
      ),
  );
  return items.length === outbox.items.length ? outbox : { ...outbox, items };
}

/** A status the server will repeat for the same request: sending again is of no use. */
export function isFinalRefusal(status: number): boolean {
  return status >= 400 && status < 500 && ![401, 408, 425, 429].includes(status);
}

/**
 * After a new pairing: what never left goes on under the new device. What may have arrived under
 * the old one is not sent again by itself, for its id is unique only per device: the person
 * decides.
 */
export function adopt(outbox: Outbox, device: string, why: string): Outbox {
  if (outbox.device === device) return outbox;
  const items: Item[] = [];
  for (const item of outbox.items) {
    if (item.kind !== "message") items.push(item);
    else if (item.state === "sent") continue;
    else if (item.state === "refused" || !item.tried) items.push(item);
    else items.push({ ...item, state: "refused", why });
  }
  return { device, items };
}

export function write(outbox: Outbox): string {
  return JSON.stringify({ v: 1, ...outbox });
}

/** Storage may be empty, from another version or damaged: then the outbox starts empty. */
export function read(text: string | null, device: string): Outbox {
  const empty: Outbox = { device, items: [] };
  if (text === null) return empty;
  try {
    const held = JSON.parse(text) as { v?: unknown; device?: unknown; items?: unknown };
    if (held.v !== 1 || typeof held.device !== "string" || !Array.isArray(held.items)) return empty;
    return { device: held.device, items: held.items.filter(isItem) };
  } catch {
    return empty;
  }
}

function isItem(value: unknown): value is Item {
  if (typeof value !== "object" || value === null) return false;
  const item = value as Record<string, unknown>;
  if (typeof item.id !== "string" || typeof item.at !== "string") return false;
  if (item.kind === "stop") return typeof item.duty === "string";
  if (item.kind === "withdraw") return typeof item.action === "string";
  if (item.kind === "pause") return item.duty === null || typeof item.duty === "string";
  return (
    item.kind === "message" &&
    typeof item.text === "string" &&
    ["waiting", "sent", "refused"].includes(item.state as string)
  );
}
