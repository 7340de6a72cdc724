"""What a name runs where a policy holds: the system's program, whatever was written or attached (docs/design/0069). The
cases with environments are in tests/env/test_policy_env_names.py."""
# security: policy
import json
import subprocess

import pytest
from harness import CARREL, IS_ROOT
from rest import created, file_url, problem

PLANTED = b"#!/bin/sh\necho planted\n"
ALLOWED = ["echo", "ls", "cp", "chmod", "mv", "sh", "bash", "env", "xargs", "timeout", "find", "nohup", "tool", "true"]
SETTINGS = {"permissions": {"allow": [f"shell({name}:*)" for name in ALLOWED]}}
# Directories that a sandbox without a policy looks programs up in.
WRITTEN = ["/workspace/node_modules/.bin"]


def run(daemon, name, **body):
    return daemon.post(f"/v1/workspaces/{name}/exec", body)


def asked(daemon, name, **body):
    """No rule allows it: it waits for an approval, and is killed."""
    started = run(daemon, name, **body, background=True)
    assert started.status == 201 and started.json()["state"] == "waiting", (body, started)
    assert daemon.post(f"/v1/execs/{started.json()['id']}/signal", {"signal": "KILL"}).status == 204


@pytest.fixture(scope="module")
def planted(daemon):
    """Programs were written by REST before there was a policy."""
    with created(daemon) as workspace:
        name = workspace["name"]
        script = f": >shown; mkdir -p {' '.join(WRITTEN)}; for d in {' '.join(WRITTEN)} .; do for n in ls tool sh env python3; do" \
                 " printf '#!/bin/sh\\necho planted\\n' >$d/$n; chmod 755 $d/$n; done; done"
        assert run(daemon, name, argv=["/bin/sh", "-c", script]).json()["exit_code"] == 0
        assert run(daemon, name, argv=["ls"]).json()["stdout"] == "planted\n"
        assert daemon.request("PATCH", f"/v1/workspaces/{name}", {"settings": SETTINGS}).status == 200
        yield name


@pytest.mark.parametrize("body", [
    {"argv": ["ls", "shown"]}, {"command": "ls shown"}, {"command": "ls shown", "shell": "bash"},
    {"argv": ["sh", "-c", "ls shown"]}, {"argv": ["bash", "-c", "ls shown"]}, {"argv": ["env", "ls", "shown"]},
    {"command": "echo shown | xargs ls"}, {"argv": ["timeout", "9", "ls", "shown"]}, {"argv": ["nohup", "ls", "shown"]},
    {"argv": ["find", "shown", "-exec", "ls", "{}", ";"]}, {"argv": ["env", "-i", "ls", "shown"]},
    {"argv": ["env", "sh", "-c", "ls shown"]}, {"argv": ["/bin/ls", "shown"]},
], ids=lambda body: body.get("command") or " ".join(body["argv"]))
def test_a_name_runs_the_system_s_program(daemon, planted, body):
    if body.pop("shell", None):
        body = {"argv": ["bash", "-c", body["command"]]}
    answer = run(daemon, planted, **body)
    assert answer.status == 200 and answer.json()["stdout"] == "shown\n", answer


def test_what_was_written_has_no_name(daemon, planted):
    told = daemon("exec", planted, "tool")
    assert told.returncode == 127 and "run 'tool': No such file" in told.stderr and "by its path" in told.stderr, told
    for body in ({"command": "tool"}, {"argv": ["bash", "-c", "tool"]}, {"argv": ["env", "tool"]}, {"argv": ["timeout", "9", "tool"]}):
        done = run(daemon, planted, **body).json()
        assert done["exit_code"] == 127 and done["stdout"] == "", (body, done)


def test_a_path_is_that_path_and_not_the_name(daemon, planted):
    for path in (f"{WRITTEN[0]}/ls", "/workspace/tool", "./tool", "./ls", "/workspace/../workspace/ls"):
        asked(daemon, planted, argv=[path])
        asked(daemon, planted, command=path)
    settings = {"permissions": {"allow": [f"shell({WRITTEN[0]}/tool:*)"]}}
    with created(daemon, settings=settings, **{"from": planted}) as fork:
        assert run(daemon, fork["name"], argv=[f"{WRITTEN[0]}/tool"]).json()["stdout"] == "planted\n"
        assert run(daemon, fork["name"], command=f"{WRITTEN[0]}/tool").json()["stdout"] == "planted\n"
        asked(daemon, fork["name"], argv=["tool"])


def test_nothing_that_changes_meanwhile_takes_a_name(daemon, planted):
    """A process of the workspace swaps files while commands are judged and executed."""
    swap = "while :; do cp tool .swap; mv .swap node_modules/.bin/ls; cp /bin/true .swap; mv .swap node_modules/.bin/ls; done"
    started = run(daemon, planted, argv=["sh", "-c", swap], background=True)
    assert started.status == 201, started
    try:
        for _ in range(20):
            for body in ({"argv": ["ls", "shown"]}, {"command": "ls shown"}):
                assert run(daemon, planted, **body).json()["stdout"] == "shown\n", body
    finally:
        assert daemon.post(f"/v1/execs/{started.json()['id']}/signal", {"signal": "KILL"}).status == 204


def test_the_directories_of_programs_can_not_be_written(daemon, planted):
    for path in ("/run/programs/first/ls", "/run/programs/last/tool", "/run/programs/ls", "/run/layers/ls", "/usr/local/bin/tool"):
        done = run(daemon, planted, argv=["sh", "-c", f"cd {path.rpartition('/')[0]} && cp /workspace/tool ."], approval="return")
        assert done.status == 201 or done.json()["exit_code"], (path, done)
        assert daemon.request("PUT", file_url(planted, path), PLANTED).status >= 400


