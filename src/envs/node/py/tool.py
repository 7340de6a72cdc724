# Fetches a tool of the npm registry through the proxy that the environment names, checks its SHA-512,
# and unpacks it. No code of the package runs here. Plain ASCII: it is passed to `python -I -S -c`.
#   tool.py PACKAGE VERSION DIRECTORY MEMBER...
# VERSION is a whole one, or the beginning of one (22, 22.3): the newest of those that is no
# pre-release. MEMBERs are the names at the top of the package that are unpacked; none: all.
# -> "version V", "integrity sha512-..."
# The address comes by the environment, which others on the host can't read, because it may have a
# password: CARREL_REGISTRY, CARREL_REGISTRY_AUTH (a header), SSL_CERT_FILE.
import base64
import hashlib
import json
import os
import sys
import tarfile
import time
import urllib.error
import urllib.parse
import urllib.request

PAGE_MAX = 64 << 20
FILE_MAX = 512 << 20
UNPACKED_MAX = 2 << 30
MEMBERS_MAX = 50000


class Failure(Exception):
    pass


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, request, fp, code, message, headers, url):
        raise Failure("the registry redirects to %r" % url[:200])


def open_url(url, accept):
    headers = {"Accept": accept, "User-Agent": "carrel"}
    if os.environ.get("CARREL_REGISTRY_AUTH"):
        headers["Authorization"] = os.environ["CARREL_REGISTRY_AUTH"]
    opener = urllib.request.build_opener(NoRedirect())
    for attempt in range(3):
        try:
            return opener.open(urllib.request.Request(url, headers=headers), timeout=60)
        except urllib.error.HTTPError as error:
            if error.code < 500 or attempt == 2:
                raise Failure("the registry answered %d to %s" % (error.code, urllib.parse.urlsplit(url).path))
        except OSError as error:
            if attempt == 2:
                raise Failure("the registry can't be reached: %s" % error)
        time.sleep(0.2 * 4 ** attempt)


def numbers(version):
    parts = version.split(".")
    return tuple(int(part) for part in parts) if all(part.isdigit() for part in parts) else None


def choose(versions, wanted):
    if wanted in versions:
        return wanted
    prefix = numbers(wanted)
    found = [v for v in versions if numbers(v) and prefix and numbers(v)[:len(prefix)] == prefix]
    if not found:
        raise Failure("version %s is not in the registry" % wanted)
    return max(found, key=numbers)


def safe(name):
    parts = name.split("/")[1:]          # "package/", whatever it is called
    if not parts or any(part in ("", ".", "..") for part in parts) or name.startswith("/") or "\0" in name:
        return None
    return parts


def unpack(archive, directory, members):
    total = count = 0
    with tarfile.open(archive, "r:gz") as tar:
        for entry in tar:
            count += 1
            total += entry.size
            if count > MEMBERS_MAX or total > UNPACKED_MAX:
                raise Failure("the package is too large")
            parts = safe(entry.name)
            if entry.isdir():
                continue
            if not parts or not entry.isreg():
                raise Failure("the package has %r, which is not a plain file" % entry.name[:200])
            if members and parts[0] not in members:
                continue
            path = os.path.join(directory, *parts)
            os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
            with open(path, "xb") as out, tar.extractfile(entry) as source:
                while True:
                    piece = source.read(1 << 20)
                    if not piece:
                        break
                    out.write(piece)
            os.chmod(path, 0o755 if entry.mode & 0o100 else 0o644)


def fetch(url, integrity, path):
    digest, size = hashlib.sha512(), 0
    with open_url(url, "*/*") as answer, open(path, "wb") as out:
        while True:
            piece = answer.read(1 << 20)
            if not piece:
                break
            size += len(piece)
            if size > FILE_MAX:
                raise Failure("the package is too large")
            digest.update(piece)
            out.write(piece)
    found = "sha512-" + base64.b64encode(digest.digest()).decode()
    if found != integrity:
        raise Failure("Integrity check failed: the package has %s, the registry says %s" % (found, integrity))


def main(package, wanted, directory, *members):
    registry = os.environ["CARREL_REGISTRY"].rstrip("/")
    page = registry + "/" + urllib.parse.quote(package, safe="@")
    with open_url(page, "application/vnd.npm.install-v1+json") as answer:
        data = answer.read(PAGE_MAX + 1)
    if len(data) > PAGE_MAX:
        raise Failure("the page of the package is too large")
    versions = json.loads(data).get("versions", {})
    version = choose(versions, wanted)
    dist = versions[version].get("dist", {})
    integrity = dist.get("integrity", "")
    if not integrity.startswith("sha512-") or len(integrity) != 95:
        raise Failure("the registry has no SHA-512 of it")
    os.makedirs(directory, 0o755, exist_ok=True)
    archive = directory + ".tgz"
    fetch(dist["tarball"], integrity, archive)
    unpack(archive, directory, members)
    os.unlink(archive)
    print("version " + version)
    print("integrity " + integrity)


try:
    main(*sys.argv[1:])
except Failure as failure:
    sys.exit("%s %s: %s" % (sys.argv[1], sys.argv[2], failure))
except (OSError, ValueError, KeyError, TypeError, AttributeError, tarfile.TarError) as failure:
    sys.exit("%s %s: %s" % (sys.argv[1], sys.argv[2], failure))
