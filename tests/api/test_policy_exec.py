"""Policy: what a workspace's settings, its template's and the operator's say is judged before commands and file verbs, and
the strictest of them holds."""
# security: policy
import json

import pytest
from daemons import configure
from rest import created, file_url, problem
from workspaces import json_of

SETTINGS = {
    "permissions": {
        "allow": ["shell(echo:*)", "shell(grep:*)", "shell(cat:*)", "shell(true)", "shell(sh:*)",
                  "file(read:${WORKSPACE}/**)", "file(write:${WORKSPACE}/**)", "file(delete:${WORKSPACE}/out/**)"],
        "deny": ["shell(curl:*)", "shell(rm -rf:*)", "file(read:${WORKSPACE}/secret)", "file(write:${WORKSPACE}/fixed/**)"],
    }
}


def run(daemon, name, **body):
    return daemon.post(f"/v1/workspaces/{name}/exec", body)


@pytest.fixture(scope="module")
def judged(daemon):
    """A workspace with SETTINGS and some files, which were there before its sandbox began."""
    with created(daemon) as workspace:
        name = workspace["name"]
        script = "mkdir -p out fixed; echo hidden >secret; echo kept >fixed/a; echo plain >open"
        assert run(daemon, name, command=script).json()["exit_code"] == 0
        answer = daemon.request("PATCH", f"/v1/workspaces/{name}", {"settings": SETTINGS})
        assert answer.status == 200 and answer.json()["settings"] == SETTINGS, answer
        yield name


def test_an_allowed_command_runs(daemon, judged):
    for body in ({"argv": ["echo", "hi"]}, {"command": "echo hi"}, {"command": "echo hi | cat"}, {"argv": ["/bin/echo", "hi"]}):
        answer = run(daemon, judged, **body)
        assert answer.status == 200 and answer.json()["stdout"] == "hi\n", (body, answer)


@pytest.mark.parametrize("body", [{"argv": ["curl", "http://x"]}, {"command": "echo hi; curl x"}, {"command": "echo $(curl x)"},
                                  {"argv": ["sh", "-c", "curl x"]}, {"command": "cat secret"}, {"command": "echo x >fixed/a"}],
                         ids=json.dumps)
def test_a_denied_command_does_not_run(daemon, judged, body):
    for how in ({}, {"background": True}):
        told = problem(run(daemon, judged, **body, **how), 403, "denied", judged)
        assert told["exit_code"] == 126
        assert any(step["decision"] == "deny" and step["rule"] in SETTINGS["permissions"]["deny"] for step in told["trail"]), told


@pytest.mark.parametrize("body", [{"argv": ["uname"]}, {"command": "echo hi && uname"}, {"command": "$x"},
                                  {"argv": ["echo"], "env": {"LD_PRELOAD": "/workspace/x.so"}}], ids=json.dumps)
def test_a_command_that_no_rule_allows_is_asked_for(daemon, judged, body):
    started = run(daemon, judged, **body, background=True)
    assert started.status == 201 and started.json()["state"] == "waiting", started
    asked = [item for item in daemon.get(f"/v1/approvals?state=pending&workspace={judged}").json()["items"]
             if item["exec"] == started.json()["id"]]
    assert len(asked) == 1 and any(step["decision"] == "ask" for step in asked[0]["trail"]), asked
    assert daemon.post(f"/v1/execs/{started.json()['id']}/signal", {"signal": "KILL"}).status == 204


def test_a_file_that_names_programs_is_not_written_by_a_rule_for_all_files(daemon):
    """git status runs core.fsmonitor of .git/config."""
    rules = {"permissions": {"allow": ["shell(git status:*)", "file(*:${WORKSPACE}/**)"]}}
    with created(daemon, settings=rules) as workspace:
        name = workspace["name"]
        for path in (".git/config", ".config/git/config", ".gitconfig", "sub/.git/hooks/x"):
            problem(daemon.request("PUT", file_url(name, path), b"x"), 403, "approval_required", "programs that run later")
        assert daemon.request("PUT", file_url(name, "config"), b"x").status in (201, 204)
        rules["permissions"]["allow"].append("file(write:${WORKSPACE}/.git/**)")
        assert daemon.request("PATCH", f"/v1/workspaces/{name}", {"settings": rules}).status == 200
        assert daemon.request("PUT", file_url(name, ".git/config"), b"x").status in (201, 204)


