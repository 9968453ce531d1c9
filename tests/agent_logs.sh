#!/bin/sh
# stintd cannot keep what a task has written until the task is long over: its node keeps it, over a crash of the agent too, and the log
# is whole when stintd can. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
need_containers
start_native
: >"$tmp/data/logs" # no folder: whatever is to be kept is an error
start_agent n1 --exec oci
node_becomes n1 ready

write() {
    submit --name "$1" --gpus 0 --cpu 0.5 --ram 64Mi --limit 5m -- sh -c 'i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i + 1)); done'
    becomes "$job" done
}
write first
first=$job
# When the second is over the first has been off the list, and stintd has heard all of it but its log.
write second
second=$job
crash_agent n1
start_agent n1 --exec oci
write third
third=$job

rm "$tmp/data/logs"
i=0
while [ $i -lt 3000 ]; do
    echo "line $i"
    i=$((i + 1))
done >"$tmp/all"
whole() { "$stint" logs "$1" | cmp -s - "$tmp/all"; }
for job in "$first" "$second" "$third"; do
    ran=$((ran + 1))
    wait_for whole "$job" || fail "the log of $job is not whole: $("$stint" logs "$job" | diff - "$tmp/all" | head -n 3)"
done
# And then they are forgotten.
idle() { [ -z "$(ls "$tmp/n1/run/tasks")" ]; }
ran=$((ran + 1))
wait_for idle || fail "still there: $(ls "$tmp/n1/run/tasks")"
grep -q -e 'event=log-' "$tmp/n1.log" && fail "$(grep 'event=log-' "$tmp/n1.log" | head -n 1)"
done_testing
