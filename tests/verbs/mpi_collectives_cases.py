"""All-reduce of `paceline collective bench` and of Open MPI, in turn over the same emulated hosts.

Both must have right data in every element. The times are printed, and no test of this machine's
cores: nothing is asserted about them.
"""

import json
import os
import statistics
import subprocess

from programs import Failed, run_alone
from testbed import ROOT, say

NEEDS = ("mpicc", "mpirun")
HOSTS = 8
MIB = 1 << 20
SIZES = (1 * MIB, 4 * MIB, 16 * MIB)
ITERATIONS = 4
PAIRS = 3


def by_bench(testbed):
    """Time in us by size."""
    out = os.path.join(testbed.folder, "bench.json")
    run_alone(testbed, [testbed.paceline, "collective", "bench", "--testbed", "default",
                        "--operation", "all_reduce", "--schedules", "ring",
                        "--min", f"{SIZES[0]}B", "--max", f"{SIZES[-1]}B", "--factor", "4",
                        "--iterations", str(ITERATIONS), "--quiet", "--out", out], 60)
    with open(out, encoding="utf-8") as file:
        table = json.load(file)
    rows = {row["bytes"]: row for row in table["rows"]}
    if table["ranks"] != HOSTS or tuple(rows) != SIZES:
        raise Failed(f"the bench ran other sizes or ranks: {table}")
    if any(row["data"] != "right" for row in rows.values()):
        raise Failed(f"the bench has wrong data: {table}")
    return {size: row["time_us"] for size, row in rows.items()}


def by_mpi(testbed):
    """Time in us by size."""
    program = os.path.join(testbed.folder, "mpi_collectives")
    # Two processes and more on a core: one that waits must let another run.
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none",
               "--mca", "pml", "ucx", "--mca", "osc", "ucx", "--mca", "btl", "^openib,vader,tcp",
               "--mca", "mpi_yield_when_idle", "1", "-x", "UCX_TLS=rc_v,self",
               "-x", "PACELINE_SOCKET", "-x", "XDG_RUNTIME_DIR"]
    for host in range(HOSTS):
        command += [":"] if host > 0 else []
        command += ["-n", "1", *testbed.on(f"h{host}", [program, str(ITERATIONS),
                                                        *map(str, SIZES)])]
    text = run_alone(testbed, command, 60)
    rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    if tuple(row["bytes"] for row in rows) != SIZES or any(r["ranks"] != HOSTS for r in rows):
        raise Failed(f"Open MPI ran other sizes or ranks: {text}")
    if any(row["wrong"] != 0 for row in rows):
        raise Failed(f"Open MPI has wrong data: {text}")
    return {row["bytes"]: row["took_us"] for row in rows}


def build(testbed):
    program = os.path.join(testbed.folder, "mpi_collectives")
    built = subprocess.run(["mpicc", "-O3", "-o", program,
                            os.path.join(ROOT, "tests/verbs/mpi_collectives.c")],
                           capture_output=True, text=True)
    if built.returncode != 0:
        raise Failed(built.stderr)


def all_reduce(testbed):
    build(testbed)
    pairs = []
    for number in range(PAIRS):
        # Whoever runs second finds the machine as the first left it, so they take turns.
        first, second = (by_bench, by_mpi) if number % 2 == 0 else (by_mpi, by_bench)
        times = {first: first(testbed), second: second(testbed)}
        pairs.append((times[by_bench], times[by_mpi]))
    say(f"{'bytes':>10}  {'bench us':>10}  {'busbw GB/s':>10}  {'MPI us':>10}  {'busbw GB/s':>10}"
        f"  {'MPI / bench':>11}  of pairs")
    for size in SIZES:
        ratios = sorted(mpi[size] / bench[size] for bench, mpi in pairs)
        cells = ""
        for side in (0, 1):
            took = statistics.median(pair[side][size] for pair in pairs)
            cells += f"  {took:10.0f}  {size / took / 1e3 * 2 * (HOSTS - 1) / HOSTS:10.3f}"
        say(f"{size:10}{cells}  {statistics.median(ratios):11.2f}  "
            f"{' '.join(f'{ratio:.2f}' for ratio in ratios)}")
    return f"{PAIRS} pairs, {ITERATIONS} iterations each"


TESTBEDS = [((f"fabric.hosts={HOSTS}",), [(f"all-reduce, {HOSTS} ranks, beside Open MPI",
                                           all_reduce)])]
