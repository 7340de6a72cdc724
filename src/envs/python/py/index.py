# Reads a package index (JSON or HTML simple API) through the proxy that the environment names.
# No code of a package runs here. Plain ASCII: it is passed to `python -I -S -c`.
#   hosts PROJECT...                     -> "page PROJECT" for the first that is there, and
#                                           "host SCHEME HOST PORT" for each other place its links lead to
#   fetch PROJECT DIRECTORY MEMBER HASH... -> the file of such a hash, "file NAME"; MEMBER of it is put
#                                           beside it, executable. "-": none, and it is no wheel
# Addresses come by the environment, which others on the host can't read, because they may hold
# passwords: CARREL_INDEXES and CARREL_TRUSTED_HOSTS, one a line; SSL_CERT_FILE.
import base64
import hashlib
import html.parser
import json
import os
import re
import ssl
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import zipfile

UNRESOLVED = "Name Not Resolved"        # how the forwarder titles it; asking again doesn't help
PAGE_MAX = 64 << 20
FILE_MAX = 1 << 30
ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"


class Failure(Exception):
    pass


class Unanswered(Failure):
    pass


class NotThere(Failure):
    pass


def place(url):
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Failure("a link leads to %r" % url[:200])
    return parts.scheme, parts.hostname.lower(), parts.port or (443 if parts.scheme == "https" else 80)


# A page that is elsewhere would wait in the proxy for a host that nobody names. Files may be elsewhere.
class AtHome(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, request, fp, code, message, headers, url):
        scheme, host, port = place(url)
        if request.get_header("Accept") == ACCEPT and (scheme, host, port) not in Client.homes:
            raise Failure("the index redirects to %s:%d, which is not an index of this build" % (host[:200], port))
        return super().redirect_request(request, fp, code, message, headers, url)


class Client:
    homes = []

    def __init__(self, index):
        parts = urllib.parse.urlsplit(index)
        self.home = place(index)
        self.homes.append(self.home)
        self.authorization = None
        if parts.username is not None:
            pair = urllib.parse.unquote(parts.username) + ":" + urllib.parse.unquote(parts.password or "")
            self.authorization = "Basic " + base64.b64encode(pair.encode()).decode()
        netloc = parts.netloc.rpartition("@")[2]
        self.index = urllib.parse.urlunsplit((parts.scheme, netloc, parts.path.rstrip("/"), parts.query, ""))
        self.trusted = os.environ.get("CARREL_TRUSTED_HOSTS", "").split()

    def opener(self, url):
        scheme, host, port = place(url)
        if host in self.trusted or "%s:%d" % (host, port) in self.trusted:
            context = ssl._create_unverified_context()
        else:
            context = ssl.create_default_context(cafile=os.environ.get("SSL_CERT_FILE") or None)
        return urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), AtHome())

    def open(self, url, accept):
        # A new one each time: urllib makes a request for another scheme of one that went through a tunnel.
        request = urllib.request.Request(url, headers={"Accept": accept, "User-Agent": "carrel"})
        # Never sent on when the answer leads elsewhere.
        if self.authorization and place(url) == self.home:
            request.add_unredirected_header("Authorization", self.authorization)
        try:
            return self.opener(url).open(request, timeout=60)
        except urllib.error.HTTPError as error:
            reason = "%d %s" % (error.code, error.reason)
            if error.code in (404, 410):
                raise NotThere(reason)
            if (error.code < 500 and error.code != 429) or UNRESOLVED in reason:
                raise Failure(reason)
        except (OSError, ValueError) as error:
            reason = str(getattr(error, "reason", error))
            if "tunnel" in reason.lower() and ("403" in reason or UNRESOLVED in reason):
                raise Failure(reason)
        raise Unanswered(reason)

    def read(self, url, most, accept="*/*"):
        for attempt in range(4):
            try:
                return self.read_once(url, most, accept)
            except Unanswered:
                if attempt == 3:
                    raise
                time.sleep(0.5 * 2 ** attempt)

    def read_once(self, url, most, accept):
        with self.open(url, accept) as answer:
            data = bytearray()
            while True:
                try:
                    piece = answer.read(1 << 20)
                except Exception as error:
                    raise Unanswered("the answer broke off: %s" % error)
                if not piece:
                    break
                data += piece
                if len(data) > most:
                    raise Failure("the answer is larger than %d bytes" % most)
            length = answer.headers.get("Content-Length")
            if length and length.isdigit() and int(length) != len(data):
                raise Unanswered("the answer broke off after %d of %s bytes" % (len(data), length))
            return answer.geturl(), answer.headers.get_content_type(), bytes(data)


