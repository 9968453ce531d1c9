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

# Nobody else's.
as grace
try 4 'there is no booking' book show "$id"
try 4 'there is no booking' book cancel "$id"
try 4 'there is no booking' submit --gpus 1 --booking "$now" -- train
as ada

url=$("$stint" calendar feed 2>"$tmp/err")
curl -s "$url" | grep -q 'SUMMARY:launch: 8 × h100' || fail "the feed has no launch"
feed=$("$stint" token list -o csv | grep feed | cut -d, -f1)
try 0 '' token revoke "$feed"
[ "$(curl -s -o /dev/null -w '%{http_code}' "$url")" = 401 ] || fail "a revoked feed"

try 2 'say what: --gpus' book --from now --for 1h
try 4 'there is no booking' book show nonsense
done_testing
