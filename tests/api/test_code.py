"""POST /v1/code and carrel code run: code that is run once, and its tests."""
# security: services
import json
import subprocess

import pytest
from daemons import furnished_daemon as daemon  # noqa: F401
from harness import eventually
from patience import with_time
from rest import problem

FIB = "def fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\n\n\nprint(fib(10))\n"
TESTS = "from fib import fib\n\n\ndef test_fib():\n    assert fib(10) == %d\n"


def run(daemon, **body):
    answer = daemon.post("/v1/code", body)
    assert answer.status == 200, answer
    assert daemon.get("/v1/workspaces?label=carrel.service=code").json()["items"] == []
    return answer.json()


def test_python_and_shell_are_run_by_the_end_of_their_name(daemon):
    result = run(daemon, code="import sys\nprint('out')\nprint(sys.stdin.read(), file=sys.stderr)\nsys.exit(3)\n", stdin="in")
    assert (result["exit_code"], result["reason"], result["stdout"], result["stderr"], result["tests"]) == (3, "exited", "out\n", "in\n", None)
    assert run(daemon, file="x.sh", code="echo $A; pwd; ls", env={"A": "b"})["stdout"] == "b\n/workspace\nx.sh\n"
    assert run(daemon, file="x.sh", code="#!/bin/bash\n[[ a == a ]] && echo ${BASH_VERSION:+bash}")["stdout"] == "bash\n"


@pytest.mark.once
def test_tests_are_judged(daemon):
    good = run(daemon, file="fib.py", code=FIB, tests=TESTS % 55)
    assert good["stdout"] == "55\n" and good["tests"]["verdict"] == "passed" and "1 passed" in good["tests"]["result"]["stdout"]
    bad = run(daemon, file="fib.py", code=FIB, tests=TESTS % 54)
    assert bad["exit_code"] == 0 and bad["tests"]["verdict"] == "failed" and bad["tests"]["result"]["exit_code"] == 1
    assert "assert 55 == 54" in bad["tests"]["result"]["stdout"]
    assert run(daemon, file="fib.py", code=FIB, tests="import fib\n")["tests"]["verdict"] == "none"
    assert run(daemon, file="fib.py", code=FIB, tests="import nothing\n")["tests"]["verdict"] == "failed"
    assert run(daemon, code="raise SystemExit(2)", tests="def test(): pass\n")["tests"] == {"verdict": "not_run", "result": None}
    # A run that was cut short is no pass.
    for end in ("import os; os._exit(0)", "import sys; sys.exit(0)", "import pytest; pytest.exit('enough', returncode=0)"):
        short = run(daemon, file="fib.py", code=FIB, tests=f"def test_a():\n    pass\n\n\ndef test_b():\n    {end}\n")
        assert short["tests"]["verdict"] == "failed", (end, short)
    # Tests of a shell.
    script = {"file": "a.sh", "code": "echo 1 > made", "tests_file": "t.sh"}
    assert run(daemon, **script, tests="grep -q 1 made")["tests"]["verdict"] == "passed"
    assert run(daemon, **script, tests="grep -q 2 made")["tests"]["verdict"] == "failed"


def test_limits_hold_and_are_the_reason(daemon):
    assert run(daemon, code="while True: pass", timeout=0.2)["reason"] == "timeout"
    assert run(daemon, file="f.sh", code="yes", limits={"output": "100K"})["reason"] == "output_limit"
    assert run(daemon, file="f.sh", code="kill -9 $$")["signal"] == 9
    found = []      # the code has that time, too

    def attempt(limit):
        found.append(run(daemon, file="f.sh", code="true", tests_file="t.sh", tests="sleep 1000", timeout=limit))
        return found[-1]
    hangs = with_time(attempt, lambda: found[-1]["exit_code"] == 0, 0.3)
    assert hangs["exit_code"] == 0 and hangs["tests"]["verdict"] == "failed" and hangs["tests"]["result"]["reason"] == "timeout"


@pytest.mark.once
@pytest.mark.parametrize("body, word", [
    ({}, "code"), ({"code": ""}, "code"), ({"code": "1", "file": "x.rb"}, "file"), ({"code": "1", "file": "../x.py"}, "file"),
    ({"code": "1", "file": ".py"}, "file"), ({"code": "1", "tests_file": "t.py"}, "tests_file"), ({"code": "1", "language": "go"}, "language"),
    ({"code": "1", "file": "a.py", "tests": "1", "tests_file": "a.py"}, "same name")])
def test_bad_input_is_refused_and_named(daemon, body, word):
    problem(daemon.post("/v1/code", body), 400, "invalid", word)


@pytest.mark.once
def test_a_package_that_does_not_exist_is_an_error_and_leaves_nothing(daemon):
    answer = daemon.post("/v1/code", {"code": "1", "packages": ["no-such-package-of-carrel"]})
    assert answer.status in (400, 404, 409), answer
    assert daemon.get("/v1/workspaces?label=carrel.service=code").json()["items"] == []


def test_a_client_that_leaves_ends_its_code(daemon):
    connection = daemon.connection()
    connection.request("POST", "/v1/code", json.dumps({"file": "x.sh", "code": "sleep 1000"}), {"Content-Type": "application/json"})
    listed = lambda: daemon.get("/v1/workspaces?label=carrel.service=code").json()["items"]
    assert eventually(lambda: listed() and listed()[0]["state"] == "running")
    connection.close()
    assert eventually(lambda: not listed())


@pytest.mark.once
def test_the_command_line_shows_output_and_verdict(daemon, tmp_path):
    (tmp_path / "fib.py").write_text(FIB)
    (tmp_path / "test_fib.py").write_text(TESTS % 55)
    done = daemon("code", "run", tmp_path / "fib.py", "--tests", tmp_path / "test_fib.py")
    assert (done.returncode, done.stdout) == (0, "55\n") and "tests: passed" in done.stderr
    (tmp_path / "test_fib.py").write_text(TESTS % 54)
    done = daemon("code", "run", tmp_path / "fib.py", "--tests", tmp_path / "test_fib.py", "-o", "json")
    assert done.returncode == 1 and json.loads(done.stdout)["tests"]["verdict"] == "failed"
    (tmp_path / "cat.sh").write_text("cat; exit 4")
    (tmp_path / "in").write_text("given")
    done = daemon("code", "run", "--stdin", tmp_path / "in", tmp_path / "cat.sh")
    assert (done.returncode, done.stdout) == (4, "given")
    done = daemon("code", "run", tmp_path / "none.py")
    assert done.returncode == 125 and "none.py" in done.stderr
    done = daemon("code", "run", tmp_path / "in")
    assert done.returncode == 125 and ".py or .sh" in done.stderr
