// What happened at 03:12? The fleet at a past moment, which stintd plays from its log: the map, the queue, who was leaving
// for whom, and what was decided just before. The moment is in the address, so a link is a moment.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get, Problem, url, who } from "../api";
import { FleetMap, KINDS, letters } from "../map";
import { href, refine, route } from "../route";
import type { History, PastEvent, PastJob } from "../types";
import { Card, Empty, gpus, number, span, State, Trouble, zone } from "../ui";
import { useGet } from "../use";

const MIN = 60000, HOUR = 60 * MIN;
const SPANS: [string, string, number][] = [["15m", "15 minutes", 15 * MIN], ["1h", "1 hour", HOUR], ["6h", "6 hours", 6 * HOUR], ["1d", "1 day", 24 * HOUR], ["7d", "7 days", 168 * HOUR]];
const STEPS: [string, number][] = [["−10 min", -10 * MIN], ["−1 min", -MIN], ["−10 s", -10000], ["+10 s", 10000], ["+1 min", MIN], ["+10 min", 10 * MIN]];
const WHAT: Record<string, string> = {
  queued: "came", start: "started", resume: "went on", hold: "has GPUs held for it", notify: "was warned that it has to go", spare: "may stay after all",
  checkpoint: "has to save", pause: "was paused", requeue: "lost its GPUs and waits again", end: "ended", stop: "was told to stop",
};
const AWAIT_MS = 200; // while somebody drags, stintd is not asked for every moment on the way
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const full = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit" });
const iso = (ms: number) => new Date(ms).toISOString();

/** The last answer stays until the next one is there; while stintd plays its log it is asked again. */
function usePast(at: string) {
  const [data, set] = useState<{ value?: History; error?: Error; plays: boolean; busy: boolean }>({ plays: false, busy: true });
  useEffect(() => {
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout>;
    const ask = () => get<History>(url("/v1/history", { at }), abort.signal).then(
      (value) => set({ value, plays: false, busy: false }),
      (error) => {
        if (error.name === "AbortError") return;
        const plays = error instanceof Problem && error.status === 503;
        set((d) => ({ ...d, error: plays ? undefined : error, plays, busy: plays }));
        if (plays) timer = setTimeout(ask, 500);
      },
    );
    set((d) => ({ ...d, busy: true }));
    timer = setTimeout(ask, AWAIT_MS);
    return () => { clearTimeout(timer); abort.abort(); };
  }, [at]);
  return data;
}

function Jobs({ rows, more, leaving }: { rows: PastJob[]; more: number; leaving?: boolean }) {
  if (rows.length === 0) return <Empty>{leaving ? "No job was on its way out." : "No job waited."}</Empty>;
  return (
    <>
      <table>
        <thead><tr><th>Job</th><th>Account</th><th>User</th><th class="n">GPUs</th>{leaving && <th>State</th>}<th>{leaving ? "For" : "Waited"}</th></tr></thead>
        <tbody>{rows.map((j) => (
          <tr key={j.job}>
            <td><a href={href(`jobs/${j.job}`)}>{j.name || j.job}</a></td><td>{j.account}</td><td>{j.user}</td><td class="n">{gpus(j.gpus)}</td>
            {leaving && <td><State of={j.state} /></td>}
            <td>{leaving ? (j.for ? <a href={href(`jobs/${j.for}`)}>{j.for_name || j.for} of {j.for_account}</a> : "–") : j.waited}</td>
          </tr>
        ))}</tbody>
      </table>
      {more > 0 && <p class="legend">{number(more)} more.</p>}
    </>
  );
}

