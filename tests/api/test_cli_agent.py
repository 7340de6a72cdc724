"""carrel agent send: what it prints, and how it ends."""
import json
import pathlib

import pytest
from daemons import furnished_daemon as daemon  # noqa: F401

SHELL = """\
name: {name}
description: runs commands
version: "1.0"
kind: shell
approver: {approver}
settings:
  permissions:
    allow: ["shell(echo:*)", "shell(cat:*)", "shell(sh:*)", "shell(printf:*)"]
    deny: ["shell(curl:*)"]
"""
ADDER = pathlib.Path(__file__).parents[2] / "examples/agents/adder.yaml"


@pytest.fixture(scope="module", autouse=True)
def agents(daemon, tmp_path_factory):
    for name, approver in ("asked", "client"), ("reviewed", "reviewer"):
        path = tmp_path_factory.mktemp(name) / "agent.yaml"
        path.write_text(SHELL.format(name=name, approver=approver))
        assert daemon("agent", "add", path).returncode == 0
    assert daemon("agent", "add", ADDER).returncode == 0


def send(daemon, *args, **how):
    return daemon("agent", "send", *args, **how)


def test_a_command_has_its_streams_and_its_exit_code(daemon):
    r = send(daemon, "asked", "echo one; echo two >&2; sh -c 'exit 3'")
    assert (r.returncode, r.stdout, r.stderr) == (3, "one\n", "two\n")
    assert send(daemon, "asked", "printf no-newline; echo x >&2").stdout == "no-newline"
    assert send(daemon, "asked", "-", input="echo from stdin").stdout == "from stdin\n"


def test_a_context_keeps_its_files(daemon):
    assert send(daemon, "asked", "--context", "kept", "echo 42 > data/answer").returncode == 0
    assert send(daemon, "asked", "--context", "kept", "cat data/answer").stdout == "42\n"
    assert send(daemon, "asked", "--context", "other", "cat data/answer").returncode == 1


def test_lists_call_a_context_by_its_agent_and_commands_take_that(daemon, tmp_path):
    assert send(daemon, "asked", "--context", "listed", "touch data/made").returncode == 126
    name = daemon.get("/v1/workspaces/asked%2Flisted").json()["name"]
    assert daemon("snapshot", "create", "asked/listed").returncode == 0
    for words in ("ls",), ("ps", "-a"), ("approval", "ls"), ("snapshot", "ls"), ("top", "--once"):
        shown = daemon(*words).stdout
        assert "asked/listed" in shown.split() and name not in shown, shown
    approval = next(one for one in daemon.get("/v1/approvals").json()["items"] if one["workspace_name"] == name)
    assert "workspace_name   asked/listed\n" in daemon("approval", "show", approval["id"]).stdout
    # Scripts get the name, as before.
    assert name in daemon("ls", "-q").stdout.split() and f'"name":"{name}"' in daemon("ls", "-o", "json").stdout
    (tmp_path / "f").write_text("copied")
    assert daemon("cp", tmp_path / "f", "asked/listed:data").returncode == 0
    assert daemon("cp", "asked/listed:data/f", "-").stdout == "copied"


def test_what_is_asked_is_approved_and_what_is_denied_says_why(daemon):
    r = send(daemon, "asked", "--context", "kept", "touch data/made")
    assert r.returncode == 126 and "waits for an approval: touch data/made" in r.stderr, r
    hint, = (line for line in r.stderr.splitlines() if line.startswith("hint: "))
    words = hint.split()
    assert words[1:5] == ["carrel", "agent", "send", "asked"] and words[5] == "--task" and words[7] == "approve"
    assert send(daemon, *words[4:]).returncode == 0
    assert daemon("exec", "asked/kept", "--", "cat", "data/made").returncode == 0
    r = send(daemon, *words[4:])
    assert r.returncode == 125 and "has ended" in r.stderr
    r = send(daemon, "asked", "curl x")
    assert r.returncode == 126 and "was rejected" in r.stderr and "shell(curl:*)" in r.stderr
    r = send(daemon, "asked", "touch " + "x" * 5000 + " 'a\x1bb' end")
    assert r.returncode == 126 and r.stderr.splitlines()[0].endswith("x 'a\\x1bb' end"), r     # all of it is shown
    r = send(daemon, "reviewed", "touch x")
    assert r.returncode == 126 and "a reviewer answers: carrel approval approve" in r.stderr


