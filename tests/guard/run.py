#!/usr/bin/env python3
"""tests/guard/run.py GUARD DRIVER_DIR WORK PAGES CALLS: the guard in real processes, on a device that is a model.

GUARD is libstint-guard.so, DRIVER_DIR has libcuda.so.1 of tests/guard/fake_driver.c. No GPU is needed. What is compared are
amounts of memory and of work, never times: machines that run tests are slow in their own ways.
"""
import concurrent.futures
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

GUARD, DRIVER, WORK, PAGES, CALLS = sys.argv[1:6]
MIB = 1 << 20
faults = []


def check(ok, what, seen=""):
    print(("ok   " if ok else "FAIL ") + what + (f": {seen}" if not ok else ""), flush=True)
    if not ok:
        faults.append(what)


def pairs(text):
    return {a: b for a, b in re.findall(r"(\S+?)=(\S+)", text)}


class Device:
    """A model of a device and the tasks on it."""

    def __init__(self, mib=8192, switch_us=100, context_mib=0):
        self.folder = tempfile.TemporaryDirectory(prefix="guard-")
        self.root = self.folder.name
        self.pages("device", mib, switch_us, context_mib)

    def pages(self, *words):
        done = subprocess.run([PAGES, self.root, *map(str, words)], capture_output=True, text=True, check=True)
        return {k: float(v) if "." in v else int(v) for k, v in pairs(done.stdout).items()}

    def start(self, k, program, *words, guard=True, **more):
        env = dict(os.environ, LD_LIBRARY_PATH=DRIVER, FAKE_DEVICE=self.root + "/model", FAKE_TASK=str(k), **more)
        if guard:
            env.update(LD_PRELOAD=GUARD, STINT_GUARD_DIR=f"{self.root}/task.{k}")
        return subprocess.Popen([program, *map(str, words)], env=env, text=True, stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, k, program, *words, **more):
        p = self.start(k, program, *words, **more)
        out, err = p.communicate(timeout=120)
        return p.returncode, out, err


def case_lookup():
    d = Device()
    d.pages("task", 0, "vram=1024")
    rows = os.path.join(os.path.dirname(os.path.abspath(__file__)), "entries.txt")
    code, out, err = d.run(0, CALLS, "entries", rows)
    check(code == 0, "every entry that hands out memory or starts work is the guard's", out + err)
    code, out, err = d.run(0, CALLS, "lookup")
    check(code == 0, "what is not the guard's is found as without it", out + err)


def case_limits():
    d = Device(context_mib=100)
    d.pages("task", 0, "vram=1024", "context=100")
    code, out, err = d.run(0, WORK, "vram")
    seen = pairs(out)
    check(seen.get("got_mib") == "924" and seen.get("error") == "2", "memory up to the grant, then CUDA's own error", out + err)
    check(seen.get("total_mib") == "1024" and seen.get("device_mib") == "1024", "a program is told of its grant", out)
    check(d.pages("model")["peak_0"] == 1024 * MIB, "the device saw no more than the grant")
    d = Device()
    d.pages("task", 0, "vram=256")
    code, out, err = d.run(0, CALLS, "memory", 256)
    check(code == 0, "every kind of memory is counted, refused and given back", out + err)
    d.pages("task", 1, "vram=64", "context=65")
    code, out, err = d.run(1, WORK, "vram")
    check("cuDevicePrimaryCtxRetain" in out, "a context that does not fit is refused", out + err)


def case_processes():
    d = Device()
    d.pages("task", 0, "vram=1000")
    p = d.start(0, CALLS, "children", 40, 100)
    got = pairs(p.stdout.readline())
    check(got.get("got") == "10", "processes of a task have the grant together", str(got))
    p.communicate()
    check(d.pages("model")["peak_0"] == 1000 * MIB, "and never more of the device", str(d.pages("model")))
    d.pages("task", 2, "vram=1000")
    code, out, err = d.run(2, CALLS, "forked")
    check(code == 0, "a forked child counts for itself", out + err)
    # A thousand.
    d.pages("task", 1, "vram=2000")
    p = d.start(1, CALLS, "children", 1000, 4)
    got = pairs(p.stdout.readline())
    check(got.get("got") == "500", "a thousand processes have the grant together", str(got))
    p.communicate()
    code, out, _ = d.run(1, WORK, "vram")
    check(pairs(out).get("got_mib") == "2000", "what they had is free again", out)


