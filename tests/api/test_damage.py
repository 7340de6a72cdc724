"""Layers of snapshots and templates that are missing or damaged: named, made again where that can be, and never run."""
# security: packages
import os
import pathlib
import shutil

import pytest

from daemons import new_directory, remove, serving
from harness import eventually
from rest import Events, created, output_of, problem

FILES = "name: built\nfiles: {a/b: one, .gitignore: x}\n"


@pytest.fixture(scope="module")
def damaged():
    """One that repairs nothing by itself, unless it is told to."""
    directory = new_directory()
    with serving(directory) as daemon:
        repairs(daemon, False)
        yield daemon
    remove(directory)


def repairs(daemon, is_automatic):
    pathlib.Path(daemon.env["CARREL_HOME"], "config.yaml").write_text(f"workspaces:\n  auto_repair: {str(is_automatic).lower()}\n")
    daemon.restart()


def layers(daemon):
    return pathlib.Path(daemon.env["CARREL_HOME"], "layers")


def snapshot(daemon, name):
    answer = daemon.post(f"/v1/workspaces/{name}/snapshots", {})
    assert answer.status == 201, answer
    return answer.json()


def suspend(daemon, name):
    assert daemon.post(f"/v1/workspaces/{name}/suspend").status == 200


def health(daemon, name, query=""):
    answer = daemon.get(f"/v1/workspaces/{name}/health{query}")
    assert answer.status == 200, answer
    return answer.json()


def repair(daemon, name):
    answer = daemon.post(f"/v1/workspaces/{name}/repair")
    assert answer.status == 200, answer
    return answer.json()


def is_refused(daemon, name, layer, how):
    """By every door that would start a sandbox on it, with the command that repairs it."""
    for answer in (daemon.post(f"/v1/workspaces/{name}/exec", {"argv": ["true"]}), daemon.post(f"/v1/workspaces/{name}/resume"),
                   daemon.get(f"/v1/workspaces/{name}/files/f")):
        said = problem(answer, answer.status, answer.json()["code"], f"layer '{layer}' of workspace '{name}' is {how}", f"POST /v1/workspaces/{name}/repair")
        assert said["status"] >= 500, said
    done = daemon("exec", name, "--", "true")
    assert done.returncode == 125 and layer in done.stderr and f"carrel repair {name}" in done.stderr, done


def test_a_snapshot_layer_that_is_missing_or_damaged_is_named_and_never_run(damaged):
    daemon = damaged
    with created(daemon) as w:
        name = w["name"]
        output_of(daemon, name, "echo one >f; mkdir d; echo two >d/g")
        first = snapshot(daemon, name)
        output_of(daemon, name, "echo three >f")
        second = snapshot(daemon, name)
        output_of(daemon, name, "echo kept >new")
        suspend(daemon, name)
        [layer] = set(second["layers"]) - set(first["layers"])
        path = layers(daemon) / layer
        assert health(daemon, name, "?deep")["healthy"]      # and its content id is known by now
        # Damaged: found by a deep check, and from then on by every start.
        file = path / "workspace" / "f"
        file.write_text("THREE\n")
        found = health(daemon, name, "?deep")
        assert found["issues"] == [f"layer '{layer}' is damaged: changed"] and found["snapshot_layers"] == 2, found
        is_refused(daemon, name, layer, "damaged")
        assert health(daemon, name)["issues"] == [f"layer '{layer}' is damaged"]
        done = repair(daemon, name)
        assert done["done"] == [] and not done["health"]["healthy"], done
        assert f"`carrel snapshot rollback {name} 1`" in done["failed"][0] and layer in done["failed"][0], done
        assert daemon("repair", name).returncode == 1
        # A copy that was put back is found to be whole.
        file.write_text("three\n")
        assert health(daemon, name, "?deep")["healthy"]
        assert output_of(daemon, name, "cat f new") == "three\nkept\n"
        suspend(daemon, name)
        # Missing: found by a look. What was there before can be gone back to, and nothing on top is lost.
        path.rename(path.with_suffix(".away"))
        assert health(daemon, name)["issues"] == [f"layer '{layer}' is missing"]
        is_refused(daemon, name, layer, "missing")
        assert daemon.post(f"/v1/workspaces/{name}/rollback", {"snapshot": "1"}).status == 200
        assert output_of(daemon, name, "cat f d/g") == "one\ntwo\n"
        path.with_suffix(".away").rename(path)
        newest = daemon.get(f"/v1/workspaces/{name}/snapshots").json()["items"][0]
        assert daemon.post(f"/v1/workspaces/{name}/rollback", {"snapshot": newest["id"]}).status == 200
        assert output_of(daemon, name, "cat f new") == "three\nkept\n"
    assert not (layers(daemon) / ".damaged").exists()


