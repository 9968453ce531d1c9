#!/bin/sh
# `stint sim trace` as its users meet it: small traces of every format with known answers, the same
# hash twice, every output, and bad input, which is refused with status 2. $1 is the program.
set -u
stint=$1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0
ran=0

fail() {
    echo "FAILED: $*"
    failed=$((failed + 1))
}

play() {
    ran=$((ran + 1))
    "$stint" sim trace "$@" >"$tmp/out" 2>"$tmp/err" || fail "$*: $(cat "$tmp/err")"
    [ ! -s "$tmp/err" ] || fail "$*: on stderr: $(cat "$tmp/err")"
}

# has TEXT: a line of the last answer has it.
has() {
    grep -qFe "$1" "$tmp/out" || fail "no \"$1\" in: $(cat "$tmp/out")"
}

# refused REGEX ARGUMENTS: status 2 (or 4 for what is not there), nothing on stdout, one line on
# stderr.
refused() {
    want=$1
    shift
    ran=$((ran + 1))
    "$stint" sim trace "$@" >"$tmp/out" 2>"$tmp/err"
    status=$?
    [ $status -eq 2 ] || [ $status -eq 4 ] || fail "$*: exit status $status"
    [ ! -s "$tmp/out" ] || fail "$*: something on stdout"
    [ "$(wc -l <"$tmp/err")" -eq 1 ] || fail "$*: $(cat "$tmp/err")"
    grep -Eqe "$want" "$tmp/err" || fail "$*: \"$(cat "$tmp/err")\" is not $want"
}

# Muri: three jobs that each need the whole cluster, shortest first once the first is through.
cat >"$tmp/muri.csv" <<END
job_id,num_gpu,submit_time,duration
0,16,0,100000
1,16,1000,50000
2,16,2000,10000
END
cat >"$tmp/muri_nodes.csv" <<END
num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node
1,2,8,92,350
END
muri="--format muri --jobs $tmp/muri.csv --nodes $tmp/muri_nodes.csv"
play $muri -o json --csv-jobs "$tmp/jobs.csv" --csv-samples "$tmp/samples.csv" --html "$tmp/x.html"
has '"done": 3'
has '"mean": 135.666667,' # 100, 149 and 158
grep -q '^job-1,all,16,1,50,,100,150,done,0,50,0$' "$tmp/jobs.csv" || fail "$(cat "$tmp/jobs.csv")"
[ "$(wc -l <"$tmp/jobs.csv")" -eq 4 ] || fail "rows of jobs: $(cat "$tmp/jobs.csv")"
head -n 1 "$tmp/samples.csv" | grep -q '^at,capacity,allocated,.*,held all,entitled all$' ||
    fail "$(cat "$tmp/samples.csv")"
[ -s "$tmp/x.html" ] || fail "no page"
if command -v python3 >/dev/null; then
    python3 -m json.tool "$tmp/out" >/dev/null || fail "bad JSON"
fi
play $muri -o json --policy order=shortest --declare exact
has '"mean": 122.333333,' # 100, 159 and 108
play $muri -o json --policy order=shortest,swap=true,notice=0,grace=1s,min_run=0,cooldown=0 --declare exact
has '"preemptions": 2,' # at 1 s by the second, which has to leave at 2 s for the third
has '"mean": 76.666667,' # 160, 60 and 10
play $muri --declare exact --tell 1s # told 100 s and 150 s, and so it is
has 'estimates      2 starts, 0.0 % later than said, off by 0s in the median'
has '0 with an interval'
play $muri -o json --declare exact --tell 1s
has '"told": 2,'
play $muri -o json --declare exact
grep -q '"estimates"' "$tmp/out" && fail "estimates nobody asked for"
refused 'option --tell: ' $muri --tell soon
play $muri -o json --scale-time 1.5
has '"mean": 204.0,' # 150, 224 and 238
play $muri --declare 0.5
has '0 done, 3 timed out'
first=$(sed -n 's/^hash *//p' "$tmp/out")
play $muri --declare 0.5
[ -n "$first" ] && [ "$first" = "$(sed -n 's/^hash *//p' "$tmp/out")" ] || fail "hash twice"
play $muri --until 60s
has '0 done, 0 timed out, 0 cancelled, 3 not finished'

# Philly: two clusters of a node each; b's job does not wait for a's as it would together.
cat >"$tmp/vc.csv" <<END
vc,node num
a,4
b,4
END
cat >"$tmp/philly.csv" <<END
timestamp,duration,num_gpus,gpu_time,cluster
2017-10-01 00:00:00,1000.0,8,0,a
2017-10-01 00:00:01,1000.0,8,0,a
2017-10-01 00:00:02,10.0,8,0,b
2017-10-01 00:00:03,10.0,8,0,nobody
2017-11-01 00:00:00,10.0,8,0,b
END
philly="--format philly --jobs $tmp/philly.csv --nodes $tmp/vc.csv --divide 4"
play $philly --to 2017-11-01 --compare-private --policy notice=0,min_run=0 -o json
has '"dropped": 1,'
has '"gpus": 16,'
has '"name": "private_fifo"'
has '"later": 0,'
play $philly --to 2017-11-01 --compare-private
has 'the first because the cluster "nobody" has no nodes'
has 'private_backfill'
play $philly --quota none --from 2017-11-01
has 'philly: 1 jobs of 2 accounts'

