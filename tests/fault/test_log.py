"""The log: nobody who doesn't read it stops the daemon, and it doesn't fill the disk."""
# security: limits
import fcntl
import os
import re
import subprocess

import pytest

from faults import exec_, workspaces
from harness import note_carrel


@pytest.fixture
def unread(own_daemon):
    """A daemon whose log is a full pipe, and the end to read from."""
    daemon = own_daemon
    daemon.stop_serving()
    ours, theirs = os.pipe()
    fcntl.fcntl(theirs, fcntl.F_SETPIPE_SZ, 4096)
    os.write(theirs, b"x" * 4095 + b"\n")
    daemon.process = subprocess.Popen([daemon.path, "serve"], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=daemon.env)
    daemon.names.add(note_carrel(daemon.process))
    os.close(theirs)
    try:
        daemon.await_ready()
        yield daemon, ours
    finally:
        os.close(ours)


def lost(daemon):
    line = next(line for line in daemon.get("/metrics").body.decode().splitlines() if line.startswith("carrel_log_lines_lost_total "))
    return int(line.split()[1])


def test_a_log_nobody_reads_stops_nobody(unread):
    daemon, log = unread
    assert daemon.post("/v1/workspaces", {"name": "desk"}).status == 201
    for _ in range(5):      # each is a line of core's
        assert exec_(daemon, "desk", "true", background=True).status == 201
    assert lost(daemon) >= 5
    daemon.kill_core()      # and this one of the launcher's
    assert exec_(daemon, "desk", "echo", "alive").json()["stdout"] == "alive\n"
    assert exec_(daemon, "desk", "true", background=True).status == 201
    # Somebody reads again.
    assert os.read(log, 8192) == b"x" * 4095 + b"\n"
    assert exec_(daemon, "desk", "true", background=True).status == 201
    said = ""
    while "background exec started" not in said:
        said += os.read(log, 8192).decode()
    lines = said.splitlines()
    # The launcher has lines of its own, and says for itself what it lost.
    of_core = [line for line in lines if " role=core" in line]
    assert re.search(r"log lines were lost role=core count=\d+$", of_core[0]), said
    assert said.endswith("\n") and all(line.startswith("20") for line in lines), said


def test_a_pipe_whose_reader_has_gone_is_no_end(unread):
    daemon, log = unread
    os.dup2(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), log)
    assert daemon.post("/v1/workspaces", {"name": "desk"}).status == 201
    assert exec_(daemon, "desk", "true", background=True).status == 201
    daemon.kill_core()
    assert set(workspaces(daemon)) == {"desk"}
