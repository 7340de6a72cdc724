"""What goes in and comes out: pipes, files, sockets, closed ends, much of it, and never less than was written."""
import array
import fcntl
import os
import pty
import shlex
import socket
import stat
import subprocess
import termios
import threading

import pytest
from harness import descendants, eventually, one_line
from patience import with_time

GIGABYTE = 1 << 30
WHAT_IS = "import os; print(os.readlink('/proc/self/fd/%d').split(':')[0])"


def shell(carrel, line, **how):
    """A host shell's line, in which `carrel` is the program."""
    line = f"carrel() {{ {shlex.quote(carrel.path)} \"$@\"; }}; {line}"
    return subprocess.run(["bash", "-c", line], env=carrel.env, timeout=90, capture_output=True, text=True, **how)


def test_a_pipe_is_read_to_its_end(carrel):
    text = "line\n" * 50_000
    assert carrel.run("--", "cat", input=text).stdout == text


def test_a_file_is_read_to_its_end(carrel, tmp):
    (tmp / "in").write_bytes(os.urandom(3_000_000))
    with open(tmp / "in", "rb") as file:
        assert carrel.run("--", "cat", stdin=file, text=False).stdout == (tmp / "in").read_bytes()


def test_a_file_is_read_from_where_it_stands(carrel, tmp):
    (tmp / "in").write_text("0123456789")
    with open(tmp / "in", "rb", buffering=0) as file:
        file.seek(4)
        assert carrel.run("--", "cat", stdin=file).stdout == "456789"


def test_a_socket_is_read_to_its_end(carrel):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(b"from a socket")
        ours.shutdown(socket.SHUT_WR)
        assert carrel.run("--", "cat", stdin=theirs).stdout == "from a socket"


def test_dev_null_is_empty_stdin(carrel):
    done = carrel.run("--", "wc", "-c")
    assert (done.returncode, done.stdout.strip()) == (0, "0")


def test_closed_stdin_reads_as_empty(carrel):
    done = shell(carrel, "carrel run -- wc -c <&-")
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "0", "")


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_outputs_do_not_matter_to_a_silent_command(carrel, closed):
    assert shell(carrel, f"carrel run -- true {closed}").returncode == 0


def test_no_descriptor_takes_the_place_of_a_closed_one(carrel, tmp):
    """A file carrel opens for itself must not become the command's stdout."""
    done = shell(carrel, "carrel run -- sh -c 'echo out; echo err >&2; exit 5' <&- >&-")
    assert (done.returncode, done.stdout) == (5, "")


def test_closing_stdin_ends_a_reader(carrel):
    with carrel.start("run", "--", "cat", stdin=subprocess.PIPE) as process:
        process.stdin.write("hello\n")
        process.stdin.flush()
        assert process.stdout.readline() == "hello\n"
        process.stdin.close()
        assert process.wait(120) == 0


@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_a_command_that_reads_nothing_ends_while_stdin_stays_open(carrel, kind):
    ours, theirs = socket.socketpair() if kind == "socket" else map(os.fdopen, reversed(os.pipe()), ("wb", "rb"))
    with ours, theirs:
        with carrel.start("run", "--", "true", stdin=theirs) as process:
            assert process.wait(120) == 0


def test_a_fifo_of_the_host_works_as_stdin(carrel, tmp):
    os.mkfifo(tmp / "fifo")
    done = shell(carrel, f"(echo through > {tmp}/fifo) & carrel run -- cat < {tmp}/fifo; wait")
    assert done.stdout == "through\n"


def test_stderr_is_not_stdout(carrel):
    done = carrel.sh("echo out; echo err >&2")
    assert (done.stdout, done.stderr) == ("out\n", "err\n")


def test_output_goes_to_a_file(carrel, tmp):
    with open(tmp / "out", "wb") as out, open(tmp / "err", "wb") as err:
        assert carrel.sh("echo out; echo err >&2", stdout=out, stderr=err).returncode == 0
    assert ((tmp / "out").read_text(), (tmp / "err").read_text()) == ("out\n", "err\n")


def test_two_outputs_to_one_file_lose_nothing(carrel, tmp):
    done = shell(carrel, f"carrel run -- sh -c 'for i in 1 2 3 4 5; do echo o$i; echo e$i >&2; done' > {tmp}/both 2>&1")
    assert done.returncode == 0
    assert sorted((tmp / "both").read_text().split()) == sorted(f"{c}{i}" for c in "oe" for i in range(1, 6))


