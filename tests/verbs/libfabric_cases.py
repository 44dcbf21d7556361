"""libfabric over our queue pairs: its reliable messages (rxd) on top of datagrams.

No bed here loses packets: fi_pingpong may then wait for ever (docs/service.md)."""

from programs import Failed, run_alone, run_pair, take_port

NEEDS = ("fi_info", "fi_pingpong")
RXD = "verbs;ofi_rxd"


def information(testbed):
    text = run_alone(testbed, testbed.on("h0", ["fi_info", "-p", RXD]))
    for wanted in ("domain: h0", "FI_EP_RDM"):
        if wanted not in text:
            raise Failed(f"no {wanted} in:\n{text}")


def pingpong(size, iterations, least_rows):
    def run(testbed):
        port = str(take_port())
        common = ["fi_pingpong", "-p", RXD, "-e", "rdm", "-S", size, "-I", str(iterations), "-c"]
        texts = run_pair(testbed, testbed.on("h1", [*common, "-B", port]),
                         testbed.on("h0", [*common, "-P", port, "127.0.0.1"]), int(port), 40)
        for text in texts:  # size, sent, acknowledged, bytes, seconds, MB/s, us, messages
            rows = [row for row in map(str.split, text.splitlines())
                    if len(row) == 8 and row[2] == f"={iterations}"]
            if len(rows) < least_rows:
                raise Failed(f"{len(rows)} sizes of {least_rows} in:\n{text}")
        return " ".join(rows[-1])
    return f"fi_pingpong -p {RXD} -e rdm -S {size} -I {iterations}", run


# Its datagrams and its messages over RC (rxm) want rdma_cm.
CASES = [("fi_info", information), pingpong("64", 500, 1), pingpong("1024", 500, 1),
         pingpong("65536", 200, 1), pingpong("all", 10, 40)]
TESTBEDS = [((f"cc.algorithm={algorithm}",), CASES) for algorithm in ("dcqcn", "cadence")]
