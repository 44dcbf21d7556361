"""The arms of the ablation (arms.toml), and their edits."""

import dataclasses
import pathlib
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILE = pathlib.Path(__file__).resolve().parent / "arms.toml"


class EditError(Exception):
    pass


@dataclasses.dataclass(frozen=True)
class Arm:
    name: str
    lines: tuple  # of the law
    off: str
    edits: tuple  # (file, text, by)
    held: str = ""  # name of a test that fails with the edits


@dataclasses.dataclass(frozen=True)
class Kept:
    lines: tuple
    why: str
    test: str


def read(file=FILE):
    """(arms, lines that are kept)"""
    with open(file, "rb") as opened:
        table = tomllib.load(opened)
    arms = [Arm(arm["name"], tuple(arm["lines"]), arm["off"],
                tuple((edit["file"], edit["text"], edit["by"]) for edit in arm["edits"]), arm.get("held", ""))
            for arm in table["arm"]]
    return arms, [Kept(tuple(kept["lines"]), kept["why"], kept["test"]) for kept in table["kept"]]


def edited(arm, root=ROOT):
    """{file: its text with the arm's edits}; each text to be replaced must be there exactly once."""
    files = {}
    for file, text, by in arm.edits:
        if file not in files:
            files[file] = (root / file).read_text(encoding="utf-8")
        found = files[file].count(text)
        if found != 1:
            raise EditError(f'arm {arm.name}: {file} has {found} times, instead of once:\n    {text}\n'
                            f"Write the arm's edit in {FILE.relative_to(ROOT)} anew.")
        files[file] = files[file].replace(text, by)
    return files
