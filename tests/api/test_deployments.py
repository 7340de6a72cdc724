"""Deployments: agent packages that are unpacked, served, supervised, replaced and removed."""
# security: services
import json
import os
import re
import subprocess

import pytest
from faults import inits, kill
from harness import CARREL, TREE, eventually
from packages_made import grpc, make, plain, sha256
from patience import with_time
from rest import problem
from rollouts import clean, deploy, left, put, wait  # noqa: F401


def audit(daemon, type_):
    return [json.loads(line) for line in daemon.get(f"/v1/audit?type={type_}").body.splitlines()]


def test_a_package_is_served_and_removed(clean):
    daemon = clean
    shown = deploy(daemon, plain(), env={"SAYS": "good day"})
    assert shown["status"] == "healthy" and shown["name"] == "greeter" and shown["revision"] == 1
    assert shown["sha256"] == sha256(plain())
    surface, = shown["surfaces"]
    assert surface["name"] == "rest" and surface["status"] == "healthy" and surface["port"] == 8000
    answer = daemon.get("/v1/deployments/greeter/rest/a/b?c=d")
    assert answer.status == 200 and answer.body == b"good day /a/b?c=d 1.0.0"
    assert daemon.get("/v1/deployments/greeter/ui/").status == 404
    assert b"server of 1.0.0 begins" in daemon.get("/v1/deployments/greeter/logs").body
    assert [one["name"] for one in daemon.get("/v1/deployments").json()["items"]] == ["greeter"]
    assert daemon.delete("/v1/deployments/greeter").status == 204
    assert daemon.get("/v1/deployments/greeter").status == 404
    assert eventually(lambda: not left(daemon))


def test_commands_of_surfaces_are_judged_and_recorded(clean):
    daemon = clean
    shown = deploy(daemon, plain(), settings={"permissions": {"allow": ["shell(*)"], "deny": ["shell(python3:*)"]}}, status="failed")
    assert "shell(python3:*)" in shown["rollout"]["error"], shown
    deploy(daemon, plain(), settings={"permissions": {"allow": ["shell(python3:*)"]}})
    assert daemon.get("/v1/deployments/greeter/rest/").status == 200
    who = f"agent of deployment greeter for uid {os.getuid()}"
    assert [r["principal"] for r in audit(daemon, "exec.start") if r["data"]["argv"][-1] == "python3 src/server.py"][-1:] == [who]


def test_who_deploys_does_not_approve_the_commands(clean):
    """Surfaces run as an agent for the caller: who asks is the caller."""
    daemon = clean
    def bearer(scope):
        return {"Authorization": "Bearer " + daemon.post("/v1/tokens", {"scope": scope}).json()["text"]}
    deployer, reviewer = bearer("admin"), bearer("reviewer")
    put(daemon, plain())
    made = daemon.post("/v1/deployments", {"agentAppId": "greeter", "version": "1.0.0", "settings": {"permissions": {"allow": ["shell(ls:*)"]}}},
                       headers=deployer)
    assert made.status in (200, 201), made
    pending = lambda: daemon.get("/v1/approvals?state=pending").json()["items"]
    assert eventually(pending)
    path = f"/v1/approvals/{pending()[0]['id']}"
    problem(daemon.post(path, {"decision": "approve"}, headers=deployer), 403, "denied", "asked for approval")
    assert daemon.post(path, {"decision": "approve"}, headers=reviewer).status == 200
    wait(daemon, made.json()["deploymentId"])


def test_workspaces_of_a_rollout_are_recorded_with_its_caller(clean):
    daemon = clean
    shown = deploy(daemon, plain())
    made = {one["id"] for one in left(daemon)}
    who = f"agent of deployment greeter for uid {os.getuid()}"
    assert {r["principal"] for r in audit(daemon, "workspace.create") if r["workspace"] in made} == {who}
    assert made <= {r["workspace"] for r in audit(daemon, "workspace.create")}
    # Also after core was killed, when the caller's connection is long gone.
    daemon.kill_core()
    assert eventually(lambda: daemon.get("/v1/deployments/greeter").json()["status"] == "healthy")
    assert daemon.get("/v1/deployments/greeter/rest/crash").status == 502
    assert eventually(lambda: daemon.get("/v1/deployments/greeter").json()["surfaces"][0]["exec"] != shown["surfaces"][0]["exec"])
    assert [r["principal"] for r in audit(daemon, "exec.start") if r["workspace"] in made] == [who, who]
    assert daemon.delete("/v1/deployments/greeter").status == 204
    removed = lambda: {r["workspace"]: r["principal"] for r in audit(daemon, "workspace.remove")}
    assert eventually(lambda: made <= set(removed()))
    assert {removed()[one] for one in made} == {who}


