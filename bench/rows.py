"""The rows of the table: who is measured, and the command line its users would type.

Every row does the same job: /bin/true, from directory /, with /dev/null for stdin, stdout and
stderr. What a peer needs beside that (an OCI bundle, a state directory) is made here, before the
clock runs.
"""

import json
import os
import shutil

# Where a merged /usr leaves links; older systems have directories there.
SYSTEM = ["bin", "lib", "lib64", "sbin"]

BASE = "vfork+exec /bin/true"
BWRAP = "bwrap --unshare-all"
BWRAP_AGAIN = "bwrap, a second time"
CARREL = "carrel run"
LISTED = CARREL + " --allow-domain"


class Row:
    """One command of one id, measured in each n-th round (`every`).

    `wrap`: words that set the scene for the resident runner."""

    def __init__(self, who, name, argv, every=1, wrap=()):
        self.who = who
        self.name = name
        self.argv = argv
        self.every = every
        self.wrap = list(wrap)
        self.missing = None  # why it can't be measured
        self.times = {}  # round -> ns
        self.blocks = []  # ns per run of a block of runs back to back


def find(program):
    """The absolute path of a program, in sbin too; None when it isn't installed."""
    return shutil.which(program, path="/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")


def hidden_cgroup2():
    """Where cgroup v2 is mounted beside v1: crun refuses such hybrid hosts. None on all others."""
    kinds = {}
    with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
        for line in mounts:
            left, right = line.split(" - ", 1)
            kinds.setdefault(right.split()[0], left.split()[4])
    return kinds.get("cgroup2") if "cgroup" in kinds else None


def system_tree(link, bind):
    """The words that show /usr and what leads into it, in the grammar of one tool."""
    words = bind("/usr")
    for name in SYSTEM:
        path = "/" + name
        if os.path.islink(path):
            words += link(os.readlink(path), path)
        elif os.path.isdir(path):
            words += bind(path)
    return words


def bwrap_argv(program):
    tree = system_tree(lambda to, at: ["--symlink", to, at], lambda path: ["--ro-bind", path, path])
    return [
        program,
        "--unshare-all",
        "--die-with-parent",
        *tree,
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--tmpfs",
        "/tmp",
        "--",
        "/bin/true",
    ]


def make_bundle(directory, who):
    """An OCI bundle over the host's /usr: what `runc spec` writes, but no terminal and no /sys."""
    root = os.path.join(directory, "rootfs")
    os.makedirs(root)
    mounts = []

    def link(to, at):
        os.symlink(to, root + at)
        return []

    def bind(path):
        os.mkdir(root + path)
        mounts.append(
            {"destination": path, "type": "bind", "source": path, "options": ["rbind", "ro"]}
        )
        return []

    system_tree(link, bind)
    for name in ["proc", "dev", "tmp"]:
        os.mkdir(os.path.join(root, name))
    pts = ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"]
    plain = ["nosuid", "noexec", "nodev"]
    for at, kind, options in [
        ("/proc", "proc", []),
        ("/dev", "tmpfs", ["nosuid", "mode=755", "size=65536k"]),
        ("/dev/pts", "devpts", pts),
        ("/dev/shm", "tmpfs", [*plain, "mode=1777", "size=65536k"]),
        ("/dev/mqueue", "mqueue", plain),
        ("/tmp", "tmpfs", ["nosuid", "nodev", "mode=1777"]),
    ]:
        mounts.append({"destination": at, "type": kind, "source": kind, "options": options})
    spaces = ["pid", "network", "ipc", "uts", "mount"]
    linux = {
        "maskedPaths": [
            "/proc/acpi",
            "/proc/asound",
            "/proc/kcore",
            "/proc/keys",
            "/proc/latency_stats",
            "/proc/timer_list",
            "/proc/timer_stats",
            "/proc/sched_debug",
            "/proc/scsi",
        ],
        "readonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"],
    }
    if who.uid == 0:
        linux["resources"] = {"devices": [{"allow": False, "access": "rwm"}]}
    else:
        spaces.append("user")
        linux["uidMappings"] = [{"containerID": 0, "hostID": who.uid, "size": 1}]
        linux["gidMappings"] = [{"containerID": 0, "hostID": who.gid, "size": 1}]
    linux["namespaces"] = [{"type": kind} for kind in spaces]
    capabilities = ["CAP_AUDIT_WRITE", "CAP_KILL", "CAP_NET_BIND_SERVICE"]
    config = {
        "ociVersion": "1.0.2",
        "process": {
            "terminal": False,
            "user": {"uid": 0, "gid": 0},
            "args": ["/bin/true"],
            "cwd": "/",
            "env": ["PATH=/usr/local/bin:/usr/bin:/bin"],
            "noNewPrivileges": True,
            "capabilities": {kind: capabilities for kind in ["bounding", "effective", "permitted"]},
            "rlimits": [{"type": "RLIMIT_NOFILE", "hard": 1024, "soft": 1024}],
        },
        "root": {"path": "rootfs", "readonly": True},
        "hostname": "bench",
        "mounts": mounts,
        "linux": linux,
    }
    with open(os.path.join(directory, "config.json"), "w", encoding="utf-8") as out:
        json.dump(config, out)


def oci_rows(who):
    bundle = os.path.join(who.directory, "bundle")
    make_bundle(bundle, who)
    rows = []
    for name, options in [("crun", ["--cgroup-manager=disabled"]), ("runc", [])]:
        program = find(name)
        argv = [
            program,
            "--root",
            os.path.join(who.directory, name),
            *options,
            "run",
            "--bundle",
            bundle,
            "bench",
        ]
        row = Row(who, name + " run", argv, every=5)
        hidden = hidden_cgroup2() if name == "crun" else None
        if not program:
            row.missing = name + " is not installed"
        elif hidden and os.geteuid() != 0:
            row.missing = (
                "refuses hosts with cgroup v1 and v2; only root can hide " + hidden + " from it"
            )
        elif hidden:
            row.wrap = [
                find("unshare"),
                "--mount",
                "--propagation",
                "private",
                "/bin/sh",
                "-c",
                'umount -l "$0" && exec "$@"',
                hidden,
            ]
        rows.append(row)
    return rows


def make_rows(who, carrel, beside, noop):
    """All rows of one id. `carrel`: None when it isn't built; `beside`: one to compare, or None."""
    bwrap = find("bwrap")
    unshare = find("unshare")
    rows = [
        Row(who, BASE, ["/bin/true"]),
        Row(who, "vfork+exec static no-op", [noop]),
        Row(who, "unshare, all namespaces", [unshare, "-Urpfmnui", "--cgroup", "--", "/bin/true"]),
        Row(who, BWRAP, bwrap_argv(bwrap)),
        Row(who, BWRAP_AGAIN, bwrap_argv(bwrap)),
        *oci_rows(who),
        Row(who, CARREL, [carrel, "run", "--", "/bin/true"]),
        Row(who, CARREL + " -o json", [carrel, "run", "-o", "json", "--", "/bin/true"]),
        Row(who, CARREL + " --dir", [carrel, "run", "--dir", who.workspace, "--", "/bin/true"]),
        Row(who, LISTED, [carrel, "run", "--allow-domain", "example.com", "--", "/bin/true"]),
    ]
    if beside:
        rows.append(Row(who, "the other carrel run", [beside, "run", "--", "/bin/true"]))
    for row in rows:
        if row.argv[0] is None and not row.missing:
            row.missing = row.name.split()[0] + (
                " is not built" if "carrel" in row.name else " is not installed"
            )
    return rows
