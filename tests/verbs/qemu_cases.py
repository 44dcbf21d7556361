"""QEMU moves a machine to another QEMU by RDMA (`migrate rdma:`). The machine has no disk and does nothing
but begin; its memory is what is moved."""

import os
import socket
import time

from programs import Failed, Running
from rdma_cm_cases import SERVER, listening, nothing_is_left, wait_until
from testbed import PATIENCE, end

NEEDS = ("qemu-system-x86_64",)
PORT = 4444
MEMORY = 64  # MiB


def machine(testbed, nic, name, *more):
    monitor = os.path.join(testbed.folder, f"{name}.monitor")
    command = ["qemu-system-x86_64", "-nodefaults", "-display", "none", "-machine", "pc,accel=tcg",
               "-m", str(MEMORY), "-monitor", f"unix:{monitor},server=on,wait=off", *more]
    return Running(testbed, testbed.on(nic, command)), monitor


def ask(monitor, command):
    """What the monitor answers to one command."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10 * PATIENCE)
        connection.connect(monitor)
        text = ""
        for line in ("", command + "\n"):
            connection.sendall(line.encode())
            text = ""
            while not text.endswith("(qemu) "):
                part = connection.recv(65536).decode(errors="replace")
                if not part:
                    raise Failed(f"the monitor has ended:\n{text}")
                text += part
        return text


def migrate(pin_all):
    def run(testbed):
        there, there_monitor = machine(testbed, "h1", "there", "-incoming", f"rdma:{SERVER}:{PORT}")
        here, here_monitor = machine(testbed, "h0", "here")
        try:
            wait_until(testbed, there, lambda: listening(testbed) > 0, "listening")
            wait_until(testbed, here, lambda: os.path.exists(here_monitor), "ready")
            if pin_all:  # on both sides, as QEMU asks for
                for monitor in (there_monitor, here_monitor):
                    ask(monitor, "migrate_set_capability rdma-pin-all on")
            ask(here_monitor, f"migrate -d rdma:{SERVER}:{PORT}")
            limit = time.monotonic() + 60 * PATIENCE
            while "Migration status: completed" not in (text := ask(here_monitor, "info migrate")):
                if "Migration status: failed" in text or time.monotonic() > limit:
                    raise Failed(f"{text}\n{here.text()}\n{there.text()}")
                time.sleep(0.1)
            status = ask(there_monitor, "info status")
            if "running" not in status:
                raise Failed(f"it does not go on there: {status}\n{there.text()}")
            return next(line.strip() for line in text.splitlines() if "transferred ram" in line)
        finally:
            for program in (here, there):
                end(program.process)
            nothing_is_left(testbed)
    return "QEMU, migrate rdma:" + (", rdma-pin-all" if pin_all else ""), run


CASES = [migrate(False), migrate(True)]
