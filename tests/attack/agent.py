#!/usr/bin/env python3
"""The agent: no job can stall it, kill it or confuse it, whatever it does with its processes, its output, its files
and its end. Beside each attempt the honest job goes on, its node stays ready, and a fresh job of the honest tenant runs."""

import json
import os
import time

from attack import FINAL, attempt, many, until, wall
from harness import check

FEW = {"gpus": 0, "cpu": 0.1, "ram": "64Mi", "limit": "5m"}
MOST_S = 60  # for a fresh job of the honest tenant on a busy machine


def fresh(site):
    """A job of the honest tenant is started, ends, and what it wrote is there."""
    job = site.acme.job(command=["echo", "still here"], **FEW)
    site.acme.becomes(job, "done", seconds=MOST_S)
    until(lambda: "still here" in site.acme.log(job), "its log", 20)
    for agent in site.agents:
        check(agent.state() == "ready", "node %s is %s", agent.name, agent.state())
        check("event=stalled" not in agent.says(), "the acting side stood still")
    with open(site.stintd.log, errors="replace") as f:
        failed = [line.strip() for line in f if "event=node_failed" in line]
    check(not failed, "a node was declared failed: %s", failed[:1])


def groups(job):
    """Control groups of a job that are left, in any hierarchy."""
    found = []
    for top, names, _ in os.walk("/sys/fs/cgroup"):
        if "/stint-" not in top and top.count("/") > 5:
            names.clear()
        found += [os.path.join(top, n) for n in names if n.startswith(job + ".")]
    return found


def ends(site, *jobs, seconds=90):
    """They are cancelled, and nothing of them is left."""
    for job in jobs:
        site.rival.cancel(job)
    for job in jobs:
        site.rival.becomes(job, *FINAL, seconds=seconds)
    for job in jobs:
        until(lambda j=job: not groups(j), f"the end of all processes of {job}", seconds)


def python(script, **doc):
    return dict(FEW, command=["python3", "-c", script], **doc)


def starts(site, job, seconds=180):
    return site.rival.becomes(job, "running", *FINAL, seconds=seconds)


@attempt("a job of rival", "has a thousand tasks", "they start in turn, and others beside them")
def thousands(site):
    answer = site.rival.submit(gpus=0, cpu=0.001, ram="8Mi", tasks=many(1000), limit="5m", command=["sleep", "300"])
    if answer.status != 201:  # the pool's limit
        check(400 <= answer.status < 500, "%d %s", answer.status, answer.text)
        return
    job = answer.json["id"]
    time.sleep(3)
    fresh(site)
    ends(site, job, seconds=240)


@attempt("a job of rival", "asks for five thousand tasks", "a refusal, or nobody notices")
def five_thousand(site):
    answer = site.rival.submit(gpus=0, cpu=0.001, ram="1Mi", tasks=5000, limit="5m", command=["sleep", "300"])
    if answer.status == 201:
        time.sleep(3)
        fresh(site)
        ends(site, answer.json["id"], seconds=300)
    else:
        site.refused(answer)


@attempt("jobs of rival", "ignore every signal they are told", "they are killed after their grace")
def deaf(site):
    script = "import signal, time\nfor s in range(1, 65):\n  try: signal.signal(s, signal.SIG_IGN)\n" \
             "  except Exception: pass\nprint('deaf', flush=True)\ntime.sleep(600)"
    jobs = [site.rival.job(**python(script)) for _ in range(8)]
    for job in jobs:
        starts(site, job)
    ends(site, *jobs)
    fresh(site)


@attempt("a job of rival", "forks without end, also while it is killed", "all of it ends")
def fork_storm(site):
    script = "import os, time\nprint('storm', flush=True)\nwhile True:\n  try:\n    if os.fork() == 0:\n" \
             "      os.setsid()\n  except OSError:\n    time.sleep(0.001)"
    job = site.rival.job(**python(script))
    starts(site, job)
    time.sleep(2)
    ends(site, job)
    fresh(site)


