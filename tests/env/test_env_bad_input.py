"""Bad input and bad indexes: a stable code, the package or line named, a hint; no environment, and the log kept."""
# security: packages
import json
import os

import pytest
from harness import one_line
from index_server import listening_port, refusing_port
from wheels import sdist, wheel

pytestmark = pytest.mark.once

# ---- requirement files

SYNTAX_ERRORS = [
    ("good\nthis is ! no requirement\n", 2), ("good\n\n# comment\n==1.0\n", 4), ("good>=\n", 1), ("good [extra\n", 1),
    ("good==1.0 --hash=sha256:zz\n", 1), ("good==1.0; python_version >\n", 1), ("good\x00\n", 1), ("good @\n", 1),
    ("good\ngood==1.0 \\\n    --hash=md5\n", 2), ("good==${VERSION}\n", 1), ("good<1,,>2\n", 1), ("-\n", 1),
    ("good\n" * 5 + "[good]\n", 6), ("good ; os_name == 'posix\n", 1), ("good==1.0==2.0\n", 1),
]


def test_a_syntax_error_names_its_line(env, index):
    index.add(wheel("good"))
    for text, line in SYNTAX_ERRORS:
        env.fails("agent", "-r", env.requirements(text), code="invalid", says=[f"line {line}"])
    assert index.requests == []


def test_a_file_that_is_no_text_is_refused(env):
    path = env.home / "requirements.txt"
    path.write_bytes(b"\xff\xfe\x00g\x00o\x00o\x00d\n")
    env.fails("agent", "-r", path, code="invalid", says=["requirements.txt"])


def test_a_file_that_is_not_there_is_named(env, tmp):
    for path in (tmp / "nowhere.txt", tmp):
        done = env.try_build("agent", "-r", path)
        assert (done.returncode, done.stdout) == (125, "")
        one_line(done.stderr, path)


def test_a_huge_file_is_refused(env):
    env.fails("agent", "-r", env.requirements("good\n" * 2_000_000), code="invalid", says=["requirements.txt"])


def test_a_spec_is_judged_as_a_line_is(env):
    for spec in ("-rother.txt", "--index-url=http://127.0.0.1:1/", "a b", "==1", "./x", "x @ http://127.0.0.1:1/x.whl", "a\nb"):
        env.fails("agent", f"--pip={spec}", code={"invalid", "denied"}, says=["--pip"])


REFUSED = ["-e ../x", "-e .", "--editable ../x", "-e git+http://127.0.0.1:1/x.git", "../x", "./x.whl", "/etc", "file:///etc/x.whl", "x.whl",
           "x-1.0.tar.gz", "http://127.0.0.1:1/x-1.0-py3-none-any.whl", "good @ http://127.0.0.1:1/good-1.0-py3-none-any.whl",
           "good @ file:///tmp/good-1.0-py3-none-any.whl", "git+ssh://127.0.0.1/x.git", "--index-url http://127.0.0.1:1/simple",
           "-i http://127.0.0.1:1/simple", "--extra-index-url=http://127.0.0.1:1/simple", "--find-links /tmp", "-f /tmp", "--no-index",
           "-r http://127.0.0.1:1/x.txt", "--trusted-host 127.0.0.1", "--no-binary :all:", "--use-feature=x", "--prefer-binary"]


def test_urls_paths_and_options_are_refused(env, index):
    index.add(wheel("good"))
    let_pass = []
    for line in REFUSED:
        if env.try_build("agent", "-r", env.requirements(f"good\n{line}\n")).returncode == 0:
            let_pass.append(line)
        else:
            env.fails("agent", "-r", env.requirements(f"good\n{line}\n"), code="denied", says=["line 2"])
    assert let_pass == []
    assert index.requests == []


def test_what_an_operator_allows_is_not_refused(env, index):
    dist = index.add(wheel("from-url"))
    env.configure("environments:\n  allow_urls: true\n")
    url = f"http://{index.host}/files/from-url/{dist.filename}"
    env.build("agent", "-r", env.requirements(f"from-url @ {url}\n"))
    env.python("agent", "import from_url")


# ---- packages

