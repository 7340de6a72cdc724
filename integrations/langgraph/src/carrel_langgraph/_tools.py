"""Tools on the workspace of the context that the graph runs for.

A tool that interrupts runs again from its beginning when the graph is resumed, perhaps in another process. The exec that waits must
not be started twice: `_begin` is a LangGraph task, whose result (ids of the exec and of its approval) is in the checkpoint; and its
Idempotency-Key covers a process that dies before the checkpoint is written."""
from __future__ import annotations

import asyncio
import hashlib
import os
import shlex
from typing import Annotated, Any, Awaitable, Callable, Dict, List, Optional, Sequence, Tuple, TypedDict, TypeVar, Union

from carrel import ApiError, ApprovalRequired, Unauthenticated, Unavailable
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool, ToolException
from langgraph.func import task
from langgraph.types import interrupt

from ._approvals import Operation, operation_of, read_answer
from ._contexts import Contexts

OUTPUT_CHARACTERS = 20_000
CallId = Annotated[str, InjectedToolCallId]
Command = Union[str, List[str]]


class Run(TypedDict):
    """The artifact of a tool message of a command: how it ended, with all of its output."""

    exec: str
    exit_code: Optional[int]
    reason: Optional[str]
    stdout: str
    stderr: str


class _Begun(TypedDict):
    """What the checkpoint keeps of a command."""

    call: str
    exec: str
    operation: Optional[Operation]
    refused: Optional[str]


def carrel_tools(contexts: Contexts, *, output_characters: int = OUTPUT_CHARACTERS) -> List[BaseTool]:
    """The tools `shell`, `python`, `read_file`, `write_file`, `list_files`, `remove_file` and `install`.

    They run in the workspace of the context whose id is the `thread_id` of the graph, and are asynchronous: use `ainvoke`. The
    graph needs a checkpointer. Let each tool call be a graph task of its own (`Send`, as `create_agent` does), so that calls of one
    message can be answered one by one. A command that the policy asks about interrupts the graph with an `Operation`; `approve`
    and `deny` make the value to resume with. What is denied or fails is told to the model. Text for the model is cut in the middle
    to `output_characters`; the artifact of the message has all."""
    made = _Tools(contexts, output_characters)
    commands: List[Callable[..., Awaitable[Any]]] = [made.shell, made.python]
    others: List[Callable[..., Awaitable[Any]]] = [made.read_file, made.write_file, made.list_files, made.remove_file, made.install]
    return [
        *(StructuredTool.from_function(coroutine=one, response_format="content_and_artifact", handle_tool_error=True) for one in commands),
        *(StructuredTool.from_function(coroutine=one, handle_tool_error=True) for one in others)]


