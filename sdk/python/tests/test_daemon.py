"""The synchronous client against a daemon, noun by noun."""
import io
import os
import pathlib
import shutil
import subprocess
import tarfile
import tempfile
import threading
from typing import List

import pytest

from carrel import types
from carrel import (
    ApprovalRequired, Carrel, CommandFailed, Conflict, DaemonNotStarted, Denied, Invalid, LimitReached, NotFound, TimedOut, Workspace,
)


# ---- commands ----

def test_run(ws: Workspace) -> None:
    result = ws.run("cat; echo $A; pwd; echo no >&2; exit 3", stdin=b"in\n", env={"A": "b"}, cwd="/tmp")
    assert (result.exit_code, result.stdout, result.stderr, result.reason, result.ok) == (3, "in\nb\n/tmp\n", "no\n", "exited", False)
    assert ws.exec("printf", "%s", "a b").stdout == "a b"
    assert ws.run(["printf", r"\377"]).stdout_bytes == b"\xff"
    with pytest.raises(CommandFailed, match="exit code 3: no") as failed:
        ws.run("echo no >&2; exit 3", check=True)
    assert failed.value.result.exit_code == 3


def test_limits_of_a_command(ws: Workspace) -> None:
    assert ws.run("sleep 60", timeout=0.2).reason == "timeout"
    assert ws.run("sleep 60", timeout="200ms").exit_code == 124
    assert ws.run("yes", output=1000).reason == "output_limit"


def test_callbacks(ws: Workspace) -> None:
    pieces = []
    result = ws.run("echo one; echo two >&2", on_stdout=pieces.append, on_stderr=lambda text: pieces.append(text.upper()))
    assert sorted(pieces) == ["TWO\n", "one\n"] and (result.stdout, result.stderr) == ("one\n", "two\n")
    with pytest.raises(ValueError):
        ws.run("true", key="k", on_stdout=print)


def test_a_key_runs_a_command_once(ws: Workspace) -> None:
    first, second = (ws.run("echo x >> once; cat once", key="once") for _ in range(2))
    assert first.id == second.id and second.stdout == "x\n"


def test_a_stream(ws: Workspace) -> None:
    with ws.stream("echo one; echo two >&2; exit 4") as stream:
        with pytest.raises(RuntimeError):
            stream.result
        outputs = {(output.stream, output.text) for output in stream}
    assert outputs == {("stdout", "one\n"), ("stderr", "two\n")} and stream.result.exit_code == 4
    with ws.stream("echo begun; sleep 1000") as canceled:
        assert next(iter(canceled)).text == "begun\n"
    assert [process.wait(60).reason for process in ws.execs() if process.id == canceled.id] in (["canceled"], [])


def test_in_the_background(ws: Workspace, carrel: Carrel) -> None:
    job = ws.start("cat; sleep 1000", open_stdin=True)
    with pytest.raises(TimedOut):
        job.wait(0.1)
    job.write("hello ")
    job.write(b"you\n", eof=True)
    logs = job.logs()
    assert next(logs).text.startswith("hello")
    job.signal("TERM")
    assert job.wait(60).reason == "signaled"
    list(logs)
    assert job.output() == b"hello you\n" and job.output(offset=6) == b"you\n" and job.output("stderr") == b""
    assert carrel.execs.get(job.id).info.state == "ended" and job.id in [one.id for one in carrel.execs.list(limit=5)]
    terminal = ws.start(["sh", "-c", "stty size; read x; stty size"], tty=True, rows=10, columns=20, open_stdin=True)
    terminal.resize(11, 21)
    terminal.write("\n")
    assert terminal.wait(60).exit_code == 0 and b"11 21" in terminal.output()


# ---- files ----

