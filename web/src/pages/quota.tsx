// Who has what, and who gains or loses when that changes? The tree of accounts, and one of them to edit.
import { useEffect, useState } from "preact/hooks";
import { call, get, mayAdmin, send, who } from "../api";
import { changed } from "../live";
import { Over, since, USE, WORK } from "../chart";
import { href, refine, route } from "../route";
import type { Account, Quota } from "../types";
import { Bar, Card, Empty, gpus, Loaded, Trouble } from "../ui";
import { useDebounced, useGet } from "../use";

type Row = Account & { depth: number };

function tree(all: Account[]): Row[] {
  const names = new Set(all.map((a) => a.name)), out: Row[] = [];
  const add = (parent: string | null, depth: number) => {
    for (const a of all)
      if (parent === null ? a.parent === null || !names.has(a.parent) : a.parent === parent) {
        out.push({ ...a, depth });
        add(a.name, depth + 1);
      }
  };
  add(null, 0);
  return out;
}

function useQuotas(names: string[]): Record<string, Quota> {
  const [quotas, set] = useState<Record<string, Quota>>({});
  const key = names.join("\n");
  useEffect(() => {
    const abort = new AbortController();
    (async () => {
      const found: Record<string, Quota> = {};
      for (const name of names) try { found[name] = await get<Quota>(`/v1/accounts/${encodeURIComponent(name)}/quota`, abort.signal); } catch { return; }
      set(found);
    })();
    return () => abort.abort();
  }, [key, changed.value]);
  return quotas;
}

/* ---- editing: first who gains and who loses, then saving ---- */

type Moved = { job: string; name: string; account: string };
type Floor = { account: string; resource: string; from: number; to: number };
type Preview = { starts: Moved[]; displaces: Moved[]; floors: Floor[]; carried: boolean; detail?: string };

/** "" is not said, "none" is no maximum. */
const amount = (text: string) => (text.trim() === "" ? undefined : text.trim() === "none" ? null : Number(text));

function useChange(account: Account, guarantee: string, max: string, weight: string) {
  const change: Record<string, unknown> = {};
  if (amount(guarantee) !== account.guarantee.gpu) change.guarantee = { ...account.guarantee, gpu: amount(guarantee) ?? 0 };
  if (amount(max) !== account.max.gpu) {
    const { gpu: _gpu, ...rest } = account.max, to = amount(max);
    change.max = to === undefined || to === null ? rest : { ...rest, gpu: to };
  }
  if (Number(weight) !== account.weight) change.weight = Number(weight);
  return change;
}

function Names({ what, list }: { what: string; list: Moved[] }) {
  if (list.length === 0) return null;
  return <li>{what}: {list.slice(0, 12).map((j) => <a key={j.job} class="chip" href={href(`jobs/${j.job}`)}>{j.name || j.job} ({j.account})</a>)}{list.length > 12 && ` and ${list.length - 12} more`}</li>;
}

