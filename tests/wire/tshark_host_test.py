#!/usr/bin/env python3
"""What our host stack says besides RoCEv2, judged by tshark: nothing malformed, every checksum good, the
fields as meant, the same in a VLAN.

usage: tshark_host_test.py HOST_CAPTURE     exit: 0 good, 1 a check failed, 77 skipped (no tshark)
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

FIELDS = ("frame.comment", "frame.interface_name", "_ws.expert.severity", "_ws.malformed", "eth.dst",
          "vlan.id", "vlan.priority", "ip.src", "ip.dst", "ip.checksum.status", "ip.ttl", "ip.dsfield.dscp",
          "arp.opcode", "arp.src.hw_mac", "arp.src.proto_ipv4", "arp.dst.hw_mac", "arp.dst.proto_ipv4",
          "arp.isannouncement", "ipv6.src", "ipv6.dst", "ipv6.hlim", "icmpv6.type", "icmpv6.checksum.status",
          "icmpv6.nd.ns.target_address", "icmpv6.nd.na.target_address", "icmpv6.nd.na.flag.r",
          "icmpv6.nd.na.flag.s", "icmpv6.nd.na.flag.o", "icmpv6.opt.linkaddr", "icmp.type",
          "icmp.checksum.status", "icmp.ident", "icmp.seq", "data.len", "icmpv6.echo.sequence_number",
          "icmpv6.opt.type")
COMMENT_SEVERITY = 0x100000  # that a packet has a comment is "expert information", too
CHAT = 0x200000  # and so is what tshark finds remarkable: that an address is announced
OURS, PEER = "02:00:00:00:00:01", "02:00:00:00:00:02"


def packets_of(path):
    words = [word for name in FIELDS for word in ("-e", name)]
    # Status fields need the checks, which are off by default for IPv4.
    out = subprocess.run([TSHARK, "-n", "-r", path, "-o", "ip.check_checksum:TRUE", "-T", "fields", *words],
                         capture_output=True, text=True, check=True).stdout
    return [dict(zip(FIELDS, line.split("\t"))) for line in out.splitlines()]


class HostFrames(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "host.pcapng")
            subprocess.run([HOST_CAPTURE, path], check=True)
            cls.packets = packets_of(path)

    def select(self, comment, field, value=None):
        found = [p for p in self.packets if p["frame.comment"] == comment and p[field]
                 and (value is None or p[field] == value)]
        self.assertEqual(len(found), 2, (comment, field, value))  # untagged and tagged
        self.assertEqual({p["frame.interface_name"] for p in found}, {"untagged", "tagged"})
        return found

    def expect(self, packets, **values):
        for packet in packets:
            for name, value in values.items():
                self.assertEqual(packet[name.replace("__", ".")], value, (name, packet))

    def test_nothing_odd(self):
        self.assertEqual(len(self.packets), 2 * (2 + 4 + 4 + 8))
        for p in self.packets:
            self.assertEqual(p["_ws.malformed"], "", p)
            severities = [int(x) for x in p["_ws.expert.severity"].split(",") if x]
            self.assertLessEqual(max(severities, default=0), CHAT, p)
            for what, status in (("ip.src", "ip.checksum.status"), ("icmp.type", "icmp.checksum.status"),
                                 ("icmpv6.type", "icmpv6.checksum.status")):
                self.assertEqual(p[status], "1" if p[what] else "", (status, p))

    def test_tags(self):
        for p in self.packets:
            if p["frame.interface_name"] == "untagged":
                self.assertEqual(p["vlan.id"], "")
                continue
            self.assertEqual(p["vlan.id"], "100")
            # Control in class 7; the echo came with DSCP 26, which is class 3.
            self.assertEqual(p["vlan.priority"], "3" if p["frame.comment"] == "echo" else "7")

    def test_arp(self):
        common = {"arp__src__hw_mac": OURS, "arp__src__proto_ipv4": "10.0.0.1"}
        self.expect(self.select("announcement", "arp.opcode"), **common, arp__opcode="1",
                    arp__isannouncement="1", eth__dst="ff:ff:ff:ff:ff:ff",
                    arp__dst__proto_ipv4="10.0.0.1")
        self.expect(self.select("request", "arp.opcode"), **common, arp__opcode="1",
                    eth__dst="ff:ff:ff:ff:ff:ff", arp__dst__proto_ipv4="10.0.0.2")
        self.expect(self.select("probe", "arp.opcode"), **common, arp__opcode="1", eth__dst=PEER)
        self.expect(self.select("answer", "arp.opcode"), **common, arp__opcode="2", eth__dst=PEER,
                    arp__dst__hw_mac=PEER, arp__dst__proto_ipv4="10.0.0.2")
        self.expect(self.select("denial", "arp.opcode"), **common, arp__opcode="2", eth__dst=PEER,
                    arp__dst__proto_ipv4="0.0.0.0")

    def test_neighbour_discovery(self):
        ask = {"icmpv6__type": "135", "ipv6__hlim": "255", "ipv6__src": "fd00::1",
               "icmpv6__opt__linkaddr": OURS, "icmpv6__opt__type": "1",
               "icmpv6__nd__ns__target_address": "fd00::abcd:2"}
        self.expect(self.select("request", "icmpv6.type"), **ask, ipv6__dst="ff02::1:ffcd:2",
                    eth__dst="33:33:ff:cd:00:02")
        self.expect(self.select("probe", "icmpv6.type"), **ask, ipv6__dst="fd00::abcd:2", eth__dst=PEER)
        tell = {"icmpv6__type": "136", "ipv6__hlim": "255", "ipv6__src": "fd00::1",
                "icmpv6__opt__linkaddr": OURS, "icmpv6__opt__type": "2", "icmpv6__nd__na__flag__r": "0",
                "icmpv6__nd__na__flag__o": "1", "icmpv6__nd__na__target_address": "fd00::1"}
        everyone = {"ipv6__dst": "ff02::1", "eth__dst": "33:33:00:00:00:01",
                    "icmpv6__nd__na__flag__s": "0"}
        self.expect(self.select("announcement", "icmpv6.type"), **tell, **everyone)
        self.expect(self.select("denial", "icmpv6.type"), **tell, **everyone)
        self.expect(self.select("answer", "icmpv6.type"), **tell, ipv6__dst="fd00::abcd:2", eth__dst=PEER,
                    icmpv6__nd__na__flag__s="1")

    def test_echo(self):
        for size in (0, 1, 56, 1001):
            four = [p for p in self.packets if p["frame.comment"] == "echo" and p["icmp.type"]
                    and p["icmp.seq"].split(",")[0] == str(size)]
            self.assertEqual(len(four), 2, size)
            self.expect(four, icmp__type="0", ip__ttl="64", ip__src="10.0.0.1", ip__dst="10.0.0.2",
                        ip__dsfield__dscp="26", eth__dst=PEER, data__len=str(size) if size else "")
            six = [p for p in self.packets if p["frame.comment"] == "echo" and p["icmpv6.type"]
                   and p["icmpv6.echo.sequence_number"] == str(size)]
            self.assertEqual(len(six), 2, size)
            self.expect(six, icmpv6__type="129", ipv6__hlim="64", ipv6__src="fd00::1",
                        ipv6__dst="fd00::abcd:2", eth__dst=PEER, data__len=str(size) if size else "")


if __name__ == "__main__":
    HOST_CAPTURE = sys.argv[1]
    TSHARK = shutil.which("tshark")
    if TSHARK is None:
        print("skipped: no tshark (package tshark, see tools/packages.txt)")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
