"""Ports of a workspace, reached from outside by its name: lists, a reverse proxy for HTTP and WebSocket, and bytes."""
# security: doors
import base64
import contextlib
import hashlib
import http.client
import json
import os
import signal
import socket
import struct
import threading

import pytest

from harness import eventually
from rest import created, output_of, problem

# Listens on 8000 of 127.0.0.1, on 8001 of ::1, and on 8002, where it says what is no HTTP.
SERVER = r'''
import base64, hashlib, http.server, json, socket, socketserver, struct, sys, threading

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def body(self):
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        whole = b""
        while size := int(self.rfile.readline(), 16):
            whole += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return whole

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", len(body))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def web_socket(self):
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
        self.end_headers()
        while head := self.rfile.read(2):
            size = head[1] & 127
            size = struct.unpack("!H", self.rfile.read(2))[0] if size == 126 else size
            mask, data = self.rfile.read(4), self.rfile.read(size)
            data = bytes(b ^ mask[i % 4] for i, b in enumerate(data))
            self.wfile.write(bytes([head[0], size]) + data if size < 126 else
                             bytes([head[0], 126]) + struct.pack("!H", size) + data)
        self.close_connection = True

    def do_any(self):
        path = self.path.partition("?")[0]
        if path == "/ws":
            self.web_socket()
        elif path == "/redirect":
            self.answer(302, Location=self.headers["To"])
        elif path == "/cookie":
            self.answer(200, Set_Cookie="a=b; Path=/; HttpOnly; Domain=localhost")
        elif path == "/big":
            self.answer(200, b"x" * int(self.headers["Size"]))
        elif path == "/chunked":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n")
        elif path == "/until-close":
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"to the end")
            self.close_connection = True
        elif path == "/cut":
            self.send_response(200)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b"part")
            self.close_connection = True
        elif path == "/none":
            self.send_response(204)
            self.end_headers()
        else:
            body = self.body()
            self.answer(200, json.dumps({"method": self.command, "path": self.path, "headers": dict(self.headers.items()),
                                         "body": hashlib.sha256(body).hexdigest(), "size": len(body)}).encode())

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_HEAD = do_any

    def log_message(self, *_):
        pass

class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

class Server6(Server):
    address_family = socket.AF_INET6

class Echo(socketserver.StreamRequestHandler):
    def handle(self):
        while data := self.request.recv(65536):
            self.request.sendall(data)

class Echoes(socketserver.ThreadingTCPServer):
    daemon_threads = allow_reuse_address = True

servers = [Echoes(("127.0.0.1", 8002), Echo)]
if socket.has_ipv6:
    servers.append(Server6(("::1", 8001), Handler))
servers.append(Server(("127.0.0.1", 8000), Handler))      # the one that is waited for comes last
for server in servers:
    threading.Thread(target=server.serve_forever).start()
'''


def serve(daemon, name, script=SERVER, port=8000):
    """Starts it in the background, and waits until it listens."""
    started = daemon.post(f"/v1/workspaces/{name}/exec", {"argv": ["python3", "-c", script], "background": True})
    assert started.status == 201, started
    listens = lambda: any(item["port"] == port for item in ports(daemon, name))
    assert eventually(listens), daemon.get(f"/v1/execs/{started.json()['id']}/output").body


def ports(daemon, name):
    answer = daemon.get(f"/v1/workspaces/{name}/ports")
    assert answer.status == 200, answer
    return answer.json()["items"]


@pytest.fixture(scope="module")
def served(daemon):
    """The name of a workspace in which the server runs."""
    with created(daemon) as workspace:
        serve(daemon, workspace["name"])
        yield workspace["name"]


def url(name, path="/", port=8000):
    return f"/v1/workspaces/{name}/ports/{port}{path}"


@contextlib.contextmanager
def upgraded(daemon, path, protocol, *headers):
    """A connection after 101: its socket, what came behind the head, and the head."""
    with contextlib.closing(daemon.connection()) as connection:
        connection.connect()
        lines = [f"GET {path} HTTP/1.1", "Host: carrel", "Connection: Upgrade", f"Upgrade: {protocol}", *headers]
        connection.sock.sendall("\r\n".join([*lines, "", ""]).encode())
        head = b""
        while b"\r\n\r\n" not in head:
            piece = connection.sock.recv(4096)
            assert piece, head
            head += piece
        head, _, early = head.partition(b"\r\n\r\n")
        yield connection.sock, early, head.decode()


def receive(sock, size, early=b""):
    while len(early) < size and (piece := sock.recv(65536)):
        early += piece
    return early


