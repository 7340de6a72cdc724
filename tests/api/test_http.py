"""The HTTP server by raw sockets: `http_probe` serves it with handlers that show what it does."""
# security: doors
import array
import contextlib
import fcntl
import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import tempfile
import termios
import threading
import time

import pytest

from harness import CARREL, SANITIZED, TREE, eventually

PROBE = next((path for path in (pathlib.Path(CARREL).with_name("http_probe"), TREE / "build/tests/api/http_probe")
              if path.exists()), None)
pytestmark = [pytest.mark.skipif(not PROBE, reason="http_probe isn't built"),
              pytest.mark.once]     # the server reads requests in the same way whoever runs it
HOST = b"Host: a\r\n"


def get(path, *headers, version="1.1", method="GET", body=b""):
    lines = [f"{method} {path} HTTP/{version}", "Host: localhost", *headers]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class Answer:
    def __init__(self, status, headers, body, is_whole):
        self.status, self.headers, self.body, self.is_whole = status, headers, body, is_whole

    @property
    def json(self):
        return json.loads(self.body)


class Connection:
    """A socket that reads one answer after the other."""

    def __init__(self, address):
        self.socket = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
        self.socket.settimeout(60)
        self.socket.connect(address)
        self.input = bytearray()        # to which megabytes can be added, unlike bytes
        self.fds = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
        for fd in self.fds:
            os.close(fd)

    def send(self, data):
        self.socket.sendall(data)
        return self

    def ask(self, *args, **how):
        return self.send(get(*args, **how)).read(how.get("method", "GET"))

    def _more(self):
        if self.socket.family == socket.AF_UNIX:
            data, fds, *_ = socket.recv_fds(self.socket, 1 << 16, 8)
            self.fds += fds
        else:
            data = self.socket.recv(1 << 16)
        self.input += data
        return data

    def _until(self, mark):
        while mark not in self.input:
            if not self._more():
                raise EOFError(self.input)
        head = self._exactly(self.input.index(mark))
        del self.input[:len(mark)]
        return head

    def _exactly(self, length):
        while len(self.input) < length:
            if not self._more():
                raise EOFError(self.input)
        data = bytes(self.input[:length])
        del self.input[:length]
        return data

    def read(self, method="GET"):
        lines = self._until(b"\r\n\r\n").decode().split("\r\n")
        status = int(lines[0].split()[1])
        headers = dict((name.lower(), value) for name, value in (line.split(": ", 1) for line in lines[1:]))
        body, is_whole = bytearray(), True
        try:
            if status < 200 or status in (204, 304) or method == "HEAD":
                pass
            elif headers.get("transfer-encoding") == "chunked":
                while size := int(self._until(b"\r\n"), 16):
                    body += self._exactly(size)
                    assert self._exactly(2) == b"\r\n"
                assert self._exactly(2) == b"\r\n"
            elif "content-length" in headers:
                body = self._exactly(int(headers["content-length"]))
            else:
                while self._more():
                    pass
                body, self.input = self.input, bytearray()
        except (EOFError, ConnectionError):
            is_whole = False
        return Answer(status, headers, bytes(body), is_whole)

    def is_taken(self):
        """The server has read all that was sent."""
        return fcntl.ioctl(self.socket, termios.TIOCOUTQ, bytes(4)) == bytes(4)

    def is_closed(self):
        """The server has closed: nothing more comes but the end."""
        try:
            return not self.input and self.socket.recv(1) == b""
        except ConnectionError:
            return True


