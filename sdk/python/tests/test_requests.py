"""What is sent again, and what never is."""
import json

import pytest

from carrel import Carrel, ConnectionFailed, ConnectionLost, Denied, LimitReached, Unavailable, _core
from fakes import header, response, serving

WORKSPACE = json.dumps({"id": "w", "name": "n", "state": "ready"})
RESULT = json.dumps({"id": "e", "exit_code": 0, "reason": "exited", "stdout": "", "stderr": "", "encoding": "utf-8"})
BUSY = response(503, json.dumps({"code": "unavailable", "detail": "later"}), "application/problem+json", "Retry-After: 0")
RATE = response(429, json.dumps({"code": "limit", "detail": "too many requests"}), "application/problem+json", "Retry-After: 0")
FULL = response(429, json.dumps({"code": "limit", "detail": "too many workspaces"}), "application/problem+json")
CUT = b""


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_core, "BACKOFF_LEAST", 0.001)
    monkeypatch.delenv("CARREL_TOKEN", raising=False)


def test_a_new_workspace_is_asked_for_again_with_its_key() -> None:
    with serving(CUT, BUSY, RATE, response(201, WORKSPACE)) as server, Carrel(server.url) as carrel:
        assert carrel.create("n").name == "n"
    keys = [header(request, "Idempotency-Key") for request in server.requests]
    assert len(keys) == 4 and len(set(keys)) == 1 and keys[0]


def test_a_limit_that_waiting_does_not_help_is_told() -> None:
    with serving(FULL) as server, Carrel(server.url) as carrel:
        with pytest.raises(LimitReached, match="too many workspaces"):
            carrel.create()
    assert len(server.requests) == 1


def test_a_command_is_sent_once() -> None:
    with serving(response(200, WORKSPACE), CUT, response(200, RESULT)) as server, Carrel(server.url) as carrel:
        ws = carrel.get("w")
        with pytest.raises(ConnectionLost):
            ws.run("true")
    assert len(server.requests) == 2 and not header(server.requests[1], "Idempotency-Key")


def test_a_command_with_a_key_is_sent_again() -> None:
    with serving(response(200, WORKSPACE), CUT, response(200, RESULT)) as server, Carrel(server.url) as carrel:
        assert carrel.get("w").run("true", key="mine").ok
    assert [header(request, "Idempotency-Key") for request in server.requests[1:]] == [("mine",), ("mine",)]


def test_other_posts_are_sent_once_and_reads_again() -> None:
    with serving(BUSY, CUT, response(200, WORKSPACE), BUSY) as server, Carrel(server.url) as carrel:
        ws = carrel.get("w")
        with pytest.raises(Unavailable, match="later"):
            ws.snapshot("s")
    assert len(server.requests) == 4


def test_attempts_end() -> None:
    with serving(BUSY, BUSY, BUSY) as server, Carrel(server.url, retries=2) as carrel:
        with pytest.raises(Unavailable):
            carrel.get("w")
    assert len(server.requests) == 3
    with Carrel(server.url, retries=1) as carrel, pytest.raises(ConnectionFailed):
        carrel.get("w")


def test_a_refusal_is_not_repeated() -> None:
    refusal = response(403, json.dumps({"code": "denied", "detail": "no"}), "application/problem+json")
    with serving(refusal) as server, Carrel(server.url, token="t") as carrel:
        with pytest.raises(Denied):
            carrel.get("w")
    assert [header(request, "Authorization") for request in server.requests] == [("Bearer t",)]


def test_events_go_on_where_they_were() -> None:
    def events(*ids: int) -> bytes:
        body = "".join('id: %d\nevent: x\ndata: {"id": %d, "type": "x"}\n\n' % (one, one) for one in ids)
        return f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 9999\r\n\r\nid: 4\n\n{body}".encode()

    with serving(events(5, 6), events(7)) as server, Carrel(server.url) as carrel:
        seen = carrel.events(after=0)
        assert [next(seen).id for _ in range(3)] == [5, 6, 7]
        seen.close()  # type: ignore[attr-defined]
    assert [header(request, "Last-Event-ID") for request in server.requests] == [("0",), ("6",)]


def test_a_command_whose_output_is_cut_has_no_result() -> None:
    cut = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 9999\r\n\r\n" \
          b'event: start\ndata: {"id": "e"}\n\nevent: stdout\ndata: {"data": "begun", "encoding": "utf-8"}\n\n'
    short = response(200, 'event: start\ndata: {"id": "e"}\n\n', "text/event-stream")
    for answer in (cut, short):
        with serving(response(200, WORKSPACE), answer, answer) as server, Carrel(server.url) as carrel:
            ws = carrel.get("w")
            with pytest.raises(ConnectionLost, match="'e'"):
                ws.run("make", on_stdout=lambda text: None)
            with ws.stream("make") as stream, pytest.raises(ConnectionLost, match="'e'"):
                list(stream)
        assert len(server.requests) == 3