function Edit({ account, again }: { account: Account; again: () => void }) {
  const [guarantee, setGuarantee] = useState(String(account.guarantee.gpu ?? "")), [max, setMax] = useState(String(account.max.gpu ?? "")), [weight, setWeight] = useState(String(account.weight));
  const [preview, setPreview] = useState<Preview>(), [error, setError] = useState<Error>(), [busy, setBusy] = useState(false);
  const change = useChange(account, guarantee, max, weight), any = Object.keys(change).length > 0;
  const path = `/v1/accounts/${encodeURIComponent(account.name)}`, late = useDebounced(any ? JSON.stringify(change) : "", 300);
  useEffect(() => {
    setPreview(undefined);
    setError(undefined);
    if (!late) return;
    const abort = new AbortController();
    Promise.all([
      send<{ accounts: { starts: Moved[]; displaces: Moved[] } }>("POST", "/v1/whatif", { accounts: [{ name: account.name, ...JSON.parse(late) }] }, undefined, abort.signal),
      send<{ floors: Floor[]; carried?: boolean; detail?: string }>("PATCH", `${path}?dry_run=true`, JSON.parse(late), { "If-Match": "*" }, abort.signal),
    ]).then(([moved, floors]) => setPreview({ ...moved!.accounts, floors: floors!.floors, carried: floors!.carried !== false, detail: floors!.detail }),
      (e) => { if (e.name !== "AbortError") setError(e); });
    return () => abort.abort();
  }, [late, account.name]);
  async function save(force: boolean) {
    setBusy(true);
    try {
      const tag = (await call("GET", path)).headers.get("ETag") ?? "*";
      await send("PATCH", path, { ...change, ...(force && { force: true }) }, { "If-Match": tag });
      again();
    } catch (e) { setError(e as Error); }
    setBusy(false);
  }
  const none = preview && preview.starts.length + preview.displaces.length + preview.floors.length === 0;
  return (
    <Card title={`Quota of ${account.name}`} wide more={<button type="button" onClick={() => refine({ edit: undefined })}>Close</button>}>
      <div class="fields">
        <label class="field"><span>Guarantee, GPUs</span><input inputMode="decimal" value={guarantee} placeholder="0" onInput={(e) => setGuarantee(e.currentTarget.value)} /></label>
        <label class="field"><span>Max, GPUs</span><input inputMode="decimal" value={max} placeholder="none" onInput={(e) => setMax(e.currentTarget.value)} /></label>
        <label class="field"><span>Weight</span><input inputMode="decimal" value={weight} onInput={(e) => setWeight(e.currentTarget.value)} /></label>
      </div>
      <div aria-live="polite">
        {error && <Trouble error={error} />}
        {!any ? <p class="legend">Change a number to see who would gain and who would lose.</p> : !preview ? !error && <p class="legend" aria-busy="true">Asking the scheduler…</p> : (
          <>
            {preview.detail && <Trouble error={new Error(preview.detail)} />}
            {none && <p class="legend">Nobody's job would start or yield at once, and no floor would shrink.</p>}
            <ul class="reasons plain">
              <Names what="Would start at once" list={preview.starts} />
              <Names what="Would have to yield" list={preview.displaces} />
              {preview.floors.map((f) => <li key={f.account + f.resource}>The floor of {f.account} would go from {gpus(f.from)} to {gpus(f.to)} {f.resource}.</li>)}
            </ul>
            {preview.carried ? <button type="button" class="main" disabled={busy} onClick={() => save(false)}>Save</button>
              : who.value?.role === "owner" && <button type="button" class="danger" disabled={busy} onClick={() => save(true)}>Save all the same</button>}
          </>
        )}
      </div>
    </Card>
  );
}

function Tree({ rows, edits }: { rows: Row[]; edits: (a: Account) => boolean }) {
  const shown = rows.slice(0, 100), quotas = useQuotas(shown.map((r) => r.name));
  const most = Math.max(1, ...Object.values(quotas).map((q) => Math.max(q.floor.gpu ?? 0, q.held.gpu ?? 0)));
  return (
    <table class="tree">
      <thead><tr><th>Account</th><th class="n">Guarantee</th><th class="n">Floor</th><th class="n">Max</th><th class="n">Held</th><th class="n">Borrowed</th><th class="wide"><span class="hide">As a bar</span></th></tr></thead>
      <tbody>{shown.map((r) => {
        const q = quotas[r.name];
        return (
          <tr key={r.name}>
            <td class={`d${Math.min(r.depth, 8)}`}><a href={href("jobs", { account: r.name })}>{r.name}</a>{edits(r) && <> <button type="button" class="small" aria-label={`Edit the quota of ${r.name}`} onClick={() => refine({ edit: r.name })}>edit</button></>}</td>
            <td class="n">{gpus(r.guarantee.gpu)}</td><td class="n">{q ? gpus(q.floor.gpu) : "…"}</td><td class="n">{gpus(r.max.gpu)}</td>
            <td class="n">{q ? gpus(q.held.gpu ?? 0) : "…"}</td><td class="n">{q ? gpus(q.borrowed_gpu) : "…"}</td>
            <td>{q && <Bar label={r.name} of={most} parts={[{ value: q.inside_gpu, kind: "inside", name: "inside" }, { value: q.borrowed_gpu, kind: "borrowed", name: "borrowed" }, { value: Math.max(0, (q.floor.gpu ?? 0) - q.inside_gpu), kind: "unused", name: "floor, not used" }]} />}</td>
          </tr>
        );
      })}</tbody>
    </table>
  );
}

/** Of the account that is chosen; without one, of one's own, or of the cluster. */
function Use({ accounts }: { accounts: Account[] }) {
  const own = who.value?.account ?? "", of = route.value.query.get("of") ?? own, there = accounts.some((a) => a.name === of);
  return (
    <Over title={`Use of ${there ? of : own || "the cluster"} over time`} query={{ name: there ? of : own || undefined, since: since() }} plots={[...USE, WORK[0]]} none="Nothing is known of this time."
      more={<label>Account <select value={there ? of : ""} onChange={(e) => refine({ of: e.currentTarget.value || undefined })}>{!own && <option value="">the cluster</option>}{accounts.map((a) => <option key={a.name}>{a.name}</option>)}</select></label>} />
  );
}

export function QuotaPage() {
  const accounts = useGet<{ accounts: Account[] }>("/v1/accounts", false), at = route.value.query.get("edit");
  const account = accounts.value?.accounts.find((a) => a.name === at);
  // Nobody sets its own account's quota: that is for those above.
  const edits = (a: Account) => mayAdmin() && a.name !== who.value?.account;
  return (
    <>
      <h1>Quota</h1>
      <div class="cards">
        {account && edits(account) && <Edit key={`${account.name} ${JSON.stringify(account)}`} account={account} again={accounts.again} />}
        <Card title="GPUs by account" wide more={<p class="legend"><span class="k-inside">inside the floor</span> <span class="k-borrowed">borrowed</span> <span class="k-unused">floor, not used</span></p>}>
          <Loaded data={accounts}>{(l) => l.accounts.length === 0 ? <Empty>There are no accounts yet. <code>stint account create</code> makes one.</Empty> : <><Tree rows={tree(l.accounts)} edits={edits} />{l.accounts.length > 100 && <p class="legend">The first 100 of {l.accounts.length}.</p>}</>}</Loaded>
        </Card>
        <Use accounts={accounts.value?.accounts ?? []} />
      </div>
    </>
  );
}
