#!/bin/sh
# Tasks that are paused, in real containers on simulated GPUs: they stand still, their GPUs go to another
# tenant after their memory was read, they go on where they were; with an agent that is killed while they are
# paused and in the middle of it. A stand-in for CUDA takes the checkpoints. Skipped where containers cannot
# be run. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
if ! "$STINT_AGENT" doctor --data "$tmp/doctor" --sim h100x1 >"$tmp/doctor.out" 2>&1; then
    echo "no containers here: $(grep '^BAD' "$tmp/doctor.out" | head -n 1)"
    exit 77
fi
: >"$tmp/faults"
grace=1m # what is taken off with an agent killed meanwhile is slow on a slow machine, and not late
start_native
start_agent c1 --exec oci --sim-faults "$tmp/faults"
node_becomes c1 ready

# shellcheck disable=SC2016 # for the shell inside
count='i=0; while [ $i -lt $TO ]; do i=$((i + 1)); echo "n $i"; sleep 0.1; done; echo whole'

lines() { "$stint" logs "$1" | grep -c '^n '; }
grant() { # JOB KEY...: of its first grant, in words
    "$stint" show "$1" -o json | python3 -c '
import json, sys
v = json.load(sys.stdin)["placement"]["grants"][0]
for k in sys.argv[1:]:
    v = v.get(k) if v else None
print(v)' "$2" "$3"
}
grant_is() { [ "$(grant "$1" "$2" "$3")" = "$4" ]; }
whole() { # JOB [TO]: it counted to the end, each number once
    ran=$((ran + 1))
    wait_for sh -c '"$0" logs "$1" | grep -q "^whole$"' "$stint" "$1" || fail "$1 did not finish"
    "$stint" logs "$1" | grep '^n ' | sort | uniq -d | grep . && fail "$1 counted something twice"
    [ "$(lines "$1")" -eq "${2:-60}" ] || fail "$1 counted $(lines "$1") of ${2:-60}"
}

# Borrows all GPUs; the other tenant's four are its own.
borrow() {
    submit --name "$1" --gpus 8 --on-preempt pause --limit "${2:-1m}" --env TO=60 -- sh -c "$count"
}
reclaim() {
    try 0 '^j' submit --account other --name owner --gpus 4 --limit 1m -- sh -c "echo in; exec sleep $1"
    owner=$(cat "$tmp/out")
}
stands_still() { # JOB: for a second
    before=$(lines "$1")
    sleep 1
    ran=$((ran + 1))
    [ "$(lines "$1")" -eq "$before" ] || fail "$1 runs although it is paused"
}

# ---- paused, handed over, resumed ------------------------------------------------------------

borrow plain 8s # of which it needs six, and stands still for four
becomes "$job" running
wait_for "$stint" logs "$job"
reclaim 4
becomes "$owner" running
becomes "$job" paused
said c1 'event=paused'
said c1 "event=scrubbed .*job=$job .*result=overwritten"
sleep 0.7 # what it wrote is on its way
stands_still "$job"
becomes "$owner" done
becomes "$job" running
becomes "$job" done
whole "$job"
ran=$((ran + 3))
wait_for grant_is "$owner" scrub result overwritten || fail "no scrub with the owner's grant"
wait_for grant_is "$job" scrub result overwritten || fail "no scrub with the grant"
[ "$(grant "$job" usage held_gpu_ms)" -gt 0 ] || fail "it used nothing"

# ---- the agent is killed while it is paused ---------------------------------------------------

borrow killed
becomes "$job" running
wait_for "$stint" logs "$job"
reclaim 5
becomes "$job" paused
becomes "$owner" running
# Running is what stintd has decided; whoever is being started when the agent is killed ends with it.
wait_for sh -c '"$0" logs "$1" | grep -q in' "$stint" "$owner" || fail "the owner has not begun"
crash_agent c1
sleep 1
start_agent c1 --exec oci --sim-faults "$tmp/faults"
said c1 'event=found .*tasks=2'
stands_still "$job"
becomes "$owner" done
becomes "$job" done
whole "$job"

# ---- what is paused can be ended ---------------------------------------------------------------

borrow dropped
becomes "$job" running
wait_for "$stint" logs "$job"
reclaim 2
becomes "$job" paused
try 0 'cancelled' cancel "$job"
becomes "$owner" done

# ---- memory that cannot be cleared keeps the node ------------------------------------------------

echo 'c1 0 stuck 1' >>"$tmp/faults"
submit --name dirty --gpus 8 --limit 1m -- sleep 1
node_becomes c1 failed
said c1 'event=health .*state=failed.*could not be cleared'
echo 'c1 0 stuck 0' >>"$tmp/faults"
scrubbed_now() { node_is c1 ready; }
ran=$((ran + 1))
wait_for scrubbed_now || wait_for scrubbed_now || fail "the node does not come back"

# ---- with checkpoints ------------------------------------------------------------------------------

