#!/usr/bin/env python3
"""Secrets and environments: nobody but the job gets them.

acme's secret is CANARY, the values of its job's environment ENV_CANARY. Neither may be found in any answer to anybody but
the job's own user, in any log, in the store, its write-ahead log or a copy of it, or in a file of the node.
"""

import base64
import glob
import os
import shutil
import stat
import subprocess
import time

from attack import FINAL, attempt, until, wall
from harness import check, token

CANARY = "canary-secret-5f1c77aa90"
ENV_CANARY = "canary-env-3b9d21e4"
SCRIPT_CANARY = "canary-script-77e0"
ALL = (CANARY, ENV_CANARY, SCRIPT_CANARY)
SECRETS = "/v1/accounts/acme/secrets"
state = {}


def put(person, account, key, value, query=""):
    return person.call("PUT", f"/v1/accounts/{account}/secrets/{key}{query}", value, kind="application/octet-stream")


def shapes(text):
    """The bytes as they might lie somewhere: as they are, in base64, in hex."""
    raw = text.encode()
    found = [raw, raw.hex().encode()]
    for shift in range(3):
        found.append(base64.b64encode(b"x" * shift + raw)[4:-4])
    return found


def holds(path, *texts):
    try:
        with open(path, "rb") as f:
            data = f.read()
    except OSError:
        return []  # a name of a namespace, or gone meanwhile
    return [t for t in texts for s in shapes(t) if s in data]


def prepare(site):
    """acme's secret and a job with an environment, once."""
    if state:
        return state
    check(put(site.acme, "acme", "hf", CANARY).status == 200, "acme cannot put a secret")
    state["job"] = site.acme.job(name="quiet", pool="paper", sim={"run": "2h"}, env={"TOKEN": ENV_CANARY},
                                 script="echo " + SCRIPT_CANARY)
    state["people"] = {
        "owner": site.owner, "rival": site.rival, "rival admin": site.rival_admin,
        "member": site.token("acme", "bob", "member"), "admin": site.token("acme", "boss", "admin"),
        "viewer": site.token("acme", "vera", "viewer"), "auditor": site.token("acme", "audrey", "auditor"),
        "auditor above": site.token("", "inge", "auditor"), "viewer above": site.token("", "vic", "viewer")}
    return state


def every_get(site, person):
    """All that a person can read without guessing: every GET route with what is in its lists."""
    job = state["job"]
    document = site.owner.get("/openapi.json").json
    for path, item in document["paths"].items():
        if "get" not in item or path in ("/v1/events", "/v1/agent/desired"):
            continue
        for name in ("acme", "rival", "main", "paper0", "hf"):
            full = path.replace("{id}", job).replace("{name}", name).replace("{period}", "open")
            full = full.replace("{key}", "hf")
            yield full, person.get(full)
    for full in ("/v1/jobs?account=acme&limit=1000", "/v1/jobs?name=quiet", "/v1/bills/open?account=acme&format=csv",
                 "/v1/bills/open/entries?account=acme&format=csv", "/v1/bills/open?account=acme&format=focus",
                 "/v1/bills/open?account=acme&format=file", "/v1/audit?limit=1000", f"/v1/jobs/{job}?spec=1"):
        yield full, person.get(full)


# ---- by name ----------------------------------------------------------------------------------------------

@attempt("a member of rival", "names acme's secret in a job", "a refusal as for a name never used")
def by_name(site):
    prepare(site)
    one = site.refused(site.rival.submit(secrets={"X": "hf"}), "has no secret", 404).json["detail"]
    other = site.refused(site.rival.submit(secrets={"X": "never"}), "has no secret", 404).json["detail"]
    check(one.replace("hf", "N") == other.replace("never", "N"), "they differ: %s, %s", one, other)


@attempt("a member of rival", "submits to acme, to use its secret", "that there is no such account")
def by_account(site):
    prepare(site)
    site.refused(site.rival.submit(account="acme", secrets={"X": "hf"}), "no account", 404)


