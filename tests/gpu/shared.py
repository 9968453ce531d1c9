"""Shared GPUs: MPS inside one trust domain, and time slices."""
import time

from cluster import Trouble, until

# What a client sees, then what one sees that goes around the daemon, then one that drops its own limits.
LOOK = """{0} {1} {2}
env -u CUDA_MPS_PIPE_DIRECTORY {0} | sed 's/^/around_/'
env -u CUDA_MPS_PINNED_DEVICE_MEM_LIMIT -u CUDA_MPS_ACTIVE_THREAD_PERCENTAGE {0} {2} | sed 's/^/loose_/'
sleep 2"""
GRANT_MIB, WITHIN_MIB, BEYOND_MIB = 40960, 20000, 60000


def mps(test):
    """Two tenants of one domain with 40 % each; a third of another domain has to wait."""
    cluster, report = test.cluster, test.report
    if test.leave_settings:
        report.skip("MPS", "it sets the compute mode, and the settings of the GPU are to be left alone")
        return
    share = {"level": "mps", "share": 0.4, "vram": f"{GRANT_MIB // 1024}Gi"}
    load = cluster.submit("mps-load", test.work("load", "copy", 15, WITHIN_MIB), account="lab-a", **share)
    try:
        cluster.writes(load, r"^\d+$")
    except Trouble as e:
        if not test.refused("level mps", cluster.job(load)):
            report.check("a job at level mps", False, e)
        return
    for _, line in cluster.said.find("event=mps-started")[-1:]:
        report.figure("its daemon", line.split("gpu=0 ")[-1])
    look = cluster.submit("mps-look", ["sh", "-c", LOOK.format(*test.work("info", WITHIN_MIB, BEYOND_MIB))],
                          account="lab-b", **share)
    stranger = cluster.submit("mps-stranger", test.work("info"), account="other", level="mps", share=0.2, vram="8Gi")
    cluster.writes(look, "^first_ns")
    states = [cluster.state(j) for j in (load, look, stranger)]
    report.check("two tenants of one domain at once", states[:2] == ["running"] * 2, ", ".join(states[:2]))
    report.check("another trust domain is not put beside them", states[2] == "pending",
                 f"{states[2]}: {cluster.why(stranger)}")
    test.crash("under two MPS clients")
    done = test.ended_well("the second tenant's job", look)
    if done:
        limits(test, done[1])
    test.ended_well("the first tenant's job", load)
    test.ended_well("the other domain's job, afterwards", stranger)
    overrun(test, share)


def limits(test, seen):
    if test.sim:
        return
    test.report.check(f"memory within the grant ({GRANT_MIB} MiB)", seen.get(f"alloc_{WITHIN_MIB}") == "ok",
                      f"{WITHIN_MIB} MiB: {seen.get(f'alloc_{WITHIN_MIB}')}", "allocated")
    beyond = seen.get(f"alloc_{BEYOND_MIB}", "the task was ended")
    test.report.check("memory beyond the grant", beyond != "ok", f"{BEYOND_MIB} MiB: {beyond}", "refused")
    loose = seen.get(f"loose_alloc_{BEYOND_MIB}", "the task was ended")
    test.report.check("beyond the grant, without the limits in its environment", loose != "ok", loose, "refused")
    around = seen.get("around_compute", "no device")
    test.report.check("past the daemon", around != "ok", around, "no device")
    sms = int(seen.get("sms", 0))
    speed = test.whole_ms / float(seen.get("work_ms", 0) or "inf")
    test.report.check("SMs a client with 40 % gets", 46 <= sms <= 58 or 0 < speed <= 0.5,
                      f"sees {sms}, {test.part_of_whole(seen)}", "about 53 of 132")


def overrun(test, share):
    """The limit is the task's, not the process's: two processes of one task get no more."""
    if test.sim:
        return
    one = " ".join(test.work("load", "hold", 6, 30000))
    row, text = test.cluster.run("mps-two", ["sh", "-c", f"{one} & {one}; wait"], account="lab-b", **share)
    ended = row["state"] == "failed" or "failed" in text
    test.report.check("two processes of one task, 30000 MiB each", ended,
                      f"{row['state']}: {row.get('reason') or ''} {text[-100:]}", "refused or ended")


def slices(test):
    """Two jobs on one GPU at factor 2; one takes more memory than it asked for."""
    cluster, report = test.cluster, test.report
    share = {"level": "time", "share": 1, "vram": "60Gi"}
    pair = [cluster.submit(f"time-{a}", test.work("load", "copy", 5, 20000), account=a, **share)
            for a in ("lab-a", "lab-b")]
    try:
        for job in pair:
            cluster.writes(job, r"^\d+$")
    except Trouble as e:
        if not test.refused("level time", cluster.job(pair[0])):
            report.check("two jobs at level time", False, e)
        return
    report.check("two jobs on one GPU at factor 2", all(cluster.state(j) == "running" for j in pair), "both run")
    test.crash("under two time-sliced jobs")
    for job, tenant in zip(pair, ("lab-a", "lab-b")):
        test.ended_well(f"the job of {tenant}", job)
    too_much(test)


def too_much(test):
    cluster, report = test.cluster, test.report
    if not test.agent_has("--mps-control"):
        report.skip("more memory than asked for", "this agent does not watch it")
        return
    neighbour = cluster.submit("modest", test.work("load", "copy", 9, 20000), account="lab-a", level="time", share=1,
                               vram="60Gi")
    cluster.writes(neighbour, r"^\d+$")
    began = time.time()
    greedy = cluster.submit("greedy", test.work("load", "hold", 15, 50000), account="lab-b", level="time", share=1,
                            vram="20Gi")
    if test.sim:
        cluster.reach(greedy, "running")
        time.sleep(1)
        cluster.fault("memory 50000")
    row, text = cluster.finish(greedy, 25)
    ended = row["state"] == "failed" or "failed:" in text
    report.check("50000 MiB with 20 GiB asked for: ended", ended,
                 f"{row['state']} after {time.time() - began:.1f} s: {row.get('reason') or text[-150:]}")
    test.ended_well("its neighbour is not", neighbour)


def sequence(test):
    """Every level on the same GPU, submitted at once; modes follow by themselves."""
    cluster, report = test.cluster, test.report
    asked = [("whole", {}), ("1g", {"level": "mig", "profile": "1g"}), ("2g", {"level": "mig", "profile": "2g"}),
             ("3g", {"level": "mig", "profile": "3g"}), ("mps a", {"level": "mps", "share": 0.5}),
             ("mps b", {"level": "mps", "share": 0.5}), ("time a", {"level": "time", "share": 1, "vram": "60Gi"}),
             ("time b", {"level": "time", "share": 1, "vram": "60Gi"}), ("whole again", {})]
    if test.leave_settings:
        asked = [a for a in asked if a[1].get("level") not in ("mig", "mps")]
    began = time.time()
    jobs = []
    for i, (name, more) in enumerate(asked):
        account = "lab-b" if i % 2 else "lab-a"
        jobs.append((name, cluster.submit(name.replace(" ", "-"), test.work("load", "copy", 2, 3000), account=account,
                                          **more)))
    time.sleep(3)
    test.crash("between levels")
    for name, job in jobs:
        test.ended_well(f"{name}, of all levels submitted at once", job, 90)
    report.figure("all of them", f"{time.time() - began:.1f} s")
    try:
        until(cluster.empty, 15, "tasks are left")
        report.check("nothing is left of them", test.slices_gone(), "no task, no slice")
    except Trouble as e:
        report.check("nothing is left of them", False, e)
