// The ways in, each with its health by what it received, and the chain of its last event.

import { useEffect } from "preact/hooks";
import { readSources, readTrace } from "../actions.js";
import { langOf, whenWords } from "../clock.js";
import * as s from "../state.js";
import type { Source, Trace } from "../types.js";
import { stateWords } from "../words.js";
import { BackIcon } from "./icons.js";

function when(at: string): string {
  return whenWords(at, s.now.value, s.zone.value, s.lang.value);
}

export function Sources() {
  const words = s.words.value;
  const all = s.sources.value;
  useEffect(() => void readSources(), []);
  return (
    <section class="block sources">
      <h3>{words.sources}</h3>
      {all !== null && all.length === 0 && <p class="meta">{words.noSources}</p>}
      <ul>
        {(all ?? []).map((source) => (
          <li key={source.id}>
            {source.name}
            <span class="meta">
              {words.sourceKinds[source.kind]} · {healthWords(source).join(" · ")}
            </span>
            {troubles(source).map((line) => (
              <span key={line} class="meta warn">
                {line}
              </span>
            ))}
            {source.last_event !== null && (
              <a href={`#/more/events/${source.last_event}`}>{words.lastEvent}</a>
            )}
          </li>
        ))}
      </ul>
      {s.sourcesNote.value !== null && (
        <p class="note warn" role="status">
          {s.sourcesNote.value}
        </p>
      )}
    </section>
  );
}

/** What a source received and when it was looked at: facts, never "connected". */
function healthWords(source: Source): string[] {
  const words = s.words.value;
  const received = source.received_at;
  const lines = [received === null ? words.receivedNever : words.received(when(received))];
  if (source.every_ms !== null) {
    lines.push(source.looked_at === null ? words.lookedNever : words.looked(when(source.looked_at)));
  }
  return lines;
}

function troubles(source: Source): string[] {
  const words = s.words.value;
  const lines: string[] = [];
  if (source.silent) lines.push(words.silent);
  if (source.refused > 0 && source.refused_at !== null) {
    lines.push(words.refused(source.refused, when(source.refused_at)));
  }
  if (source.failures > 0) lines.push(words.lookFailures(source.failures));
  if (source.secret === "missing" || source.secret === "unreadable") {
    lines.push(words.noSecret(source.name));
  }
  return lines;
}

/** The whole chain of one event, from its source to what was said. */
export function EventTrace({ event }: { event: string }) {
  const words = s.words.value;
  useEffect(() => void readTrace(event), [event]);
  const trace = s.trace.value;
  return (
    <article class="trace">
      <a class="back" href="#/more">
        <BackIcon />
        {words.backMore}
      </a>
      {s.traceNote.value !== null && (
        <p class="note warn" role="status">
          {s.traceNote.value}
        </p>
      )}
      {trace !== null && <Chain trace={trace} />}
    </article>
  );
}

function Chain({ trace }: { trace: Trace }) {
  const words = s.words.value;
  const { event, source, work_item: item } = trace;
  return (
    <section class="block">
      <h2>{words.traceTitle(source.name)}</h2>
      <dl class="chain">
        <Part name={words.traceReceived}>
          {when(event.received_at)}
          {event.late && <span class="late"> · {words.late}</span>}
          <span class="meta">
            {source.kind} · {event.external_id}
            {event.topic !== null && ` · ${event.topic}`}
            {event.key !== null && ` · ${event.key}`}
          </span>
          <span class="meta">{words.trusts[event.trust]}</span>
          {event.excerpt !== "" && (
            <span class="task" lang={langOf(event.excerpt)}>
              {event.excerpt}
            </span>
          )}
        </Part>
        <Part name={words.traceConcerns}>
          <Concerns trace={trace} />
        </Part>
        {item !== null && (
          <Part name={words.traceQueue}>
            <Times item={item} />
          </Part>
        )}
        {trace.runs.map((run) => (
          <Part key={run.id} name={words.traceRun}>
            {when(run.started_at)} · {stateWords(words.runStates, run.state)}
            {run.messages.length === 0 && <span class="meta">{words.saidNothing}</span>}
            {run.messages.map((message) => (
              <span key={message.id} class="task" lang={langOf(message.text)}>
                {message.text}
                <span class="meta">{stateWords(words.agentStates, message.state)}</span>
              </span>
            ))}
          </Part>
        ))}
        {trace.proactive !== null && (
          <Part name={words.traceNoted}>
            <span lang="en">{trace.proactive.situation}</span>
            <span class="meta" lang="en">
              {trace.proactive.reach} · {trace.proactive.disturb}
            </span>
          </Part>
        )}
        <Part name={words.traceEnd}>
          {event.disposition === null ? (
            words.notHandled
          ) : (
            <span lang={langOf(event.disposition)}>{event.disposition}</span>
          )}
          {event.handled_at !== null && <span class="meta">{when(event.handled_at)}</span>}
        </Part>
      </dl>
    </section>
  );
}

function Part({ name, children }: { name: string; children: preact.ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Concerns({ trace }: { trace: Trace }) {
  const words = s.words.value;
  const asked = trace.attribution;
  return (
    <>
      {trace.links.length === 0 && words.concernsNothing}
      {trace.links.map((link) => (
        <span key={link.record} class="link-row">
          {link.duty === null ? (
            words.tabChat
          ) : (
            <a href={`#/duties/${link.duty}`} lang={langOf(link.title ?? "")}>
              {link.title}
            </a>
          )}
          <span class="meta">{words.hows[link.how]}</span>
        </span>
      ))}
      {asked !== null && (
        <span class="meta">
          {words.modelAsked(
            asked.model,
            asked.candidates.map((one) => one.title).join(words.listComma),
            asked.answer ?? "–",
          )}
          {asked.refused !== null && ` · ${words.didNotCount} ${asked.refused}`}
        </span>
      )}
      {trace.related.map((other) => (
        <a key={other.event} class="link-row" href={`#/more/events/${other.event}`}>
          {words.alsoTold}
        </a>
      ))}
    </>
  );
}

function Times({ item }: { item: NonNullable<Trace["work_item"]> }) {
  const words = s.words.value;
  const times: [string, string | null][] = [
    [words.atReceived, item.received_at],
    [words.atDelivered, item.delivered_at],
    [words.atRead, item.read_at],
    [words.atDone, item.done_at],
  ];
  return (
    <>
      {times.map(([name, at]) => (
        <span key={name} class="meta">
          {name} {at === null ? "–" : when(at)}
        </span>
      ))}
    </>
  );
}
