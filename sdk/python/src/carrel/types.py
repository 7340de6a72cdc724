# Written by sdk/generate-python: change src/model instead.
"""What the daemon takes and shows: a `TypedDict` for each body of a request, a dataclass for each object of a response."""
from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Dict, List, Literal, Mapping, Optional, Sequence, TypedDict, Union


def _time(text: Any) -> Any:
    """RFC 3339, or None."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")) if text else None


@dataclass(frozen=True)
class Health:
    """Health, as the daemon shows it."""

    status: str

    @classmethod
    def _from(cls, value: Any) -> Health:
        get = value.get
        return cls(
            status=get("status"),
        )


@dataclass(frozen=True)
class Environment:
    """Environment, as the daemon shows it."""

    name: str
    package_id: Optional[str]
    state: Literal["ready", "corrupt"]
    created_at: Optional[datetime]
    last_used_at: Optional[datetime]
    use_count: int
    size_bytes: int
    kind: Literal["python", "node"]
    python_version: Optional[str]
    node_version: Optional[str]
    # name: version
    installed_packages: Dict[str, str]
    in_use: bool
    problem: Optional[str]

    @classmethod
    def _from(cls, value: Any) -> Environment:
        get = value.get
        return cls(
            name=get("name"),
            package_id=get("package_id"),
            state=get("state"),
            created_at=_time(get("created_at")),
            last_used_at=_time(get("last_used_at")),
            use_count=get("use_count"),
            size_bytes=get("size_bytes"),
            kind=get("kind"),
            python_version=get("python_version"),
            node_version=get("node_version"),
            installed_packages=get("installed_packages"),
            in_use=get("in_use"),
            problem=get("problem"),
        )


@dataclass(frozen=True)
class Template:
    """What it extends is resolved: the values are those that a workspace gets."""

    name: str
    # shipped, or user
    origin: str
    python: TemplatePython
    nodejs: TemplateNode
    system: TemplateSystem
    security: TemplateSecurity
    limits: Limits
    network: TemplateNetwork
    # of all that a workspace is made of
    sha256: str
    # keys that have no effect in this version
    warnings: List[str]
    version: Optional[str] = None
    description: Optional[str] = None
    extends: Optional[str] = None
    env: Optional[Dict[str, str]] = None
    labels: Optional[Dict[str, str]] = None
    files: Optional[Dict[str, str]] = None
    view: Optional[Literal["workspace", "root"]] = None
    attach: Optional[List[str]] = None
    ttl_ms: Optional[int] = None
    idle_timeout_ms: Optional[int] = None
    settings: Optional[Dict[str, Any]] = None
    sources: Optional[Dict[str, Any]] = None
    # as it was added; values above are resolved
    yaml: Optional[str] = None

    @classmethod
    def _from(cls, value: Any) -> Template:
        get = value.get
        return cls(
            name=get("name"),
            origin=get("origin"),
            python=TemplatePython._from(get("python") or {}),
            nodejs=TemplateNode._from(get("nodejs") or {}),
            system=TemplateSystem._from(get("system") or {}),
            security=TemplateSecurity._from(get("security") or {}),
            limits=Limits._from(get("limits") or {}),
            network=TemplateNetwork._from(get("network") or {}),
            sha256=get("sha256"),
            warnings=get("warnings"),
            version=get("version"),
            description=get("description"),
            extends=get("extends"),
            env=get("env"),
            labels=get("labels"),
            files=get("files"),
            view=get("view"),
            attach=get("attach"),
            ttl_ms=get("ttl_ms"),
            idle_timeout_ms=get("idle_timeout_ms"),
            settings=get("settings"),
            sources=get("sources"),
            yaml=get("yaml"),
        )


@dataclass(frozen=True)
class TemplatePython:
    """TemplatePython, as the daemon shows it."""

    version: Optional[str] = None
    dependencies: Optional[List[str]] = None

    @classmethod
    def _from(cls, value: Any) -> TemplatePython:
        get = value.get
        return cls(
            version=get("version"),
            dependencies=get("dependencies"),
        )


@dataclass(frozen=True)
class TemplateNode:
    """TemplateNode, as the daemon shows it."""

    version: Optional[str] = None
    runtime: Optional[Literal["bun", "npm"]] = None
    dependencies: Optional[Dict[str, str]] = None

    @classmethod
    def _from(cls, value: Any) -> TemplateNode:
        get = value.get
        return cls(
            version=get("version"),
            runtime=get("runtime"),
            dependencies=get("dependencies"),
        )


@dataclass(frozen=True)
class TemplateSystem:
    """TemplateSystem, as the daemon shows it."""

    shell: Optional[str] = None
    editor: Optional[str] = None

    @classmethod
    def _from(cls, value: Any) -> TemplateSystem:
        get = value.get
        return cls(
            shell=get("shell"),
            editor=get("editor"),
        )


@dataclass(frozen=True)
class TemplateSecurity:
    """TemplateSecurity, as the daemon shows it."""

    network_enabled: Optional[bool] = None
    filesystem_readonly: Optional[List[str]] = None
    filesystem_writable: Optional[List[str]] = None

    @classmethod
    def _from(cls, value: Any) -> TemplateSecurity:
        get = value.get
        return cls(
            network_enabled=get("network_enabled"),
            filesystem_readonly=get("filesystem_readonly"),
            filesystem_writable=get("filesystem_writable"),
        )


@dataclass(frozen=True)
class Limits:
    """The limits in force; null: no limit."""

    memory_bytes: Optional[int]
    disk_bytes: Optional[int]
    tmp_bytes: Optional[int]
    pids: Optional[int]
    fds: Optional[int]
    cpus: Optional[float]
    cpu_time_ms: Optional[int]
    timeout_ms: Optional[int]
    output_bytes: Optional[int]
    # the mechanism that enforces them: cgroup-v1, cgroup-v2, watchdog; null: not warm
    mechanism: Optional[str]

    @classmethod
    def _from(cls, value: Any) -> Limits:
        get = value.get
        return cls(
            memory_bytes=get("memory_bytes"),
            disk_bytes=get("disk_bytes"),
            tmp_bytes=get("tmp_bytes"),
            pids=get("pids"),
            fds=get("fds"),
            cpus=get("cpus"),
            cpu_time_ms=get("cpu_time_ms"),
            timeout_ms=get("timeout_ms"),
            output_bytes=get("output_bytes"),
            mechanism=get("mechanism"),
        )


@dataclass(frozen=True)
class TemplateNetwork:
    """TemplateNetwork, as the daemon shows it."""

    mode: Optional[str] = None
    allow: Optional[List[str]] = None
    deny: Optional[List[str]] = None

    @classmethod
    def _from(cls, value: Any) -> TemplateNetwork:
        get = value.get
        return cls(
            mode=get("mode"),
            allow=get("allow"),
            deny=get("deny"),
        )


class TemplateAdded(TypedDict, total=False):
    """TemplateAdded, as the daemon takes it."""

    # the text of the template
    yaml: str
    # or its values
    template: TemplateWanted
    # only check it: nothing is added
    check: Optional[bool]


class _TemplateWantedNeeded(TypedDict):
    name: str


class TemplateWanted(_TemplateWantedNeeded, total=False):
    """TemplateWanted, as the daemon takes it."""

    # of the format: 1.0
    version: Optional[str]
    description: Optional[str]
    # a template whose values hold where this has none
    extends: Optional[str]
    python: Optional[TemplatePythonWanted]
    nodejs: Optional[TemplateNodeWanted]
    system: Optional[TemplateSystemWanted]
    security: Optional[TemplateSecurityWanted]
    limits: Optional[LimitsWanted]
    network: Optional[TemplateNetworkWanted]
    # variables of every exec
    env: Optional[Mapping[str, str]]
    labels: Optional[Mapping[str, str]]
    # path below the workspace: text
    files: Optional[Mapping[str, str]]
    # where its files are seen: at /workspace, or at / (root)
    view: Optional[Literal["workspace", "root"]]
    # NAME:PATH[:ro]: shared trees
    attach: Optional[Sequence[str]]
    # workspaces are removed after this time
    ttl: Optional[Union[str, float]]
    # ttl in milliseconds, instead of it
    ttl_ms: Optional[int]
    # workspaces are suspended after this time without activity
    idle_timeout: Optional[Union[str, float]]
    # idle_timeout in milliseconds, instead of it
    idle_timeout_ms: Optional[int]
    # the rules of a settings.json; `carrel template add` also takes the name of a file
    settings: Optional[Mapping[str, Any]]
    # a sources.json; `carrel template add` also takes the name of a file
    sources: Optional[Mapping[str, Any]]


class TemplatePythonWanted(TypedDict, total=False):
    """TemplatePythonWanted, as the daemon takes it."""

    # such as 3.12
    version: Optional[str]
    # such as pandas>=2.1.0
    dependencies: Optional[Sequence[str]]


class TemplateNodeWanted(TypedDict, total=False):
    """TemplateNodeWanted, as the daemon takes it."""

    # such as 20
    version: Optional[str]
    # what installs the packages
    runtime: Optional[Literal["bun", "npm"]]
    # such as axios: ^1.6.0
    dependencies: Optional[Mapping[str, str]]


class TemplateSystemWanted(TypedDict, total=False):
    """TemplateSystemWanted, as the daemon takes it."""

    # the variable SHELL, and what carrel shell starts
    shell: Optional[str]
    # the variable EDITOR
    editor: Optional[str]


class TemplateSecurityWanted(TypedDict, total=False):
    """TemplateSecurityWanted, as the daemon takes it."""

    # true: as network.mode open, unless that is given; false: as none
    network_enabled: Optional[bool]
    # paths that must be read-only inside: an error where they are not
    filesystem_readonly: Optional[Sequence[str]]
    # paths that must be writable inside: an error where they are not
    filesystem_writable: Optional[Sequence[str]]


class LimitsWanted(TypedDict, total=False):
    """Limits apply to the whole sandbox. Sizes are bytes or text such as "512M", durations text such as "30s". The
    limits in a response can be sent back unchanged."""

    # memory of all processes and tmpfs together (default 2G)
    memory: Optional[Union[int, str]]
    # memory in bytes, instead of it
    memory_bytes: Optional[int]
    # size of /workspace, /.cache and changes of /env (default 1G)
    disk: Optional[Union[int, str]]
    # disk in bytes, instead of it
    disk_bytes: Optional[int]
    # size of /tmp and /dev/shm together (default half of memory)
    tmp: Optional[Union[int, str]]
    # tmp in bytes, instead of it
    tmp_bytes: Optional[int]
    # processes and threads (default 1024)
    pids: Optional[int]
    # open files of a process (default 1024)
    fds: Optional[int]
    # number of CPUs, such as 0.5 (default no limit)
    cpus: Optional[Union[float, str]]
    # cpu time of one exec (default no limit)
    cpu_time: Optional[Union[str, float]]
    # cpu_time in milliseconds, instead of it
    cpu_time_ms: Optional[int]
    # wall time of one exec, unless the exec sets its own
    timeout: Optional[Union[str, float]]
    # timeout in milliseconds, instead of it
    timeout_ms: Optional[int]
    # bytes of output of one exec
    output: Optional[Union[int, str]]
    # output in bytes, instead of it
    output_bytes: Optional[int]
    # set in responses; ignored in requests
    mechanism: Optional[str]


class TemplateNetworkWanted(TypedDict, total=False):
    """TemplateNetworkWanted, as the daemon takes it."""

    # none, list or open
    mode: Optional[str]
    # hosts that may be reached
    allow: Optional[Sequence[str]]
    # hosts that may not, though they are allowed
    deny: Optional[Sequence[str]]


@dataclass(frozen=True)
class Tree:
    """A directory that workspaces share."""

    name: str
    # that have it attached
    workspaces: List[str]

    @classmethod
    def _from(cls, value: Any) -> Tree:
        get = value.get
        return cls(
            name=get("name"),
            workspaces=get("workspaces"),
        )


class TreeWanted(TypedDict):
    """TreeWanted, as the daemon takes it."""

    name: str


@dataclass(frozen=True)
class Approval:
    """A question put to a person: may this command run?"""

    id: str
    # its id
    workspace: str
    workspace_name: str
    # id of the exec that waits for it
    exec: str
    state: Literal["pending", "approved", "denied", "expired"]
    # null: the workspace's directory
    cwd: Optional[str]
    # the variables that it gets: its own and those of the workspace; null: set, but hidden, since it looks like a
    # secret
    env: Dict[str, Optional[str]]
    # all of its stdin; null: empty, or open_stdin
    stdin: Optional[str]
    # its stdin is written while it runs
    open_stdin: bool
    # it has a terminal
    tty: bool
    # of argv, command, cwd, env and stdin: base64 if one of them isn't UTF-8
    encoding: Literal["utf-8", "base64"]
    # how the policy judged it
    trail: List[PolicyStep]
    # steps are left out, those that were allowed first
    trail_truncated: bool
    # the principal that runs it
    requested_by: str
    created_at: datetime
    # it is denied then
    expires_at: datetime
    # or when it expired
    answered_at: Optional[datetime]
    # null: no reviewer has answered
    answered_by: Optional[str]
    # of the reviewer, or why it has expired
    note: Optional[str]
    # that were added to the policy by the answer
    rules: List[str]
    # that approve with always adds: exactly these
    suggested_rules: List[str]
    # why there are no such rules; null: there are
    always_refused: Optional[str]
    # the program and its arguments; or command
    argv: Optional[List[str]] = None
    # for /bin/sh -c
    command: Optional[str] = None

    @classmethod
    def _from(cls, value: Any) -> Approval:
        get = value.get
        return cls(
            id=get("id"),
            workspace=get("workspace"),
            workspace_name=get("workspace_name"),
            exec=get("exec"),
            state=get("state"),
            cwd=get("cwd"),
            env=get("env"),
            stdin=get("stdin"),
            open_stdin=get("open_stdin"),
            tty=get("tty"),
            encoding=get("encoding"),
            trail=[PolicyStep._from(item) for item in get("trail") or ()],
            trail_truncated=get("trail_truncated"),
            requested_by=get("requested_by"),
            created_at=_time(get("created_at")),
            expires_at=_time(get("expires_at")),
            answered_at=_time(get("answered_at")),
            answered_by=get("answered_by"),
            note=get("note"),
            rules=get("rules"),
            suggested_rules=get("suggested_rules"),
            always_refused=get("always_refused"),
            argv=get("argv"),
            command=get("command"),
        )


@dataclass(frozen=True)
class PolicyStep:
    """One step of a judgement."""

    # the command, file or host that was judged
    subject: str
    # that decided; null: none
    rule: Optional[str]
    # why, where no rule decided
    reason: Optional[str]
    # allow, ask or deny
    decision: str

    @classmethod
    def _from(cls, value: Any) -> PolicyStep:
        get = value.get
        return cls(
            subject=get("subject"),
            rule=get("rule"),
            reason=get("reason"),
            decision=get("decision"),
        )


class _ApprovalAnswerNeeded(TypedDict):
    decision: Literal["approve", "deny"]


class ApprovalAnswer(_ApprovalAnswerNeeded, total=False):
    """ApprovalAnswer, as the daemon takes it."""

    # with approve: also add rules to the policy of the workspace that allow the same command from now on; the answer
    # shows them
    always: Optional[bool]
    # for the requester
    note: Optional[str]


@dataclass(frozen=True)
class Agent:
    """Agent, as the daemon shows it."""

    id: str
    name: str
    # when it was added first
    created_at: datetime
    version: str
    description: str
    default: bool
    skills: List[AgentSkill]
    # null: it has no extended card
    extended: Optional[AgentExtended]
    # shell: the text of a message is a command; command: a program gets the messages
    kind: Literal["shell", "command"]
    template: Optional[str]
    limits: Limits
    timeout_ms: int
    ttl_ms: int
    namespace: Optional[str]
    auth: Literal["token", "none"]
    approver: Literal["client", "reviewer"]
    workspace_without_context: bool
    max_contexts: int
    max_tasks: int
    push: Optional[List[str]]
    # as it was added
    yaml: str
    command: Optional[List[str]] = None
    settings: Optional[Dict[str, Any]] = None
    sources: Optional[Dict[str, Any]] = None
    env: Optional[Dict[str, str]] = None

    @classmethod
    def _from(cls, value: Any) -> Agent:
        get = value.get
        return cls(
            id=get("id"),
            name=get("name"),
            created_at=_time(get("created_at")),
            version=get("version"),
            description=get("description"),
            default=get("default"),
            skills=[AgentSkill._from(item) for item in get("skills") or ()],
            extended=AgentExtended._from(get("extended")) if get("extended") is not None else None,
            kind=get("kind"),
            template=get("template"),
            limits=Limits._from(get("limits") or {}),
            timeout_ms=get("timeout_ms"),
            ttl_ms=get("ttl_ms"),
            namespace=get("namespace"),
            auth=get("auth"),
            approver=get("approver"),
            workspace_without_context=get("workspace_without_context"),
            max_contexts=get("max_contexts"),
            max_tasks=get("max_tasks"),
            push=get("push"),
            yaml=get("yaml"),
            command=get("command"),
            settings=get("settings"),
            sources=get("sources"),
            env=get("env"),
        )


@dataclass(frozen=True)
class AgentSkill:
    """As the card of A2A has it."""

    id: str
    name: str
    description: str
    tags: List[str]
    examples: Optional[List[str]] = None

    @classmethod
    def _from(cls, value: Any) -> AgentSkill:
        get = value.get
        return cls(
            id=get("id"),
            name=get("name"),
            description=get("description"),
            tags=get("tags"),
            examples=get("examples"),
        )


@dataclass(frozen=True)
class AgentExtended:
    """What the card for authenticated clients has."""

    description: Optional[str]
    # besides the public ones
    skills: List[AgentSkill]

    @classmethod
    def _from(cls, value: Any) -> AgentExtended:
        get = value.get
        return cls(
            description=get("description"),
            skills=[AgentSkill._from(item) for item in get("skills") or ()],
        )


class _AgentAddedNeeded(TypedDict):
    # the text of the agent
    yaml: str


class AgentAdded(_AgentAddedNeeded, total=False):
    """AgentAdded, as the daemon takes it."""

    # only check it: nothing is added
    check: Optional[bool]


@dataclass(frozen=True)
class Token:
    """Token, as the daemon shows it."""

    id: str
    name: Optional[str]
    # admin: everything; user: look at workspaces and use them; reviewer: look at them and answer approvals
    scope: Literal["admin", "user", "reviewer"]
    # the id of the only workspace that it reaches; null: all
    workspace: Optional[str]
    # of that workspace
    workspace_name: Optional[str]
    # the principal that made it
    created_by: str
    created_at: datetime
    # null: it doesn't expire
    expires_at: Optional[datetime]
    # within ten minutes; null: never
    last_used_at: Optional[datetime]
    # the token itself, for `Authorization: Bearer`: only in the answer that made it
    text: Optional[str] = field(default=None, repr=False)

    @classmethod
    def _from(cls, value: Any) -> Token:
        get = value.get
        return cls(
            id=get("id"),
            name=get("name"),
            scope=get("scope"),
            workspace=get("workspace"),
            workspace_name=get("workspace_name"),
            created_by=get("created_by"),
            created_at=_time(get("created_at")),
            expires_at=_time(get("expires_at")),
            last_used_at=_time(get("last_used_at")),
            text=get("text"),
        )


class TokenWanted(TypedDict, total=False):
    """TokenWanted, as the daemon takes it."""

    # user when not given
    scope: Optional[Literal["admin", "user", "reviewer"]]
    # id or name of the only workspace that it reaches; all when not given
    workspace: Optional[str]
    # for lists
    name: Optional[str]
    # it expires after this time; never when not given
    ttl: Optional[Union[str, float]]
    # ttl in milliseconds, instead of it
    ttl_ms: Optional[int]


class _CodeWantedNeeded(TypedDict):
    # what the file holds
    code: str


class CodeWanted(_CodeWantedNeeded, total=False):
    """CodeWanted, as the daemon takes it."""

    # the name of the file, which ends in .py or .sh; main.py when not given
    file: Optional[str]
    # the name of the tests' file: .py for pytest, .sh for a shell; test_ and the name of the file when not given
    tests_file: Optional[str]
    # what the tests' file holds
    tests: Optional[str]
    # requirements of Python packages
    packages: Optional[Sequence[str]]
    # a version of Python
    python: Optional[str]
    # the whole input: text, or {"base64": …}
    stdin: Optional[Union[str, Mapping[str, Any]]]
    # variables
    env: Optional[Mapping[str, str]]
    limits: Optional[LimitsWanted]
    network: Optional[NetworkWanted]
    # wall time of the file, and of its tests; 300 s when not given
    timeout: Optional[Union[str, float]]
    # timeout in milliseconds, instead of it
    timeout_ms: Optional[int]


class NetworkWanted(TypedDict, total=False):
    """NetworkWanted, as the daemon takes it."""

    # none: only loopback; list: the hosts of `allow`; open: all public hosts. Default: list when something is allowed,
    # else none
    mode: Optional[str]
    # host, *.host, either with :port, or an address; registries: the package indexes that the host's clients are
    # configured with
    allow: Optional[Sequence[str]]
    # the same; wins over `allow`
    deny: Optional[Sequence[str]]


@dataclass(frozen=True)
class CodeResult:
    """CodeResult, as the daemon shows it."""

    # of the exec
    id: str
    exit_code: int
    signal: Optional[int]
    reason: Literal["exited", "signaled", "timeout", "cpu_limit", "memory_limit", "output_limit", "disk_limit", "canceled", "denied", "daemon_lost"]
    stdout: str
    stderr: str
    # encoding of stdout and stderr: base64 if one isn't UTF-8, or if JSON would need more than 64 KiB and more than
    # twice their bytes
    encoding: Literal["utf-8", "base64"]
    truncated: bool
    duration_ms: int
    cpu_ms: int
    max_rss_bytes: int
    # the mechanism that enforced the limits
    limits: Optional[str]
    # null: there are none
    tests: Optional[CodeTests]

    @classmethod
    def _from(cls, value: Any) -> CodeResult:
        get = value.get
        return cls(
            id=get("id"),
            exit_code=get("exit_code"),
            signal=get("signal"),
            reason=get("reason"),
            stdout=get("stdout"),
            stderr=get("stderr"),
            encoding=get("encoding"),
            truncated=get("truncated"),
            duration_ms=get("duration_ms"),
            cpu_ms=get("cpu_ms"),
            max_rss_bytes=get("max_rss_bytes"),
            limits=get("limits"),
            tests=CodeTests._from(get("tests")) if get("tests") is not None else None,
        )


@dataclass(frozen=True)
class CodeTests:
    """CodeTests, as the daemon shows it."""

    # none: the file has no test; not_run: the code itself has failed
    verdict: Literal["passed", "failed", "none", "not_run"]
    # how the tests ended; null: they weren't run
    result: Optional[Result]

    @classmethod
    def _from(cls, value: Any) -> CodeTests:
        get = value.get
        return cls(
            verdict=get("verdict"),
            result=Result._from(get("result")) if get("result") is not None else None,
        )


@dataclass(frozen=True)
class Result:
    """Result, as the daemon shows it."""

    # of the exec
    id: str
    exit_code: int
    signal: Optional[int]
    reason: Literal["exited", "signaled", "timeout", "cpu_limit", "memory_limit", "output_limit", "disk_limit", "canceled", "denied", "daemon_lost"]
    stdout: str
    stderr: str
    # encoding of stdout and stderr: base64 if one isn't UTF-8, or if JSON would need more than 64 KiB and more than
    # twice their bytes
    encoding: Literal["utf-8", "base64"]
    truncated: bool
    duration_ms: int
    cpu_ms: int
    max_rss_bytes: int
    # the mechanism that enforced the limits
    limits: Optional[str]

    @classmethod
    def _from(cls, value: Any) -> Result:
        get = value.get
        return cls(
            id=get("id"),
            exit_code=get("exit_code"),
            signal=get("signal"),
            reason=get("reason"),
            stdout=get("stdout"),
            stderr=get("stderr"),
            encoding=get("encoding"),
            truncated=get("truncated"),
            duration_ms=get("duration_ms"),
            cpu_ms=get("cpu_ms"),
            max_rss_bytes=get("max_rss_bytes"),
            limits=get("limits"),
        )


@dataclass(frozen=True)
class Case:
    """An eval case."""

    id: str
    # the id that its file gives it
    name: str
    # created: its source may be sent; preparing: since its first cell; ready: cells run; failed: they fail
    state: Literal["created", "preparing", "ready", "failed"]
    description: Optional[str]
    # as its file names it
    source: Optional[str]
    # id of the workspace that is prepared, to which the source is sent; null: the case was only checked
    workspace: Optional[str]
    # id of the prepared state
    snapshot: Optional[str]
    # workspaces of ended cells stay
    keep: bool
    # a case that isn't used for so long is removed, unless it keeps workspaces
    ttl_ms: int
    # why it has failed: install, editable, setup, snapshot, or restarted: the daemon was
    reason: Optional[str]
    error: Optional[str]
    # of the preparation
    steps: List[CaseStep]
    # of every command; null: set, but hidden, since it looks like a secret
    variables: Dict[str, Optional[str]]
    created_at: datetime
    last_used_at: datetime
    # how many it has
    cells: int

    @classmethod
    def _from(cls, value: Any) -> Case:
        get = value.get
        return cls(
            id=get("id"),
            name=get("name"),
            state=get("state"),
            description=get("description"),
            source=get("source"),
            workspace=get("workspace"),
            snapshot=get("snapshot"),
            keep=get("keep"),
            ttl_ms=get("ttl_ms"),
            reason=get("reason"),
            error=get("error"),
            steps=[CaseStep._from(item) for item in get("steps") or ()],
            variables=get("variables"),
            created_at=_time(get("created_at")),
            last_used_at=_time(get("last_used_at")),
            cells=get("cells"),
        )


@dataclass(frozen=True)
class CaseStep:
    """One command of a case or a cell."""

    # install, editable, setup, harness; or that of a grader
    type: str
    name: str
    command: str
    passed: bool
    exit_code: int
    # as of an exec; error: it could not be run
    reason: str
    duration_ms: int
    # what it wrote to stdout and stderr
    output: str
    # a middle part of the output is left out
    truncated: bool

    @classmethod
    def _from(cls, value: Any) -> CaseStep:
        get = value.get
        return cls(
            type=get("type"),
            name=get("name"),
            command=get("command"),
            passed=get("passed"),
            exit_code=get("exit_code"),
            reason=get("reason"),
            duration_ms=get("duration_ms"),
            output=get("output"),
            truncated=get("truncated"),
        )


class _CaseWantedNeeded(TypedDict):
    # the text of its file
    yaml: str


class CaseWanted(_CaseWantedNeeded, total=False):
    """CaseWanted, as the daemon takes it."""

    # the name of that file, for errors
    file: Optional[str]
    # a shell command in place of its own
    harness: Optional[str]
    # only reads it; nothing is made
    check: Optional[bool]
    # workspaces of ended cells stay until the case is removed
    keep: Optional[bool]
    # remove the case when it isn't used for so long, unless it keeps workspaces; 1 h when not given
    ttl: Optional[Union[str, float]]
    # ttl in milliseconds, instead of it
    ttl_ms: Optional[int]


@dataclass(frozen=True)
class Cell:
    """One run of a case."""

    id: str
    # id of its case
    case: str
    state: Literal["waiting", "harness", "grading", "passed", "failed", "canceled"]
    case_name: str
    # which run of the case it is, from 1
    repeat: int
    # why it hasn't passed: case (its preparation has failed), harness, grader, workspace, removed, or restarted: the
    # daemon was
    reason: Optional[str]
    error: Optional[str]
    # id, while there is one
    workspace: Optional[str]
    # from its fork to its verdict
    duration_ms: int
    # the harness, then the graders
    steps: List[CaseStep]
    # what the harness changed, as a patch
    diff: Optional[str]
    # its end is left out
    diff_truncated: bool
    # of every command; null: set, but hidden, since it looks like a secret
    variables: Dict[str, Optional[str]]
    created_at: datetime
    started_at: Optional[datetime]
    ended_at: Optional[datetime]

    @classmethod
    def _from(cls, value: Any) -> Cell:
        get = value.get
        return cls(
            id=get("id"),
            case=get("case"),
            state=get("state"),
            case_name=get("case_name"),
            repeat=get("repeat"),
            reason=get("reason"),
            error=get("error"),
            workspace=get("workspace"),
            duration_ms=get("duration_ms"),
            steps=[CaseStep._from(item) for item in get("steps") or ()],
            diff=get("diff"),
            diff_truncated=get("diff_truncated"),
            variables=get("variables"),
            created_at=_time(get("created_at")),
            started_at=_time(get("started_at")),
            ended_at=_time(get("ended_at")),
        )


class CellWanted(TypedDict, total=False):
    """CellWanted, as the daemon takes it."""

    # which run of the case it is; 1 when not given
    repeat: Optional[int]


@dataclass(frozen=True)
class Tool:
    """Tool, as the daemon shows it."""

    # of this version
    id: str
    name: str
    # 1, 2, 3 ... of the tool
    version: int
    # active: calls run this version; dormant: it isn't loaded; else it is being forged
    state: Literal["dormant", "creating", "installing", "testing", "active", "cleanup"]
    # the requirement that it was made of
    package: Optional[str]
    description: Optional[str]
    # requirements of Python packages
    requires: List[str]
    # a version
    python: Optional[str]
    # what it was tested and is called in
    environment: Optional[str]
    # id of the workspace that calls run in; null: it has none
    workspace: Optional[str]
    # its tests have passed
    passed: bool
    # why it is dormant
    error: Optional[str]
    # of the code
    sha256: str
    # how long it took to forge it
    forge_ms: int
    # how long it is kept when it isn't active
    ttl_ms: int
    created_at: datetime
    # its state has changed then
    changed_at: datetime
    # null: it is active
    expires_at: Optional[datetime]
    network: Network
    # left out in lists
    code: Optional[str] = None
    # left out in lists
    tests: Optional[str] = None
    # what the tests have printed, the last 64 KiB of it; left out in lists
    output: Optional[str] = None

    @classmethod
    def _from(cls, value: Any) -> Tool:
        get = value.get
        return cls(
            id=get("id"),
            name=get("name"),
            version=get("version"),
            state=get("state"),
            package=get("package"),
            description=get("description"),
            requires=get("requires"),
            python=get("python"),
            environment=get("environment"),
            workspace=get("workspace"),
            passed=get("passed"),
            error=get("error"),
            sha256=get("sha256"),
            forge_ms=get("forge_ms"),
            ttl_ms=get("ttl_ms"),
            created_at=_time(get("created_at")),
            changed_at=_time(get("changed_at")),
            expires_at=_time(get("expires_at")),
            network=Network._from(get("network") or {}),
            code=get("code"),
            tests=get("tests"),
            output=get("output"),
        )


@dataclass(frozen=True)
class Network:
    """What its sandboxes may reach; they have no other network."""

    # none: only loopback; list: the hosts of `allow`; open: all public hosts. Default: list when something is allowed,
    # else none
    mode: str
    # host, *.host, either with :port, or an address; registries: the package indexes that the host's clients are
    # configured with
    allow: List[str]
    # the same; wins over `allow`
    deny: List[str]
    # since the daemon began
    connections: Optional[int] = None
    # by the lists
    refused: Optional[int] = None
    # allowed, but not reached
    failed: Optional[int] = None
    received_bytes: Optional[int] = None
    sent_bytes: Optional[int] = None
    # policies that let only a part of it be reached; mode none then: nothing
    bounded_by: Optional[List[str]] = None

    @classmethod
    def _from(cls, value: Any) -> Network:
        get = value.get
        return cls(
            mode=get("mode"),
            allow=get("allow"),
            deny=get("deny"),
            connections=get("connections"),
            refused=get("refused"),
            failed=get("failed"),
            received_bytes=get("received_bytes"),
            sent_bytes=get("sent_bytes"),
            bounded_by=get("bounded_by"),
        )


class ToolWanted(TypedDict, total=False):
    """ToolWanted, as the daemon takes it."""

    # a new tool, or the next version of one
    name: Optional[str]
    # tool.py: a Python module with a function run
    code: Optional[str]
    # test_tool.py: tests for pytest, which import tool
    tests: Optional[str]
    # a requirement, instead of name, code and tests: the tool pypi_PACKAGE is made with an adapter
    package: Optional[str]
    # requirements of Python packages
    requires: Optional[Sequence[str]]
    # a version of Python
    python: Optional[str]
    # for lists
    description: Optional[str]
    # what the tests and calls may reach
    network: Optional[NetworkWanted]
    # of the tests and of calls
    limits: Optional[LimitsWanted]
    # of the tests; 300 s when not given
    timeout: Optional[Union[str, float]]
    # timeout in milliseconds, instead of it
    timeout_ms: Optional[int]
    # how long this version is kept when it isn't active; 24 h when not given
    ttl: Optional[Union[str, float]]
    # ttl in milliseconds, instead of it
    ttl_ms: Optional[int]


class _ToolSpecNeeded(TypedDict):
    # of the tool
    name: str


class ToolSpec(_ToolSpecNeeded, total=False):
    """ToolSpec, as the daemon takes it."""

    # what the tool is to do
    description: Optional[str]
    # of run: names and examples
    arguments: Optional[Mapping[str, Any]]
    # requirements of Python packages
    requires: Optional[Sequence[str]]


@dataclass(frozen=True)
class ToolSource:
    """ToolSource, as the daemon shows it."""

    # of the tool
    name: str
    # tool.py
    code: str
    # test_tool.py
    tests: str
    # requirements of Python packages
    requires: List[str]
    # by the operator's generator; false: skeletons, whose tests fail
    generated: bool

    @classmethod
    def _from(cls, value: Any) -> ToolSource:
        get = value.get
        return cls(
            name=get("name"),
            code=get("code"),
            tests=get("tests"),
            requires=get("requires"),
            generated=get("generated"),
        )


class ToolCall(TypedDict, total=False):
    """ToolCall, as the daemon takes it."""

    # of the function run, by name
    arguments: Optional[Mapping[str, Any]]
    # 300 s when not given
    timeout: Optional[Union[str, float]]
    # timeout in milliseconds, instead of it
    timeout_ms: Optional[int]
    # another version than the active one, that still has its workspace
    version: Optional[int]


@dataclass(frozen=True)
class ToolResult:
    """ToolResult, as the daemon shows it."""

    # its name
    tool: str
    version: int
    # there is a result
    ok: bool
    # what run returned; null when it has failed
    result: Any
    # null: there is a result
    error: Optional[ToolFailure]
    # what the tool has printed
    stdout: str
    stderr: str
    # of both: utf-8 or base64
    encoding: str
    duration_ms: int

    @classmethod
    def _from(cls, value: Any) -> ToolResult:
        get = value.get
        return cls(
            tool=get("tool"),
            version=get("version"),
            ok=get("ok"),
            result=get("result"),
            error=ToolFailure._from(get("error")) if get("error") is not None else None,
            stdout=get("stdout"),
            stderr=get("stderr"),
            encoding=get("encoding"),
            duration_ms=get("duration_ms"),
        )


@dataclass(frozen=True)
class ToolFailure:
    """ToolFailure, as the daemon shows it."""

    # raised: run raised an exception; invalid_result: it returned what isn't JSON; exited: the process ended without a
    # result; else what ended it
    reason: Literal["raised", "invalid_result", "exited", "signaled", "timeout", "cpu_limit", "memory_limit", "output_limit", "disk_limit", "canceled", "denied"]
    # of the exception
    type: Optional[str]
    message: str
    # of the exception
    traceback: Optional[str]

    @classmethod
    def _from(cls, value: Any) -> ToolFailure:
        get = value.get
        return cls(
            reason=get("reason"),
            type=get("type"),
            message=get("message"),
            traceback=get("traceback"),
        )


class ToolRollback(TypedDict, total=False):
    """ToolRollback, as the daemon takes it."""

    # when not given: the newest one below the active one that has passed its tests
    version: Optional[int]


class Python(TypedDict, total=False):
    """The packages of a Python environment, which is built if it doesn't exist."""

    # such as 3.12
    version: Optional[str]
    # the text of a requirements file
    requirements: Optional[str]
    # such as requests==2.32.3
    packages: Optional[Sequence[str]]
    # lines of a constraints file, such as urllib3<2
    constraints: Optional[Sequence[str]]
    # PyTorch for cpu, cu126, ... or auto, as uv names them
    torch_backend: Optional[str]
    # allow pre-releases
    pre: Optional[bool]
    # build packages that have no wheel, in a sandbox without network
    allow_build: Optional[bool]


