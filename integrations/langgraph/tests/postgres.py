"""A PostgreSQL server of the tests' own: in a temporary directory, on a unix socket there. Root starts it as the user nobody, since
it refuses to run as root."""
import contextlib
import glob
import os
import shutil
import subprocess
import tempfile
from typing import Iterator, List

NOBODY = 65534
SECONDS = 120


def programs() -> str:
    """The newest that is installed, as Debian installs it or in PATH."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: float(path.split("/")[4]))
    on_path = shutil.which("initdb")
    assert found or on_path, "PostgreSQL is not installed: apt-get install postgresql"
    return found[-1] if found else os.path.dirname(str(on_path))


@contextlib.contextmanager
def serving() -> Iterator[str]:
    """The connection URL of a server that runs in the block."""
    is_root = os.getuid() == 0
    prefix: List[str] = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--"] if is_root else []
    directory = tempfile.mkdtemp(prefix="carrel-pg.", dir="/var/tmp")   # short: the address of a socket has room for 107 bytes
    data, log = os.path.join(directory, "data"), os.path.join(directory, "log")
    bin_directory = programs()

    def run(program: str, *words: str) -> None:
        done = subprocess.run([*prefix, os.path.join(bin_directory, program), *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, cwd=directory, env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}, timeout=SECONDS)
        assert done.returncode == 0, done.stdout + (open(log).read() if os.path.exists(log) else "")

    try:
        if is_root:
            os.chown(directory, NOBODY, NOBODY)
        run("initdb", "--no-sync", "--auth=trust", "--username=agent", "--encoding=UTF8", "--no-locale", data)
        # Nothing here outlives the tests: no flush waits for the disk.
        run("pg_ctl", "--wait", "-t", str(SECONDS), "-D", data, "-l", log, "-o",
            f"-k {directory} -c listen_addresses= -c fsync=off -c full_page_writes=off", "start")
        try:
            yield f"postgresql://agent@/postgres?host={directory}"
        finally:
            run("pg_ctl", "--wait", "-t", str(SECONDS), "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(directory)
