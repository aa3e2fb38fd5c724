// Everything that waits for the person, the most urgent first, and what is under way outside.

import { useEffect } from "preact/hooks";
import { forgetNotes } from "../actions.js";
import { langOf, whenWords } from "../clock.js";
import * as s from "../state.js";
import { asks, isMoving, urgentFirst } from "../sync.js";
import type { Action } from "../types.js";
import { ActionCard, ActionRow } from "./action.js";
import { Card } from "./card.js";

const UNDER_WAY: ReadonlySet<Action["state"]> = new Set(["proposed", "dispatched", "unknown", "accepted"]);

export function Now() {
  const words = s.words.value;
  const actions = [...s.actions.value.values()];
  // A card that a tap came too late for stays with the server's words until this page is left.
  const noted = (id: string) => (s.decisions.value.get(id)?.note ?? null) !== null;
  const proposals = [...s.proposals.value.values()];
  const cards = urgentFirst(
    proposals.filter((proposal) => proposal.state === "open" || noted(proposal.id)),
    actions.filter((action) => asks(action) || (noted(action.id) && !isMoving(action))),
  );
  useEffect(() => forgetNotes, []);
  const leaving = actions.filter(isMoving);
  const moving = actions.filter((action) => UNDER_WAY.has(action.state) && !asks(action) && !noted(action.id));
  return (
    <div class="now">
      <h1 class="reader">{words.tabNow}</h1>
      {s.loaded.value && cards.length + leaving.length === 0 && <Quiet />}
      {leaving.map((action) => (
        <ActionCard key={action.id} action={action} />
      ))}
      {cards.map((card) =>
        card.kind === "action" ? (
          <ActionCard key={card.action.id} action={card.action} />
        ) : (
          <Card key={card.proposal.id} proposal={card.proposal} />
        ),
      )}
      {moving.length > 0 && (
        <section class="block">
          <h3>{words.nowMoving}</h3>
          <ul>
            {moving.map((action) => (
              <ActionRow key={action.id} action={action} />
            ))}
          </ul>
        </section>
      )}
    </div>
  );
}

/** Empty is the normal state: one line and one fact. */
function Quiet() {
  const words = s.words.value;
  const next = [...s.duties.value.values()]
    .filter((duty) => duty.next_wake !== null && duty.state === "active")
    .sort((a, b) => (a.next_wake ?? "").localeCompare(b.next_wake ?? ""))[0];
  return (
    <p class="empty">
      {words.nowEmpty}{" "}
      {next?.next_wake ? (
        <span lang={langOf(next.title)}>
          {words.nowNext(
            next.title,
            whenWords(next.next_wake, s.now.value, s.zone.value, s.lang.value),
          )}
        </span>
      ) : (
        words.nowNothingPlanned
      )}
    </p>
  );
}
