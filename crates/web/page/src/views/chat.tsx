// The conversation: messages with the state of each from its record, cards in line, and what this
// device has not been able to send yet. New content is added below and never takes the focus.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { discard, sendMessage, takeBack } from "../actions.js";
import { dayKey, dayWords, langOf, timeWords } from "../clock.js";
import { readEarlier } from "../live.js";
import { OUTBOX_ITEMS_MAX, textFits, type MessageItem } from "../outbox.js";
import * as s from "../state.js";
import { cardEntries, looseActions, looseProposals } from "../sync.js";
import type { About, Entry } from "../types.js";
import { actionNamed, entryStateWords } from "../words.js";
import { ActionCard } from "./action.js";
import { Card } from "./card.js";
import { SendIcon } from "./icons.js";

/** Closer to the end than this, the view follows new messages. */
const FOLLOW_PX = 80;

export function Chat() {
  const words = s.words.value;
  const log = useRef<HTMLDivElement>(null);
  const follow = useRef(true);
  const [away, setAway] = useState(false);
  const waiting = s.outbox.value.items.filter((item) => item.kind === "message");
  const loose = looseProposals(s.proposals.value.values(), s.entries.value);
  const looseActs = looseActions(s.actions.value.values(), s.entries.value);
  const toEnd = () => log.current?.scrollTo({ top: log.current.scrollHeight });
  useLayoutEffect(() => {
    if (follow.current) toEnd();
  });
  useEffect(() => {
    const settle = new ResizeObserver(() => {
      if (follow.current) toEnd();
    });
    if (log.current) settle.observe(log.current);
    return () => settle.disconnect();
  }, []);
  const onScroll = () => {
    const view = log.current;
    if (view === null) return;
    follow.current = view.scrollHeight - view.scrollTop - view.clientHeight < FOLLOW_PX;
    setAway(!follow.current);
  };
  const empty = s.loaded.value && s.entries.value.length + waiting.length + loose.length + looseActs.length === 0;
  return (
    <div class="chat">
      <div
        class="log"
        ref={log}
        onScroll={onScroll}
        tabIndex={0}
        role="log"
        aria-live="polite"
        aria-label={words.chatLog}
      >
        <div class="column">
          {s.readProblem.value !== null && (
            <p class="fault">{words.rereadFailed(s.readProblem.value)}</p>
          )}
          {s.moreBefore.value && (
            <button type="button" class="text earlier" onClick={() => void readEarlier()}>
              {words.earlier}
            </button>
          )}
          {empty && <p class="empty">{words.chatEmpty}</p>}
          <Entries entries={s.entries.value} />
          {loose.map((proposal) => (
            <Card key={proposal.id} proposal={proposal} />
          ))}
          {looseActs.map((action) => (
            <ActionCard key={action.id} action={action} />
          ))}
          {waiting.map((item) => (
            <Unsent key={item.id} item={item} />
          ))}
        </div>
      </div>
      {away && (
        <button
          type="button"
          class="newest"
          onClick={() => {
            follow.current = true;
            toEnd();
          }}
        >
          {words.toNewest}
        </button>
      )}
      <Composer
        onSent={() => {
          follow.current = true;
        }}
      />
    </div>
  );
}

function Entries({ entries }: { entries: Entry[] }) {
  let day = "";
  const cards = cardEntries(entries);
  return (
    <>
      {entries.map((entry) => {
        const key = dayKey(entry.at, s.zone.value);
        const opens = key !== day;
        day = key;
        return [
          opens && <DayLine key={`day ${entry.id}`} at={entry.at} />,
          <Message key={entry.id} entry={entry} holdsCard={cards.has(entry.id)} />,
        ];
      })}
    </>
  );
}

function DayLine({ at }: { at: string }) {
  const today = dayKey(at, s.zone.value) === dayKey(s.now.value, s.zone.value);
  const day = dayWords(at, s.now.value, s.zone.value, s.lang.value);
  return (
    <p class="day">
      <span>{today ? `${s.words.value.today} · ${day}` : day}</span>
    </p>
  );
}

