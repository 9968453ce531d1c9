#!/bin/sh
# A start that is held: a stop that comes meanwhile is neither lost nor sent to who cannot hear it. It is delivered when the task's
# command begins, and the task ends by it, well before its grace. Held where no process is there yet, and where there is one whose
# command has not begun; and an agent that is killed meanwhile remembers. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
need_containers
mkdir "$tmp/bin"
cp "$(command -v runc || command -v crun)" "$tmp/bin/real"
# For the agent every runtime of the node is this one. What is in $tmp/held is how it makes the next container:
#   before    not until $tmp/go is there
#   between   at once, and its command begins when $tmp/go is there
cat >"$tmp/bin/runtime" <<END
#!/bin/sh
held=\$(cat $tmp/held 2>/dev/null)
case " \$* " in *' run '*) ;; *) held= ;; esac
wait_go() { until [ -e $tmp/go ]; do sleep 0.05; done; }
case \$held in
before) : >$tmp/holding; wait_go ;;
between)
    for word in "\$@"; do
        shift
        case \$word in --detach) continue ;; run) word=create ;; esac
        set -- "\$@" "\$word"
    done
    $tmp/bin/real "\$@" || exit
    for name in "\$@"; do :; done
    (wait_go; exec $tmp/bin/real "\$1" "\$2" start "\$name") </dev/null >/dev/null 2>&1 3>&- &
    exit 0
    ;;
esac
exec $tmp/bin/real "\$@"
END
cat >"$tmp/with_held" <<END
#!/bin/sh
for folder in /usr/local/sbin /usr/local/bin /usr/sbin /usr/bin /sbin /bin; do
    for name in runc crun; do
        [ ! -e \$folder/\$name ] || mount --bind $tmp/bin/runtime \$folder/\$name || exit 1
    done
done
exec "\$@"
END
chmod +x "$tmp/bin/runtime" "$tmp/with_held"
agent_enter="unshare -m --propagation private $tmp/with_held"
if ! $agent_enter true 2>/dev/null; then
    echo "skipped: no mount namespaces here"
    exit 77
fi
start_native
start_agent n1 --exec oci --grace 50s
node_becomes n1 ready

says() { grep -q -e "event=$1 .*$job" "$tmp/n1.log"; }
for held in before between killed; do
    rm -f "$tmp/go"
    echo $held | sed 's/killed/between/' >"$tmp/held"
    submit --name "$held" --gpus 0 --cpu 0.1 --ram 64Mi --limit 5m -- sleep 200
    said n1 "event=started .*$job"
    ran=$((ran + 1))
    if [ $held = before ]; then
        wait_for test -e "$tmp/holding" || fail "the runtime was not asked: $(cat "$tmp/n1.log")"
    else
        wait_for test -s "$(echo "$tmp"/n1/run/tasks/*"$job"*)/live.json" || fail "no container was made: $(ls -R "$tmp/n1/run/tasks")"
    fi
    : >"$tmp/held"
    try 0 'cancel' cancel "$job"
    said n1 "event=stop .*$job"
    if [ $held = killed ]; then
        crash_agent n1
        start_agent n1 --exec oci --grace 50s
    fi
    # Its agent has gone on since: it has started another one.
    stopped=$job
    submit --name after --gpus 0 --cpu 0.1 --ram 64Mi --limit 5m -- true
    becomes "$job" done
    job=$stopped
    ran=$((ran + 1))
    says signalled && fail "held $held: signalled, and it cannot hear yet: $(grep "$job" "$tmp/n1.log")"
    says '\(ended\|killed\)' && fail "held $held: ended before it began: $(grep "$job" "$tmp/n1.log")"
    touch "$tmp/go"
    said n1 "event=signalled .*$job"
    said n1 "event=ended .*$job .*signal=15"
    becomes "$job" cancelled
    says killed && fail "held $held: its grace was waited for: $(grep "$job" "$tmp/n1.log")"
done
done_testing
