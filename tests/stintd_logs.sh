#!/bin/sh
# How long the output of tasks is kept over a start: with log_keep 0 for ever, else until it is too old.
# $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"

log=$tmp/data/logs/00000000000000aa/0.0/0
mkdir -p "$(dirname "$log")"
echo 'an old line' >"$log"
find "$tmp/data/logs" -depth -exec touch -d '2020-01-01' {} +

stop_stintd() {
    kill "$stintd_pid"
    wait "$stintd_pid"
    stintd_pid=
}

echo 'log_keep: 0s' >"$tmp/keep.yaml"
start_stintd --config "$tmp/keep.yaml"
ran=$((ran + 1))
[ -e "$log" ] || fail "log_keep 0 removed a log"
stop_stintd
echo 'log_keep: 1h' >"$tmp/keep.yaml"
start_stintd --config "$tmp/keep.yaml"
ran=$((ran + 1))
[ ! -e "$log" ] || fail "a log of 2020 is kept longer than an hour"
stop_stintd
done_testing
