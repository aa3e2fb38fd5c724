// The decision card. Always in this order: what will happen, the fields, why the person is asked,
// the deadline, what happens without an answer, afterwards, the buttons. Buttons name the effect;
// the refusal is on the left, both have the same size, nothing is focused beforehand.

import { askAbout, decide } from "../actions.js";
import { langOf, leftWords, whenWords } from "../clock.js";
import * as s from "../state.js";
import type { About, Proposal } from "../types.js";
import { decisionWords } from "../words-cards.js";
import { heardWords, planLines, wholeAmounts } from "../words.js";
import { useGuard } from "./guard.js";
import { AskIcon, CheckIcon, CrossIcon } from "./icons.js";

export function Card({ proposal }: { proposal: Proposal }) {
  const words = s.words.value;
  const open = proposal.state === "open";
  const note = s.decisions.value.get(proposal.id)?.note ?? null;
  const title = decisionWords(proposal.kind, words).title(proposal.title);
  return (
    <article class={`card ${open ? "open" : "settled"}`} aria-label={title}>
      <p class={`tag tag-${proposal.state}`}>
        {open ? <AskIcon /> : proposal.state === "confirmed" ? <CheckIcon /> : <CrossIcon />}
        {proposal.words}
      </p>
      <h3 lang={langOf(proposal.title)}>{title}</h3>
      {open ? (
        <>
          <Terms proposal={proposal} />
          <AllDetails proposal={proposal} />
          <Buttons proposal={proposal} />
        </>
      ) : (
        <>
          {note !== null && (
            <p class="note warn" role="status">
              {note}
            </p>
          )}
          <Changes id={proposal.id} />
          <details>
            <summary>{words.details}</summary>
            <Terms proposal={proposal} />
          </details>
        </>
      )}
    </article>
  );
}

function when(at: string): string {
  return whenWords(at, s.now.value, s.zone.value, s.lang.value);
}

function deadlineWords(until: string | null): string {
  const words = s.words.value;
  if (until === null) return words.noDeadline;
  const left = leftWords(until, s.now.value, s.lang.value);
  return left === "" ? words.deadlinePassed(when(until)) : words.deadline(when(until), left);
}

function Terms({ proposal }: { proposal: Proposal }) {
  const words = s.words.value;
  const opens = proposal.kind !== "close_duty";
  return (
    <dl class="terms">
      {proposal.changes.length > 0 && <dt>{words.changes}</dt>}
      {proposal.changes.map((line) => (
        <dd key={line} lang={langOf(line)}>
          {wholeAmounts(line)}
        </dd>
      ))}
      <dt>{opens ? words.cardGoal : words.goal}</dt>
      <dd lang={langOf(proposal.goal)}>{proposal.goal}</dd>
      {proposal.schedules.length > 0 && <dt>{words.cardPlan}</dt>}
      {proposal.schedules.map((plan, at) => (
        <dd key={at}>
          <span lang={langOf(plan.words)}>{plan.words}</span>
          {plan.first !== null && <span class="meta"> · {words.first(when(plan.first))}</span>}
          {planLines(plan, words).map((line) => (
            <span class="task" key={line}>
              {line}
            </span>
          ))}
          <span class="task" lang={langOf(plan.prompt)}>
            {plan.prompt}
          </span>
        </dd>
      ))}
      {proposal.subscriptions.length > 0 && <dt>{words.hears}</dt>}
      {proposal.subscriptions.map((heard, at) => (
        <dd key={at}>
          {heardWords(heard, words)}
          <span class="task" lang={langOf(heard.prompt)}>
            {heard.prompt}
          </span>
        </dd>
      ))}
      {opens && <dt>{words.grants}</dt>}
      {opens && proposal.grants.length === 0 && <dd>{words.noGrants}</dd>}
      {proposal.grants.map((grant) => (
        <dd key={grant} lang={langOf(grant)}>
          {wholeAmounts(grant)}
        </dd>
      ))}
      {proposal.reach !== null && <dt>{words.reachMost}</dt>}
      {proposal.reach !== null && <dd lang={langOf(proposal.reach)}>{wholeAmounts(proposal.reach)}</dd>}
      {opens && <dt>{words.cardEnds}</dt>}
      {opens && <dd>{proposal.ends_at === null ? words.noEnd : when(proposal.ends_at)}</dd>}
      <dt>{words.cardDone}</dt>
      {proposal.conditions.length === 0 && <dd>{words.noConditions}</dd>}
      {proposal.conditions.map((condition) => (
        <dd key={condition.text} lang={langOf(condition.text)}>
          {condition.text}
        </dd>
      ))}
      <dt>{words.whyAsked}</dt>
      <dd>{proposal.why}</dd>
      <dt>{words.cardUntil}</dt>
      <dd>{deadlineWords(proposal.until)}</dd>
      <dt>{words.ifNothing}</dt>
      <dd lang={langOf(proposal.if_nothing)}>{proposal.if_nothing}</dd>
      <dt>{words.afterwards}</dt>
      <dd>{proposal.afterwards}</dd>
    </dl>
  );
}

