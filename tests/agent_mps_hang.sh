#!/bin/sh
# The vendor's MPS program hangs: what needs it says so, and the node goes on with everything else meanwhile. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
need_containers
control=$tmp/control
cp "$(dirname "$0")/lib/fake_mps_control.py" "$control"
chmod 755 "$control"
trap 'kill_daemons; finish_agents' EXIT
kill_daemons() { # only those of this test: they have its folder in their environment
    for p in $(grep -ls "STINT_MPS_DIR=$tmp/" /proc/[0-9]*/environ | cut -d/ -f3); do
        kill -9 "$p" 2>/dev/null
    done
    umount -l "$tmp"/h1/mps/*/shm 2>/dev/null
}
lease=6s
start_native
start_agent h1 --exec oci --sim h100x2 --mps-control "$control"
node_becomes h1 ready
shared() { submit --level mps --share 0.5 --vram 8Gi --limit 5m --env FAKE_MPS_CLIENT=1 -- sh -c "$1"; }
shared 'trap "" TERM; echo up; sleep 280'
first=$job
becomes "$first" running
writes "$first" '^up$'

# While a daemon is being started on the other GPU, and hangs, other tasks begin and end. A machine that is slower than the
# time the daemon is given has more than one try.
echo hang >"$control.mood"
begun_meanwhile() {
    awk '/event=mps-starting/ { on = 1; seen = 0 }
         /event=started/ && on { seen = 1 }
         /event=mps-stuck/ { if (on && seen) found = 1; on = 0 }
         END { exit !found }' "$tmp/h1.log"
}
try 0 'made' account create rival
tries=0
while [ $tries -lt 5 ] && ! begun_meanwhile; do
    tries=$((tries + 1))
    n=$(grep -c 'event=mps-starting' "$tmp/h1.log")
    try 0 '^j' submit --account rival --level mps --share 0.5 --vram 8Gi --limit 5m -- true
    hung=$(cat "$tmp/out")
    more() { [ "$(grep -c 'event=mps-starting' "$tmp/h1.log")" -gt "$n" ]; }
    wait_for more || fail "no daemon is started for it: $(tail -n 3 "$tmp/h1.log")"
    submit --name beside --gpus 0 --cpu 0.1 --ram 64Mi --limit 1m -- true
    becomes "$job" done
    wait_for grep -q 'event=mps-stuck' "$tmp/h1.log" ||
        fail "nobody says that the daemon hangs: $(tail -n 3 "$tmp/h1.log")"
    "$stint" cancel "$hung" >/dev/null 2>&1
done
ran=$((ran + 2))
begun_meanwhile || fail "nothing begins while a daemon hangs: $(grep -e mps- -e started "$tmp/h1.log")"
grep -q 'reason=".*MPS daemon did not answer' "$tmp/h1.log" || fail "the reason is not said: $(tail -n 9 "$tmp/h1.log")"

# One that shares a daemon which hangs is killed all the same, and its GPU is free again.
is "$first" running || fail "a neighbour of the hanging one is $(state_of "$first")"
try 0 'cancelled' cancel "$first"
becomes "$first" cancelled
said h1 "event=part-failed node=h1 job=$first"
rm "$control.mood"
no_daemons() { [ "$(find "$tmp/h1/mps" -mindepth 1 -maxdepth 1 2>/dev/null | wc -l)" -eq 0 ]; }
ran=$((ran + 1))
wait_for no_daemons || fail "daemons are left: $(ls "$tmp/h1/mps")"
node_becomes h1 ready
shared 'echo again'
becomes "$job" done
submit --gpus 2 --limit 1m -- true
becomes "$job" done
done_testing
