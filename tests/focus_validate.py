#!/usr/bin/env python3
"""Validates a CSV against the FOCUS specification of cost and usage data, version 1.2.

  tests/focus_validate.py FILE...        prints one "FILE:ROW: Column: sentence" per fault, exits 1 if any
  tests/focus_validate.py --self FILE    breaks a good file in many ways; each must be refused

Written from the specification: a table of columns (level, null, type, values), the formats of its attributes,
and its rules between columns. An empty field is null; the specification forbids empty texts.

What a provider "supports" decides whether a conditional column must be there. This provider has sub-accounts, capacity
reservations, resources, one region, published prices, negotiated discounts and tags; it has no commitment discounts and
one currency.
"""
import csv
import io
import json
import re
import sys
from datetime import datetime, timezone
from decimal import Decimal

# ---- columns ------------------------------------------------------------------------------

MANDATORY, CONDITIONAL, RECOMMENDED, ABSENT = "mandatory", "conditional", "recommended", "not supported"
STRING, DECIMAL, TIME, JSON_ = "string", "decimal", "time", "json"

# name: (level, may be null, type, allowed values)
COLUMNS = {
    "AvailabilityZone": (RECOMMENDED, True, STRING, None),
    "BilledCost": (MANDATORY, False, DECIMAL, None),
    "BillingAccountId": (MANDATORY, False, STRING, None),
    "BillingAccountName": (MANDATORY, True, STRING, None),
    "BillingAccountType": (ABSENT, False, STRING, None),
    "BillingCurrency": (MANDATORY, False, STRING, None),
    "BillingPeriodEnd": (MANDATORY, False, TIME, None),
    "BillingPeriodStart": (MANDATORY, False, TIME, None),
    "CapacityReservationId": (CONDITIONAL, True, STRING, None),
    "CapacityReservationStatus": (CONDITIONAL, True, STRING, {"Used", "Unused"}),
    "ChargeCategory": (MANDATORY, False, STRING,
                       {"Usage", "Purchase", "Tax", "Credit", "Adjustment"}),
    "ChargeClass": (MANDATORY, True, STRING, {"Correction"}),
    "ChargeDescription": (MANDATORY, True, STRING, None),
    "ChargeFrequency": (RECOMMENDED, False, STRING, {"One-Time", "Recurring", "Usage-Based"}),
    "ChargePeriodEnd": (MANDATORY, False, TIME, None),
    "ChargePeriodStart": (MANDATORY, False, TIME, None),
    "CommitmentDiscountCategory": (CONDITIONAL, True, STRING, {"Spend", "Usage"}),
    "CommitmentDiscountId": (CONDITIONAL, True, STRING, None),
    "CommitmentDiscountName": (CONDITIONAL, True, STRING, None),
    "CommitmentDiscountQuantity": (CONDITIONAL, True, DECIMAL, None),
    "CommitmentDiscountStatus": (CONDITIONAL, True, STRING, {"Used", "Unused"}),
    "CommitmentDiscountType": (CONDITIONAL, True, STRING, None),
    "CommitmentDiscountUnit": (CONDITIONAL, True, STRING, None),
    "ConsumedQuantity": (CONDITIONAL, True, DECIMAL, None),
    "ConsumedUnit": (CONDITIONAL, True, STRING, None),
    "ContractedCost": (MANDATORY, False, DECIMAL, None),
    "ContractedUnitPrice": (CONDITIONAL, True, DECIMAL, None),
    "EffectiveCost": (MANDATORY, False, DECIMAL, None),
    "InvoiceId": (RECOMMENDED, True, STRING, None),
    "InvoiceIssuerName": (MANDATORY, False, STRING, None),
    "ListCost": (MANDATORY, False, DECIMAL, None),
    "ListUnitPrice": (CONDITIONAL, True, DECIMAL, None),
    "PricingCategory": (CONDITIONAL, True, STRING, {"Standard", "Dynamic", "Committed", "Other"}),
    "PricingCurrency": (ABSENT, True, STRING, None),
    "PricingCurrencyContractedUnitPrice": (ABSENT, True, DECIMAL, None),
    "PricingCurrencyEffectiveCost": (ABSENT, True, DECIMAL, None),
    "PricingCurrencyListUnitPrice": (ABSENT, True, DECIMAL, None),
    "PricingQuantity": (MANDATORY, True, DECIMAL, None),
    "PricingUnit": (MANDATORY, True, STRING, None),
    "ProviderName": (MANDATORY, False, STRING, None),
    "PublisherName": (MANDATORY, False, STRING, None),
    "RegionId": (CONDITIONAL, True, STRING, None),
    "RegionName": (CONDITIONAL, True, STRING, None),
    "ResourceId": (CONDITIONAL, True, STRING, None),
    "ResourceName": (CONDITIONAL, True, STRING, None),
    "ResourceType": (CONDITIONAL, True, STRING, None),
    "ServiceCategory": (MANDATORY, False, STRING, {
        "AI and Machine Learning", "Analytics", "Business Applications", "Compute", "Databases",
        "Developer Tools", "Multicloud", "Identity", "Integration", "Internet of Things",
        "Management and Governance", "Media", "Migration", "Mobile", "Networking", "Security", "Storage",
        "Web", "Other"}),
    "ServiceName": (MANDATORY, False, STRING, None),
    "ServiceSubcategory": (RECOMMENDED, False, STRING, None),
    "SkuId": (CONDITIONAL, True, STRING, None),
    "SkuMeter": (CONDITIONAL, True, STRING, None),
    "SkuPriceDetails": (CONDITIONAL, True, JSON_, None),
    "SkuPriceId": (CONDITIONAL, True, STRING, None),
    "SubAccountId": (CONDITIONAL, True, STRING, None),
    "SubAccountName": (CONDITIONAL, True, STRING, None),
    "SubAccountType": (ABSENT, True, STRING, None),
    "Tags": (CONDITIONAL, True, JSON_, None),
}

