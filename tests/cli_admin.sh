#!/bin/sh
# Accounts, quotas, tokens, users, nodes, pools, types, events, the audit log and backups, as admins
# and owners meet them. $1 is the program.
set -u
. "$(dirname "$0")/lib/stintd.sh"
start_stintd
as root

# ---- accounts ------------------------------------------------------------------------------

try 0 '^vision  *acme  *gpu 48' account list
try 0 '^name,parent,guarantee' account list -o csv
try 0 '^Guarantee  *gpu 48' account show vision
try 4 'there is no account "visio" (did you mean vision?)' account show visio
try 4 'did you mean speech' quota speec
try 4 'did you mean vision' account set vison --weight 2
try 0 'account robotics made' account create robotics --parent acme --guarantee gpu=8,h100=4 \
    --max gpu=16 --weight 2 --job-limits gpu=8,run=24h --min-run 10m
try 0 '"weight":2' account show robotics -o json
json 'd["guarantee"] == {"gpu": 8, "h100": 4} and d["limits"]["job"] == {"gpu": 8, "run_seconds": 86400}'
try 5 'robotics' account create robotics --parent acme
try 2 'NAME=AMOUNT' account create other --guarantee 8
try 2 'give a name' account create
try 0 'account robotics changed' account set robotics --weight 3
try 0 '"weight":3' account show robotics -o json
json 'd["guarantee"] == {"gpu": 8, "h100": 4} and d["version"] == 2'
try 5 'changed by somebody else' account set robotics --weight 4 --if-version 1
try 0 'robotics changed' account set robotics --weight 4 --if-version 2
try 2 'what shall change' account set robotics
try 0 'robotics changed' account set robotics --booking-limits gpu_hours=512,length=3d
try 0 '^Limits of bookings  *gpu.hours 512' account show robotics
try 0 'robotics changed' account set robotics --booking-limits concurrent=4,length=none,gpu_hours=none
try 0 '"booking":{"concurrent":4}' account show robotics -o json
try 2 'hours' account set robotics --booking-limits hours=3
try 0 'pool main changed' pool set main --booking-share 0.5 --booking-horizon 30d
try 0 '^Booking horizon  *30d' pool show main
try 2 'booking_share' pool set main --booking-share 1.5
try 0 'pool main changed' pool set main --booking-share 0 --booking-horizon 0
try 0 '"booking_horizon_seconds":null,"booking_share":null' pool show main -o json
try 6 'guarantee' account set robotics --guarantee gpu=1000
printf 'name: filed\nparent: acme\nweight: 5\n' >"$tmp/account.yaml"
try 0 'made' account create --file "$tmp/account.yaml"
printf 'weight: 6\n' >"$tmp/change.yaml"
try 0 'changed' account set filed --file "$tmp/change.yaml"
try 0 '^Weight  *6' account show filed

try 0 '^vision  *gpu  *48  *48' quota vision
try 0 '^speech  *gpu' quota
try 0 '^account,resource,guarantee' quota vision -o csv
try 0 '"borrowed_gpu"' quota vision -o json
try 0 '^vision  *ada' usage --recent
try 0 'ada' usage vision

# ---- tokens --------------------------------------------------------------------------------

try 0 'ada  *member  *vision' token list
try 0 'ada  *vision  *member' user list
try 2 'user and --role' token create --user lin
try 0 '^stint_' token create --user lin --role member --account vision --label tests --expires 1h
secret=$(cat "$tmp/out")
lin=$(sed -n 's/^token \([^ ]*\) for lin.*/\1/p' "$tmp/err")
STINT_TOKEN=$secret try 0 '^User  *lin' whoami
try 0 "token $lin revoked" token revoke "$lin"
STINT_TOKEN=$secret try 8 'not valid' whoami
try 4 'no token' token revoke "tzzzzzzzz"
try 0 'the secret is in' token create --user lin --role viewer --account vision --save "$tmp/lin.token"
[ "$(stat -c %a "$tmp/lin.token")" = 600 ] || fail "the secret's file can be read by others"
[ ! -s "$tmp/out" ] || fail "the secret is shown although it is saved"
try 5 'cannot be made' token create --user lin --role viewer --account vision --save "$tmp/lin.token"
STINT_TOKEN=$(cat "$tmp/lin.token") try 8 'role' submit --gpus 1 -- true

# ---- removing ------------------------------------------------------------------------------

try 0 'account short made' account create short --parent robotics
try 5 'accounts below it' account remove robotics
try 0 '' image add short-image --folder /srv/short --for short
try 5 'image "short-image" names account short' account remove short
try 0 '' image remove short-image
try 0 'account short removed' account remove short
try 4 'no account' account show short
try 4 'no account' account remove short
try 0 'account short made' account create short --parent robotics
try 5 'cannot be used' account create short --parent acme
try 0 'account short removed' account remove short

# ---- the fleet -----------------------------------------------------------------------------

