"""`paceline mesh`: emulated NICs and two services probe each other; clocks that are off are found;
mistakes are told. Asserted is what no busy machine can change; how close it came is printed."""

import json
import os
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
        self.environment.pop("PACELINE_SOCKET", None)

    def run(self, expected, *arguments):
        done = subprocess.run([PACELINE, *arguments], capture_output=True, text=True,
                              env=self.environment, timeout=60 * PATIENCE, check=False)
        if done.returncode != expected:
            raise AssertionError(f"{' '.join(arguments)}: exit status {done.returncode}, not "
                                 f"{expected}\n{done.stdout}{done.stderr}")
        say(f"ok   {' '.join(arguments)}")
        return done.stdout, done.stderr

    def up(self, file, *options):
        self.run(0, "testbed", "up", os.path.join(ROOT, "configs/testbeds", file), *options)


def check(holds, what):
    if not holds:
        raise AssertionError(what)


def emulated(case):
    case.up("incast.toml")
    out, _ = case.run(0, "mesh", "--seconds", "1", "--rate", "200", "--paths", "2", "--json",
                      "--clock", "h1=1ms,50ppm", "--clock", "h2=-1ms,-50ppm")
    mesh = json.loads(out)
    nics = mesh["nics"]
    check(len(mesh["pairs"]) == len(nics) * (len(nics) - 1), "not every pair")
    off = {"h1": 1e6, "h2": -1e6}
    drift = {"h1": 50e3, "h2": -50e3}
    worst = 0
    for pair in mesh["pairs"]:
        check(pair["answered"] > 0, f"no answer: {pair}")
        check([path["port"] for path in pair["paths"]] == [49152, 49153], f"paths: {pair}")
        # All have the clock of the service, but for what was said; it has run for some seconds.
        ends = pair["from"], pair["to"]
        truth = off.get(ends[1], 0) - off.get(ends[0], 0)
        parted = abs(drift.get(ends[1], 0) - drift.get(ends[0], 0)) * 1e-9 * 30e9 * PATIENCE
        error = abs(pair["offset_ns"] - truth)
        check(error <= pair["uncertainty_ns"] + parted + 2e6, f"clock: {pair}")
        worst = max(worst, abs(pair["drift_ppb"] - drift.get(ends[1], 0) + drift.get(ends[0], 0)))
    say(f"     drift is wrong by {worst / 1e3:.2f} ppm at most")
    out, _ = case.run(0, "mesh", "--seconds", "0.5")
    check("round trip less the time at the far host" in out and "h0" in out, out)
    for wrong, part in ((("--clock", "h9=1ms"), "h9"), (("--clock", "h1"), "--clock h1"),
                        (("--clock", "h1=soon"), "soon"), (("--share", "0.5"), "share"),
                        (("--seconds", "0"), "seconds"), (("--paths", "65"), "paths")):
        _, error = case.run(2, "mesh", *wrong)
        check(part in error, error)
    mesh = subprocess.Popen([PACELINE, "mesh", "--seconds", "600", "--json"], text=True,
                            stdout=subprocess.PIPE, env=case.environment)
    time.sleep(1)
    mesh.send_signal(signal.SIGINT)
    out, _ = mesh.communicate(timeout=30 * PATIENCE)
    check(mesh.returncode == 130, f"interrupted: exit status {mesh.returncode}")
    check(json.loads(out)["pairs"], "nothing was printed")
    case.run(0, "testbed", "down")
    _, error = case.run(1, "mesh")
    check("testbed up" in error, error)


def two_services(case):
    """The truth is what both show beside the system's raw clock."""
    case.up("memif-a.toml", "--name", "a")
    case.up("memif-b.toml", "--name", "b")
    out, _ = case.run(0, "mesh", "--name", "a", "--name", "b", "--seconds", "3", "--rate", "500",
                      "--json", "--clock", "a0=1ms,50ppm", "--clock", "b0=-1ms,-50ppm")
    case.run(0, "testbed", "down", "--name", "a")
    case.run(0, "testbed", "down", "--name", "b")
    mesh = json.loads(out)
    clock = {one["nic"]: one for one in mesh["clocks"]}
    drift = {"a:a0": 50e-6, "b:b0": -50e-6}
    check(len(mesh["pairs"]) == 2, out)
    for pair in mesh["pairs"]:
        near, far = clock[pair["from"]], clock[pair["to"]]
        later = near["raw_ns"] - far["raw_ns"]
        truth = far["now_ns"] + later * (1 + drift[pair["to"]]) - near["now_ns"]
        error = pair["offset_ns"] - truth
        say(f"     {pair['from']} -> {pair['to']}: one-way delay wrong by {error:.0f} ns, certain "
            f"within {pair['uncertainty_ns']} ns; drift {pair['drift_ppb'] / 1e3:+.2f} ppm; "
            f"there {pair['there_ns']}, host {pair['host_ns']}, {pair['answered']} answers")
        check(pair["answered"] > 0, f"no answer: {pair}")
        # A reading of both clocks can be interrupted between the two.
        check(abs(error) <= pair["uncertainty_ns"] + 5e6, f"clock: {pair}")


with tempfile.TemporaryDirectory() as runtime:
    emulated(Case(runtime))
    two_services(Case(runtime))
