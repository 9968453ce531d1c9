#!/bin/sh
# `stint top` on a terminal of 80 by 24 and without one; tables that fit a narrow terminal. $1 is
# the program.
set -u
. "$(dirname "$0")/lib/stintd.sh"
start_stintd
as root

try 0 '^ACCOUNT  *FLOOR  *HELD' top
try 0 'pretrain .* vision' top --once
grep -q '^WAITING' "$tmp/out" || fail "top: $(cat "$tmp/out")"

cat >"$tmp/screen.py" <<'END'
"""Runs a program on a terminal of its own; keys are sent when a text has been seen."""
import fcntl, os, pty, select, struct, sys, termios, time
rows, columns = int(sys.argv[1]), int(sys.argv[2])
await_text, keys, argv = sys.argv[3].encode(), sys.argv[4].encode(), sys.argv[5:]
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    os.environ["TERM"] = "xterm"
    os.execv(argv[0], argv)
seen, sent, end = b"", False, time.time() + 20
while time.time() < end:
    if select.select([fd], [], [], 0.1)[0]:
        try:
            part = os.read(fd, 65536)
        except OSError:
            break
        if not part:
            break
        seen += part
    if not sent and await_text in seen:
        os.write(fd, keys)
        sent = True
else:
    os.kill(pid, 9)
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
sys.stdout.buffer.write(seen)
sys.exit(status if status >= 0 else 99)
END

screen() {
    ran=$((ran + 1))
    want=$1
    shift
    python3 "$tmp/screen.py" "$@" >"$tmp/out" 2>"$tmp/err"
    got=$?
    [ $got -eq "$want" ] || fail "$*: status $got: $(tail -c 500 "$tmp/out" "$tmp/err")"
}

screen 0 24 80 'q leaves' q "$stint" top
grep -q 'pretrain' "$tmp/out" || fail "top: no jobs on the screen"
grep -q 'WAITING' "$tmp/out" || fail "top: no queue on the screen"
# A job that comes is drawn without a key.
(sleep 1 && as ada && "$stint" submit --name late --gpus 1 --sim-run 1h -- x) >/dev/null 2>&1 &
screen 0 24 80 'late' q "$stint" top
screen 0 10 40 'q leaves' q "$stint" top
# What does not fit is said, and scrolls.
screen 0 14 90 'more (up and down scroll)' "$(printf '\033[B\033[Bq')" "$stint" top
screen 0 24 80 'q leaves' "$(printf '\003')" "$stint" top
screen 2 24 80 'nothing' q "$(command -v env)" TERM=none "$stint" top

# Tables give way to a narrow terminal; nothing wraps.
screen 0 24 60 'nothing' q "$stint" ps
awk '{ sub(/\r$/, ""); if (length($0) > 60) exit 1 }' "$tmp/out" || fail "ps is too wide: $(cat "$tmp/out")"
grep -q 'running' "$tmp/out" || fail "ps: what matters is cut: $(cat "$tmp/out")"
screen 0 24 30 'nothing' q "$stint" ps
grep -q '~' "$tmp/out" || fail "ps: nothing is cut: $(cat "$tmp/out")"

done_testing
