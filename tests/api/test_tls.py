"""TLS: certificates made, used, renewed and refused; clients with certificates; broken handshakes."""
# security: doors
import contextlib
import http.client
import json
import os
import pathlib
import re
import socket
import ssl
import struct
import subprocess

import pytest

from daemons import Answer, serving_anew
from doors import open_door
from harness import NOT_AHEAD, eventually, one_line
from rest import problem
from websockets import PROTOCOL, WebSocket

openssl = lambda *words: subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, text=True).stdout


def made(carrel, directory, *words):
    done = carrel("tls", "init", directory, "-o", "json", *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@contextlib.contextmanager
def opened():
    with serving_anew() as daemon:
        files = made(daemon, daemon.home / "tls", "--name", "desk.example")
        context = ssl.create_default_context(cafile=files["ca"])
        door = open_door(daemon, "--tls-cert", files["certificate"], "--tls-key", files["key"], context=context)
        door.files = files
        yield door


@pytest.fixture(scope="module")
def door():
    with opened() as door:
        yield door


@pytest.fixture
def own_door():
    with opened() as door:
        yield door


def test_what_init_makes(door):
    files = door.files
    assert all(os.stat(files[key]).st_mode & 0o777 == mode for key, mode in
               (("ca", 0o644), ("ca_key", 0o600), ("certificate", 0o644), ("key", 0o600)))
    assert "OK" in openssl("verify", "-CAfile", files["ca"], "-purpose", "sslserver", "-verify_hostname", "desk.example", files["certificate"])
    assert "OK" in openssl("verify", "-CAfile", files["ca"], "-verify_ip", "127.0.0.1", files["certificate"])
    done = door.daemon("tls", "init", door.daemon.home / "tls")
    assert done.returncode == 125 and "--renew" in one_line(done.stderr, "already")
    done = door.daemon("tls", "init", door.daemon.home / "other", "--name", "a b")
    assert done.returncode == 125
    one_line(done.stderr, "'a b'")


def test_requests_bodies_and_files_over_tls(door):
    assert door.get("/v1/workspaces").status == 200
    problem(door.get("/v1/workspaces", bearer=False), 401, "unauthenticated")
    made = door.post("/v1/workspaces", {"name": "w"})
    assert made.status == 201, made
    data = os.urandom(1 << 20) * 3
    assert door.request("PUT", "/v1/workspaces/w/files/data", data).status == 201
    assert door.get("/v1/workspaces/w/files/data").body == data
    assert door.post("/v1/workspaces/w/exec", {"command": "cat data | wc -c"}).json()["stdout"].strip() == str(len(data))
    with contextlib.closing(door.connection()) as kept:         # one connection, many requests, big and small
        for path in ("/healthz", "/v1/workspaces/w/files/data", "/openapi.json", "/healthz"):
            kept.request("GET", path, headers={"Authorization": f"Bearer {door.token}"})
            answer = kept.getresponse()
            assert answer.status == 200 and answer.read()
    assert door.request("DELETE", "/v1/workspaces/w").status == 204


def early_data(door):
    """What tickets of the daemon say: bytes that may come before the handshake is over."""
    with subprocess.Popen(["openssl", "s_client", "-connect", "{}:{}".format(*door.address()), "-tls1_3"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as client:
        said = ""
        for line in client.stdout:      # a ticket comes after the handshake
            said += line
            if "Max Early Data" in line:
                break
        client.kill()
    return re.findall(r"Max Early Data: (\d+)", said)


@pytest.mark.once
def test_versions_renegotiation_and_protocols(door):
    host, port = door.address()
    assert door.context.wrap_socket(socket.create_connection((host, port)), server_hostname=host).version() == "TLSv1.3"

    def say(*words, text=""):
        return subprocess.run(["openssl", "s_client", "-connect", f"{host}:{port}", *words], input=text, capture_output=True,
                              text=True, timeout=60)
    assert "Protocol  : TLSv1.2" in say("-tls1_2").stdout
    for version in ("-tls1", "-tls1_1"):
        assert say(version, "-cipher", "ALL:@SECLEVEL=0").returncode != 0
    assert "Compression: NONE" in say("-tls1_2").stdout
    assert early_data(door) == ["0"]        # of each ticket: a later connection may send none
    assert "no renegotiation" in say("-tls1_2", text="R\n").stderr.lower()
    assert say("-alpn", "h2").returncode != 0
    assert door.get("/healthz").status == 200


@pytest.mark.once
def test_garbage_and_half_handshakes_hold_up_nobody(door):
    host, port = door.address()
    hello = ssl.MemoryBIO(), ssl.MemoryBIO()
    shaking = door.context.wrap_bio(*hello, server_hostname=host)
    with pytest.raises(ssl.SSLWantReadError):
        shaking.do_handshake()
    first = hello[1].read()
    with contextlib.ExitStack() as stack:
        for text in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\xff\xff" + b"\0" * 500, os.urandom(300), b"\x80\x2e\x01\x03\x01", b"\x16"):
            client = stack.enter_context(socket.create_connection((host, port), 60))
            client.sendall(text)
            if len(text) > 5 and text[0] != 0x80:
                with contextlib.suppress(OSError):      # it may be reset already
                    client.shutdown(socket.SHUT_WR)
                    while client.recv(1000):        # an alert perhaps, then the end
                        pass
        for length in (1, 5, len(first) // 2, len(first)):
            client = stack.enter_context(socket.create_connection((host, port), 60))
            client.sendall(first[:length])
        assert door.get("/v1/workspaces").status == 200
    assert door.get("/v1/workspaces").status == 200


@pytest.mark.once
@pytest.mark.needs_root     # /proc of core
def test_clients_that_vanish_leave_nothing(own_door):
    """In the middle of a handshake, of a head, a body, a stream, a command: reset, a hundred at once."""
    door = own_door     # in which no workspace is made ahead, with descriptors that come late
    made, core = door.post("/v1/workspaces", {"limits": NOT_AHEAD}).headers["Location"], door.daemon.core_pid()
    descriptors = lambda: len(os.listdir(f"/proc/{core}/fd"))
    run = b'{"argv":["sleep","1000"]}'
    head = f"Host: localhost\r\nAuthorization: Bearer {door.token}\r\n"
    texts = [None, b"GET /v1/workspaces HTTP/1.1\r\nAuthor", f"GET /v1/events HTTP/1.1\r\n{head}\r\n".encode(),
             f"PUT {made}/files/half HTTP/1.1\r\n{head}Content-Length: 1000000\r\n\r\nhalf".encode(),
             f"POST {made}/exec HTTP/1.1\r\n{head}Content-Type: application/json\r\nContent-Length: {len(run)}\r\n\r\n".encode() + run]
    assert door.post(f"{made}/exec", {"argv": ["true"]}).status == 200
    before = descriptors()
    with contextlib.ExitStack() as stack:
        for number in range(100):
            client = stack.enter_context(socket.create_connection(door.address(), 60))
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            text = texts[number % len(texts)]
            if text is None:
                client.sendall(b"\x16\x03\x01\x02\x00\x01")
                continue
            client = stack.enter_context(door.context.wrap_socket(client, server_hostname=door.address()[0]))
            client.sendall(text)
    assert eventually(lambda: descriptors() < before + 20)      # so many of each kind have gone; core keeps four ready for the next command
    running = lambda: [one for one in door.get(f"{made}/execs").json()["items"] if one["state"] != "ended"]
    assert eventually(lambda: not running())
    assert door.get(f"{made}/files/half").status == 404
    assert door.request("DELETE", made).status == 204


def serial(door):
    host, port = door.address()
    with door.context.wrap_socket(socket.create_connection((host, port), 60), server_hostname=host) as client:
        return client.getpeercert()["serialNumber"]


def served_certificates(door):
    said = subprocess.run(["openssl", "s_client", "-connect", "{}:{}".format(*door.address()), "-showcerts"], input="", capture_output=True, text=True,
                          timeout=60).stdout
    return said.count("BEGIN CERTIFICATE")


def test_a_renewed_certificate_is_used_and_open_connections_go_on(door):
    before = serial(door)
    with contextlib.closing(door.connection()) as kept:
        kept.request("GET", "/healthz")
        assert kept.getresponse().read()
        made(door.daemon, door.daemon.home / "tls", "--renew")
        assert eventually(lambda: serial(door) != before, 60)
        kept.request("GET", "/healthz")
        assert kept.getresponse().status == 200
    before = serial(door)
    key, text = pathlib.Path(door.files["key"]), pathlib.Path(door.files["key"]).read_text()
    key.write_text(pathlib.Path(door.files["ca_key"]).read_text())       # of another certificate
    assert eventually(lambda: "new certificates are not used" in door.daemon.log(), 60)
    assert serial(door) == before
    key.write_text(text)
    done = door.daemon("serve", "--reload")
    assert done.returncode == 0, done.stderr
    assert serial(door) == before


def test_a_certificate_that_is_gone_is_said_and_the_last_one_stays(door):
    before, path = serial(door), pathlib.Path(door.files["certificate"])
    path.rename(path.with_suffix(".away"))
    try:
        assert eventually(lambda: "certificates can't be read" in door.daemon.log() and "No such file" in door.daemon.log(), 60)
        assert serial(door) == before
    finally:
        path.with_suffix(".away").rename(path)


@pytest.mark.parametrize("damage", [lambda pem: pem.replace("MII", "M*I", 1), lambda pem: pem[:len(pem) // 2]])
def test_a_chain_that_is_damaged_behind_its_first_certificate_is_not_used(door, damage):
    before, log = serial(door), len(door.daemon.log())
    path = pathlib.Path(door.files["certificate"])
    text, other = path.read_text(), pathlib.Path(door.files["ca"]).read_text()
    path.write_text(text + damage(other))
    try:
        assert eventually(lambda: "new certificates are not used" in door.daemon.log()[log:], 60)
        assert serial(door) == before
    finally:
        path.write_text(text + other)
    assert eventually(lambda: served_certificates(door) == 2, 60)
    path.write_text(text)
    assert eventually(lambda: served_certificates(door) == 1, 60)


@pytest.mark.parametrize("options, said", [
    (("--tls-cert", "{certificate}"), "--tls-key"), (("--tls-client-ca", "{ca}"), "--tls-cert"),
    (("--tls-cert", "{ca_key}x", "--tls-key", "{key}"), "ca-key.pemx"),
    (("--tls-cert", "{ca}", "--tls-key", "{key}"), "the key")])
def test_files_that_do_not_fit_keep_it_from_starting(carrel, door, options, said):
    done = carrel("serve", *(word.format(**door.files) for word in options))
    assert done.returncode == 125 and said in done.stderr, done.stderr


@pytest.mark.once
def test_clients_with_certificates(door):
    """Mutual TLS: the subject is the principal, a token may be another; without a certificate there is no connection."""
    daemon, directory = door.daemon, door.daemon.home / "clients"
    files = made(daemon, directory)
    contexts = {}
    # Two write the name of another in one value and in one RDN.
    subjects = {"ci": "/O=A Lab/CN=ci", "stranger": "/O=A Lab/CN=stranger", "comma": "/CN=ci,O=A Lab", "plus": "/O=A Lab+CN=ci"}
    for name, subject in subjects.items():
        key, request, certificate = (directory / f"{name}.{kind}" for kind in ("key", "csr", "pem"))
        openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", request,
                "-multivalue-rdn", "-subj", subject)
        openssl("x509", "-req", "-in", request, "-CA", files["ca"], "-CAkey", files["ca_key"], "-CAcreateserial", "-days", 2, "-out", certificate)
        contexts[name] = ssl.create_default_context(cafile=door.files["ca"])
        contexts[name].load_cert_chain(certificate, key)
    pathlib.Path(daemon.env["CARREL_HOME"], "config.yaml").write_text('access:\n  subjects:\n    "CN=ci,O=A Lab": user\n')
    daemon.stop_serving()
    options, daemon.options = daemon.options, daemon.options + ("--tls-client-ca", files["ca"])
    daemon.log_path.write_text("")
    daemon.start_serving()
    plain, door.context = door.context, contexts["ci"]
    assert door.get("/v1/workspaces", bearer=False).status == 200
    problem(door.get("/v1/tokens", bearer=False), 403, "denied", "subject CN=ci,O=A Lab")
    # A browser adds the certificate to what any page asks for, and a server in a workspace may have written the page.
    for headers in ({"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "cross-site"}, {"Referer": "https://localhost/v1/workspaces/w/ports/80/"}):
        problem(door.get("/v1/workspaces", bearer=False, headers=headers), 401, "unauthenticated", "page")
        assert door.get("/v1/workspaces", headers=headers).status == 200
        assert door.get("/openapi.json", bearer=False, headers=headers).status == 200
    assert door.get("/v1/workspaces", bearer=False, headers={"Sec-Fetch-Site": "none"}).status == 200
    assert door.get("/v1/tokens").status == 200
    problem(door.get("/v1/workspaces", headers={"Authorization": "Bearer x"}), 401, "unauthenticated")
    door.context = contexts["stranger"]
    problem(door.get("/v1/workspaces", bearer=False), 401, "unauthenticated", "CN=stranger,O=A Lab")
    assert door.get("/v1/workspaces").status == 200
    for name, shown in (("comma", r"CN=ci\,O\=A Lab"), ("plus", "+")):
        door.context = contexts[name]
        answer = door.get("/v1/workspaces", bearer=False)
        problem(answer, 401, "unauthenticated", "access.subjects")
        assert shown.replace(r"\=", "=") in answer.json()["detail"], answer.body
    door.context = plain
    with pytest.raises((ssl.SSLError, OSError, http.client.HTTPException)):
        door.get("/healthz")
    pathlib.Path(daemon.env["CARREL_HOME"], "config.yaml").unlink()
    daemon.stop_serving()
    daemon.options = options
    daemon.log_path.write_text("")
    daemon.start_serving()


def test_limits_of_connections_and_requests(door):
    daemon = door.daemon
    pathlib.Path(daemon.env["CARREL_HOME"], "config.yaml").write_text("serve:\n  connections: 2\n")
    daemon.stop_serving()
    daemon.log_path.write_text("")
    daemon.start_serving()
    with contextlib.ExitStack() as stack:
        for status in (200, 200, 429):
            kept = stack.enter_context(contextlib.closing(door.connection()))
            kept.request("GET", "/v1/workspaces", headers={"Authorization": f"Bearer {door.token}"})
            answer = Answer(kept.getresponse())
            assert answer.status == status, answer
        problem(answer, 429, "limit", "serve.connections")
        assert answer.headers["Retry-After"] and daemon.get("/v1/workspaces").status == 200
    assert eventually(lambda: door.get("/v1/workspaces").status == 200)
    pathlib.Path(daemon.env["CARREL_HOME"], "config.yaml").unlink()


def test_a_web_socket_over_tls(door):
    made = door.post("/v1/workspaces", {})
    path, size = f"{made.headers['Location']}/exec", 4 << 20
    with WebSocket(door, path, (PROTOCOL, f"carrel.bearer.{door.token}")) as ws:
        # More than a record, a read and the buffers of both sides, one way and then the other.
        ws.start(command=f"head -c {size} | wc -c; head -c {size} /dev/zero").until("started")
        for _ in range(size // 65536):
            ws.stdin(bytes(65536))
        assert ws.until("exit")["exit_code"] == 0
        assert ws.output[1] == b"%d\n" % size + bytes(size)
        ws.closing()
        assert ws.code == 1000
    assert door.request("DELETE", made.headers["Location"]).status == 204
