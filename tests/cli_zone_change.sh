#!/bin/sh
# New time zone data: bookings that were written by the clock follow it, what cannot is told and stays. $1 is the program.
set -u
. "$(dirname "$0")/lib/stintd.sh"

# zone_data RELEASE RULE: a database with one zone, whose rule is that of POSIX.
zone_data() {
    mkdir -p "$tmp/zones/Test"
    python3 - "$tmp/zones" "$1" "$2" <<'END'
import struct, sys
folder, release, rule = sys.argv[1:]
part = struct.pack(">4sc15x6I", b"TZif", b"2", 0, 0, 0, 0, 1, 4) + struct.pack(">iBB", 3600, 0, 0) + b"TST\0"
open(folder + "/Test/Place", "wb").write(part + part + b"\n" + rule.encode() + b"\n")
open(folder + "/tzdata.zi", "w").write("# version " + release + "\n")
END
}

show() {
    "$stint" book show "$1" -o json >"$tmp/out" || fail "no booking $1"
}

zone_data 2026a 'TST-1TDT,M3.5.0,M10.5.0/3'
export TZDIR="$tmp/zones"
start_stintd
as ada
book() {
    "$stint" book --type h100 "$@" 2>"$tmp/err" || fail "not booked: $(cat "$tmp/err")"
}

# As many GPUs as can be had.
most=8
while "$stint" book --type h100 --gpus $((most + 8)) --from 2027-05-01 --for 1h --zone UTC --dry-run >"$tmp/out" 2>&1; do
    most=$((most + 8))
done

# A series whose windows would stand in each other's way if they moved in their order.
all=$(book --gpus $most --from '2027-06-01 09:00' --for 1410m --zone Test/Place --every day --count 3 --name chain)
show "$all"
json 'd["from"] == "2027-06-01T09:00:00+02:00" and d["zone_change"] is None'
wall=$(book --gpus 1 --from '2027-10-30 22:00' --to '2027-10-31 06:00' --zone Test/Place --name night)
instant=$(book --gpus 1 --from '2027-06-10T09:00:00+02:00' --for 1h --zone Test/Place --name instant)
winter=$(book --gpus 1 --from '2027-01-10 09:00' --for 1h --zone Test/Place --name winter)
changed=$(book --gpus 1 --from '2027-06-11 09:00' --for 1h --zone Test/Place --name changed)
try 0 'is changed' book change "$changed" --from '2027-06-11 11:00' --to '2027-06-11 12:00' --zone Test/Place
fixed=$(book --gpus 1 --from '2027-06-12 09:00' --for 1h --zone Test/Place --name fixed)
try 0 'is changed' book change "$fixed" --from '2027-06-12T12:00:00Z' --to '2027-06-12T13:00:00Z'

# Behind this one everything is taken.
stuck=$(book --gpus $most --from '2027-07-01 09:00' --for 30m --zone Test/Place --name stuck)
behind=$(book --gpus $most --from '2027-07-01T08:00:00Z' --for 2h --zone UTC --name behind)

# A move costs nothing: what is paid for keeps its price, and what would have a fee is left to its owner.
price() {
    printf 'prices: %s\ngpu: {"*": {reserved: 1, burst: 4, booking: 2}}\n%s\n' "$1" "$2" >"$tmp/prices.yaml"
    STINT_TOKEN=$(token_of root) "$stint" price publish "$tmp/prices.yaml" >"$tmp/out" 2>&1 || fail "no prices: $(cat "$tmp/out")"
}
price first ''
paid=$(book --gpus 1 --from '2027-08-01 09:00' --for 10h --zone Test/Place --name paid)
show "$paid"
json 'd["price"]["amount"]'
cp "$tmp/out" "$tmp/paid"
price second 'booking: {cancel: {3000d: 50%}}'
dear=$(book --gpus 1 --from '2027-08-02 09:00' --for 10h --zone Test/Place --name dear)

# The same data again: nothing happens.
stop_stintd
start_stintd
show "$all"
json 'd["from"] == "2027-06-01T09:00:00+02:00" and d["zone_change"] is None'
"$stint" events -f -o json >"$tmp/events" 2>&1 &
more_pids=$!
listens() {
    "$stint" book cancel "$(book --gpus 1 --from '2027-05-20T00:00:00Z' --for 1h)" >"$tmp/out"
    [ -s "$tmp/events" ]
}
wait_for listens || fail "no events"
stop_stintd

# Summer time is given up.
zone_data 2026b 'TST-1'
start_stintd
wait_for grep -q 'event=zones_changed' "$tmp/stintd.log" || fail "new data are not noticed"
grep -q 'event=zones_changed moved=6 stayed=2' "$tmp/stintd.log" || fail "$(grep zones_changed "$tmp/stintd.log")"
show "$all"
json 'd["from"] == "2027-06-01T09:00:00+01:00" and d["to"] == "2027-06-02T08:30:00+01:00" and d["tzdata"] == "2026b"'
json 'd["zone_change"]["moved"] and d["zone_change"]["from"] == "2027-06-01T08:00:00+01:00"'
[ "$("$stint" book list -o csv | grep -c 'chain.*-0[123] 09:00,.*-0[234] 08:30,')" = 3 ] || fail "$("$stint" book list -o csv)"
try 0 'Zone data *the clocks of Test/Place have changed: it moved from 2027-06-01T08:00:00+01:00 to 2027-06-01T09' book show "$all"
show "$wall"
json 'd["from"] == "2027-10-30T22:00:00+01:00" and d["to"] == "2027-10-31T06:00:00+01:00"'
show "$paid"
json 'd["from"] == "2027-08-01T09:00:00+01:00"'
json "d['price'] == json.load(open('$tmp/paid'))['price']"
try 0 'Zone data.*stays at 2027-08-02T08:00:00+01:00, because to move it would cost something' book show "$dear"
show "$changed"
json 'd["from"] == "2027-06-11T11:00:00+01:00" and d["to"] == "2027-06-11T12:00:00+01:00"'
for id in "$instant" "$winter" "$fixed" "$behind"; do
    show "$id"
    json 'd["zone_change"] is None'
done

# What cannot move stays confirmed, and its owner is told what to do.
show "$stuck"
json 'd["state"] == "confirmed" and d["from"] == "2027-07-01T08:00:00+01:00" and d["to"] == "2027-07-01T08:30:00+01:00"'
json 'not d["zone_change"]["moved"] and d["zone_change"]["from"] == "2027-07-01T09:00:00+01:00"'
try 0 'Zone data.*stays at 2027-07-01T08:00:00+01:00, because .*stint book change' book show "$stuck"
wait_for grep -q "\"booking\":\"$stuck\".*\"reason\":\"the clocks of Test/Place.*stays" "$tmp/events" || fail "$(cat "$tmp/events")"
wait_for grep -q "\"booking\":\"$all\".*\"reason\":\"the clocks of Test/Place.*moved" "$tmp/events" || fail "$(cat "$tmp/events")"

# It is told once, and moves when there is room.
version=$("$stint" book show "$stuck" -o json)
stop_stintd
start_stintd
wait_for grep -q 'event=zones_changed moved=0 stayed=2' "$tmp/stintd.log" || fail "it is not tried again"
[ "$("$stint" book show "$stuck" -o json)" = "$version" ] || fail "it was written again"
try 0 'is cancelled' book cancel "$behind"
stop_stintd
start_stintd
wait_for grep -q 'event=zones_changed moved=1 stayed=1' "$tmp/stintd.log" || fail "it does not move though there is room"
show "$stuck"
json 'd["from"] == "2027-07-01T09:00:00+01:00" and d["zone_change"]["moved"]'
done_testing
