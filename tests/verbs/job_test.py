#!/usr/bin/env python3
"""Whole jobs between emulated hosts: messages, bytes and order are those of the emulator's plan.

  job_test.py PACELINE PACELINE-DATAPLANE [PART OF A CASE'S NAME]
"""

import csv
import json
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from programs import Failed, Running, run_table  # noqa: E402
from ranks import ENDS_WITHIN, await_ranks, ended, nothing_left  # noqa: E402
from testbed import PATIENCE, ROOT, Testbed, end  # noqa: E402

HOSTS = 8
TREE = os.path.join(ROOT, "tests/unit/workload/jobs/goal/binary_tree_32.goal")

ALL_REDUCE = """
operation = "all_reduce"
bytes = "256KiB"
chunk_bytes = "16KiB"
iterations = 2
compute = "2ms"
"""
# Collectives of two dimensions, and sends between stages.
MODEL = """
format = "model"
chunk_bytes = "64KiB"
[workload.job.model]
layers = 4
hidden = 64
ffn = 256
heads = 4
vocabulary = 512
sequence = 64
micro_batches = 2
tp = 2
dp = 2
pp = 2
flops = 1e9
"""
# Rank 0 sends to all others at the same time; each answers after computing.
FAN_OUT = """
num_ranks 8
rank 0 {
%s
}
%s
""" % ("\n".join(f"s{i}: send 5000b to {i} tag 1\nr{i}: recv 3000b from {i} tag 2" for i in range(1, 8)),
       "\n".join(f"rank {i} {{\na: recv 5000b from 0 tag 1\nc: calc 1000000\nc requires a\n"
                 f"b: send 3000b to 0 tag 2\nb requires c\n}}" for i in range(1, 8)))


def scenario(testbed, job, hosts=HOSTS, more=""):
    """The file of a scenario with that job."""
    path = os.path.join(testbed.folder, "job.toml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"schema = 1\n[fabric]\nhosts = {hosts}\nrate = \"100Gb/s\"\n[workload]\n"
                   f"kind = \"job\"\n{more}[workload.job]\n{job}")
    return path


def goal(testbed, text):
    with open(os.path.join(testbed.folder, "job.goal"), "w", encoding="utf-8") as file:
        file.write(text)
    return "format = \"goal\"\nfile = \"job.goal\"\n"


def job_run(testbed, path, *options):
    return [testbed.paceline, "job", "run", path, "--testbed", "default", *options]


def finish(testbed, path, *options, status=0):
    running = Running(testbed, job_run(testbed, path, *options))
    try:
        running.process.wait(60 * PATIENCE)
    except subprocess.TimeoutExpired:
        raise Failed(f"took too long: {running.text()}") from None
    finally:
        end(running.process)
    if running.process.returncode != status:
        raise Failed(f"exit status {running.process.returncode}, not {status}:\n{running.text()}")
    nothing_left(testbed)
    return running.text()


def emulated(testbed, path):
    """What the emulator makes of it: messages, their bytes, and the report of the job."""
    out, flows = (os.path.join(testbed.folder, name) for name in ("emulated.json", "flows.csv"))
    subprocess.run([testbed.paceline, "emulate", path, "--quiet", "--out", out, "--flows-out", flows],
                   check=True, env=testbed.environment)
    with open(flows, encoding="utf-8") as file:
        sizes = [int(row["bytes"]) for row in csv.DictReader(file)]
    with open(out, encoding="utf-8") as file:
        return len(sizes), sum(sizes), json.load(file)["job"]


def collectives(job):
    keys = ("name", "operation", "bytes", "ranks", "calls")
    return sorted(tuple(kind[key] for key in keys) for kind in job["collectives"])


