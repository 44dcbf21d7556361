#!/usr/bin/env python3
"""Runs the cases of a Catch executable in one process; those of a failed or hung run again, one by one.

usage: run_cases.py [--case-seconds N] EXECUTABLE SPEC

What failed is named last, with its output. Exit: 0 all passed, 77 a single case that skipped itself
(WARN "skipped: reason"), 1 something failed, also if it fails only in company.
"""

import argparse
import re
import subprocess
import sys

FAILED, SKIPPED = 1, 77
GROUP_CASES_OF_TIME = 8  # less than the time limit of ctest, so that what hangs is named
SKIP = re.compile(r"^\s*(skipped: .*)$", re.MULTILINE)


def run(executable, spec, seconds):
    """(ended well, output)"""
    process = subprocess.Popen([executable, spec, "--warn", "NoTests"], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, errors="replace")
    try:
        output, _ = process.communicate(timeout=seconds)
        return process.returncode == 0, output
    except subprocess.TimeoutExpired:
        process.kill()
        output, _ = process.communicate()
        return False, f"{output}\nnot finished after {seconds} s"


def cases_of(executable, spec):
    listed = subprocess.run([executable, spec, "--list-test-names-only"], stdout=subprocess.PIPE, text=True,
                            check=False)
    return [line for line in listed.stdout.splitlines() if line]


def pattern(name):
    return re.sub(r"([][,\\])", r"\\\1", name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case-seconds", type=int, default=120, help="time limit of one case (120)")
    parser.add_argument("executable")
    parser.add_argument("spec")
    options = parser.parse_args()

    cases = cases_of(options.executable, options.spec)
    seconds = options.case_seconds * (GROUP_CASES_OF_TIME if len(cases) > 1 else 1)
    good, output = run(options.executable, options.spec, seconds)
    skips = SKIP.findall(output)
    if good:
        print(f"{len(cases)} cases passed: {options.executable} '{options.spec}'")
        for skip in skips:
            print(skip)
        return SKIPPED if skips and len(cases) == 1 else 0
    print(output)
    if len(cases) < 2:
        return FAILED
    print(f"--- {len(cases)} cases again, one by one")
    failed = []
    for case in cases:
        good, output = run(options.executable, pattern(case), options.case_seconds)
        if not good:
            failed.append(case)
            print(f"--- FAILED: {case}\n{output}")
    for case in failed:
        print(f"FAILED: {case}\n  {options.executable} '{pattern(case)}'")
    if not failed:
        print("each passes alone: they fail in one process only")
    return FAILED


if __name__ == "__main__":
    sys.exit(main())
