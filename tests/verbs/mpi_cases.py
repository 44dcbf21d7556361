"""Open MPI and MPICH, ranks on both emulated hosts, nothing but our queue pairs between them. Both hand
UCX's addresses on by themselves, so neither connects by rdma_cm."""

import os
import shutil
import subprocess

from programs import Failed, run_alone
from testbed import ROOT

NEEDS = ("mpicc", "mpirun")


def built(testbed, compiler):
    program = os.path.join(testbed.folder, f"exchange-{compiler}")
    if not os.path.exists(program):
        done = subprocess.run([compiler, "-O1", "-o", program,
                               os.path.join(ROOT, "tests/verbs/exchange.c")],
                              capture_output=True, text=True)
        if done.returncode != 0:
            raise Failed(done.stderr)
    return program


def by_mpich(testbed):
    if shutil.which("mpicc.mpich") is None or shutil.which("mpirun.mpich") is None:
        return "skipped: mpich and libmpich-dev are not installed"
    program = built(testbed, "mpicc.mpich")
    command = ["mpirun.mpich", "-genv", "UCX_TLS", "rc_v,self"]
    for nic in ("h0", "h1"):
        command += [*([":"] if nic == "h1" else []), "-n", "1", *testbed.on(nic, [program])]
    text = run_alone(testbed, command, 60)
    if "exchange passed: 2 ranks" not in text:
        raise Failed(text)
    return None


def exchange(transports, ranks_each):
    def run(testbed):
        program = built(testbed, "mpicc")
        # UCX alone, and it may use neither shared memory nor sockets; rc_v brings ud_v for the first
        # contact. The number of processes is no matter for this test, so all may share a core.
        options = ["--allow-run-as-root", "--oversubscribe", "--bind-to", "none",
                   "--mca", "pml", "ucx", "--mca", "osc", "ucx", "--mca", "btl", "^openib,vader,tcp",
                   "--mca", "mpi_yield_when_idle", "1"]
        # Every part of the command needs them: mpirun does not hand them on to the next.
        exported = ["-x", f"UCX_TLS={transports}", "-x", "PACELINE_SOCKET", "-x", "XDG_RUNTIME_DIR"]
        command = ["mpirun", *options]
        for nic in ("h0", "h1"):
            command += [*exported, "-n", str(ranks_each), *testbed.on(nic, [program])]
            command += [":"] if nic == "h0" else []
        text = run_alone(testbed, command, 60)
        if f"exchange passed: {2 * ranks_each} ranks" not in text:
            raise Failed(text)
        return ""
    return f"ring, all-reduce, all-to-all, {2 * ranks_each} ranks, UCX_TLS={transports}", run


CASES = [exchange("rc_v,self", 1), exchange("rc_v,self", 2), exchange("ud_v,self", 1), ("MPICH", by_mpich)]
