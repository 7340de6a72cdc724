"""Sources to wheels: packages of an index with --allow-build, and projects of the host with --editable."""
import json
import os
import shutil
import subprocess
import textwrap

import pytest
from wheels import sdist, wheel

pytestmark = pytest.mark.once     # as another user it says the same

ALLOW = "--allow-build"


def sources(path, code="", **how):
    """A version of wheels.sdist whose code leaves word that it ran."""
    return sdist(path, code=textwrap.indent(textwrap.dedent(code), "    ") + "\n    return 'built'\n", **how)


# ---- which version, and what it needs

def test_a_dependency_is_built_in_the_version_that_others_need(env, index):
    index.add(wheel("top", requires=["source-only>=1,<2"]), *[sources("source-only", version=v) for v in ("0.9", "1.5", "2.0")])
    env.fails("agent", "--pip", "top", code="denied", package="source-only")
    found = env.build("agent", ALLOW, "--pip", "top")
    assert found["installed_packages"] == {"top": "1.0", "source-only": "1.5"}
    assert env.python("agent", "import source_only; print(source_only.VERSION, source_only.FOUND)") == "1.5 built\n"


def test_what_only_the_built_wheel_says_it_needs_is_resolved(env, index):
    index.add(sources("outer", requires=["inner>1", "plain"]), sources("inner", version="1.0"), sources("inner", version="2.0"),
              wheel("plain"))
    found = env.build("agent", ALLOW, "--pip", "outer")
    assert found["installed_packages"] == {"inner": "2.0", "outer": "1.0", "plain": "1.0"}
    env.python("agent", "import outer, inner, plain")


def test_what_is_asked_for_decides_the_version(env, index):
    index.add(*[sources("pinned", version=v) for v in ("1.0", "2.0", "3.0")])
    assert env.build("agent", ALLOW, "--pip", "pinned<3")["installed_packages"] == {"pinned": "2.0"}
    env.fails("agent", ALLOW, "--pip", "pinned>3", code={"version_not_found", "conflict"}, package="pinned")


def test_configuration_allows_it_too(env, index):
    index.add(sources("by-config"))
    env.configure("environments:\n  allow_build: true\n")
    env.build("agent", "--pip", "by-config")


def test_packages_that_are_blocked_are_not_built(env, index):
    """Neither one that is needed, nor what its build asks for."""
    index.add(wheel("top", requires=["bad"]), sources("bad"), sources("innocent", build_requires=["bad-tool"]), wheel("bad-tool"))
    env.configure("environments:\n  blocked_packages: [bad, bad-tool]\n")
    env.fails("agent", ALLOW, "--pip", "top", code="denied", package="bad")
    env.fails("agent", ALLOW, "--pip", "innocent", code="denied", package="bad-tool")
    assert index.asked_for("bad") == index.asked_for("bad-tool") == 0


def test_run_builds_from_sources_when_it_is_allowed_to(env, index):
    """The hint of the failure is an option that the command has."""
    index.add(sources("by-run"))
    words = ["--pip", "by-run", "--", "python", "-c", "import by_run; print(by_run.FOUND)"]
    refused = env("run", *words, env={"UV_DEFAULT_INDEX": index.url}, timeout=180)
    assert refused.returncode == 125 and ALLOW in refused.stderr, refused
    done = env("run", ALLOW, *words, env={"UV_DEFAULT_INDEX": index.url}, timeout=180)
    assert (done.returncode, done.stdout) == (0, "built\n"), done


# ---- what is kept, and for whom

def test_what_was_built_is_not_built_again(env, index):
    index.add(sources("kept"), wheel("plain"))
    first = env.build("agent", ALLOW, "--pip", "kept", "--pip", "plain")
    index.requests.clear()
    again = env.build("agent", ALLOW, "--pip", "kept", "--pip", "plain", "--rebuild")
    other = env.build("other", ALLOW, "--pip", "kept", "--pip", "plain")
    assert first["layers"] == again["layers"] == other["layers"] and index.requests == []


def test_who_does_not_allow_building_gets_nothing_that_was_built(env, index):
    """Neither the environment, nor the lock, nor the layer."""
    index.add(sources("kept"))
    env.build("agent", ALLOW, "--pip", "kept")
    for package_id in ("agent", "other"):
        done = env.try_build(package_id, "-o", "json", "--pip", "kept")
        assert done.returncode == 125 and json.loads(done.stdout)["error"]["code"] == "denied"
    index.add(wheel("kept"))
    env.build("other", "--pip", "kept", "--no-cache")
    assert env.python("other", "import kept; print(hasattr(kept, 'FOUND'))") == "False\n", "the wheel, not what was built"