def test_a_package_that_does_not_exist(env, index):
    index.add(wheel("good"), wheel("needs-missing", requires=["missing-below"]))
    error = env.fails("agent", "-r", env.requirements("good\nno-such-package\n"), code="not_found", package="no-such-package")
    assert "failed" in json.dumps(env.events()[-1])
    assert "no-such-package" in env.log("agent_" + error_name(env)), "the log is kept"
    env.fails("agent", "--pip", "needs-missing", code="not_found", package="missing-below")


def error_name(env):
    """The hash in the name of the one failed build."""
    names = [name for name in os.listdir(env.store / "envs/.failed") if name.startswith("agent_")]
    assert len(names) == 1, names
    return names[0].removeprefix("agent_").removesuffix(".log")


def test_a_version_that_does_not_exist(env, index):
    index.add(wheel("pinned", "1.0"), wheel("pinned", "1.1"), wheel("needs-pinned", requires=["pinned>=7"]))
    error = env.fails("agent", "--pip", "pinned==99.1", code="version_not_found", package="pinned", says=["99.1"])
    assert error["hint"]
    env.fails("agent", "--pip", "needs-pinned", code={"version_not_found", "conflict"}, package="pinned")


def test_a_conflict_names_both(env, index):
    index.add(wheel("base", "1.0"), wheel("base", "2.0"), wheel("wants-old", requires=["base<2"]), wheel("wants-new", requires=["base>=2"]))
    error = env.fails("agent", "--pip", "wants-old", "--pip", "wants-new", code="conflict", says=["wants-old", "wants-new"])
    assert error["hint"]
    env.fails("agent", "-r", env.requirements("base==1.0\nwants-new\n"), code="conflict", says=["base", "wants-new"])


def test_a_package_for_other_pythons(env, index):
    index.add(wheel("too-new", requires_python=">=3.99"))
    env.fails("agent", "--pip", "too-new", code={"version_not_found", "conflict"}, package="too-new", says=["3.99"])
    index.add(wheel("elsewhere", tag="cp311-cp311-win_amd64"))
    env.fails("agent", "--pip", "elsewhere", code={"version_not_found", "conflict", "not_found"}, package="elsewhere")


def test_a_blocked_package_is_refused_by_any_spelling(env, index):
    index.add(wheel("evil-pkg"), wheel("brings-it", requires=["between"]), wheel("between", requires=["Evil.Pkg"]))
    env.configure("environments:\n  blocked_packages: [EVIL_pkg]\n")
    for spelling in ("evil-pkg", "Evil_Pkg", "evil.pkg==1.0", "evil--pkg"):
        env.fails("agent", "--pip", spelling, code="denied", package="evil-pkg")
    assert index.requests == [], "nothing is asked for what is refused anyway"
    env.fails("agent", "--pip", "brings-it", code="denied", package="evil-pkg")
    assert not index.asked_for("evil-pkg")


def test_the_seeds_blocked_packages_are_blocked_by_default(env, index):
    for name in ("os-sys", "setup-tools-rust"):
        index.add(wheel(name))
        env.fails("agent", "--pip", name, code="denied", package=name)


def test_only_allowed_packages_when_there_is_such_a_list(env, index):
    index.add(wheel("fine"), wheel("fine-dep"), wheel("fine-top", requires=["fine-dep"]), wheel("bad-top", requires=["unlisted"]), wheel("unlisted"))
    env.configure("environments:\n  allowed_packages: [Fine, fine_top, fine.dep, bad-top]\n")
    env.build("agent", "--pip", "fine", "--pip", "fine-top")
    env.fails("agent", "--pip", "unlisted", code="denied", package="unlisted")
    env.fails("agent", "--pip", "bad-top", code="denied", package="unlisted")


def test_a_list_made_stricter_counts_for_what_was_built_before(env, index):
    index.add(wheel("was-fine"))
    env.build("agent", "--pip", "was-fine")
    env.configure("environments:\n  blocked_packages: [was-fine]\n")
    done = env.try_build("agent", "-o", "json", "--pip", "was-fine")
    assert json.loads(done.stdout)["error"]["code"] == "denied"


