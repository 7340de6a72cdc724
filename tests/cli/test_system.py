"""What a sandbox shows of the host's /etc and /var: the configuration that programs need, and nothing else."""
# security: files
import json
import os
import pathlib
import subprocess
import tempfile

import pytest

from daemons import serving
from harness import CARREL, PATH

NEEDED = ["/etc/ImageMagick-6", "/etc/alternatives", "/etc/chromium.d", "/etc/emacs", "/etc/fonts", "/etc/groff",
          "/etc/libreoffice", "/etc/manpath.config", "/etc/mime.types", "/etc/papersize", "/etc/php", "/etc/sgml",
          "/etc/texmf", "/etc/xml", "/var/cache/fontconfig", "/var/lib/ghostscript", "/var/lib/sgml-base",
          "/var/lib/texmf"]
CLOSED = ["/etc/shadow", "/etc/ssh", "/etc/ssl/private", "/etc/sudoers", "/etc/machine-id", "/etc/resolv.conf",
          "/etc/network", "/etc/gitconfig", "/etc/pip.conf", "/etc/npmrc", "/etc/profile", "/etc/apt", "/etc/pam.d",
          "/etc/subuid", "/var/lib/postgresql", "/var/lib/systemd", "/var/log", "/var/spool"]


def listed(carrel, paths):
    done = carrel.run("--", "sh", "-c", 'for path; do [ -e "$path" ] && echo "$path"; done; true', "-", *paths)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_configuration_of_installed_programs_is_shown(carrel):
    there = [path for path in NEEDED if os.path.exists(path)]
    assert "/etc/mime.types" in there, "this host lacks media-types, which Debian's Python depends on"
    assert listed(carrel, NEEDED) == there


def test_secrets_and_the_identity_of_the_host_are_not_shown(carrel):
    assert listed(carrel, CLOSED) == []


def test_mimetypes_are_those_of_the_host(carrel):
    guess = "import mimetypes; print(mimetypes.guess_type('paper.epub')[0])"
    done = carrel.run("--", "python3", "-c", guess)
    assert done.stdout == "application/epub+zip\n", done.stderr


@pytest.mark.parametrize("path", ["/etc/mime.types", "/etc/alternatives", "/etc/localtime"])
def test_volume_replaces_what_is_shown_by_default(carrel, tmp, path):
    mine = tmp / "mine"
    if os.path.isdir(path):
        mine.mkdir()
        (mine / "file").write_text("mine\n")
    else:
        mine.write_text("mine\n")
    done = carrel.run("-v", f"{mine}:{path}:ro", "--", "sh", "-c", f"cat {path} || cat {path}/file")
    assert done.stdout == "mine\n", done.stderr


def test_volume_over_etc_itself_is_refused(carrel, tmp):
    done = carrel.run("-v", f"{tmp}:/etc", "--", "true")
    assert done.returncode == 125 and "/etc" in done.stderr


def test_reverse_lookup_answers_from_hosts_without_waiting(carrel):
    text = """
import socket
print(socket.gethostbyaddr("127.0.0.1")[0], socket.gethostbyaddr("::1")[0], socket.getfqdn())
try: socket.gethostbyaddr("192.0.2.1")
except socket.herror: print("unknown")
try: socket.getaddrinfo("nobody.invalid", 80)
except socket.gaierror as err: print(err.errno == socket.EAI_NONAME)
"""
    done = carrel.run("--timeout", "20s", "--", "python3", "-c", text)
    assert done.stdout == "localhost localhost localhost\nunknown\nTrue\n", done.stderr


@pytest.fixture
def shared_tree():
    """A directory outside /tmp and /var/tmp, which are the sandbox's own. Only root can make one on every host."""
    with tempfile.TemporaryDirectory(prefix="carrel-shown.", dir="/opt") as name:
        os.chmod(name, 0o755)
        pathlib.Path(name, "file").write_text("mine\n")
        os.chmod(pathlib.Path(name, "file"), 0o666)     # what keeps it is the mount, not its mode
        pathlib.Path(name, "link").symlink_to("file")
        yield name