def test_a_damaged_layer_is_built_again_from_the_same_lock(own_env, index):
    index.add(sources("mended"))
    before = own_env.build("agent", ALLOW, "--pip", "mended")
    index.add(sources("mended", version="2.0"))
    path = own_env.layer("agent", "mended")
    file = next(path.glob("lib/python3*/site-packages/mended.py"))
    file.chmod(0o644)
    file.write_text("VERSION = 'changed'\n")
    own_env("env", "verify", "--repair", "agent", timeout=120)
    assert own_env.python("agent", "import mended; print(mended.VERSION)") == "1.0\n"
    assert own_env.show("agent")["installed_packages"] == before["installed_packages"]


def test_a_locked_package_whose_wheel_is_gone_is_built(own_env, index):
    archive = sources("fading")
    index.add(wheel("fading"), archive)
    own_env.configure("environments:\n  allow_build: true\n")
    own_env.build("agent", "--pip", "fading")
    shutil.rmtree(own_env.layer("agent", "fading").parent)
    index.remove("fading")
    index.add(archive)
    own_env.build("agent", "--pip", "fading", "--rebuild")
    assert own_env.python("agent", "import fading; print(fading.FOUND)") == "built\n"


# ---- hashes

def test_hashes_are_those_of_the_source_archive(env, index):
    archive = sources("hashed")
    index.add(archive)
    good = env.requirements(f"hashed==1.0 --hash=sha256:{archive.sha256}\n")
    found = env.build("agent", ALLOW, "--require-hashes", "-r", good)
    lock = (env.store / "envs" / found["name"] / "lock.txt").read_text()
    assert f"sha256:{archive.sha256}" in lock and "# built hashed" in lock
    wrong = env.requirements(f"hashed==1.0 --hash=sha256:{'0' * 64}\n", "wrong.txt")
    env.fails("other", ALLOW, "-r", wrong, code="hash_mismatch", package="hashed")


def test_an_archive_that_is_not_what_the_index_says_is_not_built(env, index):
    index.add(sources("changed"))
    index.misbehave("/files/changed", "garbage")
    env.fails("agent", ALLOW, "--pip", "changed", code={"hash_mismatch", "failed"}, package="changed")


def test_an_archive_that_breaks_off_once_is_fetched_again(env, index):
    index.add(sources("fragile"))
    index.misbehave("/files/fragile/", "half", times=1)
    assert env.build("agent", ALLOW, "--pip", "fragile")["installed_packages"] == {"fragile": "1.0"}


# ---- what a build may ask for

ASKS = """
def get_requires_for_build_wheel(config_settings=None):
    open('/env/LEFT', 'w').write('x')
    return {!r}
"""


def test_what_the_backend_asks_for_is_there_when_it_builds(env, index):
    code = "    import os, asked_tool\n    return (asked_tool.VERSION, os.path.exists('/env/LEFT'))\n"
    index.add(wheel("asked-tool", "7.0"), sdist("asking", code=code, hooks=ASKS.format(["asked-tool>=7"])))
    env.build("agent", ALLOW, "--pip", "asking")
    assert env.python("agent", "import asking; print(asking.FOUND)") == "('7.0', False)\n", "and nothing that ran before"
    assert "asked-tool" not in env.show("agent")["installed_packages"]


@pytest.mark.parametrize("wanted", ["asked @ http://127.0.0.1:1/asked-1.0-py3-none-any.whl", "/etc", "-r /etc/passwd", "--index-url=http://127.0.0.1:1",
                                    "asked @ file:///etc/x.whl", "no-such-tool"])
@pytest.mark.parametrize("way", ["pyproject", "backend"])
def test_a_build_can_ask_for_packages_of_the_index_only(env, index, wanted, way):
    index.add(sdist("greedy", build_requires=[wanted]) if way == "pyproject" else sdist("greedy", hooks=ASKS.format([wanted])))
    env.fails("agent", ALLOW, "--pip", "greedy", code={"denied", "invalid", "not_found"}, says=["greedy"])


