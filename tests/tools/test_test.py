#!/usr/bin/env python3
"""tools/test: its usage, and which tests it takes a folder to be covered by."""

import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools/test"


def run(*arguments):
    return subprocess.run([str(SCRIPT), *arguments], capture_output=True, text=True, check=False)


def function(name):
    text = SCRIPT.read_text(encoding="utf-8")
    return re.search(rf"^{name}\(\) {{.*?^}}$", text, re.MULTILINE | re.DOTALL).group(0)


def covering(*paths):
    script = f'ROOT={ROOT}\n{function("executables_for")}\nfor path; do executables_for "$ROOT/$path"; done'
    said = subprocess.run(["bash", "-c", script, "bash", *paths], check=True, capture_output=True, text=True)
    return said.stdout.split()


class Usage(unittest.TestCase):
    def test_help(self):
        done = run("--help")
        self.assertEqual(done.returncode, 0)
        for option in ("--ci", "--all", "--preset", "-R", "PATH"):
            self.assertIn(option, done.stdout)

    def test_mistakes(self):
        for arguments, message in ((["--nonsense"], "unknown argument '--nonsense'"), (["-R"], "-R needs a value"),
                                   (["no/such/folder"], "no/such/folder: there is no such file or folder"),
                                   (["--ci", "--all"], "allowed is one of --ci, --all, --preset"),
                                   (["--all", str(ROOT / "tests")], "--all takes no PATH")):
            done = run(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(message, done.stderr)


class Covering(unittest.TestCase):
    def test_every_room_has_an_executable_that_exists(self):
        lists = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("CMakeLists.txt"))
        there = set(re.findall(r"^paceline_test\((\w+)", lists, re.MULTILINE)) | {"soak"}
        for listing in ROOT.rglob("CMakeLists.txt"):
            room = listing.parent.relative_to(ROOT)
            if room.parts[:1] not in (("cc",), ("dataplane",), ("control",), ("tools",)):
                continue
            covered = covering(str(room))
            self.assertTrue(covered, f"{room}: no test covers it")
            self.assertLessEqual(set(covered), there, room)

    def test_the_nearest_room_counts(self):
        self.assertEqual(covering("dataplane/service/memory/region.cc"), ["service_memory"])
        self.assertEqual(covering("dataplane/port/capture/ring.cc"), ["port"])
        self.assertEqual(covering("dataplane/port/dpdk/dpdk_port.cc"), ["port", "rt_dpdk"])
        self.assertEqual(covering("tests/unit/wire/parse_test.cc"), ["wire"])
        self.assertEqual(covering("docs/transport.md"), [])


if __name__ == "__main__":
    unittest.main()
