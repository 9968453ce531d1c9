#!/bin/sh
# Every YAML example in the documentation, and every file in examples/, plays as it stands.
set -eu
stint=$1
source=${STINT_SOURCE:-$(dirname "$0")/..}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# References have parts of files, and files that are no scenarios.
pages=$(find "$source/doc" -name '*.md' ! -path '*/reference/*' ! -path '*/dev/*' ! -path '*/decisions/*' | sort)
# shellcheck disable=SC2086 # a list of paths
awk -v out="$work" '
    /^```yaml$/ { file = sprintf("%s/%03d.yaml", out, ++n); inside = 1; next }
    /^```$/     { inside = 0; next }
    inside      { print > file }
' $pages

count=0
for file in "$work"/*.yaml "$source"/examples/*.yaml; do
    if ! "$stint" sim run "$file" >"$work/out" 2>&1; then
        echo "an example of the documentation does not hold:"
        cat "$file" "$work/out"
        exit 1
    fi
    count=$((count + 1))
done
[ "$count" -ge 5 ] || { echo "only $count examples were found"; exit 1; }
echo "$count examples hold"
