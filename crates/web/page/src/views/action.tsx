// The card of an outside effect. Always in this order: what will happen, the frozen fields, why the
// person is asked, the deadline, what happens without an answer, afterwards, the buttons. Buttons name
// the effect; the refusal is on the left; nothing is focused beforehand.

import { useEffect, useState } from "preact/hooks";
import { act, takeBackAction } from "../actions.js";
import { langOf, leftWords, whenWords } from "../clock.js";
import { isTakingBack } from "../outbox.js";
import * as s from "../state.js";
import { asks, isMoving } from "../sync.js";
import type { Action, Approval } from "../types.js";
import {
  actionNamed,
  actionTone,
  stateWords,
  wholeAmounts,
} from "../words.js";
import { approvedBy, lastDecisions } from "../words-cards.js";
import { Ask, Changes, shortDigest } from "./card.js";
import { useGuard } from "./guard.js";
import { AskIcon, CheckIcon, CrossIcon, WaitIcon } from "./icons.js";

/** Frozen fields that are in view at once; the others are one tap away. */
const FIELDS_SHOWN = 6;
const COUNT_EVERY_MS = 250;

export function ActionCard({ action }: { action: Action }) {
  const words = s.words.value;
  const asking = asks(action);
  const open = asking || isMoving(action);
  const named = actionNamed(action, words);
  const title = asking && action.state === "unknown" ? words.actHappened(named) : named;
  const note = s.decisions.value.get(action.id)?.note ?? null;
  return (
    <article class={`card act ${open ? "open" : "settled"}`} aria-label={title}>
      <p class={`tag tag-${actionTone(action)}`}>
        <StateIcon action={action} />
        {action.words}
      </p>
      <h3 lang={langOf(title)}>{title}</h3>
      {open && action.asked.includes("supervisor") && (
        <p class="meta">{words.actWaitsSupervisor}</p>
      )}
      {open ? <Terms action={action} /> : <Settled action={action} />}
      <Details action={action} open={open} />
      {action.state === "awaiting_approval" && <Decide action={action} />}
      {isMoving(action) && <TakeBack action={action} />}
      {asking && action.state === "unknown" && <Say action={action} />}
      {!open && note !== null && (
        <p class="note warn" role="status">
          {note}
        </p>
      )}
      <Changes id={action.id} />
      {asking && <Ask about={{ action: action.id }} />}
    </article>
  );
}

function StateIcon({ action }: { action: Action }) {
  switch (actionTone(action)) {
    case "open":
      return <AskIcon />;
    case "confirmed":
      return <CheckIcon />;
    case "moving":
    case "unknown":
      return <WaitIcon />;
    case "bad":
    case "ended":
      return <CrossIcon />;
  }
}

function when(at: string): string {
  return whenWords(at, s.now.value, s.zone.value, s.lang.value);
}

/** A label and a value; nothing without a value. */
function Field({ name, value }: { name: string; value: string | null }) {
  if (value === null) return null;
  return (
    <>
      <dt>{name}</dt>
      <dd lang={langOf(value)}>{wholeAmounts(value)}</dd>
    </>
  );
}

function Terms({ action }: { action: Action }) {
  const words = s.words.value;
  const waits = action.state === "awaiting_approval";
  const until = action.expires_at;
  const left = until === null ? "" : leftWords(until, s.now.value, s.lang.value);
  const deadline = until === null ? words.noDeadline : words.deadline(when(until), left);
  return (
    <dl class="terms">
      {action.card.slice(0, FIELDS_SHOWN).map((line, at) => (
        <Field key={at} name={line.label} value={line.value} />
      ))}
      {action.recipients.length > 0 && (
        <Field name={words.actReceiver} value={action.recipients.join(words.listComma)} />
      )}
      {action.contradicted && <Field name={words.actBecause} value={words.actContradicted} />}
      <Field name={waits ? words.whyAsked : words.actBecause} value={action.reason} />
      {waits && <Field name={words.cardUntil} value={deadline} />}
      <Field name={words.ifNothing} value={action.if_nothing} />
      <Field name={words.afterwards} value={action.afterwards} />
    </dl>
  );
}

