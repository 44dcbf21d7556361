#!/usr/bin/env python3
"""A tenant that becomes a set-user-id root program must not be reached by its own connection.

Of an unprivileged user, beside a service of root's: a process connects and becomes a set-user-id
program that waits for input; children that kept the socket register its memory, or have it
registered already, by copy, and a second process reads and writes it by RDMA. The same where the
number of a process that has ended is given to another one. What copies is a process of that user:
it can kill it, but reach neither its memory, which is the service's, nor the service. A well-behaved
tenant of that user has its memory copied, by a service that keeps the least capabilities.
"""

import argparse
import ctypes
import errno
import json
import os
import pwd
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "verbs"))
import testbed as bed  # noqa: E402

USER = 54321  # of nobody
STATUS, REGISTER, OPEN, CREATE_PD = 5, 13, 3, 10
SETUID, SETGID, PTRACE = 7, 6, 19  # capabilities


def be_user(user=USER):
    bed.die_with_parent()
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def be_program_of_user(user=USER):
    """As if the user had called exec: changing the user alone closes the process's memory."""
    be_user(user)
    ctypes.CDLL(None).prctl(4, 1)  # PR_SET_DUMPABLE


def may_run(command):
    try:
        return subprocess.run(command, preexec_fn=be_user, capture_output=True,
                              check=False).returncode == 0
    except OSError:
        return False


def fail(text):
    bed.say(f"FAILED: {text}")
    sys.exit(1)


def line_of(pipe, seconds=20):
    readable, _, _ = select.select([pipe], [], [], seconds * bed.PATIENCE)
    return pipe.readline().decode() if readable else ""


def run(service, programs, folder, mode, root, user=USER):
    """What the attacker said, and what the target said of itself."""
    go = os.path.join(folder, f"go-{mode}-{root}")
    if os.path.exists(go):  # of a service before this one
        os.remove(go)
    target = os.path.join(folder, "root_target" if root else "own_target")
    command = service.on(None, [os.path.join(programs, "attack_setuid_memory"), mode, target, go],
                         "--no-files")
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, preexec_fn=lambda: be_user(user), start_new_session=True,
                               bufsize=0, env=dict(service.environment, PACELINE_MEMORY="copy"))
    try:
        said = ""
        if mode != "honest":
            ready = line_of(process.stdout)
            if ready != f"ready {0 if root else USER}\n":
                os.killpg(process.pid, signal.SIGKILL)
                fail(f"{mode}: the target said {ready!r}: {process.stderr.read().decode()}")
        with open(go, "w", encoding="utf-8"):
            pass
        while not re.search(r"^(write|failed|register [1-9])", said, re.MULTILINE):
            line = line_of(process.stderr)
            if not line:
                break
            said += line
        if mode != "honest":
            process.stdin.write(b"x\n")
        return said, line_of(process.stdout)
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()


def check_attack(service, programs, folder, mode, root):
    said, target = run(service, programs, folder, mode, root)
    bed.say(f"{mode}, {'set-user-id root' if root else 'own program'}: {said!r} {target!r}")
    if "failed" in said or not said.startswith("register"):
        fail(f"{mode}: the attack was not made: {said}")
    read = re.search(r"^read (-?\d+) (\d+)$", said, re.MULTILINE)
    if read and (read[1] == "0" or read[2] != "0"):
        fail(f"{mode}: {read[2]} bytes were read of another program's memory")
    if target != "changed 0\n":
        fail(f"{mode}: another program's memory was written: {target!r}")


# --- numbers of processes that are given away ---

