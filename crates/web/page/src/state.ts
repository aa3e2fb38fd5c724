// What the page holds: records as last read, and this browser's own choices. Views read these
// signals; only live.ts and actions.ts change the records.

import { computed, signal } from "@preact/signals";
import type { Caller } from "./api.js";
import { knownZone, type Lang } from "./clock.js";
import type { Outbox } from "./outbox.js";
import * as box from "./outbox.js";
import type {
  About,
  Action,
  Control,
  Decisions,
  Demo,
  Device,
  Duty,
  Entry,
  Me,
  Offer,
  Proposal,
  Source,
  Trace,
} from "./types.js";
import { asks } from "./sync.js";
import { pickLang, WORDS } from "./words.js";

export type Look = "system" | "light" | "dark";
export interface Pairing {
  token: string;
  device: string;
}

const KEYS = {
  pairing: "adjutant.pairing",
  outbox: "adjutant.outbox",
  lang: "adjutant.lang",
  look: "adjutant.look",
  draft: "adjutant.draft",
} as const;

/** Storage can be full or switched off; the page then works until it is closed. */
function keep(key: keyof typeof KEYS, text: string | null): void {
  try {
    if (text === null) localStorage.removeItem(KEYS[key]);
    else localStorage.setItem(KEYS[key], text);
  } catch {
    storageFailed.value = true;
  }
}

function held(key: keyof typeof KEYS): string | null {
  try {
    return localStorage.getItem(KEYS[key]);
  } catch {
    return null;
  }
}

export const storageFailed = signal(false);

export const pairing = signal<Pairing | null>(readPairing());
export const pairNote = signal<"refused" | "unreachable" | "revoked" | "shape" | "busy" | null>(
  null,
);

/** The code as typed or as it came in the address; kept until a pairing worked. */
export const typedCode = signal("");

export const me = signal<Me | null>(null);
export const entries = signal<Entry[]>([]);
export const moreBefore = signal(false);
export const duties = signal<ReadonlyMap<string, Duty>>(new Map());
export const proposals = signal<ReadonlyMap<string, Proposal>>(new Map());
/** Outside effects: the newest, and those that the chat shows. */
export const actions = signal<ReadonlyMap<string, Action>>(new Map());
/** Read when they are first looked at, and kept from then on. */
export const devices = signal<Device[] | null>(null);
/** What is stopped, paused and held. */
export const control = signal<Control | null>(null);
export const controlNote = signal<string | null>(null);
/** Read when they are first looked at, and kept from then on. */
export const sources = signal<Source[] | null>(null);
export const sourcesNote = signal<string | null>(null);
/** The chain of the event that is looked at. */
export const trace = signal<Trace | null>(null);
export const traceNote = signal<string | null>(null);
/** A code for one more device, while it can be used. */
export const offer = signal<Offer | null>(null);
export const devicesNote = signal<string | null>(null);
export const decisionLog = signal<Decisions[] | null>(null);
export const capNote = signal<string | null>(null);
export const demo = signal<Demo | null>(null);
export const loaded = signal(false);
export const readProblem = signal<string | null>(null);

/** `asOf` is the records' own time of the last complete reading, in milliseconds. */
export interface Link {
  state: "connecting" | "live" | "down";
  asOf: number | null;
}
export const link = signal<Link>({ state: "connecting", asOf: null });
/** This page pulled the plug and has not been connected again since. */
export const plugged = signal(false);

export interface Decision {
  id: string;
  yes: boolean;
  note: string | null;
  /** What changed since the card was drawn, old against new. */
  changes?: string[];
  busy: boolean;
}
export const decisions = signal<ReadonlyMap<string, Decision>>(new Map());
/** Answers to stop and resume that the person has to see, by duty. */
export const dutyNotes = signal<ReadonlyMap<string, string>>(new Map());

export const outbox = signal<Outbox>(box.read(held("outbox"), pairing.value?.device ?? ""));
export const draft = signal(held("draft") ?? "");
/** The card that the next message asks about. */
export const askingAbout = signal<About | null>(null);

