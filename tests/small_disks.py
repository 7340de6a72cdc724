"""Homes on file systems that are small, full, or read-only."""
import contextlib
import ctypes
import os
import subprocess

from daemons import new_directory, remove, serving
from faults import home
from harness import TEST_MOUNT

MS_NOSUID, MS_NODEV, MS_RDONLY, MS_REMOUNT = 2, 4, 1, 32
libc = ctypes.CDLL(None, use_errno=True)


def mount(target, options, flags=MS_NOSUID | MS_NODEV):
    if libc.mount(TEST_MOUNT.encode(), os.fsencode(target), b"tmpfs", flags, options.encode()):
        raise OSError(ctypes.get_errno(), "mount")


@contextlib.contextmanager
def on_small_disk(options, prepare=None):
    """A daemon whose home is on a file system of its own; prepare(directory) is called before it serves."""
    directory = new_directory()
    disk = directory / "disk"
    try:
        disk.mkdir()
        mount(disk, options)
        try:
            disk.chmod(0o755)
            (disk / "serve.log").symlink_to(directory / "serve.log")
            if prepare:
                prepare(disk)
            with serving(disk) as daemon:
                yield daemon
        finally:
            subprocess.run(["umount", "-l", disk], check=True)
    finally:
        remove(directory)


@contextlib.contextmanager
def without_room(daemon):
    """Every block that was free is taken in the block."""
    hog = home(daemon) / "hog"
    with open(hog, "wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    try:
        yield
    finally:
        hog.unlink()


@contextlib.contextmanager
def without_inodes(daemon):
    hogs = home(daemon) / "hogs"
    hogs.mkdir()
    with contextlib.suppress(OSError):
        for n in range(100000):
            os.mknod(hogs / str(n))
    try:
        yield
    finally:
        remove(hogs)


@contextlib.contextmanager
def read_only(daemon):
    mount(daemon.home, "", MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV)
    try:
        yield
    finally:
        mount(daemon.home, "", MS_REMOUNT | MS_NOSUID | MS_NODEV)
