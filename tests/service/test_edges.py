#!/usr/bin/env python3
"""The edges of the service: the unix socket, TLS from files, methods, conditions, restarts."""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))
from harness import Client, Failure, Stintd, Stream, check, fleet, main, token  # noqa: E402


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


def check_unix(stintd):
    conn = UnixConnection(stintd.socket)
    conn.request("GET", "/v1/whoami")
    who = json.loads(conn.getresponse().read())
    check(who["role"] == "owner" and who["account"] == "", "on the socket one is %s", who)
    conn.close()
    check(os.stat(stintd.socket).st_mode & 0o777 == 0o600, "others may use the socket")
    conn = UnixConnection(stintd.socket)  # a bad token is not made good by the socket
    conn.request("GET", "/v1/whoami", headers={"Authorization": "Bearer stint_" + "A" * 43})
    status = conn.getresponse().status
    check(status == 401, "a bad token on the socket: %d", status)
    conn.close()


def check_methods(stintd):
    c = stintd.owner
    answer = c.call("PUT", "/v1/jobs", {})
    check(answer.status == 405 and set(answer.header("Allow").split(", ")) >= {"GET", "POST"},
          "PUT: %d %s", answer.status, answer.header("Allow"))
    check(c.call("OPTIONS", "/v1/jobs").status == 204, "OPTIONS")
    head = c.call("HEAD", "/v1/jobs")
    check(head.status == 200 and head.body == b"", "HEAD: %d %r", head.status, head.body[:100])
    check(c.get("/v1/jobs", headers={"Accept": "text/html"}).status == 406, "Accept")


def check_roles(stintd):
    member = stintd.client(token(stintd.owner, "team", "bo", "member")["token"])
    for method, path, words in (("POST", "/v1/accounts", "create accounts"),
                                ("PATCH", "/v1/nodes/n00", "change nodes"),
                                ("PUT", "/v1/plan", "set cluster plans")):
        answer = member.call(method, path, {})
        check(answer.status == 403 and f"your role (member) cannot {words} " in answer.json["detail"],
              "%s %s: %d %s", method, path, answer.status, answer.text)
    member.close()


def check_conditions(stintd):
    c = stintd.owner
    tag = c.get("/v1/accounts/team").header("ETag")
    edit = {"weight": 3}
    check(c.call("PATCH", "/v1/accounts/team", edit).status == 428, "no If-Match")
    check(c.call("PATCH", "/v1/accounts/team", edit, {"If-Match": '"999"'}).status == 412, "a wrong tag")
    check(c.call("PATCH", "/v1/accounts/team", edit, {"If-Match": "nonsense"}).status == 412, "no tag")
    check(c.call("PATCH", "/v1/accounts/team", edit, {"If-Match": tag}).status == 200, "the tag")
    check(c.call("PATCH", "/v1/accounts/team", edit, {"If-Match": tag}).status == 412, "an old tag")
    # Where nobody looks at a condition, it is refused and not taken as met.
    for method, path in (("PUT", "/v1/accounts/team/secrets/s"), ("PATCH", "/v1/accounts/team/service-quota")):
        answer = c.call(method, path, {}, {"If-Match": '"999"'})
        check(answer.status == 400 and "no condition" in answer.text, "%s %s: %d %s", method, path, answer.status, answer.text)
    # Pools: what is not mentioned stays, and who uses it is asked.
    tag = c.get("/v1/pools/main").header("ETag")
    levels = {"levels": ["whole", "time"]}
    check(c.call("PATCH", "/v1/pools/main", levels, {"If-Match": '"0-0"'}).status == 412, "wrong")
    check(c.call("PATCH", "/v1/pools/main", levels, {"If-Match": tag}).status == 200, "pool")
    pool = c.get("/v1/pools/main").json
    check(pool["levels"] == ["whole", "time"] and pool["oversubscribe"] == 2, "the pool is %s", pool)
    job = c.make("/v1/jobs", {"name": "shares", "account": "team", "user": "x", "level": "time",
                              "share": 0.5, "sim": {"run": "7d"}})
    answer = c.call("PATCH", "/v1/pools/main", {"levels": ["whole"]}, {"If-Match": "*"})
    check(answer.status == 409 and "job shares has a place there" in answer.text, "%d %s",
          answer.status, answer.text)
    check(c.call("DELETE", "/v1/jobs/" + job["id"]).status == 200, "cancel")
    check(c.call("PATCH", "/v1/pools/main", {"levels": ["whole"]}, {"If-Match": "*"}).status == 200,
          "the pool is free now")
    check_versions(c)


def edit(c, method, path, body, tag, status, what):
    answer = c.call(method, path, body, tag)
    check(answer.status == status, "%s: %d %s", what, answer.status, answer.text)
    return answer


