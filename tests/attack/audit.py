#!/usr/bin/env python3
"""The audit log, backups and exports: what is written down, who may see it, and what names and cells may hold."""

import csv
import glob
import io
import os
import subprocess
import time

from attack import attempt, until, wall
from harness import Client, check

BIDI = "\u202a \u202b \u202c \u202d \u202e \u2066 \u2067 \u2068 \u2069 \u200e \u200f \u061c \u200b \u200d \ufeff \u2028 \u0085 \u00ad".split(" ")


def audit(person, **query):
    text = "&".join(f"{k}={v}" for k, v in query.items())
    answer = person.get("/v1/audit?limit=1000&" + text)
    check(answer.status == 200, "audit: %d %s", answer.status, answer.text[:200])
    return answer.json["rows"]


def backup(site, name):
    return site.owner.post("/v1/admin/backup", {"file": name})


# ---- backups --------------------------------------------------------------------------------------------------

@attempt("an owner, or who has stolen its token", "writes a backup elsewhere", "refusals that name the folder")
def backup_paths(site):
    before = set(glob.glob(site.dir + "/*"))
    for name in ("/etc/passwd", "../x.db", "a/b.db", "..", ".", "", ".hidden", "x\u0000y", "x\ny", "~/x", "-rf", "$(id)",
                 "a" * 200, site.dir + "/stint.db", "\u202ex.db"):
        site.refused(backup(site, name), "")
    for body in ({"file": ["a"]}, {"file": {"a": 1}}, {"path": "/x"}, {"file": "a.db", "force": True}, []):
        site.refused(site.owner.post("/v1/admin/backup", body), "")
    check(set(glob.glob(site.dir + "/*")) - before <= {site.dir + "/backups"}, "files were made")


@attempt("the same", "overwrites a backup, a link and a folder in the folder", "409 each time, and all as it was")
def backup_overwrites(site):
    check(backup(site, "first.db").status == 201, "no backup")
    folder = glob.glob(site.dir + "/**/backups", recursive=True)[0]
    first = os.stat(folder + "/first.db")
    check(first.st_mode & 0o777 == 0o600, "others can read it: %o", first.st_mode)
    site.refused(backup(site, "first.db"), "already", 409)
    victim = os.path.join(site.dir, "victim")
    with open(victim, "w") as f:
        f.write("whole")
    os.symlink(victim, folder + "/link.db")
    os.symlink(site.dir + "/not-there", folder + "/dangling.db")
    os.mkdir(folder + "/folder.db")
    os.mkfifo(folder + "/fifo.db")
    for name in ("link.db", "dangling.db", "folder.db", "fifo.db"):
        site.refused(backup(site, name), "already", 409)
    with open(victim) as f:
        check(f.read() == "whole", "the link was followed")
    check(not os.path.exists(site.dir + "/not-there"), "a dangling link was followed")
    again = os.stat(folder + "/first.db")
    check((again.st_ino, again.st_mtime_ns) == (first.st_ino, first.st_mtime_ns), "it was replaced")
    check(not [n for n in os.listdir(folder) if n.startswith(".stint-backup")], "folders are left: %s", os.listdir(folder))


@attempt("the same", "backs up while the folder is a file", "a refusal, not a failure of the service")
def backup_folder_gone(site):
    folder = os.path.join(site.dir, "backups")
    folder = (glob.glob(site.dir + "/**/backups", recursive=True) or [folder])[0]
    os.rename(folder, folder + ".aside")
    with open(folder, "w") as f:
        f.write("")
    try:
        site.refused(backup(site, "x.db"), "", 409)
    finally:
        os.remove(folder)
        os.rename(folder + ".aside", folder)
    until(lambda: audit(site.owner, what="store.backup_failed"), "a row of its failure")


@attempt("admins, members and auditors", "ask for a backup", "that their role cannot")
def backup_roles(site):
    for person in (site.acme, site.rival_admin, site.token("", "inge", "auditor")):
        site.refused(person.post("/v1/admin/backup", {"file": "mine.db"}), "role", 403)
    check(len(audit(site.owner, what="store.backup")) >= 1, "a backup left no row")


# ---- rows ------------------------------------------------------------------------------------------------------