def test_what_a_build_needs_is_not_built_in_turn(env, index):
    index.add(sources("tool"), sources("user", build_requires=["tool"]))
    env.fails("agent", ALLOW, "--pip", "user", code="denied", says=["tool"])


# ---- no code but in its build

def test_resolving_runs_nothing(env, index):
    """Whatever uv would like to know of it: the sources are fetched once, by us, and the one who runs them has no network."""
    code = """
        import urllib.request
        try: urllib.request.urlopen(f'http://127.0.0.1:{PORT}/ran', timeout=2)
        except OSError: pass
        """.replace("{PORT}", str(index.port))
    index.add(sources("loud", code=code, requires=["plain"]), wheel("plain"))
    env.build("agent", ALLOW, "--pip", "loud")
    assert not any("/ran" in path for path in index.requests) and index.asked_for("loud") == 1


# ---- hostile ones

def test_a_build_that_fills_the_disk_is_ended(env, index):
    code = """
        with open('/env/.out/filler', 'wb') as out:
            for _ in range(4000): out.write(bytes(1 << 20))
        """
    index.add(sources("filler", code=code))
    env.configure("environments:\n  max_install_bytes: 20M\n")
    env.fails("agent", ALLOW, "--pip", "filler", code={"disk_full", "denied", "failed"}, says=["filler"], timeout=120)


def test_a_build_that_prints_without_end_is_ended(env, index):
    index.add(sources("talker", code="for _ in range(20): print('x' * (1 << 20))\n"), sources("shouter", code="while True: print('x' * (1 << 20))\n"))
    env.build("agent", ALLOW, "--pip", "talker")
    env.fails("agent", ALLOW, "--pip", "shouter", code="failed", package="shouter", says=["exceeded its output limit"])


FORGED = """
import io
def build_wheel(directory, config_settings=None, metadata_directory=None):
    names = {names!r}
    with zipfile.ZipFile(os.path.join(directory, names['file']), 'w') as archive:
        record = ''
        members = {{names['module'] + '.py': 'VERSION = 0\\n', names['info'] + '/METADATA': 'Metadata-Version: 2.1\\nName: ' + names['name'] + '\\nVersion: 1.0\\n',
                   names['info'] + '/WHEEL': 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n', **names.get('more', {{}})}}
        for path, text in members.items():
            archive.writestr(path, text)
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b'=').decode()
            record += path + ',sha256=' + digest + ',' + str(len(text)) + '\\n'
        archive.writestr(names['info'] + '/RECORD', record + names['info'] + '/RECORD,,\\n')
    return names['file']
"""


@pytest.mark.parametrize("names", [
    {"file": "victim-1.0-py3-none-any.whl", "info": "victim-1.0.dist-info", "name": "victim", "module": "victim"},
    {"file": "forger-1.0-py3-none-any.whl", "info": "victim-1.0.dist-info", "name": "victim", "module": "victim"},
    {"file": "forger-1.0-py3-none-any.whl", "info": "forger-1.0.dist-info", "name": "victim", "module": "forger"},
    {"file": "forger-9.0-py3-none-any.whl", "info": "forger-9.0.dist-info", "name": "forger", "module": "forger"},
    {"file": "forger-1.0-py3-none-any.whl", "info": "forger-1.0.dist-info", "name": "forger", "module": "forger",
     "more": {"victim-1.0.dist-info/RECORD": "victim.py,,\n"}},
    {"file": "forger-1.0-py3-none-any.whl", "info": "forger-1.0.dist-info", "name": "forger", "module": "forger",
     "more": {"../../../../escaped.py": "x"}, "says": ["escaped.py"]},
    {"file": "forger-1.0-py3-none-any.whl", "info": "forger-1.0.dist-info", "name": "forger", "module": "forger",
     "more": {"forger-1.0.data/data/bin/python3": "x"}},
], ids=["name", "content", "metadata", "version", "record", "escape", "python"])
def test_a_wheel_that_is_not_what_was_asked_for_is_refused(env, index, names):
    index.add(sdist("forger", hooks=FORGED.format(names=names)), wheel("victim"))
    env.fails("agent", ALLOW, "--pip", "forger", "--pip", "victim", code={"failed", "denied", "hash_mismatch"},
              says=names.get("says", ["forger"]))
    env.build("agent", "--pip", "victim")
    assert env.python("agent", "import victim; print(victim.VERSION)") == "1.0\n"


