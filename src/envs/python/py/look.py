# What this interpreter is, as "key value" lines. Plain ASCII: it is passed to `python -I -S -c`.
import importlib.util
import os
import struct
import sys
import sysconfig


def libc():
    try:
        name, version = os.confstr("CS_GNU_LIBC_VERSION").split()
    except (AttributeError, OSError, ValueError):
        return "musl"
    return "gnu-" + version


machine = os.uname().machine
if struct.calcsize("P") == 4:
    machine = {"x86_64": "i686", "aarch64": "armv8l"}.get(machine, machine)
print("version %d.%d.%d" % sys.version_info[:3])
print("implementation %s" % sys.implementation.name)
print("magic %d" % int.from_bytes(importlib.util.MAGIC_NUMBER[:2], "little"))
print("abi %d%d%s" % (sys.version_info[0], sys.version_info[1], getattr(sys, "abiflags", "")))
print("soabi %s" % (sysconfig.get_config_var("SOABI") or "none"))
print("platform %s-linux-%s" % (machine, libc()))
print("prefix %s" % sys.base_prefix)
print("exec_prefix %s" % sys.base_exec_prefix)
