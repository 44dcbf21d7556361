#!/usr/bin/env python3
"""tools/quickstart: what it installs, what it builds, and what its `paceline` says of the rest."""

import argparse
import json
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIVE_ROOMS = ("control/daemon", "control/experiment/live", "control/tuner/online", "dataplane/attach",
              "dataplane/service", "dataplane/verbs", "tools/host")
MOST_UNITS = 64  # 59 in November 2026, so that none needs more than 800 MB


def packages(*sections):
    said = subprocess.run(["bash", "-c", 'source tools/lib.sh; packages "$@"', "packages", *sections], cwd=ROOT,
                          check=True, capture_output=True, text=True)
    return said.stdout.split()


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False)


def commands(program):
    listed = run(program, "--help").stdout.split("Subcommands:\n", 1)[1].split("\n\n", 1)[0]
    return set(re.findall(r"^  (\S+)", listed, re.MULTILINE))


class Packages(unittest.TestCase):
    def test_each_package_is_in_one_section(self):
        every = packages("emulator", "live", "test", "peers", "check")
        self.assertEqual(len(every), len(set(every)))
        lines = (ROOT / "tools/packages.txt").read_text(encoding="utf-8").splitlines()
        listed = [line for line in lines if line and line[0] not in "#["]
        self.assertEqual(len(every), len(listed), "a section that is not named here")

    def test_the_emulator_needs_no_test_and_nothing_live(self):
        emulator = packages("emulator")
        self.assertIn("g++", emulator)
        for other in ("catch2", "libdpdk-dev", "libsqlite3-dev", "qemu-system-x86", "openmpi-bin", "tshark",
                      "chromium-headless-shell", "clang"):
            self.assertNotIn(other, emulator)

    def test_the_script_installs_these_sections(self):
        text = (ROOT / "tools/quickstart").read_text(encoding="utf-8")
        self.assertEqual(re.findall(r"install_missing (.*)", text), ["emulator live", "emulator"])


class Build(unittest.TestCase):
    def test_few_units_and_no_live_package(self):
        without = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON"
                   for name in ("spdlog", "SQLite3", "prometheus-cpp", "Python3", "Catch2", "benchmark")]
        with tempfile.TemporaryDirectory() as folder:
            done = run(CMAKE, "--preset", "quickstart", "-S", str(ROOT), "-B", folder, *without)
            self.assertEqual(done.returncode, 0, done.stderr)
            entries = json.loads((pathlib.Path(folder) / "compile_commands.json").read_text(encoding="utf-8"))
            sources = [entry["file"] for entry in entries]
            for source in sources:
                for room in LIVE_ROOMS:
                    self.assertNotIn(f"/{room}/", source)
            self.assertLess(len(sources), MOST_UNITS)

    def test_bad_arguments(self):
        done = run(str(ROOT / "tools/quickstart"), "--all", "--seed")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--seed: not expected behind --all", done.stderr)


class Command(unittest.TestCase):
    def test_it_has_the_names_of_every_command(self):
        self.assertEqual(commands(EMULATOR), commands(PACELINE))

    def test_what_is_not_built_says_what_builds_it(self):
        for arguments in (["testbed", "up", "pair.toml"], ["exec", "--nic", "h0", "--", "true"], ["top"],
                          ["experiment", "--no-such-option"]):
            done = run(EMULATOR, *arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(f"{arguments[0]}: not built", done.stderr)
            self.assertIn("tools/quickstart --all", done.stderr)

    def test_its_own_commands_work(self):
        done = run(EMULATOR, "cc", "list")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("cadence", done.stdout)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--cmake", required=True)
    parser.add_argument("--paceline", required=True)
    parser.add_argument("--emulator", required=True)
    options, rest = parser.parse_known_args()
    CMAKE, PACELINE, EMULATOR = options.cmake, options.paceline, options.emulator
    unittest.main(argv=["quickstart_test.py", *rest])
