// Services of the team: how many replicas there are and how well, and what one may do about it.
import { useState } from "preact/hooks";
import { mayChange, seg, send, who } from "../api";
import { href, refine, route } from "../route";
import { Card, Confirm, Empty, Loaded, number, State, Time, Trouble } from "../ui";
import { useGet } from "../use";

type Replica = { replica: number; job: string; state: string; since: string | null; revision: number; node: string; requests: number; moving: boolean; trouble: string };
type Service = {
  name: string; account: string; user: string; port: number; revision: number; created: string; state: string; ready: number; target: number; requests: number;
  replicas: Replica[]; trouble: string; trouble_at: string | null; next_start?: string; wanted?: Record<string, unknown>; job?: Record<string, unknown>;
};

const words = (text: string) => text.match(/"[^"]*"|\S+/g)?.map((w) => w.replace(/^"|"$/g, "")) ?? [];

function NewService({ again }: { again: () => void }) {
  const [error, setError] = useState<Error>(), [said, setSaid] = useState<string>();
  function submit(e: SubmitEvent) {
    e.preventDefault();
    const form = e.currentTarget as HTMLFormElement, f = Object.fromEntries([...new FormData(form)].map(([k, v]) => [k, String(v).trim()]).filter(([, v]) => v !== ""));
    const job: Record<string, unknown> = { gpus: Number(f.gpus ?? 0), command: words(f.command ?? "") };
    if (f.image) job.image = f.image;
    if (f.share) Object.assign(job, { level: "mps", share: Number(f.share), gpus: 1 });
    const body = { name: f.name, port: Number(f.port), replicas: Number(f.replicas), health: f.health, ...(f.path && { path: f.path }), ...(f.account && { account: f.account }), job };
    setError(undefined);
    send("POST", "/v1/services", body).then(() => { setSaid(`Service ${f.name} is made.`); form.reset(); again(); }, setError);
  }
  const accounts = useGet<{ accounts: { name: string }[] }>("/v1/accounts", false);
  return (
    <Card title="A new service" wide>
      {error && <Trouble error={error} />}
      <Loaded data={accounts} rows={2}>{(l) => <form class="fields" onSubmit={submit}>
        <label class="field"><span>Name</span><input name="name" required maxLength={48} /></label>
        <label class="field"><span>Account</span><select name="account">{l.accounts.map((a) => <option key={a.name} selected={a.name === who.value?.account}>{a.name}</option>)}</select></label>
        <label class="field"><span>Image</span><input name="image" placeholder="of the catalogue" /></label>
        <label class="field"><span>Command</span><input name="command" required placeholder="python3 serve.py" /></label>
        <label class="field"><span>Port it listens on</span><input name="port" type="number" min={1} max={65535} required /></label>
        <label class="field"><span>Replicas</span><input name="replicas" type="number" min={0} max={1000} value={1} required /></label>
        <label class="field"><span>GPUs each</span><input name="gpus" type="number" min={0} max={16} value={1} /></label>
        <label class="field"><span>Or a part of one</span><select name="share"><option value="">whole GPUs</option><option>0.5</option><option>0.25</option><option>0.1</option></select></label>
        <label class="field"><span>Health</span><select name="health"><option>tcp</option><option>http</option><option>none</option></select></label>
        <label class="field"><span>Path of the check</span><input name="path" placeholder="/healthz, for http" /></label>
        <div class="field"><span>&nbsp;</span><button type="submit" class="main">Make the service</button></div>
      </form>}</Loaded>
      {said && <p class="once" role="status">{said}</p>}
    </Card>
  );
}

/** A token that may call the account's services and nothing else. */
function Caller({ of }: { of: Service }) {
  const [made, setMade] = useState<string>(), [error, setError] = useState<Error>();
  if (who.value?.role !== "admin" && who.value?.role !== "owner") return null;
  return (
    <>
      {error && <Trouble error={error} />}
      <button type="button" onClick={() => { setError(undefined); send<{ token: string }>("POST", "/v1/tokens", { user: `calls-${of.name}`.slice(0, 63), role: "caller", account: of.account, label: of.name.slice(0, 63) }).then((t) => setMade(t!.token), setError); }}>Make a token for callers</button>
      {made && <p class="once" role="status">For programs that call it: <code>{made}</code> It opens services of {of.account} and nothing else, and is shown this once.</p>}
    </>
  );
}

