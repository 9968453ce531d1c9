#!/bin/sh
# The guard in real containers on simulated GPUs: the agent loads it into tasks that share a GPU, gives them their limits,
# and takes them back. What stands for the driver is the model of tests/guard. Skipped where containers cannot be run.
# $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
need_containers
mounts="$mounts $tmp/m1/guard"

lease=20s
start_native
try 0 'made' account create vision --parent acme
try 0 'made' account create speech --parent acme
node() { start_agent m1 --exec oci --sim h100x1 --metrics 127.0.0.1:0 "$@"; }
node --guard "$STINT_GUARD"
node_becomes m1 ready

shared() { # shared ACCOUNT VRAM SCRIPT: sets job
    try 0 '^j' submit --account "$1" --level time --share 0.5 --vram "$2" --limit 5m -- sh -c "$3"
    job=$(cat "$tmp/out")
}
logged() { "$stint" logs "$1" | grep -q -e "$2"; }
in_log() {
    ran=$((ran + 1))
    wait_for logged "$1" "$2" || fail "\"$2\" is not in the log of $1: $("$stint" logs "$1")"
}
# Puts the program, the driver and a device of its own where an account's jobs find them.
equip() {
    try 0 '^j' submit --account "$1" --limit 1m -- true
    becomes "$(cat "$tmp/out")" done
    there=$(storage_of m1 "$1")
    mkdir -p "$there/lib"
    cp "$STINT_GUARD_WORK" "$there/work"
    cp "$STINT_GUARD_DRIVER" "$there/lib/libcuda.so.1"
    "$STINT_GUARD_PAGES" "$there" device 80000 100 528
    chmod 755 "$there/lib" "$there/work"
    chmod 666 "$there/model"
}
equip vision
equip speech
run='export LD_LIBRARY_PATH=/data/lib FAKE_DEVICE=/data/model'

# ---- every process of a task has its limits ---------------------------------------------------

shared vision 2Gi "cat /etc/ld.so.preload; $run; /data/work vram; sh -c 'sh -c \"/data/work vram\"'; \
echo x >/run/stint-guard/grant || echo grant is kept; echo x >/run/stint-guard/dev.0/turn.0 || echo board is kept; \
rm -f /run/stint-guard/own.0/book || echo book is kept; echo x >/etc/ld.so.preload || echo preload is kept; \
/data/work hog 1 fma =40000; echo ready; sleep 280"
vision=$job
in_log "$vision" '^ready$'
in_log "$vision" '^/run/stint-guard/libstint-guard.so$'
in_log "$vision" 'total_mib=2048'
in_log "$vision" 'got_mib=1520 error=2'
for kept in grant board book preload; do in_log "$vision" "^$kept is kept\$"; done
ran=$((ran + 1))
[ "$("$stint" logs "$vision" | grep -c 'got_mib=1520 error=2')" -eq 2 ] ||
    fail "a process of its children had other limits: $("$stint" logs "$vision")"

# ---- another task has its own -----------------------------------------------------------------

shared speech 3Gi "$run; /data/work vram; ls /run/stint-guard/dev.0; ls /run/stint-guard/own.0; echo ready; sleep 280"
speech=$job
in_log "$speech" '^ready$'
in_log "$speech" 'got_mib=2544 error=2'
in_log "$speech" '^turn.1$'

# ---- counters ---------------------------------------------------------------------------------

port=$(sed -n 's/^event=metrics .*port=//p' "$tmp/m1.log" | tail -n 1)
counted() { # counted JOB METRIC: more than none
    python3 - "$port" "$1" "$2" <<'END'
import re, sys, urllib.request
text = urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/metrics").read().decode()
rows = [r for r in text.splitlines() if r.startswith(sys.argv[3] + "{") and f'job="{sys.argv[2]}"' in r]
sys.exit(0 if rows and float(rows[0].split()[-1]) > 0 else 1)
END
}
ran=$((ran + 2))
wait_for counted "$vision" stint_guard_launches_total || fail "its launches are not counted"
counted "$speech" stint_guard_refused_allocations_total || fail "what it was refused is not counted"

# ---- an agent that is killed finds them again ---------------------------------------------------

crash_agent m1
starts=$(grep -c '^event=metrics ' "$tmp/m1.log")
again() { [ "$(grep -c '^event=metrics ' "$tmp/m1.log")" -gt "$starts" ]; }
node --guard "$STINT_GUARD"
ran=$((ran + 1))
wait_for again || fail "the agent does not come back"
node_becomes m1 ready
port=$(sed -n 's/^event=metrics .*port=//p' "$tmp/m1.log" | tail -n 1)
ran=$((ran + 1))
wait_for counted "$vision" stint_guard_launches_total || fail "it has forgotten a task's counters"
try 0 'cancelled' cancel "$vision"
becomes "$vision" cancelled
try 0 'cancelled' cancel "$speech"
becomes "$speech" cancelled
left() { [ ! -e "$tmp/m1/guard" ]; }
ran=$((ran + 1))
wait_for left || fail "something is left: $(find "$tmp/m1/guard")"

# ---- a library that is not there is an error, never no limits -----------------------------------

kill "$(cat "$tmp/m1.pid")"
wait "$(cat "$tmp/m1.pid")" 2>/dev/null
node --guard "$tmp/nothing.so"
node_becomes m1 ready
shared vision 2Gi 'echo it ran'
refused() { grep -q "event=not-started .*job=$job .*nothing.so is not there" "$tmp/m1.log"; }
ran=$((ran + 2))
wait_for refused || fail "no word of it: $(tail -n 5 "$tmp/m1.log")"
"$stint" logs "$job" | grep -q 'it ran' && fail "it ran without its limits"
becomes "$job" failed
try 0 'nothing.so is not there' show "$job"
"$STINT_AGENT" doctor --data "$tmp/doctor" --sim h100x1 --guard "$tmp/nothing.so" >"$tmp/doctor.out" 2>&1
grep -q '^warn  guard .*nothing.so is not there' "$tmp/doctor.out" || fail "the doctor does not see it: $(cat "$tmp/doctor.out")"
done_testing
