"""An operator's evening (docs/user-guide.md) in short: unmodified programs in an incast, DCQCN tried against
Cadence to a verdict and promoted, then a plug-in that does harm, taken back by the guard while the
programs go on."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys

from host import PACELINE, Host, check
from live import BUSY_MACHINE, Traffic, experiment, in_force, short_plan
from testbed import PATIENCE, need, say

SENDERS = ("h0", "h1", "h2", "h3")
RECEIVER = "h4"
PLUGINS = sys.argv[4]  # the folder that they were built in
VERDICTS = ("ship", "harmful", "no difference", "inconclusive")


def incast(host, seconds):
    """From four hosts to the fifth."""
    return Traffic(host, [(sender, RECEIVER) for sender in SENDERS], seconds)


def bytes_to_receiver(host):
    """What has come in at the receiver."""
    samples = host.ask("GET", f"/v1/nics/{RECEIVER}/queue_pairs")[1]["queue_pairs"]
    return sum(pair["rx_bytes"] for pair in samples)


def promising(host):
    plan = short_plan(host, "live-incast.toml", *BUSY_MACHINE)
    code, text, errors = experiment(host, "plan", plan)
    check(code == 0, f"the plan: {errors}")
    digest = re.search(r"sha256 (\w{64})", text).group(1)
    traffic = incast(host, 20)
    try:
        host.wait_for("traffic flows", lambda: bytes_to_receiver(host) > 1e6)
        code, text, errors = experiment(host, "run", plan, "--why", "incast at h4", "--json",
                                        seconds=120)
        check(digest in errors, f"the schedule that was planned is the one registered: {errors}")
        found = json.loads(text)["experiment"]
        check(code == 0 and found["state"] == "concluded", f"it concludes: {text}{errors}")
        check(found["verdict"] in VERDICTS, f"with a verdict: {found}")
        check(in_force(host) == {"dcqcn"}, "and the champion in force")
        traffic.finish(60)
    finally:
        traffic.close()
    number = found["id"]
    code, text, errors = experiment(host, "report", number, "--json", "--html", "report.html")
    report = json.loads(text)
    check(code == 0 and report["schedule_sha256"] == digest, f"the report: {errors}")
    check(report["verdict"] == found["verdict"], f"its verdict: {report['verdict']}")
    check(6 <= report["pairs_attempted"] <= 12, f"its pairs: {report['pairs_attempted']}")
    with open(os.path.join(host.folder, "report.html"), encoding="utf-8") as page:
        check(digest in page.read(), "the page has the digest")
    again = experiment(host, "report", f"state/experiments/{int(number):06}", "--json")
    check(json.loads(again[1])["metrics"] == report["metrics"], "its files repeat the analysis")
    primary = report["metrics"][0]
    say(f"     {found['verdict']}: {primary['metric']} {primary['effect']:+.1%}, "
        f"{report['pairs_usable']} pairs")
    say("ok   an experiment concludes, with a report of what was registered")

    code, _, errors = experiment(host, "promote", number, "--why", "no A/A run")
    check(code == (0 if found["verdict"] == "ship" else 2), f"only what shall ship: {errors}")
    code, _, errors = experiment(host, "promote", number, "--override", "--why", "for tonight")
    check(code == 0 and in_force(host) == {"cadence"}, f"promoted: {errors}")
    change = host.ask("GET", "/v1/params/history")[1]["changes"][-1]
    check(change["action"] == "promote" and digest[:16] in change["why"], f"journal: {change}")
    status, answer = host.ask("POST", "/v1/params/revert", {"why": "the evening goes on"})
    check(status == 200 and in_force(host) == {"dcqcn"}, f"reverted: {answer}")
    say("ok   the candidate is promoted, and the promotion reverted")


def params(host, *arguments):
    """Exit status, output and errors of `paceline params ...`."""
    done = subprocess.run([PACELINE, "params", *arguments], env=host.environment, cwd=host.folder,
                          timeout=60 * PATIENCE, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def install(host, name):
    """A plug-in in the folder that the testbed allows, and its digest."""
    path = os.path.join(host.folder, "plugins", name)
    shutil.copyfile(os.path.join(PLUGINS, name), path)
    os.chmod(path, 0o644)
    with open(path, "rb") as file:
        return path, hashlib.sha256(file.read()).hexdigest()


def plugin(host):
    """A plug-in by hand: refused from elsewhere, then in force, journalled, and undone."""
    path, digest = install(host, "aimd.so")
    foreign = os.path.join(host.folder, "aimd.so")
    shutil.copyfile(path, foreign)
    code, _, errors = params(host, "set", "--algorithm", f"plugin:{foreign}", "--why", "try")
    check(code == 2 and "not in a folder of service.plugin_folders" in errors, f"elsewhere: {errors}")
    os.chmod(path, 0o666)
    code, _, errors = params(host, "set", "--algorithm", f"plugin:{path}", "--why", "try")
    check(code == 2 and "is writable by others" in errors, f"writable by all: {errors}")
    os.chmod(path, 0o644)
    # Relative to where the operator is.
    code, text, errors = params(host, "set", "--algorithm", "plugin:plugins/aimd.so",
                                "decrease=0.75", "--why", "a first look")
    check(code == 0 and in_force(host) == {"aimd"}, f"in force: {text}{errors}")
    change = host.ask("GET", "/v1/params/history")[1]["changes"][-1]
    for nic in change["nics"].values():
        check(nic["to"]["plugin"] == {"path": path, "sha256": digest}, f"journal: {nic}")
    known = {a["name"]: a for a in host.ask("GET", "/v1/algorithms")[1]["algorithms"]}
    check(known["aimd"]["plugin"]["sha256"] == digest, f"the catalogue: {known.get('aimd')}")
    code, _, errors = params(host, "set", "decrease=2", "--why", "too much")
    check(code == 2 and "decrease" in errors, f"its table is known: {errors}")
    # A service that is started anew has nothing loaded: the daemon has it load the same code again.
    before = host.healthy()
    check(host.ask("POST", "/v1/dataplane/upgrade", {"why": "a new service"})[0] in (200, 202), "")
    host.wait_for("a new service", lambda: host.healthy() not in (None, before))
    host.wait_for("the plug-in is put back", lambda: in_force(host) == {"aimd"})
    check(host.value("h0", "decrease") == 0.75, "with its values")
    code, text, errors = params(host, "revert", "--to", "0", "--why", "enough")
    check(code == 0 and in_force(host) == {"dcqcn"}, f"reverted: {text}{errors}")
    say("ok   a plug-in is loaded while the service runs, journalled, put back and reverted")


def reckless(host, plan, digest):
    """The experiment once. False: nothing came of it, and all is as before."""
    traffic = incast(host, 12)
    try:
        host.wait_for("traffic flows", lambda: bytes_to_receiver(host) > 1e6)
        code, text, errors = experiment(host, "run", plan, "--why", "what if?", "--json",
                                        seconds=120)
        found = json.loads(text)["experiment"]
        if found["verdict"] == "inconclusive":
            traffic.finish(60)
            return False
        check(code == 1, f"it does not end well: {text}{errors}")
        check(found["state"] == "tripped" and found["verdict"] == "harmful", f"the guard: {found}")
        say(f"     {found['ended']}")
        check(in_force(host) == {"dcqcn"}, "the champion is in force")
        folder = os.path.join(host.folder, f"state/experiments/{int(found['id']):06}")
        with open(os.path.join(folder, "algorithms.json"), encoding="utf-8") as file:
            kept = json.load(file)["algorithms"][0]
        check(kept["name"] == "blaster" and kept["plugin"]["sha256"] == digest, f"which code: {kept}")
        code, _, errors = experiment(host, "report", folder, "--json")
        check(code == 0, f"its folder is read by who has not loaded it: {errors}")
        before = bytes_to_receiver(host)
        host.wait_for("traffic goes on", lambda: bytes_to_receiver(host) > before + 1e6)
        traffic.finish(60)
        return True
    finally:
        traffic.close()


def harmful(host):
    path, digest = install(host, "blaster.so")
    plan = short_plan(host, "live-reckless.toml",
                      (r'algorithm = "fixed"', f'algorithm = "plugin:{path}"'))
    # Senders that a busy machine does not let run fill no switch: there is nothing to take back then.
    check(any(reckless(host, plan, digest) for _ in range(3)), "it is taken back")
    trips = [t for n in host.ask("GET", "/v1/guard")[1]["nics"] for t in n["trips"]]
    check(any(t["action"] == "reverted" for t in trips), f"the guard's journal: {trips}")
    code, _, errors = experiment(host, "run", plan, "--why", "once more", "--json")
    check(code == 2 and "latched" in errors and "paceline guard clear" in errors, f"not again before somebody has looked: {errors}")
    check(host.ask("DELETE", "/v1/guard", {})[0] == 200, "cleared")
    say("ok   a harmful candidate is taken back by the guard, and traffic goes on")


def main():
    need("ib_write_bw")
    host = Host("incast")
    try:
        os.mkdir(os.path.join(host.folder, "plugins"), 0o755)
        host.write_config(f"set = ['service.plugin_folders=[\"{host.folder}/plugins\"]']\n")
        host.start()
        host.wait_for("the service is started", host.healthy)
        plugin(host)
        promising(host)
        harmful(host)
    except BaseException:
        say(host.logs())
        raise
    finally:
        host.close()


main()
