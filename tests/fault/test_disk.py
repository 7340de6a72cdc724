"""Disks that are full, out of inodes or read-only, and databases that are damaged or locked: a named error, no half state,
and all well again when the cause is gone."""
# security: daemon
import contextlib
import os
import sqlite3
import subprocess

import pytest

from faults import exec_, files, home, is_whole, remove_all, rows, sh, workspaces
from harness import NOT_AHEAD, eventually, what_stays
from rest import problem
from small_disks import on_small_disk, read_only, without_inodes, without_room


@pytest.mark.needs_root
@pytest.mark.parametrize("options, fault", [("size=16m", without_room), ("size=64m,nr_inodes=400", without_inodes)], ids=["full", "inodes"])
def test_a_disk_that_takes_nothing(options, fault):
    with on_small_disk(options) as daemon:
        assert daemon.post("/v1/workspaces", {"name": "kept", "limits": NOT_AHEAD}).status == 201
        assert daemon.request("PUT", "/v1/workspaces/kept/files/old", b"old").status == 201
        is_whole(daemon, workspaces(daemon)["kept"])
        before = files(daemon)
        with fault(daemon):
            for answer in (daemon.post("/v1/workspaces", {"name": "new", "limits": NOT_AHEAD}),
                           daemon.request("PUT", "/v1/workspaces/kept/files/old", b"new" * 100000),
                           daemon.request("PUT", "/v1/workspaces/kept/files/more", b"x" * 100000),
                           exec_(daemon, "kept", "true", background=True)):
                problem(answer, 507, "disk_full", "No space left on device")
            # What writes nothing goes on: reading, and commands, whose own writes fail as anybody's do.
            assert daemon.get("/v1/workspaces/kept/files/old").body == b"old"
            assert set(workspaces(daemon)) == {"kept"}
            assert sh(daemon, "kept", "cat old").json()["stdout"] == "old"
            assert sh(daemon, "kept", "dd if=/dev/zero of=more bs=1M count=20").json()["exit_code"] == 1
            assert daemon.get("/healthz").status == 200
        assert eventually(daemon.is_ready), daemon.get("/readyz")
        sh(daemon, "kept", "rm -f more")
        left = what_stays(lambda: (files(daemon) - before) | rows(daemon)["execs"])
        assert not left, left
        assert rows(daemon)["workspaces"] == {workspaces(daemon)["kept"]["id"]}
        assert daemon.post("/v1/workspaces", {"name": "new", "limits": NOT_AHEAD}).status == 201
        for item in workspaces(daemon).values():
            is_whole(daemon, item)
        remove_all(daemon)


@pytest.mark.needs_root
def test_a_workspace_that_filled_the_disk_can_be_removed():
    with on_small_disk("size=16m") as daemon:
        for name in ("kept", "full"):
            assert daemon.post("/v1/workspaces", {"name": name}).status == 201
        is_whole(daemon, workspaces(daemon)["kept"])
        assert sh(daemon, "full", "dd if=/dev/zero of=more bs=4k; dd if=/dev/zero of=more2 bs=1").json()["exit_code"] == 1
        problem(daemon.post("/v1/workspaces", {"name": "new"}), 507, "disk_full")
        # What its row would need may not be there: its bytes go first. When the answer comes, there is room for the next.
        assert daemon.delete("/v1/workspaces/full").status == 204
        assert daemon.post("/v1/workspaces", {"name": "new"}).status == 201
        assert daemon.request("PUT", "/v1/workspaces/new/files/data", bytes(4 << 20)).status == 201
        assert set(workspaces(daemon)) == {"kept", "new"}
        assert eventually(lambda: not list((home(daemon) / "workspaces").glob(".del-*")))
        is_whole(daemon, workspaces(daemon)["kept"])


def fill_and_clear(daemon, name):
    """A directory of many files is removed; the next upload takes its room."""
    fill = "import os\nos.mkdir('d')\ntry:\n  for i in range(1500): open(f'd/{i}', 'wb').write(bytes(8192))\nexcept OSError: pass"
    assert exec_(daemon, name, "python3", "-c", fill).json()["exit_code"] == 0
    assert daemon.delete(f"/v1/workspaces/{name}/files/d?recursive=true").status == 204
    assert daemon.request("PUT", f"/v1/workspaces/{name}/files/data", bytes(8 << 20)).status == 201


@pytest.mark.needs_root
def test_a_directory_that_was_removed_leaves_room_for_the_next_upload():
    with on_small_disk("size=16m") as daemon:
        assert daemon.post("/v1/workspaces", {"name": "w"}).status == 201
        for _ in range(2):
            fill_and_clear(daemon, "w")
            assert daemon.delete("/v1/workspaces/w/files/data").status == 204


