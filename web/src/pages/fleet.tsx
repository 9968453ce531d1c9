// What is broken, idle, fragmented? All GPUs as one picture: a cell per GPU, a row of cells per node, nodes by rack.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { send, who } from "../api";
import { href, refine, route } from "../route";
import type { Devices, Node } from "../types";
import { Card, Confirm, Empty, Loaded, number, State } from "../ui";
import { useGet } from "../use";

const KINDS: { letter: string; name: string; kind: string }[] = [
  { letter: "w", name: "whole GPU", kind: "whole" }, { letter: "m", name: "MIG slices", kind: "mig" },
  { letter: "p", name: "MPS shares", kind: "mps" }, { letter: "t", name: "time slices", kind: "time" },
  { letter: ".", name: "free", kind: "free" }, { letter: "-", name: "draining, empty", kind: "drain" }, { letter: "X", name: "failed", kind: "failed" },
];
const EDGE = 3; // for the frame around a chosen node
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

function Map({ devices, at, onNode }: { devices: Devices; at: string | null; onNode: (node: string) => void }) {
  const canvas = useRef<HTMLCanvasElement>(null), frame = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(900), [tip, setTip] = useState("");
  const total = devices.devices.length;
  const cell = total > 20000 ? 4 : total > 4000 ? 6 : total > 1000 ? 10 : 16;
  const { places, height } = useMemo(() => lay(devices, cell, width), [devices.nodes, devices.runs, cell, width]);

  useEffect(() => {
    const see = new ResizeObserver(() => setWidth(frame.current?.clientWidth ?? 900));
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
    for (const p of places)
      for (let g = 0; g < p.gpus; g++) {
        const letter = devices.devices[p.first + g], low = letter === "X" ? "X" : letter.toLowerCase();
        (by[low] ??= new Path2D()).rect(p.x + g * cell, p.y, cell - 1, cell - 1);
      }
    for (const [letter, path] of Object.entries(by)) { draw.fillStyle = colour[letter] ?? colour["."]; draw.fill(path); }
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
      <canvas ref={canvas} role="img" aria-label={`${number(total)} GPUs on ${number(devices.nodes.length)} nodes; the table below has the same`} onMouseMove={(e) => { const p = find(e); setTip(p ? p.node : ""); }} onMouseLeave={() => setTip("")} onClick={(e) => { const p = find(e); if (p) onNode(p.node); }} />
      <output class="tip">{tip || " "}</output>
    </div>
  );
}

function NodeCard({ node, again }: { node: Node; again: () => void }) {
  const [asking, setAsking] = useState(false), owner = who.value?.role === "owner";
  const set = async (state: string) => { await send("PATCH", `/v1/nodes/${encodeURIComponent(node.name)}`, { state }); setAsking(false); again(); };
  return (
    <Card title={node.name} more={<State of={node.state} />}>
      <dl>
        <div><dt>GPUs</dt><dd>{node.gpus} {node.type}, {node.gpus_free} free</dd></div>
        <div><dt>Pool</dt><dd>{node.pool}</dd></div>
        <div><dt>Place</dt><dd>{[node.zone, node.block, node.rack].filter(Boolean).join(" / ") || "–"}</dd></div>
        {node.reason && <div><dt>Reason</dt><dd>{node.reason}</dd></div>}
        <div><dt>Jobs</dt><dd>{node.jobs.length === 0 ? "none of yours" : node.jobs.map((j) => <a key={j} class="chip" href={href(`jobs/${j}`)}>{j}</a>)}</dd></div>
      </dl>
      {owner && (node.state === "ready" ? <button type="button" onClick={() => setAsking(true)}>Drain</button> : node.state === "draining" && <button type="button" onClick={() => set("ready")}>Make ready</button>)}
      {asking && <Confirm ask={`Drain ${node.name}? Its ${node.jobs.length} jobs go on; nothing new starts there.`} yes="Drain" onYes={() => set("draining")} onNo={() => setAsking(false)} />}
    </Card>
  );
}

export function Fleet() {
  const devices = useGet<Devices>("/v1/devices"), nodes = useGet<{ nodes: Node[] }>("/v1/nodes");
  const at = route.value.query.get("node"), find = route.value.query.get("find") ?? "";
  const node = nodes.value?.nodes.find((n) => n.name === at);
  const again = () => { devices.again(); nodes.again(); };
  return (
    <>
      <h1>Fleet</h1>
      <Loaded data={devices} rows={10}>{(d) => {
        const count: Record<string, number> = {};
        for (const c of d.devices) { const k = c === "X" ? c : c.toLowerCase(); count[k] = (count[k] ?? 0) + 1; }
        return d.devices.length === 0 ? <Empty>There are no GPUs yet. <code>stint admin join-token</code> makes a token with which machines join.</Empty> : (
          <>
            <ul class="key">{KINDS.filter((k) => count[k.letter] || k.letter === ".").map((k) => <li key={k.letter}><i class={`m-${k.kind}`} aria-hidden="true" />{k.name} <b>{number(count[k.letter] ?? 0)}</b></li>)}</ul>
            <Map devices={d} at={at} onNode={(n) => refine({ node: n })} />
          </>
        );
      }}</Loaded>
      {who.value?.account && <p class="legend">You see what your account and those below it have. What others have looks free.</p>}
      <div class="cards">
        {node && <NodeCard node={node} again={again} />}
        <Card title="Nodes" wide more={<label>Find <input data-search type="search" value={find} placeholder="name, rack or state" onInput={(e) => refine({ find: e.currentTarget.value })} /></label>}>
          <Loaded data={nodes}>{(l) => {
            const hits = l.nodes.filter((n) => !find || [n.name, n.rack, n.block, n.state, n.pool, n.type].some((t) => t?.includes(find)));
            return (
              <>
                <table>
                  <thead><tr><th>Node</th><th>State</th><th>Type</th><th class="n">Free</th><th class="n">GPUs</th><th>Pool</th><th>Rack</th></tr></thead>
                  <tbody>{hits.slice(0, 200).map((n) => <tr key={n.name} class={n.name === at ? "at" : ""}><td><a href={href("fleet", { node: n.name, find })}>{n.name}</a></td><td><State of={n.state} /></td><td>{n.type}</td><td class="n">{n.gpus_free}</td><td class="n">{n.gpus}</td><td>{n.pool}</td><td>{n.rack ?? "–"}</td></tr>)}</tbody>
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
