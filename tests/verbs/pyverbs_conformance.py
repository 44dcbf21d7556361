#!/usr/bin/env python3
"""rdma-core's own Python tests (Debian: rdma-core has them, python3-pyverbs runs them) against our
libibverbs, as a black box.

  pyverbs_conformance.py PACELINE PACELINE-DATAPLANE [--write] [--only MODULE]

--write puts the result into docs/service.md. Fails when fewer than 100 tests pass, or
when one fails that tests/verbs/pyverbs_known.txt does not list. Exit: 0, 1, 77 not installed.
"""

import argparse
import collections
import glob
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from programs import Failed, Running  # noqa: E402
from testbed import PATIENCE, ROOT, Testbed, end, say, skip  # noqa: E402

FOLDERS = ("/usr/share/doc/rdma-core/tests", "/usr/share/doc/python3-pyverbs/tests")
FLOOR = 100
SECONDS = 40  # for what is left of a module
# Of one vendor's devices, and of GPUs.
NOT_OURS = re.compile(r"^test_(mlx5|efa|cuda)")
PAGE = os.path.join(ROOT, "docs/service.md")
BEGIN, END = "<!-- conformance: begin -->\n", "<!-- conformance: end -->"
KNOWN = os.path.join(ROOT, "tests/verbs/pyverbs_known.txt")


def unpack(source, target):
    os.mkdir(target)
    for path in glob.glob(os.path.join(source, "*.py*")):
        name = os.path.basename(path)
        if name.endswith(".gz"):
            with gzip.open(path, "rb") as packed, open(os.path.join(target, name[:-3]), "wb") as out:
                shutil.copyfileobj(packed, out)
        else:
            shutil.copy(path, target)
    return sorted(os.path.basename(p)[:-3] for p in glob.glob(os.path.join(target, "test_*.py")))


def read_known():
    known = {}
    with open(KNOWN, encoding="utf-8") as file:
        for line in file:
            name, _, reason = line.split("#")[0].strip().partition(" ")
            if name:
                known[name] = reason.strip()
    return known


def run_module(testbed, python, tests, module):
    """{test: (outcome, reason)}. A test that ends or hangs the program is left out of the next try."""
    found = {}
    results = os.path.join(testbed.folder, f"{module}.json")
    while True:
        left_out = ["-" + test for test in found]
        command = testbed.on("h0", [python, os.path.join(ROOT, "tests/verbs/pyverbs_module.py"),
                                    results, f"tests.{module}", *left_out, "--dev", "h0",
                                    "--port", "1", "--gid", "1"])
        # In the folder of the tests.
        program = Running(testbed, ["env", "-C", tests, *command])
        text = ""
        try:
            program.finish(time.monotonic() + SECONDS * PATIENCE)
            ended = None
        except Failed as error:
            ended = str(error)
        finally:
            text = program.text()
            end(program.process)
        running = None
        if os.path.exists(results):
            with open(results, encoding="utf-8") as file:
                for line in file:
                    told = json.loads(line)
                    running = told["test"] if told["outcome"] == "running" else None
                    if running is None and found.get(told["test"], ("",))[0] != "fail":
                        found[told["test"]] = (told["outcome"], told["reason"])
            os.remove(results)
        if not testbed.alive():
            raise Failed(f"the service ended during {running or module}\n{testbed.log_text()}")
        if ended is None:
            return found
        if running is None:
            found[f"tests.{module}"] = ("fail", f"the module: {ended}; {text.strip()[-300:]}")
            return found
        found[running] = ("fail", "it hangs" if ended == "took too long" else f"it crashes: {ended}")


def short(test):
    return test.removeprefix("tests.")


