#!/usr/bin/env python3
"""Linux Soft-RoCE as the peer of our engine, in both roles: a small guest under qemu, joined to our process
by a tap in a network namespace that this test makes and removes. docs/interop.md says what is covered.

usage: rxe_test.py OUR_PEER THEIR_PEER CACHE [CASE...]     exit: 0 good, 1 a check failed, 77 skipped (and why)

CACHE keeps the guest's kernel. CASE: names of unittest, for example Verbs.test_reliable.
"""

import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "guest"))
import build_guest  # noqa: E402
import guest as machines  # noqa: E402
from guest import OURS, THEIRS  # noqa: E402

FIRST_PSN = 0xFFFFF0  # sequence numbers wrap in every conversation of more than 16 packets
REGION = 448 * 1024
SOURCE_SEED = {"ours": 1, "guest": 2}
PATIENCE = 20000  # milliseconds for the completions of a conversation
SENDING = ("send", "send_imm", "write", "write_imm")
RECEIVED = {"send": "receive", "send_imm": "receive", "write_imm": "receive_write_imm"}
COMPLETED = {"send": "send", "send_imm": "send", "write": "write", "write_imm": "write", "read": "read"}


def sizes(mtu):
    return (0, 1, 61, 62, 63, 64, mtu - 1, mtu, mtu + 1, 5000, 65536)


def immediate(number):
    return (0x9E3779B9 * (number + 1)) & 0xFFFFFFFF


class Completion:
    def __init__(self, line):
        _, self.id, self.operation, self.bytes, imm, self.source, grh, self.status = line.split(" ", 7)
        self.id, self.bytes, self.source = int(self.id), int(self.bytes), int(self.source)
        self.immediate = None if imm == "-" else int(imm)
        self.grh = grh == "grh"


class End:
    """One end of a conversation: its process, its regions, its address."""

    def __init__(self, lines, ip):
        self.lines = lines
        self.ip = ip
        self.seed = SOURCE_SEED[lines.name]
        self.regions = {}

    def say(self, command):
        return self.lines.say(command)

    def region(self, name, size, rights="remote"):
        if name not in self.regions:
            address, key = self.say(f"region {name} {size} {rights}").split()
            self.regions[name] = (int(address), int(key))

    def at(self, name, offset=0):
        address, key = self.regions[name]
        return f"to={address + offset}:{key}"

    def wait(self, qp, side, count, patience=PATIENCE):
        found, lines = self.lines.answers([f"wait {qp} {side} {count} {patience}"])[0]
        return [Completion(line) for line in lines]


class Pair:
    """A connected pair of queue pairs, the requester's end first."""

    number = 0

    def __init__(self, requester, responder, kind="rc", **attributes):
        Pair.number += 1
        self.id = Pair.number
        self.requester, self.responder = requester, responder
        self.psn = {requester: attributes.pop("psn", FIRST_PSN), responder: 0x000123}
        self.qpn = {}
        for end in (requester, responder):
            words = " ".join(f"{name}={value}" for name, value in attributes.items())
            self.qpn[end] = int(end.say(f"qp {self.id} {kind} psn={self.psn[end]} {words}"))
        if kind == "rc":
            for end, other in ((responder, requester), (requester, responder)):
                end.say(f"connect {self.id} {other.ip} {self.qpn[other]} {self.psn[other]}")

    def close(self):
        for end in (self.requester, self.responder):
            end.say(f"destroy {self.id}")


