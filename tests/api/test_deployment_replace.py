"""Requests for a deployment while it is replaced: none fails, and what was begun ends where it began."""
# security: services
import contextlib
import http.client
import threading

from harness import eventually
from packages_made import plain
from rollouts import clean, deploy, left, wait  # noqa: F401
from websockets import BINARY, WebSocket, frame

URL = "/v1/deployments/greeter/rest"
SERVER = """
import base64, hashlib, http.server, os, pathlib, time
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        if self.path == '/ws':
            return self.web_socket()
        body = b'VERSION'
        self.send_response(200)
        if self.path == '/stream':
            self.send_header('Connection', 'close')
            self.end_headers()
            self.wfile.write(b'VERSION begins')
            while not pathlib.Path('go').exists():
                time.sleep(0.01)
            body = b', VERSION ends'
        else:
            self.send_header('Content-Length', str(len(body)))
            self.end_headers()
        self.wfile.write(body)
    def web_socket(self):
        key = self.headers['Sec-WebSocket-Key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
        self.send_response(101)
        self.send_header('Upgrade', 'websocket')
        self.send_header('Connection', 'Upgrade')
        self.send_header('Sec-WebSocket-Protocol', self.headers['Sec-WebSocket-Protocol'])
        self.send_header('Sec-WebSocket-Accept', base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
        self.end_headers()
        self.close_connection = True
        while head := self.rfile.read(6):
            self.rfile.read(head[1] & 127)
            self.wfile.write(bytes([head[0], 5]) + b'VERSION')
    def log_message(self, *args):
        pass
http.server.ThreadingHTTPServer(('127.0.0.1', int(os.environ['PORT'])), Handler).serve_forever()
"""


class Load:
    """Clients that ask until told to stop, on connections that are kept and on new ones; at most so many requests."""

    def __init__(self, daemon, most=20000):
        self.daemon, self.most, self.stop, self.failed, self.counts = daemon, most, threading.Event(), [], {}
        self.threads = [threading.Thread(target=self.run, args=(is_kept,)) for is_kept in (True, False)]

    def run(self, is_kept):
        connection = None
        for _ in range(self.most):
            if self.stop.is_set():
                break
            connection = connection if connection and is_kept else self.daemon.connection()
            try:
                connection.request("GET", f"{URL}/")
                answer = connection.getresponse()
                body = answer.read()
            except (OSError, http.client.HTTPException) as error:
                self.failed.append(repr(error))
                break
            if answer.status != 200:
                self.failed.append((answer.status, body))
            self.counts[body, is_kept] = self.counts.get((body, is_kept), 0) + 1
            if not is_kept:
                connection.close()
        if connection:
            connection.close()

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *exc):
        self.stop.set()
        for thread in self.threads:
            thread.join()

    def sees(self, version):
        """Both kinds of connections are answered by it."""
        before = dict(self.counts)
        return eventually(lambda: all(self.counts.get((version, kept), 0) > before.get((version, kept), 0) for kept in (True, False)))


def test_no_request_fails_while_it_is_replaced_and_rolled_back(clean):
    daemon = clean
    deploy(daemon, plain(server=SERVER))
    with Load(daemon) as load:
        assert load.sees(b"1.0.0")
        deploy(daemon, plain("2.0.0", server=SERVER), version="2.0.0")
        assert load.sees(b"2.0.0")
        assert daemon.post("/v1/deployments/greeter/rollback").status == 200
        assert wait(daemon, "greeter")["version"] == "1.0.0" and load.sees(b"1.0.0")
    assert not load.failed and {body for body, _ in load.counts} == {b"1.0.0", b"2.0.0"}
    # One layer for each package, one workspace for the surface; what was replaced is gone.
    assert eventually(lambda: len(left(daemon)) == 3)


def test_what_was_begun_ends_in_the_revision_where_it_began(clean):
    daemon = clean
    before = deploy(daemon, plain(server=SERVER))["surfaces"][0]["workspace"]
    socket = WebSocket(daemon, f"{URL}/ws")
    socket.sock.sendall(frame(BINARY, b"one"))
    assert socket.take(7)[2:] == b"1.0.0"
    with contextlib.closing(daemon.connection()) as connection:
        connection.request("GET", f"{URL}/stream")
        answer = connection.getresponse()
        assert answer.read(12) == b"1.0.0 begins"
        deploy(daemon, plain("2.0.0", server=SERVER), version="2.0.0")
        assert daemon.get(f"{URL}/").body == b"2.0.0"
        # Both go on in the old revision, which is there for as long as one of them is.
        socket.sock.sendall(frame(BINARY, b"two"))
        assert socket.take(7)[2:] == b"1.0.0"
        assert daemon.request("PUT", f"/v1/workspaces/{before}/files/go", b"").status == 201
        assert answer.read() == b", 1.0.0 ends"
    socket.sock.sendall(frame(BINARY, b"three"))
    assert socket.take(7)[2:] == b"1.0.0"
    assert before in {one["id"] for one in left(daemon)}
    socket.sock.close()
    assert eventually(lambda: before not in {one["id"] for one in left(daemon)})
