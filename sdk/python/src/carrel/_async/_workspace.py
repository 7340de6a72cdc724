"""A workspace: files, packages and limits that stay, and commands that run there."""
from __future__ import annotations

import os
import ssl
from types import TracebackType
from typing import Any, AsyncIterator, Callable, Dict, List, Literal, Mapping, Optional, Sequence, Type, Union

import httpx

from .. import _core, errors, types
from .. import _operations as op
from .._core import Command, Duration, Result, Size
from . import _io
from ._execs import AsyncConnection, AsyncProcess, AsyncSession, AsyncStream
from ._files import AsyncFiles
from ._http import RETRIES, SILENCE_SECONDS, AsyncHttp

WhenBusy = Optional[Literal["pause", "wait", "fail"]]
Callback = Optional[Callable[[str], Any]]
FORWARD = {"GET": op.FORWARD_PORT_GET, "POST": op.FORWARD_PORT_POST, "PUT": op.FORWARD_PORT_PUT, "PATCH": op.FORWARD_PORT_PATCH,
           "DELETE": op.FORWARD_PORT_DELETE}


class AsyncWorkspace:
    """A workspace. In a `with` statement it is removed at the end of the block.

    >>> async with await AsyncCarrel().create(env={"NAME": "world"}) as ws:
    ...     print((await ws.run("echo hello $NAME")).stdout, end="")
    hello world
    """

    def __init__(self, http: AsyncHttp, info: types.Workspace, owns_http: bool = False) -> None:
        self._http = http
        self._owns_http = owns_http
        self.info = info
        self.files = AsyncFiles(http, info.id)

    @property
    def id(self) -> str:
        return self.info.id

    @property
    def name(self) -> str:
        return self.info.name

    @property
    def state(self) -> str:
        """When it was last asked for: `refresh` asks."""
        return self.info.state

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} {self.info.state}>"

    async def __aenter__(self) -> AsyncWorkspace:
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        try:
            await self.remove()
        except errors.NotFound:
            pass
        finally:
            if self._owns_http:
                await self._http.close()

    # ---- its life ----

    @classmethod
    async def create(cls, name: Optional[str] = None, *, host: Optional[str] = None, token: Optional[str] = None,
                     ca: Union[str, "os.PathLike[str]", ssl.SSLContext, None] = None, **options: Any) -> AsyncWorkspace:
        """Creates a workspace with connections of its own, which end with the `with` block. Options as of `AsyncCarrel.create`.

        >>> async with await AsyncWorkspace.create(labels={"team": "research"}) as ws:
        ...     print(ws.info.labels)
        {'team': 'research'}
        """
        http = AsyncHttp(host, token, ca, SILENCE_SECONDS, RETRIES)
        try:
            workspace = await cls._create(http, name=name, **options)
        except BaseException:
            await http.close()
            raise
        workspace._owns_http = True
        return workspace

    @classmethod
    async def _create(
        cls, http: AsyncHttp, *, pip: Any = None, npm: Any = None, python: Any = None, node: Any = None, requirements: Any = None,
        from_: Any = None, memory: Any = None, disk: Any = None, cpus: Any = None, limits: Any = None, network: Any = None,
        ttl: Any = None, idle_timeout: Any = None, key: Optional[str] = None, **fields: Any,
    ) -> AsyncWorkspace:
        bounds = {**(limits or {}), **{name: value for name, value in (("memory", memory), ("disk", disk), ("cpus", cpus))
                                       if value is not None}}
        body: Dict[str, Any] = {
            **fields, "python": _core.packages_of(python, pip, requirements), "node": _core.packages_of(node, npm), "from": from_,
            "limits": bounds or None, "network": _core.network_of(network), **_core.duration("ttl", ttl),
            **_core.duration("idle_timeout", idle_timeout)}
        # Building an environment takes as long as it takes.
        made = await http.json(op.CREATE_WORKSPACE, body=body, key=key or _core.new_key(), timeout=None)
        return cls(http, types.Workspace._from(made))

    async def refresh(self, *, measure: bool = False) -> types.Workspace:
        """Asks for its present state; `measure` measures its disk usage first."""
        return self._take(await self._http.json(op.GET_WORKSPACE, query={"measure": measure}, id=self.id))

    def _take(self, value: Any) -> types.Workspace:
        self.info = types.Workspace._from(value)
        return self.info

    async def update(
        self, *, labels: Optional[Mapping[str, Optional[str]]] = None, env: Optional[Mapping[str, Optional[str]]] = None,
        limits: Optional[types.LimitsWanted] = None, network: Union[str, Sequence[str], types.NetworkChange, None] = None,
        ttl: Union[Duration, None] = None, idle_timeout: Union[Duration, None] = None, settings: Optional[Mapping[str, Any]] = None,
        sources: Optional[Mapping[str, Any]] = None, unset: Sequence[Literal["ttl", "idle_timeout", "settings", "sources"]] = (),
    ) -> types.Workspace:
        """Changes what is given. A label or a variable whose value is None is removed; so is what `unset` names."""
        body: Dict[str, Any] = {
            "labels": labels, "env": env, "limits": limits, "network": _core.network_of(network), "settings": settings,
            "sources": sources, **_core.duration("ttl", ttl), **_core.duration("idle_timeout", idle_timeout)}
        return self._take(await self._http.json(op.CHANGE_WORKSPACE, body=body, nulls=unset, id=self.id))

    async def remove(self, *, archive: Optional[bool] = None) -> Optional[types.Archive]:
        """Removes it and ends its commands. With `archive` its files and settings are kept, as the archive that is returned."""
        query = {"archive": None if archive is None else "true" if archive else "false"}
        kept = await self._http.json(op.REMOVE_WORKSPACE, query=query, timeout=None, id=self.id)
        return types.Archive._from(kept) if kept else None

    async def archive(self) -> types.Archive:
        """Removes it, and keeps its files and settings as one archive: `AsyncCarrel.archives.restore` brings it back."""
        kept = await self.remove(archive=True)
        assert kept is not None
        return kept

    async def suspend(self, *, force: bool = False) -> types.Workspace:
        """Ends its processes and keeps its files. With `force` also while commands run."""
        return self._take(await self._http.json(op.SUSPEND_WORKSPACE, body={"force": force or None}, id=self.id))

    async def resume(self) -> types.Workspace:
        """Starts its sandbox, as the next command would."""
        return self._take(await self._http.json(op.RESUME_WORKSPACE, id=self.id))

    async def health(self, *, deep: bool = False) -> types.WorkspaceHealth:
        """Checks it; `deep` compares every file of its layers with its hash."""
        return types.WorkspaceHealth._from(await self._http.json(op.CHECK_WORKSPACE, query={"deep": deep}, timeout=None, id=self.id))

    async def repair(self, *, deep: bool = False) -> types.WorkspaceRepair:
        """Repairs what `health` finds."""
        return types.WorkspaceRepair._from(await self._http.json(op.REPAIR_WORKSPACE, query={"deep": deep}, timeout=None, id=self.id))

    async def verify(self) -> types.IsolationVerdict:
        """Checks the isolation of its sandbox, from outside and from inside."""
        return types.IsolationVerdict._from(await self._http.json(op.VERIFY_ISOLATION, id=self.id))

    async def metrics(self) -> types.WorkspaceMetrics:
        """What it uses now."""
        return types.WorkspaceMetrics._from(await self._http.json(op.WORKSPACE_METRICS, id=self.id))

    async def events(self, *, after: Optional[int] = None) -> AsyncIterator[types.Event]:
        """What happens in it, until it is removed. `after`: the id of an event; 0 is the first that is kept."""
        last = None if after is None else str(after)
        async for event in self._http.events(op.WORKSPACE_EVENTS, last, id=self.id):
            yield types.read_event(event.json())
            if event.event == "workspace.deleted":
                return

    # ---- commands ----

    async def run(
        self, command: Command, *, cwd: Optional[str] = None, env: Optional[Mapping[str, str]] = None,
        stdin: Union[str, bytes, None] = None, timeout: Optional[Duration] = None, check: bool = False,
        on_stdout: Callback = None, on_stderr: Callback = None, on_waiting: Callback = None, tty: bool = False,
        cpu_time: Optional[Duration] = None, output: Optional[Size] = None, approval: Optional[Literal["wait", "return"]] = None,
        user: Optional[str] = None, key: Optional[str] = None,
    ) -> Result:
        """Runs a command to its end. Text is for the shell; a list is a program and its arguments.

        `timeout` is in seconds, or text such as "5m"; 300 s when not given. With `check` a command that fails raises
        `CommandFailed`. The callbacks are called with text as it comes, `on_waiting` with the id of the approval that the
        command waits for. `cpu_time` and `output` limit this command. With a `key` the command runs once, however often the
        request is sent; without one it is never sent again.

        >>> async with await AsyncCarrel().create() as ws:
        ...     result = await ws.run("echo out; echo err >&2; exit 3")
        ...     print(result.exit_code, result.stdout, result.stderr)
        ...     result = await ws.run(["cat"], stdin="by argv, without a shell", check=True, on_stdout=print)
        3 out
         err
        <BLANKLINE>
        by argv, without a shell
        """
        body = _core.exec_body(command, cwd=cwd, env=env, timeout=timeout, stdin=stdin, cpu_time=cpu_time, output=output, tty=tty,
                               approval=approval, user=user)
        if on_stdout or on_stderr or on_waiting:
            if key:
                raise ValueError("a command with a key can't be streamed: use either key or callbacks")
            result = await AsyncStream(self._http, self.id, body).collect(on_stdout, on_stderr, on_waiting)
        else:
            result = Result._from(await self._http.json(op.EXEC, body=body, key=key, timeout=None, id=self.id))
        return result.check(_core.show_command(command)) if check else result

    async def exec(self, *argv: str, **options: Any) -> Result:
        """Runs a program with these arguments, without a shell: `exec("ls", "-l")`. Options as of `run`."""
        return await self.run(argv, **options)

    def stream(
        self, command: Command, *, cwd: Optional[str] = None, env: Optional[Mapping[str, str]] = None,
        stdin: Union[str, bytes, None] = None, timeout: Optional[Duration] = None, tty: bool = False, rows: Optional[int] = None,
        columns: Optional[int] = None, cpu_time: Optional[Duration] = None, output: Optional[Size] = None, user: Optional[str] = None,
        policy: Optional[Literal["enforce", "learn"]] = None,
    ) -> AsyncStream:
        """Runs a command and gives its output piece by piece.

        >>> async with await AsyncCarrel().create() as ws:
        ...     async with ws.stream("echo one; echo two >&2") as stream:
        ...         async for output in stream:
        ...             if output.stream == "stdout":
        ...                 print(output.text, end="")
        ...     print(stream.result.exit_code)
        one
        0
        """
        return AsyncStream(self._http, self.id, _core.exec_body(
            command, cwd=cwd, env=env, timeout=timeout, stdin=stdin, cpu_time=cpu_time, output=output, tty=tty, rows=rows,
            columns=columns, user=user, policy=policy))

    async def start(
        self, command: Command, *, cwd: Optional[str] = None, env: Optional[Mapping[str, str]] = None,
        stdin: Union[str, bytes, None] = None, open_stdin: bool = False, timeout: Optional[Duration] = None, tty: bool = False,
        rows: Optional[int] = None, columns: Optional[int] = None, cpu_time: Optional[Duration] = None, output: Optional[Size] = None,
        approval: Optional[Literal["wait", "return"]] = None, user: Optional[str] = None, key: Optional[str] = None,
    ) -> AsyncProcess:
        """Starts a command in the background: it goes on without this program, without a time limit unless one is given."""
        body = _core.exec_body(command, cwd=cwd, env=env, timeout=timeout, stdin=stdin, cpu_time=cpu_time, output=output, tty=tty,
                               rows=rows, columns=columns, open_stdin=open_stdin, approval=approval, user=user, background=True)
        return AsyncProcess(self._http, types.Exec._from(await self._http.json(op.EXEC, body=body, key=key, id=self.id)))

    def session(
        self, command: Command = ("/bin/sh",), *, tty: bool = False, rows: Optional[int] = None, columns: Optional[int] = None,
        cwd: Optional[str] = None, env: Optional[Mapping[str, str]] = None, timeout: Optional[Duration] = None,
    ) -> AsyncSession:
        """An interactive command: a shell on a terminal, a REPL, a language server.

        >>> async with await AsyncCarrel().create() as ws:
        ...     async with ws.session(["python3", "-iq"], tty=True, rows=24, columns=80) as terminal:
        ...         await terminal.write("print(6 * 7)\\nexit(5)\\n")
        ...         text = "".join([output.text async for output in terminal])
        ...     print("42" in text, terminal.result.exit_code)
        True 5
        """
        start = _core.exec_body(command, cwd=cwd, env=env, timeout=timeout, tty=tty, rows=rows, cols=columns)
        return AsyncSession(self._http, _core.path_of(op.EXEC_SOCKET, id=self.id), start)

    def execs(self, *, limit: Optional[int] = None) -> AsyncIterator[AsyncProcess]:
        """Its commands, newest first."""
        return self._http.items(op.LIST_EXECS, lambda item: AsyncProcess(self._http, types.Exec._from(item)), limit=limit, id=self.id)

    # ---- packages ----

    async def install(self, *packages: str, kind: Optional[Literal["python", "node"]] = None,
                      persist: Optional[bool] = None) -> types.PackagesChanged:
        """Installs packages of Python or Node, also while commands run: `install("pandas>=2")`, `install("axios", kind="node")`."""
        body = {"packages": list(packages), "kind": kind, "persist": persist}
        return types.PackagesChanged._from(await self._http.json(op.INSTALL_PACKAGES, body=body, timeout=None, id=self.id))

    async def uninstall(self, *packages: str, kind: Optional[Literal["python", "node"]] = None,
                        persist: Optional[bool] = None) -> types.PackagesChanged:
        body = {"packages": list(packages), "kind": kind, "persist": persist}
        return types.PackagesChanged._from(await self._http.json(op.UNINSTALL_PACKAGES, body=body, timeout=None, id=self.id))

    async def packages(self) -> List[types.Package]:
        """The packages of Python and Node that a command finds."""
        return [package async for package in self._http.items(op.LIST_PACKAGES, types.Package._from, id=self.id)]

    # ---- states ----

    async def snapshot(self, tag: Optional[str] = None, *, note: Optional[str] = None, when_busy: WhenBusy = None,
                       timeout: Optional[Duration] = None) -> types.Snapshot:
        """Keeps its present state, without copying it.

        >>> async with await AsyncCarrel().create() as ws:
        ...     info = await ws.files.write("a", "before")
        ...     before = await ws.snapshot("before")
        ...     info = await ws.files.write("a", "after")
        ...     print([(change.change, change.path) for change in await ws.diff()])
        ...     info = await ws.rollback("before")
        ...     print(await ws.files.read_text("a"))
        [('M', 'a')]
        before
        """
        body = {"tag": tag, "note": note, "when_busy": when_busy, **_core.duration("timeout", timeout)}
        return types.Snapshot._from(await self._http.json(op.CREATE_SNAPSHOT, body=body, timeout=None, id=self.id))

    def snapshots(self, *, limit: Optional[int] = None) -> AsyncIterator[types.Snapshot]:
        """Its snapshots, newest first."""
        return self._http.items(op.LIST_WORKSPACE_SNAPSHOTS, types.Snapshot._from, limit=limit, id=self.id)

    async def rollback(self, snapshot: str, *, when_busy: Optional[Literal["wait", "fail"]] = None,
                       timeout: Optional[Duration] = None) -> types.Workspace:
        """Puts it back into the state of a snapshot: its id, tag or version. The state that it leaves is kept as a snapshot."""
        body = {"snapshot": snapshot, "when_busy": when_busy, **_core.duration("timeout", timeout)}
        return self._take(await self._http.json(op.ROLLBACK_WORKSPACE, body=body, timeout=None, id=self.id))

    async def fork(self, name: Optional[str] = None, *, snapshot: Optional[str] = None, when_busy: WhenBusy = None,
                   timeout: Optional[Duration] = None) -> AsyncWorkspace:
        """A new workspace with its present state, or with that of a snapshot."""
        return (await self.forks(1, name, snapshot=snapshot, when_busy=when_busy, timeout=timeout))[0]

    async def forks(self, count: int, name: Optional[str] = None, *, snapshot: Optional[str] = None, when_busy: WhenBusy = None,
                    timeout: Optional[Duration] = None) -> List[AsyncWorkspace]:
        """Several at once: NAME-1, NAME-2 ..."""
        body = {"name": name, "count": count if count != 1 else None, "snapshot": snapshot, "when_busy": when_busy,
                **_core.duration("timeout", timeout)}
        made = await self._http.json(op.FORK_WORKSPACE, body=body, timeout=None, id=self.id)
        return [type(self)(self._http, types.Workspace._from(item)) for item in made["items"]]

    async def push(self, snapshot: str, *, force: bool = False) -> types.Push:
        """Sends a snapshot to the blob store; `AsyncCarrel.snapshots.pull` fetches it, also into another home."""
        body = {"snapshot": snapshot, "force": force or None}
        return types.Push._from(await self._http.json(op.PUSH_SNAPSHOT, body=body, timeout=None, id=self.id))

    async def diff(self, *paths: str, snapshot: Optional[str] = None, all: bool = False) -> List[types.Change]:
        """What has changed since its last snapshot, or since another one; `all`: also in /env and node_modules."""
        query = {"path": paths, "snapshot": snapshot, "all": all}
        return [change async for change in self._http.items(op.DIFF_WORKSPACE, types.Change._from, query=query, id=self.id)]

    async def patch(self, *paths: str, snapshot: Optional[str] = None, all: bool = False) -> str:
        """The same as a patch, for `git apply`."""
        query = {"path": paths, "snapshot": snapshot, "all": all, "patch": True}
        response = await self._http.response(op.DIFF_WORKSPACE, query=query, id=self.id)
        return response.content.decode(errors="surrogateescape")

    def changes(self, *paths: str, snapshot: Optional[str] = None) -> AsyncIterator[bytes]:
        """The changed files themselves: the bytes of a tar archive, whose member `changes` lists what was done."""
        return self._http.pieces(op.PACK_CHANGES, query={"path": paths, "snapshot": snapshot}, id=self.id)

    async def apply(self, to: Union[str, AsyncWorkspace], *paths: str, snapshot: Optional[str] = None,
                    dry_run: bool = False) -> types.Applied:
        """Applies its changes to another workspace: all of them, or none (`Conflict`, whose `changes` say why)."""
        target = to if isinstance(to, str) else to.id
        body = {"to": target, "paths": list(paths) or None, "snapshot": snapshot, "dry_run": dry_run or None}
        return types.Applied._from(await self._http.json(op.APPLY_CHANGES, body=body, timeout=None, id=self.id))

    # ---- ports ----

    async def ports(self) -> List[types.Port]:
        """The TCP ports that listen in it."""
        return [port async for port in self._http.items(op.LIST_PORTS, types.Port._from, id=self.id)]

    async def request(self, port: int, path: str = "/", *, method: str = "GET", content: Union[str, bytes, None] = None,
                      json: Any = None, headers: Optional[Mapping[str, str]] = None) -> httpx.Response:
        """One HTTP request to a server in it; the answer of the server, whatever its status."""
        return await self._http.forward(FORWARD[method.upper()], path, content, json, headers, id=self.id, port=str(port))

    async def connect(self, port: int) -> AsyncConnection:
        """A TCP connection to a server in it."""
        path = _core.path_of(op.FORWARD_PORT_GET, id=self.id, port=str(port), path="")
        response, duplex = await self._http.upgrade(path, {"Connection": "Upgrade", "Upgrade": "carrel-tcp"})
        return AsyncConnection(response, duplex)

    def forward(self, port: int, *, host: str = "127.0.0.1", local_port: int = 0) -> _io.Forward:
        """Listens on this host while the block runs: each connection leads to the port of the workspace.

        >>> async with await AsyncCarrel().create() as ws:
        ...     server = await ws.start("python3 -m http.server 8000")
        ...     while not await ws.ports():
        ...         pass
        ...     async with ws.forward(8000) as local:
        ...         print(local.host)
        127.0.0.1
        """
        return _io.Forward(lambda: self.connect(port), host, local_port)
