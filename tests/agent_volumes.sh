#!/bin/sh
# Volumes with real tasks: two jobs of an account share one, on two nodes; read-only is read-only; an account below has what
# is shared with it and no more; another tenant has nothing. What jobs leave there to trap stintd or other jobs (links, pipes,
# setuid files, full disks) does not. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
need_containers
start_native
volumes=$tmp/data/volumes
try 0 'made' account create vision --parent acme
owner=$STINT_TOKEN
token() { STINT_TOKEN=$owner "$stint" token create --account "$1" --user "$2" --role "$3" -o json |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["token"])'; }
ada=$(token acme ada member)
bob=$(token acme bob member)
vic=$(token vision vic member)
rita=$(token other rita admin)
start_agent n1 --exec oci --volumes "$volumes"
start_agent n2 --exec oci --volumes "$volumes"
node_becomes n1 ready
node_becomes n2 ready
be() { export STINT_TOKEN="$1"; }
# job NAME STATE [OPTION...] -- COMMAND...: sets job, and waits for its end.
job() {
    name=$1 state=$2
    shift 2
    try 0 '^j' submit --name "$name" --cpu 0.2 --ram 64Mi --gpus 0 --limit 2m "$@"
    job=$(cat "$tmp/out")
    becomes "$job" "$state"
}

# Made by a member; whose it is and how large it may get.
be "$ada"
try 2 'has no unit' volume create sets --size 20
try 0 'made' volume create sets --size 64Mi --about 'pictures'
try 5 'already' volume create sets
try 2 'cannot be the name' volume create ../sets
try 0 '^sets  *acme  *64 *Mi' volume list
try 0 'Used  *0' volume show sets
folder=$(echo "$volumes"/????????????????)
[ "$(stat -c %a "$volumes")" = 700 ] || fail "others of the machine can enter the tree of volumes"

# Files go in and come back, a broken upload goes on, and a folder with what it has.
mkdir -p "$tmp/in/deep"
head -c 3500000 /dev/urandom >"$tmp/in/big"
printf '#!/bin/sh\necho ran\n' >"$tmp/in/deep/run.sh"
chmod +x "$tmp/in/deep/run.sh"
: >"$tmp/in/empty"
ln -s /etc/passwd "$tmp/in/link"
try 2 'add -r' cp "$tmp/in" sets:
try 0 'copied 3 files' cp -r "$tmp/in" sets:first
grep -q 'skipped.*link' "$tmp/err" || fail "a link that was left behind is not named"
try 0 'copied 3 files' cp -r sets:first "$tmp/back"
rm "$tmp/in/link"
diff -r "$tmp/in" "$tmp/back" || fail "what came back is something else"
[ -x "$tmp/back/deep/run.sh" ] || fail "a program came back that cannot be run"

# One job writes, another on any node reads; the second cannot write.
job writes done -V sets:/mnt/sets --limit 2m -- sh -c 'cmp /mnt/sets/first/big /mnt/sets/first/big && sh /mnt/sets/first/deep/run.sh &&
    umask 077 && echo by-the-job >/mnt/sets/result && mkdir /mnt/sets/made && echo deep >/mnt/sets/made/file &&
    grep " /mnt/sets " /proc/mounts'
writes "$job" '^ran'
writes "$job" '/mnt/sets .*nosuid,nodev'
try 0 'copied 1 files, 11 bytes' cp sets:result "$tmp/result"
[ "$(cat "$tmp/result")" = by-the-job ] || fail "not what the job wrote: $(cat "$tmp/result")"
be "$bob"
for node in n1 n2; do
    job "reads-$node" done -V sets:/x/y:ro -- sh -c 'cat /x/y/result /x/y/made/file; touch /x/y/new || echo kept-out;
        chmod 777 /x/y/result || echo kept-out-too; mount -o remount,rw /x/y || echo never'
    writes "$job" '^by-the-job'
    writes "$job" '^deep'
    writes "$job" '^kept-out$'
    writes "$job" '^kept-out-too'
    writes "$job" '^never'
done
# Bob may write in it, and neither change nor remove what ada made.
job bob done -V sets:/x -- sh -c 'echo bob >>/x/result && rm /x/made/file && echo both'
writes "$job" '^both'
try 8 'made by somebody else' volume remove sets
try 8 'made by somebody else' volume set sets --size 1Gi

# Places that jobs must not cover, and names that are no places.
for bad in /proc /run/stint /etc /usr /data/x /tmp / /a/../b /a: relative; do
    try 2 '' submit --limit 1m -V "sets:$bad" -- true
done
try 2 'lie in one another' submit --limit 1m -V sets:/a -V sets:/a/b -- true
try 4 'no volume "none"' submit --limit 1m -V none:/a -- true

