"""The manual and --help name the same options, and the manual names every command."""
import re
import subprocess

import pytest
from harness import CARREL, TREE

COMMANDS = ["run", "doctor"]


def output(*argv):
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def page(name):
    """A page as a reader sees it, without overstrikes."""
    return re.sub(r".\x08", "", output("mandoc", "-T", "utf8", "-O", "width=200", TREE / "man" / name)).replace("−", "-")


@pytest.mark.parametrize("command", COMMANDS)
def test_the_manual_and_help_name_the_same_options(command):
    helped = set(re.findall(r"(?<![\w-])--([a-z][a-z-]+)", output(CARREL, command, "--help").split("examples:")[0]))
    named = page(f"carrel-{command}.1")
    section = re.search(r"(?:Options|options are as follows:)\n(.*?)\n(?=\S|   \S)", named, re.S).group(1)
    assert set(re.findall(r"(?<![\w-])--([a-z][a-z-]+)", section)) | {"help"} == helped


def test_the_manual_names_every_command():
    commands = re.findall(r"^  (\w+) {2,}", output(CARREL, "help"), re.M)
    assert commands
    for command in commands:
        assert re.search(rf"^ +{command}\b", page("carrel.1"), re.M), command
