"""Conversations between our engine and Soft-RoCE: what the cases of rxe_test.py are written with."""

import unittest

import guest as machines
from guest import OURS, THEIRS

FIRST_PSN = 0xFFFFF0  # sequence numbers wrap in every conversation of more than 16 packets
REGION = 512 * 1024
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
        _, lines = self.lines.answers([f"wait {qp} {side} {count} {patience}"])[0]
        return [Completion(line) for line in lines]


open_pairs = []


class Pair:
    """A connected pair of queue pairs, the requester's end first."""

    number = 0

    def __init__(self, requester, responder, kind="rc", **attributes):
        Pair.number += 1
        self.id = Pair.number
        self.requester, self.responder = requester, responder
        self.psn = {requester: attributes.pop("psn", FIRST_PSN), responder: 0x000123}
        self.qpn = {}  # of those that exist
        open_pairs.append(self)
        for end in (requester, responder):
            words = " ".join(f"{name}={value}" for name, value in attributes.items())
            self.qpn[end] = int(end.say(f"qp {self.id} {kind} psn={self.psn[end]} {words}"))
        if kind == "rc":
            for end, other in ((responder, requester), (requester, responder)):
                end.say(f"connect {self.id} {other.ip} {self.qpn[other]} {self.psn[other]}")

    def close(self):
        for end in (self.requester, self.responder):
            self.destroy(end)

    def destroy(self, end):
        if end in self.qpn:
            del self.qpn[end]
            end.say(f"destroy {self.id}")


class World:
    """What all cases share; rxe_test.py makes it."""

    network = None
    guest = None
    our_peer = ""
    service = ()  # paceline and paceline-dataplane, where there are any
    seeds = 1  # of bad weather
    guest_regions = {}  # they live as long as the guest


world = World()


class Case(unittest.TestCase):
    def ends(self, role, family, seed=1):
        """Requester and responder; role says which of them we are. Our process is a new one each time."""
        self.end_ours()  # of the subtest before: two engines with one address answer everything twice
        ours = End(machines.Ours(world.network, world.our_peer, family, seed), OURS[family][0])
        theirs = End(world.guest, THEIRS[family][0])
        theirs.regions = world.guest_regions
        for end in (ours, theirs):
            end.region("source", REGION)
            end.region("target", REGION)
            end.region("words", 64)
            end.say(f"fill source 0 {REGION} {end.seed}")
        self.ours, self.theirs = ours, theirs
        self.clear()
        return (ours, theirs) if role == "requester" else (theirs, ours)

    def clear(self):
        for end in (self.ours, self.theirs):
            end.lines.answers([f"fill target 0 {REGION} 0", "fill words 0 64 0"])

    @staticmethod
    def ways(role):
        """Of requests, and of answers, as our port sees them."""
        return ("out", "in") if role == "requester" else ("in", "out")

    def setUp(self):
        self.ours = None
        self.addCleanup(self.end_ours)

    def end_ours(self):
        # What a failed case has left would speak to the next one's queue pairs.
        while open_pairs:
            open_pairs.pop().destroy(self.theirs)
        if self.ours is not None:
            ours, self.ours = self.ours, None
            self.assertEqual(ours.lines.stop(), 0)

    def counters(self):
        return {name: int(value) for name, value in
                (word.split("=") for word in self.ours.say("counters").split())}

    def check_done(self, done, expected):
        self.assertEqual([(c.id, c.operation, c.status) for c in done],
                         [(number, operation, "success") for number, operation in expected],
                         f"we counted {self.ours.say('counters')}")