@attempt("an admin of rival", "names it with paths around it", "refusals")
def by_path(site):
    prepare(site)
    for name in ("acme/hf", "../acme/hf", "acme%2Fhf", "/acme/hf", "hf\u0000", ".", "..", "acme\thf", "a" * 65, ""):
        site.refused(site.rival_admin.submit(secrets={"X": name}), "")
    for file in ("../../etc/passwd", "/x", ".", "..", ".environment", "a/b", "", "x" * 65):
        site.refused(site.rival.submit(secrets={file: "hf"}), "")


@attempt("an admin of rival", "names it in an array, a batch and a size", "refusals, and no size with secrets")
def by_array_and_size(site):
    prepare(site)
    site.refused(site.rival.submit(secrets={"X": "hf"}, array={"count": 3}), "has no secret")
    got = site.rival.post("/v1/jobs/batch", {"jobs": [{"gpus": 0, "cpu": 1, "pool": "paper", "secrets": {"X": "hf"}}]})
    check(got.json["jobs"][0].get("code") == "not_found", "a batch took it: %s", got.text)
    site.refused(site.rival_admin.call("PUT", "/v1/sizes/mine", {"gpus": 1, "secrets": {"X": "hf"}}), "")
    site.refused(site.rival.submit(secrets={"X": {"secret": "hf", "as": "env", "account": "acme"}}), "account")


@attempt("an admin of rival", "puts, lists and removes in acme", "that there is no such account")
def in_anothers_account(site):
    prepare(site)
    for answer in (put(site.rival_admin, "acme", "hf", "mine"), site.rival_admin.get(SECRETS),
                   site.rival_admin.call("DELETE", SECRETS + "/hf"), put(site.rival_admin, "acme", "new", "x")):
        site.refused(answer, "no account", 404)
    for path in ("/v1/accounts/rival/secrets/..%2f..%2facme%2fsecrets%2fhf", "/v1/accounts/rival%2f..%2facme/secrets",
                 "/v1/accounts/rival/../acme/secrets", "/v1/accounts/%00/secrets", "/v1/accounts//secrets/hf"):
        site.refused(site.rival_admin.get(path), "")


@attempt("a member of rival-lab", "uses what rival has put for itself alone", "a refusal; with `below` it is served")
def from_above(site):
    lab = site.token("rival-lab", "lara", "member")
    check(put(site.rival_admin, "rival", "own", "v").status == 200, "cannot put")
    site.refused(lab.submit(pool="paper", secrets={"X": "own"}), "has no secret", 404)
    check(put(site.rival_admin, "rival", "shared", "v", "?below=true").status == 200, "cannot put")
    check(lab.submit(pool="paper", secrets={"X": "shared"}, sim={"run": "1s"}).status == 201, "below is not served")
    rows = lab.get("/v1/accounts/rival-lab/secrets").json["secrets"]
    check([r["name"] for r in rows] == ["shared"] and rows[0]["account"] == "" and "by" not in rows[0], "%s", rows)


@attempt("a member of acme", "replaces and removes what another member put", "refusals")
def anothers_in_the_account(site):
    bob = prepare(site)["people"]["member"]
    site.refused(put(bob, "acme", "hf", "mine"), "somebody else", 403)
    site.refused(bob.call("DELETE", SECRETS + "/hf"), "somebody else", 403)
    for who in ("viewer", "auditor", "auditor above"):
        site.refused(put(state["people"][who], "acme", "x", "v"), "role", 403)


@attempt("an admin of rival", "puts more, and larger, than an account may have", "refusals that say how many")
def bounds(site):
    site.refused(put(site.rival_admin, "rival-lab", "big", "x" * 65537), "65536")
    site.refused(put(site.rival_admin, "rival-lab", "none", ""), "1 to 65536")
    last = None
    for i in range(110):
        last = put(site.rival_admin, "rival-lab", f"s{i}", "v")
        if last.status != 200:
            break
    check(i == 100, "%d secrets were taken", i)
    site.refused(last, "100 secrets")
    site.refused(site.rival.submit(secrets={f"S{i}": "own" for i in range(33)}), "at most 32")


# ---- in answers ---------------------------------------------------------------------------------------------

