"""Serves a graph with Carrel's tools over A2A: the contextId of a message is the thread_id of the graph.

A task whose graph is interrupted is input-required, with the exact operation; the next message of that task answers it. All state
is in the checkpointer, the task store and the workspace, so any process of an agent can serve any message. Needs the extra `a2a`."""
from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import shlex
from typing import Any, AsyncContextManager, AsyncIterator, Dict, List, Mapping, Optional, Protocol, Tuple

import psycopg
from a2a.helpers import get_data_parts, new_data_part, new_task_from_user_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.cluster import LegacyTaskStoreAdapter, VersionedTaskStore
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskStore, TaskUpdater
from a2a.types import Message, Part, TaskState
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, Interrupt, StateSnapshot

from ._approvals import Operation, is_operation
from ._contexts import Contexts

logger = logging.getLogger(__name__)
PAUSE_LEAST, PAUSE_MOST = 0.02, 0.5
TASK = "a2a_task_id"
OPEN = (TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING, TaskState.TASK_STATE_INPUT_REQUIRED)
HOW = "Answer 'approve' or 'deny', or a data part {\"approval\": ID, \"decision\": \"approve\" or \"deny\", \"note\": TEXT}."


class Turns(Protocol):
    """One run at a time for a context: two runs of one thread would write over each other's checkpoints."""

    def __call__(self, context_id: str) -> AsyncContextManager[None]: ...


def postgres_turns(conninfo: str) -> Turns:
    """Turns for all processes that use this database, by an advisory lock. It ends with its connection, so a process that dies
    keeps no turn."""
    @contextlib.asynccontextmanager
    async def turn(context_id: str) -> AsyncIterator[None]:
        key = int.from_bytes(hashlib.sha256(context_id.encode()).digest()[:8], "big", signed=True)
        async with await psycopg.AsyncConnection.connect(conninfo, autocommit=True) as connection:
            # Asked again and again: a statement that waits for the lock holds a snapshot, and CREATE INDEX CONCURRENTLY, which makes
            # the tables of the checkpointer, would wait for that snapshot.
            pause = PAUSE_LEAST
            while not await _is_taken(connection, key):
                await asyncio.sleep(pause)
                pause = min(pause * 2, PAUSE_MOST)
            yield
    return turn


async def _is_taken(connection: "psycopg.AsyncConnection[Tuple[Any, ...]]", key: int) -> bool:
    row = await (await connection.execute("SELECT pg_try_advisory_lock(%s)", (key,))).fetchone()
    return bool(row and row[0])


class GraphExecutor(AgentExecutor):
    """Runs the tasks of an A2A server on a graph whose state has `messages`.

    `tasks` is the store of the server: a context whose task waits for an answer takes no other message until that task has
    ended. `tools_node` is the node that answers tool calls; it closes those of a run that was canceled or cut short."""

    def __init__(self, graph: CompiledStateGraph[Any, Any, Any, Any], contexts: Contexts, turns: Turns,
                 tasks: "TaskStore | VersionedTaskStore", *, tools_node: str = "tools") -> None:
        self._graph = graph
        self._contexts = contexts
        self._turns = turns
        self._tasks = tasks if isinstance(tasks, VersionedTaskStore) else LegacyTaskStoreAdapter(tasks)
        self._tools_node = tools_node
        self._runs: Dict[str, Tuple["asyncio.Task[None]", asyncio.Event]] = {}

    # ---- what the server calls ----

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Runs the graph for one message: to its end, or to the next question."""
        assert context.message is not None and context.task_id is not None and context.context_id is not None
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        if context.current_task is None:
            await event_queue.enqueue_event(new_task_from_user_message(context.message))
        run, ended = asyncio.ensure_future(self._serve(context, updater)), asyncio.Event()
        self._runs[context.task_id] = run, ended
        try:
            await asyncio.wait({run})
        except asyncio.CancelledError:
            run.cancel()
            await asyncio.wait({run})
            raise
        else:
            if run.cancelled():     # by `cancel`
                await self._close(context.context_id, "the task was canceled")
                await updater.cancel()
            elif error := run.exception():
                logger.error("task %s failed", context.task_id, exc_info=error)
                await updater.failed(updater.new_agent_message([new_text_part(str(error) or type(error).__name__)]))
        finally:
            del self._runs[context.task_id]
            ended.set()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Ends the commands of the task, denies those that wait, and closes its tool calls in the history."""
        assert context.task_id is not None and context.context_id is not None
        if running := self._runs.get(context.task_id):
            run, ended = running
            run.cancel()
            await ended.wait()
            return
        await self._close(context.context_id, "the task was canceled", context.task_id)
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()

    # ---- one message ----

    async def _serve(self, context: RequestContext, updater: TaskUpdater) -> None:
        assert context.message is not None and context.task_id is not None and context.context_id is not None
        async with self._turns(context.context_id):
            config = _config_of(context.context_id, context.task_id)
            before = await self._graph.aget_state(config)
            if context.current_task is not None and context.current_task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED:
                if not before.interrupts or (before.metadata or {}).get(TASK) != context.task_id:
                    await updater.failed(_said(updater, "nothing waits for this answer any more"))
                    return
                answers = _answers(context.message, before.interrupts)
                if not answers:
                    await _ask(updater, before.interrupts)
                    return
                given: Any = Command(resume=answers)
            else:
                if waiting := await self._waiting(before, context):
                    await updater.reject(_said(updater, f"task '{waiting}' of this context waits for an answer: send it to that task"))
                    return
                if before.next:
                    await self._settle(config, before, "the agent stopped before this call ended")
                given = {"messages": [HumanMessage(context.get_user_input())]}
            await updater.start_work()
            await self._graph.ainvoke(given, config)
            await self._report(updater, await self._graph.aget_state(config))

    async def _report(self, updater: TaskUpdater, after: StateSnapshot) -> None:
        if after.interrupts:
            await _ask(updater, after.interrupts)
            return
        last = after.values["messages"][-1]
        await updater.add_artifact([new_text_part(str(last.text))], name="result")
        await updater.complete()

    async def _waiting(self, before: StateSnapshot, context: RequestContext) -> Optional[str]:
        """The id of another task that waits for an answer in this context; None: there is none, or it has ended elsewhere."""
        owner = (before.metadata or {}).get(TASK)
        if not before.interrupts or not isinstance(owner, str):
            return None
        stored = await self._tasks.get(owner, context.call_context)
        return owner if stored is not None and stored.task.status.state in OPEN else None

    # ---- runs that don't go on ----

    async def _close(self, context_id: str, note: str, task_id: Optional[str] = None) -> None:
        """In a turn of its own; with `task_id` only if the thread is that task's."""
        async with self._turns(context_id):
            config = _config_of(context_id, task_id)
            before = await self._graph.aget_state(config)
            if before.next and (task_id is None or (before.metadata or {}).get(TASK) == task_id):
                await self._settle(config, before, note)

    async def _settle(self, config: RunnableConfig, before: StateSnapshot, note: str) -> None:
        """Denies what waits, and answers every open tool call with the note: the history is complete for the next message."""
        for one in before.interrupts:
            if is_operation(one.value):
                await self._contexts.withdraw(one.value, note)
        if calls := _open_calls(before):
            closed = [ToolMessage(note, tool_call_id=call, status="error") for call in calls]
            await self._graph.aupdate_state(config, {"messages": closed}, as_node=self._tools_node)
        await self._graph.aupdate_state(config, None, as_node=END)


