// Why this sum? The month by line; a line down to its entries and devices; the proof, checked in this browser.
import { useState } from "preact/hooks";
import { call, url, who } from "../api";
import { Burn } from "../burn";
import { prove, Wrong, type Proved } from "../proof";
import { href, refine, route } from "../route";
import type { Bill, BillLine, Entry } from "../types";
import { Card, Empty, Loaded, money, number, span, Trouble } from "../ui";
import { useGet } from "../use";

const ABOUT: Record<string, string> = {
  reserved: "the floor, whether used or not", guaranteed: "use inside the floor", burst: "borrowed", "on demand": "beyond the maximum",
  cpu: "CPU", ram: "memory", energy: "electricity", credit: "given back", window: "GPUs that were booked, whether used or not", cancel: "the fee for booked time that was given up", short: "booked and not delivered", lent: "your share of what others paid for GPUs you had booked",
};
const quantity = (l: BillLine) => number(l.quantity / l.quantity_per_unit, 3);

function rate(l: BillLine): string {
  if (l.rate_udollars === null) return "several";
  return `${number(l.rate_udollars / 1e6, 6)}${l.factor_bp !== null && l.factor_bp !== 10000 ? ` × ${number(l.factor_bp / 100, 2)} %` : ""}`;
}

/* ---- the days of the month, and where it is going ---- */

type Forecast = { spent: string; expected: string | null; low: string | null; high: string | null; days: { day: string; whole: boolean; gpu_hours: number; cost: string }[] };

function Days({ of, currency }: { of: Forecast; currency: string }) {
  const most = Math.max(1e-9, ...of.days.map((d) => Number(d.cost))), wide = 100 / 31;
  return (
    <>
      {of.expected && <p class="legend">At this pace the month will have cost {money(of.expected, currency)}{of.low && of.high && ` (8 in 10: ${money(of.low, "")}to ${money(of.high, "")})`}.</p>}
      <svg class="days" viewBox="0 0 100 40" preserveAspectRatio="none" role="img" aria-label={`Cost of each day; the table below has the numbers`}>
        {of.days.map((d) => <rect key={d.day} class={d.whole ? "bar-inside" : "bar-borrowed"} x={(Number(d.day.slice(8)) - 1) * wide + wide * 0.1} width={wide * 0.8} y={40 - (40 * Number(d.cost)) / most} height={Math.max(0.4, (40 * Number(d.cost)) / most)}><title>{`${d.day}: ${money(d.cost, currency)}`}</title></rect>)}
      </svg>
      <details><summary>As a table</summary><table><thead><tr><th>Day</th><th class="n">GPU-hours</th><th class="n">Cost</th></tr></thead><tbody>{of.days.map((d) => <tr key={d.day}><td>{d.day}{!d.whole && ", so far"}</td><td class="n">{number(d.gpu_hours, 2)}</td><td class="n">{money(d.cost, "")}</td></tr>)}</tbody></table></details>
    </>
  );
}

/* ---- a line's entries ---- */

const moment = (ms: number | undefined) => (ms === undefined ? "–" : new Date(ms).toISOString().slice(0, 19).replace("T", " "));

