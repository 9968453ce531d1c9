#!/usr/bin/env python3
"""The API is what its documents say.

- The examples of doc/reference/api.md are run in order and print what stands behind "# =>".
- Every route is on that page, and every stable code of an error.
- Answers of every GET route fit their schemas in /openapi.json.
- /metrics passes promtool, and /openapi.json our own rules, a public validator and the linters spectral and redocly, where
  these are at hand.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))
from harness import Failure, Stintd, check, main, sanitized  # noqa: E402

SOURCE = os.environ.get("STINT_SOURCE", os.path.join(os.path.dirname(__file__), "..", ".."))


def page():
    with open(os.path.join(SOURCE, "doc", "reference", "api.md")) as f:
        return f.read()


# ---- examples -----------------------------------------------------------------------------------


def chunks(text):
    """Pieces of shell with what their output must show: [(commands, [expected])]."""
    found = []
    for block in re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S):
        lines, expected = [], []
        for line in block.splitlines():
            if line.startswith("# => "):
                expected.append(line[5:])
                continue
            if expected:
                found.append(("\n".join(lines), expected))
                lines, expected = [], []
            lines.append(line)
        found.append(("\n".join(lines), expected))
    return found


def pattern(expected):
    """… is anything. Quotes inside a text may be written as they are."""
    plain = expected.replace('\\"', '"')
    return ".*?".join(re.escape(part) for part in plain.split("…"))


def run_examples(stintd):
    pieces = chunks(page())
    work = stintd.dir
    script = "".join(f"{{\n{commands}\n}} >out.{i} 2>err.{i}\n" for i, (commands, _) in
                     enumerate(pieces))
    env = {**os.environ, "STINT": f"http://127.0.0.1:{stintd.port}"}
    done = subprocess.run(["bash", "-c", script], cwd=work, env=env, timeout=120,
                          stderr=subprocess.PIPE, text=True)
    shown = 0
    for i, (commands, expected) in enumerate(pieces):
        with open(os.path.join(work, f"out.{i}")) as f:
            out = f.read()
        with open(os.path.join(work, f"err.{i}")) as f:
            err = f.read()
        for want in expected:
            shown += 1
            check(re.search(pattern(want), out.replace('\\"', '"'), re.S),
                  "doc/reference/api.md: after\n%s\nexpected: %s\ngot: %s%s%s", commands, want, out, err,
                  done.stderr)
    check(shown >= 30, "only %d examples were found", shown)
    return shown


# ---- what must be on the page -------------------------------------------------------------------


def check_page(document):
    text = page()
    for path, item in document["paths"].items():
        for method in item:
            name = f"{method.upper()} {path}"
            check(f"`{name}" in text or path in ("/v1/whoami", "/v1/roles", "/v1/events", "/v1/audit",
                                                 "/v1/audit/verify") and path in text,
                  "%s is not in doc/reference/api.md", name)
    codes = set()
    for file in ("src/base/err.h", "src/http/problem.h"):
        with open(os.path.join(SOURCE, file)) as f:
            codes |= set(re.findall(r'X\(ST_\w+, "(\w+)", \d', f.read()))
    table = text[text.index("## When it says no"):text.index("## Limits")]
    there = set(re.findall(r"`(\w+)`", re.sub(r"(?m)^\| code.*|^[^|].*", "", table)))
    check(codes <= there, "codes that are not in doc/reference/api.md: %s", sorted(codes - there))
    words = {"Allow", "If", "Retry", "detail", "instance"}
    check(there - codes <= words, "not codes: %s", sorted(there - codes - words))


def check_corpus():
    """The fuzzer of requests begins with what people are shown."""
    folder = os.path.join(SOURCE, "fuzz", "corpus", "request")
    texts = ""
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), errors="replace") as f:
            texts += f.read()
    for body in re.findall(r" -d '(\{[^']*)'", page()):
        check(body in texts, "fuzz/corpus/request lacks the example %s", body)


# ---- schemas ------------------------------------------------------------------------------------


TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def is_type(value, name):
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


KNOWN = {"type", "properties", "required", "items", "enum", "anyOf", "additionalProperties", "$ref",
         "description", "format", "minimum", "maximum", "minItems", "maxItems", "readOnly"}


def fits(value, schema, document, at):
    """The subset of JSON Schema that the document uses; a word it does not know fails."""
    check(set(schema) <= KNOWN, "%s: the schema says %s", at, sorted(set(schema) - KNOWN))
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return fits(value, document["components"]["schemas"][name], document, at)
    if "type" in schema:
        names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        check(any(is_type(value, n) for n in names), "%s is %r, not %s", at, value, names)
    if "enum" in schema:
        check(value in schema["enum"], "%s is %r, none of %s", at, value, schema["enum"])
    if isinstance(value, dict):
        rows = schema.get("properties", {})
        for key in schema.get("required", []):
            check(key in value, "%s lacks %s", at, key)
        for key, item in value.items():
            # What an answer has must be in the document, or be declared open.
            check(key in rows or not rows or schema.get("additionalProperties"), "%s has %s, which is not in "
                  "the document", at, key)
            if key in rows:
                fits(item, rows[key], document, f"{at}.{key}")
            elif isinstance(schema.get("additionalProperties"), dict):
                fits(item, schema["additionalProperties"], document, f"{at}.{key}")
    if isinstance(value, list) and "items" in schema:
        for i, item in enumerate(value):
            fits(item, schema["items"], document, f"{at}[{i}]")


def check_answers(stintd, tokens, document):
    jobs = stintd.owner.get("/v1/jobs?limit=1000").json["jobs"]
    waiting = [j["id"] for j in jobs if j["state"] == "pending"]
    here = {"/v1/accounts/{name}": ["acme", "vision"], "/v1/pools/{name}": ["main"],
            "/v1/nodes/{name}": ["node01"], "/v1/tokens/{id}": [
                t["id"] for t in stintd.owner.get("/v1/tokens").json["tokens"]],
            "/v1/arrays/{id}": [j["array"] for j in jobs if j.get("array")][:1],
            "/v1/jobs/{id}": [j["id"] for j in jobs][:50], "/v1/jobs/{id}/why": waiting,
            "/v1/accounts/{name}/quota": ["vision"],
            "/v1/accounts/{name}/service-quota": ["vision"], "/v1/accounts/{name}/usage": ["vision"],
            "/v1/accounts/{name}/plan": ["vision", "genomics"],
            "/v1/accounts/{name}/budget": ["vision", "genomics"],
            **{"/v1/bills/{period}" + more: ["open"] for more in ("", "/entries", "/usage")}}
    n = 0
    for path, item in document["paths"].items():
        answers = item.get("get", {}).get("responses", {}).get("200", {}).get("content", {})
        schema = answers.get("application/json", {}).get("schema")
        if not schema:
            continue
        for name in here.get(path, [None]):
            full = re.sub(r"\{\w+\}", name or "", path)
            for token in tokens:
                answer = stintd.client(token).get(full)
                check(answer.status in (200, 403, 404), "GET %s: %d", full, answer.status)
                if answer.status == 200:
                    fits(answer.json, schema, document, f"GET {full}")
                    n += 1
                else:
                    fits(answer.json, {"$ref": "#/components/schemas/Problem"}, document, full)
    check(n >= 180, "only %d answers were looked at", n)
    return n


# ---- tools of others ----------------------------------------------------------------------------


def check_sums(stintd, token):
    """Everything counts once in a sum over parent="", and a tenant is not told who stands above."""
    text = stintd.client(token).get("/metrics").text
    rows = re.findall(r'^stint_account_gpus_held\{account="([^"]*)",parent="([^"]*)"\} (\S+)$', text, re.M)
    names = {name for name, _, _ in rows}
    check(rows and all(parent == "" or parent in names for _, parent, _ in rows), "parents: %s", rows)
    own = re.findall(r'^stint_account_jobs\{account="([^"]*)",parent="[^"]*",state="([^"]*)"\} (\d+)$', text, re.M)
    alls = dict(re.findall(r'^stint_jobs\{state="([^"]*)"\} (\d+)$', text, re.M))
    for state, n in alls.items():
        total = sum(int(k) for _, s, k in own if s == state)
        check(total == int(n), "%s jobs are %s, their accounts have %d", state, n, total)


def check_states(stintd, owner, document):
    """What a node can be made, as the document says and as a refusal lists it."""
    node = stintd.client(owner).get("/v1/nodes").json["nodes"][0]["name"]
    said = stintd.client(owner).call("PATCH", "/v1/nodes/" + node, json.dumps({"state": "odd"}).encode())
    words = set(re.findall(r"\w+", said.json["detail"].split("is none of ")[1].split(" (")[0])) - {"or"}
    there = set(document["components"]["schemas"]["NodeChange"]["properties"]["state"]["enum"])
    check(said.status == 400 and words == there, "NodeChange has %s, stintd takes %s", sorted(there), sorted(words))


def check_outcomes(stintd, owner, member):
    """Jobs that wait, start, end and are cancelled are counted, each once."""
    def now():
        text = stintd.client(owner).get("/metrics").text
        found = re.findall(r'^(stint_account_jobs_ended_total)\{account="vision",[^}]*outcome="(\w+)"\} (\d+)$', text, re.M)
        found += re.findall(r'^(stint_job_wait_seconds_count)\{class="(\w+)"\} (\d+)$', text, re.M)
        check("process_resident_memory_bytes" in text and "process_cpu_seconds_total" in text, "no process in the metrics")
        return {(name, word): int(n) for name, word, n in found}

    before = now()
    client = stintd.client(member)
    body = {"name": "counted", "gpus": 1, "limit": "1h", "command": ["true"], "sim": {"run": "1h"}}
    job = client.post("/v1/jobs", body)
    check(job.status == 201, "submit: %s", job.text)
    client.call("DELETE", "/v1/jobs/" + job.json["id"])
    deadline = time.monotonic() + 60
    key = ("stint_account_jobs_ended_total", "cancelled")
    while now().get(key, 0) == before.get(key, 0) and time.monotonic() < deadline:
        time.sleep(0.05)
    after = now()
    check(after.get(key, 0) == before.get(key, 0) + 1, "cancelled jobs: %s, then %s", before, after)
    waits = [sum(n for (name, _), n in at.items() if name == "stint_job_wait_seconds_count") for at in (before, after)]
    check(waits[1] - waits[0] in (0, 1), "waits: %s, then %s", before, after)
    return "outcomes are counted once"


def check_metrics(stintd, tokens):
    if not shutil.which("promtool"):
        return "promtool is not there"
    for token in tokens:
        text = stintd.client(token).get("/metrics").body
        done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True)
        check(done.returncode == 0, "promtool: %s", (done.stdout + done.stderr).decode())
    return f"promtool: {len(tokens)} metrics pages"


VALIDATOR = "@seriousme/openapi-schema-validator@2.4.1"
CALL = """
import { Validator } from '@seriousme/openapi-schema-validator';
import { readFileSync } from 'node:fs';
const result = await new Validator().validate(JSON.parse(readFileSync(process.argv[2])));
if (!result.valid) { console.log(JSON.stringify(result.errors)); process.exit(1); }
"""


def fetched(name, program, *packages):
    """Fetched once into a cache of the user: the folder, and None; or None, and why it is left out."""
    cache = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "stint-tests", name)
    if not shutil.which("npm") or not shutil.which("node"):
        return None, "npm is not there"
    if not os.path.exists(os.path.join(cache, "node_modules", program)):
        try:
            os.makedirs(cache, exist_ok=True)
            subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", cache, *packages],
                           check=True, capture_output=True, timeout=120)
        except (OSError, subprocess.SubprocessError):
            shutil.rmtree(cache, ignore_errors=True)
            return None, f"{packages[0]} could not be fetched"
    return cache, None


def check_openapi(stintd, document):
    cache, why = fetched("openapi-validator", "@seriousme", VALIDATOR)
    if not cache:
        return why
    with open(os.path.join(cache, "check.mjs"), "w") as f:
        f.write(CALL)
    file = os.path.join(stintd.dir, "openapi.json")
    with open(file, "w") as f:
        json.dump(document, f)
    done = subprocess.run(["node", os.path.join(cache, "check.mjs"), file], capture_output=True,
                          text=True, timeout=60)
    check(done.returncode == 0, "the OpenAPI document: %s", (done.stdout + done.stderr)[:3000])
    return "the OpenAPI document is valid"


CLIENT = ("openapi-typescript@7.4.4", "openapi-fetch@0.13.4", "typescript@5.6.3")
# What callers write: arrays, dry runs and keys must be in the document for this to compile.
CALLS = """
import createClient from "openapi-fetch";
import type { paths, components } from "./stint";

