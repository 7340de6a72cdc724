"""/workspace as an overlay: what a command can't forge, trees of earlier versions, and renames of frozen directories."""
# security: files
import json
import os
import pathlib
import subprocess
import zipfile

import pytest

from rest import created, output_of


def tree(daemon, workspace):
    return os.path.join(daemon.home, "carrel", "workspaces", workspace["id"])


def test_workspace_is_an_overlay_that_keeps_its_files(daemon):
    with created(daemon) as workspace:
        assert output_of(daemon, workspace["id"], "stat -f -c %T /workspace; echo kept >f").strip() == "overlayfs"
        with open(f"{tree(daemon, workspace)}/upper/f") as file:
            assert file.read() == "kept\n"
        assert daemon.post(f"/v1/workspaces/{workspace['id']}/suspend", {}).status == 200
        assert output_of(daemon, workspace["id"], "cat f") == "kept\n"


def test_forged_marks_of_a_plain_tree_are_removed_before_it_is_an_overlay(daemon):
    """A version before had no `work`: the tree was what the command saw, attributes and all."""
    with created(daemon, limits={"memory": "600M"}) as workspace:
        top = tree(daemon, workspace)
        owner = os.stat(top)
        os.rmdir(f"{top}/work")
        os.makedirs(f"{top}/upper/closed/inner")
        for name in ("closed/file", "closed/inner/file", "plain"):
            with open(f"{top}/upper/{name}", "w") as file:
                file.write("text\n")
            os.chmod(f"{top}/upper/{name}", 0o400)
        try:
            os.setxattr(f"{top}/upper", "user.overlay.opaque", b"y")
        except OSError:
            pytest.skip("the file system has no user attributes")
        os.setxattr(f"{top}/upper/closed", "user.overlay.redirect", b"/etc")
        os.setxattr(f"{top}/upper/closed", "user.mine", b"1")
        os.chmod(f"{top}/upper/closed/inner/file", 0o600)
        os.setxattr(f"{top}/upper/closed/inner/file", "user.overlay.metacopy", b"")
        os.chmod(f"{top}/upper/closed/inner/file", 0o400)
        os.chmod(f"{top}/upper/closed/inner", 0o000)
        for folder, names, files in os.walk(f"{top}/upper"):
            for name in names + files:
                os.chown(os.path.join(folder, name), owner.st_uid, owner.st_gid, follow_symlinks=False)
        shown = output_of(
            daemon, workspace["id"], "chmod 700 closed/inner; cat plain closed/file closed/inner/file; stat -c %a plain"
        )
        assert shown == "text\ntext\ntext\n400\n"
        assert os.path.isdir(f"{top}/work")
        os.chmod(f"{top}/upper/closed/inner", 0o700)
        assert os.listxattr(f"{top}/upper/closed/inner/file") == []
        assert os.getxattr(f"{top}/upper/closed", "user.mine") == b"1"
        assert "user.overlay.redirect" not in os.listxattr(f"{top}/upper/closed")


def test_a_plain_tree_too_deep_to_be_looked_through_is_named(daemon):
    """The child that looks through it has the stack of a fiber."""
    with created(daemon, limits={"memory": "600M"}) as workspace:
        top = tree(daemon, workspace)
        owner = os.stat(top)
        os.rmdir(f"{top}/work")
        above = os.open(f"{top}/upper", os.O_RDONLY)
        for _ in range(4090):
            os.mkdir("d", dir_fd=above)
            os.chown("d", owner.st_uid, owner.st_gid, dir_fd=above)
            below = os.open("d", os.O_RDONLY, dir_fd=above)
            os.close(above)
            above = below
        os.close(above)
        answer = daemon.post(f"/v1/workspaces/{workspace['id']}/exec", {"argv": ["true"]})
        assert answer.status >= 400 and "deeper than 2048 directories" in answer.json()["detail"], answer


def test_rm_removes_the_home_of_a_stopped_daemon(make_daemon):
    """The kernel keeps a file for whiteouts in a directory below `work` that it makes with mode 0000."""
    daemon = make_daemon()
    workspaces = pathlib.Path(daemon.env["CARREL_HOME"], "workspaces")
    for name in ("kept", "removed"):
        assert daemon.post("/v1/workspaces", {"name": name}).status == 201
        output_of(daemon, name, "echo 1 >f")
        assert daemon.post(f"/v1/workspaces/{name}/snapshots").status == 201
        output_of(daemon, name, "rm f")
    assert list(workspaces.glob("*/work/work/*")), "no whiteout was made there"
    assert daemon.delete("/v1/workspaces/removed").status == 204
    daemon.stop_serving()
    subprocess.run(["rm", "-rf", workspaces], check=True)


