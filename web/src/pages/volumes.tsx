// Volumes of an account: how full they are, who shares them, and what one may do about it. Files are copied with `stint cp`.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { mayChange, seg, send, who } from "../api";
import { href, refine, route } from "../route";
import { Bar, Card, Confirm, Empty, Loaded, number, Time, Trouble } from "../ui";
import { useGet } from "../use";

type Volume = { name: string; account: string; below: string; size_mib: number; about: string; created?: string; by?: string; used_bytes?: number; files?: number; files_max?: number };
const BELOW: Record<string, string> = { none: "its own jobs", read: "accounts below may read", write: "accounts below may write" };

export const size = (mib: number) => mib >= 1048576 ? `${number(mib / 1048576, 2)} TiB` : mib >= 1024 ? `${number(mib / 1024, 2)} GiB` : `${number(mib, 1)} MiB`;

/** Whose things are shown: an account of one's own subtree. */
export function Whose({ of, children }: { of: string; children: (account: string) => ComponentChildren }) {
  const accounts = useGet<{ accounts: { name: string }[] }>("/v1/accounts", false);
  return (
    <Loaded data={accounts} rows={2}>{(l) => {
      const asked = route.value.query.get("account"), names = l.accounts.map((a) => a.name);
      const at = names.find((n) => n === asked) ?? names.find((n) => n === who.value?.account) ?? names[0];
      if (!at) return <Empty>There is no account yet.</Empty>;
      return (
        <>
          <form class="filters" onSubmit={(e) => e.preventDefault()}>
            <label>Account <select aria-label={`Account whose ${of} are shown`} value={at} onChange={(e) => refine({ account: e.currentTarget.value, name: undefined })}>{names.map((n) => <option key={n}>{n}</option>)}</select></label>
          </form>
          {children(at)}
        </>
      );
    }}</Loaded>
  );
}

function NewVolume({ account, again }: { account: string; again: () => void }) {
  const [error, setError] = useState<Error>(), [said, setSaid] = useState<string>();
  function submit(e: SubmitEvent) {
    e.preventDefault();
    const form = e.currentTarget as HTMLFormElement, f = Object.fromEntries([...new FormData(form)].map(([k, v]) => [k, String(v).trim()]).filter(([, v]) => v !== ""));
    const { name, ...body } = f;
    setError(undefined);
    send("PUT", `/v1/accounts/${seg(account)}/volumes/${seg(name!)}?make=true`, body).then(() => { setSaid(`Volume ${name} is made; jobs get it with --volume ${name}:/PATH.`); form.reset(); again(); }, setError);
  }
  return (
    <Card title="A new volume" wide>
      {error && <Trouble error={error} />}
      <form class="fields" onSubmit={submit}>
        <label class="field"><span>Name</span><input name="name" required maxLength={48} /></label>
        <label class="field"><span>Size</span><input name="size" required placeholder="200Gi" /></label>
        <label class="field"><span>Who shares it</span><select name="below">{Object.entries(BELOW).map(([k, v]) => <option key={k} value={k}>{v}</option>)}</select></label>
        <label class="field"><span>What is in it</span><input name="about" maxLength={200} /></label>
        <div class="field"><span>&nbsp;</span><button type="submit" class="main">Make the volume</button></div>
      </form>
      {said && <p class="once" role="status">{said}</p>}
    </Card>
  );
}

function One({ account, name, again }: { account: string; name: string; again: () => void }) {
  const path = `/v1/accounts/${seg(account)}/volumes/${seg(name)}`, data = useGet<Volume>(path, false);
  const [asking, setAsking] = useState(false), [error, setError] = useState<Error>();
  return (
    <Card title={`Volume ${name}`} wide more={<a href={href("team", { tab: "volumes", account })}>Close</a>}>
      {error && <Trouble error={error} />}
      <Loaded data={data}>{(v) => {
        const used = v.used_bytes === undefined ? undefined : v.used_bytes / 1048576;
        return (
          <>
            <dl>
              <div><dt>Used</dt><dd>{used === undefined ? "it is being counted" : <>{size(used)} of {size(v.size_mib)}, {number(v.files ?? 0)} of {number(v.files_max ?? 0)} files</>}</dd></div>
              {v.about && <div><dt>What</dt><dd>{v.about}</dd></div>}
              <div><dt>Shared</dt><dd>{BELOW[v.below] ?? v.below}</dd></div>
              {v.created && <div><dt>Made</dt><dd><Time at={v.created} />{v.by && <> by {v.by}</>}</dd></div>}
            </dl>
            {used !== undefined && <Bar of={v.size_mib} label={`Volume ${name}, in MiB`} parts={[{ value: used, kind: "inside", name: "used" }]} />}
            {mayChange() && <div class="menu">
              <form class="filters" onSubmit={(e) => { e.preventDefault(); const f = new FormData(e.currentTarget as HTMLFormElement); setError(undefined); send("PUT", path, { size: String(f.get("size")), below: String(f.get("below")) }).then(() => { data.again(); again(); }, setError); }}>
                <label>Size <input name="size" value={`${v.size_mib}Mi`} /></label>
                <label>Shared <select name="below" value={v.below}>{Object.entries(BELOW).map(([k, t]) => <option key={k} value={k}>{t}</option>)}</select></label>
                <button type="submit">Change</button>
              </form>
              <button type="button" class="danger" onClick={() => setAsking(true)}>Remove…</button>
            </div>}
            {asking && <Confirm ask={`Remove the volume ${name} with all that is in it? Nobody can bring it back.`} yes="Remove" onNo={() => setAsking(false)} onYes={async () => { await send("DELETE", path); setAsking(false); refine({ name: undefined }); again(); }} />}
          </>
        );
      }}</Loaded>
    </Card>
  );
}

function Of({ account }: { account: string }) {
  const list = useGet<{ volumes: Volume[] }>(`/v1/accounts/${seg(account)}/volumes`, false), name = route.value.query.get("name");
  return (
    <>
      <Card title={`Volumes of ${account}`} wide>
        <Loaded data={list}>{(l) => l.volumes.length === 0 ? <Empty>There is no volume yet. A volume is a folder that all jobs of the account see, on every node.</Empty> : (
          <table>
            <thead><tr><th>Volume</th><th>Of</th><th class="n">Size</th><th>Shared</th><th>What</th></tr></thead>
            <tbody>{l.volumes.map((v) => <tr key={`${v.account}/${v.name}`}><td>{v.account === account ? <a href={href("team", { tab: "volumes", account, name: v.name })}>{v.name}</a> : v.name}</td><td>{v.account || "an account above"}</td><td class="n">{size(v.size_mib)}</td><td>{BELOW[v.below] ?? v.below}</td><td class="detail">{v.about}</td></tr>)}</tbody>
          </table>
        )}</Loaded>
      </Card>
      {name && <One key={`${account}/${name}`} account={account} name={name} again={list.again} />}
      {mayChange() && <NewVolume account={account} again={list.again} />}
    </>
  );
}

export const Volumes = () => <Whose of="volumes">{(account) => <Of key={account} account={account} />}</Whose>;
