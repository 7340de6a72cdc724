"""Pre-built environments of packages (package.venv.tar.gz): used only when their lock and wheels are what requirements.txt needs."""
# security: packages
import io
import tarfile

import pytest
from daemons import nothing_survives  # noqa: F401
from harness import eventually
from packages_made import sha256
from rollouts import clean, deploy, left  # noqa: F401
from test_deployment_envs import daemon, package  # noqa: F401
from wheels import wheel

pytestmark = pytest.mark.shipped
ONE, TWO = wheel("one", "1.0", requires=["two"]), wheel("two", "2.0")


def lock(*wheels):
    return "".join(f"{one.name}=={one.version} --hash=sha256:{one.sha256}\n" for one in wheels)


def archive(members):
    """A tar.gz of names and bytes, or of TarInfo as they are. Each worker makes all of them when it collects its tests: quickly."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=1) as tar:
        for name, content in members.items():
            if isinstance(content, tarfile.TarInfo):
                tar.addfile(content)
                continue
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def prebuilt(*wheels, locked=None, more=None):
    members = {f"wheels/{one.filename}": one.data for one in wheels}
    return archive({"lock.txt": (locked or lock(*wheels)).encode(), **members, **(more or {})})


def member(kind, name, **fields):
    info = tarfile.TarInfo(name)
    info.type = kind
    for field, value in fields.items():
        setattr(info, field, value)
    return info


def test_a_prebuilt_environment_needs_no_index(clean):
    """None of these packages is in an index, and no other test has them: a lock that was checked is not checked again."""
    first, second = wheel("first", "1.0", requires=["second"]), wheel("second", "2.0")
    data = package("first", more={"package.venv.tar.gz": prebuilt(first, second)})
    asked = len(clean.index.requests)
    shown = deploy(clean, data)
    made = shown["venv"]
    assert made["installed_packages"] == {"first": "1.0", "second": "2.0"} and made["source"] == "package" and made["cached"] is False
    assert made["requirements_sha256"] == sha256(b"first\n") and made["name"].startswith("greeter@1.0.0_")
    assert len(clean.index.requests) == asked
    answer = clean.post(f"/v1/workspaces/{shown['surfaces'][0]['workspace']}/exec", {"argv": ["python3", "-c", "import first, second; print(first.__file__)"]})
    assert answer.json()["stdout"].startswith("/env/lib/python"), answer
    assert deploy(clean, data)["venv"] == {**made, "cached": True}
    assert clean.post("/v1/deployments/greeter/restart").status == 200
    eventually(lambda: clean.get("/v1/deployments/greeter").json()["revision"] == 3)
    assert clean.get("/v1/deployments/greeter").json()["venv"] == {**made, "cached": True}
    eventually(lambda: {one["labels"]["carrel.role"] for one in left(clean)} == {"package", "rest"})


def test_a_forged_wheel_is_seen_by_nobody_else(clean):
    """The same name, version and requirements: what was forged is found by the hash of the forged wheel alone."""
    honest, forged = wheel("shared", "1.0"), wheel("shared", "1.0", files={"shared.py": "evil = 1\n"})
    assert honest.sha256 != forged.sha256
    bad = deploy(clean, package("shared==1.0", more={"package.venv.tar.gz": prebuilt(forged)}))["venv"]
    clean.index.add(honest)
    good = deploy(clean, package("shared==1.0"))
    assert good["venv"]["source"] == "index" and good["venv"]["name"] != bad["name"] and good["venv"]["cached"] is False
    answer = clean.post(f"/v1/workspaces/{good['surfaces'][0]['workspace']}/exec", {"argv": ["python3", "-c", "import shared; print(hasattr(shared, 'evil'))"]})
    assert answer.json()["stdout"] == "False\n", answer


EXTRA = wheel("extra", "1.0")
OTHER = wheel("two", "2.0", files={"two.py": "other = 1\n"})
LYING = wheel("two", "2.0", wrong_records=["two.py"])


HOSTILE = [
    (archive({"pyvenv.cfg": b"home = /usr/bin\n", "bin/python": b"#!/bin/sh\n"}), "no lock.txt"),
    (b"not even an archive", "package.venv.tar.gz"),
    (prebuilt(ONE), "two"),                                                      # what one needs isn't there
    (prebuilt(ONE, TWO, locked=lock(ONE)), "two-2.0"),                           # a wheel that the lock doesn't have
    (prebuilt(ONE, locked=lock(ONE, TWO)), "no wheel of 'two==2.0'"),
    (prebuilt(ONE, OTHER, locked=lock(ONE, TWO)), "has the hash"),               # another wheel than the lock says
    (prebuilt(ONE, LYING), "two.py"),                                            # a file isn't what RECORD says
    (prebuilt(ONE, TWO, EXTRA), "the requirements don't need it"),
    (prebuilt(ONE, TWO, locked=lock(ONE, TWO).replace("two==2.0", "two==2.1")), "another version"),
    (prebuilt(ONE, TWO, locked="one==1.0\ntwo==2.0\n"), "lock.txt"),            # no hashes
    (prebuilt(ONE, TWO, locked="../x\n"), "lock.txt"),
    (prebuilt(ONE, TWO, more={"bin/python": b"#!"}), "neither lock.txt nor wheels"),
    (prebuilt(ONE, TWO, more={"../evil": b"x"}), "evil"),
    (prebuilt(ONE, TWO, more={"/evil": b"x"}), "evil"),
    (prebuilt(ONE, TWO, more={"d": member(tarfile.CHRTYPE, "wheels/dev", devmajor=1, devminor=3)}), "wheels/dev"),
    (prebuilt(ONE, more={"l": member(tarfile.SYMTYPE, f"wheels/{TWO.filename}", linkname="/etc/passwd")}), "not a regular file"),
    (archive({"lock.txt": member(tarfile.SYMTYPE, "lock.txt", linkname="/etc/shadow")}), "not a regular file"),
    (archive({"lock.txt": lock(ONE).encode(), "w": member(tarfile.SYMTYPE, "wheels", linkname="/usr/share")}), "wheels"),
    (prebuilt(ONE, TWO, more={"s": member(tarfile.REGTYPE, "wheels/suid", mode=0o4755)}), "wheels/suid"),
    (prebuilt(ONE, TWO, more={"wheels/zeros": bytes(300 << 20)}), "times its size"),
]


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_what_does_not_verify_is_refused(clean, number):
    """And never used in part: nothing of it stays, and nothing is installed from an index instead."""
    data, words = HOSTILE[number]
    clean.index.add(ONE, TWO)
    asked = len(clean.index.requests)
    shown = deploy(clean, package("one", more={"package.venv.tar.gz": data}), status="failed")
    assert "package.venv.tar.gz" in shown["error"] and words in shown["error"], shown["error"]
    assert len(clean.index.requests) == asked
    eventually(lambda: not left(clean))


def test_a_prebuilt_environment_needs_requirements(clean):
    shown = deploy(clean, package(more={"package.venv.tar.gz": prebuilt(ONE, TWO)}), status="failed")
    assert "no requirements" in shown["error"], shown


def test_a_blocked_package_is_refused_in_a_prebuilt_environment(clean):
    shown = deploy(clean, package("blocked", more={"package.venv.tar.gz": prebuilt(wheel("blocked", "1.0"))}), status="failed")
    assert "blocked" in shown["error"], shown