# ---- hashes

def test_a_hash_that_is_given_must_hold(env, index):
    good = index.add(wheel("hashed"))
    wrong = "0" * 63 + "1"
    env.fails("agent", "-r", env.requirements(f"hashed==1.0 --hash=sha256:{wrong}\n"), code="hash_mismatch", package="hashed")
    assert not index.asked_for("hashed") or "hashed" not in env.names()
    found = env.build("agent", "-r", env.requirements(f"hashed==1.0 \\\n    --hash=sha256:{wrong} \\\n    --hash=sha256:{good.sha256}\n"))
    assert found["installed_packages"]["hashed"] == "1.0"


def test_an_index_that_says_a_wrong_hash(env, index):
    index.add(wheel("misnamed"), said_sha256="ab" * 32)
    env.fails("agent", "--pip", "misnamed", code="hash_mismatch", package="misnamed")


def test_a_file_that_changed_since_it_was_locked(env, index):
    first = index.add(wheel("swapped", files={"swapped.py": "X = 1\n"}))
    first_name = env.build("a", "--pip", "swapped")["name"]
    index.add(wheel("swapped", files={"swapped.py": "X = 'evil'\n"}), said_sha256=first.sha256)
    second_name = env.build("b", "-r", env.requirements("swapped\n"))["name"]        # resolved again; the layer of that hash is there
    assert env.python("b", "import swapped; print(swapped.X)") == "1\n"
    assert env.json("rm", first_name, second_name) == {"removed": [first_name, second_name]}
    env.fails("c", "--pip", "swapped", code="hash_mismatch", package="swapped")


def test_hashes_may_be_required(env, index):
    dep = index.add(wheel("its-dep"))
    top = index.add(wheel("its-top", requires=["its-dep"]))
    env.fails("agent", "--require-hashes", "--pip", "its-top==1.0", code={"invalid", "denied", "hash_mismatch"}, package="its-top")
    half = f"its-top==1.0 --hash=sha256:{top.sha256}\n"
    env.fails("agent", "--require-hashes", "-r", env.requirements(half + "its-dep==1.0\n"), code={"invalid", "denied", "hash_mismatch"}, package="its-dep")
    env.fails("agent", "--require-hashes", "-r", env.requirements(half), code={"invalid", "denied", "hash_mismatch", "conflict"}, says=["its-dep"])
    env.build("agent", "--require-hashes", "-r", env.requirements(half + f"its-dep==1.0 --hash=sha256:{dep.sha256}\n"))
    env.configure("environments:\n  require_hashes: true\n")
    env.fails("other", "--pip", "its-dep==1.0", code={"invalid", "denied", "hash_mismatch"}, package="its-dep")


# ---- indexes

def test_connection_refused(env):
    with refusing_port() as port:
        error = env.fails_in_time("agent", "--index", f"http://127.0.0.1:{port}/simple", "--pip", "good", seconds=6, code="network")
    assert f"127.0.0.1:{port}" in error["message"] + error["hint"]


def test_an_index_with_errors_of_its_own(env, index):
    index.add(wheel("good"))
    index.misbehave("/simple/", "500")
    env.fails_in_time("agent", "--pip", "good", seconds=6, code="network")
    assert index.requests.count("/simple/good/") > 1, "tried again"


def test_an_index_that_recovers(env, index):
    index.add(wheel("good"))
    index.misbehave("/simple/good/", "503", times=2)
    assert env.build("agent", "--pip", "good", timeout=120)["installed_packages"]["good"] == "1.0"


@pytest.mark.parametrize("where", ["/simple/", "/files/"])
def test_an_index_that_answers_half(env, index, where):
    index.add(wheel("good"))
    index.misbehave(where, "half")
    env.fails_in_time("agent", "--pip", "good", seconds=6, code="network")


@pytest.mark.parametrize("where", ["/simple/", "/files/"])
def test_an_index_that_never_answers(env, index, where):
    index.add(wheel("good"))
    index.misbehave(where, "hang")
    env.configure("environments:\n  install_timeout: 2s\n")
    error = env.fails("agent", "--pip", "good", code="timeout")
    assert "install_timeout" in error["hint"]


