"""The API on TCP: TLS with a certificate made here, tokens that read or write, and what does not come in."""

import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import warnings

from host import PACELINED, Host, check
from programs import take_port
from testbed import PATIENCE, need, say

READ = "r" * 16 + "0123456789abcdef" * 2
WRITE = "w" * 16 + "0123456789abcdef" * 2


def private(host, name, text):
    path = os.path.join(host.folder, name)
    with open(path, "w", encoding="utf-8") as file:
        os.chmod(path, 0o600)
        file.write(text)
    return path


def certificate(host):
    """Of 127.0.0.1, by itself; the key is for its owner alone."""
    key, pem = (os.path.join(host.folder, name) for name in ("key.pem", "certificate.pem"))
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-keyout", key, "-out", pem, "-days", "2", "-subj", "/CN=localhost", "-addext",
         "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    os.chmod(key, 0o600)
    return key, pem


class Api:
    def __init__(self, port, pem):
        self.port = port
        self.context = ssl.create_default_context(cafile=pem)

    def ask(self, method, target, token=None, body=None):
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=20 * PATIENCE,
                                                 context=self.context)
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if token is not None:
            headers["Authorization"] = "Bearer " + token
        connection.request(method, target, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, json.loads(text) if text.startswith("{") else text


def served(host, api):
    check(api.ask("GET", "/v1/status", READ)[0] == 200, "who may read is answered")
    check(api.ask("GET", "/v1/status")[0] == 401, "without a token nobody")
    check(api.ask("GET", "/v1/status", READ[:-1] + "g")[0] == 401, "nor with a wrong one")
    body = {"params": {"alpha_gain": 0.01}, "why": "from elsewhere"}
    check(api.ask("PATCH", "/v1/params", READ, body)[0] == 403, "who may read may not change")
    before = host.value("h0", "alpha_gain")
    check(before != 0.01, "and nothing was")
    status, answer = api.ask("PATCH", "/v1/params", WRITE, body)
    check(status == 200 and host.value("h0", "alpha_gain") == 0.01, f"who may write does: {answer}")
    change = host.ask("GET", "/v1/params/history")[1]["changes"][-1]
    check("ci" in change["who"], f"the journal has the token's name: {change['who']}")
    check(WRITE not in json.dumps(change) and WRITE not in host.logs(), "and never the token")
    say("ok   tokens read, or write, or neither")


def events(api):
    """A stream over TLS: what happens comes while it is open."""
    connection = http.client.HTTPSConnection("127.0.0.1", api.port, timeout=30 * PATIENCE,
                                             context=api.context)
    connection.request("GET", "/v1/events?topics=parameters",
                       headers={"Authorization": "Bearer " + READ})
    stream = connection.getresponse()
    check(stream.status == 200, "events are told")
    body = {"params": {"alpha_gain": 0.02}, "why": "to be heard of"}
    check(api.ask("PATCH", "/v1/params", WRITE, body)[0] == 200, "a change")
    line = b""
    while not line.startswith(b"data:"):
        line = stream.fp.readline()
        check(line, "the stream ended")
    check(json.loads(line[5:])["why"] == "to be heard of", f"and is heard of: {line}")
    connection.close()
    say("ok   events come over TLS")


def not_let_in(api):
    with socket.create_connection(("127.0.0.1", api.port), timeout=20 * PATIENCE) as plain:
        plain.sendall(b"GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n")
        try:
            answer = plain.recv(4096)
        except ConnectionResetError:
            answer = b""
        check(b"200" not in answer and b"dataplane" not in answer, f"not without TLS: {answer}")
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname = False
    old.verify_mode = ssl.CERT_NONE
    old.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # as it should be
        old.minimum_version = ssl.TLSVersion.TLSv1
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    try:
        with socket.create_connection(("127.0.0.1", api.port), timeout=20 * PATIENCE) as raw:
            with old.wrap_socket(raw):
                raise AssertionError("TLS 1.1 was accepted")
    except (ssl.SSLError, ConnectionResetError):
        pass
    check(api.ask("GET", "/v1/status", READ)[0] == 200, "others are served as before")
    say("ok   neither plain text nor TLS 1.1")


def refused(host, what):
    done = subprocess.run([PACELINED, "--config", host.config], env=host.environment,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=20 * PATIENCE, check=False)
    check(done.returncode != 0 and what in done.stderr + done.stdout, f"{what}: {done}")


def main():
    need("openssl")
    host = Host()
    try:
        key, pem = certificate(host)
        tokens = private(host, "tokens", f"# who comes from elsewhere\ngrafana read {READ}\nci write {WRITE}\n")
        port = take_port()
        host.write_config(f"""[api]
address = "127.0.0.1"
port = {port}
certificate = "{pem}"
key = "{key}"
tokens = "{tokens}"
""")
        for path in (key, tokens):
            os.chmod(path, 0o644)
            refused(host, os.path.basename(path))
            os.chmod(path, 0o600)
        say("ok   a key or tokens that others may read: it does not start")
        host.start()
        host.wait_for("the service is started", host.healthy)
        api = Api(port, pem)
        served(host, api)
        events(api)
        not_let_in(api)
        host.process.send_signal(signal.SIGTERM)
        check(host.process.wait(timeout=20 * PATIENCE) == 0, "it ends well")
    except BaseException:
        say(host.logs())
        raise
    finally:
        host.close()


if __name__ == "__main__":
    main()
