"""Live experiments in tests: unmodified programs that send, plans made short, what is in force."""

import os
import re
import subprocess
import time

from host import PACELINE, check
from programs import Failed, Running, listens, take_port
from testbed import PATIENCE, ROOT, end


class Traffic:
    """ib_write_bw for so many seconds, a pair of programs for each way: from a NIC to another one."""

    def __init__(self, host, ways, seconds):
        self.programs = []
        try:
            ways = [(sender, receiver, take_port()) for sender, receiver in ways]
            for _, receiver, port in ways:
                self.run(host, receiver, port, seconds)
            host.wait_for("perftest listens",
                          lambda: all(listens(port) for _, _, port in ways)
                          or any(p.process.poll() is not None for p in self.programs))
            for sender, _, port in ways:
                self.run(host, sender, port, seconds, "127.0.0.1")
        except BaseException:
            self.close()
            raise

    def run(self, host, nic, port, seconds, *peer):
        self.programs.append(Running(host, [
            PACELINE, "exec", "--socket", host.socket, "--nic", nic, "--", "ib_write_bw", "-F",
            "-D", str(seconds), "-t", "4", "-Q", "1", "-s", "65536", "-p", str(port), *peer]))

    def finish(self, seconds):
        limit = time.monotonic() + seconds * PATIENCE
        try:
            for program in self.programs:
                program.finish(limit)
        except Failed as error:
            told = "\n".join(f"$ {' '.join(p.command)}\n{p.text()}" for p in self.programs)
            raise AssertionError(f"{error}\n{told}") from None

    def close(self):
        for program in self.programs:
            end(program.process)


def short_plan(host, name, *more):
    """The plan of the tree with blocks of half a second and twelve pairs; and more to replace."""
    with open(os.path.join(ROOT, "configs", "experiments", name), encoding="utf-8") as file:
        text = file.read()
    for what, instead in ((r'fct_p999 = "20ms"', 'fct_p999 = "10ms"'),
                          (r'length = "\w+"', 'length = "500ms"'), (r"max = \d+", "max = 12"), *more):
        text, n = re.subn(what, instead, text)
        check(n == 1, f"{name}: {what}")
    path = os.path.join(host.folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


# A machine with too much to do pauses and stalls whatever is in force.
BUSY_MACHINE = (("pause_share = 0.01", "pause_share = 1"), ("stall_ms = 50", "stall_ms = 100"),
                ("retransmitted_packets = 10", "retransmitted_packets = 1000000"))


def experiment(host, *arguments, seconds=60):
    """Exit status, output and errors of `paceline experiment ...`."""
    done = subprocess.run([PACELINE, "experiment", *arguments], env=host.environment,
                          cwd=host.folder, timeout=seconds * PATIENCE, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def in_force(host):
    """Nothing while the daemon has no service to ask."""
    status, answer = host.ask("GET", "/v1/params")
    return {nic["algorithm"] for nic in answer["nics"]} if status == 200 else set()
