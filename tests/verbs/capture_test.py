"""`paceline capture --nic`: what crosses a NIC of a running service, while programs use it.

  capture_test.py PACELINE PACELINE-DATAPLANE

Exit: 0 passed, 1 failed, 77 skipped, and why.
"""

import collections
import os
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "wire")]

from guesses import WITHOUT_GUESSING  # noqa: E402
from programs import Failed, Running, run_alone, run_pair, run_table, take_port  # noqa: E402
from testbed import PATIENCE, Testbed, end, need, say  # noqa: E402


class Capturing:
    """`paceline capture` that has begun."""

    def __init__(self, testbed, nic, file, *options):
        self.testbed = testbed
        self.command = [testbed.paceline, "capture", "--socket", testbed.socket, "--nic", nic, "-w", file,
                        *options]
        self.running = Running(testbed, self.command)
        limit = time.monotonic() + 10 * PATIENCE
        while "capturing" not in self.running.text():
            if self.running.process.poll() is not None or time.monotonic() > limit:
                raise Failed(f"no capture begins:\n{self.running.text()}")
            time.sleep(0.01)

    def wait(self, code=0):
        try:
            status = self.running.process.wait(20 * PATIENCE)
        except subprocess.TimeoutExpired:
            end(self.running.process)
            raise Failed(f"the capture does not end:\n{self.running.text()}") from None
        if status != code:
            raise Failed(f"exit status {status}:\n{self.running.text()}")
        return self.running.text()

    def interrupt(self):
        self.running.process.send_signal(signal.SIGINT)
        return self.wait()


def rows_of(file, wanted, *fields):
    """Of each packet that the filter takes, its fields, by tshark."""
    words = ["tshark", "-r", file, *WITHOUT_GUESSING, "-Y", wanted, "-T", "fields",
             "-e", "frame.packet_flags_direction"]
    for field in fields:
        words += ["-e", field]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"tshark: {done.stderr}")
    return [line.split("\t") for line in done.stdout.splitlines()]


def directions(file, wanted):
    """How many frames came in ("1") and went out ("2")."""
    count = collections.Counter({"1": 0, "2": 0})
    for row in rows_of(file, wanted):
        count[str(int(row[0], 0))] += 1
    return count


def pingpong(testbed, rounds=200):
    port = take_port()
    words = ["ibv_rc_pingpong", "-g", "0", "-c", "-n", str(rounds), "-p", str(port)]
    texts = run_pair(testbed, testbed.on("h1", words), testbed.on("h0", [*words, "127.0.0.1"]), port)
    for text in texts:
        if "iters in" not in text or "invalid data" in text:
            raise Failed(f"not {rounds} rounds of the right bytes:\n{text}")


def path(testbed, name):
    return os.path.join(testbed.folder, name)


def until_interrupted(testbed):
    file = path(testbed, "h0.pcapng")
    capturing = Capturing(testbed, "h0", file)
    pingpong(testbed)
    status = run_alone(testbed, [testbed.paceline, "testbed", "status", "--socket", testbed.socket])
    if not re.search(r"^h0 +is being captured: \d{3,} frames, 0 of them missed$", status, re.M):
        raise Failed(f"status does not say so:\n{status}")
    other = subprocess.run(capturing.command, capture_output=True, text=True, check=False)
    if other.returncode != 2 or "h0 is captured already, by process" not in other.stderr:
        raise Failed(f"a second one: {other.returncode} {other.stderr}")
    if [name for name in os.listdir(testbed.folder) if name.endswith(".pcapng")]:
        raise Failed("a file is in its place before it is whole")
    text = capturing.interrupt()
    found = re.search(r"capture    \S+: (\d+) frames in [\d.]+ s, 0 missed", text)
    if found is None:
        raise Failed(f"no summary:\n{text}")
    if "being captured" in run_alone(testbed, [testbed.paceline, "testbed", "status", "--socket",
                                               testbed.socket]):
        raise Failed("it is over, and status does not know")
    if shutil.which("tshark") is None:
        return "no tshark"
    # Each round is 4 messages of 1 KiB and an acknowledgement now and then, both ways.
    both = directions(file, "infiniband.bth")
    if min(both.values()) < 200 or sum(both.values()) != int(found[1]):
        raise Failed(f"{both} of {found[1]}")
    if rows_of(file, "!infiniband.invariant.crc || _ws.malformed"):
        raise Failed("frames that are not as on the wire")
    years = {row[1][:4] for row in rows_of(file, "frame", "frame.time_epoch")}
    if not years <= {str(int(time.time()))[:4]}:
        raise Failed(f"not of this day: {years}")
    return f"{both['2']} out, {both['1']} in"