class Node(TypedDict, total=False):
    """The packages of a Node environment, which is built if it doesn't exist."""

    # such as 22
    version: Optional[str]
    # such as axios or typescript@5
    packages: Optional[Sequence[str]]
    # the text of a package.json
    package_json: Optional[str]
    # the text of its bun.lock or package-lock.json
    lock: Optional[str]
    # what installs the packages: bun or npm
    runtime: Optional[str]
    # run install scripts of packages, in a sandbox without a network; environments.allow_scripts of config.yaml must
    # allow it
    allow_scripts: Optional[bool]


@dataclass(frozen=True)
class Workspace:
    """Workspace, as the daemon shows it."""

    id: str
    name: str
    # ready: usable, and nothing runs; running: an exec runs, also in the background, or a process that an earlier exec
    # left behind
    state: Literal["creating", "ready", "running", "suspended", "failed", "deleting"]
    template: Optional[str]
    created_at: datetime
    last_used_at: Optional[datetime]
    expires_at: Optional[datetime]
    idle_timeout_ms: Optional[int]
    # also what services and core say of it: carrel.service, context_id, agent, ...
    labels: Dict[str, str]
    environment: Optional[str]
    # variables of every exec; null: set, but hidden, since its name or value looks like a secret
    env: Dict[str, Optional[str]]
    limits: Limits
    network: Network
    disk_usage_bytes: int
    disk_limit_mechanism: Optional[str]
    isolation: str
    layers_active: List[str]
    # a sandbox is ready: the next exec starts at once
    warm: bool
    ptrace: bool
    view: Literal["workspace", "root"]
    # the snapshot that its state is based on
    snapshot: Optional[str]
    error: Optional[str]
    # keys of its template that have no effect in this version, or what of an archive was not restored
    warnings: Optional[List[str]] = None
    # that of Node
    node_environment: Optional[str] = None
    # what is under way with it, besides execs: a snapshot of it is being made, ...
    in_use: Optional[List[str]] = None
    dir: Optional[str] = None
    mounts: Optional[List[str]] = None
    attach: Optional[List[str]] = None
    settings: Optional[Dict[str, Any]] = None
    # the settings of its template, which hold as well
    template_settings: Optional[Dict[str, Any]] = None
    # rules that reviewers have added by allowing something from then on
    rules: Optional[List[str]] = None
    sources: Optional[Dict[str, Any]] = None
    # the sources of its template, which hold as well
    template_sources: Optional[Dict[str, Any]] = None

    @classmethod
    def _from(cls, value: Any) -> Workspace:
        get = value.get
        return cls(
            id=get("id"),
            name=get("name"),
            state=get("state"),
            template=get("template"),
            created_at=_time(get("created_at")),
            last_used_at=_time(get("last_used_at")),
            expires_at=_time(get("expires_at")),
            idle_timeout_ms=get("idle_timeout_ms"),
            labels=get("labels"),
            environment=get("environment"),
            env=get("env"),
            limits=Limits._from(get("limits") or {}),
            network=Network._from(get("network") or {}),
            disk_usage_bytes=get("disk_usage_bytes"),
            disk_limit_mechanism=get("disk_limit_mechanism"),
            isolation=get("isolation"),
            layers_active=get("layers_active"),
            warm=get("warm"),
            ptrace=get("ptrace"),
            view=get("view"),
            snapshot=get("snapshot"),
            error=get("error"),
            warnings=get("warnings"),
            node_environment=get("node_environment"),
            in_use=get("in_use"),
            dir=get("dir"),
            mounts=get("mounts"),
            attach=get("attach"),
            settings=get("settings"),
            template_settings=get("template_settings"),
            rules=get("rules"),
            sources=get("sources"),
            template_sources=get("template_sources"),
        )


