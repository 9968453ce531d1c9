#!/bin/sh
# The disk of an agent runs full with what a job writes: the job ends as if nothing were, its output is
# bounded and says what is missing, its exit is known, and the node goes on. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
need_containers
mkdir "$tmp/d1"
if ! mount -t tmpfs -o size=4m tmpfs "$tmp/d1" 2>/dev/null; then
    echo "skipped: tmpfs cannot be mounted here"
    exit 77
fi
mounts="$mounts $tmp/d1"
start_native
start_agent d1 --exec oci
node_becomes d1 ready

# Twice what fits, while a small one runs beside it.
submit --name quiet --gpus 1 --cpu 0.2 --ram 64Mi --limit 1m -- sh -c 'sleep 4; echo still here; exit 0'
quiet=$job
becomes "$quiet" running
submit --name flood --gpus 1 --cpu 0.5 --ram 64Mi --limit 1m -- \
    sh -c 'echo the first line; yes "a line of a flood" | head -c 8000000; echo; echo the last line; exit 6'
flood=$job
becomes "$flood" failed
try 0 'Exit status  *6' show "$flood"
writes "$flood" '^the first line$'
writes "$flood" '\[stint: [0-9]* bytes of output lost, disk full\]'
kept=$("$stint" logs "$flood" | wc -c)
ran=$((ran + 2))
[ "$kept" -lt 4100000 ] && [ "$kept" -gt 1000000 ] || fail "$kept bytes of its output are kept"
said_lost=$("$stint" logs "$flood" | sed -n 's/.*\[stint: \([0-9]*\) bytes.*/\1/p' | head -n 1)
# What is there, what is said to be missing and the line that says so are all of it.
[ $((kept + said_lost)) -gt 8000000 ] && [ $((kept + said_lost)) -lt 8000200 ] ||
    fail "$kept bytes kept and $said_lost lost are not 8000032"
becomes "$quiet" done
writes "$quiet" 'still here'
grep -q 'event=stuck' "$tmp/d1.log" && fail "the agent could not write its records: $(grep stuck "$tmp/d1.log")"
node_is d1 ready || fail "the node is not ready: $("$stint" node list)"

# Full to the last byte by somebody else: nothing is started, and it mends.
cat /dev/zero >"$tmp/d1/full" 2>/dev/null
submit --name later --gpus 1 --cpu 0.2 --ram 64Mi --limit 1m -- sh -c 'echo at last'
node_becomes d1 draining
rm "$tmp/d1/full"
node_becomes d1 ready
becomes "$job" done
writes "$job" 'at last'
done_testing
