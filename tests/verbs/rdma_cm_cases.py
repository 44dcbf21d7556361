"""Debian's rdmacm-utils and perftest -R: programs that connect by librdmacm, over the service's rdma_cm."""

import os
import re
import subprocess
import sys
import time

from programs import PATIENCE, Failed, Running, end, run_alone

NEEDS = ("rping", "ucmatose", "udaddy", "cmtime", "rstream", "riostream", "rcopy", "mckey", "ib_write_bw",
         "ib_send_lat", "ib_send_bw")

SERVER = "10.0.0.2"  # h1
SERVER_V6 = "fd00::a00:2"
RAW = os.path.join(os.path.dirname(os.path.abspath(__file__)), "rdma_cm_raw.py")


class Place:
    """Where a program runs: a NIC of a service, or None and it sees them all."""

    def __init__(self, service, nic):
        self.service, self.nic = service, nic

    def run(self, command):
        return Running(self.service, self.service.on(self.nic, command))


def listening(testbed):
    """How many ids the programs have that wait for connections."""
    return sum(s["cm"]["listeners"] for s in testbed.status()["sessions"] if "cm" in s)


def held(testbed):
    """Channels and ids that the service keeps."""
    cm = [s["cm"] for s in testbed.status()["sessions"] if "cm" in s]
    return sum(c["channels"] for c in cm), sum(c["ids"] for c in cm)


def nothing_is_left(testbed):
    limit = time.monotonic() + 10 * PATIENCE
    while held(testbed) != (0, 0):
        if time.monotonic() > limit:
            raise Failed(f"channels and ids left: {held(testbed)}")
        time.sleep(0.05)


def wait_until(testbed, program, ready, what):
    limit = time.monotonic() + 20 * PATIENCE
    while not ready():
        if program.process.poll() is not None:
            raise Failed(f"ended with {program.process.returncode} before {what}:\n{program.text()}")
        if time.monotonic() > limit:
            raise Failed(f"not {what}:\n{program.text()}")
        time.sleep(0.02)


def connect(testbed, server, client, **options):
    """Between two NICs of a testbed; as connect_places."""
    return connect_places(Place(testbed, "h1"), server, Place(testbed, "h0"), client, **options)


def connect_places(there, server, here, client, seconds=40, server_ends=True, statuses=(0,)):
    """Output of both. The client starts when the server listens."""
    limit = time.monotonic() + seconds * PATIENCE
    programs = [there.run(server)]
    try:
        wait_until(there.service, programs[0], lambda: listening(there.service) > 0, "listening")
        programs.append(here.run(client))
        ending = programs if server_ends else programs[1:]
        texts = [program.finish(limit, statuses) for program in reversed(ending)]
    except Failed as error:
        told = "\n".join(f"$ {' '.join(p.command)}\n{p.text()}" for p in programs)
        raise Failed(f"{error}\n{told}") from None
    finally:
        for program in programs:
            end(program.process)
    for place in (there, here):
        nothing_is_left(place.service)
    return (texts[1] if server_ends else ""), texts[0]


def pair(program, *options, client=(), to="-s", wants=(), server_ends=True, server=SERVER):
    def run(testbed):
        where = [to, server] if to else [server]
        texts = connect(testbed, [program, *options], [program, *options, *client, *where],
                        server_ends=server_ends)
        for word in wants:
            if word not in texts[1]:
                raise Failed(f"no \"{word}\" in:\n{texts[1]}")
    return " ".join((program, *options, *client)), run


# When rping's main thread closes the event channel, its thread that reads events may still end the
# program, with -1 ("rdma_get_cm_event: Bad file descriptor"). The pings tell how it went.
RPING_STATUSES = (0, 255)


def check_rping(server_text, client_text):
    for text in (server_text, client_text):
        if text.count("rdma-ping-") != 10:
            raise Failed(f"not 10 pings:\n{text}")
    if "DISCONNECT" not in server_text:
        raise Failed(f"the server was not told of the end:\n{server_text}")


def rping_commands(server, *options):
    """Of server and client. Ten pings."""
    return (["rping", "-s", "-v", "-C", "10", *options, *(("-a", server) if ":" in server else ())],
            ["rping", "-c", "-v", "-C", "10", "-a", server, *options])


def rping(*options, server=SERVER):
    def run(testbed):
        check_rping(*connect(testbed, *rping_commands(server, *options), statuses=RPING_STATUSES))
    return " ".join(("rping", *options, server)), run


def refused(here, command, words):
    """The program, which ends by itself, says these words."""
    client = here.run(command)
    try:
        client.process.wait(20 * PATIENCE)
        if words not in client.text():
            raise Failed(f"no \"{words}\" in:\n{client.text()}")
    except subprocess.TimeoutExpired:
        raise Failed(f"took too long:\n{client.text()}") from None
    finally:
        end(client.process)
    nothing_is_left(here.service)


def rcopy(testbed):
    """A file of 1,000,000 bytes over rsockets."""
    sent, arrived = (os.path.join(testbed.folder, name) for name in ("sent", "arrived"))
    with open(sent, "wb") as file:
        file.write(os.urandom(1_000_000))
    connect(testbed, ["rcopy"], ["rcopy", sent, f"{SERVER}:{arrived}"], server_ends=False)
    with open(sent, "rb") as first, open(arrived, "rb") as second:
        if first.read() != second.read():
            raise Failed("another file has arrived")


