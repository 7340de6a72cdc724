"""The REST doors: workspaces, idempotency, problems, events."""
# security: doors
import base64
import concurrent.futures
import contextlib
import hashlib
import json
import re
import subprocess

import pytest

from harness import TREE, eventually
from rest import Events, created, problem, quoted, workspace  # noqa: F401

pytestmark = pytest.mark.once     # what it says of requests is the same for every user


# ---- workspaces ----

def test_a_workspace_is_what_was_asked_for(daemon):
    with created(daemon, name="all-of-it", labels={"team": "a b", "x/y": ""}, env={"K": "v"}, ttl="7d", idle_timeout_ms=60000,
                 limits={"memory": "256M", "cpus": 0.5, "cpu_time": "30s", "timeout_ms": 5000, "pids": 50, "fds": 200, "disk": 1 << 28,
                         "tmp": "32M", "output": "1M"}, network={"mode": "none"}, template=None) as workspace:
        assert workspace["name"] == "all-of-it" and workspace["state"] == "ready"
        assert workspace["labels"] == {"team": "a b", "x/y": ""} and workspace["expires_at"] > workspace["created_at"]
        assert workspace["env"] == {"K": "v"} and workspace["idle_timeout_ms"] == 60000
        assert workspace["limits"] == {
            "memory_bytes": 256 << 20, "disk_bytes": 1 << 28, "tmp_bytes": 32 << 20, "pids": 50, "fds": 200, "cpus": 0.5,
            "cpu_time_ms": 30000, "timeout_ms": 5000, "output_bytes": 1 << 20, "mechanism": None}
        for name in ("all-of-it", workspace["id"]):
            assert daemon.get(f"/v1/workspaces/{name}").json() == workspace
        daemon.request("PUT", "/v1/workspaces/all-of-it/files/big", b"x" * 100000)
        assert daemon.get("/v1/workspaces/all-of-it?measure").json()["disk_usage_bytes"] >= 100000


@pytest.mark.parametrize("limits", [{}, {"memory": "300M", "cpus": 1.25, "cpu_time": "1m", "timeout": "1h", "output": 12345, "disk": "70M"}])
def test_the_limits_that_are_shown_can_be_asked_for(daemon, limits):
    with created(daemon, limits=limits) as first:
        assert daemon.post(f"/v1/workspaces/{first['id']}/exec", {"argv": ["true"]}).status == 200    # mechanism is a text now
        shown = daemon.get(f"/v1/workspaces/{first['id']}").json()["limits"]
        assert shown["mechanism"]
        with created(daemon, limits=shown) as second:
            # One that was made ahead has a mechanism at once.
            assert second["limits"].pop("mechanism") in (None, shown.pop("mechanism")) and second["limits"] == shown
    problem(daemon.post("/v1/workspaces", {"limits": {"memory": "1G", "memory_bytes": 1 << 30}}), 400, "invalid", "memory_bytes")


def test_without_a_body_there_is_one_of_defaults_with_a_name_of_its_own(daemon):
    answer = daemon.post("/v1/workspaces")
    workspace = answer.json()
    assert answer.status == 201 and answer.headers["Location"] == f"/v1/workspaces/{workspace['id']}"
    assert workspace["limits"]["memory_bytes"] == 2 << 30 and workspace["name"]
    assert daemon.delete(answer.headers["Location"]).status == 204


def test_a_name_is_taken_once(daemon):
    with created(daemon, name="once", labels={"context_id": "ctx/1"}) as once:
        problem(daemon.post("/v1/workspaces", {"name": "once"}), 409, "conflict", "once", "choose another name")
        problem(daemon.post("/v1/workspaces", {"labels": {"context_id": "ctx/1"}}), 409, "conflict", "ctx/1")
        problem(daemon.post("/v1/workspaces", {"labels": {"context_id": "once"}}), 409, "conflict", "'once'", "already the name")
        problem(daemon.post("/v1/workspaces", {"labels": {"context_id": once["id"]}}), 409, "conflict", once["id"])
        problem(daemon.post("/v1/workspaces", {"labels": {"context_id": ""}}), 400, "invalid", "context_id")
        problem(daemon.request("PATCH", "/v1/workspaces/once", {"labels": {"context_id": ""}}), 400, "invalid", "context_id")
        problem(daemon.request("PATCH", "/v1/workspaces/once", {"labels": {"context_id": None}}), 400, "invalid", "context_id")


