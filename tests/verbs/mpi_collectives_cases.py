"""All-reduce of `paceline collective bench` and of Open MPI, in turn over the same emulated hosts.

Both must have right data in every element. The times are printed, and nothing is asserted about
them, for they depend on what else the machine does.
"""

import itertools
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
SCHEDULES = ("ring", "double_tree")
ITERATIONS = 3
PAIRS = 3


def by_bench(testbed):
    """Time in us by schedule and size."""
    out = os.path.join(testbed.folder, "bench.json")
    run_alone(testbed, [testbed.paceline, "collective", "bench", "--testbed", "default",
                        "--operation", "all_reduce", "--schedules", ",".join(SCHEDULES),
                        "--min", f"{SIZES[0]}B", "--max", f"{SIZES[-1]}B", "--factor", "4",
                        "--iterations", str(ITERATIONS), "--quiet", "--out", out], 60)
    with open(out, encoding="utf-8") as file:
        table = json.load(file)
    rows = {(row["schedule"], row["bytes"]): row for row in table["rows"]}
    if table["ranks"] != HOSTS or set(rows) != set(itertools.product(SCHEDULES, SIZES)):
        raise Failed(f"the bench ran other sizes or ranks: {table}")
    if any(row["data"] != "right" for row in rows.values()):
        raise Failed(f"the bench has wrong data: {table}")
    return {key: row["time_us"] for key, row in rows.items()}


def by_mpi(testbed):
    """Time in us by size."""
    program = os.path.join(testbed.folder, "mpi_collectives")
    # Two processes and more on a core: one that waits must let another run.
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none",
               "--mca", "pml", "ucx", "--mca", "osc", "ucx", "--mca", "btl", "^openib,vader,tcp",
               "--mca", "mpi_yield_when_idle", "1"]
    for host in range(HOSTS):
        command += [":"] if host > 0 else []
        # Every rank needs them: one without talks to its like through shared memory.
        command += ["-x", "UCX_TLS=rc_v,self", "-x", "PACELINE_SOCKET", "-x", "XDG_RUNTIME_DIR"]
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


def sent_bytes(testbed):
    return sum(nic["counters"]["tx_data_bytes"]
               for worker in testbed.status()["workers"] for nic in worker["nics"])


def over_the_testbed(run, testbed):
    """What `run` returns. An all-reduce moves 2 (n - 1) sizes of data, all of it over the testbed."""
    before = sent_bytes(testbed)
    times = run(testbed)
    sent = sent_bytes(testbed) - before
    least = 2 * (HOSTS - 1) * sum(SIZES) * (ITERATIONS + 1)
    if sent < least:
        raise Failed(f"{run.__name__}: {sent} bytes over the testbed, and the least is {least}")
    return times


def bus(size, took):
    return size / took / 1e3 * 2 * (HOSTS - 1) / HOSTS


def all_reduce(testbed):
    build(testbed)
    pairs = []
    for number in range(PAIRS):
        # Each finds the machine as the other left it, so they take turns to be first.
        order = (by_bench, by_mpi) if number % 2 == 0 else (by_mpi, by_bench)
        times = {run: over_the_testbed(run, testbed) for run in order}
        pairs.append((times[by_bench], times[by_mpi]))
    say(f"{'bytes':>9}  {'MPI us':>8} {'GB/s':>6}  {'bench us':>8} {'GB/s':>6}  "
        "MPI / bench, of pairs")
    for size, schedule in itertools.product(SIZES, SCHEDULES):
        mpi = statistics.median(pair[1][size] for pair in pairs)
        bench = statistics.median(pair[0][schedule, size] for pair in pairs)
        ratios = [pair[1][size] / pair[0][schedule, size] for pair in pairs]
        say(f"{size:9}  {mpi:8.0f} {bus(size, mpi):6.3f}  {bench:8.0f} {bus(size, bench):6.3f}  "
            f"{statistics.median(ratios):5.2f}  {' '.join(f'{ratio:.2f}' for ratio in ratios)}  "
            f"{schedule}")
    return f"{PAIRS} pairs, {ITERATIONS} iterations each"


TESTBEDS = [((f"fabric.hosts={HOSTS}",), [(f"all-reduce, {HOSTS} ranks, beside Open MPI",
                                           all_reduce)])]
