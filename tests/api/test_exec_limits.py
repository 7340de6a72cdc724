"""Limits of warm sandboxes, what a background command can do to its output, and execs over a restart of core."""
# security: files, limits
import os
import resource
import threading
import time

import disk_takers
import pytest
from harness import FILL_SOCKETS, MECHANISM, NOT_AHEAD, descendants, eventually
from rest import created, workspace  # noqa: F401

PR_SET_NAME = 15
MB = 1 << 20


def sh(daemon, name, command, **body):
    answer = daemon.post(f"/v1/workspaces/{name}/exec", {"argv": ["sh", "-c", command], **body}, timeout=60)
    assert answer.status == 200, answer
    return answer.json()


def python(daemon, name, code, **body):
    answer = daemon.post(f"/v1/workspaces/{name}/exec", {"argv": ["python3", "-c", code], **body}, timeout=60)
    assert answer.status in (200, 201), answer
    return answer.json()


def background(daemon, name, command, **body):
    answer = daemon.post(f"/v1/workspaces/{name}/exec", {"argv": ["sh", "-c", command], "background": True, **body})
    assert answer.status == 201, answer
    return answer.json()["id"]


def shown(daemon, exec_id):
    return daemon.get(f"/v1/execs/{exec_id}").json()


def spools(daemon, exec_id):
    directory = os.path.join(daemon.env["CARREL_HOME"], "run/execs")
    return {name: os.stat(os.path.join(directory, name)).st_size for name in os.listdir(directory) if name.startswith(exec_id)}


@pytest.fixture(scope="module")
def small(daemon):
    """A workspace with narrow limits."""
    with created(daemon, limits={"memory": 150 * MB, "disk": 50 * MB}) as made:
        yield made["name"]


@pytest.mark.parametrize("code", [
    "x = bytearray(300 << 20); import time; time.sleep(20)",
    # A child's memory, in a process group of its own, under a command that would exit 0.
    "import subprocess; subprocess.run(['setsid', 'python3', '-c', 'x = bytearray(300 << 20); import time; time.sleep(20)'])",
    # Written, never mapped: no process's figures show it.
    "import os, time\nfor _ in range(300): os.write(os.memfd_create('x'), bytes(1 << 20))\ntime.sleep(20)",
])
@pytest.mark.kernel
def test_memory_over_the_limit_is_the_end_and_the_reason(daemon, small, code):
    result = python(daemon, small, code)
    assert (result["reason"], result["exit_code"]) == ("memory_limit", 137), result
    assert sh(daemon, small, "echo again")["stdout"] == "again\n"


def test_cpu_time_is_summed_over_processes_and_counts_for_one_exec(daemon, workspace):
    busy = "while :; do :; done"
    for _ in range(2):      # what an exec before has used is nobody else's
        result = sh(daemon, workspace, f"({busy}) & ({busy}) & wait", limits={"cpu_time": "400ms"})
        assert (result["reason"], result["exit_code"]) == ("cpu_limit", 124), result
        assert result["cpu_ms"] >= 400
    assert sh(daemon, workspace, "true", limits={"cpu_time": "400ms"})["reason"] == "exited"


def test_a_full_disk_is_the_reason(daemon, small):
    """By a quota the command fails; where it is counted, it is ended."""
    many = "for i in 1 2 3 4 5 6 7 8; do head -c 20000000 /dev/zero > part$i || exit 1; done; sleep 20"
    result = sh(daemon, small, many)
    assert (result["reason"], result["exit_code"]) == ("disk_limit", 137), result
    # What was filled can be cleared up, also by what takes its time.
    assert sh(daemon, small, "sleep 1; rm -f part*")["reason"] == "exited"
    result = sh(daemon, small, "head -c 3G /dev/zero > one")
    assert result["reason"] == "disk_limit", result
    sh(daemon, small, "rm -f one part*")