def check_versions(c):
    """An ETag is of an edit: what was changed and changed back is not what it was."""
    path, drain, back = "/v1/nodes/n00", {"state": "draining"}, {"state": "ready"}
    tag = {"If-Match": c.get(path).header("ETag")}
    edit(c, "PATCH", path, drain, tag, 200, "drain")
    edit(c, "PATCH", path, back, {}, 200, "back, unconditionally")
    edit(c, "PATCH", path, drain, tag, 412, "a node that was changed and changed back")
    now = c.get(path).header("ETag")
    edit(c, "PATCH", path, drain, {"If-Match": '"1", W/"2", %s' % now}, 200, "a list with the tag")
    edit(c, "PATCH", path, back, {"If-Match": '"1", "2"'}, 412, "a list without it")
    edit(c, "PATCH", path, back, {}, 200, "back again")
    path = "/v1/pools/main"
    tag = {"If-Match": c.get(path).header("ETag")}
    edit(c, "PATCH", path, {"levels": ["whole", "mig"]}, tag, 200, "a pool")
    edit(c, "PATCH", path, {"levels": ["whole"]}, {"If-Match": "*"}, 200, "the pool as it was")
    edit(c, "PATCH", path, {"levels": ["whole", "mig"]}, tag, 412, "a pool changed and changed back")
    # Plans, the account's own and the cluster's.
    for path in ("/v1/accounts/team/plan", "/v1/plan"):
        tag = {"If-Match": c.get(path).header("ETag")}
        edit(c, "PUT", path, {"discount": 5}, tag, 200, "a plan")
        edit(c, "PUT", path, {"discount": 6}, tag, 412, "a plan with an old tag")
        edit(c, "PUT", path, {"discount": 6}, {"If-None-Match": "*"}, 412, "a plan is there")
        edit(c, "PUT", path, {"discount": 0}, {}, 200, "a plan without a condition")
    # Small documents: the version is in the list, and in the answer to the edit.
    for path, kind, one, two in (("/v1/sizes/mine", "sizes", {"gpus": 1}, {"gpus": 2}),
                                 ("/v1/images/mine", "images", {"folder": "/srv/a", "accounts": "all"},
                                  {"folder": "/srv/b", "accounts": "all"})):
        edit(c, "PUT", path, one, {"If-Match": "*"}, 412, "there is none to replace")
        made = edit(c, "PUT", path, one, {"If-None-Match": "*"}, 200, "the first").header("ETag")
        edit(c, "PUT", path, two, {"If-None-Match": "*"}, 412, "one is there")
        row = [r for r in c.get("/v1/" + kind).json[kind] if r["name"] == "mine"][0]
        check('"%d"' % row["version"] == made, "%s: version %s, tag %s", kind, row, made)
        edit(c, "PUT", path, two, {"If-Match": made}, 200, "the tag")
        edit(c, "PUT", path, one, {"If-Match": made}, 412, "the same tag again")
        edit(c, "DELETE", path, None, {"If-Match": made}, 412, "removed with an old tag")
        edit(c, "DELETE", path, None, {}, 204, "removed")
        edit(c, "PUT", path, one, {}, 200, "made again")
        edit(c, "PUT", path, two, {"If-Match": made}, 412, "another one of the name")
        edit(c, "DELETE", path, None, {"If-Match": "*"}, 204, "removed")
    # An account that goes and comes back has no version it had before.
    c.make("/v1/accounts", {"name": "fleeting"})
    tag = {"If-Match": c.get("/v1/accounts/fleeting").header("ETag")}
    edit(c, "DELETE", "/v1/accounts/fleeting", None, tag, 204, "removed")
    c.make("/v1/accounts", {"name": "fleeting"})
    edit(c, "DELETE", "/v1/accounts/fleeting", None, tag, 412, "another account")
    edit(c, "DELETE", "/v1/accounts/fleeting", None, {}, 204, "removed")


def check_unchanged(stintd):
    """What the caller has is not sent again; what has changed is."""
    c = stintd.owner
    for path in ("/v1/accounts/team", "/v1/accounts", "/v1/pools/main", "/v1/nodes/n00", "/v1/plan", "/v1/sizes",
                 "/v1/whoami", "/openapi.json", "/v1/jobs"):
        first = c.get(path)
        tag = first.header("ETag")
        check(first.status == 200 and tag, "%s has no tag", path)
        for seen in (tag, '"other", ' + tag, "*", "W/" + tag.removeprefix("W/")):
            again = c.call("GET", path, headers={"If-None-Match": seen})
            check(again.status == 304 and again.text == "" and again.header("ETag") == tag,
                  "%s with %s: %d %s", path, seen, again.status, again.text[:200])
        check(c.call("GET", path, headers={"If-None-Match": '"other"'}).status == 200, "%s, another tag", path)
    packed = c.call("GET", "/openapi.json", headers={"Accept-Encoding": "gzip"})
    check(packed.header("Vary") == "Accept-Encoding", "a cache must know: %s", packed.headers)
    # A node's tag is also of who is on it, an edit of it is not lost by that.
    path = "/v1/nodes/n00"
    before = c.get(path).header("ETag")
    job = c.make("/v1/jobs", {"name": "there", "account": "team", "user": "x", "gpus": 1, "sim": {"run": "7d"}})
    where = [n["name"] for n in c.get("/v1/nodes").json["nodes"] if job["id"] in n["jobs"]]
    if where == ["n00"]:
        check(c.call("GET", path, headers={"If-None-Match": before}).status == 200, "a job came to the node")
    edit(c, "PATCH", path, {"state": "ready"}, {"If-Match": before}, 200, "its state is the same")
    check(c.call("DELETE", "/v1/jobs/" + job["id"]).status == 200, "cancel")


