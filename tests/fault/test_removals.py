"""A workspace is removed while a snapshot of it is being made: what was frozen is archived, and each request is answered."""
import concurrent.futures
import contextlib
import os
import signal

import pytest

from faults import home
from harness import descendants, eventually
from rest import problem
from test_archives_killed import check_whole

pytestmark = pytest.mark.needs_faults

URL = "/v1/workspaces/w"


def held(daemon):
    """The processes that wait for SIGCONT."""
    found = []
    for pid in descendants(daemon.process.pid):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/status") as file:
            caught = next(line.split()[1] for line in file if line.startswith("SigCgt:"))
            if int(caught, 16) >> (signal.SIGCONT - 1) & 1:
                found.append(pid)
    return found


def let_go(daemon):
    def is_gone():
        for pid in held(daemon):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        return not held(daemon)
    assert eventually(is_gone)


def is_leaving(daemon):
    answer = daemon.get(URL)
    return answer.status == 404 or answer.json()["state"] == "deleting"


@pytest.fixture
def freezing(make_daemon):
    """(a daemon, the answer to come of a snapshot whose child that writes to disk waits, a pool)."""
    daemon = make_daemon(env={"CARREL_FAULT": "core_freeze_syncing:1:WAIT"})
    assert daemon.post("/v1/workspaces", {"name": "w"}).status == 201
    assert daemon.request("PUT", f"{URL}/files/file", b"precious\n").status == 201
    assert daemon.post(f"{URL}/suspend").status == 200
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        snapshot = pool.submit(daemon.post, f"{URL}/snapshots")
        try:
            assert eventually(lambda: held(daemon))
            yield daemon, snapshot, pool
        finally:
            let_go(daemon)


def test_what_a_snapshot_has_frozen_is_archived(freezing):
    daemon, snapshot, pool = freezing
    removal = pool.submit(daemon.delete, f"{URL}?archive=true")
    assert eventually(lambda: is_leaving(daemon))
    let_go(daemon)
    problem(snapshot.result(), 404, "not_found", "is being removed")
    assert removal.result().status == 200, removal.result()
    check_whole(home(daemon) / "blobs/archives" / removal.result().json()["name"])
    assert daemon.get(URL).status == 404


@pytest.mark.parametrize("archive", ["true", "false"])
def test_a_command_that_waits_for_a_snapshot_is_told_of_the_removal(freezing, archive):
    daemon, snapshot, pool = freezing
    command = pool.submit(daemon.post, f"{URL}/exec", {"argv": ["true"]})
    assert eventually(lambda: daemon.get(f"{URL}/execs").json()["items"])
    removal = pool.submit(daemon.delete, f"{URL}?archive={archive}")
    assert eventually(lambda: is_leaving(daemon))
    let_go(daemon)
    problem(snapshot.result(), 404, "not_found", "is being removed")
    assert removal.result().status in (200, 204), removal.result()
    assert command.result(60).status in (200, 404), command.result()
    assert daemon.get(URL).status == 404
