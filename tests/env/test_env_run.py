"""Environments from `carrel run`: --env, -r, --pip, --python."""
import hashlib
import json

import pytest
from envs import other_pythons
from harness import IS_ROOT, one_line
from wheels import wheel


@pytest.fixture
def run(env, index):
    """`carrel run` takes its index from the configuration."""
    env.configure(f"environments:\n  index: {index.url}\n")
    return env


def test_requirements_of_a_run(run, index, tmp):
    index.add(wheel("run-dep", "1.4"))
    file = run.requirements("run-dep\n")
    for attempt in range(2):
        done = run.run("-r", file, "--", "python", "-c", "import run_dep; print(run_dep.VERSION)", timeout=180)
        assert (done.returncode, done.stdout, done.stderr) == (0, "1.4\n", ""), "what is printed is the command's"
    assert "run_" + hashlib.sha256(b"run-dep\n").hexdigest()[:7] in run.names()
    assert index.asked_for("run-dep") == 1


def test_specs_of_a_run(run, index):
    index.add(wheel("run-a"), wheel("run-b", "2.0"))
    done = run.run("--pip", "run-b<3", "--pip", "run-a", "--", "python", "-c", "import run_a, run_b; print(run_b.VERSION)", timeout=180)
    assert (done.returncode, done.stdout) == (0, "2.0\n"), done.stderr
    assert "run_" + hashlib.sha256(b"run-a\nrun-b<3").hexdigest()[:7] in run.names()


def test_a_run_by_name_and_by_package_id(run, index, tmp):
    index.add(wheel("named"))
    name = run.build("agent@1", "--pip", "named")["name"]
    (tmp / "here.txt").write_text("file of the workspace\n")
    for which in (name, "agent@1"):
        done = run.run("--env", which, "--dir", tmp, "--", "python", "-c", "import named; print(open('here.txt').read(), end='')")
        assert done.stdout == "file of the workspace\n", done.stderr
    assert sorted(path.name for path in tmp.iterdir()) == ["here.txt"], "nothing is made in the user's directory"


def test_the_result_of_a_run_in_json(run, index):
    index.add(wheel("in-json"))
    run.build("agent", "--pip", "in-json")
    result = run.run_json("--env", "agent", "--", "python", "-c", "import in_json; raise SystemExit(3)")
    assert (result["exit_code"], result["reason"]) == (3, "exited")


def test_a_run_whose_build_fails(run, index):
    done = run.run("-o", "json", "--pip", "no-such", "--", "true", timeout=180)
    assert done.returncode == 125
    error = json.loads(done.stdout)["error"]
    assert (error["code"], error["package"]) == ("not_found", "no-such")
    done = run.run("--pip", "no-such", "--", "true", timeout=180)
    assert (done.returncode, done.stdout) == (125, "")
    one_line(done.stderr, "no-such")


def test_stdin_and_limits_are_those_of_a_run(run, index):
    index.add(wheel("limited"))
    run.build("agent", "--pip", "limited")
    done = run.run("-i", "--env", "agent", "--memory", "256M", "--timeout", "600s", "--", "python", "-c", "import sys; print(sys.stdin.read())", input="in")
    assert done.stdout == "in\n", done.stderr
    done = run.run("--env", "agent", "--timeout", "500ms", "--", "python", "-c", "import time; time.sleep(60)")
    assert done.returncode == 124


def test_what_is_written_to_env_counts_and_is_thrown_away(run):
    """The upper is a tmpfs: of a size."""
    run.build("agent")
    done = run.run("--env", "agent", "--memory", "512M", "--disk", "32M", "--", "sh", "-c", "head -c 1G /dev/zero > /env/big; ls -s /env/big")
    assert done.returncode != 0 or int(done.stdout.split()[0]) < 600_000
    assert run.inside("agent", "sh", "-c", "ls /env/big 2>/dev/null || echo gone") == "gone\n"


@pytest.mark.parametrize("args", [["--env", "a", "-r", "x"], ["--env", "a", "--pip", "x"], ["-r", "x", "--pip", "y"]])
def test_ways_to_name_an_environment_exclude_each_other(run, args):
    run.build("a")
    run.requirements("x\n", "x")
    done = run.run(*args, "--", "true", cwd=run.home)
    assert (done.returncode, done.stdout) == (125, "")
    one_line(done.stderr)


def test_the_plan_shows_the_environment(run, index):
    index.add(wheel("planned"))
    run.build("agent", "--pip", "planned")
    done = run.run("--env", "agent", "--plan", "--", "python")
    assert done.returncode == 0 and "/env" in done.stdout, done.stderr


def test_a_python_of_this_version(run):
    minor = ".".join(run.build("a")["python_version"].split(".")[:2])
    done = run.run("--python", minor, "--", "python", "-c", "import sys; print('%d.%d' % sys.version_info[:2], sys.prefix)", timeout=180)
    assert done.stdout == f"{minor} /env\n", done.stderr


def test_a_python_that_is_not_there(run):
    done = run.run("--python", "3.99", "--", "true")
    assert (done.returncode, done.stdout) == (125, "")
    assert "3." in one_line(done.stderr, "3.99")


@pytest.mark.skipif(not other_pythons(), reason="no other Python than /usr/bin/python3 that this user may run")
def test_another_python_is_in_the_name(real):
    """From the real index: this Python's own pip has to be fetched."""
    minor, path = sorted(other_pythons().items())[-1]
    found = real.build("other", "--python", path, timeout=120)
    assert found["name"] == f"other_no-deps-py{minor}" and found["python_version"].startswith(minor + ".")
    assert found["python"] == str(path.resolve())
    out = real.python(found["name"], "import sys, ssl, sqlite3; print('%d.%d' % sys.version_info[:2], sys.prefix)")
    assert out == f"{minor} /env\n"
    # Nothing beside its prefix is visible.
    if IS_ROOT and str(path).startswith("/root/.pyenv/versions/"):
        out = real.inside(found["name"], "sh", "-c", "ls -A /root /root/.pyenv /root/.pyenv/versions")
        assert out.split() == ["/root:", ".pyenv", "/root/.pyenv:", "versions", "/root/.pyenv/versions:", path.parts[4]]


@pytest.mark.needs_root
@pytest.mark.skipif(not any("/.pyenv/" in str(path) for path in other_pythons().values()), reason="no pyenv here")
def test_a_python_of_pyenv_is_found_by_version(real):
    minor, path = next((minor, path) for minor, path in sorted(other_pythons().items(), reverse=True) if "/.pyenv/" in str(path))
    root = str(path).split("/versions/")[0]
    found = real.build("by-version", "--python", minor, timeout=120, env={"PYENV_ROOT": root})
    assert found["python_version"].startswith(minor + ".")


def test_a_command_that_is_not_there_was_looked_for_in_the_environment(env):
    done = env.run("--env", "template", "--", "mytool")
    assert done.returncode == 127 and "/env/bin, /usr/local/bin" in one_line(done.stderr, "mytool")
    assert "/env/bin" not in env.run("--", "mytool").stderr
