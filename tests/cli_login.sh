#!/bin/sh
# Who one is and where stintd is: logins, what the environment changes, files that others can read,
# servers that are away, that are not stintd or not trusted, and connections that break. $1 is the
# program.
set -u
. "$(dirname "$0")/lib/stintd.sh"

# ---- nobody there --------------------------------------------------------------------------

try 2 'where is stintd' ps
STINT_URL=ftp://x STINT_TOKEN=t try 2 'is no address of stintd' ps
STINT_URL=http://example.org:80 STINT_TOKEN=t try 2 'in the clear' ps
STINT_URL=http://127.0.0.1:1 STINT_TOKEN=t try 7 'cannot reach stintd at http://127.0.0.1:1' ps
STINT_URL=unix:$tmp/none.sock try 7 'cannot reach stintd' whoami
STINT_PROFILE=none try 4 'there is no login "none"' ps

start_stintd
url=$STINT_URL
unset STINT_URL

# ---- logging in ----------------------------------------------------------------------------

token_of ada >"$tmp/ada.token"
token_of root >"$tmp/root.token"
try 2 'address with --url' login --token-file "$tmp/ada.token"
try 2 'unknown option' login --token x
echo stint_wrong >"$tmp/wrong.token"
try 8 'this token is not valid' login --url "$url" --token-file "$tmp/wrong.token"
[ -e "$tmp/config" ] && fail "a login that failed was saved"
try 2 'no token was given' login --url "$url"
try 0 "ada, member of vision, at $url" login --url "$url" --token-file "$tmp/ada.token"
[ "$(stat -c %a "$tmp/config")" = 600 ] || fail "the file of logins has mode $(stat -c %a "$tmp/config")"
try 0 '^User  *ada' whoami
try 0 '"role":"member"' whoami -o json
try 0 'big' ps
try 0 'root, owner of the cluster' login --as boss --url "$url" --token-file "$tmp/root.token"
try 0 '^User  *root' whoami
STINT_PROFILE=default try 0 '^User  *ada' whoami
ran=$((ran + 1))
"$stint" login --as piped --url "$url" <"$tmp/ada.token" | grep -q '^ada' || fail "login from a pipe"
STINT_TOKEN=stint_other try 8 'stint login' whoami
STINT_URL=http://127.0.0.1:$port/ STINT_TOKEN=$(token_of grace) try 0 '^User  *grace' whoami

# A saved token goes to the server it was saved for, and to no other.
STINT_URL=http://127.0.0.1:1 try 7 'cannot reach' whoami
chmod 644 "$tmp/config"
try 8 'others can read it (mode 0644)' whoami
chmod 600 "$tmp/config"
try 0 'forgot the login boss' logout --as boss
try 4 'no login "boss"' logout --as boss
try 0 'forgot the login piped' logout
try 0 '^User  *ada' whoami

# The prompt does not show what is typed.
ran=$((ran + 1))
python3 - "$stint" "$url" "$(token_of ada)" <<'END' || fail "login from a terminal"
import os, pty, sys, time, select
stint, url, token = sys.argv[1:]
pid, fd = pty.fork()
if pid == 0:
    os.execv(stint, [stint, "login", "--as", "typed", "--url", url])
seen = b""
while b"Token: " not in seen:
    seen += os.read(fd, 1000)
time.sleep(0.2)
os.write(fd, token.encode() + b"\n")
try:
    while True:
        part = os.read(fd, 1000)
        if not part:
            break
        seen += part
except OSError:
    pass
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, seen
assert b"ada, member" in seen and token.encode() not in seen, seen
END

# ---- the socket ----------------------------------------------------------------------------

STINT_URL=unix:$tmp/data/stintd.sock try 0 '^Role  *owner' whoami
STINT_URL=unix:$tmp/data/stintd.sock try 0 'vision' account list

# ---- something that is not stintd ----------------------------------------------------------

