"""`paceline ci`: a command over a testbed of its own; what is kept, what is told, and that nothing is left.

  ci_test.py PACELINE PACELINE-DATAPLANE

Exit: 0 passed, 1 failed, 77 skipped, and why.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from programs import Failed, take_port  # noqa: E402
from testbed import PATIENCE, ROOT, die_with_parent, end, need, say  # noqa: E402

PACELINE = sys.argv[1]
# The client comes when the server listens; the exit status is that of both.
PAIR = """
PACELINE_NIC=h1 {server} & server=$!
tries=0
until {client}; do tries=$((tries + 1)); [ $tries -lt 50 ] || exit 9; sleep 0.1; done
wait $server
"""


def require(holds, what):
    if not holds:
        raise Failed(what)


class Ground:
    """A folder for everything that a run may leave, and what it left."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="paceline-ci-test-")
        self.temporary, self.runtime = os.path.join(self.folder, "tmp"), os.path.join(self.folder, "run")
        for folder in (self.temporary, self.runtime):
            os.mkdir(folder, 0o700)
        self.environment = dict(os.environ, TMPDIR=self.temporary, XDG_RUNTIME_DIR=self.runtime)
        for name in ("PACELINE_SOCKET", "PACELINE_NIC", "PACELINE_FILES", "LD_PRELOAD"):
            self.environment.pop(name, None)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, *words):
        return subprocess.Popen([PACELINE, "ci", *words], cwd=ROOT, env=self.environment, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                start_new_session=True, preexec_fn=die_with_parent)

    def run(self, code, *words):
        """Both outputs of a run that ends with this status."""
        process = self.start(*words)
        try:
            out, errors = process.communicate(timeout=60 * PATIENCE)
        except subprocess.TimeoutExpired:
            end(process)
            raise Failed(f"ci {' '.join(words)} does not end") from None
        require(process.returncode == code,
                f"ci {' '.join(words)}: exit status {process.returncode}, not {code}\n{out}{errors}")
        self.nothing_runs()
        return out, errors

    def processes(self):
        """The processes with our folder in their environment: all that a run starts has it."""
        mark = f"XDG_RUNTIME_DIR={self.runtime}".encode()
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    if mark in file.read().split(b"\0"):
                        yield int(name)
            except OSError:
                continue

    def nothing_runs(self):
        limit = time.monotonic() + 10 * PATIENCE
        while left := list(self.processes()):
            require(time.monotonic() < limit, f"processes are left: {left}")
            time.sleep(0.02)
        paceline = os.path.join(self.runtime, "paceline")
        left = os.listdir(paceline) if os.path.isdir(paceline) else []
        require(not left, f"in the folder of testbeds: {left}")

    def kept(self, folder=None):
        """The files of each kept folder."""
        folder = folder or self.temporary
        names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
        return [sorted(os.listdir(os.path.join(folder, name))) for name in names]


def pair(server, client):
    return ["--", "sh", "-c", PAIR.format(server=server, client=client)]


def good_pingpong(ground):
    need("ibv_rc_pingpong")
    port = take_port()
    out, errors = ground.run(0, *pair(f"ibv_rc_pingpong -p {port}", f"ibv_rc_pingpong -d h0 -c -p {port} 127.0.0.1"))
    require(out.count("1000 iters") == 2, f"both ends: {out}{errors}")
    require(ground.kept() == [], f"a good run keeps nothing: {ground.kept()}")


def good_rping(ground):
    need("rping")
    ground.run(0, "--quiet", *pair("rping -s -C 5 -a 10.0.0.2", "PACELINE_NIC=h0 rping -c -C 5 -a 10.0.0.2"))


def failing_pingpong(ground):
    """Nobody listens: the client's status, and what the testbed knows."""
    need("ibv_rc_pingpong")
    keep = os.path.join(ground.folder, "a", "b")
    _, errors = ground.run(1, "--keep", keep, "--capture", "all", "--", "ibv_rc_pingpong", "-d", "h0", "-p",
                           str(take_port()), "127.0.0.1")
    require(ground.kept(keep) == [["h0.pcapng", "h1.pcapng", "service.log", "status.txt"]], f"{ground.kept(keep)}")
    folder = os.path.join(keep, os.listdir(keep)[0])
    require(folder in errors and "exit status 1" in errors, errors)
    require(ground.kept() == [], "not elsewhere")
    with open(os.path.join(folder, "status.txt"), encoding="utf-8") as file:
        require("h0" in file.read(), "the status")
    with open(os.path.join(folder, "h0.pcapng"), "rb") as file:
        require(file.read(4) == b"\x0a\x0d\x0d\x0a", "a pcapng file")


def failing_rping(ground):
    """A connection that is lost on the way."""
    need("rping")
    disturb = f"{PACELINE} testbed fault --socket $PACELINE_SOCKET h1 loss=1"
    _, errors = ground.run(7, *["--capture", "h0", "--", "sh", "-c",
                                f"{disturb} && PACELINE_NIC=h1 rping -s -C 5 -a 10.0.0.2 & sleep 0.3;"
                                " timeout 3 rping -c -C 5 -a 10.0.0.2 && exit 0; exit 7"])
    require(ground.kept() == [["h0.pcapng", "service.log", "status.txt"]], f"{ground.kept()} {errors}")


