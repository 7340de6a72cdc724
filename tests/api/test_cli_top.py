"""top, and what REST says of the use of workspaces."""
import json
import termios

import pytest
from harness import eventually, one_line
from rest import problem
from terminals import terminal
from workspaces import created, json_of, sh, workspace  # noqa: F401

KEYS = ["id", "name", "state", "warm", "measured_at", "cpu_ms", "cpu_percent", "memory_bytes", "memory_limit_bytes", "pids", "pids_limit",
        "disk_usage_bytes", "disk_limit_bytes", "execs"]


def test_a_busy_workspace_is_seen_and_stands_first(daemon, workspace):
    with created(daemon, "--memory", "256M", "--pids", "64") as busy:
        exec_id = daemon("exec", "-d", busy, "--", "/usr/bin/python3", "-c", """
import threading
kept = bytearray(b"x") * (40 << 20)
threading.Thread(target=threading.Event().wait, daemon=True).start()
print("ready", flush=True)
while True: pass""").stdout.strip()
        assert eventually(lambda: daemon("logs", exec_id).stdout == "ready\n")
        value = json_of(daemon("top", "-o", "json"))
        assert [list(one) for one in value] == [KEYS] * 2 and [one["name"] for one in value] == [busy, workspace]
        first, second = value
        assert first["cpu_percent"] > 0 and first["cpu_ms"] > 0 and first["memory_bytes"] > 40 << 20
        assert 3 <= first["pids"] < 12 and (first["pids_limit"], first["memory_limit_bytes"]) == (64, 256 << 20)
        assert (first["state"], first["warm"], first["execs"]) == ("running", True, 1)
        assert second["execs"] == 0 and second["cpu_ms"] < first["cpu_ms"]
        # Names keep their order, and a name may be an id.
        value = json_of(daemon("top", second["id"], busy, "-o", "json"))
        assert [one["name"] for one in value] == [workspace, busy]
        table = daemon("top").stdout.splitlines()
        assert table[0].split() == ["NAME", "STATE", "CPU", "%", "MEMORY", "PIDS", "DISK", "EXECS"]
        assert table[1].split()[:2] == [busy, "running"] and "/ 256M" in table[1] and "/ 64" in table[1] and len(table) == 3
        with terminal(daemon, "top", "--interval", "200ms") as term:
            for _ in range(3):
                term.expect(busy + " +running")
            term.send("\x03")
            term.rest()
            assert term.process.returncode == 0


@pytest.mark.parametrize("key", ["q", "xQ", "\x03"])
def test_a_key_leaves_it_and_the_terminal_is_as_before(daemon, workspace, key):
    with terminal(daemon, "top", "--interval", "30s") as term:
        term.expect(workspace)
        assert eventually(lambda: not termios.tcgetattr(term.slave)[3] & (termios.ECHO | termios.ICANON))
        term.send(key)
        rest = term.rest(10)
        assert term.process.returncode == 0 and "q" not in rest.lower(), rest
        assert termios.tcgetattr(term.slave) == term.before


def test_one_without_a_sandbox_uses_nothing(daemon):
    with created(daemon) as name:
        assert sh(daemon, name, "echo x >f").returncode == 0
        assert daemon("suspend", name).returncode == 0
        value = json_of(daemon("top", name, "-o", "json"))[0]
        assert (value["warm"], value["memory_bytes"], value["pids"], value["cpu_percent"], value["measured_at"]) == (False, 0, 0, None, None)
        assert daemon("top", name).stdout.splitlines()[1].split()[1:5] == ["suspended", "-", "-", "-"]


def test_the_list_has_pages_and_filters(daemon, workspace):
    with created(daemon, "--label", "a=b") as name:
        value = daemon.get("/v1/metrics?limit=1").json()
        assert [one["name"] for one in value["items"]] == [name] and value["next_cursor"]
        rest = daemon.get(f"/v1/metrics?cursor={value['next_cursor']}").json()
        assert [one["name"] for one in rest["items"]] == [workspace] and rest["next_cursor"] is None
        assert [one["name"] for one in daemon.get("/v1/metrics?label=a%3Db").json()["items"]] == [name]
        assert list(daemon.get(f"/v1/workspaces/{name}/metrics").json()) == KEYS
    problem(daemon.get("/v1/workspaces/nosuch/metrics"), 404, "not_found", "nosuch")
    done = daemon("top", "nosuch")
    assert done.returncode == 125
    one_line(done.stderr, "nosuch")
