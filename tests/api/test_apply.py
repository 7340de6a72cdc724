"""Changes of a workspace are taken into another one: those that were chosen, all of them or none."""
import io
import json
import tarfile

import pytest

from rest import Events, created, output_of, problem

BASE = ("mkdir -p src/deep gone turns locked; echo one > src/a; echo old > src/deep/b; echo x > gone/x; echo t > turns/t; "
        "printf '#!' > script; echo bin > bin; ln -s src link; echo l > locked/in; seq 100 > both")
WORK = ("echo two > src/a; echo new > src/deep/c; rm -r gone; rm -r turns; echo now-a-file > turns; chmod 755 script; "
        "printf '\\000\\377\\001' > bin; ln -sfn /etc/passwd link; rm src/deep/b; mkdir src/deep/b; echo in > src/deep/b/in; "
        "mkdir -p new/er; echo n > new/er/n; echo o > new/other; chmod 0500 locked; touch \"$(printf 'odd\\377name')\"; "
        "mkfifo pipe")
STATE = ("own='! -name pipe ! -name .venv ! -name .workspace_configured ! -name .context.json'; "
         "(find . -mindepth 1 $own -printf '%P %y %m %l\\n' | LC_ALL=C sort; find . -type f $own -exec md5sum {} + | LC_ALL=C sort) | cat -v")


def changes_of(answer, status=200):
    assert answer.status == status, answer.body
    return {item["path"]: item for item in answer.json()["changes"]}


def apply(daemon, source, target, *paths, **more):
    return daemon.post(f"/v1/workspaces/{source}/apply", {"to": target, **({"paths": list(paths)} if paths else {}), **more})


@pytest.fixture(scope="module")
def base(daemon):
    """A workspace whose snapshot others are forks of."""
    with created(daemon) as workspace:
        output_of(daemon, workspace["name"], BASE)
        yield workspace["name"]


@pytest.fixture(scope="module")
def source(daemon, base):
    """One that has changed."""
    name = f"{base}-source"
    assert daemon.post(f"/v1/workspaces/{base}/fork", {"name": name}).status == 201
    output_of(daemon, name, WORK)
    yield name
    output_of(daemon, name, "chmod 755 locked")
    assert daemon.delete(f"/v1/workspaces/{name}").status == 204


@pytest.fixture
def target(daemon, base):
    """A fork that has not."""
    name = f"{base}-target"
    assert daemon.post(f"/v1/workspaces/{base}/fork", {"name": name}).status == 201
    yield name
    assert daemon.post(f"/v1/workspaces/{name}/exec", {"command": "chmod 755 locked"}).status == 200
    assert daemon.delete(f"/v1/workspaces/{name}").status == 204


def test_all_changes_come_into_a_workspace_that_is_like_the_base(daemon, source, target):
    before = output_of(daemon, target, STATE)
    dry = apply(daemon, source, target, dry_run=True)
    assert dry.json()["applied"] == 0 and output_of(daemon, target, STATE) == before
    assert {item["result"] for item in dry.json()["changes"]} == {"pending", "refused"}
    answer = apply(daemon, source, target)
    seen = changes_of(answer)
    assert {path for path, item in seen.items() if item["result"] == "refused"} == {"pipe"}
    assert answer.json()["applied"] == len(seen) - 1 and answer.json()["conflicts"] == 0
    assert (seen["turns"]["change"], seen["gone"]["change"], seen["link"]["change"], seen["src/a"]["change"]) == ("T", "D", "M", "M")
    assert output_of(daemon, target, STATE) == output_of(daemon, source, STATE)
    assert output_of(daemon, target, "ls -A | grep -c carrel- || true") == "0\n"
    again = changes_of(apply(daemon, source, target))
    assert {item["result"] for item in again.values()} == {"same", "refused"}
    # What came is a change of the target, too.
    assert "new/er/n" in {item["path"] for item in daemon.get(f"/v1/workspaces/{target}/diff").json()["items"]}


def test_chosen_paths_come_with_the_new_directories_above_them(daemon, source, target):
    seen = changes_of(apply(daemon, source, target, "new/er", "gone", "/workspace/script"))
    assert sorted(seen) == ["gone", "gone/x", "new", "new/er", "new/er/n", "script"]
    assert output_of(daemon, target, "ls; ls new; cat src/a") == "bin\nboth\nlink\nlocked\nnew\nscript\nsrc\nturns\ner\none\n"


