#!/bin/sh
# A task whose supervisor is killed is ended and reported so, also by an agent that comes back later; and a
# job that asked for it is told before it must leave. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
need_containers
notice=2s
start_native
start_agent u1 --exec oci
node_becomes u1 ready

# kill_shim JOB
kill_shim() {
    kill -9 "$(sed -n 's/.*"shim_pid": *\([0-9]*\).*/\1/p' "$tmp"/u1/run/tasks/"$1".*/live.json)"
}
left() { cat /sys/fs/cgroup/*/stint-*/"$1".*/cgroup.procs /sys/fs/cgroup/stint-*/"$1".*/cgroup.procs 2>/dev/null | wc -l; }

submit --name lonely --gpus 1 --cpu 0.2 --ram 64Mi -- sh -c 'trap "" PIPE TERM; echo up; while :; do sleep 0.1; done'
becomes "$job" running
writes "$job" '^up$'
[ "$(left "$job")" -gt 0 ] || fail "its group was not found"
kill_shim "$job"
becomes "$job" failed
try 0 'supervisor was killed' show "$job"
try 0 'Exit status  *137' show "$job"
[ "$(left "$job")" -eq 0 ] || fail "it still runs"

submit --name forlorn --gpus 1 --cpu 0.2 --ram 64Mi -- sh -c 'trap "" PIPE TERM; echo up; while :; do sleep 0.1; done'
becomes "$job" running
writes "$job" '^up$'
crash_agent u1
kill_shim "$job"
[ "$(left "$job")" -gt 0 ] || fail "it did not go on while nobody watched"
start_agent u1 --exec oci
becomes "$job" failed
try 0 'supervisor was killed' show "$job"
[ "$(left "$job")" -eq 0 ] || fail "it still runs"
node_becomes u1 ready

# ---- told before it must leave ------------------------------------------------------------------

cat >"$tmp/told.sh" <<'EOF'
trap 'echo told' USR1
trap 'echo saved; exit 0' TERM
echo up
while :; do sleep 0.1; done
EOF
# Eight of its sixteen GPUs are borrowed, and their owner wants them back.
start_agent u2 --exec oci
node_becomes u2 ready
submit --name told --tasks 2 --gpus 8 --network none --on-preempt checkpoint --notify-signal USR1 -- sh -c "$(cat "$tmp/told.sh")"
told=$job
becomes "$told" running
writes "$told" '^up$'
try 0 '^j' submit --account other --name owner --gpus 8 --limit 1m -- sleep 30
owner=$(cat "$tmp/out")
becomes "$owner" running
writes "$told" "^saved\$"
"$stint" logs "$told" >"$tmp/said"
[ "$(grep -x -m 3 'up\|told\|saved' "$tmp/said" | tr '\n' ' ')" = 'up told saved ' ] || fail "not told, then asked to save: $(cat "$tmp/said")"
try 0 'cancelled' cancel "$told"
try 0 'cancelled' cancel "$owner"
done_testing
