#!/usr/bin/env python3
"""Witnesses: others sign the log of checkpoints, and whatever else is brought as a signature is refused."""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import ed25519  # noqa: E402
from harness import Stintd, check, fleet, main, token  # noqa: E402

PATH = "/v1/billing/witnesses"
SEED = b"a witness that is made for a test"[:32]
OTHER = b"somebody else, who is no witness"[:32]


def signed(seed, head, **changes):
    """What a witness with that key says of a head; or of something else."""
    doc = {"cosigned": 1, "log": head["key"], "cluster": head["cluster"], "at": head["at"], "size": head["size"], "root": head["root"],
           **changes, "key": ed25519.public(seed).hex()}
    text = json.dumps(doc, separators=(",", ":"))[:-1]
    return f'{text},"signature":"{ed25519.sign(seed, text.encode()).hex()}"}}'


def grow(stintd, n=2):
    """So many more checkpoints."""
    before = head_of(stintd)["size"]
    for i in range(n):
        stintd.owner.make("/v1/accounts/team/credits", {"amount": "1", "reason": f"number {before} {i}", "confirm": True})
        stintd.owner.get("/v1/bills/open?account=team&format=file")  # is signed for it
    stintd.wait(lambda: head_of(stintd)["size"] >= before + n, "the log grows", 90)


def head_of(stintd):
    return stintd.owner.get("/v1/billing/checkpoints?limit=1").json["head"]


def cosignatures(stintd):
    return {row["witness"]: row["signed"] for row in stintd.owner.get("/v1/billing/checkpoints?limit=1").json["cosignatures"]}


def keys(stintd):
    owner = stintd.owner
    key = ed25519.public(SEED).hex()
    for bad in ({}, {"key": "zz" * 32}, {"key": key[:-2]}, {"key": key, "more": 1}, {"key": "00" * 32}, {"key": "01" + "00" * 31},
                {"key": 7}, {"key": owner.get("/v1/billing").json["key"]}):
        answer = owner.call("PUT", f"{PATH}/auditor", bad)
        check(answer.status == 400, "%s: %d %s", bad, answer.status, answer.text)
    check(owner.call("PUT", f"{PATH}/auditor", {"key": key}).status == 200, "a witness")
    again = owner.call("PUT", f"{PATH}/second", {"key": key})
    check(again.status == 400 and "auditor" in again.text, "one key, two names: %s", again.text)
    for i in range(63):
        made = owner.call("PUT", f"{PATH}/w{i}", {"key": ed25519.public(bytes([i]) * 32).hex()})
        check(made.status == 200, "witness %d: %s", i, made.text)
    full = owner.call("PUT", f"{PATH}/more", {"key": ed25519.public(OTHER).hex()})
    check(full.status == 429 or full.status == 403 or full.status == 422, "a 65th: %d %s", full.status, full.text)
    for i in range(63):
        owner.call("DELETE", f"{PATH}/w{i}")
    check([w["name"] for w in owner.get(PATH).json["witnesses"]] == ["auditor"], "who is left: %s", owner.get(PATH).text)


def attacks(stintd):
    owner = stintd.owner
    viewer = stintd.client(token(owner, "team", "vera", "viewer")["token"])
    first = head_of(stintd)
    put = lambda text, name="auditor", who=viewer: who.call("PUT", f"{PATH}/{name}/head", text)
    check(put(signed(SEED, first)).status == 200, "a viewer brings what the witness signed")
    check(json.dumps(cosignatures(stintd)["auditor"], separators=(",", ":")) == signed(SEED, first), "it is shown as it was signed")
    check(put(signed(SEED, first)).status == 200, "again: nothing changes")
    grow(stintd)
    now = head_of(stintd)
    good = signed(SEED, now)
    rows = [
        ("a foreign key", signed(OTHER, now), 403),
        ("a name that is none", (good, "nobody"), 404),
        ("another root", signed(SEED, now, root="11" * 32), 409),
        ("a root of another size", signed(SEED, now, root=first["root"]), 409),
        ("a size that is not there", signed(SEED, now, size=now["size"] + 1000), 409),
        ("another cluster", signed(SEED, now, cluster="other"), 409),
        ("another log", signed(SEED, now, log="22" * 32), 409),
        ("a changed signature", good[:-10] + "0" * 8 + good[-2:], 403),
        ("a changed size", good.replace(f'"size":{now["size"]}', f'"size":{first["size"]}'), 403),
        ("the cluster's own signature", good.replace('"signature":"' + json.loads(good)["signature"], '"signature":"' + now["signature"]), 403),
        ("keys in another order", json.dumps(dict(reversed(json.loads(good).items())), separators=(",", ":")), 400),
        ("blanks", json.dumps(json.loads(good)), 400),
        ("two documents", good + good, 400),
        ("nothing", "{}", 400),
        ("no JSON", "x" * 100, 400),
    ]
    for what, text, status in rows:
        answer = put(*text) if isinstance(text, tuple) else put(text)
        check(answer.status == status, "%s: %d %s", what, answer.status, answer.text[:300])
        check(cosignatures(stintd)["auditor"]["size"] == first["size"], "%s changed what is shown", what)
    for size in (1 << 17, 8 << 20):
        fresh = stintd.client(viewer.token)
        try:
            answer = put('{"cosigned":1,"log":"' + "0" * size + '"}', who=fresh)
            check(answer.status in (400, 413), "%d bytes: %d", size, answer.status)
        except ConnectionError:
            pass  # it is not even read
    check(put(good).status == 200 and cosignatures(stintd)["auditor"]["size"] == now["size"], "the right one")
    old = put(signed(SEED, first))
    check(old.status == 409 and "earlier" in old.text, "an old head again: %d %s", old.status, old.text)
    check(owner.call("PUT", f"{PATH}/auditor", {"key": ed25519.public(OTHER).hex()}).status == 200, "another key for the name")
    check(cosignatures(stintd) == {}, "what the old key signed is nobody's now: %s", cosignatures(stintd))
    check(put(signed(SEED, now)).status == 403, "the old key")
    check("cosignature.put" in owner.get("/v1/audit").text and "witness.put" in owner.get("/v1/audit").text, "the audit log has both")