def test_without_a_policy_nothing_changes(daemon):
    with created(daemon) as workspace:
        name = workspace["name"]
        done = run(daemon, name, command="echo $PATH").json()
        assert done["stdout"] == "/env/bin:/workspace/node_modules/.bin:/usr/local/bin:/usr/bin:/bin\n", done


def test_settings_that_go_give_the_path_back(daemon):
    with created(daemon, settings=SETTINGS) as workspace:
        name = workspace["name"]
        assert run(daemon, name, command="echo $PATH").json()["stdout"] == "/run/programs/first:/usr/local/bin:/usr/bin:/bin:/run/programs/last\n"
        assert daemon.request("PATCH", f"/v1/workspaces/{name}", {"settings": None}).status == 200
        assert run(daemon, name, command="echo $PATH").json()["stdout"].startswith("/env/bin:")


def test_the_workspace_as_root_plants_no_program(daemon):
    with created(daemon, view="root") as workspace:
        name = workspace["name"]
        script = ": >shown; mkdir -p opt/carrel/node/bin node_modules/.bin; for d in opt/carrel/node/bin node_modules/.bin; do" \
                 " for n in ls node; do printf '#!/bin/sh\\necho planted\\n' >$d/$n; chmod 755 $d/$n; done; done"
        assert run(daemon, name, argv=["/bin/sh", "-c", script]).json()["exit_code"] == 0
        assert daemon.request("PATCH", f"/v1/workspaces/{name}", {"settings": SETTINGS}).status == 200
        assert run(daemon, name, argv=["ls", "shown"]).json()["stdout"] == "shown\n"
        assert run(daemon, name, command="ls shown").json()["stdout"] == "shown\n"


@pytest.mark.parametrize("target", ["/usr", "/usr/bin", "/usr/local/bin", "/bin", "/sbin", "/lib", "/lib/x86_64-linux-gnu", "/env", "/env/bin",
                                    "/opt", "/opt/carrel", "/opt/carrel/node", "/run", "/run/programs", "/run/layers", "/etc",
                                    "/etc/ld.so.preload", "/etc/alternatives", "/etc/alternatives/awk"])
def test_nothing_is_attached_over_programs(daemon, target, tmp_path):
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps(SETTINGS))
    assert daemon("tree", "create", "planted").returncode == 0
    try:
        problem(daemon.post("/v1/workspaces", {"attach": [f"planted:{target}"]}), 400, "invalid", target, "programs")
        done = daemon("create", "--attach", f"planted:{target}:ro")
        assert done.returncode == 125 and "holds programs" in done.stderr, done
        done = daemon("create", "-v", f"{daemon.home}:{target}:ro")
        assert done.returncode == 125 and "holds programs" in done.stderr, done
        for option in (["--attach", f"planted:{target}"], ["-v", f"{daemon.home}:{target}:ro"]):
            done = daemon("run", "-s", settings, *option, "--", "true")
            assert done.returncode == 125 and "holds programs" in done.stderr, done
    finally:
        daemon("tree", "rm", "planted")


@pytest.mark.skipif(not IS_ROOT, reason="the system's programs are changed in a mount namespace of root's")
def test_a_link_of_the_system_leads_to_nothing_that_others_write(daemon, tmp_path):
    """/usr/bin/google-chrome is a link to /opt/google/chrome: what is mounted there, or lies there in a workspace that is the root,
    is no program of the system."""
    links, tree = tmp_path / "links", tmp_path / "tree"
    links.mkdir()
    (tree / "bin").mkdir(parents=True)
    for name, leads in {"one": "/opt/tools/bin/one", "two": "two2", "two2": "/opt/./tools/../tools/bin/two", "fine": "/usr/bin/ls"}.items():
        (links / name).symlink_to(leads)
    for name in ("one", "two"):
        (tree / "bin" / name).write_bytes(PLANTED)
        (tree / "bin" / name).chmod(0o755)
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"permissions": {"allow": ["shell(*)"]}}))

    def ran(*words):
        script = 'mount --bind "$0" /usr/local/bin && exec "$@"'
        return subprocess.run(["unshare", "-m", "sh", "-c", script, links, CARREL, "run", *words], env=daemon.env, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60)

    mounted, root = ["-v", f"{tree}:/opt/tools"], ["--view", "root"]
    plant = "mkdir -p /opt/tools/bin; printf '#!/bin/sh\\necho planted\\n' >/opt/tools/bin/one; chmod 755 /opt/tools/bin/one; "
    for options, script in ((mounted, "one"), (mounted, "two"), (root, plant + "one")):
        assert ran(*options, "--", "sh", "-c", script).stdout == "planted\n", script
        done = ran("-s", settings, *options, "--", "sh", "-c", script)
        assert done.returncode == 127 and done.stdout == "", (script, done)
        assert ran("-s", settings, *options, "--", "sh", "-c", "fine -d /").stdout == "/\n"


def test_a_run_without_a_policy_mounts_over_a_program(daemon, tmp_path):
    program = tmp_path / "program"
    program.write_bytes(PLANTED)
    program.chmod(0o755)
    assert daemon("run", "-v", f"{program}:/usr/bin/env:ro", "--", "env").stdout == "planted\n"


def test_a_template_attaches_nothing_over_programs(daemon, tmp_path):
    assert daemon("tree", "create", "planted").returncode == 0
    file = tmp_path / "t.yaml"
    file.write_text('version: "1.0"\nname: shadows\nattach: ["planted:/usr/local/bin"]\n')
    try:
        added = daemon("template", "add", file)
        done = daemon("create", "--template", "shadows") if added.returncode == 0 else added
        assert done.returncode == 125 and "holds programs" in done.stderr, done
    finally:
        daemon("template", "rm", "shadows")
        daemon("tree", "rm", "planted")