# Of the categories a fleet of GPUs may be in.
SUBCATEGORIES = {
    "AI and Machine Learning": {"AI Platforms", "Bots", "Generative AI", "Machine Learning",
                                "Natural Language Processing", "Other (AI and Machine Learning)"},
    "Compute": {"Containers", "End User Computing", "Quantum Compute", "Serverless Compute",
                "Virtual Machines", "Other (Compute)"},
}

# name: type, of properties that the specification itself defines
SKU_PROPERTIES = {
    "CoreCount": "number", "DiskMaxIops": "number", "DiskSpace": "number", "DiskType": "string",
    "GpuCount": "number", "InstanceType": "string", "InstanceSeries": "string", "MemorySize": "number",
    "NetworkMaxIops": "number", "NetworkMaxThroughput": "number", "OperatingSystem": "string",
    "Redundancy": "string", "StorageClass": "string",
}

TAG_PREFIX = "stint/"  # all our tags are the provider's own

# Costs are posted in millionths and carry remainders, so a product may miss its cost by less than this.
PRECISION = Decimal("0.000002")

NUMBER = re.compile(r"-?(\d+(\.\d+)?|\.\d+)(E-?\d+)?\Z")
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\Z")
CURRENCY = re.compile(r"[A-Z]{3}\Z")
FOCUS_NAME = re.compile(r"[A-Z][A-Za-z0-9]{0,49}\Z")
OWN_NAME = re.compile(r"x_[A-Z][A-Za-z0-9]{0,47}\Z")
TIMES = {"Years", "Months", "Days", "Hours", "Minutes", "Seconds"}
SIZES = {p + i + u for p in "KMGTPE" for i in ("", "i") for u in "bB"} | {"b", "B"}


class Faults:
    def __init__(self):
        self.rows = []

    def add(self, row, column, text):
        self.rows.append((row, column, text))


# ---- formats --------------------------------------------------------------------------------

def unit_ok(unit):
    """<units>, <unit>-<time units>, <units>/<time unit>; sizes and times spelled as they must be."""
    if unit in SIZES or unit in TIMES or unit == "kWh":
        return True
    if "-" in unit:
        left, right = unit.split("-", 1)
        return right in TIMES and (left in SIZES or re.fullmatch(r"[A-Z][A-Za-z]*", left) is not None)
    if "/" in unit:
        left, right = unit.split("/", 1)
        return right + "s" in TIMES and (left in SIZES or re.fullmatch(r"[A-Z][a-z]*s", left) is not None)
    return re.fullmatch(r"(\d+ )?[A-Z][A-Za-z]*s", unit) is not None


