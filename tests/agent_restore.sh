#!/bin/sh
# stintd restored from a backup while agents are ahead of it. Nothing is followed, started or ended before an owner's word; what
# the store knows goes on, what it does not know ends, what nobody has runs again under a stay that nobody has heard of, and no
# number comes back. Tenants cannot say that word, nobody can say it twice, and a kill at any step loses nothing. Simulated
# tasks are enough: it is about who is told what. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
lease=60s
start_native
owner=$STINT_TOKEN
start_agent a1 --exec sim
start_agent a2 --exec sim
node_becomes a1 ready
node_becomes a2 ready

# ask METHOD PATH [BODY]: the status and the answer, in $tmp/answer.
ask() {
    python3 - "$STINT_URL" "$STINT_TOKEN" "$@" >"$tmp/answer" <<'EOF'
import sys, urllib.error, urllib.request
url, token, method, path = sys.argv[1:5]
body = sys.argv[5].encode() if len(sys.argv) > 5 else None
request = urllib.request.Request(url + path, body, {"Authorization": "Bearer " + token, "Content-Type": "application/json"}, method=method)
try:
    with urllib.request.urlopen(request, timeout=60) as answer:
        print(answer.status, answer.read().decode())
except urllib.error.HTTPError as e:
    print(e.code, e.read().decode())
EOF
}
# answers STATUS METHOD PATH [BODY]
answers() {
    want=$1
    shift
    ran=$((ran + 1))
    ask "$@"
    grep -q "^$want " "$tmp/answer" || fail "$*: not $want but $(head -c 300 "$tmp/answer")"
}
# preview EXPRESSION: holds for the preview, d; fate(JOB) is what becomes of a job, task(JOB) of its task.
preview() {
    "$stint" admin restore -o json >"$tmp/out" || fail "no preview: $(cat "$tmp/out")"
    ran=$((ran + 1))
    python3 - "$tmp/out" <<EOF || fail "$1 does not hold for $(head -c 2000 "$tmp/out")"
import json, sys
d = json.load(open(sys.argv[1]))
def fate(job):
    return [j["becomes"] for j in d.get("jobs", []) if j["job"] == job]
def task(job):
    return [t["becomes"] for n in d.get("nodes", []) for t in n["tasks"] if t["job"] == job]
heard = [n["heard"] for n in d.get("nodes", [])]
assert $1
EOF
}
all_heard() { "$stint" admin restore -o json | python3 -c 'import json, sys; assert all(n["heard"] for n in json.load(sys.stdin)["nodes"])'; }
restored_is() { "$stint" admin restore -o json | grep -q "\"state\": \"$1\""; }
id_of() { "$stint" account show "$1" -o json | python3 -c 'import json, sys; print(json.load(sys.stdin)["id"])'; }
plan_of() { "$stint" admin restore -o json | sed -n 's/.*"plan": "\([0-9a-f]*\)".*/\1/p'; }
nothing_refused() {
    ran=$((ran + 1))
    grep 'event=entry_refused' "$tmp/stintd.log" >"$tmp/out" && fail "the books lack something: $(cat "$tmp/out")"
}
ended() { grep -q "event=ended .*$1" "$tmp"/a?.log; }

# ---- what the backup has ---------------------------------------------------------------------------

submit --name kept --gpus 1 --limit 1h --sim-run 40m -- true
kept=$job
submit --name moved --gpus 1 --limit 1h --sim-run 40m -- true
moved=$job
submit --name waits --gpus 8 --tasks 2 --limit 1h --sim-run 40m -- true
waits=$job
becomes "$kept" running
becomes "$moved" running
said "$(where_is "$kept")" "event=started .*$kept"
try 0 '^stint_' token create --account acme --role member --user ann
ann=$(cat "$tmp/out")
try 0 '^stint_' token create --account acme --role admin --user eve
eve=$(cat "$tmp/out")
try 0 'copied' admin backup old.db

# ---- and what came after it ------------------------------------------------------------------------

