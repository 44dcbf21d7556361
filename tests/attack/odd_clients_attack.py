"""Programs that do what ordinary ones do not (odd_client.c), each under the library that `paceline exec` loads:
children of every kind, a daemon, closefrom(3), seccomp, 1,000 threads, too few descriptors, too little memory.
And a service with too few of either, or with a full /dev/shm: it refuses some, and serves on."""

import argparse
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "verbs"))

from testbed import PATIENCE, Testbed, end, say  # noqa: E402

parser = argparse.ArgumentParser()
for option in ("paceline", "pacelined", "dataplane", "programs"):
    parser.add_argument(f"--{option}", required=True)
options = parser.parse_args()
CLIENT = os.path.join(options.programs, "attack_odd_client")
failures = []


def run(testbed, what, status=0):
    done = subprocess.run(testbed.on(None, [CLIENT, what]), capture_output=True, text=True,
                          env=testbed.environment, timeout=100 * PATIENCE, stdin=subprocess.DEVNULL)
    good = done.returncode == status and testbed.alive()
    say(f"{'ok     ' if good else 'FAILED '} {what}: {done.returncode} {done.stdout.split()}")
    if not good:
        failures.append(f"{what}: {done.returncode} {done.stdout[-300:]} {done.stderr[-600:]}"
                        f"{testbed.log_text()[-1000:]}")
    return done.stderr


def clients():
    with Testbed(options.paceline, options.dataplane) as testbed:
        for what in ("children", "daemon", "seccomp", "threads", "descriptors", "memory"):
            run(testbed, what)
        told = run(testbed, "closefrom")
        if told.count("this program has closed the connection to it") != 1:
            failures.append(f"closefrom: not told once: {told}")


class Limited(Testbed):
    """The service under a limit; what is started beside it has none."""

    def __init__(self, *limits, within=()):
        super().__init__(options.paceline, options.dataplane)
        self.dataplane, self.limits, self.within = options.dataplane, limits, within

    def start(self):
        command = os.path.join(self.folder, "limited")
        with open(command, "w", encoding="utf-8") as file:
            words = " ".join([*self.within, "prlimit", *self.limits, self.dataplane])
            file.write(f'#!/bin/sh\nexec {words} "$@"\n')
        os.chmod(command, 0o755)
        keep, self.dataplane = self.dataplane, command
        try:
            super().start()
        finally:
            self.dataplane = keep


def services():
    """More programs than it has room for: some are refused, and afterwards it serves as before."""
    for limits in (("--nofile=64:64",), (f"--as={100 << 20}",)):
        with Limited(*limits) as testbed:
            crowd = [subprocess.Popen(testbed.on(None, [CLIENT, "children"]), stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL, env=testbed.environment,
                                      start_new_session=True) for _ in range(12)]
            for process in crowd:
                try:
                    process.wait(30 * PATIENCE)
                except subprocess.TimeoutExpired:
                    failures.append(f"{limits}: a client hangs")
                end(process)
            ends = [process.returncode for process in crowd]
            say(f"     {limits}: {ends}")
            # Refused by `paceline exec` (2), by the library (1), or served.
            if not set(ends) <= {0, 1, 2}:
                failures.append(f"{limits}: {ends}")
            run(testbed, "daemon")
    if os.geteuid() == 0:
        # In a mount namespace of its own, where /dev/shm holds one page.
        full = ["unshare", "-m", "sh", "-c",
                "'mount -t tmpfs -o size=4k none /dev/shm && head -c 4096 /dev/zero > /dev/shm/full;"
                " exec \"$@\"'", "sh"]
        with Limited("--core=0", within=full) as testbed:
            run(testbed, "daemon")


clients()
services()
say("\n".join(failures) if failures else "all good")
sys.exit(1 if failures else 0)
