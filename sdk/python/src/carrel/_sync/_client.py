# Written by sdk/generate-python: change _async/_client.py instead.
"""The client: workspaces, and what a daemon has besides them."""
from __future__ import annotations

import os
import ssl
from types import TracebackType
from typing import IO, Any, Iterator, Dict, Literal, Mapping, Optional, Sequence, Type, Union

import httpx

from .. import _core, types
from .. import _operations as op
from .._core import Duration, PathLike, Size
from . import _io
from ._execs import Process
from ._files import save
from ._http import RETRIES, SILENCE_SECONDS, Http
from ._workspace import Workspace


class Carrel:
    """A client of one daemon.

    `host` is https://NAME:PORT, http://NAME:PORT, unix:PATH or the path of a socket. Without it and without `CARREL_HOST` it is
    the daemon of this user's home; when none runs, the first request starts one. `token` is that of `carrel token create`,
    else `CARREL_TOKEN`. `ca` is the certificate of the authority that signed the daemon's, if the system doesn't know it
    (else `CARREL_CA`), or an `ssl.SSLContext`. `context` is a name that `carrel context add` has given to such an address, with its token and ca.

    `timeout` is how many seconds a request may stay without an answer; what may take longer (commands, builds) waits as long
    as it takes. `retries` is how often a request is repeated, with growing pauses, when it was not received, or when it
    can do no harm twice: a new workspace has an Idempotency-Key, a command is not repeated unless you give it one.

    >>> with Carrel() as carrel:
    ...     with carrel.create() as ws:
    ...         print((ws.run("python3 -c 'print(6 * 7)'")).stdout, end="")
    42
    """

    def __init__(self, host: Optional[str] = None, *, token: Optional[str] = None,
                 ca: Union[str, "os.PathLike[str]", ssl.SSLContext, None] = None, context: Optional[str] = None,
                 timeout: Optional[float] = SILENCE_SECONDS, retries: int = RETRIES) -> None:
        self._http = Http(host, token, ca, timeout, retries, context)
        self.execs = Execs(self._http)
        self.templates = Templates(self._http)
        self.snapshots = Snapshots(self._http)
        self.archives = Archives(self._http)
        self.environments = Environments(self._http)
        self.exports = Exports(self._http)
        self.trees = Trees(self._http)
        self.tokens = Tokens(self._http)
        self.approvals = Approvals(self._http)
        self.cases = Cases(self._http)
        self.agents = Agents(self._http)
        self.tools = Tools(self._http)
        self.packages = Packages(self._http)
        self.deployments = Deployments(self._http)

    def __enter__(self) -> Carrel:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        self.close()

    def close(self) -> None:
        """Closes its connections."""
        self._http.close()

    # ---- workspaces ----

    def create(
        self, name: Optional[str] = None, *, pip: Union[str, Sequence[str], None] = None, npm: Union[str, Sequence[str], None] = None,
        python: Union[str, types.Python, None] = None, node: Union[str, types.Node, None] = None, requirements: Optional[str] = None,
        environment: Optional[str] = None, template: Optional[str] = None, from_: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None, labels: Optional[Mapping[str, str]] = None,
        memory: Optional[Size] = None, disk: Optional[Size] = None, cpus: Optional[float] = None,
        limits: Optional[types.LimitsWanted] = None, network: Union[str, Sequence[str], types.NetworkWanted, None] = None,
        ttl: Optional[Duration] = None, idle_timeout: Optional[Duration] = None, settings: Optional[Mapping[str, Any]] = None,
        sources: Optional[Mapping[str, Any]] = None, attach: Optional[Sequence[str]] = None, context: Optional[bool] = None,
        ptrace: Optional[bool] = None, view: Optional[Literal["workspace", "root"]] = None, key: Optional[str] = None,
    ) -> Workspace:
        """Creates a workspace; in a `with` statement it is removed at the end of the block, else it stays.

        - packages: `pip=["requests"]`, `npm=["axios"]`, `requirements` (the text of a file), `python="3.12"`, `node="22"` (or
          objects with all options), or an `environment` that is built
        - a beginning: a `template`, or `from_` a snapshot or another workspace
        - limits: `memory="512M"`, `disk="1G"`, `cpus=0.5`, and others as `limits={"pids": 100, "timeout": "1m"}`
        - network: none by default; `network=["api.example.com"]` opens hosts, "open" all public ones
        - life: `ttl` removes it after a time, `idle_timeout` suspends it when it isn't used (seconds, or text such as "7d")
        - rules: `settings` and `sources`, as settings.json and sources.json have them
        - `attach`: shared trees, NAME:PATH[:ro]; `view="root"` shows its files at /; `key`: your own Idempotency-Key
        """
        return Workspace._create(
            self._http, name=name, pip=pip, npm=npm, python=python, node=node, requirements=requirements, environment=environment,
            template=template, from_=from_, env=env, labels=labels, memory=memory, disk=disk, cpus=cpus, limits=limits, network=network,
            ttl=ttl, idle_timeout=idle_timeout, settings=settings, sources=sources, attach=attach, context=context, ptrace=ptrace,
            view=view, key=key)

    def get(self, workspace: str) -> Workspace:
        """The workspace of that id, name or context_id."""
        return Workspace(self._http, types.Workspace._from(self._http.json(op.GET_WORKSPACE, id=workspace)))

    def list(self, *, label: Union[str, Sequence[str], None] = None, state: Optional[str] = None,
             limit: Optional[int] = None) -> Iterator[Workspace]:
        """Workspaces, newest first: all, or those with a label (KEY or KEY=VALUE), or in a state.

        >>> with Carrel() as carrel:
        ...     with carrel.create("listed", labels={"team": "a"}) as ws:
        ...         print([ws.name for ws in carrel.list(label="team=a")])
        ['listed']
        """
        query = {"label": [label] if isinstance(label, str) else label, "state": state}
        return self._http.items(
            op.LIST_WORKSPACES, lambda item: Workspace(self._http, types.Workspace._from(item)), limit=limit, query=query)

    def metrics(self, *, label: Union[str, Sequence[str], None] = None, state: Optional[str] = None,
                limit: Optional[int] = None) -> Iterator[types.WorkspaceMetrics]:
        """What workspaces use."""
        query = {"label": [label] if isinstance(label, str) else label, "state": state}
        return self._http.items(op.LIST_METRICS, types.WorkspaceMetrics._from, limit=limit, query=query)

    def run_code(
        self, code: str, *, file: Optional[str] = None, tests: Optional[str] = None, tests_file: Optional[str] = None,
        packages: Optional[Sequence[str]] = None, python: Optional[str] = None, stdin: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None, limits: Optional[types.LimitsWanted] = None,
        network: Optional[types.NetworkWanted] = None, timeout: Optional[Duration] = None,
    ) -> types.CodeResult:
        """Runs code once, in a workspace that is made for it and removed afterwards, and its tests.

        The end of `file`, `.py` or `.sh`, says how it is run.

        >>> with Carrel() as carrel:
        ...     print((carrel.run_code("print(6 * 7)")).stdout, end="")
        42
        """
        body = {"code": code, "file": file, "tests": tests, "tests_file": tests_file, "packages": packages, "python": python,
                "stdin": stdin, "env": env, "limits": limits, "network": network, **_core.duration("timeout", timeout)}
        return types.CodeResult._from(self._http.json(op.RUN_CODE, body=body, timeout=None))

    # ---- what happens ----

    def events(self, *, workspace: Optional[str] = None, after: Optional[int] = None) -> Iterator[types.Event]:
        """What happens, from now on, or after the event of that id (0: all that is kept). Goes on after a lost connection."""
        last = None if after is None else str(after)
        for event in self._http.events(op.EVENTS, last, query={"workspace": workspace}):
            yield types.read_event(event.json())

    def audit(self, *, since: Optional[str] = None, until: Optional[str] = None, workspace: Optional[str] = None,
                    type: Optional[str] = None, follow: bool = False, after: Optional[int] = None) -> Iterator[types.AuditLine]:
        """The lines of the audit log. `since` and `until` are times (RFC 3339) or durations before now ("1h")."""
        query = {"since": since, "until": until, "workspace": workspace, "type": type, "follow": follow}
        last = None if after is None else str(after)
        for event in self._http.events(op.AUDIT, last, query=query, resume=follow):
            yield types.AuditLine._from(event.json())

    # ---- the daemon ----

    def health(self) -> types.Health:
        """That the daemon answers."""
        return types.Health._from(self._http.json(op.HEALTHZ))

    def ready(self) -> types.Health:
        """That the daemon accepts work; `Unavailable` if it doesn't."""
        return types.Health._from(self._http.json(op.READYZ))

    def prometheus(self) -> str:
        """Its metrics, in the text format of Prometheus."""
        return (self._http.response(op.METRICS)).text

    def openapi(self) -> types.Document:
        """The description of its API."""
        document: types.Document = self._http.json(op.OPENAPI)
        return document


