"""What the synchronous and the asynchronous client have in common. Nothing here reads or writes a connection."""
from __future__ import annotations

import base64
import json
import os
import random
import uuid
from dataclasses import dataclass, field
from typing import IO, Any, Dict, Generator, Iterable, List, Mapping, Optional, Sequence, Tuple, Union
from urllib.parse import quote, urlencode

import httpx

from . import errors, types
from ._operations import Operation

Command = Union[str, Sequence[str]]
Duration = Union[int, float, str]
Size = Union[int, str]
PathLike = Union[str, "os.PathLike[str]"]
Content = Union[str, bytes, IO[bytes]]

PIECE = 65536
UPLOAD_PIECE = 1 << 18
EVENTS = "text/event-stream"
IDEMPOTENT = ("GET", "HEAD", "PUT", "DELETE")
BACKOFF_LEAST, BACKOFF_MOST = 0.1, 5.0


# ---- requests ----

@dataclass
class Request:
    """One request, as it is sent, and whether it may be sent twice."""

    method: str
    url: str
    headers: Dict[str, str] = field(default_factory=dict)
    content: Any = None
    timeout: Optional[httpx.Timeout] = None  # None: that of the client
    is_safe: bool = False


def path_of(operation: Operation, **names: str) -> str:
    path = operation.path
    for name, value in names.items():
        if name != "path":
            path = path.replace("{" + name + "}", quote(str(value), safe=""))
    if "path" in names:
        path = path.replace("{path}", quote_path(names["path"]))
    return path


def quote_path(path: str) -> str:
    """Dots are encoded where they are a whole segment: an HTTP client would resolve them before the daemon sees them."""
    parts = os.fspath(path).split("/")
    return "/".join(part.replace(".", "%2E") if part in (".", "..") else quote(os.fsencode(part), safe="") for part in parts)


def query_of(values: Mapping[str, Any]) -> str:
    """None and False are left out; a list is repeated."""
    pairs: List[Tuple[str, str]] = []
    for name, value in values.items():
        if value is None or value is False:
            continue
        if isinstance(value, (list, tuple)):
            pairs += [(name, str(one)) for one in value]
        else:
            pairs.append((name, "1" if value is True else str(value)))
    return "?" + urlencode(pairs) if pairs else ""


def request_of(operation: Operation, names: Mapping[str, str], *, query: Optional[Mapping[str, Any]] = None,
               body: Optional[Mapping[str, Any]] = None, content: Any = None, headers: Optional[Mapping[str, str]] = None,
               key: Optional[str] = None, accept: str = "application/json", nulls: Sequence[str] = ()) -> Request:
    """What is None in the body is left out, but for `nulls`. A request with a key may be sent again; so may one that only reads or replaces."""
    request = Request(operation.method, path_of(operation, **names) + (query_of(query) if query else ""))
    request.headers["Accept"] = accept
    if body is not None:
        given = {name: value for name, value in body.items() if value is not None}
        request.content = json.dumps({**given, **dict.fromkeys(nulls)}).encode()
        request.headers["Content-Type"] = "application/json"
    elif content is not None:
        request.content = content
        request.headers["Content-Type"] = "application/octet-stream"
    if key and operation.keyed:
        request.headers["Idempotency-Key"] = key
    if headers:
        request.headers.update(headers)
    is_whole = content is None or isinstance(content, bytes)
    request.is_safe = is_whole and (operation.method in IDEMPOTENT or "Idempotency-Key" in request.headers)
    return request


def new_key() -> str:
    return uuid.uuid4().hex


def milliseconds(value: Optional[Duration]) -> Dict[str, Any]:
    """Seconds, or text such as "30s": the fields `timeout` or `timeout_ms`."""
    return duration("timeout", value)


def duration(name: str, value: Optional[Duration]) -> Dict[str, Any]:
    if value is None:
        return {}
    if isinstance(value, str):
        return {name: value}
    return {f"{name}_ms": max(1, round(value * 1000))}


def command_fields(command: Command) -> Dict[str, Any]:
    """Text is for the shell, a list is a program and its arguments."""
    return {"command": command} if isinstance(command, str) else {"argv": [os.fspath(word) for word in command]}


def show_command(command: Command) -> str:
    text = command if isinstance(command, str) else " ".join(command)
    return repr(text if len(text) <= 80 else text[:77] + "...")


def exec_body(command: Command, *, cwd: Optional[str], env: Optional[Mapping[str, str]], timeout: Optional[Duration],
              stdin: Union[str, bytes, None] = None, cpu_time: Optional[Duration] = None, output: Optional[Size] = None,
              **more: Any) -> Dict[str, Any]:
    limits = {**duration("cpu_time", cpu_time), **({"output": output} if output is not None else {})}
    data = stdin.encode() if isinstance(stdin, str) else stdin
    return {**command_fields(command), **milliseconds(timeout), "cwd": cwd, "env": dict(env) if env else None,
            "stdin": {"base64": base64.b64encode(data).decode()} if data is not None else None, "limits": limits or None,
            **{name: value for name, value in more.items() if value is not False}}


def packages_of(python: Optional[Union[str, Mapping[str, Any]]], pip: Union[str, Sequence[str], None],
                requirements: Optional[str] = None) -> Union[str, Dict[str, Any], None]:
    """The member `python` or `node` of a new workspace: a version, or a version with packages."""
    packages = [pip] if isinstance(pip, str) else list(pip or ())
    if not packages and requirements is None:
        return dict(python) if isinstance(python, Mapping) else python
    wanted: Dict[str, Any] = dict(python) if isinstance(python, Mapping) else {"version": python} if python else {}
    if packages:
        wanted["packages"] = [*wanted.get("packages", ()), *packages]
    if requirements is not None:
        wanted["requirements"] = requirements
    return wanted