@pytest.mark.parametrize("context_id", ["a/b", "Ümläut ☃ 100%", "..", "?x=1#y", " ", "x" * 900])
def test_a_context_id_finds_its_workspace_whatever_its_characters(daemon, context_id):
    with created(daemon, labels={"context_id": context_id}) as workspace:
        path = f"/v1/workspaces/{quoted(context_id)}"
        assert daemon.get(path).json()["id"] == workspace["id"]
        result = daemon.post(path + "/exec", {"argv": ["echo", "ok"]}).json()
        assert result["stdout"] == "ok\n"


def test_labels_and_lifetimes_are_changed(daemon, workspace):
    path = f"/v1/workspaces/{workspace}"
    change = lambda body: daemon.request("PATCH", path, body)
    assert change({"labels": {"a": "1", "b": "2"}, "ttl": "1h"}).json()["labels"] == {"a": "1", "b": "2"}
    changed = change({"labels": {"a": None, "c": "3"}}).json()
    assert changed["labels"] == {"b": "2", "c": "3"} and changed["expires_at"]
    assert change({"ttl": None}).json()["expires_at"] is None
    assert change({}).json()["labels"] == {"b": "2", "c": "3"}
    problem(change({"name": "new"}), 400, "invalid", "unknown member 'name'")
    problem(change({"labels": {"-": "x"}}), 400, "invalid", "'-'")


def test_limits_are_changed_when_nothing_runs(daemon):
    with created(daemon, limits={"memory": "64M", "disk": "4M", "timeout": "900s"}) as workspace:
        path = f"/v1/workspaces/{workspace['id']}"
        run = lambda command, **more: daemon.post(path + "/exec", {"command": command, **more}).json()
        fill = "dd if=/dev/zero of=f bs=1M count=%d && rm f"
        assert run(fill % 1000)["reason"] == "disk_limit"
        is_counted = workspace["disk_limit_mechanism"] == "counted"
        if not is_counted:
            problem(daemon.request("PATCH", path, {"limits": {"disk": "8M"}}), 409, "conflict", "can't be changed after creation")
        job = run("sleep 100", background=True)
        problem(daemon.request("PATCH", path, {"limits": {"fds": 99}}), 409, "conflict", workspace["name"])
        assert daemon.post(f"/v1/execs/{job['id']}/signal", {"signal": "KILL"}).status == 204
        assert daemon.get(f"/v1/execs/{job['id']}/output?follow").status == 200
        assert run("rm -f f; ulimit -n")["stdout"] == "1024\n"
        change = {"limits": {"memory": "256M", "fds": 99, **({"disk": "8M"} if is_counted else {})}}
        # It may just be measured.
        assert eventually(lambda: daemon.request("PATCH", path, change).status == 200)
        limits = daemon.get(path).json()["limits"]
        assert (limits["memory_bytes"], limits["tmp_bytes"], limits["timeout_ms"]) == (256 << 20, 128 << 20, 900_000)
        assert run(fill % 6)["reason"] == ("exited" if is_counted else "disk_limit")
        assert run("ulimit -n")["stdout"] == "99\n"
        problem(daemon.request("PATCH", path, {"limits": {"memory": "1k"}}), 400, "invalid", "memory")
        assert daemon.get(path).json()["limits"]["memory_bytes"] == 256 << 20


def test_lists_are_filtered_and_paged(daemon):
    with contextlib.ExitStack() as stack:
        made = [stack.enter_context(created(daemon, labels={"page": "yes", "n": str(n % 2)}))["id"] for n in range(5)]
        get = lambda query: daemon.get(f"/v1/workspaces?{query}")
        ids = lambda answer: [item["id"] for item in answer.json()["items"]]
        newest_first = made[::-1]
        assert ids(get("label=page")) == ids(get("label=page%3Dyes")) == newest_first
        assert ids(get("label=page=yes&label=n=1")) == [newest_first[1], newest_first[3]]
        assert ids(get("label=page=no")) == [] == ids(get("label=page&state=failed"))
        first = get("label=page&limit=2")
        second = get(f"label=page&limit=2&cursor={first.json()['next_cursor']}")
        third = get(f"label=page&limit=2&cursor={second.json()['next_cursor']}")
        assert ids(first) + ids(second) + ids(third) == newest_first and third.json()["next_cursor"] is None
        problem(get("cursor=nonsense"), 400, "invalid")
        for wrong in ("limit=0", "limit=1001", "limit=x", "state=gone", "label==x", "lable=page", "limit=1&limit=2", "label=%ff"):
            problem(get(wrong), 400, "invalid")
        assert problem(get("lable=x"), 400, "invalid")["hint"] == "did you mean 'label'?"


