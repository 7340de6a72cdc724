"""The process that does files in a sandbox has the rights of a command, so commands can end and stop it. They can
neither change what it does nor hold up whoever asks, and nobody sees it but as a use of the workspace."""
# security: files
import array
import concurrent.futures
import contextlib
import os
import pathlib
import socket
import time

import pytest

from harness import eventually
from rest import created, file_url as url, output_of as run, problem, workspace  # noqa: F401


def start(daemon, workspace, program):
    answer = daemon.post(f"/v1/workspaces/{workspace}/exec", {"argv": ["python3", "-c", program], "background": True})
    assert answer.status in (200, 201, 202), answer
    return answer.json()["id"]


def now(daemon, workspace):
    shown = daemon.get(f"/v1/workspaces/{workspace}").json()
    return shown["state"], shown["warm"]


AGENTS = """
import os, signal
def agents():
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            if open(f'/proc/{pid}/comm').read() == 'carrel-files\\n': yield int(pid)
        except OSError: pass
"""


def test_a_use_of_files_doesnt_run_in_the_workspace(daemon, workspace):
    assert now(daemon, workspace) == ("ready", False)
    assert daemon.request("PUT", url(workspace, "f"), b"x").status == 201
    assert now(daemon, workspace) == ("ready", True)
    assert run(daemon, workspace, "echo done") == "done\n"
    assert daemon.get(url(workspace, "f")).body == b"x"
    assert now(daemon, workspace) == ("ready", True)
    # It is gone when nobody needs it.
    assert eventually(lambda: run(daemon, workspace, "cat /proc/[0-9]*/comm 2>/dev/null || true").count("carrel-files") == 0)
    assert now(daemon, workspace) == ("ready", True)
    assert daemon.get(url(workspace, "f")).body == b"x"


@pytest.mark.parametrize("signal", ["SIGKILL", "SIGSTOP"])
def test_an_agent_that_is_ended_or_stopped_holds_up_nobody(daemon, workspace, signal):
    daemon.request("PUT", url(workspace, "f"), b"x" * 1000)
    program = AGENTS + f"""
while not os.path.exists('stop'):
    for pid in agents():
        try: os.kill(pid, signal.{signal})
        except OSError: pass
"""
    exec_id = start(daemon, workspace, program)
    end, rounds, seen = time.monotonic() + 3, 0, set()
    while time.monotonic() < end or rounds < 3:
        rounds += 1
        for answer in (daemon.get(url(workspace, "f"), timeout=60), daemon.request("PUT", url(workspace, "g"), b"y" * 1000, timeout=60)):
            seen.add(answer.status)
            if answer.status >= 300:
                problem(answer, 503, "unavailable", "file agent")
    assert 200 in seen or 503 in seen
    assert daemon.post(f"/v1/execs/{exec_id}/signal", {"signal": "KILL"}).status < 300
    assert eventually(lambda: daemon.get(f"/v1/execs/{exec_id}").json()["state"] != "running")
    assert daemon.get(url(workspace, "f")).body == b"x" * 1000
    assert daemon.request("PUT", url(workspace, "g"), b"z").status in (200, 201)
    # Of one that was killed between two steps, and of the one that was to tidy up, the next start removes what is left.
    names = [item["name"] for item in daemon.get(url(workspace, "", "?list")).json()["items"]]
    assert [name for name in names if not name.startswith(".carrel-")] == [".workspace_configured", "f", "g"]


def test_no_command_looks_into_an_agent(daemon, workspace):
    """Nor from its first instruction on: neither its memory nor its descriptors."""
    program = AGENTS + """
tries = opened = 0
while not os.path.exists('stop'):
    for pid in agents():
        tries += 1
        if tries == 1: print('tried', flush=True)
        for name in ('mem', 'fd/0', 'environ', 'maps', 'exe'):
            try:
                fd = os.open(f'/proc/{pid}/{name}', os.O_RDONLY)
                # That of a process that has ended can be opened, and is empty.
                shown = name != 'maps' or os.read(fd, 1)
                os.close(fd)
                if shown:
                    opened += 1
                    print(name, flush=True)
            except OSError: pass
print(opened)
"""
    exec_id = start(daemon, workspace, program)

    def use():
        for n in range(40):
            daemon.request("PUT", url(workspace, f"f{n % 3}"), b"x")
            time.sleep(0.03)
        return daemon.get(f"/v1/execs/{exec_id}/output").body.startswith(b"tried\n")
    assert eventually(use)
    daemon.request("PUT", url(workspace, "stop"), b"")
    assert eventually(lambda: daemon.get(f"/v1/execs/{exec_id}").json()["state"] != "running")
    assert daemon.get(f"/v1/execs/{exec_id}/output").body.decode().splitlines() == ["tried", "0"]


def test_a_sandbox_without_room_for_a_process_says_so(daemon):
    with created(daemon, limits={"pids": 6}) as made:
        name = made["id"]
        start(daemon, name, "import os, time\nwhile True:\n  try:\n    if not os.fork(): time.sleep(1000)\n  except OSError: time.sleep(0.01)")
        assert eventually(lambda: daemon.post(f"/v1/workspaces/{name}/exec", {"argv": ["true"]}).status != 200)
        problem(daemon.get(url(name, "f")), 503, "unavailable", "carrel-files")