function Events({ rows, at }: { rows: PastEvent[]; at: string }) {
  return (
    <table class="events">
      <thead><tr><th>At</th><th>What</th><th>Account</th><th class="n">GPUs</th><th>For</th></tr></thead>
      <tbody>{rows.map((e, i) => (
        <tr key={i} class={e.what === "requeue" || e.what === "notify" || e.what === "pause" ? "lost" : ""}>
          <td><a href={href("replay", { at: e.at, span: route.value.query.get("span") ?? "" })} aria-current={e.at === at ? "true" : undefined}>{clock.format(new Date(e.at))}</a></td>
          <td>{e.what === "node" ? <>Node {e.node} is <State of={e.state} /></> : <><a href={href(`jobs/${e.job}`)}>{e.name || e.job}</a> {e.what === "end" ? <>ended: <State of={e.state} /></> : WHAT[e.what] ?? e.what}{e.lost_gpu_seconds ? `; lost ${number(e.lost_gpu_seconds / 3600, 2)} GPU-hours` : ""}</>}</td>
          <td>{e.account}</td><td class="n">{e.what === "node" ? "" : gpus(e.gpus)}</td>
          <td>{e.for ? <a href={href(`jobs/${e.for}`)}>{e.for_name || e.for} of {e.for_account}</a> : ""}</td>
        </tr>
      ))}</tbody>
    </table>
  );
}

/** The book that was in force: the latest that began before the moment. */
function PricesThen({ at }: { at: string }) {
  const data = useGet<{ prices: { prices: string; from: string; gpu: Record<string, { reserved?: string; burst?: string }> }[] }>("/v1/prices", false);
  const book = data.value?.prices.filter((p) => Date.parse(p.from) <= Date.parse(at)).sort((a, b) => Date.parse(b.from) - Date.parse(a.from))[0];
  return (
    <Card title="Prices then">
      {!data.value ? <p class="hint">Not known.</p> : !book ? <Empty>No prices were in force.</Empty> : <p><a href={href("site", { tab: "prices", book: book.from })}>{book.prices}</a>, in force from {full.format(new Date(book.from))}</p>}
    </Card>
  );
}

