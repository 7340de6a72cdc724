"""A tool that is forged, beside a bare pytest of the same files."""

import contextlib
import glob
import os
import subprocess

import daemon
from cases import seconds
from measure import Failed, Quiet, Who, say
from report import machine, table, verdict

TURNS, MUST = 15, 1.3
CODE = "def run(text):\n    return text.lower()\n"
TESTS = "import tool\n\n\ndef test_one():\n    assert tool.run('A') == 'a'\n\n\ndef test_two():\n    assert tool.run('b') == 'b'\n"
ABOUT = """\
### How it is measured

`bench/run --only forge`. In turns: `python -m pytest` of a module with two tests in a virtualenv of uv, and `carrel tool forge` of the same
files, which runs the tests twice in a sandbox and makes the workspace of the calls; then `carrel tool call`. Packages are in the store
before. Medians."""


def middle(times):
    return sorted(times)[len(times) // 2]


def measure_all(tools, directory, short):
    """(text of the section, list of what could not be measured)"""
    quiet, problems, goals, rows = Quiet(), [], [], []
    who = Who("this user", os.getuid(), os.getgid(), os.path.join(directory, "home"))
    for name, text in (("tool.py", CODE), ("test_tool.py", TESTS)):
        with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
            file.write(text)
    try:
        with contextlib.ExitStack() as stack:
            served = daemon.Daemon(who, tools["carrel"], "forge")
            stack.callback(served.stop)
            env = {**os.environ, "CARREL_HOST": f"unix:{served.socket}", "UV_CACHE_DIR": os.path.join(directory, "uv")}
            forge = [tools["carrel"], "tool", "forge", "bench", "--code", "tool.py", "--tests", "test_tool.py"]
            call = [tools["carrel"], "tool", "call", "bench", '{"text": "A"}']
            bare = [os.path.join(directory, "venv/bin/python"), "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_tool.py"]
            say("bench: tools")
            seconds(forge, directory, env)
            uv, = glob.glob(os.path.join(served.home, "tools/uv-*/uv"))  # that carrel itself uses
            seconds([uv, "venv", "-q", "venv"], directory, env)
            seconds([uv, "pip", "install", "-q", "--python", "venv", "pytest"], directory, env)
            seconds(bare, directory, env)
            quiet.wait()
            times = [[seconds(words, directory, env) for words in (bare, forge, call)] for _ in range(5 if short else TURNS)]
            one, forged, called = (middle(column) for column in zip(*times))
            goals = [["forge of a tool / bare pytest", f"<= {MUST}", f"{forged / one:.2f}", verdict(forged / one, MUST)]]
            rows = [["bare pytest", f"{1000 * one:.0f} ms"], ["tool forge", f"{1000 * forged:.0f} ms"], ["tool call", f"{1000 * called:.0f} ms"]]
    except (Failed, OSError, ValueError, subprocess.SubprocessError) as problem:
        problems.append(f"tools: {problem}")
    head = "\n".join(f"- {line}" for line in machine(quiet))
    return "\n\n".join([head, "### Goals", table(["goal", "must", "measured", ""], goals), "### Rows",
                        table(["what", "median"], rows), ABOUT]), problems
