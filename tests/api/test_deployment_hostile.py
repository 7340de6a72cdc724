"""Attacks of packages and of their clients: archives with links and devices, requests that hide another, credentials, neighbours."""
# security: services
import contextlib
import io
import json
import tarfile

import pytest
from harness import eventually
from packages_made import make
from rollouts import deploy, left

MIRROR = """
import http.server, json, os, socket
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        body = self.rfile.read(int(self.headers.get('Content-Length') or 0)).decode()
        said = {'path': self.path, 'method': self.command, 'headers': [[k.lower(), v] for k, v in self.headers.items()], 'body': body}
        if self.path.startswith('/reach/'):
            try:
                socket.create_connection(('127.0.0.1', int(self.path[7:])), 5).close()
                said['reached'] = True
            except OSError as error:
                said['reached'] = str(error)
        said['environment'] = dict(os.environ)
        body = json.dumps(said).encode()
        self.send_response(200)
        for name, value in (('Set-Cookie', 'a=b; Path=/; Domain=localhost'), ('Clear-Site-Data', '"*"'), ('Service-Worker-Allowed', '/'),
                            ('WWW-Authenticate', 'Basic realm="carreld"'),
                            ('Location', '/other'), ('Content-Length', str(len(body)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
    do_POST = do_GET
    def log_message(self, *args):
        pass
http.server.ThreadingHTTPServer(('127.0.0.1', int(os.environ['PORT'])), Handler).serve_forever()
"""
URL = "/v1/deployments/mirror/rest"


def mirror(port):
    return make({"agent.yaml": f"name: mirror\nversion: 1.0.0\nrest:\n  command: python3 src/server.py\n  port: {port}\n", "src/server.py": MIRROR})


@pytest.fixture(scope="module")
def served(daemon):
    """Two deployments: `mirror` tells what it was asked, `secret` has a port and a variable of its own."""
    deploy(daemon, mirror(8000), agent="mirror")
    deploy(daemon, mirror(8123), agent="secret", env={"SECRET": "of another"})
    yield daemon
    for name in ("mirror", "secret"):
        assert daemon.delete(f"/v1/deployments/{name}").status == 204
    assert eventually(lambda: not left(daemon))


