"""A2A: agents, contexts and tasks, by JSON-RPC and HTTP+JSON."""
# security: services
import contextlib
import email.utils
import json
import pathlib
import sqlite3
import threading
import urllib.parse

import pytest

from daemons import make_furnished as make_daemon, serving_anew  # noqa: F401
from doors import open_door
from harness import eventually
from rest import problem

TOOLS = """
name: tools
description: runs commands
version: "1.0"
default: true
skills:
  - {id: shell, name: Shell, description: runs a command, tags: [shell]}
kind: shell
namespace: team1
"""
ASKS = """
name: asks
description: asks before it runs
version: "1.0"
kind: shell
auth: none
settings: {permissions: {allow: ["shell(echo:*)"], deny: ["shell(curl:*)"]}}
"""
ENDED = {"TASK_STATE_COMPLETED", "TASK_STATE_FAILED", "TASK_STATE_CANCELED", "TASK_STATE_REJECTED"}


class Agent:
    """A client of one agent, by JSON-RPC."""

    def __init__(self, daemon, name, **headers):
        self.daemon, self.path, self.headers = daemon, f"/a2a/{name}", headers

    def ask(self, method, **params):
        answer = self.daemon.post(self.path, {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}, headers=self.headers)
        assert answer.status == 200, answer
        body = answer.json()
        assert body["jsonrpc"] == "2.0" and body["id"] == 7
        return body

    def call(self, method, **params):
        body = self.ask(method, **params)
        assert "result" in body, body
        return body["result"]

    def fails(self, code, method, **params):
        error = self.ask(method, **params)["error"]
        assert error["code"] == code, error
        assert error["data"][0]["reason"]
        return error["message"]

    def message(self, *parts, **more):
        parts = [{"text": part} if isinstance(part, str) else part for part in parts]
        return {"messageId": "m1", "role": "ROLE_USER", "parts": parts, **more}

    def send(self, text, now=False, **more):
        return self.call("SendMessage", message=self.message(text, **more), configuration={"returnImmediately": now})["task"]

    def get(self, task):
        return self.call("GetTask", id=task["id"])

    def await_state(self, task, *states):
        assert eventually(lambda: self.get(task)["status"]["state"] in states), self.get(task)
        return self.get(task)

    def stream(self, method, **params):
        connection = self.daemon.connection()
        connection.request("POST", self.path, json.dumps({"jsonrpc": "2.0", "id": 9, "method": method, "params": params}),
                           {"Content-Type": "application/json", **self.headers})
        return Stream(connection)


class Stream:
    def __init__(self, connection):
        self.connection, self.response = connection, connection.getresponse()
        assert self.response.status == 200 and self.response.headers["Content-Type"] == "text/event-stream", self.response.read()

    def __iter__(self):
        for line in self.response:
            if line.startswith(b"data: "):
                body = json.loads(line[6:])
                yield body["result"] if "jsonrpc" in body else body
        self.connection.close()


def text(task, artifact="stdout"):
    return "".join(part["text"] for one in task["artifacts"] if one["artifactId"] == artifact for part in one["parts"])


def add(daemon, yaml):
    answer = daemon.post("/v1/agents", {"yaml": yaml})
    assert answer.status in (200, 201), answer
    return answer.json()


@pytest.fixture(scope="module")
def shared(furnished_home):
    with serving_anew(source=furnished_home) as daemon:
        add(daemon, TOOLS)
        add(daemon, ASKS)
        yield daemon


@pytest.fixture
def tools(shared):
    return Agent(shared, "tools")


@pytest.fixture
def asks(shared):
    return Agent(shared, "asks")


# ---- agents ----

def test_a_slash_at_the_end_changes_nothing(shared, tools):
    """As clients write that join the address of an agent with an empty path, or with one that ends so."""
    request = {"jsonrpc": "2.0", "id": 7, "method": "ListTasks", "params": {"contextId": "ctx-none"}}
    plain, slash = (shared.post(path, request) for path in ("/a2a/tools", "/a2a/tools/"))
    assert (plain.status, plain.json()) == (slash.status, slash.json()) and plain.status == 200 and "result" in plain.json(), (plain, slash)
    for path in ("/a2a/tools/.well-known/agent-card.json", "/.well-known/agent-card.json"):
        card, slash = shared.get(path), shared.get(f"{path}/")
        assert card.status == slash.status == 200 and card.json() == slash.json()
    sent = shared.post("/a2a/tools/message:send/", {"message": tools.message("echo hi", contextId="ctx-slash")}, headers={"A2A-Version": "1.0"})
    assert sent.status == 200, sent
    task = sent.json()["task"]["id"]
    for path in ("/a2a/tools/tasks", f"/a2a/tools/tasks/{task}"):
        one, other = (shared.get(path + end, headers={"A2A-Version": "1.0"}) for end in ("", "/"))
        assert one.status == other.status == 200, (one, other)
    assert shared.post("/a2a/tools//", request).status == 404
    problem(shared.get("/v1/agents/"), 404, "not_found")


def test_agents_are_added_shown_replaced_and_removed(daemon, tmp_path):
    file = tmp_path / "agent.yaml"
    file.write_text(TOOLS.replace("default: true\n", "settings: settings.json\n"))
    (tmp_path / "settings.json").write_text('{"permissions": {"allow": ["shell(ls:*)"]}}')
    assert daemon("agent", "add", file).stdout == "tools\n"
    listed = daemon("agent", "ls").stdout.splitlines()
    assert listed[0].split() == ["NAME", "VERSION", "KIND", "AUTH", "AGE", "DESCRIPTION"] and listed[1].startswith("tools  1.0")
    shown = daemon.get("/v1/agents/tools").json()
    assert shown["settings"] == {"permissions": {"allow": ["shell(ls:*)"]}} and shown["ttl_ms"] == 7 * 24 * 3600 * 1000
    assert shown["skills"][0]["tags"] == ["shell"] and shown["kind"] == "shell"
    assert daemon("agent", "show", "tools").stdout == shown["yaml"]
    again = daemon.post("/v1/agents", {"yaml": TOOLS.replace('"1.0"', '"1.1"')})
    assert again.status == 200 and again.json()["id"] == shown["id"] and again.json()["version"] == "1.1"
    checked = daemon.post("/v1/agents", {"yaml": TOOLS.replace("name: tools", "name: other"), "check": True})
    problem(checked, 409, "conflict", "default")
    problem(daemon.get("/v1/agents/other"), 404, "not_found")
    assert daemon("agent", "rm", "tools").stdout == "removed tools\n"
    assert daemon("agent", "ls", "-o", "json").stdout.strip() == "[]"
    problem(daemon.delete("/v1/agents/tools"), 404, "not_found")


