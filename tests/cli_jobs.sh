#!/bin/sh
# Jobs as their owners meet them: submit, ps, show, why, logs, cancel, priority, run, arrays, files,
# and what is said when something is wrong. $1 is the program.
set -u
. "$(dirname "$0")/lib/stintd.sh"
start_stintd
as ada

# ---- lists ---------------------------------------------------------------------------------

try 0 '^ID  *NAME  *ACCOUNT' ps
grep -q 'pretrain .* running .* 48 ' "$tmp/out" || fail "ps: pretrain: $(cat "$tmp/out")"
grep -q 'speech' "$tmp/out" && fail "ps: somebody else's job is shown"
try 0 'big .* pending' ps --state pending
grep -q pretrain "$tmp/out" && fail "ps --state: others are shown"
try 0 '^id,name,account,user,state,class,gpus,age,took,where,deadline,priority class,on hold,retry at$' ps -o csv
try 0 '"jobs"' ps -o json
json 'all(j["account"] == "vision" for j in d["jobs"])'
try 0 'sweep-1' ps --name sweep
try 0 'There are more' ps -a --limit 1
try 2 'limit' ps --limit 0
try 2 'did you mean --state' ps --stat x
try 2 'state' ps --state sleeping

# ---- one job -------------------------------------------------------------------------------

big=$("$stint" ps --state pending -o csv | awk -F, '$2 == "big" { print $1 }')
try 0 '^State  *pending' show "$big"
try 0 '^GPUs  *64' show "$big"
try 0 "Job $big is pending" why "$big"
grep -q '^  \* ' "$tmp/out" || fail "why: nothing blocks: $(cat "$tmp/out")"
try 0 'should start' why "$big"
try 0 '"reasons"' why "$big" -o json
try 4 "the newest of that name is $big" show big
try 4 "did you mean $big" show "${big%?}"
try 4 'lists those there are' show 0000000000000000
try 2 'an argument is missing' show
try 2 'one too many' show a b
try 4 'has not started' logs "$big"

