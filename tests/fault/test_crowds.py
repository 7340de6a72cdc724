"""Many at once, slow ones, and those that go away in the middle; what is removed under a running command; the end of the
daemon while all of that goes on."""
# security: doors
import concurrent.futures
import contextlib
import json
import os
import resource
import selectors
import threading
import time

import pytest

from faults import Inventory, exec_, files, remove_all, sh, workspaces
from harness import SANITIZED, eventually, what_stays
from rest import Events, created, problem

EXECS, WORKSPACES = 1000, 8


def connect(daemon):
    connection = daemon.connection()
    connection.connect()
    return connection.sock


def post(path, body):
    data = json.dumps(body).encode()
    return b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (path.encode(), len(data), data)


def answers(sockets, seconds):
    """{socket: status and body}, when all of them have answered."""
    came, done = {sock: b"" for sock in sockets}, {}
    end = time.monotonic() + seconds
    with selectors.DefaultSelector() as selector:
        for sock in sockets:
            selector.register(sock, selectors.EVENT_READ)
        while len(done) < len(sockets):
            assert time.monotonic() < end, f"{len(sockets) - len(done)} without an answer"
            for key, _ in selector.select(1):
                sock = key.fileobj
                came[sock] += sock.recv(65536)
                head, _, body = came[sock].partition(b"\r\n\r\n")
                length = next((int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), None)
                if length is not None and len(body) >= length:
                    done[sock] = int(head.split()[1]), json.loads(body)
                    selector.unregister(sock)
    return done


def percentile_99(daemon, count=200):
    """Of GET /healthz on a kept connection, in seconds."""
    times = []
    with contextlib.closing(daemon.connection()) as connection:
        for _ in range(count):
            began = time.monotonic()
            connection.request("GET", "/healthz")
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 200
            times.append(time.monotonic() - began)
    return sorted(times)[int(count * 0.99)]


@contextlib.contextmanager
def many_descriptors(count):
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] < count:
        pytest.skip(f"no more than {before[1]} descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], count), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.serial
def test_a_thousand_commands_at_once(own_daemon):
    """All run at the same time, each has its own answer, and others are served meanwhile."""
    daemon = own_daemon
    inventory = Inventory(daemon)
    names = [f"w{n}" for n in range(WORKSPACES)]
    for name in names:
        assert daemon.post("/v1/workspaces", {"name": name}).status == 201
        assert exec_(daemon, name, "mkfifo", "gate").status == 200
    with many_descriptors(4 * EXECS), contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(connect(daemon)) for _ in range(EXECS)]
        for n, sock in enumerate(sockets):
            sock.sendall(post(f"/v1/workspaces/{names[n % WORKSPACES]}/exec", {"argv": ["sh", "-c", f"read x < gate; echo {n}"]}))
        running = lambda: int(next(line.split()[1] for line in daemon.get("/metrics").body.decode().splitlines()
                                   if line.startswith("carrel_execs_running ")))
        assert eventually(lambda: running() == EXECS, 60), running()
        slowest = min(percentile_99(daemon, 100) for _ in range(3))
        assert slowest < 0.1 or SANITIZED, slowest
        # Who reads at a gate goes on when somebody has opened it to write; a late one needs another opening.
        found = {}
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            task = pool.submit(answers, sockets, 60)
            while not task.done():
                for name in names:
                    sh(daemon, name, "timeout 0.2 sh -c '> gate'")
            found = task.result()
        for n, sock in enumerate(sockets):
            status, body = found[sock]
            assert status == 200 and body["stdout"] == f"{n}\n" and body["exit_code"] == 0, (n, status, body)
    remove_all(daemon)
    inventory.check()


@pytest.mark.serial
@pytest.mark.shipped
def test_slow_clients_cost_the_others_nothing(own_daemon):
    """Headers and bodies by the byte, answers that nobody reads, streams that nobody takes."""
    daemon = own_daemon
    with created(daemon, name="a"), many_descriptors(2000), contextlib.ExitStack() as stack:
        dribbling = [stack.enter_context(connect(daemon)) for _ in range(500)]
        for sock in dribbling[::2]:
            sock.sendall(b"PUT /v1/workspaces/a/files/f HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
        for n in range(20):     # output that waits for a reader
            sock = stack.enter_context(connect(daemon))
            sock.sendall(post("/v1/workspaces/a/exec", {"argv": ["yes"]}).replace(b"Host: x", b"Host: x\r\nAccept: text/event-stream"))
        for n in range(50):     # answers that wait for one
            sock = stack.enter_context(connect(daemon))
            sock.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 20)
        is_over = threading.Event()

        def dribble():
            while not is_over.wait(0.05):
                for sock in dribbling:
                    with contextlib.suppress(OSError):
                        sock.send(b"G")

        thread = threading.Thread(target=dribble)
        thread.start()
        try:
            slowest = min(percentile_99(daemon) for _ in range(3))
            assert exec_(daemon, "a", "echo", "quick").json()["stdout"] == "quick\n"
        finally:
            is_over.set()
            thread.join()
        assert slowest < 0.1, slowest


# ---- what is removed while it is used ----

@pytest.fixture
def ready(own_daemon):
    """A daemon with a workspace `a`, in which something runs; afterwards nothing may be left of either."""
    inventory = Inventory(own_daemon)
    assert own_daemon.post("/v1/workspaces", {"name": "a"}).status == 201
    yield own_daemon
    remove_all(own_daemon)
    inventory.check()


