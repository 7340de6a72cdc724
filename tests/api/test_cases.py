"""Eval cases over REST: one prepared state, cells that are forks of it, what their commands leave, and what a crash leaves."""
# security: services
import contextlib
import io
import json
import tarfile

import pytest
from daemons import furnished_daemon as daemon, make_furnished as make_daemon  # noqa: F401
from harness import eventually
from rest import Events, problem

ENDED = {"passed", "failed", "canceled"}
PLAIN = "id: plain\nharness: echo two >> a.txt\ngraders:\n- {type: command, run: grep -q two a.txt}\n"


@contextlib.contextmanager
def case(daemon, yaml, files=None, **more):
    answer = daemon.post("/v1/cases", {"yaml": yaml, **more})
    assert answer.status == 201, answer
    made = answer.json()
    assert answer.headers["Location"] == f"/v1/cases/{made['id']}"
    if files:
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w") as archive:
            for name, text in files.items():
                info = tarfile.TarInfo(name)
                info.size = len(text)
                archive.addfile(info, io.BytesIO(text.encode()))
        sent = daemon.request("PUT", f"/v1/workspaces/{made['workspace']}/archive", data.getvalue(), {"Content-Type": "application/octet-stream"})
        assert sent.status == 204, sent
    try:
        yield made
    finally:
        assert daemon.delete(f"/v1/cases/{made['id']}").status in (204, 404)
        assert workspaces(daemon, f"carrel.case={made['id']}") == []


def workspaces(daemon, label="carrel.service=cases"):
    return [one["name"] for one in daemon.get(f"/v1/workspaces?label={label}").json()["items"]]


def start(daemon, made, **body):
    answer = daemon.post(f"/v1/cases/{made['id']}/cells", body)
    assert answer.status == 201, answer
    return answer.json()["id"]


def end(daemon, cell):
    found = []
    assert eventually(lambda: found.append(daemon.get(f"/v1/cells/{cell}").json()) or found[-1]["state"] in ENDED), found[-1]
    return found[-1]


def run(daemon, yaml, **more):
    with case(daemon, yaml, **more) as made:
        return end(daemon, start(daemon, made))


def test_a_cell_is_a_fork_of_what_was_prepared(daemon):
    yaml = """
id: fork
setup: {run: [mkdir data, "echo one > data/a.txt"]}
harness: {command: "cat data/a.txt given.txt; echo two >> data/a.txt", timeout: 1m}
graders:
- {type: command, run: "grep -q two data/a.txt"}
- {type: tests, name: hidden, files: {tests/test_a.py: "import unittest\\nclass A(unittest.TestCase):\\n  def test(self): assert 1\\n"}, run: python3 -m unittest discover -s tests}
env: {COLOUR: blue, API_TOKEN: hidden}
"""
    with case(daemon, yaml, {"given.txt": "given\n"}) as made:
        assert made["state"] == "created" and made["name"] == "fork" and made["cells"] == 0
        events = Events(daemon, "/v1/events")
        ids = [start(daemon, made, repeat=n) for n in (1, 2)]
        for n, cell in enumerate((end(daemon, one) for one in ids), 1):
            assert (cell["state"], cell["reason"], cell["repeat"]) == ("passed", None, n), cell
            assert [step["type"] for step in cell["steps"]] == ["harness", "command", "tests"]
            assert cell["steps"][0]["output"] == "one\ngiven\n"       # the other cell has changed nothing
            assert "+two" in cell["diff"] and "test_a" not in cell["diff"] and "given" not in cell["diff"]
            assert cell["variables"]["COLOUR"] == "blue" and cell["variables"]["CARREL_REPEAT"] == str(n)
            assert cell["variables"]["API_TOKEN"] is None and "PATH" in cell["variables"]
            assert cell["duration_ms"] > 0 and cell["ended_at"] >= cell["started_at"]
        assert eventually(lambda: workspaces(daemon) == [f"case-{made['id']}"])     # those of the cells are gone
        came = [event["event"] for event in events.until("cell.passed")]
        assert came[:3] == ["cell.waiting", "case.preparing", "workspace.warm"] or "case.ready" in came
        events.close()
        shown = daemon.get(f"/v1/cases/{made['id']}").json()
        assert shown["state"] == "ready" and shown["cells"] == 2 and len(shown["steps"]) == 2
        listed = daemon.get(f"/v1/cases/{made['id']}/cells?limit=1").json()
        assert [one["id"] for one in listed["items"]] == ids[1:] and listed["next_cursor"] and listed["items"][0]["steps"] == []
        assert daemon.get(f"/v1/cases/{made['id']}/cells?cursor={listed['next_cursor']}").json()["items"][0]["id"] == ids[0]
        assert made["id"] in [one["id"] for one in daemon.get("/v1/cases").json()["items"]]
        assert 'carrel_cells_ended_total{state="passed"}' in daemon.get("/metrics").body.decode()
    problem(daemon.get(f"/v1/cases/{made['id']}"), 404, "not_found")
    problem(daemon.get(f"/v1/cells/{ids[0]}"), 404, "not_found")


