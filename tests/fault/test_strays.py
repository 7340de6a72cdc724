"""What a test leaves is found, beside a daemon that others use too: tests/daemons.py looks only at what is no daemon's."""
import os
import signal
import subprocess
import threading

import pytest

from daemons import strays
from harness import children, eventually

pytestmark = [pytest.mark.once, pytest.mark.shipped]


def orphan():
    """The pid of a process whose parent has ended: it comes to us."""
    return int(subprocess.run(["sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True).stdout)


def child_of_an_ended_thread():
    pids = []
    thread = threading.Thread(target=lambda: pids.append(os.posix_spawn("/bin/sleep", ["sleep", "600"], {})))
    thread.start()
    thread.join()
    return pids[0]


@pytest.mark.parametrize("leave", [orphan, child_of_an_ended_thread])
def test_what_was_left_is_found_until_it_is_gone(daemon, leave):
    assert not strays(())
    pid = leave()
    try:
        assert eventually(lambda: pid in strays(())), children()
        assert pid not in strays({pid})
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert not strays(()) and pid not in (children() or ())