@pytest.mark.parametrize("mode", ["000", "400", "100"])
def test_directories_closed_to_their_owner_are_measured(daemon, mode):
    """Not over every limit, and not a place that the limit forgets."""
    with created(daemon, limits={"disk": 20 * MB}) as made:
        name = made["name"]
        result = sh(daemon, name, f"mkdir d; head -c 1M /dev/zero >d/f; chmod {mode} d; head -c 14M /dev/zero >big; exit 3")
        assert (result["reason"], result["exit_code"]) == ("exited", 3), result
        assert eventually(lambda: 15 * MB <= daemon.get(f"/v1/workspaces/{name}").json()["disk_usage_bytes"] < 16 * MB)
        result = sh(daemon, name, f"chmod 700 d; head -c 10M /dev/zero >d/more; chmod {mode} d; exit 3")  # measured once more at its end
        assert (result["reason"], result["exit_code"]) == ("disk_limit", 137), result


def test_the_cache_of_a_workspace_is_on_its_disk(daemon):
    """It outlives a sandbox and isn't memory; the disk limit counts it, and it goes with the workspace."""
    with created(daemon, limits={"memory": 64 * MB, "disk": 200 * MB}) as made:
        name, path = made["name"], os.path.join(daemon.env["CARREL_HOME"], "workspaces", made["id"])
        result = sh(daemon, name, "head -c 100000000 /dev/zero > $XDG_CACHE_HOME/a && echo $XDG_CACHE_HOME && stat -c %a /.cache")
        assert (result["stdout"], result["reason"]) == ("/.cache\n700\n", "exited"), result
        assert os.stat(f"{path}/cache/a").st_size == 100000000
        assert os.stat(f"{path}/cache/a").st_uid == os.stat(path).st_uid
        # Blocks that are just being written to the disk aren't in st_blocks: it is measured anew after each command.
        usage = lambda: sh(daemon, name, "true") and daemon.get(f"/v1/workspaces/{name}").json()["disk_usage_bytes"]
        assert eventually(lambda: usage() >= 100000000)
        assert daemon.request("PATCH", f"/v1/workspaces/{name}", {"limits": {"memory": "65M"}}).status == 200       # a new sandbox
        assert sh(daemon, name, "stat -c %s /.cache/a")["stdout"] == "100000000\n"
        more = "for i in 1 2 3 4 5 6 7 8; do head -c 20000000 /dev/zero > /.cache/part$i || exit 1; done; sleep 20"
        result = sh(daemon, name, more)
        assert result["reason"] == "disk_limit", result
    assert eventually(lambda: not os.path.exists(path))


@pytest.mark.parametrize("named, seen", [({}, 1 << 30), ({"memory": "256M"}, 128 * MB), ({"tmp": "32M"}, 32 * MB)])
def test_tmp_is_half_of_the_memory_unless_given(daemon, named, seen):
    with created(daemon, limits=named) as made:
        assert made["limits"]["tmp_bytes"] == seen and made["limits"]["pids"] == 1024
        blocks = sh(daemon, made["name"], "stat -f -c '%b %S' /tmp")["stdout"].split()
        assert 0 <= int(blocks[0]) * int(blocks[1]) - seen <= 262144


@pytest.mark.parametrize("how", disk_takers.HIDDEN)
def test_disk_space_that_the_tree_does_not_show_is_counted(daemon, how):
    """What others free on the file system at the same moment hides what is in flight: three tries."""
    with created(daemon, limits={"disk": 16 * MB}) as made:
        for _ in range(3):
            result = python(daemon, made["name"], disk_takers.HIDDEN[how], timeout="20s")
            if "in flight" not in how or result["reason"] == "disk_limit":
                break
        assert (result["reason"], result["exit_code"]) == ("disk_limit", 137), result


@pytest.mark.serial       # how much ten of them write between two looks depends on what else runs
def test_parallel_writers_are_stopped_near_the_limit(daemon):
    """Without being stopped, ten of them write several hundred megabytes between two looks."""
    with created(daemon, limits={"disk": 20 * MB}) as made:
        result = python(daemon, made["name"], disk_takers.PARALLEL, timeout="60s")
        assert (result["reason"], result["exit_code"]) == ("disk_limit", 137), result
        assert daemon.get(f"/v1/workspaces/{made['name']}").json()["disk_usage_bytes"] < 120 * MB


