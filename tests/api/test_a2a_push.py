"""Push notifications of A2A tasks: who configures them, what is posted, and what becomes of it when the receiver is dead or hostile."""
# security: services
import http.server
import json
import shutil
import threading

import pytest

from daemons import furnish, new_directory, remove, serving
from harness import eventually
from origins import configure, make_certificates, on_host_with, origin, trusting
from test_a2a import TOOLS, Agent, add

HOLD = "echo a; while [ ! -e %s ]; do sleep 0.05; done; echo b"


class Receiver(http.server.BaseHTTPRequestHandler):
    """Notes each post, and answers with the next of the answers that the test has planned for its path; 200 without one. None: it says
    nothing until the test lets go of it; 0: it closes the connection."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.lock:
            self.server.posts.append((self.path, {key.lower(): value for key, value in self.headers.items()}, json.loads(body)))
            plan = self.server.plans.get(self.path)
            status = plan.pop(0) if plan else 200
        if status is None:
            self.server.gate.wait()
        if not status:
            self.close_connection = True
            return
        self.send_response(status)
        if 300 <= status < 400:
            self.send_header("Location", f"http://other.test:{self.server.port}/away")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_POST

    def log_message(self, *args):
        pass


def prepare(server):
    server.posts, server.plans, server.lock, server.gate = [], {}, threading.Lock(), threading.Event()
    return server


@pytest.fixture(scope="module")
def shared(tmp_path_factory, furnished_home):
    """A daemon whose operator has opened receiver.test, which is this process, and its port."""
    directory = new_directory()
    furnish(directory, furnished_home)
    certificates = make_certificates(tmp_path_factory.mktemp("certificates"))
    try:
        with origin(handler=Receiver) as server, origin(certificates, handler=Receiver) as tls:
            prepare(server), prepare(tls)
            configure(directory / "carrel", ports=[80, 443, server.port, tls.port])
            with serving(directory) as daemon:
                daemon.receiver, daemon.tls = server, tls
                add(daemon, TOOLS)
                yield daemon
                server.gate.set()
    finally:
        remove(directory)


@pytest.fixture
def tools(shared):
    return Agent(shared, "tools")


def url(daemon, path, host="origin.test"):
    return f"http://{host}:{daemon.receiver.port}{path}"


def plan(daemon, path, *answers):
    with daemon.receiver.lock:
        daemon.receiver.plans[path] = list(answers)


def posts(daemon, path):
    with daemon.receiver.lock:
        return [(headers, body) for at, headers, body in daemon.receiver.posts if at == path]


def state_of(body):
    """Of a post of 1.0; None: it is about an artifact."""
    about = body.get("statusUpdate") or body.get("task")
    return about and about["status"]["state"]


def await_state(daemon, path, state="TASK_STATE_COMPLETED"):
    assert eventually(lambda: any(state_of(body) == state for _, body in posts(daemon, path))), posts(daemon, path)
    return posts(daemon, path)


def hold(tools, context, **config):
    """A task that waits for a file, perhaps with a config, and has written something."""
    more = {"taskPushNotificationConfig": config} if config else {}
    task = tools.call("SendMessage", message=tools.message(HOLD % "go", contextId=context), configuration={"returnImmediately": True, **more})["task"]
    assert eventually(lambda: tools.get(task).get("artifacts"))
    return task


def let_go(tools, context):
    tools.send("touch go", contextId=context)


def failures(daemon, task):
    """The events of pushes of the task that were given up, and come before one of our own."""
    connection = daemon.connection()
    connection.request("GET", "/v1/events", headers={"Last-Event-ID": "1", "Accept": "text/event-stream"})
    found = []
    for line in connection.getresponse():
        event = json.loads(line[5:]) if line.startswith(b"data:") else {}
        if event.get("type") == "task.push_failed" and event["task"] == task["id"]:
            if not found:
                add(daemon, TOOLS.replace("tools", "marker").replace("default: true", ""))
            found.append(event)
        if event.get("type") == "agent.added" and event["name"] == "marker" and found:
            break
    connection.close()
    daemon.delete("/v1/agents/marker")
    return found


def metric(daemon, name):
    return next(int(line.split()[1]) for line in daemon.get("/metrics").body.decode().splitlines() if line.startswith(name + " "))


def is_quiet(daemon):
    """Nothing is posted any more, and nothing waits to be."""
    return eventually(lambda: metric(daemon, "carrel_task_push_workspaces") == 0)


# ---- what is posted ----

def test_every_change_is_posted_in_order_with_its_credentials(shared, tools):
    before = metric(shared, 'carrel_task_pushes_total{result="delivered"}')
    hold(tools, "push-1", url=url(shared, "/first?x=1"), token="told-to-me", authentication={"scheme": "Bearer", "credentials": "s3cret-word"})
    let_go(tools, "push-1")
    got = await_state(shared, "/first?x=1")
    for headers, body in got:
        assert headers["x-a2a-notification-token"] == "told-to-me" and headers["authorization"] == "Bearer s3cret-word"
        assert headers["content-type"] == "application/a2a+json" and headers["host"] == f"origin.test:{shared.receiver.port}"
    bodies = [body for _, body in got]
    assert [state for state in map(state_of, bodies) if state] == ["TASK_STATE_WORKING", "TASK_STATE_COMPLETED"]
    assert "statusUpdate" in bodies[-1]
    pieces = [body["artifactUpdate"]["artifact"] for body in bodies if "artifactUpdate" in body]
    assert [part["parts"][0]["text"] for part in pieces if part["artifactId"] == "stdout"] == ["a\n", "b\n"]
    assert pieces[-1]["artifactId"] == "result"
    # Its workspace is removed, and no record has the secrets.
    assert is_quiet(shared) and eventually(lambda: not shared.get("/v1/workspaces?label=carrel.service=push").json()["items"])
    assert metric(shared, 'carrel_task_pushes_total{result="delivered"}') >= before + len(got)
    assert "s3cret-word" not in shared.log() and "told-to-me" not in shared.log()
    audit = shared.get("/v1/audit?limit=1000").body
    assert b"s3cret-word" not in audit and b"told-to-me" not in audit


def test_a_client_of_0_3_gets_the_task_in_its_own_shape(shared, tools):
    message = {"kind": "message", "messageId": "m1", "role": "user", "contextId": "push-old", "parts": [{"kind": "text", "text": "echo hi"}]}
    config = {"url": url(shared, "/old"), "authentication": {"schemes": ["Basic", "Bearer"], "credentials": "YTpi"}}
    task = tools.call("message/send", message=message, configuration={"pushNotificationConfig": config})
    assert eventually(lambda: any(body["status"]["state"] == "completed" for _, body in posts(shared, "/old")))
    headers, body = posts(shared, "/old")[-1]
    assert body == task and body["kind"] == "task" and headers["authorization"] == "Basic YTpi" and headers["content-type"] == "application/json"


def test_a_config_that_comes_after_the_end_or_with_an_answer(shared, tools):
    task = tools.send("echo hi", contextId="push-late")
    made = tools.call("CreateTaskPushNotificationConfig", taskId=task["id"], url=url(shared, "/late"))
    assert made == {"taskId": task["id"], "id": task["id"], "url": url(shared, "/late")}
    (_, body), = await_state(shared, "/late")
    assert body["task"] == task
    add(shared, "name: asks\ndescription: asks\nversion: v1\nkind: shell\nsettings: {permissions: {deny: []}}\n")
    asks = Agent(shared, "asks")
    task = asks.send("echo hi")
    assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    asks.call("SendMessage", message=asks.message("approve", taskId=task["id"]), configuration={"taskPushNotificationConfig": {"url": url(shared, "/answered")}})
    await_state(shared, "/answered")


FLOOD = r"""
name: flood
description: says a hundred things after an answer
version: v1
command: [sh, -c, 'read a; echo "{\"status\": \"input-required\"}"; read b; i=0; while [ $i -lt 100 ]; do i=$((i+1));
  echo "{\"artifact\": {\"artifactId\": \"all\", \"parts\": [{\"text\": \"$i.\"}]}, \"append\": true}"; done']
"""


def test_changes_that_are_too_many_become_the_task_as_it_is(shared):
    add(shared, FLOOD)
    flood = Agent(shared, "flood")
    shared.receiver.gate.clear()
    plan(shared, "/slow", None)
    merged = metric(shared, 'carrel_task_pushes_total{result="merged"}')
    configuration = {"taskPushNotificationConfig": {"url": url(shared, "/slow")}}
    task = flood.call("SendMessage", message=flood.message("begin"), configuration=configuration)["task"]
    assert eventually(lambda: posts(shared, "/slow"))       # which waits for the gate
    task = flood.send("go on", taskId=task["id"])
    assert task["status"]["state"] == "TASK_STATE_COMPLETED" and len(task["artifacts"][0]["parts"]) == 100
    shared.receiver.gate.set()
    got = [body for _, body in await_state(shared, "/slow")]
    assert got[-1] == {"task": task} and len(got) < 50 and metric(shared, 'carrel_task_pushes_total{result="merged"}') > merged


# ---- who may do what ----

def test_configs_are_made_shown_and_deleted_by_both_bindings_and_0_3(shared, tools):
    task = hold(tools, "push-crud")
    id, base = task["id"], f"/a2a/tools/tasks/{task['id']}/pushNotificationConfigs"
    secret = {"scheme": "Bearer", "credentials": "hidden"}
    shown = {"scheme": "Bearer"}
    one = tools.call("CreateTaskPushNotificationConfig", taskId=id, id="one", url="https://origin.test/1", token="t", authentication=secret)
    assert one == {"taskId": id, "id": "one", "url": "https://origin.test/1", "token": "t", "authentication": shown}
    assert tools.call("GetTaskPushNotificationConfig", taskId=id, id="one") == one
    two = shared.post(base, {"taskId": id, "id": "two:b", "url": "https://origin.test/2"})
    assert two.status == 200 and shared.get(f"{base}/two:b").json() == two.json() == {"taskId": id, "id": "two:b", "url": "https://origin.test/2"}
    assert tools.call("ListTaskPushNotificationConfigs", taskId=id) == {"configs": [one, two.json()], "nextPageToken": ""}
    assert shared.get(base).json()["configs"] == [one, two.json()]
    old = {"taskId": id, "pushNotificationConfig": {"id": "three", "url": "https://origin.test/3", "authentication": {"schemes": ["Basic"]}}}
    assert tools.call("tasks/pushNotificationConfig/set", **old) == old
    assert tools.call("tasks/pushNotificationConfig/get", id=id, pushNotificationConfigId="three") == old
    assert [config["pushNotificationConfig"]["id"] for config in tools.call("tasks/pushNotificationConfig/list", id=id)] == ["one", "two:b", "three"]
    # The same id again replaces it.
    assert tools.call("CreateTaskPushNotificationConfig", taskId=id, id="one", url="https://origin.test/4")["url"] == "https://origin.test/4"
    assert len(shared.get(base).json()["configs"]) == 3
    shared.kill_core()
    assert sorted(config["id"] for config in shared.get(base).json()["configs"]) == ["one", "three", "two:b"]
    assert shared.delete(f"{base}/two:b").json() == {} and shared.delete(f"{base}/two:b").status == 200
    assert tools.call("DeleteTaskPushNotificationConfig", taskId=id, id="one") is None
    assert tools.call("tasks/pushNotificationConfig/delete", id=id, pushNotificationConfigId="three") is None
    assert shared.get(base).json() == {"configs": [], "nextPageToken": ""}
    tools.fails(-32001, "GetTaskPushNotificationConfig", taskId=id, id="one")
    assert shared.get(f"{base}/one").json()["error"]["details"][0]["reason"] == "TASK_NOT_FOUND"
    for n in range(10):
        tools.call("CreateTaskPushNotificationConfig", taskId=id, id=str(n), url="https://origin.test/")
    assert "10 push notification configs already" in tools.fails(-32000, "CreateTaskPushNotificationConfig", taskId=id, id="x", url="https://origin.test/")


@pytest.mark.once
@pytest.mark.parametrize("config, words", [
    ({}, "'url' is missing"), ({"url": "ftp://origin.test/"}, "https or http"), ({"url": "origin.test"}, "https or http"), ({"url": 7}, "must be a text"),
    ({"url": "http://user:hidden@origin.test/"}, "user name"), ({"url": "http://@origin.test/"}, "user name"), ({"url": "http:///x"}, "no valid host"),
    ({"url": "http://0x7f.1/"}, "no valid host"), ({"url": "http://a b/"}, "not allowed"), ({"url": "http://x/\u00e9"}, "not allowed"),
    ({"url": "http://x/" + "a" * 2048}, "more than 2048"), ({"url": "http://x/", "token": "hidden\r\nX: y"}, "'token' has a character"),
    ({"url": "http://x/", "authentication": {"scheme": "Bearer", "credentials": "hidden\n"}}, "'credentials' has a character"),
    ({"url": "http://x/", "authentication": {"credentials": "hidden"}}, "scheme"), ({"url": "http://x/", "authentication": []}, "must be an object"),
    ({"url": "http://x/", "id": "a/b"}, "'id' has a character"), ({"url": "http://x/", "id": "a" * 129}, "more than 128")])
def test_a_config_that_is_wrong_is_refused_by_name(shared, tools, config, words):
    task = tools.send("true", contextId="push-wrong")
    for message in (tools.fails(-32602, "CreateTaskPushNotificationConfig", taskId=task["id"], **config),
                    tools.fails(-32602, "SendMessage", message=tools.message("true"), configuration={"taskPushNotificationConfig": config})):
        assert words in message and "hidden" not in message
    assert tools.call("ListTaskPushNotificationConfigs", taskId=task["id"])["configs"] == []


def test_nobody_sees_or_deletes_the_config_of_another_principal(shared, tools):
    task = hold(tools, "push-whose")

    def token(**more):
        made = shared.post("/v1/tokens", {"scope": "user", "name": "push", **more}).json()
        return made, Agent(shared, "tools", Authorization=f"Bearer {made['text']}")
    (mine, owner), (_, other), (_, bound) = token(), token(), token(workspace="tools/push-whose")
    elsewhere = shared.post("/v1/workspaces", {}).json()["id"]
    (_, reviewer), (_, stranger) = token(scope="reviewer"), token(workspace=elsewhere)
    config = {"taskId": task["id"], "id": "x"}
    assert owner.call("CreateTaskPushNotificationConfig", **config, url=url(shared, "/mine"), token="secret")["token"] == "secret"
    for agent in (other, bound, tools, reviewer):
        assert agent.call("ListTaskPushNotificationConfigs", taskId=task["id"])["configs"] == []
        agent.fails(-32001, "GetTaskPushNotificationConfig", **config)
    # Deleting what one doesn't have does nothing; another config of the same id is another config.
    assert other.call("DeleteTaskPushNotificationConfig", **config) is None
    assert other.call("CreateTaskPushNotificationConfig", **config, url=url(shared, "/other"))["url"] == url(shared, "/other")
    assert owner.call("GetTaskPushNotificationConfig", **config)["url"] == url(shared, "/mine")
    for agent in (stranger, reviewer):
        for method, more in (("CreateTaskPushNotificationConfig", {"url": "http://x/"}), ("DeleteTaskPushNotificationConfig", {})):
            answer = shared.post("/a2a/tools", {"jsonrpc": "2.0", "id": 7, "method": method, "params": {**config, **more}}, headers=agent.headers)
            assert answer.status == 403, answer
    # What a token has configured ends with the token.
    assert shared.delete(f"/v1/tokens/{mine['id']}").status == 204
    let_go(tools, "push-whose")
    await_state(shared, "/other")
    assert is_quiet(shared) and posts(shared, "/mine") == []
    assert shared.delete(f"/v1/workspaces/{elsewhere}").status == 204


def test_nobody_enters_the_workspace_from_which_another_principal_is_told(shared, tools):
    """The program there has the credentials of the receiver in its memory."""
    assert is_quiet(shared)
    shared.receiver.gate.clear()
    plan(shared, "/entered", *[None] * 4)
    tools.call("SendMessage", message=tools.message("echo hi", contextId="push-enter"), configuration={
        "taskPushNotificationConfig": {"url": url(shared, "/entered"), "authentication": {"scheme": "Bearer", "credentials": "hidden"}}})
    assert eventually(lambda: posts(shared, "/entered"))       # which waits for the gate
    made, = shared.get("/v1/workspaces?label=carrel.service=push").json()["items"]
    headers = {"Authorization": "Bearer " + shared.post("/v1/tokens", {"scope": "user"}).json()["text"]}
    base = f"/v1/workspaces/{made['id']}"
    for method, path, body in (("POST", "/exec", {"argv": ["true"]}), ("GET", "/files/proc/2/environ", None), ("PATCH", "", {"labels": {}}),
                               ("POST", "/snapshots", {}), ("POST", "/fork", {})):
        for who in (headers, None):
            answer = shared.request(method, base + path, body, who)
            assert answer.status == 403 and b"posts push notifications" in answer.body, (method, path, answer)
    assert shared.request("GET", base, headers=headers).json()["id"] == made["id"]
    plan(shared, "/entered")
    shared.receiver.gate.set()


def test_nothing_is_posted_after_a_config_is_deleted(shared, tools):
    task = hold(tools, "push-del", url=url(shared, "/deleted"), id="x")
    tools.call("CreateTaskPushNotificationConfig", taskId=task["id"], id="kept", url=url(shared, "/kept"))
    assert eventually(lambda: any("artifactUpdate" in body for _, body in posts(shared, "/deleted")))
    tools.call("DeleteTaskPushNotificationConfig", taskId=task["id"], id="x")
    let_go(tools, "push-del")
    await_state(shared, "/kept")
    assert is_quiet(shared) and not any(state_of(body) == "TASK_STATE_COMPLETED" for _, body in posts(shared, "/deleted"))


# ---- hosts that an agent pushes to ----

LISTED = "name: listed\ndescription: pushes to some hosts\nversion: v1\nkind: shell\npush: %s\n"


def test_an_agent_that_lists_hosts_pushes_to_these_alone(shared):
    """Checked when a config is set, with the message that brings one, and again before each post."""
    add(shared, LISTED % "[origin.test, '*.other.test']")
    listed = Agent(shared, "listed")
    task = hold(listed, "listed", url=url(shared, "/listed"), id="kept")
    assert shared.get("/v1/agents/listed").json()["push"] == ["origin.test", "*.other.test"]
    assert shared.get("/a2a/listed/.well-known/agent-card.json").json()["capabilities"]["pushNotifications"] is True
    for host in ("other.test", "origin.test.evil.test", "www.origin.test", "127.0.0.1", "[::1]"):
        config = {"url": url(shared, "/unlisted", host)}
        for message in (listed.fails(-32602, "CreateTaskPushNotificationConfig", taskId=task["id"], **config),
                        listed.fails(-32602, "SendMessage", message=listed.message("true"), configuration={"taskPushNotificationConfig": config}),
                        listed.fails(-32602, "SendMessage", message=listed.message("true", taskId=task["id"]), configuration={"taskPushNotificationConfig": config})):
            assert host.strip("[]") in message and "does not push to" in message
    answer = shared.post(f"/a2a/listed/tasks/{task['id']}/pushNotificationConfigs", {"url": url(shared, "/unlisted", "other.test")})
    assert answer.status == 400 and answer.json()["error"]["details"][0]["reason"] == "INVALID_PARAMS"
    assert eventually(lambda: any("artifactUpdate" in body for _, body in posts(shared, "/listed")))
    # The operator takes the host out of the list.
    add(shared, LISTED % "[elsewhere.test]")
    let_go(listed, "listed")
    failure, = failures(shared, task)
    assert "does not push to" in failure["error"] and failure["config"] == "kept"
    assert is_quiet(shared) and not posts(shared, "/unlisted")
    assert not any(state_of(body) == "TASK_STATE_COMPLETED" for _, body in posts(shared, "/listed"))


def test_an_agent_that_pushes_nothing_says_so_and_refuses_configs(shared):
    add(shared, LISTED % "none")
    listed = Agent(shared, "listed")
    assert shared.get("/a2a/listed/.well-known/agent-card.json").json()["capabilities"]["pushNotifications"] is False
    task = listed.send("true", contextId="none")
    config = {"url": url(shared, "/none")}
    for method, params in (("CreateTaskPushNotificationConfig", {"taskId": task["id"], **config}), ("GetTaskPushNotificationConfig", {"taskId": task["id"], "id": "x"}),
                           ("ListTaskPushNotificationConfigs", {"taskId": task["id"]}), ("DeleteTaskPushNotificationConfig", {"taskId": task["id"], "id": "x"}),
                           ("tasks/pushNotificationConfig/set", {"taskId": task["id"], "pushNotificationConfig": config}),
                           ("SendMessage", {"message": listed.message("true"), "configuration": {"taskPushNotificationConfig": config}})):
        listed.fails(-32003, method, **params)
    answer = shared.get(f"/a2a/listed/tasks/{task['id']}/pushNotificationConfigs")
    assert answer.status == 400 and answer.json()["error"]["details"][0]["reason"] == "PUSH_NOTIFICATION_NOT_SUPPORTED"


def test_an_agent_that_names_a_port_opens_it(shared):
    """One that the operator has not opened for lists of hosts."""
    with origin(handler=Receiver) as server:
        prepare(server)
        add(shared, LISTED % f"['origin.test:{server.port}']")
        listed = Agent(shared, "listed")
        listed.call("SendMessage", message=listed.message("echo hi", contextId="port"),
                    configuration={"taskPushNotificationConfig": {"url": f"http://origin.test:{server.port}/port"}})
        assert eventually(lambda: any(state_of(body) == "TASK_STATE_COMPLETED" for _, _, body in server.posts))
        assert is_quiet(shared)


# ---- receivers that must not be reached, or can't be ----

CLOSED = [
    ("http://127.0.0.1:{port}/private", "isn't public"), ("http://169.254.169.254/latest/meta-data", "isn't public"), ("http://[::1]:{port}/private", "isn't public"),
    ("http://localhost:{port}/private", "isn't public"), ("http://localhost.:{port}/private", "isn't public"), ("http://[::ffff:127.0.0.1]:{port}/private", "isn't public"), ("http://origin.test:22/private", "port"), ("https://origin.test:{tls}/private", "CERTIFICATE_VERIFY_FAILED")]


def test_what_egress_does_not_open_is_not_reached(shared, tools):
    tasks = []
    for to, words in CLOSED:
        config = {"url": to.format(port=shared.receiver.port, tls=shared.tls.port)}
        tasks.append(tools.call("SendMessage", message=tools.message("echo hi", contextId="push-egress"), configuration={"taskPushNotificationConfig": config})["task"])
        assert tasks[-1]["status"]["state"] == "TASK_STATE_COMPLETED"
    for task, (to, words) in zip(tasks, CLOSED):
        failure, = failures(shared, task)
        assert words in failure["error"] and failure["host"] in to and failure["config"] == task["id"], failure
        assert "/private" not in json.dumps(failure) and failure["task"] in shared.get("/v1/audit?type=task.push_failed").body.decode()
    assert is_quiet(shared) and not posts(shared, "/private") and not shared.tls.posts


def test_a_redirection_is_not_followed(shared, tools):
    plan(shared, "/moved", 307, 302, 307)
    task = tools.call("SendMessage", message=tools.message("echo hi", contextId="push-moved"),
                      configuration={"taskPushNotificationConfig": {"url": url(shared, "/moved"), "token": "t"}})["task"]
    failure, = failures(shared, task)
    assert "status 307" in failure["error"] and not posts(shared, "/away")


@pytest.mark.once
def test_a_receiver_that_fails_hangs_or_dies_is_tried_again_and_gets_the_state(shared, tools):
    """All at once, since the pauses add up."""
    shared.receiver.gate.clear()
    plan(shared, "/dies", 0, 500, 429)
    plan(shared, "/hangs", None)
    plan(shared, "/gone", 500, 503, 500, 502)
    tasks = {name: tools.call("SendMessage", message=tools.message("echo hi", contextId=f"push-{name}"), configuration={
        "taskPushNotificationConfig": {"url": url(shared, f"/{name}")}})["task"] for name in ("dies", "hangs", "gone")}
    for name in tasks:
        got = [body for _, body in await_state(shared, f"/{name}")]
        if name == "gone":      # given up after four attempts; the next post is the task, with all that was left out
            assert got[0] == got[1] == got[2] == got[3] and got[-1]["task"] == tasks[name]
        else:                   # the same one again, until it is taken
            tries = 4 if name == "dies" else 2
            assert all(body == got[0] for body in got[:tries]) and got[tries] != got[0] and "statusUpdate" in got[-1]
    failure, = failures(shared, tasks["gone"])
    assert "status 502" in failure["error"]


def test_a_core_that_is_killed_keeps_the_configs_and_tells_the_end(shared, tools):
    shared.receiver.gate.clear()
    plan(shared, "/cut", None)
    ended = tools.call("SendMessage", message=tools.message("echo hi", contextId="push-cut"), configuration={"taskPushNotificationConfig": {"url": url(shared, "/cut")}})["task"]
    assert eventually(lambda: posts(shared, "/cut"))
    shared.kill_core()
    shared.receiver.gate.set()
    assert [body for _, body in await_state(shared, "/cut")][-1] == {"task": ended}
    assert len(tools.call("ListTaskPushNotificationConfigs", taskId=ended["id"])["configs"]) == 1
    # What was told is not told again.
    assert is_quiet(shared)
    count = len(posts(shared, "/cut"))
    shared.kill_core()
    assert is_quiet(shared) and len(posts(shared, "/cut")) == count
    assert not shared.get("/v1/workspaces?label=carrel.service=push").json()["items"]


@pytest.mark.once
def test_a_question_that_was_not_taken_is_told_after_a_kill_and_then_not_again(shared):
    add(shared, "name: asks\ndescription: asks\nversion: v1\nkind: shell\nsettings: {permissions: {deny: []}}\n")
    asks = Agent(shared, "asks")
    shared.receiver.gate.clear()
    plan(shared, "/question", None)
    task = asks.call("SendMessage", message=asks.message("echo hi", contextId="question"), configuration={"taskPushNotificationConfig": {"url": url(shared, "/question")}})["task"]
    assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED" and eventually(lambda: posts(shared, "/question"))      # which waits for the gate
    shared.kill_core()
    shared.receiver.gate.set()
    assert eventually(lambda: posts(shared, "/question")[-1][1] == {"task": task}), posts(shared, "/question")
    # Its workspace is removed after the row says that it was told.
    assert is_quiet(shared)
    count = len(posts(shared, "/question"))
    shared.restart()
    assert metric(shared, "carrel_task_push_workspaces") == 0
    assert asks.send("approve", taskId=task["id"])["status"]["state"] == "TASK_STATE_COMPLETED"
    await_state(shared, "/question")
    assert all("task" not in body for _, body in posts(shared, "/question")[count:]), posts(shared, "/question")


@pytest.mark.shipped
@pytest.mark.needs_root
def test_a_receiver_whose_authority_the_host_trusts_is_told_by_https(tmp_path_factory):
    directory, certificates = new_directory(), make_certificates(tmp_path_factory.mktemp("own"))
    program = trusting(directory, certificates)
    try:
        with origin(certificates, handler=Receiver) as server:
            prepare(server)
            configure(directory / "carrel", ports=[443, server.port])
            with serving(directory, program=program) as daemon:
                add(daemon, TOOLS)
                tools = Agent(daemon, "tools")
                config = {"url": f"https://origin.test:{server.port}/tls", "authentication": {"scheme": "Bearer", "credentials": "s3cret-word"}}
                task = tools.call("SendMessage", message=tools.message("echo hi"), configuration={"taskPushNotificationConfig": config})["task"]
                assert eventually(lambda: any(state_of(body) == "TASK_STATE_COMPLETED" for _, _, body in server.posts))
                for path, headers, body in server.posts:
                    assert path == "/tls" and headers["authorization"] == "Bearer s3cret-word" and headers["host"] == f"origin.test:{server.port}"
                    assert task["id"] in json.dumps(body)
                assert "s3cret-word" not in daemon.log()
    finally:
        remove(directory)


@pytest.mark.shipped
@pytest.mark.needs_root
def test_a_host_without_python3_is_the_reason_of_a_push_that_is_given_up(shared):
    """Its /usr/bin has a shell alone."""
    directory = new_directory()
    commands, nothing = directory / "bin", directory / "nothing"
    for path in (commands, nothing):
        path.mkdir()
    shutil.copy("/bin/sh", commands / "sh")
    program = on_host_with(directory, {"/usr/local/bin": nothing, "/usr/bin": commands})
    configure(directory / "carrel", ports=[shared.receiver.port])
    try:
        with serving(directory, program=program) as daemon:
            add(daemon, TOOLS)
            tools = Agent(daemon, "tools")
            task = tools.call("SendMessage", message=tools.message("echo hi"), configuration={"taskPushNotificationConfig": {"url": url(shared, "/python")}})["task"]
            failure, = failures(daemon, task)
            assert "python3" in failure["error"] and "not found on the host" in failure["error"] and not posts(shared, "/python")
    finally:
        remove(directory)
