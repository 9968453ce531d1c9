#!/usr/bin/env python3
"""The wall around images: what a tenant names, writes or swaps never shows it the node or a neighbour.

Layouts are put into rival's storage as its own jobs could have put them there; jobs that use them are real."""

import fcntl
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import socket
import stat
import subprocess
import tarfile
import threading
import time

from attack import FINAL, attempt, check, until, wall

MIB = 1 << 20
BUSYBOX = shutil.which("busybox") or ""
HEX = "0" * 64
SECRET = "acme's own secret"


# ---- building layouts ----------------------------------------------------------------------------------

def entry(name, kind=tarfile.REGTYPE, data=b"", **more):
    info = tarfile.TarInfo(name)
    info.type, info.size, info.mode = kind, len(data), more.pop("mode", 0o755)
    info.pax_headers = more.pop("pax", {})
    for key, value in more.items():
        setattr(info, key, value)
    return info, data


def tar(*entries, form=tarfile.PAX_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as t:
        for info, data in entries:
            t.addfile(info, io.BytesIO(data))
    return out.getvalue()


def busybox():
    with open(BUSYBOX, "rb") as f:
        program = f.read()
    return [entry("bin", tarfile.DIRTYPE), entry("bin/busybox", data=program),
            *(entry("bin/" + n, tarfile.SYMTYPE, linkname="busybox") for n in ("sh", "ls", "cat", "stat", "id"))]


def rivals(site):
    """Where rival's /data is on the node, and whose it is."""
    if not hasattr(site, "rival_data"):
        for who, name in ((site.rival, "rival"), (site.acme, "acme")):
            mark = f"mark-{os.getpid()}-{name}"
            ended, log = who.runs(f"open('/data/{mark}', 'w').write('x')")
            check(ended["state"] == "done", "no storage: %s %s", ended, log)
            for folder, _, names in os.walk(os.path.join(site.agents[0].data, "storage")):
                if mark in names:
                    setattr(site, name + "_data", folder)
        with open(os.path.join(site.acme_data, "secret"), "w") as f:
            f.write(SECRET)
    return site.rival_data


class Layout:
    """An OCI image layout in somebody's storage; what is asked for is broken."""

    def __init__(self, site, name, where=None):
        self.root = rivals(site) if where is None else where
        self.owner = os.stat(self.root)
        self.name, self.dir = name, os.path.join(self.root, name)
        shutil.rmtree(self.dir, ignore_errors=True)
        if os.path.islink(self.dir) or os.path.exists(self.dir):
            os.unlink(self.dir)
        self.blobs = os.path.join(self.dir, "blobs", "sha256")
        os.makedirs(self.blobs)
        self.layers = []

    def blob(self, data):
        digest = hashlib.sha256(data).hexdigest()
        with open(os.path.join(self.blobs, digest), "wb") as f:
            f.write(data)
        return {"digest": "sha256:" + digest, "size": len(data)}

    def path(self, descriptor):
        return os.path.join(self.blobs, descriptor["digest"][7:])

    def layer(self, *entries, raw=None, pack=True, **more):
        data = raw if raw is not None else tar(*entries, **more)
        self.layers.append(self.blob(gzip.compress(data, 1, mtime=0) if pack else data))
        return self.layers[-1]

    def write(self, name, text):
        with open(os.path.join(self.dir, name), "w") as f:
            f.write(text if isinstance(text, str) else json.dumps(text))

    def done(self, index=None, manifest=None):
        self.manifest = self.blob(json.dumps(manifest or {"schemaVersion": 2, "layers": self.layers}).encode())
        self.write("index.json", index or {"manifests": [self.manifest]})
        self.write("oci-layout", {"imageLayoutVersion": "1.0.0"})
        return self.give()

    def give(self):
        """All of it belongs to the tenant, as what its jobs write does."""
        os.chown(self.dir, self.owner.st_uid, self.owner.st_gid)
        for folder, folders, names in os.walk(self.dir):
            for one in folders + names:
                os.chown(os.path.join(folder, one), self.owner.st_uid, self.owner.st_gid, follow_symlinks=False)
        return "data:" + self.name


def good(site, name, *more, **kinds):
    layout = Layout(site, name, **kinds)
    layout.layer(*busybox(), *more)
    return layout


# ---- running them --------------------------------------------------------------------------------------

def run(site, image, script="busybox ls -l /", who=None, seconds=90):
    who = who or site.rival
    job = who.job(image=image, cpu=0.2, ram="256Mi", command=["/bin/busybox", "sh", "-c", script])
    ended = who.becomes(job, *FINAL, seconds=seconds)
    return ended, who.log(job)


def works(site, image, script, says, **more):
    ended, log = run(site, image, script, **more)
    check(ended["state"] == "done", "it did not run: %s: %s", ended.get("reason"), log)
    check(re.search(says, log), "it wrote %r, not %r", log, says)
    return log


def fails(site, image, says, **more):
    """The job fails by its image, with a sentence; the node and everybody else go on."""
    ended, log = run(site, image, **more)
    check(ended["state"] == "failed", "it is %s: %s", ended["state"], log)
    check(re.search(says, ended.get("reason") or ""), "it failed for another reason: %r", ended.get("reason"))
    check(SECRET not in log and "root:" not in log, "it read what is not its own: %s", log)
    check(site.agents[0].state() == "ready", "the node is %s", site.agents[0].state())


def refused(name, image, says="image"):
    @attempt("a member of rival", f"submits a job with the image {name}", "a refusal at once")
    def case(site):
        site.refused(site.rival.submit(image=image(site) if callable(image) else image), says)

    case.__name__ = "path_" + re.sub(r"\W+", "_", name)


def hostile(name, build, says, tries=None):
    """A layout that must fail the job and nothing else."""

    @attempt("a job of rival", tries or f"brings an image with {name}", "its job fails with the reason")
    def case(site):
        fails(site, build(site), says)

    case.__name__ = "layout_" + re.sub(r"\W+", "_", name)


# ---- paths of the node ---------------------------------------------------------------------------------

refused("the agent's folder", lambda s: s.agents[0].data)
refused("another tenant's storage", lambda s: (rivals(s), s.acme_data)[1])
refused("all tasks of the node", lambda s: s.agents[0].data + "/run/tasks")
refused("the agent's cache", lambda s: s.agents[0].data + "/run/images/site")
refused("the root", "/")
refused("root's home", "/root")
refused("a process's root", "/proc/1/root")
refused("dots", "../../..", "image")
refused("dots in its storage", "data:../acme", "stay in your storage")
refused("dots after data", "/data/../acme", "stay in your storage")
refused("dots in the middle", "data:a/../../acme", "stay in your storage")
refused("a folder that only begins with data", "/database")
refused("a URL", "docker://evil.example/image")
refused("a line end", "torch\nhost")
refused("a NUL", "torch\0host", "")
refused("letters that look alike", "h\u043est")
refused("an endless name", "a" * 100000, "")
refused("half a digest", "torch@sha256:12", "digest")
refused("no such name", "nothing", "no image")


@attempt("a member of rival", "submits an array and a batch whose images are paths", "a refusal of each")
def many_paths(site):
    site.refused(site.rival.submit(image="/etc", array={"count": 3}), "image")
    answer = site.rival.post("/v1/jobs/batch", {"jobs": [{"image": "/etc", "gpus": 0, "command": ["true"]}]})
    check("no image" in answer.text, "a batch was taken: %s", answer.text)
    answer = site.rival.post("/v1/jobs?dry_run=true", {"image": "/etc", "gpus": 0, "command": ["true"]})
    site.refused(answer, "image")


# ---- the catalogue -------------------------------------------------------------------------------------

def catalogue(site, name, **doc):
    answer = site.owner.call("PUT", "/v1/images/" + name, doc)
    check(answer.status == 200, "image %s: %d %s", name, answer.status, answer.text)


def folder_image(site):
    """busybox in a folder of the site's."""
    root = os.path.join(site.dir, "folder")
    if not os.path.isdir(root):
        os.makedirs(root + "/bin")
        shutil.copy(BUSYBOX, root + "/bin/busybox")
        os.chmod(site.dir, 0o755)
    return root


@attempt("a member of rival", "names an image that is for acme alone", "that there is none, as for any other name")
def not_for_it(site):
    catalogue(site, "theirs", folder=folder_image(site), accounts=["acme"])
    a = site.refused(site.rival.submit(image="theirs"), "no image").text.replace("theirs", "X")
    b = site.refused(site.rival.submit(image="nowhere"), "no image").text.replace("nowhere", "X")
    check(json.loads(a)["detail"] == json.loads(b)["detail"], "the two differ: %s %s", a, b)
    check("theirs" not in site.rival.get("/v1/images").text, "it is in its list")
    check(site.rival.get("/v1/images/theirs").status == 404, "it can be shown")
    works(site, "theirs", "echo fine", "fine", who=site.acme)


@attempt("the admin of rival", "adds, changes and removes images", "403 each time")
def not_its_catalogue(site):
    doc = {"folder": "/", "accounts": "all"}
    check(site.rival_admin.call("PUT", "/v1/images/mine", doc).status == 403, "it added one")
    check(site.rival_admin.call("PUT", "/v1/images/theirs", doc).status == 403, "it changed one")
    check(site.rival_admin.call("DELETE", "/v1/images/theirs").status == 403, "it removed one")


@attempt("a member of rival", "looks for paths of the node in what the catalogue shows", "none")
def no_paths_shown(site):
    catalogue(site, "tools", folder=folder_image(site), accounts="all")
    text = site.rival.get("/v1/images").text + site.rival.get("/v1/images/tools").text
    check("tools" in text, "it is not in the list: %s", text)
    check(site.dir not in text and "acme" not in text, "it shows too much: %s", text)


@attempt("a job of rival", "writes into a folder of the catalogue", "read-only, without devices and setuid")
def folder_is_sealed(site):
    catalogue(site, "tools", folder=folder_image(site), accounts="all")
    log = works(site, "tools", "echo x >/bin/x; echo x >/x; cat /proc/self/mountinfo", "Read-only")
    root = [x.split() for x in log.splitlines() if len(x.split()) > 5 and x.split()[4] == "/"]
    check(root and "nodev" in root[0][5] and "nosuid" in root[0][5], "the root's mount: %s", root)
    check(os.listdir(folder_image(site) + "/bin") == ["busybox"], "the folder has changed")


@attempt("a member of rival", "pins a name to another digest", "a refusal")
def pinned(site):
    layout = good(site, "official", where=site.dir)
    layout.done()
    catalogue(site, "official", layout=layout.dir, digest=layout.manifest["digest"], accounts="all")
    site.refused(site.rival.submit(image="official@sha256:" + HEX), "another digest")
    works(site, "official@" + layout.manifest["digest"], "echo fine", "fine")


@attempt("somebody", "changes a layer of a catalogue image on the node's disk", "damaged, never its files")
def damaged_catalogue(site):
    layout = good(site, "broken", where=site.dir)
    layout.layer(entry("mark", data=b"right"))
    layout.done()
    with open(layout.path(layout.layers[1]), "r+b") as f:
        f.write(b"wrong")
    catalogue(site, "broken", layout=layout.dir, digest=layout.manifest["digest"], accounts="all")
    fails(site, "broken", "damaged")


@attempt("a job of rival", "uses an untrusted image and asks to share a GPU", "a refusal")
def untrusted_shares(site):
    catalogue(site, "wild", folder=folder_image(site), accounts="all", trust="untrusted")
    site.refused(site.rival.submit(image="wild", gpus=1, level="mps", share=0.5), "untrusted")


@attempt("rival's job", "waits while the owner takes its image away", "its job fails with the reason")
def taken_away(site):
    catalogue(site, "brief", folder=folder_image(site), accounts="all")
    site.agents[0].stop()
    job = site.rival.job(image="brief", cpu=0.2, ram="256Mi", gpus=8, command=["/bin/busybox", "true"])
    check(site.owner.call("DELETE", "/v1/images/brief").status == 204, "it could not be removed")
    site.agents[0].start()
    site.agents[0].ready()
    state = site.rival.show(job)["state"]
    if state == "pending":  # nothing was sent yet, so nothing can be
        site.rival.cancel(job)
    ended = site.rival.becomes(job, *FINAL)
    check(ended["state"] in ("done", "failed", "cancelled"), "it is %s", ended["state"])


@attempt("a member of rival", "asks for the node's own programs in a pool that does not allow it", "a refusal")
def no_host_image(site):
    site.owner.post("/v1/pools", {"name": "bare"})
    for doc in ({}, {"image": "host"}):
        site.refused(site.rival.submit(pool="bare", **doc), "host-image")


# ---- layouts with links, pipes and devices -------------------------------------------------------------

def link_layout(site):
    layout = good(site, "real")
    layout.done()
    os.symlink(layout.dir, os.path.join(layout.root, "link"))
    layout.give()
    return "data:link"


def link_to_rival(site):
    good(site, "x").done()
    theirs = good(site, "theirs", where=(rivals(site), site.acme_data)[1])
    theirs.done()
    path = os.path.join(site.rival_data, "stolen")
    if not os.path.islink(path):
        os.symlink(theirs.dir, path)
    return "data:stolen"


def replaced(where, make):
    """A layout in which one file or folder is something else."""

    def build(site):
        layout = good(site, "odd")
        layout.done()
        path = where(layout)
        keep = path + ".kept"
        shutil.rmtree(keep, ignore_errors=True)
        os.rename(path, keep)
        make(path, keep)
        os.chown(path, layout.owner.st_uid, layout.owner.st_gid, follow_symlinks=False)
        return "data:odd"

    return build


def a_socket(path, _):
    s = socket.socket(socket.AF_UNIX)
    folder, name = os.path.split(path)
    back = os.getcwd()
    os.chdir(folder)
    s.bind(name)
    os.chdir(back)
    s.close()


def a_device(path, _):
    os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))


