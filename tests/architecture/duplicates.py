#!/usr/bin/env python3
"""Counts pairs of places with the same code, in product and tests, but for the headers of old plug-ins.

usage: duplicates.py [--root FOLDER] [--lines N]

A line counts without its white space and comment; lines without a letter or digit, includes, `namespace` and `using`
count for nothing. A pair is a run of N lines (8) or more that two places share.
"""

import argparse
import collections
import pathlib
import re

FOLDERS = ("cc", "control", "dataplane", "tools", "tests")
NOTHING = re.compile(r"#|namespace\b|using\b|public:|private:|else$|default:|break;")


def lines_of(path):
    """(number, text) of what counts."""
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group().count("\n"), path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for number, line in enumerate(text.splitlines(), 1):
        line = re.sub(r"\s+", "", re.sub(r"(^|\s)//.*", "", line))
        if re.search(r"\w", line) and not NOTHING.match(line):
            yield number, line


def pairs(files, least):
    """((file, line), (file, line), lines) of each pair."""
    places = collections.defaultdict(list)
    for name, lines in files.items():
        for at in range(len(lines) - least + 1):
            places[tuple(text for _, text in lines[at:at + least])].append((name, at))
    hits = {(a, b) for found in places.values() for i, a in enumerate(found) for b in found[i + 1:]
            if a[0] != b[0] or b[1] - a[1] >= least}
    for a, b in sorted(hits):
        if ((a[0], a[1] - 1), (b[0], b[1] - 1)) in hits:
            continue  # part of the pair that begins before
        length = least
        while ((a[0], a[1] + length - least + 1), (b[0], b[1] + length - least + 1)) in hits:
            length += 1
        yield (a[0], files[a[0]][a[1]][0]), (b[0], files[b[0]][b[1]][0]), length


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("--lines", type=int, default=8)
    options = parser.parse_args()
    files = {str(path.relative_to(options.root)): list(lines_of(path)) for folder in FOLDERS
             for path in sorted((options.root / folder).rglob("*"))
             if path.suffix in (".h", ".cc", ".c") and "/abi-" not in str(path)}
    found = sorted(pairs(files, options.lines), key=lambda pair: -pair[2])
    for (one, line), (other, there), length in found:
        print(f"{length:4} {one}:{line} {other}:{there}")
    print(f"{len(found)} pairs")


if __name__ == "__main__":
    main()
