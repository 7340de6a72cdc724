"""View root: / is the workspace. What a workspace does in it, and what a hostile tree leaves at the mount points."""
# security: files
import io
import json
import os
import pathlib
import tarfile

import pytest
from harness import one_line
from rest import file_url, problem
from workspaces import created, json_of, sh

OWN = {"bin", "dev", "etc", "lib", "proc", "run", "sbin", "sys", "tmp", "usr", "var", ".cache"}


def upper(daemon, name):
    value = json_of(daemon("info", name, "-o", "json"))
    return pathlib.Path(daemon.env["CARREL_HOME"]) / "workspaces" / value["id"] / "upper"


def text(daemon, name, script):
    done = sh(daemon, name, script)
    assert done.returncode == 0, done
    return done.stdout


@pytest.fixture(scope="module")
def name(daemon):
    with created(daemon, "--view", "root") as made:
        yield made


def test_the_workspace_is_the_root(daemon, name):
    shown = text(daemon, name, "pwd; echo $HOME $PATH $UV_CACHE_DIR; stat -f -c %T / /tmp; grep agent: /etc/passwd; cat /proc/1/comm").splitlines()
    assert shown == ["/", "/ /.venv/bin:/node_modules/.bin:/usr/local/bin:/usr/bin:/bin /.cache/uv", "overlayfs", "tmpfs",
                     "agent:x:1000:1000:agent:/:/bin/sh", "carrel-init"]
    assert text(daemon, name, "mkdir -p /src && echo one >/src/f; echo x >/.cache/x; echo x >/tmp/x; ls -A /src").split() == ["f"]
    assert (upper(daemon, name) / "src/f").read_text() == "one\n"
    assert {entry.name for entry in upper(daemon, name).iterdir()} & OWN == set()      # nothing is made for mounts
    value = json_of(daemon("info", name, "-o", "json"))
    assert value["view"] == "root" and "view          root" in daemon("info", name).stdout
    assert text(daemon, name, "test -e /workspace || echo absent") == "absent\n"
    assert daemon("exec", "-w", "src", name, "pwd").stdout == "/src\n"


def test_what_is_the_sandboxs_own_is_read_only(daemon, name):
    for path in ("/usr", "/bin", "/sbin", "/lib", "/etc", "/etc/ssl", "/proc", "/proc/sys", "/dev", "/sys", "/sys/fs/cgroup", "/run", "/var", "/var/lib"):
        assert sh(daemon, name, f"test -d {path} || exit 1; ! touch {path}/x 2>/dev/null").returncode == 0, path
    for script in ("echo x >/etc/passwd", "echo x >/proc/self/comm", "echo x >/proc/self/oom_score_adj", "mv /etc /old", "rmdir /proc",
                   "rm -r /dev", "ln -sfn /tmp /usr", "mount -t tmpfs none /mnt", "mknod /null c 1 3", "rm /proc/kcore"):
        done = sh(daemon, name, script)
        assert done.returncode not in (0, 125), script
    assert text(daemon, name, "cat /proc/sysrq-trigger /proc/keys /proc/kallsyms 2>/dev/null; echo hi >/dev/null; ls /proc/1/root/ >/dev/null 2>&1 || echo closed") == "closed\n"
    verified = json_of(daemon("verify", "-o", "json", name))
    assert verified["ok"], verified


def test_files_by_the_api(daemon, name):
    text(daemon, name, "mkdir -p /api && echo one >/api/f")
    assert daemon.get(file_url(name, "api/f")).body == b"one\n" and daemon.get(file_url(name, "/api/f")).body == b"one\n"
    assert daemon.request("PUT", file_url(name, "api/new"), b"two").status in (200, 201) and text(daemon, name, "cat /api/new") == "two"
    assert daemon.get(file_url(name, "workspace/api/f")).status == 404
    problem(daemon.request("PUT", file_url(name, "/etc/passwd"), b"x"), 403, "denied")
    for path in ("", "/"):
        problem(daemon.delete(file_url(name, path)), 400, "invalid", "root of a workspace")
    listed = daemon.get(f"/v1/workspaces/{name}/archive?path=")
    with tarfile.open(fileobj=io.BytesIO(listed.body)) as archive:      # of its own tree alone
        names = {member.name.split("/")[0] for member in archive if not member.isdir() or member.name.count("/")}
    assert "api" in names and not names & (OWN - {".cache"}), names