@attempt("jobs of rival", "flood their output, all at once", "others' ends and logs are not late")
def output_flood(site):
    jobs = [site.rival.job(gpus=0, cpu=0.1, ram="32Mi", limit="5m", command=["sh", "-c", "yes flooooooooood"]) for _ in range(16)]
    for job in jobs:
        starts(site, job)
    time.sleep(5)
    fresh(site)
    ends(site, *jobs)


@attempt("a job of rival", "stops all its processes, its own first one included", "it is killed all the same")
def stopped(site):
    script = "import os, signal\nprint('stop', flush=True)\nos.kill(1, signal.SIGSTOP)\nos.kill(0, signal.SIGSTOP)"
    job = site.rival.job(**python(script))
    starts(site, job)
    time.sleep(1)
    ends(site, job)
    fresh(site)


@attempt("a job of rival", "leaves children in sessions of their own and exits", "none of them outlives it")
def orphans(site):
    script = "import os, time\nfor i in range(50):\n  if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n" \
             "      time.sleep(600)\n    os._exit(0)\nprint('left', flush=True)"
    job = site.rival.job(**python(script))
    site.rival.becomes(job, "done", seconds=180)
    until(lambda: not groups(job), "the end of what it left", 30)
    fresh(site)


@attempt("jobs of rival", "exit at once, fifty of them", "each ends as it should, and its log is there")
def exits(site):
    jobs = [site.rival.job(command=["sh", "-c", "echo gone; exit 3"], **FEW) for _ in range(50)]
    for job in jobs:
        ended = site.rival.becomes(job, *FINAL, seconds=180)
        check(ended["state"] == "failed" and ended.get("exit_code") == 3, "job %s: %s", job, json.dumps(ended)[:300])
        until(lambda j=job: "gone" in site.rival.log(j), f"the log of {job}", 20)
    fresh(site)


@attempt("a member of rival", "submits and cancels, hundreds of times", "nothing is left, and nobody waits")
def cancels(site):
    jobs = []
    for _ in range(many(200)):
        jobs.append(site.rival.job(**FEW))
        site.rival.cancel(jobs[-1])
    for job in jobs:
        site.rival.becomes(job, *FINAL, seconds=120)
    fresh(site)
    until(lambda: not any(groups(j) for j in jobs[-20:]), "the end of the last of them", 60)


@attempt("a member of rival", "cancels while its job is starting", "the signal is not lost")
def cancelled_start(site):
    script = "import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\ntime.sleep(600)"
    for pause in (0, 0.05, 0.1, 0.2, 0.4):
        job = site.rival.job(**python(script))
        time.sleep(pause)
        ends(site, job, seconds=180)
    fresh(site)


@attempt("jobs of rival", "have an environment and arguments as large as a submit may be", "they run or are refused, by themselves")
def large(site):
    env = {f"V{i}": "x" * 2000 for i in range(100)}
    answers = [site.rival.submit(env=env, command=["sh", "-c", "echo large"] + ["y" * 1000] * 100, **FEW) for _ in range(5)]
    for answer in answers:
        if answer.status == 201:
            site.rival.becomes(answer.json["id"], *FINAL, seconds=90)
    fresh(site)


@attempt("jobs of rival", "name programs, folders and users that are not there", "they fail, and the node is not held for it")
def nonsense(site):
    for doc in ({"command": ["/no/such/program"]}, {"command": ["sh"], "workdir": "/no/such/folder"}, {"command": ["/data"]},
                {"command": ["true"], "image": "/etc/passwd"}):
        answer = site.rival.submit(**dict(FEW, **doc))
        if answer.status == 201:
            ended = site.rival.becomes(answer.json["id"], *FINAL, seconds=180)
            check(ended["state"] == "failed", "%s: %s", doc, ended["state"])
    fresh(site)


@attempt("a job of rival", "fills its /tmp, /dev/shm and /data", "its neighbour writes on, and the node is there")
def full(site):
    script = "import os\nfor d in ('/tmp', '/dev/shm', '/data'):\n  try:\n    with open(d + '/big', 'wb') as f:\n" \
             "      for _ in range(512):\n        f.write(b'x' * 1048576)\n  except OSError as e:\n    print(d, e, flush=True)\n" \
             "  try: os.unlink(d + '/big')\n  except OSError: pass"
    job = site.rival.job(**python(script))
    site.rival.becomes(job, *FINAL, seconds=120)
    fresh(site)


