"""When workspaces expire: contexts of agents when they weren't used for their ttl, all others at the time that was said."""
import datetime
import threading

import pytest

from daemons import make_furnished as make_daemon  # noqa: F401
from harness import eventually
from rest import created, quoted
from test_a2a import ASKS, TOOLS, Agent, add, text

PATH = "/v1/workspaces/" + quoted("tools/c")


def when(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def seconds(shown):
    """Between its last use and its end."""
    return (when(shown["expires_at"]) - when(shown["last_used_at"])).total_seconds()


def agent_of(daemon, ttl, yaml=TOOLS):
    name = add(daemon, yaml + f"ttl: {ttl}\n")["name"]
    return Agent(daemon, name)


def passes(daemon, path, more):
    """Waits until the daemon says by itself that the workspace is there for so many seconds longer than now."""
    first = when(daemon.get(path).json()["expires_at"])
    later = lambda: when(daemon.get(path).json()["expires_at"]) >= first + datetime.timedelta(seconds=more)
    assert eventually(later), daemon.get(path)


@pytest.mark.once
def test_the_ttl_of_a_context_runs_from_its_last_use(make_daemon):
    daemon = make_daemon()
    agent = agent_of(daemon, "1h")
    agent.send("true", contextId="c")
    shown = daemon.get(PATH).json()
    assert seconds(shown) == 3600
    for use in (lambda: agent.send("true", contextId="c"), lambda: daemon.request("PUT", PATH + "/files/f", b"x"),
                lambda: daemon.post(PATH + "/exec", {"argv": ["true"]})):
        before = shown
        use()
        shown = daemon.get(PATH).json()
        assert when(shown["expires_at"]) > when(before["expires_at"]) and seconds(shown) == 3600
    # A longer ttl of the agent is that of a context from its next task on; a shorter one of the context is from now on.
    agent_of(daemon, "2h")
    agent.send("true", contextId="c")
    assert eventually(lambda: seconds(daemon.get(PATH).json()) == 7200)
    assert daemon.request("PATCH", PATH, {"ttl": "3h"}).status == 200
    assert seconds(daemon.get(PATH).json()) == 3 * 3600
    daemon.restart()
    assert 3 * 3600 <= seconds(daemon.get(PATH).json()) < 3 * 3600 + 60
    assert daemon.request("PATCH", PATH, {"ttl": None}).status == 200
    assert daemon.get(PATH).json()["expires_at"] is None


def test_a_context_does_not_expire_while_a_task_runs(make_daemon):
    daemon = make_daemon()
    agent = agent_of(daemon, "1s")
    task = agent.send("while [ ! -e go ]; do sleep 0.05; done; echo done", now=True, contextId="c")
    agent.await_state(task, "TASK_STATE_WORKING")
    passes(daemon, PATH, 3)
    assert daemon.request("PUT", PATH + "/files/go", b"").status in (200, 201, 204)
    assert text(agent.await_state(task, "TASK_STATE_COMPLETED")) == "done\n"
    assert eventually(lambda: daemon.get(PATH).status == 404)


@pytest.mark.once
def test_what_runs_in_a_context_is_a_use_of_now_also_after_core_was_killed(make_daemon):
    daemon = make_daemon()
    agent = agent_of(daemon, "1h")
    task = agent.send("while [ ! -e go ]; do sleep 0.05; done", now=True, contextId="c")
    agent.await_state(task, "TASK_STATE_WORKING")
    passes(daemon, PATH, 5)     # long before its hour is over
    before = when(daemon.get(PATH).json()["last_used_at"])
    daemon.kill_core()
    shown = daemon.get(PATH).json()
    assert when(shown["last_used_at"]) >= before - datetime.timedelta(seconds=1) and seconds(shown) >= 3600


def test_a_context_does_not_expire_while_a_command_waits_for_its_approval(make_daemon):
    daemon = make_daemon()
    agent, path = agent_of(daemon, "1s", ASKS), "/v1/workspaces/" + quoted("asks/c")
    task = agent.send("touch marked", now=True, contextId="c")
    agent.await_state(task, "TASK_STATE_INPUT_REQUIRED")
    passes(daemon, path, 3)
    daemon.kill_core()
    passes(daemon, path, 2)
    answer = agent.call("SendMessage", message=agent.message("approve", taskId=task["id"], contextId="c"))["task"]
    assert agent.await_state(answer, "TASK_STATE_COMPLETED")
    assert eventually(lambda: daemon.get(path).status == 404)


def test_a_context_does_not_expire_while_a_process_is_left_in_it(make_daemon):
    daemon = make_daemon()
    agent = agent_of(daemon, "1s")
    agent.send("(while [ ! -e go ]; do sleep 0.05; done) >/dev/null 2>&1 &", contextId="c")
    passes(daemon, PATH, 3)
    daemon.request("PUT", PATH + "/files/go", b"")
    assert eventually(lambda: daemon.get(PATH).status == 404)


def test_a_throw_away_workspace_lives_as_long_as_its_task(make_daemon):
    daemon = make_daemon()
    agent = agent_of(daemon, "1s")
    task = agent.send("while [ ! -e go ]; do sleep 0.05; done; echo done", now=True)
    agent.await_state(task, "TASK_STATE_WORKING")
    path = "/v1/workspaces/" + daemon.get("/v1/workspaces?label=carrel.task").json()["items"][0]["id"]
    passes(daemon, path, 3)
    daemon.request("PUT", path + "/files/go", b"")
    assert text(agent.await_state(task, "TASK_STATE_COMPLETED")) == "done\n"


@pytest.mark.once
def test_another_workspace_expires_at_the_time_that_was_said_also_while_a_command_runs(daemon):
    with created(daemon, name="short", ttl="1h") as made:
        daemon.post("/v1/workspaces/short/exec", {"argv": ["true"]})
        assert daemon.get("/v1/workspaces/short").json()["expires_at"] == made["expires_at"]
        answers = []
        ask = threading.Thread(target=lambda: answers.append(daemon.post("/v1/workspaces/short/exec", {"argv": ["sleep", "1000"]})))
        ask.start()
        assert eventually(lambda: daemon.get("/v1/workspaces/short").json()["state"] == "running")
        assert daemon.request("PATCH", "/v1/workspaces/short", {"ttl": "1s"}).status == 200
        ask.join()
        assert answers[0].json()["reason"] == "canceled", answers
        assert eventually(lambda: daemon.get("/v1/workspaces/short").status == 404)
        assert "expired" in daemon.get("/v1/workspaces/short").json()["detail"]
