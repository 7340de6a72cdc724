"""Workspaces for the tests of the command line."""
import contextlib
import json

import pytest


@contextlib.contextmanager
def created(daemon, *options):
    """The name of a new workspace, which is removed at the end of the block."""
    done = daemon("create", *options)
    assert done.returncode == 0, done.stderr
    name = done.stdout.strip()
    try:
        yield name
    finally:
        daemon("rm", "--force", name)


@pytest.fixture(scope="module")
def workspace(daemon):
    """One that the tests of a module share."""
    with created(daemon) as name:
        yield name


def sh(daemon, name, script, *options, **how):
    return daemon("exec", *options, name, "--", "sh", "-c", script, **how)


def json_of(done):
    """What was printed with -o json: one value, and nothing else anywhere."""
    assert done.stderr == "", done.stderr
    return json.loads(done.stdout)