function One({ name, account, again }: { name: string; account: string; again: () => void }) {
  const data = useGet<Service>(`/v1/services/${seg(name)}`);
  const [asking, setAsking] = useState<"restart" | "remove">(), [error, setError] = useState<Error>();
  const acts = mayChange();
  const run = (what: Promise<unknown>) => { setError(undefined); what.then(() => { data.again(); again(); }, setError); };
  return (
    <Card title={`Service ${name}`} wide more={<a href={href("team", { tab: "services" })}>Close</a>}>
      {error && <Trouble error={error} />}
      <Loaded data={data}>{(s) => (
        <>
          <dl>
            <div><dt>State</dt><dd><State of={s.state} />{s.trouble && <> {s.trouble} <small><Time at={s.trouble_at} /></small></>}</dd></div>
            <div><dt>Of</dt><dd>{s.user}, {account}</dd></div>
            <div><dt>Called at</dt><dd><code>{`${location.origin}/v1/services/${seg(s.name)}/call/`}</code></dd></div>
            <div><dt>Revision</dt><dd>{number(s.revision)}, made <Time at={s.created} /></dd></div>
          </dl>
          {acts && <div class="menu">
            <form class="filters" onSubmit={(e) => { e.preventDefault(); run(send("PATCH", `/v1/services/${seg(name)}`, { replicas: Number(new FormData(e.currentTarget as HTMLFormElement).get("replicas")) }, { "If-Match": "*" })); }}>
              <label>Replicas <input name="replicas" type="number" min={0} max={1000} value={s.target} /></label><button type="submit">Scale</button>
            </form>
            <button type="button" onClick={() => setAsking("restart")}>Restart…</button>
            <button type="button" class="danger" onClick={() => setAsking("remove")}>Remove…</button>
            <Caller of={s} />
          </div>}
          {s.replicas.length === 0 ? <Empty>It has no replicas.</Empty> : <table>
            <thead><tr><th>Replica</th><th>State</th><th>Since</th><th>Job</th><th>Node</th><th class="n">Revision</th><th class="n">Requests</th><th>Trouble</th></tr></thead>
            <tbody>{s.replicas.map((r) => <tr key={r.job}><td>{r.replica}</td><td><State of={r.state} />{r.moving && <small> moves</small>}</td><td><Time at={r.since} /></td><td><a href={href(`jobs/${r.job}`)}>{r.job}</a></td><td>{r.node || "–"}</td><td class="n">{r.revision}</td><td class="n">{number(r.requests)}</td><td class="detail">{r.trouble}</td></tr>)}</tbody>
          </table>}
          {asking === "restart" && <Confirm danger={false} ask={`Replace all replicas of ${name}, one after the other? It goes on answering meanwhile.`} yes="Restart" onNo={() => setAsking(undefined)} onYes={async () => { await send("POST", `/v1/services/${seg(name)}/restart`, undefined, { "If-Match": "*" }); setAsking(undefined); data.again(); }} />}
          {asking === "remove" && <Confirm ask={`Remove the service ${name}? Its replicas end, and calls to it are refused.`} yes="Remove" onNo={() => setAsking(undefined)} onYes={async () => { await send("DELETE", `/v1/services/${seg(name)}`, undefined, { "If-Match": "*" }); setAsking(undefined); refine({ name: undefined }); again(); }} />}
        </>
      )}</Loaded>
    </Card>
  );
}

export function Services() {
  const list = useGet<{ services: Service[] }>("/v1/services"), name = route.value.query.get("name");
  return (
    <>
      <Card title="Services" wide>
        <Loaded data={list}>{(l) => l.services.length === 0 ? <Empty>There is no service yet. A service is replicas of a job behind one address, kept healthy.</Empty> : (
          <table>
            <thead><tr><th>Service</th><th>Account</th><th>State</th><th class="n">Ready</th><th class="n">Wanted</th><th class="n">Requests</th><th>Trouble</th></tr></thead>
            <tbody>{l.services.map((s) => <tr key={s.name}><td><a href={href("team", { tab: "services", name: s.name })}>{s.name}</a></td><td>{s.account}</td><td><State of={s.state} /></td><td class="n">{s.ready}</td><td class="n">{s.target}</td><td class="n">{number(s.requests)}</td><td class="detail">{s.trouble}</td></tr>)}</tbody>
          </table>
        )}</Loaded>
      </Card>
      {name && <One key={name} name={name} account={list.value?.services.find((s) => s.name === name)?.account ?? ""} again={list.again} />}
      {mayChange() && <NewService again={list.again} />}
    </>
  );
}
