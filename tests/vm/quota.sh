#!/bin/sh
# tests/vm/quota.sh BUILD [WORD...], by tests/vm/boot: the limits of /data by the file system, on a fresh ext4 with
# project quotas: first the functions that set them, then hostile jobs in containers with the real programs. WORDs
# choose cases of tests/attack/limits.py.
set -eu
build=$(cd "$1" && pwd)
shift
STINT_SOURCE=$(cd "$(dirname "$0")/../.." && pwd)
export STINT="$build/stint" STINTD="$build/stintd" STINT_AGENT="$build/stint-agent" STINT_SOURCE

truncate -s 2G /tmp/quota.img
mkfs.ext4 -q -O quota,project -E quotatype=prjquota /tmp/quota.img
mkdir /tmp/quota
mount -o loop,prjquota /tmp/quota.img /tmp/quota
chmod 755 /tmp/quota
"$build/agent_test_storage" >/tmp/said || { cat /tmp/said; exit 1; }
! grep SKIPPED /tmp/said
export TMPDIR=/tmp/quota
"$STINT_AGENT" doctor --data /tmp/quota/doctor --sim h100x1
python3 "$STINT_SOURCE/tests/attack/limits.py" "$@"