def test_what_a_command_has_removed_is_room_for_the_next_upload(daemon):
    """Also when nobody has measured the workspace since."""
    with created(daemon, limits={"disk": 10 * MB}) as made:
        path = f"/v1/workspaces/{made['name']}/files/data"
        for _ in range(3):
            # Where a walk takes long, its result is believed for a while.
            assert eventually(lambda: daemon.request("PUT", path, bytes(8 * MB)).status == 201)
            assert daemon.request("PUT", path + "2", bytes(8 * MB)).status == 507
            assert sh(daemon, made["name"], "rm data")["exit_code"] == 0


def test_a_workspace_says_what_its_limits_are_also_after_a_change(daemon):
    with created(daemon, limits={"memory": "300M", "cpus": 0.5}) as made:
        name = made["name"]
        ask = "head -1 /proc/meminfo; cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/cpu.max; echo $GOMEMLIMIT $OMP_NUM_THREADS; nproc"
        says = lambda mb, cpu: f"MemTotal:       {mb << 10:8} kB\n{mb << 20}\n{cpu}\n{(mb << 20) // 10 * 9} 1\n1\n"
        assert sh(daemon, name, ask)["stdout"] == says(300, "50000 100000")
        assert daemon.request("PATCH", f"/v1/workspaces/{name}", {"limits": {"memory": "200M", "cpus": 1}}).status == 200
        assert sh(daemon, name, ask)["stdout"] == says(200, "100000 100000")


@pytest.mark.skipif(MECHANISM == "cgroup-v2", reason="there the kernel counts buffers of sockets as memory")
def test_buffers_of_sockets_count_as_memory(daemon):
    with created(daemon, limits={"memory": 32 * MB}) as made:
        result = python(daemon, made["name"], FILL_SOCKETS, timeout_ms=60000)
        assert (result["reason"], result["exit_code"]) == ("memory_limit", 137), result
        assert sh(daemon, made["name"], "echo again")["stdout"] == "again\n"


def fill(daemon, name, command):
    """Runs short commands until three in a row are over the limit. What others free on the disk meanwhile hides for a
    while (5 s at most) what is written here."""
    results, end = [], time.monotonic() + 60
    while [result["reason"] for result in results[-3:]] != ["disk_limit"] * 3:
        assert time.monotonic() < end, results[-3:]
        results.append(sh(daemon, name, command.format(i=len(results))))
    assert {(r["reason"], r["exit_code"]) for r in results} <= {("exited", 0), ("disk_limit", 137)}, results


def test_many_short_execs_have_the_disk_limit_too(daemon):
    """None of them runs for as long as a look at the disk is apart from the next; some allocate without writing."""
    with created(daemon, limits={"disk": 4 * MB}) as made:
        name = made["name"]
        fill(daemon, name, "fallocate -l 400000 a{i}; head -c 100000 /dev/zero > b{i}")
        # Python gets an error instead of a signal; what writes no file is none of that.
        assert python(daemon, name, "open('c', 'wb', 0).write(b'x')")["reason"] == "disk_limit"
        assert sh(daemon, name, "ls >/dev/null; mv a0 a00")["reason"] == "exited"
        # One that room is made for from outside may write again, also when that is a whole directory.
        sh(daemon, name, "mkdir d; mv [ab]* d")
        assert daemon.delete(f"/v1/workspaces/{name}/files/d?recursive").status == 204
        assert sh(daemon, name, "echo x > c; cat c")["stdout"] == "x\n"
        fill(daemon, name, "fallocate -l 400000 a{i}")
        assert sh(daemon, name, "echo x > e")["reason"] == "disk_limit"
        names = [entry["name"] for entry in daemon.get(f"/v1/workspaces/{name}/files/?list").json()["items"]]
        assert all(daemon.delete(f"/v1/workspaces/{name}/files/{a}").status == 204 for a in names if a.startswith("a"))
        assert sh(daemon, name, "echo x > e; cat e")["stdout"] == "x\n"
        fill(daemon, name, "fallocate -l 400000 a{i}")
        # And is well again when there is room, at once.
        assert sh(daemon, name, "rm -f a* b*")["reason"] == "exited"
        assert sh(daemon, name, "echo x > c; cat c")["stdout"] == "x\n"


