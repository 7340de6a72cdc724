"""Servers on loopback that sandboxes reach by names of config.yaml: HTTP, and TLS with a certificate of an authority made here."""
import contextlib
import functools
import http.server
import shutil
import ssl
import subprocess
import threading

import pytest

from harness import CARREL

NAMES = ("origin.test", "www.origin.test", "other.test")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.requests.append((self.headers.get("Host"), self.path))
        body = f"{self.headers.get('Host')} {self.path}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


class Git(http.server.BaseHTTPRequestHandler):
    """git http-backend over server.directory."""
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.requests.append((self.headers.get("Host"), self.path))
        variables = {"GIT_PROJECT_ROOT": str(self.server.directory), "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path, "QUERY_STRING": query,
                     "REQUEST_METHOD": self.command, "CONTENT_TYPE": self.headers.get("Content-Type", ""), "CONTENT_LENGTH": str(len(body)),
                     "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""), "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                     "REMOTE_ADDR": "127.0.0.1", "PATH": "/usr/bin:/bin", "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
        done = subprocess.run(["git", "http-backend"], input=body, stdout=subprocess.PIPE, env=variables, check=True).stdout
        head, _, body = done.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.send_response(int(fields.pop("Status", "200").split()[0]))
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, *args):
        pass


class Files(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@contextlib.contextmanager
def origin(certificate=None, directory=None, address="127.0.0.1", handler=None, port=0):
    """A server on a free port; its requests are noted as (Host, path). It shows the files of a directory, or what was asked."""
    handler = handler or (functools.partial(Files, directory=directory) if directory else Handler)
    server = http.server.ThreadingHTTPServer((address, port), handler)
    server.daemon_threads = True
    server.requests, server.port, server.directory = [], server.server_address[1], directory
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate / "server.pem", certificate / "server.key")
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def make_certificates(directory):
    """ca.pem, server.pem and server.key for all names."""
    openssl = shutil.which("openssl")
    if not openssl:
        pytest.skip("no openssl")

    def call(*words):
        subprocess.run([openssl, *words], check=True, cwd=directory, capture_output=True)
    (directory / "names").write_text("subjectAltName=" + ",".join(f"DNS:{name}" for name in NAMES) + "\n")
    call("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=test authority",
         "-keyout", "ca.key", "-out", "ca.pem")
    call("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=origin.test", "-keyout", "server.key", "-out", "request")
    call("x509", "-req", "-in", "request", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names", "-out", "server.pem")
    return directory


def on_host_with(directory, mounts):
    """A program that is carrel on a host with other directories in these places: in a mount namespace of its own, so as root alone."""
    program = directory / "program"
    binds = "".join(f"mount --bind {source} {place} && " for place, source in mounts.items())
    program.write_text(f'#!/bin/sh\nexec unshare --mount sh -c \'{binds}exec {CARREL} "$@"\' sh "$@"\n')
    for path in (directory, program, *mounts.values()):
        path.chmod(0o755)
    return program


def trusting(directory, certificates):
    """The same on a host which trusts this authority."""
    trusted = directory / "trusted"
    shutil.copytree("/etc/ssl/certs", trusted, ignore_dangling_symlinks=True)
    name = subprocess.run(["openssl", "x509", "-noout", "-hash", "-in", certificates / "ca.pem"], check=True, capture_output=True, text=True).stdout.strip()
    shutil.copy(certificates / "ca.pem", trusted / f"{name}.0")
    (trusted / f"{name}.0").chmod(0o644)
    return on_host_with(directory, {"/etc/ssl/certs": trusted})


def configure(home, **more):
    """config.yaml of a home that doesn't exist yet: all names lead to loopback."""
    home.mkdir(parents=True, exist_ok=True)
    lines = ["egress:", "  hosts:", *(f"    {name}: 127.0.0.1" for name in NAMES), *(f"  {key}: {value}" for key, value in more.items())]
    (home / "config.yaml").write_text("\n".join(lines) + "\n")
