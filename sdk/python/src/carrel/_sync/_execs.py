# Written by sdk/generate-python: change _async/_execs.py instead.
"""Commands: as streams, in the background, and interactive."""
from __future__ import annotations

import json
from types import TracebackType
from typing import Any, Iterator, Dict, List, Mapping, Optional, Type, Union

import httpcore
import httpx

from .. import _core, _websocket, errors, types
from .. import _operations as op
from .._core import Output, Result
from . import _io
from ._http import Http

PROTOCOL = "carrel.exec.v1"
MESSAGE_MOST = 65536  # bytes of stdin in one message
PATIENCE_SECONDS = 90.0  # without a ping of the daemon
WAIT_SECONDS = 300.0  # of one request that waits for an exec


class Stream:
    """A command whose output is read as it comes: iterate over its `Output`; then `result` has how it ended.

    Leaving the `with` block before the end of the command cancels it."""

    def __init__(self, http: Http, workspace: str, body: Dict[str, Any]) -> None:
        self._http = http
        self._workspace = workspace
        self._body = body
        self._response: Optional[httpx.Response] = None
        self._seen = _core.ExecEvents()
        self._result: Optional[Result] = None
        self._pieces: Optional[Iterator[Output]] = None

    @property
    def id(self) -> str:
        """Of the exec, once it has begun; `Carrel.execs.get` shows it."""
        return self._seen.id

    @property
    def approval(self) -> Optional[str]:
        """The id of the approval that the command waits for, or has waited for."""
        return self._seen.approval

    @property
    def learned(self) -> Optional[Dict[str, Any]]:
        """With `policy="learn"`: the rules that would allow the command."""
        return self._seen.learned

    @property
    def result(self) -> Result:
        """How the command ended; its output is not in it. Only after the last `Output`."""
        if self._result is None:
            raise RuntimeError("the command has not ended yet: read all of the stream first")
        return self._result

    def __enter__(self) -> Stream:
        if self._response is None:
            request = _core.request_of(op.EXEC, {"id": self._workspace}, body=self._body, accept=_core.EVENTS)
            request.timeout = self._http.limit(None)
            self._response = self._http.open(request)
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        self.close()

    def close(self) -> None:
        """Cancels the command, if it has not ended."""
        if self._response is not None:
            self._response.close()

    def __iter__(self) -> Iterator[Output]:
        if self._pieces is None:
            self._pieces = self._read()
        return self._pieces

    def _read(self) -> Iterator[Output]:
        for output in self._events():
            if output is not None:
                yield output

    def _events(self) -> Iterator[Optional[Output]]:
        """The output of each event, or None for another event. At the end there is a result."""
        self.__enter__()
        assert self._response is not None
        reader = _core.EventReader()
        try:
            for piece in self._response.iter_bytes():
                for event in reader.feed(piece):
                    yield self._seen.take(event)
        except httpx.TransportError as problem:
            raise errors.ConnectionLost(f"the output of exec {self.id!r}: {problem}") from problem
        finally:
            self.close()
        if self._seen.exit is None:
            raise errors.ConnectionLost(f"the output of exec {self.id!r} ended before the command did")
        self._result = Result.joined(self._seen.exit)

    def collect(self, on_stdout: Any = None, on_stderr: Any = None, on_waiting: Any = None) -> Result:
        """Reads to the end, calls back with each piece as text, and returns the result with all output."""
        kept: Dict[str, List[bytes]] = {"stdout": [], "stderr": []}
        callbacks = {"stdout": on_stdout, "stderr": on_stderr}
        with self:
            for output in self._events():
                if output is None:
                    if self._seen.approval and on_waiting is not None:
                        told, on_waiting = on_waiting, None
                        _io.call(told, self._seen.approval)
                    continue
                kept[output.stream].append(output.data)
                if callbacks[output.stream] is not None:
                    _io.call(callbacks[output.stream], output.text)
        self._result = Result.joined(self._seen.exit, (b"".join(kept["stdout"]), b"".join(kept["stderr"])))
        return self._result