@attempt("everybody of every role", "reads every GET route", "neither the secret nor a value of the environment")
def every_answer(site):
    for who, person in prepare(site)["people"].items():
        for path, answer in every_get(site, person):
            for text in (CANARY, ENV_CANARY):
                for shape in shapes(text):
                    check(shape not in answer.body, "%s read it at %s: %s", who, path, answer.text[:300])


@attempt("acme's own user", "reads the job back", "its environment, in that answer and in no list")
def own_answer(site):
    prepare(site)
    check(site.acme.show(state["job"])["spec"]["env"] == {"TOKEN": ENV_CANARY}, "its own env is hidden")
    for path, answer in every_get(site, site.acme):
        check(CANARY.encode() not in answer.body, "the secret came back at %s", path)
        if not path.startswith("/v1/jobs/"):
            check(ENV_CANARY.encode() not in answer.body, "its env is in %s", path)


@attempt("admins, viewers and auditors", "look at what the job runs", "the script for who works there, names for others")
def what_it_runs(site):
    for who, person in prepare(site)["people"].items():
        answer = person.get("/v1/jobs/" + state["job"])
        if who.startswith("rival"):
            check(answer.status == 404, "%s sees the job", who)
            continue
        spec = answer.json["spec"]
        check(spec["env"] == {"TOKEN": None}, "%s: %s", who, spec["env"])
        works = who in ("owner", "member", "admin")
        check((spec["script"] is not None) == works, "%s: %s", who, spec["script"])


@attempt("somebody of the same name elsewhere", "asks for the job of acme's ada", "nothing of hers")
def same_name(site):
    prepare(site)
    twin = site.token("rival", "ada", "member")
    site.refused(twin.get("/v1/jobs/" + state["job"]), "no job", 404)
    above = site.token("", "ada", "viewer")
    check(above.show(state["job"])["spec"]["env"] == {"TOKEN": None}, "a namesake above reads it")


@attempt("an admin of acme", "cancels, changes and replays a submit of another's", "names alone in the answers")
def answers_to_changes(site):
    boss = prepare(site)["people"]["admin"]
    job = site.acme.job(pool="paper", sim={"run": "2h"}, env={"TOKEN": ENV_CANARY})
    for answer in (boss.call("PATCH", "/v1/jobs/" + job, {"priority": 3}), boss.cancel(job)):
        check(answer.status == 200 and ENV_CANARY not in answer.text, "%s", answer.text[:300])
    body = {"pool": "paper", "gpus": 0, "cpu": 1, "account": "acme", "user": "ada", "env": {"TOKEN": ENV_CANARY}}
    first = boss.call("POST", "/v1/jobs", body, {"Idempotency-Key": "k1"})
    check(first.status == 201 and ENV_CANARY in first.text, "who submitted it does not see it: %s", first.text[:200])
    check(ENV_CANARY not in site.owner.get("/v1/jobs/" + first.json["id"]).text, "the owner sees it")


# ---- where things are kept --------------------------------------------------------------------------------------

@attempt("a thief of disks", "reads the store, its log and a copy", "sealed text alone")
def at_rest(site):
    prepare(site)
    array = site.acme.submit(pool="paper", sim={"run": "1s"}, env={"A": ENV_CANARY}, script=SCRIPT_CANARY,
                             array={"count": 5})
    check(array.status == 201, "%s", array.text)
    check(site.owner.post("/v1/admin/backup", {"file": "thief.db"}).status == 201, "no backup")
    files = [p for p in glob.glob(site.dir + "/**/*", recursive=True)
             if os.path.isfile(p) and ("stint.db" in p or "thief.db" in p)]
    check(len(files) >= 2, "no store in %s", site.dir)
    for path in files:
        check(not holds(path, *ALL), "%s has %s", path, holds(path, *ALL))


@attempt("somebody who reads logs", "looks for it in stintd's and the agent's", "nothing")
def in_logs(site):
    prepare(site)
    logs = glob.glob(site.dir + "/*log") + glob.glob(site.dir + "/**/*.log", recursive=True)
    check(len(logs) >= 2, "no logs in %s", site.dir)
    for path in logs:
        check(not holds(path, *ALL), "%s has %s", path, holds(path, *ALL))


