"""Snapshots, rollbacks and forks, by REST and by the command line."""
import json
import os

import pytest

from harness import eventually
from rest import Events, created, output_of, problem


def layers(daemon):
    """Names of the frozen layers on disk, when the daemon has removed those that nothing names."""
    assert daemon.get("/v1/snapshots").status == 200
    return sorted(n for n in os.listdir(os.path.join(daemon.home, "carrel", "layers")) if n.startswith("snap-"))


def new_layers(daemon, others):
    """Without `others`, which may still go: a layer of an earlier test stays while its content is hashed."""
    return set(layers(daemon)) - set(others)


def snapshot(daemon, name, **body):
    answer = daemon.post(f"/v1/workspaces/{name}/snapshots", body)
    assert answer.status == 201, answer
    assert answer.headers["Location"] == f"/v1/snapshots/{answer.json()['id']}"
    return answer.json()


def rollback(daemon, name, to):
    answer = daemon.post(f"/v1/workspaces/{name}/rollback", {"snapshot": str(to)})
    assert answer.status == 200, answer
    return answer.json()


def fork(daemon, source, **body):
    answer = daemon.post(f"/v1/workspaces/{source}/fork", body)
    assert answer.status == 201, answer
    return answer.json()["items"]


def remove(daemon, *names):
    for name in names:
        assert daemon.delete(f"/v1/workspaces/{name}").status == 204


STATE = "find . -mindepth 1 | sort; cat *.txt 2>/dev/null; stat -c %a ."


def test_a_rollback_brings_files_back_and_keeps_what_it_leaves(daemon):
    with created(daemon) as w:
        name = w["name"]
        output_of(daemon, name, "mkdir d; echo one >a.txt; echo x >d/gone; ln -s a.txt link; chmod 1750 .")
        first = snapshot(daemon, name, tag="first", note="a note")
        assert first["version"] == 1 and first["tag"] == "first" and first["note"] == "a note"
        assert first["workspace"] == w["id"] and first["workspace_name"] == name
        assert not first["automatic"] and len(first["layers"]) == 1
        before = output_of(daemon, name, STATE)
        output_of(daemon, name, "rm -r d; mkdir d; echo new >d/new; echo two >a.txt; rm link; echo b >b.txt; chmod 700 .")
        left = output_of(daemon, name, STATE)
        assert daemon.get(f"/v1/workspaces/{name}").json()["snapshot"] == first["id"]
        rollback(daemon, name, "first")
        assert output_of(daemon, name, STATE) == before
        kept = daemon.get(f"/v1/workspaces/{name}/snapshots").json()["items"]
        assert [(s["version"], s["automatic"]) for s in kept] == [(2, True), (1, False)]
        assert kept[0]["note"] == "before the rollback to version 1"
        rollback(daemon, name, kept[0]["id"])
        assert output_of(daemon, name, STATE) == left
        # Nothing was changed: there is nothing to keep.
        rollback(daemon, name, 1)
        assert len(daemon.get(f"/v1/workspaces/{name}/snapshots").json()["items"]) == 2
        assert output_of(daemon, name, STATE) == before
    assert not [s for s in daemon.get("/v1/snapshots").json()["items"] if s["workspace"] == w["id"]]


def test_errors_name_the_snapshot_and_what_to_do(daemon):
    with created(daemon) as one, created(daemon) as two:
        made = snapshot(daemon, one["name"], tag="good")
        problem(daemon.post(f"/v1/workspaces/{one['name']}/snapshots", {"tag": "good"}), 409, "conflict", "good")
        problem(daemon.post(f"/v1/workspaces/{one['name']}/snapshots", {"tag": "1x"}), 400, "invalid", "tag")
        problem(daemon.post(f"/v1/workspaces/{two['name']}/rollback", {"snapshot": made["id"]}), 409, "conflict", "from")
        problem(daemon.post(f"/v1/workspaces/{two['name']}/rollback", {"snapshot": "good"}), 404, "not_found", f"GET /v1/workspaces/{two['name']}/snapshots")
        problem(daemon.post(f"/v1/workspaces/{two['name']}/rollback", {}), 400, "invalid", "snapshot")
        problem(daemon.get("/v1/snapshots/01234567890123456789"), 404, "not_found", "snapshot")
        problem(daemon.post("/v1/workspaces", {"from": "nobody"}), 404, "not_found", "nobody")
        problem(daemon.post("/v1/workspaces", {"from": made["id"], "template": "minimal"}), 400, "invalid", "from")
        problem(daemon.post("/v1/workspaces", {"from": one["id"], "python": "3"}), 400, "invalid", "from")
        problem(daemon.post(f"/v1/workspaces/{one['name']}/fork", {"name": two["name"]}), 409, "conflict", two["name"])
        problem(daemon.post(f"/v1/workspaces/{one['name']}/fork", {"count": 0}), 400, "invalid", "count")
        assert daemon.delete(f"/v1/snapshots/{made['id']}").status == 204
        assert daemon.get(f"/v1/snapshots/{made['id']}").status == 404
        assert snapshot(daemon, one["name"], tag="good")["version"] == 2


