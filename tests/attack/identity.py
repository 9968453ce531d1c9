#!/usr/bin/env python3
"""Who a tenant is: names that are chosen, reused or untrue open nothing, and what a pool does not permit is not had.
See attack.py."""

import glob
import os
import re

from attack import attempt, check, until, wall

LOOK = "import os; print(sorted(os.listdir('/data')), os.getuid(), os.stat('/data').st_uid)"
KEEP = "open('/data/precious', 'w').write('secret of acme')"


def uid_of(log):
    found = re.search(r"\] (\d+) (\d+)", log)
    check(found, "no ids in: %s", log)
    check(found.group(1) == found.group(2), "/data is not its own: %s", log)
    return int(found.group(1))


def ok(answer, *statuses):
    check(answer.status in (statuses or (200, 201, 204)), "%d %s", answer.status, answer.text[:300])
    return answer


def make(site, name, parent=None):
    ok(site.owner.post("/v1/accounts", {"name": name, **({"parent": parent} if parent else {})}))
    return site.owner.get("/v1/accounts/" + name).json["id"]


def remove(site, name):
    return site.owner.call("DELETE", "/v1/accounts/" + name)


# ---- names ------------------------------------------------------------------------------------------

@attempt("an admin elsewhere", "takes the name that another's was turned into on nodes", "its own user id and an empty /data")
def chosen_name(site):
    make(site, "x.y")
    victim = site.token("x.y", "vic", "member")
    _, log = victim.runs(KEEP + "; " + LOOK)
    mine = uid_of(log)
    for name in ("x_y", "x_y_0000000000000000", "storage", "tenants", "adopted", "x.y~"):
        make(site, name)
        _, log = site.token(name, "eve", "member").runs(LOOK)
        check("[]" in log, "%s sees %s", name, log)
        check(uid_of(log) != mine, "%s has the user id of x.y", name)


@attempt("an account", "is called like a number of another", "nothing of that one")
def name_like_a_number(site):
    acme = site.owner.get("/v1/accounts/acme").json["id"]
    for name in (f"t.{acme}", f"t{acme}", str(acme), f"acme (%d)" % acme):
        answer = site.owner.post("/v1/accounts", {"name": name})
        if answer.status == 201:
            _, log = site.token(name, "eve", "member").runs(LOOK)
            check("beats" not in log and "[]" in log, "%s sees %s", name, log)


@attempt("an account", "takes a name with dots and slashes", "a folder of its own inside the storage")
def name_with_dots(site):
    for name in ("../acme", "..", "a/../../b", "%2e%2e"):
        answer = site.owner.post("/v1/accounts", {"name": name})
        if answer.status != 201:
            continue
        _, log = site.token(name, "eve", "member").runs(LOOK)
        check("[]" in log, "%s sees %s", name, log)
    folders = os.listdir(os.path.join(site.agents[0].data, "storage"))
    check(all(re.fullmatch(r"t\.\d+", f) for f in folders), "folders: %s", folders)


@attempt("two accounts", "run on one node", "different user ids, different folders, closed to each other")
def ids_differ(site):
    _, a = site.rival.runs(LOOK)
    _, b = site.token("rival-lab", "lab", "member").runs(LOOK)
    check(uid_of(a) != uid_of(b), "one id for two: %s %s", a, b)
    modes = [os.stat(f).st_mode & 0o7 for f in glob.glob(site.agents[0].data + "/storage/*")]
    check(not any(modes), "open to all: %s", modes)


@attempt("an admin", "removes an account, makes it again under the same name", "a new number, and an empty /data")
def reborn(site):
    first = make(site, "phoenix")
    old = site.token("phoenix", "old", "member")
    _, log = old.runs(KEEP + "; " + LOOK)
    before = uid_of(log)
    ok(remove(site, "phoenix"), 204)
    check(old.get("/v1/whoami").status == 401, "its token lives on")
    second = make(site, "phoenix")
    check(second > first, "numbers %d and %d", first, second)
    new = site.token("phoenix", "new", "member")
    check(old.get("/v1/whoami").status == 401, "the old token opens the new account")
    check(new.get("/v1/jobs").json["jobs"] == [], "it has the jobs of the old one: %s", new.get("/v1/jobs").text[:200])
    _, log = new.runs(LOOK)
    check("[]" in log and uid_of(log) != before, "it sees %s, was %d", log, before)


