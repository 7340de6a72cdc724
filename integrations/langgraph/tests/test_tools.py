"""The tools in a graph: what is allowed, asked and denied, and that a command runs once, with the bytes that were approved."""
import asyncio
import os
import sys
import uuid
from datetime import timedelta

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../examples"))
from agent import build_graph  # noqa: E402
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from carrel import AsyncCarrel
from carrel_langgraph import ContextError, approve, deny

# Bytes that a rendering would change: quotes, a newline, a right-to-left mark.
AWKWARD = "touch 'it'\"'\"'s $HOME' \"a\nb\" \u202etxt"


class Talk:
    """A thread of a graph. Every message has a graph of its own, as in another process: only the checkpointer stays."""

    def __init__(self, contexts, thread, saver=None):
        self.contexts, self.saver = contexts, saver or InMemorySaver()
        self.config = {"configurable": {"thread_id": thread}}

    async def run(self, given):
        await build_graph(self.contexts, self.saver).ainvoke(given, self.config)
        return await build_graph(self.contexts, self.saver).aget_state(self.config)

    async def say(self, text):
        return await self.run({"messages": [HumanMessage(text)]})

    async def resume(self, value):
        return await self.run(Command(resume=value))


def answers(state):
    """The messages of tools since the last one of the user, in the order of their calls."""
    messages = state.values["messages"]
    calls = [call["id"] for message in messages if isinstance(message, AIMessage) for call in message.tool_calls]
    found = {message.tool_call_id: message for message in messages if isinstance(message, ToolMessage)}
    return [found[call] for call in calls if call in found]


def execs(carrel, context):
    return list(carrel.get(context).execs())


async def test_tools_work_in_the_workspace_of_the_thread(contexts, context, carrel):
    async with contexts() as made:
        talk = Talk(made, context)
        await talk.say("write: open/notes.txt buy milk")
        state = await talk.say("shell: cat open/notes.txt\npython: print(6 * 7)\nread: open/notes.txt\nlist: open\nshell: false")
        shown = [message.text for message in answers(state)[1:]]
        assert shown == ["buy milk", "42", "buy milk", "file 8 notes.txt", "exited, exit code 1"]
        assert answers(state)[-1].artifact["exit_code"] == 1 and answers(state)[1].artifact["stdout"] == "buy milk"
        missing, = answers(await Talk(made, context).say("read: nothing"))
        assert missing.status == "error" and "nothing" in missing.text
    info = carrel.get(context).info
    assert info.labels == {"context_id": context, "agent": "tests"}
    assert info.expires_at and timedelta(days=6) < info.expires_at - info.created_at <= timedelta(days=7)
    assert {"scripts", "data", "repos", "output", ".context.json"} <= {entry.name for entry in carrel.get(context).files.list()}


async def test_packages_are_installed_and_sources_bound_them(contexts, context):
    async with contexts(sources={"package_managers": {"pip": {"enabled": True, "blocked_packages": ["pyautogui"]}}}) as made:
        talk = Talk(made, context)
        installed, = answers(await talk.say("install: six"))
        assert installed.text.startswith("+ six ")
        run = answers(await talk.say("python: import six; print(six.__file__)"))[-1]
        assert run.text.startswith("/env/")
        blocked = answers(await talk.say("install: pyautogui"))[-1]
        assert blocked.status == "error" and "pyautogui" in blocked.text


async def test_what_is_denied_is_told_to_the_model(contexts, context, carrel):
    async with contexts() as made:
        state = await Talk(made, context).say("shell: curl https://example.com")
    told, = answers(state)
    assert told.status == "error" and "shell(curl:*)" in told.text and not state.interrupts
    assert execs(carrel, context) == []


async def test_an_approved_command_runs_once_with_the_bytes_that_were_shown(contexts, context, carrel):
    async with contexts() as made:
        talk = Talk(made, context)
        state = await ask(talk, AWKWARD, cwd="data")
        asked, = state.interrupts
        operation = asked.value
        assert operation["command"] == AWKWARD and operation["argv"] is None and operation["cwd"] == "/workspace/data"
        assert operation["context_id"] == context and operation["tool"] == "shell" and operation["trail"][0]["decision"] == "ask"
        waiting, = execs(carrel, context)
        assert (waiting.id, waiting.info.state) == (operation["exec"], "waiting")
        state = await talk.resume(approve(operation, "go on"))
        assert answers(state)[-1].text == "" and not state.interrupts
    ran, = execs(carrel, context)
    assert ran.id == operation["exec"] and ran.info.exit_code == 0
    assert {entry.name for entry in carrel.get(context).files.list("data")} == {"it's $HOME", "a\nb", "\u202etxt"}
    approval = carrel.approvals.get(operation["approval"])
    assert approval.state == "approved" and approval.note == "go on" and approval.requested_by != approval.answered_by


async def ask(talk, command, **args):
    """As if the model had called `shell` with these arguments."""
    graph = build_graph(talk.contexts, talk.saver)
    call = {"name": "shell", "args": {"command": command, **args}, "id": uuid.uuid4().hex, "type": "tool_call"}
    await graph.aupdate_state(talk.config, {"messages": [AIMessage("", tool_calls=[call])]}, as_node="model")
    return await talk.run(None)


async def test_a_denied_command_does_not_run(contexts, context, carrel):
    async with contexts() as made:
        talk = Talk(made, context)
        state = await talk.say("shell: touch never")
        state = await talk.resume(deny(state.interrupts[0].value, "not on my disk"))
    told, = answers(state)
    assert told.status == "error" and "not on my disk" in told.text
    assert not carrel.get(context).files.exists("never")