submit --name late --gpus 1 --limit 1h --sim-run 40m -- true
late=$job
becomes "$late" running
said "$(where_is "$late")" "event=started .*$late"
try 0 '' cancel "$moved"
becomes "$moved" cancelled
try 0 '' cancel "$waits"
becomes "$waits" cancelled
try 0 'made' account create after --guarantee gpu=0
after=$(id_of after)
try 0 '^stint_' token create --account acme --role member --user bob
bob=$(cat "$tmp/out")
eves=$("$stint" token list -o json | python3 -c 'import json, sys; print([t["id"] for t in json.load(sys.stdin)["tokens"] if t["user"] == "eve"][0])')
try 0 '' token revoke "$eves"
cp "$tmp/data/backups/old.db" "$tmp/old.db"

# ---- not by itself: a copy in the store's place is not followed, whatever its epoch -----------------

crash_stintd
mkdir "$tmp/true"
mv "$tmp"/data/stint.db* "$tmp/true/"
cp "$tmp/old.db" "$tmp/data/stint.db"
native
said "$(where_is "$kept")" 'event=status-failed .*409\|event=stale-list'
grep -q "event=\(stop\|killed\|ended\) .*\($kept\|$late\)" "$tmp"/a?.log && fail "an older copy was followed"
crash_stintd

# ---- restored --------------------------------------------------------------------------------------

rm -f "$tmp"/data/stint.db*
cp "$tmp"/true/stint.db* "$tmp/data/"
ran=$((ran + 1))
head -c 100000 "$tmp/old.db" >"$tmp/half.db"
"$STINTD" --data "$tmp/data" --restore "$tmp/half.db" >"$tmp/out" 2>&1 && fail "half a backup was taken"
cmp -s "$tmp/true/stint.db" "$tmp/data/stint.db" || fail "the store has changed: $(cat "$tmp/out")"
"$STINTD" --data "$tmp/data" --restore "$tmp/none.db" >"$tmp/out" 2>&1 && fail "no backup was taken"
# A clock that is behind would number jobs again that were numbered before.
echo -3600000 >"$tmp/clock"
if [ -n "${STINT_FAKE_CLOCK:-}" ]; then
    FAKECLOCK=$tmp/clock LD_PRELOAD=$STINT_FAKE_CLOCK "$STINTD" --data "$tmp/data" --restore "$tmp/old.db" >"$tmp/out" 2>&1 &&
        fail "a clock that is behind was taken"
    grep -q 'clock is .* behind' "$tmp/out" || fail "the clock is not named: $(cat "$tmp/out")"
fi
"$STINTD" --data "$tmp/data" --restore "$tmp/old.db" >"$tmp/out" 2>&1 || fail "it cannot be restored: $(cat "$tmp/out")"
grep -q '2 jobs are on nodes, 1 wait' "$tmp/out" || fail "what it has is not said: $(cat "$tmp/out")"
ls "$tmp"/data/stint.db.before-* >/dev/null || fail "the old store is gone"
native
grep -q 'event=restored state=waiting' "$tmp/stintd.log" || fail "it does not wait: $(cat "$tmp/stintd.log")"
ran=$((ran + 1))
wait_for all_heard || fail "agents are not heard: $("$stint" admin restore)"
preview "d['state'] == 'waiting' and d['plan']"
preview "fate('$kept') == ['adopted'] and task('$kept') == ['adopted']"
preview "fate('$moved') == ['again'] and task('$moved') in ([], ['forgotten']) and d['waiting_jobs'] == 1"
preview "fate('$late') == [] and task('$late') == ['ended']"
try 0 'runs again: ' admin restore
try 0 'does not know its job' admin restore
try 7 'restored from a backup' submit --account acme --name early --gpus 1 --limit 1m -- true
try 7 'restored from a backup' account create early
try 7 'restored from a backup' node drain a1
answers 503 GET /readyz

# Nobody but an owner.
for STINT_TOKEN in "$ann" "$eve"; do
    answers 403 GET /v1/admin/restore
    answers 403 POST /v1/admin/restore '{"plan": "x"}'
done
STINT_TOKEN=$bob
answers 401 GET /v1/admin/restore
STINT_TOKEN=$owner
answers 400 POST /v1/admin/restore '{}'
answers 400 POST /v1/admin/restore '{"plan": "x", "force": true}'
answers 409 POST /v1/admin/restore '{"plan": "00000000000000000000000000000000"}'
try 2 'give --yes' admin restore accept

