// This month in figures and its cap, the devices, the look and language of the page, this device.

import { useState } from "preact/hooks";
import { chooseLang, forgetPairing } from "../actions.js";
import { numberWords, usdWords, type Lang } from "../clock.js";
import * as s from "../state.js";
import type { Me } from "../types.js";
import { Cap } from "./cap.js";
import { DecisionLog } from "./decisions.js";
import { Devices } from "./devices.js";
import { EventTrace, Sources } from "./sources.js";

export function More({ event }: { event: string | null }) {
  const words = s.words.value;
  const me = s.me.value;
  if (event !== null) {
    return (
      <div class="more">
        <EventTrace key={event} event={event} />
      </div>
    );
  }
  return (
    <div class="more">
      <h1 class="reader">{words.tabMore}</h1>
      {me !== null && <Month me={me} />}
      <Sources />
      <Devices />
      <DecisionLog />
      <section class="block">
        <h3>{words.look}</h3>
        <Choice
          name="look"
          value={s.look.value}
          choose={s.setLook}
          options={[
            ["system", words.lookSystem],
            ["light", words.lookLight],
            ["dark", words.lookDark],
          ]}
        />
        <h3>{words.language}</h3>
        <Choice<Lang>
          name="language"
          value={s.lang.value}
          choose={(language) => void chooseLang(language)}
          options={[
            ["en", "English"],
            ["zh", "中文"],
          ]}
        />
      </section>
      <section class="block">
        <h3>{words.device}</h3>
        {me !== null && (
          <dl class="figures">
            <div>
              <dt>{words.owner}</dt>
              <dd>{me.name}</dd>
            </div>
            <div>
              <dt>{words.zone}</dt>
              <dd>{me.zone}</dd>
            </div>
            <div>
              <dt>{words.server}</dt>
              <dd>{location.host}</dd>
            </div>
          </dl>
        )}
        <Forget />
      </section>
      <p class="meta">
        <a class="licences" href="/licences.txt">
          {words.licences}
        </a>
      </p>
    </div>
  );
}

function Month({ me }: { me: Me }) {
  const words = s.words.value;
  const count = (value: number) => numberWords(value, s.lang.value);
  const month = me.month;
  const cost =
    month.cap_micro_usd === null
      ? usdWords(month.micro_usd)
      : words.ofCap(usdWords(month.micro_usd), usdWords(month.cap_micro_usd));
  return (
    <section class="block">
      <h3>{words.month}</h3>
      <dl class="figures">
        <div>
          <dt>{words.cost}</dt>
          <dd>{cost}</dd>
        </div>
        <div>
          <dt>{words.wakeups}</dt>
          <dd>{count(month.wakeups)}</dd>
        </div>
        <div>
          <dt>{words.calls}</dt>
          <dd>{count(month.model_calls)}</dd>
        </div>
        <div>
          <dt>{words.input}</dt>
          <dd>{count(month.input_tokens)}</dd>
        </div>
        <div>
          <dt>{words.cached}</dt>
          <dd>{count(month.cached_tokens)}</dd>
        </div>
        <div>
          <dt>{words.output}</dt>
          <dd>{count(month.output_tokens)}</dd>
        </div>
      </dl>
      <Cap cap={month.cap_micro_usd} />
    </section>
  );
}

interface ChoiceOf<T extends string> {
  name: string;
  value: T;
  choose: (value: T) => void;
  options: [T, string][];
}

function Choice<T extends string>({ name, value, choose, options }: ChoiceOf<T>) {
  return (
    <div class="choice" role="radiogroup" aria-label={name}>
      {options.map(([option, text]) => (
        <label key={option}>
          <input
            type="radio"
            name={name}
            checked={option === value}
            onChange={() => choose(option)}
          />
          <span>{text}</span>
        </label>
      ))}
    </div>
  );
}

function Forget() {
  const words = s.words.value;
  const [asking, setAsking] = useState(false);
  if (!asking) {
    return (
      <button type="button" class="outline" onClick={() => setAsking(true)}>
        {words.forget}
      </button>
    );
  }
  return (
    <div class="control asking" role="group" aria-label={words.forget}>
      <p>{words.forgetWhat}</p>
      <div class="buttons">
        <button type="button" class="outline" onClick={() => setAsking(false)}>
          {words.forgetNo}
        </button>
        <button type="button" class="outline strong" onClick={forgetPairing}>
          {words.forgetYes}
        </button>
      </div>
    </div>
  );
}
