#!/usr/bin/env python3
"""Commands of <rdma/rdma_user_cm.h>, written by hand to /dev/infiniband/rdma_cm. Runs under
`paceline exec` on configs/testbeds/pair.toml and sees both NICs: h0 is 10.0.0.1, h1 is 10.0.0.2.
"""

import ctypes
import errno
import os
import select
import socket
import stat
import struct
import sys
import tempfile

(CREATE, DESTROY, BIND_IP, RESOLVE_IP, ROUTE, QUERY_ROUTE, CONNECT, LISTEN, ACCEPT, REJECT, DISCONNECT,
 INIT_QP_ATTR, GET_EVENT, GET_OPTION, SET_OPTION, NOTIFY, JOIN_IP, LEAVE, MIGRATE, QUERY, BIND, RESOLVE,
 JOIN) = range(23)
TCP, UDP = 0x0106, 0x0111
(ADDR_RESOLVED, ADDR_ERROR, ROUTE_RESOLVED, _, CONNECT_REQUEST, CONNECT_RESPONSE, _, UNREACHABLE, REJECTED,
 ESTABLISHED, DISCONNECTED) = range(11)

failures = []


def expect(good, text):
    if not good:
        failures.append(text)
        print("FAILED ", text, flush=True)


class Channel:
    def __init__(self):
        self.file = os.open("/dev/infiniband/rdma_cm", os.O_RDWR | os.O_NONBLOCK)
        self.cookie = 0

    def command(self, number, body, out=0, file=None):
        """0 or the errno."""
        try:
            os.write(self.file if file is None else file, struct.pack("=IHH", number, len(body), out) + body)
            return 0
        except OSError as error:
            return error.errno

    def asked(self, number, before, after, size):
        """(errno, response) of a command that names its response between `before` and `after`."""
        room = ctypes.create_string_buffer(size)
        error = self.command(number, before + struct.pack("=Q", ctypes.addressof(room)) + after, size)
        return error, room.raw

    def create(self, space=TCP):
        self.cookie += 1
        error, response = self.asked(CREATE, struct.pack("=Q", self.cookie), struct.pack("=HBx4x", space, 2),
                                     4)
        expect(error == 0, f"create: {error}")
        return struct.unpack("=I", response)[0]

    def destroy(self, number):
        """(errno, events reported)"""
        error, response = self.asked(DESTROY, b"", struct.pack("=II", number, 0), 4)
        return error, struct.unpack("=I", response)[0]

    def bind(self, number, address, port, size=16):
        return self.command(BIND, struct.pack("=IHH", number, size, 0) + storage(address, port))

    def resolve(self, number, address, port):
        return self.command(RESOLVE, struct.pack("=IIHHI", number, 2000, 0, 16, 0) + bytes(128)
                            + storage(address, port))

    def option(self, number, name, value):
        room = ctypes.create_string_buffer(value, len(value))
        return self.command(SET_OPTION, struct.pack("=QIIII", ctypes.addressof(room), number, 0, name,
                                                    len(value)))

    def event(self):
        """(kind, cookie, id, status, private data) or an errno."""
        error, response = self.asked(GET_EVENT, b"", b"", 512)
        if error != 0:
            return error
        cookie, number, kind, status = struct.unpack_from("=QIIi", response)
        length = response[20 + 8 + 256]
        return kind, cookie, number, status, response[28:28 + length]

    def connect(self, number, data=b"", valid=1):
        return self.command(CONNECT, conn_param(data, valid) + struct.pack("=IIQ", number, 0, 0))

    def reject(self, number, data):
        return self.command(REJECT, struct.pack("=IBBH", number, len(data), 0, 0) + data.ljust(256, b"\0"))

    def ready(self):
        return bool(select.select([self.file], [], [], 0)[0])

    def routed(self, port):
        """An id whose route to that port of h1 is resolved."""
        number = self.create()
        expect(self.resolve(number, "10.0.0.2", port) == 0, "resolve the address")
        expect(self.event()[0] == ADDR_RESOLVED, "its event")
        expect(self.command(ROUTE, struct.pack("=II", number, 2000)) == 0, "resolve the route")
        expect(self.event()[0] == ROUTE_RESOLVED, "its event")
        return number


def storage(address, port):
    return struct.pack("=HH4s120x", socket.AF_INET, socket.htons(port), socket.inet_aton(address))


def conn_param(data, valid):
    return struct.pack("=II256s8B", 17, 0, data, len(data) & 0xFF, 0, 1, 1, 0, 7, 7, valid)


