"""A2A with the client of the a2a-sdk, 1.0 by both bindings, and its client of 0.3."""
import socket
import subprocess

import pytest

from daemons import furnish, new_directory, remove, serving, serving_anew
from harness import programs_of
from origins import configure
from test_a2a import ASKS, TOOLS, add

# The messages are the same for every user, and test_a2a.py sends them to the sanitised daemon, too.
pytestmark = [pytest.mark.once, pytest.mark.shipped]
SCRIPT = r'''
import asyncio, sys, uuid
import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import (CancelTaskRequest, GetTaskRequest, ListTasksRequest, Message, Part, Role, SendMessageRequest, SubscribeToTaskRequest,
                       TaskState)
from a2a.utils.errors import TaskNotCancelableError, TaskNotFoundError

socket, binding, version = sys.argv[1:]

def ask(text, **more):
    return SendMessageRequest(message=Message(message_id=uuid.uuid4().hex, role=Role.ROLE_USER, parts=[Part(text=text)], **more))

async def connect(http, name):
    card = await A2ACardResolver(http, f"http://localhost/a2a/{name}").get_agent_card()
    kept = [one for one in card.supported_interfaces if one.protocol_version == version and one.protocol_binding == binding]
    assert len(kept) == 1, card
    del card.supported_interfaces[:]
    card.supported_interfaces.extend(kept)
    return ClientFactory(ClientConfig(httpx_client=http, streaming=True, supported_protocol_bindings=[binding])).create(card)

async def follow(events):
    """(the task, its last state, the text of stdout)."""
    task = state = None
    out = ""
    async for event in events:
        kind = event.WhichOneof("payload")
        if kind == "task":
            assert task is None
            task, state = event.task, event.task.status.state
            out = "".join(part.text for one in task.artifacts if one.artifact_id == "stdout" for part in one.parts)
        elif kind == "status_update":
            state = event.status_update.status.state
        elif kind == "artifact_update" and event.artifact_update.artifact.artifact_id == "stdout":
            out += event.artifact_update.artifact.parts[0].text
    return task, state, out

async def main():
    async with httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(uds=socket), timeout=120) as http:
        client = await connect(http, "tools")
        context = f"sdk-{binding}-{version}"
        task, state, out = await follow(client.send_message(ask("for i in 1 2 3; do echo $i; sleep 0.1; done", context_id=context)))
        assert (state, out) == (TaskState.TASK_STATE_COMPLETED, "1\n2\n3\n"), (state, out)
        got = await client.get_task(GetTaskRequest(id=task.id))
        assert got.status.state == TaskState.TASK_STATE_COMPLETED and got.artifacts[0].parts[0].text == out
        if version == "1.0":
            assert [one.id for one in (await client.list_tasks(ListTasksRequest(context_id=context))).tasks] == [task.id]

        # One stream is left, the other comes back, and both see the end.
        stream = client.send_message(ask("echo a; while [ ! -e go ]; do sleep 0.05; done; echo b", context_id=context))
        async for event in stream:
            if event.WhichOneof("payload") == "artifact_update":
                break
            if event.WhichOneof("payload") == "task":
                waiting = event.task.id
        await stream.aclose()
        again = asyncio.create_task(follow(client.subscribe(SubscribeToTaskRequest(id=waiting))))
        await follow(client.send_message(ask("touch go", context_id=context)))
        task, state, out = await again
        assert (task.id, state, out) == (waiting, TaskState.TASK_STATE_COMPLETED, "a\nb\n"), (state, out)

        stream = client.send_message(ask("sleep 1000", context_id=context))
        async for event in stream:
            if event.WhichOneof("payload") == "task":
                running = event.task.id
                break
        await stream.aclose()
        assert (await client.cancel_task(CancelTaskRequest(id=running))).status.state == TaskState.TASK_STATE_CANCELED
        for error, id in ((TaskNotCancelableError, running), (TaskNotFoundError, "nosuch")):
            try:
                await client.cancel_task(CancelTaskRequest(id=id))
                raise SystemExit(f"{id} was canceled")
            except error:
                pass

        asks = await connect(http, "asks")
        for answer, end in (("approve", TaskState.TASK_STATE_COMPLETED), ("deny", TaskState.TASK_STATE_REJECTED)):
            task, state, _ = await follow(asks.send_message(ask("touch marked", context_id=context)))
            assert state == TaskState.TASK_STATE_INPUT_REQUIRED
            _, state, _ = await follow(asks.send_message(ask(answer, task_id=task.id, context_id=context)))
            assert state == end, state
    print("ok")

asyncio.run(main())
'''


