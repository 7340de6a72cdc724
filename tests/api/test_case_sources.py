"""Where the source of a case comes from: archives, hostile ones too, and editable installs with each build backend."""
# security: services
import io
import json
import subprocess
import tarfile
import zipfile

import pytest
from daemons import furnished_daemon as daemon  # noqa: F401

MODULE = "VALUE = 7\n\n\ndef main():\n    print('value', VALUE)\n"
SETUPTOOLS = "[build-system]\nrequires = ['setuptools>=64']\nbuild-backend = 'setuptools.build_meta'\n"
HATCHLING = "[build-system]\nrequires = ['hatchling']\nbuild-backend = 'hatchling.build'\n"
FLIT = "[build-system]\nrequires = ['flit_core>=3.9']\nbuild-backend = 'flit_core.buildapi'\n"
POETRY = "[build-system]\nrequires = ['poetry-core>=2']\nbuild-backend = 'poetry.core.masonry.api'\n"
PROJECT = "[project]\nname = 'sample'\nversion = '1.0'\ndescription = 'a sample'\ndependencies = ['six']\n" \
    "[project.optional-dependencies]\nmore = ['no-such-package-of-carrel']\n[project.scripts]\nsample = 'sample:main'\n"
EXACT = "[tool.hatch.build.targets.wheel]\ndev-mode-exact = true\n"     # needs the package editables when it is imported
CASE = """id: {name}
source: {source}
environment: {{install: editable}}
harness: sed -i 's/= 7/= 8/' {module} && cd / && sample
graders:
- {{type: command, run: "cd / && python3 -c 'import sample, six; print(sample.__file__, sample.VALUE)'"}}
"""


def tar(files):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(text), 0o644
            archive.addfile(info, io.BytesIO(text.encode()))
    return data.getvalue()


def zipped(files):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return data.getvalue()


def compressed(program, data):
    return subprocess.run([program, "-c"], input=data, capture_output=True, check=True).stdout


def lines(out):
    return {one["case"]: one for one in (json.loads(line) for line in (out / "results.jsonl").read_text().splitlines())}


def workspaces(daemon):
    return daemon.get("/v1/workspaces?label=carrel.service=cases").json()["items"]


@pytest.mark.once
def test_editable_installs_with_each_backend_from_each_kind_of_archive(daemon, tmp_path):
    """As releases are packed: all of it in one directory."""
    kinds = {"setuptools": (SETUPTOOLS, "src/sample/__init__.py", "", ".tar.gz"), "hatchling": (HATCHLING, "src/sample/__init__.py", "", ".tar.zst"),
             "exact": (HATCHLING, "sample/__init__.py", EXACT, ".tar"), "flit": (FLIT, "sample.py", "", ".zip"),
             "poetry": (POETRY, "src/sample/__init__.py", "[tool.poetry]\npackages = [{include = 'sample', from = 'src'}]\n", ".tgz")}
    for name, (build, module, more, suffix) in kinds.items():
        files = {"sample-1.0/pyproject.toml": build + PROJECT + more, f"sample-1.0/{module}": f'"""A sample."""\n{MODULE}', "sample-1.0/.hidden": "x"}
        data = zipped(files) if suffix == ".zip" else tar(files)
        data = compressed("gzip", data) if suffix in (".tar.gz", ".tgz") else compressed("zstd", data) if suffix == ".tar.zst" else data
        (tmp_path / f"{name}{suffix}").write_bytes(data)
        (tmp_path / f"{name}.yaml").write_text(CASE.format(name=name, source=f"{name}{suffix}", module=module))
    run = daemon("case", "run", "-j", "2", "--out", tmp_path / "out", *sorted(tmp_path.glob("*.yaml")), timeout=600)
    results = lines(tmp_path / "out")
    assert run.returncode == 0 and len(results) == 5, (run, [(one["error"], one["steps"][-1:]) for one in results.values()])
    for name, (_, module, _, _) in kinds.items():
        harness, grader = results[name]["steps"]
        assert harness["output"] == "value 8\n" and grader["output"] == f"/workspace/{module} 8\n", results[name]
        assert "+VALUE = 8" in results[name]["diff"] and ".carrel-source" not in results[name]["diff"]
    assert workspaces(daemon) == []


@pytest.mark.once
@pytest.mark.shipped
def test_a_release_from_the_index_is_a_source(daemon, tmp_path):
    made = daemon("create", "fetch", "--allow-domain", "registries")
    assert made.returncode == 0, made
    fetched = daemon("exec", "fetch", "--", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "idna==3.10", timeout=300)
    assert fetched.returncode == 0, fetched
    (tmp_path / "idna-3.10.tar.gz").write_bytes(daemon.get("/v1/workspaces/fetch/files/idna-3.10.tar.gz").body)
    assert daemon("rm", "fetch").returncode == 0
    (tmp_path / "idna.yaml").write_text("id: idna\nsource: idna-3.10.tar.gz\nenvironment: {requirements: [pytest], install: editable}\n"
                                        "harness: 'true'\ngraders:\n- {type: pytest, args: [-q, -p, no:cacheprovider], paths: [tests/test_idna.py]}\n")
    run = daemon("case", "run", tmp_path / "idna.yaml", "--out", tmp_path / "out", timeout=600)
    result = lines(tmp_path / "out")["idna"]
    assert run.returncode == 0 and " passed" in result["steps"][1]["output"], (run, result)


