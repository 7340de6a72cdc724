"""What an asynchronous client does otherwise than a synchronous one; _sync/_io.py is its counterpart, written by hand, too."""
from __future__ import annotations

import inspect
from types import TracebackType
from typing import IO, Any, AsyncIterator, Awaitable, Callable, Optional, Tuple, Type, TypeVar

import anyio
import anyio.abc
import anyio.to_thread

from .._core import PIECE, UPLOAD_PIECE

Value = TypeVar("Value")
sleep = anyio.sleep


async def call(callback: Callable[..., Any], *values: Any) -> None:
    """A callback may be a function or a coroutine function."""
    result = callback(*values)
    if inspect.isawaitable(result):
        await result


async def blocking(function: Callable[..., Value], *values: Any) -> Value:
    """Calls what would hold up the loop."""
    return await anyio.to_thread.run_sync(function, *values)


async def pieces(file: IO[bytes]) -> AsyncIterator[bytes]:
    """The content of a file, as the body of a request."""
    while piece := await blocking(file.read, UPLOAD_PIECE):
        yield piece


def close_with(owner: object, close: Callable[[], Any]) -> None:
    """Nothing: connections of a loop can't be closed outside of it."""


class Duplex:
    """An upgraded connection: one task may read while others write."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._lock = anyio.Lock()

    async def read(self, timeout: Optional[float] = None) -> bytes:
        """b"": the other side has closed."""
        data: bytes = await self._stream.read(PIECE, timeout=timeout)
        return data

    async def write(self, data: bytes) -> None:
        async with self._lock:
            await self._stream.write(data)


class Forward:
    """A port of this host that leads to one of a workspace, while the block runs."""

    def __init__(self, connect: Callable[[], Awaitable[Any]], host: str, port: int) -> None:
        self._connect = connect
        self._wanted = host, port
        self.host, self.port = host, port
        self._group: Any = None
        self._listener: Any = None

    @property
    def address(self) -> Tuple[str, int]:
        return self.host, self.port

    async def __aenter__(self) -> Forward:
        self._listener = await anyio.create_tcp_listener(local_host=self._wanted[0], local_port=self._wanted[1])
        self.host, self.port = self._listener.extra(anyio.abc.SocketAttribute.local_address)[:2]
        self._group = anyio.create_task_group()
        await self._group.__aenter__()
        self._group.start_soon(self._listener.serve, self._serve)
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        self._group.cancel_scope.cancel()
        await self._group.__aexit__(None, None, None)
        await self._listener.aclose()

    async def _serve(self, client: Any) -> None:
        async with client:
            try:
                inner = await self._connect()
            except Exception:
                return
            async with inner, anyio.create_task_group() as group:
                group.start_soon(self._send, client, inner)
                try:
                    while data := await inner.read():
                        await client.send(data)
                except Exception:
                    pass
                group.cancel_scope.cancel()

    async def _send(self, client: Any, inner: Any) -> None:
        try:
            async for data in client:
                await inner.write(data)
        except Exception:
            pass