@pytest.mark.once
def test_conflicts_are_all_named_and_nothing_is_applied(daemon, source, target):
    output_of(daemon, target, "echo other > src/a; rm script; echo keep > gone/keep; mkdir new; echo mine > new/other")
    before = output_of(daemon, target, STATE)
    answer = apply(daemon, source, target)
    body = problem(answer, 409, "conflict", "4 changes are conflicts", "nothing was applied")
    conflicts = {item["path"]: item["reason"] for item in body["changes"] if item["result"] == "conflict"}
    assert set(conflicts) == {"src/a", "script", "gone", "new/other"} and all(conflicts.values()), conflicts
    assert output_of(daemon, target, STATE) == before
    dry = apply(daemon, source, target, dry_run=True).json()
    assert dry["conflicts"] == 4 and dry["applied"] == 0
    seen = changes_of(apply(daemon, source, target, "turns", "new/er"))
    assert {item["result"] for item in seen.values()} == {"applied", "same"}, seen


@pytest.mark.once
def test_a_target_that_is_busy_gets_the_changes_and_an_event_tells_of_it(daemon, source, target):
    exec_ = daemon.post(f"/v1/workspaces/{target}/exec",
                        {"argv": ["sh", "-c", "until test -e new/er/n; do sleep 0.02; done; cat new/er/n"], "background": True}).json()
    events = Events(daemon, f"/v1/workspaces/{target}/events")
    assert changes_of(apply(daemon, source, target, "new"))["new/er/n"]["result"] == "applied"
    ended = daemon.get(f"/v1/execs/{exec_['id']}?wait=true").json()
    assert ended["exit_code"] == 0, ended
    told = [event["data"] for event in events.until("workspace.applied")][-1]
    assert told["changes"] == 4 and told["from"] == daemon.get(f"/v1/workspaces/{source}").json()["id"], told
    events.connection.close()


@pytest.mark.once
def test_bad_requests_are_explained(daemon, source, target):
    problem(apply(daemon, source, source), 400, "invalid", "source and the target")
    problem(apply(daemon, source, "nobody"), 404, "not_found", "nobody")
    problem(apply(daemon, "nobody", target), 404, "not_found", "nobody")
    problem(apply(daemon, source, target, "/etc/passwd"), 400, "invalid", "/etc/passwd")
    problem(apply(daemon, source, target, snapshot="none"), 404, "not_found", "none")
    problem(daemon.post(f"/v1/workspaces/{source}/apply", {}), 400, "invalid", "to")
    assert changes_of(apply(daemon, source, target, "no/such/path")) == {}


@pytest.mark.once
def test_the_archive_of_changes_can_be_read_by_any_tar(daemon, source):
    answer = daemon.get(f"/v1/workspaces/{source}/changes?path=src&path=gone")
    assert answer.status == 200 and answer.headers["Content-Type"] == "application/x-tar"
    with tarfile.open(fileobj=io.BytesIO(answer.body)) as tar:
        names = [member.name for member in tar]
        assert names[-1] == "changes" and "tree/src/a" in names and tar.extractfile("tree/src/a").read() == b"two\n"
        lines = [line.split(b" ") for line in tar.extractfile("changes").read().splitlines()]
    assert [line[0] + line[-1] for line in lines] == [b"Dgone", b"Dgone/x", b"Msrc/a", b"Tsrc/deep/b", b"Asrc/deep/b/in", b"Asrc/deep/c"]


def test_a_program_that_swaps_files_for_links_gains_nothing(daemon, base, source, target):
    """In the source while it is read, and in the target while it is written."""
    name = f"{base}-race"
    assert daemon.post(f"/v1/workspaces/{base}/fork", {"name": name}).status == 201
    swap = ("while :; do rm -rf src; mkdir src; echo evil > src/a; rm -rf src; ln -s /etc src; rm -f both; ln -s /etc/passwd both; "
            "rm -f both; echo evil > both; done")
    runs = [daemon.post(f"/v1/workspaces/{one}/exec", {"argv": ["sh", "-c", swap], "background": True}).json()["id"]
            for one in (name, target)]
    for _ in range(5):
        answer = apply(daemon, name, target)
        # A file that vanishes while it is read or written is said; a change is whole, or a conflict.
        assert answer.status in (200, 409), answer.body
    for run in runs:
        assert daemon.post(f"/v1/execs/{run}/signal", {"signal": "KILL"}).status == 204
        daemon.get(f"/v1/execs/{run}?wait=true")
    assert output_of(daemon, target, "ls -A | grep -c carrel- || true") == "0\n"
    assert daemon.delete(f"/v1/workspaces/{name}").status == 204


@pytest.mark.once
def test_a_target_without_room_is_left_as_it_was(daemon):
    with created(daemon) as source, created(daemon, limits={"disk": "8M"}) as target:
        output_of(daemon, source["name"], "echo small > small; head -c 12000000 /dev/urandom > large")
        answer = apply(daemon, source["name"], target["name"])
        assert answer.status == 507 and answer.json()["code"] in ("limit", "disk_full"), answer.body
        assert output_of(daemon, target["name"], "ls -A | grep -v -e '^.venv$' -e '^.workspace' || true") == ""
        assert changes_of(apply(daemon, source["name"], target["name"], "small"))["small"]["result"] == "applied"
