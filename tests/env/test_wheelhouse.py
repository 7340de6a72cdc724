"""A directory of wheels: carrel env wheels makes it, env build --wheels and package build --with-env use it."""
# security: packages
import io
import json
import tarfile
import zipfile

import pytest
from daemons import new_directory, remove
from wheels import wheel

pytestmark = pytest.mark.shipped


@pytest.fixture
def place(env):
    directory = new_directory()
    env.index.add(wheel("one", "1.0", requires=["two"]), wheel("two", "2.0"))
    (directory / "requirements.txt").write_text("one\n")
    yield directory
    remove(directory)


def test_wheels_make_the_same_layers_without_an_index(env, place):
    """Found by keys of their own: the index's environment and that of the wheels have different names."""
    first = env.build("agent", "-r", place / "requirements.txt")
    assert env.json("wheels", "agent", str(place / "house")) == {"name": first["name"], "directory": str(place / "house"), "wheels": 2}
    lines = (place / "house/lock.txt").read_text().split()
    assert lines[::3] == ["one==1.0", "two==2.0"] and len(lines) == 6      # one hash each
    asked = len(env.index.requests)
    second = env.build("agent", "-r", place / "requirements.txt", "--wheels", place / "house")
    assert second["layers"] == first["layers"] and second["name"] != first["name"] and second["built"] and second["indexes"] == []
    assert env.build("agent", "-r", place / "requirements.txt", "--wheels", place / "house")["cached"]
    assert len(env.index.requests) == asked
    # Those of the index are what they were.
    assert env.build("agent", "-r", place / "requirements.txt")["name"] == first["name"]


def test_a_directory_that_is_none_is_refused(env, place):
    (place / "venv").mkdir()
    (place / "venv/pyvenv.cfg").write_text("home = /usr/bin\n")
    error = env.fails("agent", "-r", place / "requirements.txt", "--wheels", place / "venv", code="invalid", says=["no lock.txt"])
    assert "--with-env" in error["hint"]
    env.fails("agent", "-r", place / "requirements.txt", "--wheels", place / "nothing", code=("invalid", "failed", "not_found"), hint=False)


def test_a_package_is_built_with_its_environment(env, place):
    (place / "agent.yaml").write_text("name: greeter\nversion: 1.0.0\nrest: {command: x}\n")
    files = []
    for name in ("a.apkg", "b.apkg"):
        done = env("package", "build", place, "--with-env", "-f", f"{place}-{name}", "-o", "json", env={"UV_DEFAULT_INDEX": env.index.url, "PIP_INDEX_URL": env.index.url})
        assert done.returncode == 0 and json.loads(done.stdout)["prebuilt"] is True, done.stderr
        with open(f"{place}-{name}", "rb") as file:
            files.append(file.read())
    assert files[0] == files[1]
    with zipfile.ZipFile(io.BytesIO(files[0])) as package, tarfile.open(fileobj=package.open("package.venv.tar.gz"), mode="r:gz") as inner:
        assert sorted(inner.getnames()) == ["lock.txt", "wheels", "wheels/one-1.0-py3-none-any.whl", "wheels/two-2.0-py3-none-any.whl"]
    (place / "requirements.txt").unlink()
    done = env("package", "build", place, "--with-env", "-f", f"{place}-a.apkg")
    assert done.returncode == 125 and "no requirements.txt" in done.stderr
    for name in ("a.apkg", "b.apkg"):
        place.with_name(f"{place.name}-{name}").unlink()
