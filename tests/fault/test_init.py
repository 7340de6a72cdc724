"""What runs in a workspace against the init it runs under: killing, tracing, imitating, flooding it. One workspace's
trouble is no other's, and the daemon's least of all. What the protocol does with an init that lies: tests/unit."""
# security: daemon
import concurrent.futures

import pytest

from faults import Inventory, exec_, inits, remove_all, sh
from harness import NOT_AHEAD, eventually
from rest import created


@pytest.fixture
def name(daemon):
    with created(daemon, limits=NOT_AHEAD) as workspace:
        yield workspace["name"]


def python(daemon, name, script, **more):
    answer = exec_(daemon, name, "/usr/bin/python3", "-c", script, **more)
    assert answer.status == 200, answer
    return answer.json()


def still_works(daemon, name, init=None):
    answer = exec_(daemon, name, "echo", "here")
    assert answer.status == 200 and answer.json()["stdout"] == "here\n", answer
    assert init is None or init in inits(daemon)


@pytest.mark.kernel
def test_init_obeys_no_signal_of_those_inside(daemon, name):
    assert exec_(daemon, name, "true").status == 200
    (init,) = inits(daemon)
    other = exec_(daemon, name, "sleep", "100", background=True).headers["Location"]
    script = "import os, signal\nfor n in range(1, 65):\n    try: os.kill(1, n)\n    except OSError: pass\nprint('done')"
    assert python(daemon, name, script)["stdout"] == "done\n"
    still_works(daemon, name, init)
    assert daemon.get(other).json()["state"] == "running"
    # All the others are theirs to kill.
    assert python(daemon, name, "import os; os.kill(-1, 9)")["reason"] == "exited"
    assert eventually(lambda: daemon.get(other).json()["state"] == "ended")
    assert daemon.get(other).json()["signal"] == 9
    still_works(daemon, name, init)


@pytest.mark.kernel
def test_init_can_not_be_traced_read_or_imitated(daemon, name):
    script = """
import ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def errno_of(call):
    try:
        call()
    except OSError as error:
        return error.errno
    return 0
def syscall(*args):
    if libc.syscall(*args) < 0:
        raise OSError(ctypes.get_errno(), "")
calls = {
    "attach": lambda: syscall(101, 16, 1, 0, 0),
    "seize": lambda: syscall(101, 0x4206, 1, 0, 0),
    "read memory": lambda: open("/proc/1/mem", "rb").read(1),
    "write memory": lambda: open("/proc/1/mem", "r+b"),
    "vm_writev": lambda: syscall(311, 1, 0, 0, 0, 0, 0),
    "descriptors": lambda: os.listdir("/proc/1/fd"),
    "root": lambda: os.listdir("/proc/1/root"),
    "program": lambda: os.readlink("/proc/1/exe"),
    "environment": lambda: open("/proc/1/environ").read() or 1 / 0,
    "pidfd_getfd": lambda: syscall(438, os.pidfd_open(1) if hasattr(os, "pidfd_open") else -1, 3, 0),
}
wrong = {}
for name, call in calls.items():
    try:
        number = errno_of(call)
        if not number:
            wrong[name] = number
    except ZeroDivisionError:
        pass
print(wrong)
# Its socket, and anybody's: no path leads there, and nothing but 0, 1 and 2 was handed in.
paths = [line.split()[-1] for line in open("/proc/net/unix") if "/" in line or "@" in line]
print(paths)
print(sorted(int(fd) for fd in os.listdir("/proc/self/fd"))[:4])
found = [os.path.join(top, file) for start in os.listdir("/") if start not in ("proc", "usr") for top, _, files in os.walk("/" + start) for file in files
         if (os.lstat(os.path.join(top, file)).st_mode & 0o170000) == 0o140000]
print(found)
"""
    wrong, paths, descriptors, sockets = python(daemon, name, script)["stdout"].splitlines()
    assert wrong == "{}" and sockets == "[]", (wrong, sockets)
    assert descriptors in ("[0, 1, 2, 3]", "[0, 1, 2]")       # 3: the directory that is read
    assert "sb/" not in paths and "carrel" not in paths, paths
    still_works(daemon, name)


def test_floods_of_orphans_and_signals_hide_no_end(daemon, name):
    (init,) = inits(daemon) if exec_(daemon, name, "true").status == 200 else ()
    flood = "import os\nfor n in range(500):\n    if not os.fork():\n        if not os.fork(): os._exit(0)\n        os._exit(0)\n    os.wait()\n    os.kill(1, 17)\nprint('flooded')"
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        floods = [pool.submit(python, daemon, name, flood) for _ in range(2)]
        for n in range(30):
            answer = exec_(daemon, name, "sh", "-c", f"exit {n}")
            assert answer.json()["exit_code"] == n, answer
        for one in floods:
            assert one.result()["stdout"] == "flooded\n"
    still_works(daemon, name, init)
    # The last orphans may still be about to end.
    assert eventually(lambda: sh(daemon, name, "ps -e -o stat | grep -c Z").json()["stdout"] == "0\n")


def test_a_fork_bomb_is_its_own_workspaces_trouble(daemon, name):
    with created(daemon, limits={"pids": 32}) as bombed, concurrent.futures.ThreadPoolExecutor(1) as pool:
        bomb = pool.submit(python, daemon, bombed["name"], "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", timeout="2s")
        for _ in range(5):
            still_works(daemon, name)
            answer = exec_(daemon, bombed["name"], "true")      # there may be no room for one more
            assert answer.status == 200 or "limit of tasks" in (answer.json()["hint"] or ""), answer
        assert bomb.result()["reason"] == "timeout"
        assert eventually(lambda: exec_(daemon, bombed["name"], "true").status == 200)


def test_a_sandbox_without_memory_ends_and_the_next_one_is_well(daemon, name):
    with created(daemon, limits={"memory": "64M"}) as small:
        other = exec_(daemon, small["name"], "sleep", "100", background=True).headers["Location"]
        # So much, and then it waits: where memory is counted now and then, nobody knows how late that is.
        found = python(daemon, small["name"], "import time\nx = [bytearray(1 << 20) for _ in range(256)]\ntime.sleep(100)")
        assert found["reason"] == "memory_limit" and found["exit_code"] == 137, found
        assert eventually(lambda: daemon.get(other).json()["state"] == "ended")
        assert daemon.get(other).json()["reason"] == "memory_limit"
        still_works(daemon, small["name"])
    still_works(daemon, name)


@pytest.mark.kernel
def test_what_is_wild_inside_leaves_nothing_outside(own_daemon):
    """Stopped, deaf and orphaned processes go with their workspace."""
    daemon = own_daemon
    inventory = Inventory(daemon)
    assert daemon.post("/v1/workspaces", {"name": "a"}).status == 201
    wild = "for i in 1 2 3 4 5; do (trap '' TERM HUP INT; setsid sh -c 'kill -STOP $$' & setsid sleep 1000 &) ; done; kill -STOP $$"
    assert exec_(daemon, "a", "sh", "-c", wild, background=True).status == 201
    assert eventually(lambda: "sleep" in sh(daemon, "a", "ps -e").json()["stdout"])
    remove_all(daemon)
    inventory.check()