def test_a_removed_one_says_that_it_was_there(daemon):
    with created(daemon, name="short-lived"):
        pass
    problem(daemon.get("/v1/workspaces/short-lived"), 404, "not_found", "short-lived", "removed")
    problem(daemon.get("/v1/workspaces/never-was"), 404, "not_found", "never-was")


def test_an_unknown_mode_of_the_network_is_refused_by_name(daemon):
    problem(daemon.post("/v1/workspaces", {"network": {"mode": "wide"}}), 400, "invalid", "network.mode", "wide")


@pytest.mark.parametrize("body, words", [
    ({"limits": {"memory": "12X"}}, ["limits.memory: '12X' is not a size; try 512M or 1G"]),
    ({"limits": {"memory": 1}}, ["limits.memory: 1 bytes are not from 4.0M"]),
    ({"ttl": -30}, ["ttl: -30 seconds are not from"]), ({"ttl": True}, ["ttl: must be a duration"]),
    ({"naem": "x"}, ["unknown member 'naem'", "did you mean 'name'?"]),
    ({"name": "A"}, ["name:"]), ({"name": ""}, ["name:"]), ({"name": "a" * 65}, ["name:"]), ({"name": "a\0b"}, ["name:", "NUL"]),
    ({"name": 5}, ["name: must be text, not a number"]),
    ({"labels": {"k": 1}}, ["labels.k: must be text, not a number"]),
    ({"python": {"packages": "requests"}}, ["python.packages: must be a list of texts, not text"]),
    ({"environment": "no-such"}, None),
])
def test_a_body_that_is_wrong_is_told_exactly_why(daemon, body, words):
    answer = daemon.post("/v1/workspaces", body)
    if words is None:
        problem(answer, 404, "not_found", "no-such")
    else:
        problem(answer, 400, "invalid", *words)


# ---- JSON and HTTP ----

@pytest.mark.parametrize("body, status", [
    (b"{", 400), (b"[]", 400), (b"null", 400), (b'{"name":"a","name":"b"}', 400), (b'{"name":"\xff"}', 400), (b'{"name":"\\ud800"}', 400),
    (b'{"limits":' * 100 + b"{}" + b"}" * 100, 413), (b'{"ttl_ms":1e400}', 400), (b'{"ttl_ms":99999999999999999999}', 400), (b"{} {}", 400)])
def test_json_is_read_strictly(daemon, body, status):
    answer = daemon.request("POST", "/v1/workspaces", body, {"Content-Type": "application/json"})
    problem(answer, status, "limit" if status == 413 else "invalid")


def test_a_body_has_its_type(daemon):
    for headers in ({}, {"Content-Type": "text/plain"}, {"Content-Type": "application/x-www-form-urlencoded"}):
        problem(daemon.request("POST", "/v1/workspaces", b"{}", headers), 415, "invalid", "application/json")
    answer = daemon.request("POST", "/v1/workspaces", b"{}", {"Content-Type": "Application/JSON; charset=utf-8"})
    assert answer.status == 201 and daemon.delete(answer.headers["Location"]).status == 204


def test_a_body_has_a_maximum(daemon):
    body = json.dumps({"name": "x" * (17 << 20)}).encode()
    with contextlib.closing(daemon.connection()) as connection:
        with contextlib.suppress(OSError):
            connection.request("POST", "/v1/workspaces", body, {"Content-Type": "application/json"})
        assert connection.getresponse().status == 413
    problem(daemon.request("GET", "/v1/workspaces", {}), 413, "limit", "takes no body")


def test_other_methods_and_paths_are_named(daemon):
    answer = daemon.request("PUT", "/v1/workspaces")
    problem(answer, 405, "invalid", "PUT")
    assert answer.headers["Allow"] == "POST, GET, HEAD"
    for path in ("/", "/v2/workspaces", "/v1/workspaces/", "/v1/approval", "/v1/workspaces/x/approve", "/healthz/"):
        problem(daemon.get(path), 404, "not_found")
    problem(daemon.get("/v1/workspaces/%zz"), 400, "invalid")
    problem(daemon.get("/healthz?x=1"), 400, "invalid", "unknown query parameter 'x'")
    head = daemon.request("HEAD", "/healthz")
    assert head.status == 200 and head.body == b"" and int(head.headers["Content-Length"]) > 0