def test_states_keep_the_view(daemon, tmp):
    with created(daemon, "--view", "root") as name:
        text(daemon, name, "echo one >/f; mkdir /d; echo x >/d/x")
        assert daemon("diff", name).stdout.split() == ["A", "d/", "A", "d/x", "A", "f"]
        assert daemon("diff", name, "--path", "/d").stdout.split() == ["A", "d/", "A", "d/x"]
        snapshot = daemon("snapshot", "create", name, "--tag", "first").stdout.strip()
        text(daemon, name, "echo two >/f; rm -r /d")
        assert daemon("diff", name).stdout.split() == ["D", "d/", "D", "d/x", "M", "f"]
        assert daemon("snapshot", "rollback", name, "first").returncode == 0 and text(daemon, name, "cat /f /d/x") == "one\nx\n"
        with created(daemon, "--from", snapshot) as other:
            assert json_of(daemon("info", other, "-o", "json"))["view"] == "root" and text(daemon, other, "cat /f") == "one\n"
        with created(daemon, "--from", snapshot, "--view", "workspace") as other:
            assert text(daemon, other, "pwd; cat /workspace/f; test -e /f || echo absent") == "/workspace\none\nabsent\n"
        fork = daemon("fork", name).stdout.strip()
        assert text(daemon, fork, "pwd; cat /f") == "/\none\n" and daemon("rm", fork).returncode == 0
        assert daemon("rm", "--archive", name).returncode == 0
        kept = next(row["name"] for row in json_of(daemon("archive", "ls", "-o", "json")) if row["workspace"] == name)
        assert daemon("restore", kept, "--name", name).returncode == 0
        assert text(daemon, name, "pwd; cat /f") == "/\none\n"


@pytest.mark.parametrize("plant", ["ln -s /tmp {}", "echo evil >{}", "mkfifo {}", "mkdir {0} && echo evil >{0}/passwd"])
def test_what_a_hostile_tree_has_at_the_mount_points_is_not_followed(daemon, plant):
    """An archive, or a rollback, brings any tree: it is planted from outside here, as such a tree would be."""
    with created(daemon, "--view", "root") as name:
        text(daemon, name, "echo mine >/f")
        assert daemon("suspend", name).returncode == 0
        place = upper(daemon, name)
        owner = place.stat()
        for point in ("etc", "usr", "proc", "dev", "tmp", "bin", ".cache"):
            assert os.system(f"cd {place} && {plant.format(point)}") == 0
            for path in [place / point, *(place / point).glob("*")] if not (place / point).is_symlink() else [place / point]:
                os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)
        shown = text(daemon, name, "head -1 /etc/passwd; stat -f -c %T /proc /tmp; test -c /dev/null && test -x /usr/bin/env && test -x /bin/sh && cat /f; touch /tmp/x; ls /tmp")
        assert shown == "root:x:0:0:root:/:/usr/sbin/nologin\nproc\ntmpfs\nmine\nx\n", shown
        aside = [path.name for path in place.iterdir() if ".aside-" in path.name]
        assert len(aside) == (0 if plant.startswith("mkdir") else 7), aside     # kept, under another name


def test_a_root_that_was_closed_is_opened_by_the_next_sandbox(daemon):
    with created(daemon, "--view", "root") as name:
        text(daemon, name, "echo kept >/f; chmod 0 /")
        assert sh(daemon, name, "true").returncode != 0
        assert daemon("suspend", name).returncode == 0
        assert text(daemon, name, "cat /f; stat -c %a /") == "kept\n700\n"


def test_what_replaces_the_parent_of_a_mount_point_gives_way(daemon):
    """A command can rename a directory above a mount point; the workspace must start all the same."""
    assert daemon("tree", "create", "points").returncode == 0
    for view, top in (("workspace", "/workspace"), ("root", "")):
        with created(daemon, "--view", view, "--attach", f"points:{top}/a/b/c:ro", "--attach", f"points:{top}/z") as name:
            plants = ("ln -s /etc a", "echo file >a", "mkdir a; ln -s /usr a/b", "mkdir -p a/b; echo x >a/b/c", "mkfifo a", "mkdir a; chmod 0 a")
            for number, plant in enumerate(plants):
                text(daemon, name, f"cd {top or '/'}; mv a old-{number}; {plant}")
                assert daemon("suspend", name).returncode == 0
                shown = sh(daemon, name, f"chmod 755 {top}/a; stat -c %F {top}/a/b/c; touch {top}/a/b/c/x; touch {top}/z/x")
                assert shown.stdout == "directory\n" and "Read-only" in shown.stderr, (plant, shown)
    assert daemon("tree", "rm", "points").returncode == 0


def test_a_mount_point_in_a_shared_tree_must_be_there(daemon):
    for name in ("outer", "inner"):
        assert daemon("tree", "create", name).returncode == 0
    with created(daemon, "--attach", "outer:/workspace/o", "--attach", "inner:/workspace/o/i") as name:
        done = sh(daemon, name, "true")
        assert done.returncode == 125
        one_line(done.stderr.splitlines()[0] if "\n" in done.stderr.strip() else done.stderr, "/workspace/o/i")
        assert "shared trees" in done.stderr
    assert daemon("tree", "rm", "outer").returncode == daemon("tree", "rm", "inner").returncode == 0


def test_bad_input(daemon, tmp):
    for args, words in ((["--view", "none"], ["--view", "none"]), (["--view", "root", "--dir", tmp], ["dir", "root"])):
        done = daemon("create", *args)
        assert done.returncode in (2, 125) and all(word in done.stderr for word in words), done
        done = daemon("run", *args, "true")
        assert done.returncode in (2, 125) and all(word in done.stderr for word in words), done
    problem(daemon.post("/v1/workspaces", {"view": "none"}), 400, "invalid", "view")