def configure(carrel, text, mode=0o644):
    path = pathlib.Path(carrel.env["CARREL_HOME"], "config.yaml")
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def shown(carrel, *paths):
    configure(carrel, "system:\n  show:\n" + "".join(f"    - {path}\n" for path in paths))


def test_operator_shows_more(carrel):
    wanted = ["/etc/debian_version", "/var/lib/dpkg/status"]
    assert listed(carrel, wanted) == []
    shown(carrel, "/etc/debian_version", "/var/lib/dpkg")
    assert listed(carrel, wanted) == wanted
    done = carrel.run("--", "sh", "-c", "cat /etc/debian_version; touch /var/lib/dpkg/new")
    assert done.stdout == pathlib.Path("/etc/debian_version").read_text()
    assert "Read-only file system" in done.stderr


@pytest.mark.needs_root
def test_operator_shows_more_read_only_and_at_the_same_path(carrel, shared_tree):
    shown(carrel, shared_tree, "/etc/debian_version")
    done = carrel.run("--", "sh", "-c", f"cat {shared_tree}/file {shared_tree}/link /etc/debian_version; echo more >> {shared_tree}/file")
    assert done.stdout == "mine\nmine\n" + pathlib.Path("/etc/debian_version").read_text()
    assert "Read-only file system" in done.stderr
    assert (pathlib.Path(shared_tree) / "file").read_text() == "mine\n"


@pytest.mark.needs_root
def test_link_to_show_leads_to_what_it_names(carrel, shared_tree):
    link = pathlib.Path(shared_tree + ".link")
    link.symlink_to(shared_tree)
    try:
        shown(carrel, link)
        assert carrel.run("--", "cat", f"{link}/file").stdout == "mine\n"
    finally:
        link.unlink()


@pytest.mark.parametrize("path, why", [
    ("/etc", "holds '/etc/group'"), ("/", "holds"), ("/etc/shadow", "a secret"), ("/etc/ssl", "holds '/etc/ssl/private'"),
    ("/proc/1", "part of the sandbox"), ("/run", "where the host keeps its sockets"), ("/nonexistent/here", "No such file"),
    ("relative", "not an absolute, plain path"), ("/usr/../etc/shadow", "not an absolute, plain path")])
def test_path_that_is_not_to_be_shown_is_refused(carrel, path, why):
    shown(carrel, path)
    done = carrel.run("--", "true")
    assert done.returncode == 125 and "system.show" in done.stderr and why in done.stderr, done.stderr


@pytest.mark.needs_root
def test_home_and_directories_around_it_are_not_shown(carrel, shared_tree):
    home = pathlib.Path(shared_tree, "home")
    home.mkdir()
    carrel.env["CARREL_HOME"] = str(home)
    for path in (shared_tree, home, home / "run"):
        if path == home / "run":
            path.mkdir(exist_ok=True)
        shown(carrel, path)
        done = carrel.run("--", "true")
        assert done.returncode == 125 and "carrel's home" in done.stderr, done.stderr


@pytest.mark.needs_root
def test_link_does_not_lead_to_a_secret(carrel, shared_tree):
    link = pathlib.Path(shared_tree, "secret")
    link.symlink_to("/etc/ssh" if os.path.isdir("/etc/ssh") else "/root")
    shown(carrel, link)
    done = carrel.run("--", "true")
    assert done.returncode == 125 and "a secret" in done.stderr