class WorkspaceChange(TypedDict, total=False):
    """Fields that are not given stay unchanged."""

    # labels to set; null removes a label; context_id, agent and namespace stay
    labels: Optional[Mapping[str, Optional[str]]]
    # variables to set for new execs; null removes a variable
    env: Optional[Mapping[str, Optional[str]]]
    # only while no exec runs; null: unchanged
    limits: Optional[LimitsWanted]
    # holds for new connections; from none only while no exec runs
    network: Optional[NetworkChange]
    # from now; null: none
    ttl: Optional[Union[str, float]]
    # ttl in milliseconds, instead of it
    ttl_ms: Optional[int]
    # null: none
    idle_timeout: Optional[Union[str, float]]
    # idle_timeout in milliseconds, instead of it
    idle_timeout_ms: Optional[int]
    # a settings.json in place of the one it has; null: none; only while no exec runs
    settings: Optional[Mapping[str, Any]]
    # a sources.json in place of the one it has; null: none; only while no exec runs
    sources: Optional[Mapping[str, Any]]


class NetworkChange(TypedDict, total=False):
    """What its sandboxes may reach. Fields that are not given stay unchanged."""

    # none, list or open
    mode: str
    # in place of what is allowed now
    allow: Sequence[str]
    # in place of what is denied now
    deny: Sequence[str]


