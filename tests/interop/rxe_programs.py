"""Unmodified programs in the guest, and our engine at the other end of their TCP side channel."""

from guest import KERNEL_HERE, THEIRS
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
