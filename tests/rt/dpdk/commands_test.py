#!/usr/bin/env python3
"""`paceline replay`, `capture` and `join` on real devices.

usage: commands_test.py PACELINE PORT_PEER CASE     exit: 0 good, 1 a check failed, 77 skipped
"""

import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "wire"))
import devices_test  # noqa: E402
from guesses import WITHOUT_GUESSING  # noqa: E402

GOLDEN = pathlib.Path(__file__).parents[2] / "wire" / "golden"


def pcap_frames(path):
    data = path.read_bytes()
    frames, at = [], 24
    while at < len(data):
        size = struct.unpack_from("<I", data, at + 8)[0]
        frames.append(data[at + 16:at + 16 + size])
        at += 16 + size
    return frames


def pcapng_frames(path):
    """(seconds, frame) of every enhanced packet block; our files are little-endian, in nanoseconds."""
    data = path.read_bytes()
    frames, at = [], 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == 6:
            high, low, size = struct.unpack_from("<III", data, at + 12)
            frames.append(((high << 32 | low) / 1e9, data[at + 28:at + 28 + size]))
        at += length
    return frames


def padded(frames):
    """A device fills frames up to 60 bytes."""
    return [frame + bytes(max(0, 60 - len(frame))) for frame in frames]


class Commands:
    def __init__(self, paceline, port_peer):
        self.paceline = paceline
        self.port_peer = port_peer
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="paceline-commands-"))
        self.case = devices_test.Case(os.path.dirname(port_peer), str(self.folder))
        self.running = []

    def end(self):
        self.case.end()
        for process in self.running:
            if process.poll() is None:
                process.kill()
            process.wait()
        shutil.rmtree(self.folder)

    def testbed(self, name, *devices, mtu=4096):
        text = 'schema = 1\n[eal]\nmemory = "400MiB"\n'
        for index, device in enumerate(devices):
            text += (f'[[port]]\nname = "p{index}"\ndevice = "{device}"\nrate = "10Gb/s"\n'
                     f"mtu = {mtu}\npackets = 4096\n")
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def run(self, *arguments, code=0):
        done = subprocess.run([self.paceline, *map(str, arguments)], capture_output=True, text=True,
                              check=False, timeout=60)
        if done.returncode != code:
            raise RuntimeError(f"paceline {arguments}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def expect(self, what, condition):
        self.case.expect(what, condition)

    def files(self):
        """What is replayed comes out as it was, of a pcap, and of what was captured of it."""
        for name in ("rc_pingpong", "write_imm", "ud_send"):
            golden = GOLDEN / f"{name}.pcap"
            frames = pcap_frames(golden)
            out = self.folder / "out.pcap"
            bed = self.testbed("a.toml", f"net_pcap0,rx_pcap={golden},tx_pcap={out}")
            text = self.run("replay", golden, "--testbed", bed, "--port", "p0", "--speed", "max",
                            "--loop", 2)
            self.expect(f"the count in {text}", f"{2 * len(frames)} frames" in text)
            self.expect("the frames of the file, twice", pcap_frames(out) == padded(frames) * 2)

            captured = self.folder / "captured.pcapng"
            self.run("capture", "--testbed", bed, "--port", "p0", "-o", captured, "--packets",
                     len(frames))
            seen = [frame for _, frame in pcapng_frames(captured)]
            self.expect("the frames of the device", seen == frames)
            if shutil.which("tshark"):
                decoded = subprocess.run(["tshark", "-r", str(captured), "-Y", "infiniband.bth"],
                                         capture_output=True, text=True, check=True).stdout
                self.expect("tshark sees RoCE", len(decoded.splitlines()) == len(frames))
            self.run("replay", captured, "--testbed", bed, "--port", "p0", "--count", len(frames) - 1)
            self.expect("the capture, but for the last", pcap_frames(out) == padded(frames)[:-1])

    def mistakes(self):
        bed = self.testbed("a.toml", f"net_pcap0,rx_pcap={GOLDEN}/read.pcap,tx_pcap={self.folder}/o")
        broken = self.folder / "broken.pcap"
        broken.write_bytes((GOLDEN / "read.pcap").read_bytes()[:-3])
        for words, arguments in (
                (["broken.pcap: byte", "ends inside a frame"], [broken, "--testbed", bed, "--port", "p0"]),
                (["--port x", "p0"], [GOLDEN / "read.pcap", "--testbed", bed, "--port", "x"]),
                (["--speed fast", "original"],
                 [GOLDEN / "read.pcap", "--testbed", bed, "--port", "p0", "--speed", "fast"]),
                (["none.toml"], [GOLDEN / "read.pcap", "--testbed", self.folder / "none.toml", "--port", "p0"])):
            text = self.run("replay", *arguments, code=2)
            for word in words:
                self.expect(f"{word} in {text}", word in text)

    def join(self):
        """Two engines in two processes, and the emulated switch in a third between their memif devices:
        packets are lost, late, doubled and damaged, a link fails ten times a second, and every byte is right."""
        devices = [f"net_memif{i},role=server,bsize=4608,rsize=10,socket=/paceline-j{i},socket-abstract=yes"
                   for i in range(2)]
        bed = self.testbed("j.toml", *devices)
        scenario = self.folder / "fabric.toml"
        scenario.write_text("""schema = 1
[fabric]
hosts = 3
rate = "2Gb/s"
delay = "20us"
buffer = "8MB"
loss = 0.002
corrupt = 0.0005
duplicate = 0.001
reorder = 0.001
""" + "".join(f"""[[event]]
at = "{at}ms"
link = "host1"
action = "down"
[[event]]
at = "{at + 1}ms"
link = "host1"
action = "up"
""" for at in range(100, 3000, 100)) + """[workload]
kind = "incast"
fan_in = 2
""")
        captured = self.folder / "host1.pcapng"
        join = subprocess.Popen([self.paceline, "join", str(scenario), "--testbed", bed, "--attach", "0=p0",
                                 "--attach", "1=p1", "--capture", str(captured),
                                 "--capture-packets", "20000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.running.append(join)
        for line in join.stderr:
            if b"joined" in line:
                break
        self.case.start([f"net_memif0,role=client,bsize=4608,rsize=10,socket=/paceline-j{i},"
                         "socket-abstract=yes" for i in range(2)], mbps=500)
        self.case.converse()
        join.send_signal(signal.SIGINT)
        out, err = join.communicate(timeout=30)
        print(out.decode(), err.decode())
        self.expect("a good end", join.returncode == 0)
        text = out.decode()
        self.expect("losses", "link_loss" in text)
        self.both_ways(captured)

    def both_ways(self, captured):
        """A link between two foreign peers: frames of both, what was dropped on it says so, and tshark reads it."""
        if not shutil.which("tshark"):
            print("no tshark: the capture is not decoded")
            return
        rows = subprocess.run(["tshark", "-r", str(captured), *WITHOUT_GUESSING, "-T", "fields",
                               "-e", "frame.packet_flags_direction", "-e", "frame.comment",
                               "-e", "infiniband.bth.opcode", "-e", "frame.time_epoch", "-e", "_ws.malformed"],
                              capture_output=True, text=True, check=True).stdout.splitlines()
        fields = [row.split("\t") for row in rows]
        roce = [f for f in fields if f[2]]
        self.expect(f"thousands of RoCE packets ({len(roce)})", len(roce) > 1000)
        ways = {f[0] for f in roce}
        self.expect(f"both directions ({ways})", len(ways) == 2)
        self.expect("drops are marked", any("dropped" in f[1] or "lost" in f[1] for f in fields))
        bad = [f for f in roce if f[4] and "bit error" not in f[1]]
        self.expect(f"but for bits that the link turned over, nothing is malformed: {bad[:3]}", not bad)
        self.expect("times of today", abs(float(fields[0][3]) - time.time()) < 3600)


def main():
    paceline, port_peer, name = sys.argv[1:4]
    devices_test.enter_namespace(__file__)
    commands = Commands(paceline, port_peer)
    try:
        getattr(commands, name)()
    except RuntimeError as error:
        print(f"failed: {error}")
        sys.exit(1)
    finally:
        commands.end()


if __name__ == "__main__":
    main()
