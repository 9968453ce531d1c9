#!/bin/sh
# Bookings as people make them: quotes, series, jobs inside, changes, and what is left after a restart. $1 is the program.
set -u
. "$(dirname "$0")/lib/stintd.sh"
start_stintd
as ada

gpus='--gpus 8 --type h100'
try 0 'fits' book $gpus --from '2027-06-01 09:00' --for 3d --zone Europe/Berlin --dry-run
try 0 '^ID' book list
id=$("$stint" book $gpus --from '2027-06-01 09:00' --for 3d --zone Europe/Berlin --name launch 2>"$tmp/err")
try 0 'launch.*confirmed.*2027-06-01 09:00 *2027-06-04 09:00 *Europe/Berlin' book list
try 0 '2027-06-01T09:00:00+02:00' book show "$id"
try 0 '"state":"confirmed"' book show "$id" -o json
try 0 'Tue  2027-06-01 16:00' calendar --from 2027-05-31 --to 2027-06-05 --zone Asia/Tokyo
try 0 'those of UTC' calendar --zone UTC

# What does not fit says what would, and books nothing.
try 6 'not available from 2027-06-01' book --gpus 128 --type h100 --from 2027-06-01 --for 1d --dry-run --zone UTC
try 6 'overcommitted\|fits\|free for all\|does not fit' book --gpus 128 --type h100 --from 2027-06-01 --for 1d --zone UTC
[ "$("$stint" book list -o csv | wc -l)" = 2 ] || fail "a refused booking is listed"

try 6 'refused: it begins further ahead than the policy booking_horizon' book $gpus --from +400d --for 1d --dry-run

# A quote is held, confirmed once.
held=$("$stint" book $gpus --from 2027-07-01 --for 1d --zone UTC --hold 2>"$tmp/err")
grep -q 'held until' "$tmp/err" || fail "a hold does not say until when"
try 0 'quoted' book show "$held"
try 0 'is confirmed' book confirm "$held"
try 5 'was confirmed before' book confirm "$held"
try 0 'confirmed' book show "$held"

# Changes and extensions, whole or not at all.
try 0 'is changed' book extend "$id" --to '2027-06-05 09:00' --zone Europe/Berlin
try 0 '2027-06-05T09:00:00+02:00' book show "$id"
try 2 'say until when' book extend "$id"
try 2 'say what changes' book change "$id"
try 2 'happens twice' book change "$id" --to '2027-10-31 02:30' --zone Europe/Berlin
try 0 '2027-06-05T09:00:00+02:00' book show "$id"

# A series, one of it left out, then the rest.
s=$("$stint" book $gpus --from '2027-03-26 22:00' --for 8h --zone Europe/Berlin --every day --count 4 --length wall \
    --name nights 2>"$tmp/err")
[ "$("$stint" book list -o csv | grep -c nights)" = 4 ] || fail "a series of four"
one=$("$stint" book list -o csv | grep nights | sed -n 2p | cut -d, -f1)
try 0 'is cancelled' book cancel "$one"
[ "$("$stint" book list -o csv | grep -c nights)" = 3 ] || fail "one was left out"
try 0 'the series of booking' book cancel "$s" --series
[ "$("$stint" book list -o csv | grep -c nights)" = 0 ] || fail "the rest of the series is there"
[ "$("$stint" book list --all -o csv | grep -c 'nights.*cancelled')" = 4 ] || fail "what is over is kept"
try 2 'is not of a series' book cancel "$held" --series

# A job runs inside.
now=$("$stint" book $gpus --from now --for 1h --name today 2>"$tmp/err")
try 0 'active' book show "$now"
job=$("$stint" submit --name inside --gpus 8 --booking "$now" --sim-run 10m -- train) || fail "no job inside"
try 0 'running' show "$job"
try 0 'booked' ps --all
try 4 'there is no booking bzzzzzzzz, or it is over' submit --gpus 1 --booking bzzzzzzzz -- train
try 4 'there is no such booking' submit --gpus 1 --booking nonsense -- train

