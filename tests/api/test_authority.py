"""Whose a workspace is, and its context, is not for clients to write: every way to write a label or a field of a workspace, with every
meaning that it might have."""
# security: authority
import contextlib
import json

import pytest

from daemons import configure, make_furnished as make_daemon, serving_anew  # noqa: F401
from harness import eventually
from rest import problem, quoted
from test_a2a import TOOLS, Agent, add, text
from test_restore import FILE, json_entry, packed

# What a label might mean: the first is an agent's context, most others are workspaces that a service removes at a start.
MEANINGS = {
    "context": {"carrel.service": "agents", "agent": "tools", "context_id": "c1"},
    "task": {"carrel.service": "agents", "agent": "tools", "carrel.task": "0123456789abcdefghij"},
    "code": {"carrel.service": "code"},
    "push": {"carrel.service": "push"},
    "tool": {"carrel.service": "tools", "carrel.tool": "adder", "carrel.tool-version": "1"},
    "deployment": {"carrel.service": "deployments", "carrel.deployment": "0123456789abcdefghij", "carrel.role": "rest", "package_id": "x@1.0.0"},
    "case": {"carrel.service": "cases", "carrel.case": "0123456789abcdefghij"},
    "new": {"carrel.later": "x"},
}
# Labels that a client may give when it makes a workspace, and never after it.
FIXED = ("context_id", "agent", "namespace")
KEY = "tools/c1"


class Home:
    """A daemon with an agent, and clients of several kinds."""

    def __init__(self, daemon):
        self.daemon, self.made = daemon, 0
        add(daemon, TOOLS)
        daemon("create", "base")
        self.user = self.token(scope="user")

    def token(self, **body):
        return {"Authorization": "Bearer " + self.daemon.post("/v1/tokens", {"scope": "admin", **body}).json()["text"]}

    def name(self):
        self.made += 1
        return f"w{self.made}"

    def create(self, headers=None, **body):
        return self.daemon.request("POST", "/v1/workspaces", {"name": self.name(), **body}, headers)

    def patch(self, labels, headers=None, name="base"):
        return self.daemon.request("PATCH", f"/v1/workspaces/{name}", {"labels": labels}, headers)

    def record(self):
        """carrel.json of an archive, as a client may write it."""
        kept = {"ttl_ms": 0, "idle_timeout_ms": 0, "labels": [], "env": [], "environment": None, "python": None, "requirements": None,
                "packages": [], "is_context": False, "disk_usage_bytes": 0, "disk_mechanism": "counted", "error": None,
                "limits": {"memory_bytes": 1 << 28, "disk_bytes": 1 << 28, "tmp_bytes": 1 << 26, "pids": 100, "fds": 100, "millicpus": 0,
                           "cpu_time_ms": 0, "timeout_ms": 0, "output_bytes": 0}}
        return {"version": 1, "name": "x", "archived_at": "2026-11-16T09:51:52.123Z", "workspace": kept}

    def restore(self, **members):
        record, name = self.record(), self.name()
        record["workspace"].update(members)
        archive = f"/v1/archives/{name}-20261116T095152.123Z.tar.zst"
        sent = self.daemon.request("PUT", archive, packed([json_entry("carrel.json", record), FILE]), self.user)
        assert sent.status in (200, 201, 204), sent
        return self.daemon.post(archive + "/restore", {}, headers=self.user)

    def template(self, labels):
        name = self.name()
        answer = self.daemon.post("/v1/templates", {"yaml": f"name: {name}\nlabels: {json.dumps(labels)}\n"})
        return answer if answer.status >= 400 else self.create(template=name)

    def run(self, *words):
        """A command, as an answer of REST."""
        done = self.daemon(*words)
        return Ran(done)


class Ran:
    def __init__(self, done):
        self.status, self.detail = (400 if done.returncode else 201), done.stderr

    def json(self):
        return {"detail": self.detail}