def check_report(report, path, testbed):
    messages, size, job = emulated(testbed, path)
    totals = report["totals"]
    if (totals["messages"], totals["bytes"]) != (messages, size) or messages == 0:
        raise Failed(f"{totals}: the emulator has {messages} messages of {size} bytes")
    if collectives(report["job"]) != collectives(job):
        raise Failed(f"collectives {collectives(report['job'])}, not {collectives(job)}")
    if len(report["job"]["ranks"]) != len(job["ranks"]):
        raise Failed(f"{len(report['job']['ranks'])} ranks")
    took = report["job"]["took_ps"]
    for rank in report["job"]["ranks"]:
        if sum(rank.values()) != took or min(rank.values()) < 0:
            raise Failed(f"the parts {rank} are not the time of the job, {took}")
    path = report["job"]["critical_path"]
    if path["steps"] == 0 or path["computing_ps"] + path["network_ps"] > took:
        raise Failed(f"critical path {path} in {took}")
    unknown = {"limited"} & set(report["job"])
    if unknown or any("ideal_us" in kind for kind in report["job"]["collectives"]):
        raise Failed("a real run knows no ideal times, and not what held senders back")


def check_trace(path, ranks):
    """As many processes as ranks; computing takes at least as long as it should."""
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    if len([event for event in events if event["ph"] == "M"]) != ranks:
        raise Failed(f"{events[:20]}")
    return [event for event in events if event["ph"] == "X"]


def runs(name, job_of, *options, hosts=HOSTS, ranks=None, computes_us=None, data=True):
    def run(testbed):
        path = scenario(testbed, job_of(testbed), hosts)
        out, trace = (os.path.join(testbed.folder, file) for file in ("report.json", "trace.json"))
        text = finish(testbed, path, "--out", out, "--job-out", trace, *options)
        with open(out, encoding="utf-8") as file:
            report = json.load(file)
        if report["totals"]["data_compared"] != data or "this machine's scheduling" not in text:
            raise Failed(f"{report['totals']}: {text}")
        check_report(report, path, testbed)
        for event in check_trace(trace, ranks or hosts):
            if event["name"] == "compute" and computes_us and event["dur"] < computes_us:
                raise Failed(f"{event} computes for less than {computes_us} us")
        return f"{report['totals']['messages']} messages"
    return name, run


def refused(words, job_of, *options, hosts=HOSTS, more=""):
    def run(testbed):
        path = scenario(testbed, job_of(testbed), hosts, more)
        out = os.path.join(testbed.folder, "refused.json")
        text = finish(testbed, path, "--out", out, *options, status=2)
        if words not in text or os.path.exists(out):
            raise Failed(f"no \"{words}\" in: {text}")
    return f"refused: {words}", run


SLOW_RANK = "[[fault]]\nkind = \"slow_rank\"\ntarget = \"rank3\"\nseverity = 1.5\n"


def slow_rank(testbed):
    """It is named, and nothing else; nothing is named without it."""
    job = ALL_REDUCE.replace("2ms", "20ms").replace("iterations = 2", "iterations = 6")
    out = os.path.join(testbed.folder, "report.json")
    for fault, expected in ((SLOW_RANK, [("slow_rank", "rank3")]), ("", [])):
        text = finish(testbed, scenario(testbed, job + fault), "--diagnose", "--out", out)
        with open(out, encoding="utf-8") as file:
            found = [(one["cause"], one["culprit"]) for one in json.load(file)["verdicts"]]
        if found != expected or ("verdict  slow_rank rank3" in text) != bool(expected):
            raise Failed(f"verdicts {found}, expected {expected}\n{text}")


def no_job(testbed):
    path = os.path.join(testbed.folder, "incast.toml")
    with open(path, "w", encoding="utf-8") as file:
        file.write("schema = 1\n[fabric]\nhosts = 4\nrate = \"1Gb/s\"\n[workload]\nkind = \"incast\"\n"
                   "fan_in = 3\n")
    text = finish(testbed, path, status=2)
    if not re.search(r'incast\.toml:6:\d+: workload\.kind = "incast": expected "job"', text):
        raise Failed(text)


def no_testbed(testbed):
    path = scenario(testbed, ALL_REDUCE)
    running = Running(testbed, [testbed.paceline, "job", "run", path, "--testbed", "none-of-this-name"])
    running.process.wait(ENDS_WITHIN)
    if running.process.returncode != 2 or "none-of-this-name" not in running.text():
        raise Failed(f"{running.process.returncode}: {running.text()}")


