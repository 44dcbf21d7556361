#!/usr/bin/env python3
"""Two engines in two processes over a DPDK device between them, every byte checked.

usage: devices_test.py FOLDER CASE     exit: 0 good, 1 a check failed, 77 skipped (it says why)
FOLDER has port_peer and host_peer.

Each case has a network namespace of its own, which ends with the last process in it: nothing is left
behind, whatever happens. Without root the namespace comes with a user namespace, where that is allowed.
"""

import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SKIPPED = 77
INSIDE = "--inside"
PATIENCE = 50  # seconds for one conversation; it takes one or two


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
    return done.stdout


class Peer:
    """One port_peer. What it prints is kept line by line."""

    def __init__(self, folder, index, device, **options):
        """On a device; or as a host, where `device` is the path of a testbed file."""
        host = device.endswith(".toml")
        command = [os.path.join(folder, "host_peer" if host else "port_peer"), "--index", str(index),
                   "--testbed" if host else "--device", device]
        for name, value in options.items():
            command += [f"--{name}", str(value)]
        self.name = f"peer {index} on {device}"
        self.lines = []
        self.rest = b""
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)

    def await_line(self, wanted, seconds=PATIENCE):
        """True when the line comes in time; False when the process ends before."""
        end = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while wanted not in self.lines:
                if not selector.select(max(0.0, end - time.monotonic())):
                    raise RuntimeError(f"{self.name}: no \"{wanted}\" within {seconds} s; {self.lines}")
                chunk = os.read(self.process.stdout.fileno(), 65536)
                if not chunk:
                    return False
                *lines, self.rest = (self.rest + chunk).split(b"\n")
                self.lines += [line.decode(errors="replace") for line in lines]
        return True

    def stop(self):
        """Ends it in good order; its exit code and what it counted."""
        out, err = self.process.communicate(b"stop\n", timeout=PATIENCE)
        self.lines += (self.rest + out).decode(errors="replace").splitlines()
        self.errors = err.decode(errors="replace")
        facts = {}
        for line in self.lines:
            key, _, value = line.partition(" ")
            facts[key] = int(value) if value.isdigit() else value
        return self.process.returncode, facts

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