REFUSED, DROPPED = "refused", "dropped"
WAYS = {
    "create": (REFUSED, lambda home, labels: home.create(labels=labels)),
    "create by a user": (REFUSED, lambda home, labels: home.create(home.user, labels=labels)),
    "create by command": (REFUSED, lambda home, labels: home.run("create", home.name(), *labels_of(labels))),
    "create from": (REFUSED, lambda home, labels: home.create(**{"from": "base", "labels": labels})),
    "patch": (REFUSED, lambda home, labels: home.patch(labels)),
    "patch by a user": (REFUSED, lambda home, labels: home.patch(labels, home.user)),
    "patch by the bound": (REFUSED, lambda home, labels: home.patch(labels, home.token(workspace="base"))),
    "update by command": (REFUSED, lambda home, labels: home.run("update", "base", *labels_of(labels))),
    "template": (REFUSED, lambda home, labels: home.template(labels)),
    "restore of labels": (DROPPED, lambda home, labels: home.restore(labels=list(map(list, labels.items())))),
    "restore of an owner": (DROPPED, lambda home, labels: home.restore(**owner_of(labels))),
    "fork": (DROPPED, lambda home, labels: fork_of_restored(home, labels)),
    # Specs of services have no labels at all.
    "agent": (REFUSED, lambda home, labels: home.daemon.post("/v1/agents", {"yaml": f"{TOOLS}labels: {json.dumps(labels)}\n"})),
    "deployment": (REFUSED, lambda home, labels: home.daemon.post("/v1/deployments", {"agentAppId": "a", "version": "1.0.0", "labels": labels})),
    "tool": (REFUSED, lambda home, labels: home.daemon.post("/v1/tools", {"name": "t", "code": "x", "tests": "x", "labels": labels})),
    "case": (REFUSED, lambda home, labels: home.daemon.post("/v1/cases", {"yaml": f"id: x\nharness: 'true'\nlabels: {json.dumps(labels)}\n"})),
    "field": (REFUSED, lambda home, labels: home.create(owner={"service": "agents"}, owner_service="agents")),
    "field of a change": (REFUSED, lambda home, labels: home.daemon.request("PATCH", "/v1/workspaces/base", {"owner_service": "agents"})),
}


def labels_of(labels):
    return [word for key, value in labels.items() for word in ("--label", f"{key}={value}")]


def owner_of(labels):
    names = {"carrel.service": "service", "carrel.task": "task", "carrel.deployment": "deployment", "carrel.role": "role", "carrel.case": "case_id",
             "carrel.tool": "tool", "carrel.tool-version": "tool_version"}
    return {"owner_" + names.get(key, key): value for key, value in labels.items() if key != "carrel.later"}


def fork_of_restored(home, labels):
    name = home.restore(labels=list(map(list, labels.items()))).json()["name"]
    answer = home.daemon.post(f"/v1/workspaces/{name}/fork", {"name": home.name()})
    assert answer.status == 201, answer
    return home.daemon.get(f"/v1/workspaces/{answer.json()['items'][0]['id']}")


def check_plain(home, shown):
    """It is nobody's: no label says otherwise, nothing finds it, and commands run in it."""
    daemon, path = home.daemon, f"/v1/workspaces/{shown['id']}"
    labels = daemon.get(path).json()["labels"]
    assert not [key for key in labels if key.startswith("carrel.") or key in FIXED], labels
    for label in ("carrel.service", "carrel.service=agents", "agent=tools", "context_id=c1"):
        assert shown["id"] not in [one["id"] for one in daemon.get(f"/v1/workspaces?label={quoted(label)}").json()["items"]], label
    assert daemon.get(f"/v1/workspaces/{quoted(KEY)}").status == daemon.get("/v1/workspaces/c1").status == 404
    assert 'context_id="c1"' not in daemon.get("/metrics").body.decode()
    assert daemon.post(path + "/exec", {"argv": ["true"]}).json()["exit_code"] == 0


@pytest.fixture(scope="module")
def home(furnished_home):
    with serving_anew(source=furnished_home) as daemon:
        yield Home(daemon)


@pytest.mark.parametrize("way", WAYS)
def test_no_label_and_no_field_of_a_client_says_whose_a_workspace_is(home, way):
    kind, write = WAYS[way]
    for meaning, labels in MEANINGS.items():
        answer = write(home, labels)
        if kind == REFUSED:
            assert answer.status == 400, (meaning, answer)
            assert [word for word in (*labels, "labels", "owner") if word in answer.json()["detail"]], answer.json()
        else:
            assert answer.status in (200, 201), (meaning, answer)
            check_plain(home, answer.json())
    check_plain(home, home.daemon.get("/v1/workspaces/base").json())


