"""A headless Chromium driven over its DevTools protocol through a pair of pipes: no port, no
package beyond the browser and Python's standard library."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

# The shell is the same browser without its windows, in Debian a smaller package.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")

# Quiet: without these the browser looks up its vendor's hosts at every start.
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-extensions", "--disable-dev-shm-usage", "--hide-scrollbars",
    "--remote-debugging-pipe",
)


def find():
    for name in NAMES:
        path = shutil.which(name)
        if path:
            return path
    return None


class BrowserError(Exception):
    pass


class Browser:
    """One page. Use as a context manager; `events` keeps everything the browser reported."""

    def __init__(self, program, timeout=30.0):
        self.timeout = timeout
        self.events = []
        self._id = 0
        self._buffer = b""
        self._profile = tempfile.mkdtemp(prefix="paceline-browser-")
        read_here, write_there = os.pipe()  # the browser writes its answers to 4
        read_there, write_here = os.pipe()  # and reads commands from 3
        self._log = open(os.path.join(self._profile, "log"), "wb")

        def plumb():
            os.dup2(read_there, 63)  # out of the way of one another
            os.dup2(write_there, 64)
            os.dup2(63, 3)
            os.dup2(64, 4)

        self._process = subprocess.Popen(
            [program, *FLAGS, "--user-data-dir=" + self._profile, "about:blank"],
            stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log,
            preexec_fn=plumb, close_fds=False)
        os.close(read_there)
        os.close(write_there)
        self._read, self._write = read_here, write_here
        self._session = None
        targets = self._wait_for_page()
        self._session = self.call("Target.attachToTarget", targetId=targets, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")

    def _wait_for_page(self):
        end = time.monotonic() + self.timeout
        while time.monotonic() < end:
            for target in self.call("Target.getTargets")["targetInfos"]:
                if target["type"] == "page":
                    return target["targetId"]
            time.sleep(0.05)
        raise BrowserError("the browser opened no page")

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        try:
            self._session = None
            self.call("Browser.close")
        except (BrowserError, OSError):
            self._process.kill()
        self._process.wait()
        self._log.close()
        os.close(self._read)
        os.close(self._write)
        shutil.rmtree(self._profile, ignore_errors=True)

    def _receive(self, end):
        """The next message of the browser."""
        while b"\0" not in self._buffer:
            left = end - time.monotonic()
            ready = left > 0 and select.select([self._read], [], [], left)[0]
            if not ready:
                raise BrowserError("the browser did not answer in time")
            piece = os.read(self._read, 1 << 20)
            if not piece:
                with open(self._log.name, "rb") as log:
                    raise BrowserError("the browser ended:\n" + log.read().decode(errors="replace"))
            self._buffer += piece
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        self._id += 1
        number = self._id
        message = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + self.timeout
        while True:
            answer = self._receive(end)
            if answer.get("id") != number:
                self.events.append(answer)
                continue
            if "error" in answer:
                raise BrowserError(f"{method}: {answer['error'].get('message')}")
            return answer["result"]

    def open(self, path):
        """Loads a file and waits until its scripts have run."""
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        end = time.monotonic() + self.timeout
        while self.evaluate("document.readyState") != "complete":
            if time.monotonic() > end:
                raise BrowserError(f"{path} did not load in time")
            time.sleep(0.05)

    def evaluate(self, expression):
        """The value of an expression, or what a promise comes to."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in result:
            raise BrowserError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def screenshot(self, scale=1.0):
        """The whole page as PNG."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": scale}
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                         clip=clip)
        return base64.b64decode(shot["data"])
