"""Templates: listed, added, checked, removed, and workspaces made of them."""
import json
import pathlib

import pytest
from harness import eventually
from rest import created, problem
from workspaces import json_of, sh

SHIPPED = ["data-science", "default", "minimal", "strict", "web-dev"]
MINE = """# the seed's keys
version: "1.0"
name: mine
description: "of a test"
extends: strict
system: {shell: /bin/bash, editor: nano}
security:
  network_enabled: false
  filesystem_readonly: ["/usr", "/lib", "/bin", "/sbin"]
  filesystem_writable: ["/workspace", "/tmp", "/.cache", "/"]
limits: {memory: 256M}
env: {GREETING: hello, OTHER: "1"}
labels: {team: tests}
files:
  notes/README.md: |
    two
    lines
  .gitignore: "mine\\n"
ttl: 7d
"""
WARNING = "security.filesystem_writable: '/' is the workspace, which is seen at /workspace without `view: root`"


@pytest.fixture(scope="module")
def mine(daemon):
    assert daemon.post("/v1/templates", {"yaml": MINE}).status == 201
    return daemon


def test_shipped_templates_are_listed_and_shown(daemon):
    items = daemon.get("/v1/templates").json()["items"]
    assert [item["name"] for item in items if item["origin"] == "shipped"] == SHIPPED
    page = daemon.get("/v1/templates?limit=2").json()
    assert page["next_cursor"] == "default" and len(page["items"]) == 2
    assert daemon.get("/v1/templates?limit=2&cursor=default").json()["items"][0]["name"] in ("mine", "minimal")
    strict = daemon.get("/v1/templates/strict").json()
    limits = strict["limits"]
    assert [limits[key] for key in ("disk_bytes", "memory_bytes", "cpu_time_ms", "pids", "fds")] == [1 << 30, 512 << 20, 30000, 10, 100]
    assert strict["warnings"] == [] and strict["yaml"].startswith("version:")


def test_a_workspace_is_what_its_template_says_unless_options_say_otherwise(mine):
    done = mine("create", "--template", "mine", "from-mine", "-e", "OTHER=2", "--pids", "50", "-l", "own=1")
    assert done.stdout == "from-mine\n" and done.stderr == f"carrel: warning: {WARNING}\n"
    try:
        w = json_of(mine("info", "from-mine", "-o", "json"))
        assert w["template"] == "mine" and w["warnings"] == [WARNING] and w["labels"] == {"team": "tests", "own": "1"}
        assert [w["limits"][key] for key in ("memory_bytes", "pids", "fds", "cpu_time_ms")] == [256 << 20, 50, 100, 30000]
        assert w["expires_at"]
        out = sh(mine, "from-mine", "cat notes/README.md .gitignore; echo $GREETING $OTHER $SHELL $EDITOR; cat .workspace_configured").stdout
        *lines, marker = out.splitlines()
        assert lines == ["two", "lines", "mine", "hello 2 /bin/bash nano"] and json.loads(marker)["template"] == "mine"
        assert "template      mine" in mine("info", "from-mine").stdout
    finally:
        mine("rm", "from-mine")


def test_a_workspace_of_a_template_over_rest_has_its_warnings_and_no_spare_one(mine):
    with created(mine, template="mine", env={"GREETING": "mine"}) as w:
        assert w["template"] == "mine" and w["env"] == {"SHELL": "/bin/bash", "EDITOR": "nano", "OTHER": "1", "GREETING": "mine"}
    with created(mine) as w:
        assert w["template"] is None and "warnings" not in w
    for name in ("no-such", "Mine!"):
        answer = mine.post("/v1/workspaces", {"template": name})
        assert answer.status in (400, 404), answer
    problem(mine.post("/v1/workspaces", {"template": "mien"}), 404, "not_found", "mien", "did you mean 'mine'?")


def test_a_template_is_added_replaced_and_removed(daemon, tmp_path):
    file = tmp_path / "t.yaml"
    file.write_text("name: own\nenv: {A: one}\n")
    assert daemon("template", "validate", file).stdout == f"{file}: ok\n"
    assert daemon.get("/v1/templates/own").status == 404
    assert daemon("template", "add", file).stdout == "own\n"
    file.write_text("name: own\nextends: minimal\n# kept as it is\n")
    assert json_of(daemon("template", "add", file, "-o", "json"))["extends"] == "minimal"
    assert daemon("template", "show", "own").stdout == file.read_text()
    assert "own           user" in daemon("template", "ls").stdout
    assert daemon("template", "rm", "own").stdout == "removed own\n"
    problem(daemon.delete("/v1/templates/own"), 404, "not_found", "own")