@dataclass(frozen=True)
class Archive:
    """An archived workspace."""

    name: str
    # the name that it had
    workspace: str
    # tar.zst or tar.gz
    format: str
    created_at: datetime
    size_bytes: int

    @classmethod
    def _from(cls, value: Any) -> Archive:
        get = value.get
        return cls(
            name=get("name"),
            workspace=get("workspace"),
            format=get("format"),
            created_at=_time(get("created_at")),
            size_bytes=get("size_bytes"),
        )


class RestoreWanted(TypedDict, total=False):
    """RestoreWanted, as the daemon takes it."""

    # of the workspace; the one that it had when not given
    name: Optional[str]


@dataclass(frozen=True)
class Export:
    """An exported environment of the blob store."""

    name: str
    created_at: datetime
    size_bytes: int

    @classmethod
    def _from(cls, value: Any) -> Export:
        get = value.get
        return cls(
            name=get("name"),
            created_at=_time(get("created_at")),
            size_bytes=get("size_bytes"),
        )


@dataclass(frozen=True)
class Deployment:
    """Deployment, as the daemon shows it."""

    deploymentId: str
    # its routes take it in place of the id
    name: str
    # of the revision that is being rolled out, else of the live one
    status: Literal["downloading", "building_env", "installing_deps", "starting", "healthy", "unhealthy", "failed", "stopped"]
    agentAppId: str
    # of the live revision, else of the next
    version: str
    packageUrl: str
    # of the package
    sha256: Optional[str]
    # the live one; 0: none is
    revision: int
    # of the latest rollout, or of a surface
    error: Optional[str]
    created_at: datetime
    updated_at: datetime
    # the latest one
    rollout: DeploymentRollout
    # of the live revision; null: none is live
    venv: Optional[DeploymentVenv]
    # of the live revision, else of the next
    surfaces: List[Surface]

    @classmethod
    def _from(cls, value: Any) -> Deployment:
        get = value.get
        return cls(
            deploymentId=get("deploymentId"),
            name=get("name"),
            status=get("status"),
            agentAppId=get("agentAppId"),
            version=get("version"),
            packageUrl=get("packageUrl"),
            sha256=get("sha256"),
            revision=get("revision"),
            error=get("error"),
            created_at=_time(get("created_at")),
            updated_at=_time(get("updated_at")),
            rollout=DeploymentRollout._from(get("rollout") or {}),
            venv=DeploymentVenv._from(get("venv")) if get("venv") is not None else None,
            surfaces=[Surface._from(item) for item in get("surfaces") or ()],
        )


@dataclass(frozen=True)
class DeploymentRollout:
    """DeploymentRollout, as the daemon shows it."""

    revision: int
    version: Optional[str]
    # healthy: it is live; failed: what was live still is
    status: Literal["downloading", "building_env", "installing_deps", "starting", "healthy", "unhealthy", "failed", "stopped"]
    error: Optional[str]

    @classmethod
    def _from(cls, value: Any) -> DeploymentRollout:
        get = value.get
        return cls(
            revision=get("revision"),
            version=get("version"),
            status=get("status"),
            error=get("error"),
        )


@dataclass(frozen=True)
class DeploymentVenv:
    """DeploymentVenv, as the daemon shows it."""

    # inside the surfaces
    path: str
    # of the environment: carrel env show
    name: str
    # index: of the packages of an index; package: of the wheels in its package.venv.tar.gz
    source: str
    # of requirements.txt, or no-deps
    requirements_sha256: str
    created_at: str
    python_version: str
    # names and versions
    installed_packages: Dict[str, str]
    # nothing was installed for it: it, or all of its packages, were there
    cached: bool

    @classmethod
    def _from(cls, value: Any) -> DeploymentVenv:
        get = value.get
        return cls(
            path=get("path"),
            name=get("name"),
            source=get("source"),
            requirements_sha256=get("requirements_sha256"),
            created_at=get("created_at"),
            python_version=get("python_version"),
            installed_packages=get("installed_packages"),
            cached=get("cached"),
        )


@dataclass(frozen=True)
class Surface:
    """Surface, as the daemon shows it."""

    # rest, a2a or ui
    name: str
    # starting, healthy, unhealthy or stopped
    status: str
    # where the daemon forwards requests to it
    url: str
    # in its workspace
    port: int
    # its sandbox, for carrel port and carrel exec
    workspace: Optional[str]
    # its process, for GET /v1/execs/{id}/output
    exec: Optional[str]
    # since it was rolled out
    restarts: int
    # why it isn't healthy
    error: Optional[str]

    @classmethod
    def _from(cls, value: Any) -> Surface:
        get = value.get
        return cls(
            name=get("name"),
            status=get("status"),
            url=get("url"),
            port=get("port"),
            workspace=get("workspace"),
            exec=get("exec"),
            restarts=get("restarts"),
            error=get("error"),
        )


class _DeploymentWantedNeeded(TypedDict):
    # the agent
    agentAppId: str
    # that of agent.yaml
    version: str


class DeploymentWanted(_DeploymentWantedNeeded, total=False):
    """DeploymentWanted, as the daemon takes it."""

    # of the deployment, agentAppId when not given; one that is there is replaced, without a failed request
    name: Optional[str]
    # blob:NAME of a stored package (default: blob:{agentAppId}@{version}), or an http or https URL: unless the package
    # {agentAppId}@{version} is stored already, with the sha256 if one is given, it is fetched and stored under that
    # name
    packageUrl: Optional[str]
    # that the package must have
    sha256: Optional[str]
    # make the environment again although it exists, with the versions that were resolved before, and put it in the
    # place of the one that is there
    rebuildVenv: Optional[bool]
    # look for neither the environment nor the versions that were resolved before: resolve again, to the newest that
    # requirements.txt allows
    skipVenvCache: Optional[bool]
    # fetch a packageUrl of http or https, and unpack the package, although both were done already; the environment is
    # reused
    forceRefresh: Optional[bool]
    # index in place of the host's; it and the next two fail the rollout unless config.yaml has allow_options
    pipIndexUrl: Optional[str]
    # another index, asked first: packages that it has are taken from it
    pipExtraIndexUrl: Optional[str]
    # HOST or HOST:PORT of an index whose certificate isn't checked
    pipTrustedHost: Optional[str]
    # variables of all surfaces
    env: Optional[Mapping[str, str]]
    # what the surfaces may reach; nothing by default
    network: Optional[NetworkWanted]
    # the policy of the surfaces
    settings: Optional[Mapping[str, Any]]


class Suspend(TypedDict, total=False):
    """Suspend, as the daemon takes it."""

    # end the commands that run in it
    force: Optional[bool]


@dataclass(frozen=True)
class WorkspaceHealth:
    """WorkspaceHealth, as the daemon shows it."""

    # its id
    workspace: str
    name: str
    # before the check
    state: Literal["creating", "ready", "running", "suspended", "failed", "deleting"]
    # there are no issues
    healthy: bool
    # .workspace_configured exists
    configured: bool
    # .venv exists and its Python runs
    python_venv: bool
    # every declared Python package was imported
    python_deps_installed: bool
    # node_modules exists
    node_modules: bool
    # node_modules has every dependency of package.json
    node_deps_installed: bool
    # bytes
    disk_usage: int
    # bytes
    disk_limit: int
    disk_limit_mechanism: Optional[str]
    environment: Optional[str]
    node_environment: Optional[str]
    # layers of its environments
    environment_layers: int
    # layers of snapshots and of its template
    snapshot_layers: int
    # files of layers were compared with their hashes
    deep: bool
    # of the isolation
    layers_active: List[str]
    # what is wrong; empty: nothing
    issues: List[str]

    @classmethod
    def _from(cls, value: Any) -> WorkspaceHealth:
        get = value.get
        return cls(
            workspace=get("workspace"),
            name=get("name"),
            state=get("state"),
            healthy=get("healthy"),
            configured=get("configured"),
            python_venv=get("python_venv"),
            python_deps_installed=get("python_deps_installed"),
            node_modules=get("node_modules"),
            node_deps_installed=get("node_deps_installed"),
            disk_usage=get("disk_usage"),
            disk_limit=get("disk_limit"),
            disk_limit_mechanism=get("disk_limit_mechanism"),
            environment=get("environment"),
            node_environment=get("node_environment"),
            environment_layers=get("environment_layers"),
            snapshot_layers=get("snapshot_layers"),
            deep=get("deep"),
            layers_active=get("layers_active"),
            issues=get("issues"),
        )


@dataclass(frozen=True)
class IsolationVerdict:
    """IsolationVerdict, as the daemon shows it."""

    # its id
    workspace: str
    name: str
    # all checks are
    ok: bool
    # no command ran there that could have faked what was seen from inside
    inside_trusted: bool
    layers: List[IsolationCheck]

    @classmethod
    def _from(cls, value: Any) -> IsolationVerdict:
        get = value.get
        return cls(
            workspace=get("workspace"),
            name=get("name"),
            ok=get("ok"),
            inside_trusted=get("inside_trusted"),
            layers=[IsolationCheck._from(item) for item in get("layers") or ()],
        )


@dataclass(frozen=True)
class IsolationCheck:
    """IsolationCheck, as the daemon shows it."""

    # seccomp, capabilities, network_namespace, …
    name: str
    ok: bool
    # outside: by the daemon, from the kernel; inside: by a process there
    seen_from: Literal["outside", "inside"]
    # what was seen
    detail: str

    @classmethod
    def _from(cls, value: Any) -> IsolationCheck:
        get = value.get
        return cls(
            name=get("name"),
            ok=get("ok"),
            seen_from=get("seen_from"),
            detail=get("detail"),
        )


@dataclass(frozen=True)
class WorkspaceRepair:
    """WorkspaceRepair, as the daemon shows it."""

    # what was repaired
    done: List[str]
    # what can't be repaired, and why
    failed: List[str]
    # afterwards
    health: WorkspaceHealth

    @classmethod
    def _from(cls, value: Any) -> WorkspaceRepair:
        get = value.get
        return cls(
            done=get("done"),
            failed=get("failed"),
            health=WorkspaceHealth._from(get("health") or {}),
        )


class SnapshotWanted(TypedDict, total=False):
    """SnapshotWanted, as the daemon takes it."""

    # names the snapshot; one of a workspace has it
    tag: Optional[str]
    note: Optional[str]
    # while commands run: pause them and copy what was changed (the default), wait until they have ended, or fail
    when_busy: Optional[Literal["pause", "wait", "fail"]]
    # how long to wait; 5m when not given
    timeout: Optional[Union[str, float]]
    # timeout in milliseconds, instead of it
    timeout_ms: Optional[int]


@dataclass(frozen=True)
class Snapshot:
    """Snapshot, as the daemon shows it."""

    id: str
    # the id of the workspace it was made of
    workspace: str
    workspace_name: str
    # 1, 2, 3 ... of the workspace
    version: int
    tag: Optional[str]
    note: Optional[str]
    created_at: datetime
    # bytes on disk of what was changed since the snapshot below; null: not measured yet
    size_bytes: Optional[int]
    # topmost first
    layers: List[str]
    # that the workspace had
    environment: Optional[str]
    # of the workspace
    view: Literal["workspace", "root"]
    # made by a rollback, of the state that it left
    automatic: bool
    # stays when its workspace is removed
    kept: bool
    # hash of its topmost layer; null: not computed yet
    content_id: Optional[str]
    # that of Node
    node_environment: Optional[str] = None

    @classmethod
    def _from(cls, value: Any) -> Snapshot:
        get = value.get
        return cls(
            id=get("id"),
            workspace=get("workspace"),
            workspace_name=get("workspace_name"),
            version=get("version"),
            tag=get("tag"),
            note=get("note"),
            created_at=_time(get("created_at")),
            size_bytes=get("size_bytes"),
            layers=get("layers"),
            environment=get("environment"),
            view=get("view"),
            automatic=get("automatic"),
            kept=get("kept"),
            content_id=get("content_id"),
            node_environment=get("node_environment"),
        )


