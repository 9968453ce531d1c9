#!/bin/sh
# Windows and series as people ask for them, in their zones, and iCalendar in a reader that is not ours. $1 is the program.
set -u
. "$(dirname "$0")/lib/stintd.sh"
start_stintd
as ada

win='calendar windows --zone Europe/Berlin'
try 0 'Wed  2027-12-01 09:00' $win --from '2027-12-01 09:00' --for 3d
try 0 '2027-12-01T09:00:00+01:00' $win --from 2027-12-01T08:00:00Z --to '2027-12-02 09:00' -o json
try 0 '2027-03-30' $win --from '2027-03-01 09:00' --for 1h --every month --on 'last tue' --count 2
TZ=Asia/Tokyo; export TZ
try 0 'those of Asia/Tokyo' calendar windows --from '2027-12-01 09:00' --for 3d
TZ=/etc/passwd
try 0 'those of UTC' calendar windows --from '2027-12-01 09:00' --for 3d
unset TZ

# One clear sentence each.
try 2 'happens twice in Europe/Berlin; write 2027-10-31T02:30:00+02:00 or 2027-10-31T02:30:00+01:00' \
    $win --from '2027-10-31 02:30' --for 1h
try 2 'does not exist in Europe/Berlin' $win --from '2027-03-28 02:30' --for 1h
try 2 'is not after the start' $win --from '2027-12-02 09:00' --to '2027-12-01 09:00'
try 2 'there is no time zone "Mars/Base"' calendar windows --from '2027-12-02 09:00' --for 1h --zone Mars/Base
try 2 'there is no time zone' calendar windows --from '2027-12-02 09:00' --for 1h --zone ../../../etc/passwd
try 2 'there is no time zone' calendar windows --from '2027-12-02 09:00' --for 1h --zone /etc/localtime
try 2 'is not a time' $win --from '99999-12-02 09:00' --for 1h
try 2 'either `for` or `to`' $win --from '2027-12-02 09:00'
try 2 'either `for` or `to`' $win --from '2027-12-02 09:00' --for 1h --to 2027-12-03
try 2 'say when it begins' $win --for 1h
try 2 'a series needs --every' $win --from '2027-12-02 09:00' --for 1h --on mon
try 2 'a series needs an end' $win --from '2027-12-02 09:00' --for 1h --every day
try 6 '1 to 1000 occurrences, not 10000' $win --from '2027-12-02 09:00' --for 1h --every day --count 10000
try 6 'more than 1000 occurrences' $win --from '2027-12-02 09:00' --for 1h --every day --until 2031-12-02
try 2 'not a day of this series' $win --from '2027-12-02 09:00' --for 1h --every week --count 4 --except 2027-12-03
try 2 'before the one before it has ended' $win --from '2027-12-02 09:00' --for 25h --every day --count 4
try 2 'is not a list of weekdays' $win --from '2027-12-02 09:00' --for 1h --every week --on someday --count 4
try 2 '.' $win --from '2027-12-02 09:00' --for 1000000y

# A reader of iCalendar that is not ours has the same instants; /usr/bin/python3 is the distribution's, which has it.
if /usr/bin/python3 -c 'import icalendar' 2>/dev/null; then
    for format in ics json; do
        "$stint" $win --from '2027-03-26 22:00' --for 8h --every day --count 40 --length wall -o $format \
            >"$tmp/windows.$format" || fail "no $format"
    done
    ran=$((ran + 1))
    /usr/bin/python3 - "$tmp/windows.ics" "$tmp/windows.json" <<'PY' || fail "iCalendar and JSON differ"
import datetime, json, sys
import icalendar
cal = icalendar.Calendar.from_ical(open(sys.argv[1], "rb").read())
read = [(e["DTSTART"].dt, e["DTEND"].dt) for e in cal.walk("VEVENT")]
want = [tuple(datetime.datetime.fromisoformat(w[k].replace("Z", "+00:00")) for k in ("from", "to"))
        for w in json.load(open(sys.argv[2]))["windows"]]
assert len(want) == 40 and read == want, (read[:2], want[:2])
PY
else
    echo "no icalendar here: tools/setup installs it"
fi
done_testing
