#!/usr/bin/env python3
"""The console: what stintd carries is what web/ builds to, and it works in a real browser.

Needs npm and chromium; where one is missing the test is skipped, but not in CI."""

import filecmp
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(__file__))
from harness import Stintd, check, main  # noqa: E402

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "stint-tests")
BROWSER = ["playwright-core@1.65.0", "axe-core@4.14.0"]
SKIPPED = 77


def npm(*words, cwd):
    return subprocess.run(["npm", *words, "--silent", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=cwd, check=True,
                          capture_output=True, timeout=300)


def is_built(folder):
    """web/ is built again, and gives what is committed."""
    web = os.path.join(folder, "web")
    shutil.copytree(os.path.join(SOURCE, "web"), web, ignore=shutil.ignore_patterns("node_modules", "dist"))
    npm("ci", cwd=web)
    subprocess.run(["node_modules/.bin/tsc", "--noEmit"], cwd=web, check=True, timeout=300)
    subprocess.run(["node", "build.mjs"], cwd=web, check=True, timeout=300)
    kept = os.path.join(SOURCE, "web", "dist")
    check(sorted(os.listdir(kept)) == sorted(os.listdir(os.path.join(web, "dist"))), "other files than in web/dist")
    for name in os.listdir(kept):
        check(filecmp.cmp(os.path.join(kept, name), os.path.join(web, "dist", name), shallow=False),
              "web/dist/%s is not what web/src builds to: run `npm ci && npm run build` in web/", name)


def in_a_browser(program):
    folder = os.path.join(CACHE, "browser")
    if not os.path.exists(os.path.join(folder, "node_modules", "axe-core")):
        os.makedirs(folder, exist_ok=True)
        npm("install", "--prefix", folder, *BROWSER, cwd=folder)
    stintd = Stintd(program, sample=True)
    try:
        with open(os.path.join(stintd.dir, "data", "tokens")) as f:
            tokens = {row.split()[0]: row.split()[3] for row in f if row.strip()}
        env = dict(os.environ, STINT_NPM=folder, CHROMIUM=shutil.which("chromium"))
        script = os.path.join(SOURCE, "tests", "console", "pages.mjs")
        done = subprocess.run(["node", script, f"http://127.0.0.1:{stintd.port}",
                               '{"owner": "%s", "member": "%s"}' % (tokens["root"], tokens["ada"])],
                              env=env, capture_output=True, text=True, timeout=400)
        check(done.returncode == 0, "%s", (done.stdout + done.stderr)[-3000:])
        print(done.stdout.strip())
    finally:
        stintd.stop()


def run(program):
    missing = [tool for tool in ("npm", "node", "chromium") if not shutil.which(tool)]
    if missing and not os.environ.get("CI"):
        print("skipped:", ", ".join(missing), "not there")
        sys.exit(SKIPPED)
    check(not missing, "%s not there", missing)
    with tempfile.TemporaryDirectory() as folder:
        is_built(folder)
    in_a_browser(program)


if __name__ == "__main__":
    main(run)
