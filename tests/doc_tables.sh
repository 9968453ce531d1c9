#!/bin/sh
# Tables that pages write by hand are whole: what the sources list is in the page that explains it. $1 is stint, which is
# not used.
set -u
source=${STINT_SOURCE:-$(dirname "$0")/..}
failed=0

# listed TABLE FILE PAGE...: each name, the first text in a row X(ID, "name", ...) of the table, is in one of the pages as
# `name`.
listed() {
    table=$1 file=$2
    shift 2
    names=$(awk -v table="#define $table(X)" 'index($0, table) { on = 1; next } on { print } on && !/\\$/ { exit }' "$source/$file" |
        sed -n 's/^ *X([A-Z_]*, "\([a-z_]*\)".*/\1/p')
    [ "$(echo "$names" | wc -l)" -gt 5 ] || { echo "FAILED: $file has no table $table"; failed=1; }
    for name in $names; do
        (cd "$source" && grep -q "\`$name\`" "$@") || { echo "FAILED: $* does not say what $name is"; failed=1; }
    done
}

listed ST_ALLOWANCE_TABLE src/state/allowance.h doc/run/quotas.md
listed ST_COMPONENT_TABLE src/ledger/ledger.h doc/use/costs.md doc/use/booking.md
exit $failed
