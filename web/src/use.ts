// Data of a page: asked for when the page opens, when its question changes and when something has happened. The last
// answer stays while a new one comes, and when it does not come.
import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "./api";
import { changed } from "./live";

export type Data<T> = { value?: T; error?: Error; at?: number; busy: boolean };

export function useGet<T>(path: string | null, lives = true): Data<T> & { again: () => void } {
  const [data, set] = useState<Data<T>>({ busy: path !== null });
  const [turn, again] = useState(0);
  const asked = useRef<string | null>(null);
  const tick = lives ? changed.value : 0;

  useEffect(() => {
    if (path === null) return;
    const abort = new AbortController();
    if (asked.current !== path) set({ busy: true });
    asked.current = path;
    get<T>(path, abort.signal).then(
      (value) => set({ value, at: Date.now(), busy: false }),
      (error) => { if (error.name !== "AbortError") set((d) => ({ ...d, error, busy: false })); },
    );
    return () => abort.abort();
  }, [path, turn, tick]);
  return { ...data, again: () => again((n) => n + 1) };
}

export function useDebounced<T>(value: T, ms: number): T {
  const [late, set] = useState(value);
  useEffect(() => {
    const t = setTimeout(() => set(value), ms);
    return () => clearTimeout(t);
  }, [value, ms]);
  return late;
}
