"""What an agent does inside changes its own view only; what happens to the store itself is found and mended."""
# security: packages
import json
import os
import shutil
import signal
import subprocess

import pytest
from envs import Envs, digest
from harness import copy_home
from index_server import Index
from wheels import wheel

pytestmark = pytest.mark.once     # as another user it says the same

NATIVE = b"\x7fELF\x02\x01\x01" + bytes(9) + os.urandom(20000)


def packages(index):
    index.add(wheel("victim", "1.5", files={"victim/__init__.py": "VALUE = 'original'\n", "victim/other.py": "X = 1\n", "victim/data.txt": "data\n",
                                            "victim/_native.so": NATIVE}, scripts={"victim-tool": "victim:main"}),
              wheel("bystander"))


@pytest.fixture
def built(env, index):
    packages(index)
    env.name = env.build("agent", "--pip", "victim", "--pip", "bystander")["name"]
    return env


@pytest.fixture(scope="module")
def kept(template, tmp_path_factory):
    """An environment that is built once: the tests that use it find it as it was, and leave it so."""
    tools, source = template
    home = tmp_path_factory.mktemp("kept")
    copy_home(source, home / "carrel")
    with Index() as index:
        packages(index)
        carrel = Envs(home, tools, index)
        carrel.name = carrel.build("agent", "--pip", "victim", "--pip", "bystander")["name"]
        yield carrel
        carrel.left_nothing()