first_layer = lambda l: l.path(l.layers[0])  # noqa: E731
LINK = "link"
hostile("a linked layout", link_layout, LINK)
hostile("a link to another tenant's image", link_to_rival, LINK)
hostile("a linked folder of blobs", replaced(lambda l: l.dir + "/blobs", lambda p, k: os.symlink(k, p)), LINK)
hostile("blobs that are the node's", replaced(lambda l: l.blobs, lambda p, k: os.symlink("/etc", p)), LINK)
hostile("a linked blob", replaced(first_layer, lambda p, k: os.symlink("/etc/shadow", p)), LINK)
hostile("a linked manifest", replaced(lambda l: l.path(l.manifest), lambda p, k: os.symlink(k, p)), LINK)
hostile("a linked index", replaced(lambda l: l.dir + "/index.json", lambda p, k: os.symlink("/etc/passwd", p)), LINK)
hostile("a magic link", replaced(first_layer, lambda p, k: os.symlink("/proc/self/fd/0", p)), LINK)
hostile("a FIFO as index", replaced(lambda l: l.dir + "/index.json", lambda p, k: os.mkfifo(p)), "not a plain file")
hostile("a FIFO as blob", replaced(first_layer, lambda p, k: os.mkfifo(p)), "not a plain file")
hostile("a folder as blob", replaced(first_layer, lambda p, k: os.mkdir(p)), "not a plain file")
hostile("a socket as blob", replaced(first_layer, a_socket), "not a plain file")
hostile("a device as blob", replaced(first_layer, a_device), "not a plain file")
hostile("a file as layout", replaced(lambda l: l.dir, lambda p, k: shutil.copy(BUSYBOX, p)), "not a folder")
hostile("files it may not read itself",
        replaced(first_layer, lambda p, k: (shutil.copy("/etc/shadow", p), os.chmod(p, 0))), "cannot be read")


