#!/bin/sh
# The process that watches a node's lease does not outlive what it watches. $1 is stint.
set -u
agent=${STINT_AGENT:-}
[ -n "$agent" ] || { echo "stint-agent is not built here"; exit 77; }
tmp=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null; rm -rf "$tmp"' EXIT
mkdir -p "$tmp/run"

"$agent" fence --data "$tmp" &
pid=$!
tries=100
until [ -e "$tmp/fence.lock" ]; do
    tries=$((tries - 1))
    [ $tries -gt 0 ] || { echo "FAILED: it does not start"; exit 1; }
    sleep 0.1
done
kill -0 "$pid" || { echo "FAILED: it ended with nothing said"; exit 1; }
# What an agent leaves that ends without tasks.
: >"$tmp/fence.rest"
tries=200
while kill -0 "$pid" 2>/dev/null && [ $tries -gt 0 ]; do
    tries=$((tries - 1))
    sleep 0.1
done
[ $tries -gt 0 ] || { echo "FAILED: it stays behind"; exit 1; }
wait "$pid"
[ $? -eq 0 ] || { echo "FAILED: its status"; exit 1; }
pid=
echo "the watchdog of the lease ends with its agent"
