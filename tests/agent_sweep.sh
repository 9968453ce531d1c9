#!/bin/sh
# What runs on a node is what the kernel says: containers whose records were lost are ended before anybody else gets
# their GPUs, and the jobs run again. And a task does not outlive the lease, whoever is dead. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
need_containers
lease=18s
grace=15s
start_native
start_agent n1 --exec oci
node_becomes n1 ready

# ---- the journal is lost ------------------------------------------------------------------------------

submit --name first --gpus 8 --cpu 0.2 --ram 64Mi --limit 5m -- \
    sh -c 'while :; do date +%s%N >>/data/$STINT_JOB.$STINT_STAY; sleep 0.1; done'
first=$job
becomes "$first" running
storage=$(storage_of n1 acme)
beats() { cat "$storage/$first.$1" 2>/dev/null | wc -l; }
alive() { [ "$(beats 1)" -gt 5 ]; }
wait_for alive || fail "it does not run"
crash_agent n1
rm -f "$tmp"/n1/tasks.*
start_agent n1 --exec oci
said n1 "event=stray .*$first"
said n1 "event=ended .*$first"
again() { [ -e "$storage/$first.2" ]; }
ran=$((ran + 1))
wait_for again || fail "it does not run again: $("$stint" show "$first")"
# The last sign of the first stay is older than the first of the second.
last=$(tail -n 1 "$storage/$first.1")
next=$(head -n 1 "$storage/$first.2")
[ "$last" -lt "$next" ] || fail "two stays of one job at once: $last and $next"

# ---- its folder is lost -------------------------------------------------------------------------------

wait_for test -e "$tmp/n1/run/tasks/$first.2.0/live.json"
crash_agent n1
rm -rf "$tmp/n1/run/tasks/$first.2.0"
start_agent n1 --exec oci
said n1 "event=ended .*$first stay=2"
group() { cat /sys/fs/cgroup/*/stint-*/"$1"/cgroup.procs /sys/fs/cgroup/stint-*/"$1"/cgroup.procs 2>/dev/null | wc -l; }
[ "$(group "$first.2.0")" -eq 0 ] || fail "it is said to have ended and runs on"
"$stint" cancel "$first" >/dev/null 2>&1

# ---- the journal is lost when tasks have ended ----------------------------------------------------------

# What they said at their ends is still true, nothing runs again for it, and nothing of them stays.
submit --name good --gpus 1 --cpu 0.2 --ram 64Mi --limit 5m -- sh -c 'echo ran >>/data/good; exit 0'
good=$job
submit --name bad --gpus 1 --cpu 0.2 --ram 64Mi --limit 5m -- sh -c 'echo ran >>/data/bad; sleep 1; exit 3'
bad=$job
wait_for test -e "$tmp/n1/run/tasks/$bad.1.0/live.json" || fail "there is no $tmp/n1/run/tasks/$bad.1.0/live.json"
kill -STOP "$stintd_pid" # the ends are on the disk, and nobody has heard of them
wait_for test -e "$tmp/n1/run/tasks/$bad.1.0/exit.json" || fail "there is no $tmp/n1/run/tasks/$bad.1.0/exit.json"
crash_agent n1
rm -f "$tmp"/n1/tasks.*
kill -CONT "$stintd_pid"
start_agent n1 --exec oci
becomes "$good" done
becomes "$bad" failed
"$stint" show "$bad" | grep -q 'exited with 3' || fail "how it ended is lost: $("$stint" show "$bad")"
[ "$(cat "$storage/good" "$storage/bad" | wc -l)" -eq 2 ] || fail "an ended task ran again"
forgotten() { [ -z "$(ls "$tmp/n1/run/tasks")" ]; }
ran=$((ran + 1))
wait_for forgotten || fail "folders of ended tasks stay: $(ls "$tmp/n1/run/tasks")"

# One that was told to save and left has not come to its end, though it exited with 0.
try 0 'made' account create guest
submit --name saver --account guest --gpus 8 --cpu 0.2 --ram 64Mi --limit 5m --on-preempt checkpoint -- sh -c '
    echo ran >>/data/saver
    [ "$STINT_STAY" = 1 ] || exit 0
    trap "echo heard >/data/heard; until [ -e /data/leave ]; do sleep 0.1; done; exit 0" TERM
    while :; do sleep 0.1; done'
saver=$job
other=$(storage_of n1 guest)
wait_for test -e "$other/saver" || fail "there is no $other/saver"
submit --name owner --gpus 4 --cpu 0.2 --ram 64Mi --limit 5m -- true
wait_for test -e "$other/heard" || fail "there is no $other/heard"
kill -STOP "$stintd_pid"
touch "$other/leave"
wait_for test -e "$tmp/n1/run/tasks/$saver.1.0/exit.json" || fail "there is no $tmp/n1/run/tasks/$saver.1.0/exit.json"
crash_agent n1
rm -f "$tmp"/n1/tasks.*
kill -CONT "$stintd_pid"
start_agent n1 --exec oci
becomes "$job" done
becomes "$saver" done
[ "$(wc -l <"$other/saver")" -eq 2 ] || fail "what had saved and left did not go on: $("$stint" show "$saver")"
rm -f "$other/leave"

# ---- the watchdog is replaced, and supervisors know the lease ---------------------------------------------

submit --name fenced --gpus 1 --cpu 0.2 --ram 64Mi --limit 5m -- sleep 300
becomes "$job" running
fence() { pgrep -f "stint-agent fence --data $tmp/n1\$"; }
wait_for fence || fail "nobody watches the lease"
old=$(fence)
kill -9 "$old"
other() { [ -n "$(fence)" ] && [ "$(fence)" != "$old" ]; }
ran=$((ran + 1))
wait_for other || fail "the watchdog was not replaced"
wait_for test -e "$tmp/n1/run/tasks/$job.1.0/live.json"
crash_agent n1
kill -9 "$(fence)"
ended() { [ "$(group "$job.1.0")" -eq 0 ]; }
ran=$((ran + 1))
wait_for ended || wait_for ended || wait_for ended || fail "it outlives its lease, for all who should see to that are dead"
wait_for test -e "$tmp/n1/run/tasks/$job.1.0/exit.json" # written when all of it is gone
grep -q 'the lease of its node ended' "$tmp/n1/run/tasks/$job.1.0/exit.json" ||
    fail "it ended for another reason: $(cat "$tmp/n1/run/tasks/$job.1.0/exit.json")"
done_testing