class PullWanted(TypedDict):
    """PullWanted, as the daemon takes it."""

    # the name of the workspace that was pushed
    workspace: str
    # id, tag or version of a snapshot of it that was pushed
    snapshot: str


@dataclass(frozen=True)
class SnapshotVerdict:
    """SnapshotVerdict, as the daemon shows it."""

    # its id
    snapshot: str
    # no layer has a problem
    ok: bool
    # topmost first
    layers: List[LayerVerdict]

    @classmethod
    def _from(cls, value: Any) -> SnapshotVerdict:
        get = value.get
        return cls(
            snapshot=get("snapshot"),
            ok=get("ok"),
            layers=[LayerVerdict._from(item) for item in get("layers") or ()],
        )


@dataclass(frozen=True)
class LayerVerdict:
    """LayerVerdict, as the daemon shows it."""

    name: str
    # null where there is a problem
    content_id: Optional[str]
    # missing, changed, or why it can't be read; null: none
    problem: Optional[str]

    @classmethod
    def _from(cls, value: Any) -> LayerVerdict:
        get = value.get
        return cls(
            name=get("name"),
            content_id=get("content_id"),
            problem=get("problem"),
        )


class _RollbackWantedNeeded(TypedDict):
    # id, tag or version of a snapshot of this workspace
    snapshot: str


class RollbackWanted(_RollbackWantedNeeded, total=False):
    """RollbackWanted, as the daemon takes it."""

    # while commands run: wait until they have ended, or fail (the default)
    when_busy: Optional[Literal["wait", "fail"]]
    # how long to wait; 5m when not given
    timeout: Optional[Union[str, float]]
    # timeout in milliseconds, instead of it
    timeout_ms: Optional[int]


class _PushWantedNeeded(TypedDict):
    # id, tag or version of a snapshot of this workspace
    snapshot: str


class PushWanted(_PushWantedNeeded, total=False):
    """PushWanted, as the daemon takes it."""

    # send also the layers that the blob store has
    force: Optional[bool]


@dataclass(frozen=True)
class Push:
    """What a push has done."""

    # its id
    snapshot: str
    # its name
    workspace: str
    # of its manifest in the blob store
    key: str
    # that it has
    layers: int
    # that the blob store lacked
    sent_layers: int
    # bytes of these, compressed
    sent_bytes: int

    @classmethod
    def _from(cls, value: Any) -> Push:
        get = value.get
        return cls(
            snapshot=get("snapshot"),
            workspace=get("workspace"),
            key=get("key"),
            layers=get("layers"),
            sent_layers=get("sent_layers"),
            sent_bytes=get("sent_bytes"),
        )


class ForkWanted(TypedDict, total=False):
    """ForkWanted, as the daemon takes it."""

    # of the new workspace; with a count NAME-1, NAME-2 ...; generated when not given
    name: Optional[str]
    # 1 when not given
    count: Optional[int]
    # id, tag or version of a snapshot; the present state when not given
    snapshot: Optional[str]
    # while commands run: pause them and copy what was changed (the default), wait until they have ended, or fail
    when_busy: Optional[Literal["pause", "wait", "fail"]]
    # how long to wait; 5m when not given
    timeout: Optional[Union[str, float]]
    # timeout in milliseconds, instead of it
    timeout_ms: Optional[int]


@dataclass(frozen=True)
class WorkspaceMetrics:
    """What a workspace uses."""

    # of the workspace
    id: str
    name: str
    state: Literal["creating", "ready", "running", "suspended", "failed", "deleting"]
    # it has a sandbox; else nothing runs in it
    warm: bool
    # when the sandbox was looked at: at most five times a second
    measured_at: Optional[datetime]
    # cpu time of the sandbox since its start
    cpu_ms: int
    # share of one cpu between the last two looks; null after the first
    cpu_percent: Optional[float]
    # of all processes and tmpfs; pages that processes share count once for each
    memory_bytes: int
    memory_limit_bytes: Optional[int]
    # processes and threads
    pids: int
    pids_limit: Optional[int]
    # as last measured
    disk_usage_bytes: int
    disk_limit_bytes: Optional[int]
    # that run
    execs: int

    @classmethod
    def _from(cls, value: Any) -> WorkspaceMetrics:
        get = value.get
        return cls(
            id=get("id"),
            name=get("name"),
            state=get("state"),
            warm=get("warm"),
            measured_at=_time(get("measured_at")),
            cpu_ms=get("cpu_ms"),
            cpu_percent=get("cpu_percent"),
            memory_bytes=get("memory_bytes"),
            memory_limit_bytes=get("memory_limit_bytes"),
            pids=get("pids"),
            pids_limit=get("pids_limit"),
            disk_usage_bytes=get("disk_usage_bytes"),
            disk_limit_bytes=get("disk_limit_bytes"),
            execs=get("execs"),
        )


@dataclass(frozen=True)
class Package:
    """Package, as the daemon shows it."""

    # of Python: normalised
    name: str
    version: str
    kind: Literal["python", "node"]
    # asked for by name, not only a dependency
    requested: bool
    # workspace: a command in it installed the package
    source: Literal["environment", "workspace"]

    @classmethod
    def _from(cls, value: Any) -> Package:
        get = value.get
        return cls(
            name=get("name"),
            version=get("version"),
            kind=get("kind"),
            requested=get("requested"),
            source=get("source"),
        )


class _PackagesWantedNeeded(TypedDict):
    # such as pandas>=2, of Node axios@1; names alone, to uninstall them
    packages: Sequence[str]


class PackagesWanted(_PackagesWantedNeeded, total=False):
    """PackagesWanted, as the daemon takes it."""

    # python when not given
    kind: Optional[Literal["python", "node"]]
    # whether pyproject.toml, of Node package.json, in /workspace is changed too; true when not given
    persist: Optional[bool]


@dataclass(frozen=True)
class PackagesChanged:
    """PackagesChanged, as the daemon shows it."""

    # the new environment of the workspace
    environment: str
    # new packages, and new versions
    installed: List[PackageVersion]
    # packages and versions that are gone
    removed: List[PackageVersion]
    # something runs in the workspace: the files were copied into its sandbox
    live: bool
    # pyproject.toml or package.json was changed
    persisted: bool

    @classmethod
    def _from(cls, value: Any) -> PackagesChanged:
        get = value.get
        return cls(
            environment=get("environment"),
            installed=[PackageVersion._from(item) for item in get("installed") or ()],
            removed=[PackageVersion._from(item) for item in get("removed") or ()],
            live=get("live"),
            persisted=get("persisted"),
        )


@dataclass(frozen=True)
class PackageVersion:
    """PackageVersion, as the daemon shows it."""

    name: str
    version: str

    @classmethod
    def _from(cls, value: Any) -> PackageVersion:
        get = value.get
        return cls(
            name=get("name"),
            version=get("version"),
        )


class ExecWanted(TypedDict, total=False):
    """ExecWanted, as the daemon takes it."""

    # the program and its arguments
    argv: Sequence[str]
    # for /bin/sh -c
    command: str
    # absolute, or from the workspace's directory on, which it is when not given: /workspace, or / in view root
    cwd: Optional[str]
    # variables, on top of the workspace's
    env: Optional[Mapping[str, str]]
    # the whole input: text, or {"base64": …}
    stdin: Optional[Union[str, Mapping[str, Any]]]
    # stdin is fed by POST /v1/execs/{id}/stdin
    open_stdin: Optional[bool]
    # wall time; when not given: the workspace's limit, else 300 s; no limit with background or tty
    timeout: Optional[Union[str, float]]
    # timeout in milliseconds, instead of it
    timeout_ms: Optional[int]
    limits: Optional[ExecLimits]
    # with a terminal of its own
    tty: Optional[bool]
    # of the terminal; 24 when not given
    rows: Optional[int]
    # of the terminal; 80 when not given
    columns: Optional[int]
    # respond as soon as the command runs; it continues without the client
    background: Optional[bool]
    # the user of the sandbox: agent, or 1000
    user: Optional[str]
    # if the policy asks for an approval: wait for it (the default), or return 202; the command then waits as a
    # background exec, without streams of the client
    approval: Optional[Literal["wait", "return"]]
    # learn (scope admin, text/event-stream): run what no rule denies, and send the rules that would allow it as the
    # event learned
    policy: Optional[Literal["enforce", "learn"]]


class ExecLimits(TypedDict, total=False):
    """ExecLimits, as the daemon takes it."""

    # cpu time of all its processes
    cpu_time: Optional[Union[str, float]]
    # cpu_time in milliseconds, instead of it
    cpu_time_ms: Optional[int]
    # bytes of output; when not given: the workspace's limit, else 64M if it is captured or kept
    output: Optional[Union[int, str]]
    # output in bytes, instead of it
    output_bytes: Optional[int]


@dataclass(frozen=True)
class ExecWaitingEvent:
    """The exec waits for an approval."""

    # the name of the event
    type: Literal["waiting"]
    # of the exec
    id: str
    # id of the approval that it waits for
    approval: str

    @classmethod
    def _from(cls, value: Any) -> ExecWaitingEvent:
        get = value.get
        return cls(
            type=get("type"),
            id=get("id"),
            approval=get("approval"),
        )


@dataclass(frozen=True)
class ExecLearnedEvent:
    """With `policy: learn`, before start."""

    # the name of the event
    type: Literal["learned"]
    # of the policy: allow, ask or deny
    decision: str
    # what it would be with the rules
    decision_with_rules: str
    # that would allow the command
    rules: List[str]
    # how the policy judged it
    trail: List[PolicyStep]

    @classmethod
    def _from(cls, value: Any) -> ExecLearnedEvent:
        get = value.get
        return cls(
            type=get("type"),
            decision=get("decision"),
            decision_with_rules=get("decision_with_rules"),
            rules=get("rules"),
            trail=[PolicyStep._from(item) for item in get("trail") or ()],
        )


@dataclass(frozen=True)
class ExecStartEvent:
    """The command runs."""

    # the name of the event
    type: Literal["start"]
    # of the exec
    id: str

    @classmethod
    def _from(cls, value: Any) -> ExecStartEvent:
        get = value.get
        return cls(
            type=get("type"),
            id=get("id"),
        )


@dataclass(frozen=True)
class ExecOutputEvent:
    """A piece of output. A character is never cut in two."""

    # the name of the event
    type: Literal["stdout", "stderr"]
    data: str
    # of data
    encoding: Literal["utf-8", "base64"]

    @classmethod
    def _from(cls, value: Any) -> ExecOutputEvent:
        get = value.get
        return cls(
            type=get("type"),
            data=get("data"),
            encoding=get("encoding"),
        )


@dataclass(frozen=True)
class ExecExitEvent:
    """The last event: the result. Its stdout and stderr are empty: they were sent before."""

    # of the exec
    id: str
    exit_code: int
    signal: Optional[int]
    reason: Literal["exited", "signaled", "timeout", "cpu_limit", "memory_limit", "output_limit", "disk_limit", "canceled", "denied", "daemon_lost"]
    stdout: str
    stderr: str
    # encoding of stdout and stderr: base64 if one isn't UTF-8, or if JSON would need more than 64 KiB and more than
    # twice their bytes
    encoding: Literal["utf-8", "base64"]
    truncated: bool
    duration_ms: int
    cpu_ms: int
    max_rss_bytes: int
    # the mechanism that enforced the limits
    limits: Optional[str]
    # the name of the event
    type: Literal["exit"]

    @classmethod
    def _from(cls, value: Any) -> ExecExitEvent:
        get = value.get
        return cls(
            id=get("id"),
            exit_code=get("exit_code"),
            signal=get("signal"),
            reason=get("reason"),
            stdout=get("stdout"),
            stderr=get("stderr"),
            encoding=get("encoding"),
            truncated=get("truncated"),
            duration_ms=get("duration_ms"),
            cpu_ms=get("cpu_ms"),
            max_rss_bytes=get("max_rss_bytes"),
            limits=get("limits"),
            type=get("type"),
        )


@dataclass(frozen=True)
class ExecErrorEvent:
    """The last event of an exec that was approved and then couldn't be started."""

    # the name of the event
    type: Literal["error"]
    # what went wrong
    code: Literal["invalid", "not_found", "conflict", "denied", "limit", "disk_full", "unavailable", "corrupt", "failed", "command_not_found", "not_executable", "canceled", "unauthenticated", "approval_required"]
    # for people
    detail: str
    # how to correct it
    hint: Optional[str]
    exit_code: int

    @classmethod
    def _from(cls, value: Any) -> ExecErrorEvent:
        get = value.get
        return cls(
            type=get("type"),
            code=get("code"),
            detail=get("detail"),
            hint=get("hint"),
            exit_code=get("exit_code"),
        )


