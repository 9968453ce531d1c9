#!/bin/sh
# `stint sim shares` as its users meet it: tests/shares/X.json must give X.out.json, worked out by
# hand; tests/shares/bad/X.json must be refused with status 2 and the line and message of
# tests/shares/bad/expected. $1 is the program.
set -u
stint=$1
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0
ran=0

fail() {
    echo "FAILED: $*"
    failed=$((failed + 1))
}

# refused FILE LINE REGEX: status 2, nothing on stdout, one line on stderr that begins with the place.
refused() {
    ran=$((ran + 1))
    "$stint" sim shares -o json "$1" >"$tmp/out" 2>"$tmp/err"
    status=$?
    [ $status -eq 2 ] || fail "$1: exit status $status, not 2"
    [ ! -s "$tmp/out" ] || fail "$1: something on stdout"
    [ "$(wc -l <"$tmp/err")" -eq 1 ] || fail "$1: $(cat "$tmp/err")"
    grep -Eq "^stint: .*$(basename "$1"):$2: .*$3" "$tmp/err" ||
        fail "$1: \"$(cut -c 1-300 "$tmp/err")\" is not $2: $3"
}

for want in "$here"/shares/*.out.json; do
    question=${want%.out.json}.json
    ran=$((ran + 1))
    "$stint" sim shares -o json "$question" >"$tmp/out" 2>"$tmp/err" ||
        fail "$question: $(cat "$tmp/err")"
    diff -u "$want" "$tmp/out" || fail "$question"
    # The same from standard input, which is read as YAML.
    "$stint" sim shares -ojson - <"$question" >"$tmp/out" 2>"$tmp/err" ||
        fail "$question on stdin: $(cat "$tmp/err")"
    cmp -s "$want" "$tmp/out" || fail "$question: another answer on stdin"
done

while read -r name line message; do
    [ "$name" = "#" ] || refused "$here/shares/bad/$name.json" "$line" "$message"
done <"$here/shares/bad/expected"
for file in "$here"/shares/bad/*.json; do
    grep -q "^$(basename "$file" .json) " "$here/shares/bad/expected" || fail "$file is expected to say nothing"
done

# Too large to keep as files.
head='{"capacity": {"gpu": 1}, "accounts": ['
{
    printf '%s\n{"name": "' "$head"
    head -c 10000000 /dev/zero | tr '\0' x
    printf '"}]}\n'
} >"$tmp/long-name.json"
refused "$tmp/long-name.json" 2 'too long'
head -c 10000 /dev/zero | tr '\0' '[' >"$tmp/nested.json"
refused "$tmp/nested.json" 1 'nested more than'
cp "$tmp/nested.json" "$tmp/nested.yaml"
refused "$tmp/nested.yaml" 1 'nested more than'
many() {
    printf '%s\n' "$head"
    awk -v n="$1" 'BEGIN { for (i = 1; i <= n; i++)
        printf "{\"name\": \"a%d\", \"demand\": {\"gpu\": 1}}%s", i, i < n ? "," : "\n]}\n" }'
}
many 100001 >"$tmp/many.json"
refused "$tmp/many.json" 1 '100001 accounts are too many'

# A hundred thousand accounts on one line are fine.
ran=$((ran + 1))
many 100000 >"$tmp/limit.json"
"$stint" sim shares -o json "$tmp/limit.json" >"$tmp/out" || fail "100000 accounts"
[ "$(grep -c '"share": {"gpu": 0.00001}' "$tmp/out")" -eq 100000 ] || fail "100000 accounts: shares"
[ "$(grep -c '"whole": {"gpu": 1}' "$tmp/out")" -eq 1 ] || fail "100000 accounts: wholes"
grep '"whole": {"gpu": 1}' "$tmp/out" | grep -q '"a1"' || fail "100000 accounts: tie by name"

# The table, and a YAML file.
ran=$((ran + 1))
cat >"$tmp/q.yaml" <<END
capacity: {gpu: 11}
accounts:            # children may come first
  - {name: t, parent: b, demand: {gpu: 3}}
  - {name: a, guarantee: {gpu: 2}, demand: {gpu: 10}}
  - {name: b, guarantee: {gpu: 2}, weight: 4}
  - {name: u, parent: b, guarantee: {gpu: 2}, demand: {gpu: 10}}
END
cat >"$tmp/want" <<END
ACCOUNT  gpu  whole
a        3.4      3
b        7.6      8
  t      2.8      3
  u      4.8      5
(left)   0.0      0
END
"$stint" sim shares "$tmp/q.yaml" >"$tmp/out" || fail "table"
diff -u "$tmp/want" "$tmp/out" || fail "table"

# Output that does not arrive is a failure with a sentence.
ran=$((ran + 1))
"$stint" sim shares "$tmp/q.yaml" >/dev/full 2>"$tmp/err"
[ $? -eq 7 ] || fail "full disk: exit status"
grep -q '^stint: cannot write the output' "$tmp/err" || fail "full disk: $(cat "$tmp/err")"
{
    "$stint" sim shares -o json "$tmp/limit.json" 2>"$tmp/err"
    echo $? >"$tmp/status"
} | head -c 1 >/dev/null
[ "$(cat "$tmp/status")" -eq 7 ] || fail "closed pipe: exit status $(cat "$tmp/status")"

ran=$((ran + 1))
"$stint" sim shares "$tmp/absent.json" 2>"$tmp/err"
[ $? -eq 4 ] || fail "absent file: exit status"
grep -q 'absent.json: cannot open' "$tmp/err" || fail "absent file: $(cat "$tmp/err")"

echo "$ran cases, $failed failed"
[ "$failed" -eq 0 ]