def under_way(testbed, *options):
    """A job that runs for long, and its ranks."""
    path = scenario(testbed, ALL_REDUCE.replace("2ms", "200ms"))
    out = os.path.join(testbed.folder, "partial.json")
    running = Running(testbed, job_run(testbed, path, "--set", "workload.job.iterations=100",
                                       "--set", "workload.job.bytes=4KiB", "--out", out, *options))
    return running, await_ranks(running, HOSTS, 2 * PATIENCE), out


def failed_without_result(testbed, text, out, *patterns):
    nothing_left(testbed)
    for pattern in patterns:
        if not re.search(pattern, text):
            raise Failed(f"no \"{pattern}\" in: {text}")
    if os.path.exists(out) or "critical" in text:
        raise Failed(f"a partial result: {text}")


WAITS = r"rank \d on h\d waits for .*message \d+ \(all_reduce, \d+ bytes from rank \d on h\d to rank \d on h\d\)"


def killed_rank(testbed):
    running, ranks, out = under_way(testbed)
    os.kill(ranks[3], signal.SIGKILL)
    text = ended(running, ranks, 1)
    failed_without_result(testbed, text, out, r"rank 3 on h3: ended by signal 9", WAITS)


def stopped_rank(testbed):
    running, ranks, out = under_way(testbed, "--patience", "2")
    os.kill(ranks[3], signal.SIGSTOP)
    text = ended(running, ranks, 1)
    failed_without_result(testbed, text, out, r"no message has moved for 2 s", WAITS)


def interrupted(testbed):
    running, ranks, out = under_way(testbed)
    os.kill(running.process.pid, signal.SIGINT)
    text = ended(running, ranks, 130)
    failed_without_result(testbed, text, out)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    paceline, dataplane = sys.argv[1:3]
    table = [
        runs("all-reduce", lambda _: ALL_REDUCE, computes_us=2000),
        runs("channels, queue pairs in turn, clear to send", lambda _: ALL_REDUCE + "channels = 2\n"
             "queue_pairs = 3\nclear_to_send = true\n"),
        runs("a checkpoint beside it", lambda _: "bytes = \"64KiB\"\n[workload.background]\n"
             "kind = \"checkpoint\"\nbytes = \"1MiB\"\nstorage_nics = 2\nmessage_bytes = 65536\n"
             "outstanding = 3\n", ranks=6),
        runs("all-to-all without data", lambda _: ALL_REDUCE.replace("all_reduce", "all_to_all"),
             "--no-data", data=False),
        runs("a model", lambda _: MODEL),
        runs("GOAL", lambda testbed: goal(testbed, FAN_OUT), computes_us=1000),
        ("a slow rank", slow_rank),
        refused("over verbs a rank is slow all the time",
                lambda _: ALL_REDUCE + SLOW_RANK + "at = \"1ms\"\n"),
        ("a scenario that is no job", no_job),
        ("no such testbed", no_testbed),
        refused("the job needs 9 NICs: testbed default has 8", lambda _: ALL_REDUCE, hosts=9),
        refused("--no-data", lambda _: ALL_REDUCE.replace("256KiB", "1GiB").replace("16KiB", "1MiB")),
        refused("allowed", lambda _: ALL_REDUCE, "--set", "workload.job.window=0"),
        ("a killed rank", killed_rank),
        ("a stopped rank", stopped_rank),
        ("Ctrl-C", interrupted),
    ]
    only = sys.argv[3] if len(sys.argv) > 3 else None
    with Testbed(paceline, dataplane, sets=(f"fabric.hosts={HOSTS}",)) as testbed:
        testbed.environment["TMPDIR"] = testbed.folder
        failed = run_table(testbed, table, only)
    tree = runs("a tree of 32", lambda _: f"format = \"goal\"\nfile = \"{TREE}\"\n", hosts=32)
    with Testbed(paceline, dataplane, sets=("fabric.hosts=32",)) as testbed:
        testbed.environment["TMPDIR"] = testbed.folder
        failed += run_table(testbed, [tree], only)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
