"""Clients that speak more than one request and answer, through a list: git, requests of pip, a websocket."""
# security: network
import base64
import contextlib
import hashlib
import http.server
import json
import shutil
import subprocess

import pytest
from harness import PATH, Carrel
from origins import Git, configure, make_certificates, origin

BARE = "unset HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy;"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    directory = tmp_path_factory.mktemp("clients")
    configure(directory / "carrel")
    carrel = Carrel(directory)
    carrel.certificates = make_certificates(tmp_path_factory.mktemp("certificates"))
    carrel.bind = ("-v", f"{carrel.certificates}/ca.pem:/workspace/ca.pem:ro")
    return carrel


def sh(site, script, *servers):
    listed = [word for server in servers for word in ("--allow-domain", f"origin.test:{server.port}")]
    done = site.sh("set -e\n" + script, *listed, *site.bind)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """A bare one with a file of a megabyte that can't be compressed; the directory it is in, and its commit."""
    directory = tmp_path_factory.mktemp("git")

    def git(*words, **how):
        identity = ["-c", "user.name=t", "-c", "user.email=t@t"]
        return subprocess.run(["git", "-C", directory, *identity, *words], check=True, stdout=subprocess.PIPE, env={"PATH": PATH, "HOME": str(directory)}, **how).stdout
    git("init", "-q", "--bare", "repo.git")
    there = ["--git-dir", str(directory / "repo.git")]
    data = b"".join(hashlib.sha512(bytes([i % 256, i // 256])).digest() for i in range(16384))
    blob = git(*there, "hash-object", "-w", "--stdin", input=data).decode().strip()
    tree = git(*there, "mktree", input=f"100644 blob {blob}\tdata\n".encode()).decode().strip()
    commit = git(*there, "commit-tree", tree, "-m", "one").decode().strip()
    git(*there, "update-ref", "refs/heads/main", commit)
    git(*there, "symbolic-ref", "HEAD", "refs/heads/main")
    git(*there, "config", "http.receivepack", "true")
    return directory, commit, hashlib.sha256(data).hexdigest()


@pytest.mark.skipif(not shutil.which("git", path=PATH), reason="no git")
@pytest.mark.parametrize("way", ["proxy", "names"])
def test_git_clones_and_pushes_over_https(site, repository, way):
    directory, commit, digest = repository
    with origin(site.certificates, directory, handler=Git) as server:
        url = f"https://origin.test:{server.port}/repo.git"
        shown = sh(site, f"""{BARE if way == "names" else ""}
            export GIT_SSL_CAINFO=$PWD/ca.pem HOME=/tmp
            git clone -q {url} /tmp/repo && cd /tmp/repo
            git rev-parse HEAD; sha256sum data
            git -c user.name=t -c user.email=t@t commit -q --allow-empty -m two
            git push -q origin HEAD:refs/heads/{way}
            ! git ls-remote https://other.test:{server.port}/repo.git 2>/dev/null
        """, server)
        assert shown.split() == [commit, digest, "data"]
        assert {host for host, _ in server.requests} == {f"origin.test:{server.port}"}
    pushed = subprocess.run(["git", "--git-dir", directory / "repo.git", "log", "--format=%s", way], check=True, stdout=subprocess.PIPE).stdout
    assert pushed == b"two\none\n"


class Echo(http.server.BaseHTTPRequestHandler):
    """A websocket that sends each frame back."""
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        key = self.headers["Sec-WebSocket-Key"].encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key).digest()).decode())
        self.end_headers()
        self.close_connection = True
        with contextlib.suppress(OSError):
            while data := self.connection.recv(4096):
                self.connection.sendall(data)

    def log_message(self, *args):
        pass


SOCKET = r"""
import os, socket, ssl, sys
way, port, is_tls = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "tls"
address = ("127.0.0.1", 3128) if way != "names" else ("origin.test", port)
s = socket.create_connection(address, timeout=60)
if way == "connect":
    s.sendall(f"CONNECT origin.test:{port} HTTP/1.1\r\nHost: origin.test:{port}\r\n\r\n".encode())
    assert b" 200 " in s.recv(4096)
if is_tls:
    s = ssl.create_default_context(cafile="ca.pem").wrap_socket(s, server_hostname="origin.test")
s.sendall(f"GET /socket HTTP/1.1\r\nHost: origin.test:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
          "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode())
answer = b""
while b"\r\n\r\n" not in answer and (more := s.recv(1)):
    answer += more
assert answer.startswith(b"HTTP/1.1 101 ") and b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in answer, answer
for word in (b"one", b"two"):
    frame = bytes([0x81, 0x80 | len(word)]) + bytes(4) + word
    s.sendall(frame)
    got = b""
    while len(got) < len(frame) and (more := s.recv(100)):
        got += more
    print((got[6:] if got == frame else got).decode())
"""


def test_a_websocket_passes(site):
    """In a tunnel of the proxy and by names, with TLS and without."""
    with origin(site.certificates, handler=Echo) as tls, origin(handler=Echo) as plain:
        script = "".join(f"python3 echo.py {way} {server.port} {kind}\n" for way, server, kind in
                         (("connect", tls, "tls"), ("names", tls, "tls"), ("connect", plain, "plain"), ("names", plain, "plain")))
        assert sh(site, f"cat >echo.py <<'END'\n{SOCKET}END\n{script}", tls, plain) == "one\ntwo\n" * 4


@pytest.mark.once
def test_requests_of_python(site):
    """Those that pip carries: with a session, by the proxy's variables and without them."""
    if subprocess.run(["/usr/bin/python3", "-c", "from pip._vendor import requests"], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("no pip")
    program = """from pip._vendor import requests
session = requests.Session()
session.verify = "ca.pem"
for path in ("/a", "/b"): print(session.get("https://origin.test:%d" + path, timeout=60).text.split()[1])
try: print(session.get("https://other.test:%d/closed", timeout=60).status_code)
except requests.exceptions.ConnectionError: print("refused")"""
    with origin(site.certificates) as server:
        call = f"/usr/bin/python3 -c '{program % (server.port, server.port)}'\n"
        assert sh(site, f"{call} {BARE} {call}", server).split() == ["/a", "/b", "refused"] * 2


@pytest.mark.once
@pytest.mark.skipif(not shutil.which("git", path=PATH), reason="no git")
def test_a_clone_ends_at_its_largest_size(site, repository, tmp_path):
    """max_clone_size_mb bounds what one connection to a remote brings, in a tunnel and in plain HTTP; others are not bounded."""
    def run(megabytes, server, *command):
        sources = {"git": {"allowed_remotes": [f"http://origin.test:{server.port}/*"], "max_clone_size_mb": megabytes}}
        (tmp_path / "sources.json").write_text(json.dumps(sources))
        listed = [word for name in ("origin.test", "other.test") for word in ("--allow-domain", f"{name}:{server.port}")]
        return site.run("--sources", tmp_path / "sources.json", *listed, "--", *command)

    with origin(directory=repository[0], handler=Git) as server:
        clone = ("git", "clone", "-q", f"http://origin.test:{server.port}/repo.git", "/tmp/repo")
        done = run(2, server, *clone)
        assert done.returncode == 0, done
        done = run(1, server, *clone)
        assert done.returncode != 0 and "ended after 1 MB, git.max_clone_size_mb" in done.stderr, done
    (tmp_path / "large").write_bytes(bytes(3 << 20))
    with origin(site.certificates, tmp_path) as server:
        done = run(2, server, "curl", "-sk", "-o", "/tmp/x", f"https://origin.test:{server.port}/large")
        assert done.returncode != 0 and "git.max_clone_size_mb" in done.stderr, done
        done = run(2, server, "curl", "-sk", "-o", "/tmp/x", f"https://other.test:{server.port}/large")
        assert done.returncode == 0, done