@dataclass(frozen=True)
class Exec:
    """Exec, as the daemon shows it."""

    id: str
    # its id
    workspace: str
    state: Literal["starting", "running", "ended", "waiting"]
    argv: List[str]
    cwd: Optional[str]
    background: bool
    tty: bool
    started_at: Optional[datetime]
    ended_at: Optional[datetime]
    exit_code: Optional[int]
    signal: Optional[int]
    reason: Optional[Literal["exited", "signaled", "timeout", "cpu_limit", "memory_limit", "output_limit", "disk_limit", "canceled", "denied", "daemon_lost"]]
    output_bytes: int
    # how many of output_bytes are not kept: the oldest, of a background exec that has written more than its limit
    output_dropped_bytes: int
    duration_ms: Optional[int]
    cpu_ms: Optional[int]
    max_rss_bytes: Optional[int]
    error: Optional[str]

    @classmethod
    def _from(cls, value: Any) -> Exec:
        get = value.get
        return cls(
            id=get("id"),
            workspace=get("workspace"),
            state=get("state"),
            argv=get("argv"),
            cwd=get("cwd"),
            background=get("background"),
            tty=get("tty"),
            started_at=_time(get("started_at")),
            ended_at=_time(get("ended_at")),
            exit_code=get("exit_code"),
            signal=get("signal"),
            reason=get("reason"),
            output_bytes=get("output_bytes"),
            output_dropped_bytes=get("output_dropped_bytes"),
            duration_ms=get("duration_ms"),
            cpu_ms=get("cpu_ms"),
            max_rss_bytes=get("max_rss_bytes"),
            error=get("error"),
        )


@dataclass(frozen=True)
class ApprovalRequired:
    """ApprovalRequired, as the daemon shows it."""

    # about:blank
    type: str
    # of the status
    title: str
    # 202
    status: int
    code: Literal["approval_required"]
    # for people
    detail: str
    # the route of the approval
    hint: Optional[str]
    # as in the logs of the daemon
    request_id: str
    # 126
    exit_code: int
    # id of the exec that waits
    exec: str
    approval: Approval

    @classmethod
    def _from(cls, value: Any) -> ApprovalRequired:
        get = value.get
        return cls(
            type=get("type"),
            title=get("title"),
            status=get("status"),
            code=get("code"),
            detail=get("detail"),
            hint=get("hint"),
            request_id=get("request_id"),
            exit_code=get("exit_code"),
            exec=get("exec"),
            approval=Approval._from(get("approval") or {}),
        )


@dataclass(frozen=True)
class OutputDroppedEvent:
    """The oldest output was dropped, since the exec has written more than is kept."""

    # the name of the event
    type: Literal["dropped"]
    stream: Literal["stdout", "stderr"]
    # offset of the first byte that isn't kept any more
    from_: int
    # offset of the next byte that is
    to: int

    @classmethod
    def _from(cls, value: Any) -> OutputDroppedEvent:
        get = value.get
        return cls(
            type=get("type"),
            stream=get("stream"),
            from_=get("from"),
            to=get("to"),
        )


@dataclass(frozen=True)
class OutputExitEvent:
    """The last event: the exec, which has ended."""

    id: str
    # its id
    workspace: str
    state: Literal["starting", "running", "ended", "waiting"]
    argv: List[str]
    cwd: Optional[str]
    background: bool
    tty: bool
    started_at: Optional[datetime]
    ended_at: Optional[datetime]
    exit_code: Optional[int]
    signal: Optional[int]
    reason: Optional[Literal["exited", "signaled", "timeout", "cpu_limit", "memory_limit", "output_limit", "disk_limit", "canceled", "denied", "daemon_lost"]]
    output_bytes: int
    # how many of output_bytes are not kept: the oldest, of a background exec that has written more than its limit
    output_dropped_bytes: int
    duration_ms: Optional[int]
    cpu_ms: Optional[int]
    max_rss_bytes: Optional[int]
    error: Optional[str]
    # the name of the event
    type: Literal["exit"]

    @classmethod
    def _from(cls, value: Any) -> OutputExitEvent:
        get = value.get
        return cls(
            id=get("id"),
            workspace=get("workspace"),
            state=get("state"),
            argv=get("argv"),
            cwd=get("cwd"),
            background=get("background"),
            tty=get("tty"),
            started_at=_time(get("started_at")),
            ended_at=_time(get("ended_at")),
            exit_code=get("exit_code"),
            signal=get("signal"),
            reason=get("reason"),
            output_bytes=get("output_bytes"),
            output_dropped_bytes=get("output_dropped_bytes"),
            duration_ms=get("duration_ms"),
            cpu_ms=get("cpu_ms"),
            max_rss_bytes=get("max_rss_bytes"),
            error=get("error"),
            type=get("type"),
        )


class _SignalNeeded(TypedDict):
    # its name or number
    signal: Union[Literal["HUP", "SIGHUP", "INT", "SIGINT", "QUIT", "SIGQUIT", "ILL", "SIGILL", "TRAP", "SIGTRAP", "ABRT", "SIGABRT", "BUS", "SIGBUS", "FPE", "SIGFPE", "KILL", "SIGKILL", "USR1", "SIGUSR1", "SEGV", "SIGSEGV", "USR2", "SIGUSR2", "PIPE", "SIGPIPE", "ALRM", "SIGALRM", "TERM", "SIGTERM", "CHLD", "SIGCHLD", "CONT", "SIGCONT", "STOP", "SIGSTOP", "TSTP", "SIGTSTP", "TTIN", "SIGTTIN", "TTOU", "SIGTTOU", "URG", "SIGURG", "XCPU", "SIGXCPU", "XFSZ", "SIGXFSZ", "VTALRM", "SIGVTALRM", "PROF", "SIGPROF", "WINCH", "SIGWINCH", "IO", "SIGIO", "PWR", "SIGPWR", "SYS", "SIGSYS"], int]


class Signal(_SignalNeeded, total=False):
    """Signal, as the daemon takes it."""

    # why the exec ends; only with KILL, from a client that passed the streams and counts their output
    reason: Optional[Literal["output_limit"]]


class Size(TypedDict):
    """Of a terminal."""

    rows: int
    columns: int


@dataclass(frozen=True)
class FileInfo:
    """FileInfo, as the daemon shows it."""

    # bytes that aren't UTF-8 are shown as U+FFFD
    name: str
    type: Literal["file", "directory", "link", "fifo", "socket", "device"]
    size: int
    # octal
    mode: str
    modified_at: datetime
    # the target of a link
    link: Optional[str]
    # the name's bytes, when they aren't UTF-8
    name_base64: Optional[str] = None

    @classmethod
    def _from(cls, value: Any) -> FileInfo:
        get = value.get
        return cls(
            name=get("name"),
            type=get("type"),
            size=get("size"),
            mode=get("mode"),
            modified_at=_time(get("modified_at")),
            link=get("link"),
            name_base64=get("name_base64"),
        )


@dataclass(frozen=True)
class Change:
    """Change, as the daemon shows it."""

    # from /workspace on; begins with /env/ for files of the environment; bytes that aren't UTF-8 are shown as U+FFFD
    path: str
    # A: added, M: modified, D: deleted, T: another type of file
    change: Literal["A", "M", "D", "T"]
    type: Literal["file", "directory", "link", "fifo", "socket", "device"]
    # of a file; else null
    size_before: Optional[int]
    # of a file; else null
    size_after: Optional[int]
    # octal, where the mode differs
    mode_before: Optional[str] = None
    # octal, where the mode differs
    mode_after: Optional[str] = None

    @classmethod
    def _from(cls, value: Any) -> Change:
        get = value.get
        return cls(
            path=get("path"),
            change=get("change"),
            type=get("type"),
            size_before=get("size_before"),
            size_after=get("size_after"),
            mode_before=get("mode_before"),
            mode_after=get("mode_after"),
        )


class _ApplyWantedNeeded(TypedDict):
    # the workspace that gets the changes: id, name or context_id
    to: str


class ApplyWanted(_ApplyWantedNeeded, total=False):
    """ApplyWanted, as the daemon takes it."""

    # only these and what is below them; all changes when not given
    paths: Optional[Sequence[str]]
    # id, tag or version of a snapshot of the source: what changed since that one; the last one when not given
    snapshot: Optional[str]
    # only say what would be done
    dry_run: Optional[bool]


@dataclass(frozen=True)
class Applied:
    """Applied, as the daemon shows it."""

    # how many changes were applied
    applied: int
    # how many can't be
    conflicts: int
    # in order of paths
    changes: List[AppliedChange]

    @classmethod
    def _from(cls, value: Any) -> Applied:
        get = value.get
        return cls(
            applied=get("applied"),
            conflicts=get("conflicts"),
            changes=[AppliedChange._from(item) for item in get("changes") or ()],
        )


@dataclass(frozen=True)
class AppliedChange:
    """AppliedChange, as the daemon shows it."""

    # from /workspace on; bytes that aren't UTF-8 are shown as U+FFFD
    path: str
    # A: added, M: modified, D: deleted, T: another type of file
    change: Literal["A", "M", "D", "T"]
    type: Literal["file", "directory", "link", "fifo", "socket", "device"]
    # pending: nothing was applied; same: the target has it already; conflict: the target has neither what the source
    # had before nor what it has now; refused: not a file, a directory or a link
    result: Literal["applied", "pending", "same", "conflict", "refused"]
    # of conflict and refused; else null
    reason: Optional[str]
    # the path's bytes, when they aren't UTF-8
    path_base64: Optional[str] = None

    @classmethod
    def _from(cls, value: Any) -> AppliedChange:
        get = value.get
        return cls(
            path=get("path"),
            change=get("change"),
            type=get("type"),
            result=get("result"),
            reason=get("reason"),
            path_base64=get("path_base64"),
        )


@dataclass(frozen=True)
class Port:
    """A TCP port that listens in a workspace."""

    port: int
    # inside; a port of another address than loopback or all can't be reached
    address: str

    @classmethod
    def _from(cls, value: Any) -> Port:
        get = value.get
        return cls(
            port=get("port"),
            address=get("address"),
        )


@dataclass(frozen=True)
class WorkspaceEvent:
    """A workspace has changed. warm: its sandbox is ready; cold: its sandbox has ended."""

    # counts up, also across restarts of the daemon
    id: int
    time: datetime
    # its id; empty: the event isn't about one
    workspace: str
    # of the workspace, template, token, case or tool
    name: Optional[str]
    # the name of the event
    type: Literal["workspace.created", "workspace.ready", "workspace.updated", "workspace.warm", "workspace.cold", "workspace.suspended", "workspace.resumed", "workspace.failed", "workspace.expired", "workspace.creating", "workspace.deleting"]
    # of workspace.failed, or why a removal was given up
    error: Optional[str] = None

    @classmethod
    def _from(cls, value: Any) -> WorkspaceEvent:
        get = value.get
        return cls(
            id=get("id"),
            time=_time(get("time")),
            workspace=get("workspace"),
            name=get("name"),
            type=get("type"),
            error=get("error"),
        )


@dataclass(frozen=True)
class WorkspaceDeletedEvent:
    """WorkspaceDeletedEvent, as the daemon shows it."""

    # counts up, also across restarts of the daemon
    id: int
    time: datetime
    # its id; empty: the event isn't about one
    workspace: str
    # of the workspace, template, token, case or tool
    name: Optional[str]
    # the name of the event
    type: Literal["workspace.deleted"]
    # why it was removed: a client asked, or its time to live is over
    reason: str

    @classmethod
    def _from(cls, value: Any) -> WorkspaceDeletedEvent:
        get = value.get
        return cls(
            id=get("id"),
            time=_time(get("time")),
            workspace=get("workspace"),
            name=get("name"),
            type=get("type"),
            reason=get("reason"),
        )


@dataclass(frozen=True)
class WorkspaceWarningEvent:
    """WorkspaceWarningEvent, as the daemon shows it."""

    # counts up, also across restarts of the daemon
    id: int
    time: datetime
    # its id; empty: the event isn't about one
    workspace: str
    # of the workspace, template, token, case or tool
    name: Optional[str]
    # the name of the event
    type: Literal["workspace.warning"]
    warning: str

    @classmethod
    def _from(cls, value: Any) -> WorkspaceWarningEvent:
        get = value.get
        return cls(
            id=get("id"),
            time=_time(get("time")),
            workspace=get("workspace"),
            name=get("name"),
            type=get("type"),
            warning=get("warning"),
        )


@dataclass(frozen=True)
class WorkspaceRepairedEvent:
    """WorkspaceRepairedEvent, as the daemon shows it."""

    # counts up, also across restarts of the daemon
    id: int
    time: datetime
    # its id; empty: the event isn't about one
    workspace: str
    # of the workspace, template, token, case or tool
    name: Optional[str]
    # the name of the event
    type: Literal["workspace.repaired"]
    # what was repaired
    done: str

    @classmethod
    def _from(cls, value: Any) -> WorkspaceRepairedEvent:
        get = value.get
        return cls(
            id=get("id"),
            time=_time(get("time")),
            workspace=get("workspace"),
            name=get("name"),
            type=get("type"),
            done=get("done"),
        )


@dataclass(frozen=True)
class WorkspaceDiskEvent:
    """A workspace has nearly reached its disk limit."""

    # counts up, also across restarts of the daemon
    id: int
    time: datetime
    # its id; empty: the event isn't about one
    workspace: str
    # of the workspace, template, token, case or tool
    name: Optional[str]
    # the name of the event
    type: Literal["workspace.disk_warning"]
    disk_usage_bytes: int
    disk_limit_bytes: int

    @classmethod
    def _from(cls, value: Any) -> WorkspaceDiskEvent:
        get = value.get
        return cls(
            id=get("id"),
            time=_time(get("time")),
            workspace=get("workspace"),
            name=get("name"),
            type=get("type"),
            disk_usage_bytes=get("disk_usage_bytes"),
            disk_limit_bytes=get("disk_limit_bytes"),
        )