SPAWNS = """
import os
os.mkfifo("gate")
if not os.fork():
    os.execvp("sh", ["sh", "-c", "sleep 0.4; echo >gate"])
open("begun", "w").close()
os.posix_spawn("/bin/true", ["true"], os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 9, "gate", os.O_RDONLY, 0)])
"""


def test_a_process_that_waits_for_the_start_of_another_is_paused_too(daemon):
    """Between vfork() and execve() a child that is stopped keeps its parent from stopping."""
    with created(daemon) as w:
        url = f"/v1/workspaces/{w['name']}"
        run = daemon.post(url + "/exec", {"argv": ["python3", "-c", SPAWNS], "background": True}).json()["id"]
        assert eventually(lambda: daemon.get(url + "/files/begun").status == 200)
        snapshot(daemon, w["name"])
        assert daemon.get(f"/v1/execs/{run}?wait").json()["reason"] == "exited"


def test_a_busy_workspace_is_paused_waited_for_or_refused(daemon):
    with created(daemon) as w:
        url = f"/v1/workspaces/{w['name']}"
        output_of(daemon, w["name"], "echo base >f; mkfifo wait; rm -f done")
        run = daemon.post(
            url + "/exec",
            {"command": "echo $$ >pid; i=0; while [ ! -e done ]; do i=$((i+1)); echo $i >>n; echo $i >>m; done", "background": True},
        ).json()["id"]
        while not output_of(daemon, w["name"], "cat m 2>/dev/null || true").strip():
            pass
        text = problem(daemon.post(url + "/snapshots", {"when_busy": "fail"}), 409, "conflict", run)["detail"]
        assert w["name"] in text
        problem(daemon.post(url + "/rollback", {"snapshot": "1"}), 404, "not_found")
        busy = snapshot(daemon, w["name"], tag="busy")
        problem(daemon.post(url + "/rollback", {"snapshot": "busy"}), 409, "conflict", run, '{"when_busy":"wait"}')
        problem(daemon.post(url + "/snapshots", {"when_busy": "wait", "timeout": "1ms"}), 409, "conflict", run)
        # It goes on, and the copy was made between two writes.
        n = int(output_of(daemon, w["name"], "wc -l <n"))
        while int(output_of(daemon, w["name"], "wc -l <n")) <= n:
            pass
        (other,) = fork(daemon, w["name"], snapshot="busy")
        n, m = output_of(daemon, other["name"], "wc -l <n; wc -l <m").split()
        assert int(n) - int(m) in (0, 1)
        remove(daemon, other["name"])
        output_of(daemon, w["name"], "touch done")
        assert daemon.get(f"/v1/execs/{run}?wait").json()["exit_code"] == 0
        rollback(daemon, w["name"], busy["version"])
        assert output_of(daemon, w["name"], "cat f; ls done 2>/dev/null || true") == "base\n"


def test_a_fork_hides_no_change_of_its_source(daemon):
    with created(daemon) as w:
        name = w["name"]
        output_of(daemon, name, "echo one >f")
        snapshot(daemon, name)
        output_of(daemon, name, "echo two >f")
        (other,) = fork(daemon, name)
        output_of(daemon, name, "echo new >g")
        assert daemon("diff", name).stdout == "M f\nA g\n"
        assert daemon("diff", other["name"]).stdout == "", "what a fork begins with is no change of the fork"
        assert daemon.delete(f"/v1/workspaces/{other['id']}").status == 204


