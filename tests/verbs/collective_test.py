#!/usr/bin/env python3
"""Collectives with data between eight emulated hosts, by every operation and schedule.

  collective_test.py PACELINE PACELINE-DATAPLANE PACELINE-RANK [PART OF A CASE'S NAME]
"""

import json
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from programs import Failed, Running, run_table  # noqa: E402
from ranks import ENDS_WITHIN, await_ranks, ended, nothing_left  # noqa: E402
from testbed import PATIENCE, Testbed, end  # noqa: E402

HOSTS = 8
OPERATIONS = ("all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast", "reduce")
# Parts of a few hundred bytes, so that small buffers have many of them under way.
SMALL_PARTS = ("--set", "workload.job.chunk_bytes=4096", "--set", "workload.job.window=3")


def bench(testbed, *options):
    return [testbed.paceline, "collective", "bench", "--testbed", "default", *options]


def finish(testbed, *options, seconds=120, status=0):
    running = Running(testbed, bench(testbed, *options))
    try:
        running.process.wait(seconds * PATIENCE)
    except subprocess.TimeoutExpired:
        raise Failed("took too long") from None
    finally:
        end(running.process)
    if running.process.returncode != status:
        raise Failed(f"exit status {running.process.returncode}, not {status}:\n{running.text()}")
    nothing_left(testbed)
    return running.text()


def schedules(testbed, operation):
    """Those that `collective list` has."""
    text = subprocess.run([testbed.paceline, "collective", "list"], capture_output=True, text=True,
                          check=True).stdout
    return re.search(rf"^{operation}\n((?:  \S+\n)+)", text, re.M).group(1).split()


def all_right(testbed, operation, rows, sizes):
    """Every schedule has a row of right data for every size."""
    expected = {(size, name) for size in sizes for name in schedules(testbed, operation)}
    got = {(row["bytes"], row["schedule"]) for row in rows if row.get("data") == "right"}
    if got != expected or len(rows) != len(expected):
        raise Failed(f"rows of right data: missing {sorted(expected - got)}, beyond them "
                     f"{sorted(got - expected)}, {len(rows)} rows")


