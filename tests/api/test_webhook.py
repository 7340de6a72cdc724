"""carrel-blob webhook: one signed call, as the launcher has it made. How often core repeats it is tested in tests/unit."""
# security: authority
import hashlib
import hmac
import http.server
import json
import os
import pathlib
import subprocess
import tempfile
import threading
import time

import pytest
from harness import CARREL, eventually

SECRET = b"0123456789abcdef0123456789abcdef"
BODY = json.dumps({"type": "approval.requested", "approval": {"argv": ["docker", "build", "."]}}).encode()

pytestmark = pytest.mark.once


class Server(http.server.ThreadingHTTPServer):
    """Answers with `status`; "hang": not at all, until it is closed."""

    def __init__(self, status):
        self.status, self.calls, self.closing = status, [], threading.Event()
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/hook?a=b"

    def __exit__(self, *_):
        self.closing.set()
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.calls.append((self.path, self.headers, body))
        if self.server.status == "hang":
            self.server.closing.wait()
            return
        self.send_response(self.server.status)
        if self.server.status == 302:
            self.send_header("Location", self.server.url)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_POST

    def log_message(self, *_):
        pass


def call(url, secret=SECRET + b"\n", timeout_ms=None):
    """(exit code, answer) of one call."""
    files = [tempfile.TemporaryFile() for _ in range(4)]
    body, answer, key, told = files
    body.write(BODY)
    key.write(secret)
    told.write(json.dumps({"webhook": url, **({"webhook_timeout_ms": timeout_ms} if timeout_ms else {})}).encode())
    for file in (body, key, told):
        file.seek(0)
    # Its descriptors are 3, 4 and 5; its settings are on stdin.
    first = [os.dup(file.fileno()) for file in files[:3]]
    script = 'exec 3<&%d 4>&%d 5<&%d; exec "$0" webhook' % tuple(first)
    how = {"user": 64199, "group": 64199, "extra_groups": []} if os.geteuid() == 0 else {}
    program = pathlib.Path(CARREL).with_name("carrel-blob")
    env = {"ASAN_OPTIONS": "detect_leaks=0"}
    try:
        done = subprocess.run(["bash", "-c", script, program], env=env, stdin=told, pass_fds=first, timeout=120, **how)
        answer.seek(0)
        return done.returncode, json.loads(answer.read())
    finally:
        for fd in first:
            os.close(fd)
        for file in files:
            file.close()


def test_a_call_is_signed():
    with Server(204) as server:
        before = int(time.time())
        assert call(server.url) == (0, {"status": 204})
        (path, headers, body), = server.calls
    assert path == "/hook?a=b" and body == BODY and headers["Content-Type"] == "application/json"
    fields = dict(part.split("=") for part in headers["Carrel-Signature"].split(","))
    assert before - 1 <= int(fields["t"]) <= time.time() + 1
    signed = hmac.new(SECRET, f"{fields['t']}.".encode() + body, hashlib.sha256).hexdigest()
    assert hmac.compare_digest(signed, fields["v1"])


@pytest.mark.parametrize("status", [500, 302])
def test_what_is_not_a_success_is_told_and_no_redirect_is_followed(status):
    with Server(status) as server:
        assert call(server.url) == (0, {"status": status})
        assert len(server.calls) == 1


def test_a_server_that_hangs_is_given_up():
    with Server("hang") as server:
        code, answer = call(server.url, timeout_ms=1000)
        assert code == 1 and answer["error"]["code"] == "unavailable"
        assert eventually(lambda: server.calls) and len(server.calls) == 1


def test_a_short_secret_and_another_protocol_are_refused():
    with Server(204) as server:
        code, answer = call(server.url, secret=b"short\n")
        assert code == 1 and answer["error"]["code"] == "invalid" and "short" not in json.dumps(answer).split("approvals")[0]
        assert server.calls == []
    code, answer = call("file:///etc/passwd")
    assert code == 1 and "error" in answer
