"""The programs of the guide, in the command line, Python and TypeScript, from another network namespace: of the daemon they have a URL,
a token and the certificate of its authority, and its port is all that they reach."""
import re
import shutil
import socket
import subprocess
import sys

import pytest

from harness import CARREL, PATH, TREE
from test_python import PACKAGE, door, led_to, tools  # noqa: F401
from test_typescript import RUNTIMES, package, programs, project  # noqa: F401

sys.path.append(str(TREE / "tests/docs"))
from test_examples import blocks_of_markdown, matches, steps  # noqa: E402

pytestmark = [pytest.mark.shipped, pytest.mark.needs_plain_user]
GUIDE = TREE / "docs/guide"
MARK = "-- end of a step --"


@pytest.fixture
def elsewhere(door, tmp_path):  # noqa: F811
    """Runs a program there; its output."""
    def run(*argv, **env):
        near, far = socket.socketpair()
        place = tmp_path / "place"
        place.mkdir(exist_ok=True)
        env = {"PATH": PATH, "HOME": str(place), "LANG": "C.UTF-8", "CARREL_HOST": "https://{}:{}".format(*door.address()),
               "CARREL_TOKEN": door.token, "CARREL_CA": door.ca, "CARREL_HOME": str(place / "none"), **env}
        with near, far, led_to(door.address(), near):
            done = subprocess.run(["unshare", "--map-current-user", "--keep-caps", "--net", sys.executable, TREE / "tests/sdk/far.py", str(far.fileno()),
                                   str(door.address()[1]), *argv], cwd=place, env=env, pass_fds=[far.fileno()], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
        assert done.returncode == 0, done.stdout
        assert not (place / "none").exists()        # no daemon of its own was started
        return done.stdout

    yield run
    assert door.get("/v1/workspaces").json()["items"] == []


def lines(text):
    return [line for line in text.splitlines() if line.strip()]


def test_the_command_line(elsewhere, tmp_path):
    block, = [block for _, block in blocks_of_markdown(GUIDE / "remote.md") if any("carrel attach" in line for line in block)]
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/carrel").symlink_to(CARREL)
    script = "set -e\n" + "\n".join(f"{command}\necho '{MARK}'" for command, _ in steps(block))
    outputs = elsewhere("/bin/bash", "-c", script, PATH=f"{tmp_path}/bin:{PATH}").split(MARK + "\n")
    for (command, expected), output in zip(steps(block), outputs):
        assert matches([line for line in expected if line.strip()], lines(output)), (command, output)


def test_a_program_in_python(elsewhere, tools, tmp_path):  # noqa: F811
    program, = [text for text in re.findall(r"^```python\n(.*?)^```$", (GUIDE / "sdks.md").read_text(), re.M | re.S) if "forward" in text]
    (tmp_path / "program.py").write_text(program)
    said = elsewhere(tools / "python", tmp_path / "program.py", PYTHONPATH=str(PACKAGE / "src"), PYTHONDONTWRITEBYTECODE="1")
    assert lines(said) == [text.strip() for text in re.findall(r"^.*\bprint\(.*\)\s*# (.*)$", program, re.M)]


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_program_in_typescript(elsewhere, project, runtime):  # noqa: F811
    text = programs()[0]
    said = elsewhere(shutil.which(runtime, path=PATH), project / "example0.js")
    assert said.splitlines() == re.findall(r"// prints (.*)$", text, re.M)
