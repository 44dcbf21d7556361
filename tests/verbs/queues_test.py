#!/usr/bin/env python3
"""What a program may rely on of its queues: room after a completion, and behaviour at their ends.

  queues_test.py PROGRAM CASES PACELINE PACELINE-DATAPLANE [PART OF A CASE'S NAME]

CASES: room (PROGRAM is room.c) or boundaries (boundaries.c). The program has both devices.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from programs import Failed, run_alone, run_table  # noqa: E402
from testbed import Testbed, say  # noqa: E402

LOSSY = ("fabric.loss=0.01",)

ROOM = [
    # queue, bytes, requests, messages
    ("srq", 8, 1, 4000), ("srq", 8, 16, 4000), ("srq", 4096, 5, 2000), ("srq", 65536, 16, 400),
    ("srq", 2 << 20, 4, 100), ("rq", 8, 1, 2000), ("rq", 8, 16, 4000), ("rq", 2 << 20, 4, 100),
    ("sq", 8, 1, 2000), ("sq", 8, 16, 4000), ("sq", 2 << 20, 4, 100), ("sq-silent", 8, 16, 4000),
    ("sq-silent", 2 << 20, 4, 100), ("error", 8, 16, 4000), ("ud", 8, 1, 1000),
    ("ud", 8, 16, 2000), ("ud", 1024, 16, 2000), ("ud", 4096, 64, 2000),
]
ROOM_UNDER_LOSS = [
    ("srq", 8, 1, 150), ("srq", 8, 16, 2000), ("srq", 65536, 16, 200), ("srq", 2 << 20, 4, 20),
    ("rq", 8, 16, 2000), ("rq", 2 << 20, 4, 20), ("sq", 8, 16, 2000), ("sq", 2 << 20, 4, 20),
    ("sq-silent", 4096, 16, 1000),
]
BOUNDARIES = ["full-completion-queue", "overrun", "resize", "pieces", "empty-messages", "inline",
              "limit-event", "handlers", "destroy", "busy", "reset"]


def case(program, passed, *arguments):
    def run(testbed):
        text = run_alone(testbed, testbed.on(None, [program, *map(str, arguments)]), seconds=70)
        if passed not in text:
            raise Failed(f"no \"{passed}\" in:\n{text}")
    return " ".join(map(str, arguments)), run


def main():
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    program, cases, paceline, dataplane = sys.argv[1:5]
    tables = {
        "room": [((), [case(program, "room passed", *a) for a in ROOM]),
                 (LOSSY, [case(program, "room passed", *a) for a in ROOM_UNDER_LOSS])],
        "boundaries": [((), [case(program, f"{a} passed", a) for a in BOUNDARIES])],
    }[cases]
    failed = 0
    for sets, table in tables:
        with Testbed(paceline, dataplane, sets=sets) as testbed:
            say(f"{cases} {' '.join(sets)}".strip())
            failed += run_table(testbed, table, sys.argv[5] if len(sys.argv) > 5 else None)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
