"""What programs inside find when they ask how much memory and how many CPUs there are: the limits, whatever keeps them."""
# security: limits
import json
import os
import shutil

import pytest

MB = 1 << 20
CPUS = len(os.sched_getaffinity(0))
LOOK = """
import json, os
text = lambda path: open(path).read().strip()
group = lambda name: text("/sys/fs/cgroup/" + name)
memory = dict(line.split(":") for line in text("/proc/meminfo").splitlines())
print(json.dumps({"total": int(memory["MemTotal"].split()[0]) * 1024, "swap": memory["SwapTotal"].split()[0],
    "max": group("memory.max"), "old_max": group("memory/memory.limit_in_bytes"), "swap_max": group("memory.swap.max"),
    "cpu": group("cpu.max"), "old_cpu": group("cpu/cpu.cfs_quota_us"), "pids": group("pids.max"),
    "online": text("/sys/devices/system/cpu/online"), "count": os.cpu_count()}))
"""


def look(carrel, *options):
    return json.loads(carrel.py(LOOK, *options).stdout)


def test_the_limits_are_what_programs_find(carrel):
    found = look(carrel, "--memory", "300M", "--cpus", "0.5", "--pids", "77")
    assert found["total"] == 300 * MB and found["swap"] == found["swap_max"] == "0"
    assert found["max"] == found["old_max"] == str(300 * MB)
    assert (found["cpu"], found["old_cpu"], found["pids"]) == ("50000 100000", "50000", "77")
    assert (found["online"], found["count"]) == ("0", 1)
    assert carrel.run("--cpus", "0.5", "--", "nproc").stdout == "1\n"


def test_without_a_limit_of_cpus_all_are_there(carrel):
    found = look(carrel)
    assert found["total"] == 2048 * MB and found["count"] == CPUS
    assert (found["cpu"], found["old_cpu"]) == ("max 100000", "-1")


def test_more_memory_than_the_host_has_is_not_shown(carrel):
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert look(carrel, "--memory", "900T")["total"] <= total


def test_lscpu_runs(carrel):
    done = carrel.run("--", "lscpu")
    assert done.returncode == 0 and "CPU(s):" in done.stdout, done


@pytest.mark.skipif(not shutil.which("java"), reason="no java")
def test_a_jvm_takes_its_heap_from_the_limit(carrel, tmp):
    (tmp / "Look.java").write_text("""class Look { public static void main(String[] a) {
        Runtime r = Runtime.getRuntime(); System.out.println(r.maxMemory() / 1048576 + " " + r.availableProcessors()); } }""")
    done = carrel.run("--dir", tmp, "--memory", "600M", "--cpus", "1", "--", "java", "Look.java", timeout=120)
    assert done.returncode == 0 and done.stderr == "", done
    heap, cpus = map(int, done.stdout.split())
    assert heap <= 300 and cpus == 1


@pytest.mark.skipif(not shutil.which("node"), reason="no node")
def test_node_takes_its_heap_from_the_limit(carrel):
    done = carrel.run("--memory", "600M", "--", "node", "-p",
                      "require('os').totalmem() + ' ' + require('v8').getHeapStatistics().heap_size_limit", timeout=120)
    total, heap = map(int, done.stdout.split())
    assert total == 600 * MB and heap < 600 * MB
