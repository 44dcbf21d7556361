"""A TCP socket with SO_LINGER and a full send buffer is passed as a descriptor, so that the last
close of it waits for a minute: on whichever thread of the service or of pacelined closes it. Passed
to every Unix socket that takes connections, in requests where a descriptor is due, in others, and
left unread; after each attack somebody else must be served, and SIGTERM must end the process."""

import array
import errno
import os
import signal
import socket
import struct
import subprocess
import time

import raw_session as raw

from testbed import PATIENCE, Testbed, die_with_parent, end, say

ENDS_WITHIN = 20 * PATIENCE
TARGET = [0]  # the process that is attacked
HELD = []  # the other ends, whose owner never reads: they outlive the attack


def lingering():
    """A descriptor whose last close waits for its peer for 60 s."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(1)
    sender = socket.create_connection(listener.getsockname())
    HELD.append(listener.accept()[0])
    listener.close()
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 60))
    sender.setblocking(False)
    try:
        while True:
            sender.send(b"x" * 65536)
    except BlockingIOError:
        pass
    return sender.detach()


def nested():
    """A socket in which a lingering one lies unread: closing it closes that one, too."""
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    fd = lingering()
    a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])
    os.close(fd)
    a.close()
    return b.detach()


def send(sender, *data, count=1, make=lingering):
    """Through `sender`, which afterwards alone has the descriptors. False: the kernel refuses."""
    fds = [make() for _ in range(count)]
    # Stopped meanwhile: who closes last waits, and that shall not be this test.
    os.kill(TARGET[0], signal.SIGSTOP)
    try:
        sender(*data, fds)
        for fd in fds:
            os.close(fd)
        return True
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EPIPE, errno.ECONNRESET):
            raise
        HELD.extend(fds)
        return False
    finally:
        os.kill(TARGET[0], signal.SIGCONT)


def answered(session):
    """Whatever is answered to this session itself."""
    try:
        session.receive()
    except (OSError, ConnectionError):
        pass


# --- on the service's socket of programs ---

def at_once(path):
    session = raw.Session(path, 0.5)
    sent = send(session.send, raw.HELLO, b"\0" * 40)
    return session, sent


def in_another_request(path):
    session = raw.Session(path, 0.5).open()
    sent = send(session.send, raw.CREATE_PD, b"")
    answered(session)
    return session, sent


def as_memory(path):
    session = raw.Session(path, 0.5).open()
    sent = send(session.send, raw.SHARE_MEMORY, b"\0" * 8)
    answered(session)
    return session, sent


def socket_with_another(path):
    session = raw.Session(path, 0.5).open()
    sent = send(session.send, raw.SHARE_MEMORY, b"\0" * 8, make=nested)
    answered(session)
    return session, sent


def too_many(path):
    session = raw.Session(path, 0.5).open()
    sent = send(session.send, raw.SHARE_MEMORY, b"\0" * 8, count=9)
    answered(session)
    return session, sent


def left_unread(path):
    session = raw.Session(path, 0.5).open()

    def behind_nonsense(operation, body, fds):
        session.socket.send(b"no message of this protocol")  # ends the connection
        session.send(operation, body, fds)

    sent = send(behind_nonsense, raw.SHARE_MEMORY, b"\0" * 8)
    answered(session)
    return session, sent


def left_unread_by_who_goes(path):
    session = raw.Session(path, 0.5).open()
    sent = send(session.send, raw.SHARE_MEMORY, b"\0" * 8, count=2)
    session.close()
    return session, sent


PROGRAM_ATTACKS = [at_once, in_another_request, as_memory, socket_with_another, too_many,
                   left_unread, left_unread_by_who_goes]


def raw_send(connection):
    return lambda data, fds: connection.sendmsg(
        [data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])


def on_control(path):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.settimeout(0.5)
    connection.connect(path)
    return connection, send(raw_send(connection), b'{"schema":1,"id":1,"op":"hello"}')


def control_answers(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.settimeout(5 * PATIENCE)
        connection.connect(path)
        connection.send(b'{"schema":1,"id":1,"op":"hello"}')
        return b'"ok":true' in connection.recv(65536)


def program_answers(path):
    raw.Session(path, 5 * PATIENCE).open("h1").close()
    return True


def attempt(name, attack, answers):
    held, sent = attack()
    try:
        good = answers()
    except (TimeoutError, ConnectionError) as error:
        raise AssertionError(f"{name}: nobody else is served: {error}") from None
    raw.check(good, f"{name}: the answer to somebody else is wrong")
    say(f"ok   {name}{'' if sent else ' (the kernel refuses to pass it)'}")
    return held


def ends(process, what):
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(ENDS_WITHIN)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"{what}: SIGTERM is not heeded") from None


def attack_service(options):
    with Testbed(options.paceline, options.dataplane) as bed:
        held = []
        TARGET[0] = bed.process.pid
        for attack in PROGRAM_ATTACKS:
            held.append(attempt(f"service, {attack.__name__}", lambda: attack(bed.socket),
                                lambda: program_answers(bed.socket)))
        control = bed.socket + ".control"
        held.append(attempt("service, control socket", lambda: on_control(control),
                            lambda: control_answers(control)))
        ends(bed.process, "service")


# --- on pacelined's HTTP API ---

REQUEST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


def http(path, patience):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(patience)
    connection.connect(path)
    return connection


def with_request(path):
    connection = http(path, 0.5)
    return connection, send(raw_send(connection), REQUEST)


def in_the_middle(path):
    connection = http(path, 0.5)
    connection.send(REQUEST[:10])
    return connection, send(raw_send(connection), REQUEST[10:])


def behind_the_last_request(path):
    connection = http(path, 0.5)
    connection.send(b"NONSENSE\r\n\r\n")
    sent = send(raw_send(connection), b"more")
    connection.close()
    return connection, sent


def http_answers(path):
    with http(path, 5 * PATIENCE) as connection:
        connection.send(REQUEST)
        return connection.recv(65536).startswith(b"HTTP/1.1 200")


def attack_daemon(options):
    with Testbed(options.paceline, options.dataplane) as bed:
        config = os.path.join(bed.folder, "pacelined.toml")
        path = os.path.join(bed.folder, "pacelined.sock")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f'schema = 1\n[daemon]\nstate = "state"\n[dataplane]\nsocket = "{bed.socket}"\n'
                       f'[api]\nsocket = "{path}"\nworld_readable = true\n')
        with open(os.path.join(bed.folder, "pacelined.log"), "wb") as log:
            process = subprocess.Popen([options.pacelined, "--config", config],
                                       stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                       env=bed.environment, start_new_session=True,
                                       preexec_fn=die_with_parent)
        TARGET[0] = process.pid
        try:
            limit = time.monotonic() + 20 * PATIENCE
            while True:
                try:
                    if http_answers(path):
                        break
                except OSError:
                    pass
                raw.check(process.poll() is None and time.monotonic() < limit,
                          "pacelined does not answer")
                time.sleep(0.05)
            held = [attempt(f"pacelined, {attack.__name__}", lambda: attack(path),
                            lambda: http_answers(path))
                    for attack in (with_request, in_the_middle, behind_the_last_request)]
            ends(process, "pacelined")
            del held
        finally:
            end(process)


def main():
    options = raw.arguments()
    failed = False
    for attack in (attack_service, attack_daemon):
        try:
            attack(options)
        except AssertionError as error:
            say(f"FAILED {error}")
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
