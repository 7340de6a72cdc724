"""/v1/tools and carrel tool: nothing is loaded unless its tests pass; versions, calls, packages, and what a tool can't do."""
# security: services
import concurrent.futures
import contextlib
import datetime
import json
import os
import pathlib
import signal
import sqlite3
import subprocess
import threading

import pytest
from daemons import furnished_daemon as daemon, make_furnished as make_daemon  # noqa: F401
from harness import descendants, eventually
from rest import Events, problem

CODE = "def run(text, times=1):\n    print('called')\n    return {'text': text * times, 'number': 0.1234567890123}\n"
TESTS = "import tool\n\n\ndef test_one():\n    assert tool.run('a', 2)['text'] == 'aa'\n\n\ndef test_two():\n    assert tool.run('b')['text'] == 'b'\n"
# The second test needs what the first has left in the module.
LUCKY = "import tool\n\n\ndef test_one():\n    tool.left = 1\n\n\ndef test_two():\n    assert tool.left\n"


def desks(daemon, **label):
    query = "".join(f"&label=carrel.{key}={value}" for key, value in label.items())
    return daemon.get("/v1/workspaces?label=carrel.service=tools" + query).json()["items"]


@pytest.fixture
def forge(daemon):
    """Forges tools that are removed after the test, and with them their workspaces."""
    names = set()

    def make(name="echo", code=CODE, tests=TESTS, **more):
        names.add(name)
        answer = daemon.post("/v1/tools", {"name": name, "code": code, "tests": tests, **more})
        assert answer.status == 201, answer
        assert answer.headers["Location"] == f"/v1/tools/{name}"
        return answer.json()
    make.names = names
    yield make
    for name in names:
        assert eventually(lambda: daemon.delete(f"/v1/tools/{name}").status in (204, 404))
    assert eventually(lambda: not desks(daemon))


def call(daemon, name="echo", **arguments):
    answer = daemon.post(f"/v1/tools/{name}/call", {"arguments": arguments})
    assert answer.status == 200, answer
    return answer.json()


def test_a_tool_fails_is_mended_loaded_called_and_rolled_back(daemon, forge):
    failed = forge(tests="import tool\n\n\ndef test():\n    assert tool.run('a')['text'] == 'b'\n")
    assert (failed["state"], failed["version"], failed["passed"]) == ("dormant", 1, False)
    assert failed["error"] == "its tests have failed" and "AssertionError" in failed["output"] and failed["expires_at"]
    assert not desks(daemon)
    problem(daemon.post("/v1/tools/echo/call", {}), 409, "conflict", "its tests have failed")
    mended = forge()
    assert (mended["state"], mended["version"], mended["error"]) == ("active", 2, None) and mended["environment"]
    result = call(daemon, text="x", times=3)
    assert result["ok"] and result["result"] == {"text": "xxx", "number": 0.1234567890123} and result["stdout"] == "called\n"
    third = forge(code=CODE.replace("'called'", "'third'"))
    assert third["version"] == 3 and call(daemon, text="")["stdout"] == "third\n"
    assert [(one["version"], one["state"]) for one in daemon.get("/v1/tools/echo/versions").json()["items"]] == [
        (3, "active"), (2, "dormant"), (1, "dormant")]
    # What fails changes nothing of what is active.
    assert forge(code="def run(:\n")["state"] == "dormant" and call(daemon, text="")["stdout"] == "third\n"
    back = daemon.post("/v1/tools/echo/rollback", {})
    assert back.status == 200 and back.json()["version"] == 2 and call(daemon, text="")["stdout"] == "called\n"
    assert daemon.post("/v1/tools/echo/rollback", {"version": 3}).json()["version"] == 3
    problem(daemon.post("/v1/tools/echo/rollback", {"version": 1}), 409, "conflict", "hasn't passed")
    problem(daemon.post("/v1/tools/echo/rollback", {"version": 9}), 404, "not_found", "has no version 9")
    shown = daemon.get("/v1/tools/echo?version=2").json()
    assert shown["code"] == CODE and shown["tests"] == TESTS and "2 passed" in shown["output"]
    [listed] = daemon.get("/v1/tools").json()["items"]
    assert listed["version"] == 3 and "code" not in listed and "output" not in listed
    # Of the workspaces, those of versions that can be loaded are left.
    assert eventually(lambda: sorted(w["labels"]["carrel.tool-version"] for w in desks(daemon)) == ["2", "3"])


