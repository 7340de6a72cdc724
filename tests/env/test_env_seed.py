"""The seed's own tests: creation, reuse, rebuild on change, isolation; names, metadata, log events and metrics."""
import calendar
import hashlib
import json
import os
import re
import subprocess
import time

import pytest
from envs import FIELDS
from wheels import wheel

pytestmark = pytest.mark.once     # as another user it says the same

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


def seconds(stamp):
    return calendar.timegm(time.strptime(stamp[:19], "%Y-%m-%dT%H:%M:%S"))


def test_an_environment_is_created(env, index):
    index.add(wheel("seed-dep", "2.5"), wheel("seed-top", requires=["seed-dep>=2"]))
    text = "# what the agent needs\nseed-top==1.0\n"
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    before = int(time.time())
    found = env.build("vivid-commenter@1.0.0", "-r", env.requirements(text))
    name = f"vivid-commenter@1.0.0_{sha256[:7]}"
    directory = env.store / "envs" / name
    assert (found["name"], found["path"], found["cached"]) == (name, str(directory), False)
    assert found["requirements_sha256"] == sha256
    assert found["installed_packages"] == {**found["installed_packages"], "seed-dep": "2.5", "seed-top": "1.0"}
    assert found["indexes"] == [index.url]
    assert TIME.fullmatch(found["created_at"]) and before <= seconds(found["created_at"]) <= time.time() + 1
    assert found["size_bytes"] > 0 and found["build_seconds"] > 0 and not found["in_use"]

    meta = json.loads((directory / "meta.json").read_text())
    for field in ("package_id", "requirements_sha256", "created_at", "python_version", "installed_packages", "layers"):
        assert meta[field] == found[field], field
    assert {"last_used_at", "use_count"} <= meta.keys()
    link = directory / ".pixell_venv_metadata.json"
    assert link.is_symlink() and os.readlink(link) == "meta.json"
    assert json.loads(link.read_text()) == meta
    assert (directory / "bin/python").exists()
    version = subprocess.run(["/usr/bin/python3", "-c", "import platform; print(platform.python_version())"],
                             capture_output=True, text=True).stdout.strip()
    assert found["python_version"] == version
    assert env.python(name, "import seed_top, seed_dep; print(seed_top.VERSION, seed_dep.VERSION)") == "1.0 2.5\n"


def test_an_environment_is_reused(env, index):
    index.add(wheel("reused"))
    file = env.requirements("reused\n")
    first = env.build("agent", "-r", file)
    index.requests.clear()
    second = env.build("agent", "-r", file)
    assert second["cached"] and not first["cached"]
    assert (second["name"], second["created_at"], second["layers"]) == (first["name"], first["created_at"], first["layers"])
    assert index.requests == [], "a reused environment asks nobody"
    assert "agent" in env.try_build("agent", "-r", file).stdout


def test_an_environment_is_built_again_when_its_requirements_change(env, index):
    index.add(wheel("changing", "1.0"), wheel("changing", "2.0"))
    first = env.build("agent@1", "-r", env.requirements("changing==1.0\n"))
    second = env.build("agent@1", "-r", env.requirements("changing==2.0\n"))
    assert first["name"] != second["name"] and not second["cached"]
    show = "import changing; print(changing.VERSION)"
    assert (env.python(first["name"], show), env.python(second["name"], show)) == ("1.0\n", "2.0\n")
    assert env.python("agent@1", show) == "2.0\n", "a package_id means the one last built"
    env.build("agent@1", "-r", env.requirements("changing==1.0\n"))
    assert env.python("agent@1", show) == "1.0\n", "also when it was there already"


def test_an_environment_is_built_again_when_asked(env, index):
    index.add(wheel("asked"))
    first = env.build("agent", "--pip", "asked")
    second = env.build("agent", "--pip", "asked", "--rebuild")
    assert second["name"] == first["name"] and not second["cached"]
    assert second["created_at"] > first["created_at"]
    index.add(wheel("asked", "1.1"))
    assert env.build("agent", "--pip", "asked", "--no-cache")["installed_packages"]["asked"] == "1.1", "no lock is reused"


