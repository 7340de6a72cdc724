"""The TypeScript client (sdk/typescript): its own tests against real daemons, and its package in a fresh project.

The compiler comes from the npm registry that this host is configured for; nothing else does."""
import json
import os
import re
import shutil
import subprocess

import pytest

from harness import CARREL, CLIENTS, PATH, TREE, locked

pytestmark = [pytest.mark.shipped, pytest.mark.needs_plain_user]
SOURCE = TREE / "sdk/typescript"
# A runtime that isn't installed isn't downloaded.
RUNTIMES = [name for name in ("node", "bun") if shutil.which(name, path=PATH)]


def run(*argv, cwd, **env):
    """What it wrote; it must succeed."""
    done = subprocess.run(argv, cwd=cwd, env={**CLIENTS, "PATH": PATH, "HOME": str(cwd), "LANG": "C.UTF-8", **env},
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    assert done.returncode == 0, done.stdout
    return done.stdout


def programs():
    """The TypeScript programs of the documents."""
    return [text for document in (TREE / "docs/guide/sdks.md", SOURCE / "README.md")
            for text in re.findall(r"^```ts\n(.*?)^```", document.read_text(), re.M | re.S)]


@pytest.fixture(scope="session")
def package(common):
    """A copy of the package with its compiler and the programs of the documents, made once for all workers: tsc finds no fault
    with any of them."""
    copy, done = common / "sdk-typescript", common / "sdk-typescript.done"
    with locked(common / "sdk-typescript.lock"):
        if not done.exists():
            shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("node_modules", "dist"), dirs_exist_ok=True)
            for number, text in enumerate(programs()):
                (copy / f"test/example{number}.ts").write_text(text)
            run("npm", "install", "--ignore-scripts", "--loglevel=error", cwd=copy)
            run("node_modules/.bin/tsc", cwd=copy)
            done.touch()
    return copy


def test_its_own_tests_pass(package):
    said = run("node", "--test", "--test-reporter=tap", *sorted(map(str, (package / "dist/test").glob("*.test.js"))), cwd=package,
               CARREL=CARREL)
    assert int(re.search(r"^# pass (\d+)", said, re.M)[1]) >= 25, said


@pytest.fixture(scope="module")
def project(package, tmp_path_factory):
    """A fresh project in which the package is installed, with the programs of the documents."""
    fresh = tmp_path_factory.mktemp("project")
    # What `npm pack` would compile is compiled already.
    packed = run("npm", "pack", "--ignore-scripts", "--json", "--loglevel=error", f"--pack-destination={fresh}", cwd=package)
    (fresh / "package.json").write_text('{"type": "module", "private": true}')
    run("npm", "install", "--ignore-scripts", "--offline", "--loglevel=error", f"./{json.loads(packed)[0]['filename']}", cwd=fresh)
    assert [name for name in os.listdir(fresh / "node_modules") if not name.startswith(".")] == ["carrel"]
    for program in (package / "dist/test").glob("example*.js"):
        shutil.copy(program, fresh)
    return fresh


def check_programs(project, runtime, **env):
    assert len(programs()) >= 2
    for number, text in enumerate(programs()):
        said = run(runtime, f"example{number}.js", cwd=project, **env)
        assert said.splitlines() == re.findall(r"// prints (.*)$", text, re.M), text


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_the_programs_of_the_documents_run_in_a_fresh_project(project, runtime, tmp_path_factory):
    """With a daemon that they start; then with one of which they know a URL, a token and an authority."""
    home = tmp_path_factory.mktemp("home") / "carrel"
    env = {"CARREL_HOME": str(home), "CARREL_PROGRAM": CARREL}

    def carrel(*words):
        return run(CARREL, *words, cwd=home.parent, **env)

    try:
        check_programs(project, runtime, **env)
        token = carrel("token", "create", "--scope", "admin").strip()
        carrel("serve", "--stop")
        carrel("tls", "init", "tls")
        carrel("serve", "--background", "--listen", "127.0.0.1:0", "--tls-cert", "tls/server.pem", "--tls-key", "tls/server-key.pem")
        address = re.findall(r"127\.0\.0\.1:\d+", (home / "run/carrel.log").read_text())[-1]
        check_programs(project, runtime, CARREL_HOST=f"https://{address}", CARREL_TOKEN=token, CARREL_CA=str(home.parent / "tls/ca.pem"))
    finally:
        carrel("serve", "--stop", "--force")