@attempt("another user of the machine", "opens the key", "modes that keep everybody else out")
def key_modes(site):
    prepare(site)
    for name in ("secrets.key", "billing.key"):
        for path in glob.glob(site.dir + "/**/" + name, recursive=True):
            mode = stat.S_IMODE(os.stat(path).st_mode)
            check(mode == 0o600, "%s has mode %o", path, mode)
    check(not glob.glob(site.dir + "/**/*.key.part", recursive=True), "parts of keys are left")


@attempt("an owner", "makes a new key while jobs and secrets are there", "everything as before, under another key")
def rotation(site):
    prepare(site)
    path = glob.glob(site.dir + "/**/secrets.key", recursive=True)[0]
    with open(path) as f:
        old = f.read()
    answer = site.owner.call("POST", "/v1/admin/rotate-secrets-key")
    check(answer.status == 200 and answer.json["documents"] >= 1, "%s", answer.text)
    with open(path) as f:
        new = f.read()
    check(new != old and old.strip() not in new and len(new) == 65, "the old key is still there")
    check(site.acme.show(state["job"])["spec"]["env"] == {"TOKEN": ENV_CANARY}, "the environment is lost")
    check(site.acme.submit(pool="paper", secrets={"X": "hf"}, sim={"run": "1s"}).status == 201, "the secret is lost")
    at_rest_again = [p for p in glob.glob(site.dir + "/**/stint.db*", recursive=True) if holds(p, *ALL)]
    check(not at_rest_again, "%s", at_rest_again)


class Copy:
    """A stintd on a copy of the store, for damage."""

    def __init__(self, site, name):
        store = glob.glob(site.dir + "/**/stint.db", recursive=True)[0]
        self.dir = os.path.join(site.dir, name)
        os.mkdir(self.dir, 0o700)
        check(site.owner.post("/v1/admin/backup", {"file": name + ".db"}).status == 201, "no copy")
        shutil.move(glob.glob(site.dir + f"/**/backups/{name}.db", recursive=True)[0], self.dir + "/stint.db")
        for key in ("secrets.key", "billing.key"):
            shutil.copy(os.path.join(os.path.dirname(store), key), self.dir)

    def starts(self):
        """None if it comes up (and is stopped), otherwise what it says."""
        log = self.dir + "/out"
        with open(log, "w") as out:
            process = subprocess.Popen([os.environ["STINTD"], "--data", self.dir, "--listen", "127.0.0.1:0"],
                                       stdout=out, stderr=out)
        until(lambda: process.poll() is not None or os.path.exists(self.dir + "/stintd.sock"), "a start or an end")
        time.sleep(0.2)
        if process.poll() is None:
            process.terminate()
            process.wait(30)
            return None
        with open(log) as f:
            return f.read()


@attempt("a careless admin", "starts without the key, with another, with one others can read", "refusals that say what to do")
def wrong_key(site):
    prepare(site)
    copy = Copy(site, "wrongkey")
    key = copy.dir + "/secrets.key"
    check(copy.starts() is None, "a whole copy does not start")
    with open(key) as f:
        good = f.read()
    os.remove(key)
    said = copy.starts()
    check(said and "put the file back" in said and not os.path.exists(key), "%s", said)
    for text, says in (("0" * 64 + "\n", "does not have key"), ("short\n", "no file of keys"), ("", "no file of keys")):
        with open(key, "w") as f:
            f.write(text)
        os.chmod(key, 0o600)
        said = copy.starts()
        check(said and says in said, "%r: %s", text, said)
    with open(key, "w") as f:
        f.write(good)
    os.chmod(key, 0o644)
    said = copy.starts()
    check(said and "chmod 600" in said, "%s", said)
    os.chmod(key, 0o600)
    check(copy.starts() is None, "with its key it does not start again")