def root_only(site):
    """A file of root's that came into the storage somehow is not read for the tenant."""
    layout = good(site, "rooted")
    layout.done()
    os.chown(layout.path(layout.layers[0]), 0, 0)
    os.chmod(layout.path(layout.layers[0]), 0o600)
    return "data:rooted"


hostile("a file of root's", root_only, "cannot be read")


# ---- what layouts say ----------------------------------------------------------------------------------

def sparse(site):
    layout = Layout(site, "sparse")
    layout.layers = [{"digest": "sha256:" + HEX, "size": 1 << 40}]
    layout.done()
    with open(os.path.join(layout.blobs, HEX), "wb") as f:
        f.truncate(1 << 40)
    layout.give()
    return "data:sparse"


def sparse_small(site):
    layout = Layout(site, "sparse2")
    layout.layers = [{"digest": "sha256:" + HEX, "size": 1000}]
    layout.done()
    with open(os.path.join(layout.blobs, HEX), "wb") as f:
        f.truncate(1 << 40)
    layout.give()
    return "data:sparse2"


def says(name, index=None, manifest=None, change=None):
    def build(site):
        layout = good(site, name)
        ref = layout.done(index=index(layout) if callable(index) else index,
                          manifest=manifest(layout) if callable(manifest) else manifest)
        if change:
            change(layout)
            layout.give()
        return ref

    return build


