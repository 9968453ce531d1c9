#!/bin/sh
# Money as owners and tenants meet it: prices, plans, caps, budgets, usage, bills in every form, their proof, credits,
# months that end, and a comparison of all the numbers. $1 is the program.
set -u
. "$(dirname "$0")/lib/stintd.sh"
here=$(dirname "$0")
start_stintd
as root

# state_is JOB STATE
state_is() {
    "$stint" show "$1" -o json | grep -q "\"state\":\"$2\""
}

# ---- prices -----------------------------------------------------------------------------------------

cat >"$tmp/prices.yaml" <<'EOF'
prices: steep
gpu:
  h100: {reserved: 36, guaranteed: 0, burst: 3600, on_demand: 7200, mig: 110%}
  "*": {reserved: 36, burst: 3600}
pieces: {render: {frames: 0.5}}
EOF
try 0 'sample .* yes' price list
try 0 'the price book is published' price publish "$tmp/prices.yaml"
sleep 0.1
try 0 'sample .* no' price list
try 0 'steep .* yes' price list
try 0 'h100  *36.00  *0.00  *3600.00  *7200.00  *0.00  *100%  *110%' price show
try 0 'render: 0.50 a frame' price show steep
try 0 '"burst": "2.20"' price show sample -o json
try 4 'no price book "cheap"' price show cheap
printf 'prices: old\nfrom: 2001-01-01\ngpu: {"*": {reserved: 1, burst: 1}}\n' >"$tmp/old.yaml"
try 2 'in the past' price publish "$tmp/old.yaml"
printf 'prices: odd\ngpu: {"*": {reserved: 1, burst: 1.2345678}}\n' >"$tmp/odd.yaml"
try 2 'odd.yaml:2: .*six decimals' price publish "$tmp/odd.yaml"
# What is shown can be published again.
"$stint" price show steep -o json | python3 -c "import json, sys
d = json.load(sys.stdin); del d['in_force'], d['from']; d['prices'] = 'again'; print(json.dumps(d))" >"$tmp/again.json"
try 0 'is published' price publish "$tmp/again.json"
as ada
try 8 'role' price publish "$tmp/prices.yaml"
try 0 'again' price list

# ---- plans and caps ----------------------------------------------------------------------------------

as root
try 0 'account capped made' account create capped --max gpu=8
try 0 '^stint_' token create --user cora --role member --account capped
cora=$(cat "$tmp/out")
printf 'account: capped\nchargeback: true\ndiscount: 50%%\ncap: 3601\nwarn: [0.01%%, 100%%]\n' >"$tmp/plan.yaml"
try 0 'account capped has the plan' admin plan capped "$tmp/plan.yaml"
sleep 0.1
try 0 '^Cap  *3601.00' admin plan capped
try 0 '^Plan of  *acme' admin plan vision
try 4 'did you mean capped' admin plan caped "$tmp/plan.yaml"
try 2 'the plan is of account capped' admin plan vision "$tmp/plan.yaml"
printf 'discount: 1%%\n' >"$tmp/all.yaml"
try 0 'the cluster has the plan' admin plan --cluster "$tmp/all.yaml"
try 2 'give one account, or --cluster' admin plan
STINT_TOKEN=$cora
export STINT_TOKEN
"$stint" events -f >"$tmp/events" 2>&1 &
events_pid=$!
more_pids=$events_pid
# One GPU, an hour at most, at 3600 x 50%: 1800. Two fit, a third does not.
one=$("$stint" submit --name one --gpus 1 --limit 1h --sim-run 3s -- true)
two=$("$stint" submit --name two --gpus 1 --limit 1h --sim-run 1h -- true)
[ -n "$one" ] && [ -n "$two" ] || fail "a job within the cap is refused"
try 6 'this job could cost \$1800.00: the cap of capped is \$3601.00 .* \$3600.00 on hold' \
    submit --name three --gpus 1 --limit 1h -- true
