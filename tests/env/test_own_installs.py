"""What commands install themselves in a workspace, with pip, uv, npm, bun, pnpm and yarn: it works on top of the layers, and stays."""
import json
import shutil
import sys
import urllib.request

import pytest
from daemons import new_directory, nothing_survives, remove, serving  # noqa: F401
from harness import PATH, copy_home
from index_server import Index
from npm_registry import integrity, tarball
from wheels import wheel
from workspaces import created

pytestmark = pytest.mark.skipif(not shutil.which("node", path=PATH) or not shutil.which("npm", path=PATH), reason="no node, no npm")
MINOR = "%d.%d" % sys.version_info[:2]


@pytest.fixture(scope="module")
def site(template, node_home, registry):
    """A daemon that builds from the registry and an index."""
    directory = new_directory()
    copy_home(node_home / "carrel", directory / "carrel", leave=("run", "audit"))
    registry.add("alpha", "2.0.0", {"index.js": "module.exports = '2.0.0'\n"})
    try:
        with Index() as index:
            index.add(wheel("beta"), wheel("gamma"))
            env = {"PATH": f"{template[0]}:{PATH}", "npm_config_registry": registry.url, "UV_DEFAULT_INDEX": index.url, "PIP_INDEX_URL": index.url}
            with serving(directory, env=env) as daemon:
                yield daemon
    finally:
        remove(directory)


def put(site, name, files):
    for path, data in files.items():
        assert site.request("PUT", f"/v1/workspaces/{name}/files/{path}", data if isinstance(data, bytes) else data.encode()).status == 201


def says(site, name, script, expected):
    done = site("exec", name, "--", "sh", "-ec", script, timeout=180)
    assert (done.returncode, done.stdout) == (0, expected), (script, done.stdout, done.stderr)


@pytest.mark.shipped
def test_what_a_command_installs_itself_stays(site, template):
    """Without a network, from files; over every state of a workspace."""
    files = {f"{kind}.tgz": tarball({"package.json": json.dumps({"name": kind, "version": "1.0.0"}), "index.js": f"module.exports = '{kind}'\n"})
             for kind in ("by-npm", "by-bun")}
    files.update({dist.filename: dist.data for dist in (wheel("by_uv"), wheel("by_pip"))})
    with created(site, "--npm", "two", "--python", MINOR) as name:
        put(site, name, files)
        assert site("cp", template[0] / "uv", f"{name}:/tmp/uv").returncode == 0
        says(site, name, """
            /tmp/uv pip install --offline --no-index -q ./by_uv-*.whl
            python -m pip --version >/dev/null 2>&1 || python -m ensurepip >/dev/null
            python -m pip install --no-index -q ./by_pip-*.whl 2>&1
            npm install --offline --no-audit --no-fund ./by-npm.tgz >log 2>&1 || cat log
            bun add ./by-bun.tgz >log 2>&1 || cat log""", "")

        def check(workspace):
            says(site, workspace, "python -c 'import by_uv, by_pip'; node -p \"[require('by-npm'), require('by-bun'), require('two')].join()\"",
                 "by-npm,by-bun,two\n")
        check(name)
        assert site("suspend", name).returncode == 0 and site("resume", name).returncode == 0
        check(name)
        kept = site.post(f"/v1/workspaces/{name}/snapshots", {}, timeout=120).json()["id"]
        says(site, name, "rm -r node_modules/by-npm; python -m pip uninstall -qy by_pip 2>&1; ! python -c 'import by_pip' 2>/dev/null", "")
        assert site.post(f"/v1/workspaces/{name}/rollback", {"snapshot": kept, "when_busy": "wait"}, timeout=120).status == 200
        check(name)
        assert site("fork", name, "own-forked").returncode == 0
        check("own-forked")
        answer = site.request("DELETE", "/v1/workspaces/own-forked?archive=true", timeout=120)
        assert answer.status == 200, answer
        assert site.post(f"/v1/archives/{answer.json()['name']}/restore", {}, timeout=120).status == 201
        check("own-forked")
        assert site("rm", "own-forked").returncode == 0
        assert site.stop_serving() == 0
        site.start_serving()
        check(name)


SERVER = """
const http = require('http'), fs = require('fs')
http.createServer((asked, answer) => fs.readFile('registry/' + decodeURIComponent(asked.url).slice(1).replaceAll('/', '+'), (error, data) => {
  answer.statusCode = error ? 404 : 200
  answer.end(data)
})).listen(4873, '127.0.0.1', () => fs.writeFileSync('up', ''))
"""
ADDRESS = "http://127.0.0.1:4873"


def served(name, version, files, **more):
    """The files of a registry that has this package."""
    manifest = {"name": name, "version": version, **more}
    data = tarball({"package.json": json.dumps(manifest), **files})
    manifest["dist"] = {"tarball": f"{ADDRESS}/{name}/-/{name}-{version}.tgz", "integrity": integrity(data)}
    return {f"registry/{name}": json.dumps({"name": name, "dist-tags": {"latest": version}, "versions": {version: manifest}}),
            f"registry/{name}+-+{name}-{version}.tgz": data}


