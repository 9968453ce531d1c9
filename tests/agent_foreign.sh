#!/bin/sh
# Somebody's process on a GPU that no task put there: nothing is granted on that GPU, the node says who holds it, and other
# GPUs serve on. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
start_native
: >"$tmp/faults"
start_agent n1 --exec sim --sim-faults "$tmp/faults"
node_becomes n1 ready

sleep 300 &
more_pids=$!
echo "n1 7 process $more_pids" >>"$tmp/faults"
submit --name beside --gpus 7 --sim-run 5m --limit 10m -- true
becomes "$job" running
try 0 '' cancel "$job"
submit --name onto --gpus 8 --sim-run 5m --limit 10m -- true
said n1 "event=foreign .*job=$job .*GPU 7 is in use by process $more_pids (sleep)"
told() { "$stint" node show n1 | grep -q "GPU 7 is in use by process $more_pids (sleep), which is no task"; }
ran=$((ran + 1))
wait_for told || fail "the node does not say who holds it: $("$stint" node show n1)"
grep -q "event=started .*job=$job" "$tmp/n1.log" && fail "it was started beside a stranger"
is "$job" running && fail "it is said to run"
done_testing
