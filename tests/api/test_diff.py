"""What changed in a workspace: lists and patches, read while commands run and from hostile trees."""
import json
import shlex
import subprocess

import pytest

from rest import created, output_of, problem


@pytest.fixture(scope="module")
def name(daemon):
    with created(daemon) as workspace:
        assert changes(daemon, workspace["name"]) == {}
        output_of(daemon, workspace["name"],
                  "mkdir -p src/deep; echo one > src/deep/a; ln -s a src/deep/link; mkfifo pipe; printf 'no end' > tail;"
                  "head -c 3000000 /dev/zero > big; mkdir locked; echo hidden > locked/in; chmod 0 locked;"
                  "echo run > script; chmod 755 script")
        yield workspace["name"]
        output_of(daemon, workspace["name"], "chmod 755 locked")  # the home is removed by rm


def changes(daemon, name, query=""):
    answer = daemon.get(f"/v1/workspaces/{name}/diff{query}")
    assert answer.status == 200, answer.body
    return {item["path"]: item for item in answer.json()["items"]}


def test_without_a_snapshot_everything_was_added(daemon, name):
    seen = {path: (item["change"], item["type"], item["size_before"], item["size_after"])
            for path, item in changes(daemon, name).items() if path[:3] not in ("odd", "rac")}
    assert seen == {
        "big": ("A", "file", None, 3000000), "locked": ("A", "directory", None, None),
        "locked/in": ("A", "file", None, 7), "pipe": ("A", "fifo", None, None), "src": ("A", "directory", None, None),
        "src/deep": ("A", "directory", None, None), "src/deep/a": ("A", "file", None, 4),
        "src/deep/link": ("A", "link", None, None), "script": ("A", "file", None, 4), "tail": ("A", "file", None, 6)}
    assert list(changes(daemon, name, "?path=src/deep/a&path=/workspace/locked")) == ["locked", "locked/in", "src/deep/a"]
    problem(daemon.get(f"/v1/workspaces/{name}/diff?path=/etc"), 400, "invalid", "/etc")
    problem(daemon.get("/v1/workspaces/nobody/diff"), 404, "not_found", "nobody")


def test_git_applies_the_patch(daemon, name, tmp_path):
    answer = daemon.get(f"/v1/workspaces/{name}/diff?patch=true&path=src&path=tail&path=script")
    assert answer.headers["Content-Type"] == "text/x-patch"
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "apply", "-"], input=answer.body, cwd=tmp_path, check=True)
    assert (tmp_path / "src/deep/a").read_text() == "one\n" and (tmp_path / "tail").read_text() == "no end"
    assert (tmp_path / "src/deep/link").readlink().name == "a" and (tmp_path / "script").stat().st_mode & 0o100
    assert b"Binary files /dev/null and b/big differ\n" in daemon.get(f"/v1/workspaces/{name}/diff?patch=1&path=big").body


def test_forks_take_nothing_from_the_differences(daemon):
    """Each one freezes a layer; many of these are merged. Of a fork, what it was made with is no change."""
    with created(daemon) as workspace:
        url, made = f"/v1/workspaces/{workspace['name']}", []
        for i in range(12):
            output_of(daemon, workspace["name"], f"rm -f f{i - 2}; echo {i} >f{i}")
            made += daemon.post(url + "/fork", {"name": f"{workspace['name']}-{i}"}).json()["items"]
        assert sorted(changes(daemon, workspace["name"])) == ["f10", "f11"]
        assert changes(daemon, made[3]["name"]) == {}
        output_of(daemon, made[3]["name"], "echo new >new")
        assert daemon.post(f"/v1/workspaces/{made[3]['id']}/fork").status == 201
        assert sorted(changes(daemon, made[3]["name"])) == ["new"]
        assert daemon.post(url + "/snapshots").status == 201
        assert changes(daemon, workspace["name"]) == {}
        for one in daemon.get("/v1/workspaces").json()["items"]:
            if one["created_at"] > workspace["created_at"]:
                assert daemon.delete(f"/v1/workspaces/{one['id']}").status in (200, 202, 204)


@pytest.mark.once
def test_names_of_a_workspace_are_shown_escaped(daemon, name):
    odd = "evil\x1b[31m\n\u202e"
    output_of(daemon, name, f"mkdir odd; touch odd/{shlex.quote(odd)}; touch \"odd/$(printf '\\377')\"")
    done = daemon("diff", name, "--path", "odd")
    assert done.returncode == 0 and "\x1b" not in done.stdout and done.stdout.count("\n") == 3, done
    assert done.stdout.splitlines()[0] == "A odd/"
    listed = json.loads(daemon("diff", name, "--path", "odd", "-o", "json").stdout)
    assert f"odd/{odd}" in [item["path"] for item in listed]
    patch = daemon("diff", name, "--path", "tail", "--patch").stdout
    assert patch == ("diff --git a/tail b/tail\nnew file mode 100644\n--- /dev/null\n+++ b/tail\n@@ -0,0 +1 @@\n+no end\n"
                     "\\ No newline at end of file\n")
    done = daemon("diff", name, "--patch", "-o", "json")
    assert done.returncode == 125 and "--patch" in done.stdout, done


def test_a_program_that_changes_the_tree_meanwhile_does_no_harm(daemon, name):
    race = ("i=0; while :; do mkdir -p race/d; echo $i > race/d/f; ln -sfn /etc race/l; rm -rf race; i=$((i+1)); done")
    exec_ = daemon.post(f"/v1/workspaces/{name}/exec", {"argv": ["sh", "-c", race], "background": True}).json()
    for _ in range(10):
        paths = changes(daemon, name)
        assert "src/deep/a" in paths and not any(path.startswith("race/l/") for path in paths)
        assert daemon.get(f"/v1/workspaces/{name}/diff?patch=1&path=race").status == 200
    daemon.post(f"/v1/execs/{exec_['id']}/signal", {"signal": "KILL"})