function Entries({ period, line }: { period: string; line: BillLine }) {
  const cursor = route.value.query.get("cursor") ?? undefined;
  const data = useGet<{ entries: Entry[]; running: Entry[]; next?: string }>(url(`/v1/bills/${encodeURIComponent(period)}/entries`, { account: line.account, component: line.component.replace(" ", "_"), gpu: line.gpu || undefined, level: line.level === "-" ? undefined : line.level, limit: 100, cursor }), false);
  const row = (e: Entry, open: boolean) => (
    <tr key={`${e.account} ${e.seq}`}>
      <td class="n">{open ? "runs" : e.seq}</td><td>{e.job ? <a href={href(`jobs/${e.job}`)}>{e.name || e.job}</a> : e.kind}</td><td>{e.user ?? ""}</td><td>{moment(e.from ?? e.at)}</td><td class="n">{e.from !== undefined && e.to !== undefined ? span(e.to - e.from) : ""}</td>
      <td>{(e.grants ?? []).slice(0, 4).map((g) => `${g[0]}:${Array.isArray(g[1]) ? g[1].join(",") : g[1]}`).join(" ")}{(e.grants ?? []).length > 4 && " …"}</td>
      <td class="n">{number((e.lines ?? []).filter((l) => l[0].replace("_", " ") === line.component.replace("_", " ")).reduce((s, l) => s + l[5], 0) / 1e6, 6)}</td>
    </tr>
  );
  return (
    <Card title={`${line.component} of ${line.account}, entry by entry`} wide more={<button type="button" onClick={() => refine({ line: undefined, cursor: undefined })}>Close</button>}>
      <Loaded data={data}>{(l) => (
        <>
          <table>
            <thead><tr><th class="n">Entry</th><th>For</th><th>User</th><th>From (UTC)</th><th class="n">Long</th><th>Devices</th><th class="n">Amount</th></tr></thead>
            <tbody>{l.entries.map((e) => row(e, false))}{l.running.map((e) => row(e, true))}</tbody>
          </table>
          <div class="menu">{cursor && <button type="button" onClick={() => refine({ cursor: undefined })}>First</button>}{l.next && <button type="button" onClick={() => refine({ cursor: l.next })}>More</button>}</div>
        </>
      )}</Loaded>
    </Card>
  );
}

/* ---- the proof ---- */

const KEPT = "bill-key";

function Proof({ period }: { period: string }) {
  const [state, set] = useState<{ busy?: boolean; proved?: Proved; wrong?: string; error?: Error }>({});
  const kept = localStorage.getItem(KEPT), proved = state.proved, other = proved && kept !== null && kept !== proved.key;
  async function run() {
    set({ busy: true });
    try {
      set({ proved: await prove(await (await call("GET", `/v1/bills/${encodeURIComponent(period)}?format=file`)).arrayBuffer()) });
    } catch (e) {
      set(e instanceof Wrong ? { wrong: e.message } : { error: e as Error });
    }
  }
  return (
    <Card title="Proof" more={<button type="button" disabled={state.busy} onClick={run}>Verify in this browser</button>}>
      {state.error && <Trouble error={state.error} />}
      {state.wrong && <p class="verdict bad" role="status"><b>This bill does not prove.</b> {state.wrong}. Keep the file and ask whoever runs the cluster.</p>}
      {other && <p class="verdict bad" role="status"><b>It is signed with another key</b> than the one this browser kept: {kept!.slice(0, 16)}…</p>}
      {proved && !other && <p class="verdict good" role="status"><b>{number(proved.entries)} entries of {number(proved.books)} books lead to the signed checkpoint</b>, and all sums are right.</p>}
      {proved && <p class="legend">Signed with <code>{proved.key.slice(0, 16)}…</code> {kept === proved.key ? "which this browser kept." : <button type="button" class="small" onClick={() => { localStorage.setItem(KEPT, proved.key); set({ ...state }); }}>Keep this key</button>}</p>}
      <p class="hint">A page of stintd cannot prove stintd honest. <code>stint bill verify --key</code> checks the downloaded file on your own machine, and prices as well.</p>
    </Card>
  );
}

