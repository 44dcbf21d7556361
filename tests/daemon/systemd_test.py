"""pacelined as a system manager runs it: told when it is ready, that it lives, reloads and ends; given
its socket; made another user. The manager is this test, by the same environment and descriptors."""

import os
import pwd
import signal
import socket
import subprocess
import time

from host import PACELINED, Connection, Host, check
from testbed import PATIENCE, ROOT, die_with_parent, end, say

WATCHDOG_US = 400_000
THERE = ("LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")


class Managed(Host):
    """A daemon that a manager starts: with a socket to report to, and perhaps one to serve."""

    def __init__(self):
        super().__init__()
        self.told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.told.bind(os.path.join(self.folder, "notify.sock"))
        self.environment["NOTIFY_SOCKET"] = os.path.join(self.folder, "notify.sock")
        self.given = []  # sockets, from descriptor 3 on

    def start(self):
        self.log = open(os.path.join(self.folder, "pacelined.log"), "ab")
        places = range(3, 3 + len(self.given))
        # First beyond all of them: a place may be taken by another of them.
        copies = [os.dup2(s.fileno(), 100 + i) for i, s in enumerate(self.given)]

        def hand_over():
            for copy, place in zip(copies, places):
                os.dup2(copy, place)
            die_with_parent()

        # The number of the process has to be known to itself alone.
        script = 'export WATCHDOG_PID=$$; [ -z "$LISTEN_FDS" ] || export LISTEN_PID=$$; exec "$@"'
        environment = dict(self.environment)
        if self.given:
            environment["LISTEN_FDS"] = str(len(self.given))
        self.process = subprocess.Popen(
            ["sh", "-c", script, "sh", PACELINED, "--config", self.config],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, env=environment,
            start_new_session=True, preexec_fn=hand_over, pass_fds=tuple(places))
        for copy in copies:
            os.close(copy)

    def tells(self, what, seconds=20):
        """The next message that begins so; those in between are returned, too."""
        between = []
        limit = time.monotonic() + seconds * PATIENCE
        while time.monotonic() < limit:
            self.told.settimeout(max(0.05, limit - time.monotonic()))
            try:
                text = self.told.recv(4096).decode()
            except TimeoutError:
                break
            between.append(text)
            if text.startswith(what):
                return between
        raise AssertionError(f"{what}: told was {between}")

    def refused(self, what):
        """The daemon ends by itself, and says why."""
        self.start()
        code = self.process.wait(timeout=20 * PATIENCE)
        check(code == 1 and what in self.logs(), f"refused, {what}: {code}\n{self.logs()}")
        self.log.close()
        os.remove(os.path.join(self.folder, "pacelined.log"))

    def close(self):
        super().close()
        self.told.close()
        for given in self.given:
            given.close()


def notified(host):
    host.environment["WATCHDOG_USEC"] = str(WATCHDOG_US)
    host.start()
    check(host.tells("READY=1")[-1].count("STATUS=") == 1, "ready, with a status")
    check(host.ask("GET", "/v1/status")[0] == 200, "whoever was told so is answered")
    for _ in range(3):
        host.tells("WATCHDOG=1")
    began = time.monotonic()
    for _ in range(5):
        host.tells("WATCHDOG=1")
    say(f"     WATCHDOG=1 every {(time.monotonic() - began) / 5 * 1000:.0f} ms of {WATCHDOG_US / 1000:.0f}")
    service = host.wait_for("the service is started", host.healthy)
    with open(f"/proc/{service}/environ", "rb") as file:
        inherited = {entry.split(b"=")[0].decode() for entry in file.read().split(b"\0")}
    check(not inherited & set(THERE), f"what is the daemon's alone: {inherited & set(THERE)}")
    os.kill(host.process.pid, signal.SIGHUP)
    reload = host.tells("RELOADING=1")[-1]
    usec = int(reload.split("MONOTONIC_USEC=")[1])
    check(abs(usec - time.monotonic() * 1e6) < 60e6 * PATIENCE, f"by the monotonic clock: {reload}")
    host.tells("READY=1")
    host.process.send_signal(signal.SIGTERM)
    host.tells("STOPPING=1")
    check(host.process.wait(timeout=20 * PATIENCE) == 0, "it ends well")
    with open(f"/proc/{service}/comm", encoding="utf-8") as file:
        check(file.read().startswith("paceline-data"), "and the service goes on")
    say("ok   the manager is told: ready, alive, reloading, ending")


