// What happens, as it happens. Pages ask for their data again when something of theirs has changed: `changed` counts up,
// at most once a second, so that a storm of events does not become a storm of requests.
import { effect, signal } from "@preact/signals";
import { who } from "./api";
import { follow, type Message } from "./follow";

export const live = signal(false);
export const changed = signal(0);
/** The latest happenings, newest first, for the home page. */
export const recent = signal<{ at: string; kind: string; job?: string; name?: string; account?: string; state?: string; node?: string; reason?: string }[]>([]);

const LEAST_MS = 1000;
let due: ReturnType<typeof setTimeout> | undefined;

function hear(m: Message) {
  if (m.kind === "state") {
    if (m.live && !live.value) changed.value++; // what was missed meanwhile
    live.value = m.live;
    return;
  }
  if (m.data && typeof m.data === "object" && "at" in m.data)
    recent.value = [m.data as (typeof recent.value)[number], ...recent.value].slice(0, 50);
  due ??= setTimeout(() => { due = undefined; changed.value++; }, LEAST_MS);
}

export function begin() {
  let again: (() => void) | undefined;
  const start = () => {
    try {
      const worker = new SharedWorker("/console/stream.js", { type: "module", name: "stint" });
      worker.port.onmessage = (e) => hear(e.data);
      worker.port.start();
      addEventListener("pagehide", () => worker.port.postMessage("bye"));
      again = () => worker.port.postMessage("again");
    } catch {
      again = follow(hear).again;
    }
  };
  effect(() => {
    if (!who.value) return;
    if (again) again();
    else start();
  });
}
