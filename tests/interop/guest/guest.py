"""A network namespace with a tap, the Soft-RoCE guest on it, and our engine beside; both spoken to in
lines (tests/interop/peer/commands.h). Used by rxe_test.py.
"""

import os
import pathlib
import queue
import subprocess
import tempfile
import threading
import time

import build_guest

HERE = pathlib.Path(__file__).resolve().parent
BOOT_SECONDS = 180  # it takes 6 to 20, on a busy machine a minute
ANSWER_SECONDS = 30
TAP = "guest0"
OUR_MAC = "02:00:5e:00:00:01"
THEIR_MAC = "02:00:5e:00:00:02"
OURS = {4: ("10.77.0.1", 24), 6: ("fd77::1", 64)}
THEIRS = {4: ("10.77.0.2", 24), 6: ("fd77::2", 64)}
KERNEL_HERE = "10.77.0.3/24"  # of this machine's kernel in the namespace: TCP to the guest
LINK_MTU = 4500


class PeerFailure(Exception):
    """A command was answered with an error, or not at all."""


def run(*words, check=True):
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class Lines:
    """The other end of commands.h: a process's standard input and output."""

    def __init__(self, name, words, errors=None):
        self.name = name
        # It must not outlive this test, even one that is killed.
        words = ("setpriv", "--pdeathsig", "KILL", *words)
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
        self.lines = queue.Queue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line.decode(errors="replace").strip())
        self.lines.put(None)

    def line(self, seconds=ANSWER_SECONDS):
        try:
            line = self.lines.get(timeout=seconds)
        except queue.Empty:
            raise PeerFailure(f"{self.name}: no answer for {seconds} s") from None
        if line is None:
            raise PeerFailure(f"{self.name}: ended")
        return line

    def answers(self, commands):
        """Says all of them, then reads the answers: for each what follows "ok", and the lines before."""
        for command in commands:
            self.process.stdin.write(command.encode() + b"\n")
        self.process.stdin.flush()
        results = []
        problem = None
        for command in commands:
            before = []
            while True:
                line = self.line()
                if line.split(" ", 1)[0] in ("ok", "error"):
                    break
                before.append(line)
            if line.startswith("error"):
                problem = problem or f"{self.name}: {command}: {line}"
            results.append((line[3:], before))
        if problem:
            raise PeerFailure(problem)
        return results

    def say(self, command):
        return self.answers([command])[0][0]

    def wait_ready(self, seconds):
        while self.line(seconds) != "ready":
            pass

    def stop(self):
        """Ends it; its exit status."""
        try:
            self.process.stdin.close()
            self.process.wait(timeout=10)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        self.reader.join(timeout=10)
        self.process.stdout.close()
        return self.process.returncode


class Network:
    def __init__(self):
        self.name = "pcl-rxe-%d" % os.getpid()

    def make(self):
        inside = ("ip", "-n", self.name)
        run("ip", "netns", "add", self.name)
        run(*inside, "tuntap", "add", TAP, "mode", "tap")
        run(*inside, "link", "set", TAP, "addrgenmode", "none", check=False)
        run(*inside, "link", "set", TAP, "mtu", str(LINK_MTU), "up")
        run(*inside, "link", "set", "lo", "up")
        run(*inside, "addr", "add", KERNEL_HERE, "dev", TAP)

    def remove(self):
        run("ip", "netns", "del", self.name, check=False)

    def words(self, *words):
        return ("ip", "netns", "exec", self.name, *map(str, words))


class Guest(Lines):
    def __init__(self, network, cache, peer):
        image, files, self.kernel = build_guest.build(cache, peer, HERE / "init")
        self.folder = tempfile.TemporaryDirectory(prefix="paceline-rxe-")
        self.console = pathlib.Path(self.folder.name) / "console"
        said = ["console=ttyS0", "quiet", "mitigations=off", "nokaslr", "panic=-1", f"mtu={LINK_MTU}"]
        said += [f"addr{family}={ip}/{bits}" for family, (ip, bits) in THEIRS.items()]
        started = time.monotonic()
        super().__init__("guest", network.words(
            build_guest.program("qemu-system-x86_64"), "-nodefaults", "-no-reboot", "-display", "none",
            "-machine", "q35", "-accel", "tcg", "-cpu", "max", "-m", "512", "-kernel", image,
            "-initrd", files, "-append", " ".join(said),
            "-netdev", f"tap,id=net,ifname={TAP},script=no,downscript=no",
            "-device", f"virtio-net-pci,netdev=net,mac={THEIR_MAC},romfile=",
            "-serial", f"file:{self.console}",
            "-chardev", "stdio,id=words,signal=off", "-serial", "chardev:words"))
        try:
            self.wait_ready(BOOT_SECONDS)
        except BaseException:
            print(self.log())
            self.stop()
            raise
        self.boot_seconds = time.monotonic() - started

    def log(self):
        return self.console.read_text(errors="replace") if self.console.exists() else ""

    def stop(self):
        # Nothing in it is worth an orderly end.
        self.process.kill()
        status = super().stop()
        if status not in (0, -9):
            print(self.log())
        self.folder.cleanup()
        return status


class Ours(Lines):
    """Our engine with one address."""

    def __init__(self, network, program, family, seed=1):
        ip, bits = OURS[family]
        super().__init__("ours", network.words(program, TAP, OUR_MAC, f"{ip}/{bits}", seed))
        self.wait_ready(ANSWER_SECONDS)
