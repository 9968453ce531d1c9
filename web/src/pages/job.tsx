// Did it work? Why does it wait, and what would help?
import { useEffect, useRef, useState } from "preact/hooks";
import { call, send, who } from "../api";
import { href } from "../route";
import type { Answer, Job, Why } from "../types";
import { Card, Confirm, Empty, gpus, Loaded, number, ranges, span, State, Time, Trouble } from "../ui";
import { useGet } from "../use";

const OVER = ["done", "failed", "timeout", "cancelled"];

/** What the job would be with less, or with more in its favour. */
function variants(job: Job): { label: string; change: Record<string, unknown> }[] {
  const out: { label: string; change: Record<string, unknown> }[] = [{ label: "as it is", change: {} }];
  const tasks = job.spec.tasks ?? 1, each = typeof job.spec.gpus === "number" ? job.spec.gpus : 1;
  const limit = /^(\d+)h$/.exec(job.spec.limit ?? "");
  for (const part of [2, 4])
    if (tasks >= part && tasks % part === 0) out.push({ label: `${tasks / part} of ${tasks} tasks`, change: { tasks: tasks / part } });
    else if (tasks === 1 && each >= part && each % part === 0) out.push({ label: `${each / part} of ${each} GPUs`, change: { gpus: each / part } });
  if (tasks > 1 && each > 1) out.push({ label: `${tasks * 2} tasks with ${each / 2} GPUs`, change: { tasks: tasks * 2, gpus: each / 2 } });
  if (limit && Number(limit[1]) > 1) out.push({ label: `a limit of ${Math.ceil(Number(limit[1]) / 4)} h`, change: { limit: `${Math.ceil(Number(limit[1]) / 4)}h` } });
  out.push({ label: "priority high", change: { priority: "high" } });
  return out.filter((v) => !("gpus" in v.change) || Number.isInteger(v.change.gpus as number));
}

function start(a: Why): string {
  if (a.state === "running") return "at once";
  if (!a.start_estimate) return "not known";
  return `in ${span(new Date(a.start_estimate).getTime() - Date.now())}`;
}

/** Starts on one axis, so that what helps is seen at a glance. */
function Helps({ job }: { job: Job }) {
  const [answers, set] = useState<Answer[]>(), [error, setError] = useState<Error>(), [sent, setSent] = useState<string>();
  const tries = variants(job);
  useEffect(() => {
    const { user: _user, ...spec } = job.spec;
    send<{ answers: Answer[] }>("POST", "/v1/whatif", { job: spec, variants: tries.map((t) => t.change) })
      .then((d) => set(d!.answers), setError);
  }, [job.id]);
  if (error) return <Trouble error={error} />;
  if (!answers) return <div class="skeleton" aria-busy="true" aria-label="Loading"><i /><i /><i /></div>;
  const waits = answers.map((a) => a.state === "running" ? 0 : a.start_estimate ? new Date(a.start_estimate).getTime() - Date.now() : Infinity);
  const most = Math.max(1, ...waits.filter(Number.isFinite));
  return (
    <table class="helps">
      <thead><tr><th>If it were</th><th>It would start</th><th><span class="hide">On a time axis</span></th><th>Preempts</th><th><span class="hide">Submit</span></th></tr></thead>
      <tbody>{answers.map((a, i) => (
        <tr key={tries[i].label} class={waits[i] < waits[0] * 0.9 ? "better" : ""}>
          <th scope="row">{tries[i].label}</th>
          <td>{start(a)}</td>
          <td class="axis"><svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true"><rect class="bar-rest" width="100" height="4" /><rect class={i === 0 ? "bar-borrowed" : "bar-inside"} width={Number.isFinite(waits[i]) ? Math.max(1, (100 * waits[i]) / most) : 100} height="4" /></svg></td>
          <td>{a.displaces.length ? `${a.displaces.length} jobs` : "nobody"}</td>
          <td>{i > 0 && waits[i] < waits[0] && (
            <button type="button" disabled={!!sent} onClick={() => {
              const { user: _user, ...spec } = job.spec;
              send<{ id: string }>("POST", "/v1/jobs", { ...spec, ...tries[i].change }).then((j) => setSent(j!.id), setError);
            }}>Submit this as well</button>
          )}</td>
        </tr>
      ))}</tbody>
      {sent && <caption>Submitted <a href={href(`jobs/${sent}`)}>{sent}</a>. The first job still waits; cancel it if you do not need both.</caption>}
    </table>
  );
}

function WhyCard({ job }: { job: Job }) {
  const why = useGet<Why>(`/v1/jobs/${job.id}/why`);
  return (
    <>
      <Card title="Why it waits" wide>
        <Loaded data={why}>{(w) => (
          <>
            <p class="big">{start(w) === "not known" ? "Its start is not known." : `It should start ${start(w)}.`}</p>
            <ul class="reasons">{w.reasons.map((r, i) => (
              <li key={i} class={r.blocks ? "blocks" : ""}><code>{r.code}</code> <span>{r.text}</span>{r.blocks && <b>blocks the start</b>}</li>
            ))}</ul>
          </>
        )}</Loaded>
      </Card>
      <Card title="What would help" wide>
        <p class="legend">The scheduler itself was asked; nothing was submitted.</p>
        <Helps job={job} />
      </Card>
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

export function JobPage({ id }: { id: string }) {
  const data = useGet<Job>(`/v1/jobs/${encodeURIComponent(id)}`);
  const [asking, setAsking] = useState(false);
  const may = who.value?.role !== "viewer" && who.value?.role !== "auditor";
  return (
    <Loaded data={data} rows={8}>{(job) => {
      const command = job.spec.command ?? [];
      return (
        <>
          <header class="title">
            <h1>{job.name || job.id}</h1> <State of={job.state} />
            <span class="grow" />
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
            {job.state === "pending" && <WhyCard job={job} />}
            {job.started && <Logs job={job} />}
          </div>
          {asking && <Confirm ask={`Cancel ${job.name || job.id}? What it has not saved is lost.`} yes="Cancel the job" onNo={() => setAsking(false)} onYes={async () => { await send("DELETE", `/v1/jobs/${job.id}`); setAsking(false); data.again(); }} />}
        </>
      );
    }}</Loaded>
  );
}
