#!/bin/sh
# A real MPI over two nodes inside a tenant's network: mpirun starts its daemon in the other node's task by way of
# examples/mpi.py. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
. "$(dirname "$0")/lib/nets.sh"
need_containers
need_segments
if ! command -v mpicc >/dev/null || ! command -v mpirun >/dev/null; then
    echo "skipped, no MPI is installed here"
    exit 77
fi
start_nets
join_nets || fail "no network between the agents"
start_native "insecure: true"
start_apart a1 a2
mpicc -o "$tmp/ring" "$STINT_SOURCE/tests/net/ring.c" || fail "the program of MPI cannot be built"

# A first task on each node, so that its storage is there; then what the job needs is put into it.
submit --name first --tasks 2 --gpus 5 --network none --cpu 0.2 --ram 64Mi --limit 1m -- true
becomes "$job" done
for n in a1 a2; do
    install -m 0755 "$tmp/ring" "$STINT_SOURCE/examples/mpi.py" "$(storage_of "$n" acme)"
done
head -c 32 /dev/urandom | base64 >"$tmp/key"
try 0 '' secret put --account acme mpi-key "$tmp/key"
submit --name mpi --tasks 2 --gpus 5 --cpu 1 --ram 512Mi --limit 2m --secret mpi-key=mpi-key -- \
    python3 /data/mpi.py mpirun --oversubscribe -np 4 --map-by node /data/ring
wait_for is "$job" done
writes "$job" 'MPI ring of 4: right, 2 elsewhere'
becomes "$job" done

# Who does not have the key starts nothing in the tasks of a job, not even another job of the tenant.
submit --name mine --tasks 2 --gpus 5 --cpu 0.2 --ram 256Mi --limit 2m --secret mpi-key=mpi-key --env MASTER_PORT=1 -- \
    python3 /data/mpi.py sh -c 'echo $MASTER_PORT >/data/port; while [ ! -e /data/tried ]; do sleep 0.1; done'
mine=$job
port_known() { cat "$(storage_of a1 acme)/port" "$(storage_of a2 acme)/port" 2>/dev/null | grep -q .; }
wait_for port_known || fail "the job has not said its port"
at=$(cat "$(storage_of a1 acme)/port" "$(storage_of a2 acme)/port" 2>/dev/null)
echo 'another key that is long enough' >"$tmp/wrong"
chmod 644 "$tmp/wrong"
for n in a1 a2; do
    install -m 0644 "$tmp/wrong" "$(storage_of "$n" acme)/wrong"
done
submit --name theirs --tasks 2 --gpus 3 --cpu 0.2 --ram 256Mi --limit 2m --env MPI_KEY_FILE=/data/wrong -- \
    sh -c "for h in \$(cut -d' ' -f1 \$STINT_HOSTFILE); do MASTER_PORT=$at timeout 5 python3 /data/mpi.py --reach \$h touch /data/stolen; echo status \$?; done; touch /data/tried"
becomes "$job" done
for task in 0 1; do
    "$stint" logs "$job" --task $task
done >"$tmp/tried"
grep -q 'status 255' "$tmp/tried" || fail "nobody refused it: $(cat "$tmp/tried")"
becomes "$mine" done
for n in a1 a2; do
    [ ! -e "$(storage_of "$n" acme)/stolen" ] || fail "a stranger to the key started something on $n"
done
done_testing
