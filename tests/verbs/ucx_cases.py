"""ucx_perftest over our queue pairs."""

from programs import Failed, run_alone, run_pair, take_port

NEEDS = ("ucx_perftest", "ucx_info")


def devices(testbed):
    text = run_alone(testbed, testbed.on("h0", ["ucx_info", "-d"]))
    for wanted in ("rc_verbs", "ud_verbs", "h0:1"):
        if wanted not in text:
            raise Failed(f"no {wanted} in:\n{text}")


def perftest(test, size, count, transports="rc_v,self"):
    def run(testbed):
        port = take_port()
        base = ["env", f"UCX_TLS={transports}", "ucx_perftest", "-p", str(port)]
        texts = run_pair(testbed, testbed.on("h1", base),
                         testbed.on("h0", base + ["127.0.0.1", "-t", test, "-s", str(size), "-n",
                                                  str(count), "-w", "10"]), port, 30)
        final = [line for line in texts[1].splitlines() if line.startswith("Final:")]
        if not final:
            raise Failed(texts[1])
        return " ".join(final[0].split())
    return f"ucx_perftest {test} {size} bytes, {transports}", run


CASES = [
    ("ucx_info -d", devices),
    perftest("tag_lat", 8, 300), perftest("tag_bw", 65536, 200), perftest("tag_bw", 1048576, 20),
    perftest("am_lat", 64, 300), perftest("put_lat", 64, 300), perftest("ucp_put_bw", 65536, 200),
    perftest("ucp_get", 4096, 200), perftest("ucp_fadd", 8, 200),
    perftest("tag_bw", 4096, 200, "ud_v,self"),
]