@attempt("the new holder of a name", "asks for a job and logs of the old one by id", "not found")
def reborn_jobs(site):
    make(site, "ash")
    old = site.token("ash", "old", "member")
    job = old.job(command=["echo", "words of the old one"], cpu=0.2, ram="64Mi")
    old.becomes(job, "done", "failed")
    ok(remove(site, "ash"), 204)
    make(site, "ash")
    new = site.token("ash", "new", "admin")
    site.refused(new.get("/v1/jobs/" + job), status=404)
    site.refused(new.get(f"/v1/jobs/{job}/logs"), status=404)
    check(site.owner.get("/v1/jobs/" + job).status == 200, "the owner has lost it")


@attempt("an agent that starts again", "gets an order of an account whose name was reused meanwhile", "the new folder")
def reborn_after_restart(site):
    make(site, "echo1")
    site.token("echo1", "old", "member").runs(KEEP)
    ok(remove(site, "echo1"), 204)
    site.stintd.restart() if hasattr(site.stintd, "restart") else None
    site.agents[0].stop()
    site.agents[0].start()
    site.agents[0].ready(90)
    make(site, "echo1")
    _, log = site.token("echo1", "new", "member").runs(LOOK)
    check("[]" in log, "it sees %s", log)


# ---- removing ----------------------------------------------------------------------------------------

@attempt("an admin", "removes its own account", "a refusal")
def remove_own(site):
    site.refused(site.rival_admin.call("DELETE", "/v1/accounts/rival"), status=403)


@attempt("an admin", "removes a neighbour's account", "not found")
def remove_other(site):
    site.refused(site.rival_admin.call("DELETE", "/v1/accounts/acme"), status=404)


@attempt("a member", "removes an account below its own", "a refusal")
def remove_as_member(site):
    site.refused(site.rival.call("DELETE", "/v1/accounts/rival-lab"), status=403)


@attempt("an owner", "removes an account with a running job, with accounts below, or the cluster", "a refusal")
def remove_in_use(site):
    site.refused(remove(site, "acme"), "job|accounts below", 409)
    site.refused(remove(site, "rival"), "accounts below", 409)
    site.refused(remove(site, "cluster"))
    site.refused(remove(site, ""), status=None)


@attempt("a neighbour's admin", "takes the name of an account that was removed", "an account with no bill, plan, limit or history of the old one")
def reborn_elsewhere(site):
    first = make(site, "ledgered", "acme")
    ok(site.owner.call("PUT", "/v1/accounts/ledgered/plan", {"discount": "50%", "cap": 7}))
    ok(site.owner.call("PATCH", "/v1/accounts/ledgered/service-quota", {"tokens": 3}))
    old = site.token("ledgered", "old", "member")
    old.becomes(old.job(name="costs", gpus=1, pool="paper", sim={"run": "1s"}), "done")
    def bill(person, account):
        return person.get("/v1/bills/open?account=" + account.replace(" ", "%20"))
    before = bill(site.owner, "ledgered").json["total_udollars"]
    ok(remove(site, "ledgered"), 204)
    ok(site.rival_admin.post("/v1/accounts", {"name": "ledgered", "parent": "rival"}))
    new = site.token("ledgered", "new", "admin")
    mine = bill(new, "ledgered").json
    check(mine["total_udollars"] == 0 and "old" not in str(mine), "it has the old bill: %s", mine)
    entries = new.get("/v1/bills/open/entries?account=ledgered").json
    check(not [e for e in entries["entries"] if e.get("user") == "old"], "it reads the old book: %s", entries)
    plan = new.get("/v1/accounts/ledgered/plan").json
    check(plan["discount_percent"] == 0 and plan["cap_udollars"] is None, "it has the old plan: %s", plan)
    limits = new.get("/v1/accounts/ledgered/service-quota").json["quota"]
    check(next(q for q in limits if q["name"] == "tokens")["limit"] != 3, "it has the old limits: %s", limits)
    acts = new.get("/v1/audit?limit=1000").json["rows"]
    check(acts and not [a for a in acts if "old" in str(a) or a["verb"] in ("job.submit", "account.remove")],
          "it reads what was done to the old one: %s", acts)
    kept = bill(site.owner, f"ledgered ({first})")
    check(kept.json["total_udollars"] == before, "the owner has lost the old book: %s", kept.text[:300])
    for account in (f"ledgered ({first})", f"ledgered~{first}"):
        site.refused(bill(new, account), status=404)
        site.refused(bill(site.rival_admin, account), status=404)
    acme = bill(site.token("acme", "boss", "admin"), f"ledgered ({first})")
    check(acme.json["total_udollars"] == before, "those above it have lost it: %s", acme.text[:300])


