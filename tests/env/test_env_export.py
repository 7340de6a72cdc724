"""Environments are exported to a file and imported in another home, without a network; damaged or forged ones are not."""
# security: packages
import io
import json
import os
import pathlib
import shutil
import tarfile

import pytest
from daemons import new_directory, remove
from envs import Envs, small_disk
from harness import copy_home
from wheels import wheel


@pytest.fixture
def exported(env, index, tmp):
    """(the environment, the file) of a home that has it."""
    index.add(wheel("victim", "1.5", files={"victim/__init__.py": "VALUE = 'original'\n", "victim/data.bin": b"\0" * 5000},
                    scripts={"victim-tool": "victim:main"}))
    built = env.build("agent", "--pip", "victim")
    path = pathlib.Path(tmp) / "agent.tar"
    assert json.loads(env("env", "export", "agent", "-f", path, "-o", "json").stdout)["name"] == built["name"]
    return built, path


@pytest.fixture
def other(tmp_path, template, index):
    """Another home, and no index."""
    tools, source = template
    copy_home(source, tmp_path / "other/carrel")
    carrel = Envs(tmp_path / "other", tools)
    yield carrel
    carrel.left_nothing()


def rewrite(path, change):
    """The archive with its members changed: {name: (info, data)}."""
    with tarfile.open(path) as tar:
        members = {info.name: (info, tar.extractfile(info).read() if info.isreg() else b"") for info in tar}
    change(members)
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
        for info, data in members.values():
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


def replaced(name, new):
    def change(members):
        found = next(key for key in members if key == name or key.endswith("/" + name))
        info, data = members[found]
        members[found] = info, new(data)
    return change


def test_an_exported_environment_works_in_another_home(env, exported, other):
    built, path = exported
    done = other("env", "import", path)
    assert (done.returncode, done.stdout) == (0, built["name"] + "\n"), done.stderr
    ran = other("run", "--env", "agent", "--", "python", "-c", "import victim; print(victim.VALUE)")
    assert (ran.returncode, ran.stdout) == (0, "original\n"), ran.stderr
    assert other("env", "verify", "agent").returncode == 0
    found = other.json("show", "agent")
    assert found["layers"] == built["layers"] and found["installed_packages"] == built["installed_packages"]
    assert other("env", "import", path).returncode == 0      # it is here already
    assert "imported" in [json.loads(line)["event"] for line in (other.store / "audit/envs.jsonl").read_text().splitlines()]
    assert env("env", "export", "unknown", "-f", path).returncode == 125


@pytest.mark.needs_root
def test_an_import_on_a_disk_that_is_too_small_leaves_nothing(env, other, index, tmp):
    index.add(wheel("large", files={"large.py": "X = 1\n", "large.bin": os.urandom(80 << 20)}))
    env.build("agent", "--pip", "large", timeout=120)
    path = pathlib.Path(tmp) / "agent.tar"
    assert env("env", "export", "agent", "-f", path, timeout=120).returncode == 0
    with small_disk(other, "64M"):
        other.configure("environments:\n  min_free_bytes: 1M\n")
        names, before = other.names(), os.statvfs(other.store).f_bavail
        done = other("env", "import", path, "-o", "json", timeout=120)
        error = json.loads(done.stdout)["error"]
        assert (done.returncode, error["code"]) == (125, "disk_full") and error["hint"], (error, done.stderr)
        other.left_nothing()
        assert other.names() == names
        after = os.statvfs(other.store)
        assert (before - after.f_bavail) * after.f_frsize < 4 << 20, "what was half made is gone"
    assert other("env", "import", path, timeout=120).returncode == 0
    assert other.python("agent", "import large; print(large.X)") == "1\n"


@pytest.fixture
def store(env, other):
    """A directory that both homes have as their blob store."""
    directory = new_directory()
    owner = env.store.stat()
    os.chown(directory, owner.st_uid, owner.st_gid)
    for home in (env, other):
        with open(home.store / "config.yaml", "a") as config:
            config.write(f"blob:\n  url: dir:{directory}\n")
    yield directory
    for home in (env, other):
        home("serve", "--stop", "--force", timeout=60)
    remove(directory)


def test_an_exported_environment_is_fetched_from_the_blob_store(env, exported, other, store):
    built, path = exported
    done = env("env", "export", "agent")
    assert (done.returncode, done.stdout) == (0, built["name"] + "\n"), done.stderr
    stored = store / f"environments/{built['name']}.tar"
    with tarfile.open(stored) as tar, tarfile.open(path) as same:
        assert tar.getnames() == same.getnames()
    listed = json.loads(other("env", "ls", "--exported", "-o", "json").stdout)
    assert [(item["name"], item["size_bytes"]) for item in listed] == [(built["name"], stored.stat().st_size)], listed
    assert other("env", "ls", "--exported").stdout.splitlines()[1].startswith(built["name"])
    done = other("env", "import", "unknown")
    assert done.returncode == 125 and "has no environment 'unknown'" in done.stderr
    done = other("env", "import", built["name"])
    assert (done.returncode, done.stdout) == (0, built["name"] + "\n"), done.stderr
    ran = other("run", "--env", "agent", "--", "python", "-c", "import victim; print(victim.VALUE)")
    assert (ran.returncode, ran.stdout) == (0, "original\n"), ran.stderr
    assert env("env", "export", "agent").returncode == 0        # replaces it
    assert env("env", "rm", "--exported", built["name"]).returncode == 0
    assert env("env", "rm", "--exported", built["name"]).returncode == 125
    assert json.loads(env("env", "ls", "--exported", "-o", "json").stdout) == []
    assert env.json("show", "agent")["name"] == built["name"]   # its own stays


def meta(**changes):
    return replaced("carrel-env.json", lambda data: json.dumps({**json.loads(data), **changes}).encode())


DAMAGES = {
    "a file": replaced("victim/__init__.py", lambda data: data.replace(b"original", b"Original")),
    "prefix": meta(python_prefix="/root"),
    "a name with ..": lambda members: members.update(bad=(tarfile.TarInfo("../bad"), b"x")),
}


@pytest.mark.once
def test_what_is_damaged_or_forged_is_not_imported(exported, other, tmp):
    built, path = exported
    before = other.names()
    bad = pathlib.Path(tmp) / "bad.tar"
    for name, damage in DAMAGES.items():
        shutil.copy(path, bad)
        rewrite(bad, damage)
        done = other("env", "import", bad)
        assert (done.returncode, done.stdout) == (125, ""), name
        assert "bad.tar" in done.stderr and other.names() == before, (name, done.stderr)
    whole = path.read_bytes()
    bad.write_bytes(whole[:len(whole) // 2])
    assert other("env", "import", bad).returncode == 125
    assert other("env", "import", bad.with_name("absent")).returncode == 125
    assert other.names() == before


@pytest.mark.needs_faults
def test_imports_and_exports_that_are_killed_leave_nothing_half_made(env, exported, other):
    built, path = exported
    again = path.with_name("again.tar")
    assert env("env", "export", "agent", "-f", again, env={"CARREL_FAULT": "env_export_packed:1"}).returncode < 0
    assert not again.exists()
    before = other.names()
    for point, names in (("env_import_unpacked", before), ("env_import_published", before),
                         ("env_import_written", sorted([*before, built["name"]]))):
        assert other("env", "import", path, env={"CARREL_FAULT": f"{point}:1"}).returncode < 0, point
        assert sorted(other.names()) == sorted(names), point
    done = other("env", "import", path)
    assert (done.returncode, done.stdout) == (0, built["name"] + "\n"), done.stderr
    assert other("env", "verify", "agent").returncode == 0
