"""Walls, tried by attack with the real programs.

A file per wall. A case says who tries, what, and what must be seen; it raises Failure (`check`) when
something else is seen:

    from attack import attempt, wall

    @attempt("a member of rival", "names the agent's folder as its image", "a refusal")
    def agent_folder(site):
        site.refused(site.rival.submit(image=site.agents[0].data), "image")

    wall("images", agents=1)

`wall` starts a stintd, the tenants below and, if asked, agents with simulated GPUs whose tasks are real
containers; it plays every case and looks at the honest tenant after each of them. A case that raises
has found a hole. `wall` ends with status 77 where containers are needed and cannot run.

    acme    the honest tenant: its submits go on from another address, and where there are agents, its
            job writes to its /data all the time. `site.acme` is a member of it.
    rival   the hostile one: `site.rival` is a member, `site.rival_admin` an admin of its account
            rival, below which is rival-lab

A file may be given words to try only cases whose names contain one of them, or -WORD for all but those. With STINT_LONG=1 crowds are as
large as their cases say; otherwise an eighth of it (`many`), which is enough to be turned back by.
"""

import multiprocessing
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "service"))
from harness import Client, Failure, Stintd, check, sanitized, token  # noqa: E402

FINAL = ("done", "failed", "cancelled")
SKIPPED = 77
# Below this nothing can be told from the noise of a machine that runs everything at once.
NOISE_S = 0.01

# Of all walls together: `attack.py` by itself counts them.
LEAST = 120

# For one attempt; what hangs is a hole as well.
MOST_S = 400
LONG = os.environ.get("STINT_LONG") == "1"

cases = []


