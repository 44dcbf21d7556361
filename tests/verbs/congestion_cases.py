"""Congestion control is visible from outside: the same incast of unmodified programs, four senders
and one receiver through the emulated switch, under two algorithms that only the testbed names."""

import json
import time

from programs import Failed, Running, listens, run_alone, take_port
from testbed import PATIENCE, end

NEEDS = ("ib_write_bw",)
TESTBED = "configs/testbeds/incast.toml"
SENDERS = ("h0", "h1", "h2", "h3")
RECEIVER = "h4"
seen = {}


def port_of_receiver(testbed):
    """What happened at the switch port towards the receiver."""
    text = run_alone(testbed, [testbed.paceline, "testbed", "status", "--json", "--socket",
                               testbed.socket])
    try:
        ports = list(queues_of(json.loads(text)))
    except ValueError as error:
        raise Failed(f"{error}: {text}") from None
    if not ports:
        raise Failed(f"no switch ports in:\n{text}")
    return max(ports, key=lambda port: port["most_bytes"])


def queues_of(status):
    """The reports of switch ports, wherever they are in the service's status."""
    if isinstance(status, dict):
        if "most_bytes" in status and "marked" in status:
            yield status
        status = list(status.values())
    if isinstance(status, list):
        for part in status:
            if isinstance(part, (dict, list)):
                yield from queues_of(part)


def incast(algorithm):
    def run(testbed):
        limit = time.monotonic() + 40 * PATIENCE
        programs = []
        try:
            pairs = [(sender, take_port()) for sender in SENDERS]
            common = lambda port: ["ib_write_bw", "-F", "-D", "3", "-q", "4", "-p", str(port)]
            for _, port in pairs:
                programs.append(Running(testbed, testbed.on(RECEIVER, common(port))))
            while not all(listens(port) for _, port in pairs):
                if time.monotonic() > limit:
                    raise Failed("the servers do not listen")
                time.sleep(0.01)
            for sender, port in pairs:
                programs.append(Running(testbed, testbed.on(sender, [*common(port), "127.0.0.1"])))
            for program in programs:
                program.finish(limit)
        except Failed as error:
            told = "\n".join(f"$ {' '.join(p.command)}\n{p.text()}" for p in programs)
            raise Failed(f"{error}\n{told}") from None
        finally:
            for program in programs:
                end(program.process)
        port = port_of_receiver(testbed)
        seen[algorithm] = port
        return f"deepest queue {port['most_bytes']} bytes, {port['marked']} marked"
    return f"incast 4 to 1 under {algorithm}", run


def differ(_):
    if len(seen) < 2:
        raise Failed("an incast failed")
    # DCQCN starts at line rate and is told by marks; Cadence asks for credits first and keeps the
    # queue below where marking begins.
    dcqcn, cadence = seen["dcqcn"], seen["cadence"]
    if dcqcn["marked"] == 0 or not cadence["most_bytes"] < dcqcn["most_bytes"]:
        raise Failed(f"dcqcn {dcqcn}\ncadence {cadence}")
    return ""


TESTBEDS = [
    (("cc.algorithm=dcqcn",), [incast("dcqcn")]),
    (("cc.algorithm=cadence",), [incast("cadence"), ("queues and marks differ", differ)]),
]
