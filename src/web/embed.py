#!/usr/bin/env python3
"""Writes the files of web/dist/ as a table in C: embed.py OUTPUT FILE..."""

import gzip
import hashlib
import os
import sys

TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
WIDTH = 24  # bytes in a line


def numbers(data):
    rows = (data[i : i + WIDTH] for i in range(0, len(data), WIDTH))
    return "\n".join("    " + " ".join("%d," % b for b in row) for row in rows)


def main(output, *files):
    rows, blobs = [], []
    for number, path in enumerate(sorted(files, key=os.path.basename)):
        name = os.path.basename(path)
        with open(path, "rb") as f:
            data = f.read()
        packed = gzip.compress(data, 9, mtime=0)
        tag = hashlib.sha256(data).hexdigest()[:16]
        blobs.append("static const unsigned char file_%d[] = {\n%s\n};\n" % (number, numbers(packed)))
        rows.append(
            '    {"%s", "%s", "%s", file_%d, %d, %d},'
            % (name, TYPES[os.path.splitext(name)[1]], tag, number, len(packed), len(data))
        )
    with open(output, "w") as f:
        f.write('/* Written by src/web/embed.py from web/dist/. */\n#include "web/web.h"\n\n')
        f.write("\n".join(blobs))
        f.write("\nconst st_web_file st_web_files[] = {\n%s\n    {0},\n};\n" % "\n".join(rows))


if __name__ == "__main__":
    main(*sys.argv[1:])