@pytest.mark.once
@pytest.mark.parametrize("tests, error", [
    (LUCKY, "in the reverse order"), ("import tool\n", "no test has passed"), ("import nothing\n", "tests have failed"),
    ("import pytest\n\n\n@pytest.mark.skip\ndef test():\n    pass\n", "no test has passed"),
    ("import os\nos._exit(0)\n", "has ended the process"), ("import os\n\n\ndef test():\n    os.kill(0, 9)\n", "ended: signaled"),
    ("def test():\n    import time\n    time.sleep(1000)\n", "ended: timeout"),
    ("def test():\n    import subprocess\n    subprocess.run(['yes'])\n", "ended"),
    ("def test():\n    x = bytearray(10**9)\n", "")])
def test_tests_that_are_no_proof_are_refused(daemon, forge, tests, error):
    how = {"limits": {"memory": "200M"}} if "bytearray" in tests else {}
    made = forge("weak", "left = 0\n\n\ndef run():\n    return 1\n", tests, timeout=5 if error in ("ended", "ended: timeout") else 60, **how)
    assert made["state"] == "dormant" and not made["passed"] and error in made["error"], made
    assert not desks(daemon)


@pytest.mark.once
@pytest.mark.parametrize("code, tests, error", [
    ("def other():\n    return 1\n", "import tool\n\n\ndef test():\n    assert tool.other() == 1\n", "no function run"),
    ("run = 1\n", "def test():\n    pass\n", "no function run"), ("import nothing\n", "def test():\n    pass\n", "tests have failed")])
def test_code_that_can_not_be_called_is_refused_though_its_tests_pass(daemon, forge, code, tests, error):
    made = forge("uncallable", code, tests)
    assert made["state"] == "dormant" and not made["passed"] and error in made["error"] and "1 passed" in made["output"], made
    problem(daemon.post("/v1/tools/uncallable/call", {}), 409, "conflict", error)
    assert not desks(daemon)


@pytest.mark.once
def test_what_a_tool_does_wrong_is_told(daemon, forge):
    code = ("import os, sys, time\n\n\ndef run(do):\n    if do == 'raise':\n        raise KeyError('gone')\n    if do == 'exit':\n        os._exit(3)\n"
            "    if do == 'hang':\n        time.sleep(1000)\n    if do == 'flood':\n        while True:\n            print('x' * 65536)\n"
            "    if do == 'object':\n        return object()\n    if do == 'nan':\n        return float('nan')\n    if do == 'system':\n        sys.exit(1)\n"
            "    if do == 'kill':\n        os.kill(os.getpid(), 9)\n    if do == 'read':\n        return sys.stdin.read()\n    return do\n")
    assert forge("bad", code, "import tool\n\n\ndef test():\n    assert tool.run(1) == 1\n")["state"] == "active"
    raised = call(daemon, "bad", do="raise")
    assert not raised["ok"] and raised["result"] is None
    assert (raised["error"]["reason"], raised["error"]["type"]) == ("raised", "KeyError") and "tool.py" in raised["error"]["traceback"]
    reasons = {do: call(daemon, "bad", do=do)["error"]["reason"] for do in ("exit", "flood", "object", "nan", "system", "kill")}
    assert reasons == {"exit": "exited", "flood": "output_limit", "object": "invalid_result", "nan": "invalid_result", "system": "raised",
                       "kill": "signaled"}
    hung = daemon.post("/v1/tools/bad/call", {"arguments": {"do": "hang"}, "timeout": 0.5}).json()
    assert hung["error"]["reason"] == "timeout"
    assert call(daemon, "bad", do="read")["result"] == ""
    assert call(daemon, "bad", wrong=1)["error"]["type"] == "TypeError"
    assert call(daemon, "bad", do=[1, {"a": None}])["result"] == [1, {"a": None}]


