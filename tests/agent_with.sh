#!/bin/sh
# Jobs that come with a folder: what is in it and what stays behind, sent once, a copy for each job on whichever node, kept over a
# restart of the job and read back afterwards; and what happens when it is gone, damaged, another tenant's, or in the way.
# $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
need_containers
start_native 'folder_keep: 1s'
volumes=$tmp/data/volumes
owner=$STINT_TOKEN
token() { STINT_TOKEN=$owner "$stint" token create --account "$1" --user "$2" --role "$3" -o json |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["token"])'; }
ada=$(token acme ada member)
rita=$(token other rita admin)
start_agent n1 --exec oci --volumes "$volumes"
start_agent n2 --exec oci --volumes "$volumes"
node_becomes n1 ready
node_becomes n2 ready
export STINT_TOKEN="$ada"
small="--cpu 0.2 --ram 64Mi --gpus 0 --limit 2m"
# job STATE OPTION...: sets job, and waits for its end.
job() {
    state=$1
    shift
    # shellcheck disable=SC2086 # words
    try 0 '^j' submit $small "$@"
    job=$(cat "$tmp/out")
    becomes "$job" "$state"
}

src=$tmp/src
mkdir -p "$src/pkg/deep" "$src/.git" "$src/out" "$src/empty"
echo 'print("hello")' >"$src/train.py"
printf '#!/bin/sh\necho ran "$@"\n' >"$src/pkg/run.sh"
chmod +x "$src/pkg/run.sh"
head -c 1300000 /dev/urandom >"$src/pkg/deep/weights"
cp "$src/pkg/deep/weights" "$src/pkg/deep/again"
: >"$src/nothing"
echo secret >"$src/.git/config"
echo big >"$src/out/result.bin"
echo x >"$src/note.tmp"
ln -s /etc/passwd "$src/link"
printf '# what stays here\n*.tmp\n/out/\n' >"$src/.stintignore"

job done --with "$src" -- sh -c 'pwd; ls -A; pkg/run.sh here; cmp pkg/deep/weights pkg/deep/again && echo same;
    cat train.py; echo made >made; ls -ld empty; [ -s nothing ] || echo empty-file'
first=$job
grep -q 'skipped .*link' "$tmp/err" || fail "the link that stayed behind is not named: $(cat "$tmp/err")"
for line in '^/work$' '^ran here' '^same' '^print' '^empty-file'; do writes "$first" "$line"; done
"$stint" logs "$first" | grep -E '^(out|.git|note.tmp|link)$' && fail "something came that should have stayed"
kept() { find "$volumes"/fffe*/c -type f | wc -l; }
[ "$(kept)" -eq 6 ] || fail "$(kept) chunks are kept, not 6: the same bytes twice?"

# What it made comes back; nobody else's job has it, and the second has a copy of its own.
try 0 'copied 1 files, 5 bytes' cp "$first:made" "$tmp/made"
try 0 'copied' cp -r "$first:" "$tmp/all"
cmp "$src/pkg/deep/weights" "$tmp/all/pkg/deep/weights" || fail "not what the job had"
try 2 'read, not written' cp "$tmp/made" "$first:made"
try 2 "must not have" cp "$first:../x" "$tmp/x"
echo 'print("changed")' >"$src/train.py"
before=$(kept)
job done --with "$src" -- sh -c 'ls made; cat train.py; rm -r pkg'
writes "$job" 'changed'
[ "$(kept)" -eq $((before + 1)) ] || fail "more than the one file that changed was kept: $before, $(kept)"
try 0 'copied 1 files' cp "$first:pkg/run.sh" "$tmp/run.sh"

# A gang on two nodes has one; each job of an array its own.
job done --with "$src" --gpus 8 --tasks 2 --network none -- sh -c 'echo "$RANK" >"by-$RANK"'
try 0 'Where  *n[12]:.* n[12]:' show "$job"
for t in 0 1; do try 0 'copied 1 files, 2 bytes' cp "$job:by-$t" "$tmp/by"; done
# shellcheck disable=SC2086 # words
try 0 '' submit $small --with "$src" --array 3 -- sh -c '[ ! -e mine ] && touch mine'
for j in $(cat "$tmp/out"); do becomes "$j" done; done

# Not the wrong folder, not a volume in it, not somebody else's, not more than there may be.
digest=$(ls "$volumes"/fffe*/t | head -n 1)
try 2 'not a folder' submit --with "$src/train.py" -- true
try 0 "made" volume create x --size 1Gi
try 2 "would lie in" submit $small --with "$src" -V x:/work/x -- true
truncate -s 1100M "$src/sparse"
try 6 'leave some out' submit $small --with "$src" -- true
rm "$src/sparse"
export STINT_TOKEN="$rita"
printf 'with: %s\ngpus: 0\ncpu: 0.2\nram: 64Mi\nlimit: 2m\ncommand: [cat, /work/train.py]\n' "$digest" >"$tmp/thief.yaml"
try 0 '^j' submit -f "$tmp/thief.yaml"
thief=$(cat "$tmp/out")
becomes "$thief" failed || becomes "$thief" pending
"$stint" logs "$thief" 2>/dev/null | grep -q print && fail "another tenant's folder came with a job"
try 4 'no job' cp "$first:made" "$tmp/stolen"
# With a folder of its own the place is there, and another's digest is not in it.
try 0 '^j' submit $small --with "$src/pkg" -- true
becomes "$(cat "$tmp/out")" done
try 0 '^j' submit -f "$tmp/thief.yaml"
thief=$(cat "$tmp/out")
becomes "$thief" failed
try 0 'is not there any more; submit it again' show "$thief"

# A chunk that lies: whoever broke the disk is not believed.
export STINT_TOKEN="$ada"
echo 'to be damaged' >"$src/victim"
sum=$(sha256sum <"$src/victim" | cut -d' ' -f1)
# shellcheck disable=SC2086 # words
try 0 '' submit $small --with "$src" -- true
becomes "$(tail -n 1 "$tmp/out")" done
at=$(find "$volumes"/fffe*/c -name "$sum")
[ -n "$at" ] || fail "the chunk is not called by its SHA-256"
printf 'was damaged!!\n' >"$at"
job failed --with "$src" -- cat victim
try 0 'is damaged' show "$job"
ls -A "$volumes"/ffff*/ | grep new && fail "half a folder is left"

# What nobody needs any more goes: folders of jobs that are over, lists, and chunks that no list has. What a job has stays.
printf 'hold\n' >"$tmp/src/victim"
# shellcheck disable=SC2086 # words
try 0 '^j' submit $small --with "$src" -- sleep 100
holder=$(cat "$tmp/out")
becomes "$holder" running
find "$volumes"/fffe*/c "$volumes"/fffe*/t -type f -exec touch -d '3 days ago' {} +
kill "$stintd_pid" && wait "$stintd_pid"
native
export STINT_TOKEN="$ada"
tidied() { [ ! -e "$(echo "$volumes"/ffff*/"$first")" ] && [ "$(kept)" -eq 0 ]; }
wait_for tidied || fail "what was brought is still there: $(kept) chunks, $(ls "$volumes"/ffff*)"
[ -d "$(echo "$volumes"/ffff*/"$holder")" ] || fail "a running job has lost its folder"
try 5 'has no folder' cp "$first:made" "$tmp/gone"
try 0 '' cancel "$holder"
becomes "$holder" cancelled
job done --with "$src" -- cat victim
writes "$job" '^hold'
done_testing