def options_reach_the_testbed(ground):
    out, _ = ground.run(0, "--hosts", "5", "--set", "cc.algorithm=cadence", "--nic", "h4", "--", "sh", "-c",
                        f"echo $PACELINE_NIC; {PACELINE} testbed status --socket $PACELINE_SOCKET")
    require(out.startswith("h4\n") and "cadence" in out, out)
    # Two at a time, and one inside the other.
    one = ground.start("--", "sleep", "2")
    ground_inside = ["--", PACELINE, "ci", "--hosts", "3", "--", "sh", "-c", "exit 5"]
    process = ground.start(*ground_inside)
    out, errors = process.communicate(timeout=60 * PATIENCE)
    require(process.returncode == 5, f"{process.returncode} {errors}")
    require(one.wait(60 * PATIENCE) == 0, "the other one")
    one.communicate()
    ground.nothing_runs()


def what_is_left_is_ended(ground):
    out, errors = ground.run(0, "--", "sh", "-c", "setsid sleep 1000 & setsid sh -c 'trap \"\" TERM; sleep 1001' & echo on")
    require(out == "on\n" and "left 2 processes behind" in errors, out + errors)
    require(ground.kept() == [], "a good run all the same")
    # Who ends by itself is not told of.
    _, errors = ground.run(0, "--", "sh", "-c", "sleep 0.2 &")
    require("behind" not in errors, errors)


def a_time_limit(ground):
    _, errors = ground.run(124, "--timeout", "300ms", "--", "sh", "-c", "sleep 1000; exit 0")
    require("--timeout 300ms" in errors and "service.log" in errors, errors)
    ground.run(3, "--timeout", "1000s", "--", "sh", "-c", "exit 3")
    ground.run(128 + 9, "--", "sh", "-c", "kill -9 $$")


def interrupted(ground):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        process = ground.start("--", "sh", "-c", "echo here; sleep 1000")
        require(process.stdout.readline() == "here\n", "the command runs")
        process.send_signal(number)
        _, errors = process.communicate(timeout=60 * PATIENCE)
        require(process.returncode == 130 and "interrupted" in errors, f"{number}: {process.returncode} {errors}")
        ground.nothing_runs()
    # Told twice: at once.
    process = ground.start("--", "sh", "-c", "trap '' INT TERM; echo here; while :; do sleep 1; done")
    require(process.stdout.readline() == "here\n", "the command runs")
    process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60 * PATIENCE)
    require(process.returncode == 130, f"{process.returncode}")
    ground.nothing_runs()


def killed(ground):
    """The service goes with it. Its folder stays, and the next start removes device files."""
    process = ground.start("--", "sh", "-c", "echo here; exec sleep 1000")
    require(process.stdout.readline() == "here\n", "the command runs")
    process.kill()
    process.communicate(timeout=60 * PATIENCE)
    limit = time.monotonic() + 10 * PATIENCE
    while left := list(ground.processes()):
        require(time.monotonic() < limit, f"processes are left: {left}")
        time.sleep(0.02)
    ground.run(0, "--", "true")


def the_service_ends(ground):
    _, errors = ground.run(125, "--", "sh", "-c",
                           f"{PACELINE} testbed down --socket $PACELINE_SOCKET; sleep 1000")
    require("the service ended before the command did" in errors, errors)


def refused(ground):
    def told(code, text, *words):
        out, errors = ground.run(code, *words)
        require(text in errors and not out, f"{words}: no {text!r} in {errors}")

    told(2, "no command to run", "--hosts", "2")
    told(2, "--hosts 0: allowed is [1 .. 256]", "--hosts", "0", "--", "true")
    told(2, "fabric.hots", "--set", "fabric.hots=2", "--", "true")
    told(2, "none.toml", "--testbed", "none.toml", "--", "true")
    told(2, "--timeout soon: ", "--timeout", "soon", "--", "true")
    told(2, "--timeout 0s: allowed is", "--timeout", "0s", "--", "true")
    told(2, "NIC h7: the testbed has h0, h1", "--nic", "h7", "--", "true")
    told(2, "NIC h7: the testbed has h0, h1", "--capture", "h7", "--", "true")
    told(2, "9 NICs; allowed are 8", "--hosts", "9", "--capture", "all", "--", "true")
    told(127, "not found in PATH", "--", "no-such-program")
    told(126, "is a folder", "--", "./docs")
    file = os.path.join(ground.folder, "file")
    with open(file, "w", encoding="utf-8"):
        pass
    told(2, f"--keep {file}/in: cannot be written", "--keep", f"{file}/in", "--", "true")
    require(ground.kept() == [], f"what is refused leaves nothing: {ground.kept()}")


def main():
    failed = 0
    for case in (good_pingpong, good_rping, failing_pingpong, failing_rping, options_reach_the_testbed,
                 what_is_left_is_ended, a_time_limit, interrupted, killed, the_service_ends, refused):
        begun = time.monotonic()
        with Ground() as ground:
            try:
                case(ground)
                say(f"ok      {time.monotonic() - begun:5.1f} s  {case.__name__}")
            except Failed as error:
                failed += 1
                say(f"FAILED  {time.monotonic() - begun:5.1f} s  {case.__name__}\n{error}")
    sys.exit(failed != 0)


main()
