// What the cells of the map are coloured by instead of how a GPU is shared: whose jobs are there, or what a GPU did lately.
// Both answers have two characters for each device, in the map's order (src/api/colours.c).
import type { Devices } from "./types";
import { number } from "./ui";

export const BY = [
  { by: "", name: "how it is shared" }, { by: "account", name: "account" }, { by: "utilisation", name: "utilisation" },
  { by: "memory", name: "memory in use" }, { by: "temperature", name: "temperature" }, { by: "power", name: "power" },
];

export type Whose = { accounts: string[]; devices: string };
export type Use = { figure: string; unit: string; most: number; since: string | null; until: string | null; devices: string };
/** For each device the number of its colour in `key`, -1: it is as it would be otherwise; and what is said of it. */
export type Paint = { of: Int16Array; key: { css: string; name: string; gpus: number }[]; say: (device: number) => string };

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
export const TEAMS = 8, STEPS = 5; // colours in style.css: --team-0 …, --use-0 …

/** The accounts with most GPUs have a colour each; all others share one. */
export function byAccount(d: Devices, w: Whose): Paint | null {
  const n = d.devices.length, whose = new Int32Array(n), count = new Map<number, number>();
  if (w.devices.length !== 2 * n) return null; // of another moment, with other nodes
  for (let i = 0; i < n; i++) {
    const k = DIGITS.indexOf(w.devices[2 * i]) * 64 + DIGITS.indexOf(w.devices[2 * i + 1]);
    whose[i] = k;
    if (k > 0) count.set(k, (count.get(k) ?? 0) + 1);
  }
  const name = (k: number) => (k === 1 ? "several accounts" : w.accounts[k - 2] ?? "?");
  const order = [...count].sort((a, b) => b[1] - a[1] || name(a[0]).localeCompare(name(b[0])));
  const top = new Map(order.slice(0, TEAMS).map(([k], i) => [k, i])), rest = order.slice(TEAMS);
  const key = order.slice(0, TEAMS).map(([k, gpus], i) => ({ css: `--team-${i}`, name: name(k), gpus }));
  if (rest.length > 0) key.push({ css: "--team-rest", name: `${number(rest.length)} others`, gpus: rest.reduce((s, [, g]) => s + g, 0) });
  return { of: Int16Array.from(whose, (k) => (k === 0 ? -1 : top.get(k) ?? TEAMS)), key, say: (i) => (whose[i] === 0 ? "" : name(whose[i])) };
}

export function byUse(d: Devices, u: Use): Paint | null {
  const n = d.devices.length, of = new Int16Array(n).fill(-1), gpus = new Array<number>(STEPS).fill(0);
  if (u.devices.length !== 2 * n) return null;
  const value = (i: number) => parseInt(u.devices.slice(2 * i, 2 * i + 2), 16); // NaN: not known
  for (let i = 0; i < n; i++) {
    const v = value(i);
    if (Number.isNaN(v)) continue;
    of[i] = Math.min(STEPS - 1, Math.floor((v * STEPS) / 100));
    gpus[of[i]]++;
  }
  const unit = u.unit === "C" ? "°C" : u.unit, at = (step: number) => number((u.most * step) / STEPS);
  const key = gpus.map((g, i) => ({ css: `--use-${i}`, name: `${at(i)}–${at(i + 1)} ${unit}`, gpus: g }));
  return { of, key, say: (i) => (Number.isNaN(value(i)) ? "" : `${number((value(i) * u.most) / 100)} ${unit}`) };
}

/** What is said of each node's devices, each once. */
export function perNode(d: Devices, p: Paint): Map<string, string> {
  const out = new Map<string, string>();
  let n = 0, first = 0;
  for (const [, each, count] of d.runs)
    for (let i = 0; i < count; i++, n++, first += each) {
      const said = [...new Set(Array.from({ length: each }, (_, g) => p.say(first + g)))].filter(Boolean);
      out.set(d.nodes[n], said.length > 3 ? `${said.slice(0, 3).join(", ")} and ${said.length - 3} more` : said.join(", "));
    }
  return out;
}
