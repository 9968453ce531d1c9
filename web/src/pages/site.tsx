// Who may, who did? People and their tokens, the audit log, rules and prices.
import { useState } from "preact/hooks";
import { mayAdmin, send, url, who } from "../api";
import { Plans, PricesTab } from "./prices";
import { href, refine, route } from "../route";
import { Card, Confirm, Empty, Loaded, number, Time, Trouble } from "../ui";
import { useGet } from "../use";

/* ---- people ---- */

type Token = { id: string; account: string; user: string; role: string; label: string; created: string; expires: string | null; revoked: string | null; last_used: string | null };

function NewToken({ again }: { again: () => void }) {
  const accounts = useGet<{ accounts: { name: string }[] }>("/v1/accounts", false);
  const [made, setMade] = useState<{ token: string; user: string }>(), [error, setError] = useState<Error>();
  function submit(e: SubmitEvent) {
    e.preventDefault();
    const said = Object.fromEntries([...new FormData(e.currentTarget as HTMLFormElement)].filter(([, v]) => v !== ""));
    setError(undefined);
    send<{ token: string; user: string }>("POST", "/v1/tokens", said).then((t) => { setMade(t); again(); }, setError);
  }
  return (
    <Card title="Give somebody a token" wide>
      {error && <Trouble error={error} />}
      <Loaded data={accounts} rows={2}>{(l) => <form class="fields" onSubmit={submit}>
        <label class="field"><span>User</span><input name="user" required maxLength={63} /></label>
        <label class="field"><span>Account</span><select name="account">{l.accounts.map((a) => <option key={a.name}>{a.name}</option>)}{who.value?.role === "owner" && <option value="">the cluster</option>}</select></label>
        <label class="field"><span>Role</span><select name="role"><option>member</option><option>viewer</option><option>caller</option><option>auditor</option><option>admin</option>{who.value?.role === "owner" && <option>owner</option>}</select></label>
        <label class="field"><span>Label</span><input name="label" maxLength={63} placeholder="laptop" /></label>
        <label class="field"><span>Expires in</span><input name="expires_in" placeholder="30d" /></label>
        <div class="field"><span>&nbsp;</span><button type="submit" class="main">Make the token</button></div>
      </form>}</Loaded>
      {made && <p class="once" role="status">The token of {made.user}: <code>{made.token}</code> It is shown this once. Keep it where passwords are kept.</p>}
    </Card>
  );
}

function People() {
  const tokens = useGet<{ tokens: Token[] }>("/v1/tokens");
  const [asking, setAsking] = useState<Token>(), old = route.value.query.get("old");
  return (
    <>
      {mayAdmin() && <NewToken again={tokens.again} />}
      <Card title="Tokens" wide more={<label class="check"><input type="checkbox" checked={!!old} onChange={(e) => refine({ old: e.currentTarget.checked ? "1" : undefined })} /> also those that are over</label>}>
        <Loaded data={tokens}>{(l) => (
          <table>
            <thead><tr><th>User</th><th>Account</th><th>Role</th><th>Label</th><th>Made</th><th>Last used</th><th>Ends</th><th><span class="hide">Revoke</span></th></tr></thead>
            <tbody>{l.tokens.filter((t) => old || (!t.revoked && !(t.expires && new Date(t.expires) < new Date()))).map((t) => (
              <tr key={t.id}><td>{t.user}</td><td>{t.account || "the cluster"}</td><td>{t.role}</td><td>{t.label}</td><td><Time at={t.created} /></td><td>{t.last_used ? <Time at={t.last_used} /> : "never"}</td><td>{t.revoked ? <>revoked <Time at={t.revoked} /></> : t.expires ? <Time at={t.expires} /> : "never"}</td><td>{!t.revoked && <button type="button" onClick={() => setAsking(t)}>Revoke…</button>}</td></tr>
            ))}</tbody>
          </table>
        )}</Loaded>
      </Card>
      {asking && <Confirm ask={`Revoke the token ${asking.label || asking.id} of ${asking.user}? Programs and browsers that use it are logged out at once.`} yes="Revoke" onNo={() => setAsking(undefined)} onYes={async () => { await send("DELETE", `/v1/tokens/${asking.id}`); setAsking(undefined); tokens.again(); }} />}
    </>
  );
}

/* ---- the audit log ---- */

type Row = { id: string; at: string; actor: string; actor_account: string; source: string; account: string; verb: string; target: string; detail?: unknown };

