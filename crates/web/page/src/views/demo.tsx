// Only in the demo: the virtual clock, the plug, and at the end what it all came to.

import { pullPlug } from "../actions.js";
import { dayWords, numberWords, timeWords } from "../clock.js";
import * as s from "../state.js";
import type { DemoSummary } from "../types.js";
import { PlugIcon } from "./icons.js";

export function DemoStrip() {
  const story = s.demo.value;
  if (story === null) return null;
  const words = s.words.value;
  const zone = s.zone.value;
  const lang = s.lang.value;
  const restarting = s.plugged.value || s.link.value.state !== "live";
  const now = Date.parse(story.virtual_now);
  return (
    <section class="demo" aria-label={words.demoLabel}>
      <div class="demo-row">
        <div class="demo-clock">
          <p>
            <strong>{words.demoDay(story.day, story.of_days)}</strong>
            <span class="demo-hour">{timeWords(now, zone, lang)}</span>
          </p>
          <p class="demo-date">
            <span>{dayWords(now, now, zone, lang)}</span>
            <span>{words.plugs(story.plugs)}</span>
          </p>
        </div>
        {!story.done && (
          <button
            type="button"
            class="plug"
            title={words.pullWhat}
            disabled={restarting}
            onClick={() => void pullPlug()}
          >
            <PlugIcon />
            {words.pull}
          </button>
        )}
      </div>
      <progress
        class="demo-bar"
        max={story.of_days}
        value={story.done ? story.of_days : progress(story.day, now, zone)}
        aria-label={words.demoDay(story.day, story.of_days)}
      />
      {story.done && story.summary ? (
        <Summary summary={story.summary} />
      ) : (
        story.story !== "" && <p class="demo-story">{story.story}</p>
      )}
    </section>
  );
}

/** Whole days behind, plus the part of this one: hours count, so the bar moves steadily. */
function progress(day: number, now: number, zone: string): number {
  const [hours = 0, minutes = 0] = timeWords(now, zone, "en").split(":").map(Number);
  return day - 1 + (hours * 60 + minutes) / 1440;
}

function Summary({ summary }: { summary: DemoSummary }) {
  const words = s.words.value;
  const figures: [string, number, string][] = [
    [words.sumWakeups, summary.wakeups, ""],
    [words.sumCalls, summary.model_calls, ""],
    [words.sumMessages, summary.messages, ""],
    [words.sumPlugs, summary.plugs, ""],
    [words.sumLost, summary.lost, summary.lost === 0 ? "good" : "bad"],
    [words.sumDoubled, summary.doubled, summary.doubled === 0 ? "good" : "bad"],
  ];
  return (
    <div class="summary" role="status">
      <p class="summary-title">{words.demoDone}</p>
      <dl>
        {figures.map(([name, count, tone]) => (
          <div key={name} class={tone}>
            <dt>{name}</dt>
            <dd>{numberWords(count, s.lang.value)}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}