@pytest.mark.needs_root
@pytest.mark.parametrize("uid, mode", [(64199, 0o644), (0, 0o666), (0, 0o664)])
def test_root_shows_nothing_that_others_could_have_written(carrel, shared_tree, uid, mode):
    path = configure(carrel, f"system:\n  show: [{shared_tree}]\n", mode)
    os.chown(path, uid, uid)
    done = carrel.run("--", "true")
    assert done.returncode == 125 and f"'{path}' belongs to uid {uid} and has the mode {mode:04o}" in done.stderr
    assert f"chown 0:{path.parent.stat().st_gid} '{path}'; chmod g+r,go-w '{path}'" in done.stderr
    os.chown(path, 0, 0)
    path.chmod(0o644)
    assert carrel.run("--", "true").returncode == 0


@pytest.mark.parametrize("text", ["", "access:\n  default: none\n", '"policy":\n  default: deny\n', " policy: {}\n", "environments:\n  max_envs: 7\n"],
                         ids=["empty", "access", "quoted policy", "indented policy", "environments"])
@pytest.mark.parametrize("mode", [0o666, 0o664])
def test_a_configuration_that_others_can_write_is_refused_whatever_it_says(carrel, text, mode):
    path = configure(carrel, text, mode)
    done = carrel.run("--", "id")
    assert (done.returncode, done.stdout) == (125, "") and f"'{path}' belongs to uid {os.getuid()} and has the mode {mode:04o}" in done.stderr, done
    assert f"chmod {'g+r,' if os.getuid() == 0 else ''}go-w '{path}'" in done.stderr


@pytest.mark.needs_root
def test_a_plain_user_s_configuration_of_another_user_is_refused(other_user):
    """Root's own file holds there: the operator of a host may have written it."""
    with tempfile.TemporaryDirectory(prefix="carrel-tests.", dir="/var/tmp") as home:
        os.chown(home, 12345, 12345)
        path = pathlib.Path(home, "config.yaml")
        path.write_text('"policy":\n  default: deny\n')
        path.chmod(0o644)
        run = lambda: subprocess.run([*other_user, CARREL, "run", "--", "id"], cwd="/", env={"PATH": PATH, "CARREL_HOME": home}, stdin=subprocess.DEVNULL,
                                     capture_output=True, text=True)
        done = run()
        assert done.returncode == 126, done      # denied by the policy
        os.chown(path, 12346, 12346)
        done = run()
        assert done.returncode == 125 and f"'{path}' belongs to uid 12346" in done.stderr and f"chown 12345:12345 '{path}'" in done.stderr, done


@pytest.mark.parametrize("make, says", [(lambda path: os.mkfifo(path), "not a regular file"), (lambda path: path.mkdir(), "not a regular file"),
                                        (lambda path: path.symlink_to("/etc/shadow"), "symbolic link")], ids=["fifo", "directory", "link"])
def test_configuration_that_is_no_file_is_named_and_not_waited_for(carrel, make, says):
    path = configure(carrel, "")
    path.unlink()
    make(path)
    done = carrel.run("--", "true")
    assert done.returncode == 125 and says in done.stderr and str(path) in done.stderr, done.stderr


# ---- carrel doctor -- PROGRAM ----

def missed(carrel, *command, code=0):
    done = carrel("doctor", "-o", "json", "--", *command)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["exit_code"] == code
    return {row["path"]: row["can_be_shown"] for row in report["missed"]}


def test_doctor_names_what_a_program_missed(carrel):
    found = missed(carrel, "sh", "-c", "cat /etc/debian_version; ls /var/lib/dpkg/info; test -e /etc/shadow; cat /etc/no-such-file", code=1)
    assert found["/etc/debian_version"] and found["/var/lib/dpkg"] and found["/etc/shadow"] is False
    assert not any(path.startswith(("/usr", "/proc", "/etc/no-such-file", "/etc/mime.types")) for path in found)


def test_what_the_doctor_says_helps(carrel):
    done = carrel("doctor", "--", "cat", "/etc/debian_version")
    assert done.returncode == 0 and "No such file" in done.stderr
    configure(carrel, done.stdout[done.stdout.index("system:"):])
    assert missed(carrel, "cat", "/etc/debian_version") == {}
    done = carrel("doctor", "--", "cat", "/etc/debian_version")
    assert done.stdout.endswith("looked for no path of this host that a sandbox could show.\n")


