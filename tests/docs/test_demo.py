"""`make run` shows what it says it shows."""
import subprocess

from harness import CARREL, CLIENTS, TREE


def demonstrate(home, **env):
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(home), "CARREL_HOME": str(home / "carrel"), "LANG": "C.UTF-8", **env}
    try:
        done = subprocess.run([TREE / "tools/demo", CARREL], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=300)
    finally:
        subprocess.run([CARREL, "serve", "--stop", "--force"], env=env, capture_output=True, timeout=90)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def test_the_demonstration_works(short_home):
    done = demonstrate(short_home, **CLIENTS)
    assert done.stderr == "" and "\x1b" not in done.stdout and "Traceback" not in done.stdout
    for line in ("hello from sandbox", "3", "agent", "/workspace", f"ls: cannot access '{short_home}'",
                 "cat: /etc/shadow: No such file or directory", "[Errno 101] Network is unreachable", "uid=1000(agent)",
                 "CapEff:\t0000000000000000", "Read-only file system", "exit code 124", '"reason":"memory_limit"',
                 "exit code 137", "carrel: built demo_ec72420", "another_ec72420", " in /env", "NAME ", "streamed 3",
                 "done in the background", "round trip", '"stdout":"round trip\\n"', "removed demo-"):
        assert line in done.stdout, (line, done.stdout)
    assert len(done.stdout.splitlines()) < 100


def test_the_demonstration_says_so_where_there_is_no_index(short_home):
    done = demonstrate(short_home, UV_DEFAULT_INDEX="http://127.0.0.1:9/simple")
    for line in ("the first one needs a package index", "no packages here", "done in the background", "make test"):
        assert line in done.stdout, (line, done.stdout)
