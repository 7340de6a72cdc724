"""--disk bounds /workspace and what belongs to it: a file that lies elsewhere may be larger, a file in there ends the command soon."""
# security: limits
import os

import pytest
from workspaces import created, json_of, sh

MB = 1 << 20
LIMITS = ("--disk", "20M", "--tmp", "100M", "--memory", "400M")
WRITES = "head -c 30M /dev/zero >{0}/big && stat -c %s {0}/big && rm {0}/big"
LARGER = str(30 * MB)
# One that was deleted and is open or mapped still: the tree doesn't show it.
HOLDS = ("import mmap, os\nfor how in 'open', 'mapped':\n  f = os.open('{0}/gone', os.O_RDWR | os.O_CREAT)\n  os.unlink('{0}/gone')\n"
         "  for _ in range(30): os.write(f, bytes(1 << 20))\n  m = mmap.mmap(f, 4096)\n  if how == 'mapped': os.close(f)\n"
         "import subprocess, time\ntime.sleep(1); print('held')")
UNBOUNDED = {
    "a directory in place of /workspace": ("--dir {d}", "/workspace"), "a directory of the host": ("-v {d}:/mnt/d", "/mnt/d"),
    "a directory of the host below /workspace": ("-v {d}:/workspace/d", "/workspace/d"), "a shared tree": ("--attach big:/mnt/tree", "/mnt/tree"),
    "/tmp": ("", "/tmp"), "/dev/shm": ("", "/dev/shm"),
}
BOUNDED = {"/workspace": "/workspace", "the cache": "/.cache", "a directory below /workspace": "/workspace/a/b", "its home": "$HOME"}


@pytest.fixture
def place(daemon, tmp_path):
    (tmp_path / "d").mkdir()
    assert daemon("tree", "create", "big").returncode in (0, 125)
    return tmp_path / "d"


@pytest.mark.parametrize("where", UNBOUNDED)
def test_a_file_outside_the_workspace_may_be_larger_than_its_disk(daemon, place, where):
    options, path = UNBOUNDED[where]
    with created(daemon, *LIMITS, *options.format(d=place).split()) as name:
        done = sh(daemon, name, WRITES.format(path))
        assert (done.returncode, done.stdout.strip(), done.stderr) == (0, LARGER, ""), done
        info = json_of(daemon("info", name, "-o", "json"))
        assert info["limits"]["disk_bytes"] == 20 * MB and info["disk_usage_bytes"] < 5 * MB, info


@pytest.mark.parametrize("where", ["a directory in place of /workspace", "a directory of the host", "a shared tree"])
def test_a_deleted_file_outside_the_workspace_is_not_charged_to_it(daemon, place, where):
    options, path = UNBOUNDED[where]
    with created(daemon, *LIMITS, *options.format(d=place).split()) as name:
        done = daemon("exec", name, "-o", "json", "--", "python3", "-c", HOLDS.format(path))
        assert (done.returncode, json_of(done)["stdout"]) == (0, "held\n"), done


@pytest.mark.parametrize("where", BOUNDED)
@pytest.mark.parametrize("how", ["head -c 3G /dev/zero >{0}/big", "fallocate -l 600M {0}/big && sleep 20"])
def test_one_runaway_file_is_stopped_soon(daemon, where, how):
    with created(daemon, *LIMITS) as name:
        done = daemon("exec", name, "-o", "json", "--", "sh", "-c", f"mkdir -p /workspace/a/b; {how.format(BOUNDED[where])}")
        result = json_of(done)
        assert (done.returncode, result["reason"], result["exit_code"]) == (137, "disk_limit", 137), result
        assert sh(daemon, name, f"stat -c %s {BOUNDED[where]}/big; rm -f {BOUNDED[where]}/big").returncode == 0
        done = sh(daemon, name, "head -c 1M /dev/zero >/workspace/small && echo room")
        assert done.stdout == "room\n", done


def test_the_limit_of_a_shell_is_not_the_disk_limit(daemon):
    """A command that set a limit of its own, and met it, is not told that the disk is full."""
    with created(daemon, *LIMITS) as name:
        done = daemon("exec", name, "-o", "json", "--", "sh", "-c", "ulimit -f 8; head -c 1M /dev/zero >x")
        assert json_of(done)["reason"] == "exited" and done.returncode == 153, done


def test_output_of_a_background_command_is_not_cut_at_the_disk_limit(daemon):
    with created(daemon, *LIMITS) as name:
        done = daemon("exec", "-d", name, "--", "sh", "-c", "head -c 45M /dev/zero | tr '\\0' x; echo; echo all")
        assert done.returncode == 0, done
        id = done.stdout.strip()
        assert daemon("wait", id).returncode == 0
        assert daemon("logs", id).stdout.endswith("x\nall\n")


@pytest.mark.parametrize("options, path", [("--dir {d} --disk 20M --tmp 100M", "/tmp"), ("--disk 20M --tmp 100M", "/tmp"),
                                           ("--dir {d} --disk 20M -v {e}:/mnt/e", "/mnt/e"), ("--disk 20M -v {e}:/mnt/e", "/mnt/e"),
                                           ("--dir {d}", "/workspace"), ("--dir {d} --disk 20M --tmp 100M", "/dev/shm")])
def test_run_bounds_its_workspace_alone(daemon, tmp_path, options, path):
    """carrel run needs no daemon; here it is the same program."""
    (tmp_path / "d").mkdir()
    (tmp_path / "e").mkdir()
    given = options.format(d=tmp_path / "d", e=tmp_path / "e").split()
    done = daemon("run", *given, "--", "sh", "-c", WRITES.format(path))
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, LARGER, ""), done
    if path.startswith("/mnt"):
        done = daemon("run", *given, "-o", "json", "--", "python3", "-c", HOLDS.format(path))
        assert (done.returncode, json_of(done)["stdout"]) == (0, "held\n"), done


def test_run_stops_one_runaway_file_in_a_directory_with_a_limit(daemon, tmp_path):
    done = daemon("run", "--dir", tmp_path, "--disk", "20M", "-o", "json", "--", "sh", "-c", "head -c 3G /dev/zero >big")
    assert (done.returncode, json_of(done)["reason"]) == (137, "disk_limit"), done
    assert os.path.getsize(tmp_path / "big") < 3 << 30
