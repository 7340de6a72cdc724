"""Bad input: one clear line with the object's name, the right exit code, nothing run, nothing left behind."""
# security: sandbox
import json
import os
import resource
import socket
import subprocess

import pytest
from harness import IS_ROOT, one_line

pytestmark = pytest.mark.usefixtures("no_leftovers")


def refused(carrel, *args, names, code=125, json_code="invalid", **how):
    """Both forms of the error: the line on stderr and the object on stdout. The line's hint."""
    done = carrel("run", *args, **how)
    assert (done.returncode, done.stdout) == (code, ""), done
    hint = one_line(done.stderr, *names)
    as_json = carrel("run", "-o", "json", *args, **how)
    assert (as_json.returncode, as_json.stderr) == (code, ""), as_json
    error = json.loads(as_json.stdout)
    assert list(error) == ["error"] and list(error["error"]) == ["code", "message", "hint"]
    assert error["error"]["code"] == json_code, error
    assert f"carrel: {error['error']['message']}" == done.stderr.splitlines()[0]
    assert error["error"]["hint"] == hint
    return hint


@pytest.mark.parametrize("option", ["--no-such-option", "-Z", "--memroy", "--memory-", "---"])
def test_an_unknown_option_is_named(carrel, option):
    refused(carrel, option, "--", "true", names=[option])


def test_an_unknown_command_is_named(carrel):
    done = carrel("no-such-verb")
    assert (done.returncode, done.stdout) == (125, "")
    one_line(done.stderr, "no-such-verb")
    for words in (["no-such-verb"], ["help", "no-such-verb"], ["version", "no-such-verb"]):
        done = carrel(*words, "-o", "json")
        assert (done.returncode, done.stderr) == (125, "")
        assert "no-such-verb" in json.loads(done.stdout)["error"]["message"]


@pytest.mark.once
def test_a_program_that_only_this_machine_has_in_its_path_is_said_to_be_there(carrel, tmp):
    (tmp / "bin").mkdir()
    (tmp / "bin/my-tool").write_text("#!/bin/sh\n")
    (tmp / "bin/my-tool").chmod(0o755)
    done = carrel.run("--", "my-tool", env={"PATH": f"{tmp}/bin:/usr/bin:/bin"})
    assert done.returncode == 127
    assert one_line(done.stderr, "my-tool").startswith(f"{tmp}/bin of this machine has it, but is not in the sandbox's PATH")
    assert one_line(carrel.run("--", "no-such-tool").stderr, "no-such-tool").startswith("it is not in the sandbox's PATH")


def test_a_missing_command_is_said(carrel):
    for args in ([], ["--"], ["--memory", "64M"]):
        refused(carrel, *args, names=["command"])


def test_an_empty_command_is_said(carrel):
    done = carrel.run("--", "")
    assert done.returncode in (125, 127)
    one_line(done.stderr)


@pytest.mark.once
@pytest.mark.parametrize("words, message, hint", [
    (["deploy"], "deploy needs a FILE", "carrel deploy FILE|DIR|blob:NAME@VERSION [options]"),
    (["deploy", "greeter@9"], "open 'greeter@9': No such file or directory", "carrel deploy blob:greeter@9, if package ls lists it"),
    (["snapshot", "rm", "demo"], "'demo' is not the id of a snapshot; behind the name of a workspace a tag or version is needed",
     "carrel snapshot rm SNAPSHOT|NAME@TAG|NAME TAG... [options]"),
    (["policy", "explain", "--", "ls"], "no settings: -s FILE is required", "carrel policy explain --settings settings.json -- ls"),
    (["tool", "forge", "slug", "--code", "x"], "tool forge needs --tests FILE", "carrel tool forge NAME --code FILE --tests FILE [options]"),
])
def test_a_usual_mistake_has_a_hint_that_fits(carrel, tmp, words, message, hint):
    done = carrel(*words, cwd=tmp)
    assert (done.returncode, done.stdout, done.stderr) == (125, "", f"carrel: {message}\nhint: {hint}\n")


