// What needs me?
import { url, who } from "../api";
import { Month } from "../burn";
import { OpenIncidents } from "../incidents";
import { recent } from "../live";
import { href } from "../route";
import type { Booking, Budget, Counts, Job, Quota } from "../types";
import { Bar, Card, Empty, gpus, Loaded, money, number, State, Time, zone } from "../ui";
import { useGet } from "../use";

const WAITS = ["pending", "running", "notified", "checkpointing", "paused"];

function Held({ account }: { account: string }) {
  const quota = useGet<Quota>(`/v1/accounts/${encodeURIComponent(account)}/quota`);
  return (
    <Card title={`GPUs of ${account}`} more={<a href={href("quota")}>All accounts</a>}>
      <Loaded data={quota}>{(q) => {
        const floor = q.floor.gpu ?? 0, held = q.held.gpu ?? 0, max = q.max.gpu;
        return (
          <>
            <p class="big">{gpus(held)} <small>held</small></p>
            <Bar label={`GPUs of ${account}`} of={Math.max(floor, held)} parts={[{ value: q.inside_gpu, kind: "inside", name: "inside the floor" }, { value: q.borrowed_gpu, kind: "borrowed", name: "borrowed" }]} />
            <p class="legend"><span class="k-inside">{gpus(q.inside_gpu)} inside the floor of {gpus(floor)}</span> <span class="k-borrowed">{gpus(q.borrowed_gpu)} borrowed</span>{max !== undefined && <span>at most {gpus(max)}</span>}</p>
          </>
        );
      }}</Loaded>
    </Card>
  );
}

function Spend({ account }: { account: string }) {
  const budget = useGet<Budget>(`/v1/accounts/${encodeURIComponent(account)}/budget`, false);
  return (
    <Card title="This month" more={<a href={href("bill")}>Bill</a>}>
      <Loaded data={budget}>{(b) => (
        <>
          <p class="big">{money(b.spent)}</p>
          <p class="legend">{b.cap ? <>cap {money(b.cap)}, {money(b.left)} left</> : b.budget ? <>budget {money(b.budget)}</> : "no cap and no budget are set"}</p>
          <Month account={account} whole={b.cap ?? b.budget ? Number(b.cap ?? b.budget) : null} />
        </>
      )}</Loaded>
    </Card>
  );
}

const day = (at: Date) => at.toLocaleDateString("sv"); // 2026-11-19, by the reader's clock
const clock = new Intl.DateTimeFormat("en-GB", { weekday: "short", hour: "2-digit", minute: "2-digit" });

/** What begins, ends or goes on until tomorrow night. */
function Booked() {
  const now = new Date(), end = new Date(now.getFullYear(), now.getMonth(), now.getDate() + 2);
  const data = useGet<{ bookings: Booking[] }>(url("/v1/calendar", { from: day(now), to: day(end), zone }));
  return (
    <Card title="Booked today and tomorrow" more={<a href={href("calendar")}>Calendar</a>}>
      <Loaded data={data} rows={2}>{(l) => {
        const list = l.bookings.filter((b) => ["confirmed", "preparing", "active"].includes(b.state));
        return list.length === 0 ? <Empty>Nothing is booked.</Empty> : (
          <ul class="feed">{list.slice(0, 6).map((b) => (
            <li key={b.id + b.from}><time dateTime={b.from}>{clock.format(new Date(b.from))}</time> – <time dateTime={b.to}>{clock.format(new Date(b.to))}</time> <b>{b.name || b.id}</b> {number(b.tasks * b.gpus)} {b.type} <small>{b.account}{b.degraded && `, ${b.reason ?? "degraded"}`}</small></li>
          ))}{list.length > 6 && <li>and {number(list.length - 6)} more</li>}</ul>
        );
      }}</Loaded>
    </Card>
  );
}

export function Home() {
  const me = who.value!;
  const counts = useGet<Counts>("/v1/counts");
  const mine = useGet<{ jobs: Job[] }>(`/v1/jobs?limit=12${me.account ? `&user=${encodeURIComponent(me.user)}` : ""}&${WAITS.map((s) => `state=${s}`).join("&")}`);
  return (
    <>
      <h1>{me.account || "The cluster"}</h1>
      <div class="cards">
        {me.account && <Held account={me.account} />}
        {me.account && <Spend account={me.account} />}
        <Card title="Jobs" more={<a href={href("jobs")}>All jobs</a>}>
          <Loaded data={counts}>{(c) => (
            <ul class="counts">
              {Object.entries(c.states).filter(([s, n]) => n.jobs > 0 || s === "pending" || s === "running").map(([s, n]) => (
                <li key={s}><a href={href("jobs", { state: s })}><State of={s} /> <b>{number(n.jobs)}</b> <small>{gpus(n.gpus)} GPUs</small></a></li>
              ))}
            </ul>
          )}</Loaded>
        </Card>
        <Booked />
        <OpenIncidents />
        <Card title={me.account ? "Your jobs" : "Latest jobs"} wide>
          <Loaded data={mine} rows={6}>{(list) => list.jobs.length === 0 ? (
            <Empty>Nothing of yours waits or runs. Try <code>stint submit --gpus 1 --limit 1h -- nvidia-smi</code></Empty>
          ) : (
            <table>
              <thead><tr><th>Job</th><th>State</th><th class="n">GPUs</th><th>Since</th></tr></thead>
              <tbody>{list.jobs.map((j) => (
                <tr key={j.id}><td><a href={href(`jobs/${j.id}`)}>{j.name || j.id}</a> <small>{j.account}</small></td><td><State of={j.state} /></td><td class="n">{gpus(j.gpus)}</td><td><Time at={j.running_since ?? j.submitted} /></td></tr>
              ))}</tbody>
            </table>
          )}</Loaded>
        </Card>
        <Card title="Happening now" wide>
          {recent.value.length === 0 ? <Empty>Nothing has happened since you opened this page.</Empty> : (
            <ol class="feed">{recent.value.slice(0, 14).map((e, i) => (
              <li key={`${e.at}${i}`}><Time at={e.at} /> <b>{e.kind}</b> {e.job ? <a href={href(`jobs/${e.job}`)}>{e.name || e.job}</a> : e.node ?? e.name ?? e.account} <small>{e.state ?? ""} {e.reason ?? ""}</small></li>
            ))}</ol>
          )}
        </Card>
      </div>
    </>
  );
}
