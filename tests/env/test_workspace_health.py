"""Health and repair of a workspace with a Python environment: what a command breaks inside, and what happens to the store."""
# security: packages
import json
import os
import shutil

import pytest
from daemons import new_directory, remove, serving
from harness import copy_home
from index_server import Index
from wheels import wheel

pytestmark = pytest.mark.shipped

SITE = "cd /env/lib/python3*/site-packages"


@pytest.fixture
def module_index():
    with Index() as server:
        server.add(wheel("victim", "1.5", files={"victim_lib/__init__.py": "VALUE = 1\n", "victim_lib/other.py": "X = 1\n"}),
                   wheel("Name.Space", "1.0", files={"shared_ns/part/__init__.py": "Y = 2\n"}),
                   wheel("bystander", "2.0", files={"bystander.py": "Z = 3\n"}))
        yield server


@pytest.fixture
def building(template, module_index):
    tools, source = template
    directory = new_directory()
    copy_home(source, directory / "carrel")
    where = {"UV_DEFAULT_INDEX": module_index.url, "PATH": f"{tools}:{os.environ['PATH']}"}
    with serving(directory, env=where) as daemon:
        yield daemon
    remove(directory)


@pytest.fixture
def name(building):
    answer = building.post("/v1/workspaces", {"name": "patient", "python": {"packages": ["victim", "name-space", "bystander; python_version > '2'"]}})
    assert answer.status == 201, answer
    return "patient"


def sh(daemon, name, script):
    answer = daemon.post(f"/v1/workspaces/{name}/exec", {"command": script}).json()
    assert answer["exit_code"] == 0, answer


def health(daemon, name, query=""):
    answer = daemon.get(f"/v1/workspaces/{name}/health{query}")
    assert answer.status == 200, answer
    return answer.json()


def repair(daemon, name, query=""):
    answer = daemon.post(f"/v1/workspaces/{name}/repair{query}")
    assert answer.status == 200, answer
    return answer.json()


def a_whole_workspace_is_healthy_also_while_suspended(building, name):
    sh(building, name, "echo some > file")
    found = health(building, name)
    assert found["issues"] == [] and found["healthy"], found
    assert [found[key] for key in ("configured", "python_venv", "python_deps_installed", "node_modules", "node_deps_installed")] \
        == [True, True, True, False, False]
    assert found["disk_usage"] > 0 and found["environment_layers"] >= 4 and "seccomp" in found["layers_active"]
    assert building.post(f"/v1/workspaces/{name}/suspend").status == 200
    found = health(building, name, "?deep")
    assert found["healthy"] and found["deep"] and found["state"] == "suspended"
    assert building.get(f"/v1/workspaces/{name}").json()["state"] == "suspended"
    assert repair(building, name)["done"] == []


DAMAGES = [
    ("rm .workspace_configured .venv", "configured", ".venv", "made the link '.venv'"),
    (f"{SITE}; echo 'raise ValueError(7)' > victim_lib/__init__.py; echo > victim_lib/mine.py", "python_deps_installed", "ValueError: 7", "restored 'victim'"),
    (f"{SITE}; rm -r victim_lib victim-1.5.dist-info; mkdir victim_lib", "python_deps_installed", "'victim' is not installed", "restored 'victim'"),
    (f"{SITE}; rm -r shared_ns; mkdir shared_ns; touch shared_ns/other", "python_deps_installed", "shared_ns", "restored 'name-space'"),
    ("rm .venv; mkdir .venv", "python_venv", "'.venv' does not lead to an environment", "made the link '.venv'"),
    ("rm .venv; mkdir .venv; echo mine > .venv/mine", "python_venv", "'.venv' does not lead to an environment", "made the link '.venv'"),
    ("grep -q mine .venv.replaced/mine; rm -r .venv.replaced .venv; ln -s /nowhere .venv", "python_venv", "'.venv' does not lead to an environment", "made the link '.venv'"),
    (f"{SITE}; rm victim_lib/other.py", "python_deps_installed", "'victim' lacks its file 'victim_lib/other.py'", "restored 'victim'"),
    ("rm /env/bin/python3", "python_venv", "Python", "restored 'Python'"),
]


