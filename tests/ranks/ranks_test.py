#!/usr/bin/env python3
"""Commands on many processes, started by mpirun: the same bytes as --jobs 1, whoever dies or stops.

usage: ranks_test.py CASE PACELINE RANK_TASKS      exit 77: skipped, with the reason
"""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid

SKIPPED = 77
ROOT = pathlib.Path(__file__).resolve().parents[2]
PATIENCE = 120  # seconds for one command
MARK = "PACELINE_RANKS_TEST"

# Ten seconds of one core, in 48 runs.
LEAGUE = ("league", str(ROOT / "configs/league.toml"), "--quick", "--no-page")
SIZE = {"--only": "incast,ring", "--entries": "dcqcn-paper,swift,cadence", "--repetitions": "8", "--jobs": "1",
        "--out": "results.json", "--runs": "runs.jsonl"}


class Skip(Exception):
    pass


class Failed(Exception):
    pass


def check(holds, text):
    if not holds:
        raise Failed(text)


class OpenMpi:
    """How Open MPI starts ranks, and what lets others live when a process dies that it has started."""

    name = "openmpi"
    recover = ("--enable-recovery",)

    def __init__(self):
        self.mpirun = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
        if not self.mpirun or "OpenRTE" not in version_of(self.mpirun):
            raise Skip("there is no mpirun of Open MPI (openmpi-bin)")

    def words(self, ranks, *more):
        # Tests run as root, and machines may have fewer processors than ranks.
        return [self.mpirun, "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", *more, "-n", str(ranks)]


class Mpich:
    name = "mpich"

    def __init__(self):
        self.mpirun = shutil.which("mpirun.mpich") or shutil.which("mpirun")
        if not self.mpirun or "HYDRA" not in version_of(self.mpirun):
            raise Skip("there is no mpirun of MPICH (mpich)")

    def words(self, ranks, *more):
        return [self.mpirun, *more, "-n", str(ranks)]


def version_of(mpirun):
    return subprocess.run([mpirun, "--version"], capture_output=True, text=True, check=False).stdout


class Ranks:
    """A command on ranks. Whatever happens, nothing of it is left."""

    def __init__(self, folder, words, environment=None):
        self.mark = uuid.uuid4().hex
        self.out = open(folder / "out", "w+", encoding="utf-8")
        self.err = open(folder / "err", "w+", encoding="utf-8")
        self.process = subprocess.Popen(words, stdout=self.out, stderr=self.err, stdin=subprocess.DEVNULL, cwd=folder,
                                        env=os.environ | {MARK: self.mark} | (environment or {}))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.poll() is None and self.process.kill()
        for process in self.processes():
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()

    def processes(self):
        """Those that this command started, with their environments."""
        found = {}
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                variables = dict(v.split("=", 1) for v in (entry / "environ").read_text(errors="replace").split("\0")
                                 if "=" in v)
                state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
            except (OSError, IndexError):
                continue
            if variables.get(MARK) == self.mark and state != "Z" and int(entry.name) != self.process.pid:
                found[int(entry.name)] = variables
        return found

    def ranks(self, started=False):
        """Process ids by rank: of those that do the work, or that MPI has started."""
        found = {}
        for process, variables in self.processes().items():
            rank = variables.get("OMPI_COMM_WORLD_RANK", variables.get("PMI_RANK"))
            if rank is not None:
                found.setdefault(int(rank), set()).add(process)
        # Of each rank two: one that MPI has started, and its child.
        pairs = {rank: two for rank, two in found.items() if len(two) == 2}
        return {rank: next(p for p in two if (parent_of(p) in two) != started) for rank, two in pairs.items()}

    def wait_for(self, what, holds):
        end = time.monotonic() + PATIENCE
        while not holds():
            check(time.monotonic() < end, f"{what}: not after {PATIENCE} s\n{self.text()}")
            check(self.process.poll() is None, f"{what}: the command has ended\n{self.text()}")
            time.sleep(0.02)

    def wait(self):
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired as error:
            raise Failed(f"not finished after {PATIENCE} s\n{self.text()}") from error

    def text(self):
        for stream in (self.out, self.err):
            stream.flush()
        return pathlib.Path(self.out.name).read_text() + pathlib.Path(self.err.name).read_text()

    def end(self, code=0):
        got = self.wait()
        check(got == code, f"exit {got}, expected {code}\n{self.text()}")
        return self.text()