def tar(*members):
    """A package that has all it needs, and these: (name, type, target or text, mode)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, text in (("agent.yaml", "name: greeter\nversion: 1.0.0\nrest: {command: x}\n"), ("src/server.py", "")):
            if name not in [member[0] for member in members]:
                entry = tarfile.TarInfo(name)
                entry.size = len(text)
                archive.addfile(entry, io.BytesIO(text.encode()))
        for name, type_, target, mode in members:
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = type_, mode
            text = target.encode() if type_ == tarfile.REGTYPE else b""
            entry.size, entry.linkname = len(text), "" if text else target
            archive.addfile(entry, io.BytesIO(text))
    return out.getvalue()


@pytest.mark.parametrize("members, words", [
    ([("src/hard", tarfile.LNKTYPE, "/etc/passwd", 0o644)], "'src/hard'"),
    ([("null", tarfile.CHRTYPE, "", 0o666)], "'null'"),
    ([("pipe", tarfile.FIFOTYPE, "", 0o666)], "'pipe'"),
    ([("root", tarfile.REGTYPE, "", 0o4755)], "'root'"),
    ([("d", tarfile.SYMTYPE, "src", 0o777), ("d/../../x", tarfile.REGTYPE, "", 0o644)], "x'"),
    ([("agent.yaml", tarfile.SYMTYPE, "/proc/1/environ", 0o777)], "agent.yaml"),
    ([("agent.yaml", tarfile.SYMTYPE, "../../../../../../etc/shadow", 0o777)], "agent.yaml"),
    ([("agent.yaml", tarfile.DIRTYPE, "", 0o755)], "agent.yaml"),
], ids=["hard link", "device", "pipe", "setuid", "through a link", "manifest as link", "manifest as link out", "manifest as directory"])
def test_hostile_archives_are_refused_by_name(served, members, words):
    shown = deploy(served, tar(*members), status="failed")
    assert words in shown["error"], shown
    assert served.delete("/v1/deployments/greeter").status == 204
    assert eventually(lambda: {one["labels"]["package_id"] for one in left(served)} == {"mirror@1.0.0", "secret@1.0.0"})


@pytest.mark.parametrize("manifest, words", [
    ("name: greeter\nversion: 1.0.0\nrest: {command: x, port: 0}\n", "port"),
    ("name: greeter\nversion: 1.0.0\nrest: {command: x, env: {LD_PRELOAD: x, 'A=B': c}}\n", "A=B"),
    ("name: greeter\nversion: 1.0.0\nrest: {command: x, limits: {memory: 64M}, network: open}\n", "network"),
    ("name: greeter\nversion: 1.0.0\nrest: {command: x, health: 'http://elsewhere/'}\n", "health"),
    ("name: greeter\nversion: 1.0.0\nrest: {command: x, health: \"/a\\r\\nX: y\"}\n", "health"),
    ("a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(9 * ['*' + chr(97 + n)])}]\n" for n in range(9)), "agent.yaml"),
    ("a: " + "[" * 5000, "agent.yaml"),
    ("name: greeter\nversion: 1.0.0\nrest: {command: \"" + "x" * 70000 + "\"}\n", "agent.yaml"),
    ("name: greeter\nname: other\nversion: 1.0.0\nrest: {command: x}\n", "line 2"),
])
def test_hostile_manifests_are_refused_by_name(served, manifest, words):
    shown = deploy(served, make({"agent.yaml": manifest}), status="failed")
    assert words in shown["error"], shown
    assert served.delete("/v1/deployments/greeter").status == 204


def test_credentials_of_the_daemon_stay_here(served):
    token = served.post("/v1/tokens", {"name": "one", "scope": "user"}).json()["text"]
    headers = {"Authorization": f"Bearer {token}", "X-Forwarded-For": "10.0.0.1", "X-Forwarded-Prefix": "/evil", "Forwarded": "for=x",
               "Proxy-Authorization": "Basic eDp5", "Connection": "x-private", "X-Private": "1", "Cookie": "own=1"}
    answer = served.get(f"{URL}/a", headers=headers)
    said = answer.json()
    seen = dict(map(tuple, said["headers"]))
    assert token not in answer.body.decode() and seen["host"] == "localhost:8000" and seen["cookie"] == "own=1"
    assert not {"authorization", "proxy-authorization", "forwarded", "x-forwarded-for", "x-private"} & set(seen), seen
    assert seen["x-forwarded-prefix"] == URL
    # What a browser would keep for the whole daemon, or send to others, is of this surface alone.
    assert answer.headers.get_all("Set-Cookie") == [f"a=b; Path={URL}/"] and answer.headers["Location"] == f"{URL}/other"
    assert not {"clear-site-data", "service-worker-allowed", "www-authenticate"} & {name.lower() for name in answer.headers}
    assert not [name for name in said["environment"] if "TOKEN" in name or name == "CARREL_HOME"]


def send(daemon, data):
    """All that is answered to these bytes."""
    with contextlib.closing(daemon.connection(timeout=60)) as connection:
        connection.connect()
        connection.sock.sendall(data)
        connection.sock.shutdown(1)
        answer = b""
        with contextlib.suppress(ConnectionError):
            while piece := connection.sock.recv(65536):
                answer += piece
    return answer


@pytest.mark.parametrize("head, body", [
    (b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", b"0\r\n\r\nGET /v1/tokens HTTP/1.1\r\nHost: x\r\n\r\n"),
    (b"Content-Length: 4\r\nContent-Length: 40\r\n", b"GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n"),
    (b"Transfer-Encoding: chunked, identity\r\n", b"0\r\n\r\nGET /hidden HTTP/1.1\r\nHost: x\r\n\r\n"),
    (b"Transfer-Encoding: xchunked\r\n", b"0\r\n\r\nGET /hidden HTTP/1.1\r\nHost: x\r\n\r\n"),
    (b"Content-Length : 4\r\n", b"GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n"),
    (b"X: y\r\n Content-Length: 4\r\n", b"GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n"),
    (b"X: y\nContent-Length: 0\n\nGET /hidden HTTP/1.1\r\n", b""),
])
def test_a_request_hides_no_other(served, head, body):
    answer = send(served, b"POST /v1/deployments/mirror/rest/a HTTP/1.1\r\nHost: localhost\r\n" + head + b"\r\n" + body)
    assert answer.startswith(b"HTTP/1.1 4") and b'"path"' not in answer, answer


def test_a_body_is_no_second_request(served):
    hidden = b"GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n"
    answer = send(served, b"POST /v1/deployments/mirror/rest/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(hidden) + hidden)
    assert answer.count(b"HTTP/1.1 ") == 1 and answer.startswith(b"HTTP/1.1 200")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["body"] == hidden.decode()


def test_a_link_of_a_package_leads_nowhere_but_into_its_sandbox(served, tmp_path):
    """A tar may have links. Whatever they name, it is looked for inside."""
    (tmp_path / "secret").write_text("of the host")
    data = tar(("out", tarfile.SYMTYPE, str(tmp_path), 0o777), ("up", tarfile.SYMTYPE, "../../../../../../" + str(tmp_path), 0o777),
               ("agent.yaml", tarfile.REGTYPE, "name: greeter\nversion: 1.0.0\nrest:\n  command: cat out/secret up/secret\n", 0o644))
    deploy(served, data, status="failed")
    log = served.get("/v1/deployments/greeter/logs").body
    assert log.count(b"No such file or directory") == 2 and b"of the host" not in log, log
    assert served.delete("/v1/deployments/greeter").status == 204


def test_a_path_leads_to_no_other_route(served):
    for path in ("../../secret/rest/x", "%2e%2e/%2e%2e/secret/rest/x", "..%2f..%2fsecret/rest", "//secret", "a/../../../../tokens"):
        answer = served.get(f"{URL}/{path}")
        assert answer.status in (400, 404) or json.loads(answer.body)["environment"].get("SECRET") is None, (path, answer)


def test_a_surface_reaches_no_other(served):
    assert served.get(f"{URL}/reach/8000").json()["reached"] is True    # itself
    assert "refused" in served.get(f"{URL}/reach/8123").json()["reached"]
    assert "SECRET" not in served.get(f"{URL}/x").json()["environment"]
    assert served.get("/v1/deployments/secret/rest/x").json()["environment"]["SECRET"] == "of another"
