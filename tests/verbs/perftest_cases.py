"""Debian's perftest over every option that issue reports of RDMA users name."""

import os
import re

from programs import Failed, run_pair, take_port

NEEDS = ("ib_send_bw", "ib_write_bw", "ib_read_bw", "ib_atomic_bw", "ib_send_lat", "ib_write_lat",
         "ib_read_lat", "ib_atomic_lat")


def rows(text):
    """The lines of numbers under the header of a result."""
    return [line.split() for line in text.splitlines() if re.match(r"^ *\d+ +\d+ +[\d.]", line)]


def perftest(program, *options, count="100", check=None, seconds=20):
    def run(testbed):
        port = take_port()
        common = [program, "-p", str(port), "-F", *(("-n", count) if count else ()), *options]
        texts = run_pair(testbed, testbed.on("h1", common),
                         testbed.on("h0", common + ["127.0.0.1"]), port, seconds)
        found = rows(texts[1])
        if "--out_json" not in options and not found:
            raise Failed(f"no result in:\n{texts[1]}")
        if check is not None:
            return check(testbed, texts, found)
        return " ".join(found[-1]) if found else ""
    return " ".join((program, *options)), run


def sizes(count):
    def check(_, texts, found):
        if len(found) < count:
            raise Failed(f"{len(found)} sizes of {count} in:\n{texts[1]}")
        return " ".join(found[-1])
    return check


def json_file(testbed, texts, _):
    name = os.path.join(testbed.folder, "perftest_out.json")
    try:
        with open(name, encoding="utf-8") as file:
            text = file.read()
    except OSError as error:
        raise Failed(f"{error}\n{texts[1]}") from None
    # What this version of perftest writes is nearly JSON: names without quotes, a comma too many.
    values = dict(re.findall(r'^"?(\w+)"?: *([\d.]+)', text, re.MULTILINE))
    if float(values.get("BW_average", 0)) <= 0 or values.get("n_iterations") != "100":
        raise Failed(f"no results in {name}:\n{text}")
    return f"{values['BW_average']} MB/s"


def between(low, high):
    """Average bandwidth with --report_gbits."""
    def check(_, texts, found):
        average = float(found[-1][3])
        if not low <= average <= high:
            raise Failed(f"{average} Gb/s, not {low} to {high}:\n{texts[1]}")
        return f"{average} Gb/s"
    return check


BANDWIDTH = ("ib_send_bw", "ib_write_bw", "ib_read_bw")
LATENCY = ("ib_send_lat", "ib_write_lat", "ib_read_lat")

CASES = [perftest(p) for p in (*BANDWIDTH, *LATENCY, "ib_atomic_bw", "ib_atomic_lat")]
CASES += [perftest("ib_write_bw", "-a", count="5", check=sizes(23), seconds=60)]
CASES += [perftest(p, "-q", "64", "-s", "4096", count="20", seconds=40)
          for p in BANDWIDTH]
CASES += [perftest("ib_atomic_bw", "-q", "64", count="20", seconds=40)]
CASES += [perftest(p, "-b") for p in (*BANDWIDTH, "ib_atomic_bw")]
CASES += [perftest("ib_send_bw", "-b", "-q", "4")]
CASES += [perftest(p, "-e") for p in ("ib_send_bw", "ib_read_bw", "ib_send_lat", "ib_read_lat")]  # it has no events for WRITE
CASES += [
    perftest("ib_send_bw", "--use-srq"), perftest("ib_send_bw", "--use-srq", "-q", "4"),
    perftest("ib_send_lat", "--use-srq"),
    perftest("ib_send_bw", "-c", "UD", "-s", "1024"), perftest("ib_send_lat", "-c", "UD"),
    perftest("ib_send_bw", "-c", "UC"), perftest("ib_send_lat", "-c", "UC"),
    perftest("ib_write_bw", "-c", "UC"), perftest("ib_write_lat", "-c", "UC"),
    perftest("ib_send_bw", "-c", "XRC", "-q", "4"), perftest("ib_send_lat", "-c", "XRC"),
    perftest("ib_write_bw", "-c", "XRC"), perftest("ib_read_bw", "-c", "XRC"),
    perftest("ib_atomic_bw", "-c", "XRC"),
    perftest("ib_write_bw", "-x", "0"), perftest("ib_write_bw", "-x", "1"),
    perftest("ib_write_bw", "-m", "1024"), perftest("ib_send_bw", "-x", "1", "-m", "256"),
    perftest("ib_atomic_bw", "-A", "CMP_AND_SWAP"), perftest("ib_atomic_bw", "-A", "FETCH_AND_ADD"),
    perftest("ib_send_lat", "-I", "64"), perftest("ib_write_bw", "--use_old_post_send"),
    perftest("ib_write_bw", "-D", "3", count=None, seconds=30),
    perftest("ib_write_bw", "--rate_limit=1", "--rate_units=g", "--rate_limit_type=SW",
             "--report_gbits", count="400", check=between(0.5, 1.3)),
    # Its other types are not for this device: HW wants InfiniBand as the link layer, PP raw packets.
    perftest("ib_write_bw", "--out_json", check=json_file),
]
