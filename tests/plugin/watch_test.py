#!/usr/bin/env python3
"""Plug-ins that crash, loop or write where they may not: the program says which it was, and ends.

  watch_test.py PACELINE MODULES
"""

import os
import signal
import subprocess
import sys
import tempfile

PATIENCE = 60 * float(os.environ.get("PACELINE_TEST_PATIENCE", "1"))
PACELINE, MODULES = (os.path.abspath(path) for path in sys.argv[1:3])
failures = []

SCENARIO = """[fabric]
hosts = 3
[workload]
kind = "incast"
fan_in = 2
message_bytes = "200kB"
"""


def run(folder, *arguments):
    done = subprocess.run([PACELINE, *arguments], cwd=folder, capture_output=True, text=True,
                          timeout=PATIENCE, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


def expect(name, got, status, *words):
    text = got[1] + got[2]
    good = got[0] == status and all(word in text for word in words)
    print(f"{'ok     ' if good else 'FAILED '} {name}", flush=True)
    if not good:
        print(f"  status {got[0]} for {status}, wanted {words}:\n{text[-1500:]}", flush=True)
        failures.append(name)


def module(name):
    return os.path.join(MODULES, f"fatal_{name}.so")


def emulate(folder, name):
    return run(folder, "emulate", "small.toml", "--set", f"cc.algorithm=plugin:{module(name)}")


def checks(folder):
    """`paceline cc check` finds what a plug-in touches that it was not given, and goes on to say so."""
    fenced = "FAIL  it touches only the memory that it is given"
    for name, words in (("crash", ["address 0x10, which is nothing that it was given"]),
                        ("far", ["bytes behind the end of its state"]),
                        ("before", ["bytes before its state"]),
                        ("event", ["the event, which is only to be read"]),
                        ("rates", ["64 bytes before a sender's state"])):
        expect(f"cc check, {name}", run(folder, "cc", "check", module(name), "--no-cost"), 1, fenced,
               *words)
        expect(f"emulate, {name}", emulate(folder, name), 2, f"the plug-in {module(name)}: it ", *words)
    expect("ab, before", run(folder, "ab", "before.toml"), 2, "bytes before its state")
    good = run(folder, "cc", "check", os.path.join(MODULES, "aimd.so"), "--no-cost")
    expect("cc check of a good one", good, 0, "ok    it touches only the memory that it is given")


def crashes(folder):
    for name in ("late", "deep"):
        expect(f"emulate, {name}", emulate(folder, name), -signal.SIGSEGV,
               f"the plug-in {module(name)} crashed: signal 11")
    expect("ab, late", run(folder, "ab", "late.toml", "--jobs", "2"), -signal.SIGSEGV,
           f"the plug-in {module('late')} crashed: signal 11")
    left = [name for name in os.listdir(folder) if not name.endswith(".toml") and name != "core"]
    expect("nothing is left behind", (0 if not left else 1, "", str(left)), 0)


def exits(folder):
    words = f"the plug-in {module('exit')} ended the process"
    expect("emulate, exit", emulate(folder, "exit"), 1, words)
    expect("cc check, exit", run(folder, "cc", "check", module("exit"), "--no-cost"), 1, words)


def loops(folder):
    words = f"the plug-in {module('loop')} does not return"
    expect("emulate, loop", emulate(folder, "loop"), 1, words)
    expect("cc check, loop", run(folder, "cc", "check", module("loop"), "--no-cost"), 1, words)
    expect("cc list, a loop while it is loaded",
           run(folder, "cc", "list", "--plugin", module("opening")), 1,
           f"the plug-in {module('opening')} does not return")


def main():
    with tempfile.TemporaryDirectory(prefix="paceline-plugin-") as folder:
        with open(os.path.join(folder, "small.toml"), "w", encoding="utf-8") as file:
            file.write(SCENARIO)
        for name in ("before", "late"):
            with open(os.path.join(folder, f"{name}.toml"), "w", encoding="utf-8") as file:
                file.write(f"""repetitions = 2
[[arm]]
name = "one"
algorithm = "dcqcn"
[[arm]]
name = "two"
algorithm = "plugin:{module(name)}"
[[scenario]]
name = "small"
{SCENARIO.replace("[", "[scenario.")}""")
        for part in (checks, crashes, exits, loops):
            part(folder)
    print(f"{len(failures)} failed" if failures else "all good", flush=True)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