@attempt("a stranger", "tries 3,000 tokens", "a few rows with their number, and none in a tenant's log")
def refused_logins(site):
    bad = Client(site.stintd.port, "stint_" + "C" * 43)
    for _ in range(3000):
        check(bad.get("/v1/whoami").status in (401, 429), "a token that is none was taken")
    until(lambda: sum(r["detail"]["times"] for r in audit(site.owner, what="login.refused")) >= 100, "rows of refusals")
    rows = audit(site.owner, what="login.refused")
    check(len(rows) < 40, "%d rows", len(rows))
    check(audit(site.rival_admin, what="login") == [], "a tenant sees them")


@attempt("an admin of rival", "filters by names, verbs and times of others", "its own rows alone")
def filters_leak_nothing(site):
    site.acme.job(pool="paper", sim={"run": "1s"}, name="unseen")
    for query in ({}, {"by": "ada"}, {"by": "root"}, {"what": "job"}, {"what": "store"}, {"since": "1d"}, {"by": "boss"}):
        for row in audit(site.rival_admin, **query):
            check(row["account"] in ("rival", "rival-lab"), "%s: %s", query, row)
            check(row["actor"] in ("max", "mallory", "lara", "an account above yours"), "%s: %s", query, row)
    check(audit(site.rival_admin, by="root") == [], "the owner's name was confirmed")
    check(audit(site.rival_admin, by="ada") == [], "ada's name was confirmed")


@attempt("the same", "puts SQL, wildcards and broken times into the filters", "refusals or nothing")
def filters_are_values(site):
    for query in ("by=%25", "by=_", "by=a%27%20OR%201=1--", "what=%25", "what=job%27--", "what=*", "since=0", "since=now",
                  "until=9999999999999999999d", "since=-1h", "by=", "what=", "cursor=a0000000", "limit=-5"):
        answer = site.rival_admin.get("/v1/audit?" + query)
        check(answer.status in (200, 400), "%s: %d", query, answer.status)
        for row in answer.json.get("rows", []) if answer.status == 200 else []:
            check(row["account"] in ("rival", "rival-lab"), "%s: %s", query, row)


@attempt("an auditor of rival", "exports bills in every format", "a row for each, in its own log")
def exports(site):
    auditor = site.token("rival", "aud", "auditor")
    for fmt in ("csv", "html", "focus", "file"):
        check(auditor.get(f"/v1/bills/open?account=rival&format={fmt}").status == 200, "no export as %s", fmt)
    got = [r["detail"]["format"] for r in audit(site.rival_admin, what="bill.export") if r["actor"] == "aud"]
    check(sorted(got) == ["csv", "file", "focus", "html"], "%s", got)
    check(audit(site.token("acme", "aa", "admin"), what="bill.export") == [], "acme sees rival's exports")


@attempt("members and viewers", "read and verify the log", "that their role cannot")
def log_roles(site):
    for person in (site.acme, site.token("acme", "vv", "viewer")):
        site.refused(person.get("/v1/audit"), "role", 403)
        site.refused(person.get("/v1/audit/verify"), "role", 403)
    site.refused(site.rival_admin.get("/v1/audit/verify"), "role", 403)


@attempt("a member", "removes a token that is good, another's, and its own dead one", "only the last is taken off")
def token_removal(site):
    good = site.owner.make("/v1/tokens", {"account": "rival", "user": "mallory", "role": "viewer"})
    other = site.owner.make("/v1/tokens", {"account": "acme", "user": "ada", "role": "viewer"})
    site.refused(site.rival.call("DELETE", f"/v1/tokens/{good['id']}?remove=true"), "revoke it first", 409)
    site.refused(site.rival.call("DELETE", f"/v1/tokens/{other['id']}?remove=true"), "no token", 404)
    check(site.rival.call("DELETE", "/v1/tokens/" + good["id"]).status == 204, "cannot revoke")
    check(site.rival.call("DELETE", f"/v1/tokens/{good['id']}?remove=true").status == 204, "cannot remove")
    site.refused(site.rival.get("/v1/tokens/" + good["id"]), "no token", 404)
    site.refused(site.person(good["token"]).get("/v1/whoami"), "", 401)
    verbs = [r["verb"] for r in audit(site.owner, by="mallory", what="token") if r["target"] == good["id"]]
    check(verbs == ["token.remove", "token.revoke"], "%s", verbs)
    fresh = site.owner.make("/v1/tokens", {"account": "rival", "user": "mallory", "role": "viewer"})
    check(fresh["id"] != good["id"], "a number was given again")


