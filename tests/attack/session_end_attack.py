"""A session ends while 128 regions of it have a copy under way that hangs in the program's memory:
nobody else may wait for that. Needs a userfaultfd that stops the kernel: root, where
vm.unprivileged_userfaultfd is 0."""

import raw_session as raw
from running import Running

from testbed import PATIENCE, Testbed, say, skip

REGIONS = 128


def main():
    options = raw.arguments()
    with Testbed(options.paceline, options.dataplane) as bed:
        command = bed.on(None, [f"{options.programs}/attack_memory", "hang", str(REGIONS)])
        with Running(command, dict(bed.environment, PACELINE_MEMORY="copy")) as program:
            if program.wait_for("closed") is None:
                skip(program.lines[-1])
            for _ in range(20):
                try:
                    session = raw.Session(bed.socket, 3 * PATIENCE).open("h1")
                    session.close()
                except TimeoutError:
                    raise AssertionError("nobody else is served while a session ends") from None
            say(f"ok   {REGIONS} regions with a copy that hangs: others are served at once")
            # Its program lives, and so does the thread that hangs: what is left of it counts.
            again = raw.Session(bed.socket, 3 * PATIENCE).open("h0")
            again.close()
        raw.check(bed.alive(), "the service has ended")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