@pytest.mark.once
def test_a_tool_finds_nothing_of_other_tools(daemon, forge):
    secret = "s3cr3t-of-the-first-tool"
    forge("first", f"SECRET = {secret!r}\n\n\ndef run():\n    open('/workspace/kept', 'w').write(SECRET)\n    open('/tmp/kept', 'w').write(SECRET)\n    return 1\n",
          "import tool\n\n\ndef test():\n    assert tool.SECRET\n")
    assert call(daemon, "first")["ok"]
    search = ("import os\n\n\ndef run():\n    found = []\n    for top in ('/workspace', '/tmp', '/env', '/dev/shm', '/.cache'):\n        for place, _, names in os.walk(top):\n"
              "            for name in names:\n                try:\n                    if b'loot-tsrif-eht-fo-t3rc3s'[::-1] in open(os.path.join(place, name), 'rb').read(1 << 16):\n"
              "                        found.append(name)\n                except OSError:\n                    pass\n    return found\n")
    # Also its tests are kept apart: what they leave isn't loaded.
    tests = "import tool\n\n\ndef test():\n    assert tool.run() == []\n    open('/workspace/left', 'w').write('1')\n"
    assert forge("second", search + "\n\ndef left():\n    return os.path.exists('/workspace/left')\n", tests)["state"] == "active"
    assert call(daemon, "second")["result"] == []
    desk = daemon.get("/v1/tools/second").json()["workspace"]
    assert daemon.get(f"/v1/workspaces/{desk}/files/left").status == 404


@pytest.mark.once
@pytest.mark.shipped
def test_a_package_becomes_a_tool(daemon, forge):
    answer = daemon.post("/v1/tools", {"package": "Iniconfig>=2"})
    forge.names.add("pypi_iniconfig")
    made = answer.json()
    assert (answer.status, made["name"], made["state"], made["package"]) == (201, "pypi_iniconfig", "active", "Iniconfig>=2"), made
    described = call(daemon, "pypi_iniconfig")["result"]
    assert described["modules"] == ["iniconfig"] and "iniconfig.IniConfig" in described["functions"] and described["version"]
    parsed = call(daemon, "pypi_iniconfig", function="iniconfig.IniConfig", args=["x.ini"], kwargs={"data": "[a]\nb=1"})
    assert parsed["ok"] and parsed["result"]["type"].endswith("IniConfig")
    for name in ("os.getcwd", "iniconfig._parse.x", "iniconfig.nothing", "iniconfig"):
        assert not call(daemon, "pypi_iniconfig", function=name)["ok"]
    none = daemon.post("/v1/tools", {"package": "no-such-package-of-carrel"}).json()
    forge.names.add("pypi_no-such-package-of-carrel")
    assert none["state"] == "dormant" and "no-such-package-of-carrel" in none["error"] and not desks(daemon, tool="pypi_no-such-package-of-carrel")


@pytest.mark.once
@pytest.mark.parametrize("body, word", [
    ({}, "name"), ({"name": "x", "code": "1"}, "tests"), ({"name": "X", "code": "1", "tests": "1"}, "name"), ({"name": "a/b", "code": "1", "tests": "1"}, "name"),
    ({"name": "pypi_x", "code": "1", "tests": "1"}, "pypi_"), ({"name": "x", "package": "y"}, "package"), ({"package": "-x"}, "requirement"),
    ({"name": "x", "code": "1", "tests": "1", "lang": "go"}, "lang"), ({"name": "x", "code": "1", "tests": "1", "limits": {"memory": "1K"}}, "memory")])
def test_bad_input_is_refused_and_named(daemon, body, word):
    problem(daemon.post("/v1/tools", body), 400, "invalid", word)
    assert daemon.get("/v1/tools").json()["items"] == []


