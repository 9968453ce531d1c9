// Follows /v1/events and says what comes, and whether it is live. EventSource connects again by itself after a break,
// but not after an answer such as 401: that is tried again here, slowly.
export type Message =
  | { kind: "state"; live: boolean }
  | { kind: "event"; name: string; data: unknown };

const NAMES = [
  "queued", "start", "resume", "class", "hold", "unhold", "notify", "spare", "checkpoint", "pause", "requeue", "end", "stop", "drain",
  "floor", "node", "gpu", "budget", "anomaly", "cap", "incident", "data", "booking", "deadline", "neighbour", "retry", "reset", "overflow",
];

export function follow(tell: (m: Message) => void) {
  let source: EventSource | null = null, timer: ReturnType<typeof setTimeout> | undefined, wait = 1000;

  function open() {
    clearTimeout(timer);
    source?.close();
    source = new EventSource("/v1/events");
    source.onopen = () => { wait = 1000; tell({ kind: "state", live: true }); };
    source.onerror = () => {
      tell({ kind: "state", live: false });
      if (source?.readyState === EventSource.CLOSED) {
        timer = setTimeout(open, wait);
        wait = Math.min(wait * 2, 30000);
      }
    };
    for (const name of NAMES)
      source.addEventListener(name, (e) => {
        let data: unknown = null;
        try { data = JSON.parse((e as MessageEvent).data); } catch { /* a comment, or nothing */ }
        tell({ kind: "event", name, data });
      });
  }
  open();
  return { again: () => { wait = 1000; open(); } };
}