def activated(host):
    place = os.path.join(host.folder, "paceline", "pacelined.sock")
    os.makedirs(os.path.dirname(place), exist_ok=True)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(place)
    listening.listen(64)
    host.given = [listening]
    # Asked before there is anybody: the answer comes when there is.
    early = Connection(place)
    early.request("GET", "/v1/openapi.json")
    host.start()
    check(early.getresponse().status == 200, "a request that was there first is answered")
    early.close()
    host.wait_for("the service answers", host.healthy)
    host.kill()
    late = Connection(place)
    late.request("GET", "/v1/openapi.json")
    host.start()
    check(late.getresponse().status == 200, "one that came in between, too")
    late.close()
    host.process.send_signal(signal.SIGTERM)
    check(host.process.wait(timeout=20 * PATIENCE) == 0, "it ends well")
    check(os.path.exists(place), "and the socket stays the manager's")
    say("ok   its socket is taken from the manager; no request is lost in between")

    other = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    host.given = [listening, other]
    host.refused("hands over 2 sockets; one is expected")
    host.given = [other]
    host.refused("not a listening Unix stream socket")
    other.close()
    host.given = [listening]
    say("ok   what is no socket of its own is refused")


def readable(user, *paths):
    def become():
        os.setgroups([])
        os.setgid(user.pw_gid)
        os.setuid(user.pw_uid)
    script = 'for path in "$@"; do test -r "$path" || exit 1; done'
    return subprocess.run(["sh", "-c", script, "sh", *paths], preexec_fn=become,
                          check=False).returncode == 0


def as_user(host):
    user = pwd.getpwnam("nobody")
    testbed = f"{ROOT}/configs/testbeds/{host.testbed}.toml"
    if os.geteuid() != 0 or not readable(user, PACELINED, testbed):
        say("     (daemon.user is not tried: not root, or the tree is for root alone)")
        return
    os.chmod(host.folder, 0o755)
    host.socket = os.path.join(host.folder, "paceline", "service.sock")
    host.write_config()
    with open(host.config, encoding="utf-8") as file:
        text = file.read()
    with open(host.config, "w", encoding="utf-8") as file:
        file.write(text.replace("[daemon]\n", '[daemon]\nuser = "nobody"\n'))
    host.start()
    service = host.wait_for("the service is started", host.healthy)
    for pid in (host.process.pid, service):
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            facts = dict(line.split(":", 1) for line in file.read().splitlines())
        check(set(facts["Uid"].split()) == {str(user.pw_uid)}, f"user: {facts['Uid']}")
        check(set(facts["Gid"].split()) == {str(user.pw_gid)}, f"group: {facts['Gid']}")
        for kind in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
            check(int(facts[kind], 16) == 0, f"{kind}: {facts[kind]}")
        check(facts["NoNewPrivs"].strip() == "1", "and none to gain")
    for place in ("state", "state/pacelined.db", "paceline", "paceline/pacelined.sock"):
        facts = os.stat(os.path.join(host.folder, place))
        check(facts.st_uid == user.pw_uid, f"{place} belongs to {facts.st_uid}")
    body = {"params": {"alpha_gain": 0.01}, "why": "as nobody"}
    check(host.ask("PATCH", "/v1/params", body)[0] == 200, "parameters change")
    host.kill()
    host.start()
    host.wait_for("the service answers the next daemon", host.healthy)
    changes = host.ask("GET", "/v1/params/history")[1]["changes"]
    check(changes[-1]["why"] == "as nobody", f"and are kept: {changes}")
    host.process.send_signal(signal.SIGTERM)
    check(host.process.wait(timeout=20 * PATIENCE) == 0, "it ends well")
    os.chown(os.path.join(host.folder, "state"), 12345, -1)
    host.refused("belongs to user 12345, neither to root nor to daemon.user")
    os.chown(os.path.join(host.folder, "state"), user.pw_uid, -1)
    say("ok   it becomes the user that it is told to be, with no capability")


def main():
    for part in (notified, activated, as_user):
        host = Managed()
        try:
            part(host)
        except BaseException:
            say(host.logs())
            raise
        finally:
            if host.process is not None and host.process.poll() is None:
                end(host.process)
            host.close()


main()
