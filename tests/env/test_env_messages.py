"""What a build says: one cause has one message, its code and a hint that helps; and what it shows while it runs."""
import contextlib
import fcntl
import json
import os
import pty
import shutil
import signal
import subprocess
import termios

import pytest
from envs import catches
from harness import eventually
from index_server import refusing_port
from wheels import sdist, wheel

pytestmark = pytest.mark.once     # as another user it says the same


# ---- the cut-off date

def test_the_cut_off_date_is_for_resolving(env, index):
    """What is locked by hash was chosen already: also our own pip, which is younger than most dates."""
    env.configure("environments:\n  exclude_newer: 2021-01-01\n")
    index.uploaded = "2020-06-01T00:00:00Z"
    index.add(wheel("old"))
    found = env.build("agent", "--pip", "old")
    assert env("env", "rm", found["name"]).returncode == 0
    assert env("env", "prune").returncode == 0
    index.uploaded = "2022-06-01T00:00:00Z"
    asked = index.asked_for("old")
    env.build("agent", "--pip", "old")
    assert index.asked_for("old") > asked, "the layer was gone, and came from the index again"
    env.fails("other", "--no-cache", "--pip", "old", code={"not_found", "version_not_found", "conflict"})


# ---- too much

SOURCE = "".join(f"def f{n}(x): return x + {n}\n" for n in range(4000))
LARGE = {"data": (12, {}), "far more": (90, {}), "bytecode": (66, {f"large_{n}.py": SOURCE for n in range(60)})}


@pytest.mark.parametrize("what", LARGE)
def test_too_much_is_said_in_one_way(env, index, what):
    megabytes, others = LARGE[what]
    index.add(wheel("large", files={"large.bin": os.urandom(megabytes << 20), **others}))
    env.configure("environments:\n  max_install_bytes: 8M\n")
    error = env.fails("agent", "--pip", "large", code="denied", timeout=120)
    assert error["message"].startswith("the packages of environment 'agent_") and error["message"].endswith("' take more than 8.0M")
    assert "max_install_bytes" in error["hint"]
    assert index.asked_for("large") == 1, "no second attempt"


# ---- hints

@pytest.mark.parametrize("line", ["-r other.txt", "-c other.txt", "--requirement=other.txt"])
def test_self_contained_files_include_no_others(env, line):
    """The daemon builds so: a client must not make it read files of its host."""
    path = env.requirements(f"{line}\n")
    error = env.fails("agent", "--self-contained", "-r", str(path), code="denied", says=["line 1"])
    assert "one text" in error["hint"] and "index" not in error["hint"]


def test_too_slow_names_both_limits(env, index):
    index.add(wheel("slow"))
    index.misbehave("/files/slow", "hang")
    error = env.fails("agent", "--timeout", "2", "--pip", "slow", code={"timeout", "network"})
    assert error["code"] == "network" or ("--timeout" in error["hint"] and "install_timeout" in error["hint"])


def test_the_log_is_named_with_its_environment(env, index):
    index.add(sdist("broken", code="    raise RuntimeError('no')\n"))
    error = env.fails("agent", "--allow-build", "--pip", "broken", code="failed")
    assert "carrel env show --log agent_" in error["hint"]


def test_a_damaged_meta_json_is_named_once(env, index):
    index.add(wheel("one"))
    name = env.build("agent", "--pip", "one")["name"]
    (env.store / "envs" / name / "meta.json").write_text("{")
    done = env("env", "verify", name)
    assert done.returncode == 1 and done.stdout.count("meta.json") == 1, done


# ---- interrupted

MOMENTS = {"resolving": "/simple/late", "fetching": "/files/late"}


def reached(index, place):
    assert eventually(lambda: any(path.startswith(place) for path in list(index.requests)), 60)


def interrupt(build, signo):
    """What it says, once it is gone."""
    build.send_signal(signo)
    out, err = build.communicate(timeout=60)
    assert build.returncode == 130, (build.returncode, out, err)
    return out + err


@pytest.fixture
def late(env, index):
    index.add(wheel("late"))
    index.misbehave("/files/late", "hang")
    env.configure(f"environments:\n  index: {index.url}\n")
    return env


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("signo", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_build_says_so_and_leaves_nothing(late, index, moment, signo):
    index.misbehave(MOMENTS[moment], "hang")
    with late.start("env", "build", "agent", *late.with_index(["-o", "json", "--pip", "late"])) as build:
        reached(index, MOMENTS[moment])
        error = json.loads(interrupt(build, signo))["error"]
    assert error["code"] == "canceled" and "was interrupted" in error["message"], error
    late.left_nothing()
    assert late.events()[-1]["event"] == "failed" and late.events()[-1]["code"] == "canceled"


def test_an_interrupted_wait_for_another_builder_ends(late, index):
    args = ["env", "build", "agent", *late.with_index(["--no-cache", "--pip", "late"])]
    with late.start(*args) as first:
        reached(index, "/files/late")
        with late.start(*args) as second:
            assert eventually(lambda: catches(second, signal.SIGINT), 60)
            with pytest.raises(subprocess.TimeoutExpired):
                second.wait(0.5)
            assert "was interrupted" in interrupt(second, signal.SIGINT)
        assert "was interrupted" in interrupt(first, signal.SIGINT)


def test_run_ends_with_its_interrupted_build(late, index):
    with late.start("run", "--pip", "late", "--", "true") as run:
        reached(index, "/files/late")
        assert "was interrupted" in interrupt(run, signal.SIGTERM)
    late.left_nothing()


def test_control_c_takes_the_bar_away(late, index):
    master, slave = pty.openpty()
    said = b""
    with late.start("run", "--pip", "late", "--", "true", stdin=slave, stdout=slave, stderr=slave, env={"TERM": "xterm"},
                    start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)) as run:
        os.close(slave)
        reached(index, "/files/late")
        os.write(master, b"\x03")
        with contextlib.suppress(OSError):      # the terminal's end
            while part := os.read(master, 4096):
                said += part
        assert run.wait(60) == 130, said
    os.close(master)
    last = said.decode().split("\x1b[K")[-1]
    assert last.startswith("carrel: ") and "was interrupted" in last and last.endswith("\n"), said


