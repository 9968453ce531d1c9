#!/bin/sh
# The image catalogue, as the owner keeps it and as tenants see it. $1 is the program.
set -u
. "$(dirname "$0")/lib/stintd.sh"
start_stintd
as root

hex=$(printf '%064d' 7)
try 0 'IMAGE  *KIND' image list
try 2 'one of the two' image add torch --for all
try 2 'who may use it' image add torch --folder /srv/torch
try 4 'give --digest' image add torch --layout "$tmp/nowhere" --for all
try 4 'no account' image add torch --folder /srv/torch --for vision,nobody
try 2 'whole path' image add torch --folder srv/torch --for all
try 2 'cannot be an image' image add host --folder /srv/torch --for all
try 0 'torch is in the catalogue' image add torch --folder /srv/torch --for vision --about 'for seeing'
mkdir "$tmp/layout"
printf '{"manifests":[{"digest":"sha256:%s","size":3}]}' "$hex" >"$tmp/layout/index.json"
try 0 'in the catalogue' image add base:1 --layout "$tmp/layout" --for all --untrusted
try 0 "sha256:$hex" image list
try 0 '^Path  */srv/torch' image show torch
try 0 '"untrusted"' image show base:1 -o json
try 4 'did you mean torch' image show torc

as ada # of vision
try 0 '^torch  *folder' image list
if "$stint" image list | grep -q /srv; then fail "a tenant sees paths"; fi
try 8 'role' image add mine --folder / --for all
try 8 'role' image remove torch
try 0 '' submit --name a --gpus 0 --cpu 1 --image torch --sim-run 1s -- true
try 0 '' submit --name a --gpus 0 --cpu 1 --image data:my.oci --sim-run 1s -- true
try 4 'no image "torsh".*stint image list' submit --gpus 0 --cpu 1 --image torsh -- true
try 2 'an image is a name of the catalogue' submit --gpus 0 --cpu 1 --image /etc -- true
try 2 'stay in your storage' submit --gpus 0 --cpu 1 --image data:../x -- true

as root
try 0 'is removed' image remove torch
try 4 'no image' image remove torch
try 0 'image.remove' audit --limit 5
try 0 'image.put' audit --limit 10
as ada
try 4 'no image' submit --gpus 0 --cpu 1 --image torch -- true
done_testing
