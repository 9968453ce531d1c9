#!/usr/bin/env python3
"""Defaults with limits: a job that asks for nothing is held to what its pool says, and a job that takes all it can
takes nothing from others. See attack.py."""

import re

from attack import attempt, check, until, wall

def held(site, account="rival"):
    return site.owner.get(f"/v1/accounts/{account}/quota").json["held"]


def runs(site, script, seconds=90, **doc):
    """Without cpu and ram, unless given."""
    job = site.rival.job(command=["python3", "-c", script], **doc)
    ended = site.rival.becomes(job, "done", "failed", "cancelled", seconds=seconds)
    return ended, site.rival.log(job)


@attempt("a job without GPUs, cpu or ram", "runs", "a CPU and its part of the RAM, counted in its quota")
def defaults_count(site):
    node = site.owner.get("/v1/nodes/" + site.agents[0].name).json
    job = site.rival.job()
    site.rival.becomes(job, "running")
    now = held(site)
    site.rival.cancel(job)
    check(now["cpu"] >= 1, "it holds %s CPUs", now["cpu"])
    check(0 < now["ram_mib"] <= node["ram_mib"] / node["cpu"], "it holds %s MiB of %s", now["ram_mib"], node["ram_mib"])


@attempt("a job with one GPU of eight", "asks for no cpu and no ram", "no more than an eighth of either")
def gpu_defaults(site):
    node = site.owner.get("/v1/nodes/" + site.agents[0].name).json
    job = site.rival.job(gpus=1)
    site.rival.becomes(job, "running")
    now = held(site)
    site.rival.cancel(job)
    check(0 < now["cpu"] <= node["cpu"] / 8, "it holds %s of %s CPUs", now["cpu"], node["cpu"])
    check(0 < now["ram_mib"] <= node["ram_mib"] / 8, "it holds %s of %s MiB", now["ram_mib"], node["ram_mib"])


@attempt("a job without ram", "fills memory until something gives", "its own end, for memory")
def memory_bomb(site):
    ended, _ = runs(site, "import mmap\nkeep = []\nwhile True: keep.append(bytearray(32 << 20))")
    check(ended["state"] == "failed", "it is %s", ended["state"])
    check("memory" in ended.get("reason", ""), "it does not say why: %s", ended)


@attempt("a job without ram", "fills /dev/shm", "an end at its size, or of the job")
def shm_fill(site):
    ended, log = runs(site, """
n = 0
try:
    with open('/dev/shm/f', 'wb') as f:
        while n < 1 << 36:
            n += f.write(b'x' * (8 << 20))
except OSError as e:
    print('stopped', n, e.errno)
""")
    check(ended["state"] == "failed" or "stopped" in log, "%s %s", ended["state"], log)


@attempt("a job without ram", "fills /tmp", "an end at its size, or of the job")
def tmp_fill(site):
    ended, log = runs(site, """
n = 0
try:
    with open('/tmp/f', 'wb') as f:
        while n < 1 << 36:
            n += f.write(b'x' * (8 << 20))
except OSError as e:
    print('stopped', n, e.errno)
""")
    check(ended["state"] == "failed" or "stopped" in log, "%s %s", ended["state"], log)


@attempt("a job", "forks without end", "an end of processes at its limit")
def fork_bomb(site):
    ended, log = runs(site, """
import os, time
n = 0
try:
    while n < 100000:
        if os.fork() == 0:
            time.sleep(20)
            os._exit(0)
        n += 1
except OSError as e:
    print('stopped', n, e.errno)
""", seconds=120, cpu=0.5, ram="256Mi")
    check(ended["state"] == "failed" or re.search(r"stopped \d+ 11", log), "%s %s", ended["state"], log[:200])


@attempt("a job", "floods its log", "a bounded log, and a node that goes on")
def log_flood(site):
    ended, _ = runs(site, """
import sys, time
end = time.monotonic() + 8
line = 'x' * 4095 + '\\n'
while time.monotonic() < end:
    sys.stdout.write(line)
""", cpu=0.5, ram="128Mi")
    check(ended["state"] in ("done", "failed"), "it is %s", ended["state"])


@attempt("a job", "leaves gigabytes of holes in a file in memory", "nothing: what is not written is not held")
def sparse(site):
    ended, log = runs(site, "f = open('/tmp/f', 'wb'); f.truncate(1 << 30); print('fine')", cpu=0.2, ram="64Mi")
    check(ended["state"] in ("done", "failed"), "%s %s", ended["state"], log)


@attempt("a job with a CPU", "burns all it can see", "no more than its CPU's time")
def cpu_hog(site):
    ended, log = runs(site, """
import os, time
pids = []
for _ in range(4):
    pid = os.fork()
    if pid == 0:
        end = time.monotonic() + 6
        while time.monotonic() < end: pass
        os._exit(0)
    pids.append(pid)
for p in pids: os.waitpid(p, 0)
t = os.times()
print('used', t.children_user + t.children_system)
""", cpu=0.5, ram="64Mi")
    used = float(re.search(r"used ([\d.]+)", log).group(1))
    check(used <= 6 * 0.5 * 1.6 + 0.5, "%s seconds of CPU in 6 with half a CPU", used)


@attempt("a job", "asks for a negative, huge or senseless cpu or ram", "a refusal")
def senseless(site):
    for doc in ({"cpu": -1}, {"cpu": 1e12}, {"ram": -1}, {"ram": "9999999Ti"}, {"cpu": "nan"}, {"cpu": "1e309"}, {"ram": "1Xi"}):
        site.refused(site.rival.submit(**doc))


@attempt("a job", "asks for cpu: 0 and ram: 0, to have no limit", "the pool's default")
def explicit_zero(site):
    job = site.rival.job(cpu=0, ram=0)
    site.rival.becomes(job, "running")
    now = held(site)
    site.rival.cancel(job)
    check(now["cpu"] > 0 and now["ram_mib"] > 0, "it holds %s", now)


@attempt("a size", "says cpu: 0 and ram: 0", "the pool's default")
def size_zero(site):
    answer = site.rival_admin.call("PUT", "/v1/sizes/free", {"gpus": 0, "cpu": 0, "ram": 0})
    if answer.status >= 300:
        return
    job = site.rival_admin.job(size="free")
    site.rival_admin.becomes(job, "running")
    now = held(site)
    site.rival_admin.cancel(job)
    check(now["cpu"] > 0 and now["ram_mib"] > 0, "it holds %s", now)


@attempt("an array", "asks for nothing in each of its pieces", "each counted")
def array_counts(site):
    answer = site.rival.submit(array={"count": 2})
    jobs = [j["id"] for j in answer.json.get("jobs", []) if "id" in j]
    check(len(jobs) == 2, "taken: %s", answer.text[:200])
    states = until(lambda: (lambda s: "running" in s and s)([site.rival.show(j)["state"] for j in jobs]), "one of them runs")
    now = held(site)
    for j in jobs:
        site.rival.cancel(j)
    check(now["cpu"] >= states.count("running"), "%s hold %s", states, now)


@attempt("a job", "looks for its limit from inside and writes another", "a read-only group")
def write_own_limit(site):
    _, log = runs(site, """
import glob
for f in glob.glob('/sys/fs/cgroup/**/memory.max', recursive=True) + glob.glob('/sys/fs/cgroup/**/memory.limit_in_bytes', recursive=True):
    try:
        open(f, 'w').write('1000000000000')
        print('WROTE', f)
    except OSError:
        pass
print('done')
""", cpu=0.2, ram="64Mi")
    check("WROTE" not in log, "%s", log)


wall("limits", agents=1)
