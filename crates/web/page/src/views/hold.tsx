// On every screen: "Hold everything" in the same corner, and what is held or paused until somebody
// lifts it. Holding is one tap and never asks; a held message asks with two buttons.

import { lift, pause, settleHold } from "../actions.js";
import { langOf, timeWords } from "../clock.js";
import { isPausing } from "../outbox.js";
import * as s from "../state.js";
import type { Hold, Pause } from "../types.js";
import { HoldIcon } from "./icons.js";

/** A message is asked about once it was not settled by itself in this time, or the agent asks. */
const HELD_SHOWN_MS = 60_000;

function isShown(hold: Hold): boolean {
  return hold.asked_at !== null || s.now.value - Date.parse(hold.created_at) > HELD_SHOWN_MS;
}

function timeOf(at: string): string {
  return timeWords(Date.parse(at), s.zone.value, s.lang.value);
}

/** The button in the strip; once everything is paused, the line below it says so instead. */
export function HoldButton() {
  const words = s.words.value;
  const paused = s.control.value?.pauses.some((one) => one.duty === null) ?? false;
  if (paused) return null;
  const asked = isPausing(s.outbox.value, null);
  return (
    <button type="button" class="hold" disabled={asked} onClick={() => pause(null)}>
      <HoldIcon />
      {asked ? words.holdAsked : words.holdAll}
    </button>
  );
}

/** One line for each thing that stands; nothing if nothing does. */
export function Held() {
  const words = s.words.value;
  const control = s.control.value;
  const note = s.controlNote.value;
  const offline = isPausing(s.outbox.value, null) && s.link.value.state !== "live";
  const holds = (control?.holds ?? []).filter(isShown);
  const pauses = control?.pauses ?? [];
  const stopped = control?.system_stop ?? false;
  if (!stopped && !offline && note === null && holds.length + pauses.length === 0) return null;
  return (
    <section class="held" aria-label={words.heldLabel}>
      {stopped && <p class="held-row">{words.systemStop}</p>}
      {offline && <p class="held-row">{words.holdOffline}</p>}
      {pauses.map((one) => (
        <PauseRow key={one.id} pause={one} />
      ))}
      {holds.map((hold) => (
        <HoldRow key={hold.id} hold={hold} />
      ))}
      {note !== null && (
        <p class="held-row warn" role="status">
          {note}
        </p>
      )}
    </section>
  );
}

function PauseRow({ pause }: { pause: Pause }) {
  const words = s.words.value;
  const since = timeOf(pause.created_at);
  return (
    <div class="held-row">
      {pause.duty === null ? (
        <span>{pause.by === "user" ? words.allPaused(since) : words.allPausedByWord(since)}</span>
      ) : (
        <a href={`#/duties/${pause.duty}`} lang={langOf(pause.title ?? "")}>
          {words.onePaused(pause.title ?? "", since)}
        </a>
      )}
      <button type="button" class="outline" onClick={() => void lift(pause.id)}>
        {words.lift}
      </button>
    </div>
  );
}

function HoldRow({ hold }: { hold: Hold }) {
  const words = s.words.value;
  return (
    <div class="held-row asks" role="group" aria-label={words.holdAsk}>
      <span>
        {words.heldSince(timeOf(hold.created_at))} <q lang={langOf(hold.text)}>{hold.text}</q>{" "}
        {words.holdAsk}
      </span>
      <div class="buttons">
        <button type="button" class="outline strong" onClick={() => void settleHold(hold.id, true)}>
          {words.holdStop}
        </button>
        <button type="button" class="outline" onClick={() => void settleHold(hold.id, false)}>
          {words.holdNot}
        </button>
      </div>
    </div>
  );
}
