"""`carrel run` with a settings.json: the command is judged before anything is started; nobody is asked but on a terminal."""
# security: policy
import json
import os
import pty
import select
import signal

import pytest
from harness import one_line

SETTINGS = {"permissions": {"allow": ["shell(echo:*)", "shell(sh:*)", "shell(cat:*)"], "deny": ["shell(curl:*)"]}}


@pytest.fixture
def settings(tmp_path):
    path = tmp_path / "settings.json"
    path.write_text(json.dumps(SETTINGS))
    return path


def test_what_is_allowed_runs(carrel, settings):
    done = carrel.run("-s", settings, "--", "echo", "hi")
    assert (done.returncode, done.stdout, done.stderr) == (0, "hi\n", "")
    assert carrel.run("--settings", settings, "--", "sh", "-c", "echo hi | cat").stdout == "hi\n"


@pytest.mark.parametrize("command, rule", [(["curl", "x"], "shell(curl:*)"), (["sh", "-c", "echo a; curl x"], "shell(curl:*)"),
                                           (["uname"], "no rule"), (["sh", "-c", "echo $(uname)"], "no rule"),
                                           (["echo", "-e"], None)])
def test_what_is_not_allowed_does_not_run(carrel, settings, command, rule):
    done = carrel.run("-s", settings, "--", *command)
    if not rule:
        assert done.returncode == 0
        return
    assert done.returncode == 126 and done.stdout == "" and rule in done.stderr and "denied" in done.stderr, done
    told = carrel.run("-s", settings, "-o", "json", "--", *command)
    error = json.loads(told.stdout)["error"]
    assert told.returncode == 126 and (error["code"], error["reason"]) == ("denied", "denied"), told


def test_variables_are_judged(carrel, settings):
    assert carrel.run("-s", settings, "-e", "A=1", "--", "echo").returncode == 0
    done = carrel.run("-s", settings, "-e", "LD_PRELOAD=/workspace/x.so", "--", "echo")
    assert done.returncode == 126 and "LD_PRELOAD=/workspace/x.so: " in done.stderr, done


@pytest.mark.parametrize("text, word", [("{", "line 1"), ("[]", "object"), ("{}", "permissions"), ('{"a": "\xff"}', "UTF-8"), ('{"permissions": {"allow": [1]}}', "allow"),
                                        ('{"permissions":\n {"deny": ["shell(ls"]}}', "shell(ls"), ('{"permissions": {"allow": ["file(read:${NOTHING}/x)"]}}', "NOTHING"),
                                        ("[" * 5000, "")], ids=range(8))
def test_a_malformed_file_is_an_error(carrel, tmp_path, text, word):
    path = tmp_path / "bad.json"
    path.write_bytes(text.encode("latin-1"))
    done = carrel.run("-s", path, "--", "echo")
    assert done.returncode == 125 and str(path) in done.stderr and word in done.stderr, done


def test_files_that_can_not_be_read(carrel, tmp_path):
    for path in (tmp_path / "missing", tmp_path, "/dev/zero"):
        done = carrel.run("-s", path, "--", "echo")
        assert done.returncode == 125, done
        one_line(done.stderr, str(path))
    large = tmp_path / "large.json"
    large.write_text(json.dumps({"permissions": {"allow": ["shell(" + "x" * (2 << 20) + ")"]}}))
    assert carrel.run("-s", large, "--", "echo").returncode == 125


def test_the_operators_policy_holds(carrel, settings, tmp_path):
    home = carrel.home / "carrel"
    home.mkdir()
    operator = tmp_path / "operator.json"
    operator.write_text(json.dumps({"permissions": {"allow": ["shell(*)"], "deny": ["shell(echo no:*)"]}}))
    (home / "config.yaml").write_text(f"policy:\n  settings: {operator}\n")
    (home / "config.yaml").chmod(0o644)
    assert carrel.run("--", "uname").returncode == 0
    assert carrel.run("-s", settings, "--", "echo", "no").returncode == 126 and carrel.run("--", "echo", "no").returncode == 126
    assert carrel.run("-s", settings, "--", "uname").returncode == 126      # its own tightens
    (home / "config.yaml").write_text("policy:\n  default: maybe\n")
    done = carrel.run("--", "true")
    assert done.returncode == 125 and "policy.default" in done.stderr


def ask(carrel, settings, answer, *command, **how):
    """Runs it on a terminal of its own and types the answer; what the terminal showed, and the exit code."""
    pid, master = pty.fork()
    if pid == 0:
        if how.get("no_input"):
            os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        os.execve(carrel.path, [carrel.path, "run", "--ask", "-s", str(settings), "--", *command], carrel.env)
    shown = b""
    typed = False
    while select.select([master], [], [], 60)[0]:
        try:
            got = os.read(master, 4096)
        except OSError:
            got = b""
        if not got:
            break
        shown += got
        if not typed and b"[y/N]" in shown:
            typed = True
            os.write(master, answer)
    else:
        os.kill(pid, signal.SIGKILL)
    os.close(master)
    return shown.decode(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_user_is_asked_on_the_terminal(carrel, settings):
    shown, code = ask(carrel, settings, b"y\n", "uname", "-s", no_input=True)
    assert code == 0 and '"uname" "-s"' in shown and "/workspace" in shown and "Linux" in shown.split("[y/N]")[1], shown
    for answer in (b"n\n", b"\n", b"x\n"):
        shown, code = ask(carrel, settings, answer, "uname", "-s")
        assert code == 126 and "Linux" not in shown and "denied by the user" in shown, shown
    shown, code = ask(carrel, settings, b"y\n", "curl")
    assert code == 126 and "[y/N]" not in shown       # a rule denies it: nobody is asked


def test_the_commands_input_is_no_answer(carrel, settings):
    done = carrel.run("--ask", "-s", settings, "--", "uname", input="y\ny\n", start_new_session=True)
    assert done.returncode == 126 and done.stdout == "", done


@pytest.mark.once
def test_files_of_the_directory_are_judged(carrel, tmp_path):
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    (project / "good.txt").write_text("requests\n")
    (project / "bad.txt").write_text("evil_pkg\n")
    (project / "link.txt").symlink_to("good.txt")
    (project / ".git/config").write_text('[remote "origin"]\nurl = https://forge.example/team/a\n')
    (tmp_path / "sources.json").write_text(json.dumps({
        "package_managers": {"pip": {"blocked_packages": ["evil-pkg"]}}, "git": {"allowed_remotes": ["https://forge.example/*"]}}))
    run = ["--dir", project, "--sources", tmp_path / "sources.json", "--"]
    for command in (["pip", "install", "-r", "good.txt"], ["git", "push", "origin"]):
        assert "denied" not in carrel.run(*run, *command).stderr, command
    for name, why in (("bad.txt", "'evil-pkg'"), ("none.txt", "is missing"), ("link.txt", "can't be read")):
        done = carrel.run(*run, "pip", "install", "-r", name)
        assert done.returncode == 126 and why in done.stderr, done
