"""libfabric over our queue pairs: its reliable messages on top of datagrams (rxd) and of RC (rxm), and RC
itself (msg).

No bed here loses packets: fi_pingpong may then wait for ever (docs/service.md)."""

from programs import Failed, namespaces, run_alone, run_pair, run_with_addresses, take_port

NEEDS = ("fi_info", "fi_pingpong")
RXD = "verbs;ofi_rxd"


def information(testbed):
    text = run_alone(testbed, testbed.on("h0", ["fi_info", "-p", RXD]))
    for wanted in ("domain: h0", "FI_EP_RDM"):
        if wanted not in text:
            raise Failed(f"no {wanted} in:\n{text}")


def connected(provider, endpoint):
    """By rdma_cm, which libfabric takes for an interface's address alone."""
    def run(testbed):
        if not namespaces():
            return "skipped: no network namespace for this user"
        port = take_port()
        # rxm asks for 768 completions for each peer that there may be, 256 by default; a queue has 65,536.
        common = ["env", "FI_UNIVERSE_SIZE=16", "fi_pingpong", "-p", provider, "-e", endpoint, "-I", "50", "-c"]
        text = run_with_addresses(testbed, testbed.on("h1", [*common, "-B", str(port)]),
                                  testbed.on("h0", [*common, "-P", str(port), "10.0.0.2"]), port, 40)
        if text.count("=50 ") < 12:
            raise Failed(f"fewer than 6 sizes at each end:\n{text}")
        return None
    return f"fi_pingpong -p {provider} -e {endpoint}", run


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


CASES = [("fi_info", information), pingpong("64", 500, 1), pingpong("1024", 500, 1),
         pingpong("65536", 200, 1), pingpong("all", 10, 40)]
CONNECTED = [connected("verbs", "msg"), connected("verbs;ofi_rxm", "rdm")]
TESTBEDS = [((f"cc.algorithm={algorithm}",), CASES + more)
            for algorithm, more in (("dcqcn", CONNECTED), ("cadence", []))]