def parent_of(process):
    try:
        return int(pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


def lines_of(file):
    return file.read_text().count("\n") if file.exists() else 0


class Setting:
    def __init__(self, folder, paceline, rank_tasks):
        self.folder = folder
        self.paceline = paceline
        self.rank_tasks = rank_tasks

    def league(self, **others):
        options = SIZE | {f"--{name}": value for name, value in others.items()}
        return [self.paceline, *LEAGUE, *(word for option in options.items() for word in option)]

    def alone(self, **others):
        """The results of --jobs 1."""
        folder = self.folder / "alone"
        folder.mkdir()
        done = subprocess.run(self.league(**others), cwd=folder, capture_output=True, text=True, timeout=PATIENCE,
                              check=False)
        check(done.returncode == 0, done.stdout + done.stderr)
        return (folder / "results.json").read_bytes()

    def same(self, expected, text):
        results = self.folder / "results.json"
        check(results.exists() and results.read_bytes() == expected, f"other results than --jobs 1\n{text}")


def equal(setting, mpi):
    """Eight ranks: the bytes of --jobs 1; rank 0 alone writes and prints."""
    expected = setting.alone()
    with Ranks(setting.folder, mpi.words(8) + setting.league()) as ranks:
        text = ranks.end()
    setting.same(expected, text)
    check(text.count("league league (quick)") == 1, f"more than one rank prints\n{text}")
    check("8 ranks, 8 threads" in text, f"no progress over all ranks\n{text}")


def commands(setting, mpi):
    """Every command with a list of runs, searches among them: the files of --jobs 1."""
    configs = ROOT / "configs"
    for words in (("ab", str(configs / "experiments/first.toml"), "--set", "repetitions=2"),
                  ("sweep", str(configs / "sweeps/marking.toml"), "--set", "fabric.hosts=17"),
                  ("tune", str(configs / "experiments/first.toml"), "--scenario", "incast-32to1", "--param",
                   "increase_timer_us", "--evaluations", "4", "--repetitions", "1", "--finalists", "1", "--validation", "1"),
                  ("collective", "tune", "--set", "fabric.hosts=8", "--sizes", "64KiB..128KiB", "--evaluations", "12",
                   "--json", "all.json")):
        name = words[0] + "-" + words[1].rsplit("/", 1)[-1]
        folders = setting.folder / name / "alone", setting.folder / name / "ranks"
        for folder in folders:
            folder.mkdir(parents=True)
        line = [setting.paceline, *words, "--jobs", "1", "--quiet"]
        done = subprocess.run(line, cwd=folders[0], capture_output=True, text=True, timeout=PATIENCE, check=False)
        check(done.returncode == 0, done.stdout + done.stderr)
        with Ranks(folders[1], mpi.words(3) + line) as ranks:
            text = ranks.end()
        ours = {"out", "err"}
        kept = [sorted(file.name for file in folder.iterdir() if file.name not in ours) for folder in folders]
        check(kept[0] == kept[1] and kept[0], f"{name}: {kept}\n{text}")
        for file in kept[0]:
            if file.endswith(".runs.jsonl"):  # in the order in which they were over
                continue
            check((folders[0] / file).read_bytes() == (folders[1] / file).read_bytes(), f"{name}: {file} differs\n{text}")


def killed(setting, mpi):
    """One of eight ranks dies in the middle: its tasks are done elsewhere."""
    expected = setting.alone()
    with Ranks(setting.folder, mpi.words(8) + setting.league()) as ranks:
        ranks.wait_for("some records", lambda: lines_of(setting.folder / "runs.jsonl") >= 4)
        os.kill(ranks.ranks()[5], signal.SIGKILL)
        text = ranks.end()
    setting.same(expected, text)
    check(re.search(r"rank 5 on \S+ has ended; what it had to do is done elsewhere", text), text)


def killed_above(setting, mpi):
    """The process that MPI has started dies: mpirun can be told to let the others live."""
    expected = setting.alone()
    with Ranks(setting.folder, mpi.words(8, *mpi.recover) + setting.league()) as ranks:
        ranks.wait_for("some records", lambda: lines_of(setting.folder / "runs.jsonl") >= 4)
        os.kill(ranks.ranks(started=True)[5], signal.SIGKILL)
        ranks.wait()
        text = ranks.text()
    setting.same(expected, text)
    check(re.search(r"rank 5 on \S+ has ended; what it had to do is done elsewhere", text), text)


def ended_by_mpirun(setting, mpi):
    """Without that option mpirun ends all ranks; the same command goes on where it was."""
    expected = setting.alone()
    with Ranks(setting.folder, mpi.words(8) + setting.league()) as ranks:
        ranks.wait_for("some records", lambda: lines_of(setting.folder / "runs.jsonl") >= 4)
        os.kill(ranks.ranks(started=True)[5], signal.SIGKILL)
        ranks.wait()
    kept = lines_of(setting.folder / "runs.jsonl")
    with Ranks(setting.folder, mpi.words(8) + setting.league()) as ranks:
        text = ranks.end()
    setting.same(expected, text)
    check(re.search(rf"{kept} of 48 runs are in runs.jsonl", text), text)


def first_killed(setting, mpi):
    """Rank 0 dies: the others say so and end."""
    with Ranks(setting.folder, mpi.words(4) + [setting.rank_tasks, "20000", "30000"]) as ranks:
        ranks.wait_for("all ranks", lambda: "4 ranks" in ranks.text())
        os.kill(ranks.ranks()[0], signal.SIGKILL)
        code = ranks.wait()
        text = ranks.text()
    check(code != 0 and "rank 0 has ended; what is finished is kept there" in text, f"exit {code}\n{text}")


def stopped(setting, mpi):
    """A rank that is stopped holds nobody up."""
    expected = setting.alone()
    seconds = float(os.environ.get("PACELINE_STOP_SECONDS", "6"))
    with Ranks(setting.folder, mpi.words(8) + setting.league()) as ranks:
        ranks.wait_for("some records", lambda: lines_of(setting.folder / "runs.jsonl") >= 4)
        rank = ranks.ranks()[3]
        begin = time.monotonic()
        os.kill(rank, signal.SIGSTOP)
        ranks.wait_for("the results, without the stopped rank", (setting.folder / "results.json").exists)
        took = time.monotonic() - begin
        time.sleep(max(0, seconds - took))
        check(ranks.process.poll() is None, "mpirun did not wait for the stopped rank")
        os.kill(rank, signal.SIGCONT)
        text = ranks.end()
    setting.same(expected, text)
    print(f"results {took:.1f} s after a rank was stopped; it went on after {max(seconds, took):.1f} s")


def lists(setting, mpi):
    """Several lists, one after another; a rank is stopped during the first and catches up."""
    with Ranks(setting.folder, mpi.words(4) + [setting.rank_tasks, "40", "20000", "4"]) as ranks:
        ranks.wait_for("all ranks", lambda: len(ranks.ranks()) == 4)
        time.sleep(0.3)
        os.kill(ranks.ranks()[2], signal.SIGSTOP)
        time.sleep(3)
        os.kill(ranks.ranks()[2], signal.SIGCONT)
        text = ranks.end()
    one = run_json(text)
    with Ranks(setting.folder, mpi.words(2) + [setting.rank_tasks, "40", "0", "4"]) as ranks:
        other = run_json(ranks.end())
    check(one["hash"] == other["hash"], f"{one} {other}")


def run_json(text):
    found = [line for line in text.splitlines() if line.startswith("{")]
    check(len(found) == 1, text)
    return json.loads(found[0])


def cost(setting, mpi):
    """What a task costs rank 0: printed; calls of the kernel and bytes are held to bounds."""
    tasks = 100_000
    with Ranks(setting.folder, mpi.words(8) + [setting.rank_tasks, str(tasks), "0"]) as ranks:
        made = run_json(ranks.end())
    print(f"{tasks} empty tasks over 8 ranks in {made['seconds']:.2f} s; at rank 0 {made['cpu_us_per_task']:.1f} us of "
          f"a core, {made['calls_per_task']:.2f} calls of the kernel and {made['bytes_per_task']:.0f} bytes a task")
    check(made["executed"] == tasks, str(made))
    # Three would be one wait, one read and one write for every task: nothing was put together.
    check(made["calls_per_task"] < 1, str(made))
    # A task's number; and task, times, hops and a record of some twenty characters.
    check(made["bytes_per_task"] < 120, str(made))


def interrupt(setting, mpi):
    """Ctrl-C, and a time limit: what is finished is kept, nobody is left, the same command goes on."""
    more = {"repetitions": "96"}  # 576 runs: none too few for mpirun, which hands signals on after a second
    expected = setting.alone(**more)
    # Seconds from Ctrl-C to SIGTERM and from there to SIGKILL: one may not do on a busy machine.
    patient = mpi.words(4, "--mca", "odls_base_sigkill_timeout", "2")
    for number in (signal.SIGINT, signal.SIGTERM):
        with Ranks(setting.folder, patient + setting.league(**more)) as ranks:
            before = lines_of(setting.folder / "runs.jsonl")
            ranks.wait_for("some records", lambda: lines_of(setting.folder / "runs.jsonl") >= before + 4)
            begin = time.monotonic()
            ranks.process.send_signal(number)
            code = ranks.wait()
            took = time.monotonic() - begin
            end = time.monotonic() + 5
            while ranks.processes() and time.monotonic() < end:
                time.sleep(0.05)
            check(not ranks.processes(), f"ranks are left: {ranks.processes()}")
            text = ranks.text()
        check(code != 0, text)
        check(re.search(r"interrupted: \d+ of 576 runs are kept", text), text)
        check(not (setting.folder / "results.json").exists(), "results of an interrupted league")
        print(f"{number.name}: ended after {took:.1f} s")
    with Ranks(setting.folder, mpi.words(4) + setting.league(**more)) as ranks:
        text = ranks.end()
    setting.same(expected, text)


def bad_input(setting, mpi):
    """Bad input, other files on one rank, a full disk: a sentence, once; nothing hangs."""
    words = mpi.words(3)

    def refused(more, code, pattern, times=1):
        with Ranks(setting.folder, words + more) as ranks:
            got = ranks.wait()
            text = ranks.text()
        check(got == code, f"exit {got}, expected {code}\n{text}")
        check(len(re.findall(pattern, text)) == times, f"not {times} times '{pattern}'\n{text}")

    refused([setting.paceline, "league", "missing.toml"], 2, r"paceline: error: missing.toml: ")
    refused(setting.league(only="nothing"), 2, r"paceline: error: .*nothing")
    # Ranks of one command, each with its own options.
    others = [":", "-n", "1", *setting.league(repetitions="7")]
    refused([*setting.league(), *others], 2, r"rank 3 on \S+ has 42 runs to do and rank 0 has 48")
    others = [":", "-n", "1", *setting.league(entries="dcqcn-paper,swift,timely")]
    refused([*setting.league(), *others], 2, r"rank 3 on \S+ has other files, plug-ins or options than rank 0 for scenario")
    check(not (setting.folder / "results.json").exists(), "results")
    refused(setting.league(runs="/dev/full"), 2, r"/dev/full: cannot be written: No space left on device")


def environment(setting, mpi):
    """PACELINE_MPI, and an MPI without its module."""
    copy = setting.folder / "bin"
    copy.mkdir()
    alone = shutil.copy(setting.rank_tasks, copy)
    with Ranks(setting.folder, mpi.words(2) + [alone, "10", "0"]) as ranks:
        ranks.wait()
        text = ranks.text()
    check("has started this process, but there is no paceline-openmpi.so in" in text, text)
    check("libopenmpi-dev" in text and "PACELINE_MPI=off" in text, text)
    with Ranks(setting.folder, mpi.words(2) + [setting.rank_tasks, "10", "0"], {"PACELINE_MPI": "off"}) as ranks:
        ranks.wait()
        check(ranks.text().count("no MPI has started this process") == 2, ranks.text())
    with Ranks(setting.folder, mpi.words(1) + [setting.rank_tasks, "10", "0"], {"PACELINE_MPI": "lam"}) as ranks:
        ranks.wait()
        check("PACELINE_MPI=lam: openmpi, mpich and off are allowed" in ranks.text(), ranks.text())


class Machines:
    """Four machines: namespaces with a network and a name of their own, at one bridge."""

    COUNT = 4

    def __init__(self, folder):
        if os.geteuid() != 0:
            raise Skip("network namespaces need root")
        for program in ("ip", "unshare"):
            if not shutil.which(program):
                raise Skip(f"there is no {program}")
        self.tag = f"pr{os.getpid() % 100_000}"
        self.hub = f"{self.tag}hub"
        self.agent = folder / "agent"

    def name(self, number):
        return f"{self.tag}m{number}"

    def address(self, number):
        return f"10.213.77.{number + 1}"

    def __enter__(self):
        try:
            self.make()
        except subprocess.CalledProcessError as error:
            self.__exit__()
            raise Skip(f"no network namespaces here: {error.stderr}") from error
        return self

    def make(self):
        run_ip("netns", "add", self.hub)
        run_ip("-n", self.hub, "link", "add", "bridge", "type", "bridge")
        run_ip("-n", self.hub, "link", "set", "bridge", "up")
        for number in range(self.COUNT):
            name = self.name(number)
            run_ip("netns", "add", name)
            run_ip("link", "add", "eth0", "netns", name, "type", "veth", "peer", "name", f"port{number}", "netns",
                   self.hub)
            run_ip("-n", self.hub, "link", "set", f"port{number}", "master", "bridge", "up")
            run_ip("-n", name, "address", "add", f"{self.address(number)}/24", "dev", "eth0")
            run_ip("-n", name, "link", "set", "eth0", "up")
            run_ip("-n", name, "link", "set", "lo", "up")
        # What mpirun calls instead of ssh: HOST COMMAND... A machine is called what mpirun calls it.
        cases = "\n".join(f"  {self.address(n)}) machine={self.name(n)} ;;" for n in range(self.COUNT))
        self.agent.write_text(f"#!/bin/sh\nhost=$1\nshift\ncase $host in\n{cases}\nesac\n"
                              "exec ip netns exec $machine unshare --uts sh -c \"hostname $host; $*\"\n")
        self.agent.chmod(0o755)

    def __exit__(self, *_):
        for name in (*(self.name(n) for n in range(self.COUNT)), self.hub):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)

    def words(self, mpi, ranks, *more):
        hosts = ",".join(f"{self.address(n)}:{ranks // self.COUNT}" for n in range(self.COUNT))
        return ["ip", "netns", "exec", self.name(0), "unshare", "--uts", "sh", "-c", f'hostname {self.address(0)}; exec "$@"',
                "sh", *mpi.words(ranks, *more, "--host", hosts, "--mca", "plm_rsh_agent", str(self.agent), "-x", MARK)]