def test_a_workspace_that_is_removed_takes_its_commands_along(ready):
    """In the foreground, streamed and in the background; and whoever waits is told."""
    daemon = ready
    background = exec_(daemon, "a", "sleep", "100", background=True).headers["Location"]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        captured = [pool.submit(sh, daemon, "a", f"echo begun; touch begun{n}; sleep 100") for n in range(4)]
        streams = [Events(daemon, "/v1/workspaces/a/exec", method="POST", body=json.dumps({"command": "echo begun; sleep 100"}),
                          headers={"Content-Type": "application/json"}) for _ in range(4)]
        for stream in streams:
            assert stream.until("stdout")[-1]["data"]["data"] == "begun\n"
        assert eventually(lambda: len(daemon.get("/v1/workspaces/a/execs").json()["items"]) == 9)
        for n in range(4):
            assert eventually(lambda: daemon.get(f"/v1/workspaces/a/files/begun{n}?stat").status == 200)
        removals = [pool.submit(daemon.delete, "/v1/workspaces/a") for _ in range(4)]
        assert {removal.result().status for removal in removals} <= {204, 404}
        for stream in streams:
            assert stream.until("exit")[-1]["data"]["reason"] == "canceled"
            stream.close()
        for one in captured:
            answer = one.result()
            assert answer.status == 200 and answer.json()["reason"] == "canceled" and answer.json()["stdout"] == "begun\n", answer
    problem(daemon.get("/v1/workspaces/a"), 404, "not_found", "removed")
    problem(daemon.get(background), 404, "not_found")
    problem(exec_(daemon, "a", "true"), 404, "not_found")


def test_a_workspace_that_is_removed_while_it_starts(ready):
    daemon = ready
    for n in range(10):
        name = f"b{n}"
        assert daemon.post("/v1/workspaces", {"name": name}).status == 201
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            asked = [pool.submit(exec_, daemon, name, "true"), pool.submit(exec_, daemon, name, "true", background=True)]
            assert daemon.delete(f"/v1/workspaces/{name}").status == 204
            for answer in (one.result() for one in asked):
                assert answer.status in (200, 201, 404) or answer.json()["code"] == "canceled", answer
        assert name not in workspaces(daemon)


def test_a_workspace_that_is_removed_under_transfers(ready):
    """An upload and a download end, and what they leave goes with the workspace."""
    daemon = ready
    assert sh(daemon, "a", "head -c 20000000 /dev/zero > big").status == 200
    with contextlib.ExitStack() as stack:
        upload, download, archive = (stack.enter_context(connect(daemon)) for _ in range(3))
        upload.sendall(b"PUT /v1/workspaces/a/files/f HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" + b"x" * 50000)
        download.sendall(b"GET /v1/workspaces/a/files/big HTTP/1.1\r\nHost: x\r\n\r\n")
        archive.sendall(b"GET /v1/workspaces/a/archive HTTP/1.1\r\nHost: x\r\n\r\n")
        assert download.recv(1000) and archive.recv(1000)
        assert daemon.delete("/v1/workspaces/a").status == 204
        with contextlib.suppress(OSError):
            upload.sendall(b"x" * 50000)
        assert b" 404 " in upload.recv(10000).split(b"\r\n")[0] + b" "
    assert daemon.get("/healthz").status == 200


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_clients_that_vanish_take_their_commands_along(ready, accept):
    daemon = ready
    sockets = [connect(daemon) for _ in range(30)]
    for n, sock in enumerate(sockets):
        sock.sendall(post("/v1/workspaces/a/exec", {"command": f"echo > begun{n}; exec sleep 100"})
                     .replace(b"Host: x", f"Host: x\r\nAccept: {accept}".encode()))
        if n % 3 == 0:      # at once, in the middle of the start
            sock.close()
    begun = lambda: {os.path.basename(name) for name in files(daemon) if "/upper/" in name}
    assert eventually(lambda: begun() >= {f"begun{n}" for n in range(30) if n % 3}), begun()
    for sock in sockets:
        sock.close()
    # Those that start run next.
    left = what_stays(lambda: [one for one in daemon.get("/v1/workspaces/a/execs").json()["items"] if one["state"] != "ended"])
    assert not left, left
    assert sh(daemon, "a", "ps -e | grep -c sleep").json()["stdout"] == "0\n"


# ---- the end ----

@pytest.mark.parametrize("uploads", [0, pytest.param(1, marks=[pytest.mark.once, pytest.mark.shipped])])
def test_it_ends_in_order_whatever_goes_on(own_daemon, uploads):
    """Everybody has an answer, or the end of their connection; the background is told; the exit code is 0."""
    daemon = own_daemon
    assert daemon.post("/v1/workspaces", {"name": "a"}).status == 201
    background = exec_(daemon, "a", "sleep", "100", background=True).json()["id"]
    events = Events(daemon, "/v1/events")
    with concurrent.futures.ThreadPoolExecutor(2) as pool, contextlib.ExitStack() as stack:
        captured = pool.submit(exec_, daemon, "a", "sleep", "100")
        idle = stack.enter_context(connect(daemon))
        for _ in range(uploads):    # one that stalls: it is waited for, but not long
            upload = stack.enter_context(connect(daemon))
            upload.sendall(b"PUT /v1/workspaces/a/files/f HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" + b"x" * 50000)
        # Not before they run: what hasn't started is refused.
        assert eventually(lambda: [one["state"] for one in daemon.get("/v1/workspaces/a/execs").json()["items"]] == ["running"] * 2)
        assert daemon.stop_serving() == 0
        assert "did not end when it was told to" not in daemon.log()
        answer = captured.result()
        assert answer.status == 200 and answer.json()["reason"] == "canceled", answer
        assert idle.recv(100) == b""
        list(events)
    daemon.start_serving()
    found = daemon.get(f"/v1/execs/{background}").json()
    assert (found["state"], found["reason"]) == ("ended", "canceled"), found
    assert daemon.get("/v1/workspaces/a/files/f").status == 404
    remove_all(daemon)