const client = createClient<paths>({ baseUrl: "http://127.0.0.1:7878" });

export async function submit(): Promise<string> {
  const key = { header: { "Idempotency-Key": "k1" } };
  const work = { gpus: 1, command: ["true"] };
  const one = await client.POST("/v1/jobs", { params: key, body: work });
  const many = await client.POST("/v1/jobs", { params: key, body: { array: { count: 4 }, ...work } });
  const dry = await client.POST("/v1/jobs", { params: { query: { dry_run: true } }, body: work });
  const made: components["schemas"]["SubmitAnswered"] | undefined = many.data;
  if (made && "array" in made && "jobs" in made) return made.array + made.jobs.map((j) => j.id).join();
  if (dry.data && "reasons" in dry.data) return dry.data.state;
  if (one.data && "id" in one.data) return one.data.id;
  return one.error?.code ?? "";
}
"""


def check_client(stintd, document):
    """A generated client of TypeScript compiles."""
    cache, why = fetched("openapi-client", "openapi-fetch", *CLIENT)
    if not cache:
        return why
    tools = os.path.join(cache, "node_modules", ".bin")
    work = os.path.join(cache, "work-%d" % os.getpid())
    os.makedirs(work)
    try:
        with open(os.path.join(work, "openapi.json"), "w") as f:
            json.dump(document, f)
        with open(os.path.join(work, "calls.ts"), "w") as f:
            f.write(CALLS)
        for command in ([os.path.join(tools, "openapi-typescript"), "openapi.json", "-o", "stint.d.ts"],
                        [os.path.join(tools, "tsc"), "--noEmit", "--strict", "--module", "nodenext",
                         "--target", "es2022", "--lib", "es2022,dom", "calls.ts"]):
            done = subprocess.run(command, cwd=work, capture_output=True, text=True, timeout=120)
            check(done.returncode == 0, "%s: %s", command[0], (done.stdout + done.stderr)[:3000])
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return "a client of TypeScript compiles"


def check_spectral(stintd, document):
    """The linter that many of our users' gateways and portals run."""
    cache, why = fetched("openapi-lint", ".bin/spectral", "@stoplight/spectral-cli@6.16.3")
    if not cache:
        return why
    files = {"openapi.json": json.dumps(document), "rules.yaml": 'extends: ["spectral:oas"]\n'}
    for name, text in files.items():
        with open(os.path.join(stintd.dir, name), "w") as f:
            f.write(text)
    done = subprocess.run([os.path.join(cache, "node_modules", ".bin", "spectral"), "lint", "--fail-severity", "hint",
                           "--ruleset", os.path.join(stintd.dir, "rules.yaml"),
                           os.path.join(stintd.dir, "openapi.json")], capture_output=True, text=True, timeout=120)
    check(done.returncode == 0, "spectral: %s", (done.stdout + done.stderr)[:3000])
    return "spectral has nothing to say"


