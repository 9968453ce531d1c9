#!/bin/sh
# What is said when something is wrong, and what commands mean: the flag, line, name and unit that a
# person used, and the next step. $1 is the program.
set -u
. "$(dirname "$0")/lib/stintd.sh"
start_stintd
as ada

# ---- refused before it waits ----------------------------------------------------------------

try 2 'there is no image "pytorch/pytorch:2.4"' run -i pytorch/pytorch:2.4 --gpus 1 -- true
try 2 'what shall run' run --gpus 1
try 2 '^stint: --signal: "FOO" is no signal' submit --gpus 1 --signal FOO -- true
try 2 '^stint: --notify-signal: "FOO" is no signal' submit --gpus 1 --notify-signal FOO -- true
try 0 '^j' submit --gpus 1 --signal SIGUSR1 --notify-signal 12 --sim-run 1s -- true
try 2 '^stint: --env: "1BAD" cannot be the name of a variable' submit --gpus 1 -e 1BAD=x -- true
try 2 '^stint: --limit: 90 needs a unit: 90s, 90m' submit --gpus 1 --limit 90 -- true
try 4 'there is no GPU type "a100"; there is h100' submit --gpus 1 --type a100 -- true
try 2 'no node has 9 h100 GPUs; the largest has 8' submit --gpus 9 -- true
try 2 'only 16 of 100 tasks fit' submit --gpus 8 --tasks 100 -- true

# A dry run asks the server; --print shows the document.
try 2 '^stint: --limit: "foo" is not a duration' submit --dry-run --limit foo --type zzz -- true
try 4 '^stint: --type: there is no GPU type "zzz"' submit --dry-run --type zzz -- true
try 0 'the job: starts at once' submit --dry-run --gpus 1 -- true
try 0 'the job: should start in' submit --dry-run --gpus 8 --tasks 8 --limit 1h -- true
try 0 '"state"' submit --dry-run --gpus 1 -o json -- true
try 0 '"limit": "foo"' submit --print --limit foo -- true
ran=$((ran + 1))
[ "$("$stint" ps --name nodry -o csv | wc -l)" -eq 1 ] || fail "a dry run was submitted"

# ---- the place of a mistake ------------------------------------------------------------------

printf 'name: x\nlimit: foo\ngpus: 1\ncommand: [a]\n' >"$tmp/bad.yaml"
try 2 "^stint: $tmp/bad.yaml:2: key \"limit\"" submit -f "$tmp/bad.yaml"
try 2 "^stint: --limit: \"bar\"" submit -f "$tmp/bad.yaml" --limit bar
printf 'name: x\nenv:\n  A: b\n  1B: c\ncommand: [a]\n' >"$tmp/bad.yaml"
try 2 "^stint: $tmp/bad.yaml:4: " submit -f "$tmp/bad.yaml"
printf 'jobs:\n- gpus: 1\n  sim: {run: 1s}\n- gpus: 1\n  limit: foo\n' >"$tmp/bad.yaml"
try 2 "^stint: job 1: $tmp/bad.yaml:5: " submit -f "$tmp/bad.yaml"
# Through the rules, too: a size and an array are theirs.
printf 'name: x\narray: {count: 2}\ngpus: 1\nlimit: foo\ncommand: [a]\n' >"$tmp/bad.yaml"
try 2 "^stint: $tmp/bad.yaml:4: " submit -f "$tmp/bad.yaml"
try 2 '^stint: --topology: "moon" is none of' submit --array 2 --topology require:moon -- true

# ---- arrays ----------------------------------------------------------------------------------

try 0 '3 jobs submitted' submit --array 5-7 --name ranged --gpus 1 --sim-run 1h -- ./part.sh
try 0 '"STINT_ARRAY_INDEX":"*7"*' show "$(tail -n 1 "$tmp/out")" -o json
try 2 'option --array' submit --array 0 -- true
array=$("$stint" ps --name ranged -o csv | awk -F, '/ranged.5/ { print $1 }')
try 0 "array $array (ranged.[0-9]*): 3 of 3 jobs cancelled" cancel "$array"
try 0 'Cancelled  *3' array "$array"
try 5 'every job of array .* is over' cancel "$array"
try 0 '2 jobs submitted' submit --array 2 --name pair --gpus 1 --sim-run 1h -- ./part.sh
first=$(head -n 1 "$tmp/out")
try 0 "^job $first (pair.0) is cancelled\$" cancel --only "$first"
try 0 'Cancelled  *1' array "$first"
as grace
try 4 "there is no job \"$first\"" cancel "$first"
as ada

