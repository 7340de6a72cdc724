"""Where the daemon is: an address, the environment, or the daemon of this user's home, which is started when there is none."""
from __future__ import annotations

import json
import os
import shutil
import socket
import ssl
import subprocess
import time
from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional, Union
from urllib.parse import urlsplit

from . import errors

ADDRESS_MOST = 107  # bytes of the address of a unix socket
START_SECONDS = 120
RIVAL_SECONDS = 10


@dataclass
class Place:
    """`socket` is the path of a unix socket, or None: `url` is reached by TCP."""

    url: str
    socket: Optional[str] = None
    is_own: bool = False  # the socket of the home: a daemon may be started there
    directory: Optional[int] = None  # kept open for a socket whose path is too long for an address

    def answers(self) -> bool:
        """Whether a process listens on the socket."""
        address = self.address()
        if address is None:
            return False
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(address)
            except OSError:
                return False
        return True

    def is_long(self) -> bool:
        return self.socket is not None and len(os.fsencode(self.socket)) > ADDRESS_MOST

    def address(self) -> Optional[str]:
        """That a socket can be connected to. It exists once the directory of the socket does."""
        if self.socket is None or not self.is_long():
            return self.socket
        if self.directory is None:
            try:
                self.directory = os.open(os.path.dirname(self.socket), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            except FileNotFoundError:
                return self.socket[:ADDRESS_MOST]  # which is not there either
        return f"/proc/self/fd/{self.directory}/{os.path.basename(self.socket)}"

    def close(self) -> None:
        if self.directory is not None:
            os.close(self.directory)
        self.directory = None


def home(env: Mapping[str, str]) -> str:
    """As the CLI finds it."""
    if env.get("CARREL_HOME"):
        return env["CARREL_HOME"]
    if os.geteuid() == 0:
        return "/var/lib/carrel"
    data = env.get("XDG_DATA_HOME", "")
    return os.path.join(data if os.path.isabs(data) else os.path.expanduser("~/.local/share"), "carrel")


def find(host: Optional[str], env: Mapping[str, str] = os.environ) -> Place:
    """host: https://NAME:PORT, http://NAME:PORT, unix:PATH, a path; None: $CARREL_HOST, or the daemon of this home."""
    host = host or env.get("CARREL_HOST") or None
    if host is None:
        return Place("http://localhost", os.path.join(home(env), "run/carrel.sock"), is_own=True)
    if host.startswith("unix:") or host.startswith(("/", ".")):
        path = host[len("unix:"):] if host.startswith("unix:") else host
        return Place("http://localhost", os.path.abspath(path[2:] if path.startswith("///") else path))
    parts = urlsplit(host)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.path.strip("/"):
        raise ValueError(f"{host!r} is not https://NAME:PORT, http://NAME:PORT, unix:PATH or the path of a socket")
    if parts.username is not None or parts.password is not None:
        raise ValueError("a token does not belong in the address: use token= or CARREL_TOKEN")
    return Place(host.rstrip("/"))


def context(name: str, env: Mapping[str, str] = os.environ) -> Dict[str, str]:
    """The daemon that `carrel context add NAME` has given this name: host, and token and ca, where they are set."""
    config = env.get("XDG_CONFIG_HOME", "")
    path = os.path.join(config if os.path.isabs(config) else os.path.expanduser("~/.config"), "carrel/contexts.json")
    try:
        with open(path, "rb") as file:
            contexts = json.load(file)["contexts"]
        found = [dict(one) for one in contexts if one["name"] == name]
    except FileNotFoundError:
        found = []
    except (ValueError, LookupError, TypeError) as problem:
        raise ValueError(f"'{path}' is not a list of contexts") from problem
    if not found:
        raise ValueError(f"there is no context '{name}'; `carrel context ls` lists them")
    return found[0]


def verifier(ca: Union[str, "os.PathLike[str]", ssl.SSLContext, None]) -> Union[ssl.SSLContext, bool]:
    """What checks the certificate of the daemon: the system's authorities, or those of a file."""
    if ca is None or isinstance(ca, ssl.SSLContext):
        return ca or True
    context = ssl.create_default_context(cafile=os.fspath(ca))
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def is_untrusted(problem: Optional[BaseException]) -> bool:
    """Whether a connection failed because of the certificate: another attempt would fail as well."""
    while problem is not None and not isinstance(problem, ssl.SSLCertVerificationError):
        problem = problem.__cause__ or problem.__context__
    return problem is not None


def start(place: Place) -> None:
    """Starts the daemon of the home, as the CLI does. One that another process starts meanwhile is as good."""
    program = os.environ.get("CARREL_PROGRAM") or shutil.which("carrel")
    if program is None:
        error = errors.DaemonNotStarted(f"no daemon listens on {place.socket}, and there is no program 'carrel' in PATH to start one")
        error.hint = "install carrel, or set CARREL_HOST and CARREL_TOKEN to reach a daemon elsewhere"
        raise error
    try:
        done = subprocess.run([program, "serve", "--background", "-o", "json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, timeout=START_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise errors.DaemonNotStarted(f"{program} serve --background: {problem}") from problem
    if done.returncode == 0:
        return
    failure = error_of(done.stdout)
    # Another process that starts one at the same time holds the lock, and is about to listen.
    end = time.monotonic() + (RIVAL_SECONDS if failure.get("code") == "conflict" else 0)
    while not place.answers():
        if time.monotonic() >= end:
            error = errors.DaemonNotStarted(f"{program} serve --background: {failure.get('message') or f'exit code {done.returncode}'}")
            error.hint = failure.get("hint")
            raise error
        time.sleep(0.02)


def error_of(output: bytes) -> Dict[str, Any]:
    """What `carrel -o json` prints of an error."""
    try:
        return dict(json.loads(output)["error"])
    except (ValueError, LookupError, TypeError):
        return {}