def test_on_a_terminal_a_program_that_runs_what_is_typed_is_asked_for(daemon):
    rules = {"permissions": {"allow": [f"shell({name}:*)" for name in ("less", "man", "git", "ls", "sh")]}}
    pagers = (["less", "a"], ["man", "ls"], ["git", "log"], ["git", "diff"], ["sh", "-c", "ls; less a"])
    editors = (["git", "commit"], ["git", "--no-pager", "commit"])      # they also take commands from a pipe
    others = (["ls"], ["git", "status"], ["git", "--no-pager", "log"], ["sh", "-c", "ls"])
    with created(daemon, settings=rules) as workspace:
        def is_asked(argv, **how):
            started = run(daemon, workspace["name"], argv=argv, background=True, **how)
            assert started.status == 201, started
            daemon.post(f"/v1/execs/{started.json()['id']}/signal", {"signal": "KILL"})
            return started.json()["state"] == "waiting"
        assert [argv for argv in (*pagers, *editors) if not is_asked(argv, tty=True)] == []
        assert [argv for argv in others if is_asked(argv, tty=True)] == []
        assert [argv for argv in (*pagers, *others) if is_asked(argv)] == []
        assert [argv for argv in editors if not is_asked(argv)] == []


def test_a_command_that_is_too_long_is_denied(daemon, judged):
    problem(run(daemon, judged, argv=["echo"] + ["x"] * 5000), 403, "denied", "can't be judged")
    problem(run(daemon, judged, argv=["echo", "x" * (300 << 10)]), 403, "denied", "can't be judged")


def test_file_verbs_are_judged(daemon, judged):
    assert daemon.get(file_url(judged, "open")).body == b"plain\n"
    for path in ("secret", "/workspace/secret", "/workspace//./secret"):
        problem(daemon.get(file_url(judged, path)), 403, "denied", "file(read:/workspace/secret)")
    assert daemon.request("PUT", file_url(judged, "out/new"), b"x").status in (201, 204)
    problem(daemon.request("PUT", file_url(judged, "fixed/new"), b"x"), 403, "denied", "file(write:/workspace/fixed/new)")
    problem(daemon.request("PUT", file_url(judged, "fixed/sub", "?mkdir")), 403, "denied")
    problem(daemon.delete(file_url(judged, "open")), 403, "approval_required", "file(delete:")
    assert daemon.delete(file_url(judged, "out/new")).status == 204
    # Under another name it could be read, and another tree's file could be put in its place.
    problem(daemon.request("PUT", file_url(judged, "secret", "?move=/workspace/out/s")), 403, "denied")
    # Outside of what rules allow.
    problem(daemon.get(file_url(judged, "/etc/passwd")), 403, "approval_required")
    # Whole trees hold what is denied.
    problem(daemon.get(f"/v1/workspaces/{judged}/archive"), 403, "approval_required")
    problem(daemon.request("PUT", f"/v1/workspaces/{judged}/archive?path=fixed", b""), 403, "denied")
    problem(daemon.get(f"/v1/workspaces/{judged}/diff"), 403, "approval_required")


@pytest.mark.shipped
def test_the_command_line(daemon, judged, tmp_path):
    assert daemon("exec", judged, "echo", "hi").stdout == "hi\n"
    done = daemon("exec", judged, "curl", "x")
    assert done.returncode == 126 and "denied" in done.stderr and "shell(curl:*)" in done.stderr, done
    told = daemon("exec", "-o", "json", judged, "curl", "x")
    error = json.loads(told.stdout)["error"]
    assert told.returncode == 126 and error["code"] == "denied" and error["reason"] == "denied", told
    assert daemon("cp", f"{judged}:/workspace/secret", tmp_path / "s").returncode == 126
    assert not (tmp_path / "s").exists()
    shown = json_of(daemon("info", judged, "-o", "json"))
    assert shown["settings"] == SETTINGS
    assert "policy        settings\n" in daemon("info", judged).stdout


def test_info_says_what_mounts_do_not_enforce(daemon):
    rules = {"permissions": {"allow": ["shell(*)"], "deny": ["file(read:/workspace/a)", "file(read:/workspace/*.pem)", "file(read:/proc/**)"]}}
    with created(daemon, settings=rules) as workspace:
        shown = daemon("info", workspace["name"]).stdout
        assert "policy        settings; judged only: file(read:/proc/**)\n" in shown, shown


def test_settings_are_checked_when_they_are_set(daemon, tmp_path):
    bad = {"permissions": {"allow": ["shell(ls:*)", "shel(ls)"]}}
    problem(daemon.post("/v1/workspaces", {"settings": bad}), 400, "invalid", "settings", "shel(ls)")
    for wrong in ("x", [], {"permissions": {"allow": "shell(ls)"}}):
        problem(daemon.post("/v1/workspaces", {"settings": wrong}), 400, "invalid", "settings")
    problem(daemon.post("/v1/workspaces", {"settings": {"permissions": {"allow": ["shell(" + "x" * (1 << 20) + ")"]}}}), 400, "invalid")
    with created(daemon, settings=SETTINGS) as workspace:
        path = f"/v1/workspaces/{workspace['name']}"
        problem(daemon.request("PATCH", path, {"settings": bad}), 400, "invalid", "shel(ls)")
        assert daemon.get(path).json()["settings"] == SETTINGS
        problem(run(daemon, workspace["name"], argv=["curl"]), 403, "denied")
        assert "settings" not in daemon.request("PATCH", path, {"settings": None}).json()
        assert run(daemon, workspace["name"], argv=["sh", "-c", "exit 3"]).json()["exit_code"] == 3
    file = tmp_path / "bad.json"
    file.write_text(json.dumps(bad, indent=1))
    done = daemon("create", "-s", file)
    assert done.returncode == 125 and "bad.json" in done.stderr and "shel(ls)" in done.stderr, done
    done = daemon("create", "-s", tmp_path / "missing")
    assert done.returncode == 125 and "missing" in done.stderr