def test_a_request_id_is_kept(daemon):
    answer = daemon.get("/v1/workspaces/nobody", headers={"X-Request-Id": "mine-1"})
    assert problem(answer, 404, "not_found")["request_id"] == "mine-1"


@pytest.mark.parametrize("request_id", ["x", "A.b_C-9", "zzzzzzzzzzzzzzzzzzzz"])
def test_a_request_id_of_a_client_goes_through_every_role(daemon, request_id):
    core, headers = daemon.core_pid(), {"X-Request-Id": request_id}
    answer = daemon.post("/v1/workspaces", {}, headers=headers)
    assert answer.status == 201, answer
    path = answer.headers["Location"]
    assert daemon.post(path + "/exec", {"argv": ["true"]}, headers=headers).status == 200
    assert daemon.delete(path, headers=headers).status == 204
    assert daemon.core_pid() == core


@pytest.mark.needs_root
def test_another_user_is_refused(daemon):
    # The socket's mode keeps others out; this is about one that is reachable all the same.
    script = f"import sys; sys.path.insert(0, {str(TREE / 'tests')!r}); from daemons import Connection; " \
             "c = Connection(sys.argv[1]); c.request('GET', sys.argv[2]); s = c.sock.dup(); r = c.getresponse(); " \
             "print(r.status, r.getheader('Connection'), r.read().decode()); print(s.recv(1) == b'')"
    directories = [daemon.socket, daemon.socket.parent, daemon.socket.parent.parent]
    modes = [path.stat().st_mode & 0o777 for path in directories]
    try:
        for path in directories:
            path.chmod(0o777)
        for target in ("/v1/workspaces", "/healthz"):
            done = subprocess.run(["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups", "--", "/usr/bin/python3", "-B", "-c",
                                   script, daemon.socket, target], capture_output=True, text=True, timeout=120)
            head, _, end = done.stdout.splitlines()  # the body ends with a newline
            status, connection, body = head.split(" ", 2)
            assert connection == "close" and end == "True", done
            assert status == "403" and json.loads(body)["code"] == "denied" and "12345" in body, done
    finally:
        for path, mode in zip(directories, modes):
            path.chmod(mode)


def test_a_hint_is_a_route_over_rest_and_a_command_at_the_command_line(daemon):
    assert daemon.get("/v1/workspaces/nobody").json()["hint"] == "GET /v1/workspaces lists them"
    assert daemon("info", "nobody").stderr.splitlines()[1] == "hint: carrel ls lists them"
    assert daemon.get("/v1/snapshots/nobody").json()["hint"] == "GET /v1/snapshots lists their ids"


def test_the_reference_is_one_page_that_loads_nothing(daemon):
    answer = daemon.get("/docs")
    assert answer.status == 200 and answer.headers["Content-Type"] == "text/html; charset=utf-8"
    policy = dict(rule.split(" ", 1) for rule in answer.headers["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == "'none'"
    page = answer.body.decode()
    for tag, rule in (("style", "style-src"), ("script", "script-src")):
        [text] = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.S)
        assert policy[rule] == f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
    [document] = re.findall('<script type="application/json" id="openapi">(.*?)</script>', page, re.S)
    assert json.loads(document) == daemon.get("/openapi.json").json() and not re.search(r'(src|href)="(?!/openapi.json|#)', page)


# ---- idempotency ----

def test_a_key_gives_one_answer(daemon):
    post = lambda body, key="key-1": daemon.post("/v1/workspaces", body, headers={"Idempotency-Key": key})
    first = post({"labels": {"k": "1"}})
    try:
        for _ in range(3):
            again = post({"labels": {"k": "1"}})
            assert (again.status, again.body, again.headers["Location"]) == (201, first.body, first.headers["Location"])
        problem(post({"labels": {"k": "2"}}), 409, "conflict", "Idempotency-Key")
        other = post({"labels": {"k": "1"}}, "key-2")
        assert other.json()["id"] != first.json()["id"] and daemon.delete(other.headers["Location"]).status == 204
        for key in ("", "x" * 256, "a\tb"):
            problem(post({}, key), 400, "invalid", "Idempotency-Key")
    finally:
        assert daemon.delete(first.headers["Location"]).status == 204


def test_a_key_that_is_being_worked_on_is_waited_for(daemon):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: daemon.post("/v1/workspaces", {"labels": {"race": "1"}}, headers={"Idempotency-Key": "race"}), range(8)))
    assert len({answer.body for answer in answers}) == 1 and {answer.status for answer in answers} == {201}
    assert len(daemon.get("/v1/workspaces?label=race").json()["items"]) == 1
    assert daemon.delete(answers[0].headers["Location"]).status == 204


