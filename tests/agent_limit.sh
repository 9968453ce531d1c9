#!/bin/sh
# A time limit is changed while a job runs: stintd, the agent and the supervisor hold the job to the new one, also when
# stintd is away. Simulated tasks, and containers where these work. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
lease=120s
start_native "agent_listen: none"

# ended NODE JOB: its agent has seen its end.
ended() {
    grep -q "event=ended .*job=$2 " "$tmp/$1.log"
}

# changed NODE: jobs of the one pool that is there run on it.
changed() {
    node=$1
    shift
    # Longer: without the change stintd would end it after eight seconds, and its agent two seconds later.
    submit --name longer --gpus 1 --limit 8s "$@"
    becomes "$job" running
    try 0 'time limit 1h' limit "$job" 1h
    becomes "$job" "done"
    # Shorter: stintd ends it.
    submit --name shorter --gpus 1 --limit 1h "$@"
    becomes "$job" running
    try 0 'time limit 6s' limit "$job" 6s
    becomes "$job" timeout
}

start_agent n1 --exec sim
node_becomes n1 ready
changed n1 --sim-run 13s -- true

# Nobody but the agent is there to see that the time is up.
submit --name alone --gpus 1 --limit 1h --sim-run 1h -- true
becomes "$job" running
try 0 'time limit 9s' limit "$job" 9s
wait_for grep -q "event=deadline-moved .*job=$job " "$tmp/n1.log" || fail "the agent did not hear of the limit"
crash_stintd
wait_for ended n1 "$job" || fail "without stintd the agent does not hold the job to its new limit"
native
becomes "$job" timeout

if "$STINT_AGENT" doctor --data "$tmp/doctor" --sim h100x1 >/dev/null 2>&1; then
    try 0 'n1' node drain n1
    start_agent n2
    node_becomes n2 ready
    changed n2 -- sleep 13
    submit --name alone --gpus 1 --limit 1h -- sleep 600
    becomes "$job" running
    try 0 'time limit 9s' limit "$job" 9s
    wait_for grep -q "event=deadline-moved .*job=$job " "$tmp/n2.log" || fail "the agent did not hear of the limit"
    crash_stintd
    crash_agent n2
    # The supervisor alone is left.
    over() { find "$tmp/n2/run/tasks" -path "*$job*" -name exit.json | grep -q .; }
    wait_for over ||
        fail "the supervisor does not hold the job to its new limit"
    native
else
    echo "no containers here: only simulated tasks were tried"
fi

done_testing
