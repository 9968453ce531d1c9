// What it costs: price books with an editor that shows what would change, and each account's plan.
import { useState } from "preact/hooks";
import { seg, send, who } from "../api";
import { refine, route } from "../route";
import { Card, Confirm, Empty, Loaded, money, number, Trouble } from "../ui";
import { useGet } from "../use";
import { yaml } from "../yaml";

/* ---- price books ---- */

type Rates = Record<string, string>;
type Book = { in_force?: boolean; prices: string; from: string; gpu: Record<string, Rates>; cpu: string; ram: string; energy: string };
const RATES = ["reserved", "guaranteed", "burst", "on_demand", "booked"], LEVELS = ["whole", "mig", "mps", "time"];
const moment = (at: string) => `${at.slice(0, 16).replace("T", " ")} UTC`;

/** Every price of a book by its path: gpu.h100.burst. */
function flat(value: unknown, path: string, out: Map<string, string>): Map<string, string> {
  if (value !== null && typeof value === "object") for (const [k, v] of Object.entries(value)) flat(v, path ? `${path}.${k}` : k, out);
  else out.set(path, String(value));
  return out;
}

function changes(old: Book | undefined, book: Book): { key: string; from?: string; to?: string }[] {
  const a = flat(old ?? {}, "", new Map()), b = flat(book, "", new Map());
  for (const key of ["in_force", "prices", "from"]) { a.delete(key); b.delete(key); }
  return [...new Set([...a.keys(), ...b.keys()])].filter((k) => a.get(k) !== b.get(k)).map((key) => ({ key, from: a.get(key), to: b.get(key) }));
}

/** As people write it: amounts without quotes, and nothing that stintd adds. */
function text(book: Book, from: string): string {
  const plain = (v: unknown): unknown => v !== null && typeof v === "object" ? Object.fromEntries(Object.entries(v).map(([k, x]) => [k, plain(x)])) : typeof v === "string" && /^\d+(\.\d+)?$/.test(v) ? Number(v) : v;
  const { in_force: _in_force, prices, from: _from, ...rest } = book;
  return `prices: ${JSON.stringify(prices)}\nfrom: ${from}\n${yaml(plain(rest) as Parameters<typeof yaml>[0])}`;
}

function Edit({ of, books, again }: { of: Book; books: Book[]; again: () => void }) {
  const tomorrow = new Date(Date.now() + 864e5).toISOString().slice(0, 10);
  const [draft, setDraft] = useState(() => text({ ...of, prices: `${of.prices}-next` }, tomorrow)), [error, setError] = useState<Error>();
  const [read, setRead] = useState<Book>(), [asking, setAsking] = useState(false), [said, setSaid] = useState("");
  const before = read && [...books].filter((b) => b.from <= read.from).sort((a, b) => a.from.localeCompare(b.from)).pop();
  const moved = read ? changes(before, read) : [];
  const check = () => { setError(undefined); setSaid(""); send<Book>("POST", "/v1/prices/check", draft).then((b) => setRead(b), (e) => { setRead(undefined); setError(e); }); };
  return (
    <Card title="A new price book" wide>
      {error && <Trouble error={error} />}{said && <p class="once" role="status">{said}</p>}
      <p class="hint">Nothing is published before you have seen what changes. Past months keep the prices they had.</p>
      <textarea class="code" aria-label="The price book" rows={18} spellcheck={false} value={draft} onInput={(e) => { setDraft(e.currentTarget.value); setRead(undefined); }} />
      <div class="menu"><button type="button" onClick={check}>Check</button><button type="button" class="main" disabled={!read} onClick={() => setAsking(true)}>Publish…</button></div>
      {read && (
        <table>
          <caption>What changes on {moment(read.from)}{before ? `, against "${before.prices}"` : ": there are no prices yet"}.</caption>
          <thead><tr><th>Price</th><th class="n">Until then</th><th class="n">From then on</th></tr></thead>
          <tbody>{moved.length === 0 ? <tr><td colSpan={3}>Nothing.</td></tr> : moved.map((m) => <tr key={m.key}><th scope="row">{m.key}</th><td class="n">{m.from ?? "–"}</td><td class="n">{m.to ?? "–"}</td></tr>)}</tbody>
        </table>
      )}
      {asking && read && <Confirm danger={false} ask={`Publish "${read.prices}"? ${number(moved.length)} ${moved.length === 1 ? "price changes" : "prices change"} on ${moment(read.from)}. A published book cannot be taken back; a later one can replace it.`} yes="Publish" onNo={() => setAsking(false)}
        onYes={async () => { await send("POST", "/v1/prices", draft); setAsking(false); setRead(undefined); setSaid(`"${read.prices}" is published.`); again(); }} />}
    </Card>
  );
}