def check_redocly(stintd, document):
    """The other linter, with its strict rules."""
    cache, why = fetched("openapi-redocly", ".bin/redocly", "@redocly/cli@2.13.0")
    if not cache:
        return why
    file = os.path.join(stintd.dir, "openapi.json")
    with open(file, "w") as f:
        json.dump(document, f)
    done = subprocess.run([os.path.join(cache, "node_modules", ".bin", "redocly"), "lint", file, "--extends=recommended-strict"],
                          cwd=stintd.dir, env={**os.environ, "REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"},
                          capture_output=True, text=True, timeout=120)
    check(done.returncode == 0, "redocly: %s", (done.stdout + done.stderr)[:3000])
    return "redocly has nothing to say"


def each_operation(document):
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield path, method, operation


def referred(value):
    """Every $ref in it, at any depth."""
    if isinstance(value, list):
        return set().union(*map(referred, value))
    if not isinstance(value, dict):
        return set()
    return set().union(*map(referred, value.values()), [value["$ref"]] if "$ref" in value else [])


def faults(document):
    """What the two linters look for, and what they leave out; works without them."""
    found = []

    def need(ok, what):
        if not ok:
            found.append(what)

    info = document.get("info", {})
    for key in ("title", "version", "description", "contact", "license"):
        need(info.get(key), f"info has no {key}")
    need({"name", "identifier"} <= info.get("license", {}).keys(), "the licence has no name or identifier")
    need(document.get("servers") and all(server.get("url") and server.get("description") for server in document["servers"]),
         "a server has no address or no description")
    need("example.com" not in json.dumps(document.get("servers")), "a server is an example")
    tags = [tag["name"] for tag in document.get("tags", [])]
    used = {tag for _, _, operation in each_operation(document) for tag in operation.get("tags", [])}
    need(len(set(tags)) == len(tags) and set(tags) == used, f"tags told once and used: {set(tags) ^ used}")
    abouts = [tag.get("description", "") for tag in document.get("tags", [])]
    need(all(abouts) and len(set(abouts)) == len(abouts), "two tags are described alike, or one is not")
    ids = [operation.get("operationId", "") for _, _, operation in each_operation(document)]
    need(len(set(ids)) == len(ids), "two operations have one operationId")
    shapes = [re.sub(r"\{[^}]*\}", "{}", path) for path in document["paths"]]
    need(len(set(shapes)) == len(shapes), "two paths are the same but for the names of their parts")
    refs = referred(document)
    for kind in ("schemas", "responses", "parameters"):
        for name in document["components"].get(kind, {}):
            need(f"#/components/{kind}/{name}" in refs, f"{kind}/{name} is used nowhere")
    schemes = document["components"].get("securitySchemes", {})
    for path, method, operation in each_operation(document):
        at = f"{method} {path}: "
        need(not path.endswith("/") or path == "/", at + "ends in a slash")
        need("?" not in path, at + "has a query in its path")
        need(re.fullmatch(r"[A-Za-z0-9_-]+", operation.get("operationId", "")), at + "operationId")
        need(operation.get("summary"), at + "no summary")
        need(operation.get("description"), at + "no description")
        need(len(operation.get("tags", [])) == 1, at + "not one tag")
        need("security" in operation and all(name in schemes for row in operation["security"] for name in row), at + "security")
        statuses = operation.get("responses", {})
        need(any(status[0] in "23" for status in statuses), at + "no answer that is good")
        need(any(status[0] == "4" for status in statuses), at + "no answer that is not")
        need(all("$ref" in answer or answer.get("description") for answer in statuses.values()), at + "an answer is not described")
        parameters = operation.get("parameters", [])
        keys = [(p["in"], p["name"]) for p in parameters]
        need(len(set(keys)) == len(keys), at + "a parameter twice")
        need({name for where, name in keys if where == "path"} == set(re.findall(r"\{([^}]*)\}", path)), at + "parts of the path")
        need(all(p.get("description") and p.get("schema") for p in parameters), at + "a parameter is not described")
        need(not (method in ("get", "delete") and "requestBody" in operation), at + "a body that is not read")
    return found


