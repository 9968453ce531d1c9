// Figures over time: lines with gaps where nothing is known, the value under the pointer or the arrow keys, and the same as a table.
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { url } from "./api";
import { refine, route } from "./route";
import { Card, Empty, number, span, Trouble, zone } from "./ui";
import { useGet } from "./use";

export type Series = { of: string; name: string; since: string; until: string; step_seconds: number; figures: Record<string, (number | null)[]> };
/** A figure as one line. `times` makes it what people read; the first line is solid, the next are dashed. */
export type Line = { figure: string; name: string; times?: number };

const HIGH = 120, WIDE = 1000;
const when = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });

/* ---- from when ---- */

export const SPANS: Record<string, string> = { "1h": "1 hour", "6h": "6 hours", "1d": "1 day", "7d": "7 days", "30d": "30 days", "365d": "1 year" };

export const since = () => { const s = route.value.query.get("span") ?? "1d"; return s in SPANS ? s : "1d"; };

export const Spans = () => (
  <label>Time <select value={since()} onChange={(e) => refine({ span: e.currentTarget.value === "1d" ? undefined : e.currentTarget.value })}>
    {Object.entries(SPANS).map(([k, v]) => <option key={k} value={k}>{v}</option>)}
  </select></label>
);

/** Asks again when the next bucket is over. */
export function useSeries(query: Record<string, string | undefined> | null) {
  const data = useGet<Series>(query ? url("/v1/series", query) : null, false), every = data.value?.step_seconds;
  useEffect(() => {
    if (!every) return;
    const t = setInterval(data.again, Math.max(every, 5) * 1000);
    return () => clearInterval(t);
  }, [every]);
  return data;
}

/* ---- one chart ---- */

/** The least round number that is not below. */
function round(most: number): number {
  const ten = 10 ** Math.floor(Math.log10(Math.max(most, 1e-9)));
  return ([1, 2, 2.5, 5, 10].find((n) => n * ten >= most * 0.999) ?? 10) * ten;
}

type Points = { name: string; values: (number | null)[] };

/** A stretch of values that are known is one stroke; one alone is a dot. */
function path(values: (number | null)[], most: number, width: number): string {
  let out = "", on = false;
  values.forEach((v, i) => {
    if (v === null) { on = false; return; }
    const x = ((i + 0.5) * width).toFixed(1), y = (HIGH - (HIGH * Math.max(0, Math.min(v, most))) / most).toFixed(1);
    out += on ? `L${x} ${y}` : `M${x} ${y}h0.01`;
    on = true;
  });
  return out;
}

export function Chart({ title, lines, of, unit, until, most: least, extra = [] }: {
  title: string; lines: Line[]; of: Series; unit: string; until?: string; most?: number; extra?: Points[];
}) {
  const step = of.step_seconds * 1000, from = Date.parse(of.since), n = Math.max(1, Math.round((Date.parse(of.until) - from) / step));
  const all = Math.max(n, until ? Math.round((Date.parse(until) - from) / step) : 0);
  const points = useMemo<Points[]>(() => [
    ...lines.filter((l) => of.figures[l.figure]).map((l) => ({ name: l.name, values: of.figures[l.figure].map((v) => (v === null ? null : v * (l.times ?? 1))) })), ...extra,
  ], [of, lines, extra]);
  const most = round(Math.max(least ?? 0, 1e-9, ...points.flatMap((p) => p.values.filter((v): v is number => v !== null))));
  const [at, setAt] = useState<number | null>(null), width = WIDE / all, days = all * step > 36e5 * 36;
  const label = (ms: number) => (days ? when : clock).format(ms);
  const say = (v: number | null | undefined) => (v === null || v === undefined ? "not known" : `${number(v, v < 10 ? 2 : v < 100 ? 1 : 0)}${unit}`);
  const shown = at === null ? null : Math.max(0, Math.min(n - 1, at));
  if (points.length === 0) return null;
  return (
    <figure class="chart">
      <figcaption>{title} <span class="key">{points.map((p, i) => <span key={p.name}><svg class="swatch-line" viewBox="0 0 24 4" aria-hidden="true"><path class={`line${i}`} d="M0 2H24" /></svg>{p.name}</span>)}</span></figcaption>
      <div class="plot">
        <span class="y top">{number(most, 2)}{unit}</span><span class="y">0</span>
        <svg viewBox={`0 0 ${WIDE} ${HIGH}`} preserveAspectRatio="none" role="img" tabIndex={0}
          aria-label={`${title}: ${points.map((p) => `${p.name}, last ${say(p.values[n - 1])}`).join("; ")}. Arrow keys move along; the table below has the numbers.`}
          onMouseMove={(e) => { const box = e.currentTarget.getBoundingClientRect(); setAt(Math.floor(((e.clientX - box.left) / box.width) * all)); }}
          onMouseLeave={() => setAt(null)} onBlur={() => setAt(null)}
          onKeyDown={(e) => {
            const to = { ArrowLeft: (at ?? n) - 1, ArrowRight: (at ?? -1) + 1, Home: 0, End: n - 1 }[e.key];
            if (to === undefined) return;
            e.preventDefault();
            setAt(Math.max(0, Math.min(n - 1, to)));
          }}>
          <path class="grid" d={[0, 0.5, 1].map((y) => `M0 ${y * HIGH}H${WIDE}`).join("")} />
          {points.map((p, i) => <path key={p.name} class={`line${i}`} d={path(p.values, most, width)} />)}
          {shown !== null && <path class="cursor" d={`M${((shown + 0.5) * width).toFixed(1)} 0V${HIGH}`} />}
        </svg>
        <span class="x"><span>{label(from)}</span><span>{label(from + (all * step) / 2)}</span><span>{label(from + all * step)}</span></span>
      </div>
      <p class="legend" aria-live="polite">{shown === null ? `Each point is ${span(step)}. Times in ${zone}.` : `${when.format(from + shown * step)}: ${points.map((p) => `${p.name} ${say(p.values[shown])}`).join(", ")}`}</p>
    </figure>
  );
}

