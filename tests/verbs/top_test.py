"""`paceline top` in terminals of several sizes: what it shows fits, nothing scrolls away, and the terminal
is as it was before when it ends."""

import fcntl
import os
import re
import select
import struct
import subprocess
import sys
import termios
import time

from testbed import PATIENCE, Testbed, die_with_parent, say

PACELINE, DATAPLANE = sys.argv[1:3]
SIZES = [(60, 10), (80, 24), (100, 15), (200, 50)]
ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"


def check(holds, what):
    if not holds:
        raise AssertionError(what)


class Screen:
    """As much of a terminal as top uses. A line end in the last row scrolls, as in a real one."""

    TOKEN = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])|\r|\n|[^\x1b\r\n]+|\x1b")

    def __init__(self, width, height):
        self.width, self.height = width, height
        self.rows = [""] * height
        self.row = self.column = self.scrolled = self.styles = 0

    def feed(self, text):
        for token in self.TOKEN.finditer(text):
            word, end = token.group(0), token.group(2)
            if end == "H":
                self.row = self.column = 0
            elif end == "K":
                self.rows[self.row] = self.rows[self.row][:self.column]
            elif end == "J":
                self.rows[self.row + 1:] = [""] * (self.height - self.row - 1)
            elif end == "m":
                self.styles += 1
            elif end in ("h", "l"):
                pass
            elif word == "\r":
                self.column = 0
            elif word == "\n":
                if self.row == self.height - 1:
                    self.scrolled += 1
                    self.rows = self.rows[1:] + [""]
                else:
                    self.row += 1
            else:
                check("\x1b" not in word, f"an unknown sequence at {text[token.start():][:20]!r}")
                row = self.rows[self.row].ljust(self.column)
                self.rows[self.row] = row[:self.column] + word + row[self.column + len(word):]
                self.column += len(word)
                check(self.column <= self.width, f"wider than {self.width}: {word!r}")


class Top:
    def __init__(self, bed, width, height, *options, **environment):
        self.master, terminal = os.openpty()
        self.resize(width, height)
        self.terminal = terminal
        self.modes = termios.tcgetattr(terminal)
        self.out = ""

        def become_foreground():
            die_with_parent()
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(
            [PACELINE, "top", "--socket", bed.socket, "--interval", "0.2", *options],
            stdin=terminal, stdout=terminal, stderr=terminal, preexec_fn=become_foreground,
            env=dict(bed.environment, TERM="xterm-256color", **environment))

    def resize(self, width, height):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        self.width, self.height = width, height

    def read(self, seconds):
        if select.select([self.master], [], [], seconds)[0]:
            self.out += os.read(self.master, 65536).decode()

    def press(self, keys):
        os.write(self.master, keys)

    def screen(self, condition, what):
        """The first whole screen from now on for which the condition holds."""
        self.out = ""
        limit = time.monotonic() + 10 * PATIENCE
        while time.monotonic() < limit:
            self.read(0.1)
            frames = self.out.split("\x1b[H")[1:]
            for frame in frames[:-1]:  # the last may not be whole
                screen = Screen(self.width, self.height)
                try:
                    screen.feed("\x1b[H" + frame)
                except (AssertionError, IndexError) as error:
                    last = error  # of before a change of size
                    continue
                last = screen.rows
                if condition(screen):
                    return screen
        raise AssertionError(f"{what}: not in {self.width} x {self.height}: {last}")

    def finish(self):
        limit = time.monotonic() + 10 * PATIENCE
        while self.process.poll() is None:
            check(time.monotonic() < limit, "it does not end")
            self.read(0.05)
        self.read(0)
        return self.process.returncode

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.terminal)
        os.close(self.master)


def whole(screen):
    rows = screen.rows
    return (screen.scrolled == 0 and rows[0].startswith("paceline top   ")
            and re.search(r"\d\d:\d\d:\d\d", rows[0]) and rows[1].startswith("total: send ")
            and rows[2].startswith("deepest switch queue: ") and rows[3].startswith("NIC ")
            and any(row.startswith("h0 ") for row in rows) and rows[-1].startswith("q quit"))


def sizes(bed):
    for width, height in SIZES:
        top = Top(bed, width, height)
        try:
            screen = top.screen(whole, "the whole screen")
            check(screen.styles > 0, "colour on a terminal")
            check(sum(row.startswith("NIC ") for row in screen.rows) == 2, f"{screen.rows}")
            top.press(b"n")
            top.screen(lambda s: whole(s) and sum(r.startswith("NIC ") for r in s.rows) == 1,
                       "NICs alone")
            top.press(b"q")
            check(top.finish() == 0, f"exit status {top.process.returncode}")
        finally:
            top.close()
        say(f"ok   {width} x {height}")


def resized(bed):
    top = Top(bed, 120, 30, NO_COLOR="1")
    try:
        screen = top.screen(whole, "the whole screen")
        check(screen.styles == 0, "NO_COLOR: none")
        top.resize(70, 12)
        top.screen(whole, "another size")
        top.resize(160, 40)
        top.screen(lambda s: whole(s) and "limited by" in s.rows[3], "a larger one")
        top.press(b"\x1a")  # Ctrl-Z
        top.screen(whole, "not suspended")
    finally:
        top.close()
    say("ok   resized, without colours")


def interrupted(bed):
    for how in ("Ctrl-C", "SIGTERM"):
        top = Top(bed, 80, 24)
        try:
            top.screen(whole, "the whole screen")
            check(termios.tcgetattr(top.terminal) != top.modes, "keys come one by one")
            top.out = ""
            if how == "Ctrl-C":
                top.press(b"\x03")
            else:
                top.process.terminate()
            check(top.finish() == 0, f"{how}: exit status {top.process.returncode}")
            check(termios.tcgetattr(top.terminal) == top.modes, f"{how}: the terminal's modes")
            check(top.out.rstrip().endswith(LEAVE) and "\x1b[?25h" in top.out and
                  "\x1b[?7h" in top.out, f"{how}: the screen of before: {top.out[-80:]!r}")
        finally:
            top.close()
        say(f"ok   {how}")


def elsewhere(bed):
    """Not to a terminal: text without colours, as wide as it is."""
    done = subprocess.run([PACELINE, "top", "--socket", bed.socket, "--once", "--interval", "0.1"],
                          capture_output=True, text=True, env=bed.environment, timeout=60,
                          check=True)
    check("\x1b" not in done.stdout and "deepest switch queue: 0" in done.stdout, done.stdout)
    check("limited by" in done.stdout and "CNPs/s" in done.stdout, done.stdout)
    say("ok   --once into a pipe")


def main():
    with Testbed(PACELINE, DATAPLANE, "configs/testbeds/incast.toml") as bed:
        for case in (sizes, resized, interrupted, elsewhere):
            case(bed)


main()
