"""What a synchronous client does otherwise than an asynchronous one; _async/_io.py is its counterpart."""
from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
import weakref
from types import TracebackType
from typing import IO, Any, Callable, Iterator, Optional, Tuple, Type, TypeVar

import httpcore

from .._core import PIECE

Value = TypeVar("Value")
sleep = time.sleep
RECORD_SECONDS = 0.05  # that the rest of a TLS record is waited for, while nobody can write


def call(callback: Callable[..., Any], *values: Any) -> None:
    callback(*values)


def blocking(function: Callable[..., Value], *values: Any) -> Value:
    return function(*values)


def pieces(file: IO[bytes]) -> Iterator[bytes]:
    """The content of a file, as the body of a request."""
    while piece := file.read(PIECE):
        yield piece


def close_with(owner: object, close: Callable[[], Any]) -> None:
    """Closes the connections of a client that nobody has closed, with it or at the end of the program."""
    weakref.finalize(owner, close)


class Duplex:
    """An upgraded connection: one thread may read while others write."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._is_tls = stream.get_extra_info("ssl_object") is not None
        self._socket = stream.get_extra_info("socket")

    def read(self, timeout: Optional[float] = None) -> bytes:
        """b"": the other side has closed."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if end is None else max(0.0, end - time.monotonic())
            is_pending = self._is_tls and self._socket.pending() > 0
            if not is_pending and not select.select([self._socket], [], [], left)[0]:
                raise httpcore.ReadTimeout()
            # A TLS connection can't be read and written at once.
            try:
                with self._lock if self._is_tls else contextlib.nullcontext():
                    data: bytes = self._stream.read(PIECE, timeout=RECORD_SECONDS if self._is_tls else None)
                    return data
            except httpcore.ReadTimeout:
                continue

    def write(self, data: bytes) -> None:
        with self._lock:
            self._stream.write(data)


class Forward:
    """A port of this host that leads to one of a workspace, while the block runs."""

    def __init__(self, connect: Callable[[], Any], host: str, port: int) -> None:
        self._connect = connect
        self._listener = socket.create_server((host, port))
        self.host, self.port = self._listener.getsockname()[:2]
        self._open: "set[socket.socket]" = set()

    @property
    def address(self) -> Tuple[str, int]:
        return self.host, self.port

    def __enter__(self) -> Forward:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        for one in (self._listener, *list(self._open)):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client = self._listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        self._open.add(client)
        try:
            with client, self._connect() as inner:
                threading.Thread(target=self._send, args=(client, inner), daemon=True).start()
                while data := inner.read():
                    client.sendall(data)
        except Exception:
            pass
        finally:
            self._open.discard(client)

    @staticmethod
    def _send(client: socket.socket, inner: Any) -> None:
        try:
            while data := client.recv(PIECE):
                inner.write(data)
            inner.close()
        except Exception:
            pass
