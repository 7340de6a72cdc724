"""carrel rm and its siblings: what is in use is asked about on a terminal, and refused elsewhere without --force."""
import contextlib

import pytest
from harness import eventually, one_line
from packages_made import plain
from rollouts import clean, deploy, left  # noqa: F401
from terminals import terminal
from workspaces import created, json_of, sh

AGENT = "name: {name}\ndescription: runs commands\nversion: '1.0'\nkind: shell\n{more}skills:\n- {{id: shell, name: Shell, description: runs, tags: [a]}}\n"


def is_there(daemon, path):
    return daemon.get(f"/v1/{path}").status == 200


@contextlib.contextmanager
def busy(daemon):
    """(name, id of the command that runs in it)"""
    with created(daemon) as name:
        done = daemon("exec", "-d", name, "--", "sleep", "600")
        assert done.returncode == 0, done
        yield name, done.stdout.strip()


@contextlib.contextmanager
def agent(daemon, tmp_path, name, more=""):
    (tmp_path / f"{name}.yaml").write_text(AGENT.format(name=name, more=more))
    done = daemon("agent", "add", tmp_path / f"{name}.yaml")
    assert done.returncode == 0, done
    try:
        yield name
    finally:
        daemon("agent", "rm", "--force", name)
        for one in daemon.get(f"/v1/workspaces?label=agent={name}").json()["items"]:
            daemon("rm", "--force", one["id"])


def test_where_commands_run_a_removal_without_force_is_refused(daemon):
    with busy(daemon) as (name, id):
        done = daemon("rm", name)
        assert (done.returncode, done.stdout) == (125, ""), done
        assert one_line(done.stderr, name, id, "sleep") == "--force removes it all the same"
        error = json_of(daemon("rm", "-o", "json", name))["error"]
        assert error["code"] == "conflict" and id in error["message"] and "--force" in error["hint"], error
        for _ in range(4):
            assert daemon("exec", "-d", name, "--", "sleep", "600").returncode == 0
        assert "and 2 more run in it" in daemon("rm", name).stderr
        assert daemon("rm", "--force", name).stdout == f"removed {name}\n"
        assert not is_there(daemon, f"workspaces/{name}")


def test_of_several_the_others_are_removed(daemon):
    with busy(daemon) as (name, id), created(daemon) as idle:
        done = daemon("rm", name, idle)
        assert (done.returncode, done.stdout) == (125, f"removed {idle}\n") and id in done.stderr, done
        assert is_there(daemon, f"workspaces/{name}") and not is_there(daemon, f"workspaces/{idle}")


def test_what_has_ended_is_no_reason_to_ask(daemon):
    with created(daemon) as name:
        id = daemon("exec", "-d", name, "--", "true").stdout.strip()
        assert daemon("wait", id).returncode == 0
        assert daemon("rm", name).stdout == f"removed {name}\n"


@pytest.mark.parametrize("answer, removed", [("y", True), ("n", False), ("", False)])
def test_on_a_terminal_it_asks(daemon, answer, removed):
    with busy(daemon) as (name, id), terminal(daemon, "rm", name) as term:
        term.expect(f"workspace '{name}': exec '{id}' .sleep. runs in it. Remove it all the same")
        term.send(f"{answer}\n")
        said = term.rest()
        assert (f"removed {name}" in said) == removed and term.process.returncode == (0 if removed else 130), said
        assert is_there(daemon, f"workspaces/{name}") != removed


def test_rest_removes_what_is_in_use(daemon):
    with busy(daemon) as (name, _):
        assert daemon.delete(f"/v1/workspaces/{name}").status == 204
        assert not is_there(daemon, f"workspaces/{name}")


def test_a_context_of_an_agent_says_whose_it_is(daemon, tmp_path):
    with agent(daemon, tmp_path, "owner"):
        assert daemon("agent", "send", "owner", "--context", "trip", "echo hi").stdout == "hi\n"
        done = daemon("rm", "owner/trip")
        assert done.returncode == 125, done
        assert one_line(done.stderr, "owner/trip", "belongs to agent 'owner'") == "--force removes it all the same"
        assert daemon("rm", "--force", "owner/trip").returncode == 0
        assert daemon("agent", "rm", "owner").stdout == "removed owner\n"


def test_an_agent_whose_task_runs_is_asked_about(daemon, tmp_path):
    with agent(daemon, tmp_path, "works"), daemon.start("agent", "send", "works", "--context", "long", "sleep 600"):
        running = "/v1/workspaces?label=agent=works&state=running"
        assert eventually(lambda: daemon.get(running).json()["items"])
        done = daemon("agent", "rm", "works")
        assert done.returncode == 125, done
        assert one_line(done.stderr, "works", "long") == "--force removes it all the same"
        assert daemon("agent", "rm", "--force", "works").stdout == "removed works\n"


def test_a_template_of_an_agent_is_asked_about(daemon, tmp_path):
    (tmp_path / "t.yaml").write_text("name: wanted\nversion: '1.0'\n")
    assert daemon("template", "add", tmp_path / "t.yaml").returncode == 0
    with agent(daemon, tmp_path, "user", "template: wanted\n"):
        done = daemon("template", "rm", "wanted")
        assert done.returncode == 125, done
        assert one_line(done.stderr, "wanted", "agent 'user'") == "--force removes it all the same"
    assert daemon("template", "rm", "wanted").stdout == "removed wanted\n"


def test_what_belongs_to_a_deployment_says_what_removes_it(clean):
    daemon = clean
    shown = deploy(daemon, plain())
    name = left(daemon)[0]["name"]
    done = daemon("rm", name)
    assert done.returncode == 125, done
    assert one_line(done.stderr, name, f"belongs to deployment '{shown['deploymentId']}'").startswith(f"carrel deployment rm {shown['deploymentId']} ")
    assert daemon("deployment", "rm", shown["deploymentId"]).returncode == 0


def test_what_belongs_to_a_tool_says_what_removes_it(daemon):
    code, tests = "def run():\n    return 1\n", "import tool\n\n\ndef test():\n    assert tool.run() == 1\n"
    made = daemon.post("/v1/tools", {"name": "one", "code": code, "tests": tests})
    assert made.status == 201 and made.json()["state"] == "active", made
    desk = daemon.get("/v1/workspaces?label=carrel.service=tools").json()["items"][0]["name"]
    done = daemon("rm", desk)
    assert done.returncode == 125, done
    assert one_line(done.stderr, desk, "belongs to tool 'one'").startswith("carrel tool rm one ")
    assert daemon("tool", "rm", "one").returncode == 0


def test_what_belongs_to_a_case_says_what_removes_it(daemon, tmp_path):
    (tmp_path / "c.yaml").write_text("id: waits\nharness: sleep 600\ngraders:\n- {type: command, run: 'true'}\n")
    with daemon.start("case", "run", "--out", tmp_path / "out", tmp_path / "c.yaml") as run:
        cell = eventually(lambda: next((one for one in daemon.get("/v1/execs").json()["items"] if one["argv"][-1] == "sleep 600"), None))
        case = daemon.get("/v1/cases").json()["items"][0]["id"]
        done = daemon("rm", cell["workspace"])
        assert done.returncode == 125, done
        assert one_line(done.stderr, f"belongs to case '{case}'").startswith(f"carrel case rm {case} ")
        done = daemon("case", "rm", case)
        assert done.returncode == 125, done
        assert one_line(done.stderr, case, "cell") == "--force removes it all the same"
        run.terminate()
        run.wait(60)
    assert eventually(lambda: not daemon.get("/v1/workspaces?label=carrel.service=cases").json()["items"])
