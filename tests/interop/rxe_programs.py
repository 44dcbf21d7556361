"""Unmodified programs in the guest, and our engine at the other end of their TCP side channel."""

from guest import KERNEL_HERE, PeerFailure, THEIRS
from rxe_ends import Case

PINGPONG = "ibv_rc_pingpong"


class Programs(Case):
    def gid_index(self, family):
        """Of the guest's address in its GID table."""
        ip = THEIRS[family][0]
        wanted = f"::ffff:{ip}" if family == 4 else ip
        for entry in self.theirs.say("address").split():
            index, gid = entry.split("=")
            if gid == wanted:
                return index
        self.fail(f"no GID {wanted}")
        return None

    def test_ibv_rc_pingpong(self):
        count = 100
        for family in (4, 6):
            for role in ("client", "server"):
                for size, mtu in ((4096, 1024), (1, 1024), (65536, 4096)):
                    with self.subTest(family=family, role=role, size=size):
                        self.ends("requester", family)
                        there = f"{PINGPONG} -g {self.gid_index(family)} -m {mtu} -s {size} -n {count} -r 64"
                        if role == "client":
                            self.theirs.say(f"shell {there} >/tmp/out &")
                            received = self.ours.say(f"pingpong {THEIRS[4][0]} {size} {count} {mtu}")
                        else:
                            here = KERNEL_HERE.split("/")[0]
                            # The program does not wait for us to listen.
                            self.theirs.say(f"shell sleep 0.3; {there} {here} >/tmp/out &")
                            received = self.ours.say(f"pingpong listen {size} {count} {mtu}")
                        self.assertEqual(int(received), size * count)
                        self.theirs.say("shell sleep 0.2; wait")
                        _, printed = self.theirs.lines.answers(["shell cat /tmp/out"])[0]
                        text = "\n".join(printed)
                        self.assertIn(f"{count} iters in", text)
                        self.assertIn(f"{2 * size * count} bytes in", text)
                        self.ours.say("whole")

    def test_perftest(self):
        count = 100
        for program, operation in (("ib_write_bw", "write"), ("ib_read_bw", "read")):
            for family, size, mtu in ((4, 65536, 1024), (6, 10000, 4096)):
                for role in ("server", "client"):
                    with self.subTest(program=program, family=family, role=role):
                        self.ends("requester", family)
                        # -F: whatever the processor's clock does.
                        there = f"{program} -F -x {self.gid_index(family)} -m {mtu} -s {size} -n {count} -t 32"
                        if operation == "read":
                            there += " -o 4"
                        if role == "server":
                            self.theirs.say(f"shell {there} >/tmp/out &")
                            where = THEIRS[4][0]
                        else:
                            here = KERNEL_HERE.split("/")[0]
                            self.theirs.say(f"shell sleep 0.3; {there} {here} >/tmp/out &")
                            where = "listen"
                        try:
                            moved = self.ours.say(f"perftest {operation} {where} {size} {count} {mtu}")
                        except PeerFailure:
                            print(self.theirs.lines.answers(["shell cat /tmp/out"])[0][1])
                            raise
                        counted = self.counters()
                        # The server of a WRITE, and the client of a READ, get all bytes; both of us count.
                        receives = (role == "client") == (operation == "write")
                        self.assertEqual(counted.get("rx_data_bytes", 0) if receives else
                                         counted.get("tx_data_bytes", 0), size * count)
                        self.assertEqual(int(moved), size * count if role == "server" else 0)
                        self.theirs.say("shell sleep 0.2")
                        text = "\n".join(self.theirs.lines.answers(["shell cat /tmp/out"])[0][1])
                        self.assertRegex(text, rf"(?m)^out +{size} +{count} ")
                        self.ours.say("whole")
