# For tests of the real programs, to be sourced: a stintd of one's own on a free port of the
# loopback, with the sample organisation, stopped by its pid at the end; and ways to try a command.
#
#   . "$(dirname "$0")/lib/stintd.sh"   # $1 is stint, $STINTD the service
#   start_stintd                        # sets STINT_URL; tokens are in $tmp/data/tokens
#   as ada                              # speaks with that user's token from here on
#   try 0 'pending' ps                  # exit status, what must be in what it prints, arguments
stint=$1
tmp=$(mktemp -d)
ran=0
failed=0
stintd_pid=
more_pids=

if [ -z "${STINTD:-}" ]; then
    echo "stintd is not built here"
    exit 77
fi

finish() {
    for pid in $stintd_pid $more_pids; do
        kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
    done
    rm -rf "$tmp"
}
trap finish EXIT
trap 'exit 1' INT TERM

# Nothing of whoever runs the tests gets in.
unset STINT_URL STINT_TOKEN STINT_CA STINT_PROFILE STINT_INSECURE http_proxy https_proxy all_proxy
export STINT_CONFIG="$tmp/config" TZ=UTC

fail() {
    echo "FAILED: $*"
    failed=$((failed + 1))
}

# wait_for COMMAND...: until it succeeds, half a minute at most, which slow machines need.
wait_for() {
    tries=300
    until "$@" >/dev/null 2>&1; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || return 1
        sleep 0.1
    done
}

# start_stintd [ARGUMENT...]: sets port, stintd_pid and STINT_URL.
start_stintd() {
    : >"$tmp/stintd.log"
    "$STINTD" --data "$tmp/data" --listen "127.0.0.1:${port:-0}" --sample "$@" \
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

stop_stintd() {
    kill "$stintd_pid"
    wait "$stintd_pid" 2>/dev/null
    stintd_pid=
}

token_of() {
    awk -v user="$1" '$1 == user { print $4 }' "$tmp/data/tokens"
}

as() {
    STINT_TOKEN=$(token_of "$1")
    export STINT_TOKEN
}

# try STATUS TEXT ARGUMENT...: runs stint; TEXT (a basic regular expression) must be in what it
# prints, on either stream. What it printed is in $tmp/out and $tmp/err.
try() {
    want=$1 text=$2
    shift 2
    ran=$((ran + 1))
    "$stint" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
    got=$?
    [ $got -eq "$want" ] ||
        fail "stint $*: exit status $got, not $want: $(head -c 600 "$tmp/out" "$tmp/err")"
    cat "$tmp/out" "$tmp/err" | grep -q -e "$text" ||
        fail "stint $*: \"$text\" is not in: $(head -c 600 "$tmp/out" "$tmp/err")"
}

# json EXPRESSION: holds for the JSON in $tmp/out, called d.
json() {
    python3 -c "import json, sys; d = json.load(open(sys.argv[1])); assert $1" "$tmp/out" ||
        fail "$1 does not hold for $(head -c 600 "$tmp/out")"
}

done_testing() {
    echo "$ran commands, $failed failed"
    [ "$failed" -eq 0 ]
    exit
}
