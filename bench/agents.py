"""Messages to an A2A agent, beside the same command by an exec of REST."""

import contextlib
import os
import random
import statistics
import time

import daemon
from measure import Failed, Quiet, Who, say
from report import machine, table, verdict
from stats import percentile, ratio

ROUNDS, WARM_UP, PART = 600, 50, 50
MUST_CONTEXT, MUST_SEND = 1.2, 2.0
REST, CONTEXT, RPC, HTTP, NEW = "exec by REST", "exec in a context", "send by JSON-RPC", "send by HTTP+JSON", "send without a context"
COMMIT = "one durable commit of the store"
YAML = "name: bench\ndescription: runs commands\nversion: v1\nkind: shell\n"
ABOUT = f"""\
### How it is measured

`bench/run --only agents`. Every round runs `sh -c true` once by each row, in a shuffled order, on one kept connection to one daemon: an exec of
REST in a workspace, the same in the workspace of a context, and `message:send` to an agent of `kind: shell` by both bindings in a context; in
rounds of its own without a context, where a workspace is made and removed. {WARM_UP} rounds of warm-up are thrown away. A send is answered after its end is
in the store, an exec of REST stores nothing: the last row is what such a commit takes in the same rounds (a change of the labels of a
workspace). p10 is what a row takes when little else runs. In brackets: 95 % of 1,000 bootstrap resamples."""


class Client:
    def __init__(self, served):
        self.connection = served.connection
        self.workspace = served.create(name="bench")
        self.number = 0
        status, body = self.connection.call("POST", "/v1/agents", {"yaml": YAML})
        if status != 201:
            raise Failed(f"add an agent: {status} {body[:200]!r}")

    def timed(self, path, body, word, method="POST"):
        began = time.monotonic_ns()
        status, answer = self.connection.call(method, path, body)
        took = time.monotonic_ns() - began
        if status != 200 or word not in answer:
            raise Failed(f"{path}: {status} {answer[:200]!r}")
        return took

    def exec(self, workspace):
        return self.timed(f"/v1/workspaces/{workspace}/exec", {"command": "true"}, b'"exit_code":0')

    def message(self, context):
        return {"message": {"messageId": "m", "parts": [{"text": "true"}], **({"contextId": context} if context else {})}}

    def rpc(self):
        body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": self.message("c")}
        return self.timed("/a2a/bench", body, b"TASK_STATE_COMPLETED")

    def http(self, context):
        return self.timed("/a2a/bench/message:send", self.message(context), b"TASK_STATE_COMPLETED")

    def commit(self):
        self.number += 1
        return self.timed(f"/v1/workspaces/{self.workspace}", {"labels": {"n": str(self.number)}}, b'"n":', "PATCH")

    def rows(self):
        return {REST: lambda: self.exec("bench"), CONTEXT: lambda: self.exec("bench%2Fc"), RPC: self.rpc,
                HTTP: lambda: self.http("c"), NEW: lambda: self.http(None), COMMIT: self.commit}


def measure(client, rounds, quiet):
    """{row: {round: ns}}"""
    rows = client.rows()
    times = {name: {} for name in rows}
    client.http("c")
    # What is removed after an answer would disturb the next row: those rounds come last.
    for names in ([name for name in rows if name != NEW], [NEW]):
        for number in range(-WARM_UP, rounds):
            if number % PART == 0:
                quiet.wait()
            random.shuffle(names)
            for name in names:
                took = rows[name]()
                if number >= 0:
                    times[name][number] = took
    return times


def measure_all(tools, directory, short):
    """(text of the section, list of what could not be measured)"""
    quiet, problems, goals, lines = Quiet(), [], [], []
    who = Who("this user", os.getuid(), os.getgid(), os.path.join(directory, "home"))
    try:
        with contextlib.ExitStack() as stack:
            say("bench: agents")
            served = daemon.Daemon(who, tools["carrel"], "agents")
            stack.callback(served.stop)
            times = measure(Client(served), 50 if short else ROUNDS, quiet)
            for what, row, must in (("exec in a context / exec by REST", CONTEXT, MUST_CONTEXT), ("message:send, JSON-RPC / exec by REST", RPC, MUST_SEND),
                                    ("message:send, HTTP+JSON / exec by REST", HTTP, MUST_SEND)):
                middle, low, high = ratio(times[row], times[REST])
                goals.append([what, f"<= {must}", f"{middle:.2f} ({low:.2f}-{high:.2f})", verdict(middle, must)])
            for name, taken in times.items():
                values = list(taken.values())
                lines.append([name, f"{percentile(values, 10) / 1e6:.2f} ms", f"{statistics.median(values) / 1e6:.2f} ms", f"{percentile(values, 95) / 1e6:.2f} ms", f"{ratio(taken, times[REST])[0]:.2f}"])
    except (Failed, OSError, ValueError) as problem:
        problems.append(f"agents: {problem}")
    head = "\n".join(f"- {line}" for line in machine(quiet))
    return "\n\n".join([head, "### Goals", table(["goal", "must", "measured", ""], goals), "### Rows",
                        table(["what", "p10", "median", "p95", "median / REST"], lines), ABOUT]), problems
