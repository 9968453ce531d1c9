// When a job would start, and what would help: the scheduler itself is asked, nothing is submitted.
import { useEffect, useRef, useState } from "preact/hooks";
import { send } from "./api";
import type { Answer, Reason, Why } from "./types";
import { gpus, money, number, span, Trouble } from "./ui";
import { useDebounced, useGet } from "./use";

const until = (at: string) => new Date(at).getTime() - Date.now();

export function start(a: Why): string {
  if (a.state !== "pending") return "at once";
  return a.start_estimate ? `in ${span(until(a.start_estimate))}` : "not known";
}

/** The estimate as a mark on a line of time, and the span into which eight of ten past ones fell. */
export function Axis({ of, most }: { of: Why; most: number }) {
  const x = (at: string) => Math.max(0, Math.min(100, (100 * until(at)) / most));
  const now = of.state !== "pending", low = of.start_earliest, high = of.start_latest;
  return (
    <svg class="axis" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label={now ? "starts at once" : `starts ${start(of)}${low && high ? `, between ${span(until(low))} and ${span(until(high))} from now` : ""}`}>
      <rect class="bar-rest" y="4" width="100" height="2" />
      {!now && low && high && <rect class="bar-unused" x={x(low)} y="3" width={Math.max(1, x(high) - x(low))} height="4" />}
      {(now || of.start_estimate) && <rect class="bar-inside" x={now ? 0 : Math.min(99, x(of.start_estimate!))} width="1" height="10" />}
    </svg>
  );
}

function Measure({ of: m }: { of: NonNullable<Reason["measure"]> }) {
  const most = Math.max(m.bound, m.used + m.asked, 1e-9), part = (n: number) => (100 * n) / most;
  const words = m.unit === "tasks" ? `${number(m.used)} of ${number(m.bound)} tasks fit` : `${gpus(m.used)} held and ${gpus(m.asked)} asked for, of ${gpus(m.bound)} GPUs`;
  return (
    <span class="measure">
      <svg viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label={words}>
        <rect class="bar-rest" width="100" height="8" />
        <rect class="bar-inside" width={part(m.used)} height="8" />
        <rect class="bar-borrowed" x={part(m.used)} width={part(m.asked)} height="8" />
        <rect class="bar-bound" x={Math.min(99.2, part(m.bound))} width="0.8" height="8" />
      </svg>
      <small>{words}</small>
    </span>
  );
}

export function Reasons({ of }: { of: Reason[] }) {
  return (
    <ul class="reasons">{of.map((r, i) => (
      <li key={i} class={r.blocks ? "blocks" : ""}><code>{r.code}</code> <span>{r.text}</span>{r.blocks && <b>blocks the start</b>}{r.measure && <Measure of={r.measure} />}</li>
    ))}</ul>
  );
}

/* ---- the job with other numbers ---- */

const PRIORITIES = ["low", "normal", "high"], TOPOLOGIES = ["", "nvlink", "rack", "block", "zone"];
type Spec = Record<string, unknown>;

const hours = (limit: unknown): number => {
  const m = /^(\d+(?:\.\d+)?)(s|m|h|d)$/.exec(String(limit ?? ""));
  return m ? Number(m[1]) * { s: 1 / 3600, m: 1 / 60, h: 1, d: 24 }[m[2] as "s"]! : 0;
};
const asLimit = (h: number) => (h >= 1 ? `${Math.round(h)}h` : `${Math.max(1, Math.round(h * 60))}m`);

