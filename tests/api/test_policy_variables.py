"""Policy: the variables that a command gets are judged with it, whatever brought them."""
# security: policy
import json

import pytest
from harness import eventually
from rest import created

SETTINGS = {"permissions": {"allow": ["shell(echo:*)"]}}
MATTER = ("LD_PRELOAD", "PATH", "PYTHONPATH", "PYTHONSTARTUP", "NODE_OPTIONS", "BASH_ENV", "GIT_SSH_COMMAND")


def by_exec(daemon, env):
    return daemon.post("/v1/workspaces", {"settings": SETTINGS}).json(), env


def by_create(daemon, env):
    return daemon.post("/v1/workspaces", {"settings": SETTINGS, "env": env}).json(), {}


def by_update(daemon, env):
    made = daemon.post("/v1/workspaces", {"settings": SETTINGS}).json()
    assert daemon.request("PATCH", f"/v1/workspaces/{made['name']}", {"env": env}).status == 200
    return made, {}


def by_template(daemon, env):
    answer = daemon.post("/v1/templates", {"template": {"name": "brings", "env": env}})
    assert answer.status == 201, answer
    made = daemon.post("/v1/workspaces", {"template": "brings", "settings": SETTINGS}).json()
    assert daemon.delete("/v1/templates/brings").status == 204
    return made, {}


def by_fork(daemon, env):
    first, _ = by_create(daemon, env)
    forked = daemon.post(f"/v1/workspaces/{first['name']}/fork", {"name": "forked"})
    assert forked.status == 201, forked
    assert daemon.delete(f"/v1/workspaces/{first['name']}").status == 204
    return daemon.get("/v1/workspaces/forked").json(), {}


def by_archive(daemon, env):
    first, _ = by_create(daemon, env)
    archive = daemon.request("DELETE", f"/v1/workspaces/{first['name']}?archive=true").json()["name"]
    answer = daemon.post(f"/v1/archives/{archive}/restore", {})
    assert answer.status == 201, answer
    return answer.json(), {}


@pytest.mark.parametrize("way", [by_exec, by_create, by_update, by_template, by_fork, by_archive], ids=lambda way: way.__name__)
def test_a_variable_that_changes_what_runs_is_asked_for_whatever_brought_it(daemon, way):
    for name in MATTER + ("FOO",):
        workspace, env = way(daemon, {name: "/workspace/x"})
        started = daemon.post(f"/v1/workspaces/{workspace['name']}/exec", {"argv": ["echo", "hi"], "background": True, "env": env})
        assert started.status == 201, (name, started)
        asked = daemon.get(f"/v1/approvals?state=pending&workspace={workspace['name']}").json()["items"]
        assert bool(asked) == (name in MATTER), (name, asked)
        if asked:
            assert any(step["subject"] == f"{name}=/workspace/x" for step in asked[0]["trail"]), asked
        assert daemon.delete(f"/v1/workspaces/{workspace['name']}").status == 204


def test_an_approved_command_does_not_get_variables_that_came_later(daemon):
    with created(daemon, settings=SETTINGS) as workspace:
        path = f"/v1/workspaces/{workspace['name']}"
        started = daemon.post(f"{path}/exec", {"argv": ["env"], "background": True}).json()
        asked = daemon.get(f"/v1/approvals?state=pending&workspace={workspace['name']}").json()["items"][0]
        assert daemon.request("PATCH", path, {"env": {"LD_PRELOAD": "/workspace/x.so", "FOO": "1"}}).status == 200
        token = daemon.post("/v1/tokens", {"name": "reviewer of variables", "scope": "reviewer"}).json()["text"]
        answered = daemon.post(f"/v1/approvals/{asked['id']}", {"decision": "approve"}, headers={"Authorization": f"Bearer {token}"})
        assert answered.status == 200, answered
        ended = lambda: daemon.get(f"/v1/execs/{started['id']}").json()
        assert eventually(lambda: ended()["state"] not in ("waiting", "starting", "running"))
        assert "LD_PRELOAD" in json.dumps(ended()) and ended()["exit_code"] != 0, ended()


@pytest.mark.parametrize("before", ["echo as it was shown", None], ids=["changed", "added"])
def test_an_approved_command_runs_with_the_variables_that_were_shown(daemon, before):
    """Any variable may be what a script runs: `$X`."""
    with created(daemon, settings=SETTINGS, env={"X": before} if before else {}) as workspace:
        path = f"/v1/workspaces/{workspace['name']}"
        started = daemon.post(f"{path}/exec", {"command": "$X", "background": True, "env": {"Y": "own"}}).json()
        asked = daemon.get(f"/v1/approvals?state=pending&workspace={workspace['name']}").json()["items"][0]
        assert asked["env"] == {"Y": "own", **({"X": before} if before else {})}, asked
        bound = daemon.post("/v1/tokens", {"scope": "user", "workspace": workspace["name"]}).json()["text"]
        changed = daemon.request("PATCH", path, {"env": {"X": "echo another"}}, {"Authorization": f"Bearer {bound}"})
        assert changed.status == 200, changed
        token = daemon.post("/v1/tokens", {"scope": "reviewer"}).json()["text"]
        answered = daemon.post(f"/v1/approvals/{asked['id']}", {"decision": "approve"}, headers={"Authorization": f"Bearer {token}"})
        assert answered.status == 200, answered
        ended = lambda: daemon.get(f"/v1/execs/{started['id']}").json()
        assert eventually(lambda: ended()["state"] == "ended")
        output = daemon.get(f"/v1/execs/{started['id']}/output").body
        assert output == (b"as it was shown\n" if before else b""), (output, ended())
        assert ended()["exit_code"] == (0 if before else 126), ended()


def test_a_variable_of_the_workspace_is_in_the_approval(daemon):
    with created(daemon, settings=SETTINGS, env={"PYTHONPATH": "/workspace/lib"}) as workspace:
        path = f"/v1/workspaces/{workspace['name']}"
        daemon.post(f"{path}/exec", {"argv": ["echo"], "background": True})
        asked = daemon.get(f"/v1/approvals?state=pending&workspace={workspace['name']}").json()["items"][0]
        assert "PYTHONPATH=/workspace/lib" in [step["subject"] for step in asked["trail"]], asked
