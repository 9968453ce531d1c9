#!/usr/bin/env python3
"""A second verifier of bill files, written from doc/reference/bill-format.md alone: tests/money/bill_reference.py FILE...

It checks all that can be checked without Ed25519, which Python's library does not have: checksums, hashes, proofs, the
checkpoint's tree, who is below whom, the arithmetic of every posting and the discount of those that have no other factor,
that carries join, and that lines and total are sums. A file that
`stint bill verify` takes and this refuses (or the other way round) is a bug in one of the two or in the document.
"""
import hashlib
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import proof_vectors as ref  # noqa: E402

PER = {"reserved": 3600000000, "guaranteed": 3600000000, "burst": 3600000000, "on_demand": 3600000000,
       "booked": 3600000000, "topology": 3600000000, "idle": 3600000000, "cpu": 3600000000,
       "ram": 3686400000, "energy": 3600000000, "frames": 1, "minutes": 60000, "lost": 1,
       "fault": 1, "cap": 1, "adjust": 1, "window": 3600000000, "cancel": 3600000000, "short": 1,
       "lent": 1}
OF_GPU = {"reserved", "guaranteed", "burst", "on_demand", "booked", "topology", "idle", "lost", "fault",
          "window", "cancel", "short", "lent"}
TAIL = len(',"sum":"0123456789abcdef"}')


class Wrong(Exception):
    pass


def need(good, line, what):
    if not good:
        raise Wrong(f"line {line}: {what}")


def follow(size, begin, end, leaves, more):
    """The root that the leaves [begin, end) and the hashes lead to."""
    def under(low, high):
        if low >= begin and high <= end:
            return ref.root(leaves[low - begin:high - begin])
        if high <= begin or low >= end:
            return more.pop(0)
        mid = low + ref.split(high - low)
        left = under(low, mid)
        return ref.node(left, under(mid, high))
    root = under(0, size) if size else ref.root([])
    return root if not more else None


def read_lines(data):
    """(number, bytes before the sum, object), with all sums checked."""
    before, rows = bytes(8), []
    need(data.endswith(b"\n"), data.count(b"\n") + 1, "cut off")
    for n, line in enumerate(data[:-1].split(b"\n"), 1):
        body, tail = line[:-TAIL], line[-TAIL:]
        before = hashlib.blake2b(b"\x06" + before + body, digest_size=32).digest()[:8]
        need(tail == b',"sum":"' + before.hex().encode() + b'"}', n, "checksum")
        rows.append((n, body, json.loads(line)))
    return rows


