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

    def log(self):
        return (self.folder / "log").read_text()


class Service(ServiceCase):
    gid_index = Programs.gid_index

    def check(self, text, size, count):
        self.assertIn(f"{count} iters in", text)
        self.assertIn(f"{2 * size * count} bytes in", text)
        self.assertNotIn("invalid data", text)

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
                    self.theirs.say(f"shell {there} >/tmp/out 2>&1 &")
                    self.theirs.say("shell for i in $(seq 100); do grep -q :4853 /proc/net/tcp /proc/net/tcp6 "
                                    "&& break; sleep 0.1; done")  # it has to listen, on port 18515
                    ours = self.program(*here, THEIRS[4][0])
                else:
                    ours = self.program(*here)
                    time.sleep(1.5)
                    self.theirs.say(f"shell {there} {KERNEL_HERE.split('/')[0]} >/tmp/out 2>&1 &")
                said = ours.communicate(timeout=30)[0].decode()
                self.theirs.say("shell sleep 0.2; wait")
                _, printed = self.theirs.lines.answers(["shell cat /tmp/out"])[0]
                self.assertEqual(ours.returncode, 0, said + "\n".join(printed))
                self.check(said, size, count)
                self.check("\n".join(printed), size, count)
                self.assertIsNone(self.process.poll(), self.log())
