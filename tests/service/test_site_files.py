#!/usr/bin/env python3
"""stint admin export and import: an export of an export is the same, its import changes nothing, what differs is shown and then made so,
all of it or nothing; files that lie, bomb or reach for what is others' do no harm.
"""

import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(__file__))
from harness import Client, Stintd, check, main, token  # noqa: E402

SECRET = "hunter2-of-the-vault"
PRICES = {"prices": "p1", "gpu": {"*": {"reserved": "1.80", "burst": "2.20"}}, "cpu": "0.01"}
RULE = "function submit(job)\n  return job\nend\n"


class Site:
    def __init__(self, program, stintd):
        self.stintd, self.owner = stintd, stintd.owner
        self.stint = os.path.join(os.path.dirname(program), "stint")
        self.dir = os.path.join(stintd.dir, "site")

    def run(self, *words, token=None, status=0):
        env = {**os.environ, "STINT_URL": f"http://127.0.0.1:{self.stintd.port}", "STINT_TOKEN": token or self.stintd.owner_token}
        done = subprocess.run([self.stint, "admin", *words], env=env, capture_output=True, text=True, timeout=60)
        fine = done.returncode == 0 if status == 0 else done.returncode != 0
        check((fine or status is None) and 0 <= done.returncode < 128 and done.returncode != 70,
              "%s: %d %s%s", words, done.returncode, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def files(self, name="site"):
        base, found = os.path.join(self.stintd.dir, name), {}
        for folder, _, names in os.walk(base):
            for n in names:
                with open(os.path.join(folder, n)) as f:
                    found[os.path.relpath(os.path.join(folder, n), base)] = f.read()
        return found

    def read(self, name):
        with open(os.path.join(self.dir, name)) as f:
            return json.load(f)

    def write(self, name, what):
        with open(os.path.join(self.dir, name), "w") as f:
            f.write(what if isinstance(what, str) else json.dumps(what))

    def export(self, name="site"):
        return self.run("export", os.path.join(self.stintd.dir, name))


def set_up(owner):
    owner.make("/v1/types", {"name": "h100"})
    owner.make("/v1/pools", {"name": "main", "ram_per_gpu": "64Gi", "booking_horizon": "30d", "booking_share": 0.5, "cpu_per_gpu": 4.5})
    owner.make("/v1/pools", {"name": "spare", "levels": ["whole"]})
    owner.make("/v1/nodes", {"name": "n1", "pool": "main", "gpu": "h100", "gpus": 8})
    owner.make("/v1/accounts", {"name": "acme", "guarantee": {"gpu": 8}})
    owner.make("/v1/accounts", {"name": "vision", "parent": "acme", "guarantee": {"gpu": 4}, "max": {"gpu": 6, "ram": "1Ti"},
                                "min_run": "5m", "limits": {"job": {"run": "24h", "vram": "80Gi"}}})
    owner.make("/v1/accounts", {"name": "speech", "parent": "acme", "guarantee": {"gpu": 4}})
    owner.make("/v1/prices", PRICES)
    for path, body in (("classes/urgent", {"lowest": 300, "highest": 400, "priority": 300, "roles": ["owner"]}),
                       ("sizes/tiny", {"gpus": 1, "cpu": 2, "ram": "8Gi"})):
        answer = owner.call("PUT", "/v1/" + path, body)
        check(answer.status == 200, "%s: %s", path, answer.text)
    for method, path, body in (("PUT", "/v1/images/torch", {"folder": "/srv/torch", "accounts": ["vision"], "about": "2.4"}),
                               ("PUT", "/v1/images/all", {"layout": "/srv/all", "digest": "sha256:" + "ab" * 32, "accounts": "all", "trust": "untrusted"}),
                               ("PUT", "/v1/accounts/acme/plan", {"discount": "12.5%", "chargeback": True, "budget": "500", "warn": ["50%", "90%"]}),
                               ("PUT", "/v1/accounts/vision/plan", {"cap": "100000", "at_cap": "stop", "grace": "5m", "burst": 2}),
                               ("PUT", "/v1/plan", {"discount": "1%"}),
                               ("PATCH", "/v1/accounts/vision/service-quota", {"notices": 7, "requests": 50})):
        answer = owner.call(method, path, body)
        check(answer.status == 200, "%s %s: %d %s", method, path, answer.status, answer.text)
    check(owner.call("PUT", "/v1/rules/r1", RULE.encode(), kind="text/x-lua").status == 200, "no rule")
    check(owner.call("PUT", "/v1/accounts/vision/secrets/vault", SECRET.encode(), kind="application/octet-stream").status < 300, "no secret")


def round_trip(site):
    site.export()
    first = site.files()
    check(sorted(first) == ["accounts.json", "classes.json", "images.json", "plans.json", "pools.json", "prices.json", "quotas.json",
                             "rules/r1.lua", "sizes.json"], "%s", sorted(first))
    everything = "".join(first.values())
    check(SECRET not in everything and site.stintd.owner_token not in everything, "a secret is exported")
    check("vault" not in everything and "stint_" not in everything, "names of secrets or tokens are exported")
    check([a["name"] for a in site.read("accounts.json")] == ["acme", "speech", "vision"], "the order is not of names")
    check(first["rules/r1.lua"] == RULE, "%r", first["rules/r1.lua"])
    rows = len(site.owner.get("/v1/audit?limit=1000").json["rows"])
    check(site.run("import", site.dir) == "nothing differs\n", "an import of an export is a change")
    check(len(site.owner.get("/v1/audit?limit=1000").json["rows"]) == rows, "it left rows in the audit log")
    site.export("again")
    check(site.files("again") == first, "a second export is another one")


def change(site):
    """Shown first, then made so; what grows waits for what shrinks, children for parents."""
    accounts = site.read("accounts.json")
    of = {a["name"]: a for a in accounts}
    of["vision"].update(guarantee={"gpu": 6}, max={"gpu": 7}, limits={"job": {"run": "12h"}, "user": {}, "booking": {}})
    of["speech"]["guarantee"] = {"gpu": 1}
    accounts.insert(0, {"name": "a-child", "parent": "zz-parent"})
    accounts.append({"name": "zz-parent", "parent": "acme", "guarantee": {"gpu": 1}})
    site.write("accounts.json", accounts)
    pools = site.read("pools.json")
    pools[0]["ram_per_gpu"] = "32Gi"
    site.write("pools.json", pools)
    site.write("rules/r2.lua", RULE)
    prices = site.read("prices.json")
    prices[0]["cpu"], prices[0]["prices"] = "0.02", "p2"
    site.write("prices.json", prices)
    plans = site.read("plans.json")
    check([p["name"] for p in plans] == ["*", "acme", "vision"], "%s", plans)
    plans[2]["cap"], plans[0]["discount"] = "200000", "2%"
    plans.append({"name": "speech", "budget": "50"})
    site.write("plans.json", plans)
    site.write("quotas.json", [{"name": "vision", "notices": 9, "requests": 50}, {"name": "speech", "volumes": 3}])
    images = site.read("images.json")
    images[1]["about"] = "2.5"
    images.append({"name": "new", "folder": "/srv/new", "accounts": ["zz-parent"]})
    site.write("images.json", images)
    before = site.owner.get("/v1/accounts").text
    said = site.run("import", "--diff", site.dir)
    for words in ("~ account \"vision\"", "guarantee\": {\"gpu\":4} -> {\"gpu\":6}", "+ account \"zz-parent\"", "+ rule \"r2\"",
                  "~ pool \"main\"", "+ price book \"p2\"", "~ plan of account \"vision\"", "~ plan of account \"*\"", "+ plan of account \"speech\"",
                  "+ quota of account \"speech\"", "notices\": 7 -> 9", "~ image \"torch\"", "+ image \"new\""):
        check(words in said, "%s is not in %s", words, said)
    check("speech" in said and "spare" not in said and "\"all\"" not in said, "%s", said)
    check(site.owner.get("/v1/accounts").text == before, "a look changed something")
    check("14 changed" in site.run("import", site.dir), "not all is changed")
    plan = site.owner.get("/v1/accounts/vision/plan").json
    check((plan["cap"], plan["at_cap"], plan["burst_gpus"]) == ("200000.00", "stop", 2), "%s", plan)
    quota = {q["name"]: q["set"] for q in site.owner.get("/v1/accounts/vision/service-quota").json["quota"]}
    check((quota["notices"], quota["requests"], quota["volumes"]) == (9, 50, None), "%s", quota)
    check(site.owner.get("/v1/images/torch").json["about"] == "2.5", "the image is what it was")
    vision = site.owner.get("/v1/accounts/vision").json
    check((vision["guarantee"], vision["max"], vision["limits"]["job"]) == ({"gpu": 6}, {"gpu": 7}, {"run_seconds": 43200}), "%s", vision)
    check(site.owner.get("/v1/accounts/a-child").json["parent"] == "zz-parent", "the child is elsewhere")
    check(site.owner.get("/v1/pools/main").json["ram_per_gpu_mib"] == 32768, "the pool is what it was")
    check([p["prices"] for p in site.owner.get("/v1/prices").json["prices"] if p["in_force"]] == ["p2"], "other prices are in force")
    site.export()
    check(site.run("import", site.dir) == "nothing differs\n", "it differs after an export")


def nothing_by_halves(site):
    """One that is refused for good takes all others back."""
    was = site.files()
    accounts = site.read("accounts.json")
    of = {a["name"]: a for a in accounts}
    of["speech"].update(weight=7, min_run="9m", max={"gpu": 8})
    accounts.append({"name": "newcomer", "parent": "acme"})
    of["vision"]["guarantee"] = {"gpu": 5000}
    site.write("accounts.json", accounts)
    site.write("rules/r3.lua", RULE)
    site.write("quotas.json", [{"name": "vision", "notices": 11}, {"name": "acme", "volumes": 5}])
    site.write("images.json", [{"name": "torch", "folder": "/srv/other", "accounts": "all"}, {"name": "late", "folder": "/srv/late", "accounts": "all"}])
    plans = site.read("plans.json")
    plans[1]["discount"] = "99%"
    site.write("plans.json", plans)
    said = site.run("import", site.dir, status=1)
    check("account \"vision\"" in said and "nothing was changed" in said, "%s", said)
    site.export("after")
    check(site.files("after") == was, "something stayed: %s", said)
    check(site.owner.get("/v1/accounts/newcomer").status == 404, "the newcomer is there")
    # What cannot be read is said before anything is sent; so is what names nothing.
    rows = len(site.owner.get("/v1/audit?limit=1000").json["rows"])
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(12))
    for text, words in (
        ("[{", "accounts.json"), ("{}", "expected a list"), ("[{\"weight\": 1}]", "has no \"name\""), ("[7]", "has no \"name\""),
        ("[{\"name\": \"x\"}, {\"name\": \"x\"}]", "twice"), (bomb, "accounts.json"), ("[" * 100000, "accounts.json"),
        ("[{\"name\": \"" + "x" * (17 << 20) + "\"}]", "accounts.json"), ("- name: \x00\n", "accounts.json"),
    ):
        site.write("accounts.json", text)
        said = site.run("import", site.dir, status=1)
        check(words in said and len(said) < 2000, "%r: %s", text[:40], said[:400])
    check(len(site.owner.get("/v1/audit?limit=1000").json["rows"]) == rows, "something was sent")
    check("is no folder" in site.run("import", "/nowhere/at/all", status=1), "no word of it")
    os.unlink(os.path.join(site.dir, "rules/r3.lua"))
    # Names that act on a shell, a path or a terminal are names; the service takes or refuses them.
    for name in ("$(touch pwned)", "../../etc/passwd", "\x1b]0;owned\x07", "a/../b", "x;rm -rf ~"):
        site.write("accounts.json", [{"name": name}])
        said = site.run("import", site.dir, status=None)
        check("\x1b" not in said and "\x07" not in said, "it acts on a terminal: %r", said)
    check(not os.path.exists("pwned"), "a name was run")
    site.export()