@pytest.mark.parametrize("trick", ["os.symlink('/etc/passwd', path)", "os.mkfifo(path)", "os.mkdir(path)", "os.link('/env/pyvenv.cfg', path)", "pass"])
def test_a_wheel_is_a_plain_file(env, index, trick):
    hooks = f"""
def build_wheel(directory, config_settings=None, metadata_directory=None):
    path = os.path.join(directory, 'tricky-1.0-py3-none-any.whl')
    {trick}
    return 'tricky-1.0-py3-none-any.whl'
"""
    index.add(sdist("tricky", hooks=hooks))
    env.fails("agent", ALLOW, "--pip", "tricky", code={"failed", "denied"}, package="tricky")


@pytest.mark.parametrize("answer", ["../../x-1.0-py3-none-any.whl", "/etc/passwd", "x\ny", "", "tricky-1.0-py3-none-any.whl\0", "tricky-1.0.tar.gz"])
def test_a_backends_answer_is_a_name(env, index, answer):
    index.add(sdist("tricky", hooks=f"def build_wheel(*_): return {answer!r}\n"))
    env.fails("agent", ALLOW, "--pip", "tricky", code={"failed", "denied"}, package="tricky")


def test_a_build_does_not_change_what_another_one_uses(env, index):
    """The first poisons all it can reach of what both need; the second has it fresh."""
    poison = """
        import tool, os
        for path in (tool.__file__, '/env/.cache/poison', '/env/.in/lock.txt', '/wheels/x'):
            try: open(path, 'w').write("VERSION = 'poisoned'")
            except OSError: pass
        """
    index.add(wheel("tool"), sources("aa-poisoner", code=poison, build_requires=["tool"]),
              sdist("zz-user", code="    import tool\n    return tool.VERSION\n", build_requires=["tool"]))
    env.build("agent", ALLOW, "--pip", "aa-poisoner", "--pip", "zz-user", "--pip", "tool", timeout=120)
    assert env.python("agent", "import zz_user, tool; print(zz_user.FOUND, tool.VERSION)") == "1.0 1.0\n"


# ---- projects

EDITABLE = """
def build_editable(directory, config_settings=None, metadata_directory=None):
    here = os.getcwd()
    with open(os.path.join(here, 'left-by-its-build'), 'w') as out: out.write('x')
    info = 'own_project-0.5.dist-info'
    files = {'own_project.pth': os.path.join(here, 'src') + '\\n',
             info + '/METADATA': 'Metadata-Version: 2.1\\nName: own-project\\nVersion: 0.5\\n' + open('needs').read(),
             info + '/entry_points.txt': '[console_scripts]\\n' + open('setup.cfg').read(),
             info + '/WHEEL': 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n'}
    name = 'own_project-0.5-0.editable-py3-none-any.whl'
    with zipfile.ZipFile(os.path.join(directory, name), 'w') as archive:
        record = ''
        for path, text in files.items():
            archive.writestr(path, text)
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b'=').decode()
            record += path + ',sha256=' + digest + ',' + str(len(text)) + '\\n'
        archive.writestr(info + '/RECORD', record + info + '/RECORD,,\\n')
    return name
"""


@pytest.fixture
def project(tmp):
    """A project with a build system of its own: its dependencies are in `needs`, its commands in setup.cfg."""
    (tmp / "src/own_project").mkdir(parents=True)
    (tmp / "src/own_project/__init__.py").write_text("VALUE = 1\ndef main(): print('value', VALUE)\ndef more(): print('more')\n")
    (tmp / "pyproject.toml").write_text('[build-system]\nrequires = []\nbuild-backend = "its_backend"\nbackend-path = ["."]\n')
    (tmp / "its_backend.py").write_text("import base64, hashlib, os, zipfile\n" + EDITABLE)
    (tmp / "setup.cfg").write_text("own-command = own_project:main\n")
    (tmp / "needs").write_text("Requires-Dist: needed\n")
    return tmp


