"""`carrel env` without a single package: its command lines, its errors, and a store with nothing in it."""
import json
import os
import re
import shutil

import pytest
from harness import IS_ROOT, one_line

COMMANDS = ["build", "ls", "show", "verify", "registries", "rm", "prune", "warm", "metrics", "export", "import", "wheels"]
BAD_NAMES = ["a/b", "..", ".", ".hidden", "", "a" * 101, "a b", b"\xff\xfe", "a\nb", "ä", "a;b", "$HOME"]


def env(carrel, *args, **how):
    return carrel("env", *args, **how)


def error(done):
    """The error of -o json: one value on stdout, nothing on stderr, exit code 125."""
    assert (done.returncode, done.stderr) == (125, "")
    value = json.loads(done.stdout)
    assert list(value) == ["error"] and list(value["error"]) == ["code", "message", "hint", "package"]
    return value["error"]


def test_alone_it_lists_its_commands(carrel):
    done = env(carrel)
    assert (done.returncode, done.stdout) == (125, "")
    assert re.findall(r"^  (\w+)  ", done.stderr, re.M) == COMMANDS
    for asked in (env(carrel, "--help"), carrel("help", "env")):
        assert (asked.returncode, asked.stderr, asked.stdout) == (0, "", done.stderr)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_helps(carrel, command):
    done = env(carrel, command, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: carrel env {command}")
    assert max(map(len, done.stdout.splitlines())) <= 100
    assert env(carrel, command, "-h").stdout == done.stdout
    assert carrel("help", "env", command).stdout == done.stdout


def test_help_makes_no_home(carrel):
    env(carrel, "build", "--help")
    env(carrel, "nonsense")
    assert not os.path.exists(carrel.env["CARREL_HOME"])


@pytest.mark.parametrize("args, named", [
    (["nonsense"], "'env nonsense'"), (["--nonsense"], "'env --nonsense'"), (["ls", "--nonsense"], "--nonsense"),
    (["ls", "operand"], "'operand'"), (["show"], "env show"), (["show", "a", "b"], "'b'"), (["rm"], "env rm"),
    (["prune", "x"], "'x'"), (["metrics", "x"], "'x'"), (["metrics", "-o", "json"], "-o"), (["build"], "env build"),
    (["build", "a", "b"], "'b'"), (["build", "a", "-r"], "-r"), (["build", "a", "-r", ""], "--requirements"),
    (["build", "a", "--pip", ""], "--pip"), (["build", "a", "-c", ""], "--constraint"),
    (["build", "a", "--python", ""], "--python"), (["build", "a", "--index="], "--index"),
    (["build", "a", "--timeout", "soon"], "--timeout"), (["build", "a", "--timeout", "0"], "--timeout"),
    (["build", "a", "-o", "yaml"], "--format"), (["build", "a", "--rebuild=1"], "--rebuild"),
    (["build", "a", "--editable", "/nonexistent"], "/nonexistent"), (["build", "a", "--editable", "/etc/passwd"], "passwd"),
    (["build", "--pip", "requests"], "env build needs a NAME"), (["rm"], "env rm needs a NAME"),
    (["build", "a", "-r", "f", "-r", "g"], "/f"), (["build", "a", "--pip", "six", "--extra", "x"], "pyproject.toml"),
    (["warm"], "env warm needs a FILE"), (["warm", "f", "--pip", "x"], "--pip"), (["warm", "f", "--events", "-o", "json"], "--events"),
])
def test_a_wrong_command_line_is_one_line_that_names_it(carrel, args, named):
    done = env(carrel, *args)
    if "json" in args:
        assert named in error(done)["message"]
        return
    assert (done.returncode, done.stdout) == (125, "")
    one_line(done.stderr, named)


def test_errors_are_json_when_json_is_asked_for_before_or_after(carrel):
    for args in (["show", "x", "-o", "json"], ["show", "-ojson", "x"], ["show", "--format=json", "x"]):
        assert error(env(carrel, *args))["code"] == "not_found"
    assert error(env(carrel, "show", "--nonsense", "-o", "json"))["code"] == "invalid"
    assert error(env(carrel, "nonsense", "-o", "json"))["code"] == "invalid"


@pytest.mark.parametrize("name", BAD_NAMES)
@pytest.mark.parametrize("command", ["build", "show", "rm"])
def test_a_bad_name_is_refused(carrel, command, name):
    if command != "build" and name == "a" * 101:
        name = "a" * 161
    done = env(carrel, command, "--", name)
    assert (done.returncode, done.stdout) == (125, "")
    hint = one_line(done.stderr, "invalid name")
    assert "letters, digits" in hint
    assert error(env(carrel, command, "-o", "json", "--", name))["code"] == "invalid"
    assert not os.path.exists(os.path.join(carrel.env["CARREL_HOME"], "envs", "a"))


def test_an_empty_store_lists_nothing(carrel):
    done = env(carrel, "ls")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["NAME", "VERSION", "PACKAGES", "SIZE", "CREATED", "LAST-USED", "USES"]
    done = env(carrel, "ls", "-o", "json")
    assert (done.returncode, done.stderr, json.loads(done.stdout)) == (0, "", [])


def test_an_empty_store_has_nothing_to_show_or_remove(carrel):
    for command in ("show", "rm"):
        done = env(carrel, command, "agent_1234567")
        assert (done.returncode, done.stdout) == (125, "")
        one_line(done.stderr, "agent_1234567")
        assert error(env(carrel, command, "agent_1234567", "-o", "json"))["code"] == "not_found"
    assert "carrel env build" in env(carrel, "show", "agent").stderr
    assert env(carrel, "show", "--log", "agent").returncode == 125


def test_an_empty_store_is_pruned_to_nothing(carrel):
    done = env(carrel, "prune", "-o", "json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == {"removed": [], "layers_removed": 0, "bytes_freed": 0}
    done = env(carrel, "prune", "--dry-run", "-o", "json")
    assert json.loads(done.stdout) == {"removed": [], "layers_removed": 0, "bytes_freed": 0, "dry_run": True}
    done = env(carrel, "prune", "--all")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "carrel: removed 0 environments, 0 layers, 0\n")


def samples(text):
    """Prometheus text, read strictly: every sample after its HELP and TYPE, once."""
    kinds, found = {}, {}
    for line in text.splitlines():
        if line.startswith("#"):
            word, name, rest = line[2:].split(" ", 2)
            assert word in ("HELP", "TYPE") and rest
            if word == "TYPE":
                assert name not in kinds and rest in ("gauge", "histogram")
                kinds[name] = rest
            continue
        name, labels, value = re.fullmatch(r'([a-z_]+)(\{le="[^"]+"\})? (\d+(?:\.\d+)?)', line).groups()
        family = re.sub("_(bucket|sum|count)$", "", name) if name not in kinds else name
        assert kinds[family] == ("histogram" if family != name else "gauge")
        assert (name, labels) not in found
        found[name, labels] = float(value)
    assert text.endswith("\n")
    return found


def test_metrics_of_an_empty_store_are_all_there(carrel):
    done = env(carrel, "metrics")
    assert (done.returncode, done.stderr) == (0, "")
    found = samples(done.stdout)
    assert found["par_venv_count", None] == 0 and found["par_venv_cache_size_bytes", None] == 0
    buckets = [labels for name, labels in found if name == "par_venv_build_duration_seconds_bucket"]
    assert buckets == ['{le="%s"}' % bound for bound in ("1", "5", "10", "30", "60", "120", "300", "+Inf")]
    assert found["par_venv_build_duration_seconds_count", None] == 0


def owned(carrel, text, *path):
    """A file of the home's, which its owner can read."""
    file = os.path.join(carrel.env["CARREL_HOME"], *path)
    with open(file, "w") as out:
        out.write(text)
    os.chown(file, os.stat(carrel.env["CARREL_HOME"]).st_uid, os.stat(carrel.env["CARREL_HOME"]).st_gid)


def test_a_wrong_configuration_names_line_and_key(carrel):
    env(carrel, "ls")
    owned(carrel, "environments:\n  max_envs: 3\n  eviction: random\n", "config.yaml")
    done = env(carrel, "ls")
    assert (done.returncode, done.stdout) == (125, "")
    one_line(done.stderr, "config.yaml", "line 3", "eviction")


def test_what_cant_be_read_is_listed_and_can_be_removed(carrel):
    env(carrel, "ls")
    broken = os.path.join(carrel.env["CARREL_HOME"], "envs", "broken_1")
    os.mkdir(broken)
    os.chown(broken, os.stat(carrel.env["CARREL_HOME"]).st_uid, os.stat(carrel.env["CARREL_HOME"]).st_gid)
    owned(carrel, "{", "envs", "broken_1", "meta.json")
    done = env(carrel, "ls")
    assert done.returncode == 0 and done.stdout.splitlines()[1].split()[0] == "broken_1"
    assert done.stderr.startswith("carrel: warning: ") and "broken_1" in done.stderr
    row, = json.loads(env(carrel, "ls", "-o", "json").stdout)
    assert (row["name"], row["state"], row["in_use"], row["path"]) == ("broken_1", "corrupt", False, broken)
    assert set(row) >= {"package_id", "requirements_sha256", "created_at", "last_used_at", "use_count", "size_bytes",
                        "python_version", "python", "installed_packages", "layers", "editables", "indexes", "build_seconds"}
    one_line(env(carrel, "show", "broken_1").stderr, "broken_1")
    done = env(carrel, "rm", "broken_1", "-o", "json")
    assert (done.returncode, json.loads(done.stdout)) == (0, {"removed": ["broken_1"]})
    assert not os.path.exists(broken)


def broken(carrel, *names):
    """Environments that can't be read, made without a build."""
    env(carrel, "ls")
    home = os.stat(carrel.env["CARREL_HOME"])
    for name in names:
        path = os.path.join(carrel.env["CARREL_HOME"], "envs", name)
        os.mkdir(path)
        os.chown(path, home.st_uid, home.st_gid)
        owned(carrel, "{", "envs", name, "meta.json")


def test_a_name_that_is_nearly_one_is_told(carrel):
    broken(carrel, *(f"env{x}_{x}234567" for x in "abcdefg"), "my_agent_efdcd0a")
    for args in (["env", "show", "my_agnt"], ["run", "--env", "my_agnt", "--", "true"]):
        assert one_line(carrel(*args).stderr, "'my_agnt'") == "did you mean my_agent?"
    assert one_line(env(carrel, "show", "my_agent_efdcd0b").stderr) == "did you mean my_agent_efdcd0a?"
    names = ", ".join(f"env{x}_{x}234567" for x in "abcde")
    assert one_line(env(carrel, "show", "something").stderr) == f"there are {names} and 3 more: carrel env ls"


@pytest.mark.parametrize("args, hint", [
    (["warm", "missing.txt"], "env warm takes requirements files"), (["build", "a", "--pip", "requests rich"], "repeat --pip"),
    (["build", "a", "--python", "3.6"], "a later version"), (["build", "a", "--python", "2.7.18"], "a later version"),
])
def test_a_hint_says_what_to_do(carrel, args, hint):
    done = env(carrel, *args)
    assert (done.returncode, done.stdout) == (125, "")
    assert hint in one_line(done.stderr, *(["is too old: 3.8 is the minimum"] if "--python" in args else [args[-1]]))


def test_the_list_of_pythons_ends_with_a_whole_one(carrel):
    """Many of them, made up: they are known by their names."""
    for number in range(50, 70):
        path = os.path.join(carrel.env["HOME"], f"pyenv/versions/3.{number}.1/bin/python3.{number}")
        os.makedirs(os.path.dirname(path))
        shutil.copy("/bin/true", path)
    hint = one_line(env(carrel, "build", "a", "--python", "3.99", env={"PYENV_ROOT": carrel.env["HOME"] + "/pyenv"}).stderr, "3.99")
    assert re.fullmatch(r"found: 3\.[\d.]+ \(/[^ ]+\)(, 3\.[\d.]+ \(/[^ ]+\))*, and \d+ more", hint), hint


@pytest.mark.needs_root
def test_a_configuration_that_the_owner_cant_read(carrel):
    env(carrel, "ls")
    owned(carrel, "", "config.yaml")
    file = os.path.join(carrel.env["CARREL_HOME"], "config.yaml")
    os.chown(file, 0, 0)
    os.chmod(file, 0o600)
    assert f"chown root:{os.stat(carrel.env['CARREL_HOME']).st_gid} " in one_line(env(carrel, "ls").stderr, "config.yaml")


def test_rm_goes_on_after_one_that_cant_be_removed(carrel):
    broken(carrel, "a_1", "b_1", "c_1", "d_1")
    done = env(carrel, "rm", "a_1", "nobody_1", "b_1", "a_1")
    assert (done.returncode, done.stdout) == (125, "removed a_1\nremoved b_1\n")
    one_line(done.stderr, "'nobody_1'")
    done = env(carrel, "rm", "nobody_1", "c_1", "-o", "json")
    found = json.loads(done.stdout)
    assert (done.returncode, done.stderr, list(found), found["removed"]) == (125, "", ["removed", "failed"], ["c_1"])
    failed, = found["failed"]
    assert (failed["name"], failed["error"]["code"]) == ("nobody_1", "not_found")
    done = env(carrel, "rm", "d_1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "removed d_1\n", "")


def test_a_full_disk_behind_stdout_is_an_error(carrel):
    with open("/dev/full", "w") as full:
        for args in (["ls"], ["ls", "-o", "json"], ["metrics"], ["prune", "-o", "json"], ["--help"]):
            done = env(carrel, *args, stdout=full)
            assert done.returncode == 125, args
            one_line(done.stderr.splitlines()[-1], "standard output")


@pytest.mark.needs_plain_user
def test_a_home_of_somebody_else_is_refused(carrel):
    done = env(carrel, "ls", env={"CARREL_HOME": "/var/lib/carrel-of-nobody"})
    assert (done.returncode, done.stdout) == (125, "")
    one_line(done.stderr, "/var/lib/carrel-of-nobody")


@pytest.mark.parametrize("home", ["relative", "/etc/passwd"])
def test_a_home_that_is_none_is_named(carrel, home):
    done = env(carrel, "ls", env={"CARREL_HOME": home})
    assert (done.returncode, done.stdout) == (125, "")
    one_line(done.stderr, home)


def test_without_its_builder_nothing_is_verified(carrel, tmp):
    """carrel-build is looked for beside carrel and on PATH."""
    alone = tmp / "carrel"
    shutil.copy(carrel.path, alone)
    carrel.path = str(alone)
    done = env(carrel, "verify", env={"PATH": str(tmp)})
    assert (done.returncode, done.stdout) == (125, "")
    assert "directory of carrel" in one_line(done.stderr, "carrel-build")
    assert error(env(carrel, "verify", "-o", "json", env={"PATH": str(tmp)}))["code"] == "unavailable"
    one_line(env(carrel, "verify", "--nonsense", env={"PATH": str(tmp)}).stderr, "--nonsense")


def test_the_home_belongs_to_its_owner(carrel):
    env(carrel, "ls")
    home = os.stat(carrel.env["CARREL_HOME"])
    assert (home.st_uid == 0) is False if IS_ROOT else home.st_uid == os.getuid()
    for name in ("envs", "layers"):
        there = os.stat(os.path.join(carrel.env["CARREL_HOME"], name))
        assert (there.st_uid, there.st_mode & 0o7777) == (home.st_uid, 0o700)
