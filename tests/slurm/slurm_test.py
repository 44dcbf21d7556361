"""A job array of Slurm executes the shares of an experiment. Two elements are cancelled: `gather` names
them, they are submitted again, and the results are those of one machine, byte for byte.

usage: slurm_test.py PACELINE     exit: 0 good, 1 a check failed, 77 skipped (no Slurm, not root)
"""

import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scancel", "scontrol", "squeue")
WAIT_SECONDS = 90
SHARES = 16

EXPERIMENT = """schema = 1
name = "tiny"
seed = 3
repetitions = 16
[[arm]]
name = "dcqcn"
algorithm = "dcqcn"
[[arm]]
name = "cadence"
algorithm = "cadence"
[common.fabric]
hosts = 4
[[scenario]]
name = "incast"
workload = { kind = "incast", fan_in = 3, message_bytes = "200kB", start_jitter = "1us" }
[[scenario]]
name = "moe"
workload = { kind = "all_to_all", message_bytes = "50kB", skew = 1.0, start_jitter = "5us" }
"""


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Slurm:
    """munged, slurmctld and slurmd of one node, this machine."""

    def __init__(self, folder):
        self.folder = folder
        self.running = []
        host = socket.gethostname().split(".")[0]
        for name in ("state", "spool"):
            (folder / name).mkdir()
        key = folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        self.munge_socket = folder / "munge.socket"
        self.conf = folder / "slurm.conf"
        self.conf.write_text(f"""ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={free_port()}
SlurmdPort={free_port()}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={self.munge_socket}
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
KillWait=5
MinJobAge=300
SchedulerParameters=sched_interval=1,batch_sched_delay=0,sched_min_interval=0
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 RealMemory=256 State=UNKNOWN
PartitionName=test Nodes={host} Default=YES MaxTime=INFINITE State=UP
""")
        (folder / "cgroup.conf").write_text("CgroupAutomount=no\n")
        self.environment = dict(os.environ, SLURM_CONF=str(self.conf))
        for name in list(self.environment):
            if name.startswith(("SLURM_", "SBATCH_")) and name != "SLURM_CONF":
                del self.environment[name]

    def start(self):
        self.daemon("munged", "--foreground", "--force", f"--socket={self.munge_socket}",
                    f"--key-file={self.folder}/munge.key", f"--pid-file={self.folder}/munged.pid",
                    f"--seed-file={self.folder}/munge.seed", f"--log-file={self.folder}/munged.txt")
        self.until(self.munge_socket.exists, "munged makes its socket")
        self.daemon("slurmctld", "-D", "-f", str(self.conf))
        self.daemon("slurmd", "-D", "-f", str(self.conf))
        self.until(self.node_is_idle, "the node is idle")

    def daemon(self, *words):
        with open(self.folder / f"{words[0]}.log", "w") as log:
            self.running.append(subprocess.Popen(words, env=self.environment, cwd=self.folder, stdout=log,
                                                 stderr=subprocess.STDOUT))

    def call(self, *words, **more):
        return subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=60, **more)

    def node_is_idle(self):
        return "State=IDLE " in self.call("scontrol", "show", "node").stdout

    def until(self, true, what):
        end = time.monotonic() + WAIT_SECONDS
        while not true():
            dead = [one.args[0] for one in self.running if one.poll() is not None]
            if dead or time.monotonic() > end:
                logs = "".join(f"--- {p.name}\n{p.read_text()[-3000:]}" for p in self.folder.glob("*.log"))
                raise RuntimeError(f"waited for: {what}; ended: {dead}\n{logs}")
            time.sleep(0.2)

    def submit(self, *words, folder):
        done = self.call("sbatch", "--parsable", *words, cwd=folder)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        return done.stdout.strip()

    def wait_for(self, job):
        self.until(lambda: self.call("squeue", "-h", "-j", job).stdout.strip() == "", f"job {job} ends")

    def stop(self):
        for one in reversed(self.running):
            one.terminate()
            try:
                one.wait(20)
            except subprocess.TimeoutExpired:
                one.kill()
                one.wait()


class Array(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="paceline-slurm-"))
        self.addCleanup(shutil.rmtree, self.root, ignore_errors=True)
        self.slurm = Slurm(self.root)
        self.addCleanup(self.slurm.stop)
        self.slurm.start()
        self.work = self.root / "work"
        self.work.mkdir()
        (self.work / "tiny.toml").write_text(EXPERIMENT)

    def paceline(self, *words):
        return subprocess.run([PACELINE, *words], cwd=self.work, capture_output=True, text=True, timeout=120)

    def test_cancelled_elements_are_named_and_run_again(self):
        one = self.paceline("ab", "tiny.toml", "--jobs", "1", "--out", "one.json")
        self.assertEqual(one.returncode, 0, one.stderr)
        plan = self.paceline("plan", "tiny.toml", "--slurm", "--array", str(SHARES), "--time", "00:10:00",
                             "-o", "tiny.sbatch")
        self.assertEqual(plan.returncode, 0, plan.stderr)

        job = self.slurm.submit("--hold", "tiny.sbatch", folder=self.work)
        for element in (3, 7):
            self.assertEqual(self.slurm.call("scancel", f"{job}_{element}").returncode, 0)
        self.assertEqual(self.slurm.call("scontrol", "release", job).returncode, 0)
        self.slurm.wait_for(job)

        logs = {p.name: p.read_text() for p in (self.work / "tiny.records").glob("*.log")}
        early = self.paceline("gather", "tiny.toml", "tiny.records")
        self.assertEqual(early.returncode, 1, f"{early.stderr} {logs}")
        self.assertIn("8 of 64 runs are missing, of 2 of 16 shares", early.stderr)
        self.assertIn("sbatch --array=3,7 SCRIPT", early.stderr)
        self.assertFalse((self.work / "tiny.results.json").exists())

        again = self.slurm.submit("--array=3,7", "tiny.sbatch", folder=self.work)
        self.slurm.wait_for(again)
        done = self.paceline("gather", "tiny.toml", "tiny.records")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.work / "tiny.results.json").read_bytes(), (self.work / "one.json").read_bytes())
        # An element took what the job was given: one core.
        self.assertIn("1 jobs", logs["1.log"])


if __name__ == "__main__":
    PACELINE = os.path.abspath(sys.argv.pop(1))
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing or os.geteuid() != 0:
        print("skipped: " + (f"there is no {', '.join(missing)} (Debian: slurm-wlm)" if missing
                             else "root starts Slurm's daemons"))
        sys.exit(77)
    unittest.main()
