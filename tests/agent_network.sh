#!/bin/sh
# A network that is cut and heals: stintd and two agents in network namespaces of their own, real
# containers. A cut shorter than the lease changes nothing. A longer one ends the task where it was,
# before it starts elsewhere: its two nodes share a folder in which it notes when it was alive. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
. "$(dirname "$0")/lib/nets.sh"
need_containers
start_nets
lease=15s
start_native "insecure: true"
start_agents h100x8 h100x8

# At each moment it is alive, it says where. One folder for both nodes.
# shellcheck disable=SC2016 # for the shell inside
submit --name beats --gpus 5 --cpu 0.2 --ram 64Mi --limit 10m -- \
    sh -c 'while :; do echo $STINT_NODE $STINT_STAY $(date +%s%N) >>/data/beats; sleep 0.05; done'
beats=$job
shared=$tmp/shared/$(tenant_of acme)
becomes "$beats" running
where=$(where_is "$beats")
other=$([ "$where" = a1 ] && echo a2 || echo a1)

# ---- shorter than the lease -------------------------------------------------------------------

submit --name brief --gpus 3 --cpu 0.2 --ram 64Mi --limit 1m -- \
    sh -c 'while [ ! -e /data/end ]; do sleep 0.1; done; exit 4'
becomes "$job" running
at=$(where_is "$job")
wait_for grep -q "event=started .*$job" "$tmp/$at.log"
cut a1
cut a2
touch "$shared/end"
said "$at" "event=ended .*$job"
said "$at" 'event=status-failed' # it has tried to say so
is "$job" running || fail "it is $(state_of "$job") while nobody can know"
now=$(date -u +%Y-%m-%dT%H:%M:%S.%3NZ)
heal a1
heal a2
wait_for is "$job" failed
becomes "$job" failed
try 0 'Exit status  *4' show "$job"
try 0 "$job" show "$job" -o json
json "d['ended'] < '$now'"
is "$beats" running || fail "the other job is $(state_of "$beats")"
[ "$(awk '{ print $1, $2 }' "$shared/beats" | sort -u)" = "$where 1" ] || fail "it did not stay where it was"
grep -h 'event=killed' "$tmp/a1.log" "$tmp/a2.log" && fail "a short cut has killed something"
grep -h 'event=fence' "$tmp/a1.log" "$tmp/a2.log" && fail "a short cut has fenced a node"
node_is a1 ready && node_is a2 ready || fail "a short cut has failed a node"

# ---- longer than the lease --------------------------------------------------------------------

cut "$where"
moved() { grep -q "^$other 2 " "$shared/beats"; }
ran=$((ran + 3))
wait_for moved || wait_for moved || wait_for moved || fail "it did not move to $other: $("$stint" show "$beats")"
grep -q "event=killed .*$beats.*lease" "$tmp/$where.log" || fail "$where did not kill it: $(tail "$tmp/$where.log")"
node_is "$where" failed || fail "$where is not failed"
heal "$where"
said "$where" 'event=fence-lifted' || said "$where" 'event=fence-lifted'
node_becomes "$where" ready
before=$(grep -c "^$other 2 " "$shared/beats")
beats_on() { [ "$(grep -c "^$other 2 " "$shared/beats")" -gt $((before + 10)) ]; }
wait_for beats_on || fail "it does not go on beside the node that is back"
is "$beats" running || fail "it is $(state_of "$beats")"
[ "$(where_is "$beats")" = "$other" ] || fail "it is on $(where_is "$beats")"
try 0 'cancelled' cancel "$beats"
said "$other" "event=\(ended\|killed\) .*$beats"

# Every moment on one node lies before every moment on the other.
ran=$((ran + 1))
python3 - "$shared/beats" "$where" "$other" <<'EOF' || fail "it ran twice at one time"
import sys
rows = [line.split() for line in open(sys.argv[1])]
times = {n: [int(r[2]) for r in rows if r[0] == n] for n in sys.argv[2:]}
a, b = times[sys.argv[2]], times[sys.argv[3]]
print("%d moments on %s, %.1f s of nobody, %d moments on %s"
      % (len(a), sys.argv[2], (min(b) - max(a)) / 1e9, len(b), sys.argv[3]))
sys.exit(not (len(a) > 20 and len(b) > 5 and max(a) < min(b)))
EOF
done_testing
