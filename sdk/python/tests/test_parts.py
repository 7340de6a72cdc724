"""What needs no daemon: readers, addresses, and that the client has all that the API has."""
import ast
import inspect
import json
import pathlib
import struct
from typing import Set

import pytest

import carrel
from carrel import _config, _core, _operations, _websocket, errors, types
from carrel._async._http import AsyncHttp

SOURCES = pathlib.Path(carrel.__file__).parent


def used_operations() -> Set[str]:
    found = set()
    for path in (SOURCES / "_async").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "op":
                found.add(node.attr)
    return found


def test_the_client_has_every_route(carrel: carrel.Carrel) -> None:
    """_operations.py is written from the document, which the daemon's is compared with; and each of it is called."""
    names = {name for name, value in vars(_operations).items() if isinstance(value, _operations.Operation)}
    assert names == used_operations() & names
    routes = {(value.method, value.path) for name, value in vars(_operations).items() if name in names}
    text = "".join(path.read_text() for path in (SOURCES / "_async").glob("*.py"))
    for path, methods in carrel.openapi()["paths"].items():
        for method, operation in methods.items():
            pages = [kind for answer in operation["responses"].values() for kind in answer.get("content", ()) if "text/html" in kind]
            assert (method.upper(), path) in routes or pages, f"{method} {path}"
            for row in operation.get("parameters", ()):
                # `after` is sent as Last-Event-ID, which is the same.
                assert row["in"] != "query" or row["name"] == "after" or f'"{row["name"]}"' in text, f"{method} {path}: {row['name']}"


# What a parameter of another name stands for; and what is the same in another unit, of other clients, or set by the method.
STANDS = {"python": "pip", "from": "from_", "node": "npm"}
OTHERWISE = {"dir", "mounts", "reason", "mechanism", "background", "open_stdin", "decision", "count", "rows", "columns", "policy", "always"}


@pytest.mark.parametrize("function, body", [
    (carrel.Carrel.create, types.WorkspaceWanted), (carrel.Workspace.update, types.WorkspaceChange),
    (carrel.Workspace.snapshot, types.SnapshotWanted), (carrel.Workspace.rollback, types.RollbackWanted),
    (carrel.Workspace.fork, types.ForkWanted), (carrel.Workspace.push, types.PushWanted), (carrel.Workspace.apply, types.ApplyWanted),
    (carrel.Workspace.install, types.PackagesWanted), (carrel.Workspace.run, types.ExecWanted)])
def test_every_field_can_be_given(function: object, body: object) -> None:
    parameters = set(inspect.signature(function).parameters)  # type: ignore[arg-type]
    aliases = {"argv": "command", "limits": "limits" if "limits" in parameters else "cpu_time"}
    for field in body.__annotations__:  # type: ignore[attr-defined]
        if field.endswith(("_ms", "_bytes")) or field in OTHERWISE:
            continue
        assert {field, STANDS.get(field, field), aliases.get(field, field)} & parameters, f"{function}: {field}"


def test_events_are_read_from_any_pieces() -> None:
    text = b": ping\n\nid: 7\nevent: a\ndata: {\"x\": 1}\n\nid: 8\r\ndata: one\r\ndata: two\r\n\r\nid: 9\n\n"
    for size in (1, 3, len(text)):
        reader = _core.EventReader()
        events = [event for at in range(0, len(text), size) for event in reader.feed(text[at:at + size])]
        assert events == [_core.ServerEvent("a", '{"x": 1}', "7"), _core.ServerEvent("message", "one\ntwo", "8")]
        assert reader.last_id == "9"


def server_frame(kind: int, data: bytes, last: bool = True) -> bytes:
    size = struct.pack("!B", len(data)) if len(data) < 126 else struct.pack("!BH", 126, len(data))
    return bytes([kind | (0x80 if last else 0)]) + size + data


def test_websocket_messages_are_read_from_any_pieces() -> None:
    data = (server_frame(2, b"\1hello", False) + server_frame(9, b"?") + server_frame(0, b" world") + server_frame(1, "é".encode())
            + server_frame(2, bytes(300)) + server_frame(8, struct.pack("!H", 1000) + b"bye"))
    for size in (1, 5, len(data)):
        reader = _websocket.Reader()
        messages = [message for at in range(0, len(data), size) for message in reader.feed(data[at:at + size])]
        assert messages == [_websocket.Ping(b"?"), b"\1hello world", "é", bytes(300), _websocket.Closed(1000, "bye")]


