// Calls to stintd. The session's cookie goes with each by itself; what changes something carries a header that no form of
// another page can send (see src/api/session.c).
import { signal } from "@preact/signals";

export type Who = { user: string; account: string; role: string; version?: string };

/** Who is logged in; null: nobody, undefined: not known yet. */
export const who = signal<Who | null | undefined>(undefined);

/** Whether this person changes anything at all; what exactly, stintd decides. */
export const mayChange = () => who.value?.role !== "viewer" && who.value?.role !== "auditor";
export const mayAdmin = () => who.value?.role === "owner" || who.value?.role === "admin";

/** What stintd says went wrong, in its own sentence. */
export class Problem extends Error {
  constructor(readonly status: number, readonly code: string, detail: string) {
    super(detail);
  }
}

async function problem(answer: Response): Promise<Problem> {
  try {
    const doc = await answer.json();
    return new Problem(answer.status, doc.code ?? "", doc.detail ?? doc.title ?? answer.statusText);
  } catch {
    return new Problem(answer.status, "", `stintd answered ${answer.status} ${answer.statusText}`);
  }
}

/** A body that is a text is sent as YAML, of which JSON is a part; anything else as JSON. */
export async function call(method: string, path: string, body?: unknown, signal?: AbortSignal, more: Record<string, string> = {}): Promise<Response> {
  const headers: Record<string, string> = { "Stint-Console": "1", ...more };
  if (body !== undefined) headers["Content-Type"] = typeof body === "string" ? "application/yaml" : "application/json";
  let answer: Response;
  try {
    answer = await fetch(path, {
      method, headers, signal, credentials: "same-origin", cache: "no-cache",
      body: body === undefined || typeof body === "string" ? body : JSON.stringify(body),
    });
  } catch (e) {
    if ((e as Error).name === "AbortError") throw e;
    throw new Problem(0, "unreachable", "stintd does not answer. It may be restarting, or the connection is down.");
  }
  if (answer.ok) return answer;
  const p = await problem(answer);
  if (p.status === 401 && path !== "/v1/session") who.value = null;
  throw p;
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await call("GET", path, undefined, signal)).json();
}

export async function send<T>(method: string, path: string, body?: unknown, more?: Record<string, string>, signal?: AbortSignal): Promise<T | undefined> {
  const answer = await call(method, path, body, signal, more);
  return answer.status === 204 ? undefined : answer.json();
}

/** A path with its query; what is empty or undefined is left out. */
export function url(path: string, query: Record<string, string | number | boolean | string[] | undefined>): string {
  const q = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (Array.isArray(value)) value.forEach((v) => q.append(key, v));
    else if (value !== undefined && value !== "") q.set(key, String(value));
  }
  const text = q.toString();
  return text ? `${path}?${text}` : path;
}

export const seg = encodeURIComponent;
