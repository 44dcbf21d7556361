#!/usr/bin/env python3
"""Connections that begin and end, 64 at a time, while either side is killed at random: at the end nothing is
left in the service, and it lives.

  churn_test.py PACELINE PACELINE-DATAPLANE CHURN_PEER CYCLES [SEED]
"""

import os
import random
import re
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from programs import Failed, Running  # noqa: E402
from rdma_cm_cases import listening, nothing_is_left, wait_until  # noqa: E402
from testbed import PATIENCE, Testbed, end, say  # noqa: E402

ADDRESS, PORT, WIDE = "10.0.0.2", 7471, 64
OF_A_CLIENT = (WIDE, 300)  # cycles, at least and at most
SECONDS_PER_CYCLE = 0.05
ROOM = 16 << 20  # resident bytes that a service may gain after its first tenth: heap that is not given back


class Churn:
    def __init__(self, testbed, peer, seed):
        self.testbed, self.peer, self.draw = testbed, peer, random.Random(seed)
        self.server, self.kills = None, {"server": 0, "client": 0}

    def serve(self):
        self.server = Running(self.testbed, self.testbed.on("h1", [self.peer, "serve", str(PORT)]))
        # Also: the port of one that was killed is free again.
        wait_until(self.testbed, self.server, lambda: "listens" in self.server.text(), "listening")

    def some(self, left):
        """Cycles of one client, who may be killed before it has done with them, as may the server."""
        wanted = min(left, self.draw.randint(*OF_A_CLIENT))
        client = Running(self.testbed, self.testbed.on(
            "h0", [self.peer, "connect", ADDRESS, str(PORT), str(wanted), str(WIDE)]))
        limit = time.monotonic() + (20 + wanted * SECONDS_PER_CYCLE) * PATIENCE
        kill_at = self.draw.randrange(wanted) if self.draw.random() < 0.8 else None
        victim = self.draw.choice(("server", "client"))
        try:
            while client.process.poll() is None:
                if kill_at is not None and done(client) >= kill_at:
                    self.kills[victim] += 1
                    kill_at = None
                    if victim == "client":
                        client.process.kill()
                        client.process.wait()
                        return done(client)
                    self.server.process.kill()
                    self.server.process.wait()
                    self.serve()
                if self.server.process.poll() is not None:
                    raise Failed(f"the server has ended by itself:\n{self.server.text()}")
                if time.monotonic() > limit:
                    raise Failed(f"a client does not end:\n{client.text()[-2000:]}")
                time.sleep(0.002)
            if client.process.returncode != 0 or done(client) != wanted:
                raise Failed(f"a client ended with {client.process.returncode}:\n{client.text()[-2000:]}")
            return wanted
        finally:
            end(client.process)


def done(client):
    counts = re.findall(r"^cycles (\d+)", client.text(), re.MULTILINE)
    return int(counts[-1]) if counts else 0


def descriptors(process):
    return len(os.listdir(f"/proc/{process.pid}/fd"))


def resident(process):
    with open(f"/proc/{process.pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def queue_pairs(testbed):
    return sum(session["queue_pairs"] for session in testbed.status()["sessions"])


def settled(testbed, before):
    """All that sessions had is gone; what is let go on a thread aside may take a moment."""
    limit = time.monotonic() + 20 * PATIENCE
    nothing_is_left(testbed)
    while True:
        left = (len(testbed.status()["sessions"]), queue_pairs(testbed), listening(testbed))
        if left == (0, 0, 0) and descriptors(testbed.process) <= before:
            return
        if time.monotonic() > limit:
            raise Failed(f"left: sessions, queue pairs, listeners {left}; "
                         f"descriptors {descriptors(testbed.process)}, {before} at the start")
        time.sleep(0.05)


def run(testbed, peer, cycles, seed):
    before = descriptors(testbed.process)
    churn = Churn(testbed, peer, seed)
    churn.serve()
    gone, warm = 0, None
    try:
        while gone < cycles:
            gone += churn.some(cycles - gone)
            if not testbed.alive():
                raise Failed(f"the service has ended:\n{testbed.log_text()}")
            if warm is None and gone * 10 >= cycles:
                warm = resident(testbed.process)
    finally:
        end(churn.server.process)
    settled(testbed, before)
    gained = resident(testbed.process) - warm
    told = f"{gone} cycles, {churn.kills} killed, {gained >> 10} KiB gained after the first tenth"
    if gained > ROOM:
        raise Failed(told)
    return told


def main():
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    paceline, dataplane, peer, cycles = sys.argv[1:5]
    seed = int(sys.argv[5]) if len(sys.argv) > 5 else random.randrange(1 << 32)
    say(f"seed {seed}")
    with Testbed(paceline, dataplane) as testbed:
        try:
            say(run(testbed, peer, int(cycles), seed))
        except Failed as error:
            say(f"FAILED, seed {seed}: {error}\n{testbed.log_text()}")
            sys.exit(1)


if __name__ == "__main__":
    main()