def test_appending_keeps_what_the_file_had(carrel, tmp):
    (tmp / "log").write_text("before\n")
    done = shell(carrel, f"carrel run -- echo one >> {tmp}/log; carrel run -- echo two >> {tmp}/log")
    assert done.returncode == 0
    assert (tmp / "log").read_text() == "before\none\ntwo\n"


def test_a_file_is_written_where_it_stands(carrel, tmp):
    done = shell(carrel, f"{{ echo first; carrel run -- echo second; echo third; }} > {tmp}/out")
    assert (done.returncode, (tmp / "out").read_text()) == (0, "first\nsecond\nthird\n")


def test_output_goes_to_a_socket(carrel):
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            assert carrel.run("--", "echo", "to a socket", stdout=theirs).returncode == 0
        assert ours.recv(100) == b"to a socket\n"


@pytest.mark.parametrize("descriptor", [0, 1, 2])
def test_a_host_file_is_never_handed_in(carrel, tmp, descriptor):
    """Through /proc/self/fd it could be opened again, for writing, from the start."""
    (tmp / "file").write_text("")
    with open(tmp / "file", "r+b") as file:
        how = {("stdin", "stdout", "stderr")[descriptor]: file}
        if descriptor == 1:
            carrel.py(WHAT_IS % 1, **how)
            assert (tmp / "file").read_text() == "pipe\n"
        else:
            assert carrel.py(WHAT_IS % descriptor, **how).stdout == "pipe\n"


def test_no_other_descriptor_comes_in(carrel, tmp):
    with open(tmp / "secret", "w") as file:
        done = carrel.sh("ls /proc/self/fd", pass_fds=[file.fileno()])
    assert done.stdout.split() == ["0", "1", "2", "3"]


@pytest.mark.parametrize("size", [1, 65536, 20_000_000])
@pytest.mark.parametrize("kind", ["pipe", "file", "json"])
def test_carrel_ends_after_the_last_byte_is_out(carrel, tmp, kind, size):
    command = ["--", "sh", "-c", f"head -c {size} /dev/zero | tr '\\0' x"]
    if kind == "file":
        with open(tmp / "out", "wb") as out:
            carrel.run(*command, stdout=out)
        assert (tmp / "out").stat().st_size == size
    elif kind == "json":
        assert len(carrel.run_json(*command)["stdout"]) == size
    else:
        assert len(carrel.run(*command).stdout) == size


@pytest.mark.parametrize("kind", ["pipe", "file", "json"])
def test_a_background_process_holding_stdout_does_not_hold_carrel(carrel, tmp, kind):
    script = "sleep 1000 & echo done"
    if kind == "file":
        with open(tmp / "out", "wb") as out:
            carrel.sh(script, stdout=out, timeout=60)
        assert (tmp / "out").read_text() == "done\n"
    elif kind == "json":
        assert carrel.sh_json(script, timeout=60)["stdout"] == "done\n"
    else:
        assert carrel.sh(script, timeout=60).stdout == "done\n"


@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_a_reader_that_leaves_ends_the_writer(carrel, kind):
    ours, theirs = socket.socketpair() if kind == "socket" else map(os.fdopen, os.pipe(), ("rb", "wb"))
    with carrel.start("run", "--", "yes", stdout=theirs) as process:
        theirs.close()
        assert (ours.recv(2) if kind == "socket" else ours.read(2)) == b"y\n"
        ours.close()
        assert process.wait(120) == 128 + 13
        assert process.stderr.read() == ""


def test_a_command_that_outlives_its_reader_keeps_its_exit_code(carrel):
    with carrel.start("run", "--", "sh", "-c", "trap '' PIPE; read go; echo x; exit 9", stdin=subprocess.PIPE) as process:
        process.stdout.close()
        process.stdin.write("go\n")
        process.stdin.flush()
        assert process.wait(120) == 9


def test_a_result_nobody_reads_is_no_success(carrel):
    ours, theirs = os.pipe()
    os.close(ours)
    try:
        done = carrel.run("-o", "json", "--", "true", stdout=theirs)
    finally:
        os.close(theirs)
    assert done.returncode != 0
    assert len(done.stderr.splitlines()) <= 1


def test_a_full_device_is_named(carrel):
    with open("/dev/full", "wb") as full:
        done = carrel.run("--", "echo", "x", stdout=full)
    assert done.returncode == 125
    one_line(done.stderr, "standard output", "No space left")


def test_a_result_to_a_full_device_is_named(carrel):
    with open("/dev/full", "wb") as full:
        done = carrel.run("-o", "json", "--", "true", stdout=full)
    assert done.returncode == 125
    one_line(done.stderr, "standard output", "No space left")


