"""The units for systemd: what is installed is what systemd understands."""
import os
import shutil
import subprocess

import pytest
from harness import CARREL, TREE


@pytest.mark.once
@pytest.mark.shipped
@pytest.mark.parametrize("manager", ["system", "user"])
def test_systemd_has_nothing_to_say_about_the_units(tmp_path, manager):
    if not shutil.which("systemd-analyze"):
        pytest.skip("no systemd here")
    units = []
    for unit in sorted((TREE / "dist/systemd" / manager).iterdir()):
        text = unit.read_text()
        assert "/usr/local/bin/carrel serve" in text
        units.append(tmp_path / unit.name)
        units[-1].write_text(text.replace("/usr/local/bin/carrel", CARREL))
    assert [unit.name for unit in units] == ["carrel.service", "carrel.socket"]
    done = subprocess.run(["systemd-analyze", f"--{manager}", "--man=no", "--recursive-errors=no", "verify", *units],
                          env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path), "HOME": "/home/somebody"}, capture_output=True, text=True)
    said = [line for line in done.stderr.splitlines() if "carrel" in line]
    assert not said and done.returncode == 0, done.stderr


@pytest.mark.once
@pytest.mark.shipped
def test_make_install_puts_everything_where_it_is_looked_for(tmp_path):
    subprocess.run([TREE / "tools/install-files", CARREL, tmp_path, "/opt/x"], check=True, stdout=subprocess.DEVNULL)
    prefix = tmp_path / "opt/x"
    for path in ("bin/carrel", "bin/carrel-build", "lib/carrel/carreld", "lib/carrel/carrel-blob", "share/man/man1/carrel-serve.1",
                 "share/man/man1/carrel-create.1", "share/man/man1/carrel-shell.1",
                 "lib/systemd/system/carrel.service", "share/systemd/user/carrel.socket"):
        assert (prefix / path).exists(), path
    assert "ExecStart=/opt/x/bin/carrel serve" in (prefix / "lib/systemd/system/carrel.service").read_text()
