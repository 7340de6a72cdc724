"""kill -9 at each step of a snapshot, a rollback and a fork: what was acknowledged is there, nothing half-made is seen, no
layer is left over, and the workspace works."""
import os

import pytest

from daemons import new_directory, remove, serving
from faults import attempt, home, is_whole, remove_all, restarts, sh, workspaces
from harness import eventually

pytestmark = [pytest.mark.needs_faults, pytest.mark.once]

STATE = "find . -mindepth 1 ! -name probe | sort; cat *.txt; stat -c %a ."
URL = "/v1/workspaces/kept"


def layers(daemon):
    return {name for name in os.listdir(home(daemon) / "layers") if "snap-" in name}


def snapshots(daemon):
    return daemon.get(f"{URL}/snapshots").json()["items"]


def state(daemon, name="kept"):
    answer = sh(daemon, name, STATE).json()
    assert answer["exit_code"] == 0, answer
    return answer["stdout"]


def check_layers(daemon):
    """Snapshots have their layers, and beside these there is at most the workspace's own."""
    named = {layer for item in daemon.get("/v1/snapshots").json()["items"] for layer in item["layers"]}
    assert named <= layers(daemon)
    assert eventually(lambda: len(layers(daemon)) <= len(named) + 1, 60), (layers(daemon), named)
    assert not {"upper.new", "upper.old", ".dress"} & set(os.listdir(home(daemon) / "workspaces" / daemon.get(URL).json()["id"]))


class Snapshot:
    """The workspace has changed since its snapshot, and is idle."""

    def prepare(self, daemon):
        assert sh(daemon, "kept", "echo new >new.txt; rm old.txt; mkdir d; chmod 1750 .").json()["exit_code"] == 0

    def begin(self, daemon):
        """Once more, by the daemon that has the fault."""

    def go_on(self, daemon):
        """When it serves again, still with the fault. Whether all that ran goes on."""
        return True

    def ask(self, daemon):
        return attempt(daemon, "POST", f"{URL}/snapshots", {"tag": "wanted"}, timeout=120)

    def check(self, daemon, answer, before):
        there = [item for item in snapshots(daemon) if item["tag"] == "wanted"]
        assert there or not (answer and answer.status == 201)
        assert state(daemon) == before
        if not there:
            again = self.ask(daemon)
            assert again.status == 201, again
        assert daemon.post(f"{URL}/rollback", {"snapshot": "first"}).status == 200
        assert "old.txt" in state(daemon)
        assert daemon.post(f"{URL}/rollback", {"snapshot": "wanted"}).status == 200
        assert state(daemon) == before


class Attached(Snapshot):
    """Copied, since descriptors of its files can have gone elsewhere."""

    def prepare(self, daemon):
        assert daemon.delete(URL).status == 204
        assert daemon.post("/v1/trees", {"name": "common"}).status in (201, 409)
        assert daemon.post("/v1/workspaces", {"name": "kept", "attach": ["common:/workspace/common"]}).status == 201
        assert sh(daemon, "kept", "echo one >old.txt; chmod 755 .").json()["exit_code"] == 0
        assert daemon.post(f"{URL}/snapshots", {"tag": "first"}).status == 201
        super().prepare(daemon)


class Busy(Snapshot):
    """A command goes on writing."""

    def begin(self, daemon):
        body = {"command": "until [ -e .stop ]; do echo x >>.n; done; rm .stop .n", "background": True}
        self.command = daemon.post(f"{URL}/exec", body).headers["Location"]
        assert eventually(lambda: daemon.get(f"{URL}/files/.n").status == 200, 60)

    def go_on(self, daemon):
        """The command was let go on, unless the launcher died, and the command with it."""
        assert sh(daemon, "kept", "touch .stop").json()["exit_code"] == 0
        assert eventually(lambda: daemon.get(self.command).json()["state"] == "ended", 60), daemon.get(self.command)
        ended = daemon.get(self.command).json()
        assert ended["reason"] in ("exited", "canceled", "daemon_lost"), ended
        return ended["reason"] == "exited"

    def check(self, daemon, answer, before):
        assert sh(daemon, "kept", "rm -f .stop .n").json()["exit_code"] == 0
        there = [item for item in snapshots(daemon) if item["tag"] == "wanted"]
        assert there or not (answer and answer.status == 201)
        assert state(daemon) == before
        if there:
            assert daemon.post(f"{URL}/rollback", {"snapshot": "wanted"}).status == 200
            assert sh(daemon, "kept", "rm .n").json()["exit_code"] == 0
            assert state(daemon) == before


class Rollback(Snapshot):
    def ask(self, daemon):
        return attempt(daemon, "POST", f"{URL}/rollback", {"snapshot": "first"}, timeout=120)

    def check(self, daemon, answer, before):
        now, kept = state(daemon), [item for item in snapshots(daemon) if item["automatic"]]
        assert now in (before, self.first)
        assert now == self.first or not (answer and answer.status == 200)
        assert bool(kept) == (now == self.first)
        if not kept:
            assert self.ask(daemon).status == 200
            assert state(daemon) == self.first
            (kept,) = [[item] for item in snapshots(daemon) if item["automatic"]]
        assert daemon.post(f"{URL}/rollback", {"snapshot": kept[0]["id"]}).status == 200
        assert state(daemon) == before


