"""Approvals: a command that the policy asks about waits for a reviewer, who isn't the one that asked."""
# security: authority
import base64
import concurrent.futures
import json
import os
import pathlib

import pytest
from daemons import configure
from harness import eventually
from rest import Events, created, problem
from test_webhook import SECRET, Server

SETTINGS = {"permissions": {"allow": ["shell(echo:*)", "shell(cat:*)"], "deny": ["shell(curl:*)"]}}
ASKED = ["touch", "made here"]


def bearer(text):
    return {"Authorization": f"Bearer {text}"}


@pytest.fixture(scope="module")
def reviewer(daemon):
    return bearer(daemon.post("/v1/tokens", {"scope": "reviewer", "name": "alice"}).json()["text"])


@pytest.fixture(scope="module")
def demo(daemon):
    with created(daemon, settings=SETTINGS) as workspace:
        yield workspace["name"]


def start(daemon, workspace, argv, **more):
    """An exec in the background that waits, and its approval."""
    answer = daemon.post(f"/v1/workspaces/{workspace}/exec", {"argv": argv, "background": True, **more})
    assert answer.status in (201, 202), answer
    exec_id = answer.json()["id"]
    return exec_id, approval_of(daemon, exec_id)


def approval_of(daemon, exec_id):
    found = []

    def look():
        found[:] = [a for a in daemon.get("/v1/approvals").json()["items"] if a["exec"] == exec_id]
        return found
    assert eventually(look)
    return found[0]


def answer(daemon, approval, decision, headers=None, **more):
    return daemon.post(f"/v1/approvals/{approval['id']}", {"decision": decision, **more}, headers=headers)


def state_of(daemon, exec_id):
    return daemon.get(f"/v1/execs/{exec_id}").json()["state"]


def ended(daemon, exec_id):
    assert eventually(lambda: state_of(daemon, exec_id) == "ended")
    return daemon.get(f"/v1/execs/{exec_id}").json()


def test_an_approved_command_runs(daemon, demo, reviewer):
    exec_id, approval = start(daemon, demo, ASKED)
    assert approval["state"] == "pending" and approval["argv"] == ASKED and approval["encoding"] == "utf-8"
    assert approval["workspace_name"] == demo and approval["requested_by"] == f"uid {os.getuid()}"
    assert approval["trail"] and approval["trail"][0]["decision"] == "ask"
    assert state_of(daemon, exec_id) == "waiting"
    done = answer(daemon, approval, "approve", reviewer, note="fine")
    assert done.status == 200, done
    assert done.json()["state"] == "approved" and done.json()["answered_by"].startswith("token ") and done.json()["note"] == "fine"
    assert ended(daemon, exec_id)["exit_code"] == 0
    assert daemon.get(f"/v1/workspaces/{demo}/files/made%20here").status == 200
    assert answer(daemon, approval, "approve", reviewer).status == 200     # the same again
    problem(answer(daemon, approval, "deny", reviewer), 409, "conflict", "was approved by token")


def test_a_denied_command_does_not(daemon, demo, reviewer):
    exec_id, approval = start(daemon, demo, ["touch", "never"])
    assert answer(daemon, approval, "deny", reviewer, note="no").status == 200
    end = ended(daemon, exec_id)
    assert end["exit_code"] == 126, end
    assert daemon.get(f"/v1/workspaces/{demo}/files/never").status == 404


def test_who_may_answer(daemon, demo, reviewer):
    exec_id, approval = start(daemon, demo, ["touch", "x"])
    problem(answer(daemon, approval, "approve"), 403, "denied", 'POST /v1/tokens with {"scope":"reviewer"}')
    user = bearer(daemon.post("/v1/tokens", {"scope": "user"}).json()["text"])
    problem(answer(daemon, approval, "approve", user), 403, "denied", "review")
    with created(daemon) as other:
        bound = bearer(daemon.post("/v1/tokens", {"scope": "reviewer", "workspace": other["name"]}).json()["text"])
        problem(answer(daemon, approval, "approve", bound), 404, "not_found")
        assert daemon.get("/v1/approvals", headers=bound).json()["items"] == []
    assert daemon.get(f"/v1/approvals?state=pending&workspace={demo}", headers=reviewer).json()["items"][0]["id"] == approval["id"]
    assert answer(daemon, approval, "deny", reviewer).status == 200
    ended(daemon, exec_id)


