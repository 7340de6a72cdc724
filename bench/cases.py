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
CASE = """id: bench
environment: {requirements: [pytest, werkzeug]}
harness: python3 -c 'import werkzeug'
graders:
- {type: command, run: python3 -c 'import pytest'}
"""
ABOUT = f"""\
### How it is measured

`bench/run --only cases`. `carrel case run` of one case with {{pytest, werkzeug}}: each cell is a fork, a harness that imports werkzeug, a
diff, and a grader that imports pytest. Packages are in the store, and in the cache of uv, before. Beside it, in turns with the cells of
`-j 1`: `uv venv` and `uv pip install` into it from that cache ({INSTALLS} times), then the same two commands. Time of a cell: that of the
whole run, with the preparation of the case, by its cells. `-j 2` runs as many cells, right after."""


def seconds(words, cwd, env):
    began = time.monotonic()
    done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=900)
    if done.returncode:
        raise Failed(f"{' '.join(words[:4])}: {(done.stderr or done.stdout).strip()[-300:]}")
    return time.monotonic() - began


def install(uv, directory, env):
    """A virtualenv with the packages, and the commands of the cell in it."""
    venv = os.path.join(directory, "venv")
    shutil.rmtree(venv, ignore_errors=True)
    spent = seconds([uv, "venv", "-q", venv], directory, env)
    spent += seconds([uv, "pip", "install", "-q", "--python", venv, "pytest", "werkzeug"], directory, env)
    for module in ("werkzeug", "pytest"):
        spent += seconds([os.path.join(venv, "bin/python"), "-c", f"import {module}"], directory, env)
    return spent


def run_cells(carrel, directory, env, jobs, count, turn):
    case = os.path.join(directory, "bench.yaml")
    with open(case, "w", encoding="utf-8") as file:
        file.write(CASE)
    out = os.path.join(directory, f"out-{jobs}-{turn}")
    return seconds([carrel, "case", "run", case, "--repeat", str(count), "-j", str(jobs), "--out", out], directory, env) / count


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
            run_cells(tools["carrel"], directory, env, 1, 1, "first")
            uv, = glob.glob(os.path.join(served.home, "tools/uv-*/uv"))  # that carrel itself uses
            install(uv, directory, env)
            quiet.wait()
            venvs, ones = [], []
            for turn in range(installs):
                venvs.append(install(uv, directory, env))
                ones.append(run_cells(tools["carrel"], directory, env, 1, count // installs, turn))
            one, venv = sum(ones) / len(ones), sorted(venvs)[len(venvs) // 2]
            pairs = [(run_cells(tools["carrel"], directory, env, 1, count, f"a{turn}"),
                      run_cells(tools["carrel"], directory, env, 2, count, f"b{turn}")) for turn in range(1 if short else 2)]
            speeds = sum(first / second for first, second in pairs) / len(pairs)
            goals = [["cell / venv, uv install and the same commands", f"<= {TENTH}", f"{one / venv:.2f}", verdict(one / venv, TENTH)],
                     ["-j 2, times the cells of -j 1", f">= {AT_ONCE}", f"{speeds:.2f}", "met" if speeds >= AT_ONCE else "missed"]]
            rows = [["cell, -j 1", f"{1000 * one:.0f} ms"], ["venv, uv install, commands", f"{1000 * venv:.0f} ms"],
                    *[[f"cell, -j {jobs}, of {count}", f"{1000 * spent:.0f} ms"] for pair in pairs for jobs, spent in zip((1, 2), pair)]]
    except (Failed, OSError, subprocess.SubprocessError, json.JSONDecodeError) as problem:
        problems.append(f"cells: {problem}")
    head = "\n".join(f"- {line}" for line in machine(quiet))
    return "\n\n".join([head, "### Goals", table(["goal", "must", "measured", ""], goals), "### Rows",
                        table(["what", "mean"], rows), ABOUT]), problems
