#!/usr/bin/env python3
"""Volumes as hostile tenants use them: paths that lead out, links and pipes in the folder, pieces that lie, uploads beyond the size
and beside each other, names, quotas, removals while jobs wait, restarts. An honest account beside them goes on.

Folders are those of a stintd of its own; what a job would have left there the test puts there itself."""

import concurrent.futures
import hashlib
import os
import stat
import sys
import urllib.parse

sys.path.insert(0, os.path.dirname(__file__))
from harness import Stintd, check, fleet, main, token  # noqa: E402

PIECE = 1 << 20


def digest(data):
    return hashlib.sha256(data).hexdigest()


def put(client, path, data, volume="sets", account="team", upload="aa", offset=0, size=None, **more):
    query = {"path": path, "upload": upload, "offset": offset, "size": len(data) if size is None else size,
             "digest": digest(data), **more}
    return client.call("PUT", f"/v1/accounts/{account}/volumes/{volume}/bytes?" + urllib.parse.urlencode(query), data)


def get(client, path, volume="sets", account="team", what="bytes", **more):
    return client.get(f"/v1/accounts/{account}/volumes/{volume}/{what}?" + urllib.parse.urlencode({"path": path, **more}))


def folder_of(stintd):
    [name] = [n for n in os.listdir(os.path.join(stintd.dir, "data", "volumes")) if n != "gone" and not n.startswith("fff")]
    return os.path.join(stintd.dir, "data", "volumes", name)


def said(answer, status, words=""):
    check(answer.status == status and words in answer.text, "wanted %d %s, got %d %s", status, words, answer.status, answer.text)


def bodies(ann):
    path = "/v1/accounts/team/volumes/"
    for body, words in (({}, "how large"), ({"size": 5}, "is a text"), ({"size": "5 apples"}, ""), ({"size": "0Mi"}, "1Mi"),
                        ({"size": "9999999Ti"}, ""), ({"size": "1Gi", "id": "0" * 16}, "no key"), ({"size": "1Gi", "owner": 1}, "no key"),
                        ({"size": "1Gi", "below": "all"}, "none, read or write"), ({"size": "1Gi", "about": "x" * 201}, "at most"),
                        ([], "object"), ({"size": None}, "is a text")):
        said(ann.call("PUT", path + "x", body), 400, words)
    for name in ("..", ".", ".hidden", "-x", "a%2Fb", "a%00b", "a%0Ab", "x" * 65, "%2e%2e"):
        answer = ann.call("PUT", path + name, {"size": "1Gi"})
        check(answer.status in (400, 404, 405), "the name %s: %d %s", name, answer.status, answer.text)
    check(ann.get(path[:-1]).json["volumes"] == [], "something was made: %s", ann.get(path[:-1]).text)


def ways_out(stintd, ann):
    said(ann.call("PUT", "/v1/accounts/team/volumes/sets", {"size": "8Mi"}), 200)
    said(put(ann, "file", b"text"), 200)
    top = folder_of(stintd)
    check(stat.S_IMODE(os.stat(os.path.dirname(top)).st_mode) == 0o700, "others can enter the tree")
    check(os.stat(os.path.join(top, "file")).st_mode & 0o007 == 0, "others can read a file")
    os.symlink("/etc/passwd", os.path.join(top, "out"))
    os.symlink(os.path.join(stintd.dir, "data"), os.path.join(top, "data"))
    os.symlink("..", os.path.join(top, "up"))
    os.mkfifo(os.path.join(top, "pipe"))
    os.mkdir(os.path.join(top, "folder"))
    secret = os.path.join(stintd.dir, "data", "secrets.key")
    check(os.path.exists(secret), "there is nothing to steal")
    for path in ("../../secrets.key", "..", "a/../../x", "../" * 20 + "etc/passwd", "folder/..", "a\nb", "a\x7fb"):
        for answer in (get(ann, path), get(ann, path, what="files"), put(ann, path, b"x"),
                       ann.call("DELETE", "/v1/accounts/team/volumes/sets/files?path=" + urllib.parse.quote(path))):
            check(answer.status == 400, "%r: %d %s", path, answer.status, answer.text)
    said(ann.get("/v1/accounts/team/volumes/sets/bytes?path=a%00b"), 400)
    said(ann.get("/v1/accounts/team/volumes/sets/bytes?path=%ff"), 400)
    for path in ("out", "data/secrets.key", "up/gone", "up"):
        said(get(ann, path), 403, "link")
    said(get(ann, "/" + secret), 404, "no file")
    said(put(ann, "data/x", b"x"), 409, "no folder")
    said(put(ann, "up/x", b"x"), 409, "no folder")
    said(get(ann, "pipe"), 403, "neither")
    said(get(ann, "folder"), 409, "folder")
    said(put(ann, "folder", b"x"), 409, "folder")
    said(put(ann, "file/x", b"x"), 409)
    # Onto a link: the link is replaced, and what it names stays.
    before = open("/etc/passwd", "rb").read()
    said(put(ann, "out", b"mine"), 200)
    check(open("/etc/passwd", "rb").read() == before and get(ann, "out").text == "mine", "it wrote through a link")
    kinds = {e["name"]: e["kind"] for e in get(ann, "", what="files").json["entries"]}
    check(kinds == {"data": "link", "file": "file", "folder": "folder", "out": "file", "pipe": "other", "up": "link"}, "%s", kinds)
    # What is removed is the link.
    said(ann.call("DELETE", "/v1/accounts/team/volumes/sets/files?path=data"), 204)
    check(os.path.exists(secret), "what the link named is gone")
    said(ann.call("DELETE", "/v1/accounts/team/volumes/sets/files?path="), 400, "whole")


