#!/bin/sh
# `stint logs` with real containers: all tasks with their numbers, the last lines, what came since a moment, and -f
# over a restart of the job. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
need_containers
start_native
start_agent n1 --exec oci
node_becomes n1 ready
try 0 'made' account create guest

# ---- all tasks ---------------------------------------------------------------------------------

# shellcheck disable=SC2016 # for the shell inside
submit --name wide --tasks 3 --gpus 0 --cpu 0.2 --ram 64Mi --limit 5m -- \
    sh -c 't=${STINT_TASK##*/} i=0; while [ $i -lt 20 ]; do i=$((i + 1)); echo "$t says $i"; done; printf "$t ends"'
becomes "$job" done
wide=$job
whole() { [ "$("$stint" logs --all "$1" | grep -c .)" -eq 63 ]; }
wait_for whole "$wide" || fail "not all lines of all tasks: $("$stint" logs --all "$wide")"
try 0 '^\[2\] 2 says 20$' logs --all "$wide"
for t in 0 1 2; do
    [ "$(grep -c "^\[$t\] $t says [0-9]*$" "$tmp/out")" -eq 20 ] || fail "task $t: $(cat "$tmp/out")"
    grep -q "^\[$t\] $t ends$" "$tmp/out" || fail "task $t: a line without an end is lost"
done
try 0 '^\[1\] 1 says 20$' logs --all --tail 2 "$wide"
[ "$(wc -l <"$tmp/out")" -eq 6 ] || fail "logs --tail 2 of three tasks: $(cat "$tmp/out")"
try 0 '^1 says 20$' logs --task 1 --tail 2 "$wide"
[ "$(head -c 9 "$tmp/out")" = '1 says 20' ] || fail "logs --tail: $(cat "$tmp/out")"
try 2 'not both' logs --all --task 1 "$wide"
try 2 'tail' logs --tail 0 "$wide"

# ---- since -----------------------------------------------------------------------------------------

submit --name since --gpus 0 --cpu 0.2 --ram 64Mi --limit 5m -- \
    sh -c 'echo old; while [ ! -e /data/go ]; do sleep 0.1; done; echo new; while [ ! -e /data/end ]; do sleep 0.1; done'
writes() { "$stint" logs "$job" | grep -q "$1"; }
mine=$(storage_of n1 acme)
wait_for writes old || fail "nothing is written: $("$stint" show "$job")"
first=$(date +%s)
later() { [ "$(date +%s)" -gt $((first + 1)) ]; }
wait_for later
since=$(date -u +%Y-%m-%dT%H:%M:%SZ)
touch "$mine/go"
wait_for writes new || fail "nothing is written: $("$stint" logs "$job")"
try 0 'new' logs --since "$since" "$job"
grep -q old "$tmp/out" && fail "logs --since: $(cat "$tmp/out")"
try 0 'old' logs --since 1h "$job"
try 2 'since: "soon" is neither' logs --since soon "$job"
touch "$mine/end"
becomes "$job" done

# ---- followed over a restart ---------------------------------------------------------------------------

# shellcheck disable=SC2016 # for the shell inside
try 0 '^j' submit --account guest --name again --gpus 8 --cpu 0.2 --ram 64Mi --limit 10m --on-preempt requeue -- \
    sh -c 'echo "start $STINT_STAY"; while [ ! -e /data/end ]; do sleep 0.1; done; echo "whole $STINT_STAY"'
again=$(cat "$tmp/out")
wait_for sh -c '"$0" logs "$1" | grep -q "^start 1$"' "$stint" "$again" || fail "it does not run"
(exec "$stint" logs -f "$again") >"$tmp/follow" 2>"$tmp/follow.err" &
follow_pid=$!
wait_for grep -q '^start 1$' "$tmp/follow" || fail "logs -f: $(cat "$tmp/follow" "$tmp/follow.err")"
try 0 '^j' submit --account other --name owner --gpus 4 --cpu 0.2 --ram 64Mi --limit 10m -- sleep 600
owner=$(cat "$tmp/out")
becomes "$owner" running
is "$again" pending || fail "it is $(state_of "$again")"
try 0 '' cancel "$owner"
ran=$((ran + 1))
wait_for grep -q '^start 2$' "$tmp/follow" || fail "logs -f does not go on: $(cat "$tmp/follow" "$tmp/follow.err")"
touch "$(storage_of n1 guest)/end"
becomes "$again" done
ran=$((ran + 1))
[ $failed -eq 0 ] || kill $follow_pid # it may never end
wait $follow_pid || fail "logs -f ends with status $?"
printf 'start 1\nstart 2\nwhole 2\n' | cmp -s - "$tmp/follow" || fail "logs -f: $(cat "$tmp/follow")"
grep -q "job $again started again: this is start 2" "$tmp/follow.err" || fail "logs -f: $(cat "$tmp/follow.err")"
try 0 '^start 1$' logs --start 1 "$again"
try 0 '^whole 2$' logs "$again"
try 4 'has not written' logs --start 9 "$again"

done_testing
