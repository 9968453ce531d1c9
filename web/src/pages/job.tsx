// Did it work? Why does it wait, and what would help?
import { useEffect, useRef, useState } from "preact/hooks";
import { call, mayChange, send } from "../api";
import { Over, WORK } from "../chart";
import { href } from "../route";
import { Reasons, start, Tryout } from "../start";
import type { Job, Why } from "../types";
import { Card, Confirm, Empty, gpus, Loaded, money, number, ranges, span, State, Time } from "../ui";
import { useGet } from "../use";

const OVER = ["done", "failed", "timeout", "cancelled"];

function WhyCard({ job }: { job: Job }) {
  const why = useGet<Why>(`/v1/jobs/${job.id}/why`), may = mayChange();
  return (
    <>
      <Card title="Why it waits" wide>
        <Loaded data={why}>{(w) => (
          <>
            <p class="big">{start(w) === "not known" ? "Its start is not known." : `It should start ${start(w)}.`}</p>
            {w.start_earliest && w.start_latest && <p class="legend">Between <Time at={w.start_earliest} /> and <Time at={w.start_latest} />: eight of ten past estimates this far ahead fell into such a span.</p>}
            <Reasons of={w.reasons} />
          </>
        )}</Loaded>
      </Card>
      {may && <Card title="What would help" wide>
        <p class="legend">Move a slider: the scheduler says when the job would start. Nothing is submitted.</p>
        <Tryout key={job.id} spec={{ ...job.spec, account: job.account }} instead={async (changed) => {
          const made = await send<{ id: string }>("POST", "/v1/jobs", changed);
          await send("DELETE", `/v1/jobs/${job.id}`);
          location.hash = href(`jobs/${made!.id}`);
        }} />
      </Card>}
    </>
  );
}

type Use = { cost: string; memory: { asked_mib?: number; peak_mib?: number }; gpu: { busy?: number | null; watts?: number | null }; suggestions: string[] };

/** What it has cost so far, and what of the memory that it asked for it has used. */
function UseCard({ job }: { job: Job }) {
  const data = useGet<Use>(`/v1/jobs/${job.id}/use`), gib = (mib: number | undefined) => (mib === undefined ? "not known" : `${number(mib / 1024, 1)} GiB`);
  return (
    <Card title={OVER.includes(job.state) ? "What it cost and used" : "Cost and use so far"}>
      <Loaded data={data}>{(u) => (
        <>
          <p class="big">{money(u.cost)}</p>
          <dl>
            <div><dt>GPUs busy</dt><dd>{u.gpu.busy === null || u.gpu.busy === undefined ? "not known" : `${number(u.gpu.busy * 100)} %`}</dd></div>
            {u.memory.asked_mib !== undefined && <div><dt>GPU memory</dt><dd>asked {gib(u.memory.asked_mib)}, used {gib(u.memory.peak_mib)}</dd></div>}
            {u.gpu.watts !== null && u.gpu.watts !== undefined && <div><dt>Power</dt><dd>{number(u.gpu.watts)} W per GPU</dd></div>}
          </dl>
          {u.suggestions.map((s) => <p key={s} class="hint">{s}</p>)}
        </>
      )}</Loaded>
    </Card>
  );
}

/** How long it waited, ran, and was off its devices in between, as one bar. */
function Life({ job }: { job: Job }) {
  const begin = Date.parse(job.submitted), end = job.ended ? Date.parse(job.ended) : Date.now(), start = job.started ? Date.parse(job.started) : end;
  const ran = Math.min(end - start, (job.run_seconds ?? 0) * 1000), off = Math.max(0, end - start - ran);
  const parts = [{ value: start - begin, kind: "unused", name: "waited" }, { value: ran, kind: "inside", name: "ran" }, { value: off, kind: "borrowed", name: job.state === "paused" || job.preemptions ? "was preempted or paused" : "was neither" }].filter((p) => p.value >= 1000);
  if (parts.length === 0) return null;
  const whole = parts.reduce((s, p) => s + p.value, 0);
  let x = 0;
  return (
    <>
      <svg class="bar" viewBox="0 0 100 4" preserveAspectRatio="none" role="img" aria-label={parts.map((p) => `${p.name} ${span(p.value)}`).join(", ")}>
        {parts.map((p) => { const at = x; x += (100 * p.value) / whole; return <rect key={p.kind} class={`bar-${p.kind}`} x={at} width={(100 * p.value) / whole} height="4" />; })}
      </svg>
      <p class="legend">{parts.map((p) => <span key={p.kind} class={`k-${p.kind}`}>{p.name} {span(p.value)} </span>)}</p>
    </>
  );
}