def pieces(stintd, ann):
    data = os.urandom(2 * PIECE + 77)
    first, second, third = data[:PIECE], data[PIECE:2 * PIECE], data[2 * PIECE:]
    for bad in ({"digest": digest(b"other")}, {"digest": ""}, {"digest": "x" * 64}):
        answer = put(ann, "big", first, size=len(data), **bad)
        check(answer.status == 400 and "digest" in answer.text, "%s: %s", bad, answer.text)
    said(put(ann, "big", first, size=len(data), upload="../x"), 400, "hex")
    said(put(ann, "big", first, size=len(data), upload="a" * 65), 400, "hex")
    said(put(ann, "big", first, size=10), 400, "not part of")
    said(put(ann, "big", first, size=len(data), offset=-1), 400, "not part of")
    said(put(ann, "big", b"", size=len(data)), 400, "not part of")
    said(put(ann, "big", second, size=len(data), offset=PIECE), 409, "stands at 0")
    said(put(ann, "big", b"x", size=1 << 50), 403, "room")
    said(put(ann, "big", b"x", size=1 << 50, offset=(1 << 50) - 1), 409, "stands at 0")
    said(put(ann, "big", first, size=len(data)), 200, '"done":false')
    said(put(ann, "big", first, size=len(data)), 409, f"stands at {PIECE}")
    said(get(ann, "big"), 404)
    check(get(ann, "big", what="files", upload="aa").json == {"path": "big", "kind": "none", "uploaded": PIECE}, "where it stands")
    said(put(ann, "big", second, size=len(data), offset=PIECE), 200)
    said(put(ann, "big", third, size=len(data), offset=2 * PIECE), 200, '"done":true')
    answer = get(ann, "big")
    check(answer.body == data and answer.header("Stint-Digest") == digest(data), "it came back as something else")
    check(get(ann, "big", offset=PIECE, length=10).body == data[PIECE:PIECE + 10], "a piece of it")
    check(get(ann, "big", offset=1 << 60).body == b"" and get(ann, "big", length=-5).body == b"", "beyond its end")
    said(put(ann, "empty", b""), 200, '"done":true')
    # Two at once: one goes on, and nothing is written twice.
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        clients = [stintd.client(ann.token) for _ in range(8)]
        answers = list(pool.map(lambda c: put(c, "race", first, upload="bb", size=len(first) + 1).status, clients))
    check(answers.count(200) == 1 and set(answers) <= {200, 409}, "%s", answers)
    check(get(ann, "race", what="files", upload="bb").json["uploaded"] == PIECE, "written twice")


