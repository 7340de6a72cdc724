"""Cores that are killed while they build a template, or make its layer again."""
import os
import pathlib
import shutil

import pytest
from daemons import configure, new_directory, remove
from faults import attempt, restarts
from rest import created, output_of
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


def lose(daemon):
    """A workspace whose template's layer is gone, and a daemon that isn't running."""
    assert daemon.post("/v1/templates", {"yaml": "name: cut\nfiles: {a: one, b/c: two}\n"}).status == 201
    assert daemon.post("/v1/workspaces", {"name": "kept", "template": "cut"}).status == 201
    output_of(daemon, "kept", "echo mine >m; rm a")
    [layer] = layers_of(daemon)
    daemon.stop_serving()
    shutil.rmtree(pathlib.Path(daemon.env["CARREL_HOME"], "layers", layer))
    return layer


def is_mended(daemon, layer):
    assert output_of(daemon, "kept", "cat b/c m; ls -A") == "twomine\n.gitignore\n.workspace_configured\nb\nm\n"
    assert layers_of(daemon) == [layer] and daemon.get("/v1/workspaces/kept/health").json()["healthy"]
    with created(daemon, name="other", template="cut"):
        assert output_of(daemon, "other", "cat a b/c") == "onetwo" and layers_of(daemon) == [layer]


@pytest.mark.needs_faults
@pytest.mark.once
@pytest.mark.parametrize("verb", ["repair", "resume"])
@pytest.mark.parametrize("point", ["core_repair_layer", "core_template_layer", "core_layer_replace"])
def test_a_core_that_is_killed_while_it_repairs_a_layer_loses_nothing(own_daemon, point, verb):
    daemon = own_daemon
    layer = lose(daemon)
    daemon.env["CARREL_FAULT"] = f"{point}:1"
    daemon.start_serving()
    with restarts(daemon):
        assert attempt(daemon, "POST", f"/v1/workspaces/kept/{verb}") is None
    is_mended(daemon, layer)


@pytest.mark.needs_faults
@pytest.mark.once
def test_a_repair_with_a_full_disk_is_said_and_succeeds_later(own_daemon):
    daemon = own_daemon
    layer = lose(daemon)
    daemon.env["CARREL_FAULT"] = "core.template_sync:1:ENOSPC"
    daemon.start_serving()
    done = daemon.post("/v1/workspaces/kept/repair").json()
    assert done["done"] == [] and "No space left on device" in done["failed"][0] and not done["health"]["healthy"], done
    is_mended(daemon, layer)


@pytest.mark.needs_faults
@pytest.mark.once
def test_a_core_that_is_killed_leaves_whole_templates_in_the_store_that_is_shared(own_daemon):
    daemon = own_daemon
    directory = new_directory()
    owner = pathlib.Path(daemon.env["CARREL_HOME"], "blobs").stat()
    os.chown(directory, owner.st_uid, owner.st_gid)
    kept = directory / "workspace-templates/cut.yaml"
    texts = ["name: cut\nenv: {A: one}\n", "name: cut\nenv: {A: other}\n"]

    def dies(point, method, path, body=None):
        daemon.env["CARREL_FAULT"] = f"{point}:1"
        configure(daemon, f"blob:\n  url: dir:{directory}\n")
        with restarts(daemon):
            assert attempt(daemon, method, path, body) is None

    try:
        dies("core_template_put", "POST", "/v1/templates", {"yaml": texts[0]})
        assert kept.read_text() == texts[0] and daemon.get("/v1/templates/cut").json()["yaml"] == texts[0]
        kept.write_text(texts[1])
        dies("core_template_copy", "GET", "/v1/templates/cut")
        assert daemon.get("/v1/templates/cut").json()["yaml"] == texts[1]
        dies("core_template_deleted", "DELETE", "/v1/templates/cut")
        assert not kept.exists() and daemon.get("/v1/templates/cut").status == 404
    finally:
        remove(directory)
