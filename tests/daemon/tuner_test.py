"""The tuner of pacelined on a testbed with traffic whose parameters somebody has made bad. What it
finds is up to the machine; that it says what it does, does what it says, and leaves nothing behind
is not."""

import os
import subprocess

from host import PACELINE, ROOT, Host, check
from programs import Failed, Running, listens, take_port
from testbed import end, need, say

# Short blocks: a test waits for pairs of them. The queue may be half the testbed's buffer.
TUNER = f"""[tuner]
presets = "{ROOT}/configs/presets"
block = "100ms"
wash = "30ms"
learn = "300ms"
guard = "50ms"
hold = "2s"
queue_limit = "1MB"
"""
BAD = {"additive_increase_mbps": 1, "increase_timer_us": 2000, "decrease_period_us": 4}
NICS = 5


def traffic(host, source, target):
    """ib_write_bw from one NIC to another, for longer than the test takes: both programs."""
    port = take_port()
    on = [PACELINE, "exec", "--socket", host.socket, "--nic"]
    command = ["ib_write_bw", "-p", str(port), "-D", "90", "-s", "65536"]
    server = Running(host, [*on, target, "--", *command])
    host.wait_for("perftest listens", lambda: listens(port) or server.process.poll() is not None)
    return server, Running(host, [*on, source, "--", *command, "127.0.0.1"])


def tuner(host):
    return host.ask("GET", "/v1/tuner")[1]


def journal(host):
    return host.ask("GET", "/v1/tuner/journal?limit=1000")[1]["entries"]


def events(host):
    return [entry["event"] for entry in journal(host)]


def mode(host, which):
    status, answer = host.ask("PUT", "/v1/tuner", {"mode": which, "why": "test"})
    check(status == 200 and answer["mode"] == which, f"mode {which}: {answer}")


def in_force(host):
    """The one set in force; None while there are several, or an arm of a trial."""
    nics = host.ask("GET", "/v1/params")[1].get("nics", [])
    if len(nics) != NICS or any(n["arm"] or n["values"] != nics[0]["values"] for n in nics):
        return None
    return nics[0]["values"]


def agrees(host):
    """What is in force is what the tuner ordered last, and what was changed last."""
    changes = host.ask("GET", "/v1/params/history?limit=1000")[1]["changes"]
    applied = [c for c in changes if c["state"] == "applied"]
    # "pacelined" puts back what was in force when the service was started anew.
    check(all(c["who"] in ("tuner", "pacelined") for c in applied[1:]), f"only they: {applied}")
    values = in_force(host)
    told = tuner(host)
    order = told.get("order")
    return (values is not None and values == applied[-1]["nics"]["h0"]["to"]["values"]
            and (order is None or (order["in_force"] and order["values"] == values)))


def told_in_order(entries):
    """A candidate is judged once, after it was tried, and nothing else begins in between."""
    trying = None
    for entry in entries:
        event, name = entry["event"], entry.get("name")
        if event == "tried":
            trying = name
        elif event in ("accepted", "dropped", "rejected"):
            check(trying is not None, f"{event} {name} without being tried")
        if event == "rejected":
            check(entry["reason"], "a rejection says which constraint")
    check(entries == sorted(entries, key=lambda e: e["number"]), "in order")


def cases(host):
    host.start()
    host.wait_for("the service is started", host.healthy)
    status, answer = host.ask("PATCH", "/v1/params", {"params": BAD, "why": "bad on purpose"})
    check(status == 200, f"bad parameters: {answer}")
    bad = in_force(host)
    check(all(bad[name] == value for name, value in BAD.items()), "they are in force")
    check(tuner(host)["mode"] == "off", "it is off unless somebody says otherwise")
    programs = [p for source in ("h1", "h2") for p in traffic(host, source, "h0")]
    try:
        with_traffic(host, bad, programs)
    except Failed as error:
        raise AssertionError(f"{error}: " + "\n".join(p.text() for p in programs)) from None
    finally:
        for program in programs:
            end(program.process)


