// Duties: what was delegated, grouped by what it means for the person, and each one with its terms,
// what it waits for, when it wakes up, what it has used, and Stop.

import { useState } from "preact/hooks";
import { lift, pause, resumeDuty, stopDuty } from "../actions.js";
import { langOf, numberWords, usdWords, whenWords } from "../clock.js";
import { isPausing, isStopping } from "../outbox.js";
import * as s from "../state.js";
import { asks, groupOf, GROUPS, isMoving, soonerFirst, type Group } from "../sync.js";
import type { Duty, Grant, GrantUse, Run, Schedule, Situation, Subscription, Wait } from "../types.js";
import { stateWords, wholeAmounts } from "../words.js";
import { ActionCard, ActionRow } from "./action.js";
import { Card } from "./card.js";
import { AskIcon, BackIcon, HoldIcon, MoonIcon, RunIcon, StopIcon, WaitIcon } from "./icons.js";

/** Actions of a duty that are listed; older ones are counted. */
const ACTIONS_SHOWN = 10;

function when(at: string): string {
  return whenWords(at, s.now.value, s.zone.value, s.lang.value);
}

export function Duties({ chosen }: { chosen: string | null }) {
  const words = s.words.value;
  const duty = chosen === null ? undefined : s.duties.value.get(chosen);
  return (
    <div class={chosen === null ? "duties" : "duties one"}>
      <div class="list">
        <h1 class="reader">{words.tabDuties}</h1>
        {s.duties.value.size === 0 && s.loaded.value && <p class="empty">{words.dutyEmpty}</p>}
        {GROUPS.map((group) => (
          <GroupOf key={group} group={group} chosen={chosen} />
        ))}
      </div>
      {chosen !== null && (
        <div class="detail">
          {duty ? (
            <Detail key={duty.id} duty={duty} />
          ) : (
            s.loaded.value && (
              <p class="empty">
                {words.dutyGone} <a href="#/duties">{words.back}</a>
              </p>
            )
          )}
        </div>
      )}
    </div>
  );
}

const GROUP_ICONS = {
  needs: <AskIcon />,
  working: <RunIcon />,
  waiting: <WaitIcon />,
  quiet: <MoonIcon />,
  ended: <StopIcon />,
} satisfies Record<Group, preact.JSX.Element>;

function GroupOf({ group, chosen }: { group: Group; chosen: string | null }) {
  const all = [...s.proposals.value.values()];
  const members = [...s.duties.value.values()]
    .filter((duty) => groupOf(duty, all, s.actions.value.values()) === group)
    .sort(
      (a, b) =>
        soonerFirst(a.next_wake, b.next_wake) ||
        a.created_at.localeCompare(b.created_at),
    );
  if (members.length === 0) return null;
  const title = s.words.value.groups[group];
  const rows = members.map((duty) => <Row key={duty.id} duty={duty} chosen={duty.id === chosen} />);
  if (group === "ended") {
    return (
      <details class="group group-ended">
        <summary>
          {GROUP_ICONS[group]}
          {title} · {members.length}
        </summary>
        {rows}
      </details>
    );
  }
  return (
    <section class={`group group-${group}`}>
      <h2>
        {GROUP_ICONS[group]}
        {title}
      </h2>
      {rows}
    </section>
  );
}

function Row({ duty, chosen }: { duty: Duty; chosen: boolean }) {
  const words = s.words.value;
  return (
    <a class="row" href={`#/duties/${duty.id}`} aria-current={chosen ? "true" : undefined}>
      <span class="row-title" lang={langOf(duty.title)}>
        {duty.title}
      </span>
      <span class="row-state" lang={langOf(duty.state_line)}>
        {stateLine(duty)}
      </span>
      {duty.state === "active" && duty.next_wake !== null && (
        <span class="row-next">{words.nextWake(when(duty.next_wake))}</span>
      )}
    </a>
  );
}

function stateLine(duty: Duty): string {
  return duty.state_line === "" ? s.words.value.dutyStates[duty.state] : duty.state_line;
}