def test_forks_share_layers_and_go_their_own_ways(daemon):
    body = {"limits": {"memory": "700M"}, "labels": {"team": "a", "context_id": "x/1"}, "env": {"V": "1"}}
    others = layers(daemon)
    with created(daemon, **body) as w:
        output_of(daemon, w["name"], "mkdir d; echo one >d/f; head -c 300000 /dev/urandom >big")
        forks = fork(daemon, w["name"], name="fork", count=3)
        assert [f["name"] for f in forks] == ["fork-1", "fork-2", "fork-3"]
        for f in forks:
            assert f["labels"] == {"team": "a"} and f["env"] == {"V": "1"}
            assert f["limits"]["memory_bytes"] == 700 << 20
        output_of(daemon, "fork-1", "echo mine >d/f; rm big")
        output_of(daemon, w["name"], "echo source >d/f")
        assert output_of(daemon, "fork-2", "cat d/f; wc -c <big") == "one\n300000\n"
        assert output_of(daemon, "fork-1", "cat d/f; ls") == "mine\nd\n"
        top = os.path.join(daemon.home, "carrel", "workspaces", forks[2]["id"])
        size = sum(os.lstat(os.path.join(d, n)).st_blocks * 512 for d, ds, fs in os.walk(top) for n in ds + fs)
        assert size <= 64 << 10
    # The layers stay for the forks, and go with the last one.
    assert output_of(daemon, "fork-3", "cat d/f; wc -c <big") == "one\n300000\n"
    remove(daemon, "fork-1", "fork-2")
    assert output_of(daemon, "fork-3", "cat d/f") == "one\n"
    remove(daemon, "fork-3")
    assert eventually(lambda: not new_layers(daemon, others))


@pytest.mark.once
def test_a_layer_stays_while_a_template_a_fork_or_a_snapshot_names_it(daemon):
    others = layers(daemon)
    assert daemon.post("/v1/templates", {"yaml": "name: kept\nfiles: {a: one}\n"}).status == 201
    with created(daemon, name="origin", template="kept"):
        (built,) = new_layers(daemon, others)
        output_of(daemon, "origin", "echo two >b")
        fork(daemon, "origin", name="fork")
        (frozen,) = new_layers(daemon, others) - {built}
    assert new_layers(daemon, others) == {built, frozen}
    assert output_of(daemon, "fork", "cat a b") == "onetwo\n"
    left = os.path.join(daemon.home, "carrel", "layers", ".tree-" + frozen)  # of a job that was killed
    os.mkdir(left)
    owner = os.stat(os.path.dirname(left))
    os.chown(left, owner.st_uid, owner.st_gid)
    remove(daemon, "fork")
    assert eventually(lambda: new_layers(daemon, others) == {built} and not os.path.exists(left))
    with created(daemon, template="kept") as again:
        assert output_of(daemon, again["name"], "cat a") == "one" and new_layers(daemon, others) == {built}
        assert daemon.delete("/v1/templates/kept").status == 204
        assert built in layers(daemon)
    assert eventually(lambda: not new_layers(daemon, others))


def test_a_workspace_is_created_from_a_snapshot_or_a_workspace(daemon):
    with created(daemon, env={"V": "1", "W": "1"}, limits={"pids": 77}) as w:
        output_of(daemon, w["name"], "echo one >f")
        made = snapshot(daemon, w["name"])
        output_of(daemon, w["name"], "echo two >f")
        old = daemon.post("/v1/workspaces", {"from": made["id"], "name": "old", "env": {"V": "2"}}).json()
        new = daemon.post("/v1/workspaces", {"from": w["name"], "labels": {"a": "b"}}).json()
        assert old["snapshot"] == made["id"] and new["limits"]["pids"] == 77 and new["labels"] == {"a": "b"}
        assert output_of(daemon, "old", "cat f; echo $V$W") == "one\n21\n"
        assert output_of(daemon, new["name"], "cat f; cat .workspace_configured") == "two\n"
        remove(daemon, "old", new["name"])


def test_removed_snapshots_leave_no_layers(daemon):
    others = layers(daemon)
    with created(daemon) as w:
        ids = []
        for i in range(3):
            output_of(daemon, w["name"], f"echo {i} >f{i}")
            ids.append(snapshot(daemon, w["name"])["id"])
        same = snapshot(daemon, w["name"])  # nothing was changed: no layer
        assert same["layers"] == daemon.get(f"/v1/snapshots/{ids[2]}").json()["layers"] and same["size_bytes"] == 0
        rollback(daemon, w["name"], 1)
        assert len(new_layers(daemon, others)) == 3
        for ident in [*ids[1:], same["id"]]:
            assert daemon.delete(f"/v1/snapshots/{ident}").status == 204
        left = set(daemon.get(f"/v1/snapshots/{ids[0]}").json()["layers"])
        assert eventually(lambda: new_layers(daemon, others) == left)
        assert output_of(daemon, w["name"], "ls").split() == ["f0"]