def check_lint(document):
    found = faults(document)
    check(not found, "the OpenAPI document: %s", "; ".join(found[:10]))
    broken = json.loads(json.dumps(document))
    broken["tags"].pop()
    broken["components"]["schemas"]["Unused"] = {"type": "object"}
    broken["paths"]["/v1/jobs"]["get"]["operationId"] = "submitJob"
    del broken["paths"]["/v1/jobs/{id}"]["get"]["parameters"][0]["description"]
    check(len(faults(broken)) == 4, "four faults were made, these were found: %s", faults(broken))
    return f"{sum(1 for _ in each_operation(document))} operations are described"


def check_alerts():
    rules = os.path.join(os.path.dirname(__file__), "..", "..", "packaging", "stint.rules.yml")
    if not shutil.which("promtool"):
        return "promtool is not there"
    done = subprocess.run(["promtool", "check", "rules", rules], capture_output=True, text=True, timeout=60)
    check(done.returncode == 0, "promtool: %s", done.stdout + done.stderr)
    return "promtool: the alert rules"


def run(program):
    stintd = Stintd(program, sample=True)
    try:
        with open(os.path.join(stintd.dir, "data", "tokens")) as f:
            rows = [line.split() for line in f if "stint_" in line]
        tokens = {row[0]: row[-1] for row in rows if len(row) == 4}
        document = stintd.client().get("/openapi.json").json
        check_page(document)
        check_corpus()
        examples = run_examples(stintd)
        some = [tokens[name] for name in ("root", "omar", "ada", "audrey")]
        answers = check_answers(stintd, some, document)
        for token in some:
            check_sums(stintd, token)
        check_states(stintd, tokens["root"], document)
        said = [check_outcomes(stintd, tokens["root"], tokens["ada"]), check_metrics(stintd, some)]
        if not sanitized(program):  # the same document from both builds; and packages are fetched by one at a time
            said += [check_openapi(stintd, document), check_client(stintd, document), check_lint(document),
                     check_spectral(stintd, document), check_redocly(stintd, document), check_alerts()]
        print(f"{examples} examples hold, {answers} answers fit their schemas; " + "; ".join(said))
    finally:
        stintd.stop()


if __name__ == "__main__":
    main(run)
