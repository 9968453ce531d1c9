#!/bin/sh
# Nodes that lack what only some jobs need, here nftables for gangs on several nodes: those jobs fail with the reason, and nobody
# else notices. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
. "$(dirname "$0")/lib/nets.sh"
need_containers
nft=$(PATH=$PATH:/usr/sbin:/sbin command -v nft)
start_nets
join_nets || fail "no network between the agents"
start_native "insecure: true"
for a in a1 a2; do
    cat >"$tmp/without.$a" <<END
#!/bin/sh
[ -z "$nft" ] || mount --bind /dev/null $nft || exit 1
exec nsenter --net=/run/netns/$net$a "\$@"
END
    chmod +x "$tmp/without.$a"
    agent_enter="unshare --mount --propagation slave $tmp/without.$a"
    start_agent "$a" --exec oci --insecure --sim h100x8 --address "10.213.${a#a}.2"
done
agent_enter=
node_becomes a1 ready
node_becomes a2 ready

for account in acme other; do
    try 0 '^j' submit --account $account --name gang --tasks 2 --gpus 5 --cpu 0.2 --ram 64Mi --limit 2m -- true
    job=$(cat "$tmp/out")
    becomes "$job" failed
    try 0 'nft is not installed here (package nftables)' show "$job"
done
said a1 'event=not-started .*fault=node'
grep -h 'event=unfit' "$tmp/a1.log" "$tmp/a2.log" && fail "a node takes nothing new for what one sort of job lacks"
node_is a1 ready && node_is a2 ready || fail "$("$stint" node list)"
submit --name silent --tasks 2 --gpus 5 --network none --cpu 0.2 --ram 64Mi --limit 2m -- true
becomes "$job" done
done_testing
