"""What an environment can be made of: several files, files that include others, constraints, pyproject.toml, locks."""
import hashlib
import json
import os
import pathlib
import subprocess
import tempfile

import pytest
from harness import IS_ROOT
from wheels import wheel

pytestmark = pytest.mark.once     # as another user it says the same


@pytest.fixture
def packages(index):
    """one 1.0, 2.0 and 3.0rc1; two 1.0, which needs one; three 1.0."""
    index.add(*[wheel("one", version=version) for version in ("1.0", "2.0", "3.0rc1")], wheel("two", requires=["one"]), wheel("three"))
    return index


def write(tmp_path, **files):
    for name, text in files.items():
        path = tmp_path / name.replace("__", "/").replace("_toml", ".toml").replace("_txt", ".txt").replace("_lock", ".lock")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for path in [tmp_path, *tmp_path.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)


def installed(env, *words, **how):
    return env.build("agent", *words, **how)["installed_packages"]


def test_constraints_limit_what_is_chosen(env, packages, tmp_path):
    write(tmp_path, c_txt="one<2\nthree==9\n", d_txt="-c c.txt\n")
    assert installed(env, "--pip", "two") == {"one": "2.0", "two": "1.0"}
    assert installed(env, "--pip", "two", "-c", tmp_path / "c.txt") == {"one": "1.0", "two": "1.0"}
    assert installed(env, "--pip", "two", "-c", tmp_path / "d.txt") == {"one": "1.0", "two": "1.0"}
    assert installed(env, "--pip", "two", "--constraint-line", "one<2") == {"one": "1.0", "two": "1.0"}
    with_file, with_line = [env.build("agent", "--pip", "two", *words)["name"] for words in
                            (["-c", tmp_path / "c.txt"], ["--constraint-line", "one<2"])]
    assert with_file != with_line != env.build("agent", "--pip", "two")["name"]
    env.fails("agent", "--pip", "one", "--constraint-line", "one>9", code={"conflict", "version_not_found"}, package="one")


def test_files_are_gathered(env, packages, tmp_path):
    """Several, with --pip, and included from where the including file lies."""
    write(tmp_path, a_txt="one\n", b_txt="two\n", sub__c_txt="-r deeper/d.txt\n-c limits.txt\n", sub__deeper__d_txt="two\n",
          sub__limits_txt="one<2\n")
    assert installed(env, "-r", tmp_path / "a.txt", "-r", tmp_path / "b.txt", "--pip", "three").keys() == {"one", "two", "three"}
    assert installed(env, "-r", tmp_path / "sub/c.txt") == {"one": "1.0", "two": "1.0"}


def test_the_name_of_a_plain_file_is_the_hash_of_its_bytes(env, packages, tmp_path):
    """The other inputs are named by the text that is kept with the environment."""
    write(tmp_path, a_txt="# mine\n  one\n", b_txt="three\n")
    digest = hashlib.sha256(b"# mine\n  one\n").hexdigest()
    assert env.build("agent", "-r", tmp_path / "a.txt")["name"].startswith(f"agent_{digest[:7]}")
    both = env.build("agent", "-r", tmp_path / "a.txt", "-r", tmp_path / "b.txt", "--constraint-line", "one<2", "--pre")
    kept = (env.store / "envs" / both["name"] / "requirements.txt").read_text()
    assert kept == "one\nthree\n# constraint: one<2\n# --pre\n"
    assert both["requirements_sha256"] == hashlib.sha256(kept.encode()).hexdigest()
    assert env.build("agent", "-r", tmp_path / "a.txt", "-r", tmp_path / "b.txt", "--constraint-line", "one<2", "--pre")["cached"]


def test_files_that_include_themselves_or_too_many_are_refused(env, packages, tmp_path):
    write(tmp_path, a_txt="-r b.txt\n", b_txt="-r a.txt\n", link_txt="")
    error = env.fails("agent", "-r", tmp_path / "a.txt", code="invalid", says=["includes itself"])
    assert "a.txt, line 1" in error["message"] and "b.txt, line 1" in error["message"]
    for i in range(12):
        (tmp_path / f"{i}.txt").write_text(f"-r {i + 1}.txt\n")
    env.fails("agent", "-r", tmp_path / "0.txt", code="invalid", says=["nested"])
    (tmp_path / "many.txt").write_text("-r link.txt\n" * 101)
    env.fails("agent", "-r", tmp_path / "many.txt", code="invalid", says=["more than 100 files"])