# ---- names and cells ---------------------------------------------------------------------------------------------

@attempt("whoever may name something", "puts characters into it that turn or hide text", "refusals, each noun")
def bidi_names(site):
    for mark in BIDI:
        name = "a" + mark + "b"
        for answer in (
                site.rival.submit(pool="paper", name=name),
                site.rival_admin.submit(pool="paper", user=name),
                site.rival.submit(pool="paper", labels={name: "v"}),
                site.rival.submit(pool="paper", labels={"k": name}),
                site.rival_admin.post("/v1/accounts", {"name": name, "parent": "rival"}),
                site.rival_admin.post("/v1/tokens", {"user": name, "role": "viewer", "account": "rival"}),
                site.rival_admin.post("/v1/tokens", {"user": "u", "role": "viewer", "account": "rival", "label": name}),
                site.owner.post("/v1/pools", {"name": name}),
                site.owner.post("/v1/types", {"name": name, "vram": "1Gi"}),
                site.owner.post("/v1/nodes", {"name": name, "pool": "paper", "gpu": "h100"}),
                site.owner.post("/v1/nodes", {"name": "okn", "pool": "paper", "gpu": "h100", "rack": name})):
            site.refused(answer, "")
    from urllib.parse import quote

    for mark in BIDI:
        for path, body in ((f"/v1/sizes/{quote('a' + mark)}", {"gpus": 1}),
                           (f"/v1/accounts/rival/secrets/{quote('a' + mark)}", "v")):
            site.refused(site.rival_admin.call("PUT", path, body), "")
        site.refused(site.owner.call("PUT", f"/v1/rules/{quote('a' + mark)}", "function submit(j) return j end"), "")


@attempt("a member of rival", "names jobs so that a spreadsheet runs them", "cells that are text, in every CSV")
def csv_cells(site):
    names = ["=1+1", "+cmd|'/C_calc'!A0", "-2+3+cmd", "@SUM(A1:A9)", '=HYPERLINK("http://x")']
    for name in names:
        check(site.rival.submit(pool="paper", name=name, sim={"run": "1s"}).status in (201, 400), "neither taken nor refused")
    site.rival_admin.post("/v1/accounts", {"name": "=1+1", "parent": "rival"})
    site.rival_admin.post("/v1/tokens", {"user": "=cmd", "role": "viewer", "account": "rival", "label": "@x"})
    env = {**os.environ, "STINT_URL": site.server(), "STINT_TOKEN": site.secrets["rival_admin"]}
    texts = [site.rival_admin.get(p).text for p in (
        "/v1/bills/open?account=rival&format=csv", "/v1/bills/open?account=rival&format=focus",
        "/v1/bills/open/entries?account=rival&format=csv")]
    stint = os.path.join(os.path.dirname(os.environ["STINTD"]), "stint")
    for verb in (["ps", "-a", "-o", "csv"], ["account", "list", "-o", "csv"], ["token", "list", "-o", "csv"],
                 ["audit", "-o", "csv"], ["user", "list", "-o", "csv"], ["usage", "-o", "csv"]):
        got = subprocess.run([stint] + verb, env=env, capture_output=True, text=True, check=False)
        check(got.returncode == 0, "%s: %s", verb, got.stderr)
        texts.append(got.stdout)
    check("'=1+1" in "".join(texts), "no such cell was written at all")
    for text in texts:
        for row in csv.reader(io.StringIO(text)):
            for cell in row:
                number = cell.lstrip("+-").replace(".", "", 1).isdigit()
                check(cell in ("", "-") or cell[0] not in "=+-@\t\r" or number, "a cell is a formula: %r", cell)


@attempt("a member of rival", "writes line ends and escapes into what is logged and shown", "one tame line each")
def tame_output(site):
    for name in ("a\nevent=forged", "a\x1b[2Jb", "a\rb", "a b"):
        site.refused(site.rival.submit(pool="paper", name=name), "name")
        site.refused(site.rival.get("/v1/accounts/" + "".join(f"%{b:02x}" for b in name.encode())), "")
    time.sleep(0.2)
    for path in glob.glob(site.dir + "/*log"):
        with open(path, "rb") as f:
            text = f.read()
        check(b"\nevent=forged" not in text and b"\x1b[2J" not in text, "%s was forged", path)


if __name__ == "__main__":
    wall("audit")
