"""Killed at each named point of the code: ready again soon, every object whole or absent, what was acknowledged is there,
a retry with the same key gives one result, and nothing is left behind."""
# security: daemon
import contextlib
import io
import tarfile

import pytest

from daemons import new_directory, remove, serving
from faults import Inventory, attempt, exec_, files, home, is_whole, remove_all, restarts, rows, workspaces
from harness import eventually, what_stays

pytestmark = pytest.mark.needs_faults

ARCHIVE_FILES = {f"dir{n}/file": f"content {n}".encode() * 1000 for n in range(4)}


def archive():
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for name, content in ARCHIVE_FILES.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return data.getvalue()


# ---- what is asked for: each has the request that reaches the point, and what must hold afterwards ----

class Asked:
    def __init__(self, key):
        self.key = {"Idempotency-Key": key}


class Creating(Asked):
    def ask(self, daemon):
        return attempt(daemon, "POST", "/v1/workspaces", {"name": "new", "labels": {"context_id": "c"}}, self.key)

    def check(self, daemon, answer):
        there = workspaces(daemon).get("new")
        if answer and answer.status == 201:
            assert there and there["id"] == answer.json()["id"]
        if there:
            is_whole(daemon, there)
        again, third = self.ask(daemon), self.ask(daemon)
        assert again.status == third.status == 201, (again, third)
        assert again.json()["id"] == third.json()["id"] == workspaces(daemon)["new"]["id"]
        assert not there or there["id"] == again.json()["id"]
        is_whole(daemon, workspaces(daemon)["new"])


class Background(Asked):
    """A command that leaves a line each time it is run."""

    def ask(self, daemon):
        body = {"command": "echo run >> runs; echo out; exit 7", "background": True}
        return attempt(daemon, "POST", "/v1/workspaces/kept/exec", body, self.key)

    def check(self, daemon, answer):
        again = self.ask(daemon)
        assert again.status == 201, again
        if answer and answer.status == 201:
            assert again.json()["id"] == answer.json()["id"]
        path = again.headers["Location"]
        assert eventually(lambda: daemon.get(path).json()["state"] == "ended"), daemon.get(path)
        found = daemon.get(path).json()
        runs = daemon.get("/v1/workspaces/kept/files/runs")
        count = runs.body.count(b"run") if runs.status == 200 else 0
        if found["reason"] == "exited":
            assert (found["exit_code"], count) == (7, 1), (found, runs)
            assert daemon.get(f"{path}/output").body == b"out\n"
        else:   # it never began, or its end isn't known: said so, and never a made-up exit
            assert found["reason"] in ("canceled", "daemon_lost") and found["error"] and count <= 1, (found, runs)
        assert [one["id"] for one in daemon.get("/v1/workspaces/kept/execs").json()["items"]] == [found["id"]]


class Ending(Background):
    """The one who asked has its answer already: the command ran, and its end must be known."""

    def ask(self, daemon):
        answer = super().ask(daemon)
        if answer and answer.status == 201:     # the end comes later, and with it the fault
            eventually(lambda: self.is_ended(attempt(daemon, "GET", answer.headers["Location"])))
        return answer

    @staticmethod
    def is_ended(answer):
        return answer and answer.status == 200 and answer.json()["state"] == "ended"

    def check(self, daemon, answer):
        super().check(daemon, answer)
        assert daemon.get(answer.headers["Location"]).json()["reason"] == "exited"


class Removing(Asked):
    def ask(self, daemon):
        return attempt(daemon, "DELETE", "/v1/workspaces/kept")

    def check(self, daemon, answer):
        there = workspaces(daemon).get("kept")
        if answer and answer.status == 204:
            assert not there
        if there and there["state"] != "deleting":
            assert daemon.get("/v1/workspaces/kept/files/old").body == b"old"
            is_whole(daemon, there)
        again = self.ask(daemon)
        assert again.status in (204, 404), again
        assert not workspaces(daemon)


class RemovingRunning(Removing):
    def ask(self, daemon):
        if workspaces(daemon).get("kept", {"state": "deleting"})["state"] != "deleting":
            assert exec_(daemon, "kept", "true").status == 200
        return super().ask(daemon)


class Writing(Asked):
    def ask(self, daemon):
        return attempt(daemon, "PUT", "/v1/workspaces/kept/files/old", b"new" * 10000)

    def check(self, daemon, answer):
        found = daemon.get("/v1/workspaces/kept/files/old").body
        assert found in (b"old", b"new" * 10000)
        if answer and answer.status < 300:
            assert found != b"old"
        assert self.ask(daemon).status == 200
        assert daemon.get("/v1/workspaces/kept/files/old").body == b"new" * 10000


class Unpacking(Asked):
    def ask(self, daemon):
        return attempt(daemon, "PUT", "/v1/workspaces/kept/archive", archive(), {"Content-Type": "application/x-tar"})

    def check(self, daemon, answer):
        for name, content in ARCHIVE_FILES.items():
            found = daemon.get(f"/v1/workspaces/kept/files/{name}")
            assert (found.status, found.body) == (200, content) or found.status == 404, found
        again = self.ask(daemon)
        assert again.status < 300, again
        for name, content in ARCHIVE_FILES.items():
            assert daemon.get(f"/v1/workspaces/kept/files/{name}").body == content


class Running(Asked):
    def ask(self, daemon):
        return attempt(daemon, "POST", "/v1/workspaces/kept/exec", {"argv": ["cat", "old"]})

    def check(self, daemon, answer):
        again = self.ask(daemon)
        assert again.status == 200 and again.json()["stdout"] == "old", again