@pytest.mark.shipped
@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_a_gigabyte_comes_out_whole(carrel, kind):
    ours, theirs = socket.socketpair() if kind == "socket" else map(os.fdopen, os.pipe(), ("rb", "wb"), (0, 0))
    read = ours.recv if kind == "socket" else ours.read
    total = 0
    with ours, carrel.start("run", "--", "head", "-c", str(GIGABYTE), "/dev/zero", stdout=theirs) as process:
        theirs.close()
        while chunk := read(1 << 20):
            total += len(chunk)
        assert process.wait(60) == 0
    assert total == GIGABYTE


@pytest.mark.shipped
def test_a_gigabyte_goes_in_whole(carrel):
    with carrel.start("run", "--", "wc", "-c", stdin=subprocess.PIPE, text=False) as process:
        for _ in range(GIGABYTE >> 20):
            process.stdin.write(bytes(1 << 20))
        process.stdin.close()
        assert int(process.stdout.read()) == GIGABYTE
        assert process.wait(60) == 0


def test_both_outputs_may_be_large_at_once(carrel):
    done = carrel.py("import sys\nfor _ in range(200):\n"
                     "  sys.stdout.write('o' * 10000); sys.stderr.write('e' * 10000)")
    assert (done.stdout, done.stderr) == ("o" * 2_000_000, "e" * 2_000_000)


def test_input_and_output_may_flow_at_once(carrel):
    text = os.urandom(4_000_000)
    assert carrel.run("--", "cat", input=text, text=False).stdout == text


def test_a_slow_reader_of_a_socket_gets_everything(carrel):
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    total = []
    def read():
        while chunk := ours.recv(1000):
            total.append(len(chunk))
    reader = threading.Thread(target=read)
    with ours:
        with theirs:
            with carrel.start("run", "--", "head", "-c", "1000000", "/dev/zero", stdout=theirs) as process:
                reader.start()
                assert process.wait(120) == 0
        reader.join(30)
    assert sum(total) == 1_000_000


def test_a_socket_that_does_not_block_gets_everything(carrel):
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    total = 0
    with ours, carrel.start("run", "--", "head", "-c", "3000000", "/dev/zero", stdout=theirs) as process:
        theirs.close()
        while chunk := ours.recv(65536):
            total += len(chunk)
        assert process.wait(120) == 0
    assert total == 3_000_000


