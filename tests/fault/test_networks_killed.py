"""kill -9 of core while it opens a network, of egress under load, and of both again and again: sandboxes go on, what is
listed is reached afterwards, and what isn't, never."""
# security: network
import concurrent.futures
import contextlib
import os
import signal

import pytest

from daemons import new_directory, remove, serving
from harness import descendants, eventually
from origins import configure, origin
from workspaces import created, sh


ROUNDS = int(os.environ.get("CARREL_TEST_ROUNDS", 3))
WORKSPACES = int(os.environ.get("CARREL_TEST_WORKSPACES", 50))


@contextlib.contextmanager
def site(env=None):
    """A daemon that knows the names of two origins; the second is never listed."""
    directory = new_directory()
    configure(directory / "carrel")
    try:
        with origin() as listed, origin() as secret, serving(directory, env=env) as daemon:
            daemon.listed, daemon.secret = f"origin.test:{listed.port}", f"other.test:{secret.port}"
            yield daemon
            assert not secret.requests
    finally:
        remove(directory)


def get(target):
    return f"curl -sS -m 100 http://{target}/x"


def reaches(site, name):
    done = sh(site, name, get(site.listed))
    assert (done.returncode, done.stdout) == (0, f"{site.listed} /x\n"), (done.stdout, done.stderr)


def egress(site):
    return [pid for pid, (_, name) in descendants(site.process.pid).items() if name == "carrel-egress"]


@pytest.mark.needs_faults
@pytest.mark.parametrize("point", ["network_service:1", "network_begun:1", "network_listener:3", "network_opened:1"])
def test_core_is_killed_while_it_opens_a_network(point):
    with site({"CARREL_FAULT": point}) as daemon, created(daemon, "--allow-domain", daemon.listed) as name:
        with daemon.new_core():
            sh(daemon, name, "true")
        reaches(daemon, name)
        assert sh(daemon, name, get(daemon.secret)).stdout.startswith("carrel: ")


@pytest.mark.needs_faults
def test_a_policy_that_cannot_be_opened_is_tried_again():
    with site({"CARREL_FAULT": "network_begin:1:EIO"}) as daemon, created(daemon, "--allow-domain", daemon.listed) as name:
        reaches(daemon, name)
        assert "a network can't be opened" in daemon.log()


ATTEMPTS = """
while :; do
    curl -s -m 100 http://{listed}/load >/dev/null && echo ok
    curl -s -m 100 -x '' --noproxy '*' http://{secret}/load
    curl -s -m 100 -x http://127.0.0.1:3128 --noproxy '' http://{secret}/load >/dev/null
    curl -s -m 100 -x socks5h://127.0.0.1:3128 --noproxy '' http://{secret}/load
done"""


@pytest.mark.shipped
@pytest.mark.once
def test_egress_and_core_are_killed_under_load():
    """With two sandboxes; one has a command that tries both hosts all the time, and survives everything."""
    with site() as daemon, created(daemon, "--allow-domain", daemon.listed) as name, created(daemon, "--allow-domain", daemon.listed) as other:
        reaches(daemon, name)
        reaches(daemon, other)
        answer = daemon.post(f"/v1/workspaces/{name}/exec", {"command": ATTEMPTS.format(listed=daemon.listed, secret=daemon.secret), "background": True})
        assert answer.status == 201, answer
        path = answer.headers["Location"]
        count = lambda: daemon.get(f"{path}/output").body.count(b"ok")
        for turn in range(ROUNDS):
            before = count()
            assert eventually(lambda: count() > before)
            (victim,) = egress(daemon)
            if turn % 3 == 0:
                os.kill(victim, signal.SIGKILL)
                assert eventually(lambda: egress(daemon) and victim not in egress(daemon))
            elif turn % 3 == 1:
                daemon.kill_core()
            else:
                with daemon.new_core():
                    assert daemon("serve", "--reload").returncode == 0
            after = count()
            assert eventually(lambda: count() > after), daemon.log()[-2000:]
            reaches(daemon, other)
        assert daemon.get(path).json()["state"] == "running"
        assert set(daemon.get(f"{path}/output").body.split()) == {b"ok"}
        assert len(egress(daemon)) == 1


@pytest.mark.serial
@pytest.mark.shipped
@pytest.mark.once
def test_many_workspaces_share_one_egress():
    """And have their networks again after it was killed."""
    with site() as daemon, concurrent.futures.ThreadPoolExecutor(8) as pool:
        def create(_):
            answer = daemon.post("/v1/workspaces", {"network": {"allow": [daemon.listed]}})
            assert answer.status == 201, answer
            return answer.json()["name"]

        def reach(name):
            answer = daemon.post(f"/v1/workspaces/{name}/exec", {"command": get(daemon.listed)})
            assert answer.status == 200 and answer.json()["stdout"] == f"{daemon.listed} /x\n", answer
        names = list(pool.map(create, range(WORKSPACES)))
        list(pool.map(reach, names))
        (victim,) = egress(daemon)
        os.kill(victim, signal.SIGKILL)
        list(pool.map(reach, names))
        assert len(egress(daemon)) == 1 and victim not in egress(daemon)
        list(pool.map(lambda name: daemon.delete(f"/v1/workspaces/{name}"), names))