@pytest.mark.serial       # what others free on the disk meanwhile hides what is written here; 6 MB of it do not
def test_a_command_that_clears_up_is_not_ended_for_what_an_earlier_one_wrote(daemon):
    """The earlier one is too short to be measured, and so the limit is found to be exceeded while the next one runs."""
    with created(daemon, limits={"disk": 8 * MB}) as made:
        name = made["name"]
        for part in "ab":
            assert sh(daemon, name, f"head -c 7M /dev/zero > {part}")["reason"] in ("exited", "disk_limit")
        exec_id = background(daemon, name, "read go; rm a b; echo x > c; cat c", open_stdin=True)
        if made["disk_limit_mechanism"] == "counted":
            assert eventually(lambda: daemon.get(f"/v1/workspaces/{name}").json()["disk_usage_bytes"] > 8 * MB)
        assert daemon.request("POST", f"/v1/execs/{exec_id}/stdin", b"go\n", {"Content-Type": "application/octet-stream"}).status == 204
        assert eventually(lambda: shown(daemon, exec_id)["state"] == "ended")
        assert shown(daemon, exec_id)["reason"] == "exited"
        assert daemon.get(f"/v1/execs/{exec_id}/output").body == b"x\n"


def test_what_ends_a_command_in_a_full_workspace_is_the_reason(daemon):
    with created(daemon, limits={"disk": 10 * MB}) as made:
        name = made["name"]
        fill(daemon, name, "head -c 3000000 /dev/zero > part{i}")
        assert sh(daemon, name, "exit 3")["reason"] == "disk_limit"
        assert sh(daemon, name, "sleep 20", timeout="100ms")["reason"] == "timeout"
        assert sh(daemon, name, "while :; do :; done", limits={"cpu_time": "100ms"})["reason"] == "cpu_limit"
        exec_id = background(daemon, name, "sleep 20")
        assert daemon.post(f"/v1/execs/{exec_id}/signal", {"signal": "TERM"}).status == 204
        assert eventually(lambda: shown(daemon, exec_id)["state"] == "ended")
        assert (shown(daemon, exec_id)["reason"], shown(daemon, exec_id)["exit_code"]) == ("signaled", 143)


def test_a_sandbox_in_which_nothing_runs_is_left_alone(own_daemon):
    """Asked for its memory, it would make another process for the next command each time."""
    with created(own_daemon, limits=NOT_AHEAD) as made:
        assert sh(own_daemon, made["name"], "true")["reason"] == "exited"
        seen = set()
        for _ in range(10):
            seen |= {pid for pid, (_, name) in descendants(own_daemon.process.pid).items() if name == "carrel-init"}
            time.sleep(0.1)
        assert len(seen) <= 2, seen


@pytest.mark.parametrize("called", ["python3", "carrel-init"])
def test_what_an_exec_leaves_behind_has_the_disk_limit_too(daemon, called):
    code = f"""
import ctypes, os, time
if os.fork():
    os._exit(0)
os.closerange(0, 3)
ctypes.CDLL(None).prctl({PR_SET_NAME}, b"{called}")
for i in range(22):
    open(f"part{{i}}", "wb").write(bytes(2000000))
for i in range(10000):
    open(f"more{{i}}", "wb").write(bytes(100000))
    time.sleep(0.1)
"""
    with created(daemon, limits={"disk": 40 * MB}) as made:
        assert python(daemon, made["name"], code)["reason"] == "exited"
        assert eventually(lambda: daemon.get(f"/v1/workspaces/{made['name']}").json()["state"] == "ready")
        # At its pace it would take longer than that to get there.
        assert daemon.get(f"/v1/workspaces/{made['name']}").json()["disk_usage_bytes"] < 120 * MB


