"""Faults: killed at any step, full or read-only disks, vanished interpreters, two builders at once. Every object is whole
or absent, a retry works, nothing stays."""
# security: packages
import concurrent.futures
import contextlib
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest
from envs import digest, small_disk
from harness import TREE, descendants, eventually, one_line
from wheels import wheel

WORKS = "import part_0, part_1, part_2; print(part_0.VERSION)"
PARTS = ["--pip", "part-0", "--pip", "part-1", "--pip", "part-2"]
NAME = "agent_" + hashlib.sha256(b"part-0\npart-1\npart-2").hexdigest()[:7]


@pytest.fixture
def env(request):
    """A home of its own, but for the many tests of fault points: at the end of each, everything in the home is verified."""
    return request.getfixturevalue("shared_env" if request.node.get_closest_marker("needs_faults") else "own_env")


def parts(index, version="1.0"):
    for n in range(3):
        files = {f"part_{n}.py": f"VERSION = {version!r}\n", **{f"part_{n}_more/m{k}.py": f"X = {k}\n" for k in range(40)}}
        index.add(wheel(f"part-{n}", version, files=files))


def said_last(stderr):
    """The error itself: what was done before it is said before it."""
    lines = stderr.splitlines(True)
    return "".join(lines[-2:] if lines and lines[-1].startswith("hint: ") else lines[-1:])


def is_whole(env):
    """The retry works, and everything that is there verifies."""
    found = env.build("agent", *PARTS, timeout=120)
    assert env.python(found["name"], WORKS) == "1.0\n"
    assert all(row["ok"] for row in env.json("verify"))
    env.left_nothing()
    return found


# ---- two at once

@pytest.mark.once
@pytest.mark.parametrize("command", [["build", "agent", *PARTS], ["build", "agent", "--no-cache", *PARTS]])
def test_builders_of_one_set_end_with_one(env, index, command):
    parts(index)
    args = ["env", *command, "--index", index.url, "-o", "json"]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: env(*args, timeout=120), range(4)))
    assert [one.returncode for one in done] == [0] * 4, [one.stderr + one.stdout for one in done]
    found = [json.loads(one.stdout) for one in done]
    assert len({one["name"] for one in found}) == len({tuple(one["layers"]) for one in found}) == 1
    if "--no-cache" not in command:
        assert len({one["created_at"] for one in found}) == 1
        assert sorted(one["cached"] for one in found) == [False, True, True, True]
    assert [index.asked_for(f"part-{n}") for n in range(3)] == [1, 1, 1]
    is_whole(env)


@pytest.mark.once
def test_builders_of_overlapping_sets_share_layers(env, index):
    parts(index)
    def build(n):
        return env.build(f"agent{n}", "--pip", "part-0", "--pip", f"part-{n}", timeout=120)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        one, two = pool.map(build, (1, 2))
    assert len(set(one["layers"]) & set(two["layers"])) == len(one["layers"]) - 1
    assert all(row["ok"] for row in env.json("verify"))


@pytest.mark.once
def test_a_build_beside_prunes_loses_no_layer(env, index):
    parts(index)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        building = pool.submit(env.build, "agent", *PARTS, timeout=120)
        while not building.done():
            assert env("env", "prune").returncode == 0
    assert building.result()["state"] == "ready"
    is_whole(env)


@pytest.mark.once
def test_a_build_that_waits_can_be_ended(env, index):
    """One hangs at its index, the next waits for it and is interrupted; the first one's end frees the name."""
    parts(index)
    index.misbehave("/simple/part-1/", "hang")
    args = ["env", "build", "agent", "--index", index.url, *PARTS]
    with env.start(*args) as first:
        assert eventually(lambda: "/simple/part-1/" in index.requests, 60)
        with env.start(*args) as second:
            with pytest.raises(subprocess.TimeoutExpired):
                second.wait(0.3)
            second.send_signal(signal.SIGINT)
            assert second.wait(60) != 0
        first.send_signal(signal.SIGTERM)
        assert first.wait(60) != 0
    index.behave()
    is_whole(env)


# ---- killed

@contextlib.contextmanager
def all_gone():
    """What is killed in the block takes along what it had started, at once or soon: by the end of the block it has."""
    others = set(descendants())
    yield
    assert eventually(lambda: set(descendants()) <= others, 60), descendants()


def kill(env, *args, after):
    """Kills it after so many seconds, if it isn't done."""
    with all_gone(), env.start("env", *args) as process:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(after)
        process.kill()


@pytest.mark.once
@pytest.mark.parametrize("moment", range(10))
def test_killed_at_any_moment(env, index, moment):
    """SIGKILL of the builder after a tenth, two tenths … of the time a build takes here."""
    parts(index)
    started = time.monotonic()
    env.build("measure", "--pip", "part-0", timeout=120)
    whole = time.monotonic() - started
    before = digest(env.store / "layers")
    kill(env, "build", "agent", "--index", index.url, *PARTS, after=whole * (moment + 0.5) / 9)
    after = digest(env.store / "layers")
    assert {path: after.get(path) for path in before if not path.startswith(".")} == \
        {path: what for path, what in before.items() if not path.startswith(".")}
    for row in env.ls():
        assert row["state"] == "ready", row
    is_whole(env)


