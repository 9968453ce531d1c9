#!/usr/bin/env python3
"""One stintd and real agents: what a fleet of simulated nodes costs it, how long a status takes, how long it
is from a submit to the first instruction of a container, and what an agent needs for itself.

    agents_real.py STINTD STINT_AGENT [NODES [SECONDS]]      6,250 nodes and 20 s unless given; 0 nodes: containers alone

Everything is on this machine. Containers are measured where they can be run, as root.
"""

import concurrent.futures
import glob
import json
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.environ.get("STINT_SOURCE", "."), "tests", "service"))
from harness import Client  # noqa: E402
from node import Node  # noqa: E402

PER_PROCESS = 1250  # simulated nodes in one agent
GANG = 8
STARTS = 60
CROWD = 50  # tasks submitted at once
PROBE_S = 0.02
TICK = os.sysconf("SC_CLK_TCK")


def say(text, *args):
    print("agents_real: " + (text % args if args else text), flush=True)


def cpu_of(pid):
    """Seconds of a processor; to the nanosecond where the kernel counts so."""
    try:
        total = 0
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/schedstat") as f:
                total += int(f.read().split()[0])
        return total / 1e9
    except OSError:
        with open(f"/proc/{pid}/stat") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICK


def rss_mib(pid):
    with open(f"/proc/{pid}/status") as f:
        for line in f:
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
    return 0


def quantile(values, part):
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def until(what, seconds, test, pause=0.05):
    end = time.time() + seconds
    while not test():
        if time.time() > end:
            raise SystemExit(f"agents_real: {what} took longer than {seconds} s")
        time.sleep(pause)


class Bench:
    def __init__(self, stintd, agent, files):
        self.stintd, self.agent, self.files = stintd, agent, files
        self.tmp = tempfile.mkdtemp(prefix="stint-bench-")
        self.started, self.port = {}, 0

    def path(self, *parts):
        return os.path.join(self.tmp, *parts)

    def spawn(self, name, argv):
        with open(self.path(name + ".log"), "a") as log:
            self.started[name] = subprocess.Popen(argv, stdout=log, stderr=log)
        return self.started[name].pid

    def said(self, name):
        with open(self.path(name + ".log"), errors="replace") as f:
            return f.read()

    def serve(self):
        with open(self.path("stintd.yaml"), "w") as f:
            # All agents have one address, which may have a quarter of the connections.
            f.write(f"engine: native\nconnections: {self.files}\nrate: 1000000\n")
        self.spawn("stintd", [self.stintd, "--data", self.path("data"), "--config",
                              self.path("stintd.yaml"), "--listen", "127.0.0.1:0"])
        until("stintd's start", 20, lambda: "event=listening" in self.said("stintd"))
        self.port = int(self.said("stintd").split("event=listening")[1].split("port=")[1].split()[0])
        with open(self.path("data", "owner.token")) as f:
            self.owner = Client(self.port, f.read().strip())
        for pool in ("main", "real"):
            self.owner.make("/v1/pools", {"name": pool, "allow": ["host-image"]})
        self.owner.make("/v1/accounts", {"name": "lab"})

    def join_token(self, name, pool, uses):
        token = self.owner.make("/v1/admin/join-tokens", {"pool": pool, "uses": uses, "new_types": True})["token"]
        path = self.path(name + ".join")
        with open(path, "w") as f:
            f.write(token)
        return path

    def start_agent(self, name, pool, *options, uses=1):
        return self.spawn(name, [self.agent, "--server", f"http://127.0.0.1:{self.port}",
                                 "--join-token-file", self.join_token(name, pool, uses), "--data",
                                 self.path(name), "--name", name, "--address", "127.0.0.1", "--sim",
                                 "h100x8", *options])

    def stop(self):
        for process in reversed(list(self.started.values())):
            process.terminate()
        for process in self.started.values():
            process.wait()
        subprocess.run(f"umount -l {self.tmp}/*/run/net/* 2>/dev/null", shell=True, check=False)
        shutil.rmtree(self.tmp, ignore_errors=True)


