"""READ beside WRITE under selective repeat: random losses cost both about the same, and the repair of
either seldom waits for the timer. A READ may have a third of WRITE's rate in the same run; the rest is
for a busy machine."""

import json

from perftest_cases import perftest
from programs import Failed, run_alone

NEEDS = ("ib_write_bw", "ib_read_bw")
TRIES = 3  # another program may take the machine during one of a pair


def figures(testbed):
    """Timeouts of both hosts and packets that the fabric has lost, since the testbed began."""
    text = run_alone(testbed, [testbed.paceline, "testbed", "status", "--json", "--socket",
                               testbed.socket])
    workers = json.loads(text)["workers"]
    return (sum(nic["counters"]["timeouts"] for worker in workers for nic in worker["nics"]),
            sum(sum(worker["fabric"]["drops"].values()) for worker in workers))


def compared(size, count):
    def average(_, __, found):
        return float(found[-1][3])

    write, read = (perftest(program, "-s", str(size), count=str(count), check=average)[1]
                   for program in ("ib_write_bw", "ib_read_bw"))

    def run(testbed):
        timeouts, lost = figures(testbed)
        best = (0, 0, 0)
        for _ in range(TRIES):
            rates = write(testbed), read(testbed)
            best = max(best, (rates[1] / rates[0], *rates))
            if best[0] > 1 / 3:
                break
        after = figures(testbed)
        timeouts, lost = after[0] - timeouts, after[1] - lost
        told = (f"READ {best[2]:.0f} MB/s, WRITE {best[1]:.0f}, {timeouts} timeouts for {lost} lost "
                "packets")
        if best[0] <= 1 / 3 or lost == 0 or timeouts * 20 > lost:
            raise Failed(told)
        return told
    return f"ib_read_bw within 3 times of ib_write_bw, {size} bytes", run


CASES = [compared(65536, 1000), compared(1 << 20, 200)]
TESTBEDS = [((f"fabric.loss={loss}", "transport.reliability=selective"), CASES)
            for loss in ("0.001", "0.01")]