@attempt("a job of rival", "makes twenty thousand files and deep folders in /data", "the agent does not look through them")
def many_files(site):
    script = "import os\nos.chdir('/data')\nfor i in range(200):\n  os.mkdir('d'); os.chdir('d')\n" \
             "for i in range(20000):\n  open('f%d' % i, 'w').close()\nprint('made', flush=True)"
    job = site.rival.job(**python(script))
    site.rival.becomes(job, *FINAL, seconds=120)
    again = site.rival.job(command=["true"], **FEW)
    site.rival.becomes(again, "done", seconds=MOST_S)
    fresh(site)


@attempt("a job of rival", "puts FIFOs, sockets and loops of links into its /data", "its next job starts, and others do")
def odd_files(site):
    script = "import os, socket\nos.chdir('/data')\nfor n in ('a', 'beats', 'storage'):\n  try: os.mkfifo(n)\n" \
             "  except OSError: pass\nos.symlink('loop', 'loop')\nos.symlink('/proc/self/root', 'root')\n" \
             "socket.socket(socket.AF_UNIX).bind('sock')\nprint('made', flush=True)"
    job = site.rival.job(**python(script))
    site.rival.becomes(job, *FINAL)
    site.rival.becomes(site.rival.job(command=["true"], **FEW), "done", seconds=MOST_S)
    fresh(site)


@attempt("a job of rival", "writes lines without end and without a newline, and bytes that are no text", "its log has a bound")
def odd_output(site):
    script = "import os, sys\nout = sys.stdout.buffer\nfor _ in range(64):\n  out.write(bytes(range(256)) * 4096)\n" \
             "out.write(b'\\x1b]0;event=node_failed\\x07')\nout.flush()"
    job = site.rival.job(**python(script))
    site.rival.becomes(job, *FINAL, seconds=90)
    fresh(site)


@attempt("a job of rival", "closes its output and goes on, then ends", "its end is seen")
def closed_output(site):
    script = "import os, time\nos.close(1)\nos.close(2)\ntime.sleep(1)\nos._exit(5)"
    job = site.rival.job(**python(script))
    ended = site.rival.becomes(job, *FINAL)
    check(ended.get("exit_code") == 5, "%s", json.dumps(ended)[:300])
    fresh(site)


@attempt("a job of rival", "kills everything it can see, its process 1 and what NVML and /proc show it", "it ends, and nobody else does")
def kills(site):
    script = "import os, signal\nfor p in range(1, 70000):\n  for s in (signal.SIGKILL, signal.SIGTERM):\n" \
             "    if p != os.getpid():\n      try: os.kill(p, s)\n      except OSError: pass\nprint('done', flush=True)"
    job = site.rival.job(**python(script))
    site.rival.becomes(job, *FINAL)
    fresh(site)


@attempt("jobs of rival", "eat all the memory they may have, again and again", "they end for it, and only they")
def memory(site):
    jobs = [site.rival.job(**python("x = []\nwhile True: x.append(bytearray(1 << 20))")) for _ in range(6)]
    for job in jobs:
        ended = site.rival.becomes(job, *FINAL, seconds=120)
        check(ended["state"] == "failed", "job %s is %s", job, ended["state"])
    fresh(site)


@attempt("jobs of rival", "end the agent's supervisors' patience: they die by every signal there is", "each is told as it was")
def signals(site):
    for number in (1, 6, 9, 11, 15):
        job = site.rival.job(command=["sh", "-c", f"kill -{number} $$"], **FEW)
        ended = site.rival.becomes(job, *FINAL)
        check(ended.get("exit_code") == 128 + number, "signal %d: %s", number, json.dumps(ended)[:300])
    fresh(site)


wall("agent", agents=1, measured=False, agent_options=("--cpu", "64", "--ram", "64Gi"))
