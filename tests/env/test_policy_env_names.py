"""What a name runs where a policy holds, in workspaces with environments: the system's program; the environment's own
interpreters; else what a package layer has; never what was written (docs/design/0069)."""
# security: policy
import json
import shutil

import pytest
from daemons import new_directory, nothing_survives, remove, serving  # noqa: F401
from harness import PATH, copy_home
from index_server import Index
from rest import created, file_url
from wheels import wheel

PLANTED = "#!/bin/sh\necho planted\n"
RESERVED = ["sh", "bash", "env", "pip", "node", "npm", "perl"]     # uv refuses a wheel with a program `python`
ALLOWED = ["echo", "ls", "cp", "mv", "rm", "mkdir", "ln", "sh", "env", "timeout", "python", "python3", "pip", "tool", "node", "npm", "one-cli", "late"]
SETTINGS = {"permissions": {"allow": [f"shell({name}:*)" for name in ALLOWED]}}


def grabber(name, *names, **how):
    """A wheel that brings programs of these names, as entry points and as files."""
    half = len(names) // 2
    return wheel(name, files={f"{name}.py": "def main():\n    print('planted')\n"}, scripts={one: f"{name}:main" for one in names[:half]},
                 data={f"scripts/{one}": PLANTED for one in names[half:]}, **how)


@pytest.fixture(scope="module")
def site(template):
    directory = new_directory()
    copy_home(template[1], directory / "carrel")
    try:
        with Index() as index:
            index.add(grabber("grabber", "ls", "cp", *RESERVED), wheel("plain"),
                      wheel("tool", scripts={"tool": "tool:main"}, files={"tool.py": "import sys\ndef main():\n    print('tool', sys.prefix)\n"}))
            env = {"PATH": f"{template[0]}:{PATH}", "UV_DEFAULT_INDEX": index.url, "PIP_INDEX_URL": index.url}
            with serving(directory, env=env) as daemon:
                yield daemon
    finally:
        remove(directory)


def run(daemon, name, **body):
    return daemon.post(f"/v1/workspaces/{name}/exec", body)


def output(daemon, name, *argv, code=0):
    """Of a command, started as it is and by a shell."""
    done = run(daemon, name, argv=list(argv))
    assert done.status == 200 and done.json()["exit_code"] == code, (argv, done)
    by_shell = run(daemon, name, command=" ".join(f"'{word}'" for word in argv))
    assert by_shell.status == 200 and by_shell.json()["exit_code"] == code, (argv, by_shell)
    assert by_shell.json()["stdout"] == done.json()["stdout"], argv
    return done.json()["stdout"]


def asked(daemon, name, *argv):
    """No rule allows it: it waits for an approval, and is killed."""
    started = run(daemon, name, argv=list(argv), background=True)
    assert started.status == 201 and started.json()["state"] == "waiting", (argv, started)
    assert daemon.post(f"/v1/execs/{started.json()['id']}/signal", {"signal": "KILL"}).status == 204


def judge(daemon, name, *rules):
    settings = {"permissions": {"allow": [*SETTINGS["permissions"]["allow"], *rules]}}
    assert daemon.request("PATCH", f"/v1/workspaces/{name}", {"settings": settings}).status == 200


@pytest.fixture(scope="module")
def grabbed(site):
    """A package that grabs names is installed, and the settings allow these names."""
    with created(site, python={"packages": ["grabber", "tool"]}, settings=SETTINGS) as workspace:
        yield workspace["name"]


WHO = "import sys; print(sys.prefix, sys.executable)"