@pytest.mark.parametrize("target", ["/dev/zero", "/proc/self/mem", "missing.txt", "https://127.0.0.1/x.txt"])
def test_only_files_are_included(env, tmp_path, target):
    write(tmp_path, a_txt=f"one\n-r {target}\n")
    env.fails("agent", "-r", tmp_path / "a.txt", code={"invalid", "denied"}, says=["line 2"])


@pytest.mark.skipif(not IS_ROOT, reason="only root reads what others can't")
def test_the_file_of_a_user_does_not_make_root_read_what_the_user_cannot(env, tmp_path):
    write(tmp_path, a_txt="-r secret.txt\n")
    (tmp_path / "real.txt").write_text("hidden-word!\n")
    (tmp_path / "real.txt").chmod(0o600)
    (tmp_path / "secret.txt").symlink_to("real.txt")
    os.chown(tmp_path / "a.txt", 65534, 65534)
    error = env.fails("agent", "-r", tmp_path / "a.txt", code="denied", says=["not readable for the owner"])
    assert "hidden-word" not in json.dumps(error)


@pytest.mark.skipif(not IS_ROOT, reason="only root reads what others can't")
def test_root_reads_for_the_file_of_a_user_only_what_the_user_can_reach(env, packages):
    with tempfile.TemporaryDirectory(prefix="carrel-included.", dir="/var/tmp") as name:
        place = pathlib.Path(name)
        write(place, a_txt="-r closed/b.txt\n", closed__b_txt="one\n")
        os.chown(place / "a.txt", 65534, 65534)
        assert installed(env, "-r", place / "a.txt") == {"one": "2.0"}
        (place / "closed").chmod(0o700)
        env.fails("agent", "-r", place / "a.txt", code="denied", says=["not readable for the owner"])


@pytest.fixture
def fifo(tmp_path):
    """One that somebody holds open without writing: to read it is to wait."""
    (tmp_path / "project").mkdir()
    path = tmp_path / "project/pyproject.toml"
    os.mkfifo(path)
    writer = os.open(path, os.O_RDWR)
    yield path
    os.close(writer)


def test_nobody_waits_for_a_fifo_in_place_of_a_file(env, packages, fifo):
    env.fails("agent", "--pip", "one", env={"NETRC": str(fifo)}, code="invalid", says=["not a regular file", "NETRC"], timeout=60, hint=False)
    (env.home / ".netrc").unlink(missing_ok=True)
    (env.home / ".netrc").symlink_to(fifo)
    try:
        assert installed(env, "--pip", "one", timeout=60) == {"one": "2.0"}
    finally:
        (env.home / ".netrc").unlink()
    assert env.build("agent", "--pip", "one", env={"NETRC": "/dev/null"})["installed_packages"] == {"one": "2.0"}


def test_pre_releases_are_taken_when_asked_for(env, packages, tmp_path):
    write(tmp_path, a_txt="--pre\none\n")
    assert installed(env, "--pip", "one") == {"one": "2.0"}
    assert installed(env, "--pip", "one", "--pre") == {"one": "3.0rc1"}
    assert installed(env, "-r", tmp_path / "a.txt") == {"one": "3.0rc1"}


def test_variables_are_filled_in_from_the_environment(env, packages, tmp_path):
    write(tmp_path, a_txt="one==${ONE_VERSION}\n", b_txt="one==${one}\n")
    first = env.build("agent", "-r", tmp_path / "a.txt", env={"ONE_VERSION": "1.0"})
    second = env.build("agent", "-r", tmp_path / "a.txt", env={"ONE_VERSION": "2.0"})
    assert (first["installed_packages"], second["installed_packages"]) == ({"one": "1.0"}, {"one": "2.0"})
    assert first["name"] != second["name"]
    env.fails("agent", "-r", tmp_path / "a.txt", code="invalid", says=["ONE_VERSION is not set"])
    env.fails("agent", "-r", tmp_path / "b.txt", code="invalid", env={"one": "1.0"})
    env.fails("agent", "-r", tmp_path / "a.txt", "--self-contained", code="invalid", env={"ONE_VERSION": "1.0"})


