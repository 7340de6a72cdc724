"""carrel install --node, killed at each of its steps: the workspace has the package or it hasn't, whole, and a second try
succeeds."""
import json
import shutil

import pytest
from daemons import new_directory, nothing_survives, remove, serving  # noqa: F401
from faults import attempt, restarts
from harness import PATH, copy_home

pytestmark = [pytest.mark.needs_faults,
              pytest.mark.skipif(not shutil.which("node", path=PATH) or not shutil.which("npm", path=PATH), reason="no node, no npm")]
W = "/v1/workspaces/kept"


@pytest.fixture(scope="module")
def stopped(template, node_home, registry):
    """A daemon that isn't running; its home has the layers of all that is installed below."""
    directory = new_directory()
    copy_home(node_home / "carrel", directory / "carrel", leave=("run", "audit"))
    registry.add("alpha", "1.0.0", {"index.js": "module.exports = require('./part') + require('two')\n", "part.js": "module.exports = 'alpha '\n"},
                 dependencies={"two": "^1"})
    with serving(directory, env={"PATH": f"{template[0]}:{PATH}", "npm_config_registry": registry.url}) as daemon:
        assert daemon.post("/v1/workspaces", {"name": "warm", "node": {"packages": ["two"]}}, timeout=180).status == 201
        assert daemon.post("/v1/workspaces/warm/packages", {"kind": "node", "packages": ["alpha"]}, timeout=180).status == 200
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
    assert stopped.post("/v1/workspaces", {"name": "kept", "node": {"packages": ["two"]}}, timeout=180).status == 201
    stopped.stop_serving()
    yield stopped
    try:
        assert stopped.delete(W).status == 204
    finally:
        stopped.stop_serving()


def run(daemon, script):
    answer = daemon.post(f"{W}/exec", {"argv": ["node", "-e", script]}, timeout=60)
    assert answer.status == 200, answer
    return answer.json()


def install(daemon):
    return attempt(daemon, "POST", f"{W}/packages", {"kind": "node", "packages": ["alpha"]}, timeout=120)


NONE = "console.log(require('fs').readdirSync('node_modules').filter(name => name[0] != '.').join())"


def check(daemon):
    """All of it, or nothing of it, in a new sandbox."""
    daemon.stop_serving()
    daemon.env.pop("CARREL_FAULT", None)
    daemon.start_serving()
    assert run(daemon, NONE)["stdout"] in ("two\n", "alpha,two\n")
    if "alpha" in run(daemon, NONE)["stdout"]:
        assert run(daemon, "console.log(require('alpha'))")["stdout"] == "alpha two\n"
    again = install(daemon)
    assert again.status == 200, again
    assert run(daemon, "console.log(require('alpha'))")["stdout"] == "alpha two\n"
    declared = json.loads(daemon.get(f"{W}/files/package.json").body)["dependencies"]
    assert declared == {"alpha": "^1.0.0", "two": "^1.1.0"}


@pytest.mark.parametrize("point", ["packages_built", "packages_project", "packages_write_row", "packages_row", "packages_answer"])
def test_killed_while_nothing_runs(kept, point):
    kept.env["CARREL_FAULT"] = f"{point}:1"
    kept.start_serving()
    with restarts(kept):
        assert install(kept) is None
    check(kept)


@pytest.mark.parametrize("point", ["packages_row", "packages_copied"])
def test_killed_while_something_runs(kept, point):
    kept.env["CARREL_FAULT"] = f"{point}:1"
    kept.start_serving()
    assert kept.post(f"{W}/exec", {"command": "sleep 1000", "background": True}).status == 201
    with restarts(kept):
        assert install(kept) is None
    check(kept)
