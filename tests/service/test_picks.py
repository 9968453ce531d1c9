#!/usr/bin/env python3
"""Jobs say which nodes will do, by label and by name: they run there and nowhere else, are refused where no node could ever do, and are
told what keeps them waiting. What they say is their own: no other tenant sees it, and no text of it reaches further than it should.
"""

import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(__file__))
from harness import Client, Stintd, check, main, token  # noqa: E402


def label(owner, name, **labels):
    answer = owner.call("PATCH", f"/v1/nodes/{name}/labels", {"set": labels})
    check(answer.status == 200, "%s: %s", name, answer.text)


def story(program, stintd):
    owner = stintd.owner
    owner.make("/v1/types", {"name": "h100"})
    owner.make("/v1/pools", {"name": "main", "allow": ["host-image"]})
    for i in range(1, 4):
        owner.make("/v1/nodes", {"name": f"n{i}", "pool": "main", "gpu": "h100", "gpus": 4})
    label(owner, "n1", driver="550.54", storage="hdd")
    label(owner, "n2", driver="550.90")
    who = {}
    for name in ("here", "there"):
        owner.make("/v1/accounts", {"name": name, "guarantee": {"gpu": 6}})
        who[name] = Client(stintd.port, token(owner, name, "u" + name, "member")["token"])
    here = who["here"]

    def submit(status=201, **more):
        answer = here.post("/v1/jobs", {"name": "j", "gpus": 1, "limit": "1h", "command": ["true"], **more})
        check(answer.status == status, "%s: %d %s", more, answer.status, answer.text)
        return answer.json

    def nodes_of(job):
        doc = here.get("/v1/jobs/" + job).json
        return doc["state"], {g["node"] for g in (doc.get("placement") or {}).get("grants", [])}

    def runs_on(job, *names):
        try:
            stintd.wait(lambda: nodes_of(job) == ("running", set(names)), "")
        except Exception:
            check(False, "%s is %s, wanted %s: %s", job, nodes_of(job), names, here.get(f"/v1/jobs/{job}/why").text)

    runs_on(submit(node_labels=["driver=550", "storage!=hdd"], gpus=4)["id"], "n2")
    runs_on(submit(exclude_nodes=["n1", "n2"])["id"], "n3")
    runs_on(submit(node_labels=["driver!=550"])["id"], "n3")
    waits = submit(node_labels=["driver=550", "storage!=hdd"], gpus=2)["id"]
    why = here.get(f"/v1/jobs/{waits}/why").json["reasons"]
    check([r["code"] for r in why if r["blocks"]] == ["nodes"], "%s", why)
    check("no node with driver=550, storage!=hdd has 2 free h100" in [r["text"] for r in why], "%s", why)

    # The command says the same, and so does a dry run.
    stint = os.path.join(os.path.dirname(program), "stint")
    env = {**os.environ, "STINT_URL": f"http://127.0.0.1:{stintd.port}", "STINT_TOKEN": here.token}

    def run(*words):
        return subprocess.run([stint, *words], env=env, capture_output=True, text=True, timeout=60)

    said = run("submit", "--gpus", "1", "--limit", "1h", "--node-label", "driver=550", "--exclude-node", "n2", "--", "true")
    runs_on(said.stdout.strip(), "n1")
    said = run("submit", "--node-label", "driver", "--", "true")
    check(said.returncode != 0 and "--node-label: \"driver\" is neither NAME=VALUE nor NAME!=VALUE" in said.stderr, "%s", said.stderr)
    said = run("submit", "--dry-run", "--gpus", "1", "--node-label", "driver=999", "--", "true")
    check("no node with driver=999" in said.stdout + said.stderr, "%s%s", said.stdout, said.stderr)

    # What could never be is refused at once, in one sentence; what is no pick at all likewise.
    for more, words in (
        ({"node_labels": ["driver=999"]}, "no node with driver=999 could take a task with 1 h100"),
        ({"node_labels": ["driver=550"], "gpus": 8}, "no node"),
        ({"exclude_nodes": ["n1", "n2", "n3"]}, "no node with not n1, not n2, not n3"),
        ({"exclude_nodes": ["n9"]}, "there is no node"),
        ({"node_labels": ["driver"]}, "NAME=VALUE"),
        ({"node_labels": ["$(rm -rf ~)=x"]}, "NAME=VALUE"),
        ({"node_labels": ["a=\u202eevil"]}, "NAME=VALUE"),
        ({"node_labels": ["a=" + "x" * 100000]}, ""),
        ({"node_labels": [f"k{i}!=v" for i in range(33)]}, "at most 32"),
        ({"node_labels": [{"driver": "550"}]}, ""),
        ({"exclude_nodes": ["../../n1"]}, ""),
        ({"exclude_nodes": ["n1\nn2"]}, "no name of a node"),
        ({"node_labels": ["driver=550"], "hard": True, "by": "+5h"}, "--require"),
    ):
        answer = here.post("/v1/jobs", {"name": "j", "gpus": 1, "limit": "1h", "command": ["true"], **more})
        check(400 <= answer.status < 500 and words in answer.json["detail"], "%s: %d %s", str(more)[:80], answer.status, answer.text[:300])

    # Other labels, other nodes, without a word to anybody else.
    label(owner, "n3", driver="550.1")
    runs_on(waits, "n3")
    hidden = who["there"].get(f"/v1/jobs/{waits}")
    check(hidden.status == 404, "another tenant sees the job")
    seen = "".join(who["there"].get(p).text for p in ("/v1/jobs", "/v1/accounts", "/v1/devices", "/metrics"))
    check("storage!=hdd" not in seen and waits not in seen, "another tenant sees what it allows")

    # Many texts, each once: none of them stays for good, and nobody waits for them.
    for i in range(150):
        job = submit(node_labels=[f"k{i}!=v"], gpus=0, cpu=1, begin="+20h")["id"]
        check(here.call("DELETE", "/v1/jobs/" + job).status < 300, "it cannot be cancelled")
    check(here.call("DELETE", "/v1/jobs/" + waits).status < 300, "it cannot be cancelled")
    runs_on(submit(node_labels=["k1!=v", "driver=550"], gpus=1, exclude_nodes=["n1", "n2"])["id"], "n3")

    # A restart, and what was said still holds.
    last = submit(node_labels=["driver=550.90"], gpus=1)["id"]
    stintd.again(program)
    here = who["here"] = Client(stintd.port, here.token)
    owner = stintd.owner
    check(here.get("/v1/jobs/" + last).json["state"] == "pending", "it runs elsewhere")
    why = here.get(f"/v1/jobs/{last}/why").json["reasons"]
    check("no node with driver=550.90 has 1 free h100" in [r["text"] for r in why], "%s", why)
    for job in here.get("/v1/jobs?state=running").json["jobs"]:
        check(here.call("DELETE", "/v1/jobs/" + job["id"]).status < 300, "it cannot be cancelled")
    stintd.wait(lambda: {g["node"] for g in here.get("/v1/jobs/" + last).json.get("placement", {}).get("grants", [])} == {"n2"}, "it is not on n2")


def run(program):
    stintd = Stintd(program)
    try:
        story(program, stintd)
    finally:
        stintd.stop()


main(run)
