"""A stintd and one agent on this machine, and jobs for them.

Everything lives in one folder. The agent can be killed and started again at any moment; what it
says is kept in agent.log, each line with the time it was seen, so that steps can be timed.
"""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request

ENDED = {"done", "failed", "timeout", "cancelled"}
NODE = "gpu"

CONFIG = """engine: native
agent_lease: 60s
rate: 100000
policy: {notice: 0s, grace: 60s, min_run: 0s, cooldown: 0s}
"""

# name, parent, more. `lab` is one trust domain with two tenants, `other` another, `owner` has the floor.
ACCOUNTS = [("lab", None, []), ("lab-a", "lab", []), ("lab-b", "lab", []), ("other", None, []),
            ("owner", None, ["--guarantee", "gpu=1"])]


class Trouble(Exception):
    """Something did not come about; the sentence says what."""


class Tail:
    """Lines of a growing file, each with the wall clock at which it appeared."""

    def __init__(self, path):
        self.path = path
        self.lines = []
        open(path, "a").close()
        threading.Thread(target=self.follow, daemon=True).start()

    def follow(self):
        with open(self.path, errors="replace") as f:
            rest = ""
            while True:
                text = f.read()
                if not text:
                    time.sleep(0.003)
                    continue
                now = time.time()
                *whole, rest = (rest + text).split("\n")
                self.lines += [(now, line) for line in whole]

    def find(self, pattern, since=0.0):
        """(time, line) of those that match and were seen after `since`."""
        return [(at, line) for at, line in list(self.lines) if at >= since and re.search(pattern, line)]


