#!/usr/bin/env python3
"""Unmodified RDMA programs over emulated hosts.

  verbs_test.py GROUP PACELINE PACELINE-DATAPLANE [PART OF A CASE'S NAME]

GROUP: pingpong, perftest, rdma_cm, qperf, qperf_all, fio, iser, qemu, loss, sizes, mpi, mpi_collectives,
ucx, libfabric, congestion.
Exit: 0 all passed, 1 some failed, 77 not installed.
"""

import importlib
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from programs import run_table  # noqa: E402  (the folder of this file is not on the path before)
from testbed import Testbed, need, say  # noqa: E402


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    group, paceline, dataplane = sys.argv[1:4]
    cases = importlib.import_module(f"{group}_cases")
    need(*cases.NEEDS)
    file = getattr(cases, "TESTBED", "configs/testbeds/pair.toml")
    failed = 0
    # A group may want several testbeds, one after the other; most want one.
    for sets, table in getattr(cases, "TESTBEDS", [((), cases.CASES)] if hasattr(cases, "CASES")
                               else []):
        with Testbed(paceline, dataplane, file, sets) as testbed:
            failed += run_table(testbed, table, sys.argv[4] if len(sys.argv) > 4 else None)
    say(f"{group}: {'all passed' if failed == 0 else f'{failed} failed'}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