@pytest.mark.parametrize("data", [b"\xc1\x00", b"\x81\x80", server_frame(0, b"x"), server_frame(9, b"x", False), server_frame(3, b""),
                                  server_frame(1, b"\xff"), b"\x82\x7f" + struct.pack("!Q", 1 << 40),
                                  server_frame(2, b"", False) + server_frame(2, b"")])
def test_websocket_garbage_is_refused(data: bytes) -> None:
    with pytest.raises(errors.ProtocolError):
        list(_websocket.Reader().feed(data))


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65535, 65536, 200_001])
def test_a_frame_is_masked(size: int) -> None:
    data = bytes(range(256)) * (size // 256 + 1)
    frame = _websocket.frame(_websocket.BINARY, data[:size])
    at = {126: 4, 127: 10}.get(frame[1] & 0x7F, 2)
    assert frame[0] == 0x82 and frame[1] & 0x80
    assert _websocket.masked(frame[at + 4:], frame[at:at + 4]) == data[:size]


def test_addresses() -> None:
    env = {"CARREL_HOME": "/h"}
    assert _config.find(None, env).socket == "/h/run/carrel.sock" and _config.find(None, env).is_own
    assert _config.find("unix:/s", env).socket == "/s" and not _config.find("/s", env).is_own
    assert _config.find("unix:///s", env).socket == "/s"
    assert _config.find("https://h:1/", env).url == "https://h:1"
    assert _config.find(None, {"CARREL_HOST": "http://[::1]:2"}).url == "http://[::1]:2"
    for bad in ("ftp://h", "https://", "h:1", "https://me:token@h", "https://h/path", "https://h?token=x"):
        with pytest.raises(ValueError):
            _config.find(bad, env)


def test_a_context_is_an_address_with_a_name(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pytest.raises(ValueError, match="carrel context ls"):
        carrel.Carrel(context="lab")
    (tmp_path / "carrel").mkdir()
    file = tmp_path / "carrel/contexts.json"
    file.write_text(json.dumps({"current": None, "contexts": [{"name": "lab", "host": "http://lab:7070", "token": "crl_t"}]}))
    with carrel.Carrel(context="lab") as client:
        assert client._http.place.url == "http://lab:7070" and client._http._token == "crl_t"
    file.write_text("[]")
    with pytest.raises(ValueError, match="not a list"):
        carrel.Carrel(context="lab")


def test_paths_are_sent_as_they_are() -> None:
    assert _core.quote_path("a b/ü?#%") == "a%20b/%C3%BC%3F%23%25"
    assert _core.quote_path("/etc/../x/.") == "/etc/%2E%2E/x/%2E"


@pytest.mark.parametrize("code", sorted(errors.CLASSES))
def test_a_problem_is_its_exception(code: str) -> None:
    problem = {"code": code, "detail": "no", "hint": "do", "request_id": "r", "status": 400,
               "trail": [{"subject": "s", "rule": None, "reason": "r", "decision": "deny"}]}
    error = _core.problem_of(400, json.dumps(problem).encode())
    assert type(error) is errors.CLASSES[code] and (error.code, error.detail, error.hint, error.request_id) == (code, "no", "do", "r")
    assert error.trail[0].decision == "deny" and str(error) == "no (hint: do)"


def test_an_answer_of_another_server_is_an_error_too() -> None:
    error = _core.problem_of(502, b"<html>Bad Gateway</html>")
    assert type(error) is errors.Failed and error.status == 502 and "Bad Gateway" in str(error)
    assert type(_core.problem_of(400, b'{"code": "new", "detail": "x"}')) is errors.ApiError


def test_the_sources_are_of_the_oldest_python() -> None:
    for path in SOURCES.rglob("*.py"):
        ast.parse(path.read_text(), feature_version=(3, 9))


def test_a_token_is_not_shown() -> None:
    assert "crl_secret" not in repr(types.Token._from({"id": "1", "text": "crl_secret"}))
    assert AsyncHttp.__repr__ is object.__repr__
