#!/bin/sh
# What the agent, its helpers and its tasks may do, by the kernel's word: the agent has the capabilities that its unit
# lists and no others, its helpers less, tasks none. And tasks run all the same. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
need_containers
start_native
start_agent r1 --exec oci
node_becomes r1 ready

# mask NAME...: the set of these capabilities, as the kernel prints it.
mask() {
    python3 - "$@" <<'END'
import sys
names = """chown dac_override dac_read_search fowner fsetid kill setgid setuid setpcap linux_immutable net_bind_service
net_broadcast net_admin net_raw ipc_lock ipc_owner sys_module sys_rawio sys_chroot sys_ptrace sys_pacct sys_admin sys_boot
sys_nice sys_resource sys_time sys_tty_config mknod""".split()
print("%016x" % sum(1 << names.index(w.lower().replace("cap_", "")) for w in sys.argv[1:]))
END
}
# has FILE KEY VALUE: a line of a status file of /proc.
has() {
    ran=$((ran + 1))
    got=$(sed -n "s/^$2:[[:space:]]*//p" "$1" 2>/dev/null)
    [ "$got" = "$3" ] || fail "$4: $2 is $got, not $3"
}
# bound FILE MASK WHO: nothing but this, for it and whatever it starts.
bound() {
    has "$1" CapBnd "$2" "$3"
    has "$1" CapInh 0000000000000000 "$3"
    has "$1" CapAmb 0000000000000000 "$3"
    has "$1" NoNewPrivs 1 "$3"
    has "$1" Seccomp 2 "$3"
}
# Of a machine that gives root less than this, there is less.
own=$(sed -n 's/^CapBnd:[[:space:]]*//p' /proc/self/status)
cut() { python3 -c 'import sys; print("%016x" % (int(sys.argv[1], 16) & int(sys.argv[2], 16)))' "$1" "$own"; }
# shellcheck disable=SC2046 # words
rights=$(cut "$(mask $(sed -n 's/^CapabilityBoundingSet=//p' "$STINT_SOURCE/packaging/stint-agent.service"))")
none=0000000000000000
only_kill=$(cut "$(mask kill)")

agent=$(cat "$tmp/r1.pid")
for task in /proc/"$agent"/task/*; do # the voice, and whoever else there is
    bound "$task/status" "$rights" "a thread of the agent"
    has "$task/status" CapEff "$rights" "a thread of the agent"
done

submit --name inside --gpus 1 --cpu 0.2 --ram 64Mi --limit 5m -- \
    sh -c 'grep -e Cap -e NoNewPrivs -e Seccomp: /proc/self/status; echo told; sleep 280'
becomes "$job" running
writes "$job" '^told$'
"$stint" logs "$job" >"$tmp/inside"
for key in CapEff CapPrm CapBnd CapInh CapAmb; do
    has "$tmp/inside" $key $none "a task"
done
has "$tmp/inside" NoNewPrivs 1 "a task"
has "$tmp/inside" Seccomp 2 "a task"

# pid_of WORDS: the process of this test that was started with these.
pid_of() {
    for p in /proc/[0-9]*; do
        { tr "\\0" " " <"$p/cmdline"; } 2>/dev/null | grep -q -e "$1.*$tmp/r1" && basename "$p" && return
    done
}
shim=$(pid_of stint-shim)
bound "/proc/$shim/status" "$rights" "a supervisor"
fence=$(pid_of 'stint-agent fence')
bound "/proc/$fence/status" "$only_kill" "the fence"
has "/proc/$fence/status" CapEff "$only_kill" "the fence"

# The fence needs no more for its work.
crash_agent r1
gone() { ! kill -0 "$shim" 2>/dev/null; }
echo "$(cat /proc/sys/kernel/random/boot_id) 1 kill" >"$tmp/r1/lease"
ran=$((ran + 1))
wait_for gone || fail "nobody has ended the task when the lease was over"
done_testing