def test_doctor_sees_threads_and_children(carrel):
    text = """
import os, threading, subprocess
thread = threading.Thread(target=lambda: os.path.exists("/etc/debian_version"))
thread.start(); thread.join()
subprocess.run(["ls", "/var/lib/dpkg"], stderr=subprocess.DEVNULL)
"""
    found = missed(carrel, "/usr/bin/python3", "-c", text)
    assert found["/etc/debian_version"] and found["/var/lib/dpkg"]


def test_doctor_ends_with_a_program_that_is_killed_or_not_there(carrel):
    assert missed(carrel, "sh", "-c", "kill -9 $$", code=137) is not None
    done = carrel("doctor", "--", "no-such-program")
    assert done.returncode == 127 and "no-such-program" in done.stderr and done.stdout == ""


def test_names_with_control_characters_are_not_printed(carrel):
    done = carrel("doctor", "--", "ls", "/etc/\x1b[31m", "/etc/a\nb")
    assert done.returncode == 0 and "\x1b" not in done.stdout and "a\nb" not in done.stdout


def test_landlock_for_writes_is_the_operator_s_choice_and_is_shown(carrel):
    judges = lambda: json.loads(carrel.run("--plan", "--", "true").stdout)["landlock"]["judges"]
    assert judges() == "all"
    configure(carrel, "system:\n  landlock: writes\n")
    assert judges() == "writes"
    assert "restricts writes only" in carrel("doctor").stdout
    done = carrel.sh("cat /usr/bin/env | wc -c; echo x > f && cat f; echo x > /usr/x; (: > /etc/passwd); truncate -s 0 /etc/group; rm /usr/bin/env; "
                     "test -s /etc/group && echo kept")
    assert done.stdout.splitlines()[1:] == ["x", "kept"] and done.stdout[0] != "0" and done.stderr.count("Read-only file system") == 4, done


def test_a_daemon_shows_that_landlock_judges_writes(carrel, tmp_path_factory):
    directory = tmp_path_factory.mktemp("daemon")
    with serving(directory) as daemon:
        home = pathlib.Path(daemon.env["CARREL_HOME"])
        assert daemon("create", "w").returncode == 0
        assert "landlock" in daemon.get("/v1/workspaces/w").json()["layers_active"]
        (home / "config.yaml").write_text("system:\n  landlock: writes\n")
        (home / "config.yaml").chmod(0o644)
        daemon.restart()
        assert "landlock_writes" in daemon.get("/v1/workspaces/w").json()["layers_active"]
        assert daemon("exec", "w", "--", "sh", "-c", "echo x > f && cat f && ! touch /usr/x").stdout == "x\n"


EXCHANGE = """
import ctypes, os, sys
call = ctypes.CDLL(None).renameat2
while os.getppid() == int(sys.argv[3]):
    for _ in range(1000):
        call(-100, os.fsencode(sys.argv[1]), -100, os.fsencode(sys.argv[2]), 2)
"""


@pytest.mark.needs_root
def test_link_put_above_a_shown_path_after_its_check_is_not_followed(carrel, shared_tree):
    above, link = pathlib.Path(shared_tree, "above"), pathlib.Path(shared_tree, "link_to_etc")
    above.mkdir()
    (above / "passwd").write_text("above\n")
    link.symlink_to("/etc")         # /etc/passwd is refused
    shown(carrel, above / "passwd")
    with subprocess.Popen(["/usr/bin/python3", "-c", EXCHANGE, above, link, str(os.getpid())]) as exchanging:
        try:
            seen = {carrel.run("--", "cat", above / "passwd").stdout for _ in range(60)}
        finally:
            exchanging.kill()
    assert "above\n" in seen and seen <= {"above\n", ""}, seen