class _Nouns:
    def __init__(self, http: Http) -> None:
        self._http = http


class Execs(_Nouns):
    """Commands of all workspaces."""

    def list(self, *, limit: Optional[int] = None) -> Iterator[Process]:
        return self._http.items(op.LIST_ALL_EXECS, lambda item: Process(self._http, types.Exec._from(item)), limit=limit)

    def get(self, exec_id: str) -> Process:
        return Process(self._http, types.Exec._from(self._http.json(op.GET_EXEC, id=exec_id)))


class Templates(_Nouns):
    """Templates: what workspaces begin with."""

    def list(self, *, limit: Optional[int] = None) -> Iterator[types.Template]:
        return self._http.items(op.LIST_TEMPLATES, types.Template._from, limit=limit)

    def get(self, name: str) -> types.Template:
        return types.Template._from(self._http.json(op.GET_TEMPLATE, id=name))

    def add(self, template: Union[str, types.TemplateWanted], *, check: bool = False) -> types.Template:
        """Adds a template: its YAML, or its values. With `check` it is only checked."""
        body: Dict[str, Any] = {"yaml": template} if isinstance(template, str) else {"template": template}
        return types.Template._from(self._http.json(op.ADD_TEMPLATE, body={**body, "check": check or None}))

    def remove(self, name: str) -> None:
        self._http.json(op.REMOVE_TEMPLATE, id=name)


