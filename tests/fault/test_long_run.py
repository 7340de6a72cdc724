"""Many execs, creates and removes, with restarts and kills in between: nothing stays, and the daemon's memory is flat.
CARREL_SOAK=full: 20,000 execs, 2,000 creates and removes; CARREL_SOAK=N: N times the usual."""
import concurrent.futures
import http.client
import itertools
import json
import os
import random
import threading
import time
from collections import Counter

import pytest

from faults import READY_AGAIN_SECONDS, Inventory, inits, kill, memory_of, remove_all
from harness import eventually

EXECS, CREATES = 1500, 150
TIMES = os.environ.get("CARREL_SOAK", "1")
if TIMES == "full":
    EXECS, CREATES = 20000, 2000
else:
    EXECS, CREATES = EXECS * int(TIMES), CREATES * int(TIMES)
CLIENTS = 4
MEMORY_SLACK = 4 << 20


class Client:
    """One connection that is kept; a request that breaks off is sent again when the daemon is back."""

    def __init__(self, daemon):
        self.daemon, self.connection, self.broken = daemon, None, 0

    def ask(self, method, path, body=None, key=None):
        headers = {"Content-Type": "application/json", **({"Idempotency-Key": key} if key else {})}
        for _ in range(600):
            try:
                if self.connection is None:
                    self.connection = self.daemon.connection()
                self.connection.request(method, path, body and json.dumps(body).encode(), headers)
                answer = self.connection.getresponse()
                data = answer.read()
                if answer.status != 503:
                    return answer.status, json.loads(data) if data else None
            except TimeoutError:
                raise AssertionError(f"{method} {path}: no answer") from None
            except (OSError, http.client.HTTPException):
                self.broken += 1
                self.close()
            time.sleep(0.05)
        raise AssertionError(f"{method} {path}: no answer")

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None


def work(daemon, n, creates, execs, done):
    """Its share: each workspace is made, used and removed. The same key for the same wish, also when it is asked again."""
    client = Client(daemon)
    each = execs // creates
    try:
        for number in range(creates):
            name = f"soak-{n}-{number}"
            status, body = client.ask("POST", "/v1/workspaces", {"name": name}, key=f"{name}-{os.getpid()}")
            assert status == 201, (name, status, body)
            for step in range(each):
                wish = {"argv": ["true"]} if step % 7 else {"argv": ["echo", "x"], "background": True}
                status, body = client.ask("POST", f"/v1/workspaces/{name}/exec", wish)
                assert status in (200, 201) or (status == 409 and body["code"] in ("canceled", "conflict")), (name, status, body)
                if status == 200:
                    assert (body["reason"], body["exit_code"]) in (("exited", 0), ("canceled", 130)), body
                    done["exited" if body["reason"] == "exited" else "canceled"] += 1
                else:
                    done["background" if status == 201 else "refused"] += 1
            status, body = client.ask("DELETE", f"/v1/workspaces/{name}")
            assert status in (204, 404), (name, status, body)
    finally:
        client.close()
    return client.broken


def disturb(daemon, stop, dice, counts, pause):
    """Kills and restarts, until told to stop."""
    for what in itertools.cycle(["core", "init", "launcher", "init", "core", "restart"]):
        if stop.wait(dice.uniform(0.3, 1) * pause):
            return
        if what == "core":
            kill(daemon.core_pid())
        elif what == "init":
            kill(dice.choice(inits(daemon) or [None]))
        elif what == "launcher":
            daemon.process.kill()
            daemon.process.wait()
            daemon.start_serving(wait=False)
        else:
            daemon.stop_serving()
            daemon.start_serving(wait=False)
        counts[what] += 1
        assert eventually(daemon.is_ready, READY_AGAIN_SECONDS + 5)


@pytest.mark.serial
@pytest.mark.shipped
def test_nothing_stays_and_memory_is_flat(own_daemon):
    """First without disturbance, for memory: one core serves all of it. Then with kills in between."""
    daemon = own_daemon
    inventory = Inventory(daemon)
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        def run(rounds, part):
            done = Counter()
            broken = sum(pool.map(lambda n: work(daemon, f"{part}-{n}", CREATES * rounds // 20 // CLIENTS,
                                                 EXECS * rounds // 20 // CLIENTS, done), range(CLIENTS)))
            return done, broken

        run(2, "warm")
        before = {pid: memory_of(pid) for pid in (daemon.process.pid, daemon.core_pid())}
        done, broken = run(8, "calm")
        assert not broken and not done["canceled"] and not done["refused"], (done, broken)
        after = {pid: memory_of(pid) for pid in before}
        remove_all(daemon)
        inventory.check()
        calm = time.monotonic() - began

        stop, counts = threading.Event(), dict.fromkeys(("core", "init", "launcher", "restart"), 0)
        disturber = pool.submit(disturb, daemon, stop, random.Random(5), counts, 0.5 if TIMES == "1" else 2)
        done, broken, part = Counter(), 0, 0
        try:
            with concurrent.futures.ThreadPoolExecutor(CLIENTS) as others:
                while not part or (sum(counts.values()) < 6 and not disturber.done()):
                    broken += sum(others.map(lambda n: work(daemon, f"wild-{part}-{n}", CREATES // 2 // CLIENTS, EXECS // 2 // CLIENTS, done), range(CLIENTS)))
                    part += 1
        finally:
            stop.set()
        disturber.result()
    remove_all(daemon)
    inventory.check()
    print(f"\ncalm {calm:.1f} s, all {time.monotonic() - began:.1f} s; {dict(done)}, broken off {broken}, {counts}; "
          f"memory {[f'{before[pid] >> 10} -> {after[pid] >> 10} kB' for pid in before]}")
    for pid in before:
        assert after[pid] - before[pid] < MEMORY_SLACK, (before, after)
