# For tests of stint-agent, to be sourced behind lib/stintd.sh: a stintd whose nodes have agents, and
# agents on the loopback.
#
#   start_native                 # stintd, an account, a join token in $tmp/join
#   start_agent n1 --exec sim    # node n1, eight simulated H100; its log is $tmp/n1.log
#   crash_agent n1               # SIGKILL
#   is JOB STATE                 # for wait_for
agents=

if [ -z "${STINT_AGENT:-}" ]; then
    echo "stint-agent is not built here"
    exit 77
fi

# Agents go first, then what they ran, then stintd.
finish_agents() {
    for a in $agents; do
        kill "$(cat "$tmp/$a.pid")" 2>/dev/null && wait "$(cat "$tmp/$a.pid")" 2>/dev/null
    done
    if grep -h -e 'ERROR: .*Sanitizer' -e 'runtime error' -e 'assertion failed' "$tmp"/*.log; then
        echo "a program was not well"
        finish
        exit 1
    fi
    # Networks of tenants stay mounted for their next task.
    umount -l "$tmp"/*/run/net/* 2>/dev/null
    finish
}
trap finish_agents EXIT

# start_native [LINE...]: more lines for the configuration.
start_native() {
    cat >"$tmp/stintd.yaml" <<END
engine: native
agent_lease: ${lease:-30s}
rate: 100000
policy: {notice: 0s, grace: 6s, min_run: 0s, cooldown: 0s}
END
    native
    STINT_TOKEN=$(cat "$tmp/data/owner.token")
    export STINT_TOKEN
    try 0 'main' pool add main
    try 0 'made' account create acme --guarantee gpu=8
    try 0 'made' account create other --guarantee gpu=8
    ask_join 600
}

# Starts stintd, or starts it again where it was.
native() {
    : >"$tmp/stintd.log"
    "$STINTD" --data "$tmp/data" --config "$tmp/stintd.yaml" --listen "127.0.0.1:${port:-0}" \
        >>"$tmp/stintd.log" 2>&1 &
    stintd_pid=$!
    if ! wait_for grep -q '^event=listening' "$tmp/stintd.log"; then
        echo "stintd does not start:"
        cat "$tmp/stintd.log"
        exit 1
    fi
    port=$(sed -n 's/^event=listening.* port=\([0-9]*\).*/\1/p' "$tmp/stintd.log" | tail -n 1)
    export STINT_URL="http://127.0.0.1:$port"
}

crash_stintd() {
    kill -9 "$stintd_pid"
    wait "$stintd_pid" 2>/dev/null
    stintd_pid=
}

ask_join() {
    try 0 '^stint_' admin join-token --pool main --uses "$1"
    cp "$tmp/out" "$tmp/join"
}

# start_agent NAME [OPTION...]
start_agent() {
    agent=$1
    shift
    "$STINT_AGENT" --server "$STINT_URL" --join-token-file "$tmp/join" --data "$tmp/$agent" \
        --name "$agent" --address 127.0.0.1 --sim h100x8 --grace 2s "$@" >>"$tmp/$agent.log" 2>&1 &
    echo $! >"$tmp/$agent.pid"
    agents="$agents $agent"
}

crash_agent() {
    kill -9 "$(cat "$tmp/$1.pid")"
    wait "$(cat "$tmp/$1.pid")" 2>/dev/null
}

# submit ARGUMENT...: sets job.
submit() {
    try 0 '^j' submit --account acme "$@"
    job=$(cat "$tmp/out")
}

state_of() {
    "$stint" show "$1" -o json | python3 -c 'import json, sys; print(json.load(sys.stdin)["state"])'
}

is() {
    [ "$(state_of "$1")" = "$2" ]
}

node_is() {
    "$stint" node list -o json | python3 -c 'import json, sys
rows = json.load(sys.stdin)["nodes"]
sys.exit(not any(n["name"] == sys.argv[1] and n["state"] == sys.argv[2] for n in rows))' "$1" "$2"
}

# becomes JOB STATE: within ten seconds, or it is a failure.
becomes() {
    ran=$((ran + 1))
    wait_for is "$1" "$2" || fail "job $1 is $(state_of "$1"), not $2: $("$stint" show "$1")"
}

node_becomes() {
    ran=$((ran + 1))
    wait_for node_is "$1" "$2" || fail "node $1 is not $2: $("$stint" node list)"
}

# said NODE TEXT: in the agent's log, soon.
said() {
    ran=$((ran + 1))
    wait_for grep -q -e "$2" "$tmp/$1.log" || fail "$1 has not said \"$2\": $(tail -n 5 "$tmp/$1.log")"
}
