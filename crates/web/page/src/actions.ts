// What the person does here. Optimism only for "your message is on its way": a stop, a start or a
// decision is drawn when the record says so.

import { batch } from "@preact/signals";
import { call, newId, Refused, Unreachable } from "./api.js";
import * as box from "./outbox.js";
import * as s from "./state.js";
import { newcomer } from "./sync.js";
import type { Lang } from "./clock.js";
import type {
  About,
  Action,
  Control,
  Decisions,
  Device,
  Duty,
  Me,
  Offer,
  Proposal,
  Source,
  Stale,
  Trace,
} from "./types.js";

const post = <T>(path: string, body: unknown) => call<T>(s.caller(), "POST", path, body);
const RETRY_MS = 1_000;

export async function pair(code: string, name: string): Promise<void> {
  s.pairNote.value = "busy";
  s.typedCode.value = code;
  try {
    const answer = await call<{ device: string; token: string }>(
      { token: null, lang: s.lang.value },
      "POST",
      "/v1/pair",
      { code, name },
    );
    batch(() => {
      s.pairNote.value = null;
      s.typedCode.value = "";
      s.setPairing({ token: answer.token, device: answer.device });
      s.changeOutbox((held) => box.adopt(held, answer.device, s.words.value.sentBefore));
    });
  } catch (error) {
    s.pairNote.value = error instanceof Refused ? "refused" : "unreachable";
  }
}

export function forgetPairing(): void {
  batch(() => {
    s.changeOutbox(() => ({ device: "", items: [] }));
    s.setPairing(null);
    s.forgetRecords();
  });
}

/** Keeps the message on this device first, then sends it. False if it does not fit. */
export function sendMessage(text: string): boolean {
  const before = s.outbox.value.items.length;
  s.changeOutbox((held) =>
    box.addMessage(
      held,
      newId(),
      text,
      new Date(s.now.value).toISOString(),
      s.askingAbout.value,
    ),
  );
  const kept = s.outbox.value.items.length > before;
  if (kept) s.askingAbout.value = null;
  if (kept) void flush();
  return kept;
}

/** Opens the composer with a reference to a card. The card stays as it is. */
export function askAbout(about: About): void {
  s.askingAbout.value = about;
  location.hash = "#/chat";
  requestAnimationFrame(() => {
    document.querySelector<HTMLTextAreaElement>(".composer textarea")?.focus();
  });
}

/** The owner's language: the server speaks it, and so does every page of theirs. */
export async function chooseLang(language: Lang): Promise<void> {
  s.setLang(language);
  if (s.pairing.value === null) return;
  try {
    await post("/v1/owner", { id: newId(), language });
  } catch {
    // The record still says the other one; the next reading of it tells.
  }
}

export async function readDecisions(): Promise<void> {
  try {
    const answer = await call<{ classes: Decisions[] }>(s.caller(), "GET", "/v1/decisions");
    s.decisionLog.value = answer.classes;
  } catch {
    // What was read before stays in view.
  }
}

export function takeBack(item: box.MessageItem): void {
  s.askingAbout.value = item.about ?? null;
  s.setDraft(s.draft.value === "" ? item.text : `${s.draft.value}\n${item.text}`);
  discard(item.id);
}

export function discard(id: string): void {
  s.changeOutbox((held) => box.remove(held, id));
}

export function stopDuty(duty: string): void {
  s.dutyNotes.value = s.withEntry(s.dutyNotes.value, duty, null);
  s.changeOutbox((held) => box.addStop(held, newId(), duty, new Date(s.now.value).toISOString()));
  void flush();
}

/** Holds everything, or one duty: one tap, kept when there is no connection. */
export function pause(duty: string | null): void {
  s.controlNote.value = null;
  s.changeOutbox((held) => box.addPause(held, newId(), duty, new Date(s.now.value).toISOString()));
  void flush();
}

/** Takes back what has not been sent: like a stop it is kept when there is no connection. */
export function takeBackAction(action: string): void {
  setDecision(action, null);
  const at = new Date(s.now.value).toISOString();
  s.changeOutbox((held) => box.addWithdraw(held, newId(), action, at));
  void flush();
}

