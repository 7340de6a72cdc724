"""kill -9 of core while it archives or restores a workspace: nothing is lost, and nothing half-made is seen."""
import contextlib
import http.client
import io
import os
import pathlib
import subprocess
import tarfile

import pytest

from harness import eventually
from workspaces import sh


def ok(daemon, *words):
    done = daemon(*words)
    assert done.returncode == 0, done.stderr


def check_whole(path):
    plain = subprocess.run(["zstd", "-dc", path], stdout=subprocess.PIPE, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
        assert tar.extractfile("workspace/file").read() == b"precious\n"


def archives(daemon):
    return [item["name"] for item in daemon.get("/v1/archives").json()["items"]]


def layers(daemon):
    return sorted(name for name in os.listdir(pathlib.Path(daemon.env["CARREL_HOME"], "layers")) if "snap-" in name)


def killed(daemon, point, *request):
    """Asks while a process ends itself at that point, then serves without it."""
    daemon.stop_serving()
    daemon.env["CARREL_FAULT"] = f"{point}:1"
    daemon.start_serving()
    if point.startswith("core_"):
        with daemon.new_core(), contextlib.suppress(OSError, http.client.HTTPException):
            daemon.request(*request)
    else:  # passed by a job: core lives on and says that it failed
        answer = daemon.request(*request)
        assert answer.status >= 400 and "was killed" in answer.json()["detail"], answer
    del daemon.env["CARREL_FAULT"]  # the next core would pass there, too
    daemon.restart()


@pytest.mark.needs_faults
@pytest.mark.parametrize("point", ["core_archive_begin", "core_archive_stored", "core_archive_verified"])
def test_a_daemon_that_is_killed_while_it_archives_loses_nothing(make_daemon, point):
    daemon = make_daemon()
    ok(daemon, "create", "safe")
    sh(daemon, "safe", "echo precious >file")
    killed(daemon, point, "DELETE", "/v1/workspaces/safe?archive=true")
    assert sh(daemon, "safe", "cat file").stdout == "precious\n"
    for name in archives(daemon):
        check_whole(pathlib.Path(daemon.env["CARREL_HOME"], "blobs/archives", name))
    ok(daemon, "rm", "safe", "--archive")


@pytest.mark.needs_faults
@pytest.mark.parametrize("point", ["core_restore_begin", "core_restore_unpacked", "core_restore_created", "unpack_piece"])
def test_a_daemon_that_is_killed_while_it_restores_shows_nothing_half_made(make_daemon, point):
    daemon = make_daemon()
    ok(daemon, "create", "safe")
    sh(daemon, "safe", "echo precious >file")
    ok(daemon, "rm", "safe", "--archive")
    (archive,) = archives(daemon)
    killed(daemon, point, "POST", f"/v1/archives/{archive}/restore")
    is_made = daemon.get("/v1/workspaces/safe").status == 200
    assert is_made == (point == "core_restore_created")
    assert eventually(lambda: len(layers(daemon)) == is_made)
    if not is_made:
        ok(daemon, "restore", archive)
    assert sh(daemon, "safe", "cat file").stdout == "precious\n"
    assert archives(daemon) == [archive]
