#!/usr/bin/env python3
"""The Linux kernel as the neighbour of our host stack, over a veth pair between two network namespaces
that this test makes and removes. The kernel pings us, resolves us, probes us, asks whether our address is
free; we resolve the kernel, keep it resolved under traffic, and it gets our packets.

usage: kernel_neighbour_test.py KERNEL_PEER     exit: 0 good, 1 a check failed, 77 skipped (and why)
"""

import json
import os
import select
import shutil
import socket
import struct
import subprocess
import sys
import time
import unittest

OURS = "pcl-o-%d" % os.getpid()
THEIRS = "pcl-k-%d" % os.getpid()
MAC = "02:00:5e:00:00:01"
PATIENCE = 10  # seconds for anything at all
ROCE_PORT = 4791
UDP_NO_CHECK6_RX = 102  # linux/udp.h; the socket module has no name for it


def run(*words, check=True):
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=30)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


# ---- in the kernel's namespace ----

def checksum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ping(address, size, sequence):
    """Sends an echo request by the kernel's raw socket; True if the very reply comes back."""
    v6 = ":" in address
    data = bytes((i * 7 + sequence) & 0xFF for i in range(size))
    kind, answer = (128, 129) if v6 else (8, 0)
    head = struct.pack("!BBHHH", kind, 0, 0, 0x5043, sequence)
    if not v6:  # for ICMPv6 the kernel does it
        head = struct.pack("!BBHHH", kind, 0, checksum(head + data), 0x5043, sequence)
    family, protocol = (socket.AF_INET6, socket.IPPROTO_ICMPV6) if v6 else (socket.AF_INET,
                                                                          socket.IPPROTO_ICMP)
    with socket.socket(family, socket.SOCK_RAW, protocol) as raw:
        raw.sendto(head + data, (address, 0))
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if not select.select([raw], [], [], 0.2)[0]:
                continue
            packet, source = raw.recvfrom(70000)
            if not v6:
                packet = packet[(packet[0] & 15) * 4:]
            if source[0] == address and packet[0] == answer and packet[8:] == data:
                return struct.unpack("!HH", packet[4:8]) == (0x5043, sequence)
    return False


