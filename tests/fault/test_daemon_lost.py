"""Background commands whose daemon is killed: they end as daemon_lost, everywhere, and their output up to then is kept."""
import json
import os
import signal

import pytest
from faults import inits
from harness import eventually, one_line
from rest import Events
from workspaces import created, json_of

SAYS = "echo first; echo second >&2; seq 1 20000; echo ready >/workspace/said; exec sleep 600"


def kill_launcher(daemon):
    daemon.process.kill()
    daemon.process.wait()
    daemon.start_serving()


def kill_core_and_sandboxes(daemon):
    """Core is stopped while the sandboxes end, so that it is killed before it can know."""
    with daemon.new_core():
        core = daemon.core_pid()
        os.kill(core, signal.SIGSTOP)
        found = inits(daemon)
        for pid in found:
            os.kill(pid, signal.SIGKILL)
        assert eventually(lambda: not inits(daemon))
        os.kill(core, signal.SIGKILL)


def start(daemon, name):
    id = daemon("exec", "-d", name, "--", "sh", "-c", SAYS).stdout.strip()
    assert eventually(lambda: daemon.get(f"/v1/workspaces/{name}/files/said").status == 200)
    return id


@pytest.mark.parametrize("kill", [kill_launcher, kill_core_and_sandboxes], ids=["launcher", "core"])
def test_a_background_command_ends_with_the_daemon_and_says_so(own_daemon, kill):
    daemon = own_daemon
    with created(daemon) as name:
        id = start(daemon, name)
        kill(daemon)
        shown = daemon.get(f"/v1/execs/{id}").json()
        assert (shown["state"], shown["reason"], shown["exit_code"]) == ("ended", "daemon_lost", 130), shown
        assert "daemon was killed" in shown["error"] and shown["ended_at"], shown
        [line] = [line for line in daemon("ps", "-a", name).stdout.splitlines() if id in line]
        assert "daemon_lost 130" in line, line
        assert [one["reason"] for one in json_of(daemon("ps", "-a", "-o", "json", name))] == ["daemon_lost"]
        assert id not in daemon("ps", name).stdout
        done = daemon("logs", id)
        assert done.returncode == 0 and done.stdout == "first\n" + "".join(f"{n}\n" for n in range(1, 20001)), done.stdout[-200:]
        assert done.stderr.startswith("second\n"), done.stderr
        one_line(done.stderr.removeprefix("second\n"), "daemon_lost")
        assert json.loads(daemon("logs", "-o", "json", id).stdout)["stdout"].startswith("first\n1\n")
        assert daemon("wait", id).returncode == 130
        done = daemon("attach", id)
        assert done.returncode == 130 and "daemon_lost" in done.stderr, done
        # The workspace is as usable as before.
        assert daemon("exec", name, "--", "cat", "said").stdout == "ready\n"


def test_the_end_is_an_event(own_daemon):
    daemon = own_daemon
    with created(daemon) as name:
        id = start(daemon, name)
        kill_launcher(daemon)
        events = Events(daemon, "/v1/events", headers={"Last-Event-ID": "0"})
        came = events.until("exec.ended")[-1]["data"]
        events.close()
        assert (came["exec"], came["reason"], came["exit_code"]) == (id, "daemon_lost", 130), came


def test_one_that_ended_before_keeps_its_end(own_daemon):
    daemon = own_daemon
    with created(daemon) as name:
        id = daemon("exec", "-d", name, "--", "sh", "-c", "echo done; exit 7").stdout.strip()
        assert daemon("wait", id).returncode == 7
        kill_launcher(daemon)
        shown = daemon.get(f"/v1/execs/{id}").json()
        assert (shown["reason"], shown["exit_code"]) == ("exited", 7), shown
        assert daemon("logs", id).stdout == "done\n" and daemon("logs", id).stderr == ""


def test_one_that_outlives_core_is_not_lost(own_daemon):
    daemon = own_daemon
    with created(daemon) as name:
        id = start(daemon, name)
        daemon.kill_core()
        assert daemon.get(f"/v1/execs/{id}").json()["state"] == "running"
        assert daemon("kill", id).returncode == 0 and daemon("wait", id).returncode == 143
