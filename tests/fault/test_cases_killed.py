"""kill -9 of core at each step of a case and its cells, and disks without room: the run goes on, or ends by name, and nothing is left."""
import json

import pytest
from harness import eventually
from rest import problem
from small_disks import on_small_disk, without_room

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
    # A case whose client was not told of it stays, until it is an hour old or removed.
    left = daemon.get("/v1/cases").json()["items"]
    assert len(left) <= (point == "case_created")
    assert eventually(lambda: workspaces(daemon) == {f"case-{one['id']}" for one in left}), workspaces(daemon)
    for one in left:
        assert daemon("case", "rm", one["id"]).returncode == 0
    assert eventually(lambda: workspaces(daemon) == set())


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