@pytest.mark.once
@pytest.mark.parametrize("change, words", [
    (("kind: shell", "kind: chat"), ("line 8", "kind")), (("kind: shell", "kindd: shell"), ("line 8", "kindd")),
    (("kind: shell", ""), ("kind", "command")), (("kind: shell", "kind: shell\ncommand: [x]"), ("kind", "command")),
    (("kind: shell", "command: []"), ("command",)), (("name: tools", "name: To ols"), ("name",)), (("namespace: team1", "auth: maybe"), ("auth",)),
    (("namespace: team1", "isolation: gvisor"), ("isolation",)), (("namespace: team1", "ttl: soon"), ("ttl",)),
    (("tags: [shell]}", "tags: [shell], colour: red}"), ("line 7", "skills", "colour")), (("namespace: team1", "template: nosuch"), ("template", "nosuch")),
    (("namespace: team1", "limits: {memory: 1}"), ("limits",)), (("namespace: team1", "extended: {}"), ("line 9", "extended", "neither")),
    (("namespace: team1", "extended: true"), ("line 9", "extended", "map")), (("namespace: team1", "extended: {colour: red}"), ("line 9", "extended", "colour")),
    (("namespace: team1", "extended: {skills: [{id: x}]}"), ("line 9", "extended", "skills", "name"))])
def test_an_invalid_agent_is_named_with_its_line(daemon, change, words):
    answer = daemon.post("/v1/agents", {"yaml": TOOLS.replace(*change)})
    assert answer.status in (400, 404), answer
    for word in words:
        assert word in answer.json()["detail"] + (answer.json()["hint"] or ""), answer


# ---- the card ----

