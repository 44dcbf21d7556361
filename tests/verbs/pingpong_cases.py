"""The programs of Debian's ibverbs-utils."""

import sys

from programs import Failed, run_alone, run_pair, take_port

NEEDS = ("ibv_devices", "ibv_devinfo", "ibv_rc_pingpong", "ibv_uc_pingpong", "ibv_ud_pingpong",
         "ibv_srq_pingpong", "ibv_xsrq_pingpong")


def expect(text, *wanted):
    for word in wanted:
        if word not in text:
            raise Failed(f"no \"{word}\" in:\n{text}")


def devices(testbed):
    listed = run_alone(testbed, testbed.on("h0", ["ibv_devices"]))
    expect(listed, "h0")
    if "h1" in listed:
        raise Failed(f"--nic h0 shows h1 as well:\n{listed}")


def information(testbed):
    text = run_alone(testbed, testbed.on("h1", ["ibv_devinfo", "-v"]))
    expect(text, "hca_id:\th1", "PORT_ACTIVE", "Ethernet", "RoCE v2", "GID[  0]", "GID[  1]")


def opened_by_hand(testbed):
    """A program that is not linked with libibverbs but opens it, as NCCL does."""
    program = ("import ctypes; count = ctypes.c_int();"
               "ctypes.CDLL('libibverbs.so.1').ibv_get_device_list(ctypes.byref(count));"
               "print(count.value, 'devices')")
    expect(run_alone(testbed, testbed.on(None, [sys.executable, "-c", program], "--drop-in")),
           "2 devices")


def pingpong(program, *options, how=()):
    def run(testbed):
        port = take_port()
        common = [program, "-p", str(port), "-n", "300", *options]
        texts = run_pair(testbed, testbed.on("h1", common, *how),
                         testbed.on("h0", common + ["127.0.0.1"], *how), port)
        for text in texts:
            expect(text, "bytes in", "iters in")
            if "invalid data" in text:
                raise Failed(f"wrong bytes:\n{text}")
        return texts[1].strip().splitlines()[-1]
    return " ".join((*how, program, *options)), run


def xrc_pingpong(*options):
    """It counts no bytes, and does not look at them."""
    program = "ibv_xsrq_pingpong"

    def run(testbed):
        port = take_port()
        common = [program, "-p", str(port), "-n", "300", *options]
        texts = run_pair(testbed, testbed.on("h1", common), testbed.on("h0", common + ["127.0.0.1"]), port)
        for text in texts:
            expect(text, "SRQN", "success")
        return texts[1].strip().splitlines()[-1]
    return " ".join((program, *options)), run


# Without -g the ends name each other by local identifiers; by GID index 0 is IPv4 and 1 IPv6.
CASES = [
    ("ibv_devices", devices), ("ibv_devinfo -v", information),
    ("--drop-in dlopen()", opened_by_hand),
    pingpong("ibv_rc_pingpong", "-g", "0", "-c", how=("--drop-in",)),
    pingpong("ibv_rc_pingpong", "-g", "0", "-c", how=("--copy",)),
    pingpong("ibv_rc_pingpong"), pingpong("ibv_rc_pingpong", "-g", "0"),
    pingpong("ibv_rc_pingpong", "-g", "1"), pingpong("ibv_rc_pingpong", "-g", "0", "-e"),
    pingpong("ibv_rc_pingpong", "-g", "0", "-N"), pingpong("ibv_rc_pingpong", "-g", "0", "-c"),
    pingpong("ibv_rc_pingpong", "-g", "0", "-t"),
    pingpong("ibv_rc_pingpong", "-g", "1", "-e", "-N", "-c"),
    pingpong("ibv_rc_pingpong", "-g", "0", "-c", "-s", "1000000", "-m", "4096"),
    pingpong("ibv_uc_pingpong"), pingpong("ibv_uc_pingpong", "-g", "0", "-e"),
    pingpong("ibv_uc_pingpong", "-g", "1", "-c"),
    pingpong("ibv_ud_pingpong"), pingpong("ibv_ud_pingpong", "-g", "0", "-e"),
    pingpong("ibv_ud_pingpong", "-g", "1", "-c"),
    pingpong("ibv_srq_pingpong"), pingpong("ibv_srq_pingpong", "-g", "0", "-e"),
    pingpong("ibv_srq_pingpong", "-g", "1", "-q", "4", "-c"),
    xrc_pingpong(), xrc_pingpong("-g", "0", "-e"), xrc_pingpong("-g", "1"),
]
