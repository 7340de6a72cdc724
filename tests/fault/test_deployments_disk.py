"""Deployments on a disk without room: a rollout fails by name at the step that needs some, the version before serves
meanwhile, nothing is left, and all goes on when there is room."""
# security: services
import contextlib
import os
import random
import re

import pytest

from faults import files, home
from harness import eventually, what_stays
from origins import configure, origin
from packages_made import make, plain
from rest import problem
from rollouts import deploy, left, put, wait
from small_disks import on_small_disk, without_room
from test_deployments_killed import is_held, let_go

pytestmark = pytest.mark.needs_root
URL = "/v1/deployments/greeter"
MB = 1 << 20
HALF = random.Random(1).randbytes(12 * MB).hex().encode()   # a package of half of this


def package(version, **more):
    agent = f"name: greeter\nversion: {version}\nrest:\n  command: python3 src/server.py\n"
    return make({"agent.yaml": agent, "src/server.py": "", **more})


@contextlib.contextmanager
def room(daemon, megabytes):
    """So much is free in the block."""
    hog = home(daemon) / "hog"
    free = os.statvfs(hog.parent)
    with open(hog, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_frsize - megabytes * MB)
    try:
        yield
    finally:
        hog.unlink()


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    """Version 1.0.0 serves; others are stored, or at an origin."""
    served = tmp_path_factory.mktemp("files")
    (served / "large.apkg").write_bytes(package("2.0.0", data=HALF))
    with origin(directory=served) as site, on_small_disk("size=640m", lambda disk: configure(disk / "carrel")) as daemon:
        deploy(daemon, plain())
        put(daemon, package("2.0.0", data=HALF), "unpacked@2.0.0")
        put(daemon, package("2.0.0", **{"requirements.txt": "markupsafe\n"}), "built@2.0.0")
        daemon.site, daemon.workspaces, daemon.known = f"http://origin.test:{site.port}", {one["id"] for one in left(daemon)}, found(daemon)
        yield daemon
        assert daemon.delete(URL).status == 204 and eventually(lambda: not left(daemon))


def serves(daemon):
    answer = daemon.get(f"{URL}/rest/")
    return answer.status == 200 and answer.body.endswith(b"1.0.0")


def check(daemon):
    """As before: what serves, and what is there."""
    shown = daemon.get(URL).json()
    assert (shown["status"], shown["version"]) == ("healthy", "1.0.0") and serves(daemon), shown
    assert eventually(lambda: {one["id"] for one in left(daemon)} == daemon.workspaces), left(daemon)
    stay = what_stays(lambda: found(daemon) - daemon.known)
    assert not stay, stay


def found(daemon):
    """Its files, but for those of one workspace that is made ahead, of the test, output of surfaces, and logs of builds that failed."""
    names = files(daemon)
    ahead = sorted({name.split("/")[1] for name in names if name.startswith("workspaces/")} - {one["id"] for one in left(daemon)})[:1]
    parts = lambda name: name.replace(".", "/").split("/")
    return {name for name in names if not name.startswith(("hog", "envs/.failed", "run/execs/")) and not any(one in parts(name) for one in ahead)}


@pytest.mark.parametrize("megabytes, url, words", [
    (6, "{site}/large.apkg", ("fetch 'http://origin.test", "large.apkg", "No space left on device")),
    (32, "blob:unpacked@2.0.0", ("unpack the package", "'data'", "No space left on device")),
    (40, "blob:built@2.0.0", ("build the environment", "are needed to build")),
], ids=["download", "unpack", "environment"])
def test_a_step_without_room_fails_by_name(full, megabytes, url, words):
    daemon = full
    with room(daemon, megabytes):
        shown = deploy(daemon, version="2.0.0", packageUrl=url.format(site=daemon.site), status="failed")
        for word in words:
            assert word in shown["rollout"]["error"], shown
        check(daemon)
    check(daemon)


def test_nothing_is_accepted_without_room(full):
    daemon = full
    with without_room(daemon):
        problem(daemon.request("PUT", "/v1/packages/other@1", plain()), 507, "disk_full")
        for path, body in (("/v1/deployments", {"agentAppId": "greeter", "version": "1.0.0"}), (f"{URL}/restart", None)):
            answer = daemon.post(path, body)
            # Its row had room where an older one was; then a step has none, or the surface, which can't write.
            if answer.status == 200:
                assert re.search("No space left on device|has no room|surface 'rest'", wait(daemon, "greeter", "failed")["rollout"]["error"])
            else:
                problem(answer, 507, "disk_full", "No space left on device")
        check(daemon)
    assert eventually(daemon.is_ready)
    check(daemon)


def test_a_surface_that_ends_without_room_serves_again_when_there_is_some(full):
    daemon = full
    with without_room(daemon):
        assert daemon.get(f"{URL}/rest/crash").status == 502
        assert eventually(lambda: daemon.get(URL).json()["status"] == "unhealthy") and daemon.get(URL).json()["surfaces"][0]["error"]
    assert eventually(lambda: daemon.get(URL).json()["status"] == "healthy")
    check(daemon)


@pytest.mark.needs_faults
def test_a_start_without_room_fails_by_name(full):
    daemon = full
    daemon.stop_serving()
    daemon.env["CARREL_FAULT"] = "deployment_step:5:WAIT"     # its layer is there: package, environment, surface, that there are no more, start
    daemon.start_serving()
    core = daemon.core_pid()
    assert eventually(lambda: daemon.get(URL).json()["status"] == "healthy")
    assert daemon.post("/v1/deployments", {"agentAppId": "greeter", "version": "1.0.0"}).status == 200
    assert eventually(lambda: is_held(core))
    with without_room(daemon):
        let_go(core)
        shown = wait(daemon, "greeter", "failed")
        assert "surface 'rest'" in shown["rollout"]["error"], shown
        check(daemon)
    check(daemon)
