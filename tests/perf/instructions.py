#!/usr/bin/env python3
"""Counts instructions per hop and per congestion-control event and holds them to ceilings.json.

Time on a shared machine drifts by 15 % and more; instructions are the same on every run. Each figure is
the difference of two runs of perf_probe under callgrind, so that start-up and set-up cancel out.

Exit: 0 below every ceiling, 1 above one, 2 the measurement failed, 77 not measured (ctest: skipped).
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
FOLDER = os.path.dirname(os.path.abspath(__file__))


class MeasurementFailed(Exception):
    pass


def count(valgrind, probe, scenario, size):
    """(instructions, units of work, what the probe printed) of one run."""
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log")
        command = [valgrind, "--tool=callgrind", "--callgrind-out-file=/dev/null", "--log-file=" + log,
                   probe, scenario, str(size)]
        run = subprocess.run(command, capture_output=True, text=True)
        with open(log, encoding="utf-8", errors="replace") as file:
            text = file.read()
    collected = re.search(r"Collected\s*:\s*(\d+)", text)
    work = re.match(r"(\d+) ", run.stdout)
    if run.returncode != 0 or collected is None or work is None:
        raise MeasurementFailed(f"{' '.join(command)}: exit {run.returncode}\n{run.stdout}{run.stderr}{text}")
    return int(collected.group(1)), int(work.group(1)), run.stdout.strip()


def per_unit(valgrind, probe, scenario, sizes):
    small, large = (count(valgrind, probe, scenario, size) for size in sizes)
    if large[1] <= small[1]:
        raise MeasurementFailed(f"{scenario}: sizes {sizes} give {small[1]} and {large[1]} units of work")
    return (large[0] - small[0]) / (large[1] - small[1]), large[2]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--probe", help="the executable perf_probe")
    parser.add_argument("--ceilings", default=os.path.join(FOLDER, "ceilings.json"))
    parser.add_argument("--not-comparable", metavar="WHY", help="say why this build is not measured; skip")
    args = parser.parse_args()

    if args.not_comparable:
        print(f"skipped: {args.not_comparable}")
        return SKIPPED
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        print("skipped: valgrind is not installed (tools/packages.txt)")
        return SKIPPED
    if not args.probe or not os.access(args.probe, os.X_OK):
        print(f"error: --probe {args.probe}: no such executable", file=sys.stderr)
        return 2

    with open(args.ceilings, encoding="utf-8") as file:
        ceilings = json.load(file)
    above = []
    print(f"{'instructions':<16} {'measured':>9} {'ceiling':>8}  {'of it':>6}")
    for unit in ("hop", "event"):
        for scenario, entry in ceilings["instructions_per_" + unit].items():
            try:
                measured, printed = per_unit(valgrind, args.probe, scenario, entry["sizes"])
            except MeasurementFailed as failure:
                print(f"error: {failure}", file=sys.stderr)
                return 2
            ceiling = entry["ceiling"]
            print(f"{scenario:<16} {measured:9.1f} {ceiling:8}  {measured / ceiling:6.1%} per {unit}; {printed}",
                  flush=True)
            if measured > ceiling:
                above.append(f"{scenario}: {measured:.1f} instructions per {unit}, ceiling {ceiling}")
    for scenario, entry in ceilings["times"].items():
        try:
            with_it, printed = per_unit(valgrind, args.probe, scenario, entry["sizes"])
            without, _ = per_unit(valgrind, args.probe, entry["over"], entry["sizes"])
        except MeasurementFailed as failure:
            print(f"error: {failure}", file=sys.stderr)
            return 2
        times = with_it / without
        print(f"{scenario:<16} {times:9.4f} {entry['ceiling']:8}  times {entry['over']}, {without:.1f}; {printed}")
        if times > entry["ceiling"]:
            above.append(f"{scenario}: {times:.4f} times {entry['over']}, ceiling {entry['ceiling']}")
    for line in above:
        print("ABOVE THE CEILING: " + line)
    if above:
        print("Make it cheaper, or raise the ceiling in a commit that says what the cost buys.")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