@pytest.mark.once
def test_unknown_names_are_not_found(daemon):
    for path, method in (("/v1/tools/none", "GET"), ("/v1/tools/none", "DELETE"), ("/v1/tools/none/versions", "GET"), ("/v1/tools/none/call", "POST"),
                         ("/v1/tools/none/rollback", "POST")):
        problem(daemon.request(method, path, {} if method == "POST" else None), 404, "not_found", "none")


@pytest.mark.once
def test_states_are_events_and_a_forging_excludes_another(daemon, forge):
    with contextlib.closing(Events(daemon, "/v1/events")) as events:
        gate = "import os\nimport time\n\n\ndef test():\n    while not os.path.exists('/workspace/go'):\n        time.sleep(0.01)\n"
        thread = threading.Thread(target=forge, args=("slow", "def run():\n    return 1\n", gate))
        thread.start()
        seen = [events.until("tool.state")[-1]["data"]["state"] for _ in range(3)]
        problem(daemon.post("/v1/tools", {"name": "slow", "code": CODE, "tests": TESTS}), 409, "conflict", "is being forged")
        problem(daemon.delete("/v1/tools/slow"), 409, "conflict", "tool 'slow' is in use: it is being forged")
        [bench] = desks(daemon)
        assert daemon.request("PUT", f"/v1/workspaces/{bench['id']}/files/go", b"").status == 201
        thread.join()
        seen.append(events.until("tool.state")[-1]["data"]["state"])
        assert seen == ["creating", "installing", "testing", "active"]
    text = daemon.get("/metrics").body.decode()
    assert 'carrel_tools{state="active"} 1' in text and 'carrel_tool_forges_total{result="active"}' in text


@pytest.mark.once
def test_an_interrupted_forging_leaves_nothing(daemon, tmp_path):
    (tmp_path / "tool.py").write_text("def run():\n    return 1\n")
    (tmp_path / "test_tool.py").write_text("import time\n\n\ndef test():\n    time.sleep(600)\n")
    with contextlib.closing(Events(daemon, "/v1/events")) as events, subprocess.Popen(
            [daemon.path, "tool", "forge", "cut", "--code", tmp_path / "tool.py", "--tests", tmp_path / "test_tool.py"], env=daemon.env,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while events.until("tool.state")[-1]["data"]["state"] != "testing":
            pass
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=60)[1]
        assert process.returncode == 130 and "interrupted: the forging is canceled" in errors, errors
    assert eventually(lambda: daemon.get("/v1/tools/cut").status == 404) and eventually(lambda: not desks(daemon))


@pytest.mark.once
def test_what_is_not_active_expires(daemon, forge):
    forge(ttl="1s")
    assert forge(code="def run(:\n", ttl="1s")["state"] == "dormant"
    assert eventually(lambda: [one["version"] for one in daemon.get("/v1/tools/echo/versions").json()["items"]] == [1])
    assert forge()["version"] == 2
    assert eventually(lambda: [one["version"] for one in daemon.get("/v1/tools/echo/versions").json()["items"]] == [2])
    assert eventually(lambda: len(desks(daemon)) == 1) and call(daemon, text="x")["ok"]
    # A version that has expired can't be loaded again, and that is what is said of it.
    for path, body in (("rollback", {"version": 1}), ("call", {"version": 1})):
        problem(daemon.post(f"/v1/tools/echo/{path}", body), 404, "not_found", "version 1 of tool 'echo' has expired")
    problem(daemon.get("/v1/tools/echo?version=1"), 404, "not_found", "has expired")
    problem(daemon.get("/v1/tools/echo?version=3"), 404, "not_found", "has no version 3")
    problem(daemon.post("/v1/tools/echo/rollback", {}), 409, "conflict", "no version to go back to", "removed after their time")


