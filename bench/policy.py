"""The judge of commands: how long one request takes, and how many a stream answers."""

import json
import subprocess
import time

from measure import Failed, Quiet
from report import machine, table, verdict

ROUNDS, SAMPLES = 7, 200
LINES = 20_000
USUAL_US, MANY_US = 20, 100  # the goals, for few rules and for 10,000
NAMES = {
    "short": "`ls -la src`",
    "usual": "`cd src`, `grep`, `head` in one line",
    "git": "`git -C sub log … -- a.py`",
    "pipeline": "a pipeline of four with redirections",
    "script": "a script of ten lines with `bash -c`",
    "file": "a file, in the syntax of a rule",
    "network": "a connection, likewise",
}
ABOUT = f"""\
### How it is measured

`bench/policy.c` judges each request 64 times in a row, {SAMPLES} such samples in each of {ROUNDS} rounds; shown is the least
median of a round, as other work only adds. A request has an arena of its own, as in core. 24 rules of an agent that works on
files; then 10,000 more: commands, subcommands of git, directories and hosts. The stream is `carrel policy check --stream`
with {LINES:,} requests, each with all of its settings in the line."""


def least_times(program):
    least = {}
    for _ in range(ROUNDS):
        done = subprocess.run([program, str(SAMPLES)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failed(f"bench/policy: {done.stderr.strip()}")
        for line in done.stdout.splitlines():
            name, median, _ = line.split()
            least[name] = min(float(median), least.get(name, float(median)))
    return least


def stream_rate(carrel):
    """Lines a second, at best."""
    settings = {"permissions": {"allow": [f"shell({name}:*)" for name in ("ls", "grep", "cat", "git status", "head", "sed")],
                                "deny": ["shell(curl:*)", "shell(sudo:*)"]}}
    text = "".join(json.dumps({"kind": "shell", "settings": settings, "command": f"grep -rn foo src/{i} | head -{i}"}) + "\n"
                   for i in range(LINES))
    best = 0
    for _ in range(3):
        began = time.perf_counter()
        done = subprocess.run([carrel, "policy", "check", "--stream"], input=text, capture_output=True, text=True, check=False)
        if done.returncode or done.stdout != "allow\n" * LINES:
            raise Failed("policy check --stream: unexpected answers")
        best = max(best, LINES / (time.perf_counter() - began))
    return best


def measure_all(tools):
    """(text of the section, list of what could not be measured)"""
    quiet = Quiet()
    quiet.wait()
    times = least_times(tools["policy"])
    rows = [[NAMES[name], f"{times[name + '/0'] / 1000:.1f} µs", f"{times[name + '/10000'] / 1000:.1f} µs"] for name in NAMES]
    usual = times["usual/0"] / 1000
    many = max(times[name + "/10000"] for name in NAMES) / 1000
    goals = [["a usual command", f"<= {USUAL_US} µs", f"{usual:.1f} µs", verdict(usual, USUAL_US)],
             ["any of these with 10,000 rules", f"<= {MANY_US} µs", f"{many:.1f} µs", verdict(many, MANY_US)]]
    text = ["  \n".join(machine(quiet)), "### Goals", table(["goal", "must", "measured", ""], goals), "### Rows",
            table(["request", "24 rules", "10,024 rules"], rows),
            f"The stream answers {stream_rate(tools['carrel']):,.0f} requests a second.", ABOUT]
    return "\n\n".join(text), []