class Process:
    """A command in the background: it goes on without this program, and its output is kept.

    >>> with Carrel().create() as ws:
    ...     job = ws.start("for i in 1 2 3; do echo $i; done")
    ...     for output in job.logs():
    ...         print(output.text, end="")
    ...     print((job.wait()).exit_code)
    1
    2
    3
    0
    """

    def __init__(self, http: Http, info: types.Exec) -> None:
        self._http = http
        self.info = info

    @property
    def id(self) -> str:
        return self.info.id

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} {self.info.state}>"

    def refresh(self) -> types.Exec:
        """Its present state."""
        self.info = types.Exec._from(self._http.json(op.GET_EXEC, id=self.id))
        return self.info

    def wait(self, timeout: Optional[float] = None) -> types.Exec:
        """Waits until it has ended, at most `timeout` seconds (then `TimedOut`): `exit_code`, `reason`."""
        left = timeout
        while True:
            part = WAIT_SECONDS if left is None else min(left, WAIT_SECONDS)
            try:
                self.info = types.Exec._from(self._http.json(op.GET_EXEC, query={"wait": True}, timeout=part, id=self.id))
                return self.info
            except errors.TimedOut:
                left = None if left is None else left - part
                if left is not None and left <= 0:
                    raise errors.TimedOut(f"exec '{self.id}' has not ended within {timeout} s") from None

    def output(self, stream: str = "stdout", offset: int = 0) -> bytes:
        """What it has written so far, from that byte on."""
        response = self._http.response(op.GET_OUTPUT, query={"stream": stream, "offset": offset or None}, id=self.id)
        return response.content

    def logs(self, follow: bool = True) -> Iterator[Output]:
        """Its output from the beginning; with `follow` until it ends."""
        seen = _core.ExecEvents()
        request = _core.request_of(op.GET_OUTPUT, {"id": self.id}, query={"follow": follow}, accept=_core.EVENTS)
        request.timeout = self._http.limit(None)
        response = self._http.open(request)
        reader = _core.EventReader()
        try:
            for piece in response.iter_bytes():
                for event in reader.feed(piece):
                    output = seen.take(event)
                    if output is not None:
                        yield output
        except httpx.TransportError as problem:
            raise errors.ConnectionLost(f"the output of exec '{self.id}': {problem}") from problem
        finally:
            response.close()
        if seen.exit:
            self.info = types.Exec._from(seen.exit)

    def signal(self, signal: Union[str, int]) -> None:
        """Sends it a signal: "INT", "SIGTERM", 9."""
        self._http.json(op.SIGNAL_EXEC, body={"signal": signal}, id=self.id)

    def kill(self) -> None:
        self.signal("KILL")

    def write(self, data: Union[str, bytes], eof: bool = False) -> None:
        """Writes to its stdin, if it was started with `open_stdin`; `eof` closes it afterwards."""
        content = data.encode() if isinstance(data, str) else data
        self._http.json(op.WRITE_STDIN, query={"eof": eof}, content=content, id=self.id)

    def close_stdin(self) -> None:
        self.write(b"", eof=True)

    def resize(self, rows: int, columns: int) -> None:
        """Changes the size of its terminal."""
        self._http.json(op.RESIZE_TERMINAL, body={"rows": rows, "columns": columns}, id=self.id)

    def attach(self, *, offset: int = 0, stderr_offset: int = 0) -> Session:
        """Its streams, interactive: its output from these bytes on. It goes on when the session is closed."""
        query = _core.query_of({"offset": offset or None, "stderr_offset": stderr_offset or None})
        return Session(self._http, _core.path_of(op.ATTACH_EXEC, id=self.id) + query, None)


