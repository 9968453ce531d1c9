#!/bin/sh
# An agent and stintd over TLS: a certificate it does not trust keeps it out, one it does lets it in,
# jobs run, and a new certificate is taken under running jobs. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
if ! command -v openssl >/dev/null; then
    echo "skipped: no openssl here"
    exit 77
fi

# certificate NAME: of its own authority, for 127.0.0.1, in $tmp/NAME.pem and $tmp/NAME.key.
certificate() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "/CN=$1" \
        -addext 'subjectAltName=IP:127.0.0.1' -keyout "$tmp/$1.key" -out "$tmp/$1.pem" 2>/dev/null ||
        fail "openssl makes no certificate"
}
certificate first
certificate second
certificate strange
cat "$tmp/first.pem" "$tmp/second.pem" >"$tmp/trusted.pem"
cp "$tmp/first.pem" "$tmp/cert.pem"
cp "$tmp/first.key" "$tmp/cert.key"
scheme=https
export STINT_CA="$tmp/trusted.pem"
start_native "tls_cert: $tmp/cert.pem" "tls_key: $tmp/cert.key"


start_agent deaf --exec sim --ca "$tmp/strange.pem"
start_agent n1 --exec sim --ca "$tmp/trusted.pem"
node_becomes n1 ready
said deaf 'event=not-registered .*certificate'
node_is deaf ready && fail "an agent that trusts nobody got in"
start_agent plain --exec sim --server "http://127.0.0.1:$port"
said plain 'event=not-registered'

submit --name fine --gpus 1 --sim-run 1s -- true
becomes "$job" done
submit --name renewed --gpus 1 --sim-run 60s -- true
becomes "$job" running
cp "$tmp/second.pem" "$tmp/cert.pem"
cp "$tmp/second.key" "$tmp/cert.key"
kill -HUP "$stintd_pid"
crash_agent n1
start_agent n1 --exec sim --ca "$tmp/second.pem"
said n1 'event=found'
node_becomes n1 ready
becomes "$job" running
try 0 'cancelled' cancel "$job"
said n1 "event=ended .*$job"
done_testing