export const lang = signal<Lang>(readLang());
export const words = computed(() => WORDS[lang.value]);
export const look = signal<Look>(readLook());
export const route = signal(location.hash);

/** The records' clock minus this browser's, in milliseconds. */
const clockOffset = signal(0);
/** Ticks once in a while so that "3 h left" does not stand still. */
export const tick = signal(Date.now());
export const now = computed(() => tick.value + clockOffset.value);
export const zone = computed(() => knownZone(me.value?.zone ?? "UTC"));

export const openProposals = computed(() =>
  [...proposals.value.values()].filter((proposal) => proposal.state === "open"),
);

export const askingActions = computed(() => [...actions.value.values()].filter(asks));

/** The records' time at this very moment, for what counts down. */
export function nowMs(): number {
  return Date.now() + clockOffset.value;
}

export function caller(): Caller {
  return { token: pairing.value?.token ?? null, lang: lang.value };
}

export function setClock(recordsNow: string): void {
  const at = Date.parse(recordsNow);
  if (!Number.isFinite(at)) return;
  const here = Date.now();
  clockOffset.value = at - here;
  tick.value = here;
}

/** Reads the outbox anew before each change, because another tab may have written it. */
export function changeOutbox(change: (before: Outbox) => Outbox): void {
  const device = pairing.value?.device ?? "";
  const before = storageFailed.value ? outbox.value : box.read(held("outbox"), device);
  const after = change(before);
  outbox.value = after;
  keep("outbox", box.write(after));
}

export function setPairing(next: Pairing | null): void {
  pairing.value = next;
  keep("pairing", next === null ? null : JSON.stringify(next));
}

export function setLang(next: Lang): void {
  lang.value = next;
  keep("lang", next);
}

export function setLook(next: Look): void {
  look.value = next;
  keep("look", next);
}

export function setDraft(next: string): void {
  draft.value = next;
  keep("draft", next === "" ? null : next);
}

export function forgetRecords(): void {
  me.value = null;
  entries.value = [];
  duties.value = new Map();
  proposals.value = new Map();
  actions.value = new Map();
  decisions.value = new Map();
  dutyNotes.value = new Map();
  control.value = null;
  controlNote.value = null;
  sources.value = null;
  sourcesNote.value = null;
  trace.value = null;
  traceNote.value = null;
  devices.value = null;
  offer.value = null;
  devicesNote.value = null;
  capNote.value = null;
  demo.value = null;
  askingAbout.value = null;
  decisionLog.value = null;
  loaded.value = false;
  link.value = { state: "connecting", asOf: null };
}

export function withEntry<V>(map: ReadonlyMap<string, V>, key: string, value: V | null) {
  const next = new Map(map);
  if (value === null) next.delete(key);
  else next.set(key, value);
  return next;
}

function readPairing(): Pairing | null {
  try {
    const found = JSON.parse(held("pairing") ?? "null") as Partial<Pairing> | null;
    return found && typeof found.token === "string" && typeof found.device === "string"
      ? { token: found.token, device: found.device }
      : null;
  } catch {
    return null;
  }
}

function readLang(): Lang {
  const chosen = held("lang");
  return chosen === "en" || chosen === "zh" ? chosen : pickLang(navigator.languages);
}

function readLook(): Look {
  const chosen = held("look");
  return chosen === "light" || chosen === "dark" ? chosen : "system";
}

/** What another tab wrote: a message, a pairing, a language. */
export function followOtherTabs(): void {
  addEventListener("storage", (event) => {
    if (event.key === KEYS.outbox) {
      outbox.value = box.read(event.newValue, pairing.value?.device ?? "");
    } else if (event.key === KEYS.pairing) {
      pairing.value = readPairing();
    } else if (event.key === KEYS.lang) {
      lang.value = readLang();
    } else if (event.key === KEYS.look) {
      look.value = readLook();
    }
  });
}
