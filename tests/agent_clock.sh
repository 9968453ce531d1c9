#!/bin/sh
# The clock on the wall jumps by hours: graces, leases and what is counted follow the clock that does not. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
need_containers
if [ -z "${STINT_FAKE_CLOCK:-}" ]; then
    echo "skipped: there is no clock to fake"
    exit 77
fi
start_native
echo 0 >"$tmp/clock"
agent_enter="env LD_PRELOAD=$STINT_FAKE_CLOCK FAKECLOCK=$tmp/clock"
start_agent n1 --exec oci
node_becomes n1 ready
gone() { [ ! -e "$tmp/n1/run/tasks/$job.1.0" ]; }

# An hour back: who does not stop is killed when its grace is over, and the next one runs.
submit --name deaf --gpus 8 --cpu 0.2 --ram 64Mi --limit 5m -- sh -c 'trap "" TERM; echo deaf; while :; do sleep 1; done'
deaf=$job
writes "$deaf" deaf
try 0 'cancel' cancel "$deaf"
said n1 "event=stop .*$deaf"
echo -3600000 >"$tmp/clock"
said n1 "event=killed .*$deaf"
ran=$((ran + 1))
wait_for gone || fail "it is still there an hour before it was told"
submit --name next --gpus 8 --cpu 0.2 --ram 64Mi --limit 5m -- sh -c 'echo next; sleep 4'
becomes "$job" running
writes "$job" next

# Two hours on: nothing was held for two hours, nothing ends early, and the node is well.
echo 7200000 >"$tmp/clock"
becomes "$job" done
held() { "$stint" show "$job" -o json | python3 -c 'import json, sys
print(json.load(sys.stdin)["placement"]["usage"].get("held_gpu_ms", 0))'; }
counted() { [ "$(held)" -gt 0 ]; }
ran=$((ran + 1))
wait_for counted || fail "nothing was counted"
[ "$(held)" -lt 600000 ] || fail "$(held) GPU ms were counted for a job of some seconds"

# In the middle of its grace: who saves is left to it.
submit --name saver --gpus 8 --cpu 0.2 --ram 64Mi --limit 5m -- \
    sh -c 'trap "echo saving; sleep 1; echo saved; exit 0" TERM; echo up; while :; do sleep 0.1; done'
writes "$job" up
try 0 'cancel' cancel "$job"
said n1 "event=stop .*$job"
echo 10800000 >"$tmp/clock"
writes "$job" saved
node_is n1 ready || fail "the node is not ready: $("$stint" node list)"
grep -q 'event=node_failed' "$tmp/stintd.log" && fail "$(grep node_failed "$tmp/stintd.log")"
done_testing
