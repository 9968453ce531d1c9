// Saved views: addresses of a page under names of one's own, kept by stintd so that they are there in every browser. They
// are the person's; nobody else reads them.
import { useEffect, useRef, useState } from "preact/hooks";
import { seg, send } from "./api";
import { route } from "./route";
import type { View } from "./types";
import { Trouble } from "./ui";
import { useGet } from "./use";

function Save({ names, onSave, onNo }: { names: string[]; onSave: (name: string) => Promise<void>; onNo: () => void }) {
  const box = useRef<HTMLDialogElement>(null);
  const [name, setName] = useState(""), [busy, setBusy] = useState(false), [error, setError] = useState<Error>();
  useEffect(() => { box.current?.showModal(); }, []);
  const there = names.includes(name.trim());
  return (
    <dialog ref={box} onCancel={(e) => { e.preventDefault(); onNo(); }} aria-label="Save this view">
      <form onSubmit={(e) => {
        e.preventDefault();
        setBusy(true);
        onSave(name.trim()).catch((e) => { setError(e); setBusy(false); });
      }}>
        <label class="field"><span>Name of the view</span><input required maxLength={100} value={name} onInput={(e) => setName(e.currentTarget.value)} /></label>
        <p class="soft">{there ? "You have a view of this name; it is replaced." : "Only you see it. It keeps the filters above."}</p>
        {error && <Trouble error={error} />}
        <div class="menu">
          <button type="button" onClick={onNo} disabled={busy}>Do not save</button>
          <button type="submit" disabled={busy || !name.trim()}>{there ? "Replace" : "Save"}</button>
        </div>
      </form>
    </dialog>
  );
}

/** For a page whose filters are in the address: choose a view, save this one, remove it. */
export function Views({ page }: { page: string }) {
  const data = useGet<{ views: View[] }>("/v1/views", false);
  const [saving, setSaving] = useState(false), [error, setError] = useState<Error>();
  const views = data.value?.views.filter((v) => v.page === page) ?? [];
  const query = route.value.query.toString(), here = views.find((v) => v.query === query);

  async function save(name: string) {
    await send("PUT", `/v1/views/${seg(name)}`, { page, query });
    setSaving(false);
    data.again();
  }
  async function remove(view: View) {
    setError(undefined);
    try {
      await send("DELETE", `/v1/views/${seg(view.name)}`);
    } catch (e) {
      setError(e as Error);
    }
    data.again();
  }
  return (
    <>
      <span class="views">
        {views.length > 0 && (
          <label>View <select value={here ? here.name : ""} onChange={(e) => {
            const view = views.find((v) => v.name === e.currentTarget.value);
            if (view) location.hash = `#/${page}?${view.query}`;
          }}>
            <option value="" disabled={!here}>{here ? "" : "unsaved"}</option>
            {views.map((v) => <option key={v.name} value={v.name}>{v.name}</option>)}
          </select></label>
        )}
        {here
          ? <button type="button" onClick={() => remove(here)}>Remove view</button>
          : query !== "" && <button type="button" onClick={() => setSaving(true)}>Save view…</button>}
      </span>
      {(error ?? data.error) && <Trouble error={(error ?? data.error) as Error} again={data.again} />}
      {saving && <Save names={views.map((v) => v.name)} onSave={save} onNo={() => setSaving(false)} />}
    </>
  );
}
