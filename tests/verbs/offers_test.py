#!/usr/bin/env python3
"""What the devices offer and refuse beside the everyday calls, the files that tools read, and a NIC
that is taken away.

  offers_test.py OFFERS REMOVAL XRC PACELINE PACELINE-DATAPLANE [PART OF A CASE'S NAME]

OFFERS, REMOVAL and XRC are offers.c, removal.c and xrc.c.
"""

import os
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from programs import Failed, Running, run_alone, run_pair, run_table, take_port  # noqa: E402
from testbed import PATIENCE, Testbed, end, say  # noqa: E402

PORT = "/sys/class/infiniband/{}/ports/1/{}"
ADDITIVE = (("h0", "counters/port_xmit_packets", 500), ("h0", "counters/port_xmit_data", 500 * 1024),
            ("h1", "counters/port_rcv_packets", 500), ("h1", "counters/port_rcv_data", 500 * 1024))


def expect(good, text):
    if not good:
        raise Failed(text)


def offers(program, case, *options):
    def run(testbed):
        text = run_alone(testbed, testbed.on(None, [program, case], *options), seconds=60)
        expect(f"{case} passed" in text, text)
    return " ".join([case, *options]), run


def xrc(program, case):
    def run(testbed):
        options = [os.path.join(testbed.folder, "domain")] if case == "shared" else []
        text = run_alone(testbed, testbed.on(None, [program, case, *options]), seconds=60)
        expect(f"{case} passed" in text, text)
    return f"xrc {case}", run


def shell(testbed, line, *arguments):
    return run_alone(testbed, testbed.on(None, ["sh", "-c", line, "sh", *arguments]))


def counter(testbed, nic, name):
    return int(shell(testbed, 'cat "$1"', PORT.format(nic, name)))


def write_bw(testbed, *options):
    port = take_port()
    command = ["ib_write_bw", "-F", "-p", str(port), "-n", "500", "-s", "4096", *options]
    return run_pair(testbed, testbed.on("h1", command), testbed.on("h0", [*command, "127.0.0.1"]),
                    port)[1]


def counters_are_live(testbed):
    if shutil.which("ib_write_bw") is None:
        return say("skipped: ib_write_bw (perftest is not installed)")
    before = [counter(testbed, nic, name) for nic, name, _ in ADDITIVE]
    # perftest keeps the files open and reads them again by lseek().
    text = write_bw(testbed, "-W", "counters/port_xmit_packets,hw_counters/out_of_buffer")
    told = re.findall(r"^\s*counters/port_xmit_packets\D*(\d+)\s*$", text, re.M)
    expect(told and int(told[-1]) >= 500, f"perftest reports port_xmit_packets:\n{text}")
    for (nic, name, least), number in zip(ADDITIVE, before):
        expect(counter(testbed, nic, name) >= number + least, f"{nic} {name} has grown by {least}")
    # Nothing is sent between the two.
    figures = testbed.status()["workers"][0]["nics"][0]["counters"]
    sent = figures["tx_data_packets"] + figures["retransmitted_packets"] + figures["tx_control_packets"]
    expect(counter(testbed, "h0", "counters/port_xmit_packets") == sent, "the status says the same")
    expect(counter(testbed, "h0", "counters/port_rcv_packets") == figures["rx_packets"], "likewise")


def counters_of_losses(testbed):
    if shutil.which("ib_write_bw") is None:
        return say("skipped: ib_write_bw (perftest is not installed)")
    write_bw(testbed)
    figures = [nic["counters"] for nic in testbed.status()["workers"][0]["nics"]]
    expect(figures[1]["out_of_sequence"] > 0, "something was lost")
    for nic, counters in zip(("h0", "h1"), figures):
        for name, of in (("out_of_sequence", "out_of_sequence"), ("np_cnp_sent", "cnps_sent"),
                         ("rp_cnp_handled", "cnps_received"), ("local_ack_timeout_err", "timeouts"),
                         ("np_ecn_marked_roce_packets", "rx_ce_packets")):
            got = counter(testbed, nic, f"hw_counters/{name}")
            expect(got == counters[of], f"{nic} {name}: {got}, {counters[of]} by the status")