def test_a_template_of_a_user_is_used_instead_of_the_shipped_one(daemon):
    assert daemon.post("/v1/templates", {"template": {"name": "minimal", "env": {"MINE": "1"}}}).status == 201
    try:
        with created(daemon, template="minimal") as w:
            assert w["env"] == {"MINE": "1"}
        assert daemon.post("/v1/templates", {"template": {"name": "minimal"}}).status == 200
    finally:
        assert daemon.delete("/v1/templates/minimal").status == 204
    assert daemon.get("/v1/templates/minimal").json()["origin"] == "shipped"
    problem(daemon.delete("/v1/templates/minimal"), 409, "conflict", "shipped")


@pytest.mark.parametrize("text, says, hint", [
    ("name: x\nlimits:\n  memry: 1G\n", "line 3: limits: unknown key 'memry'", "did you mean 'memory'?"),
    ("name: x\npython: {version: 3.10}\n", "line 2: python.version: must be text, not a number", 'put it in quotes: "3.10"'),
    ("name: x\nversion: '9'\n", "line 2: version: unknown version '9' of templates", 'this carrel reads version "1.0"'),
    ("name: x\nextends: nope\n", "extends: there is no template 'nope'", "carrel template ls lists them"),
    ("name: x\nsecurity: {filesystem_writable: [/usr]}\n", "security.filesystem_writable: '/usr' can't be made writable",
     "/workspace, /tmp, /.cache and /env are writable"),
    ("name: x\nfiles: {/etc/passwd: x}\n", "line 2: files: '/etc/passwd' is not a relative, normal path", "such as notes/README.md"),
    ("name: x\nname: y\n", "line 2: the key 'name' is given twice, first in line 1", None),
])
def test_errors_name_file_line_and_key(daemon, tmp_path, text, says, hint):
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    for verb in ("validate", "add"):
        done = daemon("template", verb, file)
        assert done.returncode == 125 and done.stderr.splitlines()[0] == f"carrel: {file}: {says}"
        assert hint is None or done.stderr.splitlines()[1] == f"hint: {hint}"
    assert daemon.get("/v1/templates/x").status == 404


def test_templates_that_extend_each_other_are_refused(daemon):
    assert daemon.post("/v1/templates", {"yaml": "name: loop-a\n"}).status == 201
    assert daemon.post("/v1/templates", {"yaml": "name: loop-b\nextends: loop-a\n"}).status == 201
    problem(daemon.post("/v1/templates", {"yaml": "name: loop-a\nextends: loop-b\n"}), 400, "invalid", "extends itself")
    assert daemon.delete("/v1/templates/loop-a").status == 204
    broken = {item["name"]: item for item in daemon.get("/v1/templates").json()["items"]}["loop-b"]
    assert "loop-a" in broken["warnings"][0]
    problem(daemon.post("/v1/workspaces", {"template": "loop-b"}), 400, "invalid", "loop-b", "loop-a")
    assert daemon.delete("/v1/templates/loop-b").status == 204


def test_hostile_texts_are_refused(daemon):
    problem(daemon.post("/v1/templates", {}), 400, "invalid", "'yaml' or 'template' is missing")
    problem(daemon.post("/v1/templates", {"yaml": "a: &a [" + "x," * 60 + "]\nb: [" + "*a," * 90 + "]\n"}), 400, "invalid", "values")
    problem(daemon.post("/v1/templates", {"yaml": "[" * 200}), 400, "invalid", "deep")
    problem(daemon.post("/v1/templates", {"yaml": "x" * (257 << 10)}), 400, "invalid", "yaml")
    problem(daemon.get("/v1/templates/..%2f..%2fconfig"), 400, "invalid", "not the name of a template")
    many = {f"d{n}/f": "x" for n in range(65)}
    problem(daemon.post("/v1/templates", {"template": {"name": "x", "files": many}}), 400, "invalid", "files", "64")


def test_create_takes_names_of_templates_only(daemon, tmp_path):
    done = daemon("create", "--template", tmp_path / "x.yaml")
    assert done.returncode == 125 and done.stderr.startswith("carrel: --template: ") and "carrel template add" in done.stderr