def test_events_tell_of_snapshots_and_rollbacks(daemon):
    with created(daemon) as w:
        events = Events(daemon, f"/v1/workspaces/{w['name']}/events")
        made = snapshot(daemon, w["name"], tag="t")
        rollback(daemon, w["name"], "t")
        came = {e["event"]: e["data"] for e in events.until("workspace.rollback")}
        assert came["workspace.snapshot"]["snapshot"] == made["id"] and came["workspace.snapshot"]["version"] == 1
        assert came["workspace.rollback"]["snapshot"] == made["id"]


@pytest.mark.once
def test_the_command_line(daemon):
    assert not daemon("create", "cli").returncode
    assert daemon("exec", "cli", "--", "sh", "-c", "echo one >f").returncode == 0
    made = daemon("snapshot", "create", "cli", "--tag", "one", "--note", "first").stdout.strip()
    assert daemon("exec", "cli", "--", "sh", "-c", "echo two >f").returncode == 0
    shown = daemon("snapshot", "ls", "cli").stdout
    assert made in shown and "one" in shown and "first" in shown
    assert daemon("snapshot", "ls", "-q", "cli").stdout.split() == [made]
    assert json.loads(daemon("snapshot", "show", made, "-o", "json").stdout)["tag"] == "one"
    assert "one" in daemon("snapshot", "show", made).stdout
    assert daemon("snapshot", "show", made[:10]).stdout == daemon("snapshot", "show", made).stdout
    assert daemon("snapshot", "rollback", "cli", "one").stdout == "cli\n"
    assert daemon("exec", "cli", "--", "cat", "f").stdout == "one\n"
    assert daemon("fork", "cli", "copy", "--count", "2").stdout == "copy-1\ncopy-2\n"
    assert daemon("create", "third", "--from", made).stdout == "third\n"
    assert daemon("exec", "third", "--", "cat", "f").stdout == "one\n"
    assert daemon("snapshot", "rm", made).returncode == 0
    failed = daemon("snapshot", "rollback", "cli", "one")
    assert failed.returncode == 125 and "has no snapshot 'one'" in failed.stderr and "snapshot ls" in failed.stderr
    assert daemon("rm", "cli", "copy-1", "copy-2", "third").returncode == 0


CHANGES = [
    "echo {i} >f{i}; mkdir -p d/e; echo {i} >d/e/last",
    "rm -f f{before}; echo {i} >f{i}",
    "rm -rf d; mkdir d; echo {i} >d/only{i}",  # hides what lies below
    "rm -rf base; echo {i} >base; ln -sf f{i} link",
    "rm base; mkdir -p base/sub; echo {i} >base/sub/x; chmod 700 base",
]
TREE = "find . -mindepth 1 ! -name .workspace_configured -printf '%p %y %m %l\\n' | sort; find . -type f -name '[!.]*' | sort | xargs cat"


def test_layers_of_many_snapshots_are_merged(daemon):
    others = layers(daemon)
    with created(daemon) as w:
        name = w["name"]
        output_of(daemon, name, "mkdir -p base/deep; echo base >base/deep/file; echo other >base/other; mkdir d; echo x >d/x")
        states = {}
        for i in range(1, 31):
            command = CHANGES[i % len(CHANGES)].format(i=i, before=i - 1)
            states[i] = output_of(daemon, name, f"{command}; {TREE}")
            last = snapshot(daemon, name)
        assert eventually(lambda: len(daemon.get(f"/v1/snapshots/{last['id']}").json()["layers"]) <= 8)
        assert output_of(daemon, name, TREE) == states[30]
        assert max(len(s["layers"]) for s in daemon.get(f"/v1/workspaces/{name}/snapshots").json()["items"]) < 25
        rollback(daemon, name, 30)  # what it leaves is known, although its layers were merged
        assert len(daemon.get(f"/v1/workspaces/{name}/snapshots").json()["items"]) == 30
        for version in (1, 9, 17, 29):
            rollback(daemon, name, version)
            assert output_of(daemon, name, TREE) == states[version]
        (other,) = fork(daemon, name, snapshot="30")
        assert output_of(daemon, other["name"], TREE) == states[30]
    assert output_of(daemon, other["name"], TREE) == states[30]
    remove(daemon, other["name"])
    assert eventually(lambda: not new_layers(daemon, others))


