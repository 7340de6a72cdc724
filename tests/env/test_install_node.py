"""carrel install --node: packages of Node of a workspace that is there, idle or busy, and package.json."""
import json
import shutil

import pytest
from daemons import new_directory, nothing_survives, remove, serving  # noqa: F401
from harness import PATH, copy_home
from workspaces import created, json_of

pytestmark = pytest.mark.skipif(not shutil.which("node", path=PATH) or not shutil.which("npm", path=PATH), reason="no node, no npm")


@pytest.fixture(scope="module")
def site(template, node_home, registry):
    """A daemon that builds from the registry."""
    directory = new_directory()
    copy_home(node_home / "carrel", directory / "carrel", leave=("run", "audit"))
    for version in ("1.0.0", "2.0.0"):
        registry.add("alpha", version, {"index.js": f"module.exports = '{version}'\n", f"only{version[0]}.js": "",
                                        "cli.js": ("#!/usr/bin/env node\nconsole.log(require('alpha'))\n", 0o755)}, bin={"alpha": "cli.js"})
    registry.add("@scope/beta", "1.1.0", {"index.js": "module.exports = 'beta ' + require('two')\n"}, dependencies={"two": "^1"})
    try:
        with serving(directory, env={"PATH": f"{template[0]}:{PATH}", "npm_config_registry": registry.url}) as daemon:
            yield daemon
    finally:
        remove(directory)


def node(site, name, script, code=0):
    done = site("exec", name, "--", "node", "-e", script)
    assert done.returncode == code, (done.stdout, done.stderr)
    return done.stdout


def install(site, name, *packages, verb="install", code=0):
    done = site(verb, "-o", "json", name, "--node", *packages, timeout=180)
    assert done.returncode == code, (done.stdout, done.stderr)
    return json_of(done)


def read(site, name, path):
    answer = site.get(f"/v1/workspaces/{name}/files/{path}")
    return answer.body.decode() if answer.status == 200 else None


def put(site, name, text, path="package.json"):
    assert site.request("PUT", f"/v1/workspaces/{name}/files/{path}", text.encode()).status in (200, 201)


def packages(site, name):
    answer = site.get(f"/v1/workspaces/{name}/packages")
    assert answer.status == 200, answer
    return {item["name"]: item for item in answer.json()["items"] if item["kind"] == "node"}


def snapshot(site, name):
    made = site.post(f"/v1/workspaces/{name}/snapshots", {}, timeout=120)
    assert made.status == 201, made
    return made.json()["id"]


WHICH = "console.log(require('alpha'))"


def test_packages_come_and_go_in_an_idle_workspace(site):
    with created(site, "--npm", "two") as name:
        # As npm writes it: with "latest" npm asks the registry whenever it installs anything.
        assert json.loads(read(site, name, "package.json")) == {"dependencies": {"two": "^1.1.0"}}
        assert '"two": "^1.1.0"' in read(site, name, "bun.lock")
        said = install(site, name, "alpha@1", "@scope/beta")
        assert [(item["name"], item["version"]) for item in said["installed"]] == [("@scope/beta", "1.1.0"), ("alpha", "1.0.0")]
        assert (said["live"], said["persisted"], said["removed"]) == (False, True, [])
        assert node(site, name, "console.log(require('alpha'), require('@scope/beta'))") == "1.0.0 beta two\n"
        assert site("exec", name, "--", "alpha").stdout == "1.0.0\n"
        assert json.loads(read(site, name, "package.json")) == {"dependencies": {"@scope/beta": "^1.1.0", "alpha": "1", "two": "^1.1.0"}}
        assert '"@scope/beta": "^1.1.0"' in read(site, name, "bun.lock")
        assert packages(site, name)["alpha"] == {"name": "alpha", "version": "1.0.0", "kind": "node", "requested": True, "source": "environment"}
        assert packages(site, name)["two"]["requested"] and packages(site, name).keys() == {"alpha", "two", "@scope/beta"}
        # The lock is that of package.json: a client finds nothing to do, without a network.
        done = site("exec", name, "--", "sh", "-c", "bun install --frozen-lockfile 2>&1 && node -e \"require('alpha')\"", timeout=60)
        assert done.returncode == 0, done.stdout
        done = site("install", name, "--node", "alpha@2")
        assert done.stdout == "- alpha 1.0.0\n+ alpha 2.0.0\n", done.stderr
        assert node(site, name, "require('alpha/only2'); " + WHICH) == "2.0.0\n"
        node(site, name, "require('alpha/only1')", code=1)
        done = site("uninstall", name, "--node", "@scope/beta", "alpha")
        assert done.stdout == "- @scope/beta 1.1.0\n- alpha 2.0.0\n", done.stderr
        node(site, name, WHICH, code=1)
        assert node(site, name, "console.log(require('two'))") == "two\n" and packages(site, name).keys() == {"two"}
        assert json.loads(read(site, name, "package.json")) == {"dependencies": {"two": "^1.1.0"}}


