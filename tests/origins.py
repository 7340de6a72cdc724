"""Servers on loopback that sandboxes reach by names of config.yaml: HTTP, and TLS with a certificate of an authority made here."""
import contextlib
import functools
import http.server
import shutil
import ssl
import subprocess
import threading

import pytest

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


class Files(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@contextlib.contextmanager
def origin(certificate=None, directory=None, address="127.0.0.1"):
    """A server on a free port; its requests are noted as (Host, path). It shows the files of a directory, or what was asked."""
    handler = functools.partial(Files, directory=directory) if directory else Handler
    server = http.server.ThreadingHTTPServer((address, 0), handler)
    server.daemon_threads = True
    server.requests, server.port = [], server.server_address[1]
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


def configure(home, **more):
    """config.yaml of a home that doesn't exist yet: all names lead to loopback."""
    home.mkdir(parents=True, exist_ok=True)
    lines = ["egress:", "  hosts:", *(f"    {name}: 127.0.0.1" for name in NAMES), *(f"  {key}: {value}" for key, value in more.items())]
    (home / "config.yaml").write_text("\n".join(lines) + "\n")
