// What is booked, where is a hole? A week of bookings; drag over a day, or fill in the form, to book.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { mayChange, send, url, who } from "../api";
import { refine, route } from "../route";
import type { Booking } from "../types";
import { Card, Confirm, Empty, Loaded, money, State, Trouble, zone } from "../ui";
import { useGet } from "../use";

const DAY = 86400000, HOURS = [0, 6, 12, 18];
const pad = (n: number) => String(n).padStart(2, "0");
const date = (d: Date) => `${d.getFullYear()}-${pad(d.getMonth() + 1)}-${pad(d.getDate())}`;
const clock = (d: Date) => `${pad(d.getHours())}:${pad(d.getMinutes())}`;
const name = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", month: "short" });
const when = (b: Booking) => `${name.format(new Date(b.from))} ${clock(new Date(b.from))} – ${name.format(new Date(b.to))} ${clock(new Date(b.to))}`;

function monday(text: string | null): Date {
  const at = text && /^\d{4}-\d\d-\d\d$/.test(text) ? new Date(`${text}T00:00:00`) : new Date();
  return new Date(at.getFullYear(), at.getMonth(), at.getDate() - ((at.getDay() + 6) % 7));
}

type Quote = { id: string; state: string; held_until: string; bookings: { id: string; from: string; to: string }[] };
type Price = { amount: string; gpu_hour: string; discounts: Record<string, string> };
type Window = { fits: boolean; why?: string; detail?: string; not_available_from?: string | null; earlier?: string | null; later?: string | null; fewer_gpus?: number; other_types?: string[]; price: Price | null };
/** "driver=550 storage=nvme" as labels; what is none of that is sent as it is, and refused with a sentence. */
const labels = (text: string) => Object.fromEntries(text.split(/[\s,]+/).filter(Boolean).map((w) => [w.split("=")[0], w.split("=").slice(1).join("=")]));
const WHY: Record<string, string> = {
  past: "It begins before now.", horizon: "It begins further ahead than bookings may.", length: "It is empty, or longer than bookings may be.",
  share: "All bookings together would have more than they may.", account_share: "The account's bookings would have more than they may.",
  floors: "Guarantees and other bookings leave too little.", place: "Enough GPUs are left, but not in this shape.",
};
const local = (d: Date) => `${date(d)}T${clock(d)}`;
type Draft = { from: string; to: string };

