#!/usr/bin/env python3
"""The arms of the ablation fit the sources and the law: every edit applies, every line of the law has an arm or a
reason why it has none, and an edited source compiles."""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import arms
import tables

ARMS, KEPT = arms.read()


def numbers_of_the_law():
    page = (arms.ROOT / "docs/algorithms/cadence.md").read_text(encoding="utf-8")
    law = page.split("## The law", 1)[1].split("```")[1]
    return {int(number) for number in re.findall(r"^ ?(\d+)  ", law, re.MULTILINE)}


class Edits(unittest.TestCase):
    def test_each_applies_and_changes_its_file(self):
        for arm in ARMS:
            with self.subTest(arm=arm.name):
                for file, text in arms.edited(arm).items():
                    self.assertNotEqual(text, (arms.ROOT / file).read_text(encoding="utf-8"), file)

    def test_names_differ_and_so_do_edits(self):
        self.assertEqual(len({arm.name for arm in ARMS}), len(ARMS))
        self.assertEqual(len({arm.edits for arm in ARMS}), len(ARMS))

    def test_a_text_that_is_gone_or_twice_there_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            arm = arms.Arm("some", (1,), "-", (("a.cc", "x = 1;", "x = 2;"),))
            for text, times in (("y = 1;", 0), ("x = 1; x = 1;", 2)):
                (root / "a.cc").write_text(text, encoding="utf-8")
                with self.assertRaisesRegex(arms.EditError, f"arm some: a.cc has {times} times"):
                    arms.edited(arm, root)

    def test_an_edited_source_compiles(self):
        arm = next(arm for arm in ARMS if arm.name == "little-first")
        for file, text in arms.edited(arm).items():
            done = subprocess.run([COMPILER, "-std=c++20", "-fsyntax-only", "-x", "c++", "-I", str(arms.ROOT), "-"],
                                  input=text, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, f"{file}:\n{done.stderr}")


class Law(unittest.TestCase):
    def test_each_line_has_an_arm_or_a_reason(self):
        law = numbers_of_the_law()
        with_arm = {line for arm in ARMS for line in arm.lines}
        kept = {line for entry in KEPT for line in entry.lines}
        self.assertGreater(len(law), 30)
        self.assertEqual(law, with_arm | kept)
        self.assertEqual(with_arm & kept, set())

    def test_what_is_kept_has_a_test(self):
        tests = "".join(file.read_text(encoding="utf-8") for file in (arms.ROOT / "tests/unit/cc").glob("cadence*.cc"))
        for entry in KEPT:
            self.assertIn(f'"{entry.test}"', tests)
            self.assertTrue(entry.why)


    def test_what_holds_an_arm_is_a_test(self):
        tests = "".join(file.read_text(encoding="utf-8") for folder in ("sim", "unit/cc")
                        for file in (arms.ROOT / "tests" / folder).glob("cadence*.cc"))
        held = [arm.held for arm in ARMS if arm.held]
        self.assertGreater(len(held), 5)
        for name in held:
            self.assertIn(f'"{name}"', tests)


class Statistics(unittest.TestCase):
    def test_ratio_of_pairs(self):
        self.assertEqual(tables.effect("efficiency", [1.0, 2.0], [1.1, 2.2]).text(), "+10.0")
        change = tables.effect("slowdown_p99", [2.0, 4.0, 2.0], [2.2, 4.0, 2.1])
        # Logs 0.0953, 0, 0.0488: mean 0.0480, standard error 0.0275, t 4.303: up to exp(0.1664).
        self.assertAlmostEqual(change.mean, 4.92, 2)
        self.assertAlmostEqual(change.half, 13.19, 2)
        self.assertEqual(change.text(), tables.NOTHING)

    def test_difference_of_queues(self):
        # 100, 105, 95: standard error 2.89, t 4.303.
        change = tables.effect("queue_max_bytes", [100e3, 110e3, 90e3], [200e3, 215e3, 185e3])
        self.assertEqual(change.text(), "+100 ± 12")

    def test_little_is_not_spelled(self):
        self.assertEqual(tables.effect("efficiency", [1.0, 1.0], [1.004, 1.004]).text(), tables.NOTHING)
        self.assertEqual(tables.effect("queue_max_bytes", [1e6, 1e6], [1.009e6, 1.009e6]).text(), tables.NOTHING)

    def test_an_arm_without_figures_says_what_holds_it(self):
        arm = arms.Arm("some", (1,), "no G", (), "G: a test")
        for after, text in (([1.0, 1.0], "no G; held by \"G: a test\""), ([1.1, 1.1], "| no G |")):
            effects = {("some", "cell", measure): tables.effect(measure, [1.0, 1.0], after) for measure in tables.MEASURES}
            self.assertIn(text, tables.brief([arm], ["cell"], effects))

    def test_runs_that_do_not_finish_are_named(self):
        self.assertEqual(tables.effect("efficiency", [1.0, 1.0], [1.0, None]).text(), "1 of 2 unfinished")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compiler", default="c++", help="C++ compiler (default: %(default)s)")
    arguments, rest = parser.parse_known_args()
    COMPILER = arguments.compiler
    unittest.main(argv=[sys.argv[0], *rest])