def test_a_project_is_installed_with_its_metadata_commands_and_dependencies(env, index, project):
    index.add(wheel("needed"))
    found = env.build("agent", "--editable", project)
    assert found["editables"] == [str(project)] and found["installed_packages"] == {"needed": "1.0"}
    assert env.show("agent")["editable_packages"] == {"own-project": "0.5"}
    shown = env("env", "show", "agent").stdout.splitlines()
    assert shown[-3:] == [f"editable      {project}", "packages      needed==1.0", "              own-project==0.5 (editable)"]
    assert env.inside("agent", "own-command") == "value 1\n"
    assert "own-project 0.5" in " ".join(env.inside("agent", "pip", "list").split())
    assert env.python("agent", "import importlib.metadata as m; print(m.version('own-project'), m.version('needed'))") == "0.5 1.0\n"
    module = project / "src/own_project/__init__.py"
    module.write_text(module.read_text().replace("VALUE = 1", "VALUE = 2"))
    assert env.inside("agent", "own-command") == "value 2\n", "edits are seen at once"
    out = env.inside("agent", "sh", "-c", "pip uninstall -qy own-project needed && ! command -v own-command && ! python -c 'import own_project' 2>/dev/null")
    assert out == "" and env.inside("agent", "own-command") == "value 2\n", "for that run alone"
    assert not (project / "left-by-its-build").exists(), "the project itself is not written to"
    assert env.json("verify", "agent")["ok"]


def test_a_project_is_built_again_when_what_describes_it_changed(env, index, project):
    index.add(wheel("needed"))
    first = env.build("agent", "--editable", project)
    assert env.build("agent", "--editable", project)["cached"]
    (project / "src/own_project/new.py").write_text("")
    assert env.build("agent", "--editable", project)["cached"], "its modules don't"
    (project / "setup.cfg").write_text("own-command = own_project:main\nmore-command = own_project:more\n")
    second = env.build("agent", "--editable", project)
    assert not second["cached"] and first["layers"] != second["layers"]
    assert env.inside("agent", "more-command") == "more\n"


def test_a_project_and_requirements_are_resolved_together(env, index, project):
    index.add(wheel("needed", "1.0"), wheel("needed", "2.0"), sources("from-source", requires=["needed<2"]))
    found = env.build("agent", ALLOW, "--editable", project, "--pip", "from-source")
    assert found["installed_packages"] == {"from-source": "1.0", "needed": "1.0"}
    env.python("agent", "import own_project, needed, from_source")


def test_a_project_never_comes_from_an_index(env, index, project):
    """One of its name and version there is not even fetched."""
    index.add(wheel("needed"), wheel("own-project", "0.5", files={"own_project.py": "VALUE = 'index'"}), wheel("own-project", "9.0"))
    env.build("agent", "--editable", project)
    assert env.inside("agent", "own-command") == "value 1\n" and index.asked_for("own-project") == 0


def test_a_projects_build_reaches_nothing(env, index, project):
    index.add(wheel("needed"))
    backend = project / "its_backend.py"
    code = f"""
import socket
for place in ({str(env.home)!r}, {str(env.store)!r}, '/root', {str(project.parent)!r} + '/..'):
    try: found = os.listdir(place)
    except OSError: found = []
    assert not any(name in ('carrel', 'config.yaml', 'layers') for name in found), (place, found)
try:
    socket.create_connection(('127.0.0.1', {index.port}), 2)
    raise SystemError('reached')
except OSError: pass
"""
    backend.write_text(backend.read_text() + code)
    env.build("agent", "--editable", project)


def test_a_project_that_does_not_build_is_named(env, index, project):
    (project / "its_backend.py").write_text("def build_editable(*_): raise ValueError('not today')\n")
    env.fails("agent", "--editable", project, code="failed", says=["not today", str(project)])
    (project / "its_backend.py").write_text("def build_wheel(*_): pass\n")
    env.fails("agent", "--editable", project, code="failed", says=["editable"])


def test_a_directory_without_a_build_backend_is_on_the_path(env, tmp):
    (tmp / "src").mkdir()
    (tmp / "src/plainly.py").write_text("VALUE = 3\n")
    (tmp / "pyproject.toml").write_text("[tool.linter]\nline-length = 100\n")
    env.build("agent", "--editable", tmp)
    assert env.show("agent")["editable_packages"] == {}
    assert env("env", "show", "agent").stdout.endswith(f"editable      {tmp}\n")
    assert env.python("agent", "import plainly; print(plainly.VALUE)") == "3\n"


