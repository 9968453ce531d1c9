// What is broken, idle, fragmented? All GPUs as one picture: a cell per GPU, a row of cells per node, nodes by rack.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { who } from "../api";
import { Over, since, WORK, type Plot } from "../chart";
import { NodeCard, STATES } from "../node";
import { href, refine, route } from "../route";
import type { Devices, Node } from "../types";
import { Card, Empty, Loaded, number, State } from "../ui";
import { useGet } from "../use";

const KINDS: { letter: string; name: string; kind: string }[] = [
  { letter: "w", name: "whole GPU", kind: "whole" }, { letter: "m", name: "MIG slices", kind: "mig" },
  { letter: "p", name: "MPS shares", kind: "mps" }, { letter: "t", name: "time slices", kind: "time" },
  { letter: ".", name: "free", kind: "free" }, { letter: "-", name: "closed, empty", kind: "drain" }, { letter: "X", name: "failed", kind: "failed" },
];
/** Lines over the cells of nodes that are not ready, on a tile of 6 by 6; style.css has the same for the key. */
const LINES: Record<string, [number, number, number, number][]> = {
  draining: [[0, 6, 6, 0]], suspect: [[0, 0, 6, 6]], failed: [[0, 0, 6, 6], [0, 6, 6, 0]], repair: [[3, 0, 3, 6], [0, 3, 6, 3]],
  retired: [[0, 3, 6, 3]], testing: [[2, 3, 4, 3]],
};
const EDGE = 3; // for the frame around a chosen node
const PAD = 16; // of .map in style.css
type Place = { node: string; first: number; gpus: number; x: number; y: number };

/** Where each node's cells are: columns of nodes, eight cells wide, racks side by side as long as there is room. */
function lay(d: Devices, cell: number, width: number): { places: Place[]; height: number } {
  const places: Place[] = [], gap = Math.max(2, Math.round(cell / 3));
  let n = 0, first = 0, x = EDGE, y = EDGE, high = 0;
  for (const [, each, count] of d.runs) {
    const wide = each * cell + gap * 2;
    for (let i = 0; i < count; i++) {
      if (x + wide > width) { x = EDGE; y += cell + gap; }
      places.push({ node: d.nodes[n], first, gpus: each, x, y });
      x += wide;
      n++;
      first += each;
      high = y + cell;
    }
  }
  return { places, height: high + gap };
}

/** A tile of such lines, as a pattern. */
function tile(draw: CanvasRenderingContext2D, lines: [number, number, number, number][], colour: string): CanvasPattern {
  const c = document.createElement("canvas"), on = c.getContext("2d")!;
  c.width = c.height = 6;
  on.strokeStyle = colour;
  on.lineWidth = 1.5;
  for (const [x0, y0, x1, y1] of lines) { on.beginPath(); on.moveTo(x0, y0); on.lineTo(x1, y1); on.stroke(); }
  return draw.createPattern(c, "repeat")!;
}

