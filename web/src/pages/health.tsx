// Which nodes, since when, why? What is out of service, and a node's tests and past.
import { seg, who } from "../api";
import { Over, since, type Plot } from "../chart";
import { Incidents } from "../incidents";
import { NextTest, NodeCard, STATES } from "../node";
import { href, refine, route } from "../route";
import type { Check, Node, Past, Trial } from "../types";
import { Bar, Card, Empty, Loaded, number, ranges, span, State, Time } from "../ui";
import { useGet } from "../use";

const HEALTHY: Plot[] = [{ title: "GPUs", unit: "", lines: [{ figure: "gpus_healthy", name: "healthy" }, { figure: "gpus_held", name: "held by jobs" }] }];

/* ---- how much is there ---- */

function Available({ nodes }: { nodes: Node[] }) {
  const count = STATES.map(({ state, means }) => {
    const of = nodes.filter((n) => n.state === state);
    return { state, means, nodes: of.length, gpus: of.reduce((s, n) => s + n.gpus, 0) };
  }).filter((c) => c.nodes > 0 || c.state === "ready");
  const all = count.reduce((s, c) => s + c.gpus, 0), ready = count[0].gpus;
  return (
    <Card title="Available now">
      <p class="big">{all ? `${number((100 * ready) / all, 1)} %` : "–"} <small>{number(ready)} of {number(all)} GPUs are on nodes that are ready</small></p>
      <Bar label="GPUs by state of their node" of={all} parts={count.map((c) => ({ value: c.gpus, kind: `n-${c.state}`, name: c.state }))} />
      <table>
        <thead><tr><th>State</th><th class="n">Nodes</th><th class="n">GPUs</th><th>Meaning</th></tr></thead>
        <tbody>{count.map((c) => (
          <tr key={c.state}><td class="line"><i class={`swatch n-${c.state}`} aria-hidden="true" /><a href={href("fleet", { state: c.state })}><State of={c.state} /></a></td><td class="n">{number(c.nodes)}</td><td class="n">{number(c.gpus)}</td><td class="detail">{c.means}</td></tr>
        ))}</tbody>
      </table>
    </Card>
  );
}

/* ---- one node ---- */

/** Equal results of many GPUs are one row; what failed comes first. */
function rows(results: Check[]) {
  const by = new Map<string, Check & { on: number[] }>(), order = ["fail", "skip", "pass"];
  for (const r of results) {
    const key = JSON.stringify([r.check, r.verdict, r.value, r.limit]), row = by.get(key) ?? { ...r, on: [] };
    if (r.gpu !== undefined && r.gpu >= 0) row.on.push(r.gpu);
    by.set(key, row);
  }
  return [...by.values()].sort((a, b) => order.indexOf(a.verdict) - order.indexOf(b.verdict));
}

function Tests({ name }: { name: string }) {
  const data = useGet<{ tests: Trial[] }>(`/v1/nodes/${seg(name)}/tests`);
  return (
    <Card title={`Tests of ${name}`} wide>
      <Loaded data={data}>{(l) => l.tests.length === 0 ? <Empty>It was not tested yet. Simulated nodes, and nodes without an agent, cannot be.</Empty> : (
        <>{[...l.tests].sort((a, b) => b.at.localeCompare(a.at)).map((t, i) => (
          <details key={t.at} class="test" open={i === 0}>
            <summary><State of={t.passed ? "pass" : "fail"} /> <Time at={t.at} /> <small>{t.level ?? ""} test{t.ms !== undefined && `, ${number(t.ms)} ms`}</small> {t.reason}</summary>
            {t.results?.length ? (
              <table>
                <thead><tr><th>Check</th><th>Verdict</th><th>GPUs</th><th class="n">Found</th><th class="n">Limit</th></tr></thead>
                <tbody>{rows(t.results).map((r, k) => (
                  <tr key={k}><td>{r.check}</td><td><State of={r.verdict} /></td><td>{r.on.length ? ranges(r.on) : "the node"}</td><td class="n">{r.verdict === "skip" ? "not measured" : r.value ?? "–"}</td><td class="n">{r.verdict === "skip" ? "–" : r.limit ?? "–"}</td></tr>
                ))}</tbody>
              </table>
            ) : <p class="hint">Nothing was said of single checks.</p>}
          </details>
        ))}</>
      )}</Loaded>
    </Card>
  );
}

