// One event stream for all tabs: a browser has few connections to one host, and a stream takes one for good.
// A shared worker; where there are none, the page loads this file's logic itself (live.ts).
import { follow } from "./follow";

const ports = new Set<MessagePort>();
let last: unknown = { kind: "state", live: false };

function tell(message: unknown) {
  for (const port of ports) port.postMessage(message);
}

(self as unknown as SharedWorkerGlobalScope).onconnect = (e) => {
  const port = e.ports[0];
  ports.add(port);
  port.postMessage(last);
  port.onmessage = (m) => {
    if (m.data === "bye") ports.delete(port);
    if (m.data === "again") stream.again();
  };
};

const stream = follow((message) => {
  if (message.kind === "state") last = message;
  tell(message);
});
