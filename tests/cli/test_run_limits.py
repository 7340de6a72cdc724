"""Every limit stops what goes past it, counts for the whole sandbox, and is named."""
# security: limits
import concurrent.futures
import contextlib
import json
import os
import signal
import subprocess

import disk_takers
import pytest
from harness import FILL_SOCKETS, MECHANISM, cgroups, descendants, eventually
from patience import with_time

MB = 1 << 20
BURN = "while :; do :; done"
# Each takes memory a megabyte at a time, four times the limit of 64M, then waits: only the limit can end it before
# the time limit does, and then the reason would be `timeout`.
TAKERS = {
    "heap": "x = [bytearray(b'x' * 1048576) for _ in range(256)]",
    "private mapping": "import mmap; m = mmap.mmap(-1, 256 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n"
                       "for i in range(256): m[i << 20:(i + 1) << 20] = b'x' * 1048576",
    "shared mapping": "import mmap; m = mmap.mmap(-1, 256 << 20)\n"
                      "for i in range(256): m[i << 20:(i + 1) << 20] = b'x' * 1048576",
    "memfd, mapped": "import os, mmap; f = os.memfd_create('x'); os.ftruncate(f, 256 << 20); m = mmap.mmap(f, 256 << 20)\n"
                     "for i in range(256): m[i << 20:(i + 1) << 20] = b'x' * 1048576",
    "memfd, only written": "import os; f = os.memfd_create('x')\nfor _ in range(256): os.write(f, b'x' * 1048576)",
    "memfds in many processes": "import os\nfor _ in range(16):\n"
                                "  if os.fork() == 0:\n"
                                "    f = os.memfd_create('x')\n"
                                "    for _ in range(16): os.write(f, b'x' * 1048576)\n"
                                "    break",
    "files in /tmp": "f = open('/tmp/x', 'wb', 0)\nfor _ in range(256): f.write(b'x' * 1048576)",
    "files in /dev/shm": "for n in range(256): open('/dev/shm/%d' % n, 'wb', 0).write(b'x' * 1048576)",
    "an unlinked file": "import os; f = open('/tmp/x', 'wb', 0); os.unlink('/tmp/x')\n"
                        "for _ in range(256): f.write(b'x' * 1048576)",
    "SysV shared memory": "import ctypes; c = ctypes.CDLL(None); c.shmat.restype = ctypes.c_void_p; keep = []\n"
                          "for _ in range(64):\n"
                          "  a = c.shmat(c.shmget(0, 4 << 20, 0o1600), 0, 0); ctypes.memset(a, 1, 4 << 20)",
    "SysV shared memory, detached": "import ctypes; c = ctypes.CDLL(None); c.shmat.restype = ctypes.c_void_p\n"
                                    "c.shmdt.argtypes = [ctypes.c_void_p]\n"
                                    "for _ in range(64):\n"
                                    "  a = c.shmat(c.shmget(0, 4 << 20, 0o1600), 0, 0); ctypes.memset(a, 1, 4 << 20)\n"
                                    "  c.shmdt(a)",
    "the sum of processes": "import os\nfor _ in range(7):\n"
                            "  if os.fork() == 0: x = [bytearray(b'x' * 1048576) for _ in range(30)]; break",
}


def reason(result):
    return result["reason"], result["exit_code"]


@pytest.mark.parametrize("taker", TAKERS)
def test_memory_of_any_kind_is_counted(carrel, taker):
    result = carrel.py_json(TAKERS[taker] + "\nimport signal\nsignal.pause()",
                            "--memory", "64M", "--tmp", "1G", "--timeout", "60s", timeout=90)
    assert reason(result) == ("memory_limit", 137), result
    assert result["signal"] == 9