def test_many_transfers_at_once(daemon, workspace):
    def one(n):
        data = os.urandom(20000 + n)
        assert daemon.request("PUT", url(workspace, f"d{n % 7}/f{n}"), data, timeout=60).status == 201
        return daemon.get(url(workspace, f"d{n % 7}/f{n}"), timeout=60).body == data

    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        assert all(pool.map(one, range(120)))


@pytest.mark.serial     # no process of this user can send descriptors meanwhile, unless its limit is higher
def test_descriptors_in_flight_of_the_same_user_keep_nobody_from_the_files(daemon, workspace):
    """Sandboxes of a plain user are of one user: the kernel counts their descriptors in flight together, against the
    limit of open files of whoever sends."""
    one = os.open("/dev/null", os.O_RDONLY)
    rights = array.array("i", [one] * 200)
    pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(10)]
    try:
        with contextlib.suppress(OSError):
            for sender, _ in pairs:
                sender.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        assert daemon.request("PUT", url(workspace, "f"), b"x").status == 201
        assert daemon.get(url(workspace, "f")).body == b"x"
    finally:
        os.close(one)
        for pair in pairs:
            for end in pair:
                end.close()


def test_slow_readers_of_archives_keep_nobody_from_the_files(daemon, workspace):
    run(daemon, workspace, "head -c 4000000 /dev/urandom >big")
    slow = [daemon.connection(60) for _ in range(12)]
    for connection in slow:
        connection.request("GET", f"/v1/workspaces/{workspace}/archive")
    assert slow[0].getresponse().read(10)
    assert daemon.get(url(workspace, "big"), timeout=60).status == 200
    for connection in slow:
        connection.close()
    assert daemon.get(f"/v1/workspaces/{workspace}/archive", timeout=60).status == 200


def test_an_upload_to_tmp_is_none_of_the_disk_limits_business(daemon):
    with created(daemon, limits={"disk": "3M"}) as made:
        for name in ("/tmp/1", "/tmp/2"):
            assert daemon.request("PUT", url(made["id"], name), b"x" * (2 << 20)).status == 201
        problem(daemon.request("PUT", url(made["id"], "big"), b"x" * (4 << 20)), 507, "limit", "raise the disk limit")
        assert daemon.get(f"/v1/workspaces/{made['id']}").json()["disk_usage_bytes"] < 1 << 20


def test_an_upload_to_tmp_is_memory_of_the_workspace(daemon):
    with created(daemon, limits={"memory": "64M", "tmp": "256M"}) as made:
        name = made["id"]
        data = os.urandom(8 << 20)
        assert daemon.request("PUT", url(name, "/tmp/f"), data, timeout=60).status == 201
        assert daemon.request("PUT", url(name, "/tmp/f"), data[::-1], timeout=60).status == 200
        assert daemon.get(url(name, "/tmp/f")).body == data[::-1]
        for size, status in ((40 << 20, 201), (40 << 20, 507), (100 << 20, 507)):
            answer = daemon.request("PUT", url(name, f"/tmp/{size}-{status}"), b"x" * size, timeout=60)
            assert answer.status == status, answer
        problem(answer, 507, "limit", "/tmp")
        # It is memory that no command can have, then.
        grow = {"argv": ["python3", "-c", "open('/tmp/more', 'wb').write(bytes(40 << 20))"]}
        assert daemon.post(f"/v1/workspaces/{name}/exec", grow).json()["exit_code"] != 0


def test_room_that_a_removal_makes_can_be_used_at_once(daemon):
    with created(daemon, limits={"disk": "4M"}) as made:
        for _ in range(3):
            assert daemon.request("PUT", url(made["id"], "big"), b"x" * (3 << 20)).status == 201
            assert daemon.delete(url(made["id"], "big")).status == 204


def test_a_crash_of_the_daemon_leaves_nothing_of_an_upload(own_daemon):
    with created(own_daemon) as made:
        name = made["id"]
        run(own_daemon, name, "mkdir t; head -c 3000000 /dev/urandom >t/big")
        whole = own_daemon.get(f"/v1/workspaces/{name}/archive?path=t").body
        connection = own_daemon.connection()
        connection.putrequest("PUT", f"/v1/workspaces/{name}/archive?path=new/deep")
        connection.putheader("Content-Length", str(len(whole)))
        connection.endheaders()
        connection.send(whole[:2000000])
        place = pathlib.Path(own_daemon.env["CARREL_HOME"], "workspaces", name)
        assert eventually(lambda: any(path.startswith(".carrel-") for path in os.listdir(place / "upper")))
        own_daemon.kill_core()
        connection.close()
        assert eventually(lambda: not any(path.startswith(".carrel-") for path in os.listdir(place / "upper")))
        assert eventually(lambda: not os.listdir(place / ".in"))


def test_a_note_of_an_upload_outside_of_the_workspace_goes_too(own_daemon):
    """The directories above it are read-only."""
    with created(own_daemon) as made:
        name = made["id"]
        run(own_daemon, name, "mkdir t")
        whole = own_daemon.get(f"/v1/workspaces/{name}/archive?path=t").body
        assert own_daemon.request("PUT", f"/v1/workspaces/{name}/archive?path=u", whole).status == 204
        notes = pathlib.Path(own_daemon.env["CARREL_HOME"], "workspaces", name, ".in")
        for path in ("/tmp/f", "/workspace/t/f"):
            note = notes / f".carrel-{len(path):020}"
            note.write_text(path)
            os.chown(note, notes.stat().st_uid, notes.stat().st_gid)
        own_daemon.kill_core()
        assert eventually(lambda: not os.listdir(notes))