def test_an_approval_shows_all_that_decides_what_runs(daemon, demo, reviewer):
    more = {"stdin": "touch a\x00b", "env": {"X": "é", "API_TOKEN": "hidden-value"}, "tty": False}
    exec_id, approval = start(daemon, demo, ["sh"], **more)
    decode = lambda text: base64.b64decode(text).decode()
    assert approval["encoding"] == "base64" and decode(approval["stdin"]) == more["stdin"]
    assert {decode(key): value and decode(value) for key, value in approval["env"].items()} == {"X": "é", "API_TOKEN": None}
    assert approval["open_stdin"] is False and approval["tty"] is False
    shown = daemon("approval", "show", approval["id"]).stdout
    assert daemon("approval", "show", approval["id"][:10]).stdout == shown
    assert "touch a\\x00b" in shown and "X=é" in shown and "API_TOKEN=(hidden)" in shown and "hidden-value" not in shown, shown
    assert answer(daemon, approval, "deny", reviewer).status == 200
    ended(daemon, exec_id)
    exec_id, approval = start(daemon, demo, ["sh"], open_stdin=True, tty=True)
    assert approval["open_stdin"] is True and approval["tty"] is True and approval["stdin"] is None and approval["env"] == {}
    daemon.kill_core()
    assert next(item for item in daemon.get("/v1/approvals").json()["items"] if item["id"] == approval["id"]) == approval
    assert answer(daemon, approval, "deny", reviewer).status == 200
    ended(daemon, exec_id)


def test_a_command_that_waits_can_be_followed(daemon, demo, reviewer):
    exec_id, approval = start(daemon, demo, ["uname", "-s"])
    assert daemon.get(f"/v1/execs/{exec_id}/output").body == b""
    with daemon.start("logs", "-f", exec_id) as follower:
        assert answer(daemon, approval, "approve", reviewer).status == 200
        assert follower.communicate(timeout=60) == ("Linux\n", "")
    exec_id, approval = start(daemon, demo, ["uname", "-r"])
    with daemon.start("logs", "-f", exec_id) as follower:
        assert answer(daemon, approval, "deny", reviewer).status == 200
        assert follower.communicate(timeout=60) == ("", "")


def test_the_command_line_says_that_it_waits_and_who_denied_it(daemon, demo, reviewer):
    started = daemon("exec", "-d", demo, "touch", "never")
    assert "carrel approval ls --state pending" in started.stderr, started
    assert answer(daemon, approval_of(daemon, started.stdout.strip()), "deny", reviewer).status == 200
    with daemon.start("exec", demo, "touch", "never") as waiting:
        assert "waiting for approval" in waiting.stderr.readline()
        pending = daemon.get(f"/v1/approvals?state=pending&workspace={demo}").json()["items"]
        assert answer(daemon, pending[0], "deny", reviewer, note="not now").status == 200
        out, err = waiting.communicate(timeout=60)
        assert waiting.returncode == 126 and out == "" and "the command was not run: denied by token" in err and "not now" in err, err


@pytest.mark.once
def test_of_two_reviewers_one_wins(daemon, demo, reviewer):
    bob = bearer(daemon.post("/v1/tokens", {"scope": "reviewer", "name": "bob"}).json()["text"])
    exec_id, approval = start(daemon, demo, ["touch", "y"])
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda headers: answer(daemon, approval, "deny", headers), (reviewer, bob)))
    assert sorted(one.status for one in answers) == [200, 409]
    ended(daemon, exec_id)


def test_always_adds_the_rule_that_was_suggested(daemon, reviewer):
    with created(daemon, settings=SETTINGS) as workspace:
        exec_id, approval = start(daemon, workspace["name"], ["touch", "a"])
        assert approval["suggested_rules"] == ["shell(touch:*)"] and approval["always_refused"] is None
        done = answer(daemon, approval, "approve", reviewer, always=True)
        assert done.status == 200 and done.json()["rules"] == ["shell(touch:*)"], done
        assert ended(daemon, exec_id)["exit_code"] == 0
        again = daemon.post(f"/v1/workspaces/{workspace['name']}/exec", {"argv": ["touch", "b"]})
        assert again.status == 200 and again.json()["exit_code"] == 0
        problem(daemon.post(f"/v1/workspaces/{workspace['name']}/exec", {"argv": ["curl", "x"]}), 403, "denied")


@pytest.mark.once
def test_always_is_refused_where_no_rule_can_say_it(daemon, demo, reviewer):
    answered = daemon.post(f"/v1/workspaces/{demo}/exec", {"command": "$PROGRAM x", "background": True})
    approval = approval_of(daemon, answered.json()["id"])
    problem(answer(daemon, approval, "approve", reviewer, always=True), 400, "invalid", "no rule")
    problem(answer(daemon, approval, "deny", reviewer, always=True), 400, "invalid", "approve")
    assert answer(daemon, approval, "deny", reviewer).status == 200


