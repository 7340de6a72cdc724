"""The process that writes the database: while it hangs everything else goes on, and when it dies nobody notices."""
# security: daemon
import contextlib
import os
import pathlib
import select
import signal

import pytest

from faults import exec_, home, is_whole, kill, rows, workspaces
from harness import descendants, eventually

pytestmark = pytest.mark.once     # the writer is the same process for every user


def writer(daemon):
    """Its pid, once there is one."""
    found = eventually(lambda: next((pid for pid, (_, name) in descendants(daemon.process.pid).items() if name == "carrel-writer"), None))
    assert found, daemon.log()
    return found


@contextlib.contextmanager
def creating(daemon, name):
    """A create that was sent, and its connection."""
    with contextlib.closing(daemon.connection()) as connection:
        connection.request("POST", "/v1/workspaces", b'{"name": "%s"}' % name.encode(), {"Content-Type": "application/json"})
        yield connection


def is_answered(connection):
    return bool(select.select([connection.sock], [], [], 0)[0])


@pytest.fixture
def hanging(own_daemon):
    """A daemon with a workspace, whose writer hangs as in a disk that doesn't answer."""
    assert own_daemon.post("/v1/workspaces", {"name": "kept"}).status == 201
    pid = writer(own_daemon)
    kill(pid, signal.SIGSTOP)
    yield own_daemon
    kill(pid, signal.SIGCONT)


def test_a_disk_that_hangs_holds_up_no_exec(hanging):
    daemon = hanging
    with creating(daemon, "new") as new, creating(daemon, "other") as other:
        for n in range(5):
            assert exec_(daemon, "kept", "echo", str(n)).json()["stdout"] == f"{n}\n"
        assert daemon.request("PUT", "/v1/workspaces/kept/files/a", b"a").status == 201
        assert set(workspaces(daemon)) == {"kept"}
        assert not is_answered(new) and not is_answered(other)
        # One that lasts is said.
        assert eventually(lambda: b"takes longer" in daemon.get("/readyz").body), daemon.get("/readyz")
        assert not daemon.is_ready() and daemon.get("/healthz").status == 200
        kill(writer(daemon), signal.SIGCONT)
        assert new.getresponse().status == other.getresponse().status == 201
    assert eventually(daemon.is_ready)
    assert set(workspaces(daemon)) == {"kept", "new", "other"}
    assert rows(daemon)["workspaces"] == {item["id"] for item in workspaces(daemon).values()}


def test_who_is_told_that_a_name_is_taken_finds_it(hanging):
    daemon = hanging
    with creating(daemon, "new") as first, creating(daemon, "new") as second, creating(daemon, "kept") as known:
        assert known.getresponse().status == 409
        assert exec_(daemon, "kept", "true").status == 200
        assert not is_answered(first) and not is_answered(second)
        kill(writer(daemon), signal.SIGCONT)
        assert sorted((first.getresponse().status, second.getresponse().status)) == [201, 409]
        assert exec_(daemon, "new", "true").status == 200


def test_one_that_is_killed_in_the_middle_is_replaced(hanging):
    daemon, pid, core = hanging, writer(hanging), hanging.core_pid()
    with creating(daemon, "new") as new:
        assert exec_(daemon, "kept", "true").status == 200
        assert not is_answered(new)
        kill(pid)
        assert new.getresponse().status == 201
    assert writer(daemon) != pid and daemon.core_pid() == core
    assert "the process that writes the database has ended" in daemon.log()
    kill(writer(daemon))    # with nothing to do
    is_whole(daemon, workspaces(daemon)["new"])
    assert daemon.delete("/v1/workspaces/kept").status == 204
    assert set(workspaces(daemon)) == {"new"} and rows(daemon)["workspaces"] == {workspaces(daemon)["new"]["id"]}
    daemon.restart()
    assert set(workspaces(daemon)) == {"new"}


@pytest.mark.needs_faults
@pytest.mark.parametrize("point", ["store.commit:2", "store.written:2"])
def test_one_that_dies_at_every_second_commit_loses_nothing(make_daemon, point):
    daemon = make_daemon(env={"CARREL_FAULT": point})
    key = {"Idempotency-Key": "key"}
    first = daemon.post("/v1/workspaces", {"name": "a"}, headers=key)
    assert first.status == 201 and daemon.post("/v1/workspaces", {"name": "a"}, headers=key).json()["id"] == first.json()["id"]
    assert daemon.post("/v1/workspaces", {"name": "b"}).status == 201
    started = exec_(daemon, "a", "echo", "out", background=True)
    assert started.status == 201
    assert eventually(lambda: daemon.get(started.headers["Location"]).json()["state"] == "ended")
    assert daemon.delete("/v1/workspaces/b").status == 204
    assert daemon.log().count("the process that writes the database has ended") >= 2, daemon.log()
    del daemon.env["CARREL_FAULT"]
    daemon.restart()
    assert set(workspaces(daemon)) == {"a"}
    assert daemon.get(f"{started.headers['Location']}/output").body == b"out\n"


@pytest.mark.needs_root     # others may not look
def test_it_is_locked_in_the_home(own_daemon):
    assert own_daemon.post("/v1/workspaces", {"name": "kept"}).status == 201
    pid, core = writer(own_daemon), own_daemon.core_pid()
    status = lambda of: dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{of}/status").read_text().splitlines())
    assert status(pid)["Seccomp"] == status(core)["Seccomp"] and status(pid)["NSpid"].split()[-1] == "1"
    assert int(status(pid)["CapEff"], 16) == 0 and int(status(pid)["Uid"].split()[0]) != 0
    for kind in ("mnt", "pid", "net", "ipc", "uts"):
        assert len({os.readlink(f"/proc/{of}/ns/{kind}") for of in (pid, core, os.getpid())}) == 3
    held = {str(entry.readlink()) for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir() if entry.name not in ("0", "1", "2")}
    outside = {name for name in held if not name.startswith((str(home(own_daemon)), "socket:"))}
    assert not outside, held
    assert sum(name.startswith("socket:") for name in held) == 1, held


@pytest.mark.needs_root     # others may not look
def test_core_has_no_database_open(own_daemon):
    assert own_daemon.post("/v1/workspaces", {"name": "kept"}).status == 201
    opened = lambda of: {os.path.basename(os.readlink(entry)) for entry in pathlib.Path(f"/proc/{of}/fd").iterdir()}
    assert "carrel.db" in opened(writer(own_daemon))
    assert not {name for name in opened(own_daemon.core_pid()) if name.startswith("carrel.db")}
