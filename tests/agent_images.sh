#!/bin/sh
# A booking's image is on its nodes before it begins: agents unpack it and keep it, or say why they cannot; the
# booking says ready or degraded. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
exec=oci
"$STINT_AGENT" doctor --data "$tmp/doctor" --sim h100x1 >"$tmp/doctor.out" 2>&1 || exec=sim
policies="booking_share: 1, booking_account_share: 1" start_native
try 0 '' account set other --guarantee gpu=0
start_agent p1 --exec "$exec"
node_becomes p1 ready

# An image as a registry's tool would leave it: one layer with one file.
python3 - "$tmp/layout" <<'END'
import hashlib, io, json, os, sys, tarfile
root = sys.argv[1]
os.makedirs(root + "/blobs/sha256")
def blob(data):
    name = hashlib.sha256(data).hexdigest()
    open(f"{root}/blobs/sha256/{name}", "wb").write(data)
    return {"digest": "sha256:" + name, "size": len(data)}
out = io.BytesIO()
with tarfile.open(fileobj=out, mode="w") as tar:
    info = tarfile.TarInfo("hello")
    info.size = 5
    tar.addfile(info, io.BytesIO(b"hello"))
tar = out.getvalue()
config = {"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(tar).hexdigest()]}}
manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": {"mediaType": "application/vnd.oci.image.config.v1+json", **blob(json.dumps(config).encode())},
            "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar", **blob(tar)}]}
index = {"schemaVersion": 2, "manifests": [{"mediaType": manifest["mediaType"], "platform": {"architecture": "amd64", "os": "linux"},
                                            **blob(json.dumps(manifest).encode())}]}
open(root + "/index.json", "w").write(json.dumps(index))
open(root + "/oci-layout", "w").write('{"imageLayoutVersion": "1.0.0"}')
END
chmod a+x "$tmp"
chmod -R a+rX "$tmp/layout"
try 0 'catalogue' image add torch --layout "$tmp/layout" --for all
try 0 'catalogue' image add tools --folder "$tmp/tools" --for all
try 0 'catalogue' image add mine --folder /usr --for other

book() { "$stint" book --account acme --gpus 1 --type h100 --for 1h "$@" 2>"$tmp/err"; }
ready() { "$stint" book show "$1" -o json | grep -q "\"ready\":\"$2\""; }
becomes_ready() {
    ran=$((ran + 1))
    wait_for ready "$1" "$2" || fail "booking $1 is not $2: $("$stint" book show "$1"; tail -n 5 "$tmp/p1.log")"
}

# What is not in the catalogue, or not for this account, is refused at once.
try 4 'there is no image "nothing"' book --account acme --gpus 1 --type h100 --from +2h --for 1h --image nothing
try 4 'there is no image "mine"' book --account acme --gpus 1 --type h100 --from +2h --for 1h --image mine
try 2 'images of the catalogue' book --account acme --gpus 1 --type h100 --from +2h --for 1h --image data:mine
try 2 'images of the catalogue' book --account acme --gpus 1 --type h100 --from +2h --for 1h --image host

# A day ahead nothing is done; half an hour ahead it is there.
far=$(book --from +24h --image torch)
becomes_ready "$far" planned
near=$(book --from +20m --image torch)
becomes_ready "$near" ready
try 0 'Image  *torch' book show "$near"
ready "$far" planned || fail "what begins tomorrow is prepared today"
# Restarts forget nothing.
crash_stintd
native
becomes_ready "$near" ready
if [ $exec = oci ]; then
    cached() { [ -e "$(echo "$tmp"/p1/run/images/site/*/root/hello)" ]; }
    cached || fail "the image is not unpacked: $(ls -R "$tmp/p1/run/images")"

    # What the node has not is said, with the reason; and when it is there the booking is ready.
    lacks=$(book --from +20m --image tools)
    becomes_ready "$lacks" degraded
    try 0 "node p1 cannot have image tools: the image's folder is not on this node" book show "$lacks"
    mkdir "$tmp/tools"
    becomes_ready "$lacks" ready
    try 0 'is cancelled' book cancel "$lacks" --yes
fi
# An image that leaves the catalogue is no image any more.
try 0 'removed' image remove torch
becomes_ready "$near" degraded
try 0 'there is no image "torch"' book show "$near"
try 0 'is cancelled' book cancel "$near" --yes
done_testing
