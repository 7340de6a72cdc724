"""sdk/python: its own tests, run in an environment that has what the package declares; and what is generated, typed and built.

Once, as a plain user: the package knows the daemon by its API only."""
import importlib.util
import re
import subprocess
import sys

import pytest

from daemons import new_directory, remove, serving
from doors import open_door
from harness import CARREL, CLIENTS, TREE, locked

PACKAGE = TREE / "sdk/python"
PACKAGES, UV = ("httpx==0.28.1", "mypy==2.4.1", "pytest==9.2.0"), "uv==0.13.7"
pytestmark = [pytest.mark.shipped, pytest.mark.needs_plain_user]


@pytest.fixture(scope="session")
def tools(common):
    """The programs of a virtual environment, made once for all workers."""
    environment, done = common / "sdk-python", common / "sdk-python.done"
    with locked(common / "sdk-python.lock"):
        if not done.exists():
            # The pip of the host, where there is one: to make another takes as long as all the rest.
            has_pip = importlib.util.find_spec("pip") is not None
            subprocess.run([sys.executable, "-m", "venv", "--clear", *["--without-pip"] * has_pip, environment], check=True)
            python = environment / "bin/python"
            pip = [sys.executable, "-m", "pip", "--python", python] if has_pip else [python, "-m", "pip"]
            subprocess.run([*pip, "install", "--quiet", "--disable-pip-version-check", "--no-compile", UV], check=True)
            index = subprocess.run([*pip, "config", "get", "global.index-url"], capture_output=True, text=True).stdout.strip()
            subprocess.run([environment / "bin/uv", "pip", "install", "--quiet", "--python", python, "--no-cache",
                            *(["--default-index", index] if index else []), *PACKAGES], check=True)
            done.touch()
    return environment / "bin"


@pytest.fixture(scope="module")
def door():
    """A daemon on a socket and by TCP, which installs packages from the index of this host."""
    directory = new_directory()
    try:
        with serving(directory, env=CLIENTS) as daemon:
            yield open_door(daemon)
    finally:
        remove(directory)


def run(*argv, **how):
    env = {**CLIENTS, "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", **how.pop("env", {})}
    done = subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=300, **how)
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_what_is_generated_is_up_to_date(door, tmp_path):
    document = tmp_path / "openapi.json"
    document.write_bytes(door.get("/openapi.json").body)
    run(sys.executable, TREE / "sdk/generate-python", "--check", "--openapi", document)


def test_its_tests_pass(door, tools, tmp_path):
    """With warnings as errors: a connection that is left open is one."""
    env = {"CARREL_HOST": f"unix:{door.daemon.socket}", "CARREL_PROGRAM": CARREL, "PYTHONPATH": str(PACKAGE / "src"), "HOME": str(tmp_path),
           "CARREL_TEST_URLS": "http://{}:{}".format(*door.address()), "CARREL_TEST_TOKEN": door.token}
    output = run(tools / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", "--tb=short", "--basetemp", tmp_path / "base",
                 PACKAGE / "tests", cwd=tmp_path, env=env)
    assert re.search(r"\d+ passed", output) and "skipped" not in output, output


def test_its_types_are_strict(tools, tmp_path):
    run(tools / "mypy", "--config-file", PACKAGE / "pyproject.toml", "--cache-dir", tmp_path, cwd=PACKAGE)


def test_a_wheel_is_built(tools, tmp_path):
    """A type checker finds the types of the installed package, too."""
    run(tools / "uv", "build", "--quiet", "--wheel", "--no-cache", "--out-dir", tmp_path, PACKAGE, env={"HOME": str(tmp_path)})
    wheel, = tmp_path.glob("carrel-*.whl")
    names = run(sys.executable, "-m", "zipfile", "-l", wheel)
    for name in ("carrel/py.typed", "carrel/types.py", "carrel/_sync/_client.py", "carrel/_async/_client.py"):
        assert name in names
    assert "tests" not in names
