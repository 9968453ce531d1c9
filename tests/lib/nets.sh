# For tests of agents that are cut off, to be sourced behind lib/agents.sh: stintd and two agents, a1 and a2, in
# network namespaces of their own, and a folder that tasks on both nodes see as /data, $tmp/shared/TENANT. Skips where
# there are none of these.
#
#   start_nets                   # sets host, enter, cli_url
#   start_native ...             # as ever
#   start_agents h100x8 h200x8   # what a1 and a2 have
#   cut a1; heal a1              # packets vanish; nobody is told
#   need_segments                # skips where networks of tenants cannot reach other nodes
#   join_nets                    # a1 and a2 reach each other, and there is a third, a3; behind start_nets
#   start_apart a1 a2            # agents there, behind start_native; apart a1 starts one again
net=st$$
drop_nets() {
    for n in s a1 a2 a3; do
        ip netns del "$net$n" 2>/dev/null
    done
}
trap 'drop_nets; finish_agents' EXIT

# wire NUMBER: a pair of ends between stintd and an agent.
wire() {
    ip netns add "${net}a$1" && ip -n "${net}s" link add "w$1" type veth peer name wire netns "${net}a$1" &&
        ip -n "${net}s" addr add "10.213.$1.1/30" dev "w$1" && ip -n "${net}s" link set "w$1" up &&
        ip -n "${net}a$1" addr add "10.213.$1.2/30" dev wire && ip -n "${net}a$1" link set wire up &&
        ip -n "${net}a$1" link set lo up && ip -n "${net}a$1" route add 10.213.0.1 via "10.213.$1.1"
}
make_nets() {
    ip netns add "${net}s" && ip -n "${net}s" link set lo up &&
        ip -n "${net}s" addr add 10.213.0.1/32 dev lo && wire 1 && wire 2
}
start_nets() {
    if ! make_nets 2>"$tmp/nets"; then
        echo "skipped, no network namespaces here: $(head -n 1 "$tmp/nets")"
        exit 77
    fi
    host=10.213.0.1
    enter="nsenter --net=/run/netns/${net}s"
    cli_url="unix:$tmp/data/stintd.sock"
}

# By way of stintd's namespace, which takes part in nothing.
join_nets() {
    wire 3 && nsenter --net="/run/netns/${net}s" sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward' &&
        for n in 1 2 3; do
            ip -n "${net}a$n" route add 10.213.0.0/16 via "10.213.$n.1" || return 1
        done
}

# a1 has wire 1.
cut() { ip -n "${net}s" link set "w${1#a}" down; }
heal() { ip -n "${net}s" link set "w${1#a}" up; }

start_agents() {
    mkdir -p "$tmp/shared"
    for a in a1 a2; do
        mkdir -p "$tmp/$a/storage"
        mount --bind "$tmp/shared" "$tmp/$a/storage"
        mounts="$mounts $tmp/$a/storage"
        agent_enter="nsenter --net=/run/netns/$net$a"
        start_agent "$a" --exec oci --insecure --sim "$1"
        shift
    done
    agent_enter=
    node_becomes a1 ready
    node_becomes a2 ready
}

# need_segments: ends the test where networks of tenants cannot reach other nodes; behind need_containers.
need_segments() {
    if grep -q '^warn  segments' "$tmp/doctor.out"; then
        echo "skipped, no networks between nodes here: $(grep -A 1 '^warn  segments' "$tmp/doctor.out")"
        exit 77
    fi
}

# start_apart a1 a2: agents at addresses of their own, behind join_nets.
apart() {
    agent_enter="nsenter --net=/run/netns/$net$1"
    start_agent "$1" --exec oci --insecure --sim h100x8 --address "10.213.${1#a}.2"
    agent_enter=
}
start_apart() {
    for a in "$@"; do
        apart "$a"
    done
    for a in "$@"; do
        node_becomes "$a" ready
    done
}
