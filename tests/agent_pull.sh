#!/bin/sh
# Images from a real registry on the loopback: pulled by name, kept by digest, run on a node; and registries that are not the
# site's, words that are options, digests and layers that lie, a registry that sends one elsewhere. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
. "$(dirname "$0")/lib/images.sh"
need_containers
for program in skopeo docker-registry busybox; do
    command -v $program >/dev/null || { echo "skipped: $program is not installed"; exit 77; }
done
port_of() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
at=$(port_of)
registry=127.0.0.1:$at
cat >"$tmp/registry.yml" <<END
version: 0.1
storage: {filesystem: {rootdirectory: $tmp/registry}, delete: {enabled: true}}
http: {addr: $registry}
log: {level: error}
END
docker-registry serve "$tmp/registry.yml" >"$tmp/registry.log" 2>&1 &
more_pids="$more_pids $!"
wait_for python3 -c "import urllib.request; urllib.request.urlopen('http://$registry/v2/')" || fail "no registry: $(cat "$tmp/registry.log")"

# push NAME:TAG
push() {
    skopeo --insecure-policy copy --quiet --dest-tls-verify=false "oci:$tmp/made" "docker://$registry/$1" >"$tmp/push" 2>&1 ||
        fail "cannot push: $(cat "$tmp/push")"
}
image one
push team/app:1

# One that redirects whatever is asked for; and a port that nobody is at.
cat >"$tmp/bad.py" <<'END'
import http.server, sys
class Bad(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        open(sys.argv[2], "a").write(self.path + "\n")
        if self.path == "/v2/":
            self.send_response(200)
        else:
            self.send_response(307)
            self.send_header("Location", "file:///etc/passwd")
        self.end_headers()
    do_HEAD = do_GET
    def log_message(self, *a): pass
server = http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Bad)
server.serve_forever()
END
bad_at=$(port_of)
python3 "$tmp/bad.py" "$bad_at" "$tmp/bad.log" &
more_pids="$more_pids $!"

chmod a+x "$tmp"
start_native "images: $tmp/images" "registries: registry.example, $registry 127.0.0.1:$bad_at"
start_agent n1 --exec oci
node_becomes n1 ready
one() { submit --gpus 0 --cpu 0.2 --ram 64Mi --limit 2m --image "$1" -- /bin/cat /etc/what; }

# Before it is there it is refused, as always; then it runs.
try 4 'there is no image' submit --account acme --gpus 0 --image app:1 -- true
try 0 'is in the catalogue, sha256:' image pull app:1 "$registry/team/app:1" --for acme
try 0 "layout  *trusted  *acme  *sha256:" image list
try 0 "^Path  *$tmp/images/" image show app:1
one app:1
becomes "$job" done
writes "$job" '^one'
layout=$(sed -n 's/^Path  *//p' "$tmp/out")
try 0 "^Path" image show app:1
layout=$(sed -n 's/^Path  *//p' "$tmp/out")
[ "sha256:$(basename "$layout")" = "$(sed -n 's/^Digest  *//p' "$tmp/out")" ] || fail "the layout is not called by its digest"

# Again: it is known by its digest and nothing is fetched. A new image of the tag is another one, and the first stays.
touch -d '2 days ago' "$layout/index.json"
before=$(stat -c %Y "$layout/index.json")
try 0 'is in the catalogue' image pull again "$registry/team/app:1" --for all
[ "$(stat -c %Y "$layout/index.json")" = "$before" ] || fail "what was there was fetched again"
image two
push team/app:1
try 0 'is in the catalogue' image pull app:1 "$registry/team/app:1" --for acme
one app:1
becomes "$job" done
writes "$job" '^two'
one_was=$(basename "$layout")
[ -d "$tmp/images/$one_was" ] || fail "the first image is gone"
digest=$(skopeo inspect --tls-verify=false --no-tags --format '{{.Digest}}' "docker://$registry/team/app:1")
try 0 'is in the catalogue' image pull pinned "$registry/team/app@$digest" --for acme

# Not these.
try 8 'is not one of this site' image pull x docker.io/library/busybox:latest --for all
try 8 'is not one of this site' image pull x "registry.example.evil/x:1" --for all
try 8 'is not one of this site' image pull x "127.0.0.1:1/x:1" --for all
for word in '--help/x' 'oci:/etc/x' "$registry" "$registry/" "$registry//x" "$registry/../x" "u@$registry/x" 'a b/c' "$registry/x;id" "$registry/x@sha256:1"; do
    try 2 '' image pull x -- "$word" --for all 2>/dev/null || try 2 '' image pull x --for all -- "$word"
