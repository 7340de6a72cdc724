# Whether this is an environment, and has what it should have: "key value" lines. Run by its own bin/python3 with -I -S,
# so that nothing of what is installed runs: its prefix is found as site would find it, but no .pth file is read.
import site
import sys
from importlib.metadata import distributions

site.addsitedir = lambda directory, known_paths=None: sys.path.append(directory) or known_paths
site.ENABLE_USER_SITE = False
site.venv(set())
print("prefix " + sys.prefix)

inside = [path for path in sys.path if path.startswith(sys.prefix + "/") and path.endswith("site-packages")]
found = {}
for distribution in distributions(path=inside):
    try:
        name, version = distribution.metadata["Name"], distribution.version
    except Exception:
        continue
    if name and version:
        normal = "-".join(part for part in name.lower().replace("_", "-").replace(".", "-").split("-") if part)
        found[normal] = version
for wanted in sys.argv[1:]:
    name, _, version = wanted.partition("==")
    if name not in found:
        print("missing " + name)
    elif not found[name].strip():
        print("missing " + name)
print("checked %d" % (len(sys.argv) - 1))