def test_an_index_that_answers_garbage(env, index):
    index.add(wheel("good"))
    index.misbehave("/simple/", "garbage")
    env.fails_in_time("agent", "--pip", "good", seconds=6, code={"network", "failed", "invalid", "not_found"})


def test_an_index_that_is_no_address_is_named(env):
    for url in ("ftp://127.0.0.1/simple", "127.0.0.1:1/simple", "http://", "http://127.0.0.1:99999/x", "", "file:///tmp", "http://a b/"):
        done = env.try_build("agent", "--index", url, "--pip", "good")
        assert (done.returncode, done.stdout) == (125, ""), url
        one_line(done.stderr, *([url] if url else []))


def test_credentials_of_an_index_are_shown_nowhere(env, index):
    index.add(wheel("good"))
    url = index.url.replace("http://", "http://somebody:hunter2@")
    found = env.build("agent", "--index", url, "--pip", "good")
    assert "hunter2" not in json.dumps(found)
    error = env.fails("agent", "--index", url, "--pip", "no-such", code="not_found")
    assert "hunter2" not in json.dumps(error)
    for directory, _, names in os.walk(env.store):
        for name in names:
            path = os.path.join(directory, name)
            if os.path.isfile(path) and not os.path.islink(path):
                assert b"hunter2" not in open(path, "rb").read(), path


def test_downloads_come_from_where_the_operator_says(env, index):
    """A page that sends downloads to another local port: closed, unless the operator names it."""
    from index_server import Index
    with Index() as files, listening_port() as (port, connections):
        index.files_url = f"http://127.0.0.1:{port}"
        dist = wheel("elsewhere")
        index.add(dist), files.add(dist)
        env.fails("agent", "--pip", "elsewhere", code={"denied", "network"}, says=[f"127.0.0.1:{port}"], timeout=120)
        assert connections == []
        index.files_url = f"http://{files.host}"
        env.configure(f"environments:\n  file_hosts: ['{files.host}']\n")
        env.build("agent", "--pip", "elsewhere")
        assert files.asked_for("elsewhere") == 1


def test_extra_indexes_are_the_operators(env, index):
    from index_server import Index
    with Index() as extra:
        index.add(wheel("at-first", requires=["at-second"]))
        extra.add(wheel("at-second"))
        env.fails("agent", "--pip", "at-first", code="not_found", package="at-second")
        found = env.build("agent", "--extra-index", extra.url, "--pip", "at-first")
        assert set(found["indexes"]) == {index.url, extra.url}
        # A name comes from the first index that has it, in one order: no confusion by a higher version elsewhere.
        index.add(wheel("confused-a", "1.0"), wheel("confused-b", "9.0"))
        extra.add(wheel("confused-a", "9.0"), wheel("confused-b", "1.0"))
        found = env.build("b", "--extra-index", extra.url, "--pip", "confused-a", "--pip", "confused-b")["installed_packages"]
        assert {found["confused-a"], found["confused-b"]} == {"1.0", "9.0"}


# ---- Pythons

def test_a_python_that_is_not_there(env):
    error = env.fails("agent", "--python", "3.99", code={"not_found", "invalid"}, says=["3.99"])
    assert "3." in error["hint"], "lists what is there"
    for wrong in ("2.7", "x", "/nowhere/python", "/etc/passwd", ""):
        done = env.try_build("agent", "--python", wrong)
        assert done.returncode == 125
        one_line(done.stderr, *([wrong] if wrong else []))


# ---- sources

def test_a_source_archive_is_not_built_unless_allowed(env, index):
    index.add(sdist("from-source"))
    error = env.fails("agent", "--pip", "from-source", code={"denied", "failed"}, package="from-source")
    assert "--allow-build" in error["hint"]
    env.build("agent", "--allow-build", "--pip", "from-source")
    assert env.python("agent", "import from_source; print(from_source.VERSION)") == "1.0\n"


def test_a_wheel_is_preferred_to_a_newer_source_archive(env, index):
    index.add(sdist("both", "2.0"), wheel("both", "1.0"))
    assert env.build("agent", "--pip", "both")["installed_packages"]["both"] == "1.0"