class Raw:
    """The attach protocol by hand: a connection that another process goes on with."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.connect(path)
        self.sequence = 0

    def ask(self, operation, body=b""):
        """(errno, body) of the answer."""
        self.sequence += 1
        header = struct.pack("<IHHIi", 0x4C434150, operation, 1, self.sequence, 0)
        self.socket.send(header + body)
        answer, descriptors, _, _ = socket.recv_fds(self.socket, 65536, 8)
        for descriptor in descriptors:
            os.close(descriptor)
        return struct.unpack_from("<i", answer, 12)[0], answer[16:]

    def open(self, nic):
        self.ask(1, bytes(40))
        if self.ask(OPEN, nic.encode().ljust(32, b"\0"))[0]:
            fail(f"{nic} was not opened")
        return struct.unpack_from("<I", self.ask(CREATE_PD)[1])[0]

    def register(self, pd, address, length):
        body = struct.pack("<QQQIIIIII", address, length, address, 15, pd, 1, 0, 0, 0)
        return self.ask(REGISTER, body + struct.pack("<QQII", length, 0, 0, 0))[0]


def next_number(number):
    with open("/proc/sys/kernel/ns_last_pid", "w", encoding="ascii") as file:
        file.write(str(number - 1))


def outlived_tenant(service, nic, early, go, tell):
    """Connects and ends; its child goes on with the socket, and tells the errno of registering."""
    be_user()
    raw = Raw(service.socket)
    pd = 0 if early else raw.open(nic)
    if os.fork() != 0:
        os._exit(0)
    if os.read(go, 1):
        pd = raw.open(nic) if early else pd
        os.write(tell, b"%d" % raw.register(pd, 0x10000, 4096))
    os._exit(0)


def check_number_given_away(service, nic, early):
    """A child with the socket of a process that has ended asks for memory of the process that has
    its number now; `early`: given away before the service has accepted the connection."""
    for _ in range(50):
        go, start = os.pipe()
        result, tell = os.pipe()
        other = 0
        try:
            if early:
                service.process.send_signal(signal.SIGSTOP)
            first = os.fork()
            if first == 0:
                os.close(start)
                try:
                    outlived_tenant(service, nic, early, go, tell)
                finally:
                    os._exit(1)
            os.close(tell)
            os.waitpid(first, 0)
            next_number(first)
            other = os.fork()
            if other == 0:
                os.close(start)
                os.close(result)
                while True:
                    signal.pause()
            service.process.send_signal(signal.SIGCONT)
            if other != first:
                continue  # somebody was quicker
            os.write(start, b"x")
            answer = os.read(result, 16).decode()
            bed.say(f"number given away, early {early}: register {answer}")
            if answer in ("", "0"):
                fail("memory of a process that took over a number was registered")
            return
        finally:
            service.process.send_signal(signal.SIGCONT)
            if other:
                os.kill(other, signal.SIGKILL)
                os.waitpid(other, 0)
            for end in (go, start, result):
                os.close(end)
    bed.say("the number was taken by others each time: not tried")


# --- what copies for a user ---

def copiers(service):
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                comm, rest = file.read().split("(", 1)[1].rsplit(")", 1)
        except (FileNotFoundError, ProcessLookupError):
            continue
        if comm == "paceline-copy" and int(rest.split()[1]) == service.process.pid:
            found.append(int(name))
    return found


def denied(what, *arguments):
    try:
        what(*arguments)
    except PermissionError:
        return True
    return False


def within(seconds, holds):
    limit = time.monotonic() + seconds * bed.PATIENCE
    while not holds() and time.monotonic() < limit:
        time.sleep(0.01)
    return holds()


def copied(service, nic):
    """A session whose memory is by copy, that memory, and the process that copies."""
    raw = Raw(service.socket)
    own = ctypes.create_string_buffer(4096)
    before = copiers(service)
    number = raw.register(raw.open(nic), ctypes.addressof(own), 4096)
    if number:
        fail(f"its own memory was refused: {os.strerror(number)}")
    if not within(10, lambda: set(copiers(service)) - set(before)):
        fail("nothing copies for it")
    return raw, own, (set(copiers(service)) - set(before)).pop()


def attack_copier(service, nic):
    """Of a user whose memory is being copied. What went wrong, or nothing."""
    raw, own, copier = copied(service, nic)
    libc = ctypes.CDLL(None, use_errno=True)
    if not denied(open, f"/proc/{copier}/mem", "rb"):
        return "it opened the memory of what copies"
    if libc.ptrace(16, copier, None, None) == 0 or ctypes.get_errno() != errno.EPERM:  # ATTACH
        return "it traces what copies"
    threads = [int(name) for name in os.listdir(f"/proc/{service.process.pid}/task")]
    if not all(denied(os.kill, thread, signal.SIGKILL) for thread in threads):
        return "it may kill threads of the service"
    os.kill(copier, signal.SIGKILL)
    # One that is stopped does not outlive its session.
    raw, own, copier = copied(service, nic)
    os.kill(copier, signal.SIGSTOP)
    raw.socket.close()
    if not within(10, lambda: copier not in copiers(service)):
        return "it was stopped, and outlived its session"
    return ""


def check_copier(service, nic):
    wrong = bed.said_by_child(be_program_of_user, lambda: attack_copier(service, nic))
    if wrong:
        fail(f"what copies for a user: {wrong}")
    bed.say("what copies was killed and stopped by its user, and reached by nothing else")


def check_copier_ends(service, nic):
    """It has the service's memory: it does not outlive it."""
    raw, own, copier = copied(service, nic)
    os.write(service.ready, b"x")
    gone = within(10, lambda: not os.path.exists(f"/proc/{copier}"))
    return "" if gone else "it outlived the service"


