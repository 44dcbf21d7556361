"""pacelined comes and goes, the service comes and goes, and traffic, parameters and journal are as
they should be."""

import os
import signal
import time

from host import PACELINE, Host, check
from programs import Failed, Running, listens, take_port
from testbed import PATIENCE, end, need, say


def traffic(host, seconds):
    """ib_write_bw from h0 to h1 for so many seconds: both programs."""
    port = take_port()
    on = [PACELINE, "exec", "--socket", host.socket, "--nic"]
    command = ["ib_write_bw", "-p", str(port), "-D", str(seconds), "-s", "65536"]
    server = Running(host, [*on, "h1", "--", *command])
    host.wait_for("perftest listens", lambda: listens(port) or server.process.poll() is not None)
    return server, Running(host, [*on, "h0", "--", *command, "127.0.0.1"])


def cases(host):
    host.start()
    pid = host.wait_for("the service is started", host.healthy)
    say("ok   pacelined starts a testbed")

    status, answer = host.ask("PATCH", "/v1/params",
                              {"nics": ["h1"], "params": {"alpha_gain": 0.01}, "why": "test"})
    check(status == 200, f"parameters are changed: {answer}")
    status, answer = host.ask("PATCH", "/v1/params", {"params": {"alpha_gain": 7}, "why": "too much"})
    check(status == 400 and "7" in str(answer["errors"]), f"bad parameters: {answer}")
    check(host.value("h1", "alpha_gain") == 0.01, "what was set is in force")
    say("ok   parameters are set, and refused")

    programs = traffic(host, 4)
    try:
        queue_pairs = host.wait_for(
            "the connection is seen",
            lambda: [q for q in host.ask("GET", "/v1/nics/h0/queue_pairs")[1]["queue_pairs"]
                     if q["tx_bytes"] > 1e6])
        host.kill()
        time.sleep(0.3)
        host.start()
        check(host.wait_for("it attaches again", host.healthy) == pid, "to the same service")
        check(host.value("h1", "alpha_gain") == 0.01, "parameters are as they were")
        number = queue_pairs[0]["number"]
        explained = host.wait_for(
            "a connection is explained",
            lambda: (lambda r: r[1] if r[0] == 200 and r[1]["findings"] else None)(
                host.ask("GET", f"/v1/explain?nic=h0&qp={number}&seconds=5")))
        say(f"     {explained['verdict']}")
        limit = time.monotonic() + 20 * PATIENCE
        for program in reversed(programs):
            program.finish(limit)
    except Failed as error:
        raise AssertionError(f"{error}: " + "\n".join(p.text() for p in programs)) from None
    finally:
        for program in programs:
            end(program.process)
    say("ok   kill -9 of pacelined: traffic goes on, and it attaches again")

    changes = host.ask("GET", "/v1/params/history")[1]["changes"]
    check([c["state"] for c in changes] == ["applied"] and changes[0]["why"] == "test",
          f"the journal: {changes}")
    part = host.ask("GET", "/v1/series?nic=h0&names=tx_data_bytes&from=-30&resolution=fine")[1]
    values = part["series"][0]["values"]
    check(sum(v or 0 for v in values) > 1e6, "history has what was sent")
    status, answer = host.ask("GET", "/v1/series?nic=h0&names=tx_data_bytes&from=-3600")
    check(status == 400 and "query.from" in str(answer), f"what is older is refused: {answer}")
    status, answer = host.ask("GET", "/v1/series?nic=h0&names=tx_data_bytes&resolution=minute")
    check(status == 400 and "fine" in str(answer), f"coarse slots are refused: {answer}")
    status, answer = host.ask("GET", "/v1/series?nic=h0&names=tx_data_bytes,")
    check(status == 400 and 'no series ""' in str(answer), f"an empty name is refused: {answer}")
    status, text = host.ask("GET", "/metrics")
    check(status == 200 and 'paceline_telemetry_fresh{nic="h0"} 1' in text, "metrics")
    say("ok   journal, history and metrics")

    os.kill(pid, signal.SIGKILL)
    after = host.wait_for("the service is started again",
                          lambda: (lambda p: p if p and p != pid else None)(host.healthy()))
    host.wait_for("parameters are put back", lambda: host.value("h1", "alpha_gain") == 0.01)
    actions = [c["action"] for c in host.ask("GET", "/v1/params/history")[1]["changes"]]
    check(actions == ["set", "put back"], f"the journal: {actions}")
    say("ok   kill -9 of the service: started again, parameters put back")

    host.write_config('[telemetry]\nstaled_after = 3\n')
    status, answer = host.ask("POST", "/v1/reload", {})
    check(status == 400 and "pacelined.toml:9:1" in str(answer), f"a bad file: {answer}")
    host.write_config('[telemetry]\ninterval = "20ms"\n')
    status, answer = host.ask("POST", "/v1/reload", {})
    check(status == 400 and "telemetry" in str(answer), f"what cannot change: {answer}")
    host.write_config('[telemetry]\nstalled_after = 60\n')
    check(host.ask("POST", "/v1/reload", {})[0] == 200, "a good one")
    say("ok   reload: all of a file, or nothing")

    # One that was just started is not ended before it has answered.
    host.wait_for("the upgrade is taken",
                  lambda: host.ask("POST", "/v1/dataplane/upgrade", {"why": "test"})[0] == 202)
    host.wait_for("another service runs",
                  lambda: (lambda p: p if p and p != after else None)(host.healthy()))
    host.wait_for("parameters are put back", lambda: host.value("h1", "alpha_gain") == 0.01)
    status, answer = host.ask("POST", "/v1/params/revert", {"to": 0, "why": "test"})
    check(status == 200 and host.value("h1", "alpha_gain") != 0.01, f"revert: {answer}")
    say("ok   upgrade, and everything reverted")

    service = host.healthy()
    host.process.terminate()
    check(host.process.wait(10 * PATIENCE) == 0, "SIGTERM ends pacelined")
    os.kill(service, 0)  # the service lives
    say("ok   SIGTERM: a clean end, and the service goes on")


def main():
    need("ib_write_bw")
    host = Host()
    try:
        cases(host)
    except BaseException:
        say(host.logs())
        raise
    finally:
        host.close()


main()
