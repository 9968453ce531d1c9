#!/bin/sh
# Commands in a job that runs: streams apart and whole, terminals, sizes, signals, exit status; inside the walls of the job and
# nobody else's; what a command may not see, and how it ends. With real containers. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
need_containers
start_native
start_agent n1
node_becomes n1 ready
# shellcheck disable=SC2016 # for the shell inside
submit --name holds --gpus 1 --limit 10m --cpu 0.5 --ram 128Mi --env COLOUR=green -- \
    sh -c 'echo $$ >/data/pid; cat /proc/self/status; echo up; trap "echo told" USR1; while :; do sleep 0.1; done'
holds=$job
becomes "$holds" running
writes "$holds" up

# run STATUS ARGUMENT...: stint exec, with streams apart in $tmp/o and $tmp/e; input is $input.
input=/dev/null
run() {
    want=$1
    shift
    ran=$((ran + 1))
    "$stint" exec "$@" <"$input" >"$tmp/o" 2>"$tmp/e"
    got=$?
    [ $got -eq "$want" ] || fail "exec $*: $got, not $want: $(head -c 400 "$tmp/o" "$tmp/e")"
}
same() {
    ran=$((ran + 1))
    [ "$1" = "$2" ] || fail "it is \"$1\", not \"$2\""
}

# ---- streams and status ---------------------------------------------------------------------------

run 0 "$holds" -- sh -c 'echo out; echo err >&2'
same "$(cat "$tmp/o")" out
same "$(cat "$tmp/e")" err
run 7 "$holds" -- sh -c 'exit 7'
run 137 "$holds" -- sh -c 'kill -9 $$'
run 127 "$holds" -- no-such-program
grep -q 'command not found' "$tmp/e" || fail "$(cat "$tmp/e")"
head -c 3000000 /dev/urandom >"$tmp/bytes"
input=$tmp/bytes run 0 "$holds" -- cat
cmp -s "$tmp/bytes" "$tmp/o" || fail "3 MB through cat are not what they were"
input=$tmp/bytes run 0 "$holds" -- sh -c 'head -c 5; exit 0' # it reads no more
printf 'one\ntwo\n' >"$tmp/lines"
input=$tmp/lines run 0 "$holds" -- wc -l
same "$(cat "$tmp/o")" 2

# ---- the walls of the job -------------------------------------------------------------------------

# What the job's own process has, the command has: user, capabilities, system calls, and it gains nothing.
run 0 "$holds" -- cat /proc/self/status
for what in Uid Gid Groups CapInh CapPrm CapEff CapBnd CapAmb NoNewPrivs Seccomp Seccomp_filters Cpus_allowed_list; do
    mine=$(sed -n "s/^$what:[[:space:]]*//p" "$tmp/o")
    its=$("$stint" logs "$holds" | sed -n "s/^$what:[[:space:]]*//p")
    same "$what $mine" "$what $its"
done
# Namespaces and control group are those of the job's process 1, and what is on its descriptors was made for it.
# shellcheck disable=SC2016 # for the shell inside
run 0 "$holds" -- sh -c 'job=/proc/$(cat /data/pid)
    for n in pid mnt net ipc uts cgroup; do a=$(readlink /proc/self/ns/$n); b=$(readlink $job/ns/$n); [ "$a" = "$b" ] || echo "$n $a $b"; done
    [ "$(cat /proc/self/cgroup)" = "$(cat $job/cgroup)" ] || echo "cgroup differs"; ls -l /proc/$$/fd'
