// The page in a real browser against the stand-in server: what must hold while the plug is out.
// Usage: npm run build, npm install --no-save playwright-core, node dev/flow.mjs [folder for
// pictures] The browser is CHROMIUM or /usr/bin/chromium. Ends with 1 if anything does not hold.

import { spawn } from "node:child_process";
import { chromium } from "playwright-core";

const port = Number(process.env.PORT ?? 7179);
const base = `http://127.0.0.1:${port}/`;
const pictures = process.argv[2];
const server = spawn(process.execPath, [new URL("mock.mjs", import.meta.url).pathname], {
  env: { ...process.env, PORT: String(port) },
  stdio: ["ignore", "pipe", "inherit"],
});
await new Promise((ready) => server.stdout.once("data", ready));
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
  ],
});

let failed = 0;
function check(name, holds, seen = "") {
  if (!holds) failed += 1;
  console.log(`${holds ? "ok  " : "FAIL"} ${name}${holds ? "" : ` ${seen}`}`);
}

async function open(width, height) {
  const context = await browser.newContext({ viewport: { width, height }, locale: "en-US" });
  const page = await context.newPage();
  page.on("pageerror", (error) => check("no error in the page", false, String(error)));
  page.on("console", (line) => {
    if (line.type() === "error" && /policy|trusted/i.test(line.text()))
      check("policy kept", false, line.text());
  });
  await page.goto(`${base}#code=ABCD-EFGH`);
  await page.waitForSelector(".message");
  return page;
}

const text = (page, selector) => page.textContent(selector);
const count = (page, words) =>
  page.$$eval(
    ".bubble",
    (all, start) => all.filter((bubble) => bubble.textContent.startsWith(start)).length,
    words,
  );
const pull = async (page) => {
  await page.click(".plug");
  await page.waitForSelector(".link-plug");
};
const connected = (page) =>
  page.waitForFunction(() => document.querySelector(".link")?.textContent === "Up to date", null, {
    timeout: 10_000,
  });
const say = async (page, words) => {
  await page.fill("textarea", words);
  await page.press("textarea", "Enter");
};

async function messages(phone, desk) {
  check("the code leaves the address", !phone.url().includes("code"), phone.url());
  await pull(phone);
  check("the strip says so", (await text(phone, ".link-plug")) === "Plug pulled · restarting…");
  await say(phone, "Written without power");
  await say(phone, "And a second one");
  check(
    "unsent is said",
    (await text(phone, ".unsent .meta")) === "Not sent yet – goes when connected",
  );
  if (pictures) await phone.screenshot({ path: `${pictures}/plug.png` });
  await phone.waitForFunction(() => !document.querySelector(".unsent"), null, { timeout: 10_000 });
  check("sent once", (await count(phone, "Written without power")) === 1);
  await phone.waitForTimeout(4_500);
  const lines = (page) => page.$$eval(".message", (all) => all.map((one) => one.innerText));
  const [a, b] = [await lines(phone), await lines(desk)];
  check(
    "two devices show the same",
    JSON.stringify(a) === JSON.stringify(b),
    JSON.stringify([a, b]),
  );
}

async function decisions(phone, desk) {
  await pull(desk);
  await desk.waitForTimeout(200);
  await desk.click(".card .effect");
  check(
    "no decision is kept for later",
    (await text(desk, ".decide .note")).startsWith("No connection"),
  );
  await connected(desk);
  await desk.click(".card .effect");
  await phone.waitForSelector(".card.settled", { timeout: 10_000 });
  check(
    "the other device sees it",
    (await text(phone, ".card .tag")) === "You agreed · the duty is started",
  );
  check("two effects are left to decide", (await text(phone, ".strip")).includes("Needs you: 2"));
}

/** A card takes no tap in its first moments, and again whenever it moved. */
const FRESH_MS = 800;

async function effects(phone, desk) {
  await connected(phone);
  await connected(desk);
  await phone.click('nav a[href="#/now"]');
  await phone.click(".card.act .effect");
  await phone.waitForTimeout(FRESH_MS);
  check("a fresh card takes no tap", (await phone.$$(".card.act .effect")).length === 1);
  await phone.click(".card.act .effect");
  await phone.waitForSelector(".countdown");
  if (pictures) await phone.screenshot({ path: `${pictures}/countdown.png` });
  await phone.waitForTimeout(FRESH_MS);
  await phone.click(".card.act .strong");
  await desk.waitForSelector(".card.act.settled", { timeout: 10_000 });
  check(
    "what is taken back is not sent, and every device says so",
    (await text(desk, ".card.act.settled .tag")) === "Stopped in time · not sent",
  );
  await phone.waitForTimeout(FRESH_MS);
  await phone.click(".three button");
  await phone.waitForFunction(
    () => document.querySelector(".strip")?.textContent.includes("Nothing needs you"),
    null,
    { timeout: 10_000 },
  );
  check("the person's word settles it", true);
  await phone.click('nav a[href="#/chat"]');
}

async function stops(phone) {
  await connected(phone);
  await phone.click('nav a[href="#/duties"]');
  await phone.click(".row");
  await pull(phone);
  await phone.waitForTimeout(200);
  await phone.click('.duty-head .outline:has-text("Stop")');
  await phone.click(".strong");
  check(
    "a stop is kept and said",
    (await text(phone, ".duty-head .note")) === "Not stopped yet – no connection",
  );
  await phone.waitForFunction(
    () => document.querySelector(".duty-state")?.textContent === "Stopped by you",
    null,
    { timeout: 10_000 },
  );
  check("and goes when connected", true);
}

async function reload(phone) {
  await connected(phone);
  await phone.click('nav a[href="#/chat"]');
  await pull(phone);
  await say(phone, "Kept over a reload");
  await phone.waitForTimeout(2_500);
  await phone.reload();
  await phone.waitForSelector(".message");
  await connected(phone);
  await phone.waitForTimeout(500);
  check(
    "a reload loses nothing and doubles nothing",
    (await count(phone, "Kept over a reload")) === 1,
  );
}

async function sizes(page) {
  for (const [width, height] of [
    [320, 640],
    [390, 844],
    [768, 1024],
    [1100, 700],
    [1440, 900],
  ]) {
    await page.setViewportSize({ width, height });
    for (const tab of ["now", "chat", "duties", "more"]) {
      await page.click(`nav a[href="#/${tab}"]`);
      await page.waitForTimeout(80);
      const [wide, small] = await page.evaluate(() => [
        [...document.querySelectorAll("#app *")]
          .filter(
            (part) =>
              !part.closest(".reader") && part.getBoundingClientRect().right > innerWidth + 1,
          )
          .map((part) => part.className),
        [...document.querySelectorAll("button, summary, input, textarea, nav a, .row")]
          .filter(
            (part) =>
              // The area around this one that takes a tap is 48 px high.
              !part.matches(".hold") &&
              part.getBoundingClientRect().width > 0 &&
              part.getBoundingClientRect().height < 48,
          )
          .map((part) => part.className),
      ]);
      check(
        `${width} ${tab}: all in view, targets of 48 px`,
        wide.length + small.length === 0,
        JSON.stringify([wide, small]),
      );
      if (pictures) await page.screenshot({ path: `${pictures}/${width}-${tab}.png` });
    }
  }
}

try {
  const [phone, desk] = [await open(390, 844), await open(1440, 900)];
  await messages(phone, desk);
  await decisions(phone, desk);
  await effects(phone, desk);
  await stops(phone);
  await reload(phone);
  await sizes(phone);
} finally {
  await browser.close();
  server.kill();
}
process.exit(failed === 0 ? 0 : 1);
