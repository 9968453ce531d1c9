#!/usr/bin/env python3
"""packaging/stint.grafana.json shows something: a real Prometheus scrapes stintd and an agent, and is asked every
panel's questions. Without prometheus on the machine the test is skipped."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.dirname(__file__))
from harness import Stintd, check, main  # noqa: E402

SOURCE = os.environ.get("STINT_SOURCE", os.path.join(os.path.dirname(__file__), "..", ".."))



def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def questions(dashboard):
    """(title, expression) of each panel, with Grafana's variables filled in."""
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            text = target["expr"].replace("$__rate_interval", "5s").replace("$account", ".*")
            check("$" not in text, "%s: a variable that nobody sets: %s", panel["title"], text)
            yield panel["title"], text


def is_laid_out(dashboard):
    """No two panels at one place, none beyond the grid, ids once, each with its text."""
    taken, ids = set(), set()
    for panel in dashboard["panels"]:
        check(panel["id"] not in ids, "two panels have id %d", panel["id"])
        ids.add(panel["id"])
        at = panel["gridPos"]
        check(at["x"] + at["w"] <= 24, "%s is beyond the grid", panel["title"])
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        check(not taken & cells, "%s lies over another panel", panel["title"])
        taken |= cells
        check(panel["type"] == "row" or panel["description"], "%s has no text", panel["title"])


def with_names(text):
    """Metrics that an expression names, without the suffixes of a histogram."""
    text = re.sub(r"\{[^}]*\}|\[[^]]*\]|by \([^)]*\)", "", text)
    return {re.sub("_bucket$", "", n) for n in re.findall(r"\b(?:stint_|DCGM_|process_)\w+", text)}


def are_documented(dashboard):
    with open(os.path.join(SOURCE, "doc", "reference", "metrics.md")) as f:
        known = set(re.findall(r"^\| `(\w+)`", f.read(), re.M))
    for title, text in questions(dashboard):
        unknown = with_names(text) - known
        check(with_names(text) and not unknown, "%s asks for %s, which no program has", title, unknown or "nothing")


def start_agent(stintd, agent):
    """A node with simulated GPUs that joins the sample; returns its process and port of metrics."""
    owner = stintd.owner
    owner.make("/v1/pools", {"name": "here", "allow": ["host-image"]})
    made = owner.make("/v1/admin/join-tokens", {"pool": "here", "new_types": True, "expires_in": "1h"})
    path = os.path.join(stintd.dir, "join")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
        f.write(made["token"])
    port = free_port()
    log = open(os.path.join(stintd.dir, "agent.log"), "w")
    process = subprocess.Popen(
        [agent, "--server", f"http://127.0.0.1:{stintd.port}", "--join-token-file", path, "--data",
         os.path.join(stintd.dir, "agent"), "--name", "here", "--address", "127.0.0.1", "--sim", "h100x8",
         "--exec", "sim", "--metrics", f"127.0.0.1:{port}"], stdout=log, stderr=log)
    stintd.wait(lambda: owner.get("/v1/nodes/here").status == 200 and owner.get("/v1/nodes/here").json["state"] == "ready",
                "the node is ready")
    return process, port


def start_prometheus(stintd, agent_port):
    port = free_port()
    token = os.path.join(stintd.dir, "scrape.token")
    with open(os.open(token, os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
        f.write(stintd.owner_token)
    conf = os.path.join(stintd.dir, "prometheus.yml")
    with open(conf, "w") as f:
        json.dump({
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
            "scrape_configs": [
                {"job_name": "stint", "authorization": {"credentials_file": token},
                 "static_configs": [{"targets": [f"127.0.0.1:{stintd.port}"]}]},
                {"job_name": "agents", "static_configs": [{"targets": [f"127.0.0.1:{agent_port}"]}]},
            ],
        }, f)
    log = open(os.path.join(stintd.dir, "prometheus.log"), "w")
    process = subprocess.Popen(
        ["prometheus", f"--config.file={conf}", f"--storage.tsdb.path={stintd.dir}/tsdb",
         f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
    return process, port


def ask(port, text):
    url = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": text})
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]["result"]
    except urllib.error.HTTPError as refused:
        check(refused.code == 503, "Prometheus refuses %s: %s", text, refused.read().decode())
    except OSError:
        pass  # it is still starting
    return []


def something(rows):
    """A number among the answers; one that divides by 0 is none."""
    return any(row["value"][1] != "NaN" for row in rows)


def run(program):
    if not shutil.which("prometheus"):
        print("prometheus is not installed")
        sys.exit(77)
    with open(os.path.join(SOURCE, "packaging", "stint.grafana.json")) as f:
        dashboard = json.load(f)
    is_laid_out(dashboard)
    are_documented(dashboard)
    stintd = Stintd(program, sample=True)
    others = []
    try:
        agent, agent_port = start_agent(stintd, os.path.join(os.path.dirname(program), "stint-agent"))
        others.append(agent)
        prometheus, port = start_prometheus(stintd, agent_port)
        others.append(prometheus)
        stintd.wait(lambda: ask(port, 'up{job="stint"} == 1') and ask(port, 'up{job="agents"} == 1'), "both are scraped")
        owner = stintd.owner
        owner.post("/v1/accounts", {"name": "vision"})  # is there already: refused
        left = dict.fromkeys(questions(dashboard))
        end = time.monotonic() + 60
        while left and time.monotonic() < end:
            # Something has to happen: jobs start and end.
            owner.make("/v1/jobs", {"name": "short", "account": "vision", "pool": "main", "gpus": 1, "limit": "1m",
                                    "sim": {"run": "100ms"}, "command": ["true"]})
            for question in list(left):
                if something(ask(port, question[1])):
                    del left[question]
            time.sleep(0.2)
        check(not left, "panels without data: %s", "; ".join(f"{t}: {q}" for t, q in left))
        print(f"{len(dict.fromkeys(questions(dashboard)))} questions of {len(dashboard['panels'])} panels have answers")
    finally:
        for process in others:
            process.terminate()
            process.wait()
        stintd.stop()


if __name__ == "__main__":
    main(run)
