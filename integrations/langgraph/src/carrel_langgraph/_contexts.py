"""The workspaces of an agent's contexts, and the two clients that reach them."""
from __future__ import annotations

import asyncio
import time
from typing import Any, Optional

from carrel import AsyncCarrel, AsyncWorkspace, CarrelError, Conflict, NotFound, types

from ._approvals import Answer, Operation, deny

LABEL = "context_id"
AGENT_LABEL = "agent"
PAUSE_LEAST, PAUSE_MOST = 0.02, 1.0


class ContextError(CarrelError):
    """The context can't have a workspace of this agent."""


class Contexts:
    """Finds or creates the workspace of a context, by its label `context_id`.

    `carrel` acts for the agent. `reviewer` answers approvals and needs another token, of the scope `reviewer`: the daemon refuses
    the answer of the principal that asked. Without a reviewer a person answers elsewhere (`carrel approval approve`). Neither
    token is shown to a sandbox.

    `agent` is the value of the label `agent`: a workspace of another agent, or one that only has the context's id as its name,
    is never used. `timeout` bounds each command, in seconds. `options` are those of `AsyncCarrel.create`: `settings`, `sources`,
    `template`, `memory` ... `ttl` is seven days when not given."""

    def __init__(self, carrel: AsyncCarrel, reviewer: Optional[AsyncCarrel] = None, *, agent: str, timeout: float = 300,
                 create_timeout: float = 600, **options: Any) -> None:
        self.carrel = carrel
        self.reviewer = reviewer
        self.agent = agent
        self.timeout = timeout
        self._create_timeout = create_timeout
        self._labels = dict(options.pop("labels", None) or {})
        self._options = {"ttl": "7d", "context": True, **options}

    async def workspace(self, context_id: str) -> AsyncWorkspace:
        """The workspace of the context. Of several processes that ask at once one creates it, and all get it."""
        if not context_id:
            raise ContextError("a context without an id has no workspace")
        end, pause = time.monotonic() + self._create_timeout, PAUSE_LEAST
        while True:
            try:
                return self._checked(await self.carrel.get(context_id), context_id)
            except NotFound:
                pass
            try:
                return await self.carrel.create(
                    labels={**self._labels, AGENT_LABEL: self.agent, LABEL: context_id}, **self._options)
            except Conflict:
                # Another process creates it just now: it is found when it is complete.
                if time.monotonic() >= end:
                    raise
            await asyncio.sleep(pause)
            pause = min(pause * 2, PAUSE_MOST)

    def _checked(self, workspace: AsyncWorkspace, context_id: str) -> AsyncWorkspace:
        """A context's id comes from a client: it must not reach a workspace by its name or id, nor one of another agent."""
        labels = workspace.info.labels
        if labels.get(LABEL) != context_id:
            raise ContextError(f"context '{context_id}' is the name or id of another workspace")
        if labels.get(AGENT_LABEL) != self.agent:
            raise ContextError(f"context '{context_id}' belongs to another agent, not to '{self.agent}'")
        return workspace

    async def answer(self, operation: Operation, answer: Answer) -> types.Approval:
        """Answers an approval as the reviewer. One that was answered already, or has expired, stays as it is."""
        if self.reviewer is None:
            return await self.carrel.approvals.get(operation["approval"])
        try:
            if answer["decision"] == "approve":
                return await self.reviewer.approvals.approve(operation["approval"], note=answer.get("note"))
            return await self.reviewer.approvals.deny(operation["approval"], note=answer.get("note"))
        except Conflict:
            return await self.reviewer.approvals.get(operation["approval"])

    async def withdraw(self, operation: Operation, note: str) -> None:
        """Nobody waits for the command any more: ends it, as denied, or as it is."""
        try:
            if (await self.answer(operation, deny(operation, note))).state in ("pending", "approved"):
                await (await self.carrel.execs.get(operation["exec"])).kill()
        except (NotFound, Conflict):
            pass
