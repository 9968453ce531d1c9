#!/bin/sh
# Sharing GPUs by MPS and by time slices: real containers on simulated GPUs, and something that stands for
# the vendor's MPS control program. A daemon per GPU and trust domain, limits, agents and daemons killed under
# tasks, memory beyond the grant. Skipped where containers cannot be run. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
if ! "$STINT_AGENT" doctor --data "$tmp/doctor" --sim h100x1 >"$tmp/doctor.out" 2>&1; then
    echo "no containers here: $(grep '^BAD' "$tmp/doctor.out" | head -n 1)"
    exit 77
fi
control=$tmp/control
cp "$(dirname "$0")/lib/fake_mps_control.py" "$control"
chmod 755 "$control"
unmount() { umount -l "$tmp"/m1/mps/*/shm 2>/dev/null; }
trap 'kill_daemons; finish_agents' EXIT
kill_daemons() { # only those of this test: they have its folder in their environment
    for p in $(grep -ls "STINT_MPS_DIR=$tmp/" /proc/[0-9]*/environ | cut -d/ -f3); do
        kill -9 "$p" 2>/dev/null
    done
    unmount
}

lease=20s
start_native
try 0 'made' account create vision --parent acme
try 0 'made' account create speech --parent acme
acme=$(tenant_of acme)
rival=$(tenant_of other)
: >"$tmp/faults"
node() { start_agent m1 --exec oci --sim h100x2 --mps-control "$control" --sim-faults "$tmp/faults"; }
node
node_becomes m1 ready

# shared ACCOUNT LEVEL SHARE VRAM SCRIPT: sets job.
shared() {
    try 0 '^j' submit --account "$1" --level "$2" --share "$3" --vram "$4" --limit 5m \
        --env FAKE_MPS_CLIENT=1 --env CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=90G -- sh -c "$5"
    job=$(cat "$tmp/out")
}
logged() { "$stint" logs "$1" | grep -q -e "$2"; }
in_log() {
    ran=$((ran + 1))
    wait_for logged "$1" "$2" || fail "\"$2\" is not in the log of $1: $("$stint" logs "$1")"
}
told() { grep -q -e "$1" "$control.log"; }
was_told() {
    ran=$((ran + 1))
    wait_for told "$1" || fail "the daemon was not told \"$1\": $(cat "$control.log")"
}
started() { grep -c '^event=mps-started' "$tmp/m1.log"; }
daemons() { find "$tmp/m1/mps" -mindepth 1 -maxdepth 1 2>/dev/null | wc -l; }
no_daemons() { [ "$(daemons)" -eq 0 ]; }

# ---- two tenants of one domain share a daemon ------------------------------------------------

# Its environment, whether it reaches the daemon, and what it can do to it.
cat >"$tmp/client.py" <<'END'
import socket
s = socket.socket(socket.AF_UNIX)
s.connect("/dev/shm/mps/control")
s.sendall(b"get_server_list\n")
print("server", s.makefile().readline().strip(), flush=True)
END
# shellcheck disable=SC2016 # for the shell inside
tell='echo pipe=$CUDA_MPS_PIPE_DIRECTORY percent=$CUDA_MPS_ACTIVE_THREAD_PERCENTAGE \
memory=$CUDA_MPS_PINNED_DEVICE_MEM_LIMIT cuda=$CUDA_VISIBLE_DEVICES nvidia=$NVIDIA_VISIBLE_DEVICES; \
echo uid=$(id -u) gid=$(id -g); ls /dev/shm/mps; touch /dev/shm/mps/control && echo touched; \
rm -f /dev/shm/mps/control /dev/shm/mps/*.pid; ls /dev/shm/mps; echo from $STINT_JOB >/data/note; echo ready; sleep 280'
tell="python3 -c '$(cat "$tmp/client.py")'; $tell"
shared vision mps 0.5 20Gi "trap '' TERM; $tell"
vision=$job
becomes "$vision" running
in_log "$vision" '^ready$'
in_log "$vision" 'pipe=/dev/shm/mps percent=50 memory=0=20480M cuda=0 nvidia=GPU-'
in_log "$vision" '^server [1-9]'
in_log "$vision" '^nvidia-cuda-mps-control.pid'
was_told "^0-$acme: set_default_active_thread_percentage 50\$"
was_told "^0-$acme: set_default_device_pinned_mem_limit 0 20480M\$"
was_told "^0-$acme: start_server -uid $((1048576 + ${acme#t.}))\$"
was_told "^0-$acme: set_device_pinned_mem_limit [0-9]* 0 20480M\$"
was_told "^0-$acme: get_device_pinned_mem_limit [0-9]* 0\$"
was_told "^0-$acme: start GPU-"
ran=$((ran + 1))
grep "^0-$acme: environment" "$control.log" | grep -q -e STINT_TOKEN -e HOME -e STINT_URL &&
    fail "the daemon has our environment"