def test_the_card_is_served_at_both_places_and_cached(shared):
    card = shared.get("/a2a/tools/.well-known/agent-card.json")
    assert card.status == 200 and "max-age=" in card.headers["Cache-Control"] and card.headers["ETag"]
    body = card.json()
    assert body["supportedInterfaces"][0] == {"url": "http://localhost/a2a/tools", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    assert body["skills"][0]["id"] == "shell" and body["capabilities"]["streaming"] and "bearer" in body["securitySchemes"]
    assert shared.get("/.well-known/agent-card.json").json() == body
    again = shared.get("/a2a/tools/.well-known/agent-card.json", headers={"If-None-Match": card.headers["ETag"]})
    assert again.status == 304 and not again.body
    assert "securitySchemes" not in shared.get("/a2a/asks/.well-known/agent-card.json").json()
    problem(shared.get("/a2a/nosuch/.well-known/agent-card.json"), 404, "not_found")


def test_the_card_has_a_date_by_which_it_is_known_again(own_daemon):
    """The date of its last change; of two cards of one second only the later one is known by it."""
    path, seen = "/a2a/tools/.well-known/agent-card.json", {}

    def look(**headers):
        card = own_daemon.get(path, headers=headers)
        if card.status == 200:
            date = email.utils.parsedate_to_datetime(card.headers["Last-Modified"])
            assert date <= email.utils.parsedate_to_datetime(card.headers["Date"]) and date.utcoffset().total_seconds() == 0
        return card

    def is_known(date, **headers):
        return look(**{"If-Modified-Since": date, **headers}).status == 304
    for version in ("1", "2", "3"):
        add(own_daemon, TOOLS.replace('"1.0"', f'"{version}"'))
        for date in seen.values():
            assert not is_known(date), (version, seen)
        assert eventually(lambda: is_known(look().headers["Last-Modified"]))
        card = look()
        seen[version] = date = card.headers["Last-Modified"]
        assert card.json()["version"] == version and date == look().headers["Last-Modified"]
        again = look(**{"If-Modified-Since": date})
        assert again.status == 304 and not again.body and again.headers["Last-Modified"] == date and again.headers["ETag"] == card.headers["ETag"]
        assert is_known("Thu, 01 Jan 1970 00:00:00 GMT", **{"If-None-Match": card.headers["ETag"]})
        assert not is_known(date, **{"If-None-Match": '"another"'}) and not is_known("Thu, 01 Jan 1970 00:00:00 GMT") and not is_known("soon") and not is_known("")
    assert len(set(seen.values())) == 3


def test_the_extended_card_is_for_those_who_show_who_they_are(make_daemon):
    daemon = make_daemon()
    more = "extended:\n  description: runs everything\n  skills: [{id: root, name: Root, description: runs as root, tags: [root]}]\n"
    add(daemon, TOOLS + more)
    add(daemon, ASKS + more)
    add(daemon, ASKS.replace("name: asks", "name: plain"))
    shown = daemon.get("/v1/agents/tools").json()["extended"]
    assert shown["description"] == "runs everything" and shown["skills"][0]["id"] == "root" and daemon.get("/v1/agents/plain").json()["extended"] is None
    door = open_door(daemon)
    for name in ("tools", "asks"):
        public = door.get(f"/a2a/{name}/.well-known/agent-card.json", bearer=False).json()
        assert public["capabilities"] == {"streaming": True, "pushNotifications": True, "extendedAgentCard": True}
        assert public["supportsAuthenticatedExtendedCard"] is True and public["description"] != "runs everything" and "bearer" in public["securitySchemes"]
        path = f"/a2a/{name}/extendedAgentCard"
        card = door.get(path).json()
        assert card["description"] == "runs everything" and card["skills"] == public["skills"] + shown["skills"]
        assert {**card, "description": "", "skills": []} == {**public, "description": "", "skills": []}
        for method in ("GetExtendedAgentCard", "agent/getAuthenticatedExtendedCard"):
            body = {"jsonrpc": "2.0", "id": 1, "method": method}
            assert door.post(f"/a2a/{name}", body).json()["result"] == card
            without = door.post(f"/a2a/{name}", body, bearer=False)
            if name == "asks":      # its clients need no token for anything else
                assert without.status == 200 and without.json()["error"]["code"] == -32007 and "token" in without.json()["error"]["message"]
            else:
                assert without.status in (401, 429)
            assert door.post(f"/a2a/{name}", body, headers={"Authorization": "Bearer carrel_wrong"}).status in (401, 429)
        without = door.get(path, bearer=False)
        assert without.status == 400 and "EXTENDED_AGENT_CARD_NOT_CONFIGURED" in str(without.json()) if name == "asks" else without.status in (401, 429)
        bound = daemon.post("/v1/tokens", {"scope": "user", "workspace": daemon.post("/v1/workspaces", {}).json()["id"]}).json()["text"]
        assert door.get(path, headers={"Authorization": f"Bearer {bound}"}).status == 403
    public = door.get("/a2a/plain/.well-known/agent-card.json", bearer=False).json()
    assert public["capabilities"]["extendedAgentCard"] is False and "supportsAuthenticatedExtendedCard" not in public
    for how in ({}, {"bearer": False}, {"headers": {"Authorization": "Bearer of-the-gateway"}}):
        assert door.get("/a2a/plain/extendedAgentCard", **how).json()["error"]["details"][0]["reason"] == "EXTENDED_AGENT_CARD_NOT_CONFIGURED"


# ---- shell ----

def test_a_message_is_a_command_in_the_workspace_of_its_context(shared, tools):
    first = tools.send("echo one > data/kept; ls -A", contextId="ctx-1")
    assert first["status"]["state"] == "TASK_STATE_COMPLETED" and first["contextId"] == "ctx-1"
    assert set(text(first).split()) >= {"scripts", "data", ".venv", "repos", "output", ".context.json"}
    second = tools.send("cat data/kept; cat .context.json", contextId="ctx-1")
    assert text(second).startswith("one\n") and '"agent": "tools"' in text(second) and '"namespace": "team1"' in text(second)
    assert second["id"] != first["id"] and second["history"][0]["taskId"] == second["id"]
    assert shared.get(f"/v1/workspaces/{urllib.parse.quote('tools/ctx-1', safe='')}").json()["labels"]["context_id"] == "ctx-1"
    problem(shared.get("/v1/workspaces/ctx-1"), 404, "not_found")
    assert tools.get(first) == first
    metrics = shared.get("/metrics").body.decode()
    assert 'kagenti_context_workspace_bytes{context_id="ctx-1",agent="tools",namespace="team1"}' in metrics
    assert 'kagenti_workspace_pvc_usage_bytes{agent="tools",namespace="team1"}' in metrics


def test_the_layout_and_metrics_of_a_context(own_daemon):
    """As the seed of contexts has them, with their labels."""
    add(own_daemon, TOOLS + "limits: {disk: 64M}\n")
    agent, path = Agent(own_daemon, "tools"), urllib.parse.quote("tools/ctx-abc123", safe="")
    shown = json.loads(text(agent.send("cat .context.json; head -c 3000000 /dev/zero > data/x", contextId="ctx-abc123")))
    assert list(shown) == ["context_id", "agent", "namespace", "created_at", "last_accessed_at", "ttl_days", "disk_usage_bytes"]
    assert (shown["context_id"], shown["agent"], shown["namespace"], shown["ttl_days"]) == ("ctx-abc123", "tools", "team1", 7)
    assert text(agent.send("for i in scripts data .venv repos output; do test -d $i && echo $i; done; .venv/bin/python -c 'import sys; print(sys.prefix)'",
                           contextId="ctx-abc123")).split() == ["scripts", "data", ".venv", "repos", "output", "/workspace/.venv"]
    assert own_daemon.post(f"/v1/workspaces/{path}/suspend").status in (200, 202)          # measures it, and says so in the file
    kept = json.loads(text(agent.send("cat .context.json", contextId="ctx-abc123")))
    assert kept["disk_usage_bytes"] >= 3_000_000 and kept["last_accessed_at"] >= shown["last_accessed_at"] and kept["created_at"] == shown["created_at"]
    metrics = dict(line.rsplit(" ", 1) for line in own_daemon.get("/metrics").body.decode().splitlines() if not line.startswith("#"))
    context, all_of = '{context_id="ctx-abc123",agent="tools",namespace="team1"}', '{agent="tools",namespace="team1"}'
    assert int(metrics["kagenti_context_workspace_bytes" + context]) >= 3_000_000
    assert int(metrics["kagenti_workspace_pvc_usage_bytes" + all_of]) >= 3_000_000
    assert int(metrics["kagenti_workspace_pvc_capacity_bytes" + all_of]) == 64 << 20
    assert float(metrics["kagenti_context_last_accessed_timestamp" + context]) > 1_700_000_000
    assert own_daemon.delete(f"/v1/workspaces/{path}").status in (200, 202, 204)
    assert eventually(lambda: "ctx-abc123" not in own_daemon.get("/metrics").body.decode())


@pytest.mark.once
def test_the_settings_and_sources_of_the_seed_decide_about_messages(daemon, tmp_path):
    """Allowed, denied, and what is neither."""
    file = tmp_path / "agent.yaml"
    file.write_text(TOOLS.replace("default: true\n", "settings: settings.json\nsources: sources.json\n"))
    for name in ("settings.json", "sources.json"):
        (tmp_path / name).write_bytes((pathlib.Path(__file__).parents[2] / "examples" / name).read_bytes())
    daemon("agent", "add", file)
    agent = Agent(daemon, "tools")
    for command, state in (("echo error > data/log; grep -r error data", "COMPLETED"), ("curl https://example.com", "REJECTED"), ("docker build .", "INPUT_REQUIRED")):
        task = agent.send(command, contextId="ctx-seed")
        assert task["status"]["state"] == f"TASK_STATE_{state}", task
    assert task["status"]["message"]["parts"][1]["data"]["approval"]["command"] == "docker build ."


def test_a_command_that_fails_makes_a_failed_task(tools):
    task = tools.send("echo out; echo err >&2; exit 3", contextId="ctx-1")
    assert task["status"]["state"] == "TASK_STATE_FAILED"
    assert "exit code 3" in task["status"]["message"]["parts"][0]["text"] and task["status"]["message"]["role"] == "ROLE_AGENT"
    assert text(task) == "out\n" and text(task, "stderr") == "err\n"
    result = next(one for one in task["artifacts"] if one["artifactId"] == "result")["parts"][0]["data"]
    assert result["exit_code"] == 3 and result["reason"] == "exited"


def test_output_that_is_not_text_and_output_without_end(tools):
    task = tools.send(r"printf '\377\376\000x'", contextId="ctx-1")
    assert task["artifacts"][0]["parts"] == [{"raw": "//4AeA==", "mediaType": "application/octet-stream"}]
    task = tools.send("yes | head -c 8000000", contextId="ctx-1")
    assert task["status"]["state"] == "TASK_STATE_COMPLETED" and task["artifacts"][0]["metadata"] == {"truncated": True}
    assert 100_000 < len(text(task)) < 2_000_000


def test_without_a_context_id_the_workspace_is_thrown_away(shared, tools):
    first = tools.send("echo x > kept; pwd")
    assert first["status"]["state"] == "TASK_STATE_COMPLETED" and first["contextId"]
    assert eventually(lambda: not shared.get("/v1/workspaces?label=carrel.task").json()["items"])
    second = tools.send("ls kept", contextId=first["contextId"])
    assert second["status"]["state"] == "TASK_STATE_FAILED" and second["contextId"] == first["contextId"]
    third = tools.send("echo x > kept", contextId=first["contextId"])
    assert third["status"]["state"] == "TASK_STATE_COMPLETED"
    assert text(tools.send("cat kept", contextId=first["contextId"])) == "x\n"


def test_workspace_without_context_makes_one_at_once(own_daemon):
    add(own_daemon, TOOLS + "workspace_without_context: true\n")
    agent = Agent(own_daemon, "tools")
    first = agent.send("echo x > kept")
    assert text(agent.send("cat kept", contextId=first["contextId"])) == "x\n"


def test_several_tasks_of_a_context_run_at_once_and_no_message_cancels_one(tools):
    waits = [tools.send("while [ ! -e go ]; do sleep 0.05; done; echo done", now=True, contextId="ctx-many") for _ in range(3)]
    assert len({task["id"] for task in waits}) == 3
    for task in waits:
        tools.await_state(task, "TASK_STATE_WORKING")
    tools.send("touch go", contextId="ctx-many")
    for task in waits:
        assert text(tools.await_state(task, *ENDED)) == "done\n"


def test_a_task_is_canceled_once(tools):
    sleeps = lambda: tools.send("pgrep -x sleep", contextId="ctx-1")["status"]["state"]
    task = tools.send("sleep 1000", now=True, contextId="ctx-1")
    assert eventually(lambda: sleeps() == "TASK_STATE_COMPLETED") and tools.get(task)["status"]["state"] == "TASK_STATE_WORKING"
    assert tools.call("CancelTask", id=task["id"])["status"]["state"] == "TASK_STATE_CANCELED"
    assert "ended" in tools.fails(-32002, "CancelTask", id=task["id"])
    assert "ended" in tools.fails(-32004, "SendMessage", message=tools.message("ls", taskId=task["id"]))
    assert eventually(lambda: sleeps() == "TASK_STATE_FAILED")


def test_tasks_are_listed_by_pages(tools):
    made = [tools.send("true", contextId="ctx-list")["id"] for _ in range(5)]
    page = tools.call("ListTasks", contextId="ctx-list", pageSize=2)
    assert [task["id"] for task in page["tasks"]] == made[:2:-1] and page["totalSize"] == 5 and page["pageSize"] == 2
    assert "artifacts" not in page["tasks"][0] and "history" not in page["tasks"][0]
    seen = [task["id"] for task in page["tasks"]]
    while page["nextPageToken"]:
        page = tools.call("ListTasks", contextId="ctx-list", pageSize=2, pageToken=page["nextPageToken"], includeArtifacts=True)
        seen += [task["id"] for task in page["tasks"]]
        assert page["tasks"][0]["artifacts"]
    assert seen == made[::-1]
    assert tools.call("ListTasks", contextId="ctx-list", status="TASK_STATE_FAILED")["tasks"] == []
    assert tools.call("ListTasks", contextId="ctx-list", statusTimestampAfter="2100-01-01T00:00:00Z")["tasks"] == []
    assert len(tools.call("ListTasks", contextId="ctx-list", statusTimestampAfter="2001-01-01T00:00:00.5+02:00")["tasks"]) == 5
    assert tools.call("GetTask", id=made[0], historyLength=0).get("history") is None


@pytest.mark.parametrize("code, method, params", [
    (-32001, "GetTask", {"id": "nosuch"}), (-32001, "CancelTask", {"id": "n5fda10efceptk5gu44i"}), (-32001, "SubscribeToTask", {"id": "x"}),
    (-32602, "GetTask", {}), (-32601, "Nothing", {}), (-32602, "SendMessage", {}), (-32602, "SendMessage", {"message": {"messageId": "m"}}),
    (-32602, "SendMessage", {"message": {"messageId": "m", "parts": []}}), (-32602, "SendMessage", {"message": {"parts": [{"text": "x"}]}}),
    (-32602, "SendMessage", {"message": {"messageId": "m", "parts": [{"text": "x", "url": "y"}]}}),
    (-32602, "SendMessage", {"message": {"messageId": "m", "parts": [{"text": "a\0b"}]}}),
    (-32602, "SendMessage", {"message": {"messageId": "m", "parts": [{"text": "x"}], "contextId": "a\nb"}}),
    (-32602, "SendMessage", {"message": {"messageId": "m", "parts": [{"text": "x"}], "contextId": "a" * 257}}),
    (-32005, "SendMessage", {"message": {"messageId": "m", "parts": [{"data": {"a": 1}}]}}),
    (-32005, "SendMessage", {"message": {"messageId": "m", "parts": [{"text": "x"}]}, "configuration": {"acceptedOutputModes": ["image/png"]}}),
    (-32602, "SendMessage", {"message": {"messageId": "m", "parts": [{"text": "x"}]}, "configuration": {"taskPushNotificationConfig": {"url": "x"}}}),
    (-32001, "SendMessage", {"message": {"messageId": "m", "parts": [{"text": "x"}], "taskId": "nosuch"}}),
    (-32602, "CreateTaskPushNotificationConfig", {"taskId": "x"}), (-32001, "CreateTaskPushNotificationConfig", {"taskId": "x", "url": "http://x"}),
    (-32001, "ListTaskPushNotificationConfigs", {"taskId": "x"}), (-32602, "GetTaskPushNotificationConfig", {"taskId": "x"}),
    (-32001, "DeleteTaskPushNotificationConfig", {"taskId": "x", "id": "x"}), (-32007, "GetExtendedAgentCard", {}),
    (-32602, "ListTasks", {"pageSize": 1000}), (-32602, "ListTasks", {"status": "nothing"}), (-32602, "ListTasks", {"pageToken": "x"})])
def test_errors_have_the_codes_of_the_specification(tools, code, method, params):
    tools.fails(code, method, **params)


@pytest.mark.parametrize("method, params, name", [
    ("GetTask", {"id": "x", "historylength": 1}, "historylength"), ("GetTask", {"id": "x", "history_length": 1}, "history_length"),
    ("SendMessage", {"message": {"messageId": "m", "parts": [{"text": "touch ran"}]}, "config": {}}, "config"),
    ("SendMessage", {"message": {"messageId": "m", "parts": [{"text": "touch ran"}]}, "configuration": {"returnImmediatly": True}}, "returnImmediatly"),
    ("SendStreamingMessage", {"contextId": "ctx-none", "message": {"messageId": "m", "parts": [{"text": "touch ran"}]}}, "contextId"),
    ("ListTasks", {"context": "x"}, "context"), ("CancelTask", {"taskId": "x"}, "taskId"), ("SubscribeToTask", {"id": "x", "from": 3}, "from"),
    ("CreateTaskPushNotificationConfig", {"taskId": "x", "pushNotificationConfig": {"url": "http://x"}}, "pushNotificationConfig"),
    ("GetExtendedAgentCard", {"id": "x"}, "id"), ("agent/getAuthenticatedExtendedCard", {"tenant": "x"}, "tenant"),
    ("message/send", {"message": {"messageId": "m", "parts": [{"kind": "text", "text": "touch ran"}]}, "configuration": {"returnImmediately": True}}, "returnImmediately"),
    ("tasks/get", {"taskId": "x"}, "taskId"), ("tasks/get", {"id": "x", "": 1}, ""), ("tasks/get", {"id": "x", "a\u0000\u202eb": 1}, "a")])
def test_an_unknown_parameter_is_named(tools, method, params, name):
    """A misspelt one would be ignored, and the client wouldn't know."""
    before = tools.call("ListTasks")["totalSize"]
    error = tools.ask(method, **params)["error"]
    assert error["code"] == -32602 and f"unknown parameter '{name}" in error["message"] and len(error["message"]) < 300, error
    assert tools.call("ListTasks")["totalSize"] == before


def test_parameters_of_the_specification_that_mean_nothing_here_are_taken(tools):
    more = {"tenant": "", "metadata": {"a": 1}}
    task = tools.call("SendMessage", message=tools.message("true", contextId="ctx-1"), **more)["task"]
    assert tools.call("GetTask", id=task["id"], tenant="")["id"] == task["id"]
    tools.fails(-32002, "CancelTask", id=task["id"], **more)
    assert tools.call("tasks/get", id=task["id"], metadata={}, historyLength=0)["id"] == task["id"]


@pytest.mark.once
def test_bodies_that_are_no_requests(shared, tools):
    for body, code in ((b"{", -32700), (b"[]", -32600), (b"{}", -32600), (b'{"jsonrpc":"1.0","method":"GetTask"}', -32600), (b"", -32600),
                       (b'{"jsonrpc":"2.0","id":[1],"method":"GetTask"}', -32600), (b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":[]}', -32602)):
        assert shared.post("/a2a/tools", body).json()["error"]["code"] == code, body
    assert "no agent 'nosuch'" in problem(shared.post("/a2a/nosuch", b"{}"), 404, "not_found")["detail"]
    assert "no agent 'nosuch'" in problem(shared.get("/a2a/nosuch/.well-known/agent-card.json"), 404, "not_found")["detail"]
    for version, code in (("2.0", -32009), ("0.2", -32009), ("x", -32009)):
        Agent(shared, "tools", **{"A2A-Version": version}).fails(code, "ListTasks")
    for version in ("1.0", "0.3", ""):
        assert "tasks" in Agent(shared, "tools", **{"A2A-Version": version}).call("ListTasks")


# ---- streams ----

def test_a_stream_tells_the_task_then_every_event_in_order(tools):
    events = list(tools.stream("SendStreamingMessage", message=tools.message("for i in 1 2 3; do echo $i; sleep 0.1; done", contextId="ctx-1")))
    assert events[0]["task"]["status"]["state"] == "TASK_STATE_SUBMITTED"
    states = [event["statusUpdate"]["status"]["state"] for event in events if "statusUpdate" in event]
    assert states == ["TASK_STATE_WORKING", "TASK_STATE_COMPLETED"] and "statusUpdate" in events[-1]
    pieces = [event["artifactUpdate"] for event in events if "artifactUpdate" in event]
    assert "".join(piece["artifact"]["parts"][0]["text"] for piece in pieces if piece["artifact"]["artifactId"] == "stdout") == "1\n2\n3\n"
    assert not pieces[0]["append"] and pieces[-1]["artifact"]["artifactId"] == "result"


def test_a_subscriber_gets_the_task_first_and_nothing_twice(tools):
    task = tools.send("echo a; while [ ! -e $0.b ] && [ ! -e gob ]; do sleep 0.05; done; echo b", now=True, contextId="ctx-sub")
    assert eventually(lambda: tools.get(task)["artifacts"])
    streams = [tools.stream("SubscribeToTask", id=task["id"]) for _ in range(2)]
    iterators = [iter(stream) for stream in streams]
    for first in map(next, iterators):
        assert text(first["task"]) == "a\n" and first["task"]["status"]["state"] == "TASK_STATE_WORKING"
    tools.send("touch gob", contextId="ctx-sub")
    for rest in map(list, iterators):
        assert [event["artifactUpdate"]["artifact"]["parts"][0].get("text") for event in rest if "artifactUpdate" in event][0] == "b\n"
        assert rest[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
    tools.fails(-32004, "SubscribeToTask", id=task["id"])


def test_a_client_that_leaves_a_stream_doesnt_end_the_task(tools):
    stream = tools.stream("SendStreamingMessage", message=tools.message("while [ ! -e left ]; do sleep 0.05; done; echo done", contextId="ctx-left"))
    task = next(iter(stream))["task"]
    stream.connection.close()
    tools.send("touch left", contextId="ctx-left")
    assert text(tools.await_state(task, *ENDED)) == "done\n"


# ---- HTTP+JSON and 0.3 ----

def test_http_json_does_the_same(shared, tools):
    base = "/a2a/tools"
    sent = shared.post(f"{base}/message:send", {"message": tools.message("echo hi", contextId="ctx-http")}, headers={"A2A-Version": "1.0"})
    task = sent.json()["task"]
    assert sent.status == 200 and text(task) == "hi\n"
    assert shared.get(f"{base}/tasks/{task['id']}").json() == task
    assert "history" not in shared.get(f"{base}/tasks/{task['id']}?historyLength=0").json()
    assert [one["id"] for one in shared.get(f"{base}/tasks?contextId=ctx-http&pageSize=1&includeArtifacts=true").json()["tasks"]] == [task["id"]]
    connection = shared.connection()
    connection.request("POST", f"{base}/message:stream", json.dumps({"message": tools.message("echo hi", contextId="ctx-http")}),
                       {"Content-Type": "application/a2a+json"})
    events = list(Stream(connection))
    assert "task" in events[0] and events[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
    running = tools.send("sleep 1000", now=True, contextId="ctx-http")
    assert shared.post(f"{base}/tasks/{running['id']}:cancel").json()["status"]["state"] == "TASK_STATE_CANCELED"
    for method, path, status, reason in (
            ("GET", "tasks/nosuch", 404, "TASK_NOT_FOUND"), ("POST", f"tasks/{task['id']}:cancel", 400, "TASK_NOT_CANCELABLE"),
            ("POST", f"tasks/{task['id']}:subscribe", 400, "UNSUPPORTED_OPERATION"), ("GET", "extendedAgentCard", 400, "EXTENDED_AGENT_CARD_NOT_CONFIGURED"),
            ("GET", f"tasks/{task['id']}/pushNotificationConfigs/x", 404, "TASK_NOT_FOUND"), ("GET", "nothing", 404, "METHOD_NOT_FOUND"),
            ("GET", "tasks?pageSize=x", 400, "INVALID_PARAMS"), ("POST", "message:send", 400, "INVALID_PARAMS")):
        answer = shared.request(method, f"{base}/{path}")
        assert answer.status == status and answer.json()["error"]["details"][0]["reason"] == reason, answer
    assert shared.get(f"{base}/message:send").status == 405
    assert shared.get(f"{base}/tasks", headers={"A2A-Version": "0.3"}).json()["error"]["details"][0]["reason"] == "VERSION_NOT_SUPPORTED"


def test_the_methods_and_shapes_of_0_3(tools):
    message = {"kind": "message", "messageId": "m1", "role": "user", "contextId": "ctx-old", "parts": [{"kind": "text", "text": "echo hi"}]}
    task = tools.call("message/send", message=message)
    assert task["kind"] == "task" and task["status"]["state"] == "completed"
    assert task["artifacts"][0]["parts"] == [{"kind": "text", "text": "hi\n"}]
    assert task["artifacts"][1]["parts"][0]["kind"] == "data" and task["artifacts"][1]["parts"][0]["data"]["exit_code"] == 0
    assert task["history"][0]["kind"] == "message" and task["history"][0]["role"] == "user" and task["history"][0]["parts"] == message["parts"]
    assert tools.call("tasks/get", id=task["id"]) == task
    events = list(tools.stream("message/stream", message=message))
    assert [event["kind"] for event in events][0] == "task" and events[-1]["kind"] == "status-update" and events[-1]["final"] is True
    assert events[1]["kind"] == "status-update" and events[1]["final"] is False
    now = tools.call("message/send", message={**message, "parts": [{"kind": "text", "text": "sleep 1000"}]}, configuration={"blocking": False})
    assert now["status"]["state"] in ("submitted", "working")
    assert tools.call("tasks/cancel", id=now["id"])["status"]["state"] == "canceled"
    tools.fails(-32602, "message/send", message={**message, "parts": [{"kind": "video"}]})
    tools.fails(-32001, "tasks/resubscribe", id="nosuch")


# ---- approvals ----

@pytest.mark.parametrize("answer, state", [({"text": " Approve\n"}, "TASK_STATE_COMPLETED"), ({"data": {"decision": "approve"}}, "TASK_STATE_COMPLETED"),
                                           ({"text": "deny"}, "TASK_STATE_REJECTED"), ({"data": {"decision": "deny"}}, "TASK_STATE_REJECTED")])
def test_a_command_that_is_asked_for_runs_when_the_client_approves(asks, answer, state):
    command = "touch marked && ls marked"
    task = asks.send(command, contextId="ctx-ask")
    assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    shown = task["status"]["message"]["parts"][1]["data"]
    assert shown["approval"]["command"] == command and shown["approver"] == "client"
    asks.fails(-32602, "SendMessage", message=asks.message("maybe", taskId=task["id"]))
    asks.fails(-32602, "SendMessage", message=asks.message("approve", taskId=task["id"], contextId="another"))
    done = asks.call("SendMessage", message=asks.message(answer, taskId=task["id"]))["task"]
    assert done["id"] == task["id"] and done["status"]["state"] == state, done
    assert (text(done) == "marked\n") == (state == "TASK_STATE_COMPLETED")
    assert len(done["history"]) == 2
    asks.send("echo", contextId="ctx-ask")


def test_other_tasks_of_a_context_run_and_wait_while_one_waits(asks):
    """As the seed of contexts has it: a message without a taskId is a new task, whatever waits in its context."""
    first, second = (asks.send(f"touch {name} && ls {name}", contextId="ctx-both") for name in ("one", "two"))
    between = asks.send("echo between", contextId="ctx-both")
    assert between["status"]["state"] == "TASK_STATE_COMPLETED" and text(between) == "between\n"
    assert len({first["id"], second["id"], between["id"]}) == 3
    approvals = [task["status"]["message"]["parts"][1]["data"]["approval"]["id"] for task in (first, second)]
    assert len(set(approvals)) == 2
    for word in ("approve", "deny"):      # a word without a taskId answers nothing: it is a command of its own
        stray = asks.send(word, contextId="ctx-both")
        assert stray["id"] not in (first["id"], second["id"]) and stray["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
        asks.call("CancelTask", id=stray["id"])
    for task in (first, second):
        assert asks.get(task) == task
    assert text(asks.send("approve", taskId=second["id"])) == "two\n"
    assert asks.get(first)["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert text(asks.send("approve", taskId=first["id"], contextId="ctx-both")) == "one\n"


def test_what_a_rule_denies_is_rejected_and_what_it_allows_runs(asks):
    assert asks.send("echo fine", contextId="ctx-ask")["status"]["state"] == "TASK_STATE_COMPLETED"
    denied = asks.send("curl http://example.com", contextId="ctx-ask")
    assert denied["status"]["state"] == "TASK_STATE_REJECTED" and "curl" in denied["status"]["message"]["parts"][0]["text"]


def test_a_task_that_waits_can_be_canceled_and_its_approval_ends(shared, asks):
    task = asks.send("touch never", contextId="ctx-ask")
    approval = task["status"]["message"]["parts"][1]["data"]["approval"]["id"]
    assert asks.call("CancelTask", id=task["id"])["status"]["state"] == "TASK_STATE_CANCELED"
    assert eventually(lambda: shared.get(f"/v1/approvals/{approval}").json()["state"] == "expired")


def test_with_approver_reviewer_only_a_reviewer_answers(own_daemon):
    add(own_daemon, ASKS + "approver: reviewer\n")
    agent = Agent(own_daemon, "asks")
    task = agent.send("touch marked", contextId="c")
    assert "reviewer" in agent.fails(-32004, "SendMessage", message=agent.message("approve", taskId=task["id"]))
    token = own_daemon.post("/v1/tokens", {"scope": "reviewer"}).json()["text"]
    approval = task["status"]["message"]["parts"][1]["data"]["approval"]["id"]
    answer = own_daemon.post(f"/v1/approvals/{approval}", {"decision": "approve"}, headers={"Authorization": f"Bearer {token}"})
    assert answer.status == 200, answer
    assert agent.await_state(task, *ENDED)["status"]["state"] == "TASK_STATE_COMPLETED"


# ---- who may what ----

def test_agents_dont_see_each_others_tasks_and_contexts(tools, asks):
    task = tools.send("echo secret > data/kept", contextId="ctx-same")
    asks.fails(-32001, "GetTask", id=task["id"])
    asks.fails(-32001, "CancelTask", id=task["id"])
    asks.fails(-32001, "SendMessage", message=asks.message("echo", taskId=task["id"]))
    assert task["id"] not in [one["id"] for one in asks.call("ListTasks")["tasks"]]
    assert "kept" not in text(asks.send("echo data/*", contextId="ctx-same"))


def test_without_authentication_a_client_reaches_its_agent_alone(furnished_home):
    with serving_anew(source=furnished_home) as daemon:
        door = open_door(daemon)
        add(daemon, TOOLS)
        add(daemon, ASKS)

        def post(path, body, **how):
            return door.request("POST", path, json.dumps(body), {"Content-Type": "application/json", **how.pop("headers", {})}, **how)
        hello = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": {"messageId": "m", "parts": [{"text": "echo hi"}]}}}
        sent = post("/a2a/asks", hello, bearer=False)
        assert text(sent.json()["result"]["task"]) == "hi\n", sent
        foreign = post("/a2a/asks", hello, bearer=False, headers={"Authorization": "Bearer of-the-gateway"})
        assert foreign.status == 200, foreign
        for path in ("/a2a/tools", "/a2a/tools/message:send", "/a2a/asks2", "/a2a/%61sks", "/v1/workspaces", "/v1/agents"):
            problem(post(path, hello, bearer=False), 401, "unauthenticated")
        for path in ("/a2a/tools/tasks", "/v1/agents", "/metrics"):
            problem(door.get(path, bearer=False), 401, "unauthenticated")
        for path in ("/a2a/asks/../../v1/workspaces", "/a2a/asks/..%2f..%2fv1/agents"):
            assert door.get(path, bearer=False).status == 404
        assert door.get("/a2a/tools/.well-known/agent-card.json", bearer=False).status == 200
        assert post("/a2a/tools", hello).status == 200
        audit = daemon("audit", "--type", "exec.start", "-o", "json").stdout
        assert "agent asks for client of agent asks" in audit
        # All of them are one principal: none reads the token of another's push notification config.
        id = sent.json()["result"]["task"]["id"]
        config = {"taskId": id, "id": "x", "url": "https://origin.invalid/", "token": "of-the-receiver"}
        for method, params in (("CreateTaskPushNotificationConfig", config), ("GetTaskPushNotificationConfig", {"taskId": id, "id": "x"}),
                               ("ListTaskPushNotificationConfigs", {"taskId": id})):
            answer = post("/a2a/asks", {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, bearer=False)
            assert "origin.invalid" in json.dumps(answer.json()["result"]) and b"of-the-receiver" not in answer.body


def test_tokens_may_do_what_their_scope_says(shared, tools):
    made = tools.send("true", contextId="ctx-token")
    workspace = shared.get(f"/v1/workspaces/{urllib.parse.quote('tools/ctx-token', safe='')}").json()["id"]

    def bearer(**wanted):
        return {"Authorization": "Bearer " + shared.post("/v1/tokens", wanted).json()["text"]}
    reviewer, bound = Agent(shared, "tools", **bearer(scope="reviewer")), Agent(shared, "tools", **bearer(scope="user", workspace=workspace))
    assert reviewer.get(made)["id"] == made["id"]
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": tools.message("true", contextId="ctx-token")}}
    problem(shared.post("/a2a/tools", body, headers=reviewer.headers), 403, "denied")
    problem(shared.post("/v1/agents", {"yaml": TOOLS}, headers=bearer(scope="user")), 403, "denied")
    assert bound.send("true", contextId="ctx-token")["status"]["state"] == "TASK_STATE_COMPLETED"
    assert {one["contextId"] for one in bound.call("ListTasks")["tasks"]} == {"ctx-token"}
    other = tools.send("true", contextId="ctx-token-2")
    for params in ({"id": other["id"]}, {"id": "nosuch"}):
        body = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": params}
        problem(shared.post("/a2a/tools", body, headers=bound.headers), 403, "denied")
    for context in ("ctx-token-2", "ctx-new", None):
        message = tools.message("true", **({"contextId": context} if context else {}))
        body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
        problem(shared.post("/a2a/tools", body, headers=bound.headers), 403, "denied")


# ---- limits ----

def test_contexts_and_running_tasks_of_an_agent_are_limited(own_daemon):
    add(own_daemon, TOOLS.replace("kind: shell", "kind: shell\nmax_contexts: 2\nmax_tasks: 2"))
    agent = Agent(own_daemon, "tools")
    assert own_daemon.get("/v1/agents/tools").json()["max_contexts"] == 2
    for context in ("one", "two", "one"):
        agent.send("true", contextId=context)
    assert "2 contexts" in agent.fails(-32000, "SendMessage", message=agent.message("true", contextId="three"))
    answer = own_daemon.post("/a2a/tools/message:send", {"message": agent.message("true", contextId="three")})
    assert answer.status == 429 and answer.json()["error"]["details"][0]["reason"] == "LIMIT_EXCEEDED", answer
    assert agent.send("true")["status"]["state"] == "TASK_STATE_COMPLETED"      # in no context
    runs = [agent.send("sleep 1000", now=True, contextId=context) for context in ("one", "two")]
    assert "2 tasks" in agent.fails(-32000, "SendMessage", message=agent.message("true", contextId="one"))
    assert len(agent.call("ListTasks")["tasks"]) == 6                           # what was refused is no task
    agent.call("CancelTask", id=runs[0]["id"])
    assert agent.send("true", contextId="one")["status"]["state"] == "TASK_STATE_COMPLETED"
    assert own_daemon.delete("/v1/workspaces/tools%2Ftwo").status in (200, 202, 204)
    assert eventually(lambda: len(own_daemon.get("/v1/workspaces?label=context_id").json()["items"]) == 1)
    assert agent.send("true", contextId="three")["status"]["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.once
def test_tasks_of_one_agent_are_not_forgotten_for_those_of_another(own_daemon):
    """10,000 tasks are kept: of the agent that has the most of them, the oldest gives way."""
    for name in ("quiet", "flood"):
        add(own_daemon, f"name: {name}\ndescription: d\nversion: v1\nkind: shell\n")
    quiet, flood = Agent(own_daemon, "quiet"), Agent(own_daemon, "flood")
    kept = [quiet.send(f"echo {n}")["id"] for n in range(2)]
    first = flood.send("echo first")["id"]
    own_daemon.stop_serving()
    with contextlib.closing(sqlite3.connect(pathlib.Path(own_daemon.env["CARREL_HOME"], "carrel.db"))) as store, store:
        store.execute("""WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9999)
            INSERT INTO tasks SELECT printf('%020d', i), agent, context, state, created_ms, updated_ms + i, document, 0 FROM tasks, n WHERE id = ?""", [first])
    own_daemon.start_serving()
    assert flood.call("ListTasks", pageSize=1)["totalSize"] == 10000
    last = flood.send("echo last")["id"]
    assert eventually(lambda: flood.call("ListTasks", pageSize=1)["totalSize"] == 9998)
    assert {task["id"] for task in quiet.call("ListTasks")["tasks"]} == set(kept)
    assert flood.call("GetTask", id=last)["id"] == last
    flood.fails(-32001, "GetTask", id=first)


@pytest.mark.once
def test_messages_that_come_at_once_open_no_more_contexts_than_one_by_one(shared):
    add(shared, TOOLS.replace("name: tools", "name: crowd").replace("default: true", "max_contexts: 2"))
    agent, tasks = Agent(shared, "crowd"), []

    def send(context):
        answer = agent.ask("SendMessage", message=agent.message("true", contextId=context), configuration={"returnImmediately": True})
        if "result" in answer:
            tasks.append(answer["result"]["task"])
    threads = [threading.Thread(target=send, args=(f"crowd-{n}",)) for n in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ended = [agent.await_state(task, *ENDED)["status"] for task in tasks]
    assert sum(status["state"] == "TASK_STATE_COMPLETED" for status in ended) == 2
    assert all("2 contexts" in status["message"]["parts"][0]["text"] for status in ended if status["state"] != "TASK_STATE_COMPLETED"), ended
    assert len(shared.get("/v1/workspaces?label=agent=crowd").json()["items"]) == 2
    assert shared.delete("/v1/agents/crowd").status == 204


@pytest.mark.once
def test_messages_and_bodies_that_are_too_long(shared, tools):
    assert "524288 bytes" in tools.fails(-32602, "SendMessage", message=tools.message("x" * 600_000, contextId="ctx-1"))
    assert text(tools.send("echo " + "x" * 100_000, contextId="ctx-1")) == "x" * 100_000 + "\n"
    problem(shared.post("/a2a/tools", b" " * (17 << 20)), 413, "limit")


# ---- time ----

@pytest.mark.parametrize("kill", [False, True])
def test_tasks_survive_a_restart_and_what_ran_has_failed(own_daemon, kill):
    add(own_daemon, TOOLS)
    agent = Agent(own_daemon, "tools")
    done = agent.send("echo kept", contextId="c")
    running = agent.send("sleep 1000", now=True, contextId="c")
    thrown = agent.send("sleep 1000", now=True)
    for task in (running, thrown):
        agent.await_state(task, "TASK_STATE_WORKING")
    own_daemon.kill_core() if kill else own_daemon.restart()
    assert agent.get(done) == done
    for task in (running, thrown):
        ended = agent.await_state(task, *ENDED)
        assert ended["status"]["state"] == "TASK_STATE_FAILED" and "the daemon was" in ended["status"]["message"]["parts"][0]["text"]
    assert [one["id"] for one in agent.call("ListTasks")["tasks"]][-1] == done["id"]
    assert eventually(lambda: not own_daemon.get("/v1/workspaces?label=carrel.task").json()["items"])
    assert text(agent.send("echo again", contextId="c")) == "again\n"


def test_a_removed_agent_cancels_its_tasks_and_forgets_them(own_daemon):
    add(own_daemon, TOOLS)
    agent = Agent(own_daemon, "tools")
    answer = []
    waiting = threading.Thread(target=lambda: answer.append(agent.send("sleep 1000", contextId="c")))
    waiting.start()
    assert eventually(lambda: [t for t in agent.call("ListTasks")["tasks"] if t["status"]["state"] == "TASK_STATE_WORKING"])
    assert own_daemon.delete("/v1/agents/tools").status == 204
    waiting.join()
    assert answer[0]["status"]["state"] == "TASK_STATE_CANCELED"
    problem(own_daemon.post("/a2a/tools", b"{}"), 404, "not_found")
    add(own_daemon, TOOLS)
    assert agent.call("ListTasks")["tasks"] == []


def test_events_tell_states(shared, tools):
    with contextlib.closing(shared.connection()) as connection:
        connection.request("GET", "/v1/events")
        response = connection.getresponse()
        task = tools.send("true", contextId="ctx-events")
        states = []
        for line in response:
            if line.startswith(b"data: ") and json.loads(line[6:]).get("task") == task["id"]:
                states.append(json.loads(line[6:])["state"])
                if states[-1] == "completed":
                    break
    assert states == ["working", "completed"]
