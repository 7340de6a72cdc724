"""A terminal on which carrel runs, seen from its far end."""
import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time


class Terminal:
    """The far end of a terminal on which carrel runs."""

    def __init__(self, master, process):
        self.master, self.process, self.seen = master, process, b""

    def send(self, text):
        os.write(self.master, text.encode())

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def _read(self, seconds):
        if not select.select([self.master], [], [], max(seconds, 0))[0]:
            return False
        try:
            data = os.read(self.master, 65536)
        except OSError:         # EIO: the last one on the other side closed it
            data = b""
        self.seen += data
        return bool(data)

    def expect(self, pattern, seconds=60):
        """Reads until `pattern` (a regular expression) has come; the match. What was before it is forgotten."""
        end = time.monotonic() + seconds
        while not (match := re.search(pattern.encode(), self.seen)):
            assert self._read(end - time.monotonic()), f"no {pattern!r} in {self.seen!r}"
        self.seen = self.seen[match.end():]
        return match

    def rest(self, seconds=60):
        """All that is still to come until carrel has ended."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and (self._read(0.05) or self.process.poll() is None or self._read(0)):
            pass
        assert self.process.poll() is not None
        return self.seen.decode(errors="replace")


@contextlib.contextmanager
def shell_outside(carrel, **how):
    """A shell with job control on a terminal, at its prompt; $CARREL is the program. The terminal stays in cooked mode there."""
    with terminal(carrel, "--norc", "--noprofile", "--noediting", "-i", program="bash", PS1="OUT> ", CARREL=str(carrel.path), **how) as term:
        term.expect("OUT> ")
        yield term


@contextlib.contextmanager
def terminal(carrel, *args, rows=24, columns=80, program=None, **env):
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    before = termios.tcgetattr(slave)
    process = subprocess.Popen([program or carrel.path, *args], stdin=slave, stdout=slave, stderr=slave,
                               env={**carrel.env, "TERM": "xterm", **env}, start_new_session=True,
                               preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    try:
        with os.fdopen(slave, "rb", 0):
            term = Terminal(master, process)
            term.slave = slave
            term.before = before
            yield term
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(120)
        with contextlib.suppress(OSError):
            os.close(master)
