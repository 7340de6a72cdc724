"""carrel install and repair, killed at each of their steps, or with a full disk: the workspace has the package or it hasn't, whole,
and a second try succeeds."""
# security: packages
import pathlib
import shutil

import pytest
from daemons import nothing_survives  # noqa: F401
from faults import attempt, restarts
from harness import PATH, eventually
from index_server import Index
from killed_installs import (W, check, install, kept, run, serve, stopped_daemon,  # noqa: F401
                             test_killed_while_nothing_runs, test_killed_while_something_runs)
from wheels import wheel

pytestmark = pytest.mark.needs_faults
WHOLE = "import gamma, alpha.a, alpha.b, importlib.metadata as m; print(m.version('alpha'))"
NONE = ("import gamma, glob, sys; site = [p for p in sys.path if p.startswith('/env/') and p.endswith('site-packages')][0]; "
        "print(glob.glob(site + '/alpha*'))")


@pytest.fixture(scope="module")
def stopped(template):
    with Index() as index:
        index.add(wheel("alpha", "1.0", {"alpha/__init__.py": "", "alpha/a.py": "x = 1\n", "alpha/b.py": "x = 2\n"}), wheel("gamma"))
        env = {"PATH": f"{template[0]}:{PATH}", "UV_DEFAULT_INDEX": index.url, "PIP_INDEX_URL": index.url}
        with stopped_daemon(template[1], env, {"python": {"packages": ["gamma"]}}, {"packages": ["alpha"]}, ["python", "-c"], is_whole) as daemon:
            yield daemon


def is_whole(daemon):
    is_there = "alpha" in daemon.get(W).json()["environment"] or run(daemon, "import alpha")["exit_code"] == 0
    said = run(daemon, WHOLE if is_there else NONE)
    assert said["stdout"] == ("1.0\n" if is_there else "[]\n"), said
    return is_there and daemon.get(f"{W}/files/pyproject.toml").body.count(b'"alpha"') == 1


def test_killed_before_the_first_start_with_the_new_environment(kept):
    serve(kept, "core_settled:1")
    assert install(kept).status == 200
    with restarts(kept):
        attempt(kept, "POST", f"{W}/exec", {"argv": ["true"]})
    assert run(kept, WHOLE)["stdout"] == "1.0\n"
    check(kept)


def test_a_full_disk_changes_nothing(kept):
    serve(kept, "store.commit:1:ENOSPC")
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
    serve(kept, f"{point}:1")
    assert kept.post(f"{W}/exec", {"command": BREAK}).json()["exit_code"] == 0
    with restarts(kept):
        assert attempt(kept, "POST", f"{W}/repair", timeout=180) is None
    done = kept.post(f"{W}/repair", timeout=180).json()
    assert done["failed"] == [] and done["health"]["healthy"], done
    assert run(kept, WHOLE)["stdout"] == "1.0\n"
    assert kept.get(f"{W}/files/own").body == b"mine\n"


@pytest.mark.once
def test_a_rebuild_that_is_killed_is_done_again(kept):
    """The layer is lost; the sandbox does not start without it."""
    layers = pathlib.Path(kept.env["CARREL_HOME"], "layers")
    for found in layers.glob("*/tree/lib/python3*/site-packages/gamma.py"):
        shutil.rmtree(layers / found.relative_to(layers).parts[0])
    serve(kept, "core_repair_environment:1")
    with restarts(kept):
        assert attempt(kept, "POST", f"{W}/repair", timeout=180) is None
    assert run(kept, "import gamma")["exit_code"] == 0      # by itself
    assert kept.get(f"{W}/health?deep", timeout=180).json()["healthy"]
