"""Inside a task of a gang of two: says hello to the other ten times a second, over TCP that stays and over UDP, and writes
down what it hears, to /data/heard.RANK."""
import os
import socket
import threading
import time

rank, port = int(os.environ["RANK"]), int(os.environ["HONEST_PORT"])
own, other = "task-%d" % rank, "task-%d" % (1 - rank)
book = open("/data/heard.%d" % rank, "a", buffering=1)


def hear():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((socket.gethostbyname(own), port))
    while True:
        book.write("udp %s\n" % s.recv(64).decode(errors="replace"))


def lines(s):
    for line in s.makefile():
        book.write("tcp %s" % line)
    book.write("cut\n")


threading.Thread(target=hear, daemon=True).start()
if rank == 0:
    door = socket.socket()
    door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    door.bind((socket.gethostbyname(own), port))
    door.listen(8)
    line, _ = door.accept()
else:
    while True:
        try:
            line = socket.create_connection((other, port), 2)
            line.settimeout(None)
            break
        except OSError:
            time.sleep(0.1)
threading.Thread(target=lines, args=(line,), daemon=True).start()
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    line.sendall(b"hello\n")
    out.sendto(b"hello", (other, port))
    time.sleep(0.1)
