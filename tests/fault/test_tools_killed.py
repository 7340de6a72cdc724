"""kill -9 while a tool is forged, called, rolled back or removed, and disks without room: it ends by name, what was active stays, and
nothing is left behind."""
# security: services
import contextlib
import http.client
import os
import signal
import threading

import pytest
from daemons import configure, descendants, make_furnished as make_daemon  # noqa: F401
from faults import attempt, restarts
from harness import NOT_AHEAD, eventually
from rest import problem
from small_disks import on_small_disk, without_room

pytestmark = pytest.mark.once     # tools are made of workspaces, which other tests kill as every user
CODE = "def run():\n    return 1\n"
TESTS = "import tool\n\n\ndef test():\n    assert tool.run() == 1\n"
GATE = "import os\nimport time\n\n\ndef test():\n    while not os.path.exists('/workspace/go'):\n        time.sleep(0.01)\n    assert 0\n"
SLOW = "import time\nimport tool\n\n\ndef test():\n    time.sleep(1000)\n"


def desks(daemon):
    return daemon.get("/v1/workspaces?label=carrel.service=tools").json()["items"]


def ask(daemon, path, body):
    """In a thread: its answer is lost with core."""
    def run():
        with contextlib.suppress(OSError, http.client.HTTPException):
            daemon.post(path, body)
    thread = threading.Thread(target=run)
    thread.start()
    return thread


@pytest.mark.parametrize("state, more", [("installing", {"requires": ["markupsafe"]}), ("testing", {"tests": SLOW})])
def test_what_was_being_forged_is_dormant_and_what_was_active_stays(make_daemon, state, more):
    daemon = make_daemon()
    tool = {"name": "one", "code": CODE, "tests": TESTS}
    assert daemon.post("/v1/tools", tool).json()["state"] == "active"
    thread = ask(daemon, "/v1/tools", {**tool, **more})
    assert eventually(lambda: daemon.get("/v1/tools/one/versions").json()["items"][0]["state"] == state)
    daemon.kill_core()
    thread.join()
    assert eventually(lambda: daemon.get("/v1/tools/one/versions").status == 200)
    newest, active = daemon.get("/v1/tools/one/versions").json()["items"]
    assert (newest["state"], newest["error"], newest["workspace"]) == ("dormant", "the daemon ended while it was forged", None)
    assert active["state"] == "active" and daemon.post("/v1/tools/one/call", {}).json()["result"] == 1
    assert eventually(lambda: [w["id"] for w in desks(daemon)] == [active["workspace"]])
    assert daemon.post("/v1/tools", tool).json()["version"] == 3  # and it can be removed at once
    assert daemon.delete("/v1/tools/one").status == 204 and eventually(lambda: not desks(daemon))


def test_code_that_ran_is_ended_and_its_workspace_removed(make_daemon):
    daemon = make_daemon()
    thread = ask(daemon, "/v1/code", {"file": "x.sh", "code": "sleep 1000"})
    listed = lambda: daemon.get("/v1/workspaces?label=carrel.service=code").json()["items"]
    assert eventually(lambda: listed() and listed()[0]["state"] == "running")
    daemon.kill_core()
    thread.join()
    assert eventually(lambda: daemon.get("/healthz").status == 200 and not listed())


# ---- each step of forging, by the points of the code ----

GOOD = {"name": "one", "code": CODE, "tests": TESTS}
BAD = {**GOOD, "tests": "def test():\n    assert 0\n"}


def start_over(daemon, fault):
    """With one active version, then the fault: it happens in the next one."""
    assert daemon.post("/v1/tools", GOOD).json()["state"] == "active"
    daemon.stop_serving()
    daemon.env["CARREL_FAULT"] = fault
    daemon.start_serving()
    return daemon


@pytest.mark.needs_faults
@pytest.mark.parametrize("point, body", [("tool_creating", GOOD), ("tool_installing", GOOD), ("tool_testing", GOOD), ("tool_activate", GOOD), ("tool_active", GOOD),
                                         ("tool_cleanup", BAD), ("tool_dormant", BAD)])
def test_core_dies_in_each_state_of_forging(make_daemon, point, body):
    daemon = start_over(make_daemon(), f"{point}:1")
    with restarts(daemon):
        answer = attempt(daemon, "POST", "/v1/tools", body)
    versions = daemon.get("/v1/tools/one/versions").json()["items"]
    # At most one is active, and that one serves; the row of the other says why it isn't.
    active, = (one for one in versions if one["state"] == "active")
    for one in versions:
        if one["version"] == 2 and one is not active:
            assert one["state"] == "dormant" and one["error"] in ("the daemon ended while it was forged", "its tests have failed"), one
    assert active["version"] == 1 or (point in ("tool_activate", "tool_active") and active["version"] == 2), versions
    assert not answer or answer.json()["version"] == 2
    assert daemon.post("/v1/tools/one/call", {}).json()["result"] == 1
    kept = {one["workspace"] for one in versions if one["workspace"]}
    assert eventually(lambda: {one["id"] for one in desks(daemon)} == kept), (desks(daemon), kept)
    assert daemon.post("/v1/tools", GOOD).json()["state"] == "active"
    assert daemon.delete("/v1/tools/one").status == 204 and eventually(lambda: not desks(daemon))