@pytest.mark.once
@pytest.mark.parametrize("words, names, hint", [
    (["list"], ["list"], "carrel ls"), (["inspect", "box"], ["inspect"], "carrel info NAME"), (["stop", "box"], ["stop"], "carrel suspend NAME"),
    (["start", "box"], ["start"], "carrel resume NAME"), (["pull", "alpine"], ["pull"], "carrel env build"), (["images"], ["images"], "carrel env ls"),
    (["run", "--rm", "--", "true"], ["--rm"], "nothing of carrel run stays"), (["create", "--rm"], ["--rm"], "carrel run"),
    (["run", "-p", "8080:80", "--", "true"], ["-p"], "carrel port NAME PORT"), (["create", "-p8080:80", "box"], ["-p"], "carrel port NAME PORT"),
    (["create", "--publish=8080:80", "box"], ["--publish"], "carrel port NAME PORT"),
])
def test_a_word_of_docker_has_a_hint_at_ours(carrel, words, names, hint):
    done = carrel(*words)
    assert (done.returncode, done.stdout) == (125, "")
    assert hint in one_line(done.stderr, "unknown", *names)


@pytest.mark.parametrize("option", ["-e", "-w", "-v", "--dir", "--memory", "--timeout", "--net", "-o"])
def test_a_missing_value_is_said(carrel, option):
    done = carrel.run(option)
    assert (done.returncode, done.stdout) == (125, "")
    one_line(done.stderr, option)


SIZES = ["0", "-1", "", "x", "1X", "64 M", "1e9", "0x100", "99999999999999999999", "9223372036854775808", "16777217T",
         "1..5G", "NaN", "inf", "M", "+5M", "1M1", "٣M", " 64M"]


@pytest.mark.parametrize("option, size", [("--memory", size) for size in SIZES] +
                         [(option, size) for option in ("--disk", "--tmp", "--output") for size in ("", "-1", "9223372036854775808")])
def test_a_size_that_is_none_is_named(carrel, option, size):
    done = carrel.run(f"{option}={size}", "--", "true")
    assert (done.returncode, done.stdout) == (125, "")
    one_line(done.stderr, option, size)


@pytest.mark.parametrize("option, value", [
    ("--memory", "0"), ("--memory", "1M"), ("--memory", "9223372036854775808"), ("--memory", "16777216T"),
    ("--disk", "0"), ("--tmp", "0"), ("--output", "0"), ("--pids", "0"), ("--pids", "-1"), ("--pids", "1.5"),
    ("--pids", "99999999999"), ("--fds", "0"), ("--fds", "2"), ("--fds", "x"), ("--fds", "99999999999"), ("--cpus", "0"),
    ("--cpus", "-1"), ("--cpus", "x"), ("--cpus", "99999"), ("--timeout", "0"), ("--timeout", "-5s"), ("--timeout", "5x"),
    ("--timeout", "99999999999h"), ("--cpu-time", "0"), ("--cpu-time", "soon"), ("--net", "everything"),
    ("--isolation", "none"),
])
def test_a_value_out_of_range_is_named(carrel, option, value):
    done = carrel.run(option, value, "--", "true")
    assert (done.returncode, done.stdout) == (125, ""), done
    one_line(done.stderr, option, value)


def test_an_unknown_format_is_named(carrel):
    done = carrel.run("-o", "xml", "--", "true")
    assert (done.returncode, done.stdout) == (125, "")
    one_line(done.stderr, "xml")


def test_a_value_out_of_range_in_json(carrel):
    refused(carrel, "--memory", "0", "--", "true", names=["--memory", "0"])


@pytest.mark.parametrize("value", ["=x", "", "="])
def test_a_variable_without_a_name_is_named(carrel, value):
    done = carrel.run("-e", value, "--", "true")
    assert done.returncode == 125
    one_line(done.stderr, "-e")


