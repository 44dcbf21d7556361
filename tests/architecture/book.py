#!/usr/bin/env python3
"""The size of the book and its links: README.md has at most 150 lines, docs at most 18 pages beside those of
algorithms, each page at most as many words as it is given here, all together at most 40,000; every relative link
leads to a file that exists and to a heading that it has.

A word is what `wc -w` counts, the bars of a table among them. A page that needs more room gets it from another one; a
new page needs a row.
"""

import argparse
import os
import pathlib
import re
import sys

README_LINES = 150
PAGES = 18
WORDS = 40_000
ALGORITHM_PAGE = 600

# Words of a page; a little above what it has. Every other page of docs/algorithms has ALGORITHM_PAGE.
BUDGET = {
    "README.md": 940,
    "docs/README.md": 290,
    "docs/api.md": 500,
    "docs/architecture.md": 1820,
    "docs/daemon.md": 1835,
    "docs/experiments.md": 2640,
    "docs/fidelity.md": 1910,
    "docs/jobs.md": 2460,
    "docs/neighbour.md": 710,
    "docs/operations.md": 1435,
    "docs/performance.md": 605,
    "docs/plugins.md": 1055,
    "docs/ports.md": 1985,
    "docs/scenarios.md": 5590,
    "docs/service.md": 2345,
    "docs/telemetry.md": 2720,
    "docs/transport.md": 2195,
    "docs/user-guide.md": 1750,
    "docs/wire-protocol.md": 2205,
    "docs/algorithms/cadence.md": 1500,
}
NOT_OURS = ("build", ".git", ".cache")


def words(text):
    return len(text.split())


def without_fences(text):
    """The text with lines of code blocks emptied, so that line numbers stay."""
    out, fence = [], False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fence = not fence
            out.append("")
        else:
            out.append("" if fence else line)
    return "\n".join(out)


def anchors(text):
    """The anchors that GitHub makes of a page's headings."""
    found = set()
    for line in without_fences(text).splitlines():
        if not re.match(r"#{1,6} ", line):
            continue
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", line.lstrip("#").strip())
        name = "".join("-" if c == " " else c.lower() for c in heading if c in " -_" or c.isalnum())
        number, anchor = 0, name
        while anchor in found:
            number += 1
            anchor = f"{name}-{number}"
        found.add(anchor)
    return found


def dead_links(root, name, pages):
    for match in re.finditer(r"(?<!`)\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", lambda m: "`" * len(m.group()), pages[name])):
        target = match.group(1)
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        path = (root / name).parent / file if file else root / name
        line = pages[name][: match.start()].count("\n") + 1
        if not path.exists():
            yield f"{name}:{line}: link to {target}: there is no such file"
            continue
        other = pathlib.PurePath(os.path.relpath(path, root)).as_posix()
        if other.startswith("../"):
            yield f"{name}:{line}: link to {target}: it leads out of the repository"
            continue
        if anchor and path.suffix == ".md" and anchor not in anchors(path.read_text(encoding="utf-8")):
            yield f"{name}:{line}: link to {target}: {other} has no such heading"


def problems(root, budget=None):
    budget = BUDGET if budget is None else budget
    book = [p for p in (root / "README.md", *sorted((root / "docs").glob("*.md")),
                        *sorted((root / "docs/algorithms").glob("*.md"))) if p.exists()]
    texts = {p.relative_to(root).as_posix(): p.read_text(encoding="utf-8") for p in book}
    lines = len(texts.get("README.md", "").splitlines())
    if lines > README_LINES:
        yield f"README.md: {lines} lines; allowed are {README_LINES}"
    pages = [name for name in texts if re.fullmatch(r"docs/[^/]+", name)]
    if len(pages) > PAGES:
        yield f"docs: {len(pages)} pages; allowed are {PAGES} beside those of algorithms"
    total = 0
    for name, text in texts.items():
        count = words(text)
        total += count
        if name not in budget and not name.startswith("docs/algorithms/"):
            yield f"{name}: the page has no budget of words in tests/architecture/book.py"
        elif count > budget.get(name, ALGORITHM_PAGE):
            yield f"{name}: {count} words; allowed are {budget.get(name, ALGORITHM_PAGE)}"
    if total > WORDS:
        yield f"README.md and docs: {total} words; allowed are {WORDS}"
    linked = {p.relative_to(root).as_posix(): without_fences(p.read_text(encoding="utf-8"))
              for p in sorted(root.rglob("*.md")) if not set(p.relative_to(root).parts) & set(NOT_OURS)}
    for name in linked:
        yield from dead_links(root, name, linked)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("--count", action="store_true", help="print the words of each page")
    options = parser.parse_args()
    if options.count:
        total = 0
        for path in (options.root / "README.md", *sorted((options.root / "docs").glob("*.md")),
                     *sorted((options.root / "docs/algorithms").glob("*.md"))):
            count = words(path.read_text(encoding="utf-8"))
            total += count
            print(f"{count:6} {path.relative_to(options.root)}")
        print(f"{total:6} in all")
        return 0
    found = list(problems(options.root))
    for problem in found:
        print(problem, file=sys.stderr)
    print(f"the book: {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
