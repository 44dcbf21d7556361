"""ucx_perftest over our queue pairs."""

from programs import Failed, run_alone, run_pair, take_port
from rdma_cm_cases import SERVER, connect

NEEDS = ("ucx_perftest", "ucx_info")


def devices(testbed):
    text = run_alone(testbed, testbed.on("h0", ["ucx_info", "-d"]))
    for wanted in ("rc_verbs", "ud_verbs", "h0:1"):
        if wanted not in text:
            raise Failed(f"no {wanted} in:\n{text}")


def perftest(test, size, count, *transport):
    """With `transport` the bare transport of that name, else what UCX makes of UCX_TLS."""
    def run(testbed):
        port = take_port()
        server = ["env", f"UCX_TLS={TLS}", "ucx_perftest", "-p", str(port)]
        client = [*server, "127.0.0.1", "-t", test, "-s", str(size), "-n", str(count), "-w", "10"]
        nics = ("h0", "h1")
        if transport:  # the client tells the server which device to take, so both are on the same
            nics = ("h0", "h0")
            client += ["-d", "h0:1", "-x", *transport]
        texts = run_pair(testbed, testbed.on(nics[1], server), testbed.on(nics[0], client), port, 30)
        final = [line for line in texts[1].splitlines() if line.startswith("Final:")]
        if not final:
            raise Failed(texts[1])
        return " ".join(final[0].split())
    return f"ucx_perftest {test} {size} bytes {' '.join(transport) or TLS}", run


def io_demo(testbed):
    """UCX connects by rdma_cm."""
    command = ["env", f"UCX_TLS={TLS}", "UCX_SOCKADDR_TLS_PRIORITY=rdmacm", "io_demo", "-p", "13373"]
    texts = connect(testbed, command, [*command, "-i", "100", "-o", "read,write", SERVER], server_ends=False)
    if "Client exit with status 'OK'" not in texts[1]:
        raise Failed(texts[1])


TLS = "rc_v,ud_v,self"

CASES = [
    ("ucx_info -d", devices), ("io_demo over rdma_cm", io_demo),
    perftest("am_lat", 32, 300, "rc_verbs"), perftest("am_bw", 32, 1000, "rc_verbs"),
    perftest("put_lat", 32, 300, "rc_verbs"), perftest("put_bw", 32, 1000, "rc_verbs"),
    perftest("get", 4096, 300, "rc_verbs", "-D", "zcopy"), perftest("fadd", 8, 300, "rc_verbs"),
    perftest("am_lat", 32, 300, "ud_verbs"),
    perftest("tag_lat", 8, 300), perftest("tag_bw", 65536, 200), perftest("tag_bw", 1048576, 20),
    perftest("ucp_put_bw", 65536, 200), perftest("ucp_get", 4096, 200), perftest("ucp_fadd", 8, 200),
]