/** What came of it, in a few lines. */
function Settled({ action }: { action: Action }) {
  const words = s.words.value;
  return (
    <>
      {action.receipt !== null && (
        <p class="receipt">
          {words.actReceipt} <strong>{action.receipt}</strong>
        </p>
      )}
      {action.reason !== null && (
        <p class="meta" lang={langOf(action.reason)}>
          {action.reason}
        </p>
      )}
      {lastDecisions(action.approvals).map((one) => (
        <p key={one.id} class="meta">
          {approvalWords(one)}
        </p>
      ))}
    </>
  );
}

function approvalWords(approval: Approval): string {
  const words = s.words.value;
  const parts = [approval.words, approvedBy(approval, words), when(approval.moved_at)];
  return parts.filter((part) => part !== "").join(" · ");
}

function Details({ action, open }: { action: Action; open: boolean }) {
  const words = s.words.value;
  const rest = open ? action.card.slice(FIELDS_SHOWN) : action.card;
  const duty = action.duty === null ? undefined : s.duties.value.get(action.duty);
  return (
    <details>
      <summary>{words.details}</summary>
      <dl class="terms more-terms">
        {rest.map((line, at) => (
          <Field key={at} name={line.label} value={line.value} />
        ))}
        {duty !== undefined && (
          <>
            <dt>{words.actDuty}</dt>
            <dd>
              <a href={`#/duties/${duty.id}`} lang={langOf(duty.title)}>
                {duty.title}
              </a>
            </dd>
          </>
        )}
        <Field name={words.actTool} value={action.tool} />
        <Field name={words.actEffect} value={stateWords(words.effects, action.effect)} />
        <Field name={words.asked} value={when(action.created_at)} />
        {action.approvals.length > 0 && <dt>{words.actDecided}</dt>}
        {action.approvals.map((one) => (
          <dd key={one.id}>
            {approvalWords(one)}
            {one.reason !== null && (
              <span class="task" lang={langOf(one.reason)}>
                {one.reason}
              </span>
            )}
          </dd>
        ))}
        {(action.attempts ?? []).length > 0 && <dt>{words.actSent}</dt>}
        {(action.attempts ?? []).map((one) => (
          <dd key={one.n}>
            {`${when(one.created_at)} · ${one.words}`}
            <span class="task code-like">{one.operation_id}</span>
            {one.reason !== null && (
              <span class="task" lang={langOf(one.reason)}>
                {one.reason}
              </span>
            )}
          </dd>
        ))}
        <Field name={words.digest} value={shortDigest(action.digest)} />
      </dl>
    </details>
  );
}

function Note({ action }: { action: Action }) {
  const words = s.words.value;
  const decision = s.decisions.value.get(action.id);
  return (
    <p class={decision?.note ? "note warn" : "note"} role="status">
      {decision?.busy ? words.deciding : (decision?.note ?? "")}
    </p>
  );
}

function Decide({ action }: { action: Action }) {
  const words = s.words.value;
  const guard = useGuard(`${action.id} ${action.digest} ${action.state}`);
  const [explains, setExplains] = useState(false);
  const busy = s.decisions.value.get(action.id)?.busy ?? false;
  const tap = (yes: boolean) =>
    guard.button(() => {
      if (!busy) void act(action, yes ? "approve" : "deny");
    });
  return (
    <div class="decide" ref={guard.bar}>
      {explains ? (
        <Explain action={action} close={() => setExplains(false)} />
      ) : (
        <>
          <div class="buttons">
            <button type="button" class="outline" aria-disabled={busy} {...tap(false)}>
              {words.actRefuse}
            </button>
            <button type="button" class="effect" aria-disabled={busy} {...tap(true)}>
              {words.actRelease(actionNamed(action, words))}
            </button>
          </div>
          <button type="button" class="text quiet-text" onClick={() => setExplains(true)}>
            {words.actRefuseWhy}
          </button>
        </>
      )}
      <Note action={action} />
    </div>
  );
}

