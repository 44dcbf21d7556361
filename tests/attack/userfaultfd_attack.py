"""A userfaultfd that serves faults of the kernel lets a program stop the kernel inside a system call.
A tenant gets none from the service. With service.userfaultfd it gets the device that makes them."""

import fcntl
import os

import raw_session as raw
from allocation_attack import sealed

from testbed import PATIENCE, Testbed, said_by_child, say, skip

DEVICE = "/dev/userfaultfd"
USERFAULTFD_IOC_NEW = 0xAA00
USER = 54321  # of nobody


def become_tenant():
    """An unprivileged user where root runs this."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(USER, USER, USER)
        os.setresuid(USER, USER, USER)


def ask_for_one(bed):
    """Shares memory, as the library does; says what came with the answer."""
    session = raw.Session(bed.socket, 20 * PATIENCE).open("h0")
    had = len(session.received)
    error, _ = session.ask(raw.SHARE_MEMORY, b"\0" * 8, [sealed(1 << 20, 0)])
    raw.check(error == 0, f"share_memory: {os.strerror(error)}")
    came = session.received[had:]
    names = [os.readlink(f"/proc/self/fd/{fd}") for fd in session.received]
    raw.check(bool(came) == (DEVICE in names), f"descriptors of the tenant: {names}")
    if not came:
        return "none"
    made = fcntl.ioctl(came[0], USERFAULTFD_IOC_NEW, os.O_CLOEXEC)
    return os.readlink(f"/proc/self/fd/{made}")


def given(options, sets):
    with Testbed(options.paceline, options.dataplane, sets=("service.open=true", *sets)) as bed:
        os.chmod(bed.folder, 0o755)
        return said_by_child(become_tenant, lambda: ask_for_one(bed))


def main():
    options = raw.arguments()
    said = given(options, ())
    raw.check(said == "none", f"by default a tenant got a userfaultfd: {said}")
    say("ok   none by default")
    if not os.access(DEVICE, os.R_OK | os.W_OK):
        skip(f"{DEVICE} cannot be opened, so service.userfaultfd is not tried")
    said = given(options, ("service.userfaultfd=true",))
    raw.check(said == "anon_inode:[userfaultfd]", f"service.userfaultfd gave: {said}")
    say("ok   service.userfaultfd gives the device that makes one")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
