#!/usr/bin/env python3
"""What each mechanism of `cadence` gives: every arm of arms.toml leaves one out, and runs the full league and README's
experiment (configs/experiments/first.toml) in virtual time, with the same seeds as the whole law.

  tests/ablation/ablation.py                          all arms, four seeds: some hours of one core
  tests/ablation/ablation.py --arms crowd,square      two of them
  tests/ablation/ablation.py --list                   the arms: lines of the law, what is off
  tests/ablation/ablation.py --no-run                 tables of what has been run so far

The tracked files are copied to OUT/tree and built there; for each arm the edits are made, `paceline` is built again,
and the edits are taken back. OUT/results has a file for every arm and seed. What has been run by the same sources is
not run again: after Ctrl-C the same command goes on.

Printed, and written to OUT/ablation.md: effects of leaving the arm's mechanism out, paired by seed, with Student's 95 %
intervals. An effect is spelled if its interval excludes 0 and it is not small; all others are a dot. One interval
in twenty excludes 0 where there is no effect. OUT/ablation.json has every effect and value.

Exit: 0 done, 1 a build or a run failed, 2 wrong arguments or an edit that does not apply, 130 interrupted.
"""

import argparse
import fcntl
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib

import arms as arms_of_the_law
import tables

ROOT = arms_of_the_law.ROOT
WHOLE = arms_of_the_law.Arm("whole", (), "-", ())
LEAGUE = "configs/league.toml"
README = "configs/experiments/first.toml"
PREFIX = "first-"  # of the scenarios of README's experiment
ENTRY = "cadence"
NO_RESULT = ("docs/", "tests/", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")  # change no run
INTERRUPTED = 130


class Failed(Exception):
    pass


def run(command, folder, good=(0,)):
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        try:
            out, errors = child.communicate()
        except KeyboardInterrupt:
            child.send_signal(signal.SIGINT)  # not killed: ninja has compilers to end
            child.communicate()
            raise
    if child.returncode not in good:
        said = "\n".join((out + errors).splitlines()[-30:])
        raise Failed(f"{' '.join(map(str, command))}: exit {child.returncode}\n{said}")
    return out


def tracked():
    listed = run(["git", "ls-files", "-z"], ROOT).split("\0")
    return [name for name in listed if name and (ROOT / name).is_file()]


def toml(value):
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + " }"
    return json.dumps(value)


def merged(below, above):
    out = dict(below)
    for key, value in above.items():
        out[key] = merged(out[key], value) if isinstance(value, dict) and isinstance(out.get(key), dict) else value
    return out


class Tree:
    """A copy of the tracked files with a build of its own."""

    def __init__(self, folder, jobs):
        self.folder = folder
        self.jobs = jobs
        self.digest = ""  # of the sources that results depend on
        self.configured = False

    def copy(self):
        """Writes what differs alone: what was built stays new."""
        names = tracked()
        digest = hashlib.sha256()
        for name in names:
            text = (ROOT / name).read_bytes()
            if not name.startswith(NO_RESULT):
                digest.update(f"{name} {len(text)}\n".encode() + text)
            copy = self.folder / name
            if not copy.is_file() or copy.read_bytes() != text:
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, copy)
        expected = set(names)
        for file in self.folder.rglob("*"):
            name = file.relative_to(self.folder).as_posix()
            if file.is_file() and not name.startswith("build/") and name not in expected:
                file.unlink()
        self.digest = digest.hexdigest()

    def build(self, files):
        """`paceline` of the tree with these files instead of its own."""
        if not self.configured:
            run(["cmake", "--preset", "quickstart"], self.folder)
            self.configured = True
        try:
            for name, text in files.items():
                (self.folder / name).write_text(text, encoding="utf-8")
            run(["ninja", "-C", "build/release", f"-j{self.jobs}", "paceline"], self.folder)
        finally:
            for name in files:
                shutil.copy(ROOT / name, self.folder / name)

    def program(self):
        return next(file for file in (self.folder / "build/release").rglob("paceline") if file.is_file())

    def write_league(self, seed):
        """The league with this seed, and the scenarios of README's experiment as scenarios of it: (file, names)."""
        text, found = re.subn(r"(?m)^seed = \d+", f"seed = {seed}", (self.folder / LEAGUE).read_text(encoding="utf-8"))
        if found != 1:
            raise Failed(f"{LEAGUE}: has no line with its seed")
        names = [scenario["name"] for scenario in tomllib.loads(text)["scenario"]]
        experiment = tomllib.loads((self.folder / README).read_text(encoding="utf-8"))
        for scenario in experiment["scenario"]:
            name = PREFIX + scenario.pop("name")
            names.append(name)
            cell = merged(experiment["common"], scenario)
            cell.pop("max_hops")  # the league has its own
            algorithm = {"algorithm": ENTRY, "fallback": "dcqcn", "fallback_profile": "paper"}
            cell = {"schema": 1, "name": name, **cell, "cc": algorithm}
            lines = [f"{key} = {toml(value)}\n" for key, value in cell.items()]
            (self.folder / f"configs/{name}.toml").write_text("".join(lines), encoding="utf-8")
            text += f'\n[[scenario]]\nname = "{name}"\nfile = "{name}.toml"\n'
        file = self.folder / "configs/ablation.toml"
        file.write_text(text, encoding="utf-8")
        return file, names