# Slices and shares are booked as the GPUs that have room for them.
gpus_of() { "$stint" book show "$1" -o json | sed 's/.*"tasks":\([0-9]*\).*/\1/'; }
try 0 '9 × 1g.10gb on 2 × h100' book --profile 1g.10gb --tasks 9 --type h100 --from 2027-08-01 --for 1d --zone UTC --dry-run
slices=$("$stint" book --profile 1g.10gb --tasks 9 --type h100 --from 2027-08-01 --for 1d --zone UTC --name class 2>"$tmp/err")
try 0 'Divided *9 × 1g.10gb' book show "$slices"
try 0 '"tasks":2,"gpus":1,.*"level":"mig","profile":"1g.10gb","share":null,"parts":9' book show "$slices" -o json
try 0 'is changed' book change "$slices" --tasks 15
[ "$(gpus_of "$slices")" = 3 ] || fail "15 slices of a seventh are on 3 GPUs"
try 0 'Divided *15 × 1g.10gb' book show "$slices"
try 0 '4 × 0.3 of a GPU (mps) on 2 × h100' book --level mps --share 0.3 --tasks 4 --type h100 --from +2h --for 1h --dry-run
try 2 'level mps needs a share' book --level mps --tasks 4 --type h100 --from +2h --for 1h
try 2 'is no MIG profile' book --profile 9g --type h100 --from +2h --for 1h
try 2 'for 2 of them use tasks: 2' book --profile 1g --gpus 2 --type h100 --from +2h --for 1h
try 2 'booked whole, not in slices' book --profile 1g --type h100 --from +2h --for 1h --dedicated
try 2 'say of which GPUs' book --profile 1g --from +2h --for 1h
try 2 'say what: --gpus N --type TYPE' book --type h100 --from +2h --for 1h
try 0 'is cancelled' book cancel "$slices"

# A deadline without a promise: whoever waits for 64 GPUs is told that it will be late; a short one is not.
late=$("$stint" submit --name late --gpus 8 --tasks 8 --limit 1h --by +3h -- train 2>"$tmp/err")
try 0 'Its deadline in 2h5.* is at risk' why "$late"
try 0 'is cancelled\|cancelled' cancel "$late"
soon=$("$stint" submit --name soon --gpus 8 --tasks 8 --limit 1h --by +30h -- train 2>"$tmp/err")
try 0 'Its deadline in 29h\|Its deadline in 1d.* is open' why "$soon"
try 0 'cancelled' cancel "$soon"

# What a job needs to save is bounded by the site.
try 6 'asks for 5m to save its work; the most is 2m' submit --gpus 1 --grace 5m --on-preempt checkpoint -- train
try 2 'is not a duration' submit --gpus 1 --grace -5m --on-preempt checkpoint -- train

# What its nodes must have.
try 4 'has the labels driver=999' book $gpus --from 2027-09-01 --for 1d --zone UTC --require driver=999
try 2 'is not LABEL=VALUE' book $gpus --from 2027-09-01 --for 1d --zone UTC --require driver
try 2 'value of a label' book $gpus --from 2027-09-01 --for 1d --zone UTC --require 'driver=a b'
try 2 'booked whole, with all 8 GPUs' book --gpus 4 --type h100 --from 2027-09-01 --for 1d --zone UTC --dedicated
try 8 'cannot' node label node01 driver=550
as root
try 0 'has other labels' node label node01 driver=550.54 net=ib
try 0 'has other labels' node label node02 driver=550.54
try 0 'driver 550.54, net ib' node show node01
try 4 'there is no node' node label nobody driver=550
try 4 'was given no label' node label node01 driver2-
try 2 'NAME=VALUE' node label node01 driver
try 2 'value of a label' node label node01 'driver=a b'
as ada
c=$("$stint" book $gpus --from 2027-09-01 --for 1d --zone UTC --require driver=550 --require net=ib --dedicated 2>"$tmp/err")
try 0 'planned' book show "$c"
try 0 '"require":{"driver":"550","net":"ib"},"dedicated":true,.*"image":null,"ready":"planned","reason":null' book show "$c" -o json
as root
try 5 'would lose its place' node label node01 net-
try 5 'would lose its place' node drain node01
try 0 'has other labels' node label node01 net- --force
as ada
try 0 'degraded' book list
try 0 '1 of 1 task has no node: none with 8 h100 GPUs and driver=550, net=ib is free' book show "$c"
as root
try 0 'has other labels' node label node02 net=ib
as ada
try 0 'planned' book show "$c"
try 0 'is cancelled' book cancel "$c"

