"""README.md as its reader executes it: every command of every code block runs, in the order of the page and in one
folder, and what README prints is what the command prints.

A command is a line that begins with "$ "; lines that end with a backslash go on. The lines below it are its output,
shortened: they must occur in the real output in this order, white space aside. A comment above a block says what differs:

    <!-- test: figures vary -->   digits are not compared (times and speeds differ from run to run)
    <!-- test: exit 2 -->         the last command ends with this status; all others end with 0
    <!-- test: file NAME -->      the block is the content of this file
    <!-- test: not run, REASON --> for what the test cannot do, such as installing packages

A block that is none of these fails the test. A command with "Ctrl-C ends it" in its comment is interrupted after a few
seconds. A command that ends with "&" runs until the end of its block.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PATIENCE = float(os.environ.get("PACELINE_TEST_PATIENCE", "1"))
COMMAND_SECONDS = 180 * PATIENCE
TRIES = 15  # a reader types slower than a shell: what a background command serves may need a moment


class Block:
    def __init__(self, line, note, language, text):
        self.line, self.note, self.language, self.text = line, note, language, text

    def commands(self):
        """Pairs of a command and the lines that are printed below it."""
        found = []
        lines = iter(self.text)
        for line in lines:
            if line.startswith("$ "):
                command = line[2:]
                while command.endswith("\\"):
                    command = command[:-1] + next(lines).strip()
                found.append((command, []))
            elif not found:
                return []
            else:
                found[-1][1].append(line)
        return found


def blocks(path):
    note, block = "", None
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            line = line.rstrip("\n")
            if block is not None and line == "```":
                yield block
                note, block = "", None
            elif block is not None:
                block.text.append(line)
            elif line.startswith("```"):
                block = Block(number, note, line[3:], [])
            elif match := re.fullmatch(r"<!-- test: (.*) -->", line):
                note = match.group(1)
            elif line:
                note = ""


def squeezed(text, figures_vary):
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)
    if figures_vary:
        text = re.sub(r"[0-9]+([.,][0-9]+)*", "0", text)
        text = re.sub(r"\.{2,}", "..", text)  # ctest fills lines up with dots
    return " ".join(text.split())


def missing_line(expected, output, figures_vary):
    """The first expected line that the output does not have, or None."""
    real, start = squeezed(output, figures_vary), 0
    for line in expected:
        wanted = squeezed(line, figures_vary)
        at = real.find(wanted, start)
        if at < 0:
            return line
        start = at + len(wanted)
    return None


class Reader:
    def __init__(self, options):
        self.folder = tempfile.mkdtemp(prefix="paceline-readme-")
        shutil.copytree(os.path.join(ROOT, "configs"), os.path.join(self.folder, "configs"))
        os.makedirs(os.path.join(self.folder, "build"))
        os.symlink(os.path.abspath(options.build), os.path.join(self.folder, "build", "release"))
        commands = os.path.join(self.folder, ".commands")
        os.makedirs(commands)
        for program in (options.paceline, options.pacelined, options.dataplane):
            os.symlink(os.path.abspath(program), os.path.join(commands, os.path.basename(program)))
        self.environment = dict(os.environ, HOME=self.folder, XDG_RUNTIME_DIR=self.folder, TERM="xterm",
                                STATE_DIRECTORY=os.path.join(self.folder, "state"), LC_ALL="C.UTF-8",
                                PATH=commands + ":" + os.environ["PATH"])
        for name in ("PACELINE_SOCKET", "PACELINE_NIC", "PACELINE_FILES", "LD_PRELOAD", "NOTIFY_SOCKET",
                     "RUNTIME_DIRECTORY"):
            self.environment.pop(name, None)

    def start(self, command, output):
        # Started in a group of its own, so that Ctrl-C reaches what it started, as on a terminal.
        return subprocess.Popen(["bash", "-c", command], cwd=self.folder, env=self.environment,
                                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                start_new_session=True)

    def run(self, command):
        """The exit status of the command and all that it prints."""
        interrupted = "Ctrl-C ends it" in command
        if re.match(r"paceline top\b", command):  # wants a terminal
            command = "script -qec '" + command.split("#")[0].strip() + "' /dev/null"
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
            process = self.start(command, output)
            try:
                status = process.wait(3 if interrupted else COMMAND_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGINT if interrupted else signal.SIGKILL)
                try:
                    status = process.wait(10 * PATIENCE)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    status = f"does not end within {COMMAND_SECONDS:.0f} s or on Ctrl-C"
            if interrupted and status in (130, -signal.SIGINT):
                status = 0
            output.seek(0)
            return status, output.read()

    def run_block(self, block):
        """What is wrong, or None."""
        figures_vary = block.note == "figures vary"
        exit_status = int(block.note[5:]) if block.note.startswith("exit ") else 0
        commands = block.commands()
        background = []
        try:
            for at, (command, expected) in enumerate(commands):
                print(f"README.md:{block.line}: $ {command}", flush=True)
                if re.search(r"&\s*(#.*)?$", command):
                    log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
                    background.append((self.start(re.sub(r"&\s*(#.*)?$", "", command), log), log))
                    time.sleep(2)  # nobody types faster
                    continue
                wanted = exit_status if at == len(commands) - 1 else 0
                for left in reversed(range(TRIES if background else 1)):
                    status, output = self.run(command)
                    if status == wanted or left == 0:
                        break
                    try:
                        background[-1][0].wait(1)
                    except subprocess.TimeoutExpired:
                        pass
                if status != wanted:
                    return f"$ {command}\n{output}\nexit status {status}, expected {wanted}"
                line = missing_line(expected, output, figures_vary)
                if line is not None:
                    return f"$ {command}\n{output}\nREADME prints this line, the command does not:\n{line}"
            return None
        finally:
            for process, log in background:
                for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
                    try:
                        os.killpg(process.pid, number)
                        process.wait(10 * PATIENCE)
                        break
                    except ProcessLookupError:
                        break
                    except subprocess.TimeoutExpired:
                        continue
                log.seek(0)
                print("background:", log.read(), flush=True)

    def close(self):
        subprocess.run(["paceline", "testbed", "down"], cwd=self.folder, env=self.environment, check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=30)
        shutil.rmtree(self.folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("paceline", "pacelined", "dataplane", "build"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--readme", default=os.path.join(ROOT, "README.md"))
    parser.add_argument("--line", type=int, help="only the block whose fence is in this line")
    options = parser.parse_args()
    reader = Reader(options)
    failures = []
    run = 0
    try:
        for block in blocks(options.readme):
            where = f"README.md:{block.line}"
            if block.note.startswith("file "):
                with open(os.path.join(reader.folder, block.note[5:]), "w", encoding="utf-8") as file:
                    file.write("\n".join(block.text) + "\n")
                continue
            if block.note.startswith("not run, "):
                print(f"{where}: {block.note}", flush=True)
                continue
            if not block.commands():
                failures.append(f"{where}: no command, and no comment says what the block is")
                continue
            if options.line not in (None, block.line):
                continue
            run += len(block.commands())
            if (wrong := reader.run_block(block)) is not None:
                failures.append(f"{where}: {wrong}")
    finally:
        reader.close()
    for failure in failures:
        print(failure, file=sys.stderr)
    print(f"{run} commands, {len(failures)} blocks failed")
    return 1 if failures or run == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