def test_a_missing_directory_is_named(carrel, tmp):
    refused(carrel, "--dir", tmp / "missing", "--", "true", names=[tmp / "missing"], json_code="not_found")


def test_a_file_in_place_of_a_directory_is_named(carrel, tmp):
    (tmp / "file").write_text("")
    refused(carrel, "--dir", tmp / "file", "--", "true", names=[tmp / "file"])


def test_a_missing_source_is_named(carrel, tmp):
    refused(carrel, "-v", f"{tmp}/missing:/data", "--", "true", names=[tmp / "missing"], json_code="not_found")


@pytest.mark.needs_plain_user
@pytest.mark.parametrize("option", ["-v", "--dir"])
def test_an_unreadable_source_is_named(carrel, tmp, option):
    (tmp / "locked/inner").mkdir(parents=True)
    (tmp / "locked").chmod(0)
    try:
        value = f"{tmp}/locked/inner" + (":/data" if option == "-v" else "")
        refused(carrel, option, value, "--", "true", names=[tmp / "locked/inner"], json_code="denied")
    finally:
        (tmp / "locked").chmod(0o700)


@pytest.mark.needs_plain_user
def test_an_unreadable_file_is_refused_at_the_start_or_inside(carrel, tmp):
    (tmp / "file").write_text("secret")
    (tmp / "file").chmod(0)
    done = carrel.run("-v", f"{tmp}/file:/data", "--", "cat", "/data")
    assert done.returncode in (1, 125) and "secret" not in done.stdout
    assert "Permission denied" in done.stderr


@pytest.mark.parametrize("value", ["nocolon", ":/data", "/tmp:", "/tmp:relative", "/tmp:/data:rx", "/tmp:/a:ro:ro", "/tmp:/../x",
                                   "/tmp:/a/../../b", "/tmp:/"])
def test_a_bind_that_is_none_is_named(carrel, value):
    done = carrel.run("-v", value, "--", "true")
    assert done.returncode == 125, done
    one_line(done.stderr, value)


@pytest.mark.parametrize("place", ["/proc", "/proc/self", "/proc/sys/kernel", "/dev", "/dev/null", "/dev/shm"])
def test_a_bind_over_proc_or_dev_is_refused(carrel, tmp, place):
    done = carrel.run("-v", f"{tmp}:{place}", "--", "true")
    assert done.returncode == 125
    one_line(done.stderr, place)


def test_a_socket_as_bind_source_is_refused_or_useless(carrel, tmp):
    """Nothing that listens on the host is to be reached from inside."""
    os.chdir(tmp)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        server.listen()
        done = carrel.py("import socket; socket.socket(socket.AF_UNIX).connect('/data')", "-v", f"{tmp}/socket:/data")
    os.chdir("/")
    assert done.returncode == 125
    one_line(done.stderr, tmp / "socket")


@pytest.mark.parametrize("place", ["/no/such/directory", "/etc/passwd"])
def test_a_working_directory_that_is_none_is_named(carrel, place):
    done = carrel.run("-w", place, "--", "true")
    assert (done.returncode, done.stdout) == (125, "")
    one_line(done.stderr, place)


def test_a_working_directory_is_not_made_up(carrel, tmp):
    """A link that leads out of the sandbox leads nowhere."""
    (tmp / "out").symlink_to("/root")
    done = carrel.run("--dir", tmp, "-w", "/workspace/out", "--", "pwd")
    assert done.returncode == 125
    one_line(done.stderr, "/workspace/out")