class Probe(threading.Thread):
    """One more node, which says its status often and takes the time."""

    def __init__(self, bench):
        super().__init__(daemon=True)
        token = bench.owner.make("/v1/admin/join-tokens", {"pool": "real", "uses": 1})["token"]
        self.node = Node(bench.port, "probe", cpu=1, ram="1Gi")
        self.node.register(token)
        self.took, self.over = [], False

    def run(self):
        while not self.over:
            proof_ahead = time.perf_counter()
            self.node.proof("GET", "/")
            signing = time.perf_counter() - proof_ahead  # not what stintd takes
            began = time.perf_counter() + signing
            self.node.status()
            self.took.append((time.perf_counter() - began) * 1e3)
            time.sleep(PROBE_S)

    def done(self):
        self.over = True
        self.join()
        return self.took


def wait_nodes(bench, names):
    """All of an agent's nodes have registered."""
    for name, n in names:
        until(f"{name}'s registration", 300,
              lambda name=name, n=n: bench.said(name).count("event=registered") >= n)


def own_cost(bench, name, pool, kind, seconds):
    """One node of eight simulated GPUs, sampled every second, with a task that runs on all of them."""
    pid = bench.start_agent(name, pool, "--exec", kind)
    wait_nodes(bench, [(name, 1)])
    job = bench.owner.make("/v1/jobs", {"name": "load", "account": "lab", "user": "ann", "gpus": 8,
                                        "pool": pool, "command": ["sleep", "3600"],
                                        "sim": {"run": "1h"}})["id"]
    until("its job", 20, lambda: "event=started" in bench.said(name))
    time.sleep(2)
    before, began = cpu_of(pid), time.time()
    time.sleep(seconds)
    share = (cpu_of(pid) - before) / (time.time() - began)
    say("one agent, one node, 8 GPUs sampled every second, %s on all of them, %d s: %.2f %% of a core, "
        "%.1f MiB resident", "a container" if kind == "oci" else "a simulated task", seconds,
        share * 100, rss_mib(pid))
    bench.owner.call("DELETE", f"/v1/jobs/{job}")
    until("its end", 30, lambda: "event=ended" in bench.said(name) or "event=killed" in bench.said(name))


def written(bench, job):
    """What a job has written into /data about its first command; 0: nothing yet."""
    for path in glob.glob(bench.path("real", "storage", "*", job)):
        with open(path) as f:
            text = f.read()
        return int(text) if len(text) > 15 else 0
    return 0


class Cpu:
    """Groups whose processor time is counted."""

    def __init__(self):
        old = "/sys/fs/cgroup/cpuacct"
        self.top, self.file = (old, "cpuacct.usage") if os.path.isdir(old) else ("/sys/fs/cgroup", "cpu.stat")

    def join(self, name, pid):
        os.makedirs(os.path.join(self.top, name), exist_ok=True)
        with open(os.path.join(self.top, name, "cgroup.procs"), "w") as f:
            f.write(str(pid))

    def ms(self, *names):
        total = 0
        for name in names:
            with open(os.path.join(self.top, name, self.file)) as f:
                words = f.read().split()
            total += int(words[0]) / 1e6 if len(words) == 1 else int(words[1]) / 1e3
        return total

    def leave(self, name):
        with open(os.path.join(self.top, name, "cgroup.procs")) as f:
            for pid in f.read().split():
                self.join("", pid)
        os.rmdir(os.path.join(self.top, name))


