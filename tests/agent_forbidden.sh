#!/bin/sh
# What a job must not be able to do, tried through stintd and the agent, beside a job of another tenant on
# the same node: read its storage or environment, see its processes, open devices, reach the node's
# network, raise limits, get out through /proc or /sys, bomb with forks, fill the disk. The calls one by
# one are in src/run/test/attack.c. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
need_containers
start_native
AGENT_SECRET=of-the-agent start_agent f1 --exec oci
node_becomes f1 ready

# ---- the other one: it has a secret in its storage, its environment and its arguments, and a service ----

cat >"$tmp/victim.py" <<'EOF'
import os, socket, sys, time
open("/data/secret", "w").write("secret-of-storage\n")
os.chmod("/data/secret", 0o644)
s = socket.create_server(("127.0.0.1", 8124))
s.settimeout(0.1)
print("up", flush=True)
while True:
    open("/data/beats", "a").write("%d\n" % time.time_ns())
    try:
        s.accept()
        open("/data/visited", "w")
    except socket.timeout:
        pass
EOF
try 0 '^j' submit --account other --name victim --gpus 1 --cpu 0.2 --ram 128Mi --env TOKEN=secret-of-environment \
    -- python3 -c "$(cat "$tmp/victim.py")" secret-of-arguments
victim=$(cat "$tmp/out")
becomes "$victim" running
writes "$victim" '^up$'
other=$(storage_of f1 other)
ran=$((ran + 1))
grep -q 'secret-of-storage' "$other/secret" || fail "the secret is not where it will be looked for: $(ls "$tmp/f1/storage")"

# ---- who tries ---------------------------------------------------------------------------------

cat >"$tmp/attack.py" <<'EOF'
import glob, os, resource, socket, sys
victim, stintd_port, node_port = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
storage, tenant = os.path.split(victim)
SECRET = b"secret-" + b"of-"

def reads(*paths):
    for path in paths:
        for name in glob.glob(path) or [path]:
            try:
                if SECRET in open(name, "rb").read(1 << 20):
                    return True
            except OSError:
                pass
    return False

def opens(*paths, mode=os.O_RDWR):
    for path in paths:
        try:
            os.close(os.open(path, mode))
            return True
        except OSError:
            pass
    return False

def writes(text, *paths):
    for path in paths:
        try:
            fd = os.open(path, os.O_WRONLY)
            os.write(fd, text.encode())
            return True
        except OSError:
            pass
    return False

def reaches(*ports):
    for port in ports:
        for address in ("127.0.0.1", "10.0.2.2", "169.254.169.254", "1.1.1.1"):
            try:
                socket.create_connection((address, port), timeout=0.3).close()
                return True
            except OSError:
                pass
    return False

def link_out():
    os.symlink(victim + "/secret", "/data/link")
    return reads("/data/link")

def others():
    return [p for p in os.listdir("/proc") if p.isdigit() and int(p) != 1 and int(p) != os.getpid()]

def kill_others():
    hit = False
    for pid in range(2, 4000):
        try:
            if pid != os.getpid():
                os.kill(pid, 0)
                hit = True
        except OSError:
            pass
    return hit

def mounts():
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.mount(b"/", b"/tmp", None, 4096, None) == 0 or libc.unshare(0x10000000) == 0

def device_node():
    os.mknod("/tmp/mem", 0o20666, os.makedev(1, 1))
    return opens("/tmp/mem")

def descriptors():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard + 1, hard + 1))
    return True

def unix_sockets():
    hit = False
    for path in ("/var/run/docker.sock", "/run/containerd/containerd.sock", storage + "/../../data/stintd.sock"):
        s = socket.socket(socket.AF_UNIX)
        try:
            s.connect(path)
            hit = True
        except OSError:
            pass
    return hit

