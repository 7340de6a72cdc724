"""Every example in the documents does what it shows.

README.md and docs/: fenced blocks marked `console`; man pages: .EX/.EE blocks. In both, `$ command` lines are run in
order (with `> ` for more lines of the same command), and what follows is their output, stdout and stderr together. `...` stands for
anything: alone on a line for any number of lines, within a line for any text. A block is one shell in one directory, which
is empty at first, but for `examples` of the tree where the block names it. Blocks of another mark, and lines beginning with `# `, are not run.
README.md and each page of docs/guide are one such block, as their reader types them: in one shell, with one home.

Where a block is about environments, its home has the packages that most of them use in its store already, but no
environment: what isn't there is fetched from the index this host is configured for. README.md begins with an empty home."""
import contextlib
import os
import re
import socket
import subprocess

import pytest
from harness import CARREL, CLIENTS, TREE, copy_home, locked

GUIDE = sorted((TREE / "docs/guide").glob("*.md"))
README = TREE / "README.md"
IN_ORDER = [README, *GUIDE]
DOCUMENTS = [path for path in (*IN_ORDER, TREE / "SECURITY.md", TREE / "ARCHITECTURE.md", TREE / "CONTRIBUTING.md", TREE / "CHANGELOG.md",
                               *sorted((TREE / "docs").glob("*.md")), *sorted((TREE / "docs/security").glob("*.md"))) if path.exists()]
PAGES = sorted((TREE / "man").glob("*.[1-8]"))
ENVIRONMENTS = re.compile(r"carrel (env (build|warm)|install|deploy )|carrel (run|create) .*--(pip|env|context)")
PACKAGES = ("requests", "fastapi", "uvicorn", "pydantic>=2"), ("pydantic<2",)


def blocks_of_markdown(path):
    inside, block, begin = False, [], 0
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if inside and line.startswith("```"):
            yield begin, block
            inside = False
        elif inside:
            block.append(line)
        elif line.strip() == "```console":
            inside, block, begin = True, [], number


def plain(line):
    """A line of a man page's example as a reader sees it."""
    line = re.sub(r"\\f[BIRP]|\\f\([A-Z]{2}|\\f\[\w*\]|\\&", "", line)
    for escape, text in (("\\-", "-"), ("\\(aq", "'"), ("\\(dq", '"'), ("\\(ti", "~"), ("\\(ha", "^"), ("\\(ga", "`"),
                         ("\\e", "\\"), ("\\(rs", "\\")):
        line = line.replace(escape, text)
    return line


def blocks_of_page(path):
    inside, block, begin = False, [], 0
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith((".EX", ".Bd -literal")):
            inside, block, begin = True, [], number
        elif line.startswith((".EE", ".Ed")) and inside:
            if any(entry.startswith("$ ") for entry in block):
                yield begin, block
            inside = False
        elif inside:
            block.append(plain(line))


def steps(block):
    """[(command, [expected lines])] of a block."""
    found = []
    for line in block:
        if line.startswith("$ "):
            found.append([line[2:], []])
        elif line.startswith("> ") and found and not found[-1][1]:
            found[-1][0] += "\n" + line[2:]
        elif found:
            found[-1][1].append(line)
        else:
            assert not line.strip(), f"output before any command: {line!r}"
    return found


def matches(expected, actual):
    """Whether the lines fit, `...` standing for anything."""
    pattern = ""
    for line in expected:
        if line.strip() == "...":
            pattern += r"(?:.*\n)*"
        else:
            pattern += ".*".join(map(re.escape, line.rstrip().split("..."))) + r"[ \t]*\n"
    return re.fullmatch(pattern, "".join(line + "\n" for line in actual)) is not None


def examples():
    for path in DOCUMENTS:
        blocks = [(f"{path.name}:{begin}", block) for begin, block in blocks_of_markdown(path)]
        if path in IN_ORDER and blocks:
            blocks = [("-".join(path.relative_to(TREE).parts), [line for _, block in blocks for line in block])]
        for name, block in blocks:
            # Environments are built by every user in tests/env.
            marks = [pytest.mark.once] if ENVIRONMENTS.search("\n".join(block)) else []
            if path == README:
                marks = [pytest.mark.needs_plain_user]      # the usual reader
            yield pytest.param(path, block, id=name, marks=marks)
    for path in PAGES:
        for begin, block in blocks_of_page(path):
            yield pytest.param(path, block, id=f"{path.name}:{begin}", marks=pytest.mark.once)


