"""The manual and --help name the same options, and the manual names every command."""
import re
import subprocess

import pytest
from harness import CARREL, TREE

# Commands of a page whose name is another one's.
APPROVAL = ["approval ls", "approval show", "approval approve", "approval deny"]
CASE = ["case run", "case ls", "case rm"]
CODE = ["code run"]
TOOL = ["tool forge", "tool install", "tool call", "tool ls", "tool show", "tool logs"]
TOKEN = ["token create", "token ls", "token rm"]
DEPLOYMENT = ["package ls", "package rm", "deploy", "deployment ls", "deployment show", "deployment logs", "deployment restart",
              "deployment rollback", "deployment rm"]
SNAPSHOT = ["snapshot create", "snapshot ls", "snapshot rollback", "snapshot push", "fork"]
COMMANDS = ["run", "serve", "doctor", "events", "audit", "home"]
# Pages that several commands share, each with a section of its own; what all of them take stands before those.
SHARED = [("workspace", command) for command in ("create", "ls", "info", "update", "top", "rm", "restore", "install", "uninstall", "cp")] + [
    ("exec", command) for command in ("exec", "shell", "ps", "logs", "wait", "attach", "kill")]


def output(*argv):
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def page(name):
    """A page as a reader sees it, without overstrikes."""
    return re.sub(r".\x08", "", output("mandoc", "-T", "utf8", "-O", "width=200", TREE / "man" / name)).replace("−", "-")


def options(text):
    return set(re.findall(r"(?<![\w-])--([a-z][a-z-]+)", text))


@pytest.mark.parametrize("command", COMMANDS)
def test_the_manual_and_help_name_the_same_options(command):
    helped = options(output(CARREL, command, "--help").split("examples:")[0])
    named = page(f"carrel-{command}.1")
    section = re.search(r"(?:Options|options are as follows:)\n(.*?)\n(?=\S|   \S)", named, re.S).group(1)
    assert options(section) | {"help"} == helped


@pytest.mark.parametrize("name, command", SHARED)
def test_a_shared_page_has_the_options_of_each_of_its_commands(name, command):
    named = page(f"carrel-{name}.1")
    given = lambda text: set(re.findall(r"^ +(?:-\w, |-o text \| json, )?--([a-z][a-z-]+)", text, re.M))
    common = given(named.split("   carrel create\n")[0].split("   carrel exec\n")[0])
    section = re.search(rf"^   carrel {command}\n(.*?)\n(?=\S|   \S)", named, re.S | re.M).group(1)
    helped = options(output(CARREL, command, "--help").split("options:")[1].split("examples:")[0])
    assert common == {"host", "token-file", "format"}
    assert given(section) | {"help"} == helped - common


@pytest.mark.parametrize("name, command", [("snapshot", command) for command in SNAPSHOT] + [
    ("token", command) for command in TOKEN] + [("code", command) for command in CODE] + [("case", command) for command in CASE] + [
    ("tool", command) for command in TOOL] + [("approval", command) for command in APPROVAL] + [
    ("deployment", command) for command in DEPLOYMENT])
def test_the_manual_of_a_noun_has_the_options_of_each_command(name, command):
    section = re.search(rf"^   carrel {command}\n(.*?)\n(?=\S|   \S)", page(f"carrel-{name}.1"), re.S | re.M).group(1)
    given = set(re.findall(r"^ +(?:-\w, )?--([a-z][a-z-]+)", section, re.M))
    helped = options(output(CARREL, *command.split(), "--help").split("options:")[1].split("examples:")[0])
    assert given | {"help", "host", "token-file", "format"} == helped


@pytest.mark.parametrize("command", ["add", "use", "ls", "rm"])
def test_the_manual_of_contexts_has_the_options_of_each_command(command):
    section = re.search(rf"^   carrel context {command}\n(.*?)\n(?=\S|   \S)", page("carrel-context.1"), re.S | re.M).group(1)
    given = set(re.findall(r"^ +(?:-o text \| json, )?--([a-z][a-z-]+)", section, re.M))
    assert given | {"help"} == options(output(CARREL, "context", command, "--help").split("options:")[1].split("examples:")[0])


@pytest.mark.parametrize("command", ["check", "explain", "test", "lint"])
def test_the_manual_of_policies_has_the_options_of_each_command(command):
    section = re.search(rf"^   carrel policy {command}\n(.*?)\n(?=\S|   \S)", page("carrel-policy.1"), re.S | re.M).group(1)
    given = set(re.findall(r"^ +(?:-\w \w+, |-o text \| json, )?--([a-z][a-z-]+)", section, re.M))
    assert given | {"help"} == options(output(CARREL, "policy", command, "--help").split("options:")[1].split("examples:")[0])


def commands_of_env():
    return re.findall(r"^  (\w+) {2,}", output(CARREL, "env", "--help"), re.M)


def test_the_manual_of_env_has_every_command_with_its_options():
    named = page("carrel-env.1")
    assert commands_of_env()
    for command in commands_of_env():
        section = re.search(rf"^   carrel env {command}\n(.*?)\n(?=\S|   \S)", named, re.S | re.M).group(1)
        given = set(re.findall(r"^ +(?:-\w, )?--([a-z][a-z-]+)", section, re.M))
        helped = options(output(CARREL, "env", command, "--help").split("options:")[1].split("examples:")[0])
        if command == "warm":       # described once
            more = {"requirements", "pip", "extra", "group", "self-contained", "npm", "package-json", "npm-lock", "node", "node-runtime",
                    "allow-scripts", "registry"}
            assert helped | more == options(output(CARREL, "env", "build", "--help").split("examples:")[0])
        else:
            assert given | {"help"} == helped, command


def groups_of_help():
    """[(title, [command])] of `carrel help`."""
    parts = re.findall(r"^(\w.*):\n((?:  .+\n)+)", output(CARREL, "help").partition("\n\n")[2], re.M)
    return [(title, re.findall(r"^  (\w+) {2,}\w", lines, re.M)) for title, lines in parts]


def test_every_command_is_in_one_group_of_help():
    groups, every = groups_of_help(), [line.split("\t") for line in output(CARREL, "__complete", "").splitlines()]
    assert groups[0][0] == "everyday commands" and len(groups[0][1]) == 12
    assert len(set(title for title, _ in groups)) == len(groups), "a group is listed twice"
    # Completion is given each command of the list once, with its own group.
    assert [(title, name) for title, names in groups for name in names] == [(title, name) for name, _, title in every]
    assert len(set(name for name, _, _ in every)) == len(every)


def test_the_manual_has_the_groups_of_help_in_their_order():
    text = (TREE / "man/carrel.1").read_text().split(".Sh ENVIRONMENT")[0]
    parts = [part.partition("\n") for part in text.split("\n.Ss ")[1:]]
    assert [(title[0].lower() + title[1:], re.findall(r"^\.It Ic (\w+)", body, re.M)) for title, _, body in parts if ".Bl" in body] == groups_of_help()
