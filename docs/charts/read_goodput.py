#!/usr/bin/env python3
"""Goodput of READs beside WRITEs against random loss: draws read-goodput.svg (docs/transport.md) from
the table that a hidden test prints, and prints that table.

    docs/charts/read_goodput.py build/release/tests/unit/transport/test_transport
"""
import pathlib
import subprocess
import sys

from goodput_loss import draw

CURVES = [("go_back_n", "WRITE", "WRITE, go-back-N", "#c0392b", ""),
          ("go_back_n", "READ", "READ, go-back-N", "#d68910", "6 4"),
          ("selective", "WRITE", "WRITE, selective repeat", "#1f6fb2", ""),
          ("selective", "READ", "READ, selective repeat", "#17a589", "6 4")]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    text = subprocess.run([sys.argv[1], "[.goodput]"], check=True, capture_output=True,
                          text=True).stdout
    table = [line for line in text.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]
    curves = []
    for mode, opcode, label, colour, dashes in CURVES:
        column = 2 if opcode == "WRITE" else 3
        curves.append((label, colour, dashes,
                       [(float(row[0]), float(row[column])) for row in rows if row[1] == mode]))
    pathlib.Path(__file__).with_name("read-goodput.svg").write_text(draw(curves))
    print("\n".join(table))


if __name__ == "__main__":
    main()
