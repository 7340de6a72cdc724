"""Packages that list the same file: they build at once, and all shared files are one package's, the one whose content uv
left in place."""
import json
import textwrap

import pytest
from envs import Envs
from harness import CLIENTS
from wheels import wheel

pytestmark = pytest.mark.once     # as another user it says the same

# {shared path: the packages whose RECORD has the hash of what is there}, for shared paths with differing hashes.
WINNERS = textwrap.dedent("""
    import base64, csv, glob, hashlib, json, os, sysconfig
    site = sysconfig.get_paths()['purelib']
    listed, winners = {}, {}
    for record in glob.glob(site + '/*.dist-info/RECORD'):
        package = os.path.basename(os.path.dirname(record)).partition('-')[0]
        for path, said, _ in csv.reader(open(record)):
            listed.setdefault(path, {})[package] = said
    for path, packages in listed.items():
        if len(set(packages.values())) > 1:
            digest = hashlib.sha256(open(os.path.join(site, path), 'rb').read()).digest()
            said = 'sha256=' + base64.urlsafe_b64encode(digest).rstrip(b'=').decode()
            winners[path] = [package for package in packages if packages[package] == said]
    print(json.dumps(winners))
    """)


def winner(carrel, name):
    """The one package that has all shared files."""
    found = json.loads(carrel.python(name, WINNERS))
    assert found and len({tuple(packages) for packages in found.values()}) == 1, found
    [package] = next(iter(found.values()))
    return package


def first_marks(carrel):
    return [line.split()[2] for path in (carrel.store / "locks").iterdir() for line in path.read_text().splitlines()
            if line.startswith("# first ")]


def test_the_first_build_in_a_new_home_may_have_packages_that_list_the_same_file(tmp_path):
    """Without uv on PATH the pip that is added is installed by the same run of uv, which then reads another kind of lock."""
    carrel = Envs(tmp_path, None)
    carrel.env.update(CLIENTS)
    carrel.build("agent", "--pip", "pyjwt", "--pip", "jwt", timeout=300)
    assert winner(carrel, "agent") in ("jwt", "pyjwt")
    assert carrel("env", "verify", "agent").returncode == 0
    carrel.left_nothing()


def test_shared_files_are_all_of_the_package_that_uv_left_in_place(env, index):
    names = ("aa", "bb", "cc")
    for name in names:
        index.add(wheel(name, files={f"{name}.py": "", **{f"shared/f{n}.py": f"OWNER = '{name}'\n" for n in range(20)}}))
    env.build("one", *(word for name in names for word in ("--pip", name)))
    package = winner(env, "one")
    marks = first_marks(env)
    assert marks == [] and package == "aa" or marks[0] == package, (marks, package)
    env.build("two", *(word for name in names for word in ("--pip", name)))
    assert winner(env, "two") == package
    (env.layer("one", "bb") / "lib").rename(env.store / "away")
    repaired = env("env", "verify", "--repair", "one", timeout=120)
    (env.store / "away").rename(env.home / "away")
    assert repaired.returncode == 0, repaired.stderr
    assert winner(env, "one") == package


def test_a_package_that_lists_another_s_files_changes_nothing_for_those_without_it(env, index):
    """Layers are shared by all environments: whatever was installed beside it, a package's layer has its own content."""
    read = "import glob, sysconfig; print(sorted(open(f).read() for f in glob.glob(sysconfig.get_paths()['purelib'] + '/good/*.py')))"
    index.add(wheel("good", files={"good/__init__.py": "A = 1\n", "good/api.py": "B = 1\n"}),
              wheel("evil", files={"evil.py": "", "good/__init__.py": "A = 2\n", "good/api.py": "B = 2\n", "good/more.py": "C = 2\n"}))
    env.build("both", "--pip", "good", "--pip", "evil")
    env.build("alone", "--pip", "good")
    assert env.python("alone", read).strip() == str(["A = 1\n", "B = 1\n"])
    assert env("env", "verify", "both", "alone").returncode == 0
