#!/bin/sh
# A crowd of tasks of one tenant: while they start, run and end, the node reports on time, a neighbour's jobs start,
# end and are heard, stops reach tasks that are still starting, and no log lacks a line. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
need_containers
crowd=${STINT_CROWD:-80}
lease=9s # silence of a few seconds, and the node is lost
start_native
start_agent n1 --exec oci --cpu 64 --ram 64Gi --grace 30s
node_becomes n1 ready

# ---- many at once, and somebody else beside them -----------------------------------------------------

try 0 '^j' submit --account other --name crowd --gpus 0 --cpu 0.001 --ram 16Mi --tasks "$crowd" --limit 10m -- \
    sh -c 'echo first $RANK; sleep 2; echo last $RANK'
crowd_job=$(cat "$tmp/out")
said n1 "event=started .*$crowd_job"
submit --name neighbour --gpus 1 --cpu 0.2 --ram 64Mi --limit 1m -- echo here
becomes "$job" done
writes "$job" here
# In the order of the agent's log: not behind all of them.
ran=$((ran + 1))
behind=$(sed -n "/event=started .*$job/q; /event=started .*$crowd_job/p" "$tmp/n1.log" | wc -l)
[ "$behind" -lt "$crowd" ] || fail "the neighbour had to wait for all of the crowd"
over() { [ "$(state_of "$crowd_job")" = done ]; }
tries=60
until wait_for over || [ $tries -eq 0 ]; do tries=$((tries - 1)); done
is "$crowd_job" done || fail "the crowd is $(state_of "$crowd_job"): $("$stint" show "$crowd_job")"
grep -q 'event=node_failed' "$tmp/stintd.log" && fail "the node was lost: $(grep node_failed "$tmp/stintd.log")"
grep -q -e 'event=stalled' -e 'event=killed' "$tmp/n1.log" && fail "$(grep -e stalled -e killed "$tmp/n1.log" | head -n 1)"
has_last() { "$stint" logs --task "$1" "$crowd_job" | grep -q "^last $1\$"; }
n=0
while [ $n -lt "$crowd" ]; do
    wait_for has_last $n || fail "the last line of task $n is not in its log"
    n=$((n + 1))
done
ran=$((ran + 1))

# ---- a stop while it starts -------------------------------------------------------------------------

for i in 1 2 3 4 5 6 7 8; do
    submit --name "soon$i" --gpus 0 --cpu 0.1 --ram 16Mi --limit 5m -- sh -c 'sleep 200'
    said n1 "event=\(started\|stop\) .*$job"
    try 0 'cancel' cancel "$job"
done
# Well before the grace of 30 s: what was told was heard.
ran=$((ran + 1))
idle() { [ -z "$(ls "$tmp/n1/run/tasks")" ]; }
wait_for idle || fail "told to stop and still there: $(ls "$tmp/n1/run/tasks")"
grep -q 'event=killed .*did not stop' "$tmp/n1.log" && fail "the grace was waited for: $(grep 'event=killed' "$tmp/n1.log")"

# ---- nothing is left -----------------------------------------------------------------------------------

left() { ls -d /sys/fs/cgroup/*/stint-*/"$1".* /sys/fs/cgroup/stint-*/"$1".* 2>/dev/null; }
[ -z "$(left "$crowd_job")" ] || fail "groups are left: $(left "$crowd_job" | head -n 3)"
done_testing