# ---- trust -------------------------------------------------------------------------------------------

@attempt("the admin of an untrusted account", "makes a trusted child", "a refusal")
def trusted_child(site):
    ok(site.owner.post("/v1/accounts", {"name": "shady", "trust": "untrusted"}))
    admin = site.token("shady", "sam", "admin")
    site.refused(admin.post("/v1/accounts", {"name": "clean", "trust": "trusted"}), "untrusted")


@attempt("the admin of an untrusted account", "makes a child, then sets it trusted, and a child of that", "no MPS for any of them")
def trusted_later(site):
    ok(site.owner.post("/v1/accounts", {"name": "murky", "trust": "untrusted"}))
    admin = site.token("murky", "sam", "admin")
    ok(admin.post("/v1/accounts", {"name": "murky-1"}))
    site.refused(admin.call("PATCH", "/v1/accounts/murky-1", {"trust": "trusted"}, {"If-Match": "*"}), "untrusted")
    ok(admin.post("/v1/accounts", {"name": "murky-2", "parent": "murky-1"}))
    for account in ("murky", "murky-1", "murky-2"):
        answer = site.token(account, "sue", "member").submit(gpus=1, level="mps", share=0.5, vram="1Gi")
        site.refused(answer, "untrusted")
    check(admin.get("/v1/accounts/murky-2").json["trust"] == "untrusted", "shown as %s",
          admin.get("/v1/accounts/murky-2").text)


@attempt("a trusted account", "has a trusted child, then becomes untrusted", "no MPS for the child")
def trust_taken(site):
    ok(site.owner.post("/v1/accounts", {"name": "fallen", "trust": "trusted"}))
    ok(site.owner.post("/v1/accounts", {"name": "fallen-1", "parent": "fallen", "trust": "trusted"}))
    ok(site.owner.call("PATCH", "/v1/accounts/fallen", {"trust": "untrusted"}, {"If-Match": "*"}))
    answer = site.token("fallen-1", "sue", "member").submit(gpus=1, level="time", share=0.5, vram="1Gi")
    site.refused(answer, "untrusted")


# ---- what a pool does not permit ---------------------------------------------------------------------

HOST = {"network": "host"}


def none_taken(answer):
    """Refused whole, or piece by piece."""
    jobs = answer.json.get("jobs", [])
    check(answer.status >= 400 or jobs and all("own network" in j.get("detail", "") for j in jobs), "taken: %d %s",
          answer.status, answer.text[:300])


@attempt("a member", "asks for the node's own network in a job", "a refusal that says what to do")
def host_network(site):
    site.refused(site.rival.submit(cpu=1, **HOST), "own network.*--allow host-network")


@attempt("a member", "asks for it in a batch", "that job refused")
def host_network_batch(site):
    answer = site.rival.post("/v1/jobs/batch", {"jobs": [{"gpus": 0, "cpu": 1, "command": ["true"], "pool": "main", **HOST}]})
    check("own network" in answer.text, "taken: %s", answer.text[:300])


