"""Text that is nested so deep that whoever reads it by recursion runs out of stack: TOML in every file and
request that takes some, JSON in every file that commands read. Everybody refuses it with a line."""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PARTS = 100_000  # of a dotted key, or brackets: 8 MiB of stack end far below

parser = argparse.ArgumentParser()
for option in ("paceline", "pacelined", "dataplane", "programs"):
    parser.add_argument(f"--{option}", required=True)
options = parser.parse_args()

KEY = "a" + ".a" * PARTS
TOML = {
    "dotted key": f"{KEY} = 1\n",
    "table": f"[{KEY}]\n",
    "array of tables": f"[[{KEY}]]\n",
    "inline table": "x = {" + KEY + " = 1}\n",
    "arrays": "x = " + "[" * PARTS + "]" * PARTS + "\n",
    "inline tables": "x = " + "{a=" * PARTS + "1" + "}" * PARTS + "\n",
}
OF_RESULTS = {"schema": 0, "kind": "", "version": "", "runs": [], "seed": 0}
LIMIT = "nested deeper than"
failures = []


def refused(name, words, *command):
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=60,
                          stdin=subprocess.DEVNULL)
    text = done.stdout + done.stderr
    good = done.returncode in (1, 2) and words in text and len(text) < 1000
    print(f"{'ok     ' if good else 'FAILED '} {name}: {done.returncode}", flush=True)
    if not good:
        print(text[-500:], flush=True)
        failures.append(name)


def files(folder):
    path = os.path.join(folder, "deep")
    for kind, text in TOML.items():
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        for name, command in {
                "emulate": [options.paceline, "emulate", path],
                "ab": [options.paceline, "ab", path],
                "league": [options.paceline, "league", path],
                "testbed up": [options.paceline, "testbed", "up", path],
                "paceline-dataplane": [options.dataplane, "--testbed", path, "--foreground"],
                "pacelined": [options.pacelined, "--config", path],
        }.items():
            refused(f"{name}, {kind}", LIMIT, *command)
    # As deep as one argument of a command may be long.
    short = KEY[:120_000]
    for value in (f"{short}=1", "fabric.hosts={" + short + "=1}", "seed=" + "[" * 120_000):
        done = subprocess.run([options.paceline, "emulate", "--set", value], capture_output=True,
                              text=True, timeout=60, stdin=subprocess.DEVNULL)
        if done.returncode != 2:
            failures.append(f"--set {value[:20]}: {done.returncode}")
    for member in OF_RESULTS:
        with open(path, "w", encoding="utf-8") as file:
            file.write(json.dumps(OF_RESULTS | {member: "@"}).replace(
                '"@"', "[" * PARTS + "]" * PARTS))
        refused(f"report, {member}", LIMIT, options.paceline, "report", path)


def daemon():
    spec = importlib.util.spec_from_file_location(
        "daemon_host", os.path.join(HERE, "..", "daemon", "host.py"))
    module = importlib.util.module_from_spec(spec)
    sys.argv = [sys.argv[0], options.pacelined, options.paceline, options.dataplane]
    spec.loader.exec_module(module)
    host = module.Host()
    try:
        host.start()
        host.wait_for("a healthy daemon", host.healthy)
        for kind, text in TOML.items():
            status, answer = host.ask("POST", "/v1/experiments",
                                      {"plan": text[:250_000], "why": "an attack"})
            print(f"{kind}: {status} {str(answer)[:100]}", flush=True)
            if not 400 <= status < 500 or host.process.poll() is not None:
                failures.append(f"POST of {kind}: {status}")
        if host.ask("GET", "/healthz")[0] != 200:
            failures.append("the daemon is not well afterwards")
    except (OSError, AssertionError) as error:
        failures.append(f"{error}\n{host.logs()}")
    finally:
        host.close()


with tempfile.TemporaryDirectory(prefix="paceline-attack-") as folder:
    files(folder)
daemon()
print("\n".join(failures) if failures else "all good", flush=True)
sys.exit(1 if failures else 0)
