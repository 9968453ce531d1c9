#!/bin/sh
# A job has the time to save that it asked for, within the policy grace_limit; one that asked for nothing has the policy's
# grace. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
need_containers
grace=1s
policies='grace_limit: 2m'
start_native
start_agent n1 --exec oci
node_becomes n1 ready
try 0 'changed' account set acme --guarantee gpu=0

# Told to save, it takes until somebody lets it: so the test, and not the clock, says how long that is.
saver='trap "touch /data/$STINT_JOB.asked; while [ ! -e /data/$STINT_JOB.go ]; do sleep 0.1; done;
    touch /data/$STINT_JOB.saved; exit 0" TERM; touch /data/$STINT_JOB.ready; while :; do sleep 0.1; done'

# preempted NAME OPTION...: a borrower on the node, and an owner who takes it back.
preempted() {
    submit --name "$@" --gpus 8 --cpu 0.2 --ram 64Mi --limit 10m --on-preempt checkpoint -- sh -c "$saver"
    borrower=$job
    becomes "$borrower" running
    storage=$(storage_of n1 acme)
    wait_for test -e "$storage/$borrower.ready" || fail "it does not run: $("$stint" logs "$borrower" 2>&1 | tail -n 5)"
    try 0 '^j' submit --account other --name owner --gpus 8 --cpu 0.2 --ram 64Mi --limit 10m -- sleep 1
    owner=$(cat "$tmp/out")
    wait_for test -e "$storage/$borrower.asked" || fail "nobody asks it to save"
}

preempted quick
becomes "$owner" done
[ ! -e "$storage/$borrower.saved" ] || fail "it saved, and nobody let it"
try 0 'cancelled' cancel "$borrower"

preempted slow --grace 2m
try 0 'checkpointing' show "$borrower"
try 0 'Grace *2m' show "$borrower"
sleep 4 # four times what it would have without
try 0 'checkpointing' show "$borrower"
try 0 'pending' show "$owner"
touch "$storage/$borrower.go"
wait_for test -e "$storage/$borrower.saved" || fail "it was cut off while it saved"
becomes "$owner" done
try 0 'cancelled' cancel "$borrower"

try 6 'asks for 3m to save its work; the most is 2m' submit --account acme --gpus 1 --grace 3m --on-preempt checkpoint -- true

done_testing
