// Pieces of every page.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Data } from "./use";

/* ---- numbers and times, as people say them ---- */

export const number = (n: number, digits = 0) => n.toLocaleString("en", { maximumFractionDigits: digits });
export const gpus = (n: number | undefined | null) => (n === undefined || n === null ? "–" : number(n, 3));

export function money(text: string | null | undefined, currency = "USD") {
  if (text === null || text === undefined) return "–";
  const value = Number(text);
  return `${value.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 })} ${currency}`;
}

export function span(ms: number): string {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 60) return `${s} s`;
  const m = Math.floor(s / 60), h = Math.floor(m / 60), d = Math.floor(h / 24);
  if (m < 60) return `${m} min`;
  if (h < 48) return `${h} h ${m % 60 ? `${m % 60} min` : ""}`.trim();
  return `${d} d ${h % 24 ? `${h % 24} h` : ""}`.trim();
}

export const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const exact = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

/** How long ago, or until when; the moment itself on hover. */
export function Time({ at }: { at: string | null | undefined }) {
  const [, tick] = useState(0);
  useEffect(() => {
    const t = setInterval(() => tick((n) => n + 1), 10000);
    return () => clearInterval(t);
  }, []);
  if (!at) return <>–</>;
  const date = new Date(at), delta = date.getTime() - Date.now();
  return (
    <time dateTime={at} title={`${exact.format(date)} (${zone})`}>
      {delta > 0 ? `in ${span(delta)}` : `${span(-delta)} ago`}
    </time>
  );
}

/** [0, 1, 2, 5] as "0–2, 5". */
export function ranges(list: number[]): string {
  const out: string[] = [];
  for (let i = 0, j; i < list.length; i = j) {
    for (j = i + 1; j < list.length && list[j] === list[j - 1] + 1; j++);
    out.push(j - i > 1 ? `${list[i]}–${list[j - 1]}` : `${list[i]}`);
  }
  return out.join(", ");
}

/* ---- states ---- */

const MARK: Record<string, string> = {
  pending: "◷", running: "▶", notified: "▶", checkpointing: "⇩", paused: "⏸", stopping: "◼", done: "✓", failed: "✕",
  timeout: "⌛", cancelled: "–", ready: "✓", draining: "⇩", removed: "–",
  testing: "◔", suspect: "?", repair: "⚒", retired: "▭", pass: "✓", fail: "✕", skip: "–", confirmed: "!", acting: "…", held: "✓", unsolved: "✕",
  unexplained: "?", over: "–",
  starting: "◷", waiting: "◷", degraded: "!", updating: "⇩", failing: "✕", ending: "◼", idle: "–", removing: "◼", sick: "✕", leaving: "⇩", delivered: "✓", dropped: "–",
};

export function State({ of }: { of: string }) {
  return <span class={`state s-${of}`}><i aria-hidden="true">{MARK[of] ?? "•"}</i>{of}</span>;
}

/* ---- what a page shows while it has nothing ---- */

export function Trouble({ error, again, stale }: { error: Error; again?: () => void; stale?: boolean }) {
  return (
    <div class="trouble" role="alert">
      <p>{error.message}{stale && " What you see below is the last answer."}</p>
      {again && <button type="button" onClick={again}>Try again</button>}
    </div>
  );
}

export function Loaded<T>({ data, children, rows = 4 }: {
  data: Data<T> & { again: () => void }; rows?: number; children: (value: T) => ComponentChildren;
}) {
  return (
    <>
      {data.error && <Trouble error={data.error} again={data.again} stale={data.value !== undefined} />}
      {data.value !== undefined ? children(data.value) : data.busy && (
        <div class="skeleton" aria-busy="true" aria-label="Loading">{Array.from({ length: rows }, (_, i) => <i key={i} />)}</div>
      )}
    </>
  );
}

export const Empty = ({ children }: { children: ComponentChildren }) => <div class="empty">{children}</div>;

export function Card({ title, more, children, wide }: { title: string; more?: ComponentChildren; wide?: boolean; children: ComponentChildren }) {
  return (
    <section class={wide ? "card wide" : "card"} tabIndex={wide ? 0 : undefined} aria-label={title}>
      <header><h2>{title}</h2>{more}</header>
      {children}
    </section>
  );
}

/** Parts of a whole as one bar; the same as words for those who do not see it. */
export function Bar({ parts, of, label }: { parts: { value: number; kind: string; name: string }[]; of: number; label: string }) {
  const whole = Math.max(of, ...[parts.reduce((s, p) => s + p.value, 0)], 1e-9);
  return (
    <svg class="bar" viewBox="0 0 100 4" preserveAspectRatio="none" role="img" aria-label={`${label}: ${parts.map((p) => `${p.name} ${gpus(p.value)}`).join(", ")} of ${gpus(of)}`}>
      <rect class="bar-rest" width="100" height="4" />
      {parts.map((p, i) => {
        const x = parts.slice(0, i).reduce((s, q) => s + q.value, 0);
        return <rect key={p.kind} class={`bar-${p.kind}`} x={(100 * x) / whole} width={(100 * p.value) / whole} height="4" />;
      })}
    </svg>
  );
}

/* ---- dialogue for what hurts ---- */

/** With `note` it also asks for a line of text, which may stay empty. */
export function Confirm({ ask, yes, note, danger = true, onYes, onNo }: { ask: string; yes: string; note?: string; danger?: boolean; onYes: (text: string) => Promise<void>; onNo: () => void }) {
  const box = useRef<HTMLDialogElement>(null);
  const [busy, setBusy] = useState(false), [text, setText] = useState("");
  const [error, setError] = useState<Error>();
  useEffect(() => { box.current?.showModal(); }, []);
  return (
    <dialog ref={box} onCancel={(e) => { e.preventDefault(); onNo(); }} aria-label={ask}>
      <p>{ask}</p>
      {note && <label class="field"><span>{note}</span><input value={text} maxLength={200} onInput={(e) => setText(e.currentTarget.value)} /></label>}
      {error && <Trouble error={error} />}
      <div class="menu">
        <button type="button" onClick={onNo} disabled={busy}>Keep</button>
        <button type="button" class={danger ? "danger" : "main"} disabled={busy} onClick={() => {
          setBusy(true);
          onYes(text).catch((e) => { setError(e); setBusy(false); });
        }}>{yes}</button>
      </div>
    </dialog>
  );
}
