"""Snapshots, rollbacks, forks and merges on a disk without room: an error that names the object, nothing is lost, and all
goes on when there is room."""
import contextlib
import os

import pytest

from faults import exec_, home, sh, workspaces
from harness import NOT_AHEAD, eventually
from rest import problem
from small_disks import on_small_disk, without_inodes, without_room

URL = "/v1/workspaces/kept"
STATE = "find . -mindepth 1 ! -name .n | sort; cat *.txt; stat -c %a ."


def ok(daemon, script, name="kept"):
    answer = sh(daemon, name, script).json()
    assert answer["exit_code"] == 0, answer
    return answer["stdout"]


def layers(daemon):
    return [path.name for path in (home(daemon) / "layers").iterdir() if "snap-" in path.name]


@pytest.mark.needs_root
@pytest.mark.parametrize("options, fault", [("size=16m", without_room), ("size=64m,nr_inodes=600", without_inodes)], ids=["full", "inodes"])
def test_a_disk_that_takes_nothing_keeps_what_there_is(options, fault):
    with on_small_disk(options) as daemon:
        assert daemon.post("/v1/workspaces", {"name": "kept", "limits": NOT_AHEAD}).status == 201
        ok(daemon, "echo one >a.txt; mkdir d; chmod 1750 .")
        assert daemon.post(f"{URL}/snapshots", {"tag": "first"}).status == 201
        ok(daemon, "echo two >a.txt; rm -r d; echo b >b.txt; head -c 3000000 /dev/urandom >large")
        before, count = ok(daemon, STATE), len(layers(daemon))
        with fault(daemon):
            for answer in (daemon.post(f"{URL}/snapshots", {"tag": "second"}),
                           daemon.post(f"{URL}/rollback", {"snapshot": "first"}),
                           daemon.post(f"{URL}/fork", {"name": "f", "count": 3})):
                problem(answer, 507, "disk_full", "No space left on device", "kept")
            # Without inodes no sandbox starts.
            assert fault is without_inodes or ok(daemon, STATE) == before
            assert [item["tag"] for item in daemon.get(f"{URL}/snapshots").json()["items"]] == ["first"]
        assert set(workspaces(daemon)) == {"kept"} and ok(daemon, STATE) == before
        assert eventually(lambda: len(layers(daemon)) == count, 60), layers(daemon)
        assert daemon.post(f"{URL}/snapshots", {"tag": "second"}).status == 201
        assert daemon.post(f"{URL}/rollback", {"snapshot": "first"}).status == 200
        assert ok(daemon, "cat a.txt; ls") == "one\na.txt\nd\n"
        assert daemon.post(f"{URL}/rollback", {"snapshot": "second"}).status == 200
        assert ok(daemon, STATE) == before
        assert daemon.post(f"{URL}/fork", {"name": "f", "count": 3}).status == 201
        assert ok(daemon, STATE, "f-3") == before


@pytest.mark.needs_root
def test_a_copy_of_a_busy_workspace_without_room_leaves_nothing():
    with on_small_disk("size=24m") as daemon:
        assert daemon.post("/v1/workspaces", {"name": "kept", "limits": NOT_AHEAD}).status == 201
        ok(daemon, "head -c 14000000 /dev/urandom >large; mkfifo wait; echo a >a.txt")
        run = daemon.post(f"{URL}/exec", {"command": "echo x >.n; cat wait", "background": True}).headers["Location"]
        assert eventually(lambda: daemon.get(f"{URL}/files/.n").status == 200, 60)
        problem(daemon.post(f"{URL}/snapshots"), 507, "disk_full", "large", "kept")
        assert eventually(lambda: not layers(daemon), 60), layers(daemon)
        assert exec_(daemon, "kept", "sh", "-c", "echo done >wait; cat a.txt").json()["stdout"] == "a\n"
        assert daemon.get(f"{run}?wait").json()["reason"] == "exited"
        assert daemon.get(f"{run}/output").body == b"done\n"
        assert daemon.post(f"{URL}/snapshots").status == 201  # by a rename: there is nothing to copy


@pytest.mark.needs_root
def test_layers_that_cant_be_merged_for_lack_of_inodes_stay_in_use():
    with on_small_disk("size=64m,nr_inodes=900") as daemon:
        assert daemon.post("/v1/workspaces", {"name": "kept", "limits": NOT_AHEAD}).status == 201
        for n in range(8):
            ok(daemon, f"mkdir d{n}; cd d{n}; mkdir $(seq 20); touch f")
            assert daemon.post(f"{URL}/snapshots").status == 201
        ok(daemon, "echo last >a.txt")
        hogs = home(daemon) / "hogs"
        with without_inodes(daemon):
            for path in list(hogs.iterdir())[:30]:  # for the snapshot, not for the merge
                path.unlink()
            assert daemon.post(f"{URL}/snapshots").status == 201
            assert eventually(lambda: "layers can't be merged" in daemon.log(), 60)
            assert "No space left on device" in daemon.log()
            assert ok(daemon, "cat a.txt; ls d0 | wc -l") == "last\n21\n"
        ok(daemon, "echo more >a.txt")
        assert daemon.post(f"{URL}/snapshots").status == 201

        def newest():
            return daemon.get(f"{URL}/snapshots").json()["items"][0]

        assert eventually(lambda: len(newest()["layers"]) <= 8, 60), newest()
        assert ok(daemon, "cat a.txt; ls d0 | wc -l") == "more\n21\n"


@contextlib.contextmanager
def with_little_room(daemon):
    """What is written first fits, what follows doesn't."""
    with without_room(daemon):
        hog = home(daemon) / "hog"
        os.truncate(hog, hog.stat().st_size - (1 << 20))
        yield


@pytest.mark.needs_root
def test_a_pull_and_a_restore_without_room_leave_nothing():
    with on_small_disk("size=32m") as daemon:
        assert daemon.post("/v1/workspaces", {"name": "kept", "limits": NOT_AHEAD}).status == 201
        ok(daemon, "echo one >a.txt; head -c 3000000 /dev/urandom >large")
        before = ok(daemon, STATE)
        assert daemon.post(f"{URL}/snapshots", {"tag": "good"}).status == 201
        assert daemon.post(f"{URL}/push", {"snapshot": "good"}).status in (200, 201)
        assert daemon.delete(f"{URL}?archive=true").status in (200, 204)
        archive = daemon.get("/v1/archives").json()["items"][0]["name"]
        pull = "/v1/snapshots", {"workspace": "kept", "snapshot": "good"}
        restore = f"/v1/archives/{archive}/restore", {}
        assert eventually(lambda: not layers(daemon), 60), layers(daemon)
        for fault in (without_room, with_little_room):
            for path, body in (pull, restore):
                with fault(daemon):
                    problem(daemon.post(path, body), 507, "disk_full")
                    assert workspaces(daemon) == {} and daemon.get("/v1/snapshots").json()["items"] == []
                    # Before the next one: what was written is given back first.
                    assert eventually(lambda: not layers(daemon), 60), layers(daemon)
        assert daemon.post(*restore).status == 201 and ok(daemon, STATE) == before
        assert daemon.delete(URL).status == 204
        pulled = daemon.post(*pull)
        assert pulled.status == 201, pulled
        assert daemon.post("/v1/workspaces", {"name": "kept", "from": pulled.json()["id"], "limits": NOT_AHEAD}).status == 201
        assert ok(daemon, STATE) == before