class Results:
    """A file for every arm and seed."""

    def __init__(self, folder, digest):
        self.folder = folder
        self.digest = digest

    def file(self, arm, seed):
        return self.folder / f"{arm.name}.{seed}.json"

    def key(self, arm):
        return hashlib.sha256((self.digest + repr(arm.edits)).encode()).hexdigest()

    def get(self, arm, seed):
        """{scenario: {measure: value}}, None: not run."""
        try:
            stored = json.loads(self.file(arm, seed).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        return stored["cells"] if stored["key"] == self.key(arm) else None

    def put(self, arm, seed, cells):
        self.folder.mkdir(parents=True, exist_ok=True)
        part = self.folder / "part"
        part.write_text(json.dumps({"key": self.key(arm), "cells": cells}), encoding="utf-8")
        part.replace(self.file(arm, seed))


def run_league(tree, program, seed, out):
    file, _ = tree.write_league(seed)
    # Exit 1: a run failed; its cell says so.
    run([program, "league", file, "--entries", ENTRY, "--repetitions", "1", "--jobs", str(tree.jobs), "--fresh",
         "--no-page", "--quiet", "--out", out / "league.json", "--runs", out / "league.runs.jsonl"], tree.folder, (0, 1))
    cells = {}
    for cell in json.loads((out / "league.json").read_text(encoding="utf-8"))["cells"]:
        done = cell["status"] == "ok"
        cells[cell["scenario"]] = {measure: cell["measures"][measure]["values"][0] if done else None
                                   for measure in tables.MEASURES}
    return cells


def run_arms(chosen, seeds, tree, results, out):
    left = [(arm, [seed for seed in seeds if results.get(arm, seed) is None]) for arm in chosen]
    left = [(arm, missing) for arm, missing in left if missing]
    begin = time.monotonic()
    for number, (arm, missing) in enumerate(left):
        spent = time.monotonic() - begin
        rest = f", {spent / number * (len(left) - number) / 60:.0f} min left" if number > 0 else ""
        print(f"[{number + 1}/{len(left)}] {arm.name}: {arm.off}{rest}", flush=True)
        tree.build(arms_of_the_law.edited(arm))
        program = out / "paceline"
        shutil.copy(tree.program(), program)
        for seed in missing:
            results.put(arm, seed, run_league(tree, program, seed, out))


def effects_of(chosen, seeds, results, scenarios):
    whole = [results.get(WHOLE, seed) for seed in seeds]
    effects = {}
    for arm in chosen:
        without = [results.get(arm, seed) for seed in seeds]
        for name in scenarios:
            for measure in tables.MEASURES:
                before = [cells[name][measure] for cells in whole]
                if None in before:
                    raise Failed(f"{name}: the whole law does not finish")
                effects[arm.name, name, measure] = tables.effect(measure, before,
                                                                 [cells[name][measure] for cells in without])
    return effects


def report(chosen, seeds, results, scenarios, out):
    missing = [arm.name for arm in chosen if any(results.get(arm, seed) is None for seed in seeds)]
    chosen = [arm for arm in chosen if arm.name not in missing]
    effects = effects_of(chosen, seeds, results, scenarios)
    command = f"tests/ablation/ablation.py --seeds {','.join(map(str, seeds))}"
    text = (f"# Ablation of cadence\n\n`{command}`: league of full size and README's experiment (`{PREFIX}`), "
            f"{len(seeds)} seeds; change without the mechanism, paired, 95 %.\n\n"
            + (f"Not run yet: {', '.join(missing)}.\n\n" if missing else "")
            + tables.brief(chosen, scenarios, effects) + "\n" + tables.full(chosen, scenarios, effects))
    print(text)
    (out / "ablation.md").write_text(text, encoding="utf-8")
    data = {"command": command, "seeds": seeds, "scenarios": scenarios, "arms": [
        {"name": arm.name, "lines": arm.lines, "off": arm.off, "effects": [
            {"scenario": name, "measure": measure, "unit": tables.MEASURES[measure][1], "pairs": change.pairs,
             "unfinished": change.unfinished, "mean": round(change.mean, 4), "half": round(change.half, 4)}
            for (of, name, measure), change in effects.items() if of == arm.name]} for arm in chosen],
        "values": {arm.name: {seed: results.get(arm, seed) for seed in seeds} for arm in (WHOLE, *chosen)}}
    (out / "ablation.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arms", metavar="NAME,...", help="these alone, in this order (default: all)")
    parser.add_argument("--seeds", metavar="N,...", default="24251,35353,46467,57571",
                        help="seeds of the league, one run of every scenario each (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N",
                        help="compilers, and runs, at a time (default: one per core)")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/ablation", metavar="OUT",
                        help="folder for the copy, its build and the results (default: build/ablation)")
    parser.add_argument("--no-run", action="store_true", help="tables of the arms that have been run with these seeds")
    parser.add_argument("--list", action="store_true", help="print the arms and end")
    args = parser.parse_args()
    args.known, kept = arms_of_the_law.read()
    if args.list:
        for arm in args.known:
            print(f"{arm.name:20} {', '.join(map(str, arm.lines)):18} {arm.off}")
        for entry in kept:
            print(f"{'-':20} {', '.join(map(str, entry.lines)):18} {entry.why}")
        sys.exit(0)
    try:
        args.seeds = [int(seed) for seed in args.seeds.split(",")]
    except ValueError:
        parser.error(f"--seeds {args.seeds}: expected whole numbers, separated by commas")
    if not 2 <= len(args.seeds) <= tables.MOST_PAIRS or len(set(args.seeds)) != len(args.seeds):
        parser.error(f"--seeds: expected 2 to {tables.MOST_PAIRS} different ones; one pair has no interval")
    if args.jobs < 1:
        parser.error(f"--jobs {args.jobs}: expected 1 or more")
    by_name = {arm.name: arm for arm in args.known}
    names = list(by_name) if args.arms is None else args.arms.split(",")
    for name in names:
        if name not in by_name:
            parser.error(f"--arms: no arm is named {name}; --list prints them")
    args.chosen = [by_name[name] for name in names]
    args.out = args.out.resolve()
    return args


def ablate(args, lock):
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Failed(f"another ablation works in {args.out}") from None
    tree = Tree(args.out / "tree", args.jobs)
    tree.copy()
    results = Results(args.out / "results", tree.digest)
    _, scenarios = tree.write_league(args.seeds[0])
    if not args.no_run:
        run_arms([WHOLE, *args.chosen], args.seeds, tree, results, args.out)
    if any(results.get(WHOLE, seed) is None for seed in args.seeds):
        raise Failed("the whole law has not been run with these seeds by these sources")
    report(args.chosen, args.seeds, results, scenarios, args.out)
    return 0


def main():
    args = arguments()
    try:
        for arm in args.chosen:  # before an hour is spent on the others
            arms_of_the_law.edited(arm)
    except arms_of_the_law.EditError as error:
        print(f"ablation: {error}", file=sys.stderr)
        return 2
    args.out.mkdir(parents=True, exist_ok=True)
    try:
        with open(args.out / "lock", "w", encoding="utf-8") as lock:
            return ablate(args, lock)
    except Failed as error:
        print(f"ablation: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nablation: interrupted; the same command goes on", file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
