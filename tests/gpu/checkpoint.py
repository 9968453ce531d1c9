"""stint-cuda by itself, without an agent: a process off its GPU and back, and the scan of device memory."""
import json
import os
import re
import subprocess
import time

from cluster import Trouble, until
from machine import call

STATE_MIB, STEPS = 4000, 4000
BEGUN = 400  # steps before it is disturbed


def stint_cuda(test, *words, timeout=60):
    """Its answer, with its exit status as "status"."""
    # With a bare environment, as the agent calls it.
    status, text = call([test.machine.program("stint-cuda"), *map(str, words)], timeout,
                        test.machine.log("stint-cuda.log"), {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
    try:
        return {**json.loads(text.strip().splitlines()[-1]), "status": status}
    except (ValueError, IndexError):
        return {"status": status, "error": text[-200:]}


class Loop:
    """The training loop as a plain process of the host."""

    def __init__(self, test):
        self.path = test.machine.log("loop.log")
        self.out = open(self.path, "w")
        self.process = subprocess.Popen(test.work("train", STATE_MIB, STEPS), stdout=self.out,
                                        stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)

    def text(self):
        with open(self.path) as f:
            return f.read()

    def begun(self):
        until(lambda: f"step={BEGUN} " in self.text() or self.process.poll() is not None, 30, "the loop does not begin")

    def hash(self):
        try:
            self.process.wait(40)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        found = re.search(r"^hash=(\S+)", self.text(), re.M)
        return found.group(1) if found else self.text()[-150:]


def disturbed(test, wanted, interrupted):
    """Paused and resumed once; `interrupted`: the first attempt to pause is killed in the middle."""
    report, title = test.report, "pause cut short, then again" if interrupted else "pause and resume"
    loop = Loop(test)
    try:
        loop.begun()
        if interrupted:
            first = subprocess.Popen([test.machine.program("stint-cuda"), "pause", str(loop.process.pid)],
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(1)
            first.kill()
            first.wait()
        used = test.machine.query("memory.used")
        out = stint_cuda(test, "pause", loop.process.pid)
        after = test.machine.query("memory.used")
        if not report.check(f"{title}: off the GPU", out["status"] == 0, f"{out.get('ms')} ms {out.get('error', '')}",
                            "2.6 s for 4 GB"):
            return
        report.check(f"{title}: device memory is free", int(after.get("memory.used", 0)) < 1000,
                     f"{used.get('memory.used')} MiB, then {after.get('memory.used')} MiB", "4 MiB")
        state = stint_cuda(test, "state", loop.process.pid)
        report.figure(f"{title}: state", json.dumps(state.get("processes", state)))
        back = stint_cuda(test, "resume", loop.process.pid)
        report.check(f"{title}: back", back["status"] == 0, f"{back.get('ms')} ms {back.get('error', '')}",
                     "1.0 s for 4 GB")
        got = loop.hash()
        report.check(f"{title}: result bit-identical", got == wanted, got, wanted)
    finally:
        if loop.process.poll() is None:
            loop.process.kill()
            loop.process.wait()


def run(test):
    report = test.report
    if test.sim or not os.path.exists(test.machine.program("stint-cuda")):
        report.skip("stint-cuda", "no GPU here" if test.sim else "it is not in --bin")
        return
    probe = stint_cuda(test, "probe")
    report.check("what this driver can do", probe["status"] == 0, json.dumps(probe))
    if probe["status"] != 0 and test.agent_has("--scrub"):
        # Without it no device would ever go from one tenant to the next; the rest can be tried all the same.
        test.machine.more += ["--scrub", "never"]
        report.figure("the agent from here on", "--scrub never")
        return
    scan = stint_cuda(test, "scan")
    report.check("scan of the whole device", scan.get("result") == "clean", json.dumps(scan), "clean; 40 ms to read")
    wanted = Loop(test).hash()
    if not re.fullmatch("[0-9a-f]{16}", wanted):
        raise Trouble(f"the loop has no result: {wanted}")
    disturbed(test, wanted, interrupted=False)
    disturbed(test, wanted, interrupted=True)