/** Sliders over what a job asks for. The answer is that of /v1/whatif for this very job. */
export function Tryout({ spec, instead }: { spec: Spec; instead?: (changed: Spec) => Promise<void> }) {
  const { user: _user, ...base } = spec;
  const asked = { tasks: Number(spec.tasks ?? 1), gpus: Number(spec.gpus ?? 0), hours: hours(spec.limit) };
  const [tasks, setTasks] = useState(asked.tasks), [each, setEach] = useState(asked.gpus), [long, setLong] = useState(asked.hours);
  const [priority, setPriority] = useState(""), [type, setType] = useState(""), [topology, setTopology] = useState<string>();
  const [answers, set] = useState<Answer[]>(), [error, setError] = useState<Error>(), [busy, setBusy] = useState(false);
  const types = useGet<{ types: { name: string }[] }>("/v1/types", false);
  const change: Spec = {};
  if (tasks !== asked.tasks) change.tasks = tasks;
  if (each !== asked.gpus) change.gpus = each;
  if (long !== asked.hours) change.limit = asLimit(long);
  if (priority) change.priority = priority;
  if (type) change.type = type === "any" ? types.value?.types.map((t) => t.name) : type;
  if (topology !== undefined) change.topology = topology ? { require: topology } : {};
  const question = JSON.stringify({ job: base, variants: [{}, change] }), late = useDebounced(question, 250);
  const turn = useRef(0);

  useEffect(() => {
    const mine = ++turn.current;
    send<{ answers: Answer[] }>("POST", "/v1/whatif", JSON.parse(late)).then(
      (d) => { if (turn.current === mine) { set(d!.answers); setError(undefined); } },
      (e) => { if (turn.current === mine) setError(e); },
    );
  }, [late]);
  const other = answers?.[1], same = Object.keys(change).length === 0;
  const waits = (answers ?? []).flatMap((a) => [a.start_latest, a.start_estimate]).filter(Boolean).map((t) => until(t!));
  const most = Math.max(60000, ...waits);
  return (
    <div class="tryout">
      <div class="sliders">
        <label>GPUs per task <input type="range" min={asked.gpus ? 1 : 0} max={Math.max(8, asked.gpus)} value={each} onInput={(e) => setEach(Number(e.currentTarget.value))} /> <output>{each}</output></label>
        <label>Tasks <input type="range" min={1} max={Math.max(2, asked.tasks * 2)} value={tasks} onInput={(e) => setTasks(Number(e.currentTarget.value))} /> <output>{tasks}</output></label>
        {asked.hours > 0 && <label>Limit <input type="range" min={Math.min(1, asked.hours)} max={Math.max(4, asked.hours * 2)} step={asked.hours >= 4 ? 1 : 0.25} value={long} onInput={(e) => setLong(Number(e.currentTarget.value))} /> <output>{asLimit(long)}</output></label>}
        <label>Type <select value={type} onChange={(e) => setType(e.currentTarget.value)}><option value="">as asked</option><option value="any">any</option>{types.value?.types.map((t) => <option key={t.name}>{t.name}</option>)}</select></label>
        <label>Topology <select value={topology ?? "="} onChange={(e) => setTopology(e.currentTarget.value === "=" ? undefined : e.currentTarget.value)}><option value="=">as asked</option>{TOPOLOGIES.map((t) => <option key={t} value={t}>{t || "anywhere"}</option>)}</select></label>
        <label>Priority <select value={priority} onChange={(e) => setPriority(e.currentTarget.value)}><option value="">as asked</option>{PRIORITIES.map((p) => <option key={p}>{p}</option>)}</select></label>
      </div>
      {error && <Trouble error={error} />}
      {!answers ? !error && <div class="skeleton" aria-busy="true" aria-label="Loading"><i /><i /></div> : (
        <table class="helps">
          <thead><tr><th>The job</th><th>It would start</th><th class="axis"><span class="hide">On a line of time, from now to {span(most)} ahead</span></th><th>Preempts</th><th class="n">Costs at most</th></tr></thead>
          <tbody>{(same ? [answers[0]] : [answers[0], other!]).map((a, i) => (
            <tr key={i} class={i === 1 && a.state !== "refused" ? "better" : ""}>
              <th scope="row">{i === 0 ? "as it is" : Object.entries(change).map(([k, v]) => `${k} ${typeof v === "object" ? (Object.values(v as object).join(", ") || "any") : v}`).join(", ")}</th>
              {a.state === "refused" ? <td colSpan={4}>Refused: {a.detail}</td> : (
                <><td>{start(a)}</td><td><Axis of={a} most={most} /></td><td>{a.displaces.length ? `${a.displaces.length} jobs of yours` : "none of yours"}</td><td class="n">{a.cost_most ? money(a.cost_most, "") : "–"}</td></>
              )}
            </tr>
          ))}</tbody>
        </table>
      )}
      {instead && !same && other && other.state !== "refused" && <button type="button" class="main" disabled={busy} onClick={() => { setBusy(true); instead({ ...base, ...change }).catch(setError).finally(() => setBusy(false)); }}>Submit this instead</button>}
    </div>
  );
}