def check_strict(stintd):
    """What a document says is meant: nothing is dropped, and text is no number."""
    c = stintd.owner

    def refused(method, path, body, key):
        answer = c.call(method, path, body)
        check(answer.status == 400 and key in answer.text, "%s %s %s: %d %s", method, path, body,
              answer.status, answer.text)

    for key, value in (("gpuss", None), ("gpus", None), ("gpus", "1"), ("tasks", "2"), ("cpu", "1.5"),
                       ("priority", "5"), ("workdir", True), ("workdir", 5), ("name", 5),
                       ("script", True), ("user", True), ("estimate", []), ("estimate", True),
                       ("estimate", None), ("array", None), ("signal", []), ("signal", None),
                       ("command", [1]), ("model", True)):
        for more in ({}, {"size": "small"}):
            refused("POST", "/v1/jobs", {"account": "team", **more, key: value}, key)
        refused("POST", "/v1/jobs?dry_run=true", {"account": "team", key: value}, key)
    check(c.post("/v1/jobs", {"account": "team", "gpus": 1, "labels": {"epoch": 3}, "signal": 15,
                              "sim": {"run": "1s"}}).status == 201, "numbers where they are meant")
    check(c.call("POST", "/v1/jobs", "account: team\nname: 5\ngpus: '1'\nsim: {run: 1s}\n",
                 kind="application/yaml").status == 201, "quotes are a matter of taste in YAML")
    refused("POST", "/v1/accounts", {"name": "b", "weight": "5"}, "weight")
    refused("POST", "/v1/accounts", {"name": True}, "name")
    refused("POST", "/v1/tokens", {"account": "team", "user": 5, "role": "member"}, "user")
    refused("POST", "/v1/pools", {"name": 5}, "name")
    refused("PUT", "/v1/sizes/s1", {"gpus": "1"}, "gpus")
    # A script that fails refuses the job: the service itself is well.
    slow = "function submit(job, who) while true do end end"
    check(c.call("PUT", "/v1/rules/slow", slow, kind="text/plain").status == 200, "a rule")
    answer = c.post("/v1/jobs", {"account": "team", "gpus": 1})
    check(answer.status == 403 and answer.code == "refused" and "rule slow" in answer.text and
          "mended" in answer.text, "a slow rule: %d %s", answer.status, answer.text)
    check(c.call("DELETE", "/v1/rules/slow").status in (200, 204), "the rule goes")


def check_backups(program):
    """Where no backup can be written it is the caller's to mend, and said in a sentence."""
    for place in ("/proc/no/such/folder", "/dev/null"):
        stintd = Stintd(program, config=f"backup_dir: {place}\n")
        try:
            for name in ("a.db", "a/b", "..", "/nowhere/a"):
                answer = stintd.owner.post("/v1/admin/backup", {"file": name})
                check(answer.status in (400, 409) and "backup" in answer.json["detail"],
                      "%s in %s: %d %s", name, place, answer.status, answer.text)
        finally:
            stintd.stop()


