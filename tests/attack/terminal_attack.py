"""A program that calls itself by escape sequences, and a reason that is made of them: nothing of it
reaches the terminal of an operator."""

import json
import re
import socket
import struct
import subprocess

from host import Daemon, arguments, check, say

# Title, clear, 8-bit CSI as UTF-8 and as a bare byte, a line of its own that looks like a program.
NAME = b"\x1b]0;owned\x07\x1b[2J\xc2\x9b31m\x9b5m\n7 root"
WHY = "\x1b[2J\x1b]52;c;b3duZWQ=\x07 \u009b31m\u202e\nchange 99 by root\x7f"
UNSAFE = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80\xae")


def clean(what, text):
    found = UNSAFE.search(text)
    check(found is None, f"{what}: raw {found.group(0) if found else b''!r} in {text!r}")
    try:
        text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise AssertionError(f"{what}: {error} in {text!r}") from None
    say(f"ok   {what}")


def attach_as(path, name):
    """A session by the attach protocol: hello with that name, and a NIC opened."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(path)
    for operation, body in ((1, struct.pack("<HHI32s", 1, 0, 1, name)), (3, b"h0".ljust(32, b"\0"))):
        connection.send(struct.pack("<IHHIi", 0x4C434150, operation, 1, operation, 0) + body)
        answer = connection.recv(65536)
        check(len(answer) >= 16 and struct.unpack_from("<i", answer, 12)[0] == 0,
              f"operation {operation}: {answer!r}")
    return connection


def run(daemon, paths, *words):
    done = subprocess.run([paths.paceline, *words], capture_output=True, env=daemon.environment,
                          timeout=60, check=False)
    return done.stdout + done.stderr


def main():
    paths = arguments()
    with Daemon(paths) as daemon:
        connection = attach_as(daemon.socket, NAME)
        text = run(daemon, paths, "testbed", "status", "--socket", daemon.socket)
        check(b"owned" in text, f"the program is shown: {text!r}")
        clean("testbed status", text)
        rows = [line for line in text.splitlines() if line.startswith(b"7 root")]
        check(not rows, f"a program made a line of its own: {text!r}")
        text = run(daemon, paths, "testbed", "status", "--socket", daemon.socket, "--json")
        check(json.loads(text)["sessions"], f"the program is listed: {text!r}")
        clean("testbed status --json", text)
        connection.close()

        body = {"params": {"alpha_gain": 0.01}, "why": WHY}
        status, text = daemon.ask("PATCH", "/v1/params", body)
        check(status == 200, f"a change with that reason: {text!r}")
        clean("the answer of the API", text)
        text = run(daemon, paths, "params", "history")
        check(b"owned" in text or b"52;c;" in text, f"the reason is shown: {text!r}")
        clean("params history", text)
        check(not re.search(rb"^change 99", text, re.M), f"a reason made a line: {text!r}")
        clean("params history --json", run(daemon, paths, "params", "history", "--json"))
        clean("/v1/params/history", daemon.ask("GET", "/v1/params/history")[1])
        status, text = daemon.ask("PATCH", "/v1/params",
                                  {"nics": [WHY], "params": {"alpha_gain": 0.01}, "why": "x"})
        check(status == 400, f"no NIC of that name: {text!r}")
        clean("a refusal of the API", text)
        clean("a refusal of the command line",
              run(daemon, paths, "params", "set", "alpha_gain=0.01", "--why", "x", "--nic", WHY))
        clean("a command that there is not", run(daemon, paths, WHY))
        clean("an option that there is not", run(daemon, paths, "top", "--" + WHY))
        clean("explain of a NIC of that name", run(daemon, paths, "explain", "17", "--nic", WHY))
        clean("the daemon's log", daemon.log_text())
        with open(f"{daemon.folder}/state/dataplane.log", "rb") as file:
            clean("the service's log", file.read())


main()