def test_files(ws: Workspace, carrel: Carrel, tmp_path: pathlib.Path) -> None:
    files = ws.files
    assert files.write("d/a b", b"one\ntwo\n", mode=0o755).mode == "0755"
    assert (files.read("d/a b"), files.read("d/a b", start=4), files.read("d/a b", start=0, end=3)) == (b"one\ntwo\n", b"two\n", b"one")
    assert files.read_text("/workspace/d/a b").startswith("one") and files.size("d/a b") == 8
    with pytest.raises(Conflict):
        files.write("d/a b", "again", exist_ok=False)
    (tmp_path / "up").write_bytes(os.urandom(300_000))
    files.upload(tmp_path / "up", "d/up")
    files.download("d/up", tmp_path / "down")
    assert (tmp_path / "down").read_bytes() == (tmp_path / "up").read_bytes()
    files.mkdir("d/e/f")
    files.move("d/up", "d/e/up")
    assert sorted(entry.name for entry in files.list("d")) == ["a b", "e"] and files.stat("d/e").type == "directory"
    archive = io.BytesIO()
    files.pack(archive, "d")
    with tarfile.open(fileobj=io.BytesIO(archive.getvalue())) as tar:
        assert any(name.endswith("e/up") for name in tar.getnames())
    files.unpack(archive.getvalue(), "copy")
    assert files.exists("copy/e/up") or files.exists("copy/d/e/up")
    files.remove("copy", recursive=True)
    assert not files.exists("copy")
    with pytest.raises(LimitReached, match="disk limit"), carrel.create(disk="1M") as small:
        small.files.write("large", bytes(20_000_000))
    with pytest.raises(NotFound) as missing:
        files.read("copy")
    assert missing.value.status == 404 and missing.value.request_id


# ---- states ----

def test_states(carrel: Carrel) -> None:
    with carrel.create() as ws:
        ws.files.write("a", "1")
        first = ws.snapshot("first", note="the first")
        ws.files.write("a", "2")
        ws.files.write("b", "new")
        assert [(change.change, change.path) for change in ws.diff()] == [("M", "a"), ("A", "b")]
        assert "+2" in ws.patch("a") and b"".join(ws.changes("b"))
        with ws.fork(snapshot="first") as fork:
            assert fork.files.read("a") == b"1"
            assert [change.result for change in ws.apply(fork, dry_run=True).changes] == ["pending"] * 2
            assert ws.apply(fork).applied == 2 and fork.files.read("a") == b"2"
            fork.files.write("a", "3")
            ws.files.write("a", "4")
            with pytest.raises(Conflict) as conflict:
                ws.apply(fork, "a")
            assert [change.path for change in conflict.value.changes] == ["a"]
        forks = ws.forks(2, "twin")
        assert [fork.name for fork in forks] == ["twin-1", "twin-2"]
        for fork in forks:
            fork.remove()
        ws.rollback("first")
        assert ws.files.read("a") == b"1" and not ws.files.exists("b")
        assert carrel.snapshots.get(first.id).note == "the first" and carrel.snapshots.verify(first.id).ok
        assert first.id in [one.id for one in ws.snapshots()] and first.id in [one.id for one in carrel.snapshots.list()]
        pushed = ws.push("first")
        assert pushed.snapshot == first.id
        pulled = carrel.snapshots.pull(ws.name, "first")
        with carrel.create(from_=pulled.id) as copy:
            assert copy.files.read("a") == b"1"
    archived = carrel.create("gone").archive()
    assert archived.name in [one.name for one in carrel.archives.list()]
    with carrel.archives.restore(archived.name, "back") as back:
        assert back.name == "back"
    carrel.archives.remove(archived.name)
    with pytest.raises(Invalid):
        carrel.archives.upload("bad", b"not an archive", sha256="0" * 64)


def test_life(carrel: Carrel) -> None:
    with carrel.create(labels={"a": "b"}, env={"X": "1"}, memory="64M", limits={"pids": 50}, ttl="1d", idle_timeout=3600) as ws:
        assert (ws.info.limits.memory_bytes, ws.info.limits.pids, ws.info.idle_timeout_ms) == (64 << 20, 50, 3600_000)
        assert ws.info.expires_at is not None and ws.info.created_at is not None
        assert ws.update(labels={"a": None, "c": "d"}, env={"X": "2"}, unset=["idle_timeout"]).labels == {"c": "d"}
        assert ws.info.idle_timeout_ms is None and ws.run("echo $X").stdout == "2\n"
        assert ws.suspend().state == "suspended" and ws.resume().state == "ready" and ws.refresh(measure=True).state == "ready"
        assert ws.health().healthy and ws.repair().health.healthy and ws.verify().ok and ws.metrics().execs == 0
        assert [one.id for one in carrel.metrics(label="c=d")] == [ws.id] and ws.packages() == []
        assert [one.name for one in carrel.list(label=["c=d"], limit=1)] == [ws.name] and carrel.get(ws.name).id == ws.id
        with pytest.raises(Conflict, match=ws.name):
            carrel.create(ws.name)
        with pytest.raises(Invalid) as invalid:
            ws.install("this is no requirement")
        assert invalid.value.hint or invalid.value.detail
    with pytest.raises(NotFound):
        ws.refresh()