@pytest.mark.parametrize("argv, expected", [
    (["ls", "/env/pyvenv.cfg"], "/env/pyvenv.cfg\n"), (["env", "ls", "/env/pyvenv.cfg"], "/env/pyvenv.cfg\n"),
    (["timeout", "9", "ls", "/env/pyvenv.cfg"], "/env/pyvenv.cfg\n"), (["sh", "-c", "ls /env/pyvenv.cfg"], "/env/pyvenv.cfg\n"),
    (["sh", "-c", "echo sh"], "sh\n"), (["python", "-c", WHO], "/env /env/bin/python\n"), (["python3", "-c", WHO], "/env /env/bin/python3\n"),
    (["env", "python", "-c", WHO], "/env /env/bin/python\n"), (["sh", "-c", f"python -c '{WHO}'"], "/env /env/bin/python\n"),
    (["tool"], "tool /env\n"), (["env", "tool"], "tool /env\n"),
], ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_a_package_grabs_no_name(site, grabbed, argv, expected):
    done = run(site, grabbed, argv=argv)
    assert done.status == 200 and done.json()["stdout"] == expected, done


def test_pip_is_the_environment_s(site, grabbed):
    assert output(site, grabbed, "pip", "--version").startswith("pip ")
    assert output(site, grabbed, "pip", "list", "--format=freeze") == output(site, grabbed, "python", "-m", "pip", "list", "--format=freeze")


def test_pip_runs_no_module_of_the_working_directory(site, grabbed):
    for path in ("pip.py", "runpy.py", "sub/pip/__main__.py", "sub/pip/__init__.py"):
        assert site.request("PUT", file_url(grabbed, path), b"print('planted')\n").status == 201
    for body in ({"argv": ["pip", "--version"]}, {"command": "pip --version"}, {"argv": ["pip", "--version"], "cwd": "/workspace/sub"}):
        assert run(site, grabbed, **body).json()["stdout"].startswith("pip "), body
    for path in ("pip.py", "runpy.py", "sub"):
        assert site.delete(file_url(grabbed, path, "?recursive=true")).status == 204


def test_a_reserved_name_that_only_a_package_brings_is_not_found(site, grabbed):
    for name in ("node", "npm"):
        done = run(site, grabbed, argv=[name, "--version"]).json()
        assert "planted" not in done["stdout"] and (done["exit_code"] == 127 or shutil.which(name, path=PATH)), (name, done)
    asked(site, grabbed, "/env/bin/node")
    asked(site, grabbed, "/env/bin/ls")


def test_what_was_installed_inside_is_called_by_its_path(site):
    with created(site, python={"packages": ["plain"]}, settings=SETTINGS) as workspace:
        name = workspace["name"]
        judge(site, name, "shell(/env/bin/late:*)")
        late = grabber("late", "late", "ls")
        assert site.request("PUT", file_url(name, late.filename), late.data).status == 201
        pip = "import runpy, sys; sys.argv = ['pip', {}]; runpy.run_module('pip', run_name='__main__')"
        script = pip.format(f"'install', '--no-index', './{late.filename}'")
        assert "Successfully installed late" in run(site, name, argv=["python", "-c", script]).json()["stdout"]
        assert output(site, name, "/env/bin/late") == "planted\n"
        output(site, name, "late", code=127)
        assert output(site, name, "ls", "/env/pyvenv.cfg") == "/env/pyvenv.cfg\n"
        assert output(site, name, "python", "-c", "import late; late.main()") == "planted\n"
        # What was written stays written when it is frozen.
        assert site.post(f"/v1/workspaces/{name}/snapshots", {}).status == 201
        output(site, name, "late", code=127)
        assert output(site, name, "ls", "/env/pyvenv.cfg") == "/env/pyvenv.cfg\n"
        script = pip.format("'uninstall', '-y', 'late'")
        assert "Successfully uninstalled late" in run(site, name, argv=["python", "-c", script]).json()["stdout"]


def test_what_carrel_installs_has_a_name(site):
    with created(site, python={"packages": ["plain"]}, settings=SETTINGS) as workspace:
        name = workspace["name"]
        output(site, name, "tool", code=127)
        done = site("install", name, "tool", timeout=120)
        assert done.returncode == 0, done.stderr
        assert output(site, name, "tool") == "tool /env\n"


@pytest.mark.parametrize("place", ["rm -rf {0}; cp /workspace/planted {0}", "rm -rf {0}; mkdir {0}; cp /workspace/planted {0}/x", "rm -rf {0}",
                                   "rm -rf {0}; ln -s /workspace/planted {0}", "rm -rf /env/bin; mkdir /env/bin; cp /workspace/planted {0}",
                                   "mv /env/bin /env/b; ln -s b /env/bin; rm -f {0}; cp /workspace/planted {0}",
                                   "rm -rf /env/bin; cp /workspace/planted /env/bin"])
def test_an_interpreter_that_was_replaced_does_not_run(site, place):
    """Neither by its name nor by the first line of a script."""
    with created(site, python={"packages": ["tool"]}) as workspace:
        name = workspace["name"]
        assert site.request("PUT", file_url(name, "planted", "?mode=0755"), PLANTED.encode()).status == 201
        for program in ("/env/bin/python", "/env/bin/python3"):
            assert run(site, name, argv=["/bin/sh", "-c", place.format(program)]).json()["exit_code"] == 0
        judge(site, name, "shell(/env/bin/python:*)")
        assert output(site, name, "python", "-c", WHO) == "/env /env/bin/python\n"
        assert output(site, name, "/env/bin/python", "-c", WHO) == "/env /env/bin/python\n"
        assert output(site, name, "tool") == "tool /env\n"


@pytest.mark.parametrize("argv", [["rm", "-f", "/env/bin/python"], ["mv", "/env/bin", "/env/b"], ["mv", "/env/bin/python", "/env/bin/p"],
                                  ["cp", "--remove-destination", "/workspace/planted", "/env/bin/python3"], ["ln", "-sf", "/workspace/planted", "/env/bin/python"],
                                  ["cp", "/workspace/planted", "/run/programs/first/python"]], ids=" ".join)
def test_an_interpreter_can_not_be_replaced_while_a_policy_holds(site, grabbed, argv):
    assert site.request("PUT", file_url(grabbed, "planted", "?mode=0755"), PLANTED.encode()).status in (200, 201, 204)
    started = run(site, grabbed, argv=["sh", "-c", " ".join(argv)], approval="return")
    assert started.status == 201 or started.json()["exit_code"], started
    assert site.request("PUT", file_url(grabbed, "/env/bin/python"), PLANTED.encode()).status >= 400
    assert output(site, grabbed, "python", "-c", WHO) == "/env /env/bin/python\n"
    assert output(site, grabbed, "tool") == "tool /env\n"


def test_carrel_run_judges_what_it_runs(site, tmp_path):
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps(SETTINGS))
    project = tmp_path / "project"
    (project / "node_modules/.bin").mkdir(parents=True)
    for name in ("ls", "late"):
        (project / "node_modules/.bin" / name).write_text(PLANTED)
        (project / "node_modules/.bin" / name).chmod(0o755)
    how = ("run", "-s", settings, "--dir", project, "--pip", "grabber", "--pip", "tool", "--")
    for argv, expected in ((["ls", "/env/pyvenv.cfg"], "/env/pyvenv.cfg\n"), (["sh", "-c", "ls /env/pyvenv.cfg"], "/env/pyvenv.cfg\n"),
                           (["python", "-c", WHO], "/env /env/bin/python\n"), (["tool"], "tool /env\n")):
        done = site(*how, *argv, timeout=120)
        assert (done.returncode, done.stdout) == (0, expected), (argv, done)
    done = site(*how, "late")
    assert done.returncode == 127 and "by its path" in done.stderr, done


