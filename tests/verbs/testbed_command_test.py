"""`paceline testbed up | status | fault | down`: a service comes and goes, its links fail and
return, and mistakes are told."""

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


def ports_up(case, nic):
    out, _ = case.run(0, "status", "--json")
    return [n for n in json.loads(out)["workers"][0]["nics"] if n["name"] == nic][0]["ports_up"]


def await_ports(case, nic, expected):
    limit = time.monotonic() + 10 * PATIENCE
    while ports_up(case, nic) != expected:
        check(time.monotonic() < limit, f"ports of {nic} are not {expected}")
        time.sleep(0.02)


def told_faults(case, log, *arguments):
    """What a fault command prints, and the lines that the service's log then has more."""
    with open(log, encoding="utf-8") as file:
        before = len(file.readlines())
    out, _ = case.run(0, "fault", *arguments)
    with open(log, encoding="utf-8") as file:
        lines = file.readlines()[before:]
    return out, [line.split("fault: ")[1] for line in lines if "fault: " in line]


def refused(case, text, *arguments):
    out, errors = case.run(2, "fault", *arguments)
    check(text in errors and not out, f"fault {' '.join(arguments)}: no {text!r} in {errors}")


def faults(case, folder):
    _, errors = case.run(1, "fault", "h0", "down")
    check("paceline testbed up" in errors, f"how to start one: {errors}")
    case.run(0, "up", file_of("planes.toml"))
    log = os.path.join(folder, "paceline", "default.log")
    check("without a link" not in case.run(0, "status")[0], "all ports have a link")

    case.run(0, "fault", "h0.1", "down")
    await_ports(case, "h0", [True, False])
    check(ports_up(case, "h1") == [True, True], "those of the other NIC")
    out, _ = case.run(0, "status")
    check(len(re.findall(r"(?m)^ +without a link: h0.1$", out)) == 1, f"port 1: {out}")
    case.run(0, "fault", "plane0", "down")
    await_ports(case, "h0", [False, False])
    check("without a link: h0.0, h0.1" in case.run(0, "status")[0], "both ports")
    out, _ = case.run(0, "fault", "h0", "clear")
    check(out == "faults: 1, of 2 links\n", out)
    await_ports(case, "h0", [True, True])
    check("fault      plane0 down" in case.run(0, "status")[0], "of the other NIC's port")
    # For a time: it comes back by itself.
    case.run(0, "fault", "h1", "up")
    out, lines = told_faults(case, log, "h1.0", "down", "loss=0.01", "--for", "100ms")
    check(out == "faults: 2, of 1 link\n" and lines == ["h1.0 down in 0 us\n",
                                                        "h1.0 loss in 0 us\n"], f"{out}{lines}")
    await_ports(case, "h1", [True, True])

    script = os.path.join(folder, "faults.toml")
    with open(script, "w", encoding="utf-8") as file:
        file.write('[[event]]\nat = "1ms"\nlink = "h1.1"\naction = "down"\n'
                   '[[event]]\nat = "0us"\nlink = "leaf0"\naction = "rate"\nrate = "1Gb/s"\n'
                   'direction = "up"\n')
    out, lines = told_faults(case, log, "--script", script)
    check(out == "faults: 2, of 3 links\n" and
          lines == ["h1.1 down in 1000 us\n", "leaf0 rate in 0 us\n"], f"{out}{lines}")
    await_ports(case, "h1", [True, False])
    case.run(0, "fault", "h1", "clear")

    # A kind of scenarios; the status tells it until it is taken back.
    out, lines = told_faults(case, log, "h1", "slow_nic", "--severity", "4", "--for", "1000s")
    check(out == "faults: 1, of 2 links\n" and lines == ["h1 slow_nic in 0 us\n"], f"{out}{lines}")
    case.run(0, "fault", "h0", "clock_drift", "--after", "500s")
    out, _ = case.run(0, "status")
    check(re.search(r"(?m)^fault      h1 slow_nic, severity 4, ends in .* s$", out), out)
    check(re.search(r"(?m)^fault      h0 clock_drift, severity 50, begins in .* s$", out), out)
    with open(script, "w", encoding="utf-8") as file:
        file.write('[[fault]]\nkind = "lossy_link"\ntarget = "h0.1"\nseed = 5\nfor = "1000s"\n')
    case.run(0, "fault", "--script", script)
    check("fault      h0.1 lossy_link, severity 0.002, seed 5, ends in" in case.run(0, "status")[0],
          "that of the script")
    for nic in ("h0", "h1"):
        case.run(0, "fault", nic, "clear")
    out, _ = case.run(0, "status")
    check(not re.search("(?m)^fault ", out), f"not all are taken back:\n{out}")

    random = ("--random", "5", "--every", "4ms", "--after", "1ms", "--seed")
    out, lines = told_faults(case, log, *random, "7")
    check(out.startswith("seed 7\nfaults: 5, of "), out)
    check([line.split(" down in ")[1] for line in lines] ==
          [f"{at} us\n" for at in (1000, 5000, 9000, 13000, 17000)], f"{lines}")
    check(told_faults(case, log, *random, "7") == (out, lines), "the same seed, the same faults")
    check(any(told_faults(case, log, *random, str(seed))[1] != lines for seed in (8, 9, 10)),
          "other seeds, other faults")
    time.sleep(0.05)
    for nic in ("h0", "h1"):
        await_ports(case, nic, [True, True])

    refused(case, 'no NIC or port "h7" (the first is "h0", the last "h1.1")', "h7", "down")
    refused(case, 'no NIC or port "h0.2"', "h0.2", "down")
    refused(case, 'probability: action "loss" needs it', "h0", "loss")
    refused(case, "does nothing with action \"down\"", "h0", "down=1")
    refused(case, "rate=fast: ", "h0", "rate=fast")
    refused(case, "delay=5: ", "h0", "delay=5")
    refused(case, "slow_rank: ranks are programs there", "h0", "slow_rank")
    refused(case, "severity: 0.5: out of range, allowed", "h0", "slow_nic", "--severity", "0.5")
    refused(case, "goes with --severity", "h0", "slow_nic=4")
    refused(case, "--severity goes with a kind", "h0", "down", "--severity", "4")
    refused(case, "--seed goes with --random, or with a kind", "h0", "down", "--seed", "4")
    refused(case, "such as \"leaf1\" or \"spine0\"", "h0", "ecn_off")
    refused(case, "--for soon: ", "h0", "down", "--for", "soon")
    refused(case, "for_us: does nothing with action \"up\"", "h0", "up", "--for", "5ms")
    refused(case, "direction: does nothing with action \"down\"", "h0", "down", "--direction", "up")
    for arguments in ((), ("h0",), ("h0", "down", "--random", "3"), ("--script", script, "h0")):
        refused(case, "expected one of: TARGET with CHANGEs, --script FILE, --random N", *arguments)
    refused(case, "none.toml", "--script", os.path.join(folder, "none.toml"))
    with open(script, "a", encoding="utf-8") as file:
        file.write("[fabric]\nhosts = 2\n")
    refused(case, f"{script}: expected [[event]] and [[fault]] tables, and nothing else", "--script", script)
    with open(script, "w", encoding="utf-8") as file:
        file.write('[[event]]\nat = "0us"\nlink = "h0"\naction = "down"\ndirection = "up"\n')
    refused(case, f"{script}:5:13: event.direction does nothing with event.action = \"down\"",
            "--script", script)
    for nic in ("h0", "h1"):
        check(ports_up(case, nic) == [True, True], f"what is refused does nothing to {nic}")
    case.run(0, "down")


def main():
    folder = tempfile.mkdtemp(prefix="paceline-testbed-")
    case = Case(folder)
    try:
        cases(case, folder)
        faults(case, folder)
    finally:
        for name in ("default", "other"):
            subprocess.run([PACELINE, "testbed", "down", "--name", name], capture_output=True,
                           env=case.environment, timeout=60, check=False)
        shutil.rmtree(folder, ignore_errors=True)


main()