def test_a_source_that_does_not_build(env, index):
    index.add(sdist("broken", code="    raise RuntimeError('cannot be built: no compiler on the moon')\n"))
    env.fails("agent", "--allow-build", "--pip", "broken", code="failed", package="broken")
    assert "no compiler on the moon" in env.log("agent_" + error_name(env))


def test_too_much_is_refused(env, index):
    index.add(wheel("large", files={"large.bin": os.urandom(12 << 20)}))
    env.configure("environments:\n  max_install_bytes: 8M\n")
    env.fails("agent", "--pip", "large", code={"denied", "disk_full", "failed"})
    env.configure("environments:\n  max_install_bytes: 80M\n")
    env.build("agent", "--pip", "large")


# ---- config.yaml

MISTAKES = [
    ("environments:\n  max_envs: many\n", 2, "max_envs"), ("environments:\n  max_envs: -1\n", 2, "max_envs"),
    ("environments:\n  max_env: 5\n", 2, "max_env"), ("enviroments:\n  max_envs: 5\n", 1, "enviroments"),
    ("environments:\n  max_envs: 5\n  eviction: random\n", 3, "eviction"), ("environments:\n  install_timeout: soon\n", 2, "install_timeout"),
    ("environments:\n  max_bytes: 10X\n", 2, "max_bytes"), ("environments:\n  allow_build: maybe\n", 2, "allow_build"),
    ("environments:\n  blocked_packages: [ok, 'not ok']\n", 2, "blocked_packages"), ("environments:\n  max_envs: 5\n  max_envs: 6\n", 3, "max_envs"),
    ("environments:\n  index: not-a-url\n", 2, "index"), ("environments:\n  exclude_newer: yesterday\n", 2, "exclude_newer"),
    ("# fine\n\nenvironments:\n  ttl: x\n", 4, "ttl"), ("environments:\n\tmax_envs: 5\n", 2, None), ("environments: [1\n", 1, None),
]


def test_a_mistake_in_config_yaml_names_line_and_key(env):
    for text, line, key in MISTAKES:
        env.configure(text)
        done = env("env", "build", "agent")
        assert (done.returncode, done.stdout) == (125, ""), (text, done.stderr)
        one_line(done.stderr, "config.yaml", f"line {line}", *([key] if key else []))
    assert env("env", "ls").returncode == 125
    env.configure("")
    env.build("agent")


# ---- commands

@pytest.mark.parametrize("args", [["show", "nobody"], ["rm", "nobody"], ["verify", "nobody"], ["show", "--log", "nobody"]])
def test_an_environment_that_is_not_there_is_named(env, args):
    done = env("env", *args)
    assert (done.returncode, done.stdout) == (125, "")
    one_line(done.stderr, "nobody")
    done = env("env", args[0], "-o", "json", *args[1:])
    assert json.loads(done.stdout)["error"]["code"] == "not_found"


def test_the_log_of_the_last_failure_is_found_by_what_was_typed(env, index):
    env.fails("typed", "--pip", "no-such-first", code="not_found", package="no-such-first")
    env.fails("typed", "--pip", "no-such-second", code="not_found", package="no-such-second")
    assert "no-such-second" in env.log("typed")
    index.add(wheel("good"))
    env.build("typed", "--pip", "good")
    assert "no-such" not in env.log("typed")


def test_an_unknown_environment_lists_what_is_there(env):
    done = env.run("--env", "nobody", "--", "true")
    assert (done.returncode, done.stdout) == (125, "")
    assert "template_no-deps" in one_line(done.stderr, "nobody")
    for name in ("../envs/template_no-deps", "", "/etc", "."):
        assert env.run("--env", name, "--", "true").returncode == 125


@pytest.mark.parametrize("args", [["nonsense"], ["build"], ["warm"], ["rm"], ["build", "a", "--no-such"], ["build", "a", "b"], ["ls", "x"]])
def test_wrong_usage_is_said(env, args):
    done = env("env", *args)
    assert (done.returncode, done.stdout) == (125, ""), done
    one_line(done.stderr)
