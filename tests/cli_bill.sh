#!/bin/sh
# `stint bill verify`, and what leaves the house: bill files, CSV, JSON, pages and FOCUS exports of a synthetic
# shop, each checked by a program that was written from its description.
set -eu
stint=$1
here=$(dirname "$0")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fail() {
    echo "cli_bill: $*" >&2
    exit 1
}

# Runs it and wants that exit status and that text.
want() {
    status=$1 text=$2
    shift 2
    got=0
    out=$("$@" 2>&1) || got=$?
    [ "$got" -eq "$status" ] || fail "$*: status $got, wanted $status: $out"
    case $out in
    *"$text"*) ;;
    *) fail "$*: \"$text\" is not in: $out" ;;
    esac
}

"$STINT_MONEY_SAMPLE" "$dir"
key=$(cat "$dir/key")

for bill in "$dir"/*.bill; do
    want 0 "proved: the" "$stint" bill verify --key "$dir/key" "$bill"
    want 0 "is right" "$stint" bill verify -k "$key" "$bill"
    want 0 "This key is not known" "$stint" bill verify "$bill"
    want 0 '"trusted":false' "$stint" bill verify -o json "$bill"
done
want 0 "key      $key" "$stint" bill verify "$dir/small.bill"

# What is wrong is named, with a status of its own.
sed '5s/"at":1/"at":2/' "$dir/acme-2026-10.bill" >"$dir/wrong.bill"
want 9 "line 5: altered" "$stint" bill verify "$dir/wrong.bill"
want 9 '"good":false' "$stint" bill verify -o json "$dir/wrong.bill"
sed '7d' "$dir/acme-2026-10.bill" >"$dir/wrong.bill"
want 9 "line 7: altered, or a line is missing" "$stint" bill verify "$dir/wrong.bill"
head -c 5000 "$dir/acme-2026-10.bill" >"$dir/wrong.bill"
want 9 "cut off" "$stint" bill verify "$dir/wrong.bill"
: >"$dir/wrong.bill"
want 9 "empty" "$stint" bill verify "$dir/wrong.bill"
want 9 "not the one you trust" "$stint" bill verify -k "$(echo "$key" | tr 0-9a-f 1-9a-f0)" "$dir/small.bill"

# What is no bill, no key, no file is the caller's mistake.
want 4 "cannot open" "$stint" bill verify "$dir/nothing"
want 4 "neither 64 hex digits nor a file" "$stint" bill verify -k 12ab "$dir/small.bill"
printf 'abc\n' >"$dir/small-key"
want 2 "not a public key" "$stint" bill verify -k "$dir/small-key" "$dir/small.bill"
want 2 "" "$stint" bill verify
want 0 "Check a downloaded bill" "$stint" bill verify --help

# The second verifier agrees, in good and in bad.
python3 "$here/money/bill_reference.py" "$dir"/*-10.bill "$dir"/*-11.bill "$dir/small.bill"
sed '9s/"sum":"./"sum":"x/' "$dir/small.bill" >"$dir/wrong.bill"
want 1 "checksum" python3 "$here/money/bill_reference.py" "$dir/wrong.bill"

# FOCUS: accepted column by column; and the validator refuses what is wrong.
python3 "$here/focus_validate.py" "$dir"/*-focus.csv
grep -q ',window,' "$dir/acme-2026-10-focus.csv" || fail "no booking in October"
python3 "$here/focus_validate.py" --self "$dir/acme-2026-10-focus.csv"
python3 "$here/focus_validate.py" --self "$dir/acme-2026-11-focus.csv"
grep -q ',Correction,' "$dir/acme-2026-11-focus.csv" || fail "no correction of October in November"
if grep -q ',Correction,' "$dir/acme-2026-10-focus.csv"; then
    fail "a correction within October has a class"
fi

python3 "$here/money/check_exports.py" "$dir" acme-2026-10 acme-2026-11 beta-2026-10