/** Lifting widens what happens, so it is never kept for later. */
export async function lift(pauseId: string): Promise<void> {
  await settle(`/v1/pauses/${pauseId}/lift`);
}

/** The person's own word on a message that holds everything back. */
export async function settleHold(hold: string, stop: boolean): Promise<void> {
  await settle(`/v1/holds/${hold}/${stop ? "promote" : "release"}`);
}

async function settle(path: string): Promise<void> {
  s.controlNote.value = s.words.value.deciding;
  try {
    await post(path, { id: newId() });
    s.controlNote.value = null;
  } catch (error) {
    s.controlNote.value = failure(error);
  }
  await readControl();
}

/** Read again after every change of it, so that what is drawn is what the record says. */
export async function readControl(): Promise<void> {
  try {
    s.control.value = await call<Control>(s.caller(), "GET", "/v1/control");
  } catch (error) {
    if (error instanceof Refused) s.controlNote.value = error.detail;
  }
}

export async function readSources(): Promise<void> {
  try {
    const answer = await call<{ sources: Source[] }>(s.caller(), "GET", "/v1/sources");
    s.sources.value = answer.sources;
    s.sourcesNote.value = null;
  } catch (error) {
    s.sourcesNote.value = failure(error);
  }
}

export async function readTrace(event: string): Promise<void> {
  s.traceNote.value = null;
  if (s.trace.value?.event.id !== event) s.trace.value = null;
  try {
    s.trace.value = await call<Trace>(s.caller(), "GET", `/v1/events/${event}`);
  } catch (error) {
    s.traceNote.value = failure(error);
  }
}

/** Resuming widens what happens, so unlike a stop it is never kept for later. */
export async function resumeDuty(duty: string): Promise<void> {
  try {
    putDuty(await post<Duty>(`/v1/duties/${duty}/resume`, { id: newId() }));
    s.dutyNotes.value = s.withEntry(s.dutyNotes.value, duty, null);
  } catch (error) {
    const note = error instanceof Refused ? error.detail : s.words.value.offlineNever;
    s.dutyNotes.value = s.withEntry(s.dutyNotes.value, duty, note);
  }
}

function putDuty(duty: Duty): void {
  s.duties.value = s.withEntry(s.duties.value, duty.id, duty);
}

let flushing = false;

/** Sends what waits, in order, one at a time. Safe to call at any moment. */
export async function flush(): Promise<void> {
  if (flushing || s.pairing.value === null) return;
  flushing = true;
  try {
    for (;;) {
      const item = box.nextToSend(s.outbox.value);
      if (item === null || s.link.value.state !== "live") return;
      s.changeOutbox((held) => box.markTried(held, item.id));
      if (item.kind === "stop") await sendStop(item.id, item.duty);
      else if (item.kind === "pause") await sendPause(item.id, item.duty);
      else if (item.kind === "withdraw") await sendWithdraw(item.id, item.action);
      else await sendOne(item);
    }
  } catch {
    // No answer, or the server asks to wait: the item stays and goes again with the same id. A
    // broken stream calls flush once it is back; this covers a stream that stayed up.
    setTimeout(() => void flush(), RETRY_MS);
  } finally {
    flushing = false;
  }
}

async function sendOne({ id, text, about }: box.MessageItem): Promise<void> {
  try {
    const body = about === undefined ? { id, text } : { id, text, about };
    const answer = await post<{ event: string }>("/v1/messages", body);
    s.changeOutbox((held) => box.markSent(held, id, answer.event));
  } catch (error) {
    if (!(error instanceof Refused) || !box.isFinalRefusal(error.status)) throw error;
    s.changeOutbox((held) => box.markRefused(held, id, error.detail));
  }
}

async function sendStop(id: string, duty: string): Promise<void> {
  try {
    putDuty(await post<Duty>(`/v1/duties/${duty}/stop`, { id }));
  } catch (error) {
    if (!(error instanceof Refused) || !box.isFinalRefusal(error.status)) throw error;
    s.dutyNotes.value = s.withEntry(s.dutyNotes.value, duty, error.detail);
  }
  s.changeOutbox((held) => box.remove(held, id));
}

