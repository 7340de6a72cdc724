"""Commands that do their worst to whoever runs them: carrel always ends, in time, with a true answer."""
# security: sandbox
import os
import signal
import subprocess
import time

import pytest
from harness import descendants, eventually


def test_a_fork_bomb_ends_with_its_time(carrel):
    """The shell itself forks once, before there is a bomb: one that can't fork would give up."""
    result = carrel.sh_json("bomb() { bomb | bomb & }; (bomb) 2>/dev/null & wait; exec sleep 1000", "--pids", "64", "--timeout", "2s",
                            timeout=90)
    assert (result["reason"], result["exit_code"]) == ("timeout", 124)


def test_a_fork_bomb_of_orphans_ends_with_its_time(carrel):
    result = carrel.py_json("import os\nwhile True:\n  try: os.fork(); os.setsid()\n  except OSError: pass",
                            "--pids", "64", "--timeout", "2s", timeout=90)
    assert (result["reason"], result["exit_code"]) == ("timeout", 124)


@pytest.mark.parametrize("name", ["KILL", "TERM", "STOP", "INT", "HUP", "USR1", "SEGV", "CHLD"])
def test_the_init_cannot_be_signalled_from_inside(carrel, name):
    done = carrel.sh(f"kill -{name} 1; echo still here; exit 3")
    assert (done.stdout, done.returncode) == ("still here\n", 3)


def test_killing_everybody_inside_ends_only_the_sandbox(carrel):
    result = carrel.py_json("import os, signal, subprocess; p = subprocess.Popen(['sleep', '1000'])\n"
                            "os.kill(-1, signal.SIGKILL); print('still here', p.wait())")
    assert (result["exit_code"], result["stdout"]) == (0, "still here -9\n")


def test_stopping_everybody_inside_does_not_stop_the_clock(carrel):
    result = carrel.sh_json("kill -STOP -1; kill -STOP $$", "--timeout", "1s")
    assert result["reason"] == "timeout"


def test_a_process_that_leaves_its_session_does_not_stay(carrel):
    """Else it would last until we give up."""
    done = carrel.py("import os\nif os.fork() == 0:\n  os.setsid()\n  if os.fork() == 0:\n"
                     "    for fd in range(10):\n      try: os.close(fd)\n      except OSError: pass\n"
                     "    import signal; signal.pause()\n  os._exit(0)\nprint('done')")
    assert (done.stdout, done.returncode) == ("done\n", 0)


def test_a_command_that_closes_its_streams_runs_on(carrel):
    begin = time.monotonic()
    done = carrel.sh("exec <&- >&- 2>&-; sleep 0.5; exit 8")
    assert done.returncode == 8 and time.monotonic() - begin >= 0.5


def test_a_command_that_closes_its_streams_runs_on_captured(carrel):
    result = carrel.sh_json("echo first; exec <&- >&- 2>&-; sleep 0.5; exit 8")
    assert (result["exit_code"], result["stdout"]) == (8, "first\n") and result["duration_ms"] >= 500


def test_deep_directories_are_left_behind_without_harm(carrel, no_leftovers):
    done = carrel.py("import os\nfor _ in range(3000):\n  os.mkdir('d' * 100); os.chdir('d' * 100)\nprint('deep')")
    assert done.stdout == "deep\n"


def test_deep_directories_of_the_host_can_be_counted(carrel, tmp):
    try:
        result = carrel.py_json("import os, time\nfor _ in range(1500):\n  os.mkdir('d' * 100); os.chdir('d' * 100)\n"
                                "time.sleep(0.5); print('deep')", "--dir", tmp, "--disk", "1G")
    finally:
        subprocess.run(["rm", "-rf", tmp / ("d" * 100)], check=True)
    assert (result["stdout"], result["reason"]) in (("deep\n", "exited"), ("", "disk_limit")), result


def test_links_in_a_counted_directory_lead_nowhere(carrel, tmp):
    """The counter measures the directory, not what links in it name."""
    (tmp / "usr").symlink_to("/usr")
    (tmp / "root").symlink_to("/")
    (tmp / "loop").symlink_to("loop")
    result = carrel.run_json("--dir", tmp, "--disk", "16M", "--", "sleep", "0.5")
    assert (result["reason"], result["exit_code"]) == ("exited", 0)


def test_a_sparse_file_is_counted_as_it_lies_on_disk(carrel, tmp):
    result = carrel.sh_json("truncate -s 1G sparse; sleep 0.5", "--dir", tmp, "--disk", "16M")
    assert (result["reason"], result["exit_code"]) == ("exited", 0)


def test_floods_on_both_streams_are_held(carrel):
    result = carrel.sh_json("yes & yes >&2 & wait", "--output", "5M", timeout=90)
    assert (result["reason"], len(result["stdout"]) + len(result["stderr"])) == ("output_limit", 5 << 20)


def test_the_command_cannot_touch_carrels_words(carrel):
    """What looks like carrel's own error in the output is only output."""
    done = carrel.sh("echo 'carrel: fake' >&2; exit 0")
    assert (done.returncode, done.stderr) == (0, "carrel: fake\n")
    result = carrel.sh_json("""echo '{"error":{"code":"x"}}'""")
    assert result["stdout"] == '{"error":{"code":"x"}}\n'