@pytest.mark.once
def test_killed_while_it_repairs_or_removes(env, index):
    parts(index)
    name = env.build("agent", *PARTS)["name"]
    for args in (["verify", "--repair", name], ["rm", name]):
        if args[0] == "verify":
            next(env.layer(name, "part-0").rglob("part_0.py")).write_text("VERSION = 'damaged'\n")
        for wait in (0.02, 0.2, 0.5):
            kill(env, *args, after=wait)
        if args[0] == "rm":
            env("env", "rm", name)
        else:
            env.json("verify", "--repair", name)
        is_whole(env)


@pytest.mark.once
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_by_a_signal(env, index, number):
    parts(index)
    index.misbehave("/files/part-1/", "hang")
    with env.start("env", "build", "agent", "--index", index.url, *PARTS) as process:
        assert eventually(lambda: any("part-1" in path for path in list(index.requests)), 60)
        process.send_signal(number)
        assert process.wait(60) not in (0, None)
    env.left_nothing()
    assert not [name for name in env.names() if name.startswith("agent")]
    index.behave()
    is_whole(env)


# No build passes those of the home's image, of jobs over trees, of reviews and applied changes, and of exports: other tests try them.
SOURCES = [path for room in ("layers", "envs", "linux", "egress", "build", "cli") for path in sorted((TREE / "src" / room).glob("*.c"))
           if path.name not in ("home_image.c", "review.c", "apply.c", "env_export.c") and not path.name.startswith("tree_")]
POINTS = sorted({name for path in SOURCES for name in re.findall(r'fault_(?:point|fails)\("([^"]+)"\)', path.read_text())})
FAILURES = sorted({name for path in SOURCES for name in re.findall(r'fault_fails\("([^"]+)"\)', path.read_text())})


def scenario(env, fault):
    """Everything that writes to the store, up to the command that met the fault (killed, or with an error of its own):
    that one, or None."""
    def damage():
        next(env.layer("agent", "part-0").rglob("part_0.py")).write_text("VERSION = 'damaged'\n")

    def abandon():
        """What a builder leaves that was killed."""
        stage, owner = env.store / "stage" / ("a" * 20), env.store.stat()
        stage.mkdir()
        os.chown(stage, owner.st_uid, owner.st_gid)
        env.configure("environments:\n  max_envs: 2\n")

    build = ["env", "build", "agent", "--index", env.index.url, *PARTS]
    steps = [
        (None, build), (None, build), (None, [*build, "--rebuild"]), (None, ["run", "--env", "agent", "--", "true"]),
        (damage, ["env", "verify", "--repair", "agent"]),
        (None, ["env", "build", "other", "--index", env.index.url, "--pip", "part-1"]),
        (abandon, ["env", "prune"]),
        (lambda: env.configure(""), ["env", "rm", NAME]),
        (None, ["env", "build", "failing", "--index", env.index.url, "--pip", "no-such-package"]),
    ]
    for prepare, command in steps:
        if prepare:
            prepare()
        done = env(*command, timeout=120, env={"CARREL_FAULT": fault})
        assert done.returncode in (0, 1, 125, -signal.SIGKILL), done.stderr     # no sanitiser's 99
        assert done.returncode != 1 or "verify" in command, done.stderr     # 1: damage that stays
        # A disk that was full once has made room: what nobody used may be gone.
        if command[1] == "rm" and "there is no environment" in done.stderr:
            continue
        if done.returncode in (1, -signal.SIGKILL) or (done.returncode == 125 and "failing" not in command):
            return done
    return None


@pytest.mark.needs_faults
@pytest.mark.parametrize("point", POINTS)
def test_killed_at_a_fault_point(env, index, point):
    parts(index)
    with all_gone():
        killed = scenario(env, f"{point}:1")
    assert killed, f"no command passes {point}"
    env.configure("")
    if "verify" in killed.args:     # the scenario's own damage isn't repaired yet
        env("env", "verify", "--repair", timeout=120)
    is_whole(env)


@pytest.mark.needs_faults
@pytest.mark.parametrize("point", FAILURES)
def test_a_full_disk_at_a_fault_point(env, index, point):
    """A clear error; what isn't needed for the work itself (a metric, a count of uses) may fail without one."""
    parts(index)
    done = scenario(env, f"{point}:1:ENOSPC")
    if done:
        one_line(said_last(done.stderr))
        assert "space" in done.stderr, done.stderr
    env.configure("")
    if not done or "verify" in done.args:
        env("env", "verify", "--repair", timeout=120)
    is_whole(env)


# ---- disks

@contextlib.contextmanager
def read_only(directory):
    """Without write permission for the owner, who isn't root there either."""
    modes = {}
    for where, _, _ in os.walk(directory):
        modes[where] = os.stat(where).st_mode & 0o7777
        os.chmod(where, modes[where] & ~0o222)
    try:
        yield
    finally:
        for where, mode in modes.items():
            os.chmod(where, mode)


