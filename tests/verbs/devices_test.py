#!/usr/bin/env python3
"""Unmodified RDMA programs over devices: two services, each a host with one port, and a wire between.

  devices_test.py CASE PACELINE PACELINE-DATAPLANE

CASE: memif (no privilege), bond_memif (each host with two ports that are one NIC), veth (a network
namespace of its own, which ends with the test), bond (the same with bonds, whose ports fail), bond_xdp
(bonds over af_xdp, root only).
Exit: 0 all passed, 1 some failed, 77 skipped, and why.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from capture_test import Capturing, directions, rows_of  # noqa: E402
from perftest_cases import rows  # noqa: E402  (the folder of this file is not on the path before)
import rdma_cm_machines  # noqa: E402
from programs import Failed, Running, run_alone, run_pair, run_table, take_port  # noqa: E402
from testbed import PATIENCE, ROOT, Testbed, end, need, say, skip  # noqa: E402

INSIDE = "--inside"
MTU = 4300
XDP_MTU = 3000  # a veth takes no XDP program above some 3,500
AF_PACKET = "blocksz=20480,framesz=5120,framecnt=512"


class Wire:
    """Both services; what run_table() wants of a testbed."""

    def __init__(self, a, b):
        self.a, self.b = a, b
        self.folder, self.environment = a.folder, a.environment

    def alive(self):
        return self.a.alive() and self.b.alive()

    @property
    def process(self):
        return (self.b if self.a.alive() else self.a).process

    def log_text(self):
        return f"a:\n{self.a.log_text()}b:\n{self.b.log_text()}"


def pair(wire, command, server_first="b", seconds=20):
    """The command on both; output of both."""
    port = take_port()
    server, client = (wire.b, wire.a) if server_first == "b" else (wire.a, wire.b)
    words = [*command, "-p", str(port)]
    return run_pair(wire, server.on(None, words), client.on(None, [*words, "127.0.0.1"]), port, seconds)


def pingpong(program, *options, server="b"):
    def run(wire):
        texts = pair(wire, [program, "-n", "200", *options], server)
        for text in texts:
            if "iters in" not in text or "invalid data" in text:
                raise Failed(f"not 200 rounds of the right bytes:\n{text}")
        return texts[1].strip().splitlines()[-1]
    return " ".join((program, *options, "server on", server)), run


def perftest(program, *options, server="b"):
    def run(wire):
        texts = pair(wire, [program, "-F", "-n", "200", *options], server)
        found = rows(texts[1])
        if not found:
            raise Failed(f"no result in:\n{texts[1]}")
        return " ".join(found[-1])
    return " ".join((program, *options, "server on", server)), run


def device_information(wire):
    limit = time.monotonic() + 5 * PATIENCE  # a link is there some time after both services are
    text = ""
    while "PORT_ACTIVE" not in text and time.monotonic() < limit:
        text = run_alone(wire, wire.a.on(None, ["ibv_devinfo", "-v"]))
    for word in ("hca_id:\ta0", "PORT_ACTIVE", "::ffff:10.0.0.1", "fd00::1", "active_mtu:\t\t4096"):
        if word not in text:
            raise Failed(f"no \"{word}\" in:\n{text}")


def peer_dies(wire):
    """The service at the other end is killed while programs run: this one's program is told, in time, and
    when the other is there again, all is as before."""
    port = take_port()
    command = ["ib_write_bw", "-F", "-D", "20", "-p", str(port)]
    server = Running(wire, wire.b.on(None, command))
    client = None
    try:
        time.sleep(0.5 * PATIENCE)
        client = Running(wire, wire.a.on(None, [*command, "127.0.0.1"]))
        time.sleep(1.5 * PATIENCE)
        if client.process.poll() is not None:
            raise Failed(f"it ended by itself:\n{client.text()}")
        wire.b.process.send_signal(signal.SIGKILL)
        wire.b.process.wait()
        try:
            status = client.process.wait(10 * PATIENCE)
        except subprocess.TimeoutExpired:
            raise Failed(f"it was not told:\n{client.text()}") from None
        text = client.text()
        if status == 0 or "transport retry counter exceeded" not in text and " 12" not in text:
            raise Failed(f"exit {status}, and no word of retries:\n{text}")
        if not wire.a.alive():
            raise Failed("the other service ended, too")
    finally:
        for program in (server, client):
            if program is not None:
                end(program.process)
    wire.b.restart()
    pingpong("ibv_rc_pingpong", "-g", "0", "-c")[1](wire)
    return text.strip().splitlines()[-1]


def memory_is_shared():
    """Whether programs of this user share memory with the service: they need a userfaultfd that serves faults
    of the kernel (docs/service.md, Memory)."""
    if os.geteuid() == 0 or os.access("/dev/userfaultfd", os.R_OK | os.W_OK):
        return True
    try:
        with open("/proc/sys/vm/unprivileged_userfaultfd", encoding="ascii") as file:
            return file.read().strip() == "1"
    except OSError:
        return False


def device_status(wire):
    """The status says also what these devices do not report."""
    command = [wire.a.paceline, "testbed", "status", "--socket", wire.a.socket]
    port = json.loads(run_alone(wire, [*command, "--json"]))["workers"][0]["nics"][0]["port"]
    wanted = {"pause": None, "pause_frames": None, "rx_errors": 0, "arrivals": {"clock": "poll"}}
    if any(port.get(name, "missing") != value for name, value in wanted.items()):
        raise Failed(f"expected {wanted} in {port}")
    # Payloads are lent from memory that the service shares, and copied from other memory.
    loans = port["loans"]
    shared = memory_is_shared()
    if (loans["sent"] > 0) != shared or loans["overdue"] != 0 or loans["recalled"] > loans["sent"]:
        raise Failed(f"loans, with memory {'shared' if shared else 'copied'}: {loans}")
    line = [line for line in run_alone(wire, command).splitlines() if "arrivals by the poll" in line]
    lent = f"lent {loans['sent']} sent, "
    if len(line) != 1 or "pause unknown" not in line[0] or lent not in line[0]:
        raise Failed(f"not one line about the device: {line}")
    return line[0]


def capture(wire):
    """Of a port while programs use it: both ways, the answers of its neighbour, and tshark reads it."""
    file = os.path.join(wire.folder, "a0.pcapng")
    capturing = Capturing(wire.a, "a0", file)
    pingpong("ibv_rc_pingpong", "-g", "0", "-c")[1](wire)
    text = capturing.interrupt()
    if shutil.which("tshark") is None:
        return "no tshark"
    both = directions(file, "infiniband.bth")
    if min(both.values()) < 200:
        raise Failed(f"fewer than 200 packets each way: {both}\n{text}")
    # Behind the BTH of the manufacturer's opcodes (0xC0 and up: docs/wire-protocol.md) it reads nothing.
    known = rows_of(file, "infiniband.bth.opcode < 0xc0")
    if not known or rows_of(file, "infiniband.bth.opcode < 0xc0 && !infiniband.invariant.crc"):
        raise Failed(f"of {len(known)} packets, some without an ICRC")
    return f"{both['2']} out, {both['1']} in"


PROGRAMS = [
    ("ibv_devinfo -v", device_information),
    pingpong("ibv_rc_pingpong", "-g", "0", "-c"),
    pingpong("ibv_rc_pingpong", "-g", "1", "-c", "-e", server="a"),
    pingpong("ibv_ud_pingpong", "-g", "0", "-c"),
    pingpong("ibv_srq_pingpong", "-g", "1", "-c"),
    perftest("ib_write_bw"), perftest("ib_write_bw", "-x", "1", "-b", server="a"),
    perftest("ib_send_lat"), perftest("ib_read_bw"), perftest("ib_atomic_lat"),
    ("paceline testbed status", device_status),
    ("paceline capture", capture),
    *rdma_cm_machines.CASES,
]


class Host(Testbed):
    """A service on one port."""

    def __init__(self, paceline, dataplane, text, folder, name):
        file = os.path.join(folder, f"{name}.toml")
        with open(file, "w", encoding="utf-8") as out:
            out.write(text)
        super().__init__(paceline, dataplane, file)

    def restart(self):
        """After its process has ended."""
        os.unlink(self.socket)
        self.start()


def testbed_text(name, device_of, algorithm):
    """configs/testbeds/memif-NAME.toml over another device, under an algorithm."""
    with open(os.path.join(ROOT, f"configs/testbeds/memif-{name}.toml"), encoding="utf-8") as file:
        lines = file.read().splitlines()
    changed = {"device": device_of, "algorithm": lambda _: algorithm}
    for i, line in enumerate(lines):
        key = line.split(" ")[0]
        if key in changed:
            lines[i] = f'{key} = "{changed[key](line.split(chr(34))[1])}"'
    return "\n".join(lines) + "\n"


def run_on(paceline, dataplane, device_of, algorithm, table):
    texts = [testbed_text(name, device_of(name), algorithm) for name in "ab"]
    return run_services(paceline, dataplane, texts, table)


def run_services(paceline, dataplane, texts, table):
    with tempfile.TemporaryDirectory(prefix="paceline-devices-") as folder:
        hosts = [Host(paceline, dataplane, text, folder, name) for name, text in zip("ab", texts)]
        try:
            with hosts[0] as a, hosts[1] as b:
                return run_table(Wire(a, b), table)
        except RuntimeError as error:
            if "built without DPDK" in str(error):
                skip("built without DPDK")
            raise


def memif(paceline, dataplane):
    """Of this test alone: another socket than the example's."""
    mine = f"/paceline-test-{os.getpid()}"
    return run_on(paceline, dataplane, lambda _: lambda device: device.replace("/paceline-nics", mine),
                  "cadence", [*PROGRAMS, ("the other service is killed and comes back", peer_dies)])


