#!/usr/bin/python3
"""CPython's own tests in carrel and in bubblewrap: cpython.py [--work DIR] CARREL [TEST_FILE...]

Each file (default: all of FILES) runs in a sandbox of both, with the same network, user and file trees. Where a test ends
otherwise in carrel, the file runs again in both: a difference is one that is there each time. It is an error unless
differences.txt, beside this script, has a row for it, whose reason docs/security/sandbox.md explains."""
import argparse
import contextlib
import fnmatch
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = "/usr/bin/python3"
SECONDS = 400
TRIES = 3
# What asks something of the kernel, of files, processes, terminals, sockets, time or users.
FILES = """
    test_asynchat test_asyncio test_asyncore test_atexit test_bufio test_c_locale_coercion test_cgi test_cmd_line
    test_cmd_line_script test_compileall test_concurrent_futures test_crypt test_ctypes test_curses test_dbm
    test_dbm_dumb test_dbm_gnu test_dbm_ndbm test_devpoll test_doctest test_docxmlrpc test_eintr test_epoll
    test_faulthandler test_fcntl test_file test_file_eintr test_filecmp test_fileinput test_fileio test_fileutils test_fork1
    test_ftplib test_genericpath test_getpass test_glob test_grp test_gzip test_hashlib test_httplib
    test_httpservers test_imaplib test_import test_io test_ioctl test_largefile test_locale
    test_logging test_mailbox test_mailcap test_mimetypes test_mmap test_multiprocessing_fork
    test_multiprocessing_main_handling test_netrc test_nntplib test_openpty test_os test_pathlib test_pdb test_pipes
    test_platform test_poll test_popen test_poplib test_posix test_posixpath test_pty test_pwd test_py_compile test_pydoc
    test_readline test_repl test_resource test_runpy test_select test_selectors test_shelve test_shutil test_signal test_site
    test_smtpd test_smtplib test_socket test_socketserver test_spwd test_ssl test_stat test_subprocess test_support test_sys
    test_sysconfig test_syslog test_tarfile test_telnetlib test_tempfile test_thread test_threadedtempfile test_threading
    test_threadsignals test_time test_timeout test_tracemalloc test_unicode_file test_unicode_file_functions test_urllib
    test_urllib2_localnet test_uuid test_wait3 test_wait4 test_webbrowser test_wsgiref test_xmlrpc test_zipfile
    test_zipimport test_zoneinfo
    """.split()


def carrel_argv(carrel):
    return [carrel, "run", "--memory", "4G", "--tmp", "1G", "--"]


def bwrap_argv(carrel, etc):
    """The trees that carrel shows, and files of its own like carrel's, which are kept in `etc`."""
    shown = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/usr"]
    listing = subprocess.run([carrel, "run", "--", "/bin/sh", "-c", "cat /proc/self/mounts; cat /etc/passwd"],
                             capture_output=True, text=True, check=True).stdout
    for line in listing.splitlines():
        words = line.split()
        if len(words) == 6 and words[1].startswith(("/etc/", "/var/")):
            shown.append(words[1])
    texts = {"passwd": "".join(line + "\n" for line in listing.splitlines() if len(line.split(":")) == 7 and "/" in line),
             "group": "root:x:0:\nagent:x:1000:\nnogroup:x:65534:\n", "hostname": "sandbox\n",
             "hosts": "127.0.0.1 localhost sandbox\n::1 localhost ip6-localhost\n",
             "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n"}
    argv = ["bwrap", "--unshare-all", "--uid", "1000", "--gid", "1000", "--hostname", "sandbox", "--die-with-parent", "--new-session",
            "--clearenv", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--dir", "/.cache", "--symlink", "../tmp", "/var/tmp",
            "--tmpfs", "/workspace", "--chdir", "/workspace"]
    for path in shown:
        if os.path.islink(path):
            argv += ["--symlink", os.readlink(path), path]
        elif os.path.exists(path):
            argv += ["--ro-bind", path, path]
    for name, text in texts.items():
        (etc / name).write_text(text)
        argv += ["--ro-bind", etc / name, f"/etc/{name}"]
    for name in ("protocols", "services"):
        if os.path.exists(f"/etc/{name}"):
            argv += ["--ro-bind", f"/etc/{name}", f"/etc/{name}"]
    for setting in ("PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/workspace", "USER=agent", "LOGNAME=agent", "SHELL=/bin/sh",
                    "LANG=C.UTF-8", "TMPDIR=/tmp", "XDG_CACHE_HOME=/.cache"):
        argv += ["--setenv", *setting.split("=", 1)]
    return argv