def nested(layout):
    """An index that leads to an index that leads to an index ..."""
    at = layout.blob(json.dumps({"layers": layout.layers}).encode())
    for _ in range(6):
        at = layout.blob(json.dumps({"manifests": [at]}).encode())
        at["mediaType"] = "application/vnd.oci.image.index.v1+json"
    return {"manifests": [at]}


def short(layout):
    with open(first_layer(layout), "r+b") as f:
        f.truncate(1000)


def same_size(layout):
    with open(first_layer(layout), "r+b") as f:
        f.seek(100)
        f.write(b"\0\0\0\0")


hostile("a sparse blob of 1 TiB", sparse, "MiB, at most")
hostile("a sparse blob of another size", sparse_small, "its size is another")
hostile("a blob cut short", says("short", change=short), "its size is another")
hostile("a blob with other bytes", says("bytes", change=same_size), "its digest is another")
hostile("a blob that is missing", says("gone", change=lambda l: os.unlink(first_layer(l))), "has no")
hostile("a wrong size in the manifest",
        says("size", manifest=lambda l: {"layers": [dict(l.layers[0], size=5)]}), "its size is another")
hostile("a negative size", says("minus", manifest=lambda l: {"layers": [dict(l.layers[0], size=-5)]}), "no size")
hostile("sizes beyond 64 bits",
        says("over", manifest=lambda l: {"layers": [dict(l.layers[0], size=(1 << 63) - 1)] * 3}), "larger than any disk")
hostile("a digest that is a path",
        says("dots", manifest=lambda l: {"layers": [{"digest": "sha256:../../../../etc/shadow", "size": 5}]}),
        "no sha256 digest")
hostile("a thousand layers", says("layers", manifest=lambda l: {"layers": l.layers * 1000}), "layers")
hostile("a hundred times the same layer",
        says("again", manifest=lambda l: {"layers": [l.blob(os.urandom(8 * MIB))] * 100}), "MiB, at most")
