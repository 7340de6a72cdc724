"""Templates lie in the blob store that is configured: homes that share a bucket or a directory share them."""
import os
import pathlib

import pytest

from daemons import configure, new_directory, remove, serving_anew
from rest import created, output_of, problem
from workspaces import json_of


def add(daemon, text, status=201):
    answer = daemon.post("/v1/templates", {"yaml": text})
    assert answer.status == status, answer
    return answer.json()


def names(daemon):
    return [item["name"] for item in daemon.get("/v1/templates").json()["items"] if item["origin"] == "user"]


def key(name):
    return f"shared/workspace-templates/{name}.yaml"


def test_a_template_that_one_home_adds_is_the_other_s_too(near, far, bucket, tmp_path):
    server, _ = bucket
    file = tmp_path / "t.yaml"
    file.write_text("name: common\nfiles: {a: one}\n# as it is\n")
    assert near("template", "add", file).stdout == "common\n"
    assert server.files()[key("common")] == file.read_bytes()
    assert "common        user" in far("template", "ls").stdout
    assert far("template", "show", "common").stdout == file.read_text()
    assert far("create", "of-common", "--template", "common").stdout == "of-common\n"
    assert output_of(far, "of-common", "cat a") == "one"
    assert far("run", "--template", "common", "--", "true").returncode == 0
    # As long as before, within the same second.
    add(near, file.read_text().replace("one", "two"), status=200)
    with created(far, template="common") as w:
        assert output_of(far, w["name"], "cat a") == "two"
    assert add(far, "name: more\nextends: common\n")["extends"] == "common"
    assert names(near) == names(far) == ["common", "more"]
    assert far("template", "rm", "common").stdout == "removed common\n"
    assert key("common") not in server.files() and names(near) == ["more"]
    problem(near.get("/v1/templates/common"), 404, "not_found", "common")
    problem(near.post("/v1/workspaces", {"template": "common"}), 404, "not_found", "common")
    problem(near.get("/v1/templates/more"), 400, "invalid", "extends", "common")
    problem(near.delete("/v1/templates/common"), 404, "not_found", "common")
    assert near.delete("/v1/templates/more").status == 204
    assert output_of(far, "of-common", "cat a") == "one"
    far("rm", "of-common")


def test_a_template_that_was_put_into_the_bucket_is_fetched_once(near, bucket):
    server, proxy = bucket
    path = server.objects / key("by-hand")
    path.parent.mkdir(parents=True, exist_ok=True)
    for name in ("by-hand", "Not A Name"):
        path.with_name(f"{name}.yaml").write_text("name: by-hand\nenv: {A: one}\n")
        os.utime(path.with_name(f"{name}.yaml"), (1e9, 1e9))
    path.with_name("notes.txt").write_text("x")
    with created(near, template="by-hand") as w:
        assert w["env"] == {"A": "one"}
    with proxy.misbehaving(lambda *args: None):
        assert names(near) == ["by-hand"] and near.get("/v1/templates/by-hand").json()["env"] == {"A": "one"}
        assert not [path for _, path in proxy.seen if path.endswith(".yaml")]
    near.restart()
    with proxy.misbehaving(lambda *args: None):
        assert names(near) == ["by-hand"] and not [path for _, path in proxy.seen if path.endswith(".yaml")]
    path.write_text("name: by-hand\nenv: {A: three}\n")
    assert near.get("/v1/templates/by-hand").json()["env"] == {"A": "three"}
    path.write_text("#" * (300 << 10))
    problem(near.get("/v1/templates/by-hand"), 400, "invalid", "by-hand", "bytes")
    path.write_text("name: [\n")
    [row] = [item for item in near.get("/v1/templates").json()["items"] if item["name"] == "by-hand"]
    assert "by-hand" in row["warnings"][0]
    assert near.delete("/v1/templates/by-hand").status == 204 and not path.exists()
    for name in ("Not A Name.yaml", "notes.txt"):
        path.with_name(name).unlink()


@pytest.fixture(scope="module")
def kept(near, far):
    add(near, "name: kept\nenv: {A: one}\n")
    assert names(far) == ["kept"]
    yield
    near.delete("/v1/templates/kept")


@pytest.mark.parametrize("fault, status, code", [(403, 403, "denied"), (404, 404, "not_found"), (400, 500, "failed")])
def test_a_store_that_refuses_is_told_and_changes_nothing(near, far, bucket, kept, fault, status, code):
    server, proxy = bucket
    before = server.files()
    words = ["read the templates of the blob store", str(fault)]
    with proxy.misbehaving(lambda *args: fault):
        problem(far.get("/v1/templates"), status, code, *words)
        problem(far.get("/v1/templates/kept"), status, code, *words)
        problem(far.post("/v1/workspaces", {"template": "kept", "name": "none"}), status, code, *words)
        assert far("template", "ls").returncode == 125
        # What needs no template needs no store.
        with created(far):
            pass
    with proxy.misbehaving(lambda method, path, count: fault if method in ("PUT", "DELETE") else None):
        problem(far.post("/v1/templates", {"yaml": "name: kept\nenv: {A: two}\n"}), status, code, "keep template 'kept'", str(fault))
        if fault != 404:        # of a deletion it is success
            problem(far.delete("/v1/templates/kept"), status, code, "remove template 'kept'", str(fault))
    assert server.files() == before and names(near) == names(far) == ["kept"]
    assert far.get("/v1/templates/kept").json()["env"] == {"A": "one"}
    assert far.get("/v1/workspaces").json()["items"] == []


@pytest.mark.once
@pytest.mark.shipped
@pytest.mark.parametrize("fault, where", [(500, "list-type"), ("half", "kept.yaml")])
def test_a_fault_that_stays_is_told_and_one_that_passes_is_overcome(far, bucket, kept, fault, where):
    _, proxy = bucket
    with proxy.misbehaving(lambda method, path, count: fault if where in path else None):
        answer = far.get("/v1/templates/kept")
        assert answer.status >= 500 and "read the templates of the blob store" in answer.json()["detail"], answer
    with proxy.misbehaving(lambda method, path, count: fault if count == 1 else None):
        assert far.get("/v1/templates/kept").json()["env"] == {"A": "one"}


def test_homes_that_share_a_directory_and_what_the_home_itself_has():
    directory = new_directory()
    try:
        with serving_anew() as daemon:
            inside = pathlib.Path(daemon.env["CARREL_HOME"])
            owner = (inside / "blobs").stat()
            os.chown(directory, owner.st_uid, owner.st_gid)
            add(daemon, "name: own\n")
            configure(daemon, f"blob:\n  url: dir:{directory}\n")
            assert names(daemon) == []
            add(daemon, "name: shared\n")
            file = directory / "workspace-templates/shared.yaml"
            assert file.read_text() == "name: shared\n" and names(daemon) == ["shared"]
            file.rename(file.with_name("other.yaml"))
            assert [item["name"] for item in json_of(daemon("template", "ls", "-o", "json")) if item["origin"] == "user"] == ["other"]
            configure(daemon, "")
            assert names(daemon) == ["own"] and not (inside / "templates/blobs").exists()
    finally:
        remove(directory)