@pytest.fixture(scope="module")
def node_site(template, node_home, registry):
    if not shutil.which("node", path=PATH) or not shutil.which("npm", path=PATH):
        pytest.skip("no node, no npm")
    directory = new_directory()
    copy_home(node_home / "carrel", directory / "carrel", leave=("run", "audit"))
    planted = {"x.sh": (PLANTED, 0o755), "index.js": ""}
    registry.add("grabber", "1.0.0", planted, bin={name: "x.sh" for name in ["ls", "late", "python", *RESERVED]})
    try:
        with serving(directory, env={"PATH": f"{template[0]}:{PATH}", "npm_config_registry": registry.url}) as daemon:
            yield daemon
    finally:
        remove(directory)


def test_a_package_of_node_grabs_no_name(node_site):
    site = node_site
    with created(site, node={"packages": ["one", "grabber"]}, settings=SETTINGS) as workspace:
        name = workspace["name"]
        assert output(site, name, "ls", "/workspace") == "node_modules\npackage.json\n" or "planted" not in output(site, name, "ls", "/workspace")
        assert output(site, name, "node", "-p", "1 + 1") == "2\n"
        assert output(site, name, "env", "node", "-p", "1 + 1") == "2\n"
        assert output(site, name, "one-cli") == "cli\n"
        assert output(site, name, "late") == "planted\n"        # the package's own, of an unchanged layer
        assert output(site, name, "npm", "--version")[:1].isdigit()
        assert output(site, name, "sh", "-c", "echo sh") == "sh\n"
        asked(site, name, "/workspace/node_modules/.bin/ls")
        # Written over: the name runs what the layer has, the path is another thing.
        assert site.request("PUT", file_url(name, "node_modules/.bin/one-cli", "?mode=0755"), PLANTED.encode()).status in (200, 201, 204)
        assert output(site, name, "one-cli") == "cli\n"
        judge(site, name, "shell(/workspace/node_modules/.bin/one-cli:*)")
        assert output(site, name, "/workspace/node_modules/.bin/one-cli") == "planted\n"
