// Will it start, and what will it cost? A form beside the document it writes. stintd tries every change out as it is typed.
import { useEffect, useRef, useState } from "preact/hooks";
import { get, mayChange, send, who } from "../api";
import { href, route } from "../route";
import { Axis, Reasons, start } from "../start";
import type { Job, Why } from "../types";
import { Card, Empty, money, Trouble } from "../ui";
import { useDebounced, useGet } from "../use";
import { yaml } from "../yaml";

type Form = {
  account: string; name: string; command: string; image: string; shape: string; gpus: string; tasks: string; type: string; limit: string;
  priority: string; on_preempt: string; pool: string; topology: string;
};
const BLANK: Form = {
  account: "", name: "", command: "", image: "", shape: "gpus", gpus: "1", tasks: "1", type: "", limit: "1h", priority: "", on_preempt: "", pool: "", topology: "",
};

function document_(f: Form): string {
  const text = f.command.trim();
  return yaml({
    name: f.name.trim(), account: f.account, image: f.image,
    size: f.shape === "gpus" ? undefined : f.shape,
    gpus: f.shape === "gpus" ? Number(f.gpus) : undefined,
    tasks: Number(f.tasks) > 1 ? Number(f.tasks) : undefined,
    type: f.type, limit: f.limit.trim(), priority: f.priority, on_preempt: f.on_preempt, pool: f.pool,
    topology: f.topology ? { require: f.topology } : undefined,
    command: text && !text.includes("\n") ? ["sh", "-c", text] : undefined,
    script: text.includes("\n") ? text : undefined,
  });
}

/** What would become of the document. Undefined while nothing was answered. */
function useDryRun(text: string) {
  const [state, set] = useState<{ why?: Why; error?: Error; of?: string }>({});
  const late = useDebounced(text, 300), turn = useRef(0);
  useEffect(() => {
    const mine = ++turn.current;
    if (!late.trim()) { set({}); return; }
    send<Why>("POST", "/v1/jobs?dry_run=true", late).then(
      (why) => { if (turn.current === mine) set({ why, of: late }); },
      (error) => { if (turn.current === mine) set({ error, of: late }); },
    );
  }, [late]);
  return { ...state, fresh: state.of === text };
}

function Field({ label, children }: { label: string; children: preact.ComponentChildren }) {
  return <label class="field"><span>{label}</span>{children}</label>;
}

