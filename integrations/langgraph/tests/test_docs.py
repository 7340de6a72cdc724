"""The Python program of the README prints what its comments say."""
import pathlib
import re
import subprocess
import sys

README = pathlib.Path(__file__).parent.parent / "README.md"


def test_the_example_of_the_readme_runs() -> None:
    program, = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.M | re.S)
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == re.findall(r"^ +print\(.*\)  # (.*)$", program, re.M)
