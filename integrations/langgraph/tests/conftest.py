"""Tests against a daemon: CARREL_HOST, with CARREL_TOKEN (scope user) and CARREL_REVIEWER_TOKEN (scope reviewer)."""
import asyncio
import contextlib
import inspect
import os
import uuid
from typing import Any, AsyncIterator, Callable, Dict, Iterator, Optional

import pytest

import postgres
from carrel import AsyncCarrel, Carrel, NotFound
from carrel_langgraph import Contexts

SETTINGS = {"permissions": {"allow": ["shell(echo:*)", "shell(cat:*)", "shell(sleep:*)", "shell(python3:*)", "shell(env:*)", "shell(false)",
                                      "file(read:${WORKSPACE}/**)", "file(write:${WORKSPACE}/open/**)"],
                            "deny": ["shell(curl:*)"]}}


def pytest_pyfunc_call(pyfuncitem: Any) -> Optional[bool]:
    """A test that is a coroutine runs in a loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture(scope="session")
def carrel() -> Iterator[Carrel]:
    """The agent's client, to look at what was done."""
    with Carrel() as client:
        yield client


@pytest.fixture
def context(carrel: Carrel) -> Iterator[str]:
    """A new context, whose workspace is removed afterwards."""
    yield from new_context(carrel)


@pytest.fixture
def busy(carrel: Carrel) -> Iterator[str]:
    """Another one."""
    yield from new_context(carrel)


def new_context(carrel: Carrel) -> Iterator[str]:
    name = f"chat/{uuid.uuid4().hex[:16]}"
    yield name
    try:
        carrel.get(name).remove()
    except NotFound:
        pass


@pytest.fixture
def contexts() -> Callable[..., Any]:
    """An asynchronous context manager: `Contexts` with clients of their own."""
    @contextlib.asynccontextmanager
    async def make(has_reviewer: bool = True, **options: Any) -> AsyncIterator[Contexts]:
        async with AsyncCarrel() as agent, AsyncCarrel(token=os.environ["CARREL_REVIEWER_TOKEN"]) as reviewer:
            given: Dict[str, Any] = {"agent": "tests", "settings": SETTINGS, **options}
            yield Contexts(agent, reviewer if has_reviewer else None, **given)
    return make


@pytest.fixture(scope="session")
def database() -> Iterator[str]:
    with postgres.serving() as url:
        yield url
