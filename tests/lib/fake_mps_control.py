#!/usr/bin/env python3
"""Stands for nvidia-cuda-mps-control where there is no GPU: -d, commands on stdin, a server per user.

Everything it is told goes to FILE.log beside it, with the daemon's folder. FILE.mood, if there is one, has
words for how it misbehaves: old (does not start), lie (answers other limits than it was told),
deaf (does not quit), gib (shows memory in whole GiB, as some drivers do), slow (takes two seconds for a server),
hang (starts, and never answers).
"""
import os
import signal
import socket
import subprocess
import sys
import time

PIPE = os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps")
SOCKET = PIPE + "/control"
ME = os.path.abspath(sys.argv[0])


def mood(word):
    try:
        with open(ME + ".mood") as f:
            return word in f.read().split()
    except OSError:
        return False


def log(text):
    with open(ME + ".log", "a") as f:
        f.write("%s: %s\n" % (os.path.basename(os.environ.get("STINT_MPS_DIR", "?")), text))


def clients():
    """Processes that say they use MPS; the real one knows them by their connections."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/environ" % pid, "rb") as f:
                env = f.read().split(b"\0")
        except OSError:
            continue
        if b"FAKE_MPS_CLIENT=1" in env and b"CUDA_MPS_PIPE_DIRECTORY=/dev/shm/mps" in env:
            found.append(pid)
    return found


class Daemon:
    def __init__(self):
        self.percent = "100.0"
        self.memory = None
        self.servers = {}  # pid: [process, percent, memory]

    def shown(self, memory):
        if memory is None:
            return ""
        if mood("lie"):
            return "1M"
        if mood("gib") and int(memory[:-1]) >= 1024:
            return "%dG" % (int(memory[:-1]) // 1024)
        return memory

    def start_server(self, uid):
        process = subprocess.Popen(["sleep", "10000"], user=int(uid), close_fds=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        self.servers[process.pid] = [process, self.percent, self.memory]
        self.asked = 0

    def obey(self, words):
        verb, rest = words[0], words[1:]
        if verb == "start_server" and mood("slow"):
            time.sleep(2)
        if verb == "get_server_list":
            return "".join("%d\n" % pid for pid in self.servers)
        if verb == "get_server_status":
            self.asked += 1
            return "ACTIVE\n" if self.asked > 1 else "INITIALIZING\n"
        if verb == "start_server":
            self.start_server(rest[1])
        elif verb == "get_client_list":
            return "".join("%s\n" % pid for pid in clients())
        elif verb == "set_default_active_thread_percentage":
            self.percent = "%.1f" % float(rest[0])
        elif verb == "get_default_active_thread_percentage":
            return self.percent + "\n"
        elif verb == "set_default_device_pinned_mem_limit":
            self.memory = rest[1]
        elif verb == "get_default_device_pinned_mem_limit":
            return self.shown(self.memory) + "\n"
        elif verb == "set_active_thread_percentage":
            self.servers[int(rest[0])][1] = "%.1f" % float(rest[1])
        elif verb == "get_active_thread_percentage":
            return self.servers[int(rest[0])][1] + "\n"
        elif verb == "set_device_pinned_mem_limit":
            self.servers[int(rest[0])][2] = rest[2]
        elif verb == "get_device_pinned_mem_limit":
            return self.shown(self.servers[int(rest[0])][2]) + "\n"
        elif verb not in ("terminate_client", "quit"):
            return "Unknown command: %s\n" % verb
        return ""

    def serve(self):
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(SOCKET)
        os.chmod(SOCKET, 0o666)
        listener.listen(8)
        with open(PIPE + "/nvidia-cuda-mps-control.pid", "w") as f:
            f.write("%d" % os.getpid())
        while True:
            caller, _ = listener.accept()
            with caller:
                line = caller.makefile().readline().strip()
                if not line:
                    continue
                log(line)
                try:
                    answer = self.obey(line.split())
                except (KeyError, IndexError, ValueError) as e:
                    answer = "Failed: %r\n" % e
                if line == "quit" and not mood("deaf"):
                    for row in self.servers.values():
                        row[0].kill()
                        row[0].wait()
                    caller.sendall(b"\n")
                    return
                caller.sendall(answer.encode() or b"\n")


def daemonize():
    if mood("old"):
        print("this driver is too old")
        return 1
    log("start %s" % os.environ.get("CUDA_VISIBLE_DEVICES"))
    log("environment %s" % " ".join(sorted(os.environ)))
    if os.fork():
        return 0
    os.setsid()
    if os.fork():
        os._exit(0)
    null = os.open("/dev/null", os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    Daemon().serve()
    return 0


def main():
    if sys.argv[1:] == ["-d"]:
        return daemonize()
    for line in sys.stdin:
        if mood("hang"):
            log("hangs at " + line.strip())
            time.sleep(3600)
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(SOCKET)
            s.sendall(line.encode())
            s.shutdown(socket.SHUT_WR)
            answer = s.makefile().read()
            if answer.strip():
                sys.stdout.write(answer)
    return 0


if __name__ == "__main__":
    sys.exit(main())
