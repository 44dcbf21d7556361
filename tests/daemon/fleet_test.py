"""Hosts behind pacelined: `paceline diagnose --fleet` names a fault by the daemons' looks, over TLS and a Unix
socket, and again from the looks that were kept; `paceline mesh --fleet` probes between services; hosts that
do not answer are named."""

import json
import os
import signal
import subprocess

from host import PACELINE, Host, check
from programs import Running, listens, take_port
from testbed import PATIENCE, end, need, say
from tls_test import READ, WRITE, certificate, private

# As tests/verbs/diagnose_test.py has it: slow links, so that any machine keeps up with them.
FABRIC = {"topology": '"leaf_spine"', "leaves": "4", "hosts_per_leaf": "2", "spines": "2",
          "rate": '"500Mb/s"', "delay": '"2500ns"', "buffer": '"4MB"',
          "ecn": '{ kmin = "100kB", kmax = "400kB", pmax = 0.2 }'}
SLOW = ("slow_nic", "right:h3")
NAMED_WITHIN = 6  # watches of 2.5 s


def fleet_file(host, name, text):
    with open(os.path.join(host.folder, name), "w", encoding="utf-8") as file:
        file.write("schema = 1\n" + text)
    return name


def fabric_text():
    return "[fabric]\n" + "".join(f"{key} = {value}\n" for key, value in FABRIC.items())


