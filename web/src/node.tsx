// A node: what it is, and what its owner does with it. On the pages Fleet and Health.
import { useEffect, useState } from "preact/hooks";
import { get, seg, send, who } from "./api";
import { href } from "./route";
import type { Job, Node } from "./types";
import { Card, Confirm, number, State, Time, Trouble } from "./ui";

/** The states of nodes, the best first, and what they mean for jobs. */
export const STATES: { state: string; means: string }[] = [
  { state: "ready", means: "takes jobs" },
  { state: "testing", means: "waits for its test; takes no new jobs" },
  { state: "suspect", means: "takes no new jobs until a test has passed" },
  { state: "draining", means: "its jobs go on, new ones go elsewhere" },
  { state: "repair", means: "a test failed, or somebody repairs it" },
  { state: "failed", means: "silent, out of order, or declared so" },
  { state: "retired", means: "nobody expects it back" },
];

type Act = { state: string; name: string; from: string[]; ask?: (n: Node) => string };
const going = (n: Node) => (n.jobs.length === 1 ? "Its job goes on." : n.jobs.length ? `Its ${n.jobs.length} jobs go on.` : "No job is there.");
const ACTS: Act[] = [
  { state: "ready", name: "Make ready", from: ["suspect", "draining", "repair", "failed", "retired"] },
  { state: "suspect", name: "Suspect", from: ["ready"], ask: (n) => `Suspect ${n.name}? ${going(n)} Nothing new starts there until a test has passed, or until the policy's time is over.` },
  { state: "draining", name: "Drain", from: ["ready", "suspect"], ask: (n) => `Drain ${n.name}? ${going(n)} Nothing new starts there until somebody makes it ready.` },
  { state: "repair", name: "Repair", from: ["ready", "suspect", "testing", "draining", "failed"], ask: (n) => `Take ${n.name} into repair? ${going(n)} Nothing new starts there until somebody makes it ready.` },
  { state: "retired", name: "Retire", from: ["ready", "suspect", "testing", "draining", "repair", "failed"], ask: (n) => `Retire ${n.name}? ${going(n)} Its ${n.gpus} GPUs are out of service until somebody makes it ready again.` },
];

function Actions({ node, again }: { node: Node; again: () => void }) {
  const [asking, setAsking] = useState<Act>(), [error, setError] = useState<Error>(), [said, setSaid] = useState("");
  const path = `/v1/nodes/${seg(node.name)}`;
  const set = async (act: Act, reason: string) => {
    await send("PATCH", path, { state: act.state, ...(reason && { reason }) });
    setAsking(undefined);
    setSaid("");
    again();
  };
  const test = () => send("POST", `${path}/test`).then(() => { setSaid("Its agent was asked for a test."); again(); });
  const tries = (what: Promise<unknown>) => { setError(undefined); what.catch(setError); };
  return (
    <>
      {error && <Trouble error={error} />}
      <div class="menu">
        <button type="button" disabled={node.tested === undefined} title={node.tested === undefined ? "It has no agent that could test it" : undefined} onClick={() => tries(test())}>Test</button>
        {ACTS.filter((a) => a.from.includes(node.state)).map((a) => (
          <button key={a.state} type="button" onClick={() => (a.ask ? setAsking(a) : tries(set(a, "")))}>{a.name}{a.ask && "…"}</button>
        ))}
      </div>
      {said && <p class="hint" role="status">{said}</p>}
      {asking && <Confirm key={asking.state} ask={asking.ask!(node)} yes={asking.name} note="Reason, for other owners" onYes={(text) => set(asking, text)} onNo={() => setAsking(undefined)} />}
    </>
  );
}

/** When it was tested last, and when it will be. */
export function NextTest({ node }: { node: Node }) {
  if (node.tested === undefined) return <>cannot be tested</>;
  return node.tested === false ? <>now</> : <Time at={node.test_at} />;
}

const LOOKED = 64; // jobs of one node that are asked for

/** How a job has its part of a GPU, as its owner wrote it. */
function part(j: Job, start: number | undefined): string {
  const { level, profile, share } = j.spec as { level?: string; profile?: string; share?: number };
  if (level === "mig") return `slice ${profile ?? ""}${start === undefined ? "" : ` from ${start}`}`;
  if (level === "mps" || level === "time") return `${share ? `${number(share * 100)} % ` : "a share "}by ${level === "mps" ? "MPS" : "time"}`;
  return "whole";
}

/** Each GPU with who has which part of it. */
function Gpus({ node }: { node: Node }) {
  const [jobs, set] = useState<Job[]>([]), ids = node.jobs.slice(0, LOOKED).join();
  useEffect(() => {
    const abort = new AbortController();
    Promise.all(ids.split(",").filter(Boolean).map((id) => get<Job>(`/v1/jobs/${id}`, abort.signal).catch(() => null)))
      .then((all) => { if (!abort.signal.aborted) set(all.filter((j): j is Job => j !== null)); });
    return () => abort.abort();
  }, [ids]);
  const rows = Array.from({ length: node.gpus }, (_, gpu) => jobs.flatMap((j) => (j.placement?.grants ?? []).filter((g) => g.node === node.name && (g.gpus ?? []).includes(gpu)).map((g) => ({ j, how: part(j, g.mig_start) }))));
  return (
    <table class="gpus">
      <caption class="hide">GPUs of {node.name}</caption>
      <thead><tr><th class="n">GPU</th><th>Job</th><th>Has</th><th>Account</th></tr></thead>
      <tbody>{rows.flatMap((on, gpu) => (on.length ? on : [null]).map((r, k) => (
        <tr key={`${gpu} ${k}`}><td class="n">{k === 0 ? gpu : ""}</td><td>{r ? <a href={href(`jobs/${r.j.id}`)}>{r.j.name || r.j.id}</a> : "–"}</td><td>{r?.how ?? ""}</td><td>{r?.j.account ?? ""}</td></tr>
      )))}</tbody>
    </table>
  );
}

export function NodeCard({ node, again, more }: { node: Node; again: () => void; more?: boolean }) {
  return (
    <Card title={node.name} more={<State of={node.state} />}>
      <dl>
        <div><dt>GPUs</dt><dd>{node.gpus} {node.type}{node.gpus_free !== undefined && `, ${node.gpus_free} free`}</dd></div>
        <div><dt>Pool</dt><dd>{node.pool}</dd></div>
        <div><dt>Place</dt><dd>{[node.zone, node.block, node.rack].filter(Boolean).join(" / ") || "–"}</dd></div>
        {node.since && <div><dt>Since</dt><dd><Time at={node.since} />{node.by && ` by ${node.by}`}</dd></div>}
        {node.reason && <div><dt>Reason</dt><dd>{node.reason}</dd></div>}
        <div><dt>Passed</dt><dd>{node.passed ? <>a test <Time at={node.passed} /></> : "no test yet"}</dd></div>
        <div><dt>Next test</dt><dd><NextTest node={node} /></dd></div>
        <div><dt>Jobs</dt><dd>{node.jobs.length === 0 ? (who.value?.account ? "none of yours" : "none") : node.jobs.map((j) => <a key={j} class="chip" href={href(`jobs/${j}`)}>{j}</a>)}</dd></div>
      </dl>
      {more && node.gpus > 0 && <Gpus node={node} />}
      {more && node.jobs.length > LOOKED && <p class="hint">The first {LOOKED} of its {number(node.jobs.length)} jobs.</p>}
      {more && <p class="hint"><a href={href("health", { node: node.name })}>Tests and history</a></p>}
      {who.value?.role === "owner" && <Actions node={node} again={again} />}
    </Card>
  );
}
