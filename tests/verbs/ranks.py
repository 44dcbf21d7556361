"""The ranks that a command has started on a testbed: who they are, and that none is left."""

import glob
import os
import subprocess
import time

from programs import Failed
from testbed import PATIENCE, end, say

ENDS_WITHIN = 10 * PATIENCE


def nothing_left(testbed):
    left = glob.glob(os.path.join(testbed.folder, "paceline-ranks-*"))
    if left:
        raise Failed(f"left behind: {left}")


def rank_processes(parent):
    """The processes that `parent` has started, by their command lines."""
    found = {}
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{process}/stat", encoding="ascii", errors="replace") as file:
                ppid = int(file.read().rpartition(")")[2].split()[1])
            with open(f"/proc/{process}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if ppid == parent and os.path.basename(words[0]) == b"paceline-rank":
            rank = next(w for w in words if w.startswith(b"--rank="))
            found[int(rank[7:])] = int(process)
    return found


def await_ranks(running, count, seconds=0.5):
    """The processes of `count` ranks, `seconds` after the last has begun."""
    limit = time.monotonic() + ENDS_WITHIN
    while len(ranks := rank_processes(running.process.pid)) < count:
        if time.monotonic() > limit or running.process.poll() is not None:
            end(running.process)
            raise Failed(f"{len(ranks)} ranks run: {running.text()}")
        time.sleep(0.05)
    time.sleep(seconds)
    return ranks


def ended(running, ranks, status):
    """What it printed, once it has ended with that status and none of its ranks is left."""
    begin = time.monotonic()
    try:
        running.process.wait(ENDS_WITHIN)
    except subprocess.TimeoutExpired:
        raise Failed(f"still runs after {ENDS_WITHIN} s: {running.text()}") from None
    finally:
        end(running.process)
    say(f"    ended after {time.monotonic() - begin:.2f} s")
    left = [rank for rank, process in ranks.items() if os.path.exists(f"/proc/{process}")]
    if left or running.process.returncode != status:
        raise Failed(f"exit status {running.process.returncode}, not {status}; ranks left {left}:\n"
                     f"{running.text()}")
    return running.text()
