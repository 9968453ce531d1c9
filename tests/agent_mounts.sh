#!/bin/sh
# Image "host" of a node that has something mounted below /usr, as drivers and software trees often are: a
# task sees it, cannot write to it, and sees no window into the kernel. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
need_containers
at=/usr/local/src
if [ ! -d $at ] || ! unshare -m true 2>/dev/null; then
    echo "skipped: no mount namespaces, or no $at here"
    exit 77
fi
# The agent has mounts that nobody else sees.
cat >"$tmp/with_mounts" <<EOF
#!/bin/sh
mount -t tmpfs -o mode=755 tmpfs $at && mkdir $at/below $at/kernel && touch $at/file &&
    echo of-the-driver >$at/lib && mount -t tmpfs -o mode=755,suid tmpfs $at/below &&
    echo further-below >$at/below/lib && mount -t proc proc $at/kernel && mount --bind $at/lib $at/file &&
    exec "\$@"
EOF
chmod +x "$tmp/with_mounts"
agent_enter="unshare -m --propagation private $tmp/with_mounts"
start_native
start_agent m1 --exec oci
node_becomes m1 ready
submit --name look --gpus 1 --limit 1m -- sh -c "cat $at/lib $at/below/lib $at/file; ls -A $at/kernel | wc -l
    for f in new lib below/new below/lib; do (echo x >$at/\$f) 2>/dev/null && echo wrote \$f; done
    awk '\$2 ~ \"^$at\" { print \$2, \$4 }' /proc/mounts"
becomes "$job" done
writes "$job" "^$at/below ro,"
"$stint" logs "$job" >"$tmp/seen"
[ "$(head -n 4 "$tmp/seen" | tr '\n' ' ')" = 'of-the-driver further-below of-the-driver 0 ' ] ||
    fail "it does not see what is mounted: $(cat "$tmp/seen")"
grep -q '^wrote' "$tmp/seen" && fail "it can write there: $(cat "$tmp/seen")"
[ "$(grep -c "^$at[^ ]* ro,nosuid,nodev" "$tmp/seen")" -eq 3 ] || fail "not read-only, nosuid and nodev: $(cat "$tmp/seen")"
done_testing
