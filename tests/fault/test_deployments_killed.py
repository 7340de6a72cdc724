"""kill -9 of each role at each step of a replacement: it goes on or has failed by name, the version before serves meanwhile,
logs can be read, and nothing is left behind."""
# security: services
import http.server
import os
import signal
import threading

import pytest

from daemons import new_directory, remove, serving
from faults import Inventory, attempt, inits, kill
from harness import descendants, eventually, what_stays
from origins import configure, origin
from packages_made import plain
from rollouts import DONE, deploy, left, put, wait

URL = "/v1/deployments/greeter"
BROKEN = plain("2.0.0", server="import sys\nprint('no luck', flush=True)\nsys.exit(3)\n")


class Held(http.server.BaseHTTPRequestHandler):
    """Answers when the test is over; /nothing at once."""

    def do_GET(self):
        self.server.requests.append(self.path)
        if self.path == "/nothing":
            self.send_error(404)
        else:
            self.server.over.wait()

    def log_message(self, *args):
        pass


def roles(daemon, name):
    return [pid for pid, (_, each) in descendants(daemon.process.pid).items() if each == name]


@pytest.fixture(scope="module")
def stopped():
    """The home of a daemon that isn't running: version 1.0.0 is deployed, the package of 2.0.0 stored."""
    directory = new_directory()
    configure(directory / "carrel")
    try:
        with origin(handler=Held) as held, serving(directory) as daemon:
            held.over, daemon.held = threading.Event(), held
            deploy(daemon, packageUrl=f"http://origin.test:{held.port}/nothing", status="failed")    # starts egress
            deploy(daemon, plain())
            put(daemon, BROKEN, "broken@2.0.0")
            deploy(daemon, plain("2.0.0"), version="2.0.0")
            assert daemon.delete(URL).status == 204 and eventually(lambda: not left(daemon))
            daemon.inventory = Inventory(daemon)
            deploy(daemon)
            daemon.stop_serving()
            yield daemon
            held.over.set()
            daemon.env.pop("CARREL_FAULT", None)
            daemon.start_serving()
    finally:
        remove(directory)


@pytest.fixture
def replaced(stopped):
    """A function that serves with a fault and returns the daemon. Afterwards all must be as it was, but for the deployment."""
    daemon = stopped

    def begin(fault=None):
        daemon.env.pop("CARREL_FAULT", None)
        if fault:
            daemon.env["CARREL_FAULT"] = fault
        daemon.start_serving()
        assert eventually(lambda: daemon.get(URL).json()["status"] == "healthy")
        return daemon
    yield begin
    try:
        answer = attempt(daemon, "DELETE", URL)
        assert answer and answer.status in (204, 404), answer
        assert eventually(lambda: not left(daemon)), left(daemon)
        # Which descriptors a role has open depends on what it was asked since its start.
        stays = what_stays(lambda: {kind: what for kind, what in daemon.inventory.left().items() if "descriptors" not in kind})
        assert not stays, stays
        deploy(daemon)
    finally:
        daemon.stop_serving()


def ask(daemon, version="2.0.0", **more):
    """Its answer, or None: it is lost with core."""
    return attempt(daemon, "POST", "/v1/deployments", {"agentAppId": "greeter", "version": version, **more})


def serves(daemon, version):
    answer = daemon.get(f"{URL}/rest/")
    return answer.status == 200 and answer.body.endswith(version.encode())


def ended(daemon):
    """The deployment when its rollout has ended, whoever had to be started again."""
    def look():
        answer = attempt(daemon, "GET", URL)
        shown = answer and answer.status == 200 and answer.json()
        return shown if shown and shown["rollout"]["status"] in DONE else None
    shown = eventually(look, 120)
    assert shown, daemon.get(URL)
    return shown


def check(daemon, is_accepted=True):
    """It is replaced, or the rollout has failed and says why; one of both versions serves, its log is there, and what isn't
    used by it is gone."""
    shown = ended(daemon)
    version = shown["version"]
    if shown["rollout"]["status"] == "healthy" and shown["rollout"]["revision"] > 1:
        assert version == "2.0.0"
    else:
        assert version == "1.0.0" and (shown["rollout"]["error"] or not is_accepted), shown
    # What ran before may have died with the launcher: it is started again.
    assert eventually(lambda: daemon.get(URL).json()["status"] == "healthy"), daemon.get(URL)
    assert serves(daemon, version)
    log = daemon.get(f"{URL}/logs")
    assert log.status == 200 and f"server of {version} begins".encode() in log.body, log
    used = {one["workspace"] for one in shown["surfaces"]}
    of_surfaces = lambda: {one["id"] for one in left(daemon) if one["labels"]["carrel.role"] != "package"}
    assert eventually(lambda: of_surfaces() == used), (left(daemon), used)
    assert len([one for one in left(daemon) if one["labels"]["carrel.role"] == "package"]) <= 2
    return shown


