"""What one principal can't keep from the others: each has a share of what the whole daemon has of something."""
# security: limits
import contextlib
import json
import resource
import selectors
import socket

import pytest

from daemons import serving_anew
from doors import Door, open_door
from harness import eventually
from rest import problem
from test_cases import case
from test_ports import serve, url

# A quarter of what all have: src/services/cases.h, src/doors/server.c, src/net/http.h.
CELLS, CONNECTIONS, BODIES, LEFT = 1024 // 4, 1024 // 4, (256 << 20) // 4, 4096 // 4
COMMANDS = 200      # need more descriptors than 1,024 open files leave for commands

@pytest.fixture(scope="module")
def doors(furnished_home):
    """Of two tokens of scope user, and of the administrator."""
    with serving_anew(source=furnished_home) as daemon:
        admin = open_door(daemon)
        texts = []
        for name in ("one", "other"):
            answer = daemon.post("/v1/tokens", {"scope": "user", "name": name})
            assert answer.status == 201, answer
            texts.append(answer.json()["text"])
        yield [Door(daemon, text) for text in texts] + [admin]


def send(door, method, path, *headers, body=b""):
    """A connection with that request."""
    sock = socket.create_connection(door.address(), 60)
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {door.token}", *headers]
    sock.sendall("\r\n".join([*lines, "", ""]).encode() + body)
    return sock


def answered(socks):
    """Those that have an answer, when one has."""
    with selectors.DefaultSelector() as selector:
        for sock in socks:
            selector.register(sock, selectors.EVENT_READ)
        return [key.fileobj for key, _ in selector.select(60)]


@pytest.fixture(scope="module")
def served(doors):
    answer = doors[-1].post("/v1/workspaces", {"name": "served"})
    assert answer.status == 201, answer
    serve(doors[-1].daemon, "served", port=8002)
    yield "served"
    assert doors[-1].request("DELETE", "/v1/workspaces/served").status == 204


@pytest.mark.once
def test_one_token_s_cells_leave_room_for_others(doors):
    one, other, admin = doors
    # Its cells wait as long as it is prepared.
    with case(admin.daemon, "id: slow\nsetup: {run: [sleep 1000]}\nharness: x\ngraders: [{type: command, run: 'true'}]") as made:
        path = f"/v1/cases/{made['id']}/cells"
        cells = [one.post(path, {}) for _ in range(CELLS)]
        assert [cell.status for cell in cells] == [201] * CELLS
        problem(one.post(path, {}), 429, "limit", f"{CELLS} cells", "one principal")
        assert other.post(path, {}).status == 201


def test_what_a_token_leaves_behind_is_bounded(doors):
    """An operation goes on when its client is gone, and has a stack of its own."""
    one, other, admin = doors
    assert admin.post("/v1/workspaces", {"name": "busy"}).status == 201
    try:
        assert admin.post("/v1/workspaces/busy/exec", {"argv": ["sleep", "1000"], "background": True}).status == 201
        path, body = "/v1/workspaces/busy/snapshots", json.dumps({"when_busy": "wait", "timeout": "600s"}).encode()
        lines = "Content-Type: application/json", f"Content-Length: {len(body)}"
        sent = 0
        while b"operations" not in one.get("/v1/workspaces/busy").body:
            assert sent < 4 * LEFT
            with contextlib.ExitStack() as stack:
                for _ in range(64):
                    stack.enter_context(send(one, "POST", path, *lines, body=body))
            sent += 64
        assert sent >= LEFT
        problem(one.post(path, {}), 429, "limit", f"{LEFT} are the limit of one principal")
        assert other.get("/v1/workspaces/busy").status == 200
    finally:
        assert one.request("DELETE", "/v1/workspaces/busy").status == 204
    assert eventually(lambda: one.get("/v1/workspaces").status == 200)


@pytest.mark.once
def test_one_token_s_connections_to_ports_leave_room_for_others(doors, served):
    one, other, _ = doors
    path = url(served, port=8002)

    def connect(door, stack):
        """The status of the answer."""
        sock = stack.enter_context(send(door, "GET", path, "Connection: Upgrade", "Upgrade: carrel-tcp"))
        return sock.recv(12)[9:]

    with contextlib.ExitStack() as stack:
        assert {connect(one, stack) for _ in range(CONNECTIONS)} == {b"101"}
        assert connect(one, stack) == b"429"
        with contextlib.ExitStack() as others:
            assert connect(other, others) == b"101"
    # What has ended is given back.
    assert eventually(lambda: one.get(path).status != 429)


@pytest.mark.once
def test_one_token_s_bodies_leave_room_for_others(doors):
    """Bodies that are received slowly, of the most bytes: sixteen of them were all there is."""
    one, other, _ = doors
    size = 16 << 20
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(send(one, "POST", "/v1/workspaces", "Content-Type: application/json", f"Content-Length: {size}"))
                 for _ in range(BODIES // size + 1)]
        for sock in socks:
            with contextlib.suppress(OSError):      # one of them is refused
                sock.sendall(bytes(size - 1))
        assert b" 429 " in answered(socks)[0].recv(100)
        answer = other.post("/v1/workspaces", {"name": "of-other"})
        assert answer.status == 201, answer
        assert other.request("DELETE", "/v1/workspaces/of-other").status == 204


@pytest.mark.once
def test_one_token_s_commands_leave_descriptors_for_others(doors):
    """Of three quarters of a thousand open files, of which a command has a few."""
    one, other, admin = doors
    daemon, body = admin.daemon, json.dumps({"argv": ["sleep", "1000"]}).encode()
    daemon.stop_serving()
    daemon.log_path.write_text("")
    daemon.start_serving(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024)))
    made = one.post("/v1/workspaces", {"name": "busy"})
    assert made.status == 201, made
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(send(one, "POST", "/v1/workspaces/busy/exec", "Content-Type: application/json",
                                          f"Content-Length: {len(body)}", body=body)) for _ in range(COMMANDS)]
        refused = answered(socks)[0].recv(4096)
        assert b" 429 " in refused and b"one principal" in refused, refused
        answer = other.post("/v1/workspaces/busy/exec", {"argv": ["true"]})
        assert answer.status == 200 and answer.json()["exit_code"] == 0, answer
    assert one.request("DELETE", "/v1/workspaces/busy").status == 204
