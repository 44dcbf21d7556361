"""qperf's RDMA tests."""

import re

from programs import Failed, namespaces, run_pair, run_with_addresses, take_port

NEEDS = ("qperf",)
FEW = ("rc_lat", "rc_rdma_write_poll_lat", "uc_rdma_write_bw", "ud_lat", "ver_rc_fetch_add")
ALL = ("rc_bi_bw", "rc_bw", "rc_lat", "rc_compare_swap_mr", "rc_fetch_add_mr", "rc_rdma_read_bw",
       "rc_rdma_read_lat", "rc_rdma_write_bw", "rc_rdma_write_lat", "rc_rdma_write_poll_lat", "uc_bi_bw",
       "uc_bw", "uc_lat", "uc_rdma_write_bw", "uc_rdma_write_lat", "uc_rdma_write_poll_lat", "ud_bi_bw",
       "ud_bw", "ud_lat", "ver_rc_compare_swap", "ver_rc_fetch_add")


def qperf(name, tests):
    """A second each, the least there is: with -n it may wait for ever, also over TCP."""
    def run(testbed):
        port = take_port()
        server = ["qperf", "-lp", str(port)]
        _, text = run_pair(testbed, testbed.on("h1", server), testbed.on(
            "h0", [*server, "-t", "1", "127.0.0.1", *tests, "quit"]), port, 10 + 3 * len(tests))
        for test in tests:
            # "quit" says nothing; a test's lines are "bw = 2.83 GB/sec", "latency = 61.7 us" and the like.
            figures = re.search(rf"^{test}:\n((?: .*\n?)+)", text, re.MULTILINE)
            if not figures or re.search(r"= +0 ", figures.group(1)):
                raise Failed(f"no figures of {test} in:\n{text}")
    return name, run


def by_rdma_cm(testbed):
    if not namespaces():
        return "skipped: no network namespace for this user"
    port = take_port()
    server = ["qperf", "-lp", str(port)]
    text = run_with_addresses(testbed, testbed.on("h1", server), testbed.on(
        "h0", [*server, "-t", "1", "-cm", "1", "10.0.0.2", "rc_lat"]), port)
    if "latency" not in text:
        raise Failed(text)
    return None


CASES = [qperf("five tests", FEW), ("-cm 1", by_rdma_cm)]
