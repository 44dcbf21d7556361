"""Every file in configs/testbeds does as shipped what its head says: `testbed up` starts it, or refuses it
in the words of its head. Those on interfaces of the kernel run in a network namespace of this test's own."""

import os
import re
import shutil
import subprocess
import sys
import tempfile

from testbed import ROOT, need, say, skip

PACELINE = sys.argv[1]
FOLDER = os.path.join(ROOT, "configs/testbeds")
INSIDE = "--inside"


def check(holds, what):
    if not holds:
        raise AssertionError(what)


def head_of(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    return "\n".join(line for line in text[:text.index("schema")].splitlines()), text


def run(*command, environment=None):
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=100,
                          check=False)


def up(environment, path):
    return run(PACELINE, "testbed", "up", path, environment=environment)


def shell_lines(head):
    """The commands that the head tells to run before."""
    return [line[1:].strip() for line in head.splitlines() if line.startswith("#   ip link ")]


def before(head, name):
    """Other testbeds that the head starts before this one: file and name."""
    beds = re.findall(r"^#   paceline testbed up configs/testbeds/(\S+) --name (\S+)$", head, re.M)
    files = [file for file, _ in beds]
    return beds[:files.index(name)] if name in files else []


def started(environment, path, head):
    others = before(head, os.path.basename(path))
    try:
        for file, name in others:
            done = run(PACELINE, "testbed", "up", os.path.join(FOLDER, file), "--name", name,
                       environment=environment)
            check(done.returncode == 0, done.stderr)
        return started_alone(environment, path)
    finally:
        for _, name in others:
            run(PACELINE, "testbed", "down", "--name", name, environment=environment)


def started_alone(environment, path):
    done = up(environment, path)
    if "built without DPDK" in done.stderr:
        return "built without DPDK"
    check(done.returncode == 0, f"testbed up {path}: exit status {done.returncode}\n{done.stderr}")
    try:
        status = run(PACELINE, "testbed", "status", environment=environment)
        check(status.returncode == 0 and "\nnic " in status.stdout, status.stdout + status.stderr)
        seen = run(PACELINE, "exec", "--", "ibv_devinfo", environment=environment)
        check(seen.returncode == 0 and "hca_id" in seen.stdout, seen.stdout + seen.stderr)
        return " ".join(re.findall(r"hca_id:\s*(\S+)", seen.stdout))
    finally:
        ended = run(PACELINE, "testbed", "down", environment=environment)
        check(ended.returncode == 0, ended.stderr)


def refused(environment, path, head):
    """A file to be filled in: every placeholder is named with its place, as the head has it."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    places = [(number, word) for number, line in enumerate(lines, 1)
              for word in re.findall(r'"(<[^>]+>)"', line) if not line.startswith("#")]
    check(places, f"{path}: nothing to fill in")
    done = up(environment, path)
    check(done.returncode == 2, f"exit status {done.returncode}: {done.stderr}")
    for number, word in places:
        check(f'"{word}"' in head, f"the head does not name {word}")
        check(re.search(rf":{number}:\d+: .*{re.escape(word)}.*placeholder", done.stderr),
              f"line {number}, {word}: {done.stderr}")
    check(len(done.stderr.strip().splitlines()) == len(places), done.stderr)
    return f"refused: {len(places)} places to fill in"


def main():
    need("ibv_devinfo", "ip", "unshare")
    if INSIDE not in sys.argv:
        flags = ["-n"] if os.geteuid() == 0 else ["-rn"]
        if run("unshare", *flags, "true").returncode != 0:
            skip("no network namespace may be made here")
        os.execvp("unshare", ["unshare", *flags, sys.executable, "-B", os.path.abspath(__file__),
                              *sys.argv[1:], INSIDE])
    run("ip", "link", "set", "lo", "up")
    folder = tempfile.mkdtemp(prefix="paceline-shipped-")
    environment = dict(os.environ, XDG_RUNTIME_DIR=folder)
    for name in ("PACELINE_SOCKET", "PACELINE_NIC", "PACELINE_FILES", "LD_PRELOAD"):
        environment.pop(name, None)
    made = set()
    failed = 0
    try:
        for name in sorted(os.listdir(FOLDER)):
            path = os.path.join(FOLDER, name)
            head, text = head_of(path)
            try:
                for command in shell_lines(head):
                    if command in made:
                        continue
                    done = run("sh", "-c", command)
                    if done.returncode != 0:
                        skip(f"{command}: {done.stderr.strip()}")
                    made.add(command)
                if "Fill in" in head:
                    how = refused(environment, path, head)
                else:
                    check('"<' not in text, f"{name}: a placeholder, and the head is silent")
                    how = started(environment, path, head)
                say(f"ok   {name}: {how}")
            except AssertionError as error:
                failed += 1
                say(f"FAIL {name}: {error}")
    finally:
        run(PACELINE, "testbed", "down", environment=environment)
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if failed else 0)


main()
