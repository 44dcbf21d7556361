"""Captures of our own, judged by tshark: nothing malformed, nothing odd, but for what it is known to
misjudge. The ICRC, which tshark does not verify, is checked by our own parser.

usage: tshark_test.py PACELINE VERBS_CAPTURE CHECK_CAPTURE     exit: 0 good, 1 a check failed,
                                                             77 skipped (no tshark)
"""

import collections
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from guesses import WITHOUT_GUESSING

# What tshark with its guesses (guesses.py) calls malformed, and what is right, as the empty SENDs of soft-RoCE
# are (golden/README.md).
MISJUDGED = {4: 0, 23: 4, 100: 8, 101: 12}  # opcode: bytes of extension headers
MISJUDGED_BELOW = 4  # bytes of payload

SCENARIO = """schema = 1
name = "look"
[fabric]
topology = "leaf_spine"
leaves = 2
spines = 1
hosts_per_leaf = 4
ecn = { kmin = "10kB", kmax = "40kB" }
[workload]
kind = "incast"
fan_in = 7
message_bytes = "90001B"
start_jitter = "1us"
"""
LINKS = ("host0", "leaf0-spine0")

# Each reaches something of its own: CNPs; GRANT; HELLO; what does not arrive; pauses.
RUNS = {
    "dcqcn": ("cc.algorithm=dcqcn",),
    "cadence": ("cc.algorithm=cadence", "workload.kind=permutation", "workload.message_bytes=300kB"),
    "discover": ("cc.algorithm=cadence", "transport.peers=discover"),
    "impaired": ("cc.algorithm=dcqcn", "fabric.loss=0.01", "fabric.corrupt=0.01",
                 "fabric.duplicate=0.01", "fabric.reorder=0.02"),
    "pauses": ("cc.algorithm=fixed", "fabric.buffer=200kB", "fabric.pfc.headroom=4kB",
               "fabric.pfc.reserve=1kB"),
    "notified": ("cc.algorithm=switch-notified", "fabric.notice.enabled=true",
                 "fabric.notice.sample=10kB"),
}
FIELDS = ("frame.comment", "frame.interface_name", "frame.packet_flags_direction", "frame.time_epoch",
          "_ws.expert.severity", "ip.src", "ip.len", "infiniband.bth.opcode",
          "infiniband.bth.destqp", "infiniband.bth.padcnt", "infiniband.aeth.syndrome",
          "_ws.col.Info")
COMMENT_SEVERITY = 0x100000  # that a packet has a comment is "expert information", too


def run(*words, cwd=None):
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(words)}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


def packets_of(path, *words):
    """A dictionary per packet; `odd`: whether tshark found something wrong with it."""
    extra = [word for name in FIELDS for word in ("-e", name)]
    packets = []
    for line in run(TSHARK, "-n", "-r", path, *words, "-T", "fields", *extra).splitlines():
        packet = dict(zip(FIELDS, line.split("\t")))
        severities = packet["_ws.expert.severity"].split(",")
        packet["odd"] = any(int(x) > COMMENT_SEVERITY for x in severities if x)
        opcode = packet["infiniband.bth.opcode"]
        packet["opcode"] = int(opcode) if opcode else None
        packets.append(packet)
    return packets