@attempt("somebody who can write the store", "moves a secret to rival, and cuts one short", "that neither opens")
def swapped_rows(site):
    """Through the vault's own test (swapped_rows, damage_is_noticed): the pages' sums keep others from writing the file, so
    here the file of a copy is changed byte by byte where its sealed text lies."""
    prepare(site)
    copy = Copy(site, "swapped")
    with open(copy.dir + "/stint.db", "rb") as f:
        data = f.read()
    at = data.find(b'"sealed":"v2.')
    check(at > 0, "there is no sealed text in the store")
    changed = bytearray(data)
    changed[at + 60] ^= 1
    with open(copy.dir + "/stint.db", "wb") as f:
        f.write(changed)
    said = copy.starts()
    check(said and "damaged" in said, "a changed byte was not noticed: %s", said)


# ---- on the node --------------------------------------------------------------------------------------------------

LOOK = """
import os, stat, sys
p = "/run/stint/secrets/"
s = os.stat(p + "HF")
print("mode", oct(stat.S_IMODE(s.st_mode)), s.st_uid == os.getuid(), len(open(p + "HF").read()))
print("env", len(os.environ.get("HF", "")), len(os.environ.get("TOKEN", "")), "PLAIN" in os.environ)
kinds = {l.split(" - ")[1].split()[0] for l in open("/proc/self/mountinfo") if " /run/stint/secrets " in l}
print("kind", kinds)
try:
    open(p + "HF", "w"); print("WRITTEN")
except OSError as e:
    print("read-only", e.errno)
"""


@attempt("acme's own job", "reads its secrets", "files in memory, 0400 of its user, and the variables it asked for")
def delivered(site):
    prepare(site)
    ended, log = site.acme.runs(LOOK, secrets={"HF": {"secret": "hf", "as": "env"}, "PLAIN": "hf"},
                                env={"TOKEN": ENV_CANARY})
    check(ended["state"] == "done", "%s: %s", ended["reason"], log)
    n = len(CANARY)
    check(f"mode 0o400 True {n}" in log and f"env {n} {len(ENV_CANARY)} False" in log, "%s", log)
    check("kind {'tmpfs'}" in log and "read-only" in log and "WRITTEN" not in log, "%s", log)


HOLD = "import time; time.sleep(600)"


@attempt("root's eyes on the node", "searches every file of the agent while the job runs", "neither secret nor environment")
def node_files(site):
    prepare(site)
    job = site.acme.job(cpu=0.2, ram="128Mi", command=["python3", "-c", HOLD], env={"TOKEN": ENV_CANARY},
                        secrets={"HF": {"secret": "hf", "as": "env"}})
    site.acme.becomes(job, "running")
    until(lambda: "job=" + job in site.agents[0].says(), "the start of " + job)
    try:
        for path in glob.glob(site.agents[0].data + "/**/*", recursive=True):
            if os.path.isfile(path) and not os.path.islink(path):
                check(not holds(path, CANARY, ENV_CANARY), "%s has it", path)
    finally:
        site.acme.cancel(job)
        site.acme.becomes(job, *FINAL)
    seen = subprocess.run(["grep", "-rlsF", CANARY, site.agents[0].data], capture_output=True, text=True, check=False)
    check(not seen.stdout, "left behind: %s", seen.stdout)


NEIGHBOUR = """
import glob, os
found = []
for p in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/root/run/stint/secrets/*") + \\
        glob.glob("/proc/[0-9]*/cwd/*") + glob.glob("/run/stint/secrets/*") + glob.glob("/run/stint/secrets/.*"):
    try:
        if b"canary" in open(p, "rb").read():
            found.append(p)
    except OSError:
        pass
for top in ("/run", "/tmp", "/dev/shm", "/data", "/var"):
    for d, _, names in os.walk(top):
        for n in names:
            try:
                if b"canary" in open(os.path.join(d, n), "rb").read(1 << 20):
                    found.append(os.path.join(d, n))
            except OSError:
                pass
print("FOUND" if found else "nothing", found, len(os.listdir("/proc")))
"""