@pytest.mark.once
def test_a_directory_that_was_removed_leaves_room_below_the_limit_for_the_next_upload(own_daemon):
    assert own_daemon.post("/v1/workspaces", {"name": "w", "limits": {"disk": "14M"}}).status == 201
    fill_and_clear(own_daemon, "w")


@pytest.mark.needs_root
@pytest.mark.parametrize("fault", [without_room, read_only])
def test_a_start_without_a_disk_says_why_and_the_next_one_is_whole(fault):
    with on_small_disk("size=16m") as daemon:
        assert daemon.post("/v1/workspaces", {"name": "kept"}).status == 201
        assert daemon.request("PUT", "/v1/workspaces/kept/files/old", b"old").status == 201
        daemon.stop_serving()
        with fault(daemon):
            done = subprocess.Popen([daemon.path, "serve"], env=daemon.env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            try:
                # With a full disk it may well come up: nothing has to be written.
                assert eventually(lambda: done.poll() is not None or daemon.is_ready())
                if done.poll() is None:
                    assert daemon.get("/v1/workspaces/kept/files/old").body == b"old"
            finally:
                done.terminate()
                said = done.communicate(timeout=120)[1]
            assert done.returncode in (0, 125), said
            assert not done.returncode or "No space left" in said or "ead-only" in said, said
        daemon.start_serving()
        assert set(workspaces(daemon)) == {"kept"}
        is_whole(daemon, workspaces(daemon)["kept"])
        assert daemon.get("/v1/workspaces/kept/files/old").body == b"old"


# ---- the database ----

def test_a_locked_database_is_503_and_recovers(own_daemon):
    daemon = own_daemon
    assert daemon.post("/v1/workspaces", {"name": "kept"}).status == 201
    with contextlib.closing(sqlite3.connect(home(daemon) / "carrel.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        problem(daemon.post("/v1/workspaces", {"name": "new"}), 503, "unavailable", "locked")
        problem(exec_(daemon, "kept", "true", background=True), 503, "unavailable", "locked")
        problem(daemon.delete("/v1/workspaces/kept"), 503, "unavailable", "locked")
        problem(daemon.get("/readyz"), 503, "unavailable", "locked")
        assert daemon.get("/healthz").status == 200
        # That nobody waits who only looks: test_writer.
        assert daemon.get("/v1/workspaces/kept").json()["state"] == "deleting"
        other.execute("ROLLBACK")
    assert eventually(daemon.is_ready)
    assert daemon.delete("/v1/workspaces/kept").status == 204
    assert daemon.post("/v1/workspaces", {"name": "new"}).status == 201
    is_whole(daemon, workspaces(daemon)["new"])
    assert set(workspaces(daemon)) == {"new"} and rows(daemon)["workspaces"] == {workspaces(daemon)["new"]["id"]}


def damage(path, how):
    data = bytearray(path.read_bytes())
    if how == "garbage":
        data = os.urandom(len(data))
    elif how == "cut":
        data = data[:len(data) // 2]
    elif how == "empty":
        data = b""
    elif how == "a flipped bit":
        at = data.index(b"second")      # in a row: SQLite itself sees nothing wrong
        data[at] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("how", ["garbage", "cut", "empty", "a flipped bit"])
def test_a_damaged_database_is_put_aside_and_files_are_kept(own_daemon, how):
    daemon = own_daemon
    for name in ("first", "second"):
        assert daemon.post("/v1/workspaces", {"name": name}).status == 201
        assert daemon.request("PUT", f"/v1/workspaces/{name}/files/dear", name.encode()).status == 201
    ids = {name: item["id"] for name, item in workspaces(daemon).items()}
    daemon.stop_serving()
    damage(home(daemon) / "carrel.db", how)
    daemon.start_serving()
    assert "damaged" in daemon.log() and list(home(daemon).glob("carrel.db.corrupt-*"))
    there = workspaces(daemon)
    assert set(there) < {"first", "second"}
    if how == "a flipped bit":      # rows that are whole are rescued
        assert set(there) == {"first"}
    for name, id_ in ids.items():
        if name in there:
            assert daemon.get(f"/v1/workspaces/{name}/files/dear").body == name.encode()
            is_whole(daemon, there[name])
        else:
            assert (home(daemon) / f"workspaces/.lost-{id_}/upper/dear").read_bytes() == name.encode()
    assert daemon.post("/v1/workspaces", {"name": "third"}).status == 201
    is_whole(daemon, workspaces(daemon)["third"])
    # And it stays so.
    daemon.restart()
    assert set(workspaces(daemon)) == {*there, "third"}
