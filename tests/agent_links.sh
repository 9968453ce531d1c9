#!/bin/sh
# An image with links where Stint mounts something: storage, volumes and what holds the task in its walls go where they belong, or the
# job does not start and says why; links that many images have do no harm. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
. "$(dirname "$0")/lib/images.sh"
need_containers
command -v busybox >/dev/null || { echo "skipped: busybox is not installed"; exit 77; }
start_native
chmod a+x "$tmp"
start_agent n1 --exec oci --volumes "$tmp/data/volumes"
node_becomes n1 ready
try 0 'made' volume create sets --size 64Mi --account acme
try 0 '^j' submit --account acme --gpus 0 --cpu 0.2 --ram 64Mi --limit 2m -- sh -c 'mkdir -p /data/stint && echo "#!/bin/sh" >/data/stint/init && chmod 755 /data/stint/init'
job=$(cat "$tmp/out")
becomes "$job" done
# with NAME LINK=TARGET...: an image of the catalogue.
with() {
    name=$1
    shift
    image "$name" "$@"
    mkdir -p "$tmp/layouts"
    mv "$tmp/made" "$tmp/layouts/$name"
    chmod -R a+rX "$tmp/layouts"
    try 0 'catalogue' image add "$name" --layout "$tmp/layouts/$name" --for all
}
runs() {
    try 0 '^j' submit --account acme --gpus 0 --cpu 0.2 --ram 64Mi --limit 2m "$@"
    job=$(cat "$tmp/out")
}

# What would be moved: the tenant's storage over the program that holds a task in its walls, the frame of the task into the storage, a
# volume over either, all of it at once.
n=0
for link in data=run/stint data=etc run=data dev=data mnt=run/stint mnt=data mnt/sets=/run/stint proc=data; do
    n=$((n + 1))
    with "bad$n" "$link"
    runs --image "bad$n" -V sets:/mnt/sets -- /bin/echo ran
    becomes "$job" failed
    try 0 'is, or is behind, a link' show "$job"
    "$stint" logs "$job" 2>/dev/null | grep -q ran && fail "an image with the link $link has run"
done
node_is n1 ready || fail "the node is blamed for images: $("$stint" node show n1)"

# Links that are nobody's way: these are common.
with good var/run=../run etc/resolv.conf=../run/resolv.conf etc/hosts=what lib64=usr/lib mnt/other=/run
runs --image good -V sets:/mnt/sets -- /bin/sh -c 'echo ran; grep -c " /data " /proc/mounts; grep " /mnt/sets " /proc/mounts; ls /run/stint'
becomes "$job" done
writes "$job" '^ran'
writes "$job" '^init'
done_testing