def test_events(carrel: Carrel) -> None:
    with carrel.create() as ws:
        marker = next(event for event in carrel.events(workspace=ws.id, after=0) if event.type == "workspace.ready")
        ws.start("true").wait(60)
    types = [event.type for event in _until_deleted(carrel, ws.id, marker.id)]
    assert types[-1] == "workspace.deleted" and "exec.ended" in types and "workspace.ready" not in types
    lines = list(carrel.audit(workspace=ws.id, type="exec"))
    assert lines and lines[0].type.startswith("exec")


def _until_deleted(carrel: Carrel, workspace: str, after: int):  # type: ignore[no-untyped-def]
    for event in carrel.events(after=after):
        if getattr(event, "workspace", None) == workspace:
            yield event
            if event.type == "workspace.deleted":
                return


# ---- ports ----

def test_ports(ws: Workspace) -> None:
    ws.files.write("web/page", "content")
    server = ws.start(["python3", "-m", "http.server", "8000", "--directory", "web"])
    for _ in range(6000):
        if 8000 in [port.port for port in ws.ports()]:
            break
        threading.Event().wait(0.01)
    assert ws.request(8000, "/page").text == "content" and ws.request(8000, "/nothing").status_code == 404
    with pytest.raises(NotFound):
        Workspace(ws._http, ws.info.__class__(**{**vars(ws.info), "id": "missing"})).request(8000)
    with ws.forward(8000) as local:
        done = subprocess.run(["curl", "-sS", f"http://127.0.0.1:{local.port}/page"], capture_output=True, text=True, timeout=60)
        assert done.stdout == "content", done.stderr
    server.kill()
    server.wait(60)


# ---- eval cases ----

CASE = "id: sdk\nharness: echo 42 > answer\ngraders:\n- {type: command, run: grep -q 42 answer given}\n"


def test_a_case_runs_in_cells(carrel: Carrel) -> None:
    assert carrel.cases.create(CASE, check=True).workspace is None
    case = carrel.cases.create(CASE, file="sdk.yaml")
    assert case.workspace
    carrel.get(case.workspace).files.write("given", "42\n")
    started = carrel.cases.start(case.id, repeat=2)
    next(event for event in carrel.events(after=0) if isinstance(event, types.CellEvent) and event.cell == started.id and event.type == "cell.passed")
    cell = carrel.cases.cell(started.id)
    assert (cell.state, cell.repeat, len(cell.steps)) == ("passed", 2, 2) and "+42" in (cell.diff or "")
    assert [one.id for one in carrel.cases.cells(case.id)] == [cell.id]
    assert case.id in [one.id for one in carrel.cases.list()] and carrel.cases.get(case.id).state == "ready"
    carrel.cases.remove(case.id)
    assert case.id not in [one.id for one in carrel.cases.list()]


# ---- who may do what ----

SETTINGS = {"permissions": {"allow": ["shell(echo:*)"], "deny": ["shell(curl:*)"]}}