def limits(testbed):
    file = path(testbed, "cut.pcapng")
    capturing = Capturing(testbed, "h1", file, "--packets", "100", "--snap", "80", "--ring", "64KiB")
    pingpong(testbed)
    text = capturing.wait()
    if ": 100 frames in" not in text:
        raise Failed(text)
    text = Capturing(testbed, "h1", path(testbed, "time.pcapng"), "--duration", "200ms").wait()
    if shutil.which("tshark") is None:
        return "no tshark"
    lengths = [(int(row[1]), int(row[2])) for row in rows_of(file, "frame", "frame.cap_len", "frame.len")]
    if len(lengths) != 100 or max(kept for kept, _ in lengths) != 80 or max(all for _, all in lengths) < 1000:
        raise Failed(f"lengths: {lengths}")
    return text.splitlines()[-1].split(": ", 1)[1]


def mistakes(testbed):
    command = [testbed.paceline, "capture", "--socket", testbed.socket, "-w", path(testbed, "x.pcapng")]
    for code, word, options in ((2, "there is no h7 here, but h0, h1", ["--nic", "h7"]),
                                (2, "no/where", ["--nic", "h0", "-w", "no/where.pcapng"]),
                                (1, "no service answers", ["--nic", "h0", "--socket", "none.sock"])):
        arguments = [word for word in command]
        for name, value in zip(options[::2], options[1::2]):
            if name in arguments:
                arguments[arguments.index(name) + 1] = value
            else:
                arguments += [name, value]
        done = subprocess.run(arguments, capture_output=True, text=True, check=False)
        if done.returncode != code or word not in done.stderr:
            raise Failed(f"{options}: {done.returncode} {done.stderr}")
    if os.path.exists(path(testbed, "x.pcapng")):
        raise Failed("a file is left")


def killed(testbed):
    """Who is killed leaves nothing behind in the service."""
    capturing = Capturing(testbed, "h0", path(testbed, "killed.pcapng"))
    capturing.running.process.kill()
    capturing.running.process.wait()
    pingpong(testbed)
    text = Capturing(testbed, "h0", path(testbed, "next.pcapng"), "--duration", "100ms").wait()
    return text.splitlines()[-1].split(": ", 1)[1]


def stopped(testbed):
    """A reader that stands still costs it frames, and nobody else anything."""
    capturing = Capturing(testbed, "h0", path(testbed, "stopped.pcapng"), "--ring", "64KiB")
    capturing.running.process.send_signal(signal.SIGSTOP)
    try:
        pingpong(testbed, 500)
    finally:
        capturing.running.process.send_signal(signal.SIGCONT)
    text = capturing.interrupt()
    if " frames are missing" not in text:
        raise Failed(text)
    return re.search(r"\d+ missed", text)[0]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    need("ibv_rc_pingpong")
    with Testbed(*sys.argv[1:]) as testbed:
        failed = run_table(testbed, [("until Ctrl-C", until_interrupted), ("limits", limits),
                                     ("mistakes", mistakes), ("killed", killed), ("stopped", stopped)])
        file = path(testbed, "last.pcapng")
        capturing = Capturing(testbed, "h0", file)
        end(testbed.process)
        text = capturing.wait(1)
        if "the service has ended" not in text or not os.path.exists(file):
            say(f"FAILED  the service ends\n{text}")
            failed += 1
    say("all passed" if failed == 0 else f"{failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
