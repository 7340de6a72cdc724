"""The command line with a daemon on another machine, of which it has a URL, a token and the certificate of an authority. As root the two are
network namespaces with a cable between them; as a plain user they are the two ends of the loopback device."""
# security: doors
import contextlib
import json
import subprocess
import threading

import pytest
from authorities import make_authority, make_certificate
from daemons import new_directory, remove, serving
from harness import CARREL, IS_ROOT, eventually, one_line
from remotes import far_from
from terminals import terminal
from workspaces import json_of

FAR, NEAR = "192.0.2.2", "192.0.2.1"


@contextlib.contextmanager
def namespace():
    """The words before a command that runs in a new network namespace."""
    with subprocess.Popen(["unshare", "-n", "sh", "-c", "ip link set lo up && echo up && exec sleep infinity"], stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout.readline() == b"up\n"
            yield holder.pid, ["nsenter", f"--net=/proc/{holder.pid}/ns/net"]
        finally:
            holder.kill()


@contextlib.contextmanager
def machines():
    """(words for the client, words for the daemon, the address of the daemon)"""
    if not IS_ROOT:
        yield [], [], "127.0.0.1"
        return
    with namespace() as (near, to_near), namespace() as (far, to_far):
        def ip(words, *arguments):
            subprocess.run([*words, "ip", *arguments], check=True)
        ip(to_near, "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", str(far))
        for words, address in ((to_near, NEAR), (to_far, FAR)):
            ip(words, "address", "add", f"{address}/24", "dev", "cable")
            ip(words, "link", "set", "cable", "up")
        yield to_near, to_far, FAR


def wrapped(directory, words, program):
    """A program that is `program`, there."""
    directory.mkdir()
    path = directory / "carrel"
    path.write_text(f'#!/bin/sh\nexec {" ".join(words)} {program} "$@"\n')
    path.chmod(0o755)
    return path


@pytest.fixture(scope="module")
def far(tmp_path_factory):
    directory = new_directory()
    authority = make_authority(tmp_path_factory.mktemp("authority"))
    with machines() as (near, there, address), contextlib.ExitStack() as stack:
        stack.callback(remove, directory)
        files = make_certificate(authority, "daemon", f"IP:{address},DNS:localhost")
        program = None
        if there:
            program = wrapped(directory / "there", there, CARREL)
        daemon = stack.enter_context(serving(directory, program=program))
        token = daemon.post("/v1/tokens", {"scope": "admin"}).json()["text"]
        daemon.stop_serving()
        daemon.log_path.write_text("")
        daemon.options += ("--listen", f"{address}:0", "--tls-cert", files / "server.pem", "--tls-key", files / "server.key")
        daemon.start_serving()
        port = [line for line in daemon.log().splitlines() if f"socket={address}:" in line][0].rpartition(":")[2]
        client = wrapped(directory / "here", near, CARREL)
        with far_from(daemon, f"https://{address}:{port}", token, path=client, CARREL_CA=str(authority / "ca.pem")) as one:
            one.words = near
            yield one


@pytest.fixture(scope="module")
def workspace(far):
    assert far("create", "demo", "--label", "team=search").stdout == "demo\n"
    yield "demo"
    assert far("rm", "--force", "demo").returncode == 0


def test_a_session_from_the_beginning_to_the_end(far, workspace, tmp_path):
    assert far("exec", workspace, "--", "sh", "-c", "cat > notes; echo kept", input="one\n").stdout == "kept\n"
    (tmp_path / "src/deep").mkdir(parents=True)
    (tmp_path / "src/deep/file").write_text("tree\n")
    assert far("cp", tmp_path / "src", "demo:").returncode == 0
    assert far("cp", "demo:src/deep/file", "-").stdout == "tree\n"
    assert far("snapshot", "create", workspace, "--tag", "first").returncode == 0
    assert far("exec", workspace, "--", "sh", "-c", "echo two >> notes; rm -r src").returncode == 0
    assert [line.split() for line in far("diff", workspace).stdout.splitlines()][0][-1] == "notes"
    (tmp_path / "to").mkdir()
    (tmp_path / "to/notes").write_text("one\n")
    assert far("apply", workspace, "notes", "--to", tmp_path / "to").returncode == 0
    assert (tmp_path / "to/notes").read_text() == "one\ntwo\n"
    assert far("fork", workspace, "copy", "--snapshot", "first").returncode == 0
    try:
        assert far("exec", "copy", "--", "sh", "-c", "cat notes src/deep/file").stdout == "one\ntree\n"
        assert {item["name"] for item in json_of(far("ls", "-o", "json"))} == {workspace, "copy"}
        assert far("top", "--once").returncode == 0 and far("health", "copy").returncode == 0
    finally:
        assert far("rm", "copy").returncode == 0
    assert "workspace.create" in far("audit", "--type", "workspace").stdout


def test_background_commands_are_followed_and_attached_to(far, workspace):
    script = "read word; echo got $word; echo err >&2; exit 6"
    exec_ = far("exec", "-d", "-i", workspace, "--", "sh", "-c", script).stdout.strip()
    with far.start("logs", "-f", exec_) as logs:
        done = far("attach", exec_, input="word\n")
        assert (done.stdout, done.stderr, done.returncode) == ("got word\n", "err\n", 6)
        assert logs.communicate(timeout=60) == ("got word\n", "err\n")
    assert far("wait", exec_).stdout == "6\n" and exec_ in far("ps", "-a", workspace).stdout


def test_a_terminal_is_one(far, workspace):
    with terminal(far, "exec", "-it", workspace, "bash", "--norc", rows=30, columns=90) as term:
        term.send("stty size; tty\n")
        term.expect(r"30 90\r\n/dev/pts/\d+\r\n")
        term.resize(31, 91)
        term.send("""sh -c "echo be''gun; exec sleep 1000"\n""")     # then the terminal is its own, and no longer the shell's
        term.expect("begun\r\n")
        term.send("\x03")
        term.expect(r"\^C")
        term.send("stty size; exit 5\n")
        term.expect(r"31 91\r\n")
        term.rest()
        assert term.process.returncode == 5


def test_a_port_of_it_is_one_of_this_machine(far, workspace):
    far("exec", workspace, "--", "sh", "-c", "echo page > index.html")
    far("exec", "-d", workspace, "--", "python3", "-m", "http.server", "8000")
    assert eventually(lambda: "8000" in far("port", workspace).stdout)
    with far.start("port", workspace, "8000", "--listen", ":0", "-o", "json") as process:
        address = json.loads(process.stdout.readline())["listen"]
        script = f"import urllib.request; print(urllib.request.urlopen('http://{address}/').read().decode(), end='')"
        assert subprocess.run([*far.words, "python3", "-c", script], capture_output=True, text=True, timeout=60).stdout == "page\n"
        process.terminate()


def test_events_come_as_they_happened(far, workspace):
    with far.start("events", "--after", "0", "--workspace", workspace) as events:
        late = threading.Timer(60, events.kill)
        late.start()
        assert "workspace.created" in events.stdout.readline()
        late.cancel()


def test_root_that_can_be_nobody_else_is_a_client_too(far, workspace):
    """In containers: without capabilities, or in a user namespace with one id."""
    alone = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if IS_ROOT else ["unshare", "--map-root-user"]
    done = subprocess.run([*far.words, *alone, CARREL, "exec", workspace, "--", "echo", "there"], env=far.env, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=60)
    assert (done.stdout, done.returncode) == ("there\n", 0), done.stderr


def test_who_may_not_is_told(far, workspace):
    """Also of a token that is bound to a workspace."""
    done = far("ls", env={"CARREL_TOKEN": ""})
    assert done.returncode == 125
    one_line(done.stderr)
    token = far("token", "create", "--workspace", workspace).stdout.strip()
    assert far("exec", workspace, "--", "echo", "mine", env={"CARREL_TOKEN": token}).stdout == "mine\n"
    assert far("token", "ls", env={"CARREL_TOKEN": token}).returncode == 125
    assert far("rm", "nosuch", env={"CARREL_TOKEN": token}).returncode == 125
