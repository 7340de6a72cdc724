"""The example agent: two processes on one PostgreSQL serve one context in turn, for a client of a2a-sdk."""
import asyncio
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import uuid

import httpx
import pytest
from a2a.client import ClientConfig, create_client
from a2a.helpers import get_artifact_text, get_data_parts, get_message_text, new_data_part, new_text_part
from a2a.types import CancelTaskRequest, GetTaskRequest, ListTasksRequest, Message, Role, SendMessageRequest, TaskState
from a2a.utils.errors import TaskNotCancelableError
from conftest import SETTINGS

AGENT = pathlib.Path(__file__).parent.parent / "examples/agent.py"
SECONDS = 300
ENVIRONS = "import glob, os; print([open(path).read() for path in glob.glob('/proc/[0-9]*/environ') if os.access(path, os.R_OK)])"
COMPLETED, ASKED, FAILED = TaskState.TASK_STATE_COMPLETED, TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_FAILED
CANCELED, REJECTED = TaskState.TASK_STATE_CANCELED, TaskState.TASK_STATE_REJECTED


class Agent:
    """A process of the example."""

    def __init__(self, database, settings):
        self.process = subprocess.Popen(
            [sys.executable, AGENT, "--port", "0"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "DATABASE_URL": database, "SETTINGS": str(settings)})

    def url(self):
        line = self.process.stdout.readline()
        assert line.startswith("carrel-example serves http://"), line
        return line.split()[-1]

    def end(self, signo=signal.SIGTERM):
        """Its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signo)
        with self.process:
            return self.process.wait(60)


@pytest.fixture(scope="module")
def agents(database, tmp_path_factory):
    """The URLs of two processes."""
    settings = tmp_path_factory.mktemp("agent") / "settings.json"
    settings.write_text(json.dumps(SETTINGS))
    made = [Agent(database, settings) for _ in range(2)]     # both make the tables
    try:
        yield [agent.url() for agent in made]
    finally:
        codes = [agent.end() for agent in made]
    # uvicorn ends by the signal that it got, after it has closed all.
    assert all(code in (0, -signal.SIGTERM) for code in codes), codes


@contextlib.asynccontextmanager
async def clients(urls, **config):
    async with contextlib.AsyncExitStack() as stack:
        http = await stack.enter_async_context(httpx.AsyncClient(timeout=SECONDS))     # 5 s by default: too few on a busy machine
        yield [await stack.enter_async_context(await create_client(url, ClientConfig(httpx_client=http, **config))) for url in urls]


async def send(client, context, *parts, task=None):
    """The task as it is when the agent yields."""
    message = Message(role=Role.ROLE_USER, message_id=str(uuid.uuid4()), context_id=context, task_id=task,
                      parts=[new_text_part(part) if isinstance(part, str) else new_data_part(part) for part in parts])
    found = None
    async for event in client.send_message(SendMessageRequest(message=message)):
        found = event.task.id or event.status_update.task_id or event.artifact_update.task_id or found
    return await client.get_task(GetTaskRequest(id=found))


def result(task):
    assert task.status.state == COMPLETED, task
    return "\n".join(get_artifact_text(artifact) for artifact in task.artifacts)


def operation_of(task):
    assert task.status.state == ASKED, task
    operation, = get_data_parts(list(task.status.message.parts))
    return operation


@pytest.mark.parametrize("config", [{}, {"streaming": False}, {"supported_protocol_bindings": ["HTTP+JSON"]}], ids=["stream", "send", "http+json"])
async def test_two_processes_serve_one_context(agents, context, carrel, config):
    async with clients(agents, **config) as (one, other):
        assert result(await send(one, context, "write: open/notes.txt buy milk")) == "wrote open/notes.txt"
        assert result(await send(other, context, "read: open/notes.txt\nshell: echo too")) == "buy milk\ntoo"
        task = await send(one, context, "shell: touch it")
        operation = operation_of(task)
        assert operation["command"] == "touch it" and operation["cwd"] == "/workspace" and operation["trail"][0]["decision"] == "ask"
        assert "touch it" in get_message_text(task.status.message) and task.context_id == context
        again = await send(other, context, "perhaps", task=task.id)
        assert operation_of(again) == operation and not carrel.get(context).files.exists("it")
        assert result(await send(other, context, "approve", task=task.id)) == ""
        assert carrel.get(context).files.exists("it")
        assert result(await send(one, context, "shell: echo and on")) == "and on"
    assert carrel.approvals.get(operation["approval"]).state == "approved"


async def test_a_process_that_was_killed_is_not_missed(agents, database, context, busy, carrel, tmp_path):
    """While one context waits for approvals, and a command of another one runs."""
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps(SETTINGS))
    doomed = Agent(database, settings)
    try:
        async with clients([await asyncio.to_thread(doomed.url)]) as (one,):
            task = await send(one, context, "shell: touch first\nshell: touch second")
            await begun(one, busy, carrel)
    finally:
        doomed.end(signal.SIGKILL)
    first, second = get_data_parts(list(task.status.message.parts))
    async with clients(agents[:1]) as (other,):
        both = await send(other, context, "approve", task=task.id)
        assert len(get_data_parts(list(both.status.message.parts))) == 2, "a word answered one of two operations"
        task = await send(other, context, {"approval": second["approval"], "decision": "approve"}, task=task.id)
        assert operation_of(task)["approval"] == first["approval"] and carrel.get(context).files.exists("second")
        told = result(await send(other, context, {"approval": first["approval"], "decision": "deny", "note": "not this one"}, task=task.id))
        assert result(await send(other, busy, "shell: echo next")) == "next"
    assert "not this one" in told and not carrel.get(context).files.exists("first")
    assert {exec_.id for exec_ in carrel.get(context).execs()} == {first["exec"], second["exec"]}


async def begun(client, context, carrel):
    """A task whose command runs: (what the client awaits, the exec)."""
    await send(client, context, "write: open/log begin")
    sent = asyncio.ensure_future(send(client, context, "shell: echo > open/begun; sleep 1000"))
    sent.add_done_callback(lambda sent: sent.cancelled() or sent.exception())     # of a process that is killed
    while not sent.done() and not carrel.get(context).files.exists("open/begun"):
        await asyncio.sleep(0.02)
    running, = [exec_ for exec_ in carrel.get(context).execs() if exec_.info.state == "running"]
    return sent, running


async def test_first_messages_at_once_share_a_workspace(agents, context, carrel):
    async with clients(agents) as (one, other):
        tasks = await asyncio.gather(*(send(client, context, f"shell: echo {index}") for index, client in enumerate((one, other) * 2)))
    assert [result(task) for task in tasks] == ["0", "1", "2", "3"]
    assert len(list(carrel.list(label=f"context_id={context}"))) == 1


async def test_a_context_whose_task_waits_takes_no_other_message(agents, context, carrel):
    async with clients(agents) as (one, other):
        task = await send(one, context, "shell: touch it")
        refused = await send(other, context, "shell: echo meanwhile")
        assert refused.status.state == REJECTED and task.id in get_message_text(refused.status.message)
        assert result(await send(other, context, "deny", task=task.id)).startswith("denied")
        assert result(await send(one, context, "shell: echo afterwards")) == "afterwards"


@pytest.mark.parametrize("index", [0, 1], ids=["here", "in another process"])
async def test_a_task_that_waits_is_canceled(agents, context, carrel, index):
    async with clients(agents) as both:
        task = await send(both[0], context, "shell: touch never")
        operation = operation_of(task)
        canceled = await both[index].cancel_task(CancelTaskRequest(id=task.id))
        assert canceled.status.state == CANCELED
        # At the latest with the next message nothing waits any more, and the history is complete.
        assert result(await send(both[1], context, "shell: echo next")) == "next"
        with pytest.raises(TaskNotCancelableError):
            await both[0].cancel_task(CancelTaskRequest(id=task.id))
    assert carrel.approvals.get(operation["approval"]).state == "denied" and not carrel.get(context).files.exists("never")


async def test_a_running_task_is_canceled_with_its_command(agents, context, carrel):
    async with clients(agents) as (one, other):
        sent, running = await begun(one, context, carrel)
        working = []
        while not working:      # its state is stored while the command runs
            listed = await one.list_tasks(ListTasksRequest(context_id=context))
            working = [task for task in listed.tasks if task.status.state == TaskState.TASK_STATE_WORKING]
        task, = working
        assert (await one.cancel_task(CancelTaskRequest(id=task.id))).status.state == CANCELED
        await sent
        assert (await asyncio.to_thread(running.wait, 60)).reason == "signaled"
        assert result(await send(other, context, "shell: echo next")) == "next"


async def test_no_sandbox_sees_a_token(agents, context):
    async with clients(agents[:1]) as (one,):
        told = result(await send(one, context, f"shell: env\npython: {ENVIRONS}"))
    assert told.count("PATH=") > 1 and "crl_" not in told
    assert os.environ["CARREL_TOKEN"] not in told and os.environ["CARREL_REVIEWER_TOKEN"] not in told


async def test_what_an_operator_must_mend_fails_the_task(agents, carrel):
    """The context is the name of a workspace that isn't the agent's."""
    with carrel.create() as foreign:
        async with clients(agents[:1]) as (one,):
            task = await send(one, foreign.name, "shell: echo it")
            assert task.status.state == FAILED and "another workspace" in get_message_text(task.status.message)