def test_a_memfd_is_counted_once(carrel):
    """Mapped by five processes and held by many descriptors, it is still 40 MB."""
    result = carrel.py_json("import mmap, os, time\nf = os.memfd_create('x'); os.ftruncate(f, 40 << 20); m = mmap.mmap(f, 40 << 20)\n"
                            "for at in range(0, 40 << 20, 4096): m[at] = 1\n"
                            "d = [os.dup(f) for _ in range(20)]\n"
                            "for _ in range(4):\n"
                            "  if not os.fork(): sum(m[::4096]); time.sleep(0.6); os._exit(0)\n"
                            "for _ in range(4): os.wait()\n"
                            "print('whole')", "--memory", "192M", "--timeout", "60s", timeout=90)
    assert (result["stdout"], result["reason"]) == ("whole\n", "exited"), result


def test_memory_below_the_limit_is_left_alone(carrel):
    result = carrel.py_json("x = [bytearray(b'x' * 1048576) for _ in range(40)]; print(len(x))", "--memory", "128M")
    assert (result["stdout"], result["reason"]) == ("40\n", "exited")


def test_memory_shared_by_fork_is_counted_once(carrel):
    result = carrel.py_json("import os, time; x = bytearray(b'x') * 60_000_000; children = []\n"
                            "for _ in range(4):\n"
                            "  if not (pid := os.fork()): time.sleep(0.5); os._exit(0)\n"
                            "  children.append(pid)\n"
                            "for pid in children: os.waitpid(pid, 0)", "--memory", "160M")
    assert reason(result) == ("exited", 0), result


def test_the_memory_limit_is_named_even_when_the_command_exits_0(carrel):
    result = carrel.sh_json("python3 -c 'x = [bytearray(b\"x\" * 1048576) for _ in range(256)]; import signal; signal.pause()'; exit 0",
                            "--memory", "64M", "--timeout", "60s", timeout=90)
    assert reason(result) == ("memory_limit", 137), result


def test_the_memory_limit_ends_every_process_at_once(carrel):
    """Else it would last until we give up."""
    result = carrel.sh_json("sleep 1000 & python3 -c 'x = [bytearray(b\"x\" * 1048576) for _ in range(256)]; import signal;"
                            " signal.pause()'; sleep 1000", "--memory", "64M", "--timeout", "1000s", timeout=90)
    assert reason(result) == ("memory_limit", 137)


def test_the_least_memory_suffices_for_a_small_program(carrel):
    assert carrel.run("--memory", "4M", "--", "/bin/true").returncode == 0


def test_a_workspace_is_smaller_than_the_memory(carrel):
    """Otherwise a full disk would be an out-of-memory kill."""
    result = carrel.sh_json("head -c 60M /dev/zero > big", "--memory", "64M")
    assert reason(result) == ("disk_limit", 137)
    assert "No space left" in result["stderr"]


# What goes over a limit of cpu time goes on until the one who looks is given a processor himself: what it used by then is
# held to a bound that only one without that limit would reach.

def test_cpu_time_of_one_process_is_limited(carrel):
    result = carrel.sh_json(BURN, "--cpu-time", "0.5s", "--timeout", "60s", timeout=90)
    assert reason(result) == ("cpu_limit", 124)
    assert 450 <= result["cpu_ms"] < 10_000 and result["signal"] == 9


@pytest.mark.parametrize("script", [
    f"for i in $(seq 20); do ({BURN}) & done; wait",
    "while :; do python3 -c 'import time\nwhile time.process_time() < 0.1: pass'; done",
    "python3 -c 'import os, signal, time\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\nwhile True:\n"
    "  if os.fork() == 0:\n    while time.process_time() < 0.2: pass\n    os._exit(0)\n  time.sleep(0.2)'",
    "python3 -c 'import threading\ndef burn():\n  while True: sum(range(1000))\n"
    "for _ in range(3): threading.Thread(target=burn).start()'",
], ids=["at once", "one after the other", "unawaited", "threads"])
def test_cpu_time_is_summed(carrel, script):
    result = carrel.sh_json(script, "--cpu-time", "1s", "--timeout", "60s", timeout=90)
    assert reason(result) == ("cpu_limit", 124), result
    assert 900 <= result["cpu_ms"] < 10_000


def test_the_cpu_limit_is_named_even_when_the_command_exits_0(carrel):
    result = carrel.sh_json(f"({BURN}) & sleep 1000; exit 0", "--cpu-time", "0.5s", "--timeout", "60s", timeout=90)
    assert reason(result) == ("cpu_limit", 124)


