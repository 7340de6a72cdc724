"""sdk_python.py SOCKET WORKSPACE ROUNDS CALLS: prints {"client": ns, "raw": ns} for each round, medians of a call."""

import json
import statistics
import sys
import time

import httpx

from carrel import Carrel

ARGV = ["/bin/true"]


def median_ns(call, count):
    times = []
    for _ in range(count):
        before = time.perf_counter_ns()
        call()
        times.append(time.perf_counter_ns() - before)
    return statistics.median(times)


def main():
    socket, workspace, rounds, calls = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    with Carrel(f"unix:{socket}") as carrel, httpx.Client(transport=httpx.HTTPTransport(uds=socket), base_url="http://localhost") as raw:
        ws = carrel.get(workspace)
        url = f"/v1/workspaces/{workspace}/exec"

        def by_client():
            assert ws.run(ARGV).exit_code == 0

        def by_library():
            assert raw.post(url, json={"argv": ARGV}).json()["exit_code"] == 0

        for _ in range(rounds):
            print(json.dumps({"client": median_ns(by_client, calls), "raw": median_ns(by_library, calls)}), flush=True)


main()