def is_over(sock):
    """Nothing but the end, or a reset, comes."""
    try:
        while sock.recv(65536):
            pass
    except ConnectionError:
        pass
    return True


def test_what_listens_is_listed(daemon, served):
    listed = [(item["port"], item["address"]) for item in ports(daemon, served)]
    assert (8000, "127.0.0.1") in listed and (8002, "127.0.0.1") in listed and listed == sorted(listed)
    if os.path.exists("/proc/net/if_inet6"):
        assert (8001, "::1") in listed
    first = daemon.get(f"/v1/workspaces/{served}/ports?limit=1").json()
    rest = daemon.get(f"/v1/workspaces/{served}/ports?limit=1000&cursor={first['next_cursor']}").json()
    assert [(item["port"], item["address"]) for item in first["items"] + rest["items"]] == listed


def test_what_leads_out_of_a_workspace_is_not_listed(daemon):
    with created(daemon, network={"allow": ["origin.test:8443"]}) as workspace:
        assert ":0C38 " in output_of(daemon, workspace["name"], "cat /proc/net/tcp")  # the proxy, on 3128
        assert eventually(lambda: ports(daemon, workspace["name"]) == []), ports(daemon, workspace["name"])
        serve(daemon, workspace["name"])
        assert {item["port"] for item in ports(daemon, workspace["name"])} <= {8000, 8001, 8002}


def new_token(daemon, workspace):
    return daemon.post("/v1/tokens", {"workspace": workspace}).json()["text"]


def test_a_request_reaches_the_server_as_it_is_but_for_the_connection_and_credentials(daemon, served):
    answer = daemon.request("PATCH", url(served, "/a%20b//c?d=%2F&e"), b"bytes", {
        "Authorization": f"Bearer {new_token(daemon, served)}", "X-Mine": "yes", "Cookie": "k=v", "Connection": "X-Hop", "X-Hop": "1",
        "X-Forwarded-For": "10.0.0.1", "Host": "desk.example", "If-Match": "tag", "Range": "bytes=0-1"})
    seen = answer.json()
    headers = {name.lower(): value for name, value in seen["headers"].items()}
    assert answer.status == 200 and seen["method"] == "PATCH" and seen["path"] == "/a%20b//c?d=%2F&e"
    assert seen["body"] == hashlib.sha256(b"bytes").hexdigest()
    assert headers["host"] == "localhost:8000" and headers["x-forwarded-host"] == "desk.example"
    assert headers["x-forwarded-prefix"] == url(served, "") and headers["x-forwarded-proto"] == "http"
    assert headers["x-mine"] == "yes" and headers["cookie"] == "k=v" and headers["if-match"] == "tag"
    assert not headers.keys() & {"authorization", "x-hop", "x-forwarded-for"}
    assert daemon.get(url(served, "")).json()["path"] == "/"
    assert daemon.request("OPTIONS", url(served, "/o")).json()["method"] == "OPTIONS"
    recorded = [json.loads(line) for line in daemon.get(f"/v1/audit?workspace={served}&type=port.connect").body.splitlines()]
    assert recorded and {line["data"]["port"] for line in recorded} <= {8000, 8001, 8002, 9}


@pytest.mark.once
def test_bodies_of_any_framing_and_size_pass_whole(daemon, served):
    large = os.urandom(1 << 20) * 12
    assert daemon.post(url(served, "/"), large).json()["body"] == hashlib.sha256(large).hexdigest()
    pieces = (large[at:at + 100_000] for at in range(0, len(large), 100_000))
    chunked = daemon.post(url(served, "/"), pieces).json()  # chunked, for want of a length
    assert chunked["size"] == len(large) and chunked["body"] == hashlib.sha256(large).hexdigest()
    answer = daemon.get(url(served, "/big"), headers={"Size": str(20 << 20)})
    assert len(answer.body) == 20 << 20 and answer.headers["Content-Length"] == str(20 << 20)
    assert daemon.get(url(served, "/chunked")).body == b"abcdefg"
    assert daemon.get(url(served, "/until-close")).body == b"to the end"
    assert daemon.get(url(served, "/none")).status == 204
    head = daemon.request("HEAD", url(served, "/big"), headers={"Size": "1000"})
    assert head.status == 200 and head.body == b"" and head.headers["Content-Length"] == "1000"


@pytest.mark.once
def test_paths_that_a_client_follows_have_the_prefix_of_the_port(daemon, served):
    def location(to):
        return daemon.get(url(served, "/redirect"), headers={"To": to}).headers["Location"]

    assert location("/next?a") == url(served, "/next?a")
    assert location("http://localhost:8000/next") == url(served, "/next")
    assert location("https://other.example/x") == "https://other.example/x" and location("next") == "next"
    assert location("//other.example/x") == "//other.example/x"
    assert daemon.get(url(served, "/cookie")).headers["Set-Cookie"] == f"a=b; HttpOnly; Path={url(served, '/')}"


