"""What the tests of environments share. Everything slow is made once for all workers: uv and the layers that every
environment has (template), and the environments of real packages (real)."""
import hashlib
import json
import os
import pathlib
import re
import shutil

import pytest
from envs import Envs, reset_home
from harness import CLIENTS, PATH, SANITIZED, copy_home, locked
from index_server import Index
from nodes import Nodes, configured_registry
from npm_registry import Registry


HERE = pathlib.Path(__file__).parent


def pytest_collection_modifyitems(config, items):
    """Fault points are in builds for tests only; and those are slow, so that nothing else is run with them."""
    left_out = [item for item in items if HERE in item.path.parents and bool(item.get_closest_marker("needs_faults")) != SANITIZED]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def template(common):
    """(directory with uv, home that has built one empty environment from the index this host is configured for)."""
    with locked(common / "template.lock"):
        tools, home = common / "tools", common / "template"
        if not (common / "template.done").exists():
            shutil.rmtree(tools, ignore_errors=True)
            tools.mkdir(mode=0o755)
            home.mkdir(exist_ok=True)
            carrel = Envs(home, None)
            done = carrel("env", "build", "template", timeout=300, env=CLIENTS)
            assert done.returncode == 0, f"the empty environment can't be built: {done.stderr}"
            uv = shutil.which("uv", path=PATH) or next(carrel.store.glob("tools/uv-*/uv"))
            shutil.copy(uv, tools / "uv")
            (tools / "uv").chmod(0o755)
            (common / "template.done").touch()
        return tools, home / "carrel"


@pytest.fixture
def index():
    with Index() as server:
        yield server


@pytest.fixture(scope="session")
def worker_home(tmp_path_factory, template):
    """The home that the tests of one worker have one after the other: copying it for each takes longer than they do."""
    home = tmp_path_factory.mktemp("home")
    copy_home(template[1], home / "carrel")
    return home


@pytest.fixture
def shared_env(worker_home, template, index):
    """Carrel with a home in which only one empty environment is (template_no-deps), and an index."""
    tools, source = template
    reset_home(source, worker_home / "carrel")
    carrel = Envs(worker_home, tools, index)
    yield carrel
    carrel.left_nothing()


@pytest.fixture
def env(shared_env):
    return shared_env


@pytest.fixture
def own_env(tmp_path, template, index):
    """The same for a test that may damage what it didn't build itself: a home of its own."""
    tools, source = template
    copy_home(source, tmp_path / "home/carrel")
    carrel = Envs(tmp_path / "home", tools, index)
    yield carrel
    carrel.left_nothing()


@pytest.fixture(scope="session")
def real(common, template):
    """Carrel with one home for all environments of real packages, from the index this host is configured for."""
    tools, source = template
    home = common / "real"
    with locked(common / "real.lock"):
        if not home.exists():
            home.mkdir()
            copy_home(source, home / "carrel")
    carrel = Envs(home, tools)
    carrel.env.update(CLIENTS)
    return carrel


@pytest.fixture
def script(tmp):
    """Writes a program; the options and command that run it from the workspace."""
    def write(text, name="program.py"):
        (pathlib.Path(tmp) / name).write_text(text)
        return ["--dir", tmp], ["python", name]
    return write


@pytest.fixture(scope="session")
def registry(common):
    """One a worker: bun is remembered by the address it came from."""
    directory = common / "npm-tools"
    with locked(common / "npm-tools.lock"):
        directory.mkdir(exist_ok=True)
    with Registry(real=(configured_registry(), directory)) as server:
        server.add("two", "1.1.0", {"index.js": "module.exports = 'two'\n"})
        server.add("one", "1.0.0", {"index.js": "module.exports = 'one ' + require('two')\n", "cli.js": ("#!/usr/bin/env node\nconsole.log('cli')\n", 0o755)},
                   dependencies={"two": "^1"}, bin={"one-cli": "cli.js"})
        yield server


@pytest.fixture(scope="session")
def node_home(tmp_path_factory, template, common, registry):
    """Has bun: the first worker fetches it, the others are told what their registry would say of it."""
    home, kept = tmp_path_factory.mktemp("node-home"), common / "node-template"
    with locked(common / "npm-tools.lock"):
        if not (common / "node-template.done").exists():
            shutil.rmtree(kept, ignore_errors=True)
            copy_home(template[1], kept / "carrel", leave=("run", "audit"))
            log = Nodes(kept, registry).build_log("tools", "--npm", "two")
            (common / "node-template.done").write_text(json.dumps(re.search(r"fetched bun \S+ \((\S+)@(\S+), (\S+)\)", log).groups()))
        copy_home(kept / "carrel", home / "carrel", leave=("run", "audit"))
    package, version, said = json.loads((common / "node-template.done").read_text())
    for url in (registry.url, configured_registry()):
        known = home / "carrel/tools/.known" / hashlib.sha256(f"npm tool {package}@{version} of {url}".encode()).hexdigest()
        known.write_text(f"version {version}\nintegrity {said}\n")
        status = known.parent.stat()
        os.chown(known, status.st_uid, status.st_gid)
    return home