@pytest.mark.once
@pytest.mark.parametrize("yaml, reason, words", [
    ("id: a\nharness: exit 3\ngraders: [{type: command, run: 'true'}]", "harness", "exit code 3"),
    ("id: a\nharness: sleep 100\ngraders: [{type: command, run: 'true'}]", "harness", "timeout"),
    ("id: a\nharness: 'true'\ngraders: [{type: command, run: 'false'}]", "grader", None),
    ("id: a\nharness: 'true'\ngraders: [{type: command, run: sleep 100, timeout: 1s}]", "grader", None),
    ("id: a\nharness: 'true'\ngraders: [{type: pytest}]\nsetup: {run: [exit 4]}", "case", "exit code 4"),
    ("id: a\nharness: 'true'\ngraders: [{type: pytest}]\nenvironment: {requirements: [no-such-package-of-carrel]}", "case", "no-such-package-of-carrel"),
    ("id: a\nharness: 'true'\ngraders: [{type: pytest}]\nenvironment: {install: editable}\nsetup: {run: ['true']}", "case", "editable"),
], ids=["harness", "harness-hangs", "grader", "grader-hangs", "setup", "install", "editable"])
def test_a_failure_fails_that_cell_with_its_reason(daemon, yaml, reason, words):
    cell = run(daemon, yaml.replace("sleep 100\ng", "{command: sleep 100, timeout: 1s}\ng"))
    assert (cell["state"], cell["reason"]) == ("failed", reason), cell
    assert words is None or words in cell["error"]
    if reason == "case":      # the log of the preparation is that of the cell
        assert cell["steps"] and not cell["steps"][-1]["passed"] and cell["steps"][-1]["type"] in ("setup", "install", "editable"), cell
    if "hang" in yaml or "sleep" in yaml:
        assert cell["steps"][-1]["reason"] == "timeout" and cell["steps"][-1]["exit_code"] == 124


@pytest.mark.once
def test_all_graders_run_after_one_has_failed(daemon):
    cell = run(daemon, "id: a\nharness: 'true'\ngraders: [{type: command, run: 'false'}, {type: command, name: second, run: echo yes}]")
    assert [(step["name"], step["passed"]) for step in cell["steps"]] == [("harness", True), ("command", False), ("second", True)]


@pytest.mark.once
def test_much_output_and_large_diffs_are_cut(daemon):
    cell = run(daemon, "id: a\nharness: seq 1000000; seq 100000 > numbers; head -c 9 /dev/zero\ngraders: [{type: command, run: 'true'}]")
    step = cell["steps"][0]
    assert cell["state"] == "passed" and step["truncated"] and step["output"].startswith("1\n2\n") and "1000000\n" in step["output"]
    assert "bytes are left out" in step["output"] and len(step["output"]) < 66000
    assert cell["diff_truncated"] and 90000 < len(cell["diff"]) < 100000


@pytest.mark.once
@pytest.mark.parametrize("yaml, words", [
    ("id: a\nharness: x\ngrader: []\n", "line 3: unknown key 'grader'"),
    ("id: a\nharness: x\ngraders:\n- {type: command, run: x}\n- type: pytest\n  pths: [x]\n", "line 6: unknown key 'pths'"),
    ("id: a\nharness: x\nenvironment:\n  instal: editable\ngraders: [{type: pytest}]\n", "line 4: environment: unknown key 'instal'"),
    ("id: a\nharness: x\ngraders: []\n", "line 3: graders"),
    ("id: a\nharness: x\ngraders: [{type: judge}]\n", "line 3"),
    ("id: a\nharness: x\ngraders:\n- {type: command}\n", "line 4"),
    ("id: a\nharness: x\ngraders:\n- {type: pytest, run: x}\n", "run: not of a grader of type pytest"),
    ("id: ../a\nharness: x\ngraders: [{type: pytest}]\n", "line 1: id: '../a' is not the id of a case"),
    ("id: a\ngraders: [{type: pytest}]\n", "harness: missing"),
    ("id: a\nharness: {command: x, timeout: 0s}\ngraders: [{type: pytest}]\n", "line 2: harness.timeout"),
    ("harness: x\ngraders: [{type: pytest}]\n", "id"),
    ("id: a\nharness: x\ngraders: [{type: tests, files: {../x: text}}]\n", "'../x' is not a relative, normal path"),
    ("id: a\nharness: x\ngraders: [{type: pytest}]\nenvironment: {requirements: ['-e .']}\n", "line 4: environment.requirements"),
    ("id: [\n", "line"), ("", "a case is a map of keys"), ("- 1\n", "a case is a map of keys"),
])
def test_wrong_files_are_refused_by_line_and_key(daemon, yaml, words):
    for check in (True, False):
        body = problem(daemon.post("/v1/cases", {"yaml": yaml or " ", "file": "wrong.yaml", "check": check}), 400, "invalid")
        assert body["detail"].startswith("wrong.yaml: ") and words in body["detail"], body
    assert workspaces(daemon) == []


