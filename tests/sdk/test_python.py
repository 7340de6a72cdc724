"""sdk/python: its own tests, run in an environment that has what the package declares; and what is generated, typed and built.

Once, as a plain user: the package knows the daemon by its API only."""
import asyncio
import contextlib
import json
import re
import socket
import ssl
import subprocess
import sys
import threading

import pytest

from daemons import new_directory, remove, serving
from doors import open_door
from harness import CARREL, CLIENTS, TREE, programs_of

PACKAGE = TREE / "sdk/python"
pytestmark = [pytest.mark.shipped, pytest.mark.needs_plain_user]


@pytest.fixture(scope="session")
def tools():
    return programs_of("sdk")


@pytest.fixture(scope="module")
def door():
    """A daemon on a socket, and by TLS; it installs packages from the index of this host."""
    directory = new_directory()
    try:
        with serving(directory, env=CLIENTS) as daemon:
            made = daemon("tls", "init", directory / "tls", "-o", "json")
            files = json.loads(made.stdout)
            door = open_door(daemon, "--tls-cert", files["certificate"], "--tls-key", files["key"],
                             context=ssl.create_default_context(cafile=files["ca"]))
            door.ca = files["ca"]
            yield door
    finally:
        remove(directory)


@contextlib.contextmanager
def led_to(address, over):
    """The listening socket that comes over `over` leads to the address, byte by byte."""
    loop = asyncio.new_event_loop()

    async def copy(reader, writer):
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def serve(reader, writer):
        with contextlib.suppress(OSError):
            inner_reader, inner_writer = await asyncio.open_connection(*address)
            await asyncio.gather(copy(reader, inner_writer), copy(inner_reader, writer))
        writer.close()

    def run_loop():
        _, fds, _, _ = socket.recv_fds(over, 1, 1)
        if fds:
            loop.run_until_complete(asyncio.start_server(serve, sock=socket.socket(fileno=fds[0])))
            over.send(b"x")
            loop.run_forever()

    thread = threading.Thread(target=run_loop, daemon=True)
    thread.start()
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            over.shutdown(socket.SHUT_RDWR)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)


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


def pytest_of(tools, door, tmp_path, *words):
    """With warnings as errors: a connection that is left open is one."""
    env = {"PYTHONPATH": str(PACKAGE / "src"), "HOME": str(tmp_path), "CARREL_TEST_URLS": "https://{}:{}".format(*door.address()),
           "CARREL_TEST_TOKEN": door.token, "CARREL_TEST_CA": door.ca}
    return [tools / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", "--tb=short", "--basetemp", tmp_path / "base",
            *words], env


def test_its_tests_pass(door, tools, tmp_path):
    argv, env = pytest_of(tools, door, tmp_path, PACKAGE / "tests", "--ignore", PACKAGE / "tests/test_remote.py")
    output = run(*argv, cwd=tmp_path, env={**env, "CARREL_HOST": f"unix:{door.daemon.socket}", "CARREL_PROGRAM": CARREL})
    assert re.search(r"\d+ passed", output) and "skipped" not in output, output


def test_a_program_elsewhere_needs_only_a_url_and_a_token(door, tools, tmp_path):
    """In another network namespace, where only the port of the daemon is reached."""
    argv, env = pytest_of(tools, door, tmp_path, PACKAGE / "tests/test_remote.py")
    near, far = socket.socketpair()
    with near, far, led_to(door.address(), near):
        output = run("unshare", "--map-root-user", "--net", sys.executable, TREE / "tests/sdk/far.py", str(far.fileno()), str(door.address()[1]),
                     *argv, cwd=tmp_path, env=env, pass_fds=[far.fileno()])
    assert re.search(r"\d+ passed", output), output


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
