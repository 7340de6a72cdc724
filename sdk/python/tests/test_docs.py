"""The examples of the docstrings, of the README files and of the guide do what they show."""
import contextlib
import doctest
import io
import pathlib
import re
from typing import Any, Iterator

import pytest

import carrel
from carrel._sync import _client, _execs, _files, _workspace

PACKAGE = pathlib.Path(__file__).resolve().parent.parent
NAMES = {name: getattr(carrel, name) for name in carrel.__all__}


def docstrings() -> Iterator[doctest.DocTest]:
    finder = doctest.DocTestFinder(exclude_empty=True)
    for module in (carrel, _client, _workspace, _files, _execs):
        yield from (test for test in finder.find(module, globs=dict(NAMES)) if test.examples)


@pytest.mark.parametrize("test", list(docstrings()), ids=lambda test: test.name)
def test_the_example_of_a_docstring(test: doctest.DocTest) -> None:
    said = io.StringIO()
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.FAIL_FAST).run(test, out=said.write)
    assert not said.getvalue(), said.getvalue()


def blocks() -> Iterator[Any]:
    tree = PACKAGE.parent.parent
    for path in (PACKAGE / "README.md", tree / "README.md", *sorted((tree / "docs/guide").glob("*.md"))):
        for number, block in enumerate(re.findall(r"^```python\n(.*?)^```$", path.read_text(), re.M | re.S)):
            yield pytest.param(block, id=f"{path.parent.name}-{path.stem}-{number}")


@pytest.mark.parametrize("block", list(blocks()))
def test_the_example_of_a_document(block: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a comment at the end of a line shows is what the line prints, in this order."""
    monkeypatch.chdir(tmp_path)
    expected = [text.strip() for text in re.findall(r"^.*\bprint\(.*\)\s*# (.*)$", block, re.M)]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block, "document", "exec"), {"__name__": "__main__"})
    assert [line for line in printed.getvalue().splitlines() if line] == expected