def bad_bytes():
    c = Channel()
    kind = os.fstat(c.file).st_mode
    expect(stat.S_ISCHR(kind), f"fstat() sees a character device: {kind:o}")
    expect(os.path.exists("/dev/infiniband/rdma_cm"), "the node exists")

    def written(what):
        try:
            return os.write(c.file, what)
        except OSError as error:
            return error.errno
    expect(written(b"\0\0\0\0") == errno.EINVAL, "half a header")
    expect(written(struct.pack("=IHH", LISTEN, 8, 0)) == errno.EINVAL, "a body that is not there")
    expect(written(struct.pack("=IHH", LISTEN, 4, 0) + bytes(4)) == errno.EINVAL, "half a body")
    expect(c.command(99, b"") == errno.EINVAL, "no such command")
    expect(c.command(GET_OPTION, bytes(24)) == errno.ENOSYS, "GET_OPTION")
    expect(c.command(JOIN, bytes(152)) == errno.EOPNOTSUPP, "JOIN_MCAST")
    expect(c.command(LEAVE, bytes(16)) == errno.EOPNOTSUPP, "LEAVE_MCAST")
    expect(c.command(CREATE, bytes(24), 4) == errno.EFAULT, "a response to nowhere")
    expect(c.asked(CREATE, bytes(8), struct.pack("=HBx4x", TCP, 2), 2)[0] == errno.ENOSPC, "no room")
    expect(c.asked(CREATE, bytes(8), struct.pack("=HBx4x", 0x777, 2), 4)[0] == errno.EINVAL, "port space")
    os.close(c.file)


def wrong_ids_and_states():
    c, other = Channel(), Channel()
    number = c.create()
    expect(c.destroy(number + 1000)[0] == errno.ENOENT, "an id that is not there")
    expect(other.destroy(number)[0] == errno.EINVAL, "an id of another channel")
    expect(c.command(LISTEN, struct.pack("=Ii", number, 1)) == errno.EINVAL, "listen without an address")
    expect(c.command(ROUTE, struct.pack("=II", number, 1)) == errno.EINVAL, "a route without an address")
    expect(c.connect(number) == errno.EINVAL, "connect without a route")
    expect(c.connect(number, valid=0) == errno.EINVAL, "connect without parameters")
    expect(c.command(DISCONNECT, struct.pack("=I", number)) == errno.EINVAL, "disconnect what is not")
    expect(c.asked(INIT_QP_ATTR, b"", struct.pack("=II", number, 99), 144)[0] == errno.EINVAL, "a QP state")
    expect(c.asked(QUERY, b"", struct.pack("=II", number, 9), 300)[0] == errno.ENOSYS, "a query")
    expect(c.bind(number, "10.0.0.1", 7000, size=15) == errno.EINVAL, "a size of another family")
    expect(c.bind(number, "10.9.9.9", 7000) == errno.EADDRNOTAVAIL, "an address of nobody")
    loopback = c.create()
    expect(c.bind(loopback, "127.0.0.1", 7090) == 0, "the loopback is any NIC, as on Linux")
    expect(c.resolve(loopback, "127.0.0.1", 7091) == 0 and c.ready(), "and leads to the first of them")
    expect(c.event()[0] == ADDR_RESOLVED, "which is told")
    expect(c.bind(number, "10.0.0.1", 7000) == 0, "bind")
    expect(c.bind(number, "10.0.0.1", 7001) == errno.EINVAL, "bind twice")
    second = c.create()
    expect(c.bind(second, "10.0.0.1", 7000) == errno.EADDRINUSE, "a port that is taken")
    expect(c.bind(second, "0.0.0.0", 7000) == errno.EADDRNOTAVAIL, "for any address, too")
    expect(c.bind(second, "10.0.0.2", 7000) == 0, "the same port of another host")
    expect(c.option(number, 1, bytes(3)) == errno.EINVAL, "an option of another size")
    expect(c.option(number, 77, bytes(4)) == errno.ENOSYS, "no such option")
    shared = [c.create(), c.create()]
    for one in shared:
        expect(c.option(one, 1, struct.pack("=i", 1)) == 0, "REUSEADDR")
        expect(c.bind(one, "10.0.0.1", 7100) == 0, "a port together")
    expect(c.command(LISTEN, struct.pack("=Ii", shared[0], 1)) == errno.EADDRINUSE, "but not to listen")
    os.close(c.file)
    os.close(other.file)


def events_and_descriptors():
    c = Channel()
    expect(c.event() == errno.EAGAIN, "no event, and no wait")
    number = c.create()
    expect(c.resolve(number, "10.9.9.9", 1) == 0, "an address of nobody is found out later")
    expect(c.ready(), "an event makes it readable")
    told = c.event()
    expect(told[0] == ADDR_ERROR and told[3] == -errno.EHOSTUNREACH, f"address error: {told}")
    expect(not c.ready(), "and then it is not")
    expect(c.destroy(number) == (0, 1), "one event was seen")
    number = c.create()
    expect(c.resolve(number, "10.0.0.2", 1) == 0 and c.ready(), "resolve")
    expect(c.destroy(number) == (0, 0), "no event was seen")
    expect(not c.ready(), "an event goes with its id")
    copy = os.dup(c.file)
    expect(c.command(LISTEN, struct.pack("=Ii", 1 << 30, 1), file=copy) == errno.ENOENT, "a duplicate")
    child = os.fork()
    if child == 0:
        os._exit(c.command(LISTEN, struct.pack("=Ii", 1 << 30, 1)))
    expect(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == errno.EACCES, "not for a child")
    os.close(copy)
    number = c.file
    os.close(c.file)
    with tempfile.TemporaryFile() as file:
        if file.fileno() == number:
            command = struct.pack("=IHH", LISTEN, 8, 0) + bytes(8)
            expect(os.write(file.fileno(), command) == 16 and os.fstat(file.fileno()).st_size == 16,
                   "the number is a file's now")