export function PricesTab() {
  const editing = route.value.query.get("edit") === "1";
  const data = useGet<{ prices: Book[] }>("/v1/prices", false), at = route.value.query.get("book"), owner = who.value?.role === "owner";
  const first: Book = { prices: "first", from: "", gpu: { "*": { reserved: "1", burst: "2" } }, cpu: "0", ram: "0", energy: "0" };
  return (
    <Loaded data={data}>{(l) => {
      const book = l.prices.find((p) => p.from === at) ?? l.prices.find((p) => p.in_force);
      return (
        <>
          {!book ? <Empty>No prices are published. {owner && <a href="#/site?tab=prices&edit=1">Write the first price book</a>}</Empty> : (
            <Card title={`Prices "${book.prices}"`} wide more={<div class="filters">
              <label>From <select value={book.from} onChange={(e) => refine({ book: e.currentTarget.value })}>{l.prices.map((p) => <option key={p.from} value={p.from}>{moment(p.from)}, {p.prices}{p.in_force ? " (in force)" : ""}</option>)}</select></label>
              {owner && !editing && <button type="button" onClick={() => refine({ edit: "1" })}>Change…</button>}
            </div>}>
              <table>
                <caption>Per GPU and hour, then the factor of each level. CPU {book.cpu} per core and hour, memory {book.ram} per GiB and hour, electricity {book.energy} per kWh.</caption>
                <thead><tr><th>GPU</th>{[...RATES, ...LEVELS].map((r) => <th key={r} class="n">{r.replace("_", " ")}</th>)}</tr></thead>
                <tbody>{Object.entries(book.gpu).map(([type, r]) => <tr key={type}><th scope="row">{type === "*" ? "any other" : type}</th>{[...RATES, ...LEVELS].map((k) => <td key={k} class="n">{r[k] ?? "–"}</td>)}</tr>)}</tbody>
              </table>
            </Card>
          )}
          {editing && owner && <Edit of={book ?? first} books={l.prices} again={data.again} />}
        </>
      );
    }}</Loaded>
  );
}

/* ---- plans ---- */

type Plan = {
  account: string; inherited: boolean; of: string | null; chargeback: boolean; discount_percent: number; burst_gpus: number | null; cap: string | null;
  budget: string | null; warn_percent: number[]; at_cap: string | null; grace: string | null; hold: string | null;
};
const FIELDS: { key: keyof Plan & string; name: string; hint: string }[] = [
  { key: "cap", name: "Cap, dollars a month", hint: "none" }, { key: "budget", name: "Budget, dollars a month", hint: "none" },
  { key: "discount_percent", name: "Discount, %", hint: "0" }, { key: "burst_gpus", name: "GPUs borrowed before on demand", hint: "none" },
  { key: "grace", name: "Notice of work that a cap stops", hint: "10m" }, { key: "hold", name: "Money is held for", hint: "1h" },
];