@pytest.mark.needs_faults
def test_sources_of_all_kinds_in_one_environment(env, index, project):
    """For the sanitised carrel, which runs little else of this file: a question of the backend, a dependency, a project."""
    index.add(wheel("needed"), wheel("asked-tool"), sources("outer", requires=["inner<2"]), *[sources("inner", version=v) for v in ("1.0", "2.0")],
              sdist("asking", hooks=ASKS.format(["asked-tool"])), sdist("broken", code="    raise ValueError\n"))
    found = env.build("agent", ALLOW, "--editable", project, "--pip", "outer", "--pip", "asking", timeout=120)
    assert found["installed_packages"] == {"asking": "1.0", "inner": "1.0", "needed": "1.0", "outer": "1.0"}
    assert env.inside("agent", "own-command") == "value 1\n"
    env.fails("agent", ALLOW, "--pip", "broken", code="failed", package="broken")


# ---- real ones

def test_a_real_source_archive(real):
    found = real.build("docopt", ALLOW, "--pip", "docopt==0.6.2", timeout=300)
    assert found["installed_packages"] == {"docopt": "0.6.2"}
    assert real.python("docopt", "import docopt; print(docopt.docopt('usage: x <a>', ['1']))") == "{'<a>': '1'}\n"


@pytest.mark.parametrize("backend", ["hatchling", "setuptools", "setup.py"])
def test_real_backends_make_editable_projects(real, tmp, backend):
    name = "project_by_" + backend.replace(".", "_")
    (tmp / "src" / name).mkdir(parents=True)
    module = tmp / "src" / name / "__init__.py"
    module.write_text("VALUE = 1\ndef main(): print('value', VALUE)\n")
    if backend == "setup.py":
        (tmp / "setup.py").write_text(f"from setuptools import setup\nsetup(name='{name}', version='0.5', package_dir={{'': 'src'}}, packages=['{name}'], "
                                      f"install_requires=['six'], entry_points={{'console_scripts': ['{name} = {name}:main']}})\n")
    else:
        module_of = {"hatchling": "hatchling.build", "setuptools": "setuptools.build_meta"}[backend]
        (tmp / "pyproject.toml").write_text(f'[build-system]\nrequires = ["{backend}"]\nbuild-backend = "{module_of}"\n[project]\nname = "{name}"\n'
                                            f'version = "0.5"\ndependencies = ["six"]\n[project.scripts]\n{name} = "{name}:main"\n')
    found = real.build(name, "--editable", tmp, timeout=300)
    assert list(found["installed_packages"]) == ["six"]
    assert real.inside(name, name) == "value 1\n"
    module.write_text(module.read_text().replace("VALUE = 1", "VALUE = 2"))
    assert real.inside(name, name) == "value 2\n"
    assert name.replace("_", "-") in real.inside(name, "pip", "list").replace("_", "-")
    assert sorted(os.listdir(tmp)) == sorted(["src", "setup.py" if backend == "setup.py" else "pyproject.toml"])


# ---- code of packages beside nothing

SEARCH = """
import os, socket
needle, found = "-".join(["stolen", "password"]), []     # not a constant that Python folds
for name, value in os.environ.items():
    if needle in value or "://" in value:
        found.append(name)
for top, names, files in os.walk("/"):
    names[:] = [name for name in names if os.path.join(top, name) not in ("/usr", "/sys", "/dev")]
    for file in files:
        try:
            with open(os.path.join(top, file), "rb") as stream:
                if needle.encode() in stream.read(50 << 20):
                    found.append(os.path.join(top, file))
        except OSError:
            pass
try:
    socket.create_connection(("127.0.0.1", 8080), 5)
    found.append("network")
except OSError:
    pass
return "found: " + ", ".join(sorted(found))
"""


@pytest.mark.parametrize("how", ["configuration", "netrc"])
def test_code_that_builds_finds_neither_the_login_of_the_index_nor_a_network(env, index, tmp_path, how):
    index.add(sources("searcher", code=SEARCH, build_requires=["helper"]), wheel("helper"))
    index.wants("me", "stolen-password")
    if how == "configuration":
        url = index.url.replace("http://", "http://me:stolen-password@")
    else:
        url = index.url
        (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password stolen-password\n")
        env.env["NETRC"] = str(tmp_path / "netrc")
    found = env.build("agent", ALLOW, "--index", url, "--pip", "searcher")
    assert env.python("agent", "import searcher; print(searcher.FOUND)") == "found: \n"
    assert subprocess.run(["grep", "-rlF", "stolen-password", env.store], capture_output=True, text=True).stdout == ""
    assert found["installed_packages"] == {"searcher": "1.0"}
