#!/bin/sh
# A GPU fails under a job, on a node that still answers: the job goes to another node, and not before its last stay is over there,
# by evidence from inside the job, which ignores the signal. By an XID that needs a reset, and by a GPU that is lost. $1 is
# stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
need_containers
start_native
: >"$tmp/faults"
mkdir "$tmp/shared"
for a in a1 a2; do
    mkdir -p "$tmp/$a/storage"
    if ! mount --bind "$tmp/shared" "$tmp/$a/storage" 2>/dev/null; then
        echo "skipped: nothing can be mounted here"
        exit 77
    fi
    mounts="$mounts $tmp/$a/storage"
    start_agent "$a" --exec oci --sim-faults "$tmp/faults" --grace 8s
done
node_becomes a1 ready
node_becomes a2 ready
why_says() { "$stint" why "$1" | grep -q "$2"; }

# shellcheck disable=SC2016 # for the shell inside
submit --name beats --gpus 8 --cpu 0.2 --ram 64Mi --limit 10m --on-preempt requeue -- \
    sh -c 'trap "" TERM; while :; do echo $STINT_STAY $STINT_NODE $(date +%s%N) >>/data/beats; sleep 0.05; done'
notes=$tmp/shared/$(tenant_of acme)/beats
stay() { grep -q "^$1 $2 " "$notes"; }
n=1
for fault in 'xid 79' lost; do
    becomes "$job" running
    here=$(where_is "$job")
    there=$([ "$here" = a1 ] && echo a2 || echo a1)
    ran=$((ran + 1))
    wait_for stay $n "$here" || fail "$fault: stay $n is not on $here: $("$stint" show "$job")"
    echo "$here 2 $fault" >>"$tmp/faults"
    becomes "$job" stopping
    why_says "$job" 'have not yet said' || fail "$fault: it is not told why: $("$stint" why "$job")"
    # The other node is free all the while.
    n=$((n + 1))
    ran=$((ran + 1))
    wait_for stay $n "$there" || fail "$fault: it did not come back on $there: $("$stint" show "$job")"
    said "$here" "event=killed .*$job .*did not stop"
    if [ "$fault" = lost ]; then # it alone is out: what asks for a reboot takes its node
        try 0 'GPUs out .*2 failed' node show "$here"
    else
        try 0 'failed' node list
    fi
    echo "$here 2 heal" >>"$tmp/faults"
    node_becomes "$here" ready
done
try 0 '' cancel "$job"
becomes "$job" cancelled

ran=$((ran + 1))
python3 - "$notes" <<'EOF' || fail "two stays at one time"
import sys
times = {}
for row in map(str.split, open(sys.argv[1])):
    times.setdefault(int(row[0]), []).append(int(row[2]))
for n in (1, 2):
    print("stay %d: %d moments, then %.1f s of nobody" % (n, len(times[n]), (min(times[n + 1]) - max(times[n])) / 1e9))
sys.exit(sorted(times) != [1, 2, 3] or any(max(times[n]) >= min(times[n + 1]) for n in (1, 2)))
EOF
done_testing
