"""What a build says: one cause has one message, its code and a hint that helps; and what it shows while it runs."""
import os

import pytest
from wheels import sdist, wheel


# ---- the cut-off date

def test_the_cut_off_date_is_for_resolving(env, index):
    """What is locked by hash was chosen already: also our own pip, which is younger than most dates."""
    env.configure("environments:\n  exclude_newer: 2021-01-01\n")
    index.uploaded = "2020-06-01T00:00:00Z"
    index.add(wheel("old"))
    found = env.build("agent", "--pip", "old")
    assert env("env", "rm", found["name"]).returncode == 0
    assert env("env", "prune").returncode == 0
    index.uploaded = "2022-06-01T00:00:00Z"
    asked = index.asked_for("old")
    env.build("agent", "--pip", "old")
    assert index.asked_for("old") > asked, "the layer was gone, and came from the index again"
    env.fails("other", "--no-cache", "--pip", "old", code={"not_found", "version_not_found", "conflict"})


# ---- too much

def sizes():
    source = "".join(f"def f{n}(x): return x + {n}\n" for n in range(4000))
    return {"data": {"large.bin": os.urandom(12 << 20)}, "far more": {"large.bin": os.urandom(90 << 20)},
            "bytecode": {"large.bin": os.urandom(66 << 20), **{f"large_{n}.py": source for n in range(60)}}}


@pytest.mark.parametrize("what", ["data", "far more", "bytecode"])
def test_too_much_is_said_in_one_way(env, index, what):
    index.add(wheel("large", files=sizes()[what]))
    env.configure("environments:\n  max_install_bytes: 8M\n")
    error = env.fails("agent", "--pip", "large", code="denied", timeout=120)
    assert error["message"].startswith("the packages of environment 'agent_") and error["message"].endswith("' take more than 8.0M")
    assert "max_install_bytes" in error["hint"]
    assert index.asked_for("large") == 1, "no second attempt"


# ---- hints

@pytest.mark.parametrize("line", ["-r other.txt", "-c other.txt", "--requirement=other.txt"])
def test_included_files_are_not_read(env, line):
    path = env.requirements(f"{line}\n")
    error = env.fails("agent", "-r", str(path), code="denied", says=["line 1"])
    assert "one file" in error["hint"] and "index" not in error["hint"]


def test_too_slow_names_both_limits(env, index):
    index.add(wheel("slow"))
    index.misbehave("/files/slow", "hang")
    error = env.fails("agent", "--timeout", "2", "--pip", "slow", code={"timeout", "network"})
    assert error["code"] == "network" or ("--timeout" in error["hint"] and "install_timeout" in error["hint"])


def test_the_log_is_named_with_its_environment(env, index):
    index.add(sdist("broken", code="    raise RuntimeError('no')\n"))
    error = env.fails("agent", "--allow-build", "--pip", "broken", code="failed")
    assert "carrel env show --log agent_" in error["hint"]


def test_a_damaged_meta_json_is_named_once(env, index):
    index.add(wheel("one"))
    name = env.build("agent", "--pip", "one")["name"]
    (env.store / "envs" / name / "meta.json").write_text("{")
    done = env("env", "verify", name)
    assert done.returncode == 1 and done.stdout.count("meta.json") == 1, done