class Agents(_Nouns):
    """A2A agents. Their tasks are A2A's: use a client of that protocol at `/a2a/NAME`."""

    def list(self, *, limit: Optional[int] = None) -> Iterator[types.Agent]:
        return self._http.items(op.LIST_AGENTS, types.Agent._from, limit=limit)

    def get(self, name: str) -> types.Agent:
        return types.Agent._from(self._http.json(op.GET_AGENT, id=name))

    def add(self, yaml: str, *, check: bool = False) -> types.Agent:
        """Adds an agent, or replaces the one of its name. With `check` it is only checked."""
        return types.Agent._from(self._http.json(op.ADD_AGENT, body={"yaml": yaml, "check": check or None}))

    def remove(self, name: str) -> None:
        self._http.json(op.REMOVE_AGENT, id=name)


class Snapshots(_Nouns):
    """Snapshots of all workspaces."""

    def list(self, *, limit: Optional[int] = None) -> Iterator[types.Snapshot]:
        return self._http.items(op.LIST_SNAPSHOTS, types.Snapshot._from, limit=limit)

    def get(self, snapshot_id: str) -> types.Snapshot:
        return types.Snapshot._from(self._http.json(op.GET_SNAPSHOT, id=snapshot_id))

    def pull(self, workspace: str, snapshot: Optional[str] = None) -> types.Snapshot:
        """Fetches a snapshot that `Workspace.push` sent to the blob store; `create(from_=...)` makes a workspace of it."""
        body = {"workspace": workspace, "snapshot": snapshot}
        return types.Snapshot._from(self._http.json(op.PULL_SNAPSHOT, body=body, timeout=None))

    def verify(self, snapshot_id: str) -> types.SnapshotVerdict:
        """Compares its layers with their content ids."""
        return types.SnapshotVerdict._from(self._http.json(op.VERIFY_SNAPSHOT, timeout=None, id=snapshot_id))

    def remove(self, snapshot_id: str) -> None:
        self._http.json(op.REMOVE_SNAPSHOT, id=snapshot_id)


class Archives(_Nouns):
    """Archived workspaces."""

    def list(self, *, limit: Optional[int] = None) -> Iterator[types.Archive]:
        return self._http.items(op.LIST_ARCHIVES, types.Archive._from, limit=limit)

    def restore(self, archive: str, name: Optional[str] = None) -> Workspace:
        """Makes a workspace of an archive."""
        made = self._http.json(op.RESTORE_ARCHIVE, body={"name": name}, timeout=None, id=archive)
        return Workspace(self._http, types.Workspace._from(made))

    def upload(self, archive: str, source: Union[PathLike, bytes, IO[bytes]], *, sha256: Optional[str] = None) -> None:
        """Stores an archive of a file under a new name, to restore it."""
        _upload(self._http, op.UPLOAD_ARCHIVE, archive, source, sha256)

    def remove(self, archive: str) -> None:
        self._http.json(op.REMOVE_ARCHIVE, id=archive)


