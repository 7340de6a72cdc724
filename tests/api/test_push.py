"""Snapshots are pushed to a bucket and pulled by another home."""
# security: policy
import concurrent.futures
import json
import os
import pathlib
import shutil
import threading

import pytest

import s3
from daemons import configure
from harness import eventually
from rest import Events, created, output_of, problem
from workspaces import json_of


def snapshot(daemon, name, **body):
    answer = daemon.post(f"/v1/workspaces/{name}/snapshots", body)
    assert answer.status == 201, answer
    return answer.json()


def push(daemon, name, to, **body):
    answer = daemon.post(f"/v1/workspaces/{name}/push", {"snapshot": to, **body})
    assert answer.status == 200, answer
    return answer.json()


def pull(daemon, name, what):
    return daemon.post("/v1/snapshots", {"workspace": name, "snapshot": what})


def layers(daemon):
    """Frozen layers on disk, when the daemon has removed those that nothing names."""
    assert daemon.get("/v1/snapshots").status == 200
    return sorted(name for name in os.listdir(pathlib.Path(daemon.env["CARREL_HOME"], "layers")) if "snap-" in name)


def manifests(server):
    return sorted(key for key in server.files() if "/workspace-snapshots/" in key)


STATE = "find . -mindepth 1 -printf '%P %y %m %l %s\\n' | sort; cat d/a"


def test_a_snapshot_becomes_a_workspace_of_another_home(near, far, bucket):
    server, proxy = bucket
    with created(near, name="travels") as w:
        output_of(near, "travels", "mkdir -p d/shut old; echo hello >d/a; ln -s a d/l; mkfifo f; echo x >d/shut/x; chmod 0 d/shut; echo y >old/y; "
                  "truncate -s 5M sparse")
        first = snapshot(near, "travels", tag="first", note="a note")
        output_of(near, "travels", "rm -r old; mkdir old; echo more >>d/a")
        second = snapshot(near, "travels", tag="second")
        state = output_of(near, "travels", STATE)
        pushed = json_of(near("snapshot", "push", "travels", "second", "-o", "json"))
        assert pushed["layers"] == pushed["sent_layers"] == 2 and pushed["snapshot"] == second["id"]
        assert f"shared/{pushed['key']}" in manifests(server)
        assert pushed["key"].startswith("workspace-snapshots/travels/")
        again = push(near, "travels", "2")
        assert again["sent_layers"] == again["sent_bytes"] == 0
        assert "0 of 2 layers sent" in near("snapshot", "push", "travels", second["id"]).stdout

        events = Events(far, "/v1/events")
        done = far("snapshot", "pull", "travels", "second")
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == second["id"]
        assert events.until("snapshot.pulled")[-1]["data"]["snapshot"] == second["id"]
        events.close()
        pulled = far.get(f"/v1/snapshots/{second['id']}").json()
        assert (pulled["tag"], pulled["version"], pulled["workspace"], pulled["kept"]) == ("second", 2, w["id"], True)
        with proxy.misbehaving(lambda *args: None):
            assert pull(far, "travels", "second").json()["id"] == second["id"]
            assert not [path for method, path in proxy.seen if "layers" in path]
        assert far("snapshot", "verify", second["id"]).stdout == f"{second['id']} ok\n"
        with created(far, name="arrived", **{"from": second["id"]}):
            assert output_of(far, "arrived", STATE) == state
            assert output_of(far, "arrived", "cat d/a") == "hello\nmore\n"
        # The lower layer is here already.
        push(near, "travels", "first")
        with proxy.misbehaving(lambda *args: None):
            answer = pull(far, "travels", first["id"])
            assert answer.status == 201 and answer.json()["note"] == "a note"
            assert not [path for method, path in proxy.seen if "workspace-layers" in path]
        assert len(layers(far)) == 2
        for id in (first["id"], second["id"]):
            assert far.delete(f"/v1/snapshots/{id}").status == 204
        assert eventually(lambda: layers(far) == [])