def test_a_workspace_without_node_gets_it_and_keeps_its_files(site):
    with created(site) as name:
        text = '{\r\n\t"name": "mine",\r\n\t"devDependencies": {"alpha": "1"}\r\n}'
        put(site, name, text)
        install(site, name, "alpha", "--no-persist")
        assert read(site, name, "package.json") == text and read(site, name, "bun.lock") is None
        install(site, name, "two")
        assert read(site, name, "package.json") == text[:-3] + ',\r\n\t"dependencies": {\r\n\t\t"two": "^1.1.0"\r\n\t}\r\n}'
        assert node(site, name, "console.log(require('alpha'), require('two'))") == "2.0.0 two\n"


def test_a_running_node_finds_what_is_installed(site):
    script = """
const fs = require('fs'), wait = (name, then) => { const look = () => fs.existsSync(name) ? then() : setTimeout(look, 10); look() }
require('two')
try { require('alpha') } catch { console.log('none') }
fs.writeFileSync('tried', '')
wait('installed', () => { console.log(require('alpha')); require('alpha/only1'); fs.writeFileSync('imported', ''); wait('end', () => {}) })
"""
    with created(site, "--npm", "two") as name:
        start = site.post(f"/v1/workspaces/{name}/exec", {"argv": ["node", "-e", script], "background": True})
        assert start.status == 201, start

        def until(path):
            assert site("exec", name, "--", "sh", "-c", f"until [ -e {path} ]; do sleep 0.01; done").returncode == 0
        until("tried")
        assert install(site, name, "alpha@1")["live"] is True
        put(site, name, "", "installed")
        until("imported")
        assert site("exec", name, "--", "alpha").stdout == "1.0.0\n"
        first = snapshot(site, name)
        assert install(site, name, "alpha@2")["live"] is True
        assert node(site, name, "require('alpha/only2'); " + WHICH) == "2.0.0\n"
        node(site, name, "require('alpha/only1')", code=1)
        assert packages(site, name)["alpha"]["version"] == "2.0.0"
        assert install(site, name, "two", verb="uninstall")["live"] is True
        node(site, name, "require('two')", code=1)
        put(site, name, "", "end")
        output = site.get(f"/v1/execs/{start.json()['id']}/output?follow", headers={"Accept": "text/event-stream"})
        assert output.status == 200
        assert site.get(f"/v1/execs/{start.json()['id']}/output").body.decode() == "none\n1.0.0\n"
        snapshot(site, name)
        layers = site.home / "carrel/layers"
        assert [path for path in layers.glob("snap-*/node/**/*") if not path.is_dir()] == []     # the layers have them
        assert node(site, name, WHICH) == "2.0.0\n"
        assert site.post(f"/v1/workspaces/{name}/rollback", {"snapshot": first, "when_busy": "wait"}, timeout=60).status == 200
        assert node(site, name, "require('two'); require('alpha/only1'); " + WHICH) == "1.0.0\n"


