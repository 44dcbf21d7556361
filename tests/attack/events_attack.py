"""One user who may only read takes every place of /v1/events, and every connection: an operator and
another reader still get theirs. Needs root, to be two other users."""

import os
import socket

from host import Daemon, UnixConnection, arguments, check, say, skip

READER, OTHER = 65534, 65533


def listen(path):
    """A connection that asked for events, and the status of the answer; 0: none."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(path)  # without a limit: one makes it fail where the backlog is full
    connection.settimeout(10)
    connection.sendall(b"GET /v1/events HTTP/1.1\r\nHost: h\r\n\r\n")
    answer = connection.recv(4096)
    return connection, int(answer.split()[1]) if answer else 0


class As:
    """Connects as another user: the kernel takes the credentials at connect()."""

    def __init__(self, user):
        self.user = user

    def __enter__(self):
        os.seteuid(self.user)

    def __exit__(self, *_):
        os.seteuid(0)


def status_for_root(path):
    connection = UnixConnection(path)
    connection.request("GET", "/v1/status")
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


def main():
    paths = arguments()
    if os.geteuid() != 0:
        skip("needs root: it connects as two other users")
    with Daemon(paths, "[api]\nworld_readable = true\n") as daemon:
        os.chmod(os.path.dirname(daemon.api), 0o755)
        with As(READER):
            taken = [listen(daemon.api) for _ in range(64)]
        got = [status for _, status in taken]
        check(0 < got.count(200) <= 16, f"one reader has a quarter of the places: {got}")
        check(set(got) == {200, 429}, f"and is told so beyond: {got}")
        say(f"ok   one reader gets {got.count(200)} of 64 places of /v1/events")
        with As(OTHER):
            connection, status = listen(daemon.api)
        check(status == 200, f"another reader: {status}")
        root = [listen(daemon.api) for _ in range(16)]
        check([status for _, status in root] == [200] * 16, f"root: {root}")
        say("ok   another reader and root get theirs")
        for held, _ in [*taken, *root, (connection, 0)]:
            held.close()

        # Connections that have begun a request and do not finish it.
        held = []
        with As(READER):
            for _ in range(300):
                connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                connection.connect(daemon.api)
                held.append(connection)
                try:
                    connection.sendall(b"GET /v1/status HTTP/1.1\r\n")
                except OSError:  # refused already; the refusal is read below
                    pass
            refused = 0
            for connection in held[100:]:
                try:
                    connection.settimeout(0.01)
                    refused += connection.recv(4096).startswith(b"HTTP/1.1 503")
                except OSError:
                    pass
        check(refused > 0, "a reader with 300 connections is refused some")
        check(status_for_root(daemon.api) == 200, "root is answered")
        say(f"ok   a reader's connections: {refused} refused, and root is answered")
        for connection in held:
            connection.close()


main()