def set_link(*words):
    done = subprocess.run(("ip", "link", *words), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        skip(f"ip link {' '.join(words)}: {done.stderr.strip()}")


def make_veth(a, b, mtu=MTU):
    set_link("set", "lo", "up")
    set_link("add", a, "mtu", str(mtu), "type", "veth", "peer", "name", b, "mtu", str(mtu))
    for end_of_it in (a, b):
        set_link("set", end_of_it, "addrgenmode", "none", "up")


def bond_text(name, number, algorithm, device):
    """Two ports, pl{name}0 and pl{name}1, as one NIC; device(i, interface) are a port's lines of its device."""
    ports = [f"""
[[port]]
name = "{name}{i}"
bond = "nic{name}"
{device(i, f"pl{name}{i}")}
rate = "1Gb/s"
""" for i in range(2)]
    host = f'[port.host]\naddresses = ["10.0.0.{number}/24", "fd00::{number}/64"]\n'
    return ("schema = 1\n[eal]\nno_huge = true\nmemory = \"400MiB\"\n" + ports[0] + host + ports[1] +
            f'[transport]\nreliability = "selective"\n[cc]\nalgorithm = "{algorithm}"\n')


def nic_status(host):
    text = run_alone(host, [host.paceline, "testbed", "status", "--json", "--socket", host.socket])
    return json.loads(text)["workers"][0]["nics"][0]


def ports_fail(command, seconds, verified):
    """Cables are pulled and put back while programs run; one of the two ports is always there."""
    def run(wire):
        seed = random.randrange(1 << 30)
        draw, stop, pulled = random.Random(seed), threading.Event(), [0]

        def pull():
            while not stop.wait(draw.uniform(0.05, 0.2)):
                cable = f"pl{draw.choice('ab')}{draw.randrange(2)}"
                set_link("set", cable, "down")
                stop.wait(draw.uniform(0.02, 0.3))
                set_link("set", cable, "up")
                pulled[0] += 1
        thread = threading.Thread(target=pull)
        before = [nic_status(host)["counters"]["retransmitted_packets"] for host in (wire.a, wire.b)]
        thread.start()
        try:
            texts = pair(wire, command, seconds=seconds)
        finally:
            stop.set()
            thread.join()
        if any(verified not in text or "invalid data" in text for text in texts):
            raise Failed(f"seed {seed}: no \"{verified}\", or wrong data:\n{texts}")
        again = sum(nic_status(host)["counters"]["retransmitted_packets"] for host in (wire.a, wire.b))
        if pulled[0] < 3:
            raise Failed(f"seed {seed}: only {pulled[0]} cables were pulled")
        return f"seed {seed}: {pulled[0]} cables pulled, {again - sum(before)} packets sent again"
    return f"{' '.join(command)} while ports fail", run


def link_states(wire):
    """One port without a cable: the NIC stays active. None: it is down, and comes back."""
    def await_state(state, ports):
        limit = time.monotonic() + 5 * PATIENCE
        while True:
            nic = nic_status(wire.a)
            if nic["ports_up"] == ports and nic["up"] == any(ports):
                break
            if time.monotonic() > limit:
                raise Failed(f"expected {ports}: {nic['ports_up']}, up {nic['up']}")
            time.sleep(0.02)
        if state not in run_alone(wire, wire.a.on(None, ["ibv_devinfo"])):
            raise Failed(f"expected {state}")
    set_link("set", "pla1", "down")
    await_state("PORT_ACTIVE", [True, False])
    set_link("set", "pla0", "down")
    await_state("PORT_DOWN", [False, False])
    set_link("set", "pla0", "up")
    set_link("set", "pla1", "up")
    await_state("PORT_ACTIVE", [True, True])


BOND_PROGRAMS = [
    pingpong("ibv_rc_pingpong", "-g", "0", "-c"),
    pingpong("ibv_ud_pingpong", "-g", "0", "-c"),
    perftest("ib_write_bw"), perftest("ib_read_bw", server="a"), perftest("ib_atomic_lat"),
]


def bond_texts(device):
    return [bond_text(name, number, "cadence", device) for number, name in enumerate("ab", 1)]


def run_bond(paceline, dataplane, device, mtu=MTU):
    for i in range(2):
        make_veth(f"pla{i}", f"plb{i}", mtu)
    table = [
        *BOND_PROGRAMS,
        ports_fail(["ibv_rc_pingpong", "-g", "0", "-c", "-s", "65536", "-n", "3000"], 60, "iters in"),
        ports_fail(["ib_write_bw", "-F", "-D", "5"], 60, "BW average"),
        ports_fail(["ib_read_bw", "-F", "-D", "3"], 60, "BW average"),
        ("link states", link_states),
    ]
    return run_services(paceline, dataplane, bond_texts(device), table)


def both_ports_carry(wire):
    """Packets take the ports in turn: if one did not carry its half, that half would be sent again."""
    for host in (wire.a, wire.b):
        nic = nic_status(host)
        again = nic["counters"]["retransmitted_packets"]
        if nic["ports_up"] != [True, True] or again > 100:
            raise Failed(f"ports {nic['ports_up']}, {again} packets sent again")
    return f"{again} packets sent again"


def bond_memif(paceline, dataplane):
    def device(i, interface):
        role = "server" if interface[2] == "a" else "client"
        return (f'device = "net_memif{i},role={role},bsize=4608,rsize=10,'
                f'socket=/paceline-bond-{os.getpid()}-{i},socket-abstract=yes"')
    return run_services(paceline, dataplane, bond_texts(device),
                        [*BOND_PROGRAMS, ("both ports carry", both_ports_carry)])


def bond(paceline, dataplane):
    return run_bond(paceline, dataplane,
                    lambda i, interface: f'device = "net_af_packet{i},iface={interface},{AF_PACKET}"')


def bond_xdp(paceline, dataplane):
    if os.geteuid() != 0:
        skip("af_xdp needs root")
    return run_bond(paceline, dataplane,
                    lambda i, interface: f'device = "net_af_xdp{i},iface={interface},force_copy=1"\nmtu = 2048',
                    XDP_MTU)


def veth(paceline, dataplane):
    make_veth("pla", "plb")
    return run_on(paceline, dataplane,
                  lambda name: lambda _: f"net_af_packet0,iface=pl{name},{AF_PACKET}", "dcqcn", PROGRAMS)


CASES = {"memif": memif, "bond_memif": bond_memif, "veth": veth, "bond": bond, "bond_xdp": bond_xdp}


def main():
    arguments = [word for word in sys.argv[1:] if word != INSIDE]
    if len(arguments) != 3 or arguments[0] not in CASES:
        sys.exit(__doc__)
    case, paceline, dataplane = arguments
    need("ibv_devinfo", "ibv_rc_pingpong", "ibv_ud_pingpong", "ibv_srq_pingpong", "ib_write_bw",
         "ib_send_lat", "ib_read_bw", "ib_atomic_lat", "rping", "ucmatose", "udaddy", "ip", "unshare")
    if "memif" not in case and INSIDE not in sys.argv:
        flags = ["-n"] if os.geteuid() == 0 else ["-rn"]
        if subprocess.run(["unshare", *flags, "true"], capture_output=True, check=False).returncode != 0:
            skip("no network namespace may be made here")
        os.execvp("unshare", ["unshare", *flags, sys.executable, "-B", os.path.abspath(__file__), INSIDE,
                              *arguments])
    failed = CASES[case](paceline, dataplane)
    say(f"{case}: {'all passed' if failed == 0 else f'{failed} failed'}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
