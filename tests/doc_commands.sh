#!/bin/sh
# The commands in the documentation work as they stand: every line that begins with "$ " in a block
# marked console, in one shell per page, against a real stintd. A line in capitals behind a command
# is the heading of the table it prints. $1 is the program.
set -u
. "$(dirname "$0")/lib/stintd.sh"
source=${STINT_SOURCE:-$(dirname "$0")/..}
start_stintd
mkdir "$tmp/bin" "$tmp/work"
ln -s "$(realpath "$stint")" "$tmp/bin/stint"

# play PAGE USER
play() {
    as "$2"
    awk '
        /^```console$/ { inside = 1; next }
        /^```$/        { inside = 0 }
        !inside        { next }
        /^\$ /         {
            line = substr($0, 3)
            quoted = line
            gsub(/\047/, "\047\\\047\047", quoted)
            print "last=\047" quoted "\047; echo \"# $last\" >&3"
            print "{ " line "\n} >out || exit 1; n=$((n + 1))"
            next
        }
        {
            gsub(/  +/, " *")
            print "grep -q \"^" $0 "\" out || exit 1"
        }
    ' "$source/doc/$1" >"$tmp/script"
    (
        cd "$tmp/work" && PATH="$tmp/bin:$PATH" n=0
        exec 3>"$tmp/played"
        # shellcheck disable=SC1091 # it was just written
        . "$tmp/script"
    ) >"$tmp/out" 2>&1 || fail "doc/$1: $(tail -n 1 "$tmp/played"): $(tail -n 5 "$tmp/out")"
    n=$(wc -l <"$tmp/played")
    [ "$n" -ge 10 ] || fail "doc/$1: only $n commands were found"
    ran=$((ran + n))
}

play tenant.md ada
play admin.md root
done_testing