def test_templates_outlive_the_daemon(make_daemon):
    daemon = make_daemon()
    assert daemon.post("/v1/templates", {"yaml": MINE}).status == 201
    assert daemon.post("/v1/workspaces", {"name": "kept", "template": "mine"}).status == 201
    daemon.restart()
    assert daemon.get("/v1/templates/mine").json()["yaml"] == MINE
    kept = daemon.get("/v1/workspaces/kept").json()
    assert kept["template"] == "mine" and kept["warnings"] == [WARNING]


def test_a_run_has_the_limits_and_variables_of_a_template(mine, tmp_path):
    done = mine("run", "--template", "mine", "-e", "OTHER=2", "--", "sh", "-c", "ulimit -n; echo $GREETING $OTHER $SHELL")
    assert done.stdout == "100\nhello 2 /bin/bash\n" and done.stderr == f"carrel: warning: {WARNING}\n"
    file = tmp_path / "t.yaml"
    file.write_text("name: of-a-file\nextends: strict\nenv: {A: one}\n")
    done = mine("run", "--template", file, "--fds", "77", "--", "sh", "-c", "ulimit -n; echo $A")
    assert done.stdout == "77\none\n" and done.stderr == ""
    plan = json_of(mine("run", "--template", "strict", "--plan", "--", "true"))
    assert plan["limits"]["pids"] == 10 and plan["limits"]["cpu_time_ms"] == 30000


def test_a_run_says_what_is_wrong_with_its_template(mine, tmp_path):
    assert mine("run", "--template", "mien", "--", "true").stderr == "carrel: --template: there is no template 'mien'\nhint: did you mean 'mine'?\n"
    file = tmp_path / "t.yaml"
    file.write_text("name: x\nttl: soon\n")
    done = mine("run", "--template", file, "--", "true")
    assert done.returncode == 125 and done.stderr.startswith(f"carrel: --template: {file}: line 2: ttl: 'soon'")
    assert mine("run", "--template", tmp_path / "none.yaml", "--", "true").returncode == 125


def test_a_shipped_template_needs_no_daemon(carrel):
    assert carrel("run", "--template", "strict", "--", "sh", "-c", "ulimit -n").stdout == "100\n"


def home_of(daemon):
    return pathlib.Path(daemon.env["CARREL_HOME"])


def layers_of(daemon):
    return sorted(path.name for path in (home_of(daemon) / "layers").glob("snap-*"))


def test_workspaces_of_a_template_share_the_layer_that_it_was_built_into(make_daemon):
    daemon = make_daemon()
    text = "name: built\nfiles: {a/b: one, .gitignore: x}\n"
    assert daemon.post("/v1/templates", {"yaml": text}).status == 201
    with created(daemon, name="first", template="built"), created(daemon, name="second", template="built"):
        [layer] = layers_of(daemon)
        assert sh(daemon, "first", "cat a/b; echo two > a/b; rm .gitignore; cat .workspace_configured").stdout.startswith("one")
        assert sh(daemon, "second", "cat a/b; ls -A").stdout == "one.gitignore\n.workspace_configured\na\n"
        daemon.restart()
        with created(daemon, name="third", template="built"):
            assert layers_of(daemon) == [layer] and sh(daemon, "third", "cat a/b").stdout == "one"
        assert daemon.post("/v1/templates", {"yaml": text.replace("one", "other")}).status == 200
        with created(daemon, name="fourth", template="built"):
            assert sh(daemon, "fourth", "cat a/b").stdout == "other" and len(layers_of(daemon)) == 2
            assert daemon.delete("/v1/templates/built").status == 204
        assert sh(daemon, "first", "cat a/b; ls .gitignore 2>&1").stdout.startswith("two\nls: ")
        assert eventually(lambda: layers_of(daemon) == [layer])
    assert eventually(lambda: layers_of(daemon) == [])


def test_without_snapshots_each_workspace_has_files_of_its_own(make_daemon):
    daemon = make_daemon()
    (home_of(daemon) / "config.yaml").write_text("workspaces:\n  use_snapshots: false\n")
    daemon.restart()
    assert daemon.post("/v1/templates", {"yaml": "name: plain\nfiles: {a: one}\n"}).status == 201
    with created(daemon, name="own", template="plain"):
        assert sh(daemon, "own", "cat a").stdout == "one" and layers_of(daemon) == []
