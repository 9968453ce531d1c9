#!/bin/sh
# The same with real containers on simulated GPUs: output, exit status, limits, what a task sees, a
# gang that talks to itself, saving on a signal, agents and stintd killed under running tasks. Skipped where
# containers cannot be run. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
need_containers
lease=12s
start_native
start_agent c1 --exec oci
start_agent c2 --exec oci
node_becomes c1 ready
node_becomes c2 ready

# ---- output, exit status, environment ------------------------------------------------------

# shellcheck disable=SC2016 # for the shell inside
submit --name hello --gpus 2 --limit 1m --env WHO=world -- sh -c \
    'echo hello $WHO; echo to-stderr >&2; id -u; echo gpus=$CUDA_VISIBLE_DEVICES; echo mine >/data/file; exit 3'
becomes "$job" failed
try 0 'Exit status  *3' show "$job"
wait_for "$stint" logs "$job"
try 0 '^hello world$' logs "$job"
grep -q '^to-stderr$' "$tmp/out" || fail "stderr is not in the log"
grep -q '^gpus=GPU-.*,GPU-' "$tmp/out" || fail "no GPUs by UUID"
grep -q '^0$' "$tmp/out" && fail "it ran as root"
try 0 '^j' submit --account other --gpus 1 --limit 1m -- sh -c 'ls -A /data; cat /data/file; true'
job=$(cat "$tmp/out")
becomes "$job" done
try 0 'No such file' logs "$job"

# ---- limits ----------------------------------------------------------------------------------

submit --name slow --gpus 1 --limit 2s -- sh -c 'echo begun; trap "" TERM; sleep 60'
becomes "$job" timeout
try 0 'begun' logs "$job"
submit --name greedy --gpus 1 --ram 64Mi --limit 1m -- python3 -c 'x = bytearray(300 << 20)'
becomes "$job" failed
try 0 'memory' show "$job"
submit --name absent --gpus 1 --limit 1m -- /no/such/program
becomes "$job" failed
try 0 'Exit status  *127' show "$job"
grep -q 'command not found' "$tmp/out" || fail "nothing says that the command is not there"
submit --name text --gpus 1 --limit 1m -- /etc/passwd
becomes "$job" failed
try 0 'Exit status  *126' show "$job"

# ---- a gang that talks to itself --------------------------------------------------------------

cat >"$tmp/gang.py" <<'END'
import os, socket, time
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
at = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if rank == 0:
    s = socket.create_server(at)
    c, _ = s.accept()
    print("heard", c.recv(100).decode(), "of", world, flush=True)
else:
    for _ in range(100):
        try:
            c = socket.create_connection(at)
            break
        except OSError:
            time.sleep(0.1)
    c.sendall(b"rank %d" % rank)
END
python3 - "$tmp/gang.py" >"$tmp/gang.yaml" <<'END'
import json, sys
print(json.dumps({"name": "gang", "account": "acme", "gpus": 8, "tasks": 2, "limit": "1m",
                  "network": "host", "command": ["python3", "-c", open(sys.argv[1]).read()]}))
END
submit -f "$tmp/gang.yaml"
becomes "$job" done
try 0 'heard rank 1 of 2' logs "$job"

# ---- preemption: it saves, leaves, and goes on where it was -----------------------------------

cat >"$tmp/saver.sh" <<'END'
n=$(cat /data/progress 2>/dev/null || echo 0)
trap 'echo $n >/data/progress; echo saved $n; exit 0' TERM
echo "going on from $n"
while [ $n -lt 600 ]; do n=$((n + 1)); sleep 0.1; done
END
submit --name saver --gpus 8 --tasks 2 --network none --on-preempt checkpoint --limit 10m -- sh -c "$(cat "$tmp/saver.sh")"
saver=$job
writes "$saver" 'going on from 0'
sleep 1
try 0 '^j' submit --account other --name owner --gpus 8 --limit 1m -- sleep 1
owner=$(cat "$tmp/out")
becomes "$owner" done
becomes "$saver" running
went_on() { "$stint" logs "$saver" | grep -q 'going on from [1-9]'; }
ran=$((ran + 1))
wait_for went_on || fail "it lost its progress: $("$stint" logs "$saver")"
try 0 'cancelled' cancel "$saver"

# ---- agents and stintd killed under running tasks ---------------------------------------------

submit --name steady --gpus 1 --limit 1m -- sh -c 'for i in 1 2 3 4 5 6; do echo line $i; sleep 0.7; done'
becomes "$job" running
where=$("$stint" show "$job" | sed -n 's/^Where  *\(c[12]\).*/\1/p')
crash_agent "$where"
sleep 1
start_agent "$where" --exec oci
said "$where" 'event=found'
becomes "$job" done
all_there() { "$stint" logs "$job" | grep -q 'line 6'; }
wait_for all_there || fail "the log is not whole: $("$stint" logs "$job")"
[ "$("$stint" logs "$job" | grep -c 'line 1')" -eq 1 ] || fail "it ran twice"

submit --name outage --gpus 1 --limit 1m -- sh -c 'sleep 1.5; exit 4'
becomes "$job" running
crash_stintd
sleep 6
native
becomes "$job" failed
try 0 'Exit status  *4' show "$job"
try 0 '^Took  *[12345]s' show "$job"

# Both gone, the task ends alone.
submit --name alone --gpus 1 --limit 1m -- sh -c 'sleep 1.5; exit 5'
becomes "$job" running
where=$("$stint" show "$job" | sed -n 's/^Where  *\(c[12]\).*/\1/p')
wait_for grep -q "event=started .*$job" "$tmp/$where.log"
sleep 0.5
crash_agent "$where"
crash_stintd
sleep 2.5
native
start_agent "$where" --exec oci
becomes "$job" failed
try 0 'Exit status  *5' show "$job"

# The agent is dead for good: what outlives it ends the task with the lease, before it starts elsewhere.
submit --name fenced --gpus 1 --limit 5m -- sh -c 'trap "" TERM; echo on $STINT_NODE; sleep 200'
becomes "$job" running
where=$("$stint" show "$job" | sed -n 's/^Where  *\(c[12]\).*/\1/p')
other=$([ "$where" = c1 ] && echo c2 || echo c1)
wait_for grep -q "event=started .*$job" "$tmp/$where.log"
crash_agent "$where"
moved() { grep -q "event=started .*$job" "$tmp/$other.log"; }
ended() { grep -rqs 'lease of its node' "$tmp/$where/run"; }
ran=$((ran + 2))
wait_for moved || wait_for moved || fail "it did not move to $other"
ended || fail "it still runs on $where"
start_agent "$where" --exec oci
said "$where" 'event=fence-lifted'
node_becomes "$where" ready
becomes "$job" running
try 0 'cancelled' cancel "$job"

# Nothing is left behind.
ran=$((ran + 1))
empty() { [ -z "$(ls -A "$tmp/c1/run/tasks" "$tmp/c2/run/tasks" 2>/dev/null | grep '^j')" ]; }
wait_for empty || fail "folders of tasks are left: $(ls -A "$tmp"/c?/run/*)"
group=$(cat "$tmp/$other/run/group")
kill "$(cat "$tmp/$other.pid")" && wait "$(cat "$tmp/$other.pid")"
ran=$((ran + 1))
left=$(find /sys/fs/cgroup -type d -name "$group")
[ "$group" != "${group#stint-}" ] && [ -z "$left" ] || fail "an agent that ended leaves its group \"$group\": $left"
done_testing