@pytest.mark.needs_root
@pytest.mark.parametrize("options", [["--output", "100M"], ["-t"]], ids=["limited", "terminal"])
def test_another_user_s_pipe_that_nobody_reads_doesn_t_stop_the_clock(carrel, other_user, options):
    """Whose pipe it is decides whether it can be opened again as one that doesn't block. What was said is still to be had."""
    said = []

    def run(limit):
        command = [*other_user, carrel.path, "run", *options, "--timeout", limit, "--", "yes"]
        with subprocess.Popen(command, cwd="/", env=carrel.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            try:
                assert eventually(lambda: process.poll() is not None or unread(process.stdout), 90)
                assert eventually(lambda: not descendants(process.pid), 90), "the sandbox outlives its time"
                out, err = process.communicate(timeout=120)
            finally:
                process.kill()
        said[:] = [out]
        return process.returncode, err
    # A pipe has room for 64K, less where it came in small pieces: nobody reads what is over that.
    code, err = with_time(run, lambda: len(said[0]) >= 32 << 10, first=1)
    assert code == 124 and b"timeout" in err
    assert said[0].count(b"y") > 10_000


def unread(stream):
    """How many bytes lie in a pipe."""
    count = array.array("i", [0])
    fcntl.ioctl(stream.fileno(), termios.FIONREAD, count)
    return count[0]


# Does its worst to what was handed in as descriptors 0 to 2.
SPOIL = """if 1:
    import fcntl, os, sys, termios
    for fd in range(3):
        for change in (lambda: os.fchmod(fd, 0o666), lambda: os.chmod(f"/proc/self/fd/{fd}", 0o777),
                       lambda: os.fchown(fd, -1, os.getgid()), lambda: os.set_blocking(fd, False),
                       lambda: fcntl.fcntl(fd, fcntl.F_SETFL, os.O_APPEND | os.O_ASYNC | os.O_NONBLOCK)):
            try:
                change()
            except OSError:
                pass
        if os.isatty(fd):
            modes = termios.tcgetattr(fd)
            modes[0] ^= termios.ICRNL | termios.IXON
            modes[1] ^= termios.OPOST
            modes[3] ^= termios.ECHO | termios.ICANON | termios.ISIG
            modes[6][termios.VINTR] = b"x"
            termios.tcsetattr(fd, termios.TCSANOW, modes)
    sys.exit(int(sys.argv[1]))"""


def state(fd):
    """Everything about a stream that its other users would notice."""
    status = os.fstat(fd)
    # The mode of an anonymous pipe is nobody's business; root leaves it open the way it is meant (see below).
    return (None if stat.S_ISFIFO(status.st_mode) else status.st_mode, status.st_uid, status.st_gid, fcntl.fcntl(fd, fcntl.F_GETFL),
            termios.tcgetattr(fd) if os.isatty(fd) else None)


@pytest.mark.parametrize("end", ["its own", "a limit", "no command"])
@pytest.mark.parametrize("kind", ["pipe", "terminal"])
def test_what_is_handed_in_is_as_it_was_afterwards(carrel, kind, end):
    ends = [*os.pipe(), *os.pipe(), *os.pipe()] if kind == "pipe" else [*pty.openpty()]
    streams = [ends[0], ends[3], ends[5]] if kind == "pipe" else [ends[1]] * 3
    before = [state(fd) for fd in streams]
    script = SPOIL if end != "a limit" else SPOIL.replace("sys.exit", "import time; time.sleep(1000) or ")
    command = ["no-such-command"] if end == "no command" else ["/usr/bin/python3", "-c", script, "3"]
    try:
        done = carrel.run("--timeout", "1s" if end == "a limit" else "600s", "--", *command,
                          **dict(zip(("stdin", "stdout", "stderr"), streams)))
        assert done.returncode == {"its own": 3, "a limit": 124, "no command": 127}[end]
        assert [state(fd) for fd in streams] == before
    finally:
        for fd in ends:
            os.close(fd)


def test_two_carrels_may_share_a_pipe(carrel):
    ours, theirs = os.pipe()
    wait = ["run", "--", "sh", "-c", "echo ready >&2; read go; echo said > /dev/stdout"]
    try:
        with carrel.start(*wait, stdin=-1, stdout=theirs) as first, carrel.start(*wait, stdin=-1, stdout=theirs) as second:
            for process in (first, second):
                assert process.stderr.readline() == "ready\n"
            for process in (first, second):
                process.stdin.write("go\n")
                process.stdin.flush()
                assert process.wait(120) == 0, process.stderr.read()
        assert os.read(ours, 100) == b"said\nsaid\n"
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_terminal_of_another_session_is_neither_read_nor_changed(carrel):
    """Nobody says who its foreground is: what is typed there may be for another program."""
    master, slave = pty.openpty()
    try:
        def run(limit):
            with carrel.start("run", "--timeout", limit, "--", "sh", "-c", "stty -echo; echo ready >&2; cat", stdin=slave) as process:
                said[:] = [process.stderr.readline()]
                if said == ["ready\n"]:
                    os.write(master, b"typed\n")
                assert process.wait(120) == 124
                assert process.stdout.read() == ""
        said = []
        with_time(run, lambda: said == ["ready\n"], 1)
        assert said == ["ready\n"]
        assert termios.tcgetattr(slave)[3] & termios.ECHO
        assert os.read(slave, 100) == b"typed\n"
    finally:
        os.close(master)
        os.close(slave)


def test_json_captures_both_streams_and_passes_stdin(carrel):
    result = carrel.sh_json("cat; echo err >&2", input="in\n")
    assert (result["stdout"], result["stderr"], result["encoding"]) == ("in\n", "err\n", "utf-8")


def test_json_carries_any_text(carrel):
    text = 'quote " backslash \\ tab \t bell \a delete \x7f umlaut ü emoji 🙂 line\u2028end\n'
    assert carrel.run_json("--", "cat", input=text)["stdout"] == text


@pytest.mark.parametrize("bytes_", [b"\xff\xfe", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"cut \xe2\x82"])
def test_json_carries_any_bytes(carrel, bytes_):
    import base64
    result = carrel.sh_json("cat; echo plain >&2", input=bytes_.decode("utf-8", "surrogateescape"))
    assert result["encoding"] == "base64"
    assert base64.b64decode(result["stdout"], validate=True) == bytes_
    assert base64.b64decode(result["stderr"], validate=True) == b"plain\n"


def test_json_carries_a_zero_byte(carrel):
    result = carrel.run_json("--", "printf", "a\\0b")
    assert (result["stdout"], result["encoding"]) == ("a\0b", "utf-8")
