#!/bin/sh
# Five thousand tiny tasks of one job on one node, of the simulated executor: while they start, run and end no status is
# missed, and what the agent needs for them grows with their number, not with its square. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
lease=9s # silence of a few seconds, and the node is lost
few=1250
many=$((4 * few))
start_native
try 0 '' pool set main --tasks-per-job $many --tasks-per-node $((2 * many))
start_agent n1 --exec sim --cpu 64 --ram 64Gi
node_becomes n1 ready

# Hundredths of a second of a processor; a busy machine changes little about them.
used() { awk '{ print $14 + $15 }' "/proc/$(cat "$tmp/n1.pid")/stat"; }
started() { [ "$(grep -c "event=started .*job=$1 " "$tmp/n1.log")" -ge "$2" ]; }
gone() { [ "$(grep -c "event=ended .*job=$1 " "$tmp/n1.log")" -ge "$2" ] || [ "$(state_of "$1")" = done ]; }
patiently() {
    tries=30
    until wait_for "$@" || [ $tries -eq 0 ]; do tries=$((tries - 1)); done
    "$@"
}

# crowd N: how much the agent needs to start N tasks; they end by themselves.
crowd() {
    before=$(used)
    submit --name "crowd$1" --gpus 0 --cpu 0.001 --ram 1Mi --tasks "$1" --limit 10m --sim-run 2s -- true
    ran=$((ran + 1))
    patiently started "$job" "$1" || fail "$(grep -c "event=started .*job=$job " "$tmp/n1.log") of $1 have started"
    cost=$(($(used) - before))
    ran=$((ran + 1))
    patiently is "$job" done || fail "the crowd is $(state_of "$job")"
}

crowd $few
small=$cost
crowd $many
ran=$((ran + 3))
# Four times as many: four times the work, some noise; sixteen times if it were the square.
[ "$cost" -le $((10 * (small > 5 ? small : 5))) ] || fail "$many tasks need $cost/100 s, $few $small/100 s"
missed=$(grep -c -e 'event=status-failed' -e 'event=stalled' -e 'event=no-answer' "$tmp/n1.log")
[ "$missed" -eq 0 ] || fail "$missed statuses were missed: $(grep -e status-failed -e stalled "$tmp/n1.log" | head -n 1)"
lost=$(grep -c 'event=node_failed' "$tmp/stintd.log")
[ "$lost" -eq 0 ] || fail "the node was lost: $(grep node_failed "$tmp/stintd.log" | head -n 1)"
node_is n1 ready || fail "the node is not ready: $("$stint" node list)"
echo "$few tasks: $small/100 s of a processor, $many tasks: $cost/100 s"
done_testing
