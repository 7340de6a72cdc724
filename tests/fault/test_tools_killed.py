"""kill -9 of core while a tool is forged or called: it ends by name, what was active stays, and nothing is left behind."""
import contextlib
import http.client
import threading

import pytest
from harness import eventually

CODE = "def run():\n    return 1\n"
TESTS = "import tool\n\n\ndef test():\n    assert tool.run() == 1\n"
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
