#!/bin/sh
# tests/gpu/h200.sh PROBE LOAD OUT [look]: the nvml driver on real hardware, as root, on one GPU that
# nobody else uses. PROBE is stint-gpu-probe, LOAD is load.cu built with nvcc, OUT an empty folder.
# Prints what it did; the raw answers stay in OUT. Leaves MIG off. With `look` it changes no setting
# of the GPU. tests/gpu/run calls it for its first part.
set -u
probe=$1 load=$2 out=$3 only=${4:-}
here=$(dirname "$0")
say() { echo; echo "== $*"; }
run() { timeout 60 "$probe" "$@" 2>&1; }
smi() { nvidia-smi -q -x >"$1"; }

say "machine"
date -u +%F; uname -r
nvidia-smi --query-gpu=name,driver_version,vbios_version,mig.mode.current --format=csv,noheader

say "idle: inventory and telemetry against nvidia-smi"
run show >"$out/show.json"; cat "$out/show.json"
run sample 2 1000 >"$out/idle.json"; cat "$out/idle.json"
smi "$out/idle.xml"
python3 "$here/compare.py" "$out/show.json" "$out/idle.json" "$out/idle.xml"

for mode in copy math; do
    say "under load: $mode, 20000 MiB"
    timeout 60 "$load" $mode 9 20000 >"$out/pid" &
    sleep 3
    run sample 3 1000 >"$out/$mode.json"; tail -1 "$out/$mode.json"
    smi "$out/$mode.xml"
    echo "pid of the load: $(cat "$out/pid")"
    python3 "$here/compare.py" "$out/show.json" "$out/$mode.json" "$out/$mode.xml"
    [ $mode$only = copy ] && { echo "MIG on while a process runs:"; run mig on; }
    wait
done
[ -n "$only" ] || run mig off

say "what a sample costs"
run cost 20

say "events: an illegal access while waiting"
run wait 7000 & waiter=$!
sleep 2; timeout 30 "$load" fault 1 64; wait $waiter

[ -z "$only" ] || exit 0

say "compute mode"
run mode 3; nvidia-smi --query-gpu=compute_mode --format=csv,noheader
run mode 0; nvidia-smi --query-gpu=compute_mode --format=csv,noheader

say "MIG: each profile twice, layouts"
run exercise

say "MIG: a job in a 3g, one in a 1g, GPM of each instance"
run mig on
run carve 3g@4,1g@0 | tee "$out/carve.json"
nvidia-smi -L | sed 's/UUID: [^)]*/UUID: .../'
ls -l /dev/nvidia-caps /proc/driver/nvidia-caps 2>&1 | head -20
grep -E "gpu0/gi(1|2|7|9|1[0-3])/" /proc/driver/nvidia-caps/mig-minors | head -12
uuid() { python3 -c "
import json, sys
for line in open('$out/carve.json'):
    for i in json.loads(line).get('instances', []):
        if i['profile'] == $1: print(i['uuid'])"; }
big=$(uuid 3) small=$(uuid 0)
CUDA_VISIBLE_DEVICES=$big timeout 60 "$load" copy 9 20000 >"$out/pid" &
CUDA_VISIBLE_DEVICES=$small timeout 60 "$load" math 9 4000 >"$out/pid2" &
sleep 3
run sample 3 1000 >"$out/mig.json"; tail -1 "$out/mig.json"
echo "pids of the loads: $(cat "$out/pid" "$out/pid2" | tr '\n' ' ')"
echo "removing while they run:"
run carve ""
wait
echo "and after:"
run carve ""
run mig off
nvidia-smi --query-gpu=mig.mode.current --format=csv,noheader
exit 0
