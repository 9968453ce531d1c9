#!/usr/bin/env python3
"""The configuration is read again while stintd runs, by signal and by an owner's word: what can change does, what cannot is named, and
a file with a mistake changes nothing at all.
"""

import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(__file__))
from harness import Client, Stintd, check, fleet, main, token  # noqa: E402

BEGIN = "rate: 100000\npolicy: {notice: 5s, grace: 5s}\nquota: {tokens: 5}\n"


def story(program, stintd):
    owner = stintd.owner
    conf = os.path.join(stintd.dir, "config.yaml")
    with open(conf) as f:
        listen = f.readline()

    def write(text):
        with open(conf, "w") as f:
            f.write(listen + text)

    def reload(status=200):
        answer = owner.post("/v1/admin/reload", None)
        check(answer.status == status, "reload: %d %s", answer.status, answer.text)
        return answer.json

    def log():
        with open(stintd.log) as f:
            return f.read()

    fleet(owner, nodes=1, gpus=4)
    for name in ("team", "other"):
        owner.make("/v1/accounts", {"name": name, "guarantee": {"gpu": 2}})
    check(reload() == {"changed": [], "restart_needed": []}, "the same file changes something")

    # Nobody but an owner, whatever they say.
    secret = token(owner, "team", "ann", "admin")["token"]
    for client in (Client(stintd.port, secret), Client(stintd.port), Client(stintd.port, "stint_" + "B" * 43)):
        for body in (None, {}, {"config": "/etc/shadow"}):
            answer = client.post("/v1/admin/reload", body)
            check(answer.status in (401, 403), "a tenant reloads: %d %s", answer.status, answer.text)
    check(owner.get("/v1/admin/reload").status == 405, "it can be read")

    # What can change does: a quota of the service, and the scheduler's notice.
    made = [token(owner, "team", f"u{i}", "member") for i in range(4)]
    refused = owner.post("/v1/tokens", {"user": "more", "role": "member", "account": "team"})
    check(made and refused.status == 429, "a sixth token: %d %s", refused.status, refused.text)
    write("rate: 100000\npolicy: {notice: 0s, grace: 0s}\nquota: {tokens: 50}\n")
    check(reload() == {"changed": ["policy", "quota"], "restart_needed": []}, "%s", owner.get("/v1/audit").text)
    token(owner, "team", "more", "member")
    job = Client(stintd.port, secret).make("/v1/jobs", {"name": "j", "gpus": 4, "limit": "1h", "command": ["true"]})["id"]
    state = lambda: owner.get("/v1/jobs/" + job).json["state"]
    stintd.wait(lambda: state() == "running", "it does not run")
    answer = owner.call("PATCH", "/v1/nodes/n00", {"state": "draining", "within": "1h"})
    check(answer.status == 200, "%s", answer.text)
    owner.call("PATCH", "/v1/nodes/n00", {"state": "draining", "within": "1s"})
    stintd.wait(lambda: state() == "pending", "with no notice it leaves at once")
    owner.call("PATCH", "/v1/nodes/n00", {"state": "ready"})
    verbs = [r["verb"] for r in owner.get("/v1/audit?limit=30").json["rows"]]
    check("config.reload" in verbs and "policy.change" in verbs, "%s", verbs)

    # What cannot is named, and is named again until the next start.
    write("rate: 5\nthreads: 3\npolicy: {notice: 0s, grace: 0s}\nquota: {tokens: 50}\n")
    for _ in range(2):
        check(reload() == {"changed": [], "restart_needed": ["rate", "threads"]}, "%s", reload())

    # A mistake anywhere changes nothing, and says where it is.
    for text, words in (
        ("rates: 5\n", "rates"),
        ("policy: {notice: 1h}\nquota: {tokens: many}\n", "tokens"),
        ("policy: {notice: 1h, reclaim_bound: 99999999}\n", "reclaim_bound"),
        ("quota: {tokens: 1}\nremedy: /nowhere/at/all\n", "/nowhere/at/all"),
        ("policy: [\n", "config.yaml"),
        ("a: &a [x,x]\nb: &b [*a,*a]\npolicy: *b\n", "config.yaml"),
        ("policy: {notice: 1h}\n\x00\n", "config.yaml"),
    ):
        write("rate: 100000\n" + text)
        answer = reload(400)
        check(words in answer["detail"], "%r: %s", text, answer)
        token(owner, "team", "t" + str(abs(hash(text))), "member")  # the quota is what it was
    os.rename(conf, conf + ".away")
    check("config.yaml" in reload(answer_of_missing())["detail"], "a file that is away")
    os.rename(conf + ".away", conf)
    check(log().count("event=reload_failed") == 8, "the log has %d", log().count("event=reload_failed"))
    rows = owner.get("/v1/audit?what=config.reload_failed").json["rows"]
    check(len(rows) == 8, "%d rows", len(rows))

    # By signal the same, and by the command.
    write("rate: 100000\npolicy: {notice: 3s, grace: 0s}\nquota: {tokens: 60}\n")
    before = log().count("event=reloaded")
    stintd.process.send_signal(signal.SIGHUP)
    stintd.wait(lambda: log().count("event=reloaded") > before, "no word of it")
    check(re.findall(r"event=config_changed key=(\w+)", log())[-2:] == ["policy", "quota"], "%s", log()[-2000:])
    stintd.wait(lambda: owner.get("/v1/audit?what=config.reload").json["rows"][0]["source"] == "signal", "no row of it")
    stint = os.path.join(os.path.dirname(program), "stint")
    env = {**os.environ, "STINT_URL": f"http://127.0.0.1:{stintd.port}", "STINT_TOKEN": stintd.owner_token}
    write("rate: 5\npolicy: {notice: 4s, grace: 0s}\nquota: {tokens: 60}\n")
    said = subprocess.run([stint, "admin", "reload"], env=env, capture_output=True, text=True, timeout=60)
    check(said.stdout == "policy is in force now\nrate counts from the next start of stintd on\n", "%s%s", said.stdout, said.stderr)
    said = subprocess.run([stint, "admin", "reload"], env={**env, "STINT_TOKEN": secret}, capture_output=True, text=True, timeout=60)
    check(said.returncode != 0 and "your role (admin) cannot" in said.stderr, "%s", said.stderr)


def answer_of_missing():
    return 404


def run(program):
    stintd = Stintd(program, config=BEGIN)
    try:
        story(program, stintd)
    finally:
        stintd.stop()


main(run)
