#!/bin/sh
# `stint series`: what was, by the second here; what is not known is a dash; others' figures are not there. $1 is the program.
set -u
. "$(dirname "$0")/lib/stintd.sh"
printf 'series_step: 1s\n' >"$tmp/conf"
start_stintd --config "$tmp/conf"
as ada

there() { "$stint" series --since 1m --step 1s -o csv 2>/dev/null | grep -q ',[1-9][0-9.]*,48,'; }
wait_for there || fail "no bucket in which vision held GPUs: $("$stint" series --since 1m -o csv 2>&1 | tail -3)"
try 0 '^FROM  *HELD  *FLOOR  *RUNNING  *WAITING  *ASKED  *SHARE  *BUSY  *MONTH' series --since 1m --step 1s
# Of the time before stintd was there nothing is known, and nobody measures a simulated GPU.
grep -q '  -  .* -  *-$' "$tmp/out" || fail "no dash: $(head -3 "$tmp/out")"
grep -q '%.* -  *\$0\.' "$tmp/out" || fail "no share, or the use of a simulated GPU is known: $(tail -2 "$tmp/out")"
try 0 '"figures"' series -o json
job=$("$stint" ps --state running -o json | sed -n 's/.*"id": *"\(j[0-9a-z]*\)".*/\1/p' | head -1)
try 0 '^FROM  *HELD  *BUSY  *WATTS  *MEMORY' series --job "$job" --since 1m --step 1s
try 4 'no account "speech"' series --account speech
try 4 'no node "node01"' series --node node01
try 4 'no job "j0000000"' series --job j0000000
try 2 'choose one of' series --job "$job" --account vision
try 2 'there are 1s, 10s and 1m' series --step 1500ms
try 2 'at most 3000' series --since 30d --step 1s
as root
try 0 '^FROM  *HELD  *BUSY  *WATTS  *MEMORY  *FAILED' series --node node01 --since 1m --step 1s
try 0 '^FROM' series --gpu node01:0 --since 1m --step 1s
try 4 'has 8 GPUs' series --gpu node01:8
done_testing
