"""CPython's own tests end in carrel as they do in bubblewrap, but for what docs/security/sandbox.md explains."""
# security: sandbox
import pytest

import cpython
from harness import CARREL, TREE

PARTS = 8


@pytest.mark.parametrize("part", range(PARTS))
def test_cpythons_tests_end_as_in_bubblewrap(carrel, tmp, monkeypatch, part):
    monkeypatch.setenv("CARREL_HOME", carrel.env["CARREL_HOME"])
    assert cpython.compare_all(CARREL, cpython.FILES[part::PARTS], tmp) == []


def test_every_reason_for_a_difference_is_explained_in_the_security_documents():
    text = (TREE / "docs/security/sandbox.md").read_text()
    reasons = {reason for _, reason in cpython.read_reasons()}
    assert reasons and [reason for reason in sorted(reasons) if f"| {reason} |" not in text] == []