def changes(daemon, name, since):
    answer = daemon.get(f"/v1/workspaces/{name}/diff?snapshot={since}")
    assert answer.status == 200, answer
    return {item["path"]: item["change"] for item in answer.json()["items"]}


def test_a_workspace_is_compared_with_its_snapshots(daemon):
    with created(daemon) as w, created(daemon) as other:
        name = w["name"]
        output_of(daemon, name, "mkdir d; echo one >a; echo x >d/x")
        first = snapshot(daemon, name, tag="first")
        assert changes(daemon, name, "first") == {}
        output_of(daemon, name, "echo two >a; echo b >b")
        snapshot(daemon, name)
        output_of(daemon, name, "rm -r d; echo c >c")
        assert changes(daemon, name, "first") == {"a": "M", "b": "A", "c": "A", "d": "D", "d/x": "D"}
        assert changes(daemon, name, first["id"]) == changes(daemon, name, 1)
        assert changes(daemon, name, 2) == {"c": "A", "d": "D", "d/x": "D"}
        rollback(daemon, name, 1)
        assert changes(daemon, name, 3) == {"a": "M", "b": "D", "c": "D", "d": "A", "d/x": "A"}
        url = f"/v1/workspaces/{other['name']}/diff?snapshot="
        problem(daemon.get(url + first["id"]), 409, "conflict", name)
        problem(daemon.get(url + "first"), 404, "not_found", "first")
        assert daemon("diff", name, "2").stdout == "M a\nD b\n"
        assert "-two\n+one\n" in daemon("diff", name, "2", "--patch").stdout


@pytest.mark.once
def test_a_damaged_snapshot_is_found_and_its_layer_named(make_daemon):
    daemon = make_daemon()

    def verdict(made):
        answer = daemon.post(f"/v1/snapshots/{made['id']}/verify")
        assert answer.status == 200, answer
        return answer.json()

    def known(made):
        return daemon.get(f"/v1/snapshots/{made['id']}").json()["content_id"]

    with created(daemon) as w:
        empty = snapshot(daemon, w["name"])
        output_of(daemon, w["name"], "echo one >f; mkdir d; echo two >d/g")
        first = snapshot(daemon, w["name"])
        output_of(daemon, w["name"], "echo three >f")
        second = snapshot(daemon, w["name"])
        assert eventually(lambda: known(first) and known(second)) and known(first) != known(second)
        same = snapshot(daemon, w["name"])
        assert eventually(lambda: known(same)) == known(second)
        assert verdict(empty)["ok"]
        found = verdict(second)
        assert found["ok"] and found["snapshot"] == second["id"]
        assert [(x["name"], x["content_id"], x["problem"]) for x in found["layers"]] == [
            (second["layers"][0], known(second), None), (first["layers"][0], known(first), None),
            *((name, x["content_id"], None) for name, x in zip(second["layers"][2:], found["layers"][2:]))]
        assert daemon("snapshot", "verify", first["id"], second["id"]).stdout == f"{first['id']} ok\n{second['id']} ok\n"
        below = os.path.join(daemon.home, "carrel", "layers", first["layers"][0])
        with open(os.path.join(below, "workspace", "d", "g"), "r+") as file:
            file.write("T")
        found = verdict(second)
        assert not found["ok"] and [x["problem"] for x in found["layers"]][:2] == [None, "changed"]
        done = daemon("snapshot", "verify", second["id"])
        assert done.returncode == 1 and done.stdout == f"{second['id']} layer {first['layers'][0]}: changed\n"
        os.rename(below, below + ".away")
        found = verdict(first)
        assert not found["ok"] and found["layers"][0] == {"name": first["layers"][0], "content_id": None, "problem": "missing"}
        assert json.loads(daemon("snapshot", "verify", "-o", "json", first["id"]).stdout) == [found]
        os.rename(below + ".away", below)
        os.remove(os.path.join(below, "content-id"))  # the row of the snapshot knows it too
        assert verdict(first)["layers"][0]["problem"] == "changed"
        problem(daemon.post("/v1/snapshots/01234567890123456789/verify"), 404, "not_found", "snapshot")