def test_no_descriptor_leads_to_the_init(carrel):
    done = carrel.sh("ls -l /proc/1/fd /proc/1/root /proc/1/exe /proc/1/cwd; cat /proc/1/environ /proc/1/maps")
    assert "->" not in done.stdout and "/" not in done.stdout.replace("/proc/1/", "") and done.returncode != 0


def test_the_inits_arguments_name_nothing_of_the_host(carrel, tmp):
    done = carrel.sh("tr '\\0' ' ' < /proc/1/cmdline; cat /proc/1/comm", "--dir", tmp)
    assert str(tmp) not in done.stdout and "/" not in done.stdout.replace("/init", "")


def test_a_socket_left_listening_does_not_hold_the_run(carrel):
    done = carrel.py("import socket, os\ns = socket.socket(); s.bind(('', 0)); s.listen()\nif os.fork() == 0:\n  s.accept()\n")
    assert done.returncode == 0


def test_many_children_that_exit_at_once_are_all_reaped(carrel):
    """There is room for them only where those before them are; for that it waits."""
    done = carrel.py("import os, time\ndef fork():\n  while True:\n    try: return os.fork()\n    except BlockingIOError: time.sleep(0.01)\n"
                     "for _ in range(2000):\n  if fork() == 0:\n    if fork() == 0: os._exit(0)\n    os._exit(0)\n"
                     "  os.wait()\nprint('done')", "--pids", "100", timeout=90)
    assert done.stdout == "done\n", done.stderr


def test_a_stopped_carrel_does_not_lose_the_exit(carrel):
    with carrel.start("run", "--", "sh", "-c", "echo ready; read go; exit 4", stdin=-1) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGSTOP)
        assert eventually(lambda: descendants().get(process.pid, ("",))[0] == "T")
        process.stdin.write("go\n")
        process.stdin.close()
        assert eventually(lambda: not any(name == "sh" for _, name in descendants(process.pid).values()))
        process.send_signal(signal.SIGCONT)
        assert process.wait(120) == 4


def test_a_watchdog_cannot_be_outrun_by_renaming(carrel):
    result = carrel.py_json("import ctypes, os\nctypes.CDLL(None).prctl(15, b')) 1 (', 0, 0, 0)\n"
                            "x = [bytearray(b'x' * 1048576) for _ in range(256)]\nimport signal; signal.pause()",
                            "--memory", "64M", "--timeout", "60s", timeout=90)
    assert result["reason"] == "memory_limit", result


def test_a_watchdog_cannot_be_blinded_by_many_processes(carrel):
    result = carrel.py_json("import os, signal\nfor _ in range(150):\n  if os.fork() == 0: signal.pause()\n"
                            "x = [bytearray(b'x' * 1048576) for _ in range(300)]\nsignal.pause()",
                            "--memory", "128M", "--timeout", "60s", "--pids", "200", timeout=90)
    assert result["reason"] == "memory_limit", result


def test_files_of_the_host_are_not_reached_through_a_link_in_dir(carrel, tmp):
    (tmp / "work").mkdir()
    (tmp / "secret").write_text("secret")
    (tmp / "work/link").symlink_to("../secret")
    (tmp / "work/absolute").symlink_to(tmp / "secret")
    done = carrel.sh("cat link absolute /workspace/../secret", "--dir", tmp / "work")
    assert "secret" not in done.stdout and done.returncode != 0


def test_a_protected_name_that_is_a_link_leads_nowhere(carrel, tmp):
    """A .git of the workspace that is a link to somewhere else must not make carrel mount that."""
    (tmp / "outside/hooks").mkdir(parents=True)
    (tmp / "work").mkdir()
    (tmp / "work/.git").symlink_to("../outside")
    (tmp / "work/.envrc").symlink_to("/etc/shadow")
    done = carrel.sh("ls .git/hooks && echo reached; cat .envrc && echo reached", "--dir", tmp / "work")
    assert "reached" not in done.stdout


@pytest.mark.parametrize("variable", ["LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "GCONV_PATH", "MALLOC_TRACE", "GLIBC_TUNABLES"])
def test_the_commands_variables_are_for_the_command_only(carrel, tmp, variable):
    """-e LD_PRELOAD=… must not reach the launcher or init."""
    done = carrel.run("-e", f"{variable}=/workspace/x.so", "--", "/bin/true")
    assert done.returncode == 0


def test_a_terminal_of_the_caller_cannot_be_typed_into(carrel):
    """TIOCSTI on the terminal that was handed in."""
    import pty
    master, slave = pty.openpty()
    try:
        done = carrel.py("import fcntl, termios, sys\ntry: fcntl.ioctl(0, termios.TIOCSTI, b'x')\n"
                         "except OSError as error: print(error.strerror)", stdin=slave)
        assert done.stdout in ("Operation not permitted\n", "Input/output error\n")
    finally:
        os.close(master)
        os.close(slave)