export function Submit() {
  const [form, setForm] = useState<Form>(BLANK), [edited, setEdited] = useState<string>(), [error, setError] = useState<Error>(), [busy, setBusy] = useState(false);
  const accounts = useGet<{ accounts: { name: string }[] }>("/v1/accounts", false), types = useGet<{ types: { name: string }[] }>("/v1/types", false);
  const images = useGet<{ images: { name: string }[] }>("/v1/images", false), pools = useGet<{ pools: { name: string }[] }>("/v1/pools", false);
  const sizes = useGet<{ sizes: { name: string; size: { about?: string } }[] }>("/v1/sizes", false);
  const like = route.value.query.get("like");
  // Who stands at the cluster has no account of its own.
  const first = who.value?.account ? "" : accounts.value?.accounts[0]?.name ?? "";
  const text = edited ?? (who.value?.account || first ? document_({ ...form, account: form.account || first }) : ""), dry = useDryRun(text);
  const put = (key: keyof Form) => (e: { currentTarget: HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement }) => {
    setEdited(undefined);
    setForm({ ...form, [key]: e.currentTarget.value });
  };

  useEffect(() => {
    if (!like) return;
    get<Job>(`/v1/jobs/${encodeURIComponent(like)}`).then((job) => {
      const { user: _user, ...spec } = job.spec;
      setEdited(`${JSON.stringify(spec, null, 2)}\n`);
    }, setError);
  }, [like]);
  async function submit(e: Event) {
    e.preventDefault();
    setBusy(true);
    try {
      const made = await send<{ id?: string; array?: string }>("POST", "/v1/jobs", text, { "Idempotency-Key": crypto.randomUUID() });
      location.hash = made?.id ? href(`jobs/${made.id}`) : href("jobs");
    } catch (problem) {
      setError(problem as Error);
      setBusy(false);
    }
  }
  if (!mayChange()) return <><h1>Submit</h1><Empty>Your role sees jobs and submits none.</Empty></>;
  return (
    <>
      <h1>Submit a job</h1>
      <form class="submit" onSubmit={submit}>
        <Card title="The job">
          <Field label="Name"><input value={form.name} onInput={put("name")} maxLength={63} /></Field>
          <Field label="Command"><textarea rows={4} value={form.command} onInput={put("command")} placeholder="python train.py --epochs 3" spellcheck={false} /></Field>
          <div class="fields">
            <Field label="Account"><select value={form.account || first} onChange={put("account")}>{who.value?.account && <option value="">yours</option>}{accounts.value?.accounts.map((a) => <option key={a.name}>{a.name}</option>)}</select></Field>
            <Field label="Image"><select value={form.image} onChange={put("image")}><option value="">none</option>{images.value?.images.map((i) => <option key={i.name}>{i.name}</option>)}</select></Field>
            <Field label="Size"><select value={form.shape} onChange={put("shape")}><option value="gpus">whole GPUs</option>{sizes.value?.sizes.map((s) => <option key={s.name} value={s.name} title={s.size.about}>{s.name}</option>)}</select></Field>
            {form.shape === "gpus" && <Field label="GPUs per task"><input type="number" min={0} max={16} value={form.gpus} onInput={put("gpus")} /></Field>}
            <Field label="Tasks"><input type="number" min={1} max={4096} value={form.tasks} onInput={put("tasks")} /></Field>
            <Field label="GPU type"><select value={form.type} onChange={put("type")}><option value="">any</option>{types.value?.types.map((t) => <option key={t.name}>{t.name}</option>)}</select></Field>
            <Field label="Time limit"><input value={form.limit} onInput={put("limit")} placeholder="90m, 4h, 2d" /></Field>
            <Field label="Priority"><select value={form.priority} onChange={put("priority")}><option value="">normal</option><option>low</option><option>high</option></select></Field>
            <Field label="If preempted"><select value={form.on_preempt} onChange={put("on_preempt")}><option value="">the pool's way</option><option>checkpoint</option><option>pause</option><option>requeue</option><option>cancel</option></select></Field>
            <Field label="Pool"><select value={form.pool} onChange={put("pool")}><option value="">any</option>{pools.value?.pools.map((p) => <option key={p.name}>{p.name}</option>)}</select></Field>
            <Field label="Topology"><select value={form.topology} onChange={put("topology")}><option value="">anywhere</option><option>nvlink</option><option>rack</option><option>block</option><option>zone</option></select></Field>
          </div>
        </Card>
        <div class="stack">
          <Card title="What would happen" more={<button type="submit" class="main" disabled={busy || !!dry.error || !dry.why}>Submit</button>}>
            {error && <Trouble error={error} />}
            <div aria-live="polite" class={dry.fresh ? "" : "stale"}>
              {dry.error ? <Trouble error={dry.error} /> : !dry.why ? <Empty>Say what the job needs.</Empty> : (
                <>
                  <p class="big">{dry.why.state !== "pending" ? "It would start at once." : start(dry.why) === "not known" ? "It would wait; no start can be foreseen." : `It would start ${start(dry.why)}.`}</p>
                  <p class="legend">{dry.why.cost_most ? <>It costs at most {money(dry.why.cost_most, "")} if it runs for its whole limit.</> : "Without a time limit nobody can say what it costs."}</p>
                  {dry.why.state === "pending" && dry.why.start_estimate && <Axis of={dry.why} most={1.5 * (new Date(dry.why.start_latest ?? dry.why.start_estimate).getTime() - Date.now())} />}
                  <Reasons of={dry.why.reasons} />
                </>
              )}
            </div>
          </Card>
          <Card title="The same as a file" more={edited !== undefined ? <button type="button" onClick={() => setEdited(undefined)}>Back to the form</button> : <small>for `stint submit -f`</small>}>
            <textarea class="code" aria-label="The job as YAML" rows={16} spellcheck={false} value={text} onInput={(e) => setEdited(e.currentTarget.value)} />
            {edited !== undefined && <p class="legend">The file was edited: the form no longer counts.</p>}
          </Card>
        </div>
      </form>
    </>
  );
}