async function sendPause(id: string, duty: string | null): Promise<void> {
  try {
    await post("/v1/pauses", duty === null ? { id } : { id, duty });
  } catch (error) {
    if (!(error instanceof Refused) || !box.isFinalRefusal(error.status)) throw error;
    s.controlNote.value = error.detail;
  }
  await readControl();
  s.changeOutbox((held) => box.remove(held, id));
}

async function sendWithdraw(id: string, action: string): Promise<void> {
  try {
    putAction(await post<Action>(`/v1/actions/${action}/withdraw`, { id }));
  } catch (error) {
    if (!(error instanceof Refused) || !box.isFinalRefusal(error.status)) throw error;
    // Too late: the server says what it came to, and the card keeps that sentence.
    setDecision(action, { id, yes: false, note: error.detail, busy: false });
    await rereadAction(action, error.detail, error.stale);
  }
  s.changeOutbox((held) => box.remove(held, id));
}

function setDecision(proposal: string, decision: s.Decision | null): void {
  s.decisions.value = s.withEntry(s.decisions.value, proposal, decision);
}

/**
 * The tap carries the digest of what was shown. Never kept for later, never sent twice by itself.
 */
export async function decide(proposal: Proposal, yes: boolean): Promise<void> {
  const decision: s.Decision = { id: newId(), yes, note: null, busy: true };
  if (s.link.value.state !== "live") {
    setDecision(proposal.id, { ...decision, busy: false, note: s.words.value.cardOffline });
    return;
  }
  setDecision(proposal.id, decision);
  try {
    const path = `/v1/proposals/${proposal.id}/${yes ? "confirm" : "decline"}`;
    const body = yes ? { id: decision.id, digest: proposal.digest } : { id: decision.id };
    const settled = await post<Proposal>(path, body);
    batch(() => {
      putProposal(settled);
      setDecision(proposal.id, null);
    });
  } catch (error) {
    if (error instanceof Refused) await reread(proposal.id, error.detail, error.stale);
    // Otherwise the outcome is unknown: the record is asked, now or once connected again.
    else setTimeout(() => void settleDecisions(), RETRY_MS);
  }
}

/** What the person says of an action. A release carries the digest of what was shown, and how it was worded. */
export async function act(
  action: Action,
  how: "approve" | "deny" | "state",
  more: { reason?: string; statement?: "happened" | "did_not" | "keep_looking" } = {},
): Promise<void> {
  const decision: s.Decision = { id: newId(), yes: how === "approve", note: null, busy: true };
  if (s.link.value.state !== "live") {
    setDecision(action.id, { ...decision, busy: false, note: s.words.value.cardOffline });
    return;
  }
  setDecision(action.id, decision);
  const shown = how === "approve" ? { digest: action.digest, template: action.template } : {};
  const looking = more.statement === "keep_looking" ? s.words.value.actLooking : null;
  try {
    const path = `/v1/actions/${action.id}/${how}`;
    const settled = await post<Action>(path, { id: decision.id, ...shown, ...more });
    batch(() => {
      putAction(settled);
      setDecision(
        action.id,
        looking === null ? null : { ...decision, busy: false, note: looking },
      );
    });
  } catch (error) {
    if (error instanceof Refused) await rereadAction(action.id, error.detail, error.stale);
    // Otherwise the outcome is unknown: the record is asked, now or once connected again.
    else setTimeout(() => void settleDecisions(), RETRY_MS);
  }
}

/** What settled cards still said of taps that came too late. */
export function forgetNotes(): void {
  const kept = [...s.decisions.value].filter(([, decision]) => decision.busy);
  s.decisions.value = new Map(kept);
}

function putAction(action: Action): void {
  s.actions.value = s.withEntry(s.actions.value, action.id, action);
}

