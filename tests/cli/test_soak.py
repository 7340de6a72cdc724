"""Hundreds of runs leave the machine as it was."""
# security: sandbox
import concurrent.futures
import os

import pytest
from harness import dead_cgroups, descendants, eventually, files, mounts

RUNS = 400
# Each kind of end, and its exit code.
KINDS = [
    (["--", "true"], 0),
    (["--", "sh", "-c", "sleep 1000 & setsid sleep 1000 & exit 3"], 3),
    (["-o", "json", "--", "sh", "-c", "echo x > /workspace/x; echo x > /tmp/x; mkfifo /tmp/f"], 0),
    (["--timeout", "0.2s", "--", "sleep", "1000"], 124),
    (["--output", "1K", "--", "yes"], 137),
    (["--", "no-such-command"], 127),
    (["--memory", "16M", "--pids", "20", "--cpus", "1", "--", "sh", "-c", "kill -9 $$"], 137),
    (["-v", "/usr/share:/data:ro", "--", "ls", "/data"], 0),
    (["--dir", "{dir}", "--", "sh", "-c", "f=$(mktemp ./XXXXXX) && rm $f"], 0),
    (["--memory", "0", "--", "true"], 125),
    (["--", "touch", "/dev/shm/{mark}"], 0),
]


@pytest.mark.serial
@pytest.mark.shipped
def test_hundreds_of_runs_fifty_at_a_time_leave_nothing(carrel, tmp):
    carrel.run("--", "true")
    what = lambda: (mounts(), dead_cgroups(), files(carrel.home), set(descendants()))
    before = what()
    mark = f"carrel-soak-{os.getpid()}"

    def one(n):
        args, code = KINDS[n % len(KINDS)]
        done = carrel.run(*(arg.format(dir=tmp, mark=mark) for arg in args), timeout=120)
        return None if done.returncode == code else (args, code, done.returncode, done.stderr)

    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        wrong = [result for result in pool.map(one, range(RUNS)) if result]
    assert not wrong, (len(wrong), wrong[:3])
    carrel.run("--", "true")
    left = lambda: [after - there for after, there in zip(what(), before)]
    assert eventually(lambda: not any(left()), 20), left()
    assert not [name for name in os.listdir("/dev/shm") if mark in name]
    assert list(tmp.iterdir()) == []


@pytest.mark.serial
@pytest.mark.shipped
def test_fifty_at_once_are_each_alone(carrel):
    """Same names inside, no sandbox sees another's."""
    def one(n):
        return carrel.sh(f"echo {n} > /tmp/name; echo {n} > /workspace/name; cat /tmp/name /workspace/name; ls /proc | grep -c '^[0-9]'", timeout=120)
    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        for n, done in enumerate(pool.map(one, range(200))):
            first, second, processes = done.stdout.split()
            assert first == second == str(n) and int(processes) <= 5
