"""rdma_cm between our service and Linux: unmodified programs at both ends, which find each other by IP address;
the connection managers speak by queue pair 1.
"""

import json
import subprocess

from guest import OURS, TAP, THEIRS, run
from rxe_ends import world
from rxe_service import ServiceCase

PINGS = 10
PROGRAMS = ("rping", "ucmatose", "udaddy")
KERNEL_HERE_V6 = "fd77::3/64"


class Connections(ServiceCase):
    def setUp(self):
        super().setUp()
        # librdmacm resolves IPv6 addresses where this machine's kernel has one.
        words = ("ip", "-n", world.network.name, "addr")
        run(*words, "add", KERNEL_HERE_V6, "dev", TAP, "nodad")
        self.addCleanup(run, *words, "del", KERNEL_HERE_V6, "dev", TAP)
        self.addCleanup(self.theirs.say, f"shell killall -9 {' '.join(PROGRAMS)} 2>/dev/null; true")

    def status(self):
        said = subprocess.run(world.network.words(self.paceline, "testbed", "status", "--json", "--socket",
                                                  self.socket), capture_output=True, check=True, timeout=30)
        return json.loads(said.stdout)

    def end_here(self, program):
        text = program.communicate(timeout=60)[0].decode()
        self.assertIsNone(self.process.poll(), self.log())
        return text

    def await_listener(self):
        self.await_true("listening here", lambda: any(session.get("cm", {}).get("listeners")
                                                      for session in self.status()["sessions"]))

    def await_listener_there(self):
        self.await_true("listening there", lambda: any(
            "LISTEN" in line for line in self.theirs.lines.answers(["shell rdma resource show cm_id"])[0][1]))

    def pair(self, role, server, client, ip):
        """Output here and there. `role`: ours."""
        if role == "server":
            ours = self.program(*server.split())
            self.await_listener()
            self.begin_there(f"{client} {ip}")
        else:
            self.begin_there(server)
            self.await_listener_there()
            ours = self.program(*client.split(), ip)
        here = self.end_here(ours)
        there = self.end_there()
        self.assertEqual(ours.returncode, 0, f"here:\n{here}\nthere:\n{there}")
        return here, there

    def nothing_is_left(self):
        def left():
            return [s["cm"] for s in self.status()["sessions"] if "cm" in s]
        self.await_true("without ids", lambda: not left())

    def test_rping(self):
        for family in (4, 6):
            for role in ("client", "server"):
                with self.subTest(family=family, role=role):
                    ip = (OURS if role == "server" else THEIRS)[family][0]
                    bind = f" -a {ip}" if family == 6 else ""
                    here, there = self.pair(role, f"rping -s -V -v -C {PINGS}{bind}",
                                            f"rping -c -V -v -C {PINGS} -a", ip)
                    for text in (here, there):
                        self.assertEqual(text.count("rdma-ping-"), PINGS, f"here:\n{here}\nthere:\n{there}")
                    # The client leaves; the server is told.
                    self.assertIn("DISCONNECT", here if role == "server" else there)
                    self.nothing_is_left()
        counts = self.status()["management"]
        self.assertGreaterEqual(counts["sent"], 8)
        self.assertEqual((counts["refused"], counts["unknown"], counts["lost"]), (0, 0, 0), counts)

    def in_both_roles(self, server, client):
        for role in ("client", "server"):
            with self.subTest(role=role):
                ip = (OURS if role == "server" else THEIRS)[4][0]
                for text in self.pair(role, server, client, ip):
                    self.assertIn("return status 0", text)

    def test_several_connections(self):
        self.in_both_roles("ucmatose -c 4 -C 10", "ucmatose -c 4 -C 10 -s")

    def test_datagrams(self):
        """Service id resolution, then datagrams."""
        self.in_both_roles("udaddy -c 2 -C 10", "udaddy -c 2 -C 10 -s")

    def test_nobody_listens(self):
        ours = self.program("rping", "-c", "-v", "-C", "1", "-a", THEIRS[4][0])
        self.assertIn("RDMA_CM_EVENT_REJECTED, error 8", self.end_here(ours))
        self.begin_there(f"rping -c -v -C 1 -a {OURS[4][0]}")
        self.assertIn("RDMA_CM_EVENT_REJECTED, error 8", self.end_there())

    def test_server_leaves(self):
        """Killed in the middle; the client is told."""
        forever = "-v -C 100000000"
        for role in ("server", "client"):
            with self.subTest(role=role):
                if role == "server":
                    ours = self.program("rping", "-s", "-v")
                    self.await_listener()
                    self.begin_there(f"rping -c {forever} -a {OURS[4][0]}")
                    self.await_true("pinging there", lambda: "rdma-ping-" in self.there())
                    ours.kill()
                    self.assertRegex(self.end_there(), "DISCONNECT|cq completion failed")
                else:
                    self.begin_there("rping -s -v")
                    self.await_listener_there()
                    ours = self.program("rping", "-c", *forever.split(), "-a", THEIRS[4][0])
                    self.await_true("pinging there", lambda: "rdma-ping-" in self.there())
                    self.theirs.say("shell killall -9 rping")
                    self.assertRegex(self.end_here(ours), "DISCONNECT|cq completion failed")
                self.nothing_is_left()
