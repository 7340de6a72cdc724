"""What the tests of the REST doors share."""
import contextlib
import json
import urllib.parse

import pytest


@contextlib.contextmanager
def created(daemon, **body):
    """A workspace for the block."""
    answer = daemon.post("/v1/workspaces", body)
    assert answer.status == 201, answer
    try:
        yield answer.json()
    finally:
        assert daemon.delete(answer.headers["Location"]).status in (204, 404)


@pytest.fixture
def workspace(daemon):
    """The name of a workspace of the test's own."""
    with created(daemon) as workspace:
        yield workspace["name"]


def problem(answer, status, code, *words):
    """The answer must be that problem, and its text must have the words."""
    assert answer.status == status, answer
    assert answer.headers["Content-Type"] == "application/problem+json"
    body = answer.json()
    assert body["status"] == status and body["code"] == code and body["title"], body
    assert body["request_id"] == answer.headers["X-Request-Id"]
    for word in words:
        assert word in body["detail"] + (body["hint"] or ""), body
    return body


def file_url(workspace, path="", query=""):
    return f"/v1/workspaces/{workspace}/files/{urllib.parse.quote(path)}{query}"


def output_of(daemon, workspace, command):
    """What a shell command inside writes; it must succeed."""
    answer = daemon.post(f"/v1/workspaces/{workspace}/exec", {"command": command}).json()
    assert answer["exit_code"] == 0, answer
    return answer["stdout"]


def quoted(text):
    return urllib.parse.quote(text, safe="")


class Events:
    """Server-sent events of one connection."""

    def __init__(self, daemon, path, headers=None, method="GET", body=None):
        self.connection = daemon.connection()
        self.connection.request(method, path, body, {"Accept": "text/event-stream", **(headers or {})})
        self.response = self.connection.getresponse()
        assert self.response.status == 200, self.response.read()
        assert self.response.headers["Content-Type"] == "text/event-stream"

    def __iter__(self):
        event = {}
        for line in self.response:
            line = line.decode().rstrip("\n")
            if not line and "data" in event:
                yield event
                event = {}
            elif line and not line.startswith(":"):
                name, value = line.split(": ", 1)
                event[name] = json.loads(value) if name == "data" else value

    def until(self, kind):
        """What came, up to the first of that kind."""
        came = []
        for event in self:
            came.append(event)
            if event["event"] == kind:
                return came
        raise AssertionError(f"no {kind} in {came}")

    def close(self):
        self.connection.close()
