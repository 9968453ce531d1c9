#!/bin/sh
# Many jobs at once: ps with other columns, times and any number of rows; wait; cancel and priority of arrays and of
# what options choose. $1 is the program.
set -u
. "$(dirname "$0")/lib/stintd.sh"
start_stintd
as ada

submit() {
    "$stint" submit "$@" 2>/dev/null || fail "submit $*"
}

# ---- columns ---------------------------------------------------------------------------------

try 0 '^NAME  *STATE  *EXIT  *PRIORITY_*' ps -a --columns name,state,exit,priority
try 0 '^id,labels,limit$' ps -o csv --columns id,labels,limit
[ "$(head -n 1 "$tmp/out")" = id,labels,limit ] || fail "ps --columns: $(head -n 1 "$tmp/out")"
try 2 'no column "nam" (did you mean name?)' ps --columns id,nam
try 2 'no column "xyzzyx"; those there are: id, name' ps --columns xyzzyx
try 2 'no column ""' ps --columns ''
# Every column that is named can be asked for.
names=$("$stint" ps --columns xyzzyx 2>&1 | sed 's/.*there are: //; s/, /,/g')
try 0 '^ID ' ps -a --columns "$names"

# ---- times -----------------------------------------------------------------------------------

old=$(submit --name old --gpus 1 --sim-run 1s -- true)
try 0 "^job $old (old) is done$" wait "$old"
try 0 "$old" ps --name old --since 1h
try 0 "$old" ps --name old --until 0s
try 0 'ID' ps --name old
grep -q "$old" "$tmp/out" && fail "ps: what is over is only shown when asked for"
try 0 'ID' ps --name old --until 2020-01-01
grep -q "$old" "$tmp/out" && fail "ps --until: it was submitted later"
try 0 'ID' ps --name old --since 2099-01-01T00:00:00Z
grep -q "$old" "$tmp/out" && fail "ps --since: it was over by then"
try 2 'since: "yesterday" is neither a time' ps --since yesterday

# ---- more rows than a page has ----------------------------------------------------------------

array=$(submit --name wide --array 1100 --gpus 8 --sim-run 1h -- true | head -n 1)
try 0 'wide' ps --name wide --limit 5000 -o csv
[ "$(grep -c wide "$tmp/out")" -eq 1100 ] || fail "ps: $(grep -c wide "$tmp/out") of 1100 rows"
try 0 'There are more' ps --name wide --limit 1050
[ "$(grep -c wide "$tmp/out")" -eq 1050 ] || fail "ps: $(grep -c wide "$tmp/out") of 1050 rows"
try 0 '"jobs"' ps --name wide --limit 5000 -o json
json 'len(d["jobs"]) == 1100 and "next" not in d'

# ---- priorities ----------------------------------------------------------------------------------

few=$(submit --name few --array 3 --gpus 8 --tasks 12 --sim-run 1h -- true | head -n 1)
try 0 'priority 1' priority "$few" high
[ "$(grep -c 'priority 100$' "$tmp/out")" -eq 3 ] || fail "priority of an array: $(cat "$tmp/out")"
try 0 'priority 5' priority --only "$few" 5
[ "$(wc -l <"$tmp/out")" -eq 1 ] || fail "priority --only: $(cat "$tmp/out")"
try 0 'priority -1' priority --name few --yes low
[ "$(grep -c 'priority -100$' "$tmp/out")" -eq 3 ] || fail "priority --name: $(cat "$tmp/out")"
try 2 'an argument is missing' priority "$few"
try 2 'not both' priority --name few "$few" low
try 4 'no job' priority --name nothing-has-this-name --yes low

# ---- cancelling what options choose -------------------------------------------------------------

try 2 'look at the jobs with --dry-run, then give --yes' cancel --name few
try 0 'few' cancel --name few --dry-run
[ "$("$stint" ps --name few -o csv | wc -l)" -eq 4 ] || fail "cancel --dry-run cancelled"
try 2 'give the id of a job, or options' cancel
try 2 'give the id of a job, or options' cancel --yes
try 2 'not both' cancel --name few "$few" --yes
try 2 'is for options' cancel --dry-run "$few"
try 0 '3 of 3 changed' cancel --name few --yes
[ "$("$stint" ps --name few -o csv | wc -l)" -eq 1 ] || fail "cancel --name: some are left"
try 4 'no job that has not ended' cancel --name few --yes
# Nobody's but those one may see: another account's job has the same name.
as grace
other=$(submit --name few --gpus 1 --sim-run 1h -- true)
as ada
try 4 'no job that has not ended' cancel --name few --yes
try 4 'there is no account' cancel --account speech --yes
as grace
try 0 'few' show "$other"
grep -q cancelled "$tmp/out" && fail "cancel: another account's job was cancelled"
as ada
try 0 'jobs cancelled' cancel "$array"

# ---- waiting -------------------------------------------------------------------------------------

good=$(submit --name good --gpus 1 --sim-run 1s -- true)
bad=$(submit --name bad --gpus 1 --sim-run 1s --sim-exit 3 -- false)
long=$(submit --name long --gpus 1 --sim-run 1h -- true)
try 3 "^job $bad (bad) is failed, status 3" wait "$good" "$bad"
grep -q "^job $good (good) is done$" "$tmp/out" || fail "wait: $(cat "$tmp/out")"
try 0 "good" wait --any "$long" "$good"
try 124 '1 not over after 1s' wait --timeout 1s "$long" "$good"
try 2 'timeout: ' wait --timeout soon "$long"
try 4 'there is no job' wait nosuch
try 2 'an argument is missing' wait
ran=$((ran + 1))
"$stint" wait --quiet "$good" >"$tmp/out" 2>&1 || fail "wait --quiet: status $?"
[ -s "$tmp/out" ] && fail "wait --quiet prints: $(cat "$tmp/out")"
pair=$(submit --name pair --array 2 --gpus 1 --sim-run 1s -- true | head -n 1)
try 0 "^array $pair (pair.*) is done$" wait "$pair"
try 0 "cancelled" cancel "$long"
try 130 "^job $long (long) is cancelled" wait "$long"
as grace
try 4 'there is no job' wait "$good"
as ada

# Ctrl-C ends the wait, not the job; a restart of stintd is only a pause.
left=$(submit --name left --gpus 1 --sim-run 1h -- true)
short=$(submit --name short --gpus 1 --sim-run 1s -- true)
ran=$((ran + 2))
(exec "$stint" wait "$left" "$short") >"$tmp/out2" 2>"$tmp/err2" &
wait_pid=$!
wait_for grep -q "$short.*is done" "$tmp/out2" || fail "wait: $(cat "$tmp/out2" "$tmp/err2")"
stop_stintd
wait_for grep -q 'trying again' "$tmp/err2" || fail "wait: nothing is said of the loss"
start_stintd
as ada
wait_for "$stint" cancel "$left" || fail "cancel after the restart"
wait $wait_pid
[ $? -eq 130 ] || fail "wait: cancelled, but not status 130: $(cat "$tmp/out2" "$tmp/err2")"
kept=$(submit --name kept --gpus 1 --sim-run 1h -- true)
(exec "$stint" wait "$kept") >"$tmp/out2" 2>"$tmp/err2" &
wait_pid=$!
until ! kill -INT $wait_pid 2>/dev/null; do # one that comes before it listens is lost
    sleep 0.1
done
wait $wait_pid
[ $? -eq 130 ] || fail "wait: Ctrl-C, but not status 130: $(cat "$tmp/out2" "$tmp/err2")"
try 0 '^State  *running' show "$kept"

done_testing