class Probe:
    def __init__(self, address, process):
        self.address, self.process, self.is_over, self.asked = address, process, False, 0

    def connect(self):
        return Connection(self.address)

    def ask(self, *args, **how):
        with self.connect() as c:
            return c.ask(*args, **how)

    def state(self):
        self.asked += 1
        return self.ask("/state").json

    def begun(self):
        """How many requests have begun, without those for the state."""
        return self.state()["begun"] - self.asked

    def rss(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) * 1024

    def fds(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


@contextlib.contextmanager
def serving(where, *limits):
    """`where` is "unix" or "tcp"."""
    directory = tempfile.TemporaryDirectory(prefix="carrel-tests.")    # a short path: it is a socket's address
    where = "0" if where == "tcp" else f"{directory.name}/socket"
    process = subprocess.Popen([PROBE, where, *limits], stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        address = where
        if line.startswith("port "):
            address = ("127.0.0.1", int(line.split()[1]))
            line = process.stdout.readline()
        assert line == "ready\n"
        probe = Probe(address, process)
        yield probe
        assert probe.is_over or process.poll() is None, "the server has ended"
    finally:
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(60)
        process.kill()
        process.wait()
        process.stdout.close()
        directory.cleanup()


@pytest.fixture(params=["unix", "tcp"])
def probe(request):
    with serving(request.param) as p:
        yield p
        assert p.ask("/healthz").status == 200
    assert p.process.returncode == 0


@pytest.fixture
def make_probe():
    with contextlib.ExitStack() as stack:
        yield lambda *limits: stack.enter_context(serving("unix", *limits))


def assert_problem(answer, status, code):
    assert answer.status == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["connection"] == "close"
    problem = answer.json
    assert (problem["status"], problem["code"], problem["type"]) == (status, code, "about:blank")
    assert problem["title"] and problem["detail"] and problem["hint"]
    assert problem["request_id"] == answer.headers["x-request-id"]


# ---- ordinary requests

def test_a_connection_serves_one_request_after_the_other(probe):
    with probe.connect() as c:
        for path in "/healthz", "/show?a=b", "/nowhere", "/chunked?n=100000", "/healthz":
            answer = c.ask(path)
            assert answer.status == (404 if path == "/nowhere" else 200)
            assert "date" in answer.headers and len(answer.headers["x-request-id"]) == 20
            assert "connection" not in answer.headers


def test_a_request_id_of_the_clients_is_kept_when_it_is_one(probe):
    assert probe.ask("/healthz", "X-Request-Id: a.B_9-z").headers["x-request-id"] == "a.B_9-z"
    for bad in "x" * 21, "a b", 'a"b', "ä":
        made = probe.ask("/healthz", f"X-Request-Id: {bad}").headers["x-request-id"]
        assert made.isalnum() and len(made) == 20


def test_requests_sent_at_once_are_answered_in_order(probe):
    whole = b"".join(get(f"/show?n={i}", method="POST", body=b"x" * i) for i in range(50))
    with probe.connect() as c:
        c.send(whole)
        for i in range(50):
            assert f"query n={i}\n" in c.read().body.decode()
    with probe.connect() as c:
        for i in range(300):
            c.send(whole[i:i + 1])
        c.send(whole[300:])
        assert all(c.read().status == 200 for i in range(50))


def test_a_request_behind_another_is_not_begun_before_that_is_answered(probe):
    with probe.connect() as c:
        c.send(get("/wait") + get("/healthz"))
        assert eventually(lambda: probe.begun() >= 1)
        assert probe.begun() == 1
        assert probe.ask("/release").body == b"yes\n"
        assert c.read().body == b"released\n"
        assert c.read().body == b"ok\n"


def test_head_has_the_head_only(probe):
    with probe.connect() as c:
        for path in "/healthz", "/chunked", f"/file?path={PROBE}", "/pipe", "/nowhere":
            expected = probe.ask(path)
            answer = c.ask(path, method="HEAD")
            assert answer.status == expected.status
            assert answer.headers.get("content-length") == expected.headers.get("content-length")


def test_http_1_0_is_answered_and_closed(probe):
    for path, length in ("/healthz", 3), ("/chunked?n=100000", 100000), ("/pipe?n=100000", 100000):
        with probe.connect() as c:
            answer = c.ask(path, "Connection: keep-alive", version="1.0")
            assert len(answer.body) == length
            assert "transfer-encoding" not in answer.headers
            assert answer.headers["connection"] == "close"
            assert c.is_closed()
    with probe.connect() as c:
        assert c.send(b"GET /healthz HTTP/1.0\r\n\r\n").read().status == 200


def test_connection_close_is_kept(probe):
    with probe.connect() as c:
        assert c.ask("/healthz", "Connection: close").headers["connection"] == "close"
        assert c.is_closed()


def test_chunks_go_both_ways(probe):
    body = random.randbytes(300000)
    with probe.connect() as c:
        for size in 1000, 70000:
            c.send(get("/echo", "Transfer-Encoding: chunked", method="POST"))
            for i in range(0, len(body), size):
                piece = body[i:i + size]
                c.send(b"%x;ext=1\r\n%s\r\n" % (len(piece), piece))
            c.send(b"0\r\nTrailer: ignored\r\n\r\n")
            assert c.read().body == body
        assert len(c.ask("/chunked?n=5000000&size=7777").body) == 5000000


def test_queries_are_decoded(probe):
    text = probe.ask("/show?a=1&b&c=x+y%2Bz&d=%zz&e=%00").body.decode()
    for line in "a=1", "b=", "c=x y+z", "d=(malformed)", "e=(malformed)":
        assert f"query {line}\n" in text


# ---- bodies

def test_the_client_that_waits_is_asked_when_its_body_is_wanted(probe):
    with probe.connect() as c:
        c.send(get("/echo", "Expect: 100-continue", "Content-Length: 5", method="PUT"))
        assert c.read().status == 100
        assert c.send(b"hello").read().body == b"hello"
        assert c.ask("/healthz").status == 200
        c.send(get("/early", "Expect: 100-continue", "Content-Length: 5", method="PUT"))
        answer = c.read()
        assert answer.status == 404 and answer.headers["connection"] == "close"
        assert c.is_closed()
    with probe.connect() as c:
        c.send(get("/echo?max=4", "Expect: 100-continue", "Content-Length: 5", method="PUT"))
        assert_problem(c.read(), 413, "limit")
    with probe.connect() as c:
        c.send(get("/echo", "Expect: the-unexpected", "Content-Length: 5", method="PUT"))
        assert_problem(c.read(), 417, "invalid")


def test_a_small_body_that_nobody_wants_costs_no_connection(probe):
    with probe.connect() as c:
        for _ in range(3):
            assert c.ask("/early", method="POST", body=b"x" * 60000).status == 404
        assert c.ask("/healthz").status == 200


def test_a_refusal_is_read_also_by_who_still_sends(probe):
    for path, status in ("/early", 404), ("/echo", 413), ("/echo?max=1000", 413):
        with probe.connect() as c:
            c.send(get(path, f"Content-Length: {1 << 30}", method="POST"))
            with contextlib.suppress(ConnectionError):
                for _ in range(100):
                    c.send(b"x" * 65536)
            answer = c.read()
            assert answer.status == status and answer.is_whole
            assert answer.headers["connection"] == "close"


def test_a_body_has_a_maximum_also_in_chunks(probe):
    with probe.connect() as c:
        c.send(get("/echo?max=1000", "Transfer-Encoding: chunked", method="POST"))
        c.send(b"3e8\r\n" + b"x" * 1000 + b"\r\n1\r\nx\r\n")
        assert_problem(c.read(), 413, "limit")
        assert c.is_closed()
    with probe.connect() as c:
        assert len(c.ask("/echo?max=1000", method="POST", body=b"x" * 1000).body) == 1000


def test_all_bodies_together_have_a_maximum(make_probe):
    probe = make_probe("bodies_bytes=100000")
    with probe.connect() as first, probe.connect() as second:
        first.send(get("/echo", "Content-Length: 100000", method="POST") + b"x" * 90000)
        assert eventually(first.is_taken)
        second.send(get("/echo", "Content-Length: 20000", method="POST") + b"x" * 20000)
        assert_problem(second.read(), 503, "unavailable")
        assert len(first.send(b"x" * 10000).read().body) == 100000
    assert len(probe.ask("/echo", method="POST", body=b"x" * 100000).body) == 100000


@pytest.mark.parametrize("path", ["/count", "/pause"])
def test_a_big_upload_moves_in_constant_memory(probe, path):
    probe.ask("/healthz")
    before, block, most = probe.rss(), bytes(1 << 20), 0
    with probe.connect() as c:
        c.send(get(path, f"Content-Length: {len(block) * 200}", method="PUT"))
        for i in range(200):
            c.send(block)
            if i % 20 == 0:
                most = max(most, probe.rss())
        assert c.read().body == b"%d\n" % (len(block) * 200)
    assert SANITIZED or most - before < 4 << 20


def test_a_half_sent_body_is_an_aborted_request(probe):
    with probe.connect() as c:
        c.send(get("/echo", "Content-Length: 10", method="POST") + b"hello")
        assert eventually(lambda: probe.begun() >= 1)
    assert eventually(lambda: probe.state()["aborted"] == 1)
    state = probe.state()
    assert state["completed"] == state["begun"] - 1, "that one was never whole"


# ---- what others could read as two requests

POST = b"POST /echo HTTP/1.1\r\n" + HOST
SECOND = b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n"
SMUGGLED = {
    "both lengths": POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    "a list of lengths": POST + b"Content-Length: 5,5\r\n\r\nhello",
    "a signed length": POST + b"Content-Length: +5\r\n\r\nhello",
    "a hexadecimal length": POST + b"Content-Length: 0x5\r\n\r\nhello",
    "an unknown coding": POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "two codings": POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "a coding with a tab": POST + b"Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
    "a blank before the colon": POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "a folded line": POST + b"A: b\r\n c\r\n\r\n",
    "a folded coding": POST + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "bare line feeds": b"GET /healthz HTTP/1.1\n" + b"Host: a\n\n",
    "a bare line feed": POST + b"A: b\nContent-Length: 5\r\n\r\nhello",
    "a bare return": POST + b"A: b\rContent-Length: 5\r\n\r\nhello",
    "a NUL": POST + b"A: b\x00c\r\n\r\n",
    "no host": b"GET /healthz HTTP/1.1\r\n\r\n",
    "two hosts": b"GET /healthz HTTP/1.1\r\n" + HOST + HOST + b"\r\n",
    "another host in the target": b"GET http://b/healthz HTTP/1.1\r\n" + HOST + b"\r\n",
    "a huge chunk": POST + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nx",
    "a signed chunk": POST + b"Transfer-Encoding: chunked\r\n\r\n+5\r\nhello\r\n0\r\n\r\n",
    "a chunk that is longer": POST + b"Transfer-Encoding: chunked\r\n\r\n4\r\nhello\r\n0\r\n\r\n",
    "long extensions": POST + b"Transfer-Encoding: chunked\r\n\r\n5;" + b"x" * 100000 + b"\r\nhello\r\n0\r\n\r\n",
    "chunks in HTTP/1.0": b"POST /echo HTTP/1.0\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
}


def test_one_request_never_becomes_two(probe):
    for name, text in SMUGGLED.items():
        with probe.connect() as c:
            with contextlib.suppress(ConnectionError):
                c.send(text + SECOND)
            assert_problem(c.read(), 400, "invalid")
            assert c.is_closed(), name


def test_what_is_right_before_it_is_answered(probe):
    with probe.connect() as c:
        c.send(SECOND + SMUGGLED["both lengths"] + SECOND)
        assert c.read().body == b"ok\n"
        assert c.read().status == 400
        assert c.is_closed()


def test_garbage_is_refused(probe):
    random.seed(5)
    for i in range(100):
        with probe.connect() as c:
            with contextlib.suppress(ConnectionError):
                c.send((b"GET / HTTP/1.1\r\n" if i % 2 else b"") + random.randbytes(random.randrange(1, 3000)) + b"\r\n\r\n")
                c.socket.shutdown(socket.SHUT_WR)
                while c._more():
                    pass
            assert not c.input or c.input.startswith(b"HTTP/1.1 4") or c.input.startswith(b"HTTP/1.1 505")


# ---- limits

def test_what_a_client_sends_has_a_maximum(probe):
    for text, status in ((get("/" + "a" * 8192), 414), (get("/", "A: " + "b" * 32768), 431),
                         (get("/", *["A: b"] * 64), 431), (b"\r\n" * 100000 + SECOND, 200)):
        with probe.connect() as c:
            with contextlib.suppress(ConnectionError):
                c.send(text)
            answer = c.read()
            assert answer.status == status
            if status != 200:
                assert_problem(answer, status, "limit")
                assert c.is_closed()
    assert probe.ask("/show?" + "a" * 8000, *["A: b"] * 60).status == 200


def test_headers_have_a_time_however_they_dribble(make_probe):
    probe = make_probe("header_ms=400")
    began, left = time.monotonic(), list(get("/healthz", "A: " + "b" * 1000))
    with probe.connect() as c:
        with contextlib.suppress(ConnectionError):
            while left and not select_input(c):
                c.send(bytes([left.pop(0)]))
                time.sleep(0.02)
        assert_problem(c.read(), 408, "limit")
        assert left and time.monotonic() - began > 0.3
        assert c.is_closed()
    assert probe.state()["aborted"] == 0, "no handler has heard of it"


def select_input(c):
    c.socket.setblocking(False)
    try:
        return bool(c.socket.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return False
    finally:
        c.socket.settimeout(60)


def test_a_body_has_a_time_between_its_pieces(make_probe):
    probe = make_probe("body_idle_ms=300")
    with probe.connect() as c:
        c.send(get("/echo", "Content-Length: 10", method="POST"))
        with contextlib.suppress(ConnectionError):      # it may be over before we are
            for byte in b"hello":
                c.send(bytes([byte]))
                time.sleep(0.1)
        assert_problem(c.read(), 408, "limit")
        assert c.is_closed()
    assert eventually(lambda: probe.state()["aborted"] == 1)


def test_an_idle_connection_is_closed_without_a_word(make_probe):
    probe = make_probe("keep_alive_ms=500")

    def is_closed_when_idle():
        with probe.connect() as c, probe.connect() as fresh:
            assert c.ask("/healthz").status == 200
            return c.is_closed() and fresh.is_closed()

    def is_kept_by_requests():
        with probe.connect() as c:
            for _ in range(8):
                assert c.ask("/healthz").status == 200
                time.sleep(0.1)
        return True

    assert in_time(is_closed_when_idle) and in_time(is_kept_by_requests)


def in_time(claim):
    """It holds once we weren't kept from asking in time."""
    def attempt():
        with contextlib.suppress(EOFError, ConnectionError):
            return claim()
        return False
    return eventually(attempt, 60)


def test_a_request_that_waits_for_its_handler_has_no_time(make_probe):
    probe = make_probe("keep_alive_ms=200", "header_ms=200", "body_idle_ms=200", "write_idle_ms=200")

    def is_answered():
        with probe.connect() as c:
            c.send(get("/wait"))
            time.sleep(0.6)
            return probe.ask("/release").body == b"yes\n" and c.read().body == b"released\n"

    assert in_time(is_answered)


def test_who_takes_nothing_is_dropped_and_costs_little(make_probe):
    probe = make_probe("write_idle_ms=500")
    before = probe.rss()
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(probe.connect()) for _ in range(20)]
        for c in slow:
            c.send(get("/chunked?n=100000000"))
        assert eventually(lambda: probe.begun() >= 20)
        assert probe.ask("/healthz").status == 200
        assert SANITIZED or probe.rss() - before < 20 * (256 << 10)
        assert eventually(lambda: probe.state()["aborted"] == 20)
        assert not slow[0].read().is_whole


def test_there_are_at_most_so_many_connections(make_probe):
    probe = make_probe("connections=5")
    with contextlib.ExitStack() as stack:
        for _ in range(5):
            assert stack.enter_context(probe.connect()).ask("/healthz").status == 200
        with probe.connect() as c:
            answer = c.read()
            assert answer.status == 503 and answer.json["code"] == "unavailable"
            assert c.is_closed()
    assert in_time(lambda: probe.ask("/healthz").status == 200)


def test_accepting_goes_on_when_there_are_descriptors_again(make_probe):
    probe = make_probe("fds=40")
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(probe.connect()) for _ in range(60)]
        for c in held:
            c.send(get("/healthz", "Connection: close"))
        for c in held:
            assert c.read().body == b"ok\n"
    assert probe.ask("/healthz").status == 200


@pytest.mark.serial
def test_many_slow_clients_delay_nobody(make_probe):
    probe = make_probe()
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(probe.connect()) for _ in range(400)]
        is_over = threading.Event()

        def dribble():
            text = get("/healthz", "A: " + "b" * 5000)
            for i in range(len(text) - 10):
                for c in slow:
                    c.send(text[i:i + 1])
                if is_over.is_set():
                    return

        thread = threading.Thread(target=dribble)
        thread.start()
        try:
            times = []
            with probe.connect() as c:
                for _ in range(300):
                    began = time.monotonic()
                    assert c.ask("/healthz").status == 200
                    times.append(time.monotonic() - began)
        finally:
            is_over.set()
            thread.join()
        assert sorted(times)[int(len(times) * 0.99)] < 0.1