@attempt("a job of rival on the same node", "searches /proc and every folder it sees", "nothing of acme's running job")
def neighbours_task(site):
    prepare(site)
    job = site.acme.job(cpu=0.2, ram="128Mi", command=["python3", "-c", HOLD], env={"TOKEN": ENV_CANARY},
                        secrets={"HF": {"secret": "hf", "as": "env"}})
    site.acme.becomes(job, "running")
    try:
        ended, log = site.rival.runs(NEIGHBOUR)
        check(ended["state"] == "done" and "nothing" in log, "%s %s", ended["reason"], log)
    finally:
        site.acme.cancel(job)


@attempt("a job of acme", "starts after its secret was removed", "no start, and a reason that names it")
def after_removal(site):
    prepare(site)
    check(put(site.acme, "acme", "brief", "short-lived").status == 200, "cannot put")
    first = site.acme.job(gpus=7, cpu=0.2, ram="128Mi", command=["python3", "-c", HOLD])
    site.acme.becomes(first, "running")
    second = site.acme.job(gpus=7, cpu=0.2, ram="128Mi", command=["cat", "/run/stint/secrets/B"], secrets={"B": "brief"})
    check(site.acme.call("DELETE", SECRETS + "/brief").status == 204, "cannot remove")
    site.refused(site.acme.submit(secrets={"B": "brief"}), "has no secret", 404)
    site.acme.cancel(first)
    ended = site.acme.becomes(second, *FINAL, seconds=90)
    check(ended["state"] == "failed" and "has no secret" in ended["reason"] and "brief" in ended["reason"], "%s %s", ended["state"], ended["reason"])
    check("short-lived" not in site.acme.log(second), "it had it all the same")


@attempt("an agent", "is killed and comes back while a job with secrets waits", "the job with its secret, nothing on disk")
def agent_restart(site):
    prepare(site)
    agent = site.agents[0]
    agent.stop(kill=True)
    job = site.acme.job(cpu=0.2, ram="128Mi", command=["sh", "-c", "wc -c < /run/stint/secrets/HF"], secrets={"HF": "hf"})
    agent.start()
    agent.ready()
    ended = site.acme.becomes(job, *FINAL, seconds=90)
    check(ended["state"] == "done" and str(len(CANARY)) in site.acme.log(job), "%s: %s", ended["reason"], site.acme.log(job))
    with open(agent.data + "/tasks.json") as f:
        check(CANARY not in f.read(), "the journal has it")


@attempt("a node with a token of its own", "asks for the list of another", "only its own, without the job's secrets")
def another_node(site):
    prepare(site)
    fake = token(site.owner, "", "n9", "node")["token"]
    answer = site.person(fake).get("/v1/agent/desired")
    check(answer.status in (403, 404, 409) and CANARY not in answer.text, "%d %s", answer.status, answer.text[:200])
    for path in (SECRETS, "/v1/jobs/" + state["job"], "/v1/audit"):
        site.refused(site.person(fake).get(path), "", 403)


@attempt("a job of rival", "asks for variables that Stint sets, by secret and by env", "its own names, Stint's values")
def platform_variables(site):
    check(put(site.rival, "rival", "fake", "all").status == 200, "cannot put")
    ended, log = site.rival.runs("import os; print(repr(os.environ['CUDA_VISIBLE_DEVICES']), os.environ['STINT_ACCOUNT'])",
                                 secrets={"CUDA_VISIBLE_DEVICES": {"secret": "fake", "as": "env"},
                                          "STINT_ACCOUNT": {"secret": "fake", "as": "env"}},
                                 env={"NVIDIA_VISIBLE_DEVICES": "all"})
    check(ended["state"] == "done", "%s %s", ended["reason"], log)
    check("'all'" not in log.split()[0], "a secret chose the devices: %s", log)


@attempt("a machine, and who lets it back", "join and rejoin", "a row each in the audit log")
def machines_are_written_down(site):
    check(site.owner.call("POST", "/v1/nodes/n0/rejoin").status < 300, "an owner cannot let a node back")
    verbs = {row["verb"] for row in site.owner.get("/v1/audit?what=node&limit=1000").json["rows"] if row["target"] == "n0"}
    check({"node.join", "node.rejoin-allow"} <= verbs, "%s", verbs)


if __name__ == "__main__":
    wall("secrets", agents=1)
