"""A training loop is paused, its GPU given away and back; its result must not differ by a bit."""
import os
import re
import time

from cluster import Trouble, until
from context import seconds_of

STATE_MIB, STEPS = 20000, 1200
OWNER_MIB = 100000
YIELDING = {"running", "notified", "checkpointing"}


def room():
    """Host memory for the loop and, when it is paused, for its device memory; less on small machines."""
    gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 30
    return "40Gi" if gib >= 96 else "1Gi"


def train(test, name, **more):
    return test.cluster.submit(name, test.work("train", STATE_MIB, STEPS), ram=room(), **more)


def result(test, job, timeout=120):
    row, text = test.cluster.finish(job, timeout)
    found = re.search(r"^hash=(\S+)", text, re.M)
    if row["state"] != "done" or not found:
        raise Trouble(f"the loop is {row['state']}: {row.get('reason') or ''} {text[-200:]}")
    return found.group(1), text


def longest_gap(text):
    """(begin, end) of the longest time between two lines of the loop, which come every 50 steps."""
    times = [int(n) / 1e9 for n in re.findall(r"^step=\d+ ns=(\d+)", text, re.M)]
    return max(zip(times, times[1:]), key=lambda gap: gap[1] - gap[0], default=(0, 0))


def cannot(test, job, began):
    """Why it was not paused: the agent's words; None when it was."""
    said = test.cluster.said.find(rf"event=(pause-failed|checkpoint|not-paused|lost) .*{job}", began)
    again = len(re.findall(r"^step=0 ", test.cluster.logs(job), re.M)) > 1
    if said or again:
        return said[-1][1] if said else "it was started again instead"
    return None


def disturbed(test, title, crash_at, wanted):
    """One loop that has to yield in the middle. crash_at: "pausing" or "paused"."""
    cluster, report = test.cluster, test.report
    job = train(test, f"train-{crash_at}", on_preempt="pause")
    cluster.writes(job, "^step=200 ", 60)
    began = time.time()
    owner = cluster.submit("owner", test.work("load", "copy", 3, OWNER_MIB), account="owner")
    if crash_at == "pausing":
        time.sleep(0.3 if test.sim else 4)
        test.crash("in the middle of pausing")
    until(lambda: cannot(test, job, began) or cluster.state(job) not in YIELDING, 60, "the loop does not yield")
    why = cannot(test, job, began)
    if why:
        report.skip(title, f"it was not paused: {why}")
        cluster.cancel(job, owner)
        return False
    took = time.time() - began
    report.check(f"{title}: paused", cluster.state(job) == "paused", f"{took:.1f} s after the owner came",
                 "11.6 s for 20 GB")
    if crash_at == "paused":
        cluster.writes(owner, r"^\d+$", 60)
        test.crash("while the loop is paused")
    test.ended_well(f"{title}: the owner's job with {OWNER_MIB} MiB", owner, 60)
    ended = seconds_of(cluster.job(owner)["ended"])
    got, text = result(test, job)
    off, on = longest_gap(text)
    for at, line in cluster.said.find(rf"event=(paused|resumed) .*{job}", began):
        report.figure(f"{title}: the agent", f"{at - began:.1f} s after the owner came: {line.split()[0]}")
    report.figure(f"{title}: without a step for", f"{on - off:.1f} s")
    report.figure(f"{title}: resumed", f"first steps {on - ended:.1f} s after the owner's end", "4.9 s for 20 GB")
    report.check(f"{title}: result bit-identical", got == wanted and text.count("step=0 ") == 1, got, wanted)
    return True


def run(test):
    wanted, text = result(test, train(test, "train-alone"))
    off, on = longest_gap(text)
    test.report.figure("undisturbed loop", f"hash {wanted}, never without a step for more than {on - off:.2f} s")
    if disturbed(test, "agent killed while paused", "paused", wanted):
        disturbed(test, "agent killed while pausing", "pausing", wanted)