def reject_with_words():
    c = Channel()
    listener = c.create()
    expect(c.bind(listener, "10.0.0.2", 7200) == 0, "bind")
    expect(c.command(LISTEN, struct.pack("=Ii", listener, 1)) == 0, "listen")
    caller = c.routed(7200)
    expect(c.connect(caller, b"x" * 57) == errno.EINVAL, "56 bytes of private data")
    expect(c.connect(caller, b"who is it?") == 0, "connect")
    kind, cookie, new, _, data = c.event()
    expect((kind, cookie, len(data), data[:10]) == (CONNECT_REQUEST, 1, 56, b"who is it?"),
           f"request: {kind} {cookie} {data}")
    expect(c.reject(new, b"nobody") == 0, "reject")
    kind, _, number, status, data = c.event()
    expect((kind, number, status, len(data), data[:6]) == (REJECTED, caller, 28, 148, b"nobody"),
           f"rejection: {kind} {status} {data}")
    expect(c.reject(new, b"") == errno.EINVAL, "reject twice")
    # One request may wait; the next is turned away, and a listener that goes takes with it what waits.
    calls = [c.routed(7200), c.routed(7200)]
    expect([c.connect(one) for one in calls] == [0, 0], "connect")
    told = [c.event() for _ in range(2)]
    expect([(e[0], e[2]) for e in told if e[0] == REJECTED] == [(REJECTED, calls[1])], f"backlog: {told}")
    third = c.routed(7200)
    expect(c.connect(third) == 0, "connect")
    expect(c.destroy(listener)[0] == 0, "the listener goes")
    kind, _, number, status, _ = c.event()
    expect((kind, number, status) == (REJECTED, third, 28), f"and who waits is told: {kind} {number}")
    fourth = c.routed(7200)
    expect(c.connect(fourth) == 0, "connect")
    kind, _, number, status, _ = c.event()
    expect((kind, number, status) == (REJECTED, fourth, 8), f"nobody listens: {kind} {status}")
    os.close(c.file)


def accept_and_leave():
    c = Channel()
    listener = c.create()
    expect(c.bind(listener, "0.0.0.0", 7300) == 0, "bind")
    expect(c.command(LISTEN, struct.pack("=Ii", listener, 0)) == 0, "listen")
    caller = c.routed(7300)
    expect(c.connect(caller) == 0, "connect")
    new = c.event()[2]
    accept = struct.pack("=Q", 4711) + conn_param(b"welcome", 1) + struct.pack("=IIQ", new, 0, 0)
    expect(c.command(ACCEPT, accept) == 0, "accept")
    kind, _, number, _, data = c.event()
    expect((kind, number, len(data), data[:7]) == (CONNECT_RESPONSE, caller, 196, b"welcome"), f"response: {kind}")
    for state, mask in ((1, 0x39), (2, 0x129181), (3, 0x12E01)):  # enum ibv_qp_attr_mask
        error, record = c.asked(INIT_QP_ATTR, b"", struct.pack("=II", caller, state), 144)
        found = struct.unpack_from("=I", record)[0]
        expect((error, found) == (0, mask), f"QP attributes of state {state}: {error} {found:x}")
    confirm = bytes(8) + conn_param(b"", 0) + struct.pack("=IIQ", caller, 0, 0)
    expect(c.command(ACCEPT, confirm) == 0, "confirm")
    kind, cookie, _, _, _ = c.event()
    expect((kind, cookie) == (ESTABLISHED, 4711), f"established: {kind} {cookie}")
    expect(c.destroy(caller)[0] == 0, "the caller goes")
    kind, cookie, _, _, _ = c.event()
    expect((kind, cookie) == (DISCONNECTED, 4711), f"disconnected: {kind} {cookie}")
    other = Channel()
    error, record = other.asked(MIGRATE, b"", struct.pack("=II", new, c.file), 4)
    expect((error, struct.unpack("=I", record)[0]) == (0, 2), f"migrate: {error}")
    expect(c.destroy(new)[0] == errno.EINVAL and other.destroy(new)[0] == 0, "it is the other's now")
    os.close(c.file)
    os.close(other.file)


def main():
    for part in (bad_bytes, wrong_ids_and_states, events_and_descriptors, reject_with_words, accept_and_leave):
        part()
    print(f"{len(failures)} failed" if failures else "all good")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