@pytest.fixture(scope="session")
def packages(common):
    """A home with packages, made once for all workers."""
    home = common / "packages"
    with locked(common / "packages.lock"):
        for number, specs in enumerate(PACKAGES):
            env = {**CLIENTS, "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(common), "CARREL_HOME": str(home)}
            done = subprocess.run([CARREL, "env", "build", f"packages{number}", *(f"--pip={spec}" for spec in specs)], env=env,
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
            assert done.returncode == 0, f"the packages of the examples can't be fetched: {done.stderr}"
    return home


def run_block(block, place, env):
    """[(command, expected lines, actual lines)]: one shell for the whole block, as a reader has it."""
    todo, mark = list(steps(block)), "-- end of a step --"
    script = "\n".join(f"{command}\nprintf '\\n{mark}\\n'" for command, _ in todo)
    done = subprocess.run(["bash", "-c", script], cwd=place, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=600)
    outputs = done.stdout.decode(errors="replace").split(f"\n{mark}\n")
    assert len(outputs) == len(todo) + 1, f"the block ended early: {outputs[-1]}"
    return [(command, expected, output.splitlines()) for (command, expected), output in zip(todo, outputs)]


def free_port():
    """For an example that listens; several run at once. Of those that the kernel gives to nobody who asks for any."""
    for port in range(10000 + os.getpid() % 10000, 32000):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return str(port)
    raise AssertionError("no port is free")


@pytest.mark.parametrize("path, block", examples())
def test_an_example_does_what_it_shows(path, block, tmp_path, short_home, request):
    place, home, text = tmp_path / "place", short_home, "\n".join(block)
    place.mkdir()
    if "examples/" in text:
        (place / "examples").symlink_to(TREE / "examples")
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    (bin_ / "carrel").symlink_to(CARREL)
    env = {"PATH": f"{bin_}:/usr/local/bin:/usr/bin:/bin", "HOME": str(home), "LANG": "C.UTF-8", "CARREL_HOME": str(home / ".carrel"),
           "PORT": free_port()}
    if "--allow-domain registries" in text or ENVIRONMENTS.search(text):
        env.update(CLIENTS)
    if ENVIRONMENTS.search(text) and path != README:
        copy_home(request.getfixturevalue("packages"), home / ".carrel", leave=("envs", "run", "audit"))
    try:
        for command, expected, actual in run_block(block, place, env):
            for lines in (expected, actual):
                while lines and not lines[-1].strip():
                    lines.pop()
            assert matches(expected, actual), f"$ {command}\nexpected:\n" + "\n".join(expected) + "\ngot:\n" + "\n".join(actual)
    finally:
        if (home / ".carrel/run/lock").exists():    # an example that needed a daemon has started one
            subprocess.run([CARREL, "serve", "--stop", "--force"], env={**env, "CARREL_HOST": "local"}, check=True, capture_output=True, timeout=90)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_is_well_formed(path):
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", path], capture_output=True, text=True)
    assert done.stdout + done.stderr == ""


def sections(path):
    """What links name the headings of a document by."""
    headings = re.findall(r"^#+ (.*)", path.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_within_the_tree_lead_somewhere(path):
    for target, part in re.findall(r"\]\((?!https?:|mailto:)([^)#]*)(?:#([^)]+))?\)", path.read_text()):
        there = path.parent / target if target else path
        assert there.exists(), target
        assert not part or part in sections(there), f"{target}#{part}"


def test_the_first_pages_stay_short():
    assert len(README.read_text().splitlines()) <= 200
    glossary = (TREE / "ARCHITECTURE.md").read_text().partition("\n## The words\n")[2]
    words = [word for row in re.findall(r"^\| ([^|]+) \|", glossary, re.M)[1:] for word in row.split(",")]
    assert 30 <= len(words) <= 40 and len(set(words)) == len(words)


def test_the_files_that_the_architecture_names_exist():
    named = re.findall(r"`((?:\w+/)+[\w.]+)`", (TREE / "ARCHITECTURE.md").read_text())
    assert len(named) > 40 and [path for path in named if not (TREE / path).exists() and not (TREE / "src" / path).exists()] == []


def test_the_guide_lists_its_pages():
    listed = set(re.findall(r"\]\(([\w-]+\.md)\)", (TREE / "docs/guide/README.md").read_text()))
    assert listed == {path.name for path in GUIDE} - {"README.md"}


def test_matching_is_strict_where_nothing_is_left_open():
    assert matches(["a", "b ... d"], ["a", "b c d"]) and matches(["...", "z"], ["x", "y", "z"]) and matches(["..."], [])
    assert not matches(["a"], ["a", "b"]) and not matches(["a", "b"], ["a"]) and not matches(["a.c"], ["abc"])


def test_the_documents_hold_examples():
    """Otherwise nothing of the above would be tested."""
    assert not DOCUMENTS or list(examples())
