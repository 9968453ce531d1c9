// What is wrong with nodes, and what was: of the whole fleet to owners, to tenants where their jobs were. On Health and Home.
import { useState } from "preact/hooks";
import { send, url, who } from "./api";
import { href, refine, route } from "./route";
import { Card, Confirm, Empty, Loaded, number, span, State, Time } from "./ui";
import { useGet } from "./use";

export type Incident = {
  id: string; state: "open" | "over"; cause: string; fault: string; about?: string; scope: string; pool?: string; opened: string; closed?: string; last?: string;
  times?: number; breaker?: boolean; reason?: string; nodes_out?: number; jobs_unlisted?: number;
  nodes: { node: string; gpu?: number; code?: number; state: string; over: boolean; held?: boolean; out_seconds?: number; test_at?: string }[];
  jobs: { job: string; node?: string }[];
};

const FEW = 4;

function Jobs({ of }: { of: Incident }) {
  const ids = [...new Set(of.jobs.map((j) => j.job))], more = ids.length - FEW + (of.jobs_unlisted ?? 0);
  return <>{ids.slice(0, FEW).map((id) => <a key={id} class="chip" href={href(`jobs/${id}`)}>{id}</a>)}{more > 0 && ` and ${number(more)} more`}{ids.length === 0 && "–"}</>;
}

function Nodes({ of }: { of: Incident }) {
  return <>{of.nodes.slice(0, FEW).map((n) => (
    <p key={n.node}><a href={href("health", { node: n.node })}>{n.node}</a>{n.gpu !== undefined && n.gpu >= 0 && ` GPU ${n.gpu}`} <State of={n.state} />{n.out_seconds ? ` out for ${span(n.out_seconds * 1000)}` : ""}{n.held && " kept in service"}{n.test_at && <>, test <Time at={n.test_at} /></>}</p>
  ))}{of.nodes.length > FEW && <p>and {number(of.nodes.length - FEW)} more</p>}</>;
}

export function Incidents() {
  const all = route.value.query.get("past") === "1", node = route.value.query.get("node") ?? undefined, [asking, setAsking] = useState<Incident>();
  const data = useGet<{ incidents: Incident[] }>(url("/v1/incidents", { all: all || undefined, node }));
  const owner = who.value?.role === "owner";
  return (
    <Card title={node ? `Incidents of ${node}` : "Incidents"} wide more={<label class="check"><input type="checkbox" checked={all} onChange={(e) => refine({ past: e.currentTarget.checked ? "1" : undefined })} /> also those that are over</label>}>
      <Loaded data={data} rows={3}>{(l) => l.incidents.length === 0 ? <Empty>{all ? "Nothing was found." : who.value?.account ? "Nothing is wrong where your jobs are." : "Nothing is wrong."}</Empty> : (
        <table class="incidents">
          <thead><tr><th>What</th><th>Cause</th><th>Since</th><th>Nodes</th><th>Jobs there</th>{owner && <th><span class="hide">Reset</span></th>}</tr></thead>
          <tbody>{l.incidents.map((i) => (
            <tr key={i.id}>
              <td class="reason"><b>{i.about ?? i.fault}</b>{i.reason && <><br />{i.reason}</>}{i.times && i.times > 1 ? <><br /><small>{number(i.times)} times</small></> : null}</td>
              <td>{i.cause}<br /><small>{i.scope}{i.pool && `, pool ${i.pool}`}</small></td>
              <td><Time at={i.opened} />{i.closed && <><br /><small>over after {span(Date.parse(i.closed) - Date.parse(i.opened))}</small></>}</td>
              <td><Nodes of={i} /></td><td><Jobs of={i} /></td>
              {owner && <td>{i.breaker && i.state === "open" && <button type="button" onClick={() => setAsking(i)}>I have looked…</button>}</td>}
            </tr>
          ))}</tbody>
        </table>
      )}</Loaded>
      {asking && <Confirm ask={`Let this fault take nodes of ${asking.pool ?? "the pool"} out of service again? So far ${number(asking.nodes.filter((n) => n.held).length)} of them are kept in service, since many had it at once.`} yes="Take them out again" onNo={() => setAsking(undefined)} onYes={async () => { await send("POST", `/v1/incidents/${asking.id}/reset`); setAsking(undefined); data.again(); }} />}
    </Card>
  );
}

/** For the first page: what is open, in a line each. */
export function OpenIncidents() {
  const data = useGet<{ incidents: Incident[] }>("/v1/incidents");
  return (
    <Card title={who.value?.account ? "Incidents where your jobs are" : "Incidents"} more={<a href={href("health")}>Health</a>}>
      <Loaded data={data} rows={2}>{(l) => l.incidents.length === 0 ? <Empty>Nothing is wrong.</Empty> : (
        <ul class="feed">{l.incidents.slice(0, 6).map((i) => <li key={i.id}><Time at={i.opened} /> <a href={href("health", { node: i.nodes.length === 1 ? i.nodes[0].node : undefined })}>{i.about ?? i.fault}</a> <small>{i.nodes.length === 1 ? i.nodes[0].node : `${number(i.nodes.length)} nodes`}</small></li>)}</ul>
      )}</Loaded>
    </Card>
  );
}