def test_a_rollout_that_fails_leaves_what_was_live(clean):
    daemon = clean
    deploy(daemon, plain())
    before = {one["id"] for one in left(daemon)}
    broken = plain("2.0.0", server="import sys\nsys.stdout.buffer.write(b'no luck \\xff\\0')\nsys.exit(3)\n")
    shown = deploy(daemon, broken, version="2.0.0", status="failed")
    assert shown["status"] == "healthy" and shown["version"] == "1.0.0" and shown["revision"] == 1
    assert "ended 3 times" in shown["rollout"]["error"] and "exit code 3" in shown["rollout"]["error"]
    assert daemon.get("/v1/deployments/greeter/rest/").body.endswith(b"1.0.0")
    assert eventually(lambda: {one["id"] for one in left(daemon)} == before)
    # What it wrote is kept, beside the output of the one that serves, and also over a restart of core.
    for _ in range(2):
        live, failed = daemon.get("/v1/deployments/greeter/logs?surface=rest").body.split(b"==> rest of version ")[1:]
        assert live.startswith(b"1.0.0 (revision 1) <==\nserver of 1.0.0 begins\n"), live
        assert failed.startswith(b"2.0.0 (revision 2, failed) <==\nno luck "), failed
        assert daemon("deployment", "logs", "greeter", input="not a body").stdout.count("no luck") == 1
        daemon.kill_core()
    # It goes with the next rollout.
    deploy(daemon)
    assert b"no luck" not in daemon.get("/v1/deployments/greeter/logs").body


def test_a_surface_that_crashes_is_started_again(clean):
    daemon = clean
    deploy(daemon, plain())
    assert daemon.get("/v1/deployments/greeter/rest/crash").status == 502
    assert eventually(lambda: daemon.get("/v1/deployments/greeter").json()["surfaces"][0]["restarts"] == 1)
    assert eventually(lambda: daemon.get("/v1/deployments/greeter").json()["status"] == "healthy")
    assert daemon.get("/v1/deployments/greeter/rest/").status == 200


def test_requests_are_told_why_a_surface_does_not_run_and_when_it_will(clean):
    """Also when its sandbox has gone with it: that is no fault of the request, nor for ever."""
    daemon = clean
    deploy(daemon, plain())
    told = []

    def serves():
        answer = daemon.get("/v1/deployments/greeter/rest/")
        assert answer.status in (200, 502, 503), answer
        if answer.status == 503:
            told.append(problem(answer, 503, "unavailable", "surface 'rest' of deployment 'greeter' does not run now: ")["hint"])
        return answer.status == 200

    for _ in range(4):      # half a second at first, twice as long each time
        for pid in inits(daemon):
            kill(pid)
        assert eventually(lambda: not serves()) and eventually(serves)
    assert any(re.fullmatch(r"it is started again within [1-5] s", hint) for hint in told), told


@pytest.mark.once
@pytest.mark.parametrize("rest, words", [
    ("  command: sleep 1000\n", "no port listens"),
    ("  command: PORT=8001 exec python3 src/server.py\n", "these ports listen: 8001"),
    ("  command: python3 src/server.py\n  health: grpc\n", "port 8000"),
])
def test_a_surface_that_is_never_healthy_fails(clean, rest, words):
    shown = {}

    def run(limit):
        shown.update(deploy(clean, plain(rest=f"{rest}  start_timeout: {limit}\n"), status="failed"))
    with_time(run, lambda: words in shown["error"], 1)
    assert shown["status"] == "failed" and words in shown["error"], shown
    assert eventually(lambda: not left(clean))


@pytest.mark.once
@pytest.mark.parametrize("manifest, words", [
    (None, "the package has no agent.yaml"),
    ("name: greeter\nversion: 1.0.0\nrest: {command: x}\nunknown: 1\n", "line 4"),
    ("name: greeter\nversion: 2.0.0\nrest:\n  command: x\n", "is of version '2.0.0'"),
    ("name: greeter\nversion: 1.0.0\n", "no surface"),
    ("name: greeter\nversion: 1.0.0\nrest: {module: app}\n", "line 3"),
    ("name: greeter\nversion: 1.0.0\nruntime: {env_manager: conda}\nrest: {command: x}\n", "conda"),
    ("name: greeter\nversion: 1.0.0\nui: {path: ../..}\n", "relative"),
])
def test_a_hostile_manifest_fails_by_name(clean, manifest, words):
    shown = deploy(clean, make({"agent.yaml": manifest} if manifest else {"x": "y"}), status="failed")
    assert words in shown["error"], shown
    assert eventually(lambda: not left(clean))