def test_a_key_of_a_failure_may_be_used_again(daemon):
    headers = {"Idempotency-Key": "fails"}
    body = {"name": "wanted-name"}
    with created(daemon, name="wanted-name"):
        problem(daemon.post("/v1/workspaces", body, headers=headers), 409, "conflict")
    answer = daemon.post("/v1/workspaces", body, headers=headers)
    assert answer.status == 201 and daemon.delete(answer.headers["Location"]).status == 204


def test_a_background_exec_starts_once_for_its_key(daemon, workspace):
    path, headers = f"/v1/workspaces/{workspace}/exec", {"Idempotency-Key": "bg"}
    body = {"command": "echo x >>count; sleep 60", "background": True}
    first, second = (daemon.post(path, body, headers=headers) for _ in range(2))
    assert first.status == second.status == 201 and first.body == second.body
    assert eventually(lambda: daemon.get(f"/v1/workspaces/{workspace}/files/count").body == b"x\n")
    assert len(daemon.get(f"/v1/workspaces/{workspace}/execs").json()["items"]) == 1


def test_a_captured_exec_runs_once_for_its_key(daemon, workspace):
    path, headers = f"/v1/workspaces/{workspace}/exec", {"Idempotency-Key": "fg"}
    body = {"command": "echo x >>count; while [ ! -e go ]; do sleep 0.02; done; echo done; exit 3"}
    count = lambda: daemon.get(f"/v1/workspaces/{workspace}/files/count").body
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        # One whose client goes, and two that come while it runs.
        with contextlib.closing(daemon.connection()) as gone:
            gone.request("POST", path, json.dumps(body), {"Content-Type": "application/json", **headers})
            assert eventually(lambda: count() == b"x\n")
        answers = [pool.submit(daemon.post, path, body, headers=headers) for _ in range(2)]
        assert daemon.request("PUT", f"/v1/workspaces/{workspace}/files/go", b"").status == 201
        answers = [answer.result() for answer in answers]
    answers.append(daemon.post(path, body, headers=headers))      # and one after it
    assert {answer.body for answer in answers} == {answers[0].body} and {answer.status for answer in answers} == {200}
    assert (answers[0].json()["stdout"], answers[0].json()["exit_code"]) == ("done\n", 3) and count() == b"x\n"
    problem(daemon.post(path, {"command": "true"}, headers=headers), 409, "conflict", "another body")
    problem(daemon.post(path, body, headers={**headers, "Accept": "text/event-stream"}), 400, "invalid", "streamed")


def test_a_captured_exec_that_can_not_start_frees_its_key_and_a_large_answer_is_not_kept(daemon, workspace):
    path = f"/v1/workspaces/{workspace}/exec"
    post = lambda body, key: daemon.post(path, body, headers={"Idempotency-Key": key})
    assert post({"argv": ["echo", "ran"], "cwd": "later"}, "later").status == 400
    assert daemon.request("PUT", f"/v1/workspaces/{workspace}/files/later?mkdir").status == 201
    assert post({"argv": ["echo", "ran"], "cwd": "later"}, "later").json()["stdout"] == "ran\n"
    large = {"command": "echo y >>large; head -c 2000000 /dev/zero | tr '\\0' x"}
    first = post(large, "large")
    assert len(first.json()["stdout"]) == 2000000
    # Whoever asks before that is written down gets the same answer; then there is none.
    assert eventually(lambda: (again := post(large, "large")).status == 409 or not again.body == first.body)
    problem(post(large, "large"), 409, "conflict", "new key")
    assert daemon.get(f"/v1/workspaces/{workspace}/files/large").body == b"y\n"