def test_a_key_makes_one_case_and_one_cell(daemon):
    body, key = {"yaml": PLAIN, "file": "a.yaml"}, {"Idempotency-Key": "case-of-a-test"}
    made = daemon.post("/v1/cases", body, headers=key)
    again = daemon.post("/v1/cases", body, headers=key)
    assert made.status == again.status == 201 and made.json() == again.json() and made.headers["Location"] == again.headers["Location"]
    problem(daemon.post("/v1/cases", {**body, "keep": True}, headers=key), 409, "conflict", "Idempotency-Key")
    path = f"/v1/cases/{made.json()['id']}"
    cells = [daemon.post(f"{path}/cells", {"repeat": 3}, headers=key) for _ in range(2)]
    assert cells[0].status == cells[1].status == 201 and cells[0].json() == cells[1].json()
    other = daemon.post(f"{path}/cells", {"repeat": 3}, headers={"Idempotency-Key": "another"})
    assert other.json()["id"] != cells[0].json()["id"] and len(daemon.get(f"{path}/cells").json()["items"]) == 2
    for cell in (cells[0], other):
        assert end(daemon, cell.json()["id"])["state"] == "passed"
    assert len([one for one in daemon.get("/v1/cases").json()["items"] if one["id"] == made.json()["id"]]) == 1
    checks = [daemon.post("/v1/cases", {**body, "check": True}, headers={"Idempotency-Key": "check"}) for _ in range(2)]
    assert [one.status for one in checks] == [200, 200]
    assert daemon.delete(path).status == 204 and workspaces(daemon) == []


@pytest.mark.once
def test_a_case_that_nobody_uses_is_removed(own_daemon):
    daemon = own_daemon
    events = Events(daemon, "/v1/events")
    kept = daemon.post("/v1/cases", {"yaml": PLAIN, "keep": True, "ttl": "1s"}).json()
    stays = daemon.post("/v1/cases", {"yaml": PLAIN}).json()
    for seconds in (1, 4, 16):      # enough to ask for a cell
        made = daemon.post("/v1/cases", {"yaml": PLAIN.replace("two >>", f"two; sleep {seconds + 1}; echo two >>"), "ttl": f"{seconds}s"}).json()
        assert (made["ttl_ms"], stays["ttl_ms"]) == (1000 * seconds, 3600000)
        if (answer := daemon.post(f"/v1/cases/{made['id']}/cells", {})).status == 201:
            break
        assert events.until("case.removed")[-1]["data"]["case"] == made["id"], answer
    cell = answer.json()["id"]      # it is used for longer than it may be unused
    assert events.until("cell.passed")[-1]["data"]["cell"] == cell
    assert events.until("case.removed")[-1]["data"]["case"] == made["id"]
    problem(daemon.get(f"/v1/cells/{cell}"), 404, "not_found")
    short = daemon.post("/v1/cases", {"yaml": PLAIN, "ttl": "2s"}).json()
    daemon.stop_serving()           # its time may pass meanwhile
    daemon.start_serving()
    assert eventually(lambda: {one["id"] for one in daemon.get("/v1/cases").json()["items"]} == {kept["id"], stays["id"]}), short
    assert eventually(lambda: set(workspaces(daemon)) == {f"case-{one['id']}" for one in (kept, stays)})
    problem(daemon.post("/v1/cases", {"yaml": PLAIN, "ttl": "0s"}), 400, "invalid", "ttl")


@pytest.mark.once
def test_a_check_makes_nothing(daemon):
    answer = daemon.post("/v1/cases", {"yaml": PLAIN + "source: ../x\n", "check": True, "harness": "other"})
    assert answer.status == 200 and answer.json()["source"] == "../x" and answer.json()["workspace"] is None
    assert daemon.get("/v1/cases").json()["items"] == [] and workspaces(daemon) == []