def what_a_command_broke_is_named_and_repaired(building, name):
    for damage, field, issue, action in DAMAGES:
        sh(building, name, damage)
        found = health(building, name)
        assert not found["healthy"] and not found[field] and issue in " ".join(found["issues"]), (damage, found)
        done = repair(building, name)
        assert done["failed"] == [] and action in " ".join(done["done"]) and done["health"]["healthy"], (damage, done)


def a_project_that_can_not_be_read_is_named(building, name):
    for file, break_it in (("pyproject.toml", "chmod 0"), ("package.json", "chmod 0"), ("pyproject.toml", "echo '[[' >"), ("package.json", "echo '{' >")):
        sh(building, name, f"touch {file}; {break_it} {file}")
        found = health(building, name)
        assert not found["healthy"] and f"{file} can't be read" in " ".join(found["issues"]), (file, break_it, found)
        sh(building, name, f"rm -f {file}")
    assert health(building, name)["healthy"]
    # A package that was removed as a whole is anybody's choice, unless it was declared.
    sh(building, name, "pip uninstall -qy pip")
    assert health(building, name)["healthy"]


def other_changes_survive_a_repair(building, name):
    sh(building, name, f"echo kept > file; {SITE}; echo > own_module.py; rm bystander.py")
    done = repair(building, name)
    assert done["done"] == ["restored 'bystander' from its layer"], done
    sh(building, name, f"test $(cat file) = kept && {SITE} && test -e own_module.py")


def a_damaged_layer_is_built_again(building, name):
    layers = building.home / "carrel" / "layers"
    found = next(path for path in layers.glob("*/tree/lib/python3*/site-packages/victim_lib/other.py"))
    found.chmod(0o644)
    found.write_text("X = 2\n")
    assert health(building, name)["healthy"]
    damaged = health(building, name, "?deep")
    assert any("victim" in issue for issue in damaged["issues"]), damaged
    # Its warm sandbox runs on the damaged layer no more: the next command has a repaired one.
    assert building.get(f"/v1/workspaces/{name}").json()["state"] == "suspended"
    sh(building, name, f"{SITE}; grep -q 1 victim_lib/other.py")
    # Where a command runs, it may end, and no other begins beside it.
    runs = building.post(f"/v1/workspaces/{name}/exec", {"argv": ["sleep", "1000"], "background": True}).json()
    found.chmod(0o644)
    found.write_text("X = 2\n")
    assert any("victim" in issue for issue in health(building, name, "?deep")["issues"])
    for call in ({"command": "true"}, {"argv": ["true"], "background": True}):
        answer = building.post(f"/v1/workspaces/{name}/exec", call).json()
        if call.get("background"):
            answer = building.get(f"/v1/execs/{answer['id']}?wait=true").json() if "id" in answer else answer
        assert "damaged" in json.dumps(answer) and answer.get("exit_code") != 0, answer
    refused = building("exec", name, "--", "true")
    assert refused.returncode == 125 and "are damaged" in refused.stderr, refused
    # The damaged copy stays while that command may have it mounted, and goes afterwards, though the workspace uses the layer.
    assert "repaired" in building("env", "verify", "--repair", timeout=120).stdout
    assert building("env", "prune").returncode == 0 and [*layers.glob(".bad-*")]
    assert building.post(f"/v1/execs/{runs['id']}/signal", {"signal": "KILL"}).status == 204
    assert building.get(f"/v1/execs/{runs['id']}?wait=true").json()["exit_code"] == 137
    sh(building, name, f"{SITE}; grep -q 1 victim_lib/other.py")
    assert building("env", "prune").returncode == 0 and not [*layers.glob(".bad-*")]
    sh(building, name, f"{SITE}; grep -q 1 victim_lib/other.py")
    found = next(layers.glob("[0-9a-f]*/tree/lib/python3*/site-packages/victim_lib/other.py"))
    found.chmod(0o644)
    found.write_text("X = 2\n")
    assert any("victim" in issue for issue in health(building, name, "?deep")["issues"])
    done = repair(building, name, "?deep")
    assert done["health"]["healthy"] and "built environment" in " ".join(done["done"]), done
    assert health(building, name, "?deep")["healthy"]
    for path in layers.glob("*/tree/lib/python3*/site-packages/victim_lib"):
        shutil.rmtree(path.parents[4])
    missing = health(building, name)
    assert not missing["healthy"] and "layer" in missing["issues"][0] and not missing["python_venv"], missing
    done = repair(building, name)
    assert done["health"]["healthy"], done


