"""An environment behaves as a virtualenv does."""
import re
import stat
import subprocess
import textwrap

import pytest
from wheels import Raw, wheel


def lines(text):
    return text.strip().splitlines()


def test_the_prefix_is_env(env):
    name = env.build("agent")["name"]
    out = env.python(name, "import sys, os, shutil; print(sys.prefix, sys.exec_prefix, sys.executable, sys.prefix != sys.base_prefix,"
                           " os.environ['VIRTUAL_ENV'], shutil.which('python3'), os.environ['PATH'].split(':')[0])")
    assert out == "/env /env /env/bin/python True /env /env/bin/python3 /env/bin\n"
    for python in ("python3", "/env/bin/python", "/env/bin/python3"):
        assert env.inside(name, python, "-c", "import sys; print(sys.prefix)") == "/env\n"


@pytest.mark.once
def test_sysconfig_is_that_of_a_virtualenv(env):
    name = env.build("agent")["name"]
    script = "import sysconfig, site; p = sysconfig.get_paths(); print(p['purelib'], p['platlib'], p['scripts'], p['data'], site.getsitepackages())"
    minor = subprocess.run(["/usr/bin/python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
                           capture_output=True, text=True).stdout.strip()
    site = f"/env/lib/python{minor}/site-packages"
    assert env.python(name, script).startswith(f"{site} {site} /env/bin /env ['{site}'")


@pytest.mark.once
def test_pyvenv_cfg_says_so(env):
    text = env.inside(env.build("agent")["name"], "cat", "/env/pyvenv.cfg")
    values = {key.strip(): value.strip() for key, value in (line.split("=", 1) for line in lines(text))}
    assert values["home"] == "/usr/bin" and values["include-system-site-packages"] == "false"


@pytest.mark.once
def test_pip_lists_what_is_there(env, index):
    index.add(wheel("listed", "1.2"), wheel("also-listed", requires=["listed"]))
    name = env.build("agent", "--pip", "also-listed")["name"]
    listed = env.inside(name, "pip", "list", "--format=freeze", "--disable-pip-version-check")
    assert {"listed==1.2", "also-listed==1.0"} <= set(lines(listed))
    assert "No broken requirements" in env.inside(name, "python", "-m", "pip", "check")
    shown = env.inside(name, "pip", "show", "-f", "listed")
    assert "Location: /env/lib/python" in shown and "listed.py" in shown and "Required-by: also-listed" in shown


def test_pip_installs_and_uninstalls_on_top(env, index, tmp):
    index.add(wheel("below", "1.0", scripts={"below-tool": "below:main"}, files={"below.py": "VERSION = '1.0'\ndef main(): print('old')\n"}))
    name = env.build("agent", "--pip", "below")["name"]
    extra = wheel("extra", "0.1", scripts={"extra-tool": "extra:main"}, files={"extra.py": "def main(): print('extra')\n"}).save(tmp)
    newer = wheel("below", "2.0", files={"below.py": "VERSION = '2.0'\n"}).save(tmp)
    out = env.inside(name, "sh", "-ec", f"""
        pip install -q --no-index --disable-pip-version-check /wheels/{extra.name}
        extra-tool
        pip install -q --no-index --disable-pip-version-check --upgrade /wheels/{newer.name}
        python -c 'import below; print(below.VERSION)'
        test ! -e /env/bin/below-tool
        pip uninstall -q -y below
        python -c 'import below' 2>/dev/null || echo gone
        pip list --format=freeze --disable-pip-version-check | grep below || echo unlisted
        pip install -q --no-index --disable-pip-version-check /wheels/{newer.name}
        python -c 'import below; print(below.VERSION)'
        """, options=["-v", f"{tmp}:/wheels:ro"], timeout=120)
    assert lines(out) == ["extra", "2.0", "gone", "unlisted", "2.0"]
    assert env.python(name, "import below; print(below.VERSION)") == "1.0\n", "the next sandbox has what was built"
    env.inside(name, "sh", "-c", "test -e /env/bin/below-tool && test ! -e /env/bin/extra-tool")


@pytest.mark.once
def test_every_file_of_a_package_is_in_its_record(env, index):
    """pip uninstall leaves nothing: RECORD lists generated scripts, INSTALLER and bytecode too, or pip finds it."""
    index.add(wheel("recorded", scripts={"recorded-tool": "recorded:main"}, files={"recorded/__init__.py": "def main(): pass\n"},
                    data={"data/share/recorded/x.txt": "x"}))
    name = env.build("agent", "--pip", "recorded")["name"]
    out = env.inside(name, "sh", "-ec", "find /env | grep -i recorded | sort; pip uninstall -q -y recorded; echo --; find /env | grep -i recorded || true")
    before, after = out.split("--\n")
    assert "/env/bin/recorded-tool" in before and "/env/share/recorded/x.txt" in before and ".pyc" in before
    assert after == ""


def test_entry_point_scripts_run(env, index):
    index.add(wheel("tool", scripts={"hello-tool": "tool:main"}, data={"scripts/old-style": "#!python\nimport sys; print(sys.prefix)\n"},
                    files={"tool.py": "import sys\ndef main():\n    print('hello', *sys.argv[1:])\n    return 3\n"}))
    name = env.build("agent", "--pip", "tool")["name"]
    assert env.inside(name, "hello-tool", "a", "b", code=3) == "hello a b\n"
    assert env.inside(name, "old-style") == "/env\n"
    for script in ("hello-tool", "old-style"):
        first = lines(env.inside(name, "head", "-n1", f"/env/bin/{script}"))[0]
        assert first.startswith("#!/env/bin/python"), first


@pytest.mark.once
def test_a_namespace_package_may_be_split_over_wheels(env, index):
    index.add(wheel("space-a", files={"space/a/__init__.py": "NAME = 'a'\n", "space/only_a.txt": "a"}),
              wheel("space-b", files={"space/b/__init__.py": "NAME = 'b'\n"}))
    name = env.build("agent", "--pip", "space-a", "--pip", "space-b")["name"]
    assert env.python(name, "import space.a, space.b; print(space.a.NAME, space.b.NAME, len(space.__path__))") == "a b 1\n"


@pytest.mark.once
def test_a_pkgutil_namespace_may_be_split_over_wheels_with_one_file(env, index):
    """The old style: both wheels bring the same __init__.py."""
    init = "__path__ = __import__('pkgutil').extend_path(__path__, __name__)\n"
    index.add(wheel("old-a", files={"old/__init__.py": init, "old/a.py": "N = 'a'\n"}),
              wheel("old-b", files={"old/__init__.py": init, "old/b.py": "N = 'b'\n"}))
    name = env.build("agent", "--pip", "old-a", "--pip", "old-b")["name"]
    assert env.python(name, "import old.a, old.b; print(old.a.N, old.b.N)") == "a b\n"


@pytest.mark.once
def test_data_files_are_where_they_belong(env, index):
    index.add(wheel("with-data", data={"data/share/with-data/page.html": "<p>", "data/etc/with-data.conf": "x=1",
                                       "headers/with_data.h": "#define X\n", "purelib/with_data_pure.py": "P = 1\n"},
                    files={"with_data/__init__.py": "", "with_data/table.csv": "1,2\n"}))
    name = env.build("agent", "--pip", "with-data")["name"]
    out = env.inside(name, "sh", "-c", "cat /env/share/with-data/page.html /env/etc/with-data.conf; find /env -name with_data.h")
    assert out.startswith("<p>x=1/env/include/")
    script = "import importlib.resources as r, with_data, with_data_pure; print(r.files(with_data).joinpath('table.csv').read_text(), end='')"
    assert env.python(name, script) == "1,2\n"


@pytest.mark.once
def test_empty_directories_of_wheels_are_kept(env, index):
    """As uv keeps them: at the top, in a package's own directory, and in one that two packages share."""
    def empty(path):
        return Raw(path + "/", b"", stat.S_IFDIR | 0o755, is_recorded=False)
    index.add(wheel("empties", files={"empties/__init__.py": "", "shared_space/a.py": ""},
                    members=[empty("empties_top"), empty("empties_top/below"), empty("empties/inner"), empty("shared_space/empty")]),
              wheel("others", files={"shared_space/b.py": ""}))
    name = env.build("agent", "--pip", "empties", "--pip", "others")["name"]
    found = env.inside(name, "sh", "-c", "cd /env/lib/python3*/site-packages && find . -type d -empty | sort")
    assert found.split() == ["./empties/inner", "./empties_top/below", "./shared_space/empty"]
    assert env("env", "verify", name).returncode == 0


def test_bytecode_is_there_and_used(env, index):
    index.add(wheel("compiled", files={"compiled/__init__.py": "import sys\nCACHED = __cached__\n", "compiled/sub.py": "X = 1\n"}))
    name = env.build("agent", "--pip", "compiled")["name"]
    verbose = env.run("--env", name, "--", "python", "-v", "-c", "import compiled.sub").stderr
    for module in ("__init__", "sub"):
        assert re.search(rf"compiled/__pycache__/{module}\.cpython-\d+\.pyc matches", verbose), verbose
    assert "# wrote" not in verbose
    # An edited source is not shadowed by it: bytecode is checked against the source.
    out = env.inside(name, "sh", "-c", "f=$(python -c 'import compiled.sub as s; print(s.__file__)'); echo 'X = 2' > $f; python -c 'import compiled.sub as s; print(s.X)'")
    assert out == "2\n"


@pytest.mark.once
def test_system_site_packages_when_asked(env):
    """python3-pytest is a package of the host's Python: the tests run by it."""
    plain, asked = env.build("plain")["name"], env.build("asked", "--system-site-packages")["name"]
    assert "No module named" in env.run("--env", plain, "--", "python", "-c", "import pytest").stderr
    assert env.python(asked, "import pytest, sys; print(sys.prefix)") == "/env\n"
    assert "include-system-site-packages = true" in env.inside(asked, "cat", "/env/pyvenv.cfg")


@pytest.mark.once
def test_the_flag_makes_another_environment(env):
    """Asked for with and without the flag under one name: the second isn't the first one's reuse."""
    env.build("agent")
    found = env.build("agent", "--system-site-packages")
    assert not found["cached"]
    env.python("agent", "import pytest")


def make_project(directory):
    """One that names no build system (test_env_sources.py has those that do): its src/ is what is imported."""
    package = directory / "src/project_pkg"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("VALUE = 1\n")
    (directory / "pyproject.toml").write_text(textwrap.dedent("""
        [tool.some-linter]
        line-length = 120
        """))
    return package / "__init__.py"


def test_an_editable_project_is_seen_as_it_is_now(env, index, tmp):
    index.add(wheel("needed"))
    module = make_project(tmp)
    found = env.build("agent", "--editable", tmp, "--pip", "needed")
    assert found["editables"] == [str(tmp)]
    show = "import project_pkg, needed; print(project_pkg.VALUE, project_pkg.__file__)"
    assert env.python("agent", show) == f"1 {module}\n"
    module.write_text("VALUE = 2\n")
    assert env.python("agent", show) == f"2 {module}\n", "edits are seen at once"
    (module.parent / "new.py").write_text("NEW = True\n")
    assert env.python("agent", "import project_pkg.new as n; print(n.NEW)") == "True\n"


def test_a_sandbox_does_not_write_to_an_editable_project(env, tmp):
    """What is outside the workspace is read-only; the agent works in --dir."""
    module = make_project(tmp)
    env.build("agent", "--editable", tmp)
    env.run("--env", "agent", "--", "sh", "-c", f"echo 'VALUE = 9' > {module}; rm -rf {tmp}/src")
    assert module.read_text() == "VALUE = 1\n"


@pytest.mark.once
def test_an_editable_path_that_is_none_is_named(env, tmp):
    missing = tmp / "nowhere"
    done = env.try_build("agent", "--editable", missing)
    assert done.returncode == 125 and str(missing) in done.stderr


def test_bin_python_runs_python_in_the_environment(env, index):
    """For programs that want a path: the seed's subprocess.run([venv_path / "bin" / "python", ...])."""
    index.add(wheel("by-path", "4.2"))
    found = env.build("agent", "--pip", "by-path")
    python = f"{found['path']}/bin/python"
    how = {"capture_output": True, "text": True, "env": env.env, "timeout": 120}
    done = subprocess.run([python, "-c", "import sys, by_path; print(by_path.VERSION, sys.prefix, sys.argv[1:])", "a b", "$c", "'"], **how)
    assert (done.stdout, done.returncode) == ("4.2 /env ['a b', '$c', \"'\"]\n", 0), done.stderr
    assert subprocess.run([python, "-c", "raise SystemExit(7)"], **how).returncode == 7
    assert subprocess.run([python, "-"], input="print(6 * 7)", **how).stdout == "42\n"
    assert subprocess.run([python, "-c", "open('/etc/shadow')"], **how).returncode == 1, "and that in a sandbox"


@pytest.mark.once
@pytest.mark.parametrize("tool", ["-m venv --without-pip /tmp/inner", "-m site", "-m sysconfig"])
def test_standard_tools_work(env, tool):
    name = env.build("agent")["name"]
    env.inside(name, "python", *tool.split(), timeout=120)