@pytest.mark.shipped
def test_an_idle_connection_costs_little(make_probe):
    probe = make_probe()
    with contextlib.ExitStack() as stack:
        for _ in range(50):
            stack.enter_context(probe.connect()).ask("/healthz")
        before = probe.rss()
        for _ in range(800):
            stack.enter_context(probe.connect()).ask("/healthz")
        assert (probe.rss() - before) / 800 < 1500


# ---- clients that go

def test_a_client_that_is_gone_ends_its_request(probe):
    with probe.connect() as c:
        c.send(get("/wait"))
        assert eventually(lambda: probe.begun() >= 1)
    assert eventually(lambda: probe.state()["aborted"] == 1)
    assert probe.ask("/release").body == b"no\n"


def test_a_client_that_is_gone_behind_further_requests_is_seen(make_probe):
    probe = make_probe()
    with probe.connect() as c:
        c.send(get("/wait") + get("/healthz") * 3000)
        assert eventually(lambda: probe.begun() >= 1)
    assert eventually(lambda: probe.state()["aborted"] == 1)


def test_who_has_only_ended_its_sending_is_answered(make_probe):
    probe = make_probe()
    with probe.connect() as c:
        c.send(get("/wait") + get("/show"))
        c.socket.shutdown(socket.SHUT_WR)
        assert eventually(lambda: probe.begun() >= 1)
        time.sleep(0.1)
        assert probe.ask("/release").body == b"yes\n"
        assert c.read().body == b"released\n"
        assert c.read().status == 200
        assert c.is_closed()