def test_a_captured_exec_that_dies_with_core_is_not_run_again_for_its_key(own_daemon):
    with created(own_daemon) as made:
        path, headers = f"/v1/workspaces/{made['id']}/exec", {"Idempotency-Key": "dies"}
        body = {"command": "echo x >>count; sleep 60"}
        count = lambda: own_daemon.get(f"/v1/workspaces/{made['id']}/files/count").body
        with contextlib.closing(own_daemon.connection()) as client:
            client.request("POST", path, json.dumps(body), {"Content-Type": "application/json", **headers})
            assert eventually(lambda: count() == b"x\n")
            own_daemon.kill_core()
        problem(own_daemon.post(path, body, headers=headers), 409, "conflict", "new key")
        assert count() == b"x\n"


def test_running_says_that_something_runs_and_warm_that_a_sandbox_is_held(own_daemon):
    daemon, workspace = own_daemon, "first"      # which no workspace was made ahead for
    assert daemon.post("/v1/workspaces", {"name": workspace}).status == 201

    def shown():
        value, later = None, daemon.get(f"/v1/workspaces/{workspace}").json()
        while value is None or value["state"] != later["state"]:        # it changed between the two answers
            value = later
            listed = [item["name"] for item in daemon.get(f"/v1/workspaces?state={value['state']}").json()["items"]]
            later = daemon.get(f"/v1/workspaces/{workspace}").json()
        assert workspace in listed
        return value["state"], value["warm"]
    run = lambda **body: daemon.post(f"/v1/workspaces/{workspace}/exec", body)
    assert shown() == ("ready", False)
    assert run(command="true").status == 200
    assert eventually(lambda: shown() == ("ready", True))
    background = run(command="while [ ! -e go ]; do sleep 0.02; done", background=True).json()["id"]
    assert shown() == ("running", True)
    assert daemon.request("PUT", f"/v1/workspaces/{workspace}/files/go", b"").status == 201
    assert eventually(lambda: daemon.get(f"/v1/execs/{background}").json()["state"] == "ended")
    assert eventually(lambda: shown() == ("ready", True))
    # What a command has left counts, too, as long as it is there.
    assert run(command="rm go; (while [ ! -e go ]; do sleep 0.02; done) >/dev/null 2>&1 &").status == 200
    assert shown() == ("running", True)
    assert daemon.request("PUT", f"/v1/workspaces/{workspace}/files/go", b"").status == 201
    assert eventually(lambda: shown() == ("ready", True))


def test_keys_outlive_the_daemon(own_daemon):
    post = lambda: own_daemon.post("/v1/workspaces", {}, headers={"Idempotency-Key": "kept"})
    first = post()
    own_daemon.restart()
    assert post().body == first.body
    assert len(own_daemon.get("/v1/workspaces").json()["items"]) == 1


def test_a_workspace_is_made_ahead_for_the_next_creation(own_daemon):
    daemon = own_daemon
    made = [daemon.post("/v1/workspaces", {}).json() for _ in range(2)]
    names = lambda: sorted(item["name"] for item in daemon.get("/v1/workspaces").json()["items"])

    def is_next_one_warm():
        made.append(daemon.post("/v1/workspaces", {"env": {"A": "its own"}}).json())
        return daemon.get(f"/v1/workspaces/{made[-1]['id']}").json()["warm"]
    assert eventually(is_next_one_warm)
    assert names() == sorted(item["name"] for item in made)      # and nobody sees the one that waits
    taken = made[-1]["id"]
    answer = daemon.post(f"/v1/workspaces/{taken}/exec", {"command": "ls -A /workspace /.cache /tmp; echo x >f; cat f; hostname"}).json()
    other = daemon.post(f"/v1/workspaces/{made[0]['id']}/exec", {"command": "ls -A /workspace /.cache /tmp; echo x >f; cat f; hostname"}).json()
    assert answer["exit_code"] == 0 and answer["stdout"] == other["stdout"]
    assert daemon.post(f"/v1/workspaces/{taken}/exec", {"command": "echo $A"}).json()["stdout"] == "its own\n"
    assert daemon.get(f"/v1/workspaces/{taken}/files/f").body == b"x\n"
    assert daemon.request("DELETE", f"/v1/workspaces/{taken}").status == 204
    # Other limits are another kind of sandbox.
    small = daemon.post("/v1/workspaces", {"limits": {"memory": "64M"}}).json()["id"]
    assert not daemon.get(f"/v1/workspaces/{small}").json()["warm"]


# ---- events ----

