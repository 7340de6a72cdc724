"""The fixtures of the black-box tests.

Every test is checked for what it leaves: orphans of a carrel come to the test process (it is a subreaper), so a process
that survived is found wherever it hid, also while other tests run beside this one."""
import contextlib
import ctypes
import os
import signal
import subprocess

import pytest

from harness import CARREL, IS_ROOT, MECHANISM, OWN_PLACES, PATH, SANITIZED, Carrel, check_mounts, dead_cgroups, descendants, files, mounts, what_stays

pytest_plugins = ["outcomes"]
PR_SET_CHILD_SUBREAPER = 36

ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
# A shell ignores SIGINT for what it starts in the background, nohup SIGHUP, and who is started from there would too.
for signo in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(signo) == signal.SIG_IGN:
        signal.signal(signo, lambda *_: None)


# The suites that root runs with the sanitised programs, too; and marks of tests that a plain user leaves out, or root with those programs.
PAIRED, UNPAIRED = ("api", "fault"), ("shipped", "once", "needs_root", "needs_cgroup")


def pytest_collection_modifyitems(config, items):
    """Each half of the tests leaves out what is about the other one's id: that is no skip."""
    for item in items:
        if item.path.parent.name in PAIRED and not any(map(item.get_closest_marker, UNPAIRED)):
            item.add_marker("paired")
    other = "needs_plain_user" if IS_ROOT else "needs_root"
    # Fault points are in the sanitised programs only.
    others = [other] if SANITIZED else [other, "needs_faults"]
    left_out = [item for item in items if any(map(item.get_closest_marker, others))]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]
    for item in items:
        if item.get_closest_marker("needs_cgroup") and MECHANISM == "watchdog":
            item.add_marker(pytest.mark.skip(reason="no writable cgroup here"))


@pytest.fixture(scope="session")
def common(tmp_path_factory):
    """A directory that all workers of this run have in common."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if base.name.startswith("popen-") else base


@pytest.fixture(scope="session", autouse=True)
def own_places(tmp_path_factory):
    OWN_PLACES.add(str(tmp_path_factory.getbasetemp()))


@pytest.fixture
def carrel(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    return Carrel(home)


@pytest.fixture
def tmp(tmp_path):
    """A directory of the test's own, on a path the sandbox's outside uid could walk."""
    directory = tmp_path / "files"
    directory.mkdir()
    return directory


@pytest.fixture
def other_user():
    """What makes a command of root's that of a plain user, 12345."""
    prefix = ["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups", "--"]
    if subprocess.run([*prefix, CARREL, "run", "--", "true"], cwd="/", env={"PATH": PATH}, stdin=subprocess.DEVNULL,
                      capture_output=True).returncode:
        pytest.skip("carrel doesn't run here as another user")
    return prefix


@pytest.fixture(autouse=True)
def nothing_survives():
    """No process and no mount is there after the test that was not there before it."""
    processes_before, mounts_before = descendants(), mounts()
    yield
    left = lambda: {pid: what for pid, what in descendants().items() if pid not in processes_before}
    survivors = what_stays(left)
    for pid in survivors:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    assert not survivors, f"processes survived: {survivors}"
    check_mounts(mounts_before)


@pytest.fixture
def no_leftovers(carrel):
    """Also no cgroup and no file: at the latest when the next carrel has run."""
    carrel.run("--", "true")
    cgroups_before, files_before = dead_cgroups(), files(carrel.home)
    yield
    carrel.run("--", "true")
    stayed = what_stays(lambda: dead_cgroups() - cgroups_before)
    assert not stayed, f"cgroups stayed: {stayed}"
    files_left = what_stays(lambda: files(carrel.home) - files_before)
    assert not files_left, f"files stayed: {files_left}"
