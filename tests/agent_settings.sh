#!/bin/sh
# --settings leave: MIG and compute mode of the GPUs are somebody else's. What suits them runs; what does not is refused
# with the reason, before anything is begun, and nothing is changed for it. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
start_native
start_agent sliced --exec sim --sim h100x2,mig --settings leave
node_becomes sliced ready

# MIG is on, and stays on. What no node can start will not get better: it fails, and says why.
submit --name whole --gpus 1 --sim-run 1s -- true
becomes "$job" failed
try 0 'MIG of GPU [01] is on and stays so (--settings leave)' show "$job"

# There is no slice, and none is made.
submit --name slice --gpus 1 --level mig --profile 3g.40gb --sim-run 1s -- true
becomes "$job" failed
try 0 'no slice 3g.40gb .*(--settings leave)' show "$job"
ran=$((ran + 1))
grep -q 'event=carved' "$tmp/sliced.log" && fail "slices were changed: $(grep event=carved "$tmp/sliced.log")"

# Other levels run where MIG is off.
kill "$(cat "$tmp/sliced.pid")" && wait "$(cat "$tmp/sliced.pid")"
start_agent plain --exec sim --sim h100x2 --settings leave
node_becomes plain ready
try 0 '' node drain sliced
submit --name whole --gpus 1 --sim-run 1s -- true
becomes "$job" done
submit --name mps --gpus 1 --level mps --share 0.5 --sim-run 1s -- true
becomes "$job" done

"$STINT_AGENT" doctor --data "$tmp/doctor" --sim h100x2,mig --settings leave >"$tmp/out" 2>&1
ran=$((ran + 2))
grep -q 'stay as they are (MIG on 2 of 2 GPUs)' "$tmp/out" || fail "doctor does not say it: $(cat "$tmp/out")"
grep -q 'a job that goes around its MPS daemon' "$tmp/out" || fail "doctor does not say what is weaker: $(cat "$tmp/out")"
if "$STINT_AGENT" --server "$server" --data "$tmp/x" --settings maybe >"$tmp/out" 2>&1; then
    fail "a setting that is none was taken"
fi
done_testing
