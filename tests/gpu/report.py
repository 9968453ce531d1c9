"""What was seen, row by row, and the page that is made of it.

A row is a check (PASS or FAIL), a figure without a verdict, or something that was skipped and why.
The page is written anew after each row, so that a run that is cut off leaves what it had.
"""
import time

PASS, FAIL, SKIP, FIGURE = "PASS", "**FAIL**", "skip", ""


def cell(value):
    text = " ".join(str(value).split())
    return (text if len(text) <= 240 else text[:237] + "...").replace("|", "\\|")


class Report:
    def __init__(self, path):
        self.path = path
        self.began = time.time()
        self.head = []  # lines above the tables
        self.parts = []  # (title, rows)

    def part(self, title):
        self.parts.append((title, []))
        print(f"\n== {title} (after {time.time() - self.began:.0f} s)", flush=True)

    def row(self, what, seen, reference, verdict):
        self.parts[-1][1].append((what, seen, reference, verdict))
        print(f"{verdict.strip('*') or '-':5} {what}: {seen}" + (f" [{reference}]" if reference else ""), flush=True)
        self.write()

    def check(self, what, good, seen="", reference=""):
        self.row(what, seen, reference, PASS if good else FAIL)
        return good

    def figure(self, what, seen, reference=""):
        self.row(what, seen, reference, FIGURE)

    def skip(self, what, why):
        self.row(what, why, "", SKIP)

    def count(self, verdict):
        return sum(row[3] == verdict for _, rows in self.parts for row in rows)

    def text(self):
        lines = list(self.head)
        lines += ["", f"{self.count(PASS)} passed, {self.count(FAIL)} failed, {self.count(SKIP)} skipped, "
                  f"in {time.time() - self.began:.0f} s."]
        for title, rows in self.parts:
            lines += ["", f"## {title}", "", "| what | seen | reference | |", "|---|---|---|---|"]
            lines += ["| " + " | ".join(cell(c) for c in row) + " |" for row in rows]
        return "\n".join(lines) + "\n"

    def write(self):
        with open(self.path, "w") as f:
            f.write(self.text())


def percentile(values, part):
    """The value that `part` of them do not exceed."""
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * part))] if values else None


def pairs(text):
    """key=value words of a text, the last of each key."""
    found = {}
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if equals and " " not in key:
            found[key] = value.strip() if key == "name" else value.split(" ")[0]
        for word in line.split():
            key, equals, value = word.partition("=")
            if equals and key not in found:
                found[key] = value
    return found
