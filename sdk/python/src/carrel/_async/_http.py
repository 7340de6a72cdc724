"""Requests: sent, repeated where that is safe, and their answers read."""
from __future__ import annotations

import io
import os
import socket
import ssl
from typing import Any, AsyncIterator, Callable, Dict, Mapping, Optional, Sequence, Tuple, TypeVar, Union

import httpx

from .. import _config, _core, errors
from .._core import Request
from .._operations import Operation
from . import _io

Value = TypeVar("Value")
CONNECT_SECONDS = 10.0
SILENCE_SECONDS = 600.0  # without an answer
RETRIES = 3
# A command may be silent for hours: the kernel finds out when the other machine is gone.
KEEP_ALIVE = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1), (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30),
              (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10), (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 6)]
HEARTBEAT_SECONDS = 60.0  # without a byte of a stream that the daemon keeps alive


class AsyncHttp:
    """A pool of connections to one daemon."""

    def __init__(self, host: Optional[str], token: Optional[str], ca: Union[str, "os.PathLike[str]", ssl.SSLContext, None],
                 timeout: Optional[float], retries: int, context: Optional[str] = None) -> None:
        named = _config.context(context) if context is not None else {}
        host, token, ca = host or named.get("host"), token or named.get("token"), ca or named.get("ca")
        self.place = _config.find(host)
        self.timeout = timeout
        self._retries = retries
        self._is_found = False  # the daemon of the home
        self._token = token or os.environ.get("CARREL_TOKEN") or None
        ca = ca or os.environ.get("CARREL_CA") or None
        self._verify = _config.verifier(ca) if self.place.url.startswith("https") else False
        self._client = self._new_client()

    def _new_client(self) -> httpx.AsyncClient:
        headers = {"User-Agent": "carrel-python/0.1"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
        self._address = self.place.address()
        transport = httpx.AsyncHTTPTransport(uds=self._address, limits=limits, verify=self._verify,
                                             socket_options=None if self.place.socket else KEEP_ALIVE)
        client = httpx.AsyncClient(base_url=self.place.url, headers=headers, timeout=self.limit(self.timeout), trust_env=False,
                                   transport=transport)
        _io.close_with(self, client.aclose)
        return client

    def limit(self, read: Optional[float]) -> httpx.Timeout:
        return httpx.Timeout(read, connect=CONNECT_SECONDS, write=read, pool=None)

    async def close(self) -> None:
        await self._client.aclose()
        self.place.close()

    # ---- one request ----

    async def send(self, request: Request, stream: bool = False) -> httpx.Response:
        """The response, if it is not a problem. Repeats what never arrived, and what may arrive twice."""
        attempt = 0
        may_start = self.place.is_own
        if may_start and not self._is_found:
            if not self.place.answers():
                may_start = False
                await self._start_daemon()
            elif self._address != self.place.address():  # started by another since then
                self._client = self._new_client()
            self._is_found = True
        while True:
            may_retry = attempt < self._retries
            retry_after = None
            try:
                response = await self._client.send(self._build(request), stream=stream)
            except (httpx.ConnectError, httpx.ConnectTimeout) as problem:
                if may_start:
                    may_start = False
                    await self._start_daemon()
                    continue
                if not may_retry or _config.is_untrusted(problem):
                    raise self._not_reached(problem) from problem
            except httpx.TimeoutException as problem:
                raise errors.TimedOut(f"{request.method} {request.url}: no answer within {self.timeout} s") from problem
            except httpx.TransportError as problem:
                if not (may_retry and request.is_safe):
                    raise errors.ConnectionLost(f"{request.method} {request.url}: {problem}") from problem
            else:
                if response.status_code < 400:
                    return response
                if stream:
                    await response.aread()
                    await response.aclose()
                retry_after = response.headers.get("retry-after") if response.status_code in (429, 503) else None
                if retry_after is None or not (may_retry and request.is_safe):
                    raise _core.problem_of(response.status_code, response.content)
            await _io.sleep(_core.delay_of(attempt, retry_after))
            attempt += 1

    def _build(self, request: Request) -> httpx.Request:
        timeout = request.timeout or httpx.USE_CLIENT_DEFAULT
        content, headers = request.content, request.headers
        if isinstance(content, bytes) and len(content) > _core.UPLOAD_PIECE:
            # httpx would copy what is left after each piece that the kernel takes.
            headers = {**headers, "Content-Length": str(len(content))}
            content = _io.pieces(io.BytesIO(content))
        return self._client.build_request(request.method, request.url, headers=headers, content=content, timeout=timeout)

    async def _start_daemon(self) -> None:
        """A request to a home without a daemon starts one, as a command of the CLI does."""
        await _io.blocking(_config.start, self.place)
        if self.place.is_long():
            self._client = self._new_client()

    def _not_reached(self, problem: Exception) -> errors.ConnectionFailed:
        if _config.is_untrusted(problem):
            error = errors.ConnectionFailed(f"the certificate of {self.place.url} is not trusted: {problem}")
            error.hint = "ca= is the file of the authority that signed it"
            return error
        return errors.ConnectionFailed(f"no daemon answers at {self.place.socket or self.place.url}: {problem}")

    # ---- by operation ----

    async def json(self, operation: Operation, *, timeout: Union[float, None, str] = "client", query: Optional[Mapping[str, Any]] = None,
                   body: Optional[Mapping[str, Any]] = None, content: Any = None, headers: Optional[Mapping[str, str]] = None,
                   key: Optional[str] = None, nulls: Sequence[str] = (), **names: str) -> Any:
        """The body of the answer; None where it has none. `timeout`: seconds without an answer, None for no limit."""
        request = _core.request_of(operation, names, query=query, body=body, content=content, headers=headers, key=key, nulls=nulls)
        if not isinstance(timeout, str):
            request.timeout = self.limit(timeout)
        response = await self.send(request)
        if response.status_code == 202:
            raise errors.from_problem(202, response.json())
        return response.json() if response.content else None

    async def response(self, operation: Operation, *, query: Optional[Mapping[str, Any]] = None, accept: str = "*/*",
                       body: Optional[Mapping[str, Any]] = None, content: Any = None, headers: Optional[Mapping[str, str]] = None,
                       **names: str) -> httpx.Response:
        """The answer as it came, read to its end."""
        return await self.send(_core.request_of(operation, names, query=query, accept=accept, body=body, content=content, headers=headers))

    async def open(self, request: Request) -> httpx.Response:
        """A response whose body is read piece by piece, and which is closed by the caller."""
        return await self.send(request, stream=True)

    async def items(self, operation: Operation, make: Callable[[Any], Value], *, limit: Optional[int] = None,
                    query: Optional[Mapping[str, Any]] = None, **names: str) -> AsyncIterator[Value]:
        """All items of a list, page by page."""
        asked: Dict[str, Any] = {**(query or {}), "limit": min(limit, 1000) if limit else None}
        count = 0
        while True:
            page = (await self.send(_core.request_of(operation, names, query=asked))).json()
            for item in page["items"]:
                if limit is not None and count == limit:
                    return
                count += 1
                yield make(item)
            if not page.get("next_cursor"):
                return
            asked["cursor"] = page["next_cursor"]

    async def pieces(self, operation: Operation, *, query: Optional[Mapping[str, Any]] = None, accept: str = "*/*",
                     **names: str) -> AsyncIterator[bytes]:
        """The body of a response, piece by piece."""
        response = await self.send(_core.request_of(operation, names, query=query, accept=accept), stream=True)
        try:
            async for piece in response.aiter_bytes():
                yield piece
        except httpx.TransportError as problem:
            raise errors.ConnectionLost(f"{operation.method} {operation.path}: {problem}") from problem
        finally:
            await response.aclose()

    async def events(self, operation: Operation, after: Optional[str], *, query: Optional[Mapping[str, Any]] = None, resume: bool = True,
                     **names: str) -> AsyncIterator[_core.ServerEvent]:
        """Server-sent events. After a loss it goes on behind the last one that came."""
        reader = _core.EventReader(after)
        attempt = 0
        while True:
            headers = {"Last-Event-ID": reader.last_id} if reader.last_id is not None else None
            request = _core.request_of(operation, names, query=query, accept=_core.EVENTS, headers=headers)
            request.timeout = self.limit(HEARTBEAT_SECONDS)
            response = await self.send(request, stream=True)
            try:
                async for piece in response.aiter_bytes():
                    attempt = 0
                    for event in reader.feed(piece):
                        yield event
                if not resume:
                    return
            except (httpx.TransportError, httpx.StreamError) as problem:
                if not resume or attempt >= self._retries:
                    raise errors.ConnectionLost(f"{operation.method} {operation.path}: {problem}") from problem
            finally:
                await response.aclose()
            reader = _core.EventReader(reader.last_id)
            await _io.sleep(_core.delay_of(attempt))
            attempt += 1

    async def forward(self, operation: Operation, path: str, content: Union[str, bytes, None], json: Any,
                      headers: Optional[Mapping[str, str]], **names: str) -> httpx.Response:
        """The answer of a server in a workspace; a problem of the daemon on the way is raised."""
        url = _core.path_of(operation, **names).replace("{path}", path.lstrip("/"))
        request = self._client.build_request(operation.method, url, content=content, json=json, headers=dict(headers or {}))
        try:
            response = await self._client.send(request)
        except (httpx.ConnectError, httpx.ConnectTimeout) as problem:
            raise self._not_reached(problem) from problem
        except httpx.TransportError as problem:
            raise errors.ConnectionLost(f"{operation.method} {url}: {problem}") from problem
        if response.headers.get("content-type") == "application/problem+json" and b'"request_id"' in response.content:
            raise _core.problem_of(response.status_code, response.content)
        return response

    async def upgrade(self, operation_path: str, headers: Mapping[str, str]) -> Tuple[httpx.Response, _io.Duplex]:
        """Asks for another protocol on a connection of its own; the response is closed by the caller."""
        request = Request("GET", operation_path, dict(headers))
        request.timeout = self.limit(self.timeout)
        response = await self.send(request, stream=True)
        if response.status_code != 101:
            await response.aclose()
            raise errors.ProtocolError(f"GET {operation_path}: the daemon answered {response.status_code} and does not change the protocol")
        return response, _io.Duplex(response.extensions["network_stream"])
