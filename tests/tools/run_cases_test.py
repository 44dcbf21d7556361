#!/usr/bin/env python3
"""tests/support/run_cases.py: what it says of cases that fail, crash, hang and skip themselves."""

import pathlib
import subprocess
import sys
import unittest

RUNNER = pathlib.Path(__file__).resolve().parents[1] / "support/run_cases.py"


def run(spec, *options):
    done = subprocess.run([sys.executable, "-B", str(RUNNER), *options, EXECUTABLE, spec], capture_output=True,
                          text=True, check=False)
    return done.returncode, done.stdout


class RunCases(unittest.TestCase):
    def test_all_pass(self):
        self.assertEqual(run("[.good]")[0], 0)

    def test_one_fails_and_is_named(self):
        code, said = run("[.mixed]")
        self.assertEqual(code, 1)
        self.assertIn("FAILED: fails\n", said)
        self.assertNotIn("FAILED: passes", said)

    def test_one_crashes_and_is_named(self):
        code, said = run("[.crash]")
        self.assertEqual(code, 1)
        self.assertIn("FAILED: crashes\n", said)
        self.assertNotIn("FAILED: passes", said)

    def test_one_hangs_and_is_named(self):
        code, said = run("[.hangs]", "--case-seconds", "1")
        self.assertEqual(code, 1)
        self.assertIn("FAILED: hangs\n", said)
        self.assertIn("not finished after 1 s", said)

    def test_one_that_skips_itself_is_skipped(self):
        code, said = run("[.skips]")
        self.assertEqual(code, 77)
        self.assertIn("skipped: no such device", said)

    def test_company_is_named_as_the_cause(self):
        code, said = run("[.good_alone]")
        self.assertEqual(code, 1)
        self.assertIn("they fail in one process only", said)

    def test_a_spec_without_cases_is_an_error(self):
        self.assertEqual(run("[no_such_tag]")[0], 1)


if __name__ == "__main__":
    EXECUTABLE = sys.argv.pop(1)
    unittest.main()