def _config_of(context_id: str, task_id: Optional[str]) -> RunnableConfig:
    return {"configurable": {"thread_id": context_id, **({TASK: task_id} if task_id else {})}}


def _open_calls(before: StateSnapshot) -> List[str]:
    """Tool calls of the last model message that have no answer, neither in the state nor in a graph task that has ended."""
    messages = list(before.values.get("messages", ()))
    last = max((index for index, message in enumerate(messages) if isinstance(message, AIMessage)), default=None)
    if last is None:
        return []
    answers = messages[last + 1:]
    for task in before.tasks:
        if isinstance(task.result, Mapping):
            answers += task.result.get("messages", ())
    answered = {message.tool_call_id for message in answers if isinstance(message, ToolMessage)}
    return [str(call["id"]) for call in messages[last].tool_calls if call["id"] not in answered]


def _said(updater: TaskUpdater, text: str) -> Message:
    return updater.new_agent_message([new_text_part(text)])


def describe(operation: Operation) -> str:
    """The operation as a person reads it."""
    command = shlex.join(operation["argv"]) if operation["argv"] is not None else operation["command"] or ""
    shown = command.encode("unicode_escape").decode() if not command.replace("\n", "").isprintable() else command
    coded = f" ({operation['encoding']})" if operation["encoding"] != "utf-8" else ""
    why = "; ".join(f"{step['subject']}: {step.get('rule') or step.get('reason')}" for step in operation["trail"] if step["decision"] == "ask")
    return f"Approval {operation['approval']}: run in {operation['cwd'] or '/workspace'}{coded}: {shown}\n({why})"


async def _ask(updater: TaskUpdater, interrupts: Tuple[Interrupt, ...]) -> None:
    """input-required: each operation as text and as a data part."""
    parts: List[Part] = []
    for one in interrupts:
        parts += [new_text_part(describe(one.value)) if is_operation(one.value) else new_text_part(str(one.value)),
                  *([new_data_part(dict(one.value))] if is_operation(one.value) else [])]
    await updater.requires_input(updater.new_agent_message([*parts, new_text_part(HOW)]))


def _answers(message: Message, interrupts: Tuple[Interrupt, ...]) -> Dict[str, Any]:
    """{id of an interrupt: its resume value}. A word alone answers the only operation that waits, never one of several."""
    waiting = {one.value["approval"]: one.id for one in interrupts if is_operation(one.value)}
    answers: Dict[str, Any] = {}
    for data in get_data_parts(list(message.parts)):
        if isinstance(data, dict) and data.get("decision") in ("approve", "deny") and data.get("approval") in waiting:
            answers[waiting[data["approval"]]] = data
    if answers or len(interrupts) != 1:
        return answers
    text = "\n".join(part.text for part in message.parts if part.HasField("text")).strip()
    if not waiting:     # an interrupt of another node: it takes the text
        return {interrupts[0].id: text} if text else {}
    if text.lower() in ("approve", "deny"):
        (approval, one), = waiting.items()
        return {one: {"approval": approval, "decision": text.lower()}}
    return {}
