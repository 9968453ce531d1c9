#!/usr/bin/env python3
"""Runs mpirun over the nodes of a job, with nothing but Python: no ssh server in the image, no keys of users.

Each task of the job runs this program. The first one runs the command, which finds the nodes in the job's hostfile and
starts its daemons by way of us; the first task on each other node waits for that. Who may start something there shows by
a challenge that it has the key: a secret of the account, so that no other user's job can.

    head -c 32 /dev/urandom | base64 | stint secret put mpi-key
    stint submit --tasks 2 --gpus 8 --limit 1h --secret mpi-key=mpi-key -- python3 /data/mpi.py mpirun ./train
"""
import hashlib
import hmac
import json
import os
import secrets
import socket
import struct
import subprocess
import sys
import time

KEY_FILE = os.environ.get("MPI_KEY_FILE", "/run/stint/secrets/mpi-key")
PATIENCE = 120  # seconds until all tasks have started
END = "\0end"


def key():
    with open(KEY_FILE, "rb") as f:
        k = f.read().strip()
    if len(k) < 16:
        sys.exit("%s: a key has at least 16 characters" % KEY_FILE)
    return k


def proof(nonce, text):
    return hmac.new(key(), nonce + text.encode(), hashlib.sha256).hexdigest()


def port():
    return int(os.environ["MASTER_PORT"])


# ---- who asks -------------------------------------------------------------------------------------


def connect(host):
    until = time.monotonic() + PATIENCE
    while True:
        try:
            s = socket.create_connection((host, port()), 5)
            s.settimeout(None)
            return s
        except OSError as e:
            if time.monotonic() > until:
                sys.exit("task on %s cannot be reached: %s" % (host, e))
            time.sleep(0.1)


def ask(host, text):
    """Runs a command there; its exit status."""
    with connect(host) as s, s.makefile("rb") as f:
        nonce = f.readline().strip()
        s.sendall(json.dumps({"run": text, "proof": proof(nonce, text)}).encode() + b"\n")
        while True:
            head = f.read(4)
            if len(head) < 4:
                return 255
            n = struct.unpack("!i", head)[0]
            if n <= 0:
                return -n
            sys.stdout.buffer.write(f.read(n))
            sys.stdout.buffer.flush()


def nodes():
    with open(os.environ["STINT_HOSTFILE"]) as f:
        return [line.split()[0] for line in f if line.strip()]


def lead(command):
    """Both of the programs that are called mpirun ask us to start their daemons."""
    me = os.path.realpath(__file__)
    os.environ["OMPI_MCA_plm_rsh_agent"] = os.environ["PRTE_MCA_plm_ssh_agent"] = "%s %s --reach" % (sys.executable, me)
    os.environ["HYDRA_LAUNCHER"], os.environ["HYDRA_LAUNCHER_EXEC"] = "ssh", me
    status = subprocess.call(command)
    for host in nodes()[1:]:
        ask(host, END)
    return status if status >= 0 else 128 - status


# ---- who is asked ---------------------------------------------------------------------------------


def frame(s, n, data=b""):
    s.sendall(struct.pack("!i", n) + data)


def run(s, text):
    p = subprocess.Popen(["/bin/sh", "-c", text], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    while True:
        piece = os.read(p.stdout.fileno(), 65536)
        if not piece:
            break
        frame(s, len(piece), piece)
    status = p.wait()
    frame(s, -status if status >= 0 else -(128 - status))


def serve():
    """Each caller in a process of its own: a daemon lives as long as the program. One who lacks the key gets nothing."""
    door = socket.create_server((nodes()[int(os.environ["NODE_RANK"])], port()), reuse_port=False)
    while True:
        s, _ = door.accept()
        s.settimeout(10)
        nonce = secrets.token_hex(16).encode()
        try:
            s.sendall(nonce + b"\n")
            said = json.loads(s.makefile("rb").readline(1 << 20))
            good = hmac.compare_digest(proof(nonce, said["run"]), said["proof"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            good = False
        if not good:
            s.close()
            continue
        if said["run"] == END:
            frame(s, 0)
            return 0
        if os.fork() == 0:
            door.close()
            s.settimeout(None)
            run(s, said["run"])
            os._exit(0)
        s.close()


def main(args):
    if args[:1] == ["--reach"]:
        return ask(args[1], " ".join(args[2:]))
    if not args:
        sys.exit("usage: mpi.py mpirun ARGUMENT...")
    if os.environ["RANK"] == "0":
        return lead(args)
    return serve() if os.environ["LOCAL_RANK"] == "0" and os.environ["NODE_RANK"] != "0" else 0


sys.exit(main(sys.argv[1:]))