function Detail({ duty }: { duty: Duty }) {
  const words = s.words.value;
  const cards = s.openProposals.value.filter((proposal) => proposal.duty === duty.id);
  const actions = [...s.actions.value.values()]
    .filter((action) => action.duty === duty.id)
    .sort((a, b) => b.created_at.localeCompare(a.created_at));
  const live = actions.filter((action) => asks(action) || isMoving(action));
  return (
    <article>
      <a class="back" href="#/duties">
        <BackIcon />
        {words.back}
      </a>
      <header class="duty-head">
        <h2 lang={langOf(duty.title)}>{duty.title}</h2>
        <p class="duty-state" lang={langOf(duty.state_line)}>
          {stateLine(duty)}
        </p>
        <p class="meta">
          {duty.next_wake === null ? words.noWake : words.nextWake(when(duty.next_wake))}
          {" · "}
          {words.version(duty.version)}
          {" · "}
          {words.since(when(duty.created_at))}
        </p>
        <PauseLine duty={duty} />
        <Control duty={duty} />
      </header>
      {cards.map((proposal) => (
        <Card key={proposal.id} proposal={proposal} />
      ))}
      {live.map((action) => (
        <ActionCard key={action.id} action={action} />
      ))}
      <Block title={words.goal}>
        <p class="goal" lang={langOf(duty.goal)}>
          {duty.goal}
        </p>
      </Block>
      <Block title={words.doneWhen}>
        <Conditions duty={duty} />
      </Block>
      {duty.grants.length > 0 && (
        <Block title={words.grants}>
          <Grants all={duty.grants} />
        </Block>
      )}
      {actions.length > live.length && (
        <Block title={words.actions}>
          <ul>
            {actions
              .filter((action) => !live.includes(action))
              .slice(0, ACTIONS_SHOWN)
              .map((action) => (
                <ActionRow key={action.id} action={action} />
              ))}
          </ul>
          {actions.length - live.length > ACTIONS_SHOWN && (
            <p class="meta">{words.moreActions(actions.length - live.length - ACTIONS_SHOWN)}</p>
          )}
        </Block>
      )}
      {duty.situations.length > 0 && (
        <Block title={words.situations}>
          <Situations all={duty.situations} />
        </Block>
      )}
      <Block title={words.waitingFor}>
        <Waits waits={duty.waits} />
      </Block>
      {duty.subscriptions.length > 0 && (
        <Block title={words.hears}>
          <Subscriptions all={duty.subscriptions} />
        </Block>
      )}
      <Block title={words.plan}>
        <Schedules schedules={duty.schedules} />
        <p class="meta">
          {words.cardEnds}: {duty.ends_at === null ? words.noEnd : when(duty.ends_at)}
        </p>
      </Block>
      <Block title={words.runs}>
        <Runs duty={duty} />
      </Block>
    </article>
  );
}

function Block({ title, children }: { title: string; children: preact.ComponentChildren }) {
  return (
    <section class="block">
      <h3>{title}</h3>
      {children}
    </section>
  );
}

function Conditions({ duty }: { duty: Duty }) {
  const words = s.words.value;
  if (duty.conditions.length === 0) return <p class="meta">{words.noConditions}</p>;
  return (
    <ul>
      {duty.conditions.map((condition) => (
        <li key={condition.text} lang={langOf(condition.text)}>
          {condition.text}
          <span class="meta">
            {words.evidence(condition.evidence)} · {words.authority(condition.authority)}
          </span>
        </li>
      ))}
    </ul>
  );
}

/** What may be done without asking again, and what is left of it. */
function Grants({ all }: { all: Grant[] }) {
  const words = s.words.value;
  const part = (use: GrantUse) =>
    use.amount === null ? `${use.count} ×` : `${use.count} × · ${wholeAmounts(use.amount.text)}`;
  return (
    <ul>
      {all.map((grant) => (
        <li key={grant.id} class={grant.state === "active" ? "" : "past"}>
          <span lang={langOf(grant.words)}>{wholeAmounts(grant.words)}</span>
          <Meter grant={grant} />
          <span class="meta">
            {grant.state === "ended" && `${words.grantEnded} · `}
            {words.grantLeft(part(grant.left))}
          </span>
          <span class="meta">
            {words.grantDone(part(grant.spent))}
            {grant.reserved.count > 0 && ` · ${words.grantMoving(part(grant.reserved))}`}
          </span>
        </li>
      ))}
    </ul>
  );
}

/** How much of a grant is left, in money where it has a limit in money. */
function Meter({ grant }: { grant: Grant }) {
  const words = s.words.value;
  const of = grant.total?.minor ?? grant.times;
  const left = grant.total === null ? grant.left.count : (grant.left.amount?.minor ?? 0);
  return <meter min={0} max={of} value={left} aria-label={words.grantLeft(`${left} / ${of}`)} />;
}

function Waits({ waits }: { waits: Wait[] }) {
  const words = s.words.value;
  if (waits.length === 0) return <p class="meta">{words.noWaits}</p>;
  return (
    <ul>
      {waits.map((wait) => (
        <li key={wait.id} class={wait.state === "open" ? "" : "past"}>
          {wait.key === "" ? wait.kind : `${wait.kind} · ${wait.key}`}
          <span class="meta">
            {stateWords(words.waitStates, wait.state)}
            {wait.due_at !== null && ` · ${words.due(when(wait.due_at))}`}
          </span>
        </li>
      ))}
    </ul>
  );
}

function Schedules({ schedules }: { schedules: Schedule[] }) {
  const words = s.words.value;
  if (schedules.length === 0) return <p class="meta">{words.noPlan}</p>;
  return (
    <ul>
      {schedules.map((plan) => (
        <li key={plan.id} lang={langOf(plan.words)}>
          {plan.words}
          <span class="task" lang={langOf(plan.prompt)}>
            {plan.prompt}
          </span>
          <span class="meta">
            {stateWords(words.scheduleStates, plan.state)}
            {plan.next_slot !== null && ` · ${words.next(when(plan.next_slot))}`}
            {plan.late_last && <span class="late"> · {words.lateLast}</span>}
          </span>
          {plan.check !== null && (
            <span class="meta">
              {words.checked(plan.check.looked, plan.check.woke)}
              {plan.check.last !== null && ` · ${words.lastLook(when(plan.check.last))}`}
              {plan.check.failed > 0 && ` · ${words.checkFailed(plan.check.failed)}`}
            </span>
          )}
        </li>
      ))}
    </ul>
  );
}

