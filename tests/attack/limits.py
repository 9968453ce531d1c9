#!/usr/bin/env python3
"""Defaults with limits: a job that asks for nothing is held to what its pool says, and a job that takes all it can
takes nothing from others. See attack.py."""

import os
import re

from attack import attempt, check, until, wall

def held(site, account="rival"):
    return site.owner.get(f"/v1/accounts/{account}/quota").json["held"]


def idle(site):
    """Nothing of the attempts before is held any more."""
    until(lambda: held(site)["cpu"] == 0, "the end of what ran before")


def runs(site, script, seconds=90, **doc):
    """Without cpu and ram, unless given."""
    job = site.rival.job(command=["python3", "-c", script], **doc)
    ended = site.rival.becomes(job, "done", "failed", "cancelled", seconds=seconds)
    return ended, site.rival.log(job)


@attempt("a job without GPUs, cpu or ram", "runs", "a CPU and its part of the RAM, counted in its quota")
def defaults_count(site):
    idle(site)
    node = site.owner.get("/v1/nodes/" + site.agents[0].name).json
    job = site.rival.job()
    site.rival.becomes(job, "running")
    now = held(site)
    site.rival.cancel(job)
    check(now["cpu"] >= 1, "it holds %s CPUs", now["cpu"])
    check(0 < now["ram_mib"] <= node["ram_mib"] / node["cpu"], "it holds %s MiB of %s", now["ram_mib"], node["ram_mib"])


@attempt("a job with one GPU of eight", "asks for no cpu and no ram", "no more than an eighth of either")
def gpu_defaults(site):
    idle(site)
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


# Of the agent: what each account may have in its /data.
DATA_MIB = 64

FILL = """
import errno, os, time
n = 0
try:
    with open('/data/fill', 'wb') as f:
        while n < %d << 20:
            n += f.write(os.urandom(4 << 20))
            f.flush()
            time.sleep(0.05)
except OSError as e:
    print('stopped', n, e.errno, flush=True)
    raise SystemExit(0 if e.errno == errno.EDQUOT else 1)
time.sleep(120)
"""


def storage_of(site, name):
    """The folder that a tenant sees as /data, by a file in it."""
    for folder, _, names in os.walk(os.path.join(site.agents[0].data, "storage")):
        if name in names:
            return folder
    return None


@attempt("a job", "fills /data beside an honest tenant", "its end at the limit, and no room for its account until it is tidied up")
def data_fill(site):
    ended, log = runs(site, FILL % (4 * DATA_MIB), cpu=0.5, ram="256Mi")  # its pages wait for the disk
    held = "stopped" in log  # by the file system
    check(held or (ended["state"] == "failed" and "/data" in ended.get("reason", "")), "%s %s", ended, log)
    check(os.path.getsize(os.path.join(storage_of(site, "fill"), "fill")) <= 5 * DATA_MIB << 20, "all of it is there")
    if not held:
        ended, log = runs(site, "print('started')")
        check(ended["state"] == "failed" and "/data" in ended["reason"] and "started" not in log, "%s", ended)
    mine = site.acme.job(command=["sh", "-c", "echo mine >/data/mine; cat /data/mine"], cpu=0.2, ram="64Mi")
    site.acme.becomes(mine, "done")
    check(site.agents[0].state() == "ready", "the node is %s", site.agents[0].state())
    os.unlink(os.path.join(storage_of(site, "fill"), "fill"))

    def again():
        ended, log = runs(site, "print('started')")
        return ended["state"] == "done" and "started" in log
    until(again, "a job after it was tidied up")


@attempt("a job", "crashes, to have the kernel start a program for its core file outside of its limits", "a limit by which there is none")
def core_files(site):
    _, log = runs(site, """
import os, resource, signal
print(resource.getrlimit(resource.RLIMIT_CORE), flush=True)
for limit in (0, 1 << 20, resource.RLIM_INFINITY):
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (limit, resource.RLIM_INFINITY)); print('RAISED', limit)
    except (OSError, ValueError):
        pass
os.chdir('/data')
for _ in range(3):
    pid = os.fork()
    if pid == 0:
        os.kill(os.getpid(), signal.SIGSEGV)
    print(os.WCOREDUMP(os.waitpid(pid, 0)[1]), flush=True)
print([n for n in os.listdir('/data') if 'core' in n])
""")
    check("(1, 1)" in log and "RAISED" not in log and "True" not in log and "[]" in log, "%s", log)
    with open(f"/proc/{site.agents[0].process.pid}/limits") as f:
        own = next(line.split()[4:6] for line in f if line.startswith("Max core"))
    check(own in (["1", "1"], ["0", "0"]), "the agent's own: %s", own)


@attempt("a job", "makes files without end in /data", "an end of them, or of the job")
def data_files(site):
    ended, log = runs(site, """
import os, time
n = 0
try:
    while n < 30000:
        open('/data/many-%d' % n, 'w').close()
        n += 1
except OSError as e:
    print('stopped', n, e.errno, flush=True)
    raise SystemExit(0)
time.sleep(120)
""", cpu=1)
    check("stopped" in log or (ended["state"] == "failed" and "files" in ended.get("reason", "")), "%s %s", ended, log)
    folder = storage_of(site, "many-0")
    for name in os.listdir(folder):
        if name.startswith("many-"):
            os.unlink(os.path.join(folder, name))
    until(lambda: runs(site, "pass")[0]["state"] == "done", "a job after it was tidied up")


