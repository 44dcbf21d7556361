"""What attacks share: their arguments, and a daemon with the service that it starts."""

import argparse
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

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "verbs"))

from testbed import PATIENCE, ROOT, die_with_parent, end, say, skip  # noqa: E402,F401  (attacks use them)


def arguments():
    parser = argparse.ArgumentParser()
    for name in ("paceline", "pacelined", "dataplane", "programs"):
        parser.add_argument(f"--{name}", required=True)
    return parser.parse_args()


def check(holds, what):
    if not holds:
        raise AssertionError(what)


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout=10 * PATIENCE):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(self.path)  # a limit would make it fail where the backlog is full
        self.sock.settimeout(self.timeout)


class Daemon:
    """pacelined in a folder of its own, with a service of a pair of NICs that ends with it."""

    def __init__(self, paths, more=""):
        self.folder = tempfile.mkdtemp(prefix="paceline-attack-")
        os.chmod(self.folder, 0o755)
        os.mkdir(os.path.join(self.folder, "paceline"))
        self.socket = os.path.join(self.folder, "service.sock")
        self.api = os.path.join(self.folder, "paceline", "pacelined.sock")
        self.log = os.path.join(self.folder, "pacelined.log")
        self.environment = dict(os.environ, PACELINE_SOCKET=self.socket, PACELINED_SOCKET=self.api,
                                XDG_RUNTIME_DIR=self.folder)
        for name in ("PACELINE_NIC", "PACELINE_FILES", "LD_PRELOAD", "NOTIFY_SOCKET",
                     "STATE_DIRECTORY", "RUNTIME_DIRECTORY"):
            self.environment.pop(name, None)
        config = os.path.join(self.folder, "pacelined.toml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f"""schema = 1
[daemon]
state = "{self.folder}/state"
[dataplane]
testbed = "{ROOT}/configs/testbeds/pair.toml"
socket = "{self.socket}"
program = "{paths.dataplane}"
end_with_daemon = true
{more}""")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([paths.pacelined, "--config", config],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env=self.environment, start_new_session=True,
                                            preexec_fn=die_with_parent)
        self.service = 0

    def __enter__(self):
        try:
            limit = time.monotonic() + 20 * PATIENCE
            while not self._healthy():
                if self.process.poll() is not None or time.monotonic() > limit:
                    raise RuntimeError(f"no daemon: {self.log_text()}")
                time.sleep(0.05)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _healthy(self):
        try:
            if self.ask("GET", "/healthz")[0] != 200:
                return False
        except OSError:
            return False
        self.service = json.loads(self.ask("GET", "/v1/status")[1])["dataplane"]["pid"]
        return True

    def ask(self, method, target, body=None):
        """Status and body, as bytes."""
        connection = UnixConnection(self.api)
        headers = {"Content-Type": "application/json"} if body is not None else {}
        connection.request(method, target, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, text

    def log_text(self):
        with open(self.log, "rb") as file:
            return file.read()

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)  # it ends the service, too
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                pass
        end(self.process)
        if self.service:
            try:  # only what is still this service: numbers are used again
                with open(f"/proc/{self.service}/cmdline", "rb") as file:
                    if self.socket.encode() in file.read():
                        os.kill(self.service, signal.SIGKILL)
            except OSError:
                pass
        shutil.rmtree(self.folder, ignore_errors=True)