def parse_object(text):
    """A JSON object of plain values with keys that occur once; raises ValueError."""
    def once(pairs):
        if len({k for k, _ in pairs}) != len(pairs):
            raise ValueError("a key occurs twice")
        return dict(pairs)
    value = json.loads(text, object_pairs_hook=once)
    if not isinstance(value, dict):
        raise ValueError("not an object")
    if any(isinstance(v, (dict, list)) for v in value.values()):
        raise ValueError("a value is an object or a list")
    return value


def check_value(name, value, faults, row):
    level, may_be_null, kind, allowed = COLUMNS[name]
    del level
    if value == "":
        if not may_be_null:
            faults.add(row, name, "must not be null")
        return
    if value.strip() == "" or value.lower() in ("null", "none", "n/a", "not applicable"):
        faults.add(row, name, f"{value!r} stands for null; leave it out")
    if kind == DECIMAL and not NUMBER.match(value):
        faults.add(row, name, f"{value!r} is not a number in the format of the specification")
    if kind == TIME:
        try:
            if not MOMENT.match(value):
                raise ValueError
            datetime.strptime(value, "%Y-%m-%dT%H:%M:%SZ")
        except ValueError:
            faults.add(row, name, f"{value!r} is not a moment like 2026-10-01T00:00:00Z")
    if kind == JSON_:
        try:
            parse_object(value)
        except ValueError as e:
            faults.add(row, name, f"is not a plain JSON object: {e}")
    if allowed is not None and value not in allowed:
        faults.add(row, name, f"{value!r} is not one of {', '.join(sorted(allowed))}")


# ---- rules between columns ---------------------------------------------------------------------

def number(row, name):
    value = row.get(name, "")
    return Decimal(value) if value and NUMBER.match(value) else None


