#!/usr/bin/env python3
"""RDMA programs for a user without any privilege, as containers of a CI run them.

  unprivileged_test.py PACELINE PACELINE-DATAPLANE

Runs other tests of this folder as the user nobody, without a capability and without new privileges. An
ordinary user who runs the tests of this folder has run them all like that.
Exit: 0 all passed, 1 some failed, 77 skipped, and why.
"""

import os
import pwd
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from testbed import need, say, skip  # noqa: E402  (the folder of this file is not on the path before)

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = (("verbs_test.py", "pingpong"), ("verbs_test.py", "rdma_cm"), ("devices_test.py", "memif"))
SKIPPED = 77


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    if os.geteuid() != 0:
        skip("this user is not root: the other tests are those without privilege")
    need("setpriv")
    nobody = pwd.getpwnam("nobody")
    lower = ("setpriv", "--reuid", str(nobody.pw_uid), "--regid", str(nobody.pw_gid), "--clear-groups",
             "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs")
    # That of the tests may be out of reach, in root's home.
    python = shutil.which("python3", path="/usr/bin:/bin")
    for file in (*sys.argv[1:], __file__):
        if subprocess.run([*lower, "test", "-r", file], check=False).returncode != 0:
            skip(f"the user nobody cannot read {file}")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        environment = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": folder, "TMPDIR": folder,
                       "XDG_RUNTIME_DIR": folder}
        if "PACELINE_TEST_PATIENCE" in os.environ:
            environment["PACELINE_TEST_PATIENCE"] = os.environ["PACELINE_TEST_PATIENCE"]
        for program, part in TESTS:
            say(f"as nobody: {program} {part}")
            command = [*lower, python, "-B", os.path.join(HERE, program), part, *sys.argv[1:]]
            status = subprocess.run(command, env=environment, check=False).returncode
            if status == SKIPPED:
                skip(f"{program} {part} was skipped")
            failed += status != 0
    say("all passed" if failed == 0 else f"{failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
