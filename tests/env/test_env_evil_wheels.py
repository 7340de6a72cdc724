"""Wheels are hostile archives: what would leave its place, lie about itself or run is refused, or made harmless."""
# security: packages
import os
import pathlib
import stat

import pytest
import wheels
from envs import digest
from wheels import Raw, wheel

pytestmark = pytest.mark.once     # as another user it says the same

REFUSAL = {"denied", "failed", "invalid", "hash_mismatch"}


@pytest.mark.parametrize("member", ["../escaped.txt", "../../escaped.txt", "../../../../../../../../tmp/carrel-test-escaped.txt",
                                    "/tmp/carrel-test-escaped.txt", "evil/../../escaped.txt", "evil/../../../../bin/python"])
def test_a_path_that_leaves_is_refused(env, index, member):
    index.add(wheels.escaping("evil", member))
    before = env.layer_ids()
    env.fails("agent", "--pip", "evil", code=REFUSAL, package="evil")
    assert env.layer_ids() == before
    assert not os.path.exists("/tmp/carrel-test-escaped.txt")
    assert not [path for path in digest(env.home) if "escaped" in path]


@pytest.mark.parametrize("member", ["../../escaped.txt", "/env/bin/python", "..\\..\\escaped.txt"])
def test_a_path_that_leaves_and_is_in_no_record_is_refused_or_dropped(env, index, member):
    index.add(wheel("evil", members=[Raw(member, b"escaped\n", is_recorded=False)]))
    done = env.try_build("agent", "--pip", "evil")
    assert not [path for path in digest(env.home) if path.endswith("escaped.txt") and "\\" not in path]
    if done.returncode == 0:
        assert env.python("agent", "import evil, sys; print(sys.prefix)") == "/env\n"
        assert env.json("verify", "agent")["ok"]


@pytest.mark.parametrize("record", ["../../../bin/python,,\n", "../../../../../etc/passwd,,\n", "/etc/passwd,,\n", "../../../pyvenv.cfg,,\n",
                                    "nowhere.py,sha256=AAAA,1\n"])
def test_a_record_that_claims_what_is_not_its_own_is_refused(env, index, record):
    """RECORD is what the split into layers goes by, and what pip would delete."""
    index.add(wheel("evil", record_extra=record))
    done = env.try_build("agent", "--pip", "evil")
    if done.returncode == 0:        # harmless only if the base still belongs to nobody else
        assert env.python("agent", "import evil, sys; print(sys.prefix)") == "/env\n"
        tree = env.layer("agent", "evil")
        assert not (tree / "bin/python").exists() and not (tree / "pyvenv.cfg").exists()
    else:
        assert "evil" in done.stderr


def test_a_file_that_differs_from_its_record_is_refused(env, index):
    index.add(wheel("liar", files={"liar.py": "X = 1\n"}, wrong_records=["liar.py"]))
    env.fails("agent", "--pip", "liar", code=REFUSAL, package="liar", says=["liar.py"])
    index.add(wheels.truncated_so("cut"))
    env.fails("agent", "--pip", "cut", code=REFUSAL, package="cut", says=["cut_native.so"])


def test_a_file_of_one_name_twice_is_refused(env, index):
    index.add(wheels.with_duplicate("twice"))
    env.fails("agent", "--pip", "twice", code=REFUSAL, package="twice")


@pytest.mark.parametrize("target", ["/etc/passwd", "../../../../../etc", "/", "/env/bin"])
def test_a_link_leads_nowhere(env, index, target):
    index.add(wheels.with_link("linked", target))
    done = env.try_build("agent", "--pip", "linked")
    if done.returncode == 0:
        path = next(env.layer("agent", "linked").rglob("linked_link"))
        assert not path.is_symlink() and path.read_text() == target
    else:
        assert "linked" in done.stderr
    index.add(wheels.with_link("through", str(env.home), through=True))
    env.fails("agent", "--pip", "through", code=REFUSAL, package="through")
    assert not (env.home / "through.txt").exists()


def test_no_file_of_a_layer_is_more_than_executable(env, index):
    index.add(wheels.with_setuid("suid"))
    done = env.try_build("agent", "--pip", "suid")
    for directory, names, others in os.walk(env.store / "layers"):
        for name in names + others:
            status = os.lstat(os.path.join(directory, name))
            assert not status.st_mode & (stat.S_ISUID | stat.S_ISGID | stat.S_ISVTX), name
            assert stat.S_ISLNK(status.st_mode) or not status.st_mode & 0o022, (name, oct(status.st_mode))
    assert done.returncode == 0 or "suid" in done.stderr


def test_a_bomb_does_not_fill_the_disk(env, index):
    index.add(wheels.bomb("bomb", 300))
    env.configure("environments:\n  max_install_bytes: 64M\n")
    before = used(env.store)
    env.fails("agent", "--pip", "bomb", code={"denied", "disk_full", "failed"}, says=["64M"], timeout=120)
    assert used(env.store) - before < 4 << 20


