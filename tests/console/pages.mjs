// The console in a real browser, as people use it: pages.mjs URL TOKENS. TOKENS is JSON, {"owner": …, "member": …}.
// Prints what it saw; the first thing that is not as it should be ends it with status 1.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const require = createRequire(path.join(process.env.STINT_NPM, "x.js"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const [url, tokensText] = process.argv.slice(2);
const tokens = JSON.parse(tokensText);
const EVIL = "<img/src=x/onerror=document.title='owned'><b>"; // names have no spaces
const PAGES = [["#/", "h1"], ["#/jobs", ".rows .row"], ["#/fleet", "canvas"], ["#/quota", ".tree tbody tr"], ["#/bill", ".big"],
  ["#/replay", "[data-at]:not(.stale)"],
  ["#/health?node=desk-ill", ".timeline li"], ["#/fleet?state=repair&node=desk-ill", "canvas"], ["#/neighbours", ".cases tbody tr"],
  ["#/submit", ".big"], ["#/calendar", ".week .day"], ["#/fleet?by=account&group=rack", "canvas"], ["#/fleet?by=utilisation", "canvas"], ["#/jobs?group=name", ".groups tbody tr"],
  ["#/site?tab=prices&edit=1", "caption"], ["#/site?tab=plans", "dl"], ["#/site", "table tbody tr"], ["#/site?tab=audit", "h2"], ["#/site?tab=prices", "caption"],
  ["#/team?name=answers", ".card table tbody tr"], ["#/team?tab=volumes&account=vision&name=sets", "svg.bar"], ["#/team?tab=notices&account=vision&name=hook", "dl"]];

function check(ok, sentence) {
  if (!ok) throw new Error(sentence);
}

async function api(token, method, where, body) {
  const answer = await fetch(url + where, {
    method, headers: { Authorization: `Bearer ${token}`, ...(body && { "Content-Type": "application/json" }) },
    body: body && JSON.stringify(body),
  });
  check(answer.ok, `${method} ${where}: ${answer.status} ${answer.ok ? "" : await answer.text()}`);
  return answer.status === 204 ? null : answer.json();
}

/** Asks again until there is an answer. */
async function until(ask, what) {
  for (const end = Date.now() + 60000; ; await new Promise((r) => setTimeout(r, 50))) {
    const said = await ask();
    if (said) return said;
    check(Date.now() < end, `still waiting for ${what}`);
  }
}

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox", "--disable-gpu", "--disable-software-rasterizer"] });
const wrong = [];
let expected = null; // what the console may complain about for a moment

async function open(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(60000);
  page.on("pageerror", (e) => wrong.push(`error: ${e.message}`));
  page.on("dialog", (d) => { wrong.push(`a dialog: ${d.message()}`); d.dismiss(); });
  page.on("console", (m) => {
    if (["error", "warning"].includes(m.type()) && !(expected && expected.test(`${m.text()} ${m.location().url}`))) wrong.push(`${m.type()}: ${m.text()} ${m.location().url}`);
  });
  return { context, page };
}

async function typeIn(page, token) {
  expected = /401/;
  await page.goto(url);
  await page.locator("#token").fill("stint_nonsense");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").filter({ hasText: "not valid" }).waitFor();
  await page.locator("#token").fill(token);
  await page.keyboard.press("Enter");
  await page.locator("nav").waitFor();
  expected = null;
}

async function byLink(page, token) {
  const { code } = await api(token, "POST", "/v1/session/code");
  expected = /401/;
  await page.goto(`${url}/#code=${code}`);
  await page.locator("nav").waitFor();
  expected = null;
  check(!(await page.evaluate(() => location.href)).includes(code), "the address still has the code");
}

async function accessible(page, what) {
  if (!(await page.evaluate(() => Boolean(globalThis.axe)))) await page.evaluate(axe);
  const found = await page.evaluate(() => globalThis.axe.run());
  check(found.violations.length === 0, `${what}: ${found.violations.map((v) => `${v.id}: ${v.nodes[0].html.slice(0, 200)}`).join("; ")}`);
}