export function Replay() {
  const q = route.value.query, asked = q.get("at") ?? "", wide = SPANS.find(([key]) => key === q.get("span")) ?? SPANS[1];
  const past = usePast(asked), p = past.value;
  const now = asked ? Date.parse(asked) : p ? Date.parse(p.at) : 0;
  const [speed, setSpeed] = useState(0);
  const view = useRef<[number, number]>([0, 0]);
  const from = p ? Date.parse(p.from) : 0, to = p ? Date.parse(p.to) : 0;

  // What the scrubber spans stays while the moment is in it.
  const [lo, hi] = useMemo(() => {
    const [a, b] = view.current;
    if (!p || (now >= a && now <= b && b - a === Math.min(wide[2], to - from))) return view.current;
    const long = Math.min(wide[2], to - from), start = now >= to - long ? to - long : Math.max(from, now - long / 2);
    return (view.current = [start, start + long]);
  }, [now, wide, from, to]);
  const step = Math.max(1000, Math.round((hi - lo) / 360)), first = hi - Math.floor((hi - lo) / step) * step; // so that the end can be reached
  const go = (ms: number) => refine({ at: iso(Math.max(from, Math.min(to, ms))) });

  useEffect(() => {
    if (!speed) return;
    if (now >= to) { setSpeed(0); return; }
    if (past.busy) return; // it goes on from what is shown
    const timer = setTimeout(() => go(now + speed * 1000), 1000);
    return () => clearTimeout(timer);
  }, [speed, now, past.busy]);
  useEffect(() => {
    const on = (e: KeyboardEvent) => {
      if (e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|SELECT|TEXTAREA|BUTTON|A)$/.test((e.target as HTMLElement).tagName) || !p) return;
      if (e.key === ",") go(now - 10000);
      else if (e.key === ".") go(now + 10000);
      else if (e.key === "<") go(now - 10 * MIN);
      else if (e.key === ">") go(now + 10 * MIN);
      else if (e.key === "[") { const before = p.events.find((x) => Date.parse(x.at) < now); if (before) refine({ at: before.at }); }
      else if (e.key === " ") { e.preventDefault(); setSpeed((s) => (s ? 0 : 60)); }
    };
    addEventListener("keydown", on);
    return () => removeEventListener("keydown", on);
  });
  const states = useMemo(() => Object.fromEntries((p?.closed ?? []).map((n) => [n.name, n.state])), [p]);
  const count = p ? letters(p.devices) : {};
  const waiting = p?.waiting.map((j) => ({ ...j, waited: j.since ? span(Date.parse(p.at) - Date.parse(j.since)) : "–" })) ?? [];
  return (
    <>
      <h1>Replay</h1>
      {past.error && <Trouble error={past.error} stale={p !== undefined} />}
      {!p && !past.error && <div class="skeleton" aria-busy="true" aria-label="Loading">{Array.from({ length: 8 }, (_, i) => <i key={i} />)}</div>}
      {p && (
        <>
          <section class="card scrub" aria-label="Moment">
            <p class="big"><time dateTime={iso(now)}>{full.format(new Date(now))}</time> <small>{zone}{now < to && `, ${span(to - now)} ago`}</small></p>
            <label class="wide"><span class="hide">Moment</span><input type="range" min={first} max={hi} step={step} value={Math.max(first, Math.min(hi, now))} aria-valuetext={full.format(new Date(now))} onInput={(e) => go(Number(e.currentTarget.value))} /></label>
            <p class="ends" aria-hidden="true"><span>{full.format(new Date(lo))}</span><span>{full.format(new Date(hi))}</span></p>
            <div class="menu">
              {STEPS.map(([name, ms]) => <button key={name} type="button" disabled={ms < 0 ? now <= from : now >= to} onClick={() => go(now + ms)}>{name}</button>)}
              <button type="button" aria-pressed={speed > 0} disabled={now >= to} onClick={() => setSpeed(speed ? 0 : 60)}>{speed ? "Pause" : "Play, a minute a second"}</button>
              <label>Span <select value={wide[0]} onChange={(e) => refine({ span: e.currentTarget.value })}>{SPANS.map(([key, name]) => <option key={key} value={key}>{name}</option>)}</select></label>
              <label>Go to <input type="datetime-local" step="1" value={iso(now - new Date(now).getTimezoneOffset() * MIN).slice(0, 19)} onChange={(e) => { const ms = new Date(e.currentTarget.value).getTime(); if (!Number.isNaN(ms)) go(ms); }} /></label>
            </div>
            <p class="hint" role="status">{past.plays ? "stintd plays its log up to this moment…" : `The log reaches back to ${full.format(new Date(from))}.`}</p>
          </section>
          {!p.exact && <p class="trouble">Another version of stintd wrote this part of the log, and this one decides some of it otherwise: what you see may differ from what was.</p>}
          <div class={past.busy ? "stale" : ""} data-at={p.at}>
            <ul class="key">{KINDS.filter((k) => count[k.letter] || k.letter === ".").map((k) => <li key={k.letter}><i class={`m-${k.kind}`} aria-hidden="true" />{k.name} <b>{number(count[k.letter] ?? 0)}</b></li>)}
              {Object.entries(p.states).filter(([, s]) => s.jobs > 0).map(([name, s]) => <li key={name}><State of={name} /> <b>{number(s.jobs)}</b> {s.jobs === 1 ? "job" : "jobs"}, {gpus(s.gpus)} GPUs</li>)}
            </ul>
            {p.devices.length > 0 && <FleetMap devices={p} states={states} at={null} only="" onNode={(node) => { location.hash = href("fleet", { node }); }} />}
            {who.value?.account && <p class="legend">You see what your account and those below it had. What others had looks free.</p>}
            <div class="cards">
              <Card title={`Events since ${clock.format(new Date(p.events_since))}`} wide>
                {p.events.length === 0 ? <Empty>Nothing was decided in that time.</Empty> : <Events rows={p.events} at={asked} />}
                {p.events_more > 0 && <p class="legend">{number(p.events_more)} earlier ones; choose an earlier moment to see them.</p>}
              </Card>
              <Card title="Waiting" wide><Jobs rows={waiting} more={p.waiting_more} /></Card>
              <Card title="On their way out" wide><Jobs rows={p.leaving} more={p.leaving_more} leaving /></Card>
              <Card title="Nodes that were not ready">
                {p.closed.length === 0 ? <Empty>All nodes were ready.</Empty> : <table><tbody>{p.closed.slice(0, 200).map((n) => <tr key={n.name}><td><a href={href("health", { node: n.name })}>{n.name}</a></td><td><State of={n.state} /></td></tr>)}</tbody></table>}
              </Card>
              <PricesThen at={p.at} />
            </div>
          </div>
        </>
      )}
    </>
  );
}
