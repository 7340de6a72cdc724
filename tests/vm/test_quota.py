"""Disk limits of workspaces on file systems with quotas, which only the machine of tools/test-vm has for sure. There root's
are the file system's, a plain user's are counted; either way they hold, and are the reason."""
# security: limits
import os
import pathlib

import pytest

from daemons import serving_anew
from harness import IS_ROOT, eventually
from rest import created, problem

MB = 1 << 20
DISKS = {"ext4": "project-quota", "btrfs": "btrfs-qgroup"}
LIMIT = 24 * MB


@pytest.fixture(scope="module", params=DISKS)
def disk(request):
    return request.param


@pytest.fixture(scope="module")
def daemon(disk):
    with serving_anew(f"/mnt/{disk}/{'root' if IS_ROOT else 'user'}") as daemon:
        yield daemon


@pytest.fixture
def limited(daemon):
    with created(daemon, limits={"disk": LIMIT}) as made:
        yield made["name"]


def sh(daemon, name, command):
    answer = daemon.post(f"/v1/workspaces/{name}/exec", {"argv": ["sh", "-c", command]}, timeout=60)
    assert answer.status == 200, answer
    return answer.json()


def fill(daemon, name):
    """What says that it is full, by files that are each smaller than the limit."""
    return sh(daemon, name, "for i in 1 2 3 4 5 6; do head -c 8000000 /dev/zero > part$i || exit 1; done; sleep 20")


def test_it_is_said_by_what_the_limit_is_kept(daemon, disk):
    with created(daemon, limits={"disk": LIMIT}) as made:
        assert made["disk_limit_mechanism"] == (DISKS[disk] if IS_ROOT else "counted")
        assert made["limits"]["disk_bytes"] == LIMIT
    assert f"{'file system' if IS_ROOT else 'disk limits are enforced by counting'}" in daemon.log()


def test_a_full_workspace_is_the_reason_and_nobody_elses_trouble(daemon, limited):
    result = fill(daemon, limited)
    assert (result["reason"], result["exit_code"]) == ("disk_limit", 137), result
    if IS_ROOT:
        assert "Disk quota exceeded" in result["stderr"] or "No space left" in result["stderr"], result
        assert daemon.get(f"/v1/workspaces/{limited}").json()["disk_usage_bytes"] <= LIMIT
    with created(daemon, limits={"disk": LIMIT}) as other:
        assert sh(daemon, other["name"], "head -c 8000000 /dev/zero > f")["exit_code"] == 0
    assert sh(daemon, limited, "rm part* && sync")["reason"] == "exited"
    assert sh(daemon, limited, "head -c 8000000 /dev/zero > again")["exit_code"] == 0


def test_one_file_as_large_as_the_limit_is_too_large(daemon, limited):
    result = sh(daemon, limited, f"head -c {LIMIT + MB} /dev/zero > one")
    assert result["reason"] == "disk_limit", result


def test_files_sent_in_are_limited_too(daemon, limited):
    path = f"/v1/workspaces/{limited}/files/sent"
    assert daemon.request("PUT", path, b"old").status == 201
    problem(daemon.request("PUT", path, bytes(LIMIT + MB), timeout=60), 507, "limit", "disk limit")
    assert daemon.get(path).body == b"old"
    assert daemon.request("PUT", path, bytes(8 * MB), timeout=60).status == 200
    assert sh(daemon, limited, "stat -c %s sent")["stdout"] == f"{8 * MB}\n"


@pytest.mark.needs_root
def test_files_without_bytes_are_limited_where_the_file_system_counts_them(daemon, disk):
    if disk == "btrfs":
        pytest.skip("btrfs counts bytes alone")
    with created(daemon, limits={"disk": 4 * MB}) as made:
        result = sh(daemon, made["name"], "i=0; while [ $i -lt 2000 ]; do : > f$i || exit 1; i=$((i + 1)); done")
        assert result["reason"] == "disk_limit", result


def test_a_limit_holds_after_a_restart_and_goes_with_its_workspace(daemon):
    with created(daemon, limits={"disk": LIMIT}) as made:
        daemon.restart()
        result = fill(daemon, made["name"])
        assert (result["reason"], result["exit_code"]) == ("disk_limit", 137), result
    trees = pathlib.Path(daemon.env["CARREL_HOME"], "workspaces")
    assert eventually(lambda: not os.listdir(trees)), os.listdir(trees)
    with created(daemon, limits={"disk": 2 * LIMIT}) as made:
        assert sh(daemon, made["name"], f"head -c {LIMIT + MB} /dev/zero > f")["exit_code"] == 0