def test_too_many_arguments_are_said(carrel):
    """More than the kernel takes for one command: the caller's own exec fails first, unless we ask for more inside."""
    argument = "x" * 131_000
    done = subprocess.run(["sh", "-c", 'exec "$0" "$@"', carrel.path, "run", "--", "true", *[argument] * 10],
                          env=carrel.env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_an_argument_vector_over_the_kernels_limit_is_named(carrel):
    """With a large stack limit outside, carrel is given more than the sandbox's own stack limit admits."""
    def large_stack():
        resource.setrlimit(resource.RLIMIT_STACK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
    if hard != resource.RLIM_INFINITY:
        pytest.skip("the hard limit of the stack is not infinite")
    arguments = ["x" * 100_000] * 50
    done = carrel.run("--", "true", *arguments, preexec_fn=large_stack)
    assert done.returncode in (0, 125, 126)
    if done.returncode:
        one_line(done.stderr, "true")
        assert "long" in done.stderr or "large" in done.stderr


def test_a_large_environment_is_taken_or_named(carrel):
    done = carrel.run(*[word for n in range(500) for word in ("-e", f"V{n}=" + "x" * 2000)], "--", "true")
    assert done.returncode in (0, 125, 126)
    if done.returncode:
        one_line(done.stderr)


def test_a_name_too_long_is_an_error_of_one_line(carrel):
    done = carrel.run("--", "x" * 5000)
    assert done.returncode in (125, 126, 127)
    one_line(done.stderr)
    done = carrel.run("--dir", "/" + "x" * 5000, "--", "true")
    assert done.returncode == 125
    one_line(done.stderr)


@pytest.mark.parametrize("name", ["new\nline", "carriage\rreturn", "\x1b]0;title\x07", "\x1b[2J"])
def test_a_name_cannot_forge_lines_or_move_the_cursor(carrel, name):
    for args in (["--", name], ["--dir", f"/{name}", "--", "true"], ["--memory", name, "--", "true"], [f"--{name}"]):
        done = carrel.run(*args, text=False)
        assert done.returncode in (125, 127)
        assert done.stderr.startswith(b"carrel: ")
        assert len(done.stderr.splitlines()) <= 2 and b"\x1b" not in done.stderr and b"\r" not in done.stderr
        assert b"\x07" not in done.stderr


def test_a_name_need_not_be_utf8(carrel):
    done = carrel.run("-o", "json", "--", os.fsdecode(b"no-such-\xff"), text=False)
    assert done.returncode == 127
    assert json.loads(done.stdout.decode())["error"]["code"] == "command_not_found"


def test_a_home_that_cannot_be_made_is_named(carrel):
    """Root's runs take an id from there; a plain user's need no home."""
    done = carrel.run("--", "true", env={"CARREL_HOME": "/proc/no/such"})
    assert done.returncode == (125 if IS_ROOT else 0)
    if IS_ROOT:
        assert one_line(done.stderr, "/proc/no/such")


def test_too_few_descriptors_outside_are_an_error_of_one_line(carrel):
    for limit in range(3, 24, 2):
        done = carrel.run("--", "true", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))
        if done.returncode == 127 and "shared librar" in done.stderr:
            continue            # the sanitised carrel's loader
        assert done.returncode in (0, 125), (limit, done)
        if done.returncode:
            one_line(done.stderr)


@pytest.mark.needs_plain_user
@pytest.mark.shipped
def test_too_few_processes_outside_are_an_error_of_one_line(carrel):
    done = carrel.run("--", "true", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NPROC, (1, 1)))
    assert done.returncode in (0, 125), done
    if done.returncode:
        one_line(done.stderr)


def test_a_small_file_size_limit_outside_does_not_kill_carrel(carrel):
    done = carrel.run("--", "echo", "works", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
    assert done.returncode in (0, 125), done
    if done.returncode:
        one_line(done.stderr)


@pytest.mark.parametrize("options, said", [
    (("--size", "100M"), "the minimum is 256M"), ((), "--size is missing"), (("--size", "1G", "more"), "'more'")])
def test_a_home_is_made_with_a_size_by_root_alone(carrel, options, said):
    done = carrel("home", "init", *options)
    refused = not IS_ROOT and options[-1:] != ("more",)
    assert done.returncode == 125 and ("only root can make" if refused else said) in done.stderr, done


def test_home_has_a_command_of_its_own(carrel):
    assert "'home' needs a command" in carrel("home").stderr and "unknown command 'home x'" in carrel("home", "x").stderr