def by_command(stintd, program):
    """The way of an auditor: a key, signing, refusing to sign what does not go on; and a tenant who checks offline."""
    stint = os.path.join(os.path.dirname(program), "stint")
    env = {**os.environ, "STINT_URL": f"http://127.0.0.1:{stintd.port}", "STINT_TOKEN": stintd.owner_token}
    with tempfile.TemporaryDirectory() as place:
        def bill(*args, online=True):
            return subprocess.run([stint, "bill", *args], env=env if online else {"PATH": os.environ["PATH"]}, cwd=place, capture_output=True,
                                  text=True, timeout=60)

        def good(*args, **more):
            done = bill(*args, **more)
            check(done.returncode == 0, "%s: %d %s", args, done.returncode, done.stderr)
            return done.stdout

        key = good("witness", "key", "audit.key").strip()
        check(os.stat(f"{place}/audit.key").st_mode & 0o777 == 0o600 and len(key) == 64, "the key's file")
        check(bill("witness", "key", "audit.key").returncode != 0, "it is not overwritten")
        good("witness", "add", "auditor", key)
        sign = ("witness", "sign", "--key", "audit.key", "--kept", "audit.head", "auditor")
        good(*sign)
        grow(stintd)
        good(*sign)
        size = cosignatures(stintd)["auditor"]["size"]
        check(good("witness", "list").split()[-2] == str(size), "the list: %s", good("witness", "list"))
        good("checkpoints", "--save", "monday.head")
        grow(stintd)
        cluster = good("key").strip()
        good("checkpoints", "--key", cluster, "--witness", key, "--against", "monday.head", "--save", "today.head")
        shown = good("verify", "--key", cluster, "--witness", key, "--against", "monday.head", "today.head", online=False)
        check(f"has signed the first {size}" in shown, "offline: %s", shown)
        text = open(f"{place}/today.head").read()
        lines = text.splitlines()
        for what, forged in (("no witness", lines[0] + "\n"), ("no proof", "\n".join(line for line in lines if "goes_on" not in line) + "\n"),
                             ("a changed proof", text.replace('"proof":["', '"proof":["ff')), ("rubbish", text + "rubbish\n")):
            with open(f"{place}/forged.head", "w") as f:
                f.write(forged)
            bad = bill("verify", "--key", cluster, "--witness", key, "--against", "monday.head", "forged.head", online=False)
            check(bad.returncode == 9, "%s: %d %s", what, bad.returncode, bad.stderr)
        bad = bill("verify", "--witness", "00" * 32, "today.head", online=False)
        check(bad.returncode == 9 and "has not signed" in bad.stderr, "another witness: %s", bad.stderr)
        # A log that does not go on from what was kept is not signed.
        kept = json.loads(open(f"{place}/audit.head").readline())
        with open(f"{place}/audit.head", "w") as f:
            f.write(json.dumps({**kept, "size": kept["size"] + 1}, separators=(",", ":")) + "\n")
        bad = bill(*sign)
        check(bad.returncode == 9 and "nothing is signed" in bad.stderr, "not signed: %d %s", bad.returncode, bad.stderr)
        good("witness", "remove", "auditor")
        check(cosignatures(stintd) == {} and bill(*sign).returncode != 0, "removed")


def run(program):
    stintd = Stintd(program, config="rate: 1000000\n")
    try:
        fleet(stintd.owner)
        stintd.owner.make("/v1/accounts", {"name": "team"})
        grow(stintd, 1)
        keys(stintd)
        attacks(stintd)
        by_command(stintd, os.path.abspath(program))
    finally:
        stintd.stop()


if __name__ == "__main__":
    main(run)
