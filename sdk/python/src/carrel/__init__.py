"""Carrel runs the commands of AI agents in sandboxes; this is its client, synchronous and asynchronous.

>>> from carrel import Carrel
>>> with Carrel().create() as ws:
...     print(ws.run("python3 -c 'print(1)'").stdout, end="")
1
"""
from . import types
from ._async._client import AsyncCarrel
from ._async._execs import AsyncConnection, AsyncProcess, AsyncSession, AsyncStream
from ._async._files import AsyncFiles
from ._async._workspace import AsyncWorkspace
from ._core import Output, Result
from ._sync._client import Carrel
from ._sync._execs import Connection, Process, Session, Stream
from ._sync._files import Files
from ._sync._workspace import Workspace
from .errors import (
    ApiError, ApprovalRequired, Canceled, CarrelError, CommandFailed, CommandNotFound, Conflict, ConnectionFailed, ConnectionLost,
    Corrupt, DaemonNotStarted, Denied, DiskFull, Failed, Invalid, LimitReached, NotExecutable, NotFound, ProtocolError, TimedOut,
    Unauthenticated, Unavailable,
)

__version__ = "0.1.0"

__all__ = [
    "ApiError", "ApprovalRequired", "AsyncCarrel", "AsyncConnection", "AsyncFiles", "AsyncProcess", "AsyncSession", "AsyncStream",
    "AsyncWorkspace", "Canceled", "Carrel", "CarrelError", "CommandFailed", "CommandNotFound", "Conflict", "Connection",
    "ConnectionFailed", "ConnectionLost", "Corrupt", "DaemonNotStarted", "Denied", "DiskFull", "Failed", "Files", "Invalid",
    "LimitReached", "NotExecutable", "NotFound", "Output", "Process", "ProtocolError", "Result", "Session", "Stream", "TimedOut",
    "Unauthenticated", "Unavailable", "Workspace", "types",
]
