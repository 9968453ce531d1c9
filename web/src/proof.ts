// Checks a bill file in the browser, as doc/reference/bill-format.md describes it: that no byte was changed, that the entries
// lead to the signed checkpoint, that each posting is reckoned right and that lines and total are their sums. That a posting
// follows from use and prices is checked by `stint bill verify`, not here.
import { blake2b } from "@noble/hashes/blake2.js";

export class Wrong extends Error {}

export type Proved = { account: string; period: string; closed: boolean; total: number; entries: number; books: number; key: string; at: number };

type Line = { n: number; body: Uint8Array; row: Record<string, any> };
const TAIL = ',"sum":"0123456789abcdef"}'.length, HOUR = 3600000000n;
/** Units of a component in one priced unit (the table of ledger/ledger.h). */
const PER: Record<string, bigint> = {
  reserved: HOUR, guaranteed: HOUR, burst: HOUR, on_demand: HOUR, booked: HOUR, topology: HOUR, idle: HOUR, cpu: HOUR, ram: 3686400000n, energy: HOUR,
  frames: 1n, minutes: 60000n, window: HOUR, cancel: HOUR,
};
const OF_GPU = new Set(["reserved", "guaranteed", "burst", "on_demand", "booked", "topology", "idle", "lost", "fault", "window", "cancel", "short", "lent"]);

const text = new TextEncoder();
const hash = (...parts: Uint8Array[]) => {
  const h = blake2b.create({ dkLen: 32 });
  for (const p of parts) h.update(p);
  return h.digest();
};
const mark = (n: number) => Uint8Array.of(n);
const hex = (b: Uint8Array) => Array.from(b, (x) => x.toString(16).padStart(2, "0")).join("");
const bytes = (h: string) => {
  if (!/^([0-9a-f]{2})*$/.test(h)) throw new Wrong(`"${h}" is not a hash`);
  return Uint8Array.from(h.match(/../g) ?? [], (x) => parseInt(x, 16));
};
function number64(n: number): Uint8Array {
  const out = new Uint8Array(8);
  new DataView(out.buffer).setBigUint64(0, BigInt(n));
  return out;
}
function need(good: boolean, n: number, what: string): asserts good {
  if (!good) throw new Wrong(`line ${n}: ${what}`);
}

/* ---- trees ---- */

const leaf = (entry: Uint8Array) => hash(mark(0), entry);
const node = (left: Uint8Array, right: Uint8Array) => hash(mark(1), left, right);
const half = (n: number) => 2 ** Math.ceil(Math.log2(n) - 1);

function root(leaves: Uint8Array[]): Uint8Array {
  if (leaves.length === 0) return hash();
  if (leaves.length === 1) return leaves[0];
  const at = half(leaves.length);
  return node(root(leaves.slice(0, at)), root(leaves.slice(at)));
}

/** The root that leaves [begin, end) of a tree of `size` and the hashes beside them lead to. */
function follow(size: number, begin: number, end: number, leaves: Uint8Array[], beside: Uint8Array[]): Uint8Array | null {
  const under = (low: number, high: number): Uint8Array => {
    if (low >= begin && high <= end) return root(leaves.slice(low - begin, high - begin));
    if (high <= begin || low >= end) return beside.shift() ?? new Uint8Array();
    const at = low + half(high - low);
    const left = under(low, at);
    return node(left, under(at, high));
  };
  const found = size > 0 ? under(0, size) : root([]);
  return beside.length === 0 ? found : null;
}

/* ---- the file ---- */

function read(data: Uint8Array): Line[] {
  const out: Line[] = [], plain = new TextDecoder("utf-8", { fatal: true });
  let before: Uint8Array = new Uint8Array(8), from = 0;
  need(data.length > 0 && data[data.length - 1] === 10, 1, "the file is cut off");
  while (from < data.length) {
    const to = data.indexOf(10, from), n = out.length + 1, body = data.subarray(from, Math.max(from, to - TAIL));
    before = hash(mark(6), before, body).subarray(0, 8);
    need(plain.decode(data.subarray(from + body.length, to)) === `,"sum":"${hex(before)}"}`, n, "was changed: its checksum is another");
    out.push({ n, body, row: JSON.parse(plain.decode(data.subarray(from, to))) });
    from = to + 1;
  }
  return out;
}