@pytest.mark.once
def test_a_removed_workspace_takes_its_questions_along(daemon, reviewer):
    with created(daemon, settings=SETTINGS) as workspace:
        _, approval = start(daemon, workspace["name"], ["touch", "a"])
    problem(answer(daemon, approval, "approve", reviewer), 409, "conflict", "expired")
    problem(daemon.post("/v1/approvals/nothing", {"decision": "approve"}, headers=reviewer), 404, "not_found")


@pytest.mark.once
def test_a_client_that_leaves_withdraws_its_question(daemon, demo):
    connection = daemon.connection()
    connection.request("POST", f"/v1/workspaces/{demo}/exec", json.dumps({"argv": ["touch", "left"]}), {"Content-Type": "application/json"})
    waits = lambda: [a for a in daemon.get(f"/v1/approvals?state=pending&workspace={demo}").json()["items"] if a["argv"] == ["touch", "left"]]
    assert eventually(waits)
    (approval,) = waits()
    connection.close()
    assert eventually(lambda: daemon.get(f"/v1/approvals/{approval['id']}").json()["state"] == "expired")


def test_the_commands_answer(daemon, demo, reviewer):
    exec_id, approval = start(daemon, demo, ["touch", "it's", "a\u202eb"])
    listed = daemon("approval", "ls", "--state", "pending").stdout
    assert approval["id"] in listed and "touch 'it'\\''s' $'a\\xe2\\x80\\xaeb'" in listed
    shown = daemon("approval", "show", approval["id"]).stdout
    assert "touch 'it'\\''s'" in shown and "suggested_rules" in shown
    refused = daemon("approval", "approve", approval["id"])
    assert refused.returncode != 0 and "carrel token create --scope reviewer" in refused.stderr
    file = pathlib.Path(daemon.env["CARREL_HOME"]).parent / "reviewer.token"
    file.write_text(reviewer["Authorization"].split()[1])
    done = daemon("approval", "approve", approval["id"], "--note", "ok", "--token-file", file)
    assert done.returncode == 0 and done.stdout == f"approved {approval['id']}\n", done.stderr
    assert ended(daemon, exec_id)["exit_code"] == 0


def test_what_waits_in_the_background_waits_over_a_restart(make_daemon):
    daemon = make_daemon()
    reviewer = bearer(daemon.post("/v1/tokens", {"scope": "reviewer"}).json()["text"])
    with created(daemon, settings=SETTINGS) as workspace:
        exec_id, approval = start(daemon, workspace["name"], ["touch", "late"])
        daemon.kill_core()
        assert state_of(daemon, exec_id) == "waiting"
        assert answer(daemon, approval, "approve", reviewer).status == 200
        assert ended(daemon, exec_id)["exit_code"] == 0
        assert daemon.get(f"/v1/workspaces/{workspace['name']}/files/late").status == 200


def test_a_client_that_does_not_wait_gets_the_approval(daemon, demo, reviewer):
    """202 for a foreground command too: it waits in the background, and the same bytes run."""
    for more in ({}, {"background": True}):
        asked = daemon.post(f"/v1/workspaces/{demo}/exec", {"command": "touch 'no wait'; cat", "stdin": "input", "approval": "return", **more})
        assert asked.status == 202, asked
        body = asked.json()
        assert body["code"] == "approval_required" and body["exit_code"] == 126 and body["approval"]["command"] == "touch 'no wait'; cat"
        assert asked.headers["Location"] == f"/v1/approvals/{body['approval']['id']}"
        assert state_of(daemon, body["exec"]) == "waiting" and body["approval"]["exec"] == body["exec"]
        assert answer(daemon, body["approval"], "approve", reviewer).status == 200
        assert ended(daemon, body["exec"])["exit_code"] == 0
        assert daemon.get(f"/v1/execs/{body['exec']}/output").body == b"input"
    allowed = daemon.post(f"/v1/workspaces/{demo}/exec", {"argv": ["echo", "x"], "approval": "return"})
    assert allowed.status == 200 and allowed.json()["stdout"] == "x\n"


def test_events_tell_that_it_waits(daemon, demo, reviewer):
    def run(argv, decision):
        stream = Events(daemon, f"/v1/workspaces/{demo}/exec", {"Content-Type": "application/json"}, "POST", json.dumps({"argv": argv}))
        (waiting,) = stream.until("waiting")
        approval = daemon.get(f"/v1/approvals/{waiting['data']['approval']}").json()
        assert approval["exec"] == waiting["data"]["id"] and approval["state"] == "pending"
        assert answer(daemon, approval, decision, reviewer).status == 200
        return [event["event"] for event in stream.until("exit")]
    assert run(["touch", "x"], "approve") == ["start", "exit"]
    assert run(["touch", "x"], "deny") == ["exit"]
    assert run(["nothing"], "approve") == ["start", "stderr", "exit"]


