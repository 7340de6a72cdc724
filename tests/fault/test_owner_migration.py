"""A home of version 9, where labels said whose a workspace is, is taken over once: they are believed where a row of the service names
the workspace."""
# security: authority
import contextlib
import json
import pathlib
import sqlite3

import pytest

from daemons import make_furnished as make_daemon  # noqa: F401
from harness import eventually
from rest import quoted

YAML = "name: tools\ndescription: runs commands\nversion: v1\nkind: shell\nnamespace: team1\nttl: 1h\n"
LABELS = {"owner_service": "carrel.service", "owner_task": "carrel.task", "owner_deployment": "carrel.deployment", "owner_role": "carrel.role",
          "owner_case_id": "carrel.case", "owner_tool": "carrel.tool", "owner_tool_version": "carrel.tool-version",
          **{"owner_" + name: name for name in ("agent", "namespace", "context_id", "package_id")}}
CASE = "id: x\nsource: x\nharness: 'true'\ngraders: [{type: command, run: 'true'}]\n"


def send(daemon, command, context):
    message = {"message": {"messageId": "m", "parts": [{"text": command}], "contextId": context}}
    task = daemon.post("/a2a/tools/message:send", message).json()["task"]
    return "".join(part["text"] for one in task.get("artifacts", []) if one["artifactId"] == "stdout" for part in one["parts"])


@contextlib.contextmanager
def database(daemon):
    with contextlib.closing(sqlite3.connect(pathlib.Path(daemon.env["CARREL_HOME"], "carrel.db"))) as db, db:
        yield db


def age(daemon, forged):
    """As version 9 has it: what is an owner's is labels. `forged`: labels that a client has written."""
    with database(daemon) as db:
        for name, text in db.execute("SELECT name, document FROM workspaces").fetchall():
            document = json.loads(text)
            document["labels"] += [[label, document.pop(member)] for member, label in LABELS.items() if member in document]
            document["labels"] += list(map(list, forged.get(name, {}).items()))
            db.execute("UPDATE workspaces SET document = ?, sum = 0, expires_ms = CASE expires_ms WHEN 0 THEN 0 ELSE created_ms + 1 END WHERE name = ?",
                       (json.dumps(document), name))
        db.execute("PRAGMA user_version = 9")


FORGED = {
    "forger": {"carrel.service": "agents", "agent": "tools", "context_id": "forged", "team": "red"},
    "sweepable": {"carrel.service": "code", "carrel.mine": "x"},
    "surface": {"carrel.service": "deployments", "carrel.deployment": "0123456789abcdefghij", "package_id": "x@1"},
    "plain": {"context_id": "chat/1", "agent": "coder"},
}
SHOWN = {
    "forger": {"former-carrel.service": "agents", "agent": "tools", "context_id": "forged", "team": "red"},
    "sweepable": {"former-carrel.service": "code", "former-carrel.mine": "x"},
    "surface": {"former-carrel.service": "deployments", "former-carrel.deployment": "0123456789abcdefghij", "package_id": "x@1"},
    "plain": {"context_id": "chat/1", "agent": "coder"},
}


def fill(daemon):
    assert daemon.post("/v1/agents", {"yaml": YAML}).status == 201
    send(daemon, "echo kept > f", "c")
    assert daemon.post("/v1/cases", {"yaml": CASE, "keep": True}).status == 201
    for name in FORGED:
        assert daemon.post("/v1/workspaces", {"name": name}).status == 201
    return {one["id"]: one["labels"] for one in daemon.get("/v1/workspaces").json()["items"] if "carrel.service" in one["labels"]}


def check(daemon, owned):
    shown = {one["name"]: one["labels"] for one in daemon.get("/v1/workspaces").json()["items"]}
    assert {name: shown[name] for name in SHOWN} == SHOWN
    assert {one["id"]: one["labels"] for one in daemon.get("/v1/workspaces?label=carrel.service").json()["items"]} == owned
    assert send(daemon, "cat f", "c") == "kept\n"
    for context in ("tools/forged", "forged", "chat/1"):
        assert daemon.get(f"/v1/workspaces/{quoted(context)}").status == 404
    assert [one["name"] for one in daemon.get("/v1/workspaces?label=" + quoted("context_id=chat/1")).json()["items"]] == ["plain"]
    context = daemon.get("/v1/workspaces/" + quoted("tools/c")).json()
    assert context["labels"] == {"context_id": "c", "agent": "tools", "namespace": "team1", "carrel.service": "agents"}


def test_labels_are_believed_where_a_row_of_the_service_names_the_workspace(make_daemon):
    daemon = make_daemon()
    owned = fill(daemon)
    assert sorted(labels["carrel.service"] for labels in owned.values()) == ["agents", "cases"]
    daemon.stop_serving()
    age(daemon, FORGED)
    daemon.start_serving()
    context = daemon.get("/v1/workspaces/" + quoted("tools/c")).json()      # its ttl runs from its last use now
    assert context["expires_at"] > context["last_used_at"]
    check(daemon, owned)
    daemon.restart()
    check(daemon, owned)
    with database(daemon) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (10,)
        assert not db.execute("SELECT name FROM sqlite_schema WHERE name IN ('claims', 'labels', 'owned')").fetchall()


@pytest.mark.needs_faults
@pytest.mark.parametrize("point", ["store_migrate:1", "store_migrated:1"])
def test_a_core_that_is_killed_while_it_takes_a_home_over_loses_nothing(make_daemon, point):
    daemon = make_daemon()
    owned = fill(daemon)
    daemon.stop_serving()
    age(daemon, FORGED)
    daemon.env["CARREL_FAULT"] = point
    daemon.start_serving(wait=False)
    assert eventually(lambda: daemon.process.poll() is not None), "core reached no fault"
    with database(daemon) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (9 if point == "store_migrate:1" else 10,)
    del daemon.env["CARREL_FAULT"]
    daemon.process = None
    daemon.start_serving()
    check(daemon, owned)


def test_a_database_of_a_later_version_is_refused_in_one_line(make_daemon):
    daemon = make_daemon()
    daemon.stop_serving()
    with database(daemon) as db:
        db.execute("PRAGMA user_version = 11")
    daemon.start_serving(wait=False)
    assert eventually(lambda: "has version 11, this carrel knows 10" in daemon.log())
    daemon.stop_serving()
    with database(daemon) as db:
        db.execute("PRAGMA user_version = 10")
    daemon.start_serving()