hostile("indexes in indexes", says("loop", index=nested), "again and again")
hostile("a huge index", says("huge", index="[" + "1," * (8 * MIB) + "1]"), "larger than")
hostile("a deep index", says("deep", index="[" * 100000), "not a JSON object")
hostile("an index that is no object", says("list", index="[]"), "not a JSON object")
hostile("the same key twice", says("twice", index='{"manifests": [], "manifests": []}'), "not a JSON object")
hostile("layers for another machine",
        says("other", index=lambda l: {"manifests": [{"platform": {"os": "plan9", "architecture": "vax"},
                                                      "digest": "sha256:" + HEX, "size": 1}]}), "nothing for linux")


# ---- what is in layers ---------------------------------------------------------------------------------

def layered(name, *layers, **more):
    def build(site):
        layout = good(site, name)
        for one in layers:
            layout.layer(raw=one() if callable(one) else one, **more)
        return layout.done()

    return build


def header(name, kind=b"0", size=0, link=""):
    """One header as it is, whatever tar's own writer would say to it."""
    block = bytearray(512)
    block[0:len(name)] = name.encode()
    block[100:108], block[108:116], block[116:124] = b"0000755\0", b"0000000\0", b"0000000\0"
    block[124:136], block[136:148] = b"%011o\0" % size, b"00000000000\0"
    block[156:157], block[157:157 + len(link)] = kind, link.encode()
    block[257:265] = b"ustar\00000"
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def members(*parts):
    """Packed pieces, one after the other, are one stream."""
    return b"".join(gzip.compress(data, 9, mtime=0) * times for data, times in parts)


def gzip_bomb(site):
    layout = good(site, "bomb")
    layout.layers.append(layout.blob(members((header("zeros", size=2 << 30), 1), (b"\0" * (8 * MIB), 256))))
    return layout.done()


def million(site):
    layout = good(site, "million")
    many = header("many/", b"5") * 1000
    layout.layers.append(layout.blob(members((many, 1000))))
    return layout.done()


hostile("a layer that unpacks to 2 GiB of zeros", gzip_bomb, "times its size|MiB when it is unpacked")
hostile("a million entries", million, "more than 500000 files|MiB when it is unpacked")
hostile("a file larger than its room", layered("large", header("zeros", size=1 << 40), pack=False), "in the middle")
hostile("names that lead upwards", layered("up", header("../../pwned-up")), "upwards")
hostile("names that lead upwards later", layered("up2", header("bin/../../../pwned-up")), "upwards")
hostile("a hard link upwards", layered("hard", header("shadow", b"1", link="../../../../etc/shadow")), "upwards")
hostile("a hard link to the node's files", layered("hard2", header("shadow", b"1", link="/etc/shadow")), "no file")
hostile("a hard link through a link",
        layered("hard3", tar(entry("out", tarfile.SYMTYPE, linkname="/etc")),
                header("shadow", b"1", link="out/shadow")), "no file")
hostile("a sparse file", layered("gnu", header("hole", b"S", size=0)), "sparse")
hostile("a sparse file in pax", layered("pax", lambda: tar(entry("a", data=b"x", pax={"GNU.sparse.major": "1"}))),
        "sparse")
hostile("a name part of 300 bytes", layered("long", lambda: tar(entry("n" * 300))), "between two slashes")
hostile("folders 1000 deep", layered("down", lambda: tar(entry("/".join("d" * 1000)))), "deep|too long")
hostile("a header of 64 MiB", layered("head", header("x", b"x", size=64 * MIB), pack=False), "at most")
hostile("a damaged pax header", layered("pax2", header("x", b"x", size=20) + b"999999999999 path=x\n".ljust(512, b"\0")),
        "damaged")
hostile("a size that is no number", layered("num", header("x").replace(b"00000000000\0", b"zzzzzzzzzzz\0", 1)), "tar stream|size")
hostile("a whiteout of what is above", layered("white", header(".wh...")), "none has")
hostile("noise", layered("noise", lambda: os.urandom(4096)), "not a tar stream")
hostile("a cut gzip stream", lambda s: cut_gzip(s), "ends too soon|in the middle|gzip")
hostile("a zstd layer without an end", layered("zstd", b"\x28\xb5\x2f\xfd" + b"\0" * 600, pack=False), "zstd|ends too soon")


def zstd(*blocks, window=17):
    """A frame as zstd packs it, by hand: bytes are copied, (byte, times) are told."""
    out = b"\x28\xb5\x2f\xfd\0" + bytes([(window - 10) << 3])
    parts = []
    for block in blocks:
        if isinstance(block, bytes):
            parts += [(0, len(block[i:i + 65536]), block[i:i + 65536]) for i in range(0, len(block), 65536)]
        else:
            parts += [(1, 65536, block[0])] * (block[1] >> 16)
    for i, (kind, size, data) in enumerate(parts):
        out += ((i == len(parts) - 1) | kind << 1 | size << 3).to_bytes(3, "little") + data
    return out


def zstd_layer(name, *blocks, cut=0, behind=b"", **more):
    def build(site):
        layout = good(site, name)
        packed = zstd(*[b() if callable(b) else b for b in blocks], **more)
        layout.layers.append(layout.blob(packed[:len(packed) - cut] + behind))
        return layout.done()
    return build


