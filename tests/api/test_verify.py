"""carrel verify: every layer of a live sandbox is checked; the disk warning comes once."""
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
    assert daemon("verify", "nobody").returncode == 125


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