def test_a_day_after_it_was_active_a_version_is_swept(make_daemon):
    daemon = make_daemon()
    tool = {"name": "echo", "code": CODE, "tests": TESTS}
    assert [daemon.post("/v1/tools", tool).json()["state"] for _ in range(2)] == ["active", "active"]
    active, old = daemon.get("/v1/tools/echo/versions").json()["items"]
    at = lambda name: datetime.datetime.fromisoformat(old[name].replace("Z", "+00:00"))
    assert at("expires_at") - at("changed_at") == datetime.timedelta(hours=24) and active["expires_at"] is None
    # The row, as a day later: one version is over its time, and of the active one nothing changes.
    daemon.stop_serving()
    with contextlib.closing(sqlite3.connect(pathlib.Path(daemon.env["CARREL_HOME"], "carrel.db"))) as store, store:
        assert store.execute("UPDATE tools SET expires_ms = expires_ms - 86400000 WHERE expires_ms").rowcount == 1
    daemon.start_serving()
    assert eventually(lambda: [one["version"] for one in daemon.get("/v1/tools/echo/versions").json()["items"]] == [2])
    assert eventually(lambda: [one["id"] for one in desks(daemon)] == [active["workspace"]]) and call(daemon, text="x")["ok"]


def test_a_version_that_is_being_removed_takes_no_call(daemon, forge):
    forge()
    assert eventually(lambda: len(desks(daemon)) == 1)      # that of the tests is gone
    writer = next(pid for pid, (_, name) in descendants(daemon.process.pid).items() if name == "carrel-writer")
    removal = threading.Thread(target=lambda: daemon.delete("/v1/tools/echo"))
    os.kill(writer, signal.SIGSTOP)     # its rows can't go
    try:
        removal.start()
        assert eventually(lambda: [desk["state"] for desk in desks(daemon)] == ["deleting"])
        problem(daemon.post("/v1/tools/echo/call", {"arguments": {"text": "x"}}), 404, "not_found", "version 1 of tool 'echo' is being removed")
    finally:
        os.kill(writer, signal.SIGCONT)
        removal.join()
    assert eventually(lambda: not desks(daemon))


def test_no_tool_is_rolled_back_to_a_version_that_is_being_removed(daemon, forge):
    """Its row would come back, without a workspace."""
    forge()
    forge()
    assert eventually(lambda: len(desks(daemon)) == 2)      # those of the tests are gone
    writer = next(pid for pid, (_, name) in descendants(daemon.process.pid).items() if name == "carrel-writer")
    removal = threading.Thread(target=lambda: daemon.delete("/v1/tools/echo"))
    os.kill(writer, signal.SIGSTOP)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        try:
            removal.start()
            assert eventually(lambda: "deleting" in [desk["state"] for desk in desks(daemon)])
            answer = pool.submit(daemon.post, "/v1/tools/echo/rollback", {"version": 2})
            concurrent.futures.wait([answer], 1)
        finally:
            os.kill(writer, signal.SIGCONT)
            removal.join()
        problem(answer.result(), 404, "not_found", "version 2 of tool 'echo' is being removed")
    assert daemon.get("/v1/tools/echo").status == 404
    daemon.restart()        # no row is left
    assert daemon.get("/v1/tools/echo").status == 404 and not desks(daemon)


def test_a_version_that_is_forged_during_a_removal_stays(daemon, forge):
    forge()
    assert eventually(lambda: len(desks(daemon)) == 1)      # that of the tests is gone
    writer = next(pid for pid, (_, name) in descendants(daemon.process.pid).items() if name == "carrel-writer")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        os.kill(writer, signal.SIGSTOP)
        try:
            removal = pool.submit(daemon.delete, "/v1/tools/echo")
            assert eventually(lambda: [desk["state"] for desk in desks(daemon)] == ["deleting"])
            forged = pool.submit(forge)
            assert eventually(lambda: daemon.get("/v1/tools/echo/versions").json()["items"][0]["version"] == 2)
        finally:
            os.kill(writer, signal.SIGCONT)
        assert removal.result().status == 204 and forged.result()["state"] == "active", forged.result()
    assert call(daemon, text="x")["version"] == 2
    assert [one["version"] for one in daemon.get("/v1/tools/echo/versions").json()["items"]] == [2]