hostile("a zstd layer that unpacks to 2 GiB of zeros",
        zstd_layer("zbomb", header("zeros", size=2 << 30), (b"\0", 2 << 30)), "times its size|MiB when it is unpacked")
hostile("a zstd layer that needs a window of 2 GiB", zstd_layer("zwindow", header("x"), window=31), "zstd")
hostile("a cut zstd layer", zstd_layer("zcut", lambda: tar(entry("noise", data=os.urandom(100000))), cut=90000),
        "ends too soon|in the middle")
hostile("a zstd layer with something behind it",
        zstd_layer("zbehind", header("x"), behind=b"\x28\xb5\x2f\xfd\xff\xff\xff"), "zstd|in the middle|too soon")


@attempt("a job of rival", "brings an image packed by zstd, in several frames with some to be skipped", "it runs, and has its files")
def zstd_runs(site):
    layout = Layout(site, "zstd")
    whole = tar(*busybox(), entry("said", data=b"by zstd"))
    skip = b"\x5a\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"index"
    layout.layers.append(layout.blob(skip + zstd(whole[:70000]) + skip + zstd(whole[70000:]) + skip))
    works(site, layout.done(), "cat /said", "by zstd")


def cut_gzip(site):
    layout = good(site, "cut")
    layout.layers.append(layout.blob(gzip.compress(tar(entry("noise", data=os.urandom(100000))))[:5000]))
    return layout.done()


@attempt("a job of rival", "brings devices, FIFOs and setuid files in a layer", "none of them inside")
def devices_and_setuid(site):
    layout = good(site, "special")
    layout.layer(entry("disk", tarfile.BLKTYPE, devmajor=8, devminor=0), entry("mem", tarfile.CHRTYPE, devmajor=1, devminor=1),
                 entry("pipe", tarfile.FIFOTYPE), entry("su", data=b"x", mode=0o6755),
                 entry("sticky", tarfile.DIRTYPE, mode=0o7777),
                 entry("capable", data=b"x", pax={"SCHILY.xattr.security.capability": "\x01"}))
    log = works(site, layout.done(), "ls /; stat -c '%a %u %n' /su /sticky /capable", "su")
    check(not re.search(r"^(disk|mem|pipe)$", log, re.M), "a device is there: %s", log)
    check(re.search(r"^755 \d+ /su$", log, re.M) and re.search(r"^1777 \d+ /sticky$", log, re.M), "modes: %s", log)
    check(not re.search(r"^\d+ 0 ", log, re.M), "a file is root's: %s", log)
    site_tree = subprocess.run(["find", site.agents[0].data + "/run/images", "(", "-type", "b", "-o", "-type", "c", "-o", "-type",
                                "p", "-o", "-perm", "/6000", "-o", "-path", "*/root/*", "-uid", "0", ")"], capture_output=True,
                               text=True, check=True).stdout
    check(not site_tree, "on the node: %s", site_tree)


@attempt("a job of rival", "writes through links of its own layers", "files in its own image, none on the node")
def write_through_links(site):
    layout = good(site, "through")
    layout.layer(entry("a", tarfile.SYMTYPE, linkname="/etc"), entry("b", tarfile.SYMTYPE, linkname="../../../../../../etc"),
                 entry("etc", tarfile.DIRTYPE))
    layout.layer(entry("a/pwned-a", data=b"x"), entry("b/pwned-b", data=b"x"), entry("/pwned-c", data=b"x"))
    works(site, layout.done(), "ls /etc /pwned-c", r"pwned-a(.|\n)*pwned-b|pwned-c")
    for path in ("/etc/pwned-a", "/etc/pwned-b", "/pwned-c"):
        check(not os.path.exists(path), "%s is on the node", path)


@attempt("a job of rival", "replaces a folder by a link and writes below it in the next layer", "all in its own image")
def folder_becomes_link(site):
    layout = good(site, "become")
    layout.layer(entry("d", tarfile.DIRTYPE), entry("d/x", data=b"1"))
    layout.layer(entry("d", tarfile.SYMTYPE, linkname="/proc/self/root/etc"), entry("ok", data=b"1"))
    works(site, layout.done(), "ls -l /d /ok", "ok")


@attempt("a job of rival", "has names with line ends, controls and no UTF-8 in its layers", "they are files like others")
def odd_names(site):
    layout = good(site, "names")
    layout.layer(entry("a\nb", data=b"x"), entry("\x1b[31mred", data=b"x"), entry("\u202egnp.exe", data=b"x"))
    layout.layer(raw=header("byte").replace(b"byte", b"b\xff\xfee", 1)[:148] + header("byte")[148:] + b"\0" * 1024)
    ended, _ = run(site, layout.done(), "ls / >/dev/null; echo fine")
    check(ended["state"] in ("done", "failed"), "it is %s", ended["state"])
    check("\x1b" not in site.agents[0].says() and "\u202e" not in site.agents[0].says(), "the agent's log has them")