@pytest.mark.kernel
def test_what_an_exec_leaves_behind_has_its_limits_after_a_restart_of_core(own_daemon):
    code = """
import os, sys, time
if os.fork():
    sys.exit()
os.setsid()
while not os.path.exists("/workspace/go"):
    time.sleep(0.01)
x = bytearray(300 << 20)
time.sleep(60)
"""
    with created(own_daemon, limits={"memory": 150 * MB}) as made:
        name = made["name"]
        assert python(own_daemon, name, code)["exit_code"] == 0
        own_daemon.kill_core()
        assert own_daemon.get(f"/v1/workspaces/{name}").json()["state"] == "running"
        assert own_daemon.request("PUT", f"/v1/workspaces/{name}/files/go", b"").status == 201
        assert eventually(lambda: own_daemon.get(f"/v1/workspaces/{name}").json()["warm"] is False)


def test_background_output_beyond_its_cap_is_rotated(daemon, workspace):
    expected = "".join(f"{n}\n" for n in range(1, 200001)).encode()
    exec_id = background(daemon, workspace, "echo aside >&2; seq 1 200000", limits={"output": 100_000})
    record = daemon.get(f"/v1/execs/{exec_id}?wait").json()
    assert (record["reason"], record["exit_code"], record["output_bytes"]) == ("exited", 0, len(expected) + 6), record
    answer = daemon.get(f"/v1/execs/{exec_id}/output")
    first = int(answer.headers["Carrel-First-Offset"])
    # Dropped in whole blocks, down to three quarters of the cap; then it may have written that much again.
    assert answer.body == expected[first:] and 60_000 < len(answer.body) <= 100_000 + 4096, first
    assert int(answer.headers["Carrel-Next-Offset"]) == len(expected) and record["output_dropped_bytes"] == first
    assert daemon.get(f"/v1/execs/{exec_id}/output?stream=stderr").body == b"aside\n"
    assert daemon.get(f"/v1/execs/{exec_id}/output?offset={first + 10}").body == expected[first + 10:]
    events = daemon.get(f"/v1/execs/{exec_id}/output", headers={"Accept": "text/event-stream"}).body.decode()
    assert f'data: {{"type":"dropped","stream":"stdout","from":0,"to":{first}}}' in events
    terminal = background(daemon, workspace, "seq 1 200000", limits={"output": 100_000}, tty=True)
    assert daemon.get(f"/v1/execs/{terminal}?wait").json()["reason"] == "exited"
    assert daemon.get(f"/v1/execs/{terminal}/output").body.endswith(b"199999\r\n200000\r\n")


def test_what_a_background_command_leaves_behind_has_the_same_cap(daemon, workspace):
    exec_id = background(daemon, workspace, "(while [ ! -e go ]; do sleep 0.01; done; seq 1 200000) & exit 0", limits={"output": 100_000})
    assert daemon.get(f"/v1/execs/{exec_id}?wait").json()["reason"] == "exited"
    sh(daemon, workspace, "touch go")
    spool = os.path.join(daemon.env["CARREL_HOME"], "run/execs", exec_id + ".out")
    assert eventually(lambda: os.stat(spool).st_size > 1_000_000 and os.stat(spool).st_blocks * 512 <= 120_000), os.stat(spool)


@pytest.mark.kernel
def test_room_that_a_command_lays_out_is_taken_back_whatever_the_mode(daemon, workspace):
    exec_id = python(daemon, workspace, """
import ctypes, os
try:
    os.fchmod(1, 0)
except OSError:
    pass
ctypes.CDLL(None).fallocate(1, 1, ctypes.c_long(0), ctypes.c_long(100 << 20))
""", background=True, limits={"output": 1 * MB})["id"]
    assert eventually(lambda: shown(daemon, exec_id)["state"] == "ended")
    spool = os.path.join(daemon.env["CARREL_HOME"], "run/execs", exec_id + ".out")
    assert eventually(lambda: os.stat(spool).st_blocks * 512 <= 2 * MB), os.stat(spool)


