"""The one file that is shipped."""
import re
import subprocess

import pytest
from harness import CARREL

pytestmark = pytest.mark.shipped


def readelf(*options):
    return subprocess.run(["readelf", "--wide", *options, CARREL], capture_output=True, text=True, check=True).stdout


def test_it_needs_no_other_file():
    headers = readelf("--program-headers", "--dynamic")
    assert "INTERP" not in headers and "NEEDED" not in headers and "RUNPATH" not in headers and "RPATH" not in headers


def test_it_is_loaded_at_a_random_address():
    assert re.search(r"Type:\s+DYN", readelf("--file-header"))


def test_nothing_in_it_is_writable_and_executable():
    headers = readelf("--program-headers")
    assert not re.search(r"\bRWE\b", headers)
    assert re.search(r"GNU_STACK.*\bRW\b", headers)


def test_its_tables_are_read_only_once_it_runs():
    assert "GNU_RELRO" in readelf("--program-headers")
    assert re.search(r"BIND_NOW|FLAGS_1.*NOW", readelf("--dynamic"))


def test_it_is_small():
    """What is loaded: a build also holds what debuggers read, which is several times as large."""
    sizes = [int(size, 16) for size in re.findall(r"^ +LOAD +\w+ \w+ \w+ (0x\w+)", readelf("--program-headers"), re.M)]
    assert 1 << 20 < sum(sizes) < 9 << 18