/** What a signed line said before its signature. */
function signed(line: Line): Uint8Array {
  const all = new TextDecoder().decode(line.body), at = all.lastIndexOf(',"signature":');
  need(at > 0, line.n, "has no signature");
  return text.encode(all.slice(0, at).replace(/^\{"checkpoint":(?=\{)/, ""));
}

async function check(key: string, signature: string, over: Uint8Array): Promise<boolean> {
  const k = await crypto.subtle.importKey("raw", bytes(key) as BufferSource, "Ed25519", false, ["verify"]);
  return crypto.subtle.verify("Ed25519", k, bytes(signature) as BufferSource, over as BufferSource);
}

function postings(line: Line, sums: Map<string, [bigint, bigint, number]>, carries: Map<string, bigint>, whole: boolean): bigint {
  let total = 0n;
  const e = line.row.entry;
  for (const [what, quantity, rate, factor, carryIn, amount, carry] of e.lines ?? []) {
    const d = 10000n * (PER[what] ?? 1n), q = BigInt(quantity), a = BigInt(amount);
    const known = carries.get(what) ?? (whole ? 0n : BigInt(carryIn));
    need(known === BigInt(carryIn), line.n, "a remainder was lost between two postings");
    need(q * BigInt(rate) * BigInt(factor) + BigInt(carryIn) === a * d + BigInt(carry) && carry >= 0 && BigInt(carry) < d, line.n, `the amount for ${what} is reckoned wrong`);
    carries.set(what, BigInt(carry));
    const gpu = OF_GPU.has(what) ? e.gpu ?? "" : "", level = gpu && what !== "reserved" ? e.level ?? "whole" : "whole";
    const name = JSON.stringify([e.account, what, gpu, level]), sum = sums.get(name) ?? [0n, 0n, 0];
    sums.set(name, [sum[0] + q, sum[1] + a, sum[2] + 1]);
    total += a;
  }
  return total;
}

export async function prove(file: ArrayBuffer): Promise<Proved> {
  const data = new Uint8Array(file), lines = read(data), head = lines[0].row, last = lines[lines.length - 1];
  const point = lines[1]?.row.checkpoint;
  need(head.bill === 1 && point && last.row.end === 1, 1, "this is not a bill file");
  need(await check(point.key, point.signature, signed(lines[1])), 2, "the checkpoint's signature is wrong");
  const before = data.lastIndexOf(10, data.length - 2) + 1;
  need(last.row.hash === hex(hash(mark(7), data.subarray(0, before))), last.n, "the file's hash is another");
  need(last.row.key === point.key && await check(last.row.key, last.row.signature, signed(last)), last.n, "the file's signature is wrong");

  const lastRange = new Map<string, number>();
  for (const l of lines) if ("book" in l.row) lastRange.set(l.row.book, l.row.from);
  const sums = new Map<string, [bigint, bigint, number]>();
  let at = 2, entries = 0, books = 0, total = 0n;
  for (; lines[at] && "book" in lines[at].row; books++) {
    const { n, row: book } = lines[at++], leaves: Uint8Array[] = [], own: Line[] = [];
    for (let seq = book.from + 1; seq <= book.to; seq++) {
      const l = lines[at++], e = l?.row.entry;
      need(e && e.seq === seq && e.account === book.book, l?.n ?? n, `entry ${seq} of ${book.book || "the cluster"} is missing`);
      leaves.push(leaf(l.body.subarray('{"entry":'.length)));
      own.push(l);
    }
    entries += own.length;
    const top = bytes(book.root), beside = book.proof.map(bytes), found = follow(book.size, book.from, book.to, leaves, beside);
    need(!!found && hex(found) === book.root, n, "the entries do not lead to the root of their book");
    let up = hash(mark(3), bytes(book.salt), text.encode(book.book), number64(book.size), top, bytes(book.chain));
    need(book.path.length === point.depth, n, "the way up to the checkpoint has another length");
    book.path.forEach((other: string, i: number) => {
      up = Math.floor(book.index / 2 ** i) % 2 ? node(bytes(other), up) : node(up, bytes(other));
    });
    need(hex(up) === point.root, n, "the book is not in the checkpoint");
    if (book.book !== "" && lastRange.get(book.book) === book.from) {
      const carries = new Map<string, bigint>();
      for (const l of own) total += postings(l, sums, carries, book.from === 0);
    }
  }
  for (let i = 0; i < head.lines; i++) {
    const { n, row } = lines[at++], name = JSON.stringify([row.line, row.what, row.gpu, row.level]), sum = sums.get(name);
    need(!!sum && sum[0] === BigInt(row.quantity) && sum[1] === BigInt(row.amount) && sum[2] === row.entries, n, "a line is not the sum of its postings");
    sums.delete(name);
  }
  need(sums.size === 0, 1, "postings are in no line");
  need(total === BigInt(head.total), 1, "the total is not the sum of the lines");
  need(last.row.entries === entries, last.n, "entries are missing");
  return { account: head.account, period: head.period, closed: head.closed, total: head.total, entries, books, key: point.key, at: point.at };
}