done
try 6 'cannot be pulled' image pull x "$registry/team/none:1" --for all
try 6 'cannot be pulled' image pull x "$registry/team/app@sha256:$(printf %064d 1)" --for all
try 6 'cannot be pulled' image pull x "127.0.0.1:$bad_at/team/app:1" --for all
grep -q root: "$tmp/err" && fail "a file of the machine was told"
[ -s "$tmp/bad.log" ] || fail "the bad registry was not asked"
# A layer that is not what its digest says.
image three
push team/lies:1
layer=$(find "$tmp/registry" -path '*blobs*' -name data -size +500k -newer "$tmp/push" | head -n 1)
printf 'XXXX' | dd of="${layer:-/dev/null}" bs=1 seek=4096 conv=notrunc 2>/dev/null
try 6 'cannot be pulled' image pull x "$registry/team/lies:1" --for all
try 4 'no image' image show x
find "$tmp/images" -maxdepth 1 -name '.new-*' | grep . && fail "half an image is left"

# ---- signatures, with a key of our own -----------------------------------------------------------
if command -v gpg >/dev/null; then
    export GNUPGHOME="$tmp/gnupg"
    mkdir -m 700 "$GNUPGHOME" "$tmp/registries.d" "$tmp/signatures"
    key() {
        gpg --batch --quiet --passphrase '' --quick-gen-key "$1" rsa2048 sign never 2>>"$tmp/gpg.log"
        gpg --batch --quiet --list-keys --with-colons "$1" | sed -n 's/^fpr:::::::::\([0-9A-F]*\):.*/\1/p' | head -n 1
    }
    ours=$(key builder@example.com)
    theirs=$(key eve@example.com)
    gpg --batch --quiet --armor --export "$ours" >"$tmp/builder.gpg"
    cat >"$tmp/registries.d/own.yaml" <<END
docker: {"$registry": {lookaside: "file://$tmp/signatures", sigstore: "file://$tmp/signatures"}}
END
    cat >"$tmp/policy.json" <<END
{"default": [{"type": "reject"}],
 "transports": {"docker": {"$registry": [{"type": "signedBy", "keyType": "GPGKeys", "keyPath": "$tmp/builder.gpg"}]}}}
END
    # signed NAME:TAG FINGERPRINT
    signed() {
        skopeo --insecure-policy --registries.d "$tmp/registries.d" copy --quiet --dest-tls-verify=false --sign-by "$2" "oci:$tmp/made" \
            "docker://$registry/$1" >"$tmp/push" 2>&1 || fail "cannot push a signed one: $(cat "$tmp/push")"
    }
    image four
    push team/plain:1
    signed team/good:1 "$ours"
    image five
    signed team/evil:1 "$theirs"
    image six
    signed team/moved:1 "$ours"
    image seven
    push team/moved:1 # the signature there is of another image
    # Of what was fetched before there was a policy nobody has looked at the signature.
    try 0 'is in the catalogue' image pull before "$registry/team/plain:1" --for all
    crash_stintd
    printf '%s\n' "registry_policy: $tmp/policy.json" "registry_signatures: $tmp/registries.d" >>"$tmp/stintd.yaml"
    native
    try 6 'cannot be pulled.*ignature' image pull plain "$registry/team/plain:1" --for all
    try 6 'cannot be pulled.*ignature' image pull evil "$registry/team/evil:1" --for all
    try 6 'cannot be pulled.*ignature' image pull moved "$registry/team/moved:1" --for all
    for name in plain evil moved; do try 4 'no image' image show $name; done
    try 0 'is in the catalogue, sha256:' image pull good "$registry/team/good:1" --for acme
    node_becomes n1 ready
    one good
    becomes "$job" done
    writes "$job" '^four'
    # A signature is of a name: the same image under another one has none.
    skopeo --insecure-policy copy --quiet --src-tls-verify=false --dest-tls-verify=false "docker://$registry/team/good:1" \
        "docker://$registry/team/other:1" >"$tmp/push" 2>&1 || fail "cannot copy: $(cat "$tmp/push")"
    try 6 'cannot be pulled.*ignature' image pull other "$registry/team/other:1" --for all
    find "$tmp/images" -maxdepth 1 -name '.new-*' | grep . && fail "half an image is left"
fi

# Only an owner says what comes from registries.
STINT_TOKEN=$("$stint" token create --account acme --user adm --role admin -o json | python3 -c 'import json, sys; print(json.load(sys.stdin)["token"])')
export STINT_TOKEN
try 8 '' image pull x "$registry/team/app:1" --for acme
done_testing
