"""A program registers memory that it does not have, and takes away what it had: the service may not
allocate any in its place. What the program's file has is counted, for nobody but the service
touches it."""

import ctypes
import errno
import fcntl
import os
import struct

import raw_session as raw
from running import Running, resident

from testbed import PATIENCE, Testbed, say

MIB = 1 << 20
SPARSE = 512 * MIB
SLACK = 8 * MIB  # pages under way when a session is found out, tables and the like
F_ADD_SEALS, F_SEAL_SHRINK, F_SEAL_SEAL = 1033, 2, 1


def sealed(size, written):
    fd = os.memfd_create("attack", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.truncate(fd, size)
    for at in range(0, written, MIB):
        os.pwrite(fd, b"x" * MIB, at)
    fcntl.fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL)
    return fd


def has(fd):
    return os.fstat(fd).st_blocks * 512


def registration(length, pd, offset=0):
    address = 0x7F00_0000_0000
    return (struct.pack("=QQQIIIIII", address, length, address, 1, pd, 1, 0, 0, 0) +
            struct.pack("=QQII", length, offset, raw.SHARED, 0))


def share(bed, fd):
    session = raw.Session(bed.socket, 20 * PATIENCE).open("h0")
    error, _ = session.ask(raw.SHARE_MEMORY, b"\0" * 8, [fd])
    raw.check(error == 0, f"share_memory: {os.strerror(error)}")
    error, body = session.ask(raw.CREATE_PD)
    raw.check(error == 0, "create_pd")
    return session, struct.unpack("=I", body[:4])[0]


def sparse(bed):
    fd = sealed(SPARSE, 0)
    session, pd = share(bed, fd)
    before = resident(bed.process.pid)
    error, body = session.ask(raw.REGISTER, registration(SPARSE, pd))
    raw.check(has(fd) <= SLACK, f"the service has made {has(fd) >> 20} MiB of pages")
    raw.check(resident(bed.process.pid) - before <= 2 * SLACK, "the service has grown")
    raw.check(error == errno.EFAULT and b"no pages" in body,
              f"refused with {os.strerror(error)}: {body[:80]}")
    session.close()
    os.close(fd)
    say(f"ok   {SPARSE >> 20} MiB that were never written: refused")


def partly(bed):
    """Whole what is written, refused one page behind it."""
    fd = sealed(64 * MIB, 32 * MIB)
    session, pd = share(bed, fd)
    error, _ = session.ask(raw.REGISTER, registration(32 * MIB, pd))
    raw.check(error == 0, f"what is there is registered: {os.strerror(error)}")
    error, _ = session.ask(raw.REGISTER, registration(32 * MIB + 4096, pd))
    raw.check(error == errno.EFAULT, "a page that is not there is refused")
    raw.check(has(fd) == 32 * MIB, "nothing was made")
    session.close()
    os.close(fd)
    say("ok   what the file has is registered, a page more is not")


def taken_while_registered(bed):
    """Pages are taken out while a registration goes through them."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd = sealed(128 * MIB, 128 * MIB)
    session, pd = share(bed, fd)
    session.send(raw.REGISTER, registration(128 * MIB, pd))
    for at in range(0, 128, 2):  # punch a hole, keep the size
        raw.check(libc.fallocate(fd, 3, ctypes.c_long(at * MIB), ctypes.c_long(2 * MIB)) == 0,
                  "fallocate")
    session.receive()
    raw.check(has(fd) == 0, f"the service has made {has(fd) >> 20} MiB of pages")
    session.close()
    os.close(fd)
    say("ok   pages that go during a registration are not made again")


def punched(bed, options):
    command = bed.on(None, [f"{options.programs}/attack_memory", "punch", "64"])
    with Running(command, bed.environment) as program:
        if program.wait_for("done") is None:
            say(f"     {program.lines[-1]}")
            return
        file = int(program.wait_for("file").split()[1])
        raw.check(file <= SLACK, f"the service has made {file >> 20} MiB of pages")
        raw.check("took pages out" in bed.log_text(), f"the log says so: {bed.log_text()}")
    say("ok   pages that go after a registration are not made again, and the session is ended")


def main():
    options = raw.arguments()
    with Testbed(options.paceline, options.dataplane) as bed:
        failed = False
        for attack in (sparse, partly, taken_while_registered, lambda b: punched(b, options)):
            try:
                attack(bed)
            except AssertionError as error:
                say(f"FAILED {error}")
                failed = True
            raw.Session(bed.socket, 5 * PATIENCE).open("h1").close()
        raw.check(bed.alive(), "the service has ended")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