/** A quote is held for ten minutes; what is confirmed will be there. */
function Book({ draft, done }: { draft: Draft; done: () => void }) {
  const types = useGet<{ types: { name: string }[] }>("/v1/types", false), accounts = useGet<{ accounts: { name: string }[] }>("/v1/accounts", false);
  const [from, setFrom] = useState(draft.from), [to, setTo] = useState(draft.to);
  const [type, setType] = useState(""), [each, setEach] = useState("8"), [tasks, setTasks] = useState("1"), [account, setAccount] = useState(""), [title, setTitle] = useState("");
  const images = useGet<{ images: { name: string }[] }>("/v1/images", false);
  const [needs, setNeeds] = useState(""), [image, setImage] = useState(""), [alone, setAlone] = useState(false);
  const [quote, setQuote] = useState<Quote>(), [seen, setSeen] = useState<Window>(), [error, setError] = useState<Error>(), [busy, setBusy] = useState(false);
  useEffect(() => { setFrom(draft.from); setTo(draft.to); }, [draft.from, draft.to]);
  const own = who.value?.account, first = own ? "" : accounts.value?.accounts[0]?.name ?? ""; // who stands at the cluster has none
  const kind = type || types.value?.types[0]?.name || "";
  async function run(what: () => Promise<void>) {
    setBusy(true);
    setError(undefined);
    try { await what(); } catch (e) { setError(e as Error); }
    setBusy(false);
  }
  // First whether it fits and what it costs; only what fits is held.
  const ask = () => run(async () => {
    const wanted = {
      type: kind, gpus: Number(each), tasks: Number(tasks), from: from.replace("T", " "), to: to.replace("T", " "), zone,
      ...((account || first) && { account: account || first }), ...(title && { name: title }),
      ...(needs.trim() && { require: labels(needs) }), ...(image && { image }), ...(alone && { dedicated: true }),
    };
    const tried = await send<{ fits: boolean; windows: Window[] }>("POST", "/v1/bookings?dry_run=true", wanted);
    setSeen(tried!.windows[0]);
    if (tried!.fits) setQuote(await send<Quote>("POST", "/v1/bookings", wanted));
  });
  function shift(start: string) {
    const long = new Date(to).getTime() - new Date(from).getTime(), at = new Date(start);
    setFrom(local(at));
    setTo(local(new Date(at.getTime() + long)));
    setSeen(undefined);
  }
  return (
    <Card title="Book GPUs" wide>
      {error && <Trouble error={error} />}
      {!quote ? (
        <form class="fields" onSubmit={(e) => { e.preventDefault(); ask(); }}>
          <label class="field"><span>From</span><input type="datetime-local" required value={from} onInput={(e) => setFrom(e.currentTarget.value)} /></label>
          <label class="field"><span>To</span><input type="datetime-local" required value={to} onInput={(e) => setTo(e.currentTarget.value)} /></label>
          <label class="field"><span>GPU type</span><select value={kind} onChange={(e) => setType(e.currentTarget.value)}>{types.value?.types.map((t) => <option key={t.name}>{t.name}</option>)}</select></label>
          <label class="field"><span>GPUs per task</span><input type="number" min={1} max={16} value={each} onInput={(e) => setEach(e.currentTarget.value)} /></label>
          <label class="field"><span>Tasks</span><input type="number" min={1} max={4096} value={tasks} onInput={(e) => setTasks(e.currentTarget.value)} /></label>
          <label class="field"><span>Account</span><select value={account || first} onChange={(e) => setAccount(e.currentTarget.value)}>{own && <option value="">yours</option>}{accounts.value?.accounts.map((a) => <option key={a.name}>{a.name}</option>)}</select></label>
          <label class="field"><span>Name</span><input value={title} maxLength={63} onInput={(e) => setTitle(e.currentTarget.value)} /></label>
          <label class="field"><span>Labels of the nodes</span><input value={needs} placeholder="driver=550 storage=nvme" onInput={(e) => setNeeds(e.currentTarget.value)} /></label>
          <label class="field"><span>Image ready on them</span><select value={image} onChange={(e) => setImage(e.currentTarget.value)}><option value="">none</option>{images.value?.images.map((i) => <option key={i.name}>{i.name}</option>)}</select></label>
          <label class="field"><span>Dedicated nodes</span><input type="checkbox" checked={alone} onChange={(e) => setAlone(e.currentTarget.checked)} /></label>
          <div class="field"><span>&nbsp;</span><button type="submit" class="main" disabled={busy || !kind}>Get a quote</button></div>
          {seen && !seen.fits && (
            <div class="verdict bad wide" role="status">
              <b>It does not fit.</b> {seen.detail ?? WHY[seen.why ?? ""] ?? seen.why}
              <div class="menu">
                {seen.earlier && <button type="button" onClick={() => shift(seen.earlier!)}>Earlier: {name.format(new Date(seen.earlier))} {clock(new Date(seen.earlier))}</button>}
                {seen.later && <button type="button" onClick={() => shift(seen.later!)}>Later: {name.format(new Date(seen.later))} {clock(new Date(seen.later))}</button>}
                {!!seen.fewer_gpus && <button type="button" onClick={() => { setTasks(String(Math.floor(seen.fewer_gpus! / Number(each)))); setSeen(undefined); }}>{seen.fewer_gpus} GPUs</button>}
                {seen.other_types?.map((t) => <button type="button" key={t} onClick={() => { setType(t); setSeen(undefined); }}>{t} instead</button>)}
              </div>
            </div>
          )}
        </form>
      ) : (
        <>
          <p class="big">{Number(each) * Number(tasks)} {kind} can be had.</p>
          <p class="legend">{seen?.price ? `It costs ${money(seen.price.amount, "")}, used or not (${seen.price.gpu_hour} per GPU and hour before discounts). ` : "The price book has no price for bookings. "}The quote is held until {clock(new Date(quote.held_until))} ({zone}).</p>
          <div class="menu">
            <button type="button" class="main" disabled={busy} onClick={() => run(async () => { await send("POST", `/v1/bookings/${quote.id}/confirm`); setQuote(undefined); done(); })}>Confirm</button>
            <button type="button" disabled={busy} onClick={() => run(async () => { await send("DELETE", `/v1/bookings/${quote.id}`); setQuote(undefined); done(); })}>Let it go</button>
          </div>
        </>
      )}
    </Card>
  );
}

