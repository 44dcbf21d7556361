#!/usr/bin/env python3
"""`paceline diagnose --testbed`: faults of a running testbed are named within ten seconds.

  diagnose_test.py PACELINE PACELINE-DATAPLANE
"""

import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from programs import Failed, Running  # noqa: E402
from testbed import PATIENCE, Testbed, end, say  # noqa: E402

# Two hosts on each of four leaves, two spines. Slow links, so that any machine keeps up with them.
FABRIC = ("fabric.topology=leaf_spine", "fabric.leaves=4", "fabric.hosts_per_leaf=2",
          "fabric.spines=2", "fabric.rate=500Mb/s")
NAMED_WITHIN = 10  # seconds
WATCH = "2500ms"
# Verdict, and the fault: target, kind, how bad where not as usual, and what else it is given.
FAULTS = (
    (("slow_nic", "h3"), ("h3", "slow_nic", "--severity", "5")),
    (("pcie_limit", "h2"), ("h2", "pcie_limit", "--severity", "3")),
    (("slow_receiver", "h4"), ("h4", "slow_receiver", "--severity", "3")),
    (("wrong_dscp", "h1"), ("h1", "wrong_dscp")),
    (("pfc_storm", "h7"), ("h7", "pfc_storm")),
    (("lossy_link", "leaf2-spine1"),
     ("leaf2-spine1", "lossy_link", "--severity", "0.01", "--seed", "3")),
    (("bad_path", "leaf3-spine0"), ("leaf3-spine0", "bad_path", "--severity", "8000")),
    (("flapping_port", "h5"), ("h5", "flapping_port", "--severity", "1", "--for", "4s")),
    (("dead_port", "h6"), ("h6", "dead_port", "--after", "500ms")))

# Who marks wrongly shows where queues are: incasts of which only the receivers' links are full.
MARKED = (*FABRIC, "fabric.uplink_rate=2Gb/s", "fabric.buffer=32MB", "fabric.ecn.kmin=400kB",
          "fabric.ecn.kmax=1600kB")
INCASTS = """schema = 1
[fabric]
topology = "leaf_spine"
leaves = 4
hosts_per_leaf = 2
[workload]
kind = "job"
[workload.job]
operation = "all_to_all"
all_to_all = "window"
bytes = "1MiB"
skew = 1.5
iterations = 2000
"""
WRONG_ECN = ((("wrong_ecn", "leaf1"), ("leaf1", "ecn_off")),
             (("wrong_ecn", "leaf2"), ("leaf2", "ecn_wrong")))


def verdicts(testbed):
    file = os.path.join(testbed.folder, "verdicts.json")
    done = subprocess.run([testbed.paceline, "diagnose", "--testbed", "default", "--for", WATCH,
                           "--quiet", "--json", file], capture_output=True, text=True,
                          env=testbed.environment)
    if done.returncode != 0:
        raise Failed(f"exit status {done.returncode}: {done.stderr}")
    with open(file, encoding="utf-8") as text:
        found = json.load(text)
    if found["windows"] != 64 or len(found["nics"]) != 8:
        raise Failed(f"{found['windows']} windows, {len(found['nics'])} NICs")
    return [(one["cause"], one["culprit"]) for one in found["verdicts"]]


def fault(testbed, *words):
    subprocess.run([testbed.paceline, "testbed", "fault", *words], check=True, capture_output=True,
                   env=testbed.environment)


def named(testbed, expected):
    """The seconds until `expected` is the first verdict."""
    begin = time.monotonic()
    while time.monotonic() - begin < NAMED_WITHIN * PATIENCE:
        found = verdicts(testbed)
        if found[:1] == [expected]:
            return time.monotonic() - begin
        say(f"  {expected[0]} {expected[1]}: found {found}")
    raise Failed(f"{expected} is not named within {NAMED_WITHIN} s")


def no_fault(testbed):
    """Nothing is wrong: no verdict. A machine that does much besides may hold up a worker once."""
    found = []
    for _ in range(3):
        found = verdicts(testbed)
        if not found:
            return
        say(f"  no fault: found {found}")
    raise Failed(f"a verdict where nothing is wrong: {found}")


def faults(testbed, traffic, all_faults):
    for expected, given in all_faults:
        fault(testbed, *given)
        say(f"{expected[0]} {expected[1]}: named after {named(testbed, expected):.1f} s")
        # Queue pairs outlive all of it but a port that stays dead.
        if traffic.process.poll() is not None and expected[0] != "dead_port":
            raise Failed(f"the traffic has ended:\n{traffic.text()}")
        fault(testbed, expected[1], "clear")


def collision(testbed):
    """Happens to connections that open meanwhile; to tell it from chance takes those of two programs."""
    fault(testbed, "leaf0-spine1", "hash_collision")
    programs = [Running(testbed, traffic_of(testbed)) for _ in range(2)]
    try:
        time.sleep(1)
        expected = ("hash_collision", "leaf0-spine1")
        say(f"{expected[0]} {expected[1]}: named after {named(testbed, expected):.1f} s")
    finally:
        for program in programs:
            end(program.process)
    fault(testbed, "leaf0-spine1", "clear")


def traffic_of(testbed):
    return [testbed.paceline, "collective", "bench", "--testbed", "default", "--operation",
            "all_to_all", "--schedules", "nccl", "--min", "1MiB", "--max", "1MiB", "--iterations",
            "100000", "--quiet"]


def await_traffic(testbed):
    limit = time.monotonic() + NAMED_WITHIN * PATIENCE
    while time.monotonic() < limit:
        nic = testbed.control(op="status")["status"]["workers"][0]["nics"][0]
        if nic["counters"]["rx_data_packets"] > 1000:
            return
        time.sleep(0.1)
    raise Failed("the job does not begin")


def wrong_ecn(paceline, dataplane):
    with Testbed(paceline, dataplane, sets=MARKED) as testbed:
        file = os.path.join(testbed.folder, "incasts.toml")
        with open(file, "w", encoding="utf-8") as job:
            job.write(INCASTS)
        traffic = Running(testbed, [paceline, "job", "run", file, "--testbed", "default",
                                    "--no-data"])
        try:
            await_traffic(testbed)
            no_fault(testbed)
            faults(testbed, traffic, WRONG_ECN)
        finally:
            end(traffic.process)


def bad_input(testbed):
    for words, status, text in (
            (("--testbed", "nobody"), 1, "no service answers"),
            (("--testbed", "default", "--for", "1ms"), 2, "--for 1ms: allowed are 100ms to 3600s"),
            (("--testbed", "default", "--for", "5"), 2, "--for: "),
            ((), 2, "give a scenario file, or --testbed NAME")):
        done = subprocess.run([testbed.paceline, "diagnose", *words], capture_output=True,
                              text=True, env=testbed.environment)
        if done.returncode != status or text not in done.stderr:
            raise Failed(f"{words}: exit status {done.returncode}, {done.stderr}")


def main(paceline, dataplane):
    with Testbed(paceline, dataplane, sets=FABRIC) as testbed:
        bad_input(testbed)
        collision(testbed)
        traffic = Running(testbed, traffic_of(testbed))
        try:
            time.sleep(1)
            no_fault(testbed)
            faults(testbed, traffic, FAULTS)
        finally:
            end(traffic.process)
        if not testbed.alive():
            raise Failed(f"the service has ended:\n{testbed.log_text()}")
    wrong_ecn(paceline, dataplane)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except Failed as wrong:
        say(f"failed: {wrong}")
        sys.exit(1)