def what_runs_is_not_ended_and_what_is_declared_too_much_is_said(building, name):
    sh(building, name, "printf '[project]\\nname = \"x\"\\ndependencies = [\"never-installed>1\"]\\n' > pyproject.toml; mkdir node_modules; "
                       "echo '{\"dependencies\": {\"axios\": \"1\", \"../../etc\": \"1\"}}' > package.json")
    found = health(building, name)
    assert found["issues"] == ["Node package 'axios' is not installed", "Python package 'never-installed' is not installed"], found
    assert found["node_modules"] and not found["node_deps_installed"]
    exec_ = building.post(f"/v1/workspaces/{name}/exec", {"argv": ["sleep", "1000"], "background": True}).json()
    answer = building.post(f"/v1/workspaces/{name}/repair")
    assert answer.status == 409 and exec_["id"] in answer.json()["detail"], answer
    done = building("health", name)
    assert done.returncode == 1 and "issue: Node package 'axios' is not installed" in done.stdout, done
    assert building.post(f"/v1/execs/{exec_['id']}/signal", {"signal": "KILL"}).status == 204
    done = building("repair", name)
    assert done.returncode == 1 and "not repaired: Node package 'axios'" in done.stdout, done
    sh(building, name, "rm -r pyproject.toml package.json node_modules")
    assert json.loads(building("health", "-o", "json").stdout)[0]["healthy"]
    assert building("repair", name).stdout == f"{name} is healthy\n"


def test_a_workspace_is_checked_and_repaired(building, name):
    """One after the other: they share a workspace whose environment takes longer to build than they do."""
    a_whole_workspace_is_healthy_also_while_suspended(building, name)
    what_a_command_broke_is_named_and_repaired(building, name)
    a_project_that_can_not_be_read_is_named(building, name)
    other_changes_survive_a_repair(building, name)
    a_damaged_layer_is_built_again(building, name)
    what_runs_is_not_ended_and_what_is_declared_too_much_is_said(building, name)


@pytest.mark.once
def test_an_archive_brings_its_environment_along(building, name):
    """The recipe, from which it is built again when it is gone, and what was changed on top."""
    sh(building, name, f"{SITE}; echo 'VALUE = 7' >victim_lib/__init__.py; rm victim_lib/other.py")
    answer = building.delete(f"/v1/workspaces/{name}?archive=true")
    assert answer.status == 200, answer
    archive = answer.json()["name"]
    answer = building.post(f"/v1/archives/{archive}/restore", {"name": "first"})
    assert answer.status == 201, answer.json()
    before = answer.json()["environment"]
    assert building.delete("/v1/workspaces/first").status == 204
    done = building("env", "rm", before)
    assert done.returncode == 0, done.stderr
    answer = building.post(f"/v1/archives/{archive}/restore")
    assert answer.status == 201, answer
    assert answer.json()["environment"] == before
    sh(building, name, f"python -c 'import victim_lib, bystander; assert victim_lib.VALUE == 7'; {SITE}; test ! -e victim_lib/other.py")
