"""carrel serve --reload: the launcher executes its program anew, and what runs in the background doesn't notice."""
# security: daemon
import concurrent.futures
import http.client
import json
import os
import pathlib
import shutil
import signal
import threading

from harness import CARREL, eventually
from rest import output_of

BIN = pathlib.Path(CARREL).resolve().parent
COUNTER = "n=0; while [ ! -e stop ]; do n=$((n+1)); echo $n; sleep 0.01; done; exit 7"


def pids(daemon):
    return daemon.process.pid, daemon.core_pid()


def copy_programs(area):
    """What a daemon is, in a directory of its own, where a test may replace it as an upgrade does."""
    programs = area / "programs"
    programs.mkdir()
    for name in ("carrel", "carreld", "carrel-build", "carrel-files"):
        if (BIN / name).exists():
            shutil.copy(BIN / name, programs / name)
    os.chmod(area, 0o755)
    return programs


def test_what_runs_goes_on_under_load(own_daemon):
    """A background exec, its output, its exit code, sandboxes and idle workspaces are there after several reloads, and no
    request is refused for want of a listener."""
    daemon = own_daemon
    for name in ("counting", "idle"):
        assert daemon.post("/v1/workspaces", {"name": name}).status == 201
    output_of(daemon, "idle", "echo here > /tmp/file")
    exec_ = daemon.post("/v1/workspaces/counting/exec", {"command": COUNTER, "background": True}).json()
    ended = threading.Event()
    statuses = []

    def load():
        while not ended.is_set():
            try:
                answer = daemon.post("/v1/workspaces/idle/exec", {"argv": ["cat", "/tmp/file"]})
                assert answer.status == 503 or answer.json()["stdout"] == "here\n", answer
                assert answer.status == 200 or answer.headers["Retry-After"], answer
                statuses.append(answer.status)
            except (http.client.HTTPException, BrokenPipeError, ConnectionResetError):
                statuses.append(0)      # its connection was idle when core ended; never ConnectionRefusedError

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        running = [pool.submit(load) for _ in range(2)]
        launcher, core = pids(daemon)
        try:
            for _ in range(3):
                done = daemon("serve", "--reload")
                assert done.returncode == 0 and f"pid {launcher}" in done.stdout, (done, daemon.log()[-3000:])
                assert eventually(lambda: daemon.core_pid() not in (None, core))
                assert pids(daemon)[0] == launcher
                core, before = daemon.core_pid(), statuses.count(200)
                assert eventually(lambda: statuses.count(200) >= before + 4 or any(one.done() for one in running)), statuses
        finally:
            ended.set()
        for one in running:
            one.result()
    assert daemon.get(f"/v1/execs/{exec_['id']}").json()["state"] == "running"
    output_of(daemon, "counting", "touch stop")
    assert eventually(lambda: daemon.get(f"/v1/execs/{exec_['id']}").json()["state"] == "ended")
    assert daemon.get(f"/v1/execs/{exec_['id']}").json()["exit_code"] == 7
    lines = daemon.get(f"/v1/execs/{exec_['id']}/output").body.decode().split()
    assert lines == [str(n + 1) for n in range(len(lines))] and len(lines) > 5
    assert output_of(daemon, "idle", "cat /tmp/file") == "here\n"
    assert daemon.post("/v1/workspaces", {"name": "another"}).status == 201
    assert output_of(daemon, "another", "echo new") == "new\n"
    for name in ("counting", "idle", "another"):
        assert daemon.delete(f"/v1/workspaces/{name}").status == 204


def test_a_program_that_cant_start_is_refused_and_the_old_one_goes_on(make_daemon, tmp_path):
    """The daemon runs from a directory of its own, whose programs are then replaced, as an upgrade does."""
    programs = copy_programs(tmp_path)
    daemon = make_daemon(program=programs / "carrel")
    daemon.path = CARREL        # of the commands below
    launcher, core = pids(daemon)
    assert daemon.post("/v1/workspaces", {"name": "w"}).status == 201
    exec_ = daemon.post("/v1/workspaces/w/exec", {"argv": ["sleep", "1000"], "background": True}).json()
    (programs / "carreld").rename(programs / "away")
    done = daemon("serve", "--reload")
    assert done.returncode == 125 and "carreld" in done.stderr and "goes on" in done.stderr, done
    (programs / "away").rename(programs / "carreld")
    (programs / "carrel").rename(programs / "old")
    done = daemon("serve", "--reload")
    assert done.returncode == 125 and "No such file" in done.stderr, done
    config = daemon.home / "carrel" / "config.yaml"
    shutil.copy(programs / "old", programs / "carrel")
    config.write_text("system:\n  landlock: sideways\n")
    done = daemon("serve", "--reload")
    assert done.returncode == 125 and "landlock" in done.stderr, done
    config.unlink()
    assert pids(daemon) == (launcher, core) and daemon.get("/readyz").status == 200
    os.mkfifo(pathlib.Path(daemon.env["CARREL_HOME"]) / "run/.reload")     # a core that was taken over stops no launcher
    done = daemon("serve", "--reload", "-o", "json")
    assert json.loads(done.stdout) == {"reloaded": True, "pid": launcher}, done
    assert daemon.get(f"/v1/execs/{exec_['id']}").json()["state"] == "running"
    # `--stop` names what it would end.
    done = daemon("serve", "--stop")
    assert done.returncode == 125 and "'w'" in done.stderr and "--force" in done.stderr, done
    assert daemon("serve", "--stop", "--force").returncode == 0
    assert daemon.process.wait(120) == 0
    assert daemon("serve", "--reload").returncode == 125


def test_a_stop_that_overtakes_a_reload_drains(make_daemon, tmp_path):
    """While the new program is tried, the daemon is told to end: what it has begun is still answered."""
    programs = copy_programs(tmp_path)
    daemon = make_daemon(program=programs / "carrel")
    assert daemon.post("/v1/workspaces", {"name": "w"}).status == 201
    assert output_of(daemon, "w", "echo warm") == "warm\n"
    (programs / "carrel").rename(programs / "old")
    (programs / "carrel").write_text(f"#!/bin/sh\ntouch {programs}/tried\nuntil [ -e {programs}/gate ]; do sleep 0.05; done\nexec {programs}/old \"$@\"\n")
    (programs / "carrel").chmod(0o755)
    script = "sleep 1.5; echo done"      # less than what a daemon that ends waits for
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        answer = pool.submit(output_of, daemon, "w", script)
        assert eventually(lambda: daemon.get("/v1/workspaces/w").json()["state"] == "running")
        daemon.process.send_signal(signal.SIGHUP)
        assert eventually((programs / "tried").exists)
        daemon.process.send_signal(signal.SIGTERM)
        (programs / "gate").touch()
        assert answer.result(60) == "done\n"
    assert daemon.process.wait(120) == 0