# ---- logs and show -----------------------------------------------------------------------------

big=$("$stint" ps --state pending -o csv | awk -F, '$2 == "big" { print $1 }')
try 4 "job $big has not started.*stint why $big" logs "$big"
try 0 '^j' submit --gpus 1 --sim-run 1h --name quoted -- sh -c "echo 'a b'; exit"
quoted=$(cat "$tmp/out")
try 0 "^Command  *sh -c 'echo .*a b.*; exit'" show "$quoted"
try 0 "^job $quoted (quoted) is cancelled\$" cancel "$quoted"

# ---- reasons -----------------------------------------------------------------------------------

try 0 'vision uses .* guaranteed GPUs' why "$big"
as root
try 0 'lone' pool add lone --allow host-image
try 2 'pool lone has no h100' submit --account vision --pool lone --gpus 1 -- true

# ---- the owner ---------------------------------------------------------------------------------

try 2 'needs an account: give --account NAME' submit --gpus 1 -- true
try 0 'changed' account set speech --job-limits gpu=4,run=24h
try 6 'asks for 8 GPUs; account speech allows 4 per job' submit --account speech --gpus 8 -- true
try 6 'asks for 1d6h of run time; account speech allows 1d per job' \
    submit --account speech --gpus 1 --limit 30h -- true
try 0 'changed' account set speech --max gpu=40 --job-limits gpu=none,run=none
try 6 'asks for 48 GPUs; account speech may hold at most 40' \
    submit --account speech --gpus 8 --tasks 6 -- true
try 0 'changed' account set speech --max none
try 0 '^Weight' account show speech
grep -q '^Max' "$tmp/out" && fail "account set --max none: $(cat "$tmp/out")"
try 2 '^stint: --expires: 90 needs a unit' token create --user x --role member --account speech \
    --expires 90

# ---- nodes: who took one out, why, since when -----------------------------------------------------

"$stint" events >"$tmp/events" 2>&1 &
more_pids=$!
# Until the stream is open nothing is seen: the node comes and goes until it is.
told() {
    "$stint" node ready node11 && "$stint" node fail --reason 'no power' node11
    grep -q 'node11, failed by root: no power' "$tmp/events"
}
wait_for told || fail "events: $(cat "$tmp/events")"
"$stint" node ready node11 >/dev/null
try 0 'node node12 is failed' node fail --reason 'fan 3 stands still' node12
try 0 '^Reason  *fan 3 stands still' node show node12
grep -q '^Since  *20' "$tmp/out" && grep -q '^By  *root' "$tmp/out" || fail "node show: $(cat "$tmp/out")"
try 0 'node node12 is draining' node drain node12
try 0 '^By  *root' node show node12
try 0 'node node12 is ready' node ready node12
try 0 '^State  *ready' node show node12
grep -q '^By' "$tmp/out" && fail "node show: a ready node has a word: $(cat "$tmp/out")"

# ---- money ----------------------------------------------------------------------------------------

try 0 'All accounts, .* so far, to be paid' bill
try 0 'made' account create lab
try 0 'All accounts, .* so far, mixed: [0-9]* accounts have to pay, for 1 it is for information' bill
cat >"$tmp/prices.yaml" <<END
prices: later
from: 2031-01-01T00:00:00Z
gpu: {"*": {reserved: 1, burst: 2}}
END
try 0 '' price publish "$tmp/prices.yaml"
try 5 'already starts at 2031-01-01 00:00 UTC' price publish "$tmp/prices.yaml"
printf 'prices: other\nfrum: 2031-01-01\n' >"$tmp/prices.yaml"
try 2 "^stint: $tmp/prices.yaml:2: unknown key" price publish "$tmp/prices.yaml"

# Jobs that are back in the queue: the time they wait is no run time.
try 0 'failed' node fail $("$stint" node list -o csv | sed -n 's/^\(node[0-9]*\),.*/\1/p')
try 0 '"jobs"' ps -o json
json 'any(j["state"] == "pending" and j["started"] and j["run_seconds"] > 0 for j in d["jobs"])'
json 'all(("running_since" in j) == (j["state"] == "running") for j in d["jobs"] if j["started"])'

done_testing
