// The frame of every page: who one is, where one can go, whether what is shown is live; and the keys.
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { get, send, who, type Who } from "./api";
import { begin, live } from "./live";
import { href, route } from "./route";
import { zone } from "./ui";
import { Login } from "./pages/login";
import { Home } from "./pages/home";
import { Jobs } from "./pages/jobs";
import { JobPage } from "./pages/job";
import { Fleet } from "./pages/fleet";
import { QuotaPage } from "./pages/quota";
import { BillPage } from "./pages/bill";
import { Submit } from "./pages/submit";
import { Calendar } from "./pages/calendar";
import { Health } from "./pages/health";
import { Replay } from "./pages/replay";
import { Neighbours } from "./pages/neighbours";
import { Site } from "./pages/site";
import { Team } from "./pages/team";

const PAGES = [
  { path: "", name: "Home", key: "h", view: Home },
  { path: "jobs", name: "Jobs", key: "j", view: Jobs },
  { path: "submit", name: "Submit", key: "s", view: Submit },
  { path: "fleet", name: "Fleet", key: "f", view: Fleet },
  { path: "replay", name: "Replay", key: "r", view: Replay },
  { path: "health", name: "Health", key: "e", view: Health },
  { path: "neighbours", name: "Neighbours", key: "n", view: Neighbours },
  { path: "team", name: "Team", key: "t", view: Team },
  { path: "quota", name: "Quota", key: "q", view: QuotaPage },
  { path: "calendar", name: "Calendar", key: "c", view: Calendar },
  { path: "bill", name: "Bill", key: "b", view: BillPage },
  { path: "site", name: "Site", key: "p", view: Site },
] as const;

function theme(next?: string) {
  if (next) localStorage.setItem("theme", next);
  const kept = next ?? localStorage.getItem("theme");
  if (kept) document.documentElement.dataset.theme = kept;
  return kept ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}

function Keys({ close }: { close: () => void }) {
  return (
    <dialog open class="keys" aria-label="Keys">
      <h2>Keys</h2>
      <dl>
        {PAGES.map((p) => <div key={p.key}><dt><kbd>g</kbd> <kbd>{p.key}</kbd></dt><dd>{p.name}</dd></div>)}
        <div><dt><kbd>/</kbd></dt><dd>Search</dd></div>
        <div><dt><kbd>j</kbd> <kbd>k</kbd></dt><dd>Next and previous row</dd></div>
        <div><dt><kbd>Enter</kbd></dt><dd>Open the row</dd></div>
        <div><dt><kbd>?</kbd></dt><dd>This list</dd></div>
      </dl>
      <div class="menu"><button type="button" onClick={close} autoFocus>Close</button></div>
    </dialog>
  );
}

function useKeys(help: (on: boolean) => void) {
  useEffect(() => {
    let g = 0;
    const on = (e: KeyboardEvent) => {
      const at = e.target as HTMLElement;
      if (e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(at.tagName)) return;
      if (e.key === "?") help(true);
      else if (e.key === "Escape") help(false);
      else if (e.key === "/") {
        const box = document.querySelector<HTMLElement>("[data-search]");
        if (box) { e.preventDefault(); box.focus(); }
      } else if (e.key === "g") g = Date.now();
      else if (Date.now() - g < 1500) {
        const page = PAGES.find((p) => p.key === e.key);
        if (page) location.hash = href(page.path);
        g = 0;
      }
    };
    addEventListener("keydown", on);
    return () => removeEventListener("keydown", on);
  }, []);
}

function Frame({ me }: { me: Who }) {
  const [help, setHelp] = useState(false);
  const [look, setLook] = useState(theme());
  const first = route.value.path[0] ?? "";
  const job = first === "jobs" ? route.value.path[1] : undefined;
  const page = PAGES.find((p) => p.path === first);
  useKeys(setHelp);
  useEffect(() => {
    document.title = `${job ?? page?.name ?? "Not found"} · Stint`;
    document.getElementById("main")?.focus();
  }, [first, job]);
  const View = page?.view;
  return (
    <>
      <a class="skip" href="#main" onClick={(e) => { e.preventDefault(); document.getElementById("main")?.focus(); }}>Skip to the page</a>
      <nav aria-label="Pages">
        <a class="mark" href={href("")}>Stint</a>
        <ul>{PAGES.map((p) => <li key={p.path}><a href={href(p.path)} aria-current={p.path === first ? "page" : undefined}>{p.name}</a></li>)}</ul>
        <div class="me">
          <span class={live.value ? "live on" : "live"} role="status">{live.value ? "live" : "not live: reconnecting"}</span>
          <span title={`Times are in ${zone}`}>{zone}</span>
          <span>{me.user} · {me.role}{me.account && ` of ${me.account}`}</span>
          <button type="button" aria-label={`Use the ${look === "dark" ? "light" : "dark"} theme`} onClick={() => setLook(theme(look === "dark" ? "light" : "dark"))}>{look === "dark" ? "☀" : "☾"}</button>
          <button type="button" aria-label="Keys" onClick={() => setHelp(true)}>?</button>
          <button type="button" onClick={() => { send("DELETE", "/v1/session").finally(() => { who.value = null; }); }}>Log out</button>
        </div>
      </nav>
      <main id="main" tabIndex={-1}>
        {job ? <JobPage id={job} /> : View ? <View /> : <p class="empty">There is no such page. <a href={href("")}>Home</a></p>}
      </main>
      {help && <Keys close={() => setHelp(false)} />}
    </>
  );
}

function App() {
  if (who.value === undefined) return <p class="loading">Loading the console…</p>;
  return who.value ? <Frame me={who.value} /> : <Login />;
}

async function start() {
  theme();
  const code = /^#code=([\w-]+)$/.exec(location.hash)?.[1];
  if (code) {
    history.replaceState(null, "", "/#/"); // it is worth nothing from here on; it need not be seen either
    dispatchEvent(new HashChangeEvent("hashchange"));
    try { await send("POST", "/v1/session", { code }); } catch (e) { sessionStorage.setItem("login", (e as Error).message); }
  }
  try { who.value = await get<Who>("/v1/whoami"); } catch { who.value = null; }
  begin();
  const app = document.getElementById("app")!;
  app.replaceChildren();
  render(<App />, app);
}
start();
