#!/usr/bin/env python3
"""The hashes of proof/proof.h, written again from its description: prints the vectors that
src/proof/test/test_proof.c compares with.

Each vector is the hash of everything of one kind, for many sizes, in order.
"""
import hashlib


def h(data, size=32, key=b""):
    return hashlib.blake2b(data, digest_size=size, key=key).digest()


def leaf(entry):
    return h(b"\x00" + entry)


def node(left, right):
    return h(b"\x01" + left + right)


def split(n):
    return 1 << (n - 1).bit_length() - 1


def root(leaves):
    if not leaves:
        return h(b"")
    if len(leaves) == 1:
        return leaves[0]
    k = split(len(leaves))
    return node(root(leaves[:k]), root(leaves[k:]))


def proof(leaves, begin, end, offset=0):
    """What is needed besides leaves [begin, end), left before right."""
    low, high = offset, offset + len(leaves)
    if not leaves or (low >= begin and high <= end):
        return []
    if high <= begin or low >= end:
        return [root(leaves)]
    k = split(len(leaves))
    return proof(leaves[:k], begin, end, low) + proof(leaves[k:], begin, end, low + k)


def chain(leaves):
    head = bytes(32)
    for one in leaves:
        head = h(b"\x02" + head + one)
    return head


def salt(name, secret):
    return h(b"\x04" + name, 16, secret)


def head_leaf(name, size, root_, chain_, secret):
    return h(b"\x03" + salt(name, secret) + name + size.to_bytes(8, "big") + root_ + chain_)


def checkpoint_leaves(heads, secret):
    n = max(1024, 1 << (len(heads) - 1).bit_length())
    fill = [h(b"\x05" + i.to_bytes(8, "big"), 32, secret) for i in range(n - len(heads))]
    return sorted(heads + fill)


def main():
    leaves = [leaf(b"entry %d" % i) for i in range(130)]
    roots = b"".join(root(leaves[:n]) for n in range(131))
    chains = b"".join(chain(leaves[:n]) for n in range(131))
    proofs = b"".join(b"".join(proof(leaves[:n], a, b))
                      for n in range(21) for a in range(n + 1) for b in range(a, n + 1))
    secret = bytes(range(32))
    heads = [head_leaf(b"team%d" % i, i, root(leaves[:i]), chain(leaves[:i]), secret)
             for i in range(100)]
    print("ROOTS      ", h(roots).hex())
    print("CHAINS     ", h(chains).hex())
    print("PROOFS     ", h(proofs).hex(), len(proofs) // 32)
    for n in (0, 1, 100):
        print("CHECKPOINT ", n, root(checkpoint_leaves(heads[:n], secret)).hex())


if __name__ == "__main__":
    main()