if [ -z "${STINT_FAKE_CUDA:-}" ]; then
    echo "no stand-in for CUDA here: checkpoints are not tried"
    done_testing
    exit
fi
mkdir "$tmp/cuda"
cat >"$tmp/stint-cuda" <<END
#!/bin/sh
export FAKE_CUDA_DIR=$tmp/cuda
exec "$STINT_CUDA" "\$@" --library "$STINT_FAKE_CUDA"
END
chmod +x "$tmp/stint-cuda"
ran=$((ran + 2))
"$STINT_AGENT" doctor --data "$tmp/doctor" --sim h100x1 --cuda "$tmp/stint-cuda" | grep -q '^ok .*stint-cuda' ||
    fail "the doctor does not see stint-cuda"
"$STINT_AGENT" doctor --data "$tmp/doctor" --sim h100x1 --cuda /nowhere | grep -q '^BAD .*stint-cuda' ||
    fail "the doctor does not miss stint-cuda"
kill "$(cat "$tmp/c1.pid")"
wait "$(cat "$tmp/c1.pid")" 2>/dev/null
cuda_agent() { start_agent c1 --exec oci --sim-faults "$tmp/faults" --cuda "$tmp/stint-cuda"; }
cuda_agent
node_becomes c1 ready

# The agent is killed in the middle of a checkpoint, of a scan and of a restore. Its helper goes on. What it
# has on devices does not fit into its RAM limit, which is raised meanwhile. Something was left in memory.
# The scan takes so long that nobody is being started when the agent is killed: that would be the end of the
# one who is.
echo 700 >"$tmp/cuda/delay"
echo 4000 >"$tmp/cuda/slow"
python3 -c 'import sys; sys.stdout.buffer.write(bytes(9 << 20) + b"secret" + bytes(7 << 20))' >"$tmp/cuda/device"
submit --name middle --gpus 8 --ram 64Mi --on-preempt pause --limit 1m --env TO=120 -- sh -c "$count"
limit() { cat /sys/fs/cgroup/memory/stint-*/"$job".1.0/memory.limit_in_bytes \
    /sys/fs/cgroup/stint-*/"$job".1.0/memory.max 2>/dev/null; }
becomes "$job" running
wait_for "$stint" logs "$job"
reclaim 4
ran=$((ran + 1))
wait_for grep -q checkpoint "$tmp/cuda/log" || fail "no checkpoint is taken"
crash_agent c1
cuda_agent
becomes "$job" paused
ran=$((ran + 3))
grep -q 2 "$tmp"/cuda/p.* || fail "nobody was taken off"
[ "$(limit)" -eq $((576 << 20)) ] || fail "its RAM limit is $(limit)"
wait_for grep -q context "$tmp/cuda/log" || fail "memory is not read"
crash_agent c1
cuda_agent
said c1 "event=scrubbed .*job=$job .*result=overwritten .*found=2 "
echo 100 >"$tmp/cuda/slow"
stands_still "$job"
becomes "$owner" running
becomes "$owner" done
wait_for grep -q restore "$tmp/cuda/log" || fail "nothing is restored"
crash_agent c1
cuda_agent
lowered() { [ "$(limit)" -eq $((64 << 20)) ]; }
ran=$((ran + 1))
wait_for lowered || fail "its RAM limit is still $(limit)"
wait_for is "$job" done
becomes "$job" done
whole "$job" 120
ran=$((ran + 1))
[ "$(grep -c '^unlock' "$tmp/cuda/log")" -eq "$(grep -c '^lock' "$tmp/cuda/log")" ] ||
    fail "somebody is locked still: $(cat "$tmp/cuda/log")"

# One that cannot be taken off is told by its signal, and goes on from what it saved.
rm "$tmp/cuda/delay" "$tmp/cuda/slow"
echo 'checkpoint 0 801' >"$tmp/cuda/fail"
cat >"$tmp/saver.sh" <<'END'
n=$(cat /data/pause-progress 2>/dev/null || echo 0)
echo "going on from $n"
trap 'echo $n >/data/pause-progress; exit 0' TERM
while [ $n -lt 40 ]; do n=$((n + 1)); sleep 0.1; done
END
submit --name saver --gpus 8 --on-preempt pause --limit 1m -- sh -c "$(cat "$tmp/saver.sh")"
becomes "$job" running
wait_for "$stint" logs "$job"
sleep 1
reclaim 1
becomes "$owner" done
said c1 'event=not-paused .*cannot be saved'
becomes "$job" done
try 0 'going on from [1-9]' logs "$job"

ran=$((ran + 1))
empty() { [ -z "$(ls -A "$tmp/c1/run/tasks" "$tmp/c1/helpers" 2>/dev/null | grep '^j')" ]; }
wait_for empty || fail "something is left: $(ls -A "$tmp"/c1/run/tasks "$tmp/c1/helpers")"
done_testing