# The shell knows the ids.
if command -v bash >/dev/null; then
    ran=$((ran + 1))
    mkdir "$tmp/bin" && ln -s "$(realpath "$stint")" "$tmp/bin/stint"
    "$stint" completion bash >"$tmp/completion"
    # shellcheck disable=SC2016 # for the other shell
    got=$(PATH="$tmp/bin:$PATH" bash -c '. "$1"; COMP_WORDS=(stint why "$2"); COMP_CWORD=2; _stint
        echo "${COMPREPLY[@]}"' bash "$tmp/completion" "${big%??}")
    [ "$got" = "$big" ] || fail "completing the id $big: $got"
fi

# ---- submitting ----------------------------------------------------------------------------

try 0 '"gpus": 2' submit --print --name n --gpus 2 --share 0.25 --type h100,a100 \
    --topology require:block --env A=1 --env B=x=y --label team=x --limit 90m --sim-run 5s \
    --on-preempt checkpoint -- python train.py --lr 3
json 'd["command"] == ["python", "train.py", "--lr", "3"] and d["env"] == {"A": "1", "B": "x=y"}'
json 'd["type"] == ["h100", "a100"] and d["topology"] == {"require": "block"} and d["share"] == 0.25'
json 'd["limit"] == "90m" and d["sim"] == {"run": "5s"} and d["labels"] == {"team": "x"}'
HERE=there try 0 '"HERE": "there"' submit --print --env HERE
try 2 'is not NAME=VALUE' submit --print --env =x
try 2 'require:LEVEL' submit --print --topology block
try 2 'what shall run' submit
try 2 'did you mean --gpus' submit --gpu 1

try 0 '^j' submit --name one --gpus 1 --sim-run 2s -- true
[ "$(wc -l <"$tmp/out")" -eq 1 ] || fail "submit: more than the id on stdout"
one=$(cat "$tmp/out")
try 0 'one' show "$one"
try 2 'only 16 of 100 tasks fit' submit --gpus 8 --tasks 100 -- true
try 4 'there is no account "acme"' submit --account acme --gpus 1 -- true
echo 'gpuz: 1' >"$tmp/typo.yaml"
try 2 'unknown key "gpuz" (did you mean "gpus"?)' submit -f "$tmp/typo.yaml"
try 0 '"batch_size": 8' submit --print --workload finetune --model x --batch-size 8
try 2 '^stint: --topology: "moon" is none of' submit --topology require:moon --gpus 1 -- true

# What somebody wrote into a job does not steer the terminal of who looks at it.
try 0 '^j' submit --gpus 1 --sim-run 1s -- "$(printf 'echo \033[2J')"
try 0 '^Command  *.echo ?\[2J' show "$(cat "$tmp/out")"

cat >"$tmp/job.yaml" <<END
# a job as a file
name: filed
gpus: 1
env: {A: "1"}
sim: {run: 1h}
command: [sleep, "60"]
END
try 0 '"name": "filed"' submit --print -f "$tmp/job.yaml" --gpus 3 --env B=2
json 'd["gpus"] == 3 and d["env"] == {"A": "1", "B": "2"} and d["command"] == ["sleep", "60"]'
try 0 '^j' submit -f "$tmp/job.yaml"
filed=$(cat "$tmp/out")
try 4 'absent.yaml: cannot open' submit -f "$tmp/absent.yaml"
printf 'a: [\n' >"$tmp/bad.yaml"
try 2 'bad.yaml:' submit -f "$tmp/bad.yaml"

# ---- arrays and batches --------------------------------------------------------------------

try 0 '3 jobs submitted, 0 refused' submit --array 3 --name part --gpus 1 --sim-run 1s -- ./part.sh
[ "$(wc -l <"$tmp/out")" -eq 3 ] || fail "array: not three ids"
array=$(sed -n 's/^they are array \([^ ]*\).*/\1/p' "$tmp/err")
try 0 '"STINT_ARRAY_INDEX":"*2"*' show "$(head -n 3 "$tmp/out" | tail -n 1)" -o json
try 0 'Jobs *3' array "$array"
try 0 '3 jobs submitted' submit --workload render --frames 1-10 --chunk 4 --sim-run 1s -- ./frame.sh
array=$(sed -n 's/^they are array \([^ ]*\).*/\1/p' "$tmp/err")
try 0 'Frames *10' array "$array"
try 4 'there is no array' array jzzzzzzzz

# One job of an array goes by its index, wherever a job is named.
try 0 '12 jobs submitted' submit --array 1-12 --name piece --gpus 0 --cpu 0.1 --hold -- ./piece.sh
pieces=$(sed -n 's/^they are array \([^ ]*\).*/\1/p' "$tmp/err")
try 0 'Job  *j' show "${pieces}_1"
try 0 'piece\.1$' show "${pieces}_1"
try 0 'piece\.12$' show "${pieces}_12"
try 0 'on hold' why "${pieces}_11"
try 0 'piece.11) is cancelled' cancel "${pieces}_11"
try 0 'priority 7' priority "${pieces}_2" 7
try 4 "no job with index 13 in array $pieces" show "${pieces}_13"
try 4 'no job' show "${pieces}_x"
try 4 'no job with index 3 in array jzzzzzzzz' cancel jzzzzzzzz_3
try 0 '11  *cancelled' ps --array "$pieces" -a --columns index,state
[ "$(grep -c pending "$tmp/out")" -eq 11 ] || fail "not the jobs of the array: $(cat "$tmp/out")"
try 0 '11 of 12 jobs cancelled' cancel "$pieces"
printf 'jobs: [{gpus: 1, sim: {run: 1s}}, {gpus: 1000}]\n' >"$tmp/two.yaml"
try 2 'job 1: .*1000' submit -f "$tmp/two.yaml"
grep -q '1 jobs submitted, 1 refused' "$tmp/err" || fail "batch: $(cat "$tmp/err")"
try 2 'several jobs' submit -f "$tmp/two.yaml" --gpus 2
try 2 'one job' submit --array 2 --wait --gpus 1 -- true

# ---- changing ------------------------------------------------------------------------------

try 0 "job $big (big) is pending, priority 1" priority "$big" high
try 2 '"urgent" is none of low' priority "$big" urgent
try 0 "job $filed (filed) is cancelled" cancel "$filed"
try 5 'cancelled' cancel "$filed"
try 4 "there is no job" cancel nosuch "$filed"
grep -c '^stint: ' "$tmp/err" | grep -qx 2 || fail "cancel: both failures are told: $(cat "$tmp/err")"

# ---- waiting and following -----------------------------------------------------------------

try 0 'is done' run --gpus 1 --sim-run 1s -- true
grep -q 'started on' "$tmp/out" || fail "run: no log: $(cat "$tmp/out")"
try 7 'failed with status 7' run --gpus 1 --sim-run 1s --sim-exit 7 -- false
try 3 'status 3' submit --wait --gpus 1 --sim-run 1s --sim-exit 3 -- false
try 124 'ended at its time limit' run --gpus 1 --sim-run 1h --limit 1s -- sleep 9
try 0 'started on' logs "$("$stint" submit --gpus 1 --sim-run 30s -- x 2>/dev/null)"

# Ctrl-C asks, a second one cancels.
ran=$((ran + 1))
(exec "$stint" run --gpus 1 --sim-run 1h -- sleep) >"$tmp/out" 2>"$tmp/err" &
run_pid=$!
wait_for grep -q 'is running' "$tmp/err" || fail "run: it does not run: $(cat "$tmp/err")"
kill -INT $run_pid
wait_for grep -q 'Ctrl-C again cancels' "$tmp/err" || fail "run: nothing is asked"
kill -INT $run_pid
wait $run_pid
[ $? -eq 130 ] || fail "run: cancelled, but not status 130: $(cat "$tmp/err")"
grep -q 'is cancelled' "$tmp/err" || fail "run: $(cat "$tmp/err")"

# A run outlives a restart of stintd.
ran=$((ran + 1))
(exec "$stint" run --gpus 1 --sim-run 4s -- sleep) >"$tmp/out2" 2>"$tmp/err2" &
run_pid=$!
wait_for grep -q 'is running' "$tmp/err2" || fail "run: it does not run: $(cat "$tmp/err2")"
stop_stintd
wait_for grep -q 'trying again' "$tmp/err2" || fail "run: nothing is said of the loss"
start_stintd
wait $run_pid
[ $? -eq 0 ] || fail "run: after a restart: $(cat "$tmp/err2")"

done_testing
