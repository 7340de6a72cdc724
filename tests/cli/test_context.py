"""Contexts, and connections to daemons of other machines: what these tests connect to has certificates and one answer."""
# security: doors
import contextlib
import hashlib
import http.server
import json
import os
import socket
import ssl
import threading

import pytest
from authorities import make_authority, make_certificate
from harness import one_line
from origins import origin

LETTERS = "0123456789abcdefghijklmnopqrstuv"


def make_token(letter):
    """One whose checksum fits: 30 bits of the SHA-256 of what is before it."""
    text = "crl_" + letter * 52
    bits = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 2
    return text + "".join(LETTERS[bits >> 25 - 5 * i & 31] for i in range(6))


TOKEN, OTHER_TOKEN = make_token("a"), make_token("b")


class Handler(http.server.BaseHTTPRequestHandler):
    """A daemon without workspaces, which notes who asks."""
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = b'{"items":[],"next_cursor":null}'
        self.server.requests.append((self.headers["Host"], self.headers["Authorization"]))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return make_authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def server(authority):
    with origin(make_certificate(authority, "good"), handler=Handler) as running:
        running.url, running.ca = f"https://localhost:{running.port}", str(authority / "ca.pem")
        yield running


@pytest.fixture
def token_file(tmp):
    path = tmp / "token"
    path.write_text(TOKEN + "\n")
    return path


def contexts(carrel):
    return json.loads(carrel("context", "ls", "-o", "json").stdout)


# ---- contexts ----

def test_contexts_are_added_chosen_and_forgotten(carrel, server, token_file):
    path = carrel.home / ".config/carrel/contexts.json"
    assert contexts(carrel) == [{"name": "local", "host": None, "token": False, "ca": None, "current": True}]
    assert carrel("context", "add", "lab", "--host", server.url, "--token-file", token_file, "--ca", server.ca).stdout == "added lab\n"
    assert carrel("context", "add", "here", "--host", "run.sock", cwd=carrel.home).returncode == 0
    assert oct(path.stat().st_mode & 0o777) == "0o600" and oct(path.parent.stat().st_mode & 0o777) == "0o700"
    assert carrel("context", "use", "lab").stdout == "using lab\n"
    assert [(one["name"], one["host"], one["token"], one["ca"], one["current"]) for one in contexts(carrel)] == [
        ("local", None, False, None, False), ("lab", server.url, True, server.ca, True),
        ("here", f"unix:{carrel.home}/run.sock", False, None, False)]
    assert [line.split("\t")[0] for line in carrel("__complete", "context", "use", "l").stdout.splitlines()] == ["local", "lab"]
    shown = carrel("context", "ls").stdout
    assert "lab *" in shown and "local *" not in shown
    for words in (("ls",), ("ls", "-o", "json"), ("rm", "nosuch")):
        done = carrel("context", *words)
        assert TOKEN not in done.stdout + done.stderr
    before = len(server.requests)
    assert carrel("ls").stdout.startswith("NAME")
    assert server.requests[before:] == [(f"localhost:{server.port}", f"Bearer {TOKEN}")]
    assert carrel("context", "rm", "lab").stdout == "removed lab\n"
    assert [one["name"] for one in contexts(carrel) if one["current"]] == ["local"] and TOKEN not in path.read_text()


@pytest.mark.once
def test_wrong_contexts_are_refused(carrel, server, token_file, tmp):
    (tmp / "cut").write_text(TOKEN[:-1])
    assert carrel("context", "add", "lab", "--host", server.url).returncode == 0
    for words, named in ((("add", "lab", "--host", server.url), "exists already"), (("add", "local", "--host", server.url), "local"),
                         (("add", "a b", "--host", server.url), "a b"), (("add", "x"), "--host"),
                         (("add", "x", "--host", "ftp://y"), "ftp://y"), (("add", "x", "--host", "https://u:p@y"), "https://u:p@y"),
                         (("add", "x", "--host", "https://y/path"), "https://y/path"),
                         (("add", "x", "--host", server.url, "--token-file", tmp / "cut"), "cut"),
                         (("add", "x", "--host", server.url, "--ca", tmp / "none"), "none"),
                         (("use", "nosuch"), "nosuch"), (("rm", "nosuch"), "nosuch")):
        done = carrel("context", *words)
        assert done.returncode == 125, words
        one_line(done.stderr, named)
    assert [one["name"] for one in contexts(carrel)] == ["local", "lab"]
    (carrel.home / ".config/carrel/contexts.json").write_text("{")
    done = carrel("ls")
    assert done.returncode == 125
    one_line(done.stderr, "contexts.json")
    assert carrel("ls", "--host", server.url, env={"CARREL_CA": server.ca}).returncode == 0


@pytest.mark.once
def test_ten_at_once_lose_nothing(carrel):
    with contextlib.ExitStack() as stack:
        running = [stack.enter_context(carrel.start("context", "add", f"c{i}", "--host", f"https://h{i}")) for i in range(10)]
        assert [process.wait(60) for process in running] == [0] * 10
    assert {one["name"] for one in contexts(carrel)} == {"local", *(f"c{i}" for i in range(10))}


