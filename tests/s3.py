"""A real S3 server (versitygw's code) on a unix socket, a proxy on loopback before it that misbehaves as told, and calls of carrel-blob."""
import contextlib
import http.server
import json
import os
import pathlib
import subprocess
import tempfile
import threading

import pytest

from daemons import Connection, configure, new_directory, remove, serving
from harness import CARREL, IS_ROOT, TREE, eventually

KEY_ID, SECRET = "testkeyid", "testsecret-never-printed"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": KEY_ID, "AWS_SECRET_ACCESS_KEY": SECRET}
BUCKET = "carrel-tests"
NOBODY = 64199      # who isn't root: carrel-blob refuses to be


class Server:
    """The server with one bucket, in a directory of its own."""
    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.objects = self.directory / "objects" / BUCKET
        self.objects.mkdir(parents=True)
        (self.directory / "meta").mkdir()
        self.socket = self.directory / "socket"
        program = subprocess.run([TREE / "tools/install-s3-server"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
        # It changes to the objects. An address has room for 107 bytes, too few for the whole path.
        self.process = subprocess.Popen([program, "../socket", self.objects.parent, self.directory / "meta"], env=CREDENTIALS,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
        assert eventually(lambda: self.answers() or self.process.poll() is not None) and self.process.poll() is None

    def answers(self):
        with contextlib.suppress(OSError), contextlib.closing(Connection(self.socket)) as connection:
            connection.connect()
            return True
        return False

    def files(self):
        """What the server shows, by key: its own directory for parts isn't an object."""
        return {str(path.relative_to(self.objects)): path.read_bytes() for path in self.objects.rglob("*")
                if path.is_file() and ".sgwtmp" not in path.parts}

    def pending(self):
        """Uploads that are neither completed nor aborted."""
        return [path for path in self.objects.glob(".sgwtmp/multipart/*/*") if path.is_dir()]

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Proxy(http.server.ThreadingHTTPServer):
    """Passes requests on to the server. `rule(method, path, count)` may return, instead of None: a status, or "stall",
    "drop", "half" (of the answer's body), "flip" (a byte of it), "lost" (the request is carried out, the answer isn't sent)."""
    daemon_threads = True

    def __init__(self, server):
        super().__init__(("127.0.0.1", 0), Handler)
        self.server, self.rule, self.seen = server, None, []
        self.uploaded = 0       # bytes of all request bodies
        self.released = threading.Event()
        self.thread = threading.Thread(target=self.serve_forever, args=(0.02,))
        self.thread.start()

    def handle_error(self, request, address):
        pass        # a client that went away is what some tests are about

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    @contextlib.contextmanager
    def misbehaving(self, rule):
        self.rule, self.seen = rule, []
        self.released.clear()
        try:
            yield self
        finally:
            self.rule = None
            self.released.set()

    def stop(self):
        self.released.set()
        self.shutdown()
        self.thread.join()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def fetch(self, body):
        connection = Connection(self.server.server.socket)
        connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            connection.putheader(name, value)
        connection.endheaders(body or None)
        answer = connection.getresponse()
        with contextlib.closing(connection):
            return answer.status, answer.getheaders(), answer.read()

    def handle_any(self):
        server = self.server
        server.seen.append((self.command, self.path))
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        server.uploaded += len(body)
        action = server.rule and server.rule(self.command, self.path, len(server.seen))
        if action in ("drop", "stall"):
            if action == "stall":
                server.released.wait(60)
            self.close_connection = True
            return
        if isinstance(action, int):
            text = b"" if self.command == "HEAD" else b"<Error><Code>Made</Code><Message>by a test</Message></Error>"
            self.send_response(action)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)
            return
        status, headers, data = self.fetch(body)
        if action == "lost":
            self.close_connection = True
            return
        if action == "flip":
            data = data[:-1] + bytes([data[-1] ^ 1])
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                self.send_header(name, value)
        length = dict((name.lower(), value) for name, value in headers).get("content-length", str(len(data)))
        self.send_header("Content-Length", length if self.command == "HEAD" else str(len(data)))
        self.end_headers()
        if action == "half":
            self.wfile.write(data[:len(data) // 2])
            self.close_connection = True
            return
        self.wfile.write(data)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_any


def settings(url, prefix="", **more):
    """What tells carrel-blob where the bucket is: its settings, and variables (in capitals)."""
    return {"blob_url": f"s3://{BUCKET}{prefix}", "blob_endpoint": url, "blob_path_style": True, **CREDENTIALS, **more}


def config(url, prefix=""):
    """The same in config.yaml."""
    return f"blob:\n  url: s3://{BUCKET}{prefix}\n  endpoint: {url}\n  path_style: true\n"


def start_blob(told, *words, data=None):
    """carrel-blob as the launcher starts it: settings at 0, data at 3, the answer at 4. `data` is an open file; a Popen."""
    code = ("import os, sys; told = int(sys.argv[1]); os.dup2(0, 3); os.dup2(told, 0); os.dup2(1, 4); os.closerange(5, 64);"
            "os.execv(sys.argv[2], sys.argv[2:])")
    env = {name: value for name, value in told.items() if name.isupper()}
    identity = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if IS_ROOT else {}
    # Leaks can't be looked for in a process that may not be traced.
    kept = {name: f"{value}:detect_leaks=0" for name, value in os.environ.items() if name == "ASAN_OPTIONS"}
    with tempfile.TemporaryFile() as settings:
        settings.write(json.dumps({name: value for name, value in told.items() if name not in env}).encode())
        settings.seek(0)
        return subprocess.Popen(["/usr/bin/python3", "-c", code, str(settings.fileno()), pathlib.Path(CARREL).with_name("carrel-blob"), *words],
                                env={**kept, **env}, pass_fds=[settings.fileno()], stdin=data or subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **identity)


def blob(env, *words, data=None):
    """Its answer. No credential is ever in it."""
    process = start_blob(env, *words, data=data)
    out, err = process.communicate(timeout=120)
    assert SECRET.encode() not in out + err
    answer = json.loads(out)
    assert (process.returncode == 0) == ("error" not in answer), (process.returncode, answer, err)
    return answer


@contextlib.contextmanager
def home_on(proxy, prefix="/shared"):
    """A daemon whose blob store is that bucket."""
    directory = new_directory()
    try:
        with serving(directory, env=CREDENTIALS) as daemon:
            yield configure(daemon, config(proxy.url, prefix))
    finally:
        remove(directory)


@pytest.fixture(scope="module")
def bucket(tmp_path_factory):
    """(the server, a proxy before it that can misbehave)."""
    server = Server(tmp_path_factory.mktemp("s3"))
    proxy = Proxy(server)
    yield server, proxy
    proxy.stop()
    server.stop()


@pytest.fixture(scope="module")
def near(bucket):
    """A home on the bucket; `far` is another one."""
    with home_on(bucket[1]) as daemon:
        yield daemon


@pytest.fixture(scope="module")
def far(bucket):
    with home_on(bucket[1]) as daemon:
        yield daemon
