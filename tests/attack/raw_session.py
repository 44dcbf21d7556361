"""Speaks the attach protocol by hand (dataplane/attach/protocol.h), for attacks on the service."""

import array
import os
import socket
import struct

from host import arguments, check  # noqa: F401  (attacks use them)

MAGIC, MAJOR = 0x4C434150, 1
HELLO, OPEN_NIC, STATUS, CREATE_PD, SHARE_MEMORY, REGISTER, DEREGISTER = 1, 3, 5, 10, 12, 13, 15
BY_COPY, SHARED = 0, 1  # ExtentKind


class Session:
    """One connection. Requests that are not answered within `patience` seconds: TimeoutError."""

    def __init__(self, path, patience=5.0):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(patience)
        self.socket.connect(path)
        self.sequence = 0
        self.received = []

    def send(self, operation, body=b"", descriptors=()):
        self.sequence += 1
        header = struct.pack("=IHHIi", MAGIC, operation, MAJOR, self.sequence, 0)
        control = []
        if descriptors:
            control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
        self.socket.sendmsg([header + body], control)

    def receive(self):
        """(error, body); descriptors of the reply stay open as long as this does."""
        data, control, _, _ = self.socket.recvmsg(1 << 16, socket.CMSG_SPACE(64))
        if not data:
            raise ConnectionError("the service has ended the connection")
        for level, kind, fds in control:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                self.received += list(array.array("i", fds[:len(fds) - len(fds) % 4]))
        return struct.unpack("=IHHIi", data[:16])[4], data[16:]

    def ask(self, operation, body=b"", descriptors=()):
        self.send(operation, body, descriptors)
        return self.receive()

    def hello(self):
        error, _ = self.ask(HELLO, struct.pack("=HHI32s", 1, 0, os.getpid(), b"attack"))
        check(error == 0, f"hello: {os.strerror(error)}")
        return self

    def open(self, nic="h0"):
        self.hello()
        error, _ = self.ask(OPEN_NIC, struct.pack("=32s", nic.encode()))
        check(error == 0, f"open_nic: {os.strerror(error)}")
        return self

    def close(self):
        self.socket.close()
        for fd in self.received:
            os.close(fd)
        self.received = []
