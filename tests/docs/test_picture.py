"""The picture of README.md shows what carrel writes: the script that made it runs again, and numbers alone may differ."""
import html
import os
import re
import subprocess

import pytest

from harness import CARREL, CLIENTS, PATH, TREE

PICTURE = TREE / "docs/terminal.svg"


def shown(picture):
    """The lines of text in it, with every number as 0."""
    lines = {}
    for y, text in re.findall(r'<text x="[\d.]+" y="(\d+)"[^>]*>(.*?)</text>', picture):
        lines[int(y)] = lines.get(int(y), "") + html.unescape(text)
    return [re.sub(r"\d+(\.\d+)*", "0", line) for _, line in sorted(lines.items())]


@pytest.mark.once
def test_the_picture_shows_what_its_commands_write(tmp_path):
    env = {"PATH": PATH, "HOME": str(tmp_path), "LANG": "C.UTF-8", **CLIENTS}
    subprocess.run([TREE / "tools/make-terminal-picture", CARREL, tmp_path / "picture.svg"], env=env, stdin=subprocess.DEVNULL, check=True, timeout=300)
    assert shown((tmp_path / "picture.svg").read_text()) == shown(PICTURE.read_text())
    assert len(shown(PICTURE.read_text())) > 20 and os.path.getsize(PICTURE) < 20_000
