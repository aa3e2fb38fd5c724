// On every screen: what needs the person, how fresh the page is, and the other language.

import { chooseLang } from "../actions.js";
import { timeWords } from "../clock.js";
import * as s from "../state.js";
import { HoldButton } from "./hold.js";
import { AskIcon, CheckIcon, CrossIcon, PlugIcon, WaitIcon } from "./icons.js";

export function Strip() {
  const words = s.words.value;
  const open = s.openProposals.value.length + s.askingActions.value.length;
  const other = s.lang.value === "en" ? "zh" : "en";
  return (
    <div class="strip">
      {open > 0 ? (
        <a class="needs" href="#/now">
          <AskIcon />
          {words.needsYou(open)}
        </a>
      ) : (
        <span class="calm">{s.loaded.value ? words.quietStrip : ""}</span>
      )}
      <LinkState />
      <button
        type="button"
        class="lang"
        lang={other === "zh" ? "zh-CN" : "en"}
        title={words.otherLangLabel}
        onClick={() => void chooseLang(other)}
      >
        {words.otherLang}
      </button>
      <HoldButton />
    </div>
  );
}

function LinkState() {
  const words = s.words.value;
  const { state, asOf } = s.link.value;
  if (s.plugged.value) {
    return (
      <span class="link link-plug" role="status">
        <PlugIcon />
        {words.plugged}
      </span>
    );
  }
  const at = asOf === null ? null : timeWords(asOf, s.zone.value, s.lang.value);
  switch (state) {
    case "live":
      return (
        <span class="link" role="status" title={words.live}>
          <CheckIcon />
          <span class="link-word">{words.live}</span>
        </span>
      );
    case "connecting":
      return (
        <span class="link" role="status">
          <WaitIcon />
          {words.connecting}
        </span>
      );
    case "down":
      return (
        <span class="link link-down" role="status">
          <CrossIcon />
          {at === null ? words.offlineNever : words.offline(at)}
        </span>
      );
  }
}