@dataclass(frozen=True)
class WorkspaceArchiveEvent:
    """A workspace was archived, or made of an archive."""

    # counts up, also across restarts of the daemon
    id: int
    time: datetime
    # its id; empty: the event isn't about one
    workspace: str
    # of the workspace, template, token, case or tool
    name: Optional[str]
    # the name of the event
    type: Literal["workspace.archived", "workspace.restored"]
    # its name
    archive: str
    # of workspace.archived
    size_bytes: Optional[int] = None

    @classmethod
    def _from(cls, value: Any) -> WorkspaceArchiveEvent:
        get = value.get
        return cls(
            id=get("id"),
            time=_time(get("time")),
            workspace=get("workspace"),
            name=get("name"),
            type=get("type"),
            archive=get("archive"),
            size_bytes=get("size_bytes"),
        )


@dataclass(frozen=True)
class WorkspaceSnapshotEvent:
    """WorkspaceSnapshotEvent, as the daemon shows it."""

    # counts up, also across restarts of the daemon
    id: int
    time: datetime
    # its id; empty: the event isn't about one
    workspace: str
    # of the workspace, template, token, case or tool
    name: Optional[str]
    # the name of the event
    type: Literal["workspace.snapshot"]
    # id of the new snapshot
    snapshot: str
    version: int
    tag: Optional[str] = None

    @classmethod
    def _from(cls, value: Any) -> WorkspaceSnapshotEvent:
        get = value.get
        return cls(
            id=get("id"),
            time=_time(get("time")),
            workspace=get("workspace"),
            name=get("name"),
            type=get("type"),
            snapshot=get("snapshot"),
            version=get("version"),
            tag=get("tag"),
        )


@dataclass(frozen=True)
class WorkspaceRollbackEvent:
    """WorkspaceRollbackEvent, as the daemon shows it."""

    # counts up, also across restarts of the daemon
    id: int
    time: datetime
    # its id; empty: the event isn't about one
    workspace: str
    # of the workspace, template, token, case or tool
    name: Optional[str]
    # the name of the event
    type: Literal["workspace.rollback"]
    # id of the snapshot whose state it has now
    snapshot: str
    # id of the snapshot of the state that it left
    kept: Optional[str] = None

    @classmethod
    def _from(cls, value: Any) -> WorkspaceRollbackEvent:
        get = value.get
        return cls(
            id=get("id"),
            time=_time(get("time")),
            workspace=get("workspace"),
            name=get("name"),
            type=get("type"),
            snapshot=get("snapshot"),
            kept=get("kept"),
        )


@dataclass(frozen=True)
class WorkspaceAppliedEvent:
    """A workspace has got changes of another one."""

    # counts up, also across restarts of the daemon
    id: int
    time: datetime
    # its id; empty: the event isn't about one
    workspace: str
    # of the workspace, template, token, case or tool
    name: Optional[str]
    # the name of the event
    type: Literal["workspace.applied"]
    # id of the other one
    from_: str
    # how many
    changes: int

    @classmethod
    def _from(cls, value: Any) -> WorkspaceAppliedEvent:
        get = value.get
        return cls(
            id=get("id"),
            time=_time(get("time")),
            workspace=get("workspace"),
            name=get("name"),
            type=get("type"),
            from_=get("from"),
            changes=get("changes"),
        )


@dataclass(frozen=True)
class WorkspacePackagesEvent:
    """WorkspacePackagesEvent, as the daemon shows it."""

    # counts up, also across restarts of the daemon
    id: int
    time: datetime
    # its id; empty: the event isn't about one
    workspace: str
    # of the workspace, template, token, case or tool
    name: Optional[str]
    # the name of the event
    type: Literal["workspace.installed", "workspace.uninstalled"]
    # the new environment of the workspace
    environment: str

    @classmethod
    def _from(cls, value: Any) -> WorkspacePackagesEvent:
        get = value.get
        return cls(
            id=get("id"),
            time=_time(get("time")),
            workspace=get("workspace"),
            name=get("name"),
            type=get("type"),
            environment=get("environment"),
        )


@dataclass(frozen=True)
class SnapshotEvent:
    """A snapshot was sent to the blob store, or fetched."""

    # counts up, also across restarts of the daemon
    id: int
    time: datetime
    # its id; empty: the event isn't about one
    workspace: str
    # of the workspace, template, token, case or tool
    name: Optional[str]
    # the name of the event
    type: Literal["snapshot.pushed", "snapshot.pulled"]
    # its id
    snapshot: str
    # of snapshot.pushed
    sent_bytes: Optional[int] = None

    @classmethod
    def _from(cls, value: Any) -> SnapshotEvent:
        get = value.get
        return cls(
            id=get("id"),
            time=_time(get("time")),
            workspace=get("workspace"),
            name=get("name"),
            type=get("type"),
            snapshot=get("snapshot"),
            sent_bytes=get("sent_bytes"),
        )


@dataclass(frozen=True)
class ExecStartedEvent:
    """A background exec runs."""

    # counts up, also across restarts of the daemon
    id: int
    time: datetime
    # its id; empty: the event isn't about one
    workspace: str
    # of the workspace, template, token, case or tool
    name: Optional[str]
    # the name of the event
    type: Literal["exec.started"]
    # its id
    exec: str

    @classmethod
    def _from(cls, value: Any) -> ExecStartedEvent:
        get = value.get
        return cls(
            id=get("id"),
            time=_time(get("time")),
            workspace=get("workspace"),
            name=get("name"),
            type=get("type"),
            exec=get("exec"),
        )


@dataclass(frozen=True)
class ExecEndedEvent:
    """ExecEndedEvent, as the daemon shows it."""

    # counts up, also across restarts of the daemon
    id: int
    time: datetime
    # its id; empty: the event isn't about one
    workspace: str
    # of the workspace, template, token, case or tool
    name: Optional[str]
    # the name of the event
    type: Literal["exec.ended"]
    # its id
    exec: str
    reason: Literal["exited", "signaled", "timeout", "cpu_limit", "memory_limit", "output_limit", "disk_limit", "canceled", "denied", "daemon_lost"]
    exit_code: int

    @classmethod
    def _from(cls, value: Any) -> ExecEndedEvent:
        get = value.get
        return cls(
            id=get("id"),
            time=_time(get("time")),
            workspace=get("workspace"),
            name=get("name"),
            type=get("type"),
            exec=get("exec"),
            reason=get("reason"),
            exit_code=get("exit_code"),
        )


@dataclass(frozen=True)
class ExecChangedEvent:
    """Files that an exec was judged by were changed before it ended: they are denied now."""

    # counts up, also across restarts of the daemon
    id: int
    time: datetime
    # its id; empty: the event isn't about one
    workspace: str
    # of the workspace, template, token, case or tool
    name: Optional[str]
    # the name of the event
    type: Literal["exec.changed"]
    # its id
    exec: str
    # what is denied
    reason: str

    @classmethod
    def _from(cls, value: Any) -> ExecChangedEvent:
        get = value.get
        return cls(
            id=get("id"),
            time=_time(get("time")),
            workspace=get("workspace"),
            name=get("name"),
            type=get("type"),
            exec=get("exec"),
            reason=get("reason"),
        )


@dataclass(frozen=True)
class ApprovalEvent:
    """ApprovalEvent, as the daemon shows it."""

    # counts up, also across restarts of the daemon
    id: int
    time: datetime
    # its id; empty: the event isn't about one
    workspace: str
    # of the workspace, template, token, case or tool
    name: Optional[str]
    # the name of the event
    type: Literal["approval.requested", "approval.approved", "approval.denied", "approval.expired"]
    # its id
    approval: str
    # id of the exec that waits for it
    exec: str
    # the principal that answered; null: none has
    by: Optional[str]
    # of the answer, or why it has expired
    note: Optional[str]

    @classmethod
    def _from(cls, value: Any) -> ApprovalEvent:
        get = value.get
        return cls(
            id=get("id"),
            time=_time(get("time")),
            workspace=get("workspace"),
            name=get("name"),
            type=get("type"),
            approval=get("approval"),
            exec=get("exec"),
            by=get("by"),
            note=get("note"),
        )


@dataclass(frozen=True)
class WebhookEvent:
    """A webhook about an approval was given up."""

    # counts up, also across restarts of the daemon
    id: int
    time: datetime
    # its id; empty: the event isn't about one
    workspace: str
    # of the workspace, template, token, case or tool
    name: Optional[str]
    # the name of the event
    type: Literal["webhook.failed"]
    # its id
    approval: str
    error: str

    @classmethod
    def _from(cls, value: Any) -> WebhookEvent:
        get = value.get
        return cls(
            id=get("id"),
            time=_time(get("time")),
            workspace=get("workspace"),
            name=get("name"),
            type=get("type"),
            approval=get("approval"),
            error=get("error"),
        )


@dataclass(frozen=True)
class TokenEvent:
    """TokenEvent, as the daemon shows it."""

    # counts up, also across restarts of the daemon
    id: int
    time: datetime
    # its id; empty: the event isn't about one
    workspace: str
    # of the workspace, template, token, case or tool
    name: Optional[str]
    # the name of the event
    type: Literal["token.created", "token.removed"]
    # its id
    token: str

    @classmethod
    def _from(cls, value: Any) -> TokenEvent:
        get = value.get
        return cls(
            id=get("id"),
            time=_time(get("time")),
            workspace=get("workspace"),
            name=get("name"),
            type=get("type"),
            token=get("token"),
        )


@dataclass(frozen=True)
class TemplateEvent:
    """TemplateEvent, as the daemon shows it."""

    # counts up, also across restarts of the daemon
    id: int
    time: datetime
    # its id; empty: the event isn't about one
    workspace: str
    # of the workspace, template, token, case or tool
    name: Optional[str]
    # the name of the event
    type: Literal["template.added", "template.removed", "template.built"]

    @classmethod
    def _from(cls, value: Any) -> TemplateEvent:
        get = value.get
        return cls(
            id=get("id"),
            time=_time(get("time")),
            workspace=get("workspace"),
            name=get("name"),
            type=get("type"),
        )


@dataclass(frozen=True)
class CaseEvent:
    """An eval case; `workspace` is the one that is prepared."""

    # counts up, also across restarts of the daemon
    id: int
    time: datetime
    # its id; empty: the event isn't about one
    workspace: str
    # of the workspace, template, token, case or tool
    name: Optional[str]
    # the name of the event
    type: Literal["case.created", "case.preparing", "case.ready", "case.failed", "case.removed"]
    # its id
    case: str
    # of case.failed
    error: Optional[str] = None

    @classmethod
    def _from(cls, value: Any) -> CaseEvent:
        get = value.get
        return cls(
            id=get("id"),
            time=_time(get("time")),
            workspace=get("workspace"),
            name=get("name"),
            type=get("type"),
            case=get("case"),
            error=get("error"),
        )


@dataclass(frozen=True)
class CellEvent:
    """A cell of an eval case has a new state."""

    # counts up, also across restarts of the daemon
    id: int
    time: datetime
    # its id; empty: the event isn't about one
    workspace: str
    # of the workspace, template, token, case or tool
    name: Optional[str]
    # the name of the event
    type: Literal["cell.waiting", "cell.harness", "cell.grading", "cell.passed", "cell.failed", "cell.canceled"]
    # its id
    cell: str
    # id of its case
    case: str
    # which run of the case it is
    repeat: int
    # why it hasn't passed
    reason: Optional[str] = None

    @classmethod
    def _from(cls, value: Any) -> CellEvent:
        get = value.get
        return cls(
            id=get("id"),
            time=_time(get("time")),
            workspace=get("workspace"),
            name=get("name"),
            type=get("type"),
            cell=get("cell"),
            case=get("case"),
            repeat=get("repeat"),
            reason=get("reason"),
        )


@dataclass(frozen=True)
class AgentEvent:
    """AgentEvent, as the daemon shows it."""

    # counts up, also across restarts of the daemon
    id: int
    time: datetime
    # its id; empty: the event isn't about one
    workspace: str
    # of the workspace, template, token, case or tool
    name: Optional[str]
    # the name of the event
    type: Literal["agent.added", "agent.removed"]

    @classmethod
    def _from(cls, value: Any) -> AgentEvent:
        get = value.get
        return cls(
            id=get("id"),
            time=_time(get("time")),
            workspace=get("workspace"),
            name=get("name"),
            type=get("type"),
        )


@dataclass(frozen=True)
class TaskEvent:
    """A task of an A2A agent, whose name is `name`."""

    # counts up, also across restarts of the daemon
    id: int
    time: datetime
    # its id; empty: the event isn't about one
    workspace: str
    # of the workspace, template, token, case or tool
    name: Optional[str]
    # the name of the event
    type: Literal["task.state"]
    # its id
    task: str
    # its context id
    context: str
    # submitted, working, input-required, completed, failed, canceled, rejected
    state: str

    @classmethod
    def _from(cls, value: Any) -> TaskEvent:
        get = value.get
        return cls(
            id=get("id"),
            time=_time(get("time")),
            workspace=get("workspace"),
            name=get("name"),
            type=get("type"),
            task=get("task"),
            context=get("context"),
            state=get("state"),
        )