/** Bookings that overlap get lanes of their own. */
function lanes(list: Booking[]): Map<string, { lane: number; of: number }> {
  const out = new Map<string, { lane: number; of: number }>(), ends: number[] = [];
  for (const b of [...list].sort((x, y) => x.from.localeCompare(y.from) || y.to.localeCompare(x.to))) {
    const from = new Date(b.from).getTime();
    let lane = ends.findIndex((e) => e <= from);
    if (lane < 0) lane = ends.length;
    ends[lane] = new Date(b.to).getTime();
    out.set(b.id, { lane, of: 0 });
  }
  for (const v of out.values()) v.of = ends.length;
  return out;
}

function Week({ from, list, onDraft, onPick }: { from: Date; list: Booking[]; onDraft: (d: Draft) => void; onPick: (b: Booking) => void }) {
  const place = useMemo(() => lanes(list), [list]);
  const [drag, setDrag] = useState<{ day: number; a: number; b: number }>(), box = useRef<HTMLDivElement>(null);
  const days = Array.from({ length: 7 }, (_, i) => new Date(from.getFullYear(), from.getMonth(), from.getDate() + i));
  const hour = (e: PointerEvent) => {
    const at = (e.currentTarget as HTMLElement).getBoundingClientRect();
    return Math.max(0, Math.min(24, Math.round(((e.clientY - at.top) / at.height) * 24)));
  };
  function end() {
    if (!drag) return;
    const day = days[drag.day], a = Math.min(drag.a, drag.b), b = Math.max(drag.a, drag.b);
    setDrag(undefined);
    if (b > a && mayChange()) onDraft({ from: `${date(day)}T${pad(a)}:00`, to: b === 24 ? `${date(new Date(day.getTime() + DAY + 7200000))}T00:00` : `${date(day)}T${pad(b)}:00` });
  }
  return (
    <div class="week" ref={box} tabIndex={0} role="group" aria-label="Bookings of the week">
      {days.map((day, i) => {
        const next = new Date(day.getFullYear(), day.getMonth(), day.getDate() + 1), low = day.getTime(), high = next.getTime();
        const here = list.filter((b) => new Date(b.from).getTime() < high && new Date(b.to).getTime() > low);
        return (
          <section key={i} aria-label={name.format(day)}>
            <h2 class={date(day) === date(new Date()) ? "today" : ""}>{name.format(day)}</h2>
            <div class="day" onPointerDown={(e) => { if (e.target === e.currentTarget) { const h = hour(e); setDrag({ day: i, a: h, b: h }); } }} onPointerMove={(e) => { if (drag?.day === i) setDrag({ ...drag, b: hour(e) }); }} onPointerUp={end} onPointerLeave={end}>
              {HOURS.map((h) => <i key={h} class={`h h${h}`} aria-hidden="true">{pad(h)}</i>)}
              {drag?.day === i && <i class="drag" aria-hidden="true" ref={(el) => { if (el) { el.style.top = `${(100 * Math.min(drag.a, drag.b)) / 24}%`; el.style.height = `${(100 * Math.abs(drag.b - drag.a)) / 24}%`; } }} />}
              {here.map((b) => {
                const a = Math.max(low, new Date(b.from).getTime()), z = Math.min(high, new Date(b.to).getTime()), lane = place.get(b.id)!;
                return (
                  <button type="button" key={b.id} class={`slot b-${b.state}${b.degraded ? " degraded" : ""}`} onClick={() => onPick(b)} title={`${b.name}, ${b.account}: ${b.tasks * b.gpus} ${b.type}, ${when(b)}, ${b.state}`} ref={(el) => {
                    if (!el) return;
                    el.style.top = `${(100 * (a - low)) / (high - low)}%`;
                    el.style.height = `${Math.max(3, (100 * (z - a)) / (high - low))}%`;
                    el.style.left = `${(100 * lane.lane) / lane.of}%`;
                    el.style.width = `${100 / lane.of}%`;
                  }}>{b.name}<small>{b.tasks * b.gpus} {b.type}</small></button>
                );
              })}
            </div>
          </section>
        );
      })}
    </div>
  );
}

