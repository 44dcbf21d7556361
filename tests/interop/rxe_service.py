"""Unmodified programs at both ends: here under `paceline exec`, on a service whose port is the guest's tap;
there on Soft-RoCE.
"""

import pathlib
import subprocess
import tempfile
import time

from guest import KERNEL_HERE, OURS, TAP, THEIRS
from rxe_ends import Case, End, world
from rxe_programs import PINGPONG, Programs

TESTBED = """
[[port]]
name = "ours"
device = "net_af_packet0,iface=%s,blocksz=20480,framesz=5120,framecnt=512"
rate = "1Gb/s"
base_rtt = "1ms"

[port.host]
addresses = ["%s"]

[transport]
reliability = "selective"

[cc]
algorithm = "cadence"
"""


class ServiceCase(Case):
    """A service of its own for each test."""

    def setUp(self):
        super().setUp()
        if not world.service:
            self.skipTest("no service was given (--service)")
        self.paceline, dataplane = world.service
        self.theirs = End(world.guest, THEIRS[4][0])
        folder = tempfile.TemporaryDirectory(prefix="paceline-rxe-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.socket = self.folder / "socket"
        file = self.folder / "testbed.toml"
        addresses = '", "'.join(f"{ip}/{bits}" for ip, bits in OURS.values())
        file.write_text(TESTBED % (TAP, addresses))
        log = (self.folder / "log").open("w")
        self.addCleanup(log.close)
        self.process = self.start(dataplane, "--testbed", file, "--socket", self.socket, "--foreground",
                                  output=log)
        self.addCleanup(self.end, self.process)
        limit = time.monotonic() + 30
        while not self.socket.exists():
            text = self.log()
            if "built without DPDK" in text:
                self.skipTest("the service was built without DPDK")
            if self.process.poll() is not None or time.monotonic() > limit:
                self.fail(f"no service: {text}")
            time.sleep(0.02)

    @staticmethod
    def start(*words, output):
        """In the namespace of the tap. It must not outlive this test."""
        return subprocess.Popen(world.network.words("setpriv", "--pdeathsig", "KILL", *words),
                                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)

    @staticmethod
    def end(process):
        process.kill()
        process.wait()

    def program(self, *words):
        """An unmodified one of this machine, on our NIC."""
        process = self.start(self.paceline, "exec", "--socket", self.socket, "--", *words,
                             output=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(self.end, process)
        return process

    def await_true(self, what, ready):
        limit = time.monotonic() + 60
        while not ready():
            self.assertLess(time.monotonic(), limit, f"not {what}\n{self.there()}\n{self.log()}")
            time.sleep(0.05)

    def begin_there(self, command):
        self.theirs.say(f"shell ({command}; echo ended $?) >/tmp/out 2>&1 &")

    def end_there(self):
        self.await_true("at the end there", lambda: "ended " in self.there())
        return self.there()

    def there(self):
        """What the program of the guest printed."""
        return "\n".join(self.theirs.lines.answers(["shell cat /tmp/out"])[0][1])

    def log(self):
        return (self.folder / "log").read_text()


class Service(ServiceCase):
    gid_index = Programs.gid_index

    def setUp(self):
        super().setUp()
        self.addCleanup(self.theirs.say, f"shell killall -9 {PINGPONG} 2>/dev/null; true")

    def check(self, text, size, count):
        self.assertIn(f"{count} iters in", text)
        self.assertIn(f"{2 * size * count} bytes in", text)
        self.assertNotIn("invalid data", text)

    def pingpong_listens_there(self):
        # 4853 is port 18515 in the tables' digits, 0A a socket that listens.
        command = "shell grep -hE ':4853 [0-9A-F]+:0000 0A' /proc/net/tcp /proc/net/tcp6; true"
        return self.theirs.lines.answers([command])[0][1]

    def test_ibv_rc_pingpong(self):
        count = 100
        for family, role, size, mtu in ((4, "client", 4096, 1024), (4, "server", 65536, 4096),
                                        (6, "client", 65536, 4096), (6, "server", 1, 1024)):
            with self.subTest(family=family, role=role, size=size):
                # -c: both look at every byte.
                common = f"-m {mtu} -s {size} -n {count} -r 64 -c"
                there = f"{PINGPONG} -g {self.gid_index(family)} {common}"
                here = (PINGPONG, "-g", "0" if family == 4 else "1", *common.split())
                if role == "client":
                    self.begin_there(there)
                    self.await_true("listening there", self.pingpong_listens_there)
                    ours = self.program(*here, THEIRS[4][0])
                else:
                    ours = self.program(*here)
                    time.sleep(1.5)
                    self.begin_there(f"{there} {KERNEL_HERE.split('/')[0]}")
                said = ours.communicate(timeout=60)[0].decode()
                printed = self.end_there()
                self.assertEqual(ours.returncode, 0, said + printed)
                self.check(said, size, count)
                self.check(printed, size, count)
                self.assertIsNone(self.process.poll(), self.log())