def write_page(found, known, version):
    count = collections.Counter(outcome for outcome, _ in found.values())
    out = [f"{count['pass']} pass, {count['skip']} are skipped, {count['fail']} fail ({version}, one host of",
           "`configs/testbeds/pair.toml`).", ""]
    if count["fail"]:
        out += ["| failed | message | reason |", "|---|---|---|"]
        for test, (outcome, reason) in sorted(found.items()):
            if outcome == "fail":
                out.append(f"| `{short(test)}` | {escape(reason)} | {escape(known.get(short(test), 'not known'))} |")
        out.append("")
    # The same of every spelling of the call.
    reasons = collections.Counter(re.sub(r" with(out)?( extended)? attrs", "", reason) for outcome, reason in found.values() if outcome == "skip")
    lacking = re.compile(r" (is|are) not supported.*$")
    out += ["Not supported, and skipped (tests): " + listed(
        {lacking.sub("", reason): tests for reason, tests in reasons.items() if lacking.search(reason)}) + ".",
        "Skipped: " + listed({r: tests for r, tests in reasons.items() if not lacking.search(r)}) + "."]
    with open(PAGE, encoding="utf-8") as file:
        before, rest = file.read().split(BEGIN)
    after = rest.split(END)[1]
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(before + BEGIN + "\n".join(out) + "\n" + END + after)


def listed(reasons):
    return "; ".join(f"{escape(reason)} {tests}" for reason, tests in sorted(reasons.items()))


def escape(text):
    return text.replace("|", "\\|").replace("<", "&lt;") or "-"


def version_of_pyverbs():
    try:
        done = subprocess.run(["dpkg-query", "-W", "-f=${Package} ${Version}", "python3-pyverbs"],
                              capture_output=True, text=True)
        return done.stdout or "pyverbs of unknown version"
    except OSError:
        return "pyverbs of unknown version"


def interpreter():
    """A Python that has pyverbs: the distribution's has, the one that runs this may not."""
    for python in (sys.executable, "/usr/bin/python3"):
        try:
            if subprocess.run([python, "-c", "import pyverbs.device"], capture_output=True,
                              timeout=30).returncode == 0:
                return python
        except (OSError, subprocess.TimeoutExpired):
            continue
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paceline")
    parser.add_argument("dataplane")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--only")
    options = parser.parse_args()
    source = next((f for f in FOLDERS if os.path.isdir(f)), None)
    python = interpreter()
    if source is None or python is None:
        skip("no tests of rdma-core here (Debian: python3-pyverbs, rdma-core)")
    known, found = read_known(), {}
    with Testbed(options.paceline, options.dataplane) as testbed:
        tests = os.path.join(testbed.folder, "tests")
        for module in unpack(source, tests):
            if NOT_OURS.match(module) or (options.only and options.only not in module):
                continue
            begun = time.monotonic()
            try:
                results = run_module(testbed, python, tests, module)
            except Failed as error:
                say(f"{module}: {error}")
                sys.exit(1)
            count = collections.Counter(outcome for outcome, _ in results.values())
            say(f"{time.monotonic() - begun:5.1f} s  {module}: {count['pass']} passed, "
                f"{count['skip']} skipped, {count['fail']} failed")
            for test, (outcome, reason) in sorted(results.items()):
                if outcome == "fail":
                    say(f"         {'known' if short(test) in known else 'FAILED'} {short(test)}: {reason}")
            found.update(results)
    passed = sum(outcome == "pass" for outcome, _ in found.values())
    new = [t for t, (outcome, _) in found.items() if outcome == "fail" and short(t) not in known]
    mended = [t for t in known if found.get("tests." + t, ("",))[0] == "pass"]
    if options.write:
        write_page(found, known, version_of_pyverbs())
    say(f"{passed} of {len(found)} passed (at least {FLOOR} must); {len(new)} fail that are not known")
    if mended:
        say(f"pass, though tests/verbs/pyverbs_known.txt says that they fail: {', '.join(mended)}")
    sys.exit(1 if new or (passed < FLOOR and not options.only) else 0)


if __name__ == "__main__":
    main()
