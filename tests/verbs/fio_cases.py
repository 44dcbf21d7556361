"""fio's rdma engine, which connects by rdma_cm: a job that receives and one that sends."""

import os

from programs import Failed
from rdma_cm_cases import SERVER, connect

NEEDS = ("fio",)

COMMON = "[global]\nioengine=rdma\nport=9993\nbs=64k\nsize=4m\n"
# fio asks for no retries where no receive is posted: the receiver has one for every message from the start.
DEPTHS = {"receive": 64, "send": 16}


def fio(verb):
    def run(testbed):
        jobs = {"receive": COMMON + "[receive]\nrw=read\n",
                "send": COMMON + f"[send]\nhostname={SERVER}\nverb={verb}\nrw=write\n"}
        for name, text in jobs.items():
            with open(os.path.join(testbed.folder, name), "w", encoding="ascii") as file:
                file.write(f"{text}iodepth={DEPTHS[name]}\n")
        texts = connect(testbed, ["fio", "receive"], ["fio", "send"])
        if "WRITE: bw=" not in texts[1]:
            raise Failed(f"no figures in:\n{texts[1]}")
        return texts[1].split("WRITE: ")[1].split(",")[0]
    return f"fio, verb={verb}", run


CASES = [fio(verb) for verb in ("write", "read", "send")]
