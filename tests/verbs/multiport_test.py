#!/usr/bin/env python3
"""Devices of several ports: nic.shape = "multiport".

  multiport_test.py MULTIPORT_PEER PACELINE PACELINE-DATAPLANE [PART OF A CASE'S NAME]

MULTIPORT_PEER is multiport.c.
"""

import os
import shutil
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from programs import (Failed, Running, run_alone, run_pair,  # noqa: E402
                      run_table, take_port)
from testbed import PATIENCE, Testbed, end, say  # noqa: E402

PLANES = "configs/testbeds/planes.toml"
SHAPE = ["nic.shape=multiport"]
PORT = "/sys/class/infiniband/h0/ports"
SECOND = "10.1.0.2"  # h1, port 2


def expect(good, text):
    if not good:
        raise Failed(text)


def says(program, line):
    limit = time.monotonic() + 60 * PATIENCE
    while line not in program.text().splitlines():
        ended = program.process.poll() is not None or time.monotonic() > limit
        expect(not ended or line in program.text().splitlines(), program.text())
        time.sleep(0.01)


def a_port_fails(peer):
    def run(testbed):
        program = Running(testbed, testbed.on(None, [peer]))
        try:
            says(program, "ready")
            testbed.control(op="fault", events=[{"target": "h0.1", "action": "down"}])
            says(program, "down")
            testbed.control(op="fault", events=[{"target": "h0.1", "action": "up"}])
            says(program, "passed")
        finally:
            end(program.process)
    return "a program with queue pairs at both ports, of which one fails", run


def information(testbed):
    if shutil.which("ibv_devinfo") is None:
        return say("skipped: ibv_devinfo (ibverbs-utils is not installed)")
    text = run_alone(testbed, testbed.on("h0", ["ibv_devinfo", "-v"]))
    expect("phys_port_cnt:\t\t\t2" in text and "port:\t2" in text.replace("\t\t", "\t") and
           text.count("PORT_ACTIVE (4)") == 2 and "10.1.0.1" in text, text)
    return None


def files(testbed):
    text = run_alone(testbed, testbed.on("h0", ["sh", "-c", f"cd {PORT} && ls && cat 2/gids/0 2/state "
                                                "&& test -d 1/counters && test ! -e 2/counters"]))
    expect(text.startswith("1\n2\n0000:0000:0000:0000:0000:ffff:0a01:0001\n4: ACTIVE\n"), text)


def pingpong(program):
    def run(testbed):
        if shutil.which(program) is None:
            return say(f"skipped: {program} (it is not installed)")
        port = take_port()
        command = [program, "-p", str(port), "-n", "300", "-i", "2", "-g", "0"]
        texts = run_pair(testbed, testbed.on("h1", command),
                         testbed.on("h0", [*command, "127.0.0.1"]), port)
        expect(all("iters in" in text for text in texts), "\n".join(texts))
        return None
    return f"{program} -i 2", run


def write_bw(testbed):
    if shutil.which("ib_write_bw") is None:
        return say("skipped: ib_write_bw (perftest is not installed)")
    port = take_port()
    command = ["ib_write_bw", "-F", "-p", str(port), "-n", "500", "-i", "2", "-x", "0"]
    run_pair(testbed, testbed.on("h1", command), testbed.on("h0", [*command, "127.0.0.1"]), port)
    return None


def connected_by_address(testbed):
    if shutil.which("rping") is None:
        return say("skipped: rping (rdmacm-utils is not installed)")
    server = Running(testbed, testbed.on("h1", ["rping", "-s", "-a", SECOND, "-C", "5"]))
    try:
        time.sleep(0.3)
        run_alone(testbed, testbed.on("h0", ["rping", "-c", "-a", SECOND, "-C", "5", "-v"]))
        server.finish(time.monotonic() + 20 * PATIENCE)
    finally:
        end(server.process)
    # From an address of port 1 there is no way to one of port 2.
    try:
        run_alone(testbed, testbed.on("h0", ["rping", "-c", "-I", "10.0.0.1", "-a", SECOND, "-C", "1"]))
    except Failed as error:
        expect("RDMA_CM_EVENT_ADDR_ERROR" in str(error), str(error))
        return None
    raise Failed("10.0.0.1 reaches 10.1.0.2")


def main():
    peer, paceline, dataplane = sys.argv[1:4]
    cases = [a_port_fails(peer), ("ibv_devinfo", information), ("files in sysfs", files),
             pingpong("ibv_rc_pingpong"), pingpong("ibv_ud_pingpong"), pingpong("ibv_srq_pingpong"),
             ("ib_write_bw -i 2", write_bw), ("rping to port 2", connected_by_address)]
    with Testbed(paceline, dataplane, PLANES, SHAPE) as testbed:
        sys.exit(1 if run_table(testbed, cases, *sys.argv[4:5]) else 0)


if __name__ == "__main__":
    main()
