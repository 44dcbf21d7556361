#!/usr/bin/env python3
"""`paceline completion` as shells ask it, and the manual pages: both know every command.

  completion_test.py PACELINE PROGRAM...      the other programs, which have a manual page, too
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATIENCE = 60  # seconds for one command

# What bash does at TAB: words are cut at blanks, "=" and ":", and the function fills COMPREPLY.
BASH = """
compopt() { :; }
source <("$PACELINE" completion bash) || exit 9
COMP_WORDS=("$PACELINE" "$@")
COMP_CWORD=$#
_paceline
((${#COMPREPLY[@]} == 0)) || printf '%s\\n' "${COMPREPLY[@]}"
"""
# zsh's own functions are replaced by ones that say what they were called with.
ZSH = """
compdef() { :; }
_describe() { print -rl -- "${(P@)2}"; }
_files() { print -r -- FILES; }
_normal() { print -rl -- PROGRAM $CURRENT $words; }
source <("$PACELINE" completion zsh) || exit 9
words=("$PACELINE" "$@")
CURRENT=$#words
_paceline
exit 0
"""


def run(*command, **more):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=PATIENCE,
                          stdin=subprocess.DEVNULL, check=False, **more)


def commands():
    """The commands, as --help lists them."""
    text = run(PACELINE, "--help").stdout.split("Subcommands:\n")[1].split("\n\n")[0]
    return [line.split()[0] for line in text.splitlines() if re.match(r"  \S", line)]


class Shells(unittest.TestCase):
    def ask(self, shell, script, *words):
        done = run(*shell, "-c", script, "shell", *words, cwd=self.folder.name,
                   env={"PATH": "/usr/bin:/bin", "PACELINE": str(PACELINE)})
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        return done.stdout.splitlines()

    def bash(self, *words):
        return self.ask(["bash", "--norc"], BASH, *words)

    def zsh(self, *words):
        if shutil.which("zsh") is None:
            self.skipTest("zsh is not installed (tools/packages.txt)")
        return self.ask(["zsh", "-f"], ZSH, *words)

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        (pathlib.Path(self.folder.name) / "a file.toml").touch()

    def tearDown(self):
        self.folder.cleanup()

    def test_commands(self):
        self.assertEqual(sorted(self.bash("")), sorted(commands()))
        self.assertEqual(self.bash("testb"), ["testbed"])
        self.assertEqual(sorted(self.bash("testbed", "")), ["down", "fault", "remove", "status", "up"])
        self.assertEqual(self.bash("no-such", "x"), [])
        self.assertEqual(sorted(line.split(":")[0] for line in self.zsh("testbed", "")),
                         ["down", "fault", "remove", "status", "up"])
        self.assertIn("testbed:Run NICs of a testbed file for unmodified programs", self.zsh("test"))

    def test_every_option_of_every_command(self):
        names = commands()
        script = BASH.replace('COMP_WORDS=("$PACELINE" "$@")\nCOMP_CWORD=$#\n', "")
        each = script.replace("_paceline\n", 'for name; do\nCOMP_WORDS=("$PACELINE" "$name" -)\nCOMP_CWORD=2\n'
                              'echo "command $name"\n_paceline\n', 1) + "done\n"
        told = "\n".join(self.ask(["bash", "--norc"], each, *names)).split("command ")[1:]
        self.assertEqual([part.split("\n")[0] for part in told], names)
        for part in told:
            name, *offered = part.splitlines()
            options = re.findall(r"^  (?:-\w,)*(--[\w-]+)", run(PACELINE, name, "--help").stdout, re.MULTILINE)
            with self.subTest(command=name):
                self.assertIn("--help", options)
                self.assertLessEqual(set(options), set(offered))

    def test_options_and_values(self):
        self.assertEqual(self.bash("testbed", "up", "--fore"), ["--foreground"])
        self.assertEqual(self.bash("testbed", "up", "--set", "cc.algorithm", "=", "cadence", "--fore"), ["--foreground"])
        self.assertEqual(self.bash("testbed", "up", "--set", "x", ""), ["a file.toml"])
        self.assertEqual(self.bash("testbed", "up", "--name", ""), [])
        self.assertEqual(self.bash("ci", "--keep", "a"), ["a file.toml"])
        self.assertEqual(self.bash("emulate", "a"), ["a file.toml"])
        self.assertEqual(sorted(self.bash("emulate", "--on-stop", "")), ["hold", "run-on"])
        self.assertEqual(self.zsh("emulate", "a"), ["FILES"])
        self.assertEqual(self.zsh("emulate", "--on-stop", "h"), ["hold:"])

    def test_a_program_completes_itself(self):
        self.assertIn("bash", self.bash("exec", "--nic", "h0", "--", "bas"))
        self.assertEqual(self.bash("exec", "--nic", "h0", "--", "bash", "--nic", "a"), ["a file.toml"])
        self.assertEqual(self.bash("exec", "bash", "--ni"), [])
        self.assertEqual(self.zsh("ci", "--hosts", "3", "--", "ls", "-l", "x"), ["PROGRAM", "3", "ls", "-l", "x"])
        self.assertEqual(self.zsh("exec", "l"), ["PROGRAM", "1", "l"])


class Manual(unittest.TestCase):
    def test_a_page_for_every_command(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            done = run(ROOT / "packaging/manual", "--out", folder, PACELINE, *PROGRAMS)
            self.assertEqual(done.returncode, 0, done.stderr)
            wanted = {"paceline", *(f"paceline-{command}" for command in commands()), *(p.name for p in PROGRAMS)}
            self.assertEqual({page.stem for page in folder.iterdir()}, wanted)
            text = (folder / "paceline-testbed.1").read_text(encoding="utf-8")
            for part in (".SH paceline testbed fault", "\\-\\-foreground", "paceline testbed down \\-\\-name b"):
                self.assertIn(part, text)
            self.assertNotIn(str(PACELINE.parent), text)
            if shutil.which("groff"):
                for page in sorted(folder.iterdir()):
                    done = run("groff", "-man", "-Tutf8", "-z", "-ww", page)
                    self.assertEqual((done.returncode, done.stderr), (0, ""), page.name)

    def test_what_explains_nothing(self):
        with tempfile.TemporaryDirectory() as name:
            done = run(ROOT / "packaging/manual", "--out", name, "/bin/false")
            self.assertEqual(done.returncode, 1)
            self.assertIn("/bin/false", done.stderr)


if __name__ == "__main__":
    PACELINE, *PROGRAMS = [pathlib.Path(word).resolve() for word in sys.argv[1:]]
    unittest.main(argv=sys.argv[:1])
