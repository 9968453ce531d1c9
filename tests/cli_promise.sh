#!/bin/sh
# Guarantees that the nodes cannot carry: refused with the numbers, shown and taken by force, and when they are gone
# classes and bills are as they would have been. $1 is the program.
set -u
. "$(dirname "$0")/lib/stintd.sh"
start_stintd
as root

# 128 GPUs; acme has 112 of them, vision 48 of those.
try 6 'with this guarantee 612 gpu would be promised, and all nodes together have 128' \
    account create greedy --guarantee gpu=500
grep -q 'the floor of acme would be 23.424 instead of 112' "$tmp/err" ||
    fail "no floor is named: $(cat "$tmp/err")"
try 4 'no account' account show greedy
try 6 'would be promised' account create greedy --guarantee gpu=17
try 6 'of RAM' account create heavy --guarantee ram=9000Ti
curl -s -o "$tmp/out" -w '%{http_code}' -H "Authorization: Bearer $STINT_TOKEN" -H 'Content-Type: application/json' \
    -d '{"name": "greedy", "guarantee": {"gpu": 500}}' "$STINT_URL/v1/accounts" >"$tmp/status"
[ "$(cat "$tmp/status")" = 409 ] || fail "the API answers $(cat "$tmp/status")"
json 'd["code"] == "overcommitted" and "612" in d["detail"] and "128" in d["detail"]'

# What fits is taken without a word; so is less than there was, whatever is promised elsewhere.
try 0 'account little made' account create little --guarantee gpu=16
try 6 'would be promised' account set little --guarantee gpu=17
try 0 'account little removed' account remove little

# A trial shows the floors and changes nothing.
try 0 '^acme  *gpu  *112  *112  *23.424' account create greedy --guarantee gpu=500 --dry-run
grep -q '^vision  *gpu  *48  *48  *10.039' "$tmp/out" || fail "vision's floor is not shown: $(cat "$tmp/out")"
grep -q '^greedy  *gpu  *500  *0  *104.575' "$tmp/out" || fail "its own is not shown: $(cat "$tmp/out")"
try 0 '"carried":false' account create greedy --guarantee gpu=500 --dry-run -o json
json 'len(d["floors"]) >= 5 and "612" in d["detail"]'
try 0 'no floor shrinks' account create greedy --guarantee gpu=16 --dry-run
try 0 '"carried":true' account create greedy --guarantee gpu=16 --dry-run -o json
json 'd["floors"] == []'
try 4 'no account' account show greedy
try 6 'children' account set acme --guarantee gpu=10 --dry-run

# A type of which there is little; an admin below may not shrink others' floors, whom it does not see.
try 0 'added' type add h200
try 0 'added' node add big1 --gpu h200 --gpus 8
try 0 'account edge made' account create edge --guarantee gpu=8,h200=8
try 6 'with this guarantee 9 h200 would be promised, and all nodes together have 8' \
    account create typed --guarantee h200=1
try 0 'the secret is in' token create --user boss --role admin --account acme --save "$tmp/boss"
STINT_TOKEN=$(cat "$tmp/boss") try 0 'made' account create inner --parent acme --guarantee gpu=8
STINT_TOKEN=$(cat "$tmp/boss") try 6 'ask an owner' account set inner --guarantee h200=8
STINT_TOKEN=$(cat "$tmp/boss") try 8 'cannot force' account set inner --guarantee h200=8 --force
STINT_TOKEN=$(cat "$tmp/boss") try 0 'ask an owner' account set inner --guarantee h200=8 --dry-run
grep -q 'edge' "$tmp/out" "$tmp/err" && fail "an admin learns of others: $(cat "$tmp/out" "$tmp/err")"
try 0 'account inner removed' account remove inner

# A node that is down is expected back: what it carries may still be promised.
try 0 'big1' node fail big1
try 0 'no floor shrinks' account create more --guarantee gpu=1 --dry-run
try 0 'account edge changed' account set edge --guarantee gpu=8,h200=8 --weight 2
try 0 'big1' node ready big1

# A job inside its guarantee, which others' promises push out of it and which is back inside when they are gone.
class() {
    "$stint" show "$job" -o json | grep -q "\"class\":\"$1\""
}
try 0 'made' account create lab --guarantee gpu=16
try 0 'the secret is in' token create --user lin --role member --account lab --save "$tmp/lin"
STINT_TOKEN=$(cat "$tmp/lin") try 0 '^j' submit --name owned --gpus 8 --limit 1h -- sleep 3600
job=$(head -n 1 "$tmp/out")
wait_for class guaranteed || fail "the job does not start inside its guarantee"
try 0 '^lab  *gpu  *16  *16  *2' account create greedy --guarantee gpu=600 --force
grep -q 'account greedy made' "$tmp/out" || fail "it is not made: $(cat "$tmp/out")"
[ "$(grep -n '^lab ' "$tmp/out" | cut -d: -f1)" -lt "$(grep -n 'made' "$tmp/out" | cut -d: -f1)" ] ||
    fail "the floors are shown after it was done"
class burstable || fail "the job is inside a floor that is too small for it"
try 0 'account.create.*greedy' audit
try 0 '"forced":true' audit -o json
try 0 'account greedy changed' account set greedy --guarantee none
class guaranteed || fail "with the promise gone the job is not what it was"
try 0 '^lab  *gpu  *16  *16' quota lab

# A gang larger than its floor: what is held is what is inside and what is borrowed.
try 0 'changed' account set lab --guarantee gpu=12
try 0 'made' account create wide --guarantee gpu=4
try 0 '^j' submit --account wide --name gang --gpus 8 --limit 1h -- sleep 3600
job=$(head -n 1 "$tmp/out")
wait_for class burstable || fail "the gang does not start"
try 0 '^wide  *gpu  *4  *4  *-  *8  *4  *4$' quota wide
try 0 '"inside_gpu":4,"borrowed_gpu":4' quota wide -o json

done_testing
