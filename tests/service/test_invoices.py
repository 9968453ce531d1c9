#!/usr/bin/env python3
"""Invoices as finance wants them, over HTTP: numbers without gaps, cents and taxes that add up, credit notes for what was
corrected after the close, and nobody else's.

Months last three seconds here (billing_zone test-3).
"""

import csv
import io
import os
import signal
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(__file__))
from harness import Client, Stintd, check, fleet, main, token  # noqa: E402

BIDI = "\u202e"
DETAILS = {"name": "Corp Ltd", "address": ["1 Main Street", "12345 Town"], "tax_id": "DE123", "reference": "PO 7",
           "due_days": 14, "taxes": {"VAT": 19, "City": 0.25}}
ISSUER = {"name": "Fleet GmbH", "address": "9 Dock Road", "series": "FL", "payment": "IBAN DE00 1234", "due_days": 30}


def months(owner):
    return [m["period"] for m in owner.get("/v1/bills").json["months"]]


def put(client, path, body):
    return client.call("PUT", path, body)


def issue(client, period, **more):
    return client.post("/v1/invoices", {"period": period, **more})


def next_close(stintd):
    """The newest month that is closed, once another one is."""
    had = len(months(stintd.owner))
    stintd.wait(lambda: len(months(stintd.owner)) > had, "a month is closed")
    return months(stintd.owner)[-1]


def setup(stintd):
    owner = stintd.owner
    fleet(owner)
    for name, parent in (("corp", None), ("corp-ml", "corp"), ("corp-own", "corp"), ("rival", None), ("told", None)):
        owner.make("/v1/accounts", {"name": name, "guarantee": {"gpu": {"corp": 2, "corp-ml": 1, "rival": 1}.get(name, 0)},
                                    **({"parent": parent} if parent else {})})
    for name in ("corp", "rival"):
        check(put(owner, f"/v1/accounts/{name}/plan", {"chargeback": True}).status == 200, "the plan")
    owner.make("/v1/prices", {"prices": "dear", "gpu": {"*": {"reserved": 1234.567891, "burst": 3600}}, "cpu": 0.777777})
    for account in ("corp-ml", "corp-own", "rival", "told"):
        owner.make("/v1/jobs", {"name": "j", "account": account, "user": "u", "gpus": 1, "cpu": 3, "sim": {"run": "7d"}})


def details_are_checked(stintd):
    owner = stintd.owner
    check(owner.get("/v1/issuer").status == 404, "no issuer yet")
    for path, good in (("/v1/issuer", ISSUER), ("/v1/accounts/corp/billing", DETAILS)):
        for bad, said in (({"name": ""}, "name"), ({"name": "x" * 201}, "200"), ({"address": []}, "address"),
                          ({"address": ["a"] * 7}, "at most 6"), ({"name": "a\nb"}, ""), ({"name": "a" + BIDI}, ""),
                          ({"address": ["ok", "b" + BIDI]}, ""), ({"due_days": -1}, ""), ({"due_days": 366}, ""),
                          ({"nonsense": 1}, "nonsense"), ({"name": None}, "")):
            answer = put(owner, path, {**good, **bad})
            check(answer.status in (400, 422) and said in answer.text, "%s %s: %d %s", path, bad, answer.status, answer.text)
    for taxes in ({"VAT": -1}, {"VAT": 100.01}, {"VAT": 1.234}, {"": 1}, {"V" + BIDI: 1}, {"VAT": 1e300}, [19],
                  {str(i): 1 for i in range(5)}, {"VAT": None}):
        answer = put(owner, "/v1/accounts/corp/billing", {**DETAILS, "taxes": taxes})
        check(answer.status in (400, 422), "taxes %s: %d %s", taxes, answer.status, answer.text)
    for series in ("", "a b", "inv", "'}", "X" * 17, "A/B"):
        check(put(owner, "/v1/issuer", {**ISSUER, "series": series}).status in (400, 422), "series %r", series)
    check(put(owner, "/v1/accounts/nobody/billing", DETAILS).status == 404, "no such account")
    check(owner.call("DELETE", "/v1/accounts/corp/billing").status == 404, "nothing to remove")
    check(owner.get("/v1/accounts/corp/billing").status == 404, "nothing was set")


