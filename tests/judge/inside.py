"""Runs commands in a sandbox, each in a new /workspace; reads [[shell, command], …], prints what each of them did, a line each."""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys

WORKSPACE, RAN, GUARD = "/workspace", "/tmp/ran", "/tmp/guard"
SHELLS = {"bash": ["bash", "-c"], "sh": ["dash", "-c"]}
# Those with "exit" are scripts that do nothing: what an allowed shell runs of a file is allowed.
FILES = {
    "a": "exit\na 1\nb 2\nfactor 3\n", "b": "b\n", "x": "x\n", "ls": "#!/bin/sh\n", "list": "exit\na\nb\nfactor\n", "a.txt": "a\n", "src/a.py": "a\n",
    "script.sed": "1e factor\n", "script.awk": 'BEGIN{system("factor")}\n', "a.c": "int main(void) { return 0; }\n",
    "Makefile": "all:\n\t@echo $(X) $(CC)\na.o: a.c\n\t$(CC) -c a.c\n", "a.diff": "--- a\n+++ a\n@@ -1,2 +1,2 @@\n exit\n-a 1\n+a 2\n",
    "options": "-wrapper factor\n", "rc": "--pre=factor\n", "curlrc": "output=/tmp/guard/x\nurl=file:///workspace/a\n", "--checkpoint-action=exec=factor": "", "--checkpoint=1": "",
    "lines": "exit\nfactor\n-c factor\na\n1e factor\n--checkpoint-action=exec=factor\nBEGIN{system(\"factor\")}\n",
}
# Values that become several words, or the end of a command in arguments.
SPLIT = {"M": " factor ", "S": ";", "E": "; -exec factor ;", "O": " -exec factor ; --checkpoint=1 --checkpoint-action=exec=factor --compress-program=factor"}
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def prepare():
    """What takes a program to make is made once."""
    os.makedirs("/tmp/made/src")
    for name, text in FILES.items():
        with open(f"/tmp/made/{name}", "w", encoding="utf-8") as file:
            file.write(text)
    for command in ("tar cf a.tar a b", "tar czf a.tgz a b", "zip -q a.zip a b", "gzip -k x",
                    "git init -q && git add a b && git -c user.name=a -c user.email=a@example.com commit -qm a"):
        subprocess.run(["sh", "-c", command], cwd="/tmp/made", check=False, **QUIET)
    os.makedirs(GUARD)


def renew():
    for entry in os.scandir(WORKSPACE):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)
        else:
            os.unlink(entry.path)
    shutil.copytree("/tmp/made", WORKSPACE, dirs_exist_ok=True, symlinks=True)


def run(shell, command):
    """Whether the recorder ran, and whether something was written where a rule denies it."""
    renew()
    with open(f"{WORKSPACE}/lines", encoding="utf-8") as lines:
        with subprocess.Popen([*SHELLS[shell], command], cwd=WORKSPACE, stdin=lines, env={"PATH": "/usr/local/bin:/usr/bin:/bin",
                                                                                   "HOME": WORKSPACE, "X": "factor", **SPLIT}, **QUIET) as process:
            try:
                process.wait(3)
            except subprocess.TimeoutExpired:
                pass
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)     # all of the sandbox but its init and this
    ran, written = os.path.exists(RAN), bool(os.listdir(GUARD))
    if ran:
        os.unlink(RAN)
    if written:
        shutil.rmtree(GUARD)
        os.makedirs(GUARD)
    return ran, written


prepare()
for one in json.load(sys.stdin):
    print(*map(int, run(*one)), flush=True)
