// What is broken, idle, fragmented? All GPUs as one picture (map.tsx), and the nodes as a table.
import { useMemo } from "preact/hooks";
import { who } from "../api";
import { Over, since, WORK, type Plot } from "../chart";
import { FleetMap, KINDS, letters } from "../map";
import { NodeCard, STATES } from "../node";
import { href, refine, route } from "../route";
import type { Devices, Node } from "../types";
import { Card, Empty, Loaded, number, State } from "../ui";
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

export function Fleet() {
  const devices = useGet<Devices>("/v1/devices"), nodes = useGet<{ nodes: Node[] }>("/v1/nodes");
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
        return d.devices.length === 0 ? <Empty>There are no GPUs yet. <code>stint admin join-token</code> makes a token with which machines join.</Empty> : (
          <>
            <ul class="key">{KINDS.filter((k) => (count[k.letter] && !(nodes.value && "-X".includes(k.letter))) || k.letter === ".").map((k) => <li key={k.letter}><i class={`m-${k.kind}`} aria-hidden="true" />{k.name} <b>{number(count[k.letter] ?? 0)}</b></li>)}
              {STATES.filter((s) => s.state !== "ready" && sums[s.state]).map((s) => <li key={s.state}><i class={`swatch n-${s.state}`} aria-hidden="true" /><a href={href("fleet", { state: only === s.state ? "" : s.state, find })} aria-current={only === s.state ? "true" : undefined} title={s.means}>{s.state}</a> <b>{number(sums[s.state])}</b></li>)}
            </ul>
            <FleetMap devices={d} states={states} at={at} only={only} onNode={(n) => refine({ node: n })} />
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
                  <thead><tr><th>Node</th><th>State</th><th>Type</th><th class="n">Free</th><th class="n">GPUs</th><th>Pool</th><th>Rack</th></tr></thead>
                  <tbody>{hits.slice(0, 200).map((n) => <tr key={n.name} class={n.name === at ? "at" : ""}><td><a href={href("fleet", { node: n.name, find, state: only })}>{n.name}</a></td><td><State of={n.state} /></td><td>{n.type}</td><td class="n">{n.gpus_free ?? "–"}</td><td class="n">{n.gpus}</td><td>{n.pool}</td><td>{n.rack ?? "–"}</td></tr>)}</tbody>
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
