"""Eviction: by policy, count, bytes and age; never what is in use; layers go with their last reference."""
import json
import os
import re
import subprocess
import time

import pytest
from harness import eventually
from wheels import wheel

pytestmark = pytest.mark.once


def stamp(age_hours):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - age_hours * 3600))


def make_old(env, name, created=None, used=None, uses=None):
    """Makes an environment look that old (hours): tests don't wait."""
    path = env.store / "envs" / name / "meta.json"
    text = path.read_text()
    for field, hours in (("created_at", created), ("last_used_at", used)):
        if hours is not None:
            made = stamp(hours)
            text, count = re.subn(rf'("{field}": ?")[^"]*(")', lambda m: m[1] + same_width(made, m[0]) + m[2], text)
            assert count == 1, text
    if uses is not None:
        text, count = re.subn(r'("use_count": ?)( *)(\d+)', lambda m: m[1] + str(uses).rjust(len(m[2] + m[3])), text)
        assert count == 1, text
    with open(path, "r+") as file:
        file.write(text)
    return json.loads(text)


def same_width(value, old):
    """With as many decimals as were there."""
    fraction = re.search(r"\.\d+Z", old)
    return value.replace("Z", "." + "0" * (len(fraction[0]) - 2) + "Z") if fraction else value


@pytest.fixture
def three(env, index):
    """a, b, c with a package each; only they are there. What the policies say of them: lru b, lfu c, fifo a."""
    index.add(*(wheel(f"pkg-{x}", files={f"pkg_{x}.py": f"X = {x!r}\n", f"pkg_{x}.bin": x.encode() * 300_000}) for x in "abcd"))
    env.of = {x: env.build(x, "--pip", f"pkg-{x}") for x in "abc"}
    env("env", "rm", "template_no-deps")
    assert len(env.names()) == 3
    for x, created, used, uses in (("a", 30, 10, 5), ("b", 20, 15, 9), ("c", 16, 5, 1)):
        env.of[x]["last_used_at"] = make_old(env, env.of[x]["name"], created, used, uses)["last_used_at"]
    return env


def left(env):
    return "".join(sorted(row["package_id"] for row in env.ls()))


@pytest.mark.parametrize("policy, goes", [("lru", "b"), ("lfu", "c"), ("fifo", "a")])
def test_one_goes_by_policy_when_one_too_many_is_built(three, policy, goes):
    three.configure(f"environments:\n  max_envs: 3\n  eviction: {policy}\n")
    three.build("d", "--pip", "pkg-d")
    assert left(three) == "abcd".replace(goes, "")
    event = next(event for event in three.events() if event["event"] == "Evicting venv")
    assert (event["venv"], event["reason"], event["level"]) == (three.of[goes]["name"], f"{policy}_eviction", "info")
    assert event["last_used"] == three.of[goes]["last_used_at"]
    own = set(three.of[goes]["layers"]) - {layer for x in "abc" if x != goes for layer in three.of[x]["layers"]}
    assert len(own) == 1 and not own & three.layer_ids()
    for x in "abcd".replace(goes, ""):
        three.python(x, f"import pkg_{x}")


@pytest.mark.parametrize("config, limit", [("max_envs: 3", "max_envs"), ("max_bytes: {less}", "max_bytes"), ("ttl: 12h", "ttl")])
def test_who_reads_text_is_told_what_went_and_why(three, config, limit):
    text = f"environments:\n  {config.format(less=cache_size(three))}\n"
    for options in ([], ["-o", "json"], ["--quiet"], ["--events"]):
        three.configure(text)
        make_old(three, three.of["b"]["name"], used=15)
        os.utime(three.store / "envs" / three.of["b"]["name"] / "meta.json", (0, time.time() - 15 * 3600))
        done = three.try_build("d", "--pip", "pkg-d", *options)
        assert done.returncode == 0 and left(three) == "acd", done.stderr
        lines = [line for line in done.stderr.splitlines() if line.startswith("carrel: removed ")]
        assert lines == ([] if options else [f"carrel: removed {three.of['b']['name']} ({limit})"])
        took = re.findall(r"^carrel: removing 1 environment took [0-9]+\.[0-9]s, [0-9.]+[KM] freed$", done.stderr, re.M)
        assert len(took) == (0 if options else 1), done.stderr
        three.configure("")
        three("env", "rm", "d")
        three.build("b", "--pip", "pkg-b")


def test_lru_is_the_default(three):
    three.configure("environments:\n  max_envs: 3\n")
    three.build("d", "--pip", "pkg-d")
    assert left(three) == "acd"


def test_a_use_by_run_counts(three):
    three.configure("environments:\n  max_envs: 3\n")
    three.python("b", "import pkg_b")
    three.build("d", "--pip", "pkg-d")
    assert left(three) == "bcd"


