# Compiles what was installed, in a sandbox without network and without running any of it: no site, no .pth, no
# sitecustomize; the parser and the compiler are all that sees it. A file that doesn't compile (templates, other
# Pythons' syntax) has no bytecode, as with pip.
import os
import stat
import sys
import warnings

from importlib.util import cache_from_source
from py_compile import PycInvalidationMode, compile as compile_file

root, mtime = sys.argv[1], int(sys.argv[2])
warnings.simplefilter("ignore")
sys.setrecursionlimit(1000)

sources = []
for directory, names, files in os.walk(root):
    for name in files:
        if name.endswith(".py"):
            path = os.path.join(directory, name)
            found = os.lstat(path)
            if stat.S_ISREG(found.st_mode):
                sources.append((found.st_size, path))
sources.sort(reverse=True)


def work(share):
    failed = 0
    for _, path in share:
        try:
            os.utime(path, (mtime, mtime))
            compile_file(path, cache_from_source(path), doraise=True, invalidation_mode=PycInvalidationMode.TIMESTAMP)
        except OSError as error:
            if error.errno == 28:
                sys.stderr.write("No space left on device\n")
                return 28
            failed += 1
        except BaseException:
            failed += 1
    if failed:
        sys.stderr.write("not compiled: %d\n" % failed)
    return 0


workers = max(1, min(8, len(os.sched_getaffinity(0)), len(sources) // 16))
children = []
for number in range(1, workers):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = work(sources[number::workers])
            sys.stderr.flush()
        finally:
            os._exit(code)
    children.append(child)
code = work(sources[0::workers])
for child in children:
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        sys.stderr.write("the compiler ended by signal %d\n" % os.WTERMSIG(status))
    elif os.WEXITSTATUS(status):
        code = os.WEXITSTATUS(status)
sys.exit(code)
