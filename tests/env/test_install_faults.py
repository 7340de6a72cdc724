"""carrel install and repair, killed at each of their steps, or with a full disk: the workspace has the package or it hasn't, whole,
and a second try succeeds."""
import pathlib
import shutil

import pytest
from daemons import new_directory, nothing_survives, remove, serving  # noqa: F401
from faults import attempt, restarts
from harness import PATH, copy_home, eventually
from index_server import Index
from wheels import wheel

pytestmark = pytest.mark.needs_faults
W = "/v1/workspaces/kept"


@pytest.fixture(scope="module")
def stopped(template):
    """A daemon that isn't running; its home has the layers of all that is installed below."""
    directory = new_directory()
    copy_home(template[1], directory / "carrel")
    with Index() as index:
        index.add(wheel("alpha", "1.0", {"alpha/__init__.py": "", "alpha/a.py": "x = 1\n", "alpha/b.py": "x = 2\n"}), wheel("gamma"))
        env = {"PATH": f"{template[0]}:{PATH}", "UV_DEFAULT_INDEX": index.url, "PIP_INDEX_URL": index.url}
        with serving(directory, env=env) as daemon:
            assert daemon.post("/v1/workspaces", {"name": "warm", "python": {"packages": ["gamma"]}}, timeout=180).status == 201
            assert daemon.post("/v1/workspaces/warm/packages", {"packages": ["alpha"]}, timeout=180).status == 200
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
    assert stopped.post("/v1/workspaces", {"name": "kept", "python": {"packages": ["gamma"]}}, timeout=60).status == 201
    stopped.stop_serving()
    yield stopped
    try:
        assert stopped.delete(W).status == 204
    finally:
        stopped.stop_serving()


def run(daemon, script):
    answer = daemon.post(f"{W}/exec", {"argv": ["python", "-c", script]}, timeout=60)
    assert answer.status == 200, answer
    return answer.json()


def install(daemon):
    return attempt(daemon, "POST", f"{W}/packages", {"packages": ["alpha"]}, timeout=60)


WHOLE = "import gamma, alpha.a, alpha.b, importlib.metadata as m; print(m.version('alpha'))"
NONE = ("import gamma, glob, sys; site = [p for p in sys.path if p.startswith('/env/') and p.endswith('site-packages')][0]; "
        "print(glob.glob(site + '/alpha*'))")


def check(daemon):
    """All of it, or nothing of it, in a new sandbox."""
    daemon.stop_serving()
    daemon.env.pop("CARREL_FAULT", None)
    daemon.start_serving()
    is_there = "alpha" in daemon.get(W).json()["environment"] or run(daemon, "import alpha")["exit_code"] == 0
    said = run(daemon, WHOLE if is_there else NONE)
    assert said["stdout"] == ("1.0\n" if is_there else "[]\n"), said
    again = install(daemon)
    assert again.status == 200, again
    assert run(daemon, WHOLE)["stdout"] == "1.0\n"
    assert daemon.get(f"{W}/files/pyproject.toml").body.count(b'"alpha"') == 1


@pytest.mark.parametrize("point", ["packages_built", "packages_project", "packages_write_row", "packages_row", "packages_answer"])
def test_killed_while_nothing_runs(kept, point):
    kept.env["CARREL_FAULT"] = f"{point}:1"
    kept.start_serving()
    with restarts(kept):
        assert install(kept) is None
    check(kept)


def test_killed_before_the_first_start_with_the_new_environment(kept):
    kept.env["CARREL_FAULT"] = "core_settled:1"
    kept.start_serving()
    assert install(kept).status == 200
    with restarts(kept):
        attempt(kept, "POST", f"{W}/exec", {"argv": ["true"]})
    assert run(kept, WHOLE)["stdout"] == "1.0\n"
    check(kept)


@pytest.mark.parametrize("point", ["packages_row", "packages_copied"])
def test_killed_while_something_runs(kept, point):
    kept.env["CARREL_FAULT"] = f"{point}:1"
    kept.start_serving()
    assert kept.post(f"{W}/exec", {"command": "sleep 1000", "background": True}).status == 201
    with restarts(kept):
        assert install(kept) is None
    check(kept)


def test_a_full_disk_changes_nothing(kept):
    kept.env["CARREL_FAULT"] = "store.commit:1:ENOSPC"
    kept.start_serving()
    answer = install(kept)
    assert (answer.status, answer.json()["code"]) == (507, "disk_full"), answer
    assert eventually(kept.is_ready)
    assert kept.get(f"{W}/files/pyproject.toml").status == 404
    assert run(kept, NONE)["stdout"] == "[]\n"
    check(kept)


BREAK = ("cd /env/lib/python3*/site-packages && rm -r gamma* && cd && echo mine > own && "
         "printf '[project]\\nname = \"x\"\\ndependencies = [\"alpha>=1\"]\\n' > pyproject.toml")


@pytest.mark.once
@pytest.mark.parametrize("point", ["core_repair_restore", "core_repair_install", "packages_row", "core_repair_done"])
def test_a_repair_that_is_killed_loses_nothing_and_is_done_again(kept, point):
    """A package that a command removed comes from its layer, one that is declared is installed."""
    kept.env["CARREL_FAULT"] = f"{point}:1"
    kept.start_serving()
    assert kept.post(f"{W}/exec", {"command": BREAK}).json()["exit_code"] == 0
    with restarts(kept):
        assert attempt(kept, "POST", f"{W}/repair", timeout=60) is None
    done = kept.post(f"{W}/repair", timeout=60).json()
    assert done["failed"] == [] and done["health"]["healthy"], done
    assert run(kept, WHOLE)["stdout"] == "1.0\n"
    assert kept.get(f"{W}/files/own").body == b"mine\n"


@pytest.mark.once
def test_a_rebuild_that_is_killed_is_done_again(kept):
    """The layer is lost; the sandbox does not start without it."""
    layers = pathlib.Path(kept.env["CARREL_HOME"], "layers")
    for found in layers.glob("*/tree/lib/python3*/site-packages/gamma.py"):
        shutil.rmtree(layers / found.relative_to(layers).parts[0])
    kept.env["CARREL_FAULT"] = "core_repair_environment:1"
    kept.start_serving()
    with restarts(kept):
        assert attempt(kept, "POST", f"{W}/repair", timeout=60) is None
    assert run(kept, "import gamma")["exit_code"] == 0      # by itself
    assert kept.get(f"{W}/health?deep", timeout=60).json()["healthy"]
