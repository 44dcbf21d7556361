"""iSCSI over RDMA (iSER): Debian's tgt exports a file, libiscsi's tools and conformance tests use it."""

import os
import re
import time

from programs import PATIENCE, Failed, Running, end, run_alone, take_port
from rdma_cm_cases import SERVER

NEEDS = ("tgtd", "tgtadm", "iscsi-readcapacity16", "iscsi-perf", "iscsi-test-cu")

MEBIBYTES = 16
TARGET = "iqn.2026-01.example:disk"
INITIATOR = "iqn.2026-01.example:host"
URL = f"iser://{SERVER}:3260/{TARGET}/1"
# Debian's tgt lets in who is on both lists, of addresses and of names.
SET_UP = (("--op", "new", "--mode", "target", "--tid", "1", "-T", TARGET),
          ("--op", "new", "--mode", "logicalunit", "--tid", "1", "--lun", "1", "--backing-store", "disk"),
          ("--op", "bind", "--mode", "target", "--tid", "1", "-I", "ALL"),
          ("--op", "bind", "--mode", "target", "--tid", "1", "-Q", INITIATOR))


def with_target(use):
    """`use` gets a testbed whose h1 has a target."""
    def run(testbed):
        with open(os.path.join(testbed.folder, "disk"), "wb") as disk:
            disk.truncate(MEBIBYTES << 20)
        port = take_port()
        there = ["env", f"TGT_IPC_SOCKET={testbed.folder}/tgt-{port}"]
        # It serves TCP, too: on loopback alone.
        target = Running(testbed, testbed.on("h1", [*there, "tgtd", "-f", "--iscsi",
                                                    f"portal=127.0.0.1:{port}"]))
        try:
            limit = time.monotonic() + 20 * PATIENCE
            while not os.path.exists(f"{testbed.folder}/tgt-{port}.0"):
                if target.process.poll() is not None or time.monotonic() > limit:
                    raise Failed(f"no target:\n{target.text()}")
                time.sleep(0.05)
            for words in SET_UP:
                run_alone(testbed, [*there, "tgtadm", "--lld", "iser", *words])
            return use(testbed)
        finally:
            target.process.kill()  # it would not end while it has a target
            end(target.process)
    return run


def initiator(testbed, *command):
    return run_alone(testbed, testbed.on("h0", [*command, "-i", INITIATOR, URL]), 40)


def capacity(testbed):
    text = initiator(testbed, "iscsi-readcapacity16")
    if f"Total size:{MEBIBYTES << 20}" not in text:
        raise Failed(text)
    return f"{MEBIBYTES} MiB"


def conformance(name):
    def use(testbed):
        text = initiator(testbed, "iscsi-test-cu", "--dataloss", f"--test={name}")
        passed = re.search(r"tests +1 +1 +1 +0 ", text)
        if passed is None:
            raise Failed(text)
        return "passed"
    return f"libiscsi's {name}", with_target(use)


def perf(testbed):
    text = initiator(testbed, "iscsi-perf", "-t", "2", "-m", "8", "-b", "64")
    rates = re.findall(r"iops average (\d+)", text)
    if not rates or rates[-1] == "0":
        raise Failed(text)
    return f"{rates[-1]} reads of 32 KiB a second"


CASES = [("capacity", with_target(capacity)), ("8 reads at a time", with_target(perf)),
         *(conformance(f"SCSI.{name}.Simple") for name in ("Read10", "Write10", "WriteVerify10"))]
