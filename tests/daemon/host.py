"""A daemon of a test's own, with the service that it starts and programs on its NICs."""

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "verbs"))

from testbed import PATIENCE, ROOT, die_with_parent, end  # noqa: E402

PACELINED, PACELINE, DATAPLANE = sys.argv[1:4]


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=10 * PATIENCE)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def check(holds, what):
    if not holds:
        raise AssertionError(what)


class Host:
    """A folder with a configuration, a daemon in it, and the service that the daemon starts."""

    def __init__(self, testbed="pair"):
        self.testbed = testbed
        self.folder = tempfile.mkdtemp(prefix="paceline-daemon-")
        self.config = os.path.join(self.folder, "pacelined.toml")
        self.socket = os.path.join(self.folder, "service.sock")
        self.environment = dict(os.environ, PACELINE_SOCKET=self.socket,
                                XDG_RUNTIME_DIR=self.folder)
        for name in ("PACELINE_NIC", "PACELINE_FILES", "LD_PRELOAD", "NOTIFY_SOCKET",
                     "STATE_DIRECTORY", "RUNTIME_DIRECTORY"):
            self.environment.pop(name, None)
        self.process = None
        self.services = set()
        self.write_config()

    def write_config(self, more=""):
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(f"""schema = 1
[daemon]
state = "state"
[dataplane]
testbed = "{ROOT}/configs/testbeds/{self.testbed}.toml"
socket = "{self.socket}"
program = "{DATAPLANE}"
{more}""")

    def start(self):
        self.log = open(os.path.join(self.folder, "pacelined.log"), "ab")
        self.process = subprocess.Popen([PACELINED, "--config", self.config],
                                        stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=self.log, env=self.environment,
                                        start_new_session=True, preexec_fn=die_with_parent)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def ask(self, method, target, body=None):
        connection = Connection(os.path.join(self.folder, "paceline", "pacelined.sock"))
        headers = {"Content-Type": "application/json"} if body is not None else {}
        connection.request(method, target, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        is_json = answer.headers.get("Content-Type", "").startswith("application/json")
        return answer.status, json.loads(text) if is_json and text else text

    def wait_for(self, what, condition, seconds=20):
        limit = time.monotonic() + seconds * PATIENCE
        while time.monotonic() < limit:
            try:
                value = condition()
                if value:
                    return value
            except OSError:
                pass
            if self.process.poll() is not None:
                raise AssertionError(f"{what}: pacelined ended with {self.process.returncode}")
            time.sleep(0.02)
        raise AssertionError(f"{what}: not within {seconds} s")

    def healthy(self):
        if self.ask("GET", "/healthz")[0] != 200:
            return None
        pid = self.ask("GET", "/v1/status")[1]["dataplane"]["pid"]
        self.services.add(pid)
        return pid

    def value(self, nic, name):
        nics = self.ask("GET", "/v1/params")[1]["nics"]
        return [n for n in nics if n["name"] == nic][0]["values"][name]

    def logs(self):
        out = ""
        for name in ("pacelined.log", "state/dataplane.log"):
            try:
                with open(os.path.join(self.folder, name), encoding="utf-8",
                          errors="replace") as file:
                    out += f"--- {name}\n" + "".join(file.readlines()[-40:])
            except OSError:
                pass
        return out

    def close(self):
        if self.process is not None and self.process.poll() is None:
            try:
                self.services.add(self.ask("GET", "/v1/status")[1]["dataplane"]["pid"])
            except (OSError, ValueError, KeyError, TypeError):
                pass
            end(self.process)
        for pid in self.services:
            # Only what is still a service of this folder: numbers are used again.
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    if self.socket.encode() in file.read():
                        os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        shutil.rmtree(self.folder, ignore_errors=True)