class Links(html.parser.HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.base, self.links = None, []

    def handle_starttag(self, tag, attributes):
        href = dict(attributes).get("href")
        if tag == "base" and href and self.base is None:
            self.base = href
        elif tag == "a" and href:
            self.links.append(href)


def files(client, project):
    """(name, url without fragment, sha256 or None) for each file of the project."""
    name = re.sub(r"[-_.]+", "-", project).lower()
    url, kind, data = client.read("%s/%s/" % (client.index, name), PAGE_MAX, ACCEPT)
    found = []
    if kind == "application/json" or kind.endswith("+json"):
        for entry in json.loads(data)["files"]:
            link = urllib.parse.urljoin(url, entry["url"])
            found.append((entry["filename"], link.partition("#")[0], entry.get("hashes", {}).get("sha256")))
    else:
        page = Links()
        page.feed(data.decode("utf-8", "replace"))
        base = urllib.parse.urljoin(url, page.base or "")
        for link in page.links:
            link, _, fragment = urllib.parse.urljoin(base, link).partition("#")
            hashes = urllib.parse.parse_qs(fragment).get("sha256")
            last = urllib.parse.unquote(urllib.parse.urlsplit(link).path.rpartition("/")[2])
            found.append((last, link, hashes[0] if hashes else None))
    return found


def hosts(clients, projects):
    for client in clients:
        places = []
        for project in projects:
            try:
                links = files(client, project)
            except NotThere:
                continue
            for _, link, _ in links:
                try:
                    where = place(link)
                except (Failure, ValueError):
                    continue
                if where not in places and where != client.home:
                    places.append(where)
            if links:
                print("page %s" % project)
                break
        for where in places[:64]:
            print("host %s %s %d" % where)


def fetch(clients, project, directory, member, hashes):
    reason = "no index has a file of '%s' with a hash that was asked for" % project
    for client in clients:
        try:
            found = files(client, project)
        except NotThere:
            continue
        for name, link, sha256 in found:
            if sha256 not in hashes or (member == "-" and name.endswith(".whl")):
                continue
            if "/" in name or name.startswith("."):
                raise Failure("a file has the name %r" % name[:200])
            _, _, data = client.read(link, FILE_MAX)
            got = hashlib.sha256(data).hexdigest()
            if got not in hashes:
                raise Failure("hash mismatch for %s: the index says %s, it is %s" % (name, sha256, got))
            with open(os.path.join(directory, name), "wb") as out:
                out.write(data)
            if member != "-":
                with zipfile.ZipFile(os.path.join(directory, name)) as archive:
                    inner = archive.read(member)
                path = os.path.join(directory, os.path.basename(member))
                with open(path, "wb") as out:
                    out.write(inner)
                os.chmod(path, 0o755)
            print("file %s" % name)
            print("sha256 %s" % got)
            return
    raise Failure(reason)


def main():
    clients = [Client(line) for line in os.environ["CARREL_INDEXES"].split("\n") if line]
    if sys.argv[1] == "hosts":
        hosts(clients, sys.argv[2:])
    else:
        fetch(clients, sys.argv[2], sys.argv[3], sys.argv[4], set(sys.argv[5:]))


try:
    main()
except Exception as error:
    # One line, and no address in it that might hold a password.
    text = str(error) if isinstance(error, Failure) else "%s: %s" % (type(error).__name__, error)
    print(" ".join(text.split())[:400], file=sys.stderr)
    sys.exit(1)