def test_sleeping_takes_no_cpu_time(carrel):
    assert reason(carrel.run_json("--cpu-time", "0.5s", "--", "sleep", "1")) == ("exited", 0)


@pytest.mark.parametrize("script", ["sleep 1000", "trap '' TERM INT HUP; while :; do sleep 1000; done", "kill -STOP $$",
                                    "(setsid sleep 1000 &) ; sleep 1000"])
def test_time_runs_out(carrel, script):
    result = carrel.sh_json(script, "--timeout", "0.5s")
    assert reason(result) == ("timeout", 124)
    assert 500 <= result["duration_ms"] and result["signal"] == 9


# Every process maps 8M that all share, so that their sum is over the limit and has to be looked at closely; and the
# many small mappings of each make that slow.
MAPPED = """
import ctypes, mmap, os, signal, sys
shared = mmap.mmap(-1, 8 << 20)
libc = ctypes.CDLL(None)
libc.mmap.restype, libc.mmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
many = libc.mmap(None, 60_000 * 4096, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
for at in range(0, 60_000 * 4096, 8192): libc.mprotect(many + at, 4096, mmap.PROT_READ)
for _ in range(15):
    if os.fork() == 0: break
shared[:] = bytes(8 << 20)
signal.pause()
"""


def stop_measurer(carrel_pid):
    """Stops the child that looks closely at the running command, if there is one; its pid."""
    found = descendants(carrel_pid)
    for pid, (_, name) in found.items():
        if name == "carrel" and any(other == "python3" for _, other in found.values()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
                if eventually(lambda: descendants(carrel_pid).get(pid, "X")[0] in "TX") and pid in descendants(carrel_pid):
                    return pid
    return None


@pytest.mark.skipif(MECHANISM != "watchdog", reason="here a control group counts memory")
def test_time_runs_out_also_while_memory_is_measured_slowly(carrel):
    """So slowly that it is never done."""
    stopped = []

    def run(limit):
        with carrel.start("run", "-o", "json", "--memory", "80M", "--timeout", limit, "--", "/usr/bin/python3", "-c", MAPPED) as process:
            while process.poll() is None and not stopped:
                stopped.extend(filter(None, [stop_measurer(process.pid)]))
            return json.loads(process.communicate(timeout=240)[0])
    result = with_time(run, lambda: stopped, first=2)
    assert stopped, "nobody was seen measuring"
    assert reason(result) == ("timeout", 124), result
    assert stopped[0] not in descendants()


def test_output_before_the_time_runs_out_is_kept(carrel, tmp):
    said = tmp / "said"
    result = with_time(lambda limit: carrel.sh_json("echo early; : > said; sleep 1000", "--dir", tmp, "--timeout", limit, timeout=90),
                       said.exists)
    assert said.exists() and (result["stdout"], result["reason"]) == ("early\n", "timeout")


def test_a_limit_without_json_is_told_by_the_exit_code_and_one_line(carrel):
    done = carrel.run("--timeout", "0.2s", "--", "sleep", "1000")
    assert (done.returncode, done.stdout) == (124, "")
    assert len(done.stderr.splitlines()) <= 1


COUNT_FORKS = """
import os, signal
count = 0
try:
    while True:
        if os.fork() == 0: signal.pause()
        count += 1
except BlockingIOError:
    print(count)
"""
COUNT_THREADS = """
import threading
count, stop = 0, threading.Event()
try:
    while count < 1000:
        threading.Thread(target=stop.wait, daemon=True).start()
        count += 1
except RuntimeError:
    pass
print(count, flush=True)
stop.set()
"""


def test_processes_are_limited(carrel):
    result = carrel.py_json(COUNT_FORKS, "--pids", "20", "--timeout", "60s", timeout=90)
    assert result["reason"] == "exited"
    assert 15 <= int(result["stdout"]) < 20


@pytest.mark.skipif(MECHANISM == "cgroup-v2", reason="there the kernel counts buffers of sockets as memory")
def test_buffers_of_sockets_count_as_memory(carrel):
    assert reason(carrel.py_json(FILL_SOCKETS, "--memory", "32M", "--timeout", "60s", timeout=90)) == ("memory_limit", 137)


HALF_IN_SOCKETS = """
import socket, time
held = bytearray(b"x") * (40 << 20)
listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
pairs, sent = [], 0
while sent < 40 << 20 and len(pairs) < 480:
    pairs.append((socket.create_connection(listener.getsockname()), listener.accept()[0]))
    pairs[-1][0].setblocking(False)
    try:
        while sent < 40 << 20: sent += pairs[-1][0].send(bytes(65536))
    except BlockingIOError: pass
time.sleep(1000)
"""


@pytest.mark.skipif(MECHANISM == "cgroup-v1", reason="there the kernel counts buffers of sockets apart")
def test_buffers_of_sockets_add_to_the_memory_of_processes(carrel):
    assert reason(carrel.py_json(HALF_IN_SOCKETS, "--memory", "64M", "--timeout", "60s", timeout=90)) == ("memory_limit", 137)


def test_threads_are_limited(carrel):
    result = carrel.py_json(COUNT_THREADS, "--pids", "20", "--timeout", "60s", timeout=90)
    assert 15 <= int(result["stdout"]) < 20


def test_the_limit_of_processes_is_each_sandboxes_own(carrel):
    script = COUNT_FORKS + "import sys; sys.stdout.flush(); sys.stdin.read()"
    with carrel.start("run", "--pids", "30", "--", "python3", "-c", script, stdin=-1) as first:
        assert 25 <= int(first.stdout.readline()) < 30
        assert 25 <= int(carrel.py(COUNT_FORKS, "--pids", "30").stdout) < 30
        first.stdin.close()
        assert first.wait(120) == 0


COUNT_FILES = """
import os
files = []
try:
    while True: files.append(os.open('/dev/null', os.O_RDONLY))
except OSError as error:
    os.close(files.pop())
    print(len(files), os.strerror(error.errno))
"""


def test_descriptors_are_limited(carrel):
    done = carrel.py(COUNT_FILES, "--fds", "64")
    count, why = done.stdout.split(" ", 1)
    assert why == "Too many open files\n" and 55 <= int(count) <= 61


def test_the_limit_of_descriptors_cannot_be_raised(carrel):
    assert carrel.sh("ulimit -Hn; ulimit -Sn; ulimit -n 100 2>/dev/null || echo no", "--fds", "64").stdout == "64\n64\nno\n"


def test_no_core_file_can_be_made(carrel):
    assert carrel.sh("ulimit -Hc").stdout == "0\n"


def test_the_workspace_holds_what_disk_says(carrel):
    result = carrel.sh_json("head -c 12M /dev/zero > a && echo fits; head -c 12M /dev/zero > b", "--disk", "16M")
    assert reason(result) == ("disk_limit", 137)
    assert result["stdout"] == "fits\n" and "No space left" in result["stderr"]


def test_a_full_disk_is_no_reason_when_the_command_succeeds(carrel):
    result = carrel.sh_json("head -c 32M /dev/zero > a; rm a; exit 0", "--disk", "16M")
    assert reason(result) == ("exited", 0)


def test_a_failure_with_an_empty_disk_is_no_disk_limit(carrel):
    assert reason(carrel.sh_json("exit 3", "--disk", "16M")) == ("exited", 3)


@pytest.mark.parametrize("place", ["/workspace", "/tmp", "/dev/shm"])
def test_the_number_of_files_is_limited(carrel, place):
    done = carrel.py(f"import os, itertools\nos.chdir({place!r})\ntry:\n"
                     "  for n in range(400_000): os.close(os.open(str(n), os.O_CREAT | os.O_WRONLY))\n"
                     "except OSError as error: print(n, os.strerror(error.errno))", "--disk", "16M", "--tmp", "16M")
    number, why = done.stdout.split(" ", 1)
    assert why == "No space left on device\n" and int(number) >= 1000


def test_a_directory_of_the_host_is_counted(carrel, tmp):
    """It has 14 s for that."""
    result = carrel.py_json("import time\nf = open('x', 'wb', 0)\nfor _ in range(400): f.write(b'x' * 1048576); time.sleep(0.05)\n"
                            "import signal; signal.pause()", "--dir", tmp, "--disk", "16M", "--timeout", "60s", timeout=90)
    assert reason(result) == ("disk_limit", 137), result
    assert (tmp / "x").stat().st_size < 300 * MB


def test_a_directory_of_the_host_has_no_limit_of_its_own(carrel, tmp):
    assert carrel.sh("head -c 20M /dev/zero > x", "--dir", tmp).returncode == 0
    assert (tmp / "x").stat().st_size == 20 * MB


NAMELESS = {
    "deleted": "f = os.open('x', os.O_RDWR | os.O_CREAT | os.O_EXCL); os.unlink('x')",
    "never named": "f = os.open('.', os.O_RDWR | os.O_TMPFILE)",
    "replaced": "f = os.open('x', os.O_RDWR | os.O_CREAT); os.close(os.open('y', os.O_CREAT)); os.rename('y', 'x')",
}


@pytest.mark.parametrize("how", NAMELESS)
def test_files_of_the_host_without_a_name_are_counted_while_they_are_open(carrel, tmp, how):
    result = carrel.py_json(f"import os, signal\nkeep = []\nfor _ in range(16):\n  {NAMELESS[how]}; keep.append(f)\n"
                            "  os.write(f, bytes(4 << 20))\nsignal.pause()", "--dir", tmp, "--disk", "16M", "--timeout", "60s", timeout=90)
    assert reason(result) == ("disk_limit", 137), result


@pytest.mark.parametrize("how", disk_takers.HIDDEN)
def test_disk_space_that_the_tree_does_not_show_is_counted(carrel, tmp, how):
    """What others free on the file system at the same moment hides what is in flight: three tries."""
    for _ in range(3):
        result = carrel.py_json(disk_takers.HIDDEN[how], "--dir", tmp, "--disk", "16M", "--timeout", "20s", timeout=90)
        if "in flight" not in how or result["reason"] == "disk_limit":
            break
    assert reason(result) == ("disk_limit", 137), result


def test_a_writer_that_ends_as_it_is_to_be_stopped_is_no_failure_of_carrel(carrel, tmp):
    """Near the limit everything is stopped for a moment; a command that ends just then isn't there for it."""
    for n in range(40):
        done = carrel.run("--dir", tmp, "--disk", "1M", "--", "dd", "if=/dev/zero", "of=big", "bs=64K", f"count={16 + 4 * n}")
        assert done.returncode in (0, 137), done
        (tmp / "big").unlink()


@pytest.mark.serial     # what is written between two looks depends on who else runs
@pytest.mark.shipped    # and on how fast carrel looks: a sanitised one is several times slower, what writes beside it is not
def test_parallel_writers_are_stopped_near_the_limit(carrel, tmp):
    """Without being stopped, ten of them write several hundred megabytes between two looks."""
    result = carrel.py_json(disk_takers.PARALLEL, "--dir", tmp, "--disk", "20M", "--timeout", "60s", timeout=90)
    assert reason(result) == ("disk_limit", 137), result
    assert sum(file.stat().st_size for file in tmp.iterdir()) < 120 * MB


def test_files_of_the_host_that_were_deleted_and_closed_are_not_counted(carrel, tmp):
    result = carrel.py_json("import os, time\nfor _ in range(10):\n  f = os.open('x', os.O_RDWR | os.O_CREAT); os.unlink('x')\n"
                            "  os.write(f, bytes(4 << 20)); time.sleep(0.1); os.close(f)", "--dir", tmp, "--disk", "16M")
    assert reason(result) == ("exited", 0), result


def test_a_deleted_file_is_counted_once_however_often_it_is_open(carrel, tmp):
    result = carrel.py_json("import os, time\nf = os.open('x', os.O_RDWR | os.O_CREAT); os.unlink('x'); os.write(f, bytes(4 << 20))\n"
                            "for _ in range(20): os.dup(f)\n"
                            "for _ in range(4):\n  if os.fork() == 0: time.sleep(1); os._exit(0)\n"
                            "time.sleep(1)", "--dir", tmp, "--disk", "16M")
    assert reason(result) == ("exited", 0), result


@pytest.mark.parametrize("place", ["/tmp", "/dev/shm", "/.cache"])
def test_temporary_files_are_limited(carrel, place):
    done = carrel.sh(f"head -c 4M /dev/zero > {place}/a && echo fits; head -c 16M /dev/zero > {place}/b", "--tmp", "8M")
    assert done.stdout == "fits\n" and "No space left" in done.stderr


@pytest.mark.parametrize("stream", ["", ">&2"])
def test_output_is_limited(carrel, stream):
    result = carrel.sh_json(f"yes {stream}", "--output", "100K", "--timeout", "60s", timeout=90)
    assert reason(result) == ("output_limit", 137)
    assert result["truncated"] is True and len(result["stdout"] + result["stderr"]) == 100 << 10


def test_output_is_the_sum_of_both_streams(carrel):
    result = carrel.sh_json("head -c 60K /dev/zero | tr '\\0' x; head -c 60K /dev/zero | tr '\\0' x >&2; sleep 1000",
                            "--output", "100K", "--timeout", "60s", timeout=90)
    assert reason(result) == ("output_limit", 137)
    assert len(result["stdout"] + result["stderr"]) == 100 << 10


@pytest.mark.parametrize("kind", ["pipe", "file"])
def test_output_is_limited_on_its_way_out_too(carrel, tmp, kind):
    with open(tmp / "out", "wb") as file:
        done = carrel.run("--output", "100K", "--timeout", "600s", "--", "yes", **({"stdout": file} if kind == "file" else {}))
    assert done.returncode == 137
    assert len((tmp / "out").read_text() if kind == "file" else done.stdout) == 100 << 10


def test_output_up_to_the_limit_is_allowed(carrel):
    result = carrel.sh_json("head -c 102400 /dev/zero | tr '\\0' x", "--output", "100K")
    assert reason(result) == ("exited", 0)
    assert result["truncated"] is False and len(result["stdout"]) == 102400


def test_captured_output_has_a_limit_of_its_own(carrel):
    result = carrel.run_json("--timeout", "200s", "--", "yes", timeout=240)
    assert reason(result) == ("output_limit", 137)
    assert len(result["stdout"]) == 64 * MB


SHARE = """
import os, time, sys
wall, cpu = time.monotonic(), time.process_time()
while time.monotonic() - wall < 2: pass
print(wall, time.monotonic(), time.process_time() - cpu)
"""


def share_of(rows):
    """What they used in all of the time from the first one's begin to the last one's end."""
    begins, ends, used = zip(*(map(float, row.split()) for row in rows))
    return sum(used) / (max(ends) - min(begins))


def free_share():
    """What one process gets of the machine just now, without any limit."""
    return share_of([subprocess.run(["/usr/bin/python3", "-c", SHARE], stdout=subprocess.PIPE, check=True).stdout])


@pytest.mark.serial
@pytest.mark.shipped
@pytest.mark.parametrize("runs", [[("0.5", 1), ("0.5", 3)], [("1", 3)]])
def test_cpus_are_shared_out(carrel, runs):
    """Side by side where one processor is enough for them."""
    def used(cpus, processes):
        done = carrel.sh(f"for i in $(seq {processes}); do python3 -c '{SHARE}' & done; wait", "--cpus", cpus, timeout=90)
        assert len(done.stdout.splitlines()) == processes, done
        return share_of(done.stdout.splitlines())

    def all_of_it():
        """Never more; not less either, as far as this machine has it, which others may be using."""
        with concurrent.futures.ThreadPoolExecutor() as pool:
            shares = [(share, float(cpus)) for share, (cpus, _) in zip(pool.map(used, *zip(*runs)), runs)]
        assert all(share < cpus * 1.25 for share, cpus in shares), shares
        return all(share > cpus * 0.6 or share > 0.6 * free_share() for share, cpus in shares)
    assert any(all_of_it() for _ in range(5))


# A timer's signal comes also to a process that is stopped, and SIGCONT lets it go on.
CONTINUED = """
import ctypes, signal, struct, time
signal.signal(signal.SIGCONT, lambda *_: None) if HANDLED else None
libc, timer = ctypes.CDLL(None, use_errno=True), ctypes.c_void_p()
assert libc.timer_create(time.CLOCK_MONOTONIC, struct.pack("qii48x", 0, signal.SIGCONT, 0), ctypes.byref(timer)) == 0
assert libc.timer_settime(timer, 0, struct.pack("4q", 0, 1_000_000, 0, 1_000_000), None) == 0
end = time.monotonic() + 4
while time.monotonic() < end: pass
"""


@pytest.mark.serial
@pytest.mark.shipped
def test_a_process_that_continues_itself_gets_no_more_cpus(carrel):
    """With a handler and without, side by side."""
    def run(is_handled):
        return carrel.py_json(f"HANDLED = {is_handled}" + CONTINUED, "--cpus", "0.2", "--timeout", "30s")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for result in pool.map(run, [True, False]):
            if reason(result) == ("cpu_limit", 124):
                assert result["cpu_ms"] < 1000, result
            else:
                assert reason(result) == ("exited", 0), result
                assert result["cpu_ms"] / result["duration_ms"] < 0.3, result


def test_a_sandbox_held_to_few_cpus_ends_as_ever(carrel):
    assert carrel.sh("exit 6", "--cpus", "0.1").returncode == 6


def test_the_first_limit_is_the_reason(carrel):
    result = carrel.py_json("x = [bytearray(b'x' * 1048576) for _ in range(256)]; import signal; signal.pause()",
                            "--memory", "64M", "--timeout", "60s", "--cpu-time", "60s", timeout=90)
    assert reason(result) == ("memory_limit", 137)
    result = carrel.sh_json(f"({BURN}) & sleep 1000", "--cpu-time", "30s", "--timeout", "0.5s", "--output", "1K")
    assert reason(result) == ("timeout", 124)
    result = carrel.sh_json("yes", "--output", "1K", "--timeout", "60s", "--cpu-time", "60s", timeout=90)
    assert reason(result) == ("output_limit", 137)


def test_the_mechanism_is_named(carrel):
    assert carrel.run_json("--", "true")["limits"] == MECHANISM


@pytest.mark.needs_cgroup
def test_a_cgroup_is_gone_soon_after(carrel):
    """By its carrel's pid: those of others come and go."""
    with carrel.start("run", "--", "sh", "-c", "echo ready; read go", stdin=subprocess.PIPE) as process:
        assert process.stdout.readline() == "ready\n"
        own = lambda: [path for path in cgroups() if os.path.basename(path).startswith(f"carrel-{process.pid}-")]
        assert own()
        process.stdin.close()
        process.wait(120)
    assert eventually(lambda: not own(), 30)


def test_a_child_cannot_leave_its_limits_by_a_new_session(carrel):
    result = carrel.py_json("import os\nif os.fork() == 0:\n  os.setsid()\n  if os.fork() == 0:\n"
                            "    x = [bytearray(b'x' * 1048576) for _ in range(256)]\nimport signal; signal.pause()",
                            "--memory", "64M", "--timeout", "60s", timeout=90)
    assert reason(result) == ("memory_limit", 137)


def test_two_hundred_and_fifty_six_tasks_are_the_default(carrel):
    assert 1000 <= int(carrel.py(COUNT_FORKS).stdout) < 1024


def test_a_thousand_and_twenty_four_descriptors_are_the_default(carrel):
    assert carrel.sh("ulimit -n").stdout == "1024\n"


@pytest.mark.parametrize("size", ["16M", "16MB", "16MiB", "16m", "16384K", "16777216"])
def test_sizes_are_read_in_their_units(carrel, size):
    done = carrel.py("import os; s = os.statvfs('/workspace'); print(s.f_blocks * s.f_frsize)", "--disk", size)
    assert int(done.stdout) == 16 * MB
