// Plays the demo as a person would, in a real browser, on a phone and on a desk: says yes to the
// cards, pulls the plug twice, waits for the end, and reads there that nothing was lost or doubled.
//
//   node tests/browser/demo.mjs ADJUTANT [SCREENSHOT FOLDER]
//
// Ends with 0 if every size passed. ADJUTANT_DEMO_COMMAND (words between blanks) runs something else
// than `ADJUTANT demo --listen 127.0.0.1:0`; it has to print `open: http…` too.

import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { chromium } from "playwright-core";

const SIZES = [
  { name: "phone", width: 390, height: 844 },
  { name: "desk", width: 1440, height: 900 },
];
const PLUGS = 2;
const START_MS_MAX = 20_000;
const DEMO_MS_MAX = 240_000;
const LOOK_EVERY_MS = 250;
/** Between two plugs something has to happen that the second can interrupt. */
const BETWEEN_PLUGS_MS = 3_000;
/** A card takes no tap in its first moments, so that one meant for something else decides nothing. */
const CARD_FRESH_MS = 800;

/** Everything this test touches: a test id, or what the page calls it. */
const at = {
  composer: '[data-testid="composer"], form.composer textarea',
  confirm: '[data-testid="card-confirm"], .card.open button.effect',
  duties: '[data-testid="tab-duties"], nav a[href="#/duties"]',
  entry: '[data-testid="entry"], .message',
  plug: '[data-testid="plug"], button.plug',
  state: '[data-testid="state"], .row-state',
  summary: '[data-testid="summary"], .summary',
};

const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];

/** Fails the test with words that say what was seen. */
function demand(holds, words) {
  if (!holds) throw new Error(words);
}

/** Starts the demo; answers its process and the address it prints. */
async function startDemo(binary, folder) {
  const command = process.env.ADJUTANT_DEMO_COMMAND?.split(" ") ?? [binary, "demo", "--listen", "127.0.0.1:0"];
  const child = spawn(command[0], command.slice(1), {
    stdio: ["ignore", "pipe", "inherit"],
    // A group of its own, so that what the demo starts again after a plug ends with it.
    detached: true,
    env: { ...process.env, TMPDIR: folder },
  });
  const opened = new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", (code) => reject(new Error(`the demo ended with ${code} before its address was known`)));
    createInterface({ input: child.stdout }).on("line", (line) => {
      const address = /^open: (http\S+)/.exec(line)?.[1];
      if (address !== undefined) resolve(address);
    });
  });
  const late = pause(START_MS_MAX, undefined, { ref: false }).then(() => {
    throw new Error(`no line "open: http…" within ${START_MS_MAX} ms`);
  });
  return { child, address: await Promise.race([opened, late]).catch((error) => { stopDemo(child); throw error; }) };
}

function stopDemo(child) {
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch (error) {
    if (error.code !== "ESRCH") throw error;
  }
}

/** Taps what may be tapped until the summary stands there. */
async function play(page, shot) {
  const began = Date.now();
  let plugs = 0;
  let plugged = 0;
  let confirmed = 0;
  let cardSince = null;
  const summary = page.locator(at.summary).first();
  while (!(await summary.isVisible())) {
    demand(Date.now() - began < DEMO_MS_MAX, `no summary within ${DEMO_MS_MAX} ms: ${plugs} plugs, ${confirmed} cards`);
    const card = page.locator(at.confirm).first();
    const shown = await card.isVisible();
    cardSince = shown ? cardSince ?? Date.now() : null;
    if (cardSince !== null && Date.now() - cardSince > CARD_FRESH_MS) {
      await shot(`card-${confirmed + 1}`);
      await card.click();
      confirmed += 1;
      cardSince = null;
    }
    const plug = page.locator(at.plug).first();
    const ready = confirmed > 0 && plugs < PLUGS && Date.now() - plugged > BETWEEN_PLUGS_MS;
    if (ready && (await plug.isVisible()) && (await plug.isEnabled())) {
      await plug.click();
      plugs += 1;
      plugged = Date.now();
      await shot(`plug-${plugs}`);
    }
    await pause(LOOK_EVERY_MS);
  }
  demand(confirmed > 0, "no card was shown to be confirmed");
  demand(plugs === PLUGS, `the demo ended before the plug could be pulled ${PLUGS} times: ${plugs}`);
}

/** The figures of the summary by their names, as a person reads them. */
async function figures(page) {
  const pairs = await page.locator(at.summary).first().locator("dl > div").evaluateAll((rows) =>
    rows.map((row) => [row.querySelector("dt")?.textContent ?? "", row.querySelector("dd")?.textContent ?? ""]));
  return new Map(pairs.map(([name, count]) => [name.trim().toLowerCase(), count.trim()]));
}

function figure(all, word) {
  const found = [...all].filter(([name]) => name.includes(word));
  demand(found.length === 1, `no single figure "${word}" in the summary: ${JSON.stringify([...all])}`);
  return found[0][1];
}

/** What a person sees afterwards: a conversation, duties in words, nothing wider than the screen. */
async function lookAround(page, size, shot) {
  demand((await page.locator(at.entry).count()) > 0, "the conversation is empty");
  demand(await page.locator(at.composer).first().isVisible(), "there is nowhere to write");
  await shot("end");
  await page.locator(at.duties).first().click();
  await page.locator(at.state).first().waitFor({ state: "attached", timeout: START_MS_MAX });
  await shot("duties");
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  demand(width <= size.width, `the page is ${width} px wide on a screen of ${size.width}`);
}

async function playAt(size, binary, screenshots) {
  const folder = mkdtempSync(join(tmpdir(), "adjutant-demo-"));
  const problems = [];
  let demo = null;
  let browser = null;
  try {
    demo = await startDemo(binary, folder);
    browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS });
    const { width, height } = size;
    const page = await browser.newPage({ viewport: { width, height }, locale: "en-GB", hasTouch: size.name === "phone" });
    page.on("pageerror", (error) => problems.push(String(error)));
    const shot = (name) => page.screenshot({ path: join(screenshots, `demo-${size.name}-${name}.png`) });
    await page.goto(demo.address);
    demand(!page.url().includes("code="), "the pairing code is still in the address");
    await page.locator(at.composer).first().waitFor({ timeout: START_MS_MAX });
    await shot("start");
    await play(page, shot);
    const all = await figures(page);
    await lookAround(page, size, shot);
    for (const word of ["lost", "doubl"]) demand(figure(all, word) === "0", `${word}: ${figure(all, word)}, expected 0`);
    demand(problems.length === 0, `errors on the page: ${problems.join("; ")}`);
    console.log(`demo at ${width}×${height}: ok, ${JSON.stringify(Object.fromEntries(all))}`);
  } finally {
    await browser?.close();
    if (demo !== null) stopDemo(demo.child);
    rmSync(folder, { recursive: true, force: true });
  }
}

const [binary, screenshots = "target/screenshots"] = process.argv.slice(2);
if (binary === undefined) throw new Error("usage: node tests/browser/demo.mjs ADJUTANT [SCREENSHOT FOLDER]");
mkdirSync(screenshots, { recursive: true });
let failures = 0;
for (const size of SIZES) {
  try {
    await playAt(size, binary, screenshots);
  } catch (error) {
    failures += 1;
    console.error(`demo at ${size.width}×${size.height}: FAILED: ${error.stack}`);
  }
}
process.exit(failures === 0 ? 0 : 1);
