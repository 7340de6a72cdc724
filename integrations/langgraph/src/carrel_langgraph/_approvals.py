"""What an interrupt shows of a command that waits for an approval, and the answers to it. Nothing here talks to a daemon."""
from __future__ import annotations

from typing import Any, Dict, List, Literal, Mapping, Optional, TypedDict

from typing_extensions import NotRequired, TypeGuard

TYPE = "carrel.approval"


class Operation(TypedDict):
    """The value of an interrupt: a command that waits, as the daemon keeps it. Exactly these bytes run when it is approved."""

    type: str
    approval: str
    """The id of the approval: an answer names it."""
    exec: str
    """The id of the exec that waits."""
    workspace: str
    context_id: str
    tool: str
    argv: Optional[List[str]]
    """The program and its arguments; None: `command`."""
    command: Optional[str]
    """For /bin/sh -c."""
    cwd: Optional[str]
    encoding: str
    """Of argv, command and cwd: "utf-8", or "base64" if one of them isn't UTF-8."""
    trail: List[Dict[str, Any]]
    """How the policy judged the parts of the command: subject, rule, reason, decision."""
    expires_at: str
    """The command is denied then."""


class Answer(TypedDict):
    """The value of `Command(resume=...)`."""

    approval: str
    decision: Literal["approve", "deny"]
    note: NotRequired[str]
    """For the model, of a command that is denied; and for the audit log."""


def operation_of(problem: Mapping[str, Any], context_id: str, tool: str) -> Operation:
    """Of the daemon's answer to a command that waits."""
    approval = problem["approval"]
    return Operation(
        type=TYPE, approval=approval["id"], exec=problem["exec"], workspace=approval["workspace"], context_id=context_id, tool=tool,
        argv=approval.get("argv"), command=approval.get("command"), cwd=approval.get("cwd"), encoding=approval["encoding"],
        trail=list(approval["trail"]), expires_at=approval["expires_at"])


def is_operation(value: object) -> TypeGuard[Operation]:
    """Whether the value of an interrupt is a command of Carrel that waits."""
    return isinstance(value, dict) and value.get("type") == TYPE


def approve(operation: Operation, note: Optional[str] = None) -> Answer:
    """Lets the command run: `Command(resume=approve(interrupt.value))`."""
    return _answer(operation, "approve", note)


def deny(operation: Operation, note: Optional[str] = None) -> Answer:
    """Ends the command without running it; the model gets the note."""
    return _answer(operation, "deny", note)


def _answer(operation: Operation, decision: Literal["approve", "deny"], note: Optional[str]) -> Answer:
    answer = Answer(approval=operation["approval"], decision=decision)
    if note is not None:
        answer["note"] = note
    return answer


def read_answer(value: object, operation: Operation) -> Optional[Answer]:
    """The answer to this operation; None: the value is something else, such as the answer to another operation."""
    if not isinstance(value, dict) or value.get("approval") != operation["approval"]:
        return None
    decision, note = value.get("decision"), value.get("note")
    if decision not in ("approve", "deny") or not (note is None or isinstance(note, str)):
        return None
    return _answer(operation, decision, note)