@pytest.mark.once
def test_a_harness_is_replaced_and_workspaces_are_kept(daemon):
    with case(daemon, PLAIN, harness="echo other; echo two > a.txt", keep=True) as made:
        cell = end(daemon, start(daemon, made))
        assert cell["state"] == "passed" and cell["steps"][0]["output"] == "other\n"
        assert daemon.get(f"/v1/workspaces/{cell['workspace']}/files/a.txt").body == b"two\n"
        assert len(workspaces(daemon)) == 2


def test_a_removal_cancels_what_runs(daemon):
    with case(daemon, "id: a\nharness: sleep 1000\ngraders: [{type: pytest}]") as made:
        events = Events(daemon, "/v1/events")
        start(daemon, made)
        events.until("cell.harness")
        assert daemon.delete(f"/v1/cases/{made['id']}").status == 204
        assert events.until("cell.canceled")[-1]["data"]["reason"] == "removed"
        events.close()
        assert workspaces(daemon) == []
    with case(daemon, "id: a\nsetup: {run: [sleep 1000]}\nharness: x\ngraders: [{type: pytest}]") as made:
        start(daemon, made)
        assert eventually(lambda: daemon.get(f"/v1/cases/{made['id']}").json()["state"] == "preparing")
        assert daemon.delete(f"/v1/cases/{made['id']}").status == 204


@pytest.mark.once
def test_only_those_who_may_use_workspaces_run_cells(daemon):
    tokens = [daemon.post("/v1/tokens", {"scope": scope}).json() for scope in ("reviewer", "user")]
    reviewer, user = ({"Authorization": f"Bearer {token['text']}"} for token in tokens)
    problem(daemon.post("/v1/cases", {"yaml": PLAIN}, headers=reviewer), 403, "denied", "use")
    with case(daemon, PLAIN) as made:
        problem(daemon.post(f"/v1/cases/{made['id']}/cells", {}, headers=reviewer), 403, "denied")
        problem(daemon.delete(f"/v1/cases/{made['id']}", headers=reviewer), 403, "denied")
        assert daemon.get("/v1/cases", headers=reviewer).status == 200
        answer = daemon.post(f"/v1/cases/{made['id']}/cells", {}, headers=user)
        assert answer.status == 201 and end(daemon, answer.json()["id"])["state"] == "passed"
        bound = daemon.post("/v1/tokens", {"workspace": made["workspace"]}).json()
        headers = {"Authorization": f"Bearer {bound['text']}"}
        for path in ("/v1/cases", f"/v1/cases/{made['id']}", f"/v1/cells/{answer.json()['id']}"):
            problem(daemon.get(path, headers=headers), 403, "denied", "bound")
    for token in tokens:
        daemon.delete(f"/v1/tokens/{token['id']}")
    recorded = [json.loads(line) for line in daemon("audit", "-o", "json").stdout.splitlines()]
    assert {"case.create", "cell.start", "case.remove"} <= {line["type"] for line in recorded}


def test_a_killed_core_ends_cells_by_name_and_leaves_nothing(own_daemon):
    daemon = own_daemon
    with case(daemon, "id: a\nharness: test $CARREL_REPEAT = 1 || sleep 1000\ngraders: [{type: command, run: 'true'}]") as made, \
            case(daemon, "id: b\nsetup: {run: [sleep 1000]}\nharness: x\ngraders: [{type: pytest}]") as slow:
        first = end(daemon, start(daemon, made))
        events = Events(daemon, "/v1/events")
        second, third = start(daemon, made, repeat=2), start(daemon, slow)
        events.until("cell.harness")
        assert eventually(lambda: daemon.get(f"/v1/cases/{slow['id']}").json()["state"] == "preparing")
        events.close()
        daemon.kill_core()
        for cell in (second, third):
            ended = daemon.get(f"/v1/cells/{cell}").json()
            assert (ended["state"], ended["reason"], ended["workspace"]) == ("canceled", "restarted", None), ended
        assert daemon.get(f"/v1/cells/{first['id']}").json() == first
        assert daemon.get(f"/v1/cases/{slow['id']}").json()["reason"] == "restarted"
        assert eventually(lambda: len(workspaces(daemon)) == 2)         # those that are prepared
        again = end(daemon, start(daemon, made))
        assert again["state"] == "passed"                               # what was prepared still serves
        daemon.restart()
        assert daemon.get(f"/v1/cells/{again['id']}").json() == again
