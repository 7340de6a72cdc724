"""carrel policy learn: a command that no rule denies runs, and the rules it would need are printed; nothing is changed."""
# security: policy
import json

import pytest
from daemons import configure
from rest import Events, created, problem

SETTINGS = {"permissions": {"allow": ["shell(echo:*)"], "deny": ["shell(curl:*)"]}}
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def demo(daemon):
    with created(daemon, settings=SETTINGS) as workspace:
        yield workspace["name"]


def learn(daemon, name, *argv):
    done = daemon("policy", "learn", "-o", "json", name, "--", *argv)
    return done, json.loads(done.stdout)


def test_what_it_would_need(daemon, demo):
    script = "echo one; touch made; mkdir -p d; exit 3"
    done = daemon("policy", "learn", demo, "--", "sh", "-c", script)
    assert done.returncode == 3 and "one\n" in done.stderr and "nothing was changed" in done.stderr, done
    rules = json.loads(done.stdout)
    assert daemon.get(f"/v1/workspaces/{demo}/files/made").status == 200
    assert daemon.get(f"/v1/workspaces/{demo}").json()["settings"] == SETTINGS
    done, shown = learn(daemon, demo, "sh", "-c", script)
    assert shown["rules"] == rules["permissions"]["allow"] and shown["rules"], shown
    assert shown["decision"] == "ask" and shown["decision_with_rules"] == "allow" and shown["exit_code"] == 3
    assert {step["decision"] for step in shown["trail"]} >= {"ask"}
    allow = SETTINGS["permissions"]["allow"] + shown["rules"]
    with created(daemon, settings={"permissions": {**SETTINGS["permissions"], "allow": allow}}) as other:
        again = daemon.post(f"/v1/workspaces/{other['name']}/exec", {"argv": ["sh", "-c", script]})
        assert again.status == 200 and again.json()["exit_code"] == 3, again
    assert learn(daemon, demo, "echo", "x")[1]["rules"] == []


def test_never_over_a_deny(daemon, demo):
    done = daemon("policy", "learn", demo, "--", "sh", "-c", "touch never; curl x")
    assert done.returncode == 126 and "shell(curl:*)" in done.stderr and not done.stdout, done
    assert daemon.get(f"/v1/workspaces/{demo}/files/never").status == 404


@pytest.mark.once
def test_who_may(daemon, demo):
    user = {"Authorization": f"Bearer {daemon.post('/v1/tokens', {'scope': 'user'}).json()['text']}"}
    body = {"argv": ["touch", "x"], "policy": "learn"}
    events = {"Accept": "text/event-stream"}
    problem(daemon.request("POST", f"/v1/workspaces/{demo}/exec", body, {**user, **events}), 403, "denied", "admin")
    problem(daemon.post(f"/v1/workspaces/{demo}/exec", body), 400, "invalid", "text/event-stream")
    stream = Events(daemon, f"/v1/workspaces/{demo}/exec", JSON, "POST", json.dumps(body))
    came = stream.until("exit")
    assert [event["event"] for event in came] == ["learned", "start", "exit"] and came[0]["data"]["rules"] == ["shell(touch:*)"]
    lines = [json.loads(line) for line in daemon("audit", "--workspace", demo, "--type", "exec.start", "-o", "json").stdout.splitlines()]
    (marked,) = [line for line in lines if line["data"]["exec"] == came[1]["data"]["id"]]
    assert marked["data"]["policy"] == "learn" and marked["data"]["trail"], marked


@pytest.mark.once
def test_what_the_network_refuses(daemon):
    """A host that the list of the workspace refuses becomes a rule."""
    connect = "import urllib.request as u; u.urlopen('http://files.example:8443/')"
    with created(daemon, network={"allow": ["other.example"]}) as workspace:
        done, shown = learn(daemon, workspace["name"], "python3", "-c", connect)
        assert done.returncode == 1 and shown["rules"] == ["network(outbound:files.example:8443)"], (shown, done.stderr)
        assert "--allow-domain" in done.stderr


@pytest.mark.once
def test_what_the_default_denies(make_daemon):
    """Each policy of the stack has its say: what a default denies is learned, what a rule denies is not."""
    daemon = make_daemon()
    settings = daemon.home / "operator.json"
    settings.write_text(json.dumps({"permissions": {"allow": ["shell(cat:*)"], "deny": ["shell(date:*)"]}}))
    configure(daemon, f"policy:\n  settings: {settings}\n  default: deny\n")
    with created(daemon, settings={"permissions": {"allow": ["shell(echo:*)"]}}) as workspace:
        done, shown = learn(daemon, workspace["name"], "touch", "x")
        assert done.returncode == 0 and shown["rules"] == ["shell(touch:*)"], (done, shown)
        assert shown["decision"] == "deny" and shown["decision_with_rules"] == "allow", shown
        done = daemon("policy", "learn", workspace["name"], "--", "date")
        assert done.returncode == 126 and "shell(date:*)" in done.stderr