# Killed while it waits, it waits.
crash_stintd
native
ran=$((ran + 1))
wait_for all_heard || fail "agents are not heard again"
preview "d['state'] == 'waiting' and fate('$kept') == ['adopted'] and task('$late') == ['ended']"
ended "$kept" && fail "it was ended while nothing was accepted"
ended "$late" && fail "it was ended before anybody said so"
is "$kept" running || fail "it is $(state_of "$kept")"

# Killed just behind the owner's word, it goes on by itself.
answers 200 POST /v1/admin/restore "{\"plan\": \"$(plan_of)\"}"
crash_stintd
native
ran=$((ran + 1))
wait_for restored_is none || fail "it does not end: $("$stint" admin restore)"
try 5 'no restore waits' admin restore accept --yes
answers 409 POST /v1/admin/restore '{"plan": "00000000000000000000000000000000"}'
ran=$((ran + 1))
wait_for ended "$late" || fail "what the store does not know goes on"
becomes "$moved" running
is "$waits" pending || fail "it is $(state_of "$waits")"
is "$kept" running || fail "it is $(state_of "$kept")"
try 0 '' cancel "$waits"
ended "$kept" && fail "what was adopted was ended"
try 4 'no job' show "$late"
answers 200 GET /readyz

# ---- no number comes back -----------------------------------------------------------------------------

submit --name next --gpus 1 --limit 1h --sim-run 40m -- true
[ "$job" != "$late" ] || fail "the number of a job came back"
becomes "$job" running
try 0 'made' account create fresh --guarantee gpu=0
[ "$(id_of fresh)" -gt "$after" ] || fail "account fresh is $(id_of fresh), and $after was another's"
STINT_TOKEN=$bob try 8 '' ps
STINT_TOKEN=$eve try 0 '' ps
ran=$((ran + 1))
cat "$tmp"/a?.log | sed -n 's/.*event=started .*job=\([^ ]*\) stay=\([0-9]*\) task=\([0-9]*\).*/\1 \2 \3/p' | sort >"$tmp/starts"
[ -s "$tmp/starts" ] || fail "no starts are told: $(grep -h event=started "$tmp"/a?.log | head -n 2)"
[ -z "$(uniq -d "$tmp/starts")" ] || fail "started twice: $(uniq -d "$tmp/starts")"
grep "^$moved " "$tmp/starts" | awk '$2 > 16 { ok = 1 } END { exit !ok }' || fail "its stay came back: $(grep "^$moved " "$tmp/starts")"
try 0 '' audit --verify
try 0 'store.restore' audit --what store
try 0 '' admin reconcile
nothing_refused

# The books say so, in what everybody can verify.
try 0 'Restored on .* from a backup of ' bill --account acme
try 0 '' bill --account acme -o file
cp "$tmp/out" "$tmp/bill"
try 0 'were restored on .* from a backup of .* is void' bill verify "$tmp/bill"
sed 's/"kind":"restored"/"kind":"close"/' "$tmp/bill" >"$tmp/forged"
try 9 'not right' bill verify "$tmp/forged"

# ---- again, and what ended meanwhile is over ---------------------------------------------------------

submit --name ends --gpus 1 --limit 1h --sim-run 15s -- true
ends=$job
becomes "$ends" running
try 0 'copied' admin backup second.db
crash_stintd
ran=$((ran + 1))
wait_for ended "$ends" || fail "it does not end"
"$STINTD" --data "$tmp/data" --restore "$tmp/data/backups/second.db" >"$tmp/out" 2>&1 || fail "not restored again: $(cat "$tmp/out")"
native
ran=$((ran + 1))
wait_for all_heard || fail "agents are not heard"
# Its last lines come first.
over() { "$stint" admin restore | grep -q ' 1 over'; }
wait_for over || fail "its end is not told: $("$stint" admin restore)"
preview "fate('$ends') == ['adopted'] and task('$ends') == ['over'] and fate('$kept') == ['adopted']"
try 0 'stintd decides again' admin restore accept --yes
becomes "$ends" 'done'
is "$kept" running || fail "it is $(state_of "$kept")"
[ "$(grep -h "event=started .*$kept" "$tmp"/a?.log | wc -l)" -eq 1 ] || fail "it was started again"
try 0 '' admin reconcile
nothing_refused
stop_stintd
ran=$((ran + 1))
"$STINTD" --data "$tmp/data" --check-store >"$tmp/out" 2>&1 || fail "the store: $(cat "$tmp/out")"
done_testing