POINTS = [
    # what is asked for, the points it comes by, and how often each is passed before
    (Creating, ["core_tree", "core_tree_made", "core_create_row", "core_create_answer", "store.committed", "store.committed:2"]),
    (Background, ["core_exec_row", "core_sandbox_start", "core_exec_started", "store.committed", "store.committed:2"]),
    (Ending, ["core_exec_stored"]),
    (Removing, ["core_remove_tree", "core_remove_row", "core_remove_answer", "store.committed"]),
    (RemovingRunning, ["core_remove_tree", "launch_end_before_reply"]),
    (Writing, ["files.write", "files.sync", "files.rename"]),
    (Unpacking, ["archive.unpacked", "archive.place", "archive.place:3"]),
    (Running, ["core_sandbox_start", "launch_start_before_clone", "launch_start_bound", "launch_started_before_reply"]),
]
CHILDS = ("archive.", "files.sync", "files.rename")  # passed by the file agent: core lives on


@pytest.fixture(scope="module")
def stopped():
    """A daemon's home, and the daemon that isn't running."""
    directory = new_directory()
    with serving(directory) as daemon:
        daemon.stop_serving()
        yield daemon
        daemon.env.pop("CARREL_FAULT", None)
        daemon.start_serving()
    remove(directory)


@pytest.fixture
def kept(stopped):
    """Serving without a fault, with one workspace that has a file. Afterwards all must be as it was without it."""
    daemon = stopped
    daemon.env.pop("CARREL_FAULT", None)
    daemon.start_serving()
    inventory = Inventory(daemon)
    assert daemon.post("/v1/workspaces", {"name": "kept"}).status == 201
    assert daemon.request("PUT", "/v1/workspaces/kept/files/old", b"old").status == 201
    daemon.stop_serving()
    yield daemon
    try:
        remove_all(daemon)
        inventory.check()
    finally:
        daemon.stop_serving()


@pytest.mark.parametrize("asked, point", [(asked, point) for asked, points in POINTS for point in points])
def test_killed_at(kept, asked, point):
    daemon = kept
    daemon.env["CARREL_FAULT"] = point if ":" in point else f"{point}:1"
    daemon.start_serving()
    what = asked(f"{asked.__name__}-{point}".replace(":", "-"))
    if point.startswith(CHILDS):
        core, answer = daemon.core_pid(), what.ask(daemon)
        assert answer.status in (500, 503) and daemon.core_pid() == core and eventually(daemon.is_ready), answer
        del daemon.env["CARREL_FAULT"]      # the next child would pass there too
        daemon.restart()
    else:
        with restarts(daemon):
            answer = what.ask(daemon)
    what.check(daemon, answer)


@pytest.mark.parametrize("point", ["store.new:1", "store.committed:1"])
def test_killed_while_the_home_is_made(point):
    """The first start, and the first create there is: nothing was there before, and nothing is half there after it."""
    directory = new_directory()
    try:
        with serving(directory) as daemon:
            daemon.stop_serving()
            remove(home(daemon))
            daemon.env["CARREL_FAULT"] = point
            daemon.start_serving(wait=False)
            ended = lambda: daemon.process.poll() is not None or attempt(daemon, "POST", "/v1/workspaces", {"name": "new"})
            assert eventually(ended)
            with contextlib.suppress(AssertionError):
                daemon.stop_serving()
            daemon.env.pop("CARREL_FAULT")
            daemon.start_serving()
            assert set(workspaces(daemon)) <= {"new"}
            remove_all(daemon)
            assert not rows(daemon)["workspaces"]
            left = what_stays(lambda: {name for name in files(daemon)
                                       if name.startswith(("workspaces/", "run/sb/", "run/execs/")) or "new" in name})
            assert not left, left
    finally:
        remove(directory)


def test_killed_at_the_first_create_of_a_home():
    """A tree without a row is half-made also where no row was ever written."""
    directory = new_directory()
    try:
        with serving(directory, env={"CARREL_FAULT": "core_tree_made:1"}) as daemon:
            with restarts(daemon):
                assert attempt(daemon, "POST", "/v1/workspaces", {"name": "new"}) is None
            assert not workspaces(daemon)
            left = what_stays(lambda: {name for name in files(daemon) if name.startswith("workspaces/")})
            assert not left, left
    finally:
        remove(directory)


@pytest.mark.parametrize("point, status, code", [("files.sync:1:EIO", 500, "failed"), ("files.sync:1:ENOSPC", 507, "disk_full")])
def test_a_disk_that_fails_is_said_and_changes_nothing(kept, point, status, code):
    daemon = kept
    daemon.env["CARREL_FAULT"] = point
    daemon.start_serving()
    answer = Writing(point).ask(daemon)
    assert (answer.status, answer.json()["code"]) == (status, code), answer
    assert daemon.get("/v1/workspaces/kept/files/old").body == b"old"
    del daemon.env["CARREL_FAULT"]
    daemon.restart()
    assert Writing(point).ask(daemon).status == 200


@pytest.mark.parametrize("error, status, code", [("ENOSPC", 507, "disk_full"), ("EIO", 503, "unavailable"), ("EROFS", 503, "unavailable")])
def test_a_state_that_cant_be_written_is_said_and_tried_again(kept, error, status, code):
    daemon = kept
    daemon.env["CARREL_FAULT"] = f"store.commit:1:{error}"
    daemon.start_serving()
    answer = daemon.post("/v1/workspaces", {"name": "new"})
    assert (answer.status, answer.json()["code"]) == (status, code), answer
    assert set(workspaces(daemon)) == {"kept"} and rows(daemon)["workspaces"] == {workspaces(daemon)["kept"]["id"]}
    assert daemon.get("/v1/workspaces/kept/files/old").body == b"old"
    Creating(f"commit-{error}").check(daemon, None)
    assert eventually(daemon.is_ready)
