"""Attacks on the store itself: what one package, index or neighbour does must not reach what others get from it."""
# security: packages
import hashlib
import os
import pathlib
import re
import shutil
import subprocess

import pytest
from index_server import Index
from wheels import Raw, sdist, wheel

HONEST = "VALUE = 'honest'\n"
EVIL = "VALUE = 'poisoned'\n"


def victim():
    return wheel("victim", files={"victim/__init__.py": "", "victim/m.py": HONEST})


def bytecode(source_size):
    """Of EVIL, by the default Python, as if it were of a source of that size."""
    script = f"import importlib.util, marshal; print((importlib.util.MAGIC_NUMBER + bytes(8) + ({source_size}).to_bytes(4, 'little') + " \
             f"marshal.dumps(compile({EVIL!r}, 'x', 'exec'))).hex())"
    return bytes.fromhex(subprocess.run(["/usr/bin/python3", "-c", script], capture_output=True, text=True, check=True).stdout)


def cache_tag():
    return subprocess.run(["/usr/bin/python3", "-c", "import sys; print(sys.implementation.cache_tag)"], capture_output=True, text=True,
                          check=True).stdout.strip()


def value(env, name, *flags):
    return env.inside(name, "python", *flags, "-c", "import victim.m; print(victim.m.VALUE)")


@pytest.mark.once
def test_bytecode_for_another_packages_source_is_not_used(env, index):
    """Neither of the kind that is compiled here nor of a kind that isn't (-O): it would be published as the victim's, for
    every environment that has it. Two wheels, so that the directory belongs to neither; one stops the compiler."""
    tag, evil = cache_tag(), bytecode(len(HONEST))
    index.add(victim(),
              wheel("one", files={"one.py": "x = " + "-" * 3_000_000 + "1\n", f"victim/__pycache__/m.{tag}.opt-1.pyc": evil,
                                  f"victim/__pycache__/m.{tag}.pyc": evil}),
              wheel("two", files={"two.py": "", f"victim/__pycache__/m.{tag}.opt-2.pyc": evil}))
    env.build("poisoner", "--pip", "victim", "--pip", "one", "--pip", "two")
    env.build("other", "--pip", "victim")
    for flags in ([], ["-O"], ["-OO"]):
        assert value(env, "other", *flags) == "honest\n", flags


@pytest.mark.once
def test_a_wheel_does_not_write_anothers_record(env, index):
    """By RECORD files each layer gets its content. One wheel brings the file, another the RECORDs that give it to the victim."""
    def listed(name, *paths):
        info = [f"{name}-1.0.dist-info/{one}" for one in ("METADATA", "WHEEL", "INSTALLER", "REQUESTED")]
        return "".join(f"{path},,\n" for path in [*paths, *info])
    late = {f"late/{number}.txt": "" for number in range(1500)}     # so that it is the last to be installed
    index.add(victim(), wheel("yfiles", files={"yfiles.py": "", "victim/m.py": EVIL}),
              wheel("zrecords", files={"zrecords.py": "", **late},
                    data={"purelib/victim-1.0.dist-info/RECORD": listed("victim", "victim/__init__.py", "victim/m.py"),
                          "purelib/yfiles-1.0.dist-info/RECORD": listed("yfiles", "yfiles.py")}))
    before = env.layer_ids()
    env.fails("poisoner", "--pip", "victim", "--pip", "yfiles", "--pip", "zrecords", code="denied", package="zrecords",
              says=["another package"])
    assert env.layer_ids() == before
    env.build("other", "--pip", "victim")
    assert value(env, "other") == "honest\n"


@pytest.mark.parametrize("words", ["dns error", "Connection refused", "Hash mismatch for pip==1"])
def test_what_is_half_installed_is_not_taken_for_whole(env, index, words):
    """A wheel whose files get in each other's way fails when it has begun, in words of its own choice. Tried again, uv would
    find it installed, and the RECORD that it left there for another one would be believed."""
    forged = "".join(f"{path},,\n" for path in ("victim/__init__.py", "victim/m.py", *(
        f"victim-1.0.dist-info/{one}" for one in ("METADATA", "WHEEL", "INSTALLER", "REQUESTED", "RECORD"))))
    site = env.python("template", "import sysconfig; print(sysconfig.get_path('purelib'))").strip().removeprefix("/env/")
    index.add(victim(), wheel("half", files={words: ""}, members=[Raw("victim/m.py", EVIL.encode(), is_recorded=False)],
                              data={"purelib/victim-1.0.dist-info/RECORD": forged, f"data/{site}/{words}/x": ""}))
    before = env.layer_ids()
    env.fails("poisoner", "--pip", "victim", "--pip", "half", code={"failed", "hash_mismatch"}, package="half")
    assert env.layer_ids() == before
    env.build("other", "--pip", "victim")
    assert value(env, "other") == "honest\n"


@pytest.mark.once
def test_an_interpreter_makes_no_bytecode_for_another_one(env, index):
    """One outside /usr may be anybody's, and says itself what it is: what it compiled is used with it alone."""
    real = pathlib.Path(os.path.realpath("/usr/bin/python3"))
    library = next(path for path in (pathlib.Path("/usr/lib") / real.name, pathlib.Path("/usr/lib64") / real.name) if (path / "os.py").exists())
    prefix = env.home / "python"
    (prefix / "bin").mkdir(parents=True)
    shutil.copy(real, prefix / "bin")
    shutil.copytree(library, prefix / "lib" / real.name, symlinks=True,
                    ignore=shutil.ignore_patterns("__pycache__", "dist-packages", "site-packages", "test", "idlelib", "config-*"))
    with open(prefix / "lib" / real.name / "py_compile.py", "a") as evil:
        evil.write("\nimport importlib._bootstrap_external as external\nhonest_code = external.SourceLoader.source_to_code\n"
                   "def source_to_code(self, data, path, *args, **names):\n"
                   f"    return honest_code(self, {EVIL!r} if path.endswith('victim/m.py') else data, path, *args, **names)\n"
                   "external.SourceLoader.source_to_code = source_to_code\n")
    index.add(victim())
    env.build("poisoner", "--pip", "victim", "--python", str(prefix / "bin" / real.name))
    assert value(env, "poisoner") == "poisoned\n"
    env.build("other", "--pip", "victim")
    assert value(env, "other") == "honest\n"


