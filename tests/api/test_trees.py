"""/workspace as an overlay: what a command can't forge, and trees of earlier versions."""
import os
import pathlib
import subprocess

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