class Case(unittest.TestCase):
    def ends(self, role, family, seed=1):
        """Requester and responder; role says which of them we are. Our process is a new one each time."""
        ours = End(machines.Ours(NETWORK, OUR_PEER, family, seed), OURS[family][0])
        self.addCleanup(self.end_ours, ours)
        theirs = End(GUEST, THEIRS[family][0])
        theirs.regions = GUEST_REGIONS
        for end in (ours, theirs):
            end.region("source", REGION)
            end.region("target", REGION)
            end.region("words", 64)
            end.lines.answers([f"fill source 0 {REGION} {end.seed}", f"fill target 0 {REGION} 0",
                               "fill words 0 64 0"])
        self.ours, self.theirs = ours, theirs
        return (ours, theirs) if role == "requester" else (theirs, ours)

    def end_ours(self, end):
        if end.lines.process.poll() is None:
            self.last_counters = end.say("counters")
        self.assertEqual(end.lines.stop(), 0)

    def counters(self):
        return {name: int(value) for name, value in
                (word.split("=") for word in self.ours.say("counters").split())}

    def check_done(self, done, expected):
        self.assertEqual([(c.id, c.operation, c.status) for c in done],
                         [(number, operation, "success") for number, operation in expected])


class Verbs(Case):
    def converse(self, requester, responder, mtu, lengths, **attributes):
        """Every operation with every length, all under way at once; every byte of both ends checked."""
        pair = Pair(requester, responder, mtu=mtu, **attributes)
        messages = []
        places = {"target": 3, "fetched": 5}
        for operation in (*SENDING, "read"):
            for length in lengths:
                place = "fetched" if operation == "read" else "target"
                messages.append((operation, length, places[place]))
                places[place] += length + 13
        receives = [f"receive {pair.id} {number} target:{at}:{length}"
                    for number, (operation, length, at) in enumerate(messages) if operation in RECEIVED]
        responder.lines.answers(receives)
        posts = []
        for number, (operation, length, at) in enumerate(messages):
            if operation == "read":
                where = f"target:{at}:{length} {responder.at('source', at)}"
            else:
                where = f"source:{at}:{length} {responder.at('target', at)} imm={immediate(number)}"
            posts.append(f"post {pair.id} {operation} {number} {where}")
        requester.lines.answers(posts)
        done = requester.wait(pair.id, "send", len(messages))
        self.check_done(done, [(n, COMPLETED[m[0]]) for n, m in enumerate(messages)])
        taken = responder.wait(pair.id, "receive", len(receives))
        wanted = [(n, m) for n, m in enumerate(messages) if m[0] in RECEIVED]
        self.check_done(taken, [(n, RECEIVED[m[0]]) for n, m in wanted])
        for completion, (number, (operation, length, _)) in zip(taken, wanted):
            self.assertEqual(completion.bytes, length, operation)
            self.assertEqual(completion.immediate,
                             immediate(number) if operation.endswith("_imm") else None, operation)
        for end, reads in ((responder, False), (requester, True)):
            other = requester if end is responder else responder
            pieces = [f"{at}:{length}:{other.seed}:{at}" for operation, length, at in messages
                      if (operation == "read") == reads and length > 0]
            end.say("verify target " + " ".join(pieces))
        pair.close()

    def test_reliable(self):
        for family in (4, 6):
            for role in ("requester", "responder"):
                for mtu in (1024, 4096):
                    with self.subTest(family=family, role=role, mtu=mtu):
                        requester, responder = self.ends(role, family)
                        self.converse(requester, responder, mtu, sizes(mtu))
                        self.ours.say("whole")


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


if __name__ == "__main__":
    OUR_PEER, THEIR_PEER, CACHE = sys.argv[1:4]
    if os.geteuid() != 0:
        skip("needs root, to make a network namespace and a tap")
    NETWORK = machines.Network()
    GUEST = None
    try:
        try:
            build_guest.program("qemu-system-x86_64")
            build_guest.program("ip")
            NETWORK.make()
            GUEST = machines.Guest(NETWORK, CACHE, THEIR_PEER)
        except build_guest.Missing as lack:
            skip(lack)
        except RuntimeError as error:
            skip(f"no network namespace or tap here: {error}")
        GUEST_REGIONS = {}
        print(f"Soft-RoCE of Linux {GUEST.kernel}, up after {GUEST.boot_seconds:.0f} s", flush=True)
        unittest.main(argv=sys.argv[:1] + sys.argv[4:], verbosity=2)
    finally:
        if GUEST is not None:
            GUEST.stop()
        NETWORK.remove()
