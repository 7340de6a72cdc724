"""An environment of more packages than the kernel mounts layers (500): the smallest are merged to one layer."""
import re

import pytest
from wheels import wheel

pytestmark = pytest.mark.once     # as another user it says the same

COUNT = 505
IMPORT_ALL = f"import importlib; print(sum(importlib.import_module(f'p{{n:03}}').N for n in range({COUNT})))"


def merged_tree(env, name):
    [found] = [layer for layer in env.show(name)["layers"]
               if "name merged\n" in (env.store / "layers" / layer / "manifest").read_text()]
    return env.store / "layers" / found / "tree"


@pytest.fixture
def large(env, index):
    """The name of such an environment."""
    index.add(*(wheel(f"p{n:03}", files={f"p{n:03}.py": f"N = {n}\n"}) for n in range(COUNT)))
    requirements = env.requirements("".join(f"p{n:03}==1.0\n" for n in range(COUNT)))
    made = env.build("large", "-r", str(requirements), timeout=600)
    assert len(made["layers"]) <= 400
    return made["name"]


def test_more_packages_than_mountable_layers_run_verify_and_are_repaired(env, index, large):
    every = f"{sum(range(COUNT))}\n"
    assert env.python(large, IMPORT_ALL) == every
    assert env("env", "verify", large, timeout=300).returncode == 0

    # Another environment of the same set shares the merged layer; nothing is fetched for it.
    asked = len(index.requests)
    other = env.build("other", "-r", str(env.home / "requirements.txt"))
    assert other["layers"] == env.show(large)["layers"] and len(index.requests) == asked

    # Damage to the merged layer is found, and repaired from the layers that it was made of.
    victim = next(merged_tree(env, large).rglob("p*.py"))
    victim.write_text("N = 0\n" * 2)
    found = env("env", "verify", large, timeout=300)
    assert found.returncode == 1 and large in found.stdout and victim.name in found.stdout, found
    assert env("env", "verify", "--repair", large, timeout=300).returncode == 0
    assert env.python(large, IMPORT_ALL) == every
    assert len([path for path in index.requests[asked:] if path.startswith("/files/")]) == 0

    # One that lists more layers than can be mounted is named, and repaired.
    meta = env.store / "envs" / large / "meta.json"
    meta.write_text(re.sub(r'("layers":\s*\[)([^]]*)\]', r"\1\2,\2,\2]", meta.read_text()))
    assert len(env.show(large)["layers"]) > 500
    refused = env.run("--env", large, "--", "true")
    assert refused.returncode == 125 and large in refused.stderr and "layers" in refused.stderr, refused.stderr
    assert f"env verify --repair {large}" in refused.stderr
    assert env("env", "verify", "--repair", large, timeout=300).returncode == 0
    assert env.python(large, IMPORT_ALL) == every

    # Layers go with the last environment that lists them.
    env("env", "rm", large, timeout=300)
    assert merged_tree(env, other["name"]).exists()
    env("env", "rm", other["name"], timeout=300)
    assert not [layer for layer in env.layer_ids()
                if "name merged\n" in (env.store / "layers" / layer / "manifest").read_text()]