RENAMES = r"""
import errno, os, pathlib, shutil, subprocess
def refused(fn, *args):
    try:
        fn(*args)
    except OSError as e:
        assert e.errno == errno.EXDEV, e
    else:
        raise SystemExit(f"{fn} was not refused: the documents say otherwise")
refused(os.rename, "frozen", "renamed")
os.rename("frozen/file", "frozen/other"); os.rename("frozen/other", "frozen/file")
shutil.move("frozen", "moved"); subprocess.run(["mv", "moved", "frozen"], check=True)
assert pathlib.Path("frozen/deep/file").read_text() == "text\n"
def git(*words, **how):
    return subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", "repo", *words], capture_output=True, text=True, **how)
done = git("mv", "dir", "other")
assert done.returncode and "cross-device" in done.stderr, done
subprocess.run(["mv", "repo/dir", "repo/other"], check=True)
git("add", "-A", check=True); git("commit", "-qm", "moved", check=True)
assert git("show", "--stat", "--format=", "-M", check=True).stdout.startswith(" {dir => other}/f")
git("checkout", "-q", "HEAD~1", check=True); assert os.path.exists("repo/dir/f") and not os.path.exists("repo/other")
git("checkout", "-q", "-", check=True); git("gc", "-q", check=True)
"""


@pytest.mark.once
def test_renames_of_frozen_directories_are_as_the_documents_say(daemon):
    """rename(2) of a directory of a lower layer is EXDEV: mv, git checkout, pip and npm copy, git mv doesn't."""
    with created(daemon) as workspace:
        name = workspace["name"]
        output_of(daemon, name, "mkdir -p frozen/deep; echo text | tee frozen/file > frozen/deep/file; git init -q repo 2>/dev/null; cd repo; "
                  "mkdir dir; echo f > dir/f; git add -A; git -c user.name=a -c user.email=a@b commit -qm first")
        assert daemon.post(f"/v1/workspaces/{name}/snapshots").status == 201
        assert daemon("exec", name, "--", "python3", "-c", RENAMES).returncode == 0


@pytest.mark.once
@pytest.mark.shipped
def test_pip_and_npm_replace_frozen_packages(daemon, tmp_path):
    """Both move directories of the old version away."""
    packages = tmp_path / "packages"
    for version in ("1.0", "2.0"):
        wheel = packages / f"thing-{version}-py3-none-any.whl"
        wheel.parent.mkdir(exist_ok=True)
        info = f"thing-{version}.dist-info"
        with zipfile.ZipFile(wheel, "w") as file:
            file.writestr("thing/__init__.py", f"V = '{version}'\n")
            file.writestr("thing/deep/__init__.py", "")
            file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: thing\nVersion: {version}\n")
            file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            file.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in (
                "thing/__init__.py", "thing/deep/__init__.py", f"{info}/METADATA", f"{info}/WHEEL", f"{info}/RECORD")))
        node = tmp_path / "package"
        (node / "lib").mkdir(parents=True, exist_ok=True)
        (node / "package.json").write_text(json.dumps({"name": "thing", "version": f"{version}.0", "main": "lib/index.js"}))
        (node / "lib/index.js").write_text(f"module.exports = '{version}'\n")
        subprocess.run(["tar", "czf", packages / f"thing-{version}.tgz", "-C", tmp_path, "package"], check=True)
    pip = "python3 -m pip install -q --no-index --no-cache-dir --disable-pip-version-check --target lib --upgrade packages/thing-{}-py3-none-any.whl"
    npm = "npm install --offline --no-audit --no-fund --silent --prefix node /workspace/packages/thing-{}.tgz"
    with created(daemon) as workspace:
        name = workspace["name"]
        assert daemon("cp", packages, f"{name}:packages").returncode == 0
        tools = [tool for tool in ("python3 -m pip", "npm")
                 if daemon("exec", name, "--", "sh", "-c", f"{tool} --version").returncode == 0]
        for version in ("1.0", "2.0"):
            if "python3 -m pip" in tools:
                output_of(daemon, name, pip.format(version))
                assert output_of(daemon, name, "PYTHONPATH=lib python3 -c 'import thing; print(thing.V)'") == f"{version}\n"
            if "npm" in tools:
                output_of(daemon, name, f"mkdir -p node; {npm.format(version)}")
                assert output_of(daemon, name, "cd node; node -p 'require(\"thing\")'") == f"{version}\n"
            assert daemon.post(f"/v1/workspaces/{name}/snapshots").status == 201
        if not tools:
            pytest.skip("this host has neither pip nor npm")
