// What is left of a month's budget, day by day, beside an even pace; without a budget, what was spent.
import { useMemo } from "preact/hooks";
import { Chart, Numbers, useSeries, type Series } from "./chart";
import type { Budget } from "./types";
import { Card, Empty, money, Trouble } from "./ui";
import { useGet } from "./use";

const LEFT = [{ figure: "left", name: "left" }], SPENT = [{ figure: "spent", name: "spent" }];

/** The month to date as figures that can be drawn: dollars, and what is left of `whole`. */
function figures(of: Series, whole: number | null): Series {
  const spent = (of.figures.month_cost_udollars ?? []).map((v) => (v === null ? null : v / 1e6));
  return { ...of, figures: { spent, ...(whole !== null && { left: spent.map((v) => (v === null ? null : whole - v)) }) } };
}

function Drawn({ of, whole, to, currency }: { of: Series; whole: number | null; to: string; currency: string }) {
  const drawn = useMemo(() => figures(of, whole), [of, whole]), step = of.step_seconds * 1000;
  const n = Math.max(1, Math.round((Date.parse(to) - Date.parse(of.since)) / step));
  const pace = useMemo(() => (whole === null ? [] : [{ name: "at an even pace", values: Array.from({ length: n }, (_, i) => whole * (1 - (i + 0.5) / n)) }]), [whole, n]);
  const lines = whole === null ? SPENT : LEFT;
  return (
    <>
      <div class="charts"><Chart title={whole === null ? "Spent" : "Left"} lines={lines} of={drawn} unit={` ${currency}`} until={to} most={whole ?? undefined} extra={pace} /></div>
      <Numbers of={drawn} lines={[...SPENT, ...LEFT]} />
    </>
  );
}

/** From and to are the month's. */
export function Burn({ account, from, to, currency }: { account: string; from: string; to: string; currency: string }) {
  const budget = useGet<Budget>(account ? `/v1/accounts/${encodeURIComponent(account)}/budget` : null, false);
  const data = useSeries({ name: account || undefined, since: `${from.slice(0, 19)}Z` });
  const whole = budget.value?.cap ?? budget.value?.budget ?? null;
  return (
    <Card title="Over the month" wide>
      {data.error && <Trouble error={data.error} again={data.again} stale={data.value !== undefined} />}
      {whole !== null && <p class="legend">{budget.value?.cap ? "Cap" : "Budget"} {money(whole, currency)}, spent {money(budget.value!.spent, currency)}.</p>}
      {data.value && (data.value.figures.month_cost_udollars
        ? <Drawn of={data.value} whole={whole === null ? null : Number(whole)} to={to} currency={currency} />
        : <Empty>Nothing is known of this month yet.</Empty>)}
    </Card>
  );
}

/** The same in little, of an account: since the month began, which is where the sum last fell to next to nothing. */
export function Month({ account, whole }: { account: string; whole: number | null }) {
  const data = useSeries({ name: account, since: "31d" }), of = data.value;
  const drawn = useMemo(() => {
    const sums = of?.figures.month_cost_udollars;
    if (!of || !sums) return null;
    let begin = 0, before = 0;
    sums.forEach((v, i) => { if (v !== null) { if (v < before / 2) begin = i; before = v; } });
    const first = sums.findIndex((v, i) => i >= begin && v !== null), from = Date.parse(of.since) + first * of.step_seconds * 1000;
    return figures({ ...of, since: new Date(from).toISOString(), figures: { month_cost_udollars: sums.slice(first) } }, whole);
  }, [of, whole]);
  if (!drawn) return null;
  return (
    <>
      <Chart title={whole === null ? "Spent" : "Left of the budget"} lines={whole === null ? SPENT : LEFT} of={drawn} unit=" USD" most={whole ?? undefined} />
      <Numbers of={drawn} lines={[...SPENT, ...LEFT]} />
    </>
  );
}