def test_what_a_command_installed_stays_and_gives_way_to_an_install_of_it(site):
    """Also when it lies in a frozen layer, which never changes."""
    own = ("mkdir -p node_modules/$0 && cd node_modules/$0 && echo \"module.exports = 'own'\" > index.js && echo > only0.js && "
           "echo '{\"name\": \"'$0'\", \"version\": \"0.1.0\"}' > package.json")
    with created(site, "--npm", "two") as name:
        for package in ("alpha", "mine"):
            assert site("exec", name, "--", "sh", "-c", own, package).returncode == 0
        assert site("exec", name, "--", "rm", "-r", "node_modules/two").returncode == 0
        assert packages(site, name)["mine"] == {"name": "mine", "version": "0.1.0", "kind": "node", "requested": False, "source": "workspace"}
        install(site, name, "@scope/beta")
        assert node(site, name, WHICH) == "own\n"
        first = snapshot(site, name)
        install(site, name, "alpha@2", "two")
        for _ in range(2):
            assert node(site, name, "console.log(require('alpha'), require('mine'), require('@scope/beta'))") == "2.0.0 own beta two\n"
            node(site, name, "require('alpha/only0')", code=1)
            assert site("exec", name, "--", "alpha").stdout == "2.0.0\n"
            snapshot(site, name)
        install(site, name, "alpha", verb="uninstall")
        node(site, name, WHICH, code=1)
        assert node(site, name, "console.log(require('mine'))") == "own\n"
        assert site.post(f"/v1/workspaces/{name}/rollback", {"snapshot": first, "when_busy": "wait"}, timeout=60).status == 200
        assert node(site, name, WHICH) == "own\n"


@pytest.mark.once
def test_errors_leave_the_workspace_as_it_was(site):
    text = '{"dependencies": {"two": "^1"}}\n'
    with created(site, "--npm", "two") as name:
        put(site, name, text)
        before = site.get(f"/v1/workspaces/{name}").json()["node_environment"]
        for word, says in (("absent", "absent"), ("alpha@9", "alpha"), ("./x", "./x"), ("x@git+https://x.example/x", "x"), ("UP PER", "UP PER")):
            done = site("install", name, "--node", word, timeout=120)
            assert done.returncode == 125 and says in done.stderr and "hint: " in done.stderr, done.stderr
        for word, says in (("alpha", "not installed by carrel"), ("two@1", "only the name")):
            done = site("uninstall", name, "--node", word)
            assert done.returncode == 125 and says in done.stderr, done.stderr
        put(site, name, "{\n")
        done = site("install", name, "--node", "alpha")
        assert done.returncode == 125 and "package.json" in done.stderr, done.stderr
        assert site.get(f"/v1/workspaces/{name}").json()["node_environment"] == before and packages(site, name).keys() == {"two"}
        put(site, name, text)
        answer = site.post(f"/v1/workspaces/{name}/packages", {"packages": ["alpha@2"], "kind": "node", "persist": False})
        assert answer.status == 200 and read(site, name, "package.json") == text
        assert node(site, name, WHICH) == "2.0.0\n"
        answer = site.post(f"/v1/workspaces/{name}/packages", {"packages": ["alpha"], "kind": "ruby"})
        assert answer.status == 400, answer


@pytest.mark.once
def test_an_environment_of_node_given_by_name_and_python_beside_it(site, registry):
    made = site("env", "build", "named-node", "--npm", "two", "-o", "json", timeout=120)
    assert made.returncode == 0, made.stderr
    with created(site, "--env", json_of(made)["name"]) as name:
        install(site, name, "alpha@1")
        assert node(site, name, "require('two'); " + WHICH) == "1.0.0\n"
        row = site.get(f"/v1/workspaces/{name}").json()
        assert row["environment"] is None and row["node_environment"]


@pytest.mark.once
def test_what_does_not_resolve_leaves_no_workspace(site):
    template = "version: '1.0'\nname: unresolved\nnodejs:\n  dependencies:\n    absent: '*'\n"
    assert site.post("/v1/templates", {"yaml": template}).status == 201
    before = site.get("/v1/workspaces").json()["items"]
    for options in (["--npm", "absent"], ["--npm", "alpha@9"], ["--template", "unresolved"]):
        done = site("create", "left-behind", *options, timeout=180)
        assert done.returncode == 125 and options[1].split("@")[0].replace("unresolved", "absent") in done.stderr, done.stderr
        assert site.get("/v1/workspaces").json()["items"] == before
    assert site.delete("/v1/templates/unresolved").status == 204
