"""Prepended to the other scripts: the environment, /env, stays as it was installed."""
import os
import sys

# "<stdin>": processes that multiprocessing starts would look for it.
globals().pop("__file__", None)


def keep_environment():
    """From now on this process and its children can't write below /env (Landlock, as the kernel has it)."""
    try:
        import ctypes
    except ImportError:
        return
    library = ctypes.CDLL(None)
    number = ctypes.c_long

    def call(*arguments):
        return library.syscall(*(number(one) if isinstance(one, int) else one for one in arguments))

    abi = call(444, 0, 0, 1)  # landlock_create_ruleset: its version
    if abi < 2:
        return
    # Write to files, remove directories and files, make anything, link and rename between directories, truncate.
    rights = 1 << 1 | sum(1 << bit for bit in range(4, 14)) | (1 << 14 if abi > 2 else 0)
    ruleset = call(444, rights.to_bytes(8, sys.byteorder), 8, 0)
    if ruleset < 0:
        return
    for name in os.listdir("/"):
        path = "/" + name
        if name == "env" or not os.path.isdir(path):
            continue
        below = os.open(path, os.O_PATH | os.O_CLOEXEC)
        call(445, ruleset, 1, rights.to_bytes(8, sys.byteorder) + below.to_bytes(4, sys.byteorder), 0)  # landlock_add_rule
        os.close(below)
    call(446, ruleset, 0)  # landlock_restrict_self
    os.close(ruleset)