def files(testbed):
    folder = PORT.format("h0", "hw_counters")
    names = shell(testbed, 'ls "$1"', folder).split()
    expect({"out_of_sequence", "packet_seq_err", "np_cnp_sent", "rnr_nak_retry_err"} <= set(names), names)
    # As programs read: by open() and stdio, by their own folder, through links and again.
    code = ("import os, sys; f = os.open(sys.argv[1], os.O_RDONLY)\n"
            "for _ in range(3): assert int(os.pread(f, 99, 0)) >= 0\n"
            "os.lseek(f, 0, 0); assert os.read(f, 99).endswith(b'\\n'); os.close(f)\n"
            "f = os.open('/etc/passwd', os.O_RDONLY)  # by the same number\n"
            "assert os.pread(f, 4, 0) == os.read(f, 4) and os.lseek(f, 0, 0) == 0\n"
            "print(int(open(sys.argv[1]).read()))\n"
            "for name, error in ((sys.argv[1] + 'x', 2),):\n"
            "  try: open(name)\n"
            "  except OSError as e: assert e.errno == error\n"
            "  else: raise SystemExit('no error')\n")
    path = f"{folder}/out_of_sequence"
    text = run_alone(testbed, testbed.on("h0", [sys.executable, "-c", code, path]))
    expect(text.strip().isdigit(), text)
    # By the folder, in a shell and in a program that it starts; all are counters of the same NIC.
    if shutil.which("ib_write_bw"):
        packets = counter(testbed, "h0", "counters/port_rcv_packets")
        expect(packets > 0, "a counter that is not 0")
        for line in ('cd "$1"; cat port_rcv_packets', 'cd "$1"; read n < port_rcv_packets; echo $n',
                     'grep -rh . "$1/port_rcv_packets"', 'cd "$1/.."; grep -h . counters/port_rcv_packets'):
            got = shell(testbed, line, PORT.format("h0", "counters")).strip()
            expect(got == str(packets), f"{line}: {got}, not {packets}")


def tools(testbed):
    if shutil.which("ibstat"):
        text = run_alone(testbed, testbed.on(None, ["ibstat"]))
        for line in ("CA 'h0'", "CA 'h1'", "CA type: Paceline", "Rate: 25", "State: Active"):
            expect(line in text, f"ibstat does not say {line}:\n{text}")
        expect(re.search(r"Firmware version: \d+\.\d+", text), text)
        text = run_alone(testbed, testbed.on(None, ["ibstatus"]))
        expect("'h0' port 1" in text and "'h1' port 1" in text and "5: LinkUp" in text, text)
    else:
        say("skipped: ibstat, ibstatus (infiniband-diags is not installed)")
    if shutil.which("rdma"):
        done = subprocess.run(testbed.on(None, ["rdma", "link"]), capture_output=True, text=True,
                              env=testbed.environment, timeout=20)
        expect(done.returncode == 2 and "netlink" in done.stderr and "ibstat" in done.stderr,
               f"rdma: {done.returncode} {done.stderr}")
    else:
        say("skipped: rdma (iproute2 is not installed)")


def removal(program):
    def run(testbed):
        remove = [testbed.paceline, "testbed", "remove", "--socket", testbed.socket]
        refused = subprocess.run([*remove, "h1", "h7"], capture_output=True, text=True,
                                 env=testbed.environment, timeout=20)
        expect(refused.returncode == 2 and '"h7"' in refused.stderr, refused.stderr)
        running = Running(testbed, testbed.on(None, [program, "h0", "h1"]))
        try:
            limit = time.monotonic() + 60 * PATIENCE
            while "ready" not in running.text() and running.process.poll() is None:
                expect(time.monotonic() < limit, "not ready")
                time.sleep(0.02)
            run_alone(testbed, [*remove, "h1"])
            text = running.finish(limit)
            expect("removal passed" in text and "NIC h1 was taken away" in text, text)
        except Failed as error:
            raise Failed(f"{error}\n{running.text()}") from None
        finally:
            end(running.process)
        again = subprocess.run([*remove, "h1"], capture_output=True, text=True,
                               env=testbed.environment, timeout=20)
        expect(again.returncode == 2 and "before" in again.stderr, again.stderr)
        expect("taken away" in run_alone(testbed, [testbed.paceline, "testbed", "status", "--socket",
                                                   testbed.socket]), "the status says so")
        listed = run_alone(testbed, testbed.on(None, ["ls", "/sys/class/infiniband"])).split()
        expect(listed == ["h0"], f"files of {listed}")
        none = subprocess.run(testbed.on("h1", ["true"]), capture_output=True, text=True,
                              env=testbed.environment, timeout=20)
        expect(none.returncode == 2 and "h1" in none.stderr, f"exec --nic h1: {none.stderr}")
        expect(testbed.alive(), "the service lives")
    return "removal", run


def main():
    if len(sys.argv) < 6:
        sys.exit(__doc__)
    program, remover, domains, paceline, dataplane = sys.argv[1:6]
    only = sys.argv[6] if len(sys.argv) > 6 else None
    failed = 0
    for sets, table in (
            ((), [offers(program, "newer"), offers(program, "order"),
                  offers(program, "order", "--reorder"), offers(program, "srq-resize"),
                  offers(program, "refused"), offers(program, "probes"),
                  xrc(domains, "one"), xrc(domains, "shared"),
                  ("counters", counters_are_live), ("files", files), ("tools", tools)]),
            (("fabric.loss=0.02",), [xrc(domains, "one"), ("losses", counters_of_losses)]),
            ((), [removal(remover)])):
        with Testbed(paceline, dataplane, sets=sets) as testbed:
            say(f"offers {' '.join(sets)}".strip())
            failed += run_table(testbed, table, only)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
