// How the person decided on cards, by tool: who releases everything at once no longer reads.

import { useEffect } from "preact/hooks";
import { readDecisions } from "../actions.js";
import * as s from "../state.js";

export function DecisionLog() {
  const words = s.words.value;
  useEffect(() => void readDecisions(), []);
  const log = s.decisionLog.value;
  if (log === null || log.length === 0) return null;
  return (
    <section class="block">
      <h3>{words.decisionLog}</h3>
      <ul>
        {log.map((one) => (
          <li key={one.tool}>
            {one.tool}
            <span class="meta">{words.decisionCounts(one.shown, one.approved, one.edited)}</span>
            <span class="meta">
              {words.decisionOthers(one.refused, one.expired)}
              {one.median_seconds !== null && ` · ${words.decisionMedian(one.median_seconds)}`}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
