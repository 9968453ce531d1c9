#!/usr/bin/env python3
"""That the exports of one bill agree with each other, to the last decimal: check_exports.py FOLDER NAME..."""
import csv
import json
import sys
from decimal import Decimal
from html.parser import HTMLParser


def rows(path):
    with open(path, encoding="utf-8", newline="") as f:
        text = f.read()
    assert text.endswith("\r\n"), path
    return list(csv.DictReader(text.splitlines(keepends=True), strict=True))


class Page(HTMLParser):
    """Texts of a page, and that nothing comes from outside."""
    def __init__(self):
        super().__init__()
        self.text = []

    def handle_starttag(self, tag, attrs):
        assert tag not in ("script", "link", "img", "iframe", "object"), tag
        for name, value in attrs:
            assert name not in ("src", "href", "onclick", "onload"), (name, value)

    def handle_data(self, data):
        self.text.append(data)


def check(base):
    with open(base + ".json", encoding="utf-8") as f:
        bill = json.load(f)
    total = Decimal(bill["total_udollars"]) / 1000000
    assert Decimal(bill["total"]) == total
    assert sum(line["amount_udollars"] for line in bill["lines"]) == bill["total_udollars"]
    lines = rows(base + ".csv")
    assert sum(Decimal(r["amount"]) for r in lines) == total
    assert len(lines) == len(bill["lines"])
    for r, line in zip(lines, bill["lines"]):
        assert int(r["counted"]) == line["quantity"] and r["component"] == line["component"]
    entries = rows(base + "-entries.csv")
    assert sum(Decimal(r["amount"]) for r in entries if r["amount"]) == total
    focus = rows(base + "-focus.csv")
    assert sum(Decimal(r["BilledCost"]) for r in focus) == total
    assert sum(Decimal(r["EffectiveCost"]) for r in focus) == total
    counted = sum(int(r["x_Counted"]) for r in focus if r["x_Component"] == "reserved")
    assert counted == sum(u["reserved_mgpu_ms"] for u in bill["uses"])
    for status in ("Used", "Unused") if counted else ():
        assert any(r["CapacityReservationStatus"] == status and r["x_Component"] == "reserved"
                   for r in focus), status
    windows = sum(line["quantity"] for line in bill["lines"] if line["component"] == "window")
    assert windows == sum(int(r["x_Counted"]) for r in focus if r["x_Component"] == "window")
    assert all(r["CommitmentDiscountId"] == r["ResourceId"] for r in focus if r["x_Component"] == "window")
    unused = sum(int(r["x_Counted"]) for r in focus
                 if r["x_Component"] == "reserved" and r["CapacityReservationStatus"] == "Unused")
    idle = sum(row["unused_mgpu_ms"] for row in bill["idle_reservations"])
    assert unused >= idle, (unused, idle)  # by day there is less to share than by month
    page = Page()
    with open(base + ".html", encoding="utf-8") as f:
        html = f.read()
    page.feed(html)
    assert "url(" not in html and "@import" not in html and "://" not in html
    assert f"{bill['total_udollars'] // 10000 / 100:,.2f}" in "".join(page.text), base
    return f"{bill['account']} {bill['period']} {total}"


def main():
    for name in sys.argv[2:]:
        print("agree:", check(f"{sys.argv[1]}/{name}"))


main()