ATTACKS = {
    "edit": "f=$(python -c 'import victim; print(victim.__file__)'); echo \"VALUE = 'edited'\" > $f",
    "append": "for f in $(find /env -name '*.py' -path '*victim*'); do echo 'X = 99' >> $f; done",
    "in place, same size and time": "f=$(python -c 'import victim; print(victim.__file__)'); touch -r $f /tmp/t; "
                                    "python -c \"import sys; f=open(sys.argv[1],'r+'); f.seek(9); f.write('X')\" $f; touch -r /tmp/t $f",
    "delete": "rm -rf /env/lib/python3*/site-packages/victim",
    "delete all": "rm -rf /env/* 2>/dev/null; true",
    "truncate": "for f in $(find /env -type f); do : > $f; done",
    "chmod": "chmod -R 777 /env; chmod 4755 /env/bin/victim-tool 2>/dev/null; true",
    "bytecode": "for f in $(find /env -name '*.pyc' -path '*victim*'); do printf garbage > $f; done",
    "rename": "mv /env/bin /env/nib; mv /env/lib/python3*/site-packages/victim/data.txt /tmp/ || true",
    "link": "cd /env/lib/python3*/site-packages; ln victim/data.txt victim/hard; echo more >> victim/hard; ln -sf /etc/passwd victim/data.txt",
    "interpreter": "printf '#!/bin/sh\\necho usurped\\n' > /tmp/p; rm /env/bin/python; cp /tmp/p /env/bin/python; chmod +x /env/bin/python",
    "new files": "for n in 1 2 3; do echo 'raise SystemExit(9)' > $(echo /env/lib/python3*/site-packages)/sitecustomize.py; done",
    "xattr": "python - <<'E'\nimport os\nfor n in os.listdir('/env'):\n  for k in ('user.x', 'user.overlay.opaque', 'trusted.overlay.opaque'):\n"
             "    try: os.setxattr('/env/' + n, k, b'y')\n    except OSError: pass\nE",
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_agent_changes_its_own_view_only(kept, attack):
    before = digest(kept.store / "layers")
    meta = (kept.store / "envs" / kept.name / "lock.txt").read_bytes()
    done = kept.run("--env", kept.name, "--", "sh", "-c", ATTACKS[attack])
    assert done.returncode == 0, done.stderr
    assert digest(kept.store / "layers") == before
    assert (kept.store / "envs" / kept.name / "lock.txt").read_bytes() == meta
    script = "import victim, victim.other as o, os; print(victim.VALUE, o.X, open(os.path.dirname(o.__file__) + '/data.txt').read())"
    assert kept.python(kept.name, script) == "original 1 data\n\n"
    found = kept.json("verify", kept.name)
    assert (found["ok"], found["findings"]) == (True, [])


def test_two_sandboxes_at_once_do_not_see_each_others_edits(kept):
    script = ("import sys, victim; open(victim.__file__, 'w').write('VALUE = %r' % sys.argv[1]); print(flush=True); sys.stdin.read();"
              "print(open(victim.__file__).read())")
    with kept.start("run", "-i", "--env", kept.name, "--", "python", "-c", script, "one", stdin=-1) as one, \
            kept.start("run", "-i", "--env", kept.name, "--", "python", "-c", script, "two", stdin=-1) as two:
        one.stdout.readline(), two.stdout.readline()
        assert kept.python(kept.name, "import victim; print(victim.VALUE)") == "original\n"
        assert "one" in one.communicate(timeout=60)[0] and "two" in two.communicate(timeout=60)[0]


# ---- damage of the store itself

def site(tree, path):
    return next(tree.glob("lib/python3*/site-packages")) / path


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x40
    rewrite(path, bytes(data))


def rewrite(path, data):
    """Other bytes in a file that keeps its inode, mode, owner and times, as bad memory or a bad disk does it."""
    status = path.stat()
    mode = status.st_mode
    path.chmod(0o644)
    with open(path, "r+b") as file:
        file.truncate(0)
        file.write(data)
    path.chmod(mode & 0o7777)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def bytecode(tree):
    return next(tree.rglob("victim/__pycache__/__init__*.pyc"))


DAMAGES = {
    "truncated .so": lambda tree: rewrite(site(tree, "victim/_native.so"), NATIVE[:5000]),
    "flipped byte": lambda tree: flip(site(tree, "victim/_native.so")),
    "missing file": lambda tree: site(tree, "victim/other.py").unlink(),
    "missing directory": lambda tree: shutil.rmtree(site(tree, "victim")),
    "same-size edit": lambda tree: rewrite(site(tree, "victim/__init__.py"), b"VALUE = 'tampered'\n"),
    "bad bytecode": lambda tree: flip(bytecode(tree)),
    "empty bytecode": lambda tree: rewrite(bytecode(tree), b""),
    "extra file": lambda tree: site(tree, "victim/extra.py").write_text("evil\n"),
    "extra directory": lambda tree: site(tree, "extra").mkdir(),
    "file became a link": lambda tree: (site(tree, "victim/data.txt").unlink(), site(tree, "victim/data.txt").symlink_to("/etc/passwd")),
    "file became a directory": lambda tree: (site(tree, "victim/data.txt").unlink(), site(tree, "victim/data.txt").mkdir()),
    "mode": lambda tree: site(tree, "victim/data.txt").chmod(0o666),
    "setuid": lambda tree: site(tree, "victim/data.txt").chmod(0o4755),
    "time": lambda tree: os.utime(site(tree, "victim/other.py"), (1, 1)),
    "hard link": lambda tree: os.link(site(tree, "victim/data.txt"), tree.parent.parent.parent / "other-name"),
    "missing script": lambda tree: (tree / "bin/victim-tool").unlink(),
    "missing tree": lambda tree: shutil.rmtree(tree),
    "edited manifest": lambda tree: rewrite(tree.parent / "manifest", (tree.parent / "manifest").read_bytes().replace(b"1.5", b"1.6", 1)),
    "cut manifest": lambda tree: rewrite(tree.parent / "manifest", (tree.parent / "manifest").read_bytes()[:-20]),
    "missing manifest": lambda tree: (tree.parent / "manifest").unlink(),
    "missing layer": lambda tree: shutil.rmtree(tree.parent),
}
PATHS = {"truncated .so": "victim/_native.so", "flipped byte": "victim/_native.so", "missing file": "victim/other.py", "same-size edit": "victim/__init__.py",
         "bad bytecode": ".pyc", "empty bytecode": ".pyc", "extra file": "victim/extra.py", "mode": "victim/data.txt", "missing script": "bin/victim-tool"}


@pytest.mark.parametrize("damage", DAMAGES)
def test_every_damage_is_found_and_mended(kept, damage):
    assert kept.json("verify", kept.name) == {"name": kept.name, "ok": True, "findings": [], "repaired": False}
    layers = kept.show(kept.name)["layers"]
    before = digest(kept.store / "layers")
    tree = kept.layer(kept.name, "victim")
    DAMAGES[damage](tree)

    found = kept.json("verify", kept.name, code=1)
    assert (found["ok"], found["repaired"]) == (False, False)
    assert found["findings"], found
    for finding in found["findings"]:
        assert finding.keys() == {"layer", "package", "path", "what"} and finding["what"], finding
        assert finding["layer"] == tree.parent.name
    if damage in PATHS:
        assert any(PATHS[damage] in finding["path"] and finding["package"] == "victim" for finding in found["findings"]), found
    text = kept("env", "verify", kept.name)
    assert text.returncode == 1 and "victim" in text.stdout + text.stderr

    found = kept.json("verify", "--repair", kept.name)
    assert found["repaired"] and found["ok"], found
    assert kept.json("verify", kept.name)["ok"]
    script = "import victim, victim.other as o, os; print(victim.VALUE, o.X, open(os.path.dirname(o.__file__) + '/data.txt').read())"
    assert kept.python(kept.name, script) == "original 1 data\n\n"
    if damage.startswith("missing"):
        assert kept.inside(kept.name, "pip", "check", timeout=180)
    assert kept.show(kept.name)["layers"] == layers
    after = digest(kept.store / "layers")
    assert {path: what for path, what in after.items() if path.startswith(tuple(layers))} == \
        {path: what for path, what in before.items() if path.startswith(tuple(layers))}, "the same bytes as before"


def test_damage_in_the_base_is_found_and_mended(own_env, index):
    """The layer without a wheel: bin/python and pyvenv.cfg."""
    built = own_env
    packages(index)
    built.name = built.build("agent", "--pip", "victim")["name"]
    tree = next(path for path in (built.store / "layers").glob("*/tree") if (path / "pyvenv.cfg").exists())
    rewrite(tree / "pyvenv.cfg", b"home = /tmp\n")
    assert built.json("verify", built.name, code=1)["findings"][0]["path"] == "pyvenv.cfg"
    built.json("verify", "--repair", built.name)
    assert built.python(built.name, "import sys, victim; print(sys.prefix)") == "/env\n"


def test_a_repair_with_another_interpreter_keeps_what_options_asked_for(own_env, index):
    """The interpreter is gone, and one of the same version takes its place: the same request still finds the environment."""
    packages(index)
    asked = ["--pip", "victim", "--constraint-line", "victim<9"]
    name = own_env.build("agent", *asked)["name"]
    meta = own_env.store / "envs" / name / "meta.json"
    known = json.loads(meta.read_text())
    rewrite(meta, json.dumps({**known, "python": "/usr/bin/python-that-is-gone"}).encode())
    flip(site(own_env.layer(name, "victim"), "victim/data.txt"))
    assert own_env.json("verify", "--repair", name)["repaired"]
    repaired = json.loads(meta.read_text())
    assert (repaired["python"], repaired["fingerprint"]) == (known["python"], known["fingerprint"])
    assert own_env.build("agent", *asked)["cached"]


@pytest.mark.parametrize("flag", ["--rebuild", "--no-cache"])
def test_what_is_built_anew_is_made_of_whole_layers(built, flag):
    """An appended line is enough; without the flag an environment that is there is used as it is, for speed."""
    asked = ["--pip", "victim", "--pip", "bystander"]
    layers = built.show(built.name)["layers"]
    path = site(built.layer(built.name, "victim"), "victim/__init__.py")
    rewrite(path, path.read_bytes() + b"VALUE = 'altered'\n")
    found = built.build("agent", flag, *asked)
    assert found["layers"] == layers and built.python("agent", "import victim; print(victim.VALUE)") == "original\n"
    assert built.json("verify", built.name)["ok"]
    # Nothing is fetched when all is whole.
    before = len(built.index.requests)
    built.build("agent", "--rebuild", *asked)
    assert len(built.index.requests) == before


def test_verify_checks_all_when_none_is_named(built):
    rows = built.json("verify")
    assert {row["name"]: row["ok"] for row in rows} == {built.name: True, "template_no-deps": True}
    flip(site(built.layer(built.name, "victim"), "victim/data.txt"))
    rows = built.json("verify", code=1)
    assert {row["name"]: row["ok"] for row in rows} == {built.name: False, "template_no-deps": True}


def test_damage_that_stays_is_an_error(built, index):
    """The index no longer has it: the repair fails, says why, and exits with an error."""
    index.remove("victim")
    flip(site(built.layer(built.name, "victim"), "victim/data.txt"))
    done = built("env", "verify", "--repair", "-o", "json", built.name, timeout=120)
    found = json.loads(done.stdout)
    assert (done.returncode, found["ok"], found["repaired"]) == (1, False, False)
    assert found["findings"] and (found["error"]["code"], found["error"]["package"]) == ("not_found", "victim")
    packages(index)
    assert built.build("agent", "--pip", "victim", "--pip", "bystander", timeout=120)
    assert built.python("agent", "import victim; print(victim.VALUE)") == "original\n"


def test_one_that_cant_be_repaired_keeps_no_other_from_it(built, index):
    """Its meta.json is lost: that is said of it, with its own code, and the others are repaired."""
    lost = built.build("a-lost", "--pip", "bystander")["name"]
    rewrite(built.store / "envs" / lost / "meta.json", b"{")
    data = site(built.layer(built.name, "victim"), "victim/data.txt")
    flip(data)
    rows = {row["name"]: row for row in built.json("verify", "--repair", code=1, timeout=120)}
    assert list(rows) == [lost, built.name, "template_no-deps"]
    assert {name: (row["ok"], row["repaired"]) for name, row in rows.items()} == \
        {lost: (False, False), built.name: (True, True), "template_no-deps": (True, False)}
    error = rows[lost]["error"]
    assert error["code"] == "corrupt" and f"env rm {lost}" in error["hint"] and lost in error["message"]
    assert not any("error" in row for name, row in rows.items() if name != lost)
    flip(data)
    done = built("env", "verify", "--repair", lost, "nobody", built.name, timeout=120)
    assert done.returncode == 1
    assert done.stdout.splitlines()[0].startswith(f"{lost}: ") and done.stdout.endswith(f"\n{built.name}: repaired\n")
    assert [line for line in done.stderr.splitlines() if "'nobody'" in line] and f"env rm {lost}" in done.stderr
    one = built.json("verify", "--repair", lost, code=1)
    assert (one["ok"], one["repaired"], one["error"]["code"]) == (False, False, "corrupt")
    assert [row["error"]["code"] for row in built.json("verify", "nobody", "nothing", code=125)] == ["not_found"] * 2


@pytest.mark.parametrize("damage", ["missing tree", "missing layer", "missing manifest"])
def test_what_a_stat_shows_is_noticed_at_use(built, damage):
    """Validation at use is a stat of each layer: a build then builds again, a run says what to do."""
    DAMAGES[damage](built.layer(built.name, "victim"))
    done = built.run("--env", built.name, "--", "true")
    assert done.returncode == 125 and "verify --repair" in done.stderr, done.stderr
    assert next(row["state"] for row in built.ls() if row["name"] == built.name) == "corrupt"
    found = built.build("agent", "--pip", "victim", "--pip", "bystander")
    assert not found["cached"]
    assert built.python("agent", "import victim; print(victim.VALUE)") == "original\n"


@pytest.mark.parametrize("damage", ["cut", "empty", "garbage", "missing", "directory", "wrong type", "foreign layer"])
def test_a_damaged_meta_json_is_noticed(built, damage):
    path = built.store / "envs" / built.name / "meta.json"
    text = path.read_text()
    if damage in ("missing", "directory"):
        path.unlink()
        if damage == "directory":
            path.mkdir()
    else:
        path.write_text({"cut": text[:len(text) // 2], "empty": "", "garbage": "\0" * 100, "wrong type": text.replace('"layers": [', '"layers": 7, "x": ['),
                         "foreign layer": text.replace(built.show(built.name)["layers"][0], "../../../../etc")}[damage])
    done = built.run("--env", built.name, "--", "true")
    assert done.returncode == 125 and built.name in done.stderr, done
    assert built("env", "ls").returncode == 0, "one damaged environment doesn't hide the others"
    found = built.build("agent", "--pip", "victim", "--pip", "bystander")
    assert built.python(found["name"], "import victim; print(victim.VALUE)") == "original\n"


def test_a_foreign_environment_directory_is_not_trusted(built, tmp):
    """A link in the place of an environment."""
    directory = built.store / "envs" / built.name
    shutil.copytree(directory, tmp / "copy", symlinks=True)
    shutil.rmtree(directory)
    directory.symlink_to(tmp / "copy")
    assert built.run("--env", built.name, "--", "true").returncode == 125
    built.build("agent", "--pip", "victim", "--pip", "bystander")
    assert not directory.is_symlink() and (tmp / "copy/meta.json").exists()


def test_verify_prints_as_it_goes_and_ends_at_once(env, index):
    """The first verdict is there while the others are still read; an interrupt then ends it with 130."""
    index.add(wheel("small"), wheel("large", files={"large.py": "", "large.bin": bytes(range(256)) * (300 << 12)}))
    small = env.build("a-small", "--pip", "small")["name"]
    large = [env.build(f"{letter}-large", "--pip", "large")["name"] for letter in "bcdef"]
    before = env.layer_ids()
    with env.start("env", "verify", small, *large, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == f"{small}: ok\n"
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
        process.wait(timeout=60)
    assert process.returncode == 130 and f"{large[-1]}: ok" not in rest, (process.returncode, rest)
    assert env.layer_ids() == before
