"""Programs on two services, as on two machines: their connection managers speak by queue pair 1. For
devices_test.py.
"""

import os
import shutil

from capture_test import Capturing, rows_of
from programs import Failed
from rdma_cm_cases import (RPING_STATUSES, Place, check_rping, connect_places, killed, refused,
                           rping_commands)

ADDRESS = {"a": "10.0.0.1", "b": "10.0.0.2"}
ADDRESS_V6 = {"a": "fd00::1", "b": "fd00::2"}
# The attributes of the MADs of a connection's life, in order.
LIFE = ["REQ", "REP", "RTU", "DREQ", "DREP"]
NAMES = {0x10: "REQ", 0x11: "MRA", 0x12: "REJ", 0x13: "REP", 0x14: "RTU", 0x15: "DREQ", 0x16: "DREP"}


def places(wire, server):
    """Of server and client."""
    hosts = {"a": wire.a, "b": wire.b}
    return Place(hosts[server], None), Place(hosts["b" if server == "a" else "a"], None)


def messages(service):
    return service.status()["management"]


def nothing_went_wrong(wire):
    for service in (wire.a, wire.b):
        counts = messages(service)
        if counts["sent"] == 0 or counts["received"] == 0:
            raise Failed(f"no messages: {counts}")
        if any(counts[name] for name in ("refused", "lost")):
            raise Failed(f"refused or lost: {counts}")


def rping(server, v6=False):
    def run(wire):
        there, here = places(wire, server)
        address = (ADDRESS_V6 if v6 else ADDRESS)[server]
        serve, call = rping_commands(address)
        check_rping(*connect_places(there, serve, here, call, statuses=RPING_STATUSES))
        nothing_went_wrong(wire)
    return f"rping{' over IPv6' if v6 else ''}, server on {server}", run


def pair(server, program, *options, wants):
    def run(wire):
        there, here = places(wire, server)
        _, text = connect_places(there, [program, *options], here, [program, *options, "-s", ADDRESS[server]])
        if wants not in text:
            raise Failed(f"no \"{wants}\" in:\n{text}")
    return " ".join((program, *options, "server on", server)), run


def captured(wire):
    """The life of a connection as tshark reads it."""
    if shutil.which("tshark") is None:
        return "no tshark"
    file = os.path.join(wire.folder, "cm.pcapng")
    capturing = Capturing(wire.a, "a0", file)
    rping("b")[1](wire)
    capturing.interrupt()
    fields = ("infiniband.mad.attributeid", "infiniband.bth.destqp", "infiniband.deth.srcqp",
              "infiniband.deth.q_key", "infiniband.bth.p_key", "infiniband.mad.mgmtclass")
    rows = rows_of(file, "infiniband.mad", *fields)
    life = [NAMES[int(row[1], 0)] for row in rows]
    if life != LIFE:
        raise Failed(f"not {LIFE}: {life}")
    for row in rows:
        if [int(value, 0) for value in row[2:]] != [1, 1, 0x80010000, 0xFFFF, 7]:
            raise Failed(f"not from queue pair 1 to queue pair 1: {row}")
    asked = rows_of(file, "infiniband.cm.req", "infiniband.cm.req.serviceid.dport",
                    "infiniband.cm.req.ip_cm.sip4", "infiniband.cm.req.ip_cm.dip4")
    if [(int(port, 0), *ends) for _, port, *ends in asked] != [(7174, ADDRESS["a"], ADDRESS["b"])]:
        raise Failed(f"the REQ says {asked}")
    return " ".join(life)


def nobody_listens(wire):
    before = messages(wire.b)["rejected"]
    refused(places(wire, "b")[1], rping_commands(ADDRESS["b"])[1], "RDMA_CM_EVENT_REJECTED, error 8")
    if messages(wire.b)["rejected"] != before + 1:
        raise Failed(f"not counted: {messages(wire.b)}")


def killed_at_b(who):
    return killed(who, lambda wire: places(wire, "b"), ADDRESS["b"])


CASES = [
    rping("b"), rping("a"), rping("b", v6=True),
    pair("b", "ucmatose", "-c", "4", "-C", "20", wants="return status 0"),
    pair("a", "udaddy", "-c", "4", "-C", "20", wants="return status 0"),
    ("rping, captured", captured), ("rping, nobody listens", nobody_listens), killed_at_b(0),
    killed_at_b(1),
]
