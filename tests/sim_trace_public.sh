#!/bin/sh
# Public traces, where they are at hand (STINT_TRACES, or shared/traces beside the sources): the
# plain references of `stint sim trace` must come out as published. Skipped where they are absent.
set -u
stint=$1
traces=${STINT_TRACES:-${STINT_SOURCE:-.}/../shared/traces}
failed=0

if [ ! -r "$traces/philly/jobs.csv" ] || [ ! -r "$traces/muri/cluster_trace.csv" ]; then
    echo "no public traces at $traces: skipped"
    exit 77
fi

fail() {
    echo "FAILED: $*"
    failed=$((failed + 1))
}

# Only the references are wanted, so the run itself is stopped at once.
out=$("$stint" sim trace --format philly --jobs "$traces/philly/jobs.csv" \
    --nodes "$traces/philly/vc_nodes.csv" --divide 4 --from 2017-10-01 --to 2017-12-01 \
    --compare-private --until 1s) || fail "philly"
while read -r name completion waiting allocated; do
    echo "$out" | grep -Eq "^$name +$completion +$waiting +$allocated +0 " ||
        fail "$name is not $completion $waiting $allocated: $out"
done <<END
private_fifo 193055 181574 56.6
private_backfill 65218 53737 58.4
shared_fifo 16101 4620 65.0
shared_backfill 12350 869 65.0
END
echo "$out" | grep -q '^philly: 68503 jobs of 11 accounts on 88 nodes with 704 GPUs' || fail "$out"

# Sharing without harm: nobody later than on the nodes of its own account, where preemption is free.
out=$("$stint" sim trace --format philly --jobs "$traces/philly/jobs.csv" \
    --nodes "$traces/philly/vc_nodes.csv" --divide 4 --from 2017-10-01 --to 2017-12-01 \
    --declare none --compare-private --policy \
    as_if_alone=true,min_run=0s,cooldown=0s,notice=0s,reservations=0,reclaim_bound=1000) ||
    fail "philly, shared"
echo "$out" | grep -Eq '^private_backfill +65218 .* 0 +0\.00 +0$' || fail "somebody is late: $out"
echo "$out" | grep -Eq '^this run +1[0-2][0-9]{3} ' || fail "the pool is slow: $out"

out=$("$stint" sim trace --format muri --jobs "$traces/muri/cluster_trace.csv" \
    --nodes "$traces/muri/n8g8.csv" --declare exact --scale-time 1.0533) || fail "muri"
echo "$out" | grep -q '^400 done, 0 timed out' || fail "$out"

"$stint" sim trace --format openb --jobs "$traces/openb/openb_pod_list_multigpu20.csv" \
    --nodes "$traces/openb/openb_node_list_gpu_node.csv" 2>/dev/null && fail "a list without times"
out=$("$stint" sim trace --format openb --jobs "$traces/openb/openb_pod_list_default.csv" \
    --nodes "$traces/openb/openb_node_list_gpu_node.csv") || fail "openb"
echo "$out" | grep -q '^7255 done, 0 timed out' || fail "$out"

echo "$failed failed"
[ $failed -eq 0 ]
