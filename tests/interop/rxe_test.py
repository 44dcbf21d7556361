#!/usr/bin/env python3
"""Linux Soft-RoCE as the peer of our engine, in both roles: a small guest under qemu, joined to our process
by a tap in a network namespace that this test makes and removes. docs/fidelity.md says what is covered.

usage: rxe_test.py [--seeds N] [--service PACELINE DATAPLANE] OUR_PEER THEIR_PEER CACHE [CASE...]
exit: 0 good, 1 a check failed, 77 skipped (and why)

CACHE keeps the guest's kernel. CASE: names of unittest, for example Verbs.test_reliable. N: that many
generators of bad weather, one after the other (1).
"""

import argparse
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "guest"))
import build_guest  # noqa: E402
import guest as machines  # noqa: E402
from rxe_cm import Connections  # noqa: E402,F401
from rxe_ends import world  # noqa: E402
from rxe_faults import Faults  # noqa: E402,F401
from rxe_programs import Programs  # noqa: E402,F401
from rxe_service import Service  # noqa: E402,F401
from rxe_verbs import Verbs  # noqa: E402,F401


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--service", nargs=2, default=(), metavar=("PACELINE", "DATAPLANE"))
    parser.add_argument("our_peer")
    parser.add_argument("their_peer")
    parser.add_argument("cache")
    parser.add_argument("case", nargs="*")
    options = parser.parse_args()
    world.our_peer, world.seeds = options.our_peer, options.seeds
    world.service = options.service
    if os.geteuid() != 0:
        skip("needs root, to make a network namespace and a tap")
    world.network = machines.Network()
    try:
        try:
            build_guest.program("qemu-system-x86_64")
            build_guest.program("ip")
            world.network.make()
            world.guest = machines.Guest(world.network, options.cache, options.their_peer)
        except build_guest.Missing as lack:
            skip(lack)
        except RuntimeError as error:
            skip(f"no network namespace or tap here: {error}")
        print(f"Soft-RoCE of Linux {world.guest.kernel}, up after {world.guest.boot_seconds:.0f} s", flush=True)
        unittest.main(argv=sys.argv[:1] + options.case, verbosity=2)
    finally:
        if world.guest is not None:
            world.guest.stop()
        world.network.remove()


if __name__ == "__main__":
    main()
