#!/usr/bin/env python3
"""Sessions of browsers: a cookie that another page, another port, another person or another day sends is worth nothing."""

import http.client
import re

from attack import attempt, check, until, wall
from harness import Client

OURS = {"Stint-Console": "1", "Sec-Fetch-Site": "same-origin"}


class Browser:
    """Sends what a browser would: its cookie, and where the page is from."""

    def __init__(self, site, cookie=None):
        self.site, self.cookie = site, cookie
        self.client = Client(site.stintd.port)

    def call(self, method, path, body=None, headers=OURS, cookie=None):
        send = dict(headers)
        if cookie or self.cookie:
            send["Cookie"] = "theme=dark; __Host-stint=" + (cookie or self.cookie)
        return self.client.call(method, path, body, headers=send)

    def log_in(self, headers=OURS, **body):
        answer = self.call("POST", "/v1/session", body, headers=headers)
        if answer.status == 201:
            self.cookie = re.match(r"__Host-stint=([^;]*);", answer.header("Set-Cookie")).group(1)
        return answer


def logged_in(site, secret=None):
    browser = Browser(site)
    answer = browser.log_in(token=secret or site.secrets["rival"])
    check(answer.status == 201, "%d %s", answer.status, answer.text)
    check(browser.call("GET", "/v1/whoami").status == 200, "the session opens nothing")
    return browser


def size(browser, headers):
    return browser.call("POST", "/v1/jobs", {"name": "x", "pool": "paper", "gpus": 1, "command": ["true"],
                                             "sim": {"run": "1s"}}, headers=headers)


@attempt("a page that a person of rival looks at", "posts a form, or fetches, with its cookie from another site or port",
         "401, and nothing done")
def another_page(site):
    browser = logged_in(site)
    host = f"http://127.0.0.1:{site.stintd.port}"
    for headers in (
        {},
        {"Stint-Console": "1"},
        {"Stint-Console": "1", "Origin": "http://127.0.0.1:1"},
        {"Stint-Console": "1", "Origin": "https://127.0.0.1:%d" % site.stintd.port},
        {"Stint-Console": "1", "Origin": "null"},
        {"Stint-Console": "1", "Sec-Fetch-Site": "cross-site", "Origin": host},
        {"Stint-Console": "1", "Sec-Fetch-Site": "same-site", "Origin": host},
        {"Stint-Console": "1", "Sec-Fetch-Site": "none"},
        {"Sec-Fetch-Site": "same-origin"},
        {"Origin": host},
    ):
        site.refused(size(browser, headers), "page of another site", 401)
    for where in ("cross-site", "same-site"):
        site.refused(browser.call("GET", "/v1/jobs", headers={"Sec-Fetch-Site": where}), "page of another site", 401)
    for headers in (OURS, {"Stint-Console": "1", "Origin": host, "Host": f"127.0.0.1:{site.stintd.port}"}):
        check(size(browser, headers).status == 201, "its own page may not")
    check(browser.call("GET", "/v1/jobs", headers={"Sec-Fetch-Site": "none"}).status == 200, "the address bar may not")


@attempt("the same", "logs a person in as somebody else", "401: a login comes from the console's own page")
def foreign_login(site):
    for headers in ({}, {"Stint-Console": "1", "Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-origin"}):
        answer = Browser(site).log_in(headers=headers, token=site.secrets["rival"])
        site.refused(answer, "own page", 401)
        check(answer.header("Set-Cookie") is None, "it has a cookie all the same")


@attempt("whoever reads the answer of a login", "looks for the cookie's weak spots",
         "for this host alone, not for scripts, not from other sites, nor kept by anybody")
def cookie_flags(site):
    answer = Browser(site).log_in(token=site.secrets["rival"])
    cookie = answer.header("Set-Cookie")
    for part in ("__Host-stint=", "Path=/", "Secure", "HttpOnly", "SameSite=Strict"):
        check(part in cookie, "%s is missing in %s", part, cookie)
    check("Domain" not in cookie, "it is for other hosts too")
    check(answer.header("Cache-Control") == "no-store", "caches may keep it")
    check(cookie[13:40] not in answer.text, "the body says it to scripts")


@attempt("somebody with a copied cookie", "uses it after the person has logged out", "401, and its streams end")
def after_logout(site):
    browser = logged_in(site)
    conn = http.client.HTTPConnection("127.0.0.1", site.stintd.port, timeout=60)
    conn.request("GET", "/v1/events", headers={"Cookie": "__Host-stint=" + browser.cookie})
    events = conn.getresponse()
    check(events.status == 200, "no stream: %d", events.status)
    check(browser.call("DELETE", "/v1/session").status == 204, "it cannot log out")
    site.refused(browser.call("GET", "/v1/whoami"), "session is over", 401)
    check(b"revoked" in events.read(), "its stream goes on")


