"""carrel verify: every layer of a live sandbox is checked; the disk warning comes once."""
# security: sandbox
import pytest

from harness import eventually
from rest import Events, created, output_of

OUTSIDE = {"capabilities", "no_new_privs", "seccomp", "user_namespace", "pid_namespace", "network_namespace", "limits"}
INSIDE = {"seccomp_calls", "network_inside", "landlock", "files", "proc", "identity_inside", "limits_inside"}


def test_every_layer_of_a_sandbox_holds(daemon):
    with created(daemon) as workspace:
        answer = daemon.get(f"/v1/workspaces/{workspace['name']}/verify")
        assert answer.status == 200, answer
        found = answer.json()
        assert found["ok"], [one for one in found["layers"] if not one["ok"]]
        assert {one["name"] for one in found["layers"] if one["seen_from"] == "outside"} == OUTSIDE
        assert {one["name"] for one in found["layers"] if one["seen_from"] == "inside"} == INSIDE
        done = daemon("verify", workspace["name"])
        assert done.returncode == 0 and len(done.stdout.splitlines()) == len(found["layers"]), done
        assert found["inside_trusted"]
    assert daemon("verify", "nobody").returncode == 125


LIES = """
cat > lie.c <<E
#include <sys/types.h>
int ptrace(int a, int b, void *c, void *d) { return 0; }
uid_t getuid(void) { return 0; }
__attribute__((constructor)) static void lie(void) { __builtin_trap(); }
E
mkdir -p bin; for name in sh env true carrel-files python3; do printf '#!/bin/sh\\nkill -9 -1\\n' > bin/$name; chmod +x bin/$name; done
printf 'export PATH=/workspace/bin LD_PRELOAD=/workspace/lie.so\\nkill -9 -1\\n' | tee .profile .bashrc .bash_profile > .env
printf '\\x7fELF garbage' > lie.so; ln -sf /workspace/lie.so libc.so.6; ln -s bin .venv 2>/dev/null
ln -s /proc/1/root escape; mkfifo verdict; ln -s /dev/full ok
"""


def test_files_of_a_hostile_workspace_change_no_verdict(daemon):
    with created(daemon, env={"PATH": "/workspace/bin", "LD_PRELOAD": "/workspace/lie.so", "LD_LIBRARY_PATH": "/workspace"}) as workspace:
        name = workspace["name"]
        daemon.post(f"/v1/workspaces/{name}/exec", {"argv": ["/bin/sh", "-c", LIES], "env": {"PATH": "/usr/bin:/bin", "LD_PRELOAD": "", "LD_LIBRARY_PATH": ""}})
        assert daemon.get(f"/v1/workspaces/{name}/files/verdict?stat").status == 200     # it was written
        found = daemon.get(f"/v1/workspaces/{name}/verify").json()
        assert found["ok"] and found["inside_trusted"] and {one["name"] for one in found["layers"]} == OUTSIDE | INSIDE, found


@pytest.mark.once
def test_a_command_that_kills_the_process_inside_is_told_from_outside(daemon):
    """It runs as the same user: it can end that process, but changes nothing of what the kernel says."""
    with created(daemon) as workspace:
        name = workspace["name"]
        # Everything but itself and PID 1, as fast as it can.
        script = "import os, signal\nos.write(1, b'on')\nwhile True:\n  try: os.kill(-1, signal.SIGKILL)\n  except OSError: pass\n"
        started = daemon.post(f"/v1/workspaces/{name}/exec", {"argv": ["python3", "-c", script], "background": True}).json()
        assert eventually(lambda: daemon.get(f"/v1/execs/{started['id']}/output").body == b"on")
        answer = daemon.get(f"/v1/workspaces/{name}/verify")
        assert answer.status == 200, answer
        found = answer.json()
        assert not found["inside_trusted"], found
        seen = {one["name"]: one for one in found["layers"]}
        assert all(seen[one]["ok"] and seen[one]["seen_from"] == "outside" for one in OUTSIDE), found
        assert (INSIDE <= set(seen)) == found["ok"] and ("inside" in seen) != found["ok"], found
        done = daemon("verify", name)
        assert "could fake the lines with 'inside'" in done.stdout, done
        assert daemon.post(f"/v1/execs/{started['id']}/signal", {"signal": "KILL"}).status == 204


@pytest.mark.serial        # on a busy machine a walk that began before a change may end after the next one
@pytest.mark.shipped
def test_a_disk_that_is_nearly_full_is_told_once(daemon):
    with created(daemon, limits={"disk": "16M"}) as workspace:
        name = workspace["name"]
        events = Events(daemon, f"/v1/workspaces/{name}/events")
        for change in ("head -c 14M /dev/zero > a", "head -c 1M /dev/zero > b", "rm a b", "head -c 14M /dev/zero > a"):
            output_of(daemon, name, change)
            assert daemon.get(f"/v1/workspaces/{name}?measure").status == 200
        daemon.post(f"/v1/workspaces/{name}/suspend")
        seen = [event for event in events.until("workspace.suspended") if event["event"] == "workspace.disk_warning"]
        assert len(seen) == 2 and seen[0]["data"]["disk_usage_bytes"] * 10 >= 8 * (16 << 20) and seen[0]["data"]["disk_limit_bytes"] == 16 << 20, seen
