#!/bin/sh
# An agent that is started on a full disk comes up: it adopts what runs, keeps its lease, ends what is cancelled,
# says why the node takes nothing new, and takes work again when there is room. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
need_containers
mkdir "$tmp/f1"
truncate -s 64M "$tmp/f1.disk"
if ! mkfs.ext4 -q "$tmp/f1.disk" 2>/dev/null || ! mount -o loop "$tmp/f1.disk" "$tmp/f1" 2>/dev/null; then
    echo "skipped: no disk of its own can be mounted here"
    exit 77
fi
mounts="$mounts $tmp/f1"
lease=10s
start_native
start_agent f1 --exec oci
node_becomes f1 ready
long() {
    submit --name "$1" --gpus 1 --cpu 0.2 --ram 64Mi --limit 5m -- sh -c 'echo up; sleep 280'
    becomes "$job" running
}
long kept
kept=$job
long cancelled
cancelled=$job

# To the last byte, and there is no reserve to be given up.
crash_agent f1
rm "$tmp/f1/reserve"
fill() { # the disk counts anew what was promised when it is brought there
    disk=$tmp/$1
    dd if=/dev/zero of="$disk/filler" bs=1M 2>/dev/null
    sync -f "$disk"
    set -- 64k
    until ! echo x 2>/dev/null >"$disk/one-more"; do
        rm "$disk/one-more"
        dd if=/dev/zero of="$disk/filler" bs="$1" oflag=append conv=notrunc 2>/dev/null
        sync -f "$disk"
        set -- 1k
    done
    rm -f "$disk/one-more"
}
fill f1
started=$(($(wc -l <"$tmp/f1.log") + 1))
start_agent f1 --exec oci
now_said() { tail -n "+$started" "$tmp/f1.log" | grep -q -e "$1"; }
ran=$((ran + 3))
wait_for now_said 'event=agent ' || fail "the agent does not come up: $(tail -n 3 "$tmp/f1.log")"
wait_for now_said 'event=found .*tasks=2' || fail "it has not found its tasks: $(tail -n 3 "$tmp/f1.log")"
wait_for now_said 'event=disk-full' || fail "it does not see the full disk: $(tail -n 3 "$tmp/f1.log")"
node_becomes f1 draining
on_hold() { "$stint" node show f1 | grep -q -e 'its data disk is full' -e 'No space left on device'; }
ran=$((ran + 1))
wait_for on_hold || fail "the node does not say why: $("$stint" node show f1)"

# Beyond a lease: it is renewed where nothing can be written anew.
sleep 12
ran=$((ran + 2))
is "$kept" running || fail "a task was ended for the full disk: $("$stint" show "$kept")"
kill -0 "$(cat "$tmp/f1.pid")" || fail "the agent has ended: $(tail -n 3 "$tmp/f1.log")"
try 0 'cancelled' cancel "$cancelled"
becomes "$cancelled" cancelled
submit --name later --gpus 1 --cpu 0.2 --ram 64Mi --limit 1m -- sh -c 'echo at last'
later=$job

rm "$tmp/f1/filler"
node_becomes f1 ready
becomes "$later" done
writes "$later" 'at last'
is "$kept" running || fail "a task did not survive: $("$stint" show "$kept")"
try 0 'cancelled' cancel "$kept"
becomes "$kept" cancelled

# A new node without room for its key waits, and joins when there is. It is on hold while there is none for tasks.
crash_agent f1
mkdir "$tmp/f2"
truncate -s 64M "$tmp/f2.disk"
mkfs.ext4 -q "$tmp/f2.disk" && mount -o loop "$tmp/f2.disk" "$tmp/f2" || fail "no second disk"
mounts="$mounts $tmp/f2"
fallocate -l 600K "$tmp/f2/small"
fill f2
start_agent f2 --exec oci
ran=$((ran + 2))
wait_for grep -q 'event=disk-full .*joins when there is' "$tmp/f2.log" || fail "a new node does not wait: $(cat "$tmp/f2.log")"
kill -0 "$(cat "$tmp/f2.pid")" || fail "a new node has ended: $(cat "$tmp/f2.log")"
try 4 'there is no node' node show f2
rm "$tmp/f2/small"
node_becomes f2 draining
try 0 'its data disk is full' node show f2
rm "$tmp/f2/filler"
node_becomes f2 ready
submit --name first --gpus 1 --cpu 0.2 --ram 64Mi --limit 1m -- sh -c 'echo here'
becomes "$job" done
done_testing
