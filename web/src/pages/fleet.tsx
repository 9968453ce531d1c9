// What is broken, idle, fragmented? All GPUs as one picture (map.tsx), and the nodes as a table.
import { useMemo } from "preact/hooks";
import { who } from "../api";
import { Over, since, WORK, type Plot } from "../chart";
import { FleetMap, KINDS, letters } from "../map";
import { BY, byAccount, byUse, perNode, type Use, type Whose } from "../paint";
import { NodeCard, STATES } from "../node";
import { href, refine, route } from "../route";
import type { Devices, Node } from "../types";
import { Card, Empty, Loaded, number, State, Time, Trouble } from "../ui";
import { useGet } from "../use";

const FLEET: Plot[] = [
  { title: "GPUs", unit: "", lines: [{ figure: "gpus_held", name: "held by jobs" }, { figure: "gpus_healthy", name: "healthy" }, { figure: "gpus_waiting", name: "asked for by jobs that wait" }] }, ...WORK,
];
const NODE: Plot[] = [
  { title: "GPUs", unit: "", lines: [{ figure: "gpus_held", name: "held by jobs" }] }, ...WORK,
  { title: "Failed", unit: " %", most: 100, lines: [{ figure: "failed", name: "of the time", times: 100 }] },
];

/** Of the fleet, of the node that is chosen, or of one of its GPUs. */
function Past({ node }: { node: Node | undefined }) {
  const gpu = route.value.query.get("gpu") ?? "", one = node && gpu !== "" && Number(gpu) < node.gpus;
  const query = one ? { of: "gpu", name: `${node.name}:${gpu}` } : node ? { of: "node", name: node.name } : {};
  return (
    <Over title={one ? `GPU ${gpu} of ${node.name} over time` : node ? `${node.name} over time` : "Use over time"} query={{ ...query, since: since() }} plots={node ? NODE : FLEET} none="Nothing is known of this time yet."
      more={node && <label>GPU <select value={one ? gpu : ""} onChange={(e) => refine({ gpu: e.currentTarget.value || undefined })}><option value="">all</option>{Array.from({ length: node.gpus }, (_, i) => <option key={i}>{i}</option>)}</select></label>} />
  );
}

const LEVELS = ["zone", "block", "rack"] as const;

/** Where a node stands, down to that level. */
const place = (n: Node, level: string) => LEVELS.slice(0, LEVELS.indexOf(level as (typeof LEVELS)[number]) + 1).map((l) => n[l]).filter(Boolean).join(" / ") || "no place is known";

