"""Tasks of A2A agents that wait for an approval, or whose client waits, when core is killed or the daemon is started again."""
import contextlib
import http.client
import json
import threading
import time

import pytest
from daemons import configure, make_furnished as make_daemon  # noqa: F401
from faults import restarts
from harness import eventually

SETTINGS = 'settings: {permissions: {allow: ["shell(echo:*)"]}}\n'
SHELL = "name: agent\ndescription: asks before it runs\nversion: v1\nkind: shell\n" + SETTINGS
PROGRAM = r'''
import json, sys
line = json.loads(sys.stdin.readline())
print(json.dumps({"status": "input-required", "message": "which? " + line["message"]["parts"][0]["text"]}), flush=True)
line = json.loads(sys.stdin.readline())
print(json.dumps({"status": "completed", "message": "took " + line["message"]["parts"][0]["text"]}), flush=True)
'''
COMMAND = "name: agent\ndescription: a program\nversion: v1\ncommand: [/usr/bin/python3, -c, " + json.dumps(PROGRAM) + "]\n"
INPUT, DONE, FAILED, REJECTED = (f"TASK_STATE_{word}" for word in ("INPUT_REQUIRED", "COMPLETED", "FAILED", "REJECTED"))
COMMAND_LINE = "touch ran && echo $((40 + 2))"


class Client:
    def __init__(self, daemon, yaml):
        self.daemon = daemon
        assert daemon.post("/v1/agents", {"yaml": yaml}).status == 201

    def send(self, words, **more):
        message = {"messageId": "m", "parts": [{"text": words}], **more}
        answer = self.daemon.post("/a2a/agent/message:send", {"message": message})
        assert answer.status == 200, answer
        return answer.json()["task"]

    def get(self, task):
        return self.daemon.get(f"/a2a/agent/tasks/{task['id']}").json()

    def state(self, task):
        return self.get(task)["status"]["state"]

    def tasks(self):
        return self.daemon.get("/a2a/agent/tasks?includeArtifacts=true&historyLength=9").json()["tasks"]


def said(task):
    return task["status"]["message"]["parts"][0]["text"]


def output(task):
    return "".join(part["text"] for one in task["artifacts"] if one["artifactId"] == "stdout" for part in one["parts"])


def interrupt(daemon, kill):
    daemon.kill_core() if kill else daemon.restart()


@pytest.mark.parametrize("kill", [True, False])
def test_a_task_waits_on_for_its_approval_and_runs_what_was_shown(own_daemon, kill):
    client = Client(own_daemon, SHELL)
    waiting = {context: client.send(COMMAND_LINE, **({"contextId": context} if context else {})) for context in ("c", "", "denied")}
    interrupt(own_daemon, kill)
    for context, task in waiting.items():
        assert client.get(task) == task and task["status"]["state"] == INPUT, context
    denied = client.send("deny", taskId=waiting["denied"]["id"])
    assert denied["status"]["state"] == REJECTED and len(denied["history"]) == 2
    for context in ("c", ""):
        done = client.send("approve", taskId=waiting[context]["id"])
        assert done["status"]["state"] == DONE and output(done) == "42\n" and len(done["history"]) == 2, done
    assert eventually(lambda: not own_daemon.get("/v1/workspaces?label=carrel.task").json()["items"])
    interrupt(own_daemon, kill)
    assert {client.state(task) for task in waiting.values()} == {DONE, REJECTED}


def test_an_approved_command_that_runs_is_followed_by_the_next_core(own_daemon):
    client = Client(own_daemon, SHELL)
    task = client.send("echo first; while [ ! -e go ]; do sleep 0.05; done; echo last", contextId="c")
    message = {"messageId": "m", "taskId": task["id"], "parts": [{"text": "approve"}]}
    own_daemon.post("/a2a/agent/message:send", {"message": message, "configuration": {"returnImmediately": True}})
    assert eventually(lambda: output(client.get(task)) == "first\n"), client.get(task)
    own_daemon.kill_core()
    assert client.state(task) == "TASK_STATE_WORKING"
    assert own_daemon.request("PUT", "/v1/workspaces/agent%2Fc/files/go", b"").status in (200, 201)
    assert eventually(lambda: client.state(task) == DONE), client.get(task)
    assert output(client.get(task)) == "first\nlast\n" and len(client.get(task)["history"]) == 2


