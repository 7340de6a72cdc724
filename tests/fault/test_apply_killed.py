"""kill -9 at each step of `carrel apply`, and full disks: all changes are there, or none."""
# security: files
import contextlib
import ctypes
import http.client
import os
import pathlib
import subprocess

import pytest

from harness import IS_ROOT, TEST_MOUNT, eventually
from rest import output_of

BASE = "mkdir d; echo one > a; echo x > d/x; echo t > t; echo m > m"
WORK = "echo two > a; rm -r d; rm t; mkdir t; echo in > t/in; chmod 700 m; echo new > new"
CHANGED = {"a": "two\n", "m": "m\n", "new": "new\n", "t/in": "in\n", "t": None}
libc = ctypes.CDLL(None, use_errno=True)


def prepare(daemon):
    """A workspace that has changed since its snapshot, and a fork of that snapshot."""
    assert daemon.post("/v1/workspaces", {"name": "source"}).status == 201
    output_of(daemon, "source", BASE)
    assert daemon.post("/v1/workspaces/source/snapshots").status == 201
    assert daemon.post("/v1/workspaces/source/fork", {"name": "target"}).status == 201
    output_of(daemon, "source", WORK)


def tree(path):
    return {str(one.relative_to(path)): one.read_text() if one.is_file() else None for one in path.rglob("*")}


def fill(path):
    subprocess.run(["sh", "-c", BASE], cwd=path, check=True)


def areas(daemon, path):
    place = pathlib.Path("/var/tmp") if IS_ROOT else pathlib.Path(daemon.env["CARREL_HOME"]) / "reviews"
    found = []
    for area in place.glob("carrel-review-*"):
        with contextlib.suppress(OSError):
            if (area / "target").read_text() == str(path):
                found.append(area)
    return found


@pytest.fixture(scope="module")
def ready(daemon):
    prepare(daemon)
    yield daemon
    for name in ("source", "target"):
        assert daemon.delete(f"/v1/workspaces/{name}").status == 204


@pytest.mark.needs_faults
@pytest.mark.parametrize("fault", ["apply_received:1", "bundle_read:1", "apply_stage_made:1", "apply_staged:1", "apply_moved_away:1",
                                   "apply_moved:3", "apply_moved_away:6", "apply_done:1"])
def test_a_directory_is_as_before_after_a_kill(ready, tmp_path, fault):
    target = tmp_path / "target"
    target.mkdir()
    fill(target)
    before = tree(target)
    killed = ready("apply", "source", "--to", target, env={"CARREL_FAULT": fault})
    assert killed.returncode == -9, killed
    again = ready("apply", "source", "--to", target, "--dry-run", env={"CARREL_FAULT": "apply_undone:1"})
    assert again.returncode in (0, -9), again  # killed while it undoes
    again = ready("apply", "source", "--to", target, "--dry-run")
    assert again.returncode == 0 and tree(target) == before and not areas(ready, target), again
    done = ready("apply", "source", "--to", target)
    assert done.returncode == 0 and tree(target) == CHANGED, done


@pytest.mark.needs_faults
def test_a_failed_write_leaves_the_directory_as_it_was(ready, tmp_path):
    target = tmp_path / "target"
    target.mkdir()
    fill(target)
    before = tree(target)
    failed = ready("apply", "source", "--to", target, env={"CARREL_FAULT": "archive.write:2:ENOSPC"})
    assert failed.returncode == 125 and "No space left" in failed.stderr and tree(target) == before, failed
    assert not areas(ready, target)


@pytest.mark.needs_root
def test_a_full_disk_leaves_the_directory_as_it_was(daemon, tmp_path):
    target = tmp_path / "small"
    target.mkdir()
    assert daemon.post("/v1/workspaces", {"name": "large"}).status == 201
    output_of(daemon, "large", "echo small > a; head -c 3000000 /dev/urandom > large")
    assert libc.mount(TEST_MOUNT.encode(), os.fsencode(target), b"tmpfs", 6, b"size=1m") == 0
    try:
        failed = daemon("apply", "large", "--to", target)
        assert failed.returncode == 125 and "No space left" in failed.stderr and not list(target.iterdir()), failed
        assert daemon("apply", "large", "a", "--to", target).returncode == 0 and tree(target) == {"a": "small\n"}
    finally:
        subprocess.run(["umount", "-l", target], check=True)
    assert daemon.delete("/v1/workspaces/large").status == 204


def state_of(daemon):
    return output_of(daemon, "target", "for f in $(find . -type f ! -name '.workspace*' ! -name .context.json | sort); do echo $f; cat $f; done; ls -A")


@pytest.mark.needs_faults
@pytest.mark.parametrize("fault", ["bundle_read:1", "apply_staged:1", "apply_moved_away:2", "apply_moved:4", "agent_applied:1", "core_apply_answer:1"])
def test_a_workspace_has_all_changes_or_none_after_a_kill(make_daemon, fault):
    """Of its file agent, or of core."""
    daemon = make_daemon()
    prepare(daemon)
    before = state_of(daemon)
    daemon.stop_serving()
    daemon.env["CARREL_FAULT"] = fault
    daemon.start_serving()
    if fault.startswith("core_"):
        with daemon.new_core(), contextlib.suppress(OSError, http.client.HTTPException):
            daemon.post("/v1/workspaces/source/apply", {"to": "target"})
    else:
        answer = daemon.post("/v1/workspaces/source/apply", {"to": "target"})
        assert answer.status == 503 and "file agent" in answer.json()["detail"], answer.body
    del daemon.env["CARREL_FAULT"]
    daemon.restart()
    if fault.startswith(("core_", "agent_")):  # it was done, and isn't undone
        assert eventually(lambda: ".carrel-" not in state_of(daemon)), state_of(daemon)
        assert "two" in state_of(daemon) and "x" not in state_of(daemon).split()
    else:
        assert eventually(lambda: state_of(daemon) == before), state_of(daemon)
    answer = daemon.post("/v1/workspaces/source/apply", {"to": "target"})
    assert answer.status == 200 and answer.json()["conflicts"] == 0, answer.body
    assert output_of(daemon, "target", "cat a new t/in; ls -A | grep -c carrel- || true") == "two\nnew\nin\n0\n"