# --- the service's own rights ---

def check_rights(service, user, capabilities=(SETUID, SETGID, PTRACE)):
    """The user, the capabilities of every thread, and what status says of them."""
    raw = Raw(service.socket)
    raw.ask(1, bytes(40))
    told = json.loads(raw.ask(STATUS)[1])["privileges"]
    bed.say(f"privileges: {told}")
    kept = {one["name"]: one["in_force"] for one in told["capabilities"]}
    names = {SETUID: "cap_setuid", SETGID: "cap_setgid", PTRACE: "cap_sys_ptrace"}
    if told["user"] != user or kept != {names[one]: False for one in capabilities}:
        fail("status: other privileges than were expected")
    permitted = sum(1 << one for one in capabilities)
    folder = f"/proc/{service.process.pid}/task"
    for thread in os.listdir(folder):
        with open(f"{folder}/{thread}/status", encoding="utf-8") as file:
            facts = dict(line.split(":\t") for line in file.read().splitlines() if ":\t" in line)
        sets = [int(facts[name], 16) for name in ("CapPrm", "CapEff", "CapInh", "CapAmb", "CapBnd")]
        if facts["Name"] == "paceline-copy":
            continue
        if sets != [permitted, 0, 0, 0, permitted] or facts["NoNewPrivs"] != "1":
            fail(f"thread {facts['Name']}: capabilities {sets}")
        if facts["Uid"].split() != [str(user)] * 4:
            fail(f"thread {facts['Name']}: users {facts['Uid']}")


def check_default(given, folder):
    """Without service.user it is no user that others are; what root's own programs need still goes,
    and its sockets are gone when it ends."""
    user = service_user()
    with bed.Testbed(given.paceline, given.dataplane, sets=("service.open=true",)) as service:
        os.chmod(service.folder, 0o755)
        attacks(given, service, folder)
        check_rights(service, user)
        if f"runs as user {user}" not in service.log_text():
            fail(f"the log does not say who it runs as: {service.log_text()}")
        control = os.path.join(service.folder, "service.sock.control")
        if bed.said_by_child(lambda: be_program_of_user(user),
                             lambda: "in" if controls(control) else "out") != "out":
            fail("a user that the service chose controls it")
        if not controls(control):
            fail("root does not control it")
        service.process.send_signal(signal.SIGTERM)
        if service.process.wait(10 * bed.PATIENCE) != 0:
            fail("it did not end well")
        left = [name for name in os.listdir(service.folder) if ".sock" in name]
        if left:
            fail(f"sockets are left: {left}")


def check_container(given, folder):
    """Root that may not trace, as in most containers. A service with a user of its own keeps nothing
    in its place: users are served; memory of root's programs, which have more than it, is refused,
    and not later. By default root's programs are served, too."""
    if ctypes.CDLL(None).prctl(24, PTRACE) != 0:  # PR_CAPBSET_DROP
        return "it keeps the right to trace"
    sets = ("service.open=true",)
    with bed.Testbed(given.paceline, given.dataplane, sets=sets) as service:
        os.chmod(service.folder, 0o755)
        attacks(given, service, folder)
        check_honest(service, given.programs, folder)
        check_honest(service, given.programs, folder, 0)
    user = pwd.getpwnam("nobody")
    sets += ('service.user="nobody"',)
    with bed.Testbed(given.paceline, given.dataplane, sets=sets) as service:
        os.chmod(service.folder, 0o755)
        check_rights(service, user.pw_uid, (SETUID, SETGID))
        check_honest(service, given.programs, folder)
        said, _ = run(service, given.programs, folder, "honest", False, 0)
        return "" if os.strerror(errno.EPERM) in said else f"root's program: {said!r}"


