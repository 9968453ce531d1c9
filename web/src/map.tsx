// All GPUs as one picture: a cell per GPU, a row of cells per node. Cells are written into one image, and only those that
// changed since the last one; lines over nodes that are not ready are drawn on top. On the pages Fleet and Replay.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { STEPS, TEAMS, type Paint } from "./paint";
import type { Devices } from "./types";
import { number } from "./ui";

export const KINDS: { letter: string; name: string; kind: string }[] = [
  { letter: "w", name: "whole GPU", kind: "whole" }, { letter: "m", name: "MIG slices", kind: "mig" },
  { letter: "p", name: "MPS shares", kind: "mps" }, { letter: "t", name: "time slices", kind: "time" },
  { letter: ".", name: "free", kind: "free" }, { letter: "-", name: "closed, empty", kind: "drain" }, { letter: "X", name: "failed", kind: "failed" },
];
/** Lines over the cells of nodes that are not ready, on a tile of 6 by 6; style.css has the same for the key. */
export const LINES: Record<string, [number, number, number, number][]> = {
  draining: [[0, 6, 6, 0]], suspect: [[0, 0, 6, 6]], failed: [[0, 0, 6, 6], [0, 6, 6, 0]], repair: [[3, 0, 3, 6], [0, 3, 6, 3]],
  retired: [[0, 3, 6, 3]], testing: [[2, 3, 4, 3]],
};
const EDGE = 3; // for the frame around a chosen node
const PAD = 16; // of .map in style.css
const TITLE = 18; // of a line with the name of a group
type Place = { node: string; first: number; gpus: number; x: number; y: number };
type Title = { text: string; y: number };

/** How many GPUs there are of each letter, small. */
export function letters(devices: string): Record<string, number> {
  const count: Record<string, number> = {};
  for (const c of devices) { const k = c === "X" ? c : c.toLowerCase(); count[k] = (count[k] ?? 0) + 1; }
  return count;
}