# Nobody else's.
as grace
try 4 'there is no booking' book show "$id"
try 4 'there is no booking' book cancel "$id"
try 4 'there is no booking' submit --gpus 1 --booking "$now" -- train
as ada

# What was agreed, and what cancelling costs: said first, accepted with --yes, and told afterwards.
try 0 '"price":null,"cancel_fee_udollars":null,"cancel_fee":null' book show "$id" -o json
cat >"$tmp/prices.yaml" <<END
prices: booked
gpu: {"*": {reserved: 1, burst: 4, booking: 2}}
booking: {lead: {7d: 20%}, cancel: {3000d: 50%}}
END
STINT_TOKEN=$(token_of root) "$stint" price publish "$tmp/prices.yaml" >"$tmp/out" 2>&1 || fail "no prices: $(cat "$tmp/out")"
paid=$("$stint" book $gpus --from 2027-08-01 --for 10h --zone UTC --every day --count 2 --name paid 2>"$tmp/err")
try 0 '^Price *115.2' book show "$paid"
try 0 '^Per GPU-hour *2' book show "$paid"
try 0 '^Discounts *agreed 20%, plan 10%' book show "$paid"
try 0 '^Cancel fee *57.6' book show "$paid"
try 2 'cancelling booking .* costs 57.6.*--yes' book cancel "$paid"
try 2 'cancelling the series of booking .* costs 115.2.*--yes' book cancel "$paid" --series
try 0 'confirmed' book show "$paid"

# On a terminal it asks; only a yes cancels.
cat >"$tmp/answer.py" <<'END'
import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[2], sys.argv[2:])
said = b""
while True:
    try:
        piece = os.read(fd, 4096)
    except OSError:
        break
    said += piece
    if b"[y/N]" in piece:
        os.write(fd, sys.argv[1].encode() + b"\n")
    if not piece:
        break
sys.stdout.buffer.write(said)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
END
last=$("$stint" book list -o csv | grep paid | sed -n 2p | cut -d, -f1)
python3 "$tmp/answer.py" n "$stint" book cancel "$last" >"$tmp/out"
[ $? -eq 5 ] || fail "a no: $(cat "$tmp/out")"
grep -q 'costs 57.60. Cancel it? .*' "$tmp/out" || fail "it does not ask: $(cat "$tmp/out")"
try 0 'confirmed' book show "$last"
one=$("$stint" book --gpus 1 --type h100 --from 2027-08-05 --for 10h --zone UTC 2>"$tmp/err")
python3 "$tmp/answer.py" y "$stint" book cancel "$one" >"$tmp/out" || fail "a yes: $(cat "$tmp/out")"
grep -q 'is cancelled; the fee is 7.20' "$tmp/out" || fail "a yes does not cancel: $(cat "$tmp/out")"
try 0 'is cancelled; the fee is 115.2' book cancel "$paid" --series --yes
try 0 'is cancelled$' book cancel "$held"

# ps has a column for deadlines where a job has one.
"$stint" ps >"$tmp/out"
grep -q DEADLINE "$tmp/out" && fail "a column for nothing"
by=$("$stint" submit --name dated --gpus 1 --limit 1h --by +30h --sim-run 10m -- train) || fail "no job with a deadline"
try 0 'DEADLINE' ps
try 0 "$by.* open" ps
try 0 '"state":"open"' show "$by" -o json

url=$("$stint" calendar feed 2>"$tmp/err")
curl -s "$url" | grep -q 'SUMMARY:launch: 8 × h100' || fail "the feed has no launch"
feed=$("$stint" token list -o csv | grep feed | cut -d, -f1)
try 0 '' token revoke "$feed"
[ "$(curl -s -o /dev/null -w '%{http_code}' "$url")" = 401 ] || fail "a revoked feed"

try 2 'say what: --gpus' book --from now --for 1h
try 4 'there is no booking' book show nonsense
done_testing
