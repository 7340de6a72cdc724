"""Exceptions. Every one is a `CarrelError`; what the daemon answered is an `ApiError`, a class for each `code`."""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Type

from . import types

__all__ = [
    "ApiError", "ApprovalRequired", "Canceled", "CarrelError", "CommandFailed", "CommandNotFound", "Conflict", "ConnectionFailed",
    "ConnectionLost", "Corrupt", "DaemonNotStarted", "Denied", "DiskFull", "Failed", "Invalid", "LimitReached", "NotExecutable",
    "NotFound", "ProtocolError", "TimedOut", "Unauthenticated", "Unavailable",
]


class CarrelError(Exception):
    """What went wrong; `hint` says what to do about it, where that is known."""

    hint: Optional[str] = None

    def __str__(self) -> str:
        text = super().__str__()
        return f"{text} (hint: {self.hint})" if self.hint else text


class ConnectionFailed(CarrelError):
    """No daemon answers at that address: nothing was sent."""


class DaemonNotStarted(ConnectionFailed):
    """There is no local daemon, and none could be started."""


class ConnectionLost(CarrelError):
    """The connection ended before the answer did: the request may have been carried out."""


class TimedOut(CarrelError):
    """The daemon did not answer in time: the request may have been carried out."""


class ProtocolError(CarrelError):
    """The other side does not speak the protocol of a carrel daemon."""


class CommandFailed(CarrelError):
    """A command ended otherwise than with exit code 0, and `check` was set. `result` has its output."""

    def __init__(self, result: Any, command: str = "the command") -> None:
        self.result = result
        tail = result.stderr.strip().rpartition("\n")[2]
        how = f"exit code {result.exit_code}" if result.reason == "exited" else f"{result.reason}, exit code {result.exit_code}"
        super().__init__(f"{command}: {how}{': ' + tail if tail else ''}")


class ApiError(CarrelError):
    """A problem that the daemon reported.

    `code` is stable (`not_found`), `detail` is for people, `hint` says what to do. `request_id` finds the request in the
    daemon's log and in the audit log. `trail` shows how the policy judged, where a policy refused. `exit_code` is that of a
    command which can't be started."""

    code = "failed"

    def __init__(self, detail: str, *, status: int = 0, code: Optional[str] = None, hint: Optional[str] = None,
                 request_id: Optional[str] = None, exit_code: Optional[int] = None, problem: Optional[Mapping[str, Any]] = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.status = status
        self.code = code or type(self).code
        self.hint = hint
        self.request_id = request_id
        self.exit_code = exit_code
        self.problem: Mapping[str, Any] = problem or {}

    @property
    def trail(self) -> List[types.PolicyStep]:
        """How the policy judged the command, step by step."""
        return [types.PolicyStep._from(step) for step in self.problem.get("trail") or ()]


class Invalid(ApiError):
    """The request is wrong."""

    code = "invalid"


class NotFound(ApiError):
    """The named object doesn't exist."""

    code = "not_found"


class Conflict(ApiError):
    """The object exists already, or is busy. `changes` are those that can't be applied, of `Workspace.apply`."""

    code = "conflict"

    @property
    def changes(self) -> List[types.AppliedChange]:
        return [types.AppliedChange._from(change) for change in self.problem.get("changes") or ()]


class Denied(ApiError):
    """A permission or a policy forbids it: see `trail`."""

    code = "denied"


class ApprovalRequired(ApiError):
    """The command waits for a reviewer, in the background: see `approval` and `exec_id`. Only with `approval="return"`."""

    code = "approval_required"

    @property
    def approval(self) -> types.Approval:
        return types.Approval._from(self.problem.get("approval") or {})

    @property
    def exec_id(self) -> str:
        return str(self.problem.get("exec") or "")


class Unauthenticated(ApiError):
    """No token was given, or it is wrong, expired or revoked."""

    code = "unauthenticated"


class LimitReached(ApiError):
    """A size, a count or a rate is over its maximum."""

    code = "limit"


class DiskFull(ApiError):
    """The disk, or the disk limit of the workspace, is full."""

    code = "disk_full"


class Unavailable(ApiError):
    """The daemon can't do that now, or not on this host."""

    code = "unavailable"


class Corrupt(ApiError):
    """Stored data is damaged."""

    code = "corrupt"


class Failed(ApiError):
    """Anything else."""

    code = "failed"


class Canceled(ApiError):
    """A user or a client canceled it."""

    code = "canceled"


class CommandNotFound(ApiError):
    """The program to run doesn't exist."""

    code = "command_not_found"


class NotExecutable(ApiError):
    """The program to run can't be executed."""

    code = "not_executable"


CLASSES: Dict[str, Type[ApiError]] = {
    one.code: one for one in (
        Invalid, NotFound, Conflict, Denied, ApprovalRequired, Unauthenticated, LimitReached, DiskFull, Unavailable, Corrupt, Failed,
        Canceled, CommandNotFound, NotExecutable)
}


def from_problem(status: int, problem: Mapping[str, Any]) -> ApiError:
    """The exception of a problem (RFC 9457), of a response or of an event."""
    code = str(problem.get("code") or "failed")
    detail = str(problem.get("detail") or problem.get("title") or f"HTTP status {status}")
    return CLASSES.get(code, ApiError)(
        detail, status=status, code=code, hint=problem.get("hint"), request_id=problem.get("request_id"),
        exit_code=problem.get("exit_code"), problem=problem)
