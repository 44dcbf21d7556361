"""A service that is stopped, or whose queue of connections somebody has filled: commands and programs that ask
it end in time and say in one line that it does not answer."""

import os
import signal
import socket
import subprocess

from host import arguments, check

from testbed import PATIENCE, Testbed, die_with_parent, say

SECONDS = 60 * PATIENCE


def fill(path, kind):
    """Connections until no more may wait."""
    waiting = []
    while True:
        waiting.append(socket.socket(socket.AF_UNIX, kind))
        waiting[-1].setblocking(False)
        try:
            waiting[-1].connect(path)
        except BlockingIOError:
            return waiting


def asked(commands, environment):
    """All at once; (status, standard error) of each."""
    running = [subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True, env=environment,
                                preexec_fn=die_with_parent) for command in commands]
    try:
        return [(process.wait(SECONDS), process.stderr.read()) for process in running]
    except subprocess.TimeoutExpired as error:
        raise AssertionError(f"does not end: {error.cmd}") from None
    finally:
        for process in running:
            process.kill()
            process.wait()
            process.stderr.close()


def check_all(commands, environment, said, when):
    for command, (status, text) in zip(commands, asked(commands, environment)):
        what = " ".join(command)
        check(status != 0, f"{when}: {what} ends well")
        check(said in text and text.count("\n") == 1, f"{when}: {what}: {text!r}")
    say(f"ok   {when}: {len(commands)} commands say it")


def service(options):
    with Testbed(options.paceline, options.dataplane) as bed:
        environment = dict(bed.environment)
        program = os.path.join(options.programs, "attack_memory")
        told = subprocess.run([options.paceline, "exec", "--print-env", "--socket", bed.socket],
                              capture_output=True, text=True, check=True, env=environment)
        preload = dict(line.split("=", 1) for line in told.stdout.splitlines())
        where = ["--socket", bed.socket]
        capture = os.path.join(bed.folder, "x.pcap")
        commands = [
            [options.paceline, "exec", *where, "--", "/bin/true"],
            [options.paceline, "testbed", "status", *where],
            [options.paceline, "top", "--once", *where],
            [options.paceline, "capture", "--nic", "h0", "--out", capture, *where],
            ["env", *(f"{name}={value}" for name, value in preload.items()), program, "punch", "1"],
        ]
        os.kill(bed.process.pid, signal.SIGSTOP)
        said = "does not answer"
        check_all(commands, environment, said, "the service is stopped")
        waiting = fill(bed.socket, socket.SOCK_SEQPACKET)
        waiting += fill(bed.socket + ".control", socket.SOCK_SEQPACKET)
        commands.append([options.paceline, "testbed", "up", bed.file, *where])
        commands.append([options.paceline, "testbed", "down", *where])
        check_all(commands, environment, said, "its queue is full")
        for connection in waiting:
            connection.close()
        os.kill(bed.process.pid, signal.SIGCONT)
        check(asked(commands[:1], environment)[0] == (0, ""), "the service serves again")


if __name__ == "__main__":
    given = arguments()
    service(given)