def test_who_waits_costs_no_time(make_probe):
    probe = make_probe()
    with probe.connect() as c, probe.connect() as pipelining:
        c.send(get("/wait"))
        c.socket.shutdown(socket.SHUT_WR)
        pipelining.send(get("/wait") + b"x" * 100)
        assert eventually(lambda: probe.begun() >= 2)
        cpu = lambda: sum(map(int, pathlib.Path(f"/proc/{probe.process.pid}/stat").read_text().split()[13:15]))
        before = cpu()
        time.sleep(0.5)
        assert cpu() - before <= 5


def misbehave(probe, dice, path):
    """One client that sends some requests in random pieces, reads some of the answers, and goes somehow."""
    paths = ["/healthz", "/show", "/echo", "/count", "/early", "/cut", "/wait", "/release", "/pipe?n=300000", "/flood",
             "/chunked?n=1000000", "/chunked?n=100&size=3", f"/file?path={path}", "/nowhere"]
    text = b""
    for _ in range(dice.randrange(1, 6)):
        body = bytes(dice.choice([0, 1, 1000, 100000]))
        if dice.random() < 0.3:
            text += get(dice.choice(paths), "Transfer-Encoding: chunked", method="PUT")
            text += b"%x\r\n%s\r\n" % (len(body), body) * bool(body) + b"0\r\n\r\n"
        else:
            expects = ["Expect: 100-continue"] if body and dice.random() < 0.2 else []
            text += get(dice.choice(paths), *expects, method=dice.choice(["GET", "HEAD", "POST"]), body=body)
    if dice.random() < 0.2:
        at = dice.randrange(len(text))
        text = text[:at] + dice.randbytes(3) + text[at + 3:]
    with probe.connect() as c, contextlib.suppress(OSError):
        c.socket.settimeout(0.02)
        while text and dice.random() < 0.95:
            size = dice.choice([1, 20, 1000, 100000])
            c.socket.send(text[:size])
            text = text[size:]
            if dice.random() < 0.3:
                with contextlib.suppress(TimeoutError):
                    c._more()
        if dice.random() < 0.3:
            c.socket.shutdown(dice.choice([socket.SHUT_WR, socket.SHUT_RD]))
        while dice.random() < 0.9 and c._more():
            pass