@attempt("a member", "asks for it in an array", "a refusal")
def host_network_array(site):
    none_taken(site.rival.submit(cpu=1, array={"count": 3}, **HOST))


@attempt("an admin", "puts it into a size", "a refusal of the size, or of the job that uses it")
def host_network_size(site):
    answer = site.rival_admin.call("PUT", "/v1/sizes/wide", {"gpus": 0, "cpu": 1, **HOST})
    if answer.status < 300:
        site.refused(site.rival_admin.submit(size="wide"), "own network")


@attempt("an owner's rule", "writes it into a job", "the job refused")
def host_network_rule(site):
    rule = "function submit(job) if job.name == 'ruled' then job.network = 'host' end return true end"
    ok(site.owner.call("PUT", "/v1/rules/net", rule))
    try:
        site.refused(site.rival.submit(name="ruled", cpu=1), "own network")
    finally:
        site.owner.call("DELETE", "/v1/rules/net")


@attempt("a member", "asks for it with a workload type", "a refusal")
def host_network_workload(site):
    none_taken(site.rival.submit(workload="render", frames="1-4", gpus=1, **HOST))


@attempt("a member", "spells it otherwise", "a refusal")
def host_network_spelling(site):
    for word in ("Host", "HOST", " host", "host ", "ho\u200bst", "node", "bridge"):
        site.refused(site.rival.submit(cpu=1, network=word))


@attempt("a member", "asks what would become of it (dry run)", "the same refusal")
def host_network_dry(site):
    answer = site.rival.post("/v1/jobs?dry_run=true", {"gpus": 0, "cpu": 1, "command": ["true"], "pool": "main", **HOST})
    site.refused(answer, "own network")


@attempt("a member", "names no pool, so that some pool may do", "a refusal: none permits it")
def host_network_any_pool(site):
    site.refused(site.rival.post("/v1/jobs", {"gpus": 0, "cpu": 1, "command": ["true"], **HOST}), "no pool allows")


@attempt("a member", "runs without an image where that is not permitted", "a refusal that says what to do")
def host_image(site):
    ok(site.owner.post("/v1/pools", {"name": "strict"}))
    for doc in ({}, {"image": "host"}, {"image": ""}):
        answer = site.rival.submit(pool="strict", cpu=1, **doc)
        site.refused(answer)
    site.refused(site.rival.submit(pool="strict", cpu=1), "--allow host-image")


@attempt("an admin", "gives a pool permissions", "a refusal: pools are the owner's")
def pool_as_admin(site):
    site.refused(site.rival_admin.call("PATCH", "/v1/pools/main", {"allow": ["host-network"]}, {"If-Match": "*"}), status=403)


@attempt("an owner", "takes a permission from a pool under those who use it", "a refusal that names who")
def permission_in_use(site):
    answer = site.owner.call("PATCH", "/v1/pools/main", {"allow": []}, {"If-Match": "*"})
    site.refused(answer, "has a place there|could never start", 409)


@attempt("a job", "looks which networks there are", "its own loopback and nothing of the node's")
def own_network(site):
    _, log = site.rival.runs("import os; print(sorted(os.listdir('/sys/class/net')))")
    check(log.strip() == "['lo']", "interfaces: %s", log)


@attempt("a member", "asks for more tasks than the pool allows in a job", "a refusal")
def many_tasks(site):
    site.refused(site.rival.submit(cpu=0.001, tasks=5000), "allows 1024 in a job")


@attempt("a member", "asks for 0.001 CPUs a task, to crowd a node", "at least its part of the node's CPUs")
def crumbs(site):
    node = site.owner.get("/v1/nodes/" + site.agents[0].name).json
    job = site.rival.job(cpu=0.001, ram="16Mi")
    site.rival.becomes(job, "running")
    held = site.owner.get("/v1/accounts/rival/quota").json["held"]["cpu"]
    site.rival.cancel(job)
    check(held * 512 >= node["cpu"] * 0.999, "it holds %s of %s CPUs", held, node["cpu"])


wall("identity", agents=1)
