#!/bin/sh
# A service and a neighbour that slows it, in real containers on a simulated GPU with the model of tests/guard for a driver. The
# times of the service are pretended, so that a busy machine does not slow it. The agent finds who it is, protects the service, and
# takes that back when the neighbour has gone. A job that has used its GPU time is ended. Skipped where containers cannot be run.
# $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
need_containers
mounts="$mounts $tmp/m1/guard"

lease=20s
start_native
try 0 'made' account create vision --parent acme
start_agent m1 --exec oci --sim h100x1 --metrics 127.0.0.1:0 --guard "$STINT_GUARD"
node_becomes m1 ready

try 0 '^j' submit --account vision --limit 1m -- true
becomes "$(cat "$tmp/out")" done
there=$(storage_of m1 vision)
mkdir -p "$there/lib"
cp "$STINT_GUARD_WORK" "$there/work"
cp "$STINT_GUARD_PAGES" "$there/pages"
cp "$STINT_GUARD_DRIVER" "$there/lib/libcuda.so.1"
"$STINT_GUARD_PAGES" "$there" device 80000 100 528
chmod 755 "$there/lib" "$there/work" "$there/pages"
chmod 666 "$there/model"
run='export LD_LIBRARY_PATH=/data/lib FAKE_DEVICE=/data/model'
shared() { # shared WORDS SCRIPT: sets job
    # shellcheck disable=SC2086
    try 0 '^j' submit --account vision --level time --share 0.3 --vram 2Gi --limit 10m $1 -- sh -c "$run; $2"
    job=$(cat "$tmp/out")
}
said() { grep -q "^event=neighbour .*what=$1 .*job=$2 suspect=$3 action=$4 " "$tmp/m1.log"; }
port=$(sed -n 's/^event=metrics .*port=//p' "$tmp/m1.log" | tail -n 1)
metric() { # metric NAME JOB: its value
    python3 - "$port" "$1" "$2" <<'END'
import sys, urllib.request
text = urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/metrics").read().decode()
rows = [r for r in text.splitlines() if r.startswith(sys.argv[2] + "{") and f'job="{sys.argv[3]}"' in r]
print(rows[0].split()[-1] if rows else "none")
END
}

"$STINT_AGENT" --server http://127.0.0.1:1 --neighbour slow=9 >"$tmp/refused" 2>&1 && fail "thresholds that cannot be are taken"
grep -q 'slow must be at most of, which is 5' "$tmp/refused" || fail "it does not say why: $(cat "$tmp/refused")"
ran=$((ran + 1))

# ---- a service that marks its requests, alone -----------------------------------------------------

shared '' '/data/pages /data pretend 500'
victim=$job
known() { [ "$(metric stint_neighbour_p99_ratio "$victim")" != none ]; }
ran=$((ran + 2))
wait_for known || fail "its usual p99 is not learned"
[ "$(metric stint_guard_request_seconds_count "$victim")" != none ] || fail "its requests are not in the metrics"

# ---- a neighbour slows it, is found, and the service is protected -----------------------------------

shared '' '/data/work hog 500 fma =8000000 2'
hog=$job
longer() { for _ in 1 2 3 4; do wait_for "$@" && return 0; done; return 1; }
confirmed() { said confirmed "$victim" "$hog" -; }
ran=$((ran + 3))
longer confirmed || fail "it is not found: $(grep '^event=neighbour' "$tmp/m1.log")"
verified() { said verified "$victim" "$hog" protect; }
longer verified || fail "nothing helped: $(grep '^event=neighbour' "$tmp/m1.log")"
[ "$(metric stint_neighbour_protected "$victim")" = 1 ] || fail "it is not protected"
shown() { "$stint" neighbours ${3:-} >"$tmp/shown" && grep -q "^$1 .* $2 " "$tmp/shown"; }
ran=$((ran + 2))
wait_for shown "$victim" 'slowed *held' || fail "stintd does not say that it is protected: $(cat "$tmp/shown")"
wait_for shown "$hog" 'slows *held' || fail "stintd does not say what it does: $(cat "$tmp/shown")"
try 0 'cancelled' cancel "$hog"
reverted() { said reverted "$victim" '.*' protect && [ "$(metric stint_neighbour_protected "$victim")" = 0 ]; }
ran=$((ran + 1))
wait_for reverted || fail "it is protected from nobody"
ran=$((ran + 1))
wait_for shown "$victim" 'slowed *over' --all || fail "stintd does not say that it is over: $(cat "$tmp/shown")"

# ---- GPU time has an end, and a share may be hard ---------------------------------------------------

shared '--gpu-time 1s' '/data/work hog 300 fma =40000'
becomes "$job" failed
try 0 'gpu_time allows 1 s' show "$job"
shared '--hard-share' '/data/work hog 300 fma =40000'
held() { v=$(metric stint_guard_capped_ns_total "$job") && [ "$v" != none ] && [ "$v" != 0 ]; }
ran=$((ran + 1))
wait_for held || fail "a hard share is none"
try 2 'gpu_time is for shared GPUs' submit --account vision --gpu-time 1h -- true
try 2 'hard_share is for shared GPUs' submit --account vision --hard-share -- true
done_testing