def test_a_web_socket_passes(daemon, served):
    key = base64.b64encode(os.urandom(16)).decode()
    with upgraded(daemon, url(served, "/ws"), "websocket", f"Sec-WebSocket-Key: {key}",
                  "Sec-WebSocket-Version: 13") as (sock, early, head):
        accept = base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()
        assert head.startswith("HTTP/1.1 101 ") and accept in head, head
        for text in (b"hello", b"x" * 5000):
            mask, size = os.urandom(4), len(text)
            frame = bytes([0x81, 0x80 | size]) if size < 126 else bytes([0x81, 0xfe]) + struct.pack("!H", size)
            sock.sendall(frame + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(text)))
            expected = (bytes([0x81, size]) if size < 126 else bytes([0x81, 126]) + struct.pack("!H", size)) + text
            assert receive(sock, len(expected), early) == expected
            early = b""


def test_bytes_pass_both_ways_with_their_ends(daemon, served):
    text = os.urandom(1 << 20) * 3
    with upgraded(daemon, url(served, port=8002), "carrel-tcp") as (sock, early, head):
        assert "\r\nUpgrade: carrel-tcp" in head
        sender = threading.Thread(target=lambda: (sock.sendall(text), sock.shutdown(socket.SHUT_WR)))
        sender.start()
        assert receive(sock, len(text), early) == text and sock.recv(1) == b""
        sender.join()


@pytest.mark.skipif(not os.path.exists("/proc/net/if_inet6"), reason="the host has no IPv6")
def test_a_server_on_the_other_loopback_address_is_found(daemon, served):
    assert daemon.get(url(served, "/six", 8001)).json()["path"] == "/six"


def test_what_cannot_be_reached_is_said(daemon, served):
    problem(daemon.get(url(served, port=9)), 502, "unavailable", "nothing listens on port 9", "/ports")
    problem(daemon.get(url(served, port=65536)), 400, "invalid", "65536")
    problem(daemon.get(url(served, port="08000")), 400, "invalid", "08000")
    problem(daemon.get(url("nobody")), 404, "not_found")
    problem(daemon.get(url(served, port=8002)), 502, "unavailable", "does not answer in HTTP")
    with pytest.raises(http.client.IncompleteRead):
        daemon.get(url(served, "/cut"))
    with created(daemon) as other:
        assert daemon.post(f"/v1/workspaces/{other['name']}/suspend", {}).status == 200
        assert ports(daemon, other["name"]) == []
        problem(daemon.get(url(other["name"])), 409, "conflict", "no sandbox", "/exec")


@pytest.mark.once
def test_a_client_that_reads_slowly_holds_itself_up_alone(daemon, served):
    with contextlib.closing(daemon.connection()) as connection:
        connection.request("GET", url(served, "/big"), headers={"Size": str(64 << 20)})
        answer = connection.getresponse()
        assert answer.read(1000) == b"x" * 1000
        assert daemon.get(url(served, "/other")).status == 200
        rest = 0
        while piece := answer.read(1 << 20):
            rest += len(piece)
        assert rest == (64 << 20) - 1000
    # One that goes leaves nothing behind.
    with contextlib.closing(daemon.connection()) as connection:
        connection.request("GET", url(served, "/big"), headers={"Size": str(64 << 20)})
        connection.getresponse().read(10)
    assert daemon.get(url(served, "/other")).status == 200


def test_a_workspace_has_its_own_ports_and_no_way_to_make_init_connect(daemon, served):
    with created(daemon) as other:
        probe = ("import os, socket\n"
                 "for family, host in ((socket.AF_INET, '127.0.0.1'), (socket.AF_INET6, '::1')):\n"
                 "    with socket.socket(family) as s:\n"
                 "        try: print(s.connect_ex((host, 8000)) != 0)\n"
                 "        except OSError: print(True)\n"
                 "try: print(os.listdir('/proc/1/fd'))\n"
                 "except PermissionError: print(True)\n"
                 "with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:\n"
                 "    names = [line.split()[-1] for line in open('/proc/net/unix') if '/' in line]\n"
                 "    print([name for name in names if s.connect_ex(name) == 0] == [])\n")
        answer = daemon.post(f"/v1/workspaces/{other['name']}/exec", {"argv": ["python3", "-c", probe]}).json()
        assert answer["stdout"].split() == ["True"] * 4, answer
        mine = "import http.server, functools\n" \
               "class H(http.server.BaseHTTPRequestHandler):\n" \
               "    def do_GET(self): self.send_response(200); self.end_headers(); self.wfile.write(b'mine')\n" \
               "http.server.HTTPServer(('0.0.0.0', 8000), H).serve_forever()\n"
        serve(daemon, other["name"], mine)
        bound = {"Authorization": f"Bearer {new_token(daemon, other['name'])}"}
        assert daemon.get(url(other["name"]), headers=bound).body == b"mine"
        problem(daemon.get(url(served), headers=bound), 404, "not_found")
        problem(daemon.get(f"/v1/workspaces/{served}/ports", headers=bound), 404, "not_found")
        assert daemon.get(url(other["name"])).body == b"mine"
        assert daemon.get(url(served)).json()["path"] == "/"