def many(n):
    return n if LONG else max(n // 8, 1)


def attempt(who, tries, sees):
    """Registers a case: three phrases that make a sentence."""

    def add(function):
        cases.append((function, who, tries, sees))
        return function

    return add


def until(condition, what, seconds=180):
    """What `condition` gives as soon as it is true; a failure when it never is."""
    end = time.monotonic() + seconds
    while True:
        got = condition()
        if got:
            return got
        check(time.monotonic() < end, "it never came: %s", what)
        time.sleep(0.05)


class Person(Client):
    """A token's calls, with words for jobs."""

    def __init__(self, port, secret, pool):
        super().__init__(port, secret)
        self.pool = pool

    def submit(self, **doc):
        """The answer to a submit; without a command it sleeps."""
        doc.setdefault("pool", self.pool)
        doc.setdefault("gpus", 0)
        doc.setdefault("limit", "10m")
        if "command" not in doc and "script" not in doc:
            doc["command"] = ["sleep", "600"]
        return self.post("/v1/jobs", doc)

    def job(self, **doc):
        """The id of a job that must be taken."""
        answer = self.submit(**doc)
        check(answer.status == 201, "submit: %d %s", answer.status, answer.text)
        return answer.json["id"]

    def show(self, job):
        answer = self.get("/v1/jobs/" + job)
        check(answer.status == 200, "job %s: %d %s", job, answer.status, answer.text)
        return answer.json

    def becomes(self, job, *states, seconds=180):
        return until(lambda: (lambda j: j["state"] in states and j)(self.show(job)),
                     f"job {job} {' or '.join(states)}", seconds)

    def log(self, job, task=0):
        got = self.get(f"/v1/jobs/{job}/logs?task={task}")
        return got.text if got.status == 200 else ""

    def runs(self, script, seconds=180, **doc):
        """Runs Python in a container; the job as it ended, and what it wrote."""
        doc.setdefault("cpu", 0.2)
        doc.setdefault("ram", "256Mi")
        job = self.job(command=["python3", "-c", script], **doc)
        ended = self.becomes(job, *FINAL, seconds=seconds)
        return ended, self.log(job)

    def cancel(self, job):
        return self.call("DELETE", "/v1/jobs/" + job)


class Agent:
    """A stint-agent with simulated GPUs on loopback."""

    def __init__(self, site, name, options):
        self.site, self.name = site, name
        self.data = os.path.join(site.dir, name)
        self.log = self.data + ".log"
        self.options = list(options)
        self.start()

    def start(self):
        join = os.path.join(self.site.dir, self.name + ".join")
        if not os.path.exists(join):
            made = self.site.owner.make("/v1/admin/join-tokens", {"pool": "main", "uses": 1, "new_types": True})
            with open(os.open(join, os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
                f.write(made["token"] + "\n")
        args = [os.environ["STINT_AGENT"], "--server", self.site.server(), "--join-token-file", join, "--data", self.data,
                "--name", self.name, "--address", "127.0.0.1", "--sim", "h100x8", "--grace", "2s", "--exec", "oci"]
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(args + self.options, stdout=log, stderr=log)

    def says(self):
        with open(self.log, errors="replace") as f:
            return f.read()

    def state(self):
        answer = self.site.owner.get("/v1/nodes/" + self.name)
        return answer.json.get("state") if answer.status == 200 else None

    def ready(self, seconds=180):
        until(lambda: self.state() == "ready", f"node {self.name} ready", seconds)

    def stop(self, kill=False):
        if self.process.poll() is None:
            (self.process.kill if kill else self.process.terminate)()
        try:
            return self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

    def tasks_left(self):
        tasks = os.path.join(self.data, "run", "tasks")
        names = os.listdir(tasks) if os.path.isdir(tasks) else []
        return [n for n in names if os.path.exists(os.path.join(tasks, n, "task.json"))
                and not os.path.exists(os.path.join(tasks, n, "exit.json"))]


def _stand_by(folder, pipe):
    """Every 20 ms a page onto the disk: what a submit needs of the machine, without stintd. And now and then a few ms of computing:
    how many times longer they take is what share of a processor there is for somebody who computes."""
    times, shares, path = [], [], os.path.join(folder, "page")
    with open(path, "wb", buffering=0) as f:
        while not pipe.poll(0.02):
            if len(times) % 10 == 0:
                begun, used = time.monotonic(), time.thread_time()
                while time.thread_time() < used + 0.004:
                    pass
                shares.append((begun, (time.monotonic() - begun) / 0.004))
            begun = time.monotonic()
            f.seek(0)
            f.write(b"x" * 4096)
            os.fdatasync(f.fileno())
            times.append((begun, time.monotonic() - begun))
    pipe.send((times, shares))


class Bystander:
    """A process that has nothing to do with stintd: what slows it is the machine."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.pipe, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=_stand_by, args=(self.folder.name, theirs), daemon=True)
        self.process.start()
        theirs.close()
        self.times, self.shares = [], []

    def stop(self):
        if self.process:
            try:
                self.pipe.send(None)
                self.times, self.shares = self.pipe.recv()
            except (EOFError, OSError):
                pass
            self.process.join(30)
            self.process = None
            self.folder.cleanup()

    def p99(self, since, before=float("inf")):
        """Of what began in that time; once it has stopped."""
        times = sorted(took for begun, took in self.times if since <= begun < before)
        return times[min(len(times) - 1, len(times) * 99 // 100)] if times else 0

    def slowed(self, since, before=float("inf")):
        """How many times longer computing took, on average."""
        times = [took for begun, took in self.shares if since <= begun < before]
        return sum(times) / len(times) if times else 1


def _submit(port, secret, pipe):
    """One submit after the other until somebody says stop; how long each took, and what was wrong with it."""
    client = Person(port, secret, "paper")
    client.source = "127.0.0.9"
    while not pipe.poll(0.05):
        begun, took, wrong = time.monotonic(), None, None
        try:
            answer = client.submit(gpus=1, sim={"run": "1s"})
            took = time.monotonic() - begun
            if answer.status != 201:
                wrong = f"{answer.status} {answer.text[:200]}"
        except OSError as error:
            wrong = repr(error)
        pipe.send((took, wrong))
    client.close()


class Honest:
    """acme's submits, from an address of their own, one after the other, by a process of their own: an attack that keeps its own
    interpreter busy must not look like one that keeps stintd busy."""

    def __init__(self, port, secret):
        self.times, self.wrong = [], []
        self.pipe, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=_submit, args=(port, secret, theirs), daemon=True)
        self.process.start()
        theirs.close()
        self.thread = threading.Thread(target=self._hear, daemon=True)
        self.thread.start()

    def _hear(self):
        try:
            while True:
                took, wrong = self.pipe.recv()
                if took is not None:
                    self.times.append(took)
                if wrong:
                    self.wrong.append(wrong)
        except (EOFError, OSError):
            pass

    def p99(self, first=0):
        times = sorted(self.times[first:])
        check(times, "the honest tenant has submitted nothing")
        return times[min(len(times) - 1, len(times) * 99 // 100)]

    def stop(self):
        try:
            self.pipe.send(None)
        except OSError:
            pass
        self.process.join(60)
        self.thread.join(60)


BEATS = """
import time
while True:
    with open("/data/beats", "a") as f:
        f.write("%d\\n" % time.time_ns())
    time.sleep(0.05)
"""


class Site:
    """A stintd with tenants, agents and the honest one's work."""

    def __init__(self, agents=0, config="", agent_options=(), allow=("host-image",)):
        self.agents, self.honest, self.beater = [], None, None
        self.stintd = Stintd(os.environ["STINTD"], config="engine: auto\nagent_lease: 20s\nrate: 1000000\n"
                             "policy: {notice: 0s, grace: 4s, min_run: 0s, cooldown: 0s}\n" + config)
        self.dir, self.owner = self.stintd.dir, self.stintd.owner
        try:
            self._tenants(allow)
            for i in range(agents):
                self.agents.append(Agent(self, f"n{i}", agent_options))
            for agent in self.agents:
                agent.ready()
            if agents:
                self.beater = self.acme.job(name="beats", gpus=1, cpu=0.2, ram="128Mi", limit="2h",
                                            command=["python3", "-c", BEATS])
                self.acme.becomes(self.beater, "running")
            self.honest = Honest(self.stintd.port, self.secrets["acme"])
            until(lambda: len(self.honest.times) >= 40, "the honest tenant's first submits")
            self.quiet = self.honest.p99()
        except BaseException:
            self.stop()
            raise

    def server(self):
        return f"http://127.0.0.1:{self.stintd.port}"

    def _tenants(self, allow):
        own = self.owner
        own.make("/v1/types", {"name": "h100"})
        own.make("/v1/pools", {"name": "paper", "allow": ["host-image"]})
        own.make("/v1/pools", {"name": "main", "allow": list(allow)})
        for i in range(4):
            own.make("/v1/nodes", {"name": f"paper{i}", "pool": "paper", "gpu": "h100", "gpus": 8})
        for account in ("acme", "rival"):
            own.make("/v1/accounts", {"name": account, "guarantee": {"gpu": 4}})
        own.make("/v1/accounts", {"name": "rival-lab", "parent": "rival"})
        self.secrets = {}
        for key, account, user, role in (("acme", "acme", "ada", "member"), ("rival", "rival", "mallory", "member"),
                                         ("rival_admin", "rival", "max", "admin")):
            self.secrets[key] = token(own, account, user, role)["token"]
            setattr(self, key, self.person(self.secrets[key]))

    def person(self, secret, pool="main"):
        return Person(self.stintd.port, secret, pool)

    def token(self, account, user, role, **more):
        """A person with a fresh token."""
        return self.person(token(self.owner, account, user, role, **more)["token"])

    def refused(self, answer, says="", status=None):
        """A 4xx problem document whose sentence has `says` in it."""
        check(400 <= answer.status < 500, "not refused: %d %s", answer.status, answer.text[:400])
        check(status is None or answer.status == status, "refused with %d: %s", answer.status, answer.text[:400])
        check(re.search(says, answer.text), "refused for another reason than %r: %s", says, answer.text[:400])
        return answer

    def beats(self):
        """How many lines the honest job has written, in its own storage: a file of that name elsewhere is bait."""
        number = self.owner.call("GET", "/v1/accounts/acme").json["id"]
        for agent in self.agents:
            path = os.path.join(agent.data, "storage", f"t.{number}", "beats")
            if os.path.isfile(path):
                with open(path) as f:
                    return f.read().count("\n")
        return 0

    def neighbour(self):
        """The honest tenant after an attempt: its submits are taken, its job goes on, its node is there."""
        done = len(self.honest.times)
        until(lambda: len(self.honest.times) > done or self.honest.wrong, "a submit of the honest tenant")
        check(not self.honest.wrong, "the honest tenant was refused: %s", self.honest.wrong[:1])
        if self.beater:
            check(self.acme.show(self.beater)["state"] == "running", "the honest job is %s",
                  self.acme.show(self.beater)["state"])
            before = self.beats()
            until(lambda: self.beats() > before, "a beat of the honest job")
        for agent in self.agents:
            check(agent.process.poll() is None, "agent %s ended with %s", agent.name, agent.process.poll())
        check(self.stintd.alive(), "stintd has ended")

    def stop(self):
        if self.honest:
            self.honest.stop()
        try:
            for agent in self.agents:
                if agent.process.poll() is not None:
                    agent.start()
            for job in self._live():
                self.owner.call("DELETE", "/v1/jobs/" + job)
            for agent in self.agents:
                until(lambda a=agent: not a.tasks_left(), "the end of all tasks", 90)
        finally:
            logs = ""
            for agent in self.agents:
                agent.stop()
                logs += agent.says()
                subprocess.run(f"umount -l {agent.data}/run/net/* 2>/dev/null", shell=True, check=False)
            ill = re.search(r"ERROR: .*Sanitizer.*|.*runtime error.*|.*assertion failed.*", logs)
            self.stintd.stop()
            check(not ill, "an agent was not well: %s", ill and ill.group(0))

    def _live(self):
        found, cursor = [], ""
        while True:
            page = self.owner.get("/v1/jobs?state=pending&state=running&state=paused&limit=500" + cursor).json
            found += [j["id"] for j in page["jobs"]]
            if not page.get("next"):
                return found
            cursor = "&cursor=" + page["next"]


def containers_run():
    agent = os.environ.get("STINT_AGENT")
    if not agent:
        return "stint-agent is not built here"
    with tempfile.TemporaryDirectory() as folder:
        got = subprocess.run([agent, "doctor", "--data", folder, "--sim", "h100x1"], capture_output=True, text=True, check=False)
    return "" if got.returncode == 0 else "no containers here: " + (got.stdout.splitlines() or ["?"])[0]


def out_of_time(*_):
    raise Failure("the attempt or its check never came to an end")


def wall(name, agents=0, measured=True, **more):
    """Plays all cases of a file. `measured`: the honest submits' p99 stays below ten times of quiet."""
    words = sys.argv[1:]
    only, but = [w for w in words if w[0] != "-"], [w[1:] for w in words if w[0] == "-"]
    chosen = [c for c in cases if (not only or any(w in c[0].__name__ for w in only)) and not any(w in c[0].__name__ for w in but)]
    missing = containers_run() if agents else ""
    if missing:
        print("skipped:", missing)
        sys.exit(SKIPPED)
    signal.signal(signal.SIGALRM, out_of_time)
    bystander, started = Bystander(), time.monotonic()
    site, through = Site(agents, **more), 0
    try:
        attacked = time.monotonic()
        for function, who, tries, sees in chosen:
            began = time.monotonic()
            signal.alarm(MOST_S)
            try:
                function(site)
                site.neighbour()
                print(f"denied   {function.__name__}: {who} {tries}; seen: {sees} ({time.monotonic() - began:.1f} s)", flush=True)
            except Exception as error:  # whatever went wrong, the next case is tried
                through += 1
                print(f"THROUGH  {function.__name__}: {who} {tries}; expected: {sees}\n         {error}", flush=True)
                if not isinstance(error, Failure):
                    traceback.print_exc()
                site.honest.wrong.clear()
        signal.alarm(0)
        p99 = site.honest.p99(40)
        bystander.stop()
        machine, before = bystander.p99(attacked), bystander.p99(started, attacked)
        # What slowed a bystander as well is the machine's, up to five times: other tests run beside this one.
        # A stall that hit the bystander too may have hit one submit whole.
        # What stintd computes for an attacker takes longer where others compute all the time, before the attack as well.
        usual = 10 * max(site.quiet, NOISE_S)
        crowded = min(bystander.slowed(attacked), bystander.slowed(started, attacked))
        bar = max(usual * min(max(machine / max(before, 0.001), crowded, 1), 5), usual + machine)
        print(f"honest submits: p99 {1000 * p99:.1f} ms, quiet {1000 * site.quiet:.1f} ms; "
              f"a bystander's page {1000 * machine:.1f} ms, before {1000 * before:.1f} ms; computing {crowded:.1f} times slower")
        if measured and not sanitized(os.environ["STINTD"]) and p99 > bar:
            through += 1
            print("THROUGH  the honest tenant's submits are more than ten times slower")
    finally:
        bystander.stop()
        site.stop()
    print(f"{name}: {len(chosen)} attempts, {through} through")
    sys.exit(1 if through or not chosen else 0)


def count():
    """How many attempts there are, by wall; fewer than LEAST is a failure."""
    folder, sums = os.path.dirname(os.path.abspath(__file__)), {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".py"):
            with open(os.path.join(folder, name)) as f:
                sums[name[:-3]] = sum(line.startswith("@attempt(") for line in f)
    print(", ".join(f"{name} {n}" for name, n in sums.items() if n))
    print(f"{sum(sums.values())} attempts, at least {LEAST} are wanted")
    sys.exit(sum(sums.values()) < LEAST)


if __name__ == "__main__":
    count()