cat >"$tmp/other.py" <<'END'
import http.server, sys
class Other(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(502 if "jobs" in self.path else 200)
        self.end_headers()
        self.wfile.write(b"<html>hello</html>")
    def log_message(self, *a): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Other)
print(server.server_port, flush=True)
server.serve_forever()
END
python3 "$tmp/other.py" >"$tmp/other.port" &
more_pids="$more_pids $!"
wait_for test -s "$tmp/other.port"
export STINT_URL="http://127.0.0.1:$(cat "$tmp/other.port")" STINT_TOKEN=t
try 7 'status 502 and no explanation' ps
try 7 'not JSON' whoami

# ---- a connection that breaks --------------------------------------------------------------

# Passes on what it gets, but breaks the first connection that submits, after stintd has answered.
cat >"$tmp/breaks.py" <<'END'
import socket, sys, threading
to = int(sys.argv[1])
broken = []
def serve(c):
    s = socket.create_connection(("127.0.0.1", to))
    request = b""
    while b"\r\n\r\n" not in request:
        part = c.recv(65536)
        if not part:
            return
        request += part
    head, body = request.split(b"\r\n\r\n", 1)
    length = [int(l.split(b":")[1]) for l in head.split(b"\r\n") if l.lower().startswith(b"content-length:")]
    while length and len(body) < length[0]:
        body += c.recv(65536)
    lines = [l for l in head.split(b"\r\n") if not l.lower().startswith(b"connection:")]
    s.sendall(b"\r\n".join(lines + [b"Connection: close"]) + b"\r\n\r\n" + body)
    answer = b""
    while True:
        part = s.recv(65536)
        if not part:
            break
        answer += part
    if head.startswith(b"POST") and not broken:
        broken.append(1)
    else:
        c.sendall(answer)
    c.close()
l = socket.create_server(("127.0.0.1", 0))
print(l.getsockname()[1], flush=True)
while True:
    c, _ = l.accept()
    threading.Thread(target=serve, args=(c,), daemon=True).start()
END
python3 "$tmp/breaks.py" "$port" >"$tmp/breaks.port" &
more_pids="$more_pids $!"
wait_for test -s "$tmp/breaks.port"
STINT_URL="http://127.0.0.1:$(cat "$tmp/breaks.port")" STINT_TOKEN=$(token_of ada)
try 0 '^j' submit --name once --gpus 1 --sim-run 1h -- true
try 0 'once' ps --name once
[ "$(grep -c ' once ' "$tmp/out")" -eq 1 ] || fail "a job that was sent twice was taken twice: $(cat "$tmp/out")"

# ---- TLS -----------------------------------------------------------------------------------

stop_stintd
if ! command -v openssl >/dev/null; then
    echo "no openssl here: TLS is not tried"
    done_testing
fi
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$tmp/key.pem" -out "$tmp/cert.pem" -days 2 \
    -subj /CN=localhost -addext 'subjectAltName=DNS:localhost,IP:127.0.0.1' 2>/dev/null
printf 'tls_cert: %s\ntls_key: %s\n' "$tmp/cert.pem" "$tmp/key.pem" >"$tmp/stintd.yaml"
start_stintd --config "$tmp/stintd.yaml"
grep -q 'tls=yes' "$tmp/stintd.log" || fail "no TLS: $(cat "$tmp/stintd.log")"
export STINT_URL="https://127.0.0.1:$port"
as ada
try 8 'is not trusted' whoami
STINT_CA=$tmp/cert.pem try 0 '^User  *ada' whoami
STINT_CA=$tmp/nothing.pem try 2 'list of authorities' whoami
try 0 'ada, member' login --as tls --ca "$tmp/cert.pem" --url "$STINT_URL" --token-file "$tmp/ada.token"
unset STINT_TOKEN STINT_URL
try 0 'https://127' whoami
STINT_CA=$tmp/cert.pem STINT_URL=http://127.0.0.1:$port STINT_TOKEN=x try 7 'connection' whoami

done_testing