/** Where each node's cells are: side by side as long as there is room; where there are groups, each begins a line of its own. */
function lay(d: Devices, cell: number, width: number, group: (node: string) => string | undefined): { places: Place[]; titles: Title[]; height: number } {
  const places: Place[] = [], titles: Title[] = [], gap = Math.max(2, Math.round(cell / 3)), of = new Map<string, Place[]>();
  let n = 0, first = 0, x = EDGE, y = EDGE, high = 0;
  for (const [, each, count] of d.runs)
    for (let i = 0; i < count; i++, n++, first += each) {
      const name = group(d.nodes[n]) ?? "", place = { node: d.nodes[n], first, gpus: each, x: 0, y: 0 };
      if (!of.get(name)?.push(place)) of.set(name, [place]);
    }
  const names = [...of.keys()].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  for (const name of names) {
    if (name) {
      y = high ? high + gap + 4 : EDGE;
      titles.push({ text: name, y });
      y += TITLE;
      x = EDGE;
    }
    for (const place of of.get(name)!) {
      const wide = place.gpus * cell + gap * 2;
      if (x + wide > width && x > EDGE) { x = EDGE; y += cell + gap; }
      places.push({ ...place, x, y });
      x += wide;
      high = y + cell;
    }
  }
  return { places, titles, height: high + gap };
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

/** Colours of the page as the image has them. */
function palette(draw: CanvasRenderingContext2D): Record<string, number> {
  const css = getComputedStyle(document.documentElement), of: Record<string, number> = {};
  const read = (name: string) => {
    draw.fillStyle = css.getPropertyValue(name).trim();
    const rgb = parseInt(String(draw.fillStyle).slice(1), 16); // browsers write #rrggbb
    return (0xff << 24 | (rgb & 0xff) << 16 | (rgb & 0xff00) | rgb >> 16 & 0xff) >>> 0;
  };
  for (const k of KINDS) of[k.letter] = read(`--map-${k.kind}`);
  for (const state of Object.keys(LINES)) of[state] = read(`--node-${state}`);
  for (let i = 0; i < TEAMS; i++) of[`--team-${i}`] = read(`--team-${i}`);
  of["--team-rest"] = read("--team-rest");
  for (let i = 0; i < STEPS; i++) of[`--use-${i}`] = read(`--use-${i}`);
  of.card = read("--card");
  return of;
}

type Picture = { image: ImageData; pixels: Uint32Array; shown: Uint32Array; places: Place[]; ratio: number };

/** Writes the cells that have another colour than before; tells from which row to which. */
function paint(p: Picture, devices: string, states: Record<string, string>, colour: Record<string, number>, cell: number, tint: Paint | null | undefined): [number, number] | null {
  const wide = p.image.width, size = Math.max(1, Math.round((cell - 1) * p.ratio));
  let top = Infinity, bottom = -1;
  for (const place of p.places) {
    const state = states[place.node], own = state !== undefined && LINES[state] ? colour[state] : 0;
    for (let g = 0; g < place.gpus; g++) {
      const at = place.first + g, letter = devices[at], low = letter === "X" ? "X" : letter.toLowerCase();
      const tinted = tint ? tint.of[at] : -1; // without one, what others have or nobody knows looks free
      const c = tinted >= 0 ? colour[tint!.key[tinted].css] : own && (low === "-" || low === "X") ? own : tint ? colour["."] : colour[low] ?? colour["."];
      if (p.shown[at] === c) continue;
      p.shown[at] = c;
      const x = Math.round((place.x + g * cell) * p.ratio), y = Math.round(place.y * p.ratio);
      for (let row = y; row < y + size; row++) p.pixels.fill(c, row * wide + x, row * wide + x + size);
      if (y < top) top = y;
      if (y + size > bottom) bottom = y + size;
    }
  }
  return bottom < 0 ? null : [top, bottom];
}

export function FleetMap({ devices, states, at, only, onNode, tint, groups }: {
  devices: Devices; states: Record<string, string>; at: string | null; only: string; onNode: (node: string) => void;
  tint?: Paint | null; groups?: Record<string, string>;
}) {
  const canvas = useRef<HTMLCanvasElement>(null), frame = useRef<HTMLDivElement>(null), picture = useRef<Picture | null>(null), theme = useRef("");
  const [width, setWidth] = useState(900), [tip, setTip] = useState("");
  const total = devices.devices.length;
  const cell = total > 20000 ? 4 : total > 4000 ? 6 : total > 1000 ? 10 : 16;
  // An answer with the same nodes has the same places.
  const shape = `${JSON.stringify(devices.runs)} ${groups ? devices.nodes.map((n) => `${n} ${groups[n]}`).join() : devices.nodes.join()}`;
  const { places, titles, height } = useMemo(() => lay(devices, cell, width, (n) => groups?.[n]), [shape, cell, width]);

  useEffect(() => {
    const see = new ResizeObserver(() => setWidth(frame.current ? frame.current.clientWidth - 2 * PAD : 900));
    if (frame.current) see.observe(frame.current);
    return () => see.disconnect();
  }, []);
  useEffect(() => {
    const c = canvas.current!, ratio = devicePixelRatio || 1, css = getComputedStyle(document.documentElement), draw = c.getContext("2d")!;
    const w = Math.max(1, Math.floor(width * ratio)), h = Math.max(1, Math.ceil(height * ratio)), colour = palette(draw), look = JSON.stringify(colour);
    let p = picture.current;
    if (!p || p.places !== places || p.image.width !== w || p.image.height !== h || theme.current !== look) {
      c.width = w; c.height = h;
      c.style.width = `${width}px`; c.style.height = `${height}px`;
      const image = new ImageData(w, h), pixels = new Uint32Array(image.data.buffer);
      pixels.fill(colour.card);
      p = picture.current = { image, pixels, shown: new Uint32Array(total), places, ratio };
      theme.current = look;
      draw.putImageData(image, 0, 0);
    }
    const over = places.filter((q) => LINES[states[q.node]] || (only && (states[q.node] ?? "ready") !== only) || q.node === at);
    const rows = paint(p, devices.devices, states, colour, cell, tint), lined = c.dataset.lined === "1";
    // What was drawn over the cells has to be wiped off; there is seldom any.
    if (over.length || lined || titles.length) draw.putImageData(p.image, 0, 0);
    else if (rows) draw.putImageData(p.image, 0, 0, 0, rows[0], w, rows[1] - rows[0]);
    c.dataset.lined = over.length ? "1" : "";
    draw.setTransform(ratio, 0, 0, ratio, 0, 0);
    draw.fillStyle = css.getPropertyValue("--soft").trim();
    draw.font = `12px ${css.fontFamily}`;
    for (const t of titles) draw.fillText(t.text, EDGE, t.y + 12);
    for (const state of Object.keys(LINES)) {
      const path = new Path2D();
      for (const q of over) if (states[q.node] === state) path.rect(q.x, q.y, q.gpus * cell - 1, cell - 1);
      draw.fillStyle = tile(draw, LINES[state], css.getPropertyValue("--node-line").trim());
      draw.fill(path);
    }
    if (only) {
      const dim = new Path2D();
      for (const q of over) if ((states[q.node] ?? "ready") !== only) dim.rect(q.x, q.y, q.gpus * cell - 1, cell - 1);
      draw.globalAlpha = 0.8;
      draw.fillStyle = css.getPropertyValue("--card").trim();
      draw.fill(dim);
      draw.globalAlpha = 1;
    }
    const chosen = over.find((q) => q.node === at);
    if (chosen) {
      draw.strokeStyle = css.getPropertyValue("--text").trim();
      draw.lineWidth = 2;
      draw.strokeRect(chosen.x - 1.5, chosen.y - 1.5, chosen.gpus * cell + 2, cell + 2);
    }
    draw.setTransform(1, 0, 0, 1, 0, 0);
  });
  const told = (p: Place, e: MouseEvent) => {
    const gpu = Math.min(p.gpus - 1, Math.max(0, Math.floor((e.clientX - canvas.current!.getBoundingClientRect().left - p.x) / cell)));
    return [p.node, states[p.node], tint && `GPU ${gpu}: ${tint.say(p.first + gpu) || "–"}`].filter(Boolean).join(" ");
  };
  const find = (e: MouseEvent) => {
    const box = canvas.current!.getBoundingClientRect(), x = e.clientX - box.left, y = e.clientY - box.top;
    return places.find((p) => y >= p.y && y < p.y + cell && x >= p.x && x < p.x + p.gpus * cell);
  };
  return (
    <div class="map" ref={frame}>
      <canvas ref={canvas} role="img" aria-label={`${number(total)} GPUs on ${number(devices.nodes.length)} nodes; the table below has the same`} onMouseMove={(e) => { const p = find(e); setTip(p ? told(p, e) : ""); }} onMouseLeave={() => setTip("")} onClick={(e) => { const p = find(e); if (p) onNode(p.node); }} />
      <output class="tip">{tip || " "}</output>
    </div>
  );
}
