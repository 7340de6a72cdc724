"""integrations/langgraph: its own tests, with real LangGraph, a2a-sdk and PostgreSQL; its types, its example, its wheel."""
import re
import subprocess
import sys

import pytest

from daemons import new_directory, remove, serving
from harness import CLIENTS, PATH, TREE, programs_of

PACKAGE = TREE / "integrations/langgraph"
# It knows the daemon by its API only.
pytestmark = [pytest.mark.shipped, pytest.mark.once]


@pytest.fixture(scope="session")
def tools():
    return programs_of("langgraph")


@pytest.fixture(scope="module")
def connected():
    """Variables that connect to a daemon, as an agent with its reviewer."""
    directory = new_directory()
    try:
        with serving(directory, env=CLIENTS) as daemon:
            agent, reviewer = (daemon.post("/v1/tokens", {"scope": scope}).json()["text"] for scope in ("user", "reviewer"))
            yield {"CARREL_HOST": f"unix:{daemon.socket}", "CARREL_TOKEN": agent, "CARREL_REVIEWER_TOKEN": reviewer}
    finally:
        remove(directory)


def run(*argv, cwd, **env):
    env = {**CLIENTS, "PATH": PATH, "LANG": "C.UTF-8", "HOME": str(cwd), "PYTHONDONTWRITEBYTECODE": "1",
           "PYTHONPATH": f"{TREE / 'sdk/python/src'}:{PACKAGE / 'src'}", **env}
    done = subprocess.run(argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=600)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.parametrize("file", sorted((PACKAGE / "tests").glob("test_*.py")), ids=lambda file: file.stem)
def test_its_tests_pass(tools, connected, tmp_path, file):
    """With warnings as errors: a connection that is left open is one."""
    output = run(tools / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", "--tb=short", "--basetemp", tmp_path / "base",
                 file, cwd=tmp_path, **connected)
    assert re.search(r"\d+ passed", output) and "skipped" not in output, output


def test_its_types_are_strict(tools, tmp_path):
    run(tools / "mypy", "--config-file", PACKAGE / "pyproject.toml", "--cache-dir", tmp_path, cwd=PACKAGE)


def test_a_wheel_is_built(tools, tmp_path):
    """Without an index: what builds it is in the environment."""
    run(tools / "uv", "build", "--quiet", "--offline", "--no-build-isolation", "--python", tools / "python", "--wheel", "--no-cache",
        "--out-dir", tmp_path, PACKAGE, cwd=tmp_path)
    wheel, = tmp_path.glob("carrel_langgraph-*.whl")
    names = run(sys.executable, "-m", "zipfile", "-l", wheel, cwd=tmp_path)
    for name in ("carrel_langgraph/py.typed", "carrel_langgraph/a2a.py", "carrel_langgraph/_tools.py"):
        assert name in names
    assert "tests" not in names