async function rereadAction(id: string, note: string, stale: Stale | null = null): Promise<void> {
  const decision = s.decisions.value.get(id);
  const changes = stale?.changes ?? [];
  const noted = decision ? { ...decision, busy: false, note, changes } : null;
  // A newer card may have taken the place of the one that was tapped.
  if (stale !== null && stale.card.id !== id) putAction(stale.card as Action);
  try {
    const action = await call<Action>(s.caller(), "GET", `/v1/actions/${id}`);
    batch(() => {
      putAction(action);
      setDecision(id, noted);
    });
  } catch (error) {
    if (error instanceof Refused) setDecision(id, noted);
  }
}

function putProposal(proposal: Proposal): void {
  s.proposals.value = s.withEntry(s.proposals.value, proposal.id, proposal);
}

async function reread(id: string, note: string, stale: Stale | null = null): Promise<void> {
  const decision = s.decisions.value.get(id);
  const changes = stale?.changes ?? [];
  if (stale !== null && stale.card.id !== id) putProposal(stale.card as Proposal);
  try {
    const proposal = await call<Proposal>(s.caller(), "GET", `/v1/proposals/${id}`);
    batch(() => {
      putProposal(proposal);
      setDecision(id, decision ? { ...decision, busy: false, note, changes } : null);
    });
  } catch (error) {
    if (error instanceof Refused) {
      setDecision(id, decision ? { ...decision, busy: false, note, changes } : null);
    }
  }
}

/** After a broken connection: did the decision arrive? The record knows. */
export async function settleDecisions(): Promise<void> {
  const asked = [...s.decisions.value].filter(([, decision]) => decision.busy);
  for (const [id] of asked) {
    const known = s.actions.value.get(id);
    if (known !== undefined) {
      await rereadAction(id, s.words.value.cardBroken);
      const now = s.actions.value.get(id);
      // It arrived if the record moved on; what it says is on the card.
      if (now !== undefined && now.state !== known.state) setDecision(id, null);
      continue;
    }
    await reread(id, s.words.value.cardBroken);
    if (s.proposals.value.get(id)?.state !== "open") setDecision(id, null);
  }
}

export function putDevices(devices: Device[]): void {
  const paired = s.offer.value === null ? null : newcomer(s.devices.value ?? [], devices);
  batch(() => {
    s.devices.value = devices;
    if (paired === null) return;
    s.offer.value = null;
    s.devicesNote.value = s.words.value.pairedNow(paired.name);
  });
}

/** What failed, in words: the server's own, or that there was no answer. */
function failure(error: unknown): string {
  return error instanceof Refused ? error.detail : s.words.value.noAnswer;
}

export async function readDevices(): Promise<void> {
  try {
    const answer = await call<{ devices: Device[] }>(s.caller(), "GET", "/v1/devices");
    putDevices(answer.devices);
  } catch (error) {
    s.devicesNote.value = failure(error);
  }
}

/** Like a decision never kept for later: a code is of use only now. */
export async function offerCode(): Promise<void> {
  s.devicesNote.value = null;
  try {
    if (s.devices.value === null) await readDevices();
    s.offer.value = await post<Offer>("/v1/codes", {});
  } catch (error) {
    s.devicesNote.value = failure(error);
  }
}

export async function revokeDevice(device: string): Promise<void> {
  s.devicesNote.value = s.words.value.deciding;
  try {
    await post(`/v1/devices/${device}/revoke`, { id: newId() });
    s.devicesNote.value = null;
    await readDevices();
  } catch (error) {
    s.devicesNote.value = failure(error);
  }
}

export async function setCap(micro: number): Promise<boolean> {
  s.capNote.value = s.words.value.deciding;
  try {
    await post("/v1/owner", { id: newId(), month_cap_micro_usd: micro });
    s.me.value = await call<Me>(s.caller(), "GET", "/v1/me");
    s.capNote.value = null;
    return true;
  } catch (error) {
    s.capNote.value = failure(error);
    return false;
  }
}

/** Only in the demo: the answer may die with the server, which is the point. */
export async function pullPlug(): Promise<void> {
  s.plugged.value = true;
  try {
    await post("/v1/demo/plug", {});
  } catch (error) {
    if (!(error instanceof Unreachable)) s.plugged.value = false;
  }
  setTimeout(() => {
    if (s.link.value.state === "live") s.plugged.value = false;
  }, 3_000);
}