/** A refusal with a reason. Enter stays in the field: it never reaches a decision. */
function Explain({ action, close }: { action: Action; close: () => void }) {
  const words = s.words.value;
  const [why, setWhy] = useState("");
  const busy = s.decisions.value.get(action.id)?.busy ?? false;
  const guard = useGuard(`${action.id} reason`);
  return (
    <div class="explain" ref={guard.bar}>
      <label>
        <span class="meta">{words.actWhyNot}</span>
        <textarea
          rows={2}
          maxLength={500}
          value={why}
          onInput={(event) => setWhy(event.currentTarget.value)}
        />
      </label>
      <div class="buttons">
        <button type="button" class="outline" onClick={close}>
          {words.actNeverMind}
        </button>
        <button
          type="button"
          class="outline strong"
          aria-disabled={busy || why.trim() === ""}
          {...guard.button(() => {
            if (!busy && why.trim() !== "") void act(action, "deny", { reason: why.trim() });
          })}
        >
          {words.actRefuseSaying}
        </button>
      </div>
    </div>
  );
}

/** Until it is sent it can be taken back. The bar shows real time: the server holds it back so long. */
function TakeBack({ action }: { action: Action }) {
  const words = s.words.value;
  const guard = useGuard(`${action.id} ${action.state}`);
  const asked = isTakingBack(s.outbox.value, action.id);
  const down = s.link.value.state !== "live";
  return (
    <div class="decide" ref={guard.bar}>
      {action.state === "admitted" && action.not_before !== null && (
        <Countdown until={action.not_before} total={action.undo_ms} />
      )}
      <div class="buttons single">
        <button
          type="button"
          class="outline strong"
          aria-disabled={asked}
          {...guard.button(() => {
            if (!asked) takeBackAction(action.id);
          })}
        >
          {words.actTakeBack}
        </button>
      </div>
      {asked ? (
        <p class="note warn" role="status">
          {down ? words.actTakeBackOffline : words.actTakingBack}
        </p>
      ) : (
        <Note action={action} />
      )}
    </div>
  );
}

function Countdown({ until, total }: { until: string; total: number }) {
  const [now, setNow] = useState(s.nowMs());
  useEffect(() => {
    const timer = setInterval(() => setNow(s.nowMs()), COUNT_EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  const left = Math.max(0, Math.min(total, Date.parse(until) - now));
  const label = s.words.value.actLeft(Math.ceil(left / 1_000));
  return (
    <div class="countdown">
      <span class="meta">{label}</span>
      {total > 0 && <progress max={total} value={left} aria-label={label} />}
    </div>
  );
}

/** What nobody could find out: three answers, none of them prettier than the others. */
function Say({ action }: { action: Action }) {
  const words = s.words.value;
  const guard = useGuard(`${action.id} ${action.escalated_at}`);
  const busy = s.decisions.value.get(action.id)?.busy ?? false;
  const button = (text: string, statement: "happened" | "did_not" | "keep_looking") => (
    <button
      type="button"
      class="outline"
      aria-disabled={busy}
      {...guard.button(() => {
        if (!busy) void act(action, "state", { statement });
      })}
    >
      {text}
    </button>
  );
  return (
    <div class="decide" ref={guard.bar}>
      <div class="buttons three">
        {button(words.actNo, "did_not")}
        {button(words.actLook, "keep_looking")}
        {button(words.actYes, "happened")}
      </div>
      <Note action={action} />
    </div>
  );
}

/** One line of a list: what, and where it stands. */
export function ActionRow({ action }: { action: Action }) {
  const words = s.words.value;
  return (
    <li>
      {actionNamed(action, words)}
      <span class="meta">
        <span class={`tone-${actionTone(action)}`}>{action.words}</span>
        {` · ${when(action.moved_at)}`}
        {action.receipt !== null && ` · ${words.actReceipt} ${action.receipt}`}
      </span>
      {action.card.length > 0 && (
        <span class="meta">
          {action.card.map((line) => `${line.label} ${line.value}`).join(words.listComma)}
        </span>
      )}
    </li>
  );
}
