"""Rollouts of an agent package until it is healthy, beside uvicorn that is started bare."""

import contextlib
import glob
import io
import json
import os
import socket
import subprocess
import time
import zipfile

import daemon
from cases import seconds
from measure import Failed, Quiet, Who, say
from report import machine, table, verdict

TURNS, AGAIN, FIRST = 15, 1.3, 1.5
REQUIREMENTS = "fastapi\nuvicorn\n"
APP = "from fastapi import FastAPI\n\napp = FastAPI()\n\n\n@app.get('/healthz')\ndef health():\n    return {'ok': True}\n"
AGENT = "name: bench\nversion: 1.0.0\nrest: {module: 'main:app', health: /healthz}\n"
ABOUT = """\
### How it is measured

`bench/run --only deployments`. In turns, with one FastAPI application: `python -m uvicorn` in a virtualenv of uv, from its start until
`GET /healthz` is answered with 200 (asked every 2 ms); `POST /v1/deployments` of the package that is live already (the same layer and
environment; new workspace, sandbox and process), until the event `deployment.status` says healthy; and the same of an agent that is
deployed for the first time: its package comes from the blob store and is unpacked and frozen, and its environment is composed of the layers
of packages, which are there. Medians; the last rows are times between the events of the rollouts."""


class Rollouts:
    """A daemon's deployments, and a stream of its events."""

    def __init__(self, served):
        self.served, self.events = served, daemon.Connection(served.socket, served.who)
        self.events.socket.sendall(b"GET /v1/events HTTP/1.1\r\nHost: bench\r\nAccept: text/event-stream\r\n\r\n")
        while b"\r\n\r\n" not in self.events.rest:
            self.events.more()
        self.events.rest = b""

    def call(self, method, path, body=None):
        status, answer = self.served.connection.call(method, path, body)
        if status >= 300:
            raise Failed(f"{method} {path}: {status} {answer[:300]!r}")
        return answer

    def put(self, agent, data):
        connection = self.served.connection
        connection.socket.sendall(f"PUT /v1/packages/{agent}@1.0.0 HTTP/1.1\r\nHost: bench\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
        status, answer = connection.answer()
        if status != 201:
            raise Failed(f"PUT of the package: {status} {answer[:300]!r}")

    def roll_out(self, agent):
        """(seconds until it is healthy, those until each status before)"""
        self.events.rest, parts, began = b"", {}, time.monotonic()
        self.call("POST", "/v1/deployments", {"agentAppId": agent, "version": "1.0.0"})
        while True:
            for line in self.lines():
                status = line.get("status") if line.get("type") == "deployment.status" else None
                parts.setdefault(status, time.monotonic() - began)
                if status == "healthy":
                    return parts.pop("healthy"), parts
                if status == "failed":
                    raise Failed(f"rollout: {line}")
            self.events.more()

    def lines(self):
        """Data of the events that are here as a whole."""
        *whole, self.events.rest = self.events.rest.split(b"\n")
        for line in whole:
            if line.startswith(b"data:"):
                with contextlib.suppress(ValueError):
                    data = json.loads(line[5:])
                    yield {**data, **data.get("data", {})}

    def remove(self, agent):
        """It is gone with its workspaces: that costs the next one nothing."""
        self.call("DELETE", f"/v1/deployments/{agent}")
        while len(json.loads(self.call("GET", "/v1/workspaces?label=carrel.service=deployments"))["items"]) > 2:
            time.sleep(0.01)


def package(agent):
    """Not the bytes of another agent's: its layer is its own."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in (("agent.yaml", AGENT + f"description: {agent}\n"), ("requirements.txt", REQUIREMENTS), ("src/main.py", APP)):
            archive.writestr(name, text)
    return out.getvalue()


def bare(directory, env):
    """Seconds until uvicorn, which is started here, answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    began = time.monotonic()
    words = [os.path.join(directory, "venv/bin/python"), "-m", "uvicorn", "main:app", "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(words, cwd=directory, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while time.monotonic() - began < 60:
            # A connection that is refused costs next to nothing: the asking doesn't slow the start.
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)) as client:
                client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                if client.recv(4096).startswith(b"HTTP/1.1 200"):
                    return time.monotonic() - began
            time.sleep(0.002)
        raise Failed("uvicorn does not answer")
    finally:
        process.kill()
        process.wait()


def middle(times):
    return sorted(times)[len(times) // 2]


def measure_turns(rollouts, directory, env, quiet, turns):
    """Lists of times: bare, again, first; and the parts of the latter two."""
    times, parts = ([], [], []), ([], [])
    for number in range(turns):
        quiet.wait()
        times[0].append(bare(directory, env))
        new = f"bench-{number}"
        rollouts.put(new, package(new))
        for kind, agent in ((1, "bench"), (2, new)):
            spent, statuses = rollouts.roll_out(agent)
            times[kind].append(spent)
            parts[kind - 1].append(statuses)
        rollouts.remove(new)
    return times, parts


def parts_rows(title, spent, parts):
    rows, before = [], 0
    for status, label in (("starting", "package, layer, environment and workspace"), (None, "start, until healthy")):
        until = middle([one[status] for one in parts]) if status else spent
        rows.append([f"{title}: {label}", f"{1000 * (until - before):.0f} ms"])
        before = until
    return rows


def measure_all(tools, directory, short):
    """(text of the section, list of what could not be measured)"""
    quiet, problems, goals, rows = Quiet(), [], [], []
    who = Who("this user", os.getuid(), os.getgid(), os.path.join(directory, "home"))
    with open(os.path.join(directory, "main.py"), "w", encoding="utf-8") as file:
        file.write(APP)
    try:
        with contextlib.ExitStack() as stack:
            served = daemon.Daemon(who, tools["carrel"], "deployments")
            stack.callback(served.stop)
            env = {**os.environ, "CARREL_HOST": f"unix:{served.socket}", "CARREL_HOME": served.home, "UV_CACHE_DIR": os.path.join(directory, "uv")}
            say("bench: deployments")
            rollouts = Rollouts(served)
            rollouts.put("bench", package("bench"))
            rollouts.roll_out("bench")
            uv, = glob.glob(os.path.join(served.home, "tools/uv-*/uv"))  # that carrel itself uses
            seconds([uv, "venv", "-q", "venv"], directory, env)
            seconds([uv, "pip", "install", "-q", "--compile-bytecode", "--python", "venv", *REQUIREMENTS.split()], directory, env)
            bare(directory, env)
            times, parts = measure_turns(rollouts, directory, env, quiet, 5 if short else TURNS)
            one, again, first = (middle(column) for column in times)
            goals = [["redeploy of a cached package to healthy / uvicorn bare", f"<= {AGAIN}", f"{again / one:.2f}", verdict(again / one, AGAIN)],
                     ["first deploy with present layers / uvicorn bare", f"<= {FIRST}", f"{first / one:.2f}", verdict(first / one, FIRST)]]
            rows = [["uvicorn bare, until it answers", f"{1000 * one:.0f} ms"], ["redeploy, until healthy", f"{1000 * again:.0f} ms"],
                    ["first deploy, until healthy", f"{1000 * first:.0f} ms"],
                    *parts_rows("redeploy", again, parts[0]), *parts_rows("first deploy", first, parts[1])]
    except (Failed, OSError, ValueError, subprocess.SubprocessError) as problem:
        problems.append(f"deployments: {problem}")
    head = "\n".join(f"- {line}" for line in machine(quiet))
    return "\n\n".join([head, "### Goals", table(["goal", "must", "measured", ""], goals), "### Rows",
                        table(["what", "median"], rows), ABOUT]), problems
