"""Cores that are killed while they build a template."""
import pathlib

import pytest
from rest import created
from workspaces import sh


def layers_of(daemon):
    return sorted(path.name for path in pathlib.Path(daemon.env["CARREL_HOME"], "layers").glob("*") if "snap-" in path.name)


@pytest.mark.needs_faults
@pytest.mark.parametrize("point", ["core_template_layer", "core_template_record"])
def test_a_core_that_is_killed_while_it_builds_a_template_leaves_no_workspace_and_no_layer(make_daemon, point):
    daemon = make_daemon(env={"CARREL_FAULT": f"{point}:1"})
    assert daemon.post("/v1/templates", {"yaml": "name: cut\nfiles: {a: one}\n"}).status == 201
    with daemon.new_core():
        done = daemon("create", "of-cut", "--template", "cut")
    assert done.returncode in (0, 125)
    names = [w["name"] for w in daemon.get("/v1/workspaces").json()["items"]]
    assert names == (["of-cut"] if done.returncode == 0 else [])
    with created(daemon, name="again", template="cut"):
        assert sh(daemon, "again", "cat a").stdout == "one"
        assert len(layers_of(daemon)) == 1
