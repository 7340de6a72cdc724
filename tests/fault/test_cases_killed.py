"""kill -9 of core at each step of a case and its cells, of every role during a cell, and disks without room: the run goes on, or ends by name, and nothing is left."""
# security: services
import concurrent.futures
import contextlib
import json
import signal
import subprocess

import pytest
from daemons import make_furnished as make_daemon  # noqa: F401
from faults import inits, kill
from harness import descendants, eventually
from rest import Events, problem
from small_disks import MS_NODEV, MS_NOSUID, MS_REMOUNT, mount, on_small_disk, without_room
from test_deployments_killed import is_held, let_go

CASE = "id: {name}\nsetup: {{run: ['echo one > a']}}\nharness: {harness}\ngraders:\n- {{type: tests, files: {{b: two}}, run: cat a b}}\n"


def write(directory, name, harness="echo two >> a"):
    path = directory / f"{name}.yaml"
    path.write_text(CASE.format(name=name, harness=harness))
    return path


def workspaces(daemon):
    return {one["name"] for one in daemon.get("/v1/workspaces?label=carrel.service=cases").json()["items"]}


def results(out):
    return [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]


@pytest.mark.needs_faults
@pytest.mark.parametrize("point", ["case_created", "cell_created", "case_prepared", "cell_forked", "cell_ended"])
def test_a_run_goes_on_after_a_crash_of_core(make_daemon, tmp_path, point):
    daemon = make_daemon(env={"CARREL_FAULT": f"{point}:1"})
    run = daemon("case", "run", write(tmp_path, "a"), write(tmp_path, "b"), "-j", "2", "--out", tmp_path / "out")
    assert run.returncode == 0 and "2 cells, 2 passed" in run.stdout, run
    assert "core has ended" in daemon.log()
    assert sorted(one["case"] for one in results(tmp_path / "out")) == ["a", "b"]
    # Nor is a case left whose client was not told of it: it asked again, with the same key.
    assert eventually(lambda: workspaces(daemon) == set()) and daemon.get("/v1/cases").json()["items"] == []


def pid_of(daemon, name):
    return next((pid for pid, (_, found) in descendants(daemon.process.pid).items() if found == name), None)


def go(daemon, cell):
    done = daemon.request("PUT", f"/v1/workspaces/{cell['workspace']}/files/go", b"", {"Content-Type": "application/octet-stream"})
    assert done.status == 201, done


def kill_role(daemon, role):
    """Afterwards the daemon serves again."""
    if role == "launcher":
        daemon.process.kill()
        daemon.process.wait()
        daemon.start_serving(wait=False)
    elif role == "init":
        for pid in inits(daemon):
            kill(pid)
    else:
        victim = pid_of(daemon, role)
        kill(victim)
        assert eventually(lambda: pid_of(daemon, role) not in (victim, None))
    assert eventually(daemon.is_ready)


@pytest.mark.once
@pytest.mark.parametrize("role", ["launcher", "carreld", "carrel-writer", "carrel-audit", "init"])
def test_any_role_is_killed_during_a_cell_and_a_resume_continues(make_daemon, tmp_path, role):
    """The client is killed first: nothing but what is on disk says how far it came."""
    daemon, out = make_daemon(), tmp_path / "out"
    cases = write(tmp_path, "quick"), write(tmp_path, "waits", "touch begun; while ! test -e go; do sleep 0.02; done")
    words = ["case", "run", *cases, "--out", out]
    events = Events(daemon, "/v1/events")
    with daemon.start(*words) as run:
        events.until("cell.passed")
        cell = events.until("cell.harness")[-1]["data"]
        assert eventually(lambda: (out / "results.jsonl").read_text().count("\n") == 1)
        assert eventually(lambda: daemon.get(f"/v1/workspaces/{cell['workspace']}/files/begun").status == 200)
        run.kill()
        run.wait()
    events.close()
    kill_role(daemon, role)
    if role in ("carrel-writer", "carrel-audit"):       # the cell runs on
        go(daemon, cell)
    ends = {"launcher": "canceled", "carreld": "canceled", "init": "failed"}
    assert eventually(lambda: daemon.get(f"/v1/cells/{cell['cell']}").json()["state"] == ends.get(role, "passed")), daemon.get(f"/v1/cells/{cell['cell']}")
    first, = results(out)
    events = Events(daemon, "/v1/events")
    with daemon.start(*words, "--resume") as run:
        again = events.until("cell.harness")[-1]["data"]
        go(daemon, again)
        assert again["name"] == "waits" and run.wait(60) == 0
    events.close()
    assert results(out)[0] == first and [one["case"] for one in results(out)] == ["quick", "waits"] and (out / "report.html").exists()
    for one in daemon.get("/v1/cases").json()["items"]:      # of the client that was killed
        assert daemon("case", "rm", one["id"]).returncode == 0
    assert eventually(lambda: workspaces(daemon) == set()), workspaces(daemon)


