"""Ed25519 signatures in plain integers: slow, and for tests alone."""
import hashlib

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def _sum(p, q):
    """Two points of the twisted Edwards curve, as (x, y, z, t) with x = x/z, y = y/z, t = xy/z."""
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def _times(n, p):
    q = (0, 1, 1, 0)
    while n:
        if n & 1:
            q = _sum(q, p)
        p, n = _sum(p, p), n >> 1
    return q


def _base():
    y = 4 * pow(5, P - 2, P) % P
    xx = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(xx, (P + 3) // 8, P)
    if (x * x - xx) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    x = P - x if x & 1 else x
    return x, y, 1, x * y % P


B = _base()


def _bytes(p):
    z = pow(p[2], P - 2, P)
    x, y = p[0] * z % P, p[1] * z % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def _number(*parts):
    return int.from_bytes(hashlib.sha512(b"".join(parts)).digest(), "little")


def _secret(seed):
    h = hashlib.sha512(seed).digest()
    return int.from_bytes(h[:32], "little") & (1 << 254) - 8 | 1 << 254, h[32:]


def public(seed):
    return _bytes(_times(_secret(seed)[0], B))


def sign(seed, text):
    a, prefix = _secret(seed)
    key = public(seed)
    r = _number(prefix, text) % L
    head = _bytes(_times(r, B))
    s = (r + _number(head, key, text) * a) % L
    return head + s.to_bytes(32, "little")