# Without a limit: an hour, and ten minutes of notice.
try 6 'this job could cost \$2100.00: the cap of capped' submit --name endless --gpus 1 -- true
try 0 '"jobs"' ps -a -o json
json 'sorted(j["name"] for j in d["jobs"]) == ["one", "two"]'
# What runs is spent as of now, and off the hold.
try 0 '^On hold  *3[56][0-9][0-9]' budget
try 0 '^  of it running  *[0-9]' budget
try 0 '"left_udollars"' budget capped -o json
json 'd["cap_udollars"] == 3601000000 and d["left_udollars"] < 2000000'
try 4 'no account "vision"' budget vision
# When the first ends, what it did not use is free again.
wait_for state_is "$one" "done" || fail "one does not end"
try 0 '^j' submit --name three --gpus 1 --limit 30m --sim-run 1h -- true
wait_for grep -q 'account capped has spent .* 0.01% of its cap of 3601.00' "$tmp/events" ||
    fail "no warning: $(cat "$tmp/events")"
kill -INT $events_pid
wait $events_pid
[ "$(grep -c ' budget ' "$tmp/events")" -eq 1 ] || fail "warned more than once: $(cat "$tmp/events")"

# ---- usage ---------------------------------------------------------------------------------------------

try 0 '^cora  *3 ' usage
try 0 "^$one  *1 " usage --by job
json_usage() {
    try 0 '"rows"' usage capped --by "$1" -o json
    json "[r['key'] for r in d['rows']] == $2 and d['account'] == 'capped'"
    json 'sum(r["jobs"] for r in d["rows"]) == 3 and all(r["cost_udollars"] > 0 for r in d["rows"])'
}
json_usage gpu '["h100"]'
json_usage level '["whole"]'
json_usage account '["capped"]'
try 2 '' usage --by nonsense
try 4 'no account "speech"' usage speech
try 0 '^who,jobs' usage -o csv
as root
try 0 'vision' usage --by account
try 0 '^(floor)' usage vision --by job

# ---- bills ---------------------------------------------------------------------------------------------

STINT_TOKEN=$cora
try 0 'capped, .* so far, to be paid' bill
try 0 '1  *capped  *burst  *h100  *whole .* GPU-hour  *3600.00 x 50%' bill
try 4 'no account "vision"' bill -a vision
try 4 'no account "nowhere"' bill -a nowhere
try 4 'no month "2026-1"' bill 2026-1
try 4 '' bill 2001-01
try 0 "usage  *$one  *cora " bill --explain 1
try 0 "running  *$two  *cora .*:[0-7] " bill --explain 1
try 0 "^-,running,$two,cora," bill --explain 1 -o csv
try 0 '"entries"' bill --explain 1 -o json
json "[e['job'] for e in d['entries']] == ['$one'] and len(d['running']) == 2"
try 4 'there is no line 99' bill --explain 99
try 2 'explain prints a table' bill --explain 1 -o html
try 0 '"lines"' bill -o json
json 'd["account"] == "capped" and d["chargeback"] and len(d["lines"]) == 1 and not d["closed"]'
json 'd["total_udollars"] == sum(l["amount_udollars"] for l in d["lines"]) > 1500000'
try 0 '^20.*,capped,burst,h100,whole' bill -o csv
try 0 '<!doctype html>' bill -o html
try 2 'wants a format' bill --save "$tmp/x"
try 2 'no format "pdf"' bill -o pdf
try 0 'the bill is in' bill -o focus --save "$tmp/focus.csv"
python3 "$here/focus_validate.py" "$tmp/focus.csv" || fail "FOCUS"
as root
try 0 'the bill is in' bill -o focus --save "$tmp/focus-all.csv"
python3 "$here/focus_validate.py" "$tmp/focus-all.csv" || fail "FOCUS of all"
try 0 'All accounts' bill
try 0 'the bill is in' bill -o file --save "$tmp/all.bill"
try 0 'proved: the running bill of all accounts' bill verify "$tmp/all.bill"
grep -q '^  *0  *0  *0' "$tmp/out" && fail "a row without a name"
try 0 '' bill
grep -q '^[a-z]*: 0\.00[0-9]* for reserved GPU time' "$tmp/out" && fail "less than a cent has a line"

# ---- proof ---------------------------------------------------------------------------------------------

