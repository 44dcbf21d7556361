"""Runs programs on a testbed, in pairs or alone, each for a bounded time, and says what came of it."""

import os
import shlex
import subprocess
import tempfile
import time

from testbed import PATIENCE, die_with_parent, end, say


class Failed(Exception):
    pass


class Running:
    """A program whose output goes to a file, so that it never blocks."""

    def __init__(self, testbed, command):
        self.command = command
        self.output = tempfile.TemporaryFile("w+", dir=testbed.folder, errors="replace")
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.output,
                                        stderr=subprocess.STDOUT, cwd=testbed.folder,
                                        env=testbed.environment, start_new_session=True,
                                        preexec_fn=die_with_parent)

    def text(self):
        self.output.flush()
        self.output.seek(0)
        return self.output.read()

    def finish(self, limit, statuses=(0,)):
        """The output; raises Failed with it when the program ends otherwise or takes too long."""
        try:
            self.process.wait(max(limit - time.monotonic(), 0.01))
        except subprocess.TimeoutExpired:
            raise Failed("took too long") from None
        if self.process.returncode not in statuses:
            raise Failed(f"exit status {self.process.returncode}")
        return self.text()


def listens(port):
    """Whether somebody listens on a TCP port here, without connecting to it."""
    for name in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(name, encoding="ascii") as table:
                for line in table.readlines()[1:]:
                    words = line.split()
                    if words[3] == "0A" and int(words[1].split(":")[1], 16) == port:
                        return True
        except OSError:
            continue
    return False


# Beginning where the kernel hands out no ports by itself.
next_port = [20000 + os.getpid() % 8000]


def take_port():
    while True:
        next_port[0] += 1
        if not listens(next_port[0]):
            return next_port[0]


def run_alone(testbed, command, seconds=20):
    program = Running(testbed, command)
    try:
        return program.finish(time.monotonic() + seconds * PATIENCE)
    except Failed as error:
        raise Failed(f"{error}\n{' '.join(command)}\n{program.text()}") from None
    finally:
        end(program.process)


def run_pair(testbed, server, client, port, seconds=20):
    """Output of both. The client starts when the server listens on the port."""
    limit = time.monotonic() + seconds * PATIENCE
    programs = [Running(testbed, server)]
    try:
        while not listens(port):
            if programs[0].process.poll() is not None:
                raise Failed(f"the server ended with {programs[0].process.returncode}")
            if time.monotonic() > limit:
                raise Failed("the server does not listen")
            time.sleep(0.01)
        programs.append(Running(testbed, client))
        texts = [program.finish(limit) for program in reversed(programs)]
        return texts[1], texts[0]
    except Failed as error:
        told = "\n".join(f"$ {' '.join(p.command)}\n{p.text()}" for p in programs)
        raise Failed(f"{error}\n{told}") from None
    finally:
        for program in programs:
            end(program.process)


# Programs that also speak TCP with the NIC's address want an interface that has it.
UNSHARE = ["unshare", "--net", *([] if os.geteuid() == 0 else ["--map-root-user"])]
WITH_ADDRESSES = """
ip link set lo up; ip link add v0 type veth peer name v1
for i in 0 1; do ip addr add 10.0.0.$((i + 1))/24 dev v$i; ip link set v$i up; done
SERVER & while ! grep -q :PORT /proc/net/tcp /proc/net/tcp6; do kill -0 $! || exit 9; sleep 0.02; done
CLIENT; status=$?; kill $! 2> /dev/null; wait $! 2> /dev/null; exit $status
"""


def run_with_addresses(testbed, server, client, port, seconds=20):
    """Output of both, in a network namespace of their own with h0's and h1's addresses, without root."""
    script = WITH_ADDRESSES.replace("SERVER", shlex.join(server)).replace("CLIENT", shlex.join(client))
    script = script.replace("PORT", f"{port:04X}")
    return run_alone(testbed, [*UNSHARE, "sh", "-c", script], seconds)


def namespaces():
    """Whether this user may make one with interfaces."""
    script = "ip link add v0 type veth peer name v1"
    return subprocess.run([*UNSHARE, "sh", "-c", script],
                          capture_output=True).returncode == 0


def run_table(testbed, cases, only=None):
    """cases: (name, function of the testbed). Prints a line a case; the number that failed."""
    failed = 0
    for name, function in cases:
        if only and only not in name:
            continue
        begun = time.monotonic()
        try:
            remark = function(testbed) or ""
            if not testbed.alive():
                raise Failed("the service ended")
            say(f"ok      {time.monotonic() - begun:5.1f} s  {name}  {remark}".rstrip())
        except Failed as error:
            failed += 1
            say(f"FAILED  {time.monotonic() - begun:5.1f} s  {name}\n{error}")
            if not testbed.alive():
                say(f"the service ended with {testbed.process.returncode}:\n{testbed.log_text()}")
                return failed
    if failed:
        say(f"log of the service:\n{testbed.log_text()}")
    return failed
