#!/usr/bin/env python3
"""`paceline exec --fault` and `--reorder`: a program sees each fault as real hardware would give it, and one
that goes by memory before completions is found out.

  injection_test.py PACELINE PACELINE-DATAPLANE INJECTION_PEER [PART OF A CASE'S NAME]
"""

import os
import re
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from programs import Failed, Running, run_alone, run_table  # noqa: E402
from testbed import PATIENCE, Testbed, end, say  # noqa: E402

RTS, ERROR = 3, 6
GUILTY = 3
PEER = None


def run(testbed, options, *arguments, status=0):
    program = Running(testbed, testbed.on(None, [PEER, *map(str, arguments)], *options))
    try:
        return program.finish(time.monotonic() + 60 * PATIENCE, (status,))
    except Failed as error:
        raise Failed(f"{error}\n{' '.join(program.command)}\n{program.text()}") from None
    finally:
        end(program.process)


def faults(*rules):
    return [word for rule in rules for word in ("--fault", rule)]


def expect(good, what, text):
    if not good:
        raise Failed(f"{what}:\n{text}")


def completions(text):
    return dict(re.findall(r"^request (\d+): (.*)$", text, re.MULTILINE))


def statuses(text):
    """The same without what the machine's load decides."""
    return {number: told.removesuffix(", late") for number, told in completions(text).items()}


def events(text, of):
    return re.findall(rf"^event of {of}: (.*)$", text, re.MULTILINE)


def states(text):
    return [int(state) for state in re.findall(r"^state of \d: (\d)$", text, re.MULTILINE)]


def fails(rule, what, told, peer_state=RTS, peer_events=()):
    """Requests before the third succeed, it fails as said, and the fourth is flushed."""
    def check(testbed):
        text = run(testbed, faults(f"{rule},at=3,qp=1"), "post", what, 4)
        good = "success"
        expect(statuses(text) == {"1": good, "2": good, "3": told,
                                     "4": "Work Request Flushed Error"}, "completions", text)
        expect(states(text) == [ERROR, peer_state], "states", text)
        expect(events(text, 1) == list(peer_events), "events of the peer", text)
        expect(re.search(rf"^paceline: fault {rule}: request 3 of queue pair 0x[0-9a-f]{{6}}, "
                         r"wr_id 0x3, \d+\.\d+ s ", text, re.MULTILINE), "what was injected", text)
        return told
    return f"{rule}, {what}", check


def batch(testbed):
    """What was posted behind a request that fails is flushed, in order."""
    text = run(testbed, faults("retry-exceeded,at=2"), "batch", 5)
    told = statuses(text)
    expect(list(told) == ["1", "2", "3", "4", "5"] and told["1"] == "success"
           and told["2"] == "transport retry counter exceeded"
           and all(told[n] == "Work Request Flushed Error" for n in "345"), "completions", text)


def slow(testbed):
    text = run(testbed, faults("slow,every=3,for=30ms"), "post", "write", 7)
    told = completions(text)
    expect(all(told[n].startswith("success") for n in told) and len(told) == 7, "completions", text)
    # The others may be late, too, where the machine is busy.
    expect(all(told[n] == "success, late" for n in "36"), "held for 30 ms", text)
    expect(states(text) == [RTS, RTS], "states", text)


def slow_in_a_batch(testbed):
    text = run(testbed, faults("slow,at=2,for=5ms", "slow,at=4,for=5ms"), "batch", 6)
    expect(list(statuses(text).values()) == ["success"] * 6, "completions", text)


def port_down(testbed):
    text = run(testbed, faults("port-down,at=2,for=40ms"), "post", "write", 4)
    expect(list(statuses(text).values()) == ["success"] * 4, "completions", text)
    expect(events(text, 0) == ["port error", "port active", "GID table change"], "events", text)


def gid_change(testbed):
    text = run(testbed, faults("gid-change,at=2", "gid-change,at=4"), "post", "write", 4)
    expect(list(statuses(text).values()) == ["success"] * 4, "completions", text)
    expect(events(text, 0) == ["GID table change"] * 2 and not events(text, 1), "events", text)