function Subscriptions({ all }: { all: Subscription[] }) {
  const words = s.words.value;
  return (
    <ul>
      {all.map((one) => (
        <li key={one.id} class={one.state === "active" ? "" : "past"}>
          {one.name} · {one.topic ?? words.everyTopic}
          <span class="task" lang={langOf(one.prompt)}>
            {one.prompt}
          </span>
          <span class="meta">
            {stateWords(words.scheduleStates, one.state)}
            {one.mode === "background" && ` · ${words.readAlong}`}
          </span>
        </li>
      ))}
    </ul>
  );
}

function Situations({ all }: { all: Situation[] }) {
  const words = s.words.value;
  return (
    <ul>
      {all.map((one) => (
        <li key={one.id} lang={langOf(one.matter)}>
          {one.matter}
          <span class="meta" lang={langOf(one.words)}>
            {one.words}
          </span>
          <span class="meta">{words.lookAgain(when(one.due_at))}</span>
        </li>
      ))}
    </ul>
  );
}

/** Pause is one tap and asks nothing, since it is undone by one; lifting is for the record to say. */
function PauseLine({ duty }: { duty: Duty }) {
  const words = s.words.value;
  if (duty.state === "closed" || duty.state === "stopped") return null;
  if (duty.pause !== null) {
    const own = duty.pause;
    return (
      <div class="control">
        <p class="note warn">{own.everything ? words.pausedWithAll : words.pausedAlone}</p>
        <button type="button" class="outline" onClick={() => void lift(own.id)}>
          {own.everything ? words.liftAll : words.lift}
        </button>
      </div>
    );
  }
  const asked = isPausing(s.outbox.value, duty.id);
  return (
    <div class="control">
      <button
        type="button"
        class="outline"
        disabled={asked}
        onClick={() => pause(duty.id)}
      >
        <HoldIcon />
        {asked ? words.holdAsked : words.pauseDuty}
      </button>
    </div>
  );
}

function Runs({ duty }: { duty: Duty }) {
  const words = s.words.value;
  if (duty.runs.length === 0) return <p class="meta">{words.noRuns}</p>;
  return (
    <>
      <p class="meta">
        {words.spent} {usdWords(duty.spent_micro_usd)}
      </p>
      <ul>
        {duty.runs.map((run) => (
          <RunRow key={run.id} run={run} />
        ))}
      </ul>
    </>
  );
}

function RunRow({ run }: { run: Run }) {
  const words = s.words.value;
  const lang = s.lang.value;
  const tokens = words.tokens(
    numberWords(run.input_tokens, lang),
    numberWords(run.output_tokens, lang),
  );
  return (
    <li>
      {when(run.started_at)} · {stateWords(words.runStates, run.state)}
      <span class="meta">
        {words.steps(run.steps)} · {tokens} · {usdWords(run.micro_usd)}
      </span>
    </li>
  );
}

/** Stop is one tap and one line that says what it does and leaves; it is kept when offline. */
function Control({ duty }: { duty: Duty }) {
  const words = s.words.value;
  const [asking, setAsking] = useState(false);
  const [resuming, setResuming] = useState(false);
  const note = s.dutyNotes.value.get(duty.id);
  const noteLine =
    note === undefined ? null : (
      <p class="note warn" role="status">
        {note}
      </p>
    );
  if (duty.state === "closed") return noteLine;
  if (isStopping(s.outbox.value, duty.id)) {
    const down = s.link.value.state !== "live";
    return (
      <p class="note warn" role="status">
        {down ? words.stopOffline : words.stopping}
      </p>
    );
  }
  if (duty.state === "stopped") {
    const resume = () => {
      setResuming(true);
      void resumeDuty(duty.id).finally(() => setResuming(false));
    };
    return (
      <div class="control">
        <button type="button" class="outline" disabled={resuming} onClick={resume}>
          {words.resume}
        </button>
        {resuming ? (
          <p class="note" role="status">
            {words.resuming}
          </p>
        ) : (
          noteLine
        )}
      </div>
    );
  }
  if (!asking) {
    return (
      <div class="control">
        <button type="button" class="outline" onClick={() => setAsking(true)}>
          <StopIcon />
          {words.stop}
        </button>
        {noteLine}
      </div>
    );
  }
  const waits = duty.waits.filter((wait) => wait.state === "open").length;
  return (
    <div class="control asking" role="group" aria-label={words.stopAsk}>
      <p>{words.stopWhat(duty.schedules.length, waits)}</p>
      <div class="buttons">
        <button type="button" class="outline" onClick={() => setAsking(false)}>
          {words.stopKeep}
        </button>
        <button
          type="button"
          class="outline strong"
          onClick={() => {
            setAsking(false);
            stopDuty(duty.id);
          }}
        >
          {words.stopAsk}
        </button>
      </div>
    </div>
  );
}