function History({ name }: { name: string }) {
  const data = useGet<{ history: Past[] }>(`/v1/nodes/${seg(name)}/history`);
  return (
    <Card title={`History of ${name}`} wide>
      <Loaded data={data}>{(l) => {
        const past = [...l.history].sort((a, b) => a.at.localeCompare(b.at));
        if (past.length === 0) return <Empty>Its state has not changed since it joined.</Empty>;
        const ends = past.map((_, i) => (i + 1 < past.length ? Date.parse(past[i + 1].at) : Date.now()));
        const lasts = past.map((p, i) => Math.max(0, ends[i] - Date.parse(p.at))), whole = Math.max(1, lasts.reduce((s, n) => s + n, 0));
        let x = 0;
        return (
          <>
            <svg class="bar past" viewBox="0 0 100 4" preserveAspectRatio="none" role="img" aria-label={`States of ${name} over ${span(whole)}; the list below has the same`}>
              {past.map((p, i) => { const at = x; x += (100 * lasts[i]) / whole; return <rect key={i} class={`bar-n-${p.state}`} x={at} width={(100 * lasts[i]) / whole} height="4" />; })}
            </svg>
            <ol class="timeline">{past.map((p, i) => (
              <li key={i}><State of={p.state} /> <Time at={p.at} /> <small>{i + 1 < past.length ? `for ${span(lasts[i])}` : "until now"}{p.by && `, by ${p.by}`}</small>{p.reason && <p>{p.reason}</p>}</li>
            )).reverse()}</ol>
          </>
        );
      }}</Loaded>
    </Card>
  );
}

/* ---- the page ---- */

function Out({ nodes, at }: { nodes: Node[]; at: string | null }) {
  const owner = who.value?.role === "owner", q = route.value.query;
  const find = q.get("find") ?? "", state = q.get("state") ?? "";
  const out = nodes.filter((n) => n.state !== "ready"), hits = out.filter((n) => (!state || n.state === state) && (!find || [n.name, n.reason, n.by, n.pool, n.rack].some((t) => t?.includes(find))));
  return (
    <Card title="Not in service" wide more={
      <div class="filters">
        <label>State <select value={state} onChange={(e) => refine({ state: e.currentTarget.value })}><option value="">all</option>{STATES.slice(1).map((s) => <option key={s.state}>{s.state}</option>)}</select></label>
        <label>Find <input data-search type="search" value={find} placeholder="name or reason" onInput={(e) => refine({ find: e.currentTarget.value })} /></label>
      </div>
    }>
      {hits.length === 0 ? <Empty>{out.length ? "No node matches." : "Every node is ready."}</Empty> : (
        <table>
          <thead><tr><th>Node</th><th>State</th>{owner && <th>Since</th>}{owner && <th>By</th>}<th>Reason</th><th>Next test</th><th class="n">GPUs</th><th class="n">Jobs</th></tr></thead>
          <tbody>{hits.slice(0, 200).map((n) => (
            <tr key={n.name} class={n.name === at ? "at" : ""}>
              <td><a href={href("health", { node: n.name, find, state })}>{n.name}</a></td><td><State of={n.state} /></td>
              {owner && <td><Time at={n.since} /></td>}{owner && <td>{n.by ?? "–"}</td>}
              <td class="reason">{n.reason ?? "–"}</td><td><NextTest node={n} /></td><td class="n">{n.gpus}</td><td class="n">{n.jobs.length}</td>
            </tr>
          ))}</tbody>
        </table>
      )}
      {hits.length > 200 && <p class="legend">{number(hits.length - 200)} more; type a name to find one.</p>}
      {!owner && <p class="hint">Who decided, when, and what they wrote is shown to owners. Jobs are those of your account and the accounts below it.</p>}
    </Card>
  );
}

/** What is odd about what nodes say, also of those that are ready; stintd tells owners alone. */
function Flags({ nodes }: { nodes: Node[] }) {
  const all = nodes.flatMap((n) => (n.flags ?? []).map((f) => ({ ...f, node: n.name })));
  return all.length === 0 ? null : (
    <Card title="What nodes say that is odd" wide>
      <table>
        <thead><tr><th>Node</th><th>What</th><th>Detail</th><th>Since</th><th>Last</th></tr></thead>
        <tbody>{all.map((f) => <tr key={`${f.node} ${f.flag}`}><td><a href={href("health", { node: f.node })}>{f.node}</a></td><td>{f.flag}</td><td class="reason">{f.reason || "–"}</td><td><Time at={f.since} /></td><td><Time at={f.last} /></td></tr>)}</tbody>
      </table>
    </Card>
  );
}

export function Health() {
  const data = useGet<{ nodes: Node[] }>("/v1/nodes"), at = route.value.query.get("node");
  return (
    <>
      <h1>Health</h1>
      <Loaded data={data} rows={8}>{(l) => {
        const node = l.nodes.find((n) => n.name === at);
        return l.nodes.length === 0 ? <Empty>There are no nodes yet. <code>stint admin join-token</code> makes a token with which machines join.</Empty> : (
          <>
            <div class="cards above">
              <Available nodes={l.nodes} />
              {node && <NodeCard key={node.name} node={node} again={data.again} />}
              {at && !node && <Empty>There is no node {at}.</Empty>}
            </div>
            <div class="cards">
              {!who.value?.account && !node && <Over title="Availability over time" query={{ since: since() }} plots={HEALTHY} none="Nothing is known of this time yet." />}
              {node && <Tests key={`t ${node.name}`} name={node.name} />}
              {node && <History key={`h ${node.name}`} name={node.name} />}
              <Incidents />
              <Out nodes={l.nodes} at={at} />
              <Flags nodes={l.nodes} />
            </div>
          </>
        );
      }}</Loaded>
    </>
  );
}