class RollbackOfNothing(Rollback):
    """Nothing has changed since the newest snapshot: only the empty upper's root changes."""

    def prepare(self, daemon):
        super().prepare(daemon)
        assert daemon.post(f"{URL}/snapshots", {"tag": "second"}).status == 201

    def check(self, daemon, answer, before):
        now = state(daemon)
        assert now in (before, self.first)
        assert now == self.first or not (answer and answer.status == 200)
        assert (now == self.first) == (daemon.get(URL).json()["snapshot"] == snapshots(daemon)[-1]["id"])
        assert self.ask(daemon).status == 200
        assert state(daemon) == self.first


class Fork(Snapshot):
    def ask(self, daemon):
        return attempt(daemon, "POST", f"{URL}/fork", {"name": "f", "count": 3}, timeout=120)

    def check(self, daemon, answer, before):
        made = {name for name in workspaces(daemon) if name != "kept"}
        assert made in (set(), {"f-1", "f-2", "f-3"}), "all or none"
        assert made or not (answer and answer.status == 201)
        for name in made:
            assert state(daemon, name) == before
        assert state(daemon) == before
        if not made:
            assert self.ask(daemon).status == 201
        is_whole(daemon, workspaces(daemon)["f-3"])
        for name in ("f-1", "f-2", "f-3"):
            assert state(daemon, name) == before
            assert daemon.delete(f"/v1/workspaces/{name}").status == 204


POINTS = [
    (Snapshot, ["core_freeze", "core_freeze_part", "core_freeze_work", "core_snapshot_row", "store.committed", "core_freeze_settle"]),
    (Attached, ["core_copied", "core_freeze_part", "core_snapshot_row", "core_freeze_settle"]),
    (Busy, ["core_paused", "launch_tree_started", "tree_before_sync", "tree_after_rename", "core_copied"]),
    (Rollback, ["core_dress", "store.committed"]),
    (RollbackOfNothing, ["core_snapshot_row"]),
    (Fork, ["core_fork", "core_tree_made:2", "core_create_row:3", "store.committed:2"]),
]
JOBS = ("tree_",)   # passed by the job: core lives on


@pytest.fixture(scope="module")
def own():
    """A daemon that serves without a fault, and has no workspace."""
    directory = new_directory()
    with serving(directory) as daemon:
        yield daemon
    remove(directory)


@pytest.fixture(autouse=True)
def leaves_nothing(own):
    yield
    if not own.is_ready() or workspaces(own):   # the test has failed
        serve(own)
        remove_all(own)


def make(daemon):
    """The workspace with one snapshot."""
    assert daemon.post("/v1/workspaces", {"name": "kept"}).status == 201
    assert sh(daemon, "kept", "echo one >old.txt; chmod 755 .").json()["exit_code"] == 0
    assert daemon.post(f"{URL}/snapshots", {"tag": "first"}).status == 201
    return state(daemon)


def serve(daemon, fault=None):
    daemon.env.pop("CARREL_FAULT", None)
    if fault:
        daemon.env["CARREL_FAULT"] = fault if ":" in fault else f"{fault}:1"
    daemon.restart()


def check_killed_at(daemon, what, point):
    what.first = make(daemon)
    what.prepare(daemon)
    before = state(daemon)
    # No other job on trees may come by the point.
    assert eventually(lambda: all(item["content_id"] for item in snapshots(daemon)), 60)
    serve(daemon, point)
    what.begin(daemon)
    launcher = daemon.process.pid
    if point.startswith(JOBS):
        answer = what.ask(daemon)
        assert answer.status >= 400, answer
    else:
        with restarts(daemon):
            answer = what.ask(daemon)
    assert what.go_on(daemon) or daemon.process.pid != launcher
    serve(daemon)
    what.check(daemon, answer, before)
    check_layers(daemon)
    remove_all(daemon)
    assert eventually(lambda: not layers(daemon), 60), layers(daemon)


@pytest.mark.parametrize("asked, point", [(asked, point) for asked, points in POINTS for point in points])
def test_killed_at(own, asked, point):
    check_killed_at(own, asked(), point)


def test_killed_while_it_undoes_a_freeze(own):
    """The next start goes on with it. Without `work` the upper would be taken for a plain directory, and lose its marks."""
    daemon = own
    make(daemon)
    assert sh(daemon, "kept", "mkdir d; touch d/old").json()["exit_code"] == 0
    assert daemon.post(f"{URL}/snapshots").status == 201
    assert sh(daemon, "kept", "rm -r d; mkdir d; touch d/new").json()["exit_code"] == 0
    before, id_ = state(daemon), daemon.get(URL).json()["id"]
    daemon.stop_serving()
    layer, tree = home(daemon) / "layers" / f"snap-{'0' * 20}", home(daemon) / "workspaces" / id_
    owner = tree.stat()
    layer.mkdir(mode=0o755)
    (layer / ".from").symlink_to(id_)
    (tree / "upper").rename(layer / "workspace")
    os.chmod(tree / "work", 0o755)
    remove(tree / "work")
    (tree / "upper").mkdir()
    for path in (layer, tree / "upper"):
        os.chown(path, owner.st_uid, owner.st_gid)
    daemon.env["CARREL_FAULT"] = "core_thaw:1"
    daemon.start_serving(wait=False)
    assert daemon.process.wait(60) == 125 and not (layer / "workspace").exists()
    del daemon.env["CARREL_FAULT"]
    daemon.start_serving()
    assert state(daemon) == before
    remove_all(daemon)
    assert eventually(lambda: not layers(daemon), 60), layers(daemon)
