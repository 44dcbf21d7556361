"""A small Linux guest with Soft-RoCE: Debian's stock kernel, as it comes in its package, and an initial
RAM file system of busybox, rdma-core's libraries and our test peer. Nothing is installed; all that is
downloaded and made lies in one folder and is used again. Used by rxe_test.py.
"""

import glob
import gzip
import os
import pathlib
import re
import shutil
import stat
import subprocess

MODULES = ("virtio_pci", "virtio_net", "crc32_generic", "ib_uverbs", "rdma_rxe", "rdma_ucm")
PROGRAMS = ("rdma", "ibv_rc_pingpong", "rping", "ucmatose", "udaddy")  # besides the peer and busybox
PROVIDER = "librxe-rdmav*.so"


class Missing(Exception):
    """What this machine lacks; the test is skipped for it."""


def command(*words, cwd=None):
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300, cwd=cwd)
    if done.returncode != 0:
        raise Missing(f"{' '.join(words)}: exit {done.returncode}: {done.stderr.strip()[-300:]}")
    return done.stdout


def program(name):
    path = shutil.which(name, path="/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin")
    if path is None:
        raise Missing(f"no {name} (see tools/packages.txt)")
    return pathlib.Path(path)


# ---- the kernel ----

def kernel_package():
    """The concrete package behind linux-image-amd64."""
    if shutil.which("apt-cache") is None:
        raise Missing("no apt: the guest's kernel is Debian's package")
    found = re.search(r"Depends: (linux-image-[0-9][\w.+-]*)", command("apt-cache", "depends", "linux-image-amd64"))
    if found is None:
        raise Missing("apt knows no linux-image-amd64")
    return found.group(1)


def unpacked_kernel(cache):
    """The folder with boot/vmlinuz-* and lib/modules/*; downloads it the first time."""
    ready = sorted(cache.glob("kernel/boot/vmlinuz-*"))
    if not ready:
        package = kernel_package()
        # A part of a broken run must not pass for the whole.
        part = cache / "part"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        command("apt-get", "-o", "APT::Sandbox::User=root", "download", package, cwd=part)
        archive = next(part.glob("*.deb"))
        command("dpkg-deb", "-x", str(archive), str(part / "root"))
        shutil.rmtree(cache / "kernel", ignore_errors=True)
        (part / "root").rename(cache / "kernel")
        shutil.rmtree(part)
        ready = sorted(cache.glob("kernel/boot/vmlinuz-*"))
    if not ready:
        raise Missing("the kernel package holds no kernel")
    return cache / "kernel", ready[-1]


def modules_in_order(root, release):
    """Paths of MODULES and of what they need, what is needed first."""
    files = {}
    for path in (root / "lib/modules" / release).rglob("*.ko"):
        files[path.stem.replace("-", "_")] = path
    order = []

    def take(name):
        path = files.get(name)
        if path is None:
            raise Missing(f"the kernel has no module {name}")
        if path in order:
            return
        needs = re.search(rb"\0depends=([^\0]*)\0", path.read_bytes())
        for need in (needs.group(1).decode().split(",") if needs else []):
            if need:
                take(need.replace("-", "_"))
        order.append(path)

    for name in MODULES:
        take(name)
    return order


# ---- the file system ----

def libraries_of(path):
    """The shared libraries a program or library is linked with, the loader too."""
    done = subprocess.run(("ldd", str(path)), capture_output=True, text=True, check=False, timeout=60)
    return {pathlib.Path(found) for found in re.findall(r"(/\S+) \(0x", done.stdout)}


class Archive:
    """A cpio archive as the kernel unpacks it ("newc": Documentation/driver-api/early-userspace)."""

    def __init__(self):
        self.data = bytearray()
        self.names = set()

    def add(self, name, mode, content=b"", device=(0, 0)):
        if name in self.names:
            return
        parent = os.path.dirname(name)
        if parent:
            self.add(parent, stat.S_IFDIR | 0o755)
        self.names.add(name)
        path = name.encode() + b"\0"
        fields = (len(self.names), mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(path), 0)
        self.data += b"070701" + b"".join(b"%08x" % field for field in fields) + path
        self.data += b"\0" * (-len(self.data) % 4) + content
        self.data += b"\0" * (-len(self.data) % 4)

    def file(self, name, source, mode=0o755):
        self.add(name, stat.S_IFREG | mode, pathlib.Path(source).read_bytes())

    def link(self, name, target):
        self.add(name, stat.S_IFLNK | 0o777, target.encode())

    def finished(self):
        self.add("TRAILER!!!", 0)
        return bytes(self.data)


def file_system(peer, init, modules):
    archive = Archive()
    for folder in ("proc", "sys", "dev", "tmp", "run", "root"):
        archive.add(folder, stat.S_IFDIR | 0o755)
    archive.add("dev/console", stat.S_IFCHR | 0o600, device=(5, 1))
    # usr-merged, as Debian: the loader's and all libraries' names work both ways.
    for name in ("bin", "sbin", "lib", "lib64"):
        archive.add(f"usr/{name}", stat.S_IFDIR | 0o755)
        archive.link(name, f"usr/{name}")
    archive.file("usr/bin/busybox", program("busybox"))
    archive.link("usr/bin/sh", "busybox")  # the peer's `shell` command, and ping
    archive.file("init", init)
    for number, module in enumerate(modules):
        archive.file(f"modules/{number:02}_{module.name}", module, 0o644)
    binaries = [("usr/bin/peer", pathlib.Path(peer))]
    binaries += [(f"usr/bin/{name}", program(name)) for name in PROGRAMS]
    providers = [pathlib.Path(p) for p in glob.glob(f"/usr/lib/*/libibverbs/{PROVIDER}")]
    if not providers:
        raise Missing("no librxe (package ibverbs-providers, see tools/packages.txt)")
    binaries += [(str(path).lstrip("/"), path) for path in providers]
    archive.add("etc/libibverbs.d/rxe.driver", stat.S_IFREG | 0o644, b"driver rxe\n")
    libraries = set()
    for name, path in binaries:
        archive.file(name, path)
        libraries |= libraries_of(path)
    for path in sorted(libraries):
        where = str(path).lstrip("/")
        where = where if where.startswith("usr/") else "usr/" + where
        archive.file(where, path.resolve())
    return archive.finished()


def build(cache, peer, init):
    """Kernel image, initial RAM file system and the kernel's release. Raises Missing."""
    cache = pathlib.Path(cache)
    cache.mkdir(parents=True, exist_ok=True)
    root, image = unpacked_kernel(cache)
    release = image.name.removeprefix("vmlinuz-")
    target = cache / "initramfs.gz"
    target.write_bytes(gzip.compress(file_system(peer, init, modules_in_order(root, release)), 1))
    return image, target, release