try 0 '^node16  *ready  *main  *h100  *8' node list
try 0 '^State  *ready' node show node16
try 0 'node node16 is draining' node drain node16
try 0 '^State  *draining' node show node16
try 0 'node node16 is ready' node ready node16
try 0 'node node16 is failed' node fail node16
try 0 '^node16  *failed' node list
try 4 'no node "noed16" (did you mean node16?)' node drain noed16
try 4 'did you mean main' pool show mian
try 0 'type h200 added' type add h200
try 0 '^h200' type list
try 0 'pool secure added' pool add secure --levels whole,mig
try 0 '^secure .* whole, mig' pool list
try 0 'main' pool show main
try 0 '^Allow  *host-image$' pool show main
try 0 '"allow":\[\]' pool show secure -o json
try 0 'pool secure changed' pool set secure --allow host-image --allow host-network --tasks-per-job 2
try 0 '^Allow  *host-image, host-network' pool show secure
try 0 '^Levels  *whole, mig' pool show secure
try 0 '^Tasks per job  *2$' pool show secure
try 0 'pool secure changed' pool set secure --allow none --tasks-per-job 1024
try 0 '"allow":\[\]' pool show secure -o json
try 2 'none of host-image, host-network or rdma' pool set secure --allow everything
try 2 'what shall change' pool set secure
try 0 '^Levels  *whole, mig -> whole$' pool set secure --levels whole --dry-run
grep -q '^pool secure is as it was$' "$tmp/out" || fail "a dry run does not say so: $(cat "$tmp/out")"
try 0 '^Levels  *whole, mig' pool show secure
try 0 'pool secure is so already' pool set secure --levels whole,mig
try 0 '"after":{"name":"secure"' pool set secure --oversubscribe 3 --dry-run -o json
try 2 'oversubscribe' pool set secure --oversubscribe 9 --dry-run
try 4 'did you mean secure' pool set secrue --levels whole --dry-run
try 0 '^Oversubscribe  *2 -> 3$' pool set secure --oversubscribe 3
try 0 '^Oversubscribe  *3 -> 2$' pool set secure --oversubscribe 2
try 4 'did you mean secure' pool set secrue --allow none
try 0 'node big1 added' node add big1 --gpu h200 --gpus 4 --pool secure --rack r9 --block b9
try 0 '"gpus":4' node show big1 -o json
try 4 'no GPU type "nosuch"' node add big2 --gpu nosuch

# ---- events and the audit log --------------------------------------------------------------

"$stint" events --for 1s >"$tmp/out" 2>&1 || fail "events --for: $(cat "$tmp/out")"
"$stint" events -f >"$tmp/events" 2>&1 &
events_pid=$!
"$stint" events -f -o json >"$tmp/events.json" 2>&1 &
follow_pid=$!
listening() {
    curl -s -H "Authorization: Bearer $STINT_TOKEN" "$STINT_URL/metrics" | grep -q '^stint_event_streams 2'
}
wait_for listening || fail "events -f: two streams are not open"
as ada
try 0 'is done' run --name seen --gpus 1 --sim-run 1s -- true
wait_for grep -q 'start .*seen of vision' "$tmp/events" || fail "events: $(cat "$tmp/events")"
wait_for test -s "$tmp/events.json"
kill -INT $events_pid $follow_pid
wait $events_pid || fail "events -f: status"
wait $follow_pid || fail "events -f -o json: status"
head -n 1 "$tmp/events.json" >"$tmp/out"
json '"at" in d and "kind" in d'
try 8 'role' audit
as root
try 0 'account.* robotics ' audit
try 0 '"rows"' audit --limit 2 -o json
json 'len(d["rows"]) == 2'
try 0 'the chain is intact' audit --verify
try 0 'is copied to .*/backups/copy.db' admin backup copy.db
[ -s "$tmp/data/backups/copy.db" ] || fail "backup: no file"
[ "$(stat -c %a "$tmp/data/backups/copy.db")" = 600 ] || fail "backup: others can read it"
try 5 'no backup replaces another' admin backup copy.db
try 2 'without a folder' admin backup ../copy.db
try 2 'without a folder' admin backup "$tmp/copy.db"
try 0 'store.backup *copy.db' audit --limit 5

# ---- rules, sizes, join tokens -------------------------------------------------------------

printf 'function submit(job, who) if not job.limit then return nil, "give a limit" end end\n' >"$tmp/r.lua"
printf 'function submit(\n' >"$tmp/bad.lua"
try 0 'it would be taken' rule check "$tmp/r.lua"
try 2 'bad' rule put bad "$tmp/bad.lua"
try 0 'rule limits is in force' rule put limits "$tmp/r.lua"
as ada
try 6 'rule limits: give a limit' submit --gpus 1 -- true
try 8 'role' rule list
try 8 'role' size put mine gpus=2
as root
try 0 '^limits ' rule list
try 0 'rule limits is removed' rule remove limits
try 4 'there is no rule' rule remove limits
try 0 'size quad is known' size put quad gpus=4 cpu=8
try 2 'KEY=VALUE' size put quad gpus
try 0 '^quad ' size list
as ada
try 0 '' submit --size quad --sim-run 1s -- true
try 0 'GPUs  *4' show "$(cat "$tmp/out")"
as root
try 0 'size quad is removed' size remove quad
try 0 'join token' admin join-token --uses 2 --expires 1d
try 0 'Believed  *yes' admin clock
try 0 "Machine's clock .* -*[0-9]* s ahead" admin clock
try 5 'already' admin clock accept
try 2 'accept, or nothing' admin clock forward

# ---- watching ------------------------------------------------------------------------------

ran=$((ran + 1))
timeout -s INT 4 "$stint" node list --watch >"$tmp/out" 2>&1
[ "$(grep -c '^NAME' "$tmp/out")" -ge 2 ] || fail "--watch: $(cat "$tmp/out")"

done_testing