# Openb: one pod shares a GPU, one never ran.
cat >"$tmp/nodes.csv" <<END
sn,cpu_milli,memory_mib,gpu,model
n0,64000,262144,2,T4
END
cat >"$tmp/pods.csv" <<END
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time,scheduled_time
p0,1000,1024,1,500,,0,100,0
p1,1000,1024,1,1000,T4,0,100,50
p2,1000,1024,1,1000,,0,100,
END
play --format openb --jobs "$tmp/pods.csv" --nodes "$tmp/nodes.csv"
has '1 rows make no job; the first because pod p2 was never scheduled'
has '2 done'

# One's own: the world's policy counts, the command line's more.
cat >"$tmp/world.yaml" <<END
policy: {notice: 10s, grace: 60s, min_run: 0, cooldown: 0}
fleet: [{count: 1, gpu: h100, gpus: 8}]
accounts: [{name: owner, guarantee: {gpu: 8}}, {name: guest}]
END
cat >"$tmp/own.csv" <<END
name,account,submit,run,gpus,yield
g,guest,0,100,8,checkpoint
o,owner,20,30,8,checkpoint
END
own="--format csv --world $tmp/world.yaml --jobs $tmp/own.csv"
play $own --save-cost 5s --restore-cost 7s --csv-jobs "$tmp/jobs.csv"
grep -q '^g,guest,8,0,100,,0,142,done,1,112,12$' "$tmp/jobs.csv" || fail "$(cat "$tmp/jobs.csv")"
play "$tmp/own.csv" --world "$tmp/world.yaml"
has '2 done'
play $own --save-cost 100ms/GiB --policy notice=0,grace=1m --csv-jobs "$tmp/jobs.csv"
grep -q '^o,owner,8,20,30,,28,58,done,0,30,0$' "$tmp/jobs.csv" || fail "$(cat "$tmp/jobs.csv")"
play $own --policy notice=0 --compare-private -o json
has '"misfits": 1' # the guest has no node of its own

# Planned ahead: a booking keeps its place and lends it until then; a fence keeps it and lends nothing.
cat >"$tmp/planned.csv" <<END
name,account,submit,run,gpus,yield
g,guest,0,10000,8,checkpoint
p,owner,7200,600,8,checkpoint
END
echo p >"$tmp/names"
planned="--format csv --world $tmp/world.yaml --jobs $tmp/planned.csv --bookings-lead 1h"
planned="$planned --policy booking_share=1,booking_account_share=1,booking_reserve=0"
play $planned --bookings 20% --csv-jobs "$tmp/jobs.csv"
has '1 jobs, 1 kept a place ahead, 0 could not, 1 started on time; mean completion 600 s, of the rest 10'
grep -q '^p,owner,8,7200,600,,7200,7800,done,0,600,0$' "$tmp/jobs.csv" || fail "$(cat "$tmp/jobs.csv")"
play $planned --bookings "$tmp/names" --bookings-as fenced
has '1 started on time; mean completion 600 s, of the rest 14190 s'
has '8 GPU-hours stood idle until they came'
play $planned --bookings "$tmp/names" --bookings-as jobs
has '0 kept a place ahead, 0 could not, 0 started on time; mean completion 610 s, of the rest 10600 s'
refused '"0%" is not a share from 1% to 100%' $planned --bookings 0%
refused 'a file with names of jobs; cannot read' $planned --bookings "$tmp/none"
refused 'no job of the trace can be booked' $own --bookings 20%
refused 'it is booked, fenced or jobs, not "kept"' $planned --bookings 20% --bookings-as kept

# Bad input.
refused '^stint: sim trace: --format is missing' --jobs "$tmp/own.csv"
refused '--format: it is openb, muri, philly or csv, not "slurm"' --format slurm --jobs x
refused '--format muri needs --jobs' --format muri
refused '--format philly needs --nodes' --format philly --jobs "$tmp/philly.csv"
refused 'the jobs are given twice' $own "$tmp/own.csv"
refused '--format csv needs --world' --format csv --jobs "$tmp/own.csv"
refused '--format csv takes no --nodes' $own --nodes "$tmp/nodes.csv"
refused 'are for --format philly' $own --divide 2
refused 'muri.csv:1: the heading timestamp is missing' --format philly --jobs "$tmp/muri.csv" \
    --nodes "$tmp/vc.csv"
refused 'there are no jobs to play' $philly --from 2018-01-01
refused '--from: "soon" is not a moment' $philly --from soon
refused '--quota: it is floors or none' $philly --quota some
refused 'no key "sawp" \(did you mean swap\?\)' $muri --policy sawp=true
refused 'policy order: "shortes" is not one of its values \(did you mean shortest\?\)' $muri \
    --policy order=shortes
refused 'policy swap: it is true or false' $muri --policy swap=1
refused 'policy notice: .*out of range' $muri --policy notice=2d
refused 'KEY=VALUE' $muri --policy swap
refused '--declare is exact, none or a factor' $muri --declare often
refused '--scale-time: ' $muri --scale-time 0
refused '--scale-time: ' $muri --scale-time 1.2.3
refused '--save-cost: ' $muri --save-cost 5parsecs
refused 'no such file|cannot|No such' --format muri --jobs "$tmp/nothing.csv"
sed 's/^o,owner/o,stranger/' "$tmp/own.csv" >"$tmp/bad.csv"
refused 'bad.csv:3: account: there is no account "stranger"' --format csv --world "$tmp/world.yaml" \
    --jobs "$tmp/bad.csv"
"$stint" sim trace $muri --csv-jobs /nonexistent/x.csv >/dev/null 2>"$tmp/err"
[ $? -eq 7 ] || fail "a file that cannot be written"
grep -q 'cannot write /nonexistent/x.csv' "$tmp/err" || fail "$(cat "$tmp/err")"

echo "$ran runs, $failed failed"
[ $failed -eq 0 ]