def case_crashes():
    """Killed in the middle of allocations, again and again: nothing is lost, nobody waits for the dead."""
    d = Device()
    d.pages("task", 0, "vram=512")
    for _ in range(25):
        p = [d.start(0, CALLS, "churn") for _ in range(3)]
        time.sleep(0.06)
        for one in p:
            one.send_signal(signal.SIGKILL)
        for one in p:
            one.communicate()
    code, out, err = d.run(0, WORK, "vram")
    check(pairs(out).get("got_mib") == "512", "what the killed held is given back, to the byte", out + err)
    check(d.pages("model")["peak_0"] <= 512 * MIB, "the device never saw more than the grant", str(d.pages("model")))
    # One that is killed with the lock: the word is set by hand to a process that is no more.
    book = f"{d.root}/task.0/own.0/book"
    dead = d.start(0, WORK, "hold", 64)
    dead.stdout.readline()
    with open(book, "r+b") as f:
        f.seek(8)
        f.write((1).to_bytes(4, "little"))  # the first record is its
    dead.send_signal(signal.SIGKILL)
    dead.communicate()
    code, out, err = d.run(0, WORK, "vram")
    check(pairs(out).get("got_mib") == "512", "a lock whose owner was killed is taken from it", out + err)
    # A zombie holds nothing.
    zombie = d.start(0, WORK, "hold", 400)
    zombie.stdout.readline()
    os.kill(zombie.pid, signal.SIGKILL)
    os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
    code, out, err = d.run(0, WORK, "vram")
    check(pairs(out).get("got_mib") in ("512", "112"), "a zombie's memory is counted as the device counts it", out + err)
    zombie.communicate()


def hogs(d, tasks, seconds=2, units="=40000", lies=()):
    """Work done for each task by the model's books."""
    at = str(time.monotonic_ns() + 1500000000)
    before = d.pages("model")
    liars = [d.start(k, PAGES, d.root, "lie", k, how, guard=False) for k, how in lies]
    ps = [d.start(k, WORK, "hog", seconds, "fma", units, GUARD_START_NS=at) for k in tasks]
    for p in ps:
        out, err = p.communicate(timeout=120)
        check(p.returncode == 0, "a hog ends well", out + err)
    for p in liars:
        p.kill()
        p.communicate()
    after = d.pages("model")
    return [after[f"work_ns_{k}"] - before[f"work_ns_{k}"] for k in tasks]


def near(got, want, off):
    total = sum(got) or 1
    return all(abs(100 * g / total - w) <= off for g, w in zip(got, want))


def case_shares():
    for split in ([500, 500], [750, 250], [400, 300, 200, 100]):
        d = Device()
        for k, share in enumerate(split):
            d.pages("task", k, f"share={share}")
        got = hogs(d, range(len(split)))
        check(near(got, [s / 10 for s in split], 8), f"shares {split}", str([round(100 * g / (sum(got) or 1), 1) for g in got]))
    d = Device()
    d.pages("task", 0, "share=300", "hard")
    hard = hogs(d, [0])[0] / 2e9
    check(hard < 0.36, "a hard share is a limit also when nobody else is there", f"{hard:.3f} of the time")
    check(hard > 0.05, "a hard share is to be had", f"{hard:.3f} of the time")


def case_caps():
    """A cap holds at both levels, while a task runs, and is gone when it is lifted."""
    for level in (0, 1):
        d = Device()
        d.pages("task", 0, f"level={level}")
        free = hogs(d, [0], 1)[0]
        d.pages("set", 0, "cap=100")
        capped = hogs(d, [0], 2)[0] / 2
        check(capped < free * 0.25, f"a cap of 10 % at level {level}", f"{capped:.0f} of {free}")
        check(d.pages("show", 0)["capped_ns"] > 0, "what a cap cost is counted")
        p = d.start(0, WORK, "hog", 3, "fma", "=40000")
        deadline = time.monotonic() + 20
        d.pages("set", 0, "cap=1")
        while d.pages("show", 0)["turns" if level == 0 else "launches"] == 0 and time.monotonic() < deadline:
            time.sleep(0.01)
        before = d.pages("model")["work_ns_0"]
        d.pages("set", 0, "cap=0")
        out, err = p.communicate(timeout=60)
        after = d.pages("model")["work_ns_0"]
        check(p.returncode == 0 and after - before > free * 0.3, f"a cap is lifted at once at level {level}", f"{after - before} {free} {err}")


