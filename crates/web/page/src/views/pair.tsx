// Pairing: a one-time code, from the address or typed. A code grants nothing by itself twice.

import { useState } from "preact/hooks";
import { pair } from "../actions.js";
import * as s from "../state.js";
import { tidyCode } from "../words.js";

/** A first name for this device from what the browser says of itself; the person may change it. */
export function deviceName(): string {
  const agent = navigator.userAgent;
  const browser = /Firefox/.test(agent)
    ? "Firefox"
    : /Edg\//.test(agent)
      ? "Edge"
      : /Chrome|Chromium/.test(agent)
        ? "Chrome"
        : /Safari/.test(agent)
          ? "Safari"
          : "Browser";
  const system = /Android/.test(agent)
    ? "Android"
    : /iPhone|iPad/.test(agent)
      ? "iPhone"
      : /Mac OS/.test(agent)
        ? "Mac"
        : /Windows/.test(agent)
          ? "Windows"
          : "Linux";
  return `${browser} · ${system}`;
}

export function Pair() {
  const words = s.words.value;
  const [name, setName] = useState(deviceName());
  const note = s.pairNote.value;
  const busy = note === "busy";
  const other = s.lang.value === "en" ? "zh" : "en";
  const submit = (event: Event) => {
    event.preventDefault();
    const tidy = tidyCode(s.typedCode.value);
    if (tidy === null) s.pairNote.value = "shape";
    else void pair(tidy, name.trim() || deviceName());
  };
  return (
    <main class="pair">
      <div class="pair-top">
        <span class="brand">Adjutant</span>
        <button
          type="button"
          class="lang"
          lang={other === "zh" ? "zh-CN" : "en"}
          title={words.otherLangLabel}
          onClick={() => s.setLang(other)}
        >
          {words.otherLang}
        </button>
      </div>
      <form class="pair-card" onSubmit={submit}>
        <h1>{words.pairTitle}</h1>
        <p>{words.pairLead}</p>
        <p class="meta">{words.pairHow}</p>
        <label for="code">{words.pairCode}</label>
        <input
          id="code"
          class="code"
          value={s.typedCode.value}
          placeholder="ABCD-EFGH"
          autocomplete="off"
          autocapitalize="characters"
          spellcheck={false}
          maxLength={12}
          disabled={busy}
          aria-describedby="pair-note"
          onInput={(event) => {
            s.typedCode.value = event.currentTarget.value.toUpperCase();
          }}
        />
        <label for="name">{words.pairName}</label>
        <input
          id="name"
          value={name}
          maxLength={60}
          autocomplete="off"
          disabled={busy}
          onInput={(event) => setName(event.currentTarget.value)}
        />
        <button type="submit" class="effect" disabled={busy}>
          {busy ? words.pairing : words.pairButton}
        </button>
        <p id="pair-note" class={note === null || busy ? "note" : "note warn"} role="status">
          {noteWords()}
        </p>
      </form>
    </main>
  );
}

function noteWords(): string {
  const words = s.words.value;
  switch (s.pairNote.value) {
    case null:
    case "busy":
      return "";
    case "refused":
      return words.pairRefused;
    case "unreachable":
      return words.pairUnreachable;
    case "revoked":
      return words.pairRevoked;
    case "shape":
      return words.pairShape;
  }
}