@pytest.mark.needs_faults
def test_calls_while_a_version_is_removed_end(daemon, forge):
    """Whenever they come: a sanitizer sees a call that outlives its version."""
    for _ in range(4):
        forge()
        is_over = threading.Event()

        def ask():
            while not is_over.is_set():
                assert daemon.post("/v1/tools/echo/call", {"arguments": {"text": "x"}}).status in (200, 404)
        with contextlib.closing(daemon.connection()) as connection, concurrent.futures.ThreadPoolExecutor(16) as pool:
            connection.request("DELETE", "/v1/tools/echo")
            asking = [pool.submit(ask) for _ in range(16)]
            try:
                assert connection.getresponse().status in (204, 409)
            finally:
                is_over.set()
            for one in asking:
                one.result()


@pytest.mark.once
def test_a_client_that_leaves_ends_its_call(daemon, forge):
    forge("sleeper", "import time\n\n\ndef run(s):\n    time.sleep(s)\n", "import tool\n\n\ndef test():\n    tool.run(0)\n")
    connection = daemon.connection()
    connection.request("POST", "/v1/tools/sleeper/call", json.dumps({"arguments": {"s": 1000}}), {"Content-Type": "application/json"})
    assert eventually(lambda: desks(daemon)[0]["state"] == "running")
    connection.close()
    assert eventually(lambda: desks(daemon)[0]["state"] == "ready")


def test_the_command_line(daemon, forge, tmp_path):
    (tmp_path / "echo.py").write_text(CODE)
    (tmp_path / "good.py").write_text(TESTS)
    (tmp_path / "bad.py").write_text("def test():\n    assert 1 == 2\n")
    forge.names.add("echo")
    base = tmp_path / "venvs"
    run = lambda *argv, **how: daemon("tool", *argv, env={**daemon.env, "VENV_BASE": str(base)}, **how)
    done = run("forge", "echo", "--code", tmp_path / "echo.py", "--tests", tmp_path / "bad.py")
    assert done.returncode == 1 and "assert 1 == 2" in done.stderr and "dormant: its tests have failed" in done.stderr
    assert not list(base.iterdir())
    done = run("forge", "echo", "--code", tmp_path / "echo.py", "--tests", tmp_path / "good.py", "--description", "says it again")
    assert (done.returncode, done.stdout) == (0, "echo version 2 is active\n"), done
    assert os.readlink(base / "venv_echo").endswith("/envs/" + daemon.get("/v1/tools/echo").json()["environment"])
    (base / "venv_mine").mkdir()
    done = run("call", "echo", '{"text": "a", "times": 2}')
    assert (done.returncode, json.loads(done.stdout)["text"], done.stderr) == (0, "aa", "called\n")
    done = run("call", "echo", '{"wrong": 1}')
    assert done.returncode == 1 and "TypeError" in done.stderr and not done.stdout
    for wrong in ("[1]", "{", "text"):
        assert run("call", "echo", wrong).returncode == 125
    done = run("forge", "echo", "--code", tmp_path / "echo.py", "--tests", tmp_path / "good.py", "-o", "json")
    assert json.loads(done.stdout)["version"] == 3
    assert "says it again" in run("show", "echo", "--version", "2").stdout and run("show", "echo", "--code").stdout == CODE
    assert run("show", "echo", "2", "-o", "json").stdout == run("show", "echo", "--version", "2", "-o", "json").stdout
    # Of a version that isn't active the time at which it is removed, not how long ago that is.
    assert f"expires_at    {daemon.get('/v1/tools/echo?version=2').json()['expires_at']}\n" in run("show", "echo", "2").stdout
    assert "expires_at" not in run("show", "echo").stdout
    for words, told in ((("logs", "echo", "9"), "hint: carrel tool show echo lists its versions"), (("logs", "echo", "x"), "invalid version 'x'"),
                        (("show", "echo", "1", "--version", "2"), "can't be combined"), (("forge", "echo"), "needs --code FILE and --tests FILE"),
                        (("forge", "echo", "--code", "x"), "needs --tests FILE")):
        done = run(*words)
        assert done.returncode == 125 and told in done.stderr, done
    assert "error: its tests have failed" in run("logs", "echo", "1").stdout
    assert "in reverse order" in run("logs", "echo").stdout and "error: its tests have failed" in run("logs", "echo", "--version", "1").stdout
    third = os.readlink(base / "venv_echo")
    assert (base / "venv_echo/bin/python").exists() or (base / "venv_echo/meta.json").exists()
    assert run("rollback", "echo").stdout == "echo version 2 is active\n" and os.readlink(base / "venv_echo") == third
    # A daemon that is asked by its address has its environments elsewhere.
    far = daemon("tool", "ls", "-q", "--host", f"unix:{daemon.socket}", env={**daemon.env, "VENV_BASE": str(tmp_path / "far")})
    assert (far.returncode, far.stdout) == (0, "echo\n") and "VENV_BASE" in far.stderr and not (tmp_path / "far").exists(), far
    assert run("ls", "-q").stdout == "echo\n" and "says it again" in run("ls").stdout
    assert run("rm", "echo").returncode == 0 and [path.name for path in base.iterdir()] == ["venv_mine"]


