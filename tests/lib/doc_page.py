#!/usr/bin/env python3
"""The commands of a page of the documentation, and whether they print what the page shows.

  doc_page.py script PAGE       the lines that begin with "$ " in blocks marked console, as a shell
                                script that leaves the output of each in out.N; lines behind one that begin
                                with "> " belong to it
  doc_page.py check PAGE DIR    compares what the page shows below each command with DIR/out.N

A line that is shown must begin a line of the output. Numbers, ids of jobs and widths of columns may
differ; "…" stands for anything.
"""

import re
import sys


def commands(path):
    """[(command, [shown line])]"""
    found, inside = [], False
    with open(path, encoding="utf-8") as f:
        for line in f.read().split("\n"):
            if line == "```console":
                inside = True
            elif line == "```":
                inside = False
            elif inside and line.startswith("$ "):
                found.append((line[2:], []))
            elif inside and found and line.startswith("> ") and not found[-1][1]:
                found[-1] = (found[-1][0] + "\n" + line[2:], [])
            elif inside and found:
                found[-1][1].append(line)
    return found


def plain(text):
    text = re.sub(r"\bj[0-9a-z]{8}\b", "JOB", text)
    return " ".join(re.sub(r"\d[\d.,]*", "N", text).split())


def pattern(shown):
    return ".*".join(re.escape(plain(part)) for part in shown.split("…"))


def script(path):
    for n, (command, _) in enumerate(commands(path), 1):
        quoted = command.split("\n")[0].replace("'", "'\\''")
        print(f"echo '{quoted}' >&3\n{{ {command}\n}} >out.{n} || exit 1")


def check(path, folder):
    wrong = 0
    for n, (command, lines) in enumerate(commands(path), 1):
        with open(f"{folder}/out.{n}", encoding="utf-8") as f:
            out = [plain(line) for line in f]
        for line in lines:
            if not any(re.match(pattern(line), had) for had in out):
                wrong += 1
                print(f"{path}: `{command}` does not print\n  {line}\nbut\n  " + "\n  ".join(out[:12]))
    return 1 if wrong else 0


if sys.argv[1] == "script":
    script(sys.argv[2])
else:
    sys.exit(check(sys.argv[2], sys.argv[3]))