def test_a_layer_that_was_pushed_is_fetched(damaged):
    daemon = damaged
    with created(daemon, name="sent") as w:
        output_of(daemon, "sent", "echo one >f; mkfifo p")
        first = snapshot(daemon, "sent")
        output_of(daemon, "sent", "echo kept >new")
        second = snapshot(daemon, "sent")
        answer = daemon.post("/v1/workspaces/sent/push", {"snapshot": second["id"]})
        assert answer.status in (200, 201), answer
        output_of(daemon, "sent", "echo top >t")
        assert eventually(lambda: all(daemon.get(f"/v1/snapshots/{one['id']}").json()["content_id"] for one in (first, second)), 60)
        suspend(daemon, "sent")
        bottom, top = (layers(daemon) / one["layers"][0] for one in (first, second))
        shutil.rmtree(bottom)
        (top / "workspace/new").write_text("lost\n")
        assert len(health(daemon, "sent", "?deep")["issues"]) == 2
        is_refused(daemon, "sent", top.name, "damaged")
        done = repair(daemon, "sent")
        assert sorted(done["done"]) == sorted(f"fetched layer '{one.name}' from the blob store" for one in (bottom, top)), done
        assert done["failed"] == [] and done["health"]["healthy"], done
        assert output_of(daemon, w["id"], "cat f new t; test -p p") == "one\nkept\ntop\n"
        assert health(daemon, "sent", "?deep")["healthy"]
        # A store that lacks it, and one whose copy is another one.
        suspend(daemon, "sent")
        shutil.rmtree(bottom)
        blobs = list(pathlib.Path(daemon.env["CARREL_HOME"], "blobs").glob("**/workspace-layers/*"))
        for blob in blobs:
            blob.write_bytes(blob.read_bytes()[:-9])
        assert repair(daemon, "sent")["failed"][0].startswith(f"layer '{bottom.name}' can't be made again: ")
        is_refused(daemon, "sent", bottom.name, "missing")
        assert not [name for name in os.listdir(layers(daemon)) if name.startswith(".tree-")]


def test_a_template_layer_is_made_again(damaged):
    daemon = damaged
    assert daemon.post("/v1/templates", {"yaml": FILES}).status == 201
    with created(daemon, name="first", template="built") as w, created(daemon, name="second", template="built"):
        [layer] = [path.name for path in layers(daemon).glob("snap-*")]
        output_of(daemon, "first", "cat a/b; echo mine >m")
        for name in ("first", "second"):
            suspend(daemon, name)
        shutil.rmtree(layers(daemon) / layer)
        is_refused(daemon, "first", layer, "missing")
        daemon.restart()        # the record of the build outlives its layer
        done = repair(daemon, "first")
        assert done["done"] == [f"made layer '{layer}' of its template again"] and done["failed"] == [] and done["health"]["healthy"], done
        assert output_of(daemon, "first", "cat a/b m") == "onemine\n" and output_of(daemon, "second", "cat a/b") == "one"
        # What another sandbox runs on is not replaced below it; a new workspace gets a layer of its own.
        suspend(daemon, "first")
        assert health(daemon, "first", "?deep")["healthy"]
        suspend(daemon, "first")
        (layers(daemon) / layer / "workspace/a/b").write_text("bad")
        assert health(daemon, "first", "?deep")["issues"] == [f"layer '{layer}' is damaged: changed"]
        assert "workspace 'second' runs on it" in repair(daemon, "first")["failed"][0]
        with created(daemon, name="third", template="built"):
            assert output_of(daemon, "third", "cat a/b") == "one"
            assert layer not in daemon.get("/v1/workspaces/third").body.decode()
        suspend(daemon, "second")
        assert daemon.get(f"/v1/workspaces/{w['id']}").json()["state"] == "suspended"


def test_by_default_a_start_repairs_what_it_needs(damaged):
    daemon = damaged
    repairs(daemon, True)
    try:
        assert daemon.post("/v1/templates", {"yaml": FILES.replace("built", "own")}).status == 201
        before = set(os.listdir(layers(daemon)))
        with created(daemon, name="auto", template="own"):
            [layer] = [one for one in set(os.listdir(layers(daemon))) - before if one.startswith("snap-")]
            events = Events(daemon, "/v1/workspaces/auto/events")
            output_of(daemon, "auto", "rm .workspace_configured; echo mine >m")
            suspend(daemon, "auto")
            shutil.rmtree(layers(daemon) / layer)
            assert output_of(daemon, "auto", "cat a/b m; ls .workspace_configured") == "onemine\n.workspace_configured\n"
            suspend(daemon, "auto")
            told = [event["data"]["done"] for event in events.until("workspace.suspended") + events.until("workspace.suspended")
                    if event["event"] == "workspace.repaired"]
            assert told == [f"made layer '{layer}' of its template again", "made '.workspace_configured' again"], told
            ended = [" ".join(run["argv"]) for run in daemon.get("/v1/workspaces/auto/execs").json()["items"]]
            assert ended and not [text for text in ended if "[ -e .workspace_configured" in text], "carrel's own commands are not listed"
            # What can't be repaired is said so, and nothing runs.
            output_of(daemon, "auto", "echo more >n")
            frozen = snapshot(daemon, "auto")["layers"][0]
            suspend(daemon, "auto")
            (layers(daemon) / frozen).rename(layers(daemon) / "away")
            problem(daemon.post("/v1/workspaces/auto/exec", {"argv": ["true"]}), 500, "corrupt", frozen, "POST /v1/workspaces/auto/repair")
            (layers(daemon) / "away").rename(layers(daemon) / frozen)
            assert output_of(daemon, "auto", "cat n") == "more\n"
    finally:
        repairs(daemon, False)
