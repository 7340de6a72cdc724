"""A token that is bound to one workspace, tried on every route with the names of another."""
# security: authority
import pytest
from rest import created, problem
from workspaces import sh

METHODS = ("get", "put", "post", "delete", "patch", "head")
# Bodies that are valid, by the end of a path: what answers must be the check, not the parser.
BODIES = {"signal": {"signal": "KILL"}, "resize": {"rows": 10, "columns": 10}, "exec": {"argv": ["true"]}, "packages": {"packages": ["x"]},
          "apply": {"to": "nowhere"}, "rollback": {"snapshot": "kept"}, "push": {"snapshot": "kept"}, "resume": None, "repair": None,
          "verify": None, "trees": {"name": "shared"}, "templates": {"yaml": "name: mine\n"}}


@pytest.fixture(scope="module")
def bound(daemon):
    """Two workspaces, and the header of a token for the first."""
    with created(daemon) as here, created(daemon, labels={"who": "there"}) as there:
        path = f"/v1/workspaces/{there['id']}"
        assert sh(daemon, there["name"], "echo top > secret.txt").returncode == 0
        there["snapshots"] = daemon.post(path + "/snapshots", {"tag": "kept"}).json()["id"]
        there["execs"] = daemon.post(path + "/exec", {"argv": ["sleep", "1000"], "background": True}).json()["id"]
        made = daemon.post("/v1/tokens", {"workspace": here["name"], "scope": "admin"}).json()
        there["tokens"] = made["id"]
        yield here, there, {"Authorization": f"Bearer {made['text']}"}


def fill(path, there):
    noun = (path + "//").split("/")[2]
    return path.replace("{port}", "8000").replace("{path}", "secret.txt").replace("{id}", there.get(noun, there["id"]))


@pytest.mark.once
def test_no_route_leads_to_another_workspace(daemon, bound):
    here, there, bearer = bound
    mine, snapshot = f"/v1/workspaces/{here['id']}", there["snapshots"]
    asked = [(verb.upper(), fill(path, there), "requestBody" in operation) for path, verbs in daemon.get("/openapi.json").json()["paths"].items()
             for verb, operation in verbs.items() if verb in METHODS and path != "/v1/events"]
    asked = [(verb, path, BODIES.get(path.rsplit("/")[-1], {}) if has_body and verb in ("POST", "PATCH") else None) for verb, path, has_body in asked]
    asked += [("POST", mine + "/rollback", {"snapshot": snapshot}), ("POST", mine + "/fork", {"snapshot": snapshot}),
              ("POST", mine + "/push", {"snapshot": snapshot}), ("POST", mine + "/apply", {"to": there["id"]}),
              ("POST", "/v1/workspaces", {"from": snapshot}), ("GET", f"{mine}/diff?snapshot={snapshot}", None),
              ("GET", f"{mine}/changes?snapshot={snapshot}", None), ("GET", f"/v1/audit?workspace={there['id']}", None)]
    assert len(asked) > 60
    for verb, path, body in asked:
        answer = daemon.request(verb, path, body, bearer)
        where = (verb, path, answer.status, answer.body)
        assert answer.status in (200, 400, 403, 404), where
        # Lists show what is its own; nothing names what it asked for in vain.
        assert there["name"].encode() not in answer.body and b"top\n" not in answer.body, where
        assert answer.status >= 400 or not any(there[key].encode() in answer.body for key in ("id", "execs", "snapshots")), where
        assert answer.status >= 400 or verb in ("GET", "HEAD"), where
    state = daemon.get(f"/v1/workspaces/{there['id']}").json()
    assert (state["labels"], state["state"]) == ({"who": "there"}, "running")


@pytest.mark.once
def test_what_confines_its_workspace_is_not_its_to_change(daemon, bound):
    here, _, bearer = bound
    path = f"/v1/workspaces/{here['id']}"
    for change, word in (({"network": {"mode": "open"}}, "network"), ({"limits": {"pids": 5000}}, "limits")):
        problem(daemon.request("PATCH", path, change, bearer), 403, "denied", word)
    assert daemon.request("PATCH", path, {"labels": {"a": "b"}}, bearer).status == 200
