"""Receivers of notices on loopback: HTTP and HTTPS that do as their path says, and a mail server."""

import base64
import email
import hashlib
import hmac
import http.server
import json
import os
import socket
import ssl
import subprocess
import threading
import time


def signed(secret, headers, body):
    """Whether the signature is the secret's, by the Standard Webhooks specification, and the time is now."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    text = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    right = "v1," + base64.b64encode(hmac.new(key, text, hashlib.sha256).digest()).decode()
    return hmac.compare_digest(right, headers["webhook-signature"]) and abs(int(headers["webhook-timestamp"]) - time.time()) < 300


class Web:
    """/ok takes, /no refuses, /later/N takes from the Nth time on, /never does not answer, /drip answers a byte at a time, /big with ten
    megabytes, /head with endless headers, /go redirects to a private address, /gone is gone."""

    def __init__(self, folder=None, host="127.0.0.1"):
        self.lock, self.got, self.tries, self.stop = threading.Lock(), [], {}, threading.Event()
        web = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                web.take(self, body)

            def do_GET(self):
                web.take(self, b"")

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer((host, 0), Handler)
        self.server.daemon_threads = True
        self.server.block_on_close = False
        self.port = self.server.server_address[1]
        if folder:
            self.ca = certificates(folder)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(os.path.join(folder, "leaf.pem"), os.path.join(folder, "leaf.key"))
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def take(self, call, body):
        path = call.path
        with self.lock:
            self.got.append((call.command, path, dict((k.lower(), v) for k, v in call.headers.items()), body))
            self.tries[path] = tries = self.tries.get(path, 0) + 1
        try:
            self.answer(call, path, tries)
        except OSError:
            pass

    def answer(self, call, path, tries):
        word = path.split("/")[1].split("?")[0]
        if word == "never":
            self.stop.wait(60)
            return
        if word == "drip":
            while not self.stop.wait(0.05):
                call.wfile.write(b"H" if tries else b"")
            return
        if word == "head":
            call.wfile.write(b"HTTP/1.1 200 OK\r\n")
            while not self.stop.is_set():
                call.wfile.write(b"x-more: " + b"y" * 1000 + b"\r\n")
            return
        status = {"no": 500, "gone": 410, "go": 302}.get(word, 200)
        if word == "later" and tries < int(path.split("/")[2]):
            status = 503
        size = 10 << 20 if word == "big" else 2
        call.send_response(status)
        if word == "go":
            call.send_header("Location", "http://169.254.169.254/latest" if path == "/go" else f"http://127.0.0.1:{self.port}/reached")
        call.send_header("Content-Length", str(size))
        call.end_headers()
        for _ in range(max(size >> 16, 1)):
            call.wfile.write(b"o" * min(size, 1 << 16))

    def at(self, path):
        with self.lock:
            return [(headers, body) for _, p, headers, body in self.got if p == path]

    def docs(self, path):
        return [json.loads(body) for _, body in self.at(path)]

    def close(self):
        self.stop.set()
        self.server.shutdown()
        self.server.server_close()


def certificates(folder):
    """A CA of its own and a leaf for localhost; the path of the CA."""
    def run(*args):
        subprocess.run(["openssl", *args], cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(os.path.join(folder, "san"), "w") as f:
        f.write("subjectAltName=DNS:localhost")
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    run("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=test", "-days", "2")
    run("req", *key, "-keyout", "leaf.key", "-out", "leaf.csr", "-subj", "/CN=localhost")
    run("x509", "-req", "-in", "leaf.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out", "leaf.pem", "-days", "2",
        "-extfile", "san")
    return os.path.join(folder, "ca.pem")


class Mail:
    """As much of SMTP as a sender needs. What came is in `got`: (from, to, message)."""

    def __init__(self):
        self.got = []
        self.sock = socket.create_server(("127.0.0.1", 0))
        self.port = self.sock.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                conn, _ = self.sock.accept()
            except OSError:
                return
            threading.Thread(target=self.talk, args=(conn,), daemon=True).start()

    def talk(self, conn):
        sender, to = None, []
        with conn, conn.makefile("rwb") as f:
            def say(text):
                f.write(text.encode() + b"\r\n")
                f.flush()
            say("220 test")
            for line in f:
                word = line.decode().strip()
                if word.upper().startswith("MAIL FROM:"):
                    sender, to = word[10:].strip("<> "), []
                elif word.upper().startswith("RCPT TO:"):
                    to.append(word[8:].strip("<> "))
                elif word.upper() == "DATA":
                    say("354 go on")
                    text = b""
                    for part in f:
                        if part == b".\r\n":
                            break
                        text += part[1:] if part.startswith(b".") else part
                    self.got.append((sender, to, email.message_from_bytes(text)))
                elif word.upper() == "QUIT":
                    say("221 bye")
                    return
                say("250 ok")

    def close(self):
        self.sock.close()