def test_the_policy_of_its_workspace_goes_with_a_snapshot(near, far, bucket):
    policy = {"settings": {"permissions": {"allow": ["shell(true)"], "deny": ["shell(uname:*)"]}}, "sources": {"git": {"enabled": False}}}
    with created(near, name="judged", **policy):
        made = snapshot(near, "judged", tag="made")
        push(near, "judged", "made")
        # The policy of the workspace may have been tightened since.
        tighter = {"permissions": {"deny": ["shell(*)"]}}
        assert near.request("PATCH", "/v1/workspaces/judged", {"settings": tighter}).status == 200
        with created(near, name="again", **{"from": made["id"]}) as again:
            assert again["settings"] == tighter
    assert pull(far, "judged", "made").status == 201
    with created(far, name="arrived", **{"from": made["id"]}) as arrived:
        assert {key: arrived[key] for key in policy} == policy
        problem(far.post("/v1/workspaces/arrived/exec", {"argv": ["uname"]}), 403, "denied")
        # Lists don't grow with policies.
        listed = next(item for item in far.get("/v1/workspaces").json()["items"] if item["name"] == "arrived")
        assert not policy.keys() & listed.keys()
    assert far.delete(f"/v1/snapshots/{made['id']}").status == 204


def test_a_change_that_was_undone_and_done_again_can_be_pulled(near, far, bucket):
    """Two of its layers are the same: an overlay can't have one twice."""
    with created(near, name="undone"):
        for text in ("one", "two", "one", "two"):
            output_of(near, "undone", f"mkdir -p d; echo {text} >d/f; echo {text} >>log; rm -f log")
            made = snapshot(near, "undone")
        assert push(near, "undone", "4")["layers"] == 4
    assert pull(far, "undone", "4").status == 201
    with created(far, **{"from": made["id"]}) as w:
        assert output_of(far, w["name"], "cat d/f") == "two\n"


def test_a_push_sends_what_is_new(near, bucket):
    server, proxy = bucket
    with created(near, name="grows"):
        output_of(near, "grows", "for i in $(seq 100); do head -c 100000 /dev/urandom >file$i; done")
        snapshot(near, "grows")
        before = proxy.uploaded
        assert push(near, "grows", "1")["sent_layers"] == 1
        whole = proxy.uploaded - before
        output_of(near, "grows", "head -c 100000 /dev/urandom >file7")
        snapshot(near, "grows")
        before = proxy.uploaded
        result = push(near, "grows", "2")
        assert result["sent_layers"] == 1 and result["layers"] == 2
        assert (proxy.uploaded - before) / whole <= 0.02
        assert push(near, "grows", "2", force=True)["sent_layers"] == 2


@pytest.mark.parametrize("fault, status, code", [(403, 403, "denied"), (404, 404, "not_found"), (400, 500, "failed")])
def test_a_refused_push_leaves_no_manifest(near, bucket, fault, status, code):
    server, proxy = bucket
    with created(near, name=f"refused-{fault}") as w:
        output_of(near, w["name"], f"echo {fault} >a")
        snapshot(near, w["name"])
        with proxy.misbehaving(lambda method, path, count: fault if method == "PUT" else None):
            problem(near.post(f"/v1/workspaces/{w['name']}/push", {"snapshot": "1"}), status, code, "push snapshot")
        assert not [key for key in manifests(server) if w["name"] in key]


@pytest.fixture(scope="module")
def pushed(near, bucket):
    with created(near, name="pushed"):
        output_of(near, "pushed", "head -c 300000 /dev/urandom >big; echo hello >a")
        made = snapshot(near, "pushed", tag="good")
        push(near, "pushed", "good")
        output_of(near, "pushed", "echo other >b")
        snapshot(near, "pushed", tag="other")
        push(near, "pushed", "other")
        yield made


LAYER = "workspace-layers/"


def good_manifest(server):
    return next(key for key in manifests(server) if key.endswith(".good.json"))