def room(ann):
    answer = put(ann, "much", os.urandom(PIECE), upload="cc", size=9 * PIECE)
    said(answer, 403, "room")
    files = [put(ann, f"part{i}", os.urandom(PIECE), upload="dd") for i in range(8)]
    check({f.status for f in files} == {200, 403} and files[-1].status == 403, "%s", [f.status for f in files])
    used = ann.get("/v1/accounts/team/volumes/sets").json["used_bytes"]
    check(used <= (8 << 20) + 65536, "it holds %d bytes", used)
    # Uploads that nobody finishes count; many beside each other do not pass together.
    said(ann.call("PUT", "/v1/accounts/team/volumes/small", {"size": "2Mi"}), 200)
    answers = [put(ann, f"p{i}", os.urandom(PIECE), volume="small", upload="ee", size=PIECE + 1).status for i in range(4)]
    check(answers.count(200) <= 2, "unfinished uploads have no limit: %s", answers)
    said(ann.call("DELETE", "/v1/accounts/team/volumes/small"), 204)


def frame(data, said=None, length=None):
    return ((said or digest(data)) + ("%08x" % len(data) if length is None else length)).encode() + data


def folders(owner, ann, eve):
    """What jobs come with: chunks and lists, brought by somebody who lies."""
    def bring(client, body, account="team"):
        return client.call("PUT", f"/v1/accounts/{account}/chunks", body)

    def ask(client, body, account="team"):
        return client.call("POST", f"/v1/accounts/{account}/folders", body)

    good = b"print(1)"
    said(bring(ann, frame(good) + frame(b"y") + frame(good)), 200, '"kept":3')
    for bad in (b"x", frame(good)[:-1], frame(good, said="0" * 64), frame(good, said="../" + "0" * 61), frame(good, said="G" * 64),
                frame(good, length="ffffffff"), frame(good, length="-0000001"), frame(good, length="00000000"), frame(b""),
                frame(good, said=digest(good).upper()), frame(os.urandom((512 << 10) + 1))):
        answer = bring(ann, bad)
        check(answer.status == 400 and "chunk" in answer.text, "%r: %d %s", bad[:80], answer.status, answer.text)
    row = {"path": "a", "size": len(good), "chunks": [digest(good)]}
    for bad in ([], {}, {"files": 1}, {"files": [], "x": 1}, {"files": [1]}, {"files": [{}]}, {"files": [row, row]},
                {"files": [{**row, "path": "b"}, row]}, {"files": [{**row, "size": -1}]}, {"files": [{**row, "size": 1 << 40}]},
                {"files": [{**row, "size": 1}]}, {"files": [{**row, "chunks": []}]}, {"files": [{**row, "chunks": ["../x"]}]},
                {"files": [{**row, "run": "yes"}]}, {"files": [{**row, "mode": 4755}]}, {"files": [], "folders": ["b", "a"]},
                {"files": [], "folders": [1]}, {"files": [{**row, "path": "a/" * 700 + "b"}]}, {"files": [{**row, "size": 1.5}]},
                *({"files": [{**row, "path": p}]} for p in ("", ".", "..", "../x", "/x", "a//b", "a/./b", "a/", "a\nb", "a/../../b"))):
        answer = ask(ann, bad)
        check(answer.status in (400, 403), "%s: %d %s", str(bad)[:80], answer.status, answer.text)
    said(ask(ann, {"files": [{**row, "path": "%06d" % i} for i in range(20001)]}), 403, "at most 20000")
    made = ask(ann, {"files": [row]})
    said(made, 200, '"missing":[]')
    check(ask(ann, {"files": [dict(reversed(row.items()))]}).json == made.json, "the same list has another name")
    missing = digest(b"never brought")
    check(ask(ann, {"files": [{**row, "chunks": [missing]}]}).json == {"folder": None, "missing": [missing]}, "what is missing")
    # Whether another account has the same bytes is not told, and its folder comes with nobody else's job.
    check(ask(eve, {"files": [row]}, "rival").json == {"folder": None, "missing": row["chunks"]}, "another's bytes are told of")
    for answer in (bring(eve, frame(good)), ask(eve, {"files": [row]})):
        said(answer, 404, "no account")
    job = {"name": "with", "gpus": 0, "cpu": 1, "with": made.json["folder"], "sim": {"run": "1s"}}
    for bad in ("x", "../" + "0" * 61, "0" * 63, "sha256:" + "0" * 64, 5, ["0" * 64], {}, "A" * 64):
        answer = ann.call("POST", "/v1/jobs", {**job, "with": bad})
        check(answer.status == 400, "%s: %d %s", bad, answer.status, answer.text)
    said(ann.call("POST", "/v1/jobs", {**job, "volumes": ["sets:/work"]}), 400, "would lie in")
    ran = ann.make("/v1/jobs", job)
    said(ann.get(f"/v1/jobs/{ran['id']}/files"), 409, "no folder")  # nothing really ran
    said(ann.get(f"/v1/jobs/{ran['id']}/files?path=../x"), 400)
    said(eve.get(f"/v1/jobs/{ran['id']}/files"), 404, "no job")
    said(eve.get(f"/v1/jobs/{ran['id']}/bytes?path=a"), 404, "no job")
    said(ann.call("PUT", "/v1/accounts/team/volumes/" + ran["id"], {"size": "1Gi"}), 400, "looks like the id")