def run_ip(*words):
    subprocess.run(["ip", *words], capture_output=True, text=True, check=True)


def machines(setting, mpi):
    """Eight ranks on four machines that have only TCP between them: one is killed, one stopped."""
    expected = setting.alone()
    with Machines(setting.folder) as four:
        words = four.words(mpi, 8) + setting.league()
        with Ranks(setting.folder, words) as ranks:
            ranks.wait_for("some records", lambda: lines_of(setting.folder / "runs.jsonl") >= 4)
            found = ranks.ranks()
            check(len(found) == 8, f"{found}\n{ranks.text()}")
            names = {os.readlink(f"/proc/{process}/ns/net") for process in found.values()}
            check(len(names) == Machines.COUNT, f"ranks are in {len(names)} networks")
            os.kill(found[5], signal.SIGKILL)
            os.kill(found[7], signal.SIGSTOP)
            ranks.wait_for("the results, without the stopped rank", (setting.folder / "results.json").exists)
            os.kill(found[7], signal.SIGCONT)
            text = ranks.end()
    setting.same(expected, text)
    check(re.search(r"rank 5 on 10\.213\.77\.\d has ended; what it had to do is done elsewhere", text), text)


def mpich(setting, _):
    """The same by MPICH."""
    mpi = Mpich()
    for case in (equal, killed, ended_by_mpirun, stopped):
        with tempfile.TemporaryDirectory(prefix="paceline-ranks-") as folder:
            case(Setting(pathlib.Path(folder), setting.paceline, setting.rank_tasks), mpi)


CASES = {"equal": (equal,), "commands": (commands,), "killed": (killed, killed_above, ended_by_mpirun, first_killed), "stopped": (stopped,), "lists": (lists,), "cost": (cost,),
         "interrupt": (interrupt,), "input": (bad_input,), "environment": (environment,), "machines": (machines,),
         "mpich": (mpich,)}


def main():
    name, paceline, rank_tasks = sys.argv[1:]
    for case in CASES[name]:
        with tempfile.TemporaryDirectory(prefix="paceline-ranks-") as folder:
            setting = Setting(pathlib.Path(folder), os.path.abspath(paceline), os.path.abspath(rank_tasks))
            try:
                case(setting, None if case is mpich else OpenMpi())
            except Skip as reason:
                print(f"skipped: {reason}")
                return SKIPPED
            except Failed as failure:
                print(f"FAILED: {case.__name__}: {case.__doc__}\n{failure}")
                return 1
            print(f"passed: {case.__doc__}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