# What is shared with accounts below, and how.
be "$vic"
try 4 'no volume "sets"' submit --limit 1m -V sets:/a -- true
try 4 'no account' cp acme:result .  --account acme
be "$owner"
try 0 'changed' volume set sets --account acme --below read
be "$vic"
try 0 '^sets  *-  *64 *Mi  *read' volume list
job below done -V sets:/a -- sh -c 'cat /a/result; echo x >/a/result || echo kept-out'
writes "$job" '^by-the-job'
writes "$job" '^kept-out'
be "$owner"
try 0 'changed' volume set sets --account acme --below write
be "$vic"
job below done -V sets:/a -- sh -c 'echo from-below >/a/below && echo wrote'
writes "$job" '^wrote'
be "$rita"
try 4 'no volume "sets"' submit --limit 1m -V sets:/a -- true
try 4 'no account' volume show sets --account acme
try 4 'no account' cp sets:result "$tmp/stolen" --account acme
try 0 '' volume list
grep -q sets "$tmp/out" && fail "another tenant sees it: $(cat "$tmp/out")"

# Traps: what a job leaves for stintd to fall into.
be "$ada"
job traps done -V sets:/v -- sh -c 'cd /v && ln -s /etc/passwd out && ln -s / root && mkfifo pipe && ln -s /v/first in &&
    cp /bin/true suid && chmod 4755 suid && mkdir closed && echo mine >closed/file && chmod 700 closed closed/file &&
    dd if=/dev/zero of=hole bs=1 count=1 seek=1000000000000 2>/dev/null; mknod null c 1 3 || echo no-devices'
writes "$job" '^no-devices'
for trap in out root/etc/passwd in/big; do
    try 8 'links are not followed' cp "sets:$trap" "$tmp/stolen"
done
try 8 'neither a file nor a folder' cp sets:pipe "$tmp/stolen"
try 8 'private to whoever made it' cp sets:closed/file "$tmp/stolen"
[ -e "$tmp/stolen" ] && fail "something came out"
try 8 'links are not followed' cp "$tmp/in/big" sets:root/tmp/x
try 8 'links are not followed' cp "$tmp/in/empty" sets:out
[ -s /etc/passwd ] || fail "it wrote through a link"

# More than it may have: refused on its way in; and a job that writes more is ended by its agent.
head -c 70000000 /dev/zero >"$tmp/large"
try 6 'room for' cp "$tmp/large" sets:large
job greedy failed -V sets:/v -- sh -c 'head -c 90000000 /dev/urandom >/v/fill; echo filled; sleep 110'
try 0 'volume sets holds .*, at most 64 *Mi' show "$job"
job refused failed -V sets:/v -- sh -c 'echo never'
try 0 'volume sets holds .*, at most 64 *Mi' show "$job"
rm -f "$folder/fill"

# Removed only when nobody has it; what ran keeps nothing of it, and another of its name is another.
try 0 '^j' submit --name holds --cpu 0.2 --ram 64Mi --gpus 0 --limit 2m -V sets:/v:ro -- sleep 100
holder=$(cat "$tmp/out")
try 5 "job $holder has volume sets" volume remove sets
try 0 '' cancel "$holder"
becomes "$holder" cancelled
try 0 'is removed' volume remove sets
gone() { [ ! -e "$folder" ]; }
wait_for gone || fail "its folder is still there"
try 4 'no volume' volume show sets
try 0 'made' volume create sets --size 1Gi
try 0 'Used  *0' volume show sets
be "$owner"
try 0 'volume.remove' audit --what volume
try 5 'has the volume' account remove acme

# A node whose agent has no volumes is not chosen, however empty it is; who waits for others learns why.
start_agent n3 --exec oci
node_becomes n3 ready
try 0 'volumes *none\|volumes=none' node show n3
try 0 'volumes *mounted\|volumes=mounted' node show n1
try 0 '' node drain n1
try 0 '' node drain n2
be "$ada"
job elsewhere done -- true
try 0 '^j' submit --name waits --cpu 0.2 --ram 64Mi --gpus 0 --limit 2m -V sets:/v -- true
waits=$(cat "$tmp/out")
try 0 'volumes!=none' why "$waits"
mkdir "$tmp/code" && echo 'echo brought' >"$tmp/code/run.sh"
try 0 '^j' submit --name brings --cpu 0.2 --ram 64Mi --gpus 0 --limit 2m --with "$tmp/code" -- sh run.sh
brings=$(cat "$tmp/out")
try 0 'volumes!=none' why "$brings"
be "$owner"
try 0 '' node ready n1
be "$ada"
becomes "$waits" done
becomes "$brings" done
try 0 'n1' show "$waits"
be "$owner"
try 0 '' node drain n1

# One with another tree, as where a file system is not mounted, says so.
mkdir "$tmp/empty"
start_agent n4 --exec oci --volumes "$tmp/empty"
node_becomes n4 ready
be "$ada"
job nowhere failed -V sets:/v -- true
try 0 'is it mounted' show "$job"
done_testing
