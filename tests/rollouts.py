"""What the tests of deployments share: packages are stored, rolled out and waited for."""
import pytest
from harness import eventually
from packages_made import sha256

DONE = ("healthy", "failed", "stopped")


def put(daemon, data, name="greeter@1.0.0"):
    answer = daemon.request("PUT", f"/v1/packages/{name}?sha256={sha256(data)}", data)
    assert answer.status == 201, answer


def deploy(daemon, data=None, version="1.0.0", agent="greeter", status=None, **body):
    if data is not None:
        put(daemon, data, f"{agent}@{version}")
    answer = daemon.post("/v1/deployments", {"agentAppId": agent, "version": version, **body})
    assert answer.status in (200, 201), answer
    return wait(daemon, answer.json()["deploymentId"], status)


def wait(daemon, name, status="healthy"):
    def ended():
        shown = daemon.get(f"/v1/deployments/{name}").json()
        return shown if shown["rollout"]["status"] in DONE else None
    shown = eventually(ended, 300)      # packages come from an index
    assert shown, daemon.get(f"/v1/deployments/{name}")
    assert shown["rollout"]["status"] == (status or "healthy"), f"{shown} {daemon.get(f'/v1/deployments/{name}/logs').body}"
    return shown


def left(daemon):
    """What belongs to deployments: nothing, when all of them are removed."""
    return daemon.get("/v1/workspaces?label=carrel.service=deployments").json()["items"]


@pytest.fixture
def clean(daemon):
    yield daemon
    for one in daemon.get("/v1/deployments").json()["items"]:
        assert daemon.delete(f"/v1/deployments/{one['deploymentId']}").status == 204
    assert eventually(lambda: not left(daemon)), left(daemon)