def nobody_listens(testbed):
    here = Place(testbed, "h0")
    refused(here, ["rping", "-c", "-v", "-C", "1", "-a", SERVER], "RDMA_CM_EVENT_REJECTED, error 8")
    refused(here, ["rstream", "-s", SERVER, "-S", "64", "-C", "1"], "Connection refused")


def kill_one(there, here, address, who):
    """The other end of a program that is killed is told, and ends."""
    programs = [there.run(["rping", "-s", "-v"])]
    try:
        wait_until(there.service, programs[0], lambda: listening(there.service) > 0, "listening")
        programs.append(here.run(["rping", "-c", "-v", "-C", "100000000", "-a", address]))
        wait_until(here.service, programs[1], lambda: "rdma-ping-" in programs[1].text(), "pinging")
        programs[who].process.kill()
        other = programs[1 - who]
        other.process.wait(20 * PATIENCE)
        # By an event of the connection, or by what it sends, whichever it looks at first.
        if "DISCONNECT" not in other.text() and "cq completion failed" not in other.text():
            raise Failed(f"not told:\n{other.text()[-2000:]}")
    except subprocess.TimeoutExpired:
        raise Failed(f"the other end waits for ever:\n{programs[1 - who].text()[-2000:]}") from None
    finally:
        for program in programs:
            end(program.process)
    for place in (there, here):
        nothing_is_left(place.service)


def killed(who, places=lambda testbed: (Place(testbed, "h1"), Place(testbed, "h0")), address=SERVER):
    """`places`: of server and client."""
    return (f"rping, the {('server', 'client')[who]} killed",
            lambda testbed: kill_one(*places(testbed), address, who))


def many(testbed):
    """1,000 connections at once and one after the other; the service keeps nothing of them."""
    texts = connect(testbed, ["cmtime"], ["cmtime", "-s", SERVER, "-c", "1000"], seconds=120,
                    server_ends=False)
    if not re.search(r"^connect +:", texts[1], re.MULTILINE):
        raise Failed(f"no figures:\n{texts[1]}")


def no_multicast(testbed):
    program = Running(testbed, testbed.on("h0", ["mckey", "-m", "239.1.1.1", "-b", "10.0.0.1"]))
    try:
        program.process.wait(20 * PATIENCE)
        if "Operation not supported" not in program.text():
            raise Failed(f"mckey is not told that multicast is not offered:\n{program.text()}")
    except subprocess.TimeoutExpired:
        raise Failed(f"took too long:\n{program.text()}") from None
    finally:
        end(program.process)
    nothing_is_left(testbed)


def raw(testbed):
    """Commands by hand, right and wrong; rdma_cm_raw.py says what it found."""
    text = run_alone(testbed, testbed.on(None, [sys.executable, "-B", RAW]))
    if "all good" not in text:
        raise Failed(text)
    nothing_is_left(testbed)


def service_killed(testbed):
    """A program that waits for an event when the service is killed does not wait for ever."""
    server = Running(testbed, testbed.on("h1", ["rping", "-s", "-v"]))
    try:
        wait_until(testbed, server, lambda: listening(testbed) > 0, "listening")
        testbed.process.kill()
        testbed.process.wait()
        server.process.wait(20 * PATIENCE)
    except subprocess.TimeoutExpired:
        raise Failed(f"it waits for ever:\n{server.text()}") from None
    finally:
        end(server.process)
    testbed.start()
    text = run_alone(testbed, testbed.on(None, [sys.executable, "-B", RAW]))
    if "all good" not in text:
        raise Failed(f"on the next service:\n{text}")


def perftest(program, *options):
    """Its client connects twice, and its server listens twice on the same port: who is faster than the
    server's second listen is turned away, here as on hardware, and crashes. That is tried again."""
    name, once = pair(program, "-R", "-F", "-n", "100", *options, to=None, wants=("#bytes",))

    def run(testbed):
        for _ in range(9):
            try:
                return once(testbed)
            except Failed as error:
                early = ("RDMA_CM_EVENT_REJECTED; error: 8", "RDMA_CM_EVENT_UNREACHABLE; error: 1")
                if not any(words in str(error) for words in early):
                    raise
                nothing_is_left(testbed)
        return once(testbed)
    return name, run


CASES = [
    rping(), rping(server=SERVER_V6),
    pair("ucmatose", "-c", "4", "-C", "20", wants=("return status 0",)),
    pair("ucmatose", "-c", "4", client=("-m",), wants=("return status 0",)),
    pair("udaddy", "-c", "4", "-C", "20", wants=("return status 0",)),
    pair("rstream", "-S", "1000", "-C", "100", wants=("custom",)),
    pair("riostream", "-S", "1000", "-C", "100", wants=("custom",)),
    pair("rstream", "-S", "100000", "-C", "20", "-T", "n", "-T", "v", wants=("custom",)),
    perftest("ib_write_bw"), perftest("ib_send_lat"), perftest("ib_send_bw", "-c", "UD"),
    ("nobody listens", nobody_listens), killed(0), killed(1), ("cmtime -c 1000", many), ("rcopy", rcopy),
    ("mckey", no_multicast), ("commands by hand", raw),
    ("the service killed", service_killed),
]
