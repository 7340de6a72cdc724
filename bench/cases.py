"""Cells of an eval case with packages, beside a virtualenv and an install for each."""

import contextlib
import glob
import json
import os
import shutil
import subprocess
import time

import daemon
from measure import Failed, Quiet, Who, say
from report import machine, table, verdict

CELLS, INSTALLS = 100, 5
TENTH, AT_ONCE = 0.1, 1.7
COMMANDS = ("import werkzeug", "import pytest")
CASE = """id: bench
environment: {{requirements: [pytest, werkzeug]}}
harness: {}
graders:
- {{type: command, run: {}}}
"""
ABOUT = f"""\
### How it is measured

`bench/run --only cases`. `carrel case run` of one case with {{pytest, werkzeug}}: each cell is a fork, a harness that imports werkzeug, a
diff, and a grader that imports pytest. Time of a cell: that of the whole run, with the preparation of the case, by its cells. Packages are
in the store, and in the cache of uv, before. Beside the cells of `-j 1`, in {INSTALLS} turns, with the same interpreter: `uv venv` and `uv
pip install` into it from that cache, then the same two commands, which compile what they import; then the two commands once more, in what
is a ready virtualenv now. `-j 2` runs as many cells, right after.

The goal is about what a cell costs in place of a virtualenv of its own, so it is measured by what Carrel adds: the time of a cell less that
of its two commands in a ready virtualenv, by that of `uv venv` and `uv pip install`. The whole cell by virtualenv, install and commands
is beside it: most of both is Python, which imports, and no sandbox makes that shorter. Of `uv pip install` most is the question to the
registry whether the cache is current; the row with `--offline` is without that question."""


def seconds(words, cwd, env):
    began = time.monotonic()
    done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=900)
    if done.returncode:
        raise Failed(f"{' '.join(words[:4])}: {(done.stderr or done.stdout).strip()[-300:]}")
    return time.monotonic() - began


def python():
    """The interpreter that environments have: the first of the PATH of a sandbox."""
    return shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin")


def run_commands(venv, directory, env):
    return sum(seconds([os.path.join(venv, "bin/python"), "-c", command], directory, env) for command in COMMANDS)


def install(uv, directory, env):
    """Times of a virtualenv with the packages, of the commands of a cell in it, and of these once more."""
    venv = os.path.join(directory, "venv")
    whole = []
    for more in (["--offline"], []):
        shutil.rmtree(venv, ignore_errors=True)
        made = seconds([uv, "venv", "-q", "--python", python(), venv], directory, env)
        whole.append(made + seconds([uv, "pip", "install", "-q", *more, "--python", f"{venv}/bin/python", "pytest", "werkzeug"], directory, env))
    return {"offline": whole[0], "install": whole[1], "first": run_commands(venv, directory, env), "ready": run_commands(venv, directory, env)}


def run_cells(carrel, directory, env, jobs, count, name, commands=None):
    case = os.path.join(directory, "bench.yaml")
    with open(case, "w", encoding="utf-8") as file:
        file.write(CASE.format(*(commands or [f"python3 -c '{command}'" for command in COMMANDS])))
    out = os.path.join(directory, f"out-{jobs}-{name}")
    return seconds([carrel, "case", "run", case, "--repeat", str(count), "-j", str(jobs), "--out", out], directory, env) / count


def mean(times):
    return sum(times) / len(times)


def measure_all(tools, directory, short):
    """(text of the section, list of what could not be measured)"""
    quiet, problems, goals, rows = Quiet(), [], [], []
    count, installs = (10, 2) if short else (CELLS, INSTALLS)
    who = Who("this user", os.getuid(), os.getgid(), os.path.join(directory, "home"))
    try:
        with contextlib.ExitStack() as stack:
            served = daemon.Daemon(who, tools["carrel"], "cases")
            stack.callback(served.stop)
            env = {**os.environ, "CARREL_HOST": f"unix:{served.socket}", "UV_CACHE_DIR": os.path.join(directory, "uv")}
            say("bench: cells")
            env.pop("PYTHONDONTWRITEBYTECODE", None)
            run_cells(tools["carrel"], directory, env, 1, 1, "first")
            uv, = glob.glob(os.path.join(served.home, "tools/uv-*/uv"))  # that carrel itself uses
            seconds([uv, "venv", "-q", "--python", python(), f"{directory}/filled"], directory, env)
            seconds([uv, "pip", "install", "-q", "--python", f"{directory}/filled/bin/python", "pytest", "werkzeug"], directory, env)
            quiet.wait()
            venvs, ones, idle = [], [], []
            for turn in range(installs):
                venvs.append(install(uv, directory, env))
                ones.append(run_cells(tools["carrel"], directory, env, 1, count // installs, turn))
                idle.append(run_cells(tools["carrel"], directory, env, 1, count // installs, f"idle{turn}", ["'true'", "'true'"]))
            venv = {key: sorted(one[key] for one in venvs)[len(venvs) // 2] for key in venvs[0]}
            one = mean(ones)
            added, whole = one - venv["ready"], venv["install"] + venv["first"]
            pairs = [(run_cells(tools["carrel"], directory, env, 1, count, f"a{turn}"),
                      run_cells(tools["carrel"], directory, env, 2, count, f"b{turn}")) for turn in range(1 if short else 2)]
            speeds = mean([first / second for first, second in pairs])
            goals = [["what a cell adds to its commands / venv and uv install", f"<= {TENTH}", f"{added / venv['install']:.2f}", verdict(added / venv["install"], TENTH)],
                     ["whole cell / venv, uv install and the same commands", "-", f"{one / whole:.2f}", ""],
                     ["-j 2, times the cells of -j 1", f">= {AT_ONCE}", f"{speeds:.2f}", "met" if speeds >= AT_ONCE else "missed"]]
            rows = [["cell, -j 1", one], ["its commands, in a ready venv", venv["ready"]], ["cell less its commands", added],
                    ["cell whose commands are `true`, -j 1", mean(idle)],
                    ["venv and uv install", venv["install"]], ["venv and uv install --offline", venv["offline"]],
                    ["venv, uv install and the commands", whole],
                    *[[f"cell, -j {jobs}, of {count}", spent] for pair in pairs for jobs, spent in zip((1, 2), pair)]]
            rows = [[name, f"{1000 * spent:.0f} ms"] for name, spent in rows]
    except (Failed, OSError, subprocess.SubprocessError, json.JSONDecodeError) as problem:
        problems.append(f"cells: {problem}")
    head = "\n".join(f"- {line}" for line in machine(quiet))
    return "\n\n".join([head, "### Goals", table(["goal", "must", "measured", ""], goals), "### Rows",
                        table(["what", "mean"], rows), ABOUT]), problems
