"""What a synchronous client does otherwise than an asynchronous one; _async/_io.py is its counterpart."""
from __future__ import annotations

import contextlib
import select
import socket
import ssl
import threading
import time
import weakref
from types import TracebackType
from typing import IO, Any, Callable, Iterator, Optional, Tuple, Type, TypeVar

import httpcore

from .._core import PIECE, UPLOAD_PIECE

Value = TypeVar("Value")
sleep = time.sleep
NO_TIME = 0.001
RECORD_MOST = 16384  # bytes of a TLS record


def call(callback: Callable[..., Any], *values: Any) -> None:
    callback(*values)


def blocking(function: Callable[..., Value], *values: Any) -> Value:
    return function(*values)


def pieces(file: IO[bytes]) -> Iterator[bytes]:
    """The content of a file, as the body of a request."""
    while piece := file.read(UPLOAD_PIECE):
        yield piece


def close_with(owner: object, close: Callable[[], Any]) -> None:
    """Closes the connections of a client that nobody has closed, with it or at the end of the program."""
    weakref.finalize(owner, close)


class Duplex:
    """An upgraded connection: one thread may read while others write.

    A TLS connection can't be read and written at once: it is used without waiting, under a lock, and waited for outside of it."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._socket = stream.get_extra_info("socket")
        self._is_tls = stream.get_extra_info("ssl_object") is not None
        self._is_first = True
        self._tls = threading.Lock()
        self._writing = threading.Lock()

    def read(self, timeout: Optional[float] = None) -> bytes:
        """b"": the other side has closed."""
        if self._is_first:
            # What came with the head of the response is kept there: the socket isn't readable for it.
            self._is_first = False
            try:
                with self._tls:
                    early: bytes = self._stream.read(PIECE, timeout=NO_TIME)
                    return early
            except httpcore.ReadTimeout:
                pass
        if self._is_tls:
            data: bytes = self._without_waiting(self._socket.recv, PIECE, timeout)
            return data
        self._wait(select.POLLIN, timeout)
        data = self._stream.read(PIECE, timeout=None)
        return data

    def write(self, data: bytes) -> None:
        with self._writing:
            if not self._is_tls:
                self._stream.write(data)
                return
            left = memoryview(data)
            while left:
                left = left[self._without_waiting(self._socket.send, left[:RECORD_MOST], None):]

    def _without_waiting(self, function: Callable[[Any], Any], value: Any, timeout: Optional[float]) -> Any:
        while True:
            with self._tls:
                self._socket.settimeout(0)
                try:
                    return function(value)
                except ssl.SSLWantReadError:
                    wanted = select.POLLIN
                except ssl.SSLWantWriteError:
                    wanted = select.POLLOUT
            self._wait(wanted, timeout)

    def _wait(self, events: int, timeout: Optional[float]) -> None:
        poll = select.poll()
        poll.register(self._socket, events)
        if not poll.poll(None if timeout is None else timeout * 1000):
            raise httpcore.ReadTimeout()


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
