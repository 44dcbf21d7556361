"""configs/pacelined.toml as it is shipped: a service runs, Prometheus can read it, `explain` finds what
there is, `guard` and `params revert` say what they did, and the log says what was started and what ends."""

import os
import re
import shutil
import signal
import socket
import subprocess
import urllib.error
import urllib.request

from host import DATAPLANE, PACELINE, PACELINED, Host, check
from live import Traffic
from testbed import PATIENCE, ROOT, need, say


class Shipped(Host):
    """The file of the tree: only its place, for one that is free, and the port of metrics are changed."""

    def write_config(self, more=""):
        folder = os.path.join(self.folder, "configs")
        shutil.copytree(os.path.join(ROOT, "configs", "testbeds"),
                        os.path.join(folder, "testbeds"))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        with open(os.path.join(ROOT, "configs", "pacelined.toml"), encoding="utf-8") as file:
            text = file.read()
        text, n = re.subn(r"(?m)^metrics_port = 9469$", f"metrics_port = {self.port}", text)
        check(n == 1, "metrics_port in configs/pacelined.toml")
        self.config = os.path.join(folder, "pacelined.toml")
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(text)
        self.socket = os.path.join(self.folder, "paceline", "paceline.sock")
        self.environment["PACELINE_SOCKET"] = self.socket
        self.environment["XDG_STATE_HOME"] = self.environment["STATE_DIRECTORY"] = \
            os.path.join(self.folder, "state")

    def run(self, *words, code=0):
        done = subprocess.run([PACELINE, *words], env=self.environment, cwd=self.folder,
                              timeout=60 * PATIENCE, capture_output=True, text=True, check=False)
        check(done.returncode == code,
              f"paceline {' '.join(words)}: {done.returncode}, not {code}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def log_text(self):
        with open(os.path.join(self.folder, "pacelined.log"), encoding="utf-8") as file:
            return file.read()


def scrape(host, path, method="GET"):
    request = urllib.request.Request(f"http://127.0.0.1:{host.port}{path}", method=method)
    try:
        with urllib.request.urlopen(request, timeout=10 * PATIENCE) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def metrics(host):
    status, text = scrape(host, "/metrics")
    check(status == 200 and "paceline_up 1" in text, text[:300])
    check(re.search(r'^paceline_build_info\{.*version="\d+\.\d+\.\d+"', text, re.M), text[:300])
    check('paceline_tx_data_bytes_total{nic="h0"}' in text, text[:300])
    check(scrape(host, "/healthz")[0] == 200, "healthz")
    for path, method in (("/v1/status", "GET"), ("/v1/params", "PATCH"), ("/v1/events", "GET")):
        status, text = scrape(host, path, method)
        check(status == 404, f"{method} {path}: {status} {text}")
    with open(os.path.join(ROOT, "configs/prometheus/scrape.yml"), encoding="utf-8") as sample, \
            open(os.path.join(ROOT, "configs/pacelined.toml"), encoding="utf-8") as config:
        port = re.search(r"^metrics_port = (\d+)", config.read(), re.M).group(1)
        check(f'"127.0.0.1:{port}"' in sample.read(), f"the sample of Prometheus reads another port than {port}")
    say("ok   Prometheus reads metrics and health, and there is nothing else")


def explain(host):
    text = host.run("explain", code=2)
    check("there are none" in text, f"no queue pairs: {text}")
    text = host.run("explain", "17", code=2)
    check("has a queue pair 17" in text and "there are none" in text, text)
    traffic = Traffic(host, [("h0", "h1")], 6)
    try:
        host.wait_for("a connection is seen", lambda: any(
            q["tx_bytes"] > 1e6
            for q in host.ask("GET", "/v1/nics/h0/queue_pairs")[1]["queue_pairs"]))
        text = host.run("explain")
        numbers = re.findall(r"^h[01] +(\d+) ", text, re.M)
        check(len(numbers) >= 2 and re.search(r"the busiest:\n\d+ of h0: ", text), text)
        told = host.run("explain", "16777215", code=2)
        check(all(number in told for number in numbers), f"what there is: {told}")
        own = host.ask("GET", "/v1/nics/h0/queue_pairs")[1]["queue_pairs"][0]["number"]
        told = host.run("explain", "16777215", "--nic", "h0", code=2)
        check(re.search(rf"there (is|are) .*\b{own}\b", told), f"what NIC h0 has: {told}")
    finally:
        traffic.close()
    say("ok   explain lists queue pairs, takes the busiest, and names those there are")


def revert(host):
    for gain in ("0.01", "0.02"):
        host.run("params", "set", f"alpha_gain={gain}", "--why", "try")
    numbers = re.findall(r"^(\d+)  ", host.run("params", "history"), re.M)
    text = host.run("params", "revert", "--dry-run", "--why", "no better")
    check(f"change {numbers[1]} would be undone" in text and "dry run" in text, text)
    check(host.value("h0", "alpha_gain") == 0.02, "a dry run changes nothing")
    text = host.run("params", "revert", "--why", "no better")
    check(f"change {numbers[1]} is undone: as it was after change {numbers[0]}" in text, text)
    check(host.value("h0", "alpha_gain") == 0.01, "one step")
    text = host.run("params", "revert", "--why", "no better")
    check(f"change {numbers[0]} is undone: as it was before the first change" in text, text)
    check(host.value("h0", "alpha_gain") not in (0.01, 0.02), "two steps")
    check("already" in host.run("params", "revert", "--why", "again", code=2), "no third")
    host.run("params", "revert", "--to", numbers[1], "--why", "forward")
    check(host.value("h0", "alpha_gain") == 0.02, "forward")
    check(f"undoes change {numbers[1]}" in host.run("params", "history"), "the history says so")
    say("ok   reverts step back, and say what they restored")


def options(host):
    for program in (PACELINED, DATAPLANE):
        done = subprocess.run([program, "--confg", "x"], capture_output=True, text=True, check=False)
        name = os.path.basename(program)
        check(done.returncode == 2 and done.stderr.startswith(f"{name}: error: --confg: there is no such option")
              and f"See {name} --help" in done.stderr, done.stderr)
    say("ok   an option that is not there is named, with the nearest and with whose --help helps")


def guard(host):
    text = host.run("guard")
    check("no trips" in text and "limits of h0, h1: " in text, text)
    check(host.run("guard", "status") == text, "status is the default")
    check("cleared on all NICs" in host.run("guard", "clear", "--why", "nothing is latched"), "clear")
    text = host.run("guard", "clear", "--nic", "h7", "--why", "x", code=2)
    check("h7" in text, text)
    say("ok   guard: status and clear")


def main():
    need("ib_write_bw")
    host = Shipped("pair")
    try:
        host.start()
        host.wait_for("the service is started", host.healthy)
        check("otherwise starts one from" in host.log_text(), host.log_text())
        check("with NICs h0 h1" in host.log_text(), host.log_text())
        metrics(host)
        explain(host)
        revert(host)
        guard(host)
        options(host)
        host.process.send_signal(signal.SIGTERM)
        check(host.process.wait(10 * PATIENCE) == 0, "a clean end")
        check(re.search(r"signal 15: ending; the service, process \d+, goes on", host.log_text()),
              host.log_text())
        # It attaches to what runs, and ends it where it is told to.
        with open(host.config, encoding="utf-8") as file:
            text = file.read()
        with open(host.config, "w", encoding="utf-8") as file:
            file.write(text.replace("end_with_daemon = false", "end_with_daemon = true"))
        host.start()
        host.wait_for("it attaches again", host.healthy)
        host.process.send_signal(signal.SIGTERM)
        check(host.process.wait(10 * PATIENCE) == 0, "a clean end")
        last = host.log_text().splitlines()[-1]
        check("goes on" not in last and re.search(r"process \d+, is ended, too", last), last)
        # Without a testbed nothing is started, and the log says so.
        with open(host.config, "w", encoding="utf-8") as file:
            file.write(re.sub(r'(?m)^testbed = .*$', "", text))
        host.start()
        host.wait_for("it says so", lambda: "no service is started here" in host.log_text())
        say("ok   the log says what is started, what goes on and what ends")
    except BaseException:
        say(host.logs())
        raise
    finally:
        host.close()


main()