def crowd(bench):
    """So many tasks at once, and beside it the least that they can take: the runtime alone with one of their bundles, as many at a time
    as the agent begins. The processor's time of both does not depend on who else is on the machine."""
    doc = {"name": "crowd", "account": "lab", "user": "ann", "gpus": 0, "cpu": 0.01, "ram": "32Mi", "pool": "real", "limit": "5m"}
    model = bench.owner.make("/v1/jobs", {**doc, "command": ["sleep", "300"]})["id"]
    bundle = bench.path("real", "run", "tasks", model + ".1.0", "bundle")
    until("a bundle", 60, lambda: os.path.exists(os.path.join(bundle, "..", "live.json")))
    with open(os.path.join(bundle, "config.json")) as f:
        config = json.load(f)
    ours, alone, inside = f"stint-bench-{os.getpid()}", f"stint-bench-bare-{os.getpid()}", f"stint-bare-{os.getpid()}"
    tasks = config["linux"]["cgroupsPath"].strip("/").split("/")[0]
    cpu, width = Cpu(), max(4, 2 * (os.cpu_count() or 1))
    cpu.join(ours, bench.started["real"].pid)
    os.makedirs(os.path.join(cpu.top, alone))
    os.makedirs(os.path.join(cpu.top, inside))
    before = time.time_ns()
    with concurrent.futures.ThreadPoolExecutor(width) as pool:
        floor = sorted((ran - before) / 1e6 for ran in pool.map(lambda i: bare(bench, config, i, cpu, alone, inside), range(CROWD)))
    floor_cpu = cpu.ms(alone, inside) / CROWD
    for i in range(CROWD):
        subprocess.run([runtime(bench), "--root", bench.path("bare"), "delete", "--force", f"bare{i}"], check=False)
    before, asked = cpu.ms(ours, tasks), time.time_ns()
    jobs = [j["id"] for j in bench.owner.make("/v1/jobs/batch", {"jobs": [
        {**doc, "command": ["sh", "-c", "date +%s%N >/data/$STINT_JOB; exec sleep 60"]} for _ in range(CROWD)]})["jobs"]]
    until("the crowd", 120, lambda: all(written(bench, j) for j in jobs), 0.2)
    took_cpu = (cpu.ms(ours, tasks) - before) / CROWD
    took = sorted((written(bench, j) - asked) / 1e6 for j in jobs)
    for job in jobs + [model]:
        bench.owner.call("DELETE", f"/v1/jobs/{job}")
    until("its end", 120, lambda: not glob.glob(bench.path("real", "run", "tasks", "*")), 0.2)
    cpu.leave(ours)
    for name in (alone, inside):
        subprocess.run(f"find {cpu.top}/.. -depth -type d -path '*/{name}*' -exec rmdir {{}} +", shell=True, check=False, stderr=subprocess.DEVNULL)
    say("%d tasks at once, submit to the first command: p50 %.0f ms, all %.0f ms, %.1f ms of a processor each", CROWD,
        statistics.median(took), took[-1], took_cpu)
    say("%s alone with their bundles, %d at a time: p50 %.0f ms, all %.0f ms, %.1f ms of a processor each", runtime(bench), width,
        statistics.median(floor), floor[-1], floor_cpu)


def runtime(bench):
    """What the agent makes containers with."""
    return bench.said("real").split("event=exec kind=oci runtime=")[1].split()[0]


def bare(bench, model, i, cpu, group, inside):
    """A container with the bundle of a task; when its first command ran."""
    own = bench.path(f"bare{i}")
    os.makedirs(own)
    config = json.loads(json.dumps(model))
    config["linux"]["cgroupsPath"] = f"/{inside}/{i}"  # elsewhere the agent would end it as a stray
    config["process"]["args"] = ["/bin/sh", "-c", "date +%s%N; exec sleep 300"]
    with open(os.path.join(own, "config.json"), "w") as f:
        json.dump(config, f)
    with open(os.path.join(own, "out"), "w") as out, open(os.path.join(own, "err"), "w") as err:
        done = subprocess.run(["sh", "-c", 'echo $$ >"$0"; exec "$@"', os.path.join(cpu.top, group, "cgroup.procs"), runtime(bench),
                               "--root", bench.path("bare"), "run", "--detach", "--bundle", own, f"bare{i}"],
                              stdin=subprocess.DEVNULL, stdout=out, stderr=err, check=False)
    if done.returncode != 0:
        with open(os.path.join(own, "err")) as f:
            raise SystemExit("agents_real: the runtime alone: " + f.read())
    until("its first command", 60, lambda: os.path.getsize(os.path.join(own, "out")) > 15, 0.005)
    with open(os.path.join(own, "out")) as f:
        return int(f.read())


def starts(bench, label):
    """From a submit to the first command in a container, and the steps on the way."""
    took, steps = [], []
    for _ in range(STARTS):
        asked = time.time_ns()
        job = bench.owner.make("/v1/jobs", {
            "name": "start", "account": "lab", "user": "ann", "gpus": 1, "pool": "real", "limit": "1m",
            "command": ["sh", "-c", "date +%s%N >/data/$STINT_JOB"]})["id"]
        answered = time.time_ns()
        ordered = bench.path("real", "run", "tasks", job + ".1.0", "task.json")
        until("an order", 60, lambda: os.path.exists(ordered) or written(bench, job), 0.0005)
        begun = time.time_ns()
        until("a container", 60, lambda: written(bench, job))
        ran = written(bench, job)
        took.append((ran - asked) / 1e6)
        steps.append(((answered - asked) / 1e6, (begun - answered) / 1e6, (ran - begun) / 1e6))
        time.sleep(0.1)
    say("submit to the first command in a container, %s, %d times: p50 %.0f ms, p99 %.0f ms", label,
        len(took), statistics.median(took), quantile(took, 0.99))
    say("of that, at the median: the answer %.1f ms, until the agent begins %.1f ms, the container %.0f ms",
        *(statistics.median(step) for step in zip(*steps)))


