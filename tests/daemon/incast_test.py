"""configs/experiments/live-incast.toml as it is shipped, on configs/testbeds/incast.toml: DCQCN against Cadence while
four hosts send to the fifth. It ends with a verdict, or with the words that the host is too slow to be believed."""

import json
import os
import time

from host import Host, check
from live import Traffic, experiment, in_force
from testbed import PATIENCE, ROOT, need, say

PLAN = os.path.join(ROOT, "configs", "experiments", "live-incast.toml")
LONGEST = 600  # seconds: 120 pairs of two blocks of 2 s, with their wash-outs
TOO_SLOW = "the host was too slow"


def main():
    need("ib_write_bw")
    host = Host("incast")
    traffic = None
    try:
        host.start()
        host.wait_for("the service is started", host.healthy)
        traffic = Traffic(host, [(f"h{sender}", "h4") for sender in range(4)], LONGEST)
        host.wait_for("traffic flows", lambda: sum(
            pair["rx_bytes"] for pair in host.ask("GET", "/v1/nics/h4/queue_pairs")[1]["queue_pairs"]) > 1e6)
        begin = time.monotonic()
        code, text, errors = experiment(host, "run", PLAN, "--why", "incast at h4", "--json", seconds=LONGEST)
        found = json.loads(text)["experiment"]
        say(f"     {time.monotonic() - begin:.0f} s: {found['state']}, {found['verdict']}: {found.get('ended')}")
        report = json.loads(experiment(host, "report", found["id"], "--json")[1])
        primary = report["metrics"][0]
        say(f"     {primary['metric']} {primary['effect']:+.1%}, {report['pairs_usable']} of "
            f"{report['pairs_attempted']} pairs; {report['reasons']}")
        told = f"{text}{errors}"
        if any(TOO_SLOW in reason for reason in report["reasons"]):
            say("ok   it says that this host is too slow for it")
        else:
            # Which arm is better depends on the machine; no guard may trip, and enough pairs count.
            check(code == 0 and found["state"] == "concluded", f"it concludes: {told}")
            check(report["pairs_usable"] >= 12, f"pairs that count: {told}")
            say("ok   it concludes as shipped")
        check(in_force(host) == {"dcqcn"}, "the champion is in force")
    except BaseException:
        say(host.logs() + "".join(p.text() for p in (traffic.programs if traffic else ())))
        raise
    finally:
        if traffic is not None:
            traffic.close()
        host.close()


main()
