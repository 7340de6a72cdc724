"""The clients of sdk/: what a command costs through a client, beside the HTTP library that the client is made of."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys

import daemon
from measure import Failed, Quiet, Who, say
from report import machine, table, verdict
from stats import ratio

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(HERE)
ROUNDS, CALLS = 40, 25
MOST = 1.3  # times the raw library, p50 of a call
ABOUT = f"""\
### How it is measured

`bench/run --only sdk`. A program in the language of the client (`bench/sdk_python.py`, ...) calls `/bin/true` in one workspace over the
unix socket, on one kept connection: {CALLS} times by the client, then as often by the library under it, which sends the same body and
reads the JSON of the answer; {ROUNDS} rounds, the first thrown away. Both TypeScript rows go over TCP on the loopback, with a token: fetch
can't reach a unix socket. Ratio of medians of a call; in brackets 95 % of bootstrap resamples of rounds."""


class Language:
    """A client: `prepare(directory)` makes what it needs there and returns the words that start its program."""

    def __init__(self, name, library, prepare):
        self.name, self.library, self.prepare = name, library, prepare


def prepare_python(directory):
    environment = os.path.join(directory, "python")
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    pip = [os.path.join(environment, "bin/pip"), "--quiet", "--disable-pip-version-check", "install"]
    subprocess.run([*pip, "httpx"], check=True)
    return ["env", f"PYTHONPATH={TREE}/sdk/python/src", "PYTHONDONTWRITEBYTECODE=1", os.path.join(environment, "bin/python"),
            os.path.join(HERE, "sdk_python.py")]


def prepare_typescript(directory):
    package = os.path.join(directory, "typescript")
    shutil.copytree(os.path.join(TREE, "sdk/typescript"), package, ignore=shutil.ignore_patterns("node_modules", "dist"))
    subprocess.run(["npm", "install", "--ignore-scripts", "--loglevel=error"], cwd=package, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["node_modules/.bin/tsc"], cwd=package, check=True)
    return ["env", f"BENCH_SDK={package}/dist/src/index.js", "node", os.path.join(HERE, "sdk_typescript.mjs")]


LANGUAGES = [Language("Python, synchronous", "httpx", prepare_python), Language("TypeScript", "fetch", prepare_typescript)]


def serve(who, carrel):
    """A daemon that listens on TCP as well, which needs a token in its home: (daemon, environment of the programs)."""
    with contextlib.ExitStack() as stack:
        first = daemon.Daemon(who, carrel, "sdk")
        stack.callback(first.stop)
        status, body = first.connection.call("POST", "/v1/tokens", {})
        if status != 201:
            raise Failed(f"token: {status} {body[:200]!r}")
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    served = daemon.Daemon(who, carrel, "sdk", ["--listen", address])
    return served, {**os.environ, "BENCH_URL": f"http://{address}", "BENCH_TOKEN": json.loads(body)["text"]}


def measure_one(language, directory, path, workspace, rounds, env):
    """({round: ns of a call by the client}, the same by the library). The program prints a line for each round."""
    words = language.prepare(directory)
    done = subprocess.run([*words, path, workspace, str(rounds), str(CALLS)], capture_output=True, text=True, check=False, timeout=600,
                          env=env)
    if done.returncode:
        raise Failed(done.stderr.strip()[-300:])
    lines = [json.loads(line) for line in done.stdout.splitlines()][1:]
    return {number: line["client"] for number, line in enumerate(lines)}, {number: line["raw"] for number, line in enumerate(lines)}


def measure_all(tools, directory, short):
    """(text of the section, list of what could not be measured)"""
    quiet, problems, goals, rows = Quiet(), [], [], []
    who = Who("this user", os.getuid(), os.getgid(), os.path.join(directory, "home"))
    with contextlib.ExitStack() as stack:
        served, env = serve(who, tools["carrel"])
        stack.callback(served.stop)
        workspace = served.create()
        served.exec(workspace)
        for language in LANGUAGES:
            say(f"bench: {language.name}")
            quiet.wait()
            try:
                client, raw = measure_one(language, directory, served.socket, workspace, 6 if short else ROUNDS, env)
            except (Failed, OSError, subprocess.SubprocessError) as problem:
                problems.append(f"{language.name}: {problem}")
                continue
            middle, low, high = ratio(client, raw)
            goals.append([f"{language.name} / {language.library}", f"<= {MOST}", f"{middle:.2f} ({low:.2f}-{high:.2f})",
                          verdict(middle, MOST)])
            rows += [[name, f"{sorted(times.values())[len(times) // 2] / 1000:.0f} µs"]
                     for name, times in ((language.name, client), (language.library, raw))]
    head = "\n".join(f"- {line}" for line in machine(quiet))
    return "\n\n".join([head, "### Goals", table(["goal", "must", "measured", ""], goals), "### Rows",
                        table(["one command", "p50"], rows), ABOUT]), problems