# ---- answers ----

def problem_of(status: int, content: bytes) -> errors.ApiError:
    try:
        problem = json.loads(content)
    except ValueError:
        problem = None
    if not isinstance(problem, dict):
        problem = {"detail": f"HTTP status {status}: {content[:200].decode(errors='replace')}"}
    return errors.from_problem(status, problem)


def delay_of(attempt: int, retry_after: Optional[str] = None) -> float:
    """Seconds until the next attempt, growing, and different for clients that failed together."""
    if retry_after and retry_after.isdigit():
        return min(float(retry_after), BACKOFF_MOST)
    return float(min(BACKOFF_LEAST * 2 ** attempt, BACKOFF_MOST) * random.uniform(0.5, 1.0))


def _decoded(text: str, is_base64: bool) -> bytes:
    return base64.b64decode(text) if is_base64 else text.encode()


@dataclass(frozen=True)
class Result(types.Result):
    """How a command ended: `exit_code`, `reason`, `stdout`, `stderr`, and what it used.

    `stdout` and `stderr` are text; bytes that are not UTF-8 are shown as U+FFFD there. `stdout_bytes` and `stderr_bytes` are
    as the command wrote them."""

    _bytes: Optional[Tuple[bytes, bytes]] = field(default=None, repr=False)

    @classmethod
    def _from(cls, value: Any) -> Result:
        return cls.joined(value)

    @classmethod
    def joined(cls, value: Any, output: Optional[Tuple[bytes, bytes]] = None) -> Result:
        """Of a result object; `output`: what was streamed before."""
        value = dict(value)
        if output is None and value.get("encoding") == "base64":
            output = _decoded(value["stdout"], True), _decoded(value["stderr"], True)
        if output is not None:
            value["stdout"], value["stderr"] = (data.decode(errors="replace") for data in output)
        names = cls.__dataclass_fields__
        return cls(**{name: value.get(name) for name in names if name != "_bytes"}, _bytes=output)

    @property
    def ok(self) -> bool:
        """The command exited with 0."""
        return self.exit_code == 0

    @property
    def stdout_bytes(self) -> bytes:
        return self._bytes[0] if self._bytes else self.stdout.encode()

    @property
    def stderr_bytes(self) -> bytes:
        return self._bytes[1] if self._bytes else self.stderr.encode()

    def check(self, command: str = "the command") -> Result:
        """Itself; raises `CommandFailed` unless the command exited with 0."""
        if self.exit_code != 0:
            raise errors.CommandFailed(self, command)
        return self


@dataclass(frozen=True)
class Output:
    """A piece of output of a command."""

    stream: str  # "stdout" or "stderr"
    data: bytes

    @property
    def text(self) -> str:
        return self.data.decode(errors="replace")


@dataclass(frozen=True)
class ServerEvent:
    """A server-sent event."""

    event: str
    data: str
    id: Optional[str]

    def json(self) -> Any:
        return json.loads(self.data)


class EventReader:
    """Takes the bytes of a stream of server-sent events, gives the events. `last_id` is where to go on after a loss."""

    def __init__(self, last_id: Optional[str] = None) -> None:
        self.last_id = last_id
        self._rest = b""
        self._event = ""
        self._data: List[str] = []

    def feed(self, piece: bytes) -> Generator[ServerEvent, None, None]:
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            name, _, value = line.rstrip(b"\r").decode(errors="replace").partition(":")
            value = value[1:] if value.startswith(" ") else value
            if name == "event":
                self._event = value
            elif name == "data":
                self._data.append(value)
            elif name == "id":
                self.last_id = value
            elif not name and not value and line in (b"", b"\r"):
                if self._data:
                    yield ServerEvent(self._event or "message", "\n".join(self._data), self.last_id)
                self._event, self._data = "", []


@dataclass
class ExecEvents:
    """What the events of an exec have said so far."""

    id: str = ""
    approval: Optional[str] = None  # that the command waits for, or waited for
    learned: Optional[Dict[str, Any]] = None
    exit: Optional[Dict[str, Any]] = None

    def take(self, event: ServerEvent) -> Optional[Output]:
        value = event.json()
        if event.event in ("stdout", "stderr"):
            return Output(event.event, _decoded(value["data"], value.get("encoding") == "base64"))
        if event.event == "error":
            raise errors.from_problem(0, value)
        if event.event in ("start", "waiting"):
            self.id = value["id"]
        if event.event == "waiting":
            self.approval = value.get("approval")
        elif event.event == "learned":
            self.learned = value
        elif event.event == "exit":
            self.exit = value
        return None


def lines_of(pieces: Iterable[bytes], rest: List[bytes]) -> Generator[bytes, None, None]:
    """Whole lines of pieces; `rest` keeps what is not ended by a newline."""
    for piece in pieces:
        *lines, last = (b"".join(rest) + piece).split(b"\n")
        rest[:] = [last]
        yield from lines


def network_of(network: Any) -> Any:
    """A mode ("none", "open"), or the hosts of a list, or the object as it is."""
    if network is None or isinstance(network, Mapping):
        return network
    return {"mode": network} if isinstance(network, str) else {"mode": "list", "allow": list(network)}
