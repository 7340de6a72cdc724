"""kill -9 of core while a task of an A2A agent ends, begins, or makes its context."""
# security: services
import contextlib
import http.client

import pytest
from daemons import make_furnished as make_daemon  # noqa: F401

from harness import eventually

YAML = "name: tools\ndescription: runs commands\nversion: v1\nkind: shell\n"
SEND = {"message": {"messageId": "m", "parts": [{"text": "echo hi"}], "contextId": "c"}}


def tasks(daemon):
    return daemon.get("/a2a/tools/tasks?includeArtifacts=true").json()["tasks"]


@pytest.mark.needs_faults
def test_a_task_whose_end_is_stored_is_there(make_daemon):
    daemon = make_daemon(env={"CARREL_FAULT": "services_task_ended:1"})
    assert daemon.post("/v1/agents", {"yaml": YAML}).status == 201
    with daemon.new_core(), contextlib.suppress(OSError, http.client.HTTPException):
        daemon.post("/a2a/tools/message:send", SEND)
    (task,) = tasks(daemon)
    assert task["status"]["state"] == "TASK_STATE_COMPLETED" and task["artifacts"][0]["parts"] == [{"text": "hi\n"}]


def test_a_core_that_is_killed_leaves_no_task_that_runs_and_no_workspace(own_daemon):
    """Killed at several moments of a task without a context, whose workspace is thrown away."""
    assert own_daemon.post("/v1/agents", {"yaml": YAML}).status == 201
    message = {"message": {"messageId": "m", "parts": [{"text": "echo hi; sleep 1000"}]}, "configuration": {"returnImmediately": True}}
    for is_working in (False, True):
        task = own_daemon.post("/a2a/tools/message:send", message).json()["task"]
        if is_working:
            assert eventually(lambda: own_daemon.get(f"/a2a/tools/tasks/{task['id']}").json()["artifacts"])
        own_daemon.kill_core()
        assert own_daemon.get(f"/a2a/tools/tasks/{task['id']}").json()["status"]["state"] == "TASK_STATE_FAILED"
    assert eventually(lambda: not own_daemon.get("/v1/workspaces?label=carrel.task").json()["items"])
    done = own_daemon.post("/a2a/tools/message:send", SEND).json()["task"]
    own_daemon.kill_core()
    assert {task["id"]: task["status"]["state"] for task in tasks(own_daemon)}[done["id"]] == "TASK_STATE_COMPLETED"


def test_a_context_that_is_used_lives_on_and_one_whose_ttl_has_passed_is_made_again(own_daemon):
    assert own_daemon.post("/v1/agents", {"yaml": YAML}).status == 201
    contexts = lambda: own_daemon.get("/v1/workspaces?label=context_id").json()["items"]
    send = lambda: own_daemon.post("/a2a/tools/message:send", SEND).json()["task"]["status"]["state"]
    assert send() == "TASK_STATE_COMPLETED"
    (first,) = contexts()
    assert own_daemon.request("PATCH", f"/v1/workspaces/{first['id']}", {"ttl": "1h"}).status == 200
    assert send() == "TASK_STATE_COMPLETED"
    assert eventually(lambda: contexts()[0]["expires_at"] >= first["expires_at"])
    assert own_daemon.request("PATCH", f"/v1/workspaces/{first['id']}", {"ttl": "1s"}).status == 200
    assert eventually(lambda: not contexts())
    assert send() == "TASK_STATE_COMPLETED" and contexts()[0]["id"] != first["id"]