def test_no_service_takes_them_for_its_own_when_it_starts(make_daemon):
    """Services remove what a crash has left of theirs, and an agent finds its contexts."""
    home = Home(make_daemon())
    made = [write(home, labels).json()["name"] for kind, write in WAYS.values() if kind == DROPPED for labels in MEANINGS.values()]
    home.daemon.restart()
    for name in ["base", *made]:
        check_plain(home, home.daemon.get(f"/v1/workspaces/{name}").json())
    assert "fine" not in text(Agent(home.daemon, "tools").send("ls; cat f", contextId="c1"))
    shown = home.daemon.get(f"/v1/workspaces/{quoted(KEY)}").json()
    assert shown["labels"] == {"context_id": "c1", "agent": "tools", "namespace": "team1", "carrel.service": "agents"}


def test_each_reserved_label_is_refused_by_name(daemon):
    for label in {key for labels in MEANINGS.values() for key in labels if key.startswith("carrel.")}:
        for method, path in (("POST", "/v1/workspaces"), ("PATCH", "/v1/workspaces/none")):
            problem(daemon.request(method, path, {"labels": {label: "x"}}), 400, "invalid", label)
        done = daemon("create", "--label", f"{label}=x")
        assert done.returncode == 125 and label in done.stderr, done


def test_a_context_is_set_at_creation_and_never_again(daemon):
    body = {"name": "desk", "labels": {"context_id": "chat/1", "agent": "coder", "namespace": "team1", "team": "a"}}
    made = daemon.post("/v1/workspaces", body)
    assert made.status == 201 and made.json()["labels"] == body["labels"], made
    token = daemon.post("/v1/tokens", {"scope": "admin", "workspace": "desk"}).json()["text"]
    for headers in ({}, {"Authorization": f"Bearer {token}"}):
        for label in FIXED:
            for value in ("other", None):
                answer = daemon.request("PATCH", "/v1/workspaces/desk", {"labels": {label: value}}, headers)
                problem(answer, 400, "invalid", label)
        sent = {**body["labels"], "team": "b"}          # what was shown may be sent back
        assert daemon.request("PATCH", "/v1/workspaces/desk", {"labels": sent}, headers).json()["labels"] == sent
    done = daemon("update", "desk", "--label", "context_id=other")
    assert done.returncode == 125 and "context_id" in done.stderr, done
    assert daemon.get("/v1/workspaces/chat%2F1").json()["name"] == "desk"
    assert daemon.get("/v1/workspaces/other").status == 404
    for label in ("context_id=chat/1", "agent=coder", "namespace=team1", "context_id"):
        assert [one["name"] for one in daemon.get(f"/v1/workspaces?label={quoted(label)}").json()["items"]] == ["desk"]
        assert daemon("ls", "-q", "--label", label).stdout == "desk\n"
    assert 'kagenti_context_workspace_bytes{context_id="chat/1",agent="coder",namespace="team1"}' in daemon.get("/metrics").body.decode()
    daemon("rm", "desk")


def test_what_stands_for_the_context_in_rules_is_not_for_a_client_to_change(daemon):
    rules = {"permissions": {"allow": ["shell(cat:*)", "file(read:/workspace/${CONTEXT_ID}/**)"], "deny": ["file(read:/workspace/secret/**)"]}}
    daemon.post("/v1/workspaces", {"name": "judged", "labels": {"context_id": "mine"}})
    for name in ("mine", "theirs"):
        daemon.request("PUT", f"/v1/workspaces/judged/files/{name}/f", b"x")
    daemon.request("PATCH", "/v1/workspaces/judged", {"settings": rules})
    read = lambda name: daemon.get(f"/v1/workspaces/judged/files/{name}/f").status
    assert (read("mine"), read("theirs")) == (200, 403)
    token = daemon.post("/v1/tokens", {"scope": "admin", "workspace": "judged"}).json()["text"]
    bearer = {"Authorization": f"Bearer {token}"}
    problem(daemon.request("PATCH", "/v1/workspaces/judged", {"labels": {"context_id": "theirs"}}, bearer), 400, "invalid", "context_id")
    assert (read("mine"), read("theirs")) == (200, 403)
    daemon("rm", "judged")


