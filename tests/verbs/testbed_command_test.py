"""`paceline testbed up | status | down`: a service comes and goes, and mistakes are told."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from testbed import PATIENCE, ROOT, say

PACELINE = sys.argv[1]


class Case:
    def __init__(self, folder):
        self.environment = dict(os.environ, XDG_RUNTIME_DIR=folder)
        for name in ("PACELINE_SOCKET", "PACELINE_NIC", "LD_PRELOAD"):
            self.environment.pop(name, None)

    def run(self, expected, *arguments):
        done = subprocess.run([PACELINE, "testbed", *arguments], capture_output=True, text=True,
                              env=self.environment, timeout=60)
        if done.returncode != expected:
            raise AssertionError(f"testbed {' '.join(arguments)}: exit status {done.returncode}, "
                                 f"not {expected}\n{done.stdout}{done.stderr}")
        say(f"ok   testbed {' '.join(arguments)}")
        return done.stdout, done.stderr

    def exec(self, *options):
        subprocess.run([PACELINE, "exec", *options, "--", "true"], env=self.environment,
                       timeout=60, check=True)


    def kill(self, *options):
        """Its service, which then leaves what it made."""
        out, _ = self.run(0, "status", *options)
        os.kill(int(re.search(r"process (\d+) at", out)[1]), signal.SIGKILL)
        limit = time.monotonic() + 10 * PATIENCE
        while subprocess.run([PACELINE, "testbed", "status", *options], capture_output=True,
                             env=self.environment, check=False).returncode == 0:
            check(time.monotonic() < limit, "the service outlives SIGKILL")
            time.sleep(0.02)

    def trees(self):
        """Folders of device files."""
        runtime = os.path.join(self.environment["XDG_RUNTIME_DIR"], "paceline")
        return [name for name in os.listdir(runtime) if name.startswith("files-")]


def check(holds, what):
    if not holds:
        raise AssertionError(what)


def file_of(name):
    return os.path.join(ROOT, "configs/testbeds", name)


def cases(case, folder):
    _, errors = case.run(1, "status")
    check("paceline testbed up" in errors, f"how to start one: {errors}")
    case.run(1, "down")
    _, errors = case.run(2, "up", file_of("pair.toml"), "--set", "fabric.hots=3")
    check("fabric.hots" in errors or "hots" in errors, f"the unknown key: {errors}")
    case.run(2, "up", os.path.join(folder, "none.toml"))
    case.run(2, "up", file_of("pair.toml"), "--name", "a/b")

    out, _ = case.run(0, "up", file_of("pair.toml"))
    check("10.0.0.1" in out and "fd00::a00:2" in out and "25 Gb/s" in out, f"its NICs: {out}")
    _, errors = case.run(1, "up", file_of("pair.toml"))
    check("testbed down" in errors, f"one is up: {errors}")
    case.run(0, "up", file_of("incast.toml"), "--name", "other", "--set", "cc.algorithm=cadence")
    out, _ = case.run(0, "status")
    check("switch0 > h1" in out and "algorithm dcqcn" in out, f"queues: {out}")
    out, _ = case.run(0, "status", "--json", "--name", "other")
    worker = json.loads(out)["workers"][0]
    check(worker["algorithm"] == "cadence" and len(worker["nics"]) == 5, f"status: {out}")
    check(len(worker["fabric"]["queues"]) == 5, f"queues: {out}")
    out, _ = case.run(0, "down")
    check("has ended" in out, out)
    case.run(1, "status")
    runtime = os.path.join(folder, "paceline")
    case.exec("--name", "other")
    left = os.listdir(runtime)
    check(any(name.startswith("files-") for name in left), f"device files: {left}")
    case.run(0, "down", "--name", "other")
    check(not os.listdir(runtime), f"sockets, logs or device files are left: {os.listdir(runtime)}")

    # A service that is killed leaves device files: the next start removes them, and so does the next
    # program of another service.
    case.run(0, "up", file_of("pair.toml"))
    case.run(0, "up", file_of("incast.toml"), "--name", "other")
    case.exec()
    case.kill()
    check(len(case.trees()) == 1, f"device files of the killed: {case.trees()}")
    before = case.trees()
    case.exec("--name", "other")
    check(len(case.trees()) == 1 and case.trees() != before, f"of the killed: {case.trees()}")
    case.kill("--name", "other")
    case.run(0, "up", file_of("pair.toml"))
    check(not case.trees(), f"device files of one that was killed: {case.trees()}")
    case.run(0, "down")
    for name in os.listdir(runtime):  # logs and sockets of those that were killed
        os.remove(os.path.join(runtime, name))

    # Two with sockets of their own have a log each, and the end of one leaves the other's.
    one, two = os.path.join(folder, "one.sock"), os.path.join(folder, "two.sock")
    for socket in (one, two):
        case.run(0, "up", file_of("pair.toml"), "--socket", socket)
        case.exec("--socket", socket)
    case.run(0, "down", "--socket", one)
    check(os.path.exists(two + ".log") and not os.path.exists(one + ".log"), os.listdir(folder))
    check(len(os.listdir(runtime)) == 1, f"device files of the other: {os.listdir(runtime)}")
    case.run(0, "down", "--socket", two)
    check(not os.listdir(runtime) and not os.path.exists(two + ".log"), os.listdir(folder))


def main():
    folder = tempfile.mkdtemp(prefix="paceline-testbed-")
    case = Case(folder)
    try:
        cases(case, folder)
    finally:
        for name in ("default", "other"):
            subprocess.run([PACELINE, "testbed", "down", "--name", name], capture_output=True,
                           env=case.environment, timeout=60, check=False)
        shutil.rmtree(folder, ignore_errors=True)


main()
