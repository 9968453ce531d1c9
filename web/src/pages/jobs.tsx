// Where is it? All jobs, however many: rows of one height, of which only those in view are drawn; pages of the list are
// fetched as they are scrolled to.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get, mayChange, send, url, who } from "../api";
import { changed } from "../live";
import { href, refine, route } from "../route";
import type { Counts, Job } from "../types";
import { Card, Confirm, Empty, gpus, Loaded, number, ranges, State, Time, Trouble } from "../ui";
import { useDebounced, useGet } from "../use";
import { Views } from "../views";

const ROW = 32, PAGE = 500, OVER = 12;
const STATES = ["pending", "running", "notified", "checkpointing", "paused", "stopping", "done", "failed", "timeout", "cancelled"];
const LIVING = STATES.slice(0, 6);
const FIELDS = "id,name,account,user,state,class,priority,gpus,submitted,started,ended,placement";

/** busy: a page is on its way that the list needs to go on. */
type List = { rows: Job[]; next?: string; error?: Error; busy: boolean };

/** What of the list is looked at, by row. */
type Sight = { first: number; last: number };

/** Rows of a newer page in the place of those from `at` on that it covers; what it no longer has is gone. */
function fresh(rows: Job[], at: number, page: Job[]): Job[] {
  const end = page.length ? rows.findIndex((j, i) => i >= at && j.id === page[page.length - 1].id) : -1;
  return end < 0 ? [...rows.slice(0, at), ...page] : [...rows.slice(0, at), ...page, ...rows.slice(end + 1)];
}

function useJobs(query: string, sight: { current: Sight }, grown: (rows: number) => void) {
  const [list, set] = useState<List>({ rows: [], busy: true });
  const turn = useRef(0), now = useRef(list), asks = useRef(false);
  const show = (l: List) => { now.current = l; set(l); };
  const ask = (limit: number, from?: string) => get<{ jobs: Job[]; next?: string }>(`/v1/jobs?${query}&limit=${limit}&fields=${FIELDS}${from ? `&cursor=${from}` : ""}`);

  async function load(from: string | undefined, mine: number) {
    try {
      const page = await ask(PAGE, from), l = now.current;
      if (turn.current === mine) show({ rows: from ? [...l.rows, ...page.jobs] : page.jobs, next: page.next, busy: false });
    } catch (error) {
      if (turn.current === mine) show({ ...now.current, error: error as Error, busy: false });
    }
  }
  /** Something happened: the first page again, and the rows in sight. Others stay until they come into sight. */
  async function renew(mine: number) {
    if (asks.current) return; // the next time
    asks.current = true;
    try {
      const page = await ask(PAGE), l = now.current;
      if (turn.current !== mine || l.busy) return;
      const old = l.rows[0]?.id, rows = l.rows.length <= PAGE || !page.next ? page.jobs : fresh(l.rows, 0, page.jobs);
      const more = old ? rows.findIndex((j) => j.id === old) : 0; // that came above all others
      show({ rows, next: rows.length > PAGE ? l.next : page.next, busy: false });
      if (more > 0) grown(more);
      const first = Math.max(1, sight.current.first), size = Math.min(PAGE, sight.current.last - first + 50);
      if (sight.current.last <= PAGE || !rows[first - 1] || size <= 0) return;
      const part = await ask(size, rows[first - 1].id);
      if (turn.current === mine && !now.current.busy && now.current.rows[first - 1]?.id === rows[first - 1].id)
        show({ ...now.current, rows: part.next ? fresh(now.current.rows, first, part.jobs) : [...now.current.rows.slice(0, first), ...part.jobs], next: part.next ? now.current.next : undefined });
    } catch (error) {
      if (turn.current === mine) show({ ...now.current, error: error as Error });
    } finally {
      asks.current = false;
    }
  }
  useEffect(() => { show({ rows: [], busy: true }); load(undefined, ++turn.current); }, [query]);
  useEffect(() => { if (now.current.rows.length > 0) renew(turn.current); else if (!now.current.busy) load(undefined, turn.current); }, [changed.value]);
  return { ...list, more: () => { const l = now.current; if (l.next && !l.busy) { show({ ...l, busy: true }); load(l.next, turn.current); } } };
}

function where(j: Job): string {
  const g = j.placement?.grants ?? [];
  if (g.length === 0) return "";
  const first = `${g[0].node}:${ranges(g[0].gpus ?? [])}`;
  return g.length === 1 ? first : `${first} and ${g.length - 1} more nodes`;
}

