// Where one is: everything behind the #, so that a link is a view. "#/jobs?state=pending" is {page: "jobs", query: …}.
import { signal } from "@preact/signals";

export type Route = { path: string[]; query: URLSearchParams };

function read(): Route {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  return { path: path.split("/").filter(Boolean).map(decodeURIComponent), query: new URLSearchParams(query ?? "") };
}

export const route = signal<Route>(read());
addEventListener("hashchange", () => { route.value = read(); });

export function href(path: string, query: Record<string, string | undefined> = {}): string {
  const q = new URLSearchParams();
  for (const [k, v] of Object.entries(query)) if (v) q.set(k, v);
  const text = q.toString();
  return `#/${path}${text ? `?${text}` : ""}`;
}

/** Changes some of the query and stays on the page. */
export function refine(change: Record<string, string | undefined>) {
  const q = new URLSearchParams(route.value.query);
  for (const [k, v] of Object.entries(change)) if (v) q.set(k, v); else q.delete(k);
  const text = q.toString();
  location.replace(`#/${route.value.path.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`);
}
