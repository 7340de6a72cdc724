"""LangGraph tools that run in the Carrel workspace of a conversation; a command that the policy asks about is an interrupt.

`Contexts` finds or creates the workspace of a context (the thread of the graph), `carrel_tools` makes the tools, `approve` and
`deny` make the values of `Command(resume=...)`. `carrel_langgraph.a2a` serves such a graph over A2A."""
from ._approvals import Answer, Operation, approve, deny, is_operation
from ._contexts import ContextError, Contexts
from ._tools import Run, carrel_tools

__version__ = "0.1.0"

__all__ = ["Answer", "ContextError", "Contexts", "Operation", "Run", "approve", "carrel_tools", "deny", "is_operation"]
