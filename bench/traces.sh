#!/bin/sh
# Traces through the scheduler, each figure beside the published one: mean completion on Muri (E2),
# sharing without harm on Philly (E3), and a simulated day of a large fleet. $1 is `stint`.
# BENCH_ALL=1 adds what takes minutes: Philly at other sizes and costs, and ten times the fleet.
set -eu
stint=$1
traces=${STINT_TRACES:-$STINT_SOURCE/../shared/traces}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# figure NAME KEY...: a number of the JSON report in $tmp/out.
figure() {
    python3 - "$tmp/out" "$@" <<'END'
import json, sys
value = json.load(open(sys.argv[1]))
for key in sys.argv[2:]:
    value = value[int(key)] if isinstance(value, list) else value[key]
print(f"{value:,.0f}" if isinstance(value, (int, float)) else value)
END
}

muri() { # what anchor policy declare [more]
    what=$1 anchor=$2 policy=$3 declare=$4
    shift 4
    "$stint" sim trace --format muri --jobs "$traces/muri/cluster_trace.csv" \
        --nodes "$traces/muri/n8g8.csv" --scale-time 1.0533 --declare "$declare" \
        --policy "$policy" -o json "$@" >"$tmp/out"
    printf '%-58s %9s s   (%s)\n' "$what" "$(figure completion_s mean)" "$anchor"
}

if [ -d "$traces/muri" ]; then
    echo 'E2, Muri: 400 jobs on 8 x 8 GPUs, mean completion'
    free='notice=0,grace=1s,min_run=0,cooldown=0,reclaim_bound=100'
    muri '  durations declared, order shortest, swaps are free' 'SRSF 238,612' \
        "order=shortest,swap=true,$free" exact
    muri '  the same, 60 s to come back' 'SRSF 238,612' "order=shortest,swap=true,$free" 1.5 \
        --restore-cost 60s
    muri '  nothing declared, order attained, swaps are free' 'Tiresias 336,533' \
        "order=attained,swap=true,$free" none
    muri '  the same, 60 s to come back' 'Tiresias 336,533' "order=attained,swap=true,$free" none \
        --restore-cost 60s
else
    echo "E2 skipped: no $traces/muri"
fi

philly() { # divide cost
    "$stint" sim trace --format philly --nodes "$traces/philly/vc_nodes.csv" --divide "$1" \
        --from 2017-10-01 --to 2017-12-01 --declare none --restore-cost "$2" --compare-private \
        --policy as_if_alone=true,rebalance=true,min_run=0s,cooldown=0s,notice=0s,reservations=0,reclaim_bound=1000 \
        "$traces/philly/jobs.csv" >"$tmp/text"
    printf '  nodes / %s, %s to come back\n' "$1" "$2"
    grep -E '^completion|^preemptions|^COMPARED|^private' "$tmp/text" | sed 's/^/    /'
}

if [ -d "$traces/philly" ]; then
    echo 'E3, Philly: virtual clusters share one pool (non-preemptive, shared: 12,350 s and 5.7 % later)'
    philly 4 0s
    if [ "${BENCH_ALL:-}" = 1 ]; then
        philly 4 60s
        philly 3 0s
        philly 3 60s
        philly 6 0s
        philly 6 60s
    fi
else
    echo "E3 skipped: no $traces/philly"
fi

day() { # gpus teams users jobs
    "$stint" sim gen --gpus "$1" --teams "$2" --users "$3" --jobs "$4" --days 1 --seed 1 \
        -d "$tmp/day" >/dev/null
    printf '  %s GPUs, %s jobs: ' "$1" "$4"
    "$stint" sim trace --format csv --world "$tmp/day/world.yaml" --jobs "$tmp/day/jobs.csv" >"$tmp/text"
    grep '^decisions' "$tmp/text" | tr -s ' '
}

echo 'A simulated day (to reach: 5 s and 300 MB at 50,000 GPUs)'
day 50000 300 2000 30000
[ "${BENCH_ALL:-}" != 1 ] || day 500000 400 20000 300000