def paceline(host, status, *words):
    done = subprocess.run([PACELINE, *words], env=host.environment, cwd=host.folder, text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=120 * PATIENCE,
                          check=False)
    check(done.returncode == status, f"paceline {' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout, done.stderr


def verdicts(host, *words):
    paceline(host, 0, "diagnose", *words, "--quiet", "--json", "verdicts.json")
    with open(os.path.join(host.folder, "verdicts.json"), encoding="utf-8") as file:
        return json.load(file)


def served_over_tls(host):
    """A configuration with TLS; the [[host]] of a fleet file, for who may read and who may write."""
    key, pem = certificate(host)
    tokens = private(host, "tokens", f"fleet read {READ}\nmesh write {WRITE}\n")
    for name, token in (("read.token", READ), ("write.token", WRITE)):
        private(host, name, token + "\n")
    port = take_port()
    sets = ", ".join(f"'fabric.{name}={value}'" for name, value in FABRIC.items()
                     if name in ("topology", "leaves", "hosts_per_leaf", "spines", "rate"))
    host.write_config(f"""set = [{sets.replace('"', '')}]
[api]
address = "127.0.0.1"
port = {port}
certificate = "{pem}"
key = "{key}"
tokens = "{tokens}"
""")
    def entry(name, token, ca=pem):
        return (f'[[host]]\nname = "{name}"\nurl = "https://127.0.0.1:{port}"\ntoken_file = "{token}"\n'
                f'ca = "{ca}"\n')

    # To who asks, the two halves of the testbed are hosts of their own.
    halves = [entry(name, "read.token") + f"nics = {nics}\n"
              for name, nics in (("left", ["h0", "h1", "h2", "h4"]), ("right", ["h3", "h5", "h6", "h7"]))]
    return "".join(halves), entry("pod", "write.token"), entry("pod", "read.token", key)


def named(host, fleet):
    for _ in range(int(NAMED_WITHIN * PATIENCE)):
        found = verdicts(host, "--fleet", fleet, "--for", "2500ms", "--record", "looks.jsonl")
        check(found["windows"] == 64 and len(found["nics"]) == 8, f"{found['windows']} windows")
        if [(one["cause"], one["culprit"]) for one in found["verdicts"]][:1] == [SLOW]:
            return found
        say(f"  found {found['verdicts']}")
    raise AssertionError(f"{SLOW} is not named")


def nothing_wrong(host, *words):
    for _ in range(3):
        found = verdicts(host, *words)
        if not found["verdicts"]:
            return found
        say(f"  no fault: found {found['verdicts']}")
    raise AssertionError("a verdict where nothing is wrong")


def one_daemon():
    host = Host("pair")
    try:
        reads, writes, wrong_ca = served_over_tls(host)
        host.start()
        host.wait_for("the service is started", host.healthy)
        local = f'[[host]]\nname = "pod"\nurl = "unix:{host.folder}/paceline/pacelined.sock"\n'
        fleet = fleet_file(host, "fleet.toml", fabric_text() + reads)
        fleet_file(host, "local.toml", fabric_text() + local)
        fleet_file(host, "bare.toml", writes)
        traffic = Running(host, [PACELINE, "collective", "bench", "--testbed", "default", "--operation", "all_to_all",
                                 "--schedules", "nccl", "--min", "1MiB", "--max", "1MiB", "--iterations", "100000",
                                 "--quiet"])
        try:
            host.wait_for("traffic flows", lambda: host.ask("GET", "/v1/nics/h0")[1]["values"]["tx_data_bytes"] > 1e6)
            nothing_wrong(host, "--fleet", "local.toml", "--for", "2s")
            say("ok   a fleet in which nothing is wrong has no verdict")
            paceline(host, 0, "testbed", "fault", "h3", "slow_nic", "--severity", "5")
            first = named(host, fleet)
            again = verdicts(host, "--replay", "looks.jsonl")
            check(first == again, f"kept looks are judged alike:\n{first['verdicts']}\n{again['verdicts']}")
            paceline(host, 0, "testbed", "fault", "h3", "clear")
            say("ok   a slow NIC is named by daemons' looks, and by those that were kept")
            local_looks(host)
            interrupted(host)
        finally:
            end(traffic.process)
        mesh = json.loads(paceline(host, 0, "mesh", "--fleet", "bare.toml", "--seconds", "1", "--json")[0])
        check(len(mesh["pairs"]) == 56 and any(pair["answered"] for pair in mesh["pairs"]), f"{mesh['pairs'][:2]}")
        check(host.ask("GET", "/v1/probes")[0] == 409, "and it has ended")
        say("ok   one daemon's NICs probe each other")
        refused(host, fabric_text(), wrong_ca)
        host.process.send_signal(signal.SIGTERM)
        check(host.process.wait(timeout=20 * PATIENCE) == 0, "it ends well")
        for name, words in (("right", ("diagnose", "--fleet", fleet)), ("pod", ("mesh", "--fleet", "bare.toml"))):
            _, error = paceline(host, 1, *words)
            check(f"host {name}: https://127.0.0.1:" in error and "no daemon answers there" in error, error)
        say("ok   a daemon that has ended is named")
    except BaseException:
        say(host.logs())
        raise
    finally:
        host.close()


def local_looks(host):
    """What was kept of the testbed itself is judged alike, too."""
    first = verdicts(host, "--testbed", "default", "--for", "1s", "--record", "looks.jsonl")
    check(first == verdicts(host, "--replay", "looks.jsonl"), "kept looks of a testbed")


def watching(host, *words):
    """`diagnose --fleet` that has begun to keep looks in gone.jsonl."""
    watch = subprocess.Popen([PACELINE, "diagnose", "--fleet", "fleet.toml", "--record", "gone.jsonl", *words],
                             env=host.environment, cwd=host.folder, text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
    kept = os.path.join(host.folder, "gone.jsonl")
    host.wait_for("looks are kept", lambda: os.path.exists(kept) and os.path.getsize(kept) > 0)
    return watch


def interrupted(host):
    """Ctrl-C ends it at once, and what was seen until then is kept."""
    watch = watching(host, "--for", "20s")
    kept = os.path.join(host.folder, "gone.jsonl")

    def looks():
        with open(kept, "rb") as file:
            return sum(1 for _ in file)

    host.wait_for("some looks", lambda: looks() > 4)
    watch.send_signal(signal.SIGINT)
    watch.communicate(timeout=30 * PATIENCE)
    check(watch.returncode == 130, f"interrupted: {watch.returncode}")
    check(0 < verdicts(host, "--replay", "gone.jsonl")["windows"] < 64, "and judged")
    say("ok   an interrupted watch keeps what it saw")


def refused(host, fabric, wrong_ca):
    fleet_file(host, "wrong_ca.toml", fabric + wrong_ca)
    with open(os.path.join(host.folder, "looks.jsonl"), encoding="utf-8") as file:
        lines = file.readlines()
    with open(os.path.join(host.folder, "cut.jsonl"), "w", encoding="utf-8") as file:
        file.write("".join(lines[:4]) + lines[4][:50])
    for status, text, words in (
            (1, "host pod: https://", ("diagnose", "--fleet", "wrong_ca.toml")),
            (1, "token fleet", ("mesh", "--fleet", "fleet.toml")),
            (2, "bare.toml: diagnosis needs a description of the fabric", ("diagnose", "--fleet", "bare.toml")),
            (2, "cut.jsonl:5: ", ("diagnose", "--replay", "cut.jsonl")),
            (2, "fleet.toml:1: ", ("diagnose", "--replay", "fleet.toml")),
            (2, "--record keeps", ("diagnose", "--replay", "looks.jsonl", "--record", "x.jsonl")),
            (2, "give a scenario file", ("diagnose", "--replay", "looks.jsonl", "--fleet", "fleet.toml"))):
        _, error = paceline(host, status, *words)
        check(text in error, f"{words}: {error}")
    say("ok   what cannot be read or reached is refused, with its place")


def two_hosts():
    """Two services that reach each other by shared memory, a daemon each."""
    hosts = []
    try:
        for name in ("a", "b"):
            hosts.append(Host(f"memif-{name}"))
            hosts[-1].start()
            hosts[-1].wait_for("the service is started", hosts[-1].healthy)
        a, b = hosts
        fleet = "".join(f'[[host]]\nname = "{name}"\nurl = "unix:{host.folder}/paceline/pacelined.sock"\n'
                        for name, host in zip("ab", hosts))
        fleet_file(a, "fleet.toml", 'fabric = { hosts = 2, rate = "10Gb/s" }\n' + fleet)
        port = take_port()
        command = ["ib_write_bw", "-F", "-D", "30", "-t", "4", "-Q", "1", "-s", "65536", "-p", str(port)]
        programs = []
        try:
            for host, nic, peer in ((b, "b0", ()), (a, "a0", ("127.0.0.1",))):
                programs.append(Running(host, [PACELINE, "exec", "--socket", host.socket, "--nic", nic, "--",
                                               *command, *peer]))
                host.wait_for("perftest listens", lambda: listens(port) or peer)
            a.wait_for("traffic flows", lambda: a.ask("GET", "/v1/nics/a0")[1]["values"]["tx_data_bytes"] > 1e6)
            found = nothing_wrong(a, "--fleet", "fleet.toml", "--for", "2s")
            check(found["nics"] == ["a:a0", "b:b0"], f"the NICs: {found['nics']}")
            check(found["slowness"][0][1] > 0, f"a pair from host to host: {found['slowness']}")
            say("ok   pairs from host to host, and no verdict")
            mesh = json.loads(paceline(a, 0, "mesh", "--fleet", "fleet.toml", "--seconds", "2", "--rate", "200",
                                       "--json")[0])
            pairs = {(pair["from"], pair["to"]): pair["answered"] for pair in mesh["pairs"]}
            check(set(pairs) == {("a:a0", "b:b0"), ("b:b0", "a:a0")} and all(pairs.values()), f"probes: {pairs}")
            say(f"ok   services of two daemons probe each other: {pairs}")
            one_goes(a, b)
        finally:
            for program in programs:
                end(program.process)
    except BaseException:
        for host in hosts:
            say(host.logs())
        raise
    finally:
        for host in hosts:
            host.close()


def one_goes(a, b):
    """A daemon that goes while it is watched: the others are judged, and it is said."""
    watch = watching(a, "--for", "3s")
    b.kill()
    _, error = watch.communicate(timeout=60 * PATIENCE)
    check(watch.returncode == 0 and "note: host b did not answer in " in error, f"{watch.returncode}: {error}")
    say("ok   a host that goes meanwhile is said")


def main():
    need("openssl", "ib_write_bw")
    one_daemon()
    two_hosts()


if __name__ == "__main__":
    main()