@pytest.mark.once
def test_tools_are_discovered_in_an_index(carrel, tmp_path):
    index = tmp_path / "index.json"
    index.write_text(json.dumps({"tools": [
        {"name": "calendar", "description": "dates, also of html pages"}, {"name": "html-parser", "package": "beautifulsoup4", "tags": ["web"]},
        {"name": "html", "description": "writes pages", "rating": 4.5}, {"name": "mail"}]}))
    find = lambda *words: carrel("tool", "discover", *words, env={**os.environ, "TOOL_INDEX_PATH": str(index)})
    assert [one["name"] for one in json.loads(find("HTML", "-o", "json").stdout)] == ["html", "html-parser", "calendar"]
    assert [one["name"] for one in json.loads(find("web", "-o", "json").stdout)] == ["html-parser"]
    assert "beautifulsoup4" in find("parser").stdout and json.loads(find("nothing", "-o", "json").stdout) == []
    for wrong in ("{", "[]", '{"tools": 1}', '{"tools": [{}]}'):
        index.write_text(wrong)
        assert find("x").returncode == 125
    assert "TOOL_INDEX_PATH" in carrel("tool", "discover", "x", env={key: value for key, value in os.environ.items() if key != "TOOL_INDEX_PATH"}).stderr


@pytest.mark.once
def test_skeletons_are_written_and_fail_until_they_are_filled_in(daemon, forge, tmp_path):
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps({"name": "slug", "description": 'Makes "slugs"\nof titles', "arguments": {"text": "A \u00fc \\ title", "flag": True}}))
    done = daemon("tool", "generate", spec, "--to", tmp_path)
    assert (done.returncode, done.stdout) == (0, "slug.py\ntest_slug.py\n"), done
    code, tests = (tmp_path / "slug.py").read_text(), (tmp_path / "test_slug.py").read_text()
    assert "def run(text, flag):" in code
    refused = forge("slug", code, tests)
    assert refused["state"] == "dormant" and "NotImplementedError" in refused["output"]
    assert forge("slug", code.replace("raise NotImplementedError", "return "), tests)["state"] == "active"
    assert daemon("tool", "generate", spec, "--to", tmp_path).returncode == 125 and (tmp_path / "slug.py").read_text() == code
    for wrong in ('{"name": "A"}', '{"name": "a", "lang": 1}', '{"name": "a", "arguments": {"a b": 1}}', "[]", '{"name": "a", "arguments": [1]}'):
        spec.write_text(wrong)
        assert daemon("tool", "generate", spec, "--to", tmp_path).returncode == 125, wrong
