"""Tests against a daemon: that of CARREL_HOST, or that of this user's home, which is started when there is none."""
from typing import Iterator

import pytest

from carrel import Carrel, Workspace


@pytest.fixture(scope="session")
def carrel() -> Iterator[Carrel]:
    with Carrel() as carrel:
        yield carrel


@pytest.fixture(scope="module")
def ws(carrel: Carrel) -> Iterator[Workspace]:
    """A workspace of the module's own."""
    with carrel.create() as ws:
        yield ws
