"""SIGINT, SIGTERM and SIGHUP while a command of the CLI waits for the daemon: it says what becomes of the request."""
import contextlib
import os
import pathlib
import re
import signal
import subprocess

import pytest
from harness import eventually
from workspaces import created

GOES_ON = "interrupted: the daemon goes on with what it was asked for"
COMMANDS = {
    "snapshot create": (["snapshot", "create", "{w}", "--tag", "t"], GOES_ON),
    "snapshot rollback": (["snapshot", "rollback", "{w}", "begin"], GOES_ON),
    "snapshot push": (["snapshot", "push", "{w}", "begin"], "interrupted: the push ends"),
    "snapshot pull": (["snapshot", "pull", "{w}", "begin"], GOES_ON),
    "fork": (["fork", "{w}", "{w}-fork"], GOES_ON),
    "suspend": (["suspend", "{w}"], GOES_ON),
    "repair": (["repair", "{w}"], GOES_ON),
    "update": (["update", "{w}", "--label", "a=b"], GOES_ON),
    "rm": (["rm", "--force", "{w}"], GOES_ON),
    "template add": (["template", "add", "{t}"], GOES_ON),
}


@contextlib.contextmanager
def stopped_core(daemon):
    core = daemon.core_pid()
    os.kill(core, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(core, signal.SIGCONT)


def catches(process, signo):
    caught = re.search(r"SigCgt:\s*(\w+)", pathlib.Path(f"/proc/{process.pid}/status").read_text())[1]
    return int(caught, 16) >> signo - 1 & 1


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("signo", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_command_says_what_becomes_of_it(daemon, tmp_path, command, signo):
    words, said = COMMANDS[command]
    (tmp_path / "t.yaml").write_text("name: interrupted\nversion: '1.0'\n")
    with created(daemon) as name:
        assert daemon("snapshot", "create", name, "--tag", "begin").returncode == 0
        with stopped_core(daemon):
            with subprocess.Popen([daemon.path, *(word.format(w=name, t=tmp_path / "t.yaml") for word in words)], env=daemon.env,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
                assert eventually(lambda: catches(process, signo))
                process.send_signal(signo)
                out, errors = process.communicate(timeout=60)
        lines = errors.splitlines()
        assert (process.returncode, out) == (130, "") and lines[0].startswith(f"carrel: {said}"), (process.returncode, out, errors)
        assert len(lines) == 2 and lines[1].startswith("hint: "), errors
    for one in daemon.get("/v1/workspaces").json()["items"]:
        daemon("rm", "--force", one["id"])


def test_an_interrupted_list_of_removals_ends(daemon):
    """What was not yet asked for isn't."""
    with created(daemon) as first, created(daemon) as second:
        with stopped_core(daemon):
            with subprocess.Popen([daemon.path, "rm", "--force", first, second], env=daemon.env, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True) as process:
                assert eventually(lambda: catches(process, signal.SIGINT))
                process.send_signal(signal.SIGINT)
                process.communicate(timeout=60)
        assert process.returncode == 125
        assert daemon.get(f"/v1/workspaces/{second}").status == 200