function Logs({ job }: { job: Job }) {
  const [text, setText] = useState(""), [error, setError] = useState<Error>(), [end, setEnd] = useState(false), [task, setTask] = useState(0);
  const box = useRef<HTMLPreElement>(null), stick = useRef(true);
  const tasks = job.spec.tasks ?? 1;
  useEffect(() => {
    const abort = new AbortController();
    let offset = 0, over = false;
    setText(""); setError(undefined); setEnd(false);
    (async () => {
      while (!over && !abort.signal.aborted) {
        try {
          const answer = await call("GET", `/v1/jobs/${job.id}/logs?task=${task}&offset=${offset}&follow=true&wait=20`, undefined, abort.signal);
          const part = await answer.text();
          offset = Number(answer.headers.get("Stint-Log-Next") ?? offset + part.length);
          over = answer.headers.get("Stint-Log-End") !== null;
          if (part) setText((t) => (t + part).slice(-400_000));
        } catch (e) {
          if ((e as Error).name === "AbortError") return;
          setError(e as Error);
          return;
        }
      }
      if (over) setEnd(true);
    })();
    return () => abort.abort();
  }, [job.id, task, job.placement?.stay]);
  useEffect(() => { if (stick.current && box.current) box.current.scrollTop = box.current.scrollHeight; }, [text]);
  return (
    <Card title="Output" wide more={tasks > 1 ? <label>Task <input type="number" min={0} max={tasks - 1} value={task} onChange={(e) => setTask(Math.max(0, Math.min(tasks - 1, Number(e.currentTarget.value))))} /></label> : undefined}>
      {error && <p class="legend">{error.message}</p>}
      {text === "" && error ? null : text === "" ? <Empty>{end ? "It wrote nothing." : "Nothing was written yet."}</Empty> : (
        <pre class="log" ref={box} tabIndex={0} aria-label="Output of the job" onScroll={(e) => { const el = e.currentTarget; stick.current = el.scrollHeight - el.scrollTop - el.clientHeight < 40; }}>{text}</pre>
      )}
      {end && text !== "" && <p class="legend">The output is complete.</p>}
    </Card>
  );
}

/** As a query has it. */
function began(started: string): string {
  return `${started.slice(0, 19)}Z`;
}

export function JobPage({ id }: { id: string }) {
  const data = useGet<Job>(`/v1/jobs/${encodeURIComponent(id)}`);
  const [asking, setAsking] = useState(false);
  const may = mayChange();
  return (
    <Loaded data={data} rows={8}>{(job) => {
      const command = job.spec.command ?? [];
      return (
        <>
          <header class="title">
            <h1>{job.name || job.id}</h1> <State of={job.state} />
            <span class="grow" />
            {may && <a class="button" href={href("submit", { like: job.id })}>Submit again…</a>}
            {may && !OVER.includes(job.state) && <button type="button" class="danger" onClick={() => setAsking(true)}>Cancel the job</button>}
          </header>
          <div class="cards">
            <Card title="Job">
              <dl>
                <div><dt>Id</dt><dd><code>{job.id}</code></dd></div>
                <div><dt>Account</dt><dd><a href={href("jobs", { account: job.account })}>{job.account}</a></dd></div>
                <div><dt>User</dt><dd>{job.user}</dd></div>
                <div><dt>GPUs</dt><dd>{gpus(job.gpus)}{(job.spec.tasks ?? 1) > 1 && ` in ${job.spec.tasks} tasks`}{job.spec.type ? ` of type ${job.spec.type}` : ""}</dd></div>
                <div><dt>Limit</dt><dd>{job.spec.limit ?? "none"}</dd></div>
                <div><dt>Class</dt><dd>{job.class === "none" ? "waits" : job.class}</dd></div>
                {command.length > 0 && <div><dt>Command</dt><dd><code>{command.join(" ")}</code></dd></div>}
              </dl>
            </Card>
            <Card title="Time">
              <Life job={job} />
              <dl>
                <div><dt>Submitted</dt><dd><Time at={job.submitted} /></dd></div>
                <div><dt>Started</dt><dd><Time at={job.started} /></dd></div>
                <div><dt>Ended</dt><dd><Time at={job.ended} /></dd></div>
                <div><dt>Ran</dt><dd>{job.run_seconds !== undefined ? span(job.run_seconds * 1000) : "–"}</dd></div>
                <div><dt>Preempted</dt><dd>{job.preemptions === 0 ? "never" : `${job.preemptions} times, ${span(job.lost_gpu_seconds * 1000)} of GPU time lost`}</dd></div>
                {job.exit_code !== null && <div><dt>Exit status</dt><dd>{job.exit_code}</dd></div>}
                {job.reason && <div><dt>Reason</dt><dd>{job.reason}</dd></div>}
              </dl>
            </Card>
            {job.placement && job.placement.grants.length > 0 && (
              <Card title={OVER.includes(job.state) ? "Where it was" : "Where it is"}>
                <ul class="places">{job.placement.grants.slice(0, 64).map((g, i) => <li key={i}><a href={href("fleet", { node: g.node })}>{g.node}</a> <small>GPU {ranges(g.gpus)}</small></li>)}</ul>
                {job.placement.grants.length > 64 && <p class="legend">and {number(job.placement.grants.length - 64)} more nodes</p>}
              </Card>
            )}
            {job.started && <UseCard job={job} />}
            {job.state === "pending" && <WhyCard job={job} />}
            {job.started && <Over title="GPU, memory and power over time" query={{ of: "job", name: job.id, since: began(job.started), until: job.ended ? `${job.ended.slice(0, 19)}Z` : undefined }} plots={WORK} spans={false}
              none={OVER.includes(job.state) ? "Nobody measured its GPUs, or that was too long ago." : "Nobody has measured its GPUs yet. Agents say every half minute what jobs use; simulated nodes measure nothing."} />}
            {job.started && <Logs job={job} />}
          </div>
          {asking && <Confirm ask={`Cancel ${job.name || job.id}? What it has not saved is lost.`} yes="Cancel the job" onNo={() => setAsking(false)} onYes={async () => { await send("DELETE", `/v1/jobs/${job.id}`); setAsking(false); data.again(); }} />}
        </>
      );
    }}</Loaded>
  );
}