@pytest.mark.parametrize("project, words", [
    (None, "the source has neither pyproject.toml nor setup.py"),
    ("[build-system]\nrequires = ['six']\nbuild-backend = 'six'\n", "six can make no editable install (PEP 660)"),
    ("[build-system]\nrequires = ['six']\nbuild-backend = 'no_such_backend'\n", "No module named 'no_such_backend'"),
    (FLIT + "[project]\nname = 'sample'\nversion = '1.0'\ndescription = 'no module'\n", "No file/folder found for module sample"),
    ("[build-system\n", "pyproject.toml"),
], ids=["none", "old", "missing", "broken", "invalid"])
def test_an_editable_install_that_fails_names_the_case(daemon, tmp_path, project, words):
    source = tmp_path / "source"
    source.mkdir()
    (source / "other").write_text("")
    if project is not None:
        (source / "pyproject.toml").write_text(project)
    (tmp_path / "wrong.yaml").write_text(CASE.format(name="wrong", source="source", module="x"))
    run = daemon("case", "run", tmp_path / "wrong.yaml", "--out", tmp_path / "out", timeout=300)
    result = lines(tmp_path / "out")["wrong"]
    assert run.returncode == 1 and (result["state"], result["reason"]) == ("failed", "case"), result
    assert result["error"].startswith("case 'wrong': ") and words in result["error"] and words in run.stderr, result
    assert workspaces(daemon) == []


def test_an_archive_that_is_not_in_one_directory_stays_as_it_is(daemon, tmp_path):
    (tmp_path / "flat.tar").write_bytes(tar({"one/a": "a", "two": "b"}))
    (tmp_path / "alone.tar").write_bytes(tar({"file": "text"}))
    for name, command in (("flat", "test -e one/a && test -e two"), ("alone", "test -f file")):
        (tmp_path / f"{name}.yaml").write_text(f"id: {name}\nsource: {name}.tar\nharness: {command}\ngraders: [{{type: command, run: 'true'}}]\n")
    run = daemon("case", "run", tmp_path / "flat.yaml", tmp_path / "alone.yaml", "--out", tmp_path / "out")
    assert run.returncode == 0, (run, lines(tmp_path / "out"))


def hostile():
    link, device, bomb = tarfile.TarInfo("top/link"), tarfile.TarInfo("top/device"), io.BytesIO()
    link.type, link.linkname = tarfile.SYMTYPE, "/etc"
    device.type = tarfile.CHRTYPE
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("top/zeros", bytes(200 << 20))

    def members(*infos):
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w") as archive:
            for info in infos:
                archive.addfile(info, io.BytesIO(bytes(info.size)))
        return data.getvalue()
    beneath = tarfile.TarInfo("top/link/passwd")
    beneath.size = 4
    return {"traversal.tar": tar({"top/../../etc/passwd": "x"}), "absolute.tar": tar({"/etc/passwd": "x"}), "device.tar": members(device),
            "beneath.tar": members(link, beneath), "traversal.zip": zipped({"../outside": "x"}), "bomb.zip": bomb.getvalue(),
            "garbage.zip": b"PK\x03\x04 this is no archive", "cut.tar.gz": compressed("gzip", tar({"a": "x" * 100000}))[:60]}


@pytest.mark.once
def test_hostile_archives_fail_their_cells_and_leave_nothing(daemon, tmp_path):
    archives = hostile()
    for name, data in archives.items():
        (tmp_path / name).write_bytes(data)
        (tmp_path / f"{name}.yaml").write_text(f"id: {name}\nsource: {name}\nharness: 'true'\ngraders: [{{type: command, run: 'true'}}]\n")
    (tmp_path / "good.yaml").write_text("id: good\nharness: 'true'\ngraders: [{type: command, run: 'true'}]\n")
    run = daemon("case", "run", "-j", "2", "--out", tmp_path / "out", *sorted(tmp_path.glob("*.yaml")), timeout=300)
    results = lines(tmp_path / "out")
    assert run.returncode == 1 and len(results) == len(archives) + 1 and results["good"]["state"] == "passed", run
    for name in archives:
        assert (results[name]["state"], results[name]["reason"]) == ("failed", "error"), results[name]
        assert name in results[name]["error"] and results[name]["steps"] == [], results[name]
    assert workspaces(daemon) == [] and daemon.get("/v1/cases").json()["items"] == []
    assert not (tmp_path.parent / "outside").exists()
