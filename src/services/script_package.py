"""An adapter of the package PACKAGE: run(function="module.name", args=[...], kwargs={...}) calls one of its public functions.

Without a function it describes the package. A value that isn't JSON is returned as {"type": ..., "repr": ...}.
"""
import importlib
import importlib.metadata
import inspect
import json

PACKAGE = "@PACKAGE@"


def modules():
    """The names of its top-level modules that can be imported."""
    names = set()
    for file in importlib.metadata.files(PACKAGE) or ():
        first = file.parts[0]
        name = first[:-3] if len(file.parts) == 1 and first.endswith(".py") else first.split(".")[0] if len(file.parts) == 1 else first
        if name.isidentifier() and not name.startswith("_"):
            names.add(name)
    found = []
    for name in sorted(names):
        try:
            importlib.import_module(name)
        except ImportError:
            continue
        found.append(name)
    return found


def find(name):
    parts = name.split(".")
    if any(not part.isidentifier() or part.startswith("_") for part in parts) or parts[0] not in modules():
        raise ValueError(f"'{name}' is not a public name of {PACKAGE}")
    found, at = importlib.import_module(parts[0]), 1
    for part in parts[1:]:
        at += 1
        try:
            found = getattr(found, part)
        except AttributeError:
            found = importlib.import_module(".".join(parts[:at]))
    if not callable(found):
        raise ValueError(f"'{name}' is not a function")
    return found


def as_json(value):
    try:
        json.dumps(value, allow_nan=False)
        return value
    except (TypeError, ValueError, RecursionError):
        return {"type": type(value).__module__ + "." + type(value).__qualname__, "repr": repr(value)[:65536]}


def describe():
    names = modules()
    functions = [f"{name}.{key}" for name in names for key, value in vars(importlib.import_module(name)).items()
                 if not key.startswith("_") and (inspect.isroutine(value) or inspect.isclass(value))]
    return {"package": PACKAGE, "version": importlib.metadata.version(PACKAGE), "modules": names, "functions": sorted(functions)[:1000]}


def run(function=None, args=(), kwargs=None):
    if function is None:
        return describe()
    return as_json(find(function)(*args, **(kwargs or {})))
