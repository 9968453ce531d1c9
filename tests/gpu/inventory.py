"""Inventory and telemetry against nvidia-smi, and what watching costs."""
import json
import os
import re
import time

from cluster import Trouble
from machine import HERE, call

# Metric of the agent's page, field of nvidia-smi, by how much two readings may differ.
COMPARED = [("DCGM_FI_DEV_FB_USED", "memory.used", 64), ("DCGM_FI_DEV_GPU_UTIL", "utilization.gpu", 10),
            ("DCGM_FI_DEV_POWER_USAGE", "power.draw.instant", 60), ("DCGM_FI_DEV_GPU_TEMP", "temperature.gpu", 3),
            ("DCGM_FI_DEV_SM_CLOCK", "clocks.sm", 250), ("DCGM_FI_DEV_MEM_CLOCK", "clocks.mem", 1)]

REFERENCE = {"make": "237-276 ms", "remove": "166-229 ms", "mig": "1-4 ms", "3g@4": "1.09 s", "the": "0.22 s",
             "4g@0": "0.81 s", "nothing": "0.40 s"}


class Unfit(Exception):
    """Jobs cannot run on this machine at all."""


def driver(test):
    """Before there is an agent: the driver alone (h200.sh)."""
    machine, report = test.machine, test.report
    folder = os.path.join(os.path.dirname(machine.logs), "doctor")
    command = [machine.program("stint-agent"), "doctor", "--data", folder, *machine.agent_options()]
    status, text = call(command, 60, machine.log("doctor.log"))
    bad = [line.strip() for line in text.splitlines() if line.startswith(("BAD", "warn"))]
    if not report.check("stint-agent doctor", status == 0, "; ".join(bad) or "everything ok"):
        raise Unfit(text.strip().splitlines()[-1] if text else "stint-agent doctor says nothing")
    if machine.sim:
        report.skip("driver against nvidia-smi", "no GPU here")
        status, text = machine.probe("exercise")
        report.check("the simulated driver's exercise", status == 0, f"{len(text.splitlines())} answers")
        return
    raw = os.path.join(machine.logs, "h200")
    os.makedirs(raw, exist_ok=True)
    words = ["sh", os.path.join(HERE, "h200.sh"), machine.program("stint-gpu-probe"),
             os.path.join(machine.place, "load"), raw]
    _, text = call(words + (["look"] if test.leave_settings else []), 150, machine.log("h200.log"))
    for title, block in re.findall(r"^== (.*)\n((?:(?!== ).*\n)*)", text, re.M):
        compared(report, title, block)
    events = re.findall(r'"event":"xid".*?"value":(\d+)', text)
    report.check("an illegal access is an event of the driver", "31" in events, f"XID {', '.join(events) or 'none'}",
                 "XID 31")
    carving(report, text)


def compared(report, title, block):
    same = len(re.findall(r" same$", block, re.M))
    other = re.findall(r"^(.*?)  +(.*) DIFFERENT$", block, re.M)
    if same or other:
        words = [f"{same} the same"] + [f"{name}: {' '.join(values.split())}" for name, values in other]
        report.check(title, not other, "; ".join(words), "all the same")


def carving(report, text):
    """What the driver's exercise says about making and removing slices, and whole layouts."""
    times = {}
    for line in text.splitlines():
        try:
            row = json.loads(line) if line.startswith('{"did"') else None
        except ValueError:
            row = None
        if row:
            what = re.sub(r" instance \d+", " a slice", re.sub(r"profile (\d) at \d", profile_name, row["did"]))
            times.setdefault(what, []).append(row["us"] / 1e3)
    for what, ms in times.items():
        if what.startswith(("make", "remove a", "mig", "3g@", "the same", "4g@", "nothing")):
            report.figure(f"driver: {what}", f"{min(ms):.0f}-{max(ms):.0f} ms", REFERENCE.get(what.split()[0], ""))


def profile_name(match):
    return ["1g", "1g+", "2g", "3g", "4g", "7g"][int(match.group(1))]


def page(test):
    """The agent's page under load, and its own cost; the agent dies under the job."""
    cluster, report = test.cluster, test.report
    length = 4 if test.sim else 20
    job = cluster.submit("watched", test.work("load", "copy", length + 8, 20000))
    cluster.writes(job, r"^\d+$")
    time.sleep(3.5)
    smi = test.machine.query(*[field for _, field, _ in COMPARED])
    page = cluster.metrics()
    labels = page.get("DCGM_FI_DEV_FB_USED", ({}, 0))[0]
    report.check("the agent's page names who holds the GPU", labels.get("job") == job, labels.get("job", "nobody"))
    for metric, field, slack in COMPARED:
        if metric not in page:
            report.check(f"{metric} under load", field not in smi, "absent", smi.get(field, ""))
        elif smi:
            ours = page[metric][1]
            theirs = float(re.sub(r"[^0-9.]", "", smi[field]) or -1)
            report.check(f"{metric} under load", abs(ours - theirs) <= slack, f"{ours:g}",
                         f"nvidia-smi {theirs:g}, ±{slack}")
    cpu, rss = cost_of(cluster.agent.pid, length)
    report.check(f"the agent over {length} s, one GPU every second", test.sim or (cpu <= 1 and rss <= 30),
                 f"{cpu:.2f} % of a core, {rss:.0f} MB", "at most 1 %, 30 MB (8 GPUs)")
    test.crash("while it measures")
    try:
        again = cluster.metrics()
        report.check("its page is back", "DCGM_FI_DEV_FB_USED" in again, f"{len(again)} metrics")
    except (OSError, Trouble) as e:
        report.check("its page is back", False, e)
    test.ended_well("the job under it", job)
    status, text = test.machine.probe("cost", "20")
    report.check("what samples cost", status == 0, " ".join(text.split())[:200], "1.4-3 ms of CPU each, by parts")


def cost_of(pid, length):
    """CPU in percent of a core over that many seconds, and resident MB."""
    def ticks():
        with open(f"/proc/{pid}/stat") as f:
            words = f.read().rsplit(")", 1)[1].split()
        return int(words[11]) + int(words[12])

    before = ticks()
    time.sleep(length)
    cpu = (ticks() - before) * 100 / os.sysconf("SC_CLK_TCK") / length
    with open(f"/proc/{pid}/status") as f:
        rss = int(re.search(r"VmRSS:\s*(\d+)", f.read()).group(1)) / 1024
    return cpu, rss