def moment(row, name):
    try:
        return datetime.strptime(row.get(name, ""), "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)
    except ValueError:
        return None


def check_money(r, add):
    if not CURRENCY.match(r["BillingCurrency"]):
        add("BillingCurrency", "is not a code of three letters")
    correction, category = r["ChargeClass"] == "Correction", r["ChargeCategory"]
    priced = category in ("Usage", "Purchase") and not correction
    quantity = number(r, "PricingQuantity")
    for cost, price in (("ListCost", "ListUnitPrice"), ("ContractedCost", "ContractedUnitPrice")):
        unit, total = number(r, price), number(r, cost)
        if unit is not None and unit < 0:
            add(price, "must not be negative")
        if priced and unit is None:
            add(price, f"must not be null when ChargeCategory is {category}")
        if category == "Tax" and unit is not None:
            add(price, "must be null for a tax")
        if None not in (unit, total, quantity) and not correction:
            if abs(unit * quantity - total) > PRECISION:
                add(cost, f"is {total}, but {price} x PricingQuantity is {unit * quantity}")
        if unit is None and category == "Credit" and total != number(r, "BilledCost"):
            add(cost, "of a credit must be its BilledCost")
    if category == "Credit" and number(r, "EffectiveCost") != number(r, "BilledCost"):
        add("EffectiveCost", "of a credit must be its BilledCost")
    if category == "Purchase" and r.get("ChargeFrequency") == "Usage-Based":
        add("ChargeFrequency", "a purchase is not based on usage")


def check_quantities(r, add):
    correction, category = r["ChargeClass"] == "Correction", r["ChargeCategory"]
    for name, unit in (("PricingQuantity", "PricingUnit"), ("ConsumedQuantity", "ConsumedUnit")):
        if (r[name] == "") != (r[unit] == ""):
            add(unit, f"must be null exactly when {name} is")
        if r[unit] and not unit_ok(r[unit]):
            add(unit, f"{r[unit]!r} is not in the format of units")
    if r["PricingQuantity"] == "" and category in ("Usage", "Purchase") and not correction:
        add("PricingQuantity", f"must not be null when ChargeCategory is {category}")
    if r["PricingQuantity"] and category == "Tax":
        add("PricingQuantity", "must be null for a tax")
    if r["ConsumedQuantity"] and category != "Usage":
        add("ConsumedQuantity", f"must be null when ChargeCategory is {category}")
    if r["ConsumedQuantity"] == "" and category == "Usage" and not correction:
        add("ConsumedQuantity", "must not be null for usage")


def check_times(r, add):
    start, end = moment(r, "BillingPeriodStart"), moment(r, "BillingPeriodEnd")
    begin, finish = moment(r, "ChargePeriodStart"), moment(r, "ChargePeriodEnd")
    if None in (start, end, begin, finish):
        return
    if start >= end:
        add("BillingPeriodEnd", "must be behind BillingPeriodStart")
    if begin >= finish:
        add("ChargePeriodEnd", "must be behind ChargePeriodStart")
    inside = start <= begin and finish <= end
    if r["ChargeClass"] == "" and not inside:
        add("ChargePeriodStart", "a charge that corrects nothing lies within its billing period")
    if r["ChargeClass"] == "Correction" and begin >= start:
        add("ChargeClass", "a correction within the current billing period has no class")
    if r.get("x_Corrects") and r["ChargeCategory"] == "Usage" and begin < start \
            and r["ChargeClass"] != "Correction":
        add("ChargeClass", "must be Correction: it corrects an earlier billing period")
    if r["ChargeClass"] == "Correction" and "x_Corrects" in r and not r["x_Corrects"]:
        add("ChargeClass", "a correction says what it corrects")


def check_skus(r, add):
    correction, category = r["ChargeClass"] == "Correction", r["ChargeCategory"]
    for name in ("SkuId", "SkuPriceId", "PricingCategory"):
        if r[name] == "" and category in ("Usage", "Purchase") and not correction:
            add(name, f"must not be null when ChargeCategory is {category}")
        if r[name] and category == "Tax":
            add(name, "must be null for a tax")
    if r["PricingCategory"] == "Committed" and not r["CommitmentDiscountId"]:
        add("PricingCategory", "is Committed without a commitment")
    if r["SkuMeter"] and not r["SkuId"]:
        add("SkuMeter", "must be null when SkuId is")
    if r["SkuId"] and not r["SkuMeter"]:
        add("SkuMeter", "should not be null when SkuId is not")
    if r["SkuPriceDetails"] and not r["SkuPriceId"]:
        add("SkuPriceDetails", "must be null when SkuPriceId is")
    try:
        details = parse_object(r["SkuPriceDetails"]) if r["SkuPriceDetails"] else {}
    except ValueError:
        return
    for key, value in details.items():
        kind = SKU_PROPERTIES.get(key)
        if kind is None and not key.startswith("x_"):
            add("SkuPriceDetails", f"{key} is no property of the specification and lacks x_")
        if kind == "number" and (isinstance(value, bool) or not isinstance(value, (int, float))):
            add("SkuPriceDetails", f"{key} must be a number")
        if kind == "string" and not isinstance(value, str):
            add("SkuPriceDetails", f"{key} must be a text")


def check_things(r, add):
    for name, other in (("RegionName", "RegionId"), ("SubAccountName", "SubAccountId"),
                        ("ResourceType", "ResourceId")):
        if (r[name] == "") != (r[other] == ""):
            add(name, f"must be null exactly when {other} is")
    if r["ResourceName"] and not r["ResourceId"]:
        add("ResourceName", "must be null when ResourceId is")
    if r["ResourceName"] and r["ResourceName"] == r["ResourceId"]:
        add("ResourceName", "must not repeat ResourceId")
    if r["CapacityReservationStatus"] and not r["CapacityReservationId"]:
        add("CapacityReservationStatus", "must be null when CapacityReservationId is")
    if r["CapacityReservationId"] and r["ChargeCategory"] == "Usage" \
            and not r["CapacityReservationStatus"]:
        add("CapacityReservationStatus", "must not be null for usage of a reservation")
    commitment = r["CommitmentDiscountId"]
    for name in ("CommitmentDiscountCategory", "CommitmentDiscountType"):
        if (r[name] == "") != (commitment == ""):
            add(name, "must be null exactly when CommitmentDiscountId is")
    if (r["CommitmentDiscountStatus"] == "") == (bool(commitment) and r["ChargeCategory"] == "Usage"):
        add("CommitmentDiscountStatus", "must be there exactly for usage of a commitment")
    if (r["CommitmentDiscountQuantity"] == "") != (r["CommitmentDiscountUnit"] == ""):
        add("CommitmentDiscountUnit", "must be null exactly when CommitmentDiscountQuantity is")
    if commitment and r["ChargeCategory"] in ("Usage", "Purchase") and r["CommitmentDiscountQuantity"] == "":
        add("CommitmentDiscountQuantity", "must not be null for usage or purchase of a commitment")
    if r.get("x_Component") in ("window", "cancel", "short") and not commitment:
        add("CommitmentDiscountId", "must not be null: the charge is for a booking")
    if r.get("x_Component") == "reserved" and not r["CapacityReservationId"]:
        add("CapacityReservationId", "must not be null: the charge is for a reservation")
    sub, category = r.get("ServiceSubcategory"), r["ServiceCategory"]
    if sub and sub not in SUBCATEGORIES.get(category, {f"Other ({category})"}):
        add("ServiceSubcategory", f"{sub!r} is not of {category}")
    try:
        tags = parse_object(r["Tags"]) if r["Tags"] else {}
    except ValueError:
        return
    for key in tags:
        if not key.startswith(TAG_PREFIX):
            add("Tags", f"{key!r} is the provider's and lacks its prefix {TAG_PREFIX}")


# ---- the whole -----------------------------------------------------------------------------------

def check_header(header, faults):
    if len(set(header)) != len(header):
        faults.add(1, "", "a column is there twice")
    for name in header:
        if name.startswith("x_"):
            if not OWN_NAME.match(name):
                faults.add(1, name, "an own column is x_ and Pascal case")
        elif name not in COLUMNS:
            why = "is not in the specification; own columns begin with x_"
            faults.add(1, name, why if FOCUS_NAME.match(name) else why + " and names are Pascal case")
        elif COLUMNS[name][0] == ABSENT:
            faults.add(1, name, "is for things this provider does not have")
    for name, (level, *_rest) in COLUMNS.items():
        if level in (MANDATORY, CONDITIONAL) and name not in header:
            faults.add(1, name, f"is {level} and missing")
    own = [i for i, name in enumerate(header) if name.startswith("x_")]
    if own and own[0] < len(header) - len(own):
        faults.add(1, header[own[0]], "own columns come behind those of the specification")


def check_across(rows, faults):
    """What must be the same in all rows."""
    parent, services, invoices, named = {}, {}, {}, {}
    for n, r in rows:
        pairs = [
            (parent, r["SkuPriceId"], r["SkuId"], "SkuPriceId", "has two parents"),
            (services, r["ServiceName"], r["ServiceCategory"], "ServiceName", "is in two categories"),
            (invoices, r.get("InvoiceId", ""), r["BillingAccountId"], "InvoiceId",
             "is of two billing accounts"),
            (named, r["SubAccountId"], r["SubAccountName"], "SubAccountName", "differs for one id"),
        ]
        for known, key, value, column, text in pairs:
            if key and known.setdefault(key, value) != value:
                faults.add(n, column, f"{key!r} {text}")


def validate(text):
    faults = Faults()
    if not text.endswith("\r\n"):
        faults.add(1, "", "rows end in CR LF")
    table = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    if not table:
        faults.add(1, "", "there is no header")
        return faults.rows
    header, rows = table[0], []
    check_header(header, faults)
    if faults.rows:
        return faults.rows
    for n, fields in enumerate(table[1:], 2):
        if len(fields) != len(header):
            faults.add(n, "", f"has {len(fields)} fields, not {len(header)}")
            continue
        row = dict(zip(header, fields))
        rows.append((n, row))
        before = len(faults.rows)
        for name in header:
            if name in COLUMNS:
                check_value(name, row[name], faults, n)
        if len(faults.rows) > before:
            continue
        for check in (check_money, check_quantities, check_times, check_skus, check_things):
            check(row, lambda column, what, n=n: faults.add(n, column, what))
    check_across(rows, faults)
    if not rows:
        faults.add(1, "", "there are no rows")
    return faults.rows


# ---- deliberately wrong ones ----------------------------------------------------------------------

def broken(header, rows):
    """(what was done, header, rows), each of which must be refused."""
    def with_cell(which, name, value):
        i = header.index(name)
        return [r[:i] + [value] + r[i + 1:] if k == which else r for k, r in enumerate(rows)]

    def first(**want):
        for k, r in enumerate(rows):
            if all((r[header.index(c)] in v) if isinstance(v, tuple) else r[header.index(c)] == v
                   for c, v in want.items()):
                return k
        raise SystemExit(f"self: no row with {want} to break")

    def has(name, value):
        return any(r[header.index(name)] == value for r in rows)

    usage = first(ChargeCategory="Usage", ChargeClass="", x_Component=("burst", "on_demand"))
    credit = first(ChargeCategory="Credit")
    floor = first(x_Component="reserved", CapacityReservationStatus="Unused")
    for name in header:
        if COLUMNS.get(name, (None,))[0] in (MANDATORY, CONDITIONAL):
            i = header.index(name)
            yield f"without {name}", header[:i] + header[i + 1:], [r[:i] + r[i + 1:] for r in rows]
        if name in COLUMNS and not COLUMNS[name][1]:
            yield f"{name} null", header, with_cell(usage, name, "")
        if name in COLUMNS and COLUMNS[name][2] == DECIMAL:
            for text in ("+1", "1,5", "$1", "1e+5", "ten", "1 "):
                yield f"{name} {text}", header, with_cell(usage, name, text)
        if name in COLUMNS and COLUMNS[name][2] == TIME:
            for text in ("2026-10-01", "2026-10-01 00:00:00", "2026-10-01T00:00:00+00:00",
                         "2026-13-01T00:00:00Z", "2026-10-01T00:00:00.000Z"):
                yield f"{name} {text}", header, with_cell(usage, name, text)
        if name in COLUMNS and COLUMNS[name][3]:
            yield f"{name} unknown", header, with_cell(usage, name, "Whatever")
        if name in COLUMNS and COLUMNS[name][2] == JSON_:
            for text in ("{", "[]", '{"a":{}}', '{"a":1,"a":2}', '{"a":1}', "null"):
                yield f"{name} {text}", header, with_cell(usage, name, text)
    yield "own column in front", ["x_Own"] + header, [["1"] + r for r in rows]
    yield "own column without x_", header + ["Own"], [r + ["1"] for r in rows]
    yield "column twice", header + ["BilledCost"], [r + ["1"] for r in rows]
    yield "short row", header, rows[:1] + [rows[1][:-1]] + rows[2:]
    yield "currency", header, with_cell(usage, "BillingCurrency", "usd")
    for name in ("ListCost", "ContractedCost"):
        yield f"{name} too much", header, with_cell(usage, name, "999999.99")
    for name in ("ListUnitPrice", "ContractedUnitPrice"):
        yield f"{name} negative", header, with_cell(usage, name, "-1")
    for name in ("ListUnitPrice", "ContractedUnitPrice", "PricingQuantity", "PricingUnit",
                 "ConsumedQuantity", "ConsumedUnit", "SkuId", "SkuPriceId", "SkuMeter",
                 "PricingCategory", "ResourceType", "ResourceId", "RegionName"):
        yield f"{name} missing", header, with_cell(usage, name, "")
    yield "unit", header, with_cell(usage, "PricingUnit", "gpu hours")
    yield "credit consumed", header, with_cell(credit, "ConsumedQuantity", "1")
    yield "credit effective", header, with_cell(credit, "EffectiveCost", "-99")
    yield "credit contracted", header, with_cell(credit, "ContractedCost", "-99")
    yield "tax priced", header, with_cell(usage, "ChargeCategory", "Tax")
    yield "correction of now", header, with_cell(usage, "ChargeClass", "Correction")
    yield "outside the period", header, with_cell(usage, "ChargePeriodStart", "2020-01-01T00:00:00Z")
    yield "backwards", header, with_cell(usage, "ChargePeriodEnd", "2020-01-01T00:00:00Z")
    yield "status without id", header, with_cell(floor, "CapacityReservationId", "")
    yield "id without status", header, with_cell(floor, "CapacityReservationStatus", "")
    yield "committed", header, with_cell(usage, "PricingCategory", "Committed")
    yield "subcategory", header, with_cell(usage, "ServiceSubcategory", "Bots")
    prices = [r[header.index("SkuPriceId")] for r in rows]
    again = next(k for k, price in enumerate(prices) if price and prices.count(price) > 1)
    yield "two parents", header, with_cell(again, "SkuId", "something/else")
    below = next(k for k, r in enumerate(rows) if r[header.index("SubAccountId")])
    yield "sub-account without a name", header, with_cell(below, "SubAccountName", "")
    yield "sku property", header, with_cell(usage, "SkuPriceDetails", '{"GpuCount":"one"}')
    yield "sku property unknown", header, with_cell(usage, "SkuPriceDetails", '{"Gpus":1}')
    yield "tag", header, with_cell(usage, "Tags", '{"user":"ada"}')
    yield "name is the id", header, with_cell(usage, "ResourceName", rows[usage][header.index("ResourceId")])
    if has("x_Component", "window"):
        for name in ("CommitmentDiscountId", "CommitmentDiscountCategory", "CommitmentDiscountType",
                     "CommitmentDiscountQuantity", "CommitmentDiscountUnit"):
            yield f"booking without {name}", header, with_cell(first(x_Component="window"), name, "")
    yield "no booking and a status", header, with_cell(usage, "CommitmentDiscountStatus", "Used")
    yield "no booking and a quantity", header, with_cell(usage, "CommitmentDiscountQuantity", "1")
    yield "floor without a reservation", header, [
        r if k != floor else [v if h not in ("CapacityReservationId", "CapacityReservationStatus") else ""
                              for h, v in zip(header, r)] for k, r in enumerate(rows)]
    if has("ChargeClass", "Correction"):
        fixed = first(ChargeClass="Correction")
        yield "correction of nothing", header, with_cell(fixed, "x_Corrects", "")
        yield "correction without a class", header, with_cell(fixed, "ChargeClass", "")
    services = [r[header.index("ServiceName")] for r in rows]
    again = next(k for k, service in enumerate(services) if services.count(service) > 1)
    yield "two categories", header, [
        r if k != again else [{"ServiceCategory": "Storage", "ServiceSubcategory": "Other (Storage)"}.get(h, v)
                              for h, v in zip(header, r)] for k, r in enumerate(rows)]
    names = [r[header.index("SubAccountId")] for r in rows]
    again = next(k for k, name in enumerate(names) if name and names.count(name) > 1)
    yield "two names", header, with_cell(again, "SubAccountName", "another")


def some_of_each(header, rows, most=4):
    """A few rows of every kind: each wrong file is read whole, and the first row of its kind is what is broken."""
    kind = [header.index(name) for name in ("ChargeCategory", "ChargeClass", "x_Component", "CapacityReservationStatus",
                                            "CommitmentDiscountStatus")]
    seen, kept = {}, []
    for row in rows:
        key = tuple(row[i] for i in kind)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] <= most:
            kept.append(row)
    return kept


def written(header, rows):
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\r\n").writerows([header] + rows)
    return out.getvalue()


def self_test(text):
    header, *rows = csv.reader(io.StringIO(text, newline=""))
    rows = some_of_each(header, rows)
    if validate(written(header, rows)):
        print("what is broken must be right before")
        return 1
    passed, count = [], 0
    for what, wrong_header, wrong_rows in broken(header, rows):
        count += 1
        if not validate(written(wrong_header, wrong_rows)):
            passed.append(what)
    if not validate(text.replace("\r\n", "\n")):
        passed.append("line ends")
    for what in passed:
        print(f"not refused: {what}")
    print(f"{count + 1 - len(passed)} of {count + 1} wrong files were refused")
    return 1 if passed else 0


def main():
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    if sys.argv[1] == "--self":
        with open(sys.argv[2], encoding="utf-8", newline="") as f:
            return self_test(f.read())
    bad = 0
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8", newline="") as f:
            faults = validate(f.read())
        for row, column, text in faults[:50]:
            print(f"{path}:{row}: {column}: {text}")
        bad += len(faults)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
