# Images as a builder would leave them, to be sourced behind stintd.sh.
#
# image TEXT [PATH=TARGET...]: a layout in $tmp/made with a shell, a file with the text at /etc/what, and links.
image() {
    rm -rf "$tmp/made"
    python3 - "$tmp/made" "$@" <<'END'
import hashlib, io, json, os, sys, tarfile
root, text, links = sys.argv[1], sys.argv[2], sys.argv[3:]
os.makedirs(root + "/blobs/sha256")
def blob(data):
    name = hashlib.sha256(data).hexdigest()
    open(f"{root}/blobs/sha256/{name}", "wb").write(data)
    return {"digest": "sha256:" + name, "size": len(data)}
out = io.BytesIO()
with tarfile.open(fileobj=out, mode="w") as tar:
    def add(name, data, mode=0o644, link=None):
        info = tarfile.TarInfo(name)
        info.mode, info.size = mode, len(data)
        if link:
            info.type, info.linkname = tarfile.SYMTYPE, link
        tar.addfile(info, io.BytesIO(data))
    busybox = open("/bin/busybox" if os.path.exists("/bin/busybox") else "/usr/bin/busybox", "rb").read()
    add("bin/busybox", busybox, 0o4755)
    for name in ("sh", "cat", "ls", "id", "grep", "echo"):
        add("bin/" + name, b"", link="busybox")
    add("etc/what", text.encode())
    for link in links:
        add(link.split("=")[0], b"", link=link.split("=")[1])
tar = out.getvalue()
config = {"architecture": "amd64", "os": "linux", "config": {}, "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(tar).hexdigest()]}}
manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": {"mediaType": "application/vnd.oci.image.config.v1+json", **blob(json.dumps(config).encode())},
            "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar", **blob(tar)}]}
index = {"schemaVersion": 2, "manifests": [{"mediaType": manifest["mediaType"], **blob(json.dumps(manifest).encode())}]}
open(root + "/index.json", "w").write(json.dumps(index))
open(root + "/oci-layout", "w").write('{"imageLayoutVersion": "1.0.0"}')
END
}