class Environments(_Nouns):
    """Environments of Python and Node that are built."""

    def list(self, *, limit: Optional[int] = None) -> Iterator[types.Environment]:
        return self._http.items(op.LIST_ENVIRONMENTS, types.Environment._from, limit=limit)


class Exports(_Nouns):
    """Exported environments in the blob store."""

    def list(self, *, limit: Optional[int] = None) -> Iterator[types.Export]:
        return self._http.items(op.LIST_EXPORTS, types.Export._from, limit=limit)

    def download(self, name: str, target: PathLike) -> None:
        """Writes it into a file, as `carrel env export` wrote it."""
        with open(target, "wb") as file:
            save(self._http.pieces(op.GET_EXPORT, id=name), file)

    def upload(self, name: str, source: Union[PathLike, bytes, IO[bytes]], *, sha256: Optional[str] = None) -> None:
        """Stores a file of `carrel env export`, in place of the one of that name."""
        _upload(self._http, op.PUT_EXPORT, name, source, sha256)

    def remove(self, name: str) -> None:
        self._http.json(op.REMOVE_EXPORT, id=name)


class Trees(_Nouns):
    """Shared trees: directories that several workspaces attach."""

    def list(self, *, limit: Optional[int] = None) -> Iterator[types.Tree]:
        return self._http.items(op.LIST_TREES, types.Tree._from, limit=limit)

    def create(self, name: str) -> types.Tree:
        return types.Tree._from(self._http.json(op.CREATE_TREE, body={"name": name}))

    def remove(self, name: str) -> None:
        self._http.json(op.REMOVE_TREE, id=name)


class Tokens(_Nouns):
    """Access tokens."""

    def list(self, *, limit: Optional[int] = None) -> Iterator[types.Token]:
        return self._http.items(op.LIST_TOKENS, types.Token._from, limit=limit)

    def create(self, scope: Optional[str] = None, *, workspace: Optional[str] = None, name: Optional[str] = None,
                     ttl: Optional[Duration] = None) -> types.Token:
        """A new token; its `text` is shown this once. `workspace` bounds it to one workspace."""
        body = {"scope": scope, "workspace": workspace, "name": name, **_core.duration("ttl", ttl)}
        return types.Token._from(self._http.json(op.CREATE_TOKEN, body=body))

    def remove(self, token_id: str) -> None:
        """Removes it: it is refused from then on."""
        self._http.json(op.REMOVE_TOKEN, id=token_id)


class Packages(_Nouns):
    """Agent packages in the blob store."""

    def list(self, *, limit: Optional[int] = None) -> Iterator[types.Export]:
        return self._http.items(op.LIST_AGENT_PACKAGES, types.Export._from, limit=limit)

    def download(self, name: str, target: PathLike) -> None:
        """Writes it into a file."""
        with open(target, "wb") as file:
            save(self._http.pieces(op.GET_AGENT_PACKAGE, id=name), file)

    def upload(self, name: str, source: Union[PathLike, bytes, IO[bytes]], *, sha256: Optional[str] = None) -> None:
        """Stores a package, in place of the one of that name: `{agentAppId}@{version}`."""
        _upload(self._http, op.PUT_AGENT_PACKAGE, name, source, sha256)

    def remove(self, name: str) -> None:
        self._http.json(op.REMOVE_AGENT_PACKAGE, id=name)


SURFACES = {
    "rest": {"GET": op.FORWARD_REST_GET, "POST": op.FORWARD_REST_POST, "PUT": op.FORWARD_REST_PUT,
             "PATCH": op.FORWARD_REST_PATCH, "DELETE": op.FORWARD_REST_DELETE},
    "a2a": {"GET": op.FORWARD_A2A_GET, "POST": op.FORWARD_A2A_POST, "PUT": op.FORWARD_A2A_PUT,
            "PATCH": op.FORWARD_A2A_PATCH, "DELETE": op.FORWARD_A2A_DELETE},
    "ui": {"GET": op.FORWARD_UI_GET, "POST": op.FORWARD_UI_POST, "PUT": op.FORWARD_UI_PUT,
           "PATCH": op.FORWARD_UI_PATCH, "DELETE": op.FORWARD_UI_DELETE},
}


