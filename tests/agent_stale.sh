#!/bin/sh
# A stintd that was restored from an old backup speaks with an old epoch: agents do not follow it, what
# runs goes on, and the one that decides finds everything as it was. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
kind=oci
"$STINT_AGENT" doctor --data "$tmp/doctor" --sim h100x1 >/dev/null 2>&1 || kind=sim
[ $kind = oci ] || echo "no containers here: with simulated tasks"
lease=30s
start_native
start_agent n1 --exec $kind
node_becomes n1 ready
try 0 'copied' admin backup old.db
mv "$tmp/data/backups/old.db" "$tmp/old.db"

# The leader starts twice more; its epoch is two ahead of the backup's.
crash_stintd
native
crash_stintd
native
submit --name long --gpus 1 --cpu 0.2 --ram 64Mi --limit 5m --sim-run 60s -- sh -c 'echo begun; sleep 60'
long=$job
becomes "$long" running
said n1 "event=started .*$long"
epoch=$(sed -n 's/.*"epoch": *\([0-9]*\).*/\1/p' "$tmp/n1/tasks.json" | head -n 1)

# The old store comes up in its place, same address. It knows the node and no job: its list is empty.
crash_stintd
mv "$tmp/data" "$tmp/new"
mkdir -m 700 "$tmp/data"
cp "$tmp/old.db" "$tmp/data/stint.db"
cp "$tmp/new/billing.key" "$tmp/new/secrets.key" "$tmp/data/"
native
# refused N: it has not followed so many times.
refused() { [ "$(grep -c 'event=status-failed .*409\|event=stale-list' "$tmp/n1.log")" -ge "$1" ]; }
wait_for refused 3 || fail "it was not asked three times: $(tail -n 5 "$tmp/n1.log")"
grep -q "event=\(stop\|killed\|ended\) .*$long" "$tmp/n1.log" && fail "a stale list was followed: $(tail -n 3 "$tmp/n1.log")"
[ "$(sed -n 's/.*"epoch": *\([0-9]*\).*/\1/p' "$tmp/n1/tasks.json" | head -n 1)" = "$epoch" ] ||
    fail "the epoch it heard of has changed"
# What it would like to start does not start, even if it gives it the id of what runs.
STINT_TOKEN=
export STINT_URL="unix:$tmp/data/stintd.sock"
submit --name usurper --gpus 1 --cpu 0.2 --ram 64Mi --limit 1m --sim-run 1s -- true
times=$(grep -c 'event=status-failed .*409\|event=stale-list' "$tmp/n1.log")
wait_for refused $((times + 2)) || fail "it is not asked any more: $(tail -n 5 "$tmp/n1.log")"
[ "$(grep -c 'event=started' "$tmp/n1.log")" -eq 1 ] || fail "a stale order was followed"

# The one that decides is back.
crash_stintd
rm -rf "$tmp/data"
mv "$tmp/new" "$tmp/data"
native
STINT_TOKEN=$(cat "$tmp/data/owner.token")
said n1 'event=back'
node_becomes n1 ready
is "$long" running || fail "it is $(state_of "$long")"
[ "$(grep -c "event=started .*$long" "$tmp/n1.log")" -eq 1 ] || fail "it was started again"
try 0 'cancelled' cancel "$long"
said n1 "event=ended .*$long"
done_testing
