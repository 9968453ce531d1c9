"""Whole GPUs: what a job sees, and how soon it begins."""
import time

from context import start_ms
from report import pairs, percentile

LOOK = """ls /dev | grep -i nvidia | tr '\\n' ' '; echo
echo uid=$(id -u)
echo visible=$CUDA_VISIBLE_DEVICES"""
GIVEN = {"nvidia0", "nvidiactl", "nvidia-uvm"}
SUBMITS = 20


def computes(test):
    """A first CUDA program in a job. Where the driver's libraries are mounted apart, they are carried."""
    cluster, report = test.cluster, test.report
    row, text = cluster.run("first", test.work("info"), timeout=60)
    if pairs(text).get("compute") != "ok" and not test.sim:
        report.check("CUDA with the host's file system as it is", False,
                     f"{row['state']}: {row.get('reason') or ''} {text[-200:]}")
        cluster.env["LD_LIBRARY_PATH"] = test.machine.carry_libraries()
        row, text = cluster.run("first-again", test.work("info"), timeout=60)
    seen = pairs(text)
    test.whole_ms = float(seen.get("work_ms", 0))
    report.check("CUDA inside a job", seen.get("compute") == "ok",
                 f"{seen.get('name')}, {seen.get('memory_mib')} MiB, {seen.get('sms')} SMs" if "name" in seen
                 else text[-200:], "NVIDIA H200, 132 SMs")
    return seen.get("compute") == "ok"


def sees(test):
    row, text = test.cluster.run("look", ["sh", "-c", LOOK])
    seen = pairs(text)
    devices = set(text.split("\n")[0].split())
    test.report.check("only its devices are in /dev", devices <= GIVEN and (test.sim or devices == GIVEN),
                      " ".join(sorted(devices)) or "none", " ".join(sorted(GIVEN)))
    test.report.check("not root, its GPU by UUID", seen.get("uid", "0") != "0" and "GPU-" in seen.get("visible", ""),
                      f"uid {seen.get('uid')}, {seen.get('visible', '')[:8]}...")
    if test.sim:
        return
    row, text = test.cluster.run("smi", ["nvidia-smi", "-L"])
    test.report.check("nvidia-smi inside", row["state"] == "done" and text.count("GPU ") == 1,
                      text.split("(UUID")[0].strip() or row.get("reason") or row["state"], "one GPU")


def begins(test, title, accounts, count):
    """From the decision, and from before the command line, to the first instruction."""
    cluster, report = test.cluster, test.report
    from_decision, from_command = [], []
    for i in range(count):
        before = time.time() * 1e3
        words = ["submit", "--name", f"begin-{i}", "--account", accounts[i % len(accounts)], "--gpus", "1", "--ram",
                 "1Gi", "--limit", "1m", "--", *test.work("info", "first")]
        job = cluster.note(cluster.stint(*words).strip())
        row, text = cluster.finish(job, 20)
        if "first_ns" not in text:
            continue
        from_decision.append(start_ms(row, text))
        from_command.append(int(pairs(text)["first_ns"]) / 1e6 - before)
    report.check(f"{count} jobs one after the other, {title}", len(from_decision) == count,
                 f"{len(from_decision)} began")
    if from_decision:
        report.figure(f"from decision to first instruction, {title}", spread(from_decision))
        report.figure(f"from `stint submit` to first instruction, {title}", spread(from_command), "31 ms")


def spread(ms):
    return f"p50 {percentile(ms, 0.5):.0f} ms, p99 {percentile(ms, 0.99):.0f} ms"


def run(test):
    sees(test)
    begins(test, "one tenant", ["lab-a"], SUBMITS)
    begins(test, "two tenants in turn", ["lab-a", "other"], SUBMITS // 2)  # scrubbed in between
    job = test.cluster.submit("steady", test.work("load", "copy", 4, 2000))
    test.cluster.writes(job, r"^\d+$")
    test.crash("under a whole-GPU job")
    done = test.ended_well("the job under it", job)
    if done:
        test.report.check("it ran once", done[0]["preemptions"] == 0, f"{done[0]['preemptions']} preemptions")