@attempt("a job", "moves its files to another quota project, or out of its own", "no permission")
def project_escape(site):
    _, log = runs(site, """
import fcntl, os, struct
GET, SET, FLAGS, FLAGS32 = 0x801c581f, 0x401c5820, 0x40086602, 0x40046602
fd = os.open('/data/own', os.O_CREAT | os.O_RDWR)
top = os.open('/data', os.O_RDONLY)
for what in (fd, top):
    for call in (SET, SET | 1 << 32):
        for project in (0, 1, 1048577):
            try:
                x = fcntl.ioctl(what, call & 0xffffffff, struct.pack('IIII', 0, 0, 0, project) + bytes(12))
                print('MOVED', project)
            except PermissionError:
                pass
            except OSError as e:
                print('OTHER', e)
    for call in (FLAGS, FLAGS32):
        try:
            fcntl.ioctl(what, call, struct.pack('l', 0x40))
            print('FLAGS')
        except PermissionError:
            pass
        except OSError as e:
            print('OTHER', e)
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
buf = ctypes.create_string_buffer(64)
if libc.syscall(469, -100, b'/data/own', buf, 28, 0) == 0: print('MOVED by file_setattr')
if libc.syscall(16, fd, ctypes.c_ulong(0xffffffff00000000 | SET), buf) == 0: print('MOVED by high bits')
os.unlink('/data/own')
print('over')
""", cpu=0.2, ram="64Mi")
    check("over" in log and not re.search("MOVED|FLAGS|OTHER", log), "%s", log)


SEE = "import os; print('sees', sorted(os.sched_getaffinity(0)), flush=True)"


def sees(log):
    return set(eval(re.search(r"sees (\[.*?\])", log).group(1)))


def pinned():
    """Why CPUs cannot be told apart here; "": they can."""
    return "" if (os.cpu_count() or 1) > 1 else "one CPU"


@attempt("a job with one CPU", "counts the CPUs it has", "one")
def sees_its_own(site):
    for cpu in (1, 0.5):
        ended, log = runs(site, SEE + "; import subprocess; print('nproc', subprocess.check_output('nproc').decode())",
                          cpu=cpu, ram="64Mi")
        check(ended["state"] == "done" and len(sees(log)) == 1 and "nproc 1" in log, "cpu %s: %s", cpu, log)


@attempt("a job with one CPU", "sets its affinity to all there are", "its own, as before")
def affinity_escape(site):
    if pinned():
        return
    _, log = runs(site, """
import os
before = os.sched_getaffinity(0)
for want in (set(range(1024)), set(range(os.cpu_count())) - before, *({i} for i in range(os.cpu_count()))):
    try:
        os.sched_setaffinity(0, want)
    except OSError as e:
        print('refused', e.errno)
    if os.sched_getaffinity(0) != before: print('ESCAPED', os.sched_getaffinity(0))
pid = os.fork()
if pid == 0:
    os.setsid()
    try: os.sched_setaffinity(0, set(range(1024)))
    except OSError: pass
    if os.sched_getaffinity(0) != before: print('ESCAPED', os.sched_getaffinity(0))
    os._exit(0)
os.waitpid(pid, 0)
print('over')
""", cpu=1, ram="64Mi")
    check("over" in log and "ESCAPED" not in log, "%s", log)


@attempt("a job with one CPU", "writes other CPUs into its group, or moves to another group", "a read-only group")
def cpuset_write(site):
    if pinned():
        return
    _, log = runs(site, """
import glob, os
before = os.sched_getaffinity(0)
names = ('cpuset.cpus', 'cpuset.cpus.exclusive', 'cpuset.cpus.partition', 'cpuset.mems', 'cgroup.procs', 'tasks')
for f in [f for n in names for f in glob.glob('/sys/fs/cgroup/**/' + n, recursive=True)]:
    for word in ('0-%d' % (os.cpu_count() - 1), str(os.getpid()), 'root'):
        try:
            open(f, 'w').write(word)
            print('WROTE', f, word)
        except OSError:
            pass
try:
    os.mkdir('/sys/fs/cgroup/cpuset/mine')
    print('WROTE a group')
except OSError:
    pass
if os.sched_getaffinity(0) != before: print('ESCAPED')
print('over')
""", cpu=1, ram="64Mi")
    check("over" in log and "WROTE" not in log and "ESCAPED" not in log, "%s", log)


@attempt("a job with one CPU", "runs beside another, before and after their agent is restarted", "CPUs that the other has not")
def neighbours_cpu(site):
    if pinned():
        return
    here = site.rival.job(command=["python3", "-c", SEE + "; import time; time.sleep(300)"], cpu=1, ram="64Mi")
    until(lambda: "sees" in site.rival.log(here), "what the first sees")
    ended, log = runs(site, SEE, cpu=1, ram="64Mi")
    first, second = sees(site.rival.log(here)), sees(log)
    site.agents[0].stop()  # what is taken outlives the agent
    site.agents[0].start()
    site.agents[0].ready()
    _, log = runs(site, SEE, cpu=1, ram="64Mi")
    third = sees(log)
    site.rival.cancel(here)
    check(ended["state"] == "done" and not first & second and not first & third, "%s, %s and %s", first, second, third)


@attempt("a job", "asks for more CPUs than the machine has, of a node that promises them", "all there are, and its quota")
def more_than_there_are(site):
    ended, log = runs(site, SEE, cpu=12, ram="64Mi")
    check(ended["state"] == "done" and len(sees(log)) == os.cpu_count(), "%s %s", ended["state"], log)


wall("limits", agents=1, agent_options=("--cpu", "16", "--data-limit", f"{DATA_MIB}Mi"))
