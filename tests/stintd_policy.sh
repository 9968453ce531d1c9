#!/bin/sh
# A policy that changes between a crash and the next start: what was decided stands, the new policy
# counts from the start on, and a check of the store needs no configuration. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
# The sample's decisions differ between these two: the first lets borrowers be displaced at once.
echo 'policy: {min_run: 0s, notice: 0s, grace: 0s, reservations: 0}' >"$tmp/first.yaml"
echo 'policy: {min_run: 30d, notice: 1h, grace: 1h, reservations: 64}' >"$tmp/second.yaml"

start_stintd --config "$tmp/first.yaml"
STINT_TOKEN=$(cat "$tmp/data/owner.token")
export STINT_TOKEN
# Borrowers fill the fleet, then an owner comes back inside its guarantee.
for _ in 1 2 3 4 5 6 7 8 9 10; do
    try 0 '^j' submit --account vision --gpus 8 --limit 4h -- train
done
for _ in 1 2 3 4; do
    try 0 '^j' submit --account genomics --gpus 8 --limit 1h -- train
done
"$stint" ps -a -o csv | sort >"$tmp/before"
grep -q pending "$tmp/before" || fail "nothing waits, so nothing was decided"
kill -9 "$stintd_pid"
wait "$stintd_pid" 2>/dev/null
stintd_pid=

try_check() {
    ran=$((ran + 1))
    "$STINTD" --check-store --data "$tmp/data" >"$tmp/said" 2>&1 || fail "a healthy store has findings: $(cat "$tmp/said")"
}
try_check
start_stintd --config "$tmp/second.yaml"
ran=$((ran + 1))
"$stint" ps -a -o csv | cut -d, -f1 | sort >"$tmp/after"
cut -d, -f1 "$tmp/before" | sort | cmp -s - "$tmp/after" || fail "jobs are not what they were"
try 0 'policy.change' audit
done_testing