class Cluster:
    def __init__(self, machine, folder):
        self.machine, self.folder, self.sim = machine, folder, machine.sim
        os.makedirs(folder)
        self.stintd = self.agent = self.said = None
        self.url = self.token = None
        self.env = {}  # given to every job
        self.metrics_url = None
        self.submitted = []

    def program(self, name):
        return self.machine.program(name)

    def file(self, *names):
        return os.path.join(self.folder, *names)

    # ---- stintd ----------------------------------------------------------------------------

    def start(self):
        with open(self.file("stintd.yaml"), "w") as f:
            f.write(CONFIG)
        log = self.file("stintd.log")
        said = Tail(log)
        self.stintd = subprocess.Popen(
            [self.program("stintd"), "--data", self.file("data"), "--config", self.file("stintd.yaml"), "--listen",
             "127.0.0.1:0"], stdout=open(log, "a"), stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        until(lambda: said.find("^event=listening"), 20, "stintd does not start")
        port = re.search(r"port=(\d+)", said.find("^event=listening")[-1][1]).group(1)
        self.url = f"http://127.0.0.1:{port}"
        with open(self.file("data", "owner.token")) as f:
            self.token = f.read().strip()
        self.stint("pool", "add", "main", "--levels", "whole,mig,mps,time",
                   "--allow", "host-image")
        for name, parent, more in ACCOUNTS:
            self.stint("account", "create", name, *(["--parent", parent] if parent else []), *more)
        with open(self.file("join.token"), "w") as f:
            f.write(self.stint("admin", "join-token", "--pool", "main", "--uses", "9", "--new-types"))

    def stint(self, *words, timeout=20):
        """The command line; its standard output."""
        env = {**os.environ, "STINT_URL": self.url, "STINT_TOKEN": self.token, "STINT_CONFIG": self.file("config")}
        done = subprocess.run([self.program("stint"), *words], env=env, timeout=timeout, capture_output=True,
                              text=True, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise Trouble(f"stint {' '.join(words[:3])}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def api(self, path, body=None, method=None):
        request = urllib.request.Request(self.url + path, method=method,
                                         data=None if body is None else json.dumps(body).encode(),
                                         headers={"Authorization": "Bearer " + self.token,
                                                  "Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=15) as answer:
                return answer.read().decode(errors="replace")
        except urllib.error.HTTPError as e:
            raise Trouble(f"{path}: {e.read().decode(errors='replace')[:300]}") from None

    # ---- the agent -------------------------------------------------------------------------

    def agent_command(self):
        more = self.machine.agent_options()
        if self.sim:
            more += ["--sim-faults", self.file("faults")]
            open(self.file("faults"), "a").close()
        return [self.program("stint-agent"), "--server", self.url, "--join-token-file", self.file("join.token"),
                "--data", self.file("agent"), "--name", NODE, "--address", "127.0.0.1", "--grace", "3s", "--exec",
                "oci", "--metrics", "127.0.0.1:0", *more]

    def start_agent(self, ready=True):
        log = self.file("agent.log")
        if self.said is None:
            self.said = Tail(log)
        began = time.time()
        # A session of its own: what ends us must not end what it runs.
        self.agent = subprocess.Popen(self.agent_command(), stdout=open(log, "a"), stderr=subprocess.STDOUT,
                                      stdin=subprocess.DEVNULL, start_new_session=True)
        if ready:
            until(lambda: self.said.find("^event=metrics", began), 20, "the agent does not start")
            port = re.search(r"port=(\d+)", self.said.find("^event=metrics", began)[-1][1]).group(1)
            self.metrics_url = f"http://127.0.0.1:{port}/metrics"
            try:
                until(self.node_ready, 30, "the node does not become ready")
            except Trouble as e:
                raise Trouble(f"{e}: {self.node_words()}") from None

    def fault(self, words):
        """Something happens to a simulated GPU."""
        with open(self.file("faults"), "a") as f:
            f.write(f"{NODE} 0 {words}\n")

    def node(self):
        return json.loads(self.api(f"/v1/nodes/{NODE}"))

    def node_ready(self):
        try:
            return self.node().get("state") == "ready"
        except Trouble:
            return False

    def node_words(self):
        """Its state and why, for messages."""
        try:
            now = self.node()
            return f"node {now.get('state')} {now.get('reason') or ''}".strip()
        except (Trouble, OSError) as e:
            return str(e)

    def kill_agent(self):
        """SIGKILL, as by an accident."""
        if self.agent:
            self.agent.kill()
            self.agent.wait(10)
            self.agent = None

    def crash_agent(self, away=0.3):
        """The agent dies and comes back."""
        self.kill_agent()
        time.sleep(away)
        self.start_agent()

    def metrics(self):
        """{name: (labels, value)} of the agent's own page; the first row of each name."""
        with urllib.request.urlopen(self.metrics_url, timeout=10) as answer:
            text = answer.read().decode()
        found = {}
        for name, labels, value in re.findall(r"^(\w+)\{(.*)\} (\S+)", text, re.M):
            found.setdefault(name, (dict(re.findall(r'(\w+)="([^"]*)"', labels)), float(value)))
        return found

    # ---- jobs ------------------------------------------------------------------------------

    def submit(self, name, command, account="lab-a", **more):
        """Sends a job through the API; its id."""
        # "gpus" is for whole GPUs; slices and shares are of one.
        cpu, ram = (0.25, "1Gi") if self.sim else (1, "4Gi")
        fields = {"name": name, "account": account, "limit": "5m", "cpu": cpu, "ram": ram, "command": command,
                  "env": dict(self.env), **more}
        if "level" not in fields:
            fields.setdefault("gpus", 1)
        return self.note(json.loads(self.api("/v1/jobs", fields))["id"])

    def note(self, job):
        self.submitted.append(job)
        return job

    def job(self, job):
        return json.loads(self.api(f"/v1/jobs/{job}"))

    def state(self, job):
        return self.job(job)["state"]

    def logs(self, job):
        try:
            return self.api(f"/v1/jobs/{job}/logs?task=0")
        except Trouble:
            return ""

    def why(self, job):
        try:
            return "; ".join(r["text"] for r in json.loads(self.api(f"/v1/jobs/{job}/why"))["reasons"])
        except (Trouble, KeyError):
            return ""

    def reach(self, job, states, timeout=30):
        """Waits until it is in one of these states, or over."""
        states = {states} if isinstance(states, str) else set(states)
        end = time.time() + timeout
        while True:
            now = self.job(job)
            if now["state"] in states:
                return now
            if now["state"] in ENDED:
                raise Trouble(f"job {now['name']} is {now['state']}: {now.get('reason') or ''} "
                              f"{self.logs(job)[-300:]}")
            if time.time() > end:
                raise Trouble(f"job {now['name']} is {now['state']} after {timeout} s, not "
                              f"{' or '.join(sorted(states))}: {self.node_words()}; "
                              f"{now.get('reason') or self.why(job)}")
            time.sleep(0.02)

    def finish(self, job, timeout=40):
        """Waits for its end; the job and what it wrote."""
        row = self.reach(job, ENDED, timeout)
        text = self.logs(job)
        for _ in range(20):
            if text or row["state"] in ("cancelled", "failed"):
                break
            time.sleep(0.1)
            text = self.logs(job)
        with open(self.file("jobs.log"), "a") as f:
            f.write(f"{json.dumps(row)}\n{text}\n")
        return row, text

    def writes(self, job, pattern, timeout=30):
        """Waits until a line of it matches; the match."""
        found = None

        def look():
            nonlocal found
            found = re.search(pattern, self.logs(job), re.M)
            if not found and self.state(job) in ENDED:
                raise Trouble(f"job {job} is {self.state(job)} and never wrote {pattern}: "
                              f"{self.job(job).get('reason') or ''} {self.logs(job)[-300:]}")
            return found

        until(look, timeout, f"job {job} has not written {pattern}: {self.logs(job)[-200:]}")
        return found

    def run(self, name, command, timeout=40, **more):
        return self.finish(self.submit(name, command, **more), timeout)

    def cancel(self, *jobs):
        for job in jobs:
            try:
                if self.state(job) not in ENDED:
                    self.api(f"/v1/jobs/{job}", method="DELETE")
            except (Trouble, OSError):
                pass

    def cancel_all(self):
        self.cancel(*self.submitted)
        self.submitted = []

    def empty(self):
        """No task is on the node any more; what is left of one is the record of its end."""
        folder = self.file("agent", "run", "tasks")
        try:
            return all(os.path.exists(os.path.join(folder, name, "exit.json")) for name in os.listdir(folder))
        except FileNotFoundError:
            return True

    # ---- the end ---------------------------------------------------------------------------

    def keep_logs(self, to):
        """Copies what was written into a folder; the agent's log with the time of each line."""
        name = os.path.basename(self.folder)
        for file in ("stintd.log", "jobs.log"):
            if os.path.exists(self.file(file)):
                shutil.copy(self.file(file), os.path.join(to, f"{name}-{file}"))
        with open(os.path.join(to, f"{name}-agent.log"), "w") as f:
            f.writelines(f"{at:.3f} {line}\n" for at, line in (self.said.lines if self.said else []))

    def stop(self):
        """Ends jobs, agent and stintd; what remains to be said about it."""
        left = []
        try:
            if self.agent is None and self.url:
                self.start_agent(ready=False)
            self.cancel_all()
            until(self.empty, 20, "tasks are left on the node")
        except (Trouble, OSError) as e:
            left.append(str(e))
        for process, name in ((self.agent, "stint-agent"), (self.stintd, "stintd")):
            if process and process.poll() is None:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()
                    left.append(f"{name} had to be killed")
        left += end_leftovers(self.folder)
        for path in glob.glob(self.file("agent", "run", "net", "*")) + glob.glob(self.file("agent", "mps", "*", "shm")):
            subprocess.run(["umount", "-l", path], capture_output=True, check=False)
        return left


def until(true, timeout, otherwise):
    end = time.time() + timeout
    while not true():
        if time.time() > end:
            raise Trouble(f"{otherwise} (waited {timeout} s)")
        time.sleep(0.02)


def processes():
    """(pid, command line as a list) of all that can be seen."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                yield int(pid), f.read().decode(errors="replace").split("\0")
        except OSError:
            continue


def in_environment(pid, text):
    try:
        with open(f"/proc/{pid}/environ", "rb") as f:
            return text.encode() in f.read()
    except OSError:
        return False


def end_leftovers(folder):
    """Kills what was started below our folder and is still there: supervisors, fences, MPS daemons."""
    left = []
    for pid, words in list(processes()):
        if pid == os.getpid():
            continue
        if any(w.startswith(folder + "/") for w in words) or in_environment(pid, f"={folder}/"):
            fence = "fence" in words[:2]
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                continue
            if not fence:
                left.append(f"process {pid} ({os.path.basename(words[0])}) was left and has been killed")
    return left