class Bill:
    def __init__(self, data):
        self.rows = read_lines(data)
        self.head, self.checkpoint = self.rows[0][2], self.rows[1][2]["checkpoint"]
        self.at = 2
        self.entries = 0
        self.lines, self.total, self.terms, self.pieces = {}, 0, {}, {}
        self.books, self.bookings = [], {}
        last = self.rows[-1]
        content = b"\x07" + data[:data.rindex(b"\n", 0, -1) + 1]
        need(last[2]["hash"] == ref.h(content).hex(), last[0], "hash of the file")
        need(last[2]["key"] == self.checkpoint["key"], last[0], "key")

    def next(self, kind):
        n, body, row = self.rows[self.at]
        if kind not in row:
            return None
        self.at += 1
        return n, body, row

    def check_book(self, n, book, last_range):
        leaves, entries = [], []
        for seq in range(book["from"] + 1, book["to"] + 1):
            found = self.next("entry")
            need(found, n, f"entry {seq} is missing")
            line, body, row = found
            entry = row["entry"]
            need(entry["seq"] == seq and entry["account"] == book["book"], line, "another entry")
            leaves.append(ref.leaf(body[len(b'{"entry":'):]))
            entries.append((line, entry))
        self.entries += len(entries)
        root = bytes.fromhex(book["root"])
        more = [bytes.fromhex(x) for x in book["proof"]]
        need(follow(book["size"], book["from"], book["to"], leaves, more) == root, n, "root of the book")
        if len(leaves) == book["size"]:
            need(ref.chain(leaves).hex() == book["chain"], n, "chain")
        name = book["book"].encode()
        at = ref.h(b"\x03" + bytes.fromhex(book["salt"]) + name + book["size"].to_bytes(8, "big") + root
                   + bytes.fromhex(book["chain"]))
        need(len(book["path"]) == self.checkpoint["depth"], n, "path")
        for i, other in enumerate(book["path"]):
            pair = (bytes.fromhex(other), at) if book["index"] >> i & 1 else (at, bytes.fromhex(other))
            at = ref.node(*pair)
        need(at.hex() == self.checkpoint["root"], n, "root of the checkpoint")
        if last_range:
            self.count(book, entries)
        else:
            for line, entry in entries:
                self.check_booking(line, entry, False)

    def learn(self):
        """Who is below whom, and the terms of each: nothing but the bill's account and what is below it."""
        top, parents, begun, books = self.head["account"], {}, set(), set()
        for n, _body, row in self.rows:
            books |= {row["book"]} if "book" in row else set()
            entry = row.get("entry", {})
            if entry.get("kind") == "account":
                begun.add(entry["account"])
            if entry.get("kind") == "child" and entry["at"] < self.head["to"]:
                need(entry["child"] not in parents, n, "below two accounts")
                parents[entry["child"]] = entry["account"]
            if entry.get("kind") == "prices":
                self.books.append(entry["doc"])
            if entry.get("kind") == "terms":
                need(entry["from"] >= entry["at"], n, "terms of the past")
                self.terms.setdefault(entry["account"], []).append(entry)
        need("" in books and top in books, 1, "books are missing")
        need(begun == books - {""} and set(parents) <= begun, 1, "first entries")
        for name in begun:
            up = [name]
            while up[-1] != top and up[-1] in parents and len(up) <= len(parents):
                up.append(parents[up[-1]])
            need(up[-1] == top or (top == "" and up[-1] not in parents), 1, f"{name} is not below {top}")

    def discount(self, entry):
        """Of the terms with the latest beginning; of the same beginning, the later entry."""
        at_once = entry["kind"] in ("pieces", "credit") or (
            entry["kind"] == "window" and entry["from"] == entry["to"])
        at = entry["at"] - 1 if at_once else entry["from"]
        begun = [(t["from"], t["seq"], t["discount_bp"]) for t in self.terms.get(entry["account"], [])
                 if t["from"] <= at]
        return max(begun)[2] if begun else 0

    def check_piece(self, line, entry):
        """Corrections and credits for lost work against what the books say about the piece of a stay they name."""
        key = (entry["account"], entry["seq"] if entry["kind"] == "usage" else entry.get("fixes"))
        if entry["kind"] == "usage":
            self.pieces[key] = {"gpu": 0, "time": 0, "cap": 0, "credited": 0, "lost": None, "from": entry["from"],
                                "to": entry["to"], "share": entry["share"]}
        p = self.pieces.get(key)
        if entry["kind"] not in ("usage", "fix", "lost") or p is None:
            return
        net = sum(amount for *_, amount, _carry in entry.get("lines", []))
        if entry["kind"] == "lost":
            if p["lost"] is None:
                p["lost"] = entry.get("lost", 0)
            gross, ms = p["gpu"] + p["time"], entry["to"] - entry["from"]
            part = p["gpu"] * p["lost"] // p["share"] if p["share"] and p["gpu"] > 0 else 0
            part += p["time"] * ms // (p["to"] - p["from"]) if p["time"] > 0 else 0
            charged = part * (gross - max(p["cap"], 0)) // gross if gross > max(p["cap"], 0) and ms else 0
            need(entry["charged"] == charged, line, f"lost work was charged {charged}")
            need(entry.get("credited", 0) == p["credited"], line, "credited before")
            p["credited"] += entry["amount"]
            need(net == -entry["amount"] and 0 <= p["credited"] <= charged, line, "credit")
            return
        if entry["kind"] == "fix":
            need(entry.get("capped", 0) == max(p["cap"], 0), line, "paid by caps")
            p["share"] += entry["share"]
            if min(entry["share"], entry["held"], entry["cpu"], entry["ram"]) < 0:
                p["to"] = min(p["to"], entry["from"])
        for what, *_, amount, _carry in entry.get("lines", []):
            p["cap" if what == "cap" else "time" if what in ("cpu", "ram", "energy") else "gpu"] += (
                -amount if what == "cap" else amount)

    def prices(self, at):
        """Of the book with the latest beginning: its rates of bookings by GPU type, and their tables."""
        begun = [b for b in self.books if b["from_ms"] <= at]
        book = max(begun, key=lambda b: b["from_ms"]) if begun else {"rates": []}
        booking = book.get("booking", {"rates": [], "term": [], "lead": [], "cancel": []})
        return {row[0]: rate for row, rate in zip(book["rates"], booking["rates"])}, booking

    def of_class(self, entry):
        """What jobs of the entry's class pay of the price."""
        at = entry["at"] - 1 if entry["kind"] == "pieces" else entry.get("from", entry["at"])
        begun = [b for b in self.books if b["from_ms"] <= at]
        book = max(begun, key=lambda b: b["from_ms"]) if begun else {}
        return dict(book.get("classes", [])).get(entry.get("class"), 10000)

    def rate(self, at, gpu):
        rates = self.prices(at)[0]
        return rates.get(gpu, rates.get("*", 0))

    def keep(self, entry, agreed):
        booking, keep = self.prices(agreed - 1)[1], 1
        for table, ms in (("term", entry["to"] - entry["from"]), ("lead", entry["from"] - agreed)):
            keep *= 10000 - max([(k, v) for k, v in booking[table] if k <= ms], default=(0, 0))[1]
        return (2 * keep + 10000) // 20000

    def check_booking(self, line, entry, main):
        """What is agreed about a booking, and each of its windows against that."""
        if entry["kind"] not in ("booking", "window"):
            return
        key = (entry["account"], entry["booking"])
        was = self.bookings.get(key)
        if entry["kind"] == "booking":
            at, ahead, stays = entry["at"], 0, 0
            agreed = at
            if was:
                ahead = entry["gpu_m"] * max(entry["to"] - max(entry["from"], at), 0)
                both = min(entry["to"], was["to"]) - max(entry["from"], was["from"], at)
                stays = min(entry["gpu_m"], was["gpu_m"]) * max(both, 0)
                agreed = at if ahead > stays else was["agreed"]
            price = (agreed, self.keep(entry, agreed))
            if was and (entry["from"] == entry["to"] or self.rate(price[0] - 1, entry["gpu"]) * price[1]
                        <= self.rate(was["agreed"] - 1, entry["gpu"]) * was["keep_bp"]):
                price = (was["agreed"], was["keep_bp"])
            need((entry["agreed"], entry["keep_bp"]) == price, line, "the price of a booking")
            if was and main:
                gone = was["gpu_m"] * max(was["to"] - max(was["from"], at), 0) - stays
                need(gone == (was["gone"][1] if was["gone"][0] == at else 0), line, "what is given up")
            done = was["done"] if was and was["done"] > was["from"] else entry["from"]
            self.bookings[key] = {**entry, "done": done, "gone": (0, 0)}
            return
        need(was is not None, line, "a booking that was not agreed")
        start = max(was["done"], self.head["from"]) if was["from"] < self.head["from"] else was["done"]
        end = min(entry["at"], was["to"])
        start, end = (start, end) if start < end else (entry["at"], entry["at"])
        need((entry["from"], entry["to"]) == (start, end), line, "the interval of a window")
        need((entry["agreed"], entry["keep_bp"]) == (was["agreed"], was["keep_bp"]), line, "the price of a window")
        need(entry["share"] == was["gpu_m"] * (end - start), line, "the size of a window")
        need(entry.get("missing", 0) == was.get("short_m", 0) * (end - start), line, "what was not delivered")
        table = self.prices(was["agreed"] - 1)[1]["cancel"]
        due = [v for k, v in table if k > max(was["from"] - entry["at"], 0)][:1] or [0]
        need(entry.get("fee_bp", 0) == (due[0] if entry.get("removed") else 0), line, "the fee")
        left, rate = 10000 - self.discount(entry), self.rate(was["agreed"] - 1, entry["gpu"])
        own = (2 * was["keep_bp"] * left + 10000) // 20000
        fee = (2 * was["keep_bp"] * entry.get("fee_bp", 0) * left + 10 ** 8) // (2 * 10 ** 8)
        wanted = [["window", entry["share"], rate, own],
                  ["short", -(entry.get("missing", 0) * rate * own // 36000000000000), 1, 10000],
                  ["cancel", entry.get("removed", 0) if rate and fee else 0, rate, fee],
                  ["lent", -min(entry.get("paid", 0) * self.prices(was["agreed"] - 1)[1].get("lent_bp", 0) // 10000,
                                entry.get("lent", 0) * rate * own // 36000000000000), 1, 10000]]
        need(0 <= entry.get("lent", 0) <= entry["share"] - entry.get("missing", 0) and entry.get("paid", 0) >= 0, line,
             "what was lent")
        need([row[:4] for row in entry["lines"] if row[0] != "cap"] == [w for w in wanted if w[1]], line,
             "the postings of a window")
        was["done"] = end if entry["share"] else was["done"]
        was["gone"] = (entry["at"], entry.get("removed", 0))

    def count(self, book, entries):
        carries = {} if book["from"] else {what: 0 for what in PER}
        for line, entry in entries:
            self.check_piece(line, entry)
            self.check_booking(line, entry, True)
            sides = entry.get("contra", ["#" + row[0] for row in entry.get("lines", [])])
            need(sides == ["#" + row[0] for row in entry.get("lines", [])], line, "the other side of a posting")
            for what, quantity, rate, factor, carry_in, amount, carry in entry.get("lines", []):
                d = PER[what] * 10000
                if what in ("reserved", "cpu", "ram", "energy", "frames", "minutes"):
                    part = self.of_class(entry) if what != "reserved" else 10000
                    need(factor == (2 * (10000 - self.discount(entry)) * part + 10000) // 20000, line, "the terms' discount")
                need(carry_in == carries.get(what, carry_in), line, "carry")
                need(0 <= carry < d and quantity * rate * factor + carry_in == amount * d + carry, line,
                     "arithmetic")
                carries[what] = carry
                gpu = entry.get("gpu", "") if what in OF_GPU else ""
                level = entry.get("level", "whole") if gpu and what != "reserved" else "whole"
                row = self.lines.setdefault((entry["account"], what, gpu, level), [0, 0, 0])
                row[0] += quantity
                row[1] += amount
                row[2] += 1
                self.total += amount

    def check(self):
        self.learn()
        ranges = {}
        for _n, _body, row in self.rows:
            if "book" in row:
                ranges[row["book"]] = row["from"]
        while True:
            found = self.next("book")
            if not found:
                break
            n, _body, book = found
            self.check_book(n, book, ranges[book["book"]] == book["from"])
        for _ in range(self.head["lines"]):
            n, _body, row = self.next("line")
            key = (row["line"], row["what"], row["gpu"], row["level"])
            need(self.lines.pop(key, None) == [row["quantity"], row["amount"], row["entries"]], n, "line")
        need(not self.lines, 1, "lines are missing")
        for _ in range(self.head["uses"]):
            need(self.next("use"), self.rows[self.at][0], "use")
        n, _body, end = self.next("end")
        need(end["entries"] == self.entries, n, "entries")
        need(self.total == self.head["total"], 1, "total")
        return f"{self.head['account']} {self.head['period']}: {self.total} in {self.entries} entries"


def main():
    bad = 0
    for path in sys.argv[1:]:
        with open(path, "rb") as f:
            data = f.read()
        try:
            print("good:", Bill(data).check())
        except (Wrong, ValueError, KeyError, IndexError, TypeError) as e:
            print(f"{path}: wrong: {e!r}")
            bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
