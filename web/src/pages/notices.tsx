// Notices: whom jobs, budgets and bookings tell by webhook or mail, and what came of it.
import { useState } from "preact/hooks";
import { mayAdmin, mayChange, seg, send, who } from "../api";
import { href, refine, route } from "../route";
import { Card, Confirm, Empty, Loaded, number, State, Time, Trouble } from "../ui";
import { useGet } from "../use";
import { Whose } from "./volumes";

type Delivery = { id: string; state: string; tries: number; status: number; text: string; changed: string };
type Notice = { name: string; account: string; by: string; on: string[]; jobs: string; by_way_of: string; to: string; created: string; deliveries?: Delivery[] };
const WHEN = ["start", "end", "fail", "preempt", "budget", "incident", "booking"];

function NewNotice({ account, again }: { account: string; again: () => void }) {
  const [error, setError] = useState<Error>(), [made, setMade] = useState<{ name: string; secret?: string }>();
  function submit(e: SubmitEvent) {
    e.preventDefault();
    const form = e.currentTarget as HTMLFormElement, f = new FormData(form), to = String(f.get("to")).trim(), name = String(f.get("name")).trim();
    const body = { [to.includes("://") ? "webhook" : "mail"]: to, on: f.getAll("on").map(String), jobs: f.get("jobs") ?? "mine" };
    setError(undefined);
    setMade(undefined);
    send<{ secret?: string }>("PUT", `/v1/accounts/${seg(account)}/notices/${seg(name)}`, body).then((r) => { setMade({ name, secret: r?.secret }); form.reset(); again(); }, setError);
  }
  return (
    <Card title="A new notice" wide>
      {error && <Trouble error={error} />}
      <form onSubmit={submit}>
        <div class="fields">
          <label class="field"><span>Name</span><input name="name" required maxLength={48} /></label>
          <label class="field"><span>Address of a webhook or a mailbox</span><input name="to" required placeholder="https://… or ada@example.com" autocomplete="off" /></label>
          <label class="field"><span>Of whose jobs</span><select name="jobs"><option value="mine">mine</option><option value="all">all of the account and below</option></select></label>
        </div>
        <fieldset class="filters"><legend>When</legend>{WHEN.map((w) => <label key={w} class="check"><input type="checkbox" name="on" value={w} defaultChecked={["end", "fail", "preempt"].includes(w)} /> {w}</label>)}</fieldset>
        <div class="menu"><button type="submit" class="main">Add the notice</button></div>
      </form>
      {made && <p class="once" role="status">Notice {made.name} is added.{made.secret && <> Its receiver checks signatures with <code>{made.secret}</code> It is shown this once.</>}</p>}
    </Card>
  );
}

function One({ account, name, mine, again }: { account: string; name: string; mine: boolean; again: () => void }) {
  const path = `/v1/accounts/${seg(account)}/notices/${seg(name)}`, data = useGet<Notice>(path);
  const [asking, setAsking] = useState(false), [error, setError] = useState<Error>();
  return (
    <Card title={`Notice ${name}`} wide more={<a href={href("team", { tab: "notices", account })}>Close</a>}>
      {error && <Trouble error={error} />}
      <Loaded data={data}>{(n) => (
        <>
          <dl>
            <div><dt>Goes to</dt><dd>{n.by_way_of} {n.to}</dd></div>
            <div><dt>When</dt><dd>{n.on.join(", ")} of {n.jobs === "all" ? "all jobs" : `jobs of ${n.by}`}</dd></div>
            <div><dt>Added</dt><dd><Time at={n.created} /> by {n.by}</dd></div>
          </dl>
          {mine && <div class="menu">
            <button type="button" onClick={() => { setError(undefined); send("POST", `${path}/test`).then(data.again, setError); }}>Send a test</button>
            <button type="button" class="danger" onClick={() => setAsking(true)}>Remove…</button>
          </div>}
          {(n.deliveries ?? []).length === 0 ? <Empty>Nothing was delivered yet.</Empty> : <table>
            <thead><tr><th>Delivery</th><th>State</th><th class="n">Tries</th><th class="n">Answer</th><th>When</th><th>Words</th></tr></thead>
            <tbody>{[...n.deliveries!].reverse().map((d) => <tr key={d.id}><td>{d.id}</td><td><State of={d.state} /></td><td class="n">{number(d.tries)}</td><td class="n">{d.status || "–"}</td><td><Time at={d.changed} /></td><td class="detail">{d.text}</td></tr>)}</tbody>
          </table>}
          {asking && <Confirm ask={`Remove the notice ${name}? What still waits for its receiver is dropped.`} yes="Remove" onNo={() => setAsking(false)} onYes={async () => { await send("DELETE", path); setAsking(false); refine({ name: undefined }); again(); }} />}
        </>
      )}</Loaded>
    </Card>
  );
}

function Of({ account }: { account: string }) {
  const list = useGet<{ notices: Notice[] }>(`/v1/notices?account=${seg(account)}`), q = route.value.query, name = q.get("name"), of = q.get("of") ?? account;
  const shown = list.value?.notices.find((n) => n.name === name && n.account === of);
  return (
    <>
      <Card title={`Notices of ${account}`} wide>
        <Loaded data={list}>{(l) => l.notices.length === 0 ? <Empty>Nobody is told anything yet.</Empty> : (
          <table>
            <thead><tr><th>Notice</th><th>Of</th><th>When</th><th>Jobs</th><th>Goes to</th><th>By</th></tr></thead>
            <tbody>{l.notices.map((n) => <tr key={`${n.account}/${n.name}`}><td><a href={href("team", { tab: "notices", account, name: n.name, of: n.account })}>{n.name}</a></td><td>{n.account}</td><td>{n.on.join(", ")}</td><td>{n.jobs}</td><td>{n.by_way_of} {n.to}</td><td>{n.by}</td></tr>)}</tbody>
          </table>
        )}</Loaded>
      </Card>
      {name && <One key={`${of}/${name}`} account={of} name={name} mine={mayAdmin() || (mayChange() && shown?.by === who.value?.user)} again={list.again} />}
      {mayChange() && <NewNotice account={account} again={list.again} />}
    </>
  );
}

export const Notices = () => <Whose of="notices">{(account) => <Of key={account} account={account} />}</Whose>;
