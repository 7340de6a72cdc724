"""TCP: who may ask, by which name, from which page, and from where."""
# security: doors
import concurrent.futures
import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys

import pytest

from daemons import serving_anew
from doors import open_door
from harness import CARREL, eventually, one_line
from rest import problem
from websockets import PROTOCOL, Refused, WebSocket

def has_ipv6():
    with contextlib.suppress(OSError), socket.create_server(("::1", 0), family=socket.AF_INET6):
        return True
    return False


FAMILIES = ("127.0.0.1", "::1") if has_ipv6() else ("127.0.0.1",)
HOST, ORIGIN = "desk.example", "https://app.example"
CONFIG = f"""serve:
  hosts: [{HOST}]
  origins: ["{ORIGIN}"]
  proxies: [127.0.0.2, 10.0.0.0/8]
"""


@pytest.fixture(scope="module")
def door():
    with serving_anew() as daemon:
        pathlib.Path(daemon.env["CARREL_HOME"], "config.yaml").write_text(CONFIG)
        yield open_door(daemon, listen=("127.0.0.1:0", "[::1]:0")[:len(FAMILIES)])


def test_a_token_opens_it_over_ipv4_and_ipv6_and_the_socket_stays(door):
    for index in range(len(FAMILIES)):
        assert door.get("/v1/workspaces", index=index).json()["items"] == []
    assert door.daemon.get("/v1/workspaces").status == 200
    assert door.daemon("ls").returncode == 0


def test_a_uid_is_nothing_there(door):
    """The same user asks as on the unix socket, without a token."""
    answer = door.get("/v1/workspaces", bearer=False)
    problem(answer, 401, "unauthenticated", "token")
    assert answer.headers["WWW-Authenticate"].startswith("Bearer") and answer.headers["Connection"] == "close"
    problem(door.get("/v1/workspaces", headers={"Authorization": f"Bearer {door.token[:-1]}x"}), 401, "unauthenticated")
    problem(door.get("/metrics", bearer=False), 401, "unauthenticated")
    for path in ("/healthz", "/readyz", "/openapi.json"):
        assert door.get(path, bearer=False).status == 200


def test_refused_logins_are_recorded_with_the_address(door):
    door.get("/v1/workspaces", bearer=False)
    found = [json.loads(line) for line in door.daemon("audit", "--type", "login.refused", "-o", "json").stdout.splitlines()]
    assert found and found[-1]["data"]["address"] == "127.0.0.1" and "uid" not in found[-1]["data"]


@pytest.mark.parametrize("host, status", [
    (HOST, 200), (HOST.upper() + ".:8443", 200), ("localhost", 200), ("127.0.0.1:1", 200), ("[::ffff:127.0.0.1]", 200),
    ("evil.example", 403), ("127.0.0.2", 403), ("desk.example.evil.example", 403), ("", 403)])
def test_host_must_be_a_name_of_the_daemon(door, host, status):
    answer = door.get("/healthz", headers={"Host": host})
    assert answer.status == status
    if status == 403:
        problem(answer, 403, "denied", "serve.hosts")


def test_a_page_of_a_foreign_origin_is_refused_and_a_listed_one_served(door):
    for origin in ("https://evil.example", "null", "http://app.example", ORIGIN + ":8443", f"http://127.0.0.1:{door.address()[1]}"):
        answer = door.get("/v1/workspaces", headers={"Origin": origin})
        problem(answer, 403, "denied", "serve.origins")
        assert "Access-Control-Allow-Origin" not in answer.headers
    answer = door.get("/v1/workspaces", headers={"Origin": ORIGIN})
    assert answer.status == 200 and answer.headers["Access-Control-Allow-Origin"] == ORIGIN
    assert answer.headers["Vary"] == "Origin" and "Access-Control-Allow-Credentials" not in answer.headers
    answer = door.get("/v1/workspaces", headers={"Origin": ORIGIN}, bearer=False)
    assert answer.status == 401 and answer.headers["Access-Control-Allow-Origin"] == ORIGIN     # a page reads the error