@pytest.mark.once
def test_what_a_build_requires_in_turn_is_judged_too(env, index):
    index.add(sdist("source", build_requires=["tool"]), wheel("tool", requires=["blocked-one"]), wheel("blocked-one"))
    env.configure("environments:\n  blocked_packages: [blocked_one]\n")
    env.fails("agent", "--pip", "source", "--allow-build", code="denied", package="blocked-one")


def test_what_is_resolved_again_is_what_is_used(env, index):
    """The same requirements with another answer of the index: not the layers that the last one gave."""
    index.add(wheel("good", "1.0"))
    env.build("agent", "--pip", "good")
    index.add(wheel("good", "2.0"))
    assert env.build("agent", "--pip", "good", "--no-cache")["installed_packages"] == {"good": "2.0"}
    assert env.python("agent", "import good; print(good.VERSION)") == "2.0\n"
    assert env.json("verify", "agent")["ok"]


@pytest.mark.needs_root
@pytest.mark.parametrize("field", ["python_prefix", "editables"])
def test_the_homes_owner_shows_nothing_of_roots(env, tmp, field):
    """meta.json is the owner's to write, and what it names is bound with root's rights: only what root named is."""
    secret = tmp / "secret"
    secret.mkdir(mode=0o700)
    (secret / "key").write_text("of root\n")
    name = env.build("agent")["name"]
    path = env.store / "envs" / name / "meta.json"
    old, new = {"python_prefix": ('"python_prefix": null', f'"python_prefix": "{secret}"'),
                "editables": ('"editables": []', f'"editables": ["{secret}"]')}[field]
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    for command in (["run", "--env", name, "--", "cat", str(secret / "key")], ["env", "verify", "--repair", name],
                    ["run", "--env", name, "--", "cat", str(secret / "key")]):
        done = env(*command, timeout=60)
        assert "of root" not in done.stdout and (command[0] == "env" or done.returncode), done
    assert not [path for path in env.store.rglob("key")]


def test_an_interpreter_behind_a_link_in_the_home_is_not_shown(env, tmp):
    """It could lead elsewhere after it was looked at: that race was won, and a sandbox of the owner's read root's files."""
    elsewhere, inside = tmp / "elsewhere", env.store / "x"
    (elsewhere / "lib/python3.12").mkdir(parents=True)
    (elsewhere / "lib/python3.12/os.py").write_text("")
    (elsewhere / "bin").mkdir()
    shutil.copy("/bin/true", elsewhere / "bin/python3.12")
    name = env.build("agent")["name"]
    path = env.store / "envs" / name / "meta.json"
    text = path.read_text().replace('"python_prefix": null', f'"python_prefix": "{inside}"')
    path.write_text(re.sub('"python": "[^"]*"', f'"python": "{inside}/bin/python3.12"', text))
    shutil.copytree(elsewhere, inside)
    if os.getuid() == 0:
        os.chown(inside, env.store.stat().st_uid, -1)
    assert env.run("--env", name, "--", "ls", inside / "lib").returncode == 0
    shutil.rmtree(inside)
    inside.symlink_to(elsewhere)
    done = env.run("--env", name, "--", "ls", inside / "lib")
    assert done.returncode == 125 and "reached through a link" in done.stderr, done


@pytest.mark.needs_root
def test_what_root_named_is_shown(env, tmp):
    project = tmp / "project"
    project.mkdir()
    (project / "mine.py").write_text("VALUE = 'mine'\n")
    env.build("agent", "--editable", str(project))
    assert env.python("agent", "import mine; print(mine.VALUE)") == "mine\n"
    assert not [path for path in (env.store / "vouched").iterdir() if path.stat().st_uid]
    other = tmp / "other"
    other.mkdir()
    (env.store / "vouched" / next((env.store / "vouched").iterdir()).name).rename(
        env.store / "vouched" / hashlib.sha256(bytes(other)).hexdigest())
    done = env.run("--env", "agent", "--", "true")
    assert done.returncode == 125 and "root has not approved" in done.stderr, done


@pytest.mark.once
def test_a_build_with_the_tools_of_one_index_is_not_used_with_another(env, index):
    """What a build requires has no hashes: the same sources give something else with other tools."""
    source = sdist("source", build_requires=["tool"], code="    import tool\n    return tool.VALUE\n")
    index.add(source, wheel("tool", files={"tool.py": HONEST}))
    with Index() as evil:
        evil.add(source, wheel("tool", files={"tool.py": EVIL}))
        env.build("poisoner", "--pip", "source", "--allow-build", "--index", evil.url)
    assert env.python("poisoner", "import source; print(source.FOUND)") == "poisoned\n"
    env.build("other", "--pip", "source", "--allow-build")
    assert env.python("other", "import source; print(source.FOUND)") == "honest\n"
    assert env.build("third", "--pip", "source", "--allow-build")["layers"] == env.show("other")["layers"]
