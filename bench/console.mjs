// Frames of the console in a browser: console.mjs URL, tokens and how many jobs wait as JSON on standard input. Called by console.py.
//
// Frames are measured in the page, by requestAnimationFrame; processor time is what the page's thread had (Chromium's own count of its
// tasks). The map's answers are changed on their way in, more than 5,000 letters a second: no scheduler moves so much.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { gzipSync } from "node:zlib";

const require = createRequire(path.join(process.env.STINT_NPM, "x.js"));
const { chromium } = require("playwright-core");
const url = process.argv[2], { tokens, waiting } = JSON.parse(readFileSync(0, "utf8"));
const SECONDS = Number(process.env.SECONDS ?? 10), CHANGES = 6500; // of an answer: a little less than one comes each second

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
const wrong = [];

async function open() {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } }), page = await context.newPage();
  page.setDefaultTimeout(300000);
  page.on("pageerror", (e) => wrong.push(e.message));
  await page.addInitScript((changes) => {
    const real = globalThis.fetch, letters = "wwwwwm.pt";
    let seed = 1;
    globalThis.changedLetters = 0;
    globalThis.fetch = async (where, options) => {
      const answer = await real(where, options);
      if (where !== "/v1/devices" || !answer.ok) return answer;
      const doc = await answer.json(), all = doc.devices.split("");
      for (let i = 0; i < changes && all.length; i++) {
        seed = (seed * 1103515245 + 12345) & 0x7fffffff;
        all[seed % all.length] = letters[(seed >> 8) % letters.length];
      }
      globalThis.changedLetters += changes;
      doc.devices = all.join("");
      return new Response(JSON.stringify(doc), { headers: { "Content-Type": "application/json" } });
    };
  }, CHANGES);
  return page;
}

async function login(page) {
  const answer = await fetch(`${url}/v1/session/code`, { method: "POST", headers: { Authorization: `Bearer ${tokens.owner}` } });
  await page.goto(`${url}/#code=${(await answer.json()).code}`);
  await page.locator("nav").waitFor();
}

/** Frames for so many seconds, with `each` (of the page) at every one. */
async function frames(page, what, each) {
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" }); // of a processor: on a busy machine time passes without work
  const work = async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    return Object.fromEntries(metrics.map((m) => [m.name, m.value]));
  };
  const before = await work(), letters = await page.evaluate(() => globalThis.changedLetters ?? 0);
  const times = await page.evaluate(async ([seconds, step]) => {
    const grid = step && document.querySelector(".grid"), list = [];
    await new Promise((done) => {
      const begun = performance.now();
      let last = begun;
      const turn = (now) => {
        if (now > last) list.push(now - last);
        last = now;
        if (grid) grid.scrollTop = (grid.scrollTop + step) % Math.max(1, grid.scrollHeight - grid.clientHeight);
        if (now - begun < seconds * 1000) requestAnimationFrame(turn);
        else done();
      };
      requestAnimationFrame(turn);
    });
    return list.sort((a, b) => a - b);
  }, [SECONDS, each ?? 0]);
  const after = await work(), at = (p) => times[Math.min(times.length - 1, Math.floor(times.length * p))].toFixed(1);
  const mean = (name) => (1000 * (after[name] - before[name]) / times.length).toFixed(1);
  const changed = ((await page.evaluate(() => globalThis.changedLetters ?? 0)) - letters) / SECONDS;
  console.log(`${what}: ${times.length} frames, p50 ${at(0.5)} ms, p95 ${at(0.95)}, p99 ${at(0.99)}, worst ${at(1)}; ${(100 * times.filter((t) => t > 34).length / times.length).toFixed(1)} % later than 34 ms; ` +
    `processor time a frame ${mean("TaskDuration")} ms (scripts ${mean("ScriptDuration")}, styles ${mean("RecalcStyleDuration")}, layout ${mean("LayoutDuration")})${changed ? `; ${changed.toFixed(0)} letters changed a second` : ""}`);
  await session.detach();
}

async function firstPaint() {
  const page = await open();
  const begun = Date.now();
  await page.goto(url);
  await page.locator("#token").waitFor();
  const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
  console.log(`first paint ${paint?.toFixed(0)} ms, the login page in ${Date.now() - begun} ms`);
  const files = await page.evaluate(() => performance.getEntriesByType("resource").map((r) => r.name).filter((n) => n.includes("/console/")));
  let size = 0;
  for (const name of files) size += gzipSync(Buffer.from(await (await fetch(name)).arrayBuffer())).length;
  console.log(`${(size / 1000).toFixed(0)} kB compressed in ${files.length} files`);
  await page.context().close();
}

try {
  const idle = await browser.newPage();
  await frames(idle, "an empty page");
  await idle.close();
  await firstPaint();
  const page = await open();
  await login(page);
  let begun = Date.now();
  await page.evaluate(() => { location.hash = "#/fleet"; });
  await page.locator("canvas").waitFor();
  await page.waitForFunction(() => !document.querySelector("[aria-busy]"));
  console.log(`the map is there after ${Date.now() - begun} ms`);
  await frames(page, "the map");

  begun = Date.now();
  await page.evaluate(() => { location.hash = "#/jobs?state=pending"; });
  await page.locator(".rows .row").first().waitFor();
  console.log(`the table's first rows are there after ${Date.now() - begun} ms`);
  begun = Date.now();
  await page.evaluate(async (most) => { // down to its end, as fast as it comes
    const grid = document.querySelector(".grid");
    const rows = () => Math.round(document.querySelector(".rows").offsetHeight / 32);
    for (const end = Date.now() + 240000; rows() < most && Date.now() < end;) {
      grid.scrollTop = grid.scrollHeight;
      await new Promise((r) => setTimeout(r, 20));
    }
    grid.scrollTop = 0;
  }, Math.min(30000, 0.9 * waiting));
  const rows = await page.evaluate(() => Math.round(document.querySelector(".rows").offsetHeight / 32));
  console.log(`${rows} rows are there after ${Date.now() - begun} ms`);
  await frames(page, "the table of jobs, scrolled 3 rows a frame", 97);
  const left = await page.evaluate(() => Math.round(document.querySelector(".rows").offsetHeight / 32));
  if (left < 0.9 * rows) throw new Error(`of ${rows} rows ${left} are left`);
  const heap = await page.evaluate(() => performance.memory?.usedJSHeapSize ?? 0);
  console.log(`the page has ${(heap / 1e6).toFixed(0)} MB of its own`);
  if (wrong.length) throw new Error(wrong.join("\n"));
} catch (e) {
  console.error(e.message, wrong.join("\n"));
  process.exitCode = 1;
} finally {
  await browser.close();
}
