#!/usr/bin/env python3
"""Tests of tools/dev/rename_includes, on small repositories of their own."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools/dev/rename_includes"

TREE = {
    "room/CMakeLists.txt": 'library(room)\nset(fast "${CMAKE_CURRENT_SOURCE_DIR}/desk.cc" desk.cc other_desk.cc)\n',
    "room/desk.h": "struct Desk { int desk; };\n",
    "room/desk.cc": '#include "room/desk.h"\n#include "room/port.h"\n',
    "room/port.h": '// desk.cc reads this; see room/desk and room/desktop.\n#include "other/room/desk.h"\n',
    "rules.py": 'MAY = ("room/desk", "room/port", "room")\n',
    "top/room/a.h": "// top/room/a.h, room/a.h, a.h\n",
    "docs/page.md": "[desk](../room/desk.h), `port.h`, A Desk, a HelpDesk.\n",
}
LIST = ("top/room/a.h -> top/room/sub/a.h\nroom/desk.h -> room/sub/table.h\n"
        "room/desk.cc -> room/sub/table.cc\nDesk -> Table\n")


class Rename(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        subprocess.run(["git", "init", "-q", self.root], check=True)
        self.write(TREE)
        self.git("-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "-qm", "all")

    def git(self, *command):
        subprocess.run(["git", "-C", self.root, *command], check=True)

    def write(self, files):
        for path, text in files.items():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(text, encoding="utf-8")
        self.git("add", "-A")

    def run_script(self, moves, *options, code=0):
        done = subprocess.run([sys.executable, "-B", SCRIPT, "--root", self.root, *options, "-"],
                              input=moves, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def read(self, path):
        return (self.root / path).read_text(encoding="utf-8")

    def everything(self):
        return {file.relative_to(self.root).as_posix(): file.read_text("utf-8")
                for file in self.root.rglob("*") if file.is_file() and ".git" not in file.parts}

    def test_everything_that_names_a_file_follows_it(self):
        self.run_script(LIST)
        self.assertEqual(self.everything(), {
            "room/CMakeLists.txt": 'library(room)\nset(fast "${CMAKE_CURRENT_SOURCE_DIR}/sub/table.cc" '
                                   "sub/table.cc other_desk.cc)\n",
            "room/sub/table.h": "struct Table { int desk; };\n",
            "room/sub/table.cc": '#include "room/sub/table.h"\n#include "room/port.h"\n',
            "room/port.h": "// table.cc reads this; see room/sub/table and room/desktop.\n"
                           '#include "other/room/desk.h"\n',
            "top/room/sub/a.h": "// top/room/sub/a.h, room/sub/a.h, a.h\n",
            "rules.py": 'MAY = ("room/sub/table", "room/port", "room")\n',
    "docs/page.md": "[desk](../room/sub/table.h), `port.h`, A Table, a HelpDesk.\n",
        })

    def test_a_second_run_changes_nothing(self):
        # The folder has the name of the file that moved into it.
        moves = "room/desk.h -> room/desk/desk.h\nroom/desk.cc -> room/desk/desk.cc\n"
        self.run_script(moves)
        before = self.everything()
        self.assertIn("0 files rewritten", self.run_script(moves))
        self.assertEqual(self.everything(), before)

    def test_a_branch_that_added_files_and_includes(self):
        self.run_script(LIST)
        self.write({"room/late.h": '#include "room/desk.h"\n', "tests/late_test.cc": '#include "room/desk.h"\n'})
        output = self.run_script("R100\troom/desk.h\troom/sub/table.h\n", "--added-since", "HEAD")
        self.assertIn("room/late.h: added here, and left where it is", output)
        self.assertNotIn("room/port.h: added here", output)
        self.assertEqual(self.read("room/late.h"), '#include "room/sub/table.h"\n')
        self.assertEqual(self.read("tests/late_test.cc"), '#include "room/sub/table.h"\n')

    def test_a_file_that_is_in_the_way(self):
        self.write({"room/sub/table.cc": ""})
        before = self.everything()
        output = self.run_script(LIST, code=1)
        self.assertIn("'room/desk.cc' and 'room/sub/table.cc' are both there", output)
        self.assertEqual(self.everything(), before)

    def test_a_list_that_is_wrong(self):
        for text, expected in (
            ("room/desk.h room/table.h\n", "line 1: expected 'old -> new'"),
            ("\nroom/desk.h -> Table\n", "line 2: a path becomes a path"),
            ("Desk -> Table\nDesk -> Chair\n", "line 2: 'Desk' has two new names: 'Table', 'Chair'"),
            ("a/b.h -> c/d.h\na/e.h -> c/d.h\n", "two files become 'c/d.h'"),
        ):
            self.assertIn(expected, self.run_script(text, code=2))
        self.assertEqual(self.everything(), TREE)


if __name__ == "__main__":
    unittest.main()
