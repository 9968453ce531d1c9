#!/bin/sh
# Stands for the workloads where there is no GPU (tests/gpu/run --sim): the same names and arguments,
# the same lines, nothing computed. It shows that the test works, not that a GPU does.
case ${0##*/} in
info)
    echo "first_ns=$(date +%s%N)"
    [ "${1:-}" = first ] && exit 0
    echo "devices=1"
    echo "name=$(echo "$CUDA_VISIBLE_DEVICES" | cut -c1-3)"
    echo "compute=ok"
    echo "work_ms=1.0"
    for mib; do echo "alloc_$mib=ok"; done
    echo "ready_ns=$(date +%s%N)"
    ;;
load)
    echo $$
    [ "$1" = fault ] && exit 1
    exec sleep "$2"
    ;;
victim)
    length=$1
    shift
    for kind; do
        sleep "$length"
        echo "$kind n=1000 p50_us=75.0 p99_us=90.0 max_us=100.0"
    done
    ;;
pattern)
    if [ "$1" = fill ]; then
        echo "filled mib=$2"
        sleep 1000 &
        wait
    fi
    echo "scanned mib=$2 nonzero=0 ms=1.0"
    ;;
train)
    n=0
    while [ $n -lt 3000 ]; do
        echo "step=$n ns=$(date +%s%N)"
        sleep 0.1
        n=$((n + 50))
    done
    printf 'hash=%016x\n' "$(echo "$*" | cksum | cut -d ' ' -f 1)"
    ;;
esac