@pytest.mark.needs_faults
@pytest.mark.parametrize("point", ["deployment_stored:1", *(f"deployment_step:{n}" for n in range(1, 11)), "deployment_surface_made:1", "deployment_live:1",
                                   "deployment_drained:1"])
def test_core_dies_during_a_replacement(replaced, point):
    daemon = replaced(point)
    with daemon.new_core():
        answer = ask(daemon)
    # Its process has gone on meanwhile.
    answered = daemon.get(f"{URL}/rest/")
    assert answered.status == 200, answered
    # A rollout that was accepted goes on. One whose client was not answered may have been lost, as a whole.
    shown = check(daemon, answer is not None)
    assert shown["version"] == "2.0.0" or not answer


@pytest.mark.needs_faults
@pytest.mark.parametrize("point", ["deployment_failed:1", "deployment_step:9"])
def test_core_dies_during_a_replacement_that_fails(replaced, point):
    daemon = replaced(point)
    with daemon.new_core():
        ask(daemon, packageUrl="blob:broken@2.0.0")
    shown = check(daemon)
    assert shown["rollout"]["status"] == "failed" and "exit code 3" in shown["rollout"]["error"]
    assert b"rest of version 2.0.0 (revision" in daemon.get(f"{URL}/logs").body and b"no luck" in daemon.get(f"{URL}/logs").body


@pytest.mark.needs_faults
def test_core_dies_while_a_deployment_is_removed(replaced):
    daemon = replaced("deployment_dropped:1")
    with daemon.new_core():
        assert attempt(daemon, "DELETE", URL) is None
    if daemon.get(URL).status == 200:
        check(daemon, False)
    else:
        assert eventually(lambda: not left(daemon)), left(daemon)


# ---- others than core: it is held at the step, while they are killed ----

def is_held(pid):
    """Whether it waits for SIGCONT: it has a handler for it then."""
    with open(f"/proc/{pid}/status") as file:
        status = dict(line.split(":", 1) for line in file.read().splitlines())
    return status["State"].split()[0] not in "ZX" and int(status["SigCgt"], 16) >> (signal.SIGCONT - 1) & 1


def let_go(pid):
    def goes_on():
        try:
            if not is_held(pid):
                return True
            os.kill(pid, signal.SIGCONT)
        except (FileNotFoundError, ProcessLookupError):
            return True
    assert eventually(goes_on)


@pytest.mark.once
@pytest.mark.needs_faults
@pytest.mark.parametrize("role, step", [("launcher", 3), ("launcher", 7), ("launcher", 8), ("launcher", 10), ("carrel-writer", 2), ("carrel-writer", 8),
                                        ("carrel-audit", 3), ("carrel-audit", 10)])
def test_another_role_dies_during_a_replacement(replaced, role, step):
    daemon = replaced(f"deployment_step:{step}:WAIT")
    core = daemon.core_pid()
    asking = threading.Thread(target=ask, args=(daemon,))
    asking.start()
    assert eventually(lambda: is_held(core))
    if role == "launcher":
        daemon.process.kill()
    for pid in [] if role == "launcher" else roles(daemon, role):
        kill(pid)
    let_go(core)
    if role == "launcher":
        daemon.process.wait()
        daemon.env.pop("CARREL_FAULT")
        daemon.start_serving()
    asking.join()
    assert eventually(daemon.is_ready)
    check(daemon, False)
    assert daemon("audit", "--verify").returncode == 0


@pytest.mark.once
def test_egress_dies_during_a_download(replaced):
    daemon = replaced()
    url = f"http://origin.test:{daemon.held.port}/held"
    assert ask(daemon, version="3.0.0", packageUrl=url).status == 200
    assert eventually(lambda: "/held" in daemon.held.requests)
    assert serves(daemon, "1.0.0")
    for pid in roles(daemon, "carrel-egress"):
        kill(pid)
    shown = check(daemon)
    assert shown["rollout"]["status"] == "failed" and url in shown["rollout"]["error"], shown


@pytest.mark.parametrize("who", ["process", "init"])
def test_a_surface_dies(replaced, who):
    daemon = replaced()
    before = daemon.get(URL).json()["surfaces"][0]
    victims = inits(daemon) if who == "init" else [pid for pid, (_, name) in descendants(daemon.process.pid).items() if name.startswith("python")]
    assert victims
    for pid in victims:
        kill(pid)
    assert eventually(lambda: daemon.get(URL).json()["surfaces"][0]["exec"] != before["exec"])
    shown = check(daemon, False)
    assert shown["surfaces"][0]["workspace"] == before["workspace"]