grep -e '^pid' -e '^mnt' -e '^net' -e '^ipc' -e '^uts' -e '^cgroup ' "$tmp/o" && fail "another namespace"
grep 'cgroup differs' "$tmp/o" && fail "another control group"
same "$(grep -c -e 'pipe:' "$tmp/o")" 3
same "$(grep -c -e ' -> ' "$tmp/o")" "$(($(grep -c -e 'pipe:' "$tmp/o") + $(grep -c -e '/proc/' "$tmp/o")))"
# shellcheck disable=SC2016 # for the shell inside
run 0 "$holds" -- sh -c 'echo $COLOUR $STINT_JOB $CUDA_VISIBLE_DEVICES; pwd; id -u'
grep -q "^green $holds GPU-" "$tmp/o" || fail "its variables: $(cat "$tmp/o")"
grep -q '^/data$' "$tmp/o" || fail "it stands elsewhere: $(cat "$tmp/o")"
# Nothing of the node: the programs that bring it in, its files, other processes.
run 0 "$holds" -- sh -c 'for p in /proc/[0-9]*; do
    for f in "$p"/exe "$p"/fd/*; do t=$(readlink "$f") && echo "$t"; done; done 2>/dev/null; true'
grep -e run/tasks -e stint-shim -e runc -e crun -e stintd -e process.json "$tmp/o" && fail "the node shows inside"
for cmd in 'echo x >/run/stint/init' 'mount -t tmpfs none /tmp' 'echo x >/proc/sys/kernel/core_pattern' 'unshare -n true' \
    'mknod /tmp/d b 8 0' 'cat /proc/1/environ' 'ls /proc/1/fd/' 'cat /etc/shadow'; do
    ran=$((ran + 1))
    "$stint" exec "$holds" -- sh -c "$cmd" >"$tmp/o" 2>"$tmp/e" </dev/null && fail "this works in there: $cmd"
done
# Its memory is the job's: more than the job has is killed, and the job goes on.
submit --name small --gpus 1 --limit 10m --cpu 0.5 --ram 64Mi -- sh -c 'echo up; sleep 600'
small=$job
becomes "$small" running
writes "$small" up
ran=$((ran + 1))
"$stint" exec "$small" -- python3 -c 'x = bytearray(400 << 20); print(len(x))' >"$tmp/o" 2>"$tmp/e" </dev/null
grep -q 419430400 "$tmp/o" && fail "a command has more memory than its job"

# ---- a terminal -----------------------------------------------------------------------------------

cat >"$tmp/term.py" <<'END'
import fcntl, os, pty, select, signal, struct, sys, termios, time
stint, job = sys.argv[1:3]
def want(fd, text, what):
    got, until = b"", time.time() + 20
    while text not in got:
        r, _, _ = select.select([fd], [], [], max(0, until - time.time()))
        if not r:
            sys.exit(f"{what}: waited for {text!r}, got {got!r}")
        try:
            b = os.read(fd, 65536)
        except OSError:
            b = b""
        if not b:
            sys.exit(f"{what}: ended without {text!r}: {got!r}")
        got += b
    return got
def start(*command):
    pid, fd = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "vt100"
        os.execv(stint, [stint, "exec", job, "--", *command])
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 101, 0, 0))
    return pid, fd
pid, fd = start("sh")
want(fd, b"$", "a prompt")
os.write(fd, b"tty; echo is:$TERM:$((40+2))\r")
want(fd, b"is:vt100:42", "a terminal")
os.write(fd, b"stty size\r")
want(fd, b"33 101", "its size")
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 60, 0, 0))
os.kill(pid, signal.SIGWINCH)
time.sleep(0.3)
os.write(fd, b"stty size\r")
want(fd, b"20 60", "another size")
os.write(fd, b"sleep 600\r")
time.sleep(0.5)
os.write(fd, b"\x03")
os.write(fd, b"echo after:$?\r")
want(fd, b"after:130", "Ctrl-C")
os.write(fd, b"exit 9\r")
while True:
    try:
        if not os.read(fd, 65536):
            break
    except OSError:
        break
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9, "the status of a shell"
pid, fd = start("sh")
want(fd, b"$", "a prompt")
os.write(fd, b"\r~.")
want(fd, b"left", "~. at the beginning of a line")
os.waitpid(pid, 0)
print("fine")
END
ran=$((ran + 8))
timeout 120 python3 "$tmp/term.py" "$stint" "$holds" >"$tmp/o" 2>&1
grep -q '^fine' "$tmp/o" || fail "a terminal: $(cat "$tmp/o")"

# ---- ends -------------------------------------------------------------------------------------------

# A command whose stint is gone is hung up on.
"$stint" exec "$holds" -- sh -c 'trap "echo hung >/data/hung; exit" HUP; echo in >/data/in; while :; do sleep 0.1; done' \
    </dev/null >/dev/null 2>&1 &
gone=$!
data=$(storage_of n1 acme)
wait_for test -e "$data/in" || fail "it has not begun"
kill -9 "$gone"
wait "$gone" 2>/dev/null
ran=$((ran + 1))
wait_for test -e "$data/hung" || fail "it was not told"
# Ctrl-C without a terminal goes to the command.
rm -f "$tmp/own"
"$stint" exec "$holds" -- sh -c 'trap "echo interrupted; exit 3" INT; echo in; while :; do sleep 0.1; done' \
    </dev/null >"$tmp/own" 2>"$tmp/e" &
pid=$!
wait_for grep -q in "$tmp/own"
kill -TERM "$pid" # what is sent is handed on
wait "$pid"
same "$?" 143

# Whose it is not.
try 0 '^stint_' token create --account other --user eve --role member
eve=$(sed -n 's/.*\(stint_[^ ]*\).*/\1/p' "$tmp/out")
try 0 '^stint_' token create --account acme --user bob --role member
bob=$(sed -n 's/.*\(stint_[^ ]*\).*/\1/p' "$tmp/out")
STINT_TOKEN=$eve try 4 'no job' exec "$holds" -- true
STINT_TOKEN=$bob try 8 'belongs to' exec "$holds" -- true
# Revoked while a command runs: it ends.
try 0 '^stint_' token create --account acme --user ada --role admin
ada=$(sed -n 's/.*\(stint_[^ ]*\).*/\1/p' "$tmp/out")
rm -f "$tmp/own"
STINT_TOKEN=$ada "$stint" exec "$holds" -- sh -c 'echo in; sleep 600' </dev/null >"$tmp/own" 2>"$tmp/e" &
pid=$!
wait_for grep -q in "$tmp/own" || fail "an admin does not get in: $(cat "$tmp/e")"
id=$("$stint" token list -o json | python3 -c 'import json, sys
print([t["id"] for t in json.load(sys.stdin)["tokens"] if t["user"] == "ada"][-1])')
try 0 '' token revoke "$id"
wait "$pid"
same "$?" 7
# In the audit log: who, which job, what, and that it ended; what would draw on a terminal is harmless there.
run 0 "$holds" -- printf '\033]0;owned\007'
try 0 'job.exec' audit --what job.exec
tr -d '\n' <"$tmp/out" | grep -q "$(printf '\033')" && fail "a command draws on whoever reads the log"
try 0 '"nvidia-smi"\|"cat"' audit --what job.exec -o json
try 0 'revoked' audit --what job.exec.end -o json

# The job ends: so does the command, with its status told.
rm -f "$tmp/own"
"$stint" exec "$holds" -- sh -c 'echo in; sleep 600' </dev/null >"$tmp/own" 2>"$tmp/e" &
pid=$!
wait_for grep -q in "$tmp/own"
try 0 '' cancel "$holds"
becomes "$holds" cancelled
wait "$pid"
status=$?
ran=$((ran + 1))
[ $status -eq 137 ] || [ $status -eq 7 ] || fail "a command that ended with its job: $status"
try 5 'only a job that runs' exec "$holds" -- true
try 0 '' cancel "$small"
becomes "$small" cancelled
ran=$((ran + 1))
wait_for sh -c "! ls -d $tmp/n1/run/tasks/*/enter.* 2>/dev/null | grep -q ." || fail "folders of commands are left"
done_testing
