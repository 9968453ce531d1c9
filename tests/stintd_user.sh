#!/bin/sh
# What stintd gives up at its start: every capability in any case, root with `user` in its
# configuration. And the units in packaging/: how far systemd's sandbox is closed. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
if [ "$(id -u)" -ne 0 ]; then
    echo "skipped: only root has something to give up"
    exit 77
fi
status() { sed -n "s/^$1:[[:space:]]*//p" "/proc/$stintd_pid/status"; }
# has KEY VALUE: a row of its status, blanks as they are shown by tr.
has() {
    ran=$((ran + 1))
    [ "$(status "$1" | tr '\t' ' ')" = "$2" ] || fail "$1 is $(status "$1"), not $2"
}
powerless() {
    for set in CapInh CapPrm CapEff CapBnd CapAmb; do
        has $set 0000000000000000
    done
    has NoNewPrivs 1
    ran=$((ran + 1))
    # Of 1 byte there is no core file, and nothing is started to take one.
    core=$(sed -n 's/^Max core file size *//p' "/proc/$stintd_pid/limits" | tr -s ' ')
    case $core in
    '1 1 bytes ' | '0 0 bytes ') ;;
    *) fail "core files: $core" ;;
    esac
}

start_stintd
powerless
has Uid '0 0 0 0'
as ada
try 0 'pending' ps -a
kill "$stintd_pid" && wait "$stintd_pid"
stintd_pid=

# ---- as a user of its own --------------------------------------------------------------------------

chmod 755 "$tmp"
echo 'user: nobody' >"$tmp/stintd.yaml"
chmod 644 "$tmp/stintd.yaml"
uid=$(id -u nobody)
ran=$((ran + 1))
if "$STINTD" --data "$tmp/data" --config "$tmp/stintd.yaml" --listen 127.0.0.1:0 2>"$tmp/said"; then
    fail "it took files that belong to root"
fi
grep -q 'run: chown -R nobody' "$tmp/said" || fail "it does not say what to do: $(cat "$tmp/said")"

rm -rf "$tmp/data"
start_stintd --config "$tmp/stintd.yaml"
powerless
has Uid "$uid $uid $uid $uid"
has Groups ''
[ "$(stat -c %U:%a "$tmp/data/stint.db")" = nobody:600 ] || fail "the store is $(stat -c %U:%a "$tmp/data/stint.db")"
unset STINT_TOKEN
STINT_URL="unix:$tmp/data/stintd.sock" try 0 'owner' whoami
kill "$stintd_pid" && wait "$stintd_pid"
stintd_pid=
start_stintd --config "$tmp/stintd.yaml"
has Uid "$uid $uid $uid $uid"

ran=$((ran + 1))
echo 'user: nobody-of-that-name' >"$tmp/stintd.yaml"
"$STINTD" --data "$tmp/data" --config "$tmp/stintd.yaml" 2>"$tmp/said" && fail "an unknown user"
grep -q 'there is no user nobody-of-that-name' "$tmp/said" || fail "it says: $(cat "$tmp/said")"

# A key that stintd cannot do without.
for key in store listen engine; do
    ran=$((ran + 1))
    echo "$key: none" >"$tmp/stintd.yaml"
    "$STINTD" --data "$tmp/data" --config "$tmp/stintd.yaml" 2>"$tmp/said"
    [ $? -eq 2 ] || fail "$key: none is taken"
    grep -q "$key cannot be none" "$tmp/said" || fail "it says: $(cat "$tmp/said")"
done

# ---- units -----------------------------------------------------------------------------------------

# exposure UNIT BOUND: what systemd-analyze gives it, 0 to 10, where that program is.
exposure() {
    command -v systemd-analyze >/dev/null || return 0
    ran=$((ran + 1))
    score=$(systemd-analyze security --offline=true "$STINT_SOURCE/packaging/$1" 2>/dev/null |
        sed -n 's/.*Overall exposure level for .*: \([0-9.]*\) .*/\1/p')
    awk -v s="${score:-10}" -v b="$2" 'BEGIN { exit !(s < b) }' || fail "$1 is exposed $score, not below $2"
    echo "$1: exposure $score"
}
exposure stintd.service 3
exposure stint-agent.service 7
# A unit that hides /proc/sys passes on which run of the machine it is: without that a start has no witness of time.
ran=$((ran + 1))
grep -q '^ProcSubset=pid' "$STINT_SOURCE/packaging/stintd.service" &&
    ! grep -qx 'Environment=STINT_BOOT_ID=%b' "$STINT_SOURCE/packaging/stintd.service" && fail "stintd does not learn the boot id"
# What an agent has mounted must be there for the next one: no option that gives it file systems of its own.
ran=$((ran + 1))
grep -E '^(Protect(Home|System|Kernel[A-Z][a-z]*|Proc|Clock|Hostname|ControlGroups)|Private[A-Z][A-Za-z]*|ProcSubset|MountFlags|[A-Z][A-Za-z]*Paths|Root[A-Z][a-z]*)=' \
    "$STINT_SOURCE/packaging/stint-agent.service" && fail "the agent's unit has options that part it from the node"
done_testing