def test_clients_that_misbehave_leave_nothing_behind(probe, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(500_000))
    probe.ask("/healthz")
    fds, seed = probe.fds(), int(os.environ.get("HTTP_SEED", 7))
    workers = [threading.Thread(target=lambda i=i: [misbehave(probe, random.Random(f"{seed} {i} {n}"), path)
                                                    for n in range(60)]) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    # On TCP the end of a client that has sent more than there is room for comes behind that.
    assert eventually(lambda: probe.ask("/release") and probe.state()["connections"] == 1, 60)
    state = probe.state()
    assert state["done"] == state["begun"] - 1
    assert eventually(lambda: probe.fds() <= fds)


# ---- responses

def test_files_are_sent_whole_and_in_part(probe, tmp_path):
    for size in 0, 1, 16384, 16385, 3_000_000:
        path = tmp_path / f"file-{size}"
        path.write_bytes(random.randbytes(size))
        with probe.connect() as c:
            assert c.ask(f"/file?path={path}").body == path.read_bytes()
            assert c.ask(f"/file?path={path}&offset={size // 3}&len={size // 2}").body == \
                path.read_bytes()[size // 3:size // 3 + size // 2]
    before = probe.fds()
    assert eventually(lambda: probe.fds() <= before)


def test_a_file_that_became_shorter_is_an_answer_that_is_cut(probe, tmp_path):
    for size in 1000, 100000:
        path = tmp_path / "file"
        path.write_bytes(b"x" * size)
        answer = probe.ask(f"/file?path={path}&len={size + 1}")
        assert answer.status == 200 and not answer.is_whole


def test_a_client_that_leaves_a_file_half_read_ends_nobody(probe, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(20_000_000))
    for _ in range(5):
        with probe.connect() as c:
            c.send(get(f"/file?path={path}"))
            c._more()
    assert eventually(lambda: probe.state()["aborted"] == 5)


def test_what_comes_out_of_a_pipe_is_sent_to_its_end(probe):
    with probe.connect() as c:
        for n in 0, 1, 65536, 3_000_000:
            assert len(c.ask(f"/pipe?n={n}").body) == n
    with probe.connect() as c:
        c.send(get("/pipe?n=100000000"))
        time.sleep(0.1)
    assert eventually(lambda: probe.state()["aborted"] == 1)


def test_an_answer_that_is_cut_is_seen_to_be(probe):
    answer = probe.ask("/cut")
    assert answer.status == 200 and answer.body == b"half of it" and not answer.is_whole
    assert eventually(lambda: probe.state()["aborted"] == 1)


def test_a_handler_that_does_not_listen_is_cut(probe):
    assert not probe.ask("/flood").is_whole


# ---- descriptors

def send_fds(c, data, fds):
    c.socket.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])