function Map({ devices, states, at, only, onNode }: {
  devices: Devices; states: Record<string, string>; at: string | null; only: string; onNode: (node: string) => void;
}) {
  const canvas = useRef<HTMLCanvasElement>(null), frame = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(900), [tip, setTip] = useState("");
  const total = devices.devices.length;
  const cell = total > 20000 ? 4 : total > 4000 ? 6 : total > 1000 ? 10 : 16;
  const { places, height } = useMemo(() => lay(devices, cell, width), [devices.nodes, devices.runs, cell, width]);

  useEffect(() => {
    const see = new ResizeObserver(() => setWidth(frame.current ? frame.current.clientWidth - 2 * PAD : 900));
    if (frame.current) see.observe(frame.current);
    return () => see.disconnect();
  }, []);
  useEffect(() => {
    const c = canvas.current!, ratio = devicePixelRatio || 1, css = getComputedStyle(document.documentElement);
    c.width = width * ratio; c.height = height * ratio;
    c.style.width = `${width}px`; c.style.height = `${height}px`;
    const draw = c.getContext("2d")!;
    draw.scale(ratio, ratio);
    const colour: Record<string, string> = {};
    for (const k of KINDS) colour[k.letter] = css.getPropertyValue(`--map-${k.kind}`).trim();
    const by: Record<string, Path2D> = {};
    const over: Record<string, Path2D> = {}, dim = new Path2D();
    for (const p of places) {
      const state = states[p.node] ?? "ready", wide = p.gpus * cell - 1;
      if (LINES[state]) (over[state] ??= new Path2D()).rect(p.x, p.y, wide, cell - 1);
      if (only && state !== only) dim.rect(p.x, p.y, wide, cell - 1);
      for (let g = 0; g < p.gpus; g++) {
        const letter = devices.devices[p.first + g], low = letter === "X" ? "X" : letter.toLowerCase();
        const key = (low === "-" || low === "X") && LINES[state] ? state : low;
        (by[key] ??= new Path2D()).rect(p.x + g * cell, p.y, cell - 1, cell - 1);
      }
    }
    for (const [key, path] of Object.entries(by)) {
      draw.fillStyle = LINES[key] ? css.getPropertyValue(`--node-${key}`).trim() : colour[key] ?? colour["."];
      draw.fill(path);
    }
    for (const [state, path] of Object.entries(over)) { draw.fillStyle = tile(draw, LINES[state], css.getPropertyValue("--node-line").trim()); draw.fill(path); }
    draw.globalAlpha = 0.8;
    draw.fillStyle = css.getPropertyValue("--card").trim();
    draw.fill(dim);
    draw.globalAlpha = 1;
    const chosen = places.find((p) => p.node === at);
    if (chosen) {
      draw.strokeStyle = css.getPropertyValue("--text").trim();
      draw.lineWidth = 2;
      draw.strokeRect(chosen.x - 1.5, chosen.y - 1.5, chosen.gpus * cell + 2, cell + 2);
    }
  });
  const find = (e: MouseEvent) => {
    const box = canvas.current!.getBoundingClientRect(), x = e.clientX - box.left, y = e.clientY - box.top;
    return places.find((p) => y >= p.y && y < p.y + cell && x >= p.x && x < p.x + p.gpus * cell);
  };
  return (
    <div class="map" ref={frame}>
      <canvas ref={canvas} role="img" aria-label={`${number(total)} GPUs on ${number(devices.nodes.length)} nodes; the table below has the same`} onMouseMove={(e) => { const p = find(e); setTip(p ? `${p.node} ${states[p.node] ?? ""}` : ""); }} onMouseLeave={() => setTip("")} onClick={(e) => { const p = find(e); if (p) onNode(p.node); }} />
      <output class="tip">{tip || " "}</output>
    </div>
  );
}

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
        const count: Record<string, number> = {};
        for (const c of d.devices) { const k = c === "X" ? c : c.toLowerCase(); count[k] = (count[k] ?? 0) + 1; }
        return d.devices.length === 0 ? <Empty>There are no GPUs yet. <code>stint admin join-token</code> makes a token with which machines join.</Empty> : (
          <>
            <ul class="key">{KINDS.filter((k) => (count[k.letter] && !(nodes.value && "-X".includes(k.letter))) || k.letter === ".").map((k) => <li key={k.letter}><i class={`m-${k.kind}`} aria-hidden="true" />{k.name} <b>{number(count[k.letter] ?? 0)}</b></li>)}
              {STATES.filter((s) => s.state !== "ready" && sums[s.state]).map((s) => <li key={s.state}><i class={`swatch n-${s.state}`} aria-hidden="true" /><a href={href("fleet", { state: only === s.state ? "" : s.state, find })} aria-current={only === s.state ? "true" : undefined} title={s.means}>{s.state}</a> <b>{number(sums[s.state])}</b></li>)}
            </ul>
            <Map devices={d} states={states} at={at} only={only} onNode={(n) => refine({ node: n })} />
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