def test_holes_of_a_wheel_that_a_backend_makes_count_as_bytes(env, index):
    """It is hashed before it is unpacked: that would take longer than the time of any build."""
    index.add(wheels.sdist("holey", hooks="def build_wheel(directory, config_settings=None, metadata_directory=None):\n"
                           "    name = 'holey-1.0-py3-none-any.whl'\n    with open(os.path.join(directory, name), 'wb') as file:\n"
                           "        file.truncate(1 << 40)\n    return name\n"))
    env.fails("agent", "--pip", "holey", "--allow-build", code="denied", says=["take more than"], timeout=120)


def used(directory):
    return sum(os.lstat(os.path.join(where, name)).st_blocks * 512 for where, _, names in os.walk(directory) for name in names)


def test_a_wheel_that_is_none(env, index):
    good = wheel("broken")
    for data in (b"", b"PK\x03\x04 no zip", good.data[:-30], good.data[:100] + bytes(50) + good.data[150:]):
        index.add(good._replace(data=data))
        env.fails("agent", "--pip", "broken", "--no-cache", code=REFUSAL | {"network", "not_found", "version_not_found"}, timeout=120)
    index.add(good)
    env.build("agent", "--pip", "broken", "--no-cache")


def test_a_wheel_that_says_another_name(env, index):
    other = wheel("other-name")
    index.add(wheel("said-name")._replace(data=other.data, metadata=None))
    env.fails("agent", "--pip", "said-name", code=REFUSAL | {"conflict", "not_found", "version_not_found"})


def test_two_wheels_that_claim_one_file(env, index):
    """With other content in it, they can't both be right: refused, with both named."""
    index.add(wheel("claims-a", files={"shared_mod.py": "X = 'a'\n", "a.py": ""}), wheel("claims-b", files={"shared_mod.py": "X = 'b'\n", "b.py": ""}))
    done = env.try_build("agent", "--pip", "claims-a", "--pip", "claims-b")
    if done.returncode == 0:        # built singly: each layer has its own file, and verifies
        assert env.json("verify", "agent")["ok"]
        assert env.python("agent", "import shared_mod; print(shared_mod.X)") in ("a\n", "b\n")
        assert len({pathlib.Path(env.layer("agent", name)) for name in ("claims-a", "claims-b")}) == 2
    else:
        assert "claims-a" in done.stderr and "claims-b" in done.stderr and "shared_mod.py" in done.stderr


def test_a_wheel_does_not_replace_the_interpreter(env, index):
    """Neither by its scripts nor by its data."""
    index.add(wheel("usurper", data={"scripts/python": "#!/bin/sh\necho usurped\n", "data/pyvenv.cfg": "home = /tmp\n"}))
    done = env.try_build("agent", "--pip", "usurper")
    if done.returncode == 0:
        assert env.python("agent", "import sys; print(sys.prefix)") == "/env\n"
    else:
        assert "usurper" in done.stderr


def test_unpacking_runs_no_code(env, index, tmp):
    """Neither when a wheel is unpacked, compiled, verified nor removed: only a sandbox of the user's runs what it holds.
    (.pth and sitecustomize would run at the start of any Python with that prefix.)"""
    # Every place a run could write to: ours, the stage at /env, and the layer itself by its own path.
    mark = tmp / "ran"
    tmp.chmod(0o777)
    code = ("import os\nfor p in (%r, '/env/ran', os.path.join(os.path.dirname(globals().get('__file__') or '/env/lib/x'), 'ran')):\n"
            "    try: open(p, 'w').write('ran')\n    except OSError: pass\n" % str(mark))
    index.add(wheel("pth", files={"evil.pth": f"import os; exec({code!r})\n", "sitecustomize.py": code, "usercustomize.py": code, "pth.py": code}))
    found = env.build("agent", "--pip", "pth")
    assert not mark.exists()
    assert not [path for path in digest(env.store) if os.path.basename(path) == "ran"]
    env("env", "rm", found["name"])
    assert not mark.exists()


def test_a_name_that_is_no_text(env, index):
    """Names that need quoting in RECORD, and bytes that need escaping in a manifest."""
    files = {"odd/__init__.py": "", "odd/with space.txt": "a", 'odd/with,comma".txt': "b", "odd/ünïcode.txt": "c", "odd/per%cent.txt": "d",
             "odd/new\nline.txt": "e"}
    index.add(wheel("plain-odd", files={key: value for key, value in files.items() if "\n" not in key and '"' not in key and "," not in key}))
    env.build("agent", "--pip", "plain-odd")
    script = "import os, odd; print(sorted(os.listdir(os.path.dirname(odd.__file__))))"
    assert "with space.txt" in env.python("agent", script) and "ünïcode.txt" in env.python("agent", script)
    assert env.json("verify", "agent")["ok"]
    index.add(wheel("newline", files=files))
    done = env.try_build("b", "--pip", "newline")
    assert done.returncode in (0, 125) and (done.returncode == 0 or "newline" in done.stderr)