function AllDetails({ proposal }: { proposal: Proposal }) {
  const words = s.words.value;
  return (
    <details>
      <summary>{words.details}</summary>
      <dl class="terms more-terms">
        {proposal.conditions.map((condition) => [
          <dt key={`${condition.text} name`}>{words.cardDone}</dt>,
          <dd key={condition.text} lang={langOf(condition.text)}>
            {condition.text}
            <br />
            {words.evidence(condition.evidence)}
            <br />
            {words.authority(condition.authority)}
          </dd>,
        ])}
        <dt>{words.asked}</dt>
        <dd>{when(proposal.created_at)}</dd>
        <dt>{words.digest}</dt>
        <dd>{shortDigest(proposal.digest)}</dd>
      </dl>
    </details>
  );
}

/** What changed since the card was drawn that a tap came too late for. */
export function Changes({ id }: { id: string }) {
  const changes = s.decisions.value.get(id)?.changes ?? [];
  if (changes.length === 0) return null;
  return (
    <div class="changed">
      <p class="meta">{s.words.value.staleChanges}</p>
      <ul>
        {changes.map((line) => (
          <li key={line} lang={langOf(line)}>
            {wholeAmounts(line)}
          </li>
        ))}
      </ul>
    </div>
  );
}

/** A question decides nothing: it opens the composer with a reference to the card. */
export function Ask({ about }: { about: About }) {
  return (
    <button type="button" class="text quiet-text" onClick={() => askAbout(about)}>
      {s.words.value.askAbout}
    </button>
  );
}

export function shortDigest(digest: string): string {
  const bare = digest.replace(/^[a-z0-9]+:/, "");
  return `${bare.slice(0, 4)} ${bare.slice(4, 8)}`;
}

function Buttons({ proposal }: { proposal: Proposal }) {
  const words = s.words.value;
  const guard = useGuard(`${proposal.id} ${proposal.digest}`);
  const decision = s.decisions.value.get(proposal.id);
  const busy = decision?.busy ?? false;
  const said = decisionWords(proposal.kind, words);
  const tap = (yes: boolean) =>
    guard.button(() => {
      if (!busy) void decide(proposal, yes);
    });
  return (
    <div class="decide" ref={guard.bar}>
      <div class="buttons">
        <button type="button" class="outline" aria-disabled={busy} {...tap(false)}>
          {said.no}
        </button>
        <button type="button" class="effect" aria-disabled={busy} {...tap(true)}>
          {said.yes}
        </button>
      </div>
      <p class={decision?.note ? "note warn" : "note"} role="status">
        {busy ? words.deciding : (decision?.note ?? "")}
      </p>
      <Changes id={proposal.id} />
      <Ask about={{ proposal: proposal.id }} />
    </div>
  );
}