@pytest.mark.once
def test_hostile_packages_are_refused(clean):
    daemon = clean
    agent = "name: greeter\nversion: 1.0.0\nrest: {command: x}\n"
    for data, words in ((make({"../evil": "x", "agent.yaml": agent}), "evil"),
                        (make({"/evil": "x", "agent.yaml": agent}), "evil"),
                        (make({"agent.yaml": agent, "zeros": bytes(300 << 20)}), "times its size"),
                        (b"no archive at all" * 100, "unpack the package"), (b"PK\3\4" + bytes(100), "unpack the package")):
        shown = deploy(daemon, data, status="failed")
        assert words in shown["error"], shown
        assert eventually(lambda: not left(daemon))
    shown = deploy(daemon, plain(), status="failed", sha256="0" * 64)
    assert "SHA-256" in shown["error"]
    shown = deploy(daemon, status="failed", packageUrl="blob:nothing@1")
    assert "the blob store has no package" in shown["error"]
    assert not left(daemon)


def test_a_deployment_survives_a_kill_of_core(clean):
    daemon = clean
    before = deploy(daemon, plain())["surfaces"][0]
    daemon.kill_core()
    daemon.await_ready()
    assert eventually(lambda: daemon.get("/v1/deployments/greeter").json()["status"] == "healthy")
    after = daemon.get("/v1/deployments/greeter").json()["surfaces"][0]
    assert after["exec"] == before["exec"]      # it was adopted, not started again
    assert daemon.get("/v1/deployments/greeter/rest/").status == 200


@pytest.mark.once
@pytest.mark.shipped
def test_the_example_is_served_with_its_environment(clean):
    """With FastAPI and uvicorn of the configured index."""
    daemon = clean
    for cached in (False, True):
        done = subprocess.run([CARREL, "deploy", TREE / "examples/greeter"], env=daemon.env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        shown = daemon.get("/v1/deployments/greeter").json()
        assert shown["venv"]["cached"] is cached and "fastapi" in shown["venv"]["installed_packages"]
        assert shown["venv"]["name"].startswith("greeter@1.0.0_")
    assert daemon.get("/v1/deployments/greeter/rest/greet/you").json() == {"text": "hello, you"}
    assert b"<title>greeter</title>" in daemon.get("/v1/deployments/greeter/ui/").body


@pytest.mark.once
@pytest.mark.shipped
def test_two_versions_of_grpcio_run_side_by_side(clean):
    for agent, version in (("old", "1.60.0"), ("new", "1.73.1")):
        shown = deploy(clean, grpc(version), agent=agent)
        assert shown["venv"]["installed_packages"]["grpcio"] == version
    for agent, version in (("old", "1.60.0"), ("new", "1.73.1")):
        assert clean.get(f"/v1/deployments/{agent}").json()["status"] == "healthy"
        assert f"grpcio {version}".encode() in clean.get(f"/v1/deployments/{agent}/logs?surface=a2a").body


def test_the_command_line_waits_for_the_end_of_a_rollout(clean, tmp_path):
    daemon = clean
    (tmp_path / "one.apkg").write_bytes(plain(rest="  command: while ! test -e go; do sleep 0.01; done; exec python3 src/server.py\n"))
    with daemon.start("deploy", tmp_path / "one.apkg", text=True) as waiting:
        started = lambda: (daemon.get("/v1/deployments/greeter").json().get("surfaces") or [{}])[0].get("exec")
        assert eventually(started)
        daemon.kill_core()      # its rollout begins again, and so does what waits for it
        surface = lambda: next((one["id"] for one in left(daemon) if one["labels"]["carrel.role"] == "rest"), None)
        assert eventually(lambda: daemon.request("PUT", f"/v1/workspaces/{surface()}/files/go", b"").status == 201)
        out, err = waiting.communicate(timeout=120)
    assert waiting.returncode == 0 and "healthy" in out and err.splitlines()[-1] == "carrel: healthy", (out, err)
    (tmp_path / "two.apkg").write_bytes(plain("2.0.0", rest="  command: exit 4\n"))
    failed = daemon("deploy", tmp_path / "two.apkg")
    assert failed.returncode == 125 and "exit code 4" in failed.stderr, failed
    assert "deployment 'greeter': " in failed.stderr and "hint: carrel deployment logs greeter\n" in failed.stderr, failed
    assert "building_env" not in failed.stderr + err, failed
    # The error is that of a revision which isn't live.
    live, rollout = (daemon.get("/v1/deployments/greeter").json()[key] for key in ("revision", "rollout"))
    told = f"the rollout of version 2.0.0 (revision {rollout['revision']}) has failed: surface 'rest'"
    shown = daemon("deployment", "show", "greeter").stdout
    assert told in failed.stderr and f"\nrevision      {live}\nerror         {told}" in shown and live != rollout["revision"], shown
    missing = daemon("deploy", "blob:none@1")
    assert missing.returncode == 125 and "no package 'none@1'\nhint: carrel deployment show none\n" in missing.stderr, missing
    (tmp_path / "agent.yaml").write_text("name: typo\nversion: 1.0.0\nrset: {command: exit 4}\n")
    typo = daemon("deploy", tmp_path)
    assert typo.returncode == 125 and typo.stderr.endswith("unknown key 'rset'\nhint: did you mean 'rest'?\n"), typo
