"""kill -9 of core while a command asks for an approval, and while the answer is written: what was acknowledged is kept, a command
that waits in the background waits on or has run, and none runs twice."""
# security: authority
import pytest
from faults import attempt, restarts
from harness import eventually
from rest import created

pytestmark = pytest.mark.needs_faults

SETTINGS = {"permissions": {"allow": ["shell(cat:*)"]}}
SCRIPT = "echo ran >>ran"


def approvals(daemon):
    return daemon.get("/v1/approvals").json()["items"]


def ask(daemon, workspace):
    return attempt(daemon, "POST", f"/v1/workspaces/{workspace}/exec", {"argv": ["sh", "-c", SCRIPT], "background": True})


def reviewer_of(daemon):
    return {"Authorization": f"Bearer {daemon.post('/v1/tokens', {'scope': 'reviewer'}).json()['text']}"}


def approve(daemon, approval, reviewer, **more):
    return attempt(daemon, "POST", f"/v1/approvals/{approval['id']}", {"decision": "approve", **more}, reviewer)


def runs(daemon, workspace):
    answer = daemon.get(f"/v1/workspaces/{workspace}/files/ran")
    return answer.body.count(b"\n") if answer.status == 200 else 0


def has_run_once(daemon, workspace, exec_id):
    get = lambda: daemon.get(f"/v1/execs/{exec_id}").json()
    assert eventually(lambda: get()["state"] == "ended"), get()
    assert get()["exit_code"] == 0 and runs(daemon, workspace) == 1, get()


@pytest.mark.parametrize("point", ["core_approval_asked", "core_exec_asked"])
def test_a_question_that_was_cut_off(make_daemon, point):
    """The client was told nothing. An exec that is there waits, and one that isn't has no open question."""
    daemon = make_daemon(env={"CARREL_FAULT": f"{point}:1"})
    with created(daemon, settings=SETTINGS) as workspace:
        with restarts(daemon):
            assert ask(daemon, workspace["name"]) is None
        reviewer = reviewer_of(daemon)
        (approval,) = approvals(daemon)
        there = daemon.get(f"/v1/execs/{approval['exec']}").status == 200
        assert approval["state"] == ("pending" if there else "expired"), approval
        assert there or point == "core_approval_asked"
        assert runs(daemon, workspace["name"]) == 0
        if there:
            assert approve(daemon, approval, reviewer).status == 200
            has_run_once(daemon, workspace["name"], approval["exec"])


@pytest.mark.parametrize("point, always", [("core_approval_answer", False), ("core_approval_rule", True), ("core_approval_ended", False)])
def test_an_answer_that_was_cut_off(make_daemon, point, always):
    """It is given, or can be given again; either way the command runs once."""
    daemon = make_daemon(env={"CARREL_FAULT": f"{point}:1"})
    with created(daemon, settings=SETTINGS) as workspace:
        reviewer = reviewer_of(daemon)
        assert ask(daemon, workspace["name"]).status == 201
        (approval,) = approvals(daemon)
        with restarts(daemon):
            assert approve(daemon, approval, reviewer, always=always) is None
        (after,) = approvals(daemon)
        assert after["state"] == ("approved" if point == "core_approval_ended" else "pending"), after
        assert approve(daemon, approval, reviewer, always=always).json()["state"] == "approved"
        has_run_once(daemon, workspace["name"], approval["exec"])
        if always:
            again = daemon.post(f"/v1/workspaces/{workspace['name']}/exec", {"argv": ["sh", "-c", SCRIPT]})
            assert again.status == 200 and again.json()["exit_code"] == 0, again


@pytest.mark.parametrize("point", ["core_exec_row", "core_exec_started"])
def test_an_approved_command_whose_start_was_cut_off(make_daemon, point):
    """The reviewer was told, or not: the approval holds, and the command has run once or not at all."""
    daemon = make_daemon(env={"CARREL_FAULT": f"{point}:1"})
    with created(daemon, settings=SETTINGS) as workspace:
        reviewer = reviewer_of(daemon)
        assert ask(daemon, workspace["name"]).status == 201
        (approval,) = approvals(daemon)
        with restarts(daemon):
            approve(daemon, approval, reviewer)
        (after,) = approvals(daemon)
        assert after["state"] == "approved"
        state = lambda: daemon.get(f"/v1/execs/{approval['exec']}").json()
        assert eventually(lambda: state()["state"] == "ended"), state()
        assert runs(daemon, workspace["name"]) <= 1
