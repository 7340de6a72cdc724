"""Setgid bits: allowed where no directory of the host is writable, refused elsewhere; never on their way out."""
# security: files
import os
import stat
import subprocess

import pytest

from daemons import serving

MAKERS = {
    "git init --shared": "git init -q --shared r && test -g r/.git/refs",
    "install -m 2755": "install -m 2755 /bin/true t && test -g t",
    "tar xpf": "mkdir d && chmod 2755 d && tar cf t.tar d && rmdir d && tar xpf t.tar && test -g d",
    "mkdir -m 2770": "mkdir -m 2770 d && test -g d",
}
SETUID = "cp /bin/true t; chmod u+s t; chmod 6755 t; test ! -u t"


@pytest.mark.parametrize("maker", MAKERS)
def test_setgid_works_in_a_workspace_of_its_own(carrel, maker):
    done = carrel.sh(MAKERS[maker])
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("maker", MAKERS)
def test_setgid_is_refused_on_a_directory_of_the_host(carrel, tmp, maker):
    assert carrel.sh(MAKERS[maker], "--dir", tmp).returncode != 0
    assert not [path for path in tmp.rglob("*") if path.lstat().st_mode & 0o6000]


def test_setgid_is_refused_beside_a_writable_volume_only(carrel, tmp):
    maker = MAKERS["mkdir -m 2770"]
    assert carrel.sh(maker, "-v", f"{tmp}:/data").returncode != 0
    assert carrel.sh(maker, "-v", f"{tmp}:/data:ro").returncode == 0


def test_setuid_is_refused_everywhere(carrel, tmp):
    assert carrel.sh(SETUID).returncode == 0
    assert carrel.sh(SETUID, "--dir", tmp).returncode == 0


def test_a_setgid_file_gives_nothing_inside(carrel):
    assert carrel.sh("cp /usr/bin/id . && chmod 2755 id && ./id -g").stdout == "1000\n"


def test_setgid_stays_in_the_workspace(tmp_path_factory):
    """It works there, no other user reaches the file on the host, and no copy that comes out has the bit."""
    directory = tmp_path_factory.mktemp("daemon")
    with serving(directory) as daemon:
        assert daemon("create", "w").returncode == 0
        for maker, line in MAKERS.items():
            done = daemon("exec", "w", "--", "sh", "-c", f"rm -rf /workspace/* && {line}")
            assert done.returncode == 0, (maker, done.stderr)
        assert daemon("exec", "w", "--", "sh", "-c", SETUID).returncode == 0
        assert daemon("exec", "w", "--", "sh", "-c", "rm -rf /workspace/*; install -m 2755 /bin/true t; mkdir -m 2755 d").returncode == 0
        found = subprocess.run(["find", daemon.home, "-perm", "-2000", "-path", "*/upper/*"], capture_output=True, text=True).stdout.split()
        assert sorted(map(os.path.basename, found)) == ["d", "t"]
        for path in found:
            above = [os.path.dirname(path)]
            while above[-1] != str(daemon.home):
                above.append(os.path.dirname(above[-1]))
            assert any(not os.stat(place).st_mode & (stat.S_IXOTH | stat.S_IXGRP) for place in above), path
        assert daemon("cp", "w:", directory / "out").returncode == 0
        assert {"d", "t"} <= set(os.listdir(directory / "out"))
        for path in (directory / "out").iterdir():
            assert not path.stat().st_mode & 0o6000, path