export function Fleet() {
  const by = route.value.query.get("by") ?? "", owner = who.value?.role === "owner", group = route.value.query.get("group") ?? "";
  const whose = useGet<Whose>(by === "account" ? "/v1/devices/accounts" : null), use = useGet<Use>(owner && by && by !== "account" ? `/v1/devices/use?figure=${by}` : null);
  const devices = useGet<Devices>("/v1/devices"), nodes = useGet<{ nodes: Node[] }>("/v1/nodes");
  const paint = useMemo(() => {
    const d = devices.value;
    return !d ? null : by === "account" ? whose.value ? byAccount(d, whose.value) : null : use.value?.figure === by ? byUse(d, use.value) : null;
  }, [by, devices.value, whose.value, use.value]);
  const said = useMemo(() => (paint && devices.value ? perNode(devices.value, paint) : undefined), [paint]);
  const at = route.value.query.get("node"), find = route.value.query.get("find") ?? "", only = route.value.query.get("state") ?? "";
  const node = nodes.value?.nodes.find((n) => n.name === at);
  const states = useMemo(() => Object.fromEntries((nodes.value?.nodes ?? []).map((n) => [n.name, n.state])), [nodes.value]);
  const sums: Record<string, number> = {};
  for (const n of nodes.value?.nodes ?? []) sums[n.state] = (sums[n.state] ?? 0) + n.gpus;
  const again = () => { devices.again(); nodes.again(); };
  return (
    <>
      <h1>Fleet</h1>
      <Loaded data={devices} rows={10}>{(d) => {
        const count = letters(d.devices);
        const groups = group && nodes.value ? Object.fromEntries(nodes.value.nodes.map((n) => [n.name, place(n, group)])) : undefined;
        return d.devices.length === 0 ? <Empty>There are no GPUs yet. <code>stint admin join-token</code> makes a token with which machines join.</Empty> : (
          <>
            <form class="filters" onSubmit={(e) => e.preventDefault()}>
              <label>Colour by <select value={by} onChange={(e) => refine({ by: e.currentTarget.value || undefined })}>{BY.filter((b) => owner || !b.by || b.by === "account").map((b) => <option key={b.by} value={b.by}>{b.name}</option>)}</select></label>
              <label>Group by <select value={group} onChange={(e) => refine({ group: e.currentTarget.value || undefined })}><option value="">nothing</option>{LEVELS.map((l) => <option key={l}>{l}</option>)}</select></label>
              {by && by !== "account" && use.value && <span class="hint">{use.value.until ? <>Since <Time at={use.value.since} />, as agents measured it.</> : "Nothing was measured yet."}</span>}
            </form>
            {(whose.error ?? use.error) && <Trouble error={(whose.error ?? use.error)!} />}
            {paint && <ul class="key">{paint.key.map((k) => <li key={k.css}><i class={k.css.slice(2)} aria-hidden="true" />{k.name} <b>{number(k.gpus)}</b></li>)}<li><i class="m-free" aria-hidden="true" />{by === "account" ? "nobody" : "not known"} <b>{number(d.devices.length - paint.key.reduce((s, k) => s + k.gpus, 0))}</b></li></ul>}
            <ul class="key">{KINDS.filter((k) => !paint && ((count[k.letter] && !(nodes.value && "-X".includes(k.letter))) || k.letter === ".")).map((k) => <li key={k.letter}><i class={`m-${k.kind}`} aria-hidden="true" />{k.name} <b>{number(count[k.letter] ?? 0)}</b></li>)}
              {STATES.filter((s) => s.state !== "ready" && sums[s.state]).map((s) => <li key={s.state}><i class={`swatch n-${s.state}`} aria-hidden="true" /><a href={href("fleet", { state: only === s.state ? "" : s.state, find, by, group })} aria-current={only === s.state ? "true" : undefined} title={s.means}>{s.state}</a> <b>{number(sums[s.state])}</b></li>)}
            </ul>
            <FleetMap devices={d} states={states} at={at} only={only} onNode={(n) => refine({ node: n })} tint={paint} groups={groups} />
          </>
        );
      }}</Loaded>
      {who.value?.account && <p class="legend">You see what your account and those below it have. What others have looks free.</p>}
      {!who.value?.account && <div class="cards above"><Past node={node} /></div>}
      {node && <div class="cards above"><NodeCard key={node.name} node={node} again={again} more /></div>}
      <div class="cards">
        <Card title="Nodes" wide more={
          <div class="filters">
            <label>State <select value={only} onChange={(e) => refine({ state: e.currentTarget.value })}><option value="">all</option>{STATES.map((s) => <option key={s.state}>{s.state}</option>)}</select></label>
            <label>Find <input data-search type="search" value={find} placeholder="name, rack or type" onInput={(e) => refine({ find: e.currentTarget.value })} /></label>
          </div>
        }>
          <Loaded data={nodes}>{(l) => {
            const hits = l.nodes.filter((n) => (!only || n.state === only) && (!find || [n.name, n.rack, n.block, n.state, n.pool, n.type].some((t) => t?.includes(find))));
            return (
              <>
                {hits.length === 0 && <Empty>No node matches.</Empty>}
                <table hidden={hits.length === 0}>
                  <thead><tr><th>Node</th><th>State</th><th>Type</th><th class="n">Free</th><th class="n">GPUs</th><th>Pool</th><th>Rack</th>{said && <th>{by.charAt(0).toUpperCase() + by.slice(1)}</th>}</tr></thead>
                  <tbody>{hits.slice(0, 200).map((n) => <tr key={n.name} class={n.name === at ? "at" : ""}><td><a href={href("fleet", { node: n.name, find, state: only, by, group })}>{n.name}</a></td><td><State of={n.state} /></td><td>{n.type}</td><td class="n">{n.gpus_free ?? "–"}</td><td class="n">{n.gpus}</td><td>{n.pool}</td><td>{n.rack ?? "–"}</td>{said && <td>{said.get(n.name) || "–"}</td>}</tr>)}</tbody>
                </table>
                {hits.length > 200 && <p class="legend">{number(hits.length - 200)} more; type a name to find one.</p>}
              </>
            );
          }}</Loaded>
        </Card>
      </div>
    </>
  );
}