class Deployments(_Nouns):
    """Agent packages that are served."""

    def list(self, *, limit: Optional[int] = None) -> Iterator[types.Deployment]:
        return self._http.items(op.LIST_DEPLOYMENTS, types.Deployment._from, limit=limit)

    def create(self, agent: str, version: str, **wanted: Any) -> types.Deployment:
        """Rolls a package out; `wanted` has the other members of DeploymentWanted. Events `deployment.status` tell how it goes."""
        body = {"agentAppId": agent, "version": version, **wanted}
        return types.Deployment._from(self._http.json(op.CREATE_DEPLOYMENT, body=body))

    def get(self, name: str) -> types.Deployment:
        return types.Deployment._from(self._http.json(op.GET_DEPLOYMENT, id=name))

    def restart(self, name: str) -> types.Deployment:
        """Rolls the live revision out again."""
        return types.Deployment._from(self._http.json(op.RESTART_DEPLOYMENT, id=name))

    def rollback(self, name: str) -> types.Deployment:
        """Rolls the revision before the live one out again."""
        return types.Deployment._from(self._http.json(op.ROLLBACK_DEPLOYMENT, id=name))

    def remove(self, name: str) -> None:
        self._http.json(op.REMOVE_DEPLOYMENT, id=name)

    def logs(self, name: str, surface: Optional[str] = None) -> bytes:
        """The end of what its surfaces have written."""
        return b"".join([piece for piece in self._http.pieces(op.GET_DEPLOYMENT_LOGS, query={"surface": surface}, id=name)])

    def request(self, name: str, path: str = "/", *, surface: str = "rest", method: str = "GET",
                      content: Union[str, bytes, None] = None, json: Any = None,
                      headers: Optional[Mapping[str, str]] = None) -> httpx.Response:
        """One HTTP request to a surface; its answer, whatever its status."""
        return self._http.forward(SURFACES[surface][method.upper()], path, content, json, headers, id=name)


class Cases(_Nouns):
    """Eval cases, and their cells: runs of a case in forks of one prepared state."""

    def list(self, *, limit: Optional[int] = None) -> Iterator[types.Case]:
        return self._http.items(op.LIST_CASES, types.Case._from, limit=limit)

    def create(self, yaml: str, *, file: Optional[str] = None, harness: Optional[str] = None, check: bool = False,
                     keep: bool = False) -> types.Case:
        """A case of the text of its file; `harness` replaces its own. Send its source to its `workspace`, then start cells.
        With `check` it is only read."""
        body = {"yaml": yaml, "file": file, "harness": harness, "check": check or None, "keep": keep or None}
        return types.Case._from(self._http.json(op.CREATE_CASE, body=body))

    def get(self, case_id: str) -> types.Case:
        return types.Case._from(self._http.json(op.GET_CASE, id=case_id))

    def remove(self, case_id: str) -> None:
        """Cancels its cells, and removes it with its workspaces."""
        self._http.json(op.REMOVE_CASE, id=case_id)

    def cells(self, case_id: str, *, limit: Optional[int] = None) -> Iterator[types.Cell]:
        """Its cells, newest first, without their steps and diffs."""
        return self._http.items(op.LIST_CELLS, types.Cell._from, limit=limit, id=case_id)

    def start(self, case_id: str, *, repeat: Optional[int] = None) -> types.Cell:
        """Runs it once; events `cell.passed`, `cell.failed` and `cell.canceled` tell the end."""
        return types.Cell._from(self._http.json(op.START_CELL, id=case_id, body={"repeat": repeat}))

    def cell(self, cell_id: str) -> types.Cell:
        """A cell with its steps and its diff."""
        return types.Cell._from(self._http.json(op.GET_CELL, id=cell_id))