@attempt("a job of rival", "hides files of a lower layer and shows others", "whiteouts work, and only inside")
def whiteouts(site):
    layout = good(site, "hide", entry("a", tarfile.DIRTYPE), entry("a/one", data=b"1"), entry("gone", data=b"1"))
    layout.layer(entry("a/two", data=b"2"), entry("a/.wh..wh..opq"), entry(".wh.gone"))
    log = works(site, layout.done(), "ls /a /gone 2>&1; echo", "two")
    check(not re.search(r"^one$", log, re.M) and "No such file" in log, "it sees %s", log)


# ---- races, caches, time ---------------------------------------------------------------------------------

@attempt("a job of rival", "swaps its blob between hash and unpack, over and over", "the right files or damaged, never others")
def swapped(site):
    layout = good(site, "swap")
    right = layout.layer(entry("mark", data=b"RIGHT" + os.urandom(4 * MIB)))
    wrong = gzip.compress(tar(entry("mark", data=b"WRONG" + os.urandom(4 * MIB))), 1)
    wrong = wrong[:right["size"]].ljust(right["size"], b"\0")
    image, path = layout.done(), layout.path(right)
    keep, other = path + ".r", path + ".w"
    shutil.copy(path, keep)
    with open(other, "wb") as f:
        f.write(wrong)
    going, seen = [True], []

    def swap():
        while going:
            for source in (other, keep):
                os.link(source, path + ".n")
                os.rename(path + ".n", path)
                if not os.path.samefile(source, path):
                    os.unlink(path + ".n")
                time.sleep(0.002)

    layout.give()
    thread = threading.Thread(target=swap, daemon=True)
    thread.start()
    try:
        for _ in range(6):
            ended, log = run(site, image, "busybox head -c 5 /mark")
            seen.append(log.strip() if ended["state"] == "done" else ended.get("reason"))
            check("WRONG" not in log, "the swapped files were unpacked")
            shutil.rmtree(cached(site, layout) or "/nonexistent", ignore_errors=True)
    finally:
        going.clear()
        thread.join()
    check(all(s == "RIGHT" or "damaged" in s or "has no" in s for s in map(str, seen)), "it saw %s", seen)


def cached(site, layout, scope="of-"):
    """The unpacked tree of a layout, in the cache of that kind."""
    images = os.path.join(site.agents[0].data, "run", "images")
    for name in os.listdir(images):
        path = os.path.join(images, name, layout.manifest["digest"][7:])
        if name.startswith(scope) and os.path.isdir(path):
            return path
    return None


@attempt("a member of rival", "brings an image with the digest of acme's", "each has a copy of its own")
def not_shared(site):
    rivals(site)
    data = [*busybox(), entry("mark", data=b"the same")]
    mine, theirs = Layout(site, "same"), Layout(site, "same", where=site.acme_data)
    for layout in (mine, theirs):
        layout.layer(*data)
        layout.done()
    check(mine.manifest == theirs.manifest, "they are not the same image")
    works(site, "data:same", "cat /mark", "the same", who=site.acme)
    with open(first_layer(mine), "r+b") as f:
        f.write(b"poison")
    fails(site, "data:same", "damaged")
    works(site, "data:same", "cat /mark", "the same", who=site.acme)
    mine = Layout(site, "same")
    mine.layer(*data)
    mine.done()
    works(site, "data:same", "cat /mark", "the same")
    images = os.path.join(site.agents[0].data, "run", "images")
    copies = [d for d in os.listdir(images) if os.path.isdir(os.path.join(images, d, mine.manifest["digest"][7:]))]
    check(len(copies) == 2, "copies are in %s", copies)


@attempt("a job of rival", "looks at other images of the node from inside one", "nothing but its own")
def nothing_beside(site):
    layout = good(site, "plain")
    log = works(site, layout.done(), "cat /proc/self/mountinfo; ls -l /", "busybox|bin")
    check(site.acme_data not in log and "of-" not in log.replace("of-" + os.path.basename(site.rival_data), ""),
          "it sees %s", log)


@attempt("rival", "fills the node with one image after the other", "the cache keeps its bound, unused ones go")
def bounded(site):
    images = os.path.join(site.agents[0].data, "run", "images")
    for i in range(4):
        layout = good(site, f"big{i}")
        layout.layer(entry(f"fill{i}", data=os.urandom(90 * MIB)), pack=False)
        works(site, layout.done(), "echo fine", "fine")
        shutil.rmtree(layout.dir)
    used = int(subprocess.run(["du", "-sm", images], capture_output=True, text=True, check=True).stdout.split()[0])
    check(used <= 512, "the cache has %d MiB", used)