def test_layers_are_shared_by_environments(env, index):
    index.add(wheel("common-part"), wheel("only-a", requires=["common-part"]), wheel("only-b", requires=["common-part"]))
    a = env.build("a", "--pip", "only-a")
    before = env.layer_ids()
    b = env.build("b", "--pip", "only-b")
    assert len(env.layer_ids() - before) == 1
    assert len(set(a["layers"]) & set(b["layers"])) >= 2
    assert index.asked_for("common-part") == 1


def test_environments_do_not_see_each_others_packages(env, index):
    index.add(wheel("mine"), wheel("yours"))
    a, b = env.build("a", "--pip", "mine"), env.build("b", "--pip", "yours")
    for name, there, hidden in ((a["name"], "mine", "yours"), (b["name"], "yours", "mine")):
        env.python(name, f"import {there}")
        assert f"No module named '{hidden}'" in env.run("--env", name, "--", "python", "-c", f"import {hidden}").stderr
    # Nor the store they come from, nor the host's own packages.
    script = f"import os, sys; print(os.path.exists({str(env.store)!r}), [p for p in sys.path if 'dist-packages' in p])"
    assert env.python(a["name"], script) == "False []\n"


def test_two_versions_of_one_package_run_at_once(env, index):
    """The seed's grpcio case in small (test_env_real.py has the real one)."""
    index.add(wheel("grpc-like", "1.60.0"), wheel("grpc-like", "1.73.1"))
    a, b = env.build("a", "--pip", "grpc-like==1.60.0"), env.build("b", "--pip", "grpc-like==1.73.1")
    script = "import sys, grpc_like; print(grpc_like.VERSION, flush=True); sys.stdin.read()"
    with env.start("run", "-i", "--env", a["name"], "--", "python", "-c", script, stdin=subprocess.PIPE) as one, \
            env.start("run", "-i", "--env", b["name"], "--", "python", "-c", script, stdin=subprocess.PIPE) as two:
        assert (one.stdout.readline(), two.stdout.readline()) == ("1.60.0\n", "1.73.1\n")
        for row in env.ls():
            assert row["in_use"] == (row["name"] in (a["name"], b["name"]))
        one.stdin.close(), two.stdin.close()
        assert (one.wait(60), two.wait(60)) == (0, 0)


# ---- names

def test_no_requirements_are_no_deps(env):
    found = env.build("bare@0.1")
    assert (found["name"], found["requirements_sha256"]) == ("bare@0.1_no-deps", "no-deps")
    assert set(found["installed_packages"]) <= {"pip"}
    assert env.python("bare@0.1", "import sys; print(sys.prefix)") == "/env\n"


def test_the_name_comes_from_the_bytes_of_the_file(env, index):
    index.add(wheel("one"), wheel("two"))
    texts = ["one\ntwo\n", "two\none\n", "one\ntwo", "one\ntwo\n# x\n", "one\r\ntwo\r\n"]
    names = [env.build("a", "-r", env.requirements(text))["name"] for text in texts]
    # write_text() keeps the bytes as they are: \r\n is not \n
    assert names == ["a_" + hashlib.sha256(text.encode()).hexdigest()[:7] for text in texts]


def test_the_name_of_specs_comes_from_them_sorted(env, index):
    index.add(wheel("one"), wheel("two"))
    expected = "a_" + hashlib.sha256(b"one\ntwo>=1").hexdigest()[:7]
    assert env.build("a", "--pip", "two>=1", "--pip", "one")["name"] == expected
    assert env.build("a", "--pip", "one", "--pip", "two>=1") == {**env.show("a"), "cached": True, "built": False}


