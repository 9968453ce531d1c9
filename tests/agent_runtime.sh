#!/bin/sh
# A node loses its OCI runtime while its agent runs: what runs goes on and ends as it should, what is to start waits for a node
# that can, with the reason, and all is well when the runtime is back. And its agent, started without one, says so; and one is named. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
need_containers
runtime=$(command -v runc || command -v crun)
mkdir "$tmp/bin"
cp "$runtime" "$tmp/bin/runtime"
# For the agent every runtime of the node is this copy, which can be spoilt.
cat >"$tmp/with_copy" <<END
#!/bin/sh
for folder in /usr/local/sbin /usr/local/bin /usr/sbin /usr/bin /sbin /bin; do
    for name in runc crun; do
        [ ! -e \$folder/\$name ] || mount --bind $tmp/bin/runtime \$folder/\$name || exit 1
    done
done
exec "\$@"
END
chmod +x "$tmp/with_copy"
agent_enter="unshare -m --propagation private $tmp/with_copy"
if ! $agent_enter true 2>/dev/null; then
    echo "skipped: no mount namespaces here"
    exit 77
fi
start_native
start_agent n1 --exec oci
node_becomes n1 ready
submit --name before --gpus 1 --cpu 0.2 --ram 64Mi --limit 5m -- sh -c 'echo begun; until [ -e /data/go ]; do sleep 0.1; done; echo went on; exit 3'
before=$job
writes "$before" begun # it is on its own: a runtime that is still at work on it would be spoilt as well

chmod 0 "$tmp/bin/runtime"
for account in acme other; do
    try 0 '^j' submit --account $account --name "after-$account" --gpus 1 --cpu 0.2 --ram 64Mi --limit 5m -- echo here
    cp "$tmp/out" "$tmp/job-$account"
done
said n1 'event=not-started .*fault=node .*cannot be executed'
# Two tenants, none that went well in between: the node waits before it tries again.
node_becomes n1 draining
try 0 'cannot start tasks' node show n1
touch "$(storage_of n1 acme)/go"
becomes "$before" failed
writes "$before" 'went on'
for account in acme other; do
    # Perhaps being tried just now; ended it is not.
    case $(state_of "$(cat "$tmp/job-$account")") in
    pending | running | stopping) continue ;;
    esac
    fail "a job failed for the node's fault: $("$stint" show "$(cat "$tmp/job-$account")")"
done

# An agent that is started without it does not pretend.
kill "$(cat "$tmp/n1.pid")"
wait "$(cat "$tmp/n1.pid")" 2>/dev/null
$agent_enter "$STINT_AGENT" doctor --data "$tmp/n1" --sim h100x8 >"$tmp/doctor.out" 2>&1 && fail "doctor finds nothing wrong"
grep -q '^BAD .*runtime .*not installed' "$tmp/doctor.out" || fail "doctor says: $(cat "$tmp/doctor.out")"
ran=$((ran + 2))

# Nor one that is named and does not work, or is not there.
for named in "$tmp/bin/runtime" "$tmp/none" /bin/false; do
    "$STINT_AGENT" doctor --runtime "$named" --data "$tmp/doctor" --sim h100x1 >"$tmp/doctor.out" 2>&1 && fail "doctor likes $named"
    grep -q '^BAD  *runtime ' "$tmp/doctor.out" || fail "doctor says of $named: $(cat "$tmp/doctor.out")"
    ran=$((ran + 1))
done
"$STINT_AGENT" --runtime runc doctor 2>"$tmp/doctor.out" && fail "a runtime may be named by a word"
chmod 755 "$tmp/bin/runtime"
agent_enter=
start_agent n1 --exec oci --runtime "$tmp/bin/runtime"
said n1 "event=exec kind=oci runtime=$tmp/bin/runtime"
node_becomes n1 ready
for account in acme other; do
    becomes "$(cat "$tmp/job-$account")" done
done
done_testing