@pytest.mark.needs_faults
@pytest.mark.parametrize("point", ["tool_activate", "tool_active", "tool_remove"])
def test_core_dies_in_a_rollback_or_a_removal(make_daemon, point):
    daemon = make_daemon()
    assert daemon.post("/v1/tools", GOOD).json()["version"] == 1
    start_over(daemon, f"{point}:1")
    with restarts(daemon):
        if point == "tool_remove":
            attempt(daemon, "DELETE", "/v1/tools/one")
        else:
            attempt(daemon, "POST", "/v1/tools/one/rollback", {})
    if point == "tool_remove":
        assert daemon.delete("/v1/tools/one").status in (204, 404) and eventually(lambda: not desks(daemon))
        return
    versions = daemon.get("/v1/tools/one/versions").json()["items"]
    assert sorted(one["state"] for one in versions) == ["active", "dormant"]
    assert daemon.post("/v1/tools/one/call", {}).json()["result"] == 1
    assert daemon.post("/v1/tools/one/rollback", {"version": 1}).json()["state"] == "active"
    assert eventually(lambda: len(desks(daemon)) == 2)


# ---- by signals ----

def test_a_call_that_core_dies_under_leaves_the_version_active(make_daemon):
    daemon = make_daemon()
    tool = {"name": "one", "code": "import time\n\n\ndef run(s=0):\n    time.sleep(s)\n    return 1\n", "tests": TESTS}
    desk = daemon.post("/v1/tools", tool).json()["workspace"]
    thread = ask(daemon, "/v1/tools/one/call", {"arguments": {"s": 1000}})
    assert eventually(lambda: [(one["id"], one["state"]) for one in desks(daemon)] == [(desk, "running")])
    daemon.kill_core()
    thread.join()
    assert eventually(lambda: daemon.get("/healthz").status == 200)
    assert daemon.post("/v1/tools/one/call", {}).json()["result"] == 1
    assert eventually(lambda: [(one["id"], one["state"]) for one in desks(daemon)] == [(desk, "ready")]), desks(daemon)


def test_the_launcher_dies_while_tests_run(make_daemon):
    daemon = make_daemon()
    assert daemon.post("/v1/tools", GOOD).json()["state"] == "active"
    thread = ask(daemon, "/v1/tools", {**GOOD, "tests": SLOW})
    assert eventually(lambda: daemon.get("/v1/tools/one/versions").json()["items"][0]["state"] == "testing")
    with restarts(daemon):
        os.kill(daemon.process.pid, signal.SIGKILL)
    thread.join()
    newest, active = daemon.get("/v1/tools/one/versions").json()["items"]
    assert (newest["state"], newest["error"]) == ("dormant", "the daemon ended while it was forged"), newest
    assert daemon.post("/v1/tools/one/call", {}).json()["result"] == 1
    assert eventually(lambda: [one["id"] for one in desks(daemon)] == [active["workspace"]])


def test_the_writer_dies_while_tests_run_and_their_end_is_stored(make_daemon):
    daemon = make_daemon()
    assert daemon.post("/v1/tools", GOOD).json()["state"] == "active"
    thread = ask(daemon, "/v1/tools", {**GOOD, "tests": GATE})
    assert eventually(lambda: daemon.get("/v1/tools/one/versions").json()["items"][0]["state"] == "testing")
    os.kill(next(pid for pid, (_, name) in descendants(daemon.process.pid).items() if name == "carrel-writer"), signal.SIGKILL)
    bench, = (one["id"] for one in desks(daemon) if one["labels"]["carrel.tool-version"] == "2")      # that of version 1 may be going
    assert eventually(lambda: daemon.request("PUT", f"/v1/workspaces/{bench}/files/go", b"").status in (200, 201))
    thread.join()
    for _ in range(2):      # in memory, and in the store
        newest, active = daemon.get("/v1/tools/one/versions").json()["items"]
        assert (newest["state"], newest["error"]) == ("dormant", "its tests have failed"), newest
        assert daemon.post("/v1/tools/one/call", {}).json()["result"] == 1
        assert eventually(lambda: [one["id"] for one in desks(daemon)] == [active["workspace"]])
        daemon.stop_serving()
        daemon.start_serving()


@pytest.mark.needs_root
def test_a_disk_without_room_fails_by_name_and_the_active_version_serves():
    with on_small_disk("size=400m") as daemon:
        configure(daemon, "environments:\n  min_free_bytes: 0\n")
        made = daemon.post("/v1/tools", GOOD).json()
        desk = made["workspace"]
        assert made["state"] == "active" and eventually(lambda: [one["id"] for one in desks(daemon)] == [desk])
        with without_room(daemon):
            problem(daemon.post("/v1/code", {"code": "print(1)", "limits": NOT_AHEAD}), 507, "disk_full", "No space left on device")
        assert eventually(daemon.is_ready)
        with without_room(daemon):      # anew: what failed has made room
            # A version whose environment is there needs hardly any room; one that has to be installed does.
            made = daemon.post("/v1/tools", {**GOOD, "requires": ["markupsafe"]}).json()
            assert made["state"] == "dormant" and "space" in made["error"], made
            assert daemon.post("/v1/tools/one/call", {}).json()["result"] == 1
            assert daemon.get("/v1/tools/one").json()["state"] == "active"
        assert eventually(daemon.is_ready)
        # The disk fills while the tests run: the tests fail, and their output says why.
        greedy = {**GOOD, "tests": "def test():\n    with open('/workspace/much', 'wb') as out:\n        while True:\n            out.write(bytes(1 << 20))\n"}
        made = daemon.post("/v1/tools", greedy).json()
        assert made["state"] == "dormant" and ("No space left" in made["output"] or "disk_limit" in made["error"]), made
        assert eventually(lambda: [one["id"] for one in desks(daemon)] == [desk])
        assert daemon.post("/v1/tools", GOOD).json()["state"] == "active"