def seeded(testbed):
    """The same requests are hit with the same seed, and others with another."""
    def hit(seed):
        text = run(testbed, [*faults("slow,rate=0.2,for=100us"), "--seed", str(seed)], "post", "send", 40)
        return re.findall(r"fault slow: request (\d+)", text)
    first, again, other = hit(7), hit(7), hit(8)
    expect(first == again and first and first != other, "requests hit", f"{first} {again} {other}")


def quiet(testbed):
    text = run(testbed, [], "post", "send", 4)
    expect(list(statuses(text).values()) == ["success"] * 4 and "fault" not in text
           and not events(text, 0), "without options", text)


def refused(testbed):
    for rule, words in (("sleep,at=1", "no such fault; allowed are local-protection, remote-access"),
                        ("rnr", "expected one of at=N, every=N and rate=P"),
                        ("rnr,at=0", '"at=0": expected a whole number from 1'),
                        ("rnr,rate=2", '"rate=2": expected a probability above 0, at most 1'),
                        ("rnr,at=1,every=2", "expected one of at=N"),
                        ("slow,at=1", "expected for=TIME, such as for=5ms"),
                        ("slow,at=1,for=5", '"for=5": expected a whole number of us, ms or s'),
                        ("rnr,at=1,for=5ms", "only slow and port-down take a time"),
                        ("rnr,at=1,nic=2", "no such key; allowed are at, every, rate, for and qp")):
        program = Running(testbed, testbed.on(None, ["true"], "--fault", rule))
        text = program.finish(time.monotonic() + 20 * PATIENCE, (2,))
        expect(words in text and rule in text, f"--fault {rule}", text)
    text = run_alone(testbed, ["env", "PACELINE_FAULT=nothing", *testbed.on(None, [
        "sh", "-c", f"{PEER} post write 1; test $? = 1"])])
    expect("PACELINE_FAULT: \"nothing\": no such fault" in text, "a program of its own environment", text)


def order(mode, how, guilty, *more, names=()):
    def check(testbed):
        text = run(testbed, ["--reorder"], mode, 150, how, *more, status=GUILTY if guilty else 0)
        found = re.findall(r"order check of (h\d): (\d+) placements were held; .*(\d+) of the others: (.*)",
                           text)
        verdicts = [verdict for _, _, _, verdict in found]
        torn = int(re.search(r"^torn (\d+)$", text, re.MULTILINE).group(1))
        expect(found and all(int(held) >= 150 for _, held, _, _ in found), "what was held", text)
        expect(("IT GOES BY MEMORY BEFORE COMPLETIONS" in verdicts) == guilty, "the verdict", text)
        # A program that does not wait for the completion reads what is not there yet.
        expect((torn != 0) == guilty, "data read too early", text)
        for name in names:
            expect(re.search(name, text), f"no {name}", text)
        return f"read too early {torn} times of 150"
    return f"--reorder: {' '.join((mode, how, *more))}", check


EXAMPLE = r"placement \d+, 256 bytes at 0x[0-9a-f]+, of {} on queue pair 0x[0-9a-f]{{6}}"

CASES = [
    fails("retry-exceeded", "write", "transport retry counter exceeded"),
    fails("retry-exceeded", "send", "transport retry counter exceeded"),
    fails("rnr", "send", "RNR retry counter exceeded"),
    fails("remote-operational", "write", "remote operation error"),
    fails("local-protection", "write", "local protection error"),
    fails("remote-access", "write", "remote access error", peer_state=ERROR,
          peer_events=["local access violation work queue error"]),
    ("a batch", batch), ("slow", slow), ("slow, a batch", slow_in_a_batch), ("port-down", port_down),
    ("gid-change", gid_change), ("seeds", seeded), ("no faults", quiet), ("what is refused", refused),
    order("hear", "memory", True, names=[EXAMPLE.format("a WRITE of the peer")]),
    order("hear", "completion", False), order("hear", "completion", False, "busy"),
    order("read", "memory", True, names=[EXAMPLE.format(r"the request wr_id \d+")]),
    order("read", "completion", False),
]


def main():
    global PEER
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    paceline, dataplane, PEER = sys.argv[1:4]
    with Testbed(paceline, dataplane) as testbed:
        failed = run_table(testbed, CASES, sys.argv[4] if len(sys.argv) > 4 else None)
    say("all passed" if failed == 0 else f"{failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