function Audit() {
  const q = route.value.query;
  const data = useGet<{ rows: Row[]; next?: string }>(url("/v1/audit", { by: q.get("by") ?? undefined, what: q.get("what") ?? undefined, since: q.get("since") ?? undefined, cursor: q.get("cursor") ?? undefined, limit: 100 }));
  const [verdict, setVerdict] = useState<string>();
  const put = (key: string) => (e: { currentTarget: HTMLInputElement }) => refine({ [key]: e.currentTarget.value, cursor: undefined });
  const asks = who.value?.role === "owner" || who.value?.role === "auditor";
  return (
    <Card title="Who changed what" wide more={asks && <button type="button" onClick={() => send<{ intact: boolean }>("GET", "/v1/audit/verify").then((v) => setVerdict(v!.intact ? "The chain of hashes is intact." : "The chain of hashes is broken."), (e) => setVerdict(e.message))}>Check the chain</button>}>
      {verdict && <p class="once" role="status">{verdict}</p>}
      <form class="filters" onSubmit={(e) => e.preventDefault()}>
        <label>By <input data-search type="search" value={q.get("by") ?? ""} onChange={put("by")} placeholder="user" /></label>
        <label>What <input type="search" value={q.get("what") ?? ""} onChange={put("what")} placeholder="token.create, or token" /></label>
        <label>Since <input type="search" value={q.get("since") ?? ""} onChange={put("since")} placeholder="2h, or 2026-11-15" /></label>
      </form>
      <Loaded data={data}>{(l) => l.rows.length === 0 ? <Empty>No change matches.</Empty> : (
        <>
          <table>
            <thead><tr><th>When</th><th>Who</th><th>From</th><th>What</th><th>Of</th><th>To</th><th>Detail</th></tr></thead>
            <tbody>{l.rows.map((r) => <tr key={r.id}><td><Time at={r.at} /></td><td>{r.actor}{r.actor_account && <small> {r.actor_account}</small>}</td><td>{r.source}</td><td>{r.verb}</td><td>{r.account || "the cluster"}</td><td>{/^j/.test(r.target) && r.verb.startsWith("job.") ? <a href={href(`jobs/${r.target}`)}>{r.target}</a> : r.target}</td><td class="detail">{r.detail ? JSON.stringify(r.detail) : ""}</td></tr>)}</tbody>
          </table>
          <div class="menu">{q.get("cursor") && <button type="button" onClick={() => refine({ cursor: undefined })}>Newest</button>}{l.next && <button type="button" onClick={() => refine({ cursor: l.next })}>Older</button>}</div>
        </>
      )}</Loaded>
    </Card>
  );
}

/* ---- rules ---- */

type Rule = { name: string; version: number; text?: string; calls: number; refused: number; failed: number; last_error: string };

function RuleEdit({ rule, again }: { rule?: Rule; again: () => void }) {
  const [name, setName] = useState(rule?.name ?? ""), [text, setText] = useState(rule?.text ?? ""), [said, setSaid] = useState<string>(), [error, setError] = useState<Error>();
  const run = (what: () => Promise<unknown>, then: () => void) => { setError(undefined); setSaid(undefined); what().then(then, setError); };
  return (
    <Card title={rule ? `Rule ${rule.name}` : "A new rule"} wide>
      {error && <Trouble error={error} />}{said && <p class="once" role="status">{said}</p>}
      {!rule && <label class="field"><span>Name</span><input value={name} maxLength={63} onInput={(e) => setName(e.currentTarget.value)} /></label>}
      <textarea class="code" aria-label="Script of the rule" rows={12} spellcheck={false} value={text} onInput={(e) => { setText(e.currentTarget.value); setSaid(undefined); }} />
      <div class="menu">
        <button type="button" onClick={() => run(() => send("POST", "/v1/rules/check", text), () => setSaid("stintd would take it."))}>Check</button>
        <button type="button" class="main" disabled={!name} onClick={() => run(() => send("PUT", `/v1/rules/${encodeURIComponent(name)}`, text, rule ? { "If-Match": `"${rule.version}"` } : { "If-None-Match": "*" }), again)}>Save</button>
      </div>
    </Card>
  );
}

function Rules() {
  const rules = useGet<{ rules: Rule[] }>("/v1/rules", false);
  const at = route.value.query.get("rule");
  if (who.value?.role !== "owner") return <Empty>Rules are for owners.</Empty>;
  return (
    <Loaded data={rules}>{(l) => (
      <>
        <Card title="Rules, in their order" wide more={<button type="button" onClick={() => refine({ rule: "+" })}>New…</button>}>
          {l.rules.length === 0 ? <Empty>There are no rules: jobs are taken as they are submitted.</Empty> : <table><thead><tr><th>Rule</th><th class="n">Version</th><th class="n">Submits</th><th class="n">Refused</th><th class="n">Failed</th><th>Last error</th></tr></thead><tbody>{l.rules.map((r) => <tr key={r.name}><td><a href={href("site", { tab: "rules", rule: r.name })}>{r.name}</a></td><td class="n">{r.version}</td><td class="n">{number(r.calls)}</td><td class="n">{number(r.refused)}</td><td class="n">{number(r.failed)}</td><td class="detail">{r.last_error}</td></tr>)}</tbody></table>}
        </Card>
        {at && <RuleEdit key={at} rule={l.rules.find((r) => r.name === at)} again={() => { refine({ rule: undefined }); rules.again(); }} />}
      </>
    )}</Loaded>
  );
}

const TABS = [
  { tab: "people", name: "People", view: People }, { tab: "audit", name: "Audit", view: Audit }, { tab: "rules", name: "Rules", view: Rules }, { tab: "prices", name: "Prices", view: PricesTab }, { tab: "plans", name: "Plans", view: Plans },
] as const;

export function Site() {
  const role = who.value?.role ?? "";
  const mine = TABS.filter((t) => t.tab === "rules" ? role === "owner" : t.tab === "audit" ? ["owner", "admin", "auditor"].includes(role) : true);
  const at = mine.find((t) => t.tab === route.value.query.get("tab")) ?? mine[0], View = at.view;
  return (
    <>
      <header class="title"><h1>Site</h1><ul class="tabs">{mine.map((t) => <li key={t.tab}><a href={href("site", { tab: t.tab })} aria-current={t === at ? "page" : undefined}>{t.name}</a></li>)}</ul></header>
      <div class="cards"><View /></div>
    </>
  );
}