# Its receiver of notifications reads them with the types of the SDK.
PUSHES = r'''
import asyncio, http.server, json, queue, socket as sockets, sys, threading, uuid
import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.compat.v0_3 import types as old
from a2a.types import (AgentCard, DeleteTaskPushNotificationConfigRequest, GetExtendedAgentCardRequest, GetTaskPushNotificationConfigRequest,
                       ListTaskPushNotificationConfigsRequest, Message, Part, Role, SendMessageConfiguration, SendMessageRequest, StreamResponse,
                       TaskPushNotificationConfig, TaskState)
from a2a.types.a2a_pb2 import AuthenticationInfo
from a2a.utils.errors import TaskNotFoundError
from google.protobuf import json_format

socket, binding, version, listener = sys.argv[1:]
listener = sockets.socket(fileno=int(listener))
port = listener.getsockname()[1]
posts = queue.Queue()

class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()
        # A post that was not answered is sent again, to the next script that listens here.
        posts.put((self.headers["X-A2A-Notification-Token"], self.headers["Authorization"], body))

    def log_message(self, *args):
        pass

def read(body):
    """(id of the task, its state or None)."""
    if version == "0.3":
        task = old.Task.model_validate(body)
        return task.id, {"completed": TaskState.TASK_STATE_COMPLETED}.get(task.status.state.value)
    event = json_format.ParseDict(body, StreamResponse())
    kind = event.WhichOneof("payload")
    if kind == "artifact_update":
        return event.artifact_update.task_id, None
    if kind == "status_update":
        return event.status_update.task_id, event.status_update.status.state
    return event.task.id, event.task.status.state

def ask(text, **more):
    return SendMessageRequest(message=Message(message_id=uuid.uuid4().hex, role=Role.ROLE_USER, parts=[Part(text=text)], context_id=f"{binding}-{version}"), **more)

async def follow(events):
    async for event in events:
        if event.WhichOneof("payload") == "task":
            task = event.task.id
    return task

async def main():
    # One request at a time: the next one is sent when this one is answered, and must not be noted before it.
    receiver = http.server.HTTPServer(("127.0.0.1", 0), Receiver, bind_and_activate=False)
    receiver.socket.close()
    receiver.socket = listener
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    async with httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(uds=socket), timeout=120) as http_client:
        card = await A2ACardResolver(http_client, "http://localhost/a2a/tools").get_agent_card()
        assert card.capabilities.push_notifications and card.capabilities.extended_agent_card
        kept = [one for one in card.supported_interfaces if one.protocol_version == version and one.protocol_binding == binding]
        del card.supported_interfaces[:]
        card.supported_interfaces.extend(kept)
        client = ClientFactory(ClientConfig(httpx_client=http_client, streaming=True, supported_protocol_bindings=[binding])).create(card)
        extended = await client.get_extended_agent_card(GetExtendedAgentCardRequest())
        assert [skill.id for skill in extended.skills] == ["shell", "root"], extended

        config = TaskPushNotificationConfig(id="mine", url=f"http://origin.test:{port}/", token="genuine", authentication=AuthenticationInfo(scheme="Bearer", credentials="word"))
        task = await follow(client.send_message(ask("echo hi", configuration=SendMessageConfiguration(task_push_notification_config=config))))
        state = None
        while state != TaskState.TASK_STATE_COMPLETED:
            token, authorization, body = posts.get(timeout=100)
            assert (token, authorization) == ("genuine", "Bearer word")
            id, now = read(body)
            assert id == task
            state = now or state

        name = GetTaskPushNotificationConfigRequest(task_id=task, id="mine")
        got = await client.get_task_push_notification_config(name)
        assert (got.id, got.task_id, got.url, got.token, got.authentication.scheme, got.authentication.credentials) == (
            "mine", task, config.url, "genuine", "Bearer", ""), got
        config.id, config.task_id = "other", task
        made = await client.create_task_push_notification_config(config)
        assert (made.id, made.task_id) == ("other", task)
        assert read(posts.get(timeout=100)[2]) == (task, TaskState.TASK_STATE_COMPLETED)    # it had ended already
        listed = await client.list_task_push_notification_configs(ListTaskPushNotificationConfigsRequest(task_id=task))
        assert [one.id for one in listed.configs] == ["mine", "other"]
        await client.delete_task_push_notification_config(DeleteTaskPushNotificationConfigRequest(task_id=task, id="mine"))
        try:
            await client.get_task_push_notification_config(name)
            raise SystemExit("it was not deleted")
        except TaskNotFoundError:
            pass
    print("ok")

asyncio.run(main())
'''


@pytest.fixture(scope="session")
def python():
    """An interpreter that has the SDK: that of the tests of integrations/langgraph."""
    return programs_of("langgraph") / "python"


@pytest.mark.parametrize("binding, version", [("JSONRPC", "1.0"), ("HTTP+JSON", "1.0"), ("JSONRPC", "0.3")])
def test_the_sdk_streams_cancels_comes_back_and_answers(furnished_home, python, tmp_path, binding, version):
    script = tmp_path / "client.py"
    script.write_text(SCRIPT)
    with serving_anew(source=furnished_home) as daemon:
        add(daemon, TOOLS)
        add(daemon, ASKS)
        done = subprocess.run([python, "-I", script, daemon.socket, binding, version], capture_output=True, text=True, timeout=300)
        assert done.stdout == "ok\n", done.stderr


@pytest.fixture(scope="module")
def pushing(furnished_home):
    """A daemon whose operator has opened a name of this host, and a port of it, on which its scripts listen."""
    directory = new_directory()
    furnish(directory, furnished_home)
    try:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            configure(directory / "carrel", ports=[listener.getsockname()[1]])
            with serving(directory) as daemon:
                add(daemon, TOOLS + "extended: {skills: [{id: root, name: Root, description: runs as root, tags: [root]}]}\n")
                daemon.listener = listener.fileno()
                yield daemon
    finally:
        remove(directory)


@pytest.mark.parametrize("binding, version", [("JSONRPC", "1.0"), ("HTTP+JSON", "1.0"), ("JSONRPC", "0.3")])
def test_the_sdk_configures_pushes_and_reads_them(python, pushing, tmp_path, binding, version):
    script = tmp_path / "client.py"
    script.write_text(PUSHES)
    done = subprocess.run([python, "-I", script, pushing.socket, binding, version, str(pushing.listener)], pass_fds=[pushing.listener],
                          capture_output=True, text=True, timeout=300)
    assert done.stdout == "ok\n", done.stderr
