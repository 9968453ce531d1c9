"""Sends a packet of a segment that is none of ours: forge.py NODE PORT SEGMENT FROM TO UDP-PORT TEXT. It is what the
kernel would send, down to the hardware addresses; says the errno when it cannot be sent."""
import socket
import struct
import sys

node, port, segment, source, target, inner, text = sys.argv[1:8]


def total(data):
    if len(data) % 2:
        data += b"\0"
    s = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while s >> 16:
        s = (s & 0xFFFF) + (s >> 16)
    return ~s & 0xFFFF


src, dst = socket.inet_aton(source), socket.inet_aton(target)
udp = struct.pack("!HHHH", 5555, int(inner), 8 + len(text), 0) + text.encode()
head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 7, 0, 64, 17, 0, src, dst)
head = head[:10] + struct.pack("!H", total(head)) + head[12:]
frame = b"\2S" + dst + b"\2S" + src + b"\x08\x00" + head + udp
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
try:
    s.sendto(struct.pack("!II", 0x08000000, int(segment) << 8) + frame, (node, int(port)))
    print("sent")
except OSError as e:
    print("refused: %s" % e.strerror)