@pytest.mark.parametrize("fault", [403, 404, "flip", "layer"])
def test_a_pull_that_fails_leaves_nothing(far, bucket, pushed, fault):
    server, proxy = bucket
    before = far.get("/v1/snapshots").json()["items"], layers(far)
    if fault == "layer":       # whole, and another one's
        directory = server.objects / "shared" / LAYER
        manifest = json.loads(server.files()[good_manifest(server)])
        path = directory / f"{manifest['layers'][0]['content_id']}.tar.zst"
        right = path.read_bytes()
        path.write_bytes(next(other.read_bytes() for other in directory.iterdir() if other != path))
        answer = pull(far, "pushed", "good")
        path.write_bytes(right)
    else:
        with proxy.misbehaving(lambda method, path, count: fault if method == "GET" and LAYER in path else None):
            answer = pull(far, "pushed", "good")
    assert answer.status >= 400 and answer.json()["code"] == ("denied" if fault == 403 else "corrupt"), answer
    assert "pull snapshot 'good' of 'pushed'" in answer.json()["detail"]
    assert (far.get("/v1/snapshots").json()["items"], layers(far)) == before


def test_a_fault_that_passes_is_overcome(far, bucket, pushed):
    server, proxy = bucket
    with proxy.misbehaving(lambda method, path, count: {1: 500, 3: "half", 5: "drop"}.get(count)):
        assert pull(far, "pushed", "good").status == 201
    assert far("snapshot", "verify", pushed["id"]).returncode == 0
    with created(far, **{"from": pushed["id"]}) as w:
        assert output_of(far, w["name"], "cat a; stat -c %s big") == "hello\n300000\n"
    far.delete(f"/v1/snapshots/{pushed['id']}")


def test_names_that_are_not_there_are_told(far, near, bucket, pushed):
    server, proxy = bucket
    problem(pull(far, "pushed", "nothing"), 404, "not_found", "nothing", "pushed")
    problem(pull(far, "unheard-of", "1"), 404, "not_found", "unheard-of")
    problem(pull(far, "../x", "1"), 400, "invalid")
    problem(near.post("/v1/workspaces/pushed/push", {"snapshot": "7"}), 404, "not_found", "7")
    assert far("snapshot", "pull", "pushed").returncode == 125
    assert far("snapshot", "pull", "pushed", "nothing").returncode == 125


@pytest.mark.once
@pytest.mark.parametrize("change, word", [
    (lambda m: m.update(version=2), "version 2"),
    (lambda m: m.pop("layers"), "layers"),
    (lambda m: m.update(id="../../x"), "id"),
    (lambda m: m["layers"][0].update(content_id="../../../etc/passwd"), "content id"),
    (lambda m: m["snapshot"].update(workspace_name="../x"), "name"),
    (lambda m: m["snapshot"].update(build_options=["--index-url=http://evil"]), "build_options"),
    (lambda m: m["snapshot"].update(tag="a/b"), "tag"),
    (lambda m: m.update(layers=[{"content_id": f"{i:064}", "size_bytes": 1} for i in range(501)]), "layers"),
    (lambda m: m.update(id="a" * 20), "is that of"),
    (lambda m: m["snapshot"].update(workspace_name="other"), "is that of"),
])
def test_a_forged_manifest_is_refused(far, bucket, pushed, change, word):
    server, proxy = bucket
    key = good_manifest(server)
    path = server.objects / key
    right = path.read_bytes()
    manifest = json.loads(right)
    change(manifest)
    path.write_text(json.dumps(manifest))
    try:
        answer = pull(far, "pushed", "good")
        assert 400 <= answer.status < 500 and word in answer.json()["detail"], answer
    finally:
        path.write_bytes(right)
    assert far.get(f"/v1/snapshots/{pushed['id']}").status == 404


