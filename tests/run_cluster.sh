#!/bin/sh
# The cluster of `make run`: where containers can be run this machine is a node whose jobs are real, and
# the rest stays simulated; where they cannot, one line says so and why. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
built=$(dirname "$STINT_AGENT")

# up BUILD: starts it on $tmp/run, as it was left there.
up() {
    : >"$tmp/said" # the shell in the background may be late with that
    LISTEN=127.0.0.1:0 "$STINT_SOURCE/tools/run" "$1" "$tmp/run" >"$tmp/said" 2>"$tmp/complained" &
    run_pid=$!
    more_pids="$more_pids $run_pid"
    wait_for grep -q '^Execution\|^Jobs on' "$tmp/said" || wait_for grep -q '^Execution\|^Jobs on' "$tmp/said" ||
        fail "it does not come up: $(cat "$tmp/said" "$tmp/complained")"
    STINT_URL=$(sed -n 's/^Stint is at \(http[^,]*\),.*/\1/p' "$tmp/said")
    STINT_TOKEN=$(awk '$1 == "ada" { print $4 }' "$tmp/run/tokens")
    export STINT_URL STINT_TOKEN
}
# Nothing of it stays; who watches the lease looks twice a second whether it is needed.
down() {
    kill "$run_pid"
    wait "$run_pid" || fail "it ends with status $?"
    wait_for nothing_is_left || fail "something is left: $(pgrep -af "$tmp/run")"
}
nothing_is_left() { ! pgrep -f "$tmp/run" >"$tmp/left"; }

# ---- without containers: a doctor that finds something ----------------------------------------------

mkdir "$tmp/poor"
ln -s "$built/stint" "$built/stintd" "$tmp/poor/"
cat >"$tmp/poor/stint-agent" <<'EOF'
#!/bin/sh
echo "ok    root           runs as root"
echo "BAD   runtime        no OCI runtime is installed; install crun or runc"
exit 1
EOF
chmod +x "$tmp/poor/stint-agent"
up "$tmp/poor"
why=$([ "$(id -u)" -eq 0 ] && echo 'no OCI runtime' || echo 'need root')
ran=$((ran + 1))
[ "$(grep -c "^Execution is simulated, no job really runs: .*$why" "$tmp/said")" -eq 1 ] ||
    fail "it does not say that nothing runs: $(tail -n 3 "$tmp/said")"
submit_line=$(sed -n 's/^  [^ ]*stint \(submit .*\)/\1/p' "$tmp/said" | head -n 1)
# shellcheck disable=SC2086 # words, as a person would type them
try 0 '^j' $submit_line
job=$(cat "$tmp/out")
becomes "$job" running
try 0 'node[0-9]' show "$job"
down

# ---- with containers ------------------------------------------------------------------------------

if "$STINT_AGENT" doctor --data "$tmp/doctor" --sim h100x1 >"$tmp/doctor.out" 2>&1; then
    up "$built"
    grep -q '^Stint is at .* as it was left' "$tmp/said" || fail "it has forgotten the first start"
    grep -q 'node "here"' "$tmp/said" || fail "this machine is no node: $(tail -n 3 "$tmp/said")"
    grep -q 'stint_' "$tmp/complained" && fail "a token is in what it says"
    # shellcheck disable=SC2016 # for the shell inside
    try 0 '^j' submit --pool here --name real --gpus 1 --limit 1m -- sh -c 'echo real $CUDA_VISIBLE_DEVICES; id -u'
    job=$(cat "$tmp/out")
    becomes "$job" done
    writes "$job" '^real GPU-'
    try 0 '^Where  *here' show "$job"
    try 0 'is made' volume create notes --size 1Gi
    echo 'to and fro' >"$tmp/note"
    try 0 'copied 1 files' cp "$tmp/note" notes:
    try 0 '^to and fro' run --pool here --gpus 0 --limit 1m --volume notes:/notes -- cat /notes/note
    try 0 '^j' submit --name paper --gpus 1 --limit 1h -- /no/such/program
    job=$(cat "$tmp/out")
    becomes "$job" running
    try 0 'node[0-9]' show "$job"
    down
    up "$built"
    node_becomes here ready
    down
    ran=$((ran + 1))
    rm -rf "$tmp/run" || fail "it cannot be removed"
else
    echo "no containers here: only the fallback was tried"
fi
done_testing