def service_user():
    """Whom a service of root's becomes."""
    try:
        return pwd.getpwnam("paceline").pw_uid
    except KeyError:
        return 60999


def controls(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        client.settimeout(10 * bed.PATIENCE)
        try:
            client.connect(path)
            client.send(b'{"schema":1,"id":1,"op":"hello"}')
            answer = client.recv(65536)
        except OSError:
            return False
        return bool(json.loads(answer or b"{}").get("nics"))


def attacks(given, service, folder):
    check_honest(service, given.programs, folder)
    check_honest(service, given.programs, folder, 0)
    for root in (True, False):
        for mode in ("inherited", "before", "shared"):
            check_attack(service, given.programs, folder, mode, root)
    for early in (False, True):
        check_number_given_away(service, "h0", early)
    check_copier(service, "h1")
    check_honest(service, given.programs, folder)
    if not service.alive():
        fail("the service has ended")


def check_honest(service, programs, folder, user=USER):
    said, changed = run(service, programs, folder, "honest", False, user)
    bed.say(f"honest, user {user}: {said!r} {changed!r}")
    if said != "register 0\nread 0 4096\nwrite 0\n" or changed != "changed 8\n":
        fail("a well-behaved tenant has not got its memory copied")


def as_another_user(given, folder):
    """A service that became somebody else serves root and users alike."""
    nobody = pwd.getpwnam("nobody").pw_uid
    with bed.Testbed(given.paceline, given.dataplane,
                     sets=("service.open=true", 'service.user="nobody"')) as service:
        os.chmod(service.folder, 0o755)
        check_rights(service, nobody)
        check_honest(service, given.programs, folder)
        check_honest(service, given.programs, folder, 0)
        check_attack(service, given.programs, folder, "inherited", True)
        result, service.ready = os.pipe()
        child = os.fork()
        if child == 0:
            be_program_of_user()
            said = check_copier_ends(service, "h0")
            bed.say(f"the service is killed: {said or 'what copied has ended'}")
            os._exit(1 if said else 0)
        os.close(service.ready)
        os.read(result, 1)
        service.process.kill()
        service.process.wait()
        if os.waitpid(child, 0)[1] != 0:
            fail("what copies")


def main():
    parser = argparse.ArgumentParser()
    for name in ("paceline", "pacelined", "dataplane", "programs"):
        parser.add_argument("--" + name, required=True)
    given = parser.parse_args()
    if os.geteuid() != 0:
        bed.skip("needs root: it makes a set-user-id program and acts as another user")
    if not may_run([given.paceline, "--version"]):
        bed.skip(f"other users cannot run {given.paceline}")
    folder = tempfile.mkdtemp(prefix="paceline-attack-")
    try:
        os.chmod(folder, 0o777)
        for name, mode in (("root_target", 0o4755), ("own_target", 0o755)):
            path = os.path.join(folder, name)
            shutil.copy(os.path.join(given.programs, "attack_setuid_target"), path)
            os.chmod(path, mode)
        if os.statvfs(folder).f_flag & os.ST_NOSUID:
            bed.skip(f"{folder} is mounted without set-user-id programs")
        check_default(given, folder)
        with bed.Testbed(given.paceline, given.dataplane,
                         sets=("service.open=true", 'service.user="root"')) as service:
            os.chmod(service.folder, 0o755)
            attacks(given, service, folder)
            check_rights(service, 0)
        as_another_user(given, folder)
        wrong = bed.said_by_child(lambda: None, lambda: check_container(given, folder))
        if wrong:
            fail(f"a service of root that may not trace: {wrong}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    bed.say("passed")


main()