def test_mounts_in_the_root(daemon, tmp):
    (tmp / "data").mkdir()
    (tmp / "data/f").write_text("host\n")
    with created(daemon, "--view", "root", "-v", f"{tmp}/data:/data/in:ro", "-v", f"{tmp}/data/f:/etc/own:ro", "-v", f"{tmp}/data:/tmp/d") as name:
        assert text(daemon, name, "cat /data/in/f /etc/own /tmp/d/f; touch /data/in/x 2>/dev/null; touch /data/y; ls /data") == "host\n" * 3 + "in\ny\n"


def test_run_in_view_root(daemon):
    done = daemon("run", "--view", "root", "-w", "d", "--", "true")
    assert done.returncode != 0 and "/d" in done.stderr
    done = daemon("run", "--view", "root", "--disk", "8M", "--memory", "256M", "-o", "json", "--", "sh", "-c", "pwd; echo $HOME; dd if=/dev/zero of=/big bs=1M count=20 2>/dev/null")
    value = json.loads(done.stdout)
    assert value["stdout"] == "/\n/\n" and value["reason"] == "disk_limit", value
    plan = json.loads(daemon("run", "--view", "root", "--plan", "--", "true").stdout)
    assert plan["workspace"]["target"] == "/" and {"etc", "proc", "usr"} <= set(plan["covers"])


def test_skills_and_tickets_are_links_to_shared_trees(daemon):
    for tree in ("lore", "ticket-7"):
        assert daemon("tree", "create", tree).returncode == 0
    with created(daemon, "--attach", "lore:/workspace/s") as writer:
        text(daemon, writer, "echo how >s/one.md")
    for view, top in (("workspace", "/workspace"), ("root", "")):
        with created(daemon, "--view", view, "--attach", f"lore:{top}/.solven/skills/system:ro", "--attach", f"ticket-7:{top}/.ticket") as name:
            assert text(daemon, name, "readlink .solven/skills/system .ticket; cat .solven/skills/system/one.md; echo done >.ticket/state") == \
                "/opt/carrel/trees/lore\n/opt/carrel/trees/ticket-7\nhow\n"
            assert sh(daemon, name, "touch .solven/skills/system/x").returncode == 1
            text(daemon, name, "rm -r .solven .ticket; ln -s /etc .solven; echo x >.ticket")     # nothing is mounted there
            assert daemon("suspend", name).returncode == 0
            assert text(daemon, name, "cat .ticket /opt/carrel/trees/ticket-7/state; rm /opt/carrel/trees/ticket-7/state") == "x\ndone\n"
    done = daemon("create", "--attach", "lore:/workspace/.ticket", "--attach", "lore:/workspace/.solven/skills/a")
    assert done.returncode == 125 and "lore" in done.stderr
    for tree in ("lore", "ticket-7"):
        assert daemon("tree", "rm", tree).returncode == 0


def test_templates_say_view_and_trees(daemon, tmp):
    assert daemon("tree", "create", "shared").returncode == 0
    base, child = tmp / "base.yaml", tmp / "child.yaml"
    base.write_text('version: "1.0"\nname: rooted\nview: root\nattach: ["shared:/lib-x:ro", "shared:/opt/y"]\n'
                    'security:\n  filesystem_writable: ["/", "/tmp", "/data"]\n')
    child.write_text('version: "1.0"\nname: child\nextends: rooted\nattach: ["shared:/lib-x"]\n')
    for path in (base, child):
        done = daemon("template", "add", path)
        assert done.returncode == 0 and "warning" not in done.stderr, done
    assert json_of(daemon("template", "show", "-o", "json", "child"))["attach"] == ["shared:/opt/y", "shared:/lib-x"]
    with created(daemon, "--template", "rooted") as name:
        assert text(daemon, name, "pwd; touch /lib-x/x 2>/dev/null || echo closed; echo 1 >/opt/y/one; cat /lib-x/one") == "/\nclosed\n1\n"
        value = json_of(daemon("info", name, "-o", "json"))
        assert (value["view"], value["attach"]) == ("root", ["shared:/lib-x:ro", "shared:/opt/y"])
    with created(daemon, "--template", "child", "--view", "workspace") as name:
        assert text(daemon, name, "pwd; cat /lib-x/one; touch /lib-x/two") == "/workspace\n1\n"
    assert daemon("run", "--template", "rooted", "--", "sh", "-c", "pwd; cat /lib-x/one").stdout == "/\n1\n"
    for text_of, line, word in (("view: sideways", 3, "view"), ("attach: [shared]", 3, "attach"), ("attach: ['shared:rel']", 3, "attach"),
                                ("attach: ['Sh:/x']", 3, "attach"), ("veiw: root", 3, "veiw")):
        bad = tmp / "bad.yaml"
        bad.write_text(f'version: "1.0"\nname: bad\n{text_of}\n')
        done = daemon("template", "add", bad)
        assert done.returncode == 125 and f"line {line}" in done.stderr and word in done.stderr and "bad.yaml" in done.stderr, (text_of, done)
    for name in ("child", "rooted"):
        assert daemon("template", "rm", name).returncode == 0
    assert daemon("tree", "rm", "shared").returncode == 0