def test_rules_and_approvals(carrel: Carrel) -> None:
    with carrel.create(settings=SETTINGS) as ws:
        token = carrel.tokens.create("user", workspace=ws.id, name="agent")
        assert token.text and "text" not in repr(token) and token.id in [one.id for one in carrel.tokens.list()]
        with Carrel(token=token.text) as agent:
            mine = agent.get(ws.id)
            with pytest.raises(Denied) as denied:
                mine.run(["curl", "https://example.com"])
            assert denied.value.trail[0].rule == "shell(curl:*)" and denied.value.exit_code == 126
            with pytest.raises(ApprovalRequired) as waits:
                mine.run(["factor", "2026"], approval="return")
            approval = waits.value.approval
            with pytest.raises(Denied):
                agent.approvals.approve(approval.id)
            assert carrel.approvals.get(approval.id).state == "pending"
            assert [one.id for one in carrel.approvals.list(state="pending", workspace=ws.id)] == [approval.id]
            assert carrel.approvals.approve(approval.id, always=True).rules == ["shell(factor:*)"]
            job = agent.execs.get(waits.value.exec_id)
            assert job.wait(60).exit_code == 0 and job.output() == b"2026: 2 1013\n"
            asked = []

            def deny(approval_id: str) -> None:
                asked.append(approval_id)
                carrel.approvals.deny(approval_id, note="no")

            result = mine.run(["seq", "3"], on_waiting=deny)
            assert result.reason == "denied" and len(asked) == 1
        carrel.tokens.remove(token.id)
        with Carrel(token=token.text) as agent, pytest.raises(Exception) as refused:
            agent.get(ws.id)
        assert refused.type.__name__ == "Unauthenticated"


# ---- other nouns ----

def test_templates_and_trees(carrel: Carrel, tmp_path: pathlib.Path) -> None:
    template = {"name": "mine", "env": {"A": "from a template"}}
    assert carrel.templates.add(template, check=True).name == "mine"  # type: ignore[arg-type]
    with pytest.raises(NotFound):
        carrel.templates.get("mine")
    carrel.templates.add("version: '1.0'\nname: mine\nenv: {A: from a template}\n")
    with carrel.create(template="mine") as ws:
        assert ws.run("echo $A").stdout == "from a template\n"
    assert carrel.templates.get("mine").origin == "user" and "minimal" in [one.name for one in carrel.templates.list()]
    carrel.templates.remove("mine")
    carrel.trees.create("common")
    with carrel.create(attach=["common:/common"]) as ws:
        ws.run("echo shared > /common/x", check=True)
        assert [one.workspaces for one in carrel.trees.list() if one.name == "common"] == [[ws.name]]
    carrel.trees.remove("common")
    assert all(one.name for one in carrel.environments.list())
    carrel.exports.upload("exported", b"bytes of an export")
    assert "exported" in [one.name for one in carrel.exports.list()]
    carrel.exports.download("exported", tmp_path / "exported")
    assert (tmp_path / "exported").read_bytes() == b"bytes of an export"
    carrel.exports.remove("exported")


def test_the_daemon(carrel: Carrel) -> None:
    assert carrel.health().status and carrel.ready().status and "carrel_" in carrel.prometheus()
    assert carrel.openapi()["info"]["title"] == "Carrel"


# ---- a daemon of this home ----

def test_a_daemon_is_started_when_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CARREL_HOST", raising=False)
    directory = tempfile.mkdtemp(prefix="carrel-sdk." + "long" * 25, dir="/var/tmp")
    monkeypatch.setenv("CARREL_HOME", directory + "/home")
    program = os.environ.get("CARREL_PROGRAM") or shutil.which("carrel")
    try:
        before = Carrel()  # of a home that doesn't exist
        # Several at once start one.
        made: List[Workspace] = []
        threads = [threading.Thread(target=lambda: made.append(Workspace.create())) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert len(made) == 3
        for ws in made:
            with ws:
                assert ws.run("echo started").stdout == "started\n"
        monkeypatch.setenv("CARREL_PROGRAM", "/nothing")
        with Carrel() as carrel, before:
            assert list(carrel.list()) == list(before.list()) == []
    finally:
        subprocess.run([str(program), "serve", "--stop", "--force"], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["rm", "-rf", directory], check=True)
    with Carrel() as carrel, pytest.raises(DaemonNotStarted, match="/nothing"):
        carrel.health()
    monkeypatch.delenv("CARREL_PROGRAM")
    monkeypatch.setenv("PATH", "/nothing")
    with Carrel() as carrel, pytest.raises(DaemonNotStarted, match="CARREL_HOST"):
        carrel.health()
