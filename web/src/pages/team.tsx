// What a team has beside its jobs: services, volumes, notices.
import { href, route } from "../route";
import { Notices } from "./notices";
import { Services } from "./services";
import { Volumes } from "./volumes";

const TABS = [{ tab: "services", name: "Services", view: Services }, { tab: "volumes", name: "Volumes", view: Volumes }, { tab: "notices", name: "Notices", view: Notices }] as const;

export function Team() {
  const at = TABS.find((t) => t.tab === route.value.query.get("tab")) ?? TABS[0], View = at.view;
  return (
    <>
      <header class="title"><h1>Team</h1><ul class="tabs">{TABS.map((t) => <li key={t.tab}><a href={href("team", { tab: t.tab })} aria-current={t === at ? "page" : undefined}>{t.name}</a></li>)}</ul></header>
      <div class="cards"><View /></div>
    </>
  );
}