@pytest.mark.parametrize("count, stays", [(2, "ac"), (1, "c")])
def test_prune_keeps_to_the_count(three, count, stays):
    three.configure(f"environments:\n  max_envs: {count}\n")
    before = three.layer_ids()
    found = three.json("prune")
    assert left(three) == stays
    assert [row["name"] for row in found["removed"]] == [three.of[x]["name"] for x in "bac" if x not in stays]
    assert {row["reason"] for row in found["removed"]} == {"lru_eviction"}
    assert found["layers_removed"] == len(before - three.layer_ids()) and found["bytes_freed"] > 0
    found = three.json("prune")
    assert (found["removed"], found["layers_removed"], found["bytes_freed"]) == ([], 0, 0)


def cache_size(env):
    return int(float(re.search(r"^par_venv_cache_size_bytes (.*)", env("env", "metrics").stdout, re.M)[1]))


def test_prune_keeps_to_the_bytes(three):
    """The layers that all share count once; each has 300 kB of its own."""
    total = cache_size(three)
    three.configure(f"environments:\n  max_bytes: {total - 100_000}\n")
    three.json("prune")
    assert left(three) == "ac" and cache_size(three) <= total - 300_000
    three.configure(f"environments:\n  max_bytes: {total - 500_000}\n")
    three.json("prune")
    assert left(three) == "c" and cache_size(three) <= total - 600_000


def test_prune_removes_what_is_older_than_its_ttl(three):
    three.configure("environments:\n  ttl: 12h\n")
    found = three.json("prune")
    assert found["removed"] == [{"name": three.of["b"]["name"], "reason": "ttl_expired"}]
    assert left(three) == "ac"


def test_prune_removes_nothing_without_need(three):
    found = three.json("prune")
    assert (left(three), found["removed"]) == ("abc", [])


def test_what_is_in_use_is_never_evicted(three):
    three.configure("environments:\n  max_envs: 1\n  max_bytes: 1M\n  ttl: 1h\n")
    script = "import sys; print(flush=True); sys.stdin.read(); import pkg_b; print(pkg_b.X)"
    with three.start("run", "-i", "--env", "b", "--", "python", "-c", script, stdin=subprocess.PIPE) as process:
        process.stdout.readline()
        three.json("prune")
        assert left(three) == "b"
        done = three("env", "rm", "-o", "json", three.of["b"]["name"])
        assert done.returncode == 125 and json.loads(done.stdout)["error"]["code"] == "conflict"
        assert set(three.of["b"]["layers"]) <= three.layer_ids()
        assert process.communicate("", timeout=60)[0] == "b\n"
    assert eventually(lambda: not three.show("b")["in_use"])
    three.json("prune")
    assert (left(three), three.layer_ids()) == ("", set())


def test_what_is_killed_is_not_in_use(three):
    three.configure("environments:\n  max_bytes: 1M\n")
    with three.start("run", "-i", "--env", "b", "--", "python", "-c", "import sys; print(flush=True); sys.stdin.read()", stdin=subprocess.PIPE) as process:
        process.stdout.readline()
        process.kill()
    assert eventually(lambda: not three.show("b")["in_use"])
    three.json("prune")
    assert left(three) == ""


def test_what_is_replaced_while_in_use_lives_on(three, index):
    script = "import sys; print(flush=True); sys.stdin.read(); import pkg_b; print(pkg_b.X)"
    with three.start("run", "-i", "--env", "b", "--", "python", "-c", script, stdin=subprocess.PIPE) as process:
        process.stdout.readline()
        assert not three.build("b", "--pip", "pkg-b", "--rebuild")["cached"]
        three.json("prune")
        assert process.communicate("", timeout=60)[0] == "b\n"
    three.json("prune")
    assert not list((three.store / "envs").glob(".old-*"))


def test_what_was_evicted_is_composed_again(three, index):
    three.configure("environments:\n  max_envs: 2\n")
    three.json("prune")
    assert left(three) == "ac"
    three.configure("")
    three.build("b", "--pip", "pkg-b")
    three.python("b", "import pkg_b")


def test_the_floor_of_free_bytes(three):
    """Nothing is built when less is free; and nothing goes for it where that wouldn't be enough."""
    three.configure("environments:\n  min_free_bytes: 1000T\n")
    done = three.try_build("d", "-o", "json", "--pip", "pkg-d")
    assert done.returncode == 125
    error = json.loads(done.stdout)["error"]
    assert error["code"] == "disk_full" and error["hint"]
    assert left(three) == "abc"
    assert not any(event["event"] == "Evicting venv" for event in three.events())


def test_a_dry_run_says_what_would_go(three):
    three.configure("environments:\n  max_envs: 2\n")
    before = three.layer_ids()
    would = three.json("prune", "--dry-run")
    assert would["removed"] == [{"name": three.of["b"]["name"], "reason": "lru_eviction"}]
    done = three("env", "prune", "--dry-run")
    assert (done.returncode, done.stdout) == (0, f"{three.of['b']['name']} (lru_eviction)\n")
    assert done.stderr.startswith("carrel: would remove 1 environment, 1 layer, ")
    assert (left(three), three.layer_ids()) == ("abc", before)
    assert not any(event["event"] == "Evicting venv" for event in three.events())
    assert {row["reason"] for row in three.json("prune", "--dry-run", "--all")["removed"]} == {"pruned"}
    assert three.json("prune") | {"dry_run": True} == would
    assert left(three) == "ac"