def test_credentials_in_variables_are_neither_shown_nor_kept(env, packages, tmp_path):
    env.configure("environments:\n  allow_urls: true\n")
    secret = "s3cret-word-of-a-test"
    file = wheel("one", version="2.0").filename
    write(tmp_path, a_txt=f"one @ http://user:${{WORD}}@{packages.host}/files/one/{file}\n",
          b_txt=f"one @ http://user:${{WORD}}@{packages.host}/files/one/missing-1.0-py3-none-any.whl\n")
    found = env.build("agent", "-r", tmp_path / "a.txt", env={"WORD": secret})
    assert found["installed_packages"] == {"one": "2.0"}
    error = env.fails("other", "-r", tmp_path / "b.txt", code=set(("not_found", "network", "failed", "denied", "conflict",
                                                                  "version_not_found")), env={"WORD": secret})
    assert secret not in json.dumps([found, error])
    kept = subprocess.run(["grep", "-rlF", secret, env.store], capture_output=True, text=True)
    assert kept.stdout == ""


def test_another_address_from_a_variable_is_another_environment(env, packages, tmp_path):
    """The text keeps the name of the variable; credentials alone make no other environment."""
    env.configure("environments:\n  allow_urls: true\n")
    files = {version: wheel("one", version=version).filename for version in ("1.0", "2.0")}
    write(tmp_path, a_txt="one @ http://user:${WORD}@${PLACE}\n")

    def build(version, word):
        return env.build("agent", "-r", tmp_path / "a.txt", env={"WORD": word, "PLACE": f"{packages.host}/files/one/{files[version]}"})
    assert build("1.0", "first-word")["installed_packages"] == {"one": "1.0"}
    assert build("1.0", "second-word")["cached"]
    assert build("2.0", "second-word")["installed_packages"] == {"one": "2.0"}


PROJECT = """
[project]
name = "Mine"
version = "1"
dependencies = ["one<2"]
[project.optional-dependencies]
web = ["two"]
all = ["mine[web]", "three"]
none = []
[dependency-groups]
test = ["three", {include-group = "more_tests"}]
more-tests = ["two"]
"""


def test_a_pyproject_is_read_with_extras_and_groups(env, packages, tmp_path):
    write(tmp_path, pyproject_toml=PROJECT)
    file = tmp_path / "pyproject.toml"
    assert installed(env, "-r", file) == installed(env, "-r", file, "--extra", "none") == {"one": "1.0"}
    assert installed(env, "-r", file, "--extra", "web").keys() == {"one", "two"}
    assert installed(env, "-r", file, "--extra", "all").keys() == {"one", "two", "three"}
    assert installed(env, "-r", file, "--group", "test").keys() == {"one", "two", "three"}
    env.fails("agent", "-r", file, "--extra", "dev", code="invalid", says=["unknown extra 'dev'"])
    env.fails("agent", "--pip", "one", "--group", "test", code="invalid", says=["pyproject.toml"])


@pytest.mark.parametrize("text, says", [
    ('[tool.poetry]\nname = "x"\n', "Poetry"),
    ('[project]\nname = "x"\ndynamic = ["dependencies"]\n', "dynamic"),
    ('[project]\nname = "x"\ndependencies = ["one"]\n[tool.uv.sources]\none = { git = "https://x.example/one" }\n', "sources"),
    ('[project]\nname = "x"\ndependencies = ["one @ https://x.example/one-1.0-py3-none-any.whl"]\n', "URL"),
    ('[project]\nname = "x"\ndependencies = ["-r /etc/passwd"]\n', "line 3"),
    ('[project]\nname = "x"\ndependencies = ["one\\n--index-url http://x.example"]\n', "line 3"),
    ("[tool.black]\nx = 1\n", "no [project]"), ("broken", "line 1")])