def sweep(operation, per_server, sizes, *options):
    def run(testbed):
        out = os.path.join(testbed.folder, "table.json")
        low, high = sizes[0], sizes[-1]
        finish(testbed, "--operation", operation, "--per-server", str(per_server), "--min", f"{low}B",
               "--max", f"{high}B", "--factor", str(sizes[1] // sizes[0]), "--iterations", "1",
               "--out", out, *options)
        with open(out, encoding="utf-8") as file:
            all_right(testbed, operation, json.load(file)["rows"], sizes)
    return f"{operation}, {per_server} a server, {sizes[0]} to {sizes[-1]} B {' '.join(options)}", run


def six_ranks(testbed):
    """A group of some of the hosts: by the schedules that such a group allows."""
    out = os.path.join(testbed.folder, "six.json")
    finish(testbed, "--ranks", "6", "--per-server", "3", "--min", "1000B", "--max", "100000B",
           "--factor", "100", "--iterations", "1", "--out", out)
    with open(out, encoding="utf-8") as file:
        table = json.load(file)
    names = {row["schedule"] for row in table["rows"]}
    if table["ranks"] != 6 or not {"ring", "two_level_ring", "rail_rings"} <= names:
        raise Failed(f"{table['ranks']} ranks, {names}")
    if len(table["rows"]) != 2 * len(names) or any(r.get("data") != "right" for r in table["rows"]):
        raise Failed(f"rows: {table['rows']}")


def under_loss(operation):
    def run(testbed):
        text = finish(testbed, "--operation", operation, "--min", "64KiB", "--max", "64KiB",
                      "--iterations", "2", *SMALL_PARTS)
        if text.count(" right") != len(schedules(testbed, operation)):
            raise Failed(text)
    return f"{operation} under loss", run


def large(testbed):
    text = finish(testbed, "--schedules", "ring", "--min", "64MiB", "--max", "64MiB",
                  "--iterations", "1", seconds=200)
    if not re.search(r"64 ?MiB.*ring.*right", text):
        raise Failed(text)


def under_way(testbed):
    """A bench that runs for long, and its ranks."""
    running = Running(testbed, bench(testbed, "--schedules", "ring", "--min", "1MiB", "--max", "1MiB",
                                     "--iterations", "100000"))
    return running, await_ranks(running, HOSTS)


def killed_rank(testbed):
    running, ranks = under_way(testbed)
    os.kill(ranks[3], signal.SIGKILL)
    text = ended(running, ranks, 1)
    nothing_left(testbed)
    if not re.search(r"rank 3 on h3: ended by signal 9", text):
        raise Failed(text)


def interrupted(testbed):
    running, ranks = under_way(testbed)
    os.kill(running.process.pid, signal.SIGINT)
    ended(running, ranks, 130)
    nothing_left(testbed)


def killed_parent(testbed):
    running, ranks = under_way(testbed)
    running.process.kill()
    ended(running, {}, -signal.SIGKILL)
    limit = time.monotonic() + ENDS_WITHIN
    while left := [process for process in ranks.values() if os.path.exists(f"/proc/{process}")]:
        if time.monotonic() > limit:
            for process in left:
                os.kill(process, signal.SIGKILL)
            raise Failed(f"{len(left)} ranks outlive their parent")
        time.sleep(0.05)


def refused_by_bench(words, *options):
    def run(testbed):
        text = finish(testbed, *options, status=2)
        if words not in text:
            raise Failed(f"no \"{words}\" in: {text}")
    return f"refused: {' '.join(options)}", run


def refused_by_rank(program, words, **changes):
    def run(_):
        options = {"rank": 0, "ranks": 8, "bytes": 1024, "meet": "/nonexistent", **changes}
        done = subprocess.run([program, *(f"--{k.replace('_', '-')}={v}" for k, v in options.items())],
                              capture_output=True, text=True, timeout=20)
        if done.returncode != 2 or words not in done.stderr:
            raise Failed(f"{done.returncode}: {done.stderr}")
    return f"a rank refuses {changes}", run


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    paceline, dataplane, rank = sys.argv[1:4]
    table = []
    for operation in OPERATIONS:
        # Odd element counts: blocks of different sizes, and none at all of 4 B.
        table.append(sweep(operation, 1, [4 * 13**i for i in range(5)], *SMALL_PARTS))
        table.append(sweep(operation, 4, [4 * 64**i for i in range(4)]))
    table += [
        ("six ranks", six_ranks),
        ("64 MiB by ring", large),
        ("a killed rank", killed_rank),
        ("Ctrl-C", interrupted),
        refused_by_bench("--ranks 9", "--ranks", "9"),
        refused_by_bench("multiple of 4", "--min", "6B", "--max", "6B"),
        refused_by_bench("expected", "--schedules", "no_such"),
        refused_by_bench("allowed is [1 .. 64]", "--set", "workload.job.window=65"),
        refused_by_rank(rank, "--rank 8: allowed is [0 .. 7]", rank=8),
        refused_by_rank(rank, "multiple of 4", bytes="8,6"),
        refused_by_rank(rank, "--operation gather", operation="gather"),
        refused_by_rank(rank, "expected", schedule="no_such"),
        refused_by_rank(rank, "--window", window=65),
        refused_by_rank(rank, "power of two", operation="all_to_all", schedule="pairwise_xor", ranks=6),
        ("a killed parent", killed_parent),  # the last: nobody removes its socket
    ]
    only = sys.argv[4] if len(sys.argv) > 4 else None
    hosts = f"fabric.hosts={HOSTS}"
    with Testbed(paceline, dataplane, sets=(hosts,)) as testbed:
        testbed.environment["TMPDIR"] = testbed.folder
        failed = run_table(testbed, table, only)
    with Testbed(paceline, dataplane, sets=(hosts, "fabric.loss=0.01")) as testbed:
        failed += run_table(testbed, [under_loss("all_reduce"), under_loss("all_to_all")], only)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