@attempt("a person whose token was revoked", "goes on with the session", "401, and its streams end")
def revoked(site):
    token = site.owner.make("/v1/tokens", {"account": "rival", "user": "gone", "role": "admin"})
    browser = Browser(site)
    until(lambda: browser.log_in(token=token["token"]).status == 201, "its token works")
    conn = http.client.HTTPConnection("127.0.0.1", site.stintd.port, timeout=60)
    conn.request("GET", "/v1/events", headers={"Cookie": "__Host-stint=" + browser.cookie})
    events = conn.getresponse()
    check(site.owner.call("DELETE", "/v1/tokens/" + token["id"]).status == 204, "not revoked")
    site.refused(browser.call("GET", "/v1/whoami"), "session is over", 401)
    check(b"revoked" in events.read(), "its stream goes on")


@attempt("a session", "makes a login code for itself, so as to go on for ever", "refused; a token may")
def code_of_a_session(site):
    browser = logged_in(site)
    site.refused(browser.call("POST", "/v1/session/code"), "with a token", 400)
    code = site.person(site.secrets["rival"]).post("/v1/session/code", None)
    check(code.status == 201, "%d %s", code.status, code.text)
    check(code.header("Cache-Control") == "no-store", "caches may keep it")


@attempt("somebody who saw a login link", "uses it a second time, or guesses one", "401")
def code_twice(site):
    code = site.person(site.secrets["rival"]).post("/v1/session/code", None).json["code"]
    check(Browser(site).log_in(code=code).status == 201, "a code opens nothing")
    site.refused(Browser(site).log_in(code=code), "was used", 401)
    for guess in ("", "A" * 43, code[:-1], code + "A", code[::-1], "=" * 43, "A" * 4000):
        site.refused(Browser(site).log_in(code=guess), "was used", 401)


@attempt("somebody with a code of a token that was revoked", "logs in", "401")
def code_of_the_gone(site):
    token = site.owner.make("/v1/tokens", {"account": "rival", "user": "gone", "role": "admin"})
    person = site.person(token["token"])
    until(lambda: person.get("/v1/whoami").status == 200, "its token works")
    code = person.post("/v1/session/code", None).json["code"]
    check(site.owner.call("DELETE", "/v1/tokens/" + token["id"]).status == 204, "not revoked")
    site.refused(Browser(site).log_in(code=code), "was used", 401)


@attempt("a machine with a node's token", "logs in as a person", "401")
def machines(site):
    node = site.owner.make("/v1/tokens", {"user": "n1", "role": "node"})
    answer = Browser(site).log_in(token=node["token"])
    check(answer.status == 401, "%d %s", answer.status, answer.text)


@attempt("anybody", "sends cookies that are none, or bodies that are no login", "401 or 400, and stintd lives")
def nonsense(site):
    browser = Browser(site)
    for cookie in ("x", "A" * 43, "A" * 5000, "=", ";", "\"\"", "%00", "A" * 47, "__Host-stint=__Host-stint="):
        site.refused(browser.call("GET", "/v1/whoami", cookie=cookie))
    check(browser.client.get("/v1/whoami", headers={"Cookie": "__Host-stintx=1; a; =; __Host-stin=2"}).status == 401, "let in")
    for body in ({}, {"token": "x", "code": "y"}, {"token": None}, {"token": 7}, {"user": "root"}, [], "x", {"code": ["a"]}):
        answer = browser.call("POST", "/v1/session", body)
        check(answer.status in (400, 401, 422), "%s: %d %s", body, answer.status, answer.text)


@attempt("rival", "logs in without end", "an end, by a quota it is told; acme logs in all the same")
def without_end(site):
    last = None
    for _ in range(60):
        last = Browser(site).log_in(token=site.secrets["rival"])
        if last.status != 201:
            break
    site.refused(last, "quota sessions: 40 of 40", 429)
    logged_in(site, site.secrets["acme"])


@attempt("a page that frames the console, or a name with a script in it", "reads the page's headers for a way in", "none")
def page_headers(site):
    for path in ("/", "/console/app.js", "/console/app.css"):
        answer = site.person(None).get(path)
        check(answer.status == 200, "%s: %d", path, answer.status)
        policy = answer.header("Content-Security-Policy")
        for part in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"):
            check(part in policy, "%s: %s is missing", path, part)
        check("unsafe" not in policy, "%s: %s", path, policy)
        check(answer.header("X-Content-Type-Options") == "nosniff", "%s: types are guessed", path)
    for name in ("..%2f..%2fetc%2fpasswd", "%2e%2e", "app.js%00", "index.html/", "nothing"):
        check(site.person(None).get("/console/" + name).status in (400, 404), "%s is a file", name)


if __name__ == "__main__":
    wall("sessions", config="quota: {sessions: 40}\n")
