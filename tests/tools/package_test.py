#!/usr/bin/env python3
"""The Debian packages of this build: what lintian says, and how they are installed, used, removed and purged in a
root of their own, laid over this machine's. Installing needs root for mounts; skipped (exit code 77) elsewhere."""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77
INSIDE = "PACELINE_PACKAGES"  # the folder, in the process that may mount
NAMES = ["libpaceline-verbs", "paceline", "paceline-cc-dev", "paceline-daemon"]
# What dpkg and apt keep of every package ever seen.
NOT_OURS = ("var/lib/dpkg", "var/log", "var/cache", "var/lib/systemd/deb-systemd-helper-enabled", "tmp", "root", "run")
# Written again by adduser, deluser and triggers with what they had.
REWRITTEN = ("etc/.pwd.lock", "etc/passwd", "etc/group", "etc/shadow", "etc/gshadow", "etc/ld.so.cache", "etc/subuid", "etc/subgid")


def run(*command, **more):
    return subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=500, check=False, **more)


def skip(reason):
    print(f"skipped: {reason}")
    return SKIPPED


class Report:
    """A line for each claim, and whether all held."""

    def __init__(self):
        self.bad = 0

    def check(self, holds, what, told=""):
        print(f"{'ok  ' if holds else 'FAIL'} {what}" + ("" if holds else f"\n{told}"), flush=True)
        self.bad += not holds


def outside():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True)
    options = parser.parse_args()
    if shutil.which("dh") is None:
        return skip("debhelper is not installed (tools/packages.txt)")
    report = Report()
    done = run(ROOT / "tools/package", "--build", "/nowhere")
    report.check(done.returncode == 2 and "/nowhere: no build" in done.stdout, "a build that is none", done.stdout)
    with tempfile.TemporaryDirectory(prefix="paceline-package-") as name:
        folder = pathlib.Path(name)
        done = run(ROOT / "tools/package", "--build", options.build, "--out", folder / "debs", "--quick")
        made = sorted(path.name.split("_")[0] for path in folder.glob("debs/*.deb"))
        report.check(done.returncode == 0 and made == NAMES, f"packages: {made}", done.stdout)
        if report.bad:
            return 1
        if shutil.which("lintian"):
            done = run("lintian", "--fail-on", "error", "--allow-root", *folder.glob("debs/*.deb"))
            report.check(done.returncode == 0, "lintian finds no errors", done.stdout)
        else:
            print("not done: lintian is not installed (tools/packages.txt)")
        if os.geteuid() != 0:
            return 1 if report.bad else skip("installing them needs root, to mount")
        if not shutil.which("unshare") or run("unshare", "-m", "true").returncode != 0:
            return 1 if report.bad else skip("a mount namespace cannot be made here (unshare -m)")
        code = subprocess.run(["unshare", "-m", sys.executable, "-B", __file__], check=False,
                              env=os.environ | {INSIDE: name}).returncode
        return 1 if report.bad else code


def left_in(upper):
    """Files and folders that the upper layer has and the machine has not, and those that it hides."""
    for path in sorted(upper.rglob("*")):
        name = path.relative_to(upper).as_posix()
        if name.startswith(NOT_OURS) or name in REWRITTEN or name.removesuffix("-") in REWRITTEN:
            continue
        there = pathlib.Path("/") / name
        if path.is_char_device() or (not path.is_dir() or not there.is_dir()):
            yield name


def inside(folder):
    """All mounts go with this process."""
    layers, root = folder / "layers", folder / "root"
    root.mkdir()
    layers.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", layers], check=True)
    for name in ("upper", "work"):
        (layers / name).mkdir()
    mounted = run("mount", "-t", "overlay", "-o", f"lowerdir=/,upperdir={layers}/upper,workdir={layers}/work", "overlay", root)
    if mounted.returncode != 0:
        return skip(f"no file system may be laid over the root here: {mounted.stdout.strip()}")
    for kind, name in (("proc", "proc"), ("tmpfs", "run"), ("tmpfs", "tmp")):
        subprocess.run(["mount", "-t", kind, kind, root / name], check=True)
    subprocess.run(["mount", "--rbind", "/dev", root / "dev"], check=True)
    shutil.copytree(folder / "debs", root / "tmp/debs")
    report = Report()
    environment = {"PATH": "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive",
                   "XDG_RUNTIME_DIR": "/tmp"}

    def there(said, *command):
        done = run("chroot", root, *command, env=environment)
        report.check(done.returncode == 0 and said in done.stdout, " ".join(command), f"{done.returncode}\n{done.stdout}")
        return done.stdout

    there("", "sh", "-c", "dpkg -i /tmp/debs/*.deb")
    if report.bad:
        return 1
    there("paceline ", "paceline", "--version")
    there("trace hash", "sh", "-c", "cd /tmp && paceline emulate configs/scenarios/incast-16.toml")
    there("", "sh", "-c", "bash -c '. /usr/share/bash-completion/completions/paceline; complete -p paceline'")
    for page in ("paceline", "paceline-ci", "paceline-dataplane", "pacelined"):
        there("", "sh", "-c", f"gzip -t /usr/share/man/man1/{page}.1.gz")
    there("paceline", "getent", "passwd", "paceline")
    there("", "pacelined", "--check", "--config", "/etc/paceline/pacelined.toml")
    if shutil.which("ibv_rc_pingpong"):
        # The README's section, as another user than root.
        there("1000 iters", "su", "-s", "/bin/sh", "nobody", "-c",
              "cd /tmp; export XDG_RUNTIME_DIR=; paceline testbed up configs/testbeds/pair.toml >/dev/null || exit 3;"
              " paceline exec --nic h1 -- ibv_rc_pingpong >/dev/null & sleep 1;"
              " paceline exec --nic h0 -- ibv_rc_pingpong -c 127.0.0.1; code=$?; wait; paceline testbed down && exit $code")
        there("1000 iters", "paceline", "ci", "--", "sh", "-c",
              "ibv_rc_pingpong -d h1 >/dev/null & sleep 1; ibv_rc_pingpong -d h0 -c 127.0.0.1")
    units = ["/lib/systemd/system/pacelined.service", "/lib/systemd/system/paceline-dataplane.service"]
    if shutil.which("systemd-analyze"):
        there("", "systemd-analyze", "verify", *units)
    there("", "pkg-config", "--exists", "paceline-cc")
    (layers / "upper/var/lib/paceline").mkdir()  # what a daemon would have written

    there("", "dpkg", "-r", *reversed(NAMES))
    kept = sorted(name for name in left_in(layers / "upper") if not name.startswith("var/lib/paceline"))
    report.check(kept == ["etc/paceline", "etc/paceline/pacelined.toml", "etc/paceline/testbed.toml"],
                 f"removed: the settings stay, and nothing else: {kept}")
    there("", "dpkg", "--purge", *reversed(NAMES))
    left = list(left_in(layers / "upper"))
    report.check(not left, f"purged: nothing stays: {left}")
    gone = run("chroot", root, "getent", "passwd", "paceline", env=environment)
    report.check(gone.returncode == 2, "purged: no user stays", gone.stdout)
    return 1 if report.bad else 0


if __name__ == "__main__":
    sys.exit(inside(pathlib.Path(os.environ[INSIDE])) if INSIDE in os.environ else outside())