class Captures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.links = {}
        scenario = os.path.join(cls.folder.name, "look.toml")
        with open(scenario, "w", encoding="utf-8") as out:
            out.write(SCENARIO)
        for name, settings in RUNS.items():
            words = [word for setting in settings for word in ("--set", setting)]
            for link in LINKS:
                path = os.path.join(cls.folder.name, name, link + ".pcapng")
                os.makedirs(os.path.dirname(path), exist_ok=True)
                words += ["--capture", path]
                cls.links[name, link] = path
            run(PACELINE, "emulate", scenario, "-q", *words)
        cls.packets = {key: packets_of(path) for key, path in cls.links.items()}
        cls.verbs = os.path.join(cls.folder.name, "verbs.pcapng")
        run(VERBS_CAPTURE, cls.verbs)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def counted(self, path):
        """By our own parser, every ICRC checked: label -> packets."""
        lines = run(CHECK_CAPTURE, path).splitlines()
        return collections.Counter({label: int(n) for n, label in (x.split("\t") for x in lines)})

    def everything(self):
        return [packet for packets in self.packets.values() for packet in packets]

    def test_emulated_links(self):
        seen = collections.Counter()
        for key, packets in self.packets.items():
            with self.subTest(key):
                self.assertEqual([p for p in packets if p["odd"]], [])
                mine = self.counted(self.links[key])
                roce = sum(p["opcode"] is not None for p in packets)
                self.assertEqual(roce, sum(mine.values()) - mine["PFC"])
                self.assertEqual(len(packets), sum(mine.values()))
                seen += mine
        for label in ("RC WRITE First", "RC WRITE Middle", "RC WRITE Last", "RC ACK", "CNP", "HELLO",
                      "REQUEST", "GRANT", "NOTICE", "PFC"):
            self.assertGreater(seen[label], 0, label)

    def test_every_verb(self):
        mine = self.counted(self.verbs)
        self.assertEqual([p for p in packets_of(self.verbs, *WITHOUT_GUESSING) if p["odd"]], [])
        packets = packets_of(self.verbs)
        for packet in packets:
            if not packet["odd"]:
                continue
            self.assertIn(packet["opcode"], MISJUDGED, packet)
            # IP 20, UDP 8, BTH 12, ICRC 4.
            payload = (int(packet["ip.len"]) - 44 - MISJUDGED[packet["opcode"]]
                       - int(packet["infiniband.bth.padcnt"]))
            self.assertLess(payload, MISJUDGED_BELOW, packet)
        # tshark reads the opcodes that we wrote: all of RC and XRC but the reserved one, SEND and
        # WRITE of UC, SEND of UD, CNP.
        theirs = collections.Counter(p["opcode"] for p in packets)
        reliable = set(range(0x15)) | {0x16, 0x17}
        every = reliable | {0xA0 + x for x in reliable} | set(range(0x20, 0x2C)) | {0x64, 0x65, 0x81}
        self.assertEqual(set(theirs), every)
        self.assertEqual(sorted(theirs.values()), sorted(mine.values()))
        # Acknowledgements, RNR NAKs and NAKs.
        kinds = {int(p["infiniband.aeth.syndrome"]) >> 5 for p in packets if p["opcode"] == 17}
        self.assertEqual(kinds, {0, 1, 3})

    def test_control_messages(self):
        """Opcodes from 0xC0 on: tshark shows the transport header and leaves the rest alone."""
        ours = [p for p in self.everything() if p["opcode"] is not None and p["opcode"] >= 0xC0]
        self.assertLessEqual({0xC0, 0xC1, 0xC2}, {p["opcode"] for p in ours})
        for packet in ours:
            if packet["opcode"] <= 0xC2:
                self.assertEqual(int(packet["infiniband.bth.destqp"], 16), 0xFFFFFD)
            self.assertIn("Unknown OpCode", packet["_ws.col.Info"])

    def test_what_did_not_arrive(self):
        comments = " ".join(p["frame.comment"] for p in self.everything())
        for text in ("lost on this link: link_loss", "bit error", "copy made",
                     "dropped in front of this link: headroom_exhausted"):
            self.assertIn(text, comments)

    def test_interface_and_time(self):
        last = 0.0
        for packet in self.packets["dcqcn", "host0"]:
            self.assertEqual(packet["frame.interface_name"], "host0")
            # Outbound is what the host sends.
            direction = int(packet["frame.packet_flags_direction"], 0)
            self.assertEqual(direction, 2 if packet["ip.src"] == "10.0.0.1" else 1)
            self.assertEqual(len(packet["frame.time_epoch"].split(".")[1]), 9)
            self.assertGreaterEqual(float(packet["frame.time_epoch"]), last)
            last = float(packet["frame.time_epoch"])
        self.assertLess(last, 1)


if __name__ == "__main__":
    PACELINE, VERBS_CAPTURE, CHECK_CAPTURE = sys.argv[1:4]
    TSHARK = shutil.which("tshark")
    if TSHARK is None:
        print("skipped: no tshark (package tshark, see tools/packages.txt)")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