def test_the_nearest_choice_of_a_daemon_counts(carrel, server, token_file):
    """--host, before or after the command, then CARREL_HOST, then the context; its token goes to no other host."""
    env = {"CARREL_CA": server.ca}
    carrel("context", "add", "lab", "--host", "https://nowhere.invalid", "--token-file", token_file)
    carrel("context", "use", "lab")
    before = len(server.requests)
    assert carrel("ls", env={**env, "CARREL_HOST": server.url}).returncode == 0
    assert carrel("ls", "--host", server.url, env=env).returncode == 0
    assert carrel("--host", server.url, "ls", env={**env, "CARREL_HOST": "https://nowhere.invalid"}).returncode == 0
    assert carrel(f"--host={server.url}", "ls", env={**env, "CARREL_TOKEN": OTHER_TOKEN}).returncode == 0
    assert carrel("--token-file", token_file, "ls", "--host", server.url, env={**env, "CARREL_TOKEN": OTHER_TOKEN}).returncode == 0
    assert [bearer for _, bearer in server.requests[before:]] == [None, None, None, f"Bearer {OTHER_TOKEN}", f"Bearer {TOKEN}"]
    done = carrel("ls")
    assert done.returncode == 125
    one_line(done.stderr, "nowhere.invalid")
    assert not os.path.exists(carrel.home / "carrel/run"), "no daemon is started for another machine's"
    one_line(carrel("--host", server.url, "run", "--", "true").stderr, "'carrel run' takes no --host")


@pytest.mark.once
def test_what_is_about_this_machine_is_refused(carrel, server, tmp):
    env = {"CARREL_HOST": server.url, "CARREL_CA": server.ca}
    for words, named in ((("create", "x", "--dir", tmp), "--dir"), (("create", "x", "-v", f"{tmp}:/data"), "-v"),
                         (("serve", "--stop"), "serve --stop"), (("serve", "--reload"), "serve --reload"),
                         (("audit", "--verify"), "--verify"), (("env", "build", "x", "--pip", "y"), "env build"),
                         (("env", "rm", "x"), "env rm"), (("env", "prune"), "env prune")):
        done = carrel(*words, env=env)
        assert done.returncode == 125, words
        one_line(done.stderr, named, server.url)
    assert "checks this machine" in carrel("doctor", env=env).stderr
    assert carrel("env", "ls", env={"CARREL_HOST": "local"}).returncode == 0


# ---- connections ----

def refused(carrel, url, **env):
    done = carrel("ls", "--host", url, env=env)
    assert done.returncode == 125 and done.stdout == ""
    return done.stderr


def test_certificates_are_checked(carrel, server, authority):
    assert "--ca" in one_line(refused(carrel, server.url), f"localhost:{server.port}", "unknown authority")
    hint = one_line(refused(carrel, f"https://127.0.0.1:{server.port}", CARREL_CA=server.ca), "127.0.0.1", "another name: localhost")
    assert "name" in hint
    with origin(make_certificate(authority, "old", days=0), handler=Handler) as old:
        one_line(refused(carrel, f"https://localhost:{old.port}", CARREL_CA=server.ca), "expired on 20")
    assert "PEM" in one_line(refused(carrel, server.url, CARREL_CA=str(authority / "ca.key")), "ca.key")
    one_line(refused(carrel, server.url, CARREL_CA="/nosuch"), "/nosuch", "No such file")
    done = carrel("ls", "-o", "json", "--host", server.url)
    assert json.loads(done.stdout)["error"]["code"] == "denied" and done.stderr == ""


def test_an_address_without_a_scheme_is_told_so(carrel, server):
    host = f"localhost:{server.port}"
    hint = one_line(refused(carrel, host), "--host", host, "https:// or http:// is missing")
    assert hint.startswith(f"https://{host}")
    for words in (["ls"], ["context", "add", "lab", "--host", host]):
        done = carrel(*words, "-o", "json", env={"CARREL_HOST": host})
        error = json.loads(done.stdout)["error"]
        assert done.returncode == 125 and error["code"] == "invalid" and "is missing" in error["message"]
    # These are paths.
    for path in (f"./{host}", f"unix:{host}", "localhost:socket"):
        one_line(refused(carrel, path), "daemon")


def test_what_does_not_answer_is_named(carrel, server):
    with socket.socket() as bound:      # and so nobody else's
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        one_line(refused(carrel, f"https://localhost:{port}"), "no daemon listens", f"localhost:{port}")
        one_line(refused(carrel, f"http://localhost:{port}"), "no daemon listens", f"localhost:{port}")
    one_line(refused(carrel, "https://nowhere.invalid"), "nowhere.invalid", "resolved")
    assert one_line(refused(carrel, f"http://localhost:{server.port}"), f"localhost:{server.port}", "speaks TLS") == server.url
    with origin(handler=Handler) as plain:
        assert "http://" in one_line(refused(carrel, f"https://localhost:{plain.port}"), "does not speak TLS")
        assert carrel("ls", "--host", f"http://127.0.0.1:{plain.port}/").returncode == 0
        assert plain.requests[-1] == (f"127.0.0.1:{plain.port}", None)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        # One that ends in the middle of the handshake.
        thread = threading.Thread(target=lambda: listener.accept()[0].close())
        thread.start()
        one_line(refused(carrel, f"https://localhost:{listener.getsockname()[1]}"), "during the TLS handshake")
        thread.join()


@pytest.mark.once
@pytest.mark.shipped
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tls_before_1_2_is_not_spoken(carrel, server, authority):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority / "good/server.pem", authority / "good/server.key")
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")

    def serve(listener):
        with contextlib.suppress(OSError):
            context.wrap_socket(listener.accept()[0], server_side=True)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        one_line(refused(carrel, f"https://localhost:{listener.getsockname()[1]}", CARREL_CA=server.ca), "TLS")
        thread.join()
