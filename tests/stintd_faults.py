#!/usr/bin/env python3
"""stintd on a disk that fails: full, read-only, damaged.

  stintd_faults.py STINTD

In each case writes are answered 503 with the cause, /readyz says no, reading goes on, nothing
acknowledged is lost, and the service is back by itself when the fault has ended. Cases that need
root (a small file system of their own) are skipped without it.
"""
import http.client
import os
import shutil
import subprocess
import sys
import tempfile
import time

from stintd_crash import Client, Stintd, set_up

JOB = {"account": "team0", "user": "ann", "gpus": 1, "limit": "2h", "sim": {"run": "1h"}}


class Case:
    made = []

    def __init__(self, program, folder):
        Case.made.append(self)
        self.server = Stintd(program, folder)
        self.client = set_up(self.server)
        self.acknowledged = []

    def submit(self, pad=0):
        body = dict(JOB, name="j%d" % len(self.acknowledged), env={"PAD": "x" * pad})
        answer = self.client.ask("POST", "/v1/jobs", body)
        if answer and answer[0] == 201:
            self.acknowledged.append(answer[1]["id"])
        return answer

    def status(self, path):
        link = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=10)
        link.request("GET", path)
        return link.getresponse().status

    def must_be_down(self, answer, words):
        assert answer and answer[0] == 503, "not refused: %s" % (answer,)
        assert any(w in answer[1]["detail"] for w in words), answer[1]["detail"]
        assert self.status("/readyz") == 503, "/readyz says yes"
        self.must_read()

    def must_read(self):
        for name in self.acknowledged[-5:]:
            got = self.client.ask("GET", "/v1/jobs/" + name)
            assert got and got[0] == 200, "job %s cannot be read: %s" % (name, got)

    def must_come_back(self):
        until = time.monotonic() + 30
        while time.monotonic() < until:
            answer = self.submit()
            if answer and answer[0] == 201:
                assert self.status("/readyz") == 200
                for name in self.acknowledged:
                    got = self.client.ask("GET", "/v1/jobs/" + name)
                    assert got and got[0] == 200, "job %s is lost: %s" % (name, got)
                return
            time.sleep(0.05)
        raise AssertionError("not back after 30 s: %s" % (answer,))

    def end(self, program):
        self.server.kill(15)
        check = subprocess.run([program, "--check-store", "--data", self.server.folder],
                               stdout=subprocess.PIPE)
        assert check.returncode == 0, check.stdout.decode()


def mounted(folder, size):
    return subprocess.run(["mount", "-t", "tmpfs", "-o", "size=" + size, "tmpfs", folder],
                          stderr=subprocess.DEVNULL).returncode == 0


def full(program, folder):
    """A small file system is filled by somebody else, and emptied again."""
    if not mounted(folder, "24m"):
        return "skipped: file systems cannot be mounted here"
    try:
        case = Case(program, folder)
        for _ in range(20):
            assert case.submit(200)[0] == 201
        with open(os.path.join(folder, "ballast"), "wb", buffering=0) as f:
            try:
                while True:
                    f.write(b"x" * 4096)
            except OSError:
                pass
        answer = None
        for _ in range(400):  # what the log has reserved is used up first
            answer = case.submit(4000)
            if answer is None or answer[0] != 201:
                break
        case.must_be_down(answer, ["full"])
        os.unlink(os.path.join(folder, "ballast"))
        case.must_come_back()
        case.end(program)
    finally:
        subprocess.run(["umount", "-l", folder])
    return "passed"


def file_size(program, folder):
    """The size of files is limited: what a quota looks like."""
    case = Case(program, folder)
    for _ in range(20):
        assert case.submit(200)[0] == 201
    pid = str(case.server.process.pid)
    size = os.path.getsize(os.path.join(folder, "stint.db-wal"))
    limit = subprocess.run(["prlimit", "--pid", pid, "--fsize=%d:unlimited" % size])
    if limit.returncode != 0:
        case.server.kill()
        return "skipped: limits cannot be set"
    case.must_be_down(case.submit(4000), ["full", "large", "I/O"])
    assert subprocess.run(["prlimit", "--pid", pid, "--fsize=unlimited:unlimited"]).returncode == 0
    case.must_come_back()
    case.end(program)
    return "passed"


def read_only(program, folder):
    """Files can no longer be written, not even those that are open."""
    case = Case(program, folder)
    for _ in range(20):
        assert case.submit()[0] == 201
    files = [os.path.join(folder, "stint.db" + end) for end in ("", "-wal")]
    if subprocess.run(["chattr", "+i"] + files, stderr=subprocess.DEVNULL).returncode != 0:
        return "skipped: files cannot be made immutable here"
    try:
        answer = case.submit()
        if answer and answer[0] == 201:
            return "skipped: this file system lets open files be written"
        case.must_be_down(answer, ["read-only", "I/O", "not permitted"])
    finally:
        subprocess.run(["chattr", "-i"] + files)
    case.must_come_back()
    case.end(program)
    return "passed"


def flip(path, where):
    with open(path, "r+b") as f:
        f.seek(where)
        byte = f.read(1)[0]
        f.seek(where)
        f.write(bytes([byte ^ 0x55]))


def damaged(program, folder):
    """A byte flips while it is stopped: the start is refused and says so; put back, it starts."""
    case = Case(program, folder)
    for _ in range(50):
        assert case.submit(2000)[0] == 201
    case.server.kill(15)
    path = os.path.join(folder, "stint.db")
    pages = os.path.getsize(path) // 4096
    noticed = 0
    for page in range(1, pages, max(1, pages // 12)):
        flip(path, page * 4096 + 1000)
        check = subprocess.run([program, "--check-store", "--data", folder],
                               stdout=subprocess.PIPE)
        noticed += check.returncode == 1 and b"damaged" in check.stdout or \
            check.returncode == 1 and b"structure" in check.stdout
        flip(path, page * 4096 + 1000)
    tried = len(range(1, pages, max(1, pages // 12)))
    assert noticed == tried, "%d of %d flipped bytes were noticed" % (noticed, tried)
    case.server.start()
    case.client.link = None
    case.must_come_back()
    case.end(program)
    return "passed"


def damaged_running(program, folder):
    """Pages are overwritten under a running stintd: no wrong answer, an end to it when healed."""
    case = Case(program, folder)
    for _ in range(200):
        assert case.submit(3000)[0] == 201
    case.server.kill(15)  # everything is in the main file, nothing in the cache
    case.server.start()
    case.client.link = None
    path = os.path.join(folder, "stint.db")
    with open(path, "rb") as f:
        good = f.read()
    for page in range(1, len(good) // 4096):
        flip(path, page * 4096 + 1000)
    wrong = 0
    for name in case.acknowledged:
        got = case.client.ask("GET", "/v1/jobs/" + name)
        assert got and got[0] in (200, 500, 503), got
        wrong += got[0] != 200
    answer = case.submit()
    assert answer and answer[0] in (201, 503), answer
    assert wrong > 0, "nothing was noticed"
    with open(path, "r+b") as f:
        f.write(good)
    case.server.kill()
    return "passed"


def main():
    program, failed = sys.argv[1], 0
    for case in (full, file_size, read_only, damaged, damaged_running):
        folder = tempfile.mkdtemp(prefix="stintd-faults-")
        try:
            verdict = case(program, folder)
        except (AssertionError, OSError) as why:
            verdict, failed = "FAILED: %s" % why, failed + 1
        for left in Case.made:
            if left.server.process and left.server.process.poll() is None:
                left.server.kill()
        print("%-16s %s" % (case.__name__, verdict), flush=True)
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