@pytest.mark.once
def test_a_manifest_makes_no_snapshot_of_another_workspace(far, bucket, pushed):
    """Its files would be those that a rollback goes to, and its copies would have the variables of the other one."""
    server, proxy = bucket
    path = server.objects / good_manifest(server)
    right = path.read_bytes()
    with created(far, name="victim", env={"SECRET": "x"}) as w:
        path.write_text(json.dumps({**json.loads(right), "workspace": w["id"]}))
        answer = pull(far, "pushed", "good")
        path.write_bytes(right)
        problem(answer, 409, "conflict", "victim", "pushed")
        assert far.get(f"/v1/workspaces/{w['id']}/snapshots").json()["items"] == []


def test_half_a_manifest_is_refused(far, bucket, pushed):
    server, proxy = bucket
    path = server.objects / good_manifest(server)
    right = path.read_bytes()
    for text in (right[:len(right) // 2], b"", b"\xff\xfe"):
        path.write_bytes(text)
        assert pull(far, "pushed", "good").status >= 400
    path.write_bytes(right)


def test_a_damaged_layer_is_not_pushed(near, bucket):
    server, proxy = bucket
    with created(near, name="damaged") as w:
        output_of(near, "damaged", "echo hello >a")
        made = snapshot(near, "damaged")
        assert near("snapshot", "verify", made["id"]).returncode == 0
        file = pathlib.Path(near.env["CARREL_HOME"], "layers", made["layers"][0], "workspace/a")
        file.write_text("HELLO\n")
        problem(near.post("/v1/workspaces/damaged/push", {"snapshot": "1"}), 500, "corrupt", made["layers"][0], "POST /v1/snapshots/{id}/verify")
        assert not [key for key in manifests(server) if "/damaged/" in key]


def test_pulls_of_the_same_snapshot_at_once_make_one(far, bucket, pushed):
    def ask():
        connection = far.connection()
        connection.request("POST", "/v1/snapshots", json.dumps({"workspace": "pushed", "snapshot": "1"}), {"Content-Type": "application/json"})
        return connection
    connections = [ask() for _ in range(4)]
    answers = [connection.getresponse() for connection in connections]
    assert [answer.status for answer in answers] == [201] * 4
    assert {json.loads(answer.read())["id"] for answer in answers} == {pushed["id"]}
    for connection in connections:
        connection.close()
    far.delete(f"/v1/snapshots/{pushed['id']}")


def test_a_command_that_comes_during_a_repair_waits_for_it(make_daemon, bucket):
    """It neither fails nor starts a sandbox on layers that are being replaced."""
    _, proxy = bucket
    daemon = configure(make_daemon(env=s3.CREDENTIALS), s3.config(proxy.url, "/repaired") + "workspaces:\n  auto_repair: false\n")
    reached, goes_on = threading.Event(), threading.Event()

    def hold(method, path, count):
        if method == "GET" and "workspace-layers/" in path:
            reached.set()
            goes_on.wait(60)

    with created(daemon, name="sent"), concurrent.futures.ThreadPoolExecutor(2) as pool:
        output_of(daemon, "sent", "echo one >f")
        first = snapshot(daemon, "sent")
        push(daemon, "sent", first["id"])
        assert eventually(lambda: daemon.get(f"/v1/snapshots/{first['id']}").json()["content_id"], 60)
        assert daemon.post("/v1/workspaces/sent/suspend").status == 200
        shutil.rmtree(pathlib.Path(daemon.env["CARREL_HOME"], "layers", first["layers"][0]))
        with proxy.misbehaving(hold):
            repaired = pool.submit(daemon.post, "/v1/workspaces/sent/repair")
            try:
                assert reached.wait(60)
                asked = pool.submit(daemon.post, "/v1/workspaces/sent/exec", {"argv": ["cat", "f"]})
                assert not concurrent.futures.wait([asked], 1).done, asked.result()
            finally:
                goes_on.set()
            assert len(repaired.result().json()["done"]) == 1, repaired.result()
            assert asked.result().status == 200 and asked.result().json()["stdout"] == "one\n", asked.result()