def goes_on(host):
    """A candidate is in force. On a machine with more to do than this the guard may have taken one
    back while nobody watched, rightly: then somebody has looked, and allows the next."""
    if any(n["latched"] for n in host.ask("GET", "/v1/guard")[1]["nics"]):
        host.ask("DELETE", "/v1/guard", {})
    return any(n["arm"] for n in host.ask("GET", "/v1/params")[1]["nics"])


def with_traffic(host, bad, programs):
    for nic in ("h1", "h2"):
        host.wait_for(f"{nic} sends", lambda n=nic: [
            q for q in host.ask("GET", f"/v1/nics/{n}/queue_pairs")[1]["queue_pairs"]
            if q["tx_bytes"] > 1e6])
    mode(host, "advise")
    advice = host.wait_for("advice", lambda: tuner(host).get("would"))
    say(f"     {advice['reason']}")
    check(advice["changes"], "advice names what would change")
    check(in_force(host) == bad and "tried" not in events(host), "advise changes nothing")
    say("ok   advise says what it would do, and does nothing")

    mode(host, "auto")
    host.wait_for("a candidate is tried", lambda: "tried" in events(host))
    host.wait_for("it is in force", lambda: goes_on(host))
    # The guard may take the first one back before it is compared, too.
    host.wait_for("a pair of blocks is compared", lambda: (goes_on(host), tuner(host)["pairs"] > 0)[1])
    say("ok   auto puts a candidate in force, as a trial, and compares")

    host.kill()
    host.start()
    host.wait_for("it attaches again", host.healthy)
    check(tuner(host)["mode"] == "auto", "the mode outlives the daemon")
    before = len([e for e in events(host) if e == "tried"])
    check(before >= 1, "and so does the journal")
    host.wait_for("it goes on", lambda: goes_on(host))
    say("ok   kill -9: the candidate is out of force, and it goes on")

    stop = os.path.join(host.folder, "state", "tuner-stop")
    with open(stop, "w", encoding="ascii"):
        pass
    host.wait_for("the kill switch", lambda: tuner(host).get("freeze") == "killed")
    host.wait_for("the champion is in force", lambda: in_force(host) == bad and agrees(host))
    check(tuner(host)["kill_switch"]["set"], "it says why")
    os.remove(stop)
    host.wait_for("it is let go", lambda: tuner(host).get("freeze") == "none")
    say("ok   the kill switch puts the champion back")

    # The service is gone: no telemetry.
    service = host.healthy()
    frozen = events(host).count("froze")
    for program in programs:
        end(program.process)
    os.kill(service, 9)
    host.wait_for("lost telemetry freezes it", lambda: events(host).count("froze") > frozen)
    host.wait_for("another service", lambda: (lambda p: p and p != service)(host.healthy()))
    host.wait_for("it resumes", lambda: tuner(host).get("freeze") == "none")
    say("ok   lost telemetry freezes it")

    mode(host, "off")
    host.wait_for("off: the champion again", lambda: in_force(host) == bad and agrees(host))
    told_in_order(journal(host))
    for command in (["status"], ["journal"], ["mode", "advise", "--why", "test"]):
        socket = os.path.join(host.folder, "paceline", "pacelined.sock")
        ran = subprocess.run([PACELINE, "tuner", *command, "--daemon", socket],
                             capture_output=True, text=True, timeout=20, check=False)
        check(ran.returncode == 0 and ran.stdout, f"paceline tuner {command[0]}: {ran.stderr}")
    check(tuner(host)["mode"] == "advise", "as the command said")
    say("ok   off, and what was journalled is what is in force")


def main():
    need("ib_write_bw")
    host = Host("incast")
    host.write_config(TUNER)
    try:
        cases(host)
    except BaseException:
        try:
            say("\n".join(f"{e['event']} {e.get('name', '')}: {e['reason']}"
                          for e in journal(host)[-30:]))
            say(str(tuner(host)))
        except (OSError, KeyError, ValueError, TypeError):
            pass
        say(host.logs())
        raise
    finally:
        host.close()


main()
