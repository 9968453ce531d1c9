"""Inside a task: what it must not be able to do with its tenant's network. $1: addresses of nodes and of stintd, with
commas between them; $2: a port that a task of another tenant listens at; says "held" when nothing worked."""
import errno
import fcntl
import os
import socket
import struct
import subprocess
import sys

nodes, port = sys.argv[1].split(","), int(sys.argv[2])
addresses = os.environ["STINT_TASK_ADDRESSES"].split(",")
own = addresses[int(os.environ["RANK"])]
other = [a for a in addresses if a != own][0]
bad = []


def refused(what, fn, *allowed):
    try:
        got = fn()
    except OSError as e:
        if e.errno not in allowed:
            bad.append("%s: %s" % (what, e))
        return
    bad.append("%s: %r" % (what, got))


def tcp(at, p):
    s = socket.create_connection((at, p), 2)
    return s.recv(64)


def send(at, p, **options):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    if "free" in options:
        s.setsockopt(socket.IPPROTO_IP, 15, 1)  # IP_FREEBIND
        s.bind((options["free"], 0))
    return s.sendto(b"x", (at, p))


def link_message(kind, body):
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    s.bind((0, 0))
    s.send(struct.pack("=IHHII", 16 + len(body), kind, 5, 1, 0) + body)
    answer = s.recv(4096)
    code = struct.unpack("=i", answer[16:20])[0]
    if code < 0:
        raise OSError(-code, os.strerror(-code))
    return "done"


no_way = (errno.ENETUNREACH, errno.EHOSTUNREACH)
# The same addresses, another segment.
for a in addresses:
    refused("another tenant's service at " + a, lambda a=a: tcp(a, port), errno.ECONNREFUSED)
for n in nodes:
    for p in (22, 4789, 8472, 14789):
        refused("TCP to node %s:%d" % (n, p), lambda n=n, p=p: tcp(n, p), *no_way)
        refused("UDP to node %s:%d" % (n, p), lambda n=n, p=p: send(n, p), *no_way)
for a in ("10.0.0.200", "10.255.255.255", "255.255.255.255", "224.0.0.1", "192.0.2.1"):
    refused("UDP to " + a, lambda a=a: send(a, 9), *no_way)
for family, kind in ((socket.AF_INET, socket.SOCK_RAW), (socket.AF_PACKET, socket.SOCK_RAW), (socket.AF_PACKET, socket.SOCK_DGRAM)):
    refused("a raw socket", lambda f=family, k=kind: socket.socket(f, k, 1), errno.EPERM, errno.EAFNOSUPPORT, errno.EACCES)
refused("another's address", lambda: socket.socket().bind((other, 9999)), errno.EADDRNOTAVAIL)
refused("sending as another", lambda: send(other, 9, free="10.0.0.99"), errno.EINVAL, *no_way)
refused("a transparent socket",
        lambda: socket.socket().setsockopt(socket.IPPROTO_IP, 19, 1), errno.EPERM)
index = int(open("/sys/class/net/stint0/ifindex").read())
ip = socket.inet_aton(other)
mac = bytes([2, 0x53]) + ip
attr = lambda kind, data: struct.pack("=HH", 4 + len(data), kind) + data.ljust((len(data) + 3) & ~3, b"\0")
neigh = struct.pack("=BBHiHBB", socket.AF_INET, 0, 0, index, 0x80, 0, 0) + attr(1, ip) + attr(2, mac)
fdb = struct.pack("=BBHiHBB", 7, 0, 0, index, 0xC0, 2, 0) + attr(2, mac) + attr(1, socket.inet_aton(nodes[0]))
route = struct.pack("=BBBBBBBBI", socket.AF_INET, 0, 0, 0, 254, 3, 0, 1, 0) + attr(4, struct.pack("=I", index))
link = struct.pack("=BBHiII", 0, 0, 0, index, 0, 1)
address = struct.pack("=BBBBi", socket.AF_INET, 32, 0, 0, index) + attr(2, ip) + attr(1, ip)
for what, kind, body in (("a neighbour", 28, neigh), ("an entry of the device", 28, fdb), ("a route", 24, route),
                         ("the device", 16, link), ("an address", 20, address)):
    refused("to change " + what, lambda k=kind, b=body: link_message(k, b), errno.EPERM)
refused("the device's hardware address",
        lambda: fcntl.ioctl(socket.socket(), 0x8924, struct.pack("16sH14s", b"stint0", 1, b"\2\0\0\0\0\1")), errno.EPERM)
six = [l for l in open("/proc/net/if_inet6") if "stint0" in l] if os.path.exists("/proc/net/if_inet6") else []
if six:
    bad.append("it has an IPv6 address: %s" % six)
if os.path.exists("/proc/net/if_inet6"):
    refused("IPv6 to all nodes on the link",
            lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).sendto(b"x", ("ff02::1", 9, 0, index)),
            errno.EADDRNOTAVAIL, errno.EACCES, *no_way)
names = sorted(os.listdir("/sys/class/net"))
if names != ["lo", "stint0"]:
    bad.append("it sees %s" % names)
if open("/proc/sys/net/ipv4/ip_forward").read().strip() != "0":
    bad.append("it forwards packets")
print("tried from %s: %s" % (own, "; ".join(bad) or "held"), flush=True)
sys.exit(len(bad) > 0)