def test_a_preflight_request_is_answered_without_a_token(door):
    asks = {"Origin": ORIGIN, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    answer = door.request("OPTIONS", "/v1/workspaces", headers=asks, bearer=False)
    assert answer.status == 204 and answer.headers["Access-Control-Allow-Origin"] == ORIGIN and not answer.body
    assert "POST" in answer.headers["Access-Control-Allow-Methods"]
    assert "Authorization" in answer.headers["Access-Control-Allow-Headers"]
    problem(door.request("OPTIONS", "/v1/workspaces", headers={**asks, "Origin": "https://evil.example"}, bearer=False), 403, "denied")
    del asks["Access-Control-Request-Method"]
    assert door.request("OPTIONS", "/v1/workspaces", headers=asks, bearer=False).status == 401


def test_a_token_in_a_url_is_refused_and_not_logged(door):
    for query in (f"token={door.token}", f"a=b&access_token={door.token}"):
        problem(door.get(f"/v1/workspaces?{query}"), 400, "invalid", "Authorization")
        problem(door.get(f"/v1/workspaces?{query}", bearer=False), 400, "invalid")
        problem(door.daemon.get(f"/v1/workspaces?{query}"), 400, "invalid")
    assert door.token not in door.daemon.log()


def forwarded(door, source, header):
    """The address that the audit log has of a request from `source`."""
    host, port = door.address()
    with socket.create_connection((host, port), 60, (source, 0)) as client:
        client.sendall(f"GET /v1/x HTTP/1.1\r\nHost: {HOST}\r\nX-Forwarded-For: {header}\r\n\r\n".encode())
        assert client.recv(100).startswith(b"HTTP/1.1 401")
    lines = door.daemon("audit", "--type", "login.refused", "-o", "json").stdout.splitlines()
    return json.loads(lines[-1])["data"]["address"]


def test_the_client_behind_a_listed_proxy_is_seen_and_no_other_is_believed(door):
    assert forwarded(door, "127.0.0.2", "192.0.2.1, 198.51.100.7") == "198.51.100.7"
    assert forwarded(door, "127.0.0.2", "192.0.2.9, 10.1.2.3, [::1]") == "::1"
    assert forwarded(door, "127.0.0.2", "198.51.100.8, 10.1.2.3") == "198.51.100.8"
    assert forwarded(door, "127.0.0.2", "nonsense") == "127.0.0.2"
    assert forwarded(door, "127.0.0.3", "192.0.2.1") == "127.0.0.3"


def test_a_reload_keeps_the_listeners_and_their_port(door):
    addresses = lambda: [door.address(index) for index in range(len(FAMILIES))]
    before = addresses()
    done = door.daemon("serve", "--reload")
    assert done.returncode == 0, done.stderr
    assert addresses() == before
    assert all(door.get("/v1/workspaces", index=index).status == 200 for index in range(len(FAMILIES)))


def test_a_dead_core_is_replaced_and_serves_tcp_again(door):
    door.daemon.kill_core()
    assert door.get("/v1/workspaces").status == 200


@pytest.mark.needs_root
def test_a_thousand_clients_that_vanish_leave_nothing(door):
    """Half a request each, then gone; ten at a time."""
    host, port = door.address()
    descriptors = lambda: len(os.listdir(f"/proc/{door.daemon.core_pid()}/fd"))
    door.get("/healthz")
    before = descriptors()

    def vanish(number):
        with socket.create_connection((host, port), 60) as client:
            client.sendall(b"POST /v1/workspaces HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n"[:40 + number % 40])
    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        list(pool.map(vanish, range(1000)))
    assert door.get("/v1/workspaces").status == 200
    assert eventually(lambda: descriptors() < before + 20)      # 25 were cut at each place; a workspace made ahead may come up meanwhile


def test_tcp_without_a_token_is_refused(carrel):
    done = carrel("serve", "--listen", "127.0.0.1:0")
    assert done.returncode == 125 and "TCP needs a token" in done.stderr
    pathlib.Path(carrel.env["CARREL_HOME"], "config.yaml").write_text("serve:\n  listen: ['127.0.0.1:0']\n")
    done = carrel("serve", "--background")
    hint = one_line(done.stderr, "TCP needs a token")
    assert done.returncode == 125 and hint.startswith("make one first: carrel serve")
    for command in hint.removeprefix("make one first: ").split("; "):       # what it says works
        done = carrel(*command.split()[1:])
        assert done.returncode == 0, (command, done.stderr)
    assert carrel("serve", "--background").returncode == 0
    assert "socket=127.0.0.1:" in pathlib.Path(carrel.env["CARREL_HOME"], "run/carrel.log").read_text()
    assert carrel("serve", "--stop").returncode == 0


def test_beyond_this_host_it_needs_tls_or_a_word(carrel):
    for address in ("0.0.0.0:0", "[::]:0"):
        done = carrel("serve", "--listen", address)
        assert done.returncode == 125 and "--insecure" in one_line(done.stderr, "has no TLS")
    assert not pathlib.Path(carrel.env["CARREL_HOME"], "run/carrel.sock").exists()


PASS_ON = """
import os, socket, sys
made = [socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET) for host in sys.argv[2:]]
print(*(s.getsockname()[1] for s in made), flush=True)
high = [os.dup2(s.detach(), 20 + i) for i, s in enumerate(made)]
for place, fd in enumerate(high):
    os.dup2(fd, 3 + place)
os.environ.update(LISTEN_FDS=str(len(made)), LISTEN_PID=str(os.getpid()))
os.execv(sys.argv[1], [sys.argv[1], "serve"])
"""


def test_several_passed_sockets_are_served_with_the_homes_own(door):
    """systemd's: the home's own socket is there because none of them is a unix socket."""
    daemon = door.daemon
    daemon.stop_serving()
    with subprocess.Popen([sys.executable, "-c", PASS_ON, CARREL, *FAMILIES], env=daemon.env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        ports = process.stdout.readline().split()
        try:
            for host, port in zip(FAMILIES, ports):
                with socket.create_connection((host, int(port)), 60) as client:
                    client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    assert client.recv(100).startswith(b"HTTP/1.1 200")
            assert daemon.is_ready()
        finally:
            process.terminate()
            assert process.wait(60) == 0
    daemon.start_serving()


def test_a_page_of_a_listed_origin_opens_a_web_socket_with_its_token_as_a_subprotocol(door):
    made = door.post("/v1/workspaces", {})
    path, offered = f"{made.headers['Location']}/exec", (PROTOCOL, f"carrel.bearer.{door.token}")
    try:
        with WebSocket(door, path, offered, (f"Origin: {ORIGIN}",)) as ws:
            ws.start(command="head -c 4194304 | wc -c; head -c 4194304 /dev/zero").until("started")
            for _ in range(64):
                ws.stdin(bytes(65536))
            assert ws.until("exit")["exit_code"] == 0
            assert ws.output[1] == b"4194304\n" + bytes(4194304)
            ws.closing()
            assert ws.code == 1000
        for protocols, headers, status in ((offered, ("Origin: https://evil.example",), 403), ((PROTOCOL,), (f"Origin: {ORIGIN}",), 401),
                                           ((PROTOCOL, "carrel.bearer.x"), (), 401)):
            with pytest.raises(Refused) as info:
                WebSocket(door, path, protocols, headers)
            assert info.value.status == status
    finally:
        door.request("DELETE", made.headers["Location"])
