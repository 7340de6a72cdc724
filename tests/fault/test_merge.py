"""Daemons that are killed while they merge the layers of a workspace."""
import pathlib

import pytest
from harness import eventually
from rest import created, output_of

MANY = 8


def layers_of(daemon):
    return [path.name for path in pathlib.Path(daemon.env["CARREL_HOME"], "layers").glob("*") if "snap-" in path.name]


@pytest.mark.needs_faults
@pytest.mark.parametrize("point", ["tree_merged", "tree_after_rename", "core_merged", "core_merge_row", "core_merge_saved"])
def test_a_merge_that_is_cut_off_loses_no_file_and_leaves_no_layer(make_daemon, point):
    daemon = make_daemon(env={"CARREL_FAULT": f"{point}:1"})
    with created(daemon) as workspace:
        url = f"/v1/workspaces/{workspace['name']}"
        for i in range(MANY):
            output_of(daemon, workspace["name"], f"rm -f f{i - 2}; echo {i} >f{i}")
            assert daemon.post(url + "/snapshots").status == 201
        output_of(daemon, workspace["name"], "echo last >last")

        def newest():
            return daemon.get(url + "/snapshots").json()["items"][0]

        if point.startswith("core_"):
            with daemon.new_core():
                daemon("snapshot", "create", workspace["name"])  # may be cut off
            assert eventually(lambda: len(newest()["layers"]) <= MANY)
        else:  # passed by the job, which is tried again when there are more layers
            assert daemon.post(url + "/snapshots").status == 201
            assert eventually(lambda: "layers can't be merged" in daemon.log())
            assert len(newest()["layers"]) == MANY + 1
        assert output_of(daemon, workspace["name"], "cat *") == "6\n7\nlast\n"
        assert daemon.post(url + "/snapshots").status == 201
        named = {name for s in daemon.get(url + "/snapshots").json()["items"] for name in s["layers"]}
        assert eventually(lambda: len(layers_of(daemon)) <= len(named) + 1)
        assert daemon.post(url + "/rollback", {"snapshot": "2"}).status == 200
        assert output_of(daemon, workspace["name"], "cat *") == "0\n1\n"
    assert eventually(lambda: not layers_of(daemon))