def test_a_canceled_task_ends_the_command_that_waits_or_runs_in_the_background(own_daemon):
    client = Client(own_daemon, SHELL)
    waits, runs = (client.send("echo first; sleep 1000", contextId="c") for _ in range(2))
    message = {"messageId": "m", "taskId": runs["id"], "parts": [{"text": "approve"}]}
    own_daemon.post("/a2a/agent/message:send", {"message": message, "configuration": {"returnImmediately": True}})
    assert eventually(lambda: output(client.get(runs)) == "first\n"), client.get(runs)
    own_daemon.kill_core()
    for task in (waits, runs):
        assert own_daemon.post(f"/a2a/agent/tasks/{task['id']}:cancel").json()["status"]["state"] == "TASK_STATE_CANCELED"
        get = lambda task=task: own_daemon.get(f"/v1/execs/{task['id']}").json()
        assert eventually(lambda get=get: get()["state"] == "ended" and get()["reason"] == "canceled"), get()


def test_an_approval_that_expires_while_the_daemon_is_down_rejects_its_task(own_daemon):
    client = Client(own_daemon, SHELL)
    configure(own_daemon, "approvals:\n  ttl: 1s\n")
    task = client.send(COMMAND_LINE, contextId="c")
    own_daemon.stop_serving()
    until = time.monotonic() + 1
    assert eventually(lambda: time.monotonic() > until)
    own_daemon.start_serving()
    assert eventually(lambda: client.state(task) == REJECTED), client.get(task)
    assert "in time" in said(client.get(task)) and not client.get(task)["artifacts"]


def test_a_program_that_waits_for_its_approval_begins_after_it(own_daemon):
    client = Client(own_daemon, COMMAND + SETTINGS)
    task = client.send("apples", contextId="c")
    assert task["status"]["state"] == INPUT and "approval" in task["status"]["message"]["parts"][1]["data"]
    own_daemon.kill_core()
    asked = client.send("approve", taskId=task["id"])
    assert asked["status"]["state"] == INPUT and said(asked) == "which? apples", asked
    done = client.send("pears", taskId=task["id"])
    assert done["status"]["state"] == DONE and said(done) == "took pears"
    assert [message["parts"][0]["text"] for message in done["history"]] == ["apples", "approve", "which? apples", "pears", "took pears"]


@pytest.mark.parametrize("settings", ["", SETTINGS])
def test_a_program_that_waits_for_an_answer_fails_and_says_why(own_daemon, settings):
    """It had a pipe to the core that is gone."""
    client = Client(own_daemon, COMMAND + settings)
    task = client.send("apples", contextId="c")
    if settings:
        task = client.send("approve", taskId=task["id"])
    assert said(task) == "which? apples"
    own_daemon.kill_core()
    assert eventually(lambda: client.state(task) == FAILED), client.get(task)
    after = client.get(task)
    assert "the daemon was restarted" in said(after) and after["history"] == task["history"]
    gone = lambda: own_daemon.get(f"/v1/execs/{task['id']}")
    assert eventually(lambda: gone().status == 404 or gone().json()["state"] == "ended"), gone()


def test_a_task_whose_client_waits_is_seen_by_others_and_has_failed_after_a_kill(own_daemon):
    client = Client(own_daemon, SHELL.replace(SETTINGS, ""))

    def send():
        with contextlib.suppress(OSError, http.client.HTTPException):
            client.send("echo begun; sleep 1000", contextId="c")
    waiting = threading.Thread(target=send)
    waiting.start()
    assert eventually(lambda: [task for task in client.tasks() if task["status"]["state"] == "TASK_STATE_WORKING"])
    (task,) = client.tasks()
    own_daemon.kill_core()
    waiting.join()
    (after,) = client.tasks()
    assert after["id"] == task["id"] and after["status"]["state"] == FAILED and "restarted" in said(after)
    assert after["history"] == task["history"]


@pytest.mark.needs_faults
@pytest.mark.parametrize("point", ["core_approval_asked", "core_exec_asked", "core_approval_answer", "core_approval_ended", "core_exec_row"])
def test_a_question_or_an_answer_that_is_cut_off(make_daemon, point):
    """Wherever core is killed: the task waits, or has ended by name, and its command has run at most once."""
    daemon = make_daemon(env={"CARREL_FAULT": f"{point}:1"})
    client = Client(daemon, SHELL)
    with restarts(daemon), contextlib.suppress(OSError, http.client.HTTPException):
        task = client.send("echo x >> ran; cat ran", contextId="c")
        client.send("approve", taskId=task["id"])
    (task,) = client.tasks()
    settled = lambda: client.state(task) in (INPUT, DONE, FAILED)
    assert eventually(settled), client.get(task)
    if client.state(task) == INPUT:
        assert client.send("approve", taskId=task["id"])["status"]["state"] == DONE
    if client.state(task) == DONE:
        assert output(client.get(task)) == "x\n"
    answer = daemon.get("/v1/workspaces/agent%2Fc/files/ran")
    assert answer.status == 404 or answer.body == b"x\n"
    assert not daemon.get("/v1/approvals?state=pending").json()["items"]
