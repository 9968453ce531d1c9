#!/bin/sh
# `stint sim fragmentation` as its users meet it: tiny fleets with known answers, the same seed twice,
# and bad files, which are refused with status 2 and FILE:LINE. $1 is the program.
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

# field NAME: a number of the last answer.
field() {
    sed -n "s/.*\"$1\": \([-0-9.]*\).*/\1/p" "$tmp/out"
}

play() {
    ran=$((ran + 1))
    "$stint" sim fragmentation --nodes "$tmp/nodes.csv" --pods "$tmp/pods.csv" -o json "$@" \
        >"$tmp/out" 2>"$tmp/err" || fail "$*: $(cat "$tmp/err")"
}

# refused REGEX ARGUMENTS: status 2, nothing on stdout, one line on stderr.
refused() {
    want=$1
    shift
    ran=$((ran + 1))
    "$stint" sim fragmentation "$@" >"$tmp/out" 2>"$tmp/err"
    status=$?
    [ $status -eq 2 ] || fail "$*: exit status $status, not 2"
    [ ! -s "$tmp/out" ] || fail "$*: something on stdout"
    [ "$(wc -l <"$tmp/err")" -eq 1 ] || fail "$*: $(cat "$tmp/err")"
    grep -Eqe "$want" "$tmp/err" || fail "$*: \"$(cat "$tmp/err")\" is not $want"
}

# Whole GPUs on nodes with CPU to spare: every policy fills everything.
cat >"$tmp/nodes.csv" <<END
sn,cpu_milli,memory_mib,gpu,model
n0,64000,262144,4,T4
n1,64000,262144,4,T4
n2,64000,262144,8,G2
END
cat >"$tmp/pods.csv" <<END
name,cpu_milli,memory_mib,num_gpu,gpu_milli
p0,1000,1024,1,1000
p1,2000,1024,1,1000
END
for policy in stint fgd bestfit random; do
    play --policy $policy --seed 7
    [ "$(field allocated_pct_at_130)" = 100.0000 ] || fail "$policy: $(cat "$tmp/out")"
    [ "$(field unallocated_pct_at_100)" = 0.0000 ] || fail "$policy: $(cat "$tmp/out")"
    [ "$(field decisions)" = 21 ] || fail "$policy: $(cat "$tmp/out")"
    [ "$(field seed)" = 7 ] || fail "$policy: $(cat "$tmp/out")"
    grep -q "\"policy\": \"$policy\"" "$tmp/out" || fail "$policy: $(cat "$tmp/out")"
done

# Pods of six tenths never share: four tenths of every GPU stay unused.
sed -i 's/1,1000$/1,600/' "$tmp/pods.csv"
for policy in stint fgd bestfit random; do
    play --policy $policy
    [ "$(field allocated_pct_at_130)" = 60.0000 ] || fail "$policy: $(cat "$tmp/out")"
done

# Half the pods insist on G2, which is half the fleet, so the others must leave it to them.
cat >"$tmp/pods.csv" <<END
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec
p0,1000,1024,1,1000,
p1,1000,1024,1,1000,"G2"
END
for i in 1 2 3 4 5 6 7 8 9 10; do
    sed "s/^n\([0-9]\),/n$i\1,/" "$tmp/nodes.csv" | tail -n 3
done >"$tmp/more"
cat "$tmp/more" >>"$tmp/nodes.csv"
for i in 1 2 3 4 5 6 7; do
    tail -n +2 "$tmp/pods.csv" >"$tmp/more"
    cat "$tmp/more" >>"$tmp/pods.csv"
done
play --policy stint
stint_left=$(field unallocated_pct_at_100)
play --policy bestfit
bestfit_left=$(field unallocated_pct_at_100)
awk "BEGIN { exit !($stint_left <= 8 && $stint_left < $bestfit_left) }" ||
    fail "half insist on G2: $stint_left with stint, $bestfit_left with bestfit"

# One seed, one answer; the table says the same.
play --seed 3
first="$(field unallocated_pct_at_100) $(field allocated_pct_at_130)"
play --seed 3
[ "$first" = "$(field unallocated_pct_at_100) $(field allocated_pct_at_130)" ] || fail "seed 3 twice"
"$stint" sim fragmentation --nodes "$tmp/nodes.csv" --pods "$tmp/pods.csv" --seed 3 >"$tmp/out" ||
    fail "the table"
grep -q '^stint  *3 ' "$tmp/out" || fail "the table: $(cat "$tmp/out")"

good_nodes=$tmp/nodes.csv
good_pods=$tmp/pods.csv
bad_nodes() {
    printf '%b' "$1" >"$tmp/bad.csv"
    refused "bad.csv:$2" --nodes "$tmp/bad.csv" --pods "$good_pods"
}
bad_pods() {
    printf '%b' "$1" >"$tmp/bad.csv"
    refused "bad.csv:$2" --nodes "$good_nodes" --pods "$tmp/bad.csv"
}
heads='cpu_milli,memory_mib,gpu,model\n'
podheads='cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n'
bad_nodes '' '1: the file is empty'
bad_nodes 'cpu_milli,memory_mib,gpu\n1,1,1\n' '1: the heading model is missing'
bad_nodes "${heads}1000,1024,1\n" '2: 3 fields, but the heading has 4'
bad_nodes "${heads}1000,1024,1,T4\n1000,x,1,T4\n" '3: memory_mib: '
bad_nodes "${heads}1000,1024,99,T4\n" '2: gpu: '
bad_nodes "${heads}1000,1024,1,\n" '2: a model without a name'
bad_nodes "${heads}1000,1024,0,T4\n" '[23]: the nodes have no GPUs'
bad_nodes "${heads}1000,\"1024,1,T4\n" '2: the quote'
bad_nodes "$heads$(for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17; do
    printf '1000,1024,1,m%s\\n' $i
done)" '18: more than 16 models'
printf '%b' "${heads}1000,1024,1,T 4\n" >"$tmp/bad.csv"
refused "GPU type's name" --nodes "$tmp/bad.csv" --pods "$good_pods" # the scheduler's words
bad_pods "${podheads}-1,1,1,1000,\n" '2: cpu_milli: '
bad_pods "${podheads}1,1,1,1001,\n" '2: gpu_milli: '
bad_pods "${podheads}1,1,1,0,\n" '2: num_gpu is 1, but gpu_milli is 0'
bad_pods "${podheads}1,1,0,0,\n" '[23]: the pods ask for no GPU'
bad_pods "${podheads}1,1,1,1000,T4||G2\n" '2: a model without a name'
refused '--nodes FILE is missing' --pods "$good_pods"
refused '--pods FILE is missing' --nodes "$good_nodes"
refused 'stint, fgd, bestfit or random, not "best"' --nodes "$good_nodes" --pods "$good_pods" \
    --policy best
refused 'option --seed' --nodes "$good_nodes" --pods "$good_pods" --seed -1

echo "$ran runs, $failed failed"
[ $failed -eq 0 ]
