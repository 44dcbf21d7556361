#!/usr/bin/env python3
"""A user who makes another user's runtime folder in /tmp first gets none of that user's programs: they
would hand their registered memory to whoever answers there."""

import argparse
import os
import select
import shutil
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "verbs"))
import testbed as bed  # noqa: E402

VICTIM, OTHER = 54321, 54322  # of nobody


def be_victim():
    bed.die_with_parent()
    os.setgroups([])
    os.setresgid(VICTIM, VICTIM, VICTIM)
    os.setresuid(VICTIM, VICTIM, VICTIM)


def connects(environment, program, owner):
    """Whether the victim's program connects to the socket of a folder that is the owner's."""
    folder = f"/tmp/paceline-{VICTIM}"
    os.mkdir(folder, 0o755)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
            listening.bind(f"{folder}/paceline.sock")
            os.chmod(f"{folder}/paceline.sock", 0o666)
            os.chown(folder, owner, owner)
            listening.listen()
            process = subprocess.Popen([program, "honest", "-", "-"], env=environment,
                                       stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                       preexec_fn=be_victim, start_new_session=True)
            try:
                for _ in range(int(200 * bed.PATIENCE)):
                    if select.select([listening], [], [], 0.05)[0]:
                        return True
                    if process.poll() is not None:
                        return False
                return False
            finally:
                bed.end(process)
                process.communicate()
    finally:
        shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser()
    for name in ("paceline", "pacelined", "dataplane", "programs"):
        parser.add_argument("--" + name, required=True)
    given = parser.parse_args()
    if os.geteuid() != 0:
        bed.skip("needs root: it acts as two other users")
    if os.path.lexists(f"/tmp/paceline-{VICTIM}"):
        bed.skip(f"/tmp/paceline-{VICTIM} is there")
    program = os.path.join(given.programs, "attack_setuid_memory")
    try:
        subprocess.run([program], preexec_fn=be_victim, check=False)
    except OSError as error:
        bed.skip(f"other users cannot run {program}: {error}")
    with bed.Testbed(given.paceline, given.dataplane) as service:
        told = subprocess.run([given.paceline, "exec", "--print-env", "--socket", service.socket],
                              capture_output=True, text=True, check=True, env=service.environment)
        environment = dict(line.split("=", 1) for line in told.stdout.splitlines())
    for name in ("PACELINE_SOCKET", "XDG_RUNTIME_DIR"):
        environment.pop(name, None)
    environment["PATH"] = os.environ["PATH"]
    if not connects(environment, program, VICTIM):
        bed.say("FAILED: a program does not find the service of its own user")
        sys.exit(1)
    if connects(environment, program, OTHER):
        bed.say("FAILED: a program attaches to whoever made its folder")
        sys.exit(1)
    bed.say("passed")


main()
