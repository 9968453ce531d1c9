#!/bin/sh
# A GPU driver that hangs does not silence its node: it says which call hangs, statuses and orders go on, what runs
# without GPUs begins and ends as ever, and all is well when the driver is back. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
need_containers
lease=6s
start_native
mkdir "$tmp/lib"
ln -s "$STINT_FAKE_NVML" "$tmp/lib/libnvidia-ml.so.1"
LD_LIBRARY_PATH="$tmp/lib" FAKE_NVML_HANG="$tmp/hang" "$STINT_AGENT" --server "$server" --join-token-file "$tmp/join" \
    --data "$tmp/n1" --name n1 --address 127.0.0.1 --grace 2s --exec oci --scrub never >>"$tmp/n1.log" 2>&1 &
echo $! >"$tmp/n1.pid"
agents=n1
node_becomes n1 ready
[ "$("$stint" node show n1 -o json | python3 -c 'import json, sys; print(json.load(sys.stdin)["gpus"])')" = 2 ] ||
    fail "it is no node with the GPUs of the driver: $("$stint" node show n1)"

submit --name before --gpus 0 --cpu 0.2 --ram 64Mi --limit 5m -- sleep 300
before=$job
becomes "$before" running

# It hangs where it is asked every second.
echo nvmlDeviceGetTemperature >"$tmp/hang"
said n1 'event=driver-hangs .*call="sample of GPU 0"'
held() { "$stint" node show n1 | grep -q 'the GPU driver does not answer: sample of GPU 0'; }
ran=$((ran + 1))
wait_for held || fail "the node does not say what hangs: $("$stint" node show n1)"
# Beyond a lease: the node is there, and does as it is told.
sleep 8
is "$before" running || fail "it did not outlast the driver's silence: $("$stint" show "$before")"
try 0 '' cancel "$before"
becomes "$before" cancelled
gone() { [ ! -e "$tmp/n1/run/tasks/$before.1.0" ]; }
ran=$((ran + 1))
wait_for gone || fail "its end was not seen to"

rm "$tmp/hang"
said n1 'event=driver-back'
node_becomes n1 ready
submit --name after --gpus 0 --cpu 0.2 --ram 64Mi --limit 5m -- true
becomes "$job" done
done_testing