def quotas(owner, ann):
    said(owner.call("PATCH", "/v1/accounts/team/service-quota", {"volumes": 2, "volume_bytes": 100 << 20}), 200)
    path = "/v1/accounts/team/volumes/"
    said(ann.call("PUT", path + "large", {"size": "93Mi"}), 429)
    said(ann.call("PUT", path + "large", {"size": "92Mi"}), 200)
    said(ann.call("PUT", path + "third", {"size": "1Mi"}), 429)
    said(ann.call("PUT", path + "large", {"size": "93Mi"}), 429)
    said(ann.call("PUT", path + "large", {"size": "10Mi"}), 200)
    said(ann.call("PUT", path + "large", {"size": "92Mi"}), 200)
    said(ann.call("DELETE", path + "large"), 204)
    said(ann.call("PUT", path + "large", {"size": "92Mi"}), 200)
    said(ann.call("DELETE", path + "large"), 204)


def others(program, stintd, ann, eve):
    owner = stintd.owner
    here = ann.get("/v1/accounts/team/volumes/sets").json
    check(here["by"] == "ann", "%s", here)
    for answer in (eve.get("/v1/accounts/team/volumes"), get(eve, "file"), put(eve, "file", b"x"),
                   eve.call("DELETE", "/v1/accounts/team/volumes/sets")):
        said(answer, 404, "no account")
    job = {"name": "thief", "gpus": 0, "cpu": 1, "volumes": ["sets:/x"], "sim": {"run": "1s"}}
    said(eve.call("POST", "/v1/jobs", job), 404, "there is no volume")
    # The same name is another volume.
    said(eve.call("PUT", "/v1/accounts/rival/volumes/sets", {"size": "1Mi"}), 200)
    said(get(eve, "file", account="rival"), 404)
    for bad in (["sets"], "sets:/x", [{}], [1], ["sets:/x"] * 17, ["sets:/proc"], ["sets:/a", "sets:/a/b"]):
        answer = ann.call("POST", "/v1/jobs", {**job, "volumes": bad})
        check(answer.status in (400, 403), "%s: %d %s", bad, answer.status, answer.text)
    # A job that waits keeps it; when it has gone, the volume may.
    waits = ann.make("/v1/jobs", {**job, "name": "waits", "sim": {"run": "7d"}})
    said(ann.call("DELETE", "/v1/accounts/team/volumes/sets"), 409, waits["id"])
    check(ann.call("DELETE", f"/v1/jobs/{waits['id']}").status in (200, 204), "it is not cancelled")
    said(owner.call("DELETE", "/v1/accounts/team"), 409, "volume")
    stintd.again(program)
    ann = stintd.client(ann.token)
    check(get(ann, "file").text == "text", "a restart has lost it")
    said(ann.call("DELETE", "/v1/accounts/team/volumes/sets"), 204)
    said(get(ann, "file"), 404, "no volume")
    said(ann.call("PUT", "/v1/accounts/team/volumes/sets", {"size": "1Mi"}), 200)
    check(get(ann, "", what="files").json["entries"] == [], "another of its name has what it had")


def run(program):
    stintd = Stintd(program)
    try:
        fleet(stintd.owner)
        for name in ("team", "rival"):
            stintd.owner.make("/v1/accounts", {"name": name})
        ann = stintd.client(token(stintd.owner, "team", "ann", "member")["token"])
        eve = stintd.client(token(stintd.owner, "rival", "eve", "admin")["token"])
        bodies(ann)
        ways_out(stintd, ann)
        pieces(stintd, ann)
        room(ann)
        folders(stintd.owner, ann, eve)
        quotas(stintd.owner, ann)
        others(program, stintd, ann, eve)
    finally:
        stintd.stop()
    print("names, ways out, pieces, room, folders, quotas, others")


if __name__ == "__main__":
    main(run)
