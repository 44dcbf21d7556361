#!/usr/bin/env python3
"""tools/setup-dev: its commit hook, in a repository of its own."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77


class Hook(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        for name in ("tools/setup-dev", "tools/lib.sh", "tools/packages.txt", ".clang-format"):
            (self.root / name).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, self.root / name)
        self.run_here("git", "init", "-q")
        self.run_here("git", "config", "user.email", "test@example.org")
        self.run_here("git", "config", "user.name", "test")

    def tearDown(self):
        self.folder.cleanup()

    def run_here(self, *command):
        return subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=False)

    def set_up(self):
        return self.run_here("tools/setup-dev", "--hook-only")

    def commit(self, text):
        (self.root / "a file.cc").write_text(text, encoding="utf-8")
        self.run_here("git", "add", ".")
        return self.run_here("git", "commit", "-q", "-m", "a file")

    def test_only_what_is_formatted_is_committed(self):
        self.assertEqual(self.set_up().returncode, 0)
        refused = self.commit("int  main( ){return 0;}\n")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("not formatted: a file.cc", refused.stderr)
        self.assertEqual(self.commit("int main() { return 0; }\n").returncode, 0)

    def test_what_is_staged_counts(self):
        self.assertEqual(self.set_up().returncode, 0)
        (self.root / "a.cc").write_text("int  main( ){return 0;}\n", encoding="utf-8")
        self.run_here("git", "add", ".")
        (self.root / "a.cc").write_text("int main() { return 0; }\n", encoding="utf-8")
        self.assertNotEqual(self.run_here("git", "commit", "-q", "-m", "a").returncode, 0)

    def test_again_is_fine_and_another_hook_is_kept(self):
        self.assertEqual(self.set_up().returncode, 0)
        self.assertEqual(self.set_up().returncode, 0)
        hook = self.root / ".git/hooks/pre-commit"
        hook.write_text("#!/bin/sh\n", encoding="utf-8")
        done = self.set_up()
        self.assertEqual(done.returncode, 2)
        self.assertIn("another hook is there", done.stderr)
        self.assertEqual(hook.read_text(encoding="utf-8"), "#!/bin/sh\n")


if __name__ == "__main__":
    if not (shutil.which("clang-format") and shutil.which("git")):
        print("skipped: no clang-format or no git (tools/packages.txt)")
        sys.exit(SKIPPED)
    unittest.main()
