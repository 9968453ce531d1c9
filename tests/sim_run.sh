#!/bin/sh
# `stint sim run` as its users meet it: exit statuses, one sentence for a bad file, all differences
# of a test, the timeline and the table for a question, JSON, and that saving and loading the state
# between steps changes nothing. $1 is the program.
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

# refused FILE LINE TEXT: status 2, nothing on stdout, one line on stderr that begins with the place.
refused() {
    ran=$((ran + 1))
    "$stint" sim run "$1" >"$tmp/out" 2>"$tmp/err"
    status=$?
    [ $status -eq 2 ] || fail "$1: exit status $status, not 2"
    [ ! -s "$tmp/out" ] || fail "$1: something on stdout"
    [ "$(wc -l <"$tmp/err")" -eq 1 ] || fail "$1: $(cat "$tmp/err")"
    grep -q "^stint: .*$(basename "$1"):$2: .*$3" "$tmp/err" ||
        fail "$1: \"$(cut -c 1-300 "$tmp/err")\" is not line $2: $3"
}

# bad LINE TEXT: the same for a file given on standard input.
bad() {
    cat >"$tmp/bad.yaml"
    refused "$tmp/bad.yaml" "$1" "$2"
}

base='fleet: [{gpu: h100, gpus: 8}]
accounts: [{name: team, guarantee: {gpu: 4}}]'

# ---- bad input ---------------------------------------------------------------------------

bad 1 'expected a map' <<END
- a
END
bad 3 'unknown key "time-line" (did you mean "timeline"?)' <<END
$base
time-line: []
END
bad 3 'accounts form a cycle: "b", child of "a", child of "b"' <<END
fleet: [{gpu: h100, gpus: 8}]
accounts:
  - {name: b, parent: a}
  - {name: a, parent: b}
END
bad 4 'its children would need' <<END
fleet: [{gpu: h100, gpus: 8}]
accounts:
  - {name: org, guarantee: {gpu: 4}}
  - {name: team, parent: org, guarantee: {gpu: 5}}
END
bad 4 'there is no account "taem" (did you mean "team"?)' <<END
$base
timeline:
  - do: [submit: {job: a, account: taem}]
END
bad 5 'the timeline goes back' <<END
$base
timeline:
  - at: 1h
  - at: 59m
END
bad 4 'key "run": "soon" is not a duration' <<END
$base
timeline:
  - do: [submit: {job: a, account: team, run: soon}]
END
bad 2 'account b: a guarantees .*; its children would need' <<END
fleet: [{gpu: h100}]
accounts: [{name: a, guarantee: {gpu: 1}}, {name: b, parent: a, guarantee: {gpu: 2}}]
timeline: [{}]
END
bad 1 'gpu, cpu and ram are reserved names' <<END
types: {gpu: {vram: 8Gi}}
$base
timeline: [{}]
END
bad 3 'key "max" is given twice' <<END
fleet: [{gpu: h100}]
accounts:
  - {name: a, max: {gpu: 1}, max: {gpu: 2}}
timeline: [{}]
END
: >"$tmp/empty.yaml"
refused "$tmp/empty.yaml" 1 'the document is empty'
head -c 100000 /dev/zero | tr '\0' '[' >"$tmp/deep.yaml"
refused "$tmp/deep.yaml" 1 'nested'

ran=$((ran + 1))
"$stint" sim run "$tmp/absent.yaml" 2>"$tmp/err"
[ $? -eq 4 ] || fail "absent file: exit status"
grep -q 'absent.yaml: cannot open' "$tmp/err" || fail "absent file: $(cat "$tmp/err")"

ran=$((ran + 1))
"$stint" sim run 2>"$tmp/err"
[ $? -eq 2 ] || fail "no file: exit status"

# ---- differences -------------------------------------------------------------------------

ran=$((ran + 1))
cat >"$tmp/differs.yaml" <<END
name: two things differ
$base
timeline:
  - do:
      - submit: {job: a, account: team, gpus: 8}
    expect:
      - {job: a, state: running, class: guaranteed}
      - {free_gpus: 1}
END
cat >"$tmp/want" <<END
$tmp/differs.yaml:8: at 0s: job a: class: expected guaranteed, found burstable
$tmp/differs.yaml:9: at 0s: free_gpus: expected 1, found 0
FAILED  two things differ  2 of 3 expectations
END
"$stint" sim run "$tmp/differs.yaml" >"$tmp/out" 2>"$tmp/err"
[ $? -eq 1 ] || fail "differences: exit status"
diff -u "$tmp/want" "$tmp/out" || fail "differences"