@pytest.mark.parametrize("value", ["approve", True, {"decision": "approve"}, {"approval": "38n37hck65gg6uc90i61", "decision": "approve"}])
async def test_a_value_that_names_another_approval_approves_nothing(contexts, context, carrel, value):
    async with contexts() as made:
        talk = Talk(made, context)
        first = (await talk.say("shell: touch it")).interrupts[0].value
        again = (await talk.resume(value)).interrupts[0].value
        assert again == first and carrel.approvals.get(first["approval"]).state == "pending"
        assert not (await talk.resume(approve(first))).interrupts
    assert carrel.get(context).files.exists("it") and len(execs(carrel, context)) == 1


async def test_calls_of_one_message_are_answered_one_by_one(contexts, context, carrel):
    async with contexts() as made:
        talk = Talk(made, context)
        state = await talk.say("shell: touch first\nshell: echo between\nshell: touch second")
        first, second = state.interrupts
        assert (first.value["command"], second.value["command"]) == ("touch first", "touch second")
        state = await talk.resume({second.id: approve(second.value)})
        assert [one.value["approval"] for one in state.interrupts] == [first.value["approval"]]
        assert carrel.get(context).files.exists("second") and not carrel.get(context).files.exists("first")
        state = await talk.resume({first.id: deny(first.value)})
    assert [message.status for message in answers(state)] == ["error", "success", "success"] and len(execs(carrel, context)) == 3


async def test_a_file_that_the_policy_asks_about_shows_its_content(contexts, context, carrel):
    async with contexts() as made:
        talk = Talk(made, context)
        operation = (await talk.say("write: closed/it's it's \"secret\"")).interrupts[0].value
        assert operation["tool"] == "write_file" and "closed/it" in operation["command"] and '"secret"' in operation["command"]
        state = await talk.resume(approve(operation))
        assert answers(state)[-1].text == "wrote closed/it's"
        assert carrel.get(context).files.read_text("closed/it's") == 'it\'s "secret"'
        operation = (await talk.say("remove: closed/it's")).interrupts[0].value
        refused = answers(await talk.resume(deny(operation, "keep it")))[-1]
    assert refused.status == "error" and "keep it" in refused.text and carrel.get(context).files.exists("closed/it's")


async def test_an_answer_given_elsewhere_holds(contexts, context, carrel):
    async with contexts() as made, AsyncCarrel(token=os.environ["CARREL_REVIEWER_TOKEN"]) as reviewer:
        talk = Talk(made, context)
        operation = (await talk.say("shell: touch never")).interrupts[0].value
        await reviewer.approvals.deny(operation["approval"], note="by hand")
        state = await talk.resume(approve(operation))
        assert "by hand" in answers(state)[-1].text and not carrel.get(context).files.exists("never")


async def test_without_a_reviewer_the_graph_asks_until_a_person_has_answered(contexts, context, carrel):
    async with contexts(has_reviewer=False) as made, AsyncCarrel(token=os.environ["CARREL_REVIEWER_TOKEN"]) as reviewer:
        talk = Talk(made, context)
        operation = (await talk.say("shell: touch it")).interrupts[0].value
        assert (await talk.resume(approve(operation))).interrupts, "the agent approved its own command"
        await reviewer.approvals.approve(operation["approval"])
        assert not (await talk.resume(approve(operation))).interrupts
    assert carrel.get(context).files.exists("it")


class Dying(InMemorySaver):
    """Loses what is written after a command has begun, once: the process dies there."""

    is_dead = False

    async def aput_writes(self, config, writes, task_id, task_path=""):
        if not self.is_dead and any(isinstance(value, dict) and "exec" in value for _, value in writes):
            self.is_dead = True
            raise ConnectionResetError("the database is gone")
        await super().aput_writes(config, writes, task_id, task_path)


async def test_a_command_is_not_started_twice_when_the_checkpoint_is_lost(contexts, context, carrel):
    async with contexts() as made:
        talk = Talk(made, context, Dying())
        with pytest.raises(ConnectionResetError):
            await talk.say("shell: echo once >> data/log; touch it")
        state = await talk.run(None)
        assert len(execs(carrel, context)) == 1
        await talk.resume(approve(state.interrupts[0].value))
    assert carrel.get(context).files.read_text("data/log") == "once\n" and len(execs(carrel, context)) == 1


async def test_a_canceled_graph_ends_its_command(contexts, context, carrel):
    async with contexts() as made:
        talk = Talk(made, context)
        await talk.say("write: open/log begin")
        run = asyncio.ensure_future(talk.say("shell: echo > open/begun; sleep 1000"))
        while not run.done() and not carrel.get(context).files.exists("open/begun"):
            await asyncio.sleep(0.02)
        while not run.done():       # what ends the command is not cut off by another cancellation
            run.cancel()
            await asyncio.sleep(0.01)
        with pytest.raises(asyncio.CancelledError):
            await run
        # LangGraph doesn't wait for what a canceled tool still does: the clients stay open until it is done.
        ended = await asyncio.to_thread(execs(carrel, context)[0].wait, 60)
        assert ended.reason == "signaled"


async def test_several_that_ask_at_once_get_one_workspace(contexts, context):
    async with contexts() as one, contexts() as other:
        found = await asyncio.gather(*(made.workspace(context) for made in (one, other) * 4))
    assert len({workspace.id for workspace in found}) == 1


async def test_a_context_reaches_no_other_workspace(contexts, context, carrel):
    async with contexts() as made, contexts(agent="another") as another:
        with carrel.create() as foreign:
            for text in (foreign.name, foreign.id):
                with pytest.raises(ContextError, match="name or id"):
                    await made.workspace(text)
        await made.workspace(context)
        with pytest.raises(ContextError, match="another agent"):
            await another.workspace(context)
        with pytest.raises(ContextError):
            await made.workspace("")