@pytest.mark.parametrize("part", ["layers", "envs", ""])
def test_a_store_that_can_not_be_written(env, index, part):
    parts(index)
    with read_only(env.store / part):
        done = env.try_build("agent", *PARTS, timeout=120)
        assert (done.returncode, done.stdout) == (125, ""), done
        one_line(said_last(done.stderr))
        assert re.search(r"[Pp]ermission denied|read-only", done.stderr), done.stderr
    is_whole(env)


def test_an_environment_of_a_read_only_store_still_runs(env, index):
    parts(index)
    name = env.build("agent", *PARTS)["name"]
    with read_only(env.store):
        done = env.run("--env", name, "--", "python", "-c", WORKS)
        assert (done.returncode, done.stdout) == (0, "1.0\n"), done.stderr


@pytest.mark.needs_root
def test_a_disk_that_is_full_in_the_middle(env, index):
    parts(index)
    index.add(wheel("large", files={"large.py": "X = 1\n", "large.bin": os.urandom(80 << 20)}))
    with small_disk(env, "64M"):
        # The default floor: it isn't even begun.
        error = json.loads(env.try_build("agent", "-o", "json", *PARTS).stdout)["error"]
        assert error["code"] == "disk_full" and "500M" in error["message"] + error["hint"], error
    with small_disk(env, "64M"):
        env.configure("environments:\n  min_free_bytes: 1M\n")
        env.build("first", "--pip", "part-0")
        before = digest(env.store / "layers")
        done = env.try_build("agent", "-o", "json", "--pip", "large", timeout=120)
        error = json.loads(done.stdout)["error"]
        assert (done.returncode, error["code"]) == (125, "disk_full"), error
        assert error["hint"]
        env.left_nothing()
        assert "agent" not in {row["package_id"] for row in env.ls()}
        free = os.statvfs(env.store)
        assert free.f_bavail * free.f_frsize > 20 << 20, "what was half made is gone"
        for path, what in digest(env.store / "layers").items():
            assert path not in before or before[path] == what


@pytest.mark.needs_root
def test_a_file_system_mounted_read_only(env, index):
    parts(index)
    name = env.build("agent", *PARTS)["name"]
    with small_disk(env, "1G"):
        subprocess.run(["mount", "-o", "remount,ro", env.store], check=True)
        done = env.try_build("other", "--pip", "part-0")
        assert done.returncode == 125
        one_line(said_last(done.stderr))
        assert "ead-only" in done.stderr
    assert env.python(name, WORKS) == "1.0\n"


# ---- interpreters

def private_python(directory):
    """A Python of the test's own: a copy of the host's, with its library by a link."""
    real = pathlib.Path(os.path.realpath("/usr/bin/python3"))
    prefix = directory / "python"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "lib").mkdir()
    shutil.copy(real, prefix / "bin" / real.name)
    (prefix / "lib" / real.name).symlink_to(pathlib.Path("/usr/lib") / real.name)
    return prefix / "bin" / real.name


@pytest.mark.once
def test_an_interpreter_that_was_removed(env, index, tmp):
    parts(index)
    python = private_python(tmp)
    found = env.build("agent", "--python", python, *PARTS, timeout=120)
    assert env.python(found["name"], WORKS) == "1.0\n"
    python.unlink()
    done = env.run("--env", found["name"], "--", "python", "-c", WORKS)
    assert (done.returncode, done.stdout) == (125, "")
    assert one_line(done.stderr, python)
    report = env.json("verify", found["name"], code=1)
    assert any(str(python) in finding["path"] + finding["what"] for finding in report["findings"]), report
    done = env.try_build("agent", "--python", python, *PARTS)
    assert done.returncode == 125
    one_line(done.stderr, python)
    env.build("agent", *PARTS, timeout=120)
    assert env.python("agent", WORKS) == "1.0\n"


@pytest.mark.once
def test_an_interpreter_that_was_replaced(env, index, tmp):
    """Another file under the same path: not the one the layers were made for, so it is looked into again."""
    parts(index)
    python = private_python(tmp)
    env.build("agent", "--python", python, *PARTS, timeout=120)
    content = python.read_bytes()
    python.unlink()
    python.write_bytes(content + b"\0")
    python.chmod(0o755)
    found = env.build("agent", "--python", python, *PARTS, timeout=120)
    assert env.python(found["name"], WORKS) == "1.0\n"


@pytest.mark.once
def test_an_interpreter_that_is_none(env, tmp):
    for content in ("#!/bin/sh\necho 3.11\n", "#!/bin/sh\nexit 1\n", "#!/bin/sh\nsleep 1000\n", "\x7fELF"):
        fake = tmp / "python3.12"
        fake.write_text(content)
        fake.chmod(0o755)
        done = env.try_build("agent", "--python", fake)
        assert (done.returncode, done.stdout) == (125, "")
        one_line(done.stderr, fake)