def test_events_tell_the_life_of_a_workspace(daemon):
    with contextlib.closing(Events(daemon, "/v1/events")) as events:
        with created(daemon, name="eventful") as workspace:
            daemon.post("/v1/workspaces/eventful/exec", {"argv": ["true"]})
        came = [event for event in events.until("workspace.deleted") if event["data"]["workspace"] == workspace["id"]]
    kinds = [event["event"] for event in came]
    assert kinds[0] == "workspace.created" and "workspace.warm" in kinds and kinds[-1] == "workspace.deleted"
    assert [int(event["id"]) for event in came] == sorted(int(event["id"]) for event in came)
    ended = next(event["data"] for event in came if event["event"] == "exec.ended")
    assert (ended["reason"], ended["exit_code"]) == ("exited", 0)
    for event in came:
        assert event["data"]["type"] == event["event"] and event["data"]["id"] == int(event["id"]) and event["data"]["name"] == "eventful"
    # Who was away begins where it was.
    with contextlib.closing(Events(daemon, "/v1/events", {"Last-Event-ID": came[0]["id"]})) as events:
        assert events.until("workspace.deleted")[-1] == came[-1]


def test_events_of_one_workspace_end_with_it(daemon):
    with created(daemon) as workspace, created(daemon) as other:
        first = Events(daemon, f"/v1/workspaces/{workspace['name']}/events")
        second = Events(daemon, f"/v1/events?workspace={workspace['id']}")
        daemon.request("PATCH", f"/v1/workspaces/{other['id']}", {"labels": {"x": "y"}})
        daemon.delete(f"/v1/workspaces/{workspace['id']}")
        came = list(first)      # to the end of the answer
        assert came[-1]["event"] == "workspace.deleted" and {event["data"]["workspace"] for event in came} == {workspace["id"]}
        assert second.until("workspace.deleted")[-1] == came[-1]
        first.close(), second.close()
    with contextlib.closing(Events(daemon, "/v1/events", {"Last-Event-ID": "1"})) as events:
        assert events.response.readline() == b"id: 1\n", "who was cut off before the first event knows where to go on"
        missed = next(iter(events))
        assert missed["data"]["type"] == "missed" and missed["data"]["to"] == int(missed["id"])
    with contextlib.closing(Events(daemon, "/v1/events", {"Last-Event-ID": "0"})) as events:
        assert events.until("workspace.deleted"), "0 is before every event that is kept"
    with contextlib.closing(Events(daemon, "/v1/events?after=0")) as events:
        assert "missed" not in {event["event"] for event in events.until("workspace.deleted")}, "from the beginning"
    problem(daemon.get("/v1/events?workspace=nobody"), 404, "not_found", "GET /v1/workspaces")
    problem(daemon.get("/v1/events", headers={"Last-Event-ID": "x"}), 400, "invalid")


def test_a_listener_that_reads_nothing_hurts_nobody(daemon):
    slow = [Events(daemon, "/v1/events") for _ in range(20)]
    with created(daemon) as workspace:
        for n in range(300):
            daemon.request("PATCH", f"/v1/workspaces/{workspace['id']}", {"labels": {"n": "x" * 900 + str(n)}})
        assert daemon.get("/healthz").status == 200
    came = slow[0].until("workspace.deleted")
    updates = [event for event in came if event["event"] == "workspace.updated"]
    assert len(updates) == 300
    for events in slow:
        events.close()


def test_open_streams_end_when_the_daemon_stops(own_daemon):
    events = Events(own_daemon, "/v1/events")
    assert own_daemon.stop_serving() == 0
    assert list(events) == []
    events.close()


def test_what_runs_when_the_daemon_stops_is_canceled_and_answered(own_daemon):
    with contextlib.closing(own_daemon.connection()) as connection:
        path = own_daemon.post("/v1/workspaces").headers["Location"]
        connection.request("POST", path + "/exec", json.dumps({"argv": ["sleep", "60"]}), {"Content-Type": "application/json"})
        # Not before it runs: what hasn't started is refused.
        assert eventually(lambda: [item["state"] for item in own_daemon.get("/v1/execs").json()["items"]] == ["running"])
        assert own_daemon.stop_serving() == 0
        assert json.loads(connection.getresponse().read())["reason"] == "canceled"


# ---- environments, health ----

def test_environments_are_listed(daemon):
    answer = daemon.get("/v1/environments").json()
    assert answer == {"items": [], "next_cursor": None}


def test_health_and_readiness(daemon):
    assert daemon.get("/healthz").json() == {"status": "ok"}
    assert daemon.get("/readyz").json() == {"status": "ready"}