STINT_TOKEN=$cora
try 0 '^[0-9a-f]\{64\}$' bill key
cp "$tmp/out" "$tmp/key"
try 0 'the bill is in' bill -o file --save "$tmp/bill"
try 0 'proved' bill verify --key "$tmp/key" "$tmp/bill"
try 9 'not the one you trust' bill verify --key "$(tr 0-9a-f 1-9a-f0 <"$tmp/key")" "$tmp/bill"
python3 -c "
import sys
b = bytearray(open('$tmp/bill', 'rb').read())
at = b.index(b'\"share\":') + 8
b[at] = b'1'[0] if b[at] != b'1'[0] else b'2'[0]
open('$tmp/changed', 'wb').write(b)"
try 9 'line [0-9]*' bill verify --key "$tmp/key" "$tmp/changed"
python3 "$here/money/bill_reference.py" "$tmp/bill" || fail "the second verifier"
for word in vision speech genomics '"ada"'; do
    grep -q -e "$word" "$tmp/bill" && fail "the bill's file says $word"
done

# ---- credits, and a price that changes under a job -------------------------------------------------------

as root
try 5 'more than account capped was charged' admin credit capped 1000000 --reason 'a broken fan'
try 0 'capped is given 1.25' admin credit capped 1.25 --yes --reason 'a broken fan'
try 2 'needs a --reason' admin credit capped 1
try 2 'more than 0' admin credit capped --reason x -- -1
try 4 'did you mean capped' admin credit caped 1 --reason x
printf 'prices: later\ngpu: {"*": {reserved: 36, burst: 1800}}\n' >"$tmp/later.yaml"
try 0 'is published' price publish "$tmp/later.yaml"
sleep 0.3
STINT_TOKEN=$cora
try 0 'adjust .* -1.25$' bill
try 0 'burst .* several ' bill
python3 - "$stint" "$two" <<'EOF' || fail "a price that changes does not give two intervals"
import json, subprocess, sys
d = json.loads(subprocess.check_output([sys.argv[1], "bill", "--explain", "1", "-o", "json"]))
posted = [e for e in d["entries"] if e["job"] == sys.argv[2]]
running = [e for e in d["running"] if e["job"] == sys.argv[2]]
assert len(posted) == 1 and len(running) == 1, d
assert posted[0]["to"] == running[0]["from"] and posted[0]["cut"] == "goes_on", d
assert [posted[0]["lines"][0][2], running[0]["lines"][0][2]] == [3600000000, 1800000000], d
EOF
as root
try 0 'meter, ledger, store and agents agree' admin reconcile
try 0 '"agree":true' admin reconcile -o json
as ada
try 8 'role' admin reconcile

# ---- months that end: these are three seconds long -------------------------------------------------------

stop_stintd
rm -rf "$tmp/data"
printf 'billing_zone: test-3\nbilling_cluster: shop\n' >"$tmp/config.yaml"
start_stintd --config "$tmp/config.yaml"
as ada
month_closed() { # one of those in which ada used something: on a slow machine the first have nothing
    for month in $("$stint" bill list | awk 'NR > 1 { print $1 }'); do
        "$stint" usage --month "$month" | grep -q '^ada' && return
    done
    return 1
}
wait_for month_closed || fail "no month is closed: $(tail -n 3 "$tmp/stintd.log")"
try 0 "vision, $month, to be paid" bill "$month"
try 0 '"closed":true' bill "$month" -o json
cp "$tmp/out" "$tmp/first"
try 0 'the bill is in' bill "$month" -o file --save "$tmp/bill"
try 0 'proved: the final bill of "vision"' bill verify "$tmp/bill"
try 0 'the bill is in' bill "$month" -o focus --save "$tmp/focus.csv"
python3 "$here/focus_validate.py" "$tmp/focus.csv" || fail "FOCUS of a closed month"
grep -q "shop/accounts/vision/$month" "$tmp/focus.csv" || fail "no InvoiceId"
try 0 '^ada' usage --month "$month"
stop_stintd
start_stintd --config "$tmp/config.yaml"
try 0 '"closed":true' bill "$month" -o json
python3 -c "
import json
a, b = (json.load(open(f)) for f in ('$tmp/first', '$tmp/out'))
del a['made'], b['made']
assert a == b" || fail "a closed bill has changed with a restart"

# A key that is gone is not replaced behind everybody's back.
stop_stintd
rm "$tmp/data/billing.key"
"$STINTD" --data "$tmp/data" --listen 127.0.0.1:0 --config "$tmp/config.yaml" >"$tmp/out" 2>&1 &&
    fail "stintd starts without its key"
grep -q 'billing.key is not there, and bills were signed with it' "$tmp/out" || fail "$(cat "$tmp/out")"

done_testing