class _Tools:
    def __init__(self, contexts: Contexts, output_characters: int) -> None:
        self._contexts = contexts
        self._characters = output_characters
        self._begin = task(self._begin_exec)
        self._live: Dict[str, _Begun] = {}      # by key: what a canceled graph ends

    # ---- tools: their names, docstrings and arguments are what a model sees ----

    async def shell(self, command: str, config: RunnableConfig, tool_call_id: CallId, cwd: Optional[str] = None) -> Tuple[str, Run]:
        """Run a shell command in the workspace of this conversation. Files and packages stay from one command to the next.
        `cwd` is relative to the workspace."""
        return await self._run("shell", command, cwd, config, tool_call_id)

    async def python(self, code: str, config: RunnableConfig, tool_call_id: CallId) -> Tuple[str, Run]:
        """Run a Python program in the workspace of this conversation, with the packages that are installed there."""
        # As an argument, not as stdin: an approval shows arguments.
        return await self._run("python", ["python3", "-c", code], None, config, tool_call_id)

    async def read_file(self, path: str, config: RunnableConfig, tool_call_id: CallId) -> str:
        """Read a text file of the workspace."""
        workspace = await self._contexts.workspace(_context_of(config))
        try:
            content = await workspace.files.read(path)
        except ApiError as error:
            _, run = await self._instead(error, "read_file", f"cat -- {_word(path)}", config, tool_call_id)
            return self._cut(run["stdout"])
        return self._cut(content.decode(errors="replace"))

    async def write_file(self, path: str, content: str, config: RunnableConfig, tool_call_id: CallId) -> str:
        """Write a text file of the workspace, in place of the one that is there, and make the directories above it."""
        workspace = await self._contexts.workspace(_context_of(config))
        try:
            await workspace.files.write(path, content)
        except ApiError as error:
            above = os.path.dirname(path)
            command = f"printf %s {shlex.quote(content)} > {_word(path)}"
            await self._instead(error, "write_file", f"mkdir -p -- {_word(above)} && {command}" if above else command, config, tool_call_id)
        return f"wrote {path}"

    async def list_files(self, config: RunnableConfig, tool_call_id: CallId, path: str = ".") -> str:
        """List a directory of the workspace: type, size and name of each entry."""
        workspace = await self._contexts.workspace(_context_of(config))
        try:
            entries = await workspace.files.list("" if path == "." else path)
        except ApiError as error:
            _, run = await self._instead(error, "list_files", f"ls -lA -- {_word(path)}", config, tool_call_id)
            return self._cut(run["stdout"])
        return self._cut("\n".join(f"{entry.type} {entry.size} {entry.name}" for entry in entries))

    async def remove_file(self, path: str, config: RunnableConfig, tool_call_id: CallId) -> str:
        """Remove a file of the workspace, or a directory with all that is in it."""
        workspace = await self._contexts.workspace(_context_of(config))
        try:
            await workspace.files.remove(path, recursive=True)
        except ApiError as error:
            await self._instead(error, "remove_file", f"rm -r -- {_word(path)}", config, tool_call_id)
        return f"removed {path}"

    async def install(self, packages: List[str], config: RunnableConfig) -> str:
        """Install Python packages into the workspace, such as "pandas" or "requests>=2.31"."""
        workspace = await self._contexts.workspace(_context_of(config))
        try:
            changed = await workspace.install(*packages)
        except ApiError as error:
            raise _told(error) from error
        return "\n".join(f"+ {package.name} {package.version}" for package in changed.installed) or "nothing to install"

    # ---- commands ----

    async def _run(self, tool: str, command: Command, cwd: Optional[str], config: RunnableConfig, call: str) -> Tuple[str, Run]:
        key = _key_of(config, call)
        try:
            begun: _Begun = await self._begin(_context_of(config), tool, command, cwd, key, call)
            if begun["call"] != call:
                raise RuntimeError(f"the checkpoint has the command of call '{begun['call']}', not of '{call}': "
                                   "send each tool call to a graph task of its own")
            self._live[key] = begun
            if begun["refused"] is not None:
                raise ToolException(begun["refused"])
            if begun["operation"] is not None:
                await self._ask(begun["operation"])
            return await self._finish(begun["exec"])
        except asyncio.CancelledError:
            await _whole(self._end(self._live.get(key)))
            raise
        finally:
            self._live.pop(key, None)

    async def _end(self, begun: Optional[_Begun]) -> None:
        """Of a graph that is canceled: ends the command."""
        try:
            if begun and begun["operation"]:
                await self._contexts.withdraw(begun["operation"], "the graph was canceled")
            elif begun and begun["exec"]:
                await (await self._contexts.carrel.execs.get(begun["exec"])).kill()
        except ApiError:
            pass    # it has ended

    async def _begin_exec(self, context_id: str, tool: str, command: Command, cwd: Optional[str], key: str, call: str) -> _Begun:
        starting = asyncio.ensure_future(self._start(context_id, tool, command, cwd, key, call))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            # It may run already: only the answer says which exec to end.
            await _whole(self._end(await _whole(starting)))
            raise

    async def _start(self, context_id: str, tool: str, command: Command, cwd: Optional[str], key: str, call: str) -> _Begun:
        begun = _Begun(call=call, exec="", operation=None, refused=None)
        workspace = await self._contexts.workspace(context_id)
        try:
            process = await workspace.start(command, cwd=cwd, timeout=self._contexts.timeout, approval="return", key=key)
            begun["exec"] = process.id
        except ApprovalRequired as waiting:
            begun["exec"] = waiting.exec_id
            begun["operation"] = operation_of(waiting.problem, context_id, tool)
        except ApiError as error:
            begun["refused"] = str(_told(error))
        self._live[key] = begun
        return begun

    async def _ask(self, operation: Operation) -> None:
        """Interrupts until the approval is answered. A value that doesn't answer this operation approves nothing."""
        while True:
            given = interrupt(operation)
            answer = read_answer(given, operation)
            if answer is not None and (await self._contexts.answer(operation, answer)).state != "pending":
                return

    async def _finish(self, exec_id: str) -> Tuple[str, Run]:
        try:
            process = await self._contexts.carrel.execs.get(exec_id)
            info = await process.wait()
            stdout, stderr = [(await process.output(stream)).decode(errors="replace") for stream in ("stdout", "stderr")]
        except ApiError as error:
            raise _told(error) from error
        if info.reason == "denied":
            raise ToolException(info.error or "denied")
        run = Run(exec=exec_id, exit_code=info.exit_code, reason=info.reason, stdout=stdout, stderr=stderr)
        return self._shown(run, info.error), run

    def _shown(self, run: Run, error: Optional[str]) -> str:
        parts = [run["stdout"], run["stderr"]]
        if run["reason"] != "exited" or run["exit_code"]:
            parts.append(f"{error or run['reason']}, exit code {run['exit_code']}")
        return self._cut("\n".join(part.rstrip("\n") for part in parts if part))

    def _cut(self, text: str) -> str:
        if len(text) <= self._characters:
            return text
        half = self._characters // 2
        return f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"

    async def _instead(self, error: ApiError, tool: str, command: str, config: RunnableConfig, call: str) -> Tuple[str, Run]:
        """A file operation that the policy asks about becomes the command that does the same: commands can wait for an approval,
        which shows path and content."""
        if not isinstance(error, ApprovalRequired):
            raise _told(error) from error
        shown, run = await self._run(tool, command, None, config, call)
        if run["exit_code"] != 0:
            raise ToolException(shown)
        return shown, run


Result = TypeVar("Result")


async def _whole(work: Awaitable[Result]) -> Result:
    """Its result, however often the graph is canceled meanwhile: LangGraph cancels a tool more than once."""
    running = asyncio.ensure_future(work)
    while not running.done():
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError:
            pass
    return running.result()


def _told(error: ApiError) -> ToolException:
    """What the model may act on; what only an operator can mend is raised as it is."""
    if isinstance(error, (Unauthenticated, Unavailable)):
        raise error
    return ToolException(error.detail)


def _word(path: str) -> str:
    return shlex.quote(path)


def _configurable(config: RunnableConfig) -> Dict[str, Any]:
    return config.get("configurable") or {}


def _context_of(config: RunnableConfig) -> str:
    return str(_configurable(config).get("thread_id") or "")


def _key_of(config: RunnableConfig, call: str) -> str:
    """The same whenever this graph task runs again, and no other's: the namespace has the id of the task."""
    parts: Sequence[str] = (_context_of(config), str(_configurable(config).get("checkpoint_ns") or ""), call)
    return "langgraph-" + hashlib.sha256("\0".join(parts).encode()).hexdigest()
