#!/usr/bin/env python3
"""`paceline exec`: what it sets, what it refuses and with which words and status.

  exec_test.py PACELINE PACELINE-DATAPLANE
"""

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from testbed import Testbed, say  # noqa: E402

failures = []


def expect(good, text):
    say(f"{'ok     ' if good else 'FAILED '} {text}")
    if not good:
        failures.append(text)


def write(folder, name, text, mode=0o755):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)
    return path


def static(program):
    text = subprocess.run(["readelf", "--wide", "--segments", program], capture_output=True,
                          text=True).stdout
    return "LOAD" in text and "INTERP" not in text


def other_user(testbed, paceline):
    """Somebody whom the service does not let in is told whose it is and who may, in place of "start one"."""
    if os.geteuid() != 0:
        say("skipped: another user's socket (needs root)")
        return
    with tempfile.TemporaryDirectory() as folder:  # a build folder may be out of the user's reach
        os.chmod(folder, 0o755)
        here = os.path.dirname(os.path.abspath(paceline))
        places = {"bin/paceline": paceline}
        for name in ("libpaceline-verbs.so", "libpaceline-files.so"):
            places[f"lib/{name}"] = os.path.join(here, "..", "lib", name)
        for name, source in places.items():
            os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
            shutil.copy(source, os.path.join(folder, name))
        own = os.path.join(folder, "run")
        os.mkdir(own, 0o777)
        os.chown(own, 65534, 65534)

        def ask(*command, **more):
            done = subprocess.run(command, capture_output=True, text=True, timeout=30, user=65534,
                                  group=65534, extra_groups=[],
                                  env=dict(testbed.environment, XDG_RUNTIME_DIR=own, **more))
            return done.returncode, done.stdout + done.stderr

        program = os.path.join(folder, "bin/paceline")
        words = ["is not yours", "belongs to user root (0)", "service.users = [65534]", "service.open"]
        os.chmod(testbed.folder, 0o700)
        for step in ("folder", "socket"):  # which of the two keeps him out
            for command in (("exec", "--", "true"), ("testbed", "status", "--socket", testbed.socket)):
                status, text = ask(program, *command)
                expect(status in (1, 2) and all(w in text for w in words) and "Start one" not in text,
                       f"another user, {step}, {command[0]}: {text.strip()}")
            os.chmod(testbed.folder, 0o755)
        # The socket lets all in, and the service does not: so it is with service.users.
        os.chmod(testbed.socket, 0o666)
        for command in (("exec", "--", "true"), ("testbed", "status", "--socket", testbed.socket)):
            status, text = ask(program, *command)
            expect(status in (1, 2) and all(w in text for w in words), f"turned away: {text.strip()}")
        status, text = ask("ibv_devices", LD_PRELOAD=os.path.join(folder, "lib/libpaceline-verbs.so"))
        expect("belongs to another user" in text or not shutil.which("ibv_devices"),
               f"turned away, the library: {text.strip()}")
        os.chmod(testbed.socket, 0o600)


def manager(run):
    """librdmacm finds its device; a program that outlives the service is told why there is none."""
    program = ("import ctypes; library = ctypes.CDLL('librdmacm.so.1', use_errno=True);"
               " create = library.rdma_create_event_channel; create.restype = ctypes.c_void_p;"
               " print(create() is None, create() is None)")
    try:
        ctypes.CDLL("librdmacm.so.1")
    except OSError:
        say("skipped: rdma_cm (librdmacm1 is not installed)")
        return
    status, text, told = run("--", sys.executable, "-c", program)
    expect((status, text, told) == (0, "False False\n", ""), f"rdma_cm: {text.strip()}, {told.strip()}")
    opened = "import os; os.open('/dev/infiniband/rdma_cm', os.O_RDWR)"
    _, _, told = run("--", "env", "PACELINE_SOCKET=/nowhere", sys.executable, "-c", opened)
    expect("paceline: rdma_cm" in told and "No such file" in told, f"no service: {told.strip()}")