def test_a_context_that_has_no_value_in_rules_gets_none_from_a_later_policy(make_daemon, tmp_path):
    """The operator's rules name the context of workspaces that were there before: "chat/1" could be a path."""
    daemon = make_daemon()
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"permissions": {"allow": ["file(read:/workspace/${CONTEXT_ID}/**)"]}}))
    settings.chmod(0o644)
    for name, context in (("odd", "chat/1"), ("plain", "context"), ("named", None)):
        daemon.post("/v1/workspaces", {"name": name, "labels": {"context_id": context} if context else {}})
        for directory in ("context", "named"):
            daemon.request("PUT", f"/v1/workspaces/{name}/files/{directory}/f", b"x")
    configure(daemon, f"policy:\n  settings: {settings}\n")
    read = lambda name, directory: daemon.get(f"/v1/workspaces/{name}/files/{directory}/f").status
    assert (read("plain", "context"), read("named", "named"), read("named", "context")) == (200, 200, 403)
    problem(daemon.get("/v1/workspaces/odd/files/context/f"), 403, "denied", "CONTEXT_ID")


def test_a_bound_token_changes_nothing_that_its_rules_are_read_from(daemon):
    with contextlib.ExitStack() as stack:
        daemon("create", "own")
        stack.callback(daemon, "rm", "own")
        token = daemon.post("/v1/tokens", {"scope": "admin", "workspace": "own"}).json()["text"]
        bearer = {"Authorization": f"Bearer {token}"}
        change = lambda **body: daemon.request("PATCH", "/v1/workspaces/own", body, bearer)
        before = daemon.get("/v1/workspaces/own").json()
        for field, value in (("settings", {"permissions": {"allow": ["shell(*)"]}}), ("settings", None), ("sources", {}), ("sources", None),
                             ("network", {"mode": "open"}), ("network", {"allow": ["example.com"]}), ("limits", {"pids": 5000})):
            problem(change(**{field: value}), 403, "denied", "bound to its workspace")
        for field, value in (("template", "strict"), ("view", "root"), ("ptrace", True), ("mounts", []), ("attach", []), ("rules", ["shell(*)"]),
                             ("owner_service", "agents"), ("name", "x"), ("template_settings", {}), ("environment", "x")):
            problem(change(**{field: value}), 400, "invalid", field)
        for method, path, body in (("POST", "/v1/workspaces", {"from": "own"}), ("POST", "/v1/workspaces/own/fork", {}), ("POST", "/v1/templates", {"yaml": "name: x\n"}),
                                   ("POST", "/v1/pull", {"workspace": "own", "snapshot": "1"}), ("POST", "/v1/agents", {"yaml": TOOLS}),
                                   ("POST", "/v1/deployments", {"agentAppId": "a", "version": "1.0.0"}), ("POST", "/v1/cases", {"yaml": "id: x\nharness: 'true'\n"})):
            assert daemon.request(method, path, body, bearer).status in (403, 404), (method, path)
        after = daemon.get("/v1/workspaces/own").json()
        assert {key: after[key] for key in ("limits", "network", "labels", "template", "env")} == {key: before[key] for key in ("limits", "network", "labels", "template", "env")}


def test_a_client_of_another_context_does_not_get_into_one_that_is_there(make_daemon):
    home = Home(make_daemon())
    agent = Agent(home.daemon, "tools")
    agent.send("echo top > secret", contextId="c1")
    bearer = home.token(workspace="base")
    for labels in (MEANINGS["context"], {"agent": "tools"}, {"context_id": "c1"}, {"carrel.service": "agents"}):
        assert home.patch(labels, bearer).status == 400
    # A workspace of a client may have that context and that agent as names, and is still no context of the agent.
    assert home.create(labels={"context_id": "c1", "agent": "tools"}).status == 201
    assert home.create(labels={"context_id": KEY}).status == 409
    assert text(agent.send("cat secret", contextId="c1")) == "top\n"
    shown = home.daemon.get("/v1/workspaces?label=" + quoted("carrel.service=agents")).json()["items"]
    assert len(shown) == 1 and shown[0]["labels"]["context_id"] == "c1"
    # Nobody's fork of it: it stays when the service sweeps.
    fork = home.daemon.post(f"/v1/workspaces/{quoted(KEY)}/fork", {"name": "copy"})
    assert fork.status == 201 and home.daemon.get("/v1/workspaces/copy").json()["labels"] == {}
    home.daemon.restart()
    assert home.daemon.get("/v1/workspaces/copy").json()["state"] == "ready"
    assert eventually(lambda: text(agent.send("cat secret", contextId="c1")) == "top\n")
