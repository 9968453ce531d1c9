#!/bin/sh
# Jobs that wait for others, holds, throttles and retries from the command line, and what is said to mistakes. $1 is the
# program.
set -u
. "$(dirname "$0")/lib/stintd.sh"
start_stintd
as root

try 0 'made' account create flow
try 0 'the secret is in' token create --user cora --role member --account flow --save "$tmp/cora"
try 0 'the secret is in' token create --user boss --role admin --account flow --save "$tmp/boss"
cora=$(cat "$tmp/cora") boss=$(cat "$tmp/boss")
export STINT_TOKEN=$cora

job() { "$stint" submit --gpus 1 --limit 1h "$@" -- true 2>/dev/null | head -n 1; }

# A pipeline, and what is waited for in vain.
first=$(job --name first --sim-run 20m)
then=$(job --name then --after-ok "$first" --sim-run 10ms)
mend=$(job --name mend --after-fail "$first" --sim-run 10ms)
try 0 'it waits for first to be done' why "$then"
try 0 'it waits for first to be done, and for 1 more' why "$(job --name both --after-ok "$first,$mend")"
try 0 'is cancelled' cancel "$first"
try 0 'is done' wait --timeout 1m "$mend"
try 0 "Reason  *$first did not end as this job had to wait for it to" show "$then"
try 5 'has ended (cancelled), so a job that waits for it to be done can never start' \
    submit --after-ok "$first" --gpus 1 --limit 1h -- true
try 4 'there is no job "jnothing"' submit --after jnothing --gpus 1 --limit 1h -- true
try 2 'option --each: say for which arrays' submit --array 3 --each --gpus 1 --limit 1h -- true
try 2 "none of exit or timeout" submit --retries 2 --retry-on never --gpus 1 --limit 1h -- true
try 2 'option --array' submit --array '10%none' --gpus 1 --limit 1h -- true

# Holds, by whom, and who releases them.
held=$(job --name held --hold --sim-run 10ms)
try 0 'on_hold' ps --columns id,on_hold -o json
try 0 'it is on hold' why "$held"
STINT_TOKEN=$boss try 0 'is pending, on hold' hold "$held"
try 8 'is held by an admin: ask them to release it' release "$held"
STINT_TOKEN=$boss try 0 'released' release "$held"
try 0 'is done' wait --timeout 1m "$held"
try 5 'is over' hold "$held"
run=$(job --name run --sim-run 20m)
try 5 'only a job that waits can be put on hold' hold "$run"

# An array with a throttle, held and released as a whole, and changed.
array=$(job --name many --array '4%1' --sim-run 20m)
try 0 'Running  *1' array "$array"
try 0 '' submit --array '4%2' --dry-run --gpus 1 --limit 1h -- true
try 0 '' submit --after-ok "$run" --dry-run --gpus 1 --limit 1h -- true
try 0 'on hold' submit --hold --dry-run --gpus 1 --limit 1h -- true
try 0 '' whatif --gpus 1 --limit 1h --after-ok "$run" --with gpus=2
try 0 'Running  *3' array "$array" --throttle 3
try 2 'option --throttle' array "$array" --throttle some
try 4 'there is no array' array "$run" --throttle 3
try 0 'on hold' hold --name many.3 --yes
try 0 'released' release --name many.3 --yes

# Labels choose.
tagged=$(job --name tagged --label run=a --comment 'the second try' --hold)
try 0 "$tagged" ps --label run=a --columns id,labels,comment
try 0 'the second try' show "$tagged"
try 0 "$tagged" cancel --label run=a --dry-run
try 4 'no job that has not ended is chosen' cancel --label run=b --yes

# Tried again, and then no more.
flaky=$(job --name flaky --retries 1 --retry-after 1s --sim-run 10ms --sim-exit 3)
try 3 'is failed' wait --timeout 1m "$flaky"
try 0 'Retries used  *1' show "$flaky"
done_testing
