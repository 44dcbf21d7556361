#!/usr/bin/env python3
"""What is left when programs or the service end: nothing, and whoever is concerned is told.

  lifecycle_test.py PACELINE PACELINE-DATAPLANE LIFECYCLE_PEER [CASE | idle]

idle: how much processor time a testbed takes whose programs wait for events; printed, by hand.
"""

import os
import queue
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from testbed import PATIENCE, Testbed, die_with_parent, end, say  # noqa: E402

# Acknowledgements that do not come count after half a minute (lifecycle_peer.c): what a peer learns
# sooner it was told. On an idle machine it takes milliseconds, which is printed.
TOLD = 10 * PATIENCE


class Peer:
    def __init__(self, testbed, nic, *program):
        self.process = subprocess.Popen(testbed.on(nic, program), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                        bufsize=1, env=testbed.environment, start_new_session=True,
                                        preexec_fn=die_with_parent)
        self.name, self.lines, self.said = nic, queue.Queue(), []
        threading.Thread(target=self._read, daemon=True).start()
        self.end = self.expect("ready")[6:]

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line.strip())
        self.lines.put("ended")

    def tell(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def expect(self, *beginnings, within=TOLD):
        """The next line that begins with one of them; others are kept in `said`."""
        limit = time.monotonic() + within
        while True:
            try:
                line = self.lines.get(timeout=max(0.01, limit - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"{self.name} does not say {beginnings}: {self.said}") from None
            self.said.append(line)
            if line.startswith(beginnings):
                return line
            if line == "ended":
                raise AssertionError(f"{self.name} has ended: {self.said}")

    def count(self):
        self.tell("count")
        return int(self.expect("count").split()[1])

    def port(self):
        self.tell("port")
        return self.expect("port").split()[1]

    def goes_on(self):
        """True when more is completed than was."""
        before = self.count()
        limit = time.monotonic() + TOLD
        while time.monotonic() < limit:
            if self.count() > before:
                return True
            time.sleep(0.01)
        return False

    def unharmed(self):
        return not [line for line in self.said if line.startswith(("async", "failed", "channel"))]


def connected(testbed, nics, *program):
    """A peer on each of two NICs, connected with each other."""
    both = []
    try:
        for nic in nics:
            both.append(Peer(testbed, nic, *program))
        for one, other in (both, both[::-1]):
            one.tell(f"connect {other.end}")
            one.expect("connected")
        return both
    except AssertionError:
        for peer in both:
            end(peer.process)
        raise


class Case:
    def __init__(self, testbed, program):
        self.testbed, self.program, self.peers = testbed, program, []

    def __enter__(self):
        self.holdings()  # the first question makes a tenant of who asks
        # What the last case's peers and the question itself had is closed a little later: the least of several.
        self.before = min((self.holdings() for _ in range(5)), key=lambda held: held[2:])
        return self

    def __exit__(self, *_):
        for peer in self.peers:
            end(peer.process)

    def pair(self):
        """Two connected peers: the first writes for ever, the second only waits to receive."""
        both = connected(self.testbed, ("h0", "h1"), self.program)
        self.peers += both
        both[1].tell("receive 4")
        both[0].tell("write 0")
        assert both[0].goes_on(), "nothing is written"
        return both

    def holdings(self):
        status = self.testbed.status()
        # The session that asks is one of them, but not in the list of those that have a NIC.
        tenants = [{name: of["used"] for name, of in tenant.items()
                    if isinstance(of, dict) and "used" in of} for tenant in status["tenants"]]
        descriptors = len(os.listdir(f"/proc/{self.testbed.process.pid}/fd"))
        with open(f"/proc/{self.testbed.process.pid}/maps", encoding="utf-8") as file:
            shared = file.read().count("memfd:")
        return len(status["sessions"]), tenants, descriptors, shared

    def gives_all_back(self):
        limit = time.monotonic() + TOLD
        while time.monotonic() < limit:
            if self.holdings() == self.before:
                return
            time.sleep(0.02)
        raise AssertionError(f"held {self.holdings()}, before {self.before}")


def tells_the_peer(peer, since, *words):
    line = peer.expect(*words)
    say(f"     {peer.name} is told after {(time.monotonic() - since) * 1000:.0f} ms: {line}")


def ends(case, kill):
    """One of a pair ends: the other is told, a second pair goes on, everything is given back."""
    for victim in (0, 1):
        pair, others = case.pair(), case.pair()
        since = time.monotonic()
        kill(pair[victim])
        pair[victim].process.wait(TOLD)
        tells_the_peer(pair[1 - victim], since, "failed", "async")
        assert others[0].goes_on() and others[0].unharmed() and others[1].unharmed(), others[0].said
        for peer in (pair[1 - victim], *others):
            end(peer.process)
        case.gives_all_back()


def exits_uncleaned(case):
    ends(case, lambda peer: peer.tell("leave"))


def killed(case):
    ends(case, lambda peer: peer.process.kill())


def forks(case):
    writer, waiter = case.pair()
    for how in ("exit", "close"):
        for peer in (writer, waiter):
            peer.tell(f"fork {how}")
            said = peer.expect("forked")
            assert said == "forked 0", said
        assert writer.goes_on() and writer.unharmed() and waiter.unharmed(), writer.said
    for peer in (writer, waiter):
        end(peer.process)
    case.gives_all_back()


def stopped(case):
    """A program that does not run for 3 s is not gone: its memory is written, nobody is told anything."""
    (writer, waiter), others = case.pair(), case.pair()
    waiter.process.send_signal(signal.SIGSTOP)
    limit = time.monotonic() + 3
    while time.monotonic() < limit:
        assert writer.goes_on() and others[0].goes_on()
        time.sleep(0.1)
    waiter.process.send_signal(signal.SIGCONT)
    assert writer.goes_on() and writer.unharmed() and waiter.unharmed(), waiter.said
    writer.process.send_signal(signal.SIGSTOP)
    limit = time.monotonic() + 3
    while time.monotonic() < limit:
        assert others[0].goes_on()
        time.sleep(0.1)
    writer.process.send_signal(signal.SIGCONT)
    for peer in (writer, others[0]):
        assert peer.goes_on()
    for peer in (writer, waiter, *others):
        assert peer.unharmed(), peer.said
        end(peer.process)
    case.gives_all_back()


def service_ends(case, ending, expected, words):
    peers = [*case.pair(), *case.pair()]
    service = case.testbed.process
    since = time.monotonic()
    ending()
    status = service.wait(TOLD)
    assert status == expected, status
    for peer in peers:
        peer.expect("channel closed")
        # A request that was out fails, or the next is refused: whichever the program did first.
        for what in (("async local catastrophic error",), ("failed", "post refused")):
            if not [line for line in peer.said if line.startswith(what)]:
                peer.expect(*what)
    say(f"     all are told after {(time.monotonic() - since) * 1000:.0f} ms: {peers[1].said[-3:]}")
    for peer in peers:
        peer.process.stdin.close()  # it ends as a program does, with the library's own destructors
        assert peer.process.wait(TOLD) == 0, peer.said
        if peer.said[-1] != "ended":
            peer.expect("ended")
        told = [line for line in peer.said if line.startswith("paceline: the service at")]
        assert len(told) == 1 and f" {words}: its devices are lost" in told[0], peer.said
    # Another one at the same place serves others.
    case.testbed.start()
    writer, waiter = case.pair()
    assert writer.goes_on() and waiter.unharmed()


def service_killed(case):
    service_ends(case, case.testbed.process.kill, -signal.SIGKILL, "was killed or has crashed")


def service_taken_down(case):
    def down():
        # In the background: it waits for the service to be gone, whose parent is this test.
        commands.append(subprocess.Popen([case.testbed.paceline, "testbed", "down", "--socket",
                                          case.testbed.socket], env=case.testbed.environment))
    commands = []
    service_ends(case, down, 0, "has ended (paceline testbed down)")
    assert commands[0].wait(TOLD) == 0


CASES = [exits_uncleaned, killed, forks, stopped, service_killed, service_taken_down]


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def idle(testbed, program):
    peers = connected(testbed, ("h0", "h1"), program)
    pids = [testbed.process.pid, *(peer.process.pid for peer in peers)]
    time.sleep(1)
    before, since = [processor_seconds(pid) for pid in pids], time.monotonic()
    time.sleep(5)
    span = time.monotonic() - since
    for name, pid, was in zip(("service", "h0", "h1"), pids, before):
        say(f"{name}: {100 * (processor_seconds(pid) - was) / span:.2f} % of a processor")
    for peer in peers:
        end(peer.process)


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    paceline, dataplane, program = sys.argv[1:4]
    asked = sys.argv[4] if len(sys.argv) > 4 else None
    failed = 0
    with Testbed(paceline, dataplane) as testbed:
        if asked == "idle":
            idle(testbed, program)
            return
        for case in CASES:
            if asked and asked != case.__name__:
                continue
            try:
                with Case(testbed, program) as state:
                    case(state)
                say(f"ok   {case.__name__}")
            except AssertionError as error:
                failed += 1
                say(f"FAILED {case.__name__}: {error}\n{testbed.log_text()}")
                if not testbed.alive():
                    testbed.start()
    say(f"{failed} failed" if failed else "all good")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