function EditPlan({ plan, again }: { plan: Plan; again: () => void }) {
  const start = Object.fromEntries(FIELDS.map((f) => [f.key, plan[f.key] === null ? "" : String(plan[f.key])])) as Record<string, string>;
  const [form, setForm] = useState({ ...start, at_cap: plan.at_cap ?? "refuse", chargeback: String(plan.chargeback), warn: plan.warn_percent.join(", ") } as Record<string, string>);
  const [asking, setAsking] = useState(false), [said, setSaid] = useState("");
  const old: Record<string, string> = { ...start, at_cap: plan.at_cap ?? "refuse", chargeback: String(plan.chargeback), warn: plan.warn_percent.join(", ") };
  const moved = Object.keys(form).filter((k) => form[k] !== old[k]), put = (k: string) => (e: { currentTarget: HTMLInputElement | HTMLSelectElement }) => setForm({ ...form, [k]: e.currentTarget.value });
  const name = (k: string) => FIELDS.find((f) => f.key === k)?.name ?? { at_cap: "At the cap", chargeback: "Owed", warn: "Warnings at, %" }[k] ?? k;
  const body = () => ({
    account: plan.account, chargeback: form.chargeback === "true", at_cap: form.at_cap, warn: form.warn.split(",").map((w) => w.trim()).filter(Boolean).map((w) => `${w}%`),
    discount: `${form.discount_percent || 0}%`, cap: form.cap || "none", budget: form.budget || "none", burst: form.burst_gpus || "none",
    ...(form.grace && { grace: form.grace }), ...(form.hold && { hold: form.hold }),
  });
  return (
    <>
      {said && <p class="once" role="status">{said}</p>}
      <form class="fields plan" onSubmit={(e) => { e.preventDefault(); setAsking(true); }}>
        {FIELDS.map((f) => <label key={f.key} class="field"><span>{f.name}</span><input value={form[f.key]} placeholder={f.hint} onInput={put(f.key)} /></label>)}
        <label class="field"><span>At the cap</span><select value={form.at_cap} onChange={put("at_cap")}><option>refuse</option><option>warn</option><option>stop</option></select></label>
        <label class="field"><span>Warnings at, %</span><input value={form.warn} onInput={put("warn")} /></label>
        <label class="field"><span>Is owed</span><select value={form.chargeback} onChange={put("chargeback")}><option value="true">yes: the bill is to be paid</option><option value="false">no: the numbers are shown</option></select></label>
        <div class="field"><span>&nbsp;</span><button type="submit" class="main" disabled={moved.length === 0}>Save…</button></div>
      </form>
      {asking && <Confirm danger={false} yes="Save" onNo={() => setAsking(false)}
        ask={`Change the plan of ${plan.account || "all accounts without one"} from now on? ${moved.map((k) => `${name(k)}: ${old[k] || "none"} → ${form[k] || "none"}.`).join(" ")}${plan.inherited && plan.account ? ` It has a plan of its own from then on, instead of that of ${plan.of || "the cluster"}.` : ""}`}
        onYes={async () => {
          const done = await send<{ warning?: string }>("PUT", plan.account ? `/v1/accounts/${seg(plan.account)}/plan` : "/v1/plan", body(), { [plan.inherited ? "If-None-Match" : "If-Match"]: "*" });
          setAsking(false);
          setSaid(done?.warning ?? "The plan is saved.");
          again();
        }} />}
    </>
  );
}

export function Plans() {
  const accounts = useGet<{ accounts: { name: string }[] }>("/v1/accounts", false), owner = who.value?.role === "owner", at = route.value.query.get("account");
  const names = accounts.value?.accounts.map((a) => a.name) ?? [], account = at ?? (owner ? "" : who.value?.account || names[0] || "");
  const data = useGet<Plan>(account ? `/v1/accounts/${seg(account)}/plan` : owner ? "/v1/plan" : null, false);
  return (
    <Card title={account ? `Plan of ${account}` : "Plan of accounts without one"} wide more={<label>Account <select value={account} onChange={(e) => refine({ account: e.currentTarget.value || undefined })}>{owner && <option value="">the cluster</option>}{names.map((n) => <option key={n}>{n}</option>)}</select></label>}>
      <Loaded data={data}>{(p) => (
        <>
          <dl>
            <div><dt>Comes from</dt><dd>{p.inherited ? p.of === null ? owner ? "no plan: nothing is owed, and nothing has a cap" : "an account above, where there is one" : `the plan of ${p.of || "the cluster"}` : "a plan of its own"}</dd></div>
            <div><dt>Cap</dt><dd>{p.cap ? <>{money(p.cap)} a month; at it: {p.at_cap}</> : "none"}</dd></div>
            <div><dt>Budget</dt><dd>{p.budget ? money(p.budget) : "none"}{p.warn_percent.length > 0 && `, warnings at ${p.warn_percent.join(", ")} %`}</dd></div>
            <div><dt>Discount</dt><dd>{p.discount_percent} %</dd></div>
            <div><dt>On demand</dt><dd>{p.burst_gpus === null ? "never" : `beyond ${number(p.burst_gpus)} borrowed GPUs`}</dd></div>
            <div><dt>Owed</dt><dd>{p.chargeback ? "yes" : "no: the numbers are shown"}</dd></div>
          </dl>
          {owner && <EditPlan key={JSON.stringify(p)} plan={p} again={data.again} />}
        </>
      )}</Loaded>
    </Card>
  );
}
