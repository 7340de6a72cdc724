import pathlib
import subprocess
import tempfile

import pytest


@pytest.fixture
def short_home():
    """A home with a short path: curl takes no socket's name of more than 107 bytes."""
    home = pathlib.Path(tempfile.mkdtemp(prefix="carrel-tests.", dir="/var/tmp"))
    yield home
    subprocess.run(["rm", "-rf", home], check=True)
