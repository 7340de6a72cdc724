"""SIGINT, SIGTERM and SIGHUP while a command of the CLI waits for the daemon: it says what becomes of the request."""
import contextlib
import os
import pathlib
import re
import signal
import subprocess

import pytest
from harness import eventually
from packages_made import plain
from rollouts import clean, deploy, left, put  # noqa: F401
from workspaces import created

GOES_ON = "interrupted: the daemon goes on with what it was asked for"
CANCELED = "interrupted: {} is canceled, unless its last step had begun"
COMMANDS = {
    "snapshot create": (["snapshot", "create", "{w}", "--tag", "t"], CANCELED.format("the snapshot")),
    "snapshot rollback": (["snapshot", "rollback", "{w}", "begin"], CANCELED.format("the rollback")),
    "snapshot push": (["snapshot", "push", "{w}", "begin"], CANCELED.format("the push")),
    "snapshot pull": (["snapshot", "pull", "{w}", "begin"], CANCELED.format("the pull")),
    "restore": (["restore", "w-20261116T095152.123Z.tar.zst"], CANCELED.format("the restore")),
    "fork": (["fork", "{w}", "{w}-fork"], CANCELED.format("the fork")),
    "apply": (["apply", "{w}", "--to", "{w}"], CANCELED.format("the application")),
    "tool install": (["tool", "install", "x"], CANCELED.format("the forging")),
    "suspend": (["suspend", "{w}"], GOES_ON),
    "repair": (["repair", "{w}"], GOES_ON),
    "update": (["update", "{w}", "--label", "a=b"], GOES_ON),
    "rm": (["rm", "--force", "{w}"], GOES_ON),
    "template add": (["template", "add", "{t}"], GOES_ON),
    "deploy": (["deploy", "blob:greeter@1.0.0"], GOES_ON),
    "deployment restart": (["deployment", "restart", "greeter"], GOES_ON),
}
# What goes on, and ends by itself much later or not at all: the hint says what undoes it.
UNDONE_BY = {"template add": "carrel template rm removes it", "deploy": "carrel deployment rm --force ends it",
             "deployment restart": "carrel deployment rm --force ends it"}