/** `holdsCard`: the card of its action stands here. It says all that the notice says, and more. */
function Message({ entry, holdsCard }: { entry: Entry; holdsCard: boolean }) {
  const words = s.words.value;
  const proposal = entry.proposal === null ? undefined : s.proposals.value.get(entry.proposal);
  const duty = entry.duty === null ? undefined : s.duties.value.get(entry.duty);
  const action =
    entry.action === null || !holdsCard ? undefined : s.actions.value.get(entry.action);
  const shows = entry.text !== "" || proposal === undefined;
  return (
    <>
      {shows && (
        <div class={`message from-${entry.kind}`}>
          <span class="reader">{words.speaker[entry.kind]}</span>
          {entry.about !== null && (
            <p class="meta about">{words.askedAbout(cardName(entry.about))}</p>
          )}
          {action === undefined && (
            <p class="bubble" lang={langOf(entry.text)}>
              {entry.text}
            </p>
          )}
          <p class="meta">
            <time dateTime={entry.at}>{timeWords(entry.at, s.zone.value, s.lang.value)}</time>
            {entry.late && <span class="late"> · {words.late}</span>}
            <StateWords entry={entry} />
            {duty && (
              <>
                {" "}
                ·{" "}
                <a href={`#/duties/${duty.id}`} lang={langOf(duty.title)}>
                  {duty.title}
                </a>
              </>
            )}
          </p>
        </div>
      )}
      {proposal && <Card proposal={proposal} />}
      {action && <ActionCard action={action} />}
    </>
  );
}

/** How a card is called in a line. */
function cardName(about: About): string {
  const words = s.words.value;
  if ("action" in about) {
    const action = s.actions.value.get(about.action);
    return action === undefined ? words.askedAboutCard : actionNamed(action, words);
  }
  return s.proposals.value.get(about.proposal)?.title ?? words.askedAboutCard;
}

function StateWords({ entry }: { entry: Entry }) {
  const tone =
    entry.state === "uncertain"
      ? "unknown"
      : entry.state === "failed" || entry.state === "dropped"
        ? "bad"
        : "";
  return <span class={tone}> · {entryStateWords(entry, s.words.value)}</span>;
}

function Unsent({ item }: { item: MessageItem }) {
  const words = s.words.value;
  return (
    <div class="message from-user unsent">
      <span class="reader">{words.speaker.user}</span>
      <p class="bubble" lang={langOf(item.text)}>
        {item.text}
      </p>
      {item.state === "refused" ? (
        <div class="refused">
          <p class="meta bad">
            {words.notSentStay} · {item.why}
          </p>
          <button type="button" class="text" onClick={() => takeBack(item)}>
            {words.takeBack}
          </button>
          <button type="button" class="text" onClick={() => discard(item.id)}>
            {words.discard}
          </button>
        </div>
      ) : (
        <p class="meta">
          {item.state === "sent"
            ? `${timeWords(item.at, s.zone.value, s.lang.value)} · ${words.user.received}`
            : words.notSent}
        </p>
      )}
    </div>
  );
}

function Composer({ onSent }: { onSent: () => void }) {
  const words = s.words.value;
  const field = useRef<HTMLTextAreaElement>(null);
  const [note, setNote] = useState("");
  const text = s.draft.value;
  useLayoutEffect(() => {
    const area = field.current;
    if (area === null) return;
    area.style.height = "auto";
    area.style.height = `${Math.min(area.scrollHeight, 160)}px`;
  }, [text]);
  const send = () => {
    const tidy = text.trim();
    if (tidy === "") return;
    onSent();
    if (sendMessage(tidy)) {
      s.setDraft("");
      setNote("");
    } else {
      const full = textFits(tidy) && s.outbox.value.items.length >= OUTBOX_ITEMS_MAX;
      setNote(full ? words.outboxFull : words.tooLong);
    }
    field.current?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    // While a Chinese input method composes, Enter belongs to it.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  };
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      {note !== "" && (
        <p class="note warn" role="status">
          {note}
        </p>
      )}
      {s.askingAbout.value !== null && (
        <p class="about-card">
          <span class="meta">{words.askedAbout(cardName(s.askingAbout.value))}</span>
          <button
            type="button"
            class="text"
            onClick={() => {
              s.askingAbout.value = null;
            }}
          >
            {words.askNever}
          </button>
        </p>
      )}
      <div class="composer-row">
        <textarea
          ref={field}
          rows={1}
          value={text}
          aria-label={words.composer}
          placeholder={words.composerHint}
          onKeyDown={onKeyDown}
          onInput={(event) => s.setDraft(event.currentTarget.value)}
        />
        <button
          type="submit"
          class="send"
          aria-label={words.send}
          title={words.send}
          disabled={text.trim() === ""}
        >
          <SendIcon />
        </button>
      </div>
    </form>
  );
}