class Session:
    """An interactive command, over a WebSocket: write to it, and iterate over its `Output`; then `result` has how it ended.

    >>> with Carrel().create() as ws:
    ...     with ws.session("cat") as session:
    ...         session.write("hello")
    ...         session.close_stdin()
    ...         for output in session:
    ...             print(output.text)
    ...     print(session.result.exit_code)
    hello
    0
    """

    def __init__(self, http: Http, path: str, start: Optional[Mapping[str, Any]]) -> None:
        self._http = http
        self._path = path
        self._start = start
        self._response: Optional[httpx.Response] = None
        self._duplex: Optional[_io.Duplex] = None
        self._reader = _websocket.Reader()
        self._outputs: List[Output] = []
        self._exit: Optional[Dict[str, Any]] = None
        self._pieces: Optional[Iterator[Output]] = None
        self.id = ""
        self.approval: Optional[str] = None  # that the command waits for, or has waited for

    @property
    def result(self) -> Result:
        """How the command ended; its output is not in it. Only after the last `Output`."""
        if self._exit is None:
            raise RuntimeError("the command has not ended yet: read all of the session first")
        return Result.joined({"stdout": "", "stderr": "", "encoding": "utf-8", **self._exit})

    def __enter__(self) -> Session:
        headers = _websocket.handshake(PROTOCOL)
        self._response, self._duplex = self._http.upgrade(self._path, headers)
        try:
            _websocket.check_handshake(headers, self._response.headers)
            if self._start is not None:
                self._send_text({"type": "start", **{name: value for name, value in self._start.items() if value is not None}})
        except BaseException:
            self._response.close()
            raise
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        self.close()

    def close(self) -> None:
        """Ends the session: a command that was started by it is canceled, one that it is attached to goes on."""
        duplex, self._duplex = self._duplex, None
        if duplex is not None:
            try:
                duplex.write(_websocket.close_frame())
            except (httpcore.NetworkError, httpcore.TimeoutException, OSError):
                pass
        if self._response is not None:
            self._response.close()

    # ---- to the command ----

    def write(self, data: Union[str, bytes]) -> None:
        """To its stdin, or its terminal."""
        content = data.encode() if isinstance(data, str) else data
        for at in range(0, len(content), MESSAGE_MOST):
            self._send(_websocket.BINARY, b"\0" + content[at:at + MESSAGE_MOST])

    def close_stdin(self) -> None:
        self._send(_websocket.BINARY, b"\0")

    def resize(self, rows: int, columns: int) -> None:
        """Changes the size of its terminal."""
        self._send_text({"type": "resize", "cols": columns, "rows": rows})

    def signal(self, signal: str) -> None:
        """Sends it a signal: "INT", "TERM"."""
        self._send_text({"type": "signal", "signal": signal})

    def _send_text(self, message: Mapping[str, Any]) -> None:
        self._send(_websocket.TEXT, json.dumps(message).encode())

    def _send(self, kind: int, data: bytes) -> None:
        if self._duplex is None:
            raise errors.ConnectionLost("the session is closed")
        try:
            self._duplex.write(_websocket.frame(kind, data))
        except (httpcore.NetworkError, httpcore.TimeoutException, OSError) as problem:
            raise errors.ConnectionLost(f"the session was lost: {problem}") from problem

    # ---- from the command ----

    def __iter__(self) -> Iterator[Output]:
        if self._pieces is None:
            self._pieces = self._read_all()
        return self._pieces

    def read(self) -> Optional[Output]:
        """The next piece of output; None: the command has ended, see `result`."""
        while not self._outputs and self._exit is None:
            if self._duplex is None:
                raise errors.ConnectionLost("the session is closed")
            try:
                data = self._duplex.read(PATIENCE_SECONDS)
            except (httpcore.NetworkError, httpcore.TimeoutException, OSError) as problem:
                raise errors.ConnectionLost(f"the session was lost: {problem}") from problem
            if not data:
                raise errors.ConnectionLost("the session ended before the command did")
            for message in self._reader.feed(data):
                self._take(message)
        return self._outputs.pop(0) if self._outputs else None

    def _read_all(self) -> Iterator[Output]:
        while True:
            output = self.read()
            if output is None:
                return
            yield output

    def _take(self, message: _websocket.Message) -> None:
        if isinstance(message, _websocket.Ping):
            self._send(_websocket.PONG, message.data)
        elif isinstance(message, _websocket.Closed):
            if self._exit is None:
                raise errors.ConnectionLost(f"the daemon closed the session: {message.reason or message.code}")
        elif isinstance(message, bytes):
            self._outputs.append(Output("stderr" if message[:1] == b"\2" else "stdout", message[1:]))
        else:
            self._take_text(json.loads(message))

    def _take_text(self, value: Dict[str, Any]) -> None:
        kind = value.get("type")
        if kind in ("started", "waiting"):
            self.id = value["exec"]
            self.approval = value.get("approval", self.approval)
        elif kind == "exit":
            self._exit = value
        elif kind == "error":
            raise errors.from_problem(int(value.get("status") or 0), value)


class Connection:
    """A TCP connection to a server in a workspace."""

    def __init__(self, response: httpx.Response, duplex: _io.Duplex) -> None:
        self._response = response
        self._duplex = duplex

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        self.close()

    def read(self) -> bytes:
        """Some bytes; b"": the server has closed."""
        try:
            return self._duplex.read()
        except (httpcore.NetworkError, OSError) as problem:
            raise errors.ConnectionLost(f"the connection was lost: {problem}") from problem

    def write(self, data: bytes) -> None:
        try:
            self._duplex.write(data)
        except (httpcore.NetworkError, OSError) as problem:
            raise errors.ConnectionLost(f"the connection was lost: {problem}") from problem

    def close(self) -> None:
        self._response.close()