def test_descriptors_go_both_ways(make_probe):
    probe = make_probe()
    open_before = probe.fds()
    read_end, write_end = os.pipe()
    os.write(write_end, b"through a pipe")
    try:
        for _ in range(3):
            os.write(write_end, b"!")
            with probe.connect() as c:
                send_fds(c, get("/fds"), [read_end, write_end, write_end])
                assert c.read().body.endswith(b"!")
                assert len(c.fds) == 2
                assert os.path.samestat(os.fstat(c.fds[0]), os.fstat(write_end))
                assert c.ask("/fds").body == b"", "they belong to one request"
        with probe.connect() as c:
            send_fds(c, get("/healthz"), [read_end])
            assert c.read().status == 200
        assert eventually(lambda: probe.fds() <= open_before + 1), "those nobody took are closed"
    finally:
        os.close(read_end)
        os.close(write_end)


@pytest.mark.parametrize("count", [5, 6, 50])
def test_a_request_has_at_most_four_descriptors(make_probe, count):
    probe = make_probe()
    with probe.connect() as c:
        send_fds(c, get("/fds"), [0] * count)
        assert_problem(c.read(), 400, "invalid")
    with probe.connect() as c:
        for byte in b"GET /":
            send_fds(c, bytes([byte]), [0])
        assert_problem(c.read(), 400, "invalid")
    assert probe.ask("/healthz").status == 200
    assert eventually(lambda: probe.state()["connections"] == 1)


# ---- the end

def test_draining_lets_requests_finish_and_closes_the_rest(make_probe):
    probe = make_probe()
    with probe.connect() as idle, probe.connect() as half, probe.connect() as busy, probe.connect() as pipelining:
        idle.ask("/healthz")
        half.send(b"GET /healthz HT")
        busy.send(get("/chunked?n=20000000"))
        pipelining.send(get("/healthz") + b"GET /")
        assert pipelining.read().status == 200
        assert eventually(lambda: probe.begun() >= 3 and half.is_taken())
        probe.process.send_signal(signal.SIGTERM)
        assert idle.is_closed()
        assert_problem(half.read(), 503, "unavailable")
        with probe.connect() as late:
            late.socket.settimeout(0.3)
            with pytest.raises(OSError):
                late.ask("/healthz")
        assert probe.process.poll() is None
        answer = busy.read()
        assert len(answer.body) == 20000000 and answer.is_whole
        assert busy.is_closed()
        assert probe.process.wait(120) == 0
    probe.is_over = True
