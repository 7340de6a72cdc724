"""Names and values that nobody sensible sends, at every place where a client may say something: never an error of the
server's own, never another object than the one that was named, and the same core afterwards."""
# security: doors
import contextlib
import json
import urllib.parse

import pytest

from faults import exec_, files, home, workspaces
from harness import what_stays
from rest import created

pytestmark = pytest.mark.once     # names are judged by the same code for every user

LONG = 1 << 20
NAMES = {
    "slash": b"a/b", "only slashes": b"///", "dots": b"..", "dot": b".", "up": b"../../../etc/passwd", "up, escaped": b"%2e%2e%2f%2e%2e",
    "NUL": b"a\0b", "control": b"\x01\x1f\x7f", "newline": b"a\r\nX: y", "not UTF-8": b"\xff\xfe\x80", "overlong": b"\xc0\xaf", "surrogate": b"\xed\xa0\x80",
    "long": b"x" * LONG, "many parts": b"a/" * 5000, "spaces": b"  ", "empty": b"", "percent": b"%", "%00": b"%00", "a format": b"%s%n%99999d",
    "quotes": b"'; DROP TABLE workspaces; --", "ours": b".del-0123456789abcdefghij", "temporary": b".in", "emoji": "☃\u202e\ufeff".encode(), "database": b"../../carrel.db",
}


def ask(daemon, method, target, body=None, headers=None):
    """(status, body), or None: the connection was closed on us, which is an answer to what is no request."""
    with contextlib.closing(daemon.connection()) as connection:
        try:
            connection.putrequest(method, "/", skip_host=False)
            connection._buffer[0] = method.encode() + b" " + target + b" HTTP/1.1"
            for name, value in (headers or {}).items():
                connection.putheader(name, value)
            if body is not None:
                connection.putheader("Content-Type", "application/json")
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
        except (BrokenPipeError, ConnectionResetError):
            pass        # refused before it was read to its end
        with contextlib.suppress(ConnectionError):
            answer = connection.getresponse()
            return answer.status, answer.read()
    return None


def as_json(name):
    """The bytes as a JSON string, as somebody would write it who escapes what must be."""
    return b'"' + b"".join(b"\\u%04x" % c if c < 32 or c in b'"\\' else bytes([c]) for c in name) + b'"'


@pytest.fixture(scope="module")
def bystander(daemon):
    """What must stay as it is."""
    with created(daemon, name="bystander"):
        daemon.post("/v1/workspaces/bystander/exec", {"argv": ["true"]})     # its first start makes what a start needs
        assert daemon.request("PUT", "/v1/workspaces/bystander/files/f", b"mine").status == 201
        yield daemon.core_pid(), files(daemon)


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_hostile_names(daemon, bystander, name):
    quoted, raw, text = urllib.parse.quote_from_bytes(name, safe="").encode(), name.replace(b" ", b"+"), as_json(name)
    tries = [("GET", b"/v1/%s/%s%s" % (room, spelled, rest), None)
             for spelled in (quoted, raw) if b"\r" not in spelled and len(spelled) < 100000 or spelled is quoted
             for room, rest in ((b"workspaces", b""), (b"workspaces", b"/files/f"), (b"workspaces/bystander/files", b"?stat"), (b"execs", b""), (b"execs", b"/output"))]
    tries += [("DELETE", b"/v1/workspaces/" + quoted, None), ("PUT", b"/v1/workspaces/bystander/files/f?move=" + quoted, None),
              ("GET", b"/v1/workspaces?cursor=" + quoted, None), ("GET", b"/v1/workspaces?label=" + quoted, None)]
    tries += [("POST", b"/v1/workspaces", b'{"name":%s}' % text), ("POST", b"/v1/workspaces", b'{"environment":%s}' % text),
              ("POST", b"/v1/workspaces", b'{%s:1}' % text), ("POST", b"/v1/workspaces", b'{"labels":{%s:"x"},"name":"Not Valid"}' % text),
              ("POST", b"/v1/workspaces/bystander/exec", b'{"argv":[%s]}' % text), ("POST", b"/v1/workspaces/bystander/exec", b'{"argv":["true"],"cwd":%s}' % text),
              ("POST", b"/v1/workspaces/bystander/exec", b'{"argv":["true"],"env":{%s:"x"}}' % text),
              ("POST", b"/v1/workspaces/bystander/exec", b'{"argv":["true"],"user":%s}' % text)]
    made = []
    for method, target, body in tries:
        answer = ask(daemon, method, target, body)
        if answer is None:
            continue
        status, said = answer
        assert status < 500, (method, target[:200], body and body[:200], status, said[:500])
        if status == 201 and method == "POST":
            made.append(json.loads(said))
        elif status >= 400:
            assert json.loads(said)["code"], said
    for one in made:
        assert daemon.delete(f"/v1/workspaces/{one['id']}").status == 204
    core, before = bystander
    assert daemon.core_pid() == core
    assert set(workspaces(daemon)) == {"bystander"}
    # It may have been moved where it was asked to, within its workspace; nowhere else.
    tree = home(daemon) / "workspaces" / workspaces(daemon)["bystander"]["id"] / "upper"
    there = [path for path in tree.rglob("*") if path.is_file() and path.read_bytes() == b"mine"]
    assert len(there) == 1, there
    if there[0].name != "f":
        there[0].rename(tree / "f")
    left = what_stays(lambda: [file for file in files(daemon) - before if "/upper/" not in file and not file.startswith("run/sb/")])
    assert not left, left


def test_a_context_id_may_be_anything_that_is_text(daemon):
    for name in NAMES.values():
        try:
            text = name.decode()
        except UnicodeDecodeError:
            continue
        answer = daemon.post("/v1/workspaces", {"labels": {"context_id": text}})
        assert answer.status in (201, 400), answer
        if answer.status == 201:
            assert daemon.delete(answer.headers["Location"]).status == 204
    assert exec_(daemon, "nobody", "true").status == 404