@pytest.mark.needs_root
def test_results_without_room_end_the_run_and_a_resume_continues(make_daemon, tmp_path):
    daemon, out = make_daemon(), tmp_path / "out"
    out.mkdir()
    with contextlib.ExitStack() as stack:
        mount(out, "size=96k")
        stack.callback(subprocess.run, ["umount", "-l", out], check=True)
        words = ["case", "run", write(tmp_path, "small"), write(tmp_path, "talks", "seq 20000"), "--out", out]
        run = daemon(*words)
        assert run.returncode == 125 and "No space left on device" in run.stderr and str(out) in run.stderr, run
        assert workspaces(daemon) == set() and daemon.get("/v1/cases").json()["items"] == []
        mount(out, "size=4m", MS_NOSUID | MS_NODEV | MS_REMOUNT)
        run = daemon(*words, "--resume")
        assert run.returncode == 0 and "2 cells, 2 passed" in run.stdout, run
        assert sorted(one["case"] for one in results(out)) == ["small", "talks"] and (out / "report.html").exists()


@pytest.mark.needs_root
def test_a_full_disk_fails_cells_by_name(tmp_path):
    with on_small_disk("size=24m") as daemon:
        case, greedy = write(tmp_path, "small"), write(tmp_path, "greedy", "dd if=/dev/zero of=much bs=1M count=100")
        with without_room(daemon):
            problem(daemon.post("/v1/cases", {"yaml": case.read_text()}), 507, "disk_full")
            run = daemon("case", "run", case, "--out", tmp_path / "full")
            assert run.returncode in (1, 125) and "No space left on device" in run.stderr, run
        assert eventually(daemon.is_ready)
        run = daemon("case", "run", greedy, case, "--out", tmp_path / "out")
        assert run.returncode == 1 and "1 passed" in run.stdout, run
        failed, = (one for one in results(tmp_path / "out") if one["state"] == "failed")
        assert failed["case"] == "greedy" and failed["reason"] == "harness" and "No space left" in failed["steps"][0]["output"]
        assert eventually(lambda: workspaces(daemon) == set()) and daemon.get("/v1/cases").json()["items"] == []


@pytest.mark.needs_faults
def test_a_cell_that_is_stored_when_its_case_becomes_ready_runs_once(make_daemon):
    """Its row is written behind that of the snapshot, which ends the preparation."""
    daemon = make_daemon(env={"CARREL_FAULT": "core_snapshot_row:1:WAIT"})
    core = daemon.core_pid()
    writer = next(pid for pid, (_, name) in descendants(daemon.process.pid).items() if name == "carrel-writer")
    made = daemon.post("/v1/cases", {"yaml": CASE.format(name="late", harness="echo two")}).json()
    cells = f"/v1/cases/{made['id']}/cells"
    ids = [daemon.post(cells, {}).json()["id"]]
    assert eventually(lambda: is_held(core))
    kill(writer, signal.SIGSTOP)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        late = pool.submit(daemon.post, cells, {})
        try:
            let_go(core)
            assert eventually(lambda: len(daemon.get(cells).json()["items"]) == 2)
        finally:
            kill(writer, signal.SIGCONT)
        ids.append(late.result().json()["id"])
    cell = lambda one: daemon.get(f"/v1/cells/{one}").json()
    assert eventually(lambda: all(cell(one)["ended_at"] for one in ids))
    assert [cell(one)["state"] for one in ids] == ["passed"] * 2, [cell(one) for one in ids]
    assert daemon.delete(f"/v1/cases/{made['id']}").status == 204
    assert workspaces(daemon) == set() and daemon.core_pid() == core
