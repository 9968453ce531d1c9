#!/bin/sh
# Help for every verb, with an example; completion that the shells accept; the manual. $1 is the
# program.
set -u
stint=$1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0

fail() {
    echo "FAILED: $*"
    failed=$((failed + 1))
}

# ---- help ----------------------------------------------------------------------------------

verbs_of() {
    "$stint" "$@" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'
}

check() {
    "$stint" help "$@" >"$tmp/out" 2>&1 || fail "help $*: status"
    grep -q "^Usage: stint $*" "$tmp/out" || fail "help $*: $(cat "$tmp/out")"
    case $1 in
    sim) ;;
    *) grep -q '^Example:' "$tmp/out" || fail "help $*: no example" ;;
    esac
    awk 'length($0) > 130 { exit 1 }' "$tmp/out" || fail "help $*: a long line"
}

count=0
for verb in $(verbs_of); do
    subs=$(verbs_of "$verb")
    for sub in $subs; do
        check "$verb" "$sub"
        count=$((count + 1))
    done
    if [ -z "$subs" ]; then
        check "$verb"
        count=$((count + 1))
    fi
done
[ $count -ge 40 ] || fail "only $count verbs were found"

# ---- completion ----------------------------------------------------------------------------

for shell in bash zsh fish; do
    "$stint" completion $shell >"$tmp/$shell" || fail "completion $shell: status"
    if command -v $shell >/dev/null; then
        $shell -n "$tmp/$shell" || fail "$shell does not accept its completion"
    else
        echo "no $shell here: its completion is not tried"
    fi
done
# What fish itself offers, with the program on its path.
if command -v fish >/dev/null; then
    mkdir -p "$tmp/bin" && ln -sf "$(command -v "$stint")" "$tmp/bin/stint"
    offers() { PATH=$tmp/bin:$PATH fish --no-config -c "source '$tmp/fish'; complete -C'$1'" | cut -f1 | tr '\n' ' '; }
    [ "$(offers 'stint no')" = 'node ' ] || fail "fish: stint no: $(offers 'stint no')"
    [ "$(offers 'stint submit --pri')" = '--print --priority ' ] || fail "fish: --pri: $(offers 'stint submit --pri')"
    [ "$(offers 'stint ps --state ti')" = 'timeout ' ] || fail "fish: --state ti: $(offers 'stint ps --state ti')"
    [ -z "$(cd "$tmp" && offers 'stint submit --limit ')" ] || fail "fish: files as a limit"
    case " $(offers 'stint node ')" in *' drain '*) ;; *) fail "fish: stint node: $(offers 'stint node ')" ;; esac
fi
"$stint" completion tcsh 2>"$tmp/err" && fail "completion tcsh: status 0"
grep -q 'bash, zsh and fish' "$tmp/err" || fail "completion tcsh: $(cat "$tmp/err")"

# complete WORD...: what bash offers behind them, the last being begun.
complete() {
    bash -c '. "$1"; shift; COMP_WORDS=(stint "$@"); COMP_CWORD=$#; _stint; echo "${COMPREPLY[@]}"' \
        bash "$tmp/bash" "$@"
}
offers() {
    want=$1
    shift
    got=$(complete "$@")
    [ "$got" = "$want" ] || fail "completing stint $*: \"$got\", not \"$want\""
}
if command -v bash >/dev/null; then
    offers 'submit' sub
    offers 'drain' node d
    offers '--dry-run' submit --gpus 1 --dr
    offers 'json' ps -o j
    offers 'csv' node list --output c
    offers 'timeout' ps --state ti
    offers '' submit --limit '' # its value, not the next option
    offers '--task --tail' logs -f --t
    offers 'bash' completion b
    offers '--reload' sim run --rel
    offers '' submit -- --dr
fi

# ---- the manual ----------------------------------------------------------------------------

"$stint" help --man >"$tmp/stint.1" || fail "the manual: status"
head -n 1 "$tmp/stint.1" | grep -q '^\.TH STINT 1' || fail "the manual does not begin as one"
grep -q '^\.SS "stint node drain' "$tmp/stint.1" || fail "the manual lacks node drain"
if command -v groff >/dev/null; then
    groff -man -Tutf8 -ww -z "$tmp/stint.1" 2>"$tmp/err" || fail "groff: status"
    [ ! -s "$tmp/err" ] || fail "groff: $(head -n 3 "$tmp/err")"
fi

echo "$count verbs, $failed failed"
[ "$failed" -eq 0 ]
