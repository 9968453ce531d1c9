#!/bin/sh
# What shells offer: names of what is there, as the caller may see it; never one that a shell would act on; nothing at all where stintd
# does not answer. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
start_stintd
STINT_TOKEN=$(cat "$tmp/data/owner.token")
export STINT_TOKEN
job=$("$stint" submit --account vision --gpus 1 --limit 1h --sim-run 1h -- train)
# shellcheck disable=SC2016 # these are names
for name in '$(touch${IFS}pwned)' '`touch${IFS}pwned`' 'x;touch${IFS}pwned' '--help-me' 'quiet"name' '*' 'plain-team'; do
    curl -sf -o /dev/null -H "Authorization: Bearer $STINT_TOKEN" -H 'Content-Type: application/json' "$STINT_URL/v1/accounts" \
        -d "{\"name\": \"$(printf %s "$name" | sed 's/"/\\"/g')\", \"parent\": \"vision\"}" || fail "no account $name"
done

# names KIND: what is listed, in one line.
names() { "$stint" completion --list "$1" 2>&1 | tr '\n' ' '; }
lists() {
    ran=$((ran + 1))
    case " $(names "$1")" in *" $2 "*) ;; *) fail "names of $1 lack $2: $(names "$1")" ;; esac
}
lists accounts vision
lists accounts plain-team
lists nodes node01
lists pools main
lists types h100
lists classes standard
lists jobs "$job"
ran=$((ran + 1))
names accounts | grep -q '[^a-zA-Z0-9._@:+/= -]' && fail "a name with other characters: $(names accounts)"
names accounts | grep -q -- '--help-me' && fail "a name that is an option: $(names accounts)"
try 2 'did you mean nodes' completion --list node
try 2 'an argument is missing' completion

# What the shells make of it, in a folder of their own.
mkdir "$tmp/bin" "$tmp/work" && ln -s "$(realpath "$stint")" "$tmp/bin/stint"
PATH=$tmp/bin:$PATH
for shell in bash zsh fish; do
    "$stint" completion $shell >"$tmp/$shell"
done
# shellcheck disable=SC2016 # for the other shell
in_bash() {
    (cd "$tmp/work" && bash -c '. "$1"; shift; COMP_WORDS=(stint "$@"); COMP_CWORD=$#; _stint; echo "${COMPREPLY[@]}"' bash "$tmp/bash" "$@")
}
offers() {
    want=$1
    shift
    ran=$((ran + 1))
    got=$(in_bash "$@")
    [ "$got" = "$want" ] || fail "bash: completing stint $*: \"$got\", not \"$want\""
}
offers 'node16' node drain node16
offers 'main' pool set ma
offers 'plain-team' account show plain
offers 'plain-team' submit --account plain
offers 'node02' submit --exclude-node node02
offers "$job" why "${job%??}"
offers "$job" cancel "${job%??}"
# shellcheck disable=SC2016 # this is a name
offers '' account show '$(tou'
in_bash account show '' >/dev/null
in_bash submit --account '' >/dev/null
if command -v fish >/dev/null; then
    ran=$((ran + 1))
    got=$(cd "$tmp/work" && fish --no-config -c "source '$tmp/fish'; complete -C'stint node drain node16'" | cut -f1 | tr '\n' ' ')
    [ "$got" = 'node16 ' ] || fail "fish: $got"
fi
ran=$((ran + 1))
[ -z "$(ls "$tmp/work")" ] || fail "a shell has run a name: $(ls "$tmp/work")"

# A tenant is offered what it may see.
as ada
lists accounts plain-team
ran=$((ran + 1))
names accounts | grep -qE 'genomics|speech' && fail "a tenant sees others: $(names accounts)"

# Nobody there: silence, and soon.
STINT_URL=http://127.0.0.1:9
export STINT_URL
ran=$((ran + 1))
[ -z "$(names nodes)" ] || fail "without stintd: $(names nodes)"
"$stint" completion --list nodes >/dev/null 2>&1 || fail "without stintd: status $?"
unset STINT_TOKEN
[ -z "$(names nodes)" ] || fail "without a token: $(names nodes)"
done_testing
