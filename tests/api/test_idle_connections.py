"""Connections without a login, many and idle: they keep no client out, and cost nobody who has logged in theirs."""
# security: doors
import contextlib
import http.client
import resource
import socket
import ssl

import pytest

from daemons import Answer, serving_anew
from doors import open_door
from harness import eventually
from test_tls import made

# src/doors/visits.h: of an address, of its range and of all, by TCP; of a uid on the unix socket.
ADDRESS, RANGE, ALL, UID = 256, 512, 1024, 1024


@pytest.fixture(scope="module", autouse=True)
def descriptors():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] < 4096:
        pytest.skip(f"no more than {before[1]} descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], 4096), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.fixture(scope="module")
def door():
    with serving_anew() as daemon:
        files = made(daemon, daemon.home / "tls", "--name", "desk.example")
        context = ssl.create_default_context(cafile=files["ca"])
        yield open_door(daemon, "--tls-cert", files["certificate"], "--tls-key", files["key"], context=context)


def idle(door, source, stage="connected"):
    """A connection from that address that goes no further: `connected`, `hello` (half a handshake), `handshake`, `head` (half
    of a request's)."""
    sock = socket.create_connection(door.address(), 60, (source, 0))
    if stage == "hello":
        sock.sendall(b"\x16\x03\x01\x02\x00\x01")
    elif stage != "connected":
        sock = door.context.wrap_socket(sock, server_hostname=door.address()[0])
        if stage == "head":
            sock.sendall(b"GET /v1/workspaces HTTP/1.1\r\nHost: localhost\r\nAuthor")
    return sock


def is_open(sock):
    sock.settimeout(0)
    try:
        return bool(sock.recv(4096)) and is_open(sock)      # tickets of TLS
    except (BlockingIOError, ssl.SSLWantReadError):
        return True
    except OSError:
        return False


def ask(door, source):
    """A new client from there, with a login."""
    host, port = door.address()
    with contextlib.closing(http.client.HTTPSConnection(host, port, timeout=60, source_address=(source, 0), context=door.context)) as connection:
        connection.request("GET", "/v1/workspaces", headers={"Authorization": f"Bearer {door.token}"})
        return Answer(connection.getresponse())


@contextlib.contextmanager
def logged_in(door):
    """A connection that has logged in, and must stay."""
    with contextlib.closing(door.connection()) as kept:
        def again():
            kept.auto_open = 0
            kept.request("GET", "/v1/workspaces", headers={"Authorization": f"Bearer {door.token}"})
            return Answer(kept.getresponse()).status
        kept.connect()
        assert again() == 200
        yield
        assert again() == 200


@pytest.mark.once
@pytest.mark.parametrize("stage", ["connected", "hello", "handshake", "head"])
def test_a_client_logs_in_past_idle_connections_of_its_own_address(door, stage):
    with logged_in(door), contextlib.ExitStack() as stack:
        # TLS costs time, and each has ten seconds: those that only connect come first.
        for _ in range(ADDRESS - (0 if stage == "connected" else 16)):
            stack.enter_context(idle(door, "127.0.0.1"))
        last = [stack.enter_context(idle(door, "127.0.0.1", stage)) for _ in range(40)]
        for _ in range(3):
            assert ask(door, "127.0.0.1").status == 200
        assert is_open(last[-1])        # the oldest went, not the newest


@pytest.mark.once
def test_a_client_logs_in_past_idle_connections_of_its_range_and_of_others(door):
    """And of each other's: the oldest of the range that has the most goes."""
    with logged_in(door), contextlib.ExitStack() as stack:
        slow = stack.enter_context(idle(door, "127.0.9.1"))
        for number in range(RANGE + 50):
            stack.enter_context(idle(door, f"127.0.1.{number % 5 + 1}"))
        assert ask(door, "127.0.1.77").status == 200
        for number in range(ALL):
            stack.enter_context(idle(door, f"127.0.{2 + number % 4}.{number % 7 + 1}"))
        for source in ("127.0.1.77", "127.0.2.1", "127.0.9.1", "127.0.0.1"):
            assert ask(door, source).status == 200
        slow = door.context.wrap_socket(slow, server_hostname=door.address()[0])      # after all of them
        stack.enter_context(slow)
        slow.sendall(f"GET /v1/workspaces HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {door.token}\r\n\r\n".encode())
        assert slow.recv(12) == b"HTTP/1.1 200"


@pytest.mark.once
def test_a_uid_s_idle_connections_are_bounded_on_the_unix_socket(door):
    def connect():
        connection = door.daemon.connection()
        connection.connect()
        return connection.sock

    with logged_in(door), contextlib.ExitStack() as stack:
        kept = stack.enter_context(contextlib.closing(door.daemon.connection()))
        kept.request("GET", "/v1/workspaces")
        assert Answer(kept.getresponse()).status == 200
        first = stack.enter_context(connect())
        others = [stack.enter_context(connect()) for _ in range(UID + 10)]
        assert eventually(lambda: not is_open(first))
        assert is_open(others[-1])
        assert door.daemon.get("/v1/workspaces").status == 200
        kept.auto_open = 0
        kept.request("GET", "/v1/workspaces")
        assert Answer(kept.getresponse()).status == 200
        assert ask(door, "127.0.0.1").status == 200
