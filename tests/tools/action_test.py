#!/usr/bin/env python3
"""The GitHub Action's script (packaging/action/run), called as a runner calls it.

  action_test.py PACELINE
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ACTION = ROOT / "packaging/action"
PATIENCE = 60  # seconds for one command
FILES = ("GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")


class Action(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="paceline-action-")
        self.root = pathlib.Path(self.folder.name)
        for name in ("bin", "temp", "run"):
            (self.root / name).mkdir(mode=0o700)
        (self.root / "bin/paceline").symlink_to(PACELINE)
        for name in FILES:
            (self.root / name).touch()

    def tearDown(self):
        self.folder.cleanup()

    def environment(self, **inputs):
        plain = {name: value for name, value in os.environ.items()
                 if not name.startswith(("PACELINE_", "GITHUB_", "INPUT_", "LD_"))}
        return plain | {f"INPUT_{name.upper()}": value for name, value in inputs.items()} | {
            name: str(self.root / name) for name in FILES} | {
            "PATH": f"{self.root}/bin:{plain['PATH']}", "RUNNER_TEMP": str(self.root / "temp"),
            "XDG_RUNTIME_DIR": str(self.root / "run"), "GITHUB_ACTION_PATH": str(ACTION)}

    def step(self, **inputs):
        """The step, from the folder of the tree, where configs/ is found."""
        done = subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", '"$GITHUB_ACTION_PATH/run"'],
                              cwd=ROOT, env=self.environment(**inputs), text=True, timeout=PATIENCE, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout

    def written(self, name):
        return (self.root / name).read_text(encoding="utf-8")

    def left(self):
        return sorted(path.name for path in (self.root / "temp").iterdir())

    def test_commands_that_succeed(self):
        code, told = self.step(run="ibv_devices || true\necho \"on $PACELINE_NIC\" >done.txt\ncat done.txt; rm done.txt",
                               set="fabric.hosts=3\ncc.algorithm=cadence", timeout="50s")
        self.assertEqual(code, 0, told)
        self.assertIn("NICs h0, h1, h2", told)
        self.assertEqual([self.written(name) for name in FILES], ["", "", ""])
        self.assertEqual(self.left(), [])

    def test_commands_that_fail(self):
        code, told = self.step(run="true | false\necho not reached", capture="h0\nh1")
        self.assertEqual(code, 1, told)
        self.assertNotIn("not reached", told)
        kept = re.fullmatch(r"kept=(.*)\n", self.written("GITHUB_OUTPUT"))[1]
        self.assertEqual(sorted(os.listdir(kept)), ["h0.pcapng", "h1.pcapng", "service.log", "status.txt"])
        self.assertIn("h0", self.written("GITHUB_STEP_SUMMARY"))
        self.assertIn(f"::error title=Paceline::exit status 1; logs are in {kept}", told)

    def test_a_testbed_for_the_next_steps(self):
        code, told = self.step(testbed="configs/testbeds/incast.toml")
        self.assertEqual(code, 0, told)
        name, socket = self.written("GITHUB_ENV").strip().split("=", 1)
        self.assertEqual(name, "PACELINE_SOCKET")
        try:
            done = subprocess.run([PACELINE, "exec", "--nic", "h4", "--", "true"], text=True, timeout=PATIENCE, check=False,
                                  env=self.environment() | {name: socket}, capture_output=True)
            self.assertEqual(done.returncode, 0, done.stderr)
        finally:
            done = subprocess.run([PACELINE, "testbed", "down", "--socket", socket], timeout=PATIENCE, check=False,
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_what_is_refused(self):
        for inputs, words in (({"run": "true", "set": "fabric.hots=3"}, "fabric.hots"),
                              ({"run": "true", "timeout": "soon"}, "--timeout soon"),
                              ({"capture": "all"}, "::error title=Paceline::capture: works with run only"),
                              ({"testbed": "none.toml"}, "none.toml")):
            code, told = self.step(**inputs)
            self.assertEqual(code, 2, told)
            self.assertIn(words, told)
            self.assertEqual(self.written("GITHUB_ENV"), "")
        (self.root / "bin/paceline").unlink()
        if shutil.which("paceline") is None:
            code, told = self.step(run="true", packages=str(self.root))
            self.assertEqual(code, 2, told)
            self.assertIn("has no paceline_*.deb", told)

    def test_every_input_is_handed_on(self):
        text = (ACTION / "action.yml").read_text(encoding="utf-8")
        declared = re.findall(r"^  (\w+):\n    description", text.split("outputs:")[0], re.MULTILINE)
        self.assertEqual(set(re.findall(r"INPUT_(\w+): \$\{\{ inputs\.(\w+) \}\}", text)),
                         {(name.upper(), name) for name in declared})
        script = (ACTION / "run").read_text(encoding="utf-8")
        for name in declared:
            self.assertIn(f"INPUT_{name.upper()}", script)


if __name__ == "__main__":
    PACELINE = str(pathlib.Path(sys.argv[1]).resolve())
    unittest.main(argv=sys.argv[:1])