@pytest.mark.parametrize("how", [pytest.param("removed", marks=pytest.mark.once), "suspended"])
def test_connections_end_with_the_sandbox(daemon, how):
    with created(daemon) as workspace:
        serve(daemon, workspace["name"])
        with upgraded(daemon, url(workspace["name"], port=8002), "carrel-tcp") as (sock, _, _):
            sock.sendall(b"hello")
            assert receive(sock, 5) == b"hello"
            if how == "removed":
                assert daemon.delete(f"/v1/workspaces/{workspace['name']}").status == 204
            else:
                assert daemon.post(f"/v1/workspaces/{workspace['name']}/suspend", {"force": True}).status == 200
            assert is_over(sock)
        status = daemon.get(url(workspace["name"])).status
        assert status == (404 if how == "removed" else 409)


@contextlib.contextmanager
def relaying(daemon, *arguments):
    """carrel port, until the block ends, and what it says first."""
    with daemon.start("port", *arguments, "-o", "json") as process:
        line = process.stdout.readline()
        assert line, process.stderr.read()
        yield process, json.loads(line)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == -signal.SIGINT


def test_carrel_port_lists_and_relays(daemon, served):
    table = daemon("port", served).stdout.splitlines()
    assert table[0].split() == ["PORT", "ADDRESS"] and table[1].split() == ["8000", "127.0.0.1"]
    assert json.loads(daemon("port", served, "-o", "json").stdout) == ports(daemon, served)
    with relaying(daemon, served, "8000", "--listen", ":0") as (_, told):
        host, _, port = told["listen"].rpartition(":")
        assert host == "127.0.0.1" and told["workspace"] == served and told["port"] == 8000
        for path in ("/one", "/two"):
            with contextlib.closing(http.client.HTTPConnection(host, int(port), timeout=60)) as connection:
                connection.request("GET", path)
                assert json.loads(connection.getresponse().read())["path"] == path
        taken = daemon("port", served, "8000", "--listen", told["listen"])
        assert taken.returncode == 125 and "in use" in taken.stderr
    with relaying(daemon, served, "8002", "--listen", "[::1]:0" if os.path.exists("/proc/net/if_inet6") else ":0") as (_, told):
        host, _, port = told["listen"].rpartition(":")
        with socket.create_connection((host.strip("[]"), int(port)), timeout=60) as sock:
            text = os.urandom(1 << 20)
            sender = threading.Thread(target=lambda: (sock.sendall(text), sock.shutdown(socket.SHUT_WR)))
            sender.start()
            assert receive(sock, len(text)) == text and sock.recv(1) == b""
            sender.join()


@pytest.mark.once
def test_carrel_port_says_what_is_wrong(daemon, served):
    for arguments, words in ((("nobody", "80"), "nobody"), ((served, "0"), "'0'"), ((served, "x"), "'x'"),
                             ((served, "80", "--listen", "80"), "--listen"), ((served, "--listen", ":0"), "PORT"),
                             ((served, "80", "--listen", "999.0.0.1:80"), "999.0.0.1")):
        answer = daemon("port", *arguments)
        assert answer.returncode == 125 and words in answer.stderr, answer
    with relaying(daemon, served, "9", "--listen", ":0") as (process, told):
        with socket.create_connection(("127.0.0.1", int(told["listen"].rpartition(":")[2])), timeout=60) as sock:
            assert is_over(sock)
        assert "nothing listens on port 9" in process.stderr.readline()
        assert f"carrel port {served}" in process.stderr.readline()


def test_a_core_that_is_killed_leaves_the_server_to_the_next_one(daemon, served):
    with upgraded(daemon, url(served, port=8002), "carrel-tcp") as (sock, _, _):
        daemon.kill_core()
        assert is_over(sock)
    assert daemon.get(url(served, "/after")).json()["path"] == "/after"