# Files after the one that differs are played all the same; the worst decides.
ran=$((ran + 1))
sed 's/guaranteed}$/burstable}/; s/free_gpus: 1/free_gpus: 0/; s/two things differ/all is well/' \
    "$tmp/differs.yaml" >"$tmp/holds.yaml"
"$stint" sim run "$tmp/differs.yaml" "$tmp/holds.yaml" >"$tmp/out"
[ $? -eq 1 ] || fail "two files: exit status"
[ "$(tail -n 1 "$tmp/out")" = "ok  all is well  3 expectations" ] || fail "two files: $(cat "$tmp/out")"

# ---- a question --------------------------------------------------------------------------

ran=$((ran + 1))
cat >"$tmp/question.yaml" <<END
name: may they borrow?
fleet: [{gpu: h100, gpus: 8}]
accounts: [{name: team, guarantee: {gpu: 4}}, {name: guest, max: {gpu: 6}}]
timeline:
  - do:
      - submit: {job: g, account: guest, gpus: 6, on_preempt: checkpoint}
      - submit: {job: huge, account: guest, gpus: 7}
  - at: 1h
    do:
      - submit: {job: t, account: team, gpus: 4}
END
cat >"$tmp/want" <<END
may they borrow?

 TIME  JOB   WHAT                   WHERE OR WHY
   0s  g     submitted              guest, 6 GPU
   0s  huge  submit refused         job huge: asks for 7 GPUs; account guest may hold at most 6 (its max)
   0s  g     started, burstable     n1:0-5
   1h  t     submitted              team, 4 GPU
   1h  t     others must make room  n1:0-3
   1h  g     must yield             for t, by 1h30s
1h30s  g     is saving its work     for t, by 1h2m30s
1h40s  g     back in the queue
1h40s  t     started, guaranteed    n1:0-3

After 1h1m:

END
"$stint" sim run "$tmp/question.yaml" >"$tmp/out" || fail "question: exit status"
sed 's/ *$//' "$tmp/out" | sed '/^JOB  *ACCOUNT/,$d' >"$tmp/timeline"
diff -u "$tmp/want" "$tmp/timeline" || fail "question"
sed '1,/^JOB  *ACCOUNT/d' "$tmp/out" >"$tmp/table"
grep -Eq '^g +guest +pending +.*4 free|^g +guest +pending .*are free' "$tmp/table" ||
    fail "question: why g waits: $(cat "$tmp/table")"
grep -Eq '^huge +guest +refused .*account guest may hold at most 6' "$tmp/table" || fail "question: huge"
grep -Eq '^t +team +running +guaranteed +n1:0-3' "$tmp/table" || fail "question: t"

# ---- JSON --------------------------------------------------------------------------------

ran=$((ran + 1))
"$stint" sim run -o json "$tmp/question.yaml" "$tmp/differs.yaml" >"$tmp/out"
[ $? -eq 1 ] || fail "json: exit status"
python3 - "$tmp/out" <<'END' || fail "json"
import json, sys
doc = json.load(open(sys.argv[1]))
question, differs = doc["scenarios"]
assert question["ok"] and question["expectations"] == 0 and question["end_ms"] == 3660000
kinds = [e["kind"] for e in question["effects"]]
assert kinds == ["queued", "refused", "start", "queued", "hold", "notify", "checkpoint",
                 "requeue", "start"], kinds
notify = question["effects"][5]
assert notify == {"at_ms": 3600000, "kind": "notify", "job": "g", "state": "notified",
                  "class": "burstable", "claimant": "t", "until_ms": 3630000,
                  "account": "guest"}, notify
jobs = {j["job"]: j for j in question["jobs"]}
assert jobs["g"]["saved_ms"] == 3640000 and jobs["g"]["lost_gpu_ms"] == 0
assert any(r["blocks"] and r["text"] for r in jobs["g"]["reasons"])
assert jobs["huge"]["state"] == "refused"
assert jobs["t"]["grants"] == [{"node": "n1", "devices": [0, 1, 2, 3]}]
assert not differs["ok"] and [d["line"] for d in differs["differences"]] == [8, 9]
END

# ---- every scenario, with the state saved and loaded between steps -----------------------

ran=$((ran + 1))
"$stint" sim run -o json "$here"/scenarios/*.yaml >"$tmp/plain" 2>"$tmp/err"
[ $? -le 1 ] || fail "scenarios: $(cat "$tmp/err")"
"$stint" sim run -o json --reload "$here"/scenarios/*.yaml >"$tmp/reload" 2>"$tmp/err"
[ $? -le 1 ] || fail "scenarios, reloaded: $(cat "$tmp/err")"
cmp -s "$tmp/plain" "$tmp/reload" || fail "saving and loading changes the outcome of a scenario"

echo "$ran cases, $failed failed"
[ "$failed" -eq 0 ]