/** Jobs that have not ended, in groups: a click leaves those of one in the table below. */
function Groups({ by }: { by: string }) {
  const q = route.value.query, data = useGet<Counts>(url("/v1/counts", { by, account: q.get("account") ?? undefined }));
  return (
    <Card title={`Waiting and running, by ${by}`} wide>
      <Loaded data={data} rows={6}>{(c) => !c.groups?.length ? <Empty>No job waits or runs.</Empty> : (
        <div class="groups">
          <table>
            <thead><tr><th>{by === "name" ? "Name begins with" : by === "user" ? "User" : "Account"}</th><th class="n">Jobs</th><th class="n">of these waiting</th><th class="n">GPUs</th></tr></thead>
            <tbody>{c.groups.map((g) => <tr key={g.key}><td><a href={href("jobs", { ...Object.fromEntries(q), group: by, [by]: g.key })}>{g.key}</a></td><td class="n">{number(g.jobs)}</td><td class="n">{number(g.waiting)}</td><td class="n">{gpus(g.gpus)}</td></tr>)}</tbody>
          </table>
          {!!c.groups_more && <p class="legend">{number(c.groups_more)} more groups.</p>}
        </div>
      )}</Loaded>
    </Card>
  );
}

export function Jobs() {
  const q = route.value.query;
  const states = q.getAll("state").length ? q.getAll("state") : q.get("all") ? [] : LIVING;
  const [name, setName] = useState(q.get("name") ?? "");
  const late = useDebounced(name, 250);
  const said = useRef(name); // what the address has from here; another one came by a view or a link
  useEffect(() => { said.current = late; refine({ name: late }); }, [late]);
  useEffect(() => { const there = q.get("name") ?? ""; if (there !== said.current) { said.current = there; setName(there); } }, [q.get("name")]);
  const query = new URL(url("http://x/", { state: states, name: q.get("name") ?? undefined, user: q.get("user") ?? undefined, account: q.get("account") ?? undefined })).search.slice(1);
  const sight = useRef<Sight>({ first: 0, last: 0 }), box = useRef<HTMLDivElement>(null);
  // Jobs that came do not push away what somebody reads further down.
  const list = useJobs(query, sight, (rows) => { const el = box.current; if (el && el.scrollTop > 0) el.scrollTop += rows * ROW; });
  const counts = useGet<Counts>("/v1/counts");
  const accounts = useGet<{ accounts: { name: string }[] }>("/v1/accounts", false);
  const [top, setTop] = useState(0), [height, setHeight] = useState(600), [at, setAt] = useState(-1);
  const [chosen, setChosen] = useState<Set<string>>(new Set());
  const [asking, setAsking] = useState<"cancel" | "low" | "normal" | "high">();
  const may = mayChange(), group = q.get("group") ?? "";

  useEffect(() => {
    const see = new ResizeObserver(() => setHeight(box.current?.clientHeight ?? 600));
    if (box.current) see.observe(box.current);
    return () => see.disconnect();
  }, []);
  useEffect(() => { if ((top + height) / ROW > list.rows.length - PAGE / 4) list.more(); }, [top, height, list.rows.length]);
  useEffect(() => { setChosen(new Set()); setAt(-1); }, [query]);

  const first = Math.max(0, Math.floor(top / ROW) - OVER), last = Math.min(list.rows.length, Math.ceil((top + height) / ROW) + OVER);
  sight.current = { first, last };
  const shown = useMemo(() => list.rows.slice(first, last), [list.rows, first, last]);
  const known = states.length > 0 && states.every((s) => counts.value?.states[s]) && !q.get("name") && !q.get("user") && !q.get("account");
  const total = known ? states.reduce((n, s) => n + (counts.value?.states[s]?.jobs ?? 0), 0) : undefined;

  function move(to: number) {
    const n = Math.max(0, Math.min(list.rows.length - 1, to));
    setAt(n);
    const el = box.current;
    if (el && n * ROW < el.scrollTop) el.scrollTop = n * ROW;
    if (el && (n + 1) * ROW > el.scrollTop + el.clientHeight - ROW) el.scrollTop = (n + 2) * ROW - el.clientHeight;
  }
  function onKey(e: KeyboardEvent) {
    if ((e.target as HTMLElement).tagName === "INPUT" && (e.target as HTMLInputElement).type !== "checkbox") return;
    if (e.key === "j" || e.key === "ArrowDown") { e.preventDefault(); move(at + 1); }
    else if (e.key === "k" || e.key === "ArrowUp") { e.preventDefault(); move(at - 1); }
    else if (e.key === "Enter" && list.rows[at]) location.hash = href(`jobs/${list.rows[at].id}`);
    else if (e.key === "x" && list.rows[at]) toggle(list.rows[at].id);
  }
  function toggle(id: string) {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    setChosen(next);
  }
  /** Those that were not changed stay chosen. */
  async function change(what: "cancel" | "low" | "normal" | "high") {
    const left = new Set<string>();
    let why = "";
    for (const id of chosen) try {
      if (what === "cancel") await send("DELETE", `/v1/jobs/${id}`);
      else await send("PATCH", `/v1/jobs/${id}`, { priority: what });
    } catch (e) { left.add(id); why ||= `${id}: ${(e as Error).message}`; }
    setChosen(left);
    if (left.size) throw new Error(`${left.size} were not changed. ${why}`);
    setAsking(undefined);
  }

  return (
    <>
      <h1>Jobs</h1>
      <form class="filters" onSubmit={(e) => e.preventDefault()}>
        <label>Name <input data-search type="search" value={name} onInput={(e) => setName(e.currentTarget.value)} placeholder="contains…" /></label>
        <label>State <select value={q.get("all") ? "all" : q.get("state") ?? ""} onChange={(e) => { const v = e.currentTarget.value; refine({ state: v === "all" ? undefined : v, all: v === "all" ? "1" : undefined }); }}>
          <option value="">not ended</option><option value="all">all</option>{STATES.map((s) => <option key={s} value={s}>{s}</option>)}
        </select></label>
        <label>Account <select value={q.get("account") ?? ""} onChange={(e) => refine({ account: e.currentTarget.value })}>
          <option value="">all</option>{accounts.value?.accounts.map((a) => <option key={a.name} value={a.name}>{a.name}</option>)}
        </select></label>
        <label class="check"><input type="checkbox" checked={q.get("user") === who.value?.user} onChange={(e) => refine({ user: e.currentTarget.checked ? who.value?.user : undefined })} /> only mine</label>
        <label>Group by <select value={group} onChange={(e) => refine({ group: e.currentTarget.value || undefined })}><option value="">nothing</option><option>account</option><option>user</option><option>name</option></select></label>
        <Views page="jobs" />
        <span class="grow" />
        <output>{total !== undefined ? `${number(total)} jobs` : `${number(list.rows.length)}${list.next ? "+" : ""} jobs`}</output>
        {may && chosen.size > 0 && <label>Priority of {chosen.size} <select value="" onChange={(e) => { setAsking(e.currentTarget.value as "low"); e.currentTarget.value = ""; }}><option value="">change…</option><option>high</option><option>normal</option><option>low</option></select></label>}
        {may && chosen.size > 0 && <button type="button" class="danger" onClick={() => setAsking("cancel")}>Cancel {chosen.size}</button>}
      </form>
      {group && <div class="cards above"><Groups by={group} /></div>}
      {list.rows.length === 0 && !list.error && (list.busy ? <div class="skeleton" aria-busy="true" aria-label="Loading">{Array.from({ length: 8 }, (_, i) => <i key={i} />)}</div> : <Empty>No job matches. <a href={href("jobs", { all: "1" })}>Show all</a></Empty>)}
      {list.error && <Trouble error={list.error} stale={list.rows.length > 0} />}
      <div class="grid" hidden={list.rows.length === 0} role="grid" aria-rowcount={(total ?? list.rows.length) + 1} aria-label="Jobs" tabIndex={0} ref={box} onScroll={(e) => setTop(e.currentTarget.scrollTop)} onKeyDown={onKey} aria-activedescendant={list.rows[at] ? `row-${list.rows[at].id}` : undefined}>
        <div class="row head" role="row" aria-rowindex={1}>
          {["", "Job", "Account", "User", "State", "Class", "GPUs", "Since", "Where"].map((h, i) => <span role="columnheader" key={i} class={h === "GPUs" ? "n" : ""}>{h || <span class="hide">Choose</span>}</span>)}
        </div>
        <div class="rows" role="rowgroup" ref={(el) => { if (el) el.style.height = `${Math.max(list.rows.length, 0) * ROW}px`; }}>
          {shown.map((j, i) => (
            <div class={first + i === at ? "row at" : "row"} role="row" id={`row-${j.id}`} aria-rowindex={first + i + 2} aria-selected={chosen.has(j.id)} key={j.id} ref={(el) => { if (el) el.style.transform = `translateY(${(first + i) * ROW}px)`; }}>
              <span role="gridcell"><input type="checkbox" aria-label={`Choose ${j.name || j.id}`} checked={chosen.has(j.id)} disabled={!may || !LIVING.includes(j.state)} onChange={() => toggle(j.id)} /></span>
              <span role="gridcell"><a href={href(`jobs/${j.id}`)}>{j.name || j.id}</a></span>
              <span role="gridcell">{j.account}</span><span role="gridcell">{j.user}</span>
              <span role="gridcell"><State of={j.state} /></span>
              <span role="gridcell">{j.class === "none" ? "" : j.class}</span>
              <span role="gridcell" class="n">{gpus(j.gpus)}</span>
              <span role="gridcell"><Time at={j.ended ?? j.started ?? j.submitted} /></span>
              <span role="gridcell" class="where" title={where(j)}>{where(j)}</span>
            </div>
          ))}
        </div>
      </div>
      {asking && <Confirm key={asking} danger={asking === "cancel"} onNo={() => setAsking(undefined)} onYes={() => change(asking)}
        ask={asking === "cancel" ? `Cancel ${chosen.size} ${chosen.size === 1 ? "job" : "jobs"}? What they have not saved is lost.` : `Give ${chosen.size} ${chosen.size === 1 ? "job" : "jobs"} priority ${asking}? It is whose turn comes first inside your account.`}
        yes={asking === "cancel" ? `Cancel ${chosen.size}` : `Make them ${asking}`} />}
    </>
  );
}