class Approvals(_Nouns):
    """Commands that wait for a reviewer."""

    def list(self, *, state: Optional[str] = None, workspace: Optional[str] = None,
             limit: Optional[int] = None) -> Iterator[types.Approval]:
        query = {"state": state, "workspace": workspace}
        return self._http.items(op.LIST_APPROVALS, types.Approval._from, limit=limit, query=query)

    def get(self, approval_id: str) -> types.Approval:
        return types.Approval._from(self._http.json(op.GET_APPROVAL, id=approval_id))

    def approve(self, approval_id: str, *, always: bool = False, note: Optional[str] = None) -> types.Approval:
        """Lets the command run; `always` adds its `suggested_rules` to the policy of the workspace."""
        return self._answer(approval_id, "approve", always, note)

    def deny(self, approval_id: str, *, note: Optional[str] = None) -> types.Approval:
        return self._answer(approval_id, "deny", False, note)

    def _answer(self, approval_id: str, decision: str, always: bool, note: Optional[str]) -> types.Approval:
        body = {"decision": decision, "always": always or None, "note": note}
        return types.Approval._from(self._http.json(op.ANSWER_APPROVAL, body=body, id=approval_id))


class Tools(_Nouns):
    """Tools: Python code that is tested before it is loaded."""

    def list(self, *, limit: Optional[int] = None) -> Iterator[types.Tool]:
        """Of each tool its active version, else its newest one; without code, tests and output."""
        return self._http.items(op.LIST_TOOLS, types.Tool._from, limit=limit)

    def versions(self, name: str, *, limit: Optional[int] = None) -> Iterator[types.Tool]:
        return self._http.items(op.LIST_TOOL_VERSIONS, types.Tool._from, limit=limit, id=name)

    def get(self, name: str, *, version: Optional[int] = None) -> types.Tool:
        return types.Tool._from(self._http.json(op.GET_TOOL, query={"version": version}, id=name))

    def forge(
        self, name: str, code: str, tests: str, *, requires: Optional[Sequence[str]] = None, description: Optional[str] = None,
        python: Optional[str] = None, network: Optional[types.NetworkWanted] = None, limits: Optional[types.LimitsWanted] = None,
        timeout: Optional[Duration] = None, ttl: Optional[Duration] = None,
    ) -> types.Tool:
        """Tests code, and loads it if the tests pass: `state` is "active", or "dormant" with `error` and `output`."""
        body = {"name": name, "code": code, "tests": tests, "requires": requires, "description": description, "python": python,
                "network": network, "limits": limits, **_core.duration("timeout", timeout), **_core.duration("ttl", ttl)}
        return types.Tool._from(self._http.json(op.FORGE_TOOL, body=body, timeout=None))

    def generate(
        self, name: str, *, description: Optional[str] = None, arguments: Optional[Mapping[str, Any]] = None,
        requires: Optional[Sequence[str]] = None,
    ) -> types.ToolSource:
        """Code and tests for a specification, by the operator's generator or as skeletons. Nothing is forged of it."""
        body = {"name": name, "description": description, "arguments": arguments, "requires": requires}
        return types.ToolSource._from(self._http.json(op.GENERATE_TOOL, body=body, timeout=None))

    def install(self, package: str, *, description: Optional[str] = None, ttl: Optional[Duration] = None) -> types.Tool:
        """Makes the tool pypi_PACKAGE of a Python package."""
        body = {"package": package, "description": description, **_core.duration("ttl", ttl)}
        return types.Tool._from(self._http.json(op.FORGE_TOOL, body=body, timeout=None))

    def call(self, name: str, arguments: Optional[Mapping[str, Any]] = None, *, version: Optional[int] = None,
                   timeout: Optional[Duration] = None) -> types.ToolResult:
        """Calls a tool: `result` if `ok`, else `error`."""
        body = {"arguments": arguments or {}, "version": version, **_core.duration("timeout", timeout)}
        return types.ToolResult._from(self._http.json(op.CALL_TOOL, body=body, timeout=None, id=name))

    def rollback(self, name: str, version: Optional[int] = None) -> types.Tool:
        """Loads the version before the active one, or the given one."""
        return types.Tool._from(self._http.json(op.ROLLBACK_TOOL, body={"version": version}, id=name))

    def remove(self, name: str) -> None:
        self._http.json(op.REMOVE_TOOL, id=name)


def _upload(http: Http, operation: op.Operation, name: str, source: Union[PathLike, bytes, IO[bytes]],
                  sha256: Optional[str]) -> None:
    if isinstance(source, (str, os.PathLike)):
        with open(source, "rb") as file:
            _upload(http, operation, name, file, sha256)
        return
    body = source if isinstance(source, bytes) else _io.pieces(source)
    http.json(operation, query={"sha256": sha256}, content=body, timeout=None, id=name)