@contextlib.contextmanager
def stopped_core(daemon):
    core = daemon.core_pid()
    os.kill(core, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(core, signal.SIGCONT)


def catches(process, signo):
    caught = re.search(r"SigCgt:\s*(\w+)", pathlib.Path(f"/proc/{process.pid}/status").read_text())[1]
    return int(caught, 16) >> signo - 1 & 1


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("signo", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_command_says_what_becomes_of_it(daemon, tmp_path, command, signo):
    words, said = COMMANDS[command]
    (tmp_path / "t.yaml").write_text("name: interrupted\nversion: '1.0'\n")
    with created(daemon) as name:
        assert daemon("snapshot", "create", name, "--tag", "begin").returncode == 0
        with stopped_core(daemon):
            with subprocess.Popen([daemon.path, *(word.format(w=name, t=tmp_path / "t.yaml") for word in words)], env=daemon.env,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
                assert eventually(lambda: catches(process, signo))
                process.send_signal(signo)
                out, errors = process.communicate(timeout=60)
        lines = errors.splitlines()
        assert (process.returncode, out) == (130, "") and lines[0].startswith(f"carrel: {said}"), (process.returncode, out, errors)
        assert len(lines) == 2 and lines[1].startswith("hint: ") and lines[1].endswith(UNDONE_BY.get(command, "")), errors
    for one in daemon.get("/v1/workspaces").json()["items"]:
        daemon("rm", "--force", one["id"])


def test_an_interrupted_list_of_removals_ends(daemon):
    """What was not yet asked for isn't."""
    with created(daemon) as first, created(daemon) as second:
        with stopped_core(daemon):
            with subprocess.Popen([daemon.path, "rm", "--force", first, second], env=daemon.env, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True) as process:
                assert eventually(lambda: catches(process, signal.SIGINT))
                process.send_signal(signal.SIGINT)
                process.communicate(timeout=60)
        assert process.returncode == 125
        assert daemon.get(f"/v1/workspaces/{second}").status == 200


# ---- what is canceled ends, and leaves nothing ----

def in_use(daemon, name):
    return daemon.get(f"/v1/workspaces/{name}").json().get("in_use", [])


@contextlib.contextmanager
def under_way(daemon, *words):
    """A command that waits for the daemon, and is interrupted at the end of the block."""
    with subprocess.Popen([daemon.path, *words], env=daemon.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        yield process
        assert process.poll() is None, process.communicate()
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=60)
        assert (process.returncode, out) == (130, "") and " is canceled" in errors, (process.returncode, out, errors)


@pytest.mark.parametrize("words, use", [
    (["snapshot", "create", "{w}", "--tag", "late"], "a snapshot of it is being made"), (["fork", "{w}", "{w}-late"], "a fork of it is being made"),
    (["snapshot", "rollback", "{w}", "begin"], "it is being rolled back")], ids=["create", "fork", "rollback"])
def test_an_interrupt_ends_what_waits_for_a_command(daemon, words, use):
    """The command goes on: the operation would wait for its end for five minutes."""
    with created(daemon) as name:
        assert daemon("snapshot", "create", name, "--tag", "begin").returncode == 0
        id = daemon("exec", "-d", name, "--", "sleep", "600").stdout.strip()
        with under_way(daemon, *(word.format(w=name) for word in words), "--when-busy", "wait"):
            assert eventually(lambda: in_use(daemon, name) == [use])
        assert eventually(lambda: in_use(daemon, name) == [])
        assert daemon.get(f"/v1/execs/{id}").json()["state"] == "running"
        assert [one["tag"] for one in daemon.get(f"/v1/workspaces/{name}/snapshots").json()["items"]] == ["begin"]
        assert daemon.get(f"/v1/workspaces/{name}-late").status == 404


@pytest.mark.parametrize("has_live", [False, True], ids=["first", "replacement"])
def test_an_interrupted_rollout_goes_on_and_what_ends_it_is_said(clean, has_live):
    if has_live:
        deploy(clean, plain())
    put(clean, plain("2.0.0", rest="  command: sleep 1000\n  start_timeout: 300s\n"), "greeter@2.0.0")
    with subprocess.Popen([clean.path, "deploy", "blob:greeter@2.0.0"], env=clean.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        rollout = lambda: clean.get("/v1/deployments/greeter").json().get("rollout", {})
        assert eventually(lambda: rollout().get("status") == "starting")
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=60)
    said, hint = errors.splitlines()[-2:]
    assert (process.returncode, out, said) == (130, "", "carrel: interrupted: the rollout goes on"), errors
    assert hint.endswith("ends it, and the revision that is live" if has_live else "ends it"), hint
    assert rollout()["status"] == "starting"
    stops = re.search(r"; carrel (deployment rm --force \S+) ends it", hint)[1].split()
    assert clean(*stops).returncode == 0 and clean.get("/v1/deployments/greeter").status == 404
    assert eventually(lambda: not left(clean))


def layers(daemon):
    assert daemon.get("/v1/snapshots").status == 200
    return sorted(name for name in os.listdir(pathlib.Path(daemon.env["CARREL_HOME"], "layers")) if "snap-" in name)


def test_an_interrupt_ends_pushes_pulls_and_restores(near, far, bucket):
    """The store doesn't answer; after an interrupt there is no job left that waits for it, and nothing that it has made."""
    _, proxy = bucket
    with created(near, "interrupted") as name:
        assert near("exec", name, "--", "sh", "-c", "head -c 300000 /dev/urandom >big").returncode == 0
        assert near("snapshot", "create", name, "--tag", "sent").returncode == 0
        asked = lambda method: eventually(lambda: [path for verb, path in proxy.seen if verb == method and ".tar" in path])
        with proxy.misbehaving(lambda method, path, count: "stall" if method == "PUT" else None):
            with under_way(near, "snapshot", "push", name, "sent"):
                assert asked("PUT")
                assert in_use(near, name) == ["a snapshot of it is being sent to the blob store"]
                refused = near("rm", name)
                assert refused.returncode == 125 and "a snapshot of it is being sent" in refused.stderr and "--force" in refused.stderr, refused
            assert eventually(lambda: in_use(near, name) == [])
        assert near("snapshot", "push", name, "sent").returncode == 0
        archive = near.request("DELETE", f"/v1/workspaces/{name}?archive=true").json()["name"]
        before = layers(far)
        for words in (["snapshot", "pull", name, "sent"], ["restore", archive, "--name", "late"]):
            with proxy.misbehaving(lambda method, path, count: "stall" if method == "GET" and path.split("?")[0].endswith(".tar.zst") else None):
                with under_way(far, *words):
                    assert asked("GET")
                # Jobs are done in turn: this one ends after the one that was canceled.
                assert eventually(lambda: layers(far) == before)
                names = [one["name"] for one in far.get("/v1/workspaces").json()["items"]]
                assert "late" not in names and far.get("/v1/snapshots").json()["items"] == []
        assert far("snapshot", "pull", name, "sent").returncode == 0
        assert far("snapshot", "rm", far.get("/v1/snapshots").json()["items"][0]["id"]).returncode == 0
        assert far("archive", "rm", archive).returncode == 0