export function BillPage() {
  const period = route.value.query.get("period") ?? "open", by = route.value.query.get("by") ?? "user";
  const bill = useGet<Bill>(`/v1/bills/${encodeURIComponent(period)}`, false);
  const past = useGet<{ months: { period: string }[] }>("/v1/bills", false);
  const use = useGet<{ rows: { key: string; gpu_hours: number; jobs: number; cost: string }[] }>(`/v1/bills/${encodeURIComponent(period)}/usage?by=${by}`, false);
  const forecast = useGet<Forecast>(period === "open" ? "/v1/bills/open/forecast" : null, false), at = Number(route.value.query.get("line") ?? "-1");
  const months = [...new Set((past.value?.months ?? []).map((b) => b.period))];
  return (
    <>
      <header class="title">
        <h1>Bill of {who.value?.account || "the cluster"}</h1>
        <span class="grow" />
        <label>Month <select value={period} onChange={(e) => refine({ period: e.currentTarget.value === "open" ? undefined : e.currentTarget.value })}>
          <option value="open">this month so far</option>{months.map((m) => <option key={m} value={m}>{m}</option>)}
        </select></label>
        <a class="button" href={`/v1/bills/${encodeURIComponent(period)}?format=html`} target="_blank" rel="noreferrer">Print</a>
        <a class="button" href={`/v1/bills/${encodeURIComponent(period)}?format=csv`} download>CSV</a>
        <a class="button" href={`/v1/bills/${encodeURIComponent(period)}?format=focus`} download>FOCUS</a>
        <a class="button" href={`/v1/bills/${encodeURIComponent(period)}?format=file`} download>Proof</a>
      </header>
      <Loaded data={bill}>{(b) => (
        <div class="cards">
          <Card title={b.closed ? b.period : `${b.period}, so far`}>
            <p class="big">{money(b.total, b.currency)}</p>
            <p class="legend">{b.owed === b.total ? "all of it to be paid" : `${money(b.owed, b.currency)} to be paid, the rest is for information`}. Month in {b.zone}.</p>
          </Card>
          <Proof key={period} period={period} />
          {period === "open" && <Card title="Day by day"><Loaded data={forecast}>{(f) => <Days of={f} currency={b.currency} />}</Loaded></Card>}
          {!b.closed && <Burn account={b.account} from={b.from} to={b.to} currency={b.currency} />}
          <Card title="Lines" wide>
            {b.lines.length === 0 ? <Empty>Nothing was charged in this month.</Empty> : (
              <table>
                <thead><tr><th>Account</th><th>For</th><th>GPU</th><th class="n">Quantity</th><th>Unit</th><th class="n">Rate</th><th class="n">Amount</th></tr></thead>
                <tbody>{b.lines.map((l, i) => (
                  <tr key={i}><td>{l.account}</td><td title={ABOUT[l.component]}><a href={href("bill", { period: period === "open" ? undefined : period, by, line: String(i) })}>{l.component}</a></td><td>{l.gpu === "*" ? "any" : l.gpu} <small>{l.level !== "-" ? l.level : ""}</small></td><td class="n">{quantity(l)}</td><td>{l.unit}</td><td class="n">{rate(l)}</td><td class="n">{money(l.amount, "")}</td></tr>
                ))}</tbody>
              </table>
            )}
          </Card>
          {b.lines[at] && <Entries period={period} line={b.lines[at]} />}
          <Card title="Who used it" wide more={<label>By <select value={by} onChange={(e) => refine({ by: e.currentTarget.value })}>{["user", "job", "name", "label", "account", "cost-center", "gpu", "day"].map((w) => <option key={w} value={w}>{w}</option>)}</select></label>}>
            <Loaded data={use}>{(u) => (
              <table>
                <thead><tr><th>{by}</th><th class="n">GPU-hours</th><th class="n">Jobs</th><th class="n">Cost</th></tr></thead>
                <tbody>{u.rows.slice(0, 100).map((r) => <tr key={r.key}><td>{by === "job" ? <a href={href(`jobs/${r.key}`)}>{r.key}</a> : r.key}</td><td class="n">{number(r.gpu_hours, 2)}</td><td class="n">{number(r.jobs)}</td><td class="n">{money(r.cost, "")}</td></tr>)}</tbody>
              </table>
            )}</Loaded>
          </Card>
        </div>
      )}</Loaded>
    </>
  );
}
