"""Receivers' ports in two arms at a time (docs/experiments.md): unmodified programs that send from
the same NICs to both halves, a plan to its end, and plans that do not fit."""

import json
import os
import re
import subprocess

from host import PACELINE, Host, check
from live import BUSY_MACHINE, Traffic, experiment, in_force, short_plan
from testbed import PATIENCE, need, say

# Each sender sends to a port of either cluster.
SENDERS = ("h0", "h2", "h3")
RECEIVERS = ("h1", "h4")


def plan_of(host, *more):
    """Half of the pairs of blocks are whole."""
    return short_plan(host, "live-ports.toml", ("whole_every = 4", "whole_every = 2"), *BUSY_MACHINE,
                      *more)


def bytes_to(host, nic):
    samples = host.ask("GET", f"/v1/nics/{nic}/queue_pairs")[1]["queue_pairs"]
    return sum(pair["rx_bytes"] for pair in samples)


def algorithms_from(host, nic):
    """What the queue pairs of a sender run, by peer."""
    samples = host.ask("GET", f"/v1/nics/{nic}/queue_pairs")[1]["queue_pairs"]
    return {pair["algorithm"] for pair in samples if pair["tx_bytes"] > 0}


def flows(host):
    return all(bytes_to(host, nic) > 1e6 for nic in RECEIVERS)


def to_its_end(host):
    plan = plan_of(host)
    code, text, errors = experiment(host, "plan", plan)
    check(code == 0, f"the plan: {errors}")
    digest = re.search(r"sha256 (\w{64})", text).group(1)
    traffic = Traffic(host, [(s, r) for s in SENDERS for r in RECEIVERS], 25)
    try:
        host.wait_for("traffic flows", lambda: flows(host))
        command = [PACELINE, "experiment", "run", plan, "--why", "ports", "--json"]
        with subprocess.Popen(command, env=host.environment, cwd=host.folder, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as running:
            # A crossed pair: one NIC sends by both arms at a time.
            host.wait_for("a sender has both arms at a time",
                          lambda: algorithms_from(host, "h0") == {"dcqcn", "cadence"}
                          or running.poll() is not None)
            text, errors = running.communicate(timeout=120 * PATIENCE)
        check(digest in errors, f"the schedule that was planned is the one registered: {errors}")
        found = json.loads(text)["experiment"]
        check(running.returncode == 0 and found["state"] == "concluded", f"ends: {text}{errors}")
        check(in_force(host) == {"dcqcn"}, "and the champion in force")
        traffic.finish(60)
    finally:
        traffic.close()
    code, text, errors = experiment(host, "report", found["id"], "--json", "--html", "report.html")
    report = json.loads(text)
    check(code == 0 and report["schedule_sha256"] == digest, f"the report: {errors}")
    # Pairs that a busy machine spoils are discarded; of the rest all three effects are told.
    effects = report["interference"]
    if effects["crossed_pairs"] > 1 and effects["whole_pairs"] > 1:
        check(all(isinstance(effects[e], float) for e in ("naive", "spillover", "total")),
              f"three effects: {effects}")
    with open(os.path.join(host.folder, f"state/experiments/{int(found['id']):06}/blocks.jsonl"),
              encoding="utf-8") as file:
        blocks = [json.loads(line) for line in file]
    check({b["cluster"] for b in blocks} == {0, 1}, "a line for each block and cluster")
    check(any(not b.get("discarded") for b in blocks), f"some are of use: {blocks[:2]}")
    say(f"     {found['verdict']}: {report['pairs_usable']} pairs, {effects}")
    say("ok   two arms at a time by receivers' ports, to the end, with three effects")


def outsiders(host):
    plan = plan_of(host, (r'nics = \["h3", "h4"\]', 'nics = ["h3", "h9"]'))
    code, _, errors = experiment(host, "run", plan, "--why", "no")
    check(code == 2 and re.search(r'live-ports\.toml:\d+: \[\[cluster\]\] "right": there is no NIC '
                                  r'"h9"; this service has h0, h1, h2, h3, h4', errors), errors)
    plan = plan_of(host, (r'nics = \["h3", "h4"\]', 'nics = ["h2", "h4"]'))
    code, _, errors = experiment(host, "plan", plan)
    check(code == 2 and re.search(r'live-ports\.toml:\d+:\d+:.*"h2" belongs to another cluster',
                                  errors), errors)
    say("ok   clusters that do not fit are refused, with their place")


def main():
    need("ib_write_bw")
    host = Host("incast")
    try:
        host.start()
        host.wait_for("the service is started", host.healthy)
        outsiders(host)
        to_its_end(host)
    except BaseException:
        say(host.logs())
        raise
    finally:
        host.close()


main()
