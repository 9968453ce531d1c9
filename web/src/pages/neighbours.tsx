// Who disturbs whom? Jobs on shared GPUs whose requests became slow, who slows them, and what was done about it.
import { url, who } from "../api";
import { href, refine, route } from "../route";
import type { Side } from "../types";
import { Card, Empty, Loaded, number, State, Time } from "../ui";
import { useGet } from "../use";

/** Both sides of a case where one sees both; else the one that is one's own. */
type Case = { slowed?: Side; slows?: Side };

const MEANS: Record<string, string> = {
  confirmed: "proved by pausing it twice", acting: "a remedy is tried", held: "a remedy helps, and stays for now",
  unsolved: "limits do not help", unexplained: "no neighbour explains it", over: "it is over",
};
const ACTION: Record<string, string> = { protect: "The slowed job goes first:", cap: "The neighbour is capped:", move: "The neighbour should move:" };

function pair(sides: Side[]): Case[] {
  const left = new Set(sides), out: Case[] = [];
  for (const s of sides) {
    if (!left.delete(s)) continue;
    const other = s.other && sides.find((o) => left.has(o) && o.job === s.other && o.other === s.job && o.side !== s.side);
    if (other) left.delete(other);
    out.push({ [s.side]: s, ...(other && { [other.side]: other }) });
  }
  return out;
}

/** p99 before and now as bars; the mark is what is usual for the job. */
function Slow({ side }: { side?: Side }) {
  if (side?.p99_ratio === undefined) return <small>told to the slowed job's side</small>;
  const before = side.p99_ratio, now = side.p99_ratio_now, most = Math.max(2, before, now ?? 0);
  const words = `${number(before, 2)} times its usual value${now === undefined ? "" : `, now ${number(now, 2)} times`}`;
  return (
    <div class="p99">
      <svg viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label={`p99 of its requests: ${words}`}>
        <rect class="bar-rest" width="100" height="10" />
        <rect class="bar-n-failed" width={(100 * before) / most} height={now === undefined ? 10 : 5} />
        {now !== undefined && <rect class="bar-inside" y="5" width={(100 * now) / most} height="5" />}
        <rect class="bar-bound" x={100 / most} width="0.8" height="10" />
      </svg>
      <span>{number(before, 2)} ×{now !== undefined && <> → <b>{number(now, 2)} ×</b></>}</span>
    </div>
  );
}

function Who({ side, none }: { side?: Side; none: string }) {
  return side ? <><a href={href(`jobs/${side.job}`)}>{side.name || side.job}</a> <small>{side.account}</small></> : <small>{none}</small>;
}

function Row({ of }: { of: Case }) {
  const any = (of.slowed ?? of.slows)!;
  return (
    <tr>
      <td data-name="Slowed"><Who side={of.slowed} none="a job you do not see" /></td>
      <td data-name="By"><Who side={of.slows} none={any.state === "unexplained" ? "nobody was found" : "a job you do not see"} /></td>
      <td data-name="State"><span title={MEANS[any.state]}><State of={any.state} /></span></td>
      <td data-name="p99 against usual"><Slow side={of.slowed} /></td>
      <td data-name="What was done" class="reason">{any.action && <b>{ACTION[any.action] ?? any.action} </b>}{any.text}</td>
      <td data-name="Where">{any.node} <small>GPU {any.gpu}</small></td>
      <td data-name="Since"><Time at={any.since} />{any.times > 1 && <small> {number(any.times)} times</small>}</td>
    </tr>
  );
}

export function Neighbours() {
  const q = route.value.query, all = q.get("all"), side = q.get("side") ?? "", find = q.get("find") ?? "";
  const data = useGet<{ neighbours: Side[] }>(url("/v1/neighbours", { all: all ? true : undefined }));
  return (
    <>
      <h1>Neighbours</h1>
      <div class="cards">
        <Card title="Who disturbs whom" wide more={
          <div class="filters">
            <label>Side <select value={side} onChange={(e) => refine({ side: e.currentTarget.value })}><option value="">both</option><option value="slowed">slowed</option><option value="slows">slows others</option></select></label>
            <label class="check"><input type="checkbox" checked={!!all} onChange={(e) => refine({ all: e.currentTarget.checked ? "1" : undefined })} /> also what is over</label>
            <label>Find <input data-search type="search" value={find} placeholder="job, account or node" onInput={(e) => refine({ find: e.currentTarget.value })} /></label>
          </div>
        }>
          <Loaded data={data}>{(l) => {
            const cases = pair(l.neighbours).filter((c) => (!side || c[side as "slowed" | "slows"]) && (!find || [c.slowed, c.slows].some((s) => s && [s.name, s.job, s.account, s.node].some((t) => t.includes(find)))));
            return cases.length === 0 ? (
              <Empty>{l.neighbours.length ? "No case matches." : all ? "No job was found to slow another in the last 30 days." : "No job on a shared GPU slows another now."} Jobs are watched where they mark their requests, or where they are latency tasks.</Empty>
            ) : (
              <table class="cases">
                <thead><tr><th>Slowed</th><th>By</th><th>State</th><th>p99 against usual</th><th>What was done</th><th>Where</th><th>Since</th></tr></thead>
                <tbody>{cases.slice(0, 200).map((c, i) => <Row key={i} of={c} />)}</tbody>
                <caption>The mark in a bar is the job's usual p99; the upper part is before, the lower part now.{cases.length > 200 && ` ${number(cases.length - 200)} more; type a name to find one.`}</caption>
              </table>
            );
          }}</Loaded>
          {who.value?.account && <p class="hint">You see the sides of your account and the accounts below it. Whom the other job belongs to is not told.</p>}
        </Card>
      </div>
    </>
  );
}
