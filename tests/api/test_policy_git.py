"""What git's configuration names is judged with each command of git, however a repository came into the workspace."""
# security: policy
import io
import os
import shutil
import subprocess
import tarfile

import pytest
from harness import eventually
from rest import created

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="no git")
RULES = {"permissions": {"allow": ["shell(git:*)", "shell(tar:*)", "file(*:${WORKSPACE}/**)"]}}
RECORDER = "#!/bin/sh\necho ran >/workspace/ran\n"


def repository(path, *config, bare=False):
    path.mkdir(parents=True)
    env = {**os.environ, "HOME": str(path), "GIT_CONFIG_NOSYSTEM": "1"}

    def git(*words):
        subprocess.run(["git", *words], cwd=path, env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    git("init", "-q")
    (path / "a").write_text("1\n")
    git("add", "a")
    git("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "a")
    if bare:
        for entry in list((path / ".git").iterdir()):
            entry.rename(path / entry.name)
        (path / ".git").rmdir()
        config = (*config, ("core.bare", "false"), ("core.worktree", f"/workspace/{path.name}"))
    for key, value in config:
        git("config", "-f", "config" if bare else ".git/config", key, value)


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """fine, and two that name a program."""
    top = tmp_path_factory.mktemp("git")
    hostile = ("core.fsmonitor", "/workspace/evil")
    repository(top / "fine")
    repository(top / "sub", hostile)
    repository(top / "bare", hostile, bare=True)
    (top / "evil").write_text(RECORDER)
    (top / "evil").chmod(0o755)
    (top / "fine/src").mkdir()
    (top / "link").symlink_to("sub/.git")
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for name in sorted(os.listdir(top)):
            tar.add(top / name, name)
    return data.getvalue()


@pytest.fixture
def workspace(daemon, archive):
    with created(daemon, settings=RULES) as made:
        name = made["name"]
        put = daemon.request("PUT", f"/v1/workspaces/{name}/archive", archive)
        assert put.status in (200, 201, 204), put
        yield name


def start(daemon, name, **body):
    answer = daemon.post(f"/v1/workspaces/{name}/exec", {"background": True, **body})
    assert answer.status == 201, answer
    return answer.json()["id"]


def approval_of(daemon, name, exec_id):
    items = daemon.get(f"/v1/approvals?state=pending&workspace={name}").json()["items"]
    return next((item for item in items if item["exec"] == exec_id), None)


def has_run(daemon, name):
    return daemon.get(f"/v1/workspaces/{name}/files/ran").status == 200


def test_a_repository_of_an_archive_runs_nothing_unasked(daemon, workspace):
    def asked(reason, **body):
        exec_id = start(daemon, workspace, **body)
        approval = eventually(lambda: approval_of(daemon, workspace, exec_id))
        assert any(reason in (step["reason"] or "") for step in approval["trail"]), approval
        assert not has_run(daemon, workspace)
        return exec_id, approval["id"]

    status = {"argv": ["git", "status"]}
    asked("/workspace/bare/config' sets core.fsmonitor", cwd="bare", **status)
    asked("is a link", cwd="link", **status)
    asked("core.fsmonitor", argv=["git", "-C", "/workspace/sub", "status"])
    asked("core.fsmonitor", command="cd sub && git status")
    asked("may change the configuration", command="git init -q new; tar xf a.tar; cd fine && git status")
    exec_id, approval = asked("/workspace/sub/.git/config' sets core.fsmonitor", cwd="sub", **status)
    token = daemon.post("/v1/tokens", {"scope": "reviewer", "name": "git-reviewer"}).json()["text"]
    done = daemon.post(f"/v1/approvals/{approval}", {"decision": "approve"}, headers={"Authorization": f"Bearer {token}"})
    assert done.status == 200, done
    assert eventually(lambda: daemon.get(f"/v1/execs/{exec_id}").json()["state"] == "ended")
    assert has_run(daemon, workspace)   # git does run it


def test_a_harmless_repository_is_used_unasked(daemon, workspace):
    for body in ({"argv": ["git", "status"], "cwd": "fine"}, {"argv": ["git", "log", "-1"], "cwd": "fine/src"}, {"argv": ["git", "status"], "cwd": "link/../fine"},
                 {"command": "cd fine && git status && git log -1"}, {"argv": ["git", "init", "-q", "new"]}, {"argv": ["git", "clone", "-q", "fine", "copy"]}):
        answer = daemon.post(f"/v1/workspaces/{workspace}/exec", body)
        assert answer.status == 200 and answer.json()["exit_code"] == 0, (body, answer)
    assert not has_run(daemon, workspace)


def test_a_configuration_that_is_written_later_is_asked_for(daemon, workspace):
    """By a file verb that a rule allows, and by an archive over it."""
    def is_asked():
        exec_id = start(daemon, workspace, argv=["git", "status"], cwd="fine")
        return eventually(lambda: approval_of(daemon, workspace, exec_id) is not None or (
            daemon.get(f"/v1/execs/{exec_id}").json()["state"] == "ended" and "ran")) is True

    assert not is_asked()
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        hook = tarfile.TarInfo("fine/.git/hooks/post-index-change")
        hook.mode, hook.size = 0o755, len(RECORDER)
        tar.addfile(hook, io.BytesIO(RECORDER.encode()))
    assert daemon.request("PUT", f"/v1/workspaces/{workspace}/archive", data.getvalue()).status in (200, 201, 204)
    assert is_asked()
    assert not has_run(daemon, workspace)
