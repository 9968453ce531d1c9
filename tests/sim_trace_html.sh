#!/bin/sh
# The page of a run as its readers meet it: a made workload is played, the page is written, an XML
# parser accepts it, nothing is fetched from elsewhere, and playing again gives the same bytes.
# $1 is the program.
set -eu
stint=$1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"

"$stint" sim gen --gpus 128 --teams 12 --jobs 250 --days 2 -d made >/dev/null
sed -i 's/name: speech,/name: "<b>\&\\"",/' made/world.yaml
sed -i 's/,speech,/,"<b>\&""",/' made/jobs.csv
for page in one two; do
    "$stint" sim trace --format csv --jobs made/jobs.csv --world made/world.yaml \
        --html $page.html >/dev/null 2>err || { cat err; exit 1; }
done
cmp one.html two.html || { echo "the same run gives another page"; exit 1; }

python3 - one.html <<'END'
import sys
import xml.etree.ElementTree as tree

text = open(sys.argv[1], encoding="utf-8").read()
assert len(text) < 1000000, len(text)
root = tree.fromstring(text.replace("<!DOCTYPE html>", ""))
svgs = list(root.iter("svg"))
assert len(svgs) >= 10, len(svgs)
for svg in svgs:
    assert svg.find("title").text and svg.find("desc").text
    assert len(list(svg.iter("path"))) > 3, svg.find("title").text
names = [row.findtext("th") for row in root.findall(".//table")[-1].iter("tr")]
assert '<b>&"' in names, names
for element in root.iter():
    for key, value in element.attrib.items():
        assert key not in ("src", "href") and "url(" not in value, (element.tag, key, value)
print(len(svgs), "plots hold")
END