@pytest.mark.kernel
def test_a_background_command_reaches_its_own_output_and_no_more(daemon, workspace):
    """docs/design/0012 has this as a table."""
    python(daemon, workspace, """
import fcntl, os
def attempt(name, fn):
    try:
        fn()
        print(name, "works", file=report)
    except OSError as e:
        print(name, "refused", file=report)
report = open("/workspace/report", "w")
for flags in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC):
    attempt(f"open{flags}", lambda: os.open("/proc/self/fd/1", flags))
attempt("link", lambda: os.link("/proc/self/fd/1", "/workspace/linked", follow_symlinks=True))
attempt("lease", lambda: fcntl.fcntl(1, fcntl.F_SETLEASE, fcntl.F_WRLCK))
attempt("setuid", lambda: os.fchmod(1, 0o4755))
os.write(1, b"some text")
try:
    os.fchmod(1, 0)
except OSError:
    pass
fcntl.fcntl(1, fcntl.F_SETFL, 0)
os.pwrite(1, b"SOME", 0)
report.close()
os.rename("/workspace/report", "/workspace/done")
""", background=True)
    assert eventually(lambda: sh(daemon, workspace, "cat done")["exit_code"] == 0)
    report = dict(line.split() for line in sh(daemon, workspace, "cat done")["stdout"].splitlines())
    assert len(report) == 7 and set(report.values()) == {"refused"}, report
    exec_id = next(e["id"] for e in daemon.get(f"/v1/workspaces/{workspace}/execs").json()["items"] if e["background"])
    # A mode of nothing keeps nobody from reading it.
    assert daemon.get(f"/v1/execs/{exec_id}/output").body == b"SOME text"


def test_core_is_restarted_and_only_what_was_in_the_foreground_ends(own_daemon):
    daemon = own_daemon
    with created(daemon) as made:
        name = made["name"]
        exec_id = background(daemon, name, "for i in $(seq 40); do echo $i; sleep 0.05; done; exit 7")
        threads = [threading.Thread(target=lambda: daemon("exec", name, "--", "sleep", "1000")) for _ in range(3)]
        for thread in threads:
            thread.start()
        assert eventually(lambda: len(daemon.get(f"/v1/workspaces/{name}/execs").json()["items"]) == 4)
        for _ in range(2):
            daemon.kill_core()
        for thread in threads:
            thread.join(120)
        assert eventually(lambda: "sleep 1000" not in sh(daemon, name, "ps -A -o args")["stdout"])
        assert eventually(lambda: shown(daemon, exec_id)["state"] == "ended")
        record = shown(daemon, exec_id)
        assert (record["reason"], record["exit_code"]) == ("exited", 7)
        output = daemon.get(f"/v1/execs/{exec_id}/output").body.decode()
        assert output == "".join(f"{i}\n" for i in range(1, 41))


@pytest.mark.needs_plain_user
def test_descriptors_that_one_sandbox_has_under_way_keep_nobody_else_from_starting(daemon):
    """The kernel counts them for a user, which is the same for all of a plain user's sandboxes: so many that they are more
    than any of these may have open, and few for the other tests of this user."""
    limits, few = {"fds": 100}, lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with created(daemon, limits=limits) as full, created(daemon, limits=limits) as other:
        python(daemon, full["name"], """
import os, socket, time
end, kept = os.pipe()[0], []
try:
    while True:
        kept.append(socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
        for _ in range(8):
            socket.send_fds(kept[-1][0], [b"x"], [end] * 50)
except OSError:
    os.rename("/workspace/.workspace_configured", "/workspace/full")
time.sleep(60)
""", background=True)
        assert eventually(lambda: sh(daemon, full["name"], "test -e full")["exit_code"] == 0)
        assert sh(daemon, other["name"], "echo up")["stdout"] == "up\n"
        assert daemon("exec", other["name"], "--", "echo", "handed", preexec_fn=few).stdout == "handed\n"
