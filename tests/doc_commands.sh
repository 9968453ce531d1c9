#!/bin/sh
# The commands in the documentation work as they stand and print what is shown: every line that begins
# with "$ " in a block marked console, in one shell per page, against a real stintd
# (lib/doc_page.py says how the output is compared). $1 is the program.
set -u
. "$(dirname "$0")/lib/stintd.sh"
source=${STINT_SOURCE:-$(dirname "$0")/..}
here=$(cd "$(dirname "$0")" && pwd)
start_stintd
mkdir -p "$tmp/bin"
ln -s "$(realpath "$stint")" "$tmp/bin/stint"

# play PAGE USER
play() {
    as "$2"
    rm -rf "$tmp/work" && mkdir "$tmp/work" && ln -s "$tmp/bin" "$tmp/work/build"
    python3 "$here/lib/doc_page.py" script "$source/$1" >"$tmp/script"
    : >"$tmp/played"
    (
        cd "$tmp/work" && PATH="$tmp/bin:$PATH"
        exec 3>"$tmp/played"
        # shellcheck disable=SC1091 # it was just written
        . "$tmp/script"
    ) >"$tmp/out" 2>&1 || fail "$1: $(tail -n 1 "$tmp/played"): $(tail -n 5 "$tmp/out")"
    python3 "$here/lib/doc_page.py" check "$source/$1" "$tmp/work" || fail "$1: it shows something else"
    n=$(wc -l <"$tmp/played")
    ran=$((ran + n))
}

# The first pages show a cluster that nobody has used; operators' pages are played by the owner.
play README.md ada
stint_cancel=$("$stint" ps -o csv | awk -F, '$2 == "mine" { print $1 }')
try 0 '' cancel "$stint_cancel"
play doc/start.md ada
for page in $(cd "$source" && grep -rl '^```console$' doc | sort); do
    case $page in
    doc/start.md) ;;
    doc/run/*) play "$page" root ;;
    *) play "$page" ada ;;
    esac
done
[ "$ran" -ge 100 ] || fail "only $ran commands were found"
done_testing
