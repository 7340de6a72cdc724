"""Suspend and resume: processes end, files stay, and nothing that runs is ended unasked."""
import json

import pytest

from harness import eventually
from rest import Events, created, output_of, problem


@pytest.fixture(scope="module")
def name(daemon):
    with created(daemon) as workspace:
        yield workspace["name"]


def state(daemon, name):
    return daemon.get(f"/v1/workspaces/{name}").json()["state"]


def test_files_stay_and_processes_end(daemon, name):
    path = f"/v1/workspaces/{name}"
    output_of(daemon, name, "echo kept > file; echo gone > /tmp/file")
    events = Events(daemon, f"{path}/events")
    answer = daemon.post(f"{path}/suspend")
    assert answer.status == 200 and answer.json()["state"] == "suspended" and not answer.json()["warm"], answer
    assert daemon.post(f"{path}/suspend").json()["state"] == "suspended"
    assert output_of(daemon, name, "cat file; ls /tmp") == "kept\n"
    assert state(daemon, name) == "ready"
    daemon.post(f"{path}/suspend")
    answer = daemon.post(f"{path}/resume")
    assert answer.status == 200 and answer.json()["state"] == "ready" and answer.json()["warm"], answer
    assert daemon.post(f"{path}/resume").status == 200
    seen = []
    for event in events:
        seen.append(event["event"])
        if seen.count("workspace.resumed") == 2:
            break
    assert [one for one in seen if one in ("workspace.suspended", "workspace.resumed")] == ["workspace.suspended", "workspace.resumed"] * 2


def test_what_runs_is_named_and_ended_only_by_force(daemon, name):
    path = f"/v1/workspaces/{name}"
    exec_ = daemon.post(f"{path}/exec", {"argv": ["sleep", "1000"], "background": True}).json()
    problem(daemon.post(f"{path}/suspend"), 409, "conflict", exec_["id"], "sleep", '{"force":true}')
    assert state(daemon, name) == "running"
    assert daemon.post(f"{path}/suspend", {"force": True}).json()["state"] == "suspended"
    ended = daemon.get(f"/v1/execs/{exec_['id']}").json()
    assert ended["state"] == "ended" and ended["reason"] == "canceled" and "suspended" in ended["error"], ended
    output_of(daemon, name, "sleep 1000 >/dev/null 2>&1 &")
    problem(daemon.post(f"{path}/suspend"), 409, "conflict", "processes", '{"force":true}')
    assert daemon.post(f"{path}/suspend", {"force": True}).status == 200
    problem(daemon.post(f"{path}/suspend", {"force": 1}), 400, "invalid", "force")
    problem(daemon.post("/v1/workspaces/nobody/suspend"), 404, "not_found", "nobody")


@pytest.mark.once
def test_the_commands(daemon, name):
    done = daemon("exec", "-d", name, "--", "sleep", "1000")
    exec_ = done.stdout.strip()
    done = daemon("suspend", name)
    assert done.returncode == 125 and exec_ in done.stderr and "--force" in done.stderr, done
    done = daemon("suspend", "--force", name)
    assert (done.returncode, done.stdout) == (0, f"suspended {name}\n"), done
    assert json.loads(daemon("ls", "-o", "json", "--state", "suspended").stdout)[0]["name"] == name
    assert json.loads(daemon("resume", name, "-o", "json").stdout) == {"resumed": [name]}
    assert eventually(lambda: state(daemon, name) == "ready")
