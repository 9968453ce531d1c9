#!/bin/sh
# `stint sim gen` as its users meet it: what it tells, the files it writes, the same ones twice, and
# bad arguments. $1 is the program.
set -u
stint=$1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
failed=0
ran=0

fail() {
    echo "FAILED: $*"
    failed=$((failed + 1))
}

# run STATUS ARGUMENT...: into the files out and err.
run() {
    want=$1
    shift
    ran=$((ran + 1))
    "$stint" sim gen "$@" >out 2>err
    status=$?
    [ $status -eq "$want" ] || fail "$*: exit status $status, not $want: $(tail -n 3 err)"
}

# has FILE TEXT
has() {
    grep -q -e "$2" "$1" || fail "$1 lacks \"$2\": $(cut -c 1-300 "$1")"
}

# Without a folder it only tells.
run 0 --gpus 512 --teams 30 --jobs 2000
has out '^512 GPUs in 64 nodes: '
has out '^30 teams, promised 4[0-9][0-9] GPUs, 8[0-9]% of the fleet'
for kind in train tune sweep debug notebook serve; do
    has out "^$kind  *[0-9]"
done
has out '^all  *2000  *100.0'
has out '^(10 more) '
has out '^Offered load: 9[3-7]\.[0-9]% of the fleet over 7 days\.$'
[ "$(ls | wc -l)" -eq 2 ] || fail "something was written: $(ls)"

# With one it writes; twice the same, with another seed another.
run 0 --gpus 256 --jobs 800 --days 3 --load 60 --seed 9 -d a
has out '^Wrote a/world.yaml$'
has out '^Wrote a/jobs.csv$'
has out '^Offered load: \(59\|60\|61\)\.[0-9]% '
run 0 --gpus 256 --jobs 800 --days 3 --load 60 --seed 9 -d b
cmp -s a/world.yaml b/world.yaml || fail "the same seed gives another world"
cmp -s a/jobs.csv b/jobs.csv || fail "the same seed gives other jobs"
run 0 --gpus 256 --jobs 800 --days 3 --load 60 --seed 10 -d b
cmp -s a/jobs.csv b/jobs.csv && fail "another seed gives the same jobs"
[ "$(wc -l <a/jobs.csv)" -eq 801 ] || fail "jobs.csv has $(wc -l <a/jobs.csv) lines"
awk -F, 'NR == 1 { n = NF } NF != n { exit 1 }' a/jobs.csv || fail "jobs.csv has uneven rows"
[ "$(head -n 1 a/jobs.csv)" = "name,account,user,submit,run,limit,tasks,gpus,type,level,share,mig,\
vram,cpu,ram,topology,topology_required,priority,yield" ] || fail "$(head -n 1 a/jobs.csv)"

# The world is a scenario without a timeline.
ran=$((ran + 1))
"$stint" sim run a/world.yaml >out 2>err || fail "world.yaml does not play: $(cat out err)"

# Bad arguments: one line, status 2; a folder that cannot be made: 7.
for bad in "--gpus 7" "--jobs 0" "--load x" "--teams" "--gpu 8" "extra" "--jobs 5 --gpus 500000"; do
    # shellcheck disable=SC2086
    run 2 $bad
    [ ! -s out ] || fail "$bad: something on stdout"
    [ "$(wc -l <err)" -eq 1 ] || fail "$bad: $(cat err)"
done
has err '5 jobs are too few'
run 7 -d no/such/folder
has err 'cannot make the folder no/such/folder'

[ "$failed" -eq 0 ] && echo "$ran runs hold"
[ "$failed" -eq 0 ]