def fleet(bench, n, seconds, real):
    names = []
    while sum(k for _, k in names) < n:
        k = min(PER_PROCESS, n - sum(k for _, k in names))
        names.append((f"many{len(names)}", k))
    began = time.time()
    for name, k in names:
        bench.start_agent(name, "main", "--exec", "sim", *(["--sim-nodes", str(k)] if k > 1 else []),
                          uses=k)
    wait_nodes(bench, names)
    say("%d nodes of %d agents registered in %.1f s", n, len(names), time.time() - began)
    bench.owner.make("/v1/jobs/batch", {"jobs": [
        {"name": f"g{i}", "account": "lab", "user": "ann", "tasks": GANG, "gpus": 8, "pool": "main",
         "command": ["true"], "sim": {"run": "2h"}} for i in range(n // GANG)]})
    want = n // GANG * GANG
    until("all gangs' start", 300,
          lambda: sum(bench.said(name).count("event=started") for name, _ in names) >= want)
    time.sleep(6)
    pids = {name: bench.started[name].pid for name in ["stintd"] + [name for name, _ in names]}
    before, at = {name: cpu_of(pid) for name, pid in pids.items()}, time.time()
    probe = Probe(bench)
    probe.start()
    time.sleep(seconds)
    took = probe.done()
    span = time.time() - at
    used = {name: (cpu_of(pid) - before[name]) / span for name, pid in pids.items()}
    agents = sum(v for k, v in used.items() if k != "stintd")
    memory = sum(rss_mib(pid) for name, pid in pids.items() if name != "stintd")
    say("%d nodes, %d with a task, each reporting every 5 s, %.0f s: stintd uses %.1f %% of a core and "
        "%.0f MiB", n, want, span, used["stintd"] * 100, rss_mib(pids["stintd"]))
    say("a status takes p50 %.2f ms, p99 %.2f ms, at most %.2f ms (%d of a node of their own)",
        statistics.median(took), quantile(took, 0.99), max(took), len(took))
    say("its agents use %.1f %% of a core, %.4f %% a node, and %.0f KiB a node; eight GPUs each, sampled "
        "every second", agents * 100, agents * 100 / n, memory * 1024 / n)
    if real:
        starts(bench, f"beside {n} nodes that report")
    lost = [row for name, _ in names for row in bench.said(name).splitlines() if "event=status-failed" in row]
    if lost:
        say("%d statuses failed and were said again, the first: %s", len(lost), lost[0][:200])


def main():
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    n = int(sys.argv[3]) if len(sys.argv) > 3 else 6250
    seconds = int(sys.argv[4]) if len(sys.argv) > 4 else 20
    need = 3 * n + 1000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, need), max(hard, need)))
    except (ValueError, OSError):
        say("only %d open files are allowed; not measured", hard)
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was started is ended
    bench = Bench(sys.argv[1], sys.argv[2], 100000)
    try:
        doctor = subprocess.run([bench.agent, "doctor", "--data", bench.path("doctor"), "--sim", "h100x8"],
                                capture_output=True, text=True, check=False)
        real = doctor.returncode == 0
        if not real:
            say("containers cannot be run here, their start is not measured: %s",
                next((row for row in doctor.stdout.splitlines() if row.startswith("BAD")), ""))
        bench.serve()
        own_cost(bench, "single", "main", "sim", seconds)
        bench.started["single"].terminate()
        bench.started.pop("single").wait()
        if real:
            own_cost(bench, "real", "real", "oci", seconds)
            starts(bench, "idle cluster")
            crowd(bench)
        if n > 0:
            fleet(bench, n, seconds, real)
    finally:
        bench.stop()


if __name__ == "__main__":
    main()
