"""A testbed of one test's own: a service with emulated hosts, in a folder that goes with it."""

import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

SKIPPED = 77  # SKIP_RETURN_CODE of these tests
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PATIENCE = float(os.environ.get("PACELINE_TEST_PATIENCE", "1"))  # times every limit
# Ordinary users have daemons such as tgtd not on their path.
os.environ["PATH"] = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin"


def say(text):
    print(text, flush=True)


def skip(reason):
    say(f"skipped: {reason}")
    sys.exit(SKIPPED)


def need(*programs):
    for program in programs:
        if shutil.which(program) is None:
            skip(f"{program} is not installed (tools/packages.txt)")


def die_with_parent():
    """In a child before it becomes the program: it ends when this test is killed, ctest's way."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def end(process):
    """Ends a process that was started with a session of its own, and whatever it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            pass
        try:
            process.wait(3)
            break
        except subprocess.TimeoutExpired:
            continue
    try:  # children that outlive it
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


class Testbed:
    def __init__(self, paceline, dataplane, file="configs/testbeds/pair.toml", sets=()):
        self.paceline, self.dataplane, self.sets = paceline, dataplane, sets
        self.file = os.path.join(ROOT, file)
        self.process = None

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="paceline-verbs-")
        self.socket = os.path.join(self.folder, "service.sock")
        self.log = os.path.join(self.folder, "service.log")
        # Programs must find this service and no other, and leave nothing behind.
        self.environment = dict(os.environ, PACELINE_SOCKET=self.socket,
                                XDG_RUNTIME_DIR=self.folder)
        for name in ("PACELINE_NIC", "PACELINE_FILES", "LD_PRELOAD"):
            self.environment.pop(name, None)
        self.start()
        return self

    def start(self):
        """Starts the service and waits until it answers; again, where the one before has ended."""
        arguments = [self.dataplane, "--testbed", self.file, "--socket", self.socket,
                     "--foreground"]
        for assignment in self.sets:
            arguments += ["--set", assignment]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, env=self.environment,
                                            start_new_session=True,
                                            preexec_fn=die_with_parent)
        try:
            self._await()
        except BaseException:
            self.__exit__()
            raise

    def _await(self):
        limit = time.monotonic() + 10 * PATIENCE
        while True:
            answer = subprocess.run([self.paceline, "exec", "--print-env", "--socket", self.socket],
                                    capture_output=True, text=True, env=self.environment)
            if answer.returncode == 0:
                return
            if self.process.poll() is not None or time.monotonic() > limit:
                raise RuntimeError(f"no testbed: {answer.stderr}{self.log_text()}")
            time.sleep(0.02)

    def __exit__(self, *_):
        if self.process is not None:
            end(self.process)
        shutil.rmtree(self.folder, ignore_errors=True)

    def log_text(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return "".join(file.readlines()[-40:])

    def alive(self):
        return self.process.poll() is None

    def control(self, **request):
        """The answer of the control socket."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.settimeout(10 * PATIENCE)
            connection.connect(self.socket + ".control")
            connection.send(json.dumps({"schema": 1, "id": 1, **request}).encode())
            answer = json.loads(connection.recv(1 << 16))
        if not answer["ok"]:
            raise RuntimeError(f"{request['op']}: {answer['errors']}")
        return answer

    def status(self):
        done = subprocess.run([self.paceline, "testbed", "status", "--json", "--socket",
                               self.socket], capture_output=True, text=True, check=True,
                              env=self.environment)
        return json.loads(done.stdout)

    def on(self, nic, command, *options):
        """The command line that runs `command` on a NIC; None: it sees them all."""
        return [self.paceline, "exec", *(("--nic", nic) if nic else ()), "--socket", self.socket,
                *options, "--", *command]


def said_by_child(become, work):
    """What `work` says, in a child that `become` has made somebody else first."""
    result, tell = os.pipe()
    child = os.fork()
    if child == 0:
        said = "failed"
        try:
            become()
            said = work()
        except (OSError, AssertionError) as error:
            said = f"failed: {error}"
        finally:
            os.write(tell, said.encode())
            os._exit(0)
    os.close(tell)
    with os.fdopen(result) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said
