"""Access tokens: what their bearers may do, and that a wrong one is nobody."""
# security: authority
import json
import os
import pathlib
import pwd
import stat
import subprocess
import sys
import tempfile

import pytest
from harness import eventually
from rest import Events, created, problem


def bearer(text):
    return {"Authorization": f"Bearer {text}"}


def make(daemon, **body):
    answer = daemon.post("/v1/tokens", body)
    assert answer.status == 201, answer
    token = answer.json()
    assert answer.headers["Location"] == f"/v1/tokens/{token['id']}"
    return token


@pytest.fixture
def token(daemon):
    """Makes tokens that are removed after the test."""
    made = []

    def make_one(**body):
        made.append(make(daemon, **body))
        return made[-1]
    yield make_one
    for one in made:
        assert daemon.delete(f"/v1/tokens/{one['id']}").status in (204, 404)


def test_a_token_is_shown_once_and_kept_as_a_hash(daemon, token):
    made = token(name="alice", scope="reviewer", ttl="1h")
    assert made["text"].startswith("crl_") and len(made["text"]) == 62
    assert made["scope"] == "reviewer" and made["name"] == "alice" and made["expires_at"] and made["last_used_at"] is None
    assert made["created_by"] == f"uid {os.getuid()}"
    listed = next(one for one in daemon.get("/v1/tokens").json()["items"] if one["id"] == made["id"])
    assert "text" not in listed and "hash" not in listed
    assert daemon.get("/v1/workspaces", headers=bearer(made["text"])).status == 200
    listed = next(one for one in daemon.get("/v1/tokens").json()["items"] if one["id"] == made["id"])
    assert listed["last_used_at"]
    stored = [path.read_bytes() for path in pathlib.Path(daemon.env["CARREL_HOME"]).glob("carrel.db*")]
    assert stored and not any(made["text"].encode() in text for text in stored)
    assert made["text"] not in daemon.log()


@pytest.mark.once
def test_scopes(daemon, token):
    user, reviewer, admin = (token(scope=scope)["text"] for scope in ("user", "reviewer", "admin"))
    with created(daemon) as workspace:
        path = f"/v1/workspaces/{workspace['id']}"
        for text in (user, reviewer, admin):
            assert daemon.get(path, headers=bearer(text)).status == 200
        change = {"labels": {"a": "b"}}
        assert daemon.request("PATCH", path, change, bearer(user)).status == 200
        problem(daemon.request("PATCH", path, change, bearer(reviewer)), 403, "denied", "use")
        problem(daemon.post(path + "/exec", {"argv": ["true"]}, headers=bearer(reviewer)), 403, "denied")
    for text in (user, reviewer):
        problem(daemon.get("/v1/tokens", headers=bearer(text)), 403, "denied", "admin")
        problem(daemon.post("/v1/tokens", {"scope": "admin"}, headers=bearer(text)), 403, "denied")
        problem(daemon.delete("/v1/tokens/x", headers=bearer(text)), 403, "denied")
    assert daemon.get("/v1/tokens", headers=bearer(admin)).status == 200


@pytest.mark.once
def test_a_bound_token_finds_its_workspace_alone(daemon, token):
    with created(daemon) as here, created(daemon) as there:
        text = token(workspace=here["name"])["text"]
        assert daemon.get(f"/v1/workspaces/{here['name']}", headers=bearer(text)).status == 200
        problem(daemon.get(f"/v1/workspaces/{there['name']}", headers=bearer(text)), 404, "not_found")
        assert [w["id"] for w in daemon.get("/v1/workspaces", headers=bearer(text)).json()["items"]] == [here["id"]]
        problem(daemon.post("/v1/workspaces", {}, headers=bearer(text)), 403, "denied")
    problem(daemon.get("/v1/workspaces", headers=bearer(text)), 401, "unauthenticated")     # gone with its workspace
    problem(daemon.post("/v1/tokens", {"workspace": here["name"]}), 404, "not_found")


def test_a_wrong_token_is_refused_and_never_replaced_by_the_uid(daemon, token):
    text = token()["text"]
    changed = text[:-1] + ("a" if text[-1] != "a" else "b")
    other = text[:4] + "0" * 52 + text[56:]
    for value in (f"Bearer {changed}", f"Bearer {other}", f"Bearer {text[:-1]}", "Bearer", "Basic YTpi", f"Token {text}", ""):
        answer = daemon.get("/v1/workspaces", headers={"Authorization": value})
        problem(answer, 401, "unauthenticated")
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert daemon.get("/v1/workspaces", headers=bearer(text)).status == 200
    recorded = [json.loads(line) for line in daemon("audit", "--type", "login.refused", "-o", "json").stdout.splitlines()]
    assert recorded and all(text not in json.dumps(line) for line in recorded)


@pytest.mark.once
def test_many_wrong_tokens_are_told_to_wait(own_daemon):
    text = make(own_daemon)["text"]
    statuses = []
    while 429 not in statuses and len(statuses) < 1000:
        statuses.append(own_daemon.get("/v1/workspaces", headers=bearer(text[:-1])).status)
    assert statuses[-1] == 429 and set(statuses) == {401, 429}
    # Those that are right pass all the same.
    assert own_daemon.get("/v1/workspaces", headers=bearer(text)).status == 200
    assert own_daemon.get("/v1/workspaces").status == 200


@pytest.mark.once
def test_two_credentials_in_a_request_are_refused(daemon, token):
    connection = daemon.connection()
    connection.putrequest("GET", "/v1/workspaces")
    for value in (token()["text"], token()["text"]):
        connection.putheader("Authorization", f"Bearer {value}")
    connection.endheaders()
    assert connection.getresponse().status == 401
    connection.close()


