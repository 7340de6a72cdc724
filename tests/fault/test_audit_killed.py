"""The audit log under kills and full disks: nothing that was acknowledged is missing, and the chain is clean."""
# security: audit
import json
import signal
import threading

import pytest

from daemons import configure
from faults import attempt, exec_, kill
from harness import NOT_AHEAD, descendants, eventually
from rest import problem
from small_disks import on_small_disk, without_room

pytestmark = pytest.mark.once     # the process is the same for every user


def make(daemon, **body):
    answer = daemon.post("/v1/workspaces", body)
    assert answer.status == 201, answer
    return answer.json()


def lines(daemon, query=""):
    answer = daemon.get("/v1/audit" + query)
    assert answer.status == 200, answer
    return [json.loads(line) for line in answer.body.splitlines()]


def verify(daemon):
    done = daemon("audit", "--verify", "-o", "json")
    return done.returncode, json.loads(done.stdout)


def writer(daemon):
    """Its pid, once there is one."""
    found = eventually(lambda: next((pid for pid, (_, name) in descendants(daemon.process.pid).items() if name == "carrel-audit"), None))
    assert found, daemon.log()
    return found


class Load:
    """Execs from several clients, and those that were acknowledged."""

    def __init__(self, daemon, name):
        self.daemon, self.name, self.stop, self.acknowledged = daemon, name, False, []
        self.threads = [threading.Thread(target=self.run, args=(n,)) for n in range(3)]

    def run(self, n):
        count = 0
        while not self.stop:
            word, count = f"word-{n}-{count}", count + 1
            answer = attempt(self.daemon, "POST", f"/v1/workspaces/{self.name}/exec", {"argv": ["echo", word]})
            if answer and answer.status == 200 and answer.json()["stdout"] == word + "\n":
                self.acknowledged.append(word)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *exc):
        self.stop = True
        for thread in self.threads:
            thread.join()

    def more(self, count=15):
        wanted = len(self.acknowledged) + count
        assert eventually(lambda: len(self.acknowledged) >= wanted), self.daemon.log()


def check(daemon, load):
    started = [line["data"]["argv"][1] for line in lines(daemon, "?type=exec.start") if line["data"]["argv"][0] == "echo"]
    assert set(load.acknowledged) <= set(started)
    assert len(started) == len(set(started)), "a record was written twice"
    code, verdict = verify(daemon)
    assert code == 0, verdict


def test_the_writer_is_killed_under_load(own_daemon):
    daemon, name = own_daemon, make(own_daemon)["name"]
    core = daemon.core_pid()
    with Load(daemon, name) as load:
        for _ in range(3):
            load.more()
            kill(writer(daemon))
        load.more()
    assert daemon.core_pid() == core
    check(daemon, load)


def test_core_is_killed_under_load(own_daemon):
    daemon, name = own_daemon, make(own_daemon)["name"]
    with Load(daemon, name) as load:
        for _ in range(2):
            load.more()
            daemon.kill_core()
        load.more()
    check(daemon, load)


def test_a_disk_that_hangs_holds_up_no_exec(own_daemon):
    daemon, name = own_daemon, make(own_daemon)["name"]
    pid = writer(daemon)
    kill(pid, signal.SIGSTOP)
    try:
        for n in range(20):
            assert exec_(daemon, name, "echo", str(n)).json()["stdout"] == f"{n}\n"
    finally:
        kill(pid, signal.SIGCONT)
    assert len(lines(daemon, "?type=exec.end")) == 20
    assert verify(daemon)[0] == 0


@pytest.mark.needs_faults
@pytest.mark.parametrize("point", ["audit.write:4", "audit.written:4", "audit.head:4", "audit.prune:1"])
def test_the_writer_ends_at_each_of_its_steps(make_daemon, point):
    daemon = configure(make_daemon(env={"CARREL_FAULT": point}), "audit:\n  max_file_bytes: 4K\n  max_bytes: 12K\n")
    name = make(daemon)["name"]
    for n in range(25):
        assert exec_(daemon, name, "echo", f"word-{n}").status == 200
    words = [line["data"]["argv"][1] for line in lines(daemon, "?type=exec.start")]
    assert words == [f"word-{n}" for n in range(25)][-len(words):]
    code, verdict = verify(daemon)
    assert code == 0, verdict
    assert "the process that writes the audit log has ended" in daemon.log()


@pytest.mark.needs_root
def test_a_full_disk_refuses_what_is_recorded_and_lets_space_be_freed():
    with on_small_disk("size=16m") as daemon:
        for name in ("kept", "full"):
            assert daemon.post("/v1/workspaces", {"name": name, "limits": NOT_AHEAD}).status == 201
        assert daemon.request("PUT", "/v1/workspaces/full/files/large", bytes(1 << 20)).status == 201
        with without_room(daemon):
            # What was allocated ahead is used up first.
            padding = "x" * 30000
            assert eventually(lambda: exec_(daemon, "kept", "true", padding).status == 503)
            problem(exec_(daemon, "kept", "true"), 503, "unavailable", "audit", "bytes are free", "No space left")
            assert daemon.get("/v1/workspaces/kept").status == 200
            assert daemon.get("/v1/audit?type=exec.end").status == 200
            assert daemon.get("/healthz").status == 200
            assert daemon.delete("/v1/workspaces/full").status == 204
        assert eventually(lambda: exec_(daemon, "kept", "true").status == 200)
        found = lines(daemon)
        assert any(line["type"] == "workspace.remove" and line["workspace_name"] == "full" for line in found)
        assert eventually(lambda: sum(line["data"]["count"] for line in lines(daemon, "?type=audit.dropped")) >= 1)
        code, verdict = verify(daemon)
        assert code == 0, verdict


@pytest.mark.needs_root
def test_a_full_disk_may_drop_and_count():
    with on_small_disk("size=16m") as daemon:
        configure(daemon, "audit:\n  on_full: drop\n")
        assert daemon.post("/v1/workspaces", {"name": "kept", "limits": NOT_AHEAD}).status == 201
        padding = "x" * 30000
        with without_room(daemon):
            for _ in range(80):
                assert exec_(daemon, "kept", "true", padding).status == 200
        assert eventually(lambda: exec_(daemon, "kept", "true").status == 200
                          and any(line["data"]["count"] for line in lines(daemon, "?type=audit.dropped")))
        code, verdict = verify(daemon)
        assert code == 0, verdict


@pytest.mark.needs_faults
def test_a_disk_that_fails_once_loses_nothing(make_daemon):
    daemon = make_daemon(env={"CARREL_FAULT": "audit.append:2:EIO"})
    name = make(daemon)["name"]
    assert eventually(lambda: exec_(daemon, name, "true").status == 200)
    assert eventually(lambda: "the audit log is written again" in daemon.log()), daemon.log()
    assert "the audit log can't be written" in daemon.log()
    assert verify(daemon)[0] == 0
    assert lines(daemon, "?type=workspace.create")
