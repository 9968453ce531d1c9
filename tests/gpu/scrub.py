"""Between tenants: what a killed one leaves in device memory is not there for the next."""
import os
import re
import signal
import time

from cluster import Trouble, processes


def pid_of(command):
    """The process of a workload, as the host numbers it; a stand-in is behind its shell."""
    for pid, words in processes():
        words = [w for w in words if w]
        if words == command or (words[1:] == command and words[0].endswith("sh")):
            return pid
    raise Trouble(f"no process {' '.join(command)}")


def run(test):
    cluster, report = test.cluster, test.report
    first = cluster.submit("fill", test.work("pattern", "fill", 100000), account="lab-a")
    cluster.writes(first, "^filled")
    pid = pid_of(test.work("pattern", "fill", 100000))
    second = cluster.submit("scan", test.work("pattern", "scan", 120000), account="other")
    state = cluster.state(second)
    report.check("the next tenant waits", state == "pending", state)
    killed = time.time()
    os.kill(pid, signal.SIGKILL)
    test.crash("when a tenant with 100 GB was SIGKILLed")
    row, _ = cluster.finish(first)
    report.check("the killed tenant's job has failed", row["state"] == "failed", f"exit {row.get('exit_code')}",
                 "137")
    recorded(test, first, second, killed)
    row, text = cluster.finish(second)
    scan = re.search(r"scanned mib=(\d+) nonzero=(\d+) ms=(\S+)", text)
    report.check("the next tenant's own scan", scan and scan.group(2) == "0",
                 f"{scan.group(1)} MiB, {scan.group(2)} words not zero, {scan.group(3)} ms" if scan else
                 f"{row['state']}: {row.get('reason')} {text[-200:]}", "0 words, 28 ms for 120 GB")


def recorded(test, first, second, killed):
    """That the agent looked before the next one began, and what it found."""
    cluster, report = test.cluster, test.report
    if not test.agent_has("--scrub"):
        report.skip("the agent's own scan", "this agent has none")
        return
    cluster.reach(second, {"running", "done"}, 30)
    deadline = time.time() + 15  # the record follows with the agent's next status
    while True:
        scans = cluster.said.find(rf"event=scrubbed .*{first}", killed)
        grant = re.search(r'"scrub[^}]*', cluster.api(f"/v1/jobs/{first}"))
        if (scans and grant) or time.time() > deadline:
            break
        time.sleep(0.3)
    started = cluster.said.find(rf"event=started .*{second}", killed)
    before = [line for at, line in scans if not started or at <= started[0][0]]
    seen = before[-1].split("task=0 ")[-1] if before else "the agent said nothing of a scan"
    report.check("the device was scanned before the next tenant", bool(before), seen, "40 ms to read 141 GB")
    report.check("the result is on the grant", bool(grant and re.search("clean|overwritten", grant.group(0))),
                 grant.group(0) if grant else "nothing in the job's record", "clean")