def test_valid_package_ids(env):
    for package_id in ("a", "A.b_c-d@1.2.3", "x" * 100, "0", "vivid-commenter@1.0.0"):
        assert env.build(package_id)["name"] == f"{package_id}_no-deps"


def test_invalid_package_ids_are_refused(env):
    before = env.names()
    for package_id in ("", "x" * 101, "a/b", "../x", "..", ".hidden", "-x", "a b", "a\nb", "ä", "a:b", "a%", "a\\b"):
        done = env("env", "build", "-o", "json", "--", package_id)
        assert done.returncode == 125, package_id
        assert json.loads(done.stdout)["error"]["code"] == "invalid", package_id
    assert env.names() == before and not list(env.store.parent.glob("x*"))


# ---- what commands print

def test_text_output_is_the_name_alone(env, index):
    index.add(wheel("printed"))
    done = env.try_build("agent", "--pip", "printed")
    name = "agent_" + hashlib.sha256(b"printed").hexdigest()[:7]
    assert (done.returncode, done.stdout) == (0, f"{name}\n")
    assert re.fullmatch(rf"carrel: built {name} in [\d.]+ ?m?s: \d+ packages?, [\d.]+[BkKMG]*", done.stderr.splitlines()[-1]), done.stderr
    done = env.try_build("agent", "--pip", "printed")
    assert (done.stdout, done.stderr) == (f"{name}\n", f"carrel: reused {name}\n")


def test_ls_and_show_say_what_is_there(env, index):
    index.add(wheel("listed"))
    found = env.build("agent", "--pip", "listed")
    assert [row.keys() == FIELDS for row in env.ls()] == [True, True]
    assert sorted(env.names()) == sorted([found["name"], "template_no-deps"])
    shown = env.show(found["name"])
    assert shown == {key: value for key, value in found.items() if key not in ("cached", "built")}
    assert env.show("agent") == shown
    text = env("env", "ls").stdout
    assert found["name"] in text and "template_no-deps" in text
    text = env("env", "show", "agent").stdout
    assert "listed" in text and "1.0" in text
    assert "listed" in env.log("agent")


def test_a_use_is_counted(env, index):
    index.add(wheel("counted"))
    found = env.build("agent", "--pip", "counted")
    for _ in range(3):
        env.python("agent", "import counted")
    shown = env.show("agent")
    assert shown["use_count"] == found["use_count"] + 3
    assert shown["last_used_at"] >= found["created_at"]
    assert shown["created_at"] == found["created_at"]


def test_rm_removes(env, index):
    index.add(wheel("removed"), wheel("kept"))
    a, b = env.build("a", "--pip", "removed"), env.build("b", "--pip", "kept")
    own = set(a["layers"]) - set(b["layers"])
    assert len(own) == 1 and own <= env.layer_ids()
    assert env.json("rm", a["name"]) == {"removed": [a["name"]]}
    assert a["name"] not in env.names() and not (env.store / "envs" / a["name"]).exists()
    assert not own & env.layer_ids() and set(b["layers"]) <= env.layer_ids()
    env.python("b", "import kept")
    done = env("env", "rm", "-o", "json", a["name"])
    assert done.returncode == 125 and json.loads(done.stdout)["error"]["code"] == "not_found"


def test_rm_takes_what_show_shows(env, index):
    index.add(wheel("older"), wheel("newer"))
    older, newer = (env.build("x", "--pip", name)["name"] for name in ("older", "newer"))
    assert env.show("x")["name"] == newer
    done = env("env", "rm", "x", newer)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"removed {newer}\n", "")
    assert older in env.names() and newer not in env.names()
    assert env.json("rm", "x") == {"removed": [older]}