def receive(address, count):
    """True once the kernel has given `count` of our packets to a socket on RoCEv2's port."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as port:
        if family == socket.AF_INET6:
            # RoCEv2 has no UDP checksum, which IPv6 only takes where told (RFC 6935).
            port.setsockopt(socket.IPPROTO_UDP, UDP_NO_CHECK6_RX, 1)
        port.bind((address, ROCE_PORT))
        end = time.monotonic() + PATIENCE
        seen = 0
        while seen < count and time.monotonic() < end:
            if select.select([port], [], [], 0.2)[0]:
                data = port.recv(2048)
                seen += len(data) == 16  # BTH and ICRC
        return seen >= count


def send(address, count):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as port:
        for _ in range(count):
            port.sendto(bytes(16), (address, ROCE_PORT))
    return True


def inside(words):
    action = {"ping": lambda a, *sizes: all(ping(a, int(s), n) for n, s in enumerate(sizes, 1)),
              "receive": lambda a, n: receive(a, int(n)), "send": lambda a, n: send(a, int(n))}
    return 0 if action[words[0]](*words[1:]) else 1


# ---- outside ----

NETWORKS = {0: ("kern0", 77), 100: ("kern0.100", 78)}  # by VLAN

def in_kernel(*words):
    done = subprocess.run(("ip", "netns", "exec", THEIRS, sys.executable, "-B", __file__, "--inside",
                           *map(str, words)), capture_output=True, text=True, check=False, timeout=60)
    return done.returncode == 0


def make_network():
    for name in (OURS, THEIRS):
        run("ip", "netns", "add", name)
    run("ip", "link", "add", "our0", "netns", OURS, "type", "veth", "peer", "name", "kern0", "netns",
        THEIRS)
    # The kernel at our end stays out of it.
    run("ip", "-n", OURS, "link", "set", "our0", "addrgenmode", "none", check=False)
    run("ip", "-n", OURS, "link", "set", "our0", "up")
    run("ip", "-n", THEIRS, "link", "set", "lo", "up")
    run("ip", "-n", THEIRS, "link", "set", "kern0", "up")
    try:
        run("ip", "-n", THEIRS, "link", "add", "link", "kern0", "name", "kern0.100", "type", "vlan",
            "id", "100")
        run("ip", "-n", THEIRS, "link", "set", "kern0.100", "up")
    except RuntimeError as error:
        print(f"without tags: this kernel has no VLAN devices: {error}")
        del NETWORKS[100]
    for device, number in NETWORKS.values():
        run("ip", "-n", THEIRS, "addr", "add", f"10.{number}.0.2/24", "dev", device)
        run("ip", "-n", THEIRS, "addr", "add", f"fd{number}::2/64", "dev", device, "nodad")


def remove_network():
    for name in (OURS, THEIRS):
        run("ip", "netns", "del", name, check=False)


class Peer:
    """Our host for as long as the block lasts; `counted` afterwards."""

    def __init__(self, vlan, *words):
        self.words = ("ip", "netns", "exec", OURS, PEER, "our0", MAC, str(vlan), *words)
        self.counted = {}

    def __enter__(self):
        self.process = subprocess.Popen(self.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        if self.process.stdout.readline().strip() != "ready":
            self.process.kill()
            self.process.wait()
            raise RuntimeError(f"{' '.join(self.words)}: did not start")
        return self

    def __exit__(self, *_):
        try:
            out, _ = self.process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        self.counted = {name: int(value) for name, value in
                        (line.split() for line in out.splitlines())}
        if self.process.returncode != 0:
            raise RuntimeError(f"kernel_peer: exit {self.process.returncode}")


def neighbour(address, device):
    rows = json.loads(run("ip", "-n", THEIRS, "-j", "neigh", "show", "to", address, "dev", device) or "[]")
    return rows[0] if rows else {}


def eventually(check):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if check():
            return True
        time.sleep(0.05)
    return False


class Kernel(unittest.TestCase):
    def test_ping_and_resolution_from_the_kernel(self):
        for vlan, (device, n) in NETWORKS.items():
            ours = (f"10.{n}.0.1", f"fd{n}::1")
            with self.subTest(vlan=vlan):
                with Peer(vlan, f"{ours[0]}/24", f"{ours[1]}/64") as peer:
                    for address in ours:
                        self.assertTrue(in_kernel("ping", address, 0, 1, 56, 100, 1400, 1452), address)
                        self.assertEqual(neighbour(address, device)["lladdr"], MAC)
                        # The kernel's own unicast probe is answered.
                        run("ip", "-n", THEIRS, "neigh", "change", address, "lladdr", MAC, "dev",
                            device, "nud", "probe")
                        self.assertTrue(eventually(
                            lambda a=address: neighbour(a, device).get("state") == ["REACHABLE"]))
                        self.assertTrue(in_kernel("send", address, 3))
                self.assertEqual(peer.counted["echo_answers"], 12)
                self.assertEqual(peer.counted["roce_received"], 6)
                self.assertGreaterEqual(peer.counted["arp_answers"], 2)
                self.assertGreaterEqual(peer.counted["nd_answers"], 2)
                self.assertEqual(peer.counted["conflicts"], 0)
                for reason in ("too_short", "arp_format", "arp_sender", "ip_checksum", "ip_length",
                               "icmp_checksum", "nd_option", "nd_address", "nd_hop_limit"):
                    self.assertEqual(peer.counted["refused_" + reason], 0, reason)

    def test_we_resolve_the_kernel_and_keep_it_resolved(self):
        for vlan, (_, n) in NETWORKS.items():
            theirs = (f"10.{n}.0.2", f"fd{n}::2")
            with self.subTest(vlan=vlan):
                with Peer(vlan, f"10.{n}.0.1/24", f"fd{n}::1/64", "to", *theirs) as peer:
                    # 60 packets at 20 ms: some lifetimes of 150 to 450 ms.
                    for address in theirs:
                        self.assertTrue(in_kernel("receive", address, 60), address)
                self.assertEqual(peer.counted["dropped"], 0)
                self.assertEqual(peer.counted["sent"], peer.counted["offered"])
                self.assertEqual(peer.counted["resolved"], 2)
                self.assertEqual(peer.counted["failed"], 0)
                self.assertEqual(peer.counted["solicits_multicast"], 2)
                self.assertGreater(peer.counted["solicits_unicast"], 2)

    def test_the_kernel_may_not_take_our_address(self):
        """Duplicate address detection of the kernel (RFC 4862) fails on an address of ours."""
        with Peer(0, "10.77.0.1/24", "fd77::1/64") as peer:
            run("ip", "-n", THEIRS, "addr", "add", "fd77::1/64", "dev", "kern0")

            def failed():
                shown = json.loads(run("ip", "-n", THEIRS, "-j", "addr", "show", "dev", "kern0"))
                return any(a.get("local") == "fd77::1" and a.get("dadfailed") for link in shown
                           for a in link.get("addr_info", []))
            try:
                self.assertTrue(eventually(failed))
            finally:
                run("ip", "-n", THEIRS, "addr", "del", "fd77::1/64", "dev", "kern0")
        self.assertGreaterEqual(peer.counted["duplicates_denied"], 1)

    def test_nobody_there(self):
        with Peer(0, "10.77.0.1/24", "to", "10.77.0.99") as peer:
            time.sleep(1.5)  # three requests, 200 ms apart, and the packets that waited
        self.assertEqual(peer.counted["sent"], 0)
        self.assertGreater(peer.counted["failed"], 0)
        self.assertGreater(peer.counted["dropped"], 0)


if __name__ == "__main__":
    if sys.argv[1] == "--inside":
        sys.exit(inside(sys.argv[2:]))
    PEER = sys.argv[1]
    if os.geteuid() != 0:
        skip("needs root, to make network namespaces")
    if shutil.which("ip") is None:
        skip("no ip (package iproute2, see tools/packages.txt)")
    try:
        try:
            make_network()
        except RuntimeError as error:
            skip(f"no network namespaces here: {error}")
        unittest.main(argv=sys.argv[:1], verbosity=2)
    finally:
        remove_network()
