#!/usr/bin/env python3
"""Plug-ins outside the tree, from the installed header to an A/B report, with nothing but the program.

Installs <paceline/cc.h> and <paceline/cc_rates.h> with their CMake package and pkg-config file, has
`paceline cc new` write a plug-in in C, one in C++, one with a receiving half and one with rates, builds them
against what was installed, runs their own tests, `paceline cc check`, one scenario, and experiments whose arms
are a plug-in and a built-in. A scratch folder holds everything.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

EXPERIMENT = """
name = "plugin-against-built-in"
seed = 1
repetitions = 3
[common.fabric]
hosts = 5
[common.workload]
kind = "incast"
fan_in = 4
message_bytes = "2MB"
start_jitter = "2us"
[[scenario]]
name = "four-to-one"
[[arm]]
name = "plugin"
algorithm = "plugin:{plugin}"
[[arm]]
name = "built-in"
algorithm = "{built_in}"
"""


def run(arguments, folder, expect=0, env=None):
    done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True,
                          env={**os.environ, **(env or {})})
    if done.returncode != expect:
        sys.exit(f"{' '.join(arguments)}: exit {done.returncode}, not {expect}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for option in ("--cmake", "--build", "--paceline"):
        parser.add_argument(option, required=True)
    parser.add_argument("--experiment", help="that of README; left out where programs are sanitized")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="paceline-plugin-") as folder:
        example(args, folder)


def build(args, folder, name, prefix):
    where = os.path.join(folder, name)
    run([args.cmake, "-G", "Ninja", "-S", where, "-B", where + "/build", "-DCMAKE_PREFIX_PATH=" + prefix,
         "-DPACELINE=" + args.paceline, "-DCMAKE_C_FLAGS=-Wall -Wextra -Wpedantic -Wconversion -Werror",
         "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wpedantic -Wconversion -Werror"], folder)
    run([args.cmake, "--build", where + "/build"], folder)
    ctest = os.path.join(os.path.dirname(args.cmake), "ctest")
    tested = run([ctest, "--test-dir", where + "/build", "--output-on-failure"], folder)
    assert "2 tests" in tested or "out of 2" in tested, tested
    return os.path.join(where, "build", name + ".so")


def example(args, folder):
    prefix = os.path.join(folder, "installed")
    run([args.cmake, "--install", args.build, "--component", "paceline-cc", "--prefix", prefix], folder)
    for name in ("cc.h", "cc_rates.h"):
        header = os.path.join(prefix, "include/paceline", name)
        assert os.path.exists(header), header
    if shutil.which("pkg-config"):
        lib = next(d for d, _, files in os.walk(prefix) if "paceline-cc.pc" in files)
        flags = run(["pkg-config", "--cflags", "paceline-cc"], folder, env={"PKG_CONFIG_PATH": lib})
        shown = flags.split("-I")[1].strip()
        assert os.path.samefile(shown, os.path.join(prefix, "include")), flags

    # Two names, as one process may load both.
    run([args.paceline, "cc", "new", "first"], folder)
    run([args.paceline, "cc", "new", "second", "--lang", "c++"], folder)
    assert sorted(os.listdir(folder + "/second")) == ["CMakeLists.txt", "second.cc", "second_test.c"]
    assert "aimd" not in open(folder + "/first/first.c", encoding="utf-8").read()
    run([args.paceline, "cc", "new", "first"], folder, expect=2)    # never over what is there
    run([args.paceline, "cc", "new", "dcqcn"], folder, expect=2)    # a built-in
    run([args.paceline, "cc", "new", "Bad-Name"], folder, expect=2)
    first = build(args, folder, "first", prefix)
    second = build(args, folder, "second", prefix)

    listed = json.loads(run([args.paceline, "cc", "list", "--json", "--plugin", first], folder))
    assert listed["algorithms"][-1]["name"] == "first", listed
    shown = json.loads(run([args.paceline, "cc", "show", first, "--json"], folder))
    assert [p["name"] for p in shown["params"]] == ["decrease", "step_mbps", "period_us"], shown
    checked = run([args.paceline, "cc", "check", second], folder)
    assert "FAIL" not in checked and "ratio" in checked, checked

    # C and C++ are the same law, so the same run.
    outputs = []
    for plugin in (first, second):
        out = plugin + ".json"
        run([args.paceline, "emulate", "--quiet", "--check", "--set", "cc.algorithm=plugin:" + plugin,
             "--set", "workload.kind=incast", "--set", "workload.fan_in=4", "--set", "fabric.hosts=5",
             "--out", out], folder)
        outputs.append(json.load(open(out, encoding="utf-8")))
    for output in outputs:
        output_text = json.dumps(output)
        assert "first" in output_text or "second" in output_text
    compare(args, folder, "first/build/first.so", "dcqcn")
    receiver(args, folder, prefix)
    rates(args, folder, prefix)


# Writes, builds, checks and compares a plug-in of both halves.
def receiver(args, folder, prefix):
    run([args.paceline, "cc", "new", "third", "--receiver", "--lang", "c++"], folder, expect=2)
    run([args.paceline, "cc", "new", "third", "--receiver"], folder)
    assert sorted(os.listdir(folder + "/third")) == ["CMakeLists.txt", "third.c", "third_test.c"]
    third = build(args, folder, "third", prefix)
    checked = run([args.paceline, "cc", "check", third], folder)
    assert "FAIL" not in checked and "loss of REQUESTs" in checked and "per round" in checked, checked
    run([args.paceline, "emulate", "--quiet", "--check", "--set", "cc.algorithm=plugin:" + third,
         "--set", "workload.kind=incast", "--set", "workload.fan_in=4", "--set", "fabric.hosts=5",
         "--out", third + ".json"], folder)
    counters = json.load(open(third + ".json", encoding="utf-8"))["counters"]
    assert counters["grants_received"] > 0 and counters["plugin_receiver_quarantines"] == 0, counters
    compare(args, folder, "third/build/third.so", "homa")


# The same of one with rates.
def rates(args, folder, prefix):
    run([args.paceline, "cc", "new", "fourth", "--rates", "--receiver"], folder, expect=2)
    run([args.paceline, "cc", "new", "fourth", "--rates"], folder)
    assert sorted(os.listdir(folder + "/fourth")) == ["CMakeLists.txt", "fourth.c", "fourth_test.c"]
    fourth = build(args, folder, "fourth", prefix)
    checked = run([args.paceline, "cc", "check", fourth], folder)
    assert "FAIL" not in checked and "loss of REQUESTs" in checked, checked
    compare(args, folder, "fourth/build/fourth.so", "cadence")
    if args.experiment:
        same_results(args, folder, fourth)


# The law of Cadence in C gives what the built-in gives, in the experiment that README shows.
def same_results(args, folder, plugin):
    with open(args.experiment, encoding="utf-8") as file:
        text = file.read()
    arms, common = text.index("[[arm]]"), text.index("[common]")
    both = "".join(f'[[arm]]\nname = "{name}"\nalgorithm = "{algorithm}"\nfallback = "dcqcn"\n\n'
                   for name, algorithm in (("built-in", "cadence"), ("in-c", "plugin:" + plugin)))
    text = text[:arms].replace("repetitions = 12", "repetitions = 2") + both + text[common:]
    experiment = os.path.join(folder, "readme.toml")
    with open(experiment, "w", encoding="utf-8") as file:
        file.write(text)
    run([args.paceline, "ab", experiment, "--out", folder + "/readme.json"], folder)
    with open(folder + "/readme.json", encoding="utf-8") as file:
        effects = json.load(file)["effects"]
    primary = {e["scenario"]: e["effect"] for e in effects if e["role"] == "primary"}
    assert len(primary) == 5, primary
    for scenario, effect in primary.items():
        # Two draws of a 99th percentile lie further apart than means.
        most = 0.1 if scenario.startswith("websearch") else 0.01
        assert abs(effect) < most, (scenario, effect)
    print("the law in C against the built-in, README's experiment:", primary)


def compare(args, folder, plugin, built_in):
    experiment = os.path.join(folder, built_in + ".toml")
    with open(experiment, "w", encoding="utf-8") as file:
        file.write(EXPERIMENT.format(plugin=plugin, built_in=built_in))
    report = run([args.paceline, "ab", experiment, "--out", folder + "/results.json"], folder)
    results = open(folder + "/results.json", encoding="utf-8").read()
    assert "plugin" in results and "built-in" in results, report
    print(report)


if __name__ == "__main__":
    main()
