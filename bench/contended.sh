#!/bin/sh
# A day with more demand than capacity: waits, preemptions, decisions a second and CPU seconds at 105,
# 130 and 200 per cent of the fleet, and how the time grows with the fleet. $1 is `stint`. BENCH_ALL=1
# adds 100,000 GPUs and the whole day at 200 per cent.
set -eu
stint=$1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# day GPUS LOAD HOURS: prints a row; the CPU seconds of the core go to $tmp/took.
day() {
    "$stint" sim gen --gpus "$1" --teams $(($1 * 6 / 1000)) --users $(($1 / 10)) --jobs $(($1 * 6 / 10)) \
        --days 1 --load "$2" -d "$tmp/day" >/dev/null
    "$stint" sim trace --world "$tmp/day/world.yaml" --jobs "$tmp/day/jobs.csv" --until "$3h" -o json \
        >"$tmp/out"
    python3 - "$tmp/out" "$tmp/took" "$@" <<'END'
import json, sys
out, took, gpus, load, hours = sys.argv[1:]
r = json.load(open(out))
wait = r["queueing_s"]
print(f"  {int(gpus):7,} GPUs, load {load:>3}, {hours:>2} h: {r['core_seconds']:6.1f} s, "
      f"{r['decisions_per_s']:7,.0f} decisions/s ({r['slowest_hour_decisions_per_s']:,.0f} in the slowest hour), waits p99 {wait['p99']:,.0f} s max {wait['max']:,.0f} s, "
      f"{r['preemptions']:,} preemptions, {100 * r['allocation_arriving']:.1f} % allocated, "
      f"{100 * r['idle_beside_queue']['all']:.1f} % idle beside a queue")
print(r["core_seconds"], file=open(took, "w"))
END
}

echo 'A contended day of 50,000 GPUs (to reach: 10 s at load 130, 20 s at load 200)'
day 50000 105 24
day 50000 130 24
day 50000 200 $([ "${BENCH_ALL:-}" = 1 ] && echo 24 || echo 8)

echo 'The same by size, load 130 (to reach: 2.5 times for twice the fleet)'
before=
for gpus in 6250 12500 25000 50000 $([ "${BENCH_ALL:-}" != 1 ] || echo 100000); do
    day "$gpus" 130 24
    now=$(cat "$tmp/took")
    [ -z "$before" ] || python3 -c "print(f'           {$now / max($before, 0.001):.1f} times the row above')"
    before=$now
done