# ---- an index that can't be reached

def test_an_index_that_refuses_is_named_with_the_reason(env):
    with refusing_port() as port:
        index = ["--index", f"http://127.0.0.1:{port}/simple", "--pip", "any"]
        error = env.fails_in_time("agent", *index, seconds=3, code="network")
        assert error["message"] == f"the index at 127.0.0.1:{port} can't be reached: Connection refused"
        done = env.try_build("agent", *index)
    assert done.returncode == 125
    retries = [line for line in done.stderr.splitlines() if "trying again" in line]
    assert retries == [f"carrel: the index does not respond; trying again ({n} of 5)" for n in (2, 3, 4, 5)]
    assert [(event["attempt"], event["attempts"]) for event in env.events() if event["event"] == "retrying"][-4:] == [(n, 5) for n in (2, 3, 4, 5)]


def test_nothing_is_said_of_retries_when_nobody_asks(env):
    with refusing_port() as port:
        done = env.try_build("agent", "-q", "--timeout", "3", "--index", f"http://127.0.0.1:{port}/simple", "--pip", "any")
    assert done.returncode == 125 and "trying again" not in done.stderr


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_an_index_whose_name_can_not_be_resolved_is_named_at_once(env, scheme):
    error = env.fails("agent", "--index", f"{scheme}://no-such-host.invalid/simple", "--pip", "any", code="network")
    assert error["message"].startswith(f"the host name of index {scheme}://no-such-host.invalid/simple can't be resolved: "), error
    assert "retrying" not in [event["event"] for event in env.events()]
    assert env.log("agent").count("pip compile") <= 1  # beside which the index was asked


def test_an_extra_index_whose_name_can_not_be_resolved_is_named(env, index):
    index.add(wheel("one"))
    error = env.fails("agent", "--extra-index", "https://user:secret@no-such-host.invalid/simple", "--pip", "one", code="network")
    assert "no-such-host.invalid/simple can't be resolved: " in error["message"] and "secret" not in error["message"], error


def test_uv_that_can_not_be_fetched_is_the_networks_failure(own_env):
    """A host without uv, whose index is unplugged."""
    own_env.env["PATH"] = "/usr/bin:/bin"
    shutil.rmtree(own_env.store / "tools", ignore_errors=True)
    with refusing_port() as port:
        error = own_env.fails("agent", "--index", f"http://127.0.0.1:{port}/simple", "--pip", "any", code="network", says=["uv "])
    assert f"the index at 127.0.0.1:{port} can't be reached: Connection refused" in error["message"]
    assert "fetching_uv" in [event["event"] for event in own_env.events()]


# ---- what uv says besides

def test_warnings_of_uv_are_shown_once(env, index):
    index.add(wheel("one"))
    done = env.try_build("agent", "--pip", "one[nosuch]")
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stderr.splitlines() if "nosuch" in line] == \
        ["carrel: warning: The package `one==1.0` does not have an extra named `nosuch`"]


def test_a_package_for_another_system_says_which(env, index):
    index.add(wheel("only-there", tag="cp311-abi3-win_amd64"))
    env.fails("agent", "--pip", "only-there", code="version_not_found", package="only-there", says=["for Windows only (win_amd64)"])


# ---- how far it is

def test_packages_are_counted_while_they_come(env, index):
    """The total is the same from the first to the last, and what is there counts at once: the last one waits for that."""
    index.add(wheel("quick"), wheel("brisk"), wheel("slow"))
    index.misbehave("/files/slow/", "held")
    counted = []
    with env.start("env", "build", "agent", *env.with_index(["--events", "--pip", "quick", "--pip", "brisk", "--pip", "slow"])) as build:
        for line in build.stdout:
            event = json.loads(line) if line.startswith("{") else {"event": None}
            if event["event"] == "installing_deps" and "packages" in event:
                counted.append((event["packages_done"], event["packages"]))
            if (2, 3) in counted:
                index.freed.set()
        assert build.wait(60) == 0, build.stderr.read()
    assert {total for _, total in counted} == {3} and (2, 3) in counted, counted
    assert counted == sorted(counted)
