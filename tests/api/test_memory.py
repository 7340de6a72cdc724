"""Core's memory: what a client changes again and again, and what it has compiled, doesn't add up."""
# security: limits
import contextlib

import pytest
from faults import memory_of
from harness import SANITIZED
from rest import created, file_url, problem

MEGABYTE = 1 << 20
CHANGES = 5 if SANITIZED else 40
BIG = {f"BIG{i}": "x" * 100_000 for i in range(8)}


def rules(count, name):
    return {"permissions": {"allow": ["shell(*)", "file(*:/workspace/**)"],
                            "deny": [f"shell(git push {name}{i}:*)" for i in range(count)]}}


# What a change says at its turn `i`, and the status of the answer.
CHANGES_OF = {
    "settings": (lambda i: {"settings": rules(20000, f"a{i}-")}, 200),
    "sources": (lambda i: {"sources": {"web_access": {"enabled": True, "allowed_domains":
                                                      [f"h{i}-{k}.{'x' * 30}.example" for k in range(15000)]}}}, 200),
    "env": (lambda i: {"env": dict(BIG, NUMBER=str(i))}, 200),
    "labels": (lambda i: {"labels": {f"l{k}": f"{i}" * 500 for k in range(60)}}, 200),
    "network": (lambda i: {"network": {"mode": "list", "allow": [f"h{i}-{k}.{'x' * 60}.example" for k in range(1000)]}}, 200),
    "a change that is refused": (lambda i: {"env": BIG, "labels": {"context_id": f"other{i}"}}, 400),
}


def change(daemon, workspace, body, status=200):
    answer = daemon.request("PATCH", f"/v1/workspaces/{workspace['name']}", body)
    assert answer.status == status, answer


def grown(daemon, step):
    """Bytes that core has grown by in the second half of many steps."""
    for i in range(CHANGES):
        step(i)
    before = memory_of(daemon.core_pid())
    for i in range(CHANGES):
        step(CHANGES + i)
    return memory_of(daemon.core_pid()) - before


@pytest.mark.parametrize("kind", CHANGES_OF)
def test_changes_of_a_workspace_do_not_add_up(own_daemon, kind):
    body, status = CHANGES_OF[kind]
    with created(own_daemon) as workspace:
        more = grown(own_daemon, lambda i: change(own_daemon, workspace, body(i), status))
        assert SANITIZED or more < 8 * MEGABYTE
        shown = own_daemon.get(f"/v1/workspaces/{workspace['id']}").json()
        assert shown["name"] == workspace["name"]
        assert own_daemon.get(f"/v1/workspaces/{workspace['name']}").json() == shown


def test_changes_do_not_add_up_while_a_command_runs_and_snapshots_are_made(own_daemon):
    with created(own_daemon, labels={"context_id": "the context"}) as workspace:
        path = f"/v1/workspaces/{workspace['name']}"
        running = own_daemon.post(f"{path}/exec", {"command": "sleep 600", "background": True}).json()
        change(own_daemon, workspace, {"env": BIG})

        def step(i):
            change(own_daemon, workspace, {"env": {"NUMBER": str(i), "BIG0": str(i) * 50_000}, "labels": {"l": str(i)}})
            if i % 10 == 0:
                snapshot = own_daemon.post(f"{path}/snapshots", {"tag": f"t{i}"})
                assert snapshot.status == 201, snapshot

        more = grown(own_daemon, step)
        assert SANITIZED or more < 8 * MEGABYTE
        answer = own_daemon.post(f"{path}/exec", {"command": "echo $NUMBER"}).json()
        assert answer["stdout"] == f"{2 * CHANGES - 1}\n", answer
        assert own_daemon.get("/v1/workspaces/the%20context").json()["labels"]["l"]
        assert own_daemon.get(f"/v1/execs/{running['id']}").json()["state"] == "running"


def test_compiled_policies_stay_below_a_total_and_judge_all_the_same(own_daemon):
    """One of them takes about 20 MB."""
    count = 2 if SANITIZED else 14
    before = memory_of(own_daemon.core_pid())
    with contextlib.ExitStack() as stack:
        names = [stack.enter_context(created(own_daemon, settings=rules(20000, f"p{i}-")))["name"] for i in range(count)]
        for i, name in [*enumerate(names)] * 2:
            path = f"/v1/workspaces/{name}/exec"
            problem(own_daemon.post(path, {"command": f"git push p{i}-19999 x"}), 403, "denied", f"p{i}-19999")
        assert SANITIZED or memory_of(own_daemon.core_pid()) - before < 150 * MEGABYTE


def test_workspaces_with_the_same_settings_share_what_is_compiled(own_daemon):
    with contextlib.ExitStack() as stack:
        one = stack.enter_context(created(own_daemon, settings=rules(20000, "p")))
        before = memory_of(own_daemon.core_pid())
        names = [stack.enter_context(created(own_daemon, settings=rules(20000, "p")))["name"] for _ in range(3)]
        assert SANITIZED or memory_of(own_daemon.core_pid()) - before < 30 * MEGABYTE
        change(own_daemon, one, {"settings": None})
        for name in names:
            problem(own_daemon.post(f"/v1/workspaces/{name}/exec", {"command": "git push p7"}), 403, "denied", "p7")


@pytest.mark.parametrize("variable", ["${CONTEXT_ID}", "${CONTEX\\u0054_ID}"])
def test_the_same_settings_name_the_context_of_each_workspace(daemon, variable):
    settings = '{"permissions": {"allow": ["shell(*)", "file(*:/workspace/**)"], "deny": ["file(write:/workspace/%s)"]}}'
    with contextlib.ExitStack() as stack:
        names = []
        for _ in range(2):
            answer = daemon.request("POST", "/v1/workspaces", ('{"settings": %s}' % (settings % variable)).encode(),
                                    {"Content-Type": "application/json"})
            assert answer.status == 201, answer
            stack.callback(daemon.delete, answer.headers["Location"])
            names.append(answer.json()["name"])
        for name in names:
            for other in names:
                written = daemon.request("PUT", file_url(name, other), b"x", {"Content-Type": "application/octet-stream"})
                assert (written.status == 403) == (name == other), written