def main():
    paceline, dataplane = sys.argv[1:3]
    with Testbed(paceline, dataplane) as testbed:
        def run(*arguments, **changes):
            environment = dict(testbed.environment, **changes)
            done = subprocess.run([paceline, "exec", *arguments], capture_output=True, text=True,
                                  timeout=30, env=environment, stdin=subprocess.DEVNULL)
            return done.returncode, done.stdout, done.stderr

        def refused(status, words, *arguments, **changes):
            got, _, text = run(*arguments, **changes)
            expect(got == status and all(w in text for w in words),
                   f"{' '.join(arguments)}: {got} {text.strip()}")

        folder = testbed.folder
        refused(2, ["no service answers at /nowhere/s", "paceline testbed up"],
                "--socket", "/nowhere/s", "--", "true")
        # Who follows the advice starts the testbed that was asked for.
        advised = "paceline testbed up configs/testbeds/pair.toml"
        refused(2, [f"{advised} --socket /nowhere/s"], "--socket", "/nowhere/s", "--", "true")
        refused(2, [f"{advised} --name other"], "--name", "other", "--", "true")
        refused(2, [f"{advised} --socket /nowhere/s"], "--", "true", PACELINE_SOCKET="/nowhere/s")
        bare = dict(testbed.environment)
        del bare["PACELINE_SOCKET"]
        done = subprocess.run([paceline, "exec", "--", "true"], capture_output=True, text=True,
                              timeout=30, env=bare)
        expect(done.returncode == 2 and done.stderr.endswith(f"{advised}\n"),
               f"advice for the usual testbed: {done.stderr.strip()}")
        other_user(testbed, paceline)
        refused(2, ["--nic h7", "h0, h1"], "--nic", "h7", "--", "true")
        refused(127, ["not found in PATH"], "--", "no-such-program")
        refused(127, ["no such file"], "--", "./no-such-program")
        refused(126, ["not executable"], "--", write(folder, "plain", "text", 0o644))
        refused(126, ["is a folder"], "--", folder)
        pipe = os.path.join(folder, "pipe")
        os.mkfifo(pipe, 0o755)
        refused(126, ["not executable"], "--", pipe)
        # As the kernel does, no more is read of the first line than it may have.
        refused(2, ["does not exist"], "--", write(folder, "endless", "#!/no/interpreter " + "7" * 100_000_000))
        refused(2, ["no program to run"])
        busybox = shutil.which("busybox")
        if busybox and static(busybox):
            refused(2, ["statically linked"], "--", busybox, "true")
            refused(2, ["statically linked"], "--",
                    write(folder, "script-static", f"#!{busybox} sh\n"))
        refused(2, ["does not exist"], "--", write(folder, "script-lost", "#!/no/interpreter\n"))
        if os.geteuid() == 0:
            bit = os.path.join(folder, "other-user")
            shutil.copy(shutil.which("env"), bit)
            os.chown(bit, 65534, 65534)
            os.chmod(bit, 0o4755)
            refused(2, ["set-user-id"], "--", bit)
        if shutil.which("musl-gcc"):
            source = write(folder, "m.c", "int main(void) { return 0; }\n")
            musl = os.path.join(folder, "musl-program")
            subprocess.run(["musl-gcc", "-o", musl, source], check=True)
            refused(2, ["musl"], "--", musl)

        _, text, _ = run("--nic", "h1", "--print-env", LD_PRELOAD="/lib/other.so")
        lines = dict(line.split("=", 1) for line in text.splitlines())
        expect(lines.get("PACELINE_NIC") == "h1" and lines.get("PACELINE_SOCKET") == testbed.socket,
               f"--print-env: NIC and socket: {text.strip()}")
        preload = lines.get("LD_PRELOAD", "").split(":")
        expect([os.path.basename(p) for p in preload]
               == ["libpaceline-verbs.so", "libpaceline-files.so", "other.so"]
               and all(os.path.isabs(p) for p in preload), f"LD_PRELOAD keeps what was there: {preload}")
        _, text, _ = run("--drop-in", "--no-files", "--print-env", LD_LIBRARY_PATH="/other")
        lines = dict(line.split("=", 1) for line in text.splitlines())
        path = lines.get("LD_LIBRARY_PATH", ":").split(":")
        expect(os.path.exists(os.path.join(path[0], "libibverbs.so.1")) and path[1] == "/other"
               and "LD_PRELOAD" not in lines and "PACELINE_FILES" not in lines, f"--drop-in: {lines}")
        _, text, _ = run("--copy", "--print-env")
        expect("PACELINE_MEMORY=copy\n" in text, "--copy")
        status, _, _ = run("--", "sh", "-c", "exit 41")
        expect(status == 41, "the exit status is the program's")
        status, text, _ = run("--", write(folder, "no-hash-bang", "echo run by a shell $1\n"), "indeed")
        expect(text == "run by a shell indeed\n", f"a script without #!: {text}")
        manager(run)
        # The device files, by many ways to look at them.
        look = ("test -c /dev/infiniband/uverbs0 -a -r /dev/infiniband/uverbs1 && ls /sys/class/infiniband"
                " && cat /sys/class/infiniband/h1/ports/1/gid_attrs/types/0 && stat -c %F"
                " /dev/infiniband/uverbs0 && cat /sys/class/infiniband_verbs/uverbs1/ibdev && cat /etc/hosts"
                " > /dev/null && find /sys/class/infiniband/h0 -name state -exec cat {} ';'")
        status, text, told = run("--", "sh", "-c", look)
        expect((status, text) == (0, "h0\nh1\nRoCE v2\ncharacter special file\nh1\n4: ACTIVE\n"),
               f"device files: {text.split()} {told}")
        python = ("import os, glob; print(sorted(os.listdir('/sys/class/infiniband')),"
                  " os.path.realpath('/dev/infiniband/uverbs0'),"
                  " [e.name for e in os.scandir('/sys/class/infiniband/h0/ports')],"
                  " open('/sys/class/infiniband/h0/node_type').read().strip(),"
                  " os.access('/dev/infiniband/uverbs0', os.R_OK | os.W_OK),"
                  " os.path.exists('/dev/infiniband/rdma_cm'))")
        status, text, told = run("--", sys.executable, "-c", python)
        expect(text.strip() == "['h0', 'h1'] /dev/infiniband/uverbs0 ['1'] 1: CA True True",
               f"device files from Python: {text.strip()} {told}")
        if not os.path.exists("/sys/class/infiniband"):
            status, text, _ = run("--no-files", "--", "ls", "/sys/class/infiniband")
            expect(status == 2 and text == "", "--no-files: no device files")
        trees = [name for name in os.listdir(os.path.join(folder, "paceline")) if "files" in name]
        expect(len(trees) == 1, f"one tree for all of them: {trees}")
    say(f"{len(failures)} failed" if failures else "all good")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
