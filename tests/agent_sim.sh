#!/bin/sh
# Real agents and a real stintd, simulated GPUs and tasks: jobs, a gang, preemption, agents and
# stintd killed and back, a lost node, slices, faults, a stale token. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
lease=6s
# Agents use the one port, which a wire of this test can cut.
start_native "agent_listen: none"
start_agent n1 --exec sim --metrics 127.0.0.1:0
start_agent n2 --exec sim --metrics 127.0.0.1:0
node_becomes n1 ready
node_becomes n2 ready
grep -q 'kind=sim' "$tmp/n1.log" || fail "the agent does not say that nothing is run"
[ "$(stat -c %a "$tmp/n1/node.key")" = 600 ] || fail "node.key can be read by others"
grep -rq "$(cut -c1-64 "$tmp/n1/node.key")" "$tmp/n1.log" && fail "the key is in the log"

# ---- jobs ----------------------------------------------------------------------------------

submit --name good --gpus 2 --sim-run 1s -- true
becomes "$job" done
try 0 'simulated' logs "$job"
submit --name gang --tasks 2 --gpus 8 --sim-run 2s -- true
becomes "$job" running
try 0 'n1:0-7' show "$job"
grep -q 'n2:0-7' "$tmp/out" || fail "the gang is not on both nodes"
metrics=$(sed -n 's/^event=metrics.* port=//p' "$tmp/n1.log")
metrics2=$(sed -n 's/^event=metrics.* port=//p' "$tmp/n2.log")
python3 -c '
import sys, time, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
text = opener.open("http://127.0.0.1:%s/metrics" % sys.argv[1]).read().decode()
assert "DCGM_FI_DEV_FB_USED{" in text and sys.argv[2] in text, text
' "$metrics" "job=\"$job\"" || fail "metrics lack the job"
becomes "$job" done
printf 'name: bad\naccount: acme\ngpus: 1\ncommand: ["true"]\nsim: {run: 1s, exit: 7}\n' >"$tmp/bad.yaml"
submit -f "$tmp/bad.yaml"
becomes "$job" failed
try 0 'Exit status  *7' show "$job"

# ---- slices --------------------------------------------------------------------------------

submit --name slice --gpus 1 --level mig --profile 3g.40gb --sim-run 4s -- true
becomes "$job" running
# A row of its own, with who holds it; the GPU as a whole is nobody's.
cat >"$tmp/slice.py" <<'END'
import re, sys, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
text = opener.open("http://127.0.0.1:%s/metrics" % sys.argv[1]).read().decode()
rows = [r for r in text.splitlines() if r.startswith("DCGM_FI_PROF_GR_ENGINE_ACTIVE{")]
held = [r for r in rows if 'job="%s"' % sys.argv[2] in r]
sys.exit(not (len(held) == 1 and 'GPU_I_PROFILE="3g.40gb"' in held[0] and float(held[0].split()[-1]) > 0.5))
END
sampled() { python3 "$tmp/slice.py" "$metrics" "$job" || python3 "$tmp/slice.py" "$metrics2" "$job"; }
ran=$((ran + 1))
wait_for sampled || fail "the slice has no row of its own"
becomes "$job" done
ran=$((ran + 1))
wait_for grep -q 'event=carved .*made=1' "$tmp/n1.log" "$tmp/n2.log" || fail "no slice was carved"
wait_for grep -q 'event=carved .*removed=1' "$tmp/n1.log" "$tmp/n2.log" || fail "a slice was left"

# ---- preemption ----------------------------------------------------------------------------

submit --name borrower --tasks 2 --gpus 8 --on-preempt checkpoint --sim-run 60s -- true
becomes "$job" running
borrower=$job
try 0 '^j' submit --account other --name owner --gpus 8 --sim-run 2s -- true
owner=$(cat "$tmp/out")
becomes "$owner" running
grep -hq 'saved=true' "$tmp/n1.log" "$tmp/n2.log" || fail "nobody saved"
becomes "$owner" done
becomes "$borrower" running
try 0 'cancelled' cancel "$borrower"
said n1 "event=stop .*$borrower"

# ---- an agent is killed under a job, and comes back -------------------------------------------

submit --name steady --tasks 2 --gpus 8 --sim-run 5s -- true
becomes "$job" running
crash_agent n1
# A second one on the folder is refused. A child that an agent left behind when it was killed, with all it had open, keeps
# nobody from starting again: a lock of that kind is taken here by somebody else.
if "$STINT_AGENT" --server "$server" --data "$tmp/n2" --name n2 --sim h100x8 --exec sim >"$tmp/second.log" 2>&1; then
    fail "two agents have one folder"
