// Why this sum?
import { who } from "../api";
import { href, refine, route } from "../route";
import type { Bill, BillLine } from "../types";
import { Card, Empty, Loaded, money, number } from "../ui";
import { useGet } from "../use";

const ABOUT: Record<string, string> = {
  reserved: "the floor, whether used or not", guaranteed: "use inside the floor", burst: "borrowed", "on demand": "beyond the maximum",
  cpu: "CPU", ram: "memory", energy: "electricity", credit: "given back",
};
const quantity = (l: BillLine) => number(l.quantity / l.quantity_per_unit, 3);

function rate(l: BillLine): string {
  if (l.rate_udollars === null) return "several";
  return `${number(l.rate_udollars / 1e6, 6)}${l.factor_bp !== null && l.factor_bp !== 10000 ? ` × ${number(l.factor_bp / 100, 2)} %` : ""}`;
}

export function BillPage() {
  const period = route.value.query.get("period") ?? "open", by = route.value.query.get("by") ?? "user";
  const bill = useGet<Bill>(`/v1/bills/${encodeURIComponent(period)}`, false);
  const past = useGet<{ bills: { period: string }[] }>("/v1/bills", false);
  const use = useGet<{ rows: { key: string; gpu_hours: number; jobs: number; cost: string }[] }>(`/v1/bills/${encodeURIComponent(period)}/usage?by=${by}`, false);
  const months = [...new Set((past.value?.bills ?? []).map((b) => b.period))];
  return (
    <>
      <header class="title">
        <h1>Bill of {who.value?.account || "the cluster"}</h1>
        <span class="grow" />
        <label>Month <select value={period} onChange={(e) => refine({ period: e.currentTarget.value === "open" ? undefined : e.currentTarget.value })}>
          <option value="open">this month so far</option>{months.map((m) => <option key={m} value={m}>{m}</option>)}
        </select></label>
        <a class="button" href={`/v1/bills/${encodeURIComponent(period)}?format=html`} target="_blank" rel="noreferrer">Print</a>
        <a class="button" href={`/v1/bills/${encodeURIComponent(period)}?format=file`} download>Proof</a>
      </header>
      <Loaded data={bill}>{(b) => (
        <div class="cards">
          <Card title={b.closed ? b.period : `${b.period}, so far`}>
            <p class="big">{money(b.total, b.currency)}</p>
            <p class="legend">{b.owed === b.total ? "all of it to be paid" : `${money(b.owed, b.currency)} to be paid, the rest is for information`}. Month in {b.zone}.</p>
          </Card>
          <Card title="Lines" wide>
            {b.lines.length === 0 ? <Empty>Nothing was charged in this month.</Empty> : (
              <table>
                <thead><tr><th>Account</th><th>For</th><th>GPU</th><th class="n">Quantity</th><th>Unit</th><th class="n">Rate</th><th class="n">Amount</th></tr></thead>
                <tbody>{b.lines.map((l, i) => (
                  <tr key={i}><td>{l.account}</td><td title={ABOUT[l.component]}>{l.component}</td><td>{l.gpu === "*" ? "any" : l.gpu} <small>{l.level !== "-" ? l.level : ""}</small></td><td class="n">{quantity(l)}</td><td>{l.unit}</td><td class="n">{rate(l)}</td><td class="n">{money(l.amount, "")}</td></tr>
                ))}</tbody>
              </table>
            )}
          </Card>
          <Card title="Who used it" wide more={<label>By <select value={by} onChange={(e) => refine({ by: e.currentTarget.value })}>{["user", "job", "account", "cost-center"].map((w) => <option key={w} value={w}>{w}</option>)}</select></label>}>
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