def by_hand(invoice):
    """Everything that is on it again, from its lines."""
    total = sum(line["amount_udollars"] for line in invoice["lines"])
    sign = -1 if total < 0 else 1
    net = sign * ((abs(total) + 5000) // 10000)
    check(invoice["sum_udollars"] == total, "the lines' sum: %s", invoice)
    check(invoice["net_cents"] == net and invoice["rounding_udollars"] == net * 10000 - total, "rounding: %s", invoice)
    taxes = [sign * ((abs(net) * tax["rate_bp"] + 5000) // 10000) for tax in invoice["taxes"]]
    check([tax["cents"] for tax in invoice["taxes"]] == taxes, "taxes: %s", invoice["taxes"])
    check(invoice["total_cents"] == net + sum(taxes), "total: %s", invoice)
    check(invoice["total"] == f"{'-' if invoice['total_cents'] < 0 else ''}{abs(invoice['total_cents']) // 100}."
          f"{abs(invoice['total_cents']) % 100:02}", "as text: %s", invoice["total"])
    return total


def first_invoices(stintd):
    owner = stintd.owner
    next_close(stintd)
    period = next_close(stintd)  # a whole month with prices
    check(issue(owner, period).status == 409, "without an issuer")
    check(put(owner, "/v1/issuer", ISSUER).status == 200, "the issuer")
    check(issue(owner, period).json == {"invoices": []}, "without billing details nobody gets one")
    check(put(owner, "/v1/accounts/corp/billing", DETAILS).status == 200, "corp's details")
    check(put(owner, "/v1/accounts/corp-own/billing", {**DETAILS, "name": "Own", "taxes": {}}).status == 200, "own details")
    check(put(owner, "/v1/accounts/told/billing", DETAILS).status == 200, "one that owes nothing")
    got = owner.get("/v1/accounts/corp/billing").json
    check(got["taxes"] == [{"name": "VAT", "rate_bp": 1900}, {"name": "City", "rate_bp": 25}], "taxes: %s", got)
    for bad, status in (("2026-13", 404), ("1999-01", 404), ("open", 400), ("../../x", 404), ("", 400)):
        check(issue(owner, bad).status in (status, 400, 404, 422), "month %r: %d", bad, issue(owner, bad).status)
    check(issue(owner, period, account="rival").status == 404, "rival has no details")
    answer = issue(owner, period)
    check(answer.status == 201, "issued: %d %s", answer.status, answer.text)
    made = answer.json["invoices"]
    check(sorted(i["account"] for i in made) == ["corp", "corp-own"], "who got one: %s", [i["account"] for i in made])
    check(sorted(i["number"] for i in made) == ["FL-000001", "FL-000002"], "numbers: %s", made)
    rows = owner.get("/v1/audit?limit=10&what=invoice").json["rows"]
    check(sorted((r["verb"], r["actor"], r["target"]) for r in rows) ==
          [("invoice.issue", "root", "FL-000001"), ("invoice.issue", "root", "FL-000002")], "audit: %s", rows)
    for invoice in made:
        by_hand(invoice)
        check(invoice["kind"] == "invoice" and invoice["new"] and "book" not in invoice, "%s", invoice)
        bill = owner.get(f"/v1/bills/{period}?account={invoice['account']}").json
        mine = [l for l in bill["lines"] if (l["account"] == "corp-own") == (invoice["account"] == "corp-own")]
        check(invoice["sum_udollars"] == sum(l["amount_udollars"] for l in mine) > 0, "what the bill says: %s", invoice)
    corp = next(i for i in made if i["account"] == "corp")
    check({l["account"] for l in corp["lines"]} == {"corp", "corp-ml"}, "its own and below: %s", corp["lines"])
    check(corp["due"] > corp["issued"] and corp["bill_to"]["reference"] == "PO 7", "%s", corp)
    again = issue(owner, period).json["invoices"]
    check([i["number"] for i in again] == [i["number"] for i in made] and not any(i["new"] for i in again), "once: %s", again)
    # What was issued stays, whatever becomes of the details.
    put(owner, "/v1/accounts/corp/billing", {**DETAILS, "name": "Renamed", "taxes": {"VAT": 7}})
    kept = owner.get(f"/v1/invoices/{corp['number']}").json
    check(kept["bill_to"]["name"] == "Corp Ltd" and kept["total"] == corp["total"], "it stays: %s", kept)
    put(owner, "/v1/accounts/corp/billing", DETAILS)
    return period, corp


def open_month(stintd):
    owner = stintd.owner
    for _ in range(20):
        now = owner.get("/v1/bills/open").json["period"]
        answer = issue(owner, now)
        if owner.get("/v1/bills/open").json["period"] == now:
            check(answer.status == 409 and "still open" in answer.text, "an open month: %d %s", answer.status, answer.text)
            return
    check(False, "no month was open for long enough")


def credit_note(stintd, period, corp):
    """A credit for an entry of a month that is closed and invoiced becomes a credit note, and no second time less money."""
    owner = stintd.owner
    # Its taxes have changed since.
    check(put(owner, "/v1/accounts/corp/billing", {**DETAILS, "taxes": {"VAT": 7}}).status == 200, "other taxes")
    entry = owner.get(f"/v1/bills/{period}/entries?account=corp&component=reserved").json["entries"][0]
    give = {"amount": "0.123456", "reason": "was too much", "entry": entry["seq"], "confirm": True}
    owner.make("/v1/accounts/corp/credits", give)
    posted = owner.get("/v1/bills/open").json["period"]
    stintd.wait(lambda: posted in months(owner), "its month is closed")
    where = next(m for m in months(owner)[months(owner).index(period) + 1:]
                 if any(l["component"] == "adjust" for l in owner.get(f"/v1/bills/{m}?account=corp").json["lines"]))
    made = issue(owner, where, account="corp").json["invoices"]
    note, invoice = made
    check(note["kind"] == "credit_note" and note["refers_to"] == corp["number"] and note["period"] == period, "%s", note)
    check(by_hand(note) == -123456 and note["total_cents"] == -14, "12 cents, 2 of tax: %s", note)
    check(note["taxes"][0]["rate_bp"] == 1900, "with the taxes of what it corrects")
    bill = owner.get(f"/v1/bills/{where}?account=corp").json
    whole = sum(l["amount_udollars"] for l in bill["lines"] if l["account"] != "corp-own")
    check(by_hand(invoice) + by_hand(note) == whole, "both together are the month")
    check(any(l["for"] == "credited_by " + note["number"] for l in invoice["lines"]), "the invoice says so")
    listed = {i["number"]: i for i in owner.get("/v1/invoices").json["invoices"]}
    check(listed[corp["number"]]["credited_cents"] == 14, "%s", listed[corp["number"]])
    # More than the invoice was for is not given back by notes.
    give = {"amount": str(corp["sum_udollars"] // 1000000 + 5), "reason": "all of it", "entry": entry["seq"], "confirm": True}
    owner.make("/v1/accounts/corp/credits", give)
    posted = owner.get("/v1/bills/open").json["period"]
    stintd.wait(lambda: posted in months(owner), "its month is closed")
    where = next(m for m in months(owner)[months(owner).index(where) + 1:]
                 if any(l["component"] == "adjust" for l in owner.get(f"/v1/bills/{m}?account=corp").json["lines"]))
    note, rest = issue(owner, where, account="corp").json["invoices"]
    check(by_hand(note) == -(corp["sum_udollars"] - 123456), "up to the invoice: %s", note)
    bill = owner.get(f"/v1/bills/{where}?account=corp").json
    whole = sum(l["amount_udollars"] for l in bill["lines"] if l["account"] != "corp-own")
    check(by_hand(rest) + by_hand(note) == whole, "both together are the month")
    check(put(owner, "/v1/accounts/corp/billing", DETAILS).status == 200, "as they were")
    return where


def trial_balance(stintd, period):
    owner = stintd.owner
    trial = owner.get(f"/v1/bills/{period}/trial-balance").json
    check(trial["balanced"] and trial["debit_udollars"] == trial["credit_udollars"] > 0, "%s", trial)
    check(sum(r["debit_udollars"] - r["credit_udollars"] for r in trial["rows"]) == 0, "rows")
    usage = sum(r["debit_udollars"] - r["credit_udollars"] for r in trial["rows"] if r["kind"] == "usage")
    check(usage == owner.get(f"/v1/bills/{period}").json["total_udollars"], "usage is the bill: %d", usage)
    mine = [r for r in trial["rows"] if r["account"] in ("corp", "corp-ml") and r["kind"] in ("usage", "invoiced")]
    check(sum(r["debit_udollars"] - r["credit_udollars"] for r in mine) == 0, "all of corp's is invoiced: %s", mine)
    kinds = {r["kind"] for r in trial["rows"]}
    check(kinds == {"usage", "revenue", "invoiced", "receivable", "tax", "rounding"}, "%s", kinds)
    rows = list(csv.DictReader(io.StringIO(owner.get(f"/v1/bills/{period}/trial-balance?format=csv").text)))
    check(len(rows) == len(trial["rows"]) and sum(round(1e6 * (float(r["debit"]) - float(r["credit"]))) for r in rows) == 0,
          "as csv")
    entries = owner.get(f"/v1/bills/{period}/entries?account=corp&component=reserved").json["entries"]
    check(all(e["contra"] == ["#" + l[0] for l in e["lines"]] for e in entries), "the other side is stored: %s", entries)
    sub = stintd.client(token(owner, "corp", "aud", "auditor")["token"])
    check(sub.get(f"/v1/bills/{period}/trial-balance").status == 403, "an auditor of a team")
    check(stintd.client(token(owner, "", "boss", "auditor")["token"]).get(f"/v1/bills/{period}/trial-balance").status == 200, "auditor")


def others(stintd, corp):
    """What others see and may."""
    owner = stintd.owner
    number = corp["number"]
    rival = stintd.client(token(owner, "rival", "eve", "admin")["token"])
    member = stintd.client(token(owner, "corp", "bob", "member")["token"])
    below = stintd.client(token(owner, "corp-ml", "kid", "admin")["token"])
    unknown = rival.get("/v1/invoices/FL-999999")
    for client in (rival, below):
        answer = client.get(f"/v1/invoices/{number}")
        check(answer.status == 404 and answer.json["detail"].replace(number, "FL-999999") == unknown.json["detail"],
              "another's: %d %s", answer.status, answer.text)
        check(client.get(f"/v1/invoices/{number}?format=html").status == 404, "as a page")
        check(client.get("/v1/invoices").json == {"invoices": []}, "nothing in the list")
        check(client.get("/v1/invoices?account=corp").status == 404, "of corp")
        check(client.get("/v1/accounts/corp/billing").status == 404, "corp's address")
        check(client.get("/v1/bills/open/trial-balance").status == 403, "the trial balance")
    check(member.get(f"/v1/invoices/{number}").json["total"] == corp["total"], "its own")
    for client in (rival, member):
        check(issue(client, corp["period"]).status == 403, "issuing")
        for path in ("/v1/issuer", "/v1/accounts/corp/billing", "/v1/accounts/rival/billing"):
            check(put(client, path, DETAILS).status == 403, "PUT %s", path)
        check(client.call("DELETE", "/v1/accounts/corp/billing").status == 403, "DELETE")
        check(client.get("/v1/issuer").status == 403, "the issuer")
    for name in ("..%2f..%2fetc", "FL-000001%00", "%3Cscript%3E", "x" * 300, "FL-1'%20OR%201=1"):
        check(rival.get("/v1/invoices/" + name).status in (400, 404, 414), "%s", name)


def deceiving_texts(stintd):
    """What somebody typed is text, wherever it is shown."""
    owner = stintd.owner
    evil = "</title><script>alert(1)</script>\"'&amp;"
    formula = "=HYPERLINK(\"http://evil\")"
    name = {"name": evil, "address": [formula, "<img src=x onerror=alert(2)>"], "tax_id": "@SUM(A1)",
            "reference": "';DROP TABLE", "taxes": {"<b>VAT</b>": 10}}
    check(put(owner, "/v1/accounts/rival/billing", name).status == 200, "taken as text")
    period = next_close(stintd)
    made = issue(owner, period, account="rival").json["invoices"][-1]
    page = owner.get(f"/v1/invoices/{made['number']}?format=html")
    check(page.header("Content-Type").startswith("text/html"), "%s", page.headers)
    for tag in ("<script", "<img", "<b>VAT", "javascript:", "http://evil\""):
        check(tag not in page.text.lower(), "%s in the page", tag)
    check("&lt;script&gt;" in page.text and page.text.count("<title>") == 1, "it is shown as text")
    put(owner, "/v1/accounts/rival/billing", {**name, "name": formula})
    period = next_close(stintd)
    made = issue(owner, period, account="rival").json["invoices"][-1]
    rows = list(csv.reader(io.StringIO(owner.get(f"/v1/invoices/{made['number']}?format=csv").text)))
    check(len({len(r) for r in rows}) == 1 and all(cell[:1] not in "=@+" or not cell for r in rows for cell in r),
          "no formula: %s", rows)
    check(rows[-1][7] == "total" and rows[-1][15] == made["total"], "the last row: %s", rows[-1])


def many_at_once(stintd):
    """Whoever issues at the same time: no number twice, none left out, one invoice each."""
    owner = stintd.owner
    period = next_close(stintd)
    seen, lock = [], threading.Lock()

    def work():
        answer = stintd.client(stintd.owner_token).post("/v1/invoices", {"period": period})
        with lock:
            seen.append(answer)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    check(all(a.status == 201 for a in seen), "%s", [a.text for a in seen if a.status != 201][:1])
    new = [i["number"] for a in seen for i in a.json["invoices"] if i["new"]]
    check(len(new) == len(set(new)) == 3, "each once: %s", new)
    key = {"Idempotency-Key": "issue-1"}
    period = next_close(stintd)
    first, again = (owner.call("POST", "/v1/invoices", {"period": period}, headers=key) for _ in range(2))
    check((first.status, first.text) == (again.status, again.text), "with a key: %s", again.text)
    numbers = sorted(i["number"] for i in owner.get("/v1/invoices").json["invoices"])
    check(numbers == [f"FL-{i:06}" for i in range(1, len(numbers) + 1)], "no gap: %s", numbers)
    put(owner, "/v1/issuer", {**ISSUER, "series": "NEW"})
    period = next_close(stintd)
    made = issue(owner, period, account="corp").json["invoices"]
    check([i["number"] for i in made] == ["NEW-000001"], "another series begins with 1: %s", made)
    put(owner, "/v1/issuer", ISSUER)
    return len(numbers)


def a_name_again(stintd):
    """Who has the name of one that is gone sees nothing of it."""
    owner = stintd.owner
    owner.make("/v1/accounts", {"name": "gone", "guarantee": {"gpu": 1}})
    put(owner, "/v1/accounts/gone/plan", {"chargeback": True})
    put(owner, "/v1/accounts/gone/billing", {**DETAILS, "name": "Old"})
    stintd.wait(lambda: any(i["account"] == "gone" for i in issue(owner, next_close(stintd)).json["invoices"]), "it has one")
    removed = owner.call("DELETE", "/v1/accounts/gone")
    check(removed.status == 204, "it is removed: %d %s", removed.status, removed.text)
    owner.make("/v1/accounts", {"name": "gone"})
    heir = stintd.client(token(owner, "gone", "heir", "admin")["token"])
    check(heir.get("/v1/invoices").json == {"invoices": []}, "no invoice of the old one")
    check(heir.get("/v1/accounts/gone/billing").status == 404, "nor its address")
    old = [i for i in owner.get("/v1/invoices").json["invoices"] if i["account"].startswith("gone")]
    check(old and all(heir.get("/v1/invoices/" + i["number"]).status == 404 for i in old), "nor by its number")


def after_a_restore(stintd, program):
    """What was issued behind the backup is not known any more: its numbers are not given again."""
    owner = stintd.owner
    data = os.path.join(stintd.dir, "data")
    made = owner.post("/v1/admin/backup", {"file": "early.db"})
    check(made.status in (200, 201), "a backup: %s", made.text)
    period = next_close(stintd)
    lost = [i["number"] for i in issue(owner, period).json["invoices"]]
    check(lost, "invoices that the backup does not know")
    owner.close()
    stintd.process.send_signal(signal.SIGTERM)
    check(stintd.process.wait(30) == 0, "it ends")
    done = subprocess.run([program, "--config", os.path.join(stintd.dir, "config.yaml"), "--data", data, "--restore",
                           os.path.join(data, "backups", "early.db")], capture_output=True, text=True, timeout=120)
    check(done.returncode == 0, "restored: %s", done.stderr)
    with open(stintd.log, "w") as log:
        stintd.process = subprocess.Popen([program, "--config", os.path.join(stintd.dir, "config.yaml"), "--data", data],
                                          stdout=subprocess.DEVNULL, stderr=log)
    stintd.port = stintd._port()
    stintd.owner = owner = Client(stintd.port, stintd.owner_token)
    plan = owner.get("/v1/admin/restore").json["plan"]
    check(owner.post("/v1/admin/restore", {"plan": plan}).status == 200, "accepted")
    stintd.wait(lambda: owner.get("/v1/admin/restore").json["state"] == "none", "the restore is over", 90)
    next_close(stintd)
    answer = issue(owner, next_close(stintd))
    check(answer.status == 201, "issued: %s", answer.text)
    numbers = [i["number"] for i in answer.json["invoices"]]
    check(numbers and not set(numbers) & set(lost), "numbers that were given before: %s, %s", numbers, lost)
    check(all(n.startswith("FL-R") for n in numbers), "they name the restore: %s", numbers)


def run(program):
    stintd = Stintd(program, config="rate: 1000000\nbilling_zone: test-3\n")
    try:
        setup(stintd)
        details_are_checked(stintd)
        period, corp = first_invoices(stintd)
        open_month(stintd)
        posted = credit_note(stintd, period, corp)
        trial_balance(stintd, posted)
        others(stintd, corp)
        deceiving_texts(stintd)
        many_at_once(stintd)
        a_name_again(stintd)
        after_a_restore(stintd, program)
    finally:
        stintd.stop()


if __name__ == "__main__":
    main(run)