shared speech mps 0.3 30Gi "$tell"
speech=$job
becomes "$speech" running
in_log "$speech" '^ready$'
in_log "$speech" 'percent=30 memory=0=30720M cuda=0'
# The server has the largest of both.
was_told "^0-$acme: set_device_pinned_mem_limit [0-9]* 0 30720M\$"
said m1 "event=mps-limits node=m1 gpu=0 domain=$acme percent=50 memory_mib=30720"
ran=$((ran + 3))
[ "$(started)" -eq 1 ] || fail "there are several daemons for one domain: $(grep mps- "$tmp/m1.log")"
uid() { "$stint" logs "$1" | sed -n 's/^uid=\([0-9]*\).*/\1/p'; }
[ "$(uid "$vision")" = "$(uid "$speech")" ] || fail "clients of one server are different users"
[ -S "$tmp/m1/mps/0-$acme/shm/mps/control" ] || fail "a task could remove the daemon's socket"

# What a task at level mps writes is its tenant's in other tasks, both ways, and nobody else's.
try 0 '^j' submit --account vision --limit 1m -- sh -c 'cat /data/note; echo more >>/data/note && echo again'
job=$(cat "$tmp/out")
becomes "$job" done
try 0 "from $vision" logs "$job"
grep -q again "$tmp/out" || fail "it cannot write its tenant's file: $(cat "$tmp/out")"
grep -q "$speech" "$tmp/out" && fail "it reads another tenant's storage"

# ---- two domains never do ---------------------------------------------------------------------

shared other mps 0.2 8Gi "$tell"
other=$job
becomes "$other" running
in_log "$other" '^ready$'
in_log "$other" 'percent=20 memory=0=8192M cuda=0'
said m1 "event=mps-started node=m1 gpu=1 domain=$rival"
ran=$((ran + 2))
[ "$(daemons)" -eq 2 ] || fail "not two daemons: $(ls "$tmp/m1/mps")"
[ "$(uid "$other")" != "$(uid "$vision")" ] || fail "two domains have one user"

# ---- the agent is killed, and finds them again -------------------------------------------------

crash_agent m1
sleep 0.5
node
said m1 "event=mps-found node=m1 gpu=0 domain=$acme alive=true"
said m1 "event=mps-found node=m1 gpu=1 domain=$rival alive=true"
node_becomes m1 ready
sleep 1.5
ran=$((ran + 2))
[ "$(started)" -eq 2 ] || fail "a daemon was started again: $(grep mps- "$tmp/m1.log")"
is "$vision" running || fail "a task did not survive: $("$stint" show "$vision")"

# ---- a task goes: off the server first, then killed --------------------------------------------

try 0 'cancelled' cancel "$vision"
becomes "$vision" cancelled
was_told "^0-$acme: terminate_client [0-9]* [0-9]*\$"
said m1 "event=parted node=m1 job=$vision"
said m1 "event=mps-limits node=m1 gpu=0 domain=$acme percent=30 memory_mib=30720"
is "$speech" running || fail "its neighbour went with it: $("$stint" show "$speech")"

# ---- a daemon is killed under its task ----------------------------------------------------------

kill -9 "$(sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' "$tmp/m1/mps/0-$acme/daemon.json")"
becomes "$speech" failed
try 0 'MPS daemon of GPU 0 has ended under it' show "$speech"
becomes "$other" running
shared speech mps 0.4 8Gi 'echo fresh; sleep 280'
in_log "$job" '^fresh$'
speech=$job
ran=$((ran + 1))
[ "$(started)" -eq 3 ] || fail "no fresh daemon: $(grep mps- "$tmp/m1.log")"

# ---- more memory than granted --------------------------------------------------------------------

