"""What commands install from files, and where remotes of git lead, is read before they run."""
# security: policy
import base64
import json

import pytest
from harness import eventually
from rest import created, problem

SOURCES = {
    "package_managers": {"pip": {"blocked_packages": ["evil-pkg"]}, "npm": {"blocked_packages": ["left-pad"]}},
    "git": {"allowed_remotes": ["https://forge.example/team/*"]},
}
FILES = {
    "good.txt": "requests\n",
    "bad.txt": "-r sub/inner.txt\n",
    "sub/inner.txt": "Evil.Pkg\n",
    "later.txt": "requests\n",
    "pip": "#!/bin/sh\necho evil-pkg >>/workspace/later.txt\n",
    "js/package.json": '{"dependencies": {"axios": "1"}}',
    "js/package-lock.json": '{"lockfileVersion": 3, "packages": {"node_modules/axios/node_modules/left-pad": {"version": "1.0.0"}}}',
    "repo/.git/config": '[remote "origin"]\n\turl = https://forge.example/team/a\n[remote "evil"]\n\turl = https://other.example/a\n',
}
# What is allowed runs, and fails: there is no network, and maybe no such program.
ALLOWED = ["pip install -r good.txt", "git -C repo push origin"]
DENIED = {"pip install -rbad.txt": "evil-pkg", "cd js && npm ci": "left-pad", "git -C repo push evil": "remote 'evil'"}
ASKED = ["pip install -r missing.txt", "pip install -r big.txt", "./pip; pip install -r good.txt", "git push origin"]


@pytest.fixture(scope="module")
def judged(daemon):
    """A workspace with FILES, whose sources were set when they were there."""
    with created(daemon) as workspace:
        name = workspace["name"]
        script = "mkdir -p sub js repo/.git; yes requests | head -n 300000 >big.txt\n"
        for path, text in FILES.items():
            script += f"echo {base64.b64encode(text.encode()).decode()} | base64 -d >{path}\n"
        made = daemon.post(f"/v1/workspaces/{name}/exec", {"command": script + "chmod +x pip"}).json()
        assert made["exit_code"] == 0, made
        assert daemon.request("PATCH", f"/v1/workspaces/{name}", {"sources": SOURCES}).status == 200
        yield name


def run(daemon, name, command, **more):
    answer = daemon.post(f"/v1/workspaces/{name}/exec", {"command": command, **more})
    assert answer.status in (200, 201, 202), answer
    return answer.json()


def test_what_files_allow_runs_and_what_they_name_is_denied(daemon, judged):
    for command in ALLOWED:
        answer = run(daemon, judged, command)
        assert answer["reason"] == "exited", (command, answer)
    for command, why in DENIED.items():
        for how in ({}, {"background": True}, {"approval": "return"}):
            told = problem(daemon.post(f"/v1/workspaces/{judged}/exec", {"command": command, **how}), 403, "denied", judged)
            assert why in told["detail"] and told["exit_code"] == 126, told
        said = daemon("exec", judged, "--", "sh", "-c", command)
        assert said.returncode == 126 and why in said.stderr, said


def test_what_is_not_known_waits_for_an_approval(daemon, judged):
    def approval_of(exec_id):
        items = daemon.get(f"/v1/approvals?state=pending&workspace={judged}").json()["items"]
        return next((item for item in items if item["exec"] == exec_id), None)

    for command in ASKED:
        started = run(daemon, judged, command, background=True)
        asked = eventually(lambda: approval_of(started["id"]))
        assert any("sources:" in (step["reason"] or "") for step in asked["trail"]), asked
        assert daemon.post(f"/v1/execs/{started['id']}/signal", {"signal": "KILL"}).status == 204
    # A caller that doesn't want to wait gets the exec, which is a background one from then on.
    returned = daemon.post(f"/v1/workspaces/{judged}/exec", {"command": ASKED[0], "approval": "return"})
    assert returned.status == 202, returned
    assert eventually(lambda: approval_of(returned.json()["exec"])), returned.json()
    assert daemon.post(f"/v1/execs/{returned.json()['exec']}/signal", {"signal": "KILL"}).status == 204


@pytest.mark.once
def test_files_that_a_command_has_changed_are_told(daemon, judged):
    done = daemon.post(f"/v1/workspaces/{judged}/exec", {"argv": ["/workspace/pip", "install", "-r", "later.txt"]}).json()
    assert (done["reason"], done["exit_code"]) == ("exited", 0), done

    def records():
        text = daemon("audit", "--workspace", judged, "--type", "exec", "-o", "json").stdout
        return {line["type"]: line for line in map(json.loads, text.splitlines())}

    found = eventually(lambda: "exec.changed" in (r := records()) and r)
    assert found["exec.judged"]["data"]["files"] == ["/workspace/later.txt"], found
    assert found["exec.judged"]["data"]["decision"] == "allow" and found["exec.changed"]["data"]["decision"] == "deny", found