def test_a_fork_keeps_the_rules(daemon):
    with created(daemon, settings=SETTINGS) as workspace, created(daemon, **{"from": workspace["name"]}) as fork:
        assert fork["settings"] == SETTINGS
        problem(run(daemon, fork["name"], argv=["curl"]), 403, "denied")


def test_a_restart_keeps_the_rules(own_daemon):
    with created(own_daemon, name="stays", settings=SETTINGS):
        own_daemon.kill_core()
        problem(run(own_daemon, "stays", argv=["curl"]), 403, "denied")
        assert run(own_daemon, "stays", argv=["echo"]).status == 200


@pytest.mark.shipped
def test_a_template_and_the_operator_tighten(own_daemon):
    """The strictest verdict of the three holds; no one of them loosens another."""
    daemon = own_daemon
    directory = daemon.home / "policy"
    directory.mkdir()
    settings = directory / "operator.json"
    settings.write_text(json.dumps({"permissions": {"allow": ["shell(*)"], "deny": ["shell(uname:*)"]}}))
    configure(daemon, f"policy:\n  settings: {settings}\n  default: deny\n")
    (directory / "rules.json").write_text(json.dumps({"permissions": {"allow": ["shell(echo:*)", "shell(cat:*)"], "deny": ["shell(date:*)"]}}))
    template = directory / "careful.yaml"
    template.write_text("name: careful\nsettings: rules.json\n")
    assert daemon("template", "add", template).returncode == 0
    with created(daemon) as plain, created(daemon, template="careful", settings={"permissions": {"allow": ["shell(*)"]}}) as careful:
        assert careful["template_settings"]["permissions"]["deny"] == ["shell(date:*)"]
        assert run(daemon, plain["name"], argv=["date", "+x"]).json()["stdout"] == "x\n"
        problem(run(daemon, plain["name"], argv=["uname"]), 403, "denied", "shell(uname:*)")
        assert run(daemon, careful["name"], argv=["echo"]).status == 200
        problem(run(daemon, careful["name"], argv=["date"]), 403, "denied", "shell(date:*)")
        problem(run(daemon, careful["name"], argv=["uname"]), 403, "denied")
        problem(run(daemon, careful["name"], argv=["id"]), 403, "denied")     # policy.default
    settings.write_text('{"permissions": {"deny": ["shell(x"]}}')
    daemon.stop_serving()
    done = daemon("serve")
    assert done.returncode == 125 and "policy.settings" in done.stderr and "shell(x" in done.stderr, done
    settings.write_text('{"permissions": {}}')
    daemon.start_serving()


SOURCES = {
    "package_managers": {"pip": {"enabled": True, "blocked_packages": ["subprocess32"], "max_install_size_mb": 500}, "npm": {"enabled": False}},
    "git": {"enabled": True, "allowed_remotes": ["https://git.example/*"]},
    "runtime": {"languages": ["python3", "bash"], "max_execution_time_seconds": 20, "max_memory_mb": 300},
}


def test_sources_hold(daemon):
    """Commands and installs by what may be installed, cloned and run; time and memory by the lesser of both."""
    settings = {"permissions": {"allow": ["shell(*)"]}}
    with created(daemon, settings=settings, sources=SOURCES, limits={"timeout": "1h"}) as workspace:
        name = workspace["name"]
        assert workspace["sources"] == SOURCES
        for words in ("pip install subprocess32", "pip install SubProcess32", "python3 -m pip install subprocess32",
                      "npm install left-pad", "git clone https://elsewhere.example/x", "node -e 1"):
            problem(run(daemon, name, command=words), 403, "denied")
        assert run(daemon, name, command="python3 -c 'print(1)'").json()["stdout"] == "1\n"
        packages = f"/v1/workspaces/{name}/packages"
        problem(daemon.post(packages, {"packages": ["subprocess32"]}), 403, "denied", "subprocess32")
        problem(daemon.post(packages, {"packages": ["left-pad"], "kind": "node"}), 403, "denied", "npm")
        # The limits of the sandbox are the lesser ones.
        taken = run(daemon, name, command="python3 -c 'b = bytearray(b'x') * (700 << 20)'").json()
        assert taken["exit_code"] != 0, taken
    bad = {"package_managers": {"pip": {"enable": True}}}
    problem(daemon.post("/v1/workspaces", {"sources": bad}), 400, "invalid", "sources", "enable")