export function Calendar() {
  const from = monday(route.value.query.get("week")), to = new Date(from.getFullYear(), from.getMonth(), from.getDate() + 7);
  const account = route.value.query.get("account") ?? "", pool = route.value.query.get("pool") ?? "";
  const pools = useGet<{ pools: { name: string }[] }>("/v1/pools", false);
  const accounts = useGet<{ accounts: { name: string }[] }>("/v1/accounts", false);
  const data = useGet<{ bookings: Booking[] }>(url("/v1/calendar", { from: date(from), to: date(to), zone, account: account || undefined }));
  const [draft, setDraft] = useState<Draft>(), [pick, setPick] = useState<Booking>(), [asking, setAsking] = useState(false);
  const go = (weeks: number) => refine({ week: weeks === 0 ? undefined : date(new Date(from.getFullYear(), from.getMonth(), from.getDate() + 7 * weeks)) });
  const tomorrow = new Date(Date.now() + DAY);
  const gone = ["ended", "cancelled", "no_show", "refused", "lapsed"];
  return (
    <>
      <header class="title">
        <h1>Calendar</h1>
        <button type="button" onClick={() => go(-1)} aria-label="Week before">‹</button>
        <button type="button" onClick={() => go(0)}>This week</button>
        <button type="button" onClick={() => go(1)} aria-label="Week after">›</button>
        <span class="grow" />
        <label>Account <select value={account} onChange={(e) => refine({ account: e.currentTarget.value })}><option value="">all</option>{accounts.value?.accounts.map((a) => <option key={a.name}>{a.name}</option>)}</select></label>
        <label>Pool <select value={pool} onChange={(e) => refine({ pool: e.currentTarget.value })}><option value="">all</option>{pools.value?.pools.map((p) => <option key={p.name}>{p.name}</option>)}</select></label>
        {mayChange() && <button type="button" class="main" onClick={() => setDraft({ from: `${date(tomorrow)}T09:00`, to: `${date(tomorrow)}T17:00` })}>Book…</button>}
      </header>
      {draft && <div class="cards above"><Book draft={draft} done={() => { setDraft(undefined); data.again(); }} /></div>}
      <Loaded data={data} rows={8}>{(all) => {
        const d = { bookings: all.bookings.filter((b) => !pool || b.pool === null || b.pool === pool) }; // without a pool it may be in any
        return (
        <>
          <Week from={from} list={d.bookings.filter((b) => !gone.includes(b.state))} onDraft={setDraft} onPick={setPick} />
          <p class="legend">Times are in {zone}. Drag over a day to book. What other organisations booked is not shown.</p>
          <Card title="The same as a list" wide>
            {d.bookings.length === 0 ? <Empty>Nothing is booked in this week.</Empty> : (
              <table>
                <thead><tr><th>Booking</th><th>Account</th><th>State</th><th>Nodes</th><th class="n">GPUs</th><th>Type</th><th>When</th><th><span class="hide">Change</span></th></tr></thead>
                <tbody>{d.bookings.map((b) => (
                  <tr key={b.id} class={pick?.id === b.id ? "at" : ""}><td>{b.name} <small><code>{b.id}</code></small></td><td>{b.account}</td><td><State of={b.degraded ? "degraded" : b.state} /></td><td>{b.ready ?? ""}{b.reason && <small> {b.reason}</small>}</td><td class="n">{b.tasks * b.gpus}</td><td>{b.type}</td><td>{when(b)}</td><td>{mayChange() && !gone.includes(b.state) && <button type="button" onClick={() => { setPick(b); setAsking(true); }}>Cancel…</button>}</td></tr>
                ))}</tbody>
              </table>
            )}
          </Card>
        </>
        );
      }}</Loaded>
      {asking && pick && <Confirm ask={`Cancel the booking ${pick.name}, ${when(pick)}? ${Number(pick.cancel_fee ?? 0) > 0 ? `The fee is ${money(pick.cancel_fee, "")}. ` : ""}Its GPUs go to others.`} yes="Cancel the booking" onNo={() => setAsking(false)} onYes={async () => { await send("DELETE", `/v1/bookings/${pick.id}`); setAsking(false); setPick(undefined); data.again(); }} />}
    </>
  );
}
