"""Snapshots that are made faster than their layers can be merged: they wait for the merge."""
import concurrent.futures
import contextlib
import os
import signal

import pytest

from faults import sh
from harness import descendants, eventually
from rest import created, problem

MOST = 100


def fill(daemon, url, name):
    """Snapshots until there may be no more layers."""
    for n in range(MOST):
        assert daemon.request("PUT", f"{url}/files/f{n}", b"x").status == 201
        assert daemon.post(f"{url}/snapshots").status == 201
    assert daemon.request("PUT", f"{url}/files/last", b"x").status == 201


@pytest.mark.needs_faults
@pytest.mark.once
def test_a_snapshot_waits_for_the_merge_of_too_many_layers(make_daemon):
    daemon = make_daemon(env={"CARREL_FAULT": "tree_merged:1:WAIT"})
    with created(daemon) as w, concurrent.futures.ThreadPoolExecutor(1) as pool:
        url = f"/v1/workspaces/{w['name']}"
        fill(daemon, url, w["name"])
        problem(daemon.post(f"{url}/snapshots", {"timeout": "1ms"}), 409, "conflict", w["name"], "100 layers")
        waiting = pool.submit(daemon.post, f"{url}/snapshots")

        def go_on():
            """The job that merges waits for it."""
            for pid, (_, name) in descendants(daemon.process.pid).items():
                if name.startswith("carrel-tree") or name.startswith("carrel-build"):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGCONT)
            return waiting.done()

        assert eventually(go_on, 120)
        assert waiting.result().status == 201
        assert len(waiting.result().json()["layers"]) < MOST
        assert sh(daemon, w["name"], "ls | wc -l").json()["stdout"] == f"{MOST + 1}\n"
