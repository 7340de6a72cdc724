"""A smoke test: the package is installed, and can be imported."""
import importlib

import pytest
import tool


def test_its_modules_can_be_imported():
    names = tool.modules()
    assert names, f"no module of {tool.PACKAGE} can be imported"
    for name in names:
        importlib.import_module(name)


def test_it_is_described():
    assert tool.run()["version"]


def test_private_names_are_refused():
    with pytest.raises(ValueError):
        tool.run(tool.modules()[0] + "._private")