CG = "/sys/fs/cgroup"
tries = {
    "another tenant's storage": lambda: reads(victim + "/secret", "/data/secret", "/data/../" + tenant + "/secret",
        "/proc/1/root" + victim + "/secret", "/proc/*/root/data/secret", "/proc/*/cwd/secret"),
    "a link to another tenant's storage": link_out,
    "another's environment": lambda: reads("/proc/*/environ"),
    "another's arguments": lambda: any(SECRET in open("/proc/%s/cmdline" % p, "rb").read() for p in others()),
    "another's processes": lambda: len(others()) > 0,
    "signals to others": kill_others,
    "the agent's environment": lambda: "AGENT_SECRET" in os.environ,
    "the service of another tenant": lambda: reaches(8124),
    "stintd": lambda: reaches(stintd_port),
    "the node's loopback": lambda: reaches(node_port),
    "the world": lambda: reaches(53, 80, 443),
    "other interfaces": lambda: set(os.listdir("/sys/class/net")) - {"lo"} != set(),
    "sockets of the node": unix_sockets,
    "devices": lambda: opens("/dev/mem", "/dev/kmsg", "/dev/nvidia0", "/dev/nvidiactl", "/dev/vda", "/dev/sda",
        "/dev/nvme0n1", "/dev/loop0", "/dev/fuse", "/dev/net/tun", mode=os.O_RDONLY),
    "a device node of its own": device_node,
    "its memory limit": lambda: writes("1099511627776", CG + "/memory.max", CG + "/memory/memory.limit_in_bytes"),
    "its process limit": lambda: writes("max", CG + "/pids.max", CG + "/pids/pids.max"),
    "its CPU limit": lambda: writes("-1", CG + "/cpu/cpu.cfs_quota_us") or writes("max", CG + "/cpu.max"),
    "another cgroup": lambda: writes("0", CG + "/cgroup.procs", CG + "/memory/cgroup.procs"),
    "its descriptors": descriptors,
    "its priority": lambda: os.nice(-5) < 0,
    "its OOM score": lambda: writes("-1000", "/proc/self/oom_score_adj"),
    "/proc/sys": lambda: writes("|/bin/sh", "/proc/sys/kernel/core_pattern") or
        writes("1", "/proc/sys/kernel/panic", "/proc/sys/vm/drop_caches"),
    "/proc/sysrq-trigger": lambda: writes("h", "/proc/sysrq-trigger"),
    "kernel memory": lambda: opens("/proc/kcore", mode=os.O_RDONLY) and
        len(open("/proc/kcore", "rb").read(64)) > 0,
    "/sys": lambda: writes("/tmp/x", "/sys/kernel/uevent_helper", CG + "/release_agent",
        CG + "/memory/release_agent", "/sys/power/state"),
    "process 1": lambda: opens("/proc/1/mem", "/proc/1/exe", "/proc/1/fd/3") or reads("/proc/1/environ"),
    "mounts and namespaces": mounts,
    "another root": lambda: os.chroot("/tmp") is None,
    "another user": lambda: os.setuid(0) is None,
    "the root file system": lambda: opens("/usr/bin/new", "/etc/new", "/new", mode=os.O_WRONLY | os.O_CREAT),
    "the node's files": lambda: opens("/etc/shadow", "/root", "/home", "/var/lib", mode=os.O_RDONLY),
}
for name, attempt in tries.items():
    try:
        through = attempt()
    except Exception:
        through = False
    print("THROUGH" if through else "denied", name, flush=True)
print("tried", len(tries), flush=True)
EOF
# Something to be reached on the node itself.
python3 -c 'import socket, time
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
time.sleep(600)' >"$tmp/port" &
more_pids="$more_pids $!"
wait_for test -s "$tmp/port"
# attack ACCOUNT: what became of it is in $tmp/tried.
attack() {
    try 0 '^j' submit --account "$1" --name attack --gpus 1 --cpu 0.5 --ram 128Mi --limit 1m -- \
        python3 -c "$(cat "$tmp/attack.py")" "$other" "$port" "$(cat "$tmp/port")"
    job=$(cat "$tmp/out")
    becomes "$job" done
    writes "$job" '^tried 32$'
    "$stint" logs "$job" >"$tmp/tried"
}
attack acme
ran=$((ran + 1))
grep '^THROUGH' "$tmp/tried" && fail "a job got through"
[ "$(grep -c '^denied' "$tmp/tried")" -eq 32 ] || fail "not everything was tried: $(cat "$tmp/tried")"
[ -e "$other/visited" ] && fail "the neighbour was visited"

# The same for the neighbour's own tenant: the script can tell.
attack other
ran=$((ran + 1))
[ "$(sed -n 's/^THROUGH //p' "$tmp/tried" | tr '\n' ,)" = "another tenant's storage,the service of another tenant," ] ||
    fail "a tenant does not reach its own: $(grep THROUGH "$tmp/tried")"

# ---- a fork bomb, and a disk to be filled ---------------------------------------------------------

beats() { wc -l <"$other/beats"; }
before=$(beats)
# shellcheck disable=SC2016 # for the shell inside
submit --name bomb --gpus 1 --cpu 1 --ram 1Gi --limit 2m -- \
    sh -c 'n=0; trap "echo after $n" EXIT; while [ $n -lt 9000 ]; do sleep 1000 & n=$((n + 1)); done; echo endless'
wait_for is "$job" failed || wait_for is "$job" failed || wait_for is "$job" failed
becomes "$job" failed
"$stint" logs "$job" | grep -q 'endless' && fail "nothing has bounded it"
gone() { ! ls -d /sys/fs/cgroup/*/stint-*/"$job".* /sys/fs/cgroup/stint-*/"$job".*; }
wait_for gone || fail "something of the bomb is left"
[ "$(beats)" -gt "$before" ] || fail "the neighbour stood still"

submit --name filler --gpus 1 --cpu 0.5 --ram 64Mi --limit 30s -- sh -c \
    'head -c 300000000 /dev/zero >/dev/shm/big; head -c 300000000 /dev/zero >/usr/big; head -c 300000000 /dev/zero >/tmp/big; sleep 1'
becomes "$job" failed
try 0 'memory' show "$job"
is "$victim" running || fail "the neighbour is $(state_of "$victim")"
try 0 'cancelled' cancel "$victim"
said f1 "event=ended .*$victim"
done_testing