async function everyPage(who, options, job) {
  const { context, page } = await open(options);
  await byLink(page, tokens[who]);
  const acts = !["viewer", "auditor"].includes(who); // others submit nothing, and may not ask what would happen if they did
  for (const [hash, sees] of [...PAGES.filter(([h]) => acts || h !== "#/submit"), [`#/jobs/${job}`, acts ? ".helps tbody tr" : "h1"]]) {
    await page.evaluate((h) => { location.hash = h; }, hash);
    await page.locator(sees).first().waitFor();
    await page.waitForFunction(() => !document.querySelector("[aria-busy]"));
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    check(wide <= 0, `${hash} is ${wide} px wider than the window of ${options.viewport?.width}`);
    check((await page.locator(".helps").getByText("Refused").count()) === 0, `${who} ${hash}: the job as it is would be refused`);
    await accessible(page, `${who} ${hash} ${options.colorScheme}`);
    if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/${who}-${hash.replace(/\W+/g, "") || "home"}-${options.colorScheme}-${options.viewport?.width}.png` });
  }
  await context.close();
}

/** A waiting job, smaller: the slider asks the scheduler, and the smaller one takes its place. */
async function instead(page, job) {
  await page.evaluate((h) => { location.hash = h; }, `#/jobs/${job}`);
  await page.locator(".helps tbody tr").first().waitFor();
  const tasks = page.getByLabel(/^Tasks/);
  await tasks.focus();
  await page.keyboard.press("Home");
  await page.locator(".helps tbody tr").nth(1).waitFor();
  await page.getByRole("button", { name: "Submit this instead" }).click();
  await page.waitForFunction((id) => /^#\/jobs\/j/.test(location.hash) && !location.hash.includes(id), job);
  const old = await api(tokens.member, "GET", `/v1/jobs/${job}`);
  check(["cancelled", "stopping"].includes(old.state), `the first job is ${old.state}`);
}

/** By keyboard alone: what is typed is tried out, and a refusal is stintd's own sentence. */
async function submits(page) {
  await page.locator("#main").focus();
  await page.keyboard.press("g");
  await page.keyboard.press("s");
  await page.getByLabel("Name").fill("from-the-console");
  await page.getByLabel("Command").fill("true");
  expected = /400/;
  await page.getByLabel("Time limit").fill("90");
  await page.getByRole("alert").filter({ hasText: "needs a unit" }).waitFor();
  check(await page.getByRole("button", { name: "Submit", exact: true }).isDisabled(), "what is refused can be submitted");
  await page.getByLabel("Time limit").fill("90m");
  await page.getByText(/costs at most/).waitFor();
  expected = null;
  await page.getByLabel("The job as YAML").waitFor();
  check((await page.getByLabel("The job as YAML").inputValue()).includes("limit: 90m"), "the file is not the form's");
  await page.getByRole("button", { name: "Submit", exact: true }).focus();
  await page.keyboard.press("Enter");
  await page.locator("h1").filter({ hasText: "from-the-console" }).waitFor();
}

/** The filters of the list under a name, in another tab too; nobody else has it, and it is gone when it is removed. */
async function keepsViews(page) {
  const name = `${EVIL} & mine`, label = (p) => p.locator(".views select");
  await page.evaluate(() => { location.hash = "#/jobs?state=running&name=a+b"; });
  await page.getByRole("button", { name: "Save view…" }).click();
  await page.getByLabel("Name of the view").fill(name);
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Remove view" }).waitFor();
  await page.evaluate(() => { location.hash = "#/jobs?all=1"; });
  await page.getByRole("button", { name: "Save view…" }).waitFor();
  check((await label(page).inputValue()) === "", "other filters go by the view's name");
  const tab = await page.context().newPage();
  await tab.goto(`${url}/#/jobs`);
  await label(tab).selectOption(name);
  await tab.waitForFunction(() => location.hash === "#/jobs?state=running&name=a+b");
  check((await tab.locator("input[data-search]").inputValue()) === "a b", "the field does not have what the view looks for");
  await tab.close();
  await label(page).focus(); // by keyboard: the first letters of its name
  await page.keyboard.type("<img");
  await page.waitForFunction(() => location.hash === "#/jobs?state=running&name=a+b");
  check((await hasMarkup(page)) === 0, "a name became markup");
  const other = await api(tokens.other, "GET", "/v1/views");
  check(other.views.length === 0, "somebody else has the view");
  await page.getByRole("button", { name: "Remove view" }).click();
  await label(page).waitFor({ state: "detached" });
  check((await api(tokens.member, "GET", "/v1/views")).views.length === 0, "the view is still there");
}

/** A job that came and went is there at the moment between; the moment is a link; keys and the scrubber go through time; nobody else sees it. */
async function replays(page) {
  const name = `past-${EVIL}`, job = await api(tokens.member, "POST", "/v1/jobs", { name, gpus: 0, cpu: 1, limit: "1h", sim: { run: "1h" } });
  const state = async () => (await api(tokens.member, "GET", `/v1/jobs/${job.id}`)).state;
  const becomes = async (wanted) => {
    for (const end = Date.now() + 60000; !wanted.includes(await state());) {
      check(Date.now() < end, `${name} is ${await state()}, not ${wanted}`);
      await new Promise((r) => setTimeout(r, 50));
    }
  };
  await becomes(["running"]);
  const { to } = await api(tokens.member, "GET", "/v1/history");
  await new Promise((r) => setTimeout(r, 20));
  await api(tokens.member, "DELETE", `/v1/jobs/${job.id}`);
  await becomes(["cancelled"]);
  const shown = (at) => page.locator(`[data-at="${at}"]:not(.stale)`);
  await page.locator("#main").focus();
  await page.keyboard.press("g");
  await page.keyboard.press("r");
  await page.locator("[data-at]:not(.stale)").waitFor();
  await page.evaluate((at) => { location.hash = `#/replay?at=${at}`; }, to);
  await shown(to).waitFor();
  const events = page.locator(".events tr").filter({ hasText: name });
  check((await events.allTextContents()).some((t) => t.includes("started")) && !(await events.allTextContents()).some((t) => t.includes("ended")), `what happened by then: ${await events.allTextContents()}`);
  check((await hasMarkup(page)) === 0, "a name became markup");
  await page.locator("#main").focus();
  await page.keyboard.press("["); // to the event before
  await page.waitForFunction((at) => location.hash.startsWith("#/replay?at=") && !location.hash.includes(encodeURIComponent(at)), to);
  await page.keyboard.press(".");
  await page.waitForFunction(() => /at=/.test(location.hash));
  await page.getByLabel("Moment", { exact: true }).and(page.locator("input")).focus();
  const before = await page.evaluate(() => location.hash);
  await page.keyboard.press("ArrowLeft");
  await page.waitForFunction((h) => location.hash !== h, before);
  const tab = await page.context().newPage(); // the link of a moment
  await tab.goto(`${url}/#/replay?at=${to}`);
  await tab.locator(`[data-at="${to}"]:not(.stale)`).waitFor();
  check((await tab.locator(".events tr").filter({ hasText: name }).count()) > 0, "the link shows another moment");
  expected = /400/;
  await tab.evaluate(() => { location.hash = "#/replay?at=1999-01-01T00:00:00Z"; });
  await tab.getByRole("alert").filter({ hasText: "the log is kept from" }).waitFor();
  expected = null;
  await tab.close();
  const other = JSON.stringify(await api(tokens.other, "GET", `/v1/history?at=${to}`));
  check(!other.includes("past-"), "somebody else sees the job in the past");
}

/** A quote, confirmed, seen in the week and cancelled. */
async function books(page) {
  await page.evaluate(() => { location.hash = "#/calendar"; });
  await page.getByRole("button", { name: "Book…" }).click();
  await page.getByRole("button", { name: "›" }).or(page.getByRole("button", { name: "Week after" })).first().waitFor();
  await page.getByLabel("Tasks").fill("100");
  await page.getByRole("button", { name: "Get a quote" }).click();
  await page.getByText("It does not fit").waitFor(); // and what would is offered
  await page.getByRole("button", { name: /^\d+ GPUs$/ }).click();
  check(Number(await page.getByLabel("Tasks").inputValue()) < 100, "fewer GPUs were not taken over");
  await page.getByLabel("Tasks").fill("1");
  await page.getByLabel("GPUs per task").fill("1");
  await page.getByLabel("Name").fill("demo-day");
  for (const { name } of (await api(tokens.owner, "GET", "/v1/nodes")).nodes)
    await api(tokens.owner, "PATCH", `/v1/nodes/${name}/labels`, { set: { network: "ib" } });
  await page.getByLabel("Labels of the nodes").fill("network=ib");
  await page.getByRole("button", { name: "Get a quote" }).click();
  await page.getByText("can be had").waitFor();
  await page.getByRole("button", { name: "Confirm" }).click();
  const { bookings } = await api(tokens.member, "GET", "/v1/bookings");
  check(bookings.some((b) => b.name === "demo-day"), "no booking was made");
  const made = bookings.find((b) => b.name === "demo-day"), from = new Date(made.from);
  check(made.require.network === "ib" && made.ready === "planned", `it requires ${JSON.stringify(made.require)} and is ${made.ready}`);
  await page.evaluate((w) => { location.hash = `#/calendar?week=${w}`; }, from.toISOString().slice(0, 10));
  await page.locator(".slot").filter({ hasText: "demo-day" }).first().waitFor();
  await page.getByRole("row").filter({ hasText: "demo-day" }).getByRole("button", { name: "Cancel…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel the booking" }).click();
  await page.locator(".slot").filter({ hasText: "demo-day" }).first().waitFor({ state: "detached" });
}

/** A bill is verified in the browser; one with another byte is not. */
async function proves(page) {
  await page.evaluate(() => { location.hash = "#/bill"; });
  await page.getByRole("button", { name: "Verify in this browser" }).click();
  await page.locator(".verdict.good").waitFor();
  await page.getByRole("button", { name: "Keep this key" }).click();
  await page.getByText("which this browser kept").waitFor();
  let changes = 0;
  await page.route(/format=file/, async (route) => {
    const answer = await route.fetch(), text = await answer.text();
    const rows = text.split("\n"), at = rows.findIndex((r) => r.startsWith('{"line"'));
    rows[at] = rows[at].replace(/"amount":\d+/, '"amount":1');
    changes++;
    await route.fulfill({ response: answer, body: rows.join("\n") });
  });
  await page.getByRole("button", { name: "Verify in this browser" }).click();
  await page.locator(".verdict.bad").filter({ hasText: "was changed" }).waitFor();
  check(changes === 1, "the file was not changed");
  await page.unroute(/format=file/);
  await page.locator("td a").filter({ hasText: /reserved|burst/ }).first().click();
  await page.getByText("entry by entry").waitFor();
}

/** The owner sees who would lose before saving a quota, makes a token, and revokes it. */
async function administers() {
  const { context, page } = await open();
  await byLink(page, tokens.owner);
  await page.evaluate(() => { location.hash = "#/quota?edit=speech"; });
  expected = /403/;
  await page.getByLabel("Guarantee, GPUs").fill("100000");
  await page.getByRole("alert").filter({ hasText: "its children would need" }).waitFor();
  await page.evaluate(() => { location.hash = "#/quota?edit=acme"; });
  await page.getByLabel("Guarantee, GPUs").fill("100000");
  await page.getByRole("button", { name: "Save all the same" }).waitFor();
  await page.evaluate(() => { location.hash = "#/quota?edit=speech"; });
  await page.locator("h2").filter({ hasText: "speech" }).waitFor();
  expected = null;
  await page.getByLabel("Guarantee, GPUs").fill("17");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.waitForFunction(async () => (await (await fetch("/v1/accounts/speech", { headers: { "Stint-Console": "1" } })).json()).guarantee.gpu === 17);
  await page.evaluate(() => { location.hash = "#/site"; });
  await page.getByLabel("User").fill("zoe");
  await page.getByRole("button", { name: "Make the token" }).click();
  await page.locator(".once code").waitFor();
  await page.getByRole("row").filter({ hasText: "zoe" }).getByRole("button", { name: "Revoke…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
  await page.getByRole("row").filter({ hasText: "zoe" }).waitFor({ state: "detached" });
  await page.evaluate(() => { location.hash = "#/site?tab=rules&rule=%2B"; });
  await page.getByLabel("Name").fill("odd");
  expected = /400/;
  await page.getByLabel("Script of the rule").fill("this is no script");
  await page.getByRole("button", { name: "Check" }).click();
  await page.getByRole("alert").waitFor();
  expected = null;
  await context.close();
}

/** What a team has beside its jobs, by keyboard alone: a service that is made, scaled and removed, a volume, a notice; and a token for callers. */
async function teams() {
  const { context, page } = await open();
  await byLink(page, tokens.member);
  const type = async (label, text, scope = page) => { await scope.getByLabel(label, { exact: true }).focus(); await page.keyboard.press("Control+a"); await page.keyboard.type(text); };
  const press = async (name, scope = page) => { await scope.getByRole("button", { name, exact: true }).focus(); await page.keyboard.press("Enter"); };
  const follow = async (name) => { await page.getByRole("link", { name, exact: true }).focus(); await page.keyboard.press("Enter"); };
  const yes = async (name) => { await page.getByRole("dialog").waitFor(); await press(name, page.getByRole("dialog")); };
  await page.locator("#main").focus();
  await page.keyboard.press("g");
  await page.keyboard.press("t");
  await page.getByText("There is no service yet").waitFor();
  await type("Name", "answers");
  await type("Command", "python3 serve.py");
  await type("Port it listens on", "8080");
  await page.getByLabel(/^Health/).selectOption("none");
  await press("Make the service");
  await page.getByRole("status").filter({ hasText: "Service answers is made" }).waitFor();
  await type("Name", "answers");
  await type("Command", "true");
  await type("Port it listens on", "8080");
  expected = /409/;
  await press("Make the service");
  await page.getByRole("alert").filter({ hasText: "answers" }).waitFor();
  expected = null;
  await follow("answers");
  await until(async () => (await api(tokens.member, "GET", "/v1/services/answers")).replicas.length === 1, "a replica of the service");
  await page.getByRole("region", { name: "Service answers" }).locator("tbody tr").first().waitFor();
  await type("Replicas", "2", page.getByRole("region", { name: "Service answers" }));
  await press("Scale");
  await until(async () => (await api(tokens.member, "GET", "/v1/services/answers")).target === 2, "two replicas are wanted");
  await press("Restart…");
  await yes("Restart");
  await until(async () => (await api(tokens.member, "GET", "/v1/services/answers")).revision > 1, "another revision");

  await follow("Volumes");
  await page.getByText("There is no volume yet").waitFor();
  await type("Name", "sets");
  await type("What is in it", EVIL);
  expected = /400/;
  await type("Size", "much");
  await press("Make the volume");
  await page.getByRole("alert").filter({ hasText: "amount of memory" }).waitFor();
  expected = null;
  await type("Size", "2Gi");
  await press("Make the volume");
  await follow("sets");
  await page.getByText("0 MiB of 2 GiB").waitFor();
  check((await hasMarkup(page)) === 0, "what is in a volume became markup");
  await page.getByRole("region", { name: "Volume sets" }).getByLabel("Size").fill("3Gi");
  await press("Change");
  await page.getByText("0 MiB of 3 GiB").waitFor();

  await follow("Notices");
  await page.getByText("Nobody is told anything yet").waitFor();
  await type("Name", "hook");
  expected = /403/;
  await type("Address of a webhook or a mailbox", "https://elsewhere.example/x");
  await press("Add the notice");
  await page.getByRole("alert").filter({ hasText: "elsewhere.example" }).waitFor();
  expected = null;
  await type("Name", "hook");
  await type("Address of a webhook or a mailbox", "http://127.0.0.1:9/secret-path");
  await press("Add the notice");
  await page.locator(".once code").filter({ hasText: "whsec_" }).waitFor();
  await follow("hook");
  await press("Send a test");
  await page.getByRole("region", { name: "Notice hook" }).locator("tbody tr").first().waitFor();
  check(!(await page.content()).includes("secret-path"), "the address of a webhook is shown again");
  await page.reload();
  await page.getByRole("region", { name: "Notice hook" }).waitFor();
  check(!(await page.content()).includes("whsec_"), "the key of a webhook is shown again");
  await context.close();

  /* By role: who only looks has no buttons; another team sees nothing of it; an admin makes a token for callers. */
  for (const [who, sees] of [["viewer", true], ["auditor", true], ["other", false]]) {
    const { context, page } = await open();
    await byLink(page, tokens[who]);
    await page.evaluate(() => { location.hash = "#/team"; });
    await page.locator("h2").filter({ hasText: "Services" }).waitFor();
    await page.waitForFunction(() => !document.querySelector("[aria-busy]"));
    check((await page.getByRole("link", { name: "answers", exact: true }).count()) === (sees ? 1 : 0), `${who}: services`);
    if (sees) {
      for (const tab of ["services", "volumes", "notices"]) {
        await page.evaluate((t) => { location.hash = `#/team?tab=${t}&account=vision&name=${{ services: "answers", volumes: "sets", notices: "hook" }[t]}`; }, tab);
        await page.locator("dl").first().waitFor();
        check((await page.locator("main button").count()) === 0, `${who} has a button at ${tab}`);
      }
    } else {
      check(!(await page.content()).includes("vision"), "another team reads the account's name");
    }
    await context.close();
  }
  const admin = await open();
  await byLink(admin.page, tokens.admin);
  await admin.page.evaluate(() => { location.hash = "#/team?name=answers"; });
  await admin.page.getByRole("button", { name: "Make a token for callers" }).click();
  const caller = await admin.page.locator(".once code").textContent();
  const answer = await fetch(`${url}/v1/jobs`, { headers: { Authorization: `Bearer ${caller}` } });
  check(answer.status === 403, `a token for callers lists jobs: ${answer.status}`);
  await admin.context.close();
}

/** And nothing of it is left when it is removed. */
async function leaves() {
  const { context, page } = await open();
  await byLink(page, tokens.member);
  for (const [tab, name] of [["services", "answers"], ["volumes", "sets"], ["notices", "hook"]]) {
    await page.evaluate(([t, n]) => { location.hash = `#/team?tab=${t}&account=vision&name=${n}`; }, [tab, name]);
    await page.getByRole("button", { name: "Remove…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Remove", exact: true }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await until(async () => (await page.getByRole("link", { name, exact: true }).count()) === 0, `${name} is off the list`);
  }
  await context.close();
}

const hasMarkup = (page) => page.locator("main img, main b b").count();
const stateOf = async (node) => (await api(tokens.owner, "GET", `/v1/nodes/${node}`)).state;

async function becomes(node, states) {
  for (const end = Date.now() + 60000; !states.includes(await stateOf(node));) {
    check(Date.now() < end, `${node} is ${await stateOf(node)}, not ${states}`);
    await new Promise((r) => setTimeout(r, 50));
  }
}

/** The owner finds what is out of service and why, has it tested, and takes a node out and back: by mouse, and by keyboard alone. */
async function heals() {
  const { context, page } = await open();
  await byLink(page, tokens.owner);
  await page.locator("#main").focus();
  await page.keyboard.press("g");
  await page.keyboard.press("e");
  const row = page.getByRole("region", { name: "Not in service" }).getByRole("row").filter({ hasText: "desk-ill" });
  await row.getByText("uncorrected memory errors").waitFor();
  check((await row.textContent()).includes(EVIL), "a reason is not shown as it is");
  await page.keyboard.press("/");
  await page.keyboard.type("desk-i");
  await page.waitForFunction(() => location.hash.includes("find=desk-i"));
  await row.getByRole("link", { name: "desk-ill" }).focus();
  await page.keyboard.press("Enter");
  const bad = page.locator(".test[open] tr").filter({ hasText: "ecc" });
  await bad.waitFor();
  check(/fail.*0.*7.*0/.test(await bad.textContent()), `a check: ${await bad.textContent()}`);
  check((await page.locator(".test tr").filter({ hasText: EVIL }).count()) === 0, "a check that there is not is shown");
  await page.locator(".timeline li").filter({ hasText: "repair" }).first().waitFor();
  check((await hasMarkup(page)) === 0, "a name became markup");

  const count = (await api(tokens.owner, "GET", "/v1/nodes/desk-ill/tests")).tests.length;
  await page.getByRole("button", { name: "Test", exact: true }).click();
  await page.getByText("Its agent was asked").waitFor();
  await page.waitForFunction((n) => document.querySelectorAll(".test").length > n, count); // by itself: the page is live

  await page.evaluate(() => { location.hash = "#/fleet?node=desk-well"; });
  await page.getByRole("button", { name: "Suspect…" }).focus();
  await page.keyboard.press("Enter");
  await page.getByLabel("Reason, for other owners").fill(EVIL);
  await page.getByRole("dialog").getByRole("button", { name: "Suspect" }).focus();
  await page.keyboard.press("Enter");
  await becomes("desk-well", ["suspect"]);
  await page.locator("dd").filter({ hasText: EVIL }).waitFor();
  const over = await page.evaluate(() => document.querySelector("canvas").getBoundingClientRect().right + 16 - document.querySelector(".map").getBoundingClientRect().right);
  check(over <= 0, `the map is ${over} px wider than its frame`);
  await page.locator(".key a").filter({ hasText: "suspect" }).click();
  await page.waitForFunction(() => location.hash.includes("state=suspect"));
  await page.waitForFunction(() => document.querySelectorAll("table tbody tr").length === 1); // the filter shows no other states
  await page.evaluate(() => { location.hash = "#/fleet?node=desk-well"; });
  await page.getByRole("button", { name: "Make ready" }).click();
  await becomes("desk-well", ["ready"]);
  await page.getByRole("button", { name: "Retire…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Keep" }).click();
  check((await stateOf("desk-well")) === "ready", "it was retired although nobody said yes");
  await context.close();
}

/** Each side of a case is told its own; the owner sees both as one. */
async function disturbs() {
  for (const [who, sees, hides] of [["owner", ["vision", "speech", "4.5 ×", "1.1 ×"], []], ["member", ["vision", "4.5 ×", "1.1 ×"], ["batch-", "speech"]], ["other", ["speech"], ["vision", "4.5"]]]) {
    const { context, page } = await open();
    await byLink(page, tokens[who]);
    await page.locator("#main").focus();
    await page.keyboard.press("g");
    await page.keyboard.press("n");
    const rows = page.locator(".cases tbody tr");
    await rows.first().waitFor();
    const text = await rows.allTextContents();
    check(text.length === 1, `${who} sees ${text.length} cases`);
    check(text[0].includes(EVIL), `${who}: a name is not shown as it is: ${text}`);
    for (const s of sees) check(text[0].includes(s), `${who} does not see ${s}: ${text}`);
    for (const s of hides) check(!text[0].includes(s), `${who} sees ${s}: ${text}`);
    check((await hasMarkup(page)) === 0, "a name became markup");
    await page.keyboard.press("/");
    await page.keyboard.type("nothing-like-it");
    await page.getByText("No case matches").waitFor();
    await context.close();
  }
}

/** What was measured of a job is drawn, said by the arrow keys and listed; what was not known is neither. Others have no such page. */
async function measured(job) {
  const { context, page } = await open();
  await byLink(page, tokens.owner);
  await until(async () => (await api(tokens.owner, "GET", `/v1/series?of=job&name=${job}`)).figures.gpu_celsius, "a bucket with what was measured");
  await page.evaluate((h) => { location.hash = h; }, `#/jobs/${job}`);
  const charts = page.locator(".chart");
  await charts.nth(3).waitFor();
  check((await charts.locator("figcaption").allTextContents()).map((t) => t.split(" ")[0]).join() === "Utilisation,Memory,Power,Temperature", "other charts");
  const said = charts.first().locator(".legend"), seen = new Set();
  check(/Each point is .*Times in /.test(await said.textContent()), `no zone: ${await said.textContent()}`);
  await charts.first().locator("svg[role=img]").focus();
  await page.keyboard.press("Home");
  const half = (text) => Math.abs(parseFloat(text) - 50) < 3; // devices are kept in tenths of a second
  for (let i = 0; i < 90 && ![...seen].some(half); i++) {
    seen.add((await said.textContent()).replace(/^.*a kernel ran /, ""));
    await page.keyboard.press("ArrowRight");
  }
  check([...seen].some(half), `along the chart: ${[...seen]}`);
  check((await charts.first().locator("path.line0").last().getAttribute("d")).startsWith("M"), "nothing is drawn");
  await page.getByText("As a table").first().click();
  await page.locator("details table tbody td:nth-child(2)").first().waitFor();
  const cells = await page.locator("details table tbody td:nth-child(2)").allTextContents();
  check(cells.some(half) && !cells.includes("0"), `the table: ${cells.slice(0, 20)}`);
  check((await page.locator("details table tbody td:nth-child(3)").allTextContents()).some((t) => Math.abs(parseFloat(t) - 3) < 0.3), "no memory in the table");
  await accessible(page, "charts of a job");

  await page.evaluate(() => { location.hash = "#/quota"; });
  await page.locator(".charts .chart").nth(1).waitFor();
  await page.getByRole("combobox", { name: /^Time/ }).selectOption("365d");
  await page.waitForFunction(() => location.hash.includes("span=365d"));
  await page.locator(".charts .chart").nth(1).waitFor();
  await page.getByRole("combobox", { name: /^Time/ }).selectOption("1h");
  await page.waitForFunction(() => location.hash.includes("span=1h"));
  await charts.first().locator("svg[role=img]").focus();
  await page.keyboard.press("Home"); // before stintd was there
  await page.getByText(/held not known/).waitFor();
  await page.getByRole("combobox", { name: /^Account/ }).selectOption("vision");
  await page.getByRole("heading", { name: "Use of vision over time" }).waitFor();
  await page.evaluate(() => { location.hash = "#/fleet?node=desk-well"; });
  await page.getByRole("heading", { name: "desk-well over time" }).waitFor();
  await page.locator(".charts .chart").first().waitFor();
  await page.getByRole("combobox", { name: /^GPU/ }).selectOption("0");
  await page.getByRole("heading", { name: "GPU 0 of desk-well over time" }).waitFor();
  await page.locator(".charts .chart").nth(1).waitFor(); // what its jobs used
  await page.evaluate(() => { location.hash = "#/bill"; });
  await page.getByRole("heading", { name: "Over the month" }).waitFor();
  await page.locator(".charts .chart").first().waitFor();
  await context.close();

  const other = await open();
  await byLink(other.page, tokens.member);
  await other.page.evaluate(() => { location.hash = "#/fleet"; });
  await other.page.locator("canvas").waitFor();
  check((await other.page.getByText("over time").count()) === 0, "a tenant sees what the fleet did");
  await other.page.evaluate(() => { location.hash = "#/"; });
  await other.page.locator(".chart figcaption").getByText("Spent").first().waitFor(); // its own month
  await other.context.close();
}

async function works(job) {
  const { context, page } = await open();
  await typeIn(page, tokens.member);
  check((await context.cookies()).every((c) => c.httpOnly && c.secure && c.sameSite === "Strict"), "a cookie that scripts or other sites see");
  check(await page.evaluate(() => document.cookie) === "", "scripts see the cookie");

  await page.locator(".live.on").waitFor();
  const fresh = await api(tokens.member, "POST", "/v1/jobs", { name: EVIL, gpus: 1, limit: "1h", sim: { run: "1h" } });
  await page.keyboard.press("g");
  await page.keyboard.press("j");
  const row = page.locator(`#row-${fresh.id}`);
  await row.waitFor(); // by itself: the page is live
  check((await row.locator("a").textContent()) === EVIL, "a name is not shown as it is");

  await page.locator(".grid").focus();
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => /^#\/jobs\/j/.test(location.hash));

  await page.evaluate((h) => { location.hash = h; }, `#/jobs/${fresh.id}`);
  expected = /404.*\/logs/; // what a simulated job wrote is gone with it
  await page.getByRole("button", { name: "Cancel the job" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel the job" }).click();
  await page.locator(".title .s-cancelled, .title .s-stopping").waitFor();

  await keepsViews(page);
  await together(page);
  await replays(page);
  await instead(page, job);
  await submits(page);
  await books(page);
  await proves(page);

  expected = /40[014]/; // and of what was on its way before the logout
  await page.evaluate(() => { location.hash = "#/jobs?account=nobody"; });
  await page.getByText(/No job matches|no such account|There is no/i).first().waitFor();

  await page.getByRole("button", { name: "Log out" }).click();
  await page.locator("#token").waitFor();
  const answer = await page.evaluate(async () => (await fetch("/v1/whoami", { headers: { "Stint-Console": "1" } })).status);
  check(answer === 401, `after the logout whoami is ${answer}`);
  expected = null;
  await context.close();
}

/** A book that is checked, seen and published; a plan that is saved; both by the keyboard, as the owner. */
async function prices() {
  const { context, page } = await open();
  await byLink(page, tokens.owner);
  await page.evaluate(() => { location.hash = "#/site?tab=prices"; });
  await page.getByRole("button", { name: "Change…" }).click();
  const book = page.getByLabel("The price book"), name = `next-${EVIL}`;
  const written = await book.inputValue(), dearer = written.replace(/^prices: .*$/m, `prices: ${JSON.stringify(name)}`).replace(/^cpu: .*$/m, "cpu: 0.777777");
  check(dearer !== written, `the book cannot be changed: ${written}`);
  expected = /400/;
  await book.fill(`${written}nonsense: 1\n`);
  await page.getByRole("button", { name: "Check" }).click();
  await page.getByRole("alert").filter({ hasText: "nonsense" }).waitFor();
  check(await page.getByRole("button", { name: "Publish…" }).isDisabled(), "what is refused can be published");
  expected = null;
  await book.fill(dearer);
  await page.getByRole("button", { name: "Check" }).focus();
  await page.keyboard.press("Enter");
  const moved = page.locator("tbody tr").filter({ hasText: "0.777777" });
  await moved.waitFor();
  check((await moved.locator("th").textContent()) === "cpu" && (await page.locator("caption").filter({ hasText: "What changes" }).count()) === 1, "what changes is not said");
  await page.getByRole("button", { name: "Publish…" }).click();
  await page.getByRole("dialog").filter({ hasText: "1 price changes" }).getByRole("button", { name: "Publish" }).click();
  await page.getByRole("status").filter({ hasText: "is published" }).waitFor();
  check((await api(tokens.owner, "GET", "/v1/prices")).prices.some((b) => b.prices === name && Number(b.cpu) === 0.777777), "the book is not there");
  await page.evaluate(() => { location.hash = "#/site?tab=plans&account=speech"; });
  await page.getByLabel("Budget, dollars a month").fill("1234567");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").filter({ hasText: "1234567" }).getByRole("button", { name: "Save" }).click();
  await page.locator("dd").filter({ hasText: "1,234,567.00" }).waitFor();
  check(Number((await api(tokens.owner, "GET", "/v1/accounts/speech/plan")).budget) === 1234567, "the plan is not saved");
  check((await hasMarkup(page)) === 0, "a name became markup");
  await context.close();
}

/** The stream breaks: the header says so, the last data stays; when it is back the page has what was missed. */
async function breaks() {
  const { context, page } = await open();
  await byLink(page, tokens.member);
  await page.evaluate(() => { location.hash = "#/jobs"; });
  await page.locator(".live.on").waitFor();
  await page.locator(".rows .row").first().waitFor();
  const rows = await page.locator(".rows .row").count();
  expected = /./; // whatever a browser says of what it cannot reach
  await context.setOffline(true);
  await page.evaluate(() => { location.hash = "#/jobs?name=missed"; });
  await page.getByRole("alert").filter({ hasText: "does not answer" }).waitFor();
  await page.evaluate(() => { location.hash = "#/jobs"; });
  const made = await api(tokens.member, "POST", "/v1/jobs", { name: "missed", gpus: 0, cpu: 1, limit: "1h", sim: { run: "1h" } });
  await context.setOffline(false);
  await page.evaluate(() => dispatchEvent(new Event("online")));
  await page.reload();
  await page.locator(".live.on").waitFor();
  await page.locator(`#row-${made.id}`).waitFor();
  check((await page.locator(".rows .row").count()) >= Math.min(rows, 1), "rows are lost");
  expected = null;
  await api(tokens.member, "DELETE", `/v1/jobs/${made.id}`);
  await context.close();
}

/** Two jobs at once get another priority; groups lead to what is in them. */
async function together(page) {
  const jobs = await Promise.all([1, 2].map((n) => api(tokens.member, "POST", "/v1/jobs", { name: `both-${n}`, gpus: 8, tasks: 8, limit: "8h", sim: { run: "1h" } })));
  await page.evaluate(() => { location.hash = "#/jobs?group=name"; });
  await page.locator(".groups a").getByText("both-", { exact: true }).click();
  await page.waitForFunction(() => location.hash.includes("name=both-"));
  for (const job of jobs) await page.locator(`#row-${job.id} input`).check();
  await page.getByLabel("Priority of 2").selectOption("high");
  await page.getByRole("dialog").getByRole("button", { name: "Make them high" }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  for (const job of jobs) check((await api(tokens.member, "GET", `/v1/jobs/${job.id}`)).priority === 100, "a priority is as it was");
}

/** The map by account: its owner's name stands in the key, in the table and where the pointer is. */
async function coloured() {
  const { context, page } = await open();
  await byLink(page, tokens.owner);
  await page.evaluate(() => { location.hash = "#/fleet"; });
  await page.getByLabel("Colour by").selectOption("account");
  const first = page.locator(".key li").filter({ has: page.locator(".team-0") });
  await first.waitFor();
  const { accounts } = await api(tokens.owner, "GET", "/v1/devices/accounts"), says = await first.textContent();
  check(accounts.some((a) => says.includes(a)), `the key says ${says}, the API ${accounts}`);
  await page.locator("th").filter({ hasText: "account" }).waitFor();
  await page.getByLabel("Colour by").selectOption("temperature");
  await page.getByText("as agents measured it").waitFor();
  await page.locator(".key .use-2").waitFor(); // 40–60 °C
  await until(async () => /40–60 °C [1-9]/.test((await page.locator(".key").first().textContent()) ?? ""), "a GPU at 55 °C");
  await page.getByLabel("Group by").selectOption("rack");
  await page.waitForFunction(() => location.hash.includes("group=rack"));
  await page.evaluate(() => { location.hash = "#/fleet?node=desk-well"; });
  await page.locator(".gpus td").filter({ hasText: "50 % by time" }).first().waitFor();
  await context.close();
}

/** More jobs than a page of the list has: what is read further down stays where it is while jobs come, and what ends in sight goes. */
async function staysInPlace() {
  const more = (n) => ({ name: `long-${n}`, gpus: 8, tasks: 8, limit: "8h", sim: { run: "1h" } });
  await api(tokens.member, "POST", "/v1/jobs/batch", { jobs: Array.from({ length: 1200 }, (_, n) => more(n)) });
  const { context, page } = await open();
  await byLink(page, tokens.member);
  await page.evaluate(() => { location.hash = "#/jobs?state=pending&name=long-"; });
  const grid = page.locator(".grid"), rows = () => page.evaluate(() => Math.round(document.querySelector(".rows").offsetHeight / 32));
  await grid.locator(".rows .row").first().waitFor();
  for (const end = Date.now() + 60000; await rows() < 1000;) {
    check(Date.now() < end, `${await rows()} rows came`);
    await grid.evaluate((g) => { g.scrollTop = g.scrollHeight; });
    await new Promise((r) => setTimeout(r, 50));
  }
  await grid.evaluate((g) => { g.scrollTop = 700 * 32; });
  const at = (n) => page.evaluate((k) => {
    const top = document.querySelector(".grid").getBoundingClientRect().top + 40;
    return [...document.querySelectorAll(".rows .row")].filter((r) => r.getBoundingClientRect().top >= top)[k]?.id;
  }, n);
  await page.waitForFunction(() => document.querySelector('.rows .row[aria-rowindex="710"]'));
  const read = await at(0), gone = await at(3);
  await api(tokens.member, "POST", "/v1/jobs", more(2000));
  await page.waitForFunction((id) => Number(document.getElementById(id)?.getAttribute("aria-rowindex")) > 0 && document.querySelector(".grid").scrollTop === 701 * 32, read);
  check((await at(0)) === read, "a job that came has moved what is read");
  await api(tokens.member, "DELETE", `/v1/jobs/${gone.slice(4)}`);
  await page.waitForFunction((id) => !document.getElementById(id), gone);
  check((await at(0)) === read && (await rows()) >= 1000, `what is read is another row, or rows were lost: ${await rows()}`);
  await context.close();
}

try {
  let big = (await api(tokens.owner, "GET", "/v1/jobs?state=pending")).jobs[0];
  check(big, "no job waits");
  await works(big.id);
  await administers();
  await heals();
  await disturbs();
  await prices();
  await teams();
  await breaks();
  await measured(tokens.measured);
  await coloured();
  await api(tokens.member, "POST", "/v1/jobs", { name: "large", gpus: 8, tasks: 8, limit: "8h", sim: { run: "1h" } });
  big = (await api(tokens.member, "GET", "/v1/jobs?state=pending")).jobs[0];
  check(big, "nothing waits any more");
  await everyPage("owner", { viewport: { width: 1440, height: 900 }, colorScheme: "light" }, big.id);
  await everyPage("member", { viewport: { width: 1024, height: 800 }, colorScheme: "dark" }, big.id);
  await everyPage("member", { viewport: { width: 390, height: 844 }, colorScheme: "light", reducedMotion: "reduce" }, big.id);
  await everyPage("admin", { viewport: { width: 1440, height: 900 }, colorScheme: "dark" }, big.id);
  await everyPage("viewer", { viewport: { width: 390, height: 844 }, colorScheme: "dark" }, big.id);
  await everyPage("auditor", { viewport: { width: 1024, height: 800 }, colorScheme: "light" }, big.id);
  await leaves();
  await staysInPlace();
  check(wrong.length === 0, wrong.join("\n"));
  console.log(`${6 * (PAGES.length + 1)} pages without a fault by axe, a script that was not ours or a word on the browser's console`);
} catch (e) {
  console.error(e.message, wrong.join("\n"));
  process.exitCode = 1;
} finally {
  await browser.close();
}
