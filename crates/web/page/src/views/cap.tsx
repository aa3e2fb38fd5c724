// What a month may cost: shown with the month, and changed here.

import { useState } from "preact/hooks";
import { setCap } from "../actions.js";
import { microOf } from "../clock.js";
import * as s from "../state.js";

export function Cap({ cap }: { cap: number | null }) {
  const words = s.words.value;
  const [typed, setTyped] = useState<string | null>(null);
  if (typed === null) {
    return (
      <button
        type="button"
        class="outline"
        onClick={() => setTyped(cap === null ? "" : String(cap / 1_000_000))}
      >
        {words.capEdit}
      </button>
    );
  }
  const leave = () => {
    setTyped(null);
    s.capNote.value = null;
  };
  const submit = (event: Event) => {
    event.preventDefault();
    const micro = microOf(typed);
    if (micro === null) s.capNote.value = words.capShape;
    else void setCap(micro).then((done) => done && leave());
  };
  return (
    <form class="control asking" onSubmit={submit}>
      <label for="cap">{words.capLabel}</label>
      <input
        id="cap"
        inputMode="decimal"
        autocomplete="off"
        maxLength={16}
        value={typed}
        aria-describedby="cap-note"
        onInput={(event) => setTyped(event.currentTarget.value)}
      />
      <p class="meta">{words.capWhat}</p>
      <div class="buttons">
        <button type="button" class="outline" onClick={leave}>
          {words.capNo}
        </button>
        <button type="submit" class="outline strong">
          {words.capYes}
        </button>
      </div>
      <p id="cap-note" class="note warn" role="status">
        {s.capNote.value ?? ""}
      </p>
    </form>
  );
}
