#!/bin/sh
# A tenant's network reaches across nodes: a gang on two nodes finds itself by name and adds up numbers around a ring.
# Nobody else reaches it, neither another tenant on the same nodes nor anybody on the nodes' network. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
. "$(dirname "$0")/lib/nets.sh"
need_containers
need_segments
here=$STINT_SOURCE/tests/net
start_nets
join_nets || fail "no network between the agents"
start_native "insecure: true"
port=14789
on() { # on a1 COMMAND...: in the node's own network
    at=$1
    shift
    nsenter --net="/run/netns/$net$at" "$@"
}
start_apart a1 a2
acme=$(tenant_of acme)

# ---- a ring across two nodes, and one on one node ----------------------------------------------

submit --name ring --tasks 2 --gpus 5 --cpu 0.5 --ram 128Mi --limit 2m -- python3 -c "$(cat "$STINT_SOURCE/examples/ring.py")"
becomes "$job" done
writes "$job" 'ring of 2: right'
submit --name near --tasks 4 --gpus 1 --topology require:node --cpu 0.2 --ram 128Mi --limit 2m -- \
    python3 -c "$(cat "$STINT_SOURCE/examples/ring.py")"
becomes "$job" done
writes "$job" 'ring of 4: right'

# ---- a gang that stays, beside another tenant's --------------------------------------------------

submit --name honest --tasks 2 --gpus 5 --cpu 0.2 --ram 128Mi --limit 10m --env HONEST_PORT=7001 -- \
    python3 -c "$(cat "$here/honest.py")"
honest=$job
hears() { # hears NODE TEXT
    grep -q -s "$2" "$(storage_of "$1" acme)"/heard.*
}
for n in a1 a2; do
    ran=$((ran + 1))
    wait_for hears "$n" 'tcp hello' && wait_for hears "$n" 'udp hello' ||
        fail "the task on $n does not hear the other: $("$stint" logs "$honest")"
done
link() { nsenter --net="$tmp/$1/run/net/$acme" ip -o "$2" show dev stint0; }
link a1 link | grep -q 'NOARP.* mtu 1450 ' || fail "the device is not as it should be: $(link a1 link)"
inside=$(link a1 addr | sed -n 's/.*inet \([0-9.]*\)\/32 .*/\1/p')
peer=$(link a2 addr | sed -n 's/.*inet \([0-9.]*\)\/32 .*/\1/p')
[ -n "$inside" ] && [ -n "$peer" ] && [ "$inside" != "$peer" ] || fail "addresses inside: \"$inside\" and \"$peer\""

try 0 '^j' submit --account other --name thief --tasks 2 --gpus 3 --cpu 0.2 --ram 128Mi --limit 2m -- \
    python3 -c "$(cat "$here/thief.py")" 10.213.1.2,10.213.2.2,10.213.0.1 7001
job=$(cat "$tmp/out")
wait_for is "$job" done
writes "$job" 'held'
becomes "$job" done

# A second gang of the tenant on the same nodes comes and goes; the first keeps its peers.
submit --name passing --tasks 2 --gpus 3 --cpu 0.5 --ram 128Mi --limit 2m -- python3 -c "$(cat "$STINT_SOURCE/examples/ring.py")"
becomes "$job" done
forgotten() { ! ls "$tmp"/a?/run/tasks/ | grep -q "^$job"; }
ran=$((ran + 2))
wait_for forgotten || fail "tasks of the passing gang are left"
lines() { cat "$(storage_of a1 acme)"/heard.* | wc -l; }
before=$(lines)
more() { [ "$(lines)" -gt $((before + 10)) ]; }
wait_for more || fail "the gang that stays has lost its network"

# ---- on the nodes' network ---------------------------------------------------------------------

# forge FROM TEXT: a packet of acme's segment for its task on a1, as if by its other task.
forge() {
    on "$1" python3 "$here/forge.py" 10.213.1.2 $port "${acme#t.}" "$peer" "$inside" 7001 "$2"
}
counted() { on "$1" nft list counter inet stint_segments "$2" | sed -n 's/.*packets \([0-9]*\) .*/\1/p'; }
refused() { [ "$(counted a1 strangers)" -ge 2 ]; }
ran=$((ran + 4))
[ "$(forge s stranger)" = sent ] || fail "the stranger could not even send"
[ "$(forge a3 machine)" = sent ] || fail "the other machine could not even send"
wait_for refused || fail "$(counted a1 strangers) packets of strangers were refused, not 2"
# A node of the segment; but no program of it may speak in it.
forge a2 program | grep -q refused || fail "a program on a node sends packets of a segment"
# A task that has the node's own network, on each of the two.
try 0 '^j' submit --account other --name forger --tasks 2 --gpus 3 --network host --cpu 0.2 --ram 128Mi --limit 2m -- \
    python3 -c "$(cat "$here/forge.py")" 10.213.1.2 $port "${acme#t.}" "$peer" "$inside" 7001 neighbour
job=$(cat "$tmp/out")
becomes "$job" done
for task in 0 1; do
    try 0 refused logs "$job" --task "$task"
done
try 0 '^j' submit --account other --name taker --gpus 3 --network host --cpu 0.2 --ram 128Mi --limit 2m -- \
    python3 -c "import socket; socket.socket(2, 2).bind(('', $port))"
job=$(cat "$tmp/out")
becomes "$job" failed
writes "$job" 'in use'
# It is the rule that holds them: the same packet from somebody whom the rules name arrives.
on a1 nft add element inet stint_segments nodes "{ 10.213.1.1 . ${acme#t.} }"
forge s control >/dev/null
wait_for hears a1 'udp control' || fail "what is forged would not have arrived anyway"
for word in stranger machine program neighbour; do
    hears a1 "udp $word" && fail "a packet of a $word came into the segment"
done

# ---- agents and rules that go ---------------------------------------------------------------------

crash_agent a1
on a1 nft flush ruleset
apart a1
guarded() { on a1 nft list table inet stint_segments 2>/dev/null | grep -q "10.213.2.2 . "; }
wait_for guarded || fail "the rules are not there again"
on a1 nft list set inet stint_segments nodes | grep -q '10.213.1.1' && fail "a stranger is still among the nodes"
before=$(lines)
ran=$((ran + 2))
wait_for more || fail "the gang has lost its network"
hears a1 cut && fail "its connection was cut"
is "$honest" running || fail "it is $(state_of "$honest")"

try 0 'cancelled' cancel "$honest"
left() { ! link a1 link >/dev/null 2>&1 && ! link a2 link >/dev/null 2>&1; }
ran=$((ran + 1))
wait_for left || fail "devices are left: $(link a1 link) $(link a2 link)"
on a1 nft list set inet stint_segments nodes | grep -q elements && fail "nodes are left in the rules"
done_testing
