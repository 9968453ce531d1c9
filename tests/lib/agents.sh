# For tests of stint-agent, to be sourced behind lib/stintd.sh: a stintd whose nodes have agents, and
# agents on the loopback.
#
#   start_native                 # stintd, an account, a join token in $tmp/join
#   start_agent n1 --exec sim    # node n1, eight simulated H100; its log is $tmp/n1.log
#   crash_agent n1               # SIGKILL
#   is JOB STATE                 # for wait_for
#   storage_of n1 acme           # the folder of an account's storage on a node
#   need_containers              # skips where real tasks cannot run
#   mounts="$mounts DIR"         # what the test has mounted, to be taken away at its end
agents=
mounts=

if [ -z "${STINT_AGENT:-}" ]; then
    echo "stint-agent is not built here"
    exit 77
fi

# need_containers: ends the test with one line where real tasks cannot run.
need_containers() {
    if ! "$STINT_AGENT" doctor --data "$tmp/doctor" --sim h100x1 >"$tmp/doctor.out" 2>&1; then
        echo "skipped, no containers here: $(grep '^BAD' "$tmp/doctor.out" | head -n 1)"
        exit 77
    fi
}

# Tasks of a test that failed half way end with a lease that is long over.
end_tasks() {
    left=
    for task in "$tmp"/*/run/tasks/*; do
        [ -e "$task/task.json" ] && [ ! -e "$task/exit.json" ] && left=$task
    done
    [ -n "$left" ] || return 0
    for lease in "$tmp"/*/lease; do
        echo "$(cat /proc/sys/kernel/random/boot_id) 1 kill" >"$lease"
    done
    wait_for test -e "$left/exit.json"
    sleep 1
}

# An agent that was killed leaves the group around its tasks.
remove_groups() {
    for name in "$tmp"/*/run/group; do
        [ ! -s "$name" ] || find /sys/fs/cgroup -depth -type d -path "*/$(cat "$name")*" -exec rmdir {} + 2>/dev/null
    done
}

# Agents go first, then what they ran, then stintd.
finish_agents() {
    for a in $agents; do
        kill "$(cat "$tmp/$a.pid")" 2>/dev/null && wait "$(cat "$tmp/$a.pid")" 2>/dev/null
    done
    end_tasks
    if grep -hs -e 'ERROR: .*Sanitizer' -e 'runtime error' -e 'assertion failed' "$tmp"/*.log; then
        echo "a program was not well"
        finish
        exit 1
    fi
    # Networks of tenants stay mounted for their next task.
    # shellcheck disable=SC2086 # a list
    umount -l "$tmp"/*/run/net/* "$tmp"/*/run/net/.hold $mounts 2>/dev/null
    remove_groups
    finish
}
trap finish_agents EXIT

# start_native [LINE...]: more lines for the configuration.
start_native() {
    cat >"$tmp/stintd.yaml" <<END
engine: native
agent_lease: ${lease:-30s}
rate: 100000
policy: {notice: ${notice:-0s}, grace: ${grace:-6s}, min_run: 0s, cooldown: 0s${policies:+, $policies}}
END
    [ $# -eq 0 ] || printf '%s\n' "$@" >>"$tmp/stintd.yaml"
    native
    STINT_TOKEN=$(cat "$tmp/data/owner.token")
    export STINT_TOKEN
    try 0 'main' pool add main --allow host-image --allow host-network
    try 0 'made' account create acme --guarantee gpu=8
    try 0 'made' account create other --guarantee gpu=8
    ask_join 600
}

# Starts stintd, or starts it again where it was. Tests may set before: scheme (https), host (an
# address), enter (a command that runs another elsewhere), cli_url (where stint finds it, if not as
# agents do).
native() {
    : >"$tmp/stintd.log"
    # shellcheck disable=SC2086 # words
    ${enter:-} "$STINTD" --data "$tmp/data" --config "$tmp/stintd.yaml" \
        --listen "${host:-127.0.0.1}:${port:-0}" >>"$tmp/stintd.log" 2>&1 &
    stintd_pid=$!
    if ! wait_for grep -q '^event=listening' "$tmp/stintd.log"; then
        echo "stintd does not start:"
        cat "$tmp/stintd.log"
        exit 1
    fi
    port=$(sed -n 's/^event=listening.* port=\([0-9]*\).*/\1/p' "$tmp/stintd.log" | tail -n 1)
    server="${scheme:-http}://${host:-127.0.0.1}:$port"
    export STINT_URL="${cli_url:-$server}"
}

crash_stintd() {
    kill -9 "$stintd_pid"
    wait "$stintd_pid" 2>/dev/null
    stintd_pid=
}

ask_join() {
    try 0 '^stint_' admin join-token --pool main --uses "$1" --new-types
    cp "$tmp/out" "$tmp/join"
}

# start_agent NAME [OPTION...]; agent_enter as for stintd.
start_agent() {
    agent=$1
    shift
    # shellcheck disable=SC2086 # words
    ${agent_enter:-} "$STINT_AGENT" --server "$server" --join-token-file "$tmp/join" --data "$tmp/$agent" \
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

# Without python: what is asked ten times a second while a test waits must cost next to nothing.
state_of() {
    "$stint" show "$1" | sed -n 's/^State  *//p'
}

is() {
    [ "$(state_of "$1")" = "$2" ]
}

node_is() {
    [ "$("$stint" node show "$1" | sed -n 's/^State  *//p')" = "$2" ]
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

# where_is JOB: the node its first task is on.
where_is() {
    "$stint" show "$1" | sed -n 's/^Where  *\([^: ]*\).*/\1/p'
}

# tenant_of ACCOUNT: what it is called on nodes: by its number, whatever its name.
tenant_of() {
    "$stint" account show "$1" -o json | python3 -c 'import json, sys; print("t.%d" % json.load(sys.stdin)["id"])'
}

# storage_of NODE ACCOUNT: the folder that its tasks there see as /data.
storage_of() {
    echo "$tmp/$1/storage/$(tenant_of "$2")"
}

# log_has JOB TEXT: for wait_for.
log_has() {
    "$stint" logs "$1" | grep -q -e "$2"
}

# writes JOB TEXT: in its log, soon.
writes() {
    ran=$((ran + 1))
    wait_for log_has "$1" "$2" || fail "job $1 has not written \"$2\": $("$stint" logs "$1" | head -c 600)"
}

# said NODE TEXT: in the agent's log, soon.
said() {
    ran=$((ran + 1))
    wait_for grep -q -e "$2" "$tmp/$1.log" || fail "$1 has not said \"$2\": $(tail -n 5 "$tmp/$1.log")"
}