def tenants(site):
    """An admin of a team makes its own what files say, and nobody else's."""
    admin = token(site.owner, "vision", "ann", "admin")["token"]
    os.makedirs(os.path.join(site.stintd.dir, "team"))
    base = os.path.join(site.stintd.dir, "team")

    def write(rows):
        with open(os.path.join(base, "accounts.json"), "w") as f:
            json.dump(rows, f)

    write([{"name": "mine", "parent": "vision", "weight": 2}])
    check("1 changed" in site.run("import", base, token=admin), "it may not make its own")
    check(site.run("import", base, token=admin) == "nothing differs\n", "twice is another time")
    before = site.owner.get("/v1/accounts").text
    for row in ({"name": "speech", "weight": 9}, {"name": "acme", "max": {"gpu": 1}}, {"name": "vision", "guarantee": {"gpu": 8}},
                {"name": "thief", "parent": "speech"}):
        write([{"name": "mine", "parent": "vision", "weight": 5}, row])
        said = site.run("import", base, token=admin, status=1)
        check("nothing was changed" in said, "%s: %s", row, said)
        check("gpu\":4" not in said and "weight\":1" not in said, "it is told what others have: %s", said)
    after = site.owner.get("/v1/accounts").json["accounts"]
    drop = lambda rows: [{k: v for k, v in a.items() if k != "version"} for a in rows]
    check(drop(after) == drop(json.loads(before)["accounts"]), "%s", after)
    for name, role in (("vision", "member"), ("vision", "viewer")):
        secret = token(site.owner, name, "u" + role, role)["token"]
        write([{"name": "mine", "weight": 3}])
        check("nothing was changed" in site.run("import", base, token=secret, status=1), "a %s changes it", role)
    # What it may not list it cannot export.
    said = site.run("export", os.path.join(site.stintd.dir, "loot"), token=admin, status=1)
    loot = "".join(site.files("loot").values())
    check("speech" not in loot and "acme" not in loot.replace("\"parent\": \"acme\"", ""), "%s %s", said, loot)


def story(program, stintd):
    site = Site(program, stintd)
    set_up(site.owner)
    round_trip(site)
    change(site)
    nothing_by_halves(site)
    tenants(site)


def run(program):
    stintd = Stintd(program)
    try:
        story(program, stintd)
    finally:
        stintd.stop()


main(run)