@dataclass(frozen=True)
class TaskPushFailedEvent:
    """A push notification of a task was given up; the next is told when one was taken again."""

    # counts up, also across restarts of the daemon
    id: int
    time: datetime
    # its id; empty: the event isn't about one
    workspace: str
    # of the workspace, template, token, case or tool
    name: Optional[str]
    # the name of the event
    type: Literal["task.push_failed"]
    # its id
    task: str
    # its context id
    context: str
    # id of the push notification config
    config: str
    # of its URL
    host: str
    error: str

    @classmethod
    def _from(cls, value: Any) -> TaskPushFailedEvent:
        get = value.get
        return cls(
            id=get("id"),
            time=_time(get("time")),
            workspace=get("workspace"),
            name=get("name"),
            type=get("type"),
            task=get("task"),
            context=get("context"),
            config=get("config"),
            host=get("host"),
            error=get("error"),
        )


@dataclass(frozen=True)
class ToolEvent:
    """A version of a tool is in another state."""

    # counts up, also across restarts of the daemon
    id: int
    time: datetime
    # its id; empty: the event isn't about one
    workspace: str
    # of the workspace, template, token, case or tool
    name: Optional[str]
    # the name of the event
    type: Literal["tool.state"]
    # id of the version
    tool: str
    version: int
    state: Literal["dormant", "creating", "installing", "testing", "active", "cleanup"]
    # why it is dormant, else empty
    error: str

    @classmethod
    def _from(cls, value: Any) -> ToolEvent:
        get = value.get
        return cls(
            id=get("id"),
            time=_time(get("time")),
            workspace=get("workspace"),
            name=get("name"),
            type=get("type"),
            tool=get("tool"),
            version=get("version"),
            state=get("state"),
            error=get("error"),
        )


@dataclass(frozen=True)
class DeploymentEvent:
    """The status of a deployment has changed."""

    # counts up, also across restarts of the daemon
    id: int
    time: datetime
    # its id; empty: the event isn't about one
    workspace: str
    # of the workspace, template, token, case or tool
    name: Optional[str]
    # the name of the event
    type: Literal["deployment.status"]
    # its id
    deployment: str
    # downloading, building_env, installing_deps, starting, healthy, unhealthy, failed or stopped
    status: str
    version: str
    revision: int
    # why, or empty
    error: str

    @classmethod
    def _from(cls, value: Any) -> DeploymentEvent:
        get = value.get
        return cls(
            id=get("id"),
            time=_time(get("time")),
            workspace=get("workspace"),
            name=get("name"),
            type=get("type"),
            deployment=get("deployment"),
            status=get("status"),
            version=get("version"),
            revision=get("revision"),
            error=get("error"),
        )


@dataclass(frozen=True)
class EnvironmentProgressEvent:
    """An environment is being built for a workspace."""

    # counts up, also across restarts of the daemon
    id: int
    time: datetime
    # its id; empty: the event isn't about one
    workspace: str
    # of the workspace, template, token, case or tool
    name: Optional[str]
    # the name of the event
    type: Literal["environment.progress"]
    # resolving, installing_deps, …
    stage: str
    packages_done: int
    # 0: not known yet
    packages: int
    # that were downloaded
    bytes: int
    # of the request that waits
    request_id: str

    @classmethod
    def _from(cls, value: Any) -> EnvironmentProgressEvent:
        get = value.get
        return cls(
            id=get("id"),
            time=_time(get("time")),
            workspace=get("workspace"),
            name=get("name"),
            type=get("type"),
            stage=get("stage"),
            packages_done=get("packages_done"),
            packages=get("packages"),
            bytes=get("bytes"),
            request_id=get("request_id"),
        )


@dataclass(frozen=True)
class MissedEvent:
    """Events that are not kept any more: the client was away, or too slow."""

    # the name of the event
    type: Literal["missed"]
    # the first event that was missed
    from_: int
    # the last one
    to: int

    @classmethod
    def _from(cls, value: Any) -> MissedEvent:
        get = value.get
        return cls(
            type=get("type"),
            from_=get("from"),
            to=get("to"),
        )


@dataclass(frozen=True)
class AuditLine:
    """A line of the audit log."""

    # counts up without gaps
    seq: int
    time: datetime
    # such as exec.start, exec.end, file.write, policy.refused
    type: str
    # who asked: `uid 1000`, `token ID`, `system`
    principal: str
    # its id
    workspace: Optional[str]
    workspace_name: Optional[str]
    request_id: Optional[str]
    # how the request came in: rest, cli (carrel), core
    door: str
    # members of that type
    data: Dict[str, Any]
    # the hash of the line before
    prev: str
    # of this line and prev
    hash: str

    @classmethod
    def _from(cls, value: Any) -> AuditLine:
        get = value.get
        return cls(
            seq=get("seq"),
            time=_time(get("time")),
            type=get("type"),
            principal=get("principal"),
            workspace=get("workspace"),
            workspace_name=get("workspace_name"),
            request_id=get("request_id"),
            door=get("door"),
            data=get("data"),
            prev=get("prev"),
            hash=get("hash"),
        )


@dataclass(frozen=True)
class Problem:
    """RFC 9457."""

    # about:blank: the code says more
    type: str
    # of the status
    title: str
    # as in the head of the response
    status: int
    # what went wrong; stable
    code: Literal["invalid", "not_found", "conflict", "denied", "limit", "disk_full", "unavailable", "corrupt", "failed", "command_not_found", "not_executable", "canceled", "unauthenticated", "approval_required"]
    # what failed, on which object, and why: for people
    detail: str
    # how to correct it: often a route
    hint: Optional[str]
    # as in the logs of the daemon
    request_id: str
    # of a command that wasn't started: 126
    exit_code: Optional[int] = None
    # of denied and approval_required: how the policy judged it
    trail: Optional[List[PolicyStep]] = None
    # of changes that are conflicts
    changes: Optional[List[AppliedChange]] = None

    @classmethod
    def _from(cls, value: Any) -> Problem:
        get = value.get
        return cls(
            type=get("type"),
            title=get("title"),
            status=get("status"),
            code=get("code"),
            detail=get("detail"),
            hint=get("hint"),
            request_id=get("request_id"),
            exit_code=get("exit_code"),
            trail=[PolicyStep._from(item) for item in get("trail") or ()] if get("trail") is not None else None,
            changes=[AppliedChange._from(item) for item in get("changes") or ()] if get("changes") is not None else None,
        )


Document = Dict[str, Any]


WorkspaceWanted = TypedDict(
    "WorkspaceWanted",
    {
        # the workspace is removed after this time, a context of an agent when it was not used for so long
        "ttl": Optional[Union[str, float]],
        # ttl in milliseconds, instead of it
        "ttl_ms": Optional[int],
        # generated when not given
        "name": Optional[str],
        # its values hold where none are given
        "template": Optional[str],
        # the workspace is suspended after this time without activity
        "idle_timeout": Optional[Union[str, float]],
        # idle_timeout in milliseconds, instead of it
        "idle_timeout_ms": Optional[int],
        # context_id also names the workspace, and, as agent and namespace, stays as it is; those that begin with
        # carrel. are of services
        "labels": Optional[Mapping[str, str]],
        # the name of an existing environment
        "environment": Optional[str],
        # a version, or the packages of the environment
        "python": Optional[Union[Python, str]],
        # a version, or the packages of an environment of Node
        "node": Optional[Union[Node, str]],
        # variables of every exec
        "env": Optional[Mapping[str, str]],
        "limits": Optional[LimitsWanted],
        "network": Optional[NetworkWanted],
        # with scripts/ data/ repos/ output/, .venv and .context.json
        "context": Optional[bool],
        # its processes may trace each other: gdb, strace, LeakSanitizer
        "ptrace": Optional[bool],
        # where its files are seen inside: at /workspace, or at / (root)
        "view": Optional[Literal["workspace", "root"]],
        # directory of the host that is /workspace; needs a descriptor, which `carrel create --dir` passes
        "dir": Optional[str],
        # SOURCE:TARGET[:ro] of the host; needs descriptors, which `carrel create -v` passes
        "mounts": Optional[Sequence[str]],
        # NAME:PATH[:ro]: shared trees
        "attach": Optional[Sequence[str]],
        # a snapshot (its id) or a workspace: the new one begins with its files, environment, limits, labels and
        # variables
        "from": Optional[str],
        # what commands and files may be used: a settings.json, whose rules hold besides those of the operator and the
        # template
        "settings": Optional[Mapping[str, Any]],
        # what may be installed, reached and run: a sources.json, which holds besides those of the operator and the
        # template
        "sources": Optional[Mapping[str, Any]],
    },
    total=False,
)


# The data of an event of an exec: waiting and learned where they apply; start, stdout and stderr as they come; then
# exit. One that is denied has no start.
ExecEvent = Union[
    ExecWaitingEvent,
    ExecLearnedEvent,
    ExecStartEvent,
    ExecOutputEvent,
    ExecExitEvent,
    ExecErrorEvent,
]
_EXECEVENT = {
    "waiting": ExecWaitingEvent,
    "learned": ExecLearnedEvent,
    "start": ExecStartEvent,
    "stdout": ExecOutputEvent,
    "stderr": ExecOutputEvent,
    "exit": ExecExitEvent,
    "error": ExecErrorEvent,
}


def read_exec_event(value: Any) -> ExecEvent:
    one: Any = _EXECEVENT.get(value.get("type"), ExecWaitingEvent)
    made: ExecEvent = one._from(value)
    return made


# The data of an event of the output of a background exec.
OutputEvent = Union[
    ExecOutputEvent,
    OutputDroppedEvent,
    OutputExitEvent,
]
_OUTPUTEVENT = {
    "stdout": ExecOutputEvent,
    "stderr": ExecOutputEvent,
    "dropped": OutputDroppedEvent,
    "exit": OutputExitEvent,
}


def read_output_event(value: Any) -> OutputEvent:
    one: Any = _OUTPUTEVENT.get(value.get("type"), ExecOutputEvent)
    made: OutputEvent = one._from(value)
    return made


# The data of an event. New types may come: ignore what you don't know.
Event = Union[
    WorkspaceEvent,
    WorkspaceDeletedEvent,
    WorkspaceWarningEvent,
    WorkspaceRepairedEvent,
    WorkspaceDiskEvent,
    WorkspaceArchiveEvent,
    WorkspaceSnapshotEvent,
    WorkspaceRollbackEvent,
    WorkspaceAppliedEvent,
    WorkspacePackagesEvent,
    SnapshotEvent,
    ExecStartedEvent,
    ExecEndedEvent,
    ExecChangedEvent,
    ApprovalEvent,
    WebhookEvent,
    TokenEvent,
    TemplateEvent,
    CaseEvent,
    CellEvent,
    AgentEvent,
    TaskEvent,
    TaskPushFailedEvent,
    ToolEvent,
    DeploymentEvent,
    EnvironmentProgressEvent,
    MissedEvent,
]
_EVENT = {
    "workspace.created": WorkspaceEvent,
    "workspace.ready": WorkspaceEvent,
    "workspace.updated": WorkspaceEvent,
    "workspace.warm": WorkspaceEvent,
    "workspace.cold": WorkspaceEvent,
    "workspace.suspended": WorkspaceEvent,
    "workspace.resumed": WorkspaceEvent,
    "workspace.failed": WorkspaceEvent,
    "workspace.expired": WorkspaceEvent,
    "workspace.creating": WorkspaceEvent,
    "workspace.deleting": WorkspaceEvent,
    "workspace.deleted": WorkspaceDeletedEvent,
    "workspace.warning": WorkspaceWarningEvent,
    "workspace.repaired": WorkspaceRepairedEvent,
    "workspace.disk_warning": WorkspaceDiskEvent,
    "workspace.archived": WorkspaceArchiveEvent,
    "workspace.restored": WorkspaceArchiveEvent,
    "workspace.snapshot": WorkspaceSnapshotEvent,
    "workspace.rollback": WorkspaceRollbackEvent,
    "workspace.applied": WorkspaceAppliedEvent,
    "workspace.installed": WorkspacePackagesEvent,
    "workspace.uninstalled": WorkspacePackagesEvent,
    "snapshot.pushed": SnapshotEvent,
    "snapshot.pulled": SnapshotEvent,
    "exec.started": ExecStartedEvent,
    "exec.ended": ExecEndedEvent,
    "exec.changed": ExecChangedEvent,
    "approval.requested": ApprovalEvent,
    "approval.approved": ApprovalEvent,
    "approval.denied": ApprovalEvent,
    "approval.expired": ApprovalEvent,
    "webhook.failed": WebhookEvent,
    "token.created": TokenEvent,
    "token.removed": TokenEvent,
    "template.added": TemplateEvent,
    "template.removed": TemplateEvent,
    "template.built": TemplateEvent,
    "case.created": CaseEvent,
    "case.preparing": CaseEvent,
    "case.ready": CaseEvent,
    "case.failed": CaseEvent,
    "case.removed": CaseEvent,
    "cell.waiting": CellEvent,
    "cell.harness": CellEvent,
    "cell.grading": CellEvent,
    "cell.passed": CellEvent,
    "cell.failed": CellEvent,
    "cell.canceled": CellEvent,
    "agent.added": AgentEvent,
    "agent.removed": AgentEvent,
    "task.state": TaskEvent,
    "task.push_failed": TaskPushFailedEvent,
    "tool.state": ToolEvent,
    "deployment.status": DeploymentEvent,
    "environment.progress": EnvironmentProgressEvent,
    "missed": MissedEvent,
}


def read_event(value: Any) -> Event:
    one: Any = _EVENT.get(value.get("type"), WorkspaceEvent)
    made: Event = one._from(value)
    return made
