"""What the tests of installations that are killed share: a daemon that isn't running, whose home has the layers of all that is
installed, and a workspace `kept` there, without the package `alpha`. The test modules say how it is with packages of their kind."""
import contextlib

import pytest
from daemons import new_directory, remove, serving
from faults import attempt, restarts
from harness import copy_home

W = "/v1/workspaces/kept"


@contextlib.contextmanager
def stopped_daemon(home, env, wanted, packages, argv, check, **how):
    """`wanted` is in the body of a new workspace, `packages` that of the installation of alpha, `argv` runs a script, and check(daemon)
    says whether alpha is there, whole, in a sandbox that is new."""
    directory = new_directory()
    copy_home(home, directory / "carrel", **how)
    with serving(directory, env=env) as daemon:
        daemon.wanted, daemon.packages, daemon.argv, daemon.check = wanted, packages, argv, check
        assert daemon.post("/v1/workspaces", {"name": "warm", **wanted}, timeout=180).status == 201
        assert daemon.post("/v1/workspaces/warm/packages", packages, timeout=180).status == 200
        assert daemon.delete("/v1/workspaces/warm").status == 204
        daemon.stop_serving()
        yield daemon
        daemon.env.pop("CARREL_FAULT", None)
        daemon.start_serving()
    remove(directory)


@pytest.fixture
def kept(stopped):
    stopped.env.pop("CARREL_FAULT", None)
    stopped.start_serving()
    assert stopped.post("/v1/workspaces", {"name": "kept", **stopped.wanted}, timeout=180).status == 201
    stopped.stop_serving()
    yield stopped
    try:
        assert stopped.delete(W).status == 204
    finally:
        stopped.stop_serving()


def run(daemon, script):
    answer = daemon.post(f"{W}/exec", {"argv": [*daemon.argv, script]})
    assert answer.status == 200, answer
    return answer.json()


def install(daemon):
    return attempt(daemon, "POST", f"{W}/packages", daemon.packages, timeout=180)


def serve(daemon, point):
    daemon.env["CARREL_FAULT"] = point
    daemon.start_serving()


def check(daemon):
    """All of it is there or nothing, and a second try succeeds."""
    daemon.stop_serving()
    daemon.env.pop("CARREL_FAULT", None)
    daemon.start_serving()
    daemon.check(daemon)
    again = install(daemon)
    assert again.status == 200, again
    assert daemon.check(daemon)


@pytest.mark.parametrize("point", ["packages_built", "packages_project", "packages_write_row", "packages_row", "packages_answer"])
def test_killed_while_nothing_runs(kept, point):
    serve(kept, f"{point}:1")
    with restarts(kept):
        assert install(kept) is None
    check(kept)


@pytest.mark.parametrize("point", ["packages_row", "packages_copied"])
def test_killed_while_something_runs(kept, point):
    serve(kept, f"{point}:1")
    assert kept.post(f"{W}/exec", {"command": "sleep 1000", "background": True}).status == 201
    with restarts(kept):
        assert install(kept) is None
    check(kept)
