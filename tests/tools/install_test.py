#!/usr/bin/env python3
"""`cmake --install` into an empty root: what is where, and that the programs run from there."""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PATIENCE = 60  # seconds for one command


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        root = pathlib.Path(cls.folder.name)
        done = subprocess.run([OPTIONS.cmake, "--install", OPTIONS.build, "--prefix", "/usr"], capture_output=True,
                              text=True, env=os.environ | {"DESTDIR": str(root)}, check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stdout + done.stderr)
        cls.root = root
        cls.usr = root / "usr"
        cls.empty = root / "empty"
        cls.empty.mkdir()
        (root / "run").mkdir(mode=0o700)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_there(self, program, *arguments):
        environment = os.environ | {"XDG_RUNTIME_DIR": str(self.root / "run")}
        return subprocess.run([str(self.usr / "bin" / program), *arguments], cwd=self.empty, env=environment,
                              capture_output=True, text=True, timeout=PATIENCE, check=False)

    def good(self, program, *arguments):
        done = self.run_there(program, *arguments)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_what_is_where(self):
        for name in ("bin/paceline", "bin/pacelined", "bin/paceline-dataplane", "bin/paceline-rank",
                     "share/paceline/league.toml",
                     "share/paceline/experiments/first.toml", "share/paceline/presets/dcqcn.toml",
                     "share/paceline/testbeds/pair.toml", "share/paceline/pacelined.toml",
                     "share/doc/paceline/README.md", "share/doc/paceline/copyright", "include/paceline/cc.h",
                     "include/paceline/cc_rates.h",
                     f"{OPTIONS.libraries}/libpaceline-verbs.so", f"{OPTIONS.libraries}/libpaceline-files.so"):
            self.assertTrue((self.usr / name).is_file(), name)

    def test_modules_of_each_mpi(self):
        for mpi in ("openmpi", "mpich"):
            built = (pathlib.Path(OPTIONS.build) / f"lib/paceline-{mpi}.so").is_file()
            self.assertEqual(built, shutil.which(f"mpicc.{mpi}") is not None, mpi)
            self.assertEqual(built, (self.usr / OPTIONS.libraries / f"paceline-{mpi}.so").is_file(), mpi)

    def test_the_book_is_whole(self):
        checker = pathlib.Path(__file__).resolve().parents[1] / "architecture/book.py"
        done = subprocess.run([sys.executable, "-B", str(checker), "--root", str(self.usr / "share/doc/paceline")],
                              capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_units_start_what_is_installed(self):
        units = sorted((self.usr / "lib/systemd/system").glob("*.service"))
        self.assertEqual([unit.name for unit in units], ["paceline-dataplane.service", "pacelined.service"])
        for unit in units:
            text = unit.read_text(encoding="utf-8")
            for place in re.findall(r"^ExecStart=(\S+)|^Documentation=file://(\S+)", text, re.MULTILINE):
                path = (place[0] or place[1]).lstrip("/")
                self.assertTrue((self.root / path).is_file(), f"{unit.name}: {path}")

    def test_scenarios_of_the_installation(self):
        said = self.good("paceline", "emulate", "configs/scenarios/incast-16.toml")
        self.assertIn("trace hash", said)
        self.good("pacelined", "--check", "--config", str(self.usr / "share/paceline/pacelined.toml"))

    def test_a_file_of_the_folder_comes_first(self):
        there = self.empty / "configs/scenarios"
        there.mkdir(parents=True)
        try:
            (there / "incast-16.toml").write_text("nonsense", encoding="utf-8")
            done = self.run_there("paceline", "emulate", "configs/scenarios/incast-16.toml")
            self.assertEqual(done.returncode, 2)
            self.assertIn("configs/scenarios/incast-16.toml", done.stderr)
        finally:
            shutil.rmtree(self.empty / "configs")
        done = self.run_there("paceline", "emulate", "configs/scenarios/no-such.toml")
        self.assertEqual(done.returncode, 2)

    def test_a_testbed_and_a_program(self):
        self.good("paceline", "testbed", "up", "configs/testbeds/pair.toml")
        try:
            self.assertIn("h0", self.good("paceline", "testbed", "status"))
            if shutil.which("ibv_devices"):
                self.assertIn("h1", self.good("paceline", "exec", "--", "ibv_devices"))
        finally:
            self.good("paceline", "testbed", "down")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--cmake", required=True)
    parser.add_argument("--build", required=True)
    parser.add_argument("--libraries", required=True)
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
