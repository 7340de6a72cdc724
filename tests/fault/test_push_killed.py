"""kill -9 of core and of its jobs while a snapshot is pushed or pulled: nothing half-made is seen, and a retry succeeds."""
import contextlib
import http.client
import os
import pathlib

import pytest

from harness import eventually
from rest import output_of


def killed(daemon, point, path, body):
    """Asks while a process ends itself at that point, then serves without it."""
    daemon.stop_serving()
    daemon.env["CARREL_FAULT"] = f"{point}:1"
    daemon.start_serving()
    with contextlib.suppress(OSError, http.client.HTTPException):
        daemon.post(path, body)
    assert eventually(daemon.is_ready, 60)
    del daemon.env["CARREL_FAULT"]  # the next core would pass there, too
    daemon.restart()


def layers(daemon):
    return sorted(name for name in os.listdir(pathlib.Path(daemon.env["CARREL_HOME"], "layers")) if "snap-" in name)


def snapshots(daemon):
    return [item["tag"] for item in daemon.get("/v1/snapshots").json()["items"]]


@pytest.mark.needs_faults
def test_pushes_and_pulls_that_are_killed_show_nothing_half_made(own_daemon):
    daemon = own_daemon
    stored = pathlib.Path(daemon.env["CARREL_HOME"], "blobs/workspace-snapshots/safe")
    assert daemon.post("/v1/workspaces", {"name": "safe"}).status == 201
    output_of(daemon, "safe", "echo precious >file")
    assert daemon.post("/v1/workspaces/safe/snapshots", {"tag": "first"}).status == 201
    output_of(daemon, "safe", "echo more >other")
    assert daemon.post("/v1/workspaces/safe/snapshots", {"tag": "good"}).status == 201
    push = "/v1/workspaces/safe/push", {"snapshot": "good"}
    for point in ("core_push_begin", "pack_end", "core_push_layer", "core_push_manifest"):
        killed(daemon, point, *push)
        assert not stored.exists() or not list(stored.iterdir()), point
    killed(daemon, "core_push_answer", *push)
    assert len(list(stored.iterdir())) == 1
    assert daemon.post(*push).json()["sent_layers"] == 0
    assert daemon.delete("/v1/workspaces/safe").status == 204
    assert eventually(lambda: snapshots(daemon) == [] and layers(daemon) == [], 60)

    pull = "/v1/snapshots", {"workspace": "safe", "snapshot": "good"}
    for point in ("core_pull_begin", "unpack_piece", "tree_before_rename", "core_pull_layer", "core_pull_row"):
        killed(daemon, point, *pull)
        assert snapshots(daemon) == [], point
        assert eventually(lambda: layers(daemon) == [], 60), point
    killed(daemon, "core_pull_answer", *pull)
    assert snapshots(daemon) == ["good"] and len(layers(daemon)) == 2
    answer = daemon.post(*pull)
    assert answer.status == 201, answer
    assert daemon.post("/v1/workspaces", {"name": "again", "from": answer.json()["id"]}).status == 201
    assert output_of(daemon, "again", "cat file other") == "precious\nmore\n"
