"""A daemon with its service, and traffic that is checked over it, for daemon_load and sampling_cost."""

import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def host_class(build):
    """Host of tests/daemon, which takes its programs from the command line, as tests get them."""
    sys.argv[1:] = [str(build / program) for program in
                    ("control/daemon/pacelined", "tools/paceline", "dataplane/service/paceline-dataplane")]
    sys.path.insert(0, str(ROOT / "tests/daemon"))
    from host import Host  # pylint: disable=import-outside-toplevel
    return Host


class Traffic:
    """checked_traffic over the service of a host."""

    def __init__(self, host, build, *arguments):
        command = [build / "tools/paceline", "exec", "--socket", host.socket, "--",
                   build / "tests/bench/checked_traffic", *arguments]
        self.process = subprocess.Popen([str(c) for c in command], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, cwd=host.folder,
                                        env=host.environment, start_new_session=True)
        text = self.line()
        if text != "ready":
            raise SystemExit(f"checked_traffic said {text!r} instead of \"ready\"")

    def line(self):
        text = self.process.stdout.readline()
        if not text:
            raise SystemExit(f"checked_traffic ended with {self.process.wait()}")
        return text.strip()

    def figures(self):
        """Since it was asked last."""
        self.process.stdin.write("figures\n")
        self.process.stdin.flush()
        return json.loads(self.line())

    def end(self):
        """Its exit status: 1 if a byte was wrong, ever."""
        self.process.stdin.close()
        try:
            return self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return 1