def test_json_is_the_task_and_the_exit_code_the_same(daemon):
    r = send(daemon, "asked", "echo yes", "-o", "json")
    assert r.returncode == 0 and json.loads(r.stdout)["status"]["state"] == "TASK_STATE_COMPLETED"
    r = send(daemon, "adder", "one", "-o", "json")
    assert r.returncode == 0 and json.loads(r.stdout)["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    r = send(daemon, "asked", "sh -c 'exit 4'", "-o", "json")
    assert r.returncode == 4 and json.loads(r.stdout)["status"]["state"] == "TASK_STATE_FAILED"
    r = send(daemon, "asked", "touch x", "-o", "json")
    assert r.returncode == 126 and json.loads(r.stdout)["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"


def test_a_program_asks_and_is_answered(daemon):
    assert send(daemon, "adder", "1 2").stdout == "3\n"
    r = send(daemon, "adder", "one")
    assert r.returncode == 0 and r.stdout == "numbers only, please\n" and "waits for an answer" in r.stderr
    task = r.stderr.split()[2]
    assert send(daemon, "adder", "--task", task, "4 5").stdout == "9\n"


def test_the_log_of_a_program_that_fails_comes_before_the_error(daemon, tmp_path):
    path = tmp_path / "agent.yaml"
    path.write_text('name: broken\ndescription: fails\nversion: "1.0"\ncommand: [sh, -c, "echo no luck >&2; exit 2"]\n')
    assert daemon("agent", "add", path).returncode == 0
    r = send(daemon, "broken", "hello")
    log, error = r.stderr.splitlines()
    assert r.returncode == 125 and log == "no luck" and error.endswith("failed: the command ended with exit code 2"), r


def test_an_unknown_key_of_an_agent_lists_all_that_are_known(daemon, tmp_path):
    path = tmp_path / "agent.yaml"
    path.write_text(SHELL.format(name="keys", approver="client") + "colour: red\n")
    r = daemon("agent", "add", path)
    assert r.returncode == 125 and "line 10: unknown key 'colour'\nhint: known: name, " in r.stderr, r
    assert r.stderr.endswith(", max_tasks, push, skills, extended\n"), r


def test_a_template_that_is_not_there_is_named_with_its_line(daemon, tmp_path):
    path = tmp_path / "agent.yaml"
    path.write_text("name: templated\ndescription: x\nversion: 1.0.0\nkind: shell\n\ntemplate: nope\n")
    r = daemon("agent", "add", path)
    assert r.returncode == 125 and r.stderr == (f"carrel: {path}: line 6: template: there is no template 'nope'\n"
                                                "hint: carrel template ls lists them\n"), r


def test_a_program_replies_with_messages(daemon, tmp_path):
    program = """import json, sys
for line in sys.stdin:
    text = json.loads(line)["message"]["parts"][0]["text"]
    print(json.dumps({"message": {"parts": [{"text": "you said " + text}]}}))
    print(json.dumps({"status": "completed", "message": "bye"} if text == "end" else {"status": "input-required", "message": "more?"}), flush=True)
"""
    (tmp_path / "talker.yaml").write_text(json.dumps(
        {"name": "talker", "description": "talks", "version": "1", "command": ["python3", "-c", program]}))
    assert daemon("agent", "add", tmp_path / "talker.yaml").returncode == 0
    r = send(daemon, "talker", "one")
    assert (r.returncode, r.stdout) == (0, "you said one\nmore?\n"), r
    assert send(daemon, "talker", "--task", r.stderr.split()[2], "end").stdout == "you said end\nbye\n"


def test_unknown_agents_and_tasks(daemon):
    r = send(daemon, "nobody", "hello")
    assert r.returncode == 125 and "agent" in r.stderr
    r = send(daemon, "asked", "--task", "nothing", "approve")
    assert r.returncode == 125 and "there is no task 'nothing'" in r.stderr
    assert send(daemon, "asked").returncode == 125
    assert "argument 2 is empty" in send(daemon, "asked", "").stderr