def outcome(case):
    for kind in ("error", "failure", "skipped"):
        if case.find(kind) is not None:
            return kind
    return "passed"


def ignored(name):
    """Options for what is run in neither, because its failure would take the report of the whole file along."""
    patterns = [pattern.split(":", 1)[1] for pattern, _ in read_reasons() if pattern.startswith(f"-{name}:")]
    return " ".join(f"--ignore '{pattern}'" for pattern in patterns)


def run_file(prefix, name, log):
    """{test: outcome} of one file; the whole file is one test where it says nothing of its tests. The report comes on
    stdout: no directory of the host is writable, which would change what may be done inside."""
    script = f"{PYTHON} -m test --timeout 120 --junit-xml /tmp/report.xml {ignored(name)} {name} >&2; code=$?; cat /tmp/report.xml; exit $code"
    results, ended = {}, "took too long"
    with contextlib.suppress(subprocess.TimeoutExpired):
        done = subprocess.run([*prefix, "/bin/sh", "-c", script], stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS)
        log.write_bytes(done.stderr)
        ended = {0: "passed", 2: "failed"}.get(done.returncode, f"ended with {done.returncode}")
        with contextlib.suppress(xml.ParseError):
            for case in xml.fromstring(done.stdout).iter("testcase"):
                results[f"{name}:{(case.get('name') or '').removeprefix('test.').removeprefix(name + '.')}"] = outcome(case)
    if not results or ended not in ("passed", "failed"):
        results[f"{name}:"] = ended
    return results


def differences(ours, theirs):
    """{test: (in carrel, in bubblewrap)} of those that carrel doesn't pass and that end otherwise there. A file that
    bubblewrap itself doesn't get through can't be compared."""
    if any(test.endswith(":") for test in theirs):
        return {}
    return {test: (result, theirs.get(test, "absent")) for test, result in ours.items()
            if result != "passed" and result != theirs.get(test, "absent")}


def compare(prefixes, name, directory):
    stays = None
    for _ in range(TRIES):
        found = differences(*(run_file(prefix, name, directory / f"{name}.{where}.log") for where, prefix in prefixes.items()))
        stays = found if stays is None else {test: how for test, how in found.items() if test in stays}
        if not stays:
            break
    return stays


def read_reasons():
    """[(pattern, reason)] of differences.txt."""
    rows = []
    for line in (HERE / "differences.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            pattern, reason = line.split(None, 1)
            rows.append((pattern, reason))
    return rows


def explain(test, rows):
    return next((reason for pattern, reason in rows if fnmatch.fnmatchcase(test, pattern)), None)


def compare_all(carrel, files, directory, tell=print):
    """What no row explains: [text]."""
    unexplained, rows, directory = [], read_reasons(), pathlib.Path(directory)
    prefixes = {"carrel": carrel_argv(carrel), "bwrap": bwrap_argv(carrel, directory)}
    for name in files:
        for test, (ours, theirs) in sorted(compare(prefixes, name, directory).items()):
            reason = explain(test, rows)
            text = f"{test}: {ours}, in bubblewrap {theirs}"
            tell(f"{text}: {reason or 'NOT EXPLAINED'}")
            if not reason:
                unexplained.append(text)
        tell(f"{name}: compared")
    return unexplained


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", help="keep the logs here")
    parser.add_argument("carrel")
    parser.add_argument("files", nargs="*", default=FILES)
    options = parser.parse_args()
    directory = options.work or tempfile.mkdtemp(prefix="carrel-cpython.", dir="/var/tmp")
    try:
        unexplained = compare_all(options.carrel, options.files, directory, lambda text: print(text, flush=True))
    finally:
        if not options.work:
            shutil.rmtree(directory, ignore_errors=True)
    print(f"{len(options.files)} files, {len(unexplained)} differences that differences.txt doesn't explain")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
