#!/usr/bin/env python3
"""NICs of several ports whose ports fail and return while programs use them.

  failover_test.py CASE PACELINE PACELINE-DATAPLANE FAILOVER_PEER LIFECYCLE_PEER
                   [--kills N] [--seed N] [--set ASSIGNMENT]

kills: while a way is left, or returns in time, no program notices. nothing-left: what it notices
when no port is left. separate: each port is a device of its own.
"""

import argparse
import contextlib
import json
import os
import random
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from lifecycle_test import connected  # noqa: E402
from programs import Failed, Running  # noqa: E402
from testbed import PATIENCE, Testbed, end, say  # noqa: E402

PLANES = "configs/testbeds/planes.toml"
SLOT_US = 100_000  # one kill in each, over before the next
AT_ONCE = 10  # slots in one request

# A lost acknowledgement counts after 17 ms (4.096 us * 2^12), and seven times more.
SOON = "12"
EXCEEDED = "failed transport retry counter exceeded"
DOWN = "async port error"
BACK = ("async port active", "async GID table change")


def fault(target, action, after_us, for_us, **values):
    return {"target": target, "action": action, "after_us": after_us, "for_us": for_us, **values}


def kill(choice, at):
    """What fails in a slot that begins at `at`, and for how long: (kind, events)."""
    nic, port = choice.randrange(2), choice.randrange(2)
    here, there = f"h{nic}.{port}", f"h{1 - nic}.{port}"
    begins = at + choice.randrange(10_000)
    lasts = choice.randrange(20_000, 80_000)
    kind = choice.choices(["port", "both ends", "plane", "no way", "flapping"],
                          [10, 2, 2, 2, 2])[0]
    if kind == "port":
        return kind, [fault(here, "down", begins, lasts)]
    if kind == "both ends":
        later = choice.randrange(lasts)
        return kind, [fault(here, "down", begins, lasts),
                      fault(there, "down", begins + later, lasts - later)]
    if kind == "plane":
        return kind, [fault(f"plane{port}", "down", begins, lasts)]
    if kind == "no way":  # each NIC has a port, but they are not of one plane
        return kind, [fault(here, "down", begins, lasts),
                      fault(f"h{1 - nic}.{1 - port}", "down", begins, lasts // 2)]
    events = []
    until = begins + lasts
    while begins < until:
        up = choice.randrange(500, 5000)
        events.append(fault(here, "down", begins, up))
        begins += up + choice.randrange(500, 5000)
    return kind, events


def grey(choice, at):
    """What a link does to packets while it is up, in the same slot: (kind, events)."""
    target = f"h{choice.randrange(2)}.{choice.randrange(2)}"
    begins, lasts = at + choice.randrange(40_000), choice.randrange(10_000, 50_000)
    kind, values = choice.choice([
        ("loss", {"probability": 1, "direction": choice.choice(["up", "down"])}),
        ("loss", {"probability": 0.05}), ("corrupt", {"probability": 0.02}),
        ("duplicate", {"probability": 0.1}), ("reorder", {"probability": 0.1}),
        ("rate", {"rate_mbps": 100}), ("delay", {"delay_ns": 300_000})])
    return kind, [fault(target, kind, begins, lasts, **values)]


def schedule(choice, slots):
    """Events of so many slots from now on, and how many of each kind."""
    events, kinds = [], {}
    for slot in range(slots):
        wanted = [kill(choice, slot * SLOT_US)]
        if choice.random() < 0.3:
            wanted.append(grey(choice, slot * SLOT_US))
        for kind, of in wanted:
            kinds[kind] = kinds.get(kind, 0) + 1
            events += of
    return events, kinds


def figures(testbed):
    """What has come of faults so far."""
    (worker,) = testbed.status()["workers"]
    counters = [nic["counters"] for nic in worker["nics"]]
    return {"links failed": worker["fabric"]["link_failures"],
            "packets lost with them": worker["fabric"]["drops"]["link_down"],
            "packets sent again": sum(of["retransmitted_packets"] for of in counters),
            "requests in error": sum(of["completion_errors"] for of in counters)}


class Traffic:
    """failover.c between two devices, whose result is awaited."""

    def __init__(self, testbed, program, devices, seconds, seed):
        self.program = Running(testbed, testbed.on(None, [program, *devices, str(seconds), str(seed)]))

    def __enter__(self):
        limit = time.monotonic() + 10 * PATIENCE
        while "begins" not in self.program.text():
            if time.monotonic() > limit or self.program.process.poll() is not None:
                raise Failed(f"no traffic: {self.program.text()}")
            time.sleep(0.01)
        return self

    def __exit__(self, *_):
        end(self.program.process)

    def goes_on(self):
        return self.program.process.poll() is None

    def result(self):
        """It need not last longer."""
        self.program.process.terminate()
        try:
            text = self.program.finish(time.monotonic() + 60 * PATIENCE)
        except Failed as error:
            raise Failed(f"{error}: {self.program.text()}") from None
        result = json.loads(text.splitlines()[-1])
        for kind in ("sends", "writes", "reads", "atomics"):
            if result[kind] == 0:
                raise Failed(f"no {kind}: {result}")
        return result


def kills(options):
    choice = random.Random(options.seed)
    seconds = 10 + 3 * options.kills * SLOT_US / 1e6
    with Testbed(options.paceline, options.dataplane, PLANES, options.sets) as testbed, \
            Traffic(testbed, options.failover, ("h0", "h1"), seconds, options.seed) as traffic:
        done, kinds = 0, {}
        while done < options.kills and traffic.goes_on():
            slots = min(AT_ONCE, options.kills - done)
            events, of = schedule(choice, slots)
            testbed.control(op="fault", events=events)
            time.sleep(slots * SLOT_US / 1e6)
            done += slots
            kinds = {kind: kinds.get(kind, 0) + of.get(kind, 0) for kind in {**kinds, **of}}
        result, came = traffic.result(), figures(testbed)
        told = f"{done} kills: {kinds}; {came}; {result}"
        if done < options.kills or came["links failed"] < done or came["requests in error"] != 0 or \
                min(came["packets lost with them"], came["packets sent again"]) == 0:
            raise Failed(f"{told}\n{testbed.log_text()}")
        say(told)


@contextlib.contextmanager
def writing(testbed, program, nics, timeout):
    """A pair in which both write all the time."""
    peers = connected(testbed, nics, program, timeout)
    try:
        for peer in peers:
            peer.tell("write 0")
        for peer in peers:
            assert peer.goes_on(), f"{peer.name} does not write: {peer.said}"
        yield peers
    finally:
        for peer in peers:
            end(peer.process)


def is_told(peer, line):
    """Now, or it was already, between answers to commands."""
    if line not in peer.said:
        peer.expect(line)


def shows(peer, state):
    shown = peer.port()
    assert shown == state, f"{peer.name}: {shown}, expected {state}"


def goes_down(testbed, peer, target):
    testbed.control(op="fault", events=[{"target": target, "action": "down"}])
    is_told(peer, DOWN)
    shows(peer, "down")


def comes_back(testbed, peer, target):
    testbed.control(op="fault", events=[{"target": target, "action": "up"}])
    for line in BACK:
        is_told(peer, line)
    shows(peer, "active")


def only(peer, *events, failed=()):
    """What it was told in all; completions and events come by different threads."""
    for kind, wanted in (("async", events), ("failed", failed)):
        told = [line for line in peer.said if line.startswith(kind)]
        assert told == list(wanted), f"{peer.name}: {told}, expected {list(wanted)}"


def nothing_left(options):
    with Testbed(options.paceline, options.dataplane, PLANES, options.sets) as testbed:
        with writing(testbed, options.lifecycle, ("h0", "h1"), SOON) as (far, near):
            goes_down(testbed, near, "h1")
            for peer in (far, near):
                is_told(peer, EXCEEDED)
            comes_back(testbed, near, "h1")
            only(far, failed=[EXCEEDED])
            only(near, DOWN, *BACK, failed=[EXCEEDED])
        say("ok   longer than the retry limit")
        # No request fails within 4 s (2^17: 0.54 s), and the ports are back at once.
        with writing(testbed, options.lifecycle, ("h0", "h1"), "17") as (far, near):
            goes_down(testbed, near, "h1")
            comes_back(testbed, near, "h1")
            for peer in (far, near):
                assert peer.goes_on(), f"{peer.name}: {peer.said}"
            only(far)
            only(near, DOWN, *BACK)
        say("ok   shorter than the retry limit")
        # One port after the other, and back: one was always left.
        with writing(testbed, options.lifecycle, ("h0", "h1"), SOON) as (far, near):
            for target in ("h1.0", "h1.1"):
                for action in ("down", "up"):
                    testbed.control(op="fault", events=[{"target": target, "action": action}])
                    for peer in (far, near):
                        assert peer.goes_on(), f"{peer.name}, {target} {action}: {peer.said}"
                        shows(peer, "active")
            only(far)
            only(near)
        say("ok   one after the other")


def separate(options):
    names = ("h0p0", "h0p1", "h1p0", "h1p1")
    sets = ["nic.shape=separate", *options.sets]
    with Testbed(options.paceline, options.dataplane, PLANES, sets) as testbed, \
            Traffic(testbed, options.failover, ("h0p1", "h1p1"), 60, options.seed) as traffic:
        listed = [nic["name"] for worker in testbed.status()["workers"] for nic in worker["nics"]]
        assert sorted(listed) == sorted(names), listed
        with writing(testbed, options.lifecycle, ("h0p0", "h1p0"), SOON) as (near, far):
            goes_down(testbed, near, "h0.0")
            shows(far, "active")
            for peer in (near, far):
                is_told(peer, EXCEEDED)
            comes_back(testbed, near, "h0.0")
            only(near, DOWN, *BACK, failed=[EXCEEDED])
            only(far, failed=[EXCEEDED])
        say("ok   a device whose port fails")
        with writing(testbed, options.lifecycle, ("h0p0", "h1p0"), SOON):
            say("ok   used again")
        assert traffic.goes_on(), traffic.program.text()
        say(f"ok   the other port's traffic: {traffic.result()}")
        assert figures(testbed)["links failed"] == 1, figures(testbed)


CASES = {"kills": kills, "nothing-left": nothing_left, "separate": separate}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("case", choices=CASES)
    for name in ("paceline", "dataplane", "failover", "lifecycle"):
        parser.add_argument(name)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--set", action="append", default=[], dest="sets")
    options = parser.parse_args()
    say(f"{options.case}, seed {options.seed}")
    try:
        CASES[options.case](options)
    except (Failed, AssertionError) as error:
        say(f"FAILED {options.case}: {error}")
        sys.exit(1)


if __name__ == "__main__":
    main()
