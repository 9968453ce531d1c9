// Who has what? The tree of accounts with floor, max, held and borrowed.
import { useEffect, useState } from "preact/hooks";
import { get } from "../api";
import { changed } from "../live";
import { href } from "../route";
import type { Account, Quota } from "../types";
import { Bar, Card, Empty, gpus, Loaded } from "../ui";
import { useGet } from "../use";

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

function Tree({ rows }: { rows: Row[] }) {
  const shown = rows.slice(0, 100), quotas = useQuotas(shown.map((r) => r.name));
  const most = Math.max(1, ...Object.values(quotas).map((q) => Math.max(q.floor.gpu ?? 0, q.held.gpu ?? 0)));
  return (
    <table class="tree">
      <thead><tr><th>Account</th><th class="n">Guarantee</th><th class="n">Floor</th><th class="n">Max</th><th class="n">Held</th><th class="n">Borrowed</th><th class="wide"><span class="hide">As a bar</span></th></tr></thead>
      <tbody>{shown.map((r) => {
        const q = quotas[r.name];
        return (
          <tr key={r.name}>
            <td class={`d${Math.min(r.depth, 8)}`}><a href={href("jobs", { account: r.name })}>{r.name}</a></td>
            <td class="n">{gpus(r.guarantee.gpu)}</td><td class="n">{q ? gpus(q.floor.gpu) : "…"}</td><td class="n">{gpus(r.max.gpu)}</td>
            <td class="n">{q ? gpus(q.held.gpu ?? 0) : "…"}</td><td class="n">{q ? gpus(q.borrowed_gpu) : "…"}</td>
            <td>{q && <Bar label={r.name} of={most} parts={[{ value: q.inside_gpu, kind: "inside", name: "inside" }, { value: q.borrowed_gpu, kind: "borrowed", name: "borrowed" }, { value: Math.max(0, (q.floor.gpu ?? 0) - q.inside_gpu), kind: "unused", name: "floor, not used" }]} />}</td>
          </tr>
        );
      })}</tbody>
    </table>
  );
}

export function QuotaPage() {
  const accounts = useGet<{ accounts: Account[] }>("/v1/accounts", false);
  return (
    <>
      <h1>Quota</h1>
      <Card title="GPUs by account" wide more={<p class="legend"><span class="k-inside">inside the floor</span> <span class="k-borrowed">borrowed</span> <span class="k-unused">floor, not used</span></p>}>
        <Loaded data={accounts}>{(l) => l.accounts.length === 0 ? <Empty>There are no accounts yet. <code>stint account create</code> makes one.</Empty> : <><Tree rows={tree(l.accounts)} />{l.accounts.length > 100 && <p class="legend">The first 100 of {l.accounts.length}.</p>}</>}</Loaded>
      </Card>
    </>
  );
}