def case_marks():
    """Requests by marks, and by bursts for a server that cannot be changed."""
    d = Device()
    d.pages("task", 0)
    code, out, err = d.run(0, WORK, "victim", 1, 5000, "=4000")
    seen, n = d.pages("show", 0), int(pairs(out).get("n", 0))
    check(code == 0 and seen["requests"] == n > 0, "each request that is marked is counted", f"{n} {seen} {err}")
    check(seen["bursts"] >= n, "so is each wait for work", str(seen))
    check(seen["request_ns"] > 0 and seen["request_p990_us"] >= seen["request_p500_us"] > 0, "with its time", str(seen))
    d.pages("task", 1)
    d.run(1, WORK, "hog", 1, "fma", "=4000", STINT_GUARD_REQUESTS="bursts")
    seen = d.pages("show", 1)
    check(seen["requests"] == seen["bursts"] > 0, "bursts are requests where a variable says so", str(seen))
    d.pages("task", 2)
    d.run(2, WORK, "hog", 1, "fma", "=4000")
    seen = d.pages("show", 2)
    check(seen["requests"] == 0 and seen["bursts"] > 0, "and not elsewhere", str(seen))


def case_protected():
    """A task becomes one whose latency counts while it and its neighbour run, and is an ordinary one again."""
    d = Device(switch_us=0)
    for k in (0, 1):
        d.pages("task", k, "share=500")
    hog = d.start(1, WORK, "hog", 4, "fma", "=16000")
    victim = d.start(0, WORK, "victim", 3, 4000, "=4000")
    deadline = time.monotonic() + 30
    while d.pages("show", 0)["requests"] == 0 and time.monotonic() < deadline:
        time.sleep(0.01)
    turns = d.pages("show", 0)["turns"]
    d.pages("set", 0, "protect=1")
    while d.pages("show", 1)["yields"] == 0 and time.monotonic() < deadline:
        time.sleep(0.01)
    check(d.pages("show", 1)["yields"] > 0, "its neighbour waits for it from then on", str(turns))
    d.pages("set", 0, "protect=0")
    for p in (victim, hog):
        out, err = p.communicate(timeout=60)
        check(p.returncode == 0, "both end well", out + err)


def case_neighbour():
    """The watch over real books: who slows a service is found and the service is protected, until the other has gone."""
    d = Device()
    for k in (0, 1):
        d.pages("task", k, "share=500")
    service = d.start(0, PAGES, d.root, "pretend", 60)
    loop = subprocess.Popen([os.path.join(os.path.dirname(PAGES), "guard_loop"), d.root, "60"], stdout=subprocess.PIPE, text=True)
    hog, seen = None, []
    for line in loop.stdout:
        row = pairs(line)
        if "note" in row:
            seen.append((row["note"], row["action"], row["victim"], row["suspect"]))
        elif hog is None and row.get("p99_percent", "0") != "0":
            hog = d.start(1, WORK, "hog", 50, "fma", "=8000000", 2)
        if seen and seen[-1][0] in ("verified", "pardoned", "incident"):
            break
    for p in (loop, service, hog):
        if p:
            p.kill()
            p.communicate()
    check([s[0] for s in seen] == ["suspected", "confirmed", "acted", "verified"], "who slows a service is found and it is helped", str(seen))
    check(seen[-1:] == [("verified", "protect", "0", "1")], "by protection", str(seen))


