#!/usr/bin/env python3
"""An all-reduce around a ring of tasks, over TCP and with nothing but Python.

Each task knows itself and the others by the variables that every task of a job has: RANK, WORLD_SIZE and MASTER_PORT,
and the names task-0, task-1, ... Each has a vector; in the end each has the sum of all of them.

    stint submit --tasks 2 --gpus 8 --limit 10m -- python3 -c "$(cat examples/ring.py)"
"""
import os
import socket
import struct
import sys
import threading
import time

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
port = int(os.environ["MASTER_PORT"])
COUNT = int(os.environ.get("RING_COUNT", "1024"))


def listen():
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((socket.gethostbyname("task-%d" % rank), port + rank))
    s.listen(1)
    return s


def reach(other):
    """The next task may not have started yet."""
    while True:
        try:
            s = socket.create_connection(("task-%d" % other, port + other), 5)
            s.settimeout(None)
            return s
        except OSError:
            time.sleep(0.1)


def read(s, n):
    got = b""
    while len(got) < n:
        piece = s.recv(n - len(got))
        if not piece:
            sys.exit("the task before this one has ended")
        got += piece
    return got


def exchange(out, data, into):
    """Sends to the next while it reads from the one before: both may be large."""
    t = threading.Thread(target=out.sendall, args=(data,))
    t.start()
    got = read(into, len(data))
    t.join()
    return got


def pack(v):
    return struct.pack("%dq" % len(v), *v)


def unpack(b):
    return list(struct.unpack("%dq" % (len(b) // 8), b))


def all_reduce(parts, out, into):
    """First each task gets the sum of one part, then the sums go around."""
    for step in range(size - 1):
        send, add = (rank - step) % size, (rank - step - 1) % size
        got = unpack(exchange(out, pack(parts[send]), into))
        parts[add] = [a + b for a, b in zip(parts[add], got)]
    for step in range(size - 1):
        send, take = (rank - step + 1) % size, (rank - step) % size
        parts[take] = unpack(exchange(out, pack(parts[send]), into))
    return [x for part in parts for x in part]


door = listen()
out = reach((rank + 1) % size)
into, _ = door.accept()
n = COUNT // size * size
mine = [rank * n + i for i in range(n)]
parts = [mine[i * n // size : (i + 1) * n // size] for i in range(size)]
began = time.monotonic()
total = all_reduce(parts, out, into)
took = time.monotonic() - began
right = [size * i + n * size * (size - 1) // 2 for i in range(n)]
print("ring of %d: %s, %d numbers in %.3f s" % (size, "right" if total == right else "WRONG", n, took))
sys.exit(total != right)
