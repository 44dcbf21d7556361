"""A program of an attack that prints words and lives on until the attack is over."""

import os
import subprocess
import threading
import time

import raw_session as raw

from testbed import PATIENCE, die_with_parent, end


class Running:
    def __init__(self, command, environment):
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, env=environment,
                                        start_new_session=True, preexec_fn=die_with_parent)
        self.lines = []
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        end(self.process)

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.strip())

    def wait_for(self, word, seconds=30):
        """The line that begins with it; None when the program cannot do what it should here."""
        limit = time.monotonic() + seconds * PATIENCE
        while time.monotonic() < limit:
            for line in list(self.lines):
                if line.startswith(word):
                    return line
                if line.startswith("skipped:"):
                    return None
            raw.check(self.process.poll() is None, f"the program ended: {self.lines}")
            time.sleep(0.02)
        raise AssertionError(f"no {word!r} within {seconds} s: {self.lines}")


def resident(pid):
    """Bytes, shared memory included."""
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