fi
grep -q 'another agent has it' "$tmp/second.log" || fail "a second agent: $(tail -n 2 "$tmp/second.log")"
flock -F "$tmp/n1/lock" sleep 600 &
orphan=$!
wait_for sh -c "! flock -n '$tmp/n1/lock' true"
start_agent n1 --exec sim
said n1 'event=found'
kill "$orphan"
becomes "$job" done
[ "$(grep -c "event=started .*$job" "$tmp/n1.log")" -eq 1 ] || fail "it was started twice"

# ---- stintd is killed under a job: it ends meanwhile, and its end is the true one ---------------

submit --name outage --tasks 2 --gpus 8 --sim-run 2s -- true
becomes "$job" running
crash_stintd
sleep 3
native
becomes "$job" done
try 0 '^Took  *[123]s' show "$job"

# ---- a silent agent: its node is lost, its job goes elsewhere -----------------------------------

submit --name moved --gpus 8 --sim-run 30s -- true
becomes "$job" running
where=$("$stint" show "$job" | sed -n 's/^Where  *\(n[12]\).*/\1/p')
other=$([ "$where" = n1 ] && echo n2 || echo n1)
kill -STOP "$(cat "$tmp/$where.pid")"
node_becomes "$where" failed
becomes "$job" running
ran=$((ran + 1))
wait_for grep -q "event=started .*$job" "$tmp/$other.log" || fail "it did not start on $other"
kill -CONT "$(cat "$tmp/$where.pid")"
said "$where" "event=killed .*$job.*lease"
said "$where" 'event=fence-lifted'
node_becomes "$where" ready
becomes "$job" running
try 0 'cancelled' cancel "$job"

# ---- devices that fail -----------------------------------------------------------------------

: >"$tmp/faults"
start_agent n3 --exec sim --sim-faults "$tmp/faults"
node_becomes n3 ready
echo 'n3 2 xid 79' >>"$tmp/faults"
node_becomes n3 failed
try 0 'XID 79\|does not answer' node list -o json
echo 'n3 2 heal' >>"$tmp/faults"
node_becomes n3 ready

# ---- a network that is cut and heals before the lease ends --------------------------------------

cat >"$tmp/wire.py" <<'END'
import socket, sys, threading
def pump(a, b):
    try:
        while True:
            data = a.recv(65536)
            if not data:
                break
            b.sendall(data)
    except OSError:
        pass
    for s in (a, b):
        try:
            s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
listen = socket.create_server(("127.0.0.1", 0))
print(listen.getsockname()[1], flush=True)
while True:
    a, _ = listen.accept()
    b = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    for pair in ((a, b), (b, a)):
        threading.Thread(target=pump, args=pair, daemon=True).start()
END
python3 "$tmp/wire.py" "$port" >"$tmp/wire" &
wire=$!
more_pids="$more_pids $wire"
wait_for test -s "$tmp/wire"
try 0 'draining' node drain n1
try 0 'draining' node drain n2
try 0 'draining' node drain n3
start_agent w1 --exec sim --server "http://127.0.0.1:$(cat "$tmp/wire")"
node_becomes w1 ready
submit --name cut --gpus 1 --sim-run 3s -- true
becomes "$job" running
kill -STOP "$wire"
sleep 3.5
is "$job" running || fail "it is $(state_of "$job") while nobody can know"
kill -CONT "$wire"
becomes "$job" done
try 0 '^Took  *[23]s' show "$job"
grep -q 'event=killed' "$tmp/w1.log" && fail "a short cut has killed something"
node_is w1 ready || fail "a short cut has failed the node"

# ---- a full disk: nothing is started, the node says why, and it mends ------------------------------

mkdir "$tmp/d1"
if mount -t tmpfs -o size=256k tmpfs "$tmp/d1" 2>/dev/null; then
    try 0 'draining' node drain w1
    start_agent d1 --exec sim
    node_becomes d1 ready
    dd if=/dev/zero of="$tmp/d1/full" bs=4k >/dev/null 2>&1
    submit --name full --gpus 1 --sim-run 1s -- true
    node_becomes d1 draining
    rm "$tmp/d1/full"
    node_becomes d1 ready
    becomes "$job" done
    crash_agent d1
    umount "$tmp/d1"
else
    echo "no full disk: tmpfs cannot be mounted here"
fi

# ---- many nodes in one process ---------------------------------------------------------------

start_agent many --exec sim --sim-nodes 20
node_becomes many-1 ready
node_becomes many-20 ready

done_testing