@attempt("a job of rival", "brings an image larger than a tenant's part of the cache", "its job fails with the numbers")
def too_large(site):
    layout = good(site, "vast")
    for i in range(3):
        layout.layer(entry(f"fill{i}", data=os.urandom(90 * MIB)), pack=False)
    fails(site, layout.done(), "no room for the image|MiB, at most")
    shutil.rmtree(layout.dir)


def bomb_job(site):
    """A job whose image takes a while to be refused."""
    image = million(site)
    return site.rival.job(image=image, cpu=0.2, ram="256Mi", command=["/bin/busybox", "true"])


def helpers():
    """Processes that read or unpack an image: those whose root is not the node's."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm") as f:
                if f.read().strip() != "stint-shim":
                    continue
            with open(f"/proc/{pid}/status") as f:
                status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
            if status["Uid"].split()[0] != "0":
                found.append((pid, status, os.readlink(f"/proc/{pid}/root"), os.readlink(f"/proc/{pid}/ns/net")))
        except (OSError, KeyError):
            continue
    return found


@attempt("rival's image", "is unpacked", "by a process that is not root, sees one folder, has no network, rights or calls")
def helper_has_nothing(site):
    job = bomb_job(site)
    pid, status, root, net = until(helpers, "a helper at work")[0]
    check(status["Uid"].split() == [status["Uid"].split()[0]] * 4, "its ids: %s", status["Uid"])
    check(int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 0, "its rights: %s", status["CapEff"])
    check(status["NoNewPrivs"].strip() == "1" and status["Seccomp"].strip() == "2", "its fences: %s", status)
    check(status.get("Groups", "").strip() == "", "its groups: %s", status.get("Groups"))
    check(root != "/", "its root is the node's")
    check(net != os.readlink("/proc/self/ns/net"), "it has the node's network")
    site.rival.becomes(job, "failed", seconds=120)


@attempt("a member of rival", "cancels a job in the middle of its image", "it ends at once, and nothing is left")
def cancelled(site):
    job = bomb_job(site)
    until(helpers, "a helper at work")
    site.rival.cancel(job)
    site.rival.becomes(job, "cancelled", "failed", seconds=20)
    until(lambda: not helpers(), "the end of its helpers", 20)


@attempt("rival's hostile image", "is there while the agent is killed and comes back", "a ready node at once")
def restarted(site):
    job = bomb_job(site)
    until(helpers, "a helper at work")
    site.agents[0].stop(kill=True)
    site.agents[0].start()
    begun = time.monotonic()
    site.agents[0].ready(30)
    site.rival.becomes(job, "failed", seconds=120)
    check(time.monotonic() - begun < 120, "it took %d s", time.monotonic() - begun)


@attempt("a job of rival", "has an image that is never ready", "it fails when its time is over; the node goes on")
def never_ready(site):
    image = good(site, "late").done()
    catalogue(site, "tools", folder=folder_image(site), accounts="all")
    scope = os.path.join(site.agents[0].data, "run", "images", "of-" + os.path.basename(site.rival_data))
    os.makedirs(scope, mode=0o700, exist_ok=True)
    with open(os.path.join(scope, "lock"), "w") as held:  # as a reader would that a file system holds
        fcntl.flock(held, fcntl.LOCK_EX)
        job = site.rival.job(image=image, cpu=0.2, ram="256Mi", command=["/bin/busybox", "true"])
        works(site, "tools", "echo fine", "fine", who=site.acme)  # others start meanwhile
        ended = site.rival.becomes(job, *FINAL, seconds=200)  # its time is 90 s
    check("not ready after" in (ended.get("reason") or ""), "it failed by %r", ended.get("reason"))


@attempt("rival's job", "makes pipes and links under a layout while it is read, from a container", "its own job fails, or runs its own image")
def from_inside(site):
    good(site, "live").done()
    script = ("import os,time\nend=time.time()+12\np='/data/live/index.json'\nkeep=open(p).read()\n"
              "while time.time()<end:\n"
              " for make in (lambda q: os.mkfifo(q), lambda q: os.symlink('/proc/self/environ',q),"
              " lambda q: open(q,'w').write(keep), lambda q: os.symlink('/data/../run/stint/script',q)):\n"
              "  make(p+'.n'); os.rename(p+'.n',p); time.sleep(0.001)\n")
    job = site.rival.job(cpu=0.2, ram="256Mi", command=["python3", "-c", script])
    site.rival.becomes(job, "running", *FINAL)
    for _ in range(4):
        ended, log = run(site, "data:live", "echo mine")
        check(ended["state"] in ("done", "failed"), "it is %s", ended["state"])
        check(ended["state"] == "failed" or log.strip() == "mine", "it wrote %r", log)
    site.rival.becomes(job, *FINAL)


if not BUSYBOX:
    print("skipped: busybox is not installed")
    raise SystemExit(77)
wall("images", agents=1, allow=["host-image"], agent_options=["--image-cache", "512Mi", "--image-timeout", "25s"])