def check_config(program):
    """Every key is refused with its line, or applied, or said to need a restart."""
    for text, words in (("agent_lease: 0s", "config.yaml:2: key \"agent_lease\""),
                        ("engine: none", "config.yaml:2: engine cannot be none"),
                        ("logs: /dev/null", "logs: /dev/null cannot be used"),
                        ("logs: /proc/no/such", "logs: /proc/no/such cannot be used")):
        try:
            Stintd(program, config=text + "\n").stop()
            said = "it started"
        except Failure as failure:
            said = str(failure)
        check(words in said, "%s: %s", text, said)
    stintd = Stintd(program, config="store: /nowhere/a.db\nsocket: /nowhere/a.sock\nrate: 1000\n")

    def said(words):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            with open(stintd.log) as f:
                text = f.read()
            if words in text:
                return text
            time.sleep(0.05)
        raise Failure(f"no {words} in {text}")

    try:
        said("event=config_overruled key=store by=--data")
        said("event=config_overruled key=socket by=--data")
        conf = os.path.join(stintd.dir, "config.yaml")
        with open(conf) as f:
            text = f.read()
        with open(conf, "w") as f:
            f.write(text.replace("rate: 1000", "rate: 2000\npolicy: {min_run: 7m}"))
        stintd.process.send_signal(signal.SIGHUP)
        log = said("event=reloaded")
        keys = re.findall(r"event=restart_needed key=(\w+)", log)
        check(keys == ["rate"], "to be restarted for: %s", keys)
        check(re.findall(r"event=config_changed key=(\w+)", log) == ["policy"], "changed: %s", log)
        with open(conf, "w") as f:
            f.write("rates: 5\n")
        stintd.process.send_signal(signal.SIGHUP)
        check("rates" in said("event=reload_failed"), "why it failed")
        check(stintd.owner.get("/v1/whoami").status == 200, "it goes on")
    finally:
        stintd.stop()


def check_restart(program, stintd):
    """A start later everything is as it was: pools, tokens, ids; streams begin anew."""
    secret = token(stintd.owner, "team", "ann", "member")["token"]
    stream = Stream(stintd.port, secret)
    job = stintd.client(secret).make("/v1/jobs", {"name": "stays", "gpus": 1, "sim": {"run": "7d"}})
    check(stream.wait(lambda s: len(s.events()) >= 2), "no events")
    last = stream.events()[0][0]
    pools = stintd.owner.get("/v1/pools").text
    stintd.owner.close()
    stintd.process.send_signal(signal.SIGTERM)
    check(stintd.process.wait(30) == 0, "it did not stop well")
    check(stream.wait(lambda s: any(e[1] == "bye" for e in s.events())), "no bye")
    stream.close()
    args = list(stintd.process.args)
    with open(stintd.log, "w") as log:
        stintd.process = subprocess.Popen(args, stdout=subprocess.DEVNULL, stderr=log)
    stintd.port = stintd._port()
    stintd.owner = Client(stintd.port, stintd.owner_token)
    check(stintd.owner.get("/v1/pools").text == pools, "the pools are others")
    again = stintd.client(secret).get("/v1/jobs/" + job["id"])
    check(again.status == 200 and again.json["state"] == "running", "the job: %s", again.text)
    stream = Stream(stintd.port, secret, last=last)
    check(stream.wait(lambda s: s.events()), "no reset")
    check(stream.events()[0][1] == "reset", "after a restart: %s", stream.events())
    stream.close()


def check_tls(program):
    if not shutil.which("openssl"):
        return "openssl is not there"
    stintd = Stintd(program)
    folder = stintd.dir
    cert, key = (os.path.join(folder, name) for name in ("cert.pem", "key.pem"))
    try:
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", cert,
                        "-days", "1", "-subj", "/CN=localhost", "-addext",
                        "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
        secure = Stintd(program, config=f"tls_cert: {cert}\ntls_key: {key}\n")
        try:
            context = ssl.create_default_context(cafile=cert)
            conn = http.client.HTTPSConnection("127.0.0.1", secure.port, context=context)
            conn.request("GET", "/v1/whoami",
                         headers={"Authorization": "Bearer " + secure.owner_token})
            check(conn.getresponse().status == 200, "TLS")
            conn.close()
            raw = context.wrap_socket(socket.create_connection(("127.0.0.1", secure.port)),
                                      server_hostname="127.0.0.1")
            raw.sendall(b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: ten\r\n\r\n")
            text = b"".join(iter(lambda: raw.recv(65536), b"")).decode()
            check(text.startswith("HTTP/1.1 400 ") and "problem+json" in text and text.count("\r\n\r\n") == 1,
                  "a Content-Length that is none, over TLS: %s", text)
            raw.close()
            secure.process.send_signal(signal.SIGHUP)  # reads them again, and goes on
            secure.wait(lambda: "event=reloaded" in open(secure.log).read(), "the reload")
            conn = http.client.HTTPSConnection("127.0.0.1", secure.port, context=context)
            conn.request("GET", "/healthz")
            check(conn.getresponse().status == 200, "TLS after a reload")
            conn.close()
        finally:
            secure.stop()
    finally:
        stintd.stop()
    return "TLS"


def run(program):
    stintd = Stintd(program)
    try:
        fleet(stintd.owner)
        stintd.owner.make("/v1/accounts", {"name": "team"})
        check_unix(stintd)
        check_methods(stintd)
        check_roles(stintd)
        check_conditions(stintd)
        check_unchanged(stintd)
        check_strict(stintd)
        check_restart(program, stintd)
    finally:
        stintd.stop()
    check_backups(program)
    check_config(program)
    print("socket, methods, conditions, a restart;", check_tls(program))


if __name__ == "__main__":
    main(run)
