#!/usr/bin/env python3
"""`cmake --install`, tried where nothing else of this tree is: the installation is laid over this machine's /usr, and
that is the root of the programs that run. Needs root for mounts of its own; skipped (exit code 77) elsewhere."""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
INSIDE = "PACELINE_INSTALL_ROOT"  # the folder, in the process that may mount


def run(*command, **more):
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=100, check=False, **more)


def skip(reason):
    print(f"skipped: {reason}")
    return SKIPPED


def outside():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cmake", required=True)
    parser.add_argument("--build", required=True)
    options = parser.parse_args()
    if os.geteuid() != 0:
        return skip("needs root, to mount")
    if not shutil.which("unshare") or run("unshare", "-m", "true").returncode != 0:
        return skip("a mount namespace cannot be made here (unshare -m)")
    with tempfile.TemporaryDirectory(prefix="paceline-install-") as folder:
        done = run(options.cmake, "--install", options.build, "--prefix", "/usr",
                   env=os.environ | {"DESTDIR": f"{folder}/installed"})
        if done.returncode != 0:
            print(done.stdout)
            return 1
        return subprocess.run(["unshare", "-m", sys.executable, "-B", __file__], env=os.environ | {INSIDE: folder},
                              check=False).returncode


def inside(folder):
    """All mounts go with this process."""
    root = folder / "root"
    for name in ("usr", "tmp", "etc", "run", "proc", "dev"):
        (root / name).mkdir(parents=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")
    mounted = run("mount", "-t", "overlay", "-o", f"ro,lowerdir={folder}/installed/usr:/usr", "overlay", root / "usr")
    if mounted.returncode != 0:
        return skip(f"no file system may be laid over another here: {mounted.stdout.strip()}")
    subprocess.run(["mount", "-t", "proc", "proc", root / "proc"], check=True)
    subprocess.run(["mount", "--bind", "/dev", root / "dev"], check=True)

    bad = 0
    units = sorted(f"/{path.relative_to(folder / 'installed')}" for path in (folder / "installed").rglob("*.service"))
    commands = [(["paceline", "--version"], "paceline "), (["pacelined", "--help"], "--config"),
                (["paceline-dataplane", "--help"], "--testbed"),
                (["paceline", "emulate", "configs/scenarios/incast-16.toml"], "trace hash"),
                (["pacelined", "--check", "--config", "/usr/share/paceline/pacelined.toml"], "")]
    if (root / "usr/bin/systemd-analyze").exists():
        commands.append((["systemd-analyze", "verify", *units], ""))
    for command, said in commands:
        done = run("chroot", root, *command, env={"PATH": "/usr/sbin:/usr/bin", "HOME": "/tmp", "XDG_RUNTIME_DIR": "/tmp"})
        good = done.returncode == 0 and said in done.stdout
        print(f"{'ok  ' if good else 'FAIL'} {' '.join(command)}" + ("" if good else f": {done.returncode}\n{done.stdout}"))
        bad += not good
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(inside(pathlib.Path(os.environ[INSIDE])) if INSIDE in os.environ else outside())
