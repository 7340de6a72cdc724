"""The egress role: one process for all builds of a daemon, one of its own for a build without a daemon."""
# security: packages
import concurrent.futures
import json
import os
import signal

import pytest
from daemons import new_directory, remove, serving
from harness import copy_home, descendants, eventually
from wheels import wheel

ENDED = "the egress process has ended"


def roles(pid):
    return [pid for pid, (_, name) in descendants(pid).items() if name == "carrel-egress"]


def asked(index, *names):
    return all(index.asked_for(name) for name in names)


def test_a_build_whose_egress_process_is_killed_says_so(env, index):
    index.add(wheel("one"))
    index.misbehave("/files/", "held")
    args = ["env", "build", "agent", *env.with_index(["-o", "json", "--pip", "one"])]
    with env.start(*args) as process:
        assert eventually(lambda: asked(index, "one"), 60)
        [role] = roles(process.pid)
        os.kill(role, signal.SIGKILL)
        out, _ = process.communicate(timeout=120)
    error = json.loads(out)["error"]
    assert process.returncode == 125 and ENDED in error["message"] and error["hint"], error
    env.left_nothing()
    index.behave()
    assert env.build("agent", "--pip", "one")["installed_packages"] == {"one": "1.0"}


@pytest.fixture
def building(template, index):
    """A daemon whose builds have a uv and an index."""
    tools, source = template
    directory = new_directory()
    try:
        copy_home(source, directory / "carrel")
        where = {"UV_DEFAULT_INDEX": index.url, "PATH": f"{tools}:{os.environ['PATH']}"}
        with serving(directory, env=where) as daemon:
            yield daemon
    finally:
        remove(directory)


def test_builds_of_a_daemon_share_one_egress_process(building, index):
    for name in ("one", "two"):
        index.add(wheel(name))
    index.misbehave("/files/", "held")
    assert roles(building.process.pid) == []
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        made = [pool.submit(building, "create", name, "--pip", name, timeout=120) for name in ("one", "two")]
        assert eventually(lambda: asked(index, "one", "two"), 60)
        assert len(roles(building.process.pid)) == 1
        index.freed.set()
        for done in (future.result() for future in made):
            assert done.returncode == 0, done.stderr
    # It ends with the last build; the next one begins with what the host says of name servers then.
    assert eventually(lambda: roles(building.process.pid) == [], 20)
    for name in ("one", "two"):
        assert building("rm", name).returncode == 0


def test_when_the_egress_process_is_killed_builds_fail_and_the_next_one_has_another(building, index):
    index.add(wheel("one"))
    index.misbehave("/files/", "held")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        made = pool.submit(building, "create", "w", "--pip", "one", timeout=120)
        assert eventually(lambda: asked(index, "one"), 60)
        [role] = roles(building.process.pid)
        os.kill(role, signal.SIGKILL)
        done = made.result()
    assert done.returncode == 125 and ENDED in done.stderr, done.stderr
    assert "egress has ended" in building.log()
    index.behave()
    done = building("create", "w", "--pip", "one", timeout=120)
    assert done.returncode == 0, done.stderr
    assert building("rm", "w").returncode == 0