def client(registry, name, major):
    """The package of a client, from the registry that this host is configured for."""
    with urllib.request.urlopen(registry.url + name, timeout=120) as answer:
        versions = json.load(answer)["versions"]
    newest = max((version for version in versions if version.startswith(f"{major}.") and "-" not in version),
                 key=lambda version: [int(part) for part in version.split(".")])
    with urllib.request.urlopen(versions[newest]["dist"]["tarball"], timeout=120) as answer:
        return answer.read()


CLIENTS = {
    "npm": ("npm install --no-audit --no-fund dep", "npm uninstall --no-audit --no-fund dep", "npx dep"),
    "bun": ("bun add dep", "bun remove dep", "bunx dep"),
    "pnpm": ("pnpm add dep", "pnpm remove dep", "pnpm exec dep"),
    "yarn": ("yarn add dep", "yarn remove dep", "yarn -s run dep"),
}


@pytest.mark.once
@pytest.mark.shipped
def test_clients_work_on_top_of_the_mounted_packages(site, registry):
    """With a registry, which runs in the workspace: what the layer has stays beside what they add and remove."""
    files = {"server.js": SERVER, "pnpm.tgz": client(registry, "pnpm", 9), "yarn.tgz": client(registry, "yarn", 1),
             **served("alpha", "2.0.0", {"index.js": "module.exports = '2.0.0'\n"}),
             **served("dep", "1.0.0", {"index.js": "module.exports = 7\n", "cli.js": ("#!/usr/bin/env node\nconsole.log('dep runs')\n", 0o755)},
                      bin={"dep": "cli.js"})}
    prepare = f"""
        export npm_config_registry={ADDRESS} YARN_REGISTRY={ADDRESS} npm_config_node_linker=hoisted CI=1
        mkdir -p /tmp/bin/pnpm /tmp/bin/yarn
        tar -xzf pnpm.tgz -C /tmp/bin/pnpm --strip-components=1; tar -xzf yarn.tgz -C /tmp/bin/yarn --strip-components=1
        pnpm() {{ node /tmp/bin/pnpm/bin/pnpm.cjs "$@"; }}
        yarn() {{ node /tmp/bin/yarn/bin/yarn.js "$@"; }}
        node server.js & trap "kill $!" EXIT
        until [ -e up ]; do sleep 0.01; done
    """
    with created(site, "--npm", "alpha") as source:
        put(site, source, files)
        for name, (add, drop, run) in CLIENTS.items():
            assert site("fork", source, f"with-{name}").returncode == 0
            says(site, f"with-{name}", prepare + f"""
                {add} >log 2>&1 || cat log
                node -p "require('dep') + ' ' + require('alpha')"
                {run}
                {drop} >log 2>&1 || cat log
                node -e "require('alpha'); try {{ require('dep') }} catch {{ console.log('gone') }}" """, "7 2.0.0\ndep runs\ngone\n")
            assert site("rm", f"with-{name}").returncode == 0


def change(site, name, *words, live):
    done = site(*words[:1], name, *words[1:], "-o", "json", timeout=180)
    assert done.returncode == 0, (done.stdout, done.stderr)
    found = json.loads(done.stdout)
    assert (found["live"], found["persisted"]) == (live, True), found


def test_installs_in_a_workspace_that_is_the_root(site):
    """Its environments are at /env, which /.venv leads to, and /node_modules."""
    with created(site, "--view", "root") as name:
        change(site, name, "install", "beta", live=False)
        change(site, name, "install", "--node", "two", live=False)
        says(site, name, "python -c 'import beta, sys; print(sys.prefix)'; readlink /.venv; node -p \"require('two')\"; ls /node_modules",
             "/env\n/env\ntwo\ntwo\n")
        start = site.post(f"/v1/workspaces/{name}/exec", {"argv": ["sh", "-c", "until [ -e /end ]; do sleep 0.05; done"], "background": True})
        assert start.status == 201, start
        change(site, name, "install", "gamma", live=True)
        change(site, name, "install", "--node", "alpha", live=True)
        says(site, name, "python -c 'import beta, gamma'; node -p \"[require('two'), require('alpha')].join()\"", "two,2.0.0\n")
        change(site, name, "uninstall", "beta", live=True)
        change(site, name, "uninstall", "--node", "two", live=True)
        says(site, name, "! python -c 'import beta' 2>/dev/null; python -c 'import gamma'; grep -c gamma /pyproject.toml; grep -c beta /pyproject.toml || true; "
             "node -e \"require('alpha'); try { require('two') } catch { console.log('gone') }\"; cat /package.json",
             '1\n0\ngone\n{\n  "dependencies": {\n    "alpha": "^2.0.0"\n  }\n}\n')
        put(site, name, {"end": ""})