def test_what_a_pyproject_cannot_say_is_refused(env, tmp_path, text, says):
    write(tmp_path, pyproject_toml=text)
    env.fails("agent", "-r", tmp_path / "pyproject.toml", code={"invalid", "denied"}, says=[says])


def uv(env, *words, cwd):
    done = subprocess.run(["uv", *map(str, words)], cwd=cwd, env={**env.env, "UV_CACHE_DIR": f"{cwd}/cache"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_uv_lock_is_read_by_uv(env, packages, tmp_path):
    write(tmp_path, pyproject_toml=PROJECT.replace("one<2", "one") + '[tool.uv]\nconflicts = []\n')
    uv(env, "lock", "--default-index", packages.url, cwd=tmp_path)
    packages.add(wheel("one", version="2.5"))
    file = tmp_path / "uv.lock"
    write(tmp_path)
    assert installed(env, "-r", file) == {"one": "2.0"}
    assert installed(env, "-r", file, "--extra", "web", "--group", "test") == {"one": "2.0", "two": "1.0", "three": "1.0"}
    assert env.build("agent", "-r", file, "--extra", "web", "--group", "test")["cached"]
    (tmp_path / "pyproject.toml").unlink()
    env.fails("agent", "-r", file, code="invalid", says=["pyproject.toml"])


def test_a_pylock_gives_versions_and_hashes(env, packages, tmp_path):
    write(tmp_path, in_txt="two\n")
    text = uv(env, "pip", "compile", "--format", "pylock.toml", "--default-index", packages.url, "in.txt", cwd=tmp_path)
    write(tmp_path, pylock_toml=text)
    packages.add(wheel("one", version="2.5"))
    assert installed(env, "-r", tmp_path / "pylock.toml") == {"one": "2.0", "two": "1.0"}
    digest = wheel("one", version="2.0").sha256
    write(tmp_path, pylock_toml=text.replace(digest, "0" * 64))
    env.fails("agent", "-r", tmp_path / "pylock.toml", code="hash_mismatch", package="one")


@pytest.mark.parametrize("name, says", [("poetry.lock", "Poetry"), ("Pipfile.lock", "Pipenv"), ("setup.py", "build of the project"),
                                        ("environment.yml", "Conda")])
def test_formats_that_uv_does_not_read_are_named(env, tmp_path, name, says):
    (tmp_path / name).write_text("x\n")
    tmp_path.chmod(0o755)
    assert env.fails("agent", "-r", tmp_path / name, code="invalid", says=[says])["hint"]


def test_run_takes_the_same_inputs(env, packages, tmp_path):
    write(tmp_path, pyproject_toml=PROJECT, c_txt="three==1.0\n")
    done = env("run", "-r", tmp_path / "pyproject.toml", "--extra", "web", "-c", tmp_path / "c.txt", "--", "python", "-c",
               "import one, two", env={"UV_DEFAULT_INDEX": packages.url}, timeout=180)
    assert done.returncode == 0, done


# ---- files of this host

def test_a_wheel_of_this_host_is_installed_as_it_is(env, packages, tmp_path):
    """With what it needs from the index, and with extras; another content is another environment."""
    mine = wheel("mine", requires=["one<2", 'two; extra == "more"'])
    path = mine.save(tmp_path)
    tmp_path.chmod(0o755)
    found = env.build("agent", "--pip", path)
    assert found["installed_packages"] == {"mine": "1.0", "one": "1.0"}
    assert env.python("agent", "import mine, one; print(mine.VERSION)") == "1.0\n"
    assert f"mine==1.0 --hash=sha256:{mine.sha256}" in (env.store / "envs" / found["name"] / "lock.txt").read_text().replace("\\\n    ", "")
    assert installed(env, "--pip", f"{path}[more]", "--pip", "three") == {"mine": "1.0", "one": "1.0", "two": "1.0", "three": "1.0"}
    assert env.build("agent", "--pip", path)["cached"]
    done = env.try_build("agent", "--pip", f"./{mine.filename}", "-o", "json", cwd=tmp_path)
    assert json.loads(done.stdout)["name"] == found["name"], done
    wheel("mine", files={"mine.py": "VERSION = 'other'\n"}).save(tmp_path)
    other = env.build("agent", "--pip", path)
    assert other["name"] != found["name"] and env.python("agent", "import mine; print(mine.VERSION)") == "other\n"
    assert packages.asked_for("mine") == 0


def test_a_directory_of_this_host_is_built_and_installed(env, packages, tmp_path):
    """In full: nothing leads to the directory afterwards."""
    project = tmp_path / "project"
    write(tmp_path, project__pyproject_toml='[project]\nname = "mine"\nversion = "3"\ndependencies = ["one"]\n'
          '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n', project__mine="")
    (project / "mine").unlink()
    (project / "mine.py").write_text("WORD = 'first'\n")
    (project / "backend.py").write_text(BACKEND)
    write(tmp_path)
    found = env.build("agent", "--pip", project)
    assert found["installed_packages"] == {"mine": "3", "one": "2.0"} and found["editables"] == []
    assert env.python("agent", "import mine, one; print(mine.WORD)") == "first\n"
    assert env.build("agent", "--pip", project)["cached"]
    (project / "mine.py").write_text("WORD = 'second'\n")
    (project / "mine.py").chmod(0o644)
    again = env.build("agent", "--pip", project)
    assert again["name"] != found["name"]
    assert env.python("agent", "import mine; print(mine.WORD)") == "second\n"


BACKEND = '''
import zipfile
def get_requires_for_build_wheel(settings=None):
    return []
def build_wheel(directory, settings=None, metadata=None):
    name = "mine-3-py3-none-any.whl"
    files = {"mine.py": open("mine.py").read(), "mine-3.dist-info/METADATA":
             "Metadata-Version: 2.1\\nName: mine\\nVersion: 3\\nRequires-Dist: one\\n",
             "mine-3.dist-info/WHEEL": "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"}
    files["mine-3.dist-info/RECORD"] = "".join(f"{path},,\\n" for path in [*files, "mine-3.dist-info/RECORD"])
    with zipfile.ZipFile(f"{directory}/{name}", "w") as archive:
        for path, text in files.items():
            archive.writestr(zipfile.ZipInfo(path), text)
    return name
'''


def test_only_the_command_line_names_files_of_this_host(env, packages, tmp_path):
    path = wheel("mine").save(tmp_path)
    write(tmp_path, a_txt=f"{path}\n", empty__x_txt="", sdist_txt="")
    env.fails("agent", "-r", tmp_path / "a.txt", code="denied", says=["line 1"])
    env.fails("agent", "--self-contained", "--pip", path, code="denied", says=["path"])
    env.fails("agent", "--pip", tmp_path / "empty", code="invalid", says=["neither pyproject.toml nor setup.py"])
    env.fails("agent", "--pip", "./missing-1.0-py3-none-any.whl", code={"invalid", "not_found"}, says=["missing"])
    env.fails("agent", "--pip", tmp_path / "sdist.txt", code="invalid", says=["neither a wheel nor a directory"])
    env.configure("environments:\n  blocked_packages: [mine]\n")
    env.fails("agent", "--pip", path, code="denied", package="mine")


def test_links_are_searched_beside_the_index(env, packages, tmp_path):
    links = tmp_path / "links"
    links.mkdir()
    wheel("one", version="4.0").save(links)
    write(tmp_path)
    found = env.build("agent", "--pip", "two", "--find-links", links)
    assert found["installed_packages"] == {"one": "4.0", "two": "1.0"}
    wheel("one", version="5.0").save(links)
    assert env.build("agent", "--pip", "two", "--find-links", links)["installed_packages"]["one"] == "5.0"
    packages.files["pages"] = packages.files.pop("three")
    assert installed(env, "--pip", "three", "--find-links", f"http://{packages.host}/simple/pages") == {"three": "1.0"}
    env.fails("agent", "--pip", "one", "--find-links", tmp_path / "missing", code={"invalid", "not_found"}, says=["--find-links"], hint=False)