/** The numbers of all charts of a card. The newest come first; what is long is for a program. */
export function Numbers({ of, lines }: { of: Series; lines: Line[] }) {
  const step = of.step_seconds * 1000, from = Date.parse(of.since), n = Math.round((Date.parse(of.until) - from) / step);
  const there = lines.filter((l) => of.figures[l.figure]), rows = Math.min(n, 120), [open, setOpen] = useState(false);
  if (there.length === 0) return null;
  return (
    <details onToggle={(e) => setOpen(e.currentTarget.open)}><summary>As a table</summary>
      {open && <table>
        <thead><tr><th>From ({zone})</th>{there.map((l) => <th key={l.figure} class="n">{l.name}</th>)}</tr></thead>
        <tbody>{Array.from({ length: rows }, (_, k) => n - 1 - k).map((i) => (
          <tr key={i}><td>{when.format(from + i * step)}</td>{there.map((l) => { const v = of.figures[l.figure][i]; return <td key={l.figure} class="n">{v === null || v === undefined ? "–" : number(v * (l.times ?? 1), 2)}</td>; })}</tr>
        ))}</tbody>
      </table>}
      {open && n > rows && <p class="legend">The last {rows} of {number(n)}; a shorter time or the API has the rest.</p>}
    </details>
  );
}

/* ---- a card of charts ---- */

export type Plot = { title: string; unit: string; lines: Line[]; most?: number };

export const USE: Plot[] = [
  { title: "GPUs", unit: "", lines: [{ figure: "gpus_held", name: "held" }, { figure: "gpus_floor", name: "floor" }, { figure: "gpus_waiting", name: "asked for by jobs that wait" }] },
  { title: "Jobs", unit: "", lines: [{ figure: "jobs_running", name: "on GPUs" }, { figure: "jobs_waiting", name: "waiting" }] },
];
export const WORK: Plot[] = [
  { title: "Utilisation", unit: " %", most: 100, lines: [{ figure: "utilisation", name: "a kernel ran", times: 100 }] },
  { title: "Memory per GPU", unit: " GiB", lines: [{ figure: "gpu_memory_mib", name: "in use", times: 1 / 1024 }] },
  { title: "Power per GPU", unit: " W", lines: [{ figure: "gpu_power_watts", name: "drawn" }] },
  { title: "Temperature", unit: " °C", lines: [{ figure: "gpu_celsius", name: "of GPUs that were held" }] },
];

export function Over({ title, query, plots, none, spans = true, more }: {
  title: string; query: Record<string, string | undefined>; plots: Plot[]; none: string; spans?: boolean; more?: ComponentChildren;
}) {
  const data = useSeries(query), f = data.value?.figures ?? {};
  const some = plots.filter((p) => p.lines.some((l) => f[l.figure]));
  return (
    <Card title={title} wide more={spans || more ? <div class="filters">{more}{spans && <Spans />}</div> : undefined}>
      {data.error && <Trouble error={data.error} again={data.again} stale={data.value !== undefined} />}
      {data.value ? some.length === 0 ? <Empty>{none}</Empty> : (
        <>
          <div class="charts">{some.map((p) => <Chart key={p.title} {...p} of={data.value!} />)}</div>
          <Numbers of={data.value} lines={some.flatMap((p) => p.lines.map((l) => ({ ...l, name: some.length > 1 ? `${p.title}, ${l.name}${p.unit && `,${p.unit}`}` : l.name })))} />
        </>
      ) : data.busy && <div class="skeleton" aria-busy="true" aria-label="Loading"><i /><i /><i /></div>}
    </Card>
  );
}
