"""Things that happen at the same moment: a sandbox that is given back when it is wanted, a workspace that is suspended,
expires or is removed while it is used, names that many want."""
import concurrent.futures
import contextlib
import random
import signal
import time

import pytest

from faults import Inventory, attempt, exec_, inits, kill, remove_all, restarts, workspaces
from harness import NOT_AHEAD, eventually


def everywhere(count, fn):
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        return list(pool.map(fn, range(count)))


@pytest.mark.parametrize("options, body", [(["--idle-sandbox", "100ms"], {}), ([], {"idle_timeout": "100ms"})], ids=["given back", "suspended"])
def test_who_comes_when_a_sandbox_goes_gets_another(make_daemon, options, body):
    """Unseen by the caller: every command ends as it would have."""
    daemon = make_daemon(*options)
    inventory = Inventory(daemon)
    counter = "carrel_sandboxes_given_back_total" if options else "carrel_workspace_suspensions_total"
    gone = lambda: int(next(line.split()[1] for line in daemon.get("/metrics").body.decode().splitlines() if line.startswith(counter)))

    def use(n):
        dice, name = random.Random(n), f"w{n % 4}"
        daemon.post("/v1/workspaces", {"name": name, **body})
        end = time.monotonic() + 2.5
        count = 0
        while time.monotonic() < end or (gone() <= 3 and time.monotonic() < end + 60):     # on a busy machine it takes longer
            count += 1
            answer = exec_(daemon, name, "echo", str(count))
            assert answer.status == 200 and answer.json()["stdout"] == f"{count}\n", answer
            time.sleep(dice.uniform(0.09, 0.13))
        return count

    everywhere(6, use)      # two of the workspaces have two who use them
    assert gone() > 3
    remove_all(daemon)
    inventory.check()


@pytest.mark.kernel
def test_what_a_command_has_left_running_keeps_a_sandbox_but_not_a_workspace_awake(make_daemon):
    """--idle-sandbox passes many times, and the server that was started with & lives on; idle_timeout passes once."""
    daemon = make_daemon("--idle-sandbox", "100ms")
    for name, body in {"kept": {}, "sleeper": {"idle_timeout": "1s"}}.items():
        assert daemon.post("/v1/workspaces", {"name": name, **body}).status == 201
        assert exec_(daemon, name, "sh", "-c", "touch /tmp/here; sleep 1000 >/dev/null 2>&1 &").status == 200
    state = lambda name: daemon.get(f"/v1/workspaces/{name}").json()["state"]
    assert eventually(lambda: state("sleeper") == "suspended"), state("sleeper")
    assert state("kept") == "running"
    assert exec_(daemon, "kept", "test", "-e", "/tmp/here").json()["exit_code"] == 0
    assert exec_(daemon, "sleeper", "test", "-e", "/tmp/here").json()["exit_code"] == 1


def test_what_expires_while_it_is_used_is_gone_afterwards(own_daemon):
    daemon = own_daemon
    inventory = Inventory(daemon)

    def use(n, life_ms):
        answer = daemon.post("/v1/workspaces", {"ttl_ms": life_ms + 20 * n})
        assert answer.status == 201, answer
        path = answer.headers["Location"]
        statuses = []
        while not statuses or statuses[-1] != 404:
            answer = attempt(daemon, "POST", f"{path}/exec", {"argv": ["sleep", "0.02"]})
            assert answer.status in (200, 404) or answer.json()["code"] in ("canceled", "not_found"), answer
            statuses.append(answer.status)
        assert "expired" in answer.json()["detail"] or "being removed" in answer.json()["detail"], answer
        return len(statuses)

    # On a busy machine a life may be over before it was used.
    assert any(max(everywhere(6, lambda n: use(n, life_ms))) > 1 for life_ms in (200, 1000, 5000))
    assert eventually(lambda: not workspaces(daemon))
    inventory.check()


def test_a_name_that_many_want_is_ones_at_a_time(own_daemon):
    daemon = own_daemon
    inventory = Inventory(daemon)

    def want(n):
        made = 0
        for _ in range(25):
            answer = daemon.post("/v1/workspaces", {"name": "wanted", "labels": {"context_id": "also"}})
            assert answer.status in (201, 409), answer
            made += answer.status == 201
            if answer.status == 201 and n % 2:
                exec_(daemon, "wanted", "true")
            answer = daemon.delete("/v1/workspaces/wanted")
            assert answer.status in (204, 404), answer
        return made

    assert sum(everywhere(6, want)) > 6
    assert len(workspaces(daemon)) <= 1
    remove_all(daemon)
    inventory.check()


def test_a_key_that_many_use_makes_one(own_daemon):
    """Also while the core that works on it dies."""
    daemon = own_daemon
    body = {"labels": {"a": "b"}}

    def ask(_):
        def made():
            answer = attempt(daemon, "POST", "/v1/workspaces", body, {"Idempotency-Key": "one"})
            return answer and answer.status == 201 and answer.json()["id"]
        return eventually(made)

    with restarts(daemon), concurrent.futures.ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(ask, n) for n in range(8)]
        kill(daemon.core_pid())
        ids = {one.result() for one in asked}
    assert len(ids) == 1 and {item["id"] for item in workspaces(daemon).values()} == ids, ids
    remove_all(daemon)


@pytest.mark.once
@pytest.mark.needs_faults
def test_a_sandbox_that_is_killed_before_it_may_go_on_is_started_again(make_daemon):
    """The launcher is held between the clone of the child and the message that lets it go on. The child dies meanwhile: the create that
    waits for it gets another one, not the launcher's broken pipe."""
    daemon = make_daemon(env={"CARREL_FAULT": "sandbox_let_go:1:WAIT"})
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        asked = pool.submit(daemon.post, "/v1/workspaces", {"name": "a", "limits": NOT_AHEAD})
        created = pool.submit(exec_, daemon, "a", "true")
        assert eventually(lambda: inits(daemon))
        child = inits(daemon)[0]
        kill(child)
        assert eventually(lambda: not inits(daemon))

        def go_on():
            with contextlib.suppress(ProcessLookupError):
                daemon.process.send_signal(signal.SIGCONT)
            return created.done()

        assert eventually(go_on)
    assert asked.result().status == 201, asked.result()
    assert created.result().status == 200 and created.result().json()["exit_code"] == 0, created.result()
    assert "carrel_sandbox_start_failures_total 1\n" in daemon.get("/metrics").body.decode()
