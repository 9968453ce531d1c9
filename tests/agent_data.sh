#!/bin/sh
# An account has more in /data on a node than it may: its job is ended and the next one refused, and who may see the
# account learns it from show, why and events; a neighbour does not. Where the file system counts, there is nothing to be
# seen. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
need_containers
start_native
try 0 'made' account create vision --parent acme
token() { "$stint" token create --account "$1" --user "$1" --role "$2" -o json |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["token"])'; }
member=$(token vision member)
admin=$(token acme admin)
rival=$(token other admin)
start_agent n1 --exec oci --data-limit 8Mi
node_becomes n1 ready
grep -q 'event=data-limit .* by=counting' "$tmp/n1.log" || {
    echo "skipped: the file system here keeps the limit by itself"
    exit 77
}
hear() {
    STINT_TOKEN=$2 "$stint" events --for 100s >"$tmp/$1.events" 2>&1 &
    listeners="${listeners:-} $!"
}
trap 'kill $listeners 2>/dev/null; finish_agents' EXIT
hear member "$member"
hear admin "$admin"
hear rival "$rival"

fill() {
    try 0 '^j' submit --account vision --name "$1" --gpus 0 --cpu 0.2 --ram 64Mi --limit 5m -- sh -c "$2"
    job=$(cat "$tmp/out")
}
ends() { for _ in 1 2 3; do wait_for is "$1" failed && break; done; becomes "$1" failed; } # two counts, five seconds apart
fill greedy 'head -c 12000000 /dev/urandom >/data/fill; echo filled; sleep 280'
greedy=$job
ends "$greedy"
words="its account's /data on this node holds .*, at most 8 *Mi"
try 0 "$words" show "$greedy"
try 0 "$words" why "$greedy"
fill next 'echo never'
next=$job
ends "$next"
try 0 "$words" show "$next"

# Each of them once, to the account and to those above it; the end of a job says why as well.
heard() { grep -E "^[^ ]+ [^ ]+ +$2 +job $3 " "$tmp/$1.events" | grep -q -e "$words"; }
for who in member admin; do
    for j in "$greedy" "$next"; do
        ran=$((ran + 2))
        wait_for heard $who data "$j" || fail "$who has not heard of $j: $(cat "$tmp/$who.events")"
        wait_for heard $who end "$j" || fail "$who is not told why $j ended: $(cat "$tmp/$who.events")"
        [ "$(grep -c "data  *job $j " "$tmp/$who.events")" -eq 1 ] || fail "$who was told twice of $j"
    done
done
grep -q -e data "$tmp/rival.events" && fail "somebody else's admin hears of it: $(cat "$tmp/rival.events")"

rm "$(storage_of n1 vision)/fill"
tidied() {
    fill later 'echo at last'
    for _ in 1 2 3 4; do
        wait_for is "$job" done && return 0
        is "$job" failed && return 1
    done
}
ran=$((ran + 1))
tidied || tidied || tidied || tidied || fail "an account that tidied up is still refused: $("$stint" show "$job")"
done_testing