class Case:
    def __init__(self, program, folder):
        self.program = program  # the folder of the peers
        self.folder = folder    # for what a case writes
        self.peers = []

    def start(self, devices, skip_words=(), together=False, **options):
        """Starts the peers in this order; `together`: none talks for long before all are there. A device that
        the machine cannot offer skips the case."""
        for index, device in enumerate(devices):
            peer = Peer(self.program, index, device, **options)
            self.peers.append(peer)
            if peer.await_line("ready"):
                if together:
                    # Its engine knows of stops: no timer runs meanwhile.
                    peer.process.send_signal(signal.SIGSTOP)
                continue
            _, err = peer.process.communicate(timeout=PATIENCE)
            text = err.decode(errors="replace").strip()
            if peer.process.returncode == 2 and any(word in text for word in skip_words):
                skip(text.splitlines()[-1])
            raise RuntimeError(f"{peer.name} does not start ({peer.process.returncode}): {text}")
        for peer in self.peers:
            peer.process.send_signal(signal.SIGCONT)

    def converse(self):
        """To the end; checks both verdicts and returns what each counted."""
        for peer in self.peers:
            if not peer.await_line("done"):
                raise RuntimeError(f"{peer.name} ended: {peer.stop()}")
        results = []
        for peer in self.peers:
            code, facts = peer.stop()
            print(peer.name, facts)
            if code != 0 or facts.get("verdict") != "verified":
                raise RuntimeError(f"{peer.name}: exit {code}, {facts}\n{peer.errors}")
            results.append(facts)
        return results

    def expect(self, what, condition):
        if not condition:
            raise RuntimeError(f"expected: {what}")

    def end(self):
        for peer in self.peers:
            peer.end()

    # --- helpers ---

    def veth(self, mtu):
        try:
            run("ip", "link", "add", "pl0", "mtu", str(mtu), "type", "veth", "peer", "name", "pl1", "mtu",
                str(mtu))
        except RuntimeError as error:
            skip(str(error))
        for name in ("pl0", "pl1"):
            self.silence(name)
            run("ip", "link", "set", name, "up")

    @staticmethod
    def silence(name):
        """No neighbour discovery of the kernel's own on this link, where that can be had."""
        try:
            with open(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6", "w", encoding="ascii") as file:
                file.write("1")
        except OSError:
            pass

    # --- the cases ---

    @staticmethod
    def memif_devices(size=4608):
        common = f"bsize={size},rsize=10,socket=/paceline,socket-abstract=yes"
        return [f"net_memif0,role=server,{common}", f"net_memif0,role=client,{common}"]

    def memif(self):
        self.start(self.memif_devices())
        for facts in self.converse():
            self.expect("one piece a frame", facts["rx_multi_segment"] == 0)
            self.expect("the port's own memory", facts["rx_moved"] == 0)

    def memif_ipv6_mtu_1024(self):
        self.start(self.memif_devices(), mtu=1024, ipv6=1)
        self.converse()

    def sizes_are_checked(self):
        """What a driver would cut short or drop in silence is refused, and the message says what to do."""
        self.veth(1500)
        for device, *words in (
                ("net_memif0,role=server,socket=/paceline,socket-abstract=yes", "bsize = 2048", "bsize=4202"),
                ("net_af_packet0,iface=pl0", "framesz = 2048", "framesz=4234"),
                (f"net_af_packet0,iface=pl0,{self.AF_PACKET}", "pl0", "1500", "4180")):
            peer = Peer(self.program, 0, device)
            self.peers.append(peer)
            self.expect("a refusal", not peer.await_line("ready"))
            _, err = peer.process.communicate(timeout=PATIENCE)
            print(err.decode().strip())
            for word in words:
                self.expect(f"{word} in {err}", word.encode() in err)
            self.expect("exit 2", peer.process.returncode == 2)

    def memif_few_packets(self):
        """Memory runs out again and again; it only gets slower."""
        self.start(self.memif_devices(), packets=2300)
        self.converse()

    def memif_killed(self):
        """A peer dies in the middle of everything: the other, in either role, sees the link go and goes on."""
        devices = self.memif_devices()
        for victim in (1, 0):
            self.start(devices, mbps=100)  # takes half a second and more
            self.expect("a beginning", self.peers[1 - victim].await_line("begun"))
            self.peers[victim].process.send_signal(signal.SIGKILL)
            self.peers[victim].process.wait()
            survivor = self.peers[1 - victim]
            time.sleep(0.1)
            code, facts = survivor.stop()
            print(survivor.name, code, facts)
            self.expect("the survivor ends in good order", code == 1)
            self.expect("it was in the middle", facts["rx_packets"] > 0)
            self.expect("the link is down", facts["link_up"] == 0)
            self.expect("all packets are home", facts["held"] == 0)
            self.peers = []

    def memif_senders_killed(self):
        """A receiver that does nothing but poll, and sender after sender that is killed while it sends. The
        driver alone crashes in one of some thirty deaths: it unmaps what is being read."""
        server, client = self.memif_devices()
        sink = Peer(self.program, 0, server, only="sink")
        self.peers.append(sink)
        self.expect("a receiver", sink.await_line("ready"))
        for _ in range(8):
            source = Peer(self.program, 1, client, only="source")
            self.peers.append(source)
            self.expect("a sender", source.await_line("ready"))
            time.sleep(0.25)
            source.end()
            self.peers.remove(source)
        time.sleep(0.05)
        code, facts = sink.stop()
        print(sink.name, code, facts)
        self.expect("it lives", code == 0)
        self.expect("it received", facts["rx_packets"] > 100)

    def memif_comes_back(self):
        """A peer that is gone, and another in its place: both start at the same packet number, so that the
        queue pair of the one that stayed never knows."""
        server, client = self.memif_devices()
        self.start([server])
        first = Peer(self.program, 1, client, only="sink")  # answers nothing
        self.peers.append(first)
        self.expect("the first", first.await_line("ready"))
        time.sleep(0.1)
        first.end()
        self.peers.remove(first)
        self.peers.append(Peer(self.program, 1, client))
        self.converse()

    # A frame of MTU 4096 wants more than the driver's default of 2048 bytes; blocks are whole pages and
    # hold whole frames.
    AF_PACKET = "blocksz=20480,framesz=5120,framecnt=512"

    def af_packet(self):
        self.veth(9000)
        self.start([f"net_af_packet{i},iface=pl{i},{self.AF_PACKET}" for i in range(2)],
                   skip_words=("Operation not permitted",), mbps=1000)
        self.converse()

    def tap(self):
        """One end makes the interface, the other sits on it as anybody on the machine might."""
        self.start(["net_tap0,iface=pl0"], mtu=1024, mbps=500, pause="both",
                   skip_words=("cannot be made", "/dev/net/tun"))
        # The driver lets pause frames be asked for and switched off, no more.
        self.expect("a refusal that says what is in force",
                    any(line.startswith("note ") and line.endswith(
                        'pause = "both" was not taken (Operation not supported): "off" is in force')
                        for line in self.peers[0].lines))
        self.expect("what is in force",
                    any(line.startswith("is ") and line.endswith("pause frames neither heeded nor sent")
                        for line in self.peers[0].lines))
        self.silence("pl0")
        run("ip", "link", "set", "pl0", "mtu", "1500", "up")
        other = Peer(self.program, 1, "net_af_packet0,iface=pl0", mtu=1024, mbps=500)
        self.peers.append(other)
        if not other.await_line("ready"):
            raise RuntimeError(other.process.communicate(timeout=PATIENCE))
        self.converse()

    # --- hosts: addresses of their own, and nobody knows a MAC address ---

    def testbed(self, index, device, host, rate="2Gb/s"):
        path = os.path.join(self.folder, f"host{index}.toml")
        with open(path, "w", encoding="ascii") as file:
            file.write(f"""
[[port]]
name = "host{index}"
device = "{device}"
rate = "{rate}"
[port.host]
addresses = ["10.0.0.{index + 1}/24", "fd00::{index + 1}/64"]
{host}
""")
        return path

    def hosts(self, devices, ipv6, host, path_mtu, skip_words=(), **options):
        self.start([self.testbed(i, device, host) for i, device in enumerate(devices)],
                   skip_words=skip_words, together=True, ipv6=int(ipv6), **options)
        results = self.converse()
        asked, told = ("nd_solicitations", "nd_answers") if ipv6 else ("arp_requests", "arp_answers")
        # Both begin to talk at about the same time: one asks at least, and who is asked knows whom he
        # answers. Packets waited, and none was lost for it.
        self.expect("somebody asked", sum(r[asked] for r in results) >= 1)
        self.expect("whoever was asked answered", sum(r[told] for r in results) >= 1)
        self.expect("somebody waited for an answer", sum(r["parked"] for r in results) >= 1)
        for facts in results:
            self.expect("nothing dropped on the way out", facts["dropped"] == 0)
            self.expect("frames of the right VLAN", facts["other_vlan"] == 0 and facts["untagged"] == 0)
            self.expect(f"path MTU {path_mtu}", facts["path_mtu"] == path_mtu)
        return results

    # --- what goes away, and comes back ---

    def af_packet_down_up(self):
        """The interface goes down in the middle of everything, and comes up again."""
        self.veth(9000)
        self.start([f"net_af_packet{i},iface=pl{i},{self.AF_PACKET}" for i in range(2)],
                   skip_words=("Operation not permitted",), mbps=100)
        self.expect("a beginning", self.peers[0].await_line("begun"))
        run("ip", "link", "set", "pl0", "down")
        time.sleep(0.5)
        run("ip", "link", "set", "pl0", "up")
        results = self.converse()
        self.expect("what was lost was sent again", any(r["timeouts"] + r["retransmitted_bytes"] for r in results))

    def tap_removed(self):
        """The interface is gone for good: nobody crashes, and who is told to stop stops with everything at
        home."""
        self.start(["net_tap0,iface=pl0"], mtu=1024, mbps=100, skip_words=("cannot be made", "/dev/net/tun"))
        self.silence("pl0")
        run("ip", "link", "set", "pl0", "mtu", "1500", "up")
        other = Peer(self.program, 1, "net_af_packet0,iface=pl0", mtu=1024, mbps=100)
        self.peers.append(other)
        if not other.await_line("ready"):
            raise RuntimeError(other.process.communicate(timeout=PATIENCE))
        self.expect("a beginning", self.peers[0].await_line("begun"))
        run("ip", "link", "del", "pl0")
        time.sleep(0.5)
        for peer in self.peers:
            code, facts = peer.stop()
            print(peer.name, code, facts)
            self.expect("it ends in good order, unfinished", code == 1 and "verdict" in facts)
            self.expect("all packets are home", facts["held"] == 0)

    def memif_restarted(self):
        """A peer is killed in the middle, and one like it started in its place: the link is back, its frames
        come in, and the queue pair that lost its peer holds nothing up."""
        devices = self.memif_devices()
        self.start(devices, mbps=100)
        self.expect("a beginning", self.peers[0].await_line("begun"))
        self.peers[1].process.send_signal(signal.SIGKILL)
        self.peers[1].process.wait()
        time.sleep(0.3)
        source = Peer(self.program, 1, devices[1], only="source")
        self.peers[1] = source
        self.expect("another peer", source.await_line("ready"))
        time.sleep(0.3)
        code, facts = self.peers[0].stop()
        print(self.peers[0].name, code, facts)
        self.expect("it ends in good order", code == 1)
        self.expect("the link is back", facts["link_up"] == 1)
        # The new one says nothing of sense: each of its frames is counted for what it is.
        self.expect("its frames are counted", 0 < facts["rx_other"] == facts["malformed"])
        self.expect("all packets are home", facts["held"] == 0)

    def hosts_stopped(self):
        """A host is stopped for a third of a second: it counts the stop, and goes on. (That it repeats nothing for
        it, host_stop_test.cc shows; here the other host may have been stopped by others.)"""
        self.veth(9000)
        devices = [f"net_af_packet{i},iface=pl{i},{self.AF_PACKET}" for i in range(2)]
        self.start([self.testbed(i, device, "", rate="100Mb/s") for i, device in enumerate(devices)],
                   skip_words=("Operation not permitted",))
        stopped = self.peers[1]
        self.expect("a beginning", stopped.await_line("begun"))
        stopped.process.send_signal(signal.SIGSTOP)
        time.sleep(0.33)
        stopped.process.send_signal(signal.SIGCONT)
        facts = self.converse()[1]
        self.expect("a stall of that length", facts["stalls"] >= 1 and facts["longest_us"] >= 300_000)
        self.expect("its engine was told", facts["host_stops"] >= 1)

    def hosts_memif(self):
        self.hosts(self.memif_devices(), False, "", 4096, idle="sleep")

    def hosts_memif_ipv6_vlan(self):
        self.hosts(self.memif_devices(), True, "vlan = 42\nip_mtu = 1500", 1024)

    def hosts_af_packet_vlan(self):
        """The kernel takes tags out of frames on their way to a packet socket, the driver puts them back."""
        self.veth(9000)
        self.hosts([f"net_af_packet{i},iface=pl{i},{self.AF_PACKET}" for i in range(2)], False,
                   "vlan = 7", 4096, skip_words=("Operation not permitted",))

    def hosts_af_packet_ipv6(self):
        self.veth(9000)
        self.hosts([f"net_af_packet{i},iface=pl{i},{self.AF_PACKET}" for i in range(2)], True,
                   "ip_mtu = 2200", 2048, skip_words=("Operation not permitted",))

    def af_xdp(self):
        self.veth(2200)
        self.start([f"net_af_xdp{i},iface=pl{i},force_copy=1" for i in range(2)],
                   skip_words=("cannot be made", "receive queue 0"), mtu=2048, mbps=1000)
        self.converse()


def enter_namespace(file):
    """Starts the test in `file` anew, with the same arguments, in a network namespace of its own."""
    if sys.argv[-1] == INSIDE:
        return
    for tool in ("ip", "unshare"):
        if shutil.which(tool) is None:
            skip(f"no {tool} (packages iproute2 and util-linux)")
    flags = ["--net"] if os.geteuid() == 0 else ["--net", "--map-root-user"]
    allowed = subprocess.run(["unshare", *flags, "true"], capture_output=True, text=True, check=False)
    if allowed.returncode != 0:
        skip(f"no network namespace: {allowed.stderr.strip()}")
    os.execvp("unshare", ["unshare", *flags, sys.executable, "-B", file, *sys.argv[1:], INSIDE])


def main():
    program, name = sys.argv[1:3]
    enter_namespace(__file__)
    run("ip", "link", "set", "lo", "up")
    with tempfile.TemporaryDirectory(prefix="paceline-devices-") as folder:
        case = Case(program, folder)
        try:
            getattr(case, name)()
        except RuntimeError as error:
            print(f"failed: {error}")
            sys.exit(1)
        finally:
            case.end()


if __name__ == "__main__":
    main()
