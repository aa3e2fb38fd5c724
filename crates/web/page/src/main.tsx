// Starts the page: takes a pairing code out of the address at once, follows the records while this
// device is paired, and draws.

import { effect } from "@preact/signals";
import { render } from "preact";
import { pair } from "./actions.js";
import { App } from "./app.js";
import { live, readDemo } from "./live.js";
import * as s from "./state.js";
import { deviceName } from "./views/pair.js";
import { codeInFragment } from "./words.js";
import "./style/theme.css";
import "./style/shell.css";
import "./style/chat.css";
import "./style/duties.css";
import "./style/sizes.css";

const DEMO_EVERY_MS = 1_000;
const TICK_MS = 15_000;

/** The code leaves address bar and history before anything else happens. */
function takeCode(): string | null {
  const code = codeInFragment(location.hash);
  if (location.hash.startsWith("#code=")) {
    history.replaceState(null, "", location.pathname);
    s.route.value = "";
  }
  return code;
}

/** A code counts only where no pairing holds: a browser already paired keeps its own. */
async function start(code: string | null): Promise<void> {
  if (code === null) return;
  if (s.pairing.value === null) return pair(code, deviceName());
  const once = effect(() => {
    if (s.pairing.value === null) setTimeout(() => void pair(code, deviceName()));
    else if (!s.loaded.value) return;
    setTimeout(() => once());
  });
}

effect(() => {
  document.documentElement.lang = s.lang.value === "zh" ? "zh-CN" : "en";
});
effect(() => {
  document.documentElement.dataset.look = s.look.value;
});

effect(() => {
  if (s.pairing.value === null) return;
  const stop = new AbortController();
  // Started outside the effect, so that what it reads does not start it again.
  queueMicrotask(() => void live(stop.signal));
  return () => stop.abort();
});

addEventListener("hashchange", () => {
  const code = takeCode();
  if (code === null) s.route.value = location.hash;
  else void start(code);
});
setInterval(() => {
  s.tick.value = Date.now();
}, TICK_MS);
setInterval(() => {
  const due = s.demo.value !== null && !s.demo.value.done && s.link.value.state === "live";
  if (due && document.visibilityState === "visible") readDemo().catch(() => undefined);
}, DEMO_EVERY_MS);

s.followOtherTabs();
const code = takeCode();
const root = document.getElementById("app");
if (root !== null) render(<App />, root);
void start(code);