def test_the_command_says_what_it_waits_for(daemon, demo, reviewer):
    def asked():
        return daemon.get(f"/v1/approvals?state=pending&workspace={demo}").json()["items"]
    for tty in ([], ["-t"]):
        with daemon.start("exec", *tty, demo, "--", "touch", "spoken") as waits:
            assert eventually(asked)
            (approval,) = asked()
            decision = "deny" if tty else "approve"
            assert answer(daemon, approval, decision, reviewer, note="because").status == 200
            _, errors = waits.communicate(timeout=60)
        assert f"carrel: waiting for approval {approval['id']}: carrel approval show {approval['id']}\n" in errors, errors
        assert waits.returncode == (126 if tty else 0)
        assert ("because" in errors and "carrel policy explain" in errors) == bool(tty), errors
    done = daemon("exec", "--no-wait", demo, "--", "touch", "later")
    (approval,) = asked()
    assert done.returncode == 126 and done.stdout == approval["id"] + "\n" and f"carrel approval show {approval['id']}" in done.stderr, done
    assert answer(daemon, approval, "approve", reviewer).status == 200
    assert ended(daemon, approval["exec"])["exit_code"] == 0
    done = daemon("exec", "--no-wait", "-o", "json", "-d", demo, "--", "touch", "later")
    body = json.loads(done.stdout)
    assert done.returncode == 126 and body["approval"]["state"] == "pending"
    assert answer(daemon, body["approval"], "deny", reviewer).status == 200
    denied = daemon("exec", demo, "--", "curl", "-v", "x")
    assert denied.returncode == 126 and "curl -v x: rule 'shell(curl:*)'" in denied.stderr and "carrel policy explain" in denied.stderr, denied


def test_the_policy_as_it_is_when_the_answer_comes(make_daemon):
    """The operator's policy has changed while commands waited: what it denies by now doesn't run, and rules that would not allow
    the command next time are not added."""
    daemon = make_daemon()
    reviewer = bearer(daemon.post("/v1/tokens", {"scope": "reviewer"}).json()["text"])
    settings = daemon.home / "operator.json"
    with created(daemon, settings=SETTINGS) as workspace:
        denied, approval = start(daemon, workspace["name"], ["touch", "denied"])
        asked, question = start(daemon, workspace["name"], ["mkdir", "asked"])
        settings.write_text(json.dumps({"permissions": {"allow": [], "deny": ["shell(touch:*)"], "ask": ["shell(mkdir:*)"]}}))
        configure(daemon, f"policy:\n  settings: {settings}\n")
        done = answer(daemon, approval, "approve", reviewer, always=True).json()
        assert done["state"] == "denied" and done["answered_by"] == "policy" and "shell(touch:*)" in done["note"], done
        assert done["rules"] == []
        end = ended(daemon, denied)
        assert end["exit_code"] == 126 and end["reason"] == "denied" and "shell(touch:*)" in end["error"], end
        problem(answer(daemon, approval, "approve", reviewer), 409, "conflict", "denied by policy")
        problem(answer(daemon, question, "approve", reviewer, always=True), 400, "invalid", "still says ask")
        assert state_of(daemon, asked) == "waiting"
        assert answer(daemon, question, "approve", reviewer).json()["state"] == "approved"
        assert ended(daemon, asked)["exit_code"] == 0


@pytest.mark.once
def test_the_operators_configuration(make_daemon):
    """One daemon: the requester may answer, time denies, and a webhook that fails first is told of all of it."""
    daemon = make_daemon()
    secret = pathlib.Path(daemon.env["CARREL_HOME"]).parent / "secret"
    secret.write_bytes(SECRET)
    with Server(500) as server:
        configure(daemon, f"approvals:\n  self: true\n  ttl: 1s\n  webhook: {server.url}\n  webhook_secret_file: {secret}\n")
        with created(daemon, settings=SETTINGS) as workspace:
            events = Events(daemon, "/v1/events")
            exec_id, approval = start(daemon, workspace["name"], ["touch", "slow"])
            expired = events.until("approval.expired")
            assert [e["event"] for e in expired if e["event"].startswith("approval.")] == ["approval.requested", "approval.expired"]
            assert ended(daemon, exec_id)["exit_code"] == 126
            assert eventually(lambda: len(server.calls) >= 3)       # repeated
            server.status = 204
            told = lambda: {json.loads(body)["type"] for _, _, body in server.calls}
            assert eventually(lambda: told() == {"approval.requested", "approval.expired"})
            events.close()
        configure(daemon, "approvals:\n  self: true\n")
        with created(daemon, settings=SETTINGS) as workspace:
            exec_id, approval = start(daemon, workspace["name"], ["touch", "mine"])
            assert answer(daemon, approval, "approve").status == 200
            assert ended(daemon, exec_id)["exit_code"] == 0