echo 'm1 0 memory 8800' >>"$tmp/faults" # within the tolerance
sleep 2.5
ran=$((ran + 1))
is "$speech" running || fail "it was ended within its tolerance: $("$stint" show "$speech")"
echo 'm1 0 memory 9000' >>"$tmp/faults"
becomes "$speech" failed
try 0 'used 9000 MiB of GPU 0, and 8192 MiB are granted' show "$speech"
try 0 'cancelled' cancel "$other"
ran=$((ran + 1))
wait_for no_daemons || fail "daemons are left: $(ls "$tmp/m1/mps")"
was_told "^1-$rival: quit\$"

shared vision time 0.5 8Gi 'sleep 280'
first=$job
becomes "$first" running
shared other time 0.5 8Gi 'sleep 280'
second=$job
becomes "$second" running
where() { "$stint" show "$1" | sed -n 's/^Where  *\(m1:[0-9]\).*/\1/p'; }
ran=$((ran + 1))
[ "$(where "$first")" = "$(where "$second")" ] || fail "they do not share: $(where "$first") $(where "$second")"
echo '* * memory 20000' >>"$tmp/faults"
becomes "$second" failed
try 0 'used 20000 MiB' show "$second"
is "$first" running || fail "the other one was ended too: $("$stint" show "$first")"
try 0 'cancelled' cancel "$first"

# ---- refused, with the reason ---------------------------------------------------------------------

echo lie >"$control.mood"
shared vision mps 0.5 8Gi 'true'
becomes "$job" failed
try 0 'level mps: MPS was told a memory limit of 8192 MiB and has 1M' show "$job"
echo old >"$control.mood"
shared vision mps 0.5 8Gi 'true'
becomes "$job" failed
try 0 'too old' show "$job"
ran=$((ran + 1))
wait_for no_daemons || fail "daemons that failed are left: $(ls "$tmp/m1/mps")"
"$STINT_AGENT" doctor --data "$tmp/doctor" --sim h100x1 --mps-control "$control" >"$tmp/doctor.out" 2>&1
grep -q '^warn  mps .*too old' "$tmp/doctor.out" || fail "the doctor does not see it: $(cat "$tmp/doctor.out")"
# A daemon that shows whole GiB is believed; one that does not quit is killed.
echo 'gib deaf' >"$control.mood"
shared vision mps 0.5 5000Mi 'true'
becomes "$job" done
ran=$((ran + 2))
wait_for no_daemons || fail "a deaf daemon is left: $(ls "$tmp/m1/mps")"
rm "$control.mood"
rm -rf "$tmp/doctor"
"$STINT_AGENT" doctor --data "$tmp/doctor" --sim h100x1 --mps-control "$control" >"$tmp/doctor.out" 2>&1
grep -q '^ok    mps ' "$tmp/doctor.out" || fail "the doctor finds fault: $(cat "$tmp/doctor.out")"

# ---- killed in the middle of a daemon's start: undone, and the job runs once, for it was not begun --------

echo slow >"$control.mood"
# shellcheck disable=SC2016 # for the shell inside
shared vision mps 0.5 8Gi 'echo stay $STINT_STAY >>/data/runs'
ran=$((ran + 2))
half_way() { [ -S "$tmp/m1/mps/0-$acme/shm/mps/control" ] || [ -S "$tmp/m1/mps/1-$acme/shm/mps/control" ]; }
wait_for half_way || fail "no daemon is being started"
crash_agent m1
rm "$control.mood"
node
said m1 "event=mps-found node=m1 gpu=[01] domain=$acme alive="
becomes "$job" done
ran=$((ran + 1))
runs=$(cat "$(storage_of m1 vision)/runs")
[ "$runs" = 'stay 1' ] || fail "it did not run once, in its first stay: $runs"
wait_for no_daemons || fail "a daemon is left half way: $(ls "$tmp/m1/mps")"

# ---- whole GPUs afterwards, and nothing is left -----------------------------------------------------

submit --gpus 2 --limit 1m -- true
becomes "$job" done
mv "$control" "$control.away"
shared vision mps 0.5 8Gi 'true'
becomes "$job" failed
try 0 'level mps: .* is not a program' show "$job"
ran=$((ran + 2))
grep -qs "STINT_MPS_DIR=$tmp/" /proc/[0-9]*/environ && fail "a process of a daemon is left"
grep -q "$tmp/m1/mps" /proc/self/mounts && fail "a mount of a daemon is left"
done_testing
