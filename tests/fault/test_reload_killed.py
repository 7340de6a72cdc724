"""kill -9 of a launcher that is about to execute its program anew."""
import signal

import pytest

from rest import output_of


@pytest.mark.needs_faults
@pytest.mark.parametrize("point", ["launch_reload_checked", "launch_reload_exec"])
def test_a_launcher_that_is_killed_meanwhile_leaves_nothing(make_daemon, point):
    daemon = make_daemon(env={"CARREL_FAULT": f"{point}:1"}, check=False)
    assert daemon.post("/v1/workspaces", {"name": "w"}).status == 201
    daemon.post("/v1/workspaces/w/exec", {"argv": ["sleep", "1000"], "background": True})
    daemon.process.send_signal(signal.SIGHUP)
    assert daemon.process.wait(60) != 0
    daemon.process = None
    daemon.start_serving()
    assert output_of(daemon, "w", "echo again") == "again\n"