def case_latency():
    """Beside a latency task little is in flight: what was before the victim's launches in the queue."""
    queued = []
    for guard in (False, True):
        d = Device(switch_us=0)
        d.pages("task", 0, "share=500", "latency", "level=1")
        d.pages("task", 1, "share=500", "level=1")
        hog = d.start(1, WORK, "hog", 3, "fma", "=16000", guard=guard)
        time.sleep(0.4)
        victim = d.start(0, WORK, "victim", 2, 4000, "=4000", guard=guard)
        out, err = victim.communicate(timeout=60)
        check(victim.returncode == 0, "the victim ends well", out + err)
        hog.communicate(timeout=60)
        queued.append(d.pages("model")["queued_p99_us_0"])
        if guard:
            check(d.pages("show", 1)["yields"] > 0, "the hog waits while the victim is active")
    check(queued[0] > 800, "without the guard the victim waits for all that is in flight", str(queued))
    check(queued[1] <= 140, "with it, for one launch", str(queued))


def case_liars():
    """Pages that lie, and processes that are stopped, cost others a little and no more."""
    for how in ("runs", "least", "active", "cut"):
        d = Device()
        d.pages("task", 0, "share=500")
        alone = hogs(d, [0], 1)[0]
        d.pages("task", 1, "share=500", "latency" if how == "active" else "hard=0")
        got = hogs(d, [0], 3, lies=[(1, how)])[0]
        # Beside a latency task launches go one by one, which a busy machine makes slow.
        check(got > alone * (0.05 if how == "active" else 0.3), f"a liar ({how}) does not stop its neighbour", f"{got} of {3 * alone}")
    d = Device()
    for k in (0, 1):
        d.pages("task", k, "share=500")
    stopped = d.start(1, WORK, "hog", 60, "fma", "=40000")
    time.sleep(0.8)
    stopped.send_signal(signal.SIGSTOP)
    alone = hogs(d, [0], 1)[0]
    check(alone > 2e8, "a task that is stopped in its turn does not stop others", str(alone))
    stopped.kill()
    stopped.communicate()


def case_missing():
    d = Device()
    code, out, err = d.run(0, CALLS, "memory", 10)
    check(code != 0 and "cuInit=304" in out and "limits of this task are missing" in err, "no limits, no GPU", out + err)
    d.pages("task", 0, "vram=10")
    os.truncate(f"{d.root}/task.0/own.0/book", 100)
    code, out, err = d.run(0, CALLS, "memory", 10)
    check(code != 0 and "missing" in err, "a book that is cut short is no book", out + err)
    code, out, err = d.run(0, CALLS, "load")
    check(code == 0 and not out and not err, "a program that uses no GPU does not notice", out + err)
    env = dict(os.environ, LD_PRELOAD=GUARD)
    done = subprocess.run(["sh", "-c", "true; true | cat; echo fine"], env=env, capture_output=True, text=True, check=False)
    check(done.stdout == "fine\n" and not done.stderr, "nor does a shell", done.stdout + done.stderr)


def case_library():
    """It loads into old images: nothing newer than glibc 2.17 is asked for, and nothing but libc."""
    out = subprocess.run(["objdump", "-T", "-p", GUARD], capture_output=True, text=True, check=False).stdout
    if not out:
        return
    newer = [v for v in re.findall(r"GLIBC_(\d+\.\d+)", out) if tuple(map(int, v.split("."))) > (2, 17)]
    check(not newer, "nothing newer than glibc 2.17", str(set(newer)))
    check(re.findall(r"NEEDED\s+(\S+)", out) in (["libc.so.6"], []), "no other library", str(re.findall(r"NEEDED.*", out)))


def apart(names):
    """Each case in a process and on a device of its own, three at a time: they wait for the model's time, with hardly any work."""
    def one(name):
        done = subprocess.run([sys.executable, *sys.argv[:6], name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        print(done.stdout, end="", flush=True)
        return done.returncode

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        return 1 if any(list(pool.map(one, names))) else 0


def main():
    """The cases that are named, all without names; several that are named are played side by side."""
    wanted = sys.argv[6:]
    if len(wanted) > 1:
        return apart(wanted)
    cases = {name[5:]: case for name, case in sorted(globals().items()) if name.startswith("case_")}
    for name in wanted or cases:
        print(f"# {name}", flush=True)
        cases[name]()
    print(f"{len(faults)} failed" if faults else "all well")
    return 1 if faults else 0


sys.exit(main())
