#!/bin/sh
# A job's time limit is changed: who may, how far, what it holds of a cap afterwards, and what is written down. $1 is
# the program.
set -u
. "$(dirname "$0")/lib/stintd.sh"
start_stintd
as root

# One GPU costs 3600 an hour; the account may spend 7201.
printf 'prices: dear\ngpu:\n  "*": {reserved: 0, burst: 3600, on_demand: 3600}\ncpu: 0\nram: 0\n' >"$tmp/prices.yaml"
printf 'chargeback: true\ncap: 7201\n' >"$tmp/plan.yaml"
try 0 'made' account create capped
try 0 'is published' price publish "$tmp/prices.yaml"
try 0 'has the plan' admin plan capped "$tmp/plan.yaml"
try 0 'the secret is in' token create --user cora --role member --account capped --save "$tmp/cora"
try 0 'the secret is in' token create --user boss --role admin --account capped --save "$tmp/boss"
cora=$(cat "$tmp/cora") boss=$(cat "$tmp/boss")

held() {
    STINT_TOKEN=$boss "$stint" budget capped -o json |
        python3 -c 'import json, sys; d = json.load(sys.stdin); print(round((d["held_udollars"] + d["spent_udollars"]) / 1e8))'
}

STINT_TOKEN=$cora try 0 '^j' submit --name one --gpus 1 --limit 1h --sim-run 3h -- true
job=$(head -n 1 "$tmp/out")
[ "$(held)" -eq 36 ] || fail "an hour holds $(held) hundreds"
STINT_TOKEN=$cora try 8 'can make the time limit of job .* shorter than 1h, not longer: ask an admin of account capped' \
    limit "$job" 2h
STINT_TOKEN=$boss try 0 'time limit 2h' limit "$job" 2h
[ "$(held)" -eq 72 ] || fail "two hours hold $(held) hundreds"
STINT_TOKEN=$boss try 6 'the longer limit of this job could cost \$3600.00: the cap of capped is \$7201.00' limit "$job" 3h
[ "$(held)" -eq 72 ] || fail "a refusal has changed the hold: $(held) hundreds"
# Without an end it goes on holding for a while at a time, and with one for that again.
STINT_TOKEN=$boss try 0 'time limit none' limit "$job" none
[ "$(held)" -eq 72 ] || fail "a job without an end has changed its hold: $(held) hundreds"
STINT_TOKEN=$cora try 0 'time limit 30m' limit "$job" 30m
[ "$(held)" -eq 18 ] || fail "half an hour holds $(held) hundreds"
STINT_TOKEN=$cora try 0 '"limit_seconds":1800' show "$job" -o json
json 'd["spec"]["limit"] == "1h"'
STINT_TOKEN=$cora try 0 '^Limit now  *30m' show "$job"
STINT_TOKEN=$cora try 2 'duration' limit "$job" soon
STINT_TOKEN=$cora try 2 '1 ms' limit "$job" 0s
STINT_TOKEN=$cora try 4 'no job' limit jzzzzzzzz 1h

# The limits of the account bind those above it as well.
try 0 'made' account create bounded --job-limits run=2h
try 0 '^j' submit --account bounded --name other --gpus 1 --limit 1h --sim-run 3h -- true
other=$(head -n 1 "$tmp/out")
try 6 'a time limit of 3h is beyond what its account allows: 2h' limit "$other" 3h
try 0 'time limit 2h' limit "$other" 2h

# Somebody else's job is not there; what is written down.
as ada
try 4 'no job' limit "$job" 10m
as root
try 0 'job.limit' audit
try 0 '"job.limit"' audit -o json
json 'any(r["verb"] == "job.limit" and r["detail"] == {"from": "none", "to": "30m"} for r in d["rows"])'
curl -s -X PATCH -H "Authorization: Bearer $STINT_TOKEN" -H 'Content-Type: application/json' \
    -d '{"limit": "20m", "priority": 3}' "$STINT_URL/v1/jobs/$job" >"$tmp/out"
json 'd["status"] == 400 and "one thing" in d["detail"]'

# It outlives stintd, and when the job is over nothing is held.
stop_stintd
start_stintd
STINT_TOKEN=$cora try 0 '"limit_seconds":1800' show "$job" -o json
[ "$(held)" -eq 18 ] || fail "after a restart $(held) hundreds are held"
STINT_TOKEN=$cora try 0 'cancelled\|is' cancel "$job"
[ "$(held)" -eq 0 ] || fail "a job that is over holds $(held) hundreds"
try 0 'no difference\|agree\|0 differences' admin reconcile
done_testing
