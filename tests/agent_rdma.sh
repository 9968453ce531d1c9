#!/bin/sh
# RDMA devices are for tasks that ask for them, in pools that permit it. The devices are character devices of another kind under
# the names of RDMA's, where only this test's agent sees them. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
need_containers
start_native
dev=/dev/infiniband
made=
[ -d $dev ] || { mkdir $dev 2>/dev/null && made=$dev; }
if [ ! -d $dev ]; then
    echo "skipped, there can be no $dev here"
    exit 77
fi
trap 'finish_agents; [ -z "$made" ] || rmdir $made 2>/dev/null' EXIT
cat >"$tmp/inside" <<'END'
#!/bin/sh
# The folder is a tmpfs here, and as it was for everybody else.
mount -t tmpfs -o dev,mode=0755 tmpfs /dev/infiniband || exit 1
mknod -m 0666 /dev/infiniband/uverbs0 c 1 5
mknod -m 0666 /dev/infiniband/rdma_cm c 1 5
mknod -m 0666 /dev/infiniband/umad0 c 1 5
ulimit -l unlimited 2>/dev/null # as the unit has it; not where root may not
exec "$@"
END
chmod +x "$tmp/inside"
agent_enter="unshare --mount --propagation slave $tmp/inside"
start_agent r1 --exec oci
agent_enter=
node_becomes r1 ready

look='ls /dev/infiniband 2>&1 | tr "\n" " "; ulimit -l; head -c 4 /dev/infiniband/uverbs0 | wc -c'
try 2 'uses RDMA, which no pool allows; leave out rdma, or ask an owner for' \
    submit --account acme --name early --gpus 1 --rdma --cpu 0.2 --ram 64Mi --limit 1m -- sh -c "$look"
try 0 changed pool set main --allow host-image --allow host-network --allow rdma
submit --name with --gpus 1 --rdma --cpu 0.2 --ram 64Mi --limit 1m -- sh -c "$look"
becomes "$job" done
# As much memory as the agent itself may lock.
most=$(sh -c 'ulimit -l unlimited 2>/dev/null; ulimit -H -l')
[ "$most" != unlimited ] || most=$((0x7fffffffffffffff / 1024))
writes "$job" "^rdma_cm uverbs0 $most\$"
writes "$job" '^4$'
# Who does not ask has none, and nobody has what manages the fabric.
submit --name without --gpus 1 --cpu 0.2 --ram 64Mi --limit 1m -- sh -c "$look; true"
becomes "$job" done
writes "$job" 'cannot access'
# A task has no other device behind the name.
submit --name greedy --gpus 1 --cpu 0.2 --ram 64Mi --limit 1m -- \
    sh -c 'mknod /tmp/uverbs0 c 1 5 && echo made; mkdir /dev/infiniband && echo made; echo tried'
becomes "$job" done
writes "$job" tried
log_has "$job" '^made$' && fail "a task makes devices of its own"
try 0 'rdma' pool show main
done_testing