def test_warm_builds_sets_beforehand(env, index):
    index.add(wheel("warm-a"), wheel("warm-b"))
    files = [env.requirements(f"warm-{x}\n", f"{x}.txt") for x in "ab"]
    rows = env.json("warm", "--index", index.url, *files)
    assert [row["name"] for row in rows] == ["warmup_" + hashlib.sha256(f"warm-{x}\n".encode()).hexdigest()[:7] for x in "ab"]
    assert [row["cached"] for row in rows] == [False, False]
    index.requests.clear()
    found = env.build("agent", "-r", files[0])
    assert (found["cached"], index.requests) == (False, []), "composed from the lock and the layers that are there"


# ---- events and metrics

def test_the_events_of_a_build(env, index):
    index.add(wheel("logged", "3.1"))
    file = env.requirements("logged\n")
    done = env.try_build("agent@1", "--events", "-r", file)
    assert done.returncode == 0, done.stderr
    printed = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    name = env.show("agent@1")["name"]
    for kept in (printed, env.events()):
        by_name = {event["event"]: event for event in kept}
        for event in kept:
            assert {"event", "level", "time"} <= event.keys(), event
            assert TIME.fullmatch(event["time"])
        order = [event["event"] for event in kept]
        creating = by_name["Creating virtual environment"]
        assert {key: creating[key] for key in ("venv", "package_id", "requirements_sha256", "level")} == {
            "venv": name, "package_id": "agent@1", "level": "info",
            "requirements_sha256": hashlib.sha256(b"logged\n").hexdigest()}
        installing = by_name["Installing dependencies"]
        assert (installing["venv"], installing["requirements_file"]) == (name, str(file))
        installed = by_name["Dependencies installed successfully"]
        assert installed["venv"] == name and installed["duration_seconds"] > 0
        assert "logged==3.1" in installed["installed_packages"]
        assert order.index("Creating virtual environment") < order.index("Installing dependencies") \
            < order.index("Dependencies installed successfully")
    statuses = [event["event"] for event in printed]
    assert {"resolving", "building_env", "installing_deps", "ready"} <= set(statuses), statuses
    assert statuses.index("resolving") < statuses.index("installing_deps") < statuses.index("ready")


def test_the_events_of_reuse_and_failure(env, index):
    index.add(wheel("logged"))
    env.build("agent", "--pip", "logged")
    env.build("agent", "--pip", "logged")
    reused = [event for event in env.events() if event["event"] == "Reusing existing venv"]
    assert len(reused) == 1 and reused[0]["venv"] == env.show("agent")["name"] and 0 <= reused[0]["age_hours"] < 0.1
    done = env.try_build("bad", "--events", "--pip", "no-such-package")
    printed = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    failed = [event for event in printed if event["event"] == "failed"]
    assert failed and "no-such-package" in json.dumps(failed[0]) and "not_found" in json.dumps(failed[0])


def test_metrics(env, index):
    index.add(wheel("measured"))
    env.build("agent", "--pip", "measured")
    text = env("env", "metrics").stdout
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert int(float(values["par_venv_count"])) == 2
    assert float(values["par_venv_cache_size_bytes"]) > 0
    buckets = {key: int(value) for key, value in values.items() if key.startswith("par_venv_build_duration_seconds_bucket")}
    bounds = [float(re.search(r'le="([^"]+)"', key).group(1)) for key in buckets]
    assert bounds == [1, 5, 10, 30, 60, 120, 300, float("inf")]
    assert list(buckets.values()) == sorted(buckets.values())
    count = int(values["par_venv_build_duration_seconds_count"])
    assert count >= 1 and list(buckets.values())[-1] == count and float(values["par_venv_build_duration_seconds_sum"]) > 0
    for metric, kind in (("par_venv_count", "gauge"), ("par_venv_cache_size_bytes", "gauge"),
                         ("par_venv_build_duration_seconds", "histogram")):
        assert f"# TYPE {metric} {kind}\n" in text and f"# HELP {metric} " in text
    env.build("agent", "--pip", "measured")
    assert f"par_venv_build_duration_seconds_count {count}\n" in env("env", "metrics").stdout, "reuse is no build"