def test_a_removed_token_ends_its_streams(daemon, token):
    made = token()
    events = Events(daemon, "/v1/events", bearer(made["text"]))
    kept = Events(daemon, "/v1/events")
    assert daemon.delete(f"/v1/tokens/{made['id']}").status == 204
    assert list(events) == []       # it ends, and tells nothing
    assert kept.until("token.removed")[-1]["data"]["token"] == made["id"]
    problem(daemon.get("/v1/workspaces", headers=bearer(made["text"])), 401, "unauthenticated")
    problem(daemon.delete(f"/v1/tokens/{made['id']}"), 404, "not_found")
    events.close()
    kept.close()


@pytest.mark.once
def test_a_token_that_has_expired_is_refused(daemon, token):
    text = token(ttl="1s")["text"]
    statuses = set()
    assert eventually(lambda: statuses.add(daemon.get("/v1/tokens/x", headers=bearer(text)).status) or 401 in statuses)


@pytest.mark.once
def test_an_idempotency_key_belongs_to_a_principal(daemon, token):
    key = {"Idempotency-Key": "the-same"}
    ids = []
    for headers in ({}, bearer(token()["text"]), bearer(token()["text"])):
        answer = daemon.post("/v1/workspaces", {}, headers={**key, **headers})
        assert answer.status == 201, answer
        again = daemon.post("/v1/workspaces", {}, headers={**key, **headers})
        assert again.json()["id"] == answer.json()["id"]
        ids.append(answer.json()["id"])
    assert len(set(ids)) == 3
    for one in ids:
        assert daemon.delete(f"/v1/workspaces/{one}").status == 204


def test_tokens_survive_a_restart(own_daemon):
    made = make(own_daemon)
    gone = make(own_daemon)
    assert own_daemon.delete(f"/v1/tokens/{gone['id']}").status == 204
    own_daemon.kill_core()
    assert own_daemon.get("/v1/workspaces", headers=bearer(made["text"])).status == 200
    problem(own_daemon.get("/v1/workspaces", headers=bearer(gone["text"])), 401, "unauthenticated")


def test_the_commands_send_a_token(daemon, token, tmp_path):
    text = daemon("token", "create", "--scope", "user", "--name", "cli").stdout.strip()
    assert text.startswith("crl_")
    listed = next(one for one in json.loads(daemon("token", "ls", "-o", "json").stdout) if one["name"] == "cli")
    assert "cli" in daemon("token", "ls").stdout
    file = tmp_path / "token"
    file.write_text(text + "\n")
    assert daemon("ls", "--token-file", file).returncode == 0
    refused = daemon("token", "ls", "--token-file", file)
    assert refused.returncode == 125 and "scope 'admin'" in refused.stderr
    env = {**daemon.env, "CARREL_TOKEN": text}
    run = lambda *words: subprocess.run([daemon.path, *words], env=env, capture_output=True, text=True)
    assert run("ls").returncode == 0
    assert "scope 'admin'" in run("token", "ls").stderr
    file.write_text(text[:-3])
    cut = daemon("ls", "--token-file", file)
    assert cut.returncode == 125 and "cut or mistyped" in cut.stderr
    assert daemon("token", "rm", listed["id"]).stdout == f"removed {listed['id']}\n"
    gone = run("ls")
    assert gone.returncode == 125 and "unknown, or was removed" in gone.stderr


@pytest.mark.once
@pytest.mark.parametrize("body, word", [({"scope": "root"}, "scope"), ({"name": "a\u001bb"}, "name"), ({"name": ""}, "name"),
                                        ({"ttl": "0s"}, "ttl"), ({"extra": 1}, "extra"), ({"name": "a" * 65}, "name")])
def test_malformed_requests(daemon, body, word):
    problem(daemon.post("/v1/tokens", body), 400, "invalid", word)


ASK = """
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(f"{sys.argv[2]} HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\nContent-Length: 0\\r\\n\\r\\n".encode())
print(s.makefile().readline().split()[1])
"""


@pytest.mark.once
@pytest.mark.needs_root
def test_users_of_the_host_have_the_scopes_of_the_configuration(make_daemon):
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        os.chmod(directory, 0o755)
        socket = pathlib.Path(directory, "shared.sock")
        daemon = make_daemon(listen=socket)
        config = pathlib.Path(daemon.env["CARREL_HOME"], "config.yaml")
        assert stat.S_IMODE(socket.stat().st_mode) == 0o600
        config.write_text("access:\n  uids:\n    70001: user\n    70002: reviewer\n    70003: none\n    daemon: admin\n")
        daemon.restart()

        def ask(uid, request):
            return int(subprocess.run([sys.executable, "-I", "-c", ASK, socket, request], user=uid, group=uid, check=True,
                                      extra_groups=[], capture_output=True, text=True).stdout)
        assert ask(70001, "POST /v1/workspaces") == 201
        assert ask(70001, "GET /v1/tokens") == 403
        assert ask(70002, "GET /v1/workspaces") == 200
        assert ask(70002, "POST /v1/workspaces") == 403
        assert ask(pwd.getpwnam("daemon").pw_uid, "GET /v1/tokens") == 200
        assert ask(70003, "GET /v1/workspaces") == 403
        assert ask(70004, "GET /v1/workspaces") == 403
        assert daemon.get("/v1/tokens").status == 200
        config.write_text("access:\n  uids:\n    nobody-of-this-name: user\n")
        daemon.stop_serving()
        refused = daemon("serve")
        assert refused.returncode == 125 and "there is no user 'nobody-of-this-name'" in refused.stderr + daemon.log()
        config.unlink()
        daemon.start_serving()
