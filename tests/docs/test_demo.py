"""`make run` shows what it says it shows."""
import re
import subprocess

from harness import CARREL, TREE


def test_the_demonstration_works(tmp_path):
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(tmp_path), "LANG": "C.UTF-8"}
    done = subprocess.run([TREE / "tools/demo", CARREL], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == "" and "\x1b" not in done.stdout and "Traceback" not in done.stdout
    for line in ("hello from sandbox", "3", "agent", "/workspace", f"ls: cannot access '{tmp_path}'",
                 "cat: /etc/shadow: No such file or directory", "[Errno 101] Network is unreachable", "uid=1000(agent)",
                 "CapEff:\t0000000000000000", "Read-only file system", "exit code 124", '"reason":"memory_limit"',
                 "exit code 137"):
        assert line in done.stdout, (line, done.stdout)
    assert len(done.stdout.splitlines()) < 60
