"""`probe` run in a sandbox: each thing it tries is a test of its own."""
# security: sandbox, daemon
import atexit
import os
import pathlib
import pty
import shutil
import subprocess
import tempfile

import pytest

from daemons import serving
from harness import Carrel

HERE = pathlib.Path(__file__).parent


def build_probe():
    """Static, so that it needs nothing inside; compiled here, where whoever runs the tests can read it."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="carrel-test-probe."))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    directory.chmod(0o755)
    subprocess.run(["cc", "-static", "-O1", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-o", directory / "probe",
                    *sorted(HERE.glob("probe*.c"))], check=True)
    return directory / "probe"


PROBE = build_probe()
NAMES = subprocess.run([PROBE, "--list"], check=True, capture_output=True, text=True).stdout.split()
# Setgid bits are refused only where a directory of the host is writable.
EVERYWHERE = [name for name in NAMES if "setgid" not in name]


def lines_of(output):
    """{name: rest of its line} of what probe prints."""
    found = {}
    for line in output.splitlines():
        verdict, name, *detail = line.split(" ", 2)
        found[name] = (verdict, *detail)
    return found


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """What probe says in a sandbox with every default; it comes in by stdin, so that nothing more is mounted."""
    carrel = Carrel(tmp_path_factory.mktemp("home"))
    done = carrel.run("--", "sh", "-c", "cat >probe && chmod +x probe && exec ./probe all", input=PROBE.read_bytes(),
                      text=False, timeout=120)
    assert done.returncode in (0, 1), done
    return lines_of(done.stdout.decode())


@pytest.fixture(scope="module")
def answers_in_directory(tmp_path_factory):
    """The same, and what it left, with a host directory as the workspace."""
    carrel = Carrel(tmp_path_factory.mktemp("home"))
    directory = tmp_path_factory.mktemp("dir")
    done = carrel.run("--dir", directory, "-v", f"{PROBE}:/probe:ro", "--", "/probe", "all", timeout=120)
    assert done.returncode in (0, 1), done
    return lines_of(done.stdout), directory


@pytest.fixture(scope="module", params=["workspace", "root"])
def answers_in_workspace(tmp_path_factory, request):
    """The same in a workspace of a daemon, whose sandbox stays and is started in another way, for each view."""
    with serving(tmp_path_factory.mktemp("daemon")) as daemon:
        assert daemon("create", "probe", "--view", request.param).returncode == 0
        done = daemon("exec", "probe", "--", "sh", "-c", "cat >probe && chmod +x probe && exec ./probe all",
                      input=PROBE.read_bytes(), text=False, timeout=120)
        assert done.returncode in (0, 1), done
    return lines_of(done.stdout.decode())


@pytest.mark.parametrize("name", EVERYWHERE)
def test_probe(answers, name):
    assert answers[name] == ("ok",)


@pytest.mark.parametrize("name", NAMES)
def test_probe_in_directory(answers_in_directory, name):
    assert answers_in_directory[0][name] == ("ok",)


@pytest.mark.parametrize("name", EVERYWHERE)
def test_probe_in_workspace(answers_in_workspace, name):
    assert answers_in_workspace[name] == ("ok",)


def test_no_special_file_is_left_in_the_directory(answers_in_directory):
    for path in answers_in_directory[1].rglob("*"):
        mode = path.lstat().st_mode
        assert not mode & 0o6000, f"{path} has mode {mode:o}"
        assert not mode & 0o020000, f"{path} is a device"


@pytest.mark.parametrize("options", ["-t", "-it"])
def test_the_terminal_takes_no_input_from_inside(carrel, options):
    master, slave = pty.openpty()
    try:
        done = carrel.run(options, "-v", f"{PROBE}:/probe:ro", "--", "/probe", "own_terminal_takes_no_input",
                          "nothing_can_be_typed_into_a_terminal", stdin=slave, stdout=slave)
        os.set_blocking(master, False)
        assert done.returncode == 0, os.read(master, 65536)
    finally:
        os.close(master)
        os.close(slave)


def test_a_terminal_that_is_handed_in_takes_no_input(carrel):
    master, slave = pty.openpty()
    try:
        done = carrel.run("-v", f"{PROBE}:/probe:ro", "--", "/probe", "own_terminal_takes_no_input", stdin=slave)
        assert (done.returncode, done.stdout) == (0, "ok own_terminal_takes_no_input\n")
        os.set_blocking(master, False)
        with pytest.raises(BlockingIOError):
            os.read(master, 1)
    finally:
        os.close(master)
        os.close(slave)


def test_probe_notices_a_missing_wall():
    """The same program outside: it must be able to fail."""
    done = subprocess.run([PROBE, "capability_sets_are_empty", "a_filter_is_loaded", "landlock_is_on", "clone3",
                           "personality_read_implies_exec", "sys_holds_files_of_ours_only"], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout.count("FAIL") == 6, done.stdout
