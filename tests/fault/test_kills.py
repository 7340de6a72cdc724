"""kill -9 of core, of the launcher, of a sandbox's init, at any moment and under load. CARREL_SOAK=N makes it take N
times as long, CARREL_SOAK=full thirty times."""
# security: daemon
import os
import random
import time

import pytest

from daemons import READY_SECONDS
from faults import READY_AGAIN_SECONDS, Inventory, Load, inits, kill, remove_all, restarts
from harness import NOT_AHEAD, eventually

TIMES = {"": 1, "full": 30}.get(os.environ.get("CARREL_SOAK", "")) or int(os.environ["CARREL_SOAK"])
SECONDS = 3 * TIMES


def kill_core(daemon, _, seconds):
    core = daemon.core_pid()
    if core is None:
        return
    kill(core)
    assert eventually(lambda: daemon.core_pid() not in (core, None), seconds)
    assert eventually(daemon.is_ready, seconds)


def kill_launcher(daemon, _, seconds):
    daemon.process.kill()
    daemon.process.wait()
    daemon.start_serving(wait=False)
    assert eventually(daemon.is_ready, seconds)


def kill_init(daemon, dice, _):
    found = inits(daemon)
    if found:
        kill(dice.choice(found))


def stop_in_order(daemon, _, seconds):
    assert daemon.stop_serving() == 0
    daemon.start_serving(wait=False)
    assert eventually(daemon.is_ready, seconds)


@pytest.mark.once
@pytest.mark.shipped
@pytest.mark.parametrize("what", [kill_core, kill_launcher, kill_init], ids=["core", "launcher", "init"])
def test_what_was_acknowledged_survives(own_daemon, what):
    survives(own_daemon, [what], READY_SECONDS)


@pytest.mark.serial
def test_what_was_acknowledged_survives_anything_and_soon(own_daemon):
    survives(own_daemon, [kill_core, kill_launcher, kill_init, stop_in_order], READY_AGAIN_SECONDS)


def survives(daemon, what, seconds):
    """One of `what` happens now and then under load; within so many seconds the daemon is ready again."""
    dice = random.Random(len(what))
    inventory = Inventory(daemon)
    end, kills = time.monotonic() + SECONDS, 0
    with Load(daemon, clients=4, seed=len(what)) as load:
        # On a busy machine it takes longer until enough has happened.
        while (time.monotonic() < end or kills < 2 or load.counts["POST exec"] <= 10) and not load.faults:
            time.sleep(dice.uniform(0, 0.3))
            dice.choice(what)(daemon, dice, seconds)
            kills += 1
    print(f"\n{kills} kills, {dict(load.counts)}")
    load.check()
    remove_all(daemon)
    inventory.check()


@pytest.mark.kernel
def test_an_init_that_is_killed_is_a_sandbox_that_ends(own_daemon):
    """Its execs end canceled, and the next one gets a new sandbox, unseen by the caller."""
    daemon = own_daemon
    assert daemon.post("/v1/workspaces", {"name": "a", "limits": NOT_AHEAD}).status == 201
    started = daemon.post("/v1/workspaces/a/exec", {"argv": ["sleep", "100"], "background": True})
    assert started.status == 201 and eventually(lambda: len(inits(daemon)) == 1)
    kill(inits(daemon)[0])
    assert eventually(lambda: daemon.get(started.headers["Location"]).json()["state"] == "ended")
    found = daemon.get(started.headers["Location"]).json()
    assert found["reason"] == "canceled" and found["exit_code"] == 130, found
    answer = daemon.post("/v1/workspaces/a/exec", {"argv": ["echo", "again"]})
    assert answer.status == 200 and answer.json()["stdout"] == "again\n", answer


@pytest.mark.kernel
def test_an_upload_whose_sandbox_is_killed_can_be_tried_again(own_daemon):
    """The file was made by a user and in a mount that are gone, so that the next sandbox can't give it its name."""
    daemon, data = own_daemon, os.urandom(200000)
    assert daemon.post("/v1/workspaces", {"name": "a", "limits": NOT_AHEAD}).status == 201
    upload = daemon.connection()
    upload.putrequest("PUT", "/v1/workspaces/a/files/f")
    upload.putheader("Content-Length", str(len(data)))
    upload.endheaders()
    upload.send(data[:100000])
    assert eventually(lambda: b"\ncarrel_file_written_bytes_total 100000\n" in daemon.get("/metrics").body)
    kill(inits(daemon)[0])
    assert eventually(lambda: not daemon.get("/v1/workspaces/a").json()["warm"])
    upload.send(data[100000:])
    answer = upload.getresponse()
    assert answer.status == 503 and b"ended during the upload of 'f'" in answer.read(), answer.status
    assert daemon.get("/v1/workspaces/a/files/f").status == 404
    assert daemon.request("PUT", "/v1/workspaces/a/files/f", data).status == 201
    assert daemon.get("/v1/workspaces/a/files/f").body == data


def test_what_runs_in_the_background_survives_a_core(own_daemon):
    daemon = own_daemon
    assert daemon.post("/v1/workspaces", {"name": "a"}).status == 201
    body = {"command": "echo one; read line < go; echo two; exit 5", "background": True}
    assert daemon.post("/v1/workspaces/a/exec", {"argv": ["mkfifo", "go"]}).status == 200
    path = daemon.post("/v1/workspaces/a/exec", body).headers["Location"]
    assert eventually(lambda: daemon.get(f"{path}/output").body == b"one\n")
    for _ in range(3):
        with restarts(daemon):
            kill(daemon.core_pid())
        assert daemon.get(path).json()["state"] == "running", daemon.get(path)
    assert daemon.post("/v1/workspaces/a/exec", {"command": "echo > go"}).status == 200
    assert eventually(lambda: daemon.get(path).json()["state"] == "ended")
    assert daemon.get(path).json()["exit_code"] == 5 and daemon.get(f"{path}/output").body == b"one\ntwo\n"
    # One that ends while there is no core.
    path = daemon.post("/v1/workspaces/a/exec", {"command": "sleep 0.2; exit 6", "background": True}).headers["Location"]
    with restarts(daemon):
        kill(daemon.core_pid())
    assert eventually(lambda: daemon.get(path).json()["state"] == "ended")
    assert daemon.get(path).json()["exit_code"] == 6, daemon.get(path)
