"""Every route of /openapi.json x every kind of credential, over TCP. A new route is judged by its method until it is listed here."""
# security: authority
import contextlib
import json

import pytest

from daemons import serving_anew
from doors import open_door
from harness import eventually

METHODS = ("get", "put", "post", "delete", "patch", "head")
# What a route needs, where its method doesn't say so: GET and HEAD read, the others use.
NEEDS = {**dict.fromkeys(("healthz", "readyz", "openapi", "docs"), "open"), **dict.fromkeys(("listTokens", "createToken", "removeToken", "addAgent", "removeAgent"), "admin"),
         **dict.fromkeys(("checkWorkspace", "verifyIsolation", "forwardPortGet", "forwardRestGet", "forwardA2aGet", "forwardUiGet"), "use"), "verifySnapshot": "read", "answerApproval": "review",
         "audit": "record"}
HAS = {"admin": {"open", "read", "use", "review", "admin", "record"}, "user": {"open", "read", "use"},
       "reviewer": {"open", "read", "review", "record"}}
# Bodies that are valid, by the end of a path: what answers must be the check, not the parser.
BODIES = {"signal": {"signal": "KILL"}, "resize": {"rows": 10, "columns": 10}, "exec": {"argv": ["true"]}, "packages": {"packages": ["x"]},
          "apply": {"to": "mine"}, "rollback": {"snapshot": "kept"}, "push": {"snapshot": "kept"}, "trees": {"name": "shared"},
          "templates": {"yaml": "name: mine\n"}, "agents": {"yaml": "name: mine\ndescription: x\nversion: v1\nkind: shell\n"}, "snapshots": {"tag": "more"},
          "approvals": {"decision": "approve"}, "fork": {"name": "new"}, "code": {"code": "pass"},
          "deployments": {"agentAppId": "a", "version": "1"}, "restore": {"name": "new"}, "cases": {"yaml": "id: a\n"}, "cells": {}, "tools": {"package": "x (no requirement)"},
          "tool-sources": {"name": "x"}}


@pytest.fixture(scope="module")
def table():
    """(door, operations, ids of what is there, headers by credential)."""
    with serving_anew() as daemon:
        door = open_door(daemon)
        make = lambda **body: daemon.post("/v1/tokens", body).json()
        assert daemon.post("/v1/workspaces", {"name": "mine"}).status == 201
        there = {"workspaces": daemon.post("/v1/workspaces", {"name": "there"}).json()["id"]}
        path = f"/v1/workspaces/{there['workspaces']}"
        there["snapshots"] = daemon.post(path + "/snapshots", {"tag": "kept"}).json()["id"]
        there["execs"] = daemon.post(path + "/exec", {"argv": ["sleep", "1000"], "background": True}).json()["id"]
        removed, there["tokens"] = make(), make()["id"]
        texts = {scope: make(scope=scope)["text"] for scope in HAS}
        texts |= {"bound": make(workspace="mine")["text"], "expired": make(ttl="1s")["text"], "removed": removed["text"]}
        texts["wrong"] = texts["admin"][:-1] + ("0" if texts["admin"][-1] != "0" else "1")
        assert daemon.delete(f"/v1/tokens/{removed['id']}").status == 204
        headers = {name: {"Authorization": f"Bearer {text}"} for name, text in texts.items()} | {"none": {}}
        operations = [(verb.upper(), path, operation["operationId"], "requestBody" in operation) for path, verbs in daemon.get("/openapi.json").json()["paths"].items()
                      for verb, operation in verbs.items() if verb in METHODS]
        assert len(operations) > 70
        yield door, operations, there, headers


def needs(verb, operation):
    return NEEDS.get(operation, "read" if verb in ("GET", "HEAD") else "use")


def fill(path, ids):
    noun = (path + "//").split("/")[2]
    return path.replace("{port}", "8000").replace("{path}", "x").replace("{id}", ids.get(noun, "nothing"))


def ask(door, verb, path, body, headers):
    """The status alone: a stream of events has no end."""
    with contextlib.closing(door.connection()) as connection:
        body = None if body is None else json.dumps(body).encode()
        connection.request(verb, path, body, {**headers, **({"Content-Type": "application/json"} if body else {})})
        return connection.getresponse().status


def body_of(verb, path, has_body):
    words = (path + "//").split("/")
    body = {"workspace": "there", "snapshot": "kept"} if path == "/v1/snapshots" else BODIES.get(words[-3], BODIES.get(words[2], {}))
    body = {} if path.startswith("/v1/tools/") else body
    return body if has_body and verb != "PUT" else None


@pytest.mark.once
@pytest.mark.parametrize("scope", HAS)
def test_a_scope_opens_its_routes_and_no_others(table, scope):
    """Of what it may, it asks for things that are not there, with bodies that are wrong: nothing changes."""
    door, operations, there, headers = table
    for verb, path, operation, has_body in operations:
        if needs(verb, operation) in HAS[scope]:
            status = ask(door, verb, fill(path, {}), {"no_such_member": 1} if has_body else None, headers[scope])
            assert status not in (401, 403) and status < 500, (scope, verb, path, status)
        else:
            status = ask(door, verb, fill(path, there), body_of(verb, path, has_body), headers[scope])
            is_found = "nothing" not in fill(path, there)
            assert status == 403 or (status == 404 and not is_found), (scope, verb, path, status)


@pytest.mark.once
@pytest.mark.parametrize("credential", ["expired", "removed", "wrong", "none"])
def test_without_a_valid_token_only_open_routes_answer(table, credential):
    door, operations, there, headers = table
    workspaces = lambda: ask(door, "GET", "/v1/workspaces", None, headers[credential])
    assert eventually(lambda: workspaces() in (401, 429))
    for verb, path, operation, has_body in operations:
        status = ask(door, verb, fill(path, there), body_of(verb, path, has_body), headers[credential])
        is_open = credential == "none" and needs(verb, operation) == "open"
        assert status == 200 if is_open else status in (401, 429), (credential, verb, path, status)


@pytest.mark.once
def test_a_bound_token_stays_in_its_workspace(table):
    door, operations, there, headers = table
    for verb, path, operation, has_body in operations:
        status = ask(door, verb, fill(path, there), body_of(verb, path, has_body), headers["bound"])
        expected = (200,) if needs(verb, operation) == "open" else (200, 400, 403, 404) if "{" not in path else (403, 404)
        assert status in expected, (verb, path, status)


def test_nothing_was_changed(table):
    """After all of that; also where it runs alone."""
    door, _, there, _ = table
    assert {one["name"] for one in door.get("/v1/workspaces").json()["items"]} == {"mine", "there"}
    assert door.get(f"/v1/execs/{there['execs']}").json()["state"] == "running"
